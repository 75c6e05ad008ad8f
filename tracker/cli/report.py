"""`tracker report`: a comparison as a page that opens anywhere, and as pictures."""

from __future__ import annotations

from pathlib import Path

import click

from tracker.cli.options import language_option, store_options

EPILOG = """\b
Examples:
  tracker report --html report.html                     the newest run against the one before
  tracker report run:27489075807 --against last-good --html report.html --lang zh
"""


@click.command(epilog=EPILOG)
@click.argument("candidate", default="latest")
@click.option("--against", default="previous", show_default=True, metavar="BASELINE", help="What to compare with.")
@click.option("--thresholds", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Pass marks of evals.")
@click.option(
    "--html", type=click.Path(dir_okay=False, path_type=Path), required=True, help="Write the page to this file."
)
@language_option
@store_options
def command(
    candidate: str,
    against: str,
    thresholds: Path | None,
    html: Path,
    lang: str,
    store: Path,
    archive: Path | None,
) -> None:
    """Judge CANDIDATE against its history and write it as a page.

    CANDIDATE and BASELINE are what `tracker compare` takes. The page is one file that loads nothing from anywhere:
    the verdict, filters, charts, a table of every row with its runs, and the reason of everything that was set apart,
    in all languages with a switch; --lang is the one it opens in.
    """
    from reports import page
    from store.thresholds import load
    from tracker import jobs
    from tracker.cli import output

    marks = load(thresholds) if thresholds else None
    answer = jobs.compare(jobs.Question(candidate, against, (), marks), jobs.Where.of(store, archive))
    output.write(page.build(answer, lang), html, "--html")
    click.echo(f"tracker: wrote {html}", err=True)
