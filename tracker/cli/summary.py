"""What `tracker ingest` and `tracker store` say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from reports.escapes import clean
from store.duck import Info, Loaded, States
from store.records import Caveat
from store.travel import Carried, Plan
from tracker.jobs import Ingested, Withdrawn

SHOWN = 5
"""Names in one line."""


def ingested(found: Ingested, *, dry_run: bool) -> str:
    """Counts first, then every reason, with the words that stood in the file."""
    landed = "would land" if dry_run else "landed"
    lines = [
        f"{landed}: {found.points} points and {found.scores} scores of {_count(found.runs, 'run attempt')}",
        f"not added: {found.duplicates} duplicates",
    ]
    if found.superseded:
        lines.append(f"superseded by a later attempt: {found.superseded} (kept)")
    lines += _section("kept, not judged", found.invalid)
    lines += _section("rejected (kept in the store)", found.rejections)
    lines += _section("unmapped spellings (kept, judged only against themselves)", found.unmapped)
    lines += [f"unofficial: run {run} ({why})" for run, why in found.unofficial]
    return "\n".join(lines)


def info(found: Info) -> str:
    """Counts by kind, sizes, versions, and what the archive has and the database has not."""
    lines = [f"{number:>9,}  {kind.replace('_', ' ')}" for kind, number in found.counts.items()]
    lines += _section("reasons why run attempts are not official", found.unofficial)
    lines.append(f"database {_size(found.database_bytes)}, archive {_size(found.archive_bytes)}")
    lines.append(f"schema {found.schema_version}, DuckDB {found.duckdb_version}")
    if found.newest:
        lines.append(f"newest run {found.newest.key}, started {found.newest.started_at:%Y-%m-%d %H:%M} UTC")
    lines += [
        f"in the archive, not in the database: {path} (tracker store rebuild loads it)" for path in found.not_loaded
    ]
    return "\n".join(lines)


def states(found: Iterable[States]) -> str:
    """Each run attempt with its standing, then its rows by status and reason."""
    lines: list[str] = []
    for one in found:
        kept = "official" if one.standing.official else f"not official ({why(one.standing.reasons)})"
        lines.append(f"run {one.run}, started {one.started_at:%Y-%m-%d %H:%M} UTC: {kept}")
        lines += [f"{count:>9,}  {kind} {status}" + f": {code}" * bool(code) for kind, status, code, count in one.rows]
    return "\n".join(lines) or "no run has landed"


def withdrawn(found: Iterable[Withdrawn], file: Path | None) -> str:
    """Each withdrawal with its reason, what it takes out, and where that was cited."""
    lines: list[str] = []
    for one in found:
        effect, entry = one.effect, one.effect.withdrawal
        part = f"/{entry.attempt}" * bool(entry.attempt) + "".join(
            f" {name}={clean(value)}" for name, value in entry.point
        )
        lines.append(
            f"run {entry.run}{part}, since {entry.since} ({entry.kind}: {clean(entry.reason)}) {clean(entry.source)}"
        )
        if effect.runs:
            runs = ", ".join(map(str, effect.runs))
            lines.append(f"  takes out {effect.points} points and {effect.scores} scores of {runs}")
        else:
            lines.append(f"  fits nothing in this store: look at {entry.place}")
        lines += [f"  cited by the stored comparison {name}" for name in one.cited_by]
    if lines:
        return "\n".join(lines)
    return (
        f"nothing is withdrawn: {file} has no entry"
        if file
        else "nothing is withdrawn: there is no file of withdrawals"
    )


def why(reasons: Iterable[Caveat]) -> str:
    """The values of reasons in one line, each with its name."""
    return ", ".join(f"{name} {clean(str(value))}" for reason in reasons for name, value in reason.values)


def rebuilt(loaded: Loaded) -> str:
    """What came from the archive, and what could not."""
    landed = loaded.landed
    lines = [f"rebuilt from {_count(loaded.files, 'file')}: {landed.points} points, {landed.scores} scores"]
    return "\n".join(lines + [f"left out: {flaw}" for flaw in loaded.broken])


def carried(done: Carried, how: str, place: str) -> str:
    """What was copied and what was there; what could not be, by name."""
    lines = [f"{how} {place}: {_count(done.files, 'file')}, {_size(done.bytes)}; there already: {done.present}"]
    return "\n".join(lines + _left(done))


def planned(work: Plan, place: str) -> str:
    """What a push would copy."""
    lines = [f"would push to {place}: {_count(len(work.missing), 'file')}; there already: {len(work.present)}"]
    return "\n".join([*lines, *_left(work), "nothing was sent: add --send"])


def _left(done: Carried | Plan) -> list[str]:
    lines = [f"not copied: {flaw}" for flaw in done.refused]
    if done.strangers:
        named = ", ".join(repr(name) for name in done.strangers[:SHOWN])
        more = f" and {len(done.strangers) - SHOWN} more" if len(done.strangers) > SHOWN else ""
        lines.append(f"no files of an archive, left alone: {named}{more}")
    return lines


def caught_up(loaded: Loaded) -> str:
    """What the database took over."""
    landed = loaded.landed
    lines = [f"loaded {_count(loaded.files, 'file')}: {landed.points} points, {landed.scores} scores"]
    if loaded.left_out:
        lines.append(f"not chosen: {_count(loaded.left_out, 'file')} (tracker store refresh brings them)")
    lines += [f"left out: {flaw}" for flaw in loaded.broken]
    return "\n".join(lines + _unlisted(loaded.unlisted))


def _unlisted(names: Sequence[str]) -> list[str]:
    """What landed and is not in the bucket's list: kept, and no reason to forget anything."""
    if not names:
        return []
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return [
        f"in the database, not listed in the archive: {names[0]}{more}; the list was behind, or somebody deleted files:"
        " refresh again, and if it stays, push the copies back (docs/archive.md)"
    ]


def _size(number: int) -> str:
    return f"{number / 2**20:.1f} MiB"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + "s" * (number != 1)


def _section(title: str, counts: Mapping[str, int]) -> Iterable[str]:
    if counts:
        yield f"{title}: {sum(counts.values())}"
        yield from (
            f"  {count:>5}  {reason}" for reason, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        )
