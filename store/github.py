"""Reads GitHub: runs, attempts, jobs, artifacts, pull requests, comments, files. Nothing is ever written there.

Every answer is whole or an exception. PyGithub's own pauses and retries are off: it repeats no 429 without
Retry-After. Archives come by requests, since PyGithub cannot stream them: the API answers with the address of another
host, which must not see the token.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import github
import requests

from store import limits, redirects
from store.credentials import TIMEOUT, Credentials, Refused, Token
from store.patience import Delay, OutOfPatience, Patience, Waiting, delay_of
from store.records import Trouble
from store.runs import parse_time

T = TypeVar("T")

API = "https://api.github.com"
PAGE = 100
LISTED_FILES = 1000
"""So many entries of a folder GitHub lists; the rest it leaves out without a word."""
PATIENCE = Patience(tries=20, seconds=900.0)
"""A job may wait a quarter of an hour in all: less than the hour of a spent token, more than a secondary limit."""

_CHUNK = 1024**2
_WORDS = 4096
_BROKEN = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
_MOVED = frozenset({301, 302, 303, 307, 308})
_LATER = "what has arrived is kept: run the same command again later"


def is_repository(text: str) -> bool:
    """True for OWNER/NAME.

    >>> is_repository("octo/sweeps"), is_repository("sweeps"), is_repository("octo/")
    (True, False, False)
    """
    return text.count("/") == 1 and all(text.split("/"))


def client(token: str, api: str) -> github.Github:
    """PyGithub without its own pauses and retries, which hide a lost answer; nothing is asked until needed."""
    return _client(github.Auth.Token(token), api)


def _client(auth: github.Auth.Auth, api: str) -> github.Github:
    return github.Github(
        auth=auth,
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
    """Where to read and as whom; a text is a token. Neither is ever shown."""

    repository: str
    token: str | Credentials = field(repr=False)
    api: str = API

    def __post_init__(self) -> None:
        if not is_repository(self.repository):
            raise Trouble(f"repository {self.repository!r}: give OWNER/NAME")
        if isinstance(self.token, str):
            object.__setattr__(self, "token", Token(self.token))

    @property
    def credentials(self) -> Credentials:
        assert not isinstance(self.token, str)
        return self.token


class _Signed(github.Auth.Auth):
    """Signs each request with the token of that moment: one may end while a fetch goes on."""

    def __init__(self, given: Credentials) -> None:
        self._given = given

    @property
    def token_type(self) -> str:
        return "token"

    @property
    def token(self) -> str:
        return self._given.token()


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


class NotThere(Trouble):
    """GitHub does not know it, or does not show it to this token: a 404."""


class Incomplete(Trouble):
    """GitHub lists only a part; `seen` is that part."""

    def __init__(self, what: str, seen: tuple[str, ...], total: int | None) -> None:
        super().__init__(f"GitHub lists only {len(seen)} of {total or 'more'} {what}")
        self.seen = seen


class Expired(Exception):
    """GitHub has thrown the archive away."""


class TooLarge(Exception):
    """An archive or a file of a size that results and configs never have."""


class _Broken(Exception):
    """An answer that is not whole, or not what the API describes: asking again may help."""


class Reader:
    """One connection with one budget of patience; failures that waiting does not cure raise Trouble with a remedy."""

    def __init__(self, access: Access, patience: Patience = PATIENCE) -> None:
        self.access = access
        self._waiting = Waiting(patience)
        self._session = requests.Session()
        self._client = _client(_Signed(access.credentials), access.api)
        self._base = f"/repos/{access.repository}"

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()
        self._client.close()

    def give_up(self) -> None:
        """Let no request wait any more: those of other threads end with their next failure."""
        self._waiting.end()

    def run(self, number: int) -> dict[str, Any]:
        """The run object of the newest attempt."""
        return self._object(f"run {number}", f"/actions/runs/{number}", "id", number)

    def attempt(self, number: int, attempt: int) -> dict[str, Any]:
        """The run object of one attempt; raises NotThere when GitHub has it no longer."""
        what = f"attempt {attempt} of run {number}"
        return self._object(what, f"/actions/runs/{number}/attempts/{attempt}", "id", number)

    def artifacts(self, number: int) -> tuple[Artifact, ...]:
        """All uploads of all attempts, logs and expired ones too, in the order of GitHub's list."""
        what = f"artifacts of run {number}"
        return self._read(what, lambda: tuple(map(_artifact, self._whole(what, self._artifacts(number)))))

    def jobs(self, number: int) -> tuple[dict[str, Any], ...]:
        """The job objects of all attempts of a run."""
        path = f"/actions/runs/{number}/jobs"
        return self._list(_Pages(f"jobs of run {number}", path, "jobs", asked={"filter": "all"}))

    def runs_of(self, sha: str) -> tuple[dict[str, Any], ...]:
        """The run objects (newest attempts) of all workflows on one head commit, newest first."""
        return self._list(_Pages(f"runs on commit {sha}", "/actions/runs", "workflow_runs", asked={"head_sha": sha}))

    def pull(self, number: int, repository: str = "") -> dict[str, Any]:
        """The pull request object, of another repository where one is named."""
        base = f"/repos/{repository}" if repository else ""
        return self._object(f"pull request {number}", f"/pulls/{number}", "number", number, base)

    def pull_files(self, number: int) -> tuple[dict[str, Any], ...]:
        """The files that a pull request changes, with their patches; Incomplete beyond the 3000 that GitHub lists."""
        total = self.pull(number).get("changed_files")
        pages = _Pages(f"files of pull request {number}", f"/pulls/{number}/files", identity="filename")
        found = self._list(pages)
        if total is not None and len(found) < total:
            raise Incomplete(pages.what, tuple(one["filename"] for one in found), total)
        return found

    def reviews(self, number: int) -> tuple[dict[str, Any], ...]:
        """The reviews of a pull request, oldest first, dismissed ones too."""
        return self._list(_Pages(f"reviews of pull request {number}", f"/pulls/{number}/reviews"))

    def merge_base(self, base: str, head: str) -> str:
        """The commit where two commits or branches part; raises NotThere where they have none in common."""
        what = f"where {base} and {head} part"
        path = f"{self._base}/compare/{quote(base, safe='')}...{quote(head, safe='')}"

        def told() -> str:
            value, _ = self._get(what, path, {"per_page": 1})
            try:
                return str(value["merge_base_commit"]["sha"])
            except (KeyError, TypeError):
                raise _Broken(f"the answer does not say {what}") from None

        return self._read(what, told)

    def pulls(self, sha: str) -> tuple[Pull, ...]:
        """The pull requests that a commit belongs to, open ones too."""
        pages = _Pages(f"pull requests of commit {sha}", f"/commits/{sha}/pulls", identity="number")
        return tuple(Pull(one["number"], one["head"]["sha"], one["merge_commit_sha"]) for one in self._list(pages))

    def pulls_with_head(self, owner: str, branch: str) -> tuple[dict[str, Any], ...]:
        """The pull request objects whose head is this branch of this owner, closed ones too."""
        asked = {"head": f"{owner}:{branch}", "state": "all"}
        return self._list(_Pages(f"pull requests from {owner}:{branch}", "/pulls", identity="number", asked=asked))

    def pull_commits(self, number: int) -> tuple[str, ...]:
        """The shas of a pull request, oldest first; raises Incomplete beyond the 250 that GitHub lists."""
        total = self.pull(number)["commits"]
        pages = _Pages(f"commits of pull request {number}", f"/pulls/{number}/commits", identity="sha")
        found = tuple(one["sha"] for one in self._list(pages))
        if len(found) < total:
            raise Incomplete(pages.what, found, total)
        return found

    def comments(self, number: int) -> tuple[dict[str, Any], ...]:
        """The comment objects of a pull request or issue, oldest first; comments on lines are none of them."""
        return self._list(_Pages(f"comments of pull request {number}", f"/issues/{number}/comments"))

    def pull_of(self, run: Mapping[str, Any]) -> int | None:
        """The one pull request that a run object is of; several that fit are none.

        GitHub names it in the run while it is open and no fork's. Else, for a `pull_request`, head owner, branch,
        repository and commit must all fit (two repositories may have the branch); for a `push` the merge commit.
        """
        finder = _FINDERS.get(str(run.get("event")))
        told = _named_pulls(run) or (finder(self, run) if finder else [])
        return told[0] if len(set(told)) == 1 else None

    def file(self, path: str, ref: str, repository: str = "") -> bytes | None:
        """A file at a commit or branch; None when it is not there. Raises NotThere for an unknown commit, TooLarge."""
        what = f"{path} at {ref}"
        address = f"{self.access.api}{self._contents(path, repository)}?ref={quote(ref, safe='')}"
        try:
            return self._read(what, lambda: self._raw(address))
        except NotThere as flaw:
            if _is_commit_unknown(flaw):
                raise
            return None

    def listing(self, path: str, ref: str, repository: str = "") -> tuple[str, ...]:
        """The names of the files in a folder at a commit; empty where there is none. NotThere for an unknown commit."""
        try:
            told, _ = self._get(f"folder {path} at {ref}", self._contents(path, repository), {"ref": ref})
        except NotThere as flaw:
            if _is_commit_unknown(flaw):
                raise
            return ()
        entries = told if isinstance(told, list) else []
        found = tuple(str(one.get("name")) for one in entries if one.get("type") == "file")
        if len(entries) >= LISTED_FILES:
            raise Incomplete(f"files of {path}", found, None)
        return found

    def download(self, artifact: Artifact, path: Path) -> None:
        """Write the archive to a file; raises Expired or TooLarge. After an exception the file is no archive.

        Threads may download at the same time; they share the budget.
        """
        if artifact.size > limits.DOWNLOAD_BYTES:
            raise TooLarge(f"{artifact.size} bytes, at most {limits.DOWNLOAD_BYTES} are fetched")
        self._read(f"artifact {artifact.id} ({artifact.name})", lambda: self._download(artifact, path))

    def identity(self) -> tuple[str, str | None]:
        """A token of this moment, and the login that writes with it where GitHub tells."""
        given = self.access.credentials
        return self._read("a token of the app", lambda: (given.token(), given.login()))

    # --- answers --------------------------------------------------------------------------------------------------

    def _artifacts(self, number: int) -> _Pages:
        return _Pages(f"artifacts of run {number}", f"/actions/runs/{number}/artifacts", "artifacts")

    def _contents(self, path: str, repository: str) -> str:
        return f"/repos/{repository or self.access.repository}/contents/{quote(path)}"

    def _get(self, what: str, path: str, asked: Mapping[str, Any]) -> tuple[Any, Mapping[str, str]]:
        """One JSON answer and its headers."""
        headers, value = self._read(
            what, lambda: self._client.requester.requestJsonAndCheck("GET", path, dict(asked) or None)
        )
        return value, headers

    def _object(self, what: str, path: str, identity: str, number: int, base: str = "") -> dict[str, Any]:
        """An object that says itself which one it is."""

        def told() -> dict[str, Any]:
            value, _ = self._get(what, (base or self._base) + path, {})
            if not isinstance(value, dict) or value.get(identity) != number:
                raise _Broken(f"the answer is not {what}")
            return value

        return self._read(what, told)

    def _list(self, pages: _Pages) -> tuple[dict[str, Any], ...]:
        return self._read(pages.what, lambda: self._whole(pages.what, pages))

    def _whole(self, what: str, pages: _Pages) -> tuple[dict[str, Any], ...]:
        """All pages of a list. A page that failed is asked for again; a list shorter than its count is none."""
        found: dict[Any, dict[str, Any]] = {}
        number, more, value = 0, True, None
        while more:
            number += 1
            asked = {**pages.asked, "per_page": PAGE, **({"page": number} if number > 1 else {})}
            value, headers = self._get(what, self._base + pages.path, asked)
            found |= pages.items(value)
            more = 'rel="next"' in headers.get("link", "")
        total = pages.total(value)
        if total not in {None, len(found)}:
            raise _Broken(f"the list has {len(found)} of {total} entries")
        return tuple(found.values())

    def _raw(self, address: str) -> bytes:
        """The bytes of a file: its JSON leaves them out beyond a megabyte."""
        with self._opened(address, "application/vnd.github.raw") as answer:
            if answer.status_code != 200:
                raise Refused(answer.status_code, answer.headers, self._words(answer))
            content = bytearray()
            for chunk in answer.iter_content(_CHUNK):
                content += chunk
                if len(content) > limits.DOWNLOAD_FILE_BYTES:
                    raise TooLarge(f"{urlsplit(address).path} has more than {limits.DOWNLOAD_FILE_BYTES} bytes")
            return bytes(content)

    # --- tried again within the budget ---------------------------------------------------------------------------

    def _read(self, what: str, call: Callable[[], T]) -> T:
        for failures in itertools.count(1):
            try:
                return call()
            # PyGithub lets the ValueError of a JSON text pass that breaks off.
            except (github.GithubException, requests.RequestException, _Broken, Refused, ValueError) as error:
                self._wait(what, error, failures)
        raise AssertionError

    def _wait(self, what: str, error: Exception, failures: int) -> None:
        said, status = self._said(error), getattr(error, "status", 0)
        delay = _delay(error)
        if delay is None:
            kind = NotThere if status == 404 else Trouble
            raise kind(f"GitHub refuses {what}: {said}; {_remedy(status, self.access.repository)}") from None
        try:
            self._waiting.wait(delay, failures)
        except OutOfPatience as end:
            limit = "rate limit of GitHub: " if delay.limited else ""
            raise Trouble(f"{what} cannot be read: {limit}{said}; {end}; {_LATER}") from None

    def _said(self, error: Exception) -> str:
        """GitHub's own words. What broke on the way is named only: its text has the signed address of an archive."""
        if isinstance(error, github.GithubException):
            data = error.data if isinstance(error.data, dict) else {}
            said = f"{error.status} {data.get('message') or ''}".strip()
        elif isinstance(error, _Broken | Refused):
            said = str(error)
        else:
            said = f"no whole answer ({type(error).__name__})"
        return self.access.credentials.hidden(said)

    # --- archives -------------------------------------------------------------------------------------------------

    def _download(self, artifact: Artifact, path: Path) -> None:
        address = f"{self.access.api}/repos/{self.access.repository}/actions/artifacts/{artifact.id}/zip"
        with self._opened(address) as answer:
            if answer.status_code == 410:
                raise Expired
            if answer.status_code != 200:
                raise Refused(answer.status_code, answer.headers, self._words(answer))
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

    def _opened(self, address: str, accept: str = "*/*") -> requests.Response:
        """The answer at the end of the redirects."""
        for _ in range(limits.REDIRECTS):
            answer = self._session.get(
                address,
                auth=self._auth(address),
                headers={"Accept-Encoding": "identity", "Accept": accept},
                stream=True,
                allow_redirects=False,
                timeout=TIMEOUT,
            )
            if answer.status_code not in _MOVED:
                return answer
            answer.close()
            address = _moved(address, answer.headers.get("location", ""))
        raise _Broken(f"more than {limits.REDIRECTS} redirects")

    def _auth(self, address: str) -> Callable[[requests.PreparedRequest], requests.PreparedRequest]:
        """The token for the API alone. A function that does nothing keeps requests from looking into ~/.netrc."""
        token = self.access.credentials.token() if _origin(address) == _origin(self.access.api) else ""

        def signed(request: requests.PreparedRequest) -> requests.PreparedRequest:
            if token:
                request.headers["Authorization"] = f"token {token}"
            return request

        return signed


