"""Titles, sentences and tables, laid out as Markdown or as plain text: for reports that are lists of such blocks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from reports import escapes
from reports.language import BILINGUAL, Language, Value

_ADDRESS = re.compile(r"https://[\w.-]+/[\w./:#?=&%+~@-]*", re.ASCII)
"""An address that ends no link of Markdown and holds no blank; any other one is left out."""


@dataclass(frozen=True, slots=True)
class Linked:
    """Words with the address where it can be looked up."""

    said: Value
    url: str

    @property
    def address(self) -> str:
        return self.url if _ADDRESS.fullmatch(self.url) else ""


@dataclass(frozen=True, slots=True)
class Several:
    """Facts of one cell, each on a line of its own where the form has lines in a cell."""

    parts: tuple[Value | Linked, ...]


Cell: TypeAlias = "Value | Linked | Several"


@dataclass(frozen=True, slots=True)
class Title:
    said: Value
    level: int = 2


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence, or one item of a list; `depth` sets it in below the one before."""

    said: Value | Linked
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under heads; the columns from `numbers` on stand to the right."""

    heads: tuple[Value, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numbers: int = 1


Block: TypeAlias = Title | Said | Table


def render(blocks: Sequence[Block], form: str, lang: str) -> str:
    """The blocks in `markdown` or `table` (plain text), in `en`, `zh` or `both`."""
    codes = BILINGUAL if lang == "both" else (lang,)
    rule = "\n---\n\n" if form == "markdown" else "\n"
    return rule.join(_FORMS[form](blocks, Language(code)) for code in codes)


def _markdown(blocks: Sequence[Block], language: Language) -> str:
    return "\n\n".join(_markdown_block(block, language) for block in blocks) + "\n"


def _markdown_block(block: Block, language: Language) -> str:
    def say(value: Cell) -> str:
        if isinstance(value, Several):
            return "<br>".join(map(say, value.parts))
        if isinstance(value, Linked):
            said = language.say(value.said, escapes.markdown)
            return f"[{said}]({value.address})" if value.address else said
        return language.say(value, escapes.markdown)

    if isinstance(block, Title):
        return f"{'#' * block.level} {say(block.said)}"
    if isinstance(block, Said):
        return f"{'  ' * (block.depth - 1)}- {say(block.said)}" if block.depth else say(block.said)
    aligned = ["---" if place < block.numbers else "---:" for place in range(len(block.heads))]
    lines = [list(map(say, block.heads)), aligned, *(list(map(say, row)) for row in block.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _plain(blocks: Sequence[Block], language: Language) -> str:
    return "\n".join(line for block in blocks for line in _plain_block(block, language)) + "\n"


def _plain_block(block: Block, language: Language) -> list[str]:
    def say(value: Cell) -> str:
        if isinstance(value, Several):
            return "; ".join(map(say, value.parts))
        if isinstance(value, Linked):
            return f"{language.say(value.said, escapes.plain)} {value.address}".rstrip()
        return language.say(value, escapes.plain)

    if isinstance(block, Title):
        return ["", say(block.said)]
    if isinstance(block, Said):
        return [f"{'  ' * (block.depth + 1)}{say(block.said)}"]
    rows = [list(map(say, row)) for row in (block.heads, *block.rows)]
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    return ["  " + _line(row, widths, block.numbers) for row in rows]


def _line(row: Sequence[str], widths: Sequence[int], numbers: int) -> str:
    cells = []
    for place, (cell, wide) in enumerate(zip(row, widths, strict=True)):
        blank = " " * (wide - width(cell))
        cells.append(blank + cell if place >= numbers else cell + blank)
    return "  ".join(cells).rstrip()


def width(text: str) -> int:
    """Columns of a terminal that a text takes.

    >>> width("abc"), width("镜像")
    (3, 4)
    """
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


_FORMS: Mapping[str, Callable[[Sequence[Block], Language], str]] = MappingProxyType(
    {"markdown": _markdown, "table": _plain}
)
