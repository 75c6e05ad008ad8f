"""`tracker weekly`: what moved in a week, what stays broken, what is stale."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracker.cli.options import language_option, store_options

if TYPE_CHECKING:
    from reports.week import WeekFacts
    from tracker.jobs import Where

EPILOG = """\b
Examples:
  tracker weekly                                    the last whole week before the newest run
  tracker weekly --week 2026-W32 --lang both --out reports/weekly
  tracker weekly --replay                           all weeks of the store, a line each

\b
With --out, four files are written: weekly-2026-W32.md (a copy for git), .txt and .html (the parts of a mail), .json.
The same store, week and version write the same bytes.
"""

FORMATS = ("markdown", "text", "html", "title", "json")
FILES = {"md": "weekly", "txt": "weekly_text", "html": "weekly_html"}


@click.command(epilog=EPILOG)
@click.option("--week", metavar="YYYY-Www", help="ISO week, UTC.  [default: the last whole one]")
@click.option("--now", metavar="TIME", help="Take the last whole week before this moment (ISO 8601, UTC).")
@click.option("--replay", is_flag=True, help="One line for each week of the store instead of a report.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="markdown", show_default=True)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Write the four files to this folder.")
@language_option
@store_options
def command(
    week: str | None,
    now: str | None,
    replay: bool,
    form: str,
    out: Path | None,
    lang: str,
    store: Path,
    archive: Path | None,
    withdrawals: Path | None,
) -> None:
    """Tell a week: counts, regressions, improvements, evals, stale images, what was missing or not judged.

    Every official run that has not been judged yet is judged first, once and against its own past.
    """
    from reports import week as weeks
    from tracker import jobs, weekly

    if week and now:
        raise click.UsageError("--week and --now both name a week: give one of them")
    where = jobs.Where.of(store, archive, withdrawals)
    _review(where)
    if replay:
        _replay(where)
        return
    told = weeks.select(weekly.weekly(where, week, _moment(now)))
    click.echo(f"tracker: week {told.name}, {told.start:%Y-%m-%d} to {told.last_day:%Y-%m-%d}", err=True)
    if out is None:
        click.echo(_text(told, form, lang), nl=False)
        return
    for path in _written(told, lang, out):
        click.echo(path)


def _review(where: Where) -> None:
    from store.records import Trouble
    from tracker import review
    from tracker.cli import progress

    if not where.store.exists():
        raise Trouble(f"there is no store at {where.store}: land a sweep first with `tracker ingest PATH`")
    with progress.watching("runs judged") as watch:
        review.review(where, watch=watch)


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as flaw:
        raise click.BadParameter(f"{text!r} is no time: write it as 2026-08-10T06:00Z", param_hint="--now") from flaw
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _text(told: WeekFacts, form: str, lang: str) -> str:
    from reports import render, weekform

    if form == "json":
        return weekform.dumps(told)
    names = {"markdown": "weekly", "text": "weekly_text", "html": "weekly_html", "title": "weekly_title"}
    return render.render(told, names[form], lang)


def _written(told: WeekFacts, lang: str, out: Path) -> list[Path]:
    from reports import render, weekform
    from store.records import Trouble

    texts = {ending: render.render(told, document, lang) for ending, document in FILES.items()}
    texts["json"] = weekform.dumps(told)
    paths = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for ending, text in texts.items():
            paths.append(out / f"weekly-{told.name}.{ending}")
            paths[-1].write_text(text, encoding="utf-8")
    except OSError as flaw:
        raise Trouble(f"{out} cannot be written to: {flaw.strerror or flaw}; name another folder with --out") from flaw
    return paths


def _replay(where: Where) -> None:
    """A line a week: runs, and the rows of each list, accuracy and performance together."""
    from reports import week as weeks
    from tracker import weekly

    click.echo("week       runs  new open ended suspected better environment missing")
    for week in weekly.every_week(where):
        told = weeks.select(week)
        cells = (
            told.judged,
            told.new.total + told.evals_new.total,
            told.open.total + told.evals_open.total,
            told.ended.total + told.evals_ended.total,
            told.suspected.total + told.evals_suspected.total,
            told.better.total + told.evals_better.total,
            told.environment.total,
            told.lost,
        )
        widths = (5, 4, 4, 5, 9, 6, 11, 7)
        line = " ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        click.echo(f"{told.name:<9} {line}")
