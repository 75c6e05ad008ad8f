"""`tracker fetch`: bring the results of a GitHub run into a folder that `tracker ingest` reads."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from store.fetch import Fetched
    from store.github import Artifact
    from store.runs import RunLink

EPILOG = """\b
Examples:
  tracker fetch https://github.com/SemiAnalysisAI/InferenceX/actions/runs/27489075807
  tracker fetch 27489075807/2 --repo SemiAnalysisAI/InferenceX --into sweep   the second attempt alone
  tracker fetch 27489075807 --into sweep && tracker ingest sweep
"""

SHOWN = 5
"""Names in one line of the summary."""

_ID = re.compile(r"(?P<id>[1-9]\d{0,17})(?:/(?P<attempt>[1-9]\d{0,5}))?")


@click.command(epilog=EPILOG)
@click.argument("run")
@click.option("--repo", envvar="GITHUB_REPOSITORY", show_envvar=True, metavar="OWNER/NAME", help="Where the run ran.")
@click.option("--into", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="[default: ./ID]")
@click.option("--api", envvar="GITHUB_API_URL", default="https://api.github.com", show_envvar=True)
def command(run: str, repo: str | None, into: Path | None, api: str) -> None:
    """Bring the results of a GitHub run into a folder that `tracker ingest` reads.

    RUN is an id, id/attempt or the address of a run. The token is read from GITHUB_TOKEN, or asked for by
    the app of GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY. The folder appears when
    everything has arrived; a second fetch brings only what is new. Logs stay where they are.
    """
    from store.credentials import credentials
    from store.fetch import fetch
    from store.github import Access, Reader
    from tracker.cli import progress

    link = _link(run, repo)
    api = api.rstrip("/")
    access = Access(link.repository, credentials(os.environ, link.repository, api), api)
    folder = into or Path(str(link.id))
    with Reader(access) as reader, progress.watching("artifacts fetched") as watch:
        found = fetch(link, reader, folder, watch)
    click.echo("\n".join(_told(found, folder)))


def _link(text: str, repository: str | None) -> RunLink:
    """The run that the words mean; an address names its repository, and --repo is for a bare id."""
    from store.runs import RunLink, parse_url

    address = parse_url(text)
    if address is not None:
        return address
    found = _ID.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is no id, id/attempt or address of a run", param_hint="RUN")
    if not repository:
        raise click.UsageError("an id alone does not say where the run ran: give --repo OWNER/NAME, or its address")
    return RunLink(repository, int(found["id"]), int(found["attempt"]) if found["attempt"] else None)


def _told(found: Fetched, folder: Path) -> Iterator[str]:
    """Counts first; what is lost or unreadable by name."""
    yield f"run {found.run.key} of {found.run.repository}: {_count(len(found.new))} fetched into {folder}"
    if found.kept:
        yield f"there already: {len(found.kept)}"
    if found.expired:
        yield f"expired, lost on GitHub: {len(found.expired)} ({_names(found.expired)})"
    for artifact, reason in found.unreadable:
        yield f"unreadable: {artifact.name} ({artifact.id}): {reason}"
    if found.skipped:
        yield f"no results, left on GitHub: {len(found.skipped)} ({_names(found.skipped)})"
    if found.run.status != "completed":
        yield f"the run is {found.run.status}: fetch again later for what it uploads until then"
    yield f"next: tracker ingest {folder}"


def _count(number: int) -> str:
    return f"{number} artifact" + "s" * (number != 1)


def _names(artifacts: Iterable[Artifact]) -> str:
    named = [f"{one.name}, on {one.expires_on}" if one.expired and one.expires_on else one.name for one in artifacts]
    rest = [f"and {len(named) - SHOWN} more"] if len(named) > SHOWN else []
    return "; ".join(named[:SHOWN] + rest)
