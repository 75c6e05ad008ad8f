"""The life of changes: what the reviews of all runs, told in order of time, make of each change of level.

A change opens with the first bad run. The next run of the same software confirms it or takes it back; later runs
resolve it when the level is back; a later bump of the same series supersedes it. Nothing is kept: the same reviews,
levels and events give the same lives, in whatever order the runs landed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from statistics import fmean, median, pstdev

from reports.things import FAILED_GATE, told_verdict
from store.images import Sameness
from store.life import Action, Bump, Change, Direction, Event, Move, Review, State, change_id
from store.metrics import metric
from store.records import Finding, RunKey, Scope, Verdict
from tracker.levels import Level, Levels, Order, bump, same
from tracker.moves import CALLED, runs_of

POOL_CURVES = 3
POOL_CONFIGS = 2
POOL_SHARE = 0.6
"""So many curves, of so many configs, and this share of what a pool judged in one night, make a pool-wide move..."""
POOL_SPREAD = 0.5
"""...when their effects are alike: their standard deviation is at most this share of their mean."""

BACK_SHARE = 0.5
"""A level is back when less than this share of the change is left, and less than the margin."""


@dataclass(frozen=True, slots=True)
class History:
    """Everything that lives are told from."""

    reviews: Sequence[Review]
    levels: Levels
    events: Sequence[Event] = ()


def tell(history: History, until: datetime | None = None) -> tuple[Change, ...]:
    """Every change up to a moment (that moment left out), in the order of their first bad runs."""
    reviews = sorted((r for r in history.reviews if until is None or r.started_at < until), key=_order)
    book = _Book(history.levels)
    wide = _pool_moves(reviews, history.levels)
    for review in reviews:
        book.meet(review)
        for night in wide.openers.get(review.run, ()):
            book.open_pool(night, review)
        for move in review.moves:
            book.hear(move, review, absorbed=(review.run, move.key) in wide.absorbed)
    events = [event for event in history.events if until is None or event.at < until]
    told = (_with_events(track.change, events) for track in book.tracks.values())
    return tuple(sorted(told, key=lambda change: (change.first_at, change.first, change.key, change.id)))


def _order(review: Review) -> Order:
    return (review.started_at, review.run.attempt, review.run.id)


# ---------------------------------------------------------------- one change


@dataclass(frozen=True, slots=True)
class _Track:
    """A change with what its later levels are held against."""

    change: Change
    reference: Mapping[str, tuple[str, float]]
    margin: float
    size: float
    """How far the level went in the change's direction when it was first seen; positive."""
    software: Mapping[str, Level]
    """Key -> level of the first bad run."""
    order: Order
    masked: bool = False
    """True where its first run lies in a bad night of its pool: the size of that night is not its own."""

    def offset(self, levels: Iterable[Level]) -> float | None:
        """How far the members still are in the change's direction; None where none was measured."""
        way = 1.0 if self.change.direction is Direction.BETTER else -1.0
        moved = [way * _goodness(name, after) for name, after in self._differences(levels)]
        return fmean(moved) if moved else None

    def effect(self, levels: Iterable[Level]) -> float | None:
        """The same as a signed effect of the metric."""
        moved = [after for _, after in self._differences(levels)]
        return fmean(moved) if moved else None

    def _differences(self, levels: Iterable[Level]) -> Iterator[tuple[str, float]]:
        for level in levels:
            for series, (name, before) in self.reference.items():
                if (series, name) in level.values:
                    yield name, level.values[series, name] - before


def _goodness(name: str, difference: float) -> float:
    return difference if metric(name).improves(1.0) else -difference


