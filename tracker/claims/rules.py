"""Small named rules over the codes of a sentence: which numbers are claims, and of which kind.

A rule is a pattern of codes (`lexicon.CODES`) and a test that must hold where the pattern matched. Rules are tried in
the order of the table; a number that one rule took is not offered to the next.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tracker.claims.lexicon import CHANGES
from tracker.claims.records import Kind
from tracker.claims.tokens import Number, Token

_REACH = 10
"""How many tokens away a word may stand and still speak about a number."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """Tokens of one passage with their codes as a string.

    `codes_here` and `codes_above` (lead-in, headings, head of a column) say which codes occur at all, so that no rule
    has to walk through the whole sentence for each of its numbers.
    """

    text: str
    tokens: tuple[Token, ...]
    codes: str
    first_metric: int
    only_metric: int
    """Position of the metric's name where the sentence names one only; else -1."""
    codes_here: frozenset[str]
    codes_above: frozenset[str]

    @classmethod
    def of(cls, text: str, tokens: tuple[Token, ...], above: Iterable[str] = ()) -> Sentence:
        codes = "".join(token.code for token in tokens)
        first = codes.find("m")
        only = first if first == codes.rfind("m") else -1
        return cls(text, tokens, codes, first, only, frozenset(codes), frozenset(above))

    def number(self, at: int) -> Number:
        number = self.tokens[at].number
        assert number is not None, "asked only where a code of a number stands"
        return number

    def said(self, at: int) -> str:
        return self.text[self.tokens[at].start : self.tokens[at].end].lower()


@dataclass(frozen=True, slots=True)
class Draft:
    """A claim by token positions: the numbers it takes, in the order of its values, and their common unit."""

    kind: Kind
    numbers: tuple[int, ...]
    unit: str | None
    sorted_values: bool = False
    unit_at: int = -1
    """Position of the number whose unit is shared; -1: the last of its own."""

    @property
    def unit_from(self) -> int:
        return self.last if self.unit_at < 0 else self.unit_at

    @property
    def first(self) -> int:
        return min(self.numbers)

    @property
    def last(self) -> int:
        return max(self.numbers)


@dataclass(frozen=True, slots=True)
class Rule:
    """`pattern` marks its numbers with the groups `a` and `b`; `make` gives the draft or None where the test fails."""

    name: str
    pattern: re.Pattern[str]
    make: Callable[[Sentence, int, int], Draft | None]


def drafts(sentence: Sentence) -> tuple[Draft, ...]:
    """Every claimed number of a sentence, in reading order."""
    taken: set[int] = set()
    found: list[Draft] = []
    for rule in RULES:
        for match in rule.pattern.finditer(sentence.codes):
            a, b = match.start("a"), match.start("b") if "b" in rule.pattern.groupindex else -1
            draft = None if a in taken else rule.make(sentence, a, b)
            if draft is None or taken.intersection(draft.numbers) or _refused(sentence, draft):
                continue
            taken.update(draft.numbers)
            if not _disowned(sentence, draft):
                found.append(draft)
    chained = tuple(_chained(sentence, found, taken))
    return tuple(sorted((*found, *chained), key=lambda draft: draft.first))


# What a number is not -------------------------------------------------------------------------------------------------

_PLAN_BEFORE = re.compile(r"![^,;()|PQXLTN]{0,8}$")
_PLAN_AFTER = re.compile(r"[mbwudqs_opgS]{0,4}!")
_THRESHOLD_BEFORE = re.compile(r"H[_:aosft(kGU]{0,3}$")
_THRESHOLD_AFTER = re.compile(r"[_oagc]{0,2}H")


