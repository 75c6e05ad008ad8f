"""Numbers to findings: the only module that may call a sweep worse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from store.metrics import Part, metric
from store.records import Caveat, Evidence, Finding, Scope, Unmatched, Verdict
from tracker.judge import numbers
from tracker.judge.crosscheck import CALLED, crosscheck
from tracker.judge.learn import learn
from tracker.judge.numbers import Group, Sheet
from tracker.matrix import Curve, Flags, same_identity
from tracker.pairs import Baseline, CurvePair, pair
from tracker.settings import Settings
from tracker.stats.families import benjamini_hochberg
from tracker.stats.noise import Floats, Ints, Scales

JUDGED_VERDICTS = frozenset(Verdict) - {Verdict.NO_BASELINE, Verdict.NOT_JUDGED, Verdict.NOT_COMPARABLE}
"""Verdicts that a curve with a twin can have."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Everything that a comparison of a candidate with its history said."""

    findings: tuple[Finding, ...]
    unmatched: tuple[Unmatched, ...]
    baseline_runs: tuple[str, ...]


def judge_frames(history: pl.DataFrame, candidate: pl.DataFrame, settings: Settings, baseline: Baseline) -> Judged:
    """Judge a candidate against its history (tidy frames, see `tracker.pairs`).

    Effects, intervals and `mde` (positive) are natural log ratios of candidate over baseline. Findings come for points,
    curves and, where the frames name them, configurations.
    """
    pairing = pair(history, candidate, baseline, settings.max_baseline_runs)
    scales = settings.scales or learn(history, settings)
    settled = judge_settled(pairing.pairs, scales, settings, recovery=baseline.kind == "previous")
    findings = [*settled, *_without_baseline(pairing.curves, pairing.pairs)]
    runs = sorted({run.key for one in pairing.pairs for run in one.baseline_runs})
    return Judged(tuple(findings), pairing.unmatched, tuple(runs))


def judge_settled(pairs: Sequence[CurvePair], scales: Scales, settings: Settings, *, recovery: bool) -> list[Finding]:
    """Findings of all matched curves after a second look at other baselines; `recovery` asks for the last good one."""

    def judge(some: Sequence[CurvePair]) -> list[Finding]:
        return judge_pairs(some, scales, settings)

    return crosscheck(judge(pairs), pairs, judge, settings, recovery=recovery)


def judge_pairs(pairs: Sequence[CurvePair], scales: Scales, settings: Settings) -> list[Finding]:
    """Findings of all matched curves, their points and their configurations."""
    made = numbers.sheet(pairs, scales, settings)
    if made is None:
        return [*_shown(pairs)]
    ruled, facts = rule(made, settings), _facts(made, settings)
    findings = [
        *_point_findings(made, ruled, facts, settings),
        *_group_findings(made, ruled, Scope.CURVE, facts, settings),
    ]
    configs = [one.curve.config for one in pairs]
    if all(configs):
        whole = numbers.regrouped(made, configs, settings)
        findings += _group_findings(whole, rule(whole, settings), Scope.CONFIG, facts, settings)
    return [*findings, *_shown(pairs)]


# ---------------------------------------------------------------- rules


@dataclass(frozen=True, slots=True)
class Ruled:
    """Verdicts by the numbers alone, before what is known about images and machines."""

    groups: tuple[Verdict, ...]
    points: tuple[Verdict, ...]
    adjusted: Floats
    """p of each group within its family of tests."""


def rule(made: Sheet, settings: Settings) -> Ruled:
    """Apply margins, error rates and families of tests."""
    adjusted = _families(made)
    q = np.array([settings.q_gate if _part(made, g) is Part.GATE else settings.q_advisory for g in made.groups])
    survives = adjusted <= q
    lone, points = _rule_points(made, survives, settings)
    return Ruled(_rule_groups(made, survives, lone, settings), points, adjusted)


@dataclass(frozen=True, slots=True)
class _Lone:
    """Cells that are far enough on their own: called (in which direction), or at least suspected."""

    worse: Flags
    better: Flags
    suspected: Flags


