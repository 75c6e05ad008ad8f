"""`tracker store`: look at the store, check, repair, refresh, rebuild, export, pull and push it."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tracker.cli.options import store_options

if TYPE_CHECKING:
    from store.github import Access
    from store.travel import Carried

Command = TypeVar("Command", bound=Callable[..., Any])

FORMS = ("parquet", "csv", "json")

WHERE = """\b
WHERE is one of
  FOLDER               a mounted bucket, an unpacked artifact, a git worktree
  s3://BUCKET/PREFIX   or gs://…, with the credentials of the environment;
                       AWS_ENDPOINT_URL leads to another server
  release:TAG          assets of a GitHub release of --repo
  artifact:NAME        the newest workflow artifact of the default branch (pull)
"""


@click.group(epilog="\b\nExample:\n  tracker store info")
def command() -> None:
    """Look at, check, repair, refresh, rebuild, export, pull or push the store."""


def place_options(command: Command) -> Command:
    """The place, and the repository that `release:` and `artifact:` are of."""
    options = (
        click.argument("place", metavar="WHERE"),
        click.option("--repo", envvar="GITHUB_REPOSITORY", show_envvar=True, metavar="OWNER/NAME"),
        click.option("--api", envvar="GITHUB_API_URL", default="https://api.github.com", show_envvar=True),
    )
    for option in reversed(options):
        command = option(command)
    return command


@command.command(epilog="\b\nExample:\n  tracker store info --store demo/tracker.duckdb")
@store_options
def info(store: Path, archive: Path | str | None, withdrawals: Path | None) -> None:
    """Say what the store holds."""
    from tracker import jobs
    from tracker.cli import summary

    click.echo(summary.info(jobs.store_info(jobs.Where.of(store, archive, withdrawals))))


@command.command(epilog="\b\nExample:\n  tracker store rebuild")
@store_options
def rebuild(store: Path, archive: Path | str | None, withdrawals: Path | None) -> None:
    """Make the database again from the archive, and put it in the place of the old one."""
    from tracker import jobs
    from tracker.cli import summary

    loaded = jobs.rebuild(jobs.Where.of(store, archive, withdrawals))
    click.echo(summary.rebuilt(loaded))
    if loaded.broken:
        raise click.exceptions.Exit(1)


REFRESH = """\b
Examples:
  tracker store refresh --archive s3://sweeps/tracker
  tracker store refresh --archive s3://sweeps/tracker --since 2026-10-01
"""


@command.command(epilog=REFRESH)
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S%z"]),
    help="Only runs of which a file was written since (UTC): all that started since are among them.",
)
@click.option("--newest", type=click.IntRange(min=1), metavar="N", help="Only the N runs with the highest numbers.")
@store_options
def refresh(
    since: datetime | None, newest: int | None, store: Path, archive: Path | str | None, withdrawals: Path | None
) -> None:
    """Load what the archive has and the database has not.

    A part may do for one comparison in CI. The store remembers which part: landing keeps to it, reports say that the
    rest was not compared, and what needs the whole history refuses. Without --since and --newest everything is loaded.
    """
    from store.depot import Choice
    from tracker import jobs
    from tracker.cli import summary

    choice = Choice(since.replace(tzinfo=since.tzinfo or UTC) if since else None, newest)
    where = jobs.Where.of(store, archive, withdrawals)
    loaded = jobs.refresh(where, choice)
    click.echo(summary.caught_up(loaded))
    if loaded.broken or loaded.unlisted:
        raise click.exceptions.Exit(1)


def form_option(command: Command) -> Command:
    """`--format table|json`."""
    return click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)(
        command
    )


@command.command(epilog="\b\nExample:\n  tracker store check")
@form_option
@store_options
def check(form: str, store: Path, archive: Path | str | None, withdrawals: Path | None) -> None:
    """Read every file and every row, and say what is damaged and what is lost by it; exit with 1 where anything is.

    Nothing is written. Each archive file is held against its name and its shape, the database against the archive.
    """
    from tracker import jobs
    from tracker.cli import checkup, progress

    with progress.waiting("reading files and rows"):
        found = jobs.check(jobs.Where.of(store, archive, withdrawals))
    click.echo(checkup.checked(found, form))
    if not found.is_clean:
        raise click.exceptions.Exit(1)


@command.command(epilog="\b\nExample:\n  tracker store check || tracker store recover")
@form_option
@store_options
def recover(form: str, store: Path, archive: Path | str | None, withdrawals: Path | None) -> None:
    """Repair what `tracker store check` finds; exit with 1 where something stays wrong.

    What is damaged is put aside as NAME.damaged-N. The database is made anew from the archive and put in place in one
    step, with what can still be read of the old one.
    """
    from tracker import jobs
    from tracker.cli import checkup, progress

    with progress.waiting("repairing"):
        done = jobs.recover(jobs.Where.of(store, archive, withdrawals))
    click.echo(checkup.recovered(done, form))
    if not done.after.is_clean:
        raise click.exceptions.Exit(1)


@command.command(epilog="\b\nExample:\n  tracker store export --into ./tidy --format csv")
@click.option("--into", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder to write to.")
@click.option("--format", "form", type=click.Choice(FORMS), default="parquet", show_default=True)
@click.option("--with-withdrawn", is_flag=True, help="Also what was withdrawn, told by a column `withdrawn`.")
@store_options
def export(
    into: Path, form: str, with_withdrawn: bool, store: Path, archive: Path | str | None, withdrawals: Path | None
) -> None:
    """Write the points and the scores that count as tidy files."""
    from tracker import jobs

    where = jobs.Where.of(store, archive, withdrawals)
    for path in jobs.export(where, into, form, with_withdrawn=with_withdrawn):
        click.echo(path)


@command.command(epilog="\b\nExamples:\n  tracker store states\n  tracker store states 27489075807")
@click.argument("run", type=int, required=False)
@store_options
def states(run: int | None, store: Path, archive: Path | str | None, withdrawals: Path | None) -> None:
    """Say which rows may be used: official or not, valid or not, with every reason.

    For one RUN, or for all of them, newest first. Whether two rows are comparable is a question of two sides:
    `tracker compare` answers it, with the reasons.
    """
    from tracker import jobs
    from tracker.cli import summary

    click.echo(summary.states(jobs.states(jobs.Where.of(store, archive, withdrawals), run)))


@command.command(epilog="\b\nExample:\n  tracker store withdrawn --withdrawals withdrawals.yaml")
@store_options
def withdrawn(store: Path, archive: Path | str | None, withdrawals: Path | None) -> None:
    """Say what each withdrawal takes out of the store, and which stored comparisons cited it."""
    from tracker import jobs
    from tracker.cli import summary

    where = jobs.Where.of(store, archive, withdrawals)
    click.echo(summary.withdrawn(jobs.withdrawn(where), where.withdrawals))


PULL = f"""{WHERE}
\b
Examples:
  tracker store pull s3://sweeps/tracker
  tracker store pull release:sweep-tracker-store --repo OWNER/NAME     token in GITHUB_TOKEN
