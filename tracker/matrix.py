"""Frames to matrices: the runs of one curve side by side, with what each run says about its software and machines.

Rows are cells (a series under one metric), columns are runs, oldest first, values natural logarithms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from store import images
from store.records import RunKey

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

TIDY: Mapping[str, type[pl.DataType] | pl.DataType] = MappingProxyType(
    {
        "run": pl.String,
        "started_at": pl.Datetime("us", "UTC"),
        "image": pl.String,
        "recipe": pl.String,
        "curve": pl.String,
        "series": pl.String,
        "conc": pl.Int64,
        "multinode": pl.Boolean,
        "metric": pl.String,
        "value": pl.Float64,
        "pool": pl.String,
        "config": pl.String,
    }
)
"""Columns of a tidy frame; `pool` and `config` may be left out."""

_SCHEMA = pl.Schema(TIDY)
_ATTEMPT = re.compile(r"^(.+)/(\d+)$")
_NUMBER = re.compile(r"-?\d+")
_MOVING_NAME = re.compile(r"latest|nightly|dev|main|master|edge|stable", re.IGNORECASE)


# ---------------------------------------------------------------- runs and identities


@dataclass(frozen=True, slots=True)
class CurveRun:
    """One run as a curve saw it."""

    id: str
    attempt: int
    started_at: datetime | None
    image: str | None
    recipe: str | None
    pool: str | None
    recipes: frozenset[tuple[str, str | None]] = frozenset()
    """(series, recipe) where the points of the run do not share one; `recipe` then names them all."""

    @property
    def key(self) -> str:
        return f"{self.id}/{self.attempt}"

    @property
    def record(self) -> RunKey | None:
        """The run as a key of the store; None for a run that has no number."""
        return RunKey(int(self.id), self.attempt) if _NUMBER.fullmatch(self.id) else None

    def order(self) -> tuple[datetime, int, int, str]:
        """Time, attempt, id: two sweeps of one day are told apart, numbers before names."""
        number = int(self.id) if _NUMBER.fullmatch(self.id) else -1
        return (self.started_at or datetime.min.replace(tzinfo=UTC), self.attempt, number, self.id)


def split_run(text: str) -> tuple[str, int]:
    """Id and attempt of a run text; a text without an attempt is the first.

    >>> split_run("27489075807/2"), split_run("nightly")
    (('27489075807', 2), ('nightly', 1))
    """
    found = _ATTEMPT.match(text)
    return (found.group(1), int(found.group(2))) if found else (text, 1)


def same_software(before: str | None, after: str | None) -> images.Sameness:
    """`images.compare`, and a plain label ("img-A": no repository, no moving word) stands for itself.

    >>> same_software("img-A", "img-A").value, same_software("a/b:latest", "a/b:latest").value
    ('same', 'unknown')
    """
    found = images.compare(before, after)
    is_label = before is not None and before == after and "/" not in before and not _MOVING_NAME.search(before)
    return images.Sameness.SAME if is_label else found


def same_recipe(one: CurveRun, other: CurveRun) -> bool:
    """One recipe for both runs, or the same recipe for every point that both measured."""
    if not (one.recipes and other.recipes):
        return one.recipe == other.recipe
    ours = dict(one.recipes)
    shared = [(ours[series], recipe) for series, recipe in other.recipes if series in ours]
    return bool(shared) and all(mine == theirs for mine, theirs in shared)


def same_identity(one: CurveRun, other: CurveRun) -> bool:
    """Same image and same recipe for certain, or one and the same run."""
    if (one.id, one.started_at) == (other.id, other.started_at):
        return True
    return same_recipe(one, other) and same_software(one.image, other.image) is images.Sameness.SAME


# ---------------------------------------------------------------- one curve as a matrix


@dataclass(frozen=True, slots=True)
class Curve:
    """The runs of one curve side by side: rows are cells (series under a metric), columns runs, oldest first."""

    key: str
    config: str
    multinode: bool
    series: tuple[str, ...]
    metrics: tuple[str, ...]
    conc: Ints
    runs: tuple[CurveRun, ...]
    values: Floats
    """ln of the value, (cells, runs); NaN where a run did not measure the cell."""
    candidates: tuple[CurveRun, ...]
    candidate: Floats
    """The same for the candidate runs."""
    strangers: tuple[CurveRun, ...]
    """Candidate runs of another identity than the newest: not judged together with it."""
    broken: Flags
    """Cells whose candidate value is zero, negative or not finite."""


# ---------------------------------------------------------------- reading frames


def tidy(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with exactly the declared columns and types; absent optional columns become nulls."""
    if frame.schema == _SCHEMA:
        return frame
    columns = [
        pl.col(name).cast(kind) if name in frame.columns else pl.lit(None, dtype=kind).alias(name)
        for name, kind in TIDY.items()
    ]
    return frame.select(columns)


