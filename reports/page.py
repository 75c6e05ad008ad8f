"""Builds the page of a comparison: one file that needs no network, in all languages, with a table and charts.

The words are written by the templates and the catalogs; a script of the page shows, filters and sorts what it is given
here. It puts every text in as text, never as markup; the page's own policy forbids other scripts and any request.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

from reports import captions, contrasts, doubts, escapes, facts, numbers, phrases, render, shapes, shell
from reports.facts import Facts, Fronted, run_url
from reports.language import LANGUAGES, N_, Language, Phrase, Value, clauses, phrase
from reports.things import RANK, WORST_FIRST, badness, decides, is_eval, told_verdict
from store.records import Comparison, Evidence, Finding, Run, RunKey, Scope, Series, Unmatched, Verdict

Json: TypeAlias = dict[str, Any]

SCOPES: Mapping[Scope, str] = MappingProxyType(
    {
        Scope.EVAL: N_("eval"),
        Scope.FRONTIER: N_("frontier"),
        Scope.CONFIG: N_("config"),
        Scope.CURVE: N_("curve"),
        Scope.POINT: N_("point"),
    }
)

WORDS: Mapping[str, str] = MappingProxyType(
    {
        "skip": N_("Skip to the table"),
        "language": N_("Language"),
        "all_rows": N_("All rows"),
        "charts": N_("Charts"),
        "filters": N_("Filters"),
        "search": N_("Name contains"),
        "hardware": N_("Hardware"),
        "engine": N_("Engine"),
        "model": N_("Model"),
        "verdict": N_("Verdict"),
        "scope": N_("Scope"),
        "any": N_("any"),
        "advisory": N_("Advisory metrics that moved too"),
        "reset": N_("Show everything"),
        "what": N_("What"),
        "metric": N_("Metric"),
        "change": N_("Change"),
        "interval": N_("95%% interval"),
        "before": N_("Baseline"),
        "after": N_("Candidate"),
        "runs": N_("Runs (baseline / candidate)"),
        "mde": N_("Smallest detectable change"),
        "details": N_("Details"),
        "more_rows": N_("Show more rows"),
        "more_charts": N_("Show more charts"),
        "no_rows": N_("No row fits the filters."),
        "no_charts": N_("No chart fits the filters."),
        "baseline_runs": N_("Baseline runs"),
        "candidate_runs": N_("Candidate runs"),
        "differs": N_("What differs"),
        "images": N_("Images"),
        "notes": N_("Notes"),
        "reason": N_("Reason"),
        "evidence": N_("Evidence"),
        "evals": N_("Evals"),
        "keys": N_("In a chart, the arrow keys go from point to point, and Enter opens the run."),
        **{f"w_{name}": msgid for name, msgid in captions.WORDS.items()},
    }
)
"""Words that the page's script puts where they belong, by name."""

COUNTS: Mapping[str, str] = MappingProxyType(
    {
        "shown": N_("Rows shown: %(number)s of %(total)s."),
        "charts_shown": N_("Curves shown: %(number)s of %(total)s."),
    }
)
"""Sentences whose numbers change with the filters."""


def build(comparison: Comparison, lang: str = "en") -> str:
    """The page as HTML text; `lang` is the language it opens in."""
    chosen = facts.select(comparison, history=comparison.levels)
    return shell.framed(
        "page.html",
        "page.js",
        Language(shell.opening(lang)).say(phrases.subject(chosen)),
        lang,
        buttons="".join(shell.button(code) for code in LANGUAGES),
        verdict="".join(_said(chosen, "page_verdict", code) for code in LANGUAGES),
        rest="".join(_said(chosen, "page_rest", code) for code in LANGUAGES),
        data=_as_script(data(comparison, phrases.subject(chosen))),
    )


def _said(chosen: Facts, document: str, code: str) -> str:
    return shell.block(render.render(chosen, document, code), code)


_UNSAFE = re.compile("[<>&\u2028\u2029]")


