"""`tracker images`: which image introduced what, across all configs that share it."""

from __future__ import annotations

from typing import Any

import click

from tracker.cli.options import cluster_option
from tracker.cli.past import FILTERS, asked_options, put, question, shared

EPILOG = f"""{FILTERS}
\b
Examples:
  tracker images framework=sglang hardware=mi355x
  tracker images --upstream v0.5.12 hardware=h200 --format markdown    for an issue of the engine
"""


@click.command(epilog=EPILOG)
@click.argument("filters", nargs=-1, metavar="[KEY|FILTER]...")
@click.option("--upstream", metavar="TEXT", help="Only images whose name holds TEXT, as texts for an upstream issue.")
@cluster_option
@asked_options
def command(filters: tuple[str, ...], upstream: str | None, **given: Any) -> None:
    """Tell which image came when and what its curves did, per framework and kind of GPU."""
    from reports import annals as words
    from store.records import Trouble
    from tracker import annals

    asked, where = question(filters, given)
    with shared(given) as crew:
        found = annals.introductions(asked, where, crew)
    if upstream is None:
        put(lambda: words.as_json(images=found), words.images(found), given)
        return
    found = [one for one in found if upstream in (one.after or "")]
    if not found:
        raise Trouble(f"no curve took an image with {upstream!r} in its name: `tracker images` lists them")
    blocks = [block for one in found for block in words.upstream(one)]
    put(lambda: words.as_json(images=found), blocks, given)
