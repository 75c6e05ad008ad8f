"""Frontiers to findings: what a group of curves reaches together, whatever layouts each side has."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from store.identity import curve_key, group_key
from store.records import Caveat, Evidence, Finding, Frontier, Scope, Verdict
from tracker.judge.groups import OUTPUT, Group, Sweeps, View, group_of
from tracker.matrix import curves, same_identity, tidy
from tracker.pairs import Baseline, software_caveats
from tracker.settings import Settings
from tracker.stats import frontier as stats
from tracker.stats import noise
from tracker.stats.families import benjamini_hochberg
from tracker.stats.noise import Floats

SHIFT, PEAK, LATENCY_SHIFT = "frontier_tput_per_gpu", "peak_tput_per_gpu", "latency_frontier_tput_per_gpu"

SAME_LAYOUTS, BESIDE_CURVES = "frontier_same_layouts", "frontier_beside_curves"
_BESIDE_SHIFT: Mapping[str, str] = MappingProxyType(
    {PEAK: "peak_beside_frontier", LATENCY_SHIFT: "latency_beside_frontier"}
)
"""What the shift at equal interactivity speaks for too."""


@dataclass(frozen=True, slots=True)
class Judged:
    findings: tuple[Finding, ...] = ()
    frontiers: tuple[Frontier, ...] = ()


def judge_frontiers(
    sweeps: Sweeps, twins: Collection[str], scales: noise.Scales, settings: Settings, baseline: Baseline
) -> Judged:
    """Judge every group that both sides measured; `twins` are the curves that were judged by themselves."""
    groups = {curve_key(one): group_key(one) for one in sweeps.series.values()}
    spoken = {groups[key] for key in twins if key in groups}
    frames = (_regrouped(frame, groups) for frame in (sweeps.history, sweeps.candidate))
    found = curves(*frames, named=baseline.kind == "run")
    made = [one for curve in found if (one := group_of(curve, sweeps, scales, settings, baseline)) is not None]
    adjusted = {rule.name: _adjusted(made, rule.name) for rule in _Rule.all(settings)}
    findings = [
        one
        for place, group in enumerate(made)
        for one in _findings(group, settings, {name: p[place] for name, p in adjusted.items()}, spoken)
    ]
    return Judged(tuple(findings), tuple(group.frontier for group in made))


def _regrouped(frame: pl.DataFrame, groups: Mapping[str, str]) -> pl.DataFrame:
    """The frame with groups in the place of curves; rows of curves that nobody knows are left out."""
    rows = tidy(frame).filter(pl.col("curve").is_in(list(groups)))
    return rows.with_columns(pl.col("curve").replace_strict(groups, return_dtype=pl.String))


# ---------------------------------------------------------------- verdicts


def _view(group: Group, name: str) -> View | None:
    return group.latency if name == LATENCY_SHIFT else group.view


def _estimate(group: Group, name: str) -> stats.Estimate | None:
    view = _view(group, name)
    if view is None:
        return None
    return view.shift.peak if name == PEAK else view.shift.shift


def _adjusted(groups: Sequence[Group], name: str) -> Floats:
    """Each group's p within its family of tests; 1 where the sides share no interactivity."""
    found = [_estimate(group, name) for group in groups]
    return benjamini_hochberg(np.array([1.0 if one is None else one.p for one in found]))


@dataclass(frozen=True, slots=True)
class _Rule:
    """Which claim, the margin it must pass (natural log units), and with which error rate."""

    name: str
    margin: float
    alpha: float

    @classmethod
    def all(cls, settings: Settings) -> tuple[_Rule, ...]:
        limits = settings.limits["throughput"]
        return (
            cls(SHIFT, limits.curve, settings.alpha_frontier),
            cls(PEAK, limits.point, settings.alpha_peak),
            cls(LATENCY_SHIFT, limits.curve, settings.alpha_frontier),
        )


def _verdict(group: Group, rule: _Rule, adjusted: float, settings: Settings) -> Verdict:
    """By the numbers alone. Frontiers that cross, each beyond its band, are mixed whatever their mean says."""
    found, margin = _estimate(group, rule.name), rule.margin
    if found is None:
        return Verdict.NOT_COMPARABLE
    view = _view(group, rule.name)
    if view and rule.name != PEAK and _crosses(view.shift, margin):
        return Verdict.MIXED
    far = abs(found.effect) >= margin
    rules = (
        (far and found.p <= rule.alpha and adjusted <= settings.q_gate, _direction(found.effect)),
        (max(abs(found.low90), abs(found.high90)) < margin, Verdict.EQUIVALENT),
        (far and found.p <= settings.alpha_suspected, Verdict.SUSPECTED),
        (found.detectable(rule.alpha, margin, settings.power) > settings.limits["throughput"].noisy, Verdict.NOISY),
    )
    return next((verdict for held, verdict in rules if held), Verdict.INCONCLUSIVE)


def _direction(effect: float) -> Verdict:
    return Verdict.REGRESSION if effect < 0 else Verdict.IMPROVEMENT


def _crosses(found: stats.Shift, margin: float) -> bool:
    better = (found.gaps - found.band > 0) & (found.gaps >= margin)
    worse = (found.gaps + found.band < 0) & (found.gaps <= -margin)
    return bool(better.any() and worse.any())


_CALLED = frozenset({Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.MIXED})


