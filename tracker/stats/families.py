"""Families of tests: Holm within a curve, Benjamini-Hochberg over the curves of a comparison."""

from __future__ import annotations

import numpy as np

from tracker.stats.noise import Floats, Ints


def holm(p: Floats, group: Ints) -> Floats:
    """Holm's adjusted p within each group.

    >>> holm(np.array([0.01, 0.04, 0.5]), np.array([0, 0, 1])).tolist()
    [0.02, 0.04, 0.5]
    """
    order = np.lexsort((p, group))
    sizes = np.bincount(group)
    starts = np.concatenate(([0], np.cumsum(sizes)))[group[order]]
    rank = np.arange(len(p)) - starts
    stepped = np.minimum(p[order] * (sizes[group[order]] - rank), 1.0)
    # A running maximum per group: groups are lifted apart by 2, more than any p can reach.
    lifted = np.maximum.accumulate(stepped + 2.0 * group[order]) - 2.0 * group[order]
    adjusted = np.empty_like(p)
    adjusted[order] = lifted
    return adjusted


def benjamini_hochberg(p: Floats) -> Floats:
    """Adjusted p of one family: the smallest q at which each test is still called.

    >>> benjamini_hochberg(np.array([0.01, 0.02, 0.9])).round(3).tolist()
    [0.03, 0.03, 0.9]
    """
    count = len(p)
    order = np.argsort(p)[::-1]
    raised = p[order] * count / np.arange(count, 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.minimum.accumulate(raised), 1.0) if count else raised
    return adjusted
