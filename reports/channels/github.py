"""Does errands on GitHub: a comment edited in place, a check run, a label. Nothing is sent without a call of `deliver`.

Every errand is an upsert: look, decide the next step, take it, look again. PyGithub's own pauses and retries are off:
it repeats a POST whose answer was lost (a second comment), never a PATCH, and no 429 without Retry-After.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import github
import requests
from github.CheckRun import CheckRun as GithubCheckRun
from github.IssueComment import IssueComment
from github.PullRequest import PullRequest
from github.Repository import Repository

from reports import outbox
from reports.channels import sticky
from reports.channels.sticky import Create, Delete, Edit, Seen, Step
from reports.outbox import CannotSend, CheckRun, Comment, Errand, Label, Mail
from store.credentials import is_token
from store.github import API, client, is_repository
from store.patience import Delay, OutOfPatience, Patience, Waiting, delay_of

T = TypeVar("T")

ACTIONS = "github-actions[bot]"
"""Who writes with the token of a workflow."""
ROUNDS = 30
"""Steps of one errand; three are usual, and more than this means that something undoes them."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Where to write and as whom; the token is never shown.

    `author` is the login that the token writes as: a comment is ours when it has our marker and this author.
    """

    repository: str
    token: str = field(repr=False)
    author: str = ACTIONS
    api: str = API

    def __post_init__(self) -> None:
        if not is_token(self.token):
            raise CannotSend("the token is empty or holds blanks or line ends: give it without them")
        if not is_repository(self.repository):
            raise CannotSend(f"repository {self.repository!r}: give OWNER/NAME")


@dataclass(frozen=True, slots=True)
class Limits:
    """What errands from a file may touch, since a stranger's workflow may have written the file.

    With `head`, the sha that the event of the trusted job names, only the pull request with this head and check runs
    on it. Labels are allowed one by one.
    """

    head: str | None = None
    labels: frozenset[str] = frozenset()


class Status(StrEnum):
    """What became of an errand."""

    CREATED = "created"
    EDITED = "edited"
    UNCHANGED = "unchanged"
    OUTDATED = "outdated"
    FORBIDDEN = "forbidden"
    LATER = "later"
    REFUSED = "refused"


ADVICE: Mapping[Status, str] = MappingProxyType(
    {
        Status.OUTDATED: "nothing to do: the pull request shows the result of a newer head",
        Status.FORBIDDEN: (
            "the token may not write here, as in a pull request from a fork: keep the errands as an artifact and run "
            "`tracker deliver FILE` in a `workflow_run` job, which has a token of this repository; in a workflow of "
            "this repository add `pull-requests: write` and `checks: write` to its `permissions`"
        ),
        Status.LATER: "GitHub was busy for longer than the budget: run `tracker deliver FILE` again later",
        Status.REFUSED: "trying again will not help: look at the reason",
    }
)
"""What to do about an errand that was not done."""

KEPT = frozenset({Status.FORBIDDEN, Status.LATER})
"""Errands that another job, or a later one, can do."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """An errand and what became of it."""

    errand: Errand
    status: Status
    reason: str = ""
    url: str = ""
    notified: bool = False
    """True when a fresh comment told that the verdict got worse."""
    kept: Path | None = None
    """The file that holds the errand for a later job."""

    @property
    def done(self) -> bool:
        return self.status in {Status.CREATED, Status.EDITED, Status.UNCHANGED, Status.OUTDATED}

    @property
    def advice(self) -> str:
        """What to do next; empty when nothing is."""
        return ADVICE.get(self.status, "")

    def __str__(self) -> str:
        where = outbox.kind(self.errand).replace("_", " ")
        told = [
            f"{where}: {self.status}",
            self.url,
            self.reason,
            self.advice,
            f"kept in {self.kept}" if self.kept else "",
        ]
        return "; ".join(part for part in told if part)


def deliver(
    errands: Iterable[Errand],
    connection: Connection,
    patience: Patience = Patience(),
    limits: Limits = Limits(),
    keep: Path | None = None,
) -> tuple[Outcome, ...]:
    """Do the errands in order and say what became of each; a failure of one does not stop the others.

    Errands that the token may not do, or that the budget of `patience` left undone, are written to `keep` when it is
    given. Nothing is raised for what GitHub answers.
    """
    desk = _Desk(connection, Waiting(patience), limits)
    try:
        outcomes = [_done(errand, desk) for errand in errands]
    finally:
        desk.close()
    left = [one.errand for one in outcomes if one.status in KEPT]
    if keep is None or not left:
        return tuple(outcomes)
    outbox.write(left, keep)
    return tuple(_kept(one, keep) for one in outcomes)


def tell(outcomes: Iterable[Outcome]) -> str:
    """One line per outcome: what became of it, where it is, what to do next."""
    return "".join(f"{outcome}\n" for outcome in outcomes)


def _kept(outcome: Outcome, path: Path) -> Outcome:
    if outcome.status not in KEPT:
        return outcome
    return Outcome(outcome.errand, outcome.status, outcome.reason, outcome.url, outcome.notified, path)


def _done(errand: Errand, desk: _Desk) -> Outcome:
    try:
        return _DOERS[type(errand)](errand, desk)
    except _Stopped as stop:
        return Outcome(errand, stop.status, desk.hidden(stop.reason))


class _Stopped(Exception):
    """GitHub's answer, or the lack of one, ends the errand."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason


