"""What a fetch leaves beside the artifacts: attempts, jobs, the pull request, configs, the sweep that was reused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from store import github as reading
from store import told as telling
from store.fetch import Fetched, fetch_with_source
from store.github import Access, Reader
from store.readers import read
from store.records import Trouble
from store.runs import RunLink
from tests import factory
from tests.cli import Tracker
from tests.github.actions import SHA, Actions
from tests.github.clock import Time
from tests.github.server import TOKEN, Fault

RUN, SWEEP, PULL = 27489075807, 27480000000, 1425
HEAD = "a" * 40
FORK = "stranger/sweeps"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sweeps" / "run"


def fetched(hub: Actions, folder: Path, attempt: int | None = None) -> tuple[Fetched, ...]:
    with Reader(Access("octo/sweeps", TOKEN, hub.address), Time().patience()) as reader:
        return fetch_with_source(RunLink("octo/sweeps", RUN, attempt), reader, folder)


def notes(found: Fetched) -> list[dict[str, Any]]:
    return [note.as_dict() for note in found.notes]


def held(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text(encoding="utf-8"))


def rows(*concs: int) -> dict[str, Any]:
    return {"agg_bmk.json": [factory.row(conc) for conc in concs]}


# --- attempts and jobs --------------------------------------------------------------------------------------------


def test_an_attempt_that_github_has_no_longer_is_left_out_and_told(hub: Actions, folder: Path) -> None:
    hub.committed(SHA, {"configs/nvidia-master.yaml": "a: 1\n"})
    hub.ran(RUN, gone=True)
    hub.ran(RUN, "2026-06-14T06:00:00Z")
    early = hub.uploaded(RUN, "bmk_a", rows(16), created_at="2026-06-14T05:00:00Z")
    late = hub.uploaded(RUN, "bmk_a", rows(16), created_at="2026-06-14T07:00:00Z")
    (found,) = fetched(hub, folder)
    assert {one.id for one in found.new} == {early.id, late.id}
    assert notes(found) == [{"code": "attempt_gone", "attempt": 1}]
    assert [one["run_attempt"] for one in held(folder, "attempts.json")] == [2]
    (only,) = fetched(hub, folder.with_name("second"), attempt=2)
    assert [one.id for one in only.new] == [late.id]
    with pytest.raises(Trouble, match=r"no longer has attempt 1 .* newest is 2"):
        fetched(hub, folder.with_name("first"), attempt=1)
    with pytest.raises(Trouble, match=r"has no attempt 3: its newest is 2"):
        fetched(hub, folder.with_name("third"), attempt=3)


def test_the_newest_attempt_must_be_there(hub: Actions, folder: Path) -> None:
    with pytest.raises(Trouble, match="check the id"):
        fetched(hub, folder)
    assert not folder.exists()


def test_jobs_of_all_attempts_are_kept_as_github_tells_them(hub: Actions, folder: Path) -> None:
    hub.ran(RUN)
    hub.ran(RUN, "2026-06-14T06:00:00Z")
    hub.ran_job(RUN, "single-node 8k1k / dsr1", "failure", attempt=1)
    hub.ran_job(RUN, "single-node 8k1k / dsr1", attempt=2)
    fetched(hub, folder)
    told = held(folder, "jobs.json")
    assert told["total_count"] == len(told["jobs"]) == 2
    assert [(one["run_attempt"], one["conclusion"]) for one in told["jobs"]] == [(1, "failure"), (2, "success")]


def test_a_jobs_list_that_breaks_off_leaves_no_folder(hub: Actions, folder: Path) -> None:
    hub.ran(RUN)
    hub.page_size = 30
    for number in range(140):
        hub.ran_job(RUN, f"job {number}")
    hub.order("GET", r"/jobs\?.*[?&]page=3", *[Fault(403, "secondary rate limit", {"retry-after": "200"})] * 2)
    with pytest.raises(Trouble, match="rate limit"):
        fetched(hub, folder)
    assert not folder.exists()


# --- pull request -------------------------------------------------------------------------------------------------


def test_the_pull_request_of_a_run_says_what_was_asked_for(hub: Actions, folder: Path) -> None:
    hub.ran(RUN, event="pull_request", head_sha=HEAD, head_branch="topic", head_repository=FORK)
    hub.proposed(PULL, HEAD, branch="topic", repository=FORK, labels=["full-sweep-enabled", "agentx-fast"])
    hub.proposed(7, HEAD, branch="topic")
    (found,) = fetched(hub, folder)
    told = held(folder, "pull.json")
    assert found.run.pull_request == told["number"] == PULL
    assert told["labels"] == [{"name": "full-sweep-enabled"}, {"name": "agentx-fast"}]
    assert told["head"] == {"sha": HEAD, "ref": "topic", "repo": {"full_name": FORK}}
    assert (told["state"], told["merged"], told["base"]["ref"]) == ("open", False, "main")


def test_several_pull_requests_that_github_names_are_none(hub: Actions, folder: Path) -> None:
    named = [{"id": n, "number": n, "url": "", "head": _end(n), "base": _end(1)} for n in (3, 4)]
    hub.ran(RUN, event="pull_request", pull_requests=named)
    (found,) = fetched(hub, folder)
    assert (found.run.pull_request, held(folder, "run.json")["pull_requests"]) == (None, [])
    assert not (folder / "pull.json").exists()


def _end(number: int) -> dict[str, Any]:
    return {"ref": "topic", "sha": HEAD, "repo": {"id": 1296269, "url": "", "name": "sweeps"}}


# --- configs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["configs", ".github/configs"])
def test_the_master_configs_are_those_of_the_measured_commit(hub: Actions, folder: Path, place: str) -> None:
    hub.ran(RUN)
    masters = {f"{place}/nvidia-master.yaml": "a: 1\n", f"{place}/amd-master.yaml": "b: 2\n"}
    hub.committed(SHA, {**masters, f"{place}/runners.yaml": "", f"{place}/deprecated/old-master.yaml": ""})
    hub.committed("main", {f"{place}/nvidia-master.yaml": "newer"})
    (found,) = fetched(hub, folder)
    assert sorted(path.name for path in (folder / "configs").iterdir()) == ["amd-master.yaml", "nvidia-master.yaml"]
    assert (folder / "configs" / "nvidia-master.yaml").read_bytes() == b"a: 1\n"
    assert found.notes == ()
    assert fetched(hub, folder)[0].notes == ()


def test_the_head_of_a_fork_is_read_in_the_fork(hub: Actions, folder: Path) -> None:
    hub.ran(RUN, head_sha=HEAD, head_repository=FORK)
    hub.committed(HEAD, {"configs/nvidia-master.yaml": "fork"}, FORK)
    (found,) = fetched(hub, folder)
    assert (folder / "configs" / "nvidia-master.yaml").read_bytes() == b"fork"
    assert found.notes == ()


def test_configs_that_cannot_be_had_are_told_and_the_fetch_goes_on(
    hub: Actions, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.ran(RUN, head_repository=FORK)
    hub.uploaded(RUN, "bmk_a", rows(16))
    (found,) = fetched(hub, folder)
    assert (len(found.new), notes(found)) == (1, [{"code": "unknown_commit", "sha": SHA}])
    hub.committed(SHA, {"README.md": ""})
    assert notes(fetched(hub, folder)[0]) == [{"code": "no_configs", "sha": SHA}]
    hub.committed(SHA, {"configs/a-master.yaml": "", "configs/b-master.yaml": ""})
    monkeypatch.setattr(telling, "CONFIG_FILES", 1)
    (note,) = notes(fetched(hub, folder)[0])
    assert (note["code"], note["flaw"]) == ("configs_too_large", "2 master configs, at most 1 are fetched")
    monkeypatch.setattr(reading, "LISTED_FILES", 2)
    (note,) = notes(fetched(hub, folder)[0])
    assert (note["code"], note["flaw"]) == ("configs_too_large", "GitHub lists only 2 of more files of configs")


def test_an_artifact_brings_no_sidecar_and_no_config(hub: Actions, folder: Path) -> None:
    hub.ran(RUN)
    forged = {"jobs.json": {"jobs": []}, "pull.json": {"number": 1}, "reuse.json": {}, "configs/a-master.yaml": b"a: 1"}
    upload = hub.uploaded(RUN, "bmk_a", {**rows(16), **forged})
    fetched(hub, folder)
    laid = folder / str(upload.id)
    assert [path.name for path in laid.rglob("*") if path.is_file()] == ["agg_bmk.json"]
    assert not (folder / "pull.json").exists()


# --- the sweep that was reused ------------------------------------------------------------------------------------


def merged(hub: Actions, **changes: Any) -> None:
    """A merge that measured nothing, and the sweep of its pull request."""
    hub.ran(RUN, event="push")
    hub.uploaded(RUN, "run-stats", {"run_stats.json": {}})
    hub.uploaded(RUN, "server_logs_1", b"")
    hub.proposed(PULL, HEAD, SHA, labels=["full-sweep-enabled"], branch="topic")
    hub.ran(SWEEP, "2026-06-13T04:00:00Z", event="pull_request", head_sha=HEAD, head_branch="topic", **changes)
    hub.uploaded(SWEEP, "results_bmk", rows(16, 64))
    hub.said(PULL, "ann", "/reuse-sweep-run", created_at="2026-06-13T12:00:00Z")


def test_a_merge_brings_the_sweep_that_it_published(hub: Actions, folder: Path) -> None:
    merged(hub)
    found, source = fetched(hub, folder)
    assert source.folder == folder.with_name(f"run-source-{SWEEP}")
    told = held(source.folder, "reuse.json")
    assert (told["source_run_id"], told["merge_run_id"], told["comment"]["login"]) == (SWEEP, RUN, "ann")
    assert not (folder / "reuse.json").exists()
    assert held(source.folder, "pull.json")["number"] == found.run.pull_request == PULL
    points = [point for batch in read([folder, source.folder]) for point in batch.points]
    assert len(points) == 2
    assert [len(one.new) for one in fetched(hub, folder)] == [0, 0]


@pytest.mark.parametrize("expired", [False, True])
def test_a_merge_that_measured_itself_has_no_source(hub: Actions, folder: Path, expired: bool) -> None:
    merged(hub)
    hub.uploaded(RUN, "bmk_a", rows(16), expired=expired)
    assert len(fetched(hub, folder)) == 1
    assert hub.count("GET", "/comments") == 0


def test_a_refused_reuse_is_told_with_its_reason(hub: Actions, folder: Path) -> None:
    merged(hub, path=".github/workflows/e2e-tests.yml")
    (found,) = fetched(hub, folder)
    assert notes(found)[-1] == {"code": "reuse_no_run", "commits": 1, "runs": 0}


def test_nobody_asked_for_a_reuse(hub: Actions, folder: Path) -> None:
    merged(hub)
    hub.comments.clear()
    (found,) = fetched(hub, folder)
    assert [note["code"] for note in notes(found)] == ["unknown_commit"]


# --- the commands -------------------------------------------------------------------------------------------------


@pytest.fixture
def command(tracker: Tracker, hub: Actions, monkeypatch: pytest.MonkeyPatch) -> Tracker:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_API_URL", hub.address)
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    monkeypatch.chdir(tracker.folder)
    return tracker


def test_the_command_says_both_runs_and_what_to_do_next(command: Tracker, hub: Actions) -> None:
    merged(hub)
    hub.committed(SHA, {"configs/nvidia-master.yaml": ""})
    hub.committed(HEAD, {"configs/nvidia-master.yaml": ""})
    said = command("fetch", RUN, "--repo", "octo/sweeps", "--into", "merge")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [
        f"run {RUN}/1 of octo/sweeps: 1 artifact fetched into merge",
        "no results, left on GitHub: 1 (server_logs_1)",
        f"it measured nothing: it published the sweep of pull request {PULL}, as asked by ann",
        f"run {SWEEP}/1 of octo/sweeps: 1 artifact fetched into merge-source-{SWEEP}",
        f"next: tracker ingest merge merge-source-{SWEEP}",
    ]
    assert "landed: 2 points" in command.ingest("merge", f"merge-source-{SWEEP}").out


def test_the_command_says_why_there_is_no_source(command: Tracker, hub: Actions) -> None:
    merged(hub)
    hub.comments.clear()
    hub.said(PULL, "mallory", "/reuse-sweep-run", association="NONE")
    said = command("fetch", RUN, "--repo", "octo/sweeps")
    assert "No sweep was reused: mallory (NONE) may not ask for it." in said.out
    assert "GitHub does not show commit cccccccccccc: without its configs" in said.out


def test_every_note_has_its_words() -> None:
    import re

    from reports.doubts import SENTENCES

    root = Path(__file__).parents[1] / "store"
    codes = set(re.findall(r'Caveat\.of\(\s*"(\w+)"', (root / "told.py").read_text()))
    codes |= set(re.findall(r'(?:_No|Caveat\.of)\(\s*"(reuse_\w+)"', (root / "reuse.py").read_text()))
    assert len(codes) > 15
    assert codes - set(SENTENCES) == set()


# --- fetch and ingest in one --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("--run", RUN, "--repo", "octo/sweeps"),
        ("--run", f"{RUN}/1", "--repo", "octo/sweeps"),
        ("--run", f"https://github.com/octo/sweeps/actions/runs/{RUN}"),
    ],
    ids=["id", "attempt", "address"],
)
def test_a_run_is_fetched_and_landed_in_one(command: Tracker, hub: Actions, words: tuple[Any, ...]) -> None:
    hub.ran(RUN)
    hub.uploaded(RUN, "results_bmk", rows(16, 64))
    said = command.ingest(*words)
    assert said.code == 0
    assert f"run {RUN}/1 of octo/sweeps: 1 artifact fetched into {RUN}" in said.out
    assert "landed: 2 points" in said.out
    assert (command.folder / str(RUN) / "run.json").exists()


def test_the_sweep_that_a_merge_published_is_landed_with_it(command: Tracker, hub: Actions) -> None:
    merged(hub)
    said = command.ingest("--run", RUN, "--repo", "octo/sweeps", "--into", "merge")
    assert (said.code, "landed: 2 points" in said.out) == (0, True)
    assert (command.folder / f"merge-source-{SWEEP}" / "reuse.json").exists()


def test_a_file_is_a_file_whatever_its_name(command: Tracker, hub: Actions) -> None:
    (command.folder / "agg_bmk.json").write_text(json.dumps([factory.row(16)]))
    told = {"id": 5, "run_started_at": "2026-06-14T04:00:00Z"}
    for name in ("run.json", str(RUN)):
        (command.folder / name).write_text(json.dumps(told))
        assert command.ingest("agg_bmk.json", "--run", name, "--dry-run").code == 0
    assert hub.requests == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "nothing to land: name a PATH, or a run to fetch"),
        (("--run", "5"), "give --repo OWNER/NAME"),
        (("--run", "missing.json"), "there is no file 'missing.json'"),
        (("--run", "latest"), "'latest' is no id, id/attempt or address"),
        (("here.json", "--run", "5", "--repo", "octo/sweeps"), "leave here.json out"),
        (("--run", "5", "--repo", "octo/sweeps", "--attempt", "2"), "GitHub says what --attempt says"),
        (("--run", "here.json"), "nothing to land"),
        (("here.json", "--into", "there"), "--into names the folder of a run that is fetched"),
    ],
    ids=["nothing", "no repository", "no file", "no id", "path too", "attempt too", "file alone", "into alone"],
)
def test_words_that_do_not_go_together_are_told(
    command: Tracker, hub: Actions, words: tuple[str, ...], told: str
) -> None:
    (command.folder / "here.json").write_text('{"id": 5, "run_started_at": "2026-06-14T04:00:00Z"}')
    said = command.ingest(*words)
    assert (said.code, said.out) == (2, "")
    assert told in said.err
    assert hub.requests == []
