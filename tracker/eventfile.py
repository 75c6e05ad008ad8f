"""A user's own events of the test harness, read from a file (docs/events.md)."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from store import limits, yamltext
from store.records import Trouble
from tracker.events import DAY, EVENTS, SELECTORS, Effect, Event, Span

_FIELDS = frozenset({"event", "date", "effect", "series", "metrics", "pull", "commit"})
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,79}", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


def load(path: Path) -> tuple[Event, ...]:
    """The shipped events and those of a file, which may leave the shipped ones out. Raises Trouble."""
    try:
        return parse(limits.read_file(path, limits.YAML_BYTES).decode("utf-8-sig"))
    except OSError as flaw:
        raise Trouble(f"{path} cannot be read ({flaw.strerror}): name a file of events") from flaw
    except UnicodeDecodeError as flaw:
        raise Trouble(f"{path} is not UTF-8 text: write it as docs/events.md says") from flaw
    except ValueError as flaw:
        raise Trouble(f"{path}: {flaw}; docs/events.md tells the format") from flaw


def parse(text: str) -> tuple[Event, ...]:
    """The events of a text with the shipped ones, oldest first; ValueError says which event is wrong, and how.

    An event with the name of a shipped one takes its place.

    >>> [event.name for event in parse("{shipped: false, events: [{event: new_client, date: 2026-09-01}]}")]
    ['new_client']
    """
    value = _mapping(yamltext.values(text), "the file", {"events", "shipped"})
    rows = value.get("events", [])
    if not isinstance(rows, list):
        raise ValueError("events is not a list")
    own = [_event(row, f"event {number}") for number, row in enumerate(rows, 1)]
    names = [event.name for event in own]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"event {min(twice)} stands there twice")
    shipped = EVENTS if _flag(value.get("shipped", "true")) else ()
    kept = (event for event in shipped if event.name not in names)
    return tuple(sorted((*kept, *own), key=lambda event: (event.start, event.name)))


def _mapping(value: Any, what: str, known: set[str] | frozenset[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is not a mapping")
    strange = [name for name in value if name not in known]
    if strange:
        raise ValueError(f"{what} has the unknown field {strange[0]!r}: write {', '.join(sorted(known))}")
    return value


def _event(row: Any, what: str) -> Event:
    said = _mapping(row, what, _FIELDS)
    name = _word(said, "event", _NAME, f"{what}: event is a name of letters, digits, '_', '-' and '.'")
    if name is None:
        raise ValueError(f"{what} has no name")
    start, end = _moment(said.get("date"), name)
    effect = said.get("effect", "caveat")
    if effect not in set(Effect):
        raise ValueError(f"{name}: effect is {' or '.join(Effect)}, not {effect!r}")
    pull = _word(said, "pull", _NUMBER, f"{name}: pull is the number of a pull request")
    commit = _word(said, "commit", _COMMIT, f"{name}: commit is 7 to 64 hexadecimal digits")
    return Event(
        name=name,
        start=start,
        end=end,
        effect=Effect(effect),
        metrics=_texts(said.get("metrics", "*"), f"{name}: metrics"),
        series=_selected(said.get("series", {}), name),
        pull=int(pull) if pull else None,
        commit=commit,
    )


def _word(said: dict[str, Any], field: str, form: re.Pattern[str], wanted: str) -> str | None:
    value = said.get(field)
    if value is not None and not (isinstance(value, str) and form.fullmatch(value)):
        raise ValueError(f"{wanted}, not {value!r}")
    return value


def _moment(value: Any, name: str) -> Span:
    """A whole day, or one moment; a moment without a zone is UTC."""
    wanted = f"{name}: date is YYYY-MM-DD, or a moment as 2026-09-01T14:03:00Z"
    if not isinstance(value, str):
        raise ValueError(wanted)
    try:
        if len(value) == len("YYYY-MM-DD"):
            day = date.fromisoformat(value)
            start = datetime(day.year, day.month, day.day, tzinfo=UTC)
            return start, start + DAY
        moment = datetime.fromisoformat(value)
        at = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(wanted) from None
    return at, at


def _selected(value: Any, name: str) -> tuple[tuple[str, frozenset[str]], ...]:
    asked = _mapping(value, f"{name}: series", set(SELECTORS))
    return tuple((field, frozenset(_texts(fit, f"{name}: {field}"))) for field, fit in asked.items())


def _texts(value: Any, what: str) -> tuple[str, ...]:
    """One word or a list of them."""
    words = value if isinstance(value, list) else [value]
    if not words or any(not isinstance(word, str) or not word for word in words):
        raise ValueError(f"{what} is a word or a list of words")
    return tuple(words)


def _flag(value: Any) -> bool:
    if value not in ("true", "false"):
        raise ValueError(f"shipped is true or false, not {value!r}")
    return bool(value == "true")