def _rule_groups(made: Sheet, survives: Flags, lone: _Lone, settings: Settings) -> tuple[Verdict, ...]:
    """Verdicts of curves: by the pooled test, or by a point that speaks for itself."""
    numbers_of, cells = made.curves, made.cells
    good = numbers_of.effect * _signs(made)
    far = np.abs(good) >= cells.curve_margin
    called = far & (numbers_of.p_pooled <= cells.alpha) & survives & _witnessed_groups(made, good, settings)
    worse = (called & (good < 0)) | _any(made, lone.worse)
    better = (called & (good > 0)) | _any(made, lone.better)
    maybe = (far & (numbers_of.p_pooled <= settings.alpha_suspected)) | _any(made, lone.suspected)
    equal = np.maximum(np.abs(numbers_of.low90), np.abs(numbers_of.high90)) < cells.curve_margin
    return _verdicts(worse, better, equal, maybe, numbers_of.mde > _noisy_limits(made))


def _rule_points(made: Sheet, survives: Flags, settings: Settings) -> tuple[_Lone, tuple[Verdict, ...]]:
    """Points that speak for their curve (Holm, and both gate metrics), and the verdict of each point.

    A point of a curve that moved as a whole needs no allowance for having been picked out of it.
    """
    points, cells, of = made.points, made.cells, made.cells.group
    good = points.effect * _signs(made)[of]
    far = np.abs(good) >= cells.point_margin[of]
    alone = far & (points.adjusted <= cells.alpha_point[of]) & survives[of] & _witnessed_points(made, good, settings)
    group_moved = (made.curves.p_pooled <= cells.alpha) & survives
    called = alone | (far & (points.p <= cells.alpha_point[of]) & group_moved[of])
    lone = _Lone(alone & (good < 0), alone & (good > 0), far & (points.adjusted <= settings.alpha_suspected))
    equal = np.abs(points.effect) + points.reach90 < cells.point_margin[of]
    maybe = far & (points.p <= settings.alpha_suspected)
    noisy = points.mde > _noisy_limits(made)[of]
    return lone, _verdicts(called & (good < 0), called & (good > 0), equal, maybe, noisy)


def _signs(made: Sheet) -> Floats:
    """+1 for a metric where more is better, -1 where less is."""
    return np.array([1.0 if metric(group.metric).improves(1.0) else -1.0 for group in made.groups])


def _noisy_limits(made: Sheet) -> Floats:
    return np.array([group.limits.noisy for group in made.groups])


def _any(made: Sheet, cells: Flags) -> Flags:
    """Groups with at least one such cell."""
    return np.bincount(made.cells.group, cells, len(made.groups)) > 0


_WITNESSES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"tput_per_gpu": ("median_tpot", "median_e2el"), "median_tpot": ("tput_per_gpu",)}
)
"""Who may confirm a change of a gate metric. The first is asked for where it was measured; another may stand in for it:
a loss in prefill moves throughput and the whole request, but not the time between tokens."""


def _witnessed_groups(made: Sheet, good: Floats, settings: Settings) -> Flags:
    """A witness moved the same way, or none was measured, or the change is too large to need one."""
    place = {(group.key, _canonical(group)): g for g, group in enumerate(made.groups)}
    seen: Flags = np.abs(good) >= settings.witness_free
    for g, group in enumerate(made.groups):
        others = [place.get((group.key, name)) for name in _WITNESSES.get(_canonical(group), ())]
        share = settings.witness_share * abs(good[g])
        agree = any(other is not None and good[other] * np.sign(good[g]) >= share for other in others)
        seen[g] |= not others or others[0] is None or agree
    return seen


def _witnessed_points(made: Sheet, good: Floats, settings: Settings) -> Flags:
    """The same for points: a witness suspects them too, and on one node calls what is small."""
    names, of = np.array([_canonical(group) for group in made.groups]), made.cells.group
    several = np.array([group.several_nodes for group in made.groups])[of]
    lenient = several | (np.abs(good) >= settings.witness_strict)
    limit = np.where(lenient, settings.alpha_suspected, made.cells.alpha_point[of])
    seen: Flags = np.abs(good) >= settings.witness_free
    for name in set(names.tolist()):
        mine = np.flatnonzero(names[of] == name)
        others = _WITNESSES.get(name, ())
        partners = [_same_points(made, mine, np.flatnonzero(names[of] == other)) for other in others]
        seen[mine] |= partners[0] < 0 if partners else True
        for partner in partners:
            agrees = (made.points.adjusted[partner] <= limit[mine]) & (np.sign(good[partner]) == np.sign(good[mine]))
            seen[mine] |= (partner >= 0) & agrees
    return seen


