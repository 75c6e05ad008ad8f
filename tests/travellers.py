"""An archive to send on its way, and what arrived of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from store.duck import Store
from store.records import Batch, Finding, Scope, Verdict
from tests.test_archive import RUN, point

START = datetime(2026, 11, 30, 18, tzinfo=UTC)
FINDING = Finding(Scope.CURVE, "dsr1-fp8-h200-sglang", "tput_per_gpu", Verdict.REGRESSION)


def filled(folder: Path, *runs: int) -> Path:
    """A store in a folder with a batch of each run; gives its archive."""
    root = folder / "archive"
    with Store.open(folder / "store.duckdb", root) as store:
        for number in runs:
            run = replace(RUN, id=number)
            store.land(Batch(run, points=(point(run=run.key),)))
    return root


def judged(folder: Path, comparison: str, *findings: Finding, hours: int = 0) -> None:
    """Findings that the store in a folder keeps."""
    with Store.open(folder / "store.duckdb", folder / "archive") as store:
        store.save_findings(comparison, findings, START + timedelta(hours=hours))


def content(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
