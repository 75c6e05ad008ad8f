"""Calls the command line in this process and gives what it said."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.factory import write
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

    def filled(self, bundles: Any, *arguments: object) -> Tracker:
        """This one with these bundles in its store: landed by the first test of a process that asks, then copied."""
        said = json.dumps([bundles, list(map(str, arguments))], sort_keys=True)
        ready = self.folder.parent / f"store-{hashlib.sha256(said.encode()).hexdigest()[:16]}"
        file = write(self.folder / "past.json", bundles)
        if not ready.exists():
            done = self.ingest(file, *arguments)
            assert done.code == 0, done.err
            part = ready.with_suffix(".part")
            part.mkdir()
            shutil.copy2(self.folder / "tracker.duckdb", part)
            shutil.copytree(self.folder / "tracker.archive", part / "tracker.archive")
            part.rename(ready)
        else:
            shutil.copytree(ready, self.folder, dirs_exist_ok=True)
        return self

    def compare(self, *arguments: object) -> Any:
        """The json of a comparison."""
        return self("compare", *arguments, "--format", "json").json
