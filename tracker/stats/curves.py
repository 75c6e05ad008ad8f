"""The curve as a set of replicates: one pooled test beside the tests of its points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from tracker.stats.families import holm
from tracker.stats.noise import LOG_GRID, Floats, Ints
from tracker.stats.predictive import Predictive, predictive, reach, score

Z95 = 1.959964
Z90 = 1.644854

WEIGHT_RUNS = 2.0
"""A point's own noise scale and its curve's weigh the same in the pooled test after this many runs more than one."""


@dataclass(frozen=True, slots=True)
class Cells:
    """One row a cell (a point under one metric), sorted by group (a curve under one metric). Natural log units."""

    effect: Floats
    weights: Floats
    """Posterior of the noise scale on the grid."""
    root_v: Floats
    """sqrt of the variance of the effect in units of sigma^2: 1/k + 1/m when runs are independent."""
    runs: Ints
    """Number of baseline runs."""
    outliers: Floats
    """Share of points that fall out of their run."""
    outlier_scale: Floats
    """Standard deviation of their fall."""
    group: Ints
    correlation: Floats
    """Correlation of two effects of one group, one value a group."""
    alpha: Floats
    """Error rate of the pooled test, one value a group."""
    alpha_point: Floats
    """Error rate of the points, Holm within the group."""
    curve_margin: Floats
    point_margin: Floats

    def regrouped(self, order: Ints, group: Ints, firsts: Ints) -> Cells:
        """The same cells in another order and other groups; each new group takes the rules of one old group."""
        cells: dict[str, Any] = {name: getattr(self, name)[order] for name in _OF_CELLS}
        groups: dict[str, Any] = {name: getattr(self, name)[firsts] for name in _OF_GROUPS}
        return Cells(**cells, **groups, group=group)


_OF_CELLS = ("effect", "weights", "root_v", "runs", "outliers", "outlier_scale")
_OF_GROUPS = ("correlation", "alpha", "alpha_point", "curve_margin", "point_margin")


@dataclass(frozen=True, slots=True)
class Spread:
    """What each cell may do when nothing changed: as a member of its curve, and on its own."""

    member: Predictive
    alone: Predictive

    def rows(self, order: Ints) -> Spread:
        return Spread(*(Predictive(one.table[order], one.root_v[order]) for one in (self.member, self.alone)))


@dataclass(frozen=True, slots=True)
class Points:
    """Answers per cell."""

    effect: Floats
    low: Floats
    high: Floats
    reach90: Floats
    """Half width of the 90 % interval."""
    p: Floats
    adjusted: Floats
    """Holm within the curve."""
    mde: Floats
    limit: Floats
    """Effect at which a point of this curve is called."""
    sigma: Floats
    """Posterior median of the noise scale (geometric mean)."""


@dataclass(frozen=True, slots=True)
class Curves:
    """Answers per group."""

    size: Ints
    effect: Floats
    low: Floats
    high: Floats
    low90: Floats
    high90: Floats
    p_pooled: Floats
    p: Floats
    """Pooled test and smallest point together."""
    mde: Floats


def spread_of(cells: Cells) -> Spread:
    """Tabulate what `judge` asks about: the same for whatever groups the cells are put in."""
    return Spread(*predictive(cells.weights, cells.root_v, cells.outliers, cells.outlier_scale))


def judge(cells: Cells, spread: Spread, power: float = 0.8) -> tuple[Points, Curves]:
    """All numbers of all curves of a comparison at once."""
    log_sigma = cells.weights @ LOG_GRID
    points = _points(spread.alone, cells, np.exp(log_sigma), power)
    return points, _curves(_pooled(spread.member, cells, log_sigma), cells, points, power)


def _points(spread: Predictive, cells: Cells, sigma: Floats, power: float) -> Points:
    p = 2 * special.ndtr(-np.abs(score(spread, cells.effect)))
    half = reach(spread, Z95)
    size = np.bincount(cells.group)[cells.group]
    # A point is called after Holm: at worst against its alpha over the number of points.
    found = reach(spread, -special.ndtri(cells.alpha_point[cells.group] / size / 2))
    beaten = reach(spread, float(special.ndtri(power)))
    mde = np.maximum(found, cells.point_margin[cells.group]) + beaten
    return Points(
        effect=cells.effect,
        low=cells.effect - half,
        high=cells.effect + half,
        reach90=reach(spread, Z90),
        p=p,
        adjusted=holm(p, cells.group),
        mde=mde,
        limit=found,
        sigma=sigma,
    )


Statistic = Callable[[Floats, Floats], Floats]
"""Z of every group for effects (questions, cells) less shifts (questions, groups)."""


def _pooled(spread: Predictive, cells: Cells, log_sigma: Floats) -> Statistic:
    """Weighted sum of normal scores over its own standard deviation, correlated points allowed for."""
    groups = len(cells.correlation)
    weight = _weight(cells, log_sigma)
    total = np.bincount(cells.group, weight, groups)
    own = np.bincount(cells.group, weight**2, groups)
    deviation = np.sqrt(own + cells.correlation * (total**2 - own))
    starts = np.searchsorted(cells.group, np.arange(groups))

    def statistic(effect: Floats, shift: Floats) -> Floats:
        scores = weight * score(spread, effect - shift[..., cells.group])
        return np.add.reduceat(scores, starts, axis=-1) / deviation

    return statistic


def _weight(cells: Cells, log_sigma: Floats) -> Floats:
    """One over the noise of each cell, drawn to the curve's mean while few runs tell its own.

    Two runs that agree by chance would else let one point speak for the curve: a loss of 5 % on the upper half of a
    curve was found in 72 % of the cases without this, in 88 % with it, at the same number of false alarms.
    """
    size = np.bincount(cells.group)
    mean = (np.bincount(cells.group, log_sigma) / size)[cells.group]
    trust = (cells.runs - 1) / (cells.runs - 1 + WEIGHT_RUNS)
    return np.exp(-(trust * log_sigma + (1 - trust) * mean)) / cells.root_v


def _curves(pooled: Statistic, cells: Cells, points: Points, power: float) -> Curves:
    size = np.bincount(cells.group)
    starts = np.searchsorted(cells.group, np.arange(len(size)))
    low, high = np.minimum.reduceat(cells.effect, starts), np.maximum.reduceat(cells.effect, starts)
    # Where every point alone is at the target, the pooled statistic is beyond it: these edges bracket every root.
    wide = np.maximum.reduceat(points.high - points.effect, starts)
    targets = np.array([0.0, Z95, -Z95, Z90, -Z90])[:, None]
    effect, low95, high95, low90, high90 = _roots(pooled, cells.effect, targets, low - 1.01 * wide, high + 1.01 * wide)
    z = pooled(cells.effect[None, :], np.zeros((1, len(size))))[0]
    p_pooled = 2 * special.ndtr(-np.abs(z))
    smallest = np.minimum.reduceat(points.p, starts)
    both = np.minimum(1.0, 2 * np.minimum(p_pooled, size * smallest))
    return Curves(
        size=size,
        effect=effect,
        low=low95,
        high=high95,
        low90=low90,
        high90=high90,
        p_pooled=p_pooled,
        p=np.where(size == 1, p_pooled, both),
        mde=_detectable(pooled, cells, points.sigma, np.maximum.reduceat(points.limit, starts), power),
    )


def _detectable(pooled: Statistic, cells: Cells, sigma: Floats, wide: Floats, power: float) -> Floats:
    """The uniform shift that is called with `power`: significant AND beyond the margin.

    Both conditions are thresholds on the same statistic, so the harder one decides: the shift must reach the larger of
    the significance limit and the margin, and then beat the noise that would take it back.
    """
    usual = cells.root_v * sigma
    nothing = np.zeros((1, len(usual)))
    several = 1 - 1 / np.bincount(cells.group)

    def expected(effect: Floats, shift: Floats) -> Floats:
        # Normal scores grow ever slower: points that stray about a shift score less together than they would on it.
        alone, strayed = pooled(effect, shift), (pooled(effect + usual, shift) + pooled(effect - usual, shift)) / 2
        return alone + several * (strayed - alone)

    targets = np.stack([special.ndtri(cells.alpha / 2), np.full(len(cells.alpha), -special.ndtri(power))])
    found, beaten = _roots(expected, nothing, targets, np.zeros_like(wide), 2 * wide)
    smallest: Floats = np.maximum(found, cells.curve_margin) + beaten
    return smallest


def _roots(pooled: Statistic, effect: Floats, targets: Floats, low: Floats, high: Floats) -> Floats:
    """Shifts at which Z equals each target (questions, groups); Z falls with the shift. Bracketed false position."""
    wanted = np.broadcast_to(targets, (len(targets), len(low)))
    left, right = (np.array(np.broadcast_to(edge, wanted.shape)) for edge in (low, high))
    at_left, at_right = pooled(effect, left) - wanted, pooled(effect, right) - wanted
    for _ in range(40):
        middle = right - at_right * (right - left) / np.where(at_right == at_left, 1.0, at_right - at_left)
        middle = np.clip(middle, np.minimum(left, right), np.maximum(left, right))
        value = pooled(effect, middle) - wanted
        crossed = np.sign(value) != np.sign(at_right)
        left = np.where(crossed, right, left)
        at_left = np.where(crossed, at_right, at_left / 2)
        right, at_right = middle, value
        if np.abs(value).max(initial=0.0) < 1e-6:
            break
    return right