@dataclass(slots=True)
class _Book:
    """All changes so far. Each run first meets the live changes of what it measured, then its own moves are heard."""

    levels: Levels
    tracks: dict[str, _Track] = field(default_factory=dict)
    _live: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    # ---- a later run

    def meet(self, review: Review) -> None:
        """What a run means for the changes that are live."""
        touched = {id for key, ids in self._live.items() if review.run in self.levels.get(key, {}) for id in ids}
        for id in sorted(touched):
            track = self.tracks[id]
            levels = {key: self.levels[key][review.run] for key in track.software if review.run in self.levels[key]}
            off = track.offset(levels.values())
            if off is not None and review.run not in {level.run for level in track.software.values()}:
                self._keep(_met(track, review, levels, off))

    def _keep(self, track: _Track) -> None:
        self.tracks[track.change.id] = track
        for key in track.software:
            ids = self._live[key]
            if track.change.is_live and track.change.id not in ids:
                ids.append(track.change.id)
            elif not track.change.is_live and track.change.id in ids:
                ids.remove(track.change.id)

    # ---- what moved in it

    def hear(self, move: Move, review: Review, *, absorbed: bool) -> None:
        """Open a change for a move, unless one that is there already tells it."""
        level = self.levels.get(move.key, {}).get(review.run)
        if level is None or move.verdict is Verdict.RECOVERY or not move.reference:
            return
        base = runs_of(move)
        before = self.levels[move.key].get(base) if base else None
        what = bump(before, level, (move.finding.baseline_image, move.finding.candidate_image))
        if (absorbed and what.sameness is not Sameness.CHANGED) or self._is_told(move, review, before, what):
            return
        new = _opened(move, review, what, level)
        if absorbed:
            new = _suspected(new)
        known = self.tracks.get(new.change.id)
        if known is not None and known.change.is_live:
            self._promote(known, move, review)
            return
        new = new if known is None else _again(known, new)
        self._keep(self._follow(new, review, level) if new.change.announced == review.run else new)

    def _is_told(self, move: Move, review: Review, before: Level | None, what: Bump) -> bool:
        """True where a live change has this move already, or it only undoes one."""
        for id in (*self._live[move.key], *self._ended_by(move.key, review.run)):
            track = self.tracks[id]
            if track.change.pool or review.run == track.change.first:
                continue
            if track.change.direction is not move.direction:
                if not track.change.is_live and self._undoes(track, move, review, what):
                    return True
            elif track.change.is_environment and what.sameness is not Sameness.SAME:
                continue
            elif track.change.is_live and (_fails_on(track, move) or before is None or before.order < track.order):
                self._promote(track, move, review)
                return True
        return False

    def _undoes(self, track: _Track, move: Move, review: Review, what: Bump) -> bool:
        """A move back is no change of its own, unless it goes beyond the level before; a gain that is lost is one."""
        if track.change.direction is Direction.BETTER and what.sameness is not Sameness.SAME:
            return False
        if told_verdict(track.change.finding) is Verdict.FAILED:
            return True  # a threshold that is passed again is no gain, however far above it
        off = track.offset([self.levels[move.key][review.run]])
        return move.verdict not in CALLED or off is None or -off <= max(move.margin, track.margin)

    def _ended_by(self, key: str, run: RunKey) -> list[str]:
        return [id for id, track in self.tracks.items() if key in track.software and track.change.state_run == run]

    def _promote(self, track: _Track, move: Move, review: Review) -> None:
        """A suspicion that a later run calls against the same past is a change."""
        change = track.change
        if change.announced is None and move.verdict in CALLED and not change.is_environment:
            opened = _turned(_announced(change, review), review, State.OPEN)
            announced = replace(opened, confirmed=review.run, finding=move.finding)
            self._keep(replace(track, change=announced))

    def _follow(self, new: _Track, review: Review, level: Level) -> _Track:
        """An announced change takes the place of what was live on its series, and knows the last good level."""
        good = None
        key = new.change.key
        for id in (*list(self._live[key]), *self._ended_by(key, review.run)):
            old = self.tracks[id]
            if old.change.id == new.change.id or old.change.pool or old.change.first == review.run:
                continue
            rebased = any(caveat.code == "recovery" for caveat in new.change.finding.caveats)
            if old.change.direction is Direction.WORSE and old.change.announced is not None and not rebased:
                good = old.effect([level])
            if old.change.is_live and not old.change.is_environment:
                ended = replace(_turned(old.change, review, State.SUPERSEDED), superseded_by=new.change.id)
                self._keep(replace(old, change=ended))
        return replace(new, change=replace(new.change, since_good=good))

    # ---- pools

    def open_pool(self, night: _Night, review: Review) -> None:
        """One change for everything that moved on a pool in one night."""
        teller = sorted(night.moves, key=lambda move: (move.finding.effect or 0.0, move.key))[len(night.moves) // 2]
        key = f"pool {night.pool}"
        what = Bump(None, None, Sameness.SAME, since=review.run)
        id = change_id(key, "speed", night.direction, night.day)
        change = Change(
            id=id,
            key=key,
            config="",
            scope=Scope.CONFIG,
            direction=night.direction,
            bump=what,
            finding=teller.finding,
            first=review.run,
            first_at=review.started_at,
            state=State.SUSPECTED,
            state_at=review.started_at,
            state_run=review.run,
            last_seen=review.run,
            members=tuple(sorted({move.key for move in night.moves})),
            configs=tuple(sorted({move.config for move in night.moves})),
            pool=night.pool,
        )
        software = {key: self.levels[key][run] for run, key in night.places if run in self.levels.get(key, {})}
        reference = {series: level for move in night.moves for series, level in move.reference.items()}
        margin = fmean(move.margin for move in night.moves)
        self._keep(_Track(change, reference, margin, _size(night.moves), software, _order(night.last)))


def _size(moves: Iterable[Move]) -> float:
    return median(abs(move.finding.effect or 0.0) for move in moves)


def _opened(move: Move, review: Review, what: Bump, level: Level) -> _Track:
    """A change as its first bad run shows it. What only machines can have done is never announced."""
    is_called = move.verdict in CALLED and what.sameness is not Sameness.SAME
    kind = "accuracy" if move.finding.task else "speed"
    change = Change(
        id=change_id(move.key, kind, move.direction, what.text),
        key=move.key,
        config=move.config,
        scope=move.scope,
        direction=move.direction,
        bump=what,
        finding=move.finding,
        first=review.run,
        first_at=review.started_at,
        state=State.OPEN if is_called else State.SUSPECTED,
        state_at=review.started_at,
        state_run=review.run,
        announced=review.run if is_called else None,
        announced_at=review.started_at if is_called else None,
        last_seen=review.run,
        members=tuple(sorted(move.reference)),
        configs=(move.config,),
        alarms=move.alarms,
    )
    track = _Track(change, move.reference, move.margin, 0.0, {move.key: level}, _order(review))
    return replace(track, size=max(track.offset([level]) or 0.0, move.margin))


def _fails_on(track: _Track, move: Move) -> bool:
    """An eval that missed its threshold when the change began misses it still."""
    return all(any(caveat.code == FAILED_GATE for caveat in alarms) for alarms in (track.change.alarms, move.alarms))


def _suspected(track: _Track) -> _Track:
    """On a night on which its whole pool moved, a change is no more than suspected."""
    change = replace(track.change, state=State.SUSPECTED, announced=None, announced_at=None)
    return replace(track, change=change, size=track.margin, masked=True)


def _again(known: _Track, new: _Track) -> _Track:
    """The same bump moved the same series again after it was resolved or taken back: the same change, not a new one."""
    old, now = known.change, new.change
    change = replace(
        now,
        first=old.first,
        first_at=old.first_at,
        announced=old.announced or now.announced,
        announced_at=old.announced_at or now.announced_at,
        returned=now.first,
        confirmed=old.confirmed,
        runs=old.runs + 1,
        finding=now.finding,
    )
    return replace(new, change=change)


# ---------------------------------------------------------------- what a later run does to a change


def _met(track: _Track, review: Review, levels: Mapping[str, Level], off: float) -> _Track:
    """A change after a later run that measured some of it."""
    is_same = bool(track.change.pool) or all(same(track.software[key], level) for key, level in levels.items())
    if off <= min(track.margin, BACK_SHARE * track.size):
        return replace(track, change=_back(track.change, review, is_same))
    change = replace(track.change, runs=track.change.runs + 1, last_seen=review.run)
    if is_same and change.confirmed is None:
        change = _decided(track, change, review, levels, off)
    return replace(track, change=change)


def _turned(change: Change, review: Review, state: State, why: str = "") -> Change:
    return replace(change, state=state, state_at=review.started_at, state_run=review.run, why=why)


def _announced(change: Change, review: Review) -> Change:
    return replace(change, announced=review.run, announced_at=review.started_at)


def _back(change: Change, review: Review, is_same: bool) -> Change:
    """The level is back: a single bad run of the same software was a spike, a suspicion was none, a change is over."""
    if is_same and change.confirmed is None:
        return _turned(change, review, State.WITHDRAWN, "spike")
    if change.announced is None and not change.is_environment:
        return _turned(change, review, State.WITHDRAWN, "not_confirmed")
    return _turned(change, review, State.RESOLVED)


def _decided(track: _Track, change: Change, review: Review, levels: Mapping[str, Level], off: float) -> Change:
    """The second run of the same software: both judged together where the judge allows it, else its own level."""
    joint = None if track.masked else _joint(change, review)
    said = joint.verdict if joint else None
    if said is Verdict.SUSPECTED and change.announced is not None:
        return change
    if not (said in CALLED if said else off >= max(track.margin, BACK_SHARE * track.size)):
        return _turned(change, review, State.WITHDRAWN, "not_confirmed")
    if not change.is_environment and change.announced is None:
        finding = joint.finding if joint and joint.finding else _as_measured(track, levels)
        change = replace(_announced(change, review), finding=finding)
    return _turned(replace(change, confirmed=review.run), review, State.OPEN)


def _as_measured(track: _Track, levels: Mapping[str, Level]) -> Finding:
    """The finding with the change that the confirming run shows, where nothing judged both runs together."""
    return replace(track.change.finding, effect=track.effect(levels.values()), low=None, high=None, p=None)


@dataclass(frozen=True, slots=True)
class _Said:
    """What two runs say together; equivalent where nothing moved."""

    verdict: Verdict
    finding: Finding | None = None


def _joint(change: Change, review: Review) -> _Said | None:
    """What both runs say together; None where they were not judged so."""
    for joint in review.joint:
        if joint.first == change.first and change.key in joint.keys:
            said = [m for m in joint.moves if m.key == change.key and m.direction is change.direction]
            return _Said(said[0].verdict, said[0].finding) if said else _Said(Verdict.EQUIVALENT)
    return None


# ---------------------------------------------------------------- whole pools


@dataclass(frozen=True, slots=True)
class _Night:
    """What moved on one pool in one night."""

    day: str
    pool: str
    direction: Direction
    moves: tuple[Move, ...]
    places: frozenset[tuple[RunKey, str]]
    last: Review


@dataclass(frozen=True, slots=True)
class _Wide:
    """The pool-wide moves by the run that opens them, and the moves that they hold."""

    openers: Mapping[RunKey, tuple[_Night, ...]]
    absorbed: frozenset[tuple[RunKey, str]]


def _pool_moves(reviews: Sequence[Review], levels: Levels) -> _Wide:
    nights: dict[tuple[str, str], list[Review]] = defaultdict(list)
    for review in reviews:
        for pool in review.pools:
            nights[f"{review.started_at:%Y-%m-%d}", pool].append(review)
    openers: dict[RunKey, list[_Night]] = defaultdict(list)
    absorbed: set[tuple[RunKey, str]] = set()
    for (day, pool), held in sorted(nights.items()):
        for way in Direction if pool else ():
            night = _night(day, pool, way, held)
            if night is not None and _is_wide(night, held, levels):
                openers[min(held, key=_order).run].append(night)
                absorbed |= night.places
    return _Wide({run: tuple(found) for run, found in openers.items()}, frozenset(absorbed))


def _night(day: str, pool: str, way: Direction, held: Sequence[Review]) -> _Night | None:
    found = [
        (review, move)
        for review in held
        for move in review.moves
        if move.pool == pool and move.direction is way and move.scope is Scope.CURVE
    ]
    if not found:
        return None
    places = frozenset((review.run, move.key) for review, move in found)
    return _Night(day, pool, way, tuple(move for _, move in found), places, max(held, key=_order))


def _is_wide(night: _Night, held: Sequence[Review], levels: Levels) -> bool:
    """Most of a pool moved alike although its software is unchanged, or differs among what moved."""
    judged = sum(review.pools[night.pool] for review in held)
    if len(night.moves) < max(POOL_CURVES, POOL_SHARE * judged):
        return False
    if len({move.config for move in night.moves}) < POOL_CONFIGS:
        return False
    sizes = [abs(move.finding.effect or 0.0) for move in night.moves]
    return pstdev(sizes) <= POOL_SPREAD * fmean(sizes) and _is_of_machines(night, levels)


def _is_of_machines(night: _Night, levels: Levels) -> bool:
    """No one bump explains it: some of the software is unchanged, or several bumps or engines moved alike."""
    bumps = []
    for run, key in night.places:
        level = levels.get(key, {}).get(run)
        move = next(move for move in night.moves if move.key == key)
        base = runs_of(move)
        before = levels[key].get(base) if base and level else None
        if level is not None:
            bumps.append(bump(before, level, (move.finding.baseline_image, move.finding.candidate_image)))
    unchanged = any(one.sameness is Sameness.SAME for one in bumps)
    images = {(one.before, one.after) for one in bumps if one.sameness is Sameness.CHANGED}
    engines = {move.finding.series.framework for move in night.moves if move.finding.series}
    return unchanged or len(images) > 1 or len(engines) > 1


# ---------------------------------------------------------------- what people said


def _with_events(change: Change, events: Sequence[Event]) -> Change:
    """A change with the last word that people had about it."""
    said = [event for event in events if event.change == change.id]
    if not said:
        return change
    last = said[-1]
    told = replace(change, said=last)
    if last.action is Action.DISMISS:
        return replace(told, state=State.DISMISSED, state_at=last.at, state_run=None)
    if last.action is Action.ACKNOWLEDGE and change.state in (State.OPEN, State.SUSPECTED):
        return replace(told, state=State.ACKNOWLEDGED, state_at=last.at, state_run=None)
    return told
