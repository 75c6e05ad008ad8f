"""The same questions asked of both sides: what changed, question by question.

Greedy runs of one image do not repeat every answer: batching reorders sums, and a few answers flip. Under no change
the runs of both sides are exchangeable within each question, so a flip is as likely to be a loss as a gain, whatever
the question's difficulty. Given how often a question was answered right by all runs together, the number of right
answers of the candidate's runs is hypergeometric; the sum over questions has an exact distribution. With one run a side
that is McNemar's test, with more it is Mantel's for questions as strata.

The mid-p is used: half the probability of what was seen counts. The number of flips is itself random, and over it the
mid-p keeps the error rate where the exact conditional test gives away a third of it or more (docs/evals.md has the
figures; Fagerland, Lydersen and Laake 2013 recommend it for the same reason).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from tracker.stats.proportions import Difference

PRIOR_FLIPS = 2.0
"""Flips that are added to those that were seen in the interval, one each way, and that the noise has at least.

So five losses and no gain have no interval as if gains were impossible (Bonett and Price 2012), and a job without any
flip is not told to see any change at all.
"""

_LEAST_P = 1e-300


@dataclass(frozen=True, slots=True)
class Table:
    """Questions of one job by how many runs of each side answered them right."""

    baseline_runs: int
    candidate_runs: int
    cells: tuple[tuple[int, int, int], ...]
    """Right in baseline runs, right in candidate runs, number of questions."""

    @property
    def questions(self) -> int:
        return sum(count for _, _, count in self.cells)

    @property
    def lost(self) -> int:
        """Questions that a smaller share of the candidate's runs answers right."""
        return sum(count for old, new, count in self.cells if self.shift(old, new) < 0)

    @property
    def gained(self) -> int:
        """Questions that a larger share of the candidate's runs answers right."""
        return sum(count for old, new, count in self.cells if self.shift(old, new) > 0)

    @property
    def scale(self) -> float:
        """Variance of the shift of a question that one run alone answered otherwise than all the others."""
        return 1 / (self.baseline_runs * self.candidate_runs)

    @property
    def total(self) -> float:
        """Sum of the shifts of all questions."""
        return math.fsum(count * self.shift(old, new) for old, new, count in self.cells)

    @property
    def squares(self) -> float:
        """Sum of the squared shifts: with one run a side, the number of flips."""
        return math.fsum(count * self.shift(old, new) ** 2 for old, new, count in self.cells)

    @property
    def variance(self) -> float:
        """Variance of `total` under no change, given how often each question was answered right."""
        runs = self.baseline_runs + self.candidate_runs
        right = math.fsum(count * (old + new) * (runs - old - new) for old, new, count in self.cells)
        return right / (runs - 1) * self.scale

    def shift(self, old: int, new: int) -> float:
        return new / self.candidate_runs - old / self.baseline_runs


def tabulate(baseline: npt.NDArray[np.bool_], candidate: npt.NDArray[np.bool_]) -> Table:
    """The table of one job from right and wrong: arrays of runs x questions.

    >>> tabulate(np.array([[True, True, False]]), np.array([[True, False, False]])).cells
    ((0, 0, 1), (1, 0, 1), (1, 1, 1))
    """
    counts = Counter(zip(baseline.sum(axis=0).tolist(), candidate.sum(axis=0).tolist(), strict=True))
    cells = tuple((old, new, count) for (old, new), count in sorted(counts.items()))
    return Table(len(baseline), len(candidate), cells)