def curves(history: pl.DataFrame, candidate: pl.DataFrame | None = None, *, named: bool = False) -> Iterator[Curve]:
    """Every curve of the candidate with its history as a matrix; without a candidate, every curve of the history.

    The history ends before the candidate, unless its runs were `named` one by one: then a later run or another attempt
    of the same run may stand there too.
    """
    sides = [tidy(history).with_columns(side=pl.lit(0, dtype=pl.Int8))]
    if candidate is not None:
        wanted = tidy(candidate).with_columns(side=pl.lit(1, dtype=pl.Int8))
        sides = [sides[0].filter(pl.col("curve").is_in(wanted["curve"].unique().to_list())), wanted]
    rows = pl.concat(sides)
    if not rows.is_empty():
        context = _read(rows)
        edges = np.flatnonzero(np.diff(context.curve[context.order])) + 1
        for part in np.split(context.order, edges):
            yield _curve(context, part, named)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The columns of a frame as numbers, and what each line (a curve in a run, on one side) says of itself."""

    order: Ints
    """Rows sorted by curve."""
    curve: Ints
    cell: Ints
    """Series times the number of metrics plus metric."""
    line: Ints
    value: Floats
    conc: Ints
    series: Sequence[str]
    metrics: Sequence[str]
    lines: Sequence[Mapping[str, Any]]


def _read(rows: pl.DataFrame) -> _Rows:
    """Everything that polars has to do, once for all curves."""
    curve, _ = _codes(rows["curve"])
    series, all_series = _codes(rows["series"])
    metrics, all_metrics = _codes(rows["metric"])
    run, all_runs = _codes(rows["run"])
    place = (curve * len(all_runs) + run) * 2 + rows["side"].to_numpy()
    line = _dense(place)[1]
    return _Rows(
        order=np.argsort(curve, kind="stable"),
        curve=curve,
        cell=series * len(all_metrics) + metrics,
        line=line,
        value=rows["value"].fill_null(np.nan).to_numpy(),
        conc=rows["conc"].fill_null(1).to_numpy(),
        series=all_series,
        metrics=all_metrics,
        lines=_lines(rows, line),
    )


def _codes(column: pl.Series) -> tuple[Ints, list[str]]:
    """Numbers for texts, in the order of the texts."""
    texts = column.unique().sort()
    return column.cast(pl.Enum(texts)).to_physical().cast(pl.Int64).to_numpy(), texts.to_list()


def _dense(codes: Ints) -> tuple[Ints, Ints]:
    """Distinct codes in order, and the position of each among them: np.unique, without its sort where they lie close.

    >>> [part.tolist() for part in _dense(np.array([7, 5, 7]))]
    [[5, 7], [1, 0, 1]]
    """
    least, span = int(codes.min()), int(np.ptp(codes)) + 1
    if span > 1000 + 8 * len(codes):
        return np.unique(codes, return_inverse=True)
    seen = np.zeros(span, dtype=bool)
    seen[codes - least] = True
    return np.flatnonzero(seen) + least, (np.cumsum(seen) - 1)[codes - least]


_OWN = ("image", "recipe", "pool")
"""What the rows of one line may disagree on."""


def _lines(rows: pl.DataFrame, line: Ints) -> list[dict[str, Any]]:
    """What each line says of itself, in the order of their numbers: its first row, where its rows agree."""
    first = np.empty(int(line.max()) + 1, np.int64)
    first[line[::-1]] = np.arange(len(line))[::-1]
    uneven = _uneven(rows, line, first)
    facts = rows.select(*_FIRSTS, *_OWN, pl.lit(None).alias("recipes"))[first].with_columns(_NOT_EMPTY).to_dicts()
    some = uneven[line]
    if some.any():
        for fact in _joined(rows.filter(some), line[some]).to_dicts():
            facts[fact["line"]] = fact
    return facts


_FIRSTS = ("curve", "config", "multinode", "run", "started_at", "side")
_NOT_EMPTY = tuple(pl.when(pl.col(name) != "").then(pl.col(name)).alias(name) for name in ("image", "recipe"))


def _uneven(rows: pl.DataFrame, line: Ints, first: Ints) -> Flags:
    """Lines whose rows disagree."""
    found = np.zeros(len(first), dtype=bool)
    for name in _OWN:
        column = rows[name]
        if column.null_count() < len(column):
            found[line[column.ne_missing(column.gather(first).gather(line)).to_numpy()]] = True
    return found


def _joined(rows: pl.DataFrame, line: Ints) -> pl.DataFrame:
    """One row a line. Points of one run may have images and recipes of their own: all are named."""
    texts = [pl.col(name).drop_nulls().unique().sort().str.join(" + ").alias(name) for name in ("image", "recipe")]
    pools = pl.col("pool").drop_nulls().unique()
    recipes = pl.struct("series", "recipe").filter(pl.col("recipe").n_unique() > 1).unique().alias("recipes")
    grouped = (
        rows.with_columns(line=line)
        .group_by("line")
        .agg(pl.col(_FIRSTS).first(), *texts, pools.first(), pools.len().alias("pools"), recipes)
    )
    return grouped.with_columns(*_NOT_EMPTY, pl.when(pl.col("pools") == 1).then(pl.col("pool")).alias("pool"))


def _curve(rows: _Rows, part: Ints, named: bool = False) -> Curve:
    """One curve out of its rows."""
    cells, cell = _dense(rows.cell[part])
    lines, line = _dense(rows.line[part])
    conc = np.empty(len(cells), np.int64)
    conc[cell] = rows.conc[part]
    value = rows.value[part]
    good = np.isfinite(value) & (value > 0)
    matrix = np.full((len(cells), len(lines)), np.nan)
    # The last of duplicate rows wins: a row written again is no second measurement.
    matrix[cell[good], line[good]] = np.log(value[good])
    facts = [rows.lines[number] for number in lines.tolist()]
    is_new = np.array([fact["side"] == 1 for fact in facts])
    broken = np.zeros(len(cells), dtype=bool)
    broken[cell[~good & is_new[line]]] = True
    seen = [(_curve_run(fact), column) for column, fact in enumerate(facts)]
    candidates, strangers, candidate = _candidates([item for item in seen if is_new[item[1]]], matrix)
    old = [item for item in seen if not is_new[item[1]]]
    past, values = _merge(old, matrix) if named else _past(old, matrix, candidates)
    wide = len(rows.metrics)
    return Curve(
        key=facts[0]["curve"],
        config=facts[-1]["config"] or "",
        multinode=bool(facts[-1]["multinode"]),
        series=tuple(rows.series[code // wide] for code in cells.tolist()),
        metrics=tuple(rows.metrics[code % wide] for code in cells.tolist()),
        conc=conc,
        runs=past,
        values=values,
        candidates=candidates,
        candidate=candidate,
        strangers=strangers,
        broken=broken,
    )


def _curve_run(fact: Mapping[str, Any]) -> CurveRun:
    several = fact["recipes"] or ()
    recipes = frozenset((pair["series"], pair["recipe"]) for pair in several)
    return CurveRun(*split_run(fact["run"]), fact["started_at"], fact["image"], fact["recipe"], fact["pool"], recipes)


def _merge(seen: Sequence[tuple[CurveRun, int]], matrix: Floats) -> tuple[tuple[CurveRun, ...], Floats]:
    """Attempts of one run are one run: each cell from the newest attempt that measured it. Oldest run first."""
    by_id: dict[str, list[tuple[CurveRun, int]]] = {}
    for run, column in sorted(seen, key=lambda item: item[0].order()):
        by_id.setdefault(run.id, []).append((run, column))
    columns = [_newest([matrix[:, column] for _, column in attempts]) for attempts in by_id.values()]
    runs = tuple(attempts[-1][0] for attempts in by_id.values())
    return runs, np.column_stack(columns) if columns else np.empty((len(matrix), 0))


def _newest(attempts: Sequence[Floats]) -> Floats:
    """The last known value of each cell."""
    value = attempts[0]
    for later in attempts[1:]:
        value = np.where(np.isnan(later), value, later)
    return value


def _candidates(
    seen: Sequence[tuple[CurveRun, int]], matrix: Floats
) -> tuple[tuple[CurveRun, ...], tuple[CurveRun, ...], Floats]:
    """Candidate runs of one identity, those of another, and the values of the first."""
    runs, values = _merge(seen, matrix)
    if not runs:
        return (), (), values
    # Whoever hands several runs in as one candidate says that a moving tag did not move between them.
    newest = (runs[-1].image, runs[-1].recipe)
    mine = [column for column, run in enumerate(runs) if (run.image, run.recipe) == newest]
    others = tuple(run for column, run in enumerate(runs) if column not in mine)
    return tuple(runs[column] for column in mine), others, values[:, mine]


def _past(
    seen: Sequence[tuple[CurveRun, int]], matrix: Floats, candidates: Sequence[CurveRun]
) -> tuple[tuple[CurveRun, ...], Floats]:
    """Runs before the candidate; the candidate's own rows and later runs are no past of it."""
    runs, values = _merge(seen, matrix)
    if not candidates:
        return runs, values
    first = candidates[0]
    kept = [column for column, run in enumerate(runs) if _is_before(run, first)]
    return tuple(runs[column] for column in kept), values[:, kept]


