"""The database: what landed, loaded from the archive's files and asked by named questions.

No other module knows DuckDB. One process may write, and keeps every other process out while it does; whoever must
wait, waits a bounded time. Every question is a file in `store/queries`, whose first line says what it answers.
"""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar

import duckdb
import polars as pl

from store import archive
from store.depot import EVERYTHING, Choice, Depot
from store.frames import from_text, score_of, series_of, to_text
from store.identity import kin_of
from store.life import Event, Review
from store.metrics import POINT_METRICS
from store.questions import escaped, from_extra, incoming_column, listed, question, quoted, schema_steps
from store.records import (
    Batch,
    Caveat,
    ChangelogEntry,
    Expected,
    Extra,
    Finding,
    JobCount,
    JobRun,
    Rejection,
    Run,
    RunKey,
    Score,
    Series,
    Trouble,
    Withdrawal,
)
from store.rows import (
    FINDINGS,
    RUNS,
    SERIES,
    WITHDRAWALS,
    finding_row,
    frame,
    merge_runs,
    run_row,
    series_row,
    standing_row,
    withdrawal_row,
)
from store.runs import Standing
from store.withdrawals import POINT_FIELDS

T = TypeVar("T")

_HOLDER: Final = re.compile(r"\(PID (\d+)\)")
_WAIT_STEPS: Final = (0.05, 1.0)
"""Seconds between two tries to open, the first and the longest: every try costs the processor that the holder needs."""
WAIT_SECONDS: Final = 120.0
"""How long another process is waited for: twenty landings, one after the other, on a busy machine."""

# A chunk is loaded in one transaction: large enough that DuckDB works in full vectors, small enough for little memory.
_CHUNK_ROWS: Final = 40_000
_CHUNK_FILES: Final = 400
_WRITERS: Final = 2

# Loading is bounded in memory; what does not fit goes through a file beside the database.
_CONFIG: Final[dict[str, str | bool | int | float | list[str]]] = {
    "memory_limit": "512MB",
    "preserve_insertion_order": "false",
}

_FORMS: Final = {
    "parquet": "FORMAT parquet, COMPRESSION zstd",
    "csv": "FORMAT csv, HEADER",
    "json": "FORMAT json, ARRAY true",
}
_KNOWN: Final = {"record": pl.String, "id": pl.UInt64}
_CONTESTED: Final = Caveat("conflicting_rows")
PART: Final = "part of the archive"
"""Note: which runs the store takes in, and how many files it left out when the archive was last listed."""
HELD: Final = "findings files"
"""Note: by comparison, moment and digest of the archive's file that its findings are of."""

ALONE: Final[Mapping[str, str]] = {
    "reviews": "run_id, attempt, rules_version",
    "events": "record",
    "findings": "comparison",
    "notes": "key",
}
"""Tables with rows that may live in the database alone, each with what tells its rows apart."""

TIDY_KEYS: Final = tuple("run started_at image recipe curve series conc multinode pool config attempt official".split())
"""The columns of a tidy frame before `metric` and `value`."""

Predicate = Callable[[Run], bool | Standing]
"""Whether a run is official; a standing says why not as well."""

_FITS: Final = {
    **{name: f's."{name}"::VARCHAR' for name in POINT_FIELDS if name not in ("series", "task")},
    **{name: f'p."{name}"' for name in ("image", "recipe", "pool")},
    "series": "s.key",
}
"""The columns of a row that the fields of a withdrawal are held against."""


class CannotOpenStore(Trouble):
    """The database cannot be opened; the message says what to do about it."""


class StoreIsBusy(CannotOpenStore):
    """Another process holds the database; the message names it."""


class StoreIsDamaged(CannotOpenStore):
    """The file is no database that can be read, or a part of it cannot be."""


class DiskIsFull(CannotOpenStore):
    """There was no room to write; what had landed stays."""


_FLAWS: Final[tuple[tuple[str, type[CannotOpenStore], str], ...]] = (
    (
        r"No space left|max_temp_directory_size|disk quota|File too large",
        DiskIsFull,
        "{path}: the disk is full ({flaw}): free space and give the same command again; what has landed stays",
    ),
    ("Permission denied", CannotOpenStore, "{path} may not be used ({flaw}): give this user the right to write there"),
    (
        "",
        StoreIsDamaged,
        "{path} is damaged ({flaw}): `tracker store check` says what is lost, `tracker store recover` repairs it",
    ),
)
"""Words of DuckDB, what they stand for, and what to do; the last fits everything."""

_DAMAGE: Final = (duckdb.IOException, duckdb.FatalException, duckdb.InternalException, duckdb.SerializationException)
"""What a damaged file or a full disk raises; a checksum that does not fit raises the base class itself."""


@dataclass(frozen=True, slots=True)
class Landed:
    """What a landing changed. `already` is True when every file had landed before."""

    points: int = 0
    scores: int = 0
    rejections: int = 0
    duplicates: int = 0
    """Measurements equal to ones that are there."""
    superseded: int = 0
    """Measurements, new or old, that another version now stands before."""
    contested: int = 0
    """Measurements of one point that differ, with nothing that decides between them: none of them counts."""
    already: bool = True

    def __add__(self, other: Landed) -> Landed:
        sums = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self) if f.name != "already"}
        return Landed(**sums, already=self.already and other.already)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was taken from the archive: how much, and the files that could not be, each with its reason."""

    files: int
    landed: Landed
    broken: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    """Files that landed before and that the bucket of the archive did not list now."""
    left_out: int = 0
    """Files of runs that were not chosen."""


@dataclass(frozen=True, slots=True)
class Info:
    """What a store holds: counts by kind, versions, sizes in bytes, files not loaded yet, the newest run."""

    counts: Mapping[str, int]
    schema_version: int
    duckdb_version: str
    database_bytes: int
    archive_bytes: int
    not_loaded: tuple[str, ...]
    newest: Run | None
    unofficial: Mapping[str, int] = field(default_factory=dict)
    """Run attempts that are not official, by the code of each reason."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What a withdrawal takes out of a store: whole run attempts, and rows of these and of others, in all versions."""

    withdrawal: Withdrawal
    runs: tuple[RunKey, ...]
    """The attempts that it takes rows or everything of."""
    points: int
    scores: int


@dataclass(frozen=True, slots=True)
class States:
    """What may be used of a run attempt: its standing, and how many rows have which status for which reason."""

    run: RunKey
    started_at: datetime
    standing: Standing
    rows: tuple[tuple[str, str, str, int], ...]
    """Kind ("points" or "scores"), status, code of the reason ("" for none), number."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A file to load: its rows, and the metrics that have a column in it.

    `is_new`: this version wrote it, so a metric without a column has no value in it, among the extra ones neither.
    """

    file: archive.File
    height: int
    metrics: frozenset[str]
    is_new: bool