def _canonical(group: Group) -> str:
    """The metric that the group's own stands for: interactivity is judged as TPOT."""
    return metric(group.metric).same_as or group.metric.removesuffix("_ms")


def _same_points(made: Sheet, mine: Ints, theirs: Ints) -> Ints:
    """For each of my cells the other metric's cell of the same point; -1 where it was not measured."""
    position = np.full(int(made.point.max(initial=0)) + 1, -1)
    position[made.point[theirs]] = theirs
    return position[made.point[mine]]


def _verdicts(worse: Flags, better: Flags, equal: Flags, maybe: Flags, noisy: Flags) -> tuple[Verdict, ...]:
    """The first rule that holds."""
    rules = (
        (worse & better, Verdict.MIXED),
        (worse, Verdict.REGRESSION),
        (better, Verdict.IMPROVEMENT),
        (equal, Verdict.EQUIVALENT),
        (maybe, Verdict.SUSPECTED),
        (noisy, Verdict.NOISY),
    )
    first = np.select([held for held, _ in rules], range(len(rules)), len(rules))
    names = (*(verdict for _, verdict in rules), Verdict.INCONCLUSIVE)
    return tuple(names[index] for index in first.tolist())


def _part(made: Sheet, group: Group) -> Part:
    """On several nodes throughput is several times noisier than TPOT: there it advises, where TPOT is measured."""
    if not (group.several_nodes and group.family == "throughput"):
        return group.part
    has_tpot = any(g.pair == group.pair and g.family == "tpot" for g in made.groups)
    return Part.ADVISORY if has_tpot else group.part


def _families(made: Sheet) -> Floats:
    """Benjamini-Hochberg over the curves of the comparison: gate metrics and advisory ones apart."""
    gate = np.array([_part(made, group) is Part.GATE for group in made.groups])
    adjusted = np.empty(len(gate))
    for family in (gate, ~gate):
        adjusted[family] = benjamini_hochberg(made.curves.p[family])
    return adjusted


