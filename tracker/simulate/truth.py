"""What is true about simulated runs: the key that verdicts are checked against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path

from store.records import RunKey, Verdict
from tracker.simulate.fleet import JOBS

WORTH_SAYING = 0.02
"""Smallest true change of a curve that a verdict is expected to name, natural log."""


@dataclass(frozen=True, slots=True)
class StoryRun:
    """The truth about one run attempt."""

    key: RunKey
    folder: Path
    started_at: datetime
    event: str
    official: bool
    night: int | None
    """Nights before the last; None for a run beside the nights."""
    images: Mapping[str, str]
    """Image by config, of the configs that ran, as rows spell it (`#` may stand for `/`)."""
    recipes: Mapping[str, str]
    """Name of the settings by config; rows carry a fingerprint in which the image has part, as upstream's does."""
    speeds: Mapping[str, float]
    """Curve key to natural log of its true speed over that under the config's first image; machines left out."""
    accuracy: Mapping[str, tuple[float, float]]
    """True GSM8K accuracy by config: flexible and strict, as fractions."""
    points: tuple[str, ...]
    """Keys of the series that were measured."""
    missing: tuple[str, ...]
    """Keys of the series that were asked for and are absent, or stand under a label that nobody knows."""
    outliers: Mapping[str, float]
    """Series key to natural log of what a bad machine did to it in this run alone."""
    bad_pool: str | None = None
    """Pool whose machines were all slow in this run, whatever the image."""
    strange_label: str | None = None
    not_a_number: str | None = None
    """Key of the series whose row carries NaN."""


@dataclass(frozen=True, slots=True)
class Story:
    """What was written, oldest run first; the last run is the one to be judged."""

    seed: int
    runs: tuple[StoryRun, ...]

    @property
    def candidate(self) -> StoryRun:
        return self.runs[-1]

    @property
    def nights(self) -> tuple[StoryRun, ...]:
        """Runs of main; where a night has two attempts, the later."""
        official = (run for run in self.runs if run.official)
        return tuple(list(attempts)[-1] for _, attempts in groupby(official, key=lambda run: run.key.id))

    def changes(self) -> dict[str, float]:
        """Curve key to natural log of the true speed of the last night over the night before, new curves aside."""
        before, now = (run.speeds for run in self.nights[-2:])
        return {curve: speed - before[curve] for curve, speed in now.items() if curve in before}

    def expected(self) -> dict[str, Verdict]:
        """Curve key to the verdict that the last night deserves against the image before.

        Curves on several nodes are left out: after two runs of their image `inconclusive` is as good as `equivalent`.
        """
        noisy = {job.curve for job in JOBS if job.config.noise > 1}
        several = {job.curve for job in JOBS if job.config.multinode}
        known = {
            curve: Verdict.NOISY if curve in noisy else _verdict(change) for curve, change in self.changes().items()
        }
        return {curve: known.get(curve, Verdict.NO_BASELINE) for curve in self.candidate.speeds if curve not in several}


def _verdict(change: float) -> Verdict:
    if abs(change) < WORTH_SAYING:
        return Verdict.EQUIVALENT
    return Verdict.IMPROVEMENT if change > 0 else Verdict.REGRESSION
