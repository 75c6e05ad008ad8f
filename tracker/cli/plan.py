"""`tracker plan`: the fewest points whose repetition would settle what is open."""

from __future__ import annotations

from pathlib import Path

import click

from tracker.cli.options import events_option, known_events, language_option, store_options

EPILOG = """\b
Examples:
  tracker plan                                      what to run again of the newest run
  tracker plan run:27489075807 --budget 0.1 --format markdown --lang both
  tracker plan ./artifacts --format matrix          for a generator of jobs
"""


@click.command(epilog=EPILOG)
@click.argument("candidate", default="latest")
@click.option("--against", default="previous", show_default=True, metavar="BASELINE", help="As of `tracker compare`.")
@click.option(
    "--budget",
    type=click.FloatRange(0.0, 1.0),
    default=0.05,
    show_default=True,
    metavar="SHARE",
    help="Largest share of the candidate's points to run again.",
)
@click.option("--thresholds", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Pass marks of evals.")
@events_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "markdown", "json", "matrix"]),
    default="table",
    show_default=True,
    help="matrix: JSON with the field names of master configs.",
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write here instead of to stdout.")
@language_option
@store_options
def command(
    candidate: str,
    against: str,
    budget: float,
    thresholds: Path | None,
    events: Path | None,
    form: str,
    out: Path | None,
    lang: str,
    store: Path,
    archive: Path | str | None,
    withdrawals: Path | None,
) -> None:
    """Say which points of CANDIDATE to run again, and what that would settle.

    Losses that one run showed come first, then evals near their threshold, suspected losses, and curves where a loss is
    not excluded. Nothing is started and nothing is written to the store.
    """
    from reports import blocks, reruns
    from store.thresholds import load
    from tracker import jobs, rerun
    from tracker.cli.output import write

    marks = load(thresholds) if thresholds else None
    question = jobs.Question(candidate, against, (), marks, known_events(events))
    plan = rerun.planned(question, jobs.Where.of(store, archive, withdrawals), budget)
    programs = {"json": reruns.as_json, "matrix": reruns.as_matrix}
    text = programs[form](plan) + "\n" if form in programs else blocks.render(reruns.blocks(plan), form, lang)
    if out is not None:
        write(text, out, "--out")
    else:
        click.echo(text, nl=False)
