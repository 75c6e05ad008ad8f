"""Frontiers to findings: what a group of curves reaches together, whatever layouts each side has.

A group is everything that a dashboard draws as one line. Its baseline is chosen as a curve's is, over all layouts at
once. No point that one side merely failed to measure counts for either: a loss is never called on what is not there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from store.identity import curve_key, group_key, layout_text
from store.images import Sameness
from store.metrics import Better, metric
from store.records import Caveat, Evidence, Finding, Frontier, Layout, LayoutChange, LayoutKind, Scope, Series, Verdict
from tracker import topology
from tracker.judge import numbers
from tracker.matrix import Curve, CurveRun, Flags, Scatter, curves, same_identity, same_software, scatter, tidy
from tracker.pairs import Baseline, chosen_runs, lent, software_caveats
from tracker.settings import Settings
from tracker.stats import frontier as stats
from tracker.stats import noise
from tracker.stats.families import benjamini_hochberg
from tracker.stats.noise import Floats, Ints

OUTPUT = "tput_per_gpu"
SHIFT, PEAK = "frontier_tput_per_gpu", "peak_tput_per_gpu"

_USUAL_AXES = ("median_tpot",)
AXES: Mapping[str, tuple[str, ...]] = MappingProxyType({"agentic_traces": ("p90_e2e_norm_intvty", *_USUAL_AXES)})
"""Scenario -> what its interactivity is read from: the first that every point of both sides has."""
METRICS = (OUTPUT, *dict.fromkeys(name for axes in (*AXES.values(), _USUAL_AXES) for name in axes))
"""All that a frontier needs of a frame."""
LEAST_POINTS = 2
"""A lone point on a side is no frontier, and its throughput no peak."""
_FAMILIES: Mapping[str, str] = MappingProxyType(
    {OUTPUT: "throughput", "median_tpot": "tpot", "p90_e2e_norm_intvty": "tail_tpot"}
)

SAME_LAYOUTS, BESIDE_CURVES, BESIDE_SHIFT = "frontier_same_layouts", "frontier_beside_curves", "peak_beside_frontier"


@dataclass(frozen=True, slots=True)
class Sweeps:
    """What is judged: tidy frames that hold `METRICS`, the series of all their keys, and what the config promised."""

    history: pl.DataFrame
    candidate: pl.DataFrame
    series: Mapping[str, Series]
    asked: Mapping[str, Series] | None = None
    """The points that the candidate was asked for, by key; None where nobody knows."""


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
    made = [one for curve in found if (one := _group(curve, sweeps, scales, settings, baseline)) is not None]
    adjusted = {name: _adjusted(made, name) for name in (SHIFT, PEAK)}
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


# ---------------------------------------------------------------- points


@dataclass(frozen=True, slots=True)
class _Points:
    """The points of a group that have both numbers on a side; one entry a point."""

    keys: tuple[str, ...]
    series: tuple[Series, ...]
    layout: tuple[Layout, ...]
    output: Ints
    """Row of the throughput in the matrix."""
    speed: Ints
    """Row of the interactivity."""
    old: Flags
    """The baseline has it."""
    new: Flags
    """The candidate has it."""
    ever: Flags
    """Any run of the history has it."""

    @property
    def layouts(self) -> Ints:
        """The number of each point's layout."""
        return np.unique([layout_text(one) for one in self.layout], return_inverse=True)[1]

    @property
    def conc(self) -> Ints:
        return np.array([one.conc or 1 for one in self.series])


def _points(curve: Curve, chosen: Ints, axis: str, series: Mapping[str, Series]) -> _Points:
    rows = {place: row for row, place in enumerate(zip(curve.series, curve.metrics, strict=True))}
    both = [key for key, name in rows if name == OUTPUT and (key, axis) in rows and key in series]
    output, speed = (np.array([rows[key, name] for key in both], np.int64) for name in (OUTPUT, axis))
    known: Flags = np.isfinite(curve.values[output]) & np.isfinite(curve.values[speed])
    mine: Flags = np.isfinite(curve.candidate[output]) & np.isfinite(curve.candidate[speed])
    told = tuple(series[key] for key in both)
    return _Points(
        keys=tuple(both),
        series=told,
        layout=tuple(one.layout for one in told),
        output=output,
        speed=speed,
        old=_any(known[:, chosen]),
        new=_any(mine),
        ever=_any(known),
    )


