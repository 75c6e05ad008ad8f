"""The frontier: the best throughput per GPU at each interactivity, and how far it moved at equal interactivity.

Two sides need no point in common: what is compared is the upper envelope of each side, on the range of interactivity
that both cover, never beyond. At some interactivity a side attains the best of what its layouts reach between two
neighbouring concurrencies of their own (a straight line on the log scale, which is monotone) and of what its faster
points give. A curve drawn through the undominated points alone, as dashboards draw it, jumps when noise lifts a point
over another: on simulated pairs its intervals covered 81 to 96 %.

The doubt is carried through by drawing both sides anew from the noise of their points. The envelope of noisy points
lies above the envelope of true ones (it picks the lucky), more so where many points lie close; the draws show by how
much, and estimate and interval are corrected by it. Everything is natural logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import special

from tracker.stats.noise import Floats, Ints

GRID = 49
"""Interactivities at which the gap is taken, evenly spaced on the shared range."""
DRAWS = 999
"""Draws of the noise: the p value has steps of 0.001."""
MANY_POINTS, FEWER_DRAWS = 300, 499
"""Groups of more points than that, both sides together, get half the draws: no error rate is below 0.005."""
LEAST_SHARED = 0.05
"""Natural log units of interactivity (5 %) that both sides must cover before a shift is told."""
Z95 = float(special.ndtri(0.975))
END_ROOM = 2.0
"""Standard deviations of speed that the shared range keeps from the ends of each side."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """How far the noise of each point may be from the typical one: arrays (points,).

    What makes a point unsteady makes it so on both sides, and the points of a layout together.
    """

    spread: Floats
    """Standard deviation of the logarithm of a point's noise: large where there are no replicates."""
    point: Ints
    """Number of the point, the same on both sides."""
    layout: Ints
    """Number of its layout, the same on both sides."""
    shared: float
    """Share of the variance that the points of a layout have in common."""


@dataclass(frozen=True, slots=True)
class Side:
    """The points of one side; arrays (points,). Averages over runs stand with the noise of the average."""

    speed: Floats
    """ln interactivity, tokens/s/user."""
    output: Floats
    """ln throughput per GPU."""
    noise: Floats
    """Standard deviation of `output`: the typical one, where it is not known for certain."""
    speed_noise: Floats
    """The same of `speed`."""
    links: Ints
    """(links, 2) Pairs of points that are neighbouring concurrencies of one layout."""
    correlation: float = 0.0
    """Of two points' errors within the run."""
    alike: float = 0.9
    """Correlation of a point's two errors: a slow run is slow in both numbers."""
    doubt: Doubt | None = None
    """How well the noise is known; None where it is known for certain."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A log ratio (after over before) with its 95 % and 90 % intervals, and what could have been seen."""

    effect: float
    low: float
    high: float
    low90: float
    high90: float
    p: float
    deviation: float
    """Standard deviation of the estimate, by its 95 % interval."""
    errors: Floats = field(compare=False, repr=False)
    """(draws,) How far off the estimate may be, centred: normal only where the noise of every point is known."""

    def detectable(self, alpha: float, margin: float, power: float = 0.8) -> float:
        """The smallest shift that is significant at alpha (two-sided) and beyond the margin, with this power."""
        needed = max(float(np.quantile(np.abs(self.errors), 1 - alpha)), margin)
        return needed + float(special.ndtri(power)) * self.deviation


@dataclass(frozen=True, slots=True)
class Range:
    """A range of ln interactivity."""

    low: float
    high: float

    @property
    def width(self) -> float:
        return max(0.0, self.high - self.low)


@dataclass(frozen=True, slots=True)
class Shift:
    """How the frontier moved. `shift` is None and the arrays are empty where the sides share no range."""

    shared: Range
    shift: Estimate | None
    peak: Estimate
    """Of the largest throughput per GPU, wherever it lies: no statement about equal interactivity."""
    speeds: Floats
    """(grid,) ln interactivity."""
    gaps: Floats
    """(grid,)"""
    band: Floats
    """(grid,) Half width of the 95 % band that holds for all gaps at once."""
    gained: tuple[Range, ...]
    """Interactivity that only the later side reaches."""
    lost: tuple[Range, ...]


