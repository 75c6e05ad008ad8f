"""One flat benchmark row to one `Point`, or a `Flaw`. Every benchmark shape becomes such a row first."""

from __future__ import annotations

from math import isfinite
from typing import Any

from store.readers import doubts
from store.readers.columns import Columns, columns
from store.readers.deployment import deployment
from store.readers.values import LIMIT, Flaw, Row, block, number, shown
from store.records import Caveat, Extra, Place, Point, RunKey

_ABSENT = frozenset({"", "n/a", "na", "none", "null"})
_FLOAT = {float}


def point(row: Row, raw: str, run: RunKey, place: Place, pool: str | None = None) -> Point:
    """Read a flat row whole; `Flaw` names the field that forbids it. `pool` stands in where the row names none."""
    _refuse_failed(row)
    keys = columns(tuple(row))
    who = deployment(row, keys)
    metrics, extra, lost = measured(row, keys)
    invalid, said = _doubts(row, metrics, who.curve.scenario == "agentic_traces")
    series = who.at(concurrency(row))
    metrics, refused, power = doubts.power(metrics, series.layout)
    extra = {**extra, **refused}
    overfull = doubts.denominator(series, metrics)
    invalid = invalid or doubts.impossible(overfull)
    caveats = who.caveats + lost + said + overfull + power
    # By position: 3.0 microseconds instead of 5.7 with names, of the 25 that reading a row takes.
    return Point(run, series, metrics, place, raw, who.image, who.recipe, who.pool or pool, invalid, caveats, extra)


def concurrency(row: Row) -> int:
    """Concurrent requests of a row: a positive whole number, which older agentic rows call `users`."""
    field = "conc" if row.get("conc") is not None else "users"
    value = row.get(field)
    if type(value) is int and 0 < value < LIMIT:
        return value
    if value is None or value == "":
        raise Flaw("conc", "missing_field")
    read = number(value)
    if read is None or not 1 <= read < LIMIT or read != int(read):
        raise Flaw(field, "bad_value", shown(value))
    return int(read)


def measured(row: Row, keys: Columns) -> tuple[dict[str, float], dict[str, Extra], tuple[Caveat, ...]]:
    """Metrics, further values, and a caveat for each kind of value that was lost on the way."""
    values = keys.values(row)
    found: dict[str, Any] = dict(zip(keys.metrics, values, strict=True))
    metrics, lost = (found, []) if _plain(values) else _checked(found)
    extra: dict[str, Extra] = {**_further(row, keys.further, lost)} if keys.further else {}
    if keys.texts:
        extra |= _texts(row, keys.texts)
    caveats = (Caveat.of("non_finite", fields=" ".join(sorted(lost))),) if lost else ()
    if metrics and min(metrics.values()) <= 0 and (zeros := doubts.undefined(metrics)):
        metrics = {key: value for key, value in metrics.items() if key not in zeros}
        caveats = (*caveats, Caveat.of("zero_latency", fields=" ".join(sorted(zeros))))
    return metrics, extra, caveats


def _plain(values: tuple[Any, ...]) -> bool:
    """Nothing but finite floats, as most rows are. A sum is finite only if its terms are."""
    return {*map(type, values)} <= _FLOAT and isfinite(sum(values))


def _checked(found: dict[str, Any]) -> tuple[dict[str, float], list[str]]:
    metrics: dict[str, float] = {}
    lost: list[str] = []
    for key, value in found.items():
        if value is None or (isinstance(value, str) and value.strip().lower() in _ABSENT):
            continue
        read = float(value) if isinstance(value, bool) and key == "power_valid" else number(value)
        if read is None:
            raise Flaw(key, "bad_value", shown(value))
        if isfinite(read):
            metrics[key] = read
        else:
            lost.append(key)
    return metrics, lost


def _further(row: Row, keys: tuple[str, ...], lost: list[str]) -> dict[str, float]:
    """Numbers and switches that no table knows. Text is left to the raw row; what is not finite is named in `lost`."""
    extra: dict[str, float] = {}
    for key in keys:
        value = row[key]
        read = float(value) if isinstance(value, bool) else number(value) if not isinstance(value, str) else None
        if read is not None and isfinite(read):
            extra[key] = read
        elif read is not None:
            lost.append(key)
    return extra


_TEXT_LENGTH = 200


def _texts(row: Row, keys: tuple[str, ...]) -> dict[str, Extra]:
    """What else ran, each as one text: a name, or name and version of an object. Other shapes say nothing."""
    found: dict[str, Extra] = {}
    for key in keys:
        value = row[key]
        parts = (value.get("name"), value.get("version")) if isinstance(value, dict) else (value,)
        text = " ".join(part.strip() for part in parts if isinstance(part, str)).strip()
        if text and text.lower() not in _ABSENT:
            found[key] = text[:_TEXT_LENGTH]
    return found


def _doubts(row: Row, metrics: dict[str, float], agentic: bool) -> doubts.Doubts:
    total = metrics.get("num_requests_total", number(row.get("num_prompts")))
    successful = metrics.get("num_requests_successful", number(row.get("completed")))
    if agentic:
        failed, said = doubts.agentic_completion(total, successful, number(row.get("records_error_dropped")))
    else:
        failed, said = doubts.completion(total, successful)
        said += doubts.interactivity(metrics)
    flaw = _outcome(row) or failed or doubts.throughput(metrics) or doubts.invalid_latency(metrics)
    return flaw or doubts.duration(row, metrics), said


def _refuse_failed(row: Row) -> None:
    """A row may say itself that its benchmark failed: evidence of a failure, never a measurement."""
    if _status(row) == "failed":
        raise Flaw("benchmark_outcome", "benchmark_failed")


def _outcome(row: Row) -> Caveat | None:
    """A row that says it ended in another way than by success: measured, but not whole."""
    status = _status(row)
    return Caveat.of("benchmark_outcome", status=status) if status not in doubts.SUCCESS else None


def _status(row: Row) -> str:
    status = block(row, "benchmark_outcome").get("status") if "benchmark_outcome" in row else None
    return status.strip().lower() if isinstance(status, str) else ""
