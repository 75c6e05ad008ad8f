"""The questions of history, a function each: what the store holds of the series asked for, told as chronicles."""

from __future__ import annotations

import csv
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl

from store import images
from store.chronicles import Chronicle, Episode, Introduction, Spread
from store.duck import Store
from store.identity import curve_key, kin_of
from store.records import Attribution, Controls, Trouble
from tracker import attribution, chronicle, filters, reproducibility, sides, workers
from tracker.chronicle import Past
from tracker.events import EVENTS, Event, span
from tracker.excerpts import Excerpt, Source
from tracker.filters import Filters
from tracker.jobs import Where
from tracker.judge.learn import learn
from tracker.partial import refuse
from tracker.settings import Settings
from tracker.stats.noise import Scales
from tracker.workers import ALONE, Crew

MANY = 2_000
"""Curves times metrics from which several processes pay for their start (a second each)."""

PORTION = 32
"""Curves times metrics that are given out together, at least: some seconds of work."""


_NOTHING = "no official run measured that in that time: widen the filters, or see `tracker store states`"
_RELEASE = "release:"


@dataclass(frozen=True, slots=True)
class Asked:
    """Which series, when, by which metrics; and what stands in for what the rows do not say."""

    filters: Sequence[str] = ()
    since: str | None = None
    until: str | None = None
    anchor: str | None = None
    metrics: tuple[str, ...] = ("tput_per_gpu",)
    config_history: Path | None = None
    events: tuple[Event, ...] = EVENTS


def history(asked: Asked, where: Where, crew: Crew = ALONE) -> list[Chronicle]:
    """The chronicles of the curves asked for, in the order of their keys.

    Where they are many, or a cluster was named, the crew shares them: each worker reads the archive's files of its
    curves. No answer depends on who gave it.
    """
    with _opened(asked, where) as store:
        view = _view(asked, store)
        portions = _portions(view, store, where, crew)
        if portions:
            ready = _settled(view, store)
        else:
            told = list(_of_all(view, store))
    if portions:
        told = list(chain.from_iterable(workers.map(partial(_of_portion, ready), portions, crew)))
    if not told:
        raise Trouble(_NOTHING)
    told = with_controls(told)
    return sorted(told, key=lambda one: (one.config, one.curve, one.metric))


def past(asked: Asked, where: Where) -> Past:
    """What the store holds of the series asked for."""
    with _opened(asked, where) as store:
        return _past(_view(asked, store), store)


def environment(told: Sequence[Chronicle]) -> list[Episode]:
    """What moved together under unchanged software."""
    return chronicle.episodes(told)


def introductions(asked: Asked, where: Where, crew: Crew = ALONE) -> list[Introduction]:
    """Which image came when, over all configs that took it."""
    return chronicle.introductions(history(asked, where, crew))


def spreads(asked: Asked, where: Where, by: str) -> tuple[list[Spread], list[Episode]]:
    """Reproducibility by group, and the days on which the same image gave other numbers."""
    found, told = reproducibility.spreads(past(asked, where), by, asked.metrics)
    return found, chronicle.episodes(told)


@contextmanager
def _opened(asked: Asked, where: Where) -> Iterator[Store]:
    known = chronicle.judged_metrics()
    for name in asked.metrics:
        if name not in known:
            raise Trouble(f"{name!r} has no noise scale: the metrics with a history are {', '.join(known)}")
    with sides.opened(where.store, where.archive, where.withdrawn()) as store:
        if store is None:
            raise Trouble(f"there is no store at {where.store}: land a sweep first with `tracker ingest PATH`")
        refuse(store, "a history")
        yield store


@dataclass(frozen=True, slots=True)
class _View:
    """What is asked, as it is for every portion: it travels to the workers, so it holds no measurement."""

    asked: Asked
    now: datetime
    """When the newest run of the store started."""
    wanted: Filters
    images: ConfigHistory | None
    scales: Scales | None = None
    anchor: datetime | None = None


def _view(asked: Asked, store: Store) -> _View:
    newest = store.newest_run()
    now = newest.started_at if newest is not None else datetime.now(UTC)
    wanted = filters.filters(asked.filters, asked.since, asked.until, now)
    known = None if asked.config_history is None else read_config_history(asked.config_history)
    scales = sides.with_learned_scales(Settings(), store).scales
    return _View(asked, now, wanted, known, scales)


