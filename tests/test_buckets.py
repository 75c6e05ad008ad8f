"""Buckets of real servers on loopback, S3 and Google's: what is pushed is listed, read, and never written over."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal
from pyarrow import fs

from store.buckets import Bucket
from store.depot import Choice
from store.duck import Store
from store.patience import Patience
from store.records import Trouble
from store.travel import Carried, Folder, carry, plan
from tests.cli import Tracker
from tests.objects import server
from tests.test_depot import HELD
from tests.travellers import FINDING, content, filled, judged

ENDPOINTS = ("AWS_ENDPOINT_URL", "STORAGE_EMULATOR_HOST")


@pytest.fixture(scope="module")
def gs() -> Iterator[str]:
    """The address of a server that speaks like Google Cloud Storage."""
    package = pytest.importorskip(
        "gcp_storage_emulator.server", reason="a server for the test: pip install gcp-storage-emulator"
    )
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    served = package.create_server("127.0.0.1", port, in_memory=True)
    served.start()
    yield f"127.0.0.1:{port}"
    served.stop()


@pytest.fixture(params=["s3", "gs"])
def bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an empty bucket; the environment leads to its server and has its keys."""
    server_of = request.getfixturevalue({"s3": "s3_server", "gs": "gs"}[request.param])
    for name, value in {**server.keys(), **dict.fromkeys(ENDPOINTS, f"http://{server_of}")}.items():
        monkeypatch.setenv(name, value)
    if request.param == "s3":
        return f"s3://{server.made(server_of)}"
    name = f"bucket-{secrets.token_hex(4)}"
    fs.GcsFileSystem(endpoint_override=server_of, scheme="http", anonymous=True, project_id="test").create_dir(name)
    return f"gs://{name}"


def pushed(root: Path, there: Bucket) -> Carried:
    return carry(plan(Folder(root).sizes(), there.sizes()), Folder(root), there)


def test_what_was_pushed_is_pulled_whole(tmp_path: Path, bucket: str) -> None:
    root, target = filled(tmp_path / "a", *range(1, 9), -5), tmp_path / "b"
    judged(tmp_path / "a", "2/1 against previous", FINDING)
    there = Bucket(f"{bucket}/deep/prefix/")
    assert there.sizes() == {}
    assert pushed(root, there).files == 10
    assert pushed(root, there) == Carried(0, 0, 10, (), ())
    found = carry(plan(there.sizes(), {}), there, Folder(target))
    assert (found.files, found.refused) == (10, ())
    assert content(target) == content(root)


def test_what_another_prefix_holds_and_strangers_stay_there(tmp_path: Path, bucket: str) -> None:
    root = filled(tmp_path / "a", 1)
    pushed(root, Bucket(f"{bucket}/one"))
    Bucket(f"{bucket}/one").write("README.md", b"hello")
    assert Bucket(f"{bucket}/on").sizes() == {}
    there = Bucket(f"{bucket}")
    assert plan(there.sizes(), {}).strangers[0] == "one/README.md"
    assert plan(Bucket(f"{bucket}/one").sizes(), {}).strangers == ("README.md",)


def test_a_file_that_differs_there_is_not_written_over(tmp_path: Path, bucket: str) -> None:
    root, there = filled(tmp_path / "a", 1, 2), Bucket(f"{bucket}/x")
    name = min(content(root))
    there.write(name, b"half")
    found = pushed(root, there)
    assert (found.files, len(found.refused)) == (1, 1)
    assert there.read(name) == b"half"


def test_a_bucket_that_is_not_there_is_no_empty_store(bucket: str) -> None:
    with pytest.raises(Trouble, match="there is no bucket"):
        Bucket(f"{bucket}-misspelt/x").sizes()


def test_a_server_that_is_not_there_is_told_without_the_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "SECRET-KEY",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    }
    for name, value in keys.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(Trouble, match="cannot be listed") as raised:
        Bucket("s3://bucket/x", patience=Patience(sleep=lambda _: None)).sizes()
    assert "SECRET-KEY" not in str(raised.value)
    assert "AWS_ACCESS_KEY_ID" in str(raised.value)


def test_the_command_pushes_and_pulls(tracker: Tracker, bucket: str) -> None:
    filled(tracker.folder, 1, 2)
    where = ["--store", tracker.folder / "store.duckdb", "--archive", tracker.folder / "archive"]
    said = tracker("store", "push", f"{bucket}/x", *where)
    assert (said.code, said.out.split(",")[0]) == (0, f"pushed to {bucket}/x: 2 files")
    assert tracker("store", "pull", f"{bucket}/x").out.splitlines()[1] == "loaded 2 files: 2 points, 0 scores"


def test_an_archive_lies_in_either_kind_of_bucket(tmp_path: Path, bucket: str) -> None:
    with Store.open(tmp_path / "a.duckdb", f"{bucket}/x") as one:
        one.land_many(HELD[:3])
    with Store.open(tmp_path / "b.duckdb", f"{bucket}/x") as other:
        assert other.catch_up(Choice(since=datetime(2020, 1, 1, tzinfo=UTC))).files == 3
        curves = other.curves()["curve"].to_list()
        with Store.of_files(f"{bucket}/x", other.files_of(curves)) as part:
            assert_frame_equal(part.history(curves), other.history(curves))
