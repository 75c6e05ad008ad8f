"""Verdicts of sweeps: the rules one by one, and the laws that hold whatever the numbers."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.records import Scope, Verdict
from tests.sweeps import IMAGES, nights, sweep
from tracker.judge.sweep import judge_frames
from tracker.pairs import parse_baseline
from tracker.settings import RULES_VERSION, Settings

OLD, NEW, LATER = IMAGES
MIRROR = {"regression": "improvement", "improvement": "regression"}


def judged(history, candidate, against="previous", **changes):
    return judge_frames(history, candidate, Settings(**changes), parse_baseline(against))


def curve(history, candidate, metric="tput_per_gpu", against="previous"):
    """The finding of the only curve under a metric."""
    findings = judged(history, candidate, against).findings
    (found,) = [f for f in findings if f.scope is Scope.CURVE and f.metric == metric]
    return found


def codes(finding):
    return {caveat.code for caveat in finding.caveats}


@pytest.mark.parametrize(
    ("speed", "verdict"),
    [
        (1.0, Verdict.EQUIVALENT),
        (0.99, Verdict.EQUIVALENT),
        (0.95, Verdict.REGRESSION),
        (1.05, Verdict.IMPROVEMENT),
        ({4: 1.12, 16: 1.0, 64: 0.88}, Verdict.MIXED),
        ({4: 1.0, 16: 1.0, 64: 0.88}, Verdict.REGRESSION),
    ],
)
@pytest.mark.parametrize("metric", ["tput_per_gpu", "median_tpot"])
def test_the_verdict_of_a_curve(speed, verdict, metric):
    assert curve(nights(5, OLD), sweep("200/1", 9, NEW, speed), metric).verdict is verdict


def test_one_baseline_run_is_enough_for_a_clear_loss():
    found = curve(nights(1, OLD), sweep("200/1", 9, NEW, 0.965))
    assert found.verdict is Verdict.REGRESSION
    assert codes(found) == {"single_run"}
    assert (found.n_baseline, found.n_candidate, found.n_points) == (1, 1, 3)


ALL_GATES = ("tput_per_gpu", "median_tpot", "median_e2el")


@pytest.mark.parametrize(
    ("moved", "verdict"),
    [
        (("tput_per_gpu", "median_tpot"), Verdict.REGRESSION),
        # A loss in prefill: the whole request takes longer, the time between tokens does not.
        (("tput_per_gpu", "median_e2el"), Verdict.REGRESSION),
        (("tput_per_gpu",), Verdict.SUSPECTED),
    ],
)
def test_a_change_of_throughput_needs_a_witness(moved, verdict):
    slow = sweep("200/1", 9, NEW, 0.93, metrics=ALL_GATES).filter(pl.col("metric").is_in(moved))
    same = sweep("200/1", 9, NEW, metrics=ALL_GATES).filter(~pl.col("metric").is_in(moved))
    assert curve(nights(5, OLD, metrics=ALL_GATES), pl.concat([slow, same])).verdict is verdict


def test_a_second_run_confirms():
    candidate = pl.concat([sweep("200/1", 9, NEW, 0.95), sweep("201/1", 10, NEW, 0.95)])
    found = curve(nights(3, OLD), candidate)
    assert (found.verdict, found.n_candidate, codes(found)) == (Verdict.REGRESSION, 2, set())


def test_every_statistic_carries_its_doubts():
    for found in judged(nights(3, OLD), sweep("200/1", 9, NEW, 0.97)).findings:
        assert found.low < found.effect < found.high
        assert found.mde > 0
        assert 0 <= found.p <= 1
        assert found.n_baseline == 3
        assert found.n_candidate == 1
        assert found.evidence is not None
        assert found.rules_version == RULES_VERSION


def test_the_evidence_holds_the_values_in_their_unit():
    history, candidate = nights(2, OLD), sweep("200/1", 9, NEW)
    found = curve(history, candidate, "median_tpot")
    past = history.filter((pl.col("metric") == "median_tpot") & (pl.col("conc") == 4))["value"].to_list()
    assert found.evidence.baseline[found.evidence.members.index("dsr1 h200 tp8 c4")] == pytest.approx(past)
    assert len(found.evidence.sigma) == found.n_points == 3


def test_points_are_judged_beside_their_curve():
    findings = judged(nights(5, OLD), sweep("200/1", 9, NEW, {4: 1.0, 16: 1.0, 64: 0.88})).findings
    points = {f.key.rpartition(" ")[2]: f for f in findings if f.scope is Scope.POINT and f.metric == "tput_per_gpu"}
    assert points["c64"].verdict is Verdict.REGRESSION
    assert points["c64"].candidate / points["c64"].baseline == pytest.approx(0.88, abs=0.02)
    assert points["c4"].verdict is not Verdict.REGRESSION


def test_a_configuration_pools_its_curves():
    history = pl.concat([nights(3, OLD, curve="dsr1 tp4"), nights(3, OLD, curve="dsr1 tp8")])
    candidate = pl.concat([sweep("200/1", 9, NEW, 0.95, curve=name) for name in ("dsr1 tp4", "dsr1 tp8")])
    (found,) = [
        f for f in judged(history, candidate).findings if f.scope is Scope.CONFIG and f.metric == "tput_per_gpu"
    ]
    assert (found.key, found.verdict, found.n_points) == ("dsr1-fp8-h200-vllm", Verdict.REGRESSION, 6)


def test_one_image_with_other_numbers_is_the_environment():
    found = curve(nights(3, OLD), sweep("200/1", 9, OLD, 0.9))
    assert found.verdict is Verdict.SUSPECTED
    assert "environment" in codes(found)
    assert found.effect == pytest.approx(np.log(0.9), abs=0.01)


def test_a_baseline_that_newer_runs_of_its_image_contradict_is_the_environment():
    history = pl.concat([nights(1, OLD, speed=0.9), nights(3, OLD, start=1)])
    found = curve(history, sweep("200/1", 9, NEW), against="run:100")
    assert found.verdict is Verdict.SUSPECTED
    assert "environment" in codes(found)


def test_an_image_that_moved_against_its_own_past_was_moved_by_its_machines():
    history = pl.concat([sweep("90/1", 0, OLD), sweep("91/1", 1, NEW), sweep("92/1", 2, OLD)])
    assert "environment" in codes(curve(history, sweep("200/1", 3, NEW, 0.9)))


def test_a_return_to_the_last_good_level_is_a_recovery():
    history = pl.concat([nights(1, OLD), nights(1, NEW, start=5, speed=0.21)])
    found = curve(history, sweep("200/1", 9, LATER, 1.0))
    assert found.verdict is Verdict.RECOVERY
    assert abs(found.effect) < 0.02
    (caveat,) = [c for c in found.caveats if c.code == "recovery"]
    assert dict(caveat.values)["change"] == pytest.approx(-np.log(0.21), abs=0.02)
    assert "implausible_gain" not in codes(found)


def test_a_loss_that_lasts_is_said_beside_an_unchanged_curve():
    history = pl.concat([nights(3, OLD), nights(1, NEW, start=5, speed=0.8)])
    found = curve(history, sweep("200/1", 9, LATER, 0.8))
    assert found.verdict is Verdict.EQUIVALENT
    assert "below_last_good" in codes(found)


def test_a_gain_beyond_belief_is_flagged_for_a_check():
    assert "implausible_gain" in codes(curve(nights(3, OLD), sweep("200/1", 9, NEW, 2.5)))


def test_a_bad_night_asks_for_another_run():
    metrics = ("tput_per_gpu", "median_tpot", "median_itl")
    slow = sweep("200/1", 9, NEW, 0.8, metrics=metrics)
    calm = sweep("200/1", 9, NEW, 1.0, metrics=("median_itl",))
    night = pl.concat([slow.filter(pl.col("metric") != "median_itl"), calm])
    found = curve(nights(3, OLD, metrics=metrics), night)
    assert found.verdict is Verdict.SUSPECTED
    assert "rerun" in codes(found)
    assert curve(nights(3, OLD, metrics=metrics), slow).verdict is Verdict.REGRESSION


def test_what_one_gate_metric_alone_shows_is_only_suspected():
    candidate = pl.concat(
        [sweep("200/1", 9, NEW, 0.94, metrics=("median_tpot",)), sweep("200/1", 9, NEW, metrics=("tput_per_gpu",))]
    )
    assert curve(nights(3, OLD), candidate, "median_tpot").verdict is Verdict.SUSPECTED
    alone = curve(
        nights(3, OLD, metrics=("median_tpot",)), candidate.filter(pl.col("metric") == "median_tpot"), "median_tpot"
    )
    assert alone.verdict is Verdict.REGRESSION


@pytest.mark.parametrize(
    ("metrics", "judged_ones"),
    [
        (("tput_per_gpu", "output_tput_per_gpu", "median_tpot", "median_intvty"), {"tput_per_gpu", "median_tpot"}),
        (("median_intvty",), {"median_intvty"}),
    ],
)
def test_one_number_is_judged_once(metrics, judged_ones):
    made = judged(nights(2, OLD, metrics=metrics), sweep("200/1", 9, NEW, 0.9, metrics=metrics))
    assert {f.metric for f in made.findings} == judged_ones
    assert {f.verdict for f in made.findings if f.scope is Scope.CURVE} == {Verdict.REGRESSION}


def test_unknown_metrics_are_shown_and_not_judged():
    metrics = ("tput_per_gpu", "frobnication_rate")
    found = curve(nights(2, OLD, metrics=metrics), sweep("200/1", 9, NEW, 0.5, metrics=metrics), "frobnication_rate")
    assert found.verdict is Verdict.NOT_JUDGED
    assert found.effect == pytest.approx(np.log(0.5), abs=0.02)


def test_a_curve_without_history_has_no_baseline():
    made = judged(nights(1, OLD, curve="another"), sweep("200/1", 9, NEW))
    assert {f.verdict for f in made.findings} == {Verdict.NO_BASELINE}
    assert len(made.unmatched) == 3


def test_thirty_percent_is_never_lost_to_too_few_runs():
    history = pl.concat([sweep(f"{day}/1", day, OLD, conc=(64,)) for day in (1, 2, 3)])
    found = curve(history, sweep("200/1", 9, NEW, 0.7, conc=(64,)))
    assert found.verdict in (Verdict.REGRESSION, Verdict.SUSPECTED)


def test_one_lucky_baseline_run_is_dropped_and_told():
    history = pl.concat([nights(4, OLD), nights(1, OLD, start=4, speed=0.51)])
    found = curve(history, sweep("200/1", 9, NEW))
    assert found.verdict is Verdict.EQUIVALENT
    assert "flaky_baseline" in codes(found)


def test_four_hundred_quiet_points_stay_quiet():
    curves = [f"curve {number}" for number in range(100)]
    history = pl.concat([nights(3, OLD, curve=name, conc=(2, 8, 32, 128), noise=0.01) for name in curves])
    candidate = pl.concat([sweep("200/1", 9, NEW, curve=name, conc=(2, 8, 32, 128), noise=0.01) for name in curves])
    called = [f for f in judged(history, candidate).findings if f.verdict in (Verdict.REGRESSION, Verdict.IMPROVEMENT)]
    assert len({f.key for f in called if f.scope is Scope.CURVE}) <= 1


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0.8, 1.25), min_size=3, max_size=3), st.integers(1, 3))
def test_swapping_the_sides_swaps_the_verdict(speeds, runs):
    before = pl.concat([sweep(f"{n}/1", n, OLD) for n in range(1, runs + 1)])
    after = pl.concat(
        [sweep(f"{n}/1", n, NEW, dict(zip((4, 16, 64), speeds, strict=True))) for n in range(11, 11 + runs)]
    )
    there = judged(before, after)
    back = judged(after, before.with_columns(pl.col("started_at") + pl.duration(days=30)))
    for one, other in zip(there.findings, back.findings, strict=True):
        assert other.verdict.value == MIRROR.get(one.verdict.value, one.verdict.value)
        assert other.effect == pytest.approx(-one.effect, abs=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.floats(1e-4, 1e4), st.floats(0.9, 1.1))
def test_the_unit_of_a_metric_changes_nothing(unit, speed):
    history, candidate = nights(2, OLD), sweep("200/1", 9, NEW, speed)
    plain = judged(history, candidate).findings
    scaled = judged(*(frame.with_columns(pl.col("value") * unit) for frame in (history, candidate))).findings
    for one, other in zip(plain, scaled, strict=True):
        assert other.verdict is one.verdict
        assert other.effect == pytest.approx(one.effect, abs=1e-6)
