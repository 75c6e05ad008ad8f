"""What a log ratio looks like when nothing changed: a mixture of normals over the noise scales, tabulated per cell.

With sigma on a logarithmic grid the mixture is a convolution in ln x, so a table of all cells is one matrix product; a
later question costs one interpolation. (Evaluating the mixture at every step of a root search took 40 times longer.)

Within a series the errors are normal: over published sweeps P(|x| > 3, 5, 7 %) between two runs is 5.2, 0.7, 0.2 %;
the mixture of normals says 4.4, 1.2, 0.4 %, one of t with 5 degrees of freedom 6.8, 2.3, 1.0 %. What remains are lone
points that fall out of their run, which the tests of single points allow for (`noise.OUTLIERS`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from tracker.stats.noise import LOG_GRID, OUTLIERS, Floats

_STEP = 2 * (LOG_GRID[1] - LOG_GRID[0])
_NODES: Floats = np.arange(LOG_GRID[0] - 20 * _STEP, 3.0, _STEP)
_TINY = 1e-300

TAIL = 3.0
"""Degrees of freedom of a fall. Nobody has seen enough of them to know how far they may go: with a normal tail stores
with noise of such tails called a lone point on 6 % of their unchanged curves of 36 points."""

MOST_FALLEN = 0.5
"""Fallen measurements are never taken for the rule."""


@dataclass(frozen=True, slots=True)
class Predictive:
    """One row a cell: ln of the normal score of |x| at nodes of ln(|x| / root_v)."""

    table: Floats
    root_v: Floats


@lru_cache(maxsize=1)
def _tails() -> Floats:
    """P(N < -exp(node) / sigma): rows are noise scales, columns nodes."""
    return special.ndtr(-np.exp(_NODES[None, :] - LOG_GRID[:, None]))


def predictive(weights: Floats, root_v: Floats, share: Floats, scale: Floats) -> tuple[Predictive, Predictive]:
    """Tabulate the cells as members of a curve and as points on their own.

    `weights` is the posterior of the noise scales, `root_v` sqrt(1/k + 1/m); a `share` of the measurements falls out
    of its run by about `scale`. A curve averages the rare ones away and allows for what its store shows beyond the
    usual share. Picking out one point must allow for all of them: for the usual share by a normal tail, as published
    sweeps show it; for more than that on either side (hence share times v), by a t with TAIL degrees of freedom.
    """
    tail = weights @ _tails()
    fallen, beyond = _fall(special.ndtr, scale) - tail, (share - OUTLIERS).clip(0.0)[:, None]
    member, alone = tail + beyond * fallen, tail + np.minimum(share, OUTLIERS)[:, None] * fallen
    if beyond.any():
        more = np.minimum(beyond * root_v[:, None] ** 2, MOST_FALLEN)
        alone = alone + more * (_fall(_heavy, scale / root_v) - tail)
    return _tabulated(member, root_v), _tabulated(alone, root_v)


def _heavy(x: Floats) -> Floats:
    tail: Floats = special.stdtr(TAIL, x).astype(np.float64)
    return tail


def _fall(distribution: Callable[[Floats], Floats], scale: Floats) -> Floats:
    """P(below -exp(node)) of a distribution with these scales; few of them differ."""
    scales, of = np.unique(scale, return_inverse=True)
    return distribution(-np.exp(_NODES[None, :]) / scales[:, None])[of]


def _tabulated(tail: Floats, root_v: Floats) -> Predictive:
    return Predictive(np.log(-special.ndtri(np.clip(tail, _TINY, 0.5 - 1e-12))), root_v)


def score(cells: Predictive, x: Floats) -> Floats:
    """Normal score of each effect, same sign as the effect. `x` is (cells,) or (questions, cells)."""
    place = (np.log(np.maximum(np.abs(x), _TINY) / cells.root_v) - _NODES[0]) / _STEP
    left = np.clip(place.astype(np.int64), 0, len(_NODES) - 2)
    rows = np.arange(len(cells.root_v))
    low, high = cells.table[rows, left], cells.table[rows, left + 1]
    scores: Floats = np.sign(x) * np.exp(low + (high - low) * (np.minimum(place, len(_NODES) - 1) - left))
    return scores


def reach(cells: Predictive, z: float | Floats) -> Floats:
    """The effect whose normal score is z (z > 0): the inverse of `score`."""
    target = np.log(np.broadcast_to(np.asarray(z, dtype=np.float64), cells.root_v.shape))
    left = np.clip((cells.table < target[:, None]).sum(axis=1) - 1, 0, len(_NODES) - 2)
    rows = np.arange(len(cells.root_v))
    low, high = cells.table[rows, left], cells.table[rows, left + 1]
    place = left + (target - low) / np.maximum(high - low, 1e-12)
    effect: Floats = np.exp(_NODES[0] + place * _STEP) * cells.root_v
    return effect
