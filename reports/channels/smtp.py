"""Delivers a mail errand by SMTP: checked TLS, a login, and another try only for recipients that have not got it.

A server that took the whole mail and whose answer was lost may have it or not. It is sent again then: the same
Message-ID makes a second copy the same mail to a client, where a week without its report would be missed by all.
"""

from __future__ import annotations

import re
import smtplib
import socket
import ssl
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from urllib.parse import unquote, urlsplit

from reports import escapes
from reports.channels.mail import message
from reports.headers import is_host
from reports.outbox import CannotSend, Mail
from store.patience import Delay, OutOfPatience, Patience, Waiting

PATIENCE = Patience(tries=12, seconds=1_000.0)
"""Room for four pauses after "not now", 60 s and twice as long each time: who defers strangers wants five minutes."""
PORTS: Mapping[str, int] = MappingProxyType({"smtps": 465, "smtp": 587})
"""Schemes: TLS from the first byte, or STARTTLS."""
_LAST_WAIT = 10
"""Times the timeout for the answer to the whole mail: who hangs up early gets it sent twice (RFC 5321, 4.5.3.2.6)."""
_OK = frozenset({250, 251})
_LOST = (smtplib.SMTPServerDisconnected, ConnectionError, TimeoutError, ssl.SSLEOFError, ssl.SSLZeroReturnError)


@dataclass(frozen=True, slots=True)
class Server:
    """Where mails are handed in; the password is never shown.

    `starttls` begins in the clear and is left at once when the server offers no TLS, unless it is on this machine.
    `plain` says that no TLS shall be used; a password goes over such a line on this machine only. `ca` is a file of
    certificates to trust in the place of the system's. `timeout` is in seconds.
    """

    host: str
    port: int
    starttls: bool = False
    user: str = ""
    password: str = field(default="", repr=False)
    ca: Path | None = None
    plain: bool = False
    timeout: float = 60.0

    def __post_init__(self) -> None:
        if self.user and not self.password:
            raise CannotSend(f"{self.host} wants a login of {self.user}: put the password into TRACKER_SMTP_PASSWORD")
        if self.plain and not self.starttls:
            raise CannotSend("smtps:// begins with TLS: write smtp:// where none shall be used")
        if self.plain and self.ca:
            raise CannotSend("certificates to trust are useless without TLS: give one of both")

    @classmethod
    def of(cls, url: str, password: str = "", ca: Path | None = None, *, plain: bool = False) -> Server:
        """A server from `smtps://user@host:465` or `smtp://user@host:587` (STARTTLS); the ports may be left out.

        >>> server = Server.of("smtps://bot%40example.org@mail.example.org", "secret")
        >>> server.host, server.port, server.user, "secret" in repr(server)
        ('mail.example.org', 465, 'bot@example.org', False)
        """
        try:
            parts = urlsplit(url)
            scheme, host, port = parts.scheme, parts.hostname or "", parts.port
        except ValueError:
            scheme, host, port = "", "", None
        # The address is not shown: somebody may have written the password into it.
        if scheme not in PORTS or not is_host(host) or (parts.path.strip("/") or parts.query or parts.fragment):
            raise CannotSend("the SMTP address is none: give smtps://user@host:465 or smtp://user@host:587")
        if parts.password is not None:
            raise CannotSend("the SMTP address holds a password: put it into TRACKER_SMTP_PASSWORD")
        user = unquote(parts.username or "")
        return cls(host, port or PORTS[scheme], scheme == "smtp", user, password if user else "", ca, plain)

    def context(self) -> ssl.SSLContext:
        """TLS with a checked certificate and name; raises CannotSend for a file without certificates."""
        try:
            return ssl.create_default_context(cafile=self.ca)
        except OSError as flaw:
            raise CannotSend(f"{self.ca} has no certificates to trust: {flaw}") from flaw

    def hidden(self, text: str) -> str:
        """The text in one line and without the password, also as a login sends it."""
        for secret in (self.password, _base64(self.password), _plain_login(self)) if self.password else ():
            text = text.replace(secret, "***")
        return escapes.clean(text)