def _refused(sentence: Sentence, draft: Draft) -> bool:
    """Plans, thresholds, shares of something, settings, and measures of other things than performance."""
    before = sentence.codes[max(0, draft.first - _REACH) : draft.first]
    after = sentence.codes[draft.last + 1 : draft.last + 1 + _REACH]
    return bool(
        _PLAN_BEFORE.search(before)
        or _PLAN_AFTER.match(after)
        or _THRESHOLD_BEFORE.search(before)
        or _THRESHOLD_AFTER.match(after)
        or _is_setting(sentence, draft.first)
        or _instead_of(sentence, draft.first)
    )


def _disowned(sentence: Sentence, draft: Draft) -> bool:
    """Numbers that the sentence itself says are no result of this change; none of them is offered to another rule."""
    return _statistical(sentence, draft) or _negated(sentence, draft) or _of_other_versions(sentence, draft)


def _is_setting(sentence: Sentence, at: int) -> bool:
    """A bare number right behind an identifier: `decode_workers 2`, `gpu_fraction: 0.9`."""
    return sentence.codes[at] == "N" and bool(re.search(r"i[:_]?$", sentence.codes[max(0, at - 2) : at]))


def _instead_of(sentence: Sentence, at: int) -> bool:
    """The other side of "instead of" was wanted, not measured."""
    return at > 0 and sentence.said(at - 1) in ("instead of", "而非")


_BACK = 80
"""Characters that are looked through on each side of a number: it bounds the work on endless sentences."""


def _text_before(sentence: Sentence, at: int) -> str:
    """What stands before a token in its sentence."""
    end = sentence.tokens[at].start
    return sentence.text[max(sentence.tokens[0].start, end - _BACK) : end]


def _text_behind(sentence: Sentence, at: int) -> str:
    start = sentence.tokens[at].end
    return sentence.text[start : min(sentence.tokens[-1].end, start + _BACK)]


_INTERVAL = r"(?:置信|可信)?区间|(?:(?:confidence|credible|prediction)\s)?interval(?!s?\w)|CIs?(?![\w-])"
_INTERVAL_BEHIND = re.compile(rf"\s?(?:的\s?)?-?(?:{_INTERVAL})", re.IGNORECASE)
_INTERVAL_BEFORE = re.compile(
    rf"(?:[%％]\s?(?:的\s?)?-?(?:{_INTERVAL})|(?:confidence|credible) interval|(?:置信|可信)区间)"
    r"(?:[\s\d.,:=+%％~()\[\]（），：–−-]|pp\b|to\b|and\b|from\b|of\b|is\b|百分点|[个至到为从由和])*$",
    re.IGNORECASE,
)
_LEVEL_BEFORE = re.compile(
    r"(?:interval|(?<![\w-])CI|(?:置信|可信)区间)\s?(?:of\s|level\s|at\s)?[(:]?\s?$", re.IGNORECASE
)
_LEVELS = ((80.0,), (90.0,), (95.0,), (99.0,))
_GAP_BEFORE = re.compile(
    r"(?:(?<![a-z])(?:gap|difference|spread) between\b|差距|之差|差值)[^;；。|()（）\d]{0,60}$", re.IGNORECASE
)
_P_BEFORE = re.compile(r"(?<![A-Za-z0-9_])p(?:[ -]?values?|\s?值)?\s?[<>=≤≥]{0,2}\s?$", re.IGNORECASE)


def _statistical(sentence: Sentence, draft: Draft) -> bool:
    """The level of an interval (`95% CI`), its ends, p values, and gaps between two measures of the same run."""
    before = _text_before(sentence, draft.first)
    behind = any(
        _INTERVAL_BEHIND.match(_text_behind(sentence, at)) for at in draft.numbers if sentence.codes[at] == "P"
    )
    number = sentence.number(draft.first)
    if number.unit == "%" and not number.sign and number.values in _LEVELS and _LEVEL_BEFORE.search(before):
        return True
    return behind or bool(_P_BEFORE.search(before) or _GAP_BEFORE.search(before) or _INTERVAL_BEFORE.search(before))


