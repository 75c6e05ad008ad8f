"""Chooses, orders and counts what a weekly report may say; holds no words and computes no statistic.

Changes of one config that began with one run in one direction are one row with its members. Headline, counts and lists
come from the same rows, so they cannot disagree.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property

from reports.facts import IMPLAUSIBLE, Counts
from reports.things import WORST_FIRST, Listed, badness
from store.life import Apart, Change, ConfigBump, Direction, InForce, Precision, State, Week
from store.records import Caveat, Run, RunKey, Scope, Verdict


class Headline(StrEnum):
    """The first word of the report."""

    EMPTY = "empty"
    BROKEN = "broken"
    NEW = "new"
    OPEN = "open"
    SUSPECTED = "suspected"
    BETTER = "better"
    CALM = "calm"


BROKEN_SHARE = 0.2
"""From this share of points missing, failed or invalid on, the data are the news of the week."""

_LOST = (Verdict.MISSING, Verdict.FAILED, Verdict.INVALID)
_UNJUDGED = (Verdict.NOT_COMPARABLE, Verdict.NOT_JUDGED, Verdict.NO_BASELINE)
_ENDED = frozenset({State.RESOLVED, State.SUPERSEDED, State.WITHDRAWN, State.DISMISSED})
_TAKEN_BACK = frozenset({State.WITHDRAWN, State.DISMISSED})


@dataclass(frozen=True, slots=True)
class Told:
    """One row: the changes of one config that began together, the largest first, and the runs that they name."""

    changes: tuple[Change, ...]
    days: int
    """From the first bad run to the last day of the week."""
    runs: Mapping[RunKey, Run]

    @property
    def first(self) -> Change:
        return self.changes[0]

    @property
    def run(self) -> Run | None:
        """The first bad run."""
        return self.runs.get(self.first.first)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(change.id for change in self.changes)

    @property
    def is_implausible(self) -> bool:
        codes = {caveat.code for change in self.changes for caveat in change.finding.caveats}
        return self.first.direction is Direction.BETTER and IMPLAUSIBLE in codes


@dataclass(frozen=True, slots=True)
class Set:
    """Rows that were not judged for one reason, by config."""

    verdict: Verdict
    reason: Caveat
    configs: tuple[str, ...]
    rows: int
    evals: bool
    runs: tuple[RunKey, ...]


@dataclass(frozen=True, slots=True)
class Outside:
    """A run that is no part of the history, and why."""

    run: Run
    reasons: tuple[Caveat, ...]


@dataclass(frozen=True, slots=True)
class WeekFacts:
    """Everything that a weekly report says, chosen and ordered."""

    headline: Headline
    name: str
    start: datetime
    last_day: datetime
    judged: int
    """Official runs that were judged."""
    configs: int
    points: Counts
    curves: Counts
    scores: Counts
    bumps: Listed[ConfigBump]
    new: Listed[Told]
    open: Listed[Told]
    ended: Listed[Told]
    """Announced in an earlier week and over in this one."""
    suspected: Listed[Told]
    taken_back: int
    """Announced in this week and withdrawn or dismissed before it was over."""
    better: Listed[Told]
    evals_new: Listed[Told]
    evals_open: Listed[Told]
    evals_ended: Listed[Told]
    evals_suspected: Listed[Told]
    evals_better: Listed[Told]
    stale: Listed[InForce]
    environment: Listed[Told]
    lone: int
    """Single points that moved under unchanged software: counted, not listed."""
    missing: Listed[Set]
    unjudged: Listed[Set]
    rejected: Listed[tuple[Caveat, int]]
    outside: Listed[Outside]
    unread: int
    runs: Listed[Run]
    precision: Precision
    rules_version: str
    known: Mapping[RunKey, Run]
    """Every run that the report names."""
    edition: int = 1
    """From 2 on, the report takes the place of an earlier one about the same week."""

    @property
    def total_points(self) -> int:
        return sum(number for _, number in self.points)

    @property
    def lost(self) -> int:
        """Points that are missing, failed or invalid."""
        return sum(number for verdict, number in self.points if verdict in _LOST)


def select(week: Week, edition: int = 1) -> WeekFacts:
    """Choose what to say about a week."""
    rows = _Rows(week)
    points = _added(review.points for review in week.reviews)
    chosen = WeekFacts(
        headline=Headline.CALM,
        name=week.name,
        start=week.start,
        last_day=rows.last_day,
        judged=len(week.reviews),
        configs=len({config for review in week.reviews for config in review.configs}),
        points=points,
        curves=_added(review.curves for review in week.reviews),
        scores=_added(review.scores for review in week.reviews),
        bumps=Listed(_bumps(week)),
        new=rows.listed(rows.is_new, Direction.WORSE, evals=False),
        open=rows.listed(rows.is_open, Direction.WORSE, evals=False),
        ended=rows.listed(rows.is_ended, Direction.WORSE, evals=False),
        suspected=rows.listed(rows.is_suspected, Direction.WORSE, evals=False),
        taken_back=sum(rows.is_taken_back(change) for change in week.changes),
        better=rows.listed(rows.is_new, Direction.BETTER, evals=False),
        evals_new=rows.listed(rows.is_new, Direction.WORSE, evals=True),
        evals_open=rows.listed(rows.is_open, Direction.WORSE, evals=True),
        evals_ended=rows.listed(rows.is_ended, Direction.WORSE, evals=True),
        evals_suspected=rows.listed(rows.is_suspected, Direction.WORSE, evals=True),
        evals_better=rows.listed(rows.is_new, Direction.BETTER, evals=True),
        stale=Listed(tuple(sorted(week.images, key=lambda one: (-one.days, one.config)))),
        environment=rows.environment(),
        lone=sum(rows.is_unsteady(change) and _is_lone(change) for change in week.changes),
        missing=Listed(_sets(week, _LOST)),
        unjudged=Listed(_sets(week, _UNJUDGED)),
        rejected=Listed(_rejected(week)),
        outside=Listed(tuple(Outside(rows.runs[key], why) for key, why in week.unofficial)),
        unread=len(week.unread),
        runs=Listed(tuple(rows.runs[review.run] for review in week.reviews)),
        precision=week.precision,
        rules_version=week.rules_version,
        known=rows.runs,
        edition=edition,
    )
    return replace(chosen, headline=_headline(chosen))


def _headline(chosen: WeekFacts) -> Headline:
    found = (
        (Headline.EMPTY, not chosen.judged),
        (Headline.NEW, bool(chosen.new or chosen.evals_new)),
        (Headline.BROKEN, chosen.lost >= BROKEN_SHARE * max(chosen.total_points, 1)),
        (Headline.OPEN, bool(chosen.open or chosen.evals_open)),
        (Headline.SUSPECTED, bool(chosen.suspected or chosen.evals_suspected)),
        (Headline.BETTER, bool(chosen.better or chosen.evals_better)),
    )
    return next((word for word, holds in found if holds), Headline.CALM)


def _added(counts: Iterable[Mapping[Verdict, int]]) -> Counts:
    total: Counter[Verdict] = Counter()
    for one in counts:
        total.update(one)
    return tuple((verdict, total[verdict]) for verdict in WORST_FIRST if total[verdict])


def _bumps(week: Week) -> tuple[ConfigBump, ...]:
    """Each bump once, in the order of the runs."""
    return tuple(dict.fromkeys(bump for review in week.reviews for bump in review.bumps))


# ---------------------------------------------------------------- changes


@dataclass(frozen=True)  # no slots: built once a report
class _Rows:
    """The changes of a week as rows, by what became of them in it."""

    week: Week

    @cached_property
    def runs(self) -> Mapping[RunKey, Run]:
        return {run.key: run for run in self.week.runs}

    @property
    def last_day(self) -> datetime:
        return self.week.end - timedelta(days=1)

    def _holds(self, moment: datetime | None) -> bool:
        return moment is not None and self.week.start <= moment < self.week.end

    def is_new(self, change: Change) -> bool:
        """Announced in this week, by whatever run, and not taken back in it."""
        return self._holds(change.announced_at) and change.state not in _TAKEN_BACK

    def is_taken_back(self, change: Change) -> bool:
        return self._holds(change.announced_at) and change.state in _TAKEN_BACK

    def is_open(self, change: Change) -> bool:
        """Announced in an earlier week, and not over."""
        return change.announced_at is not None and change.announced_at < self.week.start and change.is_live

    def is_ended(self, change: Change) -> bool:
        is_older = change.announced_at is not None and change.announced_at < self.week.start
        return is_older and change.state in _ENDED and self._holds(change.state_at)

    def is_suspected(self, change: Change) -> bool:
        is_fresh = self._holds(change.first_at) and change.state in (State.SUSPECTED, State.ACKNOWLEDGED)
        return is_fresh and change.announced is None and not change.is_environment

    def is_unsteady(self, change: Change) -> bool:
        """Other numbers under the same software, first seen in this week or still off in it."""
        if not change.is_environment or change.state is State.DISMISSED:
            return False
        last = self.runs.get(change.last_seen) if change.last_seen else None
        return self._holds(change.first_at) or (change.is_live and last is not None and self._holds(last.started_at))

    def environment(self) -> Listed[Told]:
        """Pools first, then evals, then curves."""
        kept = [change for change in self.week.changes if self.is_unsteady(change) and not _is_lone(change)]
        rows = self._grouped(kept)
        return Listed(tuple(sorted(rows, key=lambda row: (not row.first.pool, not row.first.is_eval))))

    def listed(self, wanted: Callable[[Change], bool], way: Direction, *, evals: bool) -> Listed[Told]:
        found = [c for c in self.week.changes if c.direction is way and c.is_eval is evals and wanted(c)]
        return Listed(self._grouped([change for change in found if not change.is_environment]))

    def _grouped(self, changes: Iterable[Change]) -> tuple[Told, ...]:
        """Changes that began together as one row, the largest row first."""
        groups: dict[tuple[object, ...], list[Change]] = defaultdict(list)
        for change in changes:
            groups[
                change.config, change.pool, change.first, change.direction, change.finding.task, change.state
            ].append(change)
        rows = [self._told(group) for group in groups.values()]
        return tuple(sorted(rows, key=lambda row: (-_size(row.first), row.first.config, row.first.id)))

    def _told(self, group: Iterable[Change]) -> Told:
        ordered = tuple(sorted(group, key=lambda change: (change.scope is Scope.POINT, -_size(change), change.id)))
        named = {run for change in ordered for run in _named(change)}
        days = (self.last_day.date() - ordered[0].first_at.date()).days
        known = self.runs
        return Told(ordered, days, {run: known[run] for run in sorted(named) if run in known})


def _named(change: Change) -> Iterable[RunKey]:
    found = (change.first, change.announced, change.confirmed, change.returned, change.state_run)
    return (run for run in found if run is not None)


def _size(change: Change) -> float:
    return abs(badness(change.finding))


def _is_lone(change: Change) -> bool:
    """One point, or one eval job: too many of them move for each to be told."""
    return change.scope in (Scope.POINT, Scope.EVAL)


# ---------------------------------------------------------------- what was not judged


def _sets(week: Week, verdicts: tuple[Verdict, ...]) -> tuple[Set, ...]:
    """Rows by reason, those of most rows first. A reason's numbers (of one row, one run) are told once for all."""
    groups: dict[tuple[Verdict, str, bool], list[tuple[RunKey, Apart]]] = defaultdict(list)
    for review in week.reviews:
        for one in review.apart:
            if one.verdict in verdicts:
                groups[one.verdict, one.reason.code, one.evals].append((review.run, one))
    found = (_set(verdict, evals, same) for (verdict, _, evals), same in groups.items())
    return tuple(sorted(found, key=lambda one: (verdicts.index(one.verdict), -one.rows, one.reason.code, one.evals)))


