"""The archive travels: what one side has and the other lacks is copied; nothing is deleted, nothing written over.

Every file is immutable and named by its content, so that any order of copying, two copies at once, and a copy that was
broken off and begun again all end in the same. What is copied is checked against its name on the way; a file under a
name that no archive file has stays where it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from store import archive, limits
from store.records import Trouble
from store.whole import write_atomically

MOST_BYTES: Final = limits.ARCHIVE_FILE_BYTES
"""Of one file. A run of some hundred points has tens of kilobytes."""


class Place(Protocol):
    """Somewhere the files of an archive can lie, by the names that they have in the archive.

    A place raises Trouble when it cannot be reached, or refuses.
    """

    @property
    def where(self) -> str:
        """What the place is called in messages."""

    @property
    def hands(self) -> int:
        """How many files may be on their way at once."""

    def sizes(self) -> Mapping[str, int]:
        """The name of every file there, with its bytes."""

    def read(self, name: str) -> bytes:
        """The content of a file."""

    def write(self, name: str, content: bytes) -> None:
        """Put a file there, whole or not at all."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a copy has to do, by names of the source."""

    missing: tuple[str, ...]
    """To copy, in order."""
    present: tuple[str, ...]
    strangers: tuple[str, ...]
    """No names of archive files."""
    refused: tuple[str, ...]
    """Archive files that are not copied, each with the reason."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What a copy did. `refused` are the files that could not be copied, each with the reason."""

    files: int
    bytes: int
    present: int
    strangers: tuple[str, ...]
    refused: tuple[str, ...]


def plan(source: Mapping[str, int], target: Mapping[str, int]) -> Plan:
    """What the target lacks. A file that both have, with another size, is broken on one side: it is not touched.

    >>> plan({"run=1/attempt=1/4f0c2ab19d3e7a55.parquet": 9, "README": 1}, {})
    Plan(missing=('run=1/attempt=1/4f0c2ab19d3e7a55.parquet',), present=(), strangers=('README',), refused=())
    """
    named = [name for name in sorted(source) if archive.is_name(name)]
    refused = [reason for name in named if (reason := _refusal(name, source[name], target.get(name)))]
    able = [name for name in named if not _refusal(name, source[name], target.get(name))]
    return Plan(
        missing=tuple(name for name in able if name not in target),
        present=tuple(name for name in able if name in target),
        strangers=tuple(sorted(set(source) - set(named))),
        refused=tuple(refused),
    )


def _refusal(name: str, size: int, held: int | None) -> str:
    if size > MOST_BYTES:
        return f"{name}: {size} bytes, an archive file has at most {MOST_BYTES}"
    if held not in {None, size}:
        return f"{name}: {size} bytes here and {held} there: one of the two is broken; remove that one"
    return ""


def carry(work: Plan, source: Place, target: Place, watch: Callable[[int], None] = lambda _: None) -> Carried:
    """Copy what is missing, each file checked against its name; `watch` is told of each.

    Raises Trouble when a place fails; what has arrived by then stays, and the next copy goes on from there.
    """

    def one(name: str) -> int | str:
        content = source.read(name)
        try:
            archive.verify(name, content)
        except archive.BrokenFile as flaw:
            return f"{flaw}; it was not copied from {source.where}"
        target.write(name, content)
        return len(content)

    outcomes: list[int | str] = []
    for outcome in _worked(one, work.missing, max(source.hands, target.hands)):
        outcomes.append(outcome)
        watch(1)
    sizes = [outcome for outcome in outcomes if isinstance(outcome, int)]
    refused = [outcome for outcome in outcomes if isinstance(outcome, str)]
    return Carried(len(sizes), sum(sizes), len(work.present), work.strangers, (*work.refused, *refused))


def _worked(one: Callable[[str], int | str], names: Iterable[str], hands: int) -> Iterator[int | str]:
    """The outcomes in order; after a failure nothing new is begun."""
    if hands == 1:
        yield from map(one, names)
        return
    pool = ThreadPoolExecutor(hands)
    try:
        yield from pool.map(one, names)
    finally:
        pool.shutdown(cancel_futures=True)


class Folder:
    """A folder: the archive itself, a mounted bucket, an unpacked artifact, a git worktree."""

    hands = 1

    def __init__(self, root: Path) -> None:
        self._root = root
        self.where = str(root)

    def sizes(self) -> dict[str, int]:
        """Hidden files and folders are left alone, and links are not followed: they may lead anywhere."""
        return {path.relative_to(self._root).as_posix(): path.stat().st_size for path in self._files()}

    def _files(self) -> Iterator[Path]:
        for folder, folders, names in os.walk(self._root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            paths = (Path(folder, name) for name in names if not name.startswith("."))
            yield from (path for path in paths if path.is_file() and not path.is_symlink())

    def read(self, name: str) -> bytes:
        try:
            return (self._root / name).read_bytes()
        except OSError as flaw:
            raise Trouble(f"{self._root / name} cannot be read ({flaw.strerror or flaw})") from flaw

    def write(self, name: str, content: bytes) -> None:
        path = self._root / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content)
        except OSError as flaw:
            raise Trouble(f"{path} cannot be written ({flaw.strerror or flaw})") from flaw
