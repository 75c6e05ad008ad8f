"""A store that holds a part of its archive says so: what it did not take in is not judged, and never "new"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from store.duck import Store
from store.records import Caveat, Finding, Trouble, Unmatched, Verdict

NOT_SYNCED = Caveat("not_synced")
_UNKNOWN = frozenset({"no_baseline", "new_point"})
"""Codes of reasons that only a whole store may give."""
_REMEDY = "`tracker store refresh` brings the rest"


def caveats(past: Store | None) -> tuple[Caveat, ...]:
    """How many files of the archive the store has left out, where it has."""
    left_out = 0 if past is None else past.left_out
    return (Caveat.of("partial_store", files=left_out),) if left_out else ()


def findings(found: Iterable[Finding], past: Store | None) -> Iterator[Finding]:
    """Findings; one without a baseline is not judged where the baseline may have been left out."""
    unsure = _unsure(past)
    for one in found:
        yield _unjudged(one) if one.verdict in unsure else one


def _unjudged(one: Finding) -> Finding:
    kept = (caveat for caveat in one.caveats if caveat.code not in _UNKNOWN)
    return replace(one, verdict=Verdict.NOT_JUDGED, caveats=(NOT_SYNCED, *kept))


def unmatched(rows: Iterable[Unmatched], past: Store | None) -> Iterator[Unmatched]:
    """The same for rows without a twin."""
    unsure = _unsure(past)
    for row in rows:
        yield replace(row, verdict=Verdict.NOT_JUDGED, reason=NOT_SYNCED) if row.verdict in unsure else row


def _unsure(past: Store | None) -> frozenset[Verdict]:
    """Verdicts that only a whole store may give, where this one holds a part."""
    return frozenset({Verdict.NO_BASELINE}) if past is not None and past.left_out else frozenset()


def absent(run: object, past: Store) -> Trouble:
    """What is said of a run that the store does not hold."""
    rest = f", or it was left out with {past.left_out} files: {_REMEDY}" if past.left_out else ""
    return Trouble(f"run {run} is not in the store: land it with `tracker ingest`{rest}")


def refuse(store: Store | None, what: str) -> None:
    """Raises Trouble where something is told of the whole history and the store holds a part of it."""
    if store is not None and store.left_out:
        raise Trouble(f"{what} needs the whole archive, and {store.left_out} files of it were left out: {_REMEDY}")
