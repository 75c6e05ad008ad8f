"""A copy of a database for whoever reads for long: no writer waits for it, and it waits for no writer.

The database is never opened here, only its files are copied, so no lock is taken. A copy counts when nothing was
written while it was made; it is then what a process would find that opens the database after the writer has died, and
DuckDB brings such a state in order by itself.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from store.duck import CannotOpenStore, Store
from store.records import Trouble
from store.runs import standing
from tracker.jobs import Where

Stamp: TypeAlias = tuple[tuple[int, int, int] | None, ...]
"""Inode, size and time of change (ns) of each file of a database; None for one that is not there."""

FILES = ("", ".wal", ".wal.checkpoint", ".wal.recovery")
"""Endings of the files of a database of DuckDB 2.0, the first its own."""
SETTLED = 0.05
"""Seconds without a change before a copy begins: several ticks of the clock of any file system."""
FIRST_WAIT = 10.0
"""Seconds that a quiet moment is waited for where there is no copy yet."""
LATER_WAIT = 0.5
"""The same where an older copy can be shown in the meantime."""


class StoreIsWritten(Trouble):
    """No quiet moment was found, and there is no older copy."""


@dataclass
class Snapshots:
    """The newest copy of a database in a folder of its own. Not for several threads at once."""

    where: Where
    folder: Path
    sleep: Callable[[float], None] = time.sleep
    _taken: Stamp | None = None
    _number: int = 0
    _files: list[Path] = field(default_factory=list)

    def current(self) -> tuple[Where, Stamp]:
        """The store to read from, and a mark of what it holds; copied anew when the database has changed."""
        now = _stamp(self.where.store)
        if now[0] is None:
            raise Trouble(f"there is no store at {self.where.store}: land a sweep first with `tracker ingest PATH`")
        if now != self._taken:
            self._refresh(FIRST_WAIT if self._taken is None else LATER_WAIT)
        if self._taken is None:
            raise StoreIsWritten(f"{self.where.store} is being written: no quiet moment in {FIRST_WAIT:g} s")
        # A file of withdrawals beside the store may have come since.
        now_there = Where.of(self.where.store, self.where.archive, self.where.withdrawals)
        return replace(now_there, store=self._files[-1]), self._taken

    def _refresh(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._copied() and time.monotonic() < until:
            self.sleep(SETTLED)

    def _copied(self) -> bool:
        """Copy the database once; False when it was written meanwhile."""
        before = _stamp(self.where.store)
        if _is_young(before):
            return False
        self._number += 1
        target = self.folder / f"{self._number}.duckdb"
        try:
            for source, copy in zip(_files(self.where.store), _files(target), strict=True):
                if source.exists():
                    shutil.copyfile(source, copy)
            is_whole = _stamp(self.where.store) == before and self._opens(target)
        except FileNotFoundError:
            is_whole = False
        if not is_whole:
            _remove(target)
            return False
        for old in self._files:
            _remove(old)
        self._files, self._taken = [target], before
        return True

    def _opens(self, copy: Path) -> bool:
        """Bring the copy in order, as after a crash of its writer."""
        try:
            Store.open(copy, self.where.archive, official=standing).close()
        except CannotOpenStore:
            return False
        return True


def _files(database: Path) -> tuple[Path, ...]:
    """The database and what DuckDB keeps beside it before, in and after a checkpoint."""
    return tuple(database.with_name(f"{database.name}{ending}") for ending in FILES)


def _stamp(database: Path) -> Stamp:
    return tuple(_mark(file) for file in _files(database))


def _mark(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _is_young(stamp: Stamp) -> bool:
    """True when a file changed so lately that another change might bear the same time."""
    return any(mark is not None and 0 <= time.time() - mark[2] / 1e9 < SETTLED for mark in stamp)


def _remove(database: Path) -> None:
    for file in _files(database):
        file.unlink(missing_ok=True)
