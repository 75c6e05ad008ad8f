"""The level of every run of the curves and evals that ever moved, as the store has it now."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

import polars as pl

from store.duck import Store
from store.identity import series_key
from store.images import Sameness
from store.life import Bump
from store.metrics import GATE_METRICS
from store.records import RunKey, Score
from tracker.matrix import same_software
from tracker.moves import ACCURACIES, eval_place

Order: TypeAlias = tuple[datetime, int, int]


@dataclass(frozen=True, slots=True)
class Level:
    """What one official run measured of one curve, or of the evals of a config and task."""

    run: RunKey
    started_at: datetime
    image: str | None
    recipes: Mapping[str, str | None]
    """Series -> recipe."""
    values: Mapping[tuple[str, str], float]
    """(series, metric) -> ln of the value, for evals the score."""

    @property
    def order(self) -> Order:
        return (self.started_at, self.run.attempt, self.run.id)


Levels: TypeAlias = Mapping[str, Mapping[RunKey, Level]]
"""Key of a curve, or config and task -> run -> its level."""


def of_store(store: Store, curves: Collection[str], evals: Collection[str]) -> Levels:
    """The levels of some curves and of some evals (`config task`) in all official runs."""
    found: dict[str, Mapping[RunKey, Level]] = {}
    if curves:
        rows = store.history(sorted(curves), GATE_METRICS).filter(pl.col("official"))
        for (key,), part in rows.group_by("curve"):
            found[str(key)] = dict(_of_curve(part))
    if evals:
        found.update(_of_scores(store, evals))
    return found


def _of_curve(rows: pl.DataFrame) -> Iterable[tuple[RunKey, Level]]:
    for (text, started_at), part in rows.group_by("run", "started_at"):
        number, _, attempt = str(text).partition("/")
        run = RunKey(int(number), int(attempt))
        images = part["image"].unique().to_list()
        yield (
            run,
            Level(
                run=run,
                started_at=started_at,
                image=images[0] if len(images) == 1 else None,
                recipes=dict(part.select("series", "recipe").iter_rows()),
                values={
                    (series, name): math.log(value)
                    for series, name, value in part.select("series", "metric", "value").iter_rows()
                    if value > 0
                },
            ),
        )


def _of_scores(store: Store, evals: Collection[str]) -> dict[str, Mapping[RunKey, Level]]:
    groups: dict[str, dict[RunKey, list[Score]]] = defaultdict(lambda: defaultdict(list))
    for score in store.score_history():
        key = eval_place(score)
        if key in evals and score.invalid is None:
            groups[key][score.run].append(score)
    official = {
        RunKey(*key): started_at for *key, started_at in store.reviewable().select("id", "attempt", "started_at").rows()
    }
    newest = {run.id: run for run in official}
    return {
        key: {
            newest[run.id]: _of_run(newest[run.id], official[newest[run.id]], scores)
            for run, scores in runs.items()
            if run.id in newest
        }
        for key, runs in groups.items()
    }


def _of_run(run: RunKey, started_at: datetime, scores: Iterable[Score]) -> Level:
    rows = {f"{series_key(score.series)} {score.task}": score for score in scores}
    images = {score.image for score in rows.values()}
    return Level(
        run=run,
        started_at=started_at,
        image=images.pop() if len(images) == 1 else None,
        recipes={series: score.recipe for series, score in rows.items()},
        values={
            (series, name): value
            for series, score in rows.items()
            for name, value in zip(ACCURACIES, (score.flexible, score.strict, score.score), strict=True)
            if value is not None and math.isfinite(value)
        },
    )


def bump(before: Level | None, after: Level, said: tuple[str | None, str | None]) -> Bump:
    """What differs between the software of two levels; `said` are the images that the comparison named."""
    old, new = said
    sameness = same_software(old, new)
    is_recipe = sameness is Sameness.SAME and before is not None and not _same_recipe(before, after)
    return Bump(
        before=old,
        after=new,
        sameness=Sameness.CHANGED if is_recipe else sameness,
        recipe=is_recipe,
        since=before.run if before else None,
    )


def same(before: Level, after: Level) -> bool:
    """Same image and recipe for certain."""
    return same_software(before.image, after.image) is Sameness.SAME and _same_recipe(before, after)


def _same_recipe(one: Level, other: Level) -> bool:
    """The same recipe for every series that both measured."""
    shared = one.recipes.keys() & other.recipes.keys()
    return all(one.recipes[series] == other.recipes[series] for series in shared)
