"""How often the judge cries wolf and what it finds: a fast part of `bench.calibration`, with tolerances."""

import polars as pl
import pytest

from bench import calibration

COMPARISONS = 120
"""Standard error of a share of 0.8 over these: 3.7 points; of 0.95: 2.0 points. Tolerances are three of them."""


# Lone points of t with 3 degrees of freedom are called too often: such tails are heavier than any published sweep's.
@pytest.mark.parametrize(("noise", "most"), [("normal 2 %", 0.05), ("t3 1 %", 0.10)])
@pytest.mark.parametrize(("history", "points"), [(1, 6), (3, 12), (5, 6), (10, 1), (30, 6)])
def test_simulated_sweeps_are_judged_as_printed(noise, most, history, points):
    found = calibration.simulate(calibration.NOISES[noise], history, points, COMPARISONS, seed=11)
    assert found.false <= most
    assert found.power == pytest.approx(0.80, abs=0.12)
    assert found.coverage >= 0.89


@pytest.mark.parametrize(("history", "points"), [(3, 12), (10, 1)])
def test_noise_with_wild_points_does_not_break_the_judge(history, points):
    found = calibration.simulate(calibration.NOISES["contaminated"], history, points, COMPARISONS, seed=12)
    assert found.false <= 0.10
    assert found.power >= 0.65
    assert found.coverage >= 0.87


@pytest.fixture(scope="module")
def answers(shared):
    """Real unchanged sweeps with three baseline runs, and what was planted in them."""
    return calibration.stat_eval(shared / "tools" / "stat_eval", (3,), calibration.GATES)


@pytest.mark.shared
def test_real_unchanged_sweeps_stay_quiet(answers):
    quiet = answers.filter((pl.col("scenario") == "none") & ~pl.col("incident"))
    called = quiet.filter(pl.col("verdict").is_in(calibration.CALLED))
    assert called["case"].n_unique() <= 0.025 * quiet["case"].n_unique()


@pytest.mark.shared
@pytest.mark.parametrize(
    ("scenario", "delta", "least"),
    [("curve", -0.03, 0.85), ("curve", -0.05, 0.98), ("one_point", -0.10, 0.90), ("high_conc", -0.05, 0.80)],
)
def test_what_was_planted_in_real_sweeps_is_found(answers, scenario, delta, least):
    rows = answers.filter(
        (pl.col("scenario") == scenario)
        & (pl.col("delta") == delta)
        & (pl.col("metric") == "tput_per_gpu")
        & ~pl.col("multinode")
        & ~pl.col("incident")
    )
    assert rows["verdict"].is_in(calibration.LOSSES).mean() >= least
