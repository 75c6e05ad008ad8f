"""What is kept of a judged run, and what became of a change: records of the life of findings.

A `Review` is what one run's own comparison said, kept once per run. A `Change` is what reviews, later levels and the
events of people make of it; it is derived anew whenever it is asked for, so it never depends on the order of landing.
Effects and margins are natural log ratios, for evals differences of fractions. Times are aware UTC.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from store import images
from store.images import Sameness
from store.records import Caveat, Finding, Run, RunKey, Scope, Verdict

ALPHABET: Final = "23456789abcdefghjkmnpqrstvwxyz"
"""No letter or digit that is easily taken for another."""
ID_LENGTH: Final = 8


class Direction(StrEnum):
    """Which way a level went, in the sense of the metric."""

    WORSE = "worse"
    BETTER = "better"


class State(StrEnum):
    """Where a change stands at a moment."""

    SUSPECTED = "suspected"
    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"
    SUPERSEDED = "superseded"
    WITHDRAWN = "withdrawn"
    DISMISSED = "dismissed"


LIVE: Final = frozenset({State.SUSPECTED, State.OPEN, State.ACKNOWLEDGED})


class Action(StrEnum):
    """What a person may say about a change."""

    ACKNOWLEDGE = "acknowledge"
    DISMISS = "dismiss"
    REOPEN = "reopen"


@dataclass(frozen=True, slots=True)
class Bump:
    """What differs between the software of two sides, as far as it is known."""

    before: str | None
    after: str | None
    sameness: Sameness
    """CHANGED when image or recipe differ for certain, SAME when neither does."""
    recipe: bool = False
    """True when it is the recipe that differs, under one image."""
    since: RunKey | None = None
    """The newest baseline run: it tells two bumps apart where the images do not."""

    @property
    def text(self) -> str:
        """What tells this bump apart from others of the same series."""
        before, after = images.canonical(self.before), images.canonical(self.after)
        by_image = self.sameness is Sameness.CHANGED and not self.recipe
        return f"{before} > {after}" if by_image else f"{before} > {after} since {self.since}"


@dataclass(frozen=True, slots=True)
class Move:
    """One thing that moved in one run's comparison: a curve, lone points of a curve, or the evals of a config."""

    key: str
    """Text key of the curve; for evals config and task."""
    config: str
    scope: Scope
    direction: Direction
    verdict: Verdict
    """The strongest verdict that speaks in this direction."""
    finding: Finding
    """The finding that tells it, without its evidence (kept whole in the table of findings)."""
    margin: float
    reference: Mapping[str, tuple[str, float]]
    """Member series -> metric and the level before: ln of the mean value, for evals the mean score."""
    pool: str = ""
    alarms: tuple[Caveat, ...] = ()
    """What is wrong with evals beside their level: a missed threshold, a format that changed."""


@dataclass(frozen=True, slots=True)
class Joint:
    """Two runs of one software judged together (m = 2)."""

    first: RunKey
    keys: tuple[str, ...]
    """The curves and evals that were judged so."""
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class Apart:
    """Rows of one config that were not judged, for one reason."""

    verdict: Verdict
    reason: Caveat
    config: str
    rows: int
    example: str
    """Text key of one of them."""
    evals: bool = False


@dataclass(frozen=True, slots=True)
class ConfigBump:
    """The images of a config on both sides of a run's comparison."""

    config: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Review:
    """What is kept of the comparison of one run with its own past."""

    run: RunKey
    started_at: datetime
    rules_version: str
    content: str
    """A mark of what the run held when it was judged; when more of it lands, it is judged again."""
    points: Mapping[Verdict, int] = field(default_factory=dict)
    curves: Mapping[Verdict, int] = field(default_factory=dict)
    scores: Mapping[Verdict, int] = field(default_factory=dict)
    configs: tuple[str, ...] = ()
    bumps: tuple[ConfigBump, ...] = ()
    moves: tuple[Move, ...] = ()
    joint: tuple[Joint, ...] = ()
    apart: tuple[Apart, ...] = ()
    rejected: tuple[tuple[str, str, int], ...] = ()
    """Reason, field and number of the rows that could not be read."""
    pools: Mapping[str, int] = field(default_factory=dict)
    """Pool -> curves that were judged on it."""


