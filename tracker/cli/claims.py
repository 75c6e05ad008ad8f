"""`tracker claims`: numbers that a text claims, held against what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import click

from tracker.cli.options import store_options

EPILOG = """\b
Examples:
  tracker claims "8k1k peak ~2085 -> ~6003 tok/s/gpu (~2.9x)" --candidate run:30208366514
  tracker claims --pull-request-body body.md --format json
"""


@click.command(epilog=EPILOG)
@click.argument("text", required=False)
@click.option(
    "--pull-request-body", "body", type=click.File(encoding="utf-8"), help="Read the text from here; - is stdin."
)
@click.option("--candidate", default="latest", show_default=True, help="Sweep that the claims speak about.")
@click.option("--against", default="previous", show_default=True, metavar="BASELINE")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@store_options
def command(
    text: str | None,
    body: IO[str] | None,
    candidate: str,
    against: str,
    form: str,
    store: Path,
    archive: Path | str | None,
    withdrawals: Path | None,
) -> None:
    """Find the numbers that TEXT claims, and answer verified, contradicted or unverifiable.

    Each answer names the points that it rests on, with the measured value beside the claimed one. Exits with 3 when
    a claim is contradicted.
    """
    from store import limits
    from tracker import jobs, texts
    from tracker.claims import Answer
    from tracker.cli import answers

    if (text is None) == (body is None):
        raise click.UsageError("give either TEXT or --pull-request-body FILE")
    if text and len(text) < 256 and "\n" not in text and Path(text).is_file():
        raise click.UsageError(f"{text} is a file: give --pull-request-body {text} to read what it claims")
    question = jobs.Question(candidate, against)
    where = jobs.Where.of(store, archive, withdrawals)
    said = text or (limits.read_text(body, limits.TEXT_CHARACTERS, body.name) if body else "")
    found = texts.check_claims(said, question, where)
    click.echo(answers.FORMS[form](found))
    if any(one.answer is Answer.CONTRADICTED for one in found):
        raise click.exceptions.Exit(3)
