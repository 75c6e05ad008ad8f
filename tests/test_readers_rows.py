"""Benchmark rows of every era: what they become, what makes them doubtful, what rejects them."""

import json

import pytest

from store.identity import series_key
from store.metrics import METRICS, Better
from store.records import Caveat
from tests.readers_help import bundle, found, nested, one, pools, published, put, row

PLAIN = "dsr1 h200 sglang fp8 none 8192/1024 tp8 c64"


def key(folder, value, name="agg_bmk.json"):
    (point,) = one(folder, value, name).points
    return series_key(point.series)


ERAS = {
    "today": (row(), PLAIN),
    "early, before ep and dp_attention": (row(ep=..., dp_attention=..., pp=..., dcp_size=..., disagg=...), PLAIN),
    "dp_attention null": (row(dp_attention=None), PLAIN),
    "dp_attention True as text": (row(dp_attention="True"), PLAIN.replace("tp8", "tp8-dpa")),
    "dp_attention as a boolean": (row(dp_attention=True), PLAIN.replace("tp8", "tp8-dpa")),
    "numbers as text": (row(conc="64", tp="8", isl="8192", osl="1024.0"), PLAIN),
    "mtp of GB200, on": (row(spec_decoding=..., mtp="on"), PLAIN.replace("none", "mtp")),
    "mtp of GB200, off": (row(spec_decoding=..., mtp="off"), PLAIN),
    "empty speculation": (row(spec_decoding=""), PLAIN),
    "pipeline and context parallel": (row(pp=2, pcp_size=2), PLAIN.replace("tp8", "tp8-pp2-pcp2")),
    "precision spelled by its encoding": (row(precision="nvfp4"), PLAIN.replace("fp8", "fp4")),
    "prefix with a precision": (row(infmax_model_prefix="dsr1-fp8"), PLAIN),
    "no prefix, a served name": (row(infmax_model_prefix=..., model="deepseek-ai/DeepSeek-R1"), PLAIN),
    "point releases are other models": (row(infmax_model_prefix="glm5.1"), PLAIN.replace("dsr1", "glm5.1")),
    "lengths absent": (row(isl=..., osl=...), PLAIN.replace("8192/1024", "?/?")),
    "lengths zero": (row(isl=0, osl=None), PLAIN.replace("8192/1024", "?/?")),
    "two pools": (pools(), "dsr1 gb200 dynamo-sglang fp8 none 8192/1024 mn:Ptp8-ep8-dpa+Dtp8-ep8-dpa c64"),
    "aggregated multinode, decode zero": (
        pools(disagg=False, decode_tp=0, decode_ep=0, decode_num_workers=0, num_decode_gpu=0),
        "dsr1 gb200 dynamo-sglang fp8 none 8192/1024 mn:tp8-ep8-dpa c64",
    ),
    "early GB200, tp is the sum of GPUs": (
        row(hw="gb200", tp=36, framework="dynamo-trtllm", disagg=True, num_prefill_gpu=4, num_decode_gpu=32),
        "dsr1 gb200 dynamo-trt fp8 none 8192/1024 Ptp4+Dtp32 c64",
    ),
    "decode on other hardware": (
        pools(prefill_hw="gb200", decode_hw="cluster:gb300-nv"),
        "dsr1 gb200 dynamo-sglang fp8 none 8192/1024 mn:Ptp8-ep8-dpa+Dtp8-ep8-dpa-on:gb300 c64",
    ),
    "nested AgentX": (nested(), "dsr1 h100 sglang fp8 none agentic tp8 c64"),
    "AgentX with offload": (nested(kv_offloading="dram"), "dsr1 h100 sglang fp8 none agentic tp8 offload c64"),
    "flat agentic with users": (
        row(isl=..., osl=..., conc=..., users=8, offloading="none"),
        "dsr1 h200 sglang fp8 none agentic tp8 c8",
    ),
    "flat agentic with offload mode": (
        row(isl=..., osl=..., scenario_type="agentic-coding", offload_mode="on"),
        "dsr1 h200 sglang fp8 none agentic tp8 offload c64",
    ),
    "public API": (published(), PLAIN),
    "public API, agentic": (
        published(isl=None, osl=None, benchmark_type="agentic_traces", offload_mode="off"),
        PLAIN.replace("8192/1024", "agentic"),
    ),
}


