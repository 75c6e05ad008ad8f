"""Pictures of a comparison for mails and files: Vega-Lite specifications, and small PNG images drawn without a browser.

Needs the extra `charts`. The page of `reports.page` draws its own. Colours are those of Okabe and Ito, which people
with any colour vision tell apart; the sides differ by shape and line too. The ground is white in every theme.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from reports import captions, escapes, phrases, shapes
from reports.facts import Fronted, fronted
from reports.language import BILINGUAL, Language, Phrase, Value
from reports.picture import Picture
from reports.things import told_verdict
from reports.week import WeekFacts
from store.records import Comparison, Finding, Level, Trouble, Unmatched, Verdict

Spec: TypeAlias = dict[str, Any]

FAMILY = "Tracker Sans SC"
FONT = Path(__file__).parent / "fonts" / "TrackerSansSC-subset.otf"
"""Noto Sans CJK SC with the characters of the catalogs only (`.ci/make-font`); its licence stands beside it."""

MAIL_BYTES = 40_000
"""A picture in a mail is no larger: some twenty of them still pass every mail server."""

BEFORE, AFTER, BUMP, LIMIT = "#0072B2", "#D55E00", "#CC79A7", "#000000"
_SIDES: Mapping[str, str] = MappingProxyType({"before": "baseline", "after": "candidate"})
_WIDTH, _HEIGHT, _SCALE, _COLOURS = 460, 240, 1.5, 64
_EXAMS = 16
"""Scores in one picture: as many as are legible."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """One picture in one language: a name for its file, its Vega-Lite specification and its alternative text."""

    name: str
    lang: str
    spec: Spec
    alt: str

    def picture(self) -> Picture:
        """The drawing as a PNG with a palette, at most `MAIL_BYTES`, as a mail takes it."""
        return Picture(self.name, _small(_drawn(self.spec)), self.alt, self.lang)


def drawings(comparison: Comparison, lang: str, most: int = 8) -> tuple[Drawing, ...]:
    """Drawings of groups whose layouts changed, of curves that moved or could not be decided, and of the evals."""
    found = [
        Drawing(f"{number:02d}-frontier", lang, front_spec(one, lang), _said(lang, captions.front_whole(one)))
        for number, one in enumerate(fronted(comparison.frontiers, comparison.findings)[:most], 1)
    ]
    for number, curve in enumerate(shapes.moved(shapes.curves(comparison))[:most], 1):
        if curve.spots:
            alt = _said(lang, captions.curve_whole(curve))
            found.append(Drawing(f"{number:02d}-curve", lang, curve_spec(curve, lang), alt))
        if curve.history:
            found.append(_history(number, curve, lang))
    if exams := shapes.exams(comparison)[:_EXAMS]:
        found.append(Drawing("evals", lang, exam_spec(exams, lang), _said(lang, captions.exams(exams))))
    return tuple(found)


def languages(lang: str) -> tuple[str, ...]:
    """The languages that `en`, `zh` or `both` asks for."""
    return BILINGUAL if lang == "both" else (lang,)


def for_mail(comparison: Comparison, lang: str, most: int = 3) -> tuple[Picture, ...]:
    """The pictures of a mail in `en`, `zh` or `both`: few, since a mail is read on a phone."""
    return tuple(one.picture() for code in languages(lang) for one in drawings(comparison, code, most))


def for_week(told: WeekFacts, levels: Mapping[str, Sequence[Level]], lang: str, most: int = 3) -> tuple[Picture, ...]:
    """The histories of the worst new regressions of a week, in `en`, `zh` or `both`; `levels` are by curve."""
    rows = (row.first for row in told.new.rows)
    traces = (shapes.traced(one.finding, one.key, levels.get(one.key, ()), one.first_at) for one in rows)
    shown = [one for one in traces if one is not None][:most]
    return tuple(
        _history(number, one, code).picture() for code in languages(lang) for number, one in enumerate(shown, 1)
    )


def _history(number: int, curve: shapes.Curve, lang: str) -> Drawing:
    return Drawing(f"{number:02d}-history", lang, history_spec(curve, lang), _said(lang, captions.history(curve)))


def _said(lang: str, value: Value) -> str:
    return Language(lang).say(value, escapes.clean)


# ---- specifications ------------------------------------------------------------------------------------------


def curve_spec(curve: shapes.Curve, lang: str) -> Spec:
    """Throughput per GPU against interactivity, before and after, with the intervals that are known."""
    alt, word = _altair(), _words(lang)
    rows = [row for spot in curve.spots for row in _sides(spot, word)]
    x = alt.X("pace:Q", title=word["interactivity"]).scale(zero=False, padding=10)
    y = alt.Y("speed:Q", title=word["throughput"]).scale(zero=False, padding=10)
    side = _by_side(alt, word)
    base = alt.Chart(alt.Data(values=rows)).encode(x=x, color=side)
    line = base.mark_line().encode(y=y, order="conc:Q", strokeDash=_dashes(alt, word))
    spots = base.mark_point(filled=True, size=55, opacity=1).encode(y=y, shape=_shapes(alt, word))
    ends = base.transform_filter("isValid(datum.low)").mark_rule().encode(y=alt.Y("low:Q"), y2="high:Q")
    names = (
        base.transform_filter(alt.datum.conc_text != "")
        .mark_text(dx=8, dy=-7, align="left")
        .encode(y=y, text="conc_text:N", color=alt.value("#444"))
    )
    return _finished(alt, [line, ends, spots, names], _title(curve, lang))


def _sides(spot: shapes.Spot, word: Mapping[str, str]) -> Iterable[Spec]:
    """A row per side of a point; the candidate's has the interval and the concurrency."""
    if spot.before:
        pace, speed = spot.before
        yield {"side": word["baseline"], "conc": spot.conc, "conc_text": "", "pace": pace, "speed": speed}
    if spot.after:
        pace, speed = spot.after
        ends = {"low": spot.low, "high": spot.high} if spot.low is not None and spot.high is not None else {}
        text = f"c{spot.conc}"
        yield {"side": word["candidate"], "conc": spot.conc, "conc_text": text, "pace": pace, "speed": speed, **ends}


