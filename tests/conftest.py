"""Fixtures that several rooms share."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.cli import Tracker

# A deadline is a timed assertion: on a busy machine it fails a test that is right.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

_SHARED = Path(os.environ.get("TRACKER_SHARED", Path(__file__).resolve().parents[2] / "shared"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference data, which a clone on its own does not have."""
    if not (_SHARED / "README.md").exists():
        pytest.skip(f"no reference data at {_SHARED} (set TRACKER_SHARED)")
    return _SHARED


@pytest.fixture
def tracker(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tracker:
    """The command line with an empty store."""
    monkeypatch.setenv("TRACKER_STORE", str(tmp_path / "tracker.duckdb"))
    monkeypatch.setenv("TRACKER_ARCHIVE", str(tmp_path / "tracker.archive"))
    return Tracker(tmp_path, capsys)
