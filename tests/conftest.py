"""Fixtures that several rooms share."""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from tests.cli import Tracker
from tests.github import actions
from tests.objects import server
from tracker import jobs

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


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy of the machine is for the world outside; the servers of the tests are on this machine."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def hub() -> Iterator[actions.Actions]:
    """An empty GitHub; nothing undescribed may pass its door."""
    with actions.serving() as github:
        yield github
    assert github.flaws == []


@pytest.fixture
def judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test that tells one comparison in many forms: the same question to the same store is judged once."""
    monkeypatch.setattr(jobs, "compare", cache(jobs.compare))


@pytest.fixture
def tracker(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tracker:
    """The command line with an empty store."""
    monkeypatch.setenv("TRACKER_STORE", str(tmp_path / "tracker.duckdb"))
    monkeypatch.setenv("TRACKER_ARCHIVE", str(tmp_path / "tracker.archive"))
    return Tracker(tmp_path, capsys)


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real S3 server."""
    if not server.found():
        pytest.skip(server.MISSING)
    with server.served(tmp_path_factory.mktemp("weed")) as address:
        yield address


@pytest.fixture
def bucket(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an empty S3 bucket; the environment leads to its server and has the keys."""
    for name, value in {**server.keys(), "AWS_ENDPOINT_URL": f"http://{s3_server}"}.items():
        monkeypatch.setenv(name, value)
    return f"s3://{server.made(s3_server)}"
