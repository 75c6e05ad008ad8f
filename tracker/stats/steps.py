"""Where a curve changed its level: all its points together, over runs of which many were never repeated.

Two stages. Exact dynamic programming over the runs proposes levels: a level costs the squared residuals of its runs in
units of their noise scale, a new level costs a penalty, smaller where something is known to have changed. Then every
step must pass the test of the core (`curves.judge`) between its two levels; the weakest that does not is taken back
and its neighbours are tested anew. Missing points are left out, never filled in. Everything is in natural log units.

A run costs no more than a step would: one that is off and back is a spike, and two levels need two runs to show them,
unless the run stands alone under its software.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy import special

from tracker.stats import curves, noise
from tracker.stats.noise import Floats, Ints
from tracker.stats.predictive import score

Flags = npt.NDArray[np.bool_]

NEAR = 12
"""Runs on either side of a step that tell its size: further ones saw other machines."""

CLIP = 3.0
"""A difference between neighbours beyond this many robust standard deviations is a step or a spike, not noise."""

MANY = 8
"""From so many differences on, their own middle says what is noise; with fewer the prior scale has a say too."""

SEVERAL = 3
"""Runs of a level, spikes and fallen points left out, whose mean has ordinary tails."""

EFFICIENCY = 2 / 3
"""What a difference between neighbours tells of the noise scale, in degrees of freedom."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a step must be: larger than the margins, and rarer than the error rates when nothing changed.

    The rates were set by simulation (`python -m bench.steps`): at most one false step in 1,000 points.
    """

    curve: float = 0.0202
    """Least change of a curve..."""
    point: float = 0.0305
    """...or of a point of it."""
    alpha: float = 1e-4
    """Error rate of a step where nothing is known to have changed."""
    alpha_expected: float = 0.01
    """Error rate where software, recipe or harness changed."""


@dataclass(frozen=True, slots=True)
class Track:
    """The runs of one curve under one metric, oldest first."""

    values: Floats
    """ln of the value, (points, runs); NaN where a run did not measure a point."""
    strata: Ints
    """Stratum of each point (`noise.stratum`)."""
    scale: noise.Scale
    correlation: float
    """Of two points of one run."""
    expected: Flags
    """(runs,) True where something is known to have changed just before a run."""

    @property
    def lonely(self) -> Flags:
        """Runs between two such changes: off or not, they stand for their software."""
        after = np.append(self.expected[1:], True)
        alone: Flags = self.expected & after
        return alone


@dataclass(frozen=True, slots=True)
class Step:
    """A change of level between run `at - 1` and run `at`."""

    at: int
    effect: float
    """Of the curve: the common shift that explains its points best."""
    low: float
    high: float
    p: float
    mde: float
    before: int
    """Runs of the level before, spikes left out, and after."""
    after: int
    effects: tuple[float, ...]
    """Per point; NaN where one side did not measure it."""
    is_expected: bool


@dataclass(frozen=True, slots=True)
class Spike:
    """One run that left its level and did not stay away; the newest run may yet become a step."""

    at: int
    effect: float
    is_newest: bool


@dataclass(frozen=True, slots=True)
class Found:
    """Steps and spikes of a track, in order."""

    steps: tuple[Step, ...] = ()
    spikes: tuple[Spike, ...] = ()

    def levels(self, runs: int) -> list[tuple[int, int]]:
        """First run and run after the last of every level."""
        edges = [0, *(step.at for step in self.steps), runs]
        return list(pairwise(edges))


def find(track: Track, rules: Rules = Rules()) -> Found:
    """The steps and spikes of one track."""
    if track.values.shape[1] < 2 or not len(track.values):
        return Found()
    weights = posterior(track)
    spread = np.sqrt(weights @ np.exp(2 * noise.LOG_GRID))
    bench = _Bench(track, rules, weights, spread, Limits.of(track, rules))
    steps = _confirmed(bench, propose(track.values / spread[:, None], track.correlation, bench.limits))
    return Found(steps, tuple(_spikes(bench, Found(steps))))


@dataclass(frozen=True, slots=True)
class _Bench:
    """A track with what is known of its noise."""

    track: Track
    rules: Rules
    weights: Floats
    """Noise scale of each point on the grid."""
    spread: Floats
    """Root of its mean square."""
    limits: Limits


# ---------------------------------------------------------------- noise


def posterior(track: Track) -> Floats:
    """Noise scale of each point on the grid: what neighbours differ by where nothing is known to have changed."""
    squares, freedom = neighbour_scatter(
        track.values, track.expected, np.exp(np.array(track.scale.centre)[track.strata])
    )
    return noise.posterior(squares, freedom, track.strata, np.zeros(len(squares), np.int64), track.scale)


def neighbour_scatter(values: Floats, expected: Flags, typical: Floats) -> tuple[Floats, Floats]:
    """Half squared steps between known neighbours of each row, steps and spikes cut down, and degrees of freedom.

    `typical` is the prior noise scale of each row. A neighbour is the run before that measured the point, as long as
    nothing changed in between.
    """
    squares, freedom = np.zeros(len(values)), np.zeros(len(values))
    era = np.cumsum(expected)
    for row, value in enumerate(values):
        known = np.flatnonzero(np.isfinite(value))
        same = np.diff(era[known]) == 0
        size = np.abs(np.diff(value[known])[same]) / np.sqrt(2)
        if len(size):
            # The lower middle: of two differences one may be a step.
            middle = np.sort(size)[(len(size) - 1) // 2]
            limit = CLIP * max(1.4826 * middle, typical[row] if len(size) < MANY else noise.SD_FLOOR)
            squares[row] = (np.minimum(size, limit) ** 2).sum() * EFFICIENCY
            freedom[row] = len(size) * EFFICIENCY
    return squares, freedom


# ---------------------------------------------------------------- proposal: exact dynamic programming


@dataclass(frozen=True, slots=True)
class Limits:
    """What a new level costs by the number of points that it shares with the past, and the most that a run costs."""

    surprise: Floats
    expected: Floats
    is_expected: Flags
    is_lonely: Flags

    @classmethod
    def of(cls, track: Track, rules: Rules) -> Limits:
        """Upper tails of chi squared (Laurent and Massart) at the error rates."""
        sizes = np.arange(len(track.values) + 1)
        return cls(_tail(sizes, rules.alpha), _tail(sizes, rules.alpha_expected), track.expected, track.lonely)

    @property
    def lone_point(self) -> float:
        """Most that one point of a run may say against the level: the rest may have fallen out of its run."""
        return float(self.surprise[1])


def _tail(freedom: Ints, alpha: float) -> Floats:
    """A bound that chi squared exceeds with probability alpha at most; nothing shared: no step can be told."""
    log = -np.log(alpha)
    bound = freedom + 2 * np.sqrt(freedom * log) + 2 * log
    return np.where(freedom > 0, bound, 1e12)


def propose(z: Floats, correlation: float, limits: Limits) -> list[int]:
    """First runs of the levels that cost least, but for run 0. `z` is (points, runs) in units of the noise scale.

    All open levels are kept side by side and take in one run after the other, each at O(points): a new run costs as
    much as there are runs before it, and the whole O(runs^2 points).
    """
    points, runs = z.shape
    known = np.isfinite(z)
    before = np.cumsum(known, axis=1).T - known.T > 0
    mean, count, cost = np.zeros((runs, points)), np.zeros((runs, points)), np.zeros(runs)
    best, origin = np.zeros(runs + 1), np.zeros(runs, np.int64)
    for t in range(runs):
        open_ = slice(0, t + 1)
        _take_in(z[:, t], (mean[open_], count[open_], cost[open_]), correlation, limits, t)
        shared = (before[open_] & (count[open_] > 0)).sum(axis=1)
        penalty = np.where(limits.is_expected[open_], limits.expected[shared], limits.surprise[shared])
        penalty[0] = 0.0
        total = best[open_] + cost[open_] + penalty
        origin[t] = int(np.argmin(total))
        best[t + 1] = total[origin[t]]
    return _starts(origin)


def _take_in(x: Floats, state: tuple[Floats, Floats, Floats], correlation: float, limits: Limits, run: int) -> None:
    """Every open level takes a run in: Welford's update, whose increments sum to the squared residuals exactly.

    A run beyond its limit, or a point that fell out of its run, costs the limit and leaves the level where it was.
    """
    mean, count, cost = state
    known = np.isfinite(x)
    seen = known & (count > 0)
    residual = np.where(seen, x - mean, np.nan)
    weighed = residual * np.sqrt(count / (count + 1))
    size = seen.sum(axis=1)
    said = squared(weighed, correlation, limits.lone_point)
    capped = np.zeros(len(size), bool)
    if not limits.is_lonely[run]:
        capped = said > limits.surprise[size]
        said = np.where(size > 0, np.minimum(said, limits.surprise[size]), 0.0)
    cost += said
    fell = seen & (weighed**2 > limits.lone_point) & (size > 1)[:, None] & (not limits.is_lonely[run])
    moved = known & ~fell & ~capped[:, None]
    mean += np.where(moved, np.where(seen, residual, x) / (count + 1), 0.0)
    count += moved


def squared(z: Floats, correlation: float, lone_point: float) -> Floats:
    """Squared distance of each row of residuals; NaN is not known.

    What the points share is discounted by their correlation; what parts them is not counted for more than if they were
    independent, since correlated tails are heavier than normal ones. A point far from the middle of its run fell out of
    it and counts for `lone_point` at most.
    """
    known = np.isfinite(z)
    size = known.sum(axis=1)
    middle = np.where(size >= SEVERAL, _median(z), 0.0)[:, None]
    reach = np.where(size > 1, np.sqrt(lone_point), np.inf)[:, None]
    calm = np.where(known, np.clip(z, middle - reach, middle + reach), 0.0)
    most = np.maximum(size, 1)
    together = calm.sum(axis=1) ** 2 / most
    said: Floats = (calm**2).sum(axis=1) - together + together / (1 + (most - 1) * correlation)
    return said


def _starts(origin: Ints) -> list[int]:
    starts: list[int] = []
    end = len(origin)
    while end > 0:
        end = int(origin[end - 1])
        if end > 0:
            starts.append(end)
    return starts[::-1]


# ---------------------------------------------------------------- confirmation: the test of the core


def _confirmed(bench: _Bench, starts: Sequence[int]) -> tuple[Step, ...]:
    """The proposed steps that the test of the core calls, the weakest of the others taken back one by one."""
    left = list(starts)
    while left:
        steps = _tested(bench, left)
        doubt = [_doubt(step, bench.rules) for step in steps]
        weakest = int(np.argmax(doubt))
        if doubt[weakest] <= 1.0:
            return tuple(step for step in steps if step is not None)
        del left[weakest]
    return ()


def _doubt(step: Step | None, rules: Rules) -> float:
    """The p of a step over its error rate; beyond 1, or below both margins, it is none."""
    if step is None:
        return np.inf
    effects = np.abs(np.array(step.effects))
    if abs(step.effect) < rules.curve and not (np.nan_to_num(effects) >= rules.point).any():
        return 1e6
    return step.p / (rules.alpha_expected if step.is_expected else rules.alpha)


def _tested(bench: _Bench, starts: Sequence[int]) -> list[Step | None]:
    """Every boundary between two levels as a step; None where the levels share no point."""
    edges = [0, *starts, bench.track.values.shape[1]]
    calm = _without_spikes(bench, edges)
    sides = [side_by_side(calm[:, edges[i] : at], calm[:, at : edges[i + 2]]) for i, at in enumerate(starts)]
    gaps = between(bench.track, bench.weights, sides, bench.rules)
    return [_step(bench, *found) for found in zip(starts, sides, gaps, strict=True)]


def _step(bench: _Bench, at: int, side: Sides, gap: Gap | None) -> Step | None:
    if gap is None:
        return None
    sizes = gap.effect, gap.low, gap.high, gap.p, gap.mde
    is_expected = bool(bench.track.expected[at])
    return Step(at, *sizes, side.before, side.after, tuple(side.effect.tolist()), is_expected=is_expected)


@dataclass(frozen=True, slots=True)
class Sides:
    """Two groups of runs of a curve: effect of each point, its variance in units of sigma^2, runs of both."""

    effect: Floats
    """NaN where one side did not measure the point."""
    variance: Floats
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Gap:
    """What lies between two groups of runs of a curve, by the pooled test of the core."""

    effect: float
    low: float
    high: float
    p: float
    mde: float


def side_by_side(old: Floats, new: Floats) -> Sides:
    """The runs of two groups (points, runs), the nearest NEAR of each."""
    counts = [int(np.isfinite(side).any(axis=0).sum()) for side in (old, new)]
    (before, k), (after, m) = _level(old, last=True), _level(new, last=False)
    with np.errstate(divide="ignore"):
        return Sides(after - before, 1 / k + 1 / m, counts[0], counts[1])


@dataclass(frozen=True, slots=True)
class Pair:
    """Two groups of runs of a curve and what they are judged by: `weights` is the posterior of the curve's noise."""

    track: Track
    weights: Floats
    sides: Sides
    rules: Rules


