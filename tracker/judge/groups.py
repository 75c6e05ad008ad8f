"""Groups of curves: their points along an axis, what became of their layouts, and the numbers of both sides.

A group is everything that a dashboard draws as one line. Its baseline is chosen as a curve's is, over all layouts at
once. No point that one side merely failed to measure counts for either: a loss is never called on what is not there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp
from types import MappingProxyType

import numpy as np
import polars as pl

from store.identity import group_key, layout_text
from store.images import Sameness
from store.metrics import Better, metric
from store.records import (
    Frontier,
    FrontierPoint,
    FrontierSide,
    Layout,
    LayoutChange,
    LayoutKind,
    Reach,
    Series,
)
from tracker import topology
from tracker.judge import numbers
from tracker.matrix import Curve, CurveRun, Flags, Scatter, same_software, scatter
from tracker.pairs import Baseline, chosen_runs, lent
from tracker.settings import Settings
from tracker.stats import frontier as stats
from tracker.stats import noise
from tracker.stats.noise import Floats, Ints

OUTPUT = "tput_per_gpu"
LATENCY = "median_e2el"
_USUAL_AXES = ("median_tpot",)
AXES: Mapping[str, tuple[str, ...]] = MappingProxyType({"agentic_traces": ("p90_e2e_norm_intvty", *_USUAL_AXES)})
"""Scenario -> what its interactivity is read from: the first that every point of both sides has."""
METRICS = (OUTPUT, *dict.fromkeys(name for axes in (*AXES.values(), _USUAL_AXES) for name in axes), LATENCY)
"""All that a frontier needs of a frame."""
LEAST_POINTS = 2
"""A lone point on a side is no frontier, and its throughput no peak."""
_FAMILIES: Mapping[str, str] = MappingProxyType(
    {OUTPUT: "throughput", "median_tpot": "tpot", "p90_e2e_norm_intvty": "tail_tpot", LATENCY: "e2el"}
)


@dataclass(frozen=True, slots=True)
class Sweeps:
    """What is judged: tidy frames that hold `METRICS`, the series of all their keys, and what the config promised."""

    history: pl.DataFrame
    candidate: pl.DataFrame
    series: Mapping[str, Series]
    asked: Mapping[str, Series] | None = None
    """The points that the candidate was asked for, by key; None where nobody knows."""


# ---------------------------------------------------------------- points


@dataclass(frozen=True, slots=True)
class Points:
    """The points of a group that have both numbers on a side; one entry a point."""

    keys: tuple[str, ...]
    series: tuple[Series, ...]
    layout: tuple[Layout, ...]
    output: Ints
    """Row of the throughput in the matrix."""
    speed: Ints
    """Row of what the axis is read from."""
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


def _points(curve: Curve, chosen: Ints, axis: str, series: Mapping[str, Series]) -> Points:
    rows = {place: row for row, place in enumerate(zip(curve.series, curve.metrics, strict=True))}
    both = [key for key, name in rows if name == OUTPUT and (key, axis) in rows and key in series]
    output, speed = (np.array([rows[key, name] for key in both], np.int64) for name in (OUTPUT, axis))
    known: Flags = np.isfinite(curve.values[output]) & np.isfinite(curve.values[speed])
    mine: Flags = np.isfinite(curve.candidate[output]) & np.isfinite(curve.candidate[speed])
    told = tuple(series[key] for key in both)
    return Points(
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


def _axis(curve: Curve, chosen: Ints, series: Mapping[str, Series]) -> tuple[str, Points] | None:
    """The interactivity to compare at, and the points that have it; None where a side has none."""
    told = [series[key] for key in curve.series if key in series]
    axes = AXES.get(told[0].scenario, _USUAL_AXES) if told else ()
    found = [(axis, _points(curve, chosen, axis, series)) for axis in axes]
    fit = [one for one in found if one[1].old.any() and one[1].new.any()]
    # An axis that some points lack would leave whole layouts out: the one that most points have is the fair one.
    return max(fit, key=lambda one: int(one[1].old.sum() + one[1].new.sum()), default=None)


# ---------------------------------------------------------------- layouts


def _layouts(points: Points, group: Sides, asked: Collection[str] | None) -> tuple[LayoutChange, ...]:
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


def _by_layout(points: Points, flags: Flags) -> dict[Layout, list[int]]:
    found: dict[Layout, list[int]] = {}
    for place in np.flatnonzero(flags).tolist():
        found.setdefault(points.layout[place], []).append(place)
    return found


def _concs(rows: Iterable[int], points: Points) -> frozenset[int]:
    return frozenset(points.series[row].conc or 1 for row in rows)


def _absence(rows: Iterable[int], points: Points, asked: Collection[str] | None) -> str:
    """Why a layout that the candidate lacks is no retired one: its config asks for it still."""
    return "not_arrived" if asked is not None and any(points.keys[row] in asked for row in rows) else ""


def _unexplained(one: LayoutChange) -> LayoutChange:
    """Nothing stands in its place and no config is known: then nobody can tell a retired layout from a failed job."""
    return replace(one, kind=LayoutKind.ABSENT, rule="plan_unknown") if one.kind is LayoutKind.RETIRED else one


def _counted(points: Points, layouts: Sequence[LayoutChange], asked: Collection[str] | None) -> tuple[Flags, Flags]:
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


def _awaited(points: Points, layouts: Sequence[LayoutChange], asked: Mapping[str, Series] | None, group: str) -> int:
    """Points that were asked for and did not come, of layouts that the baseline has not: perhaps the best ones."""
    came = {key for key, new in zip(points.keys, points.new.tolist(), strict=True) if new}
    known = {one.before for one in layouts} & set(points.layout)
    absent = (one for key, one in (asked or {}).items() if key not in came and group_key(one) == group)
    return sum(one.layout not in known for one in absent)


# ---------------------------------------------------------------- numbers


@dataclass(frozen=True, slots=True)
class Sides:
    """A group and the runs that stand for its baseline."""

    curve: Curve
    chosen: Ints

    @property
    def before(self) -> CurveRun:
        return self.curve.runs[int(self.chosen[-1])]

    @property
    def after(self) -> CurveRun:
        return self.curve.candidates[-1]

    def recipe(self, rows: Iterable[int], points: Points, side: str) -> str | None:
        """Recipe of a layout where the image stayed: the fingerprint hashes the image with it."""
        if same_software(self.before.image, self.after.image) is not Sameness.SAME:
            return None
        run = self.before if side == "old" else self.after
        own = dict(run.recipes)
        return " + ".join(sorted({own.get(points.keys[row]) or run.recipe or "" for row in rows})) or None


@dataclass(frozen=True, slots=True)
class Measured:
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


def _measured(group: Sides, points: Points, name: str, scales: noise.Scales, settings: Settings) -> Measured:
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
    return Measured((level, mean), noises, sigma, doubt, scale.shared, scale.source)


def _side(points: Points, kept: Flags, measured: tuple[Measured, Measured], side: int, sign: float) -> stats.Side:
    """The kept points of a side (0: baseline), linked along the concurrencies of each layout.

    `measured` holds throughput and what the axis is read from, whose logarithm turns by `sign`.
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
class View:
    """A group along one axis: interactivity or latency."""

    axis: str
    points: Points
    kept: tuple[Flags, Flags]
    measured: tuple[Measured, Measured]
    """Throughput, and what the axis is read from."""
    pair: tuple[stats.Side, stats.Side]
    shift: stats.Shift

    @property
    def left_out(self) -> int:
        """Points that count on no side."""
        return sum(int((had & ~kept).sum()) for had, kept in zip(self._had, self.kept, strict=True))

    @property
    def _had(self) -> tuple[Flags, Flags]:
        return self.points.old, self.points.new


