"""`tracker history`: images by time, the steps found, what the environment did."""

from __future__ import annotations

from typing import Any

import click

from tracker.cli.options import cluster_option
from tracker.cli.past import FILTERS, asked_options, put, question, shared

EPILOG = f"""{FILTERS}
\b
Examples:
  tracker history dsr1-fp8-h200-sglang
  tracker history hardware=mi355x model=dsr1 'conc>=64' --since 2025-12-01
  tracker history 'dsr1-*' --anchor release:v0.5.9 --format markdown --lang both
"""


@click.command(epilog=EPILOG)
@click.argument("filters", nargs=-1, metavar="[KEY|FILTER]...")
@click.option("--anchor", metavar="TIME", help="Look for slow drift since: a day, 8w, or release:TAG.")
@cluster_option
@asked_options
def command(filters: tuple[str, ...], anchor: str | None, **given: Any) -> None:
    """Tell the history of curves: images, steps, environment, the last good run."""
    from reports import annals as words
    from tracker import annals

    asked, where = question(filters, given, anchor)
    with shared(given) as crew:
        told = annals.history(asked, where, crew)
    moved = annals.environment(told)
    put(lambda: words.as_json(curves=told, environment=moved), words.history(told, moved), given)