# --- requests: tried again within the budget ---------------------------------------------------------------------

FAILED = (github.GithubException, requests.RequestException)
_BROKEN = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
_GONE = frozenset({404, 410})


def _delay(error: Exception) -> Delay | None:
    """When a request may be tried again; None when that is useless."""
    if isinstance(error, _BROKEN):
        return Delay()
    if not isinstance(error, github.GithubException):
        return None
    return delay_of(error.status, error.headers or {}, _said(error))


def _said(error: Exception) -> str:
    """GitHub's own words, or the name of what broke."""
    if not isinstance(error, github.GithubException):
        return f"{type(error).__name__}: {error}"
    data = error.data if isinstance(error.data, dict) else {}
    details = [str(one.get("message") or one.get("code")) for one in data.get("errors") or () if isinstance(one, dict)]
    return f"{error.status} {'; '.join([str(data.get('message') or error.message or ''), *details])}".strip()


class _Desk:
    """The connection with its budget: reads until it has an answer, writes once and says whether that worked."""

    def __init__(self, connection: Connection, waiting: Waiting, limits: Limits) -> None:
        self.connection = connection
        self.limits = limits
        self.author = connection.author
        self._waiting = waiting
        self._client = client(connection.token, connection.api)

    def close(self) -> None:
        self._client.close()

    @property
    def repository(self) -> Repository:
        return self._client.get_repo(self.connection.repository)

    def read(self, call: Callable[[], T]) -> T:
        """The answer of a request that changes nothing, whole or not at all."""
        while True:
            try:
                return call()
            except FAILED as error:
                self._wait(error)

    def every(self, pages: Iterable[T]) -> list[T]:
        """All items of all pages: after a failure PyGithub's list goes on with the page that failed."""
        return self.read(lambda: list(pages))

    def write(self, call: Callable[[], Any], *, gone_is_fine: bool = False) -> bool:
        """Send once. False: perhaps it was done, perhaps not, so look before sending it again."""
        try:
            call()
        except FAILED as error:
            if gone_is_fine and isinstance(error, github.GithubException) and error.status in _GONE:
                return False
            self._wait(error)
            return False
        return True

    def hidden(self, text: str) -> str:
        """The text without the token."""
        return text.replace(self.connection.token, "***")

    def _wait(self, error: Exception) -> None:
        delay, said = _delay(error), _said(error)
        if delay is None:
            forbidden = isinstance(error, github.GithubException) and error.status == 403
            raise _Stopped(Status.FORBIDDEN if forbidden else Status.REFUSED, said) from None
        try:
            self._waiting.wait(delay)
        except OutOfPatience as end:
            raise _Stopped(Status.LATER, f"{said}; {end}") from None


# --- errands ----------------------------------------------------------------------------------------------------


def _pull(number: int, desk: _Desk) -> PullRequest:
    """The pull request, if the limits allow to touch it."""
    pull = desk.read(lambda: desk.repository.get_pull(number).complete())
    if desk.limits.head not in {None, pull.head.sha}:
        raise _Stopped(Status.REFUSED, f"pull request {number} has the head {pull.head.sha}, not {desk.limits.head}")
    return pull


def _unsettled(errand: Errand) -> Outcome:
    return Outcome(errand, Status.LATER, f"{ROUNDS} steps did not settle it: something undoes them")


def _comment(errand: Comment, desk: _Desk) -> Outcome:
    return _Commenting(errand, desk, _pull(errand.pull, desk)).settle()