@pytest.mark.parametrize("era", ERAS)
def test_every_era_gives_the_series_it_measured(era, tmp_path):
    value, expected = ERAS[era]
    assert key(tmp_path, value) == expected


@pytest.mark.parametrize(
    "name", ["results_dsr1_1k8k_123/x.json", "bmk_dsr1_1k8k_fp8/agg_a.json", "agg_dsr1_1k8k_tp8.json"]
)
def test_before_2025_11_the_lengths_stand_in_the_name(name, tmp_path):
    put(tmp_path, name, [row(isl=..., osl=...)])
    (batch,) = found(tmp_path)
    assert [(point.series.isl, point.series.osl) for point in batch.points] == [(1024, 8192)]


def test_a_length_in_the_row_goes_before_the_name(tmp_path):
    assert key(tmp_path, row(), "agg_dsr1_1k8k.json") == PLAIN


def test_a_published_row_and_its_artifact_are_one_series(tmp_path):
    assert key(tmp_path, row()) == key(tmp_path, published(), "history.json")


def test_provenance_of_a_row_is_kept(tmp_path):
    digest = "sha256:" + "a" * 64
    told = row(image="nvcr.io#nvidia/x:v1.0", recipe_fingerprint="f" * 64, image_digest=digest, hw="cluster:h200-dgxc")
    (point,) = one(tmp_path, told).points
    assert (point.image, point.recipe, point.pool) == (f"nvcr.io/nvidia/x:v1.0@{digest}", "f" * 64, "dgxc")
    assert json.loads(point.raw) == told


def test_the_dash_form_of_the_recipe_is_read(tmp_path):
    (point,) = one(tmp_path, row(**{"recipe_fingerprint": ..., "recipe-fingerprint": "abc"})).points
    assert point.recipe == "abc"


def test_metrics_keep_their_keys_and_unknown_numbers_go_to_extra(tmp_path):
    (point,) = one(tmp_path, row(**{"p99.9_ttft": 7.5, "frobnication_rate": 3, "use_chat_template": False})).points
    assert point.metrics["p99.9_ttft"] == 7.5
    assert point.extra == {"frobnication_rate": 3.0, "use_chat_template": 0.0}
    assert all(type(value) is float for value in point.metrics.values())


def test_nested_agentx_metrics_become_flat_keys(tmp_path):
    (point,) = one(tmp_path, nested()).points
    expected = {
        "tput_per_gpu": 405.25,
        "output_tput_per_gpu": 3.25,
        "total_tput_tps": 3242.0,
        "median_ttft": 1.0,
        "p95_ttft": 5.0,
        "p90_intvty": 0.25,
        "mean_qps": 2.0,
        "theoretical_cache_hit_rate": 0.97,
        "num_requests_successful": 112.0,
    }
    assert {name: point.metrics.get(name) for name in expected} == expected
    assert "std_intvty" not in point.metrics | point.extra
    assert point.metrics["server_gpu_cache_hit_rate"] == 0.36


@pytest.mark.parametrize("block", ["request_metrics", "server_metrics", "request_accounting"])
def test_an_empty_block_of_agentx_is_legal_and_another_type_is_not(block, tmp_path):
    assert len(one(tmp_path, nested(**{block: {}})).points) == 1
    (rejection,) = one(tmp_path, nested(**{block: [1]})).rejections
    assert (rejection.field, rejection.reason) == (block, "bad_value")


def test_flat_agentic_interactivity_is_made_again_from_itl(tmp_path):
    old = row(
        scenario_type="agentic-coding", isl=..., osl=..., median_itl=0.02, p90_itl="0.04", std_itl=0.5, std_intvty=2
    )
    (point,) = one(tmp_path, old).points
    found_intvty = {name: value for name, value in point.metrics.items() if name.endswith("_intvty")}
    assert found_intvty == {"median_intvty": 50.0, "p90_intvty": 25.0}


