"""Runs, attempts and artifacts on the same server, and the storage host to which the API redirects a download."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import threading
import zipfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import jwt

from tests.github.description import Call, description, example
from tests.github.server import NAME, OWNER, Answer, GitHub, Pull, _Handler, _message, _Plain, _Server, pulled

SIGNATURE = "c2lnbmVkSECRET"
"""Stands in the address of a download: who has it may read the archive."""
SHA = "c" * 40
LISTED_COMMITS = 250
"""So many commits of a pull request GitHub lists; the rest it leaves out without a word."""
WORKFLOW = ".github/workflows/run-sweep.yml"


def example_of(name: str) -> dict[str, Any]:
    """The first item of a list that GitHub gives as an example."""
    return dict(description()["x-examples"][name][0])


def zipped(files: Mapping[str, Any]) -> bytes:
    """An archive; values that are no bytes are written as JSON."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in files.items():
            archive.writestr(name, value if isinstance(value, bytes) else json.dumps(value))
    return buffer.getvalue()


@dataclass
class Upload:
    """An artifact as GitHub keeps it."""

    id: int
    name: str
    run: int
    archive: bytes
    created_at: str
    expired: bool = False
    size: int | None = None
    """What the list says, where that is not the truth."""


@dataclass
class App:
    """A GitHub App on one repository, and the tokens that it was given."""

    id: int
    installation: int
    public_key: str
    seconds: float = 3600.0
    """How long a token lives."""
    granted: Mapping[str, str] = field(
        default_factory=lambda: {"actions": "read", "contents": "read", "pull_requests": "read", "metadata": "read"}
    )
    asked: list[Mapping[str, str]] = field(default_factory=list)
    """The permissions of each token that was asked for."""
    tokens: dict[str, datetime] = field(default_factory=dict)
    """When each one ends."""

    @property
    def slug(self) -> str:
        return "sweep-tracker[bot]"

    def signed(self, word: str) -> bool:
        """Whether this is a token that the app signed itself, and still holds."""
        try:
            told = jwt.decode(word, self.public_key, algorithms=["RS256"], options={"require": ["exp", "iat", "iss"]})
        except jwt.InvalidTokenError:
            return False
        return str(told["iss"]) == str(self.id) and told["exp"] - told["iat"] <= 660

    def issue(self, permissions: Mapping[str, str]) -> tuple[str, datetime]:
        """A token of the installation and its end."""
        self.asked.append(permissions)
        token = f"ghs_installation{len(self.asked)}SECRET"
        self.tokens[token] = datetime.now(UTC) + timedelta(seconds=self.seconds)
        return token, self.tokens[token]


