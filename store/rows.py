"""Records as rows of the database's small tables, and one run made of everything that was said of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any, Final

import polars as pl

from store.frames import to_text
from store.identity import config_key, curve_key, layout_text, series_key
from store.records import Finding, Run, Series, Withdrawal
from store.runs import Standing
from store.withdrawals import POINT_FIELDS, caveat_of

RUNS: Final = {
    "id": pl.Int64,
    "attempt": pl.Int32,
    "started_at": pl.Datetime("us"),
    **dict.fromkeys(("repository", "path", "event", "head_branch", "head_sha", "status", "conclusion"), pl.String),
    "pull_request": pl.Int64,
    "published": pl.Boolean,
    "official": pl.Boolean,
    "reasons": pl.String,
    "record": pl.String,
}
SERIES: Final = {
    "id": pl.UInt64,
    **dict.fromkeys(
        ("key", "curve", "config", "model", "gpu", "framework", "precision", "spec", "scenario"), pl.String
    ),
    **dict.fromkeys(("isl", "osl"), pl.Int32),
    "offload": pl.Boolean,
    "layout": pl.String,
    "multinode": pl.Boolean,
    "conc": pl.Int32,
    "record": pl.String,
}
FINDINGS: Final = {
    "comparison": pl.String,
    "position": pl.Int32,
    **dict.fromkeys(("scope", "key", "metric", "verdict", "config", "rules_version", "record"), pl.String),
}


WITHDRAWALS: Final = {
    "number": pl.Int32,
    "run_id": pl.Int64,
    "attempt": pl.Int32,
    "in_part": pl.Boolean,
    "caveat": pl.String,
    **dict.fromkeys(POINT_FIELDS, pl.String),
}


def withdrawal_row(number: int, one: Withdrawal) -> dict[str, Any]:
    """A row of the temporary table `withdrawals`: a field that the entry does not name is NULL and fits everything."""
    own = {"number": number, "run_id": one.run, "attempt": one.attempt, "in_part": bool(one.point)}
    return {**dict.fromkeys(POINT_FIELDS), **own, "caveat": to_text(caveat_of(one)), **dict(one.point)}


def _shared(columns: Mapping[str, Any], record: type[Any]) -> tuple[str, ...]:
    """The columns that a record has a field for."""
    own = {field.name for field in fields(record)}
    return tuple(name for name in columns if name in own)


_SHARED_RUN_FIELDS: Final = _shared(RUNS, Run)
_SHARED_SERIES_FIELDS: Final = _shared(SERIES, Series)
_SHARED_FINDING_FIELDS: Final = _shared(FINDINGS, Finding)
_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)


def key_id(key: str) -> int:
    """The 64-bit id of a text key: the same in every store, whatever landed first."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big")


def run_row(run: Run, standing: Standing) -> dict[str, Any]:
    """A row of the table `runs`; times lose their zone, which is UTC."""
    shared = {name: getattr(run, name) for name in _SHARED_RUN_FIELDS}
    started_at = run.started_at.astimezone(UTC).replace(tzinfo=None)
    return {**shared, "started_at": started_at, **standing_row(standing), "record": to_text(run)}


def standing_row(standing: Standing) -> dict[str, Any]:
    """The columns of `runs` that say whether a run is official, and if not, why."""
    return {"official": standing.official, "reasons": to_text(standing.reasons)}


def series_row(text: str, series: Series) -> dict[str, Any]:
    """A row of the table `series`; `text` is its JSON."""
    own = {name: getattr(series, name) for name in _SHARED_SERIES_FIELDS}
    key = series_key(series)
    return {
        **own,
        "id": key_id(key),
        "key": key,
        "curve": curve_key(series),
        "config": config_key(series),
        "layout": layout_text(series.layout),
        "multinode": series.layout.multinode,
        "record": text,
    }


def finding_row(comparison: str, position: int, finding: Finding) -> dict[str, Any]:
    """A row of the table `findings`."""
    own = {name: str(getattr(finding, name)) for name in _SHARED_FINDING_FIELDS}
    return {"comparison": comparison, "position": position, **own, "record": to_text(finding)}


def frame(rows: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]) -> pl.DataFrame:
    """Rows as a frame of declared columns, also when there are none."""
    return pl.DataFrame(rows, schema=dict(schema), orient="row")


def merge_runs(said: Sequence[Run]) -> Run:
    """One run made of everything that was said of it, in whatever order: per field what the fullest record says.

    `status` follows the record that knows a conclusion; a run is published when any record says so.
    """
    blank = Run(said[0].id, said[0].attempt, _EARLIEST)
    best, *others = sorted(said, key=lambda run: (len(_told(run, blank)), to_text(run)), reverse=True)
    ended = next((run for run in (best, *others) if run.conclusion is not None), best)
    for other in others:
        gaps = _told(other, blank) - _told(best, blank)
        best = replace(best, **{name: getattr(other, name) for name in gaps})
    return replace(best, status=ended.status or best.status)


def _told(run: Run, blank: Run) -> set[str]:
    return {f.name for f in fields(Run) if getattr(run, f.name) != getattr(blank, f.name)}
