"""Which sweep a merge published: every rule once, on GitHub's objects from loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from store.github import Access, Reader
from store.records import Run
from store.reuse import Candidate, Refusal, Reuse, best_run, find_reuse, latest_command
from store.runs import parse_run
from tests.github.actions import SHA, Actions, serving
from tests.github.clock import Time
from tests.github.server import TOKEN

MERGE, SWEEP = 900, 800
HEAD, OLDER = "a" * 40, "b" * 40
PULL = 1425


@pytest.fixture
def hub() -> Iterator[Actions]:
    """A merge of a pull request with one whole sweep and the command of a member."""
    with serving() as github:
        github.ran(MERGE, "2026-06-14T04:00:00Z", event="push", head_sha=SHA, conclusion="failure")
        github.proposed(PULL, HEAD, SHA, commits=[OLDER, HEAD], labels=["full-sweep-enabled"])
        swept(github, SWEEP)
        yield github
    assert github.flaws == []


def swept(
    hub: Actions, run: int, at: str = "2026-06-13T04:00:00Z", results: str = "results_bmk", **changes: Any
) -> None:
    hub.ran(run, at, **{"event": "pull_request", "head_sha": HEAD, "head_branch": "feature", **changes})
    if results:
        hub.uploaded(run, results, {"agg_bmk.json": []})


def asked(hub: Actions, body: str = "/reuse-sweep-run", at: str = "2026-06-13T12:00:00Z", **changes: Any) -> int:
    return hub.said(PULL, changes.pop("login", "ann"), body, created_at=at, **changes).id


def found(hub: Actions) -> Reuse | Refusal | None:
    with Reader(Access("octo/sweeps", TOKEN, hub.address), Time().patience()) as reader:
        return find_reuse(reader.run(MERGE), reader)


def source(hub: Actions) -> int | None:
    made = found(hub)
    return made.source.id if isinstance(made, Reuse) else None


def refused(hub: Actions) -> dict[str, Any]:
    made = found(hub)
    assert isinstance(made, Refusal), made
    return made.reason.as_dict()


# --- the command --------------------------------------------------------------------------------------------------


def test_a_reuse_says_whose_rows_who_asked_and_what_published_them(hub: Actions) -> None:
    number = asked(hub, "Sweep is green.\r\n/reuse-sweep-run\r\n")
    made = found(hub)
    assert isinstance(made, Reuse)
    assert made.as_dict() == {
        "source_run_id": SWEEP,
        "source_run_attempt": 1,
        "source_run_url": f"https://github.com/octo/sweeps/actions/runs/{SWEEP}",
        "source_pr_number": PULL,
        "source_head_sha": HEAD,
        "merge_run_id": MERGE,
        "merge_run_attempt": 1,
        "merge_run_url": f"https://github.com/octo/sweeps/actions/runs/{MERGE}",
        "merge_run_created_at": "2026-06-14T04:00:00+00:00",
        "comment": {
            "id": number,
            "url": f"https://github.com/octo/sweeps/pull/{PULL}#issuecomment-{number}",
            "login": "ann",
            "association": "MEMBER",
            "created_at": "2026-06-13T12:00:00+00:00",
        },
    }


@pytest.mark.parametrize(
    "body",
    [
        "please /reuse-sweep-run",
        "/reuse-sweep-run once it is green",
        "`/reuse-sweep-run`",
        "> /reuse-sweep-run",
        "/reuse-sweep-runs",
        f"/reuse-sweep-run {SWEEP} {SWEEP}",
        f"see /reuse-sweep-run {SWEEP}",
        "",
    ],
)
def test_words_in_prose_ask_for_nothing(hub: Actions, body: str) -> None:
    asked(hub, body)
    assert found(hub) is None


@pytest.mark.parametrize("association", ["OWNER", "MEMBER", "COLLABORATOR"])
def test_who_belongs_to_the_project_may_ask(hub: Actions, association: str) -> None:
    asked(hub, association=association)
    assert source(hub) == SWEEP


@pytest.mark.parametrize("association", ["NONE", "CONTRIBUTOR", "FIRST_TIMER", "FIRST_TIME_CONTRIBUTOR", "MANNEQUIN"])
def test_a_stranger_may_not(hub: Actions, association: str) -> None:
    asked(hub, association=association, login="mallory")
    assert refused(hub) == {"code": "reuse_unauthorised", "login": "mallory", "association": association}


def test_a_stranger_neither_supersedes_nor_hides_a_member(hub: Actions) -> None:
    swept(hub, 801)
    asked(hub, f"/reuse-sweep-run {SWEEP}")
    asked(hub, "/reuse-sweep-run 801", "2026-06-13T13:00:00Z", association="NONE")
    assert source(hub) == SWEEP


def test_a_later_command_supersedes(hub: Actions) -> None:
    swept(hub, 801)
    asked(hub, "/reuse-sweep-run 801", "2026-06-13T13:00:00Z")
    asked(hub, f"/reuse-sweep-run {SWEEP}", "2026-06-13T12:00:00Z")
    assert source(hub) == 801


def test_a_command_after_the_merge_ran_comes_too_late(hub: Actions) -> None:
    asked(hub, at="2026-06-14T05:00:00Z")
    assert found(hub) is None


def test_the_last_line_of_a_comment_counts() -> None:
    said = {"id": 1, "author_association": "MEMBER", "created_at": "2026-06-01T00:00:00Z", "user": {"login": "ann"}}
    made = latest_command([said | {"body": "/reuse-sweep-run 1\n/reuse-sweep-run 2"}], datetime(2027, 1, 1, tzinfo=UTC))
    assert made is not None
    assert made.pinned == 2


# --- the merge and its pull request -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"event": "pull_request"},
        {"event": "schedule"},
        {"head_branch": "release"},
        {"path": ".github/workflows/e2e-tests.yml"},
    ],
)
def test_only_the_sweep_of_a_push_on_main_can_reuse(hub: Actions, changes: dict[str, Any]) -> None:
    asked(hub)
    hub.runs[MERGE][-1] |= changes
    assert found(hub) is None


def test_a_commit_of_no_or_several_pull_requests_is_of_none(hub: Actions) -> None:
    asked(hub)
    hub.proposed(7, "d" * 40, SHA, labels=["full-sweep-enabled"])
    assert refused(hub) == {"code": "reuse_pull_requests", "count": 2, "sha": SHA}
    hub.commits.clear()
    assert refused(hub)["count"] == 0


def test_a_pull_request_that_is_open_was_not_merged(hub: Actions) -> None:
    asked(hub)
    hub.pulls[PULL].merged = False
    assert refused(hub) == {"code": "reuse_not_merged", "pull": PULL}


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ([], {"code": "reuse_full_labels", "count": 0, "labels": ""}),
        (["all-evals"], {"code": "reuse_full_labels", "count": 0, "labels": ""}),
        (
            ["full-sweep-enabled", "full-sweep-fail-fast"],
            {"code": "reuse_full_labels", "count": 2, "labels": "full-sweep-enabled, full-sweep-fail-fast"},
        ),
        (["full-sweep-enabled", "evals-only"], {"code": "reuse_partial_sweep", "labels": "evals-only"}),
        (["full-sweep-enabled", "agentx-fast"], {"code": "reuse_partial_sweep", "labels": "agentx-fast"}),
        (["full-sweep-enabled", "sweep-enabled"], {"code": "reuse_partial_sweep", "labels": "sweep-enabled"}),
    ],
)
def test_labels_that_trim_a_sweep_forbid_its_reuse(hub: Actions, labels: list[str], told: dict[str, Any]) -> None:
    asked(hub)
    hub.pulls[PULL].labels = labels
    assert refused(hub) == told


# --- the sweep ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("conclusion", ["success", "failure", "cancelled"])
def test_a_named_run_may_have_ended_in_any_way(hub: Actions, conclusion: str) -> None:
    asked(hub, "/reuse-sweep-run 801")
    swept(hub, 801, conclusion=conclusion)
    assert source(hub) == 801


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"path": ".github/workflows/e2e-tests.yml"}, {"code": "reuse_other_workflow"}),
        ({"event": "workflow_dispatch"}, {"code": "reuse_other_event", "event": "workflow_dispatch"}),
        ({"status": "in_progress", "conclusion": None}, {"code": "reuse_not_completed", "status": "in_progress"}),
        ({"head_sha": "d" * 40}, {"code": "reuse_other_head", "sha": "d" * 40}),
        ({"head_repository": "stranger/sweeps"}, {"code": "reuse_other_head", "sha": HEAD}),
        ({"results": ""}, {"code": "reuse_no_results"}),
        ({"results": "server_logs_1"}, {"code": "reuse_no_results"}),
        ({"at": "2026-06-15T04:00:00Z"}, {"code": "reuse_later_run"}),
    ],
)
def test_a_named_run_must_be_a_sweep_of_the_pull_request(
    hub: Actions, changes: dict[str, Any], told: dict[str, Any]
) -> None:
    asked(hub, "/reuse-sweep-run 801")
    swept(hub, 801, **changes)
    assert refused(hub).items() >= {**told, "run": 801}.items()


def test_a_named_run_that_does_not_exist(hub: Actions) -> None:
    asked(hub, "/reuse-sweep-run 999999999999999999")
    assert refused(hub) == {"code": "reuse_run_missing", "run": 999999999999999999}


def test_a_named_run_whose_results_have_expired(hub: Actions) -> None:
    asked(hub, f"/reuse-sweep-run {SWEEP}")
    for upload in hub.uploads.values():
        upload.expired = True
    assert refused(hub) == {"code": "reuse_expired", "run": SWEEP, "on": "2026-09-12"}


def test_without_a_name_it_is_the_latest_that_succeeded_and_has_results(hub: Actions) -> None:
    asked(hub)
    swept(hub, 801, "2026-06-13T05:00:00Z", "bmk_dsr1_tp8", head_sha=OLDER)
    swept(hub, 802, "2026-06-13T06:00:00Z", conclusion="cancelled")
    swept(hub, 803, "2026-06-13T07:00:00Z", "")
    swept(hub, 804, "2026-06-13T08:00:00Z", head_sha="d" * 40)
    swept(hub, 805, "2026-06-13T09:00:00Z", path=".github/workflows/e2e-tests.yml")
    swept(hub, 806, "2026-06-13T10:00:00Z", event="workflow_dispatch")
    swept(hub, 807, "2026-06-14T10:00:00Z")
    assert source(hub) == 801


def test_without_a_name_no_older_one_takes_the_place_of_one_that_has_expired(hub: Actions) -> None:
    asked(hub)
    swept(hub, 801, "2026-06-13T05:00:00Z")
    next(one for one in hub.uploads.values() if one.run == 801).expired = True
    assert refused(hub)["code"] == "reuse_expired"


def test_without_a_name_and_without_a_run_that_fits(hub: Actions) -> None:
    asked(hub)
    hub.uploads.clear()
    assert refused(hub) == {"code": "reuse_no_run", "commits": 2, "runs": 1}


def test_the_attempt_that_the_merge_saw_counts(hub: Actions) -> None:
    asked(hub)
    hub.ran(SWEEP, "2026-06-15T04:00:00Z", event="pull_request", head_sha=HEAD, conclusion="failure")
    made = found(hub)
    assert isinstance(made, Reuse)
    assert (made.source.id, made.source.attempt) == (SWEEP, 1)


def test_a_run_of_a_commit_that_was_rebased_away_is_of_no_pull_request(hub: Actions) -> None:
    asked(hub, f"/reuse-sweep-run {SWEEP}")
    hub.pulls[PULL].commits = ["d" * 40]
    assert refused(hub)["code"] == "reuse_other_head"


# --- which of several runs ----------------------------------------------------------------------------------------


def candidate(number: int, results: int, conclusion: str = "success", hour: int = 1) -> Candidate:
    names = (*(f"bmk_c{conc}" for conc in range(results)), "run-stats")
    at = datetime(2026, 7, 27, hour, tzinfo=UTC)
    return Candidate(Run(number, 1, at, conclusion=conclusion), names if results else ())


def test_a_run_is_chosen_by_what_it_holds() -> None:
    partial, whole, gated = candidate(1, 2), candidate(2, 12, "cancelled", 9), candidate(3, 0, hour=12)
    choice = best_run([gated, partial, whole], 12)
    assert choice.chosen is whole
    assert [caveat.as_dict() for caveat in choice.caveats] == [{"code": "run_concluded", "conclusion": "cancelled"}]
    assert [(one.run.id, lack.as_dict()) for one, lack in choice.rejected] == [
        (3, {"code": "nothing_to_ingest", "conclusion": "success"}),
        (1, {"code": "incomplete_run", "have": 2, "need": 12}),
    ]


def test_of_whole_runs_the_newest_counts() -> None:
    older, newer = candidate(5, 4, hour=1), candidate(4, 5, hour=2)
    choice = best_run([older, newer], 4)
    assert choice.chosen is newer
    assert choice.caveats == ()
    assert [lack.as_dict() for _, lack in choice.rejected] == [{"code": "newer_run", "run": 4}]


def test_parts_of_a_sweep_are_no_sweep() -> None:
    twice = Candidate(candidate(1, 1).run, ("bmk_c1", "bmk_c1", "bmk_c1"))
    choice = best_run([twice, candidate(2, 0)], 3)
    assert choice.chosen is None
    assert {lack.code for _, lack in choice.rejected} == {"incomplete_run", "nothing_to_ingest"}
    with pytest.raises(ValueError, match="expected"):
        best_run([twice], 0)


@pytest.mark.shared
def test_case_09_the_source_run_that_counts(shared: Path) -> None:
    case = shared / "cases" / "09-which-source-run-counts"
    expected = len(json.loads((case / "expected_matrix.json").read_text())["conc"])
    told = json.loads((case / "runs.json").read_text())
    choice = best_run([Candidate(parse_run(one), tuple(one["artifacts"])) for one in told], expected)
    assert choice.chosen is not None
    assert (choice.chosen.run.id, choice.chosen.results) == (702, 12)
    assert [caveat.as_dict()["conclusion"] for caveat in choice.caveats] == ["cancelled"]
    assert {one.run.id: lack.as_dict() for one, lack in choice.rejected} == {
        703: {"code": "nothing_to_ingest", "conclusion": "success"},
        701: {"code": "incomplete_run", "have": 2, "need": 12},
    }
