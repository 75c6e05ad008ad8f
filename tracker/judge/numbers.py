"""Pairs to numbers: every cell of a comparison in one sheet of arrays, so that the statistics run once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np

from store.metrics import METRICS, Part, metric
from tracker.matrix import STEPS_ONLY, Curve, Flags, Scatter, row_median, scatter
from tracker.pairs import CurvePair
from tracker.settings import Limits, Settings
from tracker.stats import curves, noise
from tracker.stats.noise import Floats, Ints

Values: TypeAlias = Sequence[tuple[float, ...]]
"""What was measured of each cell, in the metric's unit, oldest first."""

_Column = TypeVar("_Column", Floats, Ints, Flags)


@dataclass(frozen=True, slots=True)
class Group:
    """A curve (or a configuration) under one metric."""

    key: str
    metric: str
    family: str
    part: Part
    limits: Limits
    pair: int
    """Its (first) pair."""
    several_nodes: bool


@dataclass(frozen=True, slots=True)
class Sheet:
    """The judged cells of a comparison, sorted by group; one row a cell unless said otherwise."""

    groups: tuple[Group, ...]
    pairs: tuple[CurvePair, ...]
    pair: Ints
    row: Ints
    """Row of the cell in its curve."""
    point: Ints
    """The same number for the same point under every metric."""
    baseline: Values
    """Flaky ones already dropped."""
    candidate: Values
    flaky: Ints
    """How many baseline values were dropped."""
    older: Flags
    cells: curves.Cells
    spread: curves.Spread
    points: curves.Points
    curves: curves.Curves
    sources: tuple[str, ...]
    """Where the noise scale of each group came from."""


def judged_as(names: Iterable[str]) -> dict[str, str]:
    """Metric -> the row of the table that says how to judge it; metrics that are only shown are left out.

    Metrics that carry one number are judged once: by the one that the table names, else by the first that is there.

    >>> judged_as(["median_intvty", "median_tpot", "mean_ttft"]), judged_as(["median_intvty"])
    ({'median_tpot': 'median_tpot'}, {'median_intvty': 'median_tpot'})
    """
    found: dict[str, str] = {}
    for name in sorted(set(names), key=lambda name: (metric(name).same_as is not None, _rank(name))):
        target = metric(name).same_as or name.removesuffix("_ms")
        row = METRICS.get(target)
        if row is not None and row.part is not Part.SHOWN and target not in found.values():
            found[name] = target
    return found


_ORDER = {name: position for position, name in enumerate(METRICS)}


def _rank(name: str) -> int:
    return _ORDER.get(name, len(_ORDER))


def sheet(pairs: Sequence[CurvePair], scales: noise.Scales, settings: Settings) -> Sheet | None:
    """Numbers of all judged cells; None where there is nothing to judge."""
    parts = [part for index, one in enumerate(pairs) for part in _parts(index, one, settings)]
    if not parts:
        return None
    groups = tuple(part.group for part in parts)
    scale_of = [scale_for(one.metric, one.family, scales) for one in groups]
    seen = _columns(pairs, parts, settings)
    strata = noise.stratum(seen.conc, np.array([one.several_nodes for one in groups])[seen.group])
    centre = np.array([scale.centre for scale in scale_of])[seen.group, strata]
    trimmed = trim(seen.baseline, np.exp(centre), settings)
    machines = [correlation_for(pairs[one.pair].curve, scales) for one in groups]
    cells = _cells(replace(seen, baseline=trimmed), strata, groups, machines, scale_of)
    spread = curves.spread_of(cells)
    return Sheet(
        groups,
        tuple(pairs),
        seen.pair,
        seen.row,
        _points(pairs, seen.pair, seen.row),
        _present(trimmed),
        _present(seen.candidate),
        np.isfinite(seen.baseline).sum(axis=1) - np.isfinite(trimmed).sum(axis=1),
        seen.older,
        cells,
        spread,
        *curves.judge(cells, spread, settings.power),
        tuple(scale.source for scale in scale_of),
    )


@dataclass(frozen=True, slots=True)
class _Columns:
    """What the pairs know of each judged cell, in the order of the groups."""

    group: Ints
    pair: Ints
    row: Ints
    conc: Ints
    baseline: Floats
    candidate: Floats
    lent: Scatter
    """Already weighed down."""
    older: Flags


