"""A week of a store: its runs, what became of every change up to its end, and the images in force then.

Weeks are ISO weeks in UTC. A week is told as it stood at its end: no clock, no later run and no order of landing has
part in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import polars as pl

from store.duck import Store
from store.life import Action, Change, Direction, Event, InForce, Precision, State, Week
from store.records import Level, Run, RunKey, Trouble
from store.runs import standing
from tracker import levels, life, partial, sides
from tracker.jobs import Where
from tracker.settings import RULES_VERSION
from tracker.stats.proportions import wilson

_WEEK = re.compile(r"(\d{4})-W(\d{2})")
_LENGTH = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Span:
    """An ISO week: its name, its Monday and the next one, midnight UTC."""

    name: str
    start: datetime
    end: datetime


def span(text: str) -> Span:
    """The week that a text names.

    >>> span("2026-W32").start.date().isoformat(), span("2026-W32").end.date().isoformat()
    ('2026-08-03', '2026-08-10')
    """
    found = _WEEK.fullmatch(text)
    try:
        if found is None:
            raise ValueError(text)
        monday = datetime.fromisocalendar(int(found[1]), int(found[2]), 1).replace(tzinfo=UTC)
        return Span(text, monday, monday + _LENGTH)
    except (ValueError, OverflowError) as flaw:
        raise Trouble(f"{text!r} is no ISO week: write it as 2026-W32") from flaw


def week_of(moment: datetime) -> Span:
    """The week that a moment lies in.

    >>> week_of(datetime(2027, 1, 1, tzinfo=UTC)).name
    '2026-W53'
    """
    year, number, _ = moment.astimezone(UTC).isocalendar()
    return span(f"{year}-W{number:02}")


def last_whole(moment: datetime) -> Span:
    """The last week that is over at a moment.

    >>> last_whole(datetime(2026, 8, 10, tzinfo=UTC)).name, last_whole(datetime(2026, 8, 9, tzinfo=UTC)).name
    ('2026-W32', '2026-W31')
    """
    return week_of(week_of(moment).start - timedelta(days=1))


# ---------------------------------------------------------------- what is known


@contextmanager
def _existing(where: Where) -> Iterator[Store]:
    with sides.opened(where.store, where.archive, where.withdrawn()) as store:
        if store is None:
            raise Trouble(f"there is no store at {where.store}: land a sweep first with `tracker ingest PATH`")
        yield store


@dataclass(frozen=True, slots=True)
class Known:
    """What all weeks of a store are told from, asked for once."""

    history: life.History
    runs: tuple[Run, ...]
    """Every run attempt, oldest first."""
    reviewable: tuple[RunKey, ...]


def known(store: Store, rules_version: str = RULES_VERSION) -> Known:
    """Reviews of the runs that are official now, the levels of all that ever moved, and what people said.

    Raises Trouble for a store that holds a part of its archive: what it left out would seem new, or ended.
    """
    partial.refuse(store, "the life of changes")
    official = tuple(RunKey(*key) for key in store.reviewable().select("id", "attempt").iter_rows())
    kept = set(official)
    reviews = tuple(review for review in store.reviews(rules_version) if review.run in kept)
    moves = [move for review in reviews for move in review.moves]
    curves = {move.key for move in moves if move.finding.task is None}
    evals = {move.key for move in moves if move.finding.task is not None}
    found = levels.of_store(store, curves, evals)
    history = life.History(reviews, found, store.events())
    names = [f"{number}/{attempt}" for number, attempt in store.runs().select("id", "attempt").iter_rows()]
    return Known(history, sides.runs_by_text(store, names), official)


def changes(where: Where) -> tuple[tuple[Change, ...], datetime]:
    """Every change of a store with its life so far, and when the newest judged run started."""
    with _existing(where) as store:
        history = known(store).history
        if not history.reviews:
            raise Trouble("no run has been judged yet: `tracker weekly` judges every run once")
        return life.tell(history), history.reviews[-1].started_at


def weekly(where: Where, name: str | None = None, now: datetime | None = None) -> Week:
    """A week of a store: the one that is named, else the last whole one before `now`, else before the newest run."""
    with _existing(where) as store:
        asked = span(name) if name else last_whole(now or _newest(store))
        return of_week(store, known(store), asked)


def every_week(where: Where) -> Iterator[Week]:
    """All weeks from the first run to the newest, one after the other."""
    with _existing(where) as store:
        what = known(store)
        if not what.runs:
            return
        here, last = week_of(what.runs[0].started_at), week_of(what.runs[-1].started_at)
        while here.start <= last.start:
            yield of_week(store, what, here)
            here = week_of(here.end)


def of_week(store: Store, what: Known, asked: Span) -> Week:
    """One week as it stood at its end."""
    told = life.tell(what.history, asked.end)
    held = tuple(review for review in what.history.reviews if asked.start <= review.started_at < asked.end)
    runs = [run for run in what.runs if asked.start <= run.started_at < asked.end]
    judged = {review.run for review in held}
    images = tuple(_images(store, asked.end))
    named = {run.key for run in runs} | {key for change in told for key in _named(change)} | judged
    named |= {image.run for image in images}
    return Week(
        name=asked.name,
        start=asked.start,
        end=asked.end,
        reviews=held,
        changes=told,
        images=images,
        runs=tuple(run for run in what.runs if run.key in named),
        unofficial=tuple((run.key, standing(run).reasons) for run in runs if not standing(run).official),
        unread=tuple(run.key for run in runs if run.key in set(what.reviewable) - judged),
        precision=precision(told),
        rules_version=RULES_VERSION,
    )


def histories(where: Where, week: Week) -> Mapping[str, tuple[Level, ...]]:
    """By curve, how fast its official runs up to the week's end were beside the curve's median run, oldest first.

    Of the curves that changed for the worse in this week by an announcement.
    """
    fresh = {
        change.key
        for change in week.changes
        if change.direction is Direction.WORSE
        and not change.is_eval
        and not change.pool
        and change.announced_at is not None
        and week.start <= change.announced_at < week.end
    }
    if not fresh:
        return {}
    with _existing(where) as store:
        rows = store.history(sorted(fresh), [sides.LEVEL_METRIC])
        return sides.levels_of(rows.filter(pl.col("official") & (pl.col("started_at") < week.end)))


def _named(change: Change) -> Iterable[RunKey | None]:
    return (
        change.first,
        change.announced,
        change.confirmed,
        change.returned,
        change.state_run,
        change.last_seen,
    )


def _images(store: Store, until: datetime) -> Iterator[InForce]:
    for config, image, first_at, last_at, number, attempt in store.images_in_force(until).iter_rows():
        yield InForce(config, image, first_at, last_at, (until - first_at).days, RunKey(number, attempt))


def precision(told: Sequence[Change]) -> Precision:
    """Confirmed, by the next run or by a person, against dismissed; what nobody decided counts for neither."""
    announced = [change for change in told if change.announced is not None]
    dismissed = sum(change.state is State.DISMISSED for change in announced)
    confirmed = sum(_is_confirmed(change) for change in announced)
    total = confirmed + dismissed
    if not total:
        return Precision(0, 0)
    return Precision(confirmed, dismissed, *wilson(confirmed / total, total))


def _is_confirmed(change: Change) -> bool:
    if change.state in (State.DISMISSED, State.WITHDRAWN):
        return False
    return change.confirmed is not None or change.state is State.ACKNOWLEDGED


def _newest(store: Store) -> datetime:
    newest = store.newest_run()
    if newest is None:
        raise Trouble("the store is empty: land a sweep first with `tracker ingest PATH`")
    return newest.started_at


# ---------------------------------------------------------------- what people say


def say(where: Where, events: Sequence[Event]) -> tuple[Change, ...]:
    """Keep what somebody says about changes, each named by its id or by the start of it; they stand as told then."""
    with Store.open(where.store, where.archive, official=standing, withdrawn=where.withdrawn()) as store:
        history = known(store).history
        found = [find(life.tell(history), event.change) for event in events]
        for event, change in zip(events, found, strict=True):
            store.add_event(_checked(event, change))
        ids = {change.id for change in found}
        return tuple(change for change in life.tell(known(store).history) if change.id in ids)


def find(told: Sequence[Change], text: str) -> Change:
    """The change that an id names, or the start of one. Raises Trouble with what to do."""
    fit = [change for change in told if text and change.id.startswith(text.lower())]
    if len(fit) == 1:
        return fit[0]
    if not fit:
        raise Trouble(f"no change {text!r}: `tracker findings list --all` names every one")
    raise Trouble(f"{text!r} may be {', '.join(change.id for change in fit)}: write one of them whole")


def _checked(event: Event, change: Change) -> Event:
    """The event under the whole id; what is over cannot be acknowledged, what was not dismissed not be reopened."""
    if event.action is Action.REOPEN and change.state is not State.DISMISSED:
        raise Trouble(f"change {change.id} is {change.state.value}, not dismissed: there is nothing to reopen")
    if event.action is Action.ACKNOWLEDGE and not change.is_live:
        raise Trouble(f"change {change.id} is {change.state.value}: only what is open can be acknowledged")
    return replace(event, change=change.id)
