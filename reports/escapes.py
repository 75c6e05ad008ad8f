"""Makes a foreign text harmless in the format it enters: Markdown on GitHub, HTML, YAML, a plain line, a CSV cell.

Every name, image and path of a report comes from files that others wrote. None of them may break a cell, notify a
person, start a bot, or become a link of ours.
"""

from __future__ import annotations

import html as stdlib_html
import json
import re
import unicodedata
from functools import lru_cache

LONGEST = 300
"""Characters of one value that a document shows: names of ours are shorter, and no value may fill a document."""

_MARK = "\u200b"
"""Zero-width space: breaks a word that a machine looks for, and no human sees it."""

_SPECIAL = re.compile(r"([\\`*\[\]>|~&$#]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|<(?=[A-Za-z/!?]|$)|!(?=\[|$))")
"""What Markdown or GitHub reads as markup; inside a word a `_` is none, and a `<` before a digit is only a sign."""
_DEFUSED = (
    (re.compile(r"@(?!(?<=[A-Za-z0-9]@)sha256:[0-9a-f]{12})"), f"@{_MARK}"),
    (re.compile(r"\b(https?|ftps?|mailto|xmpp):", re.IGNORECASE), rf"\1{_MARK}:"),
    (re.compile(r"\b(www)\.", re.IGNORECASE), rf"\1{_MARK}."),
    (re.compile(r"#(?=\d)"), f"#{_MARK}"),
    (re.compile(r"\b(GH)-(?=\d)", re.IGNORECASE), rf"\1{_MARK}-"),
    (re.compile(r"/(?=reuse-sweep-run|stage-results)", re.IGNORECASE), f"/{_MARK}"),
    (re.compile(r"(as a pr reviewer and code)(?=owner)", re.IGNORECASE), rf"\1{_MARK}"),
)
"""Mentions, links, references, and the phrases that start other bots. The digest of an image stays copyable."""

_FORMULA = re.compile(r"^\s*[=+\-@\t\r]")


@lru_cache(maxsize=65536)
def clean(text: str) -> str:
    r"""One line of visible text: blanks for line breaks; what nobody sees, or what turns the direction, as its escape.

    Left out it would make two names look as one.

    >>> print(clean("a\r\nb\x1b[31m\u202ec"))
    a  b\x1b[31m\u202ec
    """
    head = text[: LONGEST + 1]
    shown = head if head.isascii() and head.isprintable() else "".join(map(_visible, head))
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"


_BREAKS = frozenset("\t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0")
"""Letters, marks and signs by their category that no font draws."""


def _visible(char: str) -> str:
    if char in _BREAKS:
        return " "
    if unicodedata.category(char) not in _UNSEEN and char not in _BLANK_LETTERS:
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def defuse(text: str) -> str:
    r"""No mention, no link, no reference, no command: for any text that GitHub will read.

    >>> defuse("@claude a/b:v1@sha256:0123456789ab").replace("\u200b", "|")
    '@|claude a/b:v1@sha256:0123456789ab'
    """
    for pattern, harmless in _DEFUSED:
        text = pattern.sub(harmless, text)
    return text


@lru_cache(maxsize=65536)
def markdown(text: str) -> str:
    r"""Text that shows as itself in any place of a GitHub comment, a table cell included.

    >>> markdown("a|b *c*"), markdown(" lead")
    ('a\\|b \\*c\\*', '&#32;lead')
    """
    escaped = _SPECIAL.sub(r"\\\1", defuse(clean(text)))
    head, tail = len(escaped) - len(escaped.lstrip(" ")), len(escaped) - len(escaped.rstrip(" "))
    if head == len(escaped):
        return "&#32;" * head
    return "&#32;" * head + escaped[head : len(escaped) - tail] + "&#32;" * tail


def html(text: str) -> str:
    """Text inside an element or a quoted attribute."""
    return markup(clean(text))


def markup(text: str) -> str:
    """The same of a text that is clean already, and may hold marks of `defuse`."""
    return stdlib_html.escape(text, quote=True)


def yaml(text: str) -> str:
    r"""A double-quoted scalar that YAML 1.1 and 1.2 read alike.

    >>> yaml('no: "yes" # 1')
    '"no: \\"yes\\" # 1"'
    """
    return json.dumps(clean(text), ensure_ascii=False)


def plain(text: str) -> str:
    """One line of plain text for a terminal."""
    return clean(text)


def line(text: str) -> str:
    """One line of plain text for GitHub: a title or a commit message, where a mention works as well.

    >>> line("a / b")
    'a/b'
    """
    return re.sub(r"\s+/\s+", "/", defuse(clean(text))).strip()


def markdown_line(text: str) -> str:
    """Markdown inside a line whose halves are parted by a slash between blanks."""
    return markdown(re.sub(r"\s+/\s+", "/", clean(text)).strip())


def csv(text: str) -> str:
    """A cell that no spreadsheet takes for a formula.

    >>> csv("=cmd()"), csv("tp8")
    ("'=cmd()", 'tp8')
    """
    cleaned = clean(text)
    return f"'{cleaned}" if _FORMULA.match(cleaned) else cleaned
