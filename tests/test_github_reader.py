"""The Reader's answers: whole or an exception, for jobs, pull requests, comments, runs and files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from store import limits
from store.github import Access, Incomplete, NotThere, Reader, TooLarge
from store.records import Trouble
from tests.github import actions
from tests.github.actions import SHA, Actions
from tests.github.clock import Time
from tests.github.description import Call
from tests.github.server import BAD_GATEWAY, SECONDARY, TOKEN, Answer, Fault

RUN = 27489075807
HEAD = "a" * 40
LIMITED = Fault(403, SECONDARY, {"retry-after": "2"})
FORK = "stranger/sweeps"


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def reader(hub: Actions, time: Time) -> Iterator[Reader]:
    with Reader(Access("octo/sweeps", TOKEN, hub.address), time.patience()) as made:
        yield made


# --- lists --------------------------------------------------------------------------------------------------------


def test_jobs_are_those_of_all_attempts(hub: Actions, reader: Reader) -> None:
    hub.ran(RUN)
    hub.ran(RUN, "2026-06-14T06:00:00Z")
    hub.ran_job(RUN, "single-node 8k1k / dsr1", "failure", attempt=1)
    hub.ran_job(RUN, "single-node 8k1k / dsr1", "success", attempt=2)
    hub.ran_job(RUN, "eval", None, attempt=2)
    told = [(one["name"], one["run_attempt"], one["conclusion"]) for one in reader.jobs(RUN)]
    assert told == [
        ("single-node 8k1k / dsr1", 1, "failure"),
        ("single-node 8k1k / dsr1", 2, "success"),
        ("eval", 2, None),
    ]


def filled(hub: Actions) -> dict[str, Callable[[Reader], tuple[Any, ...]]]:
    """140 of everything, 30 a page."""
    hub.page_size = 30
    hub.ran(RUN)
    hub.proposed(7, "0" * 40, commits=[f"{number:040x}" for number in range(140)], branch="topic")
    for number in range(140):
        hub.ran_job(RUN, f"job {number}")
        hub.said(7, "somebody", f"comment {number}")
        hub.ran(1000 + number, head_sha=HEAD)
        hub.uploaded(RUN, f"server_logs_{number}", b"")
        hub.proposed(100 + number, HEAD, branch="crowded")
    return {
        "jobs": lambda reader: reader.jobs(RUN),
        "comments": lambda reader: reader.comments(7),
        "commits": lambda reader: reader.pull_commits(7),
        "runs": lambda reader: reader.runs_of(HEAD),
        "artifacts": lambda reader: reader.artifacts(RUN),
        "pulls": lambda reader: reader.pulls_with_head("octo", "crowded"),
    }


LISTS = ["jobs", "comments", "commits", "runs", "artifacts", "pulls"]


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("fault", [LIMITED, BAD_GATEWAY], ids=["limit", "502"])
def test_a_list_goes_on_with_the_page_that_failed(
    hub: Actions, reader: Reader, time: Time, name: str, fault: Fault
) -> None:
    ask = filled(hub)[name]
    hub.order("GET", r"[?&]page=3", fault)
    assert len(set(map(str, ask(reader)))) == 140
    assert time.slept == [2.0 if fault is LIMITED else 1.0]
    assert hub.count("GET", r"[?&]page=2\b") == 1


@pytest.mark.parametrize("name", LISTS)
def test_a_limit_in_the_middle_that_does_not_end_is_an_error(hub: Actions, reader: Reader, name: str) -> None:
    ask = filled(hub)[name]
    hub.order("GET", r"[?&]page=3", *[LIMITED] * 12)
    with pytest.raises(Trouble, match=r"rate limit of GitHub: 403 .*12 requests failed"):
        ask(reader)


@pytest.mark.parametrize(
    ("path", "key", "ask"),
    [
        ("/actions/runs/{run_id}/jobs", "jobs", "jobs"),
        ("/actions/runs/{run_id}/artifacts", "artifacts", "artifacts"),
        ("/actions/runs", "workflow_runs", "runs"),
    ],
)
def test_a_list_shorter_than_its_count_is_no_list(
    hub: Actions, reader: Reader, monkeypatch: pytest.MonkeyPatch, path: str, key: str, ask: str
) -> None:
    route = ("GET", f"/repos/{{owner}}/{{repo}}{path}")
    whole = actions.ROUTES[route]

    def short(github: Actions, asked: Call) -> Answer:
        status, told = whole(github, asked)
        return status, told | {key: told[key][:100]}

    asked = filled(hub)[ask]
    monkeypatch.setitem(actions.ROUTES, route, short)
    with pytest.raises(Trouble, match="100 of 140 entries"):
        asked(reader)


def test_more_commits_than_github_lists_are_told(hub: Actions, reader: Reader) -> None:
    hub.proposed(7, "f" * 40, commits=[f"{number:040x}" for number in range(300)])
    with pytest.raises(Incomplete, match="only 250 of 300 commits of pull request 7") as part:
        reader.pull_commits(7)
    assert len(part.value.seen) == 250


def test_comments_say_who_wrote_them(hub: Actions, reader: Reader) -> None:
    hub.opened(7)
    hub.said(7, "stranger", "hello", association="NONE", created_at="2026-06-02T00:00:00Z")
    (one,) = reader.comments(7)
    assert (one["user"]["login"], one["author_association"]) == ("stranger", "NONE")
    assert (one["body"], one["created_at"]) == ("hello", "2026-06-02T00:00:00Z")


def test_runs_are_those_of_the_commit(hub: Actions, reader: Reader) -> None:
    hub.ran(1, head_sha=HEAD)
    hub.ran(2, "2026-06-15T04:00:00Z", head_sha=HEAD, event="pull_request")
    hub.ran(3)
    assert [one["id"] for one in reader.runs_of(HEAD)] == [2, 1]


def test_a_pull_request_tells_labels_and_head(hub: Actions, reader: Reader) -> None:
    hub.proposed(7, HEAD, SHA, labels=["full-sweep-enabled"], repository=FORK, branch="topic")
    told = reader.pull(7)
    assert [one["name"] for one in told["labels"]] == ["full-sweep-enabled"]
    assert (told["merged"], told["state"], told["merge_commit_sha"]) == (True, "closed", SHA)
    assert (told["head"]["sha"], told["head"]["ref"], told["head"]["repo"]["full_name"]) == (HEAD, "topic", FORK)
    assert [one["number"] for one in reader.pulls_with_head("stranger", "topic")] == [7]
    assert reader.pulls_with_head("octo", "topic") == ()


@pytest.mark.parametrize(
    "ask",
    [lambda reader: reader.run(5), lambda reader: reader.jobs(5), lambda reader: reader.pull(5)],
    ids=["run", "jobs", "pull"],
)
def test_what_is_not_there_is_told_as_such(reader: Reader, time: Time, ask: Callable[[Reader], Any]) -> None:
    with pytest.raises(NotThere, match="check the id"):
        ask(reader)
    assert time.slept == []


# --- files --------------------------------------------------------------------------------------------------------


def test_files_come_whole_whatever_their_size(hub: Actions, reader: Reader) -> None:
    large = b"x" * (2 * 1024**2)
    hub.committed(SHA, {"configs/a-master.yaml": "a: 1\n", "configs/large.yaml": large, "configs/deep/b.yaml": "b"})
    assert reader.listing("configs", SHA) == ("a-master.yaml", "large.yaml")
    assert reader.file("configs/a-master.yaml", SHA) == b"a: 1\n"
    assert reader.file("configs/large.yaml", SHA) == large


def test_a_missing_file_is_no_missing_commit(hub: Actions, reader: Reader) -> None:
    hub.committed(SHA, {"README.md": ""})
    assert reader.file("configs/a.yaml", SHA) is None
    assert reader.listing("configs", SHA) == ()
    for ask in (reader.file, reader.listing):
        with pytest.raises(NotThere, match="No commit found"):
            ask("configs", HEAD)


def test_a_file_of_a_fork_is_read_there(hub: Actions, reader: Reader) -> None:
    hub.committed(HEAD, {"configs/a.yaml": "fork"}, FORK)
    assert reader.file("configs/a.yaml", HEAD, FORK) == b"fork"
    assert reader.listing("configs", HEAD, FORK) == ("a.yaml",)


def test_a_file_is_read_up_to_a_size(hub: Actions, reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DOWNLOAD_FILE_BYTES", 10)
    hub.committed(SHA, {"configs/a.yaml": "12345678901"})
    with pytest.raises(TooLarge, match="more than 10 bytes"):
        reader.file("configs/a.yaml", SHA)


def test_a_file_is_asked_for_again_after_a_fault(hub: Actions, reader: Reader, time: Time) -> None:
    hub.committed(SHA, {"configs/a.yaml": "a"})
    hub.order("GET", "/contents/", LIMITED, BAD_GATEWAY)
    assert reader.file("configs/a.yaml", SHA) == b"a"
    assert time.slept[0] == 2.0


# --- the pull request of a run ------------------------------------------------------------------------------------


def of(hub: Actions, reader: Reader, event: str = "pull_request", **changes: Any) -> int | None:
    hub.ran(RUN, **{"event": event, "head_sha": HEAD, "head_branch": "topic", **changes})
    return reader.pull_of(reader.run(RUN))


def test_of_two_repositories_with_one_branch_name_the_runs_own_counts(hub: Actions, reader: Reader) -> None:
    hub.proposed(7, HEAD, branch="topic", repository="stranger/sweeps")
    hub.proposed(8, HEAD, branch="topic", repository="stranger/another-fork")
    hub.proposed(9, HEAD, branch="topic")
    assert of(hub, reader, head_repository="stranger/sweeps") == 7


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"head_branch": "other"}, "branch"),
        ({"head_sha": "b" * 40}, "commit"),
        ({"head_repository": "thief/sweeps"}, "owner"),
        ({"head_repository": "stranger/other"}, "repository"),
        ({"event": "schedule"}, "event"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_whatever_does_not_fit_is_no_pull_request(
    hub: Actions, reader: Reader, changes: dict[str, Any], why: str
) -> None:
    hub.proposed(7, HEAD, branch="topic", repository=FORK)
    assert of(hub, reader, **{"head_repository": FORK, **changes}) is None


def test_a_run_or_a_pull_request_of_a_deleted_fork_fits_nothing(hub: Actions, reader: Reader) -> None:
    hub.proposed(7, HEAD, branch="topic", repository=None)
    assert of(hub, reader) is None
    assert reader.pull_of(reader.run(RUN) | {"head_repository": None}) is None


def test_a_pull_request_that_went_on_still_has_its_older_run(hub: Actions, reader: Reader) -> None:
    hub.proposed(7, "b" * 40, branch="topic", repository=FORK, commits=[HEAD, "b" * 40])
    hub.proposed(8, "c" * 40, branch="topic", repository=FORK)
    assert of(hub, reader, head_repository=FORK) == 7


def test_several_that_fit_are_none(hub: Actions, reader: Reader) -> None:
    hub.proposed(7, HEAD, branch="topic")
    hub.proposed(8, HEAD, branch="topic", base="release")
    assert of(hub, reader) is None


def test_a_merge_is_of_the_pull_request_that_it_merged(hub: Actions, reader: Reader) -> None:
    hub.proposed(7, "b" * 40, HEAD)
    hub.proposed(8, HEAD, branch="topic")
    assert of(hub, reader, "push") == 7


def test_what_github_names_itself_counts_unless_it_is_of_a_fork(hub: Actions, reader: Reader) -> None:
    hub.ran(RUN, event="pull_request")
    run = reader.run(RUN)

    def named(number: int, home: int) -> dict[str, Any]:
        return {"number": number, "base": {"repo": {"id": home}}}

    home = run["repository"]["id"]
    assert reader.pull_of(run | {"pull_requests": [named(3, home + 1), named(4, home)]}) == 4
    assert reader.pull_of(run | {"pull_requests": [named(3, home), named(4, home)]}) is None
