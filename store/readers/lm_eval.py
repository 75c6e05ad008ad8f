"""Results of the evaluation harness (`results*.json` beside `meta_env.json`), one score per task."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from store.readers.decode import text_of
from store.readers.document import Document
from store.readers.scores import from_commas, score
from store.readers.values import Flaw, Row, block, integer, shown
from store.records import Batch, Place, Score

_TIME = re.compile(r"results_(\d{4}-\d{2}-\d{2})T(\d{2})[-:](\d{2})[-:](\d{2})(\.\d{1,6})?")
_CONC = re.compile(r"_conc(\d{1,9})(?:_\d+)?\.json$")


def fits(_: Document, keys: frozenset[str]) -> bool:
    """Upstream's signature of a results file: the version of the harness."""
    return "lm_eval_version" in keys


def read(document: Document) -> Iterator[Batch]:
    """Scores of one results file; a concurrency that its job did not complete has none."""
    try:
        yield Batch(document.run, scores=tuple(_scores(document)))
    except Flaw as flaw:
        yield document.rejected(flaw.field, flaw.reason, flaw.detail, document.value)


def _scores(document: Document) -> Iterator[Score]:
    value = document.value
    if not isinstance(value, dict):
        raise Flaw("", "not_an_object", shown(value))
    meta = dict(document.meta or {"model": value.get("model_name")})
    results = block(value, "results")
    if not results:
        raise Flaw("results", "missing_field")
    meta["conc"] = _concurrency(document, meta)
    place = Place(document.file, 0, _written(document), document.collected)
    for index, task in enumerate(results):
        flat = {**meta, **from_commas(block(results, task)), "task": task}
        flat["n_eff"] = block(block(value, "n-samples"), task).get("effective")
        yield score(flat, text_of(flat), document.run.key, replace(place, index=index), document.pool)


def _concurrency(document: Document, meta: Row) -> object:
    """A batch of concurrencies writes one file for each, with the concurrency in its name."""
    if not isinstance(meta.get("eval_concs"), list):
        return meta.get("conc")
    found = _CONC.search(document.name)
    if found is None:
        raise Flaw("conc", "missing_field", document.name)
    conc = int(found[1])
    completed = _numbers(meta, "completed_eval_concs")
    if conc in _numbers(meta, "failed_eval_concs") or ("completed_eval_concs" in meta and conc not in completed):
        raise Flaw("conc", "eval_failed", str(conc))
    return conc


def _numbers(meta: Row, field: str) -> frozenset[int]:
    value = meta.get(field)
    if value is None:
        return frozenset()
    if not isinstance(value, list):
        raise Flaw(field, "bad_value", shown(value))
    return frozenset(integer({field: one}, field, 0, 0) for one in value)


def _written(document: Document) -> datetime | None:
    """The harness's own time in the file name orders reruns; the artifact's time stands in."""
    found = _TIME.search(document.name)
    if found is None:
        return document.created_at
    try:
        text = f"{found[1]}T{found[2]}:{found[3]}:{found[4]}{found[5] or ''}"
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        return document.created_at
