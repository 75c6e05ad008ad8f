"""What a claimed number speaks about: metric, direction, and the names in its sentence, lead-in or headings.

The first of these that names something of a kind decides for that kind: a name that follows behind a preposition
(`at 8k1k`, `on MI355X`), the nearest name before, the only name after, the lead-in, the nearest heading.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from store.metrics import METRICS
from tracker.claims.records import Binding, Bound, Claim, Direction, Kind
from tracker.claims.rules import Draft, Sentence, direction_at, scored
from tracker.claims.tokens import Token

_NEAR = 60
"""Tokens that are looked through in each direction; it bounds the work on endless sentences."""

_SLOTS = {
    "K": "configs",
    "M": "models",
    "g": "gpus",
    "F": "frameworks",
    "r": "precisions",
    "S": "sequences",
    "Y": "layouts",
}
_WAYS = {"u": Direction.UP, "d": Direction.DOWN, "b": Direction.BETTER, "w": Direction.WORSE, "=": Direction.FLAT}
_BOUNDS = {"U": Bound.UP_TO, "G": Bound.AT_LEAST}
_COMPARATORS = {
    "<": Bound.UP_TO,
    "<=": Bound.UP_TO,
    "≤": Bound.UP_TO,
    ">": Bound.AT_LEAST,
    ">=": Bound.AT_LEAST,
    "≥": Bound.AT_LEAST,
}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A sentence, its drafts, and the tokens of each text above it, nearest first."""

    sentence: Sentence
    drafts: tuple[Draft, ...]
    above: tuple[tuple[Token, ...], ...] = ()


def bind(around: Surroundings) -> tuple[Claim, ...]:
    """The claims of a sentence; a ratio or change in brackets behind a pair of numbers speaks of what the pair does."""
    claims: list[Claim] = []
    for draft in around.drafts:
        claims.append(_claim(around, draft, claims))
    return tuple(claims)


def _claim(around: Surroundings, draft: Draft, earlier: Sequence[Claim]) -> Claim:
    sentence = around.sentence
    numbers = [sentence.number(at) for at in draft.numbers]
    values = tuple(value for number in numbers for value in number.values)
    left = draft.kind is Kind.RATIO and sentence.codes[draft.first] == "P"
    if left:
        values = tuple(round(value / 100, 12) for value in values)
    start, end = sentence.tokens[draft.first].start, sentence.tokens[draft.last].end
    summed = _summed_up(sentence, draft, earlier)
    metric = summed.metric if summed else _metric(around, draft, earlier)
    bound, direction = _bound(sentence, draft), _direction(sentence, draft, values, earlier)
    if draft.kind is Kind.CHANGE and bound is Bound.UP_TO and direction is None:
        bound, direction = Bound.WITHIN, Direction.FLAT  # `less than 1%` either way
    return Claim(
        draft.kind,
        tuple(sorted(values)) if draft.sorted_values else values,
        (start, end),
        sentence.text[start:end],
        unit=draft.unit or default_unit(metric),
        metric=metric,
        direction=direction,
        approximate=any(number.approximate for number in numbers),
        bound=bound,
        decimals=max(number.decimals for number in numbers) + (2 if left else 0),
        left=left,
        added=_added(sentence, draft),
        binding=summed.binding if summed else _binding(around, draft),
    )


def default_unit(metric: str | None) -> str | None:
    """The unit of a number whose text gives none: the metric's own, except for times, which may be seconds or ms."""
    unit = METRICS[metric].unit if metric is not None and metric in METRICS else None
    return None if unit == "s" else unit


def _summed_up(sentence: Sentence, draft: Draft, earlier: Sequence[Claim]) -> Claim | None:
    """The pair of numbers that a `(~2.9x)` or `(+5%)` stands right behind."""
    ahead = sentence.codes[max(0, draft.first - 2) : draft.first]
    if draft.kind not in (Kind.RATIO, Kind.CHANGE) or not re.search(r"[NLTP]\($", ahead):
        return None
    before = sentence.tokens[draft.first - 2].end
    return next(
        (claim for claim in reversed(earlier[-3:]) if claim.span[1] == before and claim.kind is not Kind.CHANGE), None
    )


