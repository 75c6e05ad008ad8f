"""Which sentences and tables tell a history: images by time, steps, the environment, and what reruns can show.

Chooses words only; every number was made by `tracker`. Both languages carry the same numbers and names.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

from reports.blocks import Block, Said, Table, Title
from reports.contrasts import CLASSES, classes
from reports.language import N_, Phrase, Value, clauses, listing, phrase, sentences
from reports.numbers import NOTHING, TIMES_FROM, Kind, change, count, detectable, pvalue, size, sparkline
from reports.phrases import image_text, metric_name, single_run
from store.chronicles import Chronicle, Departure, Episode, Introduction, Loss, Mark, Shift, Spread, Taken
from store.records import Differs

SHOWN = 40
"""Bars of a sparkline: the newest runs."""


# ---------------------------------------------------------------- words for one fact


def day(at: datetime | None) -> str:
    return NOTHING if at is None else at.date().isoformat()


def _run(mark: Mark) -> Value:
    return phrase(N_("run %(run)s (%(day)s)"), run=mark.run, day=day(mark.at))


def _effect(effect: float) -> str:
    return change(effect, Kind.TIMES if effect >= TIMES_FROM else Kind.PERCENT)


def _interval(low: float, high: float) -> Value:
    ends = (change(end, Kind.PERCENT) for end in (low, high))
    return phrase(N_("%(low)s to %(high)s"), **dict(zip(("low", "high"), ends, strict=True)))


def _name(told: Chronicle) -> Value:
    return phrase(N_("%(curve)s: %(metric)s"), curve=told.curve, metric=metric_name(told.metric))


# ---------------------------------------------------------------- tracker history


def history(told: Sequence[Chronicle], episodes: Sequence[Episode]) -> list[Block]:
    """Every curve with more than one run: its images, its steps, where it stands; then what the environment did."""
    long = [one for one in told if len(one.marks) > 1]
    blocks: list[Block] = [Title(Phrase(N_("History")), 1), Said(_counts(told, long))]
    for one in long:
        blocks += _curve(one)
    return blocks + environment(episodes)


def _counts(told: Sequence[Chronicle], long: Sequence[Chronicle]) -> Value:
    return phrase(
        N_("Curves: %(curves)s, of which %(single)s with a single run; steps: %(steps)s; departures: %(away)s."),
        curves=count(len(told)),
        single=count(len(told) - len(long)),
        steps=count(sum(len(one.shifts) for one in told)),
        away=count(sum(len(one.departures) for one in told)),
    )


def _curve(told: Chronicle) -> Iterator[Block]:
    yield Title(_name(told))
    yield Said(f"{sparkline([mark.level for mark in told.marks[-SHOWN:]])}")
    yield _images(told)
    if told.shifts:
        yield Table(
            (
                *map(Phrase, (N_("What differs"), N_("Last run before"), N_("First run after"))),
                *map(Phrase, (N_("Change"), N_("Against the level before the loss"), N_("95%% interval"))),
                "p",
                *map(Phrase, (N_("Runs"), N_("Test harness"))),
            ),
            tuple(map(_shift, told.shifts)),
            3,
        )
    yield from (Said(_departure(one)) for one in told.departures)
    yield Said(sentences([_standing(told), *_loss(told.loss), single_run(told.visible)]))


def _images(told: Chronicle) -> Table:
    heads = (N_("Image"), N_("First run"), N_("Last run"), N_("Runs"), N_("Age in days"), N_("Level"))
    newest = told.marks[-1].at
    rows = []
    for era in told.eras:
        age = (newest - era.first.at).days if newest is not None and era.first.at is not None else None
        rows.append(
            (
                image_text(era.image),
                f"{era.first.run} {day(era.first.at)}",
                f"{era.last.run} {day(era.last.at)}",
                count(era.runs),
                NOTHING if age is None else count(age),
                change(era.level, Kind.PERCENT),
            )
        )
    return Table(tuple(map(Phrase, heads)), tuple(rows), 3)


def _shift(one: Shift) -> tuple[Value, ...]:
    return (
        classes(one.attribution),
        f"{one.before.run} {day(one.before.at)}",
        f"{one.after.run} {day(one.after.at)}",
        _effect(one.effect),
        NOTHING if one.net is None else _effect(one.net),
        _interval(one.low, one.high),
        pvalue(one.p),
        f"{count(one.runs_before)}/{count(one.runs_after)}",
        listing(_events(one)) or NOTHING,
    )


def _events(one: Shift) -> list[Value]:
    """Changes of the harness that lie between the two levels."""
    return [said.between for said in one.attribution.differences if said.between]


def _departure(one: Departure) -> Value:
    said = N_("From %(first)s to %(last)s: %(cause)s; runs: %(runs)s, change %(change)s.")
    still = N_("From %(first)s to %(last)s, the newest run: %(cause)s; runs: %(runs)s, change %(change)s.")
    return phrase(
        still if one.is_open else said,
        cause=classes(one.attribution),
        first=_run(one.first),
        last=_run(one.last),
        runs=count(one.runs),
        change=_effect(one.effect),
    )


def _standing(told: Chronicle) -> Value:
    if not told.lost:
        return phrase(N_("No earlier level is above the newest one; last good: %(run)s."), run=_run(told.last_good))
    return phrase(
        N_("The newest level is %(size)s below the last good one; last good: %(run)s."),
        size=size(-told.lost, Kind.PERCENT),
        run=_run(told.last_good),
    )


def _loss(loss: Loss | None) -> Iterator[Value]:
    if loss is None:
        return
    values: dict[str, Value] = {
        "run": _run(loss.anchor),
        "change": _effect(loss.effect),
        "interval": _interval(loss.low, loss.high),
        "told": _effect(loss.told),
    }
    if not loss.is_called:
        del values["told"]
        yield phrase(N_("Since %(run)s: %(change)s (%(interval)s), no change called."), **values)
    elif loss.is_slow:
        yield phrase(N_("Since %(run)s: %(change)s (%(interval)s), a slow drift; steps tell %(told)s."), **values)
    else:
        yield phrase(N_("Since %(run)s: %(change)s (%(interval)s); steps tell %(told)s."), **values)


def environment(episodes: Sequence[Episode]) -> list[Block]:
    """What moved together under the same image and recipe."""
    if not episodes:
        return []
    heads = (N_("GPU"), N_("From"), N_("To"), N_("Configs"), N_("Change"), N_("Curves"))
    rows = tuple(
        (
            one.gpu,
            day(one.first),
            day(one.last),
            listing([*sorted({told.config for told, _ in one.members})]),
            _effect(one.effect),
            count(len({told.curve for told, _ in one.members})),
        )
        for one in episodes
    )
    return [Title(Phrase(N_("Same image, other numbers"))), Table(tuple(map(Phrase, heads)), rows, 4)]


# ---------------------------------------------------------------- tracker show


def state(told: Sequence[Chronicle]) -> list[Block]:
    """Where every curve of a config stands."""
    heads = (
        N_("Curve"),
        N_("Newest run"),
        N_("Image"),
        N_("History"),
        N_("Runs"),
        N_("Below last good"),
        N_("Visible"),
    )
    rows = tuple(
        (
            one.curve,
            f"{one.marks[-1].run} {day(one.marks[-1].at)}",
            image_text(one.marks[-1].image),
            sparkline([mark.level for mark in one.marks[-SHOWN:]]),
            count(len(one.marks)),
            size(-one.lost, Kind.PERCENT) if one.lost else NOTHING,
            detectable(one.visible, Kind.PERCENT),
        )
        for one in told
    )
    configs = sorted({one.config for one in told})
    blocks: list[Block] = [Title(phrase(N_("State of %(configs)s"), configs=listing(list(configs))), 1)]
    blocks.append(Table(tuple(map(Phrase, heads)), rows, 4))
    for one in told:
        if one.lost or one.departures:
            last = [_departure(one.departures[-1])] if one.departures else []
            blocks.append(Said(sentences([phrase(N_("%(name)s."), name=_name(one)), _standing(one), *last])))
    return blocks


# ---------------------------------------------------------------- tracker images


def images(found: Sequence[Introduction]) -> list[Block]:
    """Which image was introduced when, and what its curves did."""
    heads = (
        *(N_("Framework"), N_("GPU"), N_("Image before"), N_("Image after"), N_("First run")),
        *(N_("Curves"), N_("Worse"), N_("Better"), N_("No step"), N_("Change")),
    )
    rows = tuple(
        (
            one.framework,
            one.gpu,
            image_text(one.before),
            image_text(one.after),
            f"{one.first.run} {day(one.first.at)}",
            count(len(one.members)),
            count(len(one.worse)),
            count(len(one.better)),
            count(len(one.level)),
            _range(one.members),
        )
        for one in found
    )
    return [Title(Phrase(N_("Images")), 1), Table(tuple(map(Phrase, heads)), rows, 5)]


def _range(members: Iterable[Taken]) -> Value:
    effects = sorted(one.shift.effect for one in members if one.shift is not None)
    if not effects:
        return NOTHING
    return _effect(effects[0]) if len(effects) == 1 else _interval(effects[0], effects[-1])


def upstream(one: Introduction) -> list[Block]:
    """A text for the issue tracker of an engine: what was measured on both images, nothing of why."""
    title = phrase(
        N_("Performance change from %(before)s to %(after)s on %(gpu)s"),
        before=image_text(one.before),
        after=image_text(one.after),
        gpu=one.gpu,
    )
    heads = (
        *(N_("Curve"), N_("Last run before"), N_("First run after"), N_("What differs")),
        *(N_("Change"), N_("95%% interval"), N_("Runs"), N_("Visible")),
    )
    metrics = list(dict.fromkeys(taken.chronicle.metric for taken in one.members))
    return [
        Title(title, 1),
        Said(
            phrase(
                N_("Measured: %(metrics)s, the points of a curve together. Curves: %(clauses)s."),
                metrics=listing([metric_name(name) for name in metrics]),
                clauses=_tally(one),
            )
        ),
        Table(tuple(map(Phrase, heads)), tuple(map(_taken, one.members)), 4),
        Said(Phrase(N_("The table says what lies between the runs, not why."))),
    ]


def _tally(one: Introduction) -> Value:
    parts: list[Value] = [
        phrase(N_("worse %(number)s"), number=count(len(one.worse))),
        phrase(N_("better %(number)s"), number=count(len(one.better))),
        phrase(N_("no step found %(number)s"), number=count(len(one.level))),
    ]
    return clauses(parts)


def _taken(one: Taken) -> tuple[Value, ...]:
    places = (one.chronicle.curve, f"{one.before.run} {day(one.before.at)}", f"{one.after.run} {day(one.after.at)}")
    visible = detectable(one.chronicle.visible, Kind.PERCENT)
    if one.shift is None:
        return (*places, Phrase(CLASSES[Differs.IMAGE]), NOTHING, NOTHING, count(one.runs), visible)
    shift = one.shift
    runs = f"{count(shift.runs_before)}/{count(shift.runs_after)}"
    return (
        *places,
        _differs(shift),
        _effect(shift.effect),
        _interval(shift.low, shift.high),
        runs,
        detectable(shift.mde, Kind.PERCENT),
    )


def _differs(shift: Shift) -> Value:
    """What differs, with the events of the harness: who reads a text upstream has no other column."""
    events = listing(_events(shift))
    named = classes(shift.attribution)
    return clauses([named, phrase(N_("test harness: %(events)s"), events=events)]) if events else named


# ---------------------------------------------------------------- tracker reproducibility


def reproducibility(found: Sequence[Spread], episodes: Sequence[Episode]) -> list[Block]:
    """How well reruns agree, by group, and what runs can show."""
    heads = (
        *(N_("Group"), N_("Metric"), N_("Curves"), N_("Reruns"), N_("Typical scatter"), N_("One in ten above")),
        *(
            N_("Within the margin"),
            N_("Bad days"),
            N_("One point, one run"),
            N_("Curve, one run"),
            N_("Curve, two runs"),
        ),
    )
    rows = tuple(map(_spread, found))
    said = [
        Said(phrase(N_("%(group)s: %(said)s"), group=one.group or NOTHING, said=single_run(one.one_run)))
        for one in found
    ]
    return [
        Title(Phrase(N_("Reproducibility: reruns of the same image and recipe")), 1),
        Table(tuple(map(Phrase, heads)), rows, 2),
        *said,
        *environment(episodes),
    ]


def _spread(one: Spread) -> tuple[Value, ...]:
    within = (
        NOTHING
        if one.within is None
        else phrase(
            N_("%(share)s of ±%(margin)s"),
            share=f"{100 * one.within:.0f}%",
            margin=detectable(one.margin, Kind.PERCENT),
        )
    )
    return (
        one.group or NOTHING,
        metric_name(one.metric),
        count(one.curves),
        count(one.pairs),
        detectable(one.typical, Kind.PERCENT),
        detectable(one.high, Kind.PERCENT),
        within,
        f"{count(one.bad_days)}/{count(one.days)}",
        *(detectable(size_, Kind.PERCENT) for size_ in (one.one_point, one.one_run, one.two_runs)),
    )


# ---------------------------------------------------------------- json


def as_json(**parts: Any) -> str:
    """Records as JSON: times in ISO, effects as natural logarithms, null for what is not known."""
    return json.dumps(
        {name: _plain(part) for name, part in parts.items()}, ensure_ascii=False, indent=2, allow_nan=False
    )


def _plain(value: Any, inside: bool = False) -> Any:
    """The value in the types of JSON. A chronicle inside of another record is named, not told again."""
    if inside and isinstance(value, Chronicle):
        return {"curve": value.curve, "config": value.config, "metric": value.metric, "visible": _plain(value.visible)}
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name), True) for one in fields(value)}
    if isinstance(value, list | tuple):
        return [_plain(part, inside) for part in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return None if isinstance(value, float) and not math.isfinite(value) else value