_NOT = (
    r"(?:(?<![A-Za-z])(?:not(?!\s(?:only|just|merely)\b)|never|no longer|cannot|neither|nor"
    r"|fail(?:s|ed)? to)|(?<=[A-Za-z])n['’]t)(?![A-Za-z])"
)
_NOT_CHINESE = r"(?:没有?|并未|并没有?|并非|不再|不会|无法|未(?!来))"
_NOT_BEFORE_WORD = re.compile(
    rf"(?:{_NOT}(?:\s[A-Za-z]++)?\s*|{_NOT_CHINESE}\s?[\u4e00-\u9fff]{{0,2}}\s?)$", re.IGNORECASE
)
_NOT_BEFORE_NUMBER = re.compile(
    rf"(?:{_NOT}(?:\s(?!(?:at|with|in|on)\b)[A-Za-z]++){{0,2}}\s*|{_NOT_CHINESE}\s?[\u4e00-\u9fff]{{0,2}}\s?)$",
    re.IGNORECASE,
)
_NOT_BEHIND = re.compile(
    r"[^,;，；。()|\d]{0,40}?(?:\b(?:no longer|(?:is|was|are|were|could)(?: not|n['’]t)(?: be)?)"
    r"\s(?:seen|reproduced|observed|confirmed|measured|present|there|visible)\b|不再(?:出现|存在)|没有(?:出现|复现)|未(?:能)?(?:出现|复现))",
    re.IGNORECASE,
)
_CLAUSE_WORDS = frozenset(("but", "while", "whereas", "yet", "但", "而", "却"))


def _negated(sentence: Sentence, draft: Draft) -> bool:
    """`does not improve by 9%`, `没有提升 9%`, `no longer 9% higher`: what did not happen."""
    if _NOT_BEFORE_NUMBER.search(_text_before(sentence, draft.first)):
        return True
    if _NOT_BEHIND.match(_text_behind(sentence, draft.last)):
        return True
    for at in range(draft.first - 1, max(-1, draft.first - 1 - _REACH), -1):
        if sentence.codes[at] in ",;:()|+>PQXLTN" or sentence.said(at) in _CLAUSE_WORDS:
            return False
        if sentence.codes[at] in "udbwt" and _NOT_BEFORE_WORD.search(_text_before(sentence, at)):
            return True
    return False


_VERSION = r"\d++(?:\.\d++)+(?:[.-]?[a-z]\w*+)*+"
_NAMED_VERSION = rf"(?:v{_VERSION}|\d++\.\d++\.\d[\w.-]*+|(?:sglang|vllm|atom|trt(?:-?llm)?|version)\s{_VERSION})"
_TWO_VERSIONS = re.compile(
    rf"(?<![\w./:-]){_NAMED_VERSION}(?![\w%％])[^,;，；。|()]{{0,60}}?(?:\bthan\b|(?<![相对])比|(?<!相)较)\s?"
    rf"(?:[A-Za-z-]+\s)?v?{_VERSION}(?![\w%％]|\s?(?:%|％|x\b|×|倍|tok|ms\b|s\b))",
    re.IGNORECASE,
)
_OLD_REPORT = re.compile(
    r"(?:(?<![a-z])(?:previously|earlier|formerly|last (?:time|week|month|release)|in the past)\b,?\s(?:\w+\s){0,3}?"
    r"(?:report|measur|claim|saw\b|observ|quot|publish|announc|said\b)"
    r"|(?<![a-z])(?:report|measur|claim|observ|quot|publish|announc)ed\s(?:previously|earlier|before|last)\b"
    r"|(?:此前|之前|以前|先前|上次|早前)\s?[^，,；;。\d]{0,6}?(?:报告|测得|声称|公布|宣称|报道))"
    r"[^,;，；。()|]{0,40}$",
    re.IGNORECASE,
)


