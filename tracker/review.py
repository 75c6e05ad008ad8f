"""Judges every official run once, in order of time, each against its own past, and keeps what it said.

A run that moved something is judged together with the next run of the same software. Landing again, running again and
the order of landing change nothing; a run is judged anew when more of it has landed or the rules have changed.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

import polars as pl

from reports.things import decides
from store.duck import Store
from store.images import Sameness
from store.life import Joint, Move, Review
from store.records import Comparison, Finding, RunKey, Verdict
from store.runs import standing
from tracker import levels, moves, partial, sides, workers
from tracker.excerpts import Excerpt, Source
from tracker.jobs import JUDGED_METRICS, Question, Where, judged
from tracker.levels import Levels, Order
from tracker.settings import Settings
from tracker.sides import Side
from tracker.workers import ALONE, Crew

BATCH = 16
"""Runs judged while the database is held: other processes get their turn in between."""

MANY = 200
"""Runs from which several processes pay for their start and for what each reads."""

SLICE = 24
"""Runs that one worker judges: it reads their past once."""

KEPT = frozenset(
    {
        Verdict.REGRESSION,
        Verdict.IMPROVEMENT,
        Verdict.MIXED,
        Verdict.SUSPECTED,
        Verdict.RECOVERY,
        Verdict.FAILED,
    }
)
"""Verdicts whose findings are kept with all that is needed to doubt them; the others are counted."""

Watch = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Reviewed:
    """How many runs were judged now, and how many had been before."""

    judged: int
    known: int


@dataclass(frozen=True, slots=True)
class _Due:
    """A run, and a mark of what it holds."""

    run: RunKey
    started_at: datetime
    content: str


def review(
    where: Where, settings: Settings = Settings(), watch: Watch = lambda _: None, crew: Crew = ALONE
) -> Reviewed:
    """Judge the official runs that have not been judged under these rules, or of which more has landed since.

    Where they are many, or a cluster was named, the crew judges them ahead; they are kept one after the other as ever.
    """
    ahead = {} if crew.is_alone else _ahead(where, settings, crew)
    done = 0
    while True:
        with _opened(where) as store:
            kept = {one.run: one for one in store.reviews(settings.rules_version)}
            runs, due = _due(store, kept)
            for run in due[:BATCH]:
                kept[run.run] = _judge(store, run, kept, settings, ahead.get(run))
                watch(1)
        done += len(due[:BATCH])
        if len(due) <= BATCH:
            return Reviewed(done, runs - done)


@contextmanager
def _opened(where: Where) -> Iterator[Store]:
    with Store.open(where.store, where.archive, official=standing, withdrawn=where.withdrawn()) as store:
        partial.refuse(store, "a review of every run")
        yield store


def _due(store: Store, kept: Mapping[RunKey, Review]) -> tuple[int, list[_Due]]:
    """How many runs there are, and those that are not judged as they stand."""
    runs = list(_runs(store))
    return len(runs), [run for run in runs if run.run not in kept or kept[run.run].content != run.content]


def _runs(store: Store) -> Iterator[_Due]:
    for number, attempt, started_at, content in store.reviewable().iter_rows():
        yield _Due(RunKey(number, attempt), started_at, content)


@dataclass(frozen=True, slots=True)
class _Own:
    """What a run says by itself, against its own past."""

    said: Review
    findings: tuple[Finding, ...]
    curves: tuple[str, ...]
    evals: frozenset[str]
    pools: Mapping[str, str]


def _judge(store: Store, due: _Due, kept: Mapping[RunKey, Review], settings: Settings, ahead: _Own | None) -> Review:
    """Judge one run, alone and with the run before of the same software, and keep what was said."""
    own = ahead or _own(store, due, settings)
    together: list[Joint] = []
    findings = list(own.findings)
    for first, keys in _doubted(store, due, own, kept).items():
        both = _both(store, first, due.run, keys, settings)
        together.append(Joint(first, tuple(sorted(keys)), _of(moves.moves(both.findings, own.pools), keys)))
        findings += _moved(both)
    said = replace(own.said, joint=tuple(together))
    store.put_review(said, findings)
    return said


def _own(store: Store, due: _Due, settings: Settings) -> _Own:
    new = sides.of_runs(store, [due.run], JUDGED_METRICS)
    comparison = judged(store, new, Question(f"run:{due.run}"), settings)
    pools = pools_of(new)
    said = moves.review(comparison, due.content, pools)
    evals = frozenset(map(moves.eval_place, new.scores))
    return _Own(said, tuple(_moved(comparison)), new.curves, evals, pools)


def _moved(comparison: Comparison) -> Iterator[Finding]:
    return (finding for finding in comparison.findings if decides(finding) and finding.verdict in KEPT)


def _of(found: tuple[Move, ...], keys: Collection[str]) -> tuple[Move, ...]:
    return tuple(move for move in found if move.key in keys)


def pools_of(new: Side) -> dict[str, str]:
    """The machines of each curve: their pool where the rows name one, else their kind of GPU."""
    known = new.points.group_by("curve").agg(pl.col("pool").drop_nulls().min(), pl.col("series").min())
    return {curve: pool or new.series[series].gpu for curve, pool, series in known.sort("curve").iter_rows()}


# ---------------------------------------------------------------- judged ahead by a crew


@dataclass(frozen=True, slots=True)
class _Slice:
    """Runs that one worker judges, since they share a past, and what it has to read."""

    due: tuple[_Due, ...]
    excerpt: Excerpt

    def __str__(self) -> str:
        return f"run {self.due[0].run} and {len(self.due) - 1} more runs"


def _ahead(where: Where, settings: Settings, crew: Crew) -> dict[_Due, _Own]:
    """What runs that are due say by themselves. A run that changes meanwhile is no longer found here."""
    with _opened(where) as store:
        _, due = _due(store, {one.run: one for one in store.reviews(settings.rules_version)})
        source = Source.of(store, where.archive, where.store, crew)
        if source is None or (crew.cluster is None and len(due) < MANY):
            return {}
        slices = [_Slice(some, source.around([one.run] for one in some)) for some in _slices(source, due)]
        settled = sides.with_learned_scales(settings, store)
    told = workers.map(functools.partial(_of_slice, settled), slices, crew)
    return {
        one: own for part, found in zip(slices, told, strict=True) for one, own in zip(part.due, found, strict=True)
    }


def _slices(source: Source, due: Sequence[_Due]) -> Iterator[tuple[_Due, ...]]:
    """Runs of the same kin side by side, at most SLICE of them; runs that share nothing are not put together."""
    nothing: frozenset[str] = frozenset()
    kin = {one: source.kin.get(one.run.id, nothing) for one in due}
    part: list[_Due] = []
    for one in sorted(due, key=lambda one: (sorted(kin[one]), one.started_at, one.run)):
        if part and (len(part) == SLICE or not kin[one] & kin[part[-1]]):
            yield tuple(part)
            part = []
        part.append(one)
    if part:
        yield tuple(part)


def _of_slice(settings: Settings, part: _Slice) -> list[_Own]:
    with part.excerpt.opened() as store:
        return [_own(store, one, settings) for one in part.due]


# ---------------------------------------------------------------- two runs of one software


def _doubted(store: Store, due: _Due, own: _Own, kept: Mapping[RunKey, Review]) -> dict[RunKey, frozenset[str]]:
    """First bad run -> what it moved and this run measured next, with the same software."""
    asked = _latest_moves(kept, due, {*own.curves, *own.evals})
    if not asked:
        return {}
    known = levels.of_store(store, asked.keys() & set(own.curves), asked.keys() & own.evals)
    found: dict[RunKey, set[str]] = defaultdict(set)
    for key, (first, move) in asked.items():
        if _is_second(known, key, first, due, move):
            found[first].add(key)
    return {first: frozenset(keys) for first, keys in sorted(found.items())}


def _latest_moves(kept: Mapping[RunKey, Review], due: _Due, keys: Collection[str]) -> dict[str, tuple[RunKey, Move]]:
    """The newest move of each key before this run."""
    found: dict[str, tuple[Order, RunKey, Move]] = {}
    for one in kept.values():
        order = (one.started_at, one.run.attempt, one.run.id)
        if order < (due.started_at, due.run.attempt, due.run.id) and one.run.id != due.run.id:
            for move in one.moves:
                if move.key in keys and (move.key not in found or found[move.key][0] < order):
                    found[move.key] = (order, one.run, move)
    return {key: (run, move) for key, (_, run, move) in found.items()}


def _is_second(known: Levels, key: str, first: RunKey, due: _Due, move: Move) -> bool:
    """True of the next run of the software of `first`, where that was another than the software before."""
    runs = known.get(key, {})
    if first not in runs or due.run not in runs:
        return False
    before = max((level for level in runs.values() if level.order < runs[due.run].order), key=lambda level: level.order)
    base = moves.runs_of(move)
    said = (move.finding.baseline_image, move.finding.candidate_image)
    what = levels.bump(runs.get(base) if base else None, runs[first], said)
    return before.run == first and levels.same(runs[first], runs[due.run]) and what.sameness is not Sameness.SAME


def _both(store: Store, first: RunKey, second: RunKey, keys: Collection[str], settings: Settings) -> Comparison:
    """Both runs as one candidate, against the past of the first."""
    both = sides.of_runs(store, [first, second], JUDGED_METRICS)
    return judged(store, sides.only(both, keys, keys), Question(f"run:{second}"), settings)