class _Commenting:
    """One comment errand on its way: what stands on GitHub, and what this job did."""

    def __init__(self, errand: Comment, desk: _Desk, pull: PullRequest) -> None:
        self._errand = errand
        self._desk = desk
        self._pull = pull
        self._made: dict[int, IssueComment] = {}
        self._written: int | None = None
        self._status = Status.UNCHANGED
        self._notified = False
        self._ours = self._look()

    def settle(self) -> Outcome:
        """Take steps until none is left; notify, edit, and remove what a second job made at the same time."""
        current = {sha for sha in (self._pull.head.sha, self._pull.merge_commit_sha) if sha}
        if sticky.outdated(self._errand, self._seen(), current):
            return self._outcome(Status.OUTDATED)
        for _ in range(ROUNDS):
            step = sticky.next_step(self._errand, self._seen(), self._written)
            if step is None:
                return self._outcome(self._status)
            self._take(step)
        return _unsettled(self._errand)

    def _take(self, step: Step) -> None:
        match step:
            case Create():
                self._create(step)
            case Edit():
                self._edit(step)
            case Delete():
                self._delete(step)

    def _look(self) -> dict[int, IssueComment]:
        """Our comments by id; those that this job made are among them even when GitHub's list lags behind."""
        found = self._desk.every(self._pull.get_issue_comments())
        return self._made | {one.id: one for one in found if one.user and one.user.login == self._desk.author}

    def _seen(self) -> list[Seen]:
        return [Seen(one.id, one.body or "", one.html_url) for one in self._ours.values()]

    def _create(self, step: Create) -> None:
        made: list[IssueComment] = []
        self._desk.write(lambda: made.append(self._pull.create_issue_comment(step.body)))
        for comment in made:
            # GitHub knows best whom the token writes as: the next look finds what this author wrote before.
            self._desk.author = comment.user.login
            self._made[comment.id] = comment
            self._written = self._written if step.notice else comment.id
        self._notified = self._notified or step.notice
        self._status = self._status if step.notice else Status.CREATED
        self._ours = self._look()

    def _edit(self, step: Edit) -> None:
        self._status = self._status if self._status is Status.CREATED else Status.EDITED
        if self._desk.write(lambda: self._ours[step.id].edit(step.body), gone_is_fine=True):
            self._written = step.id
        else:
            self._ours = self._look()

    def _delete(self, step: Delete) -> None:
        self._desk.write(self._ours[step.id].delete, gone_is_fine=True)
        self._made.pop(step.id, None)
        self._ours = self._look()

    def _outcome(self, status: Status) -> Outcome:
        ours = [one.id for one in self._ours.values() if outbox.Mark.find(one.body or "", self._errand.marker)]
        url = self._ours[min(ours)].html_url if ours else ""
        return Outcome(self._errand, status, url=url, notified=self._notified)


def _check_run(errand: CheckRun, desk: _Desk) -> Outcome:
    if desk.limits.head not in {None, errand.head}:
        raise _Stopped(Status.REFUSED, f"check run on {errand.head}, not on {desk.limits.head}")
    status = Status.UNCHANGED
    for _ in range(ROUNDS):
        newest = _newest(errand, desk)
        if newest is not None and _stands(errand, newest):
            return Outcome(errand, status, url=newest.html_url or "")
        status = Status.CREATED if newest is None or status is Status.CREATED else Status.EDITED
        if desk.write(_sending(errand, newest, desk.repository)):
            return Outcome(errand, status)
    return _unsettled(errand)


def _newest(errand: CheckRun, desk: _Desk) -> GithubCheckRun | None:
    """Our newest check run of this name on the commit: the one that GitHub shows; older ones cannot be deleted."""
    found = desk.every(desk.repository.get_commit(errand.head).get_check_runs(check_name=errand.name))
    ours = (run for run in found if run.external_id == errand.marker and _is_of(desk.author, run))
    return max(ours, key=lambda run: run.id, default=None)


def _is_of(author: str, run: GithubCheckRun) -> bool:
    return run.app is not None and f"{run.app.slug}[bot]" == author


def _stands(errand: CheckRun, run: GithubCheckRun) -> bool:
    said = (run.output.title, run.output.summary, run.output.text or "")
    address = not errand.details_url or run.details_url == errand.details_url
    return run.conclusion == errand.conclusion and said == (errand.title, errand.summary, errand.text) and address


def _sending(errand: CheckRun, run: GithubCheckRun | None, repository: Repository) -> Callable[[], object]:
    output = {"title": errand.title, "summary": errand.summary, "text": errand.text}
    told: dict[str, Any] = {"status": "completed", "conclusion": errand.conclusion, "output": output}
    if errand.details_url:
        told["details_url"] = errand.details_url
    if run is not None:
        return lambda: run.edit(**told)
    return lambda: repository.create_check_run(errand.name, errand.head, external_id=errand.marker, **told)


def _label(errand: Label, desk: _Desk) -> Outcome:
    if errand.name not in desk.limits.labels:
        raise _Stopped(Status.REFUSED, f"label {errand.name!r} is not among the labels that may be set")
    pull = _pull(errand.pull, desk)
    status = Status.UNCHANGED
    for _ in range(ROUNDS):
        # GitHub takes labels of one spelling for one label, whatever their case.
        standing = {one.name.casefold() for one in desk.every(pull.get_labels())}
        if (errand.name.casefold() in standing) == errand.present:
            break
        status = Status.EDITED
        if desk.write(_labelling(errand, pull), gone_is_fine=not errand.present):
            break
    else:
        return _unsettled(errand)
    return Outcome(errand, status, url=pull.html_url)


def _labelling(errand: Label, pull: PullRequest) -> Callable[[], object]:
    if not errand.present:
        return lambda: pull.remove_from_labels(errand.name)
    # PyGithub's `add_to_labels` sends a bare list, which GitHub's description does not have.
    return lambda: pull.requester.requestJsonAndCheck(
        "POST", f"{pull.issue_url}/labels", input={"labels": [errand.name]}
    )


def _mail(errand: Mail, _: _Desk) -> Outcome:
    return Outcome(errand, Status.REFUSED, "a mail is not for GitHub: `tracker mail --resend FILE --send` sends it")


_DOERS: Mapping[type, Callable[[Any, _Desk], Outcome]] = MappingProxyType(
    {Comment: _comment, CheckRun: _check_run, Label: _label, Mail: _mail}
)
