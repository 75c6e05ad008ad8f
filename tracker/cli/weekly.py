"""`tracker weekly`: what moved in a week, what stays broken, what is stale."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracker.cli import mail
from tracker.cli.options import cluster_option, crew, language_option, store_options

if TYPE_CHECKING:
    from reports.outbox import Mail
    from reports.picture import Picture
    from reports.week import WeekFacts
    from store.life import Week
    from tracker.jobs import Where

STREAM = "weekly"
"""The list that these mails belong to, by its name in List-Id."""

EPILOG = """\b
Examples:
  tracker weekly                                    the last whole week before the newest run
  tracker weekly --week 2026-W32 --lang both --out reports/weekly
  tracker weekly --replay                           all weeks of the store, a line each
  tracker weekly --to dev@example.org --from bot@example.org                    print the mail of the week
  tracker weekly --to dev@example.org --from bot@example.org --lang both --send

\b
With --out, four files are written: weekly-2026-W32.md (a copy for git), .txt and .html (the parts of a mail), .json.
The same store, week and version write the same bytes, and the same mail: one Message-ID per week, language and edition.
A mail is handed in as by `tracker mail` (TRACKER_SMTP_URL, TRACKER_SMTP_PASSWORD), which takes what --keep has left.
"""

MAIL_ONLY = ("send", "charts", "dry-run", "keep", "unsubscribe", "date")
"""Options that say how a mail is handed in."""

FORMATS = ("markdown", "text", "html", "title", "json")
FILES = {"md": "weekly", "txt": "weekly_text", "html": "weekly_html"}


@click.command(epilog=EPILOG)
@click.option("--week", metavar="YYYY-Www", help="ISO week, UTC.  [default: the last whole one]")
@click.option("--now", metavar="TIME", help="Take the last whole week before this moment (ISO 8601, UTC).")
@click.option("--replay", is_flag=True, help="One line for each week of the store instead of a report.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="markdown", show_default=True)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Write the four files to this folder.")
@click.option("--to", "recipients", multiple=True, metavar="ADDRESS", help="Mail the week to; may be repeated.")
@click.option("--from", "sender", metavar="ADDRESS", help="name@host or 'Name <name@host>'.")
@click.option(
    "--edition",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="2 and later: a correction, in the thread of the first.",
)
@click.option("--charts", is_flag=True, help="Histories of the worst new regressions in the HTML (extra charts).")
@mail.mailing("the end of the week")
@cluster_option
@language_option
@store_options
def command(week: str | None, now: str | None, form: str, out: Path | None, **asked: Any) -> None:
    """Tell a week: counts, regressions, improvements, evals, stale images, what was missing or not judged.

    Every official run that has not been judged yet is judged first, once and against its own past. With --to and --from
    the week is a mail: printed, written as a file by --dry-run, and sent only with --send.
    """
    from reports import week as weeks
    from tracker import jobs, weekly
    from tracker.cli import clock, progress

    _check(week, now, out, asked)
    where = jobs.Where.of(asked["store"], asked["archive"], asked["withdrawals"])
    judge_all(where, asked["cluster"])
    if asked["replay"]:
        _replay(where)
        return
    with progress.waiting("telling the week"):
        found = weekly.weekly(where, week, _moment(now))
    told = weeks.select(found, asked["edition"])
    clock.warn_of_week(told.name, found.end)
    click.echo(f"tracker: week {told.name}, {told.start:%Y-%m-%d} to {told.last_day:%Y-%m-%d}", err=True)
    if out is not None:
        for path in _written(told, asked["lang"], out):
            click.echo(path)
    if asked["recipients"]:
        pictures = _pictures(where, found, told, asked["lang"]) if asked["charts"] else ()
        mail.hand_over([compose(found, told, pictures, **asked)], **asked)
    elif out is None:
        click.echo(_text(told, form, asked["lang"]), nl=False)


def _check(week: str | None, now: str | None, out: Path | None, asked: dict[str, Any]) -> None:
    """Refuse what contradicts itself before a run is judged."""
    if week and now:
        raise click.UsageError("--week and --now both name a week: give one of them")
    if bool(asked["recipients"]) != bool(asked["sender"]):
        raise click.UsageError("a mail needs --to ADDRESS and --from ADDRESS: give both")
    handing = [option for option in MAIL_ONLY if asked[option.replace("-", "_")]]
    if not asked["recipients"] and handing:
        raise click.UsageError(f"--{handing[0]} is for a mail: give --to ADDRESS and --from ADDRESS too")
    if asked["replay"] and (asked["recipients"] or out is not None):
        raise click.UsageError("--replay prints a line a week: leave --to and --out away")


def _pictures(where: Where, found: Week, told: WeekFacts, lang: str) -> tuple[Picture, ...]:
    from reports import charts
    from tracker import weekly
    from tracker.cli import progress

    with progress.waiting("drawing"):
        return charts.for_week(told, weekly.histories(where, found), lang)


def compose(found: Week, told: WeekFacts, pictures: tuple[Picture, ...], **asked: Any) -> Mail:
    """The mail of a week. The clock has no part in it: undated, it is of the moment at which the week was over."""
    from reports import outbox, render

    lang = asked["lang"]
    sources = sorted({run.repository for run in found.runs if run.repository})
    return outbox.Mail(
        asked["sender"],
        asked["recipients"],
        render.render(told, "weekly_title", lang),
        render.render(told, "weekly_text", lang),
        render.render(told, "weekly_html", lang, pictures),
        asked["date"] or found.end,
        STREAM,
        " ".join([told.name, lang, *sources]),
        version=told.edition,
        unsubscribe=asked["unsubscribe"],
        pictures=pictures,
    )


def judge_all(where: Where, cluster: str | None = None) -> None:
    """Judge every official run that has not been judged yet."""
    from store.records import Trouble
    from tracker import review
    from tracker.cli import progress

    if not where.store.exists():
        raise Trouble(f"there is no store at {where.store}: land a sweep first with `tracker ingest PATH`")
    with progress.watching("runs judged") as watch:
        review.review(where, watch=watch, crew=crew(cluster))


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
    from store.whole import write_atomically

    texts = {ending: render.render(told, document, lang) for ending, document in FILES.items()}
    texts["json"] = weekform.dumps(told)
    paths = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for ending, text in texts.items():
            paths.append(out / f"weekly-{told.name}.{ending}")
            write_atomically(paths[-1], text.encode())
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
