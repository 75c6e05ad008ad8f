"""Holds a store against its archive, says what is damaged and what of it is lost, and repairs it.

The archive is the truth: what it holds is never lost. A file of it that was cut or altered is put aside, and its rows
are taken out of the database where that still has them. A database that is damaged is put aside and made anew.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import polars as pl

from store import archive, salvage
from store.archive import BrokenFile, EventFile, File, FindingsFile
from store.depot import EVERYTHING, Choice
from store.duck import HELD, PART, Loaded, Predicate, Store, StoreIsBusy, everything
from store.frames import from_text, to_batch
from store.life import Event
from store.questions import schema_steps
from store.records import Finding, RunKey, Trouble
from store.salvage import Seen

ADOPTED: Final = ("reviews", "events", "notes")
"""Tables that are taken over from a database that is replaced."""
LEFT_OVER: Final = 3600.0
"""Seconds after which a draft is nobody's any more: it was left by a process that was killed."""


class Problem(StrEnum):
    """What may be wrong with a store."""

    FILE_BROKEN = "file_broken"
    FILE_GONE = "file_gone"
    NOT_LANDED = "not_landed"
    NOT_KEPT = "not_kept"
    DATABASE_MISSING = "database_missing"
    DATABASE_UNREADABLE = "database_unreadable"
    LOG_UNREADABLE = "log_unreadable"
    TABLE_UNREADABLE = "table_unreadable"
    ROWS_DIFFER = "rows_differ"
    SCHEMA_OLDER = "schema_older"
    SCHEMA_NEWER = "schema_newer"
    FOREIGN = "foreign"


class Lost(StrEnum):
    """What of it cannot be had again from this store."""

    NOTHING = "nothing"
    RAW = "raw"
    """The rows are in the database, without the text that they were read from."""
    ROWS = "rows"
    """What the file held, unless it lands again or is pulled from a copy of the archive."""
    NOTES = "notes"
    """Corrections that were noted in the database alone."""


REPAIRED_BY_OTHERS: Final = frozenset({Problem.SCHEMA_NEWER, Problem.FOREIGN})
"""What a newer version, or another program, wrote is not touched."""
BEHIND: Final = frozenset({Problem.NOT_LANDED, Problem.NOT_KEPT})
"""What catching up repairs in place."""
HARMLESS: Final = frozenset({Problem.SCHEMA_OLDER})
"""What the next landing does by itself."""


@dataclass(frozen=True, slots=True, order=True)
class Flaw:
    """One thing that is wrong: where, in the words of whoever met it, and what is lost by it."""

    problem: Problem
    where: str
    """File, table, or `run/attempt table`."""
    run: RunKey | None = None
    reason: str = ""
    lost: Lost = Lost.NOTHING


