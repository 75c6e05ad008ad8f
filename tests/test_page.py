"""The page: one file that asks for nothing, the verdict first, both languages, foreign text harmless everywhere."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest

from reports import facts, page, render
from reports.doubts import sentence
from reports.language import LANGUAGES, Language
from store.records import Comparison, Level, Run, Verdict
from tests.cli import Tracker
from tests.factory import NEXT_IMAGE, bundle, evaluation, history, row, run, write
from tests.sayings import AFTER, BEFORE, NEW, OLD, a_finding, a_random_comparison, a_screen, a_series
from tests.test_render_hostile import hostile, poisoned

LOADING = {"link", "img", "iframe", "object", "embed", "video", "audio", "source", "base", "form", "use", "image"}
"""Elements that make a browser ask for something, or send something."""


class Read(HTMLParser):
    """What a browser would find: elements with attributes, and the text of each script."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text: list[str] = []
        self._in_script = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._in_script = tag == "script"

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        (self.scripts if self._in_script else self.text).append(data)


def data_of(text: str) -> dict[str, object]:
    """What the page's script is given."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    given: dict[str, object] = json.loads(found[1])
    return given


def a_curve() -> Comparison:
    """A curve of two points with both axes and a history with a bump, beside one of everything."""
    given = a_screen()
    points = [
        a_finding(a_series(conc), metric, Verdict.REGRESSION, change, baseline=value, candidate=value * 0.9)
        for conc, speed in ((4, 433.8), (64, 1336.0))
        for metric, change, value in (("tput_per_gpu", -10.0, speed), ("median_tpot", -10.0, 0.01 * conc))
    ]
    kept = [one for one in given.findings if one.series not in (a_series(4), a_series(64))]
    levels = [(BEFORE[0], 1.0, OLD), (BEFORE[1], 1.01, OLD), (AFTER[0], 0.9, NEW)]
    told = tuple(Level(one.key, one.started_at, level, image) for one, level, image in levels)
    return replace(given, findings=(*kept, *points), history={given.findings[0].key: told})


PAGE = page.build(a_curve())


def test_the_page_asks_for_nothing_and_sends_nothing() -> None:
    read = Read(PAGE)
    assert [tag for tag, _ in read.elements if tag in LOADING] == ["form"]
    assert [found for tag, found in read.elements if "src" in found or "srcset" in found or "action" in found] == []
    assert "url(" not in PAGE
    assert "@import" not in PAGE
    links = {found["href"] for tag, found in read.elements if tag == "a"}
    assert all(link and (link == "#rows" or link.startswith("https://github.com/")) for link in links)


def test_the_policy_allows_the_scripts_and_the_style_of_the_page_and_nothing_else() -> None:
    read = Read(PAGE)
    policy = next(found["content"] for tag, found in read.elements if found.get("http-equiv"))
    assert policy
    style = re.search(r"<style>(.*?)</style>", PAGE, re.DOTALL)
    scripts = re.findall(r"<script>(.*?)</script>", PAGE, re.DOTALL)
    assert style
    assert len(scripts) == 2
    for text in (style[1], *scripts):
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_page_says_first_what_the_comment_says(code: str) -> None:
    text = " ".join("".join(Read(PAGE).text).split())
    comment = render.render(facts.select(a_curve()), "comment", code)
    first = [line.strip("*") for line in comment.splitlines() if line][:3]
    places = [text.find(line.replace("\\", "")) for line in first]
    assert -1 not in places
    assert places == sorted(places)


def test_every_exclusion_stands_with_its_reason_in_both_languages() -> None:
    given = a_curve()
    text = " ".join(Read(PAGE).text)
    for unmatched in given.unmatched:
        for code in LANGUAGES:
            assert Language(code).say(sentence(unmatched.reason)) in text


def test_every_row_that_decides_or_moved_is_on_the_page() -> None:
    given = a_curve()
    shown = [f for f in given.findings if facts.decides(f) or f.verdict is Verdict.REGRESSION]
    assert len(data_of(PAGE)["rows"]) == len(shown) + len(given.unmatched)  # type: ignore[arg-type]


def test_the_rows_come_worst_first() -> None:
    places = [one["v"] for one in data_of(PAGE)["rows"]]  # type: ignore[index,attr-defined]
    assert places == sorted(places)


def test_every_measured_number_leads_to_its_run() -> None:
    given = data_of(PAGE)
    runs = given["runs"]
    told = [one for one in given["rows"] if one["b"][1] is not None and one["s"] == len(page.SCOPES) - 1]  # type: ignore[index,attr-defined]
    assert told
    for one in told:
        before, after = one["B"][-1][0], one["C"][-1][0]
        assert runs[before]["u"] == facts.run_url(BEFORE[-1])  # type: ignore[index]
        assert runs[after]["u"] == facts.run_url(AFTER[0])  # type: ignore[index]


def test_a_curve_has_its_points_its_history_and_its_bump() -> None:
    curve = data_of(PAGE)["curves"][0]  # type: ignore[index]
    assert [point["c"] for point in curve["pts"]] == [4, 64]
    assert curve["pts"][0]["b"] == [25.0, 433.8]
    assert [(mark["b"], mark["c"]) for mark in curve["his"]] == [(0, 0), (0, 0), (1, 1)]


def test_the_page_opens_in_the_language_that_was_asked_for() -> None:
    assert '<html lang="en" data-lang="zh">' in page.build(a_screen(), "zh")
    assert '<html lang="en" data-lang="en">' in page.build(a_screen(), "both")


@pytest.mark.parametrize("seed", range(40))
def test_any_comparison_makes_a_page(seed: int) -> None:
    given = data_of(page.build(a_random_comparison(seed)))
    texts = given["says"]
    assert all(isinstance(text, str) or len(text) == len(LANGUAGES) for text in texts)  # type: ignore[attr-defined]


def test_numbers_that_are_no_numbers_make_no_broken_data() -> None:
    broken = a_finding(
        a_series(4), "tput_per_gpu", Verdict.NOISY, 1.0, effect=float("nan"), baseline=float("inf"), p=float("nan")
    )
    text = page.build(Comparison(AFTER, BEFORE, "previous", (broken,), (), (), "1"))
    assert re.search(r"\b(NaN|Infinity)\b", re.findall(r'id="data">(.*?)</script>', text, re.DOTALL)[0]) is None


# ---- foreign text --------------------------------------------------------------------------------------------


def shape(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """The elements of a page with the names of their attributes, without the rows of its tables."""
    elements = ((tag, tuple(sorted(found))) for tag, found in Read(text).elements)
    return [one for one in elements if one[0] in {"script", "style", "img", "svg", "iframe", "form", "meta", "button"}]


def hostile_comparison(words: list[str]) -> Comparison:
    """The hostile screen, with runs whose branch, title and repository are hostile too."""
    given = poisoned(words)
    worst = "".join(words[:9])
    evil = Run(7, 1, datetime(2026, 5, 1, tzinfo=UTC), worst, head_branch=worst, title=worst, head_sha=worst, url=worst)
    levels = tuple(Level(evil.key, evil.started_at, 1.0, word) for word in words[:3])
    return replace(
        given, candidate=(*given.candidate, evil), history={given.findings[0].key: levels}, against=worst[:200]
    )


BREAKING = [
    "</script><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "' onmouseover='alert(1)", "<!--", "]]>",
    "</style><svg onload=alert(1)>", "\u2028alert(1)\u2029", "${alert(1)}", "$title $data", "&lt;script&gt;", "\\u003c",
    "</textarea>", "javascript:alert(1)",
]  # fmt: skip


@pytest.mark.parametrize("start", range(0, 300, 60))
def test_no_foreign_text_makes_an_element_or_an_attribute(start: int) -> None:
    words = [*BREAKING, *hostile()[start : start + 60]]
    text = page.build(hostile_comparison(words))
    assert shape(text) == shape(page.build(hostile_comparison(["plain"] * len(words))))
    assert "on" not in {name[:2] for _, names in shape(text) for name in names}
    assert all(not (found.get("href") or "").startswith("javascript") for _, found in Read(text).elements)


def test_foreign_text_is_told_as_it_is() -> None:
    text = page.build(hostile_comparison(BREAKING))
    said = json.dumps(data_of(text), ensure_ascii=False) + "".join(Read(text).text)
    for word in ('\\"><img src=x onerror=alert(1)>', "</style><svg onload=alert(1)>"):
        assert word in said


# ---- the command ---------------------------------------------------------------------------------------------


def sweeps(folder: Path) -> Path:
    """Runs of one curve and an eval; the last one has another image and is slower."""
    told = history({4: [433.0, 434.0, 432.0], 64: [1336.0, 1330.0, 1341.0]})
    last = bundle(
        run(200, "2026-05-20T00:00:00Z"),
        [row(4, 380.0, image=NEXT_IMAGE), row(64, 1180.0, image=NEXT_IMAGE)],
        [evaluation(0.95, image=NEXT_IMAGE)],
    )
    return write(folder / "sweeps.json", [*told, last])


def test_the_command_writes_the_page_with_history_and_images(tracker: Tracker) -> None:
    tracker.ingest(sweeps(tracker.folder))
    out = tracker.folder / "page.html"
    said = tracker("report", "--html", out)
    assert (said.code, said.out) == (0, "")
    given = data_of(out.read_text(encoding="utf-8"))
    (curve,) = given["curves"]  # type: ignore[misc]
    assert [mark["b"] for mark in curve["his"]] == [0, 0, 0, 1]
    days = [mark["d"] for mark in curve["his"]]
    assert days == sorted(days)
    runs = given["runs"]
    assert [runs[mark["r"]]["u"] for mark in curve["his"]] == [  # type: ignore[index]
        f"https://github.com/example-org/bench/actions/runs/{number}/attempts/1" for number in (100, 101, 102, 200)
    ]


def test_a_page_that_cannot_be_written_says_what_to_do(tracker: Tracker) -> None:
    tracker.ingest(sweeps(tracker.folder))
    said = tracker("report", "--html", tracker.folder / "none" / "page.html")
    assert said.code == 1
    assert "name another file with --html" in said.err
