import json
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store import thresholds
from store.identity import config_key
from store.records import Caveat, Layout, Place, Role, RunKey, Scope, Score, Series, Verdict
from store.thresholds import Thresholds
from tracker.judge.gate import digits_apart
from tracker.judge.results import RULES, EvalRules, collapsed, eval_key, reduced_key
from tracker.judge.scores import judge_scores

N = 1319
SERIES = Series("dsr1", "h200", "sglang", "fp8", "none", "single_turn", 8192, 1024, False, Layout(Role(8)), 64)
OLD, NEW = "lmsysorg/sglang:v0.5.8", "lmsysorg/sglang:v0.5.9"
NIGHT = datetime(2026, 5, 1, tzinfo=UTC)
NO_GATE = EvalRules(thresholds=Thresholds())


def score(run, flexible, strict="same", *, conc=64, n=N, image=NEW, series=SERIES, task="gsm8k", **more):
    strict = flexible if strict == "same" else strict
    where = replace(series, conc=conc)
    return Score(
        RunKey(run), where, task, strict, None, flexible, None, n, Place(f"eval_{run}_{conc}"), "", image=image, **more
    )


def judge(history, candidate, rules=RULES, configs=()):
    started = {s.run: NIGHT + timedelta(days=s.run.id) for s in (*history, *candidate)}
    return judge_scores(history, candidate, started, rules, configs)


def only(found, metric="em_flexible", scope=Scope.EVAL):
    (finding,) = [f for f in found[0] if f.metric == metric and f.scope is scope]
    return finding


def codes(record):
    return {caveat.code: dict(caveat.values) for caveat in record.caveats}


# The gate


@pytest.mark.parametrize(
    ("model", "task", "value", "failed", "mark"),
    [
        ("dsr1", "gsm8k", 0.905, True, 0.91),
        ("kimik2.5", "gsm8k", 0.905, False, 0.90),
        ("glm5", "gsm8k", 0.935, True, 0.94),
        ("glm5.1", "gsm8k", 0.935, False, 0.93),
        ("dsr1", "gsm8k_platinum", 0.905, False, None),
        ("?newmodel", "gsm8k", 0.90, False, 0.90),
        ("?newmodel", "gpqa_diamond_cot_n_shot", 0.44, False, 0.30),
    ],
)
def test_the_gate_is_that_of_the_exact_model(model, task, value, failed, mark):
    finding = only(judge([], [score(1, value, series=replace(SERIES, model=model), task=task)]))
    assert finding.verdict is (Verdict.FAILED if failed else Verdict.NO_BASELINE)
    assert ("below_threshold" in codes(finding)) is failed
    assert (codes(finding)["gate"]["threshold"] if mark else codes(finding)["no_gate"]["task"]) == (mark or task)


def test_one_question_short_fails_the_gate_and_is_no_regression():
    rules = EvalRules(thresholds=Thresholds({"gsm8k": 0.83}))
    history = [score(1, 217 / 256, n=256, image=OLD)]
    finding = only(judge(history, [score(2, 212 / 256, n=256)], rules))
    below, near = codes(finding)["below_threshold"], codes(finding)["near_threshold"]
    assert finding.verdict is Verdict.FAILED
    assert codes(finding)["statistical_verdict"] == {"verdict": "inconclusive"}
    assert (below["correct"], below["n"], below["needed"], below["short_by"]) == (212, 256, 213, 1)
    assert (round(near["standard_error"], 4), round(near["z"], 2)) == (0.0236, -0.08)
    assert f"{below['score']:.{below['digits']}f}" < f"{below['threshold']:.{below['digits']}f}"


@pytest.mark.parametrize(("mark", "n", "needed"), [(0.07, 100, 7), (0.9, 1319, 1188), (0.91, 100, 91), (0.29, 100, 29)])
def test_needed_answers_are_counted_without_binary_dust(mark, n, needed):
    rules = EvalRules(thresholds=Thresholds({"gsm8k": mark}))
    finding = only(judge([], [score(1, (needed - 1) / n, n=n)], rules))
    assert codes(finding)["below_threshold"]["needed"] == needed
    assert "below_threshold" not in codes(only(judge([], [score(1, needed / n, n=n)], rules)))


