"""What `tracker evidence` asks GitHub, and what it says where an answer is in pieces, elsewhere, or refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli import Said, Tracker
from tests.github import story
from tests.github.actions import Actions, serving
from tests.github.server import READ_ONLY_TOKEN, TOKEN
from tests.github.story import FORK, IMAGE, KEY, SLOWER, master, sha
from tests.proposals import PHRASE, changelog, diff, entry, policies, proposed, signed
from tests.test_after_merge import environment
from tests.test_evidence_threads import proof, states

PULL, RUN, OLD, GATED = 77, 30000000100, 30000000099, 30000000101
MASTER = "configs/nvidia-master.yaml"
HEAD = sha(RUN)


@pytest.fixture
def hub() -> Iterator[Actions]:
    """A pull request that bumps one image, with a sweep on its head that passed."""
    with serving() as github:
        policies(github)
        propose(github)
        swept(github, RUN)
        github.said(PULL, "codeowner-1", signed(RUN))
        github.said(PULL, "author", "/reuse-sweep-run", association="MEMBER")
        yield github
    assert github.flaws == []


def propose(hub: Actions, files: int = 0, **changes: Any) -> None:
    more = [diff(f"notes/{place}.txt", "x") for place in range(files)]
    text = entry(KEY, f"Update image from {IMAGE} to {SLOWER}", pull=PULL)
    proposed(
        hub, PULL,
        {MASTER: master(IMAGE), "perf-changelog.yaml": changelog()},
        {MASTER: master(SLOWER), "perf-changelog.yaml": changelog(text)},
        [diff(MASTER, f"  image: {SLOWER}"), diff("perf-changelog.yaml", "- config-keys:"), *more],
        **{"head": HEAD, "commits": [HEAD], "branch": "bump", "labels": ["full-sweep-enabled"]} | changes,
    )  # fmt: skip


def swept(hub: Actions, run: int, failed: tuple[int, ...] = ()) -> None:
    pull = {"event": "pull_request", "head_branch": "bump", "head_sha": sha(run)}
    hub.ran(run, "2026-07-06T08:00:00Z", **pull, conclusion="failure" if failed else "success")
    hub.committed(sha(run), {MASTER: master(SLOWER)})
    story.changelog(hub, run, "2026-07-06T08:10:00Z", "Bump", PULL)
    story.measured(hub, run, "2026-07-06T09:00:00Z", SLOWER, 1.0)
    story.jobs(hub, run, failed=failed)
    story.evaluated(hub, run, "2026-07-06T09:30:00Z")
    for conc in story.EVALUATED:
        hub.ran_job(run, f"eval / {story.title(conc)} | eval-only")


@pytest.fixture
def told(tracker: Tracker, hub: Actions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, value in environment(hub.address, tmp_path).items():
        monkeypatch.setenv(name, value)

    def tell(*more: object, pull: int = PULL) -> Said:
        said = tracker("evidence", "--pull-request", pull, "--work", tmp_path / "work", *more)
        assert TOKEN not in said.out + said.err
        return said

    return tell


def test_a_sound_pull_request(told: Any) -> None:
    said = told("--fail-on", "does-not-hold")
    found = states(said)
    # The recipe is linked nowhere: that alone is wrong.
    assert [name for name, state in found.items() if state == "does_not_hold"] == ["recipe"]
    assert said.code == 3
    assert said.json["evidence"].startswith(f"Exact-head Run Sweep {RUN} ")
    assert said.json["caveats"] == []


def test_lists_come_in_pages(hub: Actions, told: Any) -> None:
    hub.page_size = 2
    hub.commits.clear()
    propose(hub, files=5)
    for _ in range(5):
        hub.said(PULL, "reader", "Fine.")
    said = told()
    assert proof(said, "owner")["catch_all"]["values"]["count"] == 6
    assert states(said)["sweep"] == states(said)["command"] == states(said)["checklist"] == "holds"


def test_files_that_github_does_not_list_make_their_rows_unknown(hub: Actions, told: Any) -> None:
    hub.pulls[PULL].more_files = 3000
    found = states(said := told())
    assert (found["owner"], found["overrides"], found["changelog_keys"]) == ("not_known",) * 3
    assert "3002" in proof(said, "owner")["not_read"]["values"]["reason"]
    assert found["sweep"] == "holds"


def test_a_linked_pull_request_is_asked_for_its_state(hub: Actions, told: Any) -> None:
    hub.pulls[PULL].body = "Recipe: https://github.com/sgl-project/sglang/pull/900"
    assert states(told())["recipe"] == "not_known"
    hub.opened(900, "d" * 40, "e" * 40)
    assert states(told())["recipe"] == "does_not_hold"
    hub.pulls[900].merged = True
    assert states(told())["recipe"] == "holds"
    assert ("GET", "/repos/sgl-project/sglang/pulls/900") in hub.requests


def test_the_head_of_a_fork_is_read_in_the_fork(hub: Actions, told: Any) -> None:
    hub.commits.clear()
    del hub.files[story.REPOSITORY, HEAD]
    propose(hub, repository=FORK)
    hub.runs[RUN][-1]["head_repository"] = FORK
    said = told()
    assert proof(said, "image")["upstream_image"]["values"] == {"image": SLOWER}
    assert [one["code"] for one in said.json["caveats"]] == ["from_fork"]
    assert states(said)["changelog_keys"] == "holds"


def test_a_head_that_is_shown_nowhere_leaves_its_configs_unknown(hub: Actions, told: Any) -> None:
    hub.pulls[PULL].repository = FORK
    del hub.files[story.REPOSITORY, HEAD]
    said = told()
    assert {"from_fork", "not_read"} <= {one["code"] for one in said.json["caveats"]}
    assert {states(said)[name] for name in ("image", "lineup", "topology", "router")} == {"not_known"}


def test_a_run_that_was_forced_out_proves_nothing(hub: Actions, told: Any) -> None:
    swept(hub, OLD)
    hub.pulls[PULL].reviews = [{"login": "codeowner-2", "body": signed(OLD), "submitted_at": "2026-07-08T00:00:00Z"}]
    said = told()
    # The sign-off names the old run; the one on the head speaks.
    assert states(said)["sweep"] == "holds"
    assert proof(said, "sweep")["named_gone"]["values"] == {"run": str(OLD)}
    assert proof(said, "owner")["signer"]["values"] == {"login": "codeowner-2"}
    hub.runs[RUN][-1]["event"] = "workflow_dispatch"
    said = told()
    assert states(said)["sweep"] == "does_not_hold"
    assert proof(said, "sweep")["commit_gone"]["values"]["commit"] == sha(OLD)[:12]
    assert said.json["evidence"] is None


def test_a_gated_run_has_executed_nothing(hub: Actions, told: Any) -> None:
    hub.pulls[PULL].commits = [HEAD, sha(GATED)]
    hub.pulls[PULL].head = sha(GATED)
    hub.parted["main", sha(GATED)] = "b" * 40
    hub.committed(sha(GATED), hub.files[story.REPOSITORY, HEAD])
    hub.ran(GATED, "2026-07-07T08:00:00Z", event="pull_request", head_branch="bump", head_sha=sha(GATED))
    hub.ran_job(GATED, "reuse-sweep-gate")
    hub.ran_job(GATED, "single-node 8k1k", "skipped")
    said = told()
    assert states(said)["sweep"] == "holds"
    assert proof(said, "sweep")["commit_in_pull"]["values"]["run"] == str(RUN)
    del hub.runs[RUN]
    said = told()
    assert states(said)["sweep"] == "does_not_hold"
    assert proof(said, "sweep")["no_jobs"]["values"] == {"skipped": 1}


def test_a_failed_job_that_passed_again_is_told(hub: Actions, told: Any) -> None:
    hub.jobs[RUN].clear()
    story.jobs(hub, RUN, failed=(64,))
    hub.ran(RUN, "2026-07-06T12:00:00Z", event="pull_request", head_branch="bump", head_sha=HEAD)
    story.jobs(hub, RUN, attempt=2, concs=(64,))
    for conc in story.EVALUATED:
        hub.ran_job(RUN, f"eval / {story.title(conc)} | eval-only")
    said = told()
    assert (states(said)["sweep"], states(said)["attempt"]) == ("holds", "flagged")
    assert [one["code"] for one in said.json["caveats"]] == ["run_attempt"]


def test_missing_files_of_the_base_branch(hub: Actions, told: Any) -> None:
    hub.files[story.REPOSITORY, "main"].clear()
    said = told()
    expected = {"owner": "no_owners_file", "checklist": "no_checklist", "lineup": "no_lineup"}
    for name, code in expected.items():
        assert (states(said)[name], code in proof(said, name)) == ("not_known", True)
    # Without a file the thresholds that the tracker ships apply.
    assert proof(said, "evals")["scores"]["values"]["mark"] == 0.91


@pytest.mark.parametrize(
    ("path", "row"),
    [("/files", "owner"), ("/comments", "command"), ("/jobs", "sweep"), ("/artifacts", "evals"), ("/compare/", "")],
)
def test_what_the_token_may_not_read_is_not_known(hub: Actions, told: Any, path: str, row: str) -> None:
    hub.order("GET", path, *[READ_ONLY_TOKEN] * 9)
    said = told()
    assert said.code == 0, said.err
    assert "not_read" in {one["code"] for one in said.json["caveats"]}
    assert row == "" or states(said)[row] == "not_known"


def test_a_pull_request_that_is_not_there_is_an_error(told: Any) -> None:
    said = told(pull=78)
    assert (said.code, said.out) == (1, "")
    assert "pull request 78" in said.err
    assert "--repo" in said.err


def test_a_sign_off_of_a_bot_or_in_a_quote_is_none(hub: Actions, told: Any) -> None:
    hub.comments.clear()
    hub.said(PULL, "helper[bot]", signed(RUN))
    hub.said(PULL, "reader", f"> {PHRASE}")
    said = told()
    assert "no_sign_off" in proof(said, "owner")
    assert states(said)["checklist"] == "not_known"


def test_the_words_go_to_a_file(told: Any, tmp_path: Path) -> None:
    said = told("--format", "markdown", "--lang", "both", "--out", tmp_path / "e.md")
    assert (said.code, said.out) == (0, "")
    text = (tmp_path / "e.md").read_text()
    assert text.count("| 12 |") == 2
    assert "\n---\n" in text
    assert "证据语句" in text
