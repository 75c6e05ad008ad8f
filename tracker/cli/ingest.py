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
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="PATH...")
@click.option(
    "--run", "run_file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="GitHub run object."
)
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
    run_file: Path | None,
    official: bool,
    strict: bool,
    dry_run: bool,
    store: Path,
    archive: Path | None,
    withdrawals: Path | None,
    **fields: Any,
) -> None:
    """Land the artifacts of sweeps in the store.

    PATH is a folder as laid by artifact download, a zip, a json of InferenceX (agg_bmk, agg_*, agg_eval_all, eval_*),
    an answer of its public API, the dashboard's CSV, or a run bundle. Landing the same thing twice adds nothing; a row
    that cannot be read is kept and counted.
    """
    from tracker import jobs
    from tracker.cli import progress, summary

    landing = jobs.Landing(_run(run_file, fields), official, dry_run)
    with progress.watching("rows read") as watch:
        found = jobs.ingest(paths, jobs.Where.of(store, archive, withdrawals), landing, watch)
    click.echo(summary.ingested(found, dry_run=dry_run))
    if strict and (found.rejections or found.unmapped):
        raise click.exceptions.Exit(1)


def _run(file: Path | None, fields: Mapping[str, Any]) -> Run | None:
    """The run that the options describe: the fields of the file, and what is said beside it."""
    from store.runs import parse_run

    given = {RUN_FIELDS[option]: _plain(value) for option, value in fields.items() if value is not None}
    if file is None and not given:
        return None
    try:
        told = json.loads(file.read_text(encoding="utf-8")) if file else {}
        return parse_run({**told, **given} if isinstance(told, dict) else told)
    except (ValueError, TypeError) as flaw:
        raise click.UsageError(f"{file or 'the options of the run'}: {flaw}") from flaw


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
