"""`tracker show`: where the curves of a config stand."""

from __future__ import annotations

from pathlib import Path

import click

from tracker.cli.options import events_option, known_events, language_option, store_options
from tracker.cli.past import FILTERS, asked_options, put

EPILOG = f"""{FILTERS}
\b
Example:
  tracker show dsr1-fp8-h200-sglang
"""


@click.command(epilog=EPILOG)
@click.argument("filters", nargs=-1, required=True, metavar="KEY [FILTER]...")
@asked_options
@events_option
@language_option
@store_options
def command(
    filters: tuple[str, ...],
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
    """Tell the state of one config: newest run, image, level beside the last good one, what a run can show."""
    from reports import annals as words
    from tracker import annals
    from tracker.jobs import Where

    asked = annals.Asked(filters, since, until, None, metrics, config_history, known_events(events))
    told = annals.history(asked, Where.of(store, archive, withdrawals))
    put(lambda: words.as_json(curves=told), words.state(told), form, lang, out)
