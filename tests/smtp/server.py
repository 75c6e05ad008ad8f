"""A mail server on 127.0.0.2 (aiosmtpd) with TLS, logins, and faults that a test can order."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

HOST = "127.0.0.2"
USER = "bot@example.org"
PASSWORD = "geheim-Wort-7"

RESET = "reset"
"""The connection is cut in the place of an answer."""
LOST = "lost"
"""The mail is taken, and the connection is cut in the place of the answer."""


@dataclass
class Taken:
    """A mail that the server took."""

    sender: str
    recipients: list[str]
    content: bytes
    encrypted: bool
    user: str | None


@dataclass
class Desk:
    """What the server shall answer, in turn, and what it took. `rcpt` is by recipient."""

    mail: deque[str] = field(default_factory=deque)
    rcpt: dict[str, deque[str]] = field(default_factory=dict)
    data: deque[str] = field(default_factory=deque)
    login: deque[str] = field(default_factory=deque)
    stripped: bool = False
    """Somebody on the way takes the offer of STARTTLS out."""
    taken: list[Taken] = field(default_factory=list)
    connections: int = 0
    commands: list[str] = field(default_factory=list)

    def got(self) -> list[str]:
        """Every recipient as often as it got the mail."""
        return sorted(name for one in self.taken for name in one.recipients)

    async def handle_EHLO(self, server: SMTP, session: Session, _: Envelope, host: str, lines: list[str]) -> list[str]:  # noqa: N802
        session.host_name = host
        return [line for line in lines if not (self.stripped and "STARTTLS" in line)]

    async def handle_MAIL(self, server: SMTP, _: Session, envelope: Envelope, address: str, options: list[str]) -> str:  # noqa: N802
        self.commands.append("MAIL")
        envelope.mail_from = address
        return self._answer(server, self.mail)

    async def handle_RCPT(self, server: SMTP, _: Session, envelope: Envelope, address: str, options: list[str]) -> str:  # noqa: N802
        self.commands.append(f"RCPT {address}")
        said = self._answer(server, self.rcpt.get(address, deque()))
        if said.startswith("250"):
            envelope.rcpt_tos.append(address)
        return said

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        self.commands.append("DATA")
        ordered = self.data[0] if self.data else "250"
        if ordered == LOST or ordered.startswith("250"):
            assert isinstance(envelope.content, bytes)
            user = session.auth_data.login.decode() if session.auth_data else None
            self.taken.append(
                Taken(str(envelope.mail_from), list(envelope.rcpt_tos), envelope.content, _is_encrypted(server), user)
            )
        return self._answer(server, self.data)

    def log_in(self, server: SMTP, session: Session, envelope: Envelope, way: str, told: Any) -> AuthResult:
        self.commands.append(f"AUTH {way}")
        if self.login:
            return AuthResult(success=False, handled=False, message=self._answer(server, self.login))
        assert isinstance(told, LoginPassword)
        right = (told.login.decode(), told.password.decode()) == (USER, PASSWORD)
        return AuthResult(success=right, handled=right, auth_data=told)

    @staticmethod
    def _answer(server: SMTP, ordered: deque[str]) -> str:
        said = ordered.popleft() if ordered else "250 fine"
        if said in {RESET, LOST}:
            assert server.transport is not None
            server.transport.abort()
        return said


def _is_encrypted(server: SMTP) -> bool:
    return server.transport is not None and server.transport.get_extra_info("ssl_object") is not None


@dataclass(frozen=True)
class Post:
    """A running server."""

    port: int
    desk: Desk
    implicit: bool

    def url(self, user: str = "") -> str:
        return f"{'smtps' if self.implicit else 'smtp'}://{f'{user}@' * bool(user)}{HOST}:{self.port}"


@contextmanager
def running(
    context: ssl.SSLContext | None = None, *, implicit: bool = False, login: bool = False, **more: Any
) -> Iterator[Post]:
    """A server in a thread of its own; without a context it offers no TLS."""
    desk, loop = Desk(), asyncio.new_event_loop()

    def connected() -> SMTP:
        desk.connections += 1
        return SMTP(
            desk,
            loop=loop,
            hostname="mail.example.org",
            tls_context=None if implicit else context,
            authenticator=desk.log_in if login else None,
            auth_require_tls=False,
            **more,
        )

    server = loop.run_until_complete(loop.create_server(connected, HOST, 0, ssl=context if implicit else None))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield Post(server.sockets[0].getsockname()[1], desk, implicit)
    finally:
        asyncio.run_coroutine_threadsafe(_stopped(server), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _stopped(server: asyncio.AbstractServer) -> None:
    server.close()
    await server.wait_closed()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
