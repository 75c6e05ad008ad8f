"""A store that was damaged: what `tracker store check` says of it, and what stands after `tracker store recover`."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
from polars.testing import assert_frame_equal

from store import archive, checkup, salvage
from store.checkup import Lost, Problem
from store.duck import CannotOpenStore, DiskIsFull, Store, StoreIsBusy, StoreIsDamaged
from store.life import Action, Event
from store.records import Batch, RunKey, Trouble
from tests.test_store_landing import FIRST, NEW, OLD, POOL, answers, point, score, values
from tests.test_store_life import FINDING, HOLD, process

SAID = Event(datetime(2026, 8, 10, 6, tzinfo=UTC), "j2a2catt", Action.DISMISS, "maria", "the node was shared")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two runs with findings, something that a person said, and a note; nobody touches it."""
    folder = tmp_path_factory.mktemp("model")
    with Store.open(folder / "t.duckdb", folder / "t.archive") as store:
        store.land_many(POOL)
        store.save_findings("77/2 previous", [replace(FINDING, mde=0.1)])
        store.save_findings("77/2 previous", [FINDING])
        store.add_event(SAID)
        store.put_note("withdrawn_cited 77/2 previous", ["what was corrected"])
    return folder


@pytest.fixture(autouse=True)
def here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Databases are read in this process, which costs less, but for the tests that say `apart`."""
    if "apart" not in request.fixturenames:
        monkeypatch.setattr(salvage, "look", salvage.look_here)


@pytest.fixture
def apart() -> None:
    """Databases are read in a process of their own, as they are for people."""


@pytest.fixture
def folder(model: Path, tmp_path: Path) -> Path:
    shutil.copytree(model, tmp_path, dirs_exist_ok=True)
    return tmp_path


def opened(folder: Path, **how: object) -> Store:
    return Store.open(folder / "t.duckdb", folder / "t.archive", **how)


def check(folder: Path) -> checkup.Checkup:
    return checkup.check(folder / "t.duckdb", folder / "t.archive")


def recover(folder: Path) -> checkup.Recovered:
    return checkup.recover(folder / "t.duckdb", folder / "t.archive")


def everything(folder: Path) -> dict[str, object]:
    with opened(folder, read_only=True) as store:
        return {**answers(store), "findings": store.findings(), "events": store.events(),
                "note": store.note("withdrawn_cited 77/2 previous")}  # fmt: skip


def assert_same(told: Mapping[str, object], expected: Mapping[str, object]) -> None:
    for question, answer in expected.items():
        if hasattr(answer, "schema"):
            assert_frame_equal(answer, told[question])
        else:
            assert told[question] == answer, question


def problems(found: checkup.Checkup) -> set[Problem]:
    return {flaw.problem for flaw in found.flaws}


def test_a_sound_store_is_clean_and_nothing_is_written(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    found = check(folder)
    assert found.is_clean
    assert found.flaws == ()
    assert found.files == len(list(folder.rglob("*.parquet"))) == len(POOL) + 3
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    done = recover(folder)
    assert (done.aside, done.rescued, done.loaded) == ((), (), None)


# ---------------------------------------------------------------- the database


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x40
    path.write_bytes(data)


def as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


HARMS: Mapping[str, Callable[[Path], object]] = {
    "the main header": lambda path: flip(path, 20),
    "cut in the middle": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: os.truncate(path, 0),
    "a folder": as_folder,
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_database_that_cannot_be_opened_is_made_anew_and_the_old_one_kept(folder: Path, harm: str) -> None:
    expected = everything(folder)
    HARMS[harm](folder / "t.duckdb")
    found = check(folder)
    assert problems(found) <= {Problem.DATABASE_UNREADABLE, Problem.DATABASE_MISSING, Problem.TABLE_UNREADABLE}
    assert not found.is_clean
    done = recover(folder)
    assert done.after.is_clean
    assert [Path(path).name for path in done.aside] == (["t.duckdb.damaged-1"] if harm != "gone" else [])
    assert all(Path(path).exists() for path in done.aside)
    # What was noted in the database alone is lost with it, and only that.
    assert (Lost.NOTES in {flaw.lost for flaw in found.flaws}) is (harm != "gone")
    assert Lost.ROWS not in {flaw.lost for flaw in found.flaws}
    assert_same(everything(folder), expected | {"note": None})


@pytest.mark.parametrize("seed", range(1))
def test_a_bit_that_flips_anywhere_is_met_or_changes_nothing(folder: Path, apart: None, seed: int) -> None:
    expected = everything(folder)
    path = folder / "t.duckdb"
    rng = random.Random(seed)
    flip(path, rng.randrange(path.stat().st_size))
    if check(folder).is_clean:
        assert_same(everything(folder), expected)
        return
    assert recover(folder).after.is_clean
    without = {name: answer for name, answer in expected.items() if name != "note"}
    assert_same(everything(folder), without)


def damaged_table(folder: Path, table: str) -> None:
    """Flip a bit in a block of a table's rows and in no other table's."""
    path = folder / "t.duckdb"
    with duckdb.connect(str(path), read_only=True) as con:
        blocks = con.sql(f"SELECT DISTINCT block_id FROM pragma_storage_info('{table}') WHERE block_id >= 0").fetchall()
    for (block,) in blocks:
        flip(path, 3 * 4096 + block * 262144 + 100)


def test_a_damaged_table_takes_no_other_with_it(folder: Path) -> None:
    with opened(folder) as store:
        store.put_note("filler 5", "".join(f"{random.Random(number).random()}" for number in range(9000)))
    expected = everything(folder)
    damaged_table(folder, "notes")
    found = check(folder)
    assert problems(found) == {Problem.TABLE_UNREADABLE}
    assert {flaw.where: flaw.lost for flaw in found.flaws} == {"notes": Lost.NOTES, "index of notes": Lost.NOTHING}
    assert all("checksum" in flaw.reason for flaw in found.flaws)
    with pytest.raises(StoreIsDamaged, match="tracker store recover"), opened(folder) as store:
        store.note("filler 5")
    assert recover(folder).after.is_clean
    assert_same(everything(folder), expected | {"note": None})


KILLED = """
    import os, signal, sys
    from store.duck import Store
    from tests.test_checkup import SAID
    from tests.test_store_landing import POOL
    store = Store.open(sys.argv[1], sys.argv[2])
    for batch in POOL:
        store.land(batch)
    store.add_event(SAID)
    store.put_note("last", 1)
    print("ready", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
LOGS: Mapping[str, Callable[[bytes], bytes]] = {
    "whole": lambda log: log,
    "flipped": lambda log: log[: len(log) // 2] + bytes([log[len(log) // 2] ^ 1]) + log[len(log) // 2 + 1 :],
    "garbage": lambda log: random.Random(1).randbytes(len(log)),
}


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose writer was killed before its log was taken into the database."""
    folder = tmp_path_factory.mktemp("killed")
    with process(folder, KILLED) as other:
        assert other.wait(timeout=60) == -signal.SIGKILL
    assert (folder / "store.duckdb.wal").stat().st_size > 10_000
    return folder


@pytest.mark.parametrize("harm", LOGS)
def test_a_damaged_log_costs_nothing_that_the_archive_holds(killed: Path, tmp_path: Path, harm: str) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(killed, folder)
    path, root = folder / "store.duckdb", folder / "archive"
    log = folder / "store.duckdb.wal"
    log.write_bytes(LOGS[harm](log.read_bytes()))
    assert checkup.check(path, root).is_clean is (harm == "whole")
    done = checkup.recover(path, root)
    assert done.after.is_clean
    with Store.open(path, root) as store, Store.open(tmp_path / "b", root) as anew:
        anew.catch_up()
        told = answers(store)
        for question, answer in answers(anew).items():
            assert_frame_equal(answer, told[question])
        assert store.events() == (SAID,)


def test_what_ends_the_process_that_reads_is_told_as_damage(
    folder: Path, apart: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashing = 'import os, signal; print(\'{"reading": "points"}\', flush=True); os.kill(os.getpid(), signal.SIGSEGV)'
    run = subprocess.run
    monkeypatch.setattr(salvage.subprocess, "run", lambda _, **how: run([sys.executable, "-c", crashing], **how))
    seen = salvage.look(folder / "t.duckdb", folder / "seen")
    assert seen.broken == {"points": "reading it ended the process: signal SIGSEGV"}


# ---------------------------------------------------------------- the archive


def files(folder: Path, of: RunKey) -> list[archive.File]:
    return [file for file in archive.files(folder / "t.archive") if file.run == of]


@pytest.mark.parametrize("harm", ["altered", "gone"])
def test_a_damaged_file_of_a_run_is_written_anew_from_the_database(folder: Path, harm: str) -> None:
    expected = everything(folder)
    file = files(folder, RunKey(78, 1))[0]
    content = file.path.read_bytes()
    if harm == "gone":
        file.path.unlink()
    else:
        file.path.write_bytes(content[:-20] if harm == "cut" else content[:60] + b"?" + content[61:])
    (flaw,) = check(folder).flaws
    assert flaw.problem is (Problem.FILE_GONE if harm == "gone" else Problem.FILE_BROKEN)
    assert (flaw.run, flaw.lost) == (RunKey(78, 1), Lost.RAW)
    assert file.digest in flaw.where
    done = recover(folder)
    assert done.after.is_clean
    assert len(done.rescued) == 1
    told, answer = everything(folder), dict(expected)
    for one in (told, answer):
        one["points"] = one["points"].drop("file")
    assert_same(told, answer)
    # A copy of the archive may bring the file back: its rows are there already.
    with opened(folder) as store:
        if not file.path.exists():
            file.path.write_bytes(content)
        assert store.catch_up().landed.points == 0


def test_a_damaged_file_is_lost_only_where_the_database_is_damaged_too(folder: Path) -> None:
    file = files(folder, RunKey(78, 1))[0]
    content = file.path.read_bytes()
    file.path.write_bytes(content[:-20])
    (folder / "t.duckdb").write_bytes(b"")
    found = check(folder)
    assert {(flaw.problem, flaw.lost) for flaw in found.flaws} == {
        (Problem.FILE_BROKEN, Lost.ROWS),
        (Problem.DATABASE_UNREADABLE, Lost.NOTES),
    }
    done = recover(folder)
    assert done.after.is_clean
    assert (file.path.parent / f"{file.path.name}.damaged-1").read_bytes() == content[:-20]
    assert file.digest not in {one.digest for one in archive.files(folder / "t.archive")}


def test_findings_and_sayings_whose_files_are_damaged_are_written_anew(folder: Path) -> None:
    expected = everything(folder)
    newest = archive.newest_findings(folder / "t.archive")[archive.digest_of(b"77/2 previous")]
    (said,) = archive.event_files(folder / "t.archive")
    for path in (newest.path, said.path):
        path.write_bytes(path.read_bytes()[:-9])
    found = check(folder)
    assert [(flaw.problem, flaw.lost) for flaw in found.flaws] == [(Problem.FILE_BROKEN, Lost.NOTHING)] * 2
    assert recover(folder).after.is_clean
    assert_same(everything(folder), expected)
    Store.rebuild(folder / "t.duckdb", folder / "t.archive")
    assert_same(everything(folder), expected)


def test_the_file_of_a_comparison_that_found_nothing_holds_nothing_that_could_be_lost(folder: Path) -> None:
    with opened(folder) as store:
        store.save_findings("78/1 previous", [])
    file = archive.newest_findings(folder / "t.archive")[archive.digest_of(b"78/1 previous")]
    older, _ = (one for one in archive.findings_files(folder / "t.archive") if one.comparison != file.comparison)
    for path in (file.path, older.path):
        path.write_bytes(b"cut")
    assert {flaw.where: flaw.lost for flaw in check(folder).flaws} == {
        str(file.path): Lost.NOTHING,
        # What was said before it was said otherwise stands in its own file alone.
        str(older.path): Lost.ROWS,
    }


def test_a_file_under_the_name_of_another_run_is_damaged(folder: Path) -> None:
    file = files(folder, RunKey(78, 1))[0]
    target = folder / "t.archive" / "run=99" / "attempt=1" / file.path.name
    target.parent.mkdir(parents=True)
    shutil.copy(file.path, target)
    (flaw,) = check(folder).flaws
    assert (flaw.problem, flaw.run) == (Problem.FILE_BROKEN, RunKey(99, 1))


def test_what_has_not_landed_lands_in_place(folder: Path) -> None:
    of = replace(FIRST, id=80)
    archive.write(Batch(of, (point(of),), (score(of),)), folder / "t.archive")
    found = check(folder)
    assert [(flaw.problem, flaw.run, flaw.lost) for flaw in found.flaws] == [
        (Problem.NOT_LANDED, RunKey(80, 1), Lost.NOTHING)
    ]
    done = recover(folder)
    assert (done.after.is_clean, done.aside) == (True, ())
    with opened(folder, read_only=True) as store:
        assert values(store, 80) == {64: 655.0}


def test_rows_that_are_not_those_of_the_archive_are_named(folder: Path) -> None:
    expected = everything(folder)
    with duckdb.connect(str(folder / "t.duckdb")) as con:
        con.execute("UPDATE points SET tput_per_gpu = 7.5 WHERE run_id = 78")
        con.execute("DELETE FROM scores")
    found = check(folder)
    named = {flaw.where for flaw in found.flaws}
    assert problems(found) == {Problem.ROWS_DIFFER}
    assert named == {"78/1 points", "77/1 scores", "77/2 scores"}
    assert recover(folder).after.is_clean
    assert_same(everything(folder), expected)


# ---------------------------------------------------------------- versions, and who else is there


def test_a_newer_store_and_one_of_something_else_are_left_as_they_are(folder: Path) -> None:
    path = folder / "t.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute('UPDATE schema_version SET version = 99; ALTER TABLE points DROP COLUMN "p99.9_itl"')
    other = folder / "other.duckdb"
    with duckdb.connect(str(other)) as con:
        con.execute("CREATE TABLE theirs AS SELECT 1 AS x")
    for one, problem in ((path, Problem.SCHEMA_NEWER), (other, Problem.FOREIGN)):
        before = one.read_bytes()
        assert problem in problems(checkup.check(one, folder / "t.archive"))
        with pytest.raises(Trouble, match="left alone"):
            checkup.recover(one, folder / "t.archive")
        for read_only in (True, False):
            with pytest.raises(CannotOpenStore, match=r"upgrade|something else"):
                Store.open(one, folder / "t.archive", read_only=read_only)
        assert one.read_bytes() == before


def test_an_older_store_is_told_and_taken_forward(folder: Path) -> None:
    expected = everything(folder)
    with duckdb.connect(str(folder / "t.duckdb")) as con:
        con.execute("UPDATE schema_version SET version = 2; ALTER TABLE runs DROP COLUMN reasons")
        con.execute("DROP TABLE reviews; DROP TABLE events; ALTER TABLE scores DROP COLUMN extra")
    found = check(folder)
    assert found.is_clean
    assert problems(found) == {Problem.SCHEMA_OLDER}
    assert problems(recover(folder).after) == set()
    assert_same(everything(folder), expected)


def test_a_store_that_is_held_is_neither_checked_nor_repaired(tmp_path: Path) -> None:
    with process(tmp_path, HOLD.format(seconds=60)) as other:
        for work in (checkup.check, checkup.recover):
            with pytest.raises(StoreIsBusy, match=f"process {other.pid}"):
                work(tmp_path / "store.duckdb", tmp_path / "archive")


def test_findings_that_are_kept_last_count_whatever_the_clock_says(tmp_path: Path) -> None:
    late, early = datetime(2026, 12, 1, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)
    other = replace(FINDING, mde=0.25)
    with opened(tmp_path) as store:
        store.save_findings("a", [FINDING], late)
        store.save_findings("a", [other], early)
        store.land(OLD)
    with opened(tmp_path) as store:
        store.land(NEW)
        assert store.findings("a") == (other,)
    Store.rebuild(tmp_path / "t.duckdb", tmp_path / "t.archive")
    with opened(tmp_path, read_only=True) as store:
        assert store.findings("a") == (other,)


def test_what_an_older_version_kept_in_the_database_alone_gets_its_file(folder: Path) -> None:
    shutil.rmtree(next((folder / "t.archive").glob("events=*")))
    assert problems(check(folder)) == {Problem.NOT_KEPT}
    with opened(folder) as store:
        store.land(OLD)
    assert [archive.read_event(file) for file in archive.event_files(folder / "t.archive")] == [SAID]
    (folder / "t.duckdb").unlink()
    recover(folder)
    with opened(folder, read_only=True) as store:
        assert store.events() == (SAID,)


# ---------------------------------------------------------------- a full disk


@pytest.fixture
def small(tmp_path: Path) -> object:
    """A disk of 6 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", disk], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def test_a_full_disk_is_told_and_the_next_landing_goes_on(small: Path) -> None:
    with opened(small) as store:
        store.land(OLD)
    filler = small / "filler"
    room = shutil.disk_usage(small).free
    refused = 0
    for left in (0, 4096, 20_000, 40_000, 80_000, 160_000):
        filler.write_bytes(b"x" * max(0, room - left))
        try:
            with opened(small) as store:
                store.land(NEW)
                store.save_findings("a", [FINDING])
        except (DiskIsFull, OSError) as flaw:
            refused += "No space left" in str(flaw)
        filler.unlink()
        assert not [path for path in small.rglob("*.tmp") if path.is_file()]
    assert refused
    with opened(small) as store:
        store.land(NEW)
        store.save_findings("a", [FINDING])
        assert values(store, 77) == {64: 1310.0, 128: 1700.0}
    assert check(small).is_clean


# ---------------------------------------------------------------- the command line


def test_the_commands_say_what_is_lost_and_what_was_done(folder: Path, apart: None, tracker: object) -> None:
    where = ("--store", folder / "t.duckdb", "--archive", folder / "t.archive")
    assert tracker("store", "check", *where).code == 0
    (folder / "t.duckdb").write_bytes(b"x" * 5000)
    for words in (("compare",), ("weekly",), ("store", "info")):
        said = tracker(*words, *where)
        assert (said.code, said.out) == (1, "")
        assert "`tracker store check`" in said.err
        assert "`tracker store recover`" in said.err
    said = tracker("store", "check", *where)
    assert said.code == 1
    assert "lost of what the archive holds: nothing" in said.out
    told = tracker("store", "check", "--format", "json", *where).json
    assert (told["clean"], told["flaws"][0]["problem"], told["flaws"][0]["lost"]) == (
        False,
        "database_unreadable",
        "notes",
    )
    said = tracker("store", "recover", *where)
    assert said.code == 0
    assert "t.duckdb.damaged-1" in said.out
    assert said.out.endswith("clean\n")
    assert tracker("store", "recover", *where).out.startswith("nothing to repair")
    assert json.loads(tracker("store", "check", "--format", "json", *where).out)["clean"]
