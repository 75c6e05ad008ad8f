"""What the files beside a run's artifacts say of it: its jobs, its pull request, its config, who published it.

They are facts of the run without being rows. A file that cannot be read is a rejection and says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from store import plan
from store.plan import Plan
from store.promises import expected
from store.readers.decode import Unreadable, decode, text_of
from store.readers.files import Entry, Parts, is_config
from store.readers.values import Flaw, Row, integer, shown, word
from store.records import Batch, ChangelogEntry, JobRun, Place, Rejection, Run, RunKey
from store.runs import parse_time

JOBS, PULL, REUSE = "jobs.json", "pull.json", "reuse.json"
NAMES = frozenset({JOBS, PULL, REUSE})

_LARGEST_ID = 2**63
"""Ids of GitHub passed 2**31 long ago."""


@dataclass(frozen=True, slots=True)
class Reuse:
    """The publication of a run's rows by a run on main, which measured nothing itself."""

    source: int
    source_attempt: int | None
    by: RunKey
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Beside:
    """Everything that the sidecars of one run say."""

    jobs: tuple[JobRun, ...] = ()
    labels: tuple[str, ...] = ()
    pull_request: int | None = None
    reuse: Reuse | None = None
    plan: Plan | None = None
    rejections: tuple[Rejection, ...] = ()

    def __bool__(self) -> bool:
        return self != Beside()

    def told(self, run: Run) -> Run:
        """The run with what the sidecars add to its own object."""
        if not self:
            return run
        run = replace(run, labels=self.labels or run.labels, pull_request=run.pull_request or self.pull_request)
        mine = self.reuse
        if mine is None or mine.source != run.id or mine.source_attempt not in (None, run.attempt):
            return run
        return replace(run, reused_by=mine.by, published_at=mine.at)

    def batch(self, run: Run, entries: Sequence[ChangelogEntry]) -> Batch:
        """The run's facts: the jobs up to its attempt, and what the entries of its changelog promise."""
        jobs = tuple(job for job in self.jobs if job.attempt <= run.attempt)
        promised = expected(self.plan, entries, run.labels, run.event, jobs) if self.plan else ()
        flaws = tuple(replace(flaw, run=run.key) for flaw in self.rejections)
        return Batch(run, rejections=flaws, job_runs=jobs, expected=promised)


def is_sidecar(parts: Parts) -> bool:
    """True of every file that this module reads."""
    return parts[-1] in NAMES or is_config(parts)


def home_of(parts: Parts) -> Parts:
    """The folder of the run that a sidecar speaks of."""
    return parts[:-2] if is_config(parts) else parts[:-1]


def read(entries: Iterable[Entry], run: Run | None) -> Beside:
    """What the files say; `run` is the one that they lie beside, None where nothing tells it."""
    found = Beside()
    plans: list[Plan] = []
    for entry in filter(lambda entry: is_sidecar(entry.parts), entries):
        if is_config(entry.parts):
            plans += _plans(entry)
            continue
        try:
            if isinstance(entry.content, Unreadable):
                raise entry.content
            found = _READERS[entry.parts[-1]](found, decode(entry.content).value, entry.place, run)
        except Unreadable as flaw:
            found = _with(found, Rejection(Place(entry.place), "", flaw.reason, flaw.detail))
        except Flaw as flaw:
            found = _with(found, Rejection(Place(entry.place), flaw.field, flaw.reason, flaw.detail))
    whole = plan.merge(plans) if plans else None
    flaws = [_config_flaw(one) for one in whole.rejections] if whole else []
    return replace(_with(found, *flaws), plan=whole)


def _with(found: Beside, *flaws: Rejection) -> Beside:
    return replace(found, rejections=(*found.rejections, *flaws))


def _plans(entry: Entry) -> Iterator[Plan]:
    if isinstance(entry.content, Unreadable):
        yield Plan({}, (Rejection(Place(entry.place), "", entry.content.reason, entry.content.detail),))
    else:
        yield plan.parse(entry.content, entry.place, any_era=True)


def _config_flaw(flaw: Rejection) -> Rejection:
    """A config that cannot be read promises nothing; the code of what is wrong with it stands in the detail."""
    return replace(flaw, reason="bad_config", detail=f"{flaw.reason} {flaw.detail}".strip()) if flaw.field else flaw


def _object(value: object) -> Row:
    if not isinstance(value, dict):
        raise Flaw("", "not_an_object", shown(value))
    return value


# --- jobs ---------------------------------------------------------------------------------------------------------


def _jobs(found: Beside, value: object, place: str, _: Run | None) -> Beside:
    listed = value.get("jobs") if isinstance(value, dict) else value
    if not isinstance(listed, list):
        raise Flaw("jobs", "bad_value", shown(listed))
    for index, one in enumerate(listed):
        try:
            found = replace(found, jobs=(*found.jobs, job(_object(one))))
        except Flaw as flaw:
            spot = Place(place, index)
            found = _with(found, Rejection(spot, flaw.field, flaw.reason, flaw.detail, text_of(one)))
    return found


def job(row: Row) -> JobRun:
    """A job of GitHub's object; Flaw where it cannot be read."""
    name = word(row, "name")
    if not name:
        raise Flaw("name", "missing_field")
    return JobRun(
        name=name,
        attempt=integer(row, "run_attempt"),
        status=word(row, "status") or None,
        conclusion=word(row, "conclusion") or None,
        url=word(row, "html_url") or None,
        started_at=_moment(row, "started_at"),
        completed_at=_moment(row, "completed_at"),
        runner=word(row, "runner_name") or None,
    )


def _moment(row: Row, field: str) -> datetime | None:
    text = word(row, field)
    try:
        return parse_time(text) if text else None
    except (ValueError, OverflowError):
        raise Flaw(field, "bad_value", shown(text)) from None


# --- pull request and publication ---------------------------------------------------------------------------------


def _pull(found: Beside, value: object, _: str, run: Run | None) -> Beside:
    row = _object(value)
    number = integer(row, "number", 0, 1)
    if run is not None and run.pull_request not in (None, number or run.pull_request):
        raise Flaw("number", "other_pull_request", str(number))
    labels = row.get("labels")
    if labels is not None and not isinstance(labels, list):
        raise Flaw("labels", "bad_value", shown(labels))
    names = [one if isinstance(one, str) else word(_object(one), "name") for one in labels or ()]
    return replace(found, labels=tuple(sorted({name for name in names if name})), pull_request=number or None)


def _reuse(found: Beside, value: object, _: str, run: Run | None) -> Beside:
    row = _object(value)
    source, by = _id(row, "source_run_id"), _id(row, "merge_run_id")
    if run is not None and source != run.id:
        raise Flaw("source_run_id", "other_run", str(source))
    attempt = integer(row, "source_run_attempt", 0, 1) or None
    merge = RunKey(by, integer(row, "merge_run_attempt"))
    return replace(found, reuse=Reuse(source, attempt, merge, _moment(row, "merge_run_created_at")))


def _id(row: Row, field: str) -> int:
    """A run id, which GitHub's own payloads write as a number or as text."""
    value = row.get(field)
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if value is None or value == "":
        raise Flaw(field, "missing_field")
    if not (text.isascii() and text.isdigit() and len(text) < 20 and 0 < int(text) < _LARGEST_ID):
        raise Flaw(field, "bad_value", shown(value))
    return int(text)


_READERS = {JOBS: _jobs, PULL: _pull, REUSE: _reuse}