@given(st.floats(0, 1), st.floats(0, 1))
def test_two_unequal_scores_never_print_alike(value, mark):
    digits = digits_apart(value, mark)
    assert value == mark or f"{value:.{digits}f}" != f"{mark:.{digits}f}" or abs(value - mark) < 1e-16


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_fails(value):
    finding = only(judge([score(1, 0.95)], [score(2, value)]))
    assert (finding.verdict, finding.effect, finding.p) == (Verdict.FAILED, None, None)
    assert codes(finding)["non_finite"] == {"metric": "em_flexible", "value": str(value)}


def test_a_percent_is_no_fraction():
    finding = only(judge([score(1, 0.95)], [score(2, 95.5)]))
    assert finding.verdict is Verdict.FAILED
    assert "out_of_range" in codes(finding)


def test_a_result_without_any_metric_fails():
    finding = only(judge([], [score(1, None)]))
    assert finding.verdict is Verdict.FAILED
    assert "no_metric" in codes(finding)


def test_what_the_reader_called_invalid_stays_so():
    finding = only(judge([score(1, 0.95)], [score(2, 0.95, invalid=Caveat.of("eval_incomplete"))]))
    assert finding.verdict is Verdict.FAILED
    assert "eval_incomplete" in codes(finding)


def test_the_lower_of_two_ways_of_reading_fails_on_its_own():
    found = judge([], [score(1, 0.9553, 0.5792, series=replace(SERIES, model="kimik2.5"))])
    assert only(found, "em_strict").verdict is Verdict.FAILED
    assert only(found, "em_flexible").verdict is Verdict.NO_BASELINE


def test_a_task_with_a_plain_score_is_judged_by_it():
    row = replace(score(1, None, task="swebench_lite", n=300), score=0.48, score_name="accuracy")
    finding = only(judge([], [row]), "score")
    assert finding.verdict is Verdict.FAILED
    assert codes(finding)["below_threshold"]["short_by"] == 6
    assert "collapsed" not in codes(finding)


# Against the history


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (0.9553, 0.9553, Verdict.EQUIVALENT),
        (0.9553, 0.9353, Verdict.REGRESSION),
        (0.9353, 0.9553, Verdict.IMPROVEMENT),
        (0.9553, 0.9453, Verdict.SUSPECTED),
        (0.9553, 0.9493, Verdict.INCONCLUSIVE),
        (0.9553, 0.6000, Verdict.REGRESSION),
        (0.9553, 0.0, Verdict.FAILED),
    ],
)
def test_the_verdict_of_one_job(before, after, verdict):
    finding = only(judge([score(1, before, image=OLD)], [score(2, after)]))
    assert finding.verdict is verdict
    assert finding.effect == pytest.approx(after - before)
    assert finding.key == "dsr1 h200 sglang fp8 none 8192/1024 tp8 c64 gsm8k"
    assert (finding.baseline_image, finding.candidate_image) == (OLD, NEW)
    assert (finding.n_baseline, finding.n_candidate) == (1, 1)


def test_a_statistical_finding_can_be_rebuilt_from_its_record():
    finding = only(judge([score(1, 0.9553, image=OLD)], [score(2, 0.9353)]))
    proof = finding.evidence
    z = (proof.candidate[0][0] - proof.baseline[0][0]) / proof.sigma[0]
    assert finding.p == pytest.approx(0.5 * math.erfc(-z / math.sqrt(2)))
    assert finding.p <= proof.p_adjusted <= 0.05
    assert proof.margin <= abs(finding.effect)
    assert finding.low < finding.effect < finding.high
    assert 0.01 < finding.mde < 0.02
    assert codes(finding)["eval_size"]["n"] == N
    assert "run_again" in codes(finding)


