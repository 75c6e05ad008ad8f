"""Slow losses against an anchor: found within twelve sweeps, and rarely where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from tests.test_steps import track
from tracker.stats import drift, steps
from tracker.stats.noise import Floats

ANCHOR = 4
RAMP = -0.005 * np.minimum(np.arange(1, 13), 10)
"""Ten steps of half a percent, then two sweeps."""


def errors(rng: np.random.Generator, points: int, name: str) -> Floats:
    shape = (points, ANCHOR + 1 + len(RAMP))
    if name == "t3":
        return 0.01 * rng.standard_t(3, shape) / np.sqrt(3)
    if name == "contaminated":
        return np.where(rng.random(shape) < 0.1, 0.03, 0.006) * rng.normal(size=shape)
    return rng.normal(0, 0.01, shape)


def seen(values: Floats) -> drift.Drift:
    one = track(values)
    found = drift.against(one, ANCHOR, steps.find(one))
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["normal", "t3", "contaminated"])
@pytest.mark.parametrize("points", [1, 6])
def test_ten_steps_of_half_a_percent_are_found_within_twelve_sweeps(name: str, points: int) -> None:
    rng = np.random.default_rng(1)
    found = []
    for _ in range(40):
        values = errors(rng, points, name)
        values[:, ANCHOR + 1 :] += RAMP
        found.append(seen(values))
    assert sum(one.is_called and one.effect < 0 for one in found) >= 36


@pytest.mark.parametrize("name", ["normal", "t3", "contaminated"])
def test_unchanged_curves_are_hardly_ever_called(name: str) -> None:
    rng = np.random.default_rng(2)
    # 1 % of 60: more than three would be chance in one of 300 suites.
    assert sum(seen(errors(rng, 6, name)).is_called for _ in range(60)) <= 3


def test_a_step_is_told_as_a_step_and_a_slope_as_slow() -> None:
    rng = np.random.default_rng(3)
    step, slope = errors(rng, 6, "normal") / 2, errors(rng, 6, "normal") / 2
    step[:, 10:] -= 0.05
    slope[:, ANCHOR + 1 :] += RAMP
    assert (seen(step).is_called, seen(step).is_slow) == (True, False)
    assert seen(step).told == pytest.approx(-0.05, abs=0.01)
    assert (seen(slope).is_called, seen(slope).is_slow) == (True, True)


def test_an_anchor_among_the_newest_runs_says_nothing() -> None:
    one = track(np.zeros((2, 6)))
    assert drift.against(one, 5) is None
    assert drift.against(one, 2) is not None
