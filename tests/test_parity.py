"""Two languages state the same, and Chinese text is set by one house style."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from reports import parity
from reports.parity import Flaw


def codes(found: tuple[Flaw, ...]) -> list[str]:
    return [flaw.code for flaw in found]


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("8k1k peak ~2085 -> ~6003 tok/s/GPU (~2.9x)", "8k1k 峰值约 2085 → 6003 tok/s/GPU（约 2.9 倍）"),
        ("DP2 is 30-47% worse", "DP2 差 30–47%"),
        ("throughput fell by 3.2%", "吞吐量下降 3.2%"),
        ("throughput -3.2 %", "吞吐量下降 3.2%"),
        ("fell by 2.0 percentage points", "下降 2.0 个百分点"),
        ("rose to 2.88 times the baseline", "升至基线的 2.88 倍"),
        ("2xDEP8 to 1xDEP16", "2×DEP8 合并为 1×DEP16"),
        ("8 GPUs, run 29039061173", "8 张 GPU，run 29039061173"),
        ("1,336.0 tok/s/GPU", "1336.0 tok/s/GPU"),
        ("see https://a.example/x/1.", "见 https://a.example/x/1。"),
        ("(p < 0.0001, 3 runs)", "（p < 0.0001，3 次运行）"),
    ],
)
def test_texts_that_say_the_same_have_parity(english: str, chinese: str) -> None:
    assert parity.parity(english, chinese) == ()


@pytest.mark.parametrize(
    ("english", "chinese", "code"),
    [
        ("peak (2.9x)", "峰值（2.6 倍）", "numbers"),
        ("throughput -3.2 %", "吞吐量 3.2%", "numbers"),
        ("rose by 2.9%", "上升 2.9 倍", "numbers"),
        ("fell by 2.0%", "下降 2.0 个百分点", "numbers"),
        ("Bump to nightly-2afa3f7e950264bb", "升级至 nightly-2afa3f7e...", "identifiers"),
        ("TPOT in tok/s/GPU", "TPOT，单位 tok/s/gpu", "identifiers"),
        ("see https://a.example/x", "见 https://a.example/y", "links"),
        ("- a\n- b", "- 甲", "bullets"),
        ("| a |\n| b |", "| 甲 |", "rows"),
    ],
)
def test_a_difference_is_found_and_named(english: str, chinese: str, code: str) -> None:
    assert code in codes(parity.parity(english, chinese))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("在 H200 上，吞吐量下降 3.2%（1000.0 → 968.0 tok/s/GPU）。", None),
        ("在H200 上。", "spacing"),
        ("下降3.2%。", "spacing"),
        ("运行 `x`正常。", "spacing"),
        ("在 H200 上,下降。", "punctuation"),
        ("分离式(disagg) 配置。", "punctuation"),
        ("下降 3.2 ％。", "width"),
        ("下降 3.2 %。", "percent"),
        ("下降 3.2% ，需要重跑。", "blank"),
        ("解码拓扑： 原有。", "blank"),
        ("核函式優化。", "traditional"),
        ("将图像升级。", "glossary"),
        ("产出工件。", "glossary"),
        ("吞吐量 968.0 tok/s/gpu。", "token"),
        ("**结论：**后文。", "emphasis"),
        ("**结论**：后文。", None),
        ("```\n在H200,上\n```", None),
        ("链接 https://a.example/中(x) 。", "blank"),
    ],
)
def test_each_fault_of_chinese_setting_is_found(text: str, code: str | None) -> None:
    found = codes(parity.typography(text))
    assert (code in found) if code else found == []


def test_a_flaw_names_its_line() -> None:
    (flaw,) = parity.typography("第一行。\n在H200 上。")
    assert (flaw.code, flaw.line) == ("spacing", 2)


@pytest.mark.parametrize(
    "text",
    [
        "**结论：**后文",
        "**结论**：后文",
        "“**重要**”内容",
        "前文**（注）**后文",
        "前文 **（注）** 后文",
        "a**b**c",
        "**x.** y",
    ],
)
def test_emphasis_is_judged_as_commonmark_renders_it(text: str) -> None:
    html = MarkdownIt("commonmark").render(text)
    assert (parity.emphasis(text) == ()) == ("<strong>" in html and "**" not in html)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("bump image to a/b:v0.5.12 / 升级镜像至 a/b:v0.5.12", []),
        ("bump image to v0.5.12", ["separator"]),
        ("a / b / 甲", ["separator"]),
        ("bump to v0.5.12 / 升级至 v0.5.11", ["identifiers", "identifiers"]),
    ],
)
def test_a_title_has_one_separator_and_two_equal_halves(text: str, found: list[str]) -> None:
    assert codes(parity.lint_text(text, "both")) == found


@pytest.mark.parametrize("middle", ["---", "## 中文说明", "中文："])
def test_a_text_in_both_languages_is_split_where_the_conventions_split_it(middle: str) -> None:
    good = f"Peak 2085 tok/s/GPU.\n\n{middle}\n\n峰值 2085 tok/s/GPU。\n"
    assert parity.lint_text(good, "both") == ()
    assert codes(parity.lint_text(good.replace("峰值 2085", "峰值 2086"), "both")) == ["numbers", "numbers"]
    (flaw,) = parity.lint_text(good.replace("峰值 ", "峰值"), "both")
    assert (flaw.code, flaw.line) == ("spacing", 5)


def test_english_text_holds_no_chinese_marks() -> None:
    assert codes(parity.lint_text("a，b 中", "en")) == ["han", "han"]
    assert parity.lint_text("plain text", "en") == ()


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(ValueError, match="choose from en, zh, both"):
        parity.lint_text("x", "de")


def test_glossary_terms_do_not_contradict_themselves() -> None:
    terms = parity.glossary()
    assert len(terms) > 30
    agreed = {word for term in terms for word in term.chinese}
    assert agreed.isdisjoint(word for term in terms for word in term.avoid)


@pytest.mark.shared
def test_the_reference_pairs_are_told_apart(shared: Path) -> None:
    """Case 46."""
    pairs = json.loads((shared / "cases/46-number-parity/pairs.json").read_text(encoding="utf-8"))
    found = [{flaw.code for flaw in parity.parity(pair["en"], pair["zh"])} for pair in pairs]
    assert found == [set(), {"numbers"}, {"numbers"}, {"identifiers"}]


@pytest.mark.shared
def test_the_reference_sentences_have_their_named_faults(shared: Path) -> None:
    """Case 47."""
    sentences = json.loads((shared / "cases/47-chinese-typography/sentences.json").read_text(encoding="utf-8"))
    wanted = [None, "spacing", "punctuation", "width", "blank", "traditional", "glossary"]
    for sentence, code in zip(sentences, wanted, strict=True):
        found = codes(parity.typography(sentence))
        assert (code in found) if code else found == []
