"""Which runs of two sides can be set against each other question by question, and what their jobs say together.

Pairing needs no scale from elsewhere: the flips that were seen are the noise. It is done where all runs of a job have
sound answers to the same questions. Where only some baseline runs have, the flips against these give the scale, and
the means of all runs the difference: to leave runs out would cost more than the pairs bring. Everything else is two
samples, with the scatter that reruns were seen to have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from store import answers
from store.records import Caveat, Pairs, Score
from tracker.judge.results import EvalRules, Scale, average_of
from tracker.stats.paired import Paired, Table, overdispersion, paired, partly, shifts, tabulate
from tracker.stats.proportions import Difference, compare, pool

Bits: TypeAlias = npt.NDArray[np.bool_]

_READING = {metric: reading for reading, metric in answers.READINGS.items()}


@dataclass(frozen=True, slots=True)
class Match:
    """Answers of runs of both sides to the same questions (runs x questions); `of` baseline runs are judged in all."""

    before: Bits
    after: Bits
    questions: str
    of: int

    @property
    def table(self) -> Table:
        return tabulate(self.before, self.after)

    @property
    def is_whole(self) -> bool:
        return len(self.before) == self.of


@dataclass(frozen=True, slots=True)
class Compared:
    """Two sides of one job set against each other: how, and with what result (None where no doubt is known)."""

    difference: Difference | Paired | None = None
    match: Match | None = None
    notes: tuple[Caveat, ...] = ()


def compared(base: Sequence[Score], new: Sequence[Score], metric: str, scale: Scale) -> Compared:
    """The difference of a job: paired by question as far as the answers allow it, else two samples."""
    found = _match(base, new, metric)
    before, after = (average_of(side, metric) for side in (base, new))
    samples = compare(before, after, scale.phi) if before and after else None
    if not isinstance(found, Match):
        return Compared(samples, None, found)
    flips = paired([found.table])
    if found.is_whole:
        return Compared(flips, found, (Caveat.of("paired", **_counts([found.table])),))
    told = Caveat.of("paired_runs", **_counts([found.table]), have=len(found.before), of=found.of)
    m, some, every = len(found.after), len(found.before), found.of
    share = (1 / every + 1 / m) / (1 / some + 1 / m)
    return Compared(partly(flips, samples.effect, share) if samples else None, found, (told,))


def _match(base: Sequence[Score], new: Sequence[Score], metric: str) -> Match | tuple[Caveat, ...]:
    """The runs that can be paired, or why none can: nothing is said where nobody has any answers."""
    reading = _READING[metric]
    doubts = [found for score in (*new, *base) for found in _doubts(score, metric)]
    after = [answers.right(score, reading) for score in new]
    known = [bits for bits in after if bits is not None]
    told = [(score, bits) for score in base if (bits := answers.right(score, reading)) is not None]
    if not base or not (known or told or doubts):
        return ()
    if not known or len(known) < len(after) or not told:
        side = "candidate" if len(known) < len(after) or not known else "baseline"
        return tuple(doubts[:1]) or (Caveat.of("unpaired_side", side=side),)
    asked = {score.answers.questions for score in new if score.answers}
    same = [(score, bits) for score, bits in told if score.answers and {score.answers.questions} == asked]
    if not same:
        return (Caveat.of("unpaired_questions"),)
    return Match(np.array([bits for _, bits in same]), np.array(known), asked.pop(), len(base))


def _doubts(score: Score, metric: str) -> tuple[Caveat, ...]:
    """Why the answers of a score are not to be used: what its reader left out, and what contradicts it."""
    found = answers.doubt(score, _READING[metric])
    told = (c for c in score.caveats if c.code in ("answers_incomplete", "answers_ambiguous"))
    partly = (c for c in told if dict(c.values).get("metric", metric) == metric)
    return (*partly, *((found,) if found else ()))


def pooled(jobs: Sequence[Compared], rules: EvalRules) -> Difference | Paired:
    """The jobs of a configuration as one: by question where all of them are paired over one set of questions.

    Jobs answer the same questions, so that the question is what may fall one way or the other, not the answer of a
    job; how much the jobs share is taken from their flips.
    """
    matches = [job.match for job in jobs if job.match and job.match.is_whole]
    if len(matches) == len(jobs) and len({match.questions for match in matches}) == 1:
        shared = overdispersion([shifts(match.before, match.after) for match in matches])
        return paired([match.table for match in matches], shared)
    parts = [job.difference.as_difference() if isinstance(job.difference, Paired) else job.difference for job in jobs]
    return pool([part for part in parts if part], rules.rho)


def source(jobs: Sequence[Compared], difference: Difference | Paired, scale: Scale) -> str:
    """Where the scale of the noise is from, in words that stay the same in every language of a report."""
    matches = [job.match for job in jobs if job.match]
    flips = f"{sum(match.table.lost for match in matches)} lost, {sum(match.table.gained for match in matches)} gained"
    if isinstance(difference, Paired):
        whole = all(match.is_whole for match in matches)
        return f"paired by question, {flips}" if whole else f"flips against some baseline runs, {flips}"
    correction = f"two samples, shared-question correction {scale}"
    if not matches:
        return correction
    told = f"jobs pooled, {flips}"
    return told if len(matches) == len(jobs) else f"{told}; else {correction}"


def correlation(difference: Difference | Paired, rules: EvalRules) -> float:
    """What two jobs share: with it, 1 + rho (J - 1) is how much more their sum scatters than independent ones."""
    if not isinstance(difference, Paired):
        return rules.rho
    jobs = len(difference.tables)
    return (difference.overdispersion - 1) / (jobs - 1) if jobs > 1 else 0.0


def pairs(jobs: Sequence[Compared]) -> tuple[Pairs, ...]:
    """The tables of the jobs as they are kept; none where a job has none."""
    tables = [job.match.table for job in jobs if job.match]
    whole = len(tables) == len(jobs)
    return tuple(Pairs(one.baseline_runs, one.candidate_runs, one.cells) for one in tables) if whole else ()


def pooled_notes(difference: Difference | Paired) -> tuple[Caveat, ...]:
    return (Caveat.of("paired", **_counts(difference.tables)),) if isinstance(difference, Paired) else ()


def _counts(tables: Sequence[Table]) -> dict[str, int]:
    return {
        "lost": sum(table.lost for table in tables),
        "gained": sum(table.gained for table in tables),
        "n": sum(table.questions for table in tables),
    }


def wrong_format(base: Sequence[Score], new: Sequence[Score]) -> tuple[Caveat, ...]:
    """How many answers of the newest run of each side were right but not in the form asked for, where answers tell."""
    after, before = (_only_flexible(side[:1]) for side in (new, base))
    if after is None or new[0].answers is None:
        return ()
    earlier = {} if before is None else {"earlier": before}
    return (Caveat.of("wrong_format", count=after, n=new[0].answers.n, **earlier),)


def _only_flexible(scores: Sequence[Score]) -> int | None:
    for score in scores:
        strict, flexible = answers.right(score, "strict"), answers.right(score, "flexible")
        if strict is not None and flexible is not None:
            return int((flexible & ~strict).sum())
    return None


def rebuilt(pairs: Sequence[Pairs], shared: float = 0.0) -> Paired:
    """The paired difference that kept evidence tells: its tables, and the correlation of its jobs."""
    tables = [Table(one.baseline_runs, one.candidate_runs, one.cells) for one in pairs]
    return paired(tables, 1 + shared * (len(tables) - 1))
