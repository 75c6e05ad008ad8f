"""Runs, attempts and artifacts on the same server, and the storage host to which the API redirects a download."""

from __future__ import annotations

import hashlib
import io
import json
import threading
import zipfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.github.description import Call, example
from tests.github.server import NAME, OWNER, Answer, GitHub, _Handler, _message, _Plain, _Server

SIGNATURE = "c2lnbmVkSECRET"
"""Stands in the address of a download: who has it may read the archive."""
SHA = "c" * 40
WORKFLOW = ".github/workflows/run-sweep.yml"


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
class Storage:
    """The host with the archives: whom it served, and what goes wrong next, by the words of `_Store`."""

    address: str = ""
    headers: list[dict[str, str]] = field(default_factory=list)
    faults: deque[str] = field(default_factory=deque)


class Actions(GitHub):
    """A GitHub on which workflows ran."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: dict[int, list[dict[str, Any]]] = {}
        self.uploads: dict[int, Upload] = {}
        self.commits: dict[str, list[dict[str, Any]]] = {}
        self.storage = Storage()
        self.page_size = 100
        """The largest page this server gives."""

    # what a test says

    def ran(self, run: int, started_at: str = "2026-06-14T04:00:00Z", **changes: Any) -> None:
        """A run, or its next attempt."""
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
        told = example("pull-request-simple")
        told |= {"number": number, "merge_commit_sha": merge_commit, "requested_teams": []}
        told["head"] = told["head"] | {"sha": head}
        self.commits.setdefault(sha, []).append(told)

    @property
    def downloads(self) -> int:
        return self.count("GET", "/zip$")

    # what the server does

    def perform(self, asked: Call, body: Any, login: str) -> Answer:
        route = ROUTES.get((asked.verb, asked.pattern))
        return route(self, asked) if route else super().perform(asked, body, login)

    def run(self, asked: Call) -> Answer:
        attempts = self.runs.get(int(asked["run_id"]))
        if attempts is None:
            raise _Plain(404, "Not Found")
        return 200, self._told(attempts[-1])

    def attempt(self, asked: Call) -> Answer:
        return 200, self._told(self.runs[int(asked["run_id"])][int(asked["attempt_number"]) - 1])

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
        told = example("workflow-run") | attempt
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
}


class _Api(_Handler):
    """Pages the artifacts, and answers a download with the address of the archive."""

    github: Actions

    def _page(self, asked: Call, made: Any) -> tuple[Any, dict[str, str]]:
        if asked.pattern.endswith("{archive_format}") and isinstance(made, str):
            return None, {"Location": made}
        if not asked.pattern.endswith("/artifacts"):
            return super()._page(asked, made)
        items, size = made["artifacts"], min(self.github.page_size, int(asked.asked("per_page", "30")))
        number = int(asked.asked("page", "1"))
        page = {**made, "artifacts": items[(number - 1) * size : number * size]}
        return page, self._link(asked, number, -(-len(items) // size))


class _Store(BaseHTTPRequestHandler):
    """The storage host, with its faults."""

    protocol_version = "HTTP/1.1"
    github: Actions

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
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
