"""`tracker mail`: the report of a comparison as a mail, printed, kept as files, or sent."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tracker.cli.options import language_option, store_options

if TYPE_CHECKING:
    from reports.picture import Picture
    from store.records import Comparison

Command = TypeVar("Command", bound=Callable[..., Any])

STREAM = "comparison"
"""The list that these mails belong to, by its name in List-Id."""

EPILOG = """\b
Examples:
  tracker mail --to dev@example.org --from bot@example.org                    print what would be sent
  tracker mail --to dev@example.org --from bot@example.org --dry-run ./mails  write it as .eml files
  tracker mail run:30208366514 --to dev@example.org --from bot@example.org --lang both --send
  tracker mail --resend mail.json --send                                      what --keep has left

\b
Where it is handed in:
  TRACKER_SMTP_URL       smtps://user@host:465 (TLS), smtp://user@host:587 (STARTTLS)
  TRACKER_SMTP_PASSWORD  the user's password; never printed
"""


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no moment: write 2026-08-03T06:00:00Z") from None


def mailing(date: str) -> Callable[[Command], Command]:
    """How a mail is told and handed in, and the flag without which nothing is sent; `date` tells the default date."""
    file = click.Path(dir_okay=False, path_type=Path)
    options = (
        click.option("--date", type=_moment, help=f"Date header, ISO with a zone.  [default: {date}]"),
        click.option("--unsubscribe", default="", metavar="URL", help="https or mailto.  [default: to the sender]"),
        click.option("--dry-run", type=click.Path(file_okay=False, path_type=Path), help="Write .eml files here."),
        click.option("--send", is_flag=True, help="Send; without it the mail is printed."),
        click.option("--keep", type=file, help="Write here who has got it, for --resend."),
        click.option("--ca", type=file, help="Certificates to trust in the place of the system's."),
        click.option("--plain", is_flag=True, help="No TLS: for a line that is safe by itself."),
        click.option("--wait", type=click.FloatRange(min=0), default=1_000, show_default=True, help="Seconds at most."),
    )

    def decorated(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


mailing_options = mailing("now")
"""For mails that are of the moment at which they are made."""


@click.command(epilog=EPILOG)
@click.argument("candidate", default="latest")
@click.option("--to", "recipients", multiple=True, metavar="ADDRESS", help="May be repeated.")
@click.option("--from", "sender", metavar="ADDRESS", help="name@host or 'Name <name@host>'.")
@click.option("--against", default="previous", show_default=True, metavar="BASELINE")
@click.option("--charts", is_flag=True, help="Put pictures of what moved into the HTML (extra charts).")
@click.option(
    "--resend",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Send the mails of this file, written by --keep, to whoever has not got them.",
)
@mailing_options
@language_option
@store_options
def command(candidate: str, against: str, resend: Path | None, **asked: Any) -> None:
    """Mail the verdict on CANDIDATE: text and HTML, one mail to all, nothing sent without --send."""
    if resend is not None:
        hand_over(kept(resend), **{**asked, "keep": resend})
        return
    if not asked["recipients"] or not asked["sender"]:
        raise click.UsageError("give --to ADDRESS and --from ADDRESS, or --resend FILE")
    hand_over([compose(candidate, against, **asked)], **asked)


def compose(candidate: str, against: str, **asked: Any) -> Any:
    """The mail of one comparison; a second mail of the same runs in the same words is the same mail."""
    from reports import outbox, render
    from tracker import jobs
    from tracker.cli import output

    where, lang = jobs.Where.of(asked["store"], asked["archive"], asked["withdrawals"]), asked["lang"]
    answer = jobs.compare(jobs.Question(candidate, against), where)
    chosen = output.chosen(answer)
    pictures = _pictures(answer, lang) if asked["charts"] else ()
    runs = " ".join(str(run.key) for side in (answer.candidate, answer.baseline) for run in side)
    return outbox.Mail(
        asked["sender"],
        asked["recipients"],
        render.render(chosen, "title", lang),
        render.render(chosen, "mail_text", lang),
        render.render(chosen, "mail_html", lang, pictures),
        asked["date"] or datetime.now(UTC).replace(microsecond=0),
        STREAM,
        f"{runs} {answer.against} {answer.rules_version} {lang}",
        unsubscribe=asked["unsubscribe"],
        pictures=pictures,
    )


def _pictures(answer: Comparison, lang: str) -> tuple[Picture, ...]:
    from reports import charts

    return charts.for_mail(answer, lang)


def kept(path: Path) -> tuple[Any, ...]:
    """The mails of a file; any other errand is refused."""
    from reports import outbox
    from store.records import Trouble

    errands = outbox.read(path)
    if not all(isinstance(errand, outbox.Mail) for errand in errands):
        raise Trouble(f"{path} holds errands for GitHub: send them with `tracker deliver`")
    return errands


def hand_over(mails: Sequence[Any], **asked: Any) -> None:
    """Print mails, write them as files, or send them; exit with 1 when somebody did not get one."""
    from reports import outbox
    from reports.channels import mail

    if asked["dry_run"] is not None and asked["send"]:
        raise click.UsageError("give --dry-run or --send, not both")
    if asked["dry_run"] is not None:
        for one in mails:
            click.echo(mail.write(one, asked["dry_run"]))
    elif asked["send"]:
        _send(mails, asked)
    else:
        click.echo(outbox.preview(mails), nl=False)


def _send(mails: Sequence[Any], asked: dict[str, Any]) -> None:
    """Deliver one after the other; after each, the file of `--keep` says who has got which."""
    from reports import outbox
    from reports.channels import smtp
    from store.patience import Patience

    server, patience, keep = _server(asked), Patience(seconds=asked["wait"], sleep=_pause), asked["keep"]
    outcomes, left = [], list(mails)
    for number, one in enumerate(mails):
        outcome = smtp.deliver(one, server, patience)
        outcomes.append(outcome)
        left[number] = outcome.left
        click.echo(str(outcome))
        if keep is not None:
            outbox.write(left, keep)
    if keep is not None and any(outcome.status is smtp.Status.LATER for outcome in outcomes):
        click.echo(f"kept in {keep}: `tracker mail --resend {keep} --send` tries again")
    if not all(outcome.done for outcome in outcomes):
        raise click.exceptions.Exit(1)


def _pause(seconds: float) -> None:
    click.echo(f"tracker: not taken yet, next try in {seconds:.0f} s", err=True)
    time.sleep(seconds)


def _server(asked: dict[str, Any]) -> Any:
    from reports.channels.smtp import Server
    from store.records import Trouble

    url = os.environ.get("TRACKER_SMTP_URL", "")
    if not url:
        raise Trouble("--send needs a mail server: put smtps://user@host:465 into TRACKER_SMTP_URL")
    password = os.environ.get("TRACKER_SMTP_PASSWORD", "")
    return Server.of(url, password, asked["ca"], plain=asked["plain"])
