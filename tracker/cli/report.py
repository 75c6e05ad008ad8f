"""`tracker report`: a comparison as a page that opens anywhere, and as pictures."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from tracker.cli.options import events_option, known_events, language_option, store_options

if TYPE_CHECKING:
    from store.records import Comparison
    from tracker.jobs import Where

EPILOG = """\b
Examples:
  tracker report --html report.html                     the newest run against the one before
  tracker report run:27489075807 --against last-good --html report.html --lang zh
  tracker report --week 2026-W32 --html week.html
  tracker report --charts ./charts --lang both          PNG files with their alternative texts
"""


@click.command(epilog=EPILOG)
@click.argument("candidate", default="latest")
@click.option("--against", default="previous", show_default=True, metavar="BASELINE", help="What to compare with.")
@click.option("--thresholds", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Pass marks of evals.")
@click.option("--week", metavar="YYYY-Www", help="A week (ISO, UTC) instead of a comparison.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write the page to this file.")
@click.option("--charts", type=click.Path(file_okay=False, path_type=Path), help="Write pictures into this folder.")
@events_option
@language_option
@store_options
def command(
    candidate: str,
    against: str,
    thresholds: Path | None,
    week: str | None,
    html: Path | None,
    charts: Path | None,
    events: Path | None,
    lang: str,
    store: Path,
    archive: Path | str | None,
    withdrawals: Path | None,
) -> None:
    """Judge CANDIDATE against its history and write it as a page, as pictures, or both.

    CANDIDATE and BASELINE are what `tracker compare` takes. The page is one file that loads nothing from anywhere:
    the verdict, filters, charts, a table of every row with its runs, and the reason of everything that was set apart,
    in all languages with a switch; --lang is the one it opens in. With --week it tells what `tracker weekly` tells.

    The pictures (extra charts) are of what moved or could not be decided: small PNG files for a mail, beside each its
    alternative text and its Vega-Lite specification.
    """
    if html is None and charts is None:
        raise click.UsageError("nothing to write: give --html FILE, --charts FOLDER, or both")
    from tracker import jobs

    where = jobs.Where.of(store, archive, withdrawals)
    if week is not None:
        _refuse_beside_week(click.get_current_context())
        _tell_week(week, html, where, lang)
    else:
        _compare(Asked(candidate, against, thresholds, events), where, html, charts, lang)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a page of a comparison is about."""

    candidate: str
    against: str
    thresholds: Path | None
    events: Path | None


def _compare(asked: Asked, where: Where, html: Path | None, charts: Path | None, lang: str) -> None:
    from store.thresholds import load
    from tracker import jobs
    from tracker.cli import output, progress

    marks = load(asked.thresholds) if asked.thresholds else None
    question = jobs.Question(asked.candidate, asked.against, (), marks, known_events(asked.events))
    with progress.waiting("judging"):
        answer = jobs.compare(question, where)
    if html is not None:
        from reports import page

        output.write(page.build(answer, lang), html, "--html")
        click.echo(f"tracker: wrote {html}", err=True)
    if charts is not None:
        number = _draw(answer, charts, lang)
        click.echo(f"tracker: wrote {number} pictures to {charts}", err=True)


def _tell_week(name: str, html: Path | None, where: Where, lang: str) -> None:
    from reports import week, weekpage
    from tracker import weekly
    from tracker.cli import output, progress
    from tracker.cli.weekly import judge_all

    if html is None:
        raise click.UsageError("a week is told as a page only: give --html FILE")
    weekly.span(name)
    judge_all(where)
    with progress.waiting("telling the week"):
        text = weekpage.build(week.select(weekly.weekly(where, name)), lang)
    output.write(text, html, "--html")
    click.echo(f"tracker: wrote {html}", err=True)


def _refuse_beside_week(context: click.Context) -> None:
    """What tells a comparison has no part in the page of a week."""
    for name, said in (("candidate", "CANDIDATE"), ("against", "--against"), ("thresholds", "--thresholds"),
                       ("charts", "--charts")):  # fmt: skip
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--week tells a week: leave {said} away")


def _draw(answer: Comparison, folder: Path, lang: str) -> int:
    """Write the pictures of each language that was asked for; returns how many."""
    from reports.charts import drawings, languages
    from tracker.cli import output, progress

    drawn = [one for code in languages(lang) for one in drawings(answer, code)]
    output.make(folder, "--charts")
    with progress.watching("pictures drawn") as watch:
        for one in drawn:
            stem = f"{one.name}.{one.lang}"
            output.write(one.picture().png, folder / f"{stem}.png", "--charts")
            output.write(f"{one.alt}\n", folder / f"{stem}.txt", "--charts")
            output.write(f"{json.dumps(one.spec, ensure_ascii=False)}\n", folder / f"{stem}.vl.json", "--charts")
            watch(1)
    return len(drawn)
