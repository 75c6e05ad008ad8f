"""Facts on a terminal: what moved, by how much, how sure and what to do next, on one screen; the rest is counted.

The only module that lays out tables for people. What a screen shows is chosen by `reports.glance`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

from reports import brief, contrasts, escapes, glance, numbers, phrases
from reports.facts import Facts, Listed, Moved
from reports.language import BILINGUAL, N_, Language, Phrase, Value
from store.records import Verdict

FURTHER = 20
"""Columns of a line of names that are kept for what is not named."""
LINES = 44
"""Lines of a screen but the first ones; the table gets what the others leave, and never less than the least."""
LEAST_LINES = 11
INDENT = 4
"""Columns before a continued line."""
WIDE = 110
"""From this width on a row bears its whole name; below, the config stands above its rows."""
LEFT = 2
"""Columns that are text; the others are numbers and stand to the right."""

_STYLES = {
    Verdict.REGRESSION: "bold red",
    Verdict.MIXED: "bold red",
    Verdict.FAILED: "bold red",
    Verdict.INVALID: "red",
    Verdict.MISSING: "yellow",
    Verdict.SUSPECTED: "yellow",
    Verdict.NOISY: "yellow",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.IMPROVEMENT: "bold green",
    Verdict.RECOVERY: "green",
    Verdict.EQUIVALENT: "green",
}
_HEADS = (N_("Verdict"), N_("What"), N_("Change"), N_("95%% interval"), "p", "n", "MDE")


def show(facts: Facts, lang: str, console: Console) -> None:
    """Print facts in `en`, `zh` or `both`. Colour and width are the console's, which honours NO_COLOR."""
    codes = BILINGUAL if lang == "both" else (lang,)
    for place, code in enumerate(codes):
        if place:
            console.print()
        _Screen(Language(code), console).show(facts)


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of the table: the config it belongs to, its verdict, and its cells."""

    config: str
    style: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Screen:
    language: Language
    console: Console

    def show(self, facts: Facts) -> None:
        self.first_lines(facts)
        rest = _Screen(Language("en"), self.console).rest(facts)
        room = max(LEAST_LINES, LINES - len(rest))
        self.moved(glance.moved(facts, room, is_headed=self.console.width < WIDE))
        for line in self.rest(facts):
            self.console.print(line, soft_wrap=True)
        self.line(brief.foot_line(facts), "dim")

    def rest(self, facts: Facts) -> list[Text]:
        """The lines under the table."""
        images = brief.images(glance.images(facts), self.console.width - INDENT)
        states = [brief.group(one, self.names) for one in glance.states(facts)]
        blocks: tuple[tuple[str, Sequence[Value]], ...] = (
            (N_("Layouts changed"), brief.frontiers(facts.frontiers)),
            (N_("Cannot tell"), [brief.unseen(one, self.names) for one in glance.unseen(facts)]),
            (N_("Set apart"), [*states, *brief.rejected(facts.rejected)]),
            (N_("Doubts"), brief.remarks(*glance.doubts(facts))),
            (N_("What differs"), [*contrasts.lines(facts.attributed.rows), *images]),
            (N_("Counts"), [*brief.counts(facts), *brief.aside(facts)]),
        )
        lines = [line for title, said in blocks if said for line in self.block(title, said)]
        return [Text(), *lines, *self.runs(facts)]

    @property
    def names(self) -> int:
        """Characters that the names of a line may take, the same in every language."""
        return self.console.width - FURTHER

    def first_lines(self, facts: Facts) -> None:
        """What moved, by how much and how sure, and what to do next."""
        self.line(phrases.headline(facts), _STYLES.get(facts.verdict, "bold"))
        for finding in facts.lead:
            self.line(brief.glimpse(finding, self.console.width))
        for step in brief.next_steps(facts.steps, glance.STEPS):
            self.line(step, "bold")
        if facts.hidden:
            self.line(phrases.hidden(facts.hidden))

    def moved(self, listed: Listed[Moved]) -> None:
        """The table of what moved, worst first."""
        if listed:
            self.console.print()
            self.line(Phrase(N_("What moved (n: baseline/candidate runs; MDE: smallest detectable change)")), "bold")
        if listed.rows:
            self.table([self.row(entry, listed.rows) for entry in listed.rows])
        if listed.left_out:
            self.line(brief.more(listed.left_out), "dim")

    def row(self, entry: Moved, rows: Sequence[Moved]) -> _Line:
        finding, how = entry.finding, numbers.kind(entry.finding)
        cells: tuple[Value, ...] = (
            phrases.verdict_name(entry.verdict),
            brief.place(entry, rows),
            numbers.change(finding.effect, how),
            brief.bounds(finding),
            numbers.pvalue(finding.p),
            phrases.runs(finding).replace(" ", ""),
            numbers.detectable(finding.mde, how),
        )
        config = brief.label_parts(finding)[0]
        return _Line(config, _STYLES.get(entry.verdict, ""), tuple(map(self.say, cells)))

    def table(self, rows: Sequence[_Line]) -> None:
        """One line per row; a name that is too long for its column stands on a line of its own."""
        heads = tuple(self.say(Phrase(head)) for head in _HEADS)
        is_wide = self.console.width >= WIDE
        lines = [_Line(r.config, r.style, _named(r)) if is_wide else r for r in rows]
        widths = _widths([heads, *(line.cells for line in lines)], self.console.width)
        self.console.print(Text(_laid(heads, widths), style="dim"))
        config = ""
        for line in lines:
            if not is_wide and line.config != config:
                config = line.config
                self.line(config, "bold")
            self.laid(line, widths)

    def laid(self, line: _Line, widths: Sequence[int]) -> None:
        verdict, name, *figures = line.cells
        if cell_len(name) > widths[1]:
            self.styled(f"{_padded(verdict, widths[0])} {name}", verdict, line.style)
            verdict, name = "", ""
        self.styled(_laid((verdict, name, *figures), widths), verdict, line.style)

    def styled(self, text: str, verdict: str, style: str) -> None:
        said = Text(text.rstrip())
        said.stylize(style, 0, len(verdict))
        self.console.print(said, no_wrap=True, overflow="ellipsis", crop=True)

    def block(self, title: str, said: Sequence[Value]) -> list[Text]:
        """A title and its lines; a continuation stands further in."""
        found = [Text(self.say(Phrase(title)), style="bold")]
        for one in said:
            parts = _wrapped(self.say(one), max(2, self.console.width - INDENT))
            found += [Text(("    " if place else "  ") + part) for place, part in enumerate(parts)]
        return found

    def runs(self, facts: Facts) -> list[Text]:
        """One line per side, never folded, so that an address can be clicked or copied."""
        sides = (("candidate", facts.candidate), ("baseline", facts.baseline))
        return [Text(f"  {self.say(said)}") for name, listed in sides for said in brief.newest(name, listed)]

    def line(self, said: Value, style: str = "") -> None:
        self.console.print(Text(self.say(said), style=style))

    def say(self, said: Value) -> str:
        return self.language.say(said, escapes.plain)


_HAN, _CLOSING = r"\u3400-\u9fff", "，。：；）、"
_PIECE = re.compile(rf"（?(?:[{_HAN}]|[^\s{_HAN}（{_CLOSING}]+)[{_CLOSING}]*\s*|\s+|\S")
"""What stays on one line: a word or a Han character, with the full-width marks that hold on to it."""


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns; Chinese has no blanks, so a line may end after any of its characters.

    >>> _wrapped("评估：无定论 13，低于 1.3 的变化", 16)
    ['评估：无定论', '13，低于 1.3 的', '变化']
    """
    lines = [""]
    for piece in _PIECE.findall(text):
        if lines[-1] and cell_len((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return [part for line in lines for part in chop_cells(line.rstrip(), width)]


def _named(line: _Line) -> tuple[str, ...]:
    verdict, name, *figures = line.cells
    return (verdict, f"{line.config} {name}".strip(), *figures)


def _widths(rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """Columns as wide as their longest cell; the names get what is left."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    others = sum(widths) - widths[1] + len(widths) - 1
    return [widths[0], max(0, min(widths[1], room - others)), *widths[2:]]


def _laid(cells: Sequence[str], widths: Sequence[int]) -> str:
    return " ".join(
        _padded(cell, width, right=place >= LEFT) for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )


def _padded(cell: str, width: int, *, right: bool = False) -> str:
    blank = " " * max(0, width - cell_len(cell))
    return blank + cell if right else cell + blank
