"""Sign-offs of code owners: which comment or review is one, which runs it names, which items of the checklist it has.

A reminder of a bot quotes the phrase inside a sentence, and a reply quotes it behind `>`; a sign-off begins a line with
it. Every text here is a stranger's and decides nothing by what it claims.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from store.runs import parse_time

CHECKLIST = "docs/PR_REVIEW_CHECKLIST.md"

_PHRASE = re.compile(r"^[ \t*_]*As a PR reviewer and CODEOWNER, I have reviewed this and have", re.MULTILINE)
_ITEM = re.compile(r"^(?P<indent>[ \t]*)[-*+•][ \t]+(?:\[(?P<box>[ xX])\][ \t]*)?(?P<text>\S.*)$", re.MULTILINE)
_DETAILS = re.compile(r"^[ \t#*_]*additional detail", re.MULTILINE | re.IGNORECASE)
_RUN = re.compile(
    r"\bRun Sweep[ \t]*\[?(?P<named>[1-9]\d{5,17})\b|/actions/runs/(?P<linked>[1-9]\d{5,17})\b", re.IGNORECASE
)
_LINK = re.compile(r"\[([^\[\]\n]*)\]\([^)\s]*\)")
_REQUEST = re.compile(r"\bplease\b[^.]*\.?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SignOff:
    """A comment or review of a person that begins with the phrase."""

    login: str
    association: str
    created_at: datetime
    url: str
    body: str

    @property
    def runs(self) -> tuple[int, ...]:
        """The runs that it names, in the order of the text."""
        found = (int(one["named"] or one["linked"]) for one in _RUN.finditer(self.body))
        return tuple(dict.fromkeys(found))

    @property
    def items(self) -> tuple[Item, ...]:
        """The list before the additional details."""
        return items(_DETAILS.split(_PHRASE.split(self.body, maxsplit=1)[-1], maxsplit=1)[0])


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a checklist; `checked` is None where it has no box."""

    text: str
    checked: bool | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """How a sign-off departs from the checklist."""

    missing: tuple[str, ...]
    reworded: tuple[str, ...]
    """Their first sentence stands there, what follows it differs."""
    unchecked: tuple[str, ...]


def find(comments: Iterable[Mapping[str, Any]], reviews: Iterable[Mapping[str, Any]] = ()) -> SignOff | None:
    """The newest sign-off of a person; a dismissed review is none.

    >>> said = {"user": {"login": "ann", "type": "User"}, "created_at": "2026-06-01T00:00:00Z"}
    >>> text = "As a PR reviewer and CODEOWNER, I have reviewed this and have:"
    >>> [find([said | {"body": body}]) is not None for body in (text, f"Please write {text}", f"> {text}")]
    [True, False, False]
    """
    standing = (one for one in reviews if one.get("state") != "DISMISSED")
    found = (_signed(one) for one in (*comments, *standing))
    return max((one for one in found if one), key=lambda one: one.created_at, default=None)


def _signed(told: Mapping[str, Any]) -> SignOff | None:
    body, user, moment = (
        str(told.get("body") or ""),
        told.get("user"),
        told.get("created_at") or told.get("submitted_at"),
    )
    if not _PHRASE.search(body) or not isinstance(user, Mapping) or not isinstance(moment, str):
        return None
    login = str(user.get("login") or "")
    if user.get("type") == "Bot" or login.endswith("[bot]"):
        return None
    association = str(told.get("author_association") or "NONE")
    return SignOff(login, association, parse_time(moment), str(told.get("html_url") or ""), body)


def items(text: str) -> tuple[Item, ...]:
    r"""The items of a list, those of lists inside it too.

    >>> items("- [x] Passed.\n  - [ ] Linked\n* Plain\n")
    (Item(text='Passed.', checked=True), Item(text='Linked', checked=False), Item(text='Plain', checked=None))
    """
    return tuple(Item(one["text"].strip(), _box(one["box"])) for one in _ITEM.finditer(text))


def _box(mark: str | None) -> bool | None:
    return None if mark is None else mark != " "


def template(text: str) -> tuple[Item, ...]:
    """The items that a checklist file asks for: those behind the phrase, up to the additional details or a fence."""
    parts = _PHRASE.split(text)
    if len(parts) < 2:
        return ()
    return items(re.split(r"^```", _DETAILS.split(parts[-1], maxsplit=1)[0], maxsplit=1, flags=re.MULTILINE)[0])


def compare(wanted: Sequence[Item], said: Sequence[Item]) -> Difference:
    """Which items are not there or say something else. What an item asks to fill in may be filled in."""
    there = [(_bare(one.text), one) for one in said]
    missing: list[str] = []
    reworded: list[str] = []
    unchecked: list[str] = []
    for item in wanted:
        core = _bare(_REQUEST.sub("", _unlinked(item.text)))
        whole = next((one for text, one in there if text.startswith(core)), None)
        first = next((one for text, one in there if text.startswith(_first(core))), None)
        if whole is None:
            (missing if first is None else reworded).append(item.text)
        found = whole or first
        if found is not None and found.checked is False:
            unchecked.append(item.text)
    return Difference(tuple(missing), tuple(reworded), tuple(unchecked))


def _unlinked(text: str) -> str:
    """The words of links without their addresses, which a rendered comment no longer shows."""
    return _LINK.sub(r"\1", text)


def _bare(text: str) -> str:
    """Words alone: no markup, one blank between two, no case."""
    return " ".join(re.sub(r"[*_`\\]", "", _unlinked(text)).split()).casefold().rstrip(" .:")


def _first(core: str) -> str:
    return next(_sentences(core))


def _sentences(text: str) -> Iterator[str]:
    yield from re.split(r"(?<=[a-z0-9)])[.:](?:\s|$)", text)
