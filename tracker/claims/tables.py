"""Markdown tables: columns say metric and side, rows say what was measured.

A cell is read as a sentence of its own; a bare number takes metric and unit from its column, else from its row, else
from the column before. Two columns of the two sides (before, after) of one metric make one claim.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tracker.claims.binder import Surroundings, bind, default_unit
from tracker.claims.blocks import Table
from tracker.claims.records import Binding, Claim, Direction, Kind
from tracker.claims.rules import Draft, Sentence, drafts
from tracker.claims.tokens import Token, scan

_Span = tuple[int, int]

_SIDES = (
    (
        "change",
        re.compile(r"change|delta|Δ|diff|gain|uplift|improv|speed-?up|ratio|变化|提升|差异|增幅|加速比|变动", re.I),
    ),
    (
        "after",
        re.compile(r"\b(?:after|new|this pr|candidate|pr|branch|now|current|tuned)\b|之后|新|改动后|升级后|当前", re.I),
    ),
    (
        "before",
        re.compile(
            r"\b(?:before|baseline|base|main|old|prev(?:ious)?|prior|original|reference)\b|之前|基线|旧|改动前|升级前|原",
            re.I,
        ),
    ),
)
_SKIPPED = re.compile(
    r"threshold|target|limit|goal|expected|阈值|目标|门槛|预期|\binterval\b|\bCI\b|区间|^\W*p(?:[ -]?value|\s?值)?\W*$",
    re.I,
)
_CONCURRENCY = re.compile(r"\b(?:conc(?:urrency)?|c|users)\b|并发", re.I)
_UNITS = (
    ("tok/s/GPU", re.compile(r"tok(?:en)?s?/s(?:ec)?/gpu|tps/gpu|tput[ _/]per[ _]gpu|per[- ]gpu|每 ?(?:gpu|卡)", re.I)),
    ("tok/s/user", re.compile(r"tok(?:en)?s?/s(?:ec)?/user|tps/user", re.I)),
    ("tok/s", re.compile(r"tok(?:en)?s?/s(?:ec)?|\btps\b", re.I)),
    ("ms", re.compile(r"\bms\b|毫秒", re.I)),
    ("s", re.compile(r"[(（\[]\s?s(?:ec(?:onds)?)?\s?[)）\]]|\bseconds\b|秒", re.I)),
    ("%", re.compile(r"%|％")),
    ("req/s", re.compile(r"req/s|qps", re.I)),
)
_METRIC_OF_UNIT = {"tok/s/GPU": "tput_per_gpu", "tok/s/user": "median_intvty", "req/s": "mean_qps"}
_MOST_NAMES = 60
"""Names of a row that are looked at; it bounds the work on endless rows."""


@dataclass(frozen=True, slots=True)
class _Head:
    """What a header cell, or the first cell of a row, says about the numbers beside it.

    `task` is None where no eval is named, "" where an accuracy is meant but no eval named.
    """

    tokens: tuple[Token, ...]
    metric: str | None
    unit: str | None
    task: str | None
    side: str
    skipped: bool
    concurrency: bool

    @property
    def names_subject(self) -> bool:
        return self.metric is not None or self.task is not None


@dataclass(frozen=True, slots=True)
class _Subject:
    """What a cell's number is taken for."""

    metric: str | None
    unit: str | None
    task: str | None
    is_change: bool


def claims(text: str, table: Table, context: tuple[tuple[Token, ...], ...]) -> tuple[Claim, ...]:
    """The claims of every row, in reading order."""
    heads = tuple(_head(text, span) for span in table.header)
    return tuple(claim for row in table.rows for claim in _paired(text, _row(text, row, heads, context)))


def _head(text: str, span: _Span) -> _Head:
    words, tokens = text[slice(*span)], scan(text, *span)
    codes = "".join(token.code for token in tokens)
    unit = next((name for name, pattern in _UNITS if pattern.search(words)), None)
    named = next((token.word for token in tokens if token.code == "k" and token.word), None)
    task = named or ("" if "c" in codes or "k" in codes else None)
    metric = _metric_of(codes, words, unit) or (_METRIC_OF_UNIT.get(unit or "") if task is None else None)
    side = next((name for name, pattern in _SIDES if pattern.search(words)), "")
    concurrency = bool(_CONCURRENCY.search(words)) and "m" not in codes
    return _Head(tokens, metric, unit, task, side, bool(_SKIPPED.search(words)), concurrency)


def _metric_of(codes: str, words: str, unit: str | None) -> str | None:
    """The metric that a head names by the words of prose: a number is put behind it and read as a claim would be."""
    if "m" not in codes and "q" not in codes:
        return None
    rate = unit if unit in ("tok/s", "tok/s/GPU") else "%"
    probe = f"{words} 12.5 {rate}"
    sentence = Sentence.of(probe, scan(probe))
    (found,) = bind(Surroundings(sentence, (Draft(Kind.CHANGE, (len(sentence.tokens) - 1,), rate),)))
    return found.metric