def everything(_: Run) -> bool:
    """The predicate that calls every run official."""
    return True


class Store:
    """The history of sweeps. Open it with `Store.open`; it closes as a context manager."""

    def __init__(
        self,
        con: duckdb.DuckDBPyConnection,
        path: Path,
        depot: Depot,
        official: Predicate,
        withdrawn: Sequence[Withdrawal] = (),
    ) -> None:
        self._con = con
        self._path = path
        self._depot = depot
        self._official = official
        self._metrics = _metric_columns(con)
        self._series: dict[str, int] = {}
        self._caught_up = False
        self._withdrawals = tuple(withdrawn)
        self._withdraw()

    @classmethod
    def open(  # noqa: PLR0913 - each is one word at the call
        cls,
        path: Path | str,
        archive: Path | str | Depot,
        *,
        read_only: bool = False,
        wait_seconds: float = WAIT_SECONDS,
        official: Predicate = everything,
        withdrawn: Sequence[Withdrawal] = (),
    ) -> Store:
        """Open the database of an archive (a folder, `s3://…`, `gs://…`), made or brought up to date for writing.

        `official` decides at landing whether a run counts as official. Every answer is as if what is `withdrawn` had
        never landed, but for the questions that say so; the database keeps it all. Raises CannotOpenStore.
        """
        database = Path(path)
        con = _connect(database, read_only, wait_seconds)
        try:
            with _in_words(database):
                _check_is_known(con, database)
                if not read_only:
                    migrate(con)
                _check_version(con, database)
                depot = archive if isinstance(archive, Depot) else Depot.at(archive, path)
                found = cls(con, database, depot, official, withdrawn)
                if not read_only:
                    found._judge_standings()
                return found
        except BaseException:
            con.close()
            raise

    def close(self) -> None:
        """Close the database and let the next one in."""
        self._con.close()
        self._depot.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if isinstance(error, duckdb.Error):
            with _in_words(self._path):
                raise error

    # Landing

    def land(self, batch: Batch) -> Landed:
        """Keep a batch: its file in the archive, then the file in the database. Landing it again adds nothing."""
        return self.land_many([batch])

    def land_many(self, batches: Iterable[Batch]) -> Landed:
        """Keep many batches, a file each, loaded in chunks; what an interrupted landing left is loaded first."""
        before = Landed() if self._caught_up else self.catch_up().landed
        return replace(before, already=True) + self._load_parts(self._written(batches))

    def _written(self, batches: Iterable[Batch]) -> Iterator[_Part]:
        """Write the batches to the archive, a few at a time: compressing one overlaps with reading the next."""
        ahead: deque[tuple[Batch, Future[archive.File]]] = deque()
        with ThreadPoolExecutor(_WRITERS) as pool:
            for batch in batches:
                ahead.append((batch, pool.submit(self._depot.write, batch)))
                if len(ahead) > _WRITERS:
                    yield _part(*ahead.popleft())
            while ahead:
                yield _part(*ahead.popleft())

    def catch_up(self, choice: Choice | None = None) -> Loaded:
        """Load the files that the archive has and the database has not: of others, of a process that died in between.

        `choice` says which runs; without it the one that was made last holds, at first everything. Raises Trouble when
        the archive cannot be listed whole.
        """
        wanted = choice or self._choice()
        brought = self._depot.bring(self._landed(), self._held(), wanted)
        self._caught_up = True
        broken: list[str] = []
        landed = self._load_parts(_checked(brought.files, broken))
        loaded = len(brought.files) - len(broken)
        self.put_note(PART, [to_text(wanted), brought.left_out])
        told = (*brought.refused, *broken, *self._catch_up_findings(), *self._catch_up_events())
        return Loaded(loaded, landed, told, brought.unlisted, brought.left_out)

    def _choice(self) -> Choice:
        return from_text((self.note(PART) or (to_text(EVERYTHING), 0))[0], Choice)

    @property
    def left_out(self) -> int:
        """Files of runs that the archive had when it was last listed, and that this store was told to leave out."""
        return int((self.note(PART) or ("", 0))[1])

    def _landed(self) -> list[tuple[str, RunKey]]:
        rows = self._con.sql("SELECT file, run_id, attempt FROM landed").fetchall()
        return [(digest, RunKey(number, attempt)) for digest, number, attempt in rows]

    def files_of(self, curves: Collection[str]) -> tuple[str, ...]:
        """The names of the archive's files that hold all there is of the runs that ever measured some curves.

        A store of these files alone (`Store.of_files`) gives the same history of these curves: versions of a point, and
        what is said of a run, never lie in files of other runs.
        """
        rows = self._con.execute(question("files_of"), {"curves": list(curves)}).fetchall()
        return tuple(archive.name_of(RunKey(number, attempt), digest) for digest, number, attempt in rows)

    def files_about(self, kin: Collection[str], runs: Collection[int] = ()) -> tuple[str, ...]:
        """The same of the runs that ever measured a point or an eval of some kin (`identity.kin_of`), or are named."""
        rows = self._con.execute(question("files_about"), {"kin": list(kin), "runs": list(runs)}).fetchall()
        return tuple(archive.name_of(RunKey(number, attempt), digest) for digest, number, attempt in rows)

    def files(self) -> tuple[str, ...]:
        """The names of all files that have landed."""
        return tuple(archive.name_of(run, digest) for digest, run in self._landed())

    def kin(self) -> dict[int, frozenset[str]]:
        """By run id, the kin (`identity.kin_of`) that it has measured points or evals of."""
        found: dict[int, set[str]] = {}
        for number, curve in self._ask(question("measured_curves")).iter_rows():
            found.setdefault(number, set()).add(kin_of(curve))
        return {number: frozenset(some) for number, some in found.items()}

    @classmethod
    @contextmanager
    def of_files(
        cls,
        archive: Path | str,
        names: Collection[str],
        *,
        official: Predicate = everything,
        withdrawn: Sequence[Withdrawal] = (),
    ) -> Iterator[Store]:
        """A store in memory of some files of an archive, read straight from it. A file that cannot be read is Trouble.

        Landing, ranking and withdrawals are those of the whole store: what it answers is equal.
        """
        depot = Depot.at(archive)
        with cls.open(":memory:", depot, official=official, withdrawn=withdrawn) as store:
            brought = depot.bring_named(names)
            broken = [*brought.refused]
            store._caught_up = True
            store._load_parts(_checked(brought.files, broken))
            if broken:
                raise Trouble(f"files of {archive} cannot be used: {'; '.join(broken)}")
            yield store

    def _catch_up_events(self) -> Iterator[str]:
        """Make the archive and the database hold the same sayings; yields what is wrong with files."""
        held = set(self.events())
        found = archive.event_files(self._depot.root)
        named = [f"events={file.change}/at={file.at}" for file in found]
        if named == sorted(archive.event_folder(event.change, event.at) for event in held):
            return
        for file in found:
            try:
                event = archive.read_event(file)
            except archive.BrokenFile as flaw:
                yield str(flaw)
                continue
            if event not in held:
                self._take_event(event)
            held.discard(event)
        # An older version kept what people said in the database alone.
        for event in held:
            self._depot.write_event(event)

    def _catch_up_findings(self) -> Iterator[str]:
        """Take over the newest findings of each comparison; yields what is wrong with files that cannot be read."""
        held = self._held()
        for comparison, file in archive.newest_findings(self._depot.root).items():
            if held.get(comparison, ["", ""]) < [file.at, file.digest]:
                try:
                    self._keep(file, *archive.read_findings(file))
                except archive.BrokenFile as flaw:
                    yield str(flaw)

    def _load_parts(self, parts: Iterable[_Part]) -> Landed:
        total = Landed()
        for chunk in _chunks(parts):
            total += self._load(chunk)
        if self._withdrawals and not total.already:
            self._withdraw()
        return total

    def _load(self, parts: Sequence[_Part]) -> Landed:
        """Load archive files of equal columns in one transaction; those that have landed before change nothing."""
        names = {part.file.digest: part.file for part in parts}
        with self._transaction():
            landed = self._ask("SELECT file FROM landed WHERE file IN (SELECT unnest($names))", names=list(names))
            fresh = [file for name, file in names.items() if name not in set(landed["file"])]
            return self._load_fresh(fresh, parts) if fresh else Landed()

    def _incoming(self, parts: Sequence[_Part]) -> dict[str, str]:
        """By metric, the column that these files bring; none for a metric that no file has a value of."""
        present = frozenset().union(*(part.metrics for part in parts))
        if all(part.is_new for part in parts):
            return {name: quoted(name) for name in self._metrics if name in present}
        return {name: incoming_column(name, name in present) for name in self._metrics}

    def _compared(self, parts: Sequence[_Part]) -> str:
        """The columns of all metrics, so that rows of files with other columns have comparable hashes."""
        brought = self._incoming(parts)
        return ", ".join(brought.get(name, f"NULL::DOUBLE AS {quoted(name)}") for name in self._metrics)

    def _load_fresh(self, files: Sequence[archive.File], chunk: Sequence[_Part]) -> Landed:
        paths = [str(file.path) for file in files]
        self._con.execute(question("land_incoming"), {"files": paths})
        self._learn_series()
        clashing = [path for (path,) in self._con.sql(question("land_clashes")).fetchall()]
        rivals = self._con.sql("SELECT DISTINCT id FROM runs WHERE id IN (SELECT run_id FROM incoming)").fetchall()
        parts = {
            "values": ", ".join(map(quoted, self._metrics)),
            "incoming": "".join(f", {column}" for column in self._incoming(chunk).values()),
            "run ids": ", ".join(str(number) for (number,) in rivals) or "NULL",
            "files": listed(paths),
        }
        # Values are compared where there is something to compare with; elsewhere a hash of each would be wasted.
        looked_at = clashing or paths[:1]
        compared = self._compared([part for part in chunk if str(part.file.path) in set(looked_at)])
        self._con.execute(question("land_contents", compared=compared, **parts), {"files": looked_at})
        self._learn_runs()
        landed = self._rank("points", parts) + self._rank("scores", parts)
        rejections = self._count("rejection")
        self._con.execute(question("land_details"))
        self._con.execute("DROP TABLE incoming; DROP TABLE contents; DROP TABLE ranked")
        return replace(landed, rejections=self._count("rejection") - rejections)

    def _learn_series(self) -> None:
        """Give every incoming series its id: a hash of its text key, which is made anew from its fields."""
        texts = self._ask("SELECT DISTINCT fields FROM incoming WHERE fields IS NOT NULL")["fields"].to_list()
        fresh = {text: series_of(text) for text in texts if text not in self._series}
        rows = frame([series_row(text, series) for text, series in fresh.items()], SERIES)
        self._series |= dict(zip(rows["record"], rows["id"], strict=True))
        self._insert("INSERT OR IGNORE INTO series BY NAME SELECT DISTINCT ON (id) * FROM given ORDER BY record", rows)
        known = pl.DataFrame({"record": texts, "id": [self._series[text] for text in texts]}, _KNOWN)
        self._insert("UPDATE incoming SET series = given.id FROM given WHERE given.record = fields", known)

    def _learn_runs(self) -> None:
        """Keep what each file says of its run, then one run made of all that was said, and if it is official."""
        self._con.execute("INSERT INTO landed SELECT file, run_id, attempt, record FROM incoming WHERE kind = 'run'")
        said: dict[RunKey, list[Run]] = {}
        for number, attempt, text in self._con.sql(question("land_runs")).fetchall():
            said.setdefault(RunKey(number, attempt), []).append(from_text(text, Run))
        merged = [merge_runs(runs) for runs in said.values()]
        rows = frame([run_row(run, self._standing(run)) for run in merged], RUNS)
        self._insert("INSERT OR REPLACE INTO runs BY NAME SELECT * FROM given", rows)

    def _standing(self, run: Run) -> Standing:
        found = self._official(run)
        return found if isinstance(found, Standing) else Standing(found)

    def _judge_standings(self) -> None:
        """Say of the runs that an older version landed why they are not official, by the rules of today."""
        rows = self._ask("SELECT id, attempt, record FROM runs WHERE reasons IS NULL")
        if rows.is_empty():
            return
        told = [
            {"id": number, "attempt": attempt, **standing_row(self._standing(from_text(text, Run)))}
            for number, attempt, text in rows.iter_rows()
        ]
        columns = {name: RUNS[name] for name in ("id", "attempt", "official", "reasons")}
        self._insert(
            "UPDATE runs SET official = given.official, reasons = given.reasons FROM given"
            " WHERE given.id = runs.id AND given.attempt = runs.attempt",
            frame(told, columns),
        )

    def _withdraw(self) -> None:
        """Make the views that every question asks: the tables, without what is withdrawn."""
        if not self._withdrawals:
            self._con.execute(question("withdraw_nothing"))
            return
        rows = [withdrawal_row(number, one) for number, one in enumerate(self._withdrawals)]
        self._insert("CREATE OR REPLACE TEMP TABLE withdrawals AS FROM given", frame(rows, WITHDRAWALS))
        self._con.execute(question("withdraw_targets"))
        runs = self._con.sql("SELECT DISTINCT id FROM targets ORDER BY id").fetchall()
        fits = " AND ".join(f'(e."{name}" IS NULL OR e."{name}" = {column})' for name, column in _FITS.items())
        # The ids as literals: a scan then skips what they cannot be in, which it does not do for a subquery.
        ids = ", ".join(str(number) for (number,) in runs) or "0"
        self._con.execute(question("withdraw", **{"run ids": ids, "fits": fits}))

    def _rank(self, table: str, parts: Mapping[str, str]) -> Landed:
        """Insert measurements into a table, all versions of each ranked anew."""
        self._con.execute(question(f"land_{table}", **parts))
        added, *others = self._con.sql(question("land_counts")).fetchall()[0]
        changes = zip(("duplicates", "superseded", "contested"), others, strict=True)
        return Landed(**{table: added}, **dict(changes), already=False)

    def _count(self, kind: str) -> int:
        return int(self._ask("SELECT count(*) AS n FROM details WHERE kind = $kind", kind=kind).item())

    # Questions: runs

    def runs(self) -> pl.DataFrame:
        """Every run attempt, newest first, with the counts of what it holds."""
        return self._ask(question("runs"))

    def run(self, key: RunKey | int) -> Run | None:
        """A run attempt, or the newest attempt of a run id; None when it never landed."""
        number, attempt = (key.id, key.attempt) if isinstance(key, RunKey) else (key, None)
        return _first_run(self._ask(question("run"), id=number, attempt=attempt))

    def named_runs(self, keys: Collection[str]) -> tuple[Run, ...]:
        """The run attempts of some text keys (`id/attempt`), oldest first; those that never landed are left out."""
        if not keys:
            return ()
        return tuple(from_text(text, Run) for text in self._ask(question("named_runs"), keys=sorted(keys))["record"])

    def newest_run(self, *, official_only: bool = False) -> Run | None:
        """The run that started last; None in an empty store."""
        return _first_run(self._ask(question("newest_run"), official_only=official_only))

    def standing(self, key: RunKey) -> Standing:
        """Whether a run attempt is official today, with every reason why not, its withdrawal the last of them.

        A run that never landed has no standing: ValueError.
        """
        rows = self._ask(
            "SELECT official, reasons, withdrawn FROM runs_now WHERE (id, attempt) = ($id, $attempt)", **_ids(key)
        )
        if rows.is_empty():
            raise ValueError(f"run {key} is not in the store")
        return _standing(*rows.row(0))

    def withdrawn(self, key: RunKey) -> Caveat | None:
        """Why a whole run attempt is withdrawn; None where it is not, or only a part of it is."""
        rows = self._ask("SELECT withdrawn FROM runs_now WHERE (id, attempt) = ($id, $attempt)", **_ids(key))
        text = rows["withdrawn"][0] if len(rows) else None
        return from_text(text, Caveat) if text else None

    def states(self, run: int | None = None) -> tuple[States, ...]:
        """What may be used of every attempt of a run, or of all runs, newest first."""
        counts: dict[RunKey, list[tuple[str, str, str, int]]] = {}
        for number, attempt, *row in self._ask(question("states"), id=run).iter_rows():
            counts.setdefault(RunKey(number, attempt), []).append((row[0], row[1], row[2], row[3]))
        runs = self.runs().select("id", "attempt", "started_at", "official", "reasons", "withdrawal").rows()
        return tuple(
            States(
                RunKey(number, attempt), started_at, _standing(*said), tuple(counts.get(RunKey(number, attempt), ()))
            )
            for number, attempt, started_at, *said in runs
            if run in (None, number)
        )

    def effects(self) -> tuple[Effect, ...]:
        """What each withdrawal takes out of the store, in the order of the list."""
        if not self._withdrawals:
            return ()
        rows = self._ask(question("effects"))
        return tuple(
            Effect(self._withdrawals[number], tuple(map(_run_key, runs or ())), points, scores)
            for number, runs, points, scores in rows.iter_rows()
        )

    def cited(self, runs: Collection[RunKey]) -> tuple[str, ...]:
        """The stored comparisons whose findings stand on one of these run attempts."""
        rows = self._ask(question("cited"), runs=[str(key) for key in runs])
        return tuple(rows["comparison"])

    @property
    def withdrawals(self) -> tuple[Withdrawal, ...]:
        """What the store was opened without."""
        return self._withdrawals

    def corrections(self, comparison: str) -> tuple[Caveat, ...]:
        """What stored findings of a comparison stood on and is withdrawn now: `withdrawn_cited`, each run once."""
        if not self._withdrawals:
            return ()
        rows = self._ask(question("corrections"), comparison=comparison)
        return tuple(_correction(run, from_text(text, Caveat)) for run, text in rows.iter_rows())

    # Questions: points

    def points(self, run: RunKey | int, metrics: Sequence[str] | None = None) -> pl.DataFrame:
        """Every version of every point of a run as it stood after an attempt (the newest for a bare id).

        Metrics, all of them unless some are named, are columns.

        `status` is valid, invalid, contested (rows of one point with nothing that decides between them), superseded,
        withdrawn.
        """
        return self._points(run, self._chosen(metrics))

    def _points(self, run: RunKey | int, metrics: Sequence[str]) -> pl.DataFrame:
        found = self.run(run)
        number, attempt = (found.id, found.attempt) if found else (0, 0)
        return self._wide("points", metrics, id=number, attempt=attempt)

    def tidy(self, run: RunKey | int, metrics: Sequence[str] | None = None) -> pl.DataFrame:
        """The valid points of a run as it stood after an attempt, one row per point and metric."""
        return self.tidied(self._points(run, self._chosen(metrics)), metrics)

    def tidied(self, points: pl.DataFrame, metrics: Sequence[str] | None = None) -> pl.DataFrame:
        """The valid ones of points that were asked for, one row per point and metric."""
        chosen = self._chosen(metrics)
        valid = points.filter(pl.col("status") == "valid")
        return _tidy(valid.select(*TIDY_KEYS, *chosen), chosen)

    def invalid(self, run: RunKey | int) -> pl.DataFrame:
        """The points of a run that must not be judged, with the reason as JSON of a caveat."""
        torn = pl.lit(to_text(_CONTESTED))
        wide = self.points(run).filter(pl.col("status").is_in(["invalid", "contested"]))
        return wide.with_columns(invalid=pl.coalesce("invalid", torn))

    def statuses(self) -> pl.DataFrame:
        """How many points of each status each run attempt holds."""
        return self._ask(question("statuses"))

    def history(
        self,
        curves: Collection[str],
        metrics: Sequence[str] | None = None,
        *,
        before: Run | None = None,
        without: Collection[int] = (),
        most: int | None = None,
    ) -> pl.DataFrame:
        """The valid points of some curves in all runs, oldest first, one row per point and metric.

        `before` keeps runs that started before that one and leaves that one out; `without` leaves run ids out; `most`
        keeps so many runs of each curve, official ones first, the newest first. A run stands under its newest attempt;
        `attempt` says which attempt measured the point.
        """
        chosen = self._chosen(metrics)
        wide = self._wide("history", chosen, curves=list(curves), most=most, **_window(before, without))
        return _tidy(wide, chosen)

    def curves(self) -> pl.DataFrame:
        """Every curve with its config, its number of points and runs, and when it was first and last measured."""
        return self._ask(question("curves"))

    def curves_of(self, configs: Collection[str]) -> list[str]:
        """The text keys of every curve that some configs ever had, measured lately or not."""
        rows = self._ask(question("curves_of"), configs=list(configs))
        return [curve for (curve,) in rows.iter_rows()]

    def curves_beside(
        self, gpus: Collection[str], between: tuple[datetime, datetime], without: Collection[str], most: int
    ) -> list[str]:
        """Up to so many curves of some kinds of GPU that an official run began to measure between two moments.

        Those of the configs in `without` are left out.
        """
        first, last = (moment.astimezone(UTC).replace(tzinfo=None) for moment in between)
        asked = {"gpus": list(gpus), "first": first, "last": last, "configs": list(without), "most": most}
        return [curve for (curve,) in self._ask(question("curves_beside"), **asked).iter_rows()]

    # Questions: scores and the rest

    def newest_of_configs(
        self, configs: Collection[str], before: Run, without: Collection[int] = ()
    ) -> dict[str, RunKey]:
        """The newest official run before another one that measured each config."""
        asked = {"configs": list(configs), **_window(before, without)}
        rows = self._ask(question("newest_of_configs"), **asked)
        return {config: RunKey(number, attempt) for config, number, attempt in rows.iter_rows()}

    def sayings(self, keys: Collection[str], metrics: Sequence[str]) -> Iterator[tuple[str, str, dict[str, float]]]:
        """Run, series and what its row said: all that is beside its metrics, and some of these."""
        columns = ", ".join(map(quoted, self._chosen(metrics)))
        rows = self._ask(question("sayings", metrics=columns), keys=list(keys))
        for row in rows.iter_rows(named=True):
            yield row["run"], row["series"], said_by(row, metrics)

    def texts(self, keys: Collection[str]) -> Iterator[tuple[str, str, dict[str, str]]]:
        """Run, series and what its row named as running beside the engine."""
        for row in self._ask(question("texts"), keys=list(keys)).iter_rows(named=True):
            yield row["run"], row["series"], texts_of(row)

    def measured(self, curves: Collection[str]) -> pl.DataFrame:
        """When each run measured each of some curves: `run`, `curve`, `earliest` and `latest` time of its rows."""
        return self._ask(question("measured"), curves=list(curves))

    def measured_runs(self, ids: Collection[int]) -> dict[int, tuple[datetime | None, datetime | None]]:
        """The runs among some that have rows, each with the first and the last time of its artifacts."""
        rows = self._ask(question("measured_runs"), ids=list(ids))
        return {number: (earliest, latest) for number, earliest, latest in rows.iter_rows()}

    def measured_images(self) -> pl.DataFrame:
        """Which run attempts measured which image."""
        return self._ask(question("measured_images"))

    def scores(self, run: RunKey | int) -> tuple[Score, ...]:
        """The scores of a run as it stood after an attempt (the newest for a bare id)."""
        found = self.run(run)
        if found is None:
            return ()
        rows = self._scores(id=found.id, as_of=found.attempt)
        return tuple(map(_score, rows.iter_rows(named=True)))

    def withdrawn_scores(self, run: RunKey | int) -> tuple[tuple[Score, Caveat], ...]:
        """The scores that a run had and that are withdrawn, with the reason."""
        found = self.run(run)
        if found is None or not self._withdrawals:
            return ()
        rows = self._scores(id=found.id, as_of=found.attempt, withdrawn=True)
        return tuple((_score(row), from_text(row["withdrawn"], Caveat)) for row in rows.iter_rows(named=True))

    def score_history(
        self,
        keys: Collection[str] | None = None,
        *,
        runs: Collection[int] | None = None,
        before: Run | None = None,
        without: Collection[int] = (),
    ) -> tuple[Score, ...]:
        """The scores of some series keys and of some runs (of all where neither is named), oldest run first.

        `before` and `without` as in `history`.
        """
        asked = {"keys": None if keys is None else list(keys), "runs": None if runs is None else list(runs)}
        rows = self._scores(**asked, **_score_window(before, without))
        return tuple(map(_score, rows.iter_rows(named=True)))

    def score_frame(self) -> pl.DataFrame:
        """Every score that counts, as a frame, oldest run first."""
        return self._scores().drop("series", "record", "withdrawn", "extra").rename({"key": "series"})

    def _scores(self, **asked: Any) -> pl.DataFrame:
        nothing = dict.fromkeys(("id", "as_of", "keys", "runs", "started_at", "attempt", "before_id"))
        return self._ask(question("scores"), **{**nothing, "without": [], "withdrawn": False, **asked})

    def rejections(self, run: RunKey | int) -> tuple[Rejection, ...]:
        """The rows of a run, of all its attempts up to this one, that could not be read."""
        return tuple(record for _, record in self._details("rejection", run, Rejection))

    def changelog(self, run: RunKey | int) -> tuple[ChangelogEntry, ...]:
        """What the run was asked to measure, as its last attempt that says so told it."""
        return _of_last_attempt(self._details("changelog", run, ChangelogEntry))

    def jobs(self, run: RunKey | int) -> tuple[JobCount, ...]:
        """Job counts of the run, as its last attempt that has any told them (they count the jobs of all attempts)."""
        return _of_last_attempt(self._details("job", run, JobCount))

    def job_runs(self, run: RunKey | int) -> tuple[JobRun, ...]:
        """The jobs of all attempts of the run, as its last attempt that tells them does."""
        return _of_last_attempt(self._details("job_run", run, JobRun))

    def expected(self, run: RunKey | int) -> tuple[Expected, ...]:
        """The points and evals that the run's config promised, as its last attempt that tells them does."""
        return _of_last_attempt(self._details("expected", run, Expected))

    def _details(self, kind: str, run: RunKey | int, record: type[T]) -> list[tuple[int, T]]:
        found = self.run(run)
        if found is None:
            return []
        rows = self._ask(question("details"), kind=kind, id=found.id, attempt=found.attempt)
        return [(attempt, from_text(text, record)) for attempt, text in rows.select("attempt", "record").iter_rows()]

    def unmapped(self) -> pl.DataFrame:
        """Spellings that no table of names holds: field, spelling, number of series and of points."""
        return self._ask(question("unmapped"))

    def series(self, keys: Collection[str] | None = None) -> dict[str, Series]:
        """The series of some text keys, or all of them."""
        rows = self._ask(question("series"), keys=None if keys is None else list(keys))
        return {key: series_of(text) for key, text in rows.iter_rows()}

    # Findings

    def save_findings(self, comparison: str, findings: Sequence[Finding], at: datetime | None = None) -> None:
        """Keep the findings of a comparison, in place of what was kept under that name before.

        They are a file of the archive too, named by the moment `at` (now, unless it is told), so that they travel with
        it and outlive the database. Saving equal findings again adds nothing.
        """
        held = self._held().get(archive.digest_of(comparison.encode()))
        if held is None or self.findings(comparison) != tuple(findings):
            moment = archive.later(at or datetime.now(UTC), held[0] if held else "")
            file = self._depot.write_findings(comparison, findings, moment)
            self._keep(file, comparison, findings)

    def _held(self) -> dict[str, list[str]]:
        held: dict[str, list[str]] = self.note(HELD) or {}
        return held

    def _keep(self, file: archive.FindingsFile, comparison: str, findings: Sequence[Finding]) -> None:
        rows = [finding_row(comparison, number, finding) for number, finding in enumerate(findings)]
        with self._transaction():
            self._con.execute("DELETE FROM findings WHERE comparison = ?", [comparison])
            self._insert("INSERT INTO findings BY NAME SELECT * FROM given", frame(rows, FINDINGS))
            self.put_note(HELD, {**self._held(), file.comparison: [file.at, file.digest]})

    def findings(self, comparison: str | None = None, *, key: str | None = None) -> tuple[Finding, ...]:
        """The findings of a comparison, or all that was ever found about a text key, equal to what was saved."""
        rows = self._ask(question("findings"), comparison=comparison, key=key)
        return tuple(from_text(text, Finding) for text in rows["record"])

    # The life of findings

    def reviewable(self) -> pl.DataFrame:
        """Every official run under its newest attempt, oldest first, with a mark of what it holds."""
        return self._ask(question("reviewable"))

    def put_review(self, review: Review, findings: Sequence[Finding]) -> None:
        """Keep what a judged run said, and its findings under `review:RUN`, in place of what was kept before."""
        started_at = review.started_at.astimezone(UTC).replace(tzinfo=None)
        row = (review.run.id, review.run.attempt, review.rules_version, started_at, review.content, to_text(review))
        self._con.execute("INSERT OR REPLACE INTO reviews VALUES (?, ?, ?, ?, ?, ?)", row)
        self.save_findings(f"review:{review.run}", findings)

    def reviews(self, rules_version: str) -> tuple[Review, ...]:
        """What was kept of the judged runs under a version of the rules, oldest run first."""
        rows = self._ask(question("reviews"), rules_version=rules_version)
        return tuple(from_text(text, Review) for text in rows["record"])

    def add_event(self, event: Event) -> None:
        """Keep what a person said about a change, in the archive first; the same said twice is kept once."""
        self._depot.write_event(event)
        self._take_event(event)

    def _take_event(self, event: Event) -> None:
        at = event.at.astimezone(UTC).replace(tzinfo=None)
        record = to_text(event)
        self._con.execute("DELETE FROM events WHERE record = ?", [record])
        self._con.execute("INSERT INTO events VALUES (?, ?, ?, ?)", (at, event.change, event.action.value, record))

    def events(self) -> tuple[Event, ...]:
        """What people said about changes, oldest first."""
        rows = self._ask("SELECT record FROM events ORDER BY at_time, change, action, record")
        return tuple(from_text(text, Event) for text in rows["record"])

    def images_in_force(self, until: datetime) -> pl.DataFrame:
        """The newest image of each config before a moment, since when and until when it was measured."""
        return self._ask(question("images_in_force"), until=until.astimezone(UTC).replace(tzinfo=None))

    # Notes

    def mark(self) -> str:
        """What measurements the store answers with: it changes with every file that lands and every withdrawal."""
        files = sorted(name for (name,) in self._con.sql("SELECT file FROM landed").fetchall())
        return archive.digest_of(to_text((files, self._withdrawals)).encode())

    def put_note(self, key: str, value: object) -> None:
        """Keep a small learned value (anything that JSON can say) under a name, in place of the one before."""
        self._con.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", [key, json.dumps(value, sort_keys=True)])

    def note(self, key: str) -> Any:
        """The value kept under a name; None when there is none."""
        rows = self._con.execute("SELECT value FROM notes WHERE key = ?", [key]).fetchall()
        return json.loads(rows[0][0]) if rows else None

    # The whole

    def info(self) -> Info:
        """What the store holds and how large it is."""
        archived = list(archive.files(self._depot.root))
        known = {name for (name,) in self._con.sql("SELECT file FROM landed").fetchall()}
        return Info(
            counts=self._ask(question("counts")).row(0, named=True),
            schema_version=_version(self._con),
            duckdb_version=duckdb.__version__,
            database_bytes=self._path.stat().st_size,
            archive_bytes=sum(file.path.stat().st_size for file in archived),
            not_loaded=tuple(str(file.path) for file in archived if file.digest not in known),
            newest=self.newest_run(),
            unofficial=dict(self._ask(question("unofficial")).iter_rows()),
        )

    def export(self, folder: Path, form: str = "parquet", *, with_withdrawn: bool = False) -> tuple[Path, Path]:
        """Write the valid points and the scores, tidy, as `points.FORM` and `scores.FORM`: parquet, csv or json.

        `with_withdrawn` adds what was withdrawn, told by a column `withdrawn` (NULL, or the reason as JSON).
        """
        _make(folder)
        targets = folder / f"points.{form}", folder / f"scores.{form}"
        metrics = ", ".join(map(quoted, self._metrics))
        more = (
            {"withdrawn column": "p.withdrawn,", "or withdrawn": "OR p.withdrawn IS NOT NULL"} if with_withdrawn else {}
        )
        for name, target in zip(("export_points", "export_scores"), targets, strict=True):
            sql = question(name, metrics=metrics, **more)
            self._con.execute(f"COPY ({sql}) TO '{escaped(target)}' ({_FORMS[form]})")
        return targets

    @classmethod
    def rebuild(
        cls, path: Path, archive: Path | str, *, wait_seconds: float = WAIT_SECONDS, official: Predicate = everything
    ) -> Loaded:
        """Make the database anew from the archive and put it in the place of the old one, in one step.

        Notes, reviews and events live in the database alone: they are carried over, with findings that the archive has
        no file of, unless the old one cannot be opened for another reason than that somebody holds it. Files that
        cannot be read are named; the others are loaded.
        """
        draft = path.with_name(f"{path.name}.{os.getpid()}.new")
        _remove(draft)
        try:
            depot = Depot.at(archive, path)
            with _old(path, depot, wait_seconds, official) as old, cls.open(draft, depot, official=official) as new:
                loaded = new.catch_up()
                if old is not None:
                    new.adopt(old.kept_alone())
            _remove(Path(f"{path}.wal"))
            draft.replace(path)
        finally:
            _remove(draft)
        return loaded

    def kept_alone(self) -> dict[str, pl.DataFrame]:
        """The rows of the tables that a rebuild from the archive cannot make, or not all of."""
        return {table: self._con.sql(f"FROM {table}").pl() for table in ALONE}

    def adopt(self, tables: Mapping[str, pl.DataFrame]) -> None:
        """Take over rows of another database (`kept_alone`) that are not here; what is a file here stays."""
        for table, given in tables.items():
            key = ALONE[table]
            # Which files of findings are held is known here.
            rows = given.filter(pl.col("key") != HELD) if table == "notes" else given
            fresh = f"SELECT * FROM given WHERE ({key}) NOT IN (SELECT ({key}) FROM {table})"
            self._insert(f"INSERT INTO {table} BY NAME {fresh}", rows)
        # A file that cannot be read was told when it was caught up with.
        deque(self._catch_up_events(), maxlen=0)

    # Inside

    def _wide(self, name: str, metrics: Sequence[str], **asked: Any) -> pl.DataFrame:
        columns = ", ".join(map(quoted, metrics))
        return self._ask(question(name, metrics=columns), **asked)

    def _chosen(self, metrics: Sequence[str] | None) -> list[str]:
        strangers = set(metrics or ()) - set(POINT_METRICS)
        if strangers:
            raise ValueError(f"no metric of points: {', '.join(sorted(strangers))}")
        return [name for name in (self._metrics if metrics is None else metrics) if name in self._metrics]

    def _ask(self, sql: str, **asked: Any) -> pl.DataFrame:
        answer: pl.DataFrame = self._con.sql(sql, params=asked).pl()
        return answer.with_columns(pl.col(pl.Datetime("us")).dt.replace_time_zone("UTC"))

    def _insert(self, sql: str, given: pl.DataFrame) -> None:
        """Run a statement that reads a small frame under the name `given`."""
        self._con.register("given", given.to_arrow())
        try:
            self._con.execute(sql)
        finally:
            # After an error it must not stand before that: the transaction is over, and the frame goes with it.
            with suppress(duckdb.TransactionException):
                self._con.unregister("given")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._con.execute("BEGIN")
        try:
            yield
        except BaseException:
            with suppress(duckdb.Error):
                self._con.execute("ROLLBACK")
            raise
        self._con.execute("COMMIT")


