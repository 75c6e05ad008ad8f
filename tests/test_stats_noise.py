"""The hierarchy of noise scales: against a slow twin, and against what was planted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracker import matrix
from tracker.stats import noise


def slow_posterior(squares, freedom, strata, curve, scale):
    """Bayes' rule by loops: every curve effect, every noise scale, every cell."""
    tau = [scale.tau[level // 3] for level in strata]
    effects = noise.SHARED_GRID
    prior = np.exp(-(effects**2) / 2)

    def given_effect(cell, effect):
        centre = scale.centre[strata[cell]] + effect * tau[cell] * np.sqrt(scale.shared)
        own = tau[cell] * np.sqrt(1 - scale.shared)
        density = np.exp(-(((noise.LOG_GRID - centre) / own) ** 2) / 2)
        density /= density.sum()
        log_likelihood = -freedom[cell] * noise.LOG_GRID - squares[cell] / 2 * np.exp(-2 * noise.LOG_GRID)
        return density * np.exp(log_likelihood - log_likelihood.max())

    rows = []
    for cell in range(len(squares)):
        total = np.zeros(len(noise.LOG_GRID))
        for effect, weight in zip(effects, prior, strict=True):
            others = [o for o in range(len(squares)) if curve[o] == curve[cell] and o != cell]
            told = np.prod([given_effect(other, effect).sum() for other in others])
            total += weight * told * given_effect(cell, effect)
        rows.append(total / total.sum())
    return np.array(rows)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(1e-6, 1e-2), st.sampled_from([0.0, 1.0, 4.0]), st.integers(0, 5), st.integers(0, 1)),
        min_size=1,
        max_size=4,
    )
)
def test_the_posterior_agrees_with_bayes_rule_by_loops(cells):
    squares, freedom, strata, curve = (np.array(column) for column in zip(*cells, strict=True))
    squares = squares * (freedom > 0)
    scale = noise.shipped()["throughput"]
    fast = noise.posterior(squares, freedom, strata, curve, scale)
    assert fast == pytest.approx(slow_posterior(squares, freedom, strata, curve, scale), abs=1e-9)


def test_with_nothing_known_the_noise_is_the_typical_one():
    scale = noise.shipped()["throughput"]
    weights = noise.posterior(np.zeros(1), np.zeros(1), np.array([1]), np.zeros(1, int), scale)
    assert float(np.exp(weights @ noise.LOG_GRID)[0]) == pytest.approx(0.0059, rel=0.05)


def test_points_of_one_curve_tell_of_each_other():
    scale = noise.shipped()["throughput"]
    squares, freedom = np.array([5 * 0.02**2, 0.0, 0.0]), np.array([5.0, 0.0, 0.0])
    weights = noise.posterior(squares, freedom, np.ones(3, int), np.array([0, 0, 1]), scale)
    neighbour, stranger = np.exp(weights @ noise.LOG_GRID)[1:]
    assert neighbour > 1.3 * stranger


def test_the_fit_finds_the_scales_that_were_planted():
    rng = np.random.default_rng(5)
    curve = np.repeat(np.arange(60), 5)
    strata = np.tile([0, 1, 2, 1, 0], 60)
    common, own = rng.normal(0, 0.5, 60)[curve], rng.normal(0, 0.3, 300)
    sigma = np.exp(np.log([0.02, 0.01, 0.005])[strata] + common + own)
    squares = sigma**2 * rng.chisquare(6, 300)
    found = noise.fit(noise.Stretches(squares, np.full(300, 6.0), strata, curve), noise.shipped()["throughput"])
    assert np.exp(found.centre[:3]) == pytest.approx([0.02, 0.01, 0.005], rel=0.25)
    assert found.tau[0] == pytest.approx(np.hypot(0.5, 0.3), abs=0.1)
    assert found.shared == pytest.approx(0.25 / 0.34, abs=0.15)
    assert found.source == "store"


def test_a_few_incidents_do_not_move_the_fit():
    rng = np.random.default_rng(6)
    squares = 0.005**2 * rng.chisquare(4, 100)
    dirty = np.where(np.arange(100) < 4, 0.4**2, squares)
    strata, curve = np.ones(100, int), np.arange(100)
    clean, marred = (
        noise.fit(noise.Stretches(each, np.full(100, 4.0), strata, curve), noise.shipped()["throughput"])
        for each in (squares, dirty)
    )
    assert marred.centre[1] == pytest.approx(clean.centre[1], abs=0.05)


@pytest.mark.parametrize(
    ("family", "single", "several"),
    [("throughput", [0.49, 0.59, 0.28], [0.76, 0.91, 0.43]), ("tpot", [0.41, 0.55, 0.33], [0.42, 0.55, 0.33])],
)
def test_the_shipped_scales_are_those_of_the_published_sweeps(family, single, several):
    shipped = 100 * np.exp(noise.shipped()[family].centre)
    assert shipped == pytest.approx([*single, *several], abs=0.006)


@pytest.mark.parametrize("runs", [2, 5, 8, 20])
@pytest.mark.parametrize("sigma", [0.002, 0.02])
def test_cutting_incidents_down_leaves_normal_noise_its_variance(runs, sigma):
    values = sigma * np.random.default_rng(runs).standard_normal((4000, runs))
    seen = matrix.scatter(values)
    for squares in (seen.squares, seen.steps):
        assert (squares / seen.freedom).mean() == pytest.approx(sigma**2, rel=0.06)
