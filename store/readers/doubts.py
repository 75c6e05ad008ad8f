"""Doubts about a measured row: what makes it invalid, and what only has to be said beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import TypeAlias

from store.metrics import METRICS
from store.readers.values import Row, number
from store.records import Caveat, Layout, Series

FAILED_SHARE = 0.05
"""InferenceX's own client refuses a fixed-sequence run above this share of failed requests (since 2026-05-14)."""

FAILED_SHARE_AGENTIC = 0.10
"""The upload gate of AgentX."""

LONGEST_LATENCY = 86_400.0
"""Seconds. No job runs for a day, so a longer latency is a unit mistake or a broken clock."""

INTERACTIVITY_TOLERANCE = 0.05
"""Interactivity is 1/TPOT by definition; rounding to 5 decimals moves the product by less than this."""

BUSIER_THAN_POSSIBLE = 1.25
"""Above this share of what Little's law allows, the row misstates its GPUs or its requests in flight."""

UNIT_MISTAKE = 50.0
"""Milliseconds for seconds are off by a thousand; no count of replicas is off by this."""

SUCCESS = frozenset({"", "success", "succeeded", "passed", "ok", "complete", "completed"})
"""What a row may say of its outcome, or nothing, to be a whole measurement."""

LEAST_DURATION = 0.90
"""A measurement shorter than this share of its nominal duration was cut off."""

LONGEST_SILENCE = 300.0
"""Seconds without a request after which traffic had stalled."""

CLOCK_TOLERANCE = 0.10
"""Start, end and duration of a row agree within this share of the duration."""

POWER_OF_A_GPU = (10.0, 3000.0)
"""Watts per GPU: less than an idle one, or more than twice what the largest may draw, is another unit."""

POWER_TOLERANCE = 0.02
"""Totals and their parts are rounded to 3 decimals; GPUs that were not counted make steps of an eighth."""

POWER_WINDOW = (0.90, 1.50)
"""Length of the power window over that of the measurement: it must cover it, and 1.03 to 1.11 was seen; what is far
longer is mostly an idle engine."""

REFUSED = "refused_"
"""Prefix of a value that is kept among the extra ones, so that nothing can judge it."""

Doubts: TypeAlias = tuple[Caveat | None, tuple[Caveat, ...]]

_LATENCIES = frozenset(key for key, row in METRICS.items() if row.unit == "s" and row.family != "duration")
_UNDEFINED_AT_ZERO = frozenset(key for key in _LATENCIES if not key.startswith("std_"))
_UNKNOWN_COMPLETION = Caveat.of("completion_unknown")


def undefined(metrics: Mapping[str, float]) -> tuple[str, ...]:
    """Latencies of exactly zero: nothing was timed (one output token has no time per further token)."""
    return tuple(key for key, value in metrics.items() if value == 0 and key in _UNDEFINED_AT_ZERO)


def invalid_latency(metrics: Mapping[str, float]) -> Caveat | None:
    """The first latency that no clock can have shown."""
    if metrics and min(metrics.values()) >= 0 and max(metrics.values()) <= LONGEST_LATENCY:
        return None
    for key in sorted(_LATENCIES & metrics.keys()):
        if not 0 <= metrics[key] <= LONGEST_LATENCY:
            return Caveat.of("impossible_latency", metric=key, value=metrics[key])
    return None


def throughput(metrics: Mapping[str, float]) -> Caveat | None:
    """A point without positive throughput measured nothing."""
    value = metrics.get("tput_per_gpu")
    if value is None:
        return Caveat.of("no_throughput")
    return Caveat.of("zero_throughput", value=value) if value <= 0 else None


def interactivity(metrics: Mapping[str, float]) -> tuple[Caveat, ...]:
    """Interactivity that is not the inverse of its TPOT: one of the two is in another unit or of another row."""
    product = metrics.get("median_tpot", 0.0) * metrics.get("median_intvty", 0.0)
    if product and abs(product - 1) > INTERACTIVITY_TOLERANCE:
        return (Caveat.of("interactivity_disagrees", product=round(product, 6)),)
    return ()