def test_a_collapse_is_a_failure_with_a_bound_and_no_infinite_significance():
    finding = only(judge([score(1, 0.9613, image=OLD)], [score(2, 0, 0)]))
    assert (finding.verdict, finding.p, finding.mde) == (Verdict.FAILED, None, None)
    assert finding.effect == pytest.approx(-0.9613)
    assert codes(finding)["collapsed"]["upper"] == pytest.approx(0.0029, abs=1e-4)
    assert codes(finding)["below_threshold"]["correct"] == 0


def test_after_a_collapse_a_sound_score_is_a_recovery():
    history = [score(1, 0.9613, image=OLD), score(2, 0.0038, image=NEW)]
    finding = only(judge(history, [score(3, 0.9590)]))
    assert finding.verdict is Verdict.RECOVERY
    assert codes(finding)["recovered"]["before"] == 0.0038
    assert finding.baseline == 0.9613


def test_a_collapse_without_anything_better_before_it_is_recovered_from_as_well():
    finding = only(judge([score(2, 0)], [score(3, 0.9590)]))
    assert (finding.verdict, finding.p, finding.n_baseline) == (Verdict.RECOVERY, None, 0)


def test_a_recovery_that_stays_below_the_last_good_score_is_a_regression():
    history = [score(1, 0.9613, image=OLD), score(2, 0.0038, image=NEW)]
    assert only(judge(history, [score(3, 0.93)])).verdict is Verdict.REGRESSION


def test_a_collapse_of_another_layout_at_the_same_concurrency_is_recovered_from():
    split = replace(SERIES, layout=Layout(Role(4, workers=4), Role(8), True))
    finding = only(judge([score(1, 0.0, series=split)], [score(2, 0.9424)]))
    assert finding.verdict is Verdict.RECOVERY
    assert codes(finding)["recovered"]["layout"] == "mn:P4xtp4+Dtp8"


def test_back_at_the_last_good_score_after_a_drop_is_a_recovery_and_no_improvement():
    history = [score(1, 0.96, image=OLD), score(2, 0.93, image="lmsysorg/sglang:v0.5.8.post1")]
    finding = only(judge(history, [score(3, 0.9605)]))
    assert finding.verdict is Verdict.RECOVERY
    assert codes(finding)["recovered"]["last_good"] == 0.96
    assert only(judge(history, [score(3, 0.9905)])).verdict is Verdict.IMPROVEMENT


def test_the_baseline_is_the_newest_identity_and_at_most_five_runs():
    history = [score(i, 0.90, image="lmsysorg/sglang:v0.5.7") for i in range(1, 4)]
    history += [score(i, 0.95, image=OLD) for i in range(4, 11)]
    finding = only(judge(history, [score(11, 0.95)]))
    assert finding.baseline == pytest.approx(0.95)
    assert [run.id for run in finding.baseline_runs] == [6, 7, 8, 9, 10]


def test_scores_of_unknown_images_are_not_pooled():
    history = [score(i, 0.95, image=None) for i in range(1, 4)]
    assert only(judge(history, [score(4, 0.95, image=None)])).n_baseline == 1


def test_more_baseline_runs_see_smaller_drops():
    one, five = (only(judge([score(i, 0.955, image=OLD) for i in range(1, k + 1)], [score(9, 0.95)])) for k in (1, 5))
    assert five.mde < one.mde


def test_order_is_that_of_the_starts_and_not_of_the_list():
    history = [score(2, 0.95, image=OLD), score(1, 0.90, image="lmsysorg/sglang:v0.5.7")]
    assert only(judge(history, [score(3, 0.95)])) == only(judge(history[::-1], [score(3, 0.95)]))


def test_two_candidate_runs_are_judged_together():
    finding = only(judge([score(1, 0.9553, image=OLD)], [score(2, 0.935), score(3, 0.937)]))
    assert (finding.verdict, finding.n_candidate) == (Verdict.REGRESSION, 2)
    assert finding.candidate == pytest.approx(0.936)
    assert "run_again" not in codes(finding)