# Metric ---------------------------------------------------------------------------------------------------------------

_LATENCIES = frozenset({"ttft", "tpot", "itl", "e2el", "intvty"})
_BY_UNIT = {"tok/s/GPU": "tput_per_gpu", "tok/s/user": "median_intvty", "req/s": "mean_qps", "W": "avg_power_w"}
_TIMES = frozenset({*(name for name in METRICS if METRICS[name].unit == "s"), "ttft", "tpot", "itl", "e2el", "latency"})
_FITTING = {
    "s": _TIMES,
    "ms": _TIMES,
    "tok/s/user": frozenset({"intvty", *(name for name in METRICS if name.endswith("_intvty"))}),
    "req/s": frozenset({"mean_qps"}),
    "W": frozenset(name for name in METRICS if name.endswith("_power_w")),
    "J/tok": frozenset(name for name in METRICS if "joules_per" in name),
}
_FOLLOWS = re.compile(r"[qsbwudgMrFYSp_]{0,4}m|[bwud]?[_a]?[oa][_qs]{0,2}m")


def _metric(around: Surroundings, draft: Draft, earlier: Sequence[Claim]) -> str | None:
    sentence = around.sentence
    if draft.kind in (Kind.SCORE, Kind.SCORE_RANGE) or draft.unit == "fraction" or _is_accuracy(sentence, draft):
        return _filter(sentence, draft)
    qualifier = sentence.number(draft.unit_from).qualifier
    if draft.unit == "tok/s/GPU":
        return _throughput(_qualifier_near(sentence, draft) or qualifier)
    if draft.unit == "tok/s":
        named = _qualifier_near(sentence, draft) or qualifier or ("total" if _throughput_near(sentence, draft) else "")
        return f"{named}_tput_tps" if named else None
    at = _metric_at(sentence, draft)
    if at is None:
        return _BY_UNIT.get(draft.unit or "") or _inherited(around, earlier)
    return _full_name(sentence, at, draft.first)


def _is_accuracy(sentence: Sentence, draft: Draft) -> bool:
    """A change whose nearest subject is an eval, with no metric right behind it."""
    if draft.unit not in ("%", "pp") or not scored(sentence, draft.first, draft.last):
        return False
    return not _FOLLOWS.match(sentence.codes[draft.last + 1 : draft.last + 7])


def _filter(sentence: Sentence, draft: Draft) -> str | None:
    """`em_strict` or `em_flexible` where the text says which: right behind the number, else nearest before it."""
    behind = re.match(r"[(_]?c", sentence.codes[draft.last + 1 : draft.last + 3])
    if behind and sentence.tokens[draft.last + behind.end()].word:
        return sentence.tokens[draft.last + behind.end()].word
    for at in range(draft.first - 1, max(-1, draft.first - 12), -1):
        if sentence.codes[at] == ";":
            break
        if sentence.codes[at] == "c" and sentence.tokens[at].word:
            follows_number = re.search(r"[NP][(_]?$", sentence.codes[max(0, at - 2) : at])
            return None if follows_number else sentence.tokens[at].word
    return None


def _qualifier_near(sentence: Sentence, draft: Draft) -> str:
    """`163 tok/s/gpu out`, `output throughput of 163 tok/s/gpu`."""
    if (
        sentence.codes[draft.last + 1 : draft.last + 2] == "q"
        or sentence.text[sentence.tokens[draft.last].end :][:4] == " out"
    ):
        return sentence.tokens[draft.last + 1].word or "output"
    before = re.search(r"q[m_]{0,2}[^;,()PQXLTN]{0,3}$", sentence.codes[max(0, draft.first - 6) : draft.first])
    return sentence.tokens[draft.first - len(before[0])].word if before else ""


def _throughput_near(sentence: Sentence, draft: Draft) -> bool:
    """Tokens per second that the text calls throughput are those of all GPUs, input and output."""
    near = range(max(0, draft.first - 6), min(len(sentence.codes), draft.last + 4))
    return any(sentence.codes[at] == "m" and sentence.tokens[at].word == "tput_per_gpu" for at in near)


