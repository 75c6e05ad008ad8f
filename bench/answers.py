"""Answers made up question by question, and how the tests of `tracker.stats` fare on them.

Each question has a chance of being answered right, drawn from a mixture: most are easy, some are a matter of luck, some
are beyond the model. A run draws its answers anew; what jobs of one side share is drawn once. A drop takes right
answers away from every run of the candidate, the same questions in all its jobs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tracker.stats.paired import Paired, overdispersion, paired, partly, shifts, tabulate
from tracker.stats.proportions import PHI, Difference, Proportion, average, compare, pool, standard_error

N = 1319
ALPHA = 0.01
Bits = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Setting:
    """`easy`, `luck` and the rest share the questions; `shared` of the draws is common to the jobs of a side."""

    drop: float = 0.0
    runs: int = 1
    known: int | None = None
    """Baseline runs whose answers are known; all of them without a number."""
    jobs: int = 1
    shared: float = 0.0
    easy: float = 0.90
    luck: float = 0.07
    questions: int = N


@dataclass(frozen=True)
class Outcome:
    """Shares over the draws, of the paired rule and of the two-sample rule on the same answers."""

    found: float
    """p of a drop at most alpha, whatever its size: without a drop the false alarms, with one the power."""
    covered: float
    smallest: float
    """Mean of the smallest detectable change, without a margin."""
    flips: float
    two_found: float
    two_covered: float
    two_smallest: float
    equivalent: float
    two_equivalent: float


def difficulty(rng: np.random.Generator, how: Setting) -> npt.NDArray[np.float64]:
    kind = rng.random(how.questions)
    luck = rng.beta(2.5, 1.5, how.questions)
    hard = rng.beta(0.4, 9, how.questions)
    easy = rng.beta(60, 0.3, how.questions)
    return np.where(kind < how.easy, easy, np.where(kind < how.easy + how.luck, luck, hard))


def answers(rng: np.random.Generator, p: npt.NDArray[np.float64], runs: int, how: Setting) -> list[Bits]:
    """Per job, runs x questions: a part of the questions has the luck that all jobs of a run have."""
    common = rng.random((runs, len(p)))
    together = rng.random(len(p)) < how.shared
    return [np.where(together, common, rng.random((runs, len(p)))) < p for _ in range(how.jobs)]


def proportion(bits: Bits) -> Proportion:
    shares = bits.mean(axis=1)
    return average([Proportion(float(p), standard_error(float(p), bits.shape[1]) or 1.0) for p in shares])


def phi_of(rng: np.random.Generator, how: Setting, pairs: int = 400) -> float:
    """The scatter of reruns in units of the standard error, as a store with many reruns would have learned it."""
    z = []
    for _ in range(pairs):
        p = difficulty(rng, how)
        (old,), (new,) = answers(rng, p, 1, Setting()), answers(rng, p, 1, Setting())
        z.append(compare(proportion(old), proportion(new), 1.0).z)
    return float(np.sqrt(np.mean(np.square(z))))


def judged(before: list[Bits], after: list[Bits], how: Setting, phi: float) -> tuple[Paired | Difference, Difference]:
    """The rule under test, paired as far as answers are known, and two samples."""
    samples = [compare(proportion(old), proportion(new), phi) for old, new in zip(before, after, strict=True)]
    known = how.known or how.runs
    tables = [tabulate(old[:known], new) for old, new in zip(before, after, strict=True)]
    two = pool(samples) if how.jobs > 1 else samples[0]
    if known < how.runs:
        share = (1 / how.runs + 1) / (1 / known + 1)
        parts = [partly(paired([t]), sample.effect, share) for sample, t in zip(samples, tables, strict=True)]
        return (pool([part.as_difference() for part in parts]) if how.jobs > 1 else parts[0]), two
    return paired(tables, overdispersion([shifts(old, new) for old, new in zip(before, after, strict=True)])), two


def simulate(rng: np.random.Generator, how: Setting, draws: int, phi: float | None = None) -> Outcome:
    """Judge `draws` comparisons of one setting, each over questions of its own."""
    phi = phi_of(rng, how) if phi is None else phi
    told = []
    for _ in range(draws):
        p = difficulty(rng, how)
        gone = rng.random(len(p)) < how.drop / p.mean()
        before = answers(rng, p, how.runs, how)
        after = answers(rng, np.where(gone, 0.0, p), 1, how)
        flips = np.mean([(old[0] != new[0]).sum() for old, new in zip(before, after, strict=True)])
        told.append((*judged(before, after, how, phi), float(flips)))
    both = [[one[side] for one in told] for side in (0, 1)]
    inside = [np.mean([one.interval()[0] <= -how.drop <= one.interval()[1] for one in side]) for side in both]
    found, two_found = (np.mean([one.p_drop <= ALPHA for one in side]) for side in both)
    smallest = [np.mean([one.detectable(0.0, ALPHA) for one in side]) for side in both]
    same = [np.mean([one.within(0.01) for one in side]) for side in both]
    return Outcome(
        found=float(found),
        covered=float(inside[0]),
        smallest=float(smallest[0]),
        flips=float(np.mean([flips for *_, flips in told])),
        two_found=float(two_found),
        two_covered=float(inside[1]),
        two_smallest=float(smallest[1]),
        equivalent=float(same[0]),
        two_equivalent=float(same[1]),
    )


SETTINGS = {
    "one run a side": Setting(),
    "few flips": Setting(luck=0.01),
    "very few flips": Setting(easy=1.0, luck=0.0),
    "five baseline runs": Setting(runs=5),
    "five, answers of one": Setting(runs=5, known=1),
    "four jobs": Setting(jobs=4),
    "four jobs, half shared": Setting(jobs=4, shared=0.5),
    "four jobs, all shared": Setting(jobs=4, shared=1.0),
}
HEAD = ("flips", "false", "cover", "mde", "equal", "power", "cover")


def table(draws: int, seed: int = 5) -> None:
    """False alarms, coverage and power at the printed smallest change: paired / two samples, in percent and points."""
    rng = np.random.default_rng(seed)
    print(f"simulated answers, {draws} draws of {N} questions, alpha {ALPHA}: paired / two samples, phi {PHI}")
    print(" " * 24 + "".join(name.rjust(14) for name in HEAD))
    for name, how in SETTINGS.items():
        quiet = simulate(rng, how, draws, PHI)
        loss = simulate(rng, replace(how, drop=quiet.smallest), draws, PHI)
        cells = [
            f"{quiet.flips:.0f}",
            f"{100 * quiet.found:.2f}/{100 * quiet.two_found:.2f}",
            f"{100 * quiet.covered:.1f}/{100 * quiet.two_covered:.1f}",
            f"{100 * quiet.smallest:.2f}/{100 * quiet.two_smallest:.2f}",
            f"{100 * quiet.equivalent:.0f}/{100 * quiet.two_equivalent:.0f}",
            f"{100 * loss.found:.1f}/{100 * loss.two_found:.1f}",
            f"{100 * loss.covered:.1f}/{100 * loss.two_covered:.1f}",
        ]
        print(name.ljust(24) + "".join(cell.rjust(14) for cell in cells), flush=True)
