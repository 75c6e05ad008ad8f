"""`tracker evidence`: the rows of a sign-off that a machine can check, each with its proof."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tracker.cli.options import language_option

EPILOG = """\b
Examples:
  tracker evidence --pull-request 2340 --repo OWNER/NAME
  tracker evidence --pull-request 2340 --repo OWNER/NAME --format markdown --lang both --out evidence.md
  tracker evidence --pull-request 2340 --repo OWNER/NAME --fail-on does-not-hold     exit code 3 where a row does not

\b
States: holds, does not hold, flagged (found, for a person to judge), not known (never guessed), not applicable.
The token is read from GITHUB_TOKEN, or asked for by the app of GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY.
"""


@click.command(epilog=EPILOG)
@click.option("--pull-request", type=click.IntRange(min=1), required=True, metavar="N")
@click.option("--repo", envvar="GITHUB_REPOSITORY", show_envvar=True, required=True, metavar="OWNER/NAME")
@click.option(
    "--work",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("tracker-work"),
    show_default=True,
    help="Where the results of the run are fetched to.",
)
@click.option(
    "--format", "form", type=click.Choice(["table", "markdown", "json"]), help="[default: table; json in a pipe]"
)
@click.option(
    "--fail-on",
    type=click.Choice(["does-not-hold", "flagged", "never"]),
    default="never",
    show_default=True,
    help="Exit with 3 if so, with 4 if no row could be judged.",
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write here instead of to stdout.")
@click.option("--api", envvar="GITHUB_API_URL", default="https://api.github.com", show_envvar=True)
@language_option
def command(
    pull_request: int,
    repo: str,
    work: Path,
    form: str | None,
    fail_on: str,
    out: Path | None,
    api: str,
    lang: str,
) -> None:
    """Tell how a pull request stands by the rows that a code owner signs off, each with its proof.

    GitHub is only read. The sentence of evidence is written where the sweep and its evals hold; every other row is
    told as it is.
    """
    from reports import blocks, checklist
    from tracker import evidence
    from tracker.cli import progress
    from tracker.cli.fetch import reader_of
    from tracker.cli.output import write

    with reader_of(repo, api) as reader, progress.watching("artifacts fetched") as watch:
        found = evidence.evidence(pull_request, reader, work, watch)
    chosen = form or ("table" if out is None and sys.stdout.isatty() else "json")
    if chosen == "json":
        text = checklist.as_json(found) + "\n"
    else:
        text = blocks.render(checklist.blocks(found, chosen), chosen, lang)
    if out is not None:
        write(text, out, "--out")
    else:
        click.echo(text, nl=False)
    raise click.exceptions.Exit(evidence.code(found, fail_on))