def _metric_at(sentence: Sentence, draft: Draft) -> int | None:
    """Position of the metric's name: right behind the number, else nearest before, else behind in the clause.

    A time is a latency and tokens a second for a user are interactivity, whatever else is named nearer.
    """
    behind = sentence.codes[draft.last + 1 : draft.last + 1 + _NEAR]
    fitting = _FITTING.get(draft.unit or "")
    follows = _FOLLOWS.match(behind)
    clause = re.match(r"[^;|PQXLTN]*?m", behind)
    places = [draft.last + follows.end()] if follows else []
    start = max(0, draft.first - _NEAR) - 1
    places += [at for at in range(draft.first - 1, start, -1) if sentence.codes[at] == "m"]
    places += [draft.last + clause.end()] if clause else []
    places += [sentence.only_metric] if 0 <= sentence.only_metric <= draft.last + _NEAR else []
    return next((at for at in places if fitting is None or sentence.tokens[at].word in fitting), None)


def _full_name(sentence: Sentence, at: int, number_at: int = 0) -> str | None:
    """The key in the metric table: latencies take the statistic beside them (else the median), throughput its side."""
    word = sentence.tokens[at].word
    if word in METRICS and word != "tput_per_gpu":
        return word
    if word in _LATENCIES:
        key = f"{_statistic(sentence, at, number_at)}_{word}"
        return key if key in METRICS else None
    if word in ("tput", "tput_per_gpu"):
        side = sentence.tokens[at - 1].word if at and sentence.codes[at - 1] == "q" else ""
        return _throughput(side)
    return None


def _throughput(side: str) -> str:
    return f"{side}_tput_per_gpu" if side in ("input", "output") else "tput_per_gpu"


def _statistic(sentence: Sentence, at: int, number_at: int) -> str:
    """The statistic right before the number, else right before or behind the metric's name."""
    if number_at and sentence.codes[number_at - 1] == "s":
        return sentence.tokens[number_at - 1].word
    for near in (at - 1, at + 1):
        if 0 <= near < len(sentence.codes) and sentence.codes[near] == "s":
            return sentence.tokens[near].word
    return sentence.tokens[at + 2].word if sentence.codes[at + 1 : at + 3] in ("(s", "/s") else "median"


def _inherited(around: Surroundings, earlier: Sequence[Claim]) -> str | None:
    """The metric of the claim before in the sentence, else the one that the lead-in or a heading names."""
    if earlier:
        return earlier[-1].metric
    for tokens in around.above:
        upper = Sentence.of(around.sentence.text, tokens)
        if upper.first_metric >= 0:
            return _full_name(upper, upper.first_metric)
    return None


# Direction and bound --------------------------------------------------------------------------------------------------


def _direction(
    sentence: Sentence, draft: Draft, values: tuple[float, ...], earlier: Sequence[Claim]
) -> Direction | None:
    if draft.kind is Kind.FROM_TO:
        return Direction.UP if values[1] > values[0] else Direction.DOWN if values[1] < values[0] else Direction.FLAT
    if draft.kind in (Kind.CHANGE, Kind.RATIO):
        return _way_of_change(sentence, draft, earlier)
    before = sentence.codes[max(0, draft.first - 3) : draft.first]
    moved = re.search(r"([udbw])?[_a]?t$", before)
    if moved is None:
        return None
    word = sentence.tokens[draft.first - 1].word
    return Direction(word) if word else _WAYS.get(moved[1] or "")


def _way_of_change(sentence: Sentence, draft: Draft, earlier: Sequence[Claim]) -> Direction | None:
    number = sentence.number(draft.first)
    if _bound(sentence, draft) is Bound.WITHIN:
        return Direction.FLAT
    to = sentence.codes.rfind("t", max(0, draft.first - _NEAR), draft.first)
    if draft.kind is Kind.RATIO and sentence.codes[draft.first] == "P" and to >= 0 and sentence.tokens[to].word:
        return Direction(sentence.tokens[to].word)  # `降至 93%`
    at = direction_at(sentence, draft.first, draft.last)
    if at is not None and sentence.codes[at] != "=":
        return _WAYS[sentence.codes[at]]
    if number.sign in ("+", "-"):
        return Direction.UP if number.sign == "+" else Direction.DOWN
    if draft.kind is Kind.CHANGE and earlier and earlier[-1].kind is Kind.CHANGE:
        return earlier[-1].direction
    first = re.search(r"[udbw]", sentence.codes[max(0, draft.first - _NEAR) : draft.first])
    return _WAYS[first[0]] if first and draft.kind is Kind.CHANGE else None


