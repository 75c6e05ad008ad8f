"""What stands against what: for every curve of a candidate its baseline runs, and everything unmatched with a reason.

Matrices come in (`tracker.matrix`), arrays of natural logarithms go out. No statistic is made here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from types import MappingProxyType

import numpy as np
import polars as pl

from store import images
from store.metrics import Better, metric
from store.records import Caveat, Unmatched, Verdict
from tracker.matrix import (
    Curve,
    CurveRun,
    Flags,
    Floats,
    Ints,
    Scatter,
    curves,
    row_median,
    same_identity,
    same_software,
    scatter,
    stretches,
)

LEVELS_BEFORE = 5
"""How many earlier runs the level of a run is held against before it may stand as the last good one."""

LENT_MOST = 4.0

LEVEL_LOST = 0.0202
"""A run below the level before by more than this (natural log units: 2 %) is not a good one."""


@dataclass(frozen=True, slots=True)
class CurvePair:
    """One curve with its baseline: what the statistics need, cell by cell."""

    curve: Curve
    cells: Ints
    """Rows of `curve` that stand on both sides."""
    used: Ints
    """Columns of `curve` that the baseline is made of, oldest first."""
    baseline: Floats
    """(cells, up to 5), oldest first, NaN padded on the left."""
    candidate: Floats
    lent: Scatter
    """Scatter of the other stretches of each series."""
    caveats: tuple[Caveat, ...]
    older: Flags
    """Cells that the newest baseline run lacks."""

    @property
    def baseline_runs(self) -> tuple[CurveRun, ...]:
        return tuple(self.curve.runs[column] for column in self.used.tolist())


@dataclass(frozen=True, slots=True)
class Pairing:
    """A whole candidate against its history."""

    pairs: tuple[CurvePair, ...]
    unmatched: tuple[Unmatched, ...]
    curves: tuple[Curve, ...]


# ---------------------------------------------------------------- choosing a baseline


@dataclass(frozen=True, slots=True)
class Baseline:
    """How the baseline is chosen: a kind from CHOICES and its argument."""

    kind: str = "previous"
    value: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}" if self.value else self.kind


def parse_baseline(text: str) -> Baseline:
    """Read a baseline as a user writes it.

    >>> parse_baseline("image:lmsysorg/sglang:v0.5.9"), str(parse_baseline("last-good"))
    (Baseline(kind='image', value='lmsysorg/sglang:v0.5.9'), 'last-good')
    """
    kind, _, value = text.strip().partition(":")
    pattern = _ARGUMENTS.get(kind)
    if pattern is None or not re.fullmatch(pattern, value) or (kind == "date" and not _is_date(value)):
        raise ValueError(f"{text!r} is no baseline: write {_SPELLINGS}")
    return Baseline(kind, value)


_ARGUMENTS: Mapping[str, str] = MappingProxyType(
    {
        "previous": "",
        "last-good": "",
        "run": r"\S+",
        "image": r"\S+",
        "date": r"\d{4}-\d{2}-\d{2}",
        "window": r"[1-9]\d{0,4}d",
    }
)
_SPELLINGS = "previous, last-good, run:ID[/ATTEMPT], image:REFERENCE, date:YYYY-MM-DD or window:30d"


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


STEP = 0.0953
"""Natural log of 1.10. Reruns of one image lie within a few per cent; beyond this, something else was changed."""

LEAST_FOR_A_MAJORITY = 3

Choice = Callable[[Curve, Ints, str], Ints]
"""(curve, comparable run columns, argument) -> baseline columns, oldest first; empty where none fits."""


def _identity_of(curve: Curve, comparable: Ints, newest: int) -> Ints:
    """The comparable runs up to `newest` that have its image and recipe."""
    base = curve.runs[newest]
    return np.array([c for c in comparable.tolist() if c <= newest and same_identity(curve.runs[c], base)], np.int64)


def _previous(curve: Curve, comparable: Ints, _: str) -> Ints:
    if not len(comparable):
        return comparable
    alike = _identity_of(curve, comparable, int(comparable[-1]))
    # Two runs under one name that far apart are two things, and no majority says which is odd: the newer one counts.
    return alike[1:] if len(alike) == 2 and _apart(curve, *alike.tolist()) > STEP else alike


def _apart(curve: Curve, one: int, other: int) -> float:
    return abs(_level(curve, curve.values[:, one] - curve.values[:, other]))


def _last_good(curve: Curve, comparable: Ints, _: str) -> Ints:
    good: list[int] = []
    for column in comparable.tolist():
        # Held against good runs alone: a run of bad ones must not become the measure.
        if _is_good(curve, np.array(good, np.int64), column):
            good.append(column)
    if not good:
        return comparable[:0]
    alike = _identity_of(curve, np.array(good, np.int64), good[-1])
    return alike[-LEVELS_BEFORE:]


def _is_good(curve: Curve, before: Ints, column: int) -> bool:
    """At least the level of the runs before it, on the points they share."""
    if not len(before):
        return True
    with np.errstate(all="ignore"):
        level = row_median(curve.values[:, before[-LEVELS_BEFORE:]])
    return _level(curve, curve.values[:, column] - level) > -LEVEL_LOST


def _directions(curve: Curve) -> Floats:
    """+1 where more is better, -1 where less is, 0 where nobody knows."""
    sign = {Better.HIGHER: 1.0, Better.LOWER: -1.0, Better.UNKNOWN: 0.0}
    table = {name: sign[metric(name).better] for name in set(curve.metrics)}
    return np.array([table[name] for name in curve.metrics])


def _gates(curve: Curve) -> Flags:
    """Cells that tell the level of a run: throughput, else whatever the curve has."""
    chosen = np.array([name == "tput_per_gpu" for name in curve.metrics])
    return chosen if chosen.any() else np.ones(len(chosen), dtype=bool)


def _run(curve: Curve, comparable: Ints, value: str) -> Ints:
    name, _, attempt = value.partition("/")
    return np.array(
        [
            c
            for c in comparable.tolist()
            if curve.runs[c].id in (name, value) and (not attempt or curve.runs[c].key == value)
        ],
        np.int64,
    )[-1:]


def _image(curve: Curve, comparable: Ints, value: str) -> Ints:
    wanted = images.canonical(value)
    fit = [
        c
        for c in comparable.tolist()
        if same_software(curve.runs[c].image, value) is images.Sameness.SAME
        or images.canonical(curve.runs[c].image) == wanted
    ]
    return _identity_of(curve, comparable, fit[-1]) if fit else comparable[:0]


def _date(curve: Curve, comparable: Ints, value: str) -> Ints:
    end = datetime.fromisoformat(value).replace(tzinfo=UTC) + timedelta(days=1)
    early = np.array([c for c in comparable.tolist() if _started(curve, c) < end], np.int64)
    return _previous(curve, early, "")


def _window(curve: Curve, comparable: Ints, value: str) -> Ints:
    newest = curve.candidates[0].started_at or datetime.max.replace(tzinfo=UTC)
    start = newest - timedelta(days=int(value[:-1]))
    return np.array([c for c in comparable.tolist() if _started(curve, c) >= start], np.int64)


def _started(curve: Curve, column: int) -> datetime:
    return curve.runs[column].started_at or datetime.min.replace(tzinfo=UTC)


CHOICES: Mapping[str, Choice] = MappingProxyType(
    {"previous": _previous, "last-good": _last_good, "run": _run, "image": _image, "date": _date, "window": _window}
)
"""Ways to choose a baseline: a new one is a function and an entry (and its spelling in `_ARGUMENTS`)."""


# ---------------------------------------------------------------- pairing


def pair(history: pl.DataFrame, candidate: pl.DataFrame, baseline: Baseline, most: int = 5) -> Pairing:
    """Every curve of the candidate with at most `most` baseline runs; what does not match is listed with its reason."""
    found = tuple(curves(history, candidate, named=baseline.kind == "run"))
    pairs: list[CurvePair] = []
    unmatched: list[Unmatched] = []
    for curve in found:
        made = pair_curve(curve, baseline, most)
        unmatched.extend(_left_over(curve, made))
        if made is not None and len(made.cells):
            pairs.append(made)
    return Pairing(tuple(pairs), tuple(unmatched), found)


def pair_curve(curve: Curve, baseline: Baseline, most: int) -> CurvePair | None:
    """One curve with its baseline, or None where no run may stand for it."""
    chosen = chosen_runs(curve, baseline)
    return pair_columns(curve, chosen, most) if len(chosen) else None


def chosen_runs(curve: Curve, baseline: Baseline) -> Ints:
    """Columns of the runs that may stand for the baseline, oldest first; empty where none may."""
    return CHOICES[baseline.kind](curve, comparable_runs(curve), baseline.value)


def pair_columns(curve: Curve, chosen: Ints, most: int) -> CurvePair:
    """One curve against these runs of its history: each cell takes the newest `most` of them that measured it."""
    values = curve.values[:, chosen]
    known = np.isfinite(values)
    # A stable sort by "known" moves what is known to the right and keeps its order.
    order = np.argsort(known, axis=1, kind="stable")[:, -most:]
    base = np.take_along_axis(values, order, axis=1)
    cells = np.flatnonzero(np.isfinite(base[:, -1]) & np.isfinite(curve.candidate).any(axis=1))
    used = np.unique(chosen[order[cells]][np.isfinite(base[cells])])
    return CurvePair(
        curve=curve,
        cells=cells,
        used=used,
        baseline=base[cells],
        candidate=curve.candidate[cells],
        lent=lent(curve, cells, used),
        caveats=software_caveats(curve, used),
        older=~known[cells, -1],
    )


def newer_of_baseline(pair: CurvePair) -> Ints:
    """Runs of the baseline's software nearer to the candidate: after the baseline, else its newest where it drifted."""
    curve, last = pair.curve, int(pair.used[-1])
    if _is_odd(pair):
        return pair.used[:0]
    later = [c for c in comparable_runs(curve).tolist() if c > last]
    fit = [c for c in later if same_identity(curve.runs[c], curve.runs[last])]
    return np.array(fit or pair.used[-1:][: _drifted(pair)], np.int64)


