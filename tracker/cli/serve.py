"""`tracker serve`: the pages of a store over HTTP, for reading."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import click

from tracker.cli.options import language_option, store_options

EPILOG = """\b
Examples:
  tracker serve                                    http://127.0.0.1:8765/, Ctrl-C ends it
  tracker serve --store sweeps.duckdb --port 0     any free port, which is printed
  tracker serve --host 0.0.0.0 --name bench.example.org:8765
"""


@click.command(epilog=EPILOG)
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0: any free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on. There is no login.")
@click.option("--name", "names", multiple=True, metavar="HOST[:PORT]", help="Further name that browsers may use.")
@language_option
@store_options
def command(
    port: int,
    host: str,
    names: tuple[str, ...],
    lang: str,
    store: Path,
    archive: Path | str | None,
    withdrawals: Path | None,
) -> None:
    """Serve all runs and weeks of the store as pages: /, /run/ID[/ATTEMPT], /week/2026-W32.

    Pages are of a copy of the database that is renewed when the database changes: a landing waits for no reader, and
    no reader for a landing. Nothing is written: what `tracker weekly` has not judged yet is counted in its week.
    """
    from store.records import Trouble
    from tracker import jobs
    from tracker.site import Site
    from tracker.snapshot import Snapshots
    from tracker.web import Server

    where = replace(jobs.Where.of(store, archive), withdrawals=withdrawals)
    if not where.store.exists():
        raise Trouble(f"there is no store at {where.store}: land a sweep first with `tracker ingest PATH`")
    with tempfile.TemporaryDirectory(prefix="tracker-") as folder:
        site = Site(Snapshots(where, Path(folder)), lang, lambda told: click.echo(f"tracker: {told}", err=True))
        with Server(host, port, site, names) as server:
            click.echo(server.address)
            server.serve_forever(poll_interval=0.1)