def _set(verdict: Verdict, evals: bool, same: list[tuple[RunKey, Apart]]) -> Set:
    reasons = {one.reason for _, one in same}
    code = same[0][1].reason.code
    return Set(
        verdict=verdict,
        reason=reasons.pop() if len(reasons) == 1 else Caveat(code),
        configs=tuple(sorted({one.config for _, one in same} - {""})),
        rows=sum(one.rows for _, one in same),
        evals=evals,
        runs=tuple(dict.fromkeys(run for run, _ in same)),
    )


def _rejected(week: Week) -> tuple[tuple[Caveat, int], ...]:
    tally: Counter[tuple[str, str]] = Counter()
    for review in week.reviews:
        for reason, field, number in review.rejected:
            tally[reason, field] += number
    rows = sorted(tally.items(), key=lambda row: (-row[1], row[0]))
    return tuple((Caveat.of(reason, field=field), number) for (reason, field), number in rows)


# ---------------------------------------------------------------- what a limit of length cuts

BY_IMPORTANCE = (
    "evals_new",
    "new",
    "evals_open",
    "open",
    "better",
    "evals_better",
    "evals_ended",
    "ended",
    "evals_suspected",
    "suspected",
    "environment",
    "missing",
    "unjudged",
    "rejected",
    "outside",
    "stale",
    "bumps",
    "runs",
)
"""Which lists are kept longest when a document must be cut."""
