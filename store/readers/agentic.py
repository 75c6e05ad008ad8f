"""AgentX rows: the nested shape of 2026-07 and its flat predecessors, each to the flat row that `points` reads."""

from __future__ import annotations

from store.readers.values import Row, block, number

_STATS = {"mean": "mean", "p50": "median", "p75": "p75", "p90": "p90", "p95": "p95", "std": "std"}
_PER_GPU = {
    "total_tput_tps": "tput_per_gpu",
    "output_tput_tps": "output_tput_per_gpu",
    "input_tput_tps": "input_tput_per_gpu",
}
_TOKENS = {"input": "input_tokens", "output_actual": "output_tokens", "output_expected": "expected_output_tokens"}
_SERVER_BLOCKS = ("cache", "kv_cache", "kv_offload", "tokens")
_NESTED = frozenset({"request_metrics", "server_metrics", "request_accounting"})


def is_nested(row: Row) -> bool:
    """A row of 2026-07 and later: its metrics stand in blocks."""
    return "request_metrics" in row


def is_flat(row: Row) -> bool:
    """A flat agentic row (2026-05-01 to 2026-07-01): it says so, or has no lengths but a field of those harnesses."""
    if row.get("scenario_type") == "agentic-coding":
        return True
    return ("offloading" in row or "users" in row) and row.get("isl") is None


def from_nested(row: Row) -> Row:
    """Flatten the blocks; any of them may be empty or absent. Server numbers get the prefix `server_`."""
    requests = block(row, "request_metrics")
    flat = {key: value for key, value in row.items() if key not in _NESTED}
    rate = block(requests, "qps")
    flat.update(_distribution(rate, "qps"))
    flat["qps_window_seconds"], flat["qps_samples"] = rate.get("window_seconds"), rate.get("samples")
    for name in block(requests, "latency"):
        flat.update(_distribution(block(block(requests, "latency"), name), name))
    for name, ours in _TOKENS.items():
        flat.update(_distribution(block(block(requests, "tokens"), name), ours))
    flat.update(_throughput(block(requests, "throughput")))
    flat["theoretical_cache_hit_rate"] = block(requests, "cache").get("theoretical_cache_hit_rate")
    for name in ("records_profiled", "records_error_dropped"):
        flat[name] = block(row, "request_accounting").get(name)
    flat.update(_server(block(row, "server_metrics")))
    return flat


def from_flat(row: Row) -> Row:
    """Interactivity had two definitions in these rows (1/p(ITL) and p(1/ITL)): it is made again from ITL."""
    flat = {key: value for key, value in row.items() if not key.endswith("_intvty")}
    for key, value in row.items():
        stat, _, what = key.rpartition("_")
        read = number(value) if what == "itl" and stat != "std" else None
        if read:
            flat[f"{stat}_intvty"] = 1 / read
    flat.setdefault("scenario_type", "agentic-coding")
    return flat


def _distribution(stats: Row, what: str) -> dict[str, object]:
    """`{p50: 1.1}` to `median_what`. The "spread" of an interactivity is 1/spread of TPOT, so it is left out."""
    return {
        f"{ours}_{what}": stats[theirs]
        for theirs, ours in _STATS.items()
        if theirs in stats and not (ours == "std" and what.endswith("intvty"))
    }


def _throughput(rates: Row) -> dict[str, object]:
    """Whole-deployment rates and per-GPU rates; here all three of the latter have the same denominator."""
    flat: dict[str, object] = {
        f"{side}_tput_tps": block(rates, side).get("tokens_per_second") for side in ("input", "output", "total")
    }
    flat["duration_seconds"] = rates.get("duration_seconds")
    per_gpu = block(rates, "per_gpu")
    return flat | {ours: per_gpu.get(theirs) for theirs, ours in _PER_GPU.items()}


def _server(metrics: Row) -> dict[str, object]:
    return {
        f"server_{key}": value
        for name in _SERVER_BLOCKS
        for key, value in block(metrics, name).items()
        if isinstance(value, int | float)
    }
