"""Fetching a run from a GitHub and a storage host on loopback, both with faults, into a folder that is ingested."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import random
import shutil
import signal
import socket
import stat
import threading
import time as clock
import traceback
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from store import fetch as fetching
from store import limits
from store.fetch import NOTE, Fetched, fetch
from store.github import Access, Reader
from store.patience import Patience
from store.readers import read
from store.records import Batch, Trouble
from store.runs import RunLink
from tests import factory
from tests.cli import Tracker
from tests.github import actions
from tests.github.actions import SHA, SIGNATURE, Actions, serving
from tests.github.clock import Time
from tests.github.description import Call
from tests.github.server import BAD_GATEWAY, READ_ONLY_TOKEN, RESET, SECONDARY, TOKEN, Answer, Fault

RUN = 27489075807
PAGES = r"/artifacts\?"
LIMITED = Fault(403, SECONDARY, {"retry-after": "2"})


@pytest.fixture
def hub() -> Iterator[Actions]:
    """A GitHub with one nightly run that has uploaded nothing yet; nothing undescribed may pass its door."""
    with serving() as github:
        github.ran(RUN)
        yield github
    assert github.flaws == []


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sweeps" / "run"


def fetched(
    hub: Actions, folder: Path, time: Time | None = None, attempt: int | None = None, patience: Patience | None = None
) -> Fetched:
    with Reader(Access("octo/sweeps", TOKEN, hub.address), patience or (time or Time()).patience()) as reader:
        return fetch(RunLink("octo/sweeps", RUN, attempt), reader, folder)


def names(found: Any) -> list[str]:
    return [one.name for one in found]


def rows(*concs: int, **changes: Any) -> dict[str, Any]:
    return {"agg_bmk.json": [factory.row(conc, **changes) for conc in concs]}


def ingested(folder: Path) -> list[Batch]:
    return list(read([folder]))


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def is_clean(folder: Path) -> bool:
    """Nothing but the folder stands where it stands."""
    return [path.name for path in folder.parent.iterdir()] == [folder.name]


# --- what is left behind ------------------------------------------------------------------------------------------


def test_a_fetched_run_is_what_ingest_reads(hub: Actions, folder: Path) -> None:
    upload = hub.uploaded(RUN, "results_bmk", rows(16, 64))
    found = fetched(hub, folder)
    assert names(found.new) == ["results_bmk"]
    assert sorted(content(folder)) == sorted(
        [f"{upload.id}/agg_bmk.json", "artifacts.json", "attempts.json", "jobs.json", "run.json"]
    )
    (batch,) = ingested(folder)
    assert (batch.run.id, batch.run.repository, batch.run.event) == (RUN, "octo/sweeps", "schedule")
    assert [point.series.conc for point in batch.points] == [16, 64]
    assert batch.rejections == ()
    assert is_clean(folder)


def test_results_of_all_eras_are_fetched_and_everything_else_stays(hub: Actions, folder: Path) -> None:
    results = [
        *("bmk_dsr1_tp8_conc64_h200-nv_1", "results_bmk", "eval_dsr1_gsm8k", "eval_results_all", "changelog-metadata"),
        *("run-stats", "reused-ingest-metadata", "results_dsr1", "results_all"),
    ]
    others = [
        *("server_logs_dsr1", "eval_server_logs_dsr1", "eval_gpu_metrics_dsr1", "gpu_metrics_3", "agentic_raw"),
        *("power_audit_h200", "multinode_server_logs_1", "coverage"),
    ]
    for name in results + others:
        hub.uploaded(RUN, name, {"some.json": []})
    found = fetched(hub, folder)
    assert (names(found.new), names(found.skipped)) == (results, others)
    assert hub.downloads == len(results)
    listed = json.loads((folder / "artifacts.json").read_text())
    assert [one["name"] for one in listed["artifacts"]] == results + others


def test_every_upload_goes_to_the_attempt_that_made_it(hub: Actions, folder: Path) -> None:
    hub.ran(RUN, "2026-06-14T06:00:00Z")
    hub.uploaded(RUN, "results_bmk", rows(64, tput=900.0), created_at="2026-06-14T05:00:00Z")
    hub.uploaded(RUN, "results_bmk", rows(64, tput=1000.0), created_at="2026-06-14T07:00:00Z")
    fetched(hub, folder)
    told = {(batch.run.attempt, point.metrics["tput_per_gpu"]) for batch in ingested(folder) for point in batch.points}
    assert told == {(1, 900.0), (2, 1000.0)}


def test_one_attempt_can_be_fetched_and_the_others_later(hub: Actions, folder: Path) -> None:
    hub.ran(RUN, "2026-06-14T06:00:00Z")
    hub.uploaded(RUN, "results_bmk", rows(64), created_at="2026-06-14T07:00:00Z")
    first = hub.uploaded(RUN, "results_bmk", rows(64), created_at="2026-06-14T05:00:00Z")
    found = fetched(hub, folder, attempt=1)
    assert [one.id for one in found.new] == [first.id]
    assert found.run.attempt == json.loads((folder / "run.json").read_text())["run_attempt"] == 1
    found = fetched(hub, folder)
    assert (len(found.new), len(found.kept), found.run.attempt) == (1, 1, 2)
    with pytest.raises(Trouble, match="has no attempt 3: its newest is 2"):
        fetched(hub, folder, attempt=3)


def test_a_second_fetch_brings_only_what_is_new(hub: Actions, folder: Path) -> None:
    hub.uploaded(RUN, "bmk_a", rows(16))
    fetched(hub, folder)
    before = content(folder)
    found = fetched(hub, folder)
    assert (found.new, names(found.kept), hub.downloads) == ((), ["bmk_a"], 1)
    assert content(folder) == before
    hub.uploaded(RUN, "bmk_b", rows(64))
    found = fetched(hub, folder)
    assert (names(found.new), names(found.kept), hub.downloads) == (["bmk_b"], ["bmk_a"], 2)
    assert [point.series.conc for batch in ingested(folder) for point in batch.points] == [16, 64]
    assert is_clean(folder)


def test_a_second_fetch_writes_into_no_file_that_stands(hub: Actions, folder: Path) -> None:
    hub.uploaded(RUN, "bmk_a", rows(16))
    fetched(hub, folder)
    before = content(folder)
    hub.uploaded(RUN, "bmk_b", rows(64))
    with (folder / "artifacts.json").open("rb") as reader:
        fetched(hub, folder)
        assert reader.read() == before["artifacts.json"]
    assert content(folder)["artifacts.json"] != before["artifacts.json"]


def test_what_github_has_thrown_away_since_keeps_its_name_and_rows(hub: Actions, folder: Path) -> None:
    hub.uploaded(RUN, "results_bmk", rows(16))
    fetched(hub, folder)
    before = ingested(folder)
    hub.uploads.clear()
    fetched(hub, folder)
    assert ingested(folder) == before


# --- expired, broken, hostile -------------------------------------------------------------------------------------


def test_expired_artifacts_are_named_and_never_asked_for(hub: Actions, folder: Path) -> None:
    hub.uploaded(RUN, "results_bmk", rows(16), expired=True)
    hub.uploaded(RUN, "eval_results_all", {"agg_eval_all.json": []}, expired=True)
    found = fetched(hub, folder)
    assert [(one.name, one.expires_on) for one in found.expired] == [
        ("results_bmk", "2026-09-12"),
        ("eval_results_all", "2026-09-12"),
    ]
    assert (found.new, hub.downloads) == ((), 0)
    (batch,) = ingested(folder)
    assert (batch.run.id, batch.points) == (RUN, ())


def test_an_artifact_that_expires_before_its_turn_is_expired_too(hub: Actions, folder: Path) -> None:
    upload = hub.uploaded(RUN, "results_bmk", rows(16))
    hub.order("GET", "/zip$", Fault(410, "Artifact has expired"))
    found = fetched(hub, folder)
    assert ([one.id for one in found.expired], found.new) == ([upload.id], ())


def hostile(name: str, value: Any = ()) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, json.dumps(value))
    return buffer.getvalue()


def linked() -> bytes:
    buffer, info = BytesIO(), zipfile.ZipInfo("link.json")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(info, "/etc/passwd")
    return buffer.getvalue()


def twice() -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.json", "[]")
        archive.writestr("a.json/b.json", "[]")
    return buffer.getvalue()


def bomb() -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.json", b" " * 4 * 1024**2)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("archive", "reason"),
    [
        (b"no zip at all", "bad_archive"),
        (b"", "bad_archive"),
        (hostile("../../escaped.json"), "unsafe_path"),
        (hostile("/tmp/escaped.json"), "unsafe_path"),
        (hostile("..\\escaped.json"), "unsafe_path"),
        (linked(), "unsafe_path"),
        (bomb(), "archive_too_large"),
        (twice(), "bad_archive"),
        (hostile("readme.txt"), "no result file inside"),
    ],
    ids=["no zip", "empty", "parent", "absolute", "backslash", "link", "bomb", "name twice", "no result"],
)
def test_an_archive_that_cannot_be_read_becomes_one_rejection(
    hub: Actions, folder: Path, archive: bytes, reason: str
) -> None:
    broken = hub.uploaded(RUN, "bmk_broken", archive)
    hub.uploaded(RUN, "bmk_whole", rows(16))
    found = fetched(hub, folder)
    ((artifact, told),) = found.unreadable
    assert (artifact.id, names(found.new)) == (broken.id, ["bmk_whole"])
    assert reason in told
    (batch,) = ingested(folder)
    assert [rejection.place.file for rejection in batch.rejections] == [f"{broken.id}/{NOTE}"]
    assert len(batch.points) == 1
    assert not [path for path in folder.parent.parent.rglob("*") if "escaped" in path.name]
    assert names(fetched(hub, folder).kept) == ["bmk_broken", "bmk_whole"]


def test_an_artifact_of_a_stranger_does_not_say_whose_run_it_is(hub: Actions, folder: Path) -> None:
    forged = {"id": 1, "event": "push", "head_branch": "main", "run_started_at": "2026-01-01T00:00:00Z"}
    hub.uploaded(RUN, "bmk_forged", {**rows(16), "run.json": forged, "deep/artifacts.json": [], "attempts.json": []})
    fetched(hub, folder)
    (batch,) = ingested(folder)
    assert (batch.run.id, batch.run.event, len(batch.points)) == (RUN, "schedule", 1)


@pytest.mark.parametrize("size", [None, 10], ids=["told", "kept secret"])
def test_an_archive_is_fetched_up_to_a_size(
    hub: Actions, folder: Path, monkeypatch: pytest.MonkeyPatch, size: int | None
) -> None:
    monkeypatch.setattr(limits, "DOWNLOAD_BYTES", 1000)
    hub.uploaded(RUN, "bmk_huge", os.urandom(5000), size=size)
    found = fetched(hub, folder)
    assert [reason.partition(":")[0] for _, reason in found.unreadable] == ["archive_too_large"]
    assert hub.downloads == (size is not None)


# --- faults of the way --------------------------------------------------------------------------------------------


def many(hub: Actions, count: int) -> None:
    hub.page_size = 30
    for number in range(count):
        hub.uploaded(RUN, f"server_logs_{number}", b"")


@pytest.mark.parametrize(
    ("fault", "waited"),
    [
        (LIMITED, 2.0),
        (Fault(403, SECONDARY), 60.0),
        (Fault(429, "Too many requests"), 60.0),
        (Fault(429, "Too many requests", {"retry-after": "7"}), 7.0),
        (
            Fault(403, "API rate limit", {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1000000090"}),
            91.0,
        ),
        (BAD_GATEWAY, 1.0),
        (RESET, 1.0),
    ],
    ids=["secondary", "no term", "429", "429 with term", "primary", "502", "reset"],
)
def test_a_list_is_whole_after_a_fault_in_its_middle(
    hub: Actions, folder: Path, time: Time, fault: Fault, waited: float
) -> None:
    many(hub, 140)
    hub.order("GET", r"[?&]page=3", fault)
    found = fetched(hub, folder, time)
    assert (len(found.skipped), time.slept) == (140, [waited])
    assert hub.count("GET", r"[?&]page=\d") == 5
    assert hub.count("GET", PAGES) == 6


def test_a_few_archives_come_at_the_same_time(hub: Actions, folder: Path) -> None:
    for conc in range(3 * fetching.PARALLEL):
        hub.uploaded(RUN, f"bmk_conc{conc}", rows(conc + 1))
    hub.storage.meeting = threading.Barrier(fetching.PARALLEL)
    found = fetched(hub, folder)
    assert names(found.new) == [f"bmk_conc{conc}" for conc in range(3 * fetching.PARALLEL)]
    assert hub.storage.most_at_once == fetching.PARALLEL


def test_the_first_failure_ends_the_others(hub: Actions, folder: Path) -> None:
    for conc in range(12):
        hub.uploaded(RUN, f"bmk_conc{conc}", rows(conc + 1))
    hub.order("GET", "/zip$", *[Fault(429, "Too many requests", {"retry-after": "250"})] * 3)
    hub.order("GET", "/zip$", Fault(403, "Resource not accessible by integration"))
    began = clock.monotonic()
    with pytest.raises(Trouble, match="actions: read"):
        fetched(hub, folder, patience=Patience())
    assert clock.monotonic() - began < 60
    assert not folder.exists()


def test_a_pause_begins_anew_with_every_request(hub: Actions, folder: Path, time: Time) -> None:
    for conc in range(4):
        hub.uploaded(RUN, f"bmk_conc{conc}", rows(conc + 1))
    for path in (r"/runs/\d+$", "/artifacts", "/jobs", "/contents"):
        hub.order("GET", path, BAD_GATEWAY)
    fetched(hub, folder, time)
    assert time.slept == [1.0] * 4


def test_a_limit_beyond_the_budget_ends_in_words_and_leaves_nothing(hub: Actions, folder: Path, time: Time) -> None:
    many(hub, 140)
    hub.order("GET", r"[?&]page=3", *[Fault(429, "Too many requests", {"retry-after": "200"})] * 2)
    with pytest.raises(Trouble, match=r"rate limit of GitHub: 429.*200 s, and 100 s are left.*again later"):
        fetched(hub, folder, time)
    assert time.slept == [200.0]
    assert list(folder.parent.iterdir()) == []


def test_a_list_shorter_than_its_count_is_asked_for_again_and_then_an_error(
    hub: Actions, folder: Path, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(hub, 40)
    whole = actions.Actions.artifacts

    def short(github: Actions, asked: Call) -> Answer:
        status, told = whole(github, asked)
        return status, told | {"total_count": 140}

    route = ("GET", "/repos/{owner}/{repo}/actions/runs/{run_id}/artifacts")
    monkeypatch.setitem(actions.ROUTES, route, short)
    with pytest.raises(Trouble, match="40 of 140 entries"):
        fetched(hub, folder, time)
    assert not folder.exists()


@pytest.mark.parametrize("fault", ["broken off", "a part", "busy"])
def test_an_archive_is_whole_after_a_fault(hub: Actions, folder: Path, time: Time, fault: str) -> None:
    hub.uploaded(RUN, "results_bmk", rows(16, 64))
    hub.storage.faults.append(fault)
    assert names(fetched(hub, folder, time).new) == ["results_bmk"]
    assert time.slept == [1.0]
    assert [len(batch.points) for batch in ingested(folder)] == [2]


def test_a_fetch_that_ran_out_of_patience_goes_on_where_it_was(
    hub: Actions, folder: Path, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "PARALLEL", 1)
    for conc in (4, 16, 64):
        hub.uploaded(RUN, f"bmk_conc{conc}", rows(conc))
    hub.storage.faults.extend(["", "", "busy", "busy"])
    with pytest.raises(Trouble, match=r"artifact \d+ \(bmk_conc64\) cannot be read: 503 .*2 requests failed"):
        fetched(hub, folder, patience=time.patience(tries=2))
    assert not folder.exists()
    # Whoever ingests the parent meets no part of a run.
    assert ingested(folder.parent) == []
    asked = hub.downloads
    assert len(fetched(hub, folder).new) == 3
    assert hub.downloads == asked + 1
    assert is_clean(folder)


def test_a_failed_second_fetch_leaves_the_folder_as_it_was(hub: Actions, folder: Path, time: Time) -> None:
    hub.uploaded(RUN, "bmk_a", rows(16))
    fetched(hub, folder)
    before = content(folder)
    hub.uploaded(RUN, "bmk_b", rows(64))
    hub.storage.faults.extend(["busy"] * 2)
    with pytest.raises(Trouble):
        fetched(hub, folder, patience=time.patience(tries=2))
    assert content(folder) == before


@pytest.mark.parametrize(
    ("path", "fault", "remedy"),
    [
        (r"/runs/\d+$", Fault(401, "Bad credentials"), "GITHUB_TOKEN is wrong"),
        (r"/runs/\d+$", Fault(404, "Not Found"), "check the id and --repo octo/sweeps"),
        (PAGES, READ_ONLY_TOKEN, "actions: read"),
        (r"/zip$", READ_ONLY_TOKEN, "actions: read"),
        (r"/zip$", Fault(404, "Not Found"), "check the id"),
    ],
    ids=["401", "404", "403 list", "403 archive", "404 archive"],
)
def test_what_waiting_does_not_cure_is_told_at_once(
    hub: Actions, folder: Path, time: Time, path: str, fault: Fault, remedy: str
) -> None:
    hub.uploaded(RUN, "results_bmk", rows(16))
    hub.order("GET", path, fault)
    with pytest.raises(Trouble, match=remedy):
        fetched(hub, folder, time)
    assert time.slept == []
    assert not folder.exists()


# --- the token ----------------------------------------------------------------------------------------------------


def test_the_token_goes_to_the_api_and_not_to_the_storage(
    hub: Actions, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = tmp_path / "netrc"
    secrets.write_text("machine 127.0.0.1 login me password NETRC-SECRET\n")
    secrets.chmod(0o600)
    monkeypatch.setenv("NETRC", str(secrets))
    hub.uploaded(RUN, "results_bmk", rows(16))
    fetched(hub, folder)
    (headers,) = hub.storage.headers
    assert "authorization" not in headers
    assert TOKEN not in json.dumps(headers)


def test_neither_the_token_nor_a_signed_address_is_told(
    hub: Actions, folder: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    upload = hub.uploaded(RUN, "results_bmk", rows(16))
    told = [repr(Access("octo/sweeps", TOKEN))]
    echo = Fault(404, "no such thing for {authorization}")
    for path, fault, stored in (("/runs/", echo, ""), ("/zip$", echo, ""), ("^$", echo, "forbidden")):
        hub.calm()
        hub.order("GET", path, fault)
        hub.storage.faults.append(stored) if stored else None
        with pytest.raises(Trouble) as trouble:
            fetched(hub, folder)
        told.append("".join(traceback.format_exception(trouble.value)))
    hub.storage.faults.extend(["broken off"] * 2)
    with pytest.raises(Trouble, match="no whole answer"):
        fetched(hub, folder, patience=Time().patience(tries=2))
    hub.storage.address = f"http://127.0.0.1:{_closed_port()}"
    with pytest.raises(Trouble, match="no whole answer") as trouble:
        fetched(hub, folder, patience=Time().patience(tries=2))
    said, printed = "".join([*told, str(trouble.value), *map(str, trouble.value.args)]), capsys.readouterr()
    assert TOKEN not in said + printed.out + printed.err
    assert SIGNATURE not in said + printed.out + printed.err
    assert str(upload.id) in said
    assert TOKEN not in caplog.text


def _closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@pytest.mark.parametrize("token", ["", "ghs_abc\n", "ghs abc", "ghs_é"])
def test_a_token_that_cannot_be_sent_is_refused_without_showing_it(token: str) -> None:
    with pytest.raises(Trouble, match="token") as trouble:
        Access("octo/sweeps", token)
    assert not token or token not in str(trouble.value)


# --- the pull request ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "pulls", "number"),
    [
        ("push", [(2031, "a" * 40, SHA)], 2031),
        ("push", [(2031, "a" * 40, SHA), (7, SHA, "d" * 40)], 2031),
        ("push", [(2031, "a" * 40, SHA), (7, "b" * 40, SHA)], None),
        ("push", [], None),
        ("pull_request", [(2031, SHA, None)], 2031),
        ("pull_request", [(2031, "a" * 40, None)], None),
        ("schedule", [(2031, "a" * 40, SHA)], None),
    ],
    ids=["merged", "another branch on it", "two merged", "none", "head", "older head", "nightly"],
)
def test_a_run_is_of_the_pull_request_of_its_commit(
    hub: Actions, folder: Path, event: str, pulls: list[tuple[int, str, str | None]], number: int | None
) -> None:
    hub.runs.clear()
    hub.ran(RUN, event=event, head_branch="feature" if event == "pull_request" else "main")
    for pull in pulls:
        hub.merged(SHA, *pull)
    found = fetched(hub, folder)
    (batch,) = ingested(folder)
    assert found.run.pull_request == batch.run.pull_request == number


# --- the folder ---------------------------------------------------------------------------------------------------


def test_a_folder_of_something_else_is_left_alone(hub: Actions, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(parents=True)
    fetched(hub, folder)
    assert (folder / "run.json").exists()
    other = folder.parent / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("ten years")
    with pytest.raises(Trouble, match="holds something else"):
        fetched(hub, other)
    (other / "run.json").write_text('{"id": 5}')
    with pytest.raises(Trouble, match="holds something else"):
        fetched(hub, other)
    assert (other / "thesis.txt").read_text() == "ten years"
    monkeypatch.chdir(folder)
    with pytest.raises(Trouble, match="current folder"):
        fetched(hub, folder)


def test_two_fetches_into_one_folder_do_not_meet(hub: Actions, folder: Path) -> None:
    work = folder.with_name(".run.fetch")
    with fetching._alone(work), pytest.raises(Trouble, match="another fetch"):
        fetched(hub, folder)
    fetched(hub, folder)
    assert is_clean(folder)


def _fetch_for_ever(address: str, folder: Path) -> None:
    """What the process does that is killed: the same fetch, over and over."""
    while True:
        with Reader(Access("octo/sweeps", TOKEN, address)) as reader:
            fetch(RunLink("octo/sweeps", RUN), reader, folder)


def test_a_fetch_killed_at_any_moment_leaves_a_whole_folder_or_none(hub: Actions, folder: Path) -> None:
    moment, seen = random.Random(44), []
    for number in range(16):
        hub.uploaded(RUN, f"bmk_conc{number}", rows(number + 1))
        process = multiprocessing.get_context("fork").Process(target=_fetch_for_ever, args=(hub.address, folder))
        process.start()
        clock.sleep(moment.uniform(0.02, 0.6))
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        seen.append(folder.exists())
        if folder.exists():
            listed = json.loads((folder / "artifacts.json").read_text())["artifacts"]
            concs = sorted(point.series.conc or 0 for batch in ingested(folder) for point in batch.points)
            assert concs == list(range(1, len(listed) + 1))
        if number % 4 == 3:
            shutil.rmtree(folder, ignore_errors=True)
    found = fetched(hub, folder)
    assert len(found.new) + len(found.kept) == 16
    assert is_clean(folder)
    assert any(seen)


def test_a_kill_between_the_two_renames_is_undone(hub: Actions, folder: Path) -> None:
    hub.uploaded(RUN, "bmk_a", rows(16))
    fetched(hub, folder)
    before = content(folder)
    work = folder.with_name(".run.fetch")
    (work / "built").mkdir(parents=True)
    folder.rename(work / "before")
    found = fetched(hub, folder)
    assert (names(found.kept), found.new) == (["bmk_a"], ())
    assert content(folder) == before
    assert is_clean(folder)


# --- the command --------------------------------------------------------------------------------------------------


@pytest.fixture
def command(tracker: Tracker, hub: Actions, monkeypatch: pytest.MonkeyPatch) -> Tracker:
    """`tracker` in a folder of its own, with a token and the server's address in the environment."""
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_API_URL", hub.address)
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    monkeypatch.chdir(tracker.folder)
    return tracker


