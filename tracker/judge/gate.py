"""The gate of an eval: what its pass mark says of a score, with all the digits and answers that it takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from store.records import Caveat, Score
from store.thresholds import Threshold
from tracker.judge.results import proportion, readable
from tracker.stats.proportions import Proportion


def gate_of(scores: Sequence[Score], metric: str, task: str, mark: Threshold | None) -> tuple[Caveat, ...]:
    """What the pass mark says of the lowest score: always the mark itself, then how far below or how near."""
    if mark is None:
        return (Caveat.of("no_gate", task=task),)
    gate = Caveat.of("gate", threshold=mark.value, model=mark.model)
    known = [(value, score) for score in scores if (value := readable(score, metric)) is not None]
    if not known:
        return (gate,)
    value, score = min(known, key=lambda pair: pair[0])
    return (gate, *_below(value, mark.value, score.n), *_near(value, mark.value, proportion(score, metric)))


def _below(value: float, mark: float, n: int | None) -> tuple[Caveat, ...]:
    """How many right answers are missing, counted exactly: 0.9 * 1319 in binary may be one question off."""
    if value >= mark:
        return ()
    correct = round(value * n) if n and 0 <= value <= 1 else None
    needed = math.ceil(Fraction(str(mark)) * n) if n else None
    short = needed - correct if needed is not None and correct is not None else None
    said = {"score": value, "threshold": mark, "digits": digits_apart(value, mark)}
    return (Caveat.of("below_threshold", **said, n=n, correct=correct, needed=needed, short_by=short),)


def _near(value: float, mark: float, known: Proportion | None) -> tuple[Caveat, ...]:
    """Within one standard error of the mark, on either side: another run may fall on the other."""
    if known is None or abs(value - mark) > known.se:
        return ()
    said = {"score": value, "threshold": mark, "digits": digits_apart(value, mark)}
    return (Caveat.of("near_threshold", **said, standard_error=known.se, z=(value - mark) / known.se),)


def digits_apart(value: float, mark: float) -> int:
    """Decimals at which two unequal fractions print differently; never "0.83 < 0.83".

    >>> digits_apart(0.828125, 0.83), digits_apart(0.8999999, 0.9), digits_apart(0.9, 0.9)
    (3, 7, 2)
    """
    if value == mark:
        return 2
    return next((d for d in range(2, 17) if f"{value:.{d}f}" != f"{mark:.{d}f}"), 17)
