"""The other sources: answers of the public API, the dashboard's CSV export, run bundles; and the recorded cases."""

import json
from collections import Counter
from itertools import pairwise

import pytest

from store.identity import series_key
from store.readers import SOURCES
from store.records import Caveat
from store.runs import standing
from tests.readers_help import bundle, evaluated, found, one, published, published_eval, put, row

INFO = {
    "runs": [
        {
            "github_run_id": "20200037154",
            "name": "Run Sweep - a title\n\nand a body",
            "conclusion": "success",
            "run_attempt": 2,
            "html_url": "https://github.com/SemiAnalysisAI/InferenceX/actions/runs/20200037154",
            "created_at": "2026-06-14T04:08:16Z",
        }
    ],
    "changelogs": [
        {
            "workflow_run_id": "20200037154",
            "base_ref": "a",
            "head_ref": "b",
            "config_keys": ["dsr1-fp8-h200-sglang"],
            "description": "first\nsecond",
            "pr_link": None,
        },
        {"workflow_run_id": "1"},
    ],
    "configs": [],
}


def test_published_rows_are_of_published_runs_that_start_at_midnight(tmp_path):
    (batch,) = found(put(tmp_path, "history.json", [published(), published(conc=4)]))
    run = batch.run
    assert (str(run.key), run.published, run.repository) == ("20200037154/2", True, "SemiAnalysisAI/InferenceX")
    assert run.started_at.isoformat() == "2026-06-14T00:00:00+00:00"
    assert standing(run).official


def test_several_runs_of_one_answer_are_a_batch_each(tmp_path):
    urls = [f"https://github.com/SemiAnalysisAI/InferenceMAX/actions/runs/{n}/attempts/1" for n in (30, 10, 20)]
    batches = found(
        put(
            tmp_path, "history.json", [published(run_url=url, date=f"2026-06-{i + 1}") for i, url in enumerate(urls, 9)]
        )
    )
    assert [batch.run.id for batch in batches] == [30, 10, 20]
    assert {batch.run.repository for batch in batches} == {"SemiAnalysisAI/InferenceX"}
    assert all(before.run.started_at < after.run.started_at for before, after in pairwise(batches))


@pytest.mark.parametrize("order", [1, -1])
def test_answers_about_one_run_are_joined_whatever_their_order(order, tmp_path):
    poor = published(metrics={"tput_per_gpu": 1310.0})
    paths = [
        put(tmp_path, "history.json", [poor]),
        put(tmp_path, "benchmarks.json", [published(image="a/b:v1")]),
        put(tmp_path, "evaluations.json", [published_eval()]),
        put(tmp_path, "workflow-info.json", INFO),
    ]
    local, batch = sorted(found(*paths[::order]), key=lambda one: one.run.id)
    assert (len(batch.points), len(batch.scores), batch.duplicates) == (1, 1, 1)
    assert (batch.points[0].image, len(batch.points[0].metrics)) == ("a/b:v1", 4)
    assert (batch.run.title, batch.run.conclusion) == ("Run Sweep - a title\n\nand a body", "success")
    assert batch.run.started_at.isoformat() == "2026-06-14T04:08:16+00:00"
    assert batch.changelog[0].description == ("first", "second")
    assert [rejection.reason for rejection in local.rejections] == ["unknown_run"]


def test_published_rows_without_an_address_are_a_run_for_each_day(tmp_path):
    rows = [published(run_url=..., date=day, conc=conc) for day in ("2026-06-14", "2026-06-15") for conc in (4, 8)]
    batches = found(put(tmp_path, "benchmarks.json", rows))
    assert [(one.run.started_at.day, len(one.points)) for one in batches] == [(14, 2), (15, 2)]
    assert all(standing(batch.run).official for batch in batches)


def test_a_bundle_holds_rows_evals_and_whatever_else(tmp_path):
    told = bundle([row(), row(conc=4)], [evaluated()]) | {"truth": {"image": "v1"}}
    (batch,) = found(put(tmp_path, "b.json", told))
    assert (len(batch.points), len(batch.scores), batch.rejections) == (2, 1, ())
    assert str(batch.scores[0].place) == "b.json#evals[0]"
    assert standing(batch.run).official