def test_other_numbers_with_the_same_image_are_marked():
    finding = only(judge([score(1, 0.9553)], [score(2, 0.9353)]))
    assert "same_identity" in codes(finding)
    other = only(judge([score(1, 0.9553)], [score(2, 0.9353, recipe="r2")]))
    assert "same_identity" not in codes(other)


@pytest.mark.parametrize(("have", "verdict"), [(256, Verdict.FAILED), (2638, Verdict.NOT_COMPARABLE)])
def test_another_number_of_questions_is_no_matter_for_statistics(have, verdict):
    finding = only(judge([score(1, 0.95, image=OLD)], [score(2, 0.95, n=have)]))
    assert (finding.verdict, finding.effect, finding.p) == (verdict, None, None)
    assert codes(finding)["question_count"] == {"have": have, "baseline": N}


def test_without_number_of_questions_and_standard_error_nothing_is_significant():
    finding = only(judge([score(1, 0.95, n=None, image=OLD)], [score(2, 0.93, n=None)]))
    assert (finding.verdict, finding.p, finding.low) == (Verdict.INCONCLUSIVE, None, None)
    assert finding.effect == pytest.approx(-0.02)
    assert "no_standard_error" in codes(finding)


def test_few_questions_make_a_noisy_verdict():
    assert only(judge([score(1, 0.8, n=30)], [score(2, 0.8, n=30)], NO_GATE)).verdict is Verdict.NOISY


def test_a_lower_half_is_no_collapse_where_good_scores_are_lower():
    history = [score(1, 0.45, task="hard", image=OLD)]
    assert only(judge(history, [score(2, 0.44, task="hard")])).verdict is Verdict.INCONCLUSIVE


# Format


def test_a_broken_format_hits_strict_and_leaves_the_accuracy_alone():
    found = judge([score(1, 0.97, 0.965, image=OLD)], [score(2, 0.97, 0.93)])
    strict = only(found, "em_strict")
    assert only(found).verdict is Verdict.EQUIVALENT
    assert strict.verdict is Verdict.REGRESSION
    assert codes(strict)["format_gap"]["growth"] == pytest.approx(0.035)


def test_a_repaired_format_is_no_gain_in_accuracy():
    kimi = replace(SERIES, model="kimik2.5")
    found = judge([score(1, 0.9731, 0.5713, image=OLD, series=kimi)], [score(2, 0.9742, series=kimi)])
    strict = only(found, "em_strict")
    assert only(found).verdict is Verdict.EQUIVALENT
    assert strict.verdict is Verdict.IMPROVEMENT
    assert codes(strict)["format_gap_closed"]["before"] == pytest.approx(0.4018)


def test_the_format_alarm_is_heard_where_statistics_are_too_weak():
    found = judge([score(1, 0.90, 0.90, n=50, image=OLD)], [score(2, 0.90, 0.86, n=50)], NO_GATE)
    assert only(found, "em_strict").verdict is Verdict.SUSPECTED


# Neighbours and configurations


def test_a_score_that_passes_but_falls_from_its_neighbours_is_suspected():
    found = judge([], [score(1, 0.96, conc=16), score(1, 0.96, conc=32), score(1, 0.93, conc=64)])
    low = next(f for f in found[0] if f.series and f.series.conc == 64 and f.metric == "em_flexible")
    assert low.verdict is Verdict.SUSPECTED
    assert codes(low)["below_siblings"]["count"] == 2
    assert all("below_siblings" not in codes(f) for f in found[0] if f.series and f.series.conc != 64)


def test_a_gap_to_the_neighbours_that_was_always_there_is_only_noted():
    def run(number, image):
        return [score(number, value, conc=conc, image=image) for conc, value in ((16, 0.96), (32, 0.96), (64, 0.93))]

    found = judge(run(1, OLD), run(2, NEW))
    assert {f.verdict for f in found[0]} == {Verdict.EQUIVALENT}
    assert sum("below_siblings" in codes(f) for f in found[0]) == 2


