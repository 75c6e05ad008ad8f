"""Small rows of every shape, made for tests, and shortcuts to what the readers find in them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from store.readers import read
from store.records import Batch, Run
from tests import factory

RUN = {
    "id": 27489075807,
    "run_attempt": 1,
    "path": ".github/workflows/run-sweep.yml",
    "event": "push",
    "head_branch": "main",
    "run_started_at": "2026-06-14T06:43:25Z",
}


def row(**changes: Any) -> dict[str, Any]:
    """A fixed-sequence row of one engine as written today, in round numbers; a change to `...` drops the field."""
    base = {
        **factory.row(),
        "hw": "h200-nv",
        "tput_per_gpu": 1310.0,
        "output_tput_per_gpu": 145.0,
        "input_tput_per_gpu": 1165.0,
        "median_ttft": 0.72,
        "median_tpot": 0.05,
        "median_itl": ...,
        "median_intvty": 20.0,
        "median_e2el": 53.1,
    }
    return _changed(base, changes)


def pools(**changes: Any) -> dict[str, Any]:
    """A multinode row with prefill and decode pools."""
    sides = {
        f"{side}_{field}": value
        for side in ("prefill", "decode")
        for field, value in {"tp": 8, "ep": 8, "dp_attention": "true", "num_workers": 1}.items()
    }
    base = row(
        tp=..., ep=..., dp_attention=..., hw="gb200-nv", framework="dynamo-sglang", disagg=True, is_multinode=True
    )
    return _changed({**base, **sides, "num_prefill_gpu": 8, "num_decode_gpu": 8}, changes)


def nested(**changes: Any) -> dict[str, Any]:
    """An AgentX row of 2026-07."""
    spread = {"mean": 2.0, "p50": 1.0, "p75": 3.0, "p90": 4.0, "p95": 5.0, "std": 9.0}
    base = row(
        **dict.fromkeys(
            ("isl", "osl", "tput_per_gpu", "output_tput_per_gpu", "input_tput_per_gpu", "median_ttft"), ...
        ),
        **dict.fromkeys(("p99_ttft", "median_tpot", "median_intvty", "median_e2el"), ...),
        hw="cluster:h100-dgxc",
        scenario_type="agentic-coding",
        kv_offloading="none",
        num_requests_total=156,
        num_requests_successful=112,
    )
    base["request_accounting"] = {"records_profiled": 112, "records_error_dropped": 0, "records_warmup_dropped": 44}
    base["request_metrics"] = {
        "qps": {"window_seconds": 1, **spread},
        "latency": {"ttft": spread, "tpot": spread, "intvty": {"mean": 0.5, "p50": 1, "p90": 0.25, "std": 1052.0}},
        "tokens": {"input": spread},
        "throughput": {
            "total": {"tokens_per_second": 3242.0},
            "duration_seconds": 3291.8,
            "per_gpu": {"total_tput_tps": 405.25, "output_tput_tps": 3.25, "input_tput_tps": 402.0},
        },
        "cache": {"theoretical_cache_hit_rate": 0.97},
    }
    base["server_metrics"] = {"cache": {"gpu_cache_hit_rate": 0.36, "cpu_cache_hit_rate": None}}
    return _changed(base, changes)


def published(**changes: Any) -> dict[str, Any]:
    """A row of the public API's history."""
    halves = {
        f"{side}_{field}": value
        for side in ("prefill", "decode")
        for field, value in {"tp": 8, "ep": 1, "dp_attention": False, "num_workers": 0}.items()
    }
    base = {
        "hardware": "h200",
        "framework": "sglang",
        "model": "dsr1",
        "precision": "fp8",
        "spec_method": "none",
        "disagg": False,
        "is_multinode": False,
        **halves,
        "num_prefill_gpu": 8,
        "num_decode_gpu": 8,
        "isl": 8192,
        "osl": 1024,
        "conc": 64,
        "metrics": {"tput_per_gpu": 1310.0, "median_ttft": 0.72, "median_tpot": 0.05, "median_intvty": 20.0},
        "date": "2026-06-14",
        "run_url": "https://github.com/SemiAnalysisAI/InferenceX/actions/runs/20200037154/attempts/2",
    }
    return _changed(base, changes)


def published_eval(**changes: Any) -> dict[str, Any]:
    """A row of the public API's evaluations: a single engine that says `disagg`, an address without attempt."""
    base = published(isl=..., osl=..., disagg=True, prefill_num_workers=1, decode_num_workers=1)
    base |= {
        "id": "7439",
        "config_id": 1482,
        "task": "gsm8k",
        "timestamp": "2026-06-14T04:08:16Z",
        "run_url": "https://github.com/SemiAnalysisAI/InferenceX/actions/runs/20200037154",
        "metrics": {"n_eff": 1319, "em_strict": 0.9553, "em_flexible": 0.96, "em_strict_se": 0.0057},
    }
    return _changed(base, changes)


def evaluated(**changes: Any) -> dict[str, Any]:
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
        "conc": 64,
        "dp_attention": "false",
        **{f"{side}_{field}": 8 if field == "tp" else 1 for side in ("prefill", "decode") for field in ("tp", "ep")},
        "prefill_num_workers": 1,
        "decode_num_workers": 1,
        "prefill_dp_attention": "false",
        "decode_dp_attention": "false",
        "task": "gsm8k",
        "em_strict": 0.9553,
        "em_strict_se": 0.0057,
        "em_flexible": 0.96,
        "em_flexible_se": 0.0054,
        "n_eff": 1319,
    }
    return _changed(base, changes)


def put(folder: Path, name: str, value: object) -> Path:
    """Write a JSON file (or bytes as they are) and give its path."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    return path


def bundle(rows: Iterable[object] = (), evals: Iterable[object] = (), **run: Any) -> dict[str, Any]:
    return {"run": {**RUN, **run}, "rows": list(rows), "evals": list(evals)}


def found(*paths: Path, run: Run | None = None) -> list[Batch]:
    return list(read(paths, run))


def one(folder: Path, value: object, name: str = "agg_bmk.json") -> Batch:
    """The only batch of a file with this content."""
    (batch,) = found(put(folder, name, value))
    return batch


def _changed(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in {**base, **changes}.items() if value is not ...}
