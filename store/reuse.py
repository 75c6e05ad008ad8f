"""Which sweep of a pull request a merge published instead of measuring again; or why none, rule by rule.

A command alone on its line of a comment asks for it. Who may say it, which pull request and which run may be meant are
upstream's rules; each one that says no is a reason with values. Nothing that a stranger can write decides anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from store.github import Artifact, Incomplete, NotThere, Reader
from store.records import Caveat, Run
from store.runs import FULL, OFFICIAL_BRANCH, SHORTENED, TRIMMED, parse_time
from store.told import parsed

SWEEP = ".github/workflows/run-sweep.yml"
AUTHORISED = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
MODIFIERS = SHORTENED | {TRIMMED}
"""Labels of a sweep that measures less, or shorter."""

# GitHub's comments come with CR LF.
_COMMAND = re.compile(r"^/reuse-sweep-run(?:[ \t]+(?P<id>[1-9]\d{0,17}))?[ \t]*\r?$", re.MULTILINE)
_REUSABLE = re.compile(r"results_bmk$|eval_results_all$|bmk_")
_POINTS = re.compile(r"bmk_")


@dataclass(frozen=True, slots=True)
class Command:
    """A comment that asks for the reuse of a sweep."""

    id: int
    url: str
    login: str
    association: str
    created_at: datetime
    pinned: int | None = None
    """The run that it names; None leaves the choice to the rules."""

    @property
    def authorised(self) -> bool:
        return self.association in AUTHORISED


@dataclass(frozen=True, slots=True)
class Reuse:
    """`merge` published the rows of `source`: they were measured there and then, for the pull request."""

    source: Run
    merge: Run
    pull: int
    command: Command

    def as_dict(self) -> dict[str, Any]:
        """What `reuse.json` holds."""
        created = self.merge.created_at or self.merge.started_at
        return {
            "source_run_id": self.source.id,
            "source_run_attempt": self.source.attempt,
            "source_run_url": self.source.url,
            "source_pr_number": self.pull,
            "source_head_sha": self.source.head_sha,
            "merge_run_id": self.merge.id,
            "merge_run_attempt": self.merge.attempt,
            "merge_run_url": self.merge.url,
            "merge_run_created_at": created.isoformat(),
            "comment": {
                "id": self.command.id,
                "url": self.command.url,
                "login": self.command.login,
                "association": self.command.association,
                "created_at": self.command.created_at.isoformat(),
            },
        }


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a merge can have reused nothing: the rule that says no, with its values."""

    reason: Caveat
    pull: int | None = None
    command: Command | None = None


class _No(Exception):
    """A rule that says no."""

    def __init__(self, code: str, **values: Any) -> None:
        super().__init__(code)
        self.reason = Caveat.of(code, **values)


# --- rules over records -------------------------------------------------------------------------------------------


def command_of(comment: Mapping[str, Any]) -> Command | None:
    r"""The command of a comment object, whoever wrote it; the last one where there are several.

    >>> said = {"id": 5, "created_at": "2026-06-01T00:00:00Z", "author_association": "MEMBER", "user": {"login": "ann"}}
    >>> command_of(said | {"body": "Looks good.\r\n/reuse-sweep-run 27485974465\r\n"}).pinned
    27485974465
    >>> command_of(said | {"body": "Please do not use /reuse-sweep-run here"})
    >>> command_of(said | {"body": "> /reuse-sweep-run"})
    """
    found = list(_COMMAND.finditer(str(comment.get("body") or "")))
    if not found:
        return None
    user = comment.get("user")
    pinned = found[-1]["id"]
    return Command(
        id=int(comment["id"]),
        url=str(comment.get("html_url") or ""),
        login=str(user.get("login") if isinstance(user, Mapping) else ""),
        association=str(comment.get("author_association") or "NONE"),
        created_at=parse_time(str(comment["created_at"])),
        pinned=int(pinned) if pinned else None,
    )


def latest_command(comments: Iterable[Mapping[str, Any]], until: datetime) -> Command | None:
    """The command that counted at a moment: the latest of somebody who may give it, else the latest of a stranger."""
    said = [found for found in map(command_of, comments) if found and found.created_at <= until]
    return max(said, key=lambda one: (one.authorised, one.created_at, one.id), default=None)


