"""Arrays of rows, whatever shape each member has: benchmark or eval, of an artifact or of the public API."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from store.readers import agentic
from store.readers.decode import text_of
from store.readers.document import Document, Gathering
from store.readers.points import point
from store.readers.scores import from_commas, score
from store.readers.values import Flaw, Row, block, integer, shown, word
from store.records import Batch, Place, Point, Rejection, Run, RunKey, Score
from store.runs import dated, parse_time, parse_url

UNKNOWN_ATTEMPT = 0
"""Attempt of an address that names none; settled when all answers of the API are read."""

_LENGTHS = re.compile(r"(?:^|[_/!-])(\d{1,4})k(\d{1,4})k(?=[_./!-]|$)")
_NAMED = re.compile(r"(?:agg_|bmk_|results_bmk|results_all|eval_results_all)")
_TELLING = frozenset({"tput_per_gpu", "conc", "users", "request_metrics", "benchmark_outcome", "median_ttft"})
_SCORED = ("em_", "score", "exact_match", "metrics", "acc")


@dataclass(frozen=True, slots=True)
class RowShape:
    """A shape of benchmark row and the way to the flat row that `points` reads. A new era is an entry in `SHAPES`."""

    name: str
    fits: Callable[[Row], bool]
    flat: Callable[[Row], Row]


def is_published(row: Row) -> bool:
    """A row of the public API: metrics in a block of their own, hardware spelled out."""
    return "metrics" in row and "hardware" in row


def from_published(row: Row) -> Row:
    """Metrics beside identity; the API's `model` is the family that artifacts call `infmax_model_prefix`."""
    flat = {key: value for key, value in row.items() if key != "metrics"}
    flat["infmax_model_prefix"] = flat.pop("model", None)
    return {**block(row, "metrics"), **flat}


SHAPES = (
    RowShape("published", is_published, from_published),
    RowShape("agentx", agentic.is_nested, agentic.from_nested),
    RowShape("agentic", agentic.is_flat, agentic.from_flat),
)


_SHAPED = frozenset({"metrics", "request_metrics", "scenario_type", "offloading", "users"})
"""A row without any of these is the flat row already, as nearly all are."""


def fits(document: Document, keys: frozenset[str]) -> bool:
    """A measurement of any era by its keys; by its name a file that upstream says is one, whatever it holds."""
    if keys & _TELLING or ("task" in keys and any(key.startswith(_SCORED) for key in keys)):
        return True
    return document.meta is None and bool(_NAMED.match(document.name) or _NAMED.match(document.artifact))


def read(document: Document) -> Iterator[Batch]:
    """The rows of a file that is an array of rows, or one row."""
    value = document.value
    yield from read_rows(document, value if isinstance(value, list) else [value])


def read_rows(document: Document, rows: Iterable[object]) -> Iterator[Batch]:
    """Each row to an item of the run that it names, or of the document's run."""
    gathering = Gathering()
    lengths, key = _lengths(document), document.run.key
    for index, row in enumerate(rows):
        run, item = _read(document, index, row, key, lengths)
        gathering.add(run, item)
    yield from gathering.batches()


def _read(
    document: Document, index: int, row: object, key: RunKey, lengths: Row
) -> tuple[Run, Point | Score | Rejection]:
    run = document.run
    place = Place(document.file, index, document.created_at, document.collected)
    try:
        if not isinstance(row, dict):
            raise Flaw("", "not_an_object", shown(row))
        run = _own_run(row, run)
        key = key if run is document.run else run.key
        if "created_at" in row:
            place = replace(place, created_at=_moment(row, "created_at") or document.created_at)
        return run, _item(row, key, place, document.pool, lengths)
    except Flaw as flaw:
        return run, Rejection(place, flaw.field, flaw.reason, flaw.detail, text_of(row), key)


def _item(row: Row, run: RunKey, place: Place, pool: str | None, lengths: Row) -> Point | Score:
    raw = text_of(row)
    if "task" in row:
        flat = from_published(row) if is_published(row) else row
        return score(flat if "em_strict" in flat else from_commas(flat), raw, run, place, pool)
    flat = _flat(row)
    if lengths and not flat.get("isl") and not flat.get("osl"):
        flat = {**flat, **lengths}
    return point(flat, raw, run, place, pool)


def _flat(row: Row) -> Row:
    if row.keys().isdisjoint(_SHAPED):
        return row
    return next((shape.flat(row) for shape in SHAPES if shape.fits(row)), row)


def _lengths(document: Document) -> Row:
    """Before 2025-11-21 the sequence lengths stood only in the name of the file or artifact (`..._1k8k_...`)."""
    found = _LENGTHS.search(document.artifact) or _LENGTHS.search(document.name)
    return {"isl": int(found[1]) * 1024, "osl": int(found[2]) * 1024} if found else {}


def _own_run(row: Row, run: Run) -> Run:
    """The run that a row names itself, else the document's."""
    if is_published(row) or row.get("run_url") is not None:
        return _published_run(row, run)
    if row.get("run_id") is None and row.get("run_attempt") is None:
        return run
    identifier = _run_id(row) or run.id
    attempt = integer(row, "run_attempt", run.attempt if identifier == run.id else 1)
    if (identifier, attempt) == (run.id, run.attempt):
        return run
    created = _moment(row, "created_at")
    if identifier == run.id:
        return replace(run, attempt=attempt, started_at=created or run.started_at)
    return Run(identifier, attempt, created or run.started_at)


def _published_run(row: Row, run: Run) -> Run:
    """The run of an address, else whatever the API published of that day."""
    moment = _moment(row, "timestamp")
    start = moment or _moment(row, "date") or run.started_at
    if row.get("run_url") is not None:
        return _linked(word(row, "run_url"), start, moment, is_published(row))
    return replace(dated(run, start), published=True) if run.event == "local" else run


def _run_id(row: Row) -> int:
    """Run ids passed 2^31 long ago, and as text they must not pass through a float."""
    value = row.get("run_id")
    digits = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19
    return integer({"run_id": int(str(value))} if digits else row, "run_id", 0, 1, 2**63)


@lru_cache(maxsize=4096)
def _linked(url: str, start: datetime, created: datetime | None, published: bool) -> Run:
    link = parse_url(url)
    if link is None:
        raise Flaw("run_url", "bad_value", shown(url))
    return Run(
        id=link.id,
        attempt=link.attempt or UNKNOWN_ATTEMPT,
        started_at=start,
        repository=link.repository,
        url=url,
        created_at=created,
        published=published,
    )


def _moment(row: Row, field: str) -> datetime | None:
    text = word(row, field)
    try:
        return _time(text) if text else None
    except (ValueError, OverflowError):
        raise Flaw(field, "bad_value", shown(text)) from None


_time = lru_cache(maxsize=4096)(parse_time)
