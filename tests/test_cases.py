"""Real faults of such tools, each fed through the public path with rows made by us; names follow the fault."""

from __future__ import annotations

import itertools
import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.cli import Tracker
from tests.factory import IMAGE, NEXT_IMAGE, agentic, bundle, evaluation, history, row, run, write

Json = dict[str, Any]
FLAGS = {"regression", "improvement", "mixed"}


def finding(answer: Json, **wanted: Any) -> Json:
    """The one finding that has these values."""
    (found,) = [one for one in answer["findings"] if all(one.get(key) == value for key, value in wanted.items())]
    return dict(found)


def codes(found: Json) -> set[str]:
    return {caveat["code"] for caveat in found["caveats"]}


def judged(tracker: Tracker, past: list[Json], candidate: Json, *options: str) -> Json:
    """Land the past, compare the candidate file."""
    assert tracker.ingest(write(tracker.folder / "past.json", past)).code == 0
    return dict(tracker.compare(write(tracker.folder / "candidate.json", candidate), *options))


def test_a_point_release_is_another_model(tracker: Tracker) -> None:
    glm = {"model": "zai-org/GLM-5-FP8", "infmax_model_prefix": "glm5"}
    past = [
        bundle(run(100, "2026-06-01T03:00:00Z"), [row(tput=1000.0, **glm)]),
        bundle(run(101, "2026-06-05T03:00:00Z"), [row(tput=1400.0, infmax_model_prefix="glm5.1")]),
        bundle(run(102, "2026-06-09T03:00:00Z"), [row(tput=800.0, infmax_model_prefix="glm5.2")]),
    ]
    answer = judged(
        tracker, past, bundle(run(200, "2026-06-12T03:00:00Z"), [row(tput=1010.0, image=NEXT_IMAGE, **glm)])
    )
    point = finding(answer, scope="point", metric="tput_per_gpu")
    assert point["runs"]["baseline"] == ["100/1"]
    assert (point["baseline"], point["candidate"]) == pytest.approx((1000.0, 1010.0))
    assert point["change"] == pytest.approx(0.01)


def test_pools_fold_into_the_gpu_and_an_unknown_label_is_named(tracker: Tracker) -> None:
    labels = ["h200-dgxc-slurm", "gb300-cw", "cluster:b300-nv", "mi355x-amd_0", "cluster:h100-dgxc", "b200-zeta9"]
    rows = [row(hw=label) for label in labels]
    said = tracker.ingest(write(tracker.folder / "agg_bmk.json", rows), "--run-id", 1, "--started-at", "2026-06-01")
    assert "landed: 6 points" in said.out
    assert "b200-zeta9" in said.out
    assert (
        tracker.ingest(tracker.folder / "agg_bmk.json", "--run-id", 1, "--started-at", "2026-06-01", "--strict").code
        == 1
    )
    answer = tracker.compare()
    gpus = {one["gpu"] for one in answer["unmatched"]}
    assert gpus == {"h200", "gb300", "b300", "mi355x", "h100", "?b200-zeta9"}


def test_two_parallelisms_are_never_compared(tracker: Tracker) -> None:
    answer = judged(
        tracker, history({64: [3705.8]}), bundle(run(200, "2026-06-12T00:00:00Z"), [row(64, 29398.73, tp=1)])
    )
    assert not [one for one in answer["findings"] if one["change"] is not None]
    assert {one["verdict"] for one in answer["unmatched"]} == {"no_baseline", "missing"}


def test_an_implausible_denominator_is_flagged_not_celebrated(tracker: Tracker) -> None:
    arms = [
        row(64, 29398.73, tp=1, median_tpot=0.0305, median_intvty=1 / 0.0305, median_e2el=35.0),
        row(64, 3705.8, median_tpot=0.038),
    ]
    answer = judged(tracker, history({64: [3700.0]}), bundle(run(200, "2026-06-12T00:00:00Z"), arms))
    (suspicious,) = [one for one in answer["unmatched"] if one["verdict"] == "no_baseline"]
    assert "denominator_suspicious" in json.dumps(suspicious)


def test_gpus_are_counted_from_the_parallelism_not_from_the_published_product(tracker: Tracker) -> None:
    published = {
        **{"hardware": "b200", "framework": "sglang", "model": "dsr1", "precision": "fp4", "spec_method": "none"},
        **{"disagg": False, "is_multinode": False, "num_prefill_gpu": 64, "num_decode_gpu": 64},
        **{f"{half}_{name}": value for half in ("prefill", "decode") for name, value in (("tp", 8), ("ep", 8))},
        **{f"{half}_dp_attention": False for half in ("prefill", "decode")},
        **{f"{half}_num_workers": 0 for half in ("prefill", "decode")},
        **{"isl": 1024, "osl": 1024, "conc": 4, "date": "2025-12-08"},
        "run_url": "https://github.com/example-org/bench/actions/runs/20028541837/attempts/1",
        "metrics": {"tput_per_gpu": 120.1, "median_tpot": 0.0083, "median_ttft": 0.1},
    }
    tracker.ingest(write(tracker.folder / "benchmarks.json", [published]))
    (point,) = tracker.compare()["unmatched"]
    assert point["gpus"] == 8
    assert "gpu_count_disagrees" in json.dumps(point)