def denominator(series: Series, metrics: Mapping[str, float]) -> tuple[Caveat, ...]:
    """Throughput per GPU that no `conc` requests in flight can make: the total was divided by too few GPUs.

    By Little's law the total is at most conc * (isl + osl) / latency, and less since lengths are drawn below nominal:
    0.56 to 0.94 of it on every published single-node point, 1.7 on rows whose tp=1 hid replicas.
    """
    latency = metrics.get("mean_e2el") or metrics.get("median_e2el")
    if not latency or series.isl is None or series.osl is None or series.conc is None:
        return ()
    total = metrics.get("tput_per_gpu", 0.0) * series.layout.gpus
    ratio = total * latency / (series.conc * (series.isl + series.osl))
    if ratio <= BUSIER_THAN_POSSIBLE:
        return ()
    return (Caveat.of("denominator_suspicious", ratio=round(ratio, 2), gpus=series.layout.gpus),)


def impossible(said: tuple[Caveat, ...]) -> Caveat | None:
    """The doubt that no real deployment explains: a number in another unit, by its size."""
    return next((one for one in said if float(dict(one.values)["ratio"] or 0) > UNIT_MISTAKE), None)


def duration(row: Row, metrics: Mapping[str, float]) -> Caveat | None:
    """A measurement that was cut off, that stalled, or whose clock contradicts itself, as far as the row tells.

    >>> duration({"duration": 3000, "nominal_duration_seconds": 3600}, {}).as_dict()
    {'code': 'short_run', 'measured': 3000.0, 'nominal': 3600.0}
    """
    seconds = metrics.get("duration_seconds") or _told(row, "duration")
    nominal, silence = _told(row, "nominal_duration_seconds"), _told(row, "longest_silence_seconds")
    if seconds and nominal and seconds < LEAST_DURATION * nominal:
        return Caveat.of("short_run", measured=seconds, nominal=nominal)
    windows, width = _told(row, "qps_samples"), _told(row, "qps_window_seconds")
    if silence is None and seconds and windows and width:
        # The request rate is sampled from the first request to the last: what it does not cover had none.
        silence = seconds - windows * width
    if silence is not None and silence > LONGEST_SILENCE:
        return Caveat.of("silence", seconds=round(silence, 1))
    start, end = _told(row, "benchmark_start_time_unix"), _told(row, "benchmark_end_time_unix")
    if seconds and start and end and abs(end - start - seconds) > CLOCK_TOLERANCE * seconds:
        return Caveat.of("clock_disagrees", duration=seconds, clock=round(end - start, 1))
    return None


def _told(row: Row, field: str) -> float | None:
    value = number(row[field]) if field in row else None
    return value if value is not None and isfinite(value) and value > 0 else None


def power(metrics: dict[str, float], layout: Layout) -> tuple[dict[str, float], dict[str, float], tuple[Caveat, ...]]:
    """The metrics without power and energy that cannot be right, these under their refused names, and the reason.

    Throughput does not depend on them, so the point stays valid.

    >>> from store.records import Role
    >>> kept, refused, said = power({"avg_power_w": 500.0, "avg_total_gpu_power_w": 3500.0}, Layout(Role(8)))
    >>> kept, sorted(refused), said[0].code
    ({}, ['refused_avg_power_w', 'refused_avg_total_gpu_power_w'], 'power_gpu_count')
    """
    if _POWER.isdisjoint(metrics):
        return metrics, {}, ()
    reason = next((found for check in _POWER_CHECKS if (found := check(metrics, layout))), None)
    if reason is None:
        return metrics, {}, ()
    kept = {key: value for key, value in metrics.items() if key not in _POWER}
    return kept, {REFUSED + key: value for key, value in metrics.items() if key in _POWER}, (reason,)


def _declared(metrics: Mapping[str, float], _: Layout) -> Caveat | None:
    return Caveat.of("power_declared_invalid") if metrics.get("power_valid") == 0 else None


def _implausible(metrics: Mapping[str, float], _: Layout) -> Caveat | None:
    for key in sorted(_POWER & metrics.keys()):
        value = metrics[key]
        least, most = POWER_OF_A_GPU if key in _PER_GPU else (0.0, float("inf"))
        if not least < value < most:
            return Caveat.of("power_implausible", metric=key, value=value)
    return None


