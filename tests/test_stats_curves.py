"""Tables of the predictive mixture, the pooled test and the families of tests, each against a slow twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special

from tracker.stats import curves, families, noise, predictive


def some_cells(seed, sizes, effect=None):
    """Cells of several curves with random scatter."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(sizes)), sizes)
    n = len(group)
    freedom = rng.integers(0, 5, n).astype(float)
    squares = freedom * rng.lognormal(np.log(0.006), 0.5, n) ** 2
    strata = rng.integers(0, 3, n)
    scale = noise.shipped()["throughput"]
    return curves.Cells(
        effect=rng.normal(0, 0.02, n) if effect is None else np.full(n, effect),
        weights=noise.posterior(squares, freedom, strata, group, scale),
        root_v=np.sqrt(1 / rng.integers(1, 6, n) + 1),
        runs=rng.integers(1, 6, n),
        outliers=np.full(n, 0.02),
        outlier_scale=8 * np.exp(np.array(scale.centre))[strata],
        group=group,
        correlation=np.full(len(sizes), 0.05),
        alpha=np.full(len(sizes), 0.02),
        alpha_point=np.full(len(sizes), 0.01),
        curve_margin=np.full(len(sizes), 0.0202),
        point_margin=np.full(len(sizes), 0.0305),
    )


def judged(cells):
    return curves.judge(cells, curves.spread_of(cells))


def slow_score(cells, i, x, alone):
    """Normal score of one cell by summing the mixture as it is written."""
    sigma = np.exp(noise.LOG_GRID)
    tail = float((cells.weights[i] * special.ndtr(-abs(x) / (cells.root_v[i] * sigma))).sum())
    usual = float(special.ndtr(-abs(x) / (cells.root_v[i] * cells.outlier_scale[i])))
    more = float(special.stdtr(predictive.TAIL, -abs(x) / cells.outlier_scale[i]))
    beyond = max(float(cells.outliers[i]) - noise.OUTLIERS, 0.0)
    fallen = noise.OUTLIERS * (usual - tail) + beyond * cells.root_v[i] ** 2 * (more - tail)
    return float(np.sign(x) * -special.ndtri(tail + (fallen if alone else beyond * (usual - tail))))


def slow_pooled(cells, members, shift, log_sigma):
    """The pooled statistic of one curve by a loop over its points."""
    mean = np.mean([log_sigma[i] for i in members])
    weights, total = [], 0.0
    for i in members:
        trust = (cells.runs[i] - 1) / (cells.runs[i] - 1 + curves.WEIGHT_RUNS)
        weights.append(np.exp(-(trust * log_sigma[i] + (1 - trust) * mean)) / cells.root_v[i])
        total += weights[-1] * slow_score(cells, i, cells.effect[i] - shift, alone=False)
    rho = float(cells.correlation[0])
    own = sum(w * w for w in weights)
    return total / np.sqrt(own + rho * (sum(weights) ** 2 - own))


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_all_curves_at_once_agree_with_one_after_the_other(seed, sizes):
    cells = some_cells(seed, sizes)
    points, found = judged(cells)
    log_sigma = cells.weights @ noise.LOG_GRID
    for g in range(len(sizes)):
        members = np.flatnonzero(cells.group == g)
        z = slow_pooled(cells, members, 0.0, log_sigma)
        assert found.p_pooled[g] == pytest.approx(2 * special.ndtr(-abs(z)), rel=0.02, abs=1e-12)
        for answer, target in ((found.effect[g], 0.0), (found.low[g], 1.96), (found.high90[g], -1.645)):
            root = optimize.brentq(lambda m, t=target: slow_pooled(cells, members, m, log_sigma) - t, -2, 2)  # noqa: B023
            assert answer == pytest.approx(root, abs=1e-4)
        for i in members:
            z = slow_score(cells, i, cells.effect[i], alone=True)
            assert points.p[i] == pytest.approx(2 * special.ndtr(-abs(z)), rel=0.02, abs=1e-9)


def test_reach_is_the_inverse_of_score():
    cells = some_cells(3, [6, 5])
    member, _ = predictive.predictive(cells.weights, cells.root_v, cells.outliers, cells.outlier_scale)
    for z in (0.2, 1.0, 1.96, 3.0, 5.0):
        assert predictive.score(member, predictive.reach(member, z)) == pytest.approx(z, rel=1e-6)


def test_the_smallest_change_is_at_least_the_margin_and_falls_with_points():
    one, many = (judged(some_cells(1, [size], effect=0.0))[1].mde[0] for size in (1, 20))
    assert 0.0202 < many < one


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 2)), min_size=1, max_size=12))
def test_holm_agrees_with_its_definition(tests):
    tests = sorted(tests, key=lambda item: item[1])
    p = np.array([value for value, _ in tests])
    group = np.unique([g for _, g in tests], return_inverse=True)[1]
    expected = np.empty(len(p))
    for g in set(group.tolist()):
        members = sorted(np.flatnonzero(group == g), key=lambda i: p[i])
        worst = 0.0
        for rank, i in enumerate(members):
            worst = max(worst, min(1.0, p[i] * (len(members) - rank)))
            expected[i] = worst
    assert families.holm(p, group) == pytest.approx(expected)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=0, max_size=12))
def test_benjamini_hochberg_agrees_with_its_definition(values):
    p = np.array(values)
    adjusted = families.benjamini_hochberg(p)
    for i, value in enumerate(values):
        bounds = [v * len(p) / sum(w <= v for w in values) for v in values if v >= value]
        assert adjusted[i] == pytest.approx(min(1.0, *bounds) if bounds else 1.0)
