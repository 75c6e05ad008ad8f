"""Reads GitHub: a run, its attempts, its artifacts, the pull requests of its commit. Nothing is ever written there.

Every answer is whole or an exception. PyGithub's own pauses and retries are off: it repeats no 429 without
Retry-After. Archives come by requests, since PyGithub cannot stream them: the API answers with the address of another
host, which must not see the token.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import github
import requests
from github.WorkflowRun import WorkflowRun

from store.patience import Delay, OutOfPatience, Patience, Waiting, delay_of
from store.records import Trouble
from store.runs import parse_time

T = TypeVar("T")

API = "https://api.github.com"
PAGE = 100
TIMEOUT = 20
"""Seconds for one request, and for one silence of a download."""
ARTIFACT_BYTES = 512 * 1024**2
"""Upstream's largest result artifact has a few megabytes; logs are larger, and are not fetched."""
HOPS = 5
"""Redirects of one download; one is usual."""
PATIENCE = Patience(tries=20, seconds=900.0)
"""A job may wait a quarter of an hour in all: less than the hour of a spent token, more than a secondary limit."""

_CHUNK = 1024**2
_WORDS = 4096
_BROKEN = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
_MOVED = frozenset({301, 302, 303, 307, 308})
_LATER = "what has arrived is kept: run the same command again later"


def is_token(text: str) -> bool:
    r"""True for a token without blanks: the exception of the HTTP library shows one with a line end.

    >>> is_token("ghs_16C7e42F"), is_token("ghs_16C7e42F\n"), is_token("")
    (True, False, False)
    """
    return bool(text) and text.isascii() and not any(char.isspace() or not char.isprintable() for char in text)


def is_repository(text: str) -> bool:
    """True for OWNER/NAME.

    >>> is_repository("octo/sweeps"), is_repository("sweeps"), is_repository("octo/")
    (True, False, False)
    """
    return text.count("/") == 1 and all(text.split("/"))


def client(token: str, api: str) -> github.Github:
    """PyGithub without its own pauses and retries, which hide a lost answer; nothing is asked until needed."""
    return github.Github(
        auth=github.Auth.Token(token),
        base_url=api,
        timeout=TIMEOUT,
        per_page=PAGE,
        retry=None,
        seconds_between_requests=None,
        seconds_between_writes=None,
        lazy=True,
    )


@dataclass(frozen=True, slots=True)
class Access:
    """Where to read and with which token, which is never shown."""

    repository: str
    token: str = field(repr=False)
    api: str = API

    def __post_init__(self) -> None:
        if not self.token:
            raise Trouble("artifacts need a token that may read them (`actions: read`): put it into GITHUB_TOKEN")
        if not is_token(self.token):
            raise Trouble("the token holds blanks, line ends or foreign characters: give it without them")
        if not is_repository(self.repository):
            raise Trouble(f"repository {self.repository!r}: give OWNER/NAME")


