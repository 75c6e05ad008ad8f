"""Where the files of an archive lie: in a folder, or in a bucket with copies of what this machine has loaded.

The bucket is the truth. A new file goes there first, then here, then into the database; whoever dies in between leaves
a file that the next one finds. Copies may be removed at any time: what has landed is not brought again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from store import archive
from store.buckets import Bucket
from store.life import Event
from store.records import Batch, Finding, RunKey
from store.travel import Carried, Folder, carry, plan

Held = Mapping[str, Sequence[str]]
"""Moment and digest of the newest file of findings that a database has, by comparison."""

_BUCKET: Final = re.compile(r"(?:s3|gs)://.")


def is_bucket(address: object) -> bool:
    """Whether an archive is named that lies in a bucket.

    >>> is_bucket("s3://sweeps/tracker"), is_bucket("tracker.archive"), is_bucket(Path("s3:/x"))
    (True, False, False)
    """
    return isinstance(address, str) and bool(_BUCKET.match(address))


@dataclass(frozen=True, slots=True)
class Choice:
    """Which runs of the archive a store takes in. Names tell no date and no config: dates are those of the files."""

    since: datetime | None = None
    """Runs of which a file was written since: every run that started since, and older ones that came in later."""
    newest: int | None = None
    """So many runs, by their number."""

    @property
    def is_all(self) -> bool:
        return self.since is None and self.newest is None

    def runs(self, files: Iterable[archive.File], times: Mapping[Path, datetime]) -> set[int]:
        """The numbers of the runs that are chosen, each with all of its files."""
        listed = list(files)
        numbers = sorted({file.run.id for file in listed}, reverse=True)[: self.newest]
        if self.since is None:
            return set(numbers)
        return {file.run.id for file in listed if times[file.path] >= self.since}.intersection(numbers)


EVERYTHING: Final = Choice()


@dataclass(frozen=True, slots=True)
class Brought:
    """What may be loaded now, and what may not."""

    files: tuple[archive.File, ...] = ()
    """Chosen files that have not landed, on this machine."""
    refused: tuple[str, ...] = ()
    """Files that are not what their names say, each with the reason: they stay where they are."""
    unlisted: tuple[str, ...] = ()
    """Files that landed here and that the bucket did not list."""
    left_out: int = 0
    """Run attempts' files that have not landed and were not chosen."""


class Depot:
    """The archive of one store. `root` is the archive itself, or the folder of copies."""

    def __init__(self, root: Path, bucket: Callable[[], Bucket] | None = None) -> None:
        self.root = root
        self._open = bucket
        self._bucket: Bucket | None = None
        self._borrowed: TemporaryDirectory[str] | None = None

    @classmethod
    def at(cls, address: Path | str, database: Path | str = ":memory:") -> Depot:
        """The archive of an address; copies of a bucket lie beside the database, `.copies` for `.duckdb`.

        A bucket is reached when it is first needed, so that reading a store asks nobody.
        """
        if not is_bucket(address):
            return cls(Path(address))
        if str(database) != ":memory:":
            return cls(Path(database).with_suffix(".copies"), lambda: Bucket(str(address)))
        borrowed = TemporaryDirectory(prefix="sweep-tracker-")
        found = cls(Path(borrowed.name), lambda: Bucket(str(address)))
        found._borrowed = borrowed
        return found

    def close(self) -> None:
        """Remove copies that no database keeps."""
        if self._borrowed is not None:
            self._borrowed.cleanup()

    @property
    def place(self) -> Bucket | Folder:
        """Where all the files are."""
        return self.bucket or Folder(self.root)

    @property
    def bucket(self) -> Bucket | None:
        """The bucket; None for a folder."""
        if self._bucket is None and self._open is not None:
            self._bucket = self._open()
        return self._bucket

    def write(self, batch: Batch) -> archive.File:
        """Keep a batch; one that is already there is left as it is, unless its file is broken."""
        file, content = archive.file_of(batch, self.root)
        self._keep(file.path, content)
        return file

    def write_findings(self, comparison: str, findings: Sequence[Finding], at: datetime) -> archive.FindingsFile:
        """Keep what a comparison found, as it was said at a moment."""
        file, content = archive.findings_file_of(comparison, findings, at, self.root)
        self._keep(file.path, content)
        return file

    def write_event(self, event: Event) -> archive.EventFile:
        """Keep what a person said about a change."""
        file, content = archive.event_file_of(event, self.root)
        self._keep(file.path, content)
        return file

    def _keep(self, path: Path, content: bytes) -> None:
        if self.bucket is not None:
            self.bucket.put(self._name(path), content)
        archive.put(path, content)

    def bring(self, landed: Collection[tuple[str, RunKey]], held: Held, choice: Choice = EVERYTHING) -> Brought:
        """Copy from the bucket what was chosen and has not landed (given by digest and run), and what else is new.

        Raises Trouble when the bucket cannot be listed whole, or read; what has arrived by then stays.
        """
        listed = self._listed()
        files = archive.files_among(listed, self.root)
        digests = {digest for digest, _ in landed}
        fresh = [file for file in files if file.digest not in digests]
        chosen = choice.runs(files, {file.path: listed[self._name(file.path)][1] for file in files})
        kept = tuple(file for file in fresh if file.run.id in chosen)
        if self.bucket is None:
            return Brought(kept, left_out=len(fresh) - len(kept))
        names = [*map(self._name, (file.path for file in kept)), *self._beside(listed, held)]
        carried = self._copied({name: listed[name][0] for name in names})
        expected = {archive.name_of(run, digest) for digest, run in landed}
        here = tuple(file for file in kept if file.path.exists())
        gone = tuple(sorted(expected.difference(listed)))
        return Brought(here, carried.refused, gone, len(fresh) - len(kept))

    def _beside(self, listed: Iterable[str], held: Held) -> Iterator[str]:
        """The names of what is no run: of findings the newest of each comparison, unless it is held."""
        names = [name for name in listed if archive.is_name(name) and not name.startswith("run=")]
        newest = archive.newest_findings_among(names, self.root).values()
        yield from (
            self._name(one.path) for one in newest if [*held.get(one.comparison, ("", ""))] < [one.at, one.digest]
        )
        yield from (name for name in names if not name.startswith("findings="))

    def _listed(self) -> dict[str, tuple[int, datetime]]:
        """Size and time of every file, by name."""
        if self.bucket is not None:
            return self.bucket.listed()
        paths = (file.path for file in archive.files(self.root))
        stats = ((self._name(path), path.stat()) for path in paths)
        return {name: (found.st_size, datetime.fromtimestamp(found.st_mtime, UTC)) for name, found in stats}

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def bring_named(self, names: Collection[str]) -> Brought:
        """Copy some run files from the bucket, by their names."""
        carried = self._copied(dict.fromkeys(names, 0)) if self.bucket is not None else None
        files = tuple(archive.files_among(names, self.root))
        if carried is None:
            return Brought(files)
        return Brought(tuple(file for file in files if file.path.exists()), carried.refused)

    def _copied(self, wanted: Mapping[str, int]) -> Carried:
        assert self.bucket is not None
        missing = {name: size for name, size in wanted.items() if not self._is_whole(name)}
        return carry(plan(missing, {}), self.bucket, Folder(self.root))

    def _is_whole(self, name: str) -> bool:
        """Whether there is a copy that is what its name says; another one gives way to what the bucket has."""
        path = self.root / name
        if not path.exists():
            return False
        if archive.digest_of(path.read_bytes()) == path.stem:
            return True
        path.unlink()
        return False
