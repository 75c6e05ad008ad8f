"""Bytes to JSON values: fast where the text is strict, forgiving where Python's own writers were not."""

from __future__ import annotations

import json
from dataclasses import dataclass

import msgspec

_BOM = b"\xef\xbb\xbf"
_SPACE = " \t\r\n"
_ENCODER = msgspec.json.Encoder()


class Unreadable(ValueError):
    """A file or a part of one that cannot be read; `reason` is a code of the catalogs."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Decoded:
    """A JSON value, and what stood after its readable part (only of an array that breaks off)."""

    value: object
    flaw: Unreadable | None = None


def decode(content: bytes) -> Decoded:
    """The JSON value of a file; `Unreadable` where there is none.

    NaN, Infinity, a byte order mark, UTF-16 and stray bytes are read; of a broken array the members before the break.

    >>> decode(b'[1, NaN, 2').value, decode(b'[1, {"a"').flaw.reason
    ([1, nan], 'malformed_json')
    """
    try:
        return Decoded(msgspec.json.decode(content.removeprefix(_BOM)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _forgive(_text(content))


def text_of(value: object) -> str:
    """A value as strict JSON text: what is not finite becomes null, which a caveat of its row names."""
    try:
        return _ENCODER.encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return ""


def _text(content: bytes) -> str:
    encoding = json.detect_encoding(content)
    return content.decode(encoding, "replace").removeprefix("\ufeff").replace("\x00", "\ufffd")


def _forgive(text: str) -> Decoded:
    decoder = json.JSONDecoder(parse_int=_whole)
    try:
        return Decoded(_without_surrogates(decoder.decode(text)))
    except RecursionError:
        raise Unreadable("malformed_json", "nested too deep") from None
    except ValueError as flaw:
        return _salvage(decoder, text, flaw)


def _salvage(decoder: json.JSONDecoder, text: str, flaw: ValueError) -> Decoded:
    """Members of an array up to the one that cannot be read. An object that breaks off says nothing for sure."""
    start = len(text) - len(text.lstrip(_SPACE))
    if text[start : start + 1] != "[":
        raise Unreadable("malformed_json", str(flaw))
    members: list[object] = []
    try:
        _collect(decoder, text, start + 1, members)
    except (ValueError, RecursionError) as broken:
        flaw = broken if isinstance(broken, ValueError) else flaw
    return Decoded(_without_surrogates(members), Unreadable("malformed_json", str(flaw)))


def _collect(decoder: json.JSONDecoder, text: str, at: int, members: list[object]) -> None:
    while True:
        member, end = decoder.raw_decode(text, at + _blank(text, at))
        end += _blank(text, end)
        if text[end : end + 1] not in {",", "]"}:
            raise json.JSONDecodeError("Expecting ',' delimiter", text, end)
        members.append(member)
        if text[end] == "]":
            raise json.JSONDecodeError("Extra data", text, end + 1)
        at = end + 1


def _blank(text: str, at: int) -> int:
    end = at
    while text[end : end + 1] and text[end] in _SPACE:
        end += 1
    return end - at


def _whole(digits: str) -> int | float:
    """An integer; beyond 18 digits no field of ours is one, and Python refuses more than 4300."""
    return int(digits) if len(digits) <= 18 else float(digits)


def _without_surrogates(value: object) -> object:
    """Half a surrogate pair cannot be written as UTF-8 again, so it is replaced where one is found."""
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    return value