@dataclass(frozen=True, slots=True)
class Artifact:
    """An entry of the artifacts list of a run; `told` is the whole entry."""

    id: int
    name: str
    created_at: datetime
    size: int
    """Bytes of the archive."""
    expired: bool
    expires_on: str
    """A date; empty where GitHub tells none."""
    sha256: str
    """Of the archive, in hex; empty for uploads from before GitHub computed it."""
    told: Mapping[str, Any] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request that a commit belongs to."""

    number: int
    head: str
    merge_commit: str | None


class Expired(Exception):
    """GitHub has thrown the archive away."""


class TooLarge(Exception):
    """An archive of a size that results never have."""


class _Broken(Exception):
    """An answer that is not whole, or not what the API describes: asking again may help."""


class _Refused(Exception):
    """An answer to a download that is neither the archive nor a redirect."""

    def __init__(self, status: int, headers: Mapping[str, str], said: str) -> None:
        super().__init__(f"{status} {said}".strip())
        self.status = status
        self.headers = headers


class Reader:
    """One connection with one budget of patience; failures that waiting does not cure raise Trouble with a remedy."""

    def __init__(self, access: Access, patience: Patience = PATIENCE) -> None:
        self.access = access
        self._waiting = Waiting(patience)
        self._session = requests.Session()
        self._client = client(access.token, access.api)
        self._repository = self._client.get_repo(access.repository)

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()
        self._client.close()

    def run(self, number: int) -> dict[str, Any]:
        """The run object of the newest attempt."""
        return self._object(f"run {number}", self._run(number), number)

    def attempt(self, number: int, attempt: int) -> dict[str, Any]:
        """The run object of one attempt."""
        what = f"attempt {attempt} of run {number}"
        return self._object(what, self._run(number).get_attempt(attempt), number)

    def artifacts(self, number: int) -> tuple[Artifact, ...]:
        """All uploads of all attempts, logs and expired ones too, in the order of GitHub's list."""
        what = f"artifacts of run {number}"
        return self._read(what, lambda: self._listed(what, self._run(number)))

    def pulls(self, sha: str) -> tuple[Pull, ...]:
        """The pull requests that a commit belongs to, open ones too."""
        pages = self._repository.get_commit(sha).get_pulls()
        found = self._read(f"pull requests of commit {sha}", lambda: list(pages))
        return tuple(Pull(one.number, one.head.sha, one.merge_commit_sha) for one in found)

    def download(self, artifact: Artifact, path: Path) -> None:
        """Write the archive to a file; raises Expired or TooLarge. After an exception the file is no archive."""
        if artifact.size > ARTIFACT_BYTES:
            raise TooLarge(f"{artifact.size} bytes, at most {ARTIFACT_BYTES} are fetched")
        self._read(f"artifact {artifact.id} ({artifact.name})", lambda: self._download(artifact, path))

    def _run(self, number: int) -> WorkflowRun:
        return self._repository.get_workflow_run(number)

    def _object(self, what: str, run: WorkflowRun, number: int) -> dict[str, Any]:
        return self._read(what, lambda: _of_run(run.complete().raw_data, number))

    def _listed(self, what: str, run: WorkflowRun) -> tuple[Artifact, ...]:
        """All pages. After a failure PyGithub's list goes on with the page that failed; a short one is no list."""
        pages = run.get_artifacts()
        found = {one.id: one for one in map(_artifact, self._read(what, lambda: list(pages)))}
        if len(found) != pages.totalCount:
            raise _Broken(f"the list has {len(found)} of {pages.totalCount} entries")
        return tuple(found.values())

    # --- tried again within the budget ---------------------------------------------------------------------------

    def _read(self, what: str, call: Callable[[], T]) -> T:
        while True:
            try:
                return call()
            # PyGithub lets the ValueError of a JSON text pass that breaks off.
            except (github.GithubException, requests.RequestException, _Broken, _Refused, ValueError) as error:
                self._wait(what, error)

    def _wait(self, what: str, error: Exception) -> None:
        said, status = self._said(error), getattr(error, "status", 0)
        delay = _delay(error)
        if delay is None:
            raise Trouble(f"GitHub refuses {what}: {said}; {_remedy(status, self.access.repository)}") from None
        try:
            self._waiting.wait(delay)
        except OutOfPatience as end:
            limit = "rate limit of GitHub: " if delay.limited else ""
            raise Trouble(f"{what} cannot be read: {limit}{said}; {end}; {_LATER}") from None

    def _said(self, error: Exception) -> str:
        """GitHub's own words. What broke on the way is named only: its text has the signed address of an archive."""
        if isinstance(error, github.GithubException):
            data = error.data if isinstance(error.data, dict) else {}
            said = f"{error.status} {data.get('message') or ''}".strip()
        elif isinstance(error, _Broken | _Refused):
            said = str(error)
        else:
            said = f"no whole answer ({type(error).__name__})"
        return said.replace(self.access.token, "***")

    # --- archives -------------------------------------------------------------------------------------------------

    def _download(self, artifact: Artifact, path: Path) -> None:
        address = f"{self.access.api}/repos/{self.access.repository}/actions/artifacts/{artifact.id}/zip"
        with self._opened(address) as answer:
            if answer.status_code == 410:
                raise Expired
            if answer.status_code != 200:
                raise _Refused(answer.status_code, answer.headers, self._words(answer))
            digest = _written(answer, path)
        if artifact.sha256 not in {"", digest}:
            raise _Broken(f"the archive has the digest {digest[:12]}, not {artifact.sha256[:12]}")

    def _words(self, answer: requests.Response) -> str:
        """What the API says. The words of another host stay unsaid: they may repeat the signature of the address."""
        if _origin(answer.url) != _origin(self.access.api):
            return f"from {urlsplit(answer.url).hostname}"
        try:
            return str(json.loads(answer.raw.read(_WORDS, decode_content=True))["message"])
        except (ValueError, LookupError, TypeError):
            return ""

    def _opened(self, address: str) -> requests.Response:
        """The answer at the end of the redirects."""
        for _ in range(HOPS):
            answer = self._session.get(
                address,
                auth=self._auth(address),
                headers={"Accept-Encoding": "identity"},
                stream=True,
                allow_redirects=False,
                timeout=TIMEOUT,
            )
            if answer.status_code not in _MOVED:
                return answer
            answer.close()
            address = _moved(address, answer.headers.get("location", ""))
        raise _Broken(f"more than {HOPS} redirects")

    def _auth(self, address: str) -> Callable[[requests.PreparedRequest], requests.PreparedRequest]:
        """The token for the API alone. A function that does nothing keeps requests from looking into ~/.netrc."""
        ours = _origin(address) == _origin(self.access.api)

        def signed(request: requests.PreparedRequest) -> requests.PreparedRequest:
            if ours:
                request.headers["Authorization"] = f"token {self.access.token}"
            return request

        return signed


