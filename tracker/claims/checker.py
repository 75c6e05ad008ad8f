"""Claims beside measurements: verified, contradicted, or unverifiable with the reason; of numbers, never of authors.

How far a claimed number may be from the measured one (rounding is half a unit of the last digit given):

| claim | tolerance |
|---|---|
| approximate (`~`, 约) level, ratio, change | rounding, 5 % of the number claimed, the noise interval |
| exact level, ratio, change | rounding, the noise interval of the finding |
| the same without a noise interval | rounding; up to 5 % beyond it is unverifiable (`noise_unknown`) |
| score | rounding; approximate: one unit of the last digit more; two scores: the means of the runs of a series |
| `up to`, `at least`, `within` | as above, against the greatest, the least, every point |

A level of several points, or a change that some points bear out and others do not, is `ambiguous_binding`; a change
outside of what every point shows is contradicted whatever point was meant. A peak is that of its group, over all the
layouts of both sides, where it was judged; else the best value over the points of one sequence. A claim of change needs
both sides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from store.metrics import Better, metric
from store.records import Caveat, Score, Series
from tracker.claims.match import matches
from tracker.claims.records import PEAK, Answer, Bound, Checked, Claim, Direction, Kind, Measured, Reason

_APPROXIMATE = 0.05
_UNKNOWN_NOISE = 0.05


def check(
    claims: Iterable[Claim],
    points: Iterable[Measured],
    scores: Iterable[Score] = (),
    baseline_scores: Iterable[Score] = (),
) -> tuple[Checked, ...]:
    """Each claim with its answer, in the order of the claims.

    `points` are the measured metrics of the sweep (`Measured.of(findings)`), `scores` its evals and `baseline_scores`
    those of what it is compared with.
    """
    evidence = _Evidence(tuple(points), tuple(scores), tuple(baseline_scores))
    return tuple(_check(claim, evidence) for claim in claims)


@dataclass(frozen=True, slots=True)
class _Evidence:
    points: tuple[Measured, ...]
    scores: tuple[Score, ...]
    baseline_scores: tuple[Score, ...]


@dataclass(frozen=True, slots=True)
class _Quantity:
    """A measured number and the interval that noise leaves it, in the unit that the claim is compared in."""

    value: float
    low: float
    high: float
    known: bool


class _Fit(Enum):
    INSIDE = "inside"
    UNKNOWN = "unknown"
    OUTSIDE = "outside"


def _check(claim: Claim, evidence: _Evidence) -> Checked:
    if (
        claim.binding.task is not None
        or claim.kind in (Kind.SCORE, Kind.SCORE_RANGE)
        or claim.unit in ("fraction", "pp")
    ):
        return _check_score(claim, evidence)
    if claim.metric is None:
        return _unverifiable(claim, Reason.METRIC_UNSAID)
    if claim.unit is None and claim.kind in (Kind.LEVEL, Kind.FROM_TO):
        return _unverifiable(claim, Reason.UNIT_UNSAID)
    points = _peaks(claim, evidence.points) or _meant(claim, evidence.points, claim.metric)
    if not points:
        return _unverifiable(claim, Reason.NO_POINTS)
    return _BY_KIND[claim.kind](claim, points)


def _meant(claim: Claim, points: Iterable[Measured], name: str) -> tuple[Measured, ...]:
    """The measured numbers of a metric that the claim may speak of."""
    return tuple(p for p in points if p.metric == name and matches(claim.binding, p.series, p.config))


def _peaks(claim: Claim, points: Iterable[Measured]) -> tuple[Measured, ...]:
    """The judged peaks of whole groups, where the claim speaks of a peak and names no part of a group.

    Layouts that were replaced have no points in common: a pair of peaks is all that there is.
    """
    part = claim.binding.layouts or claim.binding.concurrency
    if not claim.binding.peak or part or claim.metric != "tput_per_gpu":
        return ()
    return _meant(claim, points, PEAK)


def _unverifiable(claim: Claim, reason: Reason, points: tuple[Measured, ...] = ()) -> Checked:
    return Checked(claim, Answer.UNVERIFIABLE, Caveat.of(reason.value), points=points)


def _ambiguous(claim: Claim, points: tuple[Measured, ...]) -> Checked:
    return Checked(
        claim, Answer.UNVERIFIABLE, Caveat.of(Reason.AMBIGUOUS_BINDING.value, points=len(points)), points=points
    )


# Levels ---------------------------------------------------------------------------------------------------------------


def _check_level(claim: Claim, points: tuple[Measured, ...]) -> Checked:
    """One value on the candidate's side; the baseline's side is looked at when that does not hold it."""
    sides = [quantities for side in ("candidate", "baseline") if (quantities := _levels(claim, points, side))]
    answers = [_compare_levels(claim, points, quantities) for quantities in sides]
    verified = [checked for checked in answers if checked.answer is Answer.VERIFIED]
    return (*verified, *answers, _unverifiable(claim, Reason.NO_POINTS))[0]


def _levels(claim: Claim, points: tuple[Measured, ...], side: str) -> tuple[_Quantity, ...]:
    quantities = tuple(_level(claim, point, side) for point in points if getattr(point, side) is not None)
    return (_best(claim, quantities),) if claim.binding.peak and _one_sequence(points) and quantities else quantities


def _level(claim: Claim, point: Measured, side: str) -> _Quantity:
    value = float(getattr(point, side)) * _scale(claim)
    if point.low is None or point.high is None:
        return _Quantity(value, value, value, known=False)
    width = math.exp((point.high - point.low) / 2)
    return _Quantity(value, value / width, value * width, known=True)


def _scale(claim: Claim) -> float:
    """From the metric's unit to the claim's."""
    return 1000.0 if claim.unit == "ms" and metric(claim.metric or "").unit == "s" else 1.0


def _best(claim: Claim, quantities: Sequence[_Quantity]) -> _Quantity:
    better = metric(claim.metric or "").better
    return (min if better is Better.LOWER else max)(quantities, key=lambda quantity: quantity.value)


def _one_sequence(points: Iterable[Measured]) -> bool:
    return len({(point.series.scenario, point.series.isl, point.series.osl) for point in points}) == 1


def _compare_levels(claim: Claim, points: tuple[Measured, ...], quantities: tuple[_Quantity, ...]) -> Checked:
    if len(quantities) > 1 and claim.bound is Bound.VALUE and len(claim.values) == 1:
        return _ambiguous(claim, points)
    fit = _fit_all(claim, quantities, claim.values)
    return _answer(claim, fit, _ends([quantity.value for quantity in quantities]), points)


def _check_from_to(claim: Claim, points: tuple[Measured, ...]) -> Checked:
    before, after = _levels(claim, points, "baseline"), _levels(claim, points, "candidate")
    if not before or not after:
        return _unverifiable(claim, Reason.NO_BASELINE if not before else Reason.NO_CANDIDATE, points)
    if len(before) > 1 or len(after) > 1:
        return _ambiguous(claim, points)
    fits = [_fit(claim, value, sides[0]) for value, sides in zip(claim.values, (before, after), strict=True)]
    return _answer(claim, max(fits, key=list(_Fit).index), (before[0].value, after[0].value), points)


# Changes --------------------------------------------------------------------------------------------------------------


def _check_change(claim: Claim, points: tuple[Measured, ...]) -> Checked:
    """Percent of change, compared as ratios; the direction is that of the words, else that of the signs."""
    claimed = _claimed_ratios(claim)
    if claimed is None:
        return _unverifiable(claim, Reason.DIRECTION_UNSAID, points)
    ratios = _ratios(claim, points)
    return _summary(claim, points, ratios, claimed) if ratios else _unverifiable(claim, Reason.NO_BASELINE, points)


def _claimed_ratios(claim: Claim) -> tuple[float, ...] | None:
    if claim.bound is Bound.WITHIN:
        widest = max(map(abs, claim.values)) / 100
        return (1 - widest, 1 + widest)
    if min(claim.values) < 0 < max(claim.values):
        return tuple(1 + value / 100 for value in claim.values)
    sign = _sign(claim)
    return None if sign is None else tuple(sorted(1 + sign * abs(value) / 100 for value in claim.values))


def _check_ratio(claim: Claim, points: tuple[Measured, ...]) -> Checked:
    """A number of times: candidate by baseline, turned over where less is meant."""
    ratios = _ratios(claim, points)
    if not ratios:
        return _unverifiable(claim, Reason.NO_BASELINE, points)
    if _turned_over(claim):
        ratios = tuple(_Quantity(1 / r.value, 1 / r.high, 1 / r.low, r.known) for r in ratios)
    checked = _summary(claim, points, ratios, claim.values)
    if not claim.added:
        return checked
    raised = _summary(claim, points, ratios, tuple(value + 1 for value in claim.values))
    if {checked.answer, raised.answer} == {Answer.CONTRADICTED}:
        return checked
    return Checked(claim, Answer.UNVERIFIABLE, Caveat.of(Reason.TIMES_BY_OR_TO.value), checked.measured, points)


def _sign(claim: Claim) -> int | None:
    """+1 where the metric is said to rise, -1 where to fall; None where the text does not say."""
    better = metric(claim.metric or "").better
    if claim.direction in (Direction.BETTER, Direction.WORSE):
        if better is Better.UNKNOWN:
            return None
        return 1 if (better is Better.HIGHER) == (claim.direction is Direction.BETTER) else -1
    return {Direction.UP: 1, Direction.DOWN: -1}.get(claim.direction) if claim.direction else None


def _turned_over(claim: Claim) -> bool:
    """`2x lower`, `1.5x faster` of a latency: how often the candidate goes into the baseline."""
    if claim.left:
        return False
    if claim.direction is None:
        return metric(claim.metric or "").better is Better.LOWER
    return _sign(claim) == -1


def _ratios(claim: Claim, points: tuple[Measured, ...]) -> tuple[_Quantity, ...]:
    if claim.binding.peak and _one_sequence(points) and claim.bound is Bound.VALUE:
        before, after = _levels(claim, points, "baseline"), _levels(claim, points, "candidate")
        return (_divided(after[0], before[0]),) if before and after else ()
    pairs = ((point, point.baseline, point.candidate) for point in points)
    return tuple(_ratio(point, after / before) for point, before, after in pairs if before and after)


def _divided(after: _Quantity, before: _Quantity) -> _Quantity:
    """The ratio of two peaks; a level carries the width of its pair's interval, so the wider one counts once."""
    ratio = after.value / before.value
    width = max(after.high / after.value, before.high / before.value)
    return _Quantity(ratio, ratio / width, ratio * width, after.known and before.known)