def _as_script(value: Json) -> str:
    r"""JSON inside a script element: nothing in it can end the element or begin a comment.

    >>> _as_script({"a": "</script><!--"})
    '{"a":"\\u003c/script\\u003e\\u003c!--"}'
    """
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", msgspec.json.encode(value).decode())


# ---- what the script shows -----------------------------------------------------------------------------------


class _Sayings:
    """Every text once, in all languages: a row holds the number of what it says."""

    def __init__(self) -> None:
        self.texts: list[str | list[str]] = []
        self._places: dict[Value, int] = {}
        self._languages = [Language(code) for code in LANGUAGES]

    def __call__(self, value: Value) -> int:
        if value not in self._places:
            said = [language.say(value, escapes.clean) for language in self._languages]
            self.texts.append(said[0] if len(set(said)) == 1 else said)
            self._places[value] = len(self.texts) - 1
        return self._places[value]


class _Runs:
    """Every run once, with its address."""

    def __init__(self, known: Iterable[Run]) -> None:
        self.forms: list[Json] = []
        self._known = {run.key: run for run in known}
        self._places: dict[RunKey, int] = {}

    def __call__(self, key: RunKey) -> int:
        if key not in self._places:
            run = self._known.get(key)
            name = str(key) if key.id > 0 else "local"
            self.forms.append(
                {
                    "n": name,
                    "u": run_url(run) if run else None,
                    "d": f"{run.started_at:%Y-%m-%d}" if run else "",
                }
            )
            self._places[key] = len(self.forms) - 1
        return self._places[key]


def data(comparison: Comparison, title: Value) -> Json:
    """What the page's script works on: texts, runs, rows, curves and evals, each naming the others by number."""
    say, runs = _Sayings(), _Runs((*comparison.earlier, *comparison.baseline, *comparison.candidate))
    found = shapes.curves(comparison)
    places = {curve.key: number for number, curve in enumerate(found)}
    families = _families(comparison)
    rows = [
        *(_finding(one, say, runs, places, families) for one in _shown(comparison)),
        *(_unmatched(one, say, runs, places) for one in comparison.unmatched),
    ]
    return {
        "langs": list(LANGUAGES),
        "tags": [shell.tag(code) for code in LANGUAGES],
        "title": say(title),
        "words": {name: say(Phrase(msgid)) for name, msgid in WORDS.items()},
        "counts": {name: say(_counting(msgid)) for name, msgid in COUNTS.items()},
        "verdicts": [
            {"c": verdict.value, "s": say(phrases.verdict_name(verdict)), "k": _KINDS.get(verdict, "calm")}
            for verdict in WORST_FIRST
        ],
        "scopes": [say(Phrase(msgid)) for msgid in SCOPES.values()],
        "rows": sorted(rows, key=_order),
        "curves": [_curve(one, say, runs) for one in found],
        "fronts": [_front(one, say, families) for one in facts.fronted(comparison.frontiers, comparison.findings)],
        "exams": [_exam(one, say, runs) for one in shapes.exams(comparison)],
        "runs": runs.forms,
        "says": say.texts,
    }


def _counting(msgid: str) -> Phrase:
    """A sentence whose numbers the script puts in, in braces."""
    return phrase(msgid, number="{number}", total="{total}")


_KINDS: Mapping[Verdict, str] = MappingProxyType(
    {
        **dict.fromkeys((Verdict.REGRESSION, Verdict.MIXED, Verdict.FAILED), "bad"),
        **dict.fromkeys((Verdict.IMPROVEMENT, Verdict.RECOVERY), "good"),
        **dict.fromkeys((Verdict.SUSPECTED, Verdict.MISSING, Verdict.INVALID), "doubt"),
    }
)
"""How a verdict looks; its word always stands beside it."""

_MOVED = frozenset({Verdict.REGRESSION, Verdict.MIXED, Verdict.SUSPECTED, Verdict.IMPROVEMENT, Verdict.RECOVERY})
_SCOPE_PLACE = {scope: place for place, scope in enumerate(SCOPES)}


def _order(row: Json) -> tuple[int, int, float, str]:
    return (row["v"], row["s"], -row["bad"], row["n"])


