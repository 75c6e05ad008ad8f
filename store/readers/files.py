"""Files below a path, archives included: what is read is bounded, and nothing leaves the archive's own folder."""

from __future__ import annotations

import io
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import IO, TypeAlias

from store import limits
from store.readers.decode import Unreadable

_SUFFIXES = frozenset({".json", ".csv"})
_DEBUG = (
    *("server_logs_", "multinode_server_logs_", "gpu_metrics_", "eval_server_logs_", "eval_gpu_metrics_"),
    *("power_audit_", "agentic_"),
)
"""Artifacts of raw material: as large as all results together, and none of it is a row."""

_LOCAL_HEADER = 30
"""Bytes before the name of a member: less than any header has, so that no honest archive is refused."""
_NEVER = datetime.fromtimestamp(0, UTC)

CONFIGS = "configs"
"""The folder beside a run's artifacts that holds the master configs of its commit."""

SAMPLES = re.compile(r"samples?_.*\.jsonl", re.IGNORECASE)
"""Answers of an eval, question by question: the only files that are read line by line."""

Parts: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lines:
    """A file, or a member of an archive, that may be larger than memory: its lines, however often they are asked for.

    A line beyond its bound is read past; a file that breaks off, or is longer than its bound, ends with why.
    """

    path: Path
    member: str = ""

    def __iter__(self) -> Iterator[bytes | Unreadable]:
        try:
            if not self.member:
                with self.path.open("rb") as file:
                    yield from _lines(file)
                return
            with _Archive(self.path) as whole, zipfile.ZipFile(whole) as archive, archive.open(self.member) as file:
                yield from _lines(file)
        except (
            zipfile.BadZipFile,
            zlib.error,
            RuntimeError,
            EOFError,
            NotImplementedError,
            OSError,
            ValueError,
        ) as flaw:
            yield Unreadable("bad_archive" if self.member else "cut_off", str(flaw))


def _lines(file: IO[bytes]) -> Iterator[bytes | Unreadable]:
    total = 0
    while line := file.readline(limits.SAMPLES_LINE_BYTES + 1):
        total += len(line)
        if len(line) > limits.SAMPLES_LINE_BYTES:
            while line and not line.endswith(b"\n") and total <= limits.SAMPLES_BYTES:
                line = file.readline(limits.SAMPLES_LINE_BYTES)
                total += len(line)
            yield Unreadable("line_too_long", str(limits.SAMPLES_LINE_BYTES))
        else:
            yield line
        if total > limits.SAMPLES_BYTES:
            yield Unreadable("file_too_large", str(limits.SAMPLES_BYTES))
            return


@dataclass(frozen=True, slots=True)
class Entry:
    """One file: where it stands below the path that was given, its names there, when it was written, its bytes.

    Nothing of an entry depends on where the path itself lies: the same files read the same in another folder.
    """

    place: str
    parts: Parts
    modified: datetime
    content: bytes | Unreadable
    lines: Lines | None = None
    """Instead of the content, of a file that is read line by line."""


def walk(root: Path, wanted: Callable[[Parts], bool], skip: frozenset[Path] = frozenset()) -> Iterator[Entry]:
    """Result files below a folder, an archive or a single file, in order of their names; `skip` names folders."""
    if root.is_dir():
        for path in _files(root, skip):
            parts = _names(path.relative_to(root))
            if refusal := _refusal(root, path):
                yield from _refused(parts, refusal, wanted)
            else:
                yield from _open(path, parts, wanted)
    else:
        yield from _open(root, _names(Path(root.name)), wanted, named=True)


def is_debug(parts: Parts) -> bool:
    """True for files of an artifact that holds logs and raw samples."""
    return any(part.startswith(_DEBUG) for part in parts[:-1])


def is_config(parts: Parts) -> bool:
    """True of a master config in the folder that is kept for them: the only YAML that is read."""
    return len(parts) > 1 and parts[-2] == CONFIGS and parts[-1].lower().endswith((".yaml", ".yml"))


