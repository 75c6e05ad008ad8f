"""Which sentences stand for a picture: its alternative text, the text of each of its points, and its axes.

Who cannot see a picture reads here what it shows, with the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from reports import numbers
from reports.facts import Fronted
from reports.language import N_, Phrase, Value, listing, phrase, sentences
from reports.phrases import change, eval_metric, image_text, label, verdict_name
from reports.shapes import SPEED, Curve, Exam, Mark, Spot
from reports.things import told_verdict
from store.identity import layout_text
from store.records import Finding, FrontierPoint

WORDS: Mapping[str, str] = MappingProxyType(
    {
        "throughput": N_("throughput per GPU (tok/s/GPU)"),
        "interactivity": N_("interactivity (tok/s/user)"),
        "level": N_("throughput beside the median run"),
        "started": N_("start of the run (UTC)"),
        "score": N_("score"),
        "baseline": N_("baseline"),
        "candidate": N_("candidate"),
        "threshold": N_("threshold"),
        "bump": N_("image changed"),
        "interval": N_("95%% interval"),
        "error": N_("one standard error"),
        "shared": N_("interactivity that both sides reach"),
    }
)
"""Words on a picture: its axes and its legend."""


def curve(shape: Curve) -> Value:
    """What the picture of a curve shows, and its verdict; its points are told one by one."""
    levels = listing([numbers.count(spot.conc) for spot in shape.spots])
    shown = phrase(
        N_("%(name)s: throughput per GPU against interactivity, baseline and candidate, at concurrency %(levels)s."),
        name=label(shape.row),
        levels=levels,
    )
    return sentences([shown, phrase(N_("Verdict: %(verdict)s."), verdict=verdict_name(shape.verdict))])


def curve_whole(shape: Curve) -> Value:
    """The alternative text of the picture of a curve, with all its points."""
    return sentences([curve(shape), *map(point, shape.spots)])


def point(spot: Spot) -> Value:
    """What one point of a curve says: both sides, and how sure the change is."""
    conc = numbers.count(spot.conc)
    if spot.after is None:
        return ""
    after = _place(spot.after)
    if spot.before is None or not isinstance(spot.row, Finding):
        return phrase(N_("At concurrency %(conc)s: candidate %(after)s; no baseline."), conc=conc, after=after)
    return phrase(
        N_("At concurrency %(conc)s: baseline %(before)s; candidate %(after)s; %(verdict)s, %(change)s."),
        conc=conc,
        before=_place(spot.before),
        after=after,
        verdict=verdict_name(told_verdict(spot.row)),
        change=change(spot.row, is_short=True),
    )


def _place(place: tuple[float, float]) -> Phrase:
    pace, speed = place
    return phrase(
        N_("%(speed)s at %(pace)s tok/s/user"), speed=numbers.measure(speed, SPEED), pace=numbers.plain(float(pace))
    )


def front(one: Fronted) -> Value:
    """What the picture of a group's frontiers shows, and its verdict."""
    shown = phrase(
        N_(
            "%(name)s: the frontiers of all layouts, throughput per GPU against interactivity, baseline (%(before)s"
            " points) and candidate (%(after)s points)."
        ),
        name=label(one.shift),
        **{name: numbers.count(len(side.points)) for name, side in one.frontier.named_sides},
    )
    return sentences([shown, phrase(N_("Verdict: %(verdict)s."), verdict=verdict_name(told_verdict(one.shift)))])


def front_whole(one: Fronted) -> Value:
    """The alternative text of the picture of a group, with all its points."""
    spots = [front_spot(spot, name) for name, side in one.frontier.named_sides for spot in side.points]
    return sentences([front(one), *spots])


_FRONT_SPOTS: Mapping[str, str] = MappingProxyType(
    {
        "before": N_("Baseline, %(layout)s at concurrency %(conc)s: %(place)s."),
        "after": N_("Candidate, %(layout)s at concurrency %(conc)s: %(place)s."),
    }
)


def front_spot(spot: FrontierPoint, side: str) -> Phrase:
    """What one point of a group says; `side` is "before" or "after"."""
    return phrase(
        _FRONT_SPOTS[side],
        layout=layout_text(spot.layout),
        conc=numbers.NOTHING if spot.conc is None else numbers.count(spot.conc),
        place=_place((spot.speed, spot.output)),
    )


def history(shape: Curve) -> Value:
    """The alternative text of the history of a curve."""
    first, last = shape.history[0], shape.history[-1]
    bumps = [mark for mark in shape.history if mark.is_bumped]
    said: list[Value] = [
        phrase(
            N_("%(name)s: throughput of the last %(runs)s runs beside the median run, from %(first)s to %(last)s."),
            name=label(shape.row),
            runs=numbers.count(len(shape.history)),
            first=day(first),
            last=day(last),
        ),
        phrase(N_("The last run stands at %(level)s of the median run."), level=level(last)),
    ]
    if bumps:
        said.append(phrase(N_("The image changed on %(days)s."), days=listing([day(mark) for mark in bumps])))
    return sentences(said)


def mark(what: Mark) -> Value:
    """What one run in a history says."""
    said: Value = phrase(
        N_("Run %(run)s of %(day)s: %(level)s of the median run, image %(image)s."),
        run=str(what.run),
        day=day(what),
        level=level(what),
        image=image_text(what.image),
    )
    return sentences([said, Phrase(N_("The image is another than before."))]) if what.is_bumped else said


def day(what: Mark) -> str:
    """Day of a run in UTC."""
    return f"{what.started_at:%Y-%m-%d}"


def level(what: Mark) -> str:
    """Speed beside the median run in percent.

    >>> from datetime import datetime
    >>> from store.records import RunKey
    >>> level(Mark(RunKey(1), datetime(2026, 1, 1), 0.9304, None, False, False))
    '93.0%'
    """
    return f"{what.level * 100:.1f}%"


def exam(what: Exam) -> Value:
    """What the score of one eval says: both sides, its standard error and its threshold."""
    finding = what.finding
    said: list[Value] = [
        phrase(
            N_("%(name)s: %(metric)s %(score)s."),
            name=label(finding),
            metric=eval_metric(finding, beside_strict=True),
            score=numbers.score(what.score, what.threshold),
        )
    ]
    for msgid, value in (
        (N_("One standard error: %(value)s."), what.error),
        (N_("Baseline: %(value)s."), what.before),
        (N_("Threshold: %(value)s."), what.threshold),
    ):
        if value is not None:
            said.append(phrase(msgid, value=numbers.score(value)))
    return sentences([*said, phrase(N_("Verdict: %(verdict)s."), verdict=verdict_name(told_verdict(finding)))])


def exams(shown: Sequence[Exam]) -> Value:
    """The alternative text of a picture of scores."""
    head = phrase(N_("Scores of %(number)s evals with one standard error."), number=numbers.count(len(shown)))
    return sentences([head, *map(exam, shown)])
