"""What every reader takes and gives: a decoded file with its surroundings, and items gathered by run attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import TypeAlias

from store.readers.decode import text_of
from store.readers.values import Row
from store.records import Batch, ChangelogEntry, Expected, JobCount, JobRun, Place, Point, Rejection, Run, RunKey, Score

Item: TypeAlias = Point | Score | Rejection | ChangelogEntry | JobCount | JobRun | Expected


@dataclass(frozen=True, slots=True)
class Document:
    """A decoded file, the run of the rows that name none, and what its neighbours say of it."""

    file: str
    value: object
    run: Run
    artifact: str = ""
    created_at: datetime | None = None
    collected: bool = False
    pool: str | None = None
    """Pool of machines that the runner's name tells, for rows that name none."""
    meta: Row | None = None
    """`meta_env.json` of the same folder, for eval results."""

    @property
    def name(self) -> str:
        """File name without its folders, archive or artifact."""
        return self.file.replace("!", "/").rpartition("/")[2]

    def rejected(self, field: str, reason: str, detail: str = "", value: object = None, index: int = 0) -> Batch:
        """A batch that holds one rejection of this file."""
        place = Place(self.file, index, self.created_at, self.collected)
        raw = "" if value is None else text_of(value)
        return Batch(self.run, rejections=(Rejection(place, field, reason, detail, raw, self.run.key),))


@dataclass(frozen=True, slots=True)
class Source:
    """A file shape: how its content is known, and its reader. `fits` gets the keys of the value or of its members."""

    shape: str
    fits: Callable[[Document, frozenset[str]], bool]
    read: Callable[[Document], Iterator[Batch]]
    alone: bool = False
    """True where each batch is complete in itself and need not wait for the other files."""


@dataclass(slots=True)
class _Open:
    run: Run
    points: list[Point] = field(default_factory=list)
    scores: list[Score] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    changelog: list[ChangelogEntry] = field(default_factory=list)
    jobs: list[JobCount] = field(default_factory=list)
    job_runs: list[JobRun] = field(default_factory=list)
    expected: list[Expected] = field(default_factory=list)
    duplicates: int = 0


_SHELF: dict[type, str] = {
    Point: "points",
    Score: "scores",
    Rejection: "rejections",
    ChangelogEntry: "changelog",
    JobCount: "jobs",
    JobRun: "job_runs",
    Expected: "expected",
}


_NOBODY = Run(0, 0, datetime.fromtimestamp(0, UTC))


class Gathering:
    """Items by run attempt, in order of arrival."""

    def __init__(self) -> None:
        self._open: dict[RunKey, _Open] = {}
        self._latest: tuple[Run | None, _Open] = None, _Open(_NOBODY)

    def shelf(self, run: Run) -> _Open:
        """The open batch of a run; what two descriptions of one run know is joined."""
        if run is self._latest[0]:
            return self._latest[1]
        found = self._open.get(run.key)
        if found is None:
            found = self._open[run.key] = _Open(run)
        elif found.run is not run:
            found.run = joined(found.run, run)
        self._latest = run, found
        return found

    def add(self, run: Run, item: Item) -> None:
        """Put one item onto the shelf of its run."""
        getattr(self.shelf(run), _SHELF[type(item)]).append(item)

    def take(self, batch: Batch) -> None:
        """Put a whole batch onto its shelf."""
        shelf = self.shelf(batch.run)
        for name in _SHELF.values():
            getattr(shelf, name).extend(getattr(batch, name))
        shelf.duplicates += batch.duplicates

    def batches(self) -> Iterator[Batch]:
        """One batch per run attempt, oldest first."""
        for shelf in sorted(self._open.values(), key=lambda one: (one.run.started_at, one.run.key)):
            contents = {name: tuple(getattr(shelf, name)) for name in _SHELF.values()}
            yield Batch(shelf.run, duplicates=shelf.duplicates, **contents)


def joined(one: Run, other: Run) -> Run:
    """What two descriptions of a run attempt know together; a start from a time beats one from a date."""
    known, more = (other, one) if other.created_at and not one.created_at else (one, other)
    gaps = {
        part.name: getattr(more, part.name)
        for part in fields(Run)
        if getattr(known, part.name) in (None, "", False, ()) and getattr(more, part.name)
    }
    if bool(one.created_at) == bool(other.created_at):
        gaps["started_at"] = min(one.started_at, other.started_at)
    return replace(known, **gaps)
