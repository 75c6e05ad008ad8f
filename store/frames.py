"""A batch as a frame with declared columns, and back: what an archive file holds.

One row per record. `kind` says which: the run itself, a point, a score, a rejection, a changelog entry, a job count,
a job, an expected point. Measurements (points and scores) are columns; the small kinds are one JSON text in `record`.
Times are UTC.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat
from operator import add
from typing import Any, Final, TypeVar

import msgspec
import numpy as np
import polars as pl

from store.metrics import POINT_METRICS
from store.records import (
    Answers,
    Batch,
    Caveat,
    ChangelogEntry,
    Expected,
    JobCount,
    JobRun,
    Place,
    Point,
    Rejection,
    Run,
    RunKey,
    Score,
    Series,
)

T = TypeVar("T")

# polars loads numpy when it first needs it, and breaks where two threads first need it at the same time.
pl.Series(np.zeros(1))

UTC_TIME: Final = pl.Datetime("us", "UTC")

COLUMNS: Final[Mapping[str, pl.DataType | type[pl.DataType]]] = {
    "kind": pl.String,
    "run_id": pl.Int64,
    "attempt": pl.Int32,
    "series": pl.String,  # the fields of the series as JSON: its text key is made again whenever the file is loaded
    "image": pl.String,
    "recipe": pl.String,
    "pool": pl.String,
    "place": pl.String,
    "place_index": pl.Int64,
    "created_at": UTC_TIME,
    "collected": pl.Boolean,
    "invalid": pl.String,
    "caveats": pl.String,
    "extra": pl.String,  # further values of a point; of a score, which questions were answered right
    "richness": pl.Int32,  # how many values the row has: where nothing else decides, the fuller row counts
    "task": pl.String,
    "strict": pl.Float64,
    "strict_se": pl.Float64,
    "flexible": pl.Float64,
    "flexible_se": pl.Float64,
    "n": pl.Int64,
    "score": pl.Float64,
    "score_name": pl.String,
    "record": pl.String,  # run and the small kinds as JSON; the raw row of a score
    "raw": pl.String,  # the raw row of a point: long, so a load leaves this column alone
    **dict.fromkeys(POINT_METRICS, pl.Float64),
}
"""Columns of an archive file: fixed ones, then a double per metric that a row has, NULL where another has none."""

ACCURACIES: Final = ("strict", "strict_se", "flexible", "flexible_se", "score")
_COUNTED: Final = (*ACCURACIES, "answers")

_EMPTY: Final = pl.DataFrame(schema={name: kind for name, kind in COLUMNS.items() if name not in POINT_METRICS})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def to_text(record: object) -> str:
    """A record as JSON text that `from_text` gives back equal, infinities included.

    >>> to_text(Caveat.of("few_runs", have=1))
    '{"code":"few_runs","values":[["have",1]]}'
    """
    # msgspec alone would write Infinity and NaN as null: a smallest detectable change may well be infinite.
    return json.dumps(msgspec.to_builtins(record), ensure_ascii=False, separators=(",", ":"))


def from_text(text: str, kind: type[T]) -> T:
    """The record that `to_text` wrote.

    >>> from_text('{"code":"few_runs","values":[["have",1]]}', Caveat)
    Caveat(code='few_runs', values=(('have', 1),))
    """
    return msgspec.convert(json.loads(text), kind)


def series_text(series: Series) -> str:
    """The fields of a series as JSON, in their declared order."""
    return msgspec.json.encode(series).decode()


def series_of(text: str) -> Series:
    """The series that `series_text` wrote; a field that an older writer did not know has its default."""
    return msgspec.json.decode(text, type=Series)


def to_frame(batch: Batch) -> pl.DataFrame:
    """The batch as rows in an order that does not depend on the order of reading.

    Values that are not finite become NULL. A metric without a row in the metric table goes into `extra`.
    Raises ValueError when a measurement belongs to another run attempt than its batch.
    """
    key = batch.run.key
    strangers = {str(run) for run in chain((p.run for p in batch.points), (s.run for s in batch.scores)) if run != key}
    if strangers:
        raise ValueError(f"a batch of run {key} holds measurements of {', '.join(sorted(strangers))}")
    parts = (
        _texts("run", [to_text(batch.run)]),
        _points(batch.points),
        _scores(batch.scores),
        _texts("rejection", sorted(map(to_text, batch.rejections))),
        _texts("changelog", [to_text(entry) for entry in batch.changelog]),
        _texts("job", sorted(map(to_text, batch.jobs))),
        _texts("job_run", sorted(map(to_text, batch.job_runs))),
        _texts("expected", sorted(map(to_text, batch.expected))),
    )
    rows = pl.concat([_EMPTY, *(part for part in parts if len(part))], how="diagonal", rechunk=True)
    return rows.with_columns(run_id=pl.lit(key.id, pl.Int64), attempt=pl.lit(key.attempt, pl.Int32))


def to_batch(rows: pl.DataFrame) -> Batch:
    """The batch that a frame of `to_frame` holds (read from a file of any age)."""
    kinds = {str(kind): part.to_dicts() for (kind,), part in rows.partition_by("kind", as_dict=True).items()}
    metrics = [name for name in POINT_METRICS if name in rows.columns]
    (run,) = (from_text(row["record"], Run) for row in kinds["run"])
    return Batch(
        run=run,
        points=tuple(point_of(row, metrics) for row in kinds.get("point", ())),
        scores=tuple(map(score_of, kinds.get("score", ()))),
        rejections=tuple(from_text(row["record"], Rejection) for row in kinds.get("rejection", ())),
        changelog=tuple(from_text(row["record"], ChangelogEntry) for row in kinds.get("changelog", ())),
        jobs=tuple(from_text(row["record"], JobCount) for row in kinds.get("job", ())),
        job_runs=tuple(from_text(row["record"], JobRun) for row in kinds.get("job_run", ())),
        expected=tuple(from_text(row["record"], Expected) for row in kinds.get("expected", ())),
    )


def point_of(row: Mapping[str, Any], metrics: Iterable[str]) -> Point:
    """The point of a row of an archive file."""
    return Point(
        metrics={name: row[name] for name in metrics if row[name] is not None},
        extra=json.loads(row["extra"]) if row["extra"] else {},
        raw=row["raw"],
        recipe=row["recipe"],
        **_measured(row),
    )


def score_of(row: Mapping[str, Any]) -> Score:
    """The score of a row of an archive file or of the table `scores`."""
    own = {name: row[name] for name in (*ACCURACIES, "task", "n", "score_name", "recipe")}
    answers = from_text(row["extra"], Answers) if row["extra"] else None
    return Score(raw=row["record"], answers=answers, **own, **_measured(row))


def _measured(row: Mapping[str, Any]) -> dict[str, Any]:
    moment = row["created_at"]
    created_at = moment.replace(tzinfo=UTC) if moment else None
    return {
        "run": RunKey(row["run_id"], row["attempt"]),
        "series": series_of(row["series"]),
        "place": Place(row["place"], row["place_index"], created_at, row["collected"]),
        "image": row["image"],
        "pool": row["pool"],
        "invalid": from_text(row["invalid"], Caveat) if row["invalid"] else None,
        "caveats": tuple(msgspec.json.decode(row["caveats"], type=tuple[Caveat, ...])) if row["caveats"] else (),
    }


def _points(points: Sequence[Point]) -> pl.DataFrame:
    """Points as columns, by series and place. Only metrics that one of them has become columns here."""
    if not points:
        return _EMPTY
    keyed = [
        (series_text(p.series), p.recipe or "", p.place.file, p.place.index, p.raw, i) for i, p in enumerate(points)
    ]
    keyed.sort()
    ordered = [points[key[-1]] for key in keyed]
    metrics, unknown = _metrics([p.metrics for p in ordered])
    return pl.DataFrame(
        [
            pl.Series("kind", ["point"], pl.String).new_from_index(0, len(ordered)),
            pl.Series("series", [key[0] for key in keyed], pl.String),
            pl.Series("extra", [_extra(p, unknown) for p in ordered], pl.String),
            pl.Series("raw", [p.raw for p in ordered], pl.String),
            *_measurements(ordered, [len(p.metrics) + len(p.extra) for p in ordered]),
            *metrics,
        ]
    )


def _metrics(bags: Sequence[Mapping[str, float]]) -> tuple[pl.DataFrame, frozenset[str]]:
    """One column per metric that a bag has, NULL where it is absent or not finite; and the metrics of no table.

    A single NaN in a column would poison every maximum and average of SQL.
    """
    present = set().union(*bags)
    known = [name for name in POINT_METRICS if name in present]
    flat = chain.from_iterable(map(bag.get, known, repeat(math.nan)) for bag in bags)
    values = np.fromiter(flat, np.float64, len(bags) * len(known)).reshape(len(bags), len(known))
    columns = pl.from_numpy(np.asfortranarray(values), schema=known, orient="row")
    if not np.isfinite(values).all():
        columns = columns.select(pl.when(pl.all().is_finite()).then(pl.all()))
    return columns, frozenset(present.difference(known))


def _scores(scores: Sequence[Score]) -> pl.DataFrame:
    if not scores:
        return _EMPTY
    ordered = sorted(scores, key=lambda s: (series_text(s.series), s.task, s.place.file, s.place.index, s.raw))
    own = ("task", "n", "score_name")
    return pl.DataFrame(
        [
            pl.Series("kind", ["score"], pl.String).new_from_index(0, len(ordered)),
            pl.Series("series", [series_text(s.series) for s in ordered], pl.String),
            pl.Series("record", [s.raw for s in ordered], pl.String),
            pl.Series("extra", [to_text(s.answers) if s.answers else None for s in ordered], pl.String),
            *_measurements(ordered, [sum(getattr(s, name) is not None for name in _COUNTED) for s in ordered]),
            *(pl.Series(name, [getattr(s, name) for s in ordered], COLUMNS[name]) for name in own),
            *(_finite(pl.Series(name, [getattr(s, name) for s in ordered], pl.Float64)) for name in ACCURACIES),
        ]
    )


def _measurements(records: Sequence[Point] | Sequence[Score], values: Sequence[int]) -> list[pl.Series]:
    """The columns that points and scores share; `values` counts what each has measured."""
    told = [(r.image is not None) + (r.pool is not None) for r in records]
    caveats = [to_text(r.caveats) if r.caveats else None for r in records]
    return [
        *(pl.Series(name, [getattr(r, name) for r in records], pl.String) for name in ("image", "recipe", "pool")),
        pl.Series("richness", [*map(add, values, told)], pl.Int32),
        pl.Series("place", [r.place.file for r in records], pl.String),
        pl.Series("place_index", [r.place.index for r in records], pl.Int64),
        pl.Series("created_at", [_microseconds(r.place.created_at) for r in records], pl.Int64).cast(UTC_TIME),
        pl.Series("collected", [r.place.collected for r in records], pl.Boolean),
        pl.Series("invalid", [to_text(r.invalid) if r.invalid else None for r in records], pl.String),
        pl.Series("caveats", caveats, pl.String),
    ]


def _texts(kind: str, texts: Sequence[str]) -> pl.DataFrame:
    return pl.DataFrame({"kind": [kind] * len(texts), "record": texts}, schema={"kind": pl.String, "record": pl.String})


def _finite(column: pl.Series) -> pl.Series:
    return column.to_frame().select(pl.when(pl.first().is_finite()).then(pl.first()).alias(column.name)).to_series()


def _extra(point: Point, unknown: Iterable[str]) -> str | None:
    strangers = {name: point.metrics[name] for name in unknown if name in point.metrics}
    told = {**point.extra, **strangers}
    extra = {name: value for name, value in told.items() if isinstance(value, str) or math.isfinite(value)}
    return msgspec.json.encode(extra, order="sorted").decode() if extra else None


def _microseconds(moment: datetime | None) -> int | None:
    # Whole division: a float of seconds is too coarse to keep every microsecond of this century.
    return None if moment is None else (moment - _EPOCH) // _MICROSECOND
