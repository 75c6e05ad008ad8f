"""Every number that a judgement depends on, in one frozen record: built at the edge and passed down.

Effects and margins are natural log units. What a margin says is what is worth a person's time; it is no noise level.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log, log1p
from types import MappingProxyType
from typing import TypeAlias

from tracker.stats.noise import Scales

RULES_VERSION = "5"
"""Goes up with every change of a rule, a margin or an error rate: stored with each finding."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one family of metrics may do before anything is said, and with which error rate."""

    curve: float
    """Margin of a curve (and of equivalence), natural log units."""
    point: float
    """Margin of a single point, natural log units."""
    alpha: float
    """Error rate of the pooled test of a curve."""
    alpha_point: float
    """Error rate of Holm's step over the points of a curve: a lone point needs stronger evidence."""
    noisy: float
    """A smallest detectable change above this is too coarse to be called anything but noisy."""


LimitsTable: TypeAlias = Mapping[str, Limits]


def _limits(curve: float, point: float, alphas: tuple[float, float] = (0.02, 0.01), noisy: float = 0.10) -> Limits:
    """Limits from relative losses: -2 % and its mirror +2.04 % are one distance on the log scale."""
    return Limits(-log1p(-curve), -log1p(-point), *alphas, log1p(noisy))


_TTFT = ((0.005, 0.005), 0.30)
_TAIL = 1.5

LIMITS: LimitsTable = MappingProxyType(
    {
        **{name: _limits(0.02, 0.03) for name in ("throughput", "tpot", "itl", "e2el")},
        **{f"tail_{name}": _limits(0.02 * _TAIL, 0.03 * _TAIL) for name in ("tpot", "itl", "e2el")},
        "ttft": _limits(0.15, 0.25, *_TTFT),
        "tail_ttft": _limits(0.15 * _TAIL, 0.25 * _TAIL, *_TTFT),
    }
)
"""Limits per noise family (store.metrics). Time to first token is 8 to 20 times noisier than the rest."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Rules of a judgement. The defaults are those of the design, measured on published sweeps.

    >>> round(Settings().limits["throughput"].curve, 4)
    0.0202
    """

    limits: LimitsTable = field(default_factory=lambda: LIMITS)
    alpha_suspected: float = 0.05
    alpha_equivalence: float = 0.05
    q_gate: float = 0.05
    q_advisory: float = 0.01
    max_baseline_runs: int = 5
    alpha_frontier: float = 0.01
    """Error rate of the shift of a frontier at equal interactivity..."""
    alpha_peak: float = 0.005
    """...and of its peak: two questions about one group, together wrong in less than 2 % of unchanged groups."""
    trim_scales: float = 8.0
    """A baseline run further from the median than this many scales is flaky (with at least three runs)..."""
    trim_floor: float = 0.10
    """...and further than this, natural log units."""
    lent: float = 0.5
    """Weight of the scatter seen under older images of the same series."""
    power: float = 0.80
    implausible_gain: float = log(2.0)
    """A gain beyond a doubling is shown for a check, never celebrated."""
    witness_free: float = -log1p(-0.20)
    """A change below this must show in both gate metrics, where both were measured, before it is called..."""
    witness_share: float = 1 / 3
    """...on a curve the second must have moved by at least this share of the first..."""
    witness_strict: float = -log1p(-0.08)
    """...and a lone point below this, on one node, must be called by both: there they carry nearly one number."""
    signature_itl: float = log1p(0.01)
    """Inter-token latency that moved less than this while TPOT moved beyond its margin marks a bad night..."""
    signature_spread: float = 0.5
    """...when the points moved together: their standard deviation is at most this share of their mean."""
    min_stretches: int = 30
    """Fewer unchanged stretches than this leave the shipped noise scales in force."""
    rules_version: str = RULES_VERSION
    scales: Scales | None = None
    """Learned noise scales (`tracker.frames.learn_scales`); None: learn from the history at hand."""
