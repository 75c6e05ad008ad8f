"""The metric table: key, unit, direction, noise family, role. A new metric is a new row here.

Keys are InferenceX's own (`utils/process_result.py`); latencies are seconds, interactivity is tokens/s/user.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Better(StrEnum):
    HIGHER = "higher"
    LOWER = "lower"
    UNKNOWN = "unknown"


class Part(StrEnum):
    """What a metric is used for. GATE decides a verdict, ADVISORY is judged apart, SHOWN is never judged."""

    GATE = "gate"
    ADVISORY = "advisory"
    SHOWN = "shown"


@dataclass(frozen=True, slots=True)
class Metric:
    """One row of the table.

    `family` names the noise family whose scale is shared; `same_as` names the metric that carries the same number
    (interactivity is 1/TPOT, input and output throughput follow the total on one node): test one, show the others.
    """

    key: str
    unit: str
    better: Better
    family: str
    part: Part = Part.SHOWN
    same_as: str | None = None

    def improves(self, change: float) -> bool:
        """True when a change of this sign is for the better.

        >>> metric("median_ttft").improves(-0.3), metric("tput_per_gpu").improves(-0.3)
        (True, False)
        """
        return change > 0 if self.better is Better.HIGHER else change < 0 and self.better is Better.LOWER


_STATS = ("mean", "median", "p75", "p90", "p95", "p99", "p99.9")
_LATENCIES = ("ttft", "tpot", "itl", "e2el")
_TAILS = frozenset({"p75", "p90", "p95", "p99", "p99.9"})
_PARTS = {
    "median_tpot": Part.GATE,
    "median_itl": Part.ADVISORY,
    "median_e2el": Part.ADVISORY,
    "median_ttft": Part.ADVISORY,
    "p99_ttft": Part.ADVISORY,
    "p99_tpot": Part.ADVISORY,
    "p99_itl": Part.ADVISORY,
    "p99_e2el": Part.ADVISORY,
}


def _latency_rows() -> list[Metric]:
    """Statistics of the four latencies. A spread (`std_*`) has no direction worth a verdict."""
    rows = [
        Metric(
            f"{stat}_{what}",
            "s",
            Better.LOWER,
            f"{'tail_' if stat in _TAILS else ''}{what}",
            _PARTS.get(f"{stat}_{what}", Part.SHOWN),
        )
        for what in _LATENCIES
        for stat in _STATS
    ]
    return rows + [Metric(f"std_{what}", "s", Better.UNKNOWN, "spread") for what in _LATENCIES]


def _interactivity_rows() -> list[Metric]:
    """Interactivity is the inverse of TPOT statistic by statistic, so p99 is the SLOW tail and std is not a spread."""
    unit = "tok/s/user"
    rows = [
        Metric(f"{stat}_intvty", unit, Better.HIGHER, "tpot", Part.SHOWN, same_as=f"{stat}_tpot") for stat in _STATS
    ]
    return [*rows, Metric("std_intvty", unit, Better.UNKNOWN, "meaningless")]


_AGENTIC = ("mean", "median", "p75", "p90", "p95")
_TOKENS = ("input_tokens", "output_tokens", "expected_output_tokens")
_HIT_RATES = ("gpu", "cpu", "external", "overall")


def _agentic_rows() -> list[Metric]:
    """What AgentX adds: request rate, latency of whole responses, interactivity by end-to-end time, lengths, caches."""
    return [
        *(Metric(f"{stat}_qps", "req/s", Better.HIGHER, "throughput") for stat in _AGENTIC),
        *(Metric(f"{stat}_full_response_itl", "s", Better.LOWER, "itl") for stat in _AGENTIC),
        *(
            Metric(f"{stat}_{what}", "tok/s/user", Better.HIGHER, "tpot")
            for what in ("full_response_intvty", "e2e_norm_intvty")
            for stat in _AGENTIC
        ),
        *(Metric(f"{stat}_{what}", "tok", Better.UNKNOWN, "length") for what in _TOKENS for stat in (*_AGENTIC, "std")),
        *(Metric(f"std_{what}", "", Better.UNKNOWN, "spread") for what in ("qps", "full_response_itl")),
        *(Metric(f"server_{what}_cache_hit_rate", "fraction", Better.UNKNOWN, "cache") for what in _HIT_RATES),
        Metric("server_gpu_usage_pct", "%", Better.UNKNOWN, "cache"),
        Metric("server_gpu_total_tokens", "tok", Better.UNKNOWN, "cache"),
        Metric("kv_cache_pool_tokens", "tok", Better.UNKNOWN, "cache"),
        Metric("allocated_cpu_dram_gb", "GB", Better.UNKNOWN, "telemetry"),
    ]


_FIXED = (
    Metric("tput_per_gpu", "tok/s/GPU", Better.HIGHER, "throughput", Part.GATE),
    Metric("output_tput_per_gpu", "tok/s/GPU", Better.HIGHER, "throughput", same_as="tput_per_gpu"),
    Metric("input_tput_per_gpu", "tok/s/GPU", Better.HIGHER, "throughput", same_as="tput_per_gpu"),
    Metric("total_tput_tps", "tok/s", Better.HIGHER, "throughput", same_as="tput_per_gpu"),
    Metric("output_tput_tps", "tok/s", Better.HIGHER, "throughput", same_as="tput_per_gpu"),
    Metric("input_tput_tps", "tok/s", Better.HIGHER, "throughput", same_as="tput_per_gpu"),
    Metric("duration_seconds", "s", Better.UNKNOWN, "duration"),
    Metric("avg_power_w", "W", Better.LOWER, "power"),
    Metric("avg_total_gpu_power_w", "W", Better.LOWER, "power"),
    Metric("prefill_avg_power_w", "W", Better.LOWER, "power"),
    Metric("decode_avg_power_w", "W", Better.LOWER, "power"),
    Metric("total_gpu_energy_j", "J", Better.LOWER, "energy"),
    Metric("prefill_gpu_energy_j", "J", Better.LOWER, "energy"),
    Metric("decode_gpu_energy_j", "J", Better.LOWER, "energy"),
    Metric("joules_per_successful_query", "J", Better.LOWER, "energy"),
    Metric("joules_per_input_token", "J/tok", Better.LOWER, "energy"),
    Metric("joules_per_output_token", "J/tok", Better.LOWER, "energy"),
    Metric("joules_per_total_token", "J/tok", Better.LOWER, "energy"),
    Metric("prefill_joules_per_input_token", "J/tok", Better.LOWER, "energy"),
    Metric("decode_joules_per_output_token", "J/tok", Better.LOWER, "energy"),
    Metric("power_valid", "flag", Better.UNKNOWN, "flag"),
    Metric("power_metric_schema_version", "version", Better.UNKNOWN, "flag"),
    Metric("avg_temp_c", "°C", Better.UNKNOWN, "telemetry"),
    Metric("peak_temp_c", "°C", Better.UNKNOWN, "telemetry"),
    Metric("avg_util_pct", "%", Better.UNKNOWN, "telemetry"),
    Metric("avg_mem_used_mb", "MB", Better.UNKNOWN, "telemetry"),
    Metric("theoretical_cache_hit_rate", "fraction", Better.UNKNOWN, "cache"),
    Metric("response_cache_hit_rate", "fraction", Better.UNKNOWN, "cache"),
    Metric("num_requests_total", "requests", Better.UNKNOWN, "count"),
    Metric("num_requests_successful", "requests", Better.UNKNOWN, "count"),
)

_ACCURACY = (
    Metric("em_strict", "fraction", Better.HIGHER, "accuracy", Part.ADVISORY),
    Metric("em_flexible", "fraction", Better.HIGHER, "accuracy", Part.GATE),
    Metric("score", "fraction", Better.HIGHER, "accuracy"),
)

_FRONTIER = (
    Metric("frontier_tput_per_gpu", "tok/s/GPU", Better.HIGHER, "frontier", Part.GATE),
    Metric("peak_tput_per_gpu", "tok/s/GPU", Better.HIGHER, "frontier", Part.GATE),
    Metric("latency_frontier_tput_per_gpu", "tok/s/GPU", Better.HIGHER, "frontier", Part.ADVISORY),
)
"""What all layouts of a group reach together: at equal interactivity, at most, at equal latency. No row has them."""

METRICS = MappingProxyType(
    {
        row.key: row
        for row in (*_FIXED, *_latency_rows(), *_interactivity_rows(), *_agentic_rows(), *_FRONTIER, *_ACCURACY)
    }
)
"""Every metric that has a row, by key."""

POINT_METRICS = tuple(row.key for row in METRICS.values() if row.family not in ("accuracy", "frontier"))
"""The metrics that a point may carry, in the order of the archive's columns."""

GATE_METRICS = ("tput_per_gpu", "median_tpot")
"""The first family of tests: what decides the verdict of a curve."""

ADVISORY_METRICS = tuple(key for key in POINT_METRICS if METRICS[key].part is Part.ADVISORY)
"""The second family: judged with its own stricter error rate, never decides alone."""


def metric(key: str) -> Metric:
    """The row of a key; `mean_ttft_ms` takes the row of `mean_ttft` with its unit; unknown keys have no direction.

    >>> metric("mean_ttft_ms").unit, metric("mean_ttft_ms").better.value
    ('ms', 'lower')
    >>> metric("frobnication_rate").better.value
    'unknown'
    """
    if key in METRICS:
        return METRICS[key]
    base = METRICS.get(key.removesuffix("_ms"))
    if base is not None and base.unit == "s":
        return Metric(key, "ms", base.better, base.family, base.part)
    return Metric(key, "", Better.UNKNOWN, "unknown")
