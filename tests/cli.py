"""Calls the command line in this process and gives what it said."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tracker.cli import run


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Tracker:
    """`tracker` with a store of its own in a temporary folder."""

    folder: Path
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: object) -> Said:
        self.capsys.readouterr()
        code = run([str(word) for word in arguments])
        out, err = self.capsys.readouterr()
        return Said(code, out, err)

    def ingest(self, *arguments: object) -> Said:
        return self("ingest", *arguments)

    def compare(self, *arguments: object) -> Any:
        """The json of a comparison."""
        return self("compare", *arguments, "--format", "json").json