def test_a_point_without_decode_workers_is_a_point(tracker: Tracker) -> None:
    shape = {"is_multinode": True, "framework": "dynamo-vllm", "hw": "gb200-nv", "prefill_tp": 8, "prefill_ep": 8}
    shape |= {"prefill_dp_attention": "true", "decode_dp_attention": "true", "num_prefill_gpu": 8}
    whole = {
        **shape,
        "prefill_num_workers": 1,
        "decode_tp": 0,
        "decode_ep": 0,
        "decode_num_workers": 0,
        "num_decode_gpu": 0,
    }
    split = {
        **shape,
        "disagg": True,
        "prefill_num_workers": 1,
        "decode_tp": 16,
        "decode_ep": 16,
        "decode_num_workers": 1,
    }
    rows = [
        row(1, 41.0, **whole),
        row(64, 900.0, num_decode_gpu=16, **split),
        row(128, 1200.0, num_decode_gpu=16, **split),
    ]
    said = tracker.ingest(write(tracker.folder / "one.json", bundle(run(1), rows)))
    assert "landed: 3 points" in said.out
    assert "rejected" not in said.out
    curves = {one["curve"] for one in tracker.compare()["unmatched"]}
    assert len(curves) == 2
    assert not [one for one in tracker.compare()["unmatched"] if one["verdict"] == "missing"]


def test_of_two_sweeps_on_one_day_the_later_start_is_the_baseline(tracker: Tracker) -> None:
    past = [
        bundle(run(27489075807, "2026-06-14T06:43:25Z"), [row(64, 500.0), row(128, 700.0)]),
        bundle(run(27485974465, "2026-06-14T04:08:16Z"), [row(64, 310.0), row(128, 400.0)]),
    ]
    candidate = bundle(run(27500000000, "2026-06-15T00:00:00Z"), [row(64, 510.0), row(128, 693.0)])
    answer = judged(tracker, past, candidate)
    for conc, change in ((64, 0.02), (128, -0.01)):
        point = finding(answer, scope="point", metric="tput_per_gpu", key=answer_key(answer, conc))
        assert point["runs"]["baseline"][-1] == "27489075807/1"
        assert point["change"] == pytest.approx(change, abs=1e-9)
        assert point["images"] == {"baseline": IMAGE, "candidate": IMAGE, "software": "same"}


def answer_key(answer: Json, conc: int) -> str:
    (key,) = {one["key"] for one in answer["findings"] if one["scope"] == "point" and one["conc"] == conc}
    return str(key)


def test_a_manual_run_may_be_judged_and_is_never_a_baseline(tracker: Tracker) -> None:
    manual = run(
        29820102138, "2026-05-20T00:00:00Z", path=".github/workflows/e2e-tests.yml", event="workflow_dispatch",
        head_branch="explore/fast",
    )  # fmt: skip
    past = [*history({64: [1000.0]}), bundle(manual, [row(64, 1500.0)])]
    said = tracker.ingest(write(tracker.folder / "past.json", past))
    assert "unofficial: run 29820102138/1" in said.out
    for reason in ("e2e-tests.yml", "workflow_dispatch", "explore/fast"):
        assert reason in said.out
    candidate = write(
        tracker.folder / "c.json", bundle(run(200, "2026-06-12T00:00:00Z"), [row(64, 1001.0, image=NEXT_IMAGE)])
    )
    point = finding(tracker.compare(candidate), scope="point", metric="tput_per_gpu")
    assert point["runs"]["baseline"] == ["100/1"]
    as_candidate = finding(tracker.compare("run:29820102138"), scope="point", metric="tput_per_gpu")
    assert as_candidate["change"] == pytest.approx(0.5)


def test_a_recovery_is_not_an_improvement(tracker: Tracker) -> None:
    levels = [("v0.5.9-cu130", 1336.0), ("v0.5.11-cu130", 284.4), ("v0.5.12-cu130", 1360.9)]
    days = ["2026-03-25", "2026-05-13", "2026-05-17"]
    runs = [
        bundle(run(500 + i, f"{day}T00:00:00Z"), [row(64, tput, image=f"lmsysorg/sglang:{tag}")])
        for i, ((tag, tput), day) in enumerate(zip(levels, days, strict=True))
    ]
    tracker.ingest(write(tracker.folder / "past.json", runs))
    fall = finding(tracker.compare("run:501"), scope="curve", metric="tput_per_gpu")
    assert fall["verdict"] == "regression"
    assert fall["change"] == pytest.approx(-0.787, abs=0.001)
    answer = tracker.compare("run:502")
    back = finding(answer, scope="curve", metric="tput_per_gpu")
    assert back["verdict"] == "recovery"
    assert back["change"] == pytest.approx(0.019, abs=0.001)
    assert "378" not in json.dumps(answer["headline"])


