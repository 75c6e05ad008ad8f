"""The server: pull requests with comments and labels, check runs, and faults that a test can order.

Requests and the server's own answers are held to the description; what is not described is kept in `flaws`, which
every test checks at its end.
"""

from __future__ import annotations

import copy
import json
import re
import socket
import struct
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlencode

from tests.github.description import Call, Undescribed, call, check_answer, check_request, example

BOT = "github-actions[bot]"
OWNER = "octo"
NAME = "sweeps"
TOKEN = "ghs_0123456789abcdefSECRET"

SECONDARY = (
    "You have exceeded a secondary rate limit and have been temporarily blocked from content creation. "
    "Please retry your request again later."
)
READ_ONLY = "Resource not accessible by integration"

Answer = tuple[int, Any]


@dataclass(frozen=True)
class Fault:
    """What happens to a matching request instead of, or after, its work.

    `do` says whether the work is done first (a lost answer); a `status` of 0 closes the connection without an answer.
    """

    status: int = 0
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    do: bool = False
    meanwhile: Callable[[], object] | None = None
    """What somebody else does just before."""


RESET = Fault()
LOST = Fault(do=True)
BAD_GATEWAY = Fault(502, "Server Error")
READ_ONLY_TOKEN = Fault(403, READ_ONLY, {"x-ratelimit-remaining": "4999"})


@dataclass
class Pull:
    """A pull request as GitHub keeps it."""

    head: str
    merge_commit: str | None = None
    """For an open one the commit of a trial merge, as GitHub tells it."""
    labels: list[str] = field(default_factory=list)
    merged: bool = False
    branch: str = "feature"
    repository: str | None = f"{OWNER}/{NAME}"
    """Where the head is; None for a fork that was deleted."""
    commits: list[str] = field(default_factory=list)
    """Oldest first. GitHub lists the first 250 of them."""
    base: str = "main"
    state: str = "open"
    base_sha: str = "b" * 40
    title: str = "A change"
    body: str = ""
    author: str = "author"
    files: list[dict[str, Any]] = field(default_factory=list)
    """Entries of its diff: `filename`, and `status`, `patch`, `previous_filename` where they matter."""
    more_files: int = 0
    """Files that GitHub counts and does not list."""
    reviews: list[dict[str, Any]] = field(default_factory=list)
    """`login`, `body`, and `state`, `submitted_at`, `association` where they matter."""


@dataclass
class Record:
    """A comment as GitHub keeps it."""

    id: int
    pull: int
    login: str
    body: str
    edits: int = 0
    association: str = "MEMBER"
    created_at: str = "2026-06-01T00:00:00Z"


@dataclass
class Order:
    verb: str
    path: re.Pattern[str]
    faults: deque[Fault]


