"""What GitHub tells of a run beside its artifacts: attempts, jobs, pull request, and the configs at its commit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from store.github import Artifact, Incomplete, NotThere, Reader, TooLarge
from store.records import Caveat, Run, Trouble
from store.runs import RunLink, parse_run

CONFIGS = ("configs", ".github/configs")
"""Where the master configs stand, and where they stood before 2026-07-02."""
CONFIG_FILES = 16
"""Upstream has two; a stranger's commit may have any number."""

_MASTER = re.compile(r"[A-Za-z0-9_.-]+-master\.yaml")


@dataclass(frozen=True, slots=True)
class Told:
    """All of it, before anything is downloaded."""

    run: Run
    sidecars: Mapping[str, Any]
    """By the path in the folder: bytes as they are, other values as JSON."""
    artifacts: tuple[Artifact, ...]
    """Those of the attempt that was asked for, or all."""
    notes: tuple[Caveat, ...] = ()
    """What GitHub could not tell."""


def tell(link: RunLink, reader: Reader) -> Told:
    """Ask for everything that stands around a run; raises Trouble where an answer is not whole.

    An attempt that GitHub has no longer, and configs of a commit that it does not show, are left out with a note.
    """
    newest = reader.run(link.id)
    attempts, gone = _attempts(newest, reader)
    chosen = newest if link.attempt is None else _chosen(attempts, link, parsed(newest).attempt)
    pull = reader.pull_of(chosen)
    run = chosen | {"pull_requests": _pull_requests(chosen, pull)}
    artifacts, jobs = reader.artifacts(link.id), reader.jobs(link.id)
    configs, flaw = _configs(chosen, reader)
    return Told(
        run=parsed(run),
        sidecars={
            "run.json": run,
            "attempts.json": attempts,
            "artifacts.json": [dict(one.told) for one in artifacts],
            "jobs.json": {"total_count": len(jobs), "jobs": list(jobs)},
            **({"pull.json": _pull(reader.pull(pull))} if pull else {}),
            **configs,
        },
        artifacts=artifacts if link.attempt is None else _of_attempt(artifacts, attempts, link.attempt),
        notes=(*gone, *([flaw] if flaw else [])),
    )


def parsed(told: Mapping[str, Any]) -> Run:
    """The run of GitHub's object; Trouble where it cannot be read."""
    try:
        return parse_run(told)
    except ValueError as flaw:
        raise Trouble(f"GitHub tells of a run that cannot be read: {flaw}") from None


# --- attempts -----------------------------------------------------------------------------------------------------


def _attempts(newest: dict[str, Any], reader: Reader) -> tuple[list[dict[str, Any]], list[Caveat]]:
    """The run objects of all attempts that GitHub still has, oldest first; a note for each other one."""
    kept, gone = [], []
    for attempt in range(1, parsed(newest).attempt):
        try:
            kept.append(reader.attempt(newest["id"], attempt))
        except NotThere:
            gone.append(Caveat.of("attempt_gone", attempt=attempt))
    return [*kept, newest], gone


def _chosen(attempts: Sequence[dict[str, Any]], link: RunLink, newest: int) -> dict[str, Any]:
    for told in attempts:
        if parsed(told).attempt == link.attempt:
            return told
    if link.attempt is not None and link.attempt < newest:
        raise Trouble(f"GitHub no longer has attempt {link.attempt} of run {link.id}: its newest is {newest}")
    raise Trouble(f"run {link.id} has no attempt {link.attempt}: its newest is {newest}")


def _of_attempt(artifacts: Iterable[Artifact], attempts: Sequence[dict[str, Any]], wanted: int) -> tuple[Artifact, ...]:
    """The uploads made while an attempt was the newest: GitHub's list does not tell the attempt.

    What is older than the first attempt that GitHub still has is of one that it has no longer.
    """
    runs = [parsed(told) for told in attempts]

    def attempt(upload: Artifact) -> int:
        began = [run.attempt for run in runs if run.started_at <= upload.created_at]
        return began[-1] if began else 1

    return tuple(one for one in artifacts if attempt(one) == wanted)


# --- pull request -------------------------------------------------------------------------------------------------


def _pull_requests(told: Mapping[str, Any], number: int | None) -> list[dict[str, Any]]:
    """The one pull request of the run; GitHub leaves it out after a merge and for forks, and may name several."""
    named = [one for one in told.get("pull_requests") or () if one.get("number") == number]
    return named[:1] or ([{"number": number}] if number else [])


def _pull(told: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a pull request that says what was measured and where it went."""
    head, base = told["head"], told["base"]
    source = head.get("repo")
    return {
        **{name: told.get(name) for name in ("number", "state", "merged", "merge_commit_sha")},
        "labels": [{"name": one["name"]} for one in told.get("labels") or ()],
        "head": {
            "sha": head["sha"],
            "ref": head["ref"],
            "repo": {"full_name": source["full_name"]} if source else None,
        },
        "base": {"ref": base["ref"], "sha": base["sha"]},
    }


# --- configs ------------------------------------------------------------------------------------------------------


def _configs(run: Mapping[str, Any], reader: Reader) -> tuple[dict[str, bytes], Caveat | None]:
    """The master configs at the head of a run by their paths in the folder, or why there are none.

    The head of a fork may be readable in the fork alone.
    """
    sha, fork = str(run.get("head_sha") or ""), run.get("head_repository")
    places = ["", *([str(fork["full_name"])] if isinstance(fork, Mapping) and fork.get("full_name") else [])]
    for repository in places:
        try:
            found = masters(sha, repository, reader)
        except NotThere:
            continue
        except (TooLarge, Incomplete) as flaw:
            return {}, Caveat.of("configs_too_large", sha=sha, flaw=str(flaw))
        return found, None if found else Caveat.of("no_configs", sha=sha)
    return {}, Caveat.of("unknown_commit", sha=sha)


def masters(sha: str, repository: str, reader: Reader) -> dict[str, bytes]:
    """The master configs at a commit by `configs/NAME`; raises NotThere, TooLarge or Incomplete."""
    for folder in CONFIGS:
        names = [name for name in reader.listing(folder, sha, repository) if _MASTER.fullmatch(name)]
        if len(names) > CONFIG_FILES:
            raise TooLarge(f"{len(names)} master configs, at most {CONFIG_FILES} are fetched")
        texts = {name: reader.file(f"{folder}/{name}", sha, repository) for name in names}
        if texts:
            return {f"configs/{name}": text for name, text in texts.items() if text is not None}
    return {}
