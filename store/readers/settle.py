"""One run attempt, one batch: no row twice, per-point artifacts before collected files, no guess between two values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from store.readers.document import Gathering
from store.records import Batch, Layout, Place, Point, Rejection, Role, Score

T = TypeVar("T", Point, Score)


def settle(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Join the batches of one run attempt and leave out what is there twice.

    Equal rows: the richest stays, the others are counted. Different rows of one key: the newest artifact's stays where
    an order is known; where none is, all of them are rejected, since to choose would be to guess.
    """
    gathering = Gathering()
    for batch in batches:
        gathering.take(batch)
    joined = list(gathering.batches())
    points = {_measured_key(one) for batch in joined for one in batch.points if not one.place.collected}
    scores = {_config_key(one) for batch in joined for one in batch.scores if not one.place.collected}
    for batch in joined:
        yield _settled(batch, points, scores)


def _settled(batch: Batch, per_point: set[Hashable], per_config: set[Hashable]) -> Batch:
    points = _uncollected(batch.points, _measured_key, per_point)
    scores = _uncollected(batch.scores, _config_key, per_config)
    kept_points, refused = _distinct(points, _point_key, _points_agree, lambda one: len(one.metrics))
    kept_scores, refused_scores = _distinct(scores, _score_key, _scores_agree, _known_values)
    refused += refused_scores
    seen = len(batch.points) + len(batch.scores)
    return replace(
        batch,
        points=kept_points,
        scores=kept_scores,
        rejections=(*batch.rejections, *refused),
        changelog=tuple(dict.fromkeys(batch.changelog)),
        jobs=tuple(dict.fromkeys(batch.jobs)),
        job_runs=tuple(dict.fromkeys(batch.job_runs)),
        expected=tuple(dict.fromkeys(batch.expected)),
        duplicates=batch.duplicates + seen - len(kept_points) - len(kept_scores) - len(refused),
    )


def _uncollected(items: Sequence[T], key: Callable[[T], Hashable], own: set[Hashable]) -> Sequence[T]:
    """Rows of a collected file stand only for points that have no artifact of their own."""
    if not own:
        return items
    return [one for one in items if not one.place.collected or key(one) not in own]


def _distinct(
    items: Sequence[T],
    key: Callable[[T], Hashable],
    agree: Callable[[T, T], bool],
    richness: Callable[[T], int],
) -> tuple[tuple[T, ...], list[Rejection]]:
    groups: defaultdict[Hashable, list[T]] = defaultdict(list)
    for one in items:
        groups[key(one)].append(one)
    if len(groups) == len(items):
        return tuple(items), []
    kept: list[T] = []
    refused: list[Rejection] = []
    for group in groups.values():
        winner, losers, reason = _chosen(_merged(sorted(group, key=richness, reverse=True), agree))
        kept += winner
        refused += [Rejection(one.place, "", reason, _rival(one, winner, losers), one.raw, one.run) for one in losers]
    return tuple(kept), refused


def _merged(group: Sequence[T], agree: Callable[[T, T], bool]) -> list[T]:
    """Rows that say the same become the richest of them, which takes an image from the others if it has none."""
    kept: list[T] = []
    for one in group:
        index = next((i for i, other in enumerate(kept) if agree(other, one)), None)
        if index is None:
            kept.append(one)
        elif kept[index].image is None and one.image is not None:
            kept[index] = replace(kept[index], image=one.image)
    return kept


def _chosen(rivals: list[T]) -> tuple[list[T], list[T], str]:
    """The one that stays, the others, and the reason code for the others."""
    if len(rivals) == 1:
        return rivals, [], ""
    times = [one.place.created_at for one in rivals if one.place.created_at is not None]
    if len(times) < len(rivals) or times.count(max(times)) > 1:
        return [], rivals, "ambiguous_duplicate"
    newest = max(times)
    winner = [one for one in rivals if one.place.created_at == newest]
    return winner, [one for one in rivals if one.place.created_at != newest], "superseded"


def _rival(one: T, winner: Sequence[T], losers: Sequence[T]) -> str:
    other: Place = next(rival.place for rival in (*winner, *losers) if rival is not one)
    return str(other)


def _point_key(one: Point) -> Hashable:
    return one.series, one.recipe, one.pool


def _measured_key(one: Point) -> Hashable:
    """A point's key as the collected file has it: only the name of a per-point artifact may tell the pool."""
    return one.series, one.recipe


def _score_key(one: Score) -> Hashable:
    return one.series, one.task


def _config_key(one: Score) -> Hashable:
    """A score's key as the collected file has it: without pipeline and context parallelism."""
    layout = one.series.layout
    plain = Layout(_plain(layout.prefill), _plain(layout.decode) if layout.decode else None, layout.multinode)
    return replace(one.series, layout=plain), one.task


def _plain(role: Role) -> Role:
    return replace(role, pp=1, dcp=1, pcp=1, hardware=None)


def _points_agree(one: Point, other: Point) -> bool:
    shared = one.metrics.keys() & other.metrics.keys()
    if not shared and (one.metrics or other.metrics):
        return False
    images = {one.image, other.image} - {None}
    return len(images) <= 1 and all(one.metrics[key] == other.metrics[key] for key in shared)


def _scores_agree(one: Score, other: Score) -> bool:
    pairs = (
        (one.strict, other.strict),
        (one.flexible, other.flexible),
        (one.score, other.score),
        (one.n, other.n),
        (one.image, other.image),
    )
    return all(mine == theirs for mine, theirs in pairs if mine is not None and theirs is not None)


def _known_values(one: Score) -> int:
    told = (one.strict, one.flexible, one.score, one.n, one.score_name, one.image, one.answers)
    return sum(value is not None for value in told)