def _any(rows: Flags) -> Flags:
    found: Flags = np.asarray(rows.any(axis=1))
    return found


def _axis(curve: Curve, chosen: Ints, series: Mapping[str, Series]) -> tuple[str, _Points] | None:
    """The interactivity to compare at, and the points that have it; None where a side has none."""
    told = [series[key] for key in curve.series if key in series]
    axes = AXES.get(told[0].scenario, _USUAL_AXES) if told else ()
    found = [(axis, _points(curve, chosen, axis, series)) for axis in axes]
    fit = [one for one in found if one[1].old.any() and one[1].new.any()]
    # An axis that some points lack would leave whole layouts out: the one that most points have is the fair one.
    return max(fit, key=lambda one: int(one[1].old.sum() + one[1].new.sum()), default=None)


# ---------------------------------------------------------------- layouts


def _layouts(points: _Points, group: _Sides, asked: Collection[str] | None) -> tuple[LayoutChange, ...]:
    """What became of every layout: first what a side merely does not hold, then the pairs of `tracker.topology`."""
    old, new, ever = (_by_layout(points, flags) for flags in (points.old, points.new, points.ever))
    asked_for = None if asked is None or not any(key in asked for key in points.keys) else asked
    unseen = {one: "not_in_baseline_runs" for one in new if one not in old and one in ever}
    gone = {one: rule for one in old if one not in new and (rule := _absence(old[one], points, asked_for))}
    pairs = topology.match(
        (topology.Shape(one, group.recipe(rows, points, "old"), _concs(rows, points))
         for one, rows in old.items() if one not in gone),
        (topology.Shape(one, group.recipe(rows, points, "new"), _concs(rows, points))
         for one, rows in new.items() if one not in unseen),
    )  # fmt: skip
    if asked_for is None and not any(one.after and one.kind is not LayoutKind.SAME for one in pairs):
        pairs = tuple(_unexplained(one) for one in pairs)
    told = (
        replace(one, rule="not_asked_for") if asked_for and one.kind is LayoutKind.RETIRED else one for one in pairs
    )
    apart = [LayoutChange(LayoutKind.ABSENT, rule, one, None) for one, rule in gone.items()]
    return (*told, *apart, *(LayoutChange(LayoutKind.ABSENT, rule, None, one) for one, rule in unseen.items()))


def _by_layout(points: _Points, flags: Flags) -> dict[Layout, list[int]]:
    found: dict[Layout, list[int]] = {}
    for place in np.flatnonzero(flags).tolist():
        found.setdefault(points.layout[place], []).append(place)
    return found


def _concs(rows: Iterable[int], points: _Points) -> frozenset[int]:
    return frozenset(points.series[row].conc or 1 for row in rows)


def _absence(rows: Iterable[int], points: _Points, asked: Collection[str] | None) -> str:
    """Why a layout that the candidate lacks is no retired one: its config asks for it still."""
    return "not_arrived" if asked is not None and any(points.keys[row] in asked for row in rows) else ""


def _unexplained(one: LayoutChange) -> LayoutChange:
    """Nothing stands in its place and no config is known: then nobody can tell a retired layout from a failed job."""
    return replace(one, kind=LayoutKind.ABSENT, rule="plan_unknown") if one.kind is LayoutKind.RETIRED else one


