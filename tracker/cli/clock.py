"""What the clock of this machine and the times of runs say of each other."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from store.records import Run

LENIENT: Final = timedelta(hours=1)
"""Clocks of machines may differ by so much without a word."""


def warn(runs: Iterable[Run]) -> None:
    """Say on stderr which of some runs started last, where that is in the future."""
    newest = max(runs, key=lambda run: (run.started_at, run.key), default=None)
    if newest is not None and (said := ahead(newest, datetime.now(UTC))):
        click.echo(f"tracker: {said}", err=True)


def ahead(newest: Run, now: datetime) -> str:
    """What is to be known of a run that says it started after now; "" where it did not.

    Everything is ordered by what runs say of themselves, never by this clock, so such a run stays the newest one.
    """
    if newest.started_at <= now + LENIENT:
        return ""
    return (
        f"run {newest.key} says that it started at {newest.started_at:%Y-%m-%d %H:%M} UTC, in the future of this"
        f" machine ({now:%Y-%m-%d %H:%M} UTC): it stands as the newest run; if its time is wrong, withdraw it"
        " (docs/withdrawals.md)"
    )


def warn_of_week(name: str, end: datetime) -> None:
    """Say on stderr that a week is not over, or has not begun, by the clock of this machine."""
    now = datetime.now(UTC)
    if end > now + LENIENT:
        click.echo(
            f"tracker: {name} ends on {end:%Y-%m-%d}, in the future of this machine ({now:%Y-%m-%d %H:%M} UTC): runs"
            " that say they started so late stand as the newest; --week names another one",
            err=True,
        )
