"""The history of curves: images by time, the steps found and what lay between, and what the environment did.

A step between two images is a shift; the same image with other numbers is a departure of the environment, with its
first and last run. Images that come back are held against themselves over all their runs, so that what moved them
alike is not taken for a change of any image.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby, islice, pairwise

import numpy as np
import polars as pl

from store.chronicles import Chronicle, Departure, Episode, Era, Introduction, Loss, Mark, Shift, Taken
from store.identity import kin_of
from store.images import Sameness
from store.metrics import METRICS, Part, metric
from store.records import Attribution, Caveat, Differs, Finding, RunKey, Scope, Series, Verdict
from tracker import attribution, matrix
from tracker.events import EVENTS, Event, Lies, lies, span
from tracker.judge.numbers import judged_as, place, scale_for
from tracker.matrix import Curve, CurveRun, Flags, Floats, Ints
from tracker.settings import RULES_VERSION, Settings
from tracker.stats import drift, noise, steps
from tracker.stats.noise import Scales
from tracker.stats.steps import Found, Gap, Rules, Sides, Spike, Step, Track

ALPHA = 0.02
"""Error rate with which a comparison of two runs calls a curve (`settings.LIMITS`)."""

TOGETHER = 256
"""Curves whose further runs are tried in one call of the core, at most."""

FEW = 3
"""Runs of an image that comes back, before it is held against itself."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One curve under one metric, ready for the statistics."""

    curve: Curve
    metric: str
    cells: Ints
    track: Track
    rules: Rules
    events: tuple[Event, ...]
    series: Series | None = None

    @property
    def runs(self) -> tuple[CurveRun, ...]:
        return self.curve.runs

    @property
    def is_lower_better(self) -> bool:
        return metric(self.metric).improves(-1.0)


@dataclass(frozen=True, slots=True)
class Past:
    """A tidy history with what must be known of it: the series of its rows, the noise, and events of the harness."""

    history: pl.DataFrame
    series: Mapping[str, Series]
    scales: Scales
    events: tuple[Event, ...] = EVENTS


def chronicles(
    past: Past, metrics: Sequence[str] = ("tput_per_gpu",), anchor: datetime | None = None
) -> Iterator[Chronicle]:
    """Every curve of a history under every metric; `anchor` asks for drift since then.

    Kin are worked on together, in whatever company they are: the last bits of a number may depend on what else stands
    in its array, and must not depend on who else was asked for.
    """
    for _, alike in groupby(lanes(past, metrics), lambda lane: kin_of(lane.curve.key)):
        while part := list(islice(alike, TOGETHER)):
            yield from _together(part, anchor)


def _together(some: Sequence[Lane], anchor: datetime | None) -> list[Chronicle]:
    told = [_untold(lane, anchor) for lane in some]
    seen = steps.gaps([_trial(lane.track, found, lane.rules) for lane, (found, _) in zip(some, told, strict=True)])
    return [replace(one, visible=_size(gap)) for (_, one), gap in zip(told, seen, strict=True)]


def lanes(past: Past, metrics: Sequence[str]) -> Iterator[Lane]:
    """Every curve under every metric that it has, ready for the statistics."""
    for curve in matrix.curves(past.history):
        for name in metrics:
            lane = _lane(curve, name, past)
            if lane is not None:
                yield lane


def _lane(curve: Curve, name: str, past: Past) -> Lane | None:
    """The cells of a curve under one metric; None where it has none, or the metric is never judged."""
    cells = np.array([cell for cell, measured in enumerate(curve.metrics) if measured == name], np.int64)
    target = judged_as([name]).get(name)
    if not len(cells) or target is None:
        return None
    family = METRICS[target].family
    one = past.series.get(curve.series[cells[0]])
    known = tuple(event for event in past.events if one is not None and event.affects(one, name))
    where = place(curve.runs[-1].pool, curve.config, curve.key)
    machines = past.scales.correlation.get(where) or past.scales.elsewhere[curve.multinode]
    limits = Settings().limits[family]
    track = Track(
        curve.values[cells],
        noise.stratum(curve.conc[cells], np.full(len(cells), curve.multinode)),
        scale_for(name, family, past.scales),
        machines.within,
        expected(curve.runs, known),
    )
    return Lane(curve, name, cells, track, Rules(curve=limits.curve, point=limits.point), known, one)


