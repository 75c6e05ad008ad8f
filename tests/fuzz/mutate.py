"""Changes of an input: of bytes with the words of its format, or of one value inside a JSON document."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 64, 2**31, 2**63, 10**30, 0.0, -0.0, 1e308, 5e-324, float("nan"), float("inf")),
    *("", " ", "0", "1e5", "NaN", "None", "true", "none", "\u0000", "\ud800", "\u202e", "\u212a", "\u0430", "６４"),
    *("../x", "{{7*7}}", "'; DROP TABLE points; --", "=cmd()", "9" * 400, "a" * 300, "2026-06-14T00:00:00Z"),
    *("0001-01-01T00:00:00+14:00", "9999-12-31", "a/b:v" + "9" * 5000 + ".1", [], {}, [[]], [None], {"": None}),
)


def json_value(data: bytes, rng: random.Random) -> bytes | None:
    """The document with one value replaced, dropped, doubled or moved; None where it is no JSON."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    places = list(_places(value))
    if not places:
        return json.dumps(rng.choice(ODD)).encode()
    holder, key = rng.choice(places)
    rng.choice(_CHANGES)(holder, key, rng, places)
    try:
        return json.dumps(value).encode()
    except (ValueError, RecursionError):
        return None


def _places(value: Any, depth: int = 0) -> Any:
    keys: Sequence[Any] = (
        list(value) if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0)
    )
    for key in keys:
        yield value, key
        if depth < 12:
            yield from _places(value[key], depth + 1)


def _odd(holder: Any, key: Any, rng: random.Random, _: Any) -> None:
    holder[key] = rng.choice(ODD)


def _drop(holder: Any, key: Any, _: random.Random, __: Any) -> None:
    del holder[key]


def _move(holder: Any, key: Any, rng: random.Random, places: Any) -> None:
    other, name = rng.choice(places)
    if (isinstance(other, dict) and name in other) or (isinstance(other, list) and name < len(other)):
        holder[key] = json.loads(json.dumps(other[name]))


def _rename(holder: Any, key: Any, rng: random.Random, places: Any) -> None:
    names = [name for _, name in places if isinstance(name, str)]
    if isinstance(holder, dict) and names:
        holder[rng.choice(names)] = holder.pop(key)


def _double(holder: Any, key: Any, rng: random.Random, _: Any) -> None:
    if isinstance(holder, list):
        holder.insert(key, json.loads(json.dumps(holder[key])))
    else:
        holder[key] = [holder[key], holder[key]]


def _text(holder: Any, key: Any, rng: random.Random, _: Any) -> None:
    holder[key] = f"{holder[key]}"[:40] + rng.choice(("", " ", "_0", "-x", ".5", "\u200b", "\n"))


_CHANGES: tuple[Callable[..., None], ...] = (_odd, _odd, _odd, _drop, _move, _rename, _double, _text)


def blind(data: bytes, words: Sequence[str], rng: random.Random) -> bytes:
    """A few changes of bytes without any guide: what the suite does where no search runs."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(out) + 1)
        kind = rng.randrange(5)
        if kind == 0 and out:
            out[min(at, len(out) - 1)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del out[at : at + rng.randrange(1, 9)]
        elif kind == 2:
            out[at:at] = rng.choice(words or ("x",)).encode("utf-8", "surrogatepass")
        elif kind == 3:
            end = min(len(out), at + rng.randrange(1, 33))
            out[at:at] = out[at:end]
        else:
            out[at:at] = rng.randbytes(rng.randrange(1, 4))
    return bytes(out)
