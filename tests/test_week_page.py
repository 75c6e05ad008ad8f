"""The page of a week: it asks for nothing, the verdict first in both languages, each number with its run."""

from __future__ import annotations

import base64
import hashlib
import itertools
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from reports import parity, render, week, weekpage, weekwords
from reports.doubts import sentence
from reports.facts import run_url
from reports.language import LANGUAGES, Language
from store.images import Sameness
from store.life import Action as Act
from store.life import Apart, Bump, Event, InForce, State
from store.records import Caveat, Verdict
from tests.cli import Tracker
from tests.factory import NEXT_IMAGE, bundle, history, row, run, write
from tests.test_page import LOADING, Read
from tests.test_render_hostile import hostile
from tests.test_weekly import MONDAY, a_change, a_full_week, a_review, a_run, a_week

FACTS = week.select(a_full_week())
PAGE = weekpage.build(FACTS)


def said(code: str, page: str = PAGE) -> str:
    """The part of a page in one language."""
    words = page.split(f'<div class="said" data-lang="{code}"')[1]
    return re.split('<div class="said"|</main>', words, maxsplit=1)[0].partition(">")[2]


def test_the_page_asks_for_nothing_and_sends_nothing() -> None:
    read = Read(PAGE)
    assert [tag for tag, _ in read.elements if tag in LOADING] == []
    assert [found for _, found in read.elements if found.keys() & {"src", "srcset", "action", "style"}] == []
    assert "url(" not in PAGE
    assert "@import" not in PAGE
    links = {found["href"] for tag, found in read.elements if tag == "a"}
    assert links
    assert all(link and link.startswith("https://github.com/") for link in links)


def test_the_policy_allows_the_scripts_and_the_style_of_the_page_and_nothing_else() -> None:
    policy = next(found["content"] for _, found in Read(PAGE).elements if found.get("http-equiv"))
    assert policy
    style = re.search(r"<style>(.*?)</style>", PAGE, re.DOTALL)
    scripts = re.findall(r"<script>(.*?)</script>", PAGE, re.DOTALL)
    assert style
    assert len(scripts) == 2
    allowed = {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style[1], *scripts)}
    assert set(re.findall(r"'sha256-([^']+)'", policy)) == allowed
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_verdict_is_the_first_heading_and_the_title(code: str) -> None:
    headline = Language(code).say(weekwords.headline(FACTS))
    page = weekpage.build(FACTS, code)
    assert f'<html lang="en" data-lang="{code}">' in page
    assert f"<title>{headline}</title>" in page
    first = re.search(r"<h\d[^>]*>(.*?)</h\d>", said(code, page), re.DOTALL)
    assert first
    assert first[1] == headline


def test_both_languages_carry_the_same_numbers_names_and_links() -> None:
    assert parity.parity(*map(said, LANGUAGES)) == ()
    links = [re.findall(r'href="([^"]+)"', said(code)) for code in LANGUAGES]
    assert links[0] == links[1]


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_row_and_every_reason_of_the_report_is_there(code: str) -> None:
    text = " ".join("".join(Read(PAGE).text).split())
    for name in week.BY_IMPORTANCE[:11]:
        for told in getattr(FACTS, name).rows:
            assert all(change.id in text for change in told.changes)
    for one in (*FACTS.missing.rows, *FACTS.unjudged.rows):
        assert Language(code).say(sentence(one.reason)) in text
    for out in FACTS.outside.rows:
        assert all(Language(code).say(sentence(reason)) in text for reason in out.reasons)


def test_every_change_leads_to_its_run_and_to_every_run_that_its_state_names() -> None:
    english = said("en")
    for name in ("new", "open", "ended", "suspected", "better", "evals_new"):
        for told in getattr(FACTS, name).rows:
            amount = Language("en").say(weekwords.amounts(told))
            assert told.run
            assert f'<a href="{run_url(told.run)}">{amount}</a>' in english
            for one in told.runs.values():
                assert f'<a href="{run_url(one)}">{one.key}</a>' in english


