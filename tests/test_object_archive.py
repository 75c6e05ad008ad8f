"""An archive in a bucket of a real S3 server: many write, each store finds all, and what fails leaves nothing half."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from store import archive
from store.buckets import TRIES, Bucket
from store.depot import Choice, Depot
from store.duck import Landed, Store
from store.patience import Patience
from store.records import Trouble
from tests import factory
from tests.cli import Said, Tracker
from tests.objects import proxy, server
from tests.objects.proxy import Fault, Proxy
from tests.test_depot import HELD
from tests.travellers import FINDING, START, content

LIST = r"^GET /[^/]+\?.*list-type"
PUT = r"^PUT .*parquet"


@pytest.fixture
def line(s3_server: str, bucket: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """The way to the bucket, through a proxy."""
    with proxy.before(s3_server) as found:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{found.address}")
        yield found


def opened(folder: Path, name: str, address: str, pauses: list[float] | None = None) -> Store:
    """A store of its own whose archive is in a bucket; nobody sleeps."""
    noted = [] if pauses is None else pauses
    patience = Patience(tries=400, seconds=90.0, sleep=noted.append, spread=lambda: 0.5)
    depot = Depot(folder / f"{name}.copies", lambda: Bucket(address, patience=patience))
    return Store.open(folder / f"{name}.duckdb", depot)


def answers(store: Store) -> list[object]:
    """What the questions say of everything that landed: the run with two attempts and the contested one row by row."""
    curves = store.curves()
    rows = [store.points(number).sort("series", "attempt", "place", "tput_per_gpu") for number in (2, 3)]
    states = store.statuses().sort(pl.all())
    return [curves, store.runs(), states, store.history(curves["curve"].to_list()), *rows, store.findings()]


def assert_equal(one: Store, other: Store) -> None:
    for left, right in zip(answers(one), answers(other), strict=True):
        if isinstance(left, tuple):
            assert left == right
        else:
            assert_frame_equal(left, right)


def test_what_one_lands_the_other_finds_and_asks_for_once(tmp_path: Path, bucket: str, line: Proxy) -> None:
    with opened(tmp_path, "a", f"{bucket}/x") as one, opened(tmp_path, "b", f"{bucket}/x") as other:
        one.land_many(HELD)
        one.save_findings("2/1 previous", [FINDING], START)
        found = other.catch_up()
        assert (found.files, found.broken, found.unlisted, found.left_out) == (len(HELD), (), (), 0)
        assert_equal(one, other)
        assert other.findings("2/1 previous") == (FINDING,)
        asked = len(line.asked)
        assert other.catch_up().files == 0
        assert [re.sub(r"\?.*", "", said) for said in line.asked[asked:]] == [f"GET /{bucket.removeprefix('s3://')}"]


def test_whoever_lands_first_loads_what_others_have_landed(tmp_path: Path, bucket: str) -> None:
    with opened(tmp_path, "a", bucket) as one, opened(tmp_path, "b", bucket) as other:
        one.land_many(HELD[:4])
        other.land_many(HELD[3:])
        one.catch_up()
        assert_equal(one, other)
    with Store.open(tmp_path / "c.duckdb", tmp_path / "c.archive") as local:
        local.land_many(HELD)
        with opened(tmp_path, "a", bucket) as one:
            assert_equal(one, local)


def test_many_writers_at_once_end_with_equal_stores(tmp_path: Path, bucket: str) -> None:
    def work(number: int) -> None:
        with opened(tmp_path, f"w{number}", bucket) as own:
            own.land_many([*HELD[3 * number :], *HELD][:5])

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    with opened(tmp_path, "w0", bucket) as first:
        first.catch_up()
        for number in range(1, 3):
            with opened(tmp_path, f"w{number}", bucket) as own:
                own.catch_up()
                assert_equal(first, own)
    assert len(Bucket(bucket).sizes()) == len(HELD)


def test_the_files_of_a_curve_are_read_straight_from_the_bucket(tmp_path: Path, bucket: str, line: Proxy) -> None:
    with opened(tmp_path, "a", bucket) as whole:
        whole.land_many(HELD)
        (curve,) = (name for name in whole.curves()["curve"] if "b200" in name)
        names, asked = whole.files_of([curve]), len(line.asked)
        with Store.of_files(bucket, names) as part:
            assert_frame_equal(part.history([curve]), whole.history([curve]))
        fetched = {said.rpartition("/")[2] for said in line.asked[asked:] if "parquet" in said}
        assert fetched == {name.rpartition("/")[2] for name in names}
        assert line.asked[asked:] == [said for said in line.asked[asked:] if "list-type" not in said]


def test_a_rebuilt_store_is_equal_and_copies_may_go(tmp_path: Path, bucket: str) -> None:
    with Store.open(tmp_path / "a.duckdb", bucket) as one:
        one.land_many(HELD)
    for path in (tmp_path / "a.copies").rglob("*.parquet"):
        path.unlink()
    with Store.open(tmp_path / "a.duckdb", bucket) as one:
        assert one.catch_up().files == 0
        assert not content(tmp_path / "a.copies")
    assert Store.rebuild(tmp_path / "a.duckdb", bucket).files == len(HELD)
    with Store.open(tmp_path / "a.duckdb", bucket) as one, opened(tmp_path, "b", bucket) as other:
        other.catch_up()
        assert_equal(one, other)


def test_polars_scans_the_rows_by_itself(tmp_path: Path, bucket: str) -> None:
    with opened(tmp_path, "a", bucket) as one:
        one.land_many(HELD)
    rows = pl.scan_parquet(
        f"{bucket}/run=*/attempt=*/*.parquet",
        hive_partitioning=False,
        missing_columns="insert",
        extra_columns="ignore",
    )
    found = rows.filter(pl.col("kind") == "point").select("run_id", "tput_per_gpu").collect()
    expected = [(batch.run.id, one.metrics["tput_per_gpu"]) for batch in HELD for one in batch.points]
    assert sorted(found.rows()) == sorted(expected)


# --- a part --------------------------------------------------------------------------------------------------------


def test_a_part_holds_the_newest_runs_whole_remembers_it_and_grows_to_everything(tmp_path: Path, bucket: str) -> None:
    with opened(tmp_path, "a", bucket) as one:
        one.land_many(HELD)
        with opened(tmp_path, "b", bucket) as part:
            found = part.catch_up(Choice(newest=5))
            assert (found.files, found.left_out, part.left_out) == (len(HELD) - 2, 2, 2)
            assert sorted(set(part.runs()["id"])) == [2, 3, 4, 5, 6]
            assert part.catch_up().files == 0
            assert part.catch_up(Choice()).files == 2
            assert part.left_out == 0
            assert_equal(one, part)


def test_a_part_since_a_moment_holds_every_run_of_which_a_file_was_written_since(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.duckdb", tmp_path / "a.archive") as one:
        one.land_many(HELD)
    old = [file.path for file in archive.files(tmp_path / "a.archive")]
    for path in old[:-2]:
        os.utime(path, (START.timestamp() - 9, START.timestamp() - 9))
    for path in old[-2:]:
        os.utime(path, (START.timestamp(), START.timestamp()))
    with Store.open(tmp_path / "b.duckdb", tmp_path / "a.archive") as part:
        assert part.catch_up(Choice(since=START)).left_out == len(HELD) - 2
        assert set(part.runs()["id"]) == {5, 6}


def test_a_part_judges_nothing_as_new_that_it_did_not_take_in(tracker: Tracker, bucket: str) -> None:
    address = f"{bucket}/ci"
    for number, (day, rows) in enumerate([(1, [factory.row(64)]), (2, [factory.row(32)]), (3, [factory.row(64)])], 1):
        folder = tracker.folder / f"run{number}"
        folder.mkdir()
        factory.write(folder / "agg_bmk.json", rows)
        factory.write(folder / "run.json", factory.run(number, f"2026-06-0{day}T00:00:00Z"))
        assert tracker("ingest", folder, "--archive", address).code == 0
    part = ["--store", tracker.folder / "part.duckdb", "--archive", address]
    said = tracker("store", "refresh", "--newest", 2, *part)
    assert said.out.splitlines()[-1] == "not chosen: 1 file (tracker store refresh brings them)"
    both = tracker("compare", "run:3", *part, "--lang", "both", "--format", "markdown").out
    assert "The store holds a part of its archive" in both
    assert "存储只载入了归档的一部分" in both
    told = tracker("compare", "run:3", *part, "--format", "json")
    assert "not_synced" in told.out
    assert "no_baseline" not in told.out
    assert "new_point" not in told.out
    assert "run 1 is not in the store" in tracker("compare", "run:3", "--against", "run:1", *part).err
    text = "Throughput per GPU is up 5 % at concurrency 64."
    for command in (["findings", "list"], ["history"], ["claims", text, "--candidate", "run:3"], ["weekly"]):
        refused = tracker(*command, *part)
        assert (refused.code != 0, "needs the whole archive" in refused.err) == (True, True), command
    assert tracker("store", "refresh", *part).out.startswith("loaded 1 file: 1 points")
    whole = tracker("compare", "run:3", *part, "--format", "json").out
    assert "not_synced" not in whole
    assert whole == tracker("compare", "run:3", "--archive", address, "--format", "json").out


# --- what goes wrong -----------------------------------------------------------------------------------------------


def test_a_line_that_is_cut_in_an_upload_leaves_nothing_half_and_is_tried_again(
    tmp_path: Path, bucket: str, line: Proxy
) -> None:
    line.faults.append(Fault(PUT, cut=True, times=2))
    with opened(tmp_path, "a", bucket) as one:
        one.land(HELD[0])
    assert line.count(PUT) == 3
    (name,) = Bucket(bucket).sizes()
    archive.verify(name, Bucket(bucket).read(name))


def test_an_upload_in_parts_that_breaks_off_shows_nothing(bucket: str, line: Proxy) -> None:
    there = Bucket(bucket, patience=Patience(tries=400, sleep=lambda _: None))
    line.faults.append(Fault("partNumber=2", cut=True))
    with pytest.raises(Trouble, match="cannot be written"):
        there.write("large", bytes(11 * 2**20))
    assert line.count("partNumber=2") == TRIES
    line.faults.clear()
    assert there.sizes() == {}


KILLED = """
import sys
from tests.test_object_archive import HELD, Store
with Store.open(sys.argv[1], sys.argv[2]) as store:
    store.land_many(HELD[:1])