def test_rows_of_a_bundle_may_name_their_own_attempt_and_digest(tmp_path):
    digest = "sha256:" + "0" * 64
    rows = [
        row(run_attempt=1, created_at="2026-06-14T06:50:00Z", tput_per_gpu=655.0),
        row(run_attempt=2, created_at="2026-06-14T08:50:00Z", image_digest=digest),
    ]
    first, second = found(put(tmp_path, "b.json", bundle(rows, run_attempt=2, run_started_at="2026-06-14T08:41:10Z")))
    assert (first.run.attempt, second.run.attempt, first.run.path) == (1, 2, second.run.path)
    assert second.points[0].image.endswith(f"@{digest}")
    assert second.points[0].place.created_at.hour == 8


@pytest.mark.parametrize("order", [1, -1])
def test_rows_that_name_their_run_need_no_bundle(order, tmp_path):
    made = {1: "00", 2: "30", 3: "45"}
    rows = [
        row(conc=conc, run_id=77, run_attempt=attempt, created_at=f"2026-07-31T0{attempt}:{made[conc]}:00Z")
        for attempt in (1, 2)
        for conc in made
    ]
    batches = found(put(tmp_path, "batch.json", rows[::order]))
    assert [(str(one.run.key), len(one.points), one.run.started_at.minute) for one in batches] == [
        ("77/1", 3, 0),
        ("77/2", 3, 0),
    ]


@pytest.mark.parametrize("number", [27489075807, "27489075807"])
def test_a_row_that_repeats_the_run_of_its_bundle_is_of_the_same_attempt(number, tmp_path):
    (batch,) = found(put(tmp_path, "b.json", bundle([row(run_id=number)], run_attempt=3)))
    assert (batch.run.attempt, len(batch.points)) == (3, 1)


@pytest.mark.parametrize("number", [0, -1, True, "7a", 1.5, 2**63, "9" * 30])
def test_a_row_whose_run_cannot_be_read_is_rejected(number, tmp_path):
    (batch,) = found(put(tmp_path, "b.json", bundle([row(run_id=number), row(conc=4)])))
    assert [(one.field, one.reason) for one in batch.rejections] == [("run_id", "bad_value")]
    assert len(batch.points) == 1


@pytest.mark.parametrize("run", [None, {}, {"id": -1}, {"id": 1, "run_started_at": "soon"}, [1]])
def test_a_bundle_without_a_readable_run_is_one_rejection_that_says_what_to_do(run, tmp_path):
    (batch,) = found(put(tmp_path, "b.json", [{"run": run, "rows": [row()]}]))
    (rejection,) = batch.rejections
    assert (rejection.reason, batch.points) == ("bad_run", ())
    assert "gh api" in rejection.detail


@pytest.mark.parametrize("part", ["rows", "evals"])
def test_a_part_of_a_bundle_that_is_no_list_costs_only_itself(part, tmp_path):
    (batch,) = found(put(tmp_path, "b.json", bundle([row()], [evaluated()]) | {part: {"conc": 1}}))
    assert [rejection.field for rejection in batch.rejections] == [part]
    assert len(batch.points) + len(batch.scores) == 1


def table(rows, unit="ms"):
    heads = "Model,ISL,OSL,Hardware,Framework,Precision,TP,Concurrency,Date,Throughput/GPU (tok/s)".split(",")
    heads += [
        f"Median TTFT ({unit})",
        f"Median TPOT ({unit})",
        "Median Interactivity (tok/s/user)",
        "EP",
        "DP Attention",
    ]
    lines = ["# a licence", ",".join(heads), *(",".join(map(str, one)) for one in rows)]
    return "\n".join(lines).encode()


def line(conc=4, ttft=0.034, tpot=0.004, speed=250.0, date="2026-06-05"):
    return ["gpt-oss-120b", 1024, 1024, "h200", "vllm", "fp4", 8, conc, date, 260.6, ttft, tpot, speed, 1, "false"]


@pytest.mark.parametrize(
    ("unit", "cells", "code"),
    [
        ("ms", {}, "header_unit_wrong"),
        ("ms", {"ttft": 34.0, "tpot": 4.0}, None),
        ("s", {}, None),
        ("s", {"ttft": 34.0, "tpot": 4.0}, "header_unit_wrong"),
        ("ms", {"ttft": 34.0, "tpot": 4.0, "speed": ""}, "unit_unverified"),
    ],
)
def test_the_unit_of_a_table_is_what_its_interactivity_says(unit, cells, code, tmp_path):
    (batch,) = found(put(tmp_path, "export.csv", table([line(**cells)], unit)))
    (point,) = batch.points
    assert point.metrics["median_ttft"] == pytest.approx(0.034)
    assert series_key(point.series) == "gptoss120b h200 vllm fp4 none 1024/1024 tp8 c4"
    assert {caveat.code for caveat in point.caveats} - {"completion_unknown"} == ({code} if code else set())


