"""Judges every official run once, in order of time, each against its own past, and keeps what it said.

A run that moved something is judged together with the next run of the same software. Landing again, running again and
the order of landing change nothing; a run is judged anew when more of it has landed or the rules have changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from reports.things import decides
from store.duck import Store
from store.images import Sameness
from store.life import Joint, Move, Review
from store.records import Comparison, Finding, RunKey, Verdict
from store.runs import standing
from tracker import levels, moves, partial, sides
from tracker.jobs import JUDGED_METRICS, Question, Where, judged
from tracker.levels import Levels, Order
from tracker.settings import Settings
from tracker.sides import Side

BATCH = 16
"""Runs judged while the database is held: other processes get their turn in between."""

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


def review(where: Where, settings: Settings = Settings(), watch: Watch = lambda _: None) -> Reviewed:
    """Judge the official runs that have not been judged under these rules, or of which more has landed since."""
    done = 0
    while True:
        with Store.open(where.store, where.archive, official=standing, withdrawn=where.withdrawn()) as store:
            partial.refuse(store, "a review of every run")
            kept = {one.run: one for one in store.reviews(settings.rules_version)}
            runs = list(_runs(store))
            due = [run for run in runs if run.run not in kept or kept[run.run].content != run.content]
            for run in due[:BATCH]:
                kept[run.run] = _judge(store, run, kept, settings)
                watch(1)
        done += len(due[:BATCH])
        if len(due) <= BATCH:
            return Reviewed(done, len(runs) - done)


def _runs(store: Store) -> Iterator[_Due]:
    for number, attempt, started_at, content in store.reviewable().iter_rows():
        yield _Due(RunKey(number, attempt), started_at, content)


def _judge(store: Store, due: _Due, kept: Mapping[RunKey, Review], settings: Settings) -> Review:
    """Judge one run, alone and with the run before of the same software, and keep what was said."""
    new = sides.of_runs(store, [due.run], JUDGED_METRICS)
    comparison = judged(store, new, Question(f"run:{due.run}"), settings)
    pools = pools_of(new)
    together: list[Joint] = []
    findings = list(_moved(comparison))
    for first, keys in _doubted(store, due, new, kept).items():
        both = _both(store, first, due.run, keys, settings)
        together.append(Joint(first, tuple(sorted(keys)), _of(moves.moves(both.findings, pools), keys)))
        findings += _moved(both)
    said = moves.review(comparison, due.content, pools, together)
    store.put_review(said, findings)
    return said


def _moved(comparison: Comparison) -> Iterator[Finding]:
    return (finding for finding in comparison.findings if decides(finding) and finding.verdict in KEPT)


def _of(found: tuple[Move, ...], keys: Collection[str]) -> tuple[Move, ...]:
    return tuple(move for move in found if move.key in keys)


def pools_of(new: Side) -> dict[str, str]:
    """The machines of each curve: their pool where the rows name one, else their kind of GPU."""
    known = new.points.group_by("curve").agg(pl.col("pool").drop_nulls().min(), pl.col("series").min())
    return {curve: pool or new.series[series].gpu for curve, pool, series in known.sort("curve").iter_rows()}


# ---------------------------------------------------------------- two runs of one software


def _doubted(store: Store, due: _Due, new: Side, kept: Mapping[RunKey, Review]) -> dict[RunKey, frozenset[str]]:
    """First bad run -> what it moved and this run measured next, with the same software."""
    evals = {moves.eval_place(score) for score in new.scores}
    asked = _latest_moves(kept, due, {*new.curves, *evals})
    if not asked:
        return {}
    known = levels.of_store(store, asked.keys() & set(new.curves), asked.keys() & evals)
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
