"""Serves the pages of a store over HTTP: for reading only, to whoever asks by a name of this server.

A page that another site opens in the reader's browser cannot read them: a browser that was led here by another name
(DNS rebinding) says that name in Host and is refused.
"""

from __future__ import annotations

import socket
import socketserver
import sys
from collections.abc import Collection, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType

from store.records import Trouble
from tracker.site import Page, Site

HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Type": "text/html; charset=utf-8",
        # The page's own policy says what it may load; a frame around it can be forbidden by a header only.
        "Content-Security-Policy": "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
        "X-Frame-Options": "DENY",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
)
"""What every answer carries."""

_ANY = frozenset({"", "0.0.0.0", "::"})
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Server(ThreadingHTTPServer):
    """A server of a site; `names` are further values of Host that it answers to."""

    daemon_threads = True

    def __init__(self, host: str, port: int, site: Site, names: Collection[str] = ()) -> None:
        self.site = site
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), Handler)
        except (OSError, OverflowError) as flaw:
            raise Trouble(f"{host}:{port} cannot be served ({flaw}): choose another --port or --host") from flaw
        self.names = _names(host, self.server_port, names)

    def server_bind(self) -> None:
        """Bind without asking the name service what this machine is called."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002
        """Tell what went wrong in one line; a reader that has gone or stays silent is nothing wrong."""
        flaw = sys.exc_info()[1]
        if not isinstance(flaw, OSError):
            self.site.trouble(repr(flaw))

    @property
    def address(self) -> str:
        """Where a browser finds it."""
        return f"http://{_in_address(self.server_name)}:{self.server_port}/"


def _names(host: str, port: int, further: Collection[str]) -> frozenset[str]:
    """Every value of Host that means this server.

    >>> sorted(_names("0.0.0.0", 80, ["bench.example.org"]))[-2:]
    ['localhost', 'localhost:80']
    """
    own = _LOOPBACK if host in _ANY else (*_LOOPBACK, _in_address(host))
    named = {f"{name}:{port}" for name in own} | set(further)
    return frozenset(name.lower() for name in (named | set(own) if port == 80 else named))


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Server
    timeout = 30

    def version_string(self) -> str:
        """Who answers, without a version."""
        return "sweep-tracker"

    def do_GET(self) -> None:
        """Answer with a page."""
        self._answer(self._page())

    def do_HEAD(self) -> None:
        """Answer as to GET, without the page."""
        self._answer(self._page())

    def _page(self) -> Page:
        named = self.headers.get_all("Host", [])
        if len(named) != 1 or named[0].strip().lower() not in self.server.names:
            return self.server.site.notice(400)
        return self.server.site.page(self.path.partition("?")[0])

    def _answer(self, page: Page) -> None:
        body = page.html.encode("utf-8", "replace")
        self.send_response(page.status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        if page.status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        if page.status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.send_header("Retry-After", "5")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Say in words what http.server refuses by itself: nothing that was sent is sent back."""
        self.close_connection = True
        self._answer(self.server.site.notice(405 if code == HTTPStatus.NOT_IMPLEMENTED else 400))

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged; what could not be made is told by the site."""