# ---------------------------------------------------------------- what lies between two runs


def expected(runs: Sequence[CurveRun], events: Sequence[Event]) -> Flags:
    """(runs,) True where something is known to have changed just before a run."""
    found = [_is_known(between(old, new, events)) for old, new in pairwise(runs)]
    return np.array([False, *found][: len(runs)], bool)


def _is_known(found: Attribution) -> bool:
    """True where something differs, not only an image that may or may not."""
    return any(one.what != "image" or one.kind is Differs.IMAGE for one in found.differences)


def between(old: CurveRun, new: CurveRun, events: Sequence[Event]) -> Attribution:
    """What differs between two runs of a curve, the events of the harness that lie between them among it."""
    said = attribution.events(_events(old, new, events))
    return attribution.attribution([*attribution.software(old, new), *said])


def _events(old: CurveRun, new: CurveRun, events: Sequence[Event]) -> tuple[str, ...]:
    if old.started_at is None or new.started_at is None:
        return ()
    sides = span(old.started_at), span(new.started_at)
    return tuple(event.name for event in events if lies(event, *sides) is not Lies.NO)


# ---------------------------------------------------------------- one curve


def chronicle(lane: Lane, anchor: datetime | None = None) -> Chronicle:
    """The history of one curve under one metric."""
    found, told = _untold(lane, anchor)
    return replace(told, visible=visible(lane.track, found, lane.rules))


def _untold(lane: Lane, anchor: datetime | None) -> tuple[Found, Chronicle]:
    """What was found, and the history but for what a further run would show."""
    marks = _marks(lane)
    away, calm = _departures_of_returning(lane, marks)
    found = steps.find(replace(lane.track, values=calm), lane.rules)
    shifts, inside = _told(replace(lane, track=replace(lane.track, values=calm)), marks, found)
    level = _levels(lane, found)
    good, lost = _last_good(lane, marks, level)
    return found, Chronicle(
        lane.curve.key,
        lane.curve.config,
        *_machine(lane),
        lane.metric,
        marks,
        tuple(_eras(marks)),
        tuple(shifts),
        tuple(sorted([*away, *inside], key=lambda one: one.first.at.timestamp() if one.first.at else 0.0)),
        good,
        lost,
        float("nan"),
        None if anchor is None else _loss(lane, marks, found, anchor),
    )


def _machine(lane: Lane) -> tuple[str, str]:
    """GPU and framework."""
    return (lane.series.gpu, lane.series.framework) if lane.series is not None else ("", "")


def _marks(lane: Lane) -> tuple[Mark, ...]:
    values = lane.track.values
    own = values - matrix.row_median(values)[:, None]
    known = np.isfinite(own)
    middle = matrix.row_median(own.T) if len(own) else np.zeros(len(lane.runs))
    return tuple(
        Mark(run.key, run.started_at, run.image, run.recipe, int(n), float(level) if n else 0.0)
        for run, n, level in zip(lane.runs, known.sum(axis=0), middle, strict=True)
    )


def _eras(marks: Sequence[Mark]) -> Iterator[Era]:
    first = 0
    for place_, mark in enumerate(marks):
        if place_ + 1 == len(marks) or marks[place_ + 1].image != mark.image:
            own = marks[first : place_ + 1]
            yield Era(mark.image, own[0], own[-1], len(own), float(np.median([one.level for one in own])))
            first = place_ + 1


def _told(lane: Lane, marks: Sequence[Mark], found: Found) -> tuple[list[Shift], list[Departure]]:
    """Steps between two identities as shifts; steps and spikes inside of one as departures."""
    shifts: list[Shift] = []
    inside: list[int] = []
    for step, (_, end) in zip(found.steps, found.levels(len(marks))[1:], strict=True):
        said = between(lane.runs[step.at - 1], lane.runs[step.at], lane.events)
        if said.is_same:
            inside.append(step.at)
            continue
        better = metric(lane.metric).improves(step.effect)
        sides = marks[step.at - 1], marks[step.at], marks[end - 1]
        sizes = step.effect, step.low, step.high, step.p, step.mde
        good, net = _recovered(lane, found, step) if better else (None, None)
        told = Shift(said, *sizes, better, *sides, step.before, step.after)
        shifts.append(told if good is None else replace(told, good=marks[good], net=net))
    return shifts, [*_inside(lane, marks, found, inside), *_spikes(lane, marks, found)]


