"""The archive travels: what is missing is copied, what is there stays, what is not what its name says is refused."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import archive
from store.duck import Store
from store.records import Trouble, Verdict
from store.travel import MOST_BYTES, Carried, Folder, carry, plan
from tests import factory
from tests.cli import Tracker
from tests.travellers import FINDING, content, filled, judged

NAMES = [f"run={number}/attempt=1/{number:016x}.parquet" for number in range(6)]
SIDES = st.dictionaries(st.sampled_from([*NAMES, "README.md", "run=1/x.parquet"]), st.integers(1, 3))


def carried(source: Path, target: Path) -> Carried:
    there, here = Folder(source), Folder(target)
    return carry(plan(there.sizes(), here.sizes()), there, here)


class Memory:
    """A place that keeps files in memory, and breaks down after some."""

    where = "memory"

    def __init__(self, files: Mapping[str, bytes], hands: int = 1, most: int = 10**6) -> None:
        self.files, self.hands, self.most = dict(files), hands, most
        self._lock = threading.Lock()

    def sizes(self) -> dict[str, int]:
        return {name: len(content) for name, content in self.files.items()}

    def read(self, name: str) -> bytes:
        return self.files[name]

    def write(self, name: str, content: bytes) -> None:
        with self._lock:
            if self.most == 0:
                raise Trouble("the line is dead")
            self.most -= 1
            assert name not in self.files
            self.files[name] = content


# --- the plan -----------------------------------------------------------------------------------------------------


@given(SIDES, SIDES)
def test_every_file_of_the_source_is_in_one_part_of_the_plan(source: dict[str, int], target: dict[str, int]) -> None:
    work = plan(source, target)
    refused = [reason.partition(":")[0] for reason in work.refused]
    assert sorted([*work.missing, *work.present, *work.strangers, *refused]) == sorted(source)
    assert not set(work.missing) & set(target)
    assert {name for name in source if name in NAMES and source[name] != target.get(name, source[name])} == set(refused)


def test_a_file_of_a_size_that_no_archive_file_has_is_refused() -> None:
    work = plan({NAMES[0]: MOST_BYTES + 1}, {})
    assert work.missing == ()
    assert "at most 67108864" in work.refused[0]


# --- folders ------------------------------------------------------------------------------------------------------


def test_two_archives_that_exchange_what_they_have_are_equal(tmp_path: Path) -> None:
    one, other = filled(tmp_path / "a", 1, 2, -5), filled(tmp_path / "b", 2, 3)
    judged(tmp_path / "a", "2/1 against previous", FINDING)
    assert carried(one, other) == Carried(3, sum(map(len, content(one).values())) - len_of(one, 2), 1, (), ())
    assert carried(other, one).files == 1
    assert content(one) == content(other)
    assert carried(one, other).files == carried(other, one).files == 0


def len_of(root: Path, run: int) -> int:
    return sum(path.stat().st_size for path in root.glob(f"run={run}/*/*"))


def test_what_lies_about_is_left_alone(tmp_path: Path) -> None:
    source, target = filled(tmp_path / "a", 1), tmp_path / "b"
    (source / "README.md").write_text("hello")
    (source / ".git").mkdir()
    (source / ".git" / "config").write_text("secret")
    (source / "run=1" / "attempt=2" / "notes.parquet").write_text("x")
    (source / "run=9").symlink_to(source / "run=1")
    found = carried(source, target)
    assert found.strangers == ("README.md", "run=1/attempt=2/notes.parquet")
    assert (found.files, found.refused) == (1, ())
    assert all(archive.is_name(name) for name in content(target))


@pytest.mark.parametrize("spoil", ["cut", "renamed to another run", "renamed to another attempt", "no parquet"])
def test_what_is_not_what_its_name_says_is_refused_and_the_rest_is_copied(tmp_path: Path, spoil: str) -> None:
    source, target = filled(tmp_path / "a", 1, 2), tmp_path / "b"
    (victim,) = source.glob("run=1/attempt=2/*.parquet")
    whole = victim.read_bytes()
    if spoil == "cut":
        victim.write_bytes(whole[:-1])
    elif spoil == "no parquet":
        victim.unlink()
        victim.with_name(f"{archive.digest_of(b'x')}.parquet").write_bytes(b"x")
    else:
        folder = source / ("run=3/attempt=2" if "run" in spoil.split() else "run=1/attempt=3")
        folder.mkdir(parents=True)
        victim.rename(folder / victim.name)
    found = carried(source, target)
    assert (found.files, len(found.refused)) == (1, 1)
    assert "it was not copied from" in found.refused[0]
    assert [path.parts[-3] for path in target.rglob("*.parquet")] == ["run=2"]


def test_findings_under_the_name_of_another_comparison_or_moment_are_refused(tmp_path: Path) -> None:
    source = filled(tmp_path / "a")
    judged(tmp_path / "a", "2/1 against previous", FINDING)
    ((name, whole),) = content(source).items()
    parts = name.split("/")
    for wrong in (["findings=" + "0" * 16, *parts[1:]], [parts[0], "at=20990101T000000000000Z", parts[2]]):
        with pytest.raises(archive.BrokenFile, match="holds findings="):
            archive.verify("/".join(wrong), whole)
    archive.verify(name, whole)


def test_a_file_that_is_broken_on_one_side_is_told_and_stays_as_it_is(tmp_path: Path) -> None:
    source, target = filled(tmp_path / "a", 1), filled(tmp_path / "b", 1)
    (broken,) = target.rglob("*.parquet")
    broken.write_bytes(b"half")
    found = carried(source, target)
    assert (found.files, found.present) == (0, 0)
    assert "one of the two is broken" in found.refused[0]
    assert broken.read_bytes() == b"half"


# --- interrupted, and two at once -----------------------------------------------------------------------------------


@pytest.mark.parametrize("hands", [1, 4])
def test_a_copy_that_was_broken_off_goes_on_where_it_was(tmp_path: Path, hands: int) -> None:
    root = filled(tmp_path, *range(1, 9))
    source, target = Folder(root), Memory({}, hands, most=3)
    with pytest.raises(Trouble, match="the line is dead"):
        carry(plan(source.sizes(), target.sizes()), source, target)
    assert len(target.files) == 3
    target.most = 100
    assert carry(plan(source.sizes(), target.sizes()), source, target).files == 5
    assert target.files == content(root)


def test_two_that_push_to_one_folder_at_once_leave_one_whole_archive(tmp_path: Path) -> None:
    sources = [filled(tmp_path / "a", *range(1, 9)), filled(tmp_path / "b", *range(5, 13))]
    target, gate = tmp_path / "target", threading.Barrier(2)

    def push(source: Path) -> None:
        there, here = Folder(source), Folder(target)
        work = plan(there.sizes(), here.sizes())
        gate.wait()
        carry(work, there, here)

    threads = [threading.Thread(target=push, args=[source]) for source in sources]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert content(target) == content(sources[0]) | content(sources[1])


# --- findings travel ------------------------------------------------------------------------------------------------


def told(folder: Path, comparison: str) -> tuple[object, ...]:
    with Store.open(folder / "store.duckdb", folder / "archive") as store:
        store.catch_up()
        return store.findings(comparison)


def test_findings_arrive_and_the_newest_of_a_comparison_counts(tmp_path: Path) -> None:
    filled(tmp_path / "a")
    filled(tmp_path / "b")
    later = replace(FINDING, verdict=Verdict.EQUIVALENT)
    judged(tmp_path / "b", "x", later, hours=2)
    judged(tmp_path / "a", "x", FINDING, hours=1)
    judged(tmp_path / "a", "y", FINDING, hours=1)
    carried(tmp_path / "a" / "archive", tmp_path / "b" / "archive")
    carried(tmp_path / "b" / "archive", tmp_path / "a" / "archive")
    for side in ("a", "b"):
        assert told(tmp_path / side, "x") == (later,)
        assert told(tmp_path / side, "y") == (FINDING,)
    judged(tmp_path / "a", "y", hours=3)
    carried(tmp_path / "a" / "archive", tmp_path / "b" / "archive")
    assert told(tmp_path / "b", "y") == ()


def test_equal_findings_saved_again_are_no_second_file(tmp_path: Path) -> None:
    root = filled(tmp_path)
    for hours in (0, 1, 2):
        judged(tmp_path, "x", FINDING, hours=hours)
        judged(tmp_path, "nothing", hours=hours)
    assert len(content(root)) == 2


def test_findings_outlive_the_database(tmp_path: Path) -> None:
    filled(tmp_path)
    judged(tmp_path, "x", FINDING)
    (tmp_path / "store.duckdb").unlink()
    assert told(tmp_path, "x") == (FINDING,)
    Store.rebuild(tmp_path / "store.duckdb", tmp_path / "archive")
    assert told(tmp_path, "x") == (FINDING,)


def test_a_broken_file_of_findings_is_named_and_the_others_count(tmp_path: Path) -> None:
    root = filled(tmp_path)
    for name in ("x", "y"):
        judged(tmp_path, name, FINDING)
    (tmp_path / "store.duckdb").unlink()
    victim = next(iter(root.rglob("*.parquet")))
    victim.write_bytes(b"")
    with Store.open(tmp_path / "store.duckdb", root) as store:
        assert victim.name in store.catch_up().broken[0]
        assert len(store.findings()) == 1


# --- the command ----------------------------------------------------------------------------------------------------


@pytest.fixture
def landed(tracker: Tracker) -> Tracker:
    rows = factory.write(tracker.folder / "agg_bmk.json", [factory.row(conc) for conc in (16, 64)])
    run = factory.write(tracker.folder / "run.json", factory.run(77))
    assert tracker.ingest(rows, "--run", run).code == 0
    return tracker


def test_a_store_that_was_pushed_is_pulled_elsewhere_and_compares_alike(landed: Tracker) -> None:
    there = landed.folder / "there"
    assert landed("store", "push", there).out.startswith(f"pushed to {there}: 1 file, ")
    elsewhere = ["--store", landed.folder / "new" / "t.duckdb", "--archive", landed.folder / "new" / "archive"]
    said = landed("store", "pull", there, *elsewhere)
    assert said.out.splitlines()[1] == "loaded 1 file: 2 points, 0 scores"
    assert said.out.startswith(f"pulled from {there}: 1 file, ")
    assert landed("store", "pull", there, *elsewhere).out.splitlines() == [
        f"pulled from {there}: 0 files, 0.0 MiB; there already: 1",
        "loaded 0 files: 0 points, 0 scores",
    ]
    assert landed("compare", "--format", "json", *elsewhere).json == landed("compare", "--format", "json").json


def test_a_broken_file_there_is_told_and_ends_with_one(landed: Tracker) -> None:
    there = landed.folder / "there"
    landed("store", "push", there)
    (file,) = there.rglob("*.parquet")
    file.write_bytes(b"x" * file.stat().st_size)
    elsewhere = ["--store", landed.folder / "new" / "t.duckdb", "--archive", landed.folder / "new" / "archive"]
    said = landed("store", "pull", there, *elsewhere)
    assert (said.code, "not copied: " in said.out) == (1, True)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["pull", "nowhere"], "there is no folder nowhere"),
        (["pull", "https://example.org/x"], "names no place"),
        (["pull", "s3://"], "names no place"),
        (["push", "artifact:store"], "upload it with actions/upload-artifact"),
        (["push", "s3://key@bucket/x"], "is no bucket"),
    ],
)
def test_words_that_name_no_place_are_refused_with_the_remedy(landed: Tracker, words: list[str], reason: str) -> None:
    said = landed("store", *words)
    assert said.code == 1
    assert reason in said.err


def test_a_push_without_an_archive_says_so(tracker: Tracker) -> None:
    said = tracker("store", "push", tracker.folder / "there")
    assert (said.code, "there is no archive" in said.err) == (1, True)
