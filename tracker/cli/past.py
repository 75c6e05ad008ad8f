"""Options and output that the commands about history share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tracker.cli.options import crew, events_option, known_events, language_option, store_options

if TYPE_CHECKING:
    from reports.blocks import Block
    from tracker.annals import Asked
    from tracker.jobs import Where
    from tracker.workers import Crew

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
    """Time, metrics, images from elsewhere, form of the output, language and store."""
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
        events_option,
        language_option,
        store_options,
    )
    for option in reversed(options):
        command = option(command)
    return command


def question(filters: Sequence[str], given: Mapping[str, Any], anchor: str | None = None) -> tuple[Asked, Where]:
    """What the options ask, and of which store."""
    from tracker.annals import Asked
    from tracker.jobs import Where

    events = known_events(given["events"])
    span = given["since"], given["until"]
    asked = Asked(tuple(filters), *span, anchor, given["metrics"], given["config_history"], events)
    return asked, Where.of(given["store"], given["archive"], given["withdrawals"])


@contextmanager
def shared(given: Mapping[str, Any]) -> Iterator[Crew]:
    """Who does the work, with a line on a terminal that counts its portions."""
    from tracker.cli import progress

    with progress.watching("portions of curves told") as watch:
        yield crew(given["cluster"], watch)


def put(as_json: Callable[[], str], blocks: Sequence[Block], given: Mapping[str, Any]) -> None:
    """Print the answer, or write it to a file."""
    form, lang, out = given["form"], given["lang"], given["out"]
    from reports import blocks as layout
    from tracker.cli.output import write

    text = as_json() + "\n" if form == "json" else layout.render(blocks, form, lang)
    if out is not None:
        write(text, out, "--out")
    else:
        click.echo(text, nl=False)
