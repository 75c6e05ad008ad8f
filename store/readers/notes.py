"""Files about a run that hold no measurement: what it was asked for, how its jobs ended, and answers we do not keep."""

from __future__ import annotations

from collections.abc import Iterator

from store.readers.document import Document
from store.readers.values import Flaw, Row, flag, integer, shown, word
from store.records import Batch, ChangelogEntry, JobCount

_UNUSED = (
    frozenset({"source_run_id", "ingest_run_id"}),
    frozenset({"summary", "volume"}),
    frozenset({"run_attempt", "run_started_at"}),
    frozenset({"hardware", "date", "n_success", "total"}),
    frozenset({"hardware", "date", "spec_method", "precision"}),
)
"""Key sets of known files with nothing to store: reused runs, submissions, run objects, reliability, availability."""


def is_changelog(_: Document, keys: frozenset[str]) -> bool:
    """`changelog_metadata.json`, by its references and entries."""
    return {"base_ref", "entries"} <= keys


def changelog(document: Document) -> Iterator[Batch]:
    """`changelog_metadata.json`: every entry, or a rejection in its place."""
    value = document.value
    entries = value.get("entries") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(entries, list):
        yield document.rejected("entries", "bad_value", shown(entries), value)
        return
    for index, one in enumerate(entries):
        try:
            yield Batch(document.run, changelog=(entry(value, one),))
        except Flaw as flaw:
            yield document.rejected(flaw.field, flaw.reason, flaw.detail, one, index)


def entry(refs: Row, one: object) -> ChangelogEntry:
    """One entry, in the artifact's spelling (`config-keys`) or the API's (`config_keys`, one text of several lines)."""
    if not isinstance(one, dict):
        raise Flaw("", "not_an_object", shown(one))
    row = {key.replace("-", "_"): value for key, value in one.items()}
    return ChangelogEntry(
        config_keys=_texts(row, "config_keys"),
        description=_texts(row, "description"),
        pr_link=word(row, "pr_link"),
        base_ref=word(refs, "base_ref"),
        head_ref=word(refs, "head_ref"),
        evals_only=flag(row, "evals_only"),
        all_evals=flag(row, "all_evals"),
        append_only=flag(row, "append_only"),
        scenario_types=_texts(row, "scenario_type"),
        eval_min_prefill_ep=integer(row, "eval_min_prefill_ep", 0, 0) or None,
    )


def _texts(row: Row, field: str) -> tuple[str, ...]:
    value = row.get(field)
    if value is None:
        return ()
    texts = value.split("\n") if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise Flaw(field, "bad_value", shown(value))
    return tuple(texts)


def is_run_stats(document: Document, _: frozenset[str]) -> bool:
    """By content, and by name where the content is the bare `null` of a failed API call."""
    value = document.value
    if isinstance(value, dict) and value:
        return all(isinstance(one, dict) and "n_success" in one for one in value.values())
    return not value and "run_stats" in f"{document.artifact} {document.name}".replace("-", "_")


def run_stats(document: Document) -> Iterator[Batch]:
    """Jobs by hardware; `null` says nothing, and 0 of 0 means that there were no jobs."""
    jobs = document.value if isinstance(document.value, dict) else {}
    for index, (hardware, counts) in enumerate(jobs.items()):
        try:
            succeeded, total = integer(counts, "n_success", 0, 0), integer(counts, "total", 0, 0)
            yield Batch(document.run, jobs=(JobCount(hardware, succeeded, total),))
        except Flaw as flaw:
            yield document.rejected(flaw.field, flaw.reason, flaw.detail, counts, index)


def is_unused(document: Document, keys: frozenset[str]) -> bool:
    """Known to hold nothing for us, empty, or a stranger beside eval results (samples, predictions)."""
    if document.value in ([], {}):
        return True
    return document.meta is not None or (any(known <= keys for known in _UNUSED) and "metrics" not in keys)


def nothing(_: Document) -> Iterator[Batch]:
    """Read nothing."""
    yield from ()
