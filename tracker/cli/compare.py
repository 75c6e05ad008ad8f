"""`tracker compare`: judge a sweep against its history."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tracker.cli.options import cluster_option, crew, events_option, known_events, language_option, store_options

EPILOG = """\b
Examples:
  tracker compare                                   the newest run against the one before
  tracker compare run:27489075807 --against last-good
  tracker compare ./artifacts --format markdown --lang both --out summary.md
  tracker compare --fail-on regression              exit code 3 when something got worse, 4 when nothing was judged

\b
Baselines (--against):
  previous            the newest official, comparable runs of each curve with one image and recipe
  last-good           the newest one whose level was not a loss
  run:ID[/ATTEMPT]    image:REFERENCE    date:YYYY-MM-DD    window:30d
"""

FORMATS = ("table", "markdown", "json", "csv", "comment", "summary", "short", "title", "commit", "evidence")
FAILING = ("regression", "suspected", "never")


@click.command(epilog=EPILOG)
@click.argument("candidate", default="latest")
@click.option("--against", default="previous", show_default=True, metavar="BASELINE", help="What to compare with.")
@click.option("--metric", "metrics", multiple=True, metavar="M", help="Judge these metrics only; may be repeated.")
@click.option("--thresholds", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Pass marks of evals.")
@events_option
@click.option("--format", "form", type=click.Choice(FORMATS), help="[default: table on a terminal, json in a pipe]")
@click.option(
    "--fail-on",
    type=click.Choice(FAILING),
    default="never",
    show_default=True,
    help="Exit with 3 if so, with 4 if nothing could be judged.",
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write here instead of to stdout.")
@cluster_option
@language_option
@store_options
def command(
    candidate: str,
    against: str,
    metrics: tuple[str, ...],
    thresholds: Path | None,
    events: Path | None,
    form: str | None,
    fail_on: str,
    out: Path | None,
    cluster: str | None,
    lang: str,
    store: Path,
    archive: Path | str | None,
    withdrawals: Path | None,
) -> None:
    """Judge CANDIDATE against its history.

    CANDIDATE is latest (the newest run of the store), run:ID[/ATTEMPT], image:REFERENCE, or a path, which is compared
    without being stored. The verdict comes first, then what moved, then what could not be judged and why.
    """
    from reports import ending
    from store.thresholds import load
    from tracker import jobs
    from tracker.cli import clock, output

    marks = load(thresholds) if thresholds else None
    question = jobs.Question(candidate, against, metrics, marks, known_events(events))
    answer = jobs.compare(question, jobs.Where.of(store, archive, withdrawals), crew=crew(cluster))
    clock.warn(answer.candidate)
    output.show(answer, form or _default_form(out), lang, out)
    raise click.exceptions.Exit(ending.code(answer, fail_on))


def _default_form(out: Path | None) -> str:
    return "table" if out is None and sys.stdout.isatty() else "json"
