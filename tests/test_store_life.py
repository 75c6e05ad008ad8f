"""The database's life: who may open it, how it grows older, what a killed process leaves, and how it is made anew."""

import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from store import archive, duck
from store.duck import CannotOpenStore, Store, StoreIsBusy, StoreIsDamaged
from store.frames import to_frame
from store.metrics import POINT_METRICS
from store.records import Batch, Caveat, Evidence, Finding, Scope, Verdict
from store.runs import Standing, standing
from tests.test_store_landing import FIRST, NEW, OLD, POOL, answers, point, values

FINDING = Finding(
    Scope.CURVE,
    "dsr1 h200",
    "tput_per_gpu",
    Verdict.REGRESSION,
    effect=-0.1,
    mde=float("inf"),
    p=0.001,
    n_baseline=5,
    n_candidate=1,
    baseline_runs=(FIRST.key,),
    series=point(FIRST).series,
    caveats=(Caveat.of("few_runs", have=1, need=3, share=0.5, flag=True, word="x", none=None),),
    evidence=Evidence(("a",), ((1.0, 2.0),), ((0.9,),), (0.01,), "own", 0.05, 0.02, 0.02, None),
    rules_version="3",
)


@contextmanager
def process(folder: Path, code: str) -> Iterator[subprocess.Popen[str]]:
    """Another Python that runs `code` with the store's paths as arguments and says `ready`."""
    command = [sys.executable, "-c", textwrap.dedent(code), str(folder / "store.duckdb"), str(folder / "archive")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]) as other:
        assert other.stdout is not None
        assert other.stdout.readline().strip() == "ready"
        try:
            yield other
        finally:
            other.kill()


HOLD = """
    import sys, time
    from store.duck import Store
    with Store.open(sys.argv[1], sys.argv[2]) as store:
        print("ready", flush=True)
        time.sleep({seconds})
"""


@pytest.mark.parametrize("read_only", [False, True])
def test_whoever_finds_a_writer_waits_a_bounded_time_and_is_told_its_process(tmp_path: Path, read_only: bool) -> None:
    with process(tmp_path, HOLD.format(seconds=60)) as other:
        started = time.monotonic()
        with pytest.raises(StoreIsBusy, match=rf"process {other.pid}\b"):
            Store.open(tmp_path / "store.duckdb", tmp_path / "archive", read_only=read_only, wait_seconds=0.3)
        assert 0.3 <= time.monotonic() - started < 10


def test_a_writer_that_leaves_lets_the_waiting_one_in(tmp_path: Path) -> None:
    with process(tmp_path, HOLD.format(seconds=0.5)), Store.open(tmp_path / "store.duckdb", tmp_path / "archive") as s:
        assert s.land(OLD).points == 2