# ---------------------------------------------------------------- findings


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the findings of one pair have in common."""

    fields: Mapping[str, Any]
    """Fields of `Finding` that are the same in all of them."""
    unchanged: bool
    """Same image and same recipe for certain: whatever moved, the software did not."""
    several_candidates: bool
    signature: bool
    caveats: tuple[Caveat, ...]


def _facts(made: Sheet, settings: Settings) -> list[_Facts]:
    marked = _signatures(made, settings)
    return [_fact(one, index in marked, settings) for index, one in enumerate(made.pairs)]


def _fact(one: CurvePair, signature: bool, settings: Settings) -> _Facts:
    old, new = one.baseline_runs[-1], one.curve.candidates[-1]
    strangers = tuple(run.key for run in one.curve.strangers)
    mixed = (Caveat.of("mixed_candidate", left_out=", ".join(strangers)),) if strangers else ()
    fields = {
        "config": one.curve.config,
        "baseline_runs": tuple(run.record for run in one.baseline_runs if run.record),
        "candidate_runs": tuple(run.record for run in one.curve.candidates if run.record),
        "baseline_image": old.image,
        "candidate_image": new.image,
        "rules_version": settings.rules_version,
    }
    several = len(one.curve.candidates) > 1
    return _Facts(fields, same_identity(old, new), several, signature, (*one.caveats, *mixed))


def _signatures(made: Sheet, settings: Settings) -> frozenset[int]:
    """Pairs that look like a bad night: all points slower together, while the time between tokens did not move."""
    place = {(group.pair, group.metric): g for g, group in enumerate(made.groups)}
    effect, mean = made.curves.effect, np.bincount(made.cells.group, made.points.effect) / made.curves.size
    spread = np.bincount(made.cells.group, (made.points.effect - mean[made.cells.group]) ** 2) / made.curves.size
    together = np.sqrt(spread) <= settings.signature_spread * np.abs(mean)
    return frozenset(
        pair
        for (pair, name), g in place.items()
        if name == "median_tpot"
        and (itl := place.get((pair, "median_itl"))) is not None
        and abs(effect[itl]) < settings.signature_itl
        and abs(effect[g]) >= made.groups[g].limits.curve
        and together[g]
    )


def _settled(
    verdict: Verdict, effect: float, group: Group, facts: _Facts, settings: Settings
) -> tuple[Verdict, tuple[Caveat, ...]]:
    """The verdict once images, machines and plausibility are known, with what there is to doubt."""
    if verdict not in CALLED:
        return verdict, ()
    if facts.unchanged:
        return Verdict.SUSPECTED, (Caveat.of("environment"),)
    doubts = []
    gain = effect if metric(group.metric).improves(1.0) else -effect
    if gain > settings.implausible_gain:
        doubts.append(Caveat.of("implausible_gain", limit=settings.implausible_gain))
    if not facts.several_candidates and verdict is not Verdict.IMPROVEMENT:
        doubts.append(Caveat.of("single_run"))
    if facts.signature and not facts.several_candidates:
        doubts.append(Caveat.of("rerun"))
        return Verdict.SUSPECTED, tuple(doubts)
    return verdict, tuple(doubts)


def _point_findings(made: Sheet, ruled: Ruled, facts: Sequence[_Facts], settings: Settings) -> Iterator[Finding]:
    """One finding a cell."""
    points = made.points
    places = _rows((made.cells.group, made.pair, made.row, made.flaky, made.older))
    statistics = _rows((points.effect, points.low, points.high, points.p, points.mde))
    evidence = _point_evidence(made)
    for verdict, where, numbers_of, seen in zip(ruled.points, places, statistics, evidence, strict=True):
        g, index, row, flaky, older = where
        effect, low, high, p, mde = numbers_of
        group, fact, (base,), (new,) = made.groups[g], facts[index], seen.baseline, seen.candidate
        said, doubts = _settled(verdict, effect, group, fact, settings)
        yield Finding(
            scope=Scope.POINT,
            key=made.pairs[index].curve.series[row],
            metric=group.metric,
            verdict=said,
            effect=effect,
            low=low,
            high=high,
            p=p,
            mde=mde,
            n_baseline=len(base),
            n_candidate=len(new),
            baseline=_geometric(base),
            candidate=_geometric(new),
            caveats=(*fact.caveats, *_cell_caveats(flaky, older), *doubts),
            evidence=seen,
            **fact.fields,
        )


def _point_evidence(made: Sheet) -> Iterator[Evidence]:
    """What each point's verdict rests on."""
    of = made.cells.group
    columns = _rows((of, made.pair, made.row, made.points.sigma, made.cells.correlation[of], made.points.adjusted))
    for base, new, (g, index, row, sigma, correlation, adjusted) in zip(
        made.baseline, made.candidate, columns, strict=True
    ):
        yield Evidence(
            members=(made.pairs[index].curve.series[row],),
            baseline=(base,),
            candidate=(new,),
            sigma=(sigma,),
            scale_source=made.sources[g],
            correlation=correlation,
            margin=made.groups[g].limits.point,
            alpha=made.groups[g].limits.alpha_point,
            p_adjusted=adjusted,
        )


def _rows(columns: Sequence[np.ndarray[Any, Any]]) -> Iterator[tuple[Any, ...]]:
    """Columns to rows of plain Python values (a loop over numpy scalars is ten times slower)."""
    return zip(*(column.tolist() for column in columns), strict=True)


def _cell_caveats(flaky: int, older: bool) -> tuple[Caveat, ...]:
    return (Caveat.of("flaky_baseline", dropped=flaky),) * (flaky > 0) + (Caveat.of("older_baseline"),) * older


def _geometric(values: Sequence[float]) -> float:
    return exp(sum(map(log, values)) / len(values))


