"""The run bundle, our exchange form (docs/run-bundle.md): a GitHub run object with its rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from store import identity
from store.readers.document import Document
from store.readers.rows import read_rows
from store.readers.settle import settle
from store.readers.values import shown
from store.records import Batch
from store.runs import parse_run


def fits(_: Document, keys: frozenset[str]) -> bool:
    """A run together with rows or evals."""
    return "run" in keys and bool(keys & {"rows", "evals"})


def read(document: Document) -> Iterator[Batch]:
    """Each bundle of the file, one after the other: of a long history the points of one run are held at a time."""
    if not isinstance(document.value, list):
        yield from _bundle(document)
        return
    for index, member in enumerate(document.value):
        yield from _bundle(replace(document, file=f"{document.file}#{index}", value=member))


def _bundle(document: Document) -> Iterator[Batch]:
    bundle = document.value
    if not isinstance(bundle, dict):
        yield document.rejected("", "not_an_object", shown(bundle), bundle)
        return
    try:
        run = parse_run(bundle.get("run"))
    except ValueError as flaw:
        yield document.rejected("run", "bad_run", str(flaw), bundle.get("run"))
        return
    document = replace(document, run=run, pool=_pool(bundle["run"].get("runner_name")))
    yield from settle((Batch(run), *_part(document, bundle, "rows"), *_part(document, bundle, "evals")))


def _part(document: Document, bundle: dict[str, object], part: str) -> Iterator[Batch]:
    rows = bundle.get(part)
    if rows is None:
        return
    document = document if part == "rows" else replace(document, file=f"{document.file}#{part}")
    if isinstance(rows, list):
        yield from read_rows(document, rows)
    else:
        yield document.rejected(part, "bad_value", shown(rows), rows)


def _pool(runner: object) -> str | None:
    return identity.hardware(runner).pool if isinstance(runner, str) else None
