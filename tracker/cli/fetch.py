"""`tracker fetch`: bring the results of a GitHub run into a folder that `tracker ingest` reads."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from store.fetch import Fetched
    from store.github import Artifact, Reader
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

    RUN is an id, id/attempt or the address of a run. A run on main that published the sweep of its pull request brings
    that sweep too, into DIR-source-ID. The token is read from GITHUB_TOKEN, or asked for by the app of GITHUB_APP_ID
    and GITHUB_APP_PRIVATE_KEY. The folder appears when everything has arrived; a second fetch brings only what is new.
    Logs stay where they are.
    """
    found, folder = bring(link_of(run, repo, "RUN"), api, into)
    click.echo("\n".join(told(found, folder)))
    click.echo(f"next: tracker ingest {shlex.join(map(str, folders(found, folder)))}")


def bring(link: RunLink, api: str, into: Path | None) -> tuple[tuple[Fetched, ...], Path]:
    """Fetch a run, and the sweep that it published; gives also the folder in the words of the caller."""
    from store.fetch import fetch_with_source
    from tracker.cli import progress

    folder = into or Path(str(link.id))
    with reader_of(link.repository, api) as reader, progress.watching("artifacts fetched") as watch:
        return fetch_with_source(link, reader, folder, watch), folder


def reader_of(repository: str, api: str) -> Reader:
    """A connection that reads, with what the environment gives."""
    from store.credentials import credentials
    from store.github import Access, Reader

    api = api.rstrip("/")
    return Reader(Access(repository, credentials(os.environ, repository, api), api))


def link_of(text: str, repository: str | None, hint: str) -> RunLink:
    """The run that the words of an argument or option mean; --repo is for a bare id, an address names its own."""
    from store.runs import RunLink, parse_url

    address = parse_url(text)
    if address is not None:
        return address
    found = _ID.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is no id, id/attempt or address of a run", param_hint=hint)
    if not repository:
        raise click.UsageError("an id alone does not say where the run ran: give --repo OWNER/NAME, or its address")
    return RunLink(repository, int(found["id"]), int(found["attempt"]) if found["attempt"] else None)


def told(fetches: Sequence[Fetched], folder: Path) -> Iterator[str]:
    """What came of a run and of the sweep that it published; each line as it may stand on a terminal."""
    from reports.escapes import plain

    for number, (found, where) in enumerate(zip(fetches, folders(fetches, folder), strict=True)):
        lines = [_published(found.folder)] if number else []
        yield from map(plain, [*lines, *_told(found, where)])


def folders(fetches: Sequence[Fetched], folder: Path) -> list[Path]:
    """Where the fetches lie, in the words of the caller."""
    return [folder, *(folder.with_name(found.folder.name) for found in fetches[1:])]


def _published(folder: Path) -> str:
    reuse = json.loads((folder / "reuse.json").read_bytes())
    pull, login = reuse["source_pr_number"], reuse["comment"]["login"]
    return f"it measured nothing: it published the sweep of pull request {pull}, as asked by {login}"


def _told(found: Fetched, folder: Path) -> Iterator[str]:
    """Counts first; what is lost or unreadable by name."""
    from reports.doubts import sentence
    from reports.language import Language

    english = Language("en")
    yield f"run {found.run.key} of {found.run.repository}: {_count(len(found.new))} fetched into {folder}"
    if found.kept:
        yield f"there already: {len(found.kept)}"
    if found.expired:
        yield f"expired, lost on GitHub: {len(found.expired)} ({_names(found.expired)})"
    for artifact, reason in found.unreadable:
        yield f"unreadable: {artifact.name} ({artifact.id}): {reason}"
    if found.skipped:
        yield f"no results, left on GitHub: {len(found.skipped)} ({_names(found.skipped)})"
    yield from (english.say(sentence(note)) for note in found.notes)
    if found.run.status != "completed":
        yield f"the run is {found.run.status}: fetch again later for what it uploads until then"


def _count(number: int) -> str:
    return f"{number} artifact" + "s" * (number != 1)


def _names(artifacts: Iterable[Artifact]) -> str:
    named = [f"{one.name}, on {one.expires_on}" if one.expired and one.expires_on else one.name for one in artifacts]
    rest = [f"and {len(named) - SHOWN} more"] if len(named) > SHOWN else []
    return "; ".join(named[:SHOWN] + rest)