class Status(StrEnum):
    """What became of a mail, for a recipient or for all."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    LATER = "later"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the server said about one recipient, by the bare address."""

    recipient: str
    status: Status
    reason: str = ""
    doubtful: bool = False
    """True when a whole mail was sent and its answer was lost: the recipient may have one copy more than told."""

    def __str__(self) -> str:
        doubt = "the answer to a copy was lost: it may have arrived as well" if self.doubtful else ""
        return "; ".join(part for part in (f"{self.recipient}: {self.status}", self.reason, doubt) if part)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A mail and what became of it for each recipient, in the order of the errand; those who had it are left out."""

    errand: Mail
    receipts: tuple[Receipt, ...]

    @property
    def status(self) -> Status:
        """The status that needs most to be done: later, refused, accepted."""
        found = {receipt.status for receipt in self.receipts}
        return next((status for status in (Status.LATER, Status.REFUSED) if status in found), Status.ACCEPTED)

    @property
    def done(self) -> bool:
        return self.status is Status.ACCEPTED

    @property
    def left(self) -> Mail:
        """The errand for another try: those who have it are marked, so that they get no second copy."""
        got = (receipt.recipient for receipt in self.receipts if receipt.status is Status.ACCEPTED)
        return replace(self.errand, accepted=(*self.errand.accepted, *got))

    def __str__(self) -> str:
        return "\n".join([f"mail {self.errand.message_id}: {self.status}", *(f"  {one}" for one in self.receipts)])


def deliver(mail: Mail, server: Server, patience: Patience = PATIENCE) -> Outcome:
    """Send a mail and say what became of it; nothing is raised for what the server or the line does.

    A connection that breaks and an answer of 4xx are tried again within the budget, everything else is final.
    Who accepted gets no second copy, here and when `Outcome.left` is delivered later.
    """
    delivery = _Delivery(mail, server, server.context())
    delivery.go(Waiting(patience))
    return Outcome(mail, tuple(delivery.receipts[spec] for spec in mail.left))


class _Stopped(Exception):
    """The server's answer, or the lack of one; with a delay it is worth another try."""

    def __init__(self, reason: str, delay: Delay | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.delay = delay


class _Delivery:
    """One mail on its way: who has a receipt, and for whom a copy may lie at the server."""

    def __init__(self, mail: Mail, server: Server, context: ssl.SSLContext) -> None:
        self.receipts: dict[str, Receipt] = {}
        self._sender = mail.origin.spec
        self._left = list(mail.left)
        self._bytes = message(mail).as_bytes()
        self._server = server
        self._context = context
        self._doubtful: set[str] = set()

    def go(self, waiting: Waiting) -> None:
        """Try until everybody has a final receipt or the budget is used up."""
        while self._left:
            delay = self._try()
            if delay is None:
                return
            try:
                waiting.wait(delay)
            except OutOfPatience as end:
                for spec in self._left:
                    before = self.receipts[spec]
                    self.receipts[spec] = replace(before, reason=f"{before.reason}; {end}")
                return

    def _try(self) -> Delay | None:
        """One connection; gives when those who are left may be tried again."""
        try:
            with _connection(self._server, self._context) as line:
                self._transact(line)
        except _Stopped as stop:
            self._settle(self._left, Status.REFUSED if stop.delay is None else Status.LATER, stop.reason)
            return stop.delay
        return Delay(limited=True) if self._left else None

    def _transact(self, line: smtplib.SMTP) -> None:
        self._fits(line)
        code, said = line.docmd("MAIL", f"FROM:<{self._sender}>")
        if code not in _OK:
            raise _answer(code, said)
        if taken := [spec for spec in list(self._left) if self._takes(line, spec)]:
            self._hand_over(line, taken)

    def _fits(self, line: smtplib.SMTP) -> None:
        limit = line.esmtp_features.get("size", "")
        if limit.isdecimal() and 0 < int(limit) < len(self._bytes):
            raise _Stopped(f"the mail has {len(self._bytes):,} bytes, and the server takes {int(limit):,}")

    def _takes(self, line: smtplib.SMTP, spec: str) -> bool:
        """Whether the server takes mail for this recipient; if not, the receipt says why."""
        code, said = line.docmd("RCPT", f"TO:<{spec}>")
        if code in _OK:
            return True
        answer = _answer(code, said)
        if code == 421:
            raise answer
        self._settle([spec], Status.REFUSED if answer.delay is None else Status.LATER, answer.reason)
        return False

    def _hand_over(self, line: smtplib.SMTP, taken: list[str]) -> None:
        code, said = line.docmd("DATA")
        if code == 354:
            line.send(re.sub(rb"(?m)^\.", b"..", self._bytes) + b".\r\n")
            code, said = self._last_answer(line, taken)
        if code == 250:
            self._settle(taken, Status.ACCEPTED, "")
            return
        answer = _answer(code, said)
        self._settle(taken, Status.REFUSED if answer.delay is None else Status.LATER, answer.reason)

    def _last_answer(self, line: smtplib.SMTP, taken: list[str]) -> tuple[int, bytes]:
        if line.sock is not None:
            line.sock.settimeout(self._server.timeout * _LAST_WAIT)
        try:
            return line.getreply()
        except (*_LOST, smtplib.SMTPException, OSError):
            self._doubtful.update(taken)
            raise

    def _settle(self, specs: list[str], status: Status, reason: str) -> None:
        """Write receipts; one that is not `later` is final."""
        for spec in list(specs):
            self.receipts[spec] = Receipt(spec, status, self._server.hidden(reason), spec in self._doubtful)
            if status is not Status.LATER:
                self._left.remove(spec)


# --- the line: connected, secured, logged in ---------------------------------------------------------------------


@contextmanager
def _connection(server: Server, context: ssl.SSLContext) -> Iterator[smtplib.SMTP]:
    """A line that takes mail; every failure, of its user as well, becomes _Stopped."""
    line: smtplib.SMTP | None = None
    try:
        line = _opened(server, context)
        line.ehlo_or_helo_if_needed()
        _secure(line, server, context)
        if server.user:
            _login(line, server)
        yield line
    except (OSError, smtplib.SMTPException) as error:
        raise _stopped(error) from None
    finally:
        if line is not None:
            with suppress(OSError, smtplib.SMTPException):
                line.quit()
            line.close()


def _opened(server: Server, context: ssl.SSLContext) -> smtplib.SMTP:
    if server.starttls:
        return smtplib.SMTP(server.host, server.port, timeout=server.timeout)
    return smtplib.SMTP_SSL(server.host, server.port, timeout=server.timeout, context=context)


def _secure(line: smtplib.SMTP, server: Server, context: ssl.SSLContext) -> None:
    """TLS on a line that began without; a line that stays in the clear stays on this machine, or was asked for."""
    if not server.starttls:
        return
    here = _is_here(line)
    if not server.plain and line.has_extn("starttls"):
        line.starttls(context=context)
        line.ehlo_or_helo_if_needed()
    elif server.ca or not (server.plain or here):
        raise _Stopped(
            "the server offers no TLS, or somebody on the way took the offer out: nothing was sent;"
            " try smtps://, or say --plain where the line is safe"
        )
    elif server.user and not here:
        raise _Stopped("a password goes to another machine by TLS only: leave out the user, or --plain")


def _is_here(line: smtplib.SMTP) -> bool:
    """Whether the other end is on this machine, by its address and not by its name."""
    return line.sock is not None and ip_address(line.sock.getpeername()[0].partition("%")[0]).is_loopback


def _login(line: smtplib.SMTP, server: Server) -> None:
    """Log in; smtplib's own way refuses passwords that are not ASCII."""
    offered = line.esmtp_features.get("auth", "").upper().split()
    way = next((way for name, way in _LOGINS.items() if name in offered), None)
    if way is None:
        raise _Stopped(f"the server offers no login by password (it offers: {' '.join(offered) or 'nothing'})")
    code, said = way(line, server)
    if code == 235:
        return
    answer = _answer(code, said)
    if answer.delay is None:
        raise _Stopped(f"{answer.reason}; look at the user of TRACKER_SMTP_URL and at TRACKER_SMTP_PASSWORD")
    raise answer


def _by_plain(line: smtplib.SMTP, server: Server) -> tuple[int, bytes]:
    return line.docmd("AUTH", f"PLAIN {_plain_login(server)}")


def _by_login(line: smtplib.SMTP, server: Server) -> tuple[int, bytes]:
    code, said = line.docmd("AUTH", f"LOGIN {_base64(server.user)}")
    return line.docmd(_base64(server.password)) if code == 334 else (code, said)


_LOGINS: Mapping[str, Callable[[smtplib.SMTP, Server], tuple[int, bytes]]] = MappingProxyType(
    {"PLAIN": _by_plain, "LOGIN": _by_login}
)
"""Ways to log in, the best first."""


def _plain_login(server: Server) -> str:
    return _base64(f"\0{server.user}\0{server.password}")


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode("ascii")


# --- what an answer means ----------------------------------------------------------------------------------------


def _answer(code: int, said: bytes | str) -> _Stopped:
    """The server's own words: "not now" (4xx) is worth another try, anything else is final."""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    reason = f"the server said {code} {text}".strip()
    if code == -1:
        return _Stopped("the server closed the connection", Delay())
    # 421 closes one connection, as a broken line does; the others defer a sender, who is to come back in minutes.
    return _Stopped(reason, Delay(limited=code != 421) if 400 <= code < 500 else None)


def _stopped(error: OSError | smtplib.SMTPException) -> _Stopped:
    """What a failure of the line means."""
    if isinstance(error, smtplib.SMTPResponseException):
        return _answer(error.smtp_code, error.smtp_error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return _Stopped(f"the certificate is not trusted: {error.verify_message}; give its authority by --ca FILE")
    if isinstance(error, _LOST):
        return _Stopped(f"the connection broke ({error or type(error).__name__})", Delay())
    if isinstance(error, ssl.SSLError):
        return _Stopped(f"no TLS there ({error.reason or error}): smtps:// is for port 465, smtp:// for 587 and 25")
    if isinstance(error, socket.gaierror) and error.errno != socket.EAI_AGAIN:
        return _Stopped(f"no such host ({error.strerror}): look at TRACKER_SMTP_URL")
    # The rest of OSError is the network: no route, no buffer.
    is_line = isinstance(error, OSError) and not isinstance(error, smtplib.SMTPException)
    return _Stopped(f"the line failed ({error})", Delay() if is_line else None)
