"""The archive as assets of a release and as a workflow artifact, on a GitHub of loopback with faults."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store import release as releasing
from store.github import Access
from store.records import Trouble
from store.release import Release, WorkflowArtifact, archive_name, asset_name
from store.travel import Carried, Folder, carry, plan
from tests.cli import Tracker
from tests.github.actions import SIGNATURE, zipped
from tests.github.clock import Time
from tests.github.releases import REPOSITORY, TAG, Releases, renamed, serving
from tests.github.server import BAD_GATEWAY, LOST, READ_ONLY_TOKEN, RESET, SECONDARY, TOKEN, Fault
from tests.travellers import FINDING, content, filled, judged

ASSETS = "/assets"
LIMITED = Fault(403, SECONDARY, {"retry-after": "2"})


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)


@pytest.fixture
def hub() -> Iterator[Releases]:
    with serving() as github:
        yield github
    assert github.flaws == []


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of three runs, one of them local, and findings."""
    folder = tmp_path_factory.mktemp("made")
    filled(folder, 1, 2, -5)
    judged(folder, "2/1 against previous", FINDING)
    return folder


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """The archive of a copy."""
    return Path(shutil.copytree(made, tmp_path / "a")) / "archive"


def opened(hub: Releases, tag: str = TAG) -> Release:
    return Release(Access(REPOSITORY, TOKEN, hub.address), tag, Time().patience())


def pushed(hub: Releases, root: Path) -> Carried:
    there = opened(hub)
    with there:
        return carry(plan(Folder(root).sizes(), there.sizes()), Folder(root), there)


def pulled(there: Any, target: Path) -> Carried:
    with there:
        return carry(plan(there.sizes(), Folder(target).sizes()), there, Folder(target))


# --- names --------------------------------------------------------------------------------------------------------


def test_the_name_of_an_asset_survives_github_and_leads_back(root: Path) -> None:
    for name in content(root):
        assert renamed(asset_name(name)) == asset_name(name)
        assert archive_name(asset_name(name)) == name
    for stranger in ("notes.txt", "run.1.attempt.1.parquet", "run.x1.attempt.1.4f0c2ab19d3e7a55.parquet"):
        assert archive_name(stranger) == stranger


# --- a release ----------------------------------------------------------------------------------------------------


def test_a_release_is_made_filled_and_read_whole(hub: Releases, root: Path, tmp_path: Path) -> None:
    assert pushed(hub, root).files == 4
    assert hub.releases[TAG]["prerelease"] is True
    assert pushed(hub, root) == Carried(0, 0, 4, (), ())
    assert pulled(opened(hub), tmp_path / "b").refused == ()
    assert content(tmp_path / "b") == content(root)
    assert all("authorization" not in headers for headers in hub.storage.headers)


def test_more_assets_than_a_page_shows_are_all_seen(hub: Releases, root: Path) -> None:
    hub.released()
    for number in range(150):
        hub.attached(f"note.{number}", b"x")
    pushed(hub, root)
    assert pushed(hub, root).present == 4
    with opened(hub) as there:
        assert len(there.sizes()) == 154


@pytest.mark.parametrize("fault", [RESET, LOST, BAD_GATEWAY, LIMITED, Fault(502, "Server Error", do=True)])
@pytest.mark.parametrize(("verb", "path"), [("POST", "/releases$"), ("POST", r"/assets\?"), ("GET", r"/assets\?")])
def test_a_fault_is_waited_out_and_nothing_is_there_twice(
    hub: Releases, root: Path, tmp_path: Path, fault: Fault, verb: str, path: str
) -> None:
    hub.order(verb, path, fault)
    assert pushed(hub, root).files == 4
    assert len(hub.assets) == 4
    assert pulled(opened(hub), tmp_path / "b").files == 4


@pytest.mark.parametrize("fault", ["broken off", "busy"])
def test_a_download_that_breaks_off_is_asked_for_again(hub: Releases, root: Path, tmp_path: Path, fault: str) -> None:
    pushed(hub, root)
    hub.storage.faults.append(fault)
    assert pulled(opened(hub), tmp_path / "b").files == 4


def test_a_refused_download_is_no_reason_to_wait_and_tells_no_secret(hub: Releases, root: Path, tmp_path: Path) -> None:
    pushed(hub, root)
    hub.storage.faults.append("forbidden")
    with pytest.raises(Trouble, match="GitHub refuses asset") as raised:
        pulled(opened(hub), tmp_path / "b")
    assert SIGNATURE not in str(raised.value)
    assert len(hub.storage.headers) == 1


def test_an_asset_that_is_shorter_than_told_is_refused(hub: Releases, root: Path, tmp_path: Path) -> None:
    pushed(hub, root)
    hub.storage.faults.append("a part")
    found = pulled(opened(hub), tmp_path / "b")
    assert (found.files, len(found.refused)) == (3, 1)


