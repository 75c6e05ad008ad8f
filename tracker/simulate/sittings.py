"""The script spread over a calendar: which runs there are, what is in force in each, and what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

from tracker.simulate import script
from tracker.simulate.bench import Array
from tracker.simulate.files import digest
from tracker.simulate.fleet import EIGHT, JOBS, Job
from tracker.simulate.script import SWEEP, Aside, Bump, State

Mask = npt.NDArray[np.bool_]

FIRST_RUN_ID = 31_200_000_000
RUN_ID_STEP = 41_358_217
GAPS = (2, 2, 3)
"""Days between nights, read backwards from the last: three nights a week."""

TROUBLES_PER_NIGHT = 0.7
"""Expected number of single bad machines, and of lost jobs, in a night."""

OUTLIER_SPEEDS = (0.75, 0.92)
QUIET = 2
"""In the last nights nothing happens by chance, so that the demo shows what the script says."""


@dataclass(frozen=True)
class Sitting:
    """One run to be measured. Arrays are over `JOBS`."""

    index: int
    night: int | None
    when: datetime
    state: State
    asked: Mask
    lost: Mask
    """Jobs that failed for good."""
    late: Mask
    """Jobs that failed in a first attempt and ran in a second."""
    machine: Array
    """Natural log of what the machines did to the speed."""
    outliers: Mapping[str, float] = field(default_factory=dict)
    bumps: tuple[Bump, ...] = ()
    aside: Aside | None = None

    @property
    def run_id(self) -> int:
        return FIRST_RUN_ID + self.index * RUN_ID_STEP

    @property
    def official(self) -> bool:
        return self.aside is None

    @property
    def event(self) -> str:
        return self.aside.event if self.aside else "push"

    @property
    def path(self) -> str:
        return self.aside.path if self.aside else SWEEP

    @property
    def branch(self) -> str:
        return self.aside.branch if self.aside else "main"

    @property
    def head_sha(self) -> str:
        """Commit of main in its night, or the head of a branch."""
        return digest(self.branch, self.night, size=40)

    @property
    def base_ref(self) -> str:
        """Main as the night before left it; a branch names main itself."""
        return "origin/main" if self.night is None else digest(self.branch, self.night + 1, size=40)

    @property
    def title(self) -> str:
        if self.aside:
            return self.aside.title
        more = f" and {len(self.bumps) - 1} more" * (len(self.bumps) > 1)
        return f"{self.bumps[0].description}{more} (#{self.bumps[0].pull_request})" if self.bumps else "Nightly sweep"

    @property
    def bad_pool(self) -> str | None:
        """Pool whose machines were all slow, if any."""
        return None if self.night is None else script.BAD_POOLS.get(self.night, (None, 1.0))[0]

    @property
    def artifacts_kept(self) -> bool:
        """True while the artifacts of single jobs are there; of older nights only the collected files are left."""
        return self.night is None or self.night < QUIET


def calendar(end: datetime, weeks: int) -> list[datetime]:
    """Starts of the nights, oldest first.

    >>> [when.day for when in calendar(datetime(2026, 5, 29, 2), 1)]
    [25, 27, 29]
    """
    when, starts = end, [end]
    for index in range(len(GAPS) * weeks - 1):
        when -= timedelta(days=GAPS[index % len(GAPS)])
        starts.append(when)
    return starts[::-1]


def sittings(nights: Sequence[datetime], seed: int) -> Iterator[Sitting]:
    """Nights and what ran beside them, in the order of time."""
    state, index = script.first_state(), 0
    for night, when in zip(reversed(range(len(nights))), nights, strict=True):
        bumps = script.SCRIPT.get(night, ())
        for aside in (aside for aside in script.ASIDES if aside.before == night):
            yield _beside(aside, index, when - timedelta(hours=11), state, bumps)
            index += 1
        state = script.after(state, bumps)
        yield _nightly(night, index, when, state, np.random.default_rng([seed, 1, index]))
        index += 1


def _beside(aside: Aside, index: int, when: datetime, state: State, bumps: Sequence[Bump]) -> Sitting:
    """A pull request measures main with its own bumps; an experiment measures main with something of its own."""
    mine = tuple(bump for bump in bumps if bump.config in aside.configs and aside.pull_request == bump.pull_request)
    tricks = tuple(Bump(config, aside.title, recipe=aside.branch, speed=aside.speed) for config in aside.configs)
    asked = np.array([job.config.key in aside.configs for job in JOBS])
    none, calm = np.zeros(len(JOBS), dtype=bool), np.zeros(len(JOBS))
    state = script.after(state, mine or tricks)
    return Sitting(index, None, when, state, asked, none, none, calm, bumps=mine, aside=aside)


def _nightly(night: int, index: int, when: datetime, state: State, rng: np.random.Generator) -> Sitting:
    """A full sweep of main with the troubles of its night: a bad pool, single bad machines, lost jobs."""
    asked = np.array([job.config.joins is None or night <= job.config.joins for job in JOBS])
    chances = np.flatnonzero(asked) if night >= QUIET else np.array([], dtype=int)
    slow, lost = (rng.choice(chances, min(rng.poisson(TROUBLES_PER_NIGHT), chances.size), replace=False) for _ in "ab")
    outliers = {JOBS[place].key: float(np.log(rng.uniform(*OUTLIER_SPEEDS))) for place in slow}
    machine = np.array([_pool_shift(job, night) + outliers.get(job.key, 0.0) for job in JOBS])
    gone = np.array([_fails(job, script.BROKEN_JOBS.get(night, ())) and job.is_last for job in JOBS])
    gone[lost] = True
    late = np.array([_fails(job, script.RERUNS.get(night, ())) for job in JOBS])
    bumps = script.SCRIPT.get(night, ())
    return Sitting(index, night, when, state, asked, gone & asked, late & asked, machine, outliers, bumps)


def _pool_shift(job: Job, night: int) -> float:
    pool, share = script.BAD_POOLS.get(night, (None, 1.0))
    return float(np.log(share)) if job.config.pool == pool else 0.0


def _fails(job: Job, configs: Sequence[str]) -> bool:
    return job.config.key in configs and job.isl == EIGHT[0]
