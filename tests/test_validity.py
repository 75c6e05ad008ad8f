"""What makes a row invalid, or its power unusable, each with the numbers that say so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from store.readers import read
from store.records import Point
from tests.cli import Tracker
from tests.factory import agentic, bundle, row, run, write

Json = dict[str, Any]
POWER = {"avg_power_w": 600.0, "avg_total_gpu_power_w": 4800.0, "power_valid": 1, "power_metric_schema_version": 2}
SPLIT = {
    **{"is_multinode": True, "disagg": True, "framework": "dynamo-vllm", "hw": "gb200-nv"},
    **{f"{half}_{name}": 8 for half in ("prefill", "decode") for name in ("tp", "ep")},
    **{f"{half}_num_workers": 1 for half in ("prefill", "decode")},
    **{f"num_{half}_gpu": 8 for half in ("prefill", "decode")},
}


def one(folder: Path, given: Json) -> Point:
    (batch,) = read([write(folder / "b.json", bundle(run(1), [given]))])
    (point,) = batch.points
    return point


def agent(seconds: float, samples: int = 0, **changes: Any) -> Json:
    made = agentic(16, 400.0, **changes)
    made["request_metrics"]["throughput"]["duration_seconds"] = seconds
    if samples:
        made["request_metrics"]["qps"] = {"window_seconds": 1, "samples": samples, "mean": 0.03}
    return made


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (row(num_prompts=320, completed=31), {"code": "failed_requests", "failed": 289, "total": 320}),
        (row(benchmark_outcome={"status": "Timeout"}), {"code": "benchmark_outcome", "status": "timeout"}),
        (agent(1200.0, nominal_duration_seconds=3600), {"code": "short_run", "measured": 1200.0, "nominal": 3600.0}),
        (
            row(duration=500.0, nominal_duration_seconds="600"),
            {"code": "short_run", "measured": 500.0, "nominal": 600.0},
        ),
        (agent(3600.0, 3200), {"code": "silence", "seconds": 400.0}),
        (agent(3600.0, longest_silence_seconds=301), {"code": "silence", "seconds": 301.0}),
        (
            row(duration=100.0, benchmark_start_time_unix=1000.0, benchmark_end_time_unix=1700.0),
            {"code": "clock_disagrees", "duration": 100.0, "clock": 700.0},
        ),
        (row(tput="NaN"), {"code": "no_throughput"}),
        (row(tput=-3.0), {"code": "zero_throughput", "value": -3.0}),
    ],
)
def test_a_row_that_is_no_whole_measurement_is_kept_and_marked_with_its_numbers(
    tmp_path: Path, given: Json, reason: Json
) -> None:
    invalid = one(tmp_path, given).invalid
    assert invalid is not None
    assert invalid.as_dict() == reason


@pytest.mark.parametrize(
    "given",
    [
        agent(3291.8332, 3273, nominal_duration_seconds=3600),
        agent(3600.0, 3300),
        agent(3600.0, longest_silence_seconds=300, nominal_duration_seconds=4000),
        row(duration=640.0, nominal_duration_seconds=float("nan"), longest_silence_seconds="none"),
        row(duration=100.0, benchmark_start_time_unix=1000.0, benchmark_end_time_unix=1109.0),
        row(num_prompts=320, completed=305),
        row(num_prompts=320),
        row(benchmark_outcome={"status": "Completed"}),
        row(benchmark_outcome={}),
        agent(0.0, 5),
    ],
)
def test_a_row_within_the_limits_is_valid(tmp_path: Path, given: Json) -> None:
    assert one(tmp_path, given).invalid is None


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (row(**{**POWER, "power_valid": 0}), {"code": "power_declared_invalid"}),
        (row(**{**POWER, "power_valid": False}), {"code": "power_declared_invalid"}),
        (row(avg_power_w=0.6), {"code": "power_implausible", "metric": "avg_power_w", "value": 0.6}),
        (
            row(**POWER, joules_per_output_token=0.0),
            {"code": "power_implausible", "metric": "joules_per_output_token", "value": 0.0},
        ),
        (row(**POWER | {"avg_total_gpu_power_w": 4200.0}), {"code": "power_gpu_count", "measured": 7.0, "topology": 8}),
        (agent(3600.0, **POWER, total_gpu_energy_j=4800.0 * 1800), {"code": "power_window", "ratio": 0.5}),
        (row(tput=1000.0, avg_power_w=600.0, joules_per_total_token=0.06), {"code": "power_window", "ratio": 0.1}),
        (
            row(**POWER, total_gpu_energy_j=1e6, joules_per_successful_query=100.0, num_requests_total=320,
                num_requests_successful=320),
            {"code": "power_queries", "energy": 1e6, "queries": 320, "each": 100.0},
        ),
        (row(avg_power_w=600.0, joules_per_total_token=0.6, **SPLIT), {"code": "power_role_local"}),
    ],
)  # fmt: skip
def test_power_that_cannot_be_right_is_kept_apart_and_the_point_stays_valid(
    tmp_path: Path, given: Json, reason: Json
) -> None:
    point = one(tmp_path, given)
    assert point.invalid is None
    assert reason in [caveat.as_dict() for caveat in point.caveats]
    powers = {key: value for key, value in given.items() if key.startswith(("avg_", "joules", "total_gpu"))}
    assert {f"refused_{key}": value for key, value in powers.items()}.items() <= point.extra.items()
    assert not powers.keys() & point.metrics.keys()


@pytest.mark.parametrize(
    "given",
    [
        row(**POWER),
        row(tput=198.944798, avg_power_w=628.907, joules_per_total_token=3.161212),
        agent(3291.8332, 3273, **{**POWER, "total_gpu_energy_j": 4800.0 * 3640}),
        row(avg_power_w=600.0, joules_per_total_token=0.6, power_metric_schema_version=2, **SPLIT),
    ],
)
def test_power_that_agrees_with_itself_is_kept_as_a_metric(tmp_path: Path, given: Json) -> None:
    point = one(tmp_path, given)
    assert point.metrics["avg_power_w"] == given["avg_power_w"]
    assert not [caveat for caveat in point.caveats if caveat.code.startswith("power_")]


def test_a_stalled_point_is_never_judged_and_power_stays_apart_when_the_store_is_made_anew(tracker: Tracker) -> None:
    past = [bundle(run(100 + i, f"2026-05-0{i + 1}T00:00:00Z"), [agent(3600.0, 3590)]) for i in range(3)]
    tracker.ingest(write(tracker.folder / "past.json", past))
    wrong = agent(3600.0, 3100, avg_power_w=600.0, avg_total_gpu_power_w=4200.0)
    said = tracker.ingest(write(tracker.folder / "new.json", bundle(run(200), [wrong])))
    assert "1  silence" in said.out
    for _ in range(2):
        (apart,) = [one for one in tracker.compare("run:200")["unmatched"] if one["side"] == "candidate"]
        assert (apart["verdict"], apart["reason"]) == ("invalid", {"code": "silence", "seconds": 500.0})
        assert "power_gpu_count" in {caveat["code"] for caveat in apart["caveats"]}
        assert "avg_power_w" not in apart["metrics"]
        tracker("store", "rebuild")