def _doubts(group: Group, name: str, verdict: Verdict, effect: float, settings: Settings) -> Iterator[Caveat]:
    yield from software_caveats(group.sides.curve, group.sides.chosen)
    if left_out := group.view.left_out:
        yield Caveat.of("frontier_left_out", points=left_out)
    if group.frontier.interactivity.shared is None and name == SHIFT:
        yield Caveat.of("no_shared_interactivity")
    if verdict in _CALLED and effect > settings.implausible_gain:
        yield Caveat.of("implausible_gain", limit=settings.implausible_gain)
    if verdict in (Verdict.REGRESSION, Verdict.MIXED) and len(group.sides.curve.candidates) < 2:
        yield Caveat.of("single_run")


def _role(group: Group, name: str, spoken: Collection[str]) -> Iterator[Caveat]:
    """Why a finding decides no headline: something else speaks for the same change already."""
    if group.frontier.key in spoken:
        yield Caveat.of(SAME_LAYOUTS if group.frontier.is_same else BESIDE_CURVES)
    elif name in _BESIDE_SHIFT and group.frontier.interactivity.shared is not None:
        yield Caveat.of(_BESIDE_SHIFT[name])


def _findings(
    group: Group, settings: Settings, adjusted: Mapping[str, float], spoken: Collection[str]
) -> Iterator[Finding]:
    """The shift at equal interactivity, the peak as a claim of its own, and the shift at equal latency beside them."""
    for rule in _Rule.all(settings):
        view = _view(group, rule.name)
        if view is None:
            continue
        found, p = _estimate(group, rule.name), float(adjusted[rule.name])
        verdict = _verdict(group, rule, p, settings)
        role = tuple(_role(group, rule.name, spoken))
        verdict, more = _settled(group, verdict, found.effect if found else 0.0, role)
        doubts = [*_doubts(group, rule.name, verdict, found.effect if found else 0.0, settings), *more]
        yield replace(
            _plain_finding(group, view, rule.name),
            verdict=verdict,
            **(_statistics(found, rule, settings) if found else {}),
            caveats=(*role, *doubts),
            evidence=_evidence(group, view, rule, p),
            rules_version=settings.rules_version,
        )


def _settled(
    group: Group, verdict: Verdict, effect: float, role: Sequence[Caveat]
) -> tuple[Verdict, tuple[Caveat, ...]]:
    """The verdict once it is known who speaks, what is still awaited, and whether the software moved at all."""
    if any(caveat.code == SAME_LAYOUTS for caveat in role):
        # The curves were held against other baselines too: a second verdict could only contradict them.
        return Verdict.NOT_JUDGED, ()
    worse = verdict in (Verdict.REGRESSION, Verdict.MIXED) or (verdict is Verdict.SUSPECTED and effect < 0)
    if worse and group.awaited:
        return Verdict.INCONCLUSIVE, (Caveat.of("frontier_incomplete", points=group.awaited),)
    if verdict in _CALLED and group.frontier.is_same and same_identity(group.sides.before, group.sides.after):
        return Verdict.SUSPECTED, (Caveat.of("environment"),)
    return verdict, ()


def _statistics(found: stats.Estimate, rule: _Rule, settings: Settings) -> dict[str, Any]:
    mde = found.detectable(rule.alpha, rule.margin, settings.power)
    return {"effect": found.effect, "low": found.low, "high": found.high, "p": found.p, "mde": mde}


def _plain_finding(group: Group, view: View, name: str) -> Finding:
    sides, (_, new) = group.sides, view.kept
    peaks = [exp(float(side.output.max())) for side in view.pair]
    runs = [sides.curve.runs[column] for column in sides.chosen.tolist()]
    return Finding(
        scope=Scope.FRONTIER,
        key=group.frontier.key,
        metric=name,
        verdict=Verdict.INCONCLUSIVE,
        n_baseline=len(runs),
        n_candidate=len(sides.curve.candidates),
        n_points=int(new.sum()),
        baseline=peaks[0] if name == PEAK else None,
        candidate=peaks[1] if name == PEAK else None,
        config=group.frontier.config,
        baseline_runs=tuple(run.record for run in runs if run.record),
        candidate_runs=tuple(run.record for run in sides.curve.candidates if run.record),
        baseline_image=sides.before.image,
        candidate_image=sides.after.image,
    )


def _evidence(group: Group, view: View, rule: _Rule, adjusted: float) -> Evidence:
    """Both numbers of every point that counts on a side: throughput under its key, then the axis's beside it."""
    sides, points, (old, new) = group.sides, view.points, view.kept
    rows = np.flatnonzero(old | new)
    members, before, after, sigma = [], [], [], []
    for name, cells, measured in zip((OUTPUT, view.axis), (points.output, points.speed), view.measured, strict=True):
        for row in rows.tolist():
            members.append(points.keys[row] if name == OUTPUT else f"{points.keys[row]} {name}")
            before.append(_values(sides.curve.values[cells[row], sides.chosen]) if old[row] else ())
            after.append(_values(sides.curve.candidate[cells[row]]) if new[row] else ())
            sigma.append(float(measured.sigma[row]))
    return Evidence(
        members=tuple(members),
        baseline=tuple(before),
        candidate=tuple(after),
        sigma=tuple(sigma),
        scale_source=view.measured[0].source,
        correlation=group.correlation,
        margin=rule.margin,
        alpha=rule.alpha,
        p_adjusted=adjusted,
    )


def _values(row: Floats) -> tuple[float, ...]:
    return tuple(np.exp(row[np.isfinite(row)]).tolist())