class GitHub:
    """State and rules; `address` is where it listens."""

    _OWN = frozenset({"address", "storage", "flaws", "_lock", "_meeting"})
    """What belongs to the server and not to the story."""

    def __init__(self) -> None:
        self.pulls: dict[int, Pull] = {}
        self.comments: dict[int, Record] = {}
        self.checks: dict[int, dict[str, Any]] = {}
        self.logins = {TOKEN: BOT}
        self.requests: list[tuple[str, str]] = []
        self.flaws: list[str] = []
        self.address = ""
        self.page_size = 100
        """The largest page this server gives."""
        self._late = (0, 0)
        self._orders: list[Order] = []
        self._next_id = 1000
        self._lock = threading.RLock()
        self._meeting: threading.Barrier | None = None

    # what it holds

    def state(self) -> dict[str, Any]:
        """A copy of everything that was said to this server and that it wrote, for `restore`."""
        with self._lock:
            return copy.deepcopy({name: value for name, value in vars(self).items() if name not in self._OWN})

    def restore(self, state: Mapping[str, Any]) -> None:
        """As it was then, at the address of now."""
        with self._lock:
            vars(self).update(copy.deepcopy(dict(state)))
            self.flaws.clear()

    # what a test says

    def opened(self, number: int, head: str = "a" * 40, merge_commit: str | None = None, **changes: Any) -> Pull:
        """A pull request; `changes` are fields of Pull. Without commits it has its head alone."""
        self.pulls[number] = Pull(head, merge_commit, **changes)
        self.pulls[number].commits = self.pulls[number].commits or [head]
        return self.pulls[number]

    def said(self, pull: int, login: str, body: str, number: int | None = None, **changes: Any) -> Record:
        """A comment that somebody wrote; `changes` are fields of Record, such as its `association`."""
        with self._lock:
            self._next_id = max(self._next_id, number or 0) + (number is None)
            record = Record(number or self._next_id, pull, login, body, **changes)
            self.comments[record.id] = record
            return record

    def order(self, verb: str, path: str, *faults: Fault) -> None:
        """The next requests that match fail, one fault each."""
        with self._lock:
            self._orders.append(Order(verb, re.compile(path), deque(faults)))

    def lag(self, lists: int) -> None:
        """The next lists do not show what is written from now on."""
        self._late = (lists, self._next_id)

    def calm(self) -> None:
        """Forget the faults that nothing met."""
        with self._lock:
            self._orders.clear()

    def meet(self, parties: int) -> None:
        """The first POSTs wait for each other: so many jobs have looked before any of them writes."""
        self._meeting = threading.Barrier(parties)

    def of(self, pull: int, login: str = BOT) -> list[Record]:
        """The comments of one author, oldest first."""
        with self._lock:
            return sorted(
                (one for one in self.comments.values() if one.pull == pull and one.login == login), key=lambda r: r.id
            )

    def count(self, verb: str, path: str = "") -> int:
        return sum(1 for asked, target in self.requests if asked == verb and re.search(path, target))

    # what the server does

    def fault(self, verb: str, target: str) -> Fault | None:
        with self._lock:
            for order in self._orders:
                if order.faults and order.verb in {verb, "*"} and order.path.search(target):
                    return order.faults.popleft()
        return None

    def login(self, authorization: str, target: str) -> str | None:
        """Whose request this is; None where the token is not known."""
        return self.logins.get(authorization.removeprefix("token "))

    def gather(self, verb: str) -> None:
        meeting = self._meeting
        if meeting is not None and verb == "POST":
            meeting.wait(timeout=30)
            self._meeting = None

    def perform(self, asked: Call, body: Any, login: str) -> Answer:
        with self._lock:
            return ROUTES[asked.verb, asked.pattern](self, asked, body, login)

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id

    def pull(self, asked: Call, body: Any, login: str) -> Answer:
        number = int(asked["pull_number"])
        if number not in self.pulls:
            return 404, _message("Not Found")
        shown, kept = example("pull-request"), self.pulls[number]
        shown |= {"number": number, "merge_commit_sha": kept.merge_commit, "requested_teams": []}
        shown["url"] = f"{self._repository}/pulls/{number}"
        shown["issue_url"] = f"{self._repository}/issues/{number}"
        shown |= pulled(kept, shown) | {"merged": kept.merged, "commits": len(kept.commits)}
        shown |= {"title": kept.title, "body": kept.body, "user": shown["user"] | {"login": kept.author}}
        shown |= {"changed_files": len(kept.files) + kept.more_files}
        return 200, shown

    def list_comments(self, asked: Call, body: Any, login: str) -> Answer:
        number = int(asked["issue_number"])
        if number not in self.pulls:
            return 404, _message("Not Found")
        lists, known = self._late
        self._late = (max(0, lists - 1), known)
        shown = sorted((one for one in self.comments.values() if one.pull == number), key=lambda r: r.id)
        return 200, [self._shown(one) for one in shown if not lists or one.id <= known]

    def create_comment(self, asked: Call, body: Any, login: str) -> Answer:
        if len(body["body"]) > 65_536:
            return 422, _invalid("IssueComment", "body", "body is too long (maximum is 65536 characters)")
        record = Record(self._new_id(), int(asked["issue_number"]), login, body["body"])
        self.comments[record.id] = record
        return 201, self._shown(record)

    def edit_comment(self, asked: Call, body: Any, login: str) -> Answer:
        record = self.comments.get(int(asked["comment_id"]))
        if record is None:
            raise _Plain(404, "Not Found")
        if record.login != login:
            raise _Plain(403, "Must have admin rights to Repository.")
        record.body, record.edits = body["body"], record.edits + 1
        return 200, self._shown(record)

    def delete_comment(self, asked: Call, body: Any, login: str) -> Answer:
        if self.comments.pop(int(asked["comment_id"]), None) is None:
            raise _Plain(404, "Not Found")
        return 204, None

    def list_labels(self, asked: Call, body: Any, login: str) -> Answer:
        return 200, [_label(name) for name in self.pulls[int(asked["issue_number"])].labels]

    def add_labels(self, asked: Call, body: Any, login: str) -> Answer:
        labels = self.pulls[int(asked["issue_number"])].labels
        labels += [name for name in body["labels"] if name not in labels]
        return 200, [_label(name) for name in labels]

    def remove_label(self, asked: Call, body: Any, login: str) -> Answer:
        labels = self.pulls[int(asked["issue_number"])].labels
        if asked["name"] not in labels:
            return 404, _message("Label does not exist")
        labels.remove(asked["name"])
        return 200, [_label(name) for name in labels]

    def list_checks(self, asked: Call, body: Any, login: str) -> Answer:
        name = asked.asked("check_name")
        found = [one for one in self.checks.values() if one["head_sha"] == asked["ref"] and name in {"", one["name"]}]
        return 200, {"total_count": len(found), "check_runs": found}

    def create_check(self, asked: Call, body: Any, login: str) -> Answer:
        number = self._new_id()
        made = example("check-run") | {
            "id": number,
            "url": f"{self._repository}/check-runs/{number}",
            "pull_requests": [],
        }
        made["app"] = made["app"] | {"slug": login.removesuffix("[bot]")}
        self.checks[number] = _checked(made, body)
        return 201, self.checks[number]

    def edit_check(self, asked: Call, body: Any, login: str) -> Answer:
        number = int(asked["check_run_id"])
        self.checks[number] = _checked(self.checks[number], body)
        return 200, self.checks[number]

    @property
    def _repository(self) -> str:
        return f"{self.address}/repos/{OWNER}/{NAME}"

    def _shown(self, record: Record) -> dict[str, Any]:
        shown = example("issue-comment")
        shown |= {"id": record.id, "body": record.body, "url": f"{self._repository}/issues/comments/{record.id}"}
        shown["html_url"] = f"https://github.com/{OWNER}/{NAME}/pull/{record.pull}#issuecomment-{record.id}"
        shown["user"] = shown["user"] | {
            "login": record.login,
            "type": "Bot" if record.login.endswith("[bot]") else "User",
        }
        shown |= {"author_association": record.association, "created_at": record.created_at}
        return shown


