"""Numbers as text, one way for all languages: ASCII digits, a fixed unit, no compact forms.

A change is said in one of three kinds that cannot be taken for one another: by a percentage, to a number of times the
baseline, or by percentage points. Every function takes a finite number and gives text; None gives a dash.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_FLOOR, ROUND_HALF_UP, Decimal
from enum import StrEnum

from reports.facts import is_eval
from store.metrics import metric
from store.records import Finding

NOTHING = "–"
"""What a cell shows where there is no number."""

TIMES_FROM = math.log(2)
"""From this effect on a rise is told as "to 2.88 times", since "+188%" is often read as 1.88 times."""

LARGEST = math.log(1e6)
"""Beyond a millionfold an effect is a broken number, and `exp` of it may not exist."""

_MILLISECOND_FAMILIES = frozenset({"tpot", "itl", "tail_tpot", "tail_itl"})
_SCORE_STEP = Decimal("0.0001")


class Kind(StrEnum):
    """How a change is said."""

    PERCENT = "percent"
    TIMES = "times"
    POINTS = "points"


def kind(finding: Finding) -> Kind:
    """Scores change by percentage points, everything else by a percentage, or to a multiple when it doubles."""
    if is_eval(finding):
        return Kind.POINTS
    return Kind.TIMES if finding.effect is not None and finding.effect >= TIMES_FROM else Kind.PERCENT


def _one_decimal(value: float) -> str:
    """One decimal, two where one would show nothing, and no sign on a zero.

    >>> [_one_decimal(v) for v in (-33.764, 0.04, -0.004, 0.0)]
    ['-33.8', '0.04', '0.0', '0.0']
    """
    text = f"{value:.1f}" if abs(value) >= 0.05 else f"{value:.2f}"
    return "0.0" if float(text) == 0 else text


def _signed(text: str) -> str:
    return text if text.startswith("-") or float(text) == 0 else f"+{text}"


def change(effect: float | None, how: Kind) -> str:
    """A change with its sign, as a table shows it.

    >>> change(math.log(0.8), Kind.PERCENT), change(math.log(2.88), Kind.TIMES), change(-0.02, Kind.POINTS)
    ('-20.0%', '2.88×', '-2.0 pp')
    """
    if effect is None or not math.isfinite(effect) or effect > LARGEST:
        return NOTHING
    if how is Kind.TIMES:
        return f"{math.exp(effect):.2f}×"
    if how is Kind.POINTS:
        return f"{_signed(_one_decimal(effect * 100))} pp"
    return f"{_signed(_one_decimal(math.expm1(effect) * 100))}%"


def size(effect: float, how: Kind) -> str:
    """The size of a change without its sign, for a sentence whose verb carries the direction.

    >>> size(math.log(0.8), Kind.PERCENT), size(math.log(2.88), Kind.TIMES), size(-0.02, Kind.POINTS)
    ('20.0%', '2.88', '2.0')
    """
    if how is Kind.TIMES:
        return f"{math.exp(effect):.2f}"
    if how is Kind.POINTS:
        return _one_decimal(abs(effect) * 100)
    return f"{_one_decimal(abs(math.expm1(effect)) * 100)}%"


def detectable(mde: float | None, how: Kind) -> str:
    """The smallest change that could have been seen: a size, so without a sign."""
    if mde is None or not math.isfinite(mde) or abs(mde) > LARGEST:
        return NOTHING
    return (
        f"{_one_decimal(abs(mde) * 100)} pp" if how is Kind.POINTS else f"{_one_decimal(math.expm1(abs(mde)) * 100)}%"
    )


def pvalue(p: float | None) -> str:
    """A p-value for a cell.

    >>> pvalue(0.03), pvalue(0.00042), pvalue(1e-9)
    ('0.030', '0.0004', '<0.0001')
    """
    if p is None:
        return NOTHING
    if p < 0.0001:
        return "<0.0001"
    return f"{p:.4f}" if p < 0.01 else f"{p:.3f}"


def relation(p: float) -> str:
    """A p-value with its sign of relation, for a sentence: `= 0.030`, `< 0.0001`."""
    text = pvalue(p)
    return f"< {text[1:]}" if text.startswith("<") else f"= {text}"


def score(fraction: float | None, threshold: float | None = None) -> str:
    """An accuracy with four decimals, rounded DOWN where it would else look like passing a threshold that it fails.

    >>> score(0.95528), score(0.899996), score(0.899996, 0.9), score(0.8999999999, 0.9)
    ('0.9553', '0.9000', '0.8999', '0.9000')
    """
    if fraction is None or not math.isfinite(fraction):
        return NOTHING
    exact = _exact(fraction)
    near = exact.quantize(_SCORE_STEP, rounding=ROUND_HALF_UP)
    if threshold is not None and math.isfinite(threshold) and exact < _exact(threshold) <= near:
        return str(exact.quantize(_SCORE_STEP, rounding=ROUND_FLOOR))
    return str(near)


def _exact(fraction: float) -> Decimal:
    """A fraction without what arithmetic leaves behind its ninth digit."""
    return Decimal(repr(round(float(fraction), 9)))


def measure(value: float | None, key: str, threshold: float | None = None) -> str:
    """A measured value in the fixed unit of its metric; TPOT and ITL are told in milliseconds.

    >>> measure(1336.04, "tput_per_gpu"), measure(0.05159, "median_tpot"), measure(0.9553, "em_strict")
    ('1336.0 tok/s/GPU', '51.59 ms', '0.9553')
    """
    row = metric(key)
    if value is None or not math.isfinite(value):
        return NOTHING
    if row.family == "accuracy":
        return score(value, threshold)
    if row.unit == "s" and row.family in _MILLISECOND_FAMILIES:
        return f"{plain(value * 1000)} ms"
    return f"{plain(value)} {row.unit}".rstrip()


def plain(value: float) -> str:
    """A bare number: an integer as it is, else enough decimals for four digits, and at least one.

    >>> plain(12), plain(1336.04), plain(51.589), plain(0.71592), plain(True)
    ('12', '1336.0', '51.59', '0.7159', 'True')
    """
    if isinstance(value, int) or not math.isfinite(value):
        return str(value)
    if abs(value) >= 100:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 10 else f"{value:.3f}" if abs(value) >= 1 else f"{value:.4g}"


def count(number: int) -> str:
    """A count; anything but an integer is a mistake of the caller.

    >>> count(1336)
    '1336'
    """
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"a count must be an integer, not {number!r}")
    return str(number)


_BARS = "▁▂▃▄▅▆▇█"


def sparkline(levels: Sequence[float]) -> str:
    """One bar per value between the lowest and the highest; equal values are all of middle height.

    >>> sparkline([1.0, 2.0, 1.5]), sparkline([5.0, 5.0])
    ('▁█▅', '▄▄')
    """
    finite = [level for level in levels if math.isfinite(level)]
    if not finite:
        return NOTHING
    low, span = min(finite), max(finite) - min(finite)
    if span == 0:
        return _BARS[3] * len(finite)
    return "".join(_BARS[round((level - low) / span * (len(_BARS) - 1))] for level in finite)
