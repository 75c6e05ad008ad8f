"""How much a series scatters when nothing changed: a log-normal hierarchy of noise scales on a fixed grid.

y = mu + e, e = sigma times a heavy-tailed error; ln sigma = b(nodes, concurrency) + u(curve) + w(series), where u and w
are normal with variances `shared * tau^2` and `(1 - shared) * tau^2`. The posterior lives on 91 log-spaced values, so
that 0, 1 or 20 replicates need no special case. Everything is in natural log units.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LOG_GRID: Floats = np.linspace(np.log(4e-4), np.log(0.6), 91)
"""Noise scales that are thought of: 0.04 to 60 %, 91 of them."""

CONCURRENCY_BINS = (8, 64)
"""Strata of concurrency: up to 8, 9 to 64, above."""

STRATA = 6
SHARED_GRID: Floats = np.linspace(-4.0, 4.0, 33)
"""Curve effects u in units of their standard deviation."""

OUTLIERS = 0.0035
"""Published sweeps: 5 of about 1,500 points."""

OUTLIER_SCALES = 8.0
OUTLIERS_NEWS = (0.024, 0.034)
"""A store's own share begins to count at the first and counts whole from the second: published sweeps, a little heavier
than normal, show 0.017 to 0.023 by the same estimate."""

OUTLIER_PRIOR = 500.0
"""The shipped share weighs as much as this many points."""

OUTLIER_BINS = 600
"""Residuals are counted in so many bins first: the steps of the search then cost nothing."""

SD_FLOOR = 0.001
TAU_FLOOR = 0.3
TAU_PRIOR = 20.0
"""The shipped tau weighs as much as this many well-known stretches."""
RIDGE = 0.5
DROPPED_BEYOND = 2.5


@dataclass(frozen=True, slots=True)
class Scale:
    """Hyper-parameters of one metric: typical ln sigma per stratum and how far series stray from it."""

    centre: tuple[float, ...]
    """ln sigma: single node at low, middle, high concurrency, then several nodes."""
    tau: tuple[float, float]
    """Spread of ln sigma over series: single node, several nodes."""
    shared: float
    """Share of tau^2 that the points of one curve have in common."""
    stretches: int
    source: str
    """"store" (fitted on its unchanged stretches) or "shipped"."""
    outliers: float = OUTLIERS
    """Share of points that fall out of their run for no reason of the software."""
    outlier_scales: float = OUTLIER_SCALES
    """How far they fall: standard deviation in units of the typical noise scale of their stratum."""


@dataclass(frozen=True, slots=True)
class Scales:
    """What a store has learned about its noise: per metric, and per pool of machines."""

    metrics: Mapping[str, Scale]
    correlation: Mapping[str, Correlation]
    """Per pool (or what stands for it)."""
    elsewhere: tuple[Correlation, Correlation]
    """Where no pool is known: single node, several nodes."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """How the points of one run move together, and how that movement persists into the next run."""

    within: float
    persistence: float
    runs: int = 0
    """Degrees of freedom (runs less stretches) that the figure rests on, the prior aside."""


@dataclass(frozen=True, slots=True)
class Stretches:
    """Unchanged stretches of one metric: a series under one image and recipe. All arrays have one entry a stretch."""

    squares: Floats
    """Residual sums of squares."""
    freedom: Floats
    """Degrees of freedom (runs less one)."""
    stratum: Ints
    curve: Ints
    """Which stretches share a curve."""


def stratum(conc: Ints, several_nodes: npt.NDArray[np.bool_]) -> Ints:
    """Stratum of each point, 0 to 5.

    >>> stratum(np.array([1, 9, 65, 8]), np.array([False, False, False, True])).tolist()
    [0, 1, 2, 3]
    """
    return np.searchsorted(CONCURRENCY_BINS, conc) + 3 * several_nodes.astype(np.int64)


@lru_cache(maxsize=1)
def shipped() -> Mapping[str, Scale]:
    """Noise scales per noise family, fitted on published sweeps: what is used until a store has its own."""
    text = resources.files("tracker.stats").joinpath("prior_public.json").read_text(encoding="utf-8")
    rows = json.loads(text)
    return MappingProxyType(
        {
            family: Scale(
                tuple(float(np.log(value)) for value in row["scale"]),
                (row["tau"][0], row["tau"][1]),
                row["shared"],
                row["stretches"],
                "shipped",
            )
            for family, row in rows.items()
        }
    )


def fit(stretches: Stretches, prior: Scale) -> Scale:
    """Hyper-parameters from unchanged stretches, by Smyth's moments of ln s and ridge least squares.

    Stretches beyond three standardised residuals (incidents) are dropped and the fit is repeated.
    """
    level, noise = _log_scale(stretches)
    nodes = stretches.stratum // 3
    keep = np.ones(len(level), dtype=bool)
    tau = np.array(prior.tau)
    for _ in range(30):
        spread = tau[nodes]
        weight = keep / (noise + spread**2)
        centre = _ridge(level, weight, stretches.stratum)
        residual = level - centre[stretches.stratum]
        trust = weight * spread**2
        tau = (tau + _spread(trust, trust * (residual**2 - noise), nodes, np.array(prior.tau))) / 2
        keep = residual / np.sqrt(noise + tau[nodes] ** 2) < DROPPED_BEYOND
    shared = _shared(residual[keep], noise[keep], stretches.curve[keep], tau[nodes[keep]], prior.shared)
    return Scale(tuple(centre.tolist()), (float(tau[0]), float(tau[1])), shared, int(keep.sum()), "store")


def _spread(trust: Floats, excess: Floats, nodes: Ints, prior: Floats) -> Floats:
    """Tau of single and of several nodes: what the residuals show beyond their own noise, and a prior worth a few.

    One tau for both would let a few unsteady deployments on several nodes blur every single-node point.
    """
    shown = np.bincount(nodes, excess, 2) + TAU_PRIOR * prior**2
    return np.sqrt(np.maximum(TAU_FLOOR**2, shown / (np.bincount(nodes, trust, 2) + TAU_PRIOR)))


def _log_scale(stretches: Stretches) -> tuple[Floats, Floats]:
    """Unbiased ln s of each stretch and the variance of that estimate."""
    known, position = np.unique(stretches.freedom, return_inverse=True)
    half = known / 2
    bias, variance = (special.digamma(half) - np.log(half)) / 2, special.polygamma(1, half) / 4
    deviation = np.maximum(np.sqrt(stretches.squares / stretches.freedom), SD_FLOOR)
    return np.log(deviation) - bias[position], variance[position]


def _design(strata: Ints) -> Floats:
    """Columns: one, several nodes, single node, low, middle, high."""
    columns = [np.ones(len(strata)), strata >= 3, strata < 3, *(strata % 3 == level for level in range(3))]
    return np.column_stack(columns).astype(np.float64)


_DESIGN: Floats = _design(np.arange(STRATA))
_PENALTY: Floats = np.diag([1e-6, *[1 / RIDGE**2] * (_DESIGN.shape[1] - 1)])


def _ridge(level: Floats, weight: Floats, strata: Ints) -> Floats:
    """Fitted level of each stratum: the stretches enter by the sums of their strata alone."""
    total = np.bincount(strata, weight, STRATA)
    shown = np.bincount(strata, weight * level, STRATA)
    gram = _DESIGN.T @ (total[:, None] * _DESIGN) + _PENALTY
    fitted: Floats = _DESIGN @ np.linalg.solve(gram, _DESIGN.T @ shown)
    return fitted


def _shared(residual: Floats, noise: Floats, curve: Ints, tau: Floats, prior: float) -> float:
    """Share of tau^2 common to a curve: products of residuals of two series of it; a prior worth 20 of them."""
    clipped = np.clip(residual, -3 * tau, 3 * tau) / np.sqrt(noise + tau**2)
    reliability = tau**2 / (noise + tau**2)
    sums, squares = np.bincount(curve, clipped), np.bincount(curve, clipped**2)
    size, trust = np.bincount(curve), np.bincount(curve, reliability)
    pairs = size * (size - 1) / 2
    some = pairs > 0
    products = (sums[some] ** 2 - squares[some]) / 2 / pairs[some]
    trust_of = trust[some] / size[some]
    worth = size[some] - 1
    found = float((products * worth).sum())
    seen = float((trust_of * worth).sum())
    return float(np.clip((found + 20 * prior) / (seen + 20), 0.1, 0.9))


def outliers(z: Floats) -> tuple[float, float]:
    """Share and size of the points that fall out of their run, from residuals in units of their noise scale.

    Two centred normals by expectation and maximisation, drawn to the shipped figures while the points are few.
    """
    share, core, wide = OUTLIERS, 1.0, OUTLIER_SCALES
    count, edges = np.histogram(np.abs(z), OUTLIER_BINS)
    squared = ((edges[1:] + edges[:-1]) / 2) ** 2
    prior = OUTLIER_PRIOR * OUTLIERS
    for _ in range(30):
        near = (1 - share) * np.exp(-squared / core**2 / 2) / core
        far = share * np.exp(-squared / wide**2 / 2) / wide
        fallen = count * far / np.maximum(near + far, 1e-300)
        lost, left = float(fallen.sum()), count - fallen
        share = (lost + prior) / (len(z) + OUTLIER_PRIOR)
        core = max(0.5, float(np.sqrt((left * squared).sum() / max(left.sum(), 1.0))))
        wide = float(np.sqrt(((fallen * squared).sum() + prior * OUTLIER_SCALES**2) / (lost + prior)))
        wide = max(wide, 3 * core)
    news = float(np.clip((share - OUTLIERS_NEWS[0]) / (OUTLIERS_NEWS[1] - OUTLIERS_NEWS[0]), 0.0, 1.0))
    return OUTLIERS + news * (share - OUTLIERS), OUTLIER_SCALES * (wide / OUTLIER_SCALES) ** news


_NEVER = -150.0
"""ln of what counts as impossible: products of smaller numbers are denormal, and a processor takes ages over those."""


@lru_cache(maxsize=512)
def _kernel(centre: float, tau: float, shared: float) -> tuple[Floats, Floats]:
    """p(sigma on the grid | curve effect), rows: curve effects; and the prior of the curve effects."""
    effects = SHARED_GRID * tau * np.sqrt(shared)
    own = tau * np.sqrt(1 - shared)
    density = np.exp(np.maximum(-(((LOG_GRID[None, :] - centre - effects[:, None]) / own) ** 2) / 2, _NEVER))
    prior = np.exp(-(SHARED_GRID**2) / 2)
    return density / density.sum(axis=1, keepdims=True), prior / prior.sum()


def posterior(squares: Floats, freedom: Floats, strata: Ints, curve: Ints, scale: Scale) -> Floats:
    """Weights of the noise scales on the grid, one row a cell; the points of a curve inform each other.

    `squares` and `freedom` are residual sums of squares and their degrees of freedom (0: nothing known).
    """
    likelihood = -freedom[:, None] * LOG_GRID - squares[:, None] / 2 * np.exp(-2 * LOG_GRID)
    likelihood = np.exp(np.maximum(likelihood - likelihood.max(axis=1, keepdims=True), _NEVER))
    evidence = np.empty((len(squares), len(SHARED_GRID)))
    members = [(int(level), np.flatnonzero(strata == level)) for level in np.unique(strata)]
    kernels = {level: _kernel(scale.centre[level], scale.tau[level // 3], scale.shared) for level, _ in members}
    for level, rows in members:
        evidence[rows] = likelihood[rows] @ kernels[level][0].T
    log_evidence = np.log(np.maximum(evidence, 1e-290))
    belief = np.zeros((int(curve.max(initial=0)) + 1, len(SHARED_GRID)))
    np.add.at(belief, curve, log_evidence)
    others = belief[curve] - log_evidence
    weights = np.empty_like(likelihood)
    for level, rows in members:
        kernel, prior = kernels[level]
        effect = np.exp(others[rows] - others[rows].max(axis=1, keepdims=True)) * prior
        weights[rows] = likelihood[rows] * (effect @ kernel)
    normal: Floats = weights / weights.sum(axis=1, keepdims=True)
    return normal
