"""`tracker schema`: the JSON Schema of compare's json output."""

from __future__ import annotations

import json

import click

EPILOG = """\b
Example:
  tracker schema > comparison.schema.json
"""


@click.command(epilog=EPILOG)
def command() -> None:
    """Print the JSON Schema (draft 2020-12) that `tracker compare --format json` follows."""
    from reports.jsonform import schema

    click.echo(json.dumps(schema(), indent=2, ensure_ascii=False))
