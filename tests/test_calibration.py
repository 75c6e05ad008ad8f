"""How often the judge cries wolf and what it finds: a fast part of `bench.calibration`, with tolerances."""

import polars as pl
import pytest

from bench import calibration

COMPARISONS = 250
"""Standard error of a share of 0.80 over these: 2.5 points; of 0.95: 1.4; of 0.01: 0.6.

The tolerances are those of 400 comparisons: 2.8 standard errors of the power. `bench.calibration` takes more."""


@pytest.mark.parametrize(
    ("noise", "history", "points"),
    [
        ("normal 2 %", 1, 6),
        ("normal 2 %", 5, 12),
        ("normal 2 %", 10, 1),
        ("t3 1 %", 3, 12),
        ("t3 1 %", 5, 36),
        ("contaminated", 1, 12),
        ("contaminated", 10, 12),
    ],
)
def test_simulated_sweeps_are_judged_as_printed(noise, history, points):
    found = calibration.simulate(calibration.NOISES[noise], history, points, COMPARISONS, seed=11)
    # A curve of one point has nothing to pool: it is called at the error rate of a curve, 2 %, whatever its margin.
    assert found.false <= (0.035 if points == 1 else 0.025)
    assert found.power == pytest.approx(0.80, abs=0.07)
    assert 0.92 <= found.coverage <= 0.99


@pytest.fixture(scope="module")
def answers(shared):
    """Real unchanged sweeps with three baseline runs, and what was planted in them."""
    return calibration.stat_eval(calibration.Evaluation(shared / "tools" / "stat_eval", (3,), calibration.GATES))


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
