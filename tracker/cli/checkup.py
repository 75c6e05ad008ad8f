"""What `tracker store check` and `tracker store recover` say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from reports.escapes import clean
from store.checkup import Checkup, Flaw, Lost, Problem, Recovered

WORDS: Mapping[Problem, str] = MappingProxyType(
    {
        Problem.FILE_BROKEN: "archive file cut or altered",
        Problem.FILE_GONE: "archive file gone",
        Problem.NOT_LANDED: "in the archive, not in the database",
        Problem.NOT_KEPT: "in the database, not in the archive",
        Problem.DATABASE_MISSING: "no database",
        Problem.DATABASE_UNREADABLE: "database cannot be opened",
        Problem.LOG_UNREADABLE: "log of the database cannot be read",
        Problem.TABLE_UNREADABLE: "table cannot be read",
        Problem.ROWS_DIFFER: "rows differ from the archive's",
        Problem.SCHEMA_OLDER: "older schema (the next landing takes it forward)",
        Problem.SCHEMA_NEWER: "newer schema: upgrade sweep-tracker",
        Problem.FOREIGN: "database of something else",
    }
)
LOST: Mapping[Lost, str] = MappingProxyType(
    {
        Lost.NOTHING: "nothing",
        Lost.RAW: "nothing measured; the text of its rows",
        Lost.ROWS: "what it held: land it again, or pull it (tracker store pull WHERE)",
        Lost.NOTES: "notes of corrected reports that cannot be read; what was learned is learned again",
    }
)
REMEDY = "`tracker store recover` repairs it; what is damaged is put aside, not deleted"
DURABLE = "lost of what the archive holds: nothing"


def checked(found: Checkup, form: str) -> str:
    """What was read, then each problem with its run, its reason and what is lost by it."""
    return _json(_as_dict(found)) if form == "json" else "\n".join(_lines(found))


def recovered(done: Recovered, form: str) -> str:
    """What was wrong, what was done, and what is wrong still."""
    if form == "json":
        told = {"aside": done.aside, "rescued": done.rescued, "left_out": done.loaded.broken if done.loaded else ()}
        return _json({"before": _as_dict(done.before), **told, "after": _as_dict(done.after)})
    if not done.before.flaws:
        return "nothing to repair\n" + _read(done.before)
    lines = [*map(_line, done.before.flaws)]
    lines += [f"put aside: {clean(path)}" for path in done.aside]
    lines += [f"written anew from the rows of the database: {clean(path)}" for path in done.rescued]
    if done.loaded is not None:
        landed = done.loaded.landed
        lines.append(f"landed from the archive: {landed.points} points, {landed.scores} scores")
        lines += [f"left out: {clean(flaw)}" for flaw in done.loaded.broken]
    return "\n".join([*lines, "", "afterwards:", *_lines(done.after)])


def _lines(found: Checkup) -> Iterator[str]:
    yield _read(found)
    yield from map(_line, found.flaws)
    yield from (f"draft of a process that was killed, read by nobody: {clean(path)}" for path in found.left_over)
    if found.is_clean:
        yield "clean"
        return
    yield f"problems: {len(found.flaws)}; {REMEDY}"
    if not any(flaw.lost is Lost.ROWS for flaw in found.flaws):
        yield DURABLE


def _read(found: Checkup) -> str:
    rows = ", ".join(f"{number:,} {table}" for table, number in found.rows.items() if number)
    return f"read: {found.files} archive files; database (schema {found.version}): {rows or 'no rows'}"


def _line(flaw: Flaw) -> str:
    run = f"run {flaw.run}: " if flaw.run else ""
    reason = f" ({clean(flaw.reason)})" if flaw.reason else ""
    return f"{run}{WORDS[flaw.problem]}: {clean(flaw.where)}{reason}; lost: {LOST[flaw.lost]}"


def _as_dict(found: Checkup) -> dict[str, Any]:
    flaws = [{**asdict(flaw), "run": str(flaw.run) if flaw.run else None} for flaw in found.flaws]
    return {"clean": found.is_clean, **asdict(found), "flaws": flaws}


def _json(told: object) -> str:
    return json.dumps(told, ensure_ascii=False, indent=1)
