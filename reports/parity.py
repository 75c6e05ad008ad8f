"""Checks that two languages say the same, and that Chinese text is set as its readers expect.

`parity` compares an English and a Chinese text; `typography` looks at Chinese, `english` at English; `lint_text` does
what a text needs. Every fault is a `Flaw` with a code, a line and what was found; no flaw means that the text passes.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache
from pathlib import Path

GLOSSARY = Path(__file__).parent / "locale" / "glossary.toml"
SEPARATOR = " / "
"""Stands once between the halves of a title; an image reference has slashes without blanks."""


@dataclass(frozen=True, slots=True)
class Flaw:
    """One fault of a text."""

    code: str
    line: int
    detail: str


@dataclass(frozen=True, slots=True)
class Term:
    """An agreed word pair, and the words that must not stand in its place."""

    english: str
    chinese: tuple[str, ...]
    avoid: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def glossary() -> tuple[Term, ...]:
    """The agreed terms, from the file beside the catalogs."""
    rows = tomllib.loads(GLOSSARY.read_text(encoding="utf-8"))["term"]
    return tuple(Term(row["en"], tuple(row["zh"]), tuple(row.get("avoid", ()))) for row in rows)


# ---- what a text states --------------------------------------------------------------------------------------

_LINK = re.compile(r"https?://[^\s<>()\[\]|（），。；：、”]+")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TAG = re.compile(r"</?[a-z][^>]*>")
_ESCAPED = re.compile(r"\\([\\`*_\[\]<>|~&$#!])")
_IDENTIFIER = re.compile(r"(?<![A-Za-z0-9])(?:--)?[A-Za-z0-9][A-Za-z0-9_./:@#+×-]*(?:\.\.\.)?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:T[\d:.]+Z?)?")
_NUMBER = re.compile(
    r"(?P<number>\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)\s*"
    r"(?P<unit>%|％|percentage points?\b|个百分点|pp\b|times\b|倍|[x×](?![A-Za-z0-9]))?"
)
_UNITS = {"%": "%", "％": "%", "percentage point": "pp", "percentage points": "pp", "个百分点": "pp", "pp": "pp"}
_TIMES = {"times": "x", "倍": "x", "x": "x", "×": "x"}
_FALLS = re.compile(
    r"(?:(?:fell|falls|fall|dropped|down|decreased|lower)(?:\s+by)?|下降了?|降低了?|减少了?|下跌了?)\s*(?:约|~)?\s*$",
    re.I,
)
_SIGNED = re.compile(r"(?:^|[^\w.%)\]])[-−]$")
_PLAIN_WORD = re.compile(r"[A-Za-z][a-z]*(?:[-/][a-z]+)*[.:]*")


def links(text: str) -> Counter[str]:
    """Addresses in a text.

    >>> sorted(links("see https://a.example/x。"))
    ['https://a.example/x']
    """
    return Counter(found.rstrip(".,;:") for found in _LINK.findall(text))


def identifiers(text: str) -> Counter[str]:
    """Words that no language translates: keys, image references, flags, units, versions, dates, capital names.

    >>> sorted(identifiers("Bump 2xDEP8 of dsr1-fp8 to v0.5.12, TPOT in tok/s/GPU"))
    ['2xDEP8', 'TPOT', 'dsr1-fp8', 'tok/s/GPU', 'v0.5.12']
    """
    words = map(_trimmed, _IDENTIFIER.findall(_bare(text)))
    return Counter(_one_spelling(word) for word in words if _is_identifier(word))


def _one_spelling(word: str) -> str:
    """`2×DEP8` is `2xDEP8`, and GPUs are GPU: Chinese has no plural."""
    return re.sub(r"^([A-Z]{2,})s$", r"\1", word.replace("×", "x"))


def numbers(text: str) -> Counter[tuple[Decimal, str]]:
    """Numbers with their unit and sign: `fell by 3.2%` and `下降 3.2%` are both -3.2 %; 倍 is x, 约 and ~ are nothing.

    >>> numbers("吞吐量下降 3.2%（约 2.9 倍）") == numbers("throughput -3.2 % (~2.9x)")
    True
    """
    bare = _IDENTIFIER.sub(_blanked, _bare(text))
    return Counter(_read(bare, found) for found in _NUMBER.finditer(bare))


def _blanked(found: re.Match[str]) -> str:
    """An identifier as blanks, so that its digits are no numbers; other words as they are."""
    word = _trimmed(found.group())
    return " " * len(word) + found.group()[len(word) :] if _is_identifier(word) else found.group()


def _trimmed(word: str) -> str:
    return word if word.endswith("...") else word.rstrip(".:/-@+#×")


@lru_cache(maxsize=16)
def _bare(text: str) -> str:
    """The text without links, comments, tags and escapes: what is left states something."""
    for pattern in (_COMMENT, _TAG, _LINK):
        text = pattern.sub(lambda found: " " * len(found.group()), text)
    return _ESCAPED.sub(r"\1", text).replace("\u200b", "")


@lru_cache(maxsize=65536)
def _is_identifier(word: str) -> bool:
    """Letters with digits, a path, a flag, a date, or two capitals: all that a translator must leave alone."""
    if _DATE.fullmatch(word):
        return True
    if re.fullmatch(r"[\d.,]+[x×]?|\d+(?:\.\d+)?[-–]\d+(?:\.\d+)?", word) or _PLAIN_WORD.fullmatch(word):
        return False
    has_letter, has_digit = (any(test(c) for c in word) for test in (str.isalpha, str.isdigit))
    is_path = any(c in word for c in "/_@") or word.startswith("--")
    return (has_letter and (has_digit or is_path)) or sum(c.isupper() for c in word) > 1 or (is_path and has_digit)


def _read(text: str, found: re.Match[str]) -> tuple[Decimal, str]:
    value = Decimal(found["number"].replace(",", ""))
    unit = (found["unit"] or "").strip()
    before = text[max(0, found.start() - 24) : found.start()]
    falls = bool(_SIGNED.search(before) or _FALLS.search(before))
    return (-value if falls else value), _UNITS.get(unit) or _TIMES.get(unit, "")


# ---- parity --------------------------------------------------------------------------------------------------


def parity(english: str, chinese: str) -> tuple[Flaw, ...]:
    """Everything that one half states and the other does not: numbers, links, identifiers, bullets, table rows.

    >>> [flaw.detail for flaw in parity("peak 2085 -> 6003 (2.9x)", "峰值 2085 → 6003（2.6 倍）")]
    ['only in English: 2.9 x', 'only in Chinese: 2.6 x']
    """
    kinds: tuple[tuple[str, Callable[[str], Counter[str]]], ...] = (
        ("numbers", lambda text: Counter(_shown(key) for key in numbers(text).elements())),
        ("links", links),
        ("identifiers", identifiers),
    )
    found = [Flaw(code, 0, detail) for code, read in kinds for detail in _unequal(read(english), read(chinese))]
    for code, count in (("bullets", _bullets), ("rows", _rows)):
        if count(english) != count(chinese):
            found.append(Flaw(code, 0, f"{count(english)} in English, {count(chinese)} in Chinese"))
    return tuple(found)


def _shown(number: tuple[Decimal, str]) -> str:
    return f"{number[0].normalize():f} {number[1]}".strip()


def _unequal(english: Counter[str], chinese: Counter[str]) -> Iterator[str]:
    yield from (f"only in English: {item}" for item in sorted((english - chinese).elements()))
    yield from (f"only in Chinese: {item}" for item in sorted((chinese - english).elements()))


def _bullets(text: str) -> int:
    return len(re.findall(r"^\s*[-*•] ", text, re.MULTILINE))


def _rows(text: str) -> int:
    return len(re.findall(r"^\|", text, re.MULTILINE))


# ---- typography ----------------------------------------------------------------------------------------------

_HAN = r"[\u3007\u3400-\u4dbf\u4e00-\u9fff]"
_FULL = r"[，。：；（）、？！“”《》]"
_RULES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("spacing", re.compile(rf"{_HAN}[A-Za-z0-9`]|[A-Za-z0-9%`]{_HAN}")),
    ("punctuation", re.compile(rf"{_HAN}[,:;()!?.](?![A-Za-z0-9]*[/\\])|\({_HAN}|{_HAN}\)")),
    ("blank", re.compile(rf"(?<=[^\s|])[ \t]+{_FULL}|[，。：；）、？！”》][ \t]+(?=[^\s|])|[（“《][ \t]")),
    ("width", re.compile(r"[\uff05\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\u3000]")),
    ("percent", re.compile(r"\d[ \t]+[%％]")),
)
_MESSAGES = {
    "spacing": "one blank belongs between Han and Latin or digits",
    "punctuation": "full-width punctuation belongs beside Han",
    "blank": "no blank belongs beside full-width punctuation",
    "width": "Latin letters, digits and the percent sign are half-width",
    "percent": "the percent sign stands at its number",
    "traditional": "simplified characters only",
    "glossary": "another word is agreed",
    "token": "an identifier or unit is spelt another way",
    "emphasis": "CommonMark does not read this as emphasis",
    "separator": "exactly one separator parts the halves",
    "han": "English text holds no Han and no full-width mark",
}
_CODE = re.compile(r"```.*?```|`[^`\n]*`|https?://[^\s<>()|（），。；：、]+", re.DOTALL)
_TRADITIONAL_IN_GB = frozenset("於後乾麼徵藉餘瞭裏")
"""Traditional forms that the simplified character set happens to hold."""
_TOKENS = ("tok/s/GPU", "tok/s/user", "TTFT", "TPOT", "E2EL", "GSM8K", "SGLang", "vLLM", "GPU")
_ANY_TOKEN = re.compile(rf"(?<![\w/.-])(?:{'|'.join(map(re.escape, _TOKENS))})(?![\w/-])", re.IGNORECASE)


def typography(chinese: str) -> tuple[Flaw, ...]:
    """Faults of Chinese text, code and links left out.

    >>> [flaw.code for flaw in typography("在H200 上,吞吐量下降 3.2 ％。")]
    ['spacing', 'punctuation', 'width', 'percent']
    """
    text = _without_code(chinese)
    found = [_flaw(code, text, match) for code, pattern in _RULES for match in pattern.finditer(text)]
    return (*found, *_traditional(text), *_terms(text), *_tokens(text), *emphasis(chinese))


def _without_code(text: str) -> str:
    """Code and links as neutral marks of the same length, so that places stay true."""
    masked = _CODE.sub(lambda found: "".join(c if c == "\n" else "X" for c in found.group()), text)
    return _COMMENT.sub(lambda found: "".join(c if c == "\n" else " " for c in found.group()), masked)


def _flaw(code: str, text: str, found: re.Match[str]) -> Flaw:
    around = text[max(0, found.start() - 4) : found.end() + 4].replace("\n", " ")
    return Flaw(code, _line(text, found.start()), f"{_MESSAGES[code]}: {around.strip()}")


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _traditional(text: str) -> Iterator[Flaw]:
    for found in re.finditer(_HAN, text):
        if not _is_simplified(found.group()):
            yield _flaw("traditional", text, found)


@cache
def _is_simplified(char: str) -> bool:
    """GB 2312 holds the simplified characters in common use; traditional forms are not in it."""
    if char in _TRADITIONAL_IN_GB:
        return False
    try:
        char.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return True


def _terms(text: str) -> Iterator[Flaw]:
    for term in glossary():
        for word in term.avoid:
            for found in re.finditer(re.escape(word), text):
                detail = f"{word}: {term.english} is {' or '.join(term.chinese)}"
                yield Flaw("glossary", _line(text, found.start()), detail)


def _tokens(text: str) -> Iterator[Flaw]:
    for found in _ANY_TOKEN.finditer(text):
        if found.group() not in _TOKENS:
            yield _flaw("token", text, found)


def emphasis(markdown: str) -> tuple[Flaw, ...]:
    """Double stars that CommonMark leaves as stars: `**结论：**后文` needs a blank, or the mark outside.

    >>> [flaw.code for flaw in emphasis("**结论：**后文")], emphasis("**结论**：后文")
    (['emphasis', 'emphasis'], ())
    """
    text = re.sub(r"\\.", "XX", _CODE.sub(lambda found: "X" * len(found.group()), markdown))
    found: list[Flaw] = []
    at = 0
    for block in re.split(r"(\n\s*\n)", text):
        found += [_star(text, at + place) for place in _unpaired(block)]
        at += len(block)
    return tuple(found)


def _star(text: str, at: int) -> Flaw:
    around = text[max(0, at - 4) : at + 6].replace("\n", " ")
    return Flaw("emphasis", _line(text, at), f"{_MESSAGES['emphasis']}: {around.strip()}")


def _unpaired(block: str) -> list[int]:
    """Places of double stars that neither open nor close an emphasis."""
    open_at: list[int] = []
    lost: list[int] = []
    for found in re.finditer(r"\*{2,}", block):
        before, after = block[found.start() - 1 : found.start()], block[found.end() : found.end() + 1]
        if open_at and _closes(before, after):
            open_at.pop()
        elif _opens(before, after):
            open_at.append(found.start())
        else:
            lost.append(found.start())
    return sorted(lost + open_at)


def _opens(before: str, after: str) -> bool:
    """Left-flanking: no blank after, and a mark after only where a blank or a mark stands before."""
    return not _is_blank(after) and (not _is_mark(after) or _is_blank(before) or _is_mark(before))


def _closes(before: str, after: str) -> bool:
    return _opens(after, before)


def _is_blank(char: str) -> bool:
    return not char or char.isspace()


def _is_mark(char: str) -> bool:
    return bool(char) and unicodedata.category(char)[0] in "PS"


def english(text: str) -> tuple[Flaw, ...]:
    """Faults of English text: Han or full-width marks, and emphasis that does not render."""
    plain = _without_code(text)
    wide = re.compile(rf"{_HAN}|[，。：；（）、？！]")
    return (*(_flaw("han", plain, found) for found in wide.finditer(plain)), *emphasis(text))


def title(text: str) -> tuple[Flaw, ...]:
    """Faults of a bilingual line: one separator, and both halves say the same.

    >>> title("bump image to v0.5.12 / 升级镜像至 v0.5.12")
    ()
    """
    halves = text.strip().split(SEPARATOR)
    if len(halves) != 2:
        return (Flaw("separator", 1, f"{_MESSAGES['separator']}: {len(halves) - 1} found"),)
    return (*english(halves[0]), *typography(halves[1]), *parity(*halves))


def lint_text(text: str, lang: str) -> tuple[Flaw, ...]:
    """Faults of a text in `en`, `zh`, or `both`: a bilingual line, or an English block and a Chinese one.

    The blocks of `both` are parted by a line `---`, or the Chinese one begins with `## 中文说明` or `中文：`.
    """
    if lang not in _LINTS:
        raise ValueError(f"no language {lang!r}: choose from {', '.join(_LINTS)}")
    return _LINTS[lang](text)


_BLOCKS = re.compile(r"^(?:---|## 中文说明|中文：)\s*$|^中文：", re.MULTILINE)


def _both(text: str) -> tuple[Flaw, ...]:
    subject, body = _split_subject(text)
    faults = title(subject) if subject else ()
    if not body.strip():
        return faults
    parts = _BLOCKS.split(body, maxsplit=1)
    if len(parts) != 2:
        return (*faults, Flaw("separator", 1, _MESSAGES["separator"]))
    above, below = parts
    start = text[: len(text) - len(below)].count("\n")
    moved = (Flaw(flaw.code, flaw.line + start, flaw.detail) for flaw in typography(below))
    return (*faults, *english(above), *moved, *parity(above, below))


def _split_subject(text: str) -> tuple[str, str]:
    """A first line that is bilingual itself, and the rest; a text of one line is all subject."""
    first, _, rest = text.strip().partition("\n")
    is_subject = not rest or (SEPARATOR in first and re.search(_HAN, first) is not None)
    return (first, rest) if is_subject else ("", text)


_LINTS: Mapping[str, Callable[[str], tuple[Flaw, ...]]] = {"en": english, "zh": typography, "both": _both}


def agreed(english_text: str, chinese_text: str) -> Iterable[Flaw]:
    """Terms of the glossary that an English message uses and its Chinese one does not."""
    for term in glossary():
        is_used = re.search(rf"\b{re.escape(term.english)}\b", english_text, re.IGNORECASE)
        if is_used and not any(word in chinese_text for word in term.chinese):
            yield Flaw("glossary", 0, f"{term.english} is {' or '.join(term.chinese)}: {chinese_text}")
