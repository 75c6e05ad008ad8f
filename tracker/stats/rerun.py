"""What a repetition of some points would add to a test: the doubt that is left, and the power that it gives.

A curve's effect has the variance of a weighted mean of its points, each with sigma^2 (1/k + 1/m); another candidate run
of some of them turns m into m + 1 there. Everything is in natural log units.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, log, sqrt
from statistics import NormalDist

from tracker.stats.curves import WEIGHT_RUNS
from tracker.stats.predictive import TAIL

POWER = 0.8
"""A finding is settled where a loss of its size is then called four times in five."""

MOST_REPETITIONS = 20
"""Nobody runs a curve more often than this for one answer."""

_NORMAL = NormalDist()
_BEATEN = _NORMAL.inv_cdf(POWER)


@dataclass(frozen=True, slots=True)
class Member:
    """A point: its noise scale and how many runs each side has. No baseline runs: a level that is known, as a gate."""

    sigma: float
    baseline: int
    candidate: int


class Kind(StrEnum):
    """What a repetition must do to settle a finding."""

    CALL = "call"
    """The pooled runs call the estimated effect."""
    CONFIRM = "confirm"
    """The repetition calls it without the runs that are there."""
    LONE = "lone"
    """The pooled runs call it although one point may have fallen out of its run: its tail is that of t, TAIL."""
    CLEAR = "clear"
    """The interval holds only one of "no change" and "a loss of the margin"."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What is asked of some points, and of which size the loss is."""

    members: tuple[Member, ...]
    effect: float
    """The loss; only where it is to be cleared it may be negative, a gain."""
    margin: float
    """The estimate must reach it..."""
    z: float
    """...and so many of its own standard deviations."""
    correlation: float = 0.0
    inflation: float = 1.0
    """How much wider the judge's distribution is than a normal one with these scales."""
    kind: Kind = Kind.CALL

    def power(self, again: Collection[int], times: int = 1) -> float:
        """Chance that the finding is settled once these members were repeated."""
        if not again and self.kind in (Kind.CONFIRM, Kind.CLEAR):
            return 0.0
        after = self.doubt(again, times)
        if self.kind is Kind.CLEAR:
            return self._cleared(after)
        limit = max(self.margin, self.z * after)
        power = _NORMAL.cdf((self.effect - limit) / after)
        return min(power, self._lone(after)) if self.kind is Kind.LONE else power

    def doubt(self, again: Collection[int] = (), times: int = 1) -> float:
        """Standard deviation of the effect that is then judged."""
        alone = self.kind is Kind.CONFIRM and len(again) > 0
        return self.inflation * deviation(_after(self.members, again, times, alone), self.correlation)

    def _cleared(self, after: float) -> float:
        """The smaller chance of two truths: the loss is as it was estimated, or there is none.

        What is largest among many is asked for first, and that is mostly chance: taken at its word alone, it kept two
        promises in three.
        """
        low, high = self.margin - self.z * after, self.z * after
        if low >= high:
            return 1.0
        kept = min(1.0, (after / self.doubt()) ** 2)
        as_it_is = _outside(low, high, self.effect, max(self.doubt() * sqrt(1 - kept), 1e-9))
        without = _outside(low, high, self.effect * kept, max(after * sqrt(1 - kept), 1e-9))
        return min(as_it_is, without)

    def _lone(self, after: float) -> float:
        """The p of a lone point falls with the third power of its distance only."""
        now = self.doubt()
        p = 2 * _NORMAL.cdf(-self.effect / now) * (after / now) ** TAIL
        return _NORMAL.cdf(two_sided(p) - self.z) if p > 0 else 1.0


def _outside(low: float, high: float, mean: float, deviation: float) -> float:
    return _NORMAL.cdf((low - mean) / deviation) + _NORMAL.cdf((mean - high) / deviation)


def _after(members: Sequence[Member], again: Collection[int], times: int, alone: bool) -> list[Member]:
    """The members as they stand after the repetition; those that were not repeated are left out where it is alone."""
    kept = range(len(members)) if not alone else sorted(again)
    runs = [(0 if alone else members[i].candidate) + times * (i in again) for i in kept]
    return [Member(members[i].sigma, members[i].baseline, m) for i, m in zip(kept, runs, strict=True)]


def deviation(members: Sequence[Member], correlation: float) -> float:
    """Standard deviation of the pooled effect, weighted as `tracker.stats.curves` weighs its cells.

    >>> one = Member(0.02, 1, 1)
    >>> round(deviation([one], 0.0), 4), round(deviation([one] * 4, 0.0), 4), round(deviation([one] * 4, 1.0), 4)
    (0.0283, 0.0141, 0.0283)
    """
    mean = sum(log(one.sigma) for one in members) / len(members)
    spreads = [sqrt((1 / one.baseline if one.baseline else 0.0) + 1 / one.candidate) for one in members]
    weights = [_weight(one, mean) / spread for one, spread in zip(members, spreads, strict=True)]
    total, own = sum(weights), sum(weight**2 for weight in weights)
    slope = sum(weight / (one.sigma * spread) for weight, one, spread in zip(weights, members, spreads, strict=True))
    return sqrt(own + correlation * (total**2 - own)) / slope


def _weight(one: Member, mean: float) -> float:
    trust = max(one.baseline - 1, 0) / (max(one.baseline - 1, 0) + WEIGHT_RUNS)
    return exp(-(trust * log(one.sigma) + (1 - trust) * mean))


def inflation(mde: float, margin: float, z: float, doubt: float) -> float:
    """How much wider than normal the judge saw it: from the smallest change that it says it detects; at least 1.

    >>> round(inflation(0.0317, 0.0, 2.326, 0.01), 2), round(inflation(0.04, 0.02, 1.0, 0.01), 2)
    (1.0, 2.17)
    """
    by_noise = mde / (z + _BEATEN)
    wide = by_noise if z * by_noise >= margin else (mde - margin) / _BEATEN
    return max(1.0, wide / doubt)


def score(p: float) -> float:
    """The distance from nothing that a two-sided p stands for, in standard deviations; 0 for a p of 1.

    >>> round(score(0.05), 2), score(1.0)
    (1.96, 0.0)
    """
    return 0.0 if p >= 1 else two_sided(max(p, 1e-300))


def two_sided(alpha: float) -> float:
    """The score that an error rate asks for.

    >>> round(two_sided(0.05), 2)
    1.96
    """
    return -_NORMAL.inv_cdf(alpha / 2)


def choose(test: Trial, free: Collection[int]) -> frozenset[int]:
    """The fewest members that give POWER, the least noisy first; all of them where that is not enough.

    `free` members are repeated anyhow: they come at no cost and are counted first.
    """
    chosen = set(free)
    rest = sorted(set(range(len(test.members))) - chosen, key=lambda i: (test.members[i].sigma, i))
    for member in rest:
        if test.power(chosen) >= POWER:
            break
        chosen.add(member)
    return frozenset(chosen)


def repetitions(test: Trial) -> int | None:
    """How many repetitions of all members give POWER; None where MOST_REPETITIONS are not enough."""
    everything = range(len(test.members))
    return next((n for n in range(1, MOST_REPETITIONS + 1) if test.power(everything, n) >= POWER), None)