@dataclass(frozen=True, slots=True)
class Event:
    """What a person said about a change, and when."""

    at: datetime
    change: str
    action: Action
    by: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of level with its life so far."""

    id: str
    key: str
    config: str
    scope: Scope
    direction: Direction
    bump: Bump
    finding: Finding
    """As it was first announced; before that, as it was first suspected."""
    first: RunKey
    first_at: datetime
    """The first bad run, also when a later run confirmed it."""
    state: State
    state_at: datetime
    state_run: RunKey | None = None
    """The run that brought the state; None where a person did."""
    why: str = ""
    """Code of the way a change was withdrawn: `spike`, `not_confirmed`."""
    announced: RunKey | None = None
    """The run by which it is first told as a change and no mere suspicion."""
    announced_at: datetime | None = None
    confirmed: RunKey | None = None
    returned: RunKey | None = None
    """The run that brought the same bump back after it was resolved."""
    superseded_by: str = ""
    runs: int = 1
    """Official runs that showed it."""
    last_seen: RunKey | None = None
    members: tuple[str, ...] = ()
    """Curves of a pool-wide move, or the series of lone points and evals."""
    configs: tuple[str, ...] = ()
    since_good: float | None = None
    """Change against the level before an earlier regression of the same series that this one follows."""
    alarms: tuple[Caveat, ...] = ()
    pool: str = ""
    """Set for a move of a whole pool of machines."""
    said: Event | None = None
    """The last word of a person about it."""

    @property
    def is_eval(self) -> bool:
        return self.finding.task is not None

    @property
    def is_environment(self) -> bool:
        """True where the software did not change: other numbers under the same image and recipe, or a whole pool."""
        return bool(self.pool) or self.bump.sameness is Sameness.SAME

    @property
    def is_live(self) -> bool:
        return self.state in LIVE


@dataclass(frozen=True, slots=True)
class InForce:
    """The image that a config was last measured with."""

    config: str
    image: str
    first_at: datetime
    last_at: datetime
    days: int
    """From its first measurement to the end of the week."""
    run: RunKey
    """The newest run with it."""


@dataclass(frozen=True, slots=True)
class Precision:
    """How often an announced change was one: confirmed by a run or by a person, of all that were decided so."""

    confirmed: int
    dismissed: int
    low: float | None = None
    """95 % interval of the share; None where nothing was decided."""
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Week:
    """One ISO week of a store, Monday to Sunday in UTC, as it stood at its end."""

    name: str
    start: datetime
    end: datetime
    """The Monday after; it is no part of the week."""
    reviews: tuple[Review, ...]
    changes: tuple[Change, ...]
    """Every change up to the end of the week."""
    images: tuple[InForce, ...]
    runs: tuple[Run, ...]
    """Every run of the week, and every run that a change or an image in force names."""
    unofficial: tuple[tuple[RunKey, tuple[Caveat, ...]], ...]
    """Runs of the week that are no part of the history, with the reasons."""
    unread: tuple[RunKey, ...]
    """Official runs of the week that have not been judged yet."""
    precision: Precision
    rules_version: str


def change_id(key: str, what: str, direction: Direction, bump: str) -> str:
    """The short name of a change: the same in every store, whatever landed first.

    >>> change_id("dsr1 h200", "speed", Direction.WORSE, "a:1 > a:2")
    '2e9kj4q8'
    """
    text = "\0".join((key, what, direction.value, bump))
    number = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
    letters = []
    for _ in range(ID_LENGTH):
        number, place = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[place])
    return "".join(letters)
