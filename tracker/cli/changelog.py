"""`tracker changelog`: draft entries of perf-changelog.yaml from verdicts, append them, check what a branch did."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tracker.cli.options import events_option, known_events, store_options

if TYPE_CHECKING:
    from store.changelog import Entry
    from store.plan import Plan

Command = TypeVar("Command", bound=Callable[..., Any])

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
MASTER = click.option("--master", "masters", type=FILE, multiple=True, help="Master config; unknown keys are refused.")


@click.group(epilog="\b\nExample:\n  tracker changelog draft run:27489075807")
def command() -> None:
    """Write perf-changelog.yaml from what was measured, and guard what stands in it.

    Appending to the file on main requests GPU sweeps: `draft` only prints.
    """


def question_options(command: Command) -> Command:
    """What is judged, against what, and how the entry is written."""
    options = (
        click.option("--against", default="previous", show_default=True, metavar="BASELINE"),
        click.option("--lang", type=click.Choice(["en", "both"]), default="both", show_default=True,
                     help="English items alone, or each with its Chinese twin."),
        click.option("--pull-request", type=int, help="Number for the link.  [default: the placeholder XXX]"),
        MASTER,
        events_option,
        store_options,
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@command.command(epilog="\b\nExample:\n  tracker changelog draft latest --pull-request 2731")
@click.argument("candidate", default="latest")
@question_options
def draft(candidate: str, **asked: Any) -> None:
    """Print the entries that the findings of CANDIDATE support."""
    from store import changelog

    click.echo(changelog.draft(_entries(candidate, asked)), nl=False)


@command.command(
    epilog="\b\nExample:\n  tracker changelog append perf-changelog.yaml --candidate latest --pull-request 2731"
)
@click.argument("file", type=FILE)
@click.option("--candidate", default="latest", show_default=True)
@question_options
def append(file: Path, candidate: str, **asked: Any) -> None:
    """Append the entries to FILE: every old byte stays, the new ones are printed."""
    from store import changelog

    entries = _entries(candidate, asked)
    added = changelog.append_file(file, entries, known_keys=_known_keys(asked["masters"]))
    click.echo(added.decode(), nl=False)


@command.command(epilog="\b\nExample:\n  git show main:perf-changelog.yaml > base.yaml\n"
                        "  tracker changelog check base.yaml perf-changelog.yaml")  # fmt: skip
@click.argument("base", type=FILE)
@click.argument("head", type=FILE)
@click.option("--pull-request", type=int, help="Number that the links of new entries must have.")
@MASTER
def check(base: Path, head: Path, pull_request: int | None, masters: tuple[Path, ...]) -> None:
    """Tell what HEAD did to the entries of BASE, and exit with 1 when it did what is not allowed."""
    from store import changelog, revisions

    found = revisions.review(
        changelog.read_bytes(base),
        changelog.read_bytes(head),
        known_keys=_known_keys(masters),
        pull_request=pull_request,
    )
    for line in (*found.forbidden, *found.flaws):
        click.echo(str(line))
    click.echo(f"{len(found.added)} added, {len(found.forbidden)} not allowed, {len(found.flaws)} flaws", err=True)
    if not found.passed:
        raise click.exceptions.Exit(1)


@command.command(
    epilog="\b\nExample:\n  tracker changelog resolve main.yaml branch.yaml --pull-request 2731 > merged.yaml"
)
@click.argument("main", type=FILE)
@click.argument("branch", type=FILE)
@click.option("--pull-request", type=int, required=True)
def resolve(main: Path, branch: Path, pull_request: int) -> None:
    """Resolve a conflict at the tail: MAIN's bytes, then the entries of BRANCH's own."""
    from store import changelog, revisions

    merged = revisions.resolve_tail(changelog.read_bytes(main), changelog.read_bytes(branch), pull_request=pull_request)
    click.echo(merged, nl=False)


def _entries(candidate: str, asked: dict[str, Any]) -> tuple[Entry, ...]:
    from tracker import jobs, texts

    question = jobs.Question(candidate, asked["against"], events=known_events(asked["events"]))
    where = jobs.Where.of(asked["store"], asked["archive"], asked["withdrawals"])
    wanted = texts.Entries(asked["lang"], asked["pull_request"], _plan(asked["masters"]))
    return texts.changelog_entries(question, where, wanted)


def _known_keys(masters: tuple[Path, ...]) -> frozenset[str] | None:
    found = _plan(masters)
    return None if found is None else frozenset(found.keys)


def _plan(masters: tuple[Path, ...]) -> Plan | None:
    from store.plan import read

    return read(masters) if masters else None