def _group_findings(
    made: Sheet, ruled: Ruled, scope: Scope, facts: Sequence[_Facts], settings: Settings
) -> Iterator[Finding]:
    """One finding a curve (or a configuration) and metric."""
    pooled = made.curves
    statistics = _rows((pooled.size, pooled.effect, pooled.low, pooled.high, pooled.p, pooled.mde))
    members = _members(made)
    evidence = _group_evidence(made, members, ruled.adjusted)
    for group, verdict, numbers_of, cells, seen in zip(
        made.groups, ruled.groups, statistics, members, evidence, strict=True
    ):
        size, effect, low, high, p, mde = numbers_of
        fact = facts[group.pair]
        said, doubts = _settled(verdict, effect, group, fact, settings)
        yield Finding(
            scope=scope,
            key=group.key,
            metric=group.metric,
            verdict=said,
            effect=effect,
            low=low,
            high=high,
            p=p,
            mde=mde,
            n_baseline=max(map(len, seen.baseline)),
            n_candidate=max(map(len, seen.candidate)),
            n_points=size,
            caveats=(*fact.caveats, *_members_caveats(made, cells), *doubts),
            evidence=seen,
            **fact.fields,
        )


def _members(made: Sheet) -> list[slice]:
    """Where the cells of each group stand."""
    edges = np.searchsorted(made.cells.group, np.arange(len(made.groups) + 1)).tolist()
    return [slice(start, stop) for start, stop in pairwise(edges)]


def _group_evidence(made: Sheet, members: Sequence[slice], adjusted: Floats) -> Iterator[Evidence]:
    """What the verdict of each group rests on."""
    sigma, series = made.points.sigma.tolist(), _series(made)
    columns = _rows((made.cells.correlation, adjusted))
    for g, (cells, (correlation, p_adjusted)) in enumerate(zip(members, columns, strict=True)):
        yield Evidence(
            members=tuple(series[cells]),
            baseline=tuple(made.baseline[cells]),
            candidate=tuple(made.candidate[cells]),
            sigma=tuple(sigma[cells]),
            scale_source=made.sources[g],
            correlation=correlation,
            margin=made.groups[g].limits.curve,
            alpha=made.groups[g].limits.alpha,
            p_adjusted=p_adjusted,
        )


def _series(made: Sheet) -> list[str]:
    """The series of each cell."""
    return [made.pairs[index].curve.series[row] for index, row in _rows((made.pair, made.row))]


def _members_caveats(made: Sheet, members: slice) -> tuple[Caveat, ...]:
    flaky, older = int((made.flaky[members] > 0).sum()), int(made.older[members].sum())
    return (Caveat.of("flaky_baseline", points=flaky),) * (flaky > 0) + (Caveat.of("older_baseline", points=older),) * (
        older > 0
    )


def _without_baseline(curves: Sequence[Curve], pairs: Sequence[CurvePair]) -> Iterator[Finding]:
    """A curve that nothing stands against still gets its line, metric by metric."""
    matched = {one.curve.key for one in pairs}
    for curve in curves:
        if curve.key in matched:
            continue
        measured = {name for name, row in zip(curve.metrics, curve.candidate, strict=True) if np.isfinite(row).any()}
        for name in numbers.judged_as(measured):
            yield Finding(Scope.CURVE, curve.key, name, Verdict.NO_BASELINE, config=curve.config)


def _shown(pairs: Sequence[CurvePair]) -> Iterator[Finding]:
    """Metrics that no rule covers: kept and shown, never judged."""
    for one in pairs:
        names = [one.curve.metrics[cell] for cell in one.cells.tolist()]
        judged = numbers.judged_as(names)
        change = np.nanmean(one.candidate, axis=1) - np.nanmean(one.baseline, axis=1)
        for name in dict.fromkeys(names):
            if name in judged or metric(name).same_as is not None:
                continue
            rows = [position for position, other in enumerate(names) if other == name]
            yield Finding(
                scope=Scope.CURVE,
                key=one.curve.key,
                metric=name,
                verdict=Verdict.NOT_JUDGED,
                effect=float(change[rows].mean()),
                n_baseline=len(one.baseline_runs),
                n_candidate=len(one.curve.candidates),
                n_points=len(rows),
                config=one.curve.config,
            )
