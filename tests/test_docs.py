"""Pages that exist in two languages say the same: blocks, links, numbers, identifiers, rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reports import parity

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(path.name.removesuffix("_zh.md") for path in DOCS.glob("*_zh.md"))
BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def page(name: str) -> str:
    """A page less the line that leads to the other language."""
    return (DOCS / name).read_text(encoding="utf-8").partition("\n")[2]


def test_there_is_a_page_in_two_languages() -> None:
    assert "adopting" in PAGES


@pytest.mark.parametrize("name", PAGES)
def test_both_languages_of_a_page_say_the_same(name: str) -> None:
    english, chinese = page(f"{name}.md"), page(f"{name}_zh.md")
    assert BLOCK.findall(english) == BLOCK.findall(chinese)
    # Chinese pages say PR for a pull request, which is a word here and no identifier.
    prose = BLOCK.sub("", english), re.sub(r"\bPR\b", "合并请求", BLOCK.sub("", chinese))
    assert list(parity.parity(*prose)) == []
    assert len(re.findall("^## ", english, re.MULTILINE)) == len(re.findall("^## ", chinese, re.MULTILINE))


@pytest.mark.parametrize("name", PAGES)
def test_each_language_of_a_page_keeps_its_rules(name: str) -> None:
    assert list(parity.lint_text(page(f"{name}_zh.md"), "zh")) == []
    assert list(parity.lint_text(page(f"{name}.md"), "en")) == []


@pytest.mark.parametrize("name", PAGES)
def test_each_language_leads_to_the_other(name: str) -> None:
    for file in (f"{name}.md", f"{name}_zh.md"):
        first = (DOCS / file).read_text(encoding="utf-8").partition("\n")[0]
        assert first == f"[English]({name}.md) | [简体中文]({name}_zh.md)"


def test_links_between_the_pages_lead_somewhere() -> None:
    for path in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(([\w./-]+\.md)(?:#[\w-]*)?\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), (path.name, target)
