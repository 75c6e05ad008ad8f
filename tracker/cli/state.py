"""`tracker show`: where the curves of a config stand."""

from __future__ import annotations

from typing import Any

import click

from tracker.cli.options import cluster_option
from tracker.cli.past import FILTERS, asked_options, put, question, shared

EPILOG = f"""{FILTERS}
\b
Example:
  tracker show dsr1-fp8-h200-sglang
"""


@click.command(epilog=EPILOG)
@click.argument("filters", nargs=-1, required=True, metavar="KEY [FILTER]...")
@cluster_option
@asked_options
def command(filters: tuple[str, ...], **given: Any) -> None:
    """Tell the state of one config: newest run, image, level beside the last good one, what a run can show."""
    from reports import annals as words
    from tracker import annals

    asked, where = question(filters, given)
    with shared(given) as crew:
        told = annals.history(asked, where, crew)
    put(lambda: words.as_json(curves=told), words.state(told), given)