def _of_other_versions(sentence: Sentence, draft: Draft) -> bool:
    """`v0.20 was 30% slower than v0.19`, `previously we reported +20%`: of other pairs than the one measured.

    Which images are compared is not known here, so two versions that a sentence itself holds against each other are
    nobody's claim; `from v0.19 to v0.20` and `+5% vs v0.19` say what a change does and stay claims.
    """
    if draft.kind not in (Kind.CHANGE, Kind.RATIO, Kind.FROM_TO):
        return bool(_OLD_REPORT.search(_text_before(sentence, draft.first)))
    before, behind = _text_before(sentence, draft.first), _text_behind(sentence, draft.last)
    if _OLD_REPORT.search(before):
        return True
    start = sentence.tokens[draft.first].start - len(before)
    around = sentence.text[start : sentence.tokens[draft.last].end + len(behind)]
    here = len(before)
    return any(
        not re.search(r"[,;，；。]", around[found.end() : here] + around[here : found.start()])
        for found in _TWO_VERSIONS.finditer(around)
    )


def _other_topic(sentence: Sentence, first: int, last: int) -> bool:
    """True when the nearest subject is no metric: a hit rate, a memory share, a timeout."""
    after = re.match(r"[_qsog:rpbudwa]{0,3}([mkcZ])", sentence.codes[last + 1 : last + 5])
    if after:
        return after[1] == "Z"
    before = re.search(r"([mkcZ])[^mkcZ;|]{0,4}$", sentence.codes[max(0, first - _REACH) : first])
    return before is not None and before[1] == "Z"


def _share(sentence: Sentence, at: int) -> bool:
    """`75% of ...`: a part of something, not a change (`within 5% of each other` is a band)."""
    if at > 0 and sentence.codes[at - 1] == "W":
        return False
    behind = sentence.codes[at + 1 : at + 4]
    return behind[:1] == "o" and sentence.said(at + 1) == "of" and not re.match(r"oq?m", behind)


# What a number speaks about -------------------------------------------------------------------------------------------

_SCORE_BEFORE = re.compile(r"([kcmZ])[^kcmZ;|]{0,13}$")
_SCORE_AFTER = re.compile(r"[_oa/:s]{0,2}([kcm])")


def scored(sentence: Sentence, first: int, last: int) -> bool:
    """True when the nearest subject of a number is an eval or an accuracy."""
    after = _SCORE_AFTER.match(sentence.codes[last + 1 : last + 5])
    before = _SCORE_BEFORE.search(sentence.codes[max(0, first - 14) : first])
    if before:
        return before[1] in "kc"
    if after:
        return after[1] in "kc"
    return not sentence.codes_here & set("mZL") and bool(sentence.codes_above & set("kc"))


def direction_at(sentence: Sentence, first: int, last: int) -> int | None:
    """Position of the word that says where the number went: just behind it, else before it in its clause."""
    after = re.match(r"[mqsgMYrFSCpo_kc]{0,4}([udbw=])", sentence.codes[last + 1 : last + 6])
    if after:
        return last + 1 + after.start(1)
    start = max(0, first - 8)
    before = re.search(r"([udbw=])[^udbw=,;|PQXLTN]{0,7}(?:,[_ps(]{0,2})?$", sentence.codes[start:first])
    return start + before.start(1) if before else None


_LATENCY = ("ttft", "tpot", "itl", "e2el", "latency")


def _timed(sentence: Sentence, first: int, last: int) -> bool:
    """True when the nearest metric of a time is a latency."""
    after = re.match(r"(?:[+/]T)?[_sob(udq]{0,2}m", sentence.codes[last + 1 : last + 6])
    start = max(0, first - _REACH)
    before = re.search(r"([mZ])[^mZ;|]{0,9}$", sentence.codes[start:first])
    if before:
        at = start + before.start(1)
        if before[1] == "m" and sentence.tokens[at].word in _LATENCY:
            return True
    return after is not None and sentence.tokens[last + after.end()].word in _LATENCY


_RATE_NEAR = re.compile(r"m[^miZ;|PQXLTN]{0,6}$")


