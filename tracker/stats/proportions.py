"""Shares of right answers: doubt of one score, comparison of two, jobs pooled, what was detectable at all.

Two runs of one eval answer the SAME questions, so their difference scatters less than two independent samples would:
by `phi`, 0.6 on public GSM8K pairs of unchanged images. A two-proportion test is therefore too timid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

PHI = 0.6
"""Scatter of reruns in units of the reported standard error: 50 public same-image GSM8K pairs, rms 0.61."""


@dataclass(frozen=True, slots=True)
class Proportion:
    """A share of right answers with its standard error, both as fractions."""

    p: float
    se: float


def wilson(p: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share of `n` answers; it has a width at 0 and at 1 too.

    >>> [round(limit, 4) for limit in wilson(0.0, 1319)]
    [0.0, 0.0029]
    """
    z = float(ndtri((1 + confidence) / 2))
    centre, scale = p + z * z / (2 * n), 1 + z * z / n
    half = z * math.sqrt(p * (1 - p) / n + (z / (2 * n)) ** 2)
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def standard_error(p: float, n: int | None, reported: float | None = None) -> float | None:
    """Standard error of a share; None where neither `n` nor a usable report exists.

    The report is believed unless it is no number, 0, or less than half of sqrt(p (1 - p) / (n - 1)): those are
    artefacts, and the formula stands in. At p = 0 and p = 1, where the formula gives 0, Wilson's interval bounds it.

    >>> [round(standard_error(p, 1319, said), 5) for p, said in ((0.9553, 0.0), (0.9553, None), (0.0, 0.0))]
    [0.00569, 0.00569, 0.00074]
    >>> standard_error(0.9553, None, 0.0) is None
    True
    """
    said = reported if reported is not None and math.isfinite(reported) and reported > 0 else None
    if n is None or n < 2:
        return said
    low, high = wilson(p, n)
    own = math.sqrt(p * (1 - p) / (n - 1)) if 0 < p < 1 else (high - low) / (2 * float(ndtri(0.975)))
    return said if said is not None and said >= own / 2 else own


def average(parts: Sequence[Proportion]) -> Proportion:
    """Mean of the scores of several runs, each one a replicate."""
    p = math.fsum(part.p for part in parts) / len(parts)
    return Proportion(p, math.sqrt(math.fsum(part.se**2 for part in parts)) / len(parts))


@dataclass(frozen=True, slots=True)
class Difference:
    """New less old, as a fraction; `se` is the scatter to expect of it when nothing changed, never 0."""

    effect: float
    se: float

    @property
    def z(self) -> float:
        return self.effect / self.se

    @property
    def p_drop(self) -> float:
        """One-sided: how often a drop of this size or more comes by chance."""
        return float(ndtr(self.z))

    @property
    def p_rise(self) -> float:
        """One-sided, the mirror of `p_drop`."""
        return float(ndtr(-self.z))

    @property
    def p(self) -> float:
        """One-sided, in the direction that was seen."""
        return min(self.p_drop, self.p_rise)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Two-sided limits of the difference."""
        half = float(ndtri((1 + confidence) / 2)) * self.se
        return self.effect - half, self.effect + half

    def within(self, margin: float, confidence: float = 0.90) -> bool:
        """Equivalent: the whole interval lies inside plus or minus `margin`."""
        low, high = self.interval(confidence)
        return -margin < low and high < margin

    def detectable(self, margin: float, alpha: float = 0.01, power: float = 0.80) -> float:
        """Smallest true change that is found with `power`: it must reach significance and the margin as well.

        >>> round(Difference(0.0, 0.6 * 0.0054 * 2**0.5).detectable(0.01), 4)
        0.0145
        """
        return max(-float(ndtri(alpha)) * self.se, margin) + float(ndtri(power)) * self.se


def compare(before: Proportion, after: Proportion, phi: float = PHI) -> Difference:
    """Difference of two scores on the same questions, with the scatter that reruns were seen to have."""
    return Difference(after.p - before.p, phi * math.hypot(before.se, after.se))


def pool(parts: Sequence[Difference], rho: float = 0.05) -> Difference:
    """One difference of the jobs of a configuration, which correlate `rho` within a run.

    The estimate is the shift at which the pooled statistic is 0, so its z is sum z_j / sqrt(J (1 + rho (J - 1))).

    >>> round(pool([Difference(-0.01, 0.005)] * 2, rho=0.0).z, 3)
    -2.828
    """
    j = len(parts)
    weight = math.fsum(1 / part.se for part in parts)
    return Difference(math.fsum(part.z for part in parts) / weight, math.sqrt(j * (1 + rho * (j - 1))) / weight)


def dispersion(
    pairs: Sequence[tuple[Proportion, Proportion]], prior: float = PHI, weight: float = 30, floor: float = 0.4
) -> float:
    """`phi` from reruns of unchanged software, drawn to the prior, which counts as `weight` pairs.

    Pairs beyond 3 standard errors are taken as 3: there something did change, and noise must not learn from it.

    >>> dispersion([])
    0.6
    """
    z = np.array([compare(before, after, 1.0).z for before, after in pairs])
    squares = float((np.clip(z, -3, 3) ** 2).sum())
    return max(floor, math.sqrt((weight * prior**2 + squares) / (weight + len(pairs))))
