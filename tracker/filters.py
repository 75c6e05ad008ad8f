"""Which series a command speaks of: `hardware=mi355x`, `conc>=64`, globbed config keys, and days since and until.

Every command that takes filters takes these. All of them must hold; within one, values with commas are alternatives.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from fnmatch import fnmatchcase
from types import MappingProxyType

from store.identity import config_key, curve_key, series_key
from store.records import Series, Trouble

Texts = tuple[str, ...]

TEXTS: Mapping[str, Callable[[Series], Texts]] = MappingProxyType(
    {
        "hardware": lambda series: (series.gpu,),
        "model": lambda series: (series.model,),
        "framework": lambda series: (series.framework,),
        "precision": lambda series: (series.precision,),
        "spec": lambda series: (series.spec,),
        "scenario": lambda series: (series.scenario,),
        "config": lambda series: (config_key(series),),
        "curve": lambda series: (curve_key(series),),
        "disagg": lambda series: (_yes(series.layout.decode is not None),),
        "multinode": lambda series: (_yes(series.layout.multinode),),
    }
)
"""Fields that are held against words with `*` and `?`. A new one is a new row."""

NUMBERS: Mapping[str, Callable[[Series], int | None]] = MappingProxyType(
    {
        "conc": lambda series: series.conc,
        "isl": lambda series: series.isl,
        "osl": lambda series: series.osl,
        "gpus": lambda series: series.layout.gpus,
    }
)
"""Fields that are held against whole numbers."""

ALIASES: Mapping[str, str] = MappingProxyType(
    {"gpu": "hardware", "hw": "hardware", "speculation": "spec", "key": "config"}
)

_COMPARE: Mapping[str, Callable[[int, int], bool]] = MappingProxyType(
    {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
)
_CONDITION = re.compile(r"([A-Za-z_]+)\s*(>=|<=|!=|=|>|<)\s*(.*)")
_AGO = re.compile(r"(\d{1,4})([dw])")


def _yes(found: bool) -> str:
    return "true" if found else "false"


@dataclass(frozen=True, slots=True)
class Condition:
    """One filter: a field, a sign and its values; a bare text is held against config, curve and series."""

    field: str
    sign: str
    values: Texts

    def __str__(self) -> str:
        said = ",".join(self.values)
        return said if self.field == "key" else f"{self.field}{self.sign}{said}"

    def fits(self, series: Series) -> bool:
        """Whether a series is meant."""
        if self.field in NUMBERS:
            return self._fits_number(NUMBERS[self.field](series))
        if self.field == "key":
            names: Texts = (config_key(series), curve_key(series), series_key(series))
        else:
            names = TEXTS[self.field](series)
        found = any(fnmatchcase(name.lower(), value.lower()) for name in names for value in self.values)
        return found != (self.sign == "!=")

    def _fits_number(self, number: int | None) -> bool:
        if number is None:
            return False
        if self.sign in _COMPARE:
            return _COMPARE[self.sign](number, int(self.values[0]))
        return (number in map(int, self.values)) != (self.sign == "!=")


def parse(text: str) -> Condition:
    """One filter out of its text; a text that is none is Trouble that says what would be one.

    >>> str(parse("gpu=mi355x,mi325x")), str(parse("conc >= 64")), str(parse("dsr1-*-sglang"))
    ('hardware=mi355x,mi325x', 'conc>=64', 'dsr1-*-sglang')
    """
    said = text.strip()
    found = _CONDITION.fullmatch(said)
    if not found:
        if not said:
            raise Trouble("an empty text is no filter: write FIELD=VALUE, or a config key with * and ?")
        return Condition("key", "=", (said,))
    word, sign, rest = found[1].lower(), found[2], found[3]
    field = ALIASES.get(word, word)
    values = tuple(value.strip() for value in rest.split(","))
    if field not in TEXTS and field not in NUMBERS:
        raise Trouble(f"{text!r} names no field: {_near(word)}")
    if not all(values):
        raise Trouble(f"{text!r} lacks a value: write {field}{sign}VALUE")
    _check(text, field, sign, values)
    return Condition(field, sign, values)


def _near(word: str) -> str:
    known = (*TEXTS, *NUMBERS, *ALIASES)
    close = get_close_matches(word, known)
    return f"did you mean {', '.join(close)}?" if close else f"the fields are {', '.join((*TEXTS, *NUMBERS))}"


def _check(text: str, field: str, sign: str, values: Texts) -> None:
    if field in TEXTS and sign in _COMPARE:
        raise Trouble(
            f"{text!r} orders words: {field} takes = and != (with * and ?); {', '.join(NUMBERS)} have an order"
        )
    if field in NUMBERS and not all(re.fullmatch(r"\d{1,9}", value) for value in values):
        raise Trouble(f"{text!r} needs a whole number: write {field}{sign}64")
    if sign in _COMPARE and len(values) > 1:
        raise Trouble(f"{text!r} compares with several numbers: write one, or {field}={','.join(values)}")


@dataclass(frozen=True, slots=True)
class Filters:
    """What is asked for: conditions that must all hold, and the first and the last moment of the runs."""

    conditions: tuple[Condition, ...] = ()
    since: datetime | None = None
    until: datetime | None = None

    def series(self, known: Mapping[str, Series]) -> dict[str, Series]:
        """The series among some (by text key) that are meant; none at all is Trouble that says which filter did it."""
        found = {key: one for key, one in known.items() if all(part.fits(one) for part in self.conditions)}
        if not found and self.conditions:
            raise Trouble(_nothing(self.conditions, known.values()))
        return found

    def holds(self, moment: datetime) -> bool:
        """Whether a run of this time is meant."""
        return (self.since is None or moment >= self.since) and (self.until is None or moment < self.until)


def _nothing(conditions: Sequence[Condition], known: Collection[Series]) -> str:
    alone = [one for one in conditions if not any(one.fits(series) for series in known)]
    if not alone:
        return f"no series fits all of {' '.join(map(str, conditions))}: leave one out"
    first = alone[0]
    if first.field in TEXTS:
        there = sorted({name for series in known for name in TEXTS[first.field](series)})
    elif first.field in NUMBERS:
        numbers = map(NUMBERS[first.field], known)
        there = [str(number) for number in sorted({number for number in numbers if number is not None})]
    else:
        there = sorted({config_key(series) for series in known})
        there = get_close_matches(first.values[0], there, cutoff=0.4) or there
    more = f" and {len(there) - 12} more" if len(there) > 12 else ""
    return f"no series fits {first}: the store has {', '.join(there[:12]) or 'no series'}{more}"


def filters(texts: Iterable[str], since: str | None, until: str | None, now: datetime) -> Filters:
    """All filters of a command; `now` is what `2w` counts back from. `until` a day includes that day."""
    conditions = tuple(map(parse, texts))
    first = None if since is None else moment(since, now)
    last = None if until is None else moment(until, now)
    if last is not None and until is not None and re.fullmatch(r"\d{4}-\d\d-\d\d", until.strip()):
        last = _next_day(last)
    if first is not None and last is not None and first >= last:
        raise Trouble(f"--since {since} is not before --until {until}: turn them round")
    return Filters(conditions, first, last)


def _next_day(day: datetime) -> datetime:
    try:
        return day + timedelta(days=1)
    except OverflowError:
        raise Trouble(f"no day comes after {day:%Y-%m-%d}: leave --until out") from None


def moment(text: str, now: datetime) -> datetime:
    """A day or a moment (UTC where it says no zone), or so many days or weeks before `now`.

    >>> moment("2w", datetime(2026, 6, 15, tzinfo=UTC)).date().isoformat()
    '2026-06-01'
    """
    if found := _AGO.fullmatch(text.strip()):
        return now - timedelta(days=int(found[1]) * (7 if found[2] == "w" else 1))
    try:
        told = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Trouble(f"{text!r} is no time: write 2026-06-01, 2026-06-01T12:00, 10d or 6w") from None
    return told if told.tzinfo else told.replace(tzinfo=UTC)
