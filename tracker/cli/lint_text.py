"""`tracker lint-text`: the mechanical checks of a bilingual text."""

from __future__ import annotations

from typing import IO

import click

EPILOG = """\b
Examples:
  tracker lint-text body.md
  git log -1 --format=%s | tracker lint-text --lang both -
"""


@click.command("lint-text", epilog=EPILOG)
@click.argument("text", type=click.File(encoding="utf-8"), metavar="FILE|-")
@click.option("--lang", type=click.Choice(["en", "zh", "both"]), default="both", show_default=True)
def command(text: IO[str], lang: str) -> None:
    """Check numbers, links, identifiers, punctuation and terms of a text, and exit with 1 when something is wrong."""
    from reports import parity
    from store import limits

    flaws = parity.lint_text(limits.read_text(text, limits.TEXT_CHARACTERS, text.name), lang)
    for flaw in flaws:
        click.echo(f"{text.name}:{flaw.line}: {flaw.code}: {flaw.detail}")
    if flaws:
        raise click.exceptions.Exit(1)