def _gpu_count(metrics: Mapping[str, float], layout: Layout) -> Caveat | None:
    mean, total = metrics.get("avg_power_w"), metrics.get("avg_total_gpu_power_w")
    if not mean or not total or abs(total / mean / layout.gpus - 1) <= POWER_TOLERANCE:
        return None
    return Caveat.of("power_gpu_count", measured=round(total / mean, 2), topology=layout.gpus)


def _window(metrics: Mapping[str, float], _: Layout) -> Caveat | None:
    """Energy over power is the length of the window; without an energy, joules per token over power say as much."""
    total, energy, seconds = (metrics.get(key) for key in _ENERGY_OF_TIME)
    mean, joules = metrics.get("avg_power_w"), metrics.get("joules_per_total_token")
    if total and energy and seconds:
        ratio = energy / total / seconds
    elif mean and joules and metrics.get("tput_per_gpu"):
        ratio = joules * metrics["tput_per_gpu"] / mean
    else:
        return None
    least, most = POWER_WINDOW
    return None if least <= ratio <= most else Caveat.of("power_window", ratio=round(ratio, 3))


def _queries(metrics: Mapping[str, float], _: Layout) -> Caveat | None:
    energy, each = metrics.get("total_gpu_energy_j"), metrics.get("joules_per_successful_query")
    number_of = metrics.get("num_requests_successful")
    if not energy or not each or not number_of or abs(each * number_of / energy - 1) <= POWER_TOLERANCE:
        return None
    return Caveat.of("power_queries", energy=energy, queries=int(number_of), each=each)


def _role_local(metrics: Mapping[str, float], layout: Layout) -> Caveat | None:
    """Before its schema had a version, energy of a split deployment was that of one role: another quantity."""
    is_old = layout.decode is not None and metrics.get("power_metric_schema_version") is None
    return Caveat.of("power_role_local") if is_old and not _ROLE_LOCAL.isdisjoint(metrics) else None


_POWER = frozenset(key for key, row in METRICS.items() if row.family in ("power", "energy"))
_PER_GPU = frozenset({"avg_power_w", "prefill_avg_power_w", "decode_avg_power_w"})
_ENERGY_OF_TIME = ("avg_total_gpu_power_w", "total_gpu_energy_j", "duration_seconds")
_ROLE_LOCAL = frozenset({"joules_per_input_token", "joules_per_output_token", "joules_per_total_token"})

_POWER_CHECKS: tuple[Callable[[Mapping[str, float], Layout], Caveat | None], ...] = (
    _declared,
    _implausible,
    _role_local,
    _gpu_count,
    _window,
    _queries,
)
"""What makes power and energy of a row unusable, the plainest reason first; a new reason is a function here."""


def completion(total: float | None, successful: float | None) -> Doubts:
    """Failed requests of a fixed-sequence row, by its two counts.

    >>> completion(320, 31)[0].as_dict()
    {'code': 'failed_requests', 'failed': 289, 'total': 320}
    >>> completion(None, None)
    (None, (Caveat(code='completion_unknown', values=()),))
    """
    if total is None or successful is None or not 0 <= successful <= total:
        return None, (_UNKNOWN_COMPLETION,)
    return _judged(int(total - successful), int(total), FAILED_SHARE)


def agentic_completion(total: float | None, successful: float | None, errors: float | None) -> Doubts:
    """Failed requests of an AgentX row: its total includes warm-up, so errors are counted by their own field."""
    if successful == 0:
        return Caveat.of("failed_requests", failed=int(total or 0), total=int(total or 0)), ()
    if successful is None or errors is None or errors < 0 or successful < 0:
        return None, (_UNKNOWN_COMPLETION,)
    return _judged(int(errors), int(errors + successful), FAILED_SHARE_AGENTIC)


def _judged(failed: int, total: int, limit: float) -> Doubts:
    said = Caveat.of("failed_requests", failed=failed, total=total)
    if failed == total or failed > limit * total:
        return said, ()
    return None, (said,) if failed else ()
