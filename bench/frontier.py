"""False alarms, power and coverage of the frontier on simulated groups whose layouts stay or change.

python -m bench.frontier                       300 pairs of sides a row
python -m bench.frontier --pairs 100
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import exp, log
from typing import Any

import numpy as np
import polars as pl

from store.identity import curve_key, curve_of, series_key
from store.records import Finding, Layout, Reach, Role, Series, Verdict
from tracker.judge.frontiers import LATENCY_SHIFT, PEAK, SHIFT, Judged, judge_frontiers
from tracker.judge.groups import Sweeps
from tracker.matrix import TIDY
from tracker.pairs import Baseline
from tracker.settings import Settings
from tracker.stats import noise
from tracker.stats.frontier import attained

CONCS = (4, 8, 16, 32, 64, 128)
CALLED = frozenset({Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.MIXED})
FREEDOM = 5
"""Of the t distribution of an error: heavier than normal, as published sweeps are."""

Rng = np.random.Generator
Points = dict[Series, tuple[float, float]]
"""Series -> ln throughput per GPU, ln interactivity: the truth of one side."""


@dataclass(frozen=True, slots=True)
class Story:
    """Two sides: their layouts, and what each is able to do (speed alone, batching, GPUs)."""

    name: str
    before: Mapping[Layout, tuple[float, float, float]]
    after: Mapping[Layout, tuple[float, float, float]]


def _stories(*, several: bool) -> tuple[Story, ...]:
    tp8, tp4 = (Layout(Role(n), multinode=several) for n in (8, 4))
    two, one = (Layout(Role(n), multinode=several) for n in (2, 16))
    fast, wide, best = (1.0, 1.0, 1.0), (0.8, 1.6, 0.9), (0.8, 2.2, 1.05)
    plain = {tp8: fast, tp4: wide}
    return (
        Story("two layouts, the same", plain, plain),
        Story("two layouts, both replaced", plain, {two: fast, one: wide}),
        Story("one of two replaced by a better one", plain, {tp8: fast, one: best}),
    )


STORIES = {several: _stories(several=several) for several in (False, True)}


def truth(layouts: Mapping[Layout, tuple[float, float, float]]) -> Points:
    """Each layout slows with concurrency and gives more per GPU."""
    found: Points = {}
    for layout, (alone, batching, gpus) in layouts.items():
        for conc in CONCS:
            speed = 60 * alone / (1 + conc / (16 * batching))
            series = Series("dsr1", "h200", "vllm", "fp8", "none", "single_turn", 8192, 1024, False, layout, conc)
            found[series] = log(conc * speed / (8 * gpus)), log(speed)
    return found


@dataclass(frozen=True, slots=True)
class World:
    """The noise of one simulated store: per point a scale of its own, drawn from what is shipped."""

    sigma: Mapping[Series, tuple[float, float]]
    correlation: float

    @classmethod
    def of(cls, points: Points, rng: Rng, *, several: bool) -> World:
        scales = [noise.shipped()[family] for family in ("throughput", "tpot")]
        shared: dict[Layout, float] = {}
        sigma = {}
        for series in points:
            place = int(noise.stratum(np.array([series.conc or 1]), np.array([several]))[0])
            common = shared.setdefault(series.layout, float(rng.standard_normal()))
            own = float(rng.standard_normal())
            away = [
                scale.tau[several] * (scale.shared**0.5 * common + (1 - scale.shared) ** 0.5 * own) for scale in scales
            ]
            output, speed = (exp(scale.centre[place] + off) for scale, off in zip(scales, away, strict=True))
            sigma[series] = output, speed
        return cls(sigma, 0.4 if several else 0.05)

    def run(self, points: Points, rng: Rng) -> Points:
        """The points as one run measures them: a slow run is slow in both numbers."""
        common = _heavy(rng)
        measured = {}
        for series, (output, speed) in points.items():
            slow = self.correlation**0.5 * common + (1 - self.correlation) ** 0.5 * _heavy(rng)
            other = 0.9 * slow + (1 - 0.81) ** 0.5 * _heavy(rng)
            scale = self.sigma[series]
            measured[series] = output + scale[0] * slow, speed + scale[1] * other
        return measured


def _heavy(rng: Rng) -> float:
    return float(rng.standard_t(FREEDOM)) * ((FREEDOM - 2) / FREEDOM) ** 0.5


def frame(number: int, image: str, points: Points) -> pl.DataFrame:
    """A run as a tidy frame."""
    started = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)
    rows: list[dict[str, Any]] = []
    for series, (output, speed) in points.items():
        said = {"run": f"{number}/1", "started_at": started, "image": image, "recipe": None, "pool": None}
        said |= {"curve": curve_key(curve_of(series)), "series": series_key(series), "conc": series.conc}
        said |= {"multinode": series.layout.multinode, "config": "dsr1-fp8-h200-vllm"}
        rows += [
            {**said, "metric": "tput_per_gpu", "value": exp(output)},
            {**said, "metric": "median_tpot", "value": exp(-speed)},
            {**said, "metric": "median_e2el", "value": _latency(speed)},
        ]
    return pl.DataFrame(rows, schema=pl.Schema(TIDY))


def _latency(speed: float) -> float:
    """Seconds until the last of 1,000 tokens of a user who gets exp(speed) of them a second."""
    return 0.5 + 1000 * exp(-speed)


@dataclass(frozen=True, slots=True)
class Pair:
    """Both sides of a story as measured once."""

    story: Story
    past: pl.DataFrame
    candidate: Points

    def judged(self, shift: float = 0.0) -> Judged:
        """Judge it, the candidate's throughput moved by so much."""
        moved = {series: (output + shift, speed) for series, (output, speed) in self.candidate.items()}
        series = {series_key(one): one for one in (*truth(self.story.before), *self.candidate)}
        sweeps = Sweeps(self.past, frame(99, "a/b:v1.1.0", moved), series)
        known = noise.Scales({}, {}, (noise.Correlation(0.05, 0.0), noise.Correlation(0.4, 0.0)))
        return judge_frontiers(sweeps, (), known, Settings(), Baseline())