@pytest.mark.parametrize(
    "words",
    [
        (f"https://github.com/octo/sweeps/actions/runs/{RUN}",),
        (f"https://github.com/octo/sweeps/actions/runs/{RUN}/attempts/1",),
        (str(RUN), "--repo", "octo/sweeps"),
        (f"{RUN}/1", "--repo", "octo/sweeps"),
    ],
    ids=["address", "address of an attempt", "id", "attempt"],
)
def test_the_command_fetches_what_ingest_lands(command: Tracker, hub: Actions, words: tuple[str, ...]) -> None:
    hub.uploaded(RUN, "results_bmk", rows(16, 64))
    hub.uploaded(RUN, "eval_results_all", {"agg_eval_all.json": []}, expired=True)
    hub.uploaded(RUN, "server_logs_1", b"")
    hub.committed(SHA, {"configs/nvidia-master.yaml": ""})
    said = command("fetch", *words)
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [
        f"run {RUN}/1 of octo/sweeps: 1 artifact fetched into {RUN}",
        "expired, lost on GitHub: 1 (eval_results_all, on 2026-09-12)",
        "no results, left on GitHub: 1 (server_logs_1)",
        f"next: tracker ingest {RUN}",
    ]
    assert "landed: 2 points" in command.ingest(str(RUN)).out


