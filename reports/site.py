"""What the pages of a served store say beside comparisons and weeks: the list of all, and why there is no page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reports.language import Phrase
from reports.things import Listed
from store.records import Run


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run attempt and how many points and scores of it count."""

    run: Run
    points: int
    scores: int
    is_official: bool


@dataclass(frozen=True, slots=True)
class WeekLine:
    """An ISO week that holds runs."""

    name: str
    start: datetime
    last_day: datetime
    runs: int


@dataclass(frozen=True, slots=True)
class Index:
    """Everything that has a page, newest first."""

    weeks: Listed[WeekLine]
    runs: Listed[RunLine]


@dataclass(frozen=True, slots=True)
class Notice:
    """Why there is no page, and what to do."""

    title: Phrase
    said: Phrase
