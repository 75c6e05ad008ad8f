"""What a history tells: images by time, changes of level, departures of the environment, and where a curve stands.

Frozen records beside those of `store.records`; effects are natural logarithms of a ratio, times aware UTC datetimes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from statistics import median

from store.records import Attribution


@dataclass(frozen=True, slots=True)
class Mark:
    """A run of a curve as its history shows it."""

    run: str
    at: datetime | None
    image: str | None
    recipe: str | None
    points: int
    level: float
    """How far above the curve's median run, natural log units."""


@dataclass(frozen=True, slots=True)
class Era:
    """Consecutive runs of a curve under one image."""

    image: str | None
    first: Mark
    last: Mark
    runs: int
    level: float
    """Median level of its runs."""


@dataclass(frozen=True, slots=True)
class Shift:
    """A change of level of a curve between two runs."""

    attribution: Attribution
    """What differs between the two levels, events of the harness among it."""
    effect: float
    low: float
    high: float
    p: float
    mde: float
    is_better: bool
    before: Mark
    after: Mark
    last: Mark
    """The last run of the new level."""
    runs_before: int
    runs_after: int
    good: Mark | None = None
    """For a gain after a loss: the last run of the level before the loss..."""
    net: float | None = None
    """...and the change against that level, which is the one to tell."""


@dataclass(frozen=True, slots=True)
class Departure:
    """Runs that left the usual level of their image and recipe."""

    attribution: Attribution
    """What differs from the nearest run on that level: nothing, for the environment's."""
    effect: float
    is_better: bool
    first: Mark
    last: Mark
    runs: int
    is_open: bool
    """The newest run is one of them."""
    low: float | None = None
    """95 % interval of the effect, and its p; None for runs that were told by their distance alone."""
    high: float | None = None
    p: float | None = None


@dataclass(frozen=True, slots=True)
class Loss:
    """The newest runs beside those of an anchor, and how much of that steps have told."""

    effect: float
    low: float
    high: float
    p: float
    mde: float
    told: float
    is_called: bool
    is_slow: bool
    anchor: Mark
    newest: Mark


@dataclass(frozen=True, slots=True)
class Chronicle:
    """The history of one curve under one metric, oldest first."""

    curve: str
    config: str
    gpu: str
    framework: str
    metric: str
    marks: tuple[Mark, ...]
    eras: tuple[Era, ...]
    shifts: tuple[Shift, ...]
    departures: tuple[Departure, ...]
    last_good: Mark
    """The newest run that stood at a level which the newest one does not reach; else the newest run itself."""
    lost: float
    """How far the newest level is below that one; 0 where it is not."""
    visible: float
    """Smallest change of the next single run that would be seen against the newest level."""
    loss: Loss | None = None


@dataclass(frozen=True, slots=True)
class Episode:
    """Departures of one kind of GPU that overlap in time and point the same way."""

    gpu: str
    first: datetime
    last: datetime
    is_better: bool
    members: tuple[tuple[Chronicle, Departure], ...]

    @property
    def effect(self) -> float:
        """Median over the members."""
        return median(one.effect for _, one in self.members)


@dataclass(frozen=True, slots=True)
class Taken:
    """One curve that took a new image: its last run before, its first run after, and the step between, if any."""

    chronicle: Chronicle
    before: Mark
    after: Mark
    runs: int
    """Runs under the new image."""
    shift: Shift | None


@dataclass(frozen=True, slots=True)
class Introduction:
    """A change of image on one framework and kind of GPU, with every curve that took it."""

    framework: str
    gpu: str
    before: str | None
    after: str | None
    members: tuple[Taken, ...]

    @property
    def first(self) -> Mark:
        """The first run that measured it."""
        return min((one.after for one in self.members), key=lambda mark: (str(mark.at), mark.run))

    @property
    def worse(self) -> tuple[Taken, ...]:
        return tuple(one for one in self.members if one.shift is not None and not one.shift.is_better)

    @property
    def better(self) -> tuple[Taken, ...]:
        return tuple(one for one in self.members if one.shift is not None and one.shift.is_better)

    @property
    def level(self) -> tuple[Taken, ...]:
        """No step found."""
        return tuple(one for one in self.members if one.shift is None)


@dataclass(frozen=True, slots=True)
class Spread:
    """How well reruns of the same image and recipe agree, over some curves under one metric. Natural log units."""

    group: str
    metric: str
    curves: int
    pairs: int
    """Neighbouring reruns of a point."""
    typical: float | None
    """Median noise scale of a point; None where nothing was rerun."""
    high: float | None
    """The scale that one point in ten exceeds."""
    within: float | None
    """Share of the pairs inside the margin of a point."""
    margin: float
    bad_days: int
    """Days on which the environment was worse, and all days that were measured."""
    days: int
    one_point: float
    """Smallest visible change: of one point by one run..."""
    one_run: float
    """...of a curve by one run..."""
    two_runs: float
    """...and by two."""
