"""A slow loss against an anchor: runs of long ago beside the newest ones, one test a curve.

A rule that looks at the run before is blind to ten steps of half a percent. Here the newest runs stand against those
around a release or a date; what steps in between have told already is counted, so that the rest is what crept in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from tracker.stats import steps
from tracker.stats.noise import Floats
from tracker.stats.steps import Found, Rules, Track

ANCHOR_RUNS = 5
NEWEST_RUNS = 3
"""Runs on either side: enough for noise, few enough for a loss to be seen within twelve sweeps of its beginning."""

ALPHA = 0.005
"""Error rate of the test; with contaminated noise 1 % of the unchanged curves are called (simulated)."""


@dataclass(frozen=True, slots=True)
class Drift:
    """How the newest runs of a curve stand to its anchor. Natural log units."""

    effect: float
    low: float
    high: float
    p: float
    mde: float
    anchor: tuple[int, int]
    """First anchor run and the run after the last one; then the same of the newest runs."""
    newest: tuple[int, int]
    told: float
    """Sum of the steps in between."""
    is_called: bool
    """Beyond the margin and beyond chance."""
    is_slow: bool
    """Called, and a straight line explains the runs since the anchor at least as well as the steps do."""


def against(track: Track, anchor: int, found: Found = Found(), rules: Rules = Rules()) -> Drift | None:
    """The newest runs against those that end with run `anchor`; None where both would overlap or share no point."""
    runs = track.values.shape[1]
    # A step among the runs of one side would be told as a drift of half its size.
    edges = [0, *(step.at for step in found.steps)]
    first = max(anchor + 1 - ANCHOR_RUNS, *(edge for edge in edges if edge <= anchor), 0)
    newest = max(runs - NEWEST_RUNS, edges[-1])
    if anchor + 1 > newest:
        return None
    calm = _without(track.values, found)
    sides = steps.side_by_side(calm[:, first : anchor + 1], calm[:, newest:])
    weights = steps.posterior(track)
    # Points may fall out of their run, runs of an anchor are few: the pooled test decides, single points do not.
    (gap,) = steps.between(track, weights, [sides], replace(rules, alpha_expected=ALPHA))
    if gap is None:
        return None
    later = [step for step in found.steps if anchor < step.at]
    is_called = gap.p <= ALPHA and abs(gap.effect) >= rules.curve
    is_slow = is_called and _crept(calm[:, anchor:], [step.at - anchor for step in later])
    sizes = (gap.effect, gap.low, gap.high, gap.p, gap.mde)
    return Drift(*sizes, (first, anchor + 1), (newest, runs), sum(step.effect for step in later), is_called, is_slow)


def _crept(values: Floats, at: list[int]) -> bool:
    """Whether a line through each point leaves no more than its levels do, given what each has to fit."""
    edges = [0, *at, values.shape[1]]
    levels = sum(_left_over(values[:, i:j], 0) for i, j in pairwise(edges))
    points, known = len(values), int(np.isfinite(values).sum())
    line = _left_over(values, 1) / max(known - 2 * points, 1)
    # A level has a mean for each point, and a place.
    return line <= levels / max(known - (len(at) + 1) * points - len(at), 1)


def _left_over(values: Floats, degree: int) -> float:
    """Squared residuals of each row about its mean (degree 0) or its line over the runs (degree 1)."""
    total = 0.0
    for row in values:
        known = np.flatnonzero(np.isfinite(row))
        if len(known) > degree:
            x, y = known - known.mean(), row[known] - row[known].mean()
            slope = (x @ y) / (x @ x) if degree and x.any() else 0.0
            total += float(((y - slope * x) ** 2).sum())
    return total


def _without(values: Floats, found: Found) -> Floats:
    calm = values.copy()
    calm[:, [spike.at for spike in found.spikes if not spike.is_newest]] = np.nan
    return calm
