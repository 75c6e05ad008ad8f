"""Chooses what a picture shows of a comparison: the points of a curve, its history, the scores of an eval. No words.

Only what the records say is placed; interactivity is the inverse of the median TPOT, as the metric table has it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from reports.things import RANK, badness, curve_text, decides, gate, is_eval, told_verdict
from store.identity import curve_key, curve_of
from store.images import Sameness, compare
from store.records import Comparison, Finding, Level, RunKey, Scope, Unmatched, Verdict

SPEED, PACE = "tput_per_gpu", "median_tpot"
"""The metrics of the two axes: throughput per GPU, and TPOT, whose inverse is interactivity."""

_DRAWN = frozenset({Verdict.NO_BASELINE, Verdict.NOT_COMPARABLE})
"""States of points that were measured and stand alone."""
_STILL = frozenset({Verdict.EQUIVALENT, Verdict.NO_BASELINE})


@dataclass(frozen=True, slots=True)
class Spot:
    """One point of a curve: interactivity (tok/s/user) and throughput per GPU on each side, as far as measured."""

    conc: int
    row: Finding | Unmatched
    before: tuple[float, float] | None
    after: tuple[float, float] | None
    low: float | None = None
    high: float | None = None
    """Ends of the 95 % interval of the candidate's throughput beside the baseline's, in tok/s/GPU."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A run in the history of a curve; `is_bumped` where its image is known to differ from that of the run before."""

    run: RunKey
    started_at: datetime
    level: float
    image: str | None
    is_bumped: bool
    is_candidate: bool


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve that has something to draw; `row` tells it: its throughput, or the first of its points."""

    key: str
    row: Finding | Unmatched
    verdict: Verdict
    spots: tuple[Spot, ...]
    history: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Exam:
    """The scores of one eval, as fractions; `error` is one standard error of the candidate's."""

    finding: Finding
    score: float
    before: float | None
    error: float | None
    threshold: float | None


def curves(comparison: Comparison) -> tuple[Curve, ...]:
    """Every curve with a point or a history to draw, worst first."""
    tellers = _curve_rows(comparison)
    spots = _spots(comparison)
    new = {run.key for run in comparison.candidate}
    keys = dict.fromkeys((*tellers, *spots))
    found = (
        _curve(key, tellers.get(key, ()), spots.get(key, ()), _marks(comparison.history.get(key, ()), new))
        for key in keys
    )
    return tuple(sorted((one for one in found if one.spots or one.history), key=_worst_first))


def moved(found: Iterable[Curve]) -> tuple[Curve, ...]:
    """The curves that moved or could not be decided."""
    return tuple(one for one in found if one.verdict not in _STILL)


def exams(comparison: Comparison) -> tuple[Exam, ...]:
    """Every eval job with a score, worst first; of its metrics the one that the findings name first, the worst."""
    best: dict[tuple[str, str | None], Finding] = {}
    for finding in comparison.findings:
        if finding.scope is Scope.EVAL and gate(finding)[0] is not None:
            best.setdefault((finding.key, finding.task), finding)
    return tuple(map(_exam, best.values()))


def _exam(finding: Finding) -> Exam:
    score, threshold = gate(finding)
    said = [dict(c.values).get("standard_error") for c in finding.caveats if c.code == "eval_size"]
    error = next((float(v) for v in said if isinstance(v, int | float) and math.isfinite(v)), None)
    return Exam(finding, score or 0.0, finding.baseline, error, threshold)


def _curve_rows(comparison: Comparison) -> dict[str, list[Finding]]:
    """The deciding findings of each curve."""
    found: dict[str, list[Finding]] = {}
    for finding in comparison.findings:
        if finding.scope is Scope.CURVE and decides(finding) and not is_eval(finding):
            found.setdefault(finding.key, []).append(finding)
    return found


