"""Compare two frames without a store: what a notebook needs.

>>> import polars as pl
>>> def sweep(run, image, factor):
...     return pl.DataFrame(
...         [
...             {"run": run, "image": image, "curve": "demo", "series": f"demo c{c}", "conc": c, "multinode": False,
...              "metric": "tput_per_gpu", "value": factor * 100.0 * c}
...             for c in (4, 16, 64)
...         ]
...     )
>>> answer = compare_frames(sweep("1", "engine:v1.0", 1.0), sweep("2", "engine:v1.1", 0.9))
>>> answer.filter(pl.col("scope") == "curve").select("key", "verdict", pl.col("effect").round(3)).rows()
[('demo', 'regression', -0.105)]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from weakref import ref

import polars as pl

from store.records import Caveat, Finding, Unmatched
from tracker.judge.learn import learn
from tracker.judge.sweep import Judged, judge_frames
from tracker.matrix import TIDY
from tracker.pairs import Baseline
from tracker.settings import Settings
from tracker.stats.noise import Scales

REQUIRED = ("run", "series", "metric", "value")
"""Columns that a frame cannot do without; the others of `tracker.matrix.TIDY` may be absent or null."""

RESULT: Mapping[str, type[pl.DataType] | pl.DataType] = {
    "scope": pl.String,
    "key": pl.String,
    "metric": pl.String,
    "verdict": pl.String,
    "effect": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "mde": pl.Float64,
    "n_baseline": pl.Int64,
    "n_candidate": pl.Int64,
    "caveats": pl.List(pl.String),
}
"""Columns of the answer: `effect`, its 95 % interval and `mde` are natural log ratios; `caveats` are codes."""


def compare_frames(history: pl.DataFrame, candidate: pl.DataFrame, settings: Settings | None = None) -> pl.DataFrame:
    """Judge the candidate's runs against their history; tidy frames in, one finding a row out.

    Both frames have one row per run, point and metric:

    run         text or number that names a run ("ID/ATTEMPT"); several candidate runs of one image are judged together
    started_at  time of the run (without a zone: UTC); orders the runs
    image       reference or label of what ran, null where unknown
    recipe      fingerprint or label of how it ran, null where unknown
    curve       everything that must be equal before two points lie on one curve; series without it stand alone
    series      the curve and its concurrency
    conc        concurrency
    multinode   True where the engine spans several nodes
    metric      a key of `store.metrics` ("tput_per_gpu", "median_tpot", ...); an unknown one is shown, never judged
    value       the measured value in the metric's unit; not positive or not finite is invalid, never a number

    Optional are `pool` (two known and different ones are not compared) and `config`.

    The answer has one row per point (`scope` "point", `key` its series) and per curve ("curve") and metric: `verdict`,
    `effect` with its 95 % interval `low`, `high`, and `mde`, the smallest change found 80 % of the time (natural log
    ratios of candidate over baseline; `mde` is positive), `p` two-sided, `n_baseline` and `n_candidate` runs, and
    `caveats`, a list of codes. Points without a partner come last, with a null metric and the reason as caveat.

    The baseline of a curve is the newest image and recipe of the history before the candidate, its last five runs.
    The noise is learned from the history's own stretches of equal image and recipe, else it is the shipped one; what
    was learned can be passed back: `Settings(scales=learn_scales(history))`. Nothing of the candidate is learned from.

    Raises ValueError where a frame lacks a column that nothing can stand for, with what to give.

    >>> from datetime import datetime
    >>> row = {"image": "v1", "recipe": None, "curve": "c", "series": "c c64", "conc": 64, "multinode": False}
    >>> row |= {"run": "1/1", "started_at": datetime(2026, 6, 1), "metric": "tput_per_gpu", "value": 1000.0}
    >>> new = row | {"run": "2/1", "started_at": datetime(2026, 6, 2), "image": "v2", "value": 700.0}
    >>> found = compare_frames(pl.DataFrame([row]), pl.DataFrame([new]))
    >>> found.filter(pl.col("scope") == "curve")["verdict"].to_list()
    ['regression']
    """
    chosen = settings or Settings()
    if chosen.scales is not None and {"curve"} <= set(history.columns) & set(candidate.columns):
        # With the noise known, other curves have nothing to say: a thousand candidates need not read them all.
        history = _of_curves(history, candidate["curve"].unique().to_list())
    past, new = (_ready(frame, name) for frame, name in ((history, "history"), (candidate, "candidate")))
    if "image" not in history.columns and "image" not in candidate.columns:
        past, new = (frame.with_columns(image=pl.lit(name)) for frame, name in ((past, "history"), (new, "candidate")))
    return _frame(judge_frames(_in_order(past, new), new, chosen, Baseline()))


@dataclass(frozen=True, slots=True)
class _Known:
    """A history seen before; from the second time on, with the rows of each curve."""

    frame: ref[pl.DataFrame]
    height: int
    rows: Mapping[str, pl.Series] | None = None


_KNOWN: dict[int, _Known] = {}


def _of_curves(history: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The rows of these curves. Where each curve stands in a frame is remembered while the frame lives."""
    key, known = id(history), _KNOWN.get(id(history))
    if known is None or known.frame() is not history or known.height != history.height:
        _KNOWN[key] = _Known(ref(history, lambda _: _KNOWN.pop(key, None)), history.height)
        return history.filter(pl.col("curve").is_in(names))
    if known.rows is None:
        groups = history.select("curve").with_row_index("row").group_by("curve").agg("row")
        known = replace(known, rows=dict(zip(groups["curve"], groups["row"], strict=True)))
        _KNOWN[key] = known
    rows = known.rows or {}
    found = history[pl.concat([pl.Series("row", [], pl.UInt32), *(rows[name] for name in names if name in rows)])]
    if found["curve"].is_in(names).all():
        return found
    # A frame that was written into since: its rows stand elsewhere now.
    del _KNOWN[key]
    return history.filter(pl.col("curve").is_in(names))


