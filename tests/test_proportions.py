import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.stats.proportions import (
    Difference,
    Proportion,
    average,
    compare,
    dispersion,
    pool,
    standard_error,
    wilson,
)

N = 1319
shares = st.integers(0, N).map(lambda right: right / N)
differences = st.builds(Difference, st.floats(-0.5, 0.5), st.floats(1e-4, 0.1))


def score(p, n=N):
    return Proportion(p, standard_error(p, n))


@pytest.mark.parametrize("reported", [None, 0.0, 0.001, math.nan, -1.0, math.inf, 0.005692])
def test_the_standard_error_is_computed_where_the_report_is_no_number(reported):
    assert round(standard_error(0.9553, N, reported), 4) == 0.0057


@pytest.mark.parametrize(("p", "n", "se"), [(0.828125, 256, 0.0236), (0.9553, 256, 0.0129), (0.5, 101, 0.05)])
def test_a_report_of_less_than_half_the_formula_is_not_believed(p, n, se):
    assert round(standard_error(p, n, 0.001), 4) == se


@pytest.mark.parametrize("reported", [0.004, 0.02])
def test_a_plausible_report_is_kept(reported):
    assert standard_error(0.9553, N, reported) == reported


def test_without_questions_only_a_report_gives_a_standard_error():
    assert standard_error(0.9, None, 0.01) == 0.01
    assert standard_error(0.9, None, 0.0) is None


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_at_the_ends_the_standard_error_is_bounded(p):
    low, high = wilson(p, N)
    assert high - low == pytest.approx(0.0029, abs=1e-4)
    assert standard_error(p, N, 0.0) == pytest.approx((high - low) / 3.92, rel=1e-3)
    assert math.isfinite(compare(score(p), score(p)).z)


@pytest.mark.parametrize(
    ("p", "n", "low", "high"), [(0.5, 10, 0.2366, 0.7634), (0.9, 10, 0.5958, 0.9821), (0.0, 10, 0.0, 0.2775)]
)
def test_wilson_agrees_with_published_values(p, n, low, high):
    assert wilson(p, n) == pytest.approx((low, high), abs=1e-4)


def test_the_pair_of_the_duplicates_is_no_change():
    before, after = 764 / N, 750 / N
    naive = compare(score(before), score(after), phi=1.0)
    assert round(naive.z, 2) == -0.55
    assert naive.p_drop > 0.25


def test_two_points_are_found_by_the_measured_scatter_and_not_by_independent_samples():
    before, after = score(0.960), score(0.945)
    assert compare(before, after, phi=1.0).p_drop > 0.01
    assert compare(before, after).p_drop < 0.01


@given(shares, shares)
def test_swapping_the_sides_mirrors_everything(a, b):
    there, back = compare(score(a), score(b)), compare(score(b), score(a))
    assert there.effect == -back.effect
    assert there.p_drop == pytest.approx(back.p_rise)
    assert there.interval() == pytest.approx(tuple(-limit for limit in reversed(back.interval())))
    assert there.detectable(0.01) == back.detectable(0.01)
    assert there.within(0.01) == back.within(0.01)


@given(differences)
def test_a_pool_of_one_is_the_one(part):
    whole = pool([part])
    assert (whole.effect, whole.se) == pytest.approx((part.effect, part.se))


@given(st.lists(differences, min_size=1, max_size=9))
def test_the_pooled_z_is_the_formula_of_the_design(parts):
    j = len(parts)
    slow = sum(part.effect / part.se for part in parts) / math.sqrt(j * (1 + 0.05 * (j - 1)))
    assert pool(parts).z == pytest.approx(slow, rel=1e-9, abs=1e-9)


def test_scatter_without_pairs_is_the_prior():
    assert dispersion([]) == 0.6


def test_scatter_is_learned_and_floored():
    loud = [(score(0.95), score(0.95 + shift)) for shift in (0.0085, -0.0085)] * 300
    quiet = [(score(0.95), score(0.95))] * 1000
    assert 0.9 < dispersion(loud) < 1.05
    assert dispersion(quiet) == 0.4


def test_one_real_change_among_the_reruns_moves_the_scatter_little():
    reruns = [(score(0.96), score(0.96))] * 9 + [(score(0.96), score(0.50))]
    assert dispersion(reruns) < 0.75


def rerun(rng, hard, flip=0.18):
    """Two greedy runs on the SAME questions: most answers repeat, a part of the doubtful ones is drawn again."""
    first = rng.random(len(hard)) < hard
    again = rng.random(len(hard)) < flip
    second = np.where(again, rng.random(len(hard)) < hard, first)
    return first, second


def test_slow_twin_of_the_comparison_on_the_same_questions():
    """Simulated reruns, scatter fitted on one half: false alarms, and power at the printed change."""
    rng = np.random.default_rng(7)
    hard = rng.beta(9, 0.4, N)
    pairs = [rerun(rng, hard) for _ in range(1200)]
    scored = [(score(float(a.mean())), score(float(b.mean()))) for a, b in pairs]
    phi = dispersion(scored[:600], floor=0.0)
    assert 0.35 < phi < 0.7
    quiet = [compare(a, b, phi) for a, b in scored[600:]]
    false = np.mean([d.p_drop <= 0.01 for d in quiet])
    assert false <= 0.02
    smallest = float(np.mean([d.detectable(0.0) for d in quiet]))
    found = np.mean([compare(a, score(b.p - smallest), phi).p_drop <= 0.01 for a, b in scored[600:]])
    assert 0.72 <= found <= 0.88
    covered = np.mean([d.interval()[0] <= 0 <= d.interval()[1] for d in quiet])
    assert 0.93 <= covered <= 0.97


def test_slow_twin_of_the_average_of_runs():
    rng = np.random.default_rng(3)
    runs = rng.binomial(N, 0.95, size=(4000, 5)) / N
    told = average([score(float(p)) for p in runs[0]])
    assert told.se == pytest.approx(runs.mean(axis=1).std(), rel=0.15)