INVALID = {
    "zero": (row(tput_per_gpu=0), "zero_throughput"),
    "negative": (row(tput_per_gpu=-1.0), "zero_throughput"),
    "absent": (row(tput_per_gpu=...), "no_throughput"),
    "null": (row(tput_per_gpu=None), "no_throughput"),
    "not finite": (row(tput_per_gpu=float("nan")), "no_throughput"),
    "NaN as text": (row(tput_per_gpu="NaN"), "no_throughput"),
    "failed share above 5 %": (row(num_requests_total=320, num_requests_successful=31), "failed_requests"),
    "nothing completed": (row(num_requests_total=0, num_requests_successful=0), "failed_requests"),
    "AgentX without a success": (nested(num_requests_successful=0), "failed_requests"),
    "AgentX above 10 % errors": (nested(request_accounting={"records_error_dropped": 20}), "failed_requests"),
    "negative latency": (row(median_ttft=-0.1), "impossible_latency"),
    "latency of more than a day": (row(p99_e2el=1e6), "impossible_latency"),
}


@pytest.mark.parametrize("flaw", INVALID)
def test_a_measurement_that_must_not_be_judged_is_kept_as_invalid(flaw, tmp_path):
    value, code = INVALID[flaw]
    (point,) = one(tmp_path, value).points
    assert point.invalid is not None
    assert point.invalid.code == code


SAID = {
    "some failed": (
        row(num_requests_total=320, num_requests_successful=305),
        Caveat.of("failed_requests", failed=15, total=320),
    ),
    "counts absent": (row(), Caveat.of("completion_unknown")),
    "counts contradict": (row(num_requests_total=1, num_requests_successful=2), Caveat.of("completion_unknown")),
    "AgentX without accounting": (nested(request_accounting={}), Caveat.of("completion_unknown")),
    "not finite": (row(p99_ttft=float("inf")), Caveat.of("non_finite", fields="p99_ttft")),
    "TPOT of zero": (row(median_tpot=0.0, median_intvty=...), Caveat.of("zero_latency", fields="median_tpot")),
    "milliseconds in TPOT": (row(median_tpot=50.0), Caveat.of("interactivity_disagrees", product=1000.0)),
    "unknown hardware": (row(hw="b200-zeta9"), Caveat.of("unmapped", field="gpu", spelling="b200-zeta9")),
    "unknown scenario": (row(scenario_type="chat"), Caveat.of("unmapped", field="scenario", spelling="chat")),
    "hardware empty": (row(hw=""), Caveat.of("identity_incomplete", fields="gpu")),
    "no framework": (row(framework=...), Caveat.of("identity_incomplete", fields="framework")),
    "tp x ep GPUs": (
        published(prefill_ep=8, decode_ep=8, num_prefill_gpu=64, num_decode_gpu=64),
        Caveat.of("gpu_count_disagrees", field="num_prefill_gpu", said=64, topology=8),
    ),
    "num_gpus": (row(num_gpus=16), Caveat.of("gpu_count_disagrees", field="num_gpus", said=16, topology=8)),
}


@pytest.mark.parametrize("doubt", SAID)
def test_a_doubt_is_said_beside_the_point(doubt, tmp_path):
    value, caveat = SAID[doubt]
    (point,) = one(tmp_path, value).points
    assert caveat in point.caveats
    assert point.invalid is None


def test_few_failures_of_agentx_are_counted_by_errors_and_not_by_warm_up(tmp_path):
    (point,) = one(tmp_path, nested()).points
    assert point.caveats == ()


