"""The frontier shift: at equal interactivity only, the same whichever side is first, its intervals hold the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.stats.frontier import LEAST_SHARED, Side, attained, shift
from tracker.stats.noise import Floats

CONCS = np.array([4, 8, 16, 32, 64, 128])
LAYOUTS = ((1.0, 1.0, 1.0), (0.8, 1.6, 0.9))
RESHAPED = ((1.05, 1.0, 1.0), (0.8, 2.2, 1.05))


def true_points(layouts: tuple[tuple[float, float, float], ...]) -> Side:
    """Layouts as (speed alone, batching, GPUs): each slows with concurrency and gives more per GPU."""
    speed, output = [], []
    for alone, batching, gpus in layouts:
        each = 60 * alone / (1 + CONCS / (16 * batching))
        speed.append(np.log(each))
        output.append(np.log(CONCS * each / (8 * gpus)))
    many, n = len(layouts), len(CONCS)
    links = np.array([(n * at + i, n * at + i + 1) for at in range(many) for i in range(n - 1)])
    flat = np.concatenate(speed)
    return Side(flat, np.concatenate(output), np.zeros(len(flat)), np.zeros(len(flat)), links)


def measured(true: Side, sigma: float, runs: int, rho: float, rng: np.random.Generator) -> Side:
    size = len(true.speed)
    common, own, other = (rng.standard_normal((runs, n)) for n in (1, size, size))
    slow = (np.sqrt(rho) * common + np.sqrt(1 - rho) * own).mean(axis=0)
    speed = 0.9 * slow + np.sqrt(1 - 0.81) * other.mean(axis=0)
    noise = np.full(size, sigma / np.sqrt(runs))
    return replace(
        true,
        speed=true.speed + 0.9 * sigma * speed,
        output=true.output + sigma * slow,
        noise=noise,
        speed_noise=0.9 * noise,
        correlation=rho,
    )


def truth(before: Side, after: Side, speeds: Floats) -> float:
    values = [attained(side.speed[None], side.output[None], side.links, speeds)[0] for side in (before, after)]
    return float((values[1] - values[0]).mean())


@pytest.mark.parametrize("layouts", [LAYOUTS, RESHAPED])
@pytest.mark.parametrize(("sigma", "runs", "rho"), [(0.005, 1, 0.0), (0.02, 1, 0.4), (0.02, 5, 0.0)])
def test_intervals_hold_the_truth_and_the_deviation_is_the_spread(
    layouts: tuple[tuple[float, float, float], ...], sigma: float, runs: int, rho: float
) -> None:
    """Coverage of 95 % within what 120 simulated pairs can tell (three standard errors: 6 points)."""
    rng = np.random.default_rng(20261130)
    old, new = true_points(LAYOUTS), true_points(layouts)
    held, errors, deviations = 0, [], []
    for _ in range(120):
        found = shift(measured(old, sigma, runs, rho, rng), measured(new, sigma, 1, rho, rng), draws=499)
        assert found.shift is not None
        target = truth(old, new, found.speeds)
        held += found.shift.low <= target <= found.shift.high
        errors.append(found.shift.effect - target)
        deviations.append(found.shift.deviation)
    assert 0.89 <= held / 120 <= 1.0
    assert abs(np.mean(errors)) < 0.3 * np.std(errors)
    assert 0.8 < np.mean(deviations) / np.std(errors) < 1.25


def test_nothing_wrong_is_said_of_unchanged_sides() -> None:
    """At 2 %, of 200 unchanged pairs at most 9 are significant (the 99.5 % quantile of the binomial is 10)."""
    rng = np.random.default_rng(7)
    side = true_points(LAYOUTS)
    wrong = 0
    for _ in range(200):
        found = shift(measured(side, 0.01, 1, 0.05, rng), measured(side, 0.01, 1, 0.05, rng), draws=299)
        assert found.shift is not None
        wrong += found.shift.p <= 0.02
    assert wrong <= 9


def test_a_shift_of_the_printed_size_is_found_four_times_in_five() -> None:
    rng = np.random.default_rng(11)
    side = true_points(LAYOUTS)
    found = 0
    for _ in range(150):
        old, new = measured(side, 0.01, 1, 0.05, rng), measured(side, 0.01, 1, 0.05, rng)
        plain = shift(old, new, draws=199).shift
        assert plain is not None
        size = plain.detectable(0.02, 0.0)
        moved = shift(old, replace(new, output=new.output - size), draws=299).shift
        assert moved is not None
        found += moved.p <= 0.02
    assert 0.70 <= found / 150 <= 0.92


@given(st.floats(-0.5, 0.5), st.floats(-1, 1), st.floats(-1, 1))
def test_scaling_both_sides_changes_nothing_and_a_uniform_gain_is_told_exactly(
    gain: float, scale: float, units: float
) -> None:
    old, new = true_points(LAYOUTS), true_points(RESHAPED)
    plain = shift(old, replace(new, output=new.output + gain), draws=9).shift
    scaled = shift(
        replace(old, output=old.output + scale, speed=old.speed + units),
        replace(new, output=new.output + scale + gain, speed=new.speed + units),
        draws=9,
    ).shift
    base = shift(old, new, draws=9).shift
    assert plain is not None
    assert scaled is not None
    assert base is not None
    assert plain.effect == pytest.approx(base.effect + gain, abs=1e-9)
    assert scaled.effect == pytest.approx(plain.effect, abs=1e-9)


def test_swapping_the_sides_swaps_the_sign() -> None:
    rng = np.random.default_rng(3)
    old, new = (measured(true_points(one), 0.01, 1, 0.0, rng) for one in (LAYOUTS, RESHAPED))
    there, back = shift(old, new), shift(new, old)
    assert there.shift is not None
    assert back.shift is not None
    assert there.shift.effect == pytest.approx(-back.shift.effect, abs=0.2 * there.shift.deviation)
    assert there.peak.effect == pytest.approx(-back.peak.effect, abs=0.2 * there.peak.deviation)
    assert [part.width for part in there.gained] == [part.width for part in back.lost]


def test_sides_that_share_no_interactivity_are_not_compared_there_but_by_their_peaks() -> None:
    fast, slow = true_points(LAYOUTS), true_points(LAYOUTS)
    slow = replace(slow, speed=slow.speed - 5.0)
    found = shift(slow, fast)
    assert found.shift is None
    assert len(found.gaps) == 0
    assert found.peak.effect == pytest.approx(0.0)
    assert found.gained[0].width > LEAST_SHARED
    assert found.lost[0].width > LEAST_SHARED


def test_crossing_frontiers_show_in_the_band() -> None:
    rng = np.random.default_rng(5)
    old = measured(true_points(LAYOUTS[:1]), 0.004, 3, 0.0, rng)
    tilted = measured(true_points(LAYOUTS[:1]), 0.004, 1, 0.0, rng)
    tilted = replace(tilted, output=tilted.output + 0.25 * (tilted.speed - tilted.speed.mean()))
    found = shift(old, tilted)
    assert (found.gaps - found.band).max() > 0 > (found.gaps + found.band).min()


def test_a_lone_point_is_a_step_that_reaches_to_slower_readers() -> None:
    one = attained(np.array([[2.0]]), np.array([[5.0]]), np.empty((0, 2), np.int64), np.array([1.0, 2.0]))
    assert one.tolist() == [[5.0, 5.0]]


def test_the_same_arguments_give_the_same_numbers() -> None:
    rng = np.random.default_rng(3)
    old, new = (measured(true_points(one), 0.01, 1, 0.0, rng) for one in (LAYOUTS, RESHAPED))
    assert shift(old, new).shift == shift(old, new).shift