def front_spec(one: Fronted, lang: str) -> Spec:
    """The frontiers of a group before and after, with the points below them and the interactivity that both reach."""
    alt, word = _altair(), _words(lang)
    sides = [(word[_SIDES[name]], side) for name, side in one.frontier.named_sides]
    spots = [{"side": name, "pace": spot.speed, "speed": spot.output} for name, side in sides for spot in side.points]
    lines = [{"side": name, "pace": pace, "speed": speed} for name, side in sides for pace, speed in side.line]
    x = alt.X("pace:Q", title=word["interactivity"]).scale(zero=False, padding=10)
    y = alt.Y("speed:Q", title=word["throughput"]).scale(zero=False, padding=10)
    base = alt.Chart(alt.Data(values=lines)).encode(x=x, y=y, color=_by_side(alt, word))
    line = base.mark_line().encode(order="pace:Q", strokeDash=_dashes(alt, word))
    points = base.properties(data=alt.Data(values=spots)).mark_point(filled=True, size=45, opacity=1)
    layers = [*_shade(alt, one.frontier.interactivity.shared), line, points.encode(shape=_shapes(alt, word))]
    return _finished(alt, layers, _titled(one.shift, told_verdict(one.shift), lang))


def _shade(alt: Any, ends: tuple[float, float] | None) -> Iterable[Any]:
    """The range that both sides reach."""
    if ends:
        data = alt.Data(values=[{"pace": ends[0], "end": ends[1]}])
        yield alt.Chart(data).mark_rect(color=LIMIT, opacity=0.06).encode(x="pace:Q", x2="end:Q")


def history_spec(curve: shapes.Curve, lang: str) -> Spec:
    """The runs of a curve beside their median, with a line where the image changed."""
    alt, word = _altair(), _words(lang)
    rows = [
        {
            "at": f"{mark.started_at:%Y-%m-%dT%H:%M:%SZ}",
            "level": mark.level,
            "side": word["candidate" if mark.is_candidate else "baseline"],
            "bump": mark.is_bumped,
            "bump_text": word["bump"],
        }
        for mark in curve.history
    ]
    x = (
        alt.X("at:T", title=word["started"])
        .axis(format="%Y-%m-%d", labelOverlap="greedy")
        .scale(type="utc", padding=10)
    )
    y = alt.Y("level:Q", title=word["level"]).axis(format=".0%").scale(zero=False, padding=10)
    base = alt.Chart(alt.Data(values=rows)).encode(x=x)
    bumps = base.transform_filter("datum.bump").mark_rule(strokeDash=[5, 4], color=BUMP)
    names = (
        base.transform_filter("datum.bump")
        .mark_text(align="right", dx=-4, baseline="bottom", color="#7a3b63")
        .encode(y=alt.value(_HEIGHT - 4), text="bump_text:N")
    )
    line = base.mark_line(color=BEFORE).encode(y=y)
    spots = base.mark_point(filled=True, size=55, opacity=1).encode(
        y=y, color=_by_side(alt, word), shape=_shapes(alt, word)
    )
    return _finished(alt, [bumps, line, spots, names], _title(curve, lang))