def _ratio(point: Measured, ratio: float) -> _Quantity:
    if point.low is None or point.high is None:
        return _Quantity(ratio, ratio, ratio, known=False)
    return _Quantity(ratio, min(ratio, math.exp(point.low)), max(ratio, math.exp(point.high)), known=True)


def _summary(
    claim: Claim, points: tuple[Measured, ...], ratios: tuple[_Quantity, ...], claimed: tuple[float, ...]
) -> Checked:
    """A claim about ratios against one or many points."""
    fit = _fit_all(claim, ratios, claimed)
    if fit is not _Fit.INSIDE and claim.bound is Bound.VALUE and len(claimed) == 1 and len(ratios) > 1:
        low, high = min(r.low for r in ratios), max(r.high for r in ratios)
        if _fit(claim, claimed[0], _Quantity(low, low, high, all(r.known for r in ratios))) is _Fit.INSIDE:
            return _ambiguous(claim, points)
    shown = [(r.value - 1) * 100 if claim.kind is Kind.CHANGE else r.value for r in ratios]
    return _answer(claim, fit, _ends(shown), points)


def _ends(values: Sequence[float]) -> tuple[float, ...]:
    """One value, or the least and the greatest."""
    return (values[0],) if len(values) == 1 else (min(values), max(values))


