"""What to run again: the fewest points, an honest power, and a plan that keeps its promises."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports import blocks as pages
from reports import reruns
from store.records import Layout, Role, Series
from store.reruns import Again, RerunPlan, Why
from tests import factory
from tests.cli import Tracker
from tests.readers_help import put
from tracker.frames import compare_frames
from tracker.judge.sweep import judge_frames
from tracker.pairs import Baseline
from tracker.rerun import plan
from tracker.settings import Settings
from tracker.simulate import simulate_sweeps
from tracker.stats import rerun
from tracker.stats.rerun import Kind, Member, Trial, choose, deviation, repetitions

END = datetime(2026, 11, 27, 2, tzinfo=UTC)
CURVES, POINTS = 40, 6


def series(layout: Layout) -> Series:
    return Series("dsr1", "gb200", "dynamo-trt", "fp4", "mtp", "single_turn", 8192, 1024, False, layout)


LAST = "6/1"

# ---------------------------------------------------------------- the power


def test_a_repetition_of_everything_halves_what_the_candidate_adds():
    once, twice = ([Member(0.02, 4, runs)] * 9 for runs in (1, 2))
    assert deviation(once, 0.0) == pytest.approx(0.02 * math.sqrt(1.25 / 9))
    assert deviation(twice, 0.0) == pytest.approx(0.02 * math.sqrt(0.75 / 9))


def test_the_quiet_point_is_taken_first_and_no_more_than_needed():
    members = (Member(0.03, 5, 1), Member(0.005, 5, 1), Member(0.02, 5, 1))
    confirm = Trial(members, 0.05, 0.02, 2.33, kind=Kind.CONFIRM)
    assert choose(confirm, ()) == {1}
    assert confirm.power({1}) >= rerun.POWER
    assert choose(confirm, {0, 1}) == {0, 1}


@given(
    sigma=st.floats(0.002, 0.1), size=st.integers(1, 30), correlation=st.floats(0, 0.8), effect=st.floats(0.001, 0.3)
)
def test_more_runs_never_say_less_of_what_is_beyond_its_limits(sigma, size, correlation, effect):
    test = Trial((Member(sigma, 3, 1),) * size, effect, 0.0, 1.96, correlation)
    everything = range(size)
    assert test.power(everything, 2) >= test.power(everything) >= test.power(()) - 1e-12
    needed = repetitions(test)
    if needed is None:
        assert test.power(everything, rerun.MOST_REPETITIONS) < rerun.POWER
    else:
        assert test.power(everything, needed) >= rerun.POWER


def test_an_effect_inside_the_margin_is_not_settled_by_any_number_of_runs():
    assert repetitions(Trial((Member(0.02, 3, 1),) * 5, 0.019, 0.02, 2.33)) is None


def test_the_tail_of_a_lone_point_makes_its_power_smaller():
    far = {kind: Trial((Member(0.02, 5, 1),), 0.09, 0.03, 4.0, kind=kind).power({0}) for kind in (Kind.CALL, Kind.LONE)}
    assert far[Kind.LONE] < far[Kind.CALL]


def test_an_interval_far_from_its_edges_is_sure_to_be_cleared_and_one_in_between_needs_runs():
    def after(effect: float) -> float:
        return Trial((Member(0.02, 5, 1),) * 6, effect, 0.02, 1.96, kind=Kind.CLEAR).power(range(6))

    assert after(-0.05) > 0.99
    assert after(0.01) < after(-0.005) < after(-0.02)


# ---------------------------------------------------------------- the plan


def judged(history: pl.DataFrame, candidate: pl.DataFrame):
    return judge_frames(history, candidate, Settings(), Baseline()).findings


def quiet_sweep(shift: float = 0.0) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A curve without any noise worth the name."""
    frame = simulate_sweeps(5, end=END, noise="normal", history=5, points=12, curves=1, shift=shift)
    still = frame.with_columns(level=pl.col("value").first().over("series", "metric"))
    moved = pl.when(pl.col("metric") == "median_tpot").then(-shift).otherwise(shift)
    value = pl.when(pl.col("run") == LAST).then(pl.col("level") * moved.exp()).otherwise("level")
    still = still.with_columns(value=value).drop("level")
    return still.filter(pl.col("run") != LAST), still.filter(pl.col("run") == LAST)


def test_nothing_to_settle_is_an_empty_plan_that_says_so():
    made = plan(judged(*quiet_sweep()), 12)
    assert (made.points, made.asks, made.beyond, made.waiting) == ((), (), (), ())
    assert "Nothing to settle" in pages.render(reruns.blocks(made), "table", "en")
    assert json.loads(reruns.as_matrix(made)) == []


def test_a_sweep_without_a_baseline_is_not_said_to_have_nothing_to_settle():
    _, candidate = quiet_sweep()
    made = plan(judged(candidate.clear(), candidate), 12)
    assert "Nothing was judged" in pages.render(reruns.blocks(made), "table", "en")