def said_by(row: Mapping[str, Any], metrics: Sequence[str]) -> dict[str, float]:
    """The numbers that a row said beside its metrics, and the values of some of these."""
    known = {name: row[name] for name in metrics if row.get(name) is not None}
    return known | {name: value for name, value in _extra(row).items() if not isinstance(value, str)}


def texts_of(row: Mapping[str, Any]) -> dict[str, str]:
    """What a row named as running beside the engine."""
    return {name: value for name, value in _extra(row).items() if isinstance(value, str)}


def _extra(row: Mapping[str, Any]) -> dict[str, Extra]:
    return json.loads(row["extra"]) if row["extra"] else {}


def migrate(con: duckdb.DuckDBPyConnection, upto: int | None = None) -> None:
    """Take the schema steps that a database has not taken yet (up to a number), then give every metric its column."""
    done = _version(con)
    metrics = ", ".join(f"{quoted(name)} DOUBLE" for name in POINT_METRICS)
    for number, template in schema_steps()[done:upto]:
        sql = template.replace("/* metrics */", metrics)
        con.execute(f"BEGIN; {sql}; CREATE OR REPLACE TABLE schema_version AS SELECT {number} AS version; COMMIT")
    present = set(_metric_columns(con))
    for name in POINT_METRICS:
        if name not in present:
            _add_metric(con, name)


