"""Options that several commands share, and the places they stand for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from tracker.workers import Crew

Command = TypeVar("Command", bound=Callable[..., Any])


class ArchivePath(click.Path):
    """A folder, or the address of a bucket, which stays the text that it is."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and "://" in value:
            from store.depot import is_bucket

            if not is_bucket(value):
                self.fail(f"{value!r} is neither a folder nor s3://BUCKET/PREFIX nor gs://BUCKET/PREFIX", param, ctx)
            return value
        return super().convert(value, param, ctx)


def store_options(command: Command) -> Command:
    """`--store`, `--archive` and `--withdrawals`; the last two stand beside the store unless they are named."""
    withdrawals = click.option(
        "--withdrawals",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        envvar="TRACKER_WITHDRAWALS",
        show_envvar=True,
        help="Runs and points not to be used.  [default: beside the store, .withdrawals.yaml for .duckdb]",
    )
    archive = click.option(
        "--archive",
        type=ArchivePath(path_type=Path, file_okay=False),
        metavar="DIRECTORY|s3://BUCKET/PREFIX",
        envvar="TRACKER_ARCHIVE",
        show_envvar=True,
        help="Immutable run files.  [default: beside the store, .archive for .duckdb]",
    )
    store = click.option(
        "--store",
        type=click.Path(path_type=Path, dir_okay=False),
        envvar="TRACKER_STORE",
        default=Path("tracker.duckdb"),
        show_default=True,
        show_envvar=True,
        help="Database file.",
    )
    return store(archive(withdrawals(command)))


def language_option(command: Command) -> Command:
    """`--lang en|zh|both`."""
    return click.option(
        "--lang",
        type=click.Choice(["en", "zh", "both"]),
        default="en",
        show_default=True,
        envvar="TRACKER_LANG",
        help="Language of the words; numbers are the same.",
    )(command)


def events_option(command: Command) -> Command:
    """`--events FILE`: changes of the test harness that the user knows beside the shipped ones."""
    return click.option(
        "--events",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        envvar="TRACKER_EVENTS",
        show_envvar=True,
        help="Events of the test harness beside the shipped ones (docs/events.md).",
    )(command)


def cluster_option(command: Command) -> Command:
    """`--cluster ADDRESS`: a Ray cluster that does the work."""
    return click.option(
        "--cluster",
        metavar="auto|[ray://]HOST:PORT",
        envvar="TRACKER_CLUSTER",
        show_envvar=True,
        help="Share the work on this Ray cluster (docs/cluster.md).  [default: processes of this machine]",
    )(command)


def crew(cluster: str | None, watch: Callable[[int], None] = lambda _: None) -> Crew:
    """Who does the work: the cluster that was named, else a process for each processor."""
    from tracker.workers import Crew, processors

    return Crew(processors(), cluster, lambda said: click.echo(f"tracker: {said}", err=True), watch)


def known_events(events: Path | None) -> Any:
    """The events of a file with the shipped ones, or those alone."""
    from tracker.eventfile import load
    from tracker.events import EVENTS

    return EVENTS if events is None else load(events)