def pulled(kept: Pull, shown: Mapping[str, Any]) -> dict[str, Any]:
    """What the list of pull requests and a single one tell alike."""
    owner, _, name = (kept.repository or "").partition("/")
    inner = shown["head"]["repo"]
    told = inner | {"name": name, "full_name": kept.repository, "owner": inner["owner"] | {"login": owner}}
    label = {"color": "f29513", "default": False, "description": "", "id": 1, "node_id": "", "url": ""}
    return {
        "labels": [label | {"name": one} for one in kept.labels],
        "state": "closed" if kept.merged else kept.state,
        "merged_at": "2026-06-14T03:00:00Z" if kept.merged else None,
        "merge_commit_sha": kept.merge_commit,
        "head": shown["head"] | {"sha": kept.head, "ref": kept.branch, "repo": told if kept.repository else None},
        "base": shown["base"] | {"ref": kept.base, "sha": kept.base_sha},
    }


def _message(text: str) -> dict[str, str]:
    return {"message": text, "documentation_url": "https://docs.github.com/rest"}


def _invalid(resource: str, name: str, text: str) -> dict[str, Any]:
    flaw = {"resource": resource, "field": name, "code": "unprocessable", "message": text}
    return _message("Validation Failed") | {"errors": [flaw]}


def _label(name: str) -> dict[str, Any]:
    return example("label") | {"name": name}


