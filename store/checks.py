"""Rows of a sign-off that a machine can check: what each is about, how it stands, and the proof of it.

Nothing is guessed: what GitHub or the files do not tell is not known, and what only a person can judge is flagged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from store.records import LaneCount, RunKey, Value


class State(StrEnum):
    """How a row stands. FLAGGED was found and is for a person to judge; NOT_KNOWN is no verdict at all."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does_not_hold"
    FLAGGED = "flagged"
    NOT_KNOWN = "not_known"
    NOT_APPLICABLE = "not_applicable"


@dataclass(frozen=True, slots=True)
class Proof:
    """One fact behind a row as a code with values, and where it can be looked up; the sentence is made by `reports`.

    >>> Proof.of("exact_head", commit="77fa834").as_dict()
    {'code': 'exact_head', 'values': {'commit': '77fa834'}, 'link': None}
    """

    code: str
    values: tuple[tuple[str, Value], ...] = ()
    link: str = ""

    @classmethod
    def of(cls, code: str, link: str = "", /, **values: Value) -> Proof:
        return cls(code, tuple(values.items()), link)

    def as_dict(self) -> dict[str, Any]:
        return {"code": self.code, "values": dict(self.values), "link": self.link or None}


@dataclass(frozen=True, slots=True)
class Check:
    """One row: its number in the list of the sign-off bot (None for a further one), its name, its state, its proof."""

    number: int | None
    name: str
    state: State
    proof: tuple[Proof, ...] = ()


@dataclass(frozen=True, slots=True)
class Range:
    """Lowest and highest score (fractions) of one task over `count` eval jobs, and the pass mark that applies."""

    task: str
    count: int
    low: float
    high: float
    mark: float


@dataclass(frozen=True, slots=True)
class Statement:
    """What the evidence sentence of a sign-off may say: only made where each part of it was read and holds."""

    run: RunKey
    commit: str
    exact: bool
    """True when the run measured the head of the pull request."""
    jobs: LaneCount
    eval_jobs: LaneCount
    ranges: tuple[Range, ...]
    images: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PullEvidence:
    """All rows of one pull request."""

    repository: str
    pull: int
    head: str
    checks: tuple[Check, ...]
    caveats: tuple[Proof, ...] = ()
    """Parts that could not be read, and what a reader must know before the rows."""
    statement: Statement | None = None
    lacking: tuple[str, ...] = ()
    """Names of the rows that must hold before the sentence may be written, and do not."""

    @property
    def link(self) -> str:
        return f"https://github.com/{self.repository}/pull/{self.pull}"

    def count(self, state: State) -> int:
        return sum(check.state is state for check in self.checks)

    def states(self) -> Mapping[str, State]:
        """The state of each row by its name."""
        return {check.name: check.state for check in self.checks}