@dataclass(frozen=True, slots=True)
class Checkup:
    """What was looked at and what is wrong."""

    files: int
    """Of the archive: of runs, of findings and of what people said."""
    rows: Mapping[str, int]
    """Of the database, by table."""
    version: int
    flaws: tuple[Flaw, ...]
    left_over: tuple[str, ...] = ()
    """Drafts of processes that were killed: they are read by nobody."""

    @property
    def is_clean(self) -> bool:
        """Whether nothing needs to be repaired."""
        return all(flaw.problem in HARMLESS for flaw in self.flaws)


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was wrong before, what was done, and what is wrong still."""

    before: Checkup
    after: Checkup
    aside: tuple[str, ...] = ()
    """Files that were put aside."""
    rescued: tuple[str, ...] = ()
    """New files of the archive, made of rows that the database still had."""
    loaded: Loaded | None = None


@dataclass(frozen=True, slots=True)
class _Archive:
    """The files that are what their names say, and why the others are not."""

    good: tuple[File | FindingsFile | EventFile, ...] = ()
    broken: Mapping[File | FindingsFile | EventFile, str] = field(default_factory=dict)

    @property
    def files(self) -> int:
        return len(self.good) + len(self.broken)


def check(path: Path, root: Path, official: Predicate = everything, refused: Sequence[str] = ()) -> Checkup:
    """Read every file of the archive and every row of the database, and hold one against the other.

    Nothing is written but in a temporary folder, where a database is made anew to compare with. `refused` are broken
    files of a bucket, each with the reason, which are not in the folder. Raises StoreIsBusy when somebody holds the
    database.
    """
    with tempfile.TemporaryDirectory(prefix="tracker-") as folder:
        return _look(path, root, Path(folder), official, refused)[0]


def _look(
    path: Path, root: Path, folder: Path, official: Predicate, refused: Sequence[str]
) -> tuple[Checkup, Seen, _Archive]:
    kept = _archive(root)
    runs = {file.digest for file in (*kept.good, *kept.broken) if isinstance(file, File)}
    seen = _seen(path, folder / "seen", ()) if path.exists() else Seen()
    wanted = sorted(name for name in seen.landed if name not in runs) + [
        file.digest for file in kept.broken if isinstance(file, File) and file.digest in seen.landed
    ]
    if wanted:
        seen = _seen(path, folder / "again", wanted)
    flaws = [*_of_archive(kept, seen), *_of_database(path, seen)]
    flaws += [Flaw(Problem.FILE_BROKEN, reason.partition(":")[0], None, reason, Lost.ROWS) for reason in refused]
    if path.exists():
        flaws += _between(kept, seen, runs)
    if {flaw.problem for flaw in flaws} <= BEHIND and seen.version:
        flaws += _of_rows(root, seen, folder, official)
    told = Checkup(kept.files, seen.rows, seen.version, tuple(sorted(flaws)), tuple(_drafts(path, root)))
    return told, seen, kept


def _seen(path: Path, into: Path, rescue: Sequence[str]) -> Seen:
    seen = salvage.look(path, into, rescue)
    if seen.busy:
        raise StoreIsBusy(f"{path} is held by {seen.busy}: wait for it to end, or stop it")
    return seen


def _archive(root: Path) -> _Archive:
    good: list[File | FindingsFile | EventFile] = []
    broken: dict[File | FindingsFile | EventFile, str] = {}
    found: list[File | FindingsFile | EventFile] = [*archive.files(root)]
    found += [*archive.findings_files(root), *archive.event_files(root)]
    for file in found:
        try:
            _read_whole(file, root)
        except BrokenFile as flaw:
            broken[file] = str(flaw)
        else:
            good.append(file)
    return _Archive(tuple(good), broken)


def _read_whole(file: File | FindingsFile | EventFile, root: Path) -> None:
    """Raises BrokenFile where content, name or columns do not fit."""
    if isinstance(file, FindingsFile):
        archive.read_findings(file)
    elif isinstance(file, EventFile):
        archive.read_event(file)
    else:
        try:
            archive.verify(file.path.relative_to(root).as_posix(), file.path.read_bytes())
        except OSError as flaw:
            raise BrokenFile(f"{file.path}: cannot be read ({flaw.strerror or flaw})") from flaw


def _of_archive(kept: _Archive, seen: Seen) -> Iterator[Flaw]:
    for file, reason in kept.broken.items():
        if isinstance(file, File):
            lost = Lost.RAW if file.digest in seen.written else Lost.ROWS
            yield Flaw(Problem.FILE_BROKEN, str(file.path), file.run, reason, lost)
        else:
            yield Flaw(Problem.FILE_BROKEN, str(file.path), None, reason, _lost_without(file, seen))


def _lost_without(file: FindingsFile | EventFile, seen: Seen) -> Lost:
    """An older file of findings is lost with its file; the newest, and what people said, is in the database too."""
    return Lost.NOTHING if _is_held(file, seen) else Lost.ROWS


def _is_held(file: FindingsFile | EventFile, seen: Seen) -> bool:
    if isinstance(file, EventFile):
        return "events" in seen.written and _name(file) in _said(seen)
    held: dict[str, list[str]] = _note(seen, HELD) or {}
    return "findings" in seen.written and held.get(file.comparison) == [file.at, file.digest]


def _said(seen: Seen) -> set[str]:
    """What people said, by the folder of its file."""
    events = (from_text(text, Event) for text in pl.read_parquet(seen.written["events"])["record"])
    return {archive.event_folder(event.change, event.at) for event in events}


def _name(file: EventFile) -> str:
    return f"events={file.change}/at={file.at}"


def _of_database(path: Path, seen: Seen) -> Iterator[Flaw]:
    known = schema_steps()[-1][0]
    if not path.exists():
        yield Flaw(Problem.DATABASE_MISSING, str(path))
    elif seen.flaw:
        yield Flaw(Problem.DATABASE_UNREADABLE, str(path), None, seen.flaw, Lost.NOTES)
    elif seen.version > known:
        yield Flaw(Problem.SCHEMA_NEWER, str(path), None, f"{seen.version} > {known}")
    elif seen.is_foreign:
        yield Flaw(Problem.FOREIGN, str(path))
    elif seen.version < known and not seen.wal_flaw:
        yield Flaw(Problem.SCHEMA_OLDER, str(path), None, f"{seen.version} < {known}")
    if seen.wal_flaw:
        yield Flaw(Problem.LOG_UNREADABLE, f"{path}.wal", None, seen.wal_flaw, Lost.NOTES)
    for table, reason in seen.broken.items():
        yield Flaw(Problem.TABLE_UNREADABLE, table, None, reason, Lost.NOTES if table == "notes" else Lost.NOTHING)


def _between(kept: _Archive, seen: Seen, runs: set[str]) -> Iterator[Flaw]:
    """Files that landed and are gone, and files that have not landed."""
    if seen.flaw or seen.is_foreign or seen.version > schema_steps()[-1][0] or "landed" in seen.broken:
        return
    for name, run in seen.landed.items():
        if name not in runs:
            lost = Lost.RAW if name in seen.written else Lost.ROWS
            yield Flaw(Problem.FILE_GONE, f"run={run.id}/attempt={run.attempt}/{name}.parquet", run, "", lost)
    known = {run.id for run in seen.landed.values()}
    is_part = not _choice(seen).is_all
    for file in kept.good:
        # A store that was told to take in some runs lacks the others on purpose.
        if isinstance(file, File) and file.digest not in seen.landed and (file.run.id in known or not is_part):
            yield Flaw(Problem.NOT_LANDED, str(file.path), file.run)
    if "events" in seen.written:
        said = _said(seen)
        files = {_name(file) for file in kept.good if isinstance(file, EventFile)}
        broken = {_name(file) for file in kept.broken if isinstance(file, EventFile)}
        yield from (Flaw(Problem.NOT_LANDED, name) for name in files - said)
        yield from (Flaw(Problem.NOT_KEPT, name) for name in said - files - broken)


def _choice(seen: Seen) -> Choice:
    """Which runs the store was told to take in."""
    part = _note(seen, PART)
    return from_text(part[0], Choice) if part else EVERYTHING


def _note(seen: Seen, key: str) -> Any:
    """A note of the database; None where there is none, or none can be read."""
    if "notes" not in seen.written:
        return None
    found = pl.read_parquet(seen.written["notes"]).filter(key=key)["value"]
    return json.loads(found[0]) if len(found) else None


def _of_rows(root: Path, seen: Seen, folder: Path, official: Predicate) -> Iterator[Flaw]:
    """Where the rows of a run, or the findings of a comparison, are others than a database made anew would hold."""
    anew = folder / "anew.duckdb"
    with Store.open(anew, root, official=official) as store:
        store.catch_up()
    made = salvage.look_here(anew, folder / "made")
    behind = {key.id for file, key in made.landed.items() if file not in seen.landed}
    for name, mark in made.prints.items():
        held = seen.prints.get(name)
        if held == mark:
            continue
        if name.startswith(salvage.FINDINGS):
            yield Flaw(Problem.NOT_LANDED, name)
            continue
        run = RunKey(*map(int, name.partition(" ")[0].split("/")))
        # A run of which a file has not landed is told as that.
        if run.id not in behind:
            yield Flaw(Problem.ROWS_DIFFER, name, run, f"{held or 'no rows'}; the archive has {mark}")


def _drafts(path: Path, root: Path) -> Iterator[str]:
    """What killed processes left beside the database and in the archive."""
    beside = path.parent.glob(f"{path.name}.*.new*") if path.parent.is_dir() else ()
    yield from map(str, sorted([*beside, *root.glob("*/*/.*.tmp")]))


# ---------------------------------------------------------------- repair


def recover(path: Path, root: Path, official: Predicate = everything, refused: Sequence[str] = ()) -> Recovered:
    """Repair what `check` finds: put what is damaged aside, make the database anew, keep what can still be read.

    Nothing is deleted but drafts that have been nobody's for an hour. A recovery that was killed can be done again.
    """
    with _alone(path), tempfile.TemporaryDirectory(prefix="tracker-") as folder:
        before, seen, kept = _look(path, root, Path(folder), official, refused)
        _refuse_strangers(before)
        _sweep(before.left_over)
        work = _Repair(path, root, official)
        problems = {flaw.problem for flaw in before.flaws}
        if problems <= BEHIND | HARMLESS:
            loaded = work.catch_up() if problems else None
        else:
            with _held(path, root, seen):
                work.put_aside([file.path for file in kept.broken])
                work.rescue(seen)
                loaded = work.make_anew(seen)
        after = check(path, root, official, refused) if problems else before
    return Recovered(before, after, tuple(work.aside), tuple(work.rescued), loaded)


@contextmanager
def _held(path: Path, root: Path, seen: Seen) -> Iterator[None]:
    """Keep writers out of a database that can be opened while it is replaced."""
    if not (path.exists() and seen.is_sound):
        yield
        return
    with Store.open(path, root):
        yield


def _refuse_strangers(found: Checkup) -> None:
    for flaw in found.flaws:
        if flaw.problem in REPAIRED_BY_OTHERS:
            is_newer = flaw.problem is Problem.SCHEMA_NEWER
            why = "a newer version of sweep-tracker wrote it" if is_newer else "it is not ours"
            raise Trouble(f"{flaw.where} is left alone, since {why}: name another file with --store")


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One recovery at a time; the lock goes with the process, however that ends."""
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise Trouble(f"a store in {path.parent} is being recovered by another process: wait for it to end") from None
    finally:
        os.close(handle)


