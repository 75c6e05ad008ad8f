"""How well reruns of the same image and recipe agree, and what one run, a curve or two runs can show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from types import MappingProxyType

import numpy as np

from store.chronicles import Chronicle, Spread
from tracker import matrix
from tracker.chronicle import ALPHA, Lane, Past, chronicle, lanes
from tracker.settings import Settings
from tracker.stats import noise, steps
from tracker.stats.noise import Floats

GROUPS: Mapping[str, Callable[[Lane], str]] = MappingProxyType(
    {
        "hardware": lambda lane: lane.series.gpu if lane.series else "",
        "framework": lambda lane: lane.series.framework if lane.series else "",
        "config": lambda lane: lane.curve.config,
        "pool": lambda lane: lane.runs[-1].pool or "",
    }
)
"""What curves are gathered by. A new one is a new row."""


@dataclass(frozen=True, slots=True)
class Visible:
    """Smallest changes that show four times in five, natural log units."""

    one_point: float
    one_run: float
    two_runs: float


@dataclass(frozen=True, slots=True)
class _Part:
    """What one curve gives to its group."""

    pairs: Floats
    """Differences of neighbouring reruns."""
    sigma: Floats
    margin: float
    days: frozenset[date]
    bad: frozenset[date]
    visible: Visible


def spreads(past: Past, by: str, metrics: Sequence[str] = ("tput_per_gpu",)) -> tuple[list[Spread], list[Chronicle]]:
    """Reproducibility by group and metric, and the chronicles whose departures were counted."""
    groups: dict[tuple[str, str], list[_Part]] = {}
    told: list[Chronicle] = []
    for lane in lanes(past, metrics):
        told.append(chronicle(lane))
        groups.setdefault((GROUPS[by](lane), lane.metric), []).append(_part(lane, told[-1]))
    return [_spread(*key, parts) for key, parts in sorted(groups.items())], told


def visible_changes(lane: Lane) -> Visible:
    """What the next runs of a curve can show against its newest ones under the same image and recipe."""
    start = int(np.flatnonzero(lane.track.expected)[-1]) if lane.track.expected.any() else 0
    newest = lane.track.values[:, start:][:, -Settings().max_baseline_runs :]
    weights = steps.posterior(lane.track)
    rules = replace(lane.rules, alpha_expected=ALPHA)
    curve = [steps.side_by_side(newest, np.repeat(newest[:, -1:], runs, axis=1)) for runs in (1, 2)]
    one, two = (_size(gap) for gap in steps.between(lane.track, weights, curve, rules))
    alone = [
        _alone(lane, weights, row, curve[0], rules) for row in np.flatnonzero(np.isfinite(curve[0].effect)).tolist()
    ]
    return Visible(float(np.median(alone)) if alone else float("nan"), one, two)


def _alone(lane: Lane, weights: Floats, row: int, side: steps.Sides, rules: steps.Rules) -> float:
    """The same for one point as if it were the whole curve."""
    pick = slice(row, row + 1)
    own = replace(lane.track, values=lane.track.values[pick], strata=lane.track.strata[pick])
    cut = replace(side, effect=side.effect[pick], variance=side.variance[pick])
    (gap,) = steps.between(own, weights[pick], [cut], replace(rules, curve=rules.point))
    return _size(gap)


def _size(gap: steps.Gap | None) -> float:
    return float("nan") if gap is None else gap.mde


def _part(lane: Lane, told: Chronicle) -> _Part:
    weights = steps.posterior(lane.track)
    pairs = [np.zeros(0)]
    rerun = np.zeros(len(lane.cells), bool)
    for columns in matrix.stretches(lane.runs):
        found = np.diff(lane.track.values[:, columns], axis=1)
        pairs.append(found[np.isfinite(found)])
        rerun |= np.isfinite(found).any(axis=1)
    sigma = np.exp(weights @ noise.LOG_GRID)[rerun]
    days = {run.started_at.date(): run for run in lane.runs if run.started_at is not None}
    return _Part(
        np.concatenate(pairs), sigma, lane.rules.point, frozenset(days), frozenset(_bad(told)), visible_changes(lane)
    )


def _bad(told: Chronicle) -> Iterable[date]:
    """Days of runs below the usual level of their image and recipe."""
    for one in told.departures:
        if one.attribution.is_same and not one.is_better:
            places = [mark.run for mark in told.marks]
            for mark in told.marks[places.index(one.first.run) : places.index(one.last.run) + 1]:
                if mark.at is not None:
                    yield mark.at.date()


def _spread(group: str, name: str, parts: Sequence[_Part]) -> Spread:
    pairs = np.concatenate([part.pairs for part in parts])
    sigma = np.concatenate([part.sigma for part in parts])
    margin = parts[0].margin
    sizes = np.array([(p.visible.one_point, p.visible.one_run, p.visible.two_runs) for p in parts])
    known = sizes[np.isfinite(sizes).all(axis=1)]
    middle = np.median(known, axis=0).tolist() if len(known) else [float("nan")] * 3
    return Spread(
        group,
        name,
        len(parts),
        len(pairs),
        float(np.median(sigma)) if len(sigma) else None,
        float(np.quantile(sigma, 0.9)) if len(sigma) else None,
        float((np.abs(pairs) <= margin).mean()) if len(pairs) else None,
        margin,
        len(frozenset().union(*(part.bad for part in parts))),
        len(frozenset().union(*(part.days for part in parts))),
        *middle,
    )
