"""Change points: steps found and false ones, beside Apache Otava and ruptures, on curves whose steps are known.

    pip install --target /tmp/otava apache-otava
    pip install --target /tmp/ruptures ruptures
    python -m bench.steps --with /tmp/otava --with /tmp/ruptures

The others know single series: of a curve they get the mean of its points over their own medians. A step is found
when a change point lies at most two runs away. mozdetect compares histograms of many values a day, which a sweep has
not: its fast rule (a band of 6 MAD about the last week, confirmed by the next run) stands here written anew.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tracker.stats import noise
from tracker.stats.noise import Floats
from tracker.stats.steps import Track, find

RUNS, NEAR, APART = 60, 2, 8
Detector = Callable[["Case"], list[int]]


@dataclass(frozen=True)
class Kind:
    """How the values of a case come about."""

    name: str
    noise: str = "normal"
    missing: float = 0.0
    outliers: float = 0.0
    doubled: bool = False


KINDS = (
    Kind("normal"),
    Kind("t, 3 degrees", "t3"),
    Kind("contaminated", "contaminated"),
    Kind("noise doubles", doubled=True),
    Kind("30 % missing", missing=0.3),
    Kind("5 % of runs off", outliers=0.05),
)


@dataclass(frozen=True)
class Case:
    track: Track
    steps: tuple[int, ...]

    @property
    def series(self) -> Floats:
        """What a tool for single series gets: the middle of the curve in each run."""
        values = self.track.values
        own = values - np.nanmedian(values, axis=1, keepdims=True)
        known = np.isfinite(own)
        count = known.sum(axis=0)
        return np.where(count > 0, np.where(known, own, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)


def errors(rng: np.random.Generator, shape: tuple[int, int], name: str) -> Floats:
    """Errors of standard deviation about 1."""
    if name == "t3":
        return rng.standard_t(3, size=shape) / np.sqrt(3)
    if name == "contaminated":
        return np.where(rng.random(shape) < 0.1, 3.0, 0.3) * rng.normal(size=shape)
    return rng.normal(size=shape)


def case(rng: np.random.Generator, kind: Kind, points: int, most: int) -> Case:
    """A curve with up to `most` steps of 3 to 20 %, noise of 0.3 to 2 %."""
    wanted = int(rng.integers(1, most + 1)) if most else 0
    places = np.arange(1, RUNS // APART) * APART + rng.integers(0, 3)
    at = np.sort(rng.choice(places, wanted, replace=False))
    level = np.zeros(RUNS)
    for place in at:
        level[place:] += rng.choice([-1, 1]) * rng.uniform(0.03, 0.2)
    sigma = np.exp(rng.uniform(np.log(0.003), np.log(0.02))) * np.exp(rng.normal(0, 0.3, points))[:, None]
    spread = sigma * np.where(kind.doubled & (np.arange(RUNS) >= RUNS // 2), 2.0, 1.0)
    values = level + spread * errors(rng, (points, RUNS), kind.noise)
    off = rng.random(RUNS) < kind.outliers
    # Two neighbours that are off alike are a level of their own, not two outliers.
    off[1:] &= ~off[:-1]
    values += np.where(off, rng.choice([-1, 1]) * 10 * sigma.mean(), 0.0)
    values[rng.random(values.shape) < kind.missing] = np.nan
    strata = noise.stratum(2 ** np.arange(points), np.zeros(points, bool))
    return Case(Track(values, strata, noise.shipped()["throughput"], 0.05, np.zeros(RUNS, bool)), tuple(at.tolist()))


def ours(one: Case) -> list[int]:
    return [step.at for step in find(one.track).steps]


def band(one: Case) -> list[int]:
    """mozdetect's fast rule on single values: outside 6 MAD of the 14 runs before, and the next run too."""
    known = np.flatnonzero(np.isfinite(one.series))
    values, found = one.series[known], []
    for place in range(14, len(values) - 1):
        past = values[place - 14 : place]
        middle = np.median(past)
        limit = 6 * 1.4826 * np.median(np.abs(past - middle))
        now, then = values[place] - middle, values[place + 1] - middle
        if min(abs(now), abs(then)) > limit and now * then > 0 and not any(place - 7 <= p < place for p in found):
            found.append(place)
    return [int(known[place]) for place in found]


def otava() -> Detector:
    from otava.analysis import compute_change_points, fill_missing  # noqa: PLC0415 - may be absent

    def detect(one: Case) -> list[int]:
        values = [float(np.exp(v)) if np.isfinite(v) else None for v in one.series]
        fill_missing(values)
        found, _ = compute_change_points(values, window_len=50, max_pvalue=0.001, min_magnitude=0.02)
        return [int(point.index) for point in found]

    return detect


def ruptures() -> Detector:
    import ruptures as rpt  # noqa: PLC0415 - may be absent

    def detect(one: Case) -> list[int]:
        known = np.flatnonzero(np.isfinite(one.series))
        values = one.series[known]
        sigma = 1.4826 * np.median(np.abs(np.diff(values))) / np.sqrt(2)
        found = rpt.Pelt(model="l2", min_size=2, jump=1).fit(values / max(sigma, 1e-9)).predict(pen=3 * np.log(RUNS))
        return [int(known[place]) for place in found[:-1]]

    return detect


def matched(found: Sequence[int], truth: Sequence[int]) -> int:
    """Steps with a change point of their own nearby."""
    left = list(found)
    hits = 0
    for at in truth:
        near = [place for place in left if abs(place - at) <= NEAR]
        if near:
            left.remove(min(near, key=lambda place: abs(place - at)))
            hits += 1
    return hits


Row = tuple[str, int, str, float, float, float]


def rows(detectors: Mapping[str, Detector], number: int, seed: int) -> Iterator[Row]:
    """Kind, points, detector: F1 on stepped curves, false steps in 1,000 runs of flat ones, milliseconds a curve."""
    for points in (1, 6):
        for kind in KINDS:
            rng = np.random.default_rng(seed)
            stepped = [case(rng, kind, points, 3) for _ in range(number)]
            flat = [case(rng, kind, points, 0) for _ in range(number)]
            for name, detect in detectors.items():
                started = time.perf_counter()
                answers = [detect(one) for one in stepped]
                false = sum(len(detect(one)) for one in flat)
                spent = (time.perf_counter() - started) / (2 * number) * 1000
                hits = sum(matched(found, one.steps) for found, one in zip(answers, stepped, strict=True))
                total = sum(map(len, answers)) + sum(len(one.steps) for one in stepped)
                yield kind.name, points, name, 2 * hits / total, 1000 * false / (number * RUNS), spent


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--with", dest="folders", action="append", default=[])
    parser.add_argument("--curves", type=int, default=40)
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    sys.path += asked.folders
    detectors: dict[str, Detector] = {"ours": ours, "MAD band": band}
    for name, make in (("otava", otava), ("ruptures", ruptures)):
        try:
            detectors[name] = make()
        except ImportError as missing:
            print(f"left out: {name} ({missing})")
    print(f"{'noise':<16} points {'rule':<10} {'F1':>5} {'false/1000':>10} {'ms':>6}")
    for kind, points, name, f1, false, spent in rows(detectors, asked.curves, asked.seed):
        print(f"{kind:<16} {points:>6} {name:<10} {f1:5.2f} {false:10.2f} {spent:6.1f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