def _written(answer: requests.Response, path: Path) -> str:
    """The SHA-256 of the bytes that went to the file."""
    digest, size = hashlib.sha256(), 0
    with path.open("wb") as file:
        for chunk in answer.iter_content(_CHUNK):
            size += len(chunk)
            if size > limits.DOWNLOAD_BYTES:
                raise TooLarge(f"more than {limits.DOWNLOAD_BYTES} bytes")
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()


def _origin(address: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(address)
    return parts.scheme, parts.hostname, parts.port


def _moved(address: str, location: str) -> str:
    try:
        return redirects.target(address, location)
    except redirects.LeadsAstray as flaw:
        raise _Broken(str(flaw)) from None


@dataclass(frozen=True, slots=True)
class _Pages:
    """A list that comes in pages; a counted one stands under a key beside its count."""

    what: str
    path: str
    key: str = ""
    identity: str = "id"
    asked: Mapping[str, str] = field(default_factory=dict)

    def items(self, value: Any) -> dict[Any, dict[str, Any]]:
        """The items of one page by what tells them apart: an item may come again when the list has moved."""
        try:
            return {one[self.identity]: one for one in (value[self.key] if self.key else value)}
        except (KeyError, TypeError, IndexError) as flaw:
            raise _Broken(f"the answer is no list of {self.what} ({type(flaw).__name__})") from None

    def total(self, value: Any) -> int | None:
        return value.get("total_count") if self.key else None


def _is_commit_unknown(flaw: NotThere) -> bool:
    return "no commit found" in str(flaw).lower()


def _named_pulls(run: Mapping[str, Any]) -> list[int]:
    """What GitHub's run object names itself, less the pull requests of other repositories with the same commits."""
    home = _inner(run, "repository").get("id")
    named = [one for one in run.get("pull_requests") or () if isinstance(one, Mapping) and "number" in one]
    bases = [_inner(_inner(one, "base"), "repo").get("id") for one in named]
    ours = [one for one, base in zip(named, bases, strict=True) if base is None or home is None or base == home]
    return [one["number"] for one in ours]


def _pulls_of_head(reader: Reader, run: Mapping[str, Any]) -> list[int]:
    source, branch, sha = _inner(run, "head_repository"), run.get("head_branch"), run.get("head_sha")
    name = source.get("full_name")
    if not (isinstance(name, str) and isinstance(branch, str) and isinstance(sha, str)):
        return []
    same = [
        one
        for one in reader.pulls_with_head(name.partition("/")[0], branch)
        if _inner(_inner(one, "head"), "repo").get("full_name") == name
    ]
    exact = [one["number"] for one in same if _inner(one, "head").get("sha") == sha]
    return exact or [one["number"] for one in same if sha in _seen_commits(reader, one["number"])]


def _seen_commits(reader: Reader, number: int) -> tuple[str, ...]:
    """A pull request goes on after a run: then the commit of the run is an older one of it."""
    try:
        return reader.pull_commits(number)
    except Incomplete as part:
        return part.seen


def _pulls_of_merge(reader: Reader, run: Mapping[str, Any]) -> list[int]:
    sha = run.get("head_sha")
    return [one.number for one in reader.pulls(sha) if one.merge_commit == sha] if isinstance(sha, str) else []


_FINDERS: Mapping[str, Callable[[Reader, Mapping[str, Any]], list[int]]] = MappingProxyType(
    {"push": _pulls_of_merge, "pull_request": _pulls_of_head, "pull_request_target": _pulls_of_head}
)
"""Runs of other events are of no pull request."""


def _inner(told: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = told.get(name)
    return value if isinstance(value, Mapping) else {}


def _artifact(told: Mapping[str, Any]) -> Artifact:
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
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as flaw:
        raise _Broken(f"an entry of the list is no artifact ({type(flaw).__name__}: {flaw})") from None


def _sha256(digest: object) -> str:
    kind, _, value = str(digest or "").partition(":")
    return value.lower() if kind == "sha256" else ""


def _delay(error: Exception) -> Delay | None:
    """When to ask again; None when that is useless."""
    if isinstance(error, github.GithubException):
        words = error.data.get("message") if isinstance(error.data, dict) else ""
        return delay_of(error.status, error.headers or {}, str(words))
    if isinstance(error, Refused):
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
