"""The event of a workflow names the run to look at; whatever it does not name is not guessed."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import trigger
from store.records import Trouble
from store.runs import RunLink

REPOSITORY = {"full_name": "octo/sweeps"}
OWN = {"GITHUB_REPOSITORY": "octo/sweeps", "GITHUB_RUN_ID": "27489075807"}
FORK = {"full_name": "stranger/sweeps"}


def event(tmp_path: Path, value: Any, environ: dict[str, str] = OWN) -> trigger.Trigger:
    path = tmp_path / "event.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return trigger.read(path, environ)


@pytest.mark.parametrize(
    ("told", "run", "pull"),
    [
        ({"workflow_run": {"id": 7, "repository": REPOSITORY, "pull_requests": [{"number": 12}]}}, 7, 12),
        ({"workflow_run": {"id": 7, "repository": REPOSITORY, "pull_requests": []}}, 7, None),
        ({"workflow_run": {"id": 7, "pull_requests": [{"number": 12}, {"number": 13}]}}, 7, None),
        ({"client_payload": {"source-run-id": "5", "merge-run-id": "9"}, "repository": REPOSITORY}, 9, None),
        ({"inputs": {"run": "11"}, "repository": REPOSITORY}, 11, None),
        ({"inputs": None, "repository": REPOSITORY}, 27489075807, None),
        ({"pull_request": {"number": 3, "head": {"repo": FORK}}, "repository": REPOSITORY}, 27489075807, 3),
        ({"after": "c" * 40, "repository": REPOSITORY}, 27489075807, None),
        ({"schedule": "0 3 * * *"}, 27489075807, None),
    ],
)
def test_each_event_names_its_run(tmp_path: Path, told: Any, run: int, pull: int | None) -> None:
    assert event(tmp_path, told) == trigger.Trigger(RunLink("octo/sweeps", run), pull)


@pytest.mark.parametrize("told", ["", "[]", "{", '{"workflow_run": {"id": "x"}}', '{"inputs": {"run": -4}}'])
def test_an_event_that_names_no_run_asks_for_one(tmp_path: Path, told: str) -> None:
    with pytest.raises(Trouble, match="--run"):
        event(tmp_path, told, {"GITHUB_REPOSITORY": "octo/sweeps"})


def test_the_end_of_another_run_is_never_taken_for_our_own(tmp_path: Path) -> None:
    with pytest.raises(Trouble, match="--run"):
        event(tmp_path, {"workflow_run": {"id": None}, "repository": REPOSITORY})


def test_a_missing_event_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(Trouble, match="no event of GitHub"):
        trigger.read(tmp_path / "none.json", OWN)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["workflow_run", "client_payload", "inputs", "pull_request", "repository"])


@given(st.dictionaries(KEYS, JSON, max_size=4))
def test_any_event_is_a_run_or_trouble(tmp_path_factory: pytest.TempPathFactory, told: Any) -> None:
    try:
        found = event(tmp_path_factory.mktemp("event"), told)
    except Trouble:
        return
    assert found.link.id > 0
    assert found.link.repository