def test_small_drops_of_several_jobs_are_found_together():
    concs = (16, 32, 64, 128)
    history = [score(1, 0.9553, conc=conc, image=OLD) for conc in concs]
    found = judge(history, [score(2, 0.9453, conc=conc) for conc in concs])
    pooled = only(found, scope=Scope.CONFIG)
    assert pooled.verdict is Verdict.REGRESSION
    assert (pooled.n_points, pooled.key) == (4, "dsr1-fp8-h200-sglang gsm8k")
    assert pooled.effect == pytest.approx(-0.01)
    assert {f.verdict for f in found[0] if f.scope is Scope.EVAL} == {Verdict.SUSPECTED}


def test_a_collapsed_job_is_left_out_of_the_pool_and_said_so():
    concs = (16, 32, 64)
    history = [score(1, 0.9553, conc=conc, image=OLD) for conc in concs]
    found = judge(history, [score(2, value, conc=conc) for conc, value in zip(concs, (0.9553, 0.9553, 0), strict=True)])
    pooled = only(found, scope=Scope.CONFIG)
    assert pooled.verdict is Verdict.EQUIVALENT
    assert codes(pooled)["jobs_left_out"] == {"have": 2, "of": 3}


def test_one_job_alone_has_no_pooled_finding():
    assert all(f.scope is Scope.EVAL for f in judge([score(1, 0.95, image=OLD)], [score(2, 0.95)])[0])


def test_one_borderline_drop_among_many_jobs_does_not_survive_its_family():
    models = [replace(SERIES, model=f"?m{i}") for i in range(40)]
    drops = [0.0125] + [0.0] * 39
    history = [score(1, 0.9553, series=model, image=OLD) for model in models]
    found = judge(history, [score(2, 0.9553 - d, series=m) for m, d in zip(models, drops, strict=True)])
    alone = judge(history[:1], [score(2, 0.9553 - 0.0125, series=models[0])])
    assert only(alone).verdict is Verdict.REGRESSION
    first = next(f for f in found[0] if f.series == replace(models[0], conc=64) and f.metric == "em_flexible")
    assert first.verdict is Verdict.SUSPECTED
    assert Verdict.REGRESSION not in {f.verdict for f in found[0]}


# Which results count


def test_copies_of_one_result_count_once():
    copies = [score(1, 0.95, image=OLD)] * 4
    older_shape = replace(copies[0], place=Place("again"), flexible_se=0.006, strict_se=0.006)
    finding = only(judge([*copies, older_shape], [score(2, 0.95)]))
    assert finding.n_baseline == 1


def test_the_newest_attempt_counts():
    again = replace(score(1, 0.95, image=OLD), run=RunKey(1, 2))
    finding = only(judge([score(1, 0.90, image=OLD), again], [score(2, 0.95)]))
    assert finding.baseline_runs == (RunKey(1, 2),)


def test_the_newest_artifact_of_an_attempt_counts():
    early, late = (Place("eval", 0, NIGHT + timedelta(hours=h)) for h in (1, 2))
    rows = [replace(score(1, 0.95), place=late), replace(score(1, 0.90), place=early)]
    assert only(judge([], rows)).candidate == 0.95


def test_two_results_of_which_neither_is_newer_are_not_chosen_between():
    findings, unmatched = judge([], [score(1, 0.95), score(1, 0.90)])
    assert findings == ()
    assert [(u.verdict, u.reason.code, u.side) for u in unmatched] == [
        (Verdict.INVALID, "ambiguous_results", "candidate")
    ]