def between(track: Track, weights: Floats, sides: Sequence[Sides], rules: Rules) -> list[Gap | None]:
    """The pooled test of each pair of groups of one curve; None for groups that share no point."""
    return gaps([Pair(track, weights, side, rules) for side in sides])


def gaps(pairs: Sequence[Pair]) -> list[Gap | None]:
    """The pooled tests of pairs of any curves at once: a call a curve cost ten times as much."""
    rows = [np.flatnonzero(np.isfinite(pair.sides.effect)) for pair in pairs]
    some = [place for place, cells in enumerate(rows) if len(cells)]
    found: list[Gap | None] = [None] * len(pairs)
    if some:
        cells = _cells([(rows[place], pairs[place]) for place in some])
        spread = curves.spread_of(cells)
        _, judged = curves.judge(cells, spread)
        bent = _bent(cells, score(spread.member, cells.effect))
        for group, place in enumerate(some):
            numbers = [float(getattr(judged, name)[group]) for name in ("effect", "low", "high", "p", "mde")]
            if min(pairs[place].sides.before, pairs[place].sides.after) > 1:
                numbers[3] = min(1.0, 2 * min(numbers[3], float(bent[group])))
            found[place] = Gap(*numbers)
    return found


def _bent(cells: curves.Cells, z: Floats) -> Floats:
    """The p of each group as a whole: its points may have moved apart, by which the pooled test sees nothing."""
    groups = np.split(z, np.cumsum(np.bincount(cells.group))[:-1])
    said = [squared(one[None, :], rho, np.inf)[0] for one, rho in zip(groups, cells.correlation.tolist(), strict=True)]
    p: Floats = special.chdtrc(np.array([len(one) for one in groups], float), np.array(said))
    return p


