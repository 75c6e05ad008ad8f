"""Pictures: what moved, small, offline, readable in both languages and without seeing them."""

from __future__ import annotations

import io
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont
from PIL import Image

from reports import captions, charts, shapes
from reports.language import LANGUAGES, Language
from store.records import Caveat, Comparison, Level, RunKey, Verdict
from tests.cli import Tracker
from tests.sayings import AFTER, BEFORE, NEW, OLD, a_finding, a_series, alone, an_eval
from tests.test_language import messages
from tests.test_page import a_curve, sweeps


def spots(comparison: Comparison) -> list[shapes.Spot]:
    return [spot for curve in shapes.curves(comparison) for spot in curve.spots]


def one(*findings: object, **other: object) -> Comparison:
    given = Comparison(AFTER, BEFORE, "previous", findings, (), (), "1")  # type: ignore[arg-type]
    return replace(given, **other)  # type: ignore[arg-type]


def pair(conc: int, speeds: tuple[float, float], paces: tuple[float, float]) -> list[object]:
    return [
        a_finding(a_series(conc), metric, Verdict.REGRESSION, -8.0, baseline=before, candidate=after)
        for metric, (before, after) in (("tput_per_gpu", speeds), ("median_tpot", paces))
    ]


# ---- what is placed ------------------------------------------------------------------------------------------


def test_interactivity_is_the_inverse_of_tpot() -> None:
    (spot,) = spots(one(*pair(64, (1336.0, 1229.1), (0.02, 0.025))))
    assert (spot.conc, spot.before, spot.after) == (64, (50.0, 1336.0), (40.0, 1229.1))
    assert spot.low == pytest.approx(1336.0 * 0.92 * 0.98906, rel=1e-4)


@pytest.mark.parametrize("broken", [0.0, -1.0, float("nan"), float("inf")])
def test_a_point_without_a_place_is_not_drawn(broken: float) -> None:
    assert spots(one(*pair(64, (1336.0, 1200.0), (0.02, broken)))) == []
    assert spots(one(pair(64, (1336.0, 1200.0), (0.02, 0.02))[0])) == []


def test_a_new_point_stands_alone_and_an_invalid_one_nowhere() -> None:
    measured = {"tput_per_gpu": 900.0, "median_tpot": 0.05}
    new = replace(alone(8, Verdict.NO_BASELINE, "new_point"), metrics=measured)
    bad = replace(alone(9, Verdict.INVALID, "failed_requests"), metrics=measured)
    (spot,) = spots(one(unmatched=(new, bad)))
    assert (spot.conc, spot.before, spot.after) == (8, None, (20.0, 900.0))


def test_the_points_of_a_curve_come_by_concurrency_and_the_worst_curve_first() -> None:
    calm = [
        replace(found, verdict=Verdict.EQUIVALENT, series=replace(a_series(4), precision="fp4"), key="calm c4")
        for found in pair(4, (1.0, 1.0), (1.0, 1.0))
    ]
    found = shapes.curves(one(*calm, *pair(64, (9.0, 8.0), (1.0, 1.0)), *pair(4, (5.0, 4.0), (1.0, 1.0))))
    assert [(curve.verdict, [spot.conc for spot in curve.spots]) for curve in found] == [
        (Verdict.REGRESSION, [4, 64]),
        (Verdict.EQUIVALENT, [4]),
    ]
    assert [curve.verdict for curve in shapes.moved(found)] == [Verdict.REGRESSION]


@pytest.mark.parametrize(
    ("images", "bumps"),
    [
        ((OLD, OLD, NEW), [False, False, True]),
        ((None, OLD, NEW), [False, False, True]),
        ((OLD, None, NEW), [False, False, False]),
        (("a/b:latest", "a/b:latest", "a/b:latest"), [False, False, False]),
        ((OLD, NEW, OLD), [False, True, True]),
    ],
)
def test_a_bump_is_a_known_change_of_the_image(images: tuple[str | None, ...], bumps: list[bool]) -> None:
    levels = tuple(Level(RunKey(n), BEFORE[n].started_at, 1.0, image) for n, image in enumerate(images))
    found = a_finding(a_series(None), "tput_per_gpu", Verdict.REGRESSION, -8.0)
    (curve,) = shapes.curves(one(found, history={found.key: levels}))
    assert [mark.is_bumped for mark in curve.history] == bumps


def test_an_eval_has_its_standard_error_and_its_threshold() -> None:
    finding = an_eval(64, 0.9553, 0.6, Verdict.REGRESSION, Caveat.of("eval_size", n=1319, standard_error=0.0135))
    (exam,) = shapes.exams(one(finding))
    assert (exam.score, exam.before, exam.error, exam.threshold) == (0.6, 0.9553, 0.0135, 0.91)


# ---- what is said --------------------------------------------------------------------------------------------


def numbers(text: str) -> list[str]:
    return sorted(re.findall(r"\d+(?:\.\d+)?", text))


