"""What a plan of repetitions says: which points, what they would settle, and with which power."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from store.records import Finding, Series


class Why(StrEnum):
    """Why a finding asks for a repetition, the most important first."""

    CONFIRM = "confirm"
    """A loss from one candidate run."""
    GATE = "gate"
    """An eval within its doubt of the pass mark."""
    SUSPECTED = "suspected"
    INCONCLUSIVE = "inconclusive"
    """The interval reaches beyond the margin for the worse."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A finding, the points whose repetition it asks for, and the power before and after they were repeated once."""

    finding: Finding
    why: Why
    points: tuple[str, ...]
    before: float
    after: float
    repetitions: int | None
    """Of all its points for a power of 80 %; None where no reasonable number is enough."""


@dataclass(frozen=True, slots=True)
class Again:
    """A point (or an eval, where `task` names one) to run again."""

    key: str
    config: str
    series: Series | None
    task: str | None = None


@dataclass(frozen=True, slots=True)
class RerunPlan:
    """The points to run again, most important first."""

    points: tuple[Again, ...]
    asks: tuple[Ask, ...]
    """What they settle."""
    beyond: tuple[Ask, ...]
    """What one repetition would probably leave open."""
    waiting: tuple[Ask, ...]
    """What found no room in the budget."""
    total: int
    """Points and evals of the candidate."""
    budget: float
    """Share of them that may be run again."""
    limit: int
    """The same as a number."""
    judged: int
    """Findings that had a baseline, or a threshold: without any, nothing to settle means nothing."""

    @property
    def is_over(self) -> bool:
        """The most important finding alone needed more than the budget."""
        return len(self.points) > self.limit