def _rated(sentence: Sentence, first: int) -> bool:
    """True when the metric of a bare number was said right before it, or its unit elsewhere in the sentence."""
    before = sentence.codes[max(0, first - _REACH) : first]
    near = _RATE_NEAR.search(before)
    if near and near[0].count("_") <= 2:
        return True
    named = bool(re.search(r"[CSYpgMKs:][,(f]?$|[PX]\($", before)) and not re.search(r"[iZ][:_]?$", before)
    said = "L" in sentence.codes_here or 0 <= sentence.first_metric < first or "m" in sentence.codes_above
    return named and said


def _fraction(number: Number) -> bool:
    return max(number.values) <= 1 and (number.decimals >= 1 or number.approximate or max(number.values) in (0, 1))


# The rules ------------------------------------------------------------------------------------------------------------


def _pair(sentence: Sentence, a: int, b: int, *, spans: bool = True) -> Draft | None:
    """Two numbers, from the first to the second; the unit may stand on either."""
    codes = sentence.codes[a] + sentence.codes[b]
    if len(sentence.number(a).values) > 1 or len(sentence.number(b).values) > 1:
        return None
    unit = sentence.number(b).unit or sentence.number(a).unit
    if codes == "XX":
        return Draft(Kind.RATIO, (a, b), "x", sorted_values=True)
    if "L" in codes:
        return Draft(Kind.FROM_TO, (a, b), unit)
    if "T" in codes:
        return Draft(Kind.FROM_TO, (a, b), unit) if _timed(sentence, min(a, b), max(a, b)) else None
    if codes == "NN":
        return _bare_pair(sentence, a, b)
    return _percent_pair(sentence, a, b, spans)


def _bare_pair(sentence: Sentence, a: int, b: int) -> Draft | None:
    """Two bare numbers: scores as fractions or in percent, or a metric that was said before them."""
    unit = None
    if scored(sentence, min(a, b), max(a, b)):
        both = (sentence.number(a), sentence.number(b))
        unit = "fraction" if all(map(_fraction, both)) else "%" if all(map(_of_hundred, both)) else None
    return Draft(Kind.FROM_TO, (a, b), unit) if unit or _rated(sentence, min(a, b)) else None


def _percent_pair(sentence: Sentence, a: int, b: int, spans: bool) -> Draft | None:
    """Two percents: the way of a score, or the two ends of a range of changes."""
    if _other_topic(sentence, min(a, b), max(a, b)):
        return None
    signed = sentence.number(a).sign or sentence.number(b).sign
    high = min(*sentence.number(a).values, *sentence.number(b).values) >= 20
    if scored(sentence, min(a, b), max(a, b)) and not signed and high:
        return Draft(Kind.FROM_TO, (a, b), "%")
    changed = signed or direction_at(sentence, min(a, b), max(a, b)) is not None
    return Draft(Kind.CHANGE, (a, b), "%", sorted_values=True) if changed and spans else None


def _arrow(sentence: Sentence, a: int, b: int) -> Draft | None:
    return _pair(sentence, a, b, spans=False)


def _from_to(sentence: Sentence, a: int, b: int) -> Draft | None:
    if _from_all(sentence, a) and _part(sentence, b, -1):
        return _part(sentence, b, -1)
    return _pair(sentence, a, b)


def _from_all(sentence: Sentence, at: int) -> bool:
    """`from 100% to 93%`: the whole, of which the other number is what is left."""
    whole = sentence.codes[at] == "P" and sentence.number(at).values == (100.0,) and not sentence.number(at).sign
    return whole and sentence.codes[at - 1 : at] == "f" and sentence.codes[at + 1 : at + 3] == "tP"


def _to_from(sentence: Sentence, a: int, b: int) -> Draft | None:
    return _pair(sentence, b, a)


