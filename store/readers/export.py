"""The dashboard's CSV export: comment lines, and headers that say milliseconds over values in seconds."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace

from store.readers.decode import text_of
from store.readers.document import Document, Gathering
from store.readers.points import point
from store.readers.values import Flaw, Row, number
from store.records import Batch, Caveat, Place, Point, Rejection, Run
from store.runs import dated, parse_time

_IDENTITY = {
    "Model": "model",
    "ISL": "isl",
    "OSL": "osl",
    "Hardware": "hw",
    "Framework": "framework",
    "Precision": "precision",
    "TP": "tp",
    "EP": "ep",
    "DP Attention": "dp_attention",
    "Concurrency": "conc",
    "Spec Decoding": "spec_decoding",
    "Disaggregated": "disagg",
    "Is Multinode": "is_multinode",
    "Num Prefill GPUs": "num_prefill_gpu",
    "Num Decode GPUs": "num_decode_gpu",
    "Image": "image",
}
_RATES = {
    "Throughput/GPU": "tput_per_gpu",
    "Output Throughput/GPU": "output_tput_per_gpu",
    "Input Throughput/GPU": "input_tput_per_gpu",
}
_LATENCIES = {"TTFT": "ttft", "TPOT": "tpot", "ITL": "itl", "E2E Latency": "e2el"}
_MODELS = {
    "deepseek-r1-0528": "dsr1",
    "deepseek-v4-pro": "dsv4",
    "qwen-3.5-397b-a17b": "qwen3.5",
    "gpt-oss-120b": "gptoss120b",
    "llama-3.3-70b-instruct-fp8": "llama70b",
    "kimi-k3": "kimik3",
    "minimax-m3": "minimaxm3",
    "glm-5.2": "glm5.2",
}
"""Display names that stand for one model; the others ("Kimi-K2.5") merge several and stay unknown."""

_TOLERANCE = 0.05


def fits(document: Document, _: frozenset[str]) -> bool:
    """The only text among the sources."""
    return isinstance(document.value, str) and document.name.lower().endswith(".csv")


def read(document: Document) -> Iterator[Batch]:
    """One point per line; each date is a run of its own unless the caller says which run it was."""
    lines = [line for line in str(document.value).splitlines() if line.strip() and not line.startswith("#")]
    gathering = Gathering()
    table = csv.DictReader(lines, strict=True)
    index = 0
    try:
        for index, line in enumerate(table):
            run = _run(document.run, line.get("Date"))
            gathering.add(run, _item(document, run, index, line))
    except csv.Error as flaw:
        gathering.take(document.rejected("", "malformed_csv", str(flaw), index=index))
    yield from gathering.batches()


def _item(document: Document, run: Run, index: int, line: dict[str, str]) -> Point | Rejection:
    place = Place(document.file, index, document.created_at, document.collected)
    try:
        if None in line or None in line.values():
            raise Flaw("", "malformed_csv", "another number of cells than the header has")
        flat, caveats = _flat(line)
        read_point = point(flat, text_of(line), run.key, place, document.pool)
        return replace(read_point, caveats=(*read_point.caveats, *caveats))
    except Flaw as flaw:
        raw = text_of({str(key): value for key, value in line.items()})
        return Rejection(place, flaw.field, flaw.reason, flaw.detail, raw, run.key)


def _run(run: Run, date: str | None) -> Run:
    try:
        return dated(run, parse_time(date)) if date else run
    except ValueError:
        return run


def _flat(line: dict[str, str]) -> tuple[Row, tuple[Caveat, ...]]:
    flat: dict[str, object] = {ours: line[theirs] for theirs, ours in _IDENTITY.items() if line.get(theirs)}
    flat["infmax_model_prefix"] = _MODELS.get(str(flat.get("model")).lower())
    timed: dict[str, tuple[str, str]] = {}
    for header, cell in line.items():
        name, _, unit = header.partition(" (")
        stat, _, what = name.partition(" ")
        if name in _RATES:
            flat[_RATES[name]] = cell
        elif what == "Interactivity":
            flat[f"{stat.lower()}_intvty"] = cell
        elif what in _LATENCIES:
            timed[f"{stat.lower()}_{_LATENCIES[what]}"] = cell, unit.rstrip(")")
    divisor, caveats = _divisor(timed, flat)
    return {**flat, **{key: _scaled(cell, divisor) for key, (cell, _) in timed.items()}}, caveats


def _divisor(timed: dict[str, tuple[str, str]], flat: Row) -> tuple[float, tuple[Caveat, ...]]:
    """Interactivity is 1/TPOT in seconds, so the product of the two tells the unit whatever the header says."""
    cell, unit = timed.get("median_tpot", ("", ""))
    said = 1000.0 if unit == "ms" else 1.0
    product = (number(cell) or 0.0) * (number(flat.get("median_intvty")) or 0.0)
    true = next((unit for unit in (1.0, 1000.0) if abs(product / unit - 1) < _TOLERANCE), None)
    if true is None:
        return said, (Caveat.of("unit_unverified", unit=unit or "s"),)
    if true == said:
        return true, ()
    return true, (Caveat.of("header_unit_wrong", said=unit or "s", true="s" if true == 1.0 else "ms"),)


def _scaled(cell: str, divisor: float) -> object:
    value = number(cell)
    return cell if value is None or divisor == 1.0 else value / divisor
