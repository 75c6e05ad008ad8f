"""`tracker reproducibility`: how well reruns agree, and what a run can show."""

from __future__ import annotations

from typing import Any

import click

from tracker.cli.past import FILTERS, asked_options, put, question

EPILOG = f"""{FILTERS}
\b
Examples:
  tracker reproducibility
  tracker reproducibility --by pool model=dsr1 --metric tput_per_gpu --metric median_tpot
"""


@click.command(epilog=EPILOG)
@click.argument("filters", nargs=-1, metavar="[KEY|FILTER]...")
@click.option(
    "--by",
    type=click.Choice(["hardware", "pool", "framework", "config"]),
    default="hardware",
    show_default=True,
    help="What curves are gathered by.",
)
@asked_options
def command(filters: tuple[str, ...], by: str, **given: Any) -> None:
    """Tell how reruns of the same image and recipe scatter, which days were bad, and the smallest visible change."""
    from reports import annals as words
    from tracker import annals

    asked, where = question(filters, given)
    found, moved = annals.spreads(asked, where, by)
    put(lambda: words.as_json(groups=found, environment=moved), words.reproducibility(found, moved), given)
