"""Facts on a terminal: three lines that say it all, then tables, worst first. The only module that prints tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from reports import doubts, escapes, numbers, phrases
from reports.facts import Facts, ImageChange, Listed, Moved, Reason, run_url, trim
from reports.language import BILINGUAL, N_, Language, Phrase, Value, phrase
from store.records import Finding, Unmatched, Verdict

ROWS = 60
"""About how many rows a screen shows; the rest is counted, and the JSON form has them all."""

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
_FINDING_HEADS = (N_("What"), N_("Change"), N_("95%% interval"), "p", N_("Runs"), N_("Detectable"))
_EVAL_HEADS = (N_("What"), N_("Baseline → candidate"), N_("Change"), N_("95%% interval"), "p", N_("Runs"))
_APART_HEADS = (N_("What"), N_("Reason"))
_REJECTED_HEADS = (N_("Rows"), N_("Reason"))
_IMAGE_HEADS = (N_("Baseline image"), N_("Candidate image"), N_("Software"))
_TEXTS = frozenset({N_("What"), N_("Reason"), N_("Baseline image"), N_("Candidate image"), N_("Software")})
"""Columns that may wrap; the others are numbers and stay whole."""


def show(facts: Facts, lang: str, console: Console, rows: int = ROWS) -> None:
    """Print facts in `en`, `zh` or `both`. Colour and width are the console's, which honours NO_COLOR."""
    for code in BILINGUAL if lang == "both" else (lang,):
        _Screen(Language(code), console).show(facts, rows)


