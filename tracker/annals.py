"""The questions of history, a function each: what the store holds of the series asked for, told as chronicles."""

from __future__ import annotations

import csv
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from store import images
from store.chronicles import Chronicle, Episode, Introduction, Spread
from store.duck import Store
from store.identity import curve_key
from store.records import Trouble
from tracker import chronicle, filters, reproducibility, sides
from tracker.chronicle import Past
from tracker.events import EVENTS, Event, span
from tracker.jobs import Where
from tracker.judge.learn import learn
from tracker.settings import Settings

MANY = 2_000
"""Curves times metrics from which several processes pay for their start (a second each)."""


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


def history(asked: Asked, where: Where, workers: int = 1) -> list[Chronicle]:
    """The chronicles of the curves asked for, in the order of their keys; many are shared among the workers."""
    known, newest = _read(asked, where)
    if known.history["curve"].n_unique() * len(asked.metrics) < MANY:
        workers = 1
    anchor = None if asked.anchor is None else _anchor(asked.anchor, known.history, newest)
    told = chronicle.chronicles(known, asked.metrics, anchor, workers)
    return sorted(told, key=lambda one: (one.config, one.curve, one.metric))


def past(asked: Asked, where: Where) -> Past:
    """What the store holds of the series asked for."""
    return _read(asked, where)[0]


def environment(told: Sequence[Chronicle]) -> list[Episode]:
    """What moved together under unchanged software."""
    return chronicle.episodes(told)


def introductions(asked: Asked, where: Where, workers: int = 1) -> list[Introduction]:
    """Which image came when, over all configs that took it."""
    return chronicle.introductions(history(asked, where, workers))


def spreads(asked: Asked, where: Where, by: str) -> tuple[list[Spread], list[Episode]]:
    """Reproducibility by group, and the days on which the same image gave other numbers."""
    found, told = reproducibility.spreads(past(asked, where), by, asked.metrics)
    return found, chronicle.episodes(told)


def _read(asked: Asked, where: Where) -> tuple[Past, datetime]:
    """The rows asked for with what must be known of them, and when the newest run of the store started."""
    known = chronicle.judged_metrics()
    for name in asked.metrics:
        if name not in known:
            raise Trouble(f"{name!r} has no noise scale: the metrics with a history are {', '.join(known)}")
    with sides.opened(where.store, where.archive, where.withdrawn()) as store:
        if store is None:
            raise Trouble(f"there is no store at {where.store}: land a sweep first with `tracker ingest PATH`")
        return _rows(asked, store)


def _rows(asked: Asked, store: Store) -> tuple[Past, datetime]:
    newest = store.newest_run()
    now = newest.started_at if newest is not None else datetime.now(UTC)
    wanted = filters.filters(asked.filters, asked.since, asked.until, now)
    series = wanted.series(store.series())
    found = store.history(sorted({curve_key(one) for one in series.values()}), asked.metrics)
    rows = found.filter(pl.col("official") & pl.col("series").is_in(list(series)))
    if wanted.since is not None:
        rows = rows.filter(pl.col("started_at") >= wanted.since)
    if wanted.until is not None:
        rows = rows.filter(pl.col("started_at") < wanted.until)
    if rows.is_empty():
        raise Trouble("no official run measured that in that time: widen the filters, or see `tracker store states`")
    if asked.config_history is not None:
        rows = with_images(rows, read_config_history(asked.config_history))
    settings = sides.with_learned_scales(Settings(), store)
    return Past(rows, series, settings.scales or learn(rows, settings), asked.events), now


def _anchor(text: str, history: pl.DataFrame, newest: datetime) -> datetime:
    """A time, or the last run of the first image whose reference holds the text (`release:v0.5.9`)."""
    if not text.startswith("release:"):
        return filters.moment(text, newest)
    word = text.removeprefix("release:")
    found = history.filter(pl.col("image").str.contains(word, literal=True))["started_at"].max()
    if not word or not isinstance(found, datetime):
        raise Trouble(f"no image of these runs has {word!r} in its name: write release:TAG, a day, or 8w")
    return found


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