def _counted(points: _Points, layouts: Sequence[LayoutChange], asked: Collection[str] | None) -> tuple[Flags, Flags]:
    """Which points count on each side.

    A point of the baseline counts where the candidate has it too, was not asked for it, or has its layout no more; one
    of the candidate where the baseline has it too or no run ever had it.
    """
    kept = {one.before for one in layouts if one.kind in (LayoutKind.SAME, LayoutKind.RENAMED, LayoutKind.ABSENT)}
    unasked = asked is not None and any(key in asked for key in points.keys)
    free = np.array(
        [
            layout not in kept or (unasked and asked is not None and key not in asked)
            for key, layout in zip(points.keys, points.layout, strict=True)
        ],
        dtype=bool,
    )
    return points.old & (points.new | free), points.new & (points.old | ~points.ever)


def _awaited(points: _Points, layouts: Sequence[LayoutChange], asked: Mapping[str, Series] | None, group: str) -> int:
    """Points that were asked for and did not come, of layouts that the baseline has not: perhaps the best ones."""
    came = {key for key, new in zip(points.keys, points.new.tolist(), strict=True) if new}
    known = {one.before for one in layouts} & set(points.layout)
    absent = (one for key, one in (asked or {}).items() if key not in came and group_key(one) == group)
    return sum(one.layout not in known for one in absent)


# ---------------------------------------------------------------- numbers


@dataclass(frozen=True, slots=True)
class _Sides:
    """A group and the runs that stand for its baseline."""

    curve: Curve
    chosen: Ints

    @property
    def before(self) -> CurveRun:
        return self.curve.runs[int(self.chosen[-1])]

    @property
    def after(self) -> CurveRun:
        return self.curve.candidates[-1]

    def recipe(self, rows: Iterable[int], points: _Points, side: str) -> str | None:
        """Recipe of a layout where the image stayed: the fingerprint hashes the image with it."""
        if same_software(self.before.image, self.after.image) is not Sameness.SAME:
            return None
        run = self.before if side == "old" else self.after
        own = dict(run.recipes)
        return " + ".join(sorted({own.get(points.keys[row]) or run.recipe or "" for row in rows})) or None


@dataclass(frozen=True, slots=True)
class _Measured:
    """One metric of all points: natural logs, baseline first; NaN where a side has none."""

    levels: tuple[Floats, Floats]
    noises: tuple[Floats, Floats]
    """Standard deviations of the levels."""
    sigma: Floats
    """Posterior noise scale of one run."""
    doubt: Floats
    """Standard deviation of its logarithm."""
    shared: float
    """Share of that which the points of a layout have in common."""
    source: str


def _measured(group: _Sides, points: _Points, name: str, scales: noise.Scales, settings: Settings) -> _Measured:
    """Levels with the noise that the learned scales give their points, a point's own scatter included."""
    curve, rows = group.curve, points.output if name == OUTPUT else points.speed
    scale = numbers.scale_for(name, _FAMILIES[name], scales)
    persistence = np.full(len(rows), numbers.correlation_for(curve, scales).persistence)
    strata = noise.stratum(points.conc, np.array([one.multinode for one in points.layout]))
    candidate = curve.candidate[rows]
    base = numbers.trim(curve.values[np.ix_(rows, group.chosen)], np.exp(np.array(scale.centre)[strata]), settings)
    other = lent(curve, rows, group.chosen)
    share = settings.lent
    known = scatter(base) + scatter(candidate)
    known += Scatter(share * other.squares, share * other.steps, share * other.freedom)
    weights = noise.posterior(known.sum(persistence), known.freedom, strata, points.layouts, scale)
    middle = weights @ noise.LOG_GRID
    sigma, doubt = np.exp(middle), np.sqrt(np.maximum(0.0, weights @ noise.LOG_GRID**2 - middle**2))
    with np.errstate(all="ignore"):
        _, level, variance = numbers.weighted(base, persistence)
        count = np.isfinite(candidate).sum(axis=1)
        mean = np.where(np.isfinite(candidate), candidate, 0.0).sum(axis=1) / count
        noises = sigma * np.sqrt(variance), sigma / np.sqrt(count)
    return _Measured((level, mean), noises, sigma, doubt, scale.shared, scale.source)