def attained(speed: Floats, output: Floats, links: Ints, speeds: Floats) -> Floats:
    """(draws, grid) The envelope of (draws, points) at some speeds; beyond the fastest point it keeps its value.

    >>> speed, output = np.array([[1.0, 3.0, 2.5]]), np.array([[5.0, 1.0, 2.5]])
    >>> attained(speed, output, np.array([[0, 1]]), np.array([1.0, 2.0, 2.7, 3.0, 9.0])).round(2).tolist()
    [[5.0, 3.0, 1.6, 1.0, 1.0]]
    """
    fastest = np.take_along_axis(output, speed.argmax(axis=1, keepdims=True), axis=1)
    best = np.maximum(_stairs(speed, output, speeds), fastest)
    floor = best.min(axis=0)
    for one, other in links.tolist():
        window = _window(speed[:, [one, other]], speeds)
        if output[:, [one, other]].max() <= floor[window].min(initial=np.inf):
            continue  # below the points in every draw: most links of a large group are
        place = speeds[window] - speed[:, one, None]
        width = (speed[:, other] - speed[:, one])[:, None]
        place /= np.where(width == 0, np.inf, width)
        between = output[:, one, None] + place * (output[:, other] - output[:, one])[:, None]
        np.maximum(best[:, window], between, out=best[:, window], where=(place >= 0) & (place <= 1))
    return best


def _stairs(speed: Floats, output: Floats, speeds: Floats) -> Floats:
    """(draws, grid) The largest output of a point at least so fast."""
    draws, wide = len(speed), len(speeds) + 1
    reached = np.searchsorted(speeds, speed, side="right") + wide * np.arange(draws)[:, None]
    best = np.full(draws * wide, -np.inf)
    np.maximum.at(best, reached.ravel(), output.ravel())
    stairs = np.maximum.accumulate(best.reshape(draws, wide)[:, ::-1], axis=1)[:, ::-1]
    return stairs[:, 1:]


def _window(ends: Floats, speeds: Floats) -> slice:
    """The part of the grid that a link reaches in any draw: the rest of it is not worth looking at."""
    first, last = np.searchsorted(speeds, [ends.min(), ends.max()], side="left")
    return slice(int(first), min(int(last) + 1, len(speeds)))


def shift(before: Side, after: Side, seed: int = 0, draws: int | None = None) -> Shift:
    """The move from one side to the other; each side needs a point. The same arguments give the same numbers."""
    draws = draws or (DRAWS if len(before.speed) + len(after.speed) <= MANY_POINTS else FEWER_DRAWS)
    rng = np.random.default_rng(seed)
    shared = _shared(before, after)
    speeds = np.linspace(shared.low, shared.high, GRID) if shared.width >= LEAST_SHARED else np.empty(0)
    measured = _gap(_as_measured(before), _as_measured(after), before, after, speeds)
    scales = _scales(before.doubt, after.doubt, rng, draws)
    old, new = (_drawn(side, scale, rng, draws) for side, scale in zip((before, after), scales, strict=True))
    gaps, redrawn = measured[0], _gap(old, new, before, after, speeds)
    peak = float(after.output.max() - before.output.max())
    # What drawing adds to the gap it has added to the measured gap as well.
    bias = redrawn.mean(axis=0) - gaps
    return Shift(
        shared=shared,
        shift=_estimate(float(gaps.mean()), redrawn.mean(axis=1)) if len(speeds) else None,
        peak=_estimate(peak, new[1].max(axis=1) - old[1].max(axis=1)),
        speeds=speeds,
        gaps=gaps - bias,
        band=_band(redrawn - gaps - bias),
        gained=_only(after, before),
        lost=_only(before, after),
    )


def outline(side: Side) -> tuple[Floats, Floats]:
    """(places,), (places,) Where the line of a side's frontier runs: ln interactivity, ln throughput per GPU."""
    low, high = _ends(side)
    inside = side.speed[(side.speed >= low) & (side.speed <= high)]
    # Just beyond a point the line may fall to what the next faster one gives.
    beyond = np.minimum(inside + 1e-6, high)
    speeds = np.unique(np.concatenate([np.linspace(low, high, GRID), inside, beyond]))
    return speeds, attained(*_as_measured(side), side.links, speeds)[0]