def test_alternative_texts_are_whole_and_carry_the_same_numbers_in_both_languages() -> None:
    english, chinese = (charts.drawings(a_curve(), code) for code in LANGUAGES)
    assert [picture.name for picture in english] == [picture.name for picture in chinese]
    for left, right in zip(english, chinese, strict=True):
        assert numbers(left.alt) == numbers(right.alt)
        assert left.alt.endswith(".")
        assert right.alt.endswith("。")


def test_the_alternative_text_tells_every_point() -> None:
    curve = shapes.curves(a_curve())[0]
    said = Language("en").say(captions.curve_whole(curve))
    assert "At concurrency 4: baseline 433.8 tok/s/GPU at 25.00 tok/s/user; candidate 390.4 tok/s/GPU" in said
    assert "Verdict: regression." in said


# ---- what is drawn -------------------------------------------------------------------------------------------


def test_the_font_holds_every_character_of_the_catalogs() -> None:
    held = {chr(code) for code in TTFont(charts.FONT).getBestCmap()}
    said = {c for message in messages() for text in (message.id, message.string) for c in str(text)} - {"\n"}
    assert said - held == set(), "run .ci/make-font"
    assert charts.FONT.stat().st_size < 200_000


@pytest.fixture(scope="module")
def drawn() -> dict[str, bytes]:
    return {f"{code} {p.name}": p.picture().png for code in LANGUAGES for p in charts.drawings(a_curve(), code)}


def test_pictures_are_small_enough_for_a_mail_and_have_a_palette(drawn: dict[str, bytes]) -> None:
    assert {name.split()[1] for name in drawn} >= {"01-curve", "01-history", "evals"}
    for name, png in drawn.items():
        picture = Image.open(io.BytesIO(png))
        assert (picture.format, picture.mode) == ("PNG", "P"), name
        assert len(png) <= charts.MAIL_BYTES, name


def test_pictures_are_on_white_and_use_the_safe_colours(drawn: dict[str, bytes]) -> None:
    picture = Image.open(io.BytesIO(drawn["en 01-curve"])).convert("RGB")
    assert picture.getpixel((1, picture.height - 1)) == (255, 255, 255)
    present = {colour for _, colour in picture.getcolors(1 << 16)}
    for wanted in (charts.BEFORE, charts.AFTER):
        red, green, blue = bytes.fromhex(wanted[1:])
        assert any(abs(r - red) + abs(g - green) + abs(b - blue) < 24 for r, g, b in present), wanted


def test_chinese_words_are_drawn_and_not_boxes() -> None:
    def word(text: str) -> bytes:
        mark = {"type": "text", "fontSize": 40, "font": charts.FAMILY}
        spec = {"data": {"values": [{"t": text}]}, "mark": mark, "encoding": {"text": {"field": "t"}}}
        return charts.Drawing("word", "zh", spec, "-").picture().png

    assert len({word(character) for character in "基线候选镜像"}) == 6


def test_a_foreign_name_stays_a_name() -> None:
    given = a_curve()
    evil = "</svg><script>alert(1)</script> datum.x \u202e" + "x" * 900
    hostile = replace(given, findings=tuple(replace(f, config=evil) for f in given.findings))
    for picture in charts.drawings(hostile, "en"):
        assert len(picture.picture().png) < 3 * charts.MAIL_BYTES
        assert "http" not in json.dumps(picture.spec).replace(picture.spec["$schema"], "")
        assert "\u202e" not in picture.alt + json.dumps(picture.spec, ensure_ascii=False)


# ---- the command ---------------------------------------------------------------------------------------------


def test_the_command_writes_pictures_with_their_texts(tracker: Tracker) -> None:
    tracker.ingest(sweeps(tracker.folder))
    said = tracker("report", "--charts", tracker.folder / "charts", "--lang", "both")
    assert said.code == 0, said.err
    written = {path.name for path in (tracker.folder / "charts").iterdir()}
    for code in LANGUAGES:
        assert {f"01-curve.{code}.{end}" for end in ("png", "txt", "vl.json")} <= written


def test_nothing_to_write_is_wrong_use(tracker: Tracker) -> None:
    said = tracker("report")
    assert said.code == 2
    assert "--html FILE, --charts FOLDER" in said.err


@pytest.mark.parametrize("lacking", ["altair", "vl_convert", "PIL"])
def test_without_the_extra_the_command_says_which_one(
    tracker: Tracker, monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    tracker.ingest(sweeps(tracker.folder))
    charts._with_font.cache_clear()
    monkeypatch.setitem(sys.modules, lacking, None)
    if lacking == "PIL":
        monkeypatch.setitem(sys.modules, "PIL.Image", None)
    said = tracker("report", "--charts", tracker.folder / "charts")
    assert said.code == 1
    assert "pip install 'sweep-tracker[charts]'" in said.err
    assert lacking in said.err


def test_the_page_needs_no_extra(tracker: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    tracker.ingest(sweeps(tracker.folder))
    for name in ("altair", "vl_convert", "PIL"):
        monkeypatch.setitem(sys.modules, name, None)
    assert tracker("report", "--html", Path(tracker.folder / "page.html")).code == 0
