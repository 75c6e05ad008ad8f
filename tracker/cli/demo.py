"""`tracker demo`: weeks of simulated sweeps as artifact files, landed by the public path, and the last one judged."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from tracker.cli.options import language_option

SEED = 1
WEEKS = 5
END = datetime(2026, 8, 10, 2, 0, tzinfo=UTC)
"""The story is one and the same for everybody: its screen stands in the README."""

EPILOG = """\b
Example:
  tracker demo --into /tmp/demo
"""


@click.command(epilog=EPILOG)
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Folder for artifacts, archive and store.",
)
@language_option
def command(into: Path, lang: str) -> None:
    """Judge the last image bump of a simulated history.

    Writes weeks of sweeps as real artifact files, lands them, compares the last run and shows the result. The folder
    stays, to try the other commands on.
    """
    from tracker import jobs
    from tracker.cli import output, progress, summary
    from tracker.simulate import write_story

    artifacts, where = into / "artifacts", jobs.Where.of(into / "tracker.duckdb", None)
    if not artifacts.exists():
        click.echo(f"demo: writing {WEEKS} weeks of simulated sweeps to {artifacts}", err=True)
        write_story(artifacts, SEED, WEEKS, END)
    click.echo(f"demo: tracker ingest {artifacts} --store {where.store}", err=True)
    with progress.watching("rows read") as watch:
        found = jobs.ingest(sorted(artifacts.iterdir()), where, watch=watch)
    click.echo(summary.ingested(found, dry_run=False), err=True)
    click.echo(f"\ndemo: tracker compare --store {where.store}\n", err=True)
    output.show(jobs.compare(jobs.Question(), where), "table", lang, None)
    click.echo(f"\ndemo: try  tracker compare --store {where.store} --format markdown --lang both", err=True)
