"""What a store teaches about its own noise: scales per metric, and how the runs of a pool move together."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from store.metrics import METRICS
from tracker import matrix
from tracker.judge.numbers import PRIOR_WITHIN, judged_as, place
from tracker.matrix import Curve, Flags, Scatter
from tracker.settings import Settings
from tracker.stats import noise
from tracker.stats.noise import Floats, Ints

PRIOR_RUNS = 20.0
"""The shipped correlation weighs as much as this many runs."""

PRIOR_STRETCHES = 10.0
"""The shipped persistence (none) weighs as much as this many series under one identity."""

_REMEMBERED: OrderedDict[tuple[int, int, int], noise.Scales] = OrderedDict()
_MOST_REMEMBERED = 8


def learn(history: pl.DataFrame, settings: Settings) -> noise.Scales:
    """Noise scales from the unchanged stretches of a history, remembered by its content."""
    rows = matrix.tidy(history)
    key = (rows.height, int(rows.hash_rows(seed=17).sum() or 0), settings.min_stretches)
    if key not in _REMEMBERED:
        _REMEMBERED[key] = _learn(tuple(matrix.curves(rows)), settings)
        while len(_REMEMBERED) > _MOST_REMEMBERED:
            _REMEMBERED.popitem(last=False)
    _REMEMBERED.move_to_end(key)
    return _REMEMBERED[key]


_GATES = ("tput_per_gpu", "median_tpot")


def _learn(curves: Sequence[Curve], settings: Settings) -> noise.Scales:
    names = judged_as({name for curve in curves for name in curve.metrics})
    found = _blocks(curves, names)
    gate = next((name for name in (*_GATES, *names) if name in names), None)
    blocks = found[gate] if gate else ()
    persistence = _persistence(blocks)
    scales = {
        name: _scale(found[name], noise.shipped()[METRICS[target].family], persistence, settings.min_stretches)
        for name, target in names.items()
    }
    return noise.Scales(scales, *_correlations(blocks, scales[gate] if gate else None, persistence))


def _scale(blocks: Sequence[_Block], prior: noise.Scale, persistence: Mapping[str, float], least: int) -> noise.Scale:
    """The noise of one metric: fitted where the store has enough unchanged stretches, else the shipped one."""
    stretches = _gather(blocks, persistence)
    if len(stretches.squares) < least:
        return prior
    fitted = noise.fit(stretches, prior)
    share, far = noise.outliers(_fallen(blocks, fitted, persistence))
    return replace(fitted, outliers=share, outlier_scales=far)


# ---------------------------------------------------------------- stretches of one shape side by side


@dataclass(frozen=True, slots=True)
class _Block:
    """Stretches of one metric that have as many points and runs as each other. A stretch: a curve, one identity."""

    values: Floats
    """(stretches, points, runs), oldest run first; NaN where a run did not measure a point."""
    strata: Ints
    """(stretches, points)"""
    curve: Ints
    """One value a stretch, as are the next two."""
    places: tuple[str, ...]
    several_nodes: Flags
    seen: Scatter
    """(stretches, points)"""

    def squares(self, persistence: Mapping[str, float]) -> Floats:
        """Sums of squares that hold between neighbouring runs: (stretches, points)."""
        return self.seen.sum(np.array([persistence.get(where, 0.0) for where in self.places])[:, None])


@dataclass(frozen=True, slots=True)
class _Stretch:
    values: Floats
    strata: Ints
    curve: int
    place: str
    several_nodes: bool


def _blocks(curves: Sequence[Curve], names: Iterable[str]) -> dict[str, tuple[_Block, ...]]:
    """The stretches of every metric, gathered by shape: thousands of small matrices cost numpy's overhead each."""
    shapes: dict[str, dict[tuple[int, ...], list[_Stretch]]] = {name: {} for name in names}
    for index, curve in enumerate(curves):
        for name, stretch in _stretches(index, curve):
            if name in shapes:
                shapes[name].setdefault(stretch.values.shape, []).append(stretch)
    return {name: tuple(map(_block, alike.values())) for name, alike in shapes.items()}


def _stretches(index: int, curve: Curve) -> Iterator[tuple[str, _Stretch]]:
    """Every stretch of a curve under every metric."""
    rows: dict[str, list[int]] = {}
    for cell, name in enumerate(curve.metrics):
        rows.setdefault(name, []).append(cell)
    strata = noise.stratum(curve.conc, np.full(len(curve.conc), curve.multinode))
    for columns in matrix.stretches(curve.runs):
        where = place(curve.runs[columns[0]].pool, curve.config, curve.key)
        values = curve.values[:, columns]
        for name, cells in rows.items():
            yield name, _Stretch(values[cells], strata[cells], index, where, curve.multinode)