def shifts(baseline: npt.NDArray[np.bool_], candidate: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Per question, the share of the candidate's runs that answered right less that of the baseline's."""
    return np.asarray(candidate.mean(axis=0) - baseline.mean(axis=0))


def overdispersion(jobs: Sequence[npt.NDArray[np.float64]]) -> float:
    """How much more the sum over jobs scatters than independent jobs would, from their shifts (jobs x questions).

    Jobs of one run ask the same questions of the same software: an answer that flips in one is likely to flip in the
    others, for better or worse. Nothing makes them scatter less than independent jobs: below 1 is chance.

    >>> same = np.array([1.0, -1.0, 0.0])
    >>> overdispersion([same, same]), overdispersion([same])
    (2.0, 1.0)
    """
    table = np.array(jobs)
    alone = float((table**2).sum())
    shared = float((table.sum(axis=0) ** 2).sum()) / alone if alone else 1.0
    return max(shared, 1.0)


@dataclass(frozen=True, slots=True)
class Paired:
    """New less old over the same questions, as fractions: the mean over jobs of the mean over questions.

    `centre` and `spread` are those of the interval, `quiet` the standard error under no change; `p_drop` and `p_rise`
    are one-sided mid-p and add up to 1.
    """

    effect: float
    p_drop: float
    p_rise: float
    centre: float
    spread: float
    quiet: float
    tables: tuple[Table, ...]
    overdispersion: float
    share: float = 1.0
    """Variance of the difference over that of the runs in the tables: below 1 where further runs were averaged."""

    @property
    def se(self) -> float:
        """The scatter to expect of the effect when nothing changed, never 0."""
        return self.quiet

    @property
    def p(self) -> float:
        """One-sided, in the direction that was seen."""
        return min(self.p_drop, self.p_rise)

    @property
    def z(self) -> float:
        """The normal score of the exact p."""
        return float(ndtri(max(self.p_drop, _LEAST_P)) if self.p_drop <= self.p_rise else -ndtri(self.p_rise))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Two-sided limits of the difference: Bonett and Price's, wherever one run a side makes them that."""
        half = float(ndtri((1 + confidence) / 2)) * self.spread
        return self.centre - half, self.centre + half

    def within(self, margin: float, confidence: float = 0.90) -> bool:
        """Equivalent: the whole interval lies inside plus or minus `margin`."""
        low, high = self.interval(confidence)
        return -margin < low and high < margin

    def detectable(self, margin: float, alpha: float = 0.01, power: float = 0.80) -> float:
        """Smallest true change that is found with `power`: it must reach significance and the margin as well.

        Answers lost add flips of their own, to the test's variance and to the scatter of what is seen; the change is
        where both sides of that balance meet, 1 at most.
        """
        z_alpha, z_power = -float(ndtri(alpha)), float(ndtri(power))
        n = self.tables[0].questions
        runs = [table.baseline_runs + table.candidate_runs for table in self.tables]
        told = math.fsum(1 / (all_runs - 1) for all_runs in runs) / len(runs)

        def gap(change: float) -> float:
            lost = self.quiet**2 + self.share * told * change / n
            seen = self.quiet**2 + change * (1 - change) / n
            return change - max(z_alpha * math.sqrt(lost), margin) - z_power * math.sqrt(seen)

        low, high = 0.0, 1.0
        if gap(high) < 0:
            return high
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if gap(middle) > 0 else (middle, high)
        return high

    def as_difference(self) -> Difference:
        """A normal difference of the same p, to be pooled with jobs that are no pairs."""
        z = self.z
        fitting = z and self.effect and (z > 0) == (self.effect > 0)
        return Difference(self.effect, abs(self.effect / z) if fitting else self.quiet)


def paired(tables: Sequence[Table], overdispersion: float = 1.0) -> Paired:
    """Judge the tables of one job, or of the jobs of a configuration that asked the same questions.

    >>> mcnemar = paired([Table(1, 1, ((0, 0, 45), (0, 1, 15), (1, 0, 35), (1, 1, 1224)))])
    >>> round(mcnemar.effect, 5), round(mcnemar.p_drop, 5), round(mcnemar.detectable(0.01), 4)
    (-0.01516, 0.0023, 0.0212)
    """
    jobs, n = len(tables), tables[0].questions
    if any(table.questions != n for table in tables):
        raise ValueError("tables of different numbers of questions are not pairs of one eval")
    added = PRIOR_FLIPS * math.fsum(table.scale for table in tables) / jobs
    total = math.fsum(table.total for table in tables) / jobs
    quiet = overdispersion * max(math.fsum(table.variance for table in tables), added) / jobs**2
    wide = overdispersion * (math.fsum(table.squares for table in tables) + added) / jobs**2
    larger = n + PRIOR_FLIPS
    centre = total / larger
    p_drop, p_rise = _one_sided(tables, overdispersion)
    return Paired(
        effect=total / n,
        p_drop=p_drop,
        p_rise=p_rise,
        centre=centre,
        spread=math.sqrt(max(wide - larger * centre**2, 0.0)) / larger,
        quiet=math.sqrt(quiet) / n,
        tables=tuple(tables),
        overdispersion=overdispersion,
    )


def partly(flips: Paired, effect: float, share: float) -> Paired:
    """The difference of all runs, with the scatter that the flips between some of them show; p is normal.

    `share` is the variance of the difference of all over that of the runs in the tables, (1/k + 1/m) of each.

    >>> some = paired([Table(1, 1, ((0, 0, 45), (0, 1, 15), (1, 0, 15), (1, 1, 1244)))])
    >>> round(partly(some, -0.01, 0.6).se / some.se, 4)
    0.7746
    """
    quiet = flips.quiet * math.sqrt(share)
    z = effect / quiet
    return Paired(
        effect=effect,
        p_drop=float(ndtr(z)),
        p_rise=float(ndtr(-z)),
        centre=effect,
        spread=flips.spread * math.sqrt(share),
        quiet=quiet,
        tables=flips.tables,
        overdispersion=flips.overdispersion,
        share=share,
    )


def _one_sided(tables: Sequence[Table], overdispersion: float) -> tuple[float, float]:
    """Mid-p of a drop and of a rise, exact for independent jobs; what jobs share is drawn into its normal score.

    Jobs with unequal numbers of runs weigh their answers unequally: their many flips together are taken as normal.
    """
    if len({(table.baseline_runs, table.candidate_runs) for table in tables}) == 1:
        drop, rise = _exact(tables)
        if overdispersion == 1.0:
            return drop, rise
        z = float(ndtri(drop) if drop <= rise else -ndtri(rise))
    else:
        spread = math.sqrt(math.fsum(table.variance for table in tables))
        z = math.fsum(table.total for table in tables) / spread if spread else 0.0
    z /= math.sqrt(overdispersion)
    return float(ndtr(z)), float(ndtr(-z))


def _exact(tables: Sequence[Table]) -> tuple[float, float]:
    """Mid-p of a drop and of a rise from the number of right answers of the candidate's runs, questions as strata.

    All terms are positive, so that small chances keep their relative accuracy, which a transform would lose.
    """
    k, m = tables[0].baseline_runs, tables[0].candidate_runs
    counts: Counter[int] = Counter()
    seen = 0
    for old, new, count in (cell for table in tables for cell in table.cells):
        counts[old + new] += count
        seen += count * (new - max(0, old + new - k))
    chances = np.ones(1)
    for right, count in sorted(counts.items()):
        if 0 < right < k + m:
            chances = np.convolve(chances, _power(_hypergeometric(k, m, right), count))
    half = chances[seen] / 2
    sums = float(chances[:seen].sum() + half), float(chances[seen + 1 :].sum() + half)
    drop, rise = (min(max(one, _LEAST_P), 1.0) for one in sums)
    return drop, rise


def _hypergeometric(k: int, m: int, right: int) -> npt.NDArray[np.float64]:
    """Chances of each number of right answers among m runs, where `right` of k + m runs were right."""
    possible = range(max(0, right - k), min(m, right) + 1)
    return np.array([math.comb(m, new) * math.comb(k, right - new) / math.comb(k + m, right) for new in possible])


def _power(chances: npt.NDArray[np.float64], times: int) -> npt.NDArray[np.float64]:
    """The distribution of the sum of `times` independent draws."""
    result = np.ones(1)
    while times:
        if times & 1:
            result = np.convolve(result, chances)
        times >>= 1
        chances = np.convolve(chances, chances) if times else chances
    return result