def _checked(standing: dict[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    return standing | dict(told) | {"output": standing["output"] | dict(told.get("output", {}))}


class _Plain(Exception):
    """An answer that GitHub gives and its description does not have."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message


Route = Callable[[GitHub, Call, Any, str], Answer]
_REPO = "/repos/{owner}/{repo}"
ROUTES: Mapping[tuple[str, str], Route] = {
    ("GET", f"{_REPO}/pulls/{{pull_number}}"): GitHub.pull,
    ("GET", f"{_REPO}/issues/{{issue_number}}/comments"): GitHub.list_comments,
    ("POST", f"{_REPO}/issues/{{issue_number}}/comments"): GitHub.create_comment,
    ("PATCH", f"{_REPO}/issues/comments/{{comment_id}}"): GitHub.edit_comment,
    ("DELETE", f"{_REPO}/issues/comments/{{comment_id}}"): GitHub.delete_comment,
    ("GET", f"{_REPO}/issues/{{issue_number}}/labels"): GitHub.list_labels,
    ("POST", f"{_REPO}/issues/{{issue_number}}/labels"): GitHub.add_labels,
    ("DELETE", f"{_REPO}/issues/{{issue_number}}/labels/{{name}}"): GitHub.remove_label,
    ("GET", f"{_REPO}/commits/{{ref}}/check-runs"): GitHub.list_checks,
    ("POST", f"{_REPO}/check-runs"): GitHub.create_check,
    ("PATCH", f"{_REPO}/check-runs/{{check_run_id}}"): GitHub.edit_check,
}


LISTED = ("check_runs", "artifacts", "jobs", "workflow_runs")
"""Where the items of a counted list stand."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    github: GitHub

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: a test reads `requests`."""

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.github.requests.append((self.command, self.path))
        self.github.gather(self.command)
        fault = self.github.fault(self.command, self.path)
        try:
            if fault is None:
                self._work(body, answer=True)
                return
            if fault.meanwhile:
                fault.meanwhile()
            if fault.do:
                self._work(body, answer=False)
            self._fail(fault)
        except Undescribed as flaw:
            self.github.flaws.append(f"{self.command} {self.path}: {flaw}")
            self._send(500, json.dumps(_message(str(flaw))))

    do_GET = do_POST = do_PATCH = do_DELETE = do  # noqa: N815

    def _work(self, body: bytes, *, answer: bool) -> None:
        login = self.github.login(self.headers.get("authorization", ""), self.path)
        if login is None:
            self._send(401, json.dumps(_message("Bad credentials")))
            return
        asked = call(self.command, self.path)
        try:
            status, made = self.github.perform(asked, check_request(asked, body), login)
        except _Plain as plain:
            self._send(plain.status, json.dumps(_message(plain.message)))
            return
        page, headers = self._page(asked, made)
        if isinstance(page, bytes):
            self._send_bytes(200, page, "application/vnd.github.raw")
            return
        text = "" if page is None else json.dumps(page, ensure_ascii=False)
        check_answer(asked, status, text)
        if answer:
            self._send(status, text, headers)

    def _page(self, asked: Call, made: Any) -> tuple[Any, dict[str, str]]:
        """A page of a list, and the link to the next one. A list of files has no pages."""
        key = next((key for key in LISTED if isinstance(made, dict) and "total_count" in made and key in made), None)
        items = made[key] if key else made
        if asked.verb != "GET" or not isinstance(items, list) or asked.pattern.endswith("{path}"):
            return made, {}
        size, number = min(self.github.page_size, int(asked.asked("per_page", "30"))), int(asked.asked("page", "1"))
        shown = items[(number - 1) * size : number * size]
        page = {**made, key: shown} if key else shown
        return page, self._link(asked, number, -(-len(items) // size))

    def _link(self, asked: Call, number: int, last: int) -> dict[str, str]:
        if number >= last:
            return {}
        path = self.path.split("?")[0]
        pages = {"next": number + 1, "last": last}
        links = (
            f'<{self.github.address}{path}?{urlencode({**dict(asked.query), "page": page})}>; rel="{name}"'
            for name, page in pages.items()
        )
        return {"Link": ", ".join(links)}

    def _fail(self, fault: Fault) -> None:
        if fault.status:
            echo = self.headers.get("authorization", "")
            self._send(
                fault.status, json.dumps(_message(fault.message.replace("{authorization}", echo))), fault.headers
            )
            return
        # A zero linger sends a reset, as a load balancer does that gives up.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def _send(self, status: int, text: str, headers: Mapping[str, str] = {}) -> None:
        self._send_bytes(status, text.encode(), "application/json; charset=utf-8", headers)

    def _send_bytes(self, status: int, body: bytes, kind: str, headers: Mapping[str, str] = {}) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, **headers}.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    flaws: list[str]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no flaw of the server; anything else is."""
        error = sys.exception()
        if not isinstance(error, ConnectionError):
            self.flaws.append(f"{type(error).__name__}: {error}")


@contextmanager
def serving(state: GitHub | None = None) -> Iterator[GitHub]:
    """A GitHub that listens on a free port of 127.0.0.1 until the block ends."""
    github = state or GitHub()
    handler = type("Handler", (_Handler,), {"github": github})
    with _Server(("127.0.0.1", 0), handler) as server:
        server.flaws = github.flaws
        github.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield github
        finally:
            server.shutdown()
            thread.join(timeout=10)


def marks(records: Sequence[Record], word: str) -> list[Record]:
    """The comments that carry a marker of this word on a line of its own."""
    return [one for one in records if re.search(rf"^<!-- {re.escape(word)} ", one.body, re.MULTILINE)]