def _recovered(lane: Lane, found: Found, step: Step) -> tuple[int | None, float | None]:
    """Of a gain: the last run of the newest level above the one that it left, and the change against that level."""
    levels = _levels(lane, found)
    place_ = next(number for number, level in enumerate(levels) if level[0] == step.at)
    left = levels[place_ - 1][2]
    above = [level for level in levels[: place_ - 1] if level[2] - left >= lane.rules.curve]
    if not above:
        return None, None
    first, good, _ = above[-1]
    values = lane.track.values
    side = steps.side_by_side(values[:, first:good], values[:, step.at : levels[place_][1]])
    (gap,) = steps.between(lane.track, steps.posterior(lane.track), [side], lane.rules)
    return (None, None) if gap is None else (good - 1, gap.effect)


def _inside(lane: Lane, marks: Sequence[Mark], found: Found, at: Sequence[int]) -> Iterator[Departure]:
    """Levels of one identity beside its longest one."""
    for first, end in _stretches_around(lane, found, at):
        cuts = [first, *(step for step in at if first < step < end), end]
        yield from _beside_usual(lane, lane.track.values, list(range(len(marks))), marks, cuts)


def _stretches_around(lane: Lane, found: Found, at: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The runs of one identity around each of some steps inside it, cut by no other step."""
    others = [step.at for step in found.steps if step.at not in at]
    edges = sorted({0, len(lane.runs), *others, *np.flatnonzero(lane.track.expected).tolist()})
    for first, end in pairwise(edges):
        if any(first < step < end for step in at):
            yield first, end


def _beside_usual(
    lane: Lane, values: Floats, columns: Sequence[int], marks: Sequence[Mark], cuts: Sequence[int]
) -> Iterator[Departure]:
    """Each level of some runs that are alike in software, beside their usual one."""
    parts = list(pairwise(cuts))
    usual = _usual(lane, values, parts)
    others = [part for part in parts if part != usual]
    sides = [steps.side_by_side(values[:, slice(*usual)], values[:, slice(*part)]) for part in others]
    gaps = steps.between(lane.track, steps.posterior(lane.track), sides, lane.rules)
    for (first, end), side, gap in zip(others, sides, gaps, strict=True):
        if gap is not None and _is_away(side, gap, lane.rules):
            yield _departure(
                lane, marks, attribution.attribution(()), gap.effect, (columns[first], columns[end - 1], end - first)
            )


def _is_away(side: Sides, gap: Gap, rules: Rules) -> bool:
    """Beyond chance and a margin: a level may well come back to the usual one.

    The step that led here was large: what is left of it is told from half the margin on when it is beyond doubt, for
    silence would say that all is as before.
    """
    points = np.abs(np.nan_to_num(side.effect)) >= rules.point
    if abs(gap.effect) >= rules.curve or bool(np.any(points)):
        return gap.p <= rules.alpha_expected
    return abs(gap.effect) >= rules.curve / 2 and gap.p <= rules.alpha


def _usual(lane: Lane, values: Floats, parts: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The level with the most runs; of equals the better one, since no machine is too fast by accident."""
    sign = -1.0 if lane.is_lower_better else 1.0
    own = sign * (values - matrix.row_median(values)[:, None])
    return max(parts, key=lambda part: (part[1] - part[0], float(np.nanmean(own[:, slice(*part)]))))


def _departure(
    lane: Lane, marks: Sequence[Mark], said: Attribution, effect: float, where: tuple[int, int, int]
) -> Departure:
    first, last, runs = where
    better = metric(lane.metric).improves(effect)
    return Departure(said, effect, better, marks[first], marks[last], runs, last == len(marks) - 1)


def _spikes(lane: Lane, marks: Sequence[Mark], found: Found) -> Iterator[Departure]:
    """Runs off their level, neighbours that went one way together, and what tells them from the nearest run on it."""
    for group in _neighbours(found.spikes):
        said = _beside_nearest(lane, found, group[0].at)
        effect = float(np.median([spike.effect for spike in group]))
        yield _departure(lane, marks, said, effect, (group[0].at, group[-1].at, len(group)))


def _neighbours(spikes: Iterable[Spike]) -> Iterator[list[Spike]]:
    group: list[Spike] = []
    for spike in spikes:
        if group and (spike.at > group[-1].at + 1 or spike.effect * group[-1].effect < 0):
            yield group
            group = []
        group.append(spike)
    if group:
        yield group


def _beside_nearest(lane: Lane, found: Found, at: int) -> Attribution:
    """What lies between a run off its level and the nearest one that is on it."""
    off = {spike.at for spike in found.spikes}
    measured: Flags = np.asarray(np.isfinite(lane.track.values).any(axis=0))
    first, end = next(level for level in found.levels(len(lane.runs)) if level[0] <= at < level[1])
    on = [column for column in range(first, end) if column not in off and measured[column]]
    nearest = min(on, key=lambda column: abs(column - at), default=at)
    return between(lane.runs[nearest], lane.runs[at], ())


# ---------------------------------------------------------------- images that come back


def _departures_of_returning(lane: Lane, marks: Sequence[Mark]) -> tuple[list[Departure], Floats]:
    """What moved the runs of images that come back, and the values without that."""
    values = lane.track.values
    groups = _returning(lane.runs)
    if not groups:
        return [], values
    residual = np.full(values.shape, np.nan)
    for columns in groups:
        residual[:, columns] = values[:, columns] - matrix.row_median(values[:, columns])[:, None]
    columns = np.sort(np.concatenate(groups))
    kept = residual[:, columns]
    own = replace(lane.track, values=kept, expected=np.zeros(len(columns), bool))
    found = steps.find(own, lane.rules)
    cuts = [0, *(step.at for step in found.steps), len(columns)]
    alone = replace(lane, track=own)
    places = columns.tolist()
    away = list(_beside_usual(alone, kept, places, marks, cuts)) if found.steps else []
    for spike in found.spikes:
        at = places[spike.at]
        away.append(_departure(lane, marks, attribution.attribution(()), spike.effect, (at, at, 1)))
    return away, _without(values, kept, places, cuts, [places[spike.at] for spike in found.spikes])


def _returning(runs: Sequence[CurveRun]) -> list[Ints]:
    """Columns of each image and recipe that comes back after another one, where it has FEW runs at least."""
    groups: dict[tuple[str | None, str | None, str | None], list[int]] = {}
    for column, run in enumerate(runs):
        if matrix.same_software(run.image, run.image) is Sameness.SAME:
            groups.setdefault((run.image, run.recipe, run.pool), []).append(column)
    return [
        np.array(columns, np.int64)
        for columns in groups.values()
        if len(columns) >= FEW and columns[-1] - columns[0] >= len(columns)
    ]


def _without(values: Floats, kept: Floats, places: Sequence[int], cuts: Sequence[int], off: Sequence[int]) -> Floats:
    """The values less the environment's levels, and without its single runs."""
    calm = values.copy()
    if len(cuts) > 2:
        parts = list(pairwise(cuts))
        usual = max(parts, key=lambda part: part[1] - part[0])
        base = matrix.row_median(kept[:, slice(*usual)])
        for first, end in parts:
            shift = np.nan_to_num(matrix.row_median(kept[:, first:end]) - base)
            last = places[end] if end < len(places) else values.shape[1]
            begin = places[first] if first else 0
            calm[:, begin:last] -= shift[:, None]
    calm[:, list(off)] = np.nan
    return calm


# ---------------------------------------------------------------- where it stands


def _levels(lane: Lane, found: Found) -> list[tuple[int, int, float]]:
    """First run, run after the last, and height of every level, natural log units, higher is better."""
    sign = -1.0 if lane.is_lower_better else 1.0
    heights = np.cumsum([0.0, *(sign * step.effect for step in found.steps)]).tolist()
    return [(first, end, height) for (first, end), height in zip(found.levels(len(lane.runs)), heights, strict=True)]


def _last_good(lane: Lane, marks: Sequence[Mark], levels: Sequence[tuple[int, int, float]]) -> tuple[Mark, float]:
    """The newest run of a level that lies above the newest one by more than the margin, and by how much."""
    now = levels[-1][2]
    for _, end, height in reversed(levels[:-1]):
        if height - now >= lane.rules.curve:
            return marks[end - 1], height - now
    return marks[-1], 0.0


def visible(track: Track, found: Found, rules: Rules, runs: int = 1) -> float:
    """Smallest change of the curve that so many further runs show against its newest level, four times in five."""
    (gap,) = steps.gaps([_trial(track, found, rules, runs)])
    return _size(gap)


def _trial(track: Track, found: Found, rules: Rules, runs: int = 1) -> steps.Pair:
    """The newest level of a curve, and as many runs like its last one."""
    first, end = found.levels(track.values.shape[1])[-1]
    newest = track.values[:, max(first, end - Settings().max_baseline_runs) : end]
    sides = steps.side_by_side(newest, np.repeat(newest[:, -1:], runs, axis=1))
    return steps.Pair(track, steps.posterior(track), sides, replace(rules, alpha_expected=ALPHA))


def _size(gap: steps.Gap | None) -> float:
    return float("nan") if gap is None else gap.mde


def _loss(lane: Lane, marks: Sequence[Mark], found: Found, anchor: datetime) -> Loss | None:
    before = [column for column, mark in enumerate(marks) if mark.at is not None and mark.at <= anchor]
    if not before:
        return None
    seen = drift.against(lane.track, before[-1], found, lane.rules)
    if seen is None:
        return None
    sizes = seen.effect, seen.low, seen.high, seen.p, seen.mde, seen.told
    return Loss(*sizes, seen.is_called, seen.is_slow, marks[before[-1]], marks[-1])


# ---------------------------------------------------------------- over curves


def episodes(found: Iterable[Chronicle]) -> list[Episode]:
    """What moved together under unchanged software is told once, with its members. Oldest first."""
    rows = [
        (chronicle_.gpu, one.is_better, one.first.at, one.last.at, chronicle_, one)
        for chronicle_ in found
        for one in chronicle_.departures
        if one.attribution.is_same and one.first.at is not None and one.last.at is not None
    ]
    told: list[Episode] = []
    for gpu, better, first, last, chronicle_, one in sorted(rows, key=lambda row: (row[2], row[3], row[4].curve)):
        home = next((e for e in told if (e.gpu, e.is_better) == (gpu, better) and first <= e.last), None)
        if home is None:
            told.append(Episode(gpu, first, last, better, ((chronicle_, one),)))
        else:
            grown = replace(home, last=max(home.last, last), members=(*home.members, (chronicle_, one)))
            told[told.index(home)] = grown
    return told


def findings(told: Chronicle) -> tuple[Finding, ...]:
    """The same image with other numbers as findings of the curve: suspected, the doubt named, never a regression."""
    return tuple(
        Finding(
            scope=Scope.CURVE,
            key=told.curve,
            metric=told.metric,
            verdict=Verdict.SUSPECTED,
            effect=one.effect,
            low=one.low,
            high=one.high,
            p=one.p,
            n_candidate=one.runs,
            config=told.config,
            candidate_runs=tuple(run for mark in (one.first, one.last) if (run := _key(mark)) is not None),
            baseline_image=one.first.image,
            candidate_image=one.last.image,
            caveats=(Caveat.of("environment"),),
            rules_version=RULES_VERSION,
        )
        for one in told.departures
        if one.attribution.is_same
    )


def _key(mark: Mark) -> RunKey | None:
    number, attempt = matrix.split_run(mark.run)
    return RunKey(int(number), attempt) if number.lstrip("-").isdigit() else None


def introductions(found: Iterable[Chronicle]) -> list[Introduction]:
    """Every change of image that was measured, with all curves of one framework and kind of GPU that took it."""
    told: dict[tuple[str, str, str | None, str | None], list[Taken]] = {}
    for one in found:
        shifts = {shift.after.run: shift for shift in one.shifts}
        for old, new in pairwise(one.eras):
            taken = Taken(one, old.last, new.first, new.runs, shifts.get(new.first.run))
            told.setdefault((one.framework, one.gpu, old.image, new.image), []).append(taken)
    rows = [Introduction(*key, tuple(members)) for key, members in told.items()]
    return sorted(rows, key=lambda one: (str(one.first.at), one.framework, one.gpu, str(one.after)))


def judged_metrics() -> tuple[str, ...]:
    """The metrics whose history can be told."""
    return tuple(
        name for name, row in METRICS.items() if row.part is not Part.SHOWN and row.family in Settings().limits
    )