Drawn = tuple[Floats, Floats]
"""(draws, points) speeds and outputs."""


def _gap(old: Drawn, new: Drawn, before: Side, after: Side, speeds: Floats) -> Floats:
    return attained(*new, after.links, speeds) - attained(*old, before.links, speeds)


def _shared(before: Side, after: Side) -> Range:
    """What both frontiers cover, whatever the noise of their ends: a draw must not look beyond its last point."""
    ends = [_ends(side) for side in (before, after)]
    room = END_ROOM * max(float(np.median(side.speed_noise)) for side in (before, after))
    return Range(max(low for low, _ in ends) + room, min(high for _, high in ends) - room)


def _ends(side: Side) -> tuple[float, float]:
    """From the point of the largest throughput, below which being slower brings nothing, to the fastest one."""
    return float(side.speed[side.output.argmax()]), float(side.speed.max())


def _only(one: Side, other: Side) -> tuple[Range, ...]:
    mine, theirs = _ends(one), _ends(other)
    slower, faster = Range(mine[0], min(mine[1], theirs[0])), Range(max(mine[0], theirs[1]), mine[1])
    return tuple(part for part in (slower, faster) if part.width >= LEAST_SHARED)


def _scales(old: Doubt | None, new: Doubt | None, rng: np.random.Generator, draws: int) -> tuple[Floats, Floats]:
    """(draws, points) What the typical noise of each side's points is multiplied by, in worlds that may be true."""
    if old is None or new is None:
        return np.ones((1, 1)), np.ones((1, 1))
    layouts = rng.standard_normal((draws, 1 + int(max(old.layout.max(), new.layout.max()))))
    points = rng.standard_normal((draws, 1 + int(max(old.point.max(), new.point.max()))))

    def scale(side: Doubt) -> Floats:
        together = np.sqrt(side.shared) * layouts[:, side.layout] + np.sqrt(1 - side.shared) * points[:, side.point]
        scaled: Floats = np.exp(side.spread * together)
        return scaled

    return scale(old), scale(new)


def _drawn(side: Side, scale: Floats, rng: np.random.Generator, draws: int) -> Drawn:
    """The side measured again so many times: its points with fresh errors."""
    slow, other = _errors(side, rng, draws), _errors(side, rng, draws)
    speed = side.alike * slow + np.sqrt(1 - side.alike**2) * other
    return side.speed + scale * side.speed_noise * speed, side.output + scale * side.noise * slow


def _as_measured(side: Side) -> Drawn:
    return side.speed[None], side.output[None]


def _errors(side: Side, rng: np.random.Generator, draws: int) -> Floats:
    common, own = rng.standard_normal((draws, 1)), rng.standard_normal((draws, len(side.output)))
    made: Floats = np.sqrt(side.correlation) * common + np.sqrt(1 - side.correlation) * own
    return made


def _estimate(measured: float, drawn: Floats) -> Estimate:
    """Corrected for what drawing adds, with the interval turned around: a draw too high means a measure too high."""
    error = np.sort(drawn - measured)
    bias = float(error.mean())
    effect = measured - bias
    low, low90, high90, high = (measured - float(np.quantile(error, q)) for q in (0.975, 0.95, 0.05, 0.025))
    beyond = int((np.abs(error - bias) >= abs(effect)).sum())
    return Estimate(
        effect, low, high, low90, high90, (1 + beyond) / (1 + len(error)), (high - low) / 2 / Z95, error - bias
    )


def _band(errors: Floats) -> Floats:
    """Half widths such that 95 % of the draws lie inside at every speed at once."""
    if not errors.size:
        return np.empty(0)
    deviation = errors.std(axis=0)
    largest = (np.abs(errors) / np.maximum(deviation, 1e-12)).max(axis=1)
    widths: Floats = float(np.quantile(largest, 0.95)) * deviation
    return widths