def check_labels(labels: Iterable[str]) -> Caveat | None:
    """Why a pull request with these labels has no sweep to reuse.

    >>> check_labels({"full-sweep-enabled", "all-evals"})
    >>> check_labels({"full-sweep-enabled", "agentx-fast"}).as_dict()
    {'code': 'reuse_partial_sweep', 'labels': 'agentx-fast'}
    """
    held = set(labels)
    full, partial = sorted(held & FULL), sorted(held & MODIFIERS)
    if partial:
        return Caveat.of("reuse_partial_sweep", labels=", ".join(partial))
    if len(full) != 1:
        return Caveat.of("reuse_full_labels", count=len(full), labels=", ".join(full))
    return None


def check_run(run: Mapping[str, Any], shas: Sequence[str], source: str | None, merge: Run) -> Caveat | None:
    """Why a run object is no sweep of the pull request with these commits, whose head is in the repository `source`."""
    number, head = run.get("id"), run.get("head_sha")
    if _path(run) != SWEEP:
        return Caveat.of("reuse_other_workflow", run=number, workflow=_path(run))
    if run.get("event") != "pull_request":
        return Caveat.of("reuse_other_event", run=number, event=str(run.get("event")))
    if run.get("status") != "completed":
        return Caveat.of("reuse_not_completed", run=number, status=str(run.get("status")))
    if head not in shas or source is None or _name(run.get("head_repository")) != source:
        return Caveat.of("reuse_other_head", run=number, sha=str(head))
    if parsed(run).started_at > merge.started_at:
        return Caveat.of("reuse_later_run", run=number)
    return None


def check_artifacts(number: int, artifacts: Iterable[Artifact]) -> Caveat | None:
    """Why the artifacts of a run are nothing to publish."""
    results = [one for one in artifacts if _REUSABLE.match(one.name)]
    if not results:
        return Caveat.of("reuse_no_results", run=number)
    if all(one.expired for one in results):
        return Caveat.of("reuse_expired", run=number, on=max(one.expires_on for one in results))
    return None


# --- what a merge reused ------------------------------------------------------------------------------------------


def find_reuse(run: Mapping[str, Any], reader: Reader) -> Reuse | Refusal | None:
    """What a run of the sweep on main published instead of measuring; None when nobody asked for it.

    `run` is GitHub's object. Labels and artifacts are those of today: GitHub keeps no others.
    """
    if run.get("event") != "push" or run.get("head_branch") != OFFICIAL_BRANCH or _path(run) != SWEEP:
        return None
    pull, command = None, None
    try:
        pull = _merged_pull(run, reader)
        merge = parsed(run)
        command = latest_command(reader.comments(pull["number"]), merge.started_at)
        if command is None:
            return None
        return Reuse(parsed(_source(command, pull, merge, reader)), merge, pull["number"], command)
    except _No as no:
        return Refusal(no.reason, pull["number"] if pull else None, command)


def _merged_pull(run: Mapping[str, Any], reader: Reader) -> dict[str, Any]:
    sha = str(run.get("head_sha"))
    found = [one.number for one in reader.pulls(sha) if one.merge_commit == sha]
    if len(found) != 1:
        raise _No("reuse_pull_requests", count=len(found), sha=sha)
    pull = reader.pull(found[0])
    if pull.get("merged") is not True:
        raise _No("reuse_not_merged", pull=found[0])
    return pull


def _source(command: Command, pull: Mapping[str, Any], merge: Run, reader: Reader) -> Mapping[str, Any]:
    """The run object of the sweep that was reused."""
    if not command.authorised:
        raise _No("reuse_unauthorised", login=command.login, association=command.association)
    _insist(check_labels(str(one.get("name")) for one in pull.get("labels") or ()))
    try:
        shas = reader.pull_commits(pull["number"])
    except Incomplete as part:
        shas = part.seen
    source = _name((pull.get("head") or {}).get("repo"))
    if command.pinned is None:
        return _latest(shas, source, merge, reader)
    return _pinned(command.pinned, shas, source, merge, reader)


