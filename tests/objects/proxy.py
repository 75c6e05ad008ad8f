"""Stands before an S3 server and makes what goes wrong on the way: a fault names requests and what becomes of them."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ERROR = "<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message><RequestId>1</RequestId></Error>"
HOP = frozenset({"connection", "transfer-encoding", "content-length", "keep-alive"})


@dataclass(frozen=True)
class Fault:
    """What becomes of the requests whose `METHOD PATH?QUERY` fits: an error, a cut line, or an answer made over."""

    fits: str
    status: int = 0
    code: str = ""
    cut: bool = False
    """The line breaks in the middle of the upload: the server gets half of the body."""
    edit: Callable[[bytes], bytes] | None = None
    then: Callable[[], object] | None = None
    """Done when half of an upload has gone through."""
    times: int = 10**9
    after: int = 0
    """So many fitting requests pass first."""


@dataclass
class Proxy:
    """The address of the proxy, the faults in force, and what was asked."""

    address: str
    faults: list[Fault] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    seen: Counter[Fault] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fault(self, line: str) -> Fault | None:
        with self.lock:
            self.asked.append(line)
            for fault in self.faults:
                if re.search(fault.fits, line):
                    self.seen[fault] += 1
                    if fault.after < self.seen[fault] <= fault.after + fault.times:
                        return fault
        return None

    def count(self, fits: str) -> int:
        return sum(bool(re.search(fits, line)) for line in self.asked)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, behind: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind = behind
        self.proxy = Proxy(f"127.0.0.1:{self.server_address[1]}")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _pass(self) -> None:
        body = self._body()
        fault = self.server.proxy.fault(f"{self.command} {self.path}")
        if fault is not None and fault.status:
            self._say(fault.status, {"Content-Type": "application/xml"}, ERROR.format(code=fault.code).encode())
            return
        with closing(HTTPConnection(self.server.behind, timeout=30)) as line:
            if fault is not None and fault.cut:
                self._half(line, body)
                self.close_connection = True
                if fault.then is not None:
                    fault.then()
                return
            headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP}
            # The Host header stays the client's: the signature covers it.
            line.request(self.command, self.path, body, {**headers, "Content-Length": str(len(body))})
            self._give(line.getresponse(), fault)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _pass  # noqa: N815 - http.server's names

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts: list[bytes] = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _half(self, line: HTTPConnection, body: bytes) -> None:
        line.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in {"expect", "transfer-encoding"}:
                line.putheader(name, value)
        line.putheader("Content-Length", str(len(body)))
        line.endheaders(body[: len(body) // 2])

    def _give(self, answer: HTTPResponse, fault: Fault | None) -> None:
        content = answer.read()
        if fault is not None and fault.edit is not None:
            content = fault.edit(content)
        headers = {name: value for name, value in answer.getheaders() if name.lower() not in HOP}
        size = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
        self._say(answer.status, {**headers, "Content-Length": size or "0"}, content)

    def _say(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def before(behind: str) -> Iterator[Proxy]:
    """A proxy of a server (`HOST:PORT`); it ends with the block."""
    httpd = _Server(behind)
    thread = threading.Thread(target=httpd.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield httpd.proxy
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()