def test_one_quiet_point_confirms_a_loss_in_both_metrics():
    made = plan(judged(*quiet_sweep(-0.2)), 12, budget=0.1)
    assert len(made.points) == 1
    assert {ask.finding.metric for ask in made.asks} == {"tput_per_gpu", "median_tpot"}
    assert {ask.why for ask in made.asks} == {Why.CONFIRM}
    assert all(ask.before == 0 and ask.after >= rerun.POWER for ask in made.asks)
    assert not made.is_over


def test_the_most_important_finding_alone_may_exceed_the_budget_and_the_plan_says_so():
    made = plan(judged(*quiet_sweep(-0.2)), 12, budget=0.0)
    assert made.is_over
    assert "above the budget of 0% (0)" in pages.render(reruns.blocks(made), "table", "en")


def test_the_budget_keeps_what_is_less_important_waiting():
    history, candidate, _ = sweeps(2, {3: -0.2, 4: -0.15, 5: -0.1})
    made = plan(judged(history, candidate), CURVES * POINTS, budget=1 / 240)
    assert len(made.points) == 1
    assert made.points[0].config == "sim00003"
    assert {"sim00004", "sim00005"} <= {ask.finding.config for ask in made.waiting}


# ---------------------------------------------------------------- promises kept


def sweeps(seed: int, lost: dict[int, float], noise: str = "normal") -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """History, candidate and one repetition of all of it; the curves of `lost` are slower by so much in both."""
    frame = simulate_sweeps(seed, end=END, noise=noise, history=6, points=POINTS, curves=CURVES)
    frame = frame.with_columns(
        pl.when(pl.col("run") == LAST).then(pl.lit("lab/engine:v1.1.0")).otherwise("image").alias("image")
    )
    names = [f"sim{curve:05d}" for curve in lost]
    slower = pl.col("config").replace_strict(names, list(lost.values()), default=0.0, return_dtype=pl.Float64)
    sign = pl.when(pl.col("metric") == "median_tpot").then(-1.0).otherwise(1.0)
    is_new = pl.col("image") == "lab/engine:v1.1.0"
    frame = frame.with_columns(value=pl.when(is_new).then(pl.col("value") * (slower * sign).exp()).otherwise("value"))
    return frame.filter(~is_new), frame.filter(pl.col("run") == LAST), frame.filter(is_new & (pl.col("run") != LAST))


def loss(row: dict) -> float:
    return -row["effect"] if row["metric"] == "tput_per_gpu" else row["effect"]


def settled(row: dict, why: Why, margin: float) -> bool:
    """Called, or out of the question: the interval holds only one of "no change" and "a loss of the margin"."""
    if row["verdict"] in ("regression", "mixed"):
        return why is not Why.CONFIRM or "single_run" not in row["caveats"]
    low, high = sorted((row["low"], row["high"]), key=lambda end: -end if row["metric"] == "tput_per_gpu" else end)
    reach = -high if row["metric"] == "tput_per_gpu" else high
    near = -low if row["metric"] == "tput_per_gpu" else low
    return reach < margin or (why is Why.INCONCLUSIVE and near > 0)


def kept_promises(noise: str) -> tuple[list[tuple[Why, float, bool]], list[float]]:
    """What was promised of one metric and whether it held, and the share of points that each plan asked for."""
    rng, told, shares = np.random.default_rng(3), [], []
    for seed in range(12):
        lost = {int(curve): -float(rng.uniform(0.03, 0.05)) for curve in rng.choice(CURVES, 2, replace=False)}
        history, candidate, again = sweeps(seed, lost, noise)
        made = plan(judged(history, candidate), CURVES * POINTS)
        shares.append(len(made.points) / made.total)
        wanted = again.filter(pl.col("series").is_in([one.key for one in made.points]))
        answer = compare_frames(history, pl.concat([candidate, wanted]))
        rows = {(row["scope"], row["key"], row["metric"]): row for row in answer.iter_rows(named=True)}
        for ask in made.asks:
            one = ask.finding
            # Both gate metrics carry one number here: counted twice, chance would look half as large as it is.
            if one.metric == "tput_per_gpu":
                is_kept = settled(rows[one.scope.value, one.key, one.metric], ask.why, one.evidence.margin)
                told.append((ask.why, ask.after, is_kept))
    return told, shares


@pytest.mark.parametrize("noise", ["normal", "t3"])
def test_the_plan_is_small_and_keeps_its_promises(noise):
    told, shares = kept_promises(noise)
    assert np.mean(shares) <= 0.05
    assert {Why.CONFIRM, Why.INCONCLUSIVE} <= {why for why, _, _ in told}
    for reasons in ({Why.CONFIRM}, {Why.SUSPECTED, Why.INCONCLUSIVE}):
        powers = [power for why, power, _ in told if why in reasons]
        kept = sum(is_kept for why, _, is_kept in told if why in reasons)
        least, spread = 0.7 * sum(powers), math.sqrt(sum(0.7 * p * (1 - 0.7 * p) for p in powers))
        assert kept >= least - 2 * spread, (reasons, kept, sum(powers), len(powers))


# ---------------------------------------------------------------- the command


