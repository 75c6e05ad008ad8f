"""The public API's `workflow-info`, and runs that are told by several answers: rows name them only by an address."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from store.readers.document import Document
from store.readers.notes import entry
from store.readers.rows import UNKNOWN_ATTEMPT
from store.readers.settle import settle
from store.readers.values import Flaw, Row, shown
from store.records import Batch, Point, Rejection, Run, RunKey, Score
from store.runs import parse_run

T = TypeVar("T", Point, Score, Rejection)


def is_workflow_info(_: Document, keys: frozenset[str]) -> bool:
    """The answer that tells runs and changelogs together."""
    return {"runs", "changelogs"} <= keys


def workflow_info(document: Document) -> Iterator[Batch]:
    """Title, start and conclusion of each run, and what its changelog entries asked for."""
    answer = document.value if isinstance(document.value, dict) else {}
    runs: dict[object, Run] = {}
    for index, one in enumerate(_members(answer, "runs")):
        try:
            run = _run(one)
        except ValueError as flaw:
            yield document.rejected("runs", "bad_run", str(flaw), one, index)
            continue
        runs[str(run.id)] = run
        yield Batch(run)
    for index, one in enumerate(_members(answer, "changelogs")):
        yield _changelog(document, runs, one, index)


def _members(answer: Row, field: str) -> list[object]:
    value = answer.get(field)
    return value if isinstance(value, list) else []


def _run(one: object) -> Run:
    if isinstance(one, dict):
        one = {**one, "id": one.get("github_run_id", one.get("id"))}
    return parse_run(one, published=True)


def _changelog(document: Document, runs: dict[object, Run], one: object, index: int) -> Batch:
    try:
        if not isinstance(one, dict):
            raise Flaw("changelogs", "not_an_object", shown(one))
        run = runs.get(str(one.get("workflow_run_id")))
        if run is None:
            raise Flaw("workflow_run_id", "unknown_run", shown(one.get("workflow_run_id")))
        return Batch(run, changelog=(entry(one, one),))
    except Flaw as flaw:
        return document.rejected(flaw.field, flaw.reason, flaw.detail, one, index)


def published(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Join all answers by run attempt. An address without an attempt means the highest that the answers know."""
    held = list(batches)
    attempts: dict[int, int] = {}
    told: dict[int, Run] = {}
    for batch in held:
        run = batch.run
        attempts[run.id] = max(attempts.get(run.id, 1), run.attempt)
        if run.created_at:
            told.setdefault(run.id, run)
    yield from settle(_placed(batch, attempts[batch.run.id], told.get(batch.run.id)) for batch in held)


def _placed(batch: Batch, attempt: int, told: Run | None) -> Batch:
    run = batch.run
    if run.attempt != UNKNOWN_ATTEMPT:
        return replace(batch, run=_dated(run, told))
    run = _dated(replace(run, attempt=attempt), told)
    return replace(
        batch,
        run=run,
        points=_of_run(batch.points, run.key),
        scores=_of_run(batch.scores, run.key),
        rejections=_of_run(batch.rejections, run.key),
    )


def _dated(run: Run, told: Run | None) -> Run:
    """A run of several attempts has one title and one time of creation; history rows give only a date."""
    if told is None or told.created_at is None or run.created_at:
        return run
    return replace(run, started_at=told.created_at, created_at=told.created_at, title=run.title or told.title)


def _of_run(items: tuple[T, ...], key: RunKey) -> tuple[T, ...]:
    return tuple(replace(one, run=key) for one in items)
