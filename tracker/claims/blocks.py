"""Markdown to passages: sentences and table rows, each with the texts that stand above it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Passage:
    """A half-open range of characters, and the ranges that give it context, nearest first (lead-in, headings)."""

    start: int
    end: int
    above: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """Cells of a table as ranges: header, then rows."""

    header: tuple[tuple[int, int], ...]
    rows: tuple[tuple[tuple[int, int], ...], ...]
    above: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str


_FENCE = re.compile(r"\s{0,3}(?:```|~~~)\s*(\w*)")
_HEADING = re.compile(
    r"\s{0,3}(#{1,6})\s+|\s{0,3}\*\*[^*\n]{1,80}\*\*[:：]?\s*$|[A-Z][A-Za-z ]{1,40}$|[\u4e00-\u9fff]{2,12}$"
)
_BULLET = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?|\s*>\s?")
_RULE_ROW = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。！？]")
_READ_FENCES = frozenset({"", "text", "txt", "md", "markdown"})
_ABBREVIATION = re.compile(r"(?:vs|approx|ca|e\.g|i\.e|cf|avg|max|min|no|fig)$", re.IGNORECASE)
_LONGEST_ABOVE = 400


def passages(text: str) -> Iterator[Passage | Table]:
    """Every sentence and table of a text in order; fences of program text and HTML comments are left out."""
    reader = _Reader()
    lines = list(_readable(_lines(text)))
    position = 0
    while position < len(lines):
        if _is_table(lines, position):
            end = next((i for i in range(position + 2, len(lines)) if not _is_row(lines[i])), len(lines))
            yield reader.table(lines[position:end])
            position = end
        else:
            yield from reader.line(lines[position])
            position += 1


def _lines(text: str) -> Iterator[_Line]:
    position = 0
    for raw in text.splitlines(keepends=True):
        body = raw.rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029")
        yield _Line(position, position + len(body), body)
        position += len(raw)


def _readable(lines: Iterator[_Line]) -> Iterator[_Line]:
    """Lines outside fences of program text and outside HTML comments."""
    fence: str | None = None
    comment = False
    for line in lines:
        mark = _FENCE.match(line.text)
        if mark and not comment:
            fence = mark[1].lower() if fence is None else None
            continue
        comment = comment or line.text.lstrip().startswith("<!--")
        if not comment and (fence is None or fence in _READ_FENCES):
            yield line
        if comment and "-->" in line.text:
            comment = False


def _is_row(line: _Line) -> bool:
    return line.text.count("|") >= 2 or (line.text.lstrip().startswith("|"))


def _is_table(lines: list[_Line], position: int) -> bool:
    return position + 1 < len(lines) and "|" in lines[position].text and bool(_RULE_ROW.match(lines[position + 1].text))


def _cells(line: _Line) -> tuple[tuple[int, int], ...]:
    """Ranges between unescaped bars, the outer bars being no borders of a cell."""
    body = line.text.rstrip()
    borders = [i for i, letter in enumerate(body) if letter == "|" and (i == 0 or body[i - 1] != "\\")]
    edges = [-1, *borders, len(body)]
    cells = [(line.start + left + 1, line.start + right) for left, right in pairwise(edges)]
    first = 1 if borders and not body[: borders[0]].strip() else 0
    last = len(cells) - 1 if len(borders) > 1 and borders[-1] == len(body) - 1 else len(cells)
    return tuple(cells[first:last])


class _Reader:
    """Keeps the headings and the lead-in while lines go by."""

    def __init__(self) -> None:
        self._headings: list[tuple[int, tuple[int, int]]] = []
        self._lead: tuple[int, int] | None = None

    def _above(self) -> tuple[tuple[int, int], ...]:
        nearest = (self._lead,) if self._lead else ()
        return (*nearest, *(span for _, span in reversed(self._headings)))

    def table(self, lines: list[_Line]) -> Table:
        return Table(_cells(lines[0]), tuple(_cells(line) for line in lines[2:]), self._above())

    def line(self, line: _Line) -> Iterator[Passage]:
        if not line.text.strip():
            return
        heading = _HEADING.match(line.text)
        bullet = _BULLET.match(line.text)
        start = line.start + (bullet.end() if bullet else 0)
        for passage in _sentences(line, start):
            yield replace(passage, above=self._above())
        if heading:
            self._enter(len(heading[1] or "#" * 6), line)
        elif not bullet or line.text.rstrip().endswith((":", "：")):
            self._lead = _clip(line) if line.text.rstrip().endswith((":", "：", "**")) else None

    def _enter(self, level: int, line: _Line) -> None:
        self._headings = [entry for entry in self._headings if entry[0] < level] + [(level, _clip(line))]
        self._lead = None


def _clip(line: _Line) -> tuple[int, int]:
    return line.start, min(line.end, line.start + _LONGEST_ABOVE)


def _sentences(line: _Line, start: int) -> Iterator[Passage]:
    begin = start
    for stop in _SENTENCE_END.finditer(line.text, start - line.start):
        if stop[0] == "." and _ABBREVIATION.search(line.text[max(0, stop.start() - 7) : stop.start()]):
            continue
        yield Passage(begin, line.start + stop.end())
        begin = line.start + stop.end()
    if begin < line.end:
        yield Passage(begin, line.end)
