"""`tracker store`: look at the store and at what may be used of it, rebuild or export it."""

from __future__ import annotations

from pathlib import Path

import click

from tracker.cli.options import store_options

FORMS = ("parquet", "csv", "json")


@click.group(epilog="\b\nExample:\n  tracker store info")
def command() -> None:
    """Look at, rebuild or export the store."""


@command.command(epilog="\b\nExample:\n  tracker store info --store demo/tracker.duckdb")
@store_options
def info(store: Path, archive: Path | None, withdrawals: Path | None) -> None:
    """Say what the store holds."""
    from tracker import jobs
    from tracker.cli import summary

    click.echo(summary.info(jobs.store_info(jobs.Where.of(store, archive, withdrawals))))


@command.command(epilog="\b\nExample:\n  tracker store rebuild")
@store_options
def rebuild(store: Path, archive: Path | None, withdrawals: Path | None) -> None:
    """Make the database again from the archive, and put it in the place of the old one."""
    from tracker import jobs
    from tracker.cli import summary

    loaded = jobs.rebuild(jobs.Where.of(store, archive, withdrawals))
    click.echo(summary.rebuilt(loaded))
    if loaded.broken:
        raise click.exceptions.Exit(1)


@command.command(epilog="\b\nExample:\n  tracker store export --into ./tidy --format csv")
@click.option("--into", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder to write to.")
@click.option("--format", "form", type=click.Choice(FORMS), default="parquet", show_default=True)
@click.option("--with-withdrawn", is_flag=True, help="Also what was withdrawn, told by a column `withdrawn`.")
@store_options
def export(
    into: Path, form: str, with_withdrawn: bool, store: Path, archive: Path | None, withdrawals: Path | None
) -> None:
    """Write the points and the scores that count as tidy files."""
    from tracker import jobs

    where = jobs.Where.of(store, archive, withdrawals)
    for path in jobs.export(where, into, form, with_withdrawn=with_withdrawn):
        click.echo(path)


@command.command(epilog="\b\nExamples:\n  tracker store states\n  tracker store states 27489075807")
@click.argument("run", type=int, required=False)
@store_options
def states(run: int | None, store: Path, archive: Path | None, withdrawals: Path | None) -> None:
    """Say which rows may be used: official or not, valid or not, with every reason.

    For one RUN, or for all of them, newest first. Whether two rows are comparable is a question of two sides:
    `tracker compare` answers it, with the reasons.
    """
    from tracker import jobs
    from tracker.cli import summary

    click.echo(summary.states(jobs.states(jobs.Where.of(store, archive, withdrawals), run)))


@command.command(epilog="\b\nExample:\n  tracker store withdrawn --withdrawals withdrawals.yaml")
@store_options
def withdrawn(store: Path, archive: Path | None, withdrawals: Path | None) -> None:
    """Say what each withdrawal takes out of the store, and which stored comparisons cited it."""
    from tracker import jobs
    from tracker.cli import summary

    where = jobs.Where.of(store, archive, withdrawals)
    click.echo(summary.withdrawn(jobs.withdrawn(where), where.withdrawals))