def test_results_that_have_expired_are_no_baseline_unless_the_store_has_them(tracker: Tracker) -> None:
    folder = tracker.folder / "800"
    lost = {"name": "results_bmk", "expired": True, "created_at": "2026-03-01T00:00:00Z"}
    write(folder / "artifacts.json", {"artifacts": [{"id": 1, "expires_at": "2026-05-30T00:00:00Z", **lost}]})
    write(folder / "run.json", run(800, "2026-03-01T00:00:00Z"))
    candidate = write(tracker.folder / "new.json", bundle(run(801, "2026-06-12T00:00:00Z"), [row(64, 1010.0)]))
    assert tracker.ingest(folder).code == 1, "a folder of which nothing could be read"
    asked = ("compare", candidate, "--against", "run:800", "--format", "markdown", "--fail-on", "regression")
    nothing = tracker(*asked)
    assert nothing.code == 4
    assert "No baseline" in nothing.out
    assert "Artifacts of baseline run 800/1 had expired on GitHub before they were fetched: 1, on 2026" in nothing.out
    assert "%" not in nothing.out
    assert "vs main" not in nothing.out
    tracker.ingest(write(tracker.folder / "kept.json", bundle(run(800, "2026-03-01T00:00:00Z"), [row(64, 1000.0)])))
    stored = tracker(*asked)
    assert stored.code == 0
    assert "The rows of baseline run 800/1 come from the store" in stored.out
    assert "+1.0%" in stored.out


def test_of_two_artifacts_of_one_name_the_newer_is_the_value_whatever_its_id(tracker: Tracker) -> None:
    name = "bmk_dsr1_8k1k_fp8_sglang_tp8_conc64_h200-nv_03"
    listed = [(10338854604, "2026-07-31T08:38:28Z", 655.0), (10338734845, "2026-07-31T08:49:55Z", 1310.0)]
    for order in (listed, listed[::-1]):
        folder = tracker.folder / f"run{order[0][0]}"
        artifacts = [{"id": id_, "name": name, "expired": False, "created_at": made} for id_, made, _ in order]
        write(folder / "artifacts.json", {"total_count": 2, "artifacts": artifacts})
        attempts = [("2026-07-31T08:20:00Z", 1), ("2026-07-31T08:41:10Z", 2)]
        write(folder / "attempts.json", [{"run_attempt": n, "run_started_at": at} for at, n in attempts])
        write(folder / "run.json", run(7000000001, "2026-07-31T08:41:10Z", run_attempt=2))
        for id_, _, tput in order:
            write(folder / str(id_) / "agg.json", row(64, tput, hw="h200-nv"))
        place = ("--store", folder.with_suffix(".duckdb"))
        tracker.ingest(folder, *place)
        (point,) = tracker("compare", *place, "--format", "json").json["unmatched"]
        assert point["metrics"]["tput_per_gpu"] == 1310.0
        assert point["run"].endswith("/2")


def test_a_partial_rerun_keeps_what_was_not_rerun(tracker: Tracker) -> None:
    made = [
        (900, "bmk_a_conc4", "2026-06-01T00:00:00Z", 4, 100.0),
        (901, "bmk_a_conc8", "2026-06-01T01:00:00Z", 8, 180.0),
    ]
    made += [(902, "bmk_a_conc8", "2026-06-02T02:00:00Z", 8, 195.0)]
    folder = tracker.folder / "run"
    artifacts = [{"id": id_, "name": name, "created_at": at, "expired": False} for id_, name, at, *_ in made]
    artifacts += [{"id": 950, "name": "results_bmk", "created_at": "2026-06-02T05:00:00Z", "expired": False}]
    write(folder / "artifacts.json", {"artifacts": artifacts})
    write(folder / "run.json", run(31, "2026-06-01T00:00:00Z"))
    rows = [row(conc, tput) for *_, conc, tput in made]
    for (id_, *_), one in zip(made, rows, strict=True):
        write(folder / str(id_) / "agg.json", one)
    write(folder / "950" / "agg_bmk.json", [rows[2], rows[1], rows[0]])
    tracker.ingest(folder)
    values = {one["conc"]: one["metrics"]["tput_per_gpu"] for one in tracker.compare("run:31")["unmatched"]}
    assert values == {4: 100.0, 8: 195.0}


def test_a_collected_file_alone_that_holds_two_values_of_one_point_is_a_conflict(tracker: Tracker) -> None:
    rows = [row(8, 195.0), row(8, 180.0), row(4, 100.0)]
    said = tracker.ingest(write(tracker.folder / "agg_bmk.json", rows), "--run-id", 31, "--started-at", "2026-06-01")
    assert "landed: 1 points" in said.out
    assert "ambiguous_duplicate" in said.out


def test_published_copies_of_one_score_are_one_score(tracker: Tracker) -> None:
    def copy(id_: int, conc: int, strict: float, day: str, run_id: int, **more: float) -> Json:
        return {
            **{"id": str(id_), "config_id": 635, "hardware": "b200", "framework": "vllm", "model": "kimik2.5"},
            **{"precision": "fp4", "spec_method": "none", "disagg": False, "is_multinode": False, "conc": conc},
            **{f"{half}_{name}": 4 for half in ("prefill", "decode") for name in ("tp", "ep")},
            **{f"{half}_num_workers": 0 for half in ("prefill", "decode")},
            **{f"{half}_dp_attention": False for half in ("prefill", "decode")},
            **{"task": "gsm8k", "date": day, "timestamp": f"{day}T06:38:27Z"},
            "metrics": {"n_eff": 1319, "em_strict": strict, "em_flexible": 0.9704, **more},
            "run_url": f"https://github.com/example-org/bench/actions/runs/{run_id}",
        }

    rows = [copy(i, 64, 0.579227, "2026-03-11", 22964488372, score=0.579227) for i in range(4)]
    rows += [copy(9, 64, 0.579227, "2026-03-11", 22964488372), copy(10, 64, 0.568613, "2026-03-27", 23650000000)]
    rows += [copy(11, 64, 0.974223, "2026-03-28", 23679516176), copy(12, 16, 0.97119, "2026-03-28", 23679516176)]
    said = tracker.ingest(write(tracker.folder / "evaluations.json", rows))
    assert "4 scores" in said.out
    assert "4 duplicates" in said.out
    second = [one for one in tracker.compare("run:23650000000")["findings"] if one["metric"] == "em_strict"]
    assert second[0]["n"]["baseline"] == 1
    assert not FLAGS & {one["verdict"] for one in second if "below_threshold" not in codes(one)}
    third = json.dumps(tracker.compare("run:23679516176"))
    assert "format_gap" in third


