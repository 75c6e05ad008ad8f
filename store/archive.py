"""The archive: one immutable Parquet file per landed batch. It is the truth; the database can be made again from it.

A file is named by run, attempt and SHA-256: `run=27489075807/attempt=1/4f0c2ab19d3e7a55.parquet`. Its columns are
`store.frames.COLUMNS`. Equal batches make equal bytes, in whatever order they were read, so writing twice changes
nothing; and a file that was cut or edited no longer answers to its name. Another version of the Parquet writer may make
other bytes of the same batch: that is one more file, whose rows the database finds equal to those that it has.

What was found is history too: each time the findings of a comparison are kept, they are one more file, named by the
comparison, the moment and SHA-256: `findings=5d41402abc4b2a76/at=20261130T181501123456Z/8c1f….parquet`. The newest of
a comparison counts, the older ones stay.

What a person said about a change is a file too: `events=j2a2catt/at=20261130T181501123456Z/03b7….parquet`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from types import MappingProxyType

import polars as pl

from store import limits, parquet
from store.frames import COLUMNS, UTC_TIME, from_text, to_batch, to_frame, to_text
from store.life import Event
from store.records import Batch, Finding, RunKey
from store.whole import write_atomically

_NAME = re.compile(r"run=(-?\d+)/attempt=(\d+)/([0-9a-f]{16})\.parquet$")
_FINDINGS_NAME = re.compile(r"findings=([0-9a-f]{16})/at=(\d{8}T\d{12}Z)/([0-9a-f]{16})\.parquet$")
_EVENT_NAME = re.compile(r"events=([0-9a-z]{1,16})/at=(\d{8}T\d{12}Z)/([0-9a-f]{16})\.parquet$")
_MOMENT = "%Y%m%dT%H%M%S%fZ"

_FINDINGS: dict[str, pl.DataType | type[pl.DataType]] = {
    "comparison": pl.String,
    "kept_at": UTC_TIME,
    "record": pl.String,
}
"""Columns of a file of findings: a row each in their order; a comparison that found nothing has one row without."""

_EVENT: dict[str, pl.DataType | type[pl.DataType]] = {"change": pl.String, "said_at": UTC_TIME, "record": pl.String}
"""Columns of a file of what a person said: one row."""


class BrokenFile(Exception):
    """An archive file that cannot be read, or whose content is not what its name says."""


@dataclass(frozen=True, slots=True, order=True)
class File:
    """An archive file by its name: run attempt and content."""

    run: RunKey
    digest: str
    path: Path


@dataclass(frozen=True, slots=True, order=True)
class FindingsFile:
    """A file of findings by its name: of two files of a comparison, the newer one is the greater."""

    comparison: str
    """16 hexadecimal digits that stand for the name of the comparison."""
    at: str
    digest: str
    path: Path


@dataclass(frozen=True, slots=True, order=True)
class EventFile:
    """A file of what a person said by its name: change, moment and content."""

    change: str
    at: str
    digest: str
    path: Path


def write(batch: Batch, root: Path) -> File:
    """Keep a batch; a batch that is already there is left as it is, unless its file is broken.

    The file appears whole or not at all: it is written under another name, forced to the disk, then renamed.
    """
    file, content = file_of(batch, root)
    put(file.path, content)
    return file


def file_of(batch: Batch, root: Path) -> tuple[File, bytes]:
    """The file that keeps a batch, and its content; nothing is written."""
    content = _parquet(to_frame(batch))
    digest = digest_of(content)
    return File(batch.run.key, digest, root / name_of(batch.run.key, digest)), content


def put(path: Path, content: bytes) -> None:
    """Put a file in its place unless it is there, whole."""
    if not (path.exists() and path.read_bytes() == content):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)


def _parquet(rows: pl.DataFrame) -> bytes:
    out = BytesIO()
    # Level 1 and no statistics: half the time of the defaults at 1 % more bytes (measured, 500 points a file).
    rows.write_parquet(out, compression="zstd", compression_level=1, statistics=False)
    return out.getvalue()


def digest_of(content: bytes) -> str:
    """The name that a file of these bytes has: 16 hexadecimal digits of their SHA-256."""
    return hashlib.sha256(content).hexdigest()[:16]


def files(root: Path) -> Iterator[File]:
    """Every file of the archive, by run, attempt and name. A file under any other name is not of the archive."""
    yield from files_among(_names(root, "run=*/attempt=*/*.parquet"), root)


def files_among(names: Iterable[str], root: Path) -> list[File]:
    """The run files among names (relative to a root), by run, attempt and digest."""
    found = map(_NAME.fullmatch, names)
    return sorted(File(RunKey(int(m[1]), int(m[2])), m[3], root / m.string) for m in found if m)


def name_of(run: RunKey, digest: str) -> str:
    """The name of a run file relative to the root of its archive.

    >>> name_of(RunKey(27489075807, 1), "4f0c2ab19d3e7a55")
    'run=27489075807/attempt=1/4f0c2ab19d3e7a55.parquet'
    """
    return f"{_folder(run.id, run.attempt)}/{digest}.parquet"


def _names(root: Path, pattern: str) -> Iterator[str]:
    return (path.relative_to(root).as_posix() for path in root.glob(pattern))


def read(file: File | FindingsFile | EventFile) -> pl.DataFrame:
    """The rows of a file, checked against its name. Raises BrokenFile."""
    try:
        content = file.path.read_bytes()
        told = digest_of(content)
        if told != file.digest:
            raise BrokenFile(f"{file.path}: its content is {told}, not what its name says")
    except OSError as flaw:
        raise BrokenFile(f"{file.path}: cannot be read ({flaw})") from flaw
    return _rows(content, str(file.path))


def _rows(content: bytes, name: str) -> pl.DataFrame:
    try:
        return parquet.read(content, limits.ARCHIVE_FILE_ROWS)
    except parquet.NotParquet as flaw:
        raise BrokenFile(f"{name}: cannot be read ({flaw})") from flaw


def batch(file: File) -> Batch:
    """The batch that a file keeps, checked against its name. Raises BrokenFile.

    It equals the batch that was written, but for the order of its records and for values that were not finite.
    """
    return _batch(read(file), str(file.path))


def _batch(rows: pl.DataFrame, name: str) -> Batch:
    """The batch of a file that anybody may have written."""
    if strange := [column for column in rows.columns if COLUMNS.get(column) not in (rows.schema[column], None)]:
        raise BrokenFile(f"{name}: is no file of an archive (column {strange[0]} is {rows.schema[strange[0]]})")
    try:
        return to_batch(rows)
    except (pl.exceptions.PolarsError, LookupError, ValueError, TypeError, AttributeError, RecursionError) as flaw:
        raise BrokenFile(f"{name}: is no file of an archive ({type(flaw).__name__})") from None


def write_findings(comparison: str, findings: Sequence[Finding], at: datetime, root: Path) -> FindingsFile:
    """Keep what a comparison found, as it was said at a moment; earlier files of the comparison stay."""
    file, content = findings_file_of(comparison, findings, at, root)
    put(file.path, content)
    return file


def findings_file_of(
    comparison: str, findings: Sequence[Finding], at: datetime, root: Path
) -> tuple[FindingsFile, bytes]:
    """The file that keeps what a comparison found, and its content; nothing is written."""
    records: list[str | None] = [to_text(finding) for finding in findings]
    rows = [(comparison, at.astimezone(UTC), record) for record in records or [None]]
    content = _parquet(pl.DataFrame(rows, schema=_FINDINGS, orient="row"))
    return _findings_file(comparison, at, digest_of(content), root), content


def later(at: datetime, held: str) -> datetime:
    """A moment after the one that a name holds ("" for none), whatever the clock says: what is kept last counts.

    >>> later(datetime(2026, 11, 30, tzinfo=UTC), "20261201T000000000000Z").isoformat()
    '2026-12-01T00:00:00.000001+00:00'
    """
    if not held:
        return at
    return max(at, datetime.strptime(held, _MOMENT).replace(tzinfo=UTC) + timedelta(microseconds=1))


def _findings_file(comparison: str, at: datetime, digest: str, root: Path) -> FindingsFile:
    folder = root / _folder(comparison, at)
    name, moment = (part.partition("=")[2] for part in folder.parts[-2:])
    return FindingsFile(name, moment, digest, folder / f"{digest}.parquet")


def findings_files(root: Path) -> list[FindingsFile]:
    """Every file of findings, those of a comparison oldest first."""
    return findings_files_among(_names(root, "findings=*/at=*/*.parquet"), root)


def findings_files_among(names: Iterable[str], root: Path) -> list[FindingsFile]:
    """The files of findings among names (relative to a root), those of a comparison oldest first."""
    found = map(_FINDINGS_NAME.fullmatch, names)
    return sorted(FindingsFile(m[1], m[2], m[3], root / m.string) for m in found if m)


def newest_findings(root: Path) -> dict[str, FindingsFile]:
    """The newest file of each comparison."""
    return newest_findings_among(_names(root, "findings=*/at=*/*.parquet"), root)


def newest_findings_among(names: Iterable[str], root: Path) -> dict[str, FindingsFile]:
    """The newest file of each comparison among names (relative to a root)."""
    return {file.comparison: file for file in findings_files_among(names, root)}


def read_findings(file: FindingsFile) -> tuple[str, tuple[Finding, ...]]:
    """The comparison and what it found, checked against the file's name. Raises BrokenFile."""
    rows = read(file)
    try:
        ((comparison, at),) = rows.select("comparison", "kept_at").unique().iter_rows()
        told = _findings_file(comparison, at, file.digest, file.path.parents[2])
        found = tuple(from_text(text, Finding) for text in rows["record"] if text is not None)
    except (pl.exceptions.PolarsError, ValueError, TypeError, AttributeError) as flaw:
        raise BrokenFile(f"{file.path}: holds no findings ({flaw})") from flaw
    if told != file:
        raise BrokenFile(f"{file.path}: is of another comparison or moment than its name says")
    return comparison, found