def test_two_readers_may_read_at_once(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.duckdb", tmp_path / "archive") as store:
        store.land(OLD)
    with (
        process(tmp_path, HOLD.format(seconds=60).replace("sys.argv[2]", "sys.argv[2], read_only=True")),
        Store.open(tmp_path / "store.duckdb", tmp_path / "archive", read_only=True, wait_seconds=1) as reader,
    ):
        assert values(reader, 77) == {64: 655.0, 128: 850.0}


KILLED = """
    import os, signal, sys
    from store.duck import Store
    from tests.test_store_landing import OLD
    store = Store.open(sys.argv[1], sys.argv[2])
    store.catch_up()
    {where}
    print("ready", flush=True)
    store.land(OLD)
"""
BEFORE_LOADING = "Store._load = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
WHILE_LOADING = "Store._count = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"


@pytest.mark.parametrize("where", [BEFORE_LOADING, WHILE_LOADING])
@pytest.mark.parametrize("following", [OLD, NEW])
def test_what_a_killed_landing_left_is_loaded_by_the_next_one(tmp_path: Path, where: str, following: Batch) -> None:
    with process(tmp_path, KILLED.format(where=where)) as other:
        assert other.wait(timeout=30) == -signal.SIGKILL
    assert len(list(archive.files(tmp_path / "archive"))) == 1
    with Store.open(tmp_path / "store.duckdb", tmp_path / "archive") as store:
        assert store.info().counts["points"] == 0
        assert len(store.info().not_loaded) == 1
        store.land(following)
        assert store.info().not_loaded == ()
        assert store.info().counts["valid"] == 2
        assert store.run(FIRST.key) == FIRST


def older(path: Path, upto: int) -> None:
    """A database as an earlier version left it: some schema steps, and only the metrics of that time."""
    with duckdb.connect(str(path)) as con:
        duck.migrate(con, upto)
        con.execute('ALTER TABLE points DROP COLUMN "p99.9_itl"')


def test_an_older_file_is_brought_up_to_date_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    with Store.open(path, tmp_path / "archive") as store:
        store.land(replace(OLD, points=(replace(OLD.points[0], extra={"p99.9_itl": 0.25, "own": 1.0}), OLD.points[1])))
        expected = answers(store)
    aged = tmp_path / "aged.duckdb"
    older(aged, upto=1)
    with duckdb.connect(str(aged)) as con:
        con.execute(f"ATTACH '{path}' AS now (READ_ONLY)")
        for table in ("landed", "series", "details"):
            con.execute(f"INSERT INTO {table} BY NAME FROM now.{table}")
        con.execute("INSERT INTO scores BY NAME SELECT * EXCLUDE (extra) FROM now.scores")
        con.execute("INSERT INTO runs BY NAME SELECT * EXCLUDE (reasons) FROM now.runs")
        con.execute('INSERT INTO points BY NAME SELECT * EXCLUDE ("p99.9_itl") FROM now.points')
    with pytest.raises(CannotOpenStore, match="open it once for writing"):
        Store.open(aged, tmp_path / "archive", read_only=True)
    with Store.open(aged, tmp_path / "archive") as store:
        told = answers(store)
        assert told["points"]["p99.9_itl"].drop_nulls().unique().to_list() == [0.25]
        for question in ("runs", "curves", "statuses", "scores", "records"):
            assert_frame_equal(told[question], expected[question])
        store.save_findings("a", [FINDING])
        assert store.info().schema_version == 5


def test_runs_that_an_older_version_landed_get_their_standing_by_the_rules_of_today(tmp_path: Path) -> None:
    fast = replace(OLD, run=replace(FIRST, published=True, labels=("agentx-fast",)))
    with Store.open(tmp_path / "s", tmp_path / "a") as store:
        store.land(fast)
        assert store.standing(FIRST.key) == Standing(True)
    with duckdb.connect(str(tmp_path / "s")) as con:
        con.execute("UPDATE schema_version SET version = 2; ALTER TABLE runs DROP COLUMN reasons")
        con.execute("DROP TABLE reviews; DROP TABLE events; ALTER TABLE scores DROP COLUMN extra")
    with Store.open(tmp_path / "s", tmp_path / "a", official=standing) as store:
        assert store.standing(FIRST.key) == Standing(False, (Caveat.of("unofficial_label", label="agentx-fast"),))
        assert store.newest_run(official_only=True) is None
        assert store.info().unofficial == {"unofficial_label": 1}
    with Store.open(tmp_path / "s", tmp_path / "a", read_only=True) as store:
        assert not store.standing(FIRST.key).official
        with pytest.raises(ValueError, match="not in the store"):
            store.standing(replace(FIRST, id=5).key)


def test_a_newer_file_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    Store.open(path, tmp_path / "archive").close()
    with duckdb.connect(str(path)) as con:
        con.execute("UPDATE schema_version SET version = 99")
    for read_only in (True, False):
        with pytest.raises(CannotOpenStore, match=r"schema 99.*upgrade sweep-tracker"):
            Store.open(path, tmp_path / "archive", read_only=read_only)


def test_what_is_no_database_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    with pytest.raises(CannotOpenStore, match="does not exist"):
        Store.open(path, tmp_path / "archive", read_only=True)
    path.write_bytes(b"not a database" * 1000)
    with pytest.raises(StoreIsDamaged, match="tracker store recover"):
        Store.open(path, tmp_path / "archive")


def test_a_store_made_anew_from_its_archive_gives_equal_answers(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    with Store.open(path, tmp_path / "archive", official=lambda r: r.id == 77) as store:
        for batch in POOL:
            store.land(batch)
        store.save_findings("a", [FINDING])
        store.put_note("scales", {"tput_per_gpu": 0.5})
        expected, counts = answers(store), store.info().counts
    loaded = Store.rebuild(path, tmp_path / "archive", official=lambda r: r.id == 77)
    assert (loaded.files, loaded.broken) == (len(list(archive.files(tmp_path / "archive"))), ())
    with Store.open(path, tmp_path / "archive", read_only=True) as store:
        told = answers(store)
        for question, answer in expected.items():
            assert_frame_equal(answer, told[question])
        assert store.info().counts == counts
        assert store.findings("a") == (FINDING,)
        assert store.note("scales") == {"tput_per_gpu": 0.5}
    assert not list(tmp_path.glob("*.new*"))


def test_a_broken_file_is_named_and_the_others_are_loaded(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    with Store.open(path, tmp_path / "archive") as store:
        store.land_many([OLD, NEW])
    broken = next(file for file in archive.files(tmp_path / "archive") if file.run == FIRST.key)
    broken.path.write_bytes(broken.path.read_bytes()[:-10])
    path.write_bytes(b"lost")
    loaded = Store.rebuild(path, tmp_path / "archive")
    assert loaded.files == 1
    assert [str(broken.path) in reason for reason in loaded.broken] == [True]
    with Store.open(path, tmp_path / "archive") as store:
        assert values(store, 77) == {64: 1310.0, 128: 1700.0}
        assert store.land(OLD).points == 2
    archive.read(broken)


def test_a_store_that_is_held_is_not_made_anew(tmp_path: Path) -> None:
    with process(tmp_path, HOLD.format(seconds=60)), pytest.raises(StoreIsBusy):
        Store.rebuild(tmp_path / "store.duckdb", tmp_path / "archive", wait_seconds=0.2)


def test_findings_come_back_equal_and_are_replaced_whole(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s", tmp_path / "a") as store:
        second = replace(FINDING, metric="median_tpot", evidence=None)
        store.save_findings("28/1 against previous", [FINDING, second])
        store.save_findings("29/1 against previous", [FINDING])
        assert store.findings("28/1 against previous") == (FINDING, second)
        assert store.findings(key="dsr1 h200") == (FINDING, second, FINDING)
        store.save_findings("28/1 against previous", [second])
        assert store.findings("28/1 against previous") == (second,)
        store.save_findings("28/1 against previous", [])
        assert store.findings("28/1 against previous") == ()


def test_a_note_is_kept_until_the_next_one_of_its_name(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s", tmp_path / "a") as store:
        assert store.note("k") is None
        store.put_note("k", {"b": [1, 2.5, None], "a": "指标"})
        assert store.note("k") == {"a": "指标", "b": [1, 2.5, None]}
        store.put_note("k", 3)
        assert store.note("k") == 3


def test_a_file_older_than_a_metric_gives_it_from_its_extra_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    old = replace(OLD, points=(replace(OLD.points[0], extra={"p99.9_itl": 0.25}),))
    rows = to_frame(old)
    assert "p99.9_itl" not in rows.columns
    monkeypatch.setattr("store.archive.to_frame", lambda _: rows)
    archive.write(old, tmp_path / "a")
    monkeypatch.undo()
    with Store.open(tmp_path / "s", tmp_path / "a") as store:
        store.land(NEW)
        assert store.points(FIRST.key)["p99.9_itl"].to_list() == [0.25]
        assert store.points(FIRST.key).schema["p99.9_itl"] == pl.Float64


def test_every_metric_has_a_column(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s", tmp_path / "a") as store:
        store.land(OLD)
        assert set(POINT_METRICS) <= set(store.points(77).columns)
