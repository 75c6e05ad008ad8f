"""`tracker ingest`: land the artifacts of sweeps in the store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracker.cli.options import store_options

if TYPE_CHECKING:
    from store.records import Run

EPILOG = """\b
Examples:
  tracker ingest ./artifacts                       a folder of downloaded artifacts
  tracker ingest results_bmk.zip --run run.json    with the GitHub run object
  tracker ingest --run 27489075807 --repo SemiAnalysisAI/InferenceX   fetch it from GitHub and land it
  tracker ingest agg_bmk.json --run-id 27489075807 --attempt 2 \\
      --started-at 2026-06-14T06:43:25Z --event push --head-branch main \\
      --workflow .github/workflows/run-sweep.yml
"""

RUN_FIELDS = {
    "run_id": "id",
    "attempt": "run_attempt",
    "started_at": "run_started_at",
    "head_sha": "head_sha",
    "head_branch": "head_branch",
    "event": "event",
    "workflow": "path",
    "pull_request": "pull_request",
}
"""Our options by the field of GitHub's run object that each one stands for."""


@click.command(epilog=EPILOG)
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path), metavar="[PATH...]")
@click.option("--run", metavar="FILE|URL|ID[/ATTEMPT]", help="File of a GitHub run object; or a run to fetch.")
@click.option("--repo", envvar="GITHUB_REPOSITORY", show_envvar=True, metavar="OWNER/NAME", help="Where it ran.")
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder of what is fetched.  [default: ./ID]",
)
@click.option("--api", envvar="GITHUB_API_URL", default="https://api.github.com", show_envvar=True)
@click.option("--run-id", type=int, help="Run that the rows belong to, when no file says so.")
@click.option("--attempt", type=click.IntRange(min=1), help="Attempt of the run.  [default: 1]")
@click.option(
    "--started-at", type=click.DateTime(["%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d"]), help="Start of the attempt (UTC)."
)
@click.option("--head-sha", help="Commit that was measured.")
@click.option("--head-branch", help="Branch of the run.")
@click.option("--event", help="GitHub event: push, schedule, pull_request, ...")
@click.option("--workflow", help="Path of the workflow file.")
@click.option("--pull-request", type=int, help="Number of the pull request.")
@click.option("--official", is_flag=True, help="These runs may be baselines whatever workflow measured them.")
@click.option("--strict", is_flag=True, help="Exit with 1 when a row was rejected or a spelling is unknown.")
@click.option("--dry-run", is_flag=True, help="Read and count, land nothing.")
@store_options
def command(
    paths: tuple[Path, ...],
    run: str | None,
    repo: str | None,
    into: Path | None,
    api: str,
    official: bool,
    strict: bool,
    dry_run: bool,
    store: Path,
    archive: Path | str | None,
    withdrawals: Path | None,
    **fields: Any,
) -> None:
    """Land the artifacts of sweeps in the store.

    PATH is a folder as laid by artifact download, a zip, a json of InferenceX (agg_bmk, agg_*, agg_eval_all, eval_*),
    an answer of its public API, the dashboard's CSV, or a run bundle. Landing the same thing twice adds nothing; a row
    that cannot be read is kept and counted. With the id or the address of a run in --run it is fetched first, as
    `tracker fetch` does.
    """
    from store.records import Trouble
    from tracker import jobs
    from tracker.cli import clock, progress, summary

    given = {name: value for name, value in fields.items() if value is not None}
    file = Path(run) if run and Path(run).is_file() else None
    if run and file is None:
        _refuse_mix(paths, given)
        paths = _fetched(run, repo, into, api)
    elif into or not paths:
        raise click.UsageError(_INTO if into else _NOTHING)
    landing = jobs.Landing(_run(file, given), official, dry_run)
    with progress.watching("rows read") as watch:
        found = jobs.ingest(paths, jobs.Where.of(store, archive, withdrawals), landing, watch)
    click.echo(summary.ingested(found, dry_run=dry_run))
    clock.warn([found.newest] if found.newest else [])
    if found.is_nothing:
        raise Trouble(_ALL_REJECTED.format(number=sum(found.rejections.values())))
    if strict and (found.rejections or found.unmapped):
        raise click.exceptions.Exit(1)


_NOTHING = "nothing to land: name a PATH, or a run to fetch with --run ID or --run URL"
_ALL_REJECTED = "nothing could be read: all {number} rows were rejected, for the reasons above"
_INTO = "--into names the folder of a run that is fetched: give it with --run ID or --run URL"


def _refuse_mix(paths: tuple[Path, ...], given: Mapping[str, Any]) -> None:
    """What is said of a run that GitHub describes itself would be a second word on the same thing."""
    if paths:
        raise click.UsageError(
            f"--run with an id or an address fetches all that is landed: leave {paths[0]} out, "
            "or give --run the file of a run object"
        )
    if given:
        option = min(given).replace("_", "-")
        raise click.UsageError(
            f"GitHub says what --{option} says: leave it out, or name an attempt with --run ID/ATTEMPT"
        )


def _fetched(run: str, repo: str | None, into: Path | None, api: str) -> tuple[Path, ...]:
    """Bring a run from GitHub, with the sweep that it published; gives the folders."""
    from tracker.cli.fetch import bring, folders, link_of, told

    if run.lower().endswith(".json"):
        raise click.BadParameter(f"there is no file {run!r}", param_hint="--run")
    found, folder = bring(link_of(run, repo, "--run"), api, into)
    click.echo("\n".join(told(found, folder)))
    return tuple(folders(found, folder))


def _run(file: Path | None, fields: Mapping[str, Any]) -> Run | None:
    """The run that the options describe: the fields of the file, and what is said beside it."""
    from store.runs import parse_run

    given = {RUN_FIELDS[option]: _plain(value) for option, value in fields.items()}
    if file is None and not given:
        return None
    try:
        told = json.loads(file.read_text(encoding="utf-8")) if file else {}
        return parse_run({**told, **given} if isinstance(told, dict) else told)
    except (ValueError, TypeError, RecursionError) as flaw:
        raise click.UsageError(f"{file or 'the options of the run'}: {flaw}") from flaw


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