def _ranged(sentence: Sentence, a: int, b: int) -> Draft | None:
    """`ranged from A to B`, `between A and B`: the ends of a range."""
    codes = sentence.codes[a] + sentence.codes[b]
    unit = sentence.number(b).unit or sentence.number(a).unit
    if codes in ("NN", "PP", "NP") and scored(sentence, a, b) and (codes != "NN" or _fraction(sentence.number(b))):
        return Draft(Kind.SCORE_RANGE, (a, b), unit or "fraction", sorted_values=True)
    if "L" in codes or ("T" in codes and _timed(sentence, a, b)):
        return Draft(Kind.LEVEL, (a, b), unit, sorted_values=True)
    if codes in ("PP", "NP"):
        return _percent_pair(sentence, a, b, spans=True)
    return Draft(Kind.RATIO, (a, b), "x", sorted_values=True) if codes in ("XX", "NX") else None


def _score(sentence: Sentence, a: int, _: int) -> Draft | None:
    """A fraction, or a percent that is no change, whose subject is an eval."""
    number = sentence.number(a)
    if not scored(sentence, a, a) or number.sign or _set_against(sentence, a):
        return None
    low = min(number.values) < 20 and not _left(sentence, a)
    if sentence.codes[a] == "P" and (low or _is_change(sentence, a) or _share(sentence, a)):
        return None
    if sentence.codes[a] == "N" and not (_precise_fraction(number) or _points_of_hundred(sentence, a)):
        return None
    kind = Kind.SCORE_RANGE if len(number.values) > 1 else Kind.SCORE
    return Draft(kind, (a,), number.unit or ("%" if min(number.values) > 1 else "fraction"))


def _precise_fraction(number: Number) -> bool:
    return _fraction(number) and (number.decimals >= 2 or number.approximate or max(number.values) == 0)


def _points_of_hundred(sentence: Sentence, at: int) -> bool:
    """`GSM8K: 95.8`: a score in percent that lost its sign."""
    named = re.search(r"[kc][:_]?$", sentence.codes[max(0, at - 2) : at])
    return bool(named) and _of_hundred(sentence.number(at))


def _of_hundred(number: Number) -> bool:
    return number.decimals >= 1 and min(number.values) > 20 and max(number.values) <= 100


def _set_against(sentence: Sentence, at: int) -> bool:
    """`above 0.90`: what the scores are held against, not a score."""
    return at > 0 and sentence.said(at - 1) in ("above", "below", "高于", "低于", "不低于", "超过")


def _is_change(sentence: Sentence, at: int) -> bool:
    """`dropped 38%`, `by 38%`, `38% drop`: a percent that the sentence calls a change."""
    behind = sentence.codes[at + 1 : at + 2]
    ahead = sentence.codes[at - 1 : at] if at else ""
    return behind in tuple(CHANGES) or ahead in tuple(CHANGES) or (at > 0 and sentence.said(at - 1) == "by")


_METRIC_BEHIND = re.compile(r"[qs_o]{0,2}m")


def _change(sentence: Sentence, a: int, _: int) -> Draft | None:
    """A percent, or percentage points, that moved something, or that the sentence gives with a sign or as a band."""
    if (
        _left(sentence, a)
        or _from_all(sentence, a)
        or _share(sentence, a)
        or _other_topic(sentence, a, a)
        or _more_of_something(sentence, a)
    ):
        return None
    at = direction_at(sentence, a, a)
    moved = at is not None and sentence.codes[at] != "="
    named = sentence.codes_here & set("mkcLCSYKp") or sentence.codes_above & set("mkc")
    held = moved or (named and _given_as_change(sentence, a)) or _METRIC_BEHIND.match(sentence.codes[a + 1 : a + 4])
    return Draft(Kind.CHANGE, (a,), sentence.number(a).unit) if held else None


_LEFT = re.compile(r"([udbw]?)(?:fP|[_a])?t(?:_{0,5}(o))?$")