def _written(answer: requests.Response, path: Path) -> str:
    """The SHA-256 of the bytes that went to the file."""
    digest, size = hashlib.sha256(), 0
    with path.open("wb") as file:
        for chunk in answer.iter_content(_CHUNK):
            size += len(chunk)
            if size > ARTIFACT_BYTES:
                raise TooLarge(f"more than {ARTIFACT_BYTES} bytes")
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()


def _origin(address: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(address)
    return parts.scheme, parts.hostname, parts.port


def _moved(address: str, location: str) -> str:
    target = urljoin(address, location)
    if not location or urlsplit(target).scheme not in {"https", urlsplit(address).scheme}:
        raise _Broken("a redirect that leads nowhere, or away from https")
    return target


def _of_run(told: object, number: int) -> dict[str, Any]:
    if not isinstance(told, dict) or told.get("id") != number:
        raise _Broken(f"the answer is not run {number}")
    return told


def _artifact(one: Any) -> Artifact:
    told = one.raw_data
    try:
        return Artifact(
            id=int(told["id"]),
            name=str(told["name"]),
            created_at=parse_time(told["created_at"]),
            size=int(told["size_in_bytes"]),
            expired=told["expired"] is True,
            expires_on=str(told.get("expires_at") or "")[:10],
            sha256=_sha256(told.get("digest")),
            told=MappingProxyType(told),
        )
    except (KeyError, TypeError, AttributeError) as flaw:
        raise _Broken(f"an entry of the list is no artifact ({type(flaw).__name__}: {flaw})") from None


def _sha256(digest: object) -> str:
    kind, _, value = str(digest or "").partition(":")
    return value.lower() if kind == "sha256" else ""


def _delay(error: Exception) -> Delay | None:
    """When to ask again; None when that is useless."""
    if isinstance(error, github.GithubException):
        words = error.data.get("message") if isinstance(error.data, dict) else ""
        return delay_of(error.status, error.headers or {}, str(words))
    if isinstance(error, _Refused):
        return delay_of(error.status, error.headers, str(error))
    return None if isinstance(error, requests.RequestException) and not isinstance(error, _BROKEN) else Delay()


def _remedy(status: int, repository: str) -> str:
    return _REMEDIES.get(status, "trying again will not help: look at the reason").format(repository=repository)


_REMEDIES: Mapping[int, str] = MappingProxyType(
    {
        401: "the token in GITHUB_TOKEN is wrong or has expired: give a new one",
        403: "the token needs `actions: read`, `contents: read` and `pull-requests: read` of {repository}",
        404: "check the id and --repo {repository}, and that the token may read that repository",
    }
)