def _level(values: Floats, *, last: bool) -> tuple[Floats, Floats]:
    """Mean of the NEAR known values of each row that are nearest to the step, and how many there were."""
    known = np.isfinite(values)
    order = known[:, ::-1] if last else known
    near = np.cumsum(order, axis=1) <= NEAR
    used = known & (near[:, ::-1] if last else near)
    count = used.sum(axis=1)
    total = np.where(used, values, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan), count.astype(np.float64)


def _cells(parts: Sequence[tuple[Ints, Pair]]) -> curves.Cells:
    """One group a pair, with the noise and the rules of its curve."""
    sizes = [len(cells) for cells, _ in parts]

    def each(value: Callable[[Pair], float]) -> Floats:
        return np.array([value(pair) for _, pair in parts])

    alpha = each(lambda pair: pair.rules.alpha_expected)
    centres = [np.array(pair.track.scale.centre)[pair.track.strata][cells] for cells, pair in parts]
    wide = np.repeat(each(lambda pair: pair.track.scale.outlier_scales), sizes)
    return curves.Cells(
        effect=np.concatenate([pair.sides.effect[cells] for cells, pair in parts]),
        weights=np.concatenate([pair.weights[cells] for cells, pair in parts]),
        root_v=np.sqrt(np.concatenate([pair.sides.variance[cells] for cells, pair in parts])),
        runs=np.repeat([pair.sides.before for _, pair in parts], sizes),
        outliers=np.repeat(each(lambda pair: _outliers(pair.sides, pair.track.scale)), sizes),
        outlier_scale=wide * np.exp(np.concatenate(centres)),
        group=np.repeat(np.arange(len(parts)), sizes),
        correlation=each(lambda pair: pair.track.correlation),
        alpha=alpha,
        alpha_point=alpha,
        curve_margin=each(lambda pair: pair.rules.curve),
        point_margin=each(lambda pair: pair.rules.point),
    )


