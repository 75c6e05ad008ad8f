"""`tracker comment`: the pull-request comment of a comparison, printed, kept as an errand, or sent."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from tracker.cli.options import events_option, known_events, language_option, store_options

Command = TypeVar("Command", bound=Callable[..., Any])

EPILOG = """\b
Examples:
  tracker comment run:30208366514 --pull-request 2340                     print what would be sent
  tracker comment --pull-request 2340 --keep errands.json                 keep it for a job that may write
  tracker comment --pull-request 2340 --repo OWNER/NAME --send            send it (token in GITHUB_TOKEN)
"""


def sending_options(command: Command) -> Command:
    """Where errands go, and the flag without which nothing is sent."""
    options = (
        click.option("--repo", envvar="GITHUB_REPOSITORY", show_envvar=True, metavar="OWNER/NAME"),
        click.option(
            "--author", help="Login that the token writes as.  [default: the app's own, else github-actions[bot]]"
        ),
        click.option("--api", envvar="GITHUB_API_URL", default="https://api.github.com", show_envvar=True),
        click.option("--send", is_flag=True, help="Send; without it the errands are printed."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command(epilog=EPILOG)
@click.argument("candidate", default="latest")
@click.option("--pull-request", type=click.IntRange(min=1), required=True)
@click.option("--against", default="previous", show_default=True, metavar="BASELINE")
@click.option("--keep", type=click.Path(dir_okay=False, path_type=Path), help="Write what was not sent here.")
@sending_options
@events_option
@language_option
@store_options
def command(candidate: str, pull_request: int, against: str, keep: Path | None, **asked: Any) -> None:
    """Put the verdict on CANDIDATE into one comment of a pull request, edited in place."""
    from reports import outbox, render
    from tracker import jobs
    from tracker.cli import output

    where = jobs.Where.of(asked["store"], asked["archive"], asked["withdrawals"])
    question = jobs.Question(candidate, against, events=known_events(asked["events"]))
    chosen = output.chosen(jobs.compare(question, where))
    body, notice = render.render(chosen, "comment", asked["lang"]), render.render(chosen, "short", "both")
    errands = [outbox.Comment.of(pull_request, body, notice)]
    if keep is not None and not asked["send"]:
        outbox.write(errands, keep)
    send(errands, keep, **asked)


def send(errands: Any, keep: Path | None, **asked: Any) -> None:
    """Send errands, or print them when nobody said `--send`; exit with 1 when one was not done."""
    from reports import outbox
    from reports.channels import github

    if not asked["send"]:
        click.echo(outbox.preview(errands), nl=False)
        return
    limits = github.Limits(asked.get("head"), frozenset(asked.get("labels", ())))
    outcomes = github.deliver(errands, _connection(asked), limits=limits, keep=keep)
    click.echo(github.tell(outcomes), nl=False)
    if not all(outcome.done for outcome in outcomes):
        raise click.exceptions.Exit(1)


def _connection(asked: dict[str, Any]) -> Any:
    from reports.channels.github import ACTIONS, Connection
    from store.credentials import WRITING, credentials
    from store.github import Access, Reader

    repository, api = asked["repo"], asked["api"].rstrip("/")
    if not repository:
        raise click.UsageError("--send needs --repo OWNER/NAME")
    with Reader(Access(repository, credentials(os.environ, repository, api, WRITING), api)) as reader:
        token, login = reader.identity()
    return Connection(repository, token, asked["author"] or login or ACTIONS, api)