def _of_all(view: _View, store: Store) -> Iterator[Chronicle]:
    known = _past(view, store)
    return chronicle.chronicles(known, view.asked.metrics, _anchor(view, known.history))


def _past(view: _View, store: Store) -> Past:
    series = view.wanted.series(store.series())
    rows = _rows(view, store, series, sorted({curve_key(one) for one in series.values()}))
    if rows.is_empty():
        raise Trouble(_NOTHING)
    return Past(rows, series, view.scales or learn(rows, Settings()), view.asked.events)


def _rows(view: _View, store: Store, series: Collection[str], curves: Collection[str]) -> pl.DataFrame:
    """The official rows of some series in the time asked for."""
    found = store.history(curves, view.asked.metrics)
    rows = found.filter(pl.col("official") & pl.col("series").is_in(list(series)))
    if view.wanted.since is not None:
        rows = rows.filter(pl.col("started_at") >= view.wanted.since)
    if view.wanted.until is not None:
        rows = rows.filter(pl.col("started_at") < view.wanted.until)
    return rows if view.images is None or rows.is_empty() else with_images(rows, view.images)


# ---------------------------------------------------------------- shared among workers


@dataclass(frozen=True, slots=True)
class _Portion:
    """Curves that one worker tells, and what it has to read."""

    curves: tuple[str, ...]
    excerpt: Excerpt

    def __str__(self) -> str:
        return f"{self.curves[0]} and {len(self.curves) - 1} more curves"


def _portions(view: _View, store: Store, where: Where, crew: Crew) -> tuple[_Portion, ...]:
    """What to give out; nothing where this process does it alone."""
    metrics = len(view.asked.metrics)
    curves = sorted({curve_key(one) for one in view.wanted.series(store.series()).values()})
    if crew.is_alone or (crew.cluster is None and len(curves) * metrics < MANY):
        return ()
    source = Source.of(store, where.archive, where.store, crew)
    if source is None:
        return ()
    made = (_Portion(tuple(some), source.excerpt(store.files_of(some))) for some in _together(curves, metrics))
    return tuple(one for one in made if one.excerpt.files)


def _together(curves: Sequence[str], metrics: int) -> Iterator[list[str]]:
    """Curves in portions that hold all kin of each."""
    portion: list[str] = []
    for _, alike in groupby(curves, kin_of):
        portion += alike
        if len(portion) * metrics >= PORTION:
            yield portion
            portion = []
    if portion:
        yield portion


def _settled(view: _View, store: Store) -> _View:
    """With the noise and the anchor, which are of all curves: read here only where the store has not learned them."""
    is_known = view.scales is not None and not (view.asked.anchor or "").startswith(_RELEASE)
    known = None if is_known else _past(view, store)
    scales = view.scales if known is None else known.scales
    return replace(view, scales=scales, anchor=_anchor(view, None if known is None else known.history))


def _of_portion(view: _View, portion: _Portion) -> list[Chronicle]:
    """The chronicles of some curves, read straight from the files of the archive."""
    with portion.excerpt.opened() as store:
        series = view.wanted.series(store.series())
        rows = _rows(view, store, series, portion.curves)
    assert view.scales is not None
    known = Past(rows, series, view.scales, view.asked.events)
    return list(chronicle.chronicles(known, view.asked.metrics, view.anchor))


# ---------------------------------------------------------------- since when


def _anchor(view: _View, history: pl.DataFrame | None) -> datetime | None:
    """A time, or the last run of the first image whose reference holds the text (`release:v0.5.9`)."""
    text = view.asked.anchor
    if text is None or history is None or not text.startswith(_RELEASE):
        return None if text is None else filters.moment(text, view.now)
    word = text.removeprefix(_RELEASE)
    found = history.filter(pl.col("image").str.contains(word, literal=True))["started_at"].max()
    if not word or not isinstance(found, datetime):
        raise Trouble(f"no image of these runs has {word!r} in its name: write release:TAG, a day, or 8w")
    return found


# ---------------------------------------------------------------- controls


