"""Builds the page of a week: one file that needs no network, in all languages, each number with its run."""

from __future__ import annotations

from reports import render, shell, weekwords
from reports.week import WeekFacts


def build(told: WeekFacts, lang: str = "en") -> str:
    """The page as HTML text; `lang` is the language it opens in."""
    return shell.sheet(weekwords.headline(told), lambda code: render.render(told, "week_page", code), lang)
