"""`tracker history`: images by time, the steps found, what the environment did."""

from __future__ import annotations

from pathlib import Path

import click

from tracker.cli.options import events_option, known_events, language_option, store_options
from tracker.cli.past import FILTERS, asked_options, put

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
@asked_options
@events_option
@language_option
@store_options
def command(
    filters: tuple[str, ...],
    anchor: str | None,
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
    """Tell the history of curves: images, steps, environment, the last good run."""
    from reports import annals as words
    from tracker import annals
    from tracker.jobs import Where

    asked = annals.Asked(filters, since, until, anchor, metrics, config_history, known_events(events))
    told = annals.history(asked, Where.of(store, archive, withdrawals))
    moved = annals.environment(told)
    put(lambda: words.as_json(curves=told, environment=moved), words.history(told, moved), form, lang, out)
