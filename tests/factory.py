"""Rows of the real shapes, made by us: what the tests feed to the public path."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]
IMAGE = "lmsysorg/sglang:v0.5.9-cu130"
NEXT_IMAGE = "lmsysorg/sglang:v0.5.12-cu130"


def run(run_id: int, started_at: str = "2026-06-01T00:00:00Z", **changes: Any) -> Json:
    """A GitHub run object of an official sweep (push to main), with changes."""
    official = {
        "id": run_id,
        "run_attempt": 1,
        "path": ".github/workflows/run-sweep.yml",
        "event": "push",
        "head_branch": "main",
        "status": "completed",
        "conclusion": "success",
        "run_started_at": started_at,
        "head_sha": f"{run_id:040x}",
        "repository": {"full_name": "example-org/bench"},
    }
    return {**official, **changes}


def row(conc: int = 64, tput: float | None = 1000.0, **changes: Any) -> Json:
    """A fixed-sequence single-node row whose latencies agree with its throughput (H200, 8 GPUs, 8192/1024)."""
    speed = tput if isinstance(tput, int | float) and tput > 0 else 1000.0
    tpot = conc * (8192 + 1024) / 1024 / (speed * 8)
    base = {
        "hw": "h200",
        "conc": conc,
        "image": IMAGE,
        "model": "deepseek-ai/DeepSeek-R1-0528",
        "infmax_model_prefix": "dsr1",
        "framework": "sglang",
        "precision": "fp8",
        "spec_decoding": "none",
        "disagg": False,
        "recipe_fingerprint": "",
        "isl": 8192,
        "osl": 1024,
        "is_multinode": False,
        "tp": 8,
        "pp": 1,
        "dcp_size": 1,
        "pcp_size": 1,
        "ep": 1,
        "dp_attention": "false",
        "tput_per_gpu": tput,
        "output_tput_per_gpu": speed / 9,
        "input_tput_per_gpu": speed * 8 / 9,
        "median_ttft": 0.7,
        "p99_ttft": 6.2,
        "median_tpot": tpot,
        "median_itl": tpot,
        "median_intvty": 1 / tpot,
        "median_e2el": 0.7 + 1024 * tpot,
    }
    return {**base, **changes}


def agentic(conc: int = 16, tput: float = 400.0, **changes: Any) -> Json:
    """A nested AgentX row."""
    base = {
        "hw": "cluster:b200-dgxc",
        "conc": conc,
        "image": "vllm/vllm-openai:v0.20.1",
        "recipe_fingerprint": "",
        "model": "deepseek-ai/DeepSeek-V4-Pro",
        "infmax_model_prefix": "dsv4",
        "framework": "vllm",
        "precision": "fp4",
        "spec_decoding": "none",
        "disagg": False,
        "scenario_type": "agentic-coding",
        "is_multinode": False,
        "tp": 8,
        "ep": 1,
        "dp_attention": "false",
        "kv_offloading": "none",
        "kv_offload_backend": None,
        "num_requests_total": 156,
        "num_requests_successful": 112,
        "request_accounting": {"records_total": 156, "records_profiled": 112, "records_error_dropped": 0},
        "request_metrics": {
            "latency": {
                "ttft": {"mean": 2.0, "p50": 1.1, "p75": 2.0, "p90": 3.9, "p95": 4.4, "std": 1.6},
                "itl": {"mean": 0.009, "p50": 0.00883, "p75": 0.011, "p90": 0.016, "p95": 0.02, "std": 0.001},
                "tpot": {"mean": 0.009, "p50": 0.00883, "p75": 0.011, "p90": 0.01615, "p95": 0.02, "std": 0.001},
                "intvty": {"mean": 111.0, "p50": 113.25, "p75": 90.9, "p90": 61.9, "p95": 50.0, "std": 1052.11},
            },
            "throughput": {
                "per_gpu": {"total_tput_tps": tput, "output_tput_tps": tput / 100, "input_tput_tps": tput * 0.99}
            },
        },
    }
    return {**base, **changes}


def evaluation(score: float = 0.9553, conc: int = 64, **changes: Any) -> Json:
    """A row of `agg_eval_all.json`."""
    base = {
        "is_multinode": False,
        "model_prefix": "dsr1",
        "model": "deepseek-ai/DeepSeek-R1-0528",
        "hw": "H200",
        "framework": "sglang",
        "precision": "fp8",
        "spec_decoding": "none",
        "isl": 8192,
        "osl": 1024,
        "tp": 8,
        "ep": 1,
        "conc": conc,
        "dp_attention": "false",
        "task": "gsm8k",
        "em_strict": score,
        "em_strict_se": (score * (1 - score) / 1318) ** 0.5,
        "em_flexible": score,
        "em_flexible_se": (score * (1 - score) / 1318) ** 0.5,
        "n_eff": 1319,
        "source": "eval/results.json",
    }
    return {**base, **changes}


def bundle(run_object: Json, rows: Sequence[Json] = (), evals: Sequence[Json] = ()) -> Json:
    return {"run": run_object, "rows": list(rows), "evals": list(evals)}


def write(path: Path, value: Any) -> Path:
    """The value as a JSON file (NaN and Infinity as Python writes them)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def history(
    values: Mapping[int, Sequence[float]], *, image: str = IMAGE, first_id: int = 100, day: int = 1
) -> list[Json]:
    """Official runs a day apart, one per value of the lists; keys are concurrencies."""
    count = max(map(len, values.values()))
    return [
        bundle(
            run(first_id + i, f"2026-05-{day + i:02d}T00:00:00Z"),
            [row(conc, series[i], image=image) for conc, series in values.items() if i < len(series)],
        )
        for i in range(count)
    ]


def lean_row(conc: int, speed: float, hardware: str, image: str) -> dict[str, object]:
    """A row of little more than what a verdict needs; `speed` is beside the usual one."""
    return {
        "hw": hardware,
        "conc": conc,
        "image": image,
        "infmax_model_prefix": "dsr1",
        "model": "deepseek-ai/DeepSeek-R1-0528",
        "framework": "sglang",
        "precision": "fp8",
        "isl": 8192,
        "osl": 1024,
        "tp": 8,
        "ep": 1,
        "dp_attention": False,
        "spec_decoding": "none",
        "tput_per_gpu": 100.0 * conc**0.5 * speed,
        "median_tpot": 0.01 / speed,
    }


def master_config(key: str, image: str, space: str) -> str:
    """A master config of one key at 8k1k; `space` is its search space at tp 8, such as `conc-list: [4, 16]`."""
    return f"""\
{key}:
  image: {image}
  model: deepseek-ai/DeepSeek-R1-0528
  model-prefix: dsr1
  runner: h200
  precision: fp8
  framework: sglang
  multinode: false
  scenarios:
    fixed-seq-len:
    - isl: 8192
      osl: 1024
      search-space:
      - {{ tp: 8, {space} }}
"""


def calm_then_slower() -> list[Any]:
    """Bundles of three calm runs and, in week 24 of 2026, a slower bump."""
    slower = bundle(
        run(200, "2026-06-12T00:00:00Z"), [row(4, 800.0, image=NEXT_IMAGE), row(64, 2400.0, image=NEXT_IMAGE)]
    )
    return [*history({4: [1000.0, 1003.0, 998.0], 64: [3000.0, 3009.0, 2994.0]}), slower]
