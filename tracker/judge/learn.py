"""What a store teaches about its own noise: scales per metric, and how the runs of a pool move together."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from store.metrics import METRICS
from tracker import matrix
from tracker.judge.numbers import PRIOR_WITHIN, judged_as, place
from tracker.matrix import Curve, Scatter
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


def _learn(curves: Sequence[Curve], settings: Settings) -> noise.Scales:
    names = judged_as({name for curve in curves for name in curve.metrics})
    found = {name: tuple(_of_metric(curves, name)) for name in names}
    gate = found.get(next((name for name in ("tput_per_gpu", "median_tpot", *names) if name in names), ""), ())
    persistence = {where: _persistence(group) for where, group in _by_place(gate).items()}
    scales = {}
    for name, target in names.items():
        prior = noise.shipped()[METRICS[target].family]
        stretches = _gather(found[name], persistence)
        if len(stretches.squares) >= settings.min_stretches:
            fitted = noise.fit(stretches, prior)
            share, far = noise.outliers(_fallen(found[name], fitted, persistence))
            scales[name] = replace(fitted, outliers=share, outlier_scales=far)
        else:
            scales[name] = prior
    gate_scale = next((scales[name] for name in ("tput_per_gpu", "median_tpot", *names) if name in scales), None)
    return noise.Scales(scales, *_correlations(gate, gate_scale, persistence))


@dataclass(frozen=True, slots=True)
class _Stretch:
    """One curve under one identity and one metric: points by runs, oldest first."""

    values: Floats
    strata: Ints
    curve: int
    place: str
    several_nodes: bool
    seen: Scatter


def _of_metric(curves: Sequence[Curve], name: str) -> Iterable[_Stretch]:
    for index, curve in enumerate(curves):
        cells = np.array([cell for cell, metric in enumerate(curve.metrics) if metric == name], np.int64)
        if not len(cells):
            continue
        several = np.full(len(cells), curve.multinode)
        strata = noise.stratum(curve.conc[cells], several)
        for columns in matrix.stretches(curve.runs):
            where = place(curve.runs[columns[0]].pool, curve.config, curve.key)
            values = curve.values[np.ix_(cells, columns)]
            yield _Stretch(values, strata, index, where, curve.multinode, matrix.scatter(values))


def _gather(found: Iterable[_Stretch], persistence: Mapping[str, float]) -> noise.Stretches:
    """All series of all stretches with at least two runs, as arrays."""
    squares, freedom, strata, curve = [np.zeros(0)], [np.zeros(0)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for one in found:
        some = (one.seen.freedom > 0) & ~matrix.went_through_incident(one.values, one.seen)
        squares.append(one.seen.sum(persistence.get(one.place, 0.0))[some])
        freedom.append(one.seen.freedom[some])
        strata.append(one.strata[some])
        curve.append(np.full(int(some.sum()), one.curve))
    return noise.Stretches(
        np.concatenate(squares), np.concatenate(freedom), np.concatenate(strata), np.concatenate(curve)
    )


def _by_place(found: Iterable[_Stretch]) -> dict[str, list[_Stretch]]:
    homes: dict[str, list[_Stretch]] = {}
    for one in found:
        homes.setdefault(one.place, []).append(one)
    return homes


def _persistence(found: Sequence[_Stretch]) -> float:
    """How much neighbouring runs resemble each other: one less von Neumann's ratio, the median over long stretches.

    0 for independent runs; the shipped 0 weighs as much as PRIOR_STRETCHES stretches.
    """
    ratios: list[float] = []
    for one in found:
        long = (one.seen.freedom >= matrix.MANY - 1) & (one.seen.squares > 0)
        ratios.extend((one.seen.steps[long] / one.seen.squares[long]).tolist())
    if not ratios:
        return 0.0
    resemblance = 1 - float(np.median(ratios))
    return float(np.clip(resemblance * len(ratios) / (len(ratios) + PRIOR_STRETCHES), 0.0, 0.95))


def _correlations(
    found: Sequence[_Stretch], scale: noise.Scale | None, persistence: Mapping[str, float]
) -> tuple[dict[str, noise.Correlation], tuple[noise.Correlation, noise.Correlation]]:
    """Per place, and for places without a history (single node, several nodes): shipped, then store, then place."""
    sigmas = _sigmas(found, scale, persistence) if scale else []
    moments = [_moments(one, sigma) for one, sigma in zip(found, sigmas, strict=True)] if scale else []
    single, several = (
        _shrunk([m for one, m in zip(found, moments, strict=True) if one.several_nodes == nodes], PRIOR_WITHIN[nodes])
        for nodes in (False, True)
    )
    homes: dict[str, list[tuple[_Stretch, _Moments]]] = {}
    for one, moment in zip(found, moments, strict=True):
        homes.setdefault(one.place, []).append((one, moment))
    places = {
        where: replace(
            _shrunk([moment for _, moment in group], (several if group[0][0].several_nodes else single).within),
            persistence=persistence[where],
        )
        for where, group in homes.items()
    }
    return places, (single, several)


@dataclass(frozen=True, slots=True)
class _Moments:
    """Sums over the runs of a stretch: products of two points, squares of one, degrees of freedom."""

    products: float
    squares: float
    runs: float


def _moments(one: _Stretch, sigma: Floats) -> _Moments:
    z = _standardised(one, sigma)
    count = np.isfinite(z).sum(axis=0)
    some = count > 1
    total, square, count = np.nansum(z, axis=0)[some], np.nansum(z**2, axis=0)[some], count[some]
    share = (z.shape[1] - 1) / z.shape[1]
    products = ((total**2 - square) / (count * (count - 1.0))).sum()
    return _Moments(share * float(products), share * float((square / count).sum()), share * len(count))


def _shrunk(moments: Sequence[_Moments], prior: float) -> noise.Correlation:
    """Correlation of two points of one run, shrunk to the prior that is worth PRIOR_RUNS runs."""
    runs = sum(one.runs for one in moments)
    squares = max(sum(one.squares for one in moments), runs, 1.0)
    shown = sum(one.products for one in moments) / squares
    within = (shown * runs + PRIOR_RUNS * prior) / (runs + PRIOR_RUNS)
    return noise.Correlation(float(np.clip(within, 0.0, 0.95)), 0.0, int(runs))


INCIDENT = 12.0
"""What lies this many noise scales away was an incident of the machines, not a point that fell out of its run."""

FEW_POINTS = 3
"""From this many points on, the middle of a run tells its own movement from that of a point."""


def _fallen(found: Sequence[_Stretch], scale: noise.Scale, persistence: Mapping[str, float]) -> Floats:
    """How far each point of the long stretches lies from its series and its run, in units of its noise scale."""
    parts = [np.zeros(0)]
    for one, sigma in zip(found, _sigmas(found, scale, persistence), strict=True):
        long = np.isfinite(one.values).sum(axis=1) >= matrix.MANY
        if long.sum() < FEW_POINTS:
            continue
        values = one.values[long]
        residual = values - np.nanmedian(values, axis=1, keepdims=True)
        z = residual / sigma[long, None]
        shared = z[:, np.isfinite(z).sum(axis=0) >= FEW_POINTS]
        alone = shared - np.nanmedian(shared, axis=0, keepdims=True)
        parts.append(alone[np.abs(alone) < INCIDENT])
    return np.concatenate(parts)


def _sigmas(found: Sequence[_Stretch], scale: noise.Scale, persistence: Mapping[str, float]) -> list[Floats]:
    """Posterior noise scale of each series of each stretch, all in one go."""
    if not found:
        return []
    sizes = [len(one.values) for one in found]
    squares = np.concatenate([one.seen.sum(persistence.get(one.place, 0.0)) for one in found])
    freedom = np.concatenate([one.seen.freedom for one in found])
    strata = np.concatenate([one.strata for one in found])
    weights = noise.posterior(squares, freedom, strata, np.repeat(np.arange(len(found)), sizes), scale)
    return np.split(np.exp(weights @ noise.LOG_GRID), np.cumsum(sizes)[:-1])


def _standardised(one: _Stretch, sigma: Floats) -> Floats:
    """Residuals over the posterior noise scale of their series, clipped at 2, corrected for the fitted mean."""
    known = np.isfinite(one.values)
    count = np.maximum(known.sum(axis=1), 1)
    residual = one.values - np.where(known, one.values, 0.0).sum(axis=1, keepdims=True) / count[:, None]
    inflated = residual / sigma[:, None] * np.sqrt(count / np.maximum(count - 1, 1))[:, None]
    clipped: Floats = np.clip(inflated, -2.0, 2.0)
    return clipped