def _is_odd(pair: CurvePair) -> bool:
    """The newest of three or more baseline runs lies far from the others and from the candidate: it tells nothing."""
    if len(pair.used) < LEAST_FOR_A_MAJORITY:
        return False
    curve, newest = pair.curve, int(pair.used[-1])
    older = row_median(curve.values[:, pair.used[:-1]])
    off = _level(curve, curve.values[:, newest] - older)
    whole = _level(curve, curve.candidate.T[-1] - older)
    return abs(off) > STEP and (off * whole <= 0 or abs(off) > 2 * abs(whole))


def _drifted(pair: CurvePair) -> bool:
    """Half of the way from the older baseline runs to the candidate was gone before the candidate came."""
    if len(pair.used) < 2:
        return False
    curve = pair.curve
    older = row_median(curve.values[:, pair.used[:-1]])
    before = _level(curve, curve.values[:, pair.used[-1]] - older)
    whole = _level(curve, curve.candidate.T[-1] - older)
    return before * whole > 0 and abs(before) >= max(abs(whole) / 2, LEVEL_LOST)


def own_past(pair: CurvePair) -> Ints:
    """Earlier runs of the candidate's own image and recipe that can tell whether the machines moved since the baseline.

    Runs older than the baseline can only where the baseline's software ran beside them and has kept its level since.
    """
    curve, new, now = pair.curve, pair.curve.candidates[-1], int(pair.used[-1])
    comparable = comparable_runs(curve).tolist()
    own = [c for c in comparable if c not in pair.used and same_identity(curve.runs[c], new)]
    if not own or own[-1] > now:
        return np.array(own, np.int64)
    beside = [c for c in comparable if c != now and same_identity(curve.runs[c], curve.runs[now])]
    then = min(beside, key=lambda c: abs(c - own[-1]), default=None)
    if then is None:
        return np.array([], np.int64)
    moved = _level(curve, curve.candidate.T[-1] - curve.values[:, own[-1]])
    along = _level(curve, curve.values[:, now] - curve.values[:, then])
    return np.array([] if abs(along) >= abs(moved) / 2 else own, np.int64)


