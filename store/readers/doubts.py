"""Doubts about a measured row: what makes it invalid, and what only has to be said beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from store.metrics import METRICS
from store.records import Caveat, Series

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