def _pinned(number: int, shas: Sequence[str], source: str | None, merge: Run, reader: Reader) -> Mapping[str, Any]:
    """The named run, however it ended: somebody looked at it."""
    try:
        run = _as_it_was(reader.run(number), merge, reader)
    except NotThere:
        raise _No("reuse_run_missing", run=number) from None
    _insist(check_run(run, shas, source, merge))
    _insist(check_artifacts(number, reader.artifacts(number)))
    return run


def _latest(shas: Sequence[str], source: str | None, merge: Run, reader: Reader) -> Mapping[str, Any]:
    """The latest sweep that succeeded and has results: a gated run succeeds too, and has measured nothing."""
    ran = [
        _as_it_was(run, merge, reader)
        for sha in shas
        for run in reader.runs_of(sha)
        if run.get("event") == "pull_request"
    ]
    found = [run for run in ran if run.get("conclusion") == "success" and check_run(run, shas, source, merge) is None]
    for run in sorted(found, key=lambda run: (parsed(run).started_at, run["id"]), reverse=True):
        flaw = check_artifacts(run["id"], reader.artifacts(run["id"]))
        if flaw is None or flaw.code == "reuse_expired":
            # An older one has expired earlier: when this was reused, no other could be.
            _insist(flaw)
            return run
    raise _No("reuse_no_run", commits=len(shas), runs=len(found))


def _as_it_was(run: Mapping[str, Any], merge: Run, reader: Reader) -> Mapping[str, Any]:
    """The attempt that was the newest when the merge ran; the run as it is where that is not known."""
    for attempt in range(int(run.get("run_attempt") or 1), 1, -1):
        if parsed(run).started_at <= merge.started_at:
            break
        try:
            run = reader.attempt(run["id"], attempt - 1)
        except NotThere:
            continue
    return run


def _insist(flaw: Caveat | None) -> None:
    if flaw is not None:
        raise _No(flaw.code, **dict(flaw.values))


def _path(run: Mapping[str, Any]) -> str:
    return str(run.get("path") or "").partition("@")[0]


def _name(repository: object) -> str | None:
    name = repository.get("full_name") if isinstance(repository, Mapping) else None
    return name if isinstance(name, str) else None


# --- which of several runs counts ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run with the names of the artifacts that can still be had of it."""

    run: Run
    artifacts: tuple[str, ...]

    @property
    def results(self) -> int:
        """Artifacts of points, each name once: a retry uploads the same name again."""
        return len({name for name in self.artifacts if _POINTS.match(name)})


@dataclass(frozen=True, slots=True)
class Choice:
    """The run that counts, what must be said of it, and why each other one does not count."""

    chosen: Candidate | None
    caveats: tuple[Caveat, ...] = ()
    rejected: tuple[tuple[Candidate, Caveat], ...] = ()


def best_run(candidates: Iterable[Candidate], expected_count: int) -> Choice:
    """The newest run that holds as many results as were expected; how it concluded is told, and decides nothing.

    Green runs without results have nothing to ingest: a gate let them pass. `expected_count` is at least 1.
    """
    if expected_count < 1:
        raise ValueError("a choice needs the number of results that were expected")
    ordered = sorted(candidates, key=lambda one: (one.run.started_at, one.run.key), reverse=True)
    whole = [one for one in ordered if one.results >= expected_count]
    chosen = whole[0] if whole else None
    rejected = tuple((one, _lack(one, expected_count, chosen)) for one in ordered if one is not chosen)
    if chosen is None or chosen.run.conclusion == "success":
        return Choice(chosen, (), rejected)
    return Choice(chosen, (Caveat.of("run_concluded", conclusion=str(chosen.run.conclusion)),), rejected)


def _lack(candidate: Candidate, expected: int, chosen: Candidate | None) -> Caveat:
    if candidate.results == 0:
        return Caveat.of("nothing_to_ingest", conclusion=str(candidate.run.conclusion))
    if candidate.results < expected:
        return Caveat.of("incomplete_run", have=candidate.results, need=expected)
    assert chosen is not None
    return Caveat.of("newer_run", run=chosen.run.id)
