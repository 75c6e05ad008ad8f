"""Reads a database that may be damaged, in a process of its own: what ends that process ends nothing else.

`look` starts `python -m store.salvage`, which copies the database and reads every row and key of the copy, so that
every checksum is held against its block, and says table by table what it met. A damaged table takes no other one with
it, a damaged log of the last transactions (the `.wal`) not the database that it belongs to.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import duckdb

from store.questions import escaped, question, quoted, schema_steps
from store.records import RunKey

TABLES: Final = ("landed", "runs", "series", "points", "scores", "details", "findings", "reviews", "events", "notes")
ALONE: Final = ("findings", "reviews", "events", "notes")
"""Tables with rows that may be in no file of the archive: they are written out."""
INDEXED: Final[Mapping[str, str]] = {
    "landed": "file",
    "runs": "id",
    "series": "id",
    "reviews": "run_id",
    "notes": "key",
}
"""Tables with a key, and a column of it. The index of a key has blocks of its own."""

FINDINGS: Final = "findings "
"""What the name of a mark of a comparison begins with."""

_OPENING: Final = "opening it"
_BUSY: Final = re.compile(r"lock on file.*?(?:\(PID (\d+)\)|$)", re.DOTALL)
_PRINTED: Final = ("landed", "runs", "details", "points", "scores")
_APART: Final = frozenset({"place", "place_index", "file", "series", "official", "reasons"})
"""Columns that say nothing of a measurement, or that the rules of today decide."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a database holds, as far as it could be read."""

    version: int = 0
    is_foreign: bool = False
    """Whether it is a database of something else."""
    busy: str = ""
    """The process that holds it, or "another process"; "" when nobody does."""
    flaw: str = ""
    """Why it could not be opened."""
    wal_flaw: str = ""
    """Why its log could not be read: what is told is of the database without the log."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """Tables that could not be read, each with the reason."""
    landed: Mapping[str, RunKey] = field(default_factory=dict)
    """Names of the files that landed."""
    prints: Mapping[str, str] = field(default_factory=dict)
    """By run attempt and table, or comparison: a mark of the rows, whatever their order."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """By table."""
    written: Mapping[str, Path] = field(default_factory=dict)
    """The tables of `ALONE` that could be read, as Parquet, and the rows of files that were asked for."""

    @property
    def is_sound(self) -> bool:
        """Whether every row could be read."""
        return not (self.flaw or self.wal_flaw or self.broken)


def look(database: Path, into: Path, rescue: Sequence[str] = ()) -> Seen:
    """Read a database as a whole; what is taken out of it is put into a folder.

    `rescue` names landed files whose rows are wanted.
    """
    into.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        "-m",
        "store.salvage",
        str(database.absolute()),
        str(into.absolute()),
        json.dumps(list(rescue)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1])
    told: dict[str, Any] = {}
    last = _OPENING
    for line in done.stdout.splitlines():
        one = json.loads(line)
        last = one.pop("reading", last)
        _merge(told, one)
    if done.returncode:
        _merge(told, _ended(done, last))
    return _seen(told)


def look_here(database: Path, into: Path, rescue: Sequence[str] = ()) -> Seen:
    """The same in this process, for a database that was made a moment ago."""
    into.mkdir(parents=True, exist_ok=True)
    told: dict[str, Any] = {}
    for one in _told(database, into, rescue):
        _merge(told, {name: value for name, value in one.items() if name != "reading"})
    return _seen(told)


def _ended(done: subprocess.CompletedProcess[str], last: str) -> dict[str, Any]:
    """What is to be said of a process that came to no end of its own."""
    code = done.returncode
    how = (
        f"signal {signal.Signals(-code).name}" if code < 0 else (done.stderr.strip().splitlines() or ["no reason"])[-1]
    )
    reason = f"reading it ended the process: {how}"
    return {"flaw": reason} if last == _OPENING else {"broken": {last: reason}}


def _merge(told: dict[str, Any], one: Mapping[str, Any]) -> None:
    for name, value in one.items():
        if isinstance(value, dict):
            told.setdefault(name, {}).update(value)
        else:
            told[name] = value


def _seen(told: dict[str, Any]) -> Seen:
    landed = {name: RunKey(*key) for name, key in told.pop("landed", {}).items()}
    written = {name: Path(path) for name, path in told.pop("written", {}).items()}
    return Seen(**told, landed=landed, written=written)


# ---------------------------------------------------------------- in the process of its own


def main(arguments: Sequence[str]) -> None:
    """Say what a database holds, a JSON object a line, each as soon as it is known."""
    database, into, rescue = Path(arguments[0]), Path(arguments[1]), json.loads(arguments[2])
    for told in _told(database, into, rescue):
        print(json.dumps(told), flush=True)


def _told(database: Path, into: Path, rescue: Sequence[str]) -> Iterator[dict[str, Any]]:
    path = into / "copy.duckdb"
    try:
        with _open(database):
            _copy(database, path)
    except duckdb.Error as flaw:
        if found := _BUSY.search(str(flaw)):
            yield {"busy": f"process {found[1]}" if found[1] else "another process"}
            return
        if not _has_log(database):
            yield {"flaw": _said(flaw)}
            return
        yield {"wal_flaw": _said(flaw)}
        shutil.copyfile(database, path)
    reader = _Reader(path)
    try:
        version, tables = reader.begin()
    except duckdb.Error as flaw:
        yield {"wal_flaw": "", "flaw": _said(flaw)}
        return
    yield {"version": version, "is_foreign": bool(tables and not version)}
    # A file that a newer version wrote, or that is none of ours, is not looked into.
    if 0 < version <= schema_steps()[-1][0]:
        yield from reader.told(into, rescue)


def _open(path: Path, *, read_only: bool = True) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(str(path), read_only=read_only, config={"memory_limit": "512MB"})


def _copy(database: Path, target: Path) -> None:
    """Copy a database that is held open. A file that this process opened and closed would give up the lock on it."""
    for ending in ("", ".wal"):
        if Path(f"{database}{ending}").exists():
            subprocess.run(["cp", f"{database}{ending}", f"{target}{ending}"], check=True)


def _has_log(database: Path) -> bool:
    return database.is_file() and Path(f"{database}.wal").exists()


class _Reader:
    """Reads a copy, table by table. It is opened anew after an error, which may leave a connection useless."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._con: duckdb.DuckDBPyConnection | None = None

    @property
    def con(self) -> duckdb.DuckDBPyConnection:
        if self._con is None:
            self._con = _open(self._path, read_only=False)
        return self._con

    def begin(self) -> tuple[int, int]:
        """The version of the schema, 0 where there is none, and the number of tables."""
        tables = {name for (name,) in self.con.sql("SELECT table_name FROM duckdb_tables()").fetchall()}
        known = "schema_version" in tables
        return (int(self.con.sql("SELECT version FROM schema_version").fetchall()[0][0]) if known else 0), len(tables)

    def told(self, into: Path, rescue: Sequence[str]) -> Iterator[dict[str, Any]]:
        """What each table holds, then the rows of the files that were asked for."""
        for table in filter(self._columns, TABLES):  # an older version had not all of them
            yield from self._tried(table, partial(self._table, table, into))
        for table in filter(self._columns, INDEXED):
            yield from self._tried(f"index of {table}", partial(self._index, table))
        for name in rescue:
            yield from self._tried(f"the rows of {name}", partial(self._rescued, name, into))

    def _tried(self, what: str, read: Callable[[], Iterator[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
        yield {"reading": what}
        try:
            yield from read()
        except duckdb.Error as flaw:
            yield {"broken": {what: _said(flaw)}}
            if self._con is not None:
                self._con.close()
            self._con = None

    def _table(self, table: str, into: Path) -> Iterator[dict[str, Any]]:
        columns = self._columns(table)
        ((rows, _),) = self.con.sql(f"SELECT count(*), bit_xor(hash(t)) FROM {table} AS t").fetchall()
        yield {"rows": {table: rows}}
        if table == "landed":
            yield {"landed": {name: [run, at] for name, run, at in self.con.sql(_LANDED).fetchall()}}
        if table in _PRINTED:
            yield {"prints": dict(self.con.sql(_print_of(table, columns)).fetchall())}
        if table == "findings":
            yield {"prints": dict(self.con.sql(_FINDINGS).fetchall())}
        if table in ALONE:
            self.con.execute(f"COPY {table} TO '{escaped(into / table)}.parquet' (FORMAT parquet)")
            yield {"written": {table: f"{into / table}.parquet"}}

    def _index(self, table: str) -> Iterator[dict[str, Any]]:
        """Take every key out of the index and put it back, in the copy: a mere reading of rows meets no index."""
        self.con.execute(f"BEGIN; UPDATE {table} SET {INDEXED[table]} = {INDEXED[table]}; ROLLBACK")
        yield from ()

    def _rescued(self, name: str, into: Path) -> Iterator[dict[str, Any]]:
        """The rows of one landed file, in the columns of an archive file."""
        target = into / f"{name}.parquet"
        shared = {"extra", *self._columns("scores")}
        metrics = "".join(f", p.{quoted(one)}" for one in self._columns("points") if one not in shared)
        sql = question("rescue", metrics=metrics, file=escaped(name))
        self.con.execute(f"COPY ({sql}) TO '{escaped(target)}' (FORMAT parquet)")
        yield {"written": {name: str(target)}}

    def _columns(self, table: str) -> list[str]:
        return [name for (name,) in self.con.execute(_COLUMNS, [table]).fetchall()]


_COLUMNS: Final = "SELECT column_name FROM duckdb_columns() WHERE table_name = ? ORDER BY column_name"
_LANDED: Final = "SELECT file, run_id, attempt FROM landed"
_FINDINGS: Final = """
SELECT 'findings ' || comparison, format('{} rows, {}', count(*), sum(hash(position, record)::HUGEINT))
FROM findings GROUP BY comparison
"""


def _print_of(table: str, columns: Sequence[str]) -> str:
    """Marks by run attempt. The series of a row counts by its text key, as its number is made of that."""
    run = "id" if table == "runs" else "run_id"
    apart = _APART | ({"position"} if table == "details" else set())
    said = [f"t.{quoted(name)}" for name in columns if name not in apart]
    measured = table in {"points", "scores"}
    joined = "LEFT JOIN series AS s ON s.id = t.series" if measured else ""
    values = ", ".join([*said, *(["s.key"] if measured else []), *(["t.file"] if table == "landed" else [])])
    return f"""
        SELECT format('{{}}/{{}} {table}', t.{run}, t.attempt),
            format('{{}} rows, {{}}', count(*), sum(hash({values})::HUGEINT))
        FROM {table} AS t {joined} GROUP BY t.{run}, t.attempt
    """


def _said(flaw: duckdb.Error) -> str:
    return str(flaw).strip().partition("\n")[0]


if __name__ == "__main__":
    main(sys.argv[1:])