def _columns(pairs: Sequence[CurvePair], parts: Sequence[_Part], settings: Settings) -> _Columns:
    """Gather the cells of all parts, matrices padded to one width."""
    homes = [(pairs[part.group.pair], part.rows) for part in parts]
    widest = max(one.candidate.shape[1] for one in pairs)

    def joined(column: Callable[[CurvePair], _Column]) -> _Column:
        return np.concatenate([column(one)[rows] for one, rows in homes])

    sizes = [len(part.rows) for part in parts]
    return _Columns(
        group=np.repeat(np.arange(len(parts)), sizes),
        pair=np.repeat([part.group.pair for part in parts], sizes),
        row=joined(lambda one: one.cells),
        conc=joined(lambda one: one.curve.conc[one.cells]),
        baseline=joined(lambda one: _padded(one.baseline, settings.max_baseline_runs)),
        candidate=joined(lambda one: _padded(one.candidate, widest)),
        lent=Scatter(
            settings.lent * joined(lambda one: one.lent.squares),
            settings.lent * joined(lambda one: one.lent.steps),
            settings.lent * joined(lambda one: one.lent.freedom),
        ),
        older=joined(lambda one: one.older),
    )


def _cells(
    seen: _Columns,
    strata: Ints,
    groups: Sequence[Group],
    machines: Sequence[noise.Correlation],
    scale_of: Sequence[noise.Scale],
) -> curves.Cells:
    """Effect, noise and rules of each cell; `seen.baseline` is without what is flaky."""
    group = seen.group
    persistence = np.array([one.persistence for one in machines])[group]
    old, new = scatter(seen.baseline), scatter(seen.candidate)
    runs, level, variance = weighted(seen.baseline, persistence)
    known = old + new + seen.lent
    centre = np.array([scale.centre for scale in scale_of])[group, strata]
    return curves.Cells(
        effect=np.nanmean(seen.candidate, axis=1) - level,
        weights=_weights(noise.Stretches(known.sum(persistence), known.freedom, strata, group), groups, scale_of),
        root_v=np.sqrt(variance + 1 / (new.freedom + 1)),
        runs=runs,
        outliers=np.array([scale.outliers for scale in scale_of])[group],
        outlier_scale=np.array([scale.outlier_scales for scale in scale_of])[group] * np.exp(centre),
        group=group,
        correlation=np.array([one.within for one in machines]),
        alpha=np.array([one.limits.alpha for one in groups]),
        alpha_point=np.array([one.limits.alpha_point for one in groups]),
        curve_margin=np.array([one.limits.curve for one in groups]),
        point_margin=np.array([one.limits.point for one in groups]),
    )


def _present(values: Floats) -> Values:
    """The known values of each row in the metric's unit."""
    known = np.isfinite(values)
    width = values.shape[1]
    # Known values stand on the right, but for dropped ones in between, which are rare.
    packed = np.take_along_axis(values, np.argsort(known, axis=1, kind="stable"), axis=1)
    counts = known.sum(axis=1).tolist()
    return [tuple(row[width - n :]) for row, n in zip(np.exp(packed).tolist(), counts, strict=True)]


@dataclass(frozen=True, slots=True)
class _Part:
    group: Group
    rows: Ints


def _parts(index: int, one: CurvePair, settings: Settings) -> list[_Part]:
    """The judged metrics of one pair, each with its rows."""
    names = [one.curve.metrics[cell] for cell in one.cells.tolist()]
    by_name: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        by_name.setdefault(name, []).append(position)
    parts = []
    for name, target in judged_as(by_name).items():
        row = METRICS[target]
        limits = settings.limits.get(row.family)
        if limits is not None:
            group = Group(one.curve.key, name, row.family, row.part, limits, index, one.curve.multinode)
            parts.append(_Part(group, np.array(by_name[name], np.int64)))
    return parts


def _points(pairs: Sequence[CurvePair], pair: Ints, row: Ints) -> Ints:
    """A number for each (pair, series)."""
    numbers: dict[tuple[int, str], int] = {}
    keys = ((index, pairs[index].curve.series[cell]) for index, cell in zip(pair.tolist(), row.tolist(), strict=True))
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


def _padded(values: Floats, width: int) -> Floats:
    """The values with NaN columns on the left."""
    missing = width - values.shape[1]
    return np.pad(values, ((0, 0), (missing, 0)), constant_values=np.nan) if missing > 0 else values[:, -width:]


