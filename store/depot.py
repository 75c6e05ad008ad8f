"""Where the files of an archive lie: in a folder, or in a bucket with copies of what this machine has loaded.

The bucket is the truth. A new file goes there first, then here, then into the database; whoever dies in between leaves
a file that the next one finds. Copies may be removed at any time: what has landed is not brought again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from store import archive
from store.buckets import Bucket
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
class Brought:
    """What came from the bucket, and what did not. Both are empty for a folder, which needs nothing brought."""

    refused: tuple[str, ...] = ()
    """Files that are not what their names say, each with the reason: they stay where they are."""
    unlisted: tuple[str, ...] = ()
    """Files that landed here and that the bucket did not list."""


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

    def _keep(self, path: Path, content: bytes) -> None:
        if self.bucket is not None:
            self.bucket.put(path.relative_to(self.root).as_posix(), content)
        archive.put(path, content)

    def bring(self, landed: Collection[tuple[str, RunKey]], held: Held) -> Brought:
        """Copy from the bucket what has not landed, and newer findings than are held; `landed` by digest and run.

        Raises Trouble when the bucket cannot be listed whole, or read; what has arrived by then stays.
        """
        if self.bucket is None:
            return Brought()
        listed = self.bucket.sizes()
        digests = {digest for digest, _ in landed}
        fresh = [file for file in archive.files_among(listed, self.root) if file.digest not in digests]
        newest = archive.newest_findings_among(listed, self.root).values()
        newer = [file for file in newest if [*held.get(file.comparison, ("", ""))] < [file.at, file.digest]]
        paths = [*(file.path for file in fresh), *(file.path for file in newer)]
        names = [path.relative_to(self.root).as_posix() for path in paths]
        carried = self._copied({name: listed[name] for name in names})
        expected = {archive.name_of(run, digest) for digest, run in landed}
        return Brought(carried.refused, tuple(sorted(expected.difference(listed))))

    def bring_named(self, names: Collection[str]) -> Brought:
        """Copy some files from the bucket, by their names."""
        if self.bucket is None:
            return Brought()
        return Brought(self._copied(dict.fromkeys(names, 0)).refused)

    def named(self, names: Collection[str]) -> list[archive.File]:
        """The run files of some names, where they lie on this machine."""
        return archive.files_among(names, self.root)

    def _copied(self, wanted: Mapping[str, int]) -> Carried:
        assert self.bucket is not None
        here = Folder(self.root)
        missing = {name: size for name, size in wanted.items() if not self._is_whole(name)}
        return carry(plan(missing, {}), self.bucket, here)

    def _is_whole(self, name: str) -> bool:
        """Whether there is a copy that is what its name says; another one gives way to what the bucket has."""
        path = self.root / name
        return path.exists() and archive.digest_of(path.read_bytes()) == path.stem
