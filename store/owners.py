"""CODEOWNERS as GitHub reads it: which line owns a path, and whom it names.

The last matching line wins and owners do not add up. Patterns are gitignore's without negation, character ranges and an
escaped `#`; a line with one of those, or with an owner that is none, is skipped, as GitHub skips it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

PLACES = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")
"""Where GitHub looks, in this order; the first one counts."""
LARGEST = 3 * 1024**2
"""A file of more bytes is not loaded by GitHub."""

_OWNER = re.compile(r"@[\w.-]+(?:/[\w.-]+)?|[^\s@]+@[^\s@]+\.[^\s@]+")
_WORDS = re.compile(r"(?:\\.|[^\s\\])+")


@dataclass(frozen=True, slots=True)
class Rule:
    """One line: `owners` as they stand (`@login`, `@org/team`, an address); none of them takes the path from all."""

    line: int
    pattern: str
    owners: tuple[str, ...]

    @property
    def is_catch_all(self) -> bool:
        """True for a line that owns every path."""
        return self.pattern.lstrip("/") in {"*", "**"}

    @property
    def people(self) -> frozenset[str]:
        """Logins, in lower case: GitHub does not tell them apart by case."""
        return frozenset(owner[1:].lower() for owner in self.owners if owner.startswith("@") and "/" not in owner)

    @property
    def others(self) -> tuple[str, ...]:
        """Teams and addresses: who is behind them stands elsewhere."""
        return tuple(owner for owner in self.owners if not owner.startswith("@") or "/" in owner)

    def owns(self, path: str) -> bool:
        return _matcher(self.pattern).fullmatch(path) is not None


@dataclass(frozen=True, slots=True)
class CodeOwners:
    """The lines of one file that GitHub reads."""

    path: str
    rules: tuple[Rule, ...]

    def of(self, path: str) -> Rule | None:
        """The line that decides about a path; None where none does."""
        return next((rule for rule in reversed(self.rules) if rule.owns(path)), None)

    @property
    def people(self) -> frozenset[str]:
        return frozenset().union(*(rule.people for rule in self.rules))


def parse(text: str, path: str = PLACES[0]) -> CodeOwners:
    r"""The rules of a file.

    >>> found = parse("* @org/core\n*.js @Ann # scripts\n/docs/* bob@example.org\n![a] @eve\n")
    >>> [found.of(path).line for path in ("a/b.js", "docs/a.md", "docs/b/c.md")], found.people
    ([2, 3, 1], frozenset({'ann'}))
    """
    return CodeOwners(path, tuple(_rules(text)))


def _rules(text: str) -> Iterator[Rule]:
    for number, line in enumerate(text.splitlines(), 1):
        pattern, *owners = _words(line) or [""]
        if pattern and _is_valid(pattern) and all(map(_OWNER.fullmatch, owners)):
            yield Rule(number, pattern, tuple(owners))


def _words(line: str) -> list[str]:
    """The words before a comment; a blank behind a backslash parts none."""
    words = _WORDS.findall(line)
    comment = next((place for place, word in enumerate(words) if word.startswith("#")), len(words))
    return words[:comment]


def _is_valid(pattern: str) -> bool:
    return not (pattern.startswith(("!", "\\#")) or re.search(r"(?<!\\)[\[\]]", pattern) or pattern.strip("/") == "")


@lru_cache(maxsize=4096)
def _matcher(pattern: str) -> re.Pattern[str]:
    """A pattern with a slash before its end starts at the root; one that names a folder owns all below it."""
    parts = pattern.strip("/").split("/")
    is_rooted = "/" in pattern.rstrip("/")
    head = "" if is_rooted else "(?:.*/)?"
    # `docs/*` owns the files of that folder alone: here GitHub departs from gitignore.
    is_closed = parts[-1] in {"*", "**"} and len(parts) > 1
    tail = "/.*" if pattern.endswith("/") else "" if is_closed else "(?:/.*)?"
    return re.compile(head + _joined(parts) + tail, re.DOTALL)


def _joined(parts: list[str]) -> str:
    text = ""
    for place, part in enumerate(parts):
        is_last = place == len(parts) - 1
        if part == "**":
            text += ".*" if is_last else "(?:.*/)?"
        else:
            text += _segment(part) + ("" if is_last else "/")
    return text


def _segment(part: str) -> str:
    """One name of a path; several stars in a row say what one says, but would take long to fail."""
    tokens = re.findall(r"\\.|\*+|\?|[^\\*?]", part)
    special = {"?": "[^/]"}
    return "".join("[^/]*" if one[0] == "*" else special.get(one) or re.escape(one[-1]) for one in tokens)
