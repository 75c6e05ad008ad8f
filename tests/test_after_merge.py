"""A run of GitHub judged by one command: a story of twelve runs, and the same when it is killed in the middle."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import time as clock
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from store.duck import Store
from store.records import RunKey
from store.runs import standing
from tests.cli import Said, Tracker
from tests.github import story
from tests.github.actions import Actions, serving
from tests.github.server import READ_ONLY_TOKEN, TOKEN, marks
from tests.github.story import (
    CANCELLED,
    EXPIRED,
    FLAKY,
    FLAKY_PULL,
    MENDED_PULL,
    MERGE,
    NIGHTS,
    NOTHING,
    REPOSITORY,
    RUNS,
    SLOW_PULL,
    STRANGE,
    STRANGE_PULL,
    SWEEP,
    WITHDRAWALS,
    WITHDRAWN,
    sha,
)

Json = Any
State = dict[str, Any]


BEFORE = (EXPIRED, *NIGHTS, WITHDRAWN)


@pytest.fixture(scope="module")
def served() -> Iterator[Actions]:
    """One server for all tests here, since what it says and what was kept hold its address."""
    with serving() as github:
        story.told(github)
        yield github


@pytest.fixture(scope="module")
def fresh(served: Actions) -> State:
    return served.state()


@pytest.fixture
def hub(served: Actions, fresh: State) -> Iterator[Actions]:
    """A GitHub on which the twelve runs ran; nothing undescribed may pass its door."""
    served.restore(fresh)
    yield served
    assert served.flaws == []


@dataclass
class Desk:
    """Where the runs are judged: `tracker after-merge` with a store, withdrawals and a work folder of its own."""

    tracker: Tracker
    hub: Actions
    folder: Path
    said: dict[int, Said] = field(default_factory=dict)
    """Of the runs that were judged before the test began."""

    def judge(self, run: int, *more: object) -> Said:
        summary = self.folder / f"summary-{run}.md"
        words = ("--run", run, "--work", self.folder / "work", "--lang", "both", "--summary", summary)
        return self.tracker("after-merge", *words, "--send", *more)

    def judge_all(self, runs: Sequence[int] = RUNS) -> dict[int, Said]:
        return {run: self.judge(run, "--fail-on", "regression") for run in runs}

    def comment(self, pull: int) -> str:
        (one,) = marks(self.hub.of(pull), "sweep-tracker")
        return one.body

    def check(self, run: int) -> Json:
        (one,) = [check for check in self.hub.checks.values() if check["head_sha"] == sha(run)]
        return one

    def report(self, name: str) -> Json:
        return json.loads((self.folder / "work" / "reports" / name / "comparison.json").read_text())


@pytest.fixture
def desk(tracker: Tracker, hub: Actions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    for name, value in environment(hub.address, tmp_path).items():
        monkeypatch.setenv(name, value)
    for name in ("GITHUB_EVENT_PATH", "GITHUB_STEP_SUMMARY", "GITHUB_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "withdrawn.yaml").write_text(WITHDRAWALS)
    return Desk(tracker, hub, tmp_path)


@dataclass(frozen=True)
class Chapter:
    """How far a story was told: what lay in the folder, what GitHub held, what each command said."""

    folder: Path
    state: State
    said: dict[int, Said]


Chapters = dict[tuple[int, ...], Chapter]


@pytest.fixture(scope="module")
def chapters() -> Chapters:
    """What the tests of this module have told already, by the runs."""
    return {}


def opened(desk: Desk, chapters: Chapters, runs: tuple[int, ...]) -> Desk:
    """The desk after these runs were judged: by the first test that asks, and as that one left it for the others."""
    if runs in chapters:
        told = chapters[runs]
        shutil.copytree(told.folder, desk.folder, dirs_exist_ok=True)
        desk.hub.restore(told.state)
    else:
        done = max((known for known in chapters if known == runs[: len(known)]), key=len, default=())
        before = opened(desk, chapters, done).said if done else {}
        said = before | desk.judge_all(runs[len(done) :])
        kept = desk.folder.parent / f"chapter-{len(chapters)}"
        shutil.copytree(desk.folder, kept)
        told = chapters[runs] = Chapter(kept, desk.hub.state(), said)
    desk.said = dict(told.said)
    return desk


@pytest.fixture
def after_nights(desk: Desk, chapters: Chapters) -> Desk:
    return opened(desk, chapters, NIGHTS)


@pytest.fixture
def at_the_end(desk: Desk, chapters: Chapters) -> Desk:
    opened(desk, chapters, (*BEFORE, SWEEP))
    return opened(desk, chapters, RUNS)


def environment(address: str, folder: Path) -> dict[str, str]:
    return {
        "NO_PROXY": "127.0.0.1",
        "GITHUB_TOKEN": TOKEN,
        "GITHUB_API_URL": address,
        "GITHUB_REPOSITORY": REPOSITORY,
        "TRACKER_STORE": str(folder / "tracker.duckdb"),
        "TRACKER_ARCHIVE": str(folder / "tracker.archive"),
        "TRACKER_WITHDRAWALS": str(folder / "withdrawn.yaml"),
    }


def findings(report: Json, scope: str = "curve", metric: str = "tput_per_gpu") -> list[Json]:
    return [one for one in report["findings"] if one["scope"] == scope and one["metric"] == metric]


def test_the_whole_story_is_told_as_it_happened(at_the_end: Desk) -> None:
    desk, said = at_the_end, at_the_end.said
    codes = {run: one.code for run, one in said.items()}
    assert {run: code for run, code in codes.items() if code == 1} == {}, {run: said[run].err for run in RUNS}

    # The sweep of the slower image, in two attempts, was judged as one; its merge measured nothing and edits nothing.
    assert codes[SWEEP] == codes[MERGE] == 3
    (slower,) = findings(desk.report(f"{SWEEP}-2-previous"))
    assert slower["verdict"] == "regression"
    assert -0.10 < slower["change"] < -0.05
    assert {one.split("/")[0] for one in slower["runs"]["baseline"]} <= set(map(str, NIGHTS))
    assert "verdict=regression" in desk.comment(SLOW_PULL)
    assert "A single run here can show a change of 2." in desk.comment(SLOW_PULL)
    assert desk.check(SWEEP)["conclusion"] == desk.check(MERGE)["conclusion"] == "failure"

    # A run that found nothing to do is neither a regression nor its absence, and leaves the comment alone.
    assert codes[NOTHING] == 4
    assert desk.check(NOTHING)["conclusion"] == "neutral"

    # Cancelled with all its results: judged by what it holds.
    mended = desk.comment(MENDED_PULL)
    assert "verdict=recovery" in mended
    assert "5 of 5 expected points arrived; 1 of 2 expected evals arrived; evals failed: 1." in mended
    assert "The run's conclusion is cancelled; jobs cut: 1." in mended

    # A stranger's branch is judged (a known image with other numbers), told to be unofficial, never a baseline.
    strange = desk.comment(STRANGE_PULL)
    assert "verdict=suspected" in strange
    assert "stranger/sweeps" in strange
    reports = [desk.report(path.name) for path in (desk.folder / "work" / "reports").iterdir()]
    assert {run["id"] for report in reports for run in report["baseline"]} & {STRANGE, WITHDRAWN, EXPIRED} == set()

    # Half of the matrix failed, with a software that passed elsewhere.
    assert codes[FLAKY] == 0
    flaky = desk.comment(FLAKY_PULL)
    assert "3 of 5 expected points arrived; 2 of 2 expected evals arrived; points failed: 2." in flaky
    assert f"actions/runs/{CANCELLED}" in flaky


def test_every_pull_request_has_one_comment_and_every_commit_one_check(at_the_end: Desk) -> None:
    desk = at_the_end
    first = {pull: desk.comment(pull) for pull in desk.hub.pulls}
    posts = desk.hub.count("POST")
    desk.judge_all((SWEEP, NOTHING, MERGE, CANCELLED, FLAKY))
    assert desk.hub.count("POST") == posts
    assert {pull: len(marks(desk.hub.of(pull), "sweep-tracker")) for pull in first} == dict.fromkeys(first, 1)
    assert sorted(check["head_sha"] for check in desk.hub.checks.values()) == sorted(map(sha, RUNS))


def test_a_withdrawn_night_and_an_expired_one_are_no_baseline(desk: Desk, chapters: Chapters) -> None:
    opened(desk, chapters, (*BEFORE, SWEEP))
    report = desk.report(f"{SWEEP}-2-previous")
    told = {one["id"] for one in report["baseline"]}
    assert told <= set(NIGHTS)
    withdrawn = desk.judge(WITHDRAWN, "--fail-on", "regression")
    assert withdrawn.code == 4
    expired = desk.judge(EXPIRED)
    assert "expired" in expired.out


def test_the_summary_stands_once_however_often_the_job_runs(after_nights: Desk) -> None:
    desk = after_nights
    (desk.folder / f"summary-{SWEEP}.md").write_text("what another step wrote\n")
    for _ in range(2):
        desk.judge(SWEEP)
    text = (desk.folder / f"summary-{SWEEP}.md").read_text()
    assert text.startswith("what another step wrote\n")
    assert text.count("sweep-tracker-block") == 2
    assert "判定规则" in text


def test_nothing_is_sent_unless_asked_and_the_errands_can_be_sent_by_another_job(after_nights: Desk) -> None:
    desk = after_nights
    writes = desk.hub.count("POST") + desk.hub.count("PATCH")
    kept = desk.folder / "errands.json"
    said = desk.tracker("after-merge", "--run", SWEEP, "--work", desk.folder / "work", "--keep", kept)
    assert said.code == 0
    assert desk.hub.count("POST") + desk.hub.count("PATCH") == writes
    assert f"comment on pull request {SLOW_PULL}" in said.out
    sent = desk.tracker("deliver", kept, "--head", sha(NOTHING), "--send")
    assert "comment: created" in sent.out
    assert "verdict=regression" in desk.comment(SLOW_PULL)


def test_a_late_failure_loses_nothing_and_the_next_try_goes_on(after_nights: Desk) -> None:
    desk = after_nights
    desk.hub.order("POST", "/comments$", READ_ONLY_TOKEN)
    kept = desk.folder / "kept.json"
    said = desk.judge(SWEEP, "--keep", kept)
    assert said.code == 1
    assert "forbidden" in said.out
    assert kept.exists()
    assert (desk.folder / "work" / "reports" / f"{SWEEP}-2-previous" / "comparison.json").exists()
    with Store.open(desk.folder / "tracker.duckdb", desk.folder / "tracker.archive", official=standing) as store:
        assert store.run(RunKey(SWEEP, 2)) is not None
        assert store.findings(f"{SWEEP}/2 previous")
    downloads = desk.hub.downloads
    assert desk.judge(SWEEP).code == 0
    assert desk.hub.downloads == downloads
    assert "verdict=regression" in desk.comment(SLOW_PULL)


def test_a_failed_fetch_judges_nothing(after_nights: Desk) -> None:
    desk = after_nights
    desk.hub.order("GET", rf"/runs/{SWEEP}/artifacts", READ_ONLY_TOKEN)
    said = desk.judge(SWEEP)
    assert said.code == 1
    assert desk.hub.of(SLOW_PULL) == []
    desk.hub.calm()
    assert desk.judge(SWEEP).code == 0


def test_the_event_names_the_run(after_nights: Desk) -> None:
    desk = after_nights
    event = desk.folder / "event.json"
    event.write_text(json.dumps({"workflow_run": {"id": SWEEP, "repository": {"full_name": REPOSITORY}}}))
    said = desk.tracker("after-merge", "--event", event, "--work", desk.folder / "work", "--send")
    assert said.code == 0
    assert "verdict=regression" in desk.comment(SLOW_PULL)
    assert desk.tracker("after-merge").code == 2


def test_of_the_runs_of_a_pull_request_the_one_with_the_results_is_judged(after_nights: Desk) -> None:
    desk = after_nights
    said = desk.tracker("after-merge", "--pull-request", SLOW_PULL, "--work", desk.folder / "work", "--send")
    assert said.code == 0
    assert f"judged: {SWEEP}/2 previous" in said.out
    comment = desk.comment(SLOW_PULL)
    assert "verdict=regression" in comment
    assert f"The run measured commit {sha(SWEEP)[:12]}; the head of the pull request is" in comment
    assert "(commits since: 1)." in comment
    for upload in desk.hub.uploads.values():
        upload.expired = upload.expired or upload.run == SWEEP
    nothing = desk.tracker("after-merge", "--pull-request", SLOW_PULL)
    assert nothing.code == 1
    assert f"run {NOTHING}: The run concluded success and holds no results." in nothing.err


def test_a_correction_stands_however_often_the_report_is_made_again(after_nights: Desk) -> None:
    desk = after_nights
    desk.judge(SWEEP)
    assert "Correction" not in desk.comment(SLOW_PULL)
    (desk.folder / "withdrawn.yaml").write_text(WITHDRAWALS + WITHDRAWALS.replace(str(WITHDRAWN), str(NIGHTS[1])))
    for _ in range(2):
        desk.judge(SWEEP)
        told = f"Correction: an earlier version of this report compared with run {NIGHTS[1]}/1"
        assert told in desk.comment(SLOW_PULL)
    (desk.folder / "withdrawn.yaml").write_text(WITHDRAWALS)
    desk.judge(SWEEP)
    assert "Correction" not in desk.comment(SLOW_PULL)


def test_what_had_expired_is_told_and_is_no_baseline(desk: Desk) -> None:
    desk.judge(EXPIRED)
    desk.judge(NIGHTS[0])
    said = desk.tracker("compare", f"run:{NIGHTS[0]}", "--against", f"run:{EXPIRED}", "--format", "markdown")
    assert "No baseline" in said.out
    assert f"Artifacts of baseline run {EXPIRED}/1 had expired on GitHub before they were fetched: 6, on" in said.out
    assert (
        "Results had expired on GitHub before they were fetched."
        in desk.tracker("compare", f"run:{EXPIRED}", "--format", "markdown").out
    )


def test_proposed_entries_are_written_on_a_branch_alone_and_once(after_nights: Desk) -> None:
    desk = after_nights
    home = desk.folder / "repository"
    home.mkdir()
    file = home / "perf-changelog.yaml"
    old = b'- config-keys:\n    - other\n  description:\n    - "x"\n  pr-link: https://github.com/octo/sweeps/pull/7\n'
    file.write_bytes(old)
    git = ["git", "-C", str(home)]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    writing = ("--changelog", file, "--write")
    refused = desk.judge(SWEEP, *writing)
    assert refused.code == 1
    assert "starts sweeps" in refused.err
    assert file.read_bytes() == old
    subprocess.run([*git, "checkout", "-q", "-b", "report"], check=True)
    for _ in range(2):
        assert desk.judge(SWEEP, *writing).code == 0
    new = file.read_bytes()
    assert new.startswith(old)
    assert new.count(b"config-keys") == 2
    assert f"    - {story.KEY}\n".encode() in new
    assert f"https://github.com/{REPOSITORY}/pull/{SLOW_PULL}\n".encode() in new
    assert desk.judge(SWEEP, "--write").code == 2


# --- killed ---------------------------------------------------------------------------------------------------------

KILLS = 30


def _work(address: str, folder: Path, run: int) -> None:
    """One `tracker after-merge` in a process that may be killed."""
    os.environ.update(environment(address, folder))
    with (folder / "output.txt").open("a") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    from tracker.cli import run as tracker

    words = ["after-merge", "--run", str(run), "--work", str(folder / "work"), "--lang", "both", "--send"]
    os._exit(tracker([*words, "--summary", str(folder / f"summary-{run}.md"), "--fail-on", "regression"]))


def _contents(folder: Path) -> dict[str, list[Any]]:
    """Everything that a store holds about measurements and findings, in an order of its own."""
    with Store.open(folder / "tracker.duckdb", folder / "tracker.archive", read_only=True) as store:
        keys = [RunKey(*row) for row in store.runs().select("id", "attempt").sort("id", "attempt").rows()]
        points = [sorted(map(repr, store.points(key).drop("file").rows())) for key in keys]
        rest = [
            repr((store.scores(key), store.rejections(key), sorted(map(repr, store.job_runs(key))))) for key in keys
        ]
        return {"keys": keys, "points": points, "rest": rest, "findings": sorted(map(repr, store.findings()))}


def _killed_and_killed(address: str, folder: Path, runs: Sequence[int], kills: int, codes: Mapping[int, int]) -> None:
    """SIGKILL at random moments of random steps; after each the same command again, until it ends by itself."""
    rng = random.Random(20261130)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tracker.after_merge", "tracker.cli.after_merge", "reports.channels.github"])
    left, lasted = kills, 1.0
    for number, run in enumerate(runs, 1):
        # The last runs take what the first have left over.
        wanted = min(left, -(-left // (len(runs) - number + 1)))
        while True:
            began = clock.monotonic()
            process = context.Process(target=_work, args=(address, folder, run))
            process.start()
            process.join(rng.uniform(0.02, 1.0) * lasted if wanted else None)
            if process.exitcode is None:
                os.kill(process.pid or 0, signal.SIGKILL)
                wanted, left = wanted - 1, left - 1
                process.join()
                continue
            assert process.exitcode == codes[run], (folder / "output.txt").read_text()[-3000:]
            if not wanted:
                break
            # It was faster than the kill: the next try is killed earlier.
            lasted = max(0.1, (clock.monotonic() - began) * 0.8)
    assert left == 0


def _told(hub: Actions, folder: Path) -> dict[str, Any]:
    """What people read at the end."""
    return {
        "comments": {pull: [one.body for one in hub.of(pull)] for pull in hub.pulls},
        "checks": sorted((one["head_sha"], one["conclusion"]) for one in hub.checks.values()),
        "summaries": {path.name: path.read_text() for path in folder.glob("summary-*.md")},
    }


def test_killed_thirty_times_the_story_ends_the_same(at_the_end: Desk) -> None:
    calm, rough = at_the_end.folder, at_the_end.folder / "rough"
    rough.mkdir()
    (rough / "withdrawn.yaml").write_text(WITHDRAWALS)
    with serving() as hub:
        story.told(hub)
        codes = {run: said.code for run, said in at_the_end.said.items()}
        _killed_and_killed(hub.address, rough, RUNS, KILLS, codes)
        assert hub.flaws == []
        told = _told(hub, rough)
    held, held_after = _contents(calm), _contents(rough)
    assert {name: part for name, part in held.items() if held_after[name] != part} == {}
    assert _told(at_the_end.hub, calm) == told