def test_two_attempts_of_one_image_and_recipe_are_repeats(tracker: Tracker) -> None:
    pinned = {"image": "lmsysorg/sglang:nightly@sha256:" + "5" * 64, "recipe_fingerprint": "d1" * 32}
    first = agentic(4, 405.2768, **pinned)
    second = agentic(4, 396.14743, **pinned)
    second["request_metrics"]["latency"]["ttft"]["p50"] = 1.52482
    runs = [bundle(run(31, f"2026-09-2{n}T00:00:00Z", run_attempt=n), [one]) for n, one in ((1, first), (2, second))]
    tracker.ingest(write(tracker.folder / "runs.json", runs))
    (current,) = tracker.compare("run:31")["unmatched"]
    assert current["metrics"]["tput_per_gpu"] == 396.14743
    answer = tracker.compare("run:31/2", "--against", "run:31/1")
    assert finding(answer, scope="point", metric="tput_per_gpu")["change"] == pytest.approx(-0.0225, abs=1e-4)
    assert not FLAGS & {one["verdict"] for one in answer["findings"]}


def test_a_header_that_says_ms_over_seconds_is_not_believed(tracker: Tracker) -> None:
    text = (
        "# Attribution\n# more\n"
        "Model,ISL,OSL,Hardware,Hardware Key,Framework,Precision,TP,Concurrency,Date,Throughput/GPU (tok/s),"
        "Median TTFT (ms),Median TPOT (ms),Median Interactivity (tok/s/user),Std Interactivity (tok/s/user),"
        "Disaggregated,Spec Decoding,EP,DP Attention,Is Multinode\n"
        "gpt-oss-120b,1024,1024,h200,h200_vllm,vllm,fp4,8,4,2026-06-05,260.6,0.0344,0.0037006,270.2267,22332,"
        "false,none,1,false,false\n"
    )
    path = tracker.folder / "export.csv"
    path.write_text(text, encoding="utf-8")
    assert "landed: 1 points" in tracker.ingest(path).out
    (point,) = tracker.compare()["unmatched"]
    assert point["metrics"]["median_ttft"] == pytest.approx(0.0344)
    assert point["metrics"]["median_tpot"] == pytest.approx(0.0037006)
    assert "header_unit_wrong" in json.dumps(point)


def test_points_of_which_requests_failed_are_gated_before_any_comparison(tracker: Tracker) -> None:
    def counted(run_id: int, tput: float, done: int | None) -> Json:
        counts = {} if done is None else {"num_requests_total": 320, "num_requests_successful": done}
        return bundle(run(run_id, "2026-06-12T00:00:00Z"), [row(32, tput, image=NEXT_IMAGE, **counts)])

    past = [bundle(run(1), [row(32, 1000.0, num_requests_total=320, num_requests_successful=320)])]
    marked = judged(tracker, past, counted(2, 1012.0, 305))
    point = finding(marked, scope="point", metric="tput_per_gpu")
    assert point["change"] == pytest.approx(0.012)
    assert "failed_requests" in codes(point)
    invalid = judged(tracker, past, counted(3, 2100.0, 31))
    assert [(one["verdict"], one["reason"]["code"]) for one in invalid["unmatched"]] == [("invalid", "failed_requests")]
    assert not invalid["findings"]
    unknown = finding(judged(tracker, past, counted(4, 1001.0, None)), scope="point", metric="tput_per_gpu")
    assert "completion_unknown" in codes(unknown)


def test_the_inverse_of_a_spread_is_not_a_finding(tracker: Tracker) -> None:
    past = [bundle(run(1), [row(64, 1000.0, std_intvty=1052.11, std_tpot=0.00095)])]
    answer = judged(
        tracker, past, bundle(run(2, "2026-06-12T00:00:00Z"), [row(64, 1000.5, std_intvty=42.8, std_tpot=0.0233)])
    )
    assert not FLAGS & {one["verdict"] for one in answer["findings"]}
    assert "std_intvty" not in {one["metric"] for one in answer["findings"] if one["verdict"] != "not_judged"}


def test_one_slow_down_is_told_once(tracker: Tracker) -> None:
    past = history({4: [1000.0, 1001.0], 64: [3000.0, 3003.0]})
    slower = [row(4, 800.0, image=NEXT_IMAGE), row(64, 2400.0, image=NEXT_IMAGE)]
    answer = judged(tracker, past, bundle(run(200, "2026-06-12T00:00:00Z"), slower))
    assert not {one["metric"] for one in answer["findings"]} & {
        "median_intvty",
        "output_tput_per_gpu",
        "input_tput_per_gpu",
    }
    assert answer["headline"]["verdict"] == "regression"


