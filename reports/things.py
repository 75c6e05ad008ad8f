"""Which findings speak of one thing, and which of them tells it; holds no words.

The opinions on a single finding stand here too: what counts as an eval, what decides, how bad a change is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from store.identity import curve_key, curve_of
from store.metrics import GATE_METRICS, Better, Part, metric
from store.records import Finding, Scope, Verdict

T = TypeVar("T")
Chosen = TypeVar("Chosen", bound=Any)
"""A frozen record of lists, as `reports.facts` and `reports.week` select them."""


WORST_FIRST = (
    Verdict.REGRESSION,
    Verdict.MIXED,
    Verdict.FAILED,
    Verdict.SUSPECTED,
    Verdict.INVALID,
    Verdict.MISSING,
    Verdict.IMPROVEMENT,
    Verdict.RECOVERY,
    Verdict.NOISY,
    Verdict.INCONCLUSIVE,
    Verdict.NOT_COMPARABLE,
    Verdict.NOT_JUDGED,
    Verdict.NO_BASELINE,
    Verdict.EQUIVALENT,
    Verdict.DROPPED,
)
"""Order of every list and count."""
RANK: Mapping[Verdict, int] = {verdict: place for place, verdict in enumerate(WORST_FIRST)}


WORSE = frozenset({Verdict.REGRESSION, Verdict.MIXED, Verdict.FAILED})
FAILED_GATE = "below_threshold"
"""Code of an eval that misses its threshold: a failure whatever the baseline says."""
EVAL_ALARMS = frozenset({FAILED_GATE, "format_gap", "collapsed", "question_count", "below_siblings"})
"""Codes that put an eval among the problems although its accuracy did not fall."""
SAME_MOVE = 0.01
"""Two metrics of one point that moved by as much, within rounding, in natural log units."""


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """Rows in order of importance, and how many were cut from the end."""

    rows: tuple[T, ...] = ()
    left_out: int = 0

    def __bool__(self) -> bool:
        return bool(self.rows) or self.left_out > 0

    @property
    def total(self) -> int:
        return len(self.rows) + self.left_out

    def first(self, number: int) -> Listed[T]:
        """The most important rows; the rest is counted.

        >>> Listed(("a", "b", "c")).first(1)
        Listed(rows=('a',), left_out=2)
        """
        return Listed(self.rows[:number], self.left_out + max(0, len(self.rows) - number))


KEPT_ALWAYS = 3
"""Rows of every list that stay however short a document must be."""


def trim(chosen: Chosen, lists: Sequence[str], rows: int) -> Chosen:
    """At most about `rows` rows in all lists together: the important lists first, the start of each list always."""
    room = rows
    short: dict[str, Any] = {}
    for name in lists:
        listed: Listed[Any] = getattr(chosen, name)
        short[name] = listed.first(max(min(KEPT_ALWAYS, rows), room))
        room = max(0, room - len(short[name].rows))
    return replace(chosen, **short)


def longest(chosen: Any, lists: Sequence[str]) -> int:
    """Rows in all lists together: the value from which `trim` cuts nothing."""
    return sum(len(getattr(chosen, name).rows) for name in lists)


@dataclass(frozen=True, slots=True)
class Moved:
    """One thing to tell: the finding that tells it, other metrics that say the same, and smaller things in it.

    Inside a curve stands its worst point, inside a config its curves, inside a pooled eval its jobs.
    """

    finding: Finding
    also: tuple[Finding, ...] = ()
    inside: tuple[Moved, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of its metrics, as it is counted."""
        return min((told_verdict(row) for row in (self.finding, *self.also)), key=RANK.__getitem__)

    @property
    def entries(self) -> tuple[Moved, ...]:
        """What a table shows of it, one row each: itself first, then what is inside."""
        return (self, *(entry for part in self.inside for entry in part.entries))

    @property
    def rows(self) -> tuple[Finding, ...]:
        """Every finding in it, its own first."""
        return tuple(row for entry in self.entries for row in (entry.finding, *entry.also))


