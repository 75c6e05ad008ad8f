"""Options and output that the commands about history share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from reports.blocks import Block

Command = TypeVar("Command", bound=Callable[..., Any])

FILTERS = """\b
A FILTER is one of
  KEY            config, curve or series key, with * and ?
  FIELD=VALUE    hardware, model, framework, precision, spec, scenario, config,
                 curve, disagg, multinode; VALUE,VALUE for either; != for not
  FIELD>=NUMBER  conc, isl, osl, gpus; also > <= < = !=
All of them must hold.
"""


def asked_options(command: Command) -> Command:
    """Time, metrics, images from elsewhere, and form of the output."""
    file = click.Path(dir_okay=False, path_type=Path)
    forms = click.Choice(["table", "markdown", "json"])
    options = (
        click.option("--metric", "metrics", multiple=True, default=("tput_per_gpu",), show_default=True),
        click.option("--since", metavar="TIME", help="A day, a moment, or 10d or 6w before the newest run."),
        click.option("--until", metavar="TIME", help="The same; a day is included."),
        click.option(
            "--config-history",
            type=click.Path(dir_okay=False, exists=True, path_type=Path),
            help="CSV of images by config key and date, for rows that name none.",
        ),
        click.option("--format", "form", type=forms, default="table", show_default=True),
        click.option("--out", type=file, help="Write to this file."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def put(as_json: Callable[[], str], blocks: Sequence[Block], form: str, lang: str, out: Path | None) -> None:
    """Print the answer, or write it to a file."""
    from reports import blocks as layout
    from tracker.cli.output import write

    text = as_json() + "\n" if form == "json" else layout.render(blocks, form, lang)
    if out is not None:
        write(text, out, "--out")
    else:
        click.echo(text, nl=False)