@dataclass
class Storage:
    """The host with the archives: whom it served, and what goes wrong next, by the words of `_Store`."""

    address: str = ""
    headers: list[dict[str, str]] = field(default_factory=list)
    faults: deque[str] = field(default_factory=deque)
    meeting: threading.Barrier | None = None
    """The next downloads wait for each other: so many are under way at once."""
    at_once: int = 0
    most_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Counts who is being served at this moment."""
        with self.lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if self.meeting:
                self.meeting.wait(timeout=30)
            yield
        finally:
            with self.lock:
                self.at_once -= 1


class Actions(GitHub):
    """A GitHub on which workflows ran: `with serving() as hub`, and say what happened there.

    ran(run, at, event=…)        a run, or its next attempt          ran_job(run, name, conclusion, attempt)   its jobs
    uploaded(run, name, files)   an artifact                         committed(ref, files, repository)         files
    proposed(pull, head, sha)    a pull request, merged as sha       said(pull, login, body, association=…)    comments
    installed(public_key)        a GitHub App                        order("GET", path, *faults)               faults

    Everything is of `octo/sweeps`, at `hub.address`, for who has `tests.github.server.TOKEN`. What the description of
    GitHub does not have is kept in `flaws`: a test asserts at its end that there are none.
    """

    def __init__(self) -> None:
        super().__init__()
        self.runs: dict[int, list[dict[str, Any]]] = {}
        self.uploads: dict[int, Upload] = {}
        self.commits: dict[str, list[dict[str, Any]]] = {}
        self.storage = Storage()
        self.jobs: dict[int, list[dict[str, Any]]] = {}
        self.files: dict[tuple[str, str], dict[str, bytes]] = {}
        """By repository and ref: the files of one commit by their paths."""
        self.app: App | None = None
        self.parted: dict[tuple[str, str], str] = {}
        """Where two commits part; a base that is not named parts at itself."""

    # what a test says

    def ran(self, run: int, started_at: str = "2026-06-14T04:00:00Z", **changes: Any) -> None:
        """A run, or its next attempt; `changes` are fields of GitHub's run object.

        `head_repository` is a name ("stranger/sweeps"). An attempt with `gone=True` is one that GitHub has no longer.
        """
        attempts = self.runs.setdefault(run, [])
        told: dict[str, Any] = {
            "event": "schedule",
            "head_sha": SHA,
            "path": WORKFLOW,
            "status": "completed",
            "conclusion": "success",
        }
        told |= {"id": run, "run_attempt": len(attempts) + 1, "run_started_at": started_at, "head_branch": "main"}
        told["created_at"] = attempts[0]["created_at"] if attempts else started_at
        attempts.append(told | changes)

    def ran_job(self, run: int, name: str, conclusion: str | None = "success", attempt: int = 1, **changes: Any) -> int:
        """A job of one attempt of a run, and its id; `changes` are fields of GitHub's job object.

        A conclusion of None is a job that is still at work. Names of lanes are `"single-node 8k1k / dsr1 …"`.
        """
        number = self._new_id()
        told = {
            "status": "completed" if conclusion else "in_progress",
            "started_at": "2026-06-14T04:10:00Z",
            "completed_at": "2026-06-14T04:50:00Z" if conclusion else None,
            "created_at": "2026-06-14T04:00:00Z",
            "runner_name": "h200-nv_1",
            "steps": [],
        }
        told |= {"id": number, "run_id": run, "run_attempt": attempt, "name": name, "conclusion": conclusion}
        told["html_url"] = f"https://github.com/{OWNER}/{NAME}/actions/runs/{run}/job/{number}"
        self.jobs.setdefault(run, []).append(told | changes)
        return number

    def proposed(self, number: int, head: str = "a" * 40, merged_as: str | None = None, **changes: Any) -> Pull:
        """A pull request with all that hangs on it; `merged_as` is the commit on main that it became.

        `changes` are fields of Pull: `labels`, `commits`, `branch`, `repository` (a fork), ... Each of its commits,
        and the merge commit, belongs to it.
        """
        pull = self.opened(number, head, merged_as, merged=merged_as is not None, **changes)
        for sha in dict.fromkeys([*pull.commits, head, *([merged_as] if merged_as else [])]):
            self.commits.setdefault(sha, []).append(self._simple(number))
        return pull

    def committed(self, ref: str, files: Mapping[str, bytes | str], repository: str = f"{OWNER}/{NAME}") -> None:
        """Files at a commit (or branch) of one repository; a ref that nobody committed is not known."""
        held = self.files.setdefault((repository, ref), {})
        held |= {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}

    def installed(self, public_key: str, app: int = 4711, installation: int = 815, **changes: Any) -> App:
        """An app, installed on the repository, that signs with the private half of this key (PEM)."""
        self.app = App(app, installation, public_key, **changes)
        return self.app

    def uploaded(self, run: int, name: str, files: Mapping[str, Any] | bytes, **changes: Any) -> Upload:
        """An artifact of files, or of bytes that stand for an archive."""
        archive = files if isinstance(files, bytes) else zipped(files)
        made = Upload(self._new_id(), name, run, archive, "2026-06-14T05:00:00Z")
        for key, value in changes.items():
            setattr(made, key, value)
        self.uploads[made.id] = made
        return made

    def merged(self, sha: str, number: int, head: str = "a" * 40, merge_commit: str | None = None) -> None:
        """A pull request that a commit belongs to."""
        self.opened(number, head, merge_commit)
        self.commits.setdefault(sha, []).append(self._simple(number))

    @property
    def downloads(self) -> int:
        return self.count("GET", "/zip$")

    # what the server does

    def perform(self, asked: Call, body: Any, login: str) -> Answer:
        if asked.pattern.endswith("/access_tokens"):
            return self.token(asked, body)
        route = ROUTES.get((asked.verb, asked.pattern))
        return route(self, asked) if route else super().perform(asked, body, login)

    def run(self, asked: Call) -> Answer:
        attempts = self.runs.get(int(asked["run_id"]))
        if attempts is None:
            raise _Plain(404, "Not Found")
        return 200, self._told(attempts[-1])

    def attempt(self, asked: Call) -> Answer:
        held = [one for one in self.runs[int(asked["run_id"])] if one["run_attempt"] == int(asked["attempt_number"])]
        if not held or held[0].get("gone"):
            raise _Plain(404, "Not Found")
        return 200, self._told(held[0])

    def runs_listed(self, asked: Call) -> Answer:
        wanted = {name: asked.asked(name) for name in ("head_sha", "event") if asked.asked(name)}
        newest = [self._told(attempts[-1]) for attempts in self.runs.values()]
        found = [one for one in newest if all(one[name] == value for name, value in wanted.items())]
        shown = sorted(found, key=lambda one: (str(one["created_at"]), one["id"]), reverse=True)
        return 200, {"total_count": len(shown), "workflow_runs": shown}

    def jobs_of(self, asked: Call) -> Answer:
        number = int(asked["run_id"])
        if number not in self.runs:
            raise _Plain(404, "Not Found")
        newest = self.runs[number][-1]["run_attempt"]
        held = self.jobs.get(number, [])
        shown = [one for one in held if asked.asked("filter") == "all" or one["run_attempt"] == newest]
        return 200, {"total_count": len(shown), "jobs": [example("job") | one for one in shown]}

    def pulls_listed(self, asked: Call) -> Answer:
        owner, _, branch = asked.asked("head").partition(":")
        state = asked.asked("state", "open")
        shown = [self._simple(number) for number in sorted(self.pulls, reverse=True)]
        return 200, [
            one
            for one in shown
            if state in {"all", one["state"]}
            and (not owner or (one["head"]["ref"] == branch and self._owner(one["number"]) == owner))
        ]

    def pull_commits(self, asked: Call) -> Answer:
        number = int(asked["pull_number"])
        if number not in self.pulls:
            raise _Plain(404, "Not Found")
        return 200, [
            example("commit") | {"sha": sha, "files": []} for sha in self.pulls[number].commits[:LISTED_COMMITS]
        ]

    def pull_files(self, asked: Call) -> Answer:
        kept = self.pulls.get(int(asked["pull_number"]))
        if kept is None:
            raise _Plain(404, "Not Found")
        blank = example_of("diff-entry-items") | {"status": "modified"}
        del blank["patch"]
        return 200, [blank | one for one in kept.files]

    def reviews(self, asked: Call) -> Answer:
        kept, shown = self.pulls[int(asked["pull_number"])], []
        for place, one in enumerate(kept.reviews):
            blank = example_of("pull-request-review-items")
            blank |= {"id": 700 + place, "body": one["body"], "state": one.get("state", "APPROVED")}
            blank |= {"submitted_at": one.get("submitted_at", "2026-06-02T00:00:00Z")}
            blank |= {"author_association": one.get("association", "MEMBER")}
            shown.append(blank | {"user": blank["user"] | {"login": one["login"]}})
        return 200, shown

    def compared(self, asked: Call) -> Answer:
        base, _, head = asked["basehead"].partition("...")
        told = example("commit-comparison") | {"files": [], "commits": []}
        sha = self.parted.get((base, head), base)
        return 200, told | {"merge_base_commit": told["merge_base_commit"] | {"sha": sha}}

    def contents(self, asked: Call) -> Answer:
        """A file or a folder at a ref; the handler chooses between the raw bytes and JSON."""
        files = self.files.get((f"{asked['owner']}/{asked['repo']}", asked.asked("ref", "main")))
        if files is None:
            raise _Plain(404, f"No commit found for the ref {asked.asked('ref')}")
        path = asked["path"].strip("/")
        if path in files:
            return 200, Held(self._file(path, files[path]), files[path])
        below = sorted({f"{path}/{one[len(path) + 1 :].split('/')[0]}" for one in files if one.startswith(f"{path}/")})
        if not below:
            raise _Plain(404, "Not Found")
        bare = {key: value for key, value in example("content-file").items() if key not in {"content", "encoding"}}
        kinds = {True: "file", False: "dir"}
        return 200, [bare | {"name": one.rpartition("/")[2], "path": one, "type": kinds[one in files]} for one in below]

    def installation(self, asked: Call) -> Answer:
        if self.app is None:
            raise _Plain(404, "Not Found")
        account = {"app_id": self.app.id, "id": self.app.installation, "app_slug": self.app.slug.removesuffix("[bot]")}
        return 200, example("installation") | account

    def token(self, asked: Call, body: Any) -> Answer:
        if self.app is None or int(asked["installation_id"]) != self.app.installation:
            raise _Plain(404, "Not Found")
        wanted = (body or {}).get("permissions") or dict(self.app.granted)
        if any(name not in self.app.granted for name in wanted):
            told = _message("The permissions requested are not granted to this installation.")
            return 422, told | {"errors": []}
        token, ends = self.app.issue(wanted)
        told = {"token": token, "expires_at": ends.strftime("%Y-%m-%dT%H:%M:%SZ"), "permissions": wanted}
        return 201, told

    def login(self, authorization: str, target: str) -> str | None:
        """Who asks. What an app signs itself opens the door to its tokens alone; a token ends when its time is over."""
        kind, _, word = authorization.partition(" ")
        if kind == "Bearer":
            apart = target.startswith("/app/") or target.endswith("/installation")
            return self.app.slug if self.app and apart and self.app.signed(word) else None
        if self.app and word in self.app.tokens:
            return self.app.slug if datetime.now(UTC) < self.app.tokens[word] else None
        return super().login(authorization, target)

    def _owner(self, number: int) -> str:
        return (self.pulls[number].repository or "").partition("/")[0]

    def _simple(self, number: int) -> dict[str, Any]:
        told = example("pull-request-simple")
        told |= {"number": number, "requested_teams": []}
        return told | pulled(self.pulls[number], told)

    def _file(self, path: str, content: bytes) -> dict[str, Any]:
        """JSON of a file; GitHub leaves the content out beyond one megabyte."""
        large = len(content) > 1024**2
        told = example("content-file") | {"path": path, "name": path.rpartition("/")[2], "size": len(content)}
        text = "" if large else base64.encodebytes(content).decode()
        return told | {"content": text, "encoding": "none" if large else "base64"}

    def artifacts(self, asked: Call) -> Answer:
        shown = [self._listed(one) for one in self.uploads.values() if one.run == int(asked["run_id"])]
        return 200, {"total_count": len(shown), "artifacts": shown}

    def archive(self, asked: Call) -> Answer:
        upload = self.uploads[int(asked["artifact_id"])]
        if upload.expired:
            return 410, _message("Artifact has expired")
        return 302, f"{self.storage.address}/{upload.id}?sig={SIGNATURE}"

    def pulls_of(self, asked: Call) -> Answer:
        return 200, self.commits.get(asked["commit_sha"], [])

    def _told(self, attempt: dict[str, Any]) -> dict[str, Any]:
        told = example("workflow-run") | {key: value for key, value in attempt.items() if key != "gone"}
        source, inner = attempt.get("head_repository", f"{OWNER}/{NAME}"), told["repository"]
        owner, _, name = source.partition("/")
        told["head_repository"] = inner | {
            "full_name": source,
            "name": name,
            "owner": inner["owner"] | {"login": owner},
        }
        address = f"{self._repository}/actions/runs/{attempt['id']}"
        told |= {"url": address, "artifacts_url": f"{address}/artifacts"}
        told["html_url"] = f"https://github.com/{OWNER}/{NAME}/actions/runs/{attempt['id']}"
        told["repository"] = told["repository"] | {"full_name": f"{OWNER}/{NAME}"}
        return told

    def _listed(self, upload: Upload) -> dict[str, Any]:
        told = example("artifact") | {"id": upload.id, "name": upload.name, "expired": upload.expired}
        told |= {"created_at": upload.created_at, "expires_at": "2026-09-12T05:00:00Z"}
        told["size_in_bytes"] = len(upload.archive) if upload.size is None else upload.size
        told["digest"] = f"sha256:{hashlib.sha256(upload.archive).hexdigest()}"
        told["workflow_run"] = told["workflow_run"] | {"id": upload.run}
        return told


_REPO = "/repos/{owner}/{repo}"
ROUTES = {
    ("GET", f"{_REPO}/actions/runs/{{run_id}}"): Actions.run,
    ("GET", f"{_REPO}/actions/runs/{{run_id}}/attempts/{{attempt_number}}"): Actions.attempt,
    ("GET", f"{_REPO}/actions/runs/{{run_id}}/artifacts"): Actions.artifacts,
    ("GET", f"{_REPO}/actions/artifacts/{{artifact_id}}/{{archive_format}}"): Actions.archive,
    ("GET", f"{_REPO}/commits/{{commit_sha}}/pulls"): Actions.pulls_of,
    ("GET", f"{_REPO}/actions/runs"): Actions.runs_listed,
    ("GET", f"{_REPO}/actions/runs/{{run_id}}/jobs"): Actions.jobs_of,
    ("GET", f"{_REPO}/pulls"): Actions.pulls_listed,
    ("GET", f"{_REPO}/pulls/{{pull_number}}/commits"): Actions.pull_commits,
    ("GET", f"{_REPO}/pulls/{{pull_number}}/files"): Actions.pull_files,
    ("GET", f"{_REPO}/pulls/{{pull_number}}/reviews"): Actions.reviews,
    ("GET", f"{_REPO}/compare/{{basehead}}"): Actions.compared,
    ("GET", f"{_REPO}/contents/{{path}}"): Actions.contents,
    ("GET", f"{_REPO}/installation"): Actions.installation,
}


@dataclass(frozen=True)
class Held:
    """A file in the two forms in which GitHub gives it."""

    told: dict[str, Any]
    raw: bytes


class _Api(_Handler):
    """Answers a download with the address of the archive, and a file in the form that was asked for."""

    github: Actions

    def _page(self, asked: Call, made: Any) -> tuple[Any, dict[str, str]]:
        if asked.pattern.endswith("{archive_format}") and isinstance(made, str):
            return None, {"Location": made}
        if isinstance(made, Held):
            raw = "raw" in self.headers.get("accept", "")
            return (made.raw if raw else made.told), {}
        return super()._page(asked, made)


class _Store(BaseHTTPRequestHandler):
    """The storage host, with its faults."""

    protocol_version = "HTTP/1.1"
    github: Actions

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        with self.github.storage.serving():
            self._serve()

    def _serve(self) -> None:
        storage, address = self.github.storage, urlsplit(self.path)
        storage.headers.append({name.lower(): value for name, value in self.headers.items()})
        fault = storage.faults.popleft() if storage.faults else ""
        archive = self.github.uploads[int(address.path.strip("/"))].archive
        status, body, length = FAULTS[fault](archive)
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = len(body) != length


Fault = Callable[[bytes], tuple[int, bytes, int]]
"""Status, body and announced length of the answer instead of this archive."""
FAULTS: Mapping[str, Fault] = {
    "": lambda archive: (200, archive, len(archive)),
    "broken off": lambda archive: (200, archive[: len(archive) // 2], len(archive)),
    "a part": lambda archive: (200, archive[: len(archive) // 2], len(archive) // 2),
    "busy": lambda _: (503, b"", 0),
    "forbidden": lambda _: (403, SIGNATURE.encode(), len(SIGNATURE)),
}


@contextmanager
def serving() -> Iterator[Actions]:
    """A GitHub and its storage, each on a free port of 127.0.0.1, until the block ends."""
    github = Actions()
    with _listening(_Api, github) as github.address, _listening(_Store, github) as github.storage.address:
        yield github


@contextmanager
def _listening(handler: type[BaseHTTPRequestHandler], github: Actions) -> Iterator[str]:
    server: ThreadingHTTPServer
    with _Server(("127.0.0.1", 0), type("Handler", (handler,), {"github": github})) as server:
        server.flaws = github.flaws
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join(timeout=10)
