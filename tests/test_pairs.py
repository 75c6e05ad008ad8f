"""What stands against what: baselines, and everything unmatched with its reason."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from store.records import Verdict
from tests.sweeps import IMAGES, nights, sweep
from tracker import matrix
from tracker.pairs import Baseline, pair, parse_baseline

OLD, NEW, LATER = IMAGES


def baseline_of(history, candidate, text="previous"):
    """Ids of the baseline runs, and the reasons of what is unmatched."""
    pairing = pair(history, candidate, parse_baseline(text))
    runs = [run.id for one in pairing.pairs for run in one.baseline_runs]
    return runs, [
        (one.key.rpartition(" ")[2], one.side, one.verdict.value, one.reason.code) for one in pairing.unmatched
    ]


def test_the_last_five_runs_of_the_newest_image_are_the_baseline():
    history = pl.concat([nights(3, OLD), nights(7, NEW, start=3)])
    assert baseline_of(history, sweep("200/1", 20, LATER))[0] == ["105", "106", "107", "108", "109"]


def test_two_sweeps_of_one_day_are_told_apart_by_time_then_by_number():
    early = sweep("901/1", 1, OLD)
    late = sweep("900/1", 1, NEW).with_columns(pl.col("started_at") + pl.duration(hours=2))
    assert baseline_of(pl.concat([late, early]), sweep("950/1", 3, LATER))[0] == ["900"]
    assert baseline_of(pl.concat([early, sweep("905/1", 1, NEW)]), sweep("950/1", 3, LATER))[0] == ["905"]


def test_a_later_run_and_the_candidate_itself_are_no_baseline():
    history = pl.concat([nights(1, OLD), sweep("300/1", 30, OLD), sweep("200/1", 20, NEW)])
    assert baseline_of(history, sweep("200/1", 20, NEW))[0] == ["100"]


def test_attempts_of_one_run_are_one_run():
    first, second = sweep("100/1", 0, OLD, conc=(4, 16)), sweep("100/2", 1, OLD, conc=(64,))
    pairing = pair(pl.concat([first, second]), sweep("200/1", 9, NEW), Baseline())
    (only,) = pairing.pairs
    assert [run.key for run in only.baseline_runs] == ["100/2"]
    assert len(only.cells) == 6
    assert pairing.unmatched == ()


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("run:101", ["101"]),
        ("run:101/1", ["101"]),
        ("image:engine/serve:v1.0.0", ["100", "101", "102"]),
        ("date:2026-01-02", ["100", "101"]),
        ("window:17d", ["104", "105"]),
        ("previous", ["103", "104", "105"]),
    ],
)
def test_ways_to_choose_a_baseline(text, runs):
    history = pl.concat([nights(3, OLD), nights(3, NEW, start=3)])
    assert baseline_of(history, sweep("200/1", 21, LATER), text)[0] == runs


def test_last_good_passes_over_a_bad_image():
    history = pl.concat([nights(3, OLD), nights(2, NEW, start=3, speed=0.8)])
    candidate = sweep("200/1", 9, LATER)
    assert baseline_of(history, candidate, "last-good")[0] == ["100", "101", "102"]
    assert baseline_of(history, candidate, "previous")[0] == ["103", "104"]


@pytest.mark.parametrize("text", ["", "nearest", "date:yesterday", "date:2026-02-30", "window:d", "run:", "previous:3"])
def test_a_bad_baseline_says_what_to_write(text):
    with pytest.raises(ValueError, match="write previous, last-good, run:ID"):
        parse_baseline(text)


def test_a_change_of_recipe_alone_is_another_software():
    history = pl.concat([nights(2, OLD, recipe="tp8"), nights(1, OLD, start=2, recipe="tp8 --graphs")])
    assert baseline_of(history, sweep("200/1", 9, OLD, recipe="tp8"))[0] == ["102"]


def test_points_with_recipes_of_their_own_are_compared_point_by_point():
    def run(name, day, conc):
        return sweep(name, day, OLD, conc=conc).with_columns(recipe=pl.format("flags {}", "conc"))

    history = pl.concat([run("100/1", 0, (4, 16, 64)), run("101/1", 1, (4, 16))])
    assert baseline_of(history, sweep("200/1", 9, NEW))[0] == ["100", "101"]


def test_nobody_knows_what_a_moving_tag_was():
    history = nights(3, "engine/serve:latest")
    pairing = pair(history, sweep("200/1", 9, "engine/serve:latest"), Baseline())
    assert [run.id for run in pairing.pairs[0].baseline_runs] == ["102"]
    assert "image_unknown" in {caveat.code for caveat in pairing.pairs[0].caveats}


def test_another_pool_is_another_machine():
    history = nights(2, OLD, pool="h200-cw")
    runs, reasons = baseline_of(history, sweep("200/1", 9, NEW, pool="h200-dgxc"))
    assert runs == []
    assert {reason[2:] for reason in reasons} == {("not_comparable", "pool_changed")}
    assert baseline_of(history, sweep("200/1", 9, NEW))[0] == ["100", "101"]
    both = pl.concat([nights(2, OLD, pool="h200-dgxc"), nights(1, NEW, start=4, pool="h200-cw")])
    assert baseline_of(both, sweep("200/1", 9, NEW, pool="h200-dgxc"))[0] == ["100", "101"]


def test_everything_unmatched_has_a_reason():
    history = nights(2, OLD, conc=(4, 16, 64))
    runs, reasons = baseline_of(history, sweep("200/1", 9, NEW, conc=(4, 16, 128)))
    assert runs == ["100", "101"]
    assert sorted(reasons) == [
        ("c128", "candidate", "no_baseline", "new_point"),
        ("c64", "baseline", "missing", "missing_point"),
    ]


def test_a_curve_without_a_history_has_no_baseline():
    _, reasons = baseline_of(nights(1, OLD, curve="another tp4"), sweep("200/1", 9, NEW))
    assert {reason[3] for reason in reasons} == {"no_baseline"}


def test_what_the_newest_run_lacks_comes_from_an_older_one_of_the_same_image():
    history = pl.concat([sweep("100/1", 0, OLD), sweep("101/1", 1, OLD, conc=(4, 16))])
    (one,) = pair(history, sweep("200/1", 9, NEW), Baseline()).pairs
    older = {one.curve.series[cell] for cell in one.cells[one.older]}
    assert older == {"dsr1 h200 tp8 c64"}
    assert np.isfinite(one.baseline[one.older]).sum(axis=1).tolist() == [1, 1]


def test_a_value_that_has_no_logarithm_is_invalid():
    candidate = sweep("200/1", 9, NEW).with_columns(
        value=pl.when(pl.col("conc") == 16).then(0.0).when(pl.col("conc") == 64).then(float("nan")).otherwise("value")
    )
    pairing = pair(nights(2, OLD), candidate, Baseline())
    assert [one.verdict for one in pairing.unmatched] == [Verdict.INVALID, Verdict.INVALID]
    assert all(np.isfinite(one.candidate).all() for one in pairing.pairs)


def test_of_duplicate_rows_the_last_counts():
    twice = pl.concat([sweep("200/1", 9, NEW, 0.5), sweep("200/1", 9, NEW)])
    (once,), (again,) = (pair(nights(2, OLD), frame, Baseline()).pairs for frame in (sweep("200/1", 9, NEW), twice))
    assert again.candidate == pytest.approx(once.candidate)


def test_several_candidate_runs_of_one_image_are_judged_together():
    candidate = pl.concat([sweep("200/1", 9, NEW), sweep("201/1", 10, NEW)])
    (one,) = pair(nights(2, OLD), candidate, Baseline()).pairs
    assert one.candidate.shape == (6, 2)


def test_a_stretch_ends_with_its_image_and_with_a_long_pause():
    history = pl.concat([nights(3, OLD), nights(2, NEW, start=3), nights(2, OLD, start=60)])
    (curve,) = matrix.curves(history)
    assert [columns.tolist() for columns in matrix.stretches(curve.runs)] == [[0, 1, 2], [5, 6], [3, 4]]


def slow_scatter(values):
    """Sums of squares of each row by loops, without the rule for incidents."""
    for row in values:
        known = [value for value in row if not np.isnan(value)]
        mean = sum(known) / len(known) if known else 0.0
        steps = [(b - a) ** 2 / 2 for a, b in pairwise(known)]
        yield sum((value - mean) ** 2 for value in known), sum(steps), max(len(known) - 1, 0)


def test_scatter_agrees_with_loops():
    rng = np.random.default_rng(2)
    values = np.where(rng.random((30, 4)) < 0.3, np.nan, rng.normal(0, 0.01, (30, 4)))
    found = matrix.scatter(values)
    expected = np.array(list(slow_scatter(values)))
    assert np.column_stack([found.squares, found.steps, found.freedom]) == pytest.approx(expected)


def test_one_incident_is_no_part_of_the_noise_of_a_long_stretch():
    calm = np.random.default_rng(3).normal(0, 0.005, (1, 10))
    shaken = calm.copy()
    shaken[0, 4] -= 0.5
    assert matrix.scatter(shaken).squares[0] < 10 * matrix.scatter(calm).squares[0]