def _bound(sentence: Sentence, draft: Draft) -> Bound:
    number = sentence.number(draft.first)
    if number.sign in ("±", "+-", "+/-"):
        return Bound.WITHIN
    behind = sentence.codes[draft.last + 1 : draft.last + 2]
    if re.search(r"W$|=\(?$", sentence.codes[max(0, draft.first - 2) : draft.first]) and not number.sign:
        return Bound.WITHIN
    limit = re.search(r"([UG])[udbw]?$", sentence.codes[max(0, draft.first - 2) : draft.first])
    if limit:
        return _BOUNDS[limit[1]]
    if behind in ("U", "G") and sentence.said(draft.last + 1) in ("以上", "以内"):
        return _BOUNDS[behind]
    return _COMPARATORS.get(number.comparator, Bound.VALUE)


def _added(sentence: Sentence, draft: Draft) -> bool:
    """A number of times behind `提升` or `by`, or before `more`: an increase by it, or to it?"""
    if draft.kind is not Kind.RATIO or sentence.codes[draft.last] != "X":
        return False
    behind = sentence.codes[draft.last + 1 : draft.last + 2]
    more = behind == "u" and sentence.said(draft.last + 1) == "more"
    more = more or (behind in tuple("udbw") and "times" in sentence.said(draft.last))
    bounded = draft.first > 1 and sentence.codes[draft.first - 1] in "UG"
    more = more or (draft.first > 0 and sentence.said(draft.first - 1 - bounded) == "by")
    ahead = draft.first > 0 and sentence.codes[draft.first - 1] in "ub" and "倍" in sentence.said(draft.last)
    return more or ahead


# Names ----------------------------------------------------------------------------------------------------------------


def _binding(around: Surroundings, draft: Draft) -> Binding:
    sentence = around.sentence
    keyed = _down_to_key(around, draft)
    # A config key says model, GPU, framework and precision itself: no farther heading adds to it.
    words = {field: _words(_named(keyed if code in "MgFr" else around, draft, code)) for code, field in _SLOTS.items()}
    concurrency = tuple(dict.fromkeys(item for token in _named(around, draft, "C") for item in token.items))
    return Binding(**words, concurrency=concurrency, task=_task(around, draft), peak=_at_peak(sentence, draft))


def _down_to_key(around: Surroundings, draft: Draft) -> Surroundings:
    """The surroundings up to the nearest text that names a config key; all of them where none does."""
    for depth in range(len(around.above) + 1):
        nearer = replace(around, above=around.above[:depth])
        if _named(nearer, draft, "K"):
            return nearer
    return around


def _words(tokens: Iterable[Token]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(token.word for token in tokens))


def _named(around: Surroundings, draft: Draft, code: str) -> tuple[Token, ...]:
    """The names of one kind that a number speaks about."""
    sentence = around.sentence
    inside = sentence.codes.find(code, draft.first, draft.last)
    at = inside if inside >= 0 else _behind_preposition(sentence, draft, code)
    at = _nearest_before(sentence, draft, code) if at is None else at
    at = _only_behind(sentence, draft, code) if at is None else at
    if at is not None:
        return _group(sentence, at)
    for tokens in around.above:
        named = tuple(token for token in tokens if token.code == code)
        if named:
            return named
    return ()


def _behind_preposition(sentence: Sentence, draft: Draft, code: str) -> int | None:
    """First name behind the number that a preposition or bracket leads to, before a comma, comparison or number."""
    led, opened, general = False, False, None
    has_before = code in sentence.codes[max(0, draft.first - _NEAR) : draft.first]
    for at in range(draft.last + 1, min(len(sentence.codes), draft.last + 1 + _NEAR)):
        here = sentence.codes[at]
        if here == code and code == "C" and not sentence.tokens[at].items:
            general = at if led else general
        elif here == code:
            return at if led or (code in "gMFr" and at == draft.last + 1) else general
        elif _ends_search(sentence, draft, at, opened) or (here == ")" and has_before and not led):
            return general
        opened = (opened or here == "(") and here != ")"
        led = led or here in "ao@(" or sentence.said(at) in ("below", "above")
    return general