def is_eval(finding: Finding) -> bool:
    """True for accuracy, of one job or pooled over a config: changes are differences of fractions, not log ratios."""
    return finding.scope is Scope.EVAL or metric(finding.metric).family == "accuracy"


TOLD_BESIDE = frozenset(
    {"frontier_same_layouts", "frontier_beside_curves", "peak_beside_frontier", "latency_beside_frontier"}
)
"""Codes of a frontier that decides nothing: curves, or the shift at equal interactivity, speak for the same change."""


def decides(finding: Finding) -> bool:
    """True for what may decide a verdict: gate metrics, evals, and frontiers of groups whose curves have no twins."""
    if finding.scope is Scope.FRONTIER and any(caveat.code in TOLD_BESIDE for caveat in finding.caveats):
        return False
    return is_eval(finding) or metric(finding.metric).part is Part.GATE


def is_problem(finding: Finding) -> bool:
    """True for an eval that belongs among the problems."""
    codes = {caveat.code for caveat in finding.caveats}
    return finding.verdict in WORSE or bool(codes & EVAL_ALARMS) or is_bad(finding)


def is_bad(finding: Finding) -> bool:
    """True for a suspicion in the bad direction."""
    return finding.verdict is Verdict.SUSPECTED and badness(finding) > 0


def told_verdict(finding: Finding) -> Verdict:
    """The verdict as it is told and counted: an eval that misses its gate failed, unless it is a regression too."""
    return Verdict.FAILED if misses_gate(finding) and finding.verdict not in WORSE else finding.verdict


def misses_gate(finding: Finding) -> bool:
    """True for an eval below its threshold, whatever its verdict: an eval may also have failed in another way."""
    return is_eval(finding) and any(caveat.code == FAILED_GATE for caveat in finding.caveats)


def gate(finding: Finding) -> tuple[float | None, float | None]:
    """Score and threshold of the gate of an eval, as far as they are known."""
    if not is_eval(finding):
        return None, None
    said = [dict(c.values) for code in (FAILED_GATE, "gate") for c in finding.caveats if c.code == code]
    scores = (finding.candidate, *(values.get("score") for values in said))
    return _number(scores), _number(values.get("threshold") for values in said)


def _number(values: Iterable[object]) -> float | None:
    """The first finite number."""
    found = (float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v))
    return next(found, None)


def badness(finding: Finding) -> float:
    """How far a finding went in the bad direction; a metric without a direction counts by its size."""
    if finding.effect is None or not math.isfinite(finding.effect):
        return 0.0
    better = metric(finding.metric).better
    signs = {Better.HIGHER: -finding.effect, Better.LOWER: finding.effect, Better.UNKNOWN: abs(finding.effect)}
    return signs[better]


def curve_text(finding: Finding) -> str:
    """Key of the curve that a finding belongs to."""
    if finding.series is not None:
        return curve_key(curve_of(finding.series))
    return finding.key.rpartition(" c")[0] if finding.scope is Scope.POINT else finding.key


def worst_first(finding: Finding) -> tuple[int, bool, float, str]:
    """Order of evals: by verdict, a missed gate first among its equals, then how far they fell."""
    return (RANK[told_verdict(finding)], not misses_gate(finding), -badness(finding), finding.key)


def block(rows: Sequence[Finding], jobs: Collection[str]) -> tuple[Moved, ...]:
    """Entries of one config and task, worst first: the jobs stand inside the pooled eval where all of them agree."""
    pooled = _by_verdict(row for row in rows if row.scope is not Scope.EVAL)
    keys = dict.fromkeys(row.key for row in rows if row.scope is Scope.EVAL)
    single = [entry for key in keys for entry in _by_verdict(row for row in rows if row.key == key)]
    if pooled and (not keys or len(keys) == len(jobs)):
        return (replace(pooled[0], inside=tuple(single)), *pooled[1:])
    return (*single, *pooled)


def _by_verdict(rows: Iterable[Finding]) -> list[Moved]:
    """Metrics of one eval: one entry for those that have the same verdict."""
    found: dict[Verdict, list[Finding]] = {}
    for row in rows:
        found.setdefault(told_verdict(row), []).append(row)
    return [Moved(first, tuple(also)) for first, *also in found.values()]