def is_streamed(parts: Parts) -> bool:
    """True of a file of answers, which is read line by line."""
    return SAMPLES.fullmatch(parts[-1]) is not None


def _is_read(parts: Parts) -> bool:
    return PurePosixPath(parts[-1]).suffix.lower() in _SUFFIXES or is_config(parts) or is_streamed(parts)


def _files(folder: Path, skip: frozenset[Path]) -> Iterator[Path]:
    """Whatever is no folder, in order of names. Hidden ones are of tools at work, as a fetch that is not through."""
    for path in sorted(path for path in folder.iterdir() if not path.name.startswith(".")):
        if path in skip:
            continue
        if path.is_symlink() or not path.is_dir():
            yield path
        else:
            yield from _files(path, skip)


def _refusal(root: Path, path: Path) -> str:
    """Why a name in a folder is not followed: an artifact that was unpacked may lead anywhere; a pipe never ends."""
    if path.is_symlink():
        if path.is_dir():
            return "a symbolic link to a folder"
        # Not `resolve`, which raises where a link leads to itself.
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
            return "a symbolic link out of the folder"
    return "" if path.is_file() else "no regular file"


def _refused(parts: Parts, why: str, wanted: Callable[[Parts], bool]) -> Iterator[Entry]:
    """One rejection, where a reader would have opened the file, or looked into the folder."""
    is_told = _is_read(parts) or parts[-1].lower().endswith(".zip") or why.endswith("to a folder")
    if is_told and not is_debug(parts) and wanted(parts):
        yield Entry("/".join(parts), parts, _NEVER, Unreadable("unsafe_path", f"{'/'.join(parts)} is {why}"))


def _open(path: Path, parts: Parts, wanted: Callable[[Parts], bool], named: bool = False) -> Iterator[Entry]:
    modified = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    if path.suffix.lower() == ".zip":
        yield from _members(path, parts, modified, wanted)
    elif (named or _is_read(parts)) and not is_debug(parts) and wanted(parts):
        lines = Lines(path) if is_streamed(parts) else None
        yield Entry("/".join(parts), parts, modified, b"" if lines else _bytes(path), lines)


def _bytes(path: Path) -> bytes | Unreadable:
    try:
        return limits.read_file(path, limits.FILE_BYTES)
    except limits.TooLarge as flaw:
        return Unreadable("file_too_large", str(flaw))


def _names(path: Path) -> Parts:
    """Names as text that UTF-8 can hold, whatever bytes the file system has."""
    return tuple(part.encode("utf-8", "replace").decode() for part in path.parts)


def _members(path: Path, at: Parts, modified: datetime, wanted: Callable[[Parts], bool]) -> Iterator[Entry]:
    """Members of an archive as if it were a folder named after it."""
    above = (*at[:-1], PurePosixPath(at[-1]).stem)
    if is_debug((*above, "")):
        return
    try:
        with _Archive(path) as file, zipfile.ZipFile(file) as archive:
            for info in _bounded(archive, path):
                parts = (*above, *PurePosixPath(info.filename).parts)
                if is_debug(parts) or not wanted(parts):
                    continue
                content = _content(archive, info)
                lines = Lines(path, info.filename) if _is_stream(info) and content == b"" else None
                yield Entry(f"{'/'.join(at)}!{info.filename}", parts, modified, content, lines)
    except (zipfile.BadZipFile, OSError, Unreadable, NotImplementedError, ValueError, struct.error) as flaw:
        broken = flaw if isinstance(flaw, Unreadable) else Unreadable("bad_archive", str(flaw))
        yield Entry("/".join(at), at, modified, broken)


class _Archive(io.FileIO):
    """A file that gives no more at once than the list of members may have: `zipfile` reads that list whole."""

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size > limits.ARCHIVE_DIRECTORY_BYTES:
            told = f"a list of members of {size} bytes, at most {limits.ARCHIVE_DIRECTORY_BYTES} are read"
            raise Unreadable("archive_too_large", told)
        return super().read(-1 if size is None else size)


