"""What `tracker ingest` says when it is done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from store.duck import Info, Loaded
from store.travel import Carried, Plan
from tracker.jobs import Ingested

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
    lines.append(f"database {_size(found.database_bytes)}, archive {_size(found.archive_bytes)}")
    lines.append(f"schema {found.schema_version}, DuckDB {found.duckdb_version}")
    if found.newest:
        lines.append(f"newest run {found.newest.key}, started {found.newest.started_at:%Y-%m-%d %H:%M} UTC")
    lines += [
        f"in the archive, not in the database: {path} (tracker store rebuild loads it)" for path in found.not_loaded
    ]
    return "\n".join(lines)


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
    return "\n".join(lines + [f"left out: {flaw}" for flaw in loaded.broken])


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