def _level(curve: Curve, change: Floats) -> float:
    """Mean change for the better over the cells that tell the level of a run; 0 where none is known."""
    good = (change * _directions(curve))[_gates(curve)]
    good = good[np.isfinite(good)]
    return float(good.mean()) if len(good) else 0.0


def last_good(pair: CurvePair) -> Ints:
    """The last good runs, where they are others than the baseline."""
    good = _last_good(pair.curve, comparable_runs(pair.curve), "")
    return good[:0] if len(good) and good[-1] in pair.used else good


def comparable_runs(curve: Curve) -> Ints:
    """Columns of runs on the candidate's pool, or on one that nobody knows."""
    pool = curve.candidates[-1].pool
    fit = [c for c, run in enumerate(curve.runs) if pool is None or run.pool in (None, pool)]
    same = [c for c in fit if pool is not None and curve.runs[c].pool == pool]
    return np.array(same or fit, np.int64)


def lent(curve: Curve, cells: Ints, used: Ints) -> Scatter:
    """What the other stretches of each series say about its scatter.

    An image that was unsteady itself says little about the others: no stretch lends more than LENT_MOST times the
    median variance of the stretches of its series.
    """
    others = np.setdiff1d(np.arange(len(curve.runs)), used)
    parts = [
        scatter(curve.values[np.ix_(cells, others[columns])])
        for columns in stretches([curve.runs[c] for c in others.tolist()])
    ]
    nothing = Scatter(*(np.zeros(len(cells)) for _ in range(3)))
    if not parts:
        return nothing
    freedom = np.stack([part.freedom for part in parts])
    with np.errstate(invalid="ignore"):
        variance = np.where(freedom > 0, np.stack([part.squares for part in parts]) / freedom, np.nan)
    limit = LENT_MOST * row_median(variance.T)
    capped = (
        Scatter(np.fmin(part.squares, limit * part.freedom), np.fmin(part.steps, limit * part.freedom), part.freedom)
        for part in parts
    )
    return sum(capped, nothing)


