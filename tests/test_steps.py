"""Change points: the proposal against a slow twin, and error rates and power on simulated curves."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest

from bench.steps import KINDS, case, matched
from tracker.stats import noise, steps
from tracker.stats.noise import Floats
from tracker.stats.steps import Limits, Rules, Track, find, propose

SCALE = noise.shipped()["throughput"]


def track(values: Floats, expected: tuple[int, ...] = (), correlation: float = 0.05) -> Track:
    strata = noise.stratum(2 ** np.arange(len(values)), np.zeros(len(values), bool))
    flags = np.isin(np.arange(values.shape[1]), expected)
    return Track(values, strata, SCALE, correlation, flags)


def noisy(points: int, runs: int, seed: int = 0, sigma: float = 0.005) -> Floats:
    return np.random.default_rng(seed).normal(0, sigma, (points, runs))


def twin_cost(z: Floats, limits: Limits, correlation: float, first: int, end: int) -> float:
    """Cost of one level, run by run."""
    state = np.zeros((1, len(z))), np.zeros((1, len(z))), np.zeros(1)
    for run in range(first, end):
        steps._take_in(z[:, run], state, correlation, limits, run)
    return float(state[2][0])


def twin(z: Floats, limits: Limits, correlation: float) -> float:
    """Least cost over every way to cut the runs."""
    runs = z.shape[1]
    best = np.inf
    for number in range(runs):
        for cuts in combinations(range(1, runs), number):
            best = min(best, total(z, limits, correlation, list(cuts)))
    return best


def total(z: Floats, limits: Limits, correlation: float, cuts: list[int]) -> float:
    said = sum(twin_cost(z, limits, correlation, a, b) for a, b in pairwise([0, *cuts, z.shape[1]]))
    for a, b in pairwise([*cuts, z.shape[1]]):
        shared = int((np.isfinite(z[:, :a]).any(axis=1) & np.isfinite(z[:, a:b]).any(axis=1)).sum())
        said += (limits.expected if limits.is_expected[a] else limits.surprise)[shared]
    return said


@pytest.mark.parametrize("seed", range(6))
def test_the_proposal_is_as_cheap_as_the_best_of_all_ways_to_cut(seed: int) -> None:
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 1, (3, 9))
    z[:, 5:] += rng.choice([0.0, 6.0])
    z[rng.random(z.shape) < 0.2] = np.nan
    limits = Limits.of(track(z, (4, 7)), Rules())
    assert total(z, limits, 0.1, propose(z, 0.1, limits)) == pytest.approx(twin(z, limits, 0.1))


def test_squared_residuals_sum_to_those_about_the_mean_of_the_level() -> None:
    z = noisy(1, 12, sigma=0.5)
    limits = Limits.of(track(z), Rules())
    assert twin_cost(z, limits, 0.0, 0, 12) == pytest.approx(((z - z.mean()) ** 2).sum())


def test_a_step_of_three_percent_is_found_with_its_place_size_and_interval() -> None:
    values = noisy(6, 20)
    values[:, 12:] -= 0.03
    (step,) = find(track(values)).steps
    assert step.at == 12
    assert step.low < -0.03 < step.high
    assert (step.before, step.after, step.is_expected) == (12, 8, False)


def test_a_bump_lowers_what_a_step_must_show() -> None:
    values = noisy(6, 7, seed=3)
    values[:, 6:] -= 0.025
    assert find(track(values)).steps == ()
    assert [step.at for step in find(track(values, (6,))).steps] == [6]


def test_one_run_off_and_back_is_a_spike_and_no_step() -> None:
    values = noisy(6, 20)
    values[:, 9] -= 0.10
    found = find(track(values))
    assert found.steps == ()
    assert [(spike.at, spike.is_newest) for spike in found.spikes] == [(9, False)]
    assert found.spikes[0].effect == pytest.approx(-0.10, abs=0.01)


def test_the_newest_run_alone_is_a_spike_until_a_second_one_confirms_it() -> None:
    values = noisy(6, 20)
    values[:, 18:] -= 0.10
    once, twice = find(track(values[:, :19])), find(track(values))
    assert (once.steps, [spike.is_newest for spike in once.spikes]) == ((), [True])
    assert ([step.at for step in twice.steps], twice.spikes) == ([18], ())


def test_one_image_between_two_others_is_a_loss_and_a_recovery() -> None:
    values = noisy(3, 9)
    values[:, 4] -= 1.5
    assert [step.at for step in find(track(values, (4, 5))).steps] == [4, 5]


def test_a_point_that_fell_out_of_its_run_is_no_step_and_no_spike() -> None:
    values = noisy(6, 20)
    values[2, 9] -= 0.3
    found = find(track(values))
    assert (found.steps, found.spikes) == ((), ())


def test_points_that_move_apart_are_a_step_although_their_mean_stands_still() -> None:
    values = noisy(6, 24)
    values[:3, 12:] -= 0.04
    values[3:, 12:] += 0.04
    assert [step.at for step in find(track(values)).steps] == [12]


def test_dropping_a_third_of_the_points_makes_no_steps_and_loses_none() -> None:
    values = noisy(6, 30)
    values[:, 15:] += 0.05
    values[np.random.default_rng(1).random(values.shape) < 0.33] = np.nan
    assert [step.at for step in find(track(values)).steps] == [15]


def test_levels_that_share_no_point_are_no_step() -> None:
    values = noisy(2, 10)
    values[0, 5:], values[1, :5] = np.nan, np.nan
    values[1] += 1.0
    assert find(track(values)).steps == ()


def test_signs_mirror_and_a_common_factor_changes_nothing() -> None:
    values = noisy(6, 20)
    values[:, 12:] -= 0.04
    (one,), (mirror,) = find(track(values)).steps, find(track(2.0 - values)).steps
    assert (one.at, one.effect) == (mirror.at, pytest.approx(-mirror.effect, abs=1e-6))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("points", [1, 6])
def test_at_most_one_false_step_in_a_thousand_points(kind: object, points: int) -> None:
    rng = np.random.default_rng(5)
    flat = [case(rng, kind, points, 0) for _ in range(25)]
    false = sum(len(find(one.track).steps) for one in flat)
    measured = sum(int(np.isfinite(one.track.values).sum()) for one in flat)
    # Four more than expected at the promised rate would be chance in one of 50 suites.
    assert false <= measured / 1000 + 2


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_steps_of_three_to_twenty_percent_are_found(kind: object) -> None:
    rng = np.random.default_rng(6)
    stepped = [case(rng, kind, 6, 3) for _ in range(15)]
    found = [[step.at for step in find(one.track).steps] for one in stepped]
    hits = sum(matched(at, one.steps) for at, one in zip(found, stepped, strict=True))
    assert 2 * hits / (sum(map(len, found)) + sum(len(one.steps) for one in stepped)) >= 0.93


def test_a_new_run_leaves_the_older_steps_where_they_were() -> None:
    values = noisy(6, 30)
    values[:, 10:] -= 0.05
    assert [s.at for s in find(track(values[:, :29])).steps] == [s.at for s in find(track(values)).steps] == [10]


def test_nothing_is_said_of_a_single_run() -> None:
    assert find(track(noisy(6, 1))) == steps.Found()
    assert find(replace(track(noisy(6, 2)), values=np.full((6, 2), np.nan))) == steps.Found()
