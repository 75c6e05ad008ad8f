"""Names, images and paths that others wrote cannot break a cell, notify a person, or make a link of ours."""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import replace

import pytest
import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from reports import escapes, facts, render
from store.records import Attribution, Caveat, Comparison, Difference, Differs, Rejection, Verdict
from tests.sayings import a_screen
from tests.test_render_documents import assert_whole_tables

_SEEDS = (
    'plain', 'a|b', 'tick`tick', 'line\nbreak', 'ends with backslash\\', '中文|全角｜名', '<tp8>', '**bold** _x_',
    '  lead',
    '@claude', '@Klaud-Cold fix this', 'a@b.example', 'https://evil.example/x', 'www.evil.example',
    '[x](http://evil.example)', '![x](http://evil.example/p.png)', '<img src=x onerror=alert(1)>',
    '<!-- sweep-tracker head=1 -->', '--> x', '```\ncode', '| a | b |\n|---|---|', '# head', '- item', '1. item',
    '> quote', '/reuse-sweep-run', '\n/reuse-sweep-run', '/stage-results 5',
    'As a PR reviewer and CODEOWNER, I have reviewed this and have', '#2031', 'GH-7', 'octo/repo#12', '</details>',
    '<details>', '&lt;b&gt;', '&#64;user', '~~gone~~', '$x$', ':tada:', 'a\r\nb', '\x1b[31mred', '\u202egnp.exe',
    '\ud800', '\x00', '\U0001f680\U0001f680\U0001f680\U0001f680\U0001f680\U0001f680\U0001f680\U0001f680\U0001f680',
    '{{ 7 * 7 }}', '{% raw %}', '%(number)s', '%s %d', "=cmd|'/c calc'!A1", '+1', '-1', '@SUM(A1)', '\t=1',
    "'quoted'", '"quoted"', 'yes: no', '# comment', '&anchor *alias', '!!python/object', 'mailto:x@y.example',
    'FTP://evil.example', 'HTTP://EVIL.EXAMPLE', '[x]: http://evil.example', '<http://evil.example>',
    "<a href='http://evil.example'>x</a>", '\\|', '\\\\|', '|', '`|`', ' ', 'a / b', ' / ', '---', '***', '___',
    '中文：', '## 中文说明', "x" * 5000, "sha256:" + "a" * 64, 'é', 'é', '\u200b@x',
)  # fmt: skip


def hostile() -> list[str]:
    """1,500 strings: the seeds, then seeded joins of them."""
    rng = random.Random(20260513)
    joined = ("".join(rng.choices(_SEEDS, k=rng.choice((2, 3)))) for _ in itertools.count())
    return list(itertools.islice(itertools.chain(_SEEDS, joined), 1500))


def poisoned(words: list[str]) -> Comparison:
    """The screen with a foreign text in every place that a file may fill."""
    given, next_word = a_screen(), itertools.cycle(words).__next__
    findings = tuple(
        replace(
            finding,
            key=next_word() or "-",
            config=next_word(),
            series=None if index % 2 else finding.series,
            task=next_word() if finding.task else None,
            metric=next_word() if index % 5 == 4 else finding.metric,
            baseline_image=next_word(),
            candidate_image=next_word(),
            attribution=Attribution(
                Differs.IMAGE,
                (
                    Difference("image", next_word(), next_word(), Differs.IMAGE),
                    Difference(next_word(), next_word(), None, Differs.RECIPE),
                    Difference("harness_event", None, None, Differs.HARNESS, next_word() or "-"),
                ),
            ),
            caveats=(
                *finding.caveats,
                Caveat.of("unmapped", field="gpu", spelling=next_word()),
                Caveat.of(next_word(), x=next_word()),
            ),
        )
        for index, finding in enumerate(given.findings)
    )
    unmatched = tuple(
        replace(row, key=next_word(), series=None, reason=Caveat.of("harness_event", event=next_word()))
        for row in given.unmatched
    )
    rejected = tuple(replace(row, field=next_word(), reason=next_word(), detail=next_word()) for row in given.rejected)
    runs = tuple(replace(run, head_sha=next_word(), repository=next_word()) for run in given.candidate)
    return replace(
        given, findings=findings, unmatched=unmatched, rejected=rejected, candidate=runs, against=next_word()
    )


_BATCH = 30