# Fits -----------------------------------------------------------------------------------------------------------------


def _tolerance(claim: Claim, value: float) -> float:
    """Rounding of the digits given, and 5 % of an approximate number, in the unit of comparison."""
    unit, number = (0.01, abs(value - 1) * 100) if claim.kind is Kind.CHANGE else (1.0, abs(value))
    rounding = 0.5 * 10.0**-claim.decimals
    return (rounding + (_APPROXIMATE * number if claim.approximate else 0.0)) * unit


def _fit(claim: Claim, value: float, quantity: _Quantity) -> _Fit:
    return _fit_between(claim, (value, value), quantity)


def _fit_between(claim: Claim, ends: tuple[float, float], quantity: _Quantity) -> _Fit:
    low, high = (
        end + way * (_tolerance(claim, end) if math.isfinite(end) else 0.0)
        for end, way in zip(ends, (-1, 1), strict=True)
    )
    if quantity.low <= high and quantity.high >= low:
        return _Fit.INSIDE
    spare = 0.0 if quantity.known else _UNKNOWN_NOISE * abs(quantity.value)
    near = quantity.low - spare <= high and quantity.high + spare >= low
    return _Fit.UNKNOWN if near else _Fit.OUTSIDE


def _fit_all(claim: Claim, quantities: tuple[_Quantity, ...], claimed: tuple[float, ...]) -> _Fit:
    """The worst fit over the points; `up to` looks at the one that went farthest, `at least` at the nearest."""
    ends = (claimed[0], claimed[-1])
    least, greatest = (way(quantities, key=lambda quantity: quantity.value) for way in (min, max))
    falls = claim.kind is Kind.CHANGE and _sign(claim) == -1
    if claim.bound is Bound.UP_TO:
        return _fit(claim, ends[0], least) if falls else _fit(claim, ends[1], greatest)
    if claim.bound is Bound.AT_LEAST:
        return (
            _fit_between(claim, (-math.inf, ends[1]), greatest)
            if falls
            else _fit_between(claim, (ends[0], math.inf), least)
        )
    return max((_fit_between(claim, ends, quantity) for quantity in quantities), key=list(_Fit).index)


