"""`tracker deliver`: send errands that an earlier job, which might not write, has kept in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tracker.cli.comment import send, sending_options

EPILOG = """\b
Example, in a workflow_run job:
  tracker deliver errands.json --head "$HEAD_SHA" --repo "$GITHUB_REPOSITORY" --send
"""


@click.command(epilog=EPILOG)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--head", required=True, help="Commit that the event of this job names; nothing else is touched.")
@click.option("--label", "labels", multiple=True, help="A label that the errands may set; may be repeated.")
@sending_options
def command(file: Path, **asked: Any) -> None:
    """Send the errands of FILE. A stranger's job may have written it: only the head of this event is touched."""
    from reports import outbox

    send(outbox.read(file), file, **asked)
