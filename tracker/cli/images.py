"""`tracker images`: which image introduced what, across all configs that share it."""

from __future__ import annotations

from pathlib import Path

import click

from tracker.cli.options import events_option, known_events, language_option, store_options
from tracker.cli.past import FILTERS, asked_options, put

EPILOG = f"""{FILTERS}
\b
Examples:
  tracker images framework=sglang hardware=mi355x
  tracker images --upstream v0.5.12 hardware=h200 --format markdown    for an issue of the engine
"""


@click.command(epilog=EPILOG)
@click.argument("filters", nargs=-1, metavar="[KEY|FILTER]...")
@click.option("--upstream", metavar="TEXT", help="Only images whose name holds TEXT, as texts for an upstream issue.")
@asked_options
@events_option
@language_option
@store_options
def command(
    filters: tuple[str, ...],
    upstream: str | None,
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
    """Tell which image came when and what its curves did, per framework and kind of GPU."""
    from reports import annals as words
    from store.records import Trouble
    from tracker import annals
    from tracker.jobs import Where

    asked = annals.Asked(filters, since, until, None, metrics, config_history, known_events(events))
    found = annals.introductions(asked, Where.of(store, archive, withdrawals))
    if upstream is None:
        put(lambda: words.as_json(images=found), words.images(found), form, lang, out)
        return
    found = [one for one in found if upstream in (one.after or "")]
    if not found:
        raise Trouble(f"no curve took an image with {upstream!r} in its name: `tracker images` lists them")
    blocks = [block for one in found for block in words.upstream(one)]
    put(lambda: words.as_json(images=found), blocks, form, lang, out)