_ANSWERS = {
    _Fit.INSIDE: (Answer.VERIFIED, Reason.AGREES),
    _Fit.UNKNOWN: (Answer.UNVERIFIABLE, Reason.NOISE_UNKNOWN),
    _Fit.OUTSIDE: (Answer.CONTRADICTED, Reason.OUTSIDE_TOLERANCE),
}


def _answer(claim: Claim, fit: _Fit, measured: tuple[float, ...], points: tuple[Measured, ...]) -> Checked:
    answer, reason = _ANSWERS[fit]
    return Checked(claim, answer, Caveat.of(reason.value), measured, points)


_BY_KIND: dict[Kind, Callable[[Claim, tuple[Measured, ...]], Checked]] = {
    Kind.LEVEL: _check_level,
    Kind.FROM_TO: _check_from_to,
    Kind.CHANGE: _check_change,
    Kind.RATIO: _check_ratio,
}


# Scores ---------------------------------------------------------------------------------------------------------------


def _check_score(claim: Claim, evidence: _Evidence) -> Checked:
    """Scores as fractions; a text that does not say which filter may mean either."""
    after, before = (_scores(claim, scores) for scores in (evidence.scores, evidence.baseline_scores))
    if not after:
        return _unverifiable(claim, Reason.NO_SCORES)
    if claim.kind in (Kind.SCORE, Kind.SCORE_RANGE):
        fits = [_fit_scores(claim, after, name) for name in _filters(claim, after)]
        return max(fits, key=_preference, default=_unverifiable(claim, Reason.NO_SCORES))
    if not before:
        return _unverifiable(claim, Reason.NO_BASELINE)
    fits = [_fit_score_pair(claim, before, after, name) for name in _filters(claim, after)]
    return max(fits, key=_preference, default=_unverifiable(claim, Reason.NO_SCORES))