def _left(sentence: Sentence, at: int) -> bool:
    """`fell to 93%`, `降至 93%`, `improved to 93% of the baseline`: the part that is left, not the part that went."""
    number = sentence.number(at)
    start = max(0, at - _REACH)
    moved = _LEFT.search(sentence.codes[start:at])
    if moved is None or number.sign or sentence.codes[at] != "P":
        return False
    to = next(place for place in range(start + moved.start(), at) if sentence.codes[place] == "t")
    way = moved[1] or sentence.tokens[to].word[:1]
    whole = bool(moved[2]) or (sentence.codes[at + 1 : at + 2] == "o" and sentence.said(at + 1) == "of")
    return way in ("d", "w") or (way in ("u", "b") and (whole or min(number.values) >= 100))


def _part(sentence: Sentence, a: int, _: int) -> Draft | None:
    """A percent that says what is left of a metric: a ratio to the baseline."""
    held = _left(sentence, a) and not scored(sentence, a, a) and not _other_topic(sentence, a, a)
    if re.search(r"[udbw][^,;:(|PQXLTN]{0,3}[udbw][^,;:(|udbw]{0,9}$", sentence.codes[max(0, a - _REACH) : a]):
        return None  # `the gain dropped to 3%`
    return Draft(Kind.RATIO, (a,), "x") if held else None


def _given_as_change(sentence: Sentence, at: int) -> bool:
    """`+4.7%`, `±0.5%`, `within 2%`, `less than 1%`, `flat (0.5%)`."""
    return bool(sentence.number(at).sign) or bool(re.search(r"[WU]$|=\($", sentence.codes[max(0, at - 2) : at]))


def _ratio(sentence: Sentence, a: int, _: int) -> Draft | None:
    """A number of times with a word of change, a metric, or the numbers that it sums up before it."""
    behind, ahead = sentence.codes[a + 1 : a + 5], sentence.codes[max(0, a - 8) : a]
    moved = bool(re.search(r"[udbw]t?U?$", ahead))
    if _times_something(behind, moved) or _other_topic(sentence, a, a) or _more_of_something(sentence, a):
        return None
    held = (
        sentence.codes_here <= set("X(),:")
        or moved
        or re.match(r"[_qso]{0,2}[mbwud]", behind)
        or re.search(r"[LNTP][^;PQXLTN]{0,4}\($", ahead)
        or re.search(r"[udbwmtvp][^;,PQXLTN]{0,5}$", ahead)
        or ("m" in sentence.codes_here and sentence.codes_here & set("vL"))
    )
    return Draft(Kind.RATIO, (a,), "x") if held else None


def _times_something(behind: str, moved: bool) -> bool:
    """`4x 1k1k`, `8x MI355X`, `2x concurrency`: a count of what follows."""
    return bool(re.match(r"[CSYgMKiON]", behind)) or (bool(re.match(r"_(?!m)", behind)) and not moved)


def _more_of_something(sentence: Sentence, at: int) -> bool:
    """`20% more experts`: an amount of a thing, in a sentence that names no metric."""
    more = sentence.codes[at + 1 : at + 2] in ("u", "d") and sentence.said(at + 1) in ("more", "less")
    unnamed = not (sentence.codes_here & set("mkcL") or sentence.codes_above & set("mkc"))
    return more and unnamed


def _factor(sentence: Sentence, a: int, _: int) -> Draft | None:
    """`by a factor of 2.9`, if a metric is named."""
    return Draft(Kind.RATIO, (a,), "x") if "m" in sentence.codes_here else None


def _level(sentence: Sentence, a: int, _: int) -> Draft | None:
    """A number in a unit of performance, or a time whose metric is a latency."""
    number = sentence.number(a)
    if number.unit == "W" and not _powered(sentence, a):
        return None
    if sentence.codes[a] == "T" and not _timed(sentence, a, a):
        return None
    return None if number.sign == "-" else Draft(Kind.LEVEL, (a,), number.unit)


