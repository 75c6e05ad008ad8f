"""What every page has around its words: one file that loads nothing, all languages with a switch, its own policy.

A policy in the page forbids every script but the page's own, and any request.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from string import Template
from types import MappingProxyType

from reports import escapes
from reports.language import LANGUAGES, Language, Value

PARTS = Path(__file__).parent / "templates"

EARLY = 'document.documentElement.setAttribute("data-on", "")'
"""Runs before anything is drawn: without scripts all languages are shown, with them one."""

_NAMES: Mapping[str, str] = MappingProxyType({"en": "English", "zh": "简体中文"})
"""Each language by its own name."""


def sheet(title: Value, said: Callable[[str], str], lang: str = "en") -> str:
    """A page of words alone: `said` gives the HTML of a language. `lang` is the one that it opens in."""
    return framed(
        "sheet.html",
        "switch.js",
        Language(opening(lang)).say(title, escapes.clean),
        lang,
        buttons="".join(button(code, Language(code).say(title, escapes.clean)) for code in LANGUAGES),
        said="".join(block(said(code), code) for code in LANGUAGES),
    )


def framed(body: str, script: str, title: str, lang: str, **parts: str) -> str:
    """A page: a template of its body with its parts (HTML), a script, and its title as text."""
    code, style = part(script), part("page.css")
    return Template(part("frame.html")).substitute(
        lang=opening(lang),
        policy=policy((EARLY, code), style),
        title=escapes.html(title),
        early=EARLY,
        style=style,
        script=code,
        body=Template(part(body)).substitute(parts),
    )


def opening(lang: str) -> str:
    """The language that a page opens in: one of its own, whatever was asked for.

    >>> opening("zh"), opening("both")
    ('zh', 'en')
    """
    return lang if lang in LANGUAGES else LANGUAGES[0]


def part(name: str) -> str:
    """A file of the templates."""
    return (PARTS / name).read_text(encoding="utf-8")


def policy(scripts: Iterable[str], style: str) -> str:
    """What a browser may do with a page: run these scripts, use this style, load nothing."""
    allowed = " ".join(map(_digest, scripts))
    return f"default-src 'none'; script-src {allowed}; style-src {_digest(style)}; base-uri 'none'; form-action 'none'"


def _digest(text: str) -> str:
    """The name of an inline script or style in a Content Security Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def tag(code: str) -> str:
    """A language as HTML names it.

    >>> tag("en")
    'en'
    """
    return Language(code).text("en")


def button(code: str, title: str = "") -> str:
    """The button that shows a language; `title` is the page's in it, where the page's script does not know it."""
    named = f' data-title="{escapes.html(title)}"' if title else ""
    return (
        f'<button type="button" data-to="{code}" lang="{tag(code)}"{named} aria-pressed="false">{_NAMES[code]}</button>'
    )


def block(said: str, code: str) -> str:
    """The words of a page in one language."""
    return f'<div class="said" data-lang="{code}" lang="{tag(code)}">\n{said}</div>\n'
