"""`tracker reproducibility`: how well reruns agree, and what a run can show."""

from __future__ import annotations

from pathlib import Path

import click

from tracker.cli.options import events_option, known_events, language_option, store_options
from tracker.cli.past import FILTERS, asked_options, put

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
@events_option
@language_option
@store_options
def command(
    filters: tuple[str, ...],
    by: str,
    metrics: tuple[str, ...],
    since: str | None,
    until: str | None,
    config_history: Path | None,
    form: str,
    out: Path | None,
    events: Path | None,
    lang: str,
    store: Path,
    archive: Path | None,
    withdrawals: Path | None,
) -> None:
    """Tell how reruns of the same image and recipe scatter, which days were bad, and the smallest visible change."""
    from reports import annals as words
    from tracker import annals
    from tracker.jobs import Where

    asked = annals.Asked(filters, since, until, None, metrics, config_history, known_events(events))
    found, moved = annals.spreads(asked, Where.of(store, archive, withdrawals), by)
    put(lambda: words.as_json(groups=found, environment=moved), words.reproducibility(found, moved), form, lang, out)
