"""`tracker findings`: the changes of a store and what people say about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tracker.cli.options import language_option, store_options

if TYPE_CHECKING:
    from store.life import Change

Command = TypeVar("Command", bound=Callable[..., object])

EPILOG = """\b
Examples:
  tracker findings list
  tracker findings show j2a2catt
  tracker findings dismiss j2a2 --reason "the node was shared"
"""


@click.group(epilog=EPILOG)
def command() -> None:
    """List the changes of a store, show one, acknowledge, dismiss or reopen them."""


@command.command("list", epilog="\b\nExample:\n  tracker findings list --all")
@click.option("--all", "every", is_flag=True, help="Also what is over, and what was only suspected.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@language_option
@store_options
def listed(
    every: bool, form: str, lang: str, store: Path, archive: Path | str | None, withdrawals: Path | None
) -> None:
    """Name the changes that are open, newest first, and how often announced changes were true."""
    from tracker import weekly
    from tracker.cli import changes
    from tracker.jobs import Where

    told, newest = weekly.changes(Where.of(store, archive, withdrawals))
    rows = [change for change in told if every or (change.is_live and change.announced is not None)]
    click.echo(changes.table(rows[::-1], weekly.precision(told), newest, form, lang), nl=False)


@command.command(epilog="\b\nExample:\n  tracker findings show j2a2catt")
@click.argument("name", metavar="ID")
@language_option
@store_options
def show(name: str, lang: str, store: Path, archive: Path | str | None, withdrawals: Path | None) -> None:
    """Show a change with its life; ID is its id or the start of it."""
    from tracker import weekly
    from tracker.cli import changes
    from tracker.jobs import Where

    told, newest = weekly.changes(Where.of(store, archive, withdrawals))
    click.echo(changes.page(weekly.find(told, name), newest, lang), nl=False)


def _saying(command: Command) -> Command:
    """The options of what people say: who, and when."""
    by = click.option("--by", envvar="USER", required=True, metavar="NAME", help="Who says so.  [default: $USER]")
    at = click.option("--at", metavar="TIME", help="When (ISO 8601, UTC).  [default: now]")
    names = click.argument("names", metavar="ID...", nargs=-1, required=True)
    return names(by(at(store_options(command))))


@command.command(epilog="\b\nExample:\n  tracker findings acknowledge j2a2catt --by maria")
@_saying
def acknowledge(**asked: Any) -> None:
    """Say that somebody knows of a change and means to do something about it."""
    _say("acknowledge", **asked)


@command.command(epilog='\b\nExample:\n  tracker findings dismiss j2a2catt --reason "the node was shared"')
@click.option("--reason", required=True, help="Why it is no change.")
@_saying
def dismiss(**asked: Any) -> None:
    """Say that a change was none; it counts against the precision that is published."""
    _say("dismiss", **asked)


@command.command(epilog='\b\nExample:\n  tracker findings reopen j2a2catt --reason "seen on another node too"')
@click.option("--reason", required=True, help="Why it was one after all.")
@_saying
def reopen(**asked: Any) -> None:
    """Take a dismissal back."""
    _say("reopen", **asked)


def _say(action: str, *, names: Sequence[str], by: str, at: str | None, reason: str = "", **places: Any) -> None:
    from store.life import Action, Event
    from tracker import weekly
    from tracker.jobs import Where

    moment = _moment(at)
    events = [Event(moment, name, Action(action), by, reason) for name in names]
    for change in weekly.say(Where.of(**places), events):
        click.echo(_line(change))


def _line(change: Change) -> str:
    return f"{change.id}: {change.state.value}, {change.key}"


def _moment(text: str | None) -> datetime:
    """The time of an event, given at the edge: nothing below reads a clock."""
    try:
        moment = datetime.fromisoformat(text) if text else datetime.now(UTC)
    except ValueError as flaw:
        raise click.BadParameter(f"{text!r} is no time: write it as 2026-08-10T06:00Z", param_hint="--at") from flaw
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