def test_a_missing_eval_is_missing_and_never_passed():
    history = [score(1, 0.95, conc=16), score(1, 0.95, conc=64)]
    findings, unmatched = judge(history, [score(2, 0.95, conc=64)])
    (gone,) = unmatched
    assert (gone.verdict, gone.reason.code, gone.side) == (Verdict.MISSING, "missing_eval", "baseline")
    assert gone.key == eval_key(replace(SERIES, conc=16), "gsm8k")
    assert all(f.series.conc == 64 for f in findings)


def test_a_config_that_lost_all_its_evals_is_missing_only_if_it_was_measured():
    history = [score(1, 0.95)]
    assert judge(history, [])[1] == ()
    assert len(judge(history, [], configs=[config_key(SERIES)])[1]) == 1


def test_a_way_of_reading_that_is_gone_is_missing():
    _, unmatched = judge([score(1, 0.95, 0.95)], [score(2, None, 0.95)])
    assert [(u.reason.code, dict(u.reason.values)["metric"]) for u in unmatched] == [("missing_metric", "em_flexible")]


def test_collapsed_deployments_are_named_for_the_throughput():
    other = replace(SERIES, gpu="b200")
    rows = [score(1, 0, 0), score(1, 0.95, series=other), score(2, 0.97, 0.3)]
    assert collapsed(rows) == {(RunKey(1), reduced_key(SERIES))}
    assert reduced_key(SERIES) == reduced_key(replace(SERIES, isl=1024, conc=4))
    assert reduced_key(SERIES) != reduced_key(other)


# Laws


MIRROR = {
    Verdict.REGRESSION: {Verdict.IMPROVEMENT},
    Verdict.IMPROVEMENT: {Verdict.REGRESSION},
    Verdict.SUSPECTED: {Verdict.INCONCLUSIVE},
    Verdict.INCONCLUSIVE: {Verdict.INCONCLUSIVE, Verdict.SUSPECTED},
    Verdict.EQUIVALENT: {Verdict.EQUIVALENT},
}


@given(st.integers(900, N), st.integers(900, N))
@settings(max_examples=200)
def test_swapping_the_sides_mirrors_the_verdict(a, b):
    there = only(judge([score(1, a / N, image=OLD)], [score(2, b / N)], NO_GATE))
    back = only(judge([score(1, b / N, image=OLD)], [score(2, a / N)], NO_GATE))
    assert back.verdict in MIRROR[there.verdict]
    assert (back.effect, back.low, back.high) == pytest.approx((-there.effect, -there.high, -there.low))
    assert (back.p, back.mde) == pytest.approx((there.p, there.mde))


anything = st.one_of(st.none(), st.floats(), st.just(0), st.floats(0, 1))