def _outliers(side: Sides, scale: noise.Scale) -> float:
    """Share of points that fall out of their run: SEVERAL runs a side show and lose them, but for the usual share."""
    return min(scale.outliers, noise.OUTLIERS) if min(side.before, side.after) >= SEVERAL else scale.outliers


# ---------------------------------------------------------------- spikes


def _without_spikes(bench: _Bench, edges: Sequence[int]) -> Floats:
    """The values without the runs that are off and without the points that fell out of their run."""
    calm = bench.track.values.copy()
    for first, end in pairwise(edges):
        if end - first > 2:
            off, fell = _off(bench, first, end)
            calm[:, first:end][:, off] = np.nan
            calm[:, first:end][fell] = np.nan
    return calm


def _off(bench: _Bench, first: int, end: int) -> tuple[Flags, Flags]:
    """Runs of a level that are off it, and points that fell out of runs that are not."""
    values, limits = bench.track.values[:, first:end], bench.limits
    z = (values - _median(values)[:, None]) / bench.spread[:, None]
    known = np.isfinite(z)
    size = known.sum(axis=0)
    said = squared(z.T, bench.track.correlation, limits.lone_point)
    off: Flags = (size > 0) & ~limits.is_lonely[first:end] & (said > limits.surprise[size])
    fell: Flags = known & (np.where(known, z, 0.0) ** 2 > limits.lone_point) & ~off & (size > 1)
    return off, fell