"""


def test_who_is_killed_in_an_upload_leaves_nothing_and_the_next_landing_goes_on(
    tmp_path: Path, bucket: str, line: Proxy
) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path / "a.duckdb"), bucket]
    victim = subprocess.Popen(command, cwd=Path(__file__).parents[1])
    line.faults.append(Fault(PUT, cut=True, then=victim.kill))
    assert victim.wait(60) == -9
    line.faults.clear()
    assert Bucket(bucket).sizes() == {}
    with opened(tmp_path, "a", bucket) as one:
        assert one.runs().is_empty()
        assert one.land(HELD[0]).points == 2


def test_who_dies_after_an_upload_leaves_a_file_that_the_next_one_loads(tmp_path: Path, bucket: str) -> None:
    with opened(tmp_path, "a", bucket) as one:
        one._depot.write(HELD[0])
    with opened(tmp_path, "a", bucket) as one:
        assert one.land(HELD[0]) == Landed(points=2)
        assert one.land(HELD[0]) == Landed()


def test_throttled_requests_wait_longer_each_time_and_come_through(tmp_path: Path, bucket: str, line: Proxy) -> None:
    pauses: list[float] = []
    line.faults.append(Fault(PUT, status=503, code="SlowDown", times=3))
    with opened(tmp_path, "a", bucket, pauses) as one:
        assert one.land(HELD[0]).points == 2
    assert pauses == [0.75, 1.5, 3.0]


def test_throttling_without_end_is_told_and_loses_nothing(tmp_path: Path, bucket: str, line: Proxy) -> None:
    line.faults.append(Fault(PUT, status=503, code="SlowDown", after=2))
    with opened(tmp_path, "a", bucket) as one:
        with pytest.raises(Trouble, match="asks for fewer requests") as raised:
            one.land_many(HELD[:6])
        assert "writer-secret" not in str(raised.value)
    assert line.count(PUT) <= 2 + 3 * TRIES
    line.faults.clear()
    with opened(tmp_path, "a", bucket) as one, Store.open(":memory:", tmp_path / "b") as local:
        one.land_many(HELD[:6])
        local.land_many(HELD[:6])
        assert_equal(one, local)


def test_a_list_that_misses_a_file_forgets_nothing_and_the_next_one_finds_it(
    tmp_path: Path, bucket: str, line: Proxy
) -> None:
    with opened(tmp_path, "a", bucket) as one, opened(tmp_path, "b", bucket) as other:
        one.land_many(HELD)
        gone = b"<Contents>(?:(?!</Contents>).)*run=4.*?</Contents>"
        line.faults.append(Fault(LIST, edit=lambda told: re.sub(gone, b"", told, flags=re.DOTALL)))
        behind = one.catch_up()
        assert [name.partition("/")[0] for name in behind.unlisted] == ["run=4"]
        assert one.run(4) is not None
        assert other.catch_up().files == len(HELD) - 1
        line.faults.clear()
        assert other.catch_up().files == 1
        assert one.catch_up().unlisted == ()
        assert_equal(one, other)


def test_a_list_whose_second_page_fails_is_no_list(tmp_path: Path, bucket: str, line: Proxy) -> None:
    def cut_short(told: bytes) -> bytes:
        cut = told.replace(
            b"<IsTruncated>false<", b"<NextContinuationToken>2</NextContinuationToken><IsTruncated>true<"
        )
        assert cut != told
        return cut

    with opened(tmp_path, "a", bucket) as one, opened(tmp_path, "b", bucket) as other:
        one.land_many(HELD)
        line.faults += [
            Fault(f"{LIST}.*continuation-token|^GET .*continuation-token", status=500, code="InternalError"),
            Fault(LIST, edit=cut_short),
        ]
        with pytest.raises(Trouble, match="cannot be listed"):
            other.catch_up()
        assert other.runs().is_empty()


def test_wrong_content_is_refused_by_name_and_kept_aside_when_it_is_landed_again(tmp_path: Path, bucket: str) -> None:
    with opened(tmp_path, "a", bucket) as one:
        one.land_many(HELD)
        (name, *_) = one.files_of(one.curves()["curve"].to_list())
    there = Bucket(bucket)
    there.write(name, b"PAR1 of somebody else PAR1")
    with opened(tmp_path, "b", bucket) as other:
        found = other.catch_up()
        assert (found.files, len(found.broken), name in found.broken[0]) == (len(HELD) - 1, 1, True)
        assert not (tmp_path / "b.copies" / name).exists()
        other.land_many(HELD)
        with opened(tmp_path, "a", bucket) as one:
            assert_equal(one, other)
    aside = [one for one in there.sizes() if one.startswith("broken/")]
    assert [there.read(one) for one in aside] == [b"PAR1 of somebody else PAR1"]
    archive.verify(name, there.read(name))


@pytest.mark.parametrize(
    ("fault", "environ", "words"),
    [
        (None, {**server.keys("reader")}, "lack a right"),
        (None, {**server.keys(), "AWS_SECRET_ACCESS_KEY": "wrong-secret"}, "is not the key of AWS_ACCESS_KEY_ID"),
        (None, {**server.keys("nobody")}, "does not know AWS_ACCESS_KEY_ID"),
        (Fault(".", status=400, code="ExpiredToken"), {"AWS_SESSION_TOKEN": "token-secret"}, "have expired"),
        (Fault(".", status=403, code="AccessDenied"), {}, "lack a right"),
        (Fault(PUT, status=404, code="NoSuchBucket"), {}, "there is no such bucket"),
    ],
)
def test_what_is_refused_says_what_to_do_and_no_secret(
    tracker: Tracker,
    bucket: str,
    line: Proxy,
    monkeypatch: pytest.MonkeyPatch,
    fault: Fault | None,
    environ: dict[str, str],
    words: str,
) -> None:
    # What lists needs no sweep to be read first.
    on_listing = environ.get("AWS_ACCESS_KEY_ID") != "reader" and (fault is None or fault.fits != PUT)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    if fault is not None:
        line.faults.append(fault)
    said = tracker("store", "rebuild", "--archive", bucket) if on_listing else landed(tracker, bucket)
    assert said.code not in {0, None}
    assert words in said.err
    assert not re.search(r"(?:writer|reader|nobody|wrong|token)-secret", said.out + said.err)
    assert "Traceback" not in said.err


def landed(tracker: Tracker, bucket: str) -> Said:
    factory.write(tracker.folder / "agg_bmk.json", [factory.row(64)])
    factory.write(tracker.folder / "run.json", factory.run(1))
    return tracker("ingest", tracker.folder, "--archive", bucket)


def test_a_bucket_that_is_not_there_is_no_empty_archive(tracker: Tracker, bucket: str) -> None:
    for command in (["store", "refresh"], ["store", "rebuild"]):
        said = tracker(*command, "--archive", f"{bucket}-misspelt/x")
        assert (said.code != 0, "there is no bucket" in said.err) == (True, True)


# --- the commands --------------------------------------------------------------------------------------------------


def test_reading_commands_ask_the_bucket_nothing(tracker: Tracker, bucket: str, line: Proxy) -> None:
    assert landed(tracker, bucket).code == 0
    asked = len(line.asked)
    assert "1  points" in tracker("store", "info", "--archive", bucket).out
    assert tracker("compare", "latest", "--archive", bucket).code == 0
    assert len(line.asked) == asked


def test_an_archive_moves_between_a_folder_and_a_bucket(tracker: Tracker, bucket: str) -> None:
    factory.write(tracker.folder / "agg_bmk.json", [factory.row(64)])
    factory.write(tracker.folder / "run.json", factory.run(1))
    assert tracker("ingest", tracker.folder / "agg_bmk.json", "--run", tracker.folder / "run.json").code == 0
    assert "1 file" in tracker("store", "push", f"{bucket}/a").out
    assert tracker("store", "rebuild", "--archive", f"{bucket}/a").out.startswith("rebuilt from 1 file: 1 points")
    pulled = tracker("store", "pull", f"{bucket}/a", "--archive", f"{bucket}/b", "--store", tracker.folder / "b.duckdb")
    assert pulled.out.splitlines()[1].startswith("loaded 1 file: 1 points")
    assert content_names(f"{bucket}/a") == content_names(f"{bucket}/b")


def content_names(address: str) -> set[str]:
    return set(Bucket(address).sizes())


@pytest.mark.parametrize("address", ["http://127.0.0.1/x", "release://x", "s3:///x", "s3://key:secret@bucket/x"])
def test_an_address_that_is_no_bucket_is_refused(tracker: Tracker, address: str) -> None:
    said = tracker("store", "refresh", "--archive", address)
    assert said.code != 0
    assert "s3://BUCKET/PREFIX" in said.err