@dataclass(frozen=True, slots=True)
class _Screen:
    language: Language
    console: Console

    def show(self, facts: Facts, rows: int) -> None:
        short = trim(facts, rows)
        self.first_lines(facts)
        self.counts(facts)
        self.evals(N_("Accuracy: look here first"), short.accuracy)
        self.findings(N_("What got worse"), _flat(short.worse))
        self.findings(N_("Further points that got worse"), short.worse_points)
        self.findings(N_("What got better"), _flat(short.better))
        self.notes(short)
        self.evals(N_("Evals without a problem"), short.evals)
        self.findings(N_("Could not be decided, with the smallest change that could have been seen"), short.undecided)
        self.apart(N_("Missing, failed and invalid"), short.absent)
        self.apart(N_("Not comparable, and why"), short.not_comparable)
        self.findings(N_("Advisory metrics that moved; they never decide"), short.advisory)
        self.apart(N_("Without a baseline"), short.new)
        self.rejected(short.rejected)
        self.images(short.images)
        self.runs(short)
        self.console.print()
        self.line(phrases.foot(facts), "dim")

    def first_lines(self, facts: Facts) -> None:
        """What moved, by how much and how sure, and what to do next."""
        self.line(phrases.headline(facts), _STYLES.get(facts.verdict, "bold"))
        for finding in facts.lead:
            self.line(phrases.told(finding))
        for step in facts.steps:
            self.line(phrases.step(step), "bold")

    def counts(self, facts: Facts) -> None:
        self.console.print()
        hidden = [phrases.hidden(facts.hidden)] if facts.hidden else []
        for sentence in (*phrases.coverage(facts), *hidden, *map(doubts.sentence, facts.caveats)):
            self.line(sentence)

    def findings(self, title: str, listed: Listed[Finding]) -> None:
        self.table(title, _FINDING_HEADS, [self.finding(row) for row in listed.rows], listed.left_out)

    def finding(self, row: Finding) -> list[Text]:
        how = numbers.kind(row)
        cells = (
            numbers.change(row.effect, how),
            phrases.interval(row),
            numbers.pvalue(row.p),
            phrases.runs(row),
            numbers.detectable(row.mde, how),
        )
        return [self.what(row, phrases.metric_name(row.metric)), *map(self.text, cells)]

    def evals(self, title: str, listed: Listed[Finding]) -> None:
        """Evals as a table, and under it the doubts of each, which are too long for a column."""
        self.table(title, _EVAL_HEADS, [self.eval(row) for row in listed.rows], listed.left_out)
        for row in listed.rows:
            if said := doubts.alarms(row):
                self.indented(phrase(N_("%(names)s: %(sentence)s"), names=phrases.label(row), sentence=said))

    def eval(self, row: Finding) -> list[Text]:
        change = numbers.change(row.effect, numbers.kind(row))
        cells = (phrases.values(row), change, phrases.interval(row), numbers.pvalue(row.p), phrases.runs(row))
        return [self.what(row, phrases.eval_metric(row)), *map(self.text, cells)]

    def apart(self, title: str, listed: Listed[Unmatched]) -> None:
        rows = [[self.what(row, phrases.row_run(row)), self.text(doubts.sentence(row.reason))] for row in listed.rows]
        self.table(title, _APART_HEADS, rows, listed.left_out)

    def notes(self, facts: Facts) -> None:
        if facts.doubts:
            self.title(N_("Doubts and remarks"))
        for note in facts.doubts.rows:
            self.indented(doubts.note(note))

    def rejected(self, listed: Listed[Reason]) -> None:
        rows = [[self.text(numbers.count(row.rows)), self.text(doubts.sentence(row.caveat))] for row in listed.rows]
        self.table(N_("Rows that could not be read"), _REJECTED_HEADS, rows, listed.left_out)

    def images(self, listed: Listed[ImageChange]) -> None:
        self.table(N_("Images"), _IMAGE_HEADS, [self.image(row) for row in listed.rows], listed.left_out)

    def image(self, row: ImageChange) -> list[Text]:
        names = (phrases.image_text(row.before), phrases.image_text(row.after))
        return [*map(self.text, names), self.text(phrases.sameness(row.sameness))]

    def runs(self, facts: Facts) -> None:
        """One line per run, never folded, so that an address can be clicked or copied."""
        self.title(N_("Runs"))
        for name, listed in (("candidate", facts.candidate), ("baseline", facts.baseline)):
            for run in listed.rows:
                where = run_url(run) or phrases.run_name(run)
                line = phrase(
                    N_("%(side)s, %(day)s: %(run)s"), side=phrases.side(name), day=phrases.started(run), run=where
                )
                self.console.print(self.text(line), soft_wrap=True)
        if facts.baseline.left_out:
            self.line(phrases.left_out(facts.baseline.left_out), "dim")

    def what(self, row: Finding | Unmatched, beside: Value) -> Text:
        """The name of a row, and under it its verdict in colour and what the verdict is about."""
        verdict = Text(self.say(phrases.verdict_name(row.verdict)), style=_STYLES.get(row.verdict, ""))
        return Text("\n").join([self.text(phrases.label(row)), Text("  ").join([verdict, self.text(beside)])])

    def table(self, title: str, heads: Sequence[str], rows: list[list[Text]], left_out: int) -> None:
        """One table; every row has a cell for every heading."""
        if not rows and not left_out:
            return
        self.title(title)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for head in heads:
            table.add_column(self.say(Phrase(head)), overflow="fold", no_wrap=head not in _TEXTS)
        for row in rows:
            table.add_row(*row)
        self.console.print(table)
        if left_out:
            self.line(phrases.left_out(left_out), "dim")

    def title(self, msgid: str) -> None:
        self.console.print()
        self.line(Phrase(msgid), "bold")

    def line(self, said: Value, style: str = "") -> None:
        self.console.print(Text(self.say(said), style=style))

    def indented(self, said: Value) -> None:
        self.console.print(Padding(self.text(said), (0, 0, 0, 2)))

    def text(self, said: Value) -> Text:
        return Text(self.say(said))

    def say(self, said: Value) -> str:
        return self.language.say(said, escapes.plain)


def _flat(listed: Listed[Moved]) -> Listed[Finding]:
    return Listed(tuple(row for entry in listed.rows for row in entry.rows), listed.left_out)