@given(st.lists(st.tuples(anything, anything, st.sampled_from([None, 0, 1, 2, 256, N])), min_size=1, max_size=6))
@settings(max_examples=200)
def test_no_score_whatever_it_holds_breaks_the_judgement_or_passes_unseen(rows):
    scores = [score(1 + i // 3, f, s, n=n, conc=16 * (1 + i % 3)) for i, (f, s, n) in enumerate(rows)]
    findings, unmatched = judge(scores[3:] and scores[:3], scores[3:] or scores)
    for finding in findings:
        numbers = (finding.effect, finding.low, finding.high, finding.p, finding.mde)
        assert all(number is None or math.isfinite(number) for number in numbers)
        assert finding.p is None or 0 <= finding.p <= 1
        value = finding.candidate
        assert value is not None or finding.verdict is Verdict.FAILED
    keys = {f.key for f in findings} | {u.key for u in unmatched}
    assert {eval_key(s.series, s.task) for s in (scores[3:] or scores)} <= keys


def test_slow_twin_of_the_verdict_on_simulated_reruns():
    """Binomial runs on the same questions, a part of the doubtful ones drawn again: few alarms, real drops found."""
    rng = np.random.default_rng(11)
    hard = rng.beta(9, 0.4, N)
    verdicts = {0.0: [], 0.02: []}
    for drop, said in verdicts.items():
        for _ in range(150):
            first = rng.random(N) < hard
            again = rng.random(N) < 0.18
            second = np.where(again, rng.random(N) < hard, first) & (rng.random(N) >= drop)
            history = [score(1, float(first.mean()), image=OLD)]
            said.append(only(judge(history, [score(2, float(second.mean()))], NO_GATE)).verdict)
    assert verdicts[0.0].count(Verdict.REGRESSION) <= 3
    assert verdicts[0.02].count(Verdict.REGRESSION) >= 105


# Reference data


def rows_of(path):
    def role(row, side):
        return Role(row[f"{side}_tp"], row[f"{side}_ep"], workers=max(row[f"{side}_num_workers"], 1))

    for row in json.loads(path.read_text()):
        prefill, decode = role(row, "prefill"), role(row, "decode")
        m = row["metrics"]
        words = (row["model"], row["hardware"], row["framework"], row["precision"], row["spec_method"])
        layout = Layout(prefill, None if decode == prefill else decode)
        yield Score(
            run=RunKey(int(row["run_url"].rpartition("/")[2])),
            series=Series(*words, "single_turn", None, None, False, layout, row["conc"]),
            task=row["task"],
            strict=m["em_strict"],
            strict_se=m["em_strict_se"],
            flexible=m["em_flexible"],
            flexible_se=m["em_flexible_se"],
            n=m["n_eff"],
            place=Place(path.name, 0),
            raw="",
            score=m.get("score"),
        )


def starts(*groups):
    runs = sorted({s.run for group in groups for s in group})
    return {run: NIGHT + timedelta(days=i) for i, run in enumerate(runs)}


@pytest.mark.shared
def test_the_published_collapse_fails_and_the_later_rows_are_recoveries(shared):
    case = shared / "cases/33-collapse-with-zero-standard-error"
    rules = EvalRules(thresholds=thresholds.load(case / "thresholds.json"))
    bad = list(rows_of(case / "evaluations_2026-04-19.json"))
    findings, _ = judge_scores([], bad, starts(bad), rules)
    strict = [f for f in findings if f.metric == "em_strict" and f.scope is Scope.EVAL]
    assert sorted(round(f.candidate, 4) for f in strict if f.verdict is Verdict.FAILED) == [0, 0, 0, 0, 0.0038]
    assert sorted(round(f.candidate, 4) for f in strict if f.verdict is not Verdict.FAILED) == [0.9613, 0.9651, 0.9704]
    assert len(collapsed(bad, rules)) == 5
    later = sorted(rows_of(case / "evaluations_later.json"), key=lambda s: s.run)
    first = [s for s in later if s.run == later[0].run]
    after, _ = judge_scores(bad, first, starts(bad, first), rules)
    back = {(f.series.spec, f.series.conc) for f in after if f.verdict is Verdict.RECOVERY and f.scope is Scope.EVAL}
    assert back == {("mtp", 128), ("mtp", 2048), ("none", 2048)}


@pytest.mark.shared
def test_the_published_duplicates_are_four_results(shared):
    rows = list(rows_of(shared / "cases/12-published-duplicate-rows/evaluations.json"))
    runs = sorted({s.run for s in rows})
    day = {run: [s for s in rows if s.run == run] for run in runs}
    first, second, third = (day[run] for run in runs)
    quiet = only(judge_scores(first, second, starts(rows)), "em_strict")
    assert (quiet.n_baseline, quiet.n_candidate) == (1, 1)
    assert codes(quiet)["statistical_verdict"]["verdict"] in ("suspected", "inconclusive")
    repaired = [f for f in judge_scores([*first, *second], third, starts(rows))[0] if f.scope is Scope.EVAL]
    assert len({(f.key, f.metric) for f in repaired}) == len(repaired) == 4
    strict = next(f for f in repaired if f.metric == "em_strict" and f.series.conc == 64)
    assert strict.effect == pytest.approx(0.4056, abs=1e-4)
    assert "format_gap_closed" in codes(strict)