def test_an_image_and_a_reason_lead_to_their_runs() -> None:
    lone = a_week(
        reviews=[a_review(apart=(Apart(Verdict.NO_BASELINE, Caveat.of("no_baseline"), "b", 5, "b c4"),))],
        images=(InForce("a", "vllm/vllm-openai:v1", MONDAY, MONDAY, 6, a_run(0).key),),
    )
    english = said("en", weekpage.build(week.select(lone)))
    for at in (0, 1):
        assert f'<a href="{run_url(a_run(at))}">' in english


def test_a_correction_is_told_on_the_page_as_in_the_mail() -> None:
    assert "Edition 2" in said("en", weekpage.build(replace(FACTS, edition=2)))
    assert "Edition" not in PAGE


@pytest.mark.parametrize("seed", range(30))
def test_foreign_text_makes_no_element_and_no_link(seed: int) -> None:
    word = itertools.cycle(random.Random(seed).sample(hostile(), 60)).__next__
    changes = [
        a_change(
            f"id{number}",
            number,
            config=word() or "-",
            state=State.ACKNOWLEDGED,
            said=Event(a_run(1).started_at, "a", Act.ACKNOWLEDGE, word(), word()),
            bump=Bump(word(), word(), Sameness.UNKNOWN),
        )
        for number in (1, 2, 3)
    ]
    apart = Apart(Verdict.INVALID, Caveat.of("unmapped", field=word(), spelling=word()), word() or "-", 2, "x")
    made = a_week(
        *changes,
        reviews=[a_review(apart=(apart,), configs=("a",), rejected=(("bad_value", word(), 2),))],
        images=(InForce(word(), word(), MONDAY, MONDAY, 6, a_run(0).key),),
        unofficial=((a_run(5).key, (Caveat.of("unofficial_branch", branch=word()),)),),
    )
    read = Read(weekpage.build(week.select(made)))
    assert {tag for tag, _ in read.elements} <= {tag for tag, _ in Read(PAGE).elements} | {"br"}
    assert len(read.scripts) == 2
    names = {name for _, found in read.elements for name in found}
    assert not [name for name in names if name.startswith("on")]
    assert all(
        str(found["href"]).startswith("https://github.com/example-org/") for tag, found in read.elements if tag == "a"
    )


def test_an_empty_week_has_a_page() -> None:
    english = said("en", weekpage.build(week.select(a_week(reviews=[]))))
    assert "No runs to judge in week 2026-W32" in english
    assert english.count("None.") >= 5


# ---------------------------------------------------------------- the command line


@pytest.fixture
def judged(tracker: Tracker) -> Tracker:
    slower = bundle(run(200, "2026-06-12T00:00:00Z"), [row(4, 800.0, image=NEXT_IMAGE)])
    tracker.ingest(write(tracker.folder / "past.json", [*history({4: [1000.0, 1003.0, 998.0]}), slower]))
    return tracker


def test_the_page_of_a_week_is_the_same_bytes_and_tells_what_the_report_tells(judged: Tracker, tmp_path: Path) -> None:
    pages = [tmp_path / name for name in ("one.html", "two.html")]
    for page in pages:
        done = judged("report", "--week", "2026-W24", "--html", page, "--lang", "zh")
        assert (done.code, done.out) == (0, "")
    assert pages[0].read_bytes() == pages[1].read_bytes()
    title = judged("weekly", "--week", "2026-W24", "--format", "title", "--lang", "zh").out.strip()
    assert f"<title>{title}</title>" in pages[0].read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "code", "remedy"),
    [
        (["--week", "2026-W24"], 2, "--html FILE"),
        (["--week", "2026-W24", "--charts", "c"], 2, "leave --charts away"),
        (["--week", "2026-W24", "--html", "x", "--against", "last-good"], 2, "leave --against away"),
        (["latest", "--week", "2026-W24", "--html", "x"], 2, "leave CANDIDATE away"),
        (["--week", "24", "--html", "x"], 1, "write it as 2026-W32"),
    ],
)
def test_wrong_use_is_told_with_the_remedy(judged: Tracker, arguments: list[str], code: int, remedy: str) -> None:
    said = judged("report", *arguments)
    assert (said.code, remedy in said.err) == (code, True), said.err


def test_the_page_is_no_document_of_two_languages() -> None:
    with pytest.raises(render.UnknownDocument):
        render.render(FACTS, "week_page", "both")