def _median(values: Floats) -> Floats:
    """Median of what is known of each row; 0 for a row without a value."""
    ordered = np.sort(values, axis=1)
    count = np.isfinite(values).sum(axis=1)
    rows = np.arange(len(values))
    middle = (
        ordered[rows, np.maximum(count - 1, 0) // 2] + ordered[rows, np.minimum(count // 2, values.shape[1] - 1)]
    ) / 2
    return np.where(count > 0, middle, 0.0)


def _spikes(bench: _Bench, found: Found) -> Iterator[Spike]:
    runs = bench.track.values.shape[1]
    for first, end in found.levels(runs):
        if end - first > 2:
            values = bench.track.values[:, first:end]
            distance = values - _median(values)[:, None]
            off, _ = _off(bench, first, end)
            for column in np.flatnonzero(off).tolist():
                told = _moved(distance[:, column], bench.rules)
                if told is not None:
                    yield Spike(first + column, told, first + column == runs - 1)


def _moved(distance: Floats, rules: Rules) -> float | None:
    """How far a run left its level: the middle of its points, else the largest of two at least that went one way."""
    known = distance[np.isfinite(distance)]
    middle = float(np.median(known))
    if abs(middle) >= rules.curve:
        return middle
    for sign in (-1.0, 1.0):
        far = known[sign * known >= rules.point]
        if len(far) >= min(2, len(known)):
            return float(far[np.argmax(np.abs(far))])
    return None