def test_nan_and_infinity_are_absent_counted_and_never_no_change(tracker: Tracker) -> None:
    rows = [
        row(1, 990.0, median_tpot=0.0, median_intvty=math.inf, osl=1),
        row(2, math.nan),
        row(4, 1000.0),
        row(8, 1010.0),
    ]
    past = write(tracker.folder / "past.json", [bundle(run(1), [row(c, 1000.0) for c in (2, 4, 8)])])
    tracker.ingest(past)
    said = tracker.compare(write(tracker.folder / "agg_bmk.json", rows))
    invalid = [one for one in said["unmatched"] if one["verdict"] == "invalid"]
    assert 2 in [one["conc"] for one in invalid]
    assert "non_finite" in json.dumps(said)
    text = tracker("compare", tracker.folder / "agg_bmk.json", "--format", "json").out
    json.loads(text, parse_constant=lambda token: pytest.fail(f"{token} is not JSON"))


def frame(
    levels: dict[str, list[float]], *, first: int = 0, image: str = "img-A", metric: str = "tput_per_gpu"
) -> pl.DataFrame:
    """A tidy frame: one run per index of the lists, a day apart."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    return pl.DataFrame(
        [
            {
                **{
                    "run": f"{first + i}/1",
                    "started_at": start + timedelta(days=first + i),
                    "image": image,
                    "recipe": None,
                },
                **{
                    "curve": name.split()[0],
                    "series": name,
                    "conc": 64,
                    "multinode": False,
                    "metric": metric,
                    "value": value,
                },
            }
            for name, values in levels.items()
            for i, value in enumerate(values)
        ],
        schema_overrides={"recipe": pl.String},
    )


def test_five_repeats_of_one_point_hold_no_finding() -> None:
    from tracker import compare_frames

    repeats = {
        "tput_per_gpu": [13121.8, 13080.4, 13148.2, 13148.3, 13122.4],
        "median_ttft": [0.4464, 0.4370, 0.4308, 0.4402, 0.4351],
    }
    for (metric, values), size in itertools.product(repeats.items(), (1, 2)):
        for chosen in itertools.combinations(range(5), size):
            for old, new in ((True, False), (False, True)):
                base = [v for i, v in enumerate(values) if (i not in chosen) is old]
                cand = [v for i, v in enumerate(values) if (i not in chosen) is new]
                past = frame({"c c64": base}, metric=metric)
                answer = compare_frames(past, frame({"c c64": cand}, first=len(base), image="img-B", metric=metric))
                assert not FLAGS & set(answer["verdict"]), (metric, chosen)


def test_thirty_percent_below_three_calm_runs_is_never_no_change(tracker: Tracker) -> None:
    answer = judged(
        tracker,
        history({64: [1000.0, 1002.0, 998.0]}),
        bundle(run(200, "2026-06-12T00:00:00Z"), [row(64, 700.0, image=NEXT_IMAGE)]),
    )
    point = finding(answer, scope="point", metric="tput_per_gpu")
    assert point["verdict"] in {"regression", "suspected"}
    assert (point["n"]["baseline"], point["n"]["candidate"]) == (3, 1)
    said = tracker("compare", tracker.folder / "candidate.json", "--fail-on", "suspected", "--format", "json")
    assert said.code == 3


def test_four_hundred_unchanged_series_hold_no_finding() -> None:
    from tracker import compare_frames

    random = np.random.default_rng(20260801)
    names = [f"s{i:03d} c64" for i in range(400)]
    draw = {name: (1000 * np.exp(0.01 * random.standard_normal(10))).tolist() for name in names}
    past = frame({name: values[:5] for name, values in draw.items()})
    new = frame({name: values[5:] for name, values in draw.items()}, first=5, image="img-B")
    verdicts = compare_frames(past, new).filter(pl.col("scope") == "curve")["verdict"]
    assert len(verdicts) == 400
    assert verdicts.is_in(list(FLAGS)).sum() <= 1


def test_one_lucky_baseline_value_makes_no_regression_and_a_broken_one_no_gain() -> None:
    from tracker import compare_frames

    lucky = compare_frames(
        frame({"c c64": [9228, 7814, 7639]}), frame({"c c64": [7806, 7689, 7689]}, first=3, image="img-B")
    )
    assert not {"regression", "improvement"} & set(lucky["verdict"])
    broken = [100.0, 101.0, 99.5, 100.2, 100.4, 99.8, 100.1, 99.9, 100.3, 100.0, 51.0]
    answer = compare_frames(frame({"c c64": broken}), frame({"c c64": [100.0]}, first=11, image="img-B"))
    point = answer.filter(pl.col("scope") == "point").row(0, named=True)
    assert point["verdict"] not in FLAGS
    assert abs(point["effect"]) < 0.01
    assert "flaky_baseline" in str(point["caveats"])


def test_a_real_step_is_seen_once_and_the_nights_before_it_are_quiet(tracker: Tracker) -> None:
    nights = [1765.5, 1767.3, 1766.1, 1788.3, 1758.0, 1766.9, 1769.7, 1766.0]
    past = history({128: nights}, image="lmsysorg/sglang:v0.5.5-cu129", day=8)
    later = [(2270.6, "v0.5.6", "2026-06-10"), (2389.4, "v0.5.9", "2026-08-25"), (2374.3, "v0.5.11", "2026-10-18")]
    past += [
        bundle(run(300 + i, f"{day}T00:00:00Z"), [row(128, tput, image=f"lmsysorg/sglang:{tag}-cu129")])
        for i, (tput, tag, day) in enumerate(later)
    ]
    tracker.ingest(write(tracker.folder / "past.json", past))
    for i in range(1, len(nights)):
        assert not FLAGS & {one["verdict"] for one in tracker.compare(f"run:{100 + i}")["findings"]}
    step = finding(tracker.compare("run:300"), scope="curve", metric="tput_per_gpu")
    assert step["verdict"] == "improvement"
    assert step["change"] == pytest.approx(0.285, abs=0.003)
    second = finding(tracker.compare("run:301"), scope="curve", metric="tput_per_gpu")
    assert (second["verdict"], round(second["change"], 3)) == ("improvement", 0.052)
    third = finding(tracker.compare("run:302"), scope="curve", metric="tput_per_gpu")
    assert third["verdict"] not in FLAGS


def test_a_curve_is_summed_over_matched_valid_points_only(tracker: Tracker) -> None:
    past = history({4: [100.0], 16: [400.0], 64: [1000.0]})
    lacks = judged(tracker, past, bundle(run(200, "2026-06-12T00:00:00Z"), [row(4, 100.0, image=NEXT_IMAGE)]))
    curve = finding(lacks, scope="curve", metric="tput_per_gpu")
    assert (curve["n"]["points"], curve["change"]) == (1, pytest.approx(0.0))
    assert sorted(one["conc"] for one in lacks["unmatched"] if one["verdict"] == "missing") == [16, 64]
    zero = [row(4, 101.0, image=NEXT_IMAGE), row(16, 404.0, image=NEXT_IMAGE), row(64, 0.0, image=NEXT_IMAGE)]
    broken = judged(tracker, past, bundle(run(201, "2026-06-12T00:00:00Z"), zero))
    curve = finding(broken, scope="curve", metric="tput_per_gpu")
    assert (curve["n"]["points"], curve["change"]) == (2, pytest.approx(0.01))
    assert [(one["verdict"], one["conc"]) for one in broken["unmatched"]] == [("invalid", 64)]


def test_a_crossing_curve_is_mixed_and_its_worst_point_is_told(tracker: Tracker) -> None:
    past = history({1: [10.0], 4: [100.0], 16: [400.0], 64: [1000.0]})
    new = [row(c, v, image=NEXT_IMAGE) for c, v in ((1, 12.0), (4, 121.0), (16, 500.0), (64, 700.0))]
    answer = judged(tracker, past, bundle(run(200, "2026-06-12T00:00:00Z"), new))
    assert finding(answer, scope="curve", metric="tput_per_gpu")["verdict"] == "mixed"
    worst = finding(answer, scope="point", metric="tput_per_gpu", key=answer_key(answer, 64))
    assert (worst["verdict"], worst["change"]) == ("regression", pytest.approx(-0.30))
    screen = tracker("compare", tracker.folder / "candidate.json", "--format", "table").out
    assert "30.0" in "\n".join(screen.splitlines()[:25])


MOVING = "rocm/sgl-dev:rocm720-mi35x-latest"
ONE, TWO = ("sha256:" + digit * 64 for digit in "12")


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ({"image": MOVING, "image_digest": ONE}, {"image": MOVING, "image_digest": TWO}, "changed"),
        ({"image": MOVING}, {"image": MOVING}, "unknown"),
        ({"image": MOVING, "image_digest": ONE}, {"image": MOVING, "image_digest": ONE}, "same"),
    ],
)
def test_an_image_is_its_digest_and_a_moving_tag_is_unknown_software(
    tracker: Tracker, before: Json, after: Json, same: str
) -> None:
    past = [bundle(run(1), [row(64, 1000.0, **before)])]
    answer = judged(tracker, past, bundle(run(2, "2026-06-12T00:00:00Z"), [row(64, 930.0, **after)]))
    point = finding(answer, scope="point", metric="tput_per_gpu")
    images = point["images"]
    assert ("image_unknown" in codes(point)) is (same == "unknown")
    if same == "changed":
        assert (images["baseline"][-4:], images["candidate"][-4:]) == ("1111", "2222")
    if same == "same":
        assert images["baseline"] == images["candidate"]
        assert point["verdict"] not in FLAGS


def test_a_collapse_is_a_score_and_stands_above_every_throughput(tracker: Tracker) -> None:
    zero = {"em_strict_se": 0.0, "em_flexible": 0, "em_flexible_se": 0.0}
    past = [bundle(run(1), [row(64, 1000.0)], [evaluation(0.9613)])]
    collapsed = evaluation(0.9613, **{"em_strict": 0, **zero})
    answer = judged(
        tracker, past, bundle(run(2, "2026-06-12T00:00:00Z"), [row(64, 1300.0, image=NEXT_IMAGE)], [collapsed])
    )
    first = answer["findings"][0]
    assert first["scope"] == "eval"
    assert "below_threshold" in codes(first)
    assert answer["headline"]["verdict"] == "failed"


def test_a_stored_error_of_zero_or_text_is_computed_again(tracker: Tracker) -> None:
    for stored in ("N/A", 0.0, None):
        past = [bundle(run(1), [], [evaluation(0.9553)])]
        new = evaluation(0.9453, em_strict_se=stored, em_flexible_se=stored)
        answer = judged(tracker, past, bundle(run(2, "2026-06-12T00:00:00Z"), [], [new]))
        strict = [one for one in answer["findings"] if one["metric"] == "em_strict" and one["p"] is not None]
        assert all(0.01 < one["p"] <= 1 for one in strict)
        assert strict


def test_a_gate_missed_by_one_question_fails_and_says_how_far(tracker: Tracker, tmp_path: Path) -> None:
    thresholds = write(tmp_path / "thresholds.json", {"default": {"gsm8k": 0.83}})
    short = evaluation(0.9553, em_strict=0.828125, em_strict_se=0.0236, n_eff=256)
    past = [bundle(run(1), [], [evaluation(0.9553)])]
    candidate = bundle(run(2, "2026-06-12T00:00:00Z"), [], [short])
    answer = judged(tracker, past, candidate, "--thresholds", str(thresholds))
    (gate,) = [c for one in answer["findings"] for c in one["caveats"] if c["code"] == "below_threshold"]
    assert (gate["correct"], gate["n"], gate["needed"]) == (212, 256, 213)


@pytest.mark.parametrize(
    ("prefix", "task", "score", "outcome"),
    [
        ("dsr1", "gsm8k", 0.905, "below_threshold"),
        ("kimik2.5", "gsm8k", 0.905, "pass"),
        ("glm5", "gsm8k", 0.935, "below_threshold"),
        ("glm5.1", "gsm8k", 0.935, "pass"),
        ("dsr1", "gsm8k_platinum", 0.905, "no_gate"),
        ("newmodel", "gsm8k", 0.90, "pass"),
        ("newmodel", "gpqa_diamond_cot_n_shot", 0.44, "pass"),
    ],
)
def test_a_threshold_is_looked_up_by_the_exact_model_then_the_task(
    tracker: Tracker, prefix: str, task: str, score: float, outcome: str
) -> None:
    one = evaluation(score, model_prefix=prefix, task=task)
    tracker.ingest(write(tracker.folder / "one.json", bundle(run(1), [], [one])))
    answer = json.dumps(tracker.compare())
    for code in ("below_threshold", "no_gate"):
        assert (code in answer) is (code == outcome), code


def test_headline_counts_table_and_exit_code_come_from_one_list(tracker: Tracker) -> None:
    calm = {c: [v] for c, v in ((64, 1000.0), (128, 1200.0), (256, 1300.0))}
    past = history(calm)
    past[0]["rows"].append(agentic(16, 400.0))
    past[0]["evals"].append(evaluation(0.9553))
    new = [row(c, v[0] * 1.001, image=NEXT_IMAGE) for c, v in calm.items()]
    new.append(agentic(16, 190.0, image="vllm/vllm-openai:v0.21.0"))
    candidate = bundle(run(200, "2026-06-12T00:00:00Z"), new, [evaluation(0.60)])
    answer = judged(tracker, past, candidate)
    headline = answer["headline"]
    assert headline["verdict"] == "regression"
    assert headline["points"].pop("total") == sum(headline["points"].values()) == 4
    assert headline["points"]["regression"] == 1
    assert headline["evals"]["total"] == 1
    assert answer["findings"][0]["scope"] in {"eval", "config"}
    said = tracker("compare", tracker.folder / "candidate.json", "--fail-on", "regression", "--format", "table")
    assert said.code == 3


def test_the_later_attempt_is_the_value_whatever_the_order_of_the_rows(tracker: Tracker) -> None:
    def attempt(conc: int, tput: float, number: int, made: str) -> Json:
        return row(conc, tput, run_id=77, run_attempt=number, created_at=made)

    old = [attempt(64, 655.0, 1, "2026-07-31T08:38:28Z"), attempt(128, 900.0, 1, "2026-07-31T08:38:28Z")]
    new = [attempt(64, 1310.0, 2, "2026-07-31T08:49:55Z"), attempt(128, 1700.0, 2, "2026-07-31T08:49:55Z")]
    for folder, order in enumerate(([*old, *new], [*new, *old], [new[0], old[0], old[1], new[1]])):
        store = tracker.folder / f"{folder}.duckdb"
        place = ("--store", store, "--archive", tracker.folder / f"{folder}.archive")
        tracker.ingest(write(tracker.folder / f"{folder}.json", order), *place)
        tracker.ingest(write(tracker.folder / "old.json", old), *place)
        answer = tracker("compare", "run:77", *place, "--format", "json").json
        values = {one["conc"]: one["metrics"]["tput_per_gpu"] for one in answer["unmatched"]}
        assert values == {64: 1310.0, 128: 1700.0}


def test_absent_null_nan_and_zero_are_four_things_of_which_none_is_a_number(tracker: Tracker) -> None:
    values: list[Json] = [{"tput_per_gpu": v} for v in (1000.0, 1010.0, math.nan, None, 0.0)]
    rows = [
        row(2**i, **value) if value["tput_per_gpu"] is not None else row(2**i, None) for i, value in enumerate(values)
    ]
    absent = row(64)
    del absent["tput_per_gpu"]
    tracker.ingest(write(tracker.folder / "one.json", bundle(run(1), [*rows, absent])))
    answer = tracker.compare()
    by_verdict: dict[str, list[int]] = {}
    for one in answer["unmatched"]:
        by_verdict.setdefault(one["verdict"], []).append(one["conc"])
    assert by_verdict == {"no_baseline": [1, 2], "invalid": [4, 8, 16, 64]}
    invalid = [one for one in answer["unmatched"] if one["verdict"] == "invalid"]
    reasons = {one["conc"]: one["reason"]["code"] for one in invalid}
    assert reasons[16] == "zero_throughput"
    assert {reasons[4], reasons[8], reasons[64]} == {"no_throughput"}


def one_point(run_id: int, day: str, tput: float, conc: int = 4, **said: Any) -> Json:
    return bundle(run(run_id, f"{day}T00:00:00Z"), [row(conc, tput, **said)])


def test_prompts_counted_by_another_tokenizer_are_another_workload(tracker: Tracker) -> None:
    past = [one_point(1, "2026-06-01", 433.76, total_input_tokens=285600, num_prompts=40)]
    off = one_point(2, "2026-06-12", 271.7, image=NEXT_IMAGE, total_input_tokens=1436840, num_prompts=40)
    answer = judged(tracker, past, off)
    (apart,) = answer["unmatched"]
    assert (apart["verdict"], apart["reason"]["code"]) == ("not_comparable", "workload_off_nominal")
    assert apart["reason"]["tokens"] == 35921
    assert not [one for one in answer["findings"] if one["change"] is not None]
    assert "35921" in tracker("compare", tracker.folder / "candidate.json", "--format", "markdown").out


def test_a_run_with_foreign_prompts_is_no_baseline_and_the_one_before_it_is(tracker: Tracker) -> None:
    past = [one_point(1, "2026-05-01", 440.0, total_input_tokens=285600, num_prompts=40)]
    past += [one_point(2, "2026-05-15", 271.7, total_input_tokens=1436840, num_prompts=40)]
    good = one_point(3, "2026-06-12", 441.0, image=NEXT_IMAGE, total_input_tokens=285700, num_prompts=40)
    answer = judged(tracker, past, good)
    point = finding(answer, scope="point", metric="tput_per_gpu")
    assert point["runs"]["baseline"] == ["1/1"]
    assert point["change"] == pytest.approx(441 / 440 - 1)
    assert not FLAGS & {one["verdict"] for one in answer["findings"]}


def test_a_gain_by_another_client_setting_is_not_compared(tracker: Tracker) -> None:
    mtp = {"spec_decoding": "mtp"}
    past = [one_point(1, "2026-06-01", 800.0, use_chat_template=True, acceptance_length=2.5, **mtp)]
    new = one_point(2, "2026-06-12", 1072.0, image=NEXT_IMAGE, use_chat_template=False, acceptance_length=3.55, **mtp)
    (apart,) = judged(tracker, past, new)["unmatched"]
    assert apart["reason"] == {"code": "workload_differs", "field": "use_chat_template", "baseline": 1, "candidate": 0}


def test_a_warm_prefix_cache_on_random_prompts_is_another_workload_point_by_point(tracker: Tracker) -> None:
    cold = {1: 40.0, 4: 150.0, 8: 250.0, 16: 400.0}
    warm = {1: (40.2, 0.0), 4: (239.0, 0.93), 8: (440.0, 0.9), 16: (500.0, 0.41)}
    past = [bundle(run(1), [row(c, v, prefix_cache_hit_rate=0.0) for c, v in cold.items()])]
    rows = [row(c, v, image=NEXT_IMAGE, prefix_cache_hit_rate=rate) for c, (v, rate) in warm.items()]
    answer = judged(tracker, past, bundle(run(2, "2026-06-12T00:00:00Z"), rows))
    assert sorted(one["conc"] for one in answer["unmatched"] if one["verdict"] == "not_comparable") == [4, 8, 16]
    points = [one for one in answer["findings"] if (one["scope"], one["metric"]) == ("point", "tput_per_gpu")]
    assert [(one["conc"], round(one["change"], 4)) for one in points] == [(1, 0.005)]


def test_a_measurement_that_includes_the_warm_up_is_not_compared_and_its_pattern_is_only_suspected(
    tracker: Tracker,
) -> None:
    level = {"median_tpot": 0.00356, "median_intvty": 1 / 0.00356, "median_e2el": 4.4, "median_ttft": 0.784}
    level["median_itl"] = 0.00356
    cold = {**level, "p99_ttft": 5.18, "mean_ttft": 1.468, "image": NEXT_IMAGE}
    past = [one_point(1, "2026-06-01", 28.9, 8, num_warmups=8, p99_ttft=1.694, mean_ttft=1.043, **level)]
    (apart,) = judged(tracker, past, one_point(2, "2026-06-12", 26.35, 8, num_warmups=0, **cold))["unmatched"]
    assert (apart["verdict"], apart["reason"]["field"]) == ("not_comparable", "num_warmups")
    silent = judged(tracker, past, one_point(3, "2026-06-12", 26.35, 8, **cold))
    assert finding(silent, scope="curve", metric="tput_per_gpu")["verdict"] == "suspected"
    assert finding(silent, scope="curve", metric="median_tpot")["verdict"] not in FLAGS
