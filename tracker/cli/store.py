"""`tracker store`: look at, rebuild or export the store."""

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
def info(store: Path, archive: Path | None) -> None:
    """Say what the store holds."""
    from tracker import jobs
    from tracker.cli import summary

    click.echo(summary.info(jobs.store_info(jobs.Where.of(store, archive))))


@command.command(epilog="\b\nExample:\n  tracker store rebuild")
@store_options
def rebuild(store: Path, archive: Path | None) -> None:
    """Make the database again from the archive, and put it in the place of the old one."""
    from tracker import jobs
    from tracker.cli import summary

    loaded = jobs.rebuild(jobs.Where.of(store, archive))
    click.echo(summary.rebuilt(loaded))
    if loaded.broken:
        raise click.exceptions.Exit(1)


@command.command(epilog="\b\nExample:\n  tracker store export --into ./tidy --format csv")
@click.option("--into", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder to write to.")
@click.option("--format", "form", type=click.Choice(FORMS), default="parquet", show_default=True)
@store_options
def export(into: Path, form: str, store: Path, archive: Path | None) -> None:
    """Write the points and the scores that count as tidy files."""
    from tracker import jobs

    for path in jobs.export(jobs.Where.of(store, archive), into, form):
        click.echo(path)