def test_another_push_that_was_faster_is_no_error(hub: Releases, root: Path) -> None:
    hub.released()
    name, whole = next(iter(sorted(content(root).items())))
    meanwhile = Fault(422, "Validation Failed", meanwhile=lambda: hub.attached(asset_name(name), whole))
    hub.order("POST", r"/assets\?", meanwhile)
    assert pushed(hub, root).files == 4
    assert len(hub.assets) == 4


@pytest.mark.parametrize(("created_at", "done"), [("2001-09-09T01:00:00Z", True), ("2001-09-09T01:46:00Z", False)])
def test_what_a_broken_upload_left_is_removed_when_it_is_old(
    hub: Releases, root: Path, created_at: str, done: bool
) -> None:
    hub.released()
    hub.attached(asset_name(min(content(root))), b"", state="open", created_at=created_at)
    if done:
        assert pushed(hub, root).files == 4
        assert {one.state for one in hub.assets.values()} == {"uploaded"}
    else:
        with pytest.raises(Trouble, match="push again in 10 minutes"):
            pushed(hub, root)
        assert hub.count("DELETE") == 0


def test_a_full_release_is_refused_with_what_to_do(hub: Releases, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releasing, "MOST_ASSETS", 2)
    with pytest.raises(Trouble, match="push to a bucket, or to another tag"):
        pushed(hub, root)
    assert len(hub.assets) == 2


def test_a_token_that_may_not_write_is_told_which_right_it_needs(hub: Releases, root: Path) -> None:
    hub.order("POST", "/releases$", READ_ONLY_TOKEN)
    with pytest.raises(Trouble, match=r"`contents: write` of octo/sweeps") as raised:
        pushed(hub, root)
    assert TOKEN not in str(raised.value)


def test_no_release_is_an_empty_store_and_a_hidden_repository_is_none(hub: Releases, tmp_path: Path) -> None:
    assert pulled(opened(hub, "none"), tmp_path / "b") == Carried(0, 0, 0, (), ())
    hub.visible = False
    with pytest.raises(Trouble, match="check the id and --repo"):
        pulled(opened(hub, "none"), tmp_path / "b")


def test_the_command_sends_only_with_the_flag(hub: Releases, root: Path, tracker: Tracker) -> None:
    where = ["--archive", root, "--repo", REPOSITORY, "--api", hub.address]
    said = tracker("store", "push", f"release:{TAG}", *where)
    assert (said.code, said.out.splitlines()[-1]) == (0, "nothing was sent: add --send")
    assert (hub.assets, hub.count("POST")) == ({}, 0)
    assert tracker("store", "push", f"release:{TAG}", *where, "--send").code == 0
    assert len(hub.assets) == 4
    elsewhere = ["--archive", tracker.folder / "b", "--repo", REPOSITORY, "--api", hub.address]
    assert tracker("store", "pull", f"release:{TAG}", *elsewhere).code == 0
    assert content(tracker.folder / "b") == content(root)


# --- an artifact --------------------------------------------------------------------------------------------------


def artifact(hub: Releases) -> WorkflowArtifact:
    return WorkflowArtifact(Access(REPOSITORY, TOKEN, hub.address), "store", Time().patience())


def test_the_newest_artifact_of_the_default_branch_is_read(hub: Releases, root: Path, tmp_path: Path) -> None:
    hub.ran(7)
    hub.uploaded(7, "store", {}, created_at="2026-06-14T05:00:00Z")
    hub.uploaded(7, "store", content(root), created_at="2026-06-14T06:00:00Z")
    hub.uploaded(7, "store", {}, created_at="2026-06-14T07:00:00Z", expired=True)
    hub.uploaded(7, "another", {}, created_at="2026-06-14T08:00:00Z")
    assert pulled(artifact(hub), tmp_path / "b").files == 4
    assert content(tmp_path / "b") == content(root)


@pytest.mark.parametrize("run", [{"head_branch": "feature"}, {"head_repository_id": 5}])
def test_an_artifact_of_a_pull_request_or_a_fork_is_never_taken(
    hub: Releases, root: Path, tmp_path: Path, run: dict[str, Any]
) -> None:
    hub.ran(7, **run)
    hub.uploaded(7, "store", content(root))
    assert pulled(artifact(hub), tmp_path / "b").files == 0


def test_paths_that_lead_out_of_the_archive_are_strangers(hub: Releases, root: Path, tmp_path: Path) -> None:
    hub.ran(7)
    evil = {f"../{name}": whole for name, whole in content(root).items()} | {"/etc/passwd": b"x", "a/../b": b"x"}
    hub.uploaded(7, "store", evil)
    found = pulled(artifact(hub), tmp_path / "b")
    assert (found.files, len(found.strangers)) == (0, 6)
    assert not (tmp_path / "b").exists()


def test_a_broken_archive_is_told(hub: Releases, tmp_path: Path, root: Path) -> None:
    hub.ran(7)
    hub.uploaded(7, "store", zipped(content(root))[:-30])
    with pytest.raises(Trouble, match="cannot be read"):
        pulled(artifact(hub), tmp_path / "b")