def _curve(key: str, tellers: Sequence[Finding], spots: Sequence[Spot], history: tuple[Mark, ...]) -> Curve:
    rows: Sequence[Finding | Unmatched] = tellers or [spot.row for spot in spots]
    row = next((one for one in rows if isinstance(one, Finding) and one.metric == SPEED), rows[0])
    if row.series is not None and row.series.conc is not None:
        row = replace(row, key=key, series=curve_of(row.series))
    verdicts = [told_verdict(one) if isinstance(one, Finding) else one.verdict for one in rows]
    return Curve(key, row, min(verdicts, key=RANK.__getitem__), tuple(spots), history)


def traced(finding: Finding, key: str, levels: Sequence[Level], since: datetime) -> Curve | None:
    """A curve with nothing but its history, whose runs from a moment on are the candidate's; None without one."""
    marks = _marks(levels, {one.run for one in levels if one.started_at >= since})
    if not marks or finding.series is None:
        return None
    row = replace(finding, key=key, series=curve_of(finding.series))
    return Curve(key, row, told_verdict(finding), (), marks)


def _worst_first(curve: Curve) -> tuple[int, float, str]:
    bad = badness(curve.row) if isinstance(curve.row, Finding) else 0.0
    return (RANK[curve.verdict], -bad, curve.key)


def _spots(comparison: Comparison) -> dict[str, list[Spot]]:
    """The points of each curve that have a place on both axes, by concurrency."""
    pairs: dict[str, dict[str, Finding]] = {}
    for finding in comparison.findings:
        if finding.scope is Scope.POINT and finding.metric in (SPEED, PACE):
            pairs.setdefault(finding.key, {})[finding.metric] = finding
    found: dict[str, list[Spot]] = {}
    for pair in pairs.values():
        if len(pair) == 2 and pair[SPEED].series is not None and (spot := _judged(pair[SPEED], pair[PACE])):
            found.setdefault(curve_text(pair[SPEED]), []).append(spot)
    for row in comparison.unmatched:
        if row.series is not None and row.key not in pairs and (alone := _alone(row)):
            found.setdefault(curve_key(curve_of(row.series)), []).append(alone)
    return {curve: sorted(spots, key=lambda spot: spot.conc) for curve, spots in found.items()}


def _judged(speed: Finding, pace: Finding) -> Spot | None:
    before, after = _place(speed.baseline, pace.baseline), _place(speed.candidate, pace.candidate)
    if speed.series is None or speed.series.conc is None or after is None:
        return None
    low, high = (_scaled(speed.baseline, end) for end in (speed.low, speed.high))
    return Spot(speed.series.conc, speed, before, after, low, high)


def _alone(row: Unmatched) -> Spot | None:
    after = _place(row.metrics.get(SPEED), row.metrics.get(PACE))
    if row.verdict not in _DRAWN or row.series is None or row.series.conc is None or after is None:
        return None
    return Spot(row.series.conc, row, None, after)


def _place(speed: float | None, pace: float | None) -> tuple[float, float] | None:
    """Interactivity and throughput, or None where one of them is not a positive number."""
    if speed is None or pace is None or not (math.isfinite(speed) and math.isfinite(pace)) or min(speed, pace) <= 0:
        return None
    return 1 / pace, speed


def _scaled(value: float | None, effect: float | None) -> float | None:
    if value is None or effect is None or not math.isfinite(value) or abs(effect) > math.log(1e6):
        return None
    return value * math.exp(effect)


def _marks(levels: Sequence[Level], new: set[RunKey]) -> tuple[Mark, ...]:
    """A history is drawn from two runs on."""
    levels = [one for one in levels if math.isfinite(one.level)]
    if len(levels) < 2:
        return ()
    before = (None, *(one.image for one in levels))
    return tuple(
        Mark(one.run, one.started_at, one.level, one.image, _is_bump(old, one.image), one.run in new)
        for one, old in zip(levels, before, strict=False)
    )


def _is_bump(before: str | None, after: str | None) -> bool:
    return before is not None and after is not None and compare(before, after) is Sameness.CHANGED