def _powered(sentence: Sentence, at: int) -> bool:
    """True when watts stand near a word for power."""
    return any(token.word.endswith("_power_w") for token in sentence.tokens[max(0, at - 2 * _REACH) : at + _REACH])


def _keyed(sentence: Sentence, a: int, _: int) -> Draft | None:
    """`tput_per_gpu = 1234.5`: a metric key gives its number the metric's own unit."""
    at = sentence.codes.rfind("m", 0, a)
    return Draft(Kind.LEVEL, (a,), None) if "_" in sentence.said(at) else None


def _second_level(sentence: Sentence, a: int, b: int) -> Draft | None:
    """A bare number that shares the unit of the one beside it: `434 vs 905 tok/s/gpu`, `86 and 191 s`."""
    draft = _level(sentence, b, -1)
    return Draft(Kind.LEVEL, (a,), draft.unit, unit_at=b) if draft else None


_NOT_NUMBER = r"[^PQXLTNf;|]"
RULES: tuple[Rule, ...] = tuple(
    Rule(name, re.compile(pattern), make)
    for name, pattern, make in (
        ("ranged", r"R[f_:a(]{0,3}(?P<a>[NPLTX])[CSYgas_]{0,3}[t+>](?P<b>[NPLTX])", _ranged),
        ("ranged behind", r"f?(?P<a>[NPLTX])[t+](?P<b>[NPLTX])_?R", _ranged),
        ("arrow", r"(?P<a>[NLTP])[)CSY]?>(?P<b>[NLTP])", _arrow),
        ("arrow over words", r"(?P<a>[LT])\)?>[^PQXLTN,;|]{1,4}(?P<b>[LT])", _arrow),
        ("from to", rf"f{_NOT_NUMBER}{{0,4}}(?P<a>[NLTPX]){_NOT_NUMBER}{{0,6}}?t[p_a]{{0,2}}(?P<b>[NLTPX])", _from_to),
        ("was", r"(?P<a>[NLTP])[aCSYgM]{0,3}[(,]?f(?P<b>[NLTP])", _to_from),
        ("to", r"(?P<a>[NLTPX])[ud_a]?t(?P<b>[NLTPX])", _from_to),
        ("score", r"(?P<a>[NP])", _score),
        ("part", r"(?P<a>P)", _part),
        ("change", r"(?P<a>[PQ])", _change),
        ("ratio", r"(?P<a>X)", _ratio),
        ("factor", r"x(?P<a>N)", _factor),
        ("level", r"(?P<a>[LT])", _level),
        ("keyed", r"m[:_]?(?P<a>N)", _keyed),
        ("shared before", r"(?P<a>N)(?:[aCSY(),]{0,5})[+v/](?P<b>[LT])", _second_level),
        ("shared behind", r"(?P<b>[LT])[_aCSY(]{0,4}[)]?v[_a]{0,1}(?P<a>N)", _second_level),
    )
)
"""Name, pattern of codes, and test. Earlier rules take their numbers first."""


def _chained(sentence: Sentence, found: list[Draft], taken: set[int]) -> Iterator[Draft]:
    """Percents that go on a list of changes: `~8% at 1k1k and ~22% at 8k1k`."""
    last = {draft.last: draft for draft in found if draft.kind in (Kind.CHANGE, Kind.RATIO)}
    for match in re.finditer(
        r"(?=(?P<a>[PX])[aCSYgMK(_)mqs]{0,6}[+,/v][aCSYgMK(_mqsUGW]{0,4}(?P<b>[PX]))", sentence.codes
    ):
        a, b = match.start("a"), match.start("b")
        if a not in last or b in taken or sentence.codes[a] != sentence.codes[b]:
            continue
        draft = Draft(last[a].kind, (b,), last[a].unit)
        if not (
            _share(sentence, b)
            or _other_topic(sentence, b, b)
            or _refused(sentence, draft)
            or _disowned(sentence, draft)
        ):
            taken.add(b)
            last[b] = draft
            yield draft
