"""Characters to tokens: numbers with units, names of what was benchmarked, and the words of the lexicon.

One pass, possessive or bounded repetition only: the time is linear in the text whatever the text is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from store import identity
from tracker.claims import lexicon


@dataclass(frozen=True, slots=True)
class Number:
    """A value, or low and high of a range written with a dash, in the unit that stands behind it."""

    values: tuple[float, ...]
    unit: str | None
    qualifier: str = ""
    approximate: bool = False
    sign: str = ""
    decimals: int = 0
    comparator: str = ""


@dataclass(frozen=True, slots=True)
class Token:
    """`code` is one character of `lexicon.CODES`, `word` the canonical spelling of a name, `items` concurrencies."""

    code: str
    start: int
    end: int
    word: str = ""
    number: Number | None = None
    items: tuple[tuple[int, int | None], ...] = ()


_RATE = r"(?:tok(?:en)?s?\s?/\s?s(?:ec(?:ond)?)?|tok(?:en)?s? per second|tps|t/s|个?\s?tokens?\s?/\s?秒)"
_BEFORE_UNIT = r"(?:(?P<before>total|tot\.?|output|out|input|decode|aggregate)\s)?"
_UNITS: tuple[tuple[str, str, str], ...] = (
    (
        "L",
        "tok/s/GPU",
        rf"{_BEFORE_UNIT}(?:{_RATE}\s?(?:/\s?|per[\s-])(?:GPU|chip|卡)|tok(?:en)?s?/GPU/s|{_RATE}\s每\s?(?:GPU|卡))(?!\w)",
    ),
    ("L", "tok/s/user", rf"{_BEFORE_UNIT.replace('before', 'before_user')}{_RATE}\s?(?:/\s?|per )user(?!\w)"),
    ("L", "tok/s", rf"{_BEFORE_UNIT.replace('before', 'before_rate')}{_RATE}(?![\w/])"),
    ("L", "req/s", r"(?:req(?:uest)?s?\s?/\s?s(?:ec)?|qps|rps|requests per second)(?!\w)"),
    ("L", "J/tok", r"(?:J|joules?)\s?(?:/| per )\s?(?:output |total |input )?tok(?:en)?s?(?!\w)"),
    ("L", "W", r"(?:W|watts?)(?![\w/])"),
    ("Q", "pp", r"(?:percentage points?|pp|ppt|p\.p\.|个百分点|百分点)(?![A-Za-z0-9])"),
    ("P", "%", r"(?:%|％|percent(?!age)|per cent)"),
    ("T", "ms", r"(?:ms|msec|milliseconds?|毫秒)(?![A-Za-z0-9_])"),
    ("T", "s", r"(?:s|secs?|seconds?|秒)(?![A-Za-z0-9_/])"),
    ("X", "x", r"(?:x|×|-?fold|times|倍)(?![A-Za-z0-9_×])"),
    (
        "O",
        "",
        r"(?:[kKMGT]?i?B|GB/s|[kKMBb]|min(?:ute)?s?|h(?:ours?|rs?)?|d(?:ays?)?|tokens?|GPUs?|nodes?|configs?|configurations?|points?|jobs?|"
        r"layers?|experts?|runs?|seeds?|samples?|questions?|requests?|prompts?|workers?|steps?|draft|recipes?|cells?|trials?|users?|"
        r"sessions?|tests?|files?|lines?|commits?|shots?|个|张|次|项|条|台|节点|小时|分钟|天|点|年|月|日|组|行|题)(?![A-Za-z0-9_])",
    ),
)
_UNIT = re.compile(
    "|".join(f"(?P<u{i}>\\s?{pattern})" for i, (_, _, pattern) in enumerate(_UNITS)), re.IGNORECASE | re.ASCII
)
_SCALE = re.compile(r"\s?[kK](?=\s?(?:total |tot |output |input )?(?:tok|tps|t/s))")
_APPROX = (
    r"(?:~|≈|∼|～|(?:about|around|roughly|approximately|approx\.?|nearly|almost|circa|ca\.)\s"
    r"|大约|大概|约|将近|接近|近)"
)
_DIGITS = r"(?:\d{1,3}(?:,\d{3})++(?:\.\d++)?|\d++(?:\.\d++)?)"
_NUMBER = re.compile(
    rf"(?P<near>{_APPROX}\s?)?(?P<cmp>(?:<=?|>=?|≤|≥)\s?)?(?P<near2>{_APPROX}\s?)?(?P<sign>(?:\+/-|\+-|±)\s?|[+\-−–](?=[\d~≈约]))?"
    rf"(?P<near3>{_APPROX}\s?)?(?P<digits>{_DIGITS})(?![A-Za-z_]+\d)",
    re.IGNORECASE | re.ASCII,
)
_SECOND = re.compile(
    rf"\s?(?:-(?!>)|–|—|~|～|−|\.\.)\s?(?P<near>[~≈约]\s?)?(?P<sign>[+\-−])?(?P<digits>{_DIGITS})", re.ASCII
)
_LONGEST = 15


def _value(digits: str) -> float:
    return float(digits.replace(",", ""))


def _decimals(digits: str) -> int:
    return len(digits.partition(".")[2])


def _read_number(text: str, found: re.Match[str], limit: int) -> Token:
    """The number at a match with its unit, its range and its scale."""
    first, sign = found["digits"], (found["sign"] or "").strip().replace("−", "-").replace("–", "-")
    digits, end = [first], found.end()
    unit = _UNIT.match(text, end, limit)
    second = _SECOND.match(text, unit.end() if unit and _code(unit) in "PTXL" else end, limit)
    if second and not _is_count_before_range(unit):
        after = _UNIT.match(text, second.end(), limit)
        if unit is None or (after is not None and _code(after) == _code(unit)):
            digits, end, unit = [first, second["digits"]], second.end(), after
    scale = _SCALE.match(text, end, limit)
    if scale:
        unit = _UNIT.match(text, scale.end(), limit)
    factor = 1000.0 if scale and unit else 1.0
    minus = -1.0 if sign == "-" else 1.0
    values = tuple(sorted(minus * factor * _value(part) for part in digits))
    code, name = ("N", None) if unit is None else (_code(unit), _UNITS[_row(unit)][1] or None)
    if max(map(len, digits)) > _LONGEST:
        code = "O"
    end = unit.end() if unit else end
    near = bool(found["near"] or found["near2"] or found["near3"] or (second and len(digits) > 1 and second["near"]))
    number = Number(
        values, name, _qualifier(unit), near, sign, max(map(_decimals, digits)), (found["cmp"] or "").strip()
    )
    return Token(code, found.start(), end, number=number)


def _row(unit: re.Match[str]) -> int:
    return next(i for i in range(len(_UNITS)) if unit[f"u{i}"] is not None)


def _code(unit: re.Match[str]) -> str:
    return _UNITS[_row(unit)][0]


def _is_count_before_range(unit: re.Match[str] | None) -> bool:
    return unit is not None and _code(unit) == "O"


_QUALIFIERS = {
    "total": "total",
    "tot": "total",
    "tot.": "total",
    "aggregate": "total",
    "output": "output",
    "out": "output",
}
_QUALIFIERS |= {"decode": "output", "input": "input"}


def _qualifier(unit: re.Match[str] | None) -> str:
    if unit is None:
        return ""
    word = unit["before"] or unit["before_user"] or unit["before_rate"] or ""
    inside = "output" if "output tok" in unit[0].lower() else "input" if "input tok" in unit[0].lower() else ""
    return _QUALIFIERS.get(word.lower(), inside)


_GPU_NAMES = r"(?:GB[23]00|MI\d{3}X|[HB][123]00|RTX\s?(?:PRO\s?)?(?:6000|5090)(?:\s?PRO)?)"
_MODEL_NAMES = (
    r"(?:DeepSeek[- ]?(?:R1|V4)(?:[- ]?Pro)?(?:-0528)?|DSR1|DSV4(?:-?Pro)?|"
    r"GPT-?OSS(?:[- ]?120B)?|Llama[- ]?(?:3\.3[- ]?)?(?:70B)?|"
    r"Qwen[- ]?\d(?:\.\d)?|Kimi[- ]?K\d(?:\.\d)?|MiniMax[- ]?M\d(?:\.\d)?|GLM[- ]?\d(?:\.\d)?)(?:-\d+B(?:-A\d+B)?)?"
)
_FRAMEWORK_NAMES = (
    r"(?:dynamo[- ](?:vllm|sglang|trt(?:llm)?)|mori-sglang|(?:sglang|vllm|atom)-disagg|mooncake-atom|sglang|vllm|"
    r"tensorrt-?llm|trt-?llm|trt|atom|tilert)"
)
_PRECISION_NAMES = r"(?:NVFP4|MXFP4|MXFP8|FP4|FP8|BF16|INT4)"
_SIZE = r"(?:1024|8192|1k|8k)"
_CONC = r"(?:concurrenc(?:y|ies)|conc|并发度?)"
_SIDE = r"(?:\d++\s?[x×]\s?)?(?:TEP|DEP|DPA|DCP|PCP|TP|EP|DP|PP)\s?=?\s?\d++"
_MEASURE = r"(?:%|％|x\b|×|倍|ms\b|s\b|k\b|(?:total |output |input )?tok|tps)"
_NO_MEASURE = rf"(?!\d|\.\d|\s?(?:[-–—~]\s?[\d.]++\s?)?{_MEASURE})"
_AND = r"\s?(?:-(?!>)|–|—|~|/|,|、|\sand\s|\sto\s|和|至|到|\.\.)\s?"
_LIST = (
    rf"\[?\d{{1,5}}{_NO_MEASURE}(?:{_AND}(?:conc(?:urrency)?\s?|c)?\d{{1,5}}{_NO_MEASURE}(?!:\d|\s?(?:->|→)))*+\+?\]?"
)


_SCAN: tuple[tuple[str, str], ...] = (
    ("i", r"https?://[^\s)>\]，。；]++"),
    ("O", r"(?<![\w.])(?:20\d\d[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}:\d\d(?::\d\d)?)(?![\w])"),
    ("O", r"(?<![\w.])v?\d++\.\d++\.[\w.*]++(?:-[\w.]++)*+"),
    ("i", r"(?<![\w.])[0-9a-f]{7,40}(?![\w.])(?<=[a-f0-9])(?<![0-9]{7})"),
    ("i", r"(?<![\w-])--?[a-z][\w-]*+(?:[ =]-?[\d.]++[A-Za-z]?(?![\w%]))?(?:\s?(?:->|→)\s?[\d.]++)?"),
    ("i", r"(?<![\w-])(?-i:[A-Z][A-Z0-9]*+_[A-Z0-9_]++)(?:\s?=\s?[\w.+-]++)?(?:\s?(?:->|→)\s?[\w.]++)?"),
    ("i", r"(?:PRs?|pull|issues?|runs?|jobs?|PR #|run #)[ #:]?\s?#?\d{3,}+(?![.%]|\s?(?:tok|ms))"),
    ("i", r"(?<!\w)#\d++"),
    ("K", r"(?<![\w./:*-])[a-z*][a-z0-9.*]{0,30}+-(?:fp4|fp8|bf16|int4|\*)(?:-[a-z0-9.*]{1,30}+){0,6}(?![\w/]|:\w)"),
    ("K", r"(?<![\w./:*-])\*(?:-[a-z0-9.*]{1,30}+){1,6}(?![\w/]|:\w)"),
    ("S", rf"(?<![\w.-])ISL\s?[=:]?\s?(?P<isl>{_SIZE})\s?(?:[/,&，、]|and)?\s?OSL\s?[=:]?\s?(?P<osl>{_SIZE})(?!\w)"),
    ("S", r"(?<![\w.-])(?P<isl_only>ISL\s?(?:[=:]|>=)?\s?(?:1024|8192|1k|8k))(?!\w)"),
    ("S", rf"(?<![\w.-])(?P<in>{_SIZE})\s?(?:/\s?|in\s?/\s?|in[ -])?(?P<out>{_SIZE})(?:\s?out)?(?![\w%.])"),
    ("S", r"(?<![\w-])(?P<agentic>AgentX|agentic(?:-coding)?|智能体)(?![\w-])"),
    (
        "C",
        rf"(?<![\w-]){_CONC}\s?(?:levels?|list|range|范围|为|of|在)?\s?(?P<rel>[<>]=|[≥≤=:：<>])?\s?(?P<conc>{_LIST})",
    ),
    ("C", r"(?<![\w-])c\s?(?P<rel_c>=)?\s?(?P<conc_c>\d{1,5}(?:\s?[-–/]\s?c?\d{1,5})*+\+?)(?![\w.%])"),
    ("C", r"(?<![\w.])(?P<conc_after>\d{1,5}(?:\s?[-–/]\s?\d{1,5})?)(?:\s|-)?(?:并发|concurrenc(?:y|ies)|concurrent)"),
    ("C", r"(?<![\w-])(?:high(?:er|est)?|low(?:er|est)?|mid|medium)[- ]?conc(?:urrency)?(?![\w])|(?:高|低|中等?)并发"),
    ("Y", r"(?<![\w-])\d+[PD]-(?:TP|DEP|TEP|DP)\d+(?:/\d+[PD]-(?:TP|DEP|TEP|DP)\d+)*+(?![\w])"),
    ("Y", r"(?<![\w-])\d++\s?P\s?[/×x]?\s?\d++\s?D(?![\w])"),
    ("Y", rf"(?<![\w-]){_SIDE}(?:\s?[/+×x&,-]?\s?{_SIDE})*+(?:(?:/\d++){{1,4}}+)?(?!\w|\.\d|\s?%)"),
    ("g", rf"(?<![\w-])(?:\d++\s?[x×]\s?)?(?P<gpu>{_GPU_NAMES})(?![\w-])"),
    ("M", rf"(?<![\w/-])(?P<model>{_MODEL_NAMES})(?!\w)"),
    ("F", rf"(?<![\w/-])(?P<framework>{_FRAMEWORK_NAMES})(?![\w/:-])"),
    ("r", rf"(?<!\w)(?P<precision>{_PRECISION_NAMES})(?!\w)"),
    ("lexicon", lexicon.ENGLISH_PATTERN),
    ("O", r"(?<![\w.])\d++/\d++(?![\w.])"),
    ("mark", lexicon.ARROW_PATTERN),
    ("number", rf"(?=(?:{_APPROX}|[<>≤≥=+\-−–±/\s]){{0,6}}\d)(?!\s)"),
    ("mark", lexicon.MARK_PATTERN),
    ("lexicon", lexicon.CHINESE_PATTERN),
    ("han", r"[\u3400-\u9fff]"),
    ("i", r"[A-Za-z_][A-Za-z0-9_]*+(?:[-.][A-Za-z0-9_]++)*+"),
    ("skip", r"[\s\S]"),
)  # fmt: skip
_SCANNER = re.compile(
    "|".join(f"(?P<k{i}>{pattern})" for i, (_, pattern) in enumerate(_SCAN)), re.IGNORECASE | re.ASCII
)
_PARTICLES = frozenset("了为是其则个被将可均也即仅已达")
_WORD = re.compile(r"[A-Za-z]+(?:['’]s)?")


def scan(text: str, start: int = 0, end: int | None = None) -> tuple[Token, ...]:
    """The tokens of a part of a text, positions in the whole text."""
    return tuple(_scan(text, start, len(text) if end is None else end))


def _scan(text: str, position: int, end: int) -> Iterator[Token]:
    while found := _SCANNER.match(text, position, end):
        row = int(str(found.lastgroup)[1:]) if str(found.lastgroup)[1:].isdigit() else _row_of(found)
        token, position = _read(text, found, _SCAN[row][0], end)
        if token is not None:
            yield token


def _row_of(found: re.Match[str]) -> int:
    """Which entry matched, when a group inside it was the last to close."""
    return next(i for i in range(len(_SCAN)) if found[f"k{i}"] is not None)


def _read(text: str, found: re.Match[str], kind: str, limit: int) -> tuple[Token | None, int]:
    if kind == "number":
        number = _NUMBER.match(text, found.start(), limit)
        if number is None:
            return None, found.start() + 1
        token = _read_number(text, number, limit)
        return token, token.end
    return _READERS.get(kind, _named)(found, kind), found.end()


def _lexical(found: re.Match[str], _: str) -> Token:
    code, word = lexicon.WORDS.get(found[0].lower(), ("_", ""))
    return Token(code, *found.span(), word)


def _han(found: re.Match[str], _: str) -> Token | None:
    return None if found[0] in _PARTICLES else Token("_", *found.span())


def _skip(_: re.Match[str], __: str) -> Token | None:
    return None


def _named(found: re.Match[str], kind: str) -> Token:
    """A name: canonical word of it; an identifier that is plain letters is just a word."""
    if kind == "i" and _WORD.fullmatch(found[0]):
        return Token("_", *found.span())
    if kind == "C":
        return Token("C", *found.span(), items=_concurrency(found))
    return Token(kind, *found.span(), _CANONICAL.get(kind, _as_written)(found))


def _as_written(found: re.Match[str]) -> str:
    return found[0]


_ITEM = re.compile(r"\d+(?:\s?(?:-|–|—|~|\.\.|至|到|\sto\s)\s?(?:c|conc)?\d+)?\+?", re.IGNORECASE | re.ASCII)


def _concurrency(found: re.Match[str]) -> tuple[tuple[int, int | None], ...]:
    words = found["conc"] or found["conc_c"] or found["conc_after"] or ""
    relation = found["rel"] or ""
    return tuple(_span_of(item[0], relation) for item in _ITEM.finditer(words))


def _span_of(item: str, relation: str) -> tuple[int, int | None]:
    low, *rest = (int(part) for part in re.findall(r"\d+", item))
    if item.endswith("+") or relation in (">=", "≥", ">"):
        return (low, None)
    if relation in ("<=", "≤", "<"):
        return (1, low)
    return (low, rest[0] if rest else low)


def _tokens_of(size: str | None) -> str:
    return {"1k": "1024", "8k": "8192", None: "?"}.get(size.lower() if size else None, size or "?")


def _sequence(found: re.Match[str]) -> str:
    if found["agentic"]:
        return "agentic"
    if found["isl_only"]:
        return f"{_tokens_of(re.findall(r'1024|8192|1k|8k', found['isl_only'], re.IGNORECASE | re.ASCII)[-1])}/?"
    return f"{_tokens_of(found['isl'] or found['in'])}/{_tokens_of(found['osl'] or found['out'])}"


def _layout(found: re.Match[str]) -> str:
    return re.sub(r"[\s=]|(?<=[A-Za-z])-(?=\d)", "", found[0]).upper().replace("×", "X")


def _model(found: re.Match[str]) -> str:
    word = re.sub(r"-\d+b(?:-a\d+b)?$|-0528$|[- ]?pro$", "", found["model"].lower())
    short = re.sub(r"[- ]", "", word).replace("deepseek", "ds")
    family = "llama70b" if short.startswith("llama") else "gptoss" if short.startswith("gptoss") else short
    return identity.MODELS.get(family, family)


def _gpu(found: re.Match[str]) -> str:
    squeezed = re.sub(r"\s", "", found["gpu"].lower())
    return {"rtxpro6000": "rtx6000pro", "rtx6000": "rtx6000pro"}.get(squeezed, squeezed)


def _framework(found: re.Match[str]) -> str:
    word = found["framework"].lower().replace(" ", "-")
    word = {"tensorrt-llm": "trt", "tensorrtllm": "trt", "trt-llm": "trt"}.get(word, word)
    return identity.FRAMEWORKS.get(word, word)


def _precision(found: re.Match[str]) -> str:
    return identity.PRECISIONS.get(found["precision"].lower(), "")


_CANONICAL: dict[str, Callable[[re.Match[str]], str]] = {
    "S": _sequence,
    "Y": _layout,
    "g": _gpu,
    "M": _model,
    "F": _framework,
    "r": _precision,
}
_READERS: dict[str, Callable[[re.Match[str], str], Token | None]] = {
    "lexicon": _lexical,
    "mark": _lexical,
    "han": _han,
    "skip": _skip,
}