def _block(alike: Sequence[_Stretch]) -> _Block:
    values = np.stack([one.values for one in alike])
    shape = values.shape[:2]
    seen = matrix.scatter(values.reshape(-1, values.shape[2]))
    return _Block(
        values,
        np.stack([one.strata for one in alike]),
        np.array([one.curve for one in alike], np.int64),
        tuple(one.place for one in alike),
        np.array([one.several_nodes for one in alike]),
        Scatter(seen.squares.reshape(shape), seen.steps.reshape(shape), seen.freedom.reshape(shape)),
    )


def _gather(blocks: Iterable[_Block], persistence: Mapping[str, float]) -> noise.Stretches:
    """All series of all stretches with at least two runs, as arrays."""
    squares, freedom, strata, curve = [np.zeros(0)], [np.zeros(0)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for one in blocks:
        some = (one.seen.freedom > 0) & ~_went_through_incident(one)
        squares.append(one.squares(persistence)[some])
        freedom.append(one.seen.freedom[some])
        strata.append(one.strata[some])
        curve.append(np.broadcast_to(one.curve[:, None], some.shape)[some])
    return noise.Stretches(
        np.concatenate(squares), np.concatenate(freedom), np.concatenate(strata), np.concatenate(curve)
    )


def _went_through_incident(one: _Block) -> Flags:
    flat = Scatter(one.seen.squares.ravel(), one.seen.steps.ravel(), one.seen.freedom.ravel())
    marked = matrix.went_through_incident(one.values.reshape(-1, one.values.shape[2]), flat)
    return marked.reshape(one.seen.freedom.shape)


# ---------------------------------------------------------------- how runs resemble each other


def _persistence(blocks: Iterable[_Block]) -> dict[str, float]:
    """How much neighbouring runs resemble each other, per place: one less von Neumann's ratio, over long stretches.

    0 for independent runs; the shipped 0 weighs as much as PRIOR_STRETCHES stretches.
    """
    ratios: dict[str, list[Floats]] = {}
    for one in blocks:
        long = (one.seen.freedom >= matrix.MANY - 1) & (one.seen.squares > 0)
        ratio = one.seen.steps / np.where(long, one.seen.squares, 1.0)
        for where, row, some in zip(one.places, ratio, long, strict=True):
            ratios.setdefault(where, []).append(row[some])
    return {where: _resemblance(np.concatenate(parts)) for where, parts in ratios.items()}


def _resemblance(ratios: Floats) -> float:
    if not len(ratios):
        return 0.0
    shown = 1 - float(np.median(ratios))
    return float(np.clip(shown * len(ratios) / (len(ratios) + PRIOR_STRETCHES), 0.0, 0.95))


def _correlations(
    blocks: Sequence[_Block], scale: noise.Scale | None, persistence: Mapping[str, float]
) -> tuple[dict[str, noise.Correlation], tuple[noise.Correlation, noise.Correlation]]:
    """Per place, and for places without a history (single node, several nodes): shipped, then store, then place."""
    sigmas = _sigmas(blocks, scale, persistence) if scale else []
    moments = np.concatenate([np.zeros((0, 3)), *map(_moments, blocks, sigmas)])
    nodes = np.concatenate([np.zeros(0, bool), *(one.several_nodes for one in blocks)])
    single, several = (_shrunk(moments[nodes == kind], PRIOR_WITHIN[kind]) for kind in (False, True))
    homes: dict[str, list[int]] = {}
    for position, where in enumerate(where for one in blocks for where in one.places):
        homes.setdefault(where, []).append(position)
    places = {
        where: replace(
            _shrunk(moments[rows], (several if nodes[rows[0]] else single).within), persistence=persistence[where]
        )
        for where, rows in homes.items()
    }
    return places, (single, several)


def _moments(one: _Block, sigma: Floats) -> Floats:
    """Sums over the runs of each stretch: products of two points, squares of one, degrees of freedom."""
    z = _standardised(one, sigma)
    known = np.isfinite(z)
    z = np.where(known, z, 0.0)
    count = known.sum(axis=1)
    total, square = z.sum(axis=1), (z**2).sum(axis=1)
    some = count > 1
    products = np.where(some, (total**2 - square) / np.maximum(count * (count - 1.0), 1.0), 0.0).sum(axis=1)
    squares = np.where(some, square / np.maximum(count, 1), 0.0).sum(axis=1)
    runs = z.shape[2]
    moments: Floats = np.column_stack([products, squares, some.sum(axis=1)]) * (runs - 1) / runs
    return moments


def _shrunk(moments: Floats, prior: float) -> noise.Correlation:
    """Correlation of two points of one run, shrunk to the prior that is worth PRIOR_RUNS runs."""
    products, square, runs = moments.sum(axis=0).tolist()
    shown = products / max(square, runs, 1.0)
    within = (shown * runs + PRIOR_RUNS * prior) / (runs + PRIOR_RUNS)
    return noise.Correlation(float(np.clip(within, 0.0, 0.95)), 0.0, int(runs))


# ---------------------------------------------------------------- points that fall out of their run


INCIDENT = 12.0
"""What lies this many noise scales away was an incident of the machines, not a point that fell out of its run."""

FEW_POINTS = 3
"""From this many points on, the middle of a run tells its own movement from that of a point."""

MANY_SERIES = 1000
"""The share of fallen points is read off about so many series at most: it is no surer from more."""


def _fallen(blocks: Sequence[_Block], scale: noise.Scale, persistence: Mapping[str, float]) -> Floats:
    """How far each point of the long stretches lies from its series and its run, in units of its noise scale."""
    some = _thinned([one for one in blocks if one.values.shape[2] >= matrix.MANY])
    parts = map(_alone, some, _sigmas(some, scale, persistence))
    return np.concatenate([np.zeros(0), *parts])


def _thinned(blocks: Sequence[_Block]) -> list[_Block]:
    """Every so manieth stretch of each block, for about MANY_SERIES series in all."""
    step = max(1, -(-sum(one.strata.size for one in blocks) // MANY_SERIES))
    return [_some(one, step) for one in blocks]


def _some(one: _Block, step: int) -> _Block:
    seen = Scatter(one.seen.squares[::step], one.seen.steps[::step], one.seen.freedom[::step])
    return _Block(
        one.values[::step], one.strata[::step], one.curve[::step], one.places[::step], one.several_nodes[::step], seen
    )


def _alone(one: _Block, sigma: Floats) -> Floats:
    """Residuals of the points from the middle of their series and of their run, in units of their noise scale."""
    long = one.seen.freedom >= matrix.MANY - 1
    known = np.isfinite(one.values) & (long & (long.sum(axis=1, keepdims=True) >= FEW_POINTS))[:, :, None]
    values = np.where(known, one.values, np.nan)
    z = (values - _middle(values)) / sigma[:, :, None]
    z = z.swapaxes(1, 2)
    z = z[np.isfinite(z).sum(axis=2) >= FEW_POINTS]
    alone = z - _middle(z)
    calm: Floats = alone[np.abs(alone) < INCIDENT]
    return calm


def _middle(values: Floats) -> Floats:
    """Median along the last axis over what is known, kept as an axis of one."""
    flat = matrix.row_median(values.reshape(-1, values.shape[-1]))
    return flat.reshape((*values.shape[:-1], 1))


def _sigmas(blocks: Sequence[_Block], scale: noise.Scale, persistence: Mapping[str, float]) -> list[Floats]:
    """Posterior noise scale of each series of each stretch, all in one go: (stretches, points) a block."""
    if not blocks:
        return []
    squares = np.concatenate([one.squares(persistence).ravel() for one in blocks])
    freedom = np.concatenate([one.seen.freedom.ravel() for one in blocks])
    strata = np.concatenate([one.strata.ravel() for one in blocks])
    points = np.concatenate([np.full(len(one.strata), one.strata.shape[1]) for one in blocks])
    weights = noise.posterior(squares, freedom, strata, np.repeat(np.arange(len(points)), points), scale)
    edges = np.cumsum([one.strata.size for one in blocks])[:-1]
    parts = np.split(np.exp(weights @ noise.LOG_GRID), edges)
    return [part.reshape(one.strata.shape) for one, part in zip(blocks, parts, strict=True)]


def _standardised(one: _Block, sigma: Floats) -> Floats:
    """Residuals over the posterior noise scale of their series, clipped at 2, corrected for the fitted mean."""
    known = np.isfinite(one.values)
    count = np.maximum(known.sum(axis=2, keepdims=True), 1)
    residual = one.values - np.where(known, one.values, 0.0).sum(axis=2, keepdims=True) / count
    inflated = residual / sigma[:, :, None] * np.sqrt(count / np.maximum(count - 1, 1))
    clipped: Floats = np.clip(inflated, -2.0, 2.0)
    return clipped
