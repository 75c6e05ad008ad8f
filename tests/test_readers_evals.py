"""Eval results of every shape: aggregates, per-config folders of the harness, rows with comma keys."""

import pytest

from store.identity import series_key
from tests.readers_help import evaluated, found, one, pools, published, published_eval, put, row

META = {
    "is_multinode": False,
    "framework": "sglang",
    "precision": "fp8",
    "spec_decoding": "",
    "tp": 8,
    "ep": 1,
    "conc": 64,
    "dp_attention": False,
    "prefill_tp": 8,
    "prefill_ep": 1,
    "prefill_dp_attention": False,
    "prefill_num_workers": 1,
    "decode_tp": 8,
    "decode_ep": 1,
    "decode_dp_attention": False,
    "decode_num_workers": 1,
    "model": "deepseek-ai/DeepSeek-R1-0528",
    "infmax_model_prefix": "dsr1",
    "hw": "cluster:h200-dgxc",
    "isl": "8192",
    "osl": "1024",
}


def results(strict=0.9553, task="gsm8k", **more):
    measured = {
        "alias": task,
        "exact_match,strict-match": strict,
        "exact_match_stderr,strict-match": "N/A",
        "exact_match,flexible-extract": 0.96,
        "exact_match_stderr,flexible-extract": 0.0054,
    }
    counts = {task: {"original": 1319, "effective": 1319}}
    return {"lm_eval_version": "0.4.9", "results": {task: measured}, "n-samples": counts, **more}


def eval_key(folder, value, name):
    (score,) = one(folder, value, name).scores
    return series_key(score.series)


def test_an_eval_joins_the_throughput_of_its_config_whatever_its_shape(tmp_path):
    (point,) = one(tmp_path, row()).points
    expected = series_key(point.series).replace("8192/1024", "?/?")
    put(tmp_path, "eval_dsr1_a/meta_env.json", META)
    put(tmp_path, "eval_dsr1_a/results_2026-07-05T03-11-20.123456.json", results())
    (folder,) = found(tmp_path / "eval_dsr1_a")
    assert {
        eval_key(tmp_path, [evaluated()], "agg_eval_all.json"),
        eval_key(tmp_path, [published_eval()], "evaluations.json"),
        series_key(folder.scores[0].series),
    } == {expected}


def test_an_eval_of_two_pools_keeps_them(tmp_path):
    told = {key: value for key, value in pools().items() if key.startswith(("prefill_", "decode_", "is_"))}
    wanted = one(tmp_path, pools()).points[0].series.layout
    assert (
        one(tmp_path, [evaluated(**told, framework="dynamo-sglang")], "agg_eval_all.json").scores[0].series.layout
        == wanted
    )


@pytest.mark.parametrize(
    "halves", [{}, {"prefill_tp": 0, "decode_tp": 0}, {"prefill_tp": "none"}, {"prefill_tp": None}]
)
def test_the_first_eval_aggregates_had_no_halves(halves, tmp_path):
    drop = dict.fromkeys((key for key in evaluated() if key.startswith(("prefill_", "decode_"))), ...)
    plain = evaluated(**{**drop, **halves, "model_prefix": ..., "isl": ..., "osl": ...})
    assert eval_key(tmp_path, [plain], "agg_eval_all.json") == "dsr1 h200 sglang fp8 none ?/? tp8 c64"


def test_both_sides_of_dp_attention_may_stand_in_one_text(tmp_path):
    told = evaluated(dp_attention="prefill=true,decode=false", prefill_dp_attention="true", decode_dp_attention="none")
    (score,) = one(tmp_path, [{**told, "framework": "dynamo-vllm"}], "agg_eval_all.json").scores
    assert (score.series.layout.prefill.dp_attention, score.series.layout.decode.dp_attention) == (True, False)


@pytest.mark.parametrize("error", ["N/A", "", None, 0.0, 0, "0.0", float("nan"), -1, ...])
def test_a_standard_error_that_is_none_is_computed_from_n(error, tmp_path):
    (score,) = one(tmp_path, [evaluated(em_strict_se=error)], "agg_eval_all.json").scores
    assert score.strict_se == pytest.approx((0.9553 * 0.0447 / 1318) ** 0.5)


def test_without_n_there_is_no_standard_error(tmp_path):
    (score,) = one(tmp_path, [evaluated(em_strict_se="N/A", n_eff=...)], "agg_eval_all.json").scores
    assert (score.n, score.strict_se) == (None, None)