def with_controls(found: Sequence[Chronicle]) -> list[Chronicle]:
    """The chronicles, what moved under unchanged software with what other configs did on the same kind of GPU then."""
    told = {(one.curve, one.metric): one for one in found}
    machines: dict[str, list[tuple[Chronicle, list[datetime]]]] = {}
    for one in found:
        machines.setdefault(one.gpu, []).append((one, sorted(mark.at for mark in one.marks if mark.at is not None)))
    for episode in chronicle.episodes(found):
        beside = [one for one, days in machines[episode.gpu] if _is_measured(days, episode)]
        said: dict[tuple[str, str], Attribution] = {}
        for one, departure in episode.members:
            place, own = (one.config, one.metric), told[one.curve, one.metric]
            if place not in said:
                said[place] = attribution.attribution((), _controls(*place, beside, episode))
            parts = (replace(part, attribution=said[place]) if part == departure else part for part in own.departures)
            told[one.curve, one.metric] = replace(own, departures=tuple(parts))
    return [told[one.curve, one.metric] for one in found]


def _is_measured(days: Sequence[datetime], episode: Episode) -> bool:
    return bisect_right(days, episode.last) > bisect_left(days, episode.first)


def _controls(config: str, name: str, beside: Iterable[Chronicle], episode: Episode) -> Controls:
    """The curves of other configs, and those of them that left their level with the episode."""
    curves = {one.curve for one in beside if one.metric == name and one.config != config}
    moved = {one.curve: away.effect for one, away in episode.members if one.metric == name and one.curve in curves}
    return Controls(len(curves), len(moved), median(moved.values()) if moved else None)


# ---------------------------------------------------------------- images that the rows do not name


ConfigHistory = Mapping[str, tuple[tuple[datetime, ...], tuple[str | None, ...], tuple[str | None, ...]]]
"""By config key: moments of its changes, and from each on its image and what stands for its recipe."""

_COLUMNS = ("committed_at", "commit", "config_key", "change", "image")


def read_config_history(path: Path) -> ConfigHistory:
    """A CSV of what master configs said when: committed_at, commit, config_key, change, image."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as flaw:
        raise Trouble(f"{path} cannot be read as CSV ({flaw})") from flaw
    missing = [name for name in _COLUMNS if rows and name not in rows[0]]
    if missing or not rows:
        raise Trouble(f"{path} lacks {', '.join(missing) or 'rows'}: it needs the columns {', '.join(_COLUMNS)}")
    entries: dict[str, list[tuple[datetime, str | None, str | None]]] = {}
    for line, row in enumerate(rows, 2):
        entries.setdefault(row["config_key"], []).append(_entry(row, f"{path}:{line}"))
    return {key: _columns(sorted(changes, key=lambda change: change[0])) for key, changes in entries.items()}


def _entry(row: Mapping[str, str], place: str) -> tuple[datetime, str | None, str | None]:
    try:
        moment = datetime.fromisoformat(row["committed_at"])
    except ValueError:
        raise Trouble(f"{place}: {row['committed_at']!r} is no moment: write 2026-05-18T10:00:00Z") from None
    if row["change"] == "removed":
        return moment, None, None
    changes_recipe = row["change"] != "image"
    return moment.astimezone(UTC), images.canonical(row["image"]), row["commit"] if changes_recipe else ""


def _columns(
    changes: Sequence[tuple[datetime, str | None, str | None]],
) -> tuple[tuple[datetime, ...], tuple[str | None, ...], tuple[str | None, ...]]:
    recipe: str | None = None
    recipes = []
    for _, image, said in changes:
        recipe = None if image is None else (said or recipe)
        recipes.append(recipe)
    moments, known, _ = zip(*changes, strict=True)
    return moments, known, tuple(recipes)


def with_images(history: pl.DataFrame, known: ConfigHistory) -> pl.DataFrame:
    """The rows with the image and the recipe in force at their time, where they name none.

    A time that is a whole day stands for its end: a run is started by the commit that it measures.
    """
    pairs = history.select("config", "started_at").unique()
    told = [(config, at, *_in_force(known, config, span(at)[1])) for config, at in pairs.iter_rows()]
    kinds: dict[str, Any] = {"config": pl.String, "started_at": history.schema["started_at"]}
    beside = pl.DataFrame(told, schema={**kinds, "_image": pl.String, "_recipe": pl.String}, orient="row")
    filled = history.join(beside, ["config", "started_at"], "left", maintain_order="left")
    both = (pl.coalesce(name, f"_{name}").alias(name) for name in ("image", "recipe"))
    return filled.with_columns(*both).drop("_image", "_recipe")


def _in_force(known: ConfigHistory, config: str, at: datetime) -> tuple[str | None, str | None]:
    moments, pictures, recipes = known.get(config, ((), (), ()))
    place = bisect_right(moments, at) - 1
    return (pictures[place], recipes[place]) if place >= 0 else (None, None)