def _ends_search(sentence: Sentence, draft: Draft, at: int, opened: bool) -> bool:
    here, ahead = sentence.codes[at], sentence.codes[at + 1 : at + 2]
    if here in "PQXLTN":
        return not _joined(sentence, draft, at)
    return here in ";|v" or (here == "," and not opened and ahead not in tuple("a("))


def _joined(sentence: Sentence, draft: Draft, at: int) -> bool:
    """A number that is only joined on (`+26% tput / -21% TPOT at ...`, `2085 -> 6003 (2.9x) at ...`)."""
    return bool(re.fullmatch(r"[mqs_)]{0,4}[+/(>,]?[mqs_]{0,3}", sentence.codes[draft.last + 1 : at]))


def _nearest_before(sentence: Sentence, draft: Draft, code: str) -> int | None:
    """Last name before the number that is not what it is compared with."""
    for at in range(draft.first - 1, max(-1, draft.first - 1 - _NEAR), -1):
        general = code == "C" and not sentence.tokens[at].items
        if (
            sentence.codes[at] == code
            and not general
            and not re.search(r"v[_:gMFr]{0,2}$", sentence.codes[max(0, at - 3) : at])
        ):
            return at
    return None


def _only_behind(sentence: Sentence, draft: Draft, code: str) -> int | None:
    """The name behind the number where the sentence has no other of its kind."""
    near = sentence.codes[draft.last + 1 : draft.last + 1 + _NEAR]
    near = near.partition(";")[0] if code in "SYC" else near
    at = near.find(code)
    if at < 0 or re.search(r"v[_:]{0,2}$", near[:at]):
        return None
    group = _group(sentence, draft.last + 1 + at)
    return draft.last + 1 + at if near.count(code) == len(group) else None


def _group(sentence: Sentence, at: int) -> tuple[Token, ...]:
    """The names of one kind that stand in one list with the given one: `1k1k and 8k1k`, `B200/B300`."""
    code = sentence.codes[at]
    first = last = at
    while re.fullmatch(rf"{re.escape(code)}[+,/]", sentence.codes[max(0, first - 2) : first]) and code not in "CY":
        first -= 2
    while re.fullmatch(rf"[+,/]{re.escape(code)}", sentence.codes[last + 1 : last + 3]) and _lists(sentence, last + 3):
        last += 2
    return tuple(token for token in sentence.tokens[first : last + 1] if token.code == code)


def _lists(sentence: Sentence, behind: int) -> bool:
    """False where the next name opens a claim of its own: `, conc256 +2.5%`."""
    return sentence.codes[behind : behind + 1] not in tuple("PQXLTNpm:")


def _task(around: Surroundings, draft: Draft) -> str | None:
    sentence = around.sentence
    if draft.kind not in (Kind.SCORE, Kind.SCORE_RANGE, Kind.FROM_TO, Kind.CHANGE):
        return None
    if not scored(sentence, draft.first, draft.last):
        return None
    named = [
        token
        for token in sentence.tokens[max(0, draft.first - _NEAR) : draft.first]
        if token.code == "k" and token.word
    ]
    behind = [token for token in sentence.tokens[draft.last : draft.last + _NEAR] if token.code == "k" and token.word]
    lists = (named[-1:], behind[:1], *([t for t in tokens if t.code == "k" and t.word] for tokens in around.above))
    return next((found[0].word for found in lists if found), None)


def _at_peak(sentence: Sentence, draft: Draft) -> bool:
    before = sentence.codes[max(0, draft.first - 8) : draft.first]
    behind = sentence.codes[draft.last + 1 : draft.last + 4]
    return bool(re.search(r"p[^;,PQXLTN]{0,7}$", before) or re.match(r"[(_a]{0,2}p", behind))