def test_each_date_of_a_table_is_a_run_of_its_own(tmp_path):
    content = table([line(), line(conc=8), line(date="2026-06-06"), line(conc=16)[:-1]])
    first, second = found(put(tmp_path, "export.csv", content))
    assert [(one.run.started_at.day, len(one.points)) for one in (first, second)] == [(5, 2), (6, 1)]
    assert [rejection.reason for rejection in first.rejections] == ["malformed_csv"]


def test_every_source_has_a_name_of_its_own():
    assert len({source.shape for source in SOURCES}) == len(SOURCES)


@pytest.mark.shared
def test_the_captures_of_the_public_api_are_read_without_a_loss(shared):
    batches = found(*sorted((shared / "data").glob("*.json")))
    files = ("benchmarks*", "benchmarks-history*", "evaluations*")
    rows = {path: json.loads(path.read_text()) for name in files for path in (shared / "data").glob(f"{name}.json")}
    items = sum(len(batch.points) + len(batch.scores) + batch.duplicates for batch in batches)
    assert items == sum(map(len, rows.values()))
    assert sum(len(batch.rejections) for batch in batches) == 0
    assert {one.invalid for batch in batches for one in (*batch.points, *batch.scores)} == {None}


@pytest.mark.shared
def test_case_02_unknown_runner_labels_are_named(shared):
    (batch,) = found(shared / "cases/02-runner-pool-suffixes/results_bmk.json")
    assert [point.series.gpu for point in batch.points] == ["h200", "gb300", "b300", "mi355x", "h100", "?b200-zeta9"]
    assert Caveat.of("unmapped", field="gpu", spelling="b200-zeta9") in batch.points[-1].caveats


@pytest.mark.shared
def test_case_04_a_published_gpu_count_is_contradicted_and_not_used(shared):
    for batch in found(*(shared / "cases/04-gpu-count-tp-times-ep").glob("*.json")):
        for point in batch.points:
            assert point.series.layout.gpus == 8
            assert Caveat.of("gpu_count_disagrees", field="num_prefill_gpu", said=64, topology=8) in point.caveats


@pytest.mark.shared
def test_case_05_a_decode_pool_of_zero_is_an_aggregated_deployment(shared):
    (batch,) = found(shared / "cases/05-decode-pool-zero/results_bmk.json")
    assert [(point.series.conc, point.series.layout.decode is None) for point in batch.points] == [
        (1, True),
        (64, False),
        (512, False),
    ]


@pytest.mark.shared
def test_case_07_a_test_run_is_not_official_and_its_neighbour_is(shared):
    folder = shared / "cases/07-unofficial-e2e-run"
    (batch,) = found(folder)
    assert [reason.code for reason in standing(batch.run).reasons] == [
        "unofficial_path",
        "unofficial_event",
        "unofficial_branch",
    ]


@pytest.mark.shared
def test_case_11_the_later_artifact_is_of_the_later_attempt(shared):
    values = {
        batch.run.attempt: [point.metrics["tput_per_gpu"] for point in batch.points]
        for batch in found(shared / "cases/11-same-name-two-attempts")
    }
    assert values == {1: [655.0], 2: [1310.0]}


@pytest.mark.shared
def test_case_12_published_copies_are_one_result(shared):
    batches = found(shared / "cases/12-published-duplicate-rows/evaluations.json")
    results = [(score.series.conc, round(score.strict, 6)) for batch in batches for score in batch.scores]
    assert sorted(results) == [(16, 0.97119), (64, 0.568613), (64, 0.579227), (64, 0.974223)]
    assert sum(batch.duplicates for batch in batches) == 4


@pytest.mark.shared
def test_case_13_two_attempts_of_an_agentic_point(shared):
    first, second = found(shared / "cases/13-real-attempt-pair-same-digest")
    metrics = [(p.metrics["tput_per_gpu"], p.metrics["median_ttft"]) for b in (first, second) for p in b.points]
    assert metrics == [(405.2768, 1.11157), (396.14743, 1.52482)]
    assert first.points[0].series == second.points[0].series