def software_caveats(curve: Curve, used: Ints) -> tuple[Caveat, ...]:
    """What is not known, or is unusual, about image and recipe of the two sides."""
    if not len(used):
        return ()
    base, new = curve.runs[used[-1]], curve.candidates[-1]
    software = same_software(base.image, new.image)
    found = []
    if software is images.Sameness.UNKNOWN:
        found.append(Caveat.of("image_unknown"))
    # The fingerprint hashes the image with the recipe: where the image changed, it tells nothing of the recipe.
    if base.recipe != new.recipe and software is images.Sameness.SAME:
        found.append(Caveat.of("recipe_changed" if base.recipe and new.recipe else "recipe_unknown"))
    earlier = _earlier_run(curve, int(used[-1])) if software is images.Sameness.CHANGED else None
    if earlier is not None:
        found.append(Caveat.of("image_rollback", image=new.image, run=earlier.key))
    return tuple(found)


def _earlier_run(curve: Curve, newest: int) -> CurveRun | None:
    """The last run before the baseline that had the candidate's image already."""
    wanted = curve.candidates[-1].image
    past = [run for run in curve.runs[:newest] if same_software(run.image, wanted) is images.Sameness.SAME]
    return past[-1] if past else None


# ---------------------------------------------------------------- what is left over


def _left_over(curve: Curve, made: CurvePair | None) -> Iterator[Unmatched]:
    """Points that stand on one side only, once each whatever their metrics."""
    matched = {curve.series[cell] for cell in made.cells.tolist()} if made is not None else set()
    for series, cells in groupby(range(len(curve.series)), key=lambda cell: curve.series[cell]):
        if series in matched:
            continue
        rows = list(cells)
        reason = _reason(curve, made, np.array(rows, np.int64))
        if reason is not None:
            verdict, side, caveat = reason
            run = curve.candidates[-1] if side == "candidate" else made.baseline_runs[-1] if made else None
            yield Unmatched(series, side, verdict, caveat, config=curve.config, run=run.record if run else None)


def _reason(curve: Curve, made: CurvePair | None, rows: Ints) -> tuple[Verdict, str, Caveat] | None:
    """Why a point has no partner; None when neither the candidate nor its baseline measured it."""
    measured = bool(np.isfinite(curve.candidate[rows]).any())
    if not measured and curve.broken[rows].any():
        return Verdict.INVALID, "candidate", Caveat.of("invalid_value")
    if not measured:
        in_base = made is not None and any(
            np.isfinite(curve.values[rows, curve.runs.index(run)]).any() for run in made.baseline_runs[-1:]
        )
        return (Verdict.MISSING, "baseline", Caveat.of("missing_point")) if in_base else None
    if made is None and len(curve.runs) and not len(comparable_runs(curve)):
        pools = sorted({run.pool for run in curve.runs if run.pool})
        return (
            Verdict.NOT_COMPARABLE,
            "candidate",
            Caveat.of("pool_changed", baseline=", ".join(pools), candidate=curve.candidates[-1].pool),
        )
    seen = bool(len(curve.runs)) and bool(np.isfinite(curve.values[rows]).any())
    return Verdict.NO_BASELINE, "candidate", Caveat.of("no_baseline" if seen or not curve.runs else "new_point")