"""


@command.command(epilog=PULL)
@place_options
@store_options
def pull(
    place: str, repo: str | None, api: str, store: Path, archive: Path | str | None, withdrawals: Path | None
) -> None:
    """Bring what WHERE has and the archive lacks, then the database up to date.

    Each file is checked against its name; nothing here is deleted or written over. Pulling again goes on.
    """
    from store import places
    from tracker import jobs
    from tracker.cli import progress, summary

    rights = _rights(repo, api)
    with places.opened(place, rights, writing=False) as there, progress.watching("files pulled") as watch:
        carried, loaded = jobs.pull(jobs.Where.of(store, archive, withdrawals), there, watch)
    click.echo(summary.carried(carried, "pulled from", place))
    click.echo(summary.caught_up(loaded))
    _end(carried, *loaded.broken)


PUSH = f"""{WHERE}
\b
Examples:
  tracker store push s3://sweeps/tracker
  tracker store push ./upload                                          for actions/upload-artifact
  tracker store push release:sweep-tracker-store --repo OWNER/NAME     print what would be sent
  tracker store push release:sweep-tracker-store --repo OWNER/NAME --send
"""


@command.command(epilog=PUSH)
@place_options
@click.option("--send", is_flag=True, help="Push to a release; without it what would be pushed is printed.")
@store_options
def push(
    place: str,
    repo: str | None,
    api: str,
    send: bool,
    store: Path,
    archive: Path | str | None,
    withdrawals: Path | None,
) -> None:
    """Put what the archive has and WHERE lacks there: files of runs and of findings.

    Nothing there is deleted or written over, so several machines may push at once. Pushing again goes on.
    """
    from store import places
    from tracker import jobs
    from tracker.cli import progress, summary

    where = jobs.Where.of(store, archive, withdrawals)
    rights = _rights(repo, api, releasing=send)
    with places.opened(place, rights, writing=True) as there, progress.watching("files pushed") as watch:
        if place.partition(":")[0] in places.MUTATES_GITHUB and not send:
            click.echo(summary.planned(jobs.planned_push(where, there), place))
            return
        carried = jobs.push(where, there, watch)
    click.echo(summary.carried(carried, "pushed to", place))
    _end(carried)


def _rights(repo: str | None, api: str, *, releasing: bool = False) -> Callable[[], Access]:
    def rights() -> Access:
        from store.credentials import READING, RELEASING, credentials
        from store.github import Access

        if not repo:
            raise click.UsageError("release: and artifact: need --repo OWNER/NAME")
        address = api.rstrip("/")
        return Access(repo, credentials(os.environ, repo, address, RELEASING if releasing else READING), address)

    return rights


def _end(carried: Carried, *broken: str) -> None:
    """Exit with 1 when a file could not be copied or read."""
    if carried.refused or broken:
        raise click.exceptions.Exit(1)