def test_the_command_says_that_a_run_goes_on(command: Tracker, hub: Actions) -> None:
    hub.runs.clear()
    hub.ran(RUN, status="in_progress", conclusion=None)
    said = command("fetch", RUN, "--repo", "octo/sweeps", "--into", "sweep")
    assert f"run {RUN}/1 of octo/sweeps: 0 artifacts fetched into sweep" in said.out
    assert "the run is in_progress: fetch again later" in said.out


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("latest",), 2, "'latest' is no id, id/attempt or address of a run"),
        (("0", "--repo", "octo/sweeps"), 2, "is no id"),
        ((str(RUN),), 2, "give --repo OWNER/NAME"),
        ((str(RUN), "--repo", "sweeps"), 1, "give OWNER/NAME"),
        (("5", "--repo", "octo/sweeps"), 1, "check the id"),
    ],
    ids=["no run", "zero", "no repository", "half a repository", "unknown run"],
)
def test_wrong_use_is_told_with_what_to_do(command: Tracker, words: tuple[str, ...], code: int, told: str) -> None:
    said = command("fetch", *words)
    assert (said.code, said.out) == (code, "")
    assert told in said.err


def test_a_missing_token_is_told_before_anything_is_asked(
    command: Tracker, hub: Actions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    said = command("fetch", RUN, "--repo", "octo/sweeps")
    assert (said.code, hub.requests) == (1, [])
    assert "GITHUB_TOKEN" in said.err