@dataclass(frozen=True, slots=True)
class Group:
    """A group with its numbers, before words like "worse" are said."""

    sides: Sides
    view: View
    """Along interactivity."""
    latency: View | None
    """Along end-to-end latency; None where a side lacks it, or the layouts are the same."""
    frontier: Frontier
    correlation: float
    awaited: int
    """Points of its new layouts that the candidate was asked for and that did not come."""


@dataclass(frozen=True, slots=True)
class _Making:
    """All that the views of a group are made with."""

    sides: Sides
    sweeps: Sweeps
    scales: noise.Scales
    settings: Settings

    @property
    def correlation(self) -> float:
        return numbers.correlation_for(self.sides.curve, self.scales).within

    def view(self, axis: str, points: Points, layouts: Sequence[LayoutChange]) -> View | None:
        """The group along an axis; None where a side has no two points that count."""
        kept = _counted(points, layouts, self.sweeps.asked)
        if min(flags.sum() for flags in kept) < LEAST_POINTS:
            return None
        output, pace = (_measured(self.sides, points, name, self.scales, self.settings) for name in (OUTPUT, axis))
        before, after = (
            replace(_side(points, flags, (output, pace), side, _sign(axis)), correlation=self.correlation)
            for side, flags in enumerate(kept)
        )
        return View(axis, points, kept, (output, pace), (before, after), stats.shift(before, after))