def _preference(checked: Checked) -> int:
    return (Answer.CONTRADICTED, Answer.UNVERIFIABLE, Answer.VERIFIED).index(checked.answer)


def _scores(claim: Claim, scores: tuple[Score, ...]) -> tuple[Score, ...]:
    return tuple(
        score
        for score in scores
        if matches(claim.binding, score.series) and claim.binding.task in (None, score.task) and score.invalid is None
    )


_FILTERS: dict[str, Callable[[Score], float | None]] = {
    "em_strict": lambda score: score.strict,
    "em_flexible": lambda score: score.flexible,
    "score": lambda score: score.score,
}


def _filters(claim: Claim, scores: tuple[Score, ...]) -> tuple[str, ...]:
    """The filter that the text names, else all that were measured."""
    named = (claim.metric,) if claim.metric in _FILTERS else tuple(_FILTERS)
    return tuple(name for name in named if _values(scores, name))


def _values(scores: tuple[Score, ...], name: str) -> tuple[float, ...]:
    return tuple(value for score in scores if (value := _FILTERS[name](score)) is not None)


def _fit_scores(claim: Claim, scores: tuple[Score, ...], name: str) -> Checked:
    values, scale = _values(scores, name), 0.01 if claim.unit == "%" else 1.0
    slack = scale * 10.0**-claim.decimals * (1.5 if claim.approximate else 0.5) + 1e-12
    low, high = claim.values[0] * scale - slack, claim.values[-1] * scale + slack
    inside = [low <= value <= high for value in values]
    measured = _ends([value / scale for value in values])
    answer, reason = _score_answer(claim, inside, values, (low + 2 * slack, high - 2 * slack))
    return Checked(claim, answer, Caveat.of(reason.value), measured, scores=scores)


def _score_answer(
    claim: Claim, inside: list[bool], values: tuple[float, ...], reached: tuple[float, float]
) -> tuple[Answer, Reason]:
    """All of them inside; a range must also reach its ends, and a number may mean some of several scores or a pool.

    What lies between the least and the greatest score of several jobs may be true of a part of them.
    """
    among = len(values) > 1 and min(values) <= reached[0] and reached[1] <= max(values)
    otherwise = (
        (Answer.UNVERIFIABLE, Reason.AMBIGUOUS_BINDING) if among else (Answer.CONTRADICTED, Reason.OUTSIDE_TOLERANCE)
    )
    if claim.kind is Kind.SCORE_RANGE:
        ends = min(values) <= reached[0] and max(values) >= reached[1]
        if all(inside):
            return (Answer.VERIFIED, Reason.AGREES) if ends else (Answer.UNVERIFIABLE, Reason.ENDS_NOT_MEASURED)
        return otherwise
    if claim.bound is Bound.AT_LEAST:
        above = all(value >= reached[1] for value in values)
        return (Answer.VERIFIED, Reason.AGREES) if above else (Answer.CONTRADICTED, Reason.OUTSIDE_TOLERANCE)
    if all(inside):
        return Answer.VERIFIED, Reason.AGREES
    return (Answer.UNVERIFIABLE, Reason.AMBIGUOUS_BINDING) if any(inside) else otherwise


_Sides = tuple[tuple[float, ...], tuple[float, ...]]
"""The scores of the baseline's runs and of the candidate's."""