@pytest.mark.shared
def test_case_14_per_point_artifacts_go_before_the_collected_file(shared):
    folder = shared / "cases/14-aggregate-carries-both-attempts"
    current = {point.series.conc: point.metrics["tput_per_gpu"] for batch in found(folder) for point in batch.points}
    assert current == {4: 100.0, 8: 195.0}
    (alone,) = found(folder / "results_bmk.json")
    assert [point.series.conc for point in alone.points] == [4]
    assert Counter(rejection.reason for rejection in alone.rejections) == {"ambiguous_duplicate": 2}


@pytest.mark.shared
def test_case_15_the_header_says_milliseconds_and_the_values_are_seconds(shared):
    (batch,) = found(shared / "cases/15-csv-header-says-ms/export.csv")
    assert len(batch.points) == 8
    point = batch.points[0]
    assert point.metrics["median_ttft"] == pytest.approx(0.03444, abs=5e-6)
    assert point.metrics["median_tpot"] == pytest.approx(0.0037006, abs=5e-8)
    assert Caveat.of("header_unit_wrong", said="ms", true="s") in point.caveats


@pytest.mark.shared
def test_case_17_failed_requests_make_a_point_invalid_or_are_shown(shared, tmp_path):
    rows = json.loads((shared / "cases/17-failed-requests-inflate/results.json").read_text())
    points = [one(tmp_path, [each]).points[0] for each in rows]
    assert [point.invalid and point.invalid.code for point in points] == [None, None, "failed_requests", None]
    # The rows of the case were made up: their latency does not fit their throughput, which is said as well.
    said = [[c.as_dict() for c in point.caveats if c.code != "denominator_suspicious"] for point in points]
    assert said == [
        [],
        [{"code": "failed_requests", "failed": 15, "total": 320}],
        [],
        [{"code": "completion_unknown"}],
    ]


@pytest.mark.shared
def test_cases_19_and_52_missing_values_are_absent_and_zero_is_invalid(shared):
    (batch,) = found(shared / "cases/19-nan-and-infinity-in-json/results.json")
    valid = [point.metrics["tput_per_gpu"] for point in batch.points if not point.invalid]
    assert sum(valid) / len(valid) == 1000.0
    assert sum(caveat.code == "non_finite" for point in batch.points for caveat in point.caveats) == 2
    (batch,) = found(shared / "cases/52-nan-null-and-zero/rows.json")
    codes = [point.invalid.code if point.invalid else point.metrics["tput_per_gpu"] for point in batch.points]
    assert codes == [1000.0, 1010.0, "no_throughput", "no_throughput", "no_throughput", "zero_throughput"]


@pytest.mark.shared
def test_case_33_a_collapse_is_a_score(shared):
    batches = found(shared / "cases/33-collapse-with-zero-standard-error/evaluations_2026-04-19.json")
    strict = sorted(round(score.strict, 4) for batch in batches for score in batch.scores)
    assert strict == [0.0, 0.0, 0.0, 0.0, 0.0038, 0.9613, 0.9651, 0.9704]


@pytest.mark.shared
def test_case_34_a_standard_error_of_text_is_computed(shared, tmp_path):
    rows = json.loads((shared / "cases/34-stderr-is-text/results.json").read_text())
    errors = [one(tmp_path, [each], "results.json").scores[0].strict_se for each in rows]
    assert [round(error, 5) for error in errors] == [0.00569] * 4


@pytest.mark.shared
def test_cases_35_and_36_eval_rows_keep_their_digits_and_models(shared):
    (batch,) = found(shared / "cases/35-one-question-short/eval.json")
    assert (batch.scores[0].strict, batch.scores[0].n) == (0.828125, 256)
    (batch,) = found(shared / "cases/36-threshold-per-model/evals.json")
    assert [score.series.model for score in batch.scores] == [
        *("dsr1", "kimik2.5", "glm5", "glm5.1", "dsr1", "?newmodel", "?newmodel"),
    ]


@pytest.mark.shared
def test_case_51_both_attempts_of_a_batch_are_kept_apart(shared):
    first, second = found(shared / "cases/51-same-key-twice-in-one-batch/batch.json")
    assert {point.series.conc: point.metrics["tput_per_gpu"] for point in second.points} == {64: 1310.0, 128: 1700.0}
    assert len(first.points) == 2
