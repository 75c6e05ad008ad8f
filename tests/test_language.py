"""Every word of a report is in the catalogs, in every language, with the same values."""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_python
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from jinja2.ext import babel_extract

from reports import doubts, parity
from reports.language import CATALOGS, LOCALE, Language, Phrase, phrase, slots
from reports.phrases import HEADLINES, VERDICTS, metric_name
from store.metrics import METRICS
from store.records import Caveat, Verdict

REPORTS = LOCALE.parent
PO = LOCALE / "zh_CN" / "LC_MESSAGES" / "reports.po"
OPTIONS = {"trim_blocks": "true", "lstrip_blocks": "true", "silent": "false"}


def catalog() -> Catalog:
    with PO.open("rb") as file:
        return read_po(file, locale="zh_CN", domain="reports")


def messages() -> list[Message]:
    return [message for message in catalog() if message.id]


def used() -> set[str]:
    """Message ids in Python and in the templates, found as `pybabel extract` finds them."""
    found: set[str] = set()
    for path in REPORTS.rglob("*.py"):
        for _, _, marked, _ in extract_python(io.BytesIO(path.read_bytes()), {"N_": None}, (), {}):
            found.add(str(marked))
    for path in (REPORTS / "templates").glob("*.j2"):
        for _, _, printed, _ in babel_extract(io.BytesIO(path.read_bytes()), ("_",), (), OPTIONS):
            found.add(printed if isinstance(printed, str) else str((printed or ("",))[0]))
    return found


def test_the_compiled_catalog_is_the_written_one() -> None:
    compiled = io.BytesIO()
    write_mo(compiled, catalog())
    assert PO.with_suffix(".mo").read_bytes() == compiled.getvalue()


def test_the_catalog_holds_exactly_what_is_said() -> None:
    assert {str(message.id) for message in messages()} == used()


def test_no_message_is_untranslated_fuzzy_or_plural() -> None:
    assert [m.id for m in messages() if not m.string or m.fuzzy or not isinstance(m.id, str)] == []


def test_both_languages_hold_the_same_values_and_digits() -> None:
    for message in messages():
        english, chinese = str(message.id), str(message.string)
        assert sorted(set(slots(english))) == sorted(set(slots(chinese))), english
        assert re.findall(r"\d+", re.sub(r"%\(\w+\)s", "", english)) == re.findall(
            r"\d+", re.sub(r"%\(\w+\)s", "", chinese)
        ), english


def test_the_chinese_catalog_uses_the_agreed_terms() -> None:
    def bare(text: object) -> str:
        return re.sub(r"%\(\w+\)s", "", str(text))

    assert [flaw for m in messages() for flaw in parity.agreed(bare(m.id), bare(m.string))] == []


@pytest.mark.parametrize("value", ["7", "x1", "每 GPU 吞吐量"])
def test_the_chinese_catalog_is_set_as_its_readers_expect(value: str) -> None:
    for message in messages():
        names = slots(str(message.id))
        said = Language("zh").say(phrase(str(message.id), **dict.fromkeys(names, value)))
        assert parity.typography(said) == (), said


def test_no_message_says_why_something_moved() -> None:
    causal = re.compile(r"\bbecause|caused? by|\bdue to\b|thanks to|由于|因为|导致|造成|归因", re.IGNORECASE)
    assert [m.id for m in messages() if causal.search(f"{m.id} {m.string}")] == []


def test_verdicts_and_metrics_have_words_in_every_language() -> None:
    assert set(VERDICTS) == set(HEADLINES) == set(Verdict)
    for key in METRICS:
        name = metric_name(key)
        for code in ("en", *CATALOGS):
            assert Language(code).say(name)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("每 GPU 吞吐量", "每 GPU 吞吐量下降 8.2%"),
        ("P99 TTFT", "P99 TTFT 下降 8.2%"),
        (r"\`x\`", r"\`x\` 下降 8.2%"),
        ("准确率（严格匹配）", "准确率（严格匹配）下降 8.2%"),
    ],
)
def test_one_blank_stands_between_han_and_latin_at_a_value(value: str, said: str) -> None:
    assert Language("zh").say(phrase("%(metric)s fell by %(size)s", metric=value, size="8.2%")) == said


def test_a_number_must_be_made_text_before_it_is_said() -> None:
    with pytest.raises(TypeError, match="number filter"):
        phrase("%(number)s of %(total)s", number=2, total="12")  # type: ignore[arg-type]


def test_english_is_the_message_itself() -> None:
    assert Language("en").say(Phrase("95%% interval %(interval)s", (("interval", "-1% to 1%"),))) == (
        "95% interval -1% to 1%"
    )


# ---- codes ---------------------------------------------------------------------------------------------------


def test_a_code_without_a_sentence_is_said_by_name() -> None:
    caveat = Caveat.of("solar_flare", strength=3, place="north")
    assert Language("en").say(doubts.sentence(caveat)) == "Caveat solar_flare (strength=3, place=north)."
    assert Language("zh").say(doubts.sentence(caveat)) == "注意事项 solar_flare（strength=3、place=north）。"
    assert Language("en").say(doubts.sentence(Caveat("solar_flare"))) == "Caveat solar_flare."


def test_a_sentence_that_lacks_a_value_gives_way_to_a_shorter_one() -> None:
    short, full = (
        doubts.sentence(Caveat.of("failed_requests", **values)) for values in ({}, {"failed": 2, "total": 9})
    )
    assert Language("en").say(short) == "Too many requests failed."
    assert Language("en").say(full) == "Failed requests: 2 of 9."


def test_of_several_sentences_the_last_needs_no_value() -> None:
    several = {code: sentences for code, sentences in doubts.SENTENCES.items() if len(sentences) > 1}
    assert [code for code, sentences in several.items() if slots(sentences[-1])] == []


_NAMED = {"Flaw": 1, "Unreadable": 0, "rejected": 1}
"""Which argument of a call names the reason of a rejection."""


def _strings(node: ast.expr) -> Iterator[str]:
    """Literal codes of an argument; both arms of a conditional expression."""
    if isinstance(node, ast.IfExp):
        yield from (*_strings(node.body), *_strings(node.orelse))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def _codes(path: Path) -> Iterable[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        is_caveat = name == "Caveat" or (name == "of" and isinstance(owner, ast.Name) and owner.id == "Caveat")
        place = 0 if is_caveat else _NAMED.get(name, -1) if "readers" in path.parts or name == "rejected" else -1
        if 0 <= place < len(node.args):
            yield from _strings(node.args[place])


def test_every_code_that_the_product_can_emit_has_a_sentence() -> None:
    root = REPORTS.parent
    files = [*(root / "store").rglob("*.py"), *(root / "tracker").rglob("*.py")]
    emitted = {code for path in files for code in _codes(path)}
    assert emitted, "the product emits codes"
    assert emitted - set(doubts.SENTENCES) == set()
