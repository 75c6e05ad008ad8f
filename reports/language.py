"""Says a phrase in a language: gettext catalogs of whole sentences, values put in as they are.

English is the text of the message ids; every other language is a catalog in `reports/locale`. A value is never
translated and never changed, so every language carries the same numbers, identifiers and links.
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TypeAlias

DOMAIN = "reports"
LOCALE = Path(__file__).parent / "locale"
CATALOGS = {"zh": "zh_CN"}
"""Languages with a catalog, by the name a user gives."""
LANGUAGES = ("en", *CATALOGS)
BILINGUAL = ("en", "zh")
"""The two halves of a text in `both`, in the order that the conventions of InferenceX ask for."""

Value: TypeAlias = "str | Phrase"
Escape: TypeAlias = Callable[[str], str]

_SLOT = re.compile(r"%\((\w+)\)s")
_HAN = r"\u3007\u3400-\u4dbf\u4e00-\u9fff"
_WIDE = r"\u2014\u2018-\u201d\u2026\u3000-\u3006\u3008-\u303f\uff00-\uffef"
"""Full-width punctuation: it carries its own space."""
_ENDS_HAN = re.compile(rf"[{_HAN}][*`\\]*$")
_ENDS_WIDE = re.compile(rf"[{_WIDE}][*`\\]*$")
_ENDS_WORD = re.compile(r"[^\W\u3400-\u9fff][*`\\]*$|[%+)\]><}×°][*`\\]*$")
_STARTS_HAN = re.compile(rf"^[*`\\]*[{_HAN}]")
_STARTS_WIDE = re.compile(rf"^[*`\\]*[{_WIDE}]")
_STARTS_WORD = re.compile(r"^[*`\\]*[^\W\u3400-\u9fff]|^[*`\\]*[-+~(<\[{@#$&]")


def N_(msgid: str) -> str:  # noqa: N802 - the name that catalog tools look for
    """Mark a message id for the catalogs without translating it."""
    return msgid


@dataclass(frozen=True, slots=True)
class Phrase:
    """A sentence or clause of the catalogs with its values; a value may be a phrase itself."""

    msgid: str
    values: tuple[tuple[str, Value], ...] = ()


def phrase(msgid: str, **values: Value) -> Phrase:
    """A phrase with values by name; a number must have been made a text by `reports.numbers` first.

    >>> phrase("%(number)s of %(total)s", number="2", total="12").values
    (('number', '2'), ('total', '12'))
    """
    for name, value in values.items():
        if not isinstance(value, str | Phrase):
            raise TypeError(f"{name} of {msgid!r} must be text from a number filter, not {value!r}")
    return Phrase(msgid, tuple(values.items()))


def listing(parts: list[Value]) -> Value:
    """Join the items of a list; nothing for no parts.

    >>> Language("en").say(listing(["a", "b", "c"]))
    'a, b, c'
    """
    if not parts:
        return ""
    *head, last = parts
    return phrase(N_("%(first)s, %(next)s"), first=listing(head), next=last) if head else last


def clauses(parts: list[Value]) -> Value:
    """Join clauses inside a sentence.

    >>> Language("en").say(clauses(["p = 0.030", "runs 3 against 1"]))
    'p = 0.030; runs 3 against 1'
    """
    if not parts:
        return ""
    *head, last = parts
    return phrase(N_("%(first)s; %(next)s"), first=clauses(head), next=last) if head else last


def sentences(parts: Sequence[Value]) -> Value:
    """Put sentences one after another, with the blank that the language has between them."""
    if not parts:
        return ""
    *head, last = parts
    return phrase(N_("%(sentence)s %(next)s"), sentence=sentences(head), next=last) if head else last


def slots(msgid: str) -> tuple[str, ...]:
    """Names of the values that a message needs.

    >>> slots("%(number)s of %(total)s, 95%% sure")
    ('number', 'total')
    """
    return tuple(_SLOT.findall(msgid))


def _as_is(text: str) -> str:
    return text


@dataclass(frozen=True, slots=True)
class Language:
    """A language of the reports: `en`, or one with a catalog."""

    code: str

    def text(self, msgid: str) -> str:
        """The catalog's text for a message id, values not yet put in."""
        return _catalog(self.code).gettext(msgid) if msgid else ""

    def say(self, value: Value, escape: Escape = _as_is) -> str:
        """The words of a phrase; values are escaped for the format they enter, the catalog's own words are not."""
        if isinstance(value, str):
            return escape(value)
        filled = {name: self.say(part, escape) for name, part in value.values}
        parts = _parts(self.code, value.msgid)
        pieces = [filled[part] if is_slot else part for part, is_slot in parts]
        return _join_spaced(pieces) if self.code in CATALOGS else "".join(pieces)


@lru_cache(maxsize=4096)
def _parts(code: str, msgid: str) -> tuple[tuple[str, bool], ...]:
    """A message of a language as literals and names of values (True), in turn."""
    text, at = Language(code).text(msgid), 0
    parts: list[tuple[str, bool]] = []
    for found in _SLOT.finditer(text):
        parts += [(text[at : found.start()].replace("%%", "%"), False), (found.group(1), True)]
        at = found.end()
    return (*parts, (text[at:].replace("%%", "%"), False))


def _join_spaced(pieces: list[str]) -> str:
    """One space between Han and Latin at the edges of a value, none between two Han or beside full-width marks.

    A catalog cannot know whether a value ("P99 TTFT", "每 GPU 吞吐量") begins or ends with a Han character.
    """
    text = ""
    for piece in filter(None, pieces):
        text = _meet(text, piece) if text else piece
    return text


def _meet(left: str, right: str) -> str:
    bare_left, bare_right = left.rstrip(" "), right.lstrip(" ")
    if not bare_left or not bare_right or "\n" in (left[-1], right[0]):
        return left + right
    if _ENDS_WIDE.search(bare_left) or _STARTS_WIDE.match(bare_right):
        return bare_left + bare_right
    han = (bool(_ENDS_HAN.search(bare_left)), bool(_STARTS_HAN.match(bare_right)))
    if all(han):
        return bare_left + bare_right
    mixed = (han[0] and _STARTS_WORD.match(bare_right)) or (han[1] and _ENDS_WORD.search(bare_left))
    return f"{bare_left} {bare_right}" if mixed else left + right


@cache
def _catalog(code: str) -> gettext.NullTranslations:
    if code not in CATALOGS:
        return gettext.NullTranslations()
    return gettext.translation(DOMAIN, LOCALE, [CATALOGS[code]])