def _side(points: _Points, kept: Flags, measured: tuple[_Measured, _Measured], side: int, sign: float) -> stats.Side:
    """The kept points of a side (0: baseline), linked along the concurrencies of each layout.

    `measured` holds throughput and interactivity, whose logarithm turns by `sign`.
    """
    output, speed = measured
    order = np.flatnonzero(kept)
    names = [layout_text(points.layout[row]) for row in order.tolist()]
    conc = points.conc[order].tolist()
    along = sorted(range(len(order)), key=lambda place: (names[place], conc[place]))
    links = [(one, other) for one, other in pairwise(along) if names[one] == names[other]]
    return stats.Side(
        speed=sign * speed.levels[side][order],
        output=output.levels[side][order],
        noise=output.noises[side][order],
        speed_noise=speed.noises[side][order],
        links=np.array(links, np.int64).reshape(-1, 2),
        doubt=stats.Doubt(output.doubt[order], order, points.layouts[order], output.shared),
    )


@dataclass(frozen=True, slots=True)
class _Group:
    """A judged group before words like "worse" are said."""

    sides: _Sides
    points: _Points
    kept: tuple[Flags, Flags]
    measured: tuple[_Measured, _Measured]
    """Throughput, interactivity."""
    shift: stats.Shift
    frontier: Frontier
    correlation: float
    left_out: int
    awaited: int
    """Points of its new layouts that the candidate was asked for and that did not come."""


def _group(curve: Curve, sweeps: Sweeps, scales: noise.Scales, settings: Settings, baseline: Baseline) -> _Group | None:
    """The numbers of one group; None where a side has nothing that counts."""
    chosen = chosen_runs(curve, baseline)[-settings.max_baseline_runs :] if curve.candidates else np.empty(0, np.int64)
    seen = _axis(curve, chosen, sweeps.series) if len(chosen) else None
    if seen is None:
        return None
    axis, points = seen
    group = _Sides(curve, chosen)
    layouts = _layouts(points, group, sweeps.asked)
    old, new = _counted(points, layouts, sweeps.asked)
    if min(old.sum(), new.sum()) < LEAST_POINTS:
        return None
    measured = (
        _measured(group, points, OUTPUT, scales, settings),
        _measured(group, points, axis, scales, settings),
    )
    sign = -1.0 if metric(axis).better is Better.LOWER else 1.0
    rho = numbers.correlation_for(curve, scales).within
    before, after = (
        replace(_side(points, kept, measured, side, sign), correlation=rho) for side, kept in enumerate((old, new))
    )
    found = stats.shift(before, after)
    left_out = int((points.old & ~old).sum() + (points.new & ~new).sum())
    told = _told(curve, axis, layouts, found, (before, after))
    return _Group(
        group,
        points,
        (old, new),
        measured,
        found,
        told,
        rho,
        left_out,
        _awaited(points, layouts, sweeps.asked, curve.key),
    )


def _told(
    curve: Curve, axis: str, layouts: tuple[LayoutChange, ...], found: stats.Shift, sides: tuple[stats.Side, stats.Side]
) -> Frontier:
    """What stands beside the findings, on the scale of the dashboards."""
    before, after = (exp(float(side.speed[side.output.argmax()])) for side in sides)
    return Frontier(
        key=curve.key,
        config=curve.config,
        axis=axis,
        layouts=layouts,
        shared=_plain(found.shared) if found.shift is not None else None,
        peaks=(before, after),
        gained=tuple(map(_plain, found.gained)),
        lost=tuple(map(_plain, found.lost)),
        speeds=tuple(np.exp(found.speeds).tolist()),
        gaps=tuple(found.gaps.tolist()),
        band=tuple(found.band.tolist()),
    )


def _plain(part: stats.Range) -> tuple[float, float]:
    return exp(part.low), exp(part.high)


# ---------------------------------------------------------------- verdicts