def trim(baseline: Floats, typical: Floats, settings: Settings) -> Floats:
    """Drop flaky baseline runs: far from the median of at least three, and never more than a minority.

    `typical` is the prior noise scale of each row. Dropped values become NaN.
    """
    known = np.isfinite(baseline)
    count = known.sum(axis=1)
    if not (count >= 3).any():
        return baseline
    distance = np.abs(baseline - row_median(baseline)[:, None])
    spread = np.maximum(1.4826 * row_median(distance), typical)
    limit = np.maximum(settings.trim_scales * spread, settings.trim_floor)
    far = known & (np.where(known, distance, 0.0) > limit[:, None])
    allowed = (count >= 3) & (far.sum(axis=1) <= (count - 1) // 2)
    return np.where(far & allowed[:, None], np.nan, baseline)


def weighted(baseline: Floats, persistence: Floats) -> tuple[Ints, Floats, Floats]:
    """Runs, level and variance (units of sigma^2) of each baseline.

    Where neighbours resemble each other the newest run says most: weights fall by half a run at full persistence.
    """
    known = np.isfinite(baseline)
    age = np.cumsum(known[:, ::-1], axis=1)[:, ::-1] - 1
    fade = 1 - np.clip(persistence / STEPS_ONLY, 0.0, 1.0) / 2
    weight = np.where(known, fade[:, None] ** age, 0.0)
    weight /= weight.sum(axis=1, keepdims=True)
    level = (weight * np.where(known, baseline, 0.0)).sum(axis=1)
    return known.sum(axis=1), level, (weight**2).sum(axis=1)


def scale_for(name: str, family: str, scales: noise.Scales) -> noise.Scale:
    """The learned scale of a metric, else the shipped one of its family."""
    return scales.metrics.get(name) or noise.shipped()[family]


PRIOR_WITHIN = (0.05, 0.4)
"""Correlation of two points of one run, measured on published sweeps: single node, several nodes."""


def place(pool: str | None, config: str, key: str) -> str:
    """What stands for the machines of a curve: its pool where known, else its configuration, else itself."""
    return pool or config or key


def correlation_for(curve: Curve, scales: noise.Scales) -> noise.Correlation:
    """What is known about the machines that the candidate ran on."""
    where = place(curve.candidates[-1].pool, curve.config, curve.key)
    return scales.correlation.get(where) or scales.elsewhere[curve.multinode]


def _weights(known: noise.Stretches, groups: Sequence[Group], scale_of: Sequence[noise.Scale]) -> Floats:
    """Posterior of the noise scales, metric by metric; `known.curve` holds the group of each cell."""
    metric_of = np.array([one.metric for one in groups])[known.curve]
    weights = np.empty((len(known.squares), len(noise.LOG_GRID)))
    for name in dict.fromkeys(one.metric for one in groups):
        rows = np.flatnonzero(metric_of == name)
        curve = np.unique(known.curve[rows], return_inverse=True)[1]
        scale = scale_of[int(known.curve[rows[0]])]
        weights[rows] = noise.posterior(known.squares[rows], known.freedom[rows], known.stratum[rows], curve, scale)
    return weights


def regrouped(made: Sheet, keys: Sequence[str], settings: Settings) -> Sheet:
    """The same cells pooled over other groups (a configuration over its curves): one key a pair."""
    names = [(keys[one.pair], one.metric) for one in made.groups]
    place_of = {name: position for position, name in enumerate(dict.fromkeys(names))}
    if len(place_of) == len(names):
        return replace(made, groups=tuple(replace(made.groups[g], key=key) for g, (key, _) in enumerate(names)))
    firsts = np.array([names.index(name) for name in place_of])
    group = np.array([place_of[name] for name in names])[made.cells.group]
    order = np.argsort(group, kind="stable")
    cells, spread = made.cells.regrouped(order, group[order], firsts), made.spread.rows(order)
    points, pooled = curves.judge(cells, spread, settings.power)
    rows: dict[str, Any] = {name: getattr(made, name)[order] for name in ("pair", "row", "point", "flaky", "older")}
    return replace(
        made,
        **rows,
        groups=tuple(replace(made.groups[old], key=key) for old, (key, _) in zip(firsts, place_of, strict=True)),
        baseline=[made.baseline[row] for row in order.tolist()],
        candidate=[made.candidate[row] for row in order.tolist()],
        cells=cells,
        spread=spread,
        points=points,
        curves=pooled,
        sources=tuple(made.sources[old] for old in firsts),
    )