def _is_before(run: CurveRun, candidate: CurveRun) -> bool:
    if run.id == candidate.id and (run.started_at == candidate.started_at or max(run.attempt, candidate.attempt) > 1):
        return False
    if run.started_at is None or candidate.started_at is None:
        return True
    if run.started_at == candidate.started_at:
        return run.record is None or candidate.record is None or run.order() < candidate.order()
    return run.started_at < candidate.started_at


# ---------------------------------------------------------------- scatter


MANY = 5
"""From this many runs on, the middle of a stretch tells its incidents from its noise."""

CLIP = 3.0
"""Residuals of a long stretch beyond this many robust standard deviations count as this many."""

INCIDENT_SHARE = 6.0
"""Scatter this many times what is left of it after the cut was an incident."""

CLIP_FLOOR = 0.005
"""Least robust standard deviation for that rule, natural log units: the typical noise of published sweeps."""


CLIP_LOSS = 0.55
"""That rule takes this over the number of runs from the variance of normal noise (12 % of it at 5 runs): given back."""


@dataclass(frozen=True, slots=True)
class Scatter:
    """How far each row strays, seen two ways: about its mean, and from one run to the next."""

    squares: Floats
    steps: Floats
    """Half the squared steps between neighbours: the same in expectation when runs are independent, far smaller when
    the machines drift or change their pace."""
    freedom: Floats

    def __add__(self, other: Scatter) -> Scatter:
        return Scatter(self.squares + other.squares, self.steps + other.steps, self.freedom + other.freedom)

    def sum(self, persistence: Floats | float) -> Floats:
        """Sums of squares that hold between neighbours, given how much neighbours resemble each other."""
        share = np.clip(np.asarray(persistence) / STEPS_ONLY, 0.0, 1.0)
        return self.squares + share * (self.steps - self.squares)