def learn_scales(history: pl.DataFrame, settings: Settings | None = None) -> Scales:
    """Noise scales from the history's own unchanged stretches, to be handed back as `Settings(scales=...)`."""
    return learn(_ready(history, "history"), settings or Settings())


def _ready(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """The frame in the declared columns, or a ValueError that says what to do."""
    missing = [column for column in REQUIRED if column not in frame.columns]
    if missing:
        raise ValueError(f"{name} lacks {', '.join(missing)}: give one row per point and metric with {', '.join(TIDY)}")
    empty = [column for column in ("run", "series", "metric") if frame[column].null_count()]
    if empty:
        raise ValueError(f"{name} has rows without {', '.join(empty)}: fill or drop these rows, they belong to nothing")
    if frame.schema == _SCHEMA:
        return frame
    return frame.select([_column(frame, column, kind, name) for column, kind in TIDY.items()])


def _column(frame: pl.DataFrame, column: str, kind: type[pl.DataType] | pl.DataType, name: str) -> pl.Expr:
    if column == "curve" and column not in frame.columns:
        return pl.col("series").cast(pl.String).alias("curve")
    if column not in frame.columns:
        return pl.lit(_ABSENT.get(column), dtype=kind).alias(column)
    return _time(frame.schema[column], name) if column == "started_at" else pl.col(column).cast(kind)


def _time(found: pl.DataType, name: str) -> pl.Expr:
    """`started_at` in UTC; a time without a zone is taken for UTC."""
    column = pl.col("started_at")
    if found == pl.String:
        return column.str.to_datetime(time_unit="us", time_zone="UTC", strict=False)
    if isinstance(found, pl.Datetime) and found.time_zone is not None:
        return column.dt.convert_time_zone("UTC").cast(_UTC)
    if isinstance(found, (pl.Datetime, pl.Date, pl.Null)):
        return column.cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    raise ValueError(f"{name}: started_at is {found}; give datetimes (UTC) or ISO texts")


_SCHEMA = pl.Schema(TIDY)
_UTC = pl.Datetime("us", "UTC")
_ABSENT = {"conc": 1, "multinode": False}


def _in_order(history: pl.DataFrame, candidate: pl.DataFrame) -> pl.DataFrame:
    """A history that lies wholly after the candidate was meant as its baseline all the same: it loses its dates."""
    first = history.select(pl.col("started_at").min()).item()
    last = candidate.select(pl.col("started_at").max()).item()
    if first is None or last is None or first <= last:
        return history
    return history.with_columns(started_at=pl.lit(None, dtype=_UTC))


def _frame(judged: Judged) -> pl.DataFrame:
    rows = [
        *map(_finding_row, (f for f in judged.findings if f.scope != "config")),
        *map(_unmatched_row, judged.unmatched),
    ]
    return pl.DataFrame(rows, schema=RESULT, orient="row")


def _codes(caveats: tuple[Caveat, ...]) -> list[str]:
    return [caveat.code for caveat in caveats]


def _finding_row(f: Finding) -> tuple[object, ...]:
    numbers = (f.effect, f.low, f.high, f.p, f.mde, f.n_baseline, f.n_candidate)
    return (f.scope.value, f.key, f.metric, f.verdict.value, *numbers, _codes(f.caveats))


def _unmatched_row(one: Unmatched) -> tuple[object, ...]:
    return ("point", one.key, None, one.verdict.value, None, None, None, None, None, 0, 0, [one.reason.code])