@pytest.mark.parametrize("zero", [0, 0.0, "0"])
def test_zero_is_a_score(zero, tmp_path):
    (score,) = one(tmp_path, [evaluated(em_strict=zero, em_strict_se=0.0, score=0)], "agg_eval_all.json").scores
    assert (score.strict, score.strict_se, score.score, score.invalid) == (0.0, 0.0, 0.0, None)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"em_strict": float("nan"), "em_flexible": float("nan")}, "no_score"),
        ({"em_strict": None, "em_flexible": "N/A"}, "no_score"),
        ({"em_strict": 95.5}, "score_out_of_range"),
        ({"em_flexible": -0.1}, "score_out_of_range"),
    ],
)
def test_a_score_that_is_none_is_kept_as_invalid(changes, code, tmp_path):
    (score,) = one(tmp_path, [evaluated(**changes)], "agg_eval_all.json").scores
    assert score.invalid.code == code


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        ({"task": ""}, "task", "missing_field"),
        ({"task": None}, "task", "missing_field"),
        ({"em_strict": [1]}, "em_strict", "bad_value"),
        ({"em_strict": True}, "em_strict", "bad_value"),
        ({"n_eff": 12.5}, "n_eff", "bad_value"),
        ({"conc": "many"}, "conc", "bad_value"),
    ],
)
def test_an_eval_row_that_cannot_be_read_whole_is_one_rejection(changes, field, reason, tmp_path):
    batch = one(tmp_path, [evaluated(**changes), evaluated(conc=16)], "agg_eval_all.json")
    assert len(batch.scores) == 1
    assert [(one.field, one.reason, one.place.index) for one in batch.rejections] == [(field, reason, 0)]


def test_copies_are_counted_and_the_richest_stays(tmp_path):
    poor = evaluated(score=..., em_strict_se=...)
    rich = evaluated(score=0.9553, score_name="em_strict")
    batch = one(tmp_path, [poor, rich, poor, rich], "agg_eval_all.json")
    assert (len(batch.scores), batch.duplicates, batch.scores[0].score_name) == (1, 3, "em_strict")


def test_two_values_of_one_eval_without_an_order_are_both_refused(tmp_path):
    batch = one(tmp_path, [evaluated(), evaluated(em_strict=0.5)], "agg_eval_all.json")
    assert (batch.scores, [one.reason for one in batch.rejections]) == ((), ["ambiguous_duplicate"] * 2)


def test_the_newest_results_file_of_a_folder_counts(tmp_path):
    put(tmp_path, "eval_a/meta_env.json", META)
    put(tmp_path, "eval_a/results_2026-07-05T03-11-20.123456.json", results(0.5))
    put(tmp_path, "eval_a/results_2026-07-05T04-00-00.000000.json", results(0.9))
    put(tmp_path, "eval_a/predictions.json", [{"doc": 1}])
    (batch,) = found(tmp_path)
    assert [score.strict for score in batch.scores] == [0.9]
    assert [one.reason for one in batch.rejections] == ["superseded"]


def test_a_batched_eval_has_a_file_for_each_concurrency_that_completed(tmp_path):
    batched = {**META, "eval_concs": [16, 64, 256], "completed_eval_concs": [16, 64], "failed_eval_concs": [256]}
    put(tmp_path, "eval_a/meta_env.json", batched)
    for conc in (16, 64, 256):
        put(tmp_path, f"eval_a/results_2026-07-05T03-11-20.123456_conc{conc}.json", results())
    put(tmp_path, "eval_a/results_2026-07-05T03-11-20.999999.json", results())
    (batch,) = found(tmp_path)
    assert sorted(score.series.conc for score in batch.scores) == [16, 64]
    assert sorted((one.field, one.reason) for one in batch.rejections) == [
        ("conc", "eval_failed"),
        ("conc", "missing_field"),
    ]


def test_results_without_meta_env_are_read_as_of_an_unknown_config(tmp_path):
    batch = one(tmp_path, results(model_name="deepseek-ai/DeepSeek-R1"), "results.json")
    assert [series_key(score.series) for score in batch.scores] == ["dsr1 ? ? ? none ?/? tp1"]
    assert [caveat.code for caveat in batch.scores[0].caveats] == ["identity_incomplete"]


@pytest.mark.parametrize("value", [results(results={}), results(results=[1]), results(results={"gsm8k": 4})])
def test_results_without_a_task_are_one_rejection(value, tmp_path):
    batch = one(tmp_path, value, "results.json")
    assert (batch.scores, len(batch.rejections)) == ((), 1)


def test_a_filterless_task_has_a_score_by_its_metric(tmp_path):
    plain = {"acc,none": 0.44, "acc_stderr,none": 0.03, "alias": "gpqa"}
    batch = one(tmp_path, results(results={"gpqa": plain}), "results.json")
    assert [(score.score, score.score_name, score.strict) for score in batch.scores] == [(0.44, "acc", None)]


def test_a_collected_eval_yields_to_the_folder_of_its_config(tmp_path):
    put(tmp_path, "eval_dsr1_a/meta_env.json", {**META, "pp": 2})
    put(tmp_path, "eval_dsr1_a/results_2026-07-05T03-11-20.123456.json", results())
    put(tmp_path, "eval_results_all/agg_eval_all.json", [evaluated(em_strict=0.1), evaluated(conc=16)])
    (batch,) = found(tmp_path)
    assert sorted((score.series.conc, score.strict) for score in batch.scores) == [(16, 0.9553), (64, 0.9553)]
    assert batch.duplicates == 1


def test_an_address_without_attempt_means_the_highest_that_the_answers_know(tmp_path):
    history, evals = put(tmp_path, "h.json", [published()]), put(tmp_path, "e.json", [published_eval()])
    (batch,) = found(evals, history)
    assert str(batch.run.key) == "20200037154/2"
    assert {one.run for one in (*batch.points, *batch.scores)} == {batch.run.key}
