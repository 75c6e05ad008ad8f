"""Files below a path, archives included: what is read is bounded, and nothing leaves the archive's own folder."""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from store.readers.decode import Unreadable

MEMBERS = 50_000
UNPACKED_BYTES = 2 * 1024**3
RATIO = 200
"""Result files shrink about twentyfold; deflate itself ends near 1000, which only made-up content reaches."""

_RATIO_FROM_BYTES = 1024**2
_SUFFIXES = frozenset({".json", ".csv"})
_DEBUG = (
    *("server_logs_", "multinode_server_logs_", "gpu_metrics_", "eval_server_logs_", "eval_gpu_metrics_"),
    *("power_audit_", "agentic_"),
)
"""Artifacts of raw material: as large as all results together, and none of it is a row."""

CONFIGS = "configs"
"""The folder beside a run's artifacts that holds the master configs of its commit."""

Parts: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One file: where it stands below the path that was given, its names there, when it was written, its bytes.

    Nothing of an entry depends on where the path itself lies: the same files read the same in another folder.
    """

    place: str
    parts: Parts
    modified: datetime
    content: bytes | Unreadable


def walk(root: Path, wanted: Callable[[Parts], bool], skip: frozenset[Path] = frozenset()) -> Iterator[Entry]:
    """Result files below a folder, an archive or a single file, in order of their names; `skip` names folders."""
    if root.is_dir():
        for path in _files(root, skip):
            yield from _open(path, _names(path.relative_to(root)), wanted)
    else:
        yield from _open(root, _names(Path(root.name)), wanted, named=True)


def is_debug(parts: Parts) -> bool:
    """True for files of an artifact that holds logs and raw samples."""
    return any(part.startswith(_DEBUG) for part in parts[:-1])


def is_config(parts: Parts) -> bool:
    """True of a master config in the folder that is kept for them: the only YAML that is read."""
    return len(parts) > 1 and parts[-2] == CONFIGS and parts[-1].lower().endswith((".yaml", ".yml"))


def _is_read(parts: Parts) -> bool:
    return PurePosixPath(parts[-1]).suffix.lower() in _SUFFIXES or is_config(parts)


def _files(folder: Path, skip: frozenset[Path]) -> Iterator[Path]:
    """Files in order of their names. Hidden ones are of tools at work, as a fetch that is not through."""
    for path in sorted(path for path in folder.iterdir() if not path.name.startswith(".")):
        if path.is_dir() and not path.is_symlink():
            if path not in skip:
                yield from _files(path, skip)
        elif path.is_file():
            yield path


def _open(path: Path, parts: Parts, wanted: Callable[[Parts], bool], named: bool = False) -> Iterator[Entry]:
    modified = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    if path.suffix.lower() == ".zip":
        yield from _members(path, parts, modified, wanted)
    elif (named or _is_read(parts)) and not is_debug(parts) and wanted(parts):
        yield Entry("/".join(parts), parts, modified, path.read_bytes())


def _names(path: Path) -> Parts:
    """Names as text that UTF-8 can hold, whatever bytes the file system has."""
    return tuple(part.encode("utf-8", "replace").decode() for part in path.parts)


def _members(path: Path, at: Parts, modified: datetime, wanted: Callable[[Parts], bool]) -> Iterator[Entry]:
    """Members of an archive as if it were a folder named after it."""
    above = (*at[:-1], PurePosixPath(at[-1]).stem)
    if is_debug((*above, "")):
        return
    try:
        with zipfile.ZipFile(path) as archive:
            for info in _bounded(archive, path):
                parts = (*above, *PurePosixPath(info.filename).parts)
                if is_debug(parts) or not wanted(parts):
                    continue
                yield Entry(f"{'/'.join(at)}!{info.filename}", parts, modified, _content(archive, info))
    except (zipfile.BadZipFile, OSError, Unreadable, NotImplementedError, ValueError) as flaw:
        broken = flaw if isinstance(flaw, Unreadable) else Unreadable("bad_archive", str(flaw))
        yield Entry("/".join(at), at, modified, broken)


def _bounded(archive: zipfile.ZipFile, path: Path) -> list[zipfile.ZipInfo]:
    """The members worth reading, once the whole archive is known to be of a size that results can have."""
    infos = archive.infolist()
    if len(infos) > MEMBERS:
        raise Unreadable("archive_too_large", f"{path.name}: {len(infos)} members, at most {MEMBERS} are read")
    chosen = [info for info in infos if _is_read(PurePosixPath(info.filename).parts or ("",))]
    unpacked = sum(info.file_size for info in chosen)
    if unpacked > UNPACKED_BYTES:
        raise Unreadable("archive_too_large", f"{path.name}: {unpacked} bytes unpacked, at most {UNPACKED_BYTES}")
    return sorted(chosen, key=lambda info: info.filename)


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes | Unreadable:
    """Bytes of a member. Nothing is ever written to disk; a hostile name is refused all the same, as a sign."""
    name = PurePosixPath(info.filename.replace("\\", "/"))
    if name.is_absolute() or ".." in name.parts or ":" in name.parts[0]:
        return Unreadable("unsafe_path", info.filename)
    if name.suffix.lower() == ".zip":
        return Unreadable("bad_archive", f"{info.filename} is an archive inside an archive: unpack it first")
    if stat.S_ISLNK(info.external_attr >> 16):
        return Unreadable("unsafe_path", f"{info.filename} is a symbolic link")
    if info.file_size > _RATIO_FROM_BYTES and info.file_size > RATIO * max(info.compress_size, 1):
        return Unreadable("archive_too_large", f"{info.filename}: {info.file_size} bytes from {info.compress_size}")
    try:
        return archive.read(info)
    except (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError, NotImplementedError, OSError) as flaw:
        return Unreadable("bad_archive", f"{info.filename}: {flaw}")
