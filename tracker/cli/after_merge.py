"""`tracker after-merge`: what ran is fetched, landed, judged, kept, written down and told, by one command."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracker.cli.comment import send, sending_options
from tracker.cli.compare import FAILING
from tracker.cli.options import events_option, known_events, language_option, store_options

if TYPE_CHECKING:
    from store.trigger import Trigger
    from tracker.after_merge import Reported

EPILOG = """\b
Examples:
  tracker after-merge --run 27489075807 --repo OWNER/NAME           print what would be sent
  tracker after-merge --send                                        in a workflow: the event names the run
  tracker after-merge --keep errands.json                           in a fork's workflow: another job sends
  tracker after-merge --run 27489075807 --changelog perf-changelog.yaml --write

\b
Whatever stops it, run the same command again: it goes on. The token is read from GITHUB_TOKEN, or asked for by the
app of GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY. With --fail-on it exits with 3 if so, with 4 if nothing was judged.
"""

FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(epilog=EPILOG)
@click.option("--run", metavar="URL|ID", help="Run to look at.  [default: the one that the event names]")
@click.option("--event", type=FILE, envvar="GITHUB_EVENT_PATH", show_envvar=True, help="Event file of the workflow.")
@click.option("--work", type=FOLDER, default=Path("tracker-work"), show_default=True, help="Fetched runs and reports.")
@click.option("--against", default="previous", show_default=True, metavar="BASELINE")
@click.option("--fail-on", type=click.Choice(FAILING), default="never", show_default=True)
@click.option("--summary", type=FILE, envvar="GITHUB_STEP_SUMMARY", show_envvar=True, help="Put the report there too.")
@click.option("--report", type=FILE, help="Write the report in Markdown here.")
@click.option("--keep", type=FILE, help="Write the errands here, for `tracker deliver`.")
@click.option("--changelog", type=FILE, help="perf-changelog.yaml of a branch, for --write.")
@click.option("--write", is_flag=True, help="Append the proposed entries to --changelog; refused on the main branch.")
@sending_options
@events_option
@language_option
@store_options
def command(run: str | None, event: Path | None, keep: Path | None, **asked: Any) -> None:
    """Judge a run of GitHub: from its artifacts to the findings, the comment, the check run and the job summary.

    Nothing on GitHub is changed without --send.
    """
    from reports import ending, outbox
    from reports.channels import files
    from tracker import after_merge, jobs
    from tracker.cli import progress
    from tracker.cli.fetch import reader_of

    trigger = _trigger(run, event, asked["repo"])
    question = jobs.Question(against=asked["against"], events=known_events(asked["events"]))
    wanted = after_merge.Asked(
        trigger.link, asked["work"], trigger.pull, question, asked["lang"], asked["fail_on"], _write_to(asked)
    )
    where = jobs.Where.of(asked["store"], asked["archive"], asked["withdrawals"])
    with reader_of(trigger.link.repository, asked["api"]) as hub, progress.watching("artifacts fetched") as watch:
        found = after_merge.after_merge(wanted, hub, where, watch)
    click.echo("\n".join(_told(found)))
    text = (found.folder / "summary.md").read_text("utf-8")
    if asked["summary"] is not None:
        files.put_block(asked["summary"], f"run-{trigger.link.id}", text)
    if asked["report"] is not None:
        files.put(asked["report"], text)
    if keep is not None and not asked["send"]:
        outbox.write(found.errands, keep)
    send(found.errands, keep, **{**asked, "repo": trigger.link.repository})
    raise click.exceptions.Exit(ending.code(found.answer, asked["fail_on"]))


def _trigger(run: str | None, event: Path | None, repository: str | None) -> Trigger:
    from store import trigger
    from tracker.cli.fetch import link_of

    if run is not None:
        return trigger.Trigger(link_of(run, repository, "--run"))
    if event is None:
        raise click.UsageError("name the run with --run, or the event of the workflow with --event")
    environ = {**os.environ, "GITHUB_REPOSITORY": repository or ""}
    return trigger.read(event, environ)


def _write_to(asked: dict[str, Any]) -> Path | None:
    """The changelog to append to, where that was asked for and is no main branch."""
    if not asked["write"]:
        return None
    if asked["changelog"] is None:
        raise click.UsageError("--write needs the file: --changelog perf-changelog.yaml")
    path: Path = asked["changelog"]
    return path


def _told(found: Reported) -> Iterator[str]:
    """What was done, one line a step; the verdict itself follows in the errands and the files."""
    from tracker.cli.fetch import told

    yield from told(found.fetched, found.fetched[0].folder)
    yield f"judged: {found.name}; the report is in {found.folder}"
    if found.entries and found.appended is None:
        yield f"proposed for the changelog: {len(found.entries)}, in {found.folder / 'changelog.yaml'}"
    if found.appended is not None:
        yield f"appended to {found.appended}: {len(found.entries)}"