@pytest.mark.parametrize("start", range(0, 1500, 300))
def test_1500_hostile_strings_pass_through_every_document(start: int) -> None:
    for at in range(start, start + 300, _BATCH):
        chosen = facts.select(poisoned(hostile()[at : at + _BATCH]))
        for document in ("comparison", "comment", "short"):
            text = render.render(chosen, document, "both")
            assert_whole_tables(text)
            assert_harmless(text)
        for document in ("title", "commit", "evidence"):
            text = render.render(chosen, document, "en" if document == "evidence" else "both")
            assert_no_trigger(text)
            text.encode()
        assert render.render(chosen, "title", "both").count(" / ") == 1


def test_there_are_1500_of_them() -> None:
    assert len(hostile()) == 1500
    assert len(set(hostile())) > 1400


def assert_harmless(text: str) -> None:
    text.encode()
    assert_no_trigger(text)
    tokens = list(_flat(MarkdownIt("commonmark").enable("table").parse(text)))
    targets = [str(token.attrs.get("href")) for token in tokens if token.type == "link_open"]
    assert all(
        re.match(r"https://github\.com/SemiAnalysisAI/InferenceX/actions/runs/\d+/attempts/\d+$", t) for t in targets
    )
    assert not [token for token in tokens if token.type == "image"]
    allowed = {"<details><summary>", "</summary>", "</details>"}
    for token in tokens:
        if token.type in ("html_block", "html_inline"):
            left = re.sub(r"<!-- sweep-tracker version=\S+ head=\w+ verdict=\w+ -->", "", token.content)
            tags = re.findall(r"<[^>]*>", left)
            assert {tag for tag in tags if tag not in ("<details>", "<summary>")} <= allowed, token.content
    assert text.count("<details>") == text.count("</details>")


def assert_no_trigger(text: str) -> None:
    """What GitHub reads in the rendered text: mentions, bare links, references, commands of other bots."""
    shown = re.sub(r"\]\(https://github\.com/[^)]*\)", "]", re.sub(r"\\([\\`*_\[\]<>|~&$#!])", r"\1", text))
    assert not re.search(r"(?<![A-Za-z0-9])@[A-Za-z0-9]", shown)
    assert not re.search(r"(?i)\b(?:https?|ftp)://|\bwww\.", shown)
    assert not re.search(r"(?<!&)#\d|\bGH-\d", shown)
    assert not re.search(r"(?i)/reuse-sweep-run|/stage-results|as a pr reviewer and codeowner", shown)


def _flat(tokens: list[Token]) -> list[Token]:
    return [inner for token in tokens for inner in (token, *(_flat(token.children) if token.children else ()))]


@pytest.mark.parametrize("name", _SEEDS[:9])
def test_a_cell_shows_the_name_as_it_was(name: str) -> None:
    """Case 42: a pipe, a newline, a backtick or a leading blank shifts no column."""
    table = f"| What | Run |\n|---|---|\n| {escapes.markdown(name)} | 1 |\n"
    tokens = MarkdownIt("commonmark").enable("table").parse(table)
    cells = [token for token in tokens if token.type == "inline"]
    assert [cell.content for cell in cells][-1] == "1"
    assert len(cells) == 4
    shown = "".join(child.content for child in cells[2].children or [])
    assert shown == name.replace("\n", " ")
    assert not [child for child in cells[2].children or [] if child.type == "strong_open"]


@pytest.mark.parametrize("name", [*_SEEDS])
def test_yaml_reads_back_what_was_written(name: str) -> None:
    assert yaml.safe_load(escapes.yaml(name)) == escapes.clean(name)
    assert yaml.safe_load(f"key: {escapes.yaml(name)}\n") == {"key": escapes.clean(name)}


@pytest.mark.parametrize("name", [*_SEEDS])
def test_html_and_plain_lines_hold_no_markup_and_no_control(name: str) -> None:
    assert not re.search(r"[<>\"']", escapes.html(name))
    for text in (escapes.plain(name), escapes.line(name), escapes.html(name)):
        assert "\n" not in text
        assert "\x1b" not in text
        assert len(text) <= 6 * escapes.LONGEST


def test_the_digest_of_an_image_stays_copyable() -> None:
    reference = "lmsysorg/sglang:v0.5.9@sha256:" + "0a" * 32
    assert escapes.markdown(reference) == reference


def test_a_rejection_without_words_is_still_counted() -> None:
    odd = Rejection(a_screen().rejected[0].place, "", "\n@claude|")
    chosen = facts.select(replace(a_screen(), rejected=(odd,)))
    assert [reason.rows for reason in chosen.rejected.rows] == [1]
    assert_harmless(render.render(chosen, "comparison", "both"))


def test_a_verdict_is_never_a_name() -> None:
    assert {verdict.value for verdict in Verdict}.isdisjoint(hostile())