def exam_spec(exams: Sequence[shapes.Exam], lang: str) -> Spec:
    """Scores with one standard error, the baseline's beside them, and the threshold."""
    alt, word = _altair(), _words(lang)
    rows = [row for exam in exams for row in _scores(exam, word)]
    name = alt.Y("name:N", title=None, sort=None).axis(labelLimit=260)
    base = alt.Chart(alt.Data(values=rows)).encode(y=name)
    x = alt.X("score:Q", title=word["score"]).scale(zero=False)
    errors = base.transform_filter("isValid(datum.low)").mark_rule(color=AFTER).encode(x=alt.X("low:Q"), x2="high:Q")
    limits = base.transform_filter("isValid(datum.limit)").mark_tick(color=LIMIT, thickness=2).encode(x="limit:Q")
    spots = base.mark_point(filled=True, size=55, opacity=1).encode(
        x=x, color=_by_side(alt, word), shape=_shapes(alt, word)
    )
    title = f"{word['score']} · {word['error']} · {word['threshold']}"
    return _finished(alt, [limits, errors, spots], title, height=24 * len(exams) + 20)


def _scores(exam: shapes.Exam, word: Mapping[str, str]) -> Iterable[Spec]:
    name = escapes.clean(phrases.full_label(exam.finding))
    if exam.before is not None:
        yield {"name": name, "side": word["baseline"], "score": exam.before}
    ends = {} if exam.error is None else {"low": exam.score - exam.error, "high": exam.score + exam.error}
    limit = {} if exam.threshold is None else {"limit": exam.threshold}
    yield {"name": name, "side": word["candidate"], "score": exam.score, **ends, **limit}


def _title(curve: shapes.Curve, lang: str) -> str:
    return _titled(curve.row, curve.verdict, lang)


def _titled(row: Finding | Unmatched, verdict: Verdict, lang: str) -> str:
    return f"{escapes.clean(phrases.label(row))} · {_said(lang, phrases.verdict_name(verdict))}"


@cache
def _words(lang: str) -> Mapping[str, str]:
    return MappingProxyType({name: _said(lang, Phrase(msgid)) for name, msgid in captions.WORDS.items()})


def _scaled(alt: Any, channel: Callable[..., Any], word: Mapping[str, str], values: Sequence[Any]) -> Any:
    domain = [word["baseline"], word["candidate"]]
    return channel("side:N", title=None).scale(alt.Scale(domain=domain, range=list(values)))


def _by_side(alt: Any, word: Mapping[str, str]) -> Any:
    legend = {"orient": "bottom", "symbolDash": [1, 0], "symbolStrokeWidth": 0, "offset": 6}
    return _scaled(alt, alt.Color, word, (BEFORE, AFTER)).legend(**legend)


def _shapes(alt: Any, word: Mapping[str, str]) -> Any:
    return _scaled(alt, alt.Shape, word, ("circle", "diamond"))


def _dashes(alt: Any, word: Mapping[str, str]) -> Any:
    return _scaled(alt, alt.StrokeDash, word, ([5, 4], [1, 0])).legend(None)


def _finished(alt: Any, layers: Sequence[Any], title: str, height: int = _HEIGHT) -> Spec:
    chart = alt.layer(*layers).properties(width=_WIDTH, height=height, title=title, background="white")
    spec: Spec = chart.configure(font=FAMILY).configure_title(anchor="start", fontSize=13, limit=_WIDTH).to_dict()
    return spec


# ---- images --------------------------------------------------------------------------------------------------


def _drawn(spec: Spec) -> bytes:
    convert = _with_font()
    png: bytes = convert.vegalite_to_png(spec, scale=_SCALE, allowed_base_urls=[])
    return png


def _small(png: bytes) -> bytes:
    """The same picture with a palette: a third of the bytes."""
    image = _needed("PIL.Image")
    out = io.BytesIO()
    image.open(io.BytesIO(png)).convert("RGB").quantize(_COLOURS).save(out, "PNG", optimize=True)
    return out.getvalue()


@cache
def _with_font() -> Any:
    convert = _needed("vl_convert")
    convert.register_font_directory(str(FONT.parent))
    return convert


def _altair() -> Any:
    return _needed("altair")


def _needed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as flaw:
        lacking = name.split(".", maxsplit=1)[0]
        raise Trouble(
            f"pictures need the extra charts ({lacking} is not there): pip install 'sweep-tracker[charts]'"
        ) from flaw