def write_event(event: Event, root: Path) -> EventFile:
    """Keep what a person said about a change; the same said twice is one file."""
    file, content = event_file_of(event, root)
    put(file.path, content)
    return file


def event_file_of(event: Event, root: Path) -> tuple[EventFile, bytes]:
    """The file that keeps what a person said, and its content; nothing is written."""
    rows = [(event.change, event.at.astimezone(UTC), to_text(event))]
    content = _parquet(pl.DataFrame(rows, schema=_EVENT, orient="row"))
    digest = digest_of(content)
    folder = event_folder(event.change, event.at)
    return EventFile(event.change, folder.rpartition("=")[2], digest, root / folder / f"{digest}.parquet"), content


def event_files(root: Path) -> list[EventFile]:
    """Every file of what people said, by change and moment."""
    found = map(_EVENT_NAME.fullmatch, _names(root, "events=*/at=*/*.parquet"))
    return sorted(EventFile(m[1], m[2], m[3], root / m.string) for m in found if m)


def read_event(file: EventFile) -> Event:
    """What was said, checked against the file's name. Raises BrokenFile."""
    rows = read(file)
    try:
        ((change, at, record),) = rows.select(list(_EVENT)).iter_rows()
        event = from_text(record, Event)
        names = {event_folder(change, at), event_folder(event.change, event.at)}
    except (pl.exceptions.PolarsError, ValueError, TypeError, AttributeError) as flaw:
        raise BrokenFile(f"{file.path}: holds nothing that was said ({flaw})") from flaw
    if names != {f"events={file.change}/at={file.at}"}:
        raise BrokenFile(f"{file.path}: is of another change or moment than its name says")
    return event