def _bounded(archive: zipfile.ZipFile, path: Path) -> list[zipfile.ZipInfo]:
    """The members worth reading, once the whole archive is known to be of a size that results can have."""
    infos = archive.infolist()
    if len(infos) > limits.ARCHIVE_MEMBERS:
        raise Unreadable(
            "archive_too_large", f"{path.name}: {len(infos)} members, at most {limits.ARCHIVE_MEMBERS} are read"
        )
    _check_apart(infos)
    chosen = [info for info in infos if not info.is_dir() and _is_chosen(PurePosixPath(info.filename).parts or ("",))]
    unpacked = sum(info.file_size for info in chosen if not _is_stream(info))
    if unpacked > limits.ARCHIVE_UNPACKED_BYTES:
        raise Unreadable(
            "archive_too_large", f"{path.name}: {unpacked} bytes unpacked, at most {limits.ARCHIVE_UNPACKED_BYTES}"
        )
    return sorted(chosen, key=lambda info: info.filename)


def _is_stream(info: zipfile.ZipInfo) -> bool:
    return is_streamed(PurePosixPath(info.filename).parts or ("",))


def _is_chosen(parts: Parts) -> bool:
    return _is_read(parts) or parts[-1].lower().endswith(".zip")


def _check_apart(infos: list[zipfile.ZipInfo]) -> None:
    """Members that share bytes make a small archive of any size."""
    ordered = sorted(infos, key=lambda info: info.header_offset)
    for first, second in pairwise(ordered):
        if first.header_offset + _LOCAL_HEADER + first.compress_size > second.header_offset:
            raise Unreadable("bad_archive", f"{first.filename} and {second.filename} share bytes")


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes | Unreadable:
    """Bytes of a member, none of one that is read line by line; a hostile name is refused in any case, as a sign."""
    refused = next((found for check in _MEMBER_CHECKS if (found := check(info))), None)
    if refused or _is_stream(info):
        return refused or b""
    try:
        # In parts: read whole, a member whose size is a lie would be unpacked to its true one first.
        with archive.open(info) as member:
            return limits.read_some(member, info.file_size, info.filename)
    except (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError, NotImplementedError, OSError, ValueError) as flaw:
        return Unreadable("bad_archive", f"{info.filename}: {flaw}")


def _unsafe(info: zipfile.ZipInfo) -> Unreadable | None:
    name = PurePosixPath(info.filename.replace("\\", "/"))
    if name.is_absolute() or ".." in name.parts or ":" in name.parts[0] or _is_long(name):
        return Unreadable("unsafe_path", info.filename[: limits.NAME_BYTES])
    if stat.S_ISLNK(info.external_attr >> 16):
        return Unreadable("unsafe_path", f"{info.filename} is a symbolic link")
    return None


def _grown(info: zipfile.ZipInfo) -> Unreadable | None:
    if _is_stream(info):
        return None
    is_grown = info.file_size > limits.ARCHIVE_RATIO * max(info.compress_size, 1)
    if info.file_size > limits.ARCHIVE_RATIO_FROM_BYTES and is_grown:
        return Unreadable("archive_too_large", f"{info.filename}: {info.file_size} bytes from {info.compress_size}")
    if info.file_size > limits.FILE_BYTES:
        return Unreadable("file_too_large", f"{info.filename}: {info.file_size} bytes, at most {limits.FILE_BYTES}")
    return None


def _unopened(info: zipfile.ZipInfo) -> Unreadable | None:
    if info.filename.lower().endswith(".zip"):
        return Unreadable("bad_archive", f"{info.filename} is an archive inside an archive: unpack it first")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # Their decompressors in `zipfile` know no bound: a small member may fill the memory whatever its size says.
        return Unreadable("bad_archive", f"{info.filename}: method {info.compress_type}; only deflate is read")
    return None


_MEMBER_CHECKS = (_unsafe, _unopened, _grown)


def _is_long(name: PurePosixPath) -> bool:
    sizes = [len(part.encode("utf-8", "replace")) for part in name.parts]
    return max(sizes) > limits.NAME_BYTES or sum(sizes) + len(sizes) > limits.PATH_BYTES