def _add_metric(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """A metric that joins the table takes over the values that were kept as extra ones before."""
    con.execute(f"ALTER TABLE points ADD COLUMN {quoted(name)} DOUBLE")
    con.execute(f"UPDATE points SET {quoted(name)} = {from_extra(name)} WHERE contains(extra, '\"{name}\"')")


def _version(con: duckdb.DuckDBPyConnection) -> int:
    """The number of the last schema step; 0 for an empty database."""
    tables = con.sql("SELECT 1 FROM duckdb_tables() WHERE table_name = 'schema_version'").fetchall()
    return int(con.sql("SELECT version FROM schema_version").fetchall()[0][0]) if tables else 0


def _metric_columns(con: duckdb.DuckDBPyConnection) -> list[str]:
    rows = con.sql("SELECT column_name FROM duckdb_columns() WHERE table_name = 'points'").fetchall()
    present = {name for (name,) in rows}
    return [name for name in POINT_METRICS if name in present]


def _check_is_known(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    """A newer version may keep anything in its tables: it is not touched."""
    found, known = _version(con), schema_steps()[-1][0]
    if found > known:
        raise CannotOpenStore(
            f"{path} has schema {found}, this version knows {known}: upgrade sweep-tracker, or rebuild another database"
            " from the archive (tracker store rebuild --store OTHER --archive ARCHIVE)"
        )
    if not found and con.sql("SELECT 1 FROM duckdb_tables()").fetchall():
        raise CannotOpenStore(f"{path} is a database of something else: name another file with --store")


def _check_version(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    found, known = _version(con), schema_steps()[-1][0]
    if found < known:
        raise CannotOpenStore(
            f"{path} has schema {found}, this version needs {known}: open it once for writing, for example with"
            " `tracker store recover`"
        )


@contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """Say in words of ours what DuckDB says of the world; a statement that is wrong stays its own error."""
    try:
        yield
    except duckdb.Error as flaw:
        if type(flaw) is duckdb.Error or isinstance(flaw, _DAMAGE):
            raise _told(path, flaw) from flaw
        raise


def _told(path: Path, flaw: duckdb.Error) -> CannotOpenStore:
    said = str(flaw).strip().partition("\n")[0]
    kind, words = next((kind, words) for pattern, kind, words in _FLAWS if re.search(pattern, said, re.IGNORECASE))
    return kind(words.format(path=path, flaw=said))


def _connect(path: Path, read_only: bool, wait_seconds: float) -> duckdb.DuckDBPyConnection:
    if read_only and not path.exists():
        raise CannotOpenStore(f"{path} does not exist: land a run first, or rebuild it from the archive")
    _make(path.parent)
    patience = time.monotonic() + wait_seconds
    pause, longest = _WAIT_STEPS
    while True:
        try:
            con = duckdb.connect(str(path), read_only=read_only, config=_CONFIG)
            # A worker process looks like a prompt to DuckDB, which then draws a bar on stdout after two seconds.
            con.execute("SET enable_progress_bar = false")
            return con
        except duckdb.Error as flaw:
            if "lock on file" not in str(flaw):
                raise _told(path, flaw) from flaw
            if time.monotonic() >= patience:
                raise StoreIsBusy(_held(path, wait_seconds, str(flaw))) from flaw
        # A share of chance, so that those that began together do not try together.
        time.sleep(min(pause * random.uniform(0.5, 1.0), max(0.0, patience - time.monotonic())))
        pause = min(2 * pause, longest)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as flaw:
        raise Trouble(f"{folder} cannot be made ({flaw.strerror}): name a place that can be written to") from flaw


def _held(path: Path, wait_seconds: float, flaw: str) -> str:
    found = _HOLDER.search(flaw)
    holder = f"process {found.group(1)}" if found else "another process"
    return f"{path} is held by {holder} and was not freed in {wait_seconds:g} s: wait for it to end, or stop it"


@contextmanager
def _old(path: Path, depot: Depot, wait_seconds: float, official: Predicate) -> Iterator[Store | None]:
    """The database that a rebuild replaces, held so that nobody writes meanwhile; None when none can be read."""
    try:
        old = Store.open(path, depot, wait_seconds=wait_seconds, official=official) if path.exists() else None
    except StoreIsDamaged:
        old = None
    try:
        yield old
    finally:
        if old is not None:
            old.close()


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _checked(files: Iterable[archive.File], broken: list[str]) -> Iterator[_Part]:
    """The files whose content is what their name says; what is wrong with the others is put into `broken`."""
    for file in files:
        try:
            rows = archive.read(file)
        except archive.BrokenFile as flaw:
            broken.append(str(flaw))
        else:
            yield _Part(file, len(rows), frozenset(rows.columns).intersection(POINT_METRICS), False)


def _chunks(parts: Iterable[_Part]) -> Iterator[list[_Part]]:
    """Parts together up to the size of a chunk, files of other versions apart."""
    chunk: list[_Part] = []
    height = 0
    for part in parts:
        full = height >= _CHUNK_ROWS or len(chunk) >= _CHUNK_FILES
        if chunk and (full or part.is_new != chunk[0].is_new):
            yield chunk
            chunk, height = [], 0
        chunk.append(part)
        height += part.height
    if chunk:
        yield chunk


def _part(batch: Batch, written: Future[archive.File]) -> _Part:
    height = len(batch.points) + len(batch.scores) + len(batch.rejections)
    metrics = frozenset().union(*(point.metrics for point in batch.points)).intersection(POINT_METRICS)
    return _Part(written.result(), height, metrics, True)


def _ids(key: RunKey) -> dict[str, int]:
    return {"id": key.id, "attempt": key.attempt}


def _standing(official: bool, reasons: str | None, withdrawn: str | None) -> Standing:
    said = from_text(reasons, tuple[Caveat, ...]) if reasons else ()
    return Standing(official, (*said, *((from_text(withdrawn, Caveat),) if withdrawn else ())))


def _run_key(text: str) -> RunKey:
    number, _, attempt = text.partition("/")
    return RunKey(int(number), int(attempt))


def _correction(run: str, withdrawal: Caveat) -> Caveat:
    said = dict(withdrawal.values)
    return Caveat.of("withdrawn_cited", run=run, reason=said["reason"], since=said["since"])


def _first_run(rows: pl.DataFrame) -> Run | None:
    return from_text(rows["record"][0], Run) if len(rows) else None


def _tidy(wide: pl.DataFrame, metrics: Sequence[str]) -> pl.DataFrame:
    """One row per point and metric, metric by metric; a metric that a point has not has no row."""
    keys = wide.drop(metrics)
    full = (keys.with_columns(metric=pl.lit(name), value=wide[name]) for name in metrics)
    # Where nothing is absent the keys are shared, not copied: a filter of ten metrics cost as much as the question.
    parts = [part.drop_nulls("value") if part["value"].null_count() else part for part in full]
    empty = keys.clear().with_columns(metric=pl.lit("", pl.String), value=pl.lit(0.0, pl.Float64))
    return pl.concat([empty, *parts], rechunk=False)


def _window(before: Run | None, without: Collection[int]) -> dict[str, Any]:
    """What bounds a history: a run that it must precede, and run ids that it leaves out."""
    if before is None:
        return {"started_at": None, "attempt": None, "id": None, "without": list(without)}
    started_at = before.started_at.astimezone(UTC).replace(tzinfo=None)
    return {"started_at": started_at, "attempt": before.attempt, "id": before.id, "without": [*without, before.id]}


def _score_window(before: Run | None, without: Collection[int]) -> dict[str, Any]:
    window = _window(before, without)
    return {**window, "id": None, "before_id": window["id"]}


def _score(row: Mapping[str, Any]) -> Score:
    score = score_of(row)
    return replace(score, invalid=_CONTESTED) if row["contested"] and score.invalid is None else score


def _of_last_attempt(details: Sequence[tuple[int, T]]) -> tuple[T, ...]:
    last = max((attempt for attempt, _ in details), default=0)
    return tuple(record for attempt, record in details if attempt == last)