def group_of(
    curve: Curve, sweeps: Sweeps, scales: noise.Scales, settings: Settings, baseline: Baseline
) -> Group | None:
    """The numbers of one group; None where a side has nothing that counts."""
    chosen = chosen_runs(curve, baseline)[-settings.max_baseline_runs :] if curve.candidates else np.empty(0, np.int64)
    seen = _axis(curve, chosen, sweeps.series) if len(chosen) else None
    if seen is None:
        return None
    making = _Making(Sides(curve, chosen), sweeps, scales, settings)
    layouts = _layouts(seen[1], making.sides, sweeps.asked)
    view = making.view(*seen, layouts)
    if view is None:
        return None
    # Where every curve has a twin nobody is told of a frontier: one axis is enough for the page.
    changed = not all(one.stays for one in layouts)
    latency = making.view(LATENCY, _points(curve, chosen, LATENCY, sweeps.series), layouts) if changed else None
    return Group(
        sides=making.sides,
        view=view,
        latency=latency,
        frontier=_frontier(curve, layouts, view, latency),
        correlation=making.correlation,
        awaited=_awaited(view.points, layouts, sweeps.asked, curve.key),
    )


# ---------------------------------------------------------------- what reports see


def _frontier(curve: Curve, layouts: tuple[LayoutChange, ...], view: View, latency: View | None) -> Frontier:
    """What stands beside the findings, on the scale of the dashboards."""
    before, after = (exp(float(side.speed[side.output.argmax()])) for side in view.pair)
    old, new = (_drawable(view, side) for side in (0, 1))
    return Frontier(
        key=curve.key,
        config=curve.config,
        layouts=layouts,
        interactivity=_reach(view, 1.0),
        peaks=(before, after),
        latency=_reach(latency, _sign(LATENCY)) if latency else None,
        before=old,
        after=new,
    )


def _drawable(view: View, side: int) -> FrontierSide:
    points, chosen = view.pair[side], np.flatnonzero(view.kept[side]).tolist()
    pace, output = np.exp(points.speed).tolist(), np.exp(points.output).tolist()
    spots = (
        FrontierPoint(view.points.layout[row], view.points.series[row].conc, pace[place], output[place])
        for place, row in enumerate(chosen)
    )
    line = ((float(np.exp(speed)), float(np.exp(best))) for speed, best in zip(*stats.outline(points), strict=True))
    return FrontierSide(tuple(spots), tuple(line))


def _reach(view: View, sign: float) -> Reach:
    """The shift along an axis whose places are exp(sign * ln speed)."""
    found = view.shift

    def plain(part: stats.Range) -> tuple[float, float]:
        ends = sorted((exp(sign * part.low), exp(sign * part.high)))
        return ends[0], ends[1]

    return Reach(
        axis=view.axis,
        shared=plain(found.shared) if found.shift is not None else None,
        gained=tuple(map(plain, found.gained)),
        lost=tuple(map(plain, found.lost)),
        places=tuple(np.exp(sign * found.speeds).tolist()),
        gaps=tuple(found.gaps.tolist()),
        band=tuple(found.band.tolist()),
    )


def _sign(axis: str) -> float:
    """What turns the logarithm of an axis's metric into one that grows with speed."""
    return -1.0 if metric(axis).better is Better.LOWER else 1.0