@pytest.fixture
def lost(tracker: Tracker) -> Tracker:
    """Five nights of one image and a slower one of the next."""
    speeds = (1000.0, 1004.0, 997.0, 1001.0, 999.0)
    runs = factory.history({conc: [conc * speed for speed in speeds] for conc in (4, 16, 64)})
    slow = [factory.row(conc, conc * 850.0, image=factory.NEXT_IMAGE) for conc in (4, 16, 64)]
    evals = [factory.evaluation(0.912)]
    last = factory.bundle(factory.run(200, "2026-05-20T00:00:00Z"), slow, evals)
    said = tracker.ingest(factory.write(tracker.folder / "sweeps.json", [*runs, last]), "--official")
    assert said.code == 0, said.err
    return tracker


def test_the_command_tells_both_languages_the_same_numbers(lost: Tracker):
    numbers = re.compile(r"[-+>]?\d+(?:\.\d+)?%?")
    for form in ("table", "markdown"):
        english, chinese, both = (lost("plan", "--format", form, "--lang", lang) for lang in ("en", "zh", "both"))
        assert (english.code, chinese.code) == (0, 0), english.err
        assert sorted(numbers.findall(english.out)) == sorted(numbers.findall(chinese.out))
        assert re.search(r"[\u4e00-\u9fff]", chinese.out)
        assert not re.search(r"[\u4e00-\u9fff]", english.out)
        assert english.out in both.out
        assert chinese.out in both.out


def test_the_json_tells_what_each_point_settles(lost: Tracker):
    said = lost("plan", "--format", "json").json
    confirmed = [ask for ask in said["asks"] if ask["why"] == "confirm"]
    assert {ask["metric"] for ask in confirmed} >= {"tput_per_gpu", "median_tpot"}
    assert all(ask["power_before"] < ask["power_after"] for ask in said["asks"])
    assert all(point["settles"] for point in said["points"])
    assert said["total"] == 4
    near = [ask for ask in (*said["asks"], *said["beyond"], *said["waiting"]) if ask["why"] == "gate"]
    assert {ask["metric"] for ask in near} == {"em_flexible", "em_strict"}


def test_the_matrix_has_the_fields_of_a_search_space(lost: Tracker):
    (item,) = lost("plan", "--format", "matrix").json
    head = {"config-key": "dsr1-fp8-h200-sglang", "isl": 8192, "osl": 1024, "tp": 8, "ep": 1, "dp-attn": False}
    assert {name: item[name] for name in head} == head
    assert item["spec-decoding"] == "none"
    assert set(item["conc-list"]) <= {4, 16, 64}


def test_the_matrix_names_the_config_that_promised_the_point(lost: Tracker):
    folder = lost.folder / "new"
    put(folder, "run.json", factory.run(300, "2026-05-21T00:00:00Z"))
    image, space = "lmsysorg/sglang:v0.5.12-cu130", "conc-list: [4, 16, 64]"
    master = factory.master_config("dsr1-fp8-h200-sglang-night", image, space)
    put(folder, "configs/nvidia-master.yaml", master.encode())
    asked = {"config-keys": ["dsr1-fp8-h200-sglang-night"]}
    put(folder, "changelog-metadata/changelog_metadata.json", {"base_ref": "a", "head_ref": "b", "entries": [asked]})
    rows = [factory.row(conc, conc * 500.0, image=factory.NEXT_IMAGE + "-post1") for conc in (4, 16, 64)]
    put(folder, "results_bmk/agg_bmk.json", rows)
    said = lost("plan", folder, "--format", "matrix")
    assert {item["config-key"] for item in said.json} == {"dsr1-fp8-h200-sglang-night"}, said.err


SPLIT = Layout(Role(8, ep=8, workers=2), Role(16, ep=16, dp_attention=True), multinode=True)
TOGETHER = Layout(Role(8, workers=2), None, multinode=True)
DEPLOYMENTS = {
    "split": (
        series(SPLIT),
        {
            "prefill": {"num-worker": 2, "tp": 8, "ep": 8, "dp-attn": False},
            "decode": {"num-worker": 1, "tp": 16, "ep": 16, "dp-attn": True},
        },
    ),
    "together": (
        series(TOGETHER),
        {"prefill": {"num-worker": 2, "tp": 8, "ep": 1, "dp-attn": False}, "decode": {"num-worker": 0}},
    ),
    "agentic": (
        replace(series(Layout(Role(8, pp=2))), scenario="agentic_traces", isl=None, osl=None, offload=True),
        {"kv-offloading": "dram", "tp": 8, "pp": 2, "ep": 1, "dp-attn": False},
    ),
}


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_every_kind_of_deployment_has_its_item(name: str):
    one, wanted = DEPLOYMENTS[name]
    points = tuple(Again(f"c{conc}", "some-key", replace(one, conc=conc)) for conc in (64, 4))
    (item,) = json.loads(reruns.as_matrix(RerunPlan(points, (), (), (), 2, 1.0, 2, 2)))
    lengths = {} if name == "agentic" else {"isl": 8192, "osl": 1024}
    assert item == {"config-key": "some-key", **lengths, **wanted, "spec-decoding": "mtp", "conc-list": [4, 64]}