def pairs(story: Story, runs: int, number: int, *, several: bool, seed: int = 7) -> Iterator[Pair]:
    """Measured pairs of a story, each in a world of its own."""
    rng = np.random.default_rng((seed, runs, several))
    before, after = truth(story.before), truth(story.after)
    for _ in range(number):
        world = World.of({**before, **after}, rng, several=several)
        past = pl.concat([frame(place, "a/b:v1.0.0", world.run(before, rng)) for place in range(runs)])
        yield Pair(story, past, world.run(after, rng))


def true_gap(story: Story, reach: Reach | None) -> float:
    """Mean true log ratio of the frontiers at the places that were compared; 0 where none was."""
    if reach is None or not reach.places:
        return 0.0
    turned = reach.axis == "median_e2el"
    places = -np.log(reach.places) if turned else np.log(reach.places)
    sides = []
    for side in (story.before, story.after):
        points = truth(side)
        if turned:
            points = {series: (output, -log(_latency(speed))) for series, (output, speed) in points.items()}
        sides.append(_envelope(points, places))
    return float((sides[1] - sides[0]).mean())


def _envelope(points: Points, speeds: noise.Floats) -> noise.Floats:
    values = np.array(list(points.values()))
    series = list(points)
    links = [(at, at + 1) for at in range(len(series) - 1) if series[at].layout == series[at + 1].layout]
    found: noise.Floats = attained(values[None, :, 1], values[None, :, 0], np.array(links), speeds)[0]
    return found


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts over pairs."""

    pairs: int = 0
    wrong: int = 0
    """Shift, peak or shift at equal latency called although nothing changed, or called in the wrong direction."""
    held: int = 0
    """95 % intervals of the shift that hold the true one."""
    held_late: int = 0
    """The same at equal latency."""
    found: int = 0
    """A loss of the printed size that is called."""
    sizes: tuple[float, ...] = ()

    def line(self) -> str:
        shares = (100 * n / self.pairs for n in (self.wrong, self.held, self.held_late, self.found))
        wrong, held, late, found = (f"{share:5.1f} %" for share in shares)
        return f"{wrong}  {held}  {late}  {found}  {100 * np.expm1(np.median(self.sizes)):5.1f} %"


def tally(story: Story, runs: int, number: int, *, several: bool, power: bool = True) -> Tally:
    """Judge so many pairs of a story."""
    total = Tally()
    for pair in pairs(story, runs, number, several=several):
        judged = pair.judged()
        by_metric = {one.metric: one for one in judged.findings}
        shift = by_metric[SHIFT]
        # Where the layouts are the same nobody is told of equal latency.
        late = by_metric.get(LATENCY_SHIFT, shift)
        (frontier,) = judged.frontiers
        gap, late_gap = (
            true_gap(story, frontier.interactivity),
            true_gap(story, frontier.latency or frontier.interactivity),
        )
        size = shift.mde or 0.0
        low, high = shift.low or 0.0, shift.high or 0.0
        total = replace(
            total,
            pairs=total.pairs + 1,
            wrong=total.wrong
            + (_is_wrong(shift, gap) or _is_wrong(late, late_gap) or _is_wrong(by_metric[PEAK], _peak_gap(story))),
            held=total.held + (low <= gap <= high),
            held_late=total.held_late + ((late.low or 0.0) <= late_gap <= (late.high or 0.0)),
            found=total.found + (power and _is_found(pair, size + gap)),
            sizes=(*total.sizes, size),
        )
    return total


def _peak_gap(story: Story) -> float:
    before, after = (max(output for output, _ in truth(side).values()) for side in (story.before, story.after))
    return after - before


def _is_wrong(finding: Finding, gap: float) -> bool:
    right = Verdict.IMPROVEMENT if gap > 0 else Verdict.REGRESSION
    return finding.verdict in CALLED and (abs(gap) < 1e-9 or finding.verdict is not right)


def _is_found(pair: Pair, size: float) -> bool:
    """A true loss of the printed size is called one: what the story gains anyway is taken away first."""
    (shift,) = (one for one in pair.judged(-size).findings if one.metric == SHIFT)
    return shift.verdict in (Verdict.REGRESSION, Verdict.MIXED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=300)
    asked = parser.parse_args()
    print(f"{asked.pairs} pairs a row; size: median smallest detectable shift; found: losses of that size;")
    print("covered, late: 95 % intervals that hold the truth, at equal interactivity and at equal latency")
    print(f"{'story':<38} nodes   runs    wrong  covered     late    found     size")
    for several, stories in STORIES.items():
        for story in stories:
            for runs in (1, 3, 5):
                line = tally(story, runs, asked.pairs, several=several).line()
                print(f"{story.name:<38} {'several' if several else 'one':<7} {runs:>4}  {line}", flush=True)


if __name__ == "__main__":
    main()