def _estimate(group: _Group, name: str) -> stats.Estimate | None:
    return group.shift.shift if name == SHIFT else group.shift.peak


def _adjusted(groups: Sequence[_Group], name: str) -> Floats:
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
        return cls(SHIFT, limits.curve, settings.alpha_frontier), cls(PEAK, limits.point, settings.alpha_peak)


def _verdict(group: _Group, rule: _Rule, adjusted: float, settings: Settings) -> Verdict:
    """By the numbers alone. Frontiers that cross, each beyond its band, are mixed whatever their mean says."""
    found, margin = _estimate(group, rule.name), rule.margin
    if found is None:
        return Verdict.NOT_COMPARABLE
    if rule.name == SHIFT and _crosses(group.shift, margin):
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


def _doubts(group: _Group, name: str, verdict: Verdict, effect: float, settings: Settings) -> Iterator[Caveat]:
    yield from software_caveats(group.sides.curve, group.sides.chosen)
    if group.left_out:
        yield Caveat.of("frontier_left_out", points=group.left_out)
    if group.frontier.shared is None and name == SHIFT:
        yield Caveat.of("no_shared_interactivity")
    if verdict in _CALLED and effect > settings.implausible_gain:
        yield Caveat.of("implausible_gain", limit=settings.implausible_gain)
    if verdict in (Verdict.REGRESSION, Verdict.MIXED) and len(group.sides.curve.candidates) < 2:
        yield Caveat.of("single_run")


def _role(group: _Group, name: str, spoken: Collection[str]) -> Iterator[Caveat]:
    """Why a finding decides no headline: something else speaks for the same change already."""
    if group.frontier.key in spoken:
        yield Caveat.of(SAME_LAYOUTS if group.frontier.is_same else BESIDE_CURVES)
    elif name == PEAK and group.frontier.shared is not None:
        yield Caveat.of(BESIDE_SHIFT)


def _findings(
    group: _Group, settings: Settings, adjusted: Mapping[str, float], spoken: Collection[str]
) -> Iterator[Finding]:
    """The shift at equal interactivity, and the peak as a claim of its own."""
    for rule in _Rule.all(settings):
        found, p = _estimate(group, rule.name), float(adjusted[rule.name])
        verdict = _verdict(group, rule, p, settings)
        role = tuple(_role(group, rule.name, spoken))
        verdict, more = _settled(group, verdict, found.effect if found else 0.0, role)
        doubts = [*_doubts(group, rule.name, verdict, found.effect if found else 0.0, settings), *more]
        yield replace(
            _plain_finding(group, rule.name),
            verdict=verdict,
            **(_statistics(found, rule, settings) if found else {}),
            caveats=(*role, *doubts),
            evidence=_evidence(group, rule, p),
            rules_version=settings.rules_version,
        )


def _settled(
    group: _Group, verdict: Verdict, effect: float, role: Sequence[Caveat]
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


def _plain_finding(group: _Group, name: str) -> Finding:
    sides, (_, new), (output, _) = group.sides, group.kept, group.measured
    peaks = [exp(float(level[kept].max())) for level, kept in zip(output.levels, group.kept, strict=True)]
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


def _evidence(group: _Group, rule: _Rule, adjusted: float) -> Evidence:
    """Both numbers of every point that counts on a side: throughput under its key, then interactivity beside it."""
    sides, points, (old, new) = group.sides, group.points, group.kept
    rows = np.flatnonzero(old | new)
    members, before, after, sigma = [], [], [], []
    for name, cells, measured in zip(
        (OUTPUT, group.frontier.axis), (points.output, points.speed), group.measured, strict=True
    ):
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
        scale_source=group.measured[0].source,
        correlation=group.correlation,
        margin=rule.margin,
        alpha=rule.alpha,
        p_adjusted=adjusted,
    )


def _values(row: Floats) -> tuple[float, ...]:
    return tuple(np.exp(row[np.isfinite(row)]).tolist())