def _sweep(drafts: Sequence[str]) -> None:
    for draft in map(Path, drafts):
        if time.time() - draft.stat().st_mtime > LEFT_OVER:
            draft.unlink(missing_ok=True)


@dataclass(slots=True)
class _Repair:
    """The steps of a recovery, and what they did."""

    path: Path
    root: Path
    official: Predicate
    aside: list[str] = field(default_factory=list)
    rescued: list[str] = field(default_factory=list)

    def catch_up(self) -> Loaded:
        with Store.open(self.path, self.root, official=self.official) as store:
            return store.catch_up()

    def rescue(self, seen: Seen) -> None:
        """Write rows that the database holds of files that are broken or gone into files of their own."""
        for name, table in seen.written.items():
            if name in salvage.ALONE:
                continue
            file = archive.write(to_batch(pl.read_parquet(table)), self.root)
            self.rescued.append(str(file.path))

    def put_aside(self, paths: Sequence[Path]) -> None:
        for path in paths:
            target = _free(path)
            path.rename(target)
            self.aside.append(str(target))

    def make_anew(self, seen: Seen) -> Loaded:
        """A database from the archive, with what could be read of the old one, in its place in one step."""
        draft = self.path.with_name(f"{self.path.name}.{os.getpid()}.new")
        _discard(draft)
        try:
            with Store.open(draft, self.root, official=self.official) as new:
                loaded = new.catch_up(_choice(seen))
                new.adopt({name: pl.read_parquet(seen.written[name]) for name in ADOPTED if name in seen.written})
                self._keep_findings(new, seen)
            self._swap(draft)
        finally:
            _discard(draft)
        return loaded

    def _keep_findings(self, store: Store, seen: Seen) -> None:
        """Findings of which the archive has no file, or of which the newest one was put aside, get theirs."""
        if "findings" not in seen.written:
            return
        good = {file.comparison for file in archive.findings_files(self.root)}
        cut = {Path(path).parents[1].name.partition("=")[2] for path in self.aside if "findings=" in path}
        rows = pl.read_parquet(seen.written["findings"]).sort("position")
        for (name,), part in rows.partition_by("comparison", as_dict=True, maintain_order=True).items():
            comparison = archive.digest_of(name.encode())
            if comparison not in good or comparison in cut:
                store.save_findings(name, [from_text(text, Finding) for text in part["record"]])

    def _swap(self, draft: Path) -> None:
        log = Path(f"{self.path}.wal")
        if self.path.exists():
            target = _free(self.path)
            # A log belongs to its database: beside another one it would be refused, so it goes first.
            if log.exists():
                log.rename(f"{target}.wal")
            if self.path.is_file():
                os.link(self.path, target)
            else:
                self.path.rename(target)
            self.aside.append(str(target))
        elif log.exists():
            self.put_aside([log])
        draft.replace(self.path)


def _free(path: Path) -> Path:
    """The first name beside a file under which nothing was put aside yet."""
    number = 1
    while (target := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return target


def _discard(draft: Path) -> None:
    for path in (draft, Path(f"{draft}.wal")):
        path.unlink(missing_ok=True)
