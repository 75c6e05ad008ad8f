"""A report as a mail: headers that no foreign text can extend, two parts, the same bytes for the same input.

Nothing is sent from here. Headers are encoded here (RFC 2047) and kept as they are: the standard library folds some
texts so that they read back changed, and takes a subject that looks like an encoded word for one.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, quote
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote as percent

from store.records import Trouble

POLICY = SMTP.clone(refold_source="none")
"""CRLF at line ends, and headers as they were encoded here."""

_WORD_BYTES = 39
"""Bytes of one encoded word: 64 characters with its frame, so that a line with the longest name stays below 76."""
_PLAIN_LENGTH = 60
"""Characters of a text that stays as it is in one line."""
_PLAIN = re.compile(r"[!-~]+(?: [!-~]+)*")
_BREAKS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")

_NAMED = re.compile(r'(?:(?P<name>"(?:[^"\\]|\\.)*"|[^"<>]*[^"<>\s])\s*)?<(?P<spec>[^<>]*)>')
_LOCAL = re.compile(r"(?=.{1,64}$)[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*", re.ASCII)
_DOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*")


class CannotMail(Trouble):
    """A mail that a server would refuse, or that a foreign text would extend: says what to do."""


class _Mailbox(NamedTuple):
    name: str
    local: str
    domain: str

    @property
    def spec(self) -> str:
        return f"{self.local}@{self.domain}"


def message(  # noqa: PLR0913 - the parts of a mail, each of them needed
    subject: str,
    text: str,
    html: str,
    sender: str,
    recipients: Sequence[str],
    *,
    date: datetime,
    identity: str,
) -> EmailMessage:
    """A mail of two parts, plain text before HTML; the same arguments give the same bytes.

    Addresses are `name@host` or `Name <name@host>`. A line break in the subject becomes a blank. `date` carries its
    zone. `identity` names what is told ("weekly 2026-W31"), so that a second sending of it has the same Message-ID.
    List-Id and List-Unsubscribe stand on the sender's address. Raises CannotMail for what no server should get.
    """
    origin, readers = _mailbox("sender", sender), [_mailbox("recipient", one) for one in recipients]
    _check(readers, date, identity, subject, text, html)
    mail = EmailMessage(POLICY)
    for name, value in (
        ("From", _address(origin)),
        ("To", ",\r\n ".join(map(_address, readers))),
        ("Subject", _encoded(_one_line(subject))),
        ("Date", format_datetime(date)),
        ("Message-ID", f"<{_digest(identity)}@{origin.domain}>"),
        ("List-Id", f"<sweep-tracker.{origin.domain}>"),
        ("List-Unsubscribe", f"<mailto:{percent(origin.spec, safe='@')}?subject=unsubscribe>"),
        ("Auto-Submitted", "auto-generated"),
    ):
        mail.set_raw(name, value)
    # base64 keeps every line short, a leading dot and "From " harmless, and Chinese half as long as quoted-printable.
    mail.set_content(text, charset="utf-8", cte="base64")
    mail.add_alternative(html, subtype="html", charset="utf-8", cte="base64")
    mail.set_boundary(f"=_{_digest(text, html)}")  # base64 has no underscore, so no part can hold it
    return mail


def write(mail: EmailMessage, path: Path) -> None:
    """Keep a mail as an .eml file, whole or not at all."""
    scratch = path.with_name(f".{path.name}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch.write_bytes(mail.as_bytes())
    scratch.replace(path)


def _check(readers: Sequence[_Mailbox], date: datetime, identity: str, *texts: str) -> None:
    if not readers:
        raise CannotMail("no recipient: give at least one address")
    if date.tzinfo is None:
        raise CannotMail(f"date {date} has no zone: give it with one, such as UTC")
    if not identity:
        raise CannotMail("no identity: name what the mail tells, such as 'weekly 2026-W31'")
    if not _one_line(texts[0]):
        raise CannotMail("the subject is empty: render it as 'title'")
    if any(map(_SURROGATES.search, (*texts, identity))):
        raise CannotMail("the mail holds half of a character (a lone surrogate): cut it at a character")


def _mailbox(what: str, address: str) -> _Mailbox:
    """The parts of an address; `what` names its role when it is refused."""
    if _CONTROLS.search(address) or _BREAKS.search(address) or _SURROGATES.search(address):
        raise CannotMail(f"{what} {address!r} holds a line break or a control: write it in one line")
    found = _NAMED.fullmatch(address.strip())
    name, spec = (found["name"] or "", found["spec"]) if found else ("", address.strip())
    local, at, domain = spec.rpartition("@")
    if not at or not _LOCAL.fullmatch(local) or not _DOMAIN.fullmatch(domain.lower()):
        raise CannotMail(f"{what} {address!r} is no address: write name@host or 'Name <name@host>' in ASCII")
    return _Mailbox(_unquoted(name), local, domain.lower())


def _unquoted(name: str) -> str:
    r"""A display name without the quotes that a user wrote around it.

    >>> _unquoted('"Doe, \\"J\\""'), _unquoted("Team")
    ('Doe, "J"', 'Team')
    """
    is_quoted = len(name) > 1 and name[0] == name[-1] == '"'
    return re.sub(r"\\(.)", r"\1", name[1:-1]) if is_quoted else name


def _address(box: _Mailbox) -> str:
    if not box.name:
        return box.spec
    name = f'"{quote(box.name)}"' if _is_plain(box.name) else _words(box.name)
    return f"{name}\r\n <{box.spec}>"


def _one_line(text: str) -> str:
    r"""A header's text: a blank for a line break, nothing for other controls and at the ends.

    >>> _one_line("x\r\nBcc: a@b.example")
    'x Bcc: a@b.example'
    """
    return _CONTROLS.sub("", _BREAKS.sub(" ", text)).strip(" ")


def _is_plain(text: str) -> bool:
    """True for a text that every reader takes as it stands; what looks like an encoded word would be decoded."""
    return len(text) <= _PLAIN_LENGTH and _PLAIN.fullmatch(text) is not None and "=?" not in text


def _encoded(text: str) -> str:
    return text if _is_plain(text) else _words(text)


def _words(text: str) -> str:
    """Encoded words, one a line; none cuts a character."""
    return "\r\n ".join(f"=?utf-8?b?{b64encode(part).decode('ascii')}?=" for part in _chunks(text))


def _chunks(text: str) -> Iterator[bytes]:
    part = b""
    for char in text:
        added = char.encode()
        if len(part) + len(added) > _WORD_BYTES:
            yield part
            part = b""
        part += added
    yield part


def _digest(*texts: str) -> str:
    r"""A short name of texts; a zero byte stands between them, so that moving a border changes it.

    >>> _digest("ab", "c") == _digest("a", "bc")
    False
    """
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:32]