def _row(
    text: str, row: tuple[_Span, ...], heads: tuple[_Head, ...], context: tuple[tuple[Token, ...], ...]
) -> Iterator[tuple[str, Claim]]:
    """Claims of one row, each with the side of its column."""
    cells = [(head, scan(text, *span)) for span, head in zip(row, heads, strict=False)]
    names = tuple(token for head, tokens in cells for token in _names(head, tokens))[:_MOST_NAMES]
    subject = _head(text, row[0]) if row else None
    for at, (head, tokens) in enumerate(cells):
        if head.skipped or head.concurrency or (subject and subject.skipped):
            continue
        wanted = _subject(head, subject if at else None)
        for claim in _of_cell(text, tokens, wanted, (head.tokens, names, *context)):
            yield head.side, claim
        subject = head if head.names_subject else subject


def _names(head: _Head, tokens: tuple[Token, ...]) -> Iterator[Token]:
    """What a row names: the names in its cells, and the bare number of a concurrency column."""
    for token in tokens:
        if token.code in "KMgFrSYC":
            yield token
        elif head.concurrency and token.number is not None and token.code == "N":
            low, high = int(token.number.values[0]), int(token.number.values[-1])
            yield Token("C", token.start, token.end, items=((low, high),))


def _subject(column: _Head, other: _Head | None) -> _Subject:
    is_change = column.side == "change"
    if column.names_subject or other is None:
        return _Subject(column.metric, column.unit, column.task, is_change)
    return _Subject(other.metric, column.unit or (None if is_change else other.unit), other.task, is_change)


def _of_cell(
    text: str, tokens: tuple[Token, ...], wanted: _Subject, above: tuple[tuple[Token, ...], ...]
) -> tuple[Claim, ...]:
    """Claims that a cell makes by itself, or the single number that its subject explains."""
    subject = "k" if wanted.task is not None else "m" if wanted.metric else ""
    sentence = Sentence.of(text, tokens, subject)
    made = drafts(sentence) or _explained(sentence, wanted)
    return tuple(_completed(claim, wanted) for claim in bind(Surroundings(sentence, made, above)))


def _explained(sentence: Sentence, wanted: _Subject) -> tuple[Draft, ...]:
    """A cell that is only a number: level, score, change or ratio by its subject."""
    code = sentence.codes.strip("(),:_ud")
    if len(code) != 1 or code not in "NLTPXQ":
        return ()
    at = sentence.codes.index(code)
    form = _form(code, sentence.number(at).sign, wanted)
    if (
        form is Kind.SCORE
        and code == "N"
        and not (max(sentence.number(at).values) <= 1 and sentence.number(at).decimals)
    ):
        return ()
    unit = sentence.number(at).unit or wanted.unit or ("fraction" if form is Kind.SCORE else None)
    return (Draft(form, (at,), unit),) if form else ()


def _form(code: str, sign: str, wanted: _Subject) -> Kind | None:
    """The kind of claim that a number in a cell is, by its unit, its sign, and what the heads say."""
    subject = wanted.metric is not None or wanted.task is not None
    if code in "PQ" or (code == "N" and wanted.unit == "%"):
        moved = bool(sign) or wanted.is_change
        return (
            Kind.CHANGE if moved and (subject or wanted.is_change) else Kind.SCORE if wanted.task is not None else None
        )
    if code == "X":
        return Kind.RATIO if subject or wanted.is_change else None
    if sign or wanted.is_change:
        return None
    if code == "N" and wanted.task is not None:
        return Kind.SCORE
    return Kind.LEVEL if wanted.metric is not None or wanted.unit in ("tok/s", "ms", "s") else None


def _completed(claim: Claim, wanted: _Subject) -> Claim:
    """The claim with what only the heads say: metric, unit and eval."""
    of_eval = wanted.task is not None and (
        claim.kind in (Kind.SCORE, Kind.SCORE_RANGE) or claim.unit in ("fraction", "pp")
    )
    metric = claim.metric or (None if of_eval else wanted.metric)
    binding = replace(claim.binding, task=claim.binding.task or wanted.task or None)
    return replace(claim, metric=metric, unit=claim.unit or wanted.unit or default_unit(metric), binding=binding)


def _paired(text: str, found: Iterator[tuple[str, Claim]]) -> Iterator[Claim]:
    """Neighbouring cells of the two sides of one metric become one claim from the first to the second."""
    waiting: Claim | None = None
    for side, claim in found:
        if waiting and side == "after" and _same_thing(waiting, claim):
            yield _from_to(text, waiting, claim)
            waiting = None
            continue
        if waiting:
            yield waiting
        waiting = claim if side == "before" else None
        if waiting is None:
            yield claim
    if waiting:
        yield waiting


def _same_thing(a: Claim, b: Claim) -> bool:
    plain = a.kind in (Kind.LEVEL, Kind.SCORE) and len(a.values) == len(b.values) == 1
    return plain and (a.kind, a.metric, a.unit) == (b.kind, b.metric, b.unit)


def _from_to(text: str, a: Claim, b: Claim) -> Claim:
    before, after = a.values[0], b.values[0]
    span = (a.span[0], b.span[1])
    return replace(
        b,
        kind=Kind.FROM_TO,
        values=(before, after),
        span=span,
        text=text[slice(*span)],
        direction=Direction.UP if after > before else Direction.DOWN if after < before else Direction.FLAT,
        approximate=a.approximate or b.approximate,
        decimals=max(a.decimals, b.decimals),
        binding=_merged(a.binding, b.binding),
    )


def _merged(a: Binding, b: Binding) -> Binding:
    return replace(b, peak=a.peak or b.peak)
