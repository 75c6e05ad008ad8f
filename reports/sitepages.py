"""Builds the pages of a served store beside comparisons and weeks, as one file each that loads nothing."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from reports import render, shell
from reports.language import N_, Phrase
from reports.site import Index, Notice

TITLE = Phrase(N_("Runs and weeks of the store"))

NOTICES: Mapping[int, Notice] = MappingProxyType(
    {
        status: Notice(Phrase(title), Phrase(said))
        for status, title, said in (
            (
                400,
                N_("The request cannot be understood"),
                N_("Open the address that `tracker serve` has printed, by the same name."),
            ),
            (
                404,
                N_("There is no such page"),
                N_("The store holds no such run or week, or the address is none of its pages."),
            ),
            (
                405,
                N_("The pages can only be read"),
                N_("Nothing can be changed here: the store is changed by `tracker ingest` and its like."),
            ),
            (
                500,
                N_("The page could not be made"),
                N_("The reason stands in the terminal in which `tracker serve` runs."),
            ),
            (
                503,
                N_("The store is being written"),
                N_("No quiet moment was found to read it. Load the page again when the landing is done."),
            ),
        )
    }
)
"""What is said in the place of a page, by HTTP status."""


def index(listed: Index, lang: str = "en") -> str:
    """The list of all weeks and runs; `lang` is the language it opens in."""
    return shell.sheet(TITLE, lambda code: render.render(listed, "site_index", code), lang)


def notice(status: int, lang: str = "en") -> str:
    """The page that stands in the place of one that there is not."""
    told = NOTICES[status]
    return shell.sheet(told.title, lambda code: render.render(told, "site_notice", code), lang)