def _fit_score_pair(claim: Claim, before: tuple[Score, ...], after: tuple[Score, ...], name: str) -> Checked:
    """The means of both sides, for each series and task; a change that goes the other way in each is contradicted."""
    pairs = _score_pairs(before, after, name)
    if not pairs:
        apart = _values(before, name) and _values(after, name)
        return _unverifiable(claim, Reason.AMBIGUOUS_BINDING if apart else Reason.NO_SCORES)
    scale = 1.0 if claim.unit == "fraction" else 100.0
    changes = [_score_change(claim, _mean(old) * scale, _mean(new) * scale) for old, new in pairs]
    if changes[0][0] is None:
        return _unverifiable(claim, Reason.DIRECTION_UNSAID)
    slack = 10.0**-claim.decimals * (1.5 if claim.approximate else 0.5) + 1e-9
    fits = [_near(claimed or (), measured, slack) for claimed, measured in changes]
    opposed = all(_opposed(claimed or (), measured) for claimed, measured in changes)
    if all(fits):
        answer, reason = Answer.VERIFIED, Reason.AGREES
    elif any(fits) or (not opposed and _among_runs(claim, pairs, scale, slack)):
        answer, reason = Answer.UNVERIFIABLE, Reason.AMBIGUOUS_BINDING
    else:
        answer, reason = Answer.CONTRADICTED, Reason.OUTSIDE_TOLERANCE
    measured = changes[0][1] if len(changes) == 1 else _spread(claim, [one for _, one in changes])
    return Checked(claim, answer, Caveat.of(reason.value), measured, scores=(*before, *after))


def _score_pairs(before: tuple[Score, ...], after: tuple[Score, ...], name: str) -> tuple[_Sides, ...]:
    """What was scored on both sides; series that only differ between them pair where there is one of each."""
    old, new = _by_series(before, name), _by_series(after, name)
    shared = tuple((old[key], new[key]) for key in new if key in old)
    if shared or len(old) != 1 or len(new) != 1:
        return shared
    (was, is_now) = next(iter(old)), next(iter(new))
    return ((old[was], new[is_now]),) if was[1] == is_now[1] else ()


def _by_series(scores: tuple[Score, ...], name: str) -> dict[tuple[Series, str], tuple[float, ...]]:
    groups: dict[tuple[Series, str], tuple[float, ...]] = {}
    for score in scores:
        value = _FILTERS[name](score)
        if value is not None:
            key = (score.series, score.task)
            groups[key] = (*groups.get(key, ()), value)
    return groups


def _mean(values: tuple[float, ...]) -> float:
    return math.fsum(values) / len(values)


def _near(claimed: tuple[float, ...], measured: tuple[float, ...], slack: float) -> bool:
    return all(abs(c - m) <= slack for c, m in zip(claimed, measured, strict=True))


def _opposed(claimed: tuple[float, ...], measured: tuple[float, ...]) -> bool:
    """True when one rises and the other falls: pairs by their difference, changes by their sign."""
    ways = [side[-1] - side[0] if len(side) > 1 else side[0] for side in (claimed, measured)]
    return ways[0] * ways[1] < 0


def _among_runs(claim: Claim, pairs: tuple[_Sides, ...], scale: float, slack: float) -> bool:
    """True when single runs or jobs, not the means, reach as far as the claim on both sides."""
    old = [value * scale for sides in pairs for value in sides[0]]
    new = [value * scale for sides in pairs for value in sides[1]]
    ends = [_score_change(claim, *sides) for sides in ((max(old), min(new)), (min(old), max(new)))]
    return all(
        min(low, high) - slack <= said <= max(low, high) + slack
        for said, low, high in zip(ends[0][0] or (), ends[0][1], ends[1][1], strict=True)
    )


def _spread(claim: Claim, measured: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    """Of several series: the least and the greatest change; of scores the mean of each side."""
    if claim.kind is Kind.FROM_TO:
        return tuple(_mean(side) for side in zip(*measured, strict=True))
    return _ends([one[0] for one in measured])


def _score_change(claim: Claim, old: float, new: float) -> tuple[tuple[float, ...] | None, tuple[float, ...]]:
    """Claimed and measured in the claim's own terms: both scores, percentage points, or percent of the old score."""
    if claim.kind is Kind.FROM_TO:
        return claim.values, (old, new)
    signs = {Direction.UP: 1, Direction.BETTER: 1, Direction.DOWN: -1, Direction.WORSE: -1}
    sign = signs.get(claim.direction) if claim.direction else None
    change = new - old if claim.unit == "pp" or old == 0 else (new / old - 1) * 100
    return (tuple(sign * abs(value) for value in claim.values[-1:]) if sign else None), (change,)