REJECTED = {
    "no concurrency": (row(conc=...), "conc", "missing_field"),
    "null concurrency": (row(conc=None), "conc", "missing_field"),
    "concurrency zero": (row(conc=0), "conc", "bad_value"),
    "concurrency below zero": (row(conc="-4"), "conc", "bad_value"),
    "half a request": (row(conc=1.5), "conc", "bad_value"),
    "concurrency true": (row(conc=True), "conc", "bad_value"),
    "concurrency NaN": (row(conc=float("nan")), "conc", "bad_value"),
    "concurrency beyond any column": (row(conc=10**30), "conc", "bad_value"),
    "tp as a word": (row(tp="eight"), "tp", "bad_value"),
    "tp true": (row(tp=True), "tp", "bad_value"),
    "tp zero": (row(tp=0), "tp", "bad_value"),
    "prefill of no GPU": (pools(prefill_tp=0), "prefill_tp", "bad_value"),
    "hw a number": (row(hw=5), "hw", "bad_value"),
    "hw a list": (row(hw=["h200"]), "hw", "bad_value"),
    "a flag of another kind": (row(dp_attention="maybe"), "dp_attention", "bad_value"),
    "disagg an object": (row(disagg={}), "disagg", "bad_value"),
    "metric a word": (row(median_ttft="fast"), "median_ttft", "bad_value"),
    "metric a list": (row(median_ttft=[1]), "median_ttft", "bad_value"),
    "metric true": (row(median_ttft=True), "median_ttft", "bad_value"),
    "length below zero": (row(isl=-1), "isl", "bad_value"),
    "digest of nothing": (row(image_digest="sha256:12"), "image_digest", "bad_value"),
    "failed by its own word": (row(benchmark_outcome={"status": "failed"}), "benchmark_outcome", "benchmark_failed"),
    "published metrics a list": (published(metrics=[]), "metrics", "bad_value"),
    "an address of something else": (published(run_url="https://example.org"), "run_url", "bad_value"),
    "a date of no calendar": (published(date="2026-02-31"), "date", "bad_value"),
    "no object": (7, "", "not_an_object"),
    "null": (None, "", "not_an_object"),
    "an array in the array": ([[row()]], "", "not_an_object"),
}


@pytest.mark.parametrize("flaw", REJECTED)
def test_a_row_that_cannot_be_read_whole_is_one_rejection_with_place_field_and_reason(flaw, tmp_path):
    value, field, reason = REJECTED[flaw]
    good = row(conc=4)
    bad = value[0] if isinstance(value, list) else value
    batches = found(put(tmp_path, "agg_bmk.json", [good, bad]))
    points = [point for batch in batches for point in batch.points]
    (rejection,) = [rejection for batch in batches for rejection in batch.rejections]
    assert [point.series.conc for point in points] == [4]
    assert (rejection.field, rejection.reason, rejection.place.index) == (field, reason, 1)


def test_true_is_no_tensor_parallelism_though_python_calls_it_one(tmp_path):
    batch = one(tmp_path, [row(tp=1), row(tp=True, conc=8), row(tp=1.0, conc=16)])
    assert [point.series.conc for point in batch.points] == [64, 16]
    assert len(batch.rejections) == 1


def test_benchmark_outcome_of_success_is_a_point(tmp_path):
    assert len(one(tmp_path, row(benchmark_outcome={"status": "ok"})).points) == 1


def test_the_runner_of_a_bundle_names_the_pool_where_the_row_names_none(tmp_path):
    path = put(tmp_path, "run.bundle.json", bundle([row(hw="h200"), row(conc=4)], runner_name="h200-lab_0"))
    (batch,) = found(path)
    assert [point.pool for point in batch.points] == ["lab", "nv"]


@pytest.mark.parametrize(("tput", "gpus", "suspicious"), [(1000.0, 8, False), (7930.0, 1, False), (15860.0, 1, True)])
def test_throughput_that_the_requests_in_flight_cannot_make_is_doubted(tmp_path, tput, gpus, suspicious):
    """At 64 requests in flight of 9,216 tokens and 70 s each, no more than 8,426 tok/s can pass."""
    from store.readers import read
    from tests.factory import row, write

    given = row(64, tput, tp=gpus, median_e2el=70.0, median_tpot=0.068, median_intvty=1 / 0.068)
    (batch,) = read([write(tmp_path / "agg_one.json", [given])])
    codes = {caveat.code for caveat in batch.points[0].caveats}
    assert ("denominator_suspicious" in codes) is suspicious


@pytest.mark.parametrize("rate", [-0.5, 1.7])
def test_a_share_of_hits_that_cannot_be_is_kept_and_decides_nothing(rate, tmp_path):
    (point,) = one(tmp_path, nested(server_metrics={"cache": {"gpu_cache_hit_rate": rate}})).points
    assert (point.metrics["server_gpu_cache_hit_rate"], point.invalid) == (rate, None)
    assert METRICS["server_gpu_cache_hit_rate"].better is Better.UNKNOWN