def event_folder(change: str, at: datetime) -> str:
    """The folder of what was said about a change at a moment."""
    return f"events={change}/at={at.astimezone(UTC).strftime(_MOMENT)}"


def is_name(name: str) -> bool:
    """Whether a file of an archive may have this name (relative to its root).

    >>> is_name("run=27489075807/attempt=1/4f0c2ab19d3e7a55.parquet"), is_name("run=1/../4f0c2ab19d3e7a55.parquet")
    (True, False)
    """
    return _promise(name) is not None


def _promise(name: str) -> re.Match[str] | None:
    return _NAME.fullmatch(name) or _FINDINGS_NAME.fullmatch(name) or _EVENT_NAME.fullmatch(name)


def verify(name: str, content: bytes) -> None:
    """Raises BrokenFile when these bytes are not the file that a name promises: content, and what it is of."""
    promised = _promise(name)
    if promised is None:
        raise BrokenFile(f"{name}: no name of an archive file")
    if digest_of(content) != promised[3]:
        raise BrokenFile(f"{name}: its content is {digest_of(content)}, not what its name says")
    columns, folder = _BY_NAME[promised.re]
    try:
        rows = _rows(content, name)
        told = rows.select(list(columns)).unique().rows()
        names = {folder(*row) for row in told}
    except (pl.exceptions.PolarsError, ValueError, TypeError, AttributeError) as flaw:
        raise BrokenFile(f"{name}: is no file of an archive ({type(flaw).__name__})") from None
    if names != {name.rpartition("/")[0]}:
        raise BrokenFile(f"{name}: holds {', '.join(sorted(names)) or 'nothing'}")
    if promised.re is _NAME:
        _batch(rows, name)


def _folder(of: int | str, which: int | datetime) -> str:
    """The folder of a run attempt, or of a comparison at a moment.

    >>> _folder(27489075807, 1), _folder("28/1 against previous", datetime(2026, 11, 30, 18, tzinfo=UTC))
    ('run=27489075807/attempt=1', 'findings=c4a3f4567c3c13ce/at=20261130T180000000000Z')
    """
    if isinstance(of, str) and isinstance(which, datetime):
        return f"findings={digest_of(of.encode())}/at={which.astimezone(UTC).strftime(_MOMENT)}"
    return f"run={of}/attempt={which}"


_BY_NAME: Mapping[re.Pattern[str], tuple[tuple[str, str], Callable[..., str]]] = MappingProxyType(
    {
        _NAME: (("run_id", "attempt"), _folder),
        _FINDINGS_NAME: (("comparison", "kept_at"), _folder),
        _EVENT_NAME: (("change", "said_at"), event_folder),
    }
)
"""By the shape of a name: the columns that say what a file is of, and the folder that they name."""
