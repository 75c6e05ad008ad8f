"""What started us: the event of a GitHub workflow, read down to the run, the commit and the pull request it names.

An event is told by GitHub and may be believed; what a stranger's job has written into an artifact may not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from store import limits
from store.records import Trouble
from store.runs import RunLink

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Trigger:
    """The run to look at, and the pull request that the event itself names (None where it names none, or several)."""

    link: RunLink
    pull: int | None = None


def read(path: Path, environ: Mapping[str, str]) -> Trigger:
    """The trigger of an event file (`GITHUB_EVENT_PATH`); raises Trouble with what to give instead.

    `environ` holds GITHUB_REPOSITORY, and GITHUB_RUN_ID where the event is of the run that we are a job of.
    """
    try:
        told = json.loads(limits.read_file(path, limits.FILE_BYTES))
    except (OSError, ValueError, RecursionError) as flaw:
        raise Trouble(f"{path} is no event of GitHub ({flaw}): name the run with --run") from None
    if not isinstance(told, dict):
        raise Trouble(f"{path} is no event of GitHub (no object): name the run with --run")
    reading = next((reading for key, reading in _EVENTS.items() if key in told), _own)
    found = reading(told, environ)
    if found is None:
        raise Trouble(f"{path} names no run that can be looked at: name it with --run")
    return found


def _workflow_run(told: Json, environ: Mapping[str, str]) -> Trigger | None:
    """`on: workflow_run`: the run that has ended, in another workflow."""
    run = told["workflow_run"]
    if not isinstance(run, dict):
        return None
    return _trigger(_repository(run, environ), run.get("id"), _one_pull(run.get("pull_requests")))


def _dispatch(told: Json, environ: Mapping[str, str]) -> Trigger | None:
    """`repository_dispatch`, with the payload of InferenceX's ingest: the merge run speaks for the source it reused."""
    return _of_words(told["client_payload"], ("merge-run-id", "run-id", "source-run-id"), told, environ)


def _by_hand(told: Json, environ: Mapping[str, str]) -> Trigger | None:
    """`workflow_dispatch`: the run that an input names, else the run that was started so."""
    return _of_words(told["inputs"], ("run", "run-id", "run_id"), told, environ) or _own(told, environ)


def _of_words(words: object, names: tuple[str, ...], told: Json, environ: Mapping[str, str]) -> Trigger | None:
    given = words if isinstance(words, dict) else {}
    number = next((given[name] for name in names if given.get(name)), None)
    return _trigger(_repository(told, environ), number, None)


def _own(told: Json, environ: Mapping[str, str]) -> Trigger | None:
    """Any other event started the run that we are a job of."""
    pull = told.get("pull_request")
    number = pull.get("number") if isinstance(pull, dict) else None
    return _trigger(_repository(told, environ), environ.get("GITHUB_RUN_ID"), _positive(number))


_EVENTS: Mapping[str, Callable[[Json, Mapping[str, str]], Trigger | None]] = MappingProxyType(
    {"workflow_run": _workflow_run, "client_payload": _dispatch, "inputs": _by_hand}
)
"""Readers by the key that only their event has. One that speaks of another run never falls back to our own."""


def _trigger(repository: str, number: object, pull: int | None) -> Trigger | None:
    found = _positive(number)
    return Trigger(RunLink(repository, found), pull) if found and repository else None


def _repository(told: Json, environ: Mapping[str, str]) -> str:
    inner = told.get("repository")
    name = inner.get("full_name") if isinstance(inner, dict) else None
    return name if isinstance(name, str) and name else environ.get("GITHUB_REPOSITORY", "")


def _one_pull(pulls: object) -> int | None:
    """Several pull requests of one head are no answer."""
    if not isinstance(pulls, list) or len(pulls) != 1 or not isinstance(pulls[0], dict):
        return None
    return _positive(pulls[0].get("number"))


def _positive(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
