"""Run objects, addresses, times and the standing of a run."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from store.records import Caveat, RunKey
from store.runs import (
    OFFICIAL_WORKFLOWS,
    local_run,
    parse_run,
    parse_time,
    parse_url,
    standing,
)

OBJECT = {
    "id": 27489075807,
    "name": "Run Sweep",
    "display_title": "bump image",
    "path": ".github/workflows/run-sweep.yml",
    "event": "push",
    "head_branch": "main",
    "head_sha": "a" * 40,
    "status": "completed",
    "conclusion": "success",
    "run_attempt": 2,
    "run_started_at": "2026-06-14T08:43:25+02:00",
    "created_at": "2026-06-14T06:00:00Z",
    "html_url": "https://github.com/example-org/bench/actions/runs/27489075807",
    "pull_requests": [{"number": 2031}],
    "repository": {"full_name": "example-org/bench"},
}


def test_a_run_object_is_read_whole():
    run = parse_run(OBJECT)
    assert (run.id, run.attempt, run.title, run.pull_request) == (27489075807, 2, "bump image", 2031)
    assert run.started_at == datetime(2026, 6, 14, 6, 43, 25, tzinfo=UTC)
    assert run.created_at == datetime(2026, 6, 14, 6, tzinfo=UTC)
    assert (run.repository, run.conclusion, run.published) == ("example-org/bench", "success", False)


def test_the_least_of_a_run_is_its_id_and_a_time():
    run = parse_run({"id": "12", "created_at": "2026-06-14T06:00:00Z"})
    assert (run.id, run.attempt, run.started_at, run.event) == (12, 1, run.created_at, None)


@pytest.mark.parametrize(
    ("changes", "repository"),
    [
        ({}, "example-org/bench"),
        ({"repository": "example-org/other"}, "example-org/other"),
        ({"repository": None}, "example-org/bench"),
        ({"repository": {"full_name": "SemiAnalysisAI/InferenceMAX"}}, "SemiAnalysisAI/InferenceX"),
        ({"repository": None, "html_url": None}, ""),
    ],
)
def test_a_repository_has_one_name(changes, repository):
    assert parse_run({**OBJECT, **changes}).repository == repository


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"id": None}, "id"),
        ({"id": "27a"}, "id"),
        ({"id": -5}, "id"),
        ({"id": True}, "id"),
        ({"id": 2**63}, "id"),
        ({"run_attempt": 0}, "run_attempt"),
        ({"run_started_at": "yesterday"}, "run_started_at"),
        ({"run_started_at": 5}, "run_started_at"),
        ({"created_at": "0001-01-01T00:00:00+14:00"}, "created_at"),
        ({"event": ["push"]}, "event"),
        ({"run_started_at": None, "created_at": ""}, "run_started_at"),
    ],
)
def test_a_bad_field_raises_with_its_name_and_what_to_do(changes, named):
    with pytest.raises(ValueError, match=rf"{named}.*gh api"):
        parse_run({**OBJECT, **changes})


@pytest.mark.parametrize("value", [None, [], "run", 3])
def test_what_is_no_object_is_no_run(value):
    with pytest.raises(ValueError, match="JSON object"):
        parse_run(value)


@pytest.mark.parametrize("pulls", [None, [], [3], "2031", [{"number": "x"}], [{"number": True}], {"number": 1}])
def test_a_pull_request_that_is_not_named_is_none(pulls):
    assert parse_run({**OBJECT, "pull_requests": pulls}).pull_request is None


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ({}, []),
        ({"event": "schedule"}, []),
        ({"conclusion": "failure"}, []),
        ({"path": ".github/workflows/run-sweep.yml@refs/heads/main"}, []),
        ({"path": ".github/workflows/full-sweep-1k8k-scheduler.yml", "event": "schedule"}, []),
        ({"path": ".github/workflows/e2e-tests.yml"}, ["unofficial_path"]),
        ({"path": None}, ["unofficial_path"]),
        ({"event": "pull_request", "head_branch": "x"}, ["unofficial_event", "unofficial_branch"]),
        ({"event": "workflow_dispatch"}, ["unofficial_event"]),
        ({"head_branch": "mainline"}, ["unofficial_branch"]),
    ],
)
def test_official_is_the_sweep_on_main_by_itself(changes, codes):
    judged = standing(parse_run({**OBJECT, **changes}))
    assert [reason.code for reason in judged.reasons] == codes
    assert judged.official == (not codes)


def test_reasons_say_what_stood_there():
    judged = standing(parse_run({**OBJECT, "event": "workflow_dispatch"}))
    assert judged.reasons == (Caveat.of("unofficial_event", event="workflow_dispatch"),)


def test_what_was_published_is_official_and_what_is_local_is_not():
    assert standing(parse_run({**OBJECT, "event": None, "path": None}, published=True)).official
    assert not standing(local_run("ab" * 32, datetime(2026, 1, 1, tzinfo=UTC))).official


REUSE = {"reused_by": RunKey(27489999999)}
PULL = {"event": "pull_request", "head_branch": "bump"}


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ({**PULL, **REUSE}, []),
        ({**PULL, **REUSE, "labels": ("full-sweep-fail-fast", "skip_queue")}, []),
        ({**PULL, **REUSE, "labels": ("agentx-fast",)}, ["unofficial_label"]),
        ({**PULL, **REUSE, "labels": ("evals-only",)}, ["unofficial_label"]),
        (
            {**PULL, **REUSE, "labels": ("sweep-enabled",)},
            ["unofficial_reuse", "unofficial_event", "unofficial_branch"],
        ),
        ({**PULL, **REUSE, "labels": ("sweep-enabled", "full-sweep-enabled")}, []),
        ({**PULL, **REUSE, "head_repository": "somebody/bench"}, ["unofficial_fork"]),
        ({**PULL, **REUSE, "head_repository": "Example-Org/Bench"}, []),
        ({**PULL, **REUSE, "head_repository": "somebody/bench", "repository": ""}, []),
        ({"labels": ("sweep-enabled",)}, []),
        ({"labels": ("agentx-fast",)}, ["unofficial_label"]),
        ({"published": True, "labels": ("agentx-fast",), "event": None}, ["unofficial_label"]),
        ({"published": True, "head_repository": "somebody/bench"}, ["unofficial_fork"]),
        ({**PULL, "labels": ("agentx-fast",)}, ["unofficial_event", "unofficial_branch", "unofficial_label"]),
    ],
)
def test_official_needs_one_ground_and_no_bar(changes, codes):
    judged = standing(replace(parse_run(OBJECT), **changes))
    assert [reason.code for reason in judged.reasons] == codes
    assert judged.official == (not codes)


def test_a_local_run_is_known_by_its_content():
    start = datetime(2026, 1, 1, tzinfo=UTC)
    one, same, other = (local_run(text, start) for text in ("ab" * 32, "ab" * 32, "cd" * 32))
    assert one == same
    assert one.id != other.id
    assert -(2**63) < one.id < 0
    assert local_run("0" * 64, start).id < 0


@pytest.mark.parametrize(
    "url",
    ["", "https://github.com/a/b", "https://github.com/a/b/actions/runs/x", "https://github.com/a/b/actions/runs/0"],
)
def test_an_address_of_something_else_is_no_run(url):
    assert parse_url(url) is None


def test_an_address_may_name_an_attempt():
    link = parse_url("https://github.com/a/b/actions/runs/27485974465/attempts/17")
    assert (link.repository, link.id, link.attempt) == ("a/b", 27485974465, 17)
    assert parse_url("https://github.com/a/b/actions/runs/27485974465").attempt is None


@pytest.mark.parametrize("text", ["", "x", "2026-13-01", "2026-02-30T00:00:00Z"])
def test_what_is_no_time_raises(text):
    with pytest.raises(ValueError, match=r"isoformat|month|day"):
        parse_time(text)


def test_workflow_names_are_paths():
    assert all(path.startswith(".github/workflows/") and path.endswith(".yml") for path in OFFICIAL_WORKFLOWS)
