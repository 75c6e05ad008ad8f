"""Histories of curves: what lies between two levels, what the environment did, where a curve stands."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from store.chronicles import Chronicle
from store.duck import Store
from store.readers import read
from store.records import Differs, Layout, Role, Series, Verdict
from tests.lab import FILE
from tests.lab import sweeps as lab_sweeps
from tests.sweeps import IMAGES, nights, sweep
from tracker import annals
from tracker.chronicle import Past, chronicles, episodes, findings, introductions, lanes
from tracker.judge.learn import learn
from tracker.reproducibility import spreads, visible_changes
from tracker.settings import Settings
from tracker.stats import steps

OLD, NEW, NEWER = IMAGES


def past(*frames: pl.DataFrame) -> Past:
    rows = pl.concat(frames, how="vertical_relaxed")
    one = Series("dsr1", "h200", "vllm", "fp8", "none", "single_turn", 8192, 1024, False, Layout(Role(8)), 4)
    return Past(rows, dict.fromkeys(rows["series"].unique().to_list(), one), learn(rows, Settings()))


def told(*frames: pl.DataFrame, metric: str = "tput_per_gpu", anchor: datetime | None = None) -> Chronicle:
    (found,) = chronicles(past(*frames), (metric,), anchor)
    return found


def test_a_new_image_that_costs_is_one_shift_with_the_last_good_run() -> None:
    found = told(nights(6), nights(4, NEW, start=6, speed=0.92))
    (shift,) = found.shifts
    assert (shift.attribution.kinds, shift.is_better, shift.runs_before, shift.runs_after) == (
        (Differs.IMAGE,),
        False,
        6,
        4,
    )
    assert shift.low < -0.0834 < shift.high
    assert (shift.before.run, shift.after.run, shift.last.run) == ("105/1", "106/1", "109/1")
    assert (found.last_good.run, found.lost) == ("105/1", pytest.approx(0.083, abs=0.01))
    assert [(era.image, era.runs) for era in found.eras] == [(OLD, 6), (NEW, 4)]


def test_a_latency_that_rises_is_worse() -> None:
    (shift,) = told(nights(6), nights(4, NEW, start=6, speed=0.92), metric="median_tpot").shifts
    assert (shift.effect > 0, shift.is_better) == (True, False)


def test_what_comes_back_is_told_against_the_level_before_the_loss() -> None:
    found = told(nights(5), nights(3, NEW, start=5, speed=0.5), nights(3, NEWER, start=8, speed=1.02))
    loss, gain = found.shifts
    assert (loss.net, loss.good) == (None, None)
    assert gain.effect == pytest.approx(0.713, abs=0.02)
    assert gain.good is not None
    assert (gain.good.run, gain.net) == ("104/1", pytest.approx(0.02, abs=0.01))
    assert found.lost == 0


def test_the_same_image_with_other_numbers_is_the_environment_with_first_and_last_run() -> None:
    found = told(nights(6), nights(2, start=6, speed=0.7), nights(6, start=8))
    assert found.shifts == ()
    (away,) = found.departures
    assert (away.attribution.is_same, away.first.run, away.last.run, away.runs) == (True, "106/1", "107/1", 2)
    assert (away.is_better, away.is_open) == (False, False)


def test_an_environment_is_a_finding_that_is_suspected_and_names_its_doubt() -> None:
    found = told(nights(6), nights(2, start=6, speed=0.7), nights(6, start=8))
    (finding,) = findings(found)
    assert (finding.verdict, [caveat.code for caveat in finding.caveats]) == (Verdict.SUSPECTED, ["environment"])
    assert [str(run) for run in finding.candidate_runs] == ["106/1", "107/1"]
    assert findings(told(nights(6), nights(4, NEW, start=6, speed=0.9))) == ()


def test_one_bad_night_is_a_departure_of_one_run() -> None:
    (away,) = told(nights(6), nights(1, start=6, speed=0.7), nights(6, start=7)).departures
    assert (away.attribution.is_same, away.first.run, away.last.run) == (True, "106/1", "106/1")


def test_an_unknown_image_is_no_environment() -> None:
    found = told(nights(6, None), nights(6, None, start=6, speed=0.8))
    assert ([shift.attribution.kind for shift in found.shifts], found.departures) == ([Differs.UNKNOWN], ())


@pytest.mark.parametrize(
    ("columns", "kind"), [({"recipe": "b"}, Differs.RECIPE), ({"recipe": "a", "pool": "other"}, Differs.POOL)]
)
def test_a_step_says_what_differs(columns: dict[str, str], kind: Differs) -> None:
    before = nights(6, recipe="a", pool="one")
    after = nights(4, start=6, speed=0.9, **{"pool": "one", **columns})
    assert [shift.attribution.kinds for shift in told(before, after).shifts] == [(kind,)]


def test_a_change_of_the_harness_is_named_with_the_step() -> None:
    # Day 133 is 14 May 2026; the client's tokenizer changed on the 15th.
    before, after = nights(6, start=128), nights(4, start=136, speed=0.5)
    (shift,) = told(before, after).shifts
    assert shift.attribution.kinds == (Differs.HARNESS,)
    events = [one.between for one in shift.attribution.differences]
    assert events == ["failed_requests_gate", "client_tokenizer"]


def test_drift_is_asked_for_with_an_anchor() -> None:
    slow = [sweep(f"{200 + n}/1", 10 + n, speed=0.995 ** min(n + 1, 10)) for n in range(12)]
    found = told(nights(6), *slow, anchor=datetime(2026, 1, 7, tzinfo=UTC))
    assert found.loss is not None
    assert (found.loss.is_called, found.loss.anchor.run) == (True, "105/1")
    assert found.loss.effect == pytest.approx(-0.05, abs=0.01)
    assert told(nights(6), *slow).loss is None


def test_departures_of_one_gpu_that_overlap_are_one_episode() -> None:
    days = [nights(6, curve=curve) for curve in ("a", "b")]
    bad = [nights(2, start=6, speed=0.7, curve=curve) for curve in ("a", "b")]
    back = [nights(6, start=8, curve=curve) for curve in ("a", "b")]
    (episode,) = episodes(chronicles(past(*days, *bad, *back)))
    assert (episode.gpu, episode.first.day, episode.last.day, len(episode.members)) == ("h200", 7, 8, 2)
    assert episode.effect == pytest.approx(-0.357, abs=0.02)


def test_an_image_is_told_with_all_curves_that_took_it() -> None:
    frames = [nights(5, curve=name) for name in "abc"]
    frames += [nights(3, NEW, start=5, speed=speed, curve=name) for name, speed in (("a", 0.9), ("b", 1.0), ("c", 1.1))]
    (one,) = introductions(chronicles(past(*frames)))
    assert (one.before, one.after, one.framework, one.gpu) == (OLD, NEW, "vllm", "h200")
    assert [taken.chronicle.curve for part in (one.worse, one.level, one.better) for taken in part] == ["a", "b", "c"]


def of_file(file: Path, folder: Path) -> Past:
    with Store.open(":memory:", folder / "archive") as store:
        store.land_many(read([file]))
        rows = store.history(store.curves()["curve"].to_list(), ["tput_per_gpu"])
        known = annals.read_config_history(file.parents[2] / "data" / "inferencex" / "config-history.csv")
        return Past(annals.with_images(rows, known), store.series(), learn(rows, Settings()))


@pytest.mark.shared
def test_a_bad_sweep_in_between_is_a_loss_and_its_return_no_gain(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases" / "08-recovery-is-not-an-improvement" / "history.json"
    ((loss, gain),) = [found.shifts for found in chronicles(of_file(case, tmp_path))]
    assert np.expm1([loss.effect, gain.effect]) == pytest.approx([-0.789, 3.785], abs=0.02)
    assert gain.net is not None
    assert np.expm1(gain.net) == pytest.approx(0.01, abs=0.015)


@pytest.mark.shared
def test_eight_equal_nights_then_two_gains_and_nothing_after(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases" / "24-real-step-up" / "series.json"
    (found,) = chronicles(of_file(case, tmp_path))
    told_ = [(shift.after.at.date().isoformat() if shift.after.at else "", shift.is_better) for shift in found.shifts]
    assert (told_, found.departures) == ([("2025-12-31", True), ("2026-03-25", True)], ())
    assert np.expm1([shift.effect for shift in found.shifts]) == pytest.approx([0.284, 0.05], abs=0.005)


# ---------------------------------------------------------------- measured sweeps of known truth


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Past:
    with Store.open(":memory:", tmp_path_factory.mktemp("lab") / "archive") as store:
        store.land_many(read([FILE]))
        curves = store.curves()["curve"].to_list()
        rows = store.history(curves, ["tput_per_gpu"])
        return Past(rows, store.series(), learn(rows, Settings()))


def test_the_lab_tells_cold_phases_neighbours_and_the_second_board_as_environment(lab: Past) -> None:
    (found,) = chronicles(lab)
    away = [one for one in found.departures if one.attribution.is_same]
    spans = [(one.first.run, one.last.run) for one in away if one.runs > 1]
    # The first cold phase to the run; the second board, cold until it recovers, and then faster to the end.
    assert spans == [("901000/1", "901008/1"), ("903000/1", "903026/1"), ("903028/1", "903068/1")]
    alone = {int(one.first.run.split("/")[0]) for one in away if one.runs == 1}
    noisy = {one.id for one in lab_sweeps() if one.noisy_neighbour}
    assert noisy <= alone
    # v1.1.0 has no CUDA graphs: from one sweep to the next its own numbers differ by half.
    assert {one.image for one in lab_sweeps() if one.id in alone - noisy} <= {"v1.1.0"}


# ---------------------------------------------------------------- reproducibility


def test_reruns_tell_scatter_share_and_bad_days() -> None:
    (one,), _ = spreads(past(nights(8), nights(2, start=8, speed=0.7), nights(8, start=10)), "hardware")
    assert (one.group, one.curves, one.pairs, one.bad_days, one.days) == ("h200", 1, 51, 2, 18)
    assert one.typical == pytest.approx(0.003, rel=0.6)
    assert one.within == pytest.approx(45 / 51)
    assert one.one_point > one.one_run > one.two_runs > 0.0202


def test_without_reruns_nothing_is_claimed_but_what_the_prior_lets_see() -> None:
    (one,), _ = spreads(past(nights(1)), "config")
    assert (one.group, one.pairs, one.typical, one.high, one.within) == ("dsr1-fp8-h200-vllm", 0, None, None, None)
    assert one.one_run > 0.0202


def test_what_a_run_can_show_is_found_about_four_times_in_five() -> None:
    (lane,) = lanes(past(nights(10, noise=0.01)), ("tput_per_gpu",))
    size = visible_changes(lane).one_run
    rng = np.random.default_rng(4)
    weights, rules = steps.posterior(lane.track), replace(lane.rules, alpha_expected=0.02)
    newest = lane.track.values[:, -5:]
    sides = [
        steps.side_by_side(rng.normal(0, 0.01, newest.shape), rng.normal(-size, 0.01, (len(newest), 1)))
        for _ in range(300)
    ]
    gaps = [gap for gap in steps.between(lane.track, weights, sides, rules) if gap is not None]
    found = sum(gap.p <= 0.02 and gap.effect <= -rules.curve for gap in gaps)
    # The noise scale is estimated from ten nights, so that the share strays more than by chance.
    assert 0.65 * 300 <= found <= 0.95 * 300