def _shown(comparison: Comparison) -> list[Finding]:
    """What decides, the advisory metrics that moved, and every frontier."""
    return [f for f in comparison.findings if decides(f) or f.verdict in _MOVED or f.scope is Scope.FRONTIER]


def _families(comparison: Comparison) -> dict[str, Series]:
    """A series for each config: what is judged as a whole has the hardware, engine and model of its parts."""
    return {one.config: one.series for one in comparison.findings if one.series is not None and one.config}


def _identity(row: Finding | Unmatched, series: Series | None) -> Json:
    named = series or row.series
    return {
        "n": escapes.clean(phrases.full_label(row)),
        "h": escapes.clean(named.gpu) if named else "",
        "e": escapes.clean(named.framework) if named else "",
        "m": escapes.clean(named.model) if named else "",
    }


def _finding(
    one: Finding, say: _Sayings, runs: _Runs, places: Mapping[str, int], families: Mapping[str, Series]
) -> Json:
    how = numbers.kind(one)
    curve = places.get(facts.curve_text(one)) if one.scope in (Scope.CURVE, Scope.POINT) else None
    mark = facts.gate(one)[1]
    return {
        **_identity(one, families.get(one.config)),
        "s": _SCOPE_PLACE[one.scope],
        "v": RANK[told_verdict(one)],
        "bad": round(badness(one), 6),
        "o": 0 if decides(one) else 1,
        "k": say(phrases.eval_metric(one, beside_strict=True) if is_eval(one) else phrases.metric_name(one.metric)),
        "d": [say(phrases.amount(one.effect, how)), _sortable(one.effect)],
        "i": say(phrases.interval(one)),
        "p": [numbers.pvalue(one.p), _sortable(one.p)],
        "b": [numbers.measure(one.baseline, one.metric, mark), _sortable(one.baseline)],
        "a": [numbers.measure(one.candidate, one.metric, mark), _sortable(one.candidate)],
        "q": [numbers.detectable(one.mde, how), _sortable(one.mde)],
        "r": phrases.runs(one),
        "B": _told_runs(one.baseline_runs, one.evidence.baseline if one.evidence else (), one.metric, runs),
        "C": _told_runs(one.candidate_runs, one.evidence.candidate if one.evidence else (), one.metric, runs),
        "im": [_image(one.baseline_image), _image(one.candidate_image)],
        "t": _contrast(one, say),
        "x": [say(doubts.sentence(caveat)) for caveat in one.caveats],
        "y": say(_evidence(one.evidence, how)) if one.evidence else None,
        "g": curve,
    }


def _unmatched(one: Unmatched, say: _Sayings, runs: _Runs, places: Mapping[str, int]) -> Json:
    key, _, _ = one.key.rpartition(" c")
    speed = one.metrics.get(shapes.SPEED)
    nothing = [numbers.NOTHING, None]
    left = [caveat for caveat in one.caveats if caveat not in phrases.elsewhere(one)]
    return {
        **_identity(one, None),
        "s": _SCOPE_PLACE[Scope.EVAL if one.task else Scope.POINT],
        "v": RANK[one.verdict],
        "bad": 0.0,
        "o": 0,
        "k": say(phrases.metric_name(shapes.SPEED) if one.task is None else phrases.task_name(one.task)),
        "d": [say(numbers.NOTHING), None],
        "i": say(numbers.NOTHING),
        "p": nothing,
        "b": nothing,
        "a": [numbers.measure(speed, shapes.SPEED), _sortable(speed)],
        "q": nothing,
        "r": "",
        "B": [[runs(one.run), ""]] if one.run and one.side == "baseline" else [],
        "C": [[runs(one.run), ""]] if one.run and one.side == "candidate" else [],
        "im": ["", _image(one.image)] if one.image else ["", ""],
        "t": [],
        "x": [say(doubts.why(one)), *(say(doubts.sentence(caveat)) for caveat in left)],
        "y": None,
        "g": places.get(key),
    }