def grouped(
    rows: Iterable[Finding], judged: Mapping[str, Collection[str]], order: Callable[[Finding], Any]
) -> tuple[Moved, ...]:
    """One entry per thing and direction: a point stands inside its curve, the curves inside a config that moved whole.

    Of the points of a curve only the first is kept; rows come in the order in which points are preferred.
    """
    things: dict[tuple[Scope, str, bool], list[Finding]] = {}
    points: dict[str, list[Finding]] = {}
    for row in rows:
        is_bad_side = row.verdict is Verdict.MIXED or badness(row) > 0
        things.setdefault((row.scope, row.key, is_bad_side), []).append(row)
        if row.scope is Scope.POINT:
            points.setdefault(curve_text(row), []).append(row)
    entries = [_thing(found, points) for found in things.values()]
    curves = [entry for entry in entries if entry.finding.scope is Scope.CURVE]
    keys = {entry.finding.key for entry in curves}
    loose = [
        entry for entry in entries if not (entry.finding.scope is Scope.POINT and curve_text(entry.finding) in keys)
    ]
    whole = [_whole(entry, curves, judged) for entry in loose if entry.finding.scope is Scope.CONFIG]
    taken = {id(part) for entry in whole for part in entry.inside}
    rest = [entry for entry in loose if entry.finding.scope is not Scope.CONFIG and id(entry) not in taken]
    return tuple(sorted([*whole, *rest], key=lambda entry: order(speaker(entry))))


def _thing(found: Sequence[Finding], points: Mapping[str, Sequence[Finding]]) -> Moved:
    first = teller(found)
    also = tuple(row for row in found if row is not first)
    inside = points.get(first.key, ())[:1] if first.scope is Scope.CURVE else ()
    return Moved(first, also, tuple(Moved(row) for row in inside))


def _whole(config: Moved, curves: Iterable[Moved], judged: Mapping[str, Collection[str]]) -> Moved:
    """A config with its curves inside where every judged one of them says the same as the config."""
    name = config.finding.config
    parts = [c for c in curves if name and c.finding.config == name and c.verdict is config.verdict]
    agree = {part.finding.key for part in parts} == set(judged.get(name, ())) and _one_way([config, *parts])
    return replace(config, inside=tuple(parts)) if agree else config


def _one_way(entries: Iterable[Moved]) -> bool:
    return len({badness(entry.finding) > 0 for entry in entries}) == 1


def at_largest_scope(entries: Sequence[Moved]) -> tuple[Moved, ...]:
    """Without the configs that sum up curves which stand beside them with another verdict."""
    curves = {entry.finding.config for entry in entries if entry.finding.scope is Scope.CURVE}
    return tuple(e for e in entries if not (e.finding.scope is Scope.CONFIG and e.finding.config in curves))


def speaker(entry: Moved) -> Finding:
    """The finding that tells an entry in a sentence: the mean of a mixed curve says nothing that one may act on."""
    while entry.finding.verdict is Verdict.MIXED and entry.inside:
        entry = entry.inside[0]
    return entry.finding


def teller(found: Sequence[Finding]) -> Finding:
    """Which of several metrics of one thing tells it: the worst verdict, throughput where they say the same."""
    worst = min(found, key=_gate_rank)
    first = min(found, key=_gate_order)
    is_same = first.scope is Scope.POINT and abs(badness(first) - badness(worst)) < SAME_MOVE
    return first if is_same else worst


def _gate_rank(finding: Finding) -> tuple[int, int]:
    return (RANK[finding.verdict], _gate_order(finding))


def _gate_order(finding: Finding) -> int:
    """Throughput first; TPOT first for a curve that spans several nodes."""
    if finding.metric not in GATE_METRICS:
        return len(GATE_METRICS)
    place = GATE_METRICS.index(finding.metric)
    series = finding.series
    turned = finding.scope is Scope.CURVE and series is not None and series.layout.multinode
    return len(GATE_METRICS) - 1 - place if turned else place