STEPS_ONLY = 0.3
"""From this persistence on only the steps between neighbours count."""


def scatter(values: Floats) -> Scatter:
    """Residual sums of squares of each row (runs oldest first) with their degrees of freedom; NaN is not measured."""
    known = np.isfinite(values)
    count = known.sum(axis=1)
    squares, steps = np.zeros(len(values)), np.zeros(len(values))
    for size in np.unique(count[count > 1]).tolist():
        whole = size == values.shape[1] and bool(known.all())
        rows = np.flatnonzero(count == size)
        packed = values if whole else values[rows][known[rows]].reshape(len(rows), size)
        calm = _clipped(packed, size)
        kept = np.where(size >= MANY and _spread(packed) > CLIP_FLOOR, 1 - CLIP_LOSS / size, 1.0)
        squares[rows] = ((calm - calm.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) / kept
        steps[rows] = (_clipped(np.diff(packed, axis=1) / np.sqrt(2), size) ** 2).sum(axis=1) / kept
    return Scatter(squares, steps, np.maximum(count - 1.0, 0.0))


def went_through_incident(values: Floats, seen: Scatter) -> Flags:
    """Rows whose scatter is mostly an incident that `scatter` cut down: they say little about ordinary noise."""
    known = np.isfinite(values)
    count = np.maximum(known.sum(axis=1), 1)
    filled = np.where(known, values, 0.0)
    mean = filled.sum(axis=1) / count
    whole = (np.where(known, filled - mean[:, None], 0.0) ** 2).sum(axis=1)
    marked: Flags = whole > INCIDENT_SHARE * seen.squares
    return marked


def _clipped(values: Floats, size: int) -> Floats:
    """Incidents of a long stretch cut down: they are no part of its noise."""
    if size < MANY:
        return values
    middle = row_median(values)[:, None]
    limit = CLIP * np.maximum(_spread(values), CLIP_FLOOR)[:, None]
    return np.clip(values, middle - limit, middle + limit)


def _spread(values: Floats) -> Floats:
    """Robust standard deviation of each row."""
    return 1.4826 * row_median(np.abs(values - row_median(values)[:, None]))


def row_median(values: Floats) -> Floats:
    """Median of each row over what is known; NaN where nothing is (numpy warns there)."""
    ordered = np.sort(values, axis=1)
    width = values.shape[1]
    if width and np.isfinite(ordered[:, -1]).all():
        middle: Floats = (ordered[:, (width - 1) // 2] + ordered[:, width // 2]) / 2
        return middle
    count = np.isfinite(values).sum(axis=1)
    rows = np.arange(len(values))
    low, high = np.maximum(count - 1, 0) // 2, np.minimum(count // 2, values.shape[1] - 1)
    return np.where(count > 0, (ordered[rows, low] + ordered[rows, high]) / 2, np.nan)


STRETCH_PAUSE = timedelta(days=14)
"""After a longer pause nobody knows what else changed: the stretch ends, whatever image and recipe say."""


def _goes_on(last: CurveRun, run: CurveRun) -> bool:
    near = last.started_at is None or run.started_at is None or run.started_at - last.started_at <= STRETCH_PAUSE
    return near and same_identity(last, run)


def stretches(runs: Sequence[CurveRun]) -> Iterator[Ints]:
    """Columns that share image, recipe and pool, at least two of them, oldest first."""
    groups: dict[tuple[str | None, str | None], list[list[int]]] = {}
    for column, run in enumerate(runs):
        homes = groups.setdefault((run.image, run.pool), [])
        home = next((home for home in homes if _goes_on(runs[home[-1]], run)), None)
        if home is None:
            homes.append([column])
        else:
            home.append(column)
    yield from (np.array(home, np.int64) for homes in groups.values() for home in homes if len(home) > 1)