def _contrast(one: Finding, say: _Sayings) -> list[int]:
    """What differs between the sides of a change, and what its controls did."""
    found = one.attribution
    if found is None:
        return []
    said = contrasts.controls(found, numbers.kind(one))
    told = (contrasts.classes(found), *map(contrasts.difference, found.differences))
    return [*map(say, told), say(phrase(N_("controls: %(controls)s"), controls=said))]


def _image(reference: str | None) -> str:
    return escapes.clean(phrases.image_text(reference))


def _sortable(value: float | None) -> float | None:
    """A number that the table sorts by, never shown; JSON knows no NaN."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")


def _told_runs(keys: Sequence[RunKey], values: Sequence[Sequence[float]], key: str, runs: _Runs) -> list[list[Any]]:
    """Each run of a side with the value that it measured, where the thing is a single point."""
    single = values[0] if len(values) == 1 and len(values[0]) == len(keys) else ()
    texts = [numbers.measure(value, key) for value in single] or [""] * len(keys)
    return [[runs(run), text] for run, text in zip(keys, texts, strict=True)]


def _evidence(what: Evidence, how: numbers.Kind) -> Value:
    """What a judgement stood on, as a list of clauses."""
    parts: list[Value] = [
        phrase(N_("noise scale from: %(source)s"), source=what.scale_source or numbers.NOTHING),
        phrase(N_("smallest change worth telling %(margin)s"), margin=numbers.detectable(what.margin, how)),
        phrase(N_("error rate %(alpha)s"), alpha=numbers.plain(float(what.alpha))),
    ]
    if what.p_adjusted is not None:
        parts.append(phrase(N_("p %(p)s after adjusting for all tests"), p=numbers.relation(what.p_adjusted)))
    return clauses(parts)


def _curve(one: shapes.Curve, say: _Sayings, runs: _Runs) -> Json:
    return {
        **_identity(one.row, None),
        "v": RANK[one.verdict],
        "w": say(captions.curve(one)),
        "hw": say(captions.history(one)) if one.history else None,
        "pts": [_spot(spot, say, runs) for spot in one.spots],
        "his": [
            {
                "l": round(mark.level, 5),
                "r": runs(mark.run),
                "d": captions.day(mark),
                "b": int(mark.is_bumped),
                "c": int(mark.is_candidate),
                "w": say(captions.mark(mark)),
            }
            for mark in one.history
        ],
    }


def _front(one: Fronted, say: _Sayings, families: Mapping[str, Series]) -> Json:
    frontier = one.frontier
    return {
        **_identity(one.shift, families.get(frontier.config)),
        "v": RANK[told_verdict(one.shift)],
        "w": say(captions.front(one)),
        "both": [_sortable(end) for end in frontier.interactivity.shared or ()],
        **{
            name: {
                "line": [_rounded(place) for place in side.line],
                "pts": [
                    {"p": _rounded((spot.speed, spot.output)), "w": say(captions.front_spot(spot, name))}
                    for spot in side.points
                ],
            }
            for name, side in frontier.named_sides
        },
    }


def _spot(spot: shapes.Spot, say: _Sayings, runs: _Runs) -> Json:
    row = spot.row
    before, after = (
        (row.baseline_runs[-1:], row.candidate_runs[-1:])
        if isinstance(row, Finding)
        else ((), (row.run,) if row.run else ())
    )
    return {
        "c": spot.conc,
        "b": _rounded(spot.before),
        "a": _rounded(spot.after),
        "l": _sortable(spot.low),
        "u": _sortable(spot.high),
        "w": say(captions.point(spot)),
        "B": runs(before[0]) if before else None,
        "C": runs(after[0]) if after else None,
    }


def _rounded(place: tuple[float, float] | None) -> list[float | None] | None:
    return [_sortable(value) for value in place] if place else None


def _exam(one: shapes.Exam, say: _Sayings, runs: _Runs) -> Json:
    finding = one.finding
    return {
        **_identity(finding, None),
        "v": RANK[told_verdict(finding)],
        "y": [_sortable(value) for value in (one.score, one.before, one.error, one.threshold)],
        "w": say(captions.exam(one)),
        "r": runs(finding.candidate_runs[-1]) if finding.candidate_runs else None,
    }
