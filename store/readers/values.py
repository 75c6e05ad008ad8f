"""Fields of a row as typed values: what eras spell differently is read, what is no value of the field is a `Flaw`."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TypeAlias

Row: TypeAlias = Mapping[str, object]

LIMIT = 2**31
"""No concurrency, length or GPU count comes near; the archive's columns hold it."""

_FLAGS = {"true": True, "1": True, "yes": True, "on": True, "": False, "false": False, "0": False, "none": False}
_FLAGS.update({"null": False, "no": False, "off": False})


class Flaw(ValueError):
    """A row that cannot be read whole: the field, a reason code of the catalogs, what stood there."""

    def __init__(self, field: str, reason: str, detail: str = "") -> None:
        super().__init__(f"{field}: {reason} {detail}")
        self.field = field
        self.reason = reason
        self.detail = detail


def shown(value: object) -> str:
    """A foreign value short enough for a message."""
    try:
        return repr(value)[:80]
    except (ValueError, RecursionError):
        return f"a {type(value).__name__}"


def number(value: object) -> float | None:
    """A number or a numeric string as float, NaN and infinities included; None for everything else.

    >>> number("12.5"), number(3), number(True), number("abc"), number("1_0"), number("６４")
    (12.5, 3.0, None, None, None, None)
    """
    if isinstance(value, str) and ("_" in value or not value.isascii()):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except OverflowError:
        return float("inf")
    except ValueError:
        return None


def integer(row: Row, field: str, default: int = 1, least: int = 1, limit: int = LIMIT) -> int:
    """A whole number from `least` up to, but less than `limit`; absent or null is the default."""
    value = row.get(field)
    if value is None or value == "":
        return default
    if type(value) is int and least <= value < limit:
        return value
    read = number(value)
    if read is None or not isfinite(read) or read != int(read) or not least <= read < LIMIT:
        raise Flaw(field, "bad_value", shown(value))
    return int(read)


def length(row: Row, field: str) -> int | None:
    """A sequence length; 0, null and absent are "not said"."""
    return integer(row, field, 0, 0) or None


def word(row: Row, field: str) -> str:
    """A text; absent or null is empty."""
    value = row.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Flaw(field, "bad_value", shown(value))
    return value.strip()


def flag(row: Row, field: str) -> bool:
    """A boolean in any of its spellings (`true`, "True", "1", 1, null)."""
    value = row.get(field)
    if value is None or isinstance(value, bool):
        return bool(value)
    known = _FLAGS.get(str(value).strip().lower()) if isinstance(value, str | int) else None
    if known is None:
        raise Flaw(field, "bad_value", shown(value))
    return known


def block(row: Row, field: str) -> Row:
    """A nested object; absent or null is empty."""
    value = row.get(field)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Flaw(field, "bad_value", shown(value))
    return value
