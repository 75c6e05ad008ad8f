"""What may stand in a header of a mail: addresses, and texts in encoded words; no foreign text makes a second header.

The standard library folds some texts so that they read back changed, and takes a subject that looks like an encoded
word for one; so headers are encoded here (RFC 2047) and kept as they are.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import quote
from ipaddress import ip_address

from store.records import Trouble

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


class BadAddress(Trouble):
    """No address of one mailbox: says how to write one."""


@dataclass(frozen=True, slots=True)
class Mailbox:
    """An address and the name before it, which may be empty.

    >>> Mailbox.of("Doe, Jane <dev1@Example.org>")
    Mailbox(name='Doe, Jane', local='dev1', domain='example.org')
    """

    name: str
    local: str
    domain: str

    @classmethod
    def of(cls, address: str) -> Mailbox:
        """The parts of `name@host` or `Name <name@host>`; raises BadAddress."""
        if _CONTROLS.search(address) or _BREAKS.search(address) or is_broken(address):
            raise BadAddress(f"{address!r} holds a line break or a control: write it in one line")
        found = _NAMED.fullmatch(address.strip())
        name, spec = (found["name"] or "", found["spec"]) if found else ("", address.strip())
        local, at, domain = spec.rpartition("@")
        if not at or not _LOCAL.fullmatch(local) or not _DOMAIN.fullmatch(domain.lower()):
            raise BadAddress(f"{address!r} is no address: write name@host or 'Name <name@host>' in ASCII")
        return cls(_unquoted(name), local, domain.lower())

    @property
    def spec(self) -> str:
        return f"{self.local}@{self.domain}"

    @property
    def header(self) -> str:
        """The mailbox as a header shows it, folded behind its name."""
        if not self.name:
            return self.spec
        name = f'"{quote(self.name)}"' if _is_plain(self.name) else _words(self.name)
        return f"{name}\r\n <{self.spec}>"


def is_host(text: str) -> bool:
    """True for a name or an address of a machine.

    >>> is_host("mail.example.org"), is_host("127.0.0.1"), is_host("::1"), is_host("a..b"), is_host("")
    (True, True, True, False, False)
    """
    try:
        return _DOMAIN.fullmatch(text.lower()) is not None or ip_address(text) is not None
    except ValueError:
        return False


def is_broken(text: str) -> bool:
    """True when a text holds half of a character (a lone surrogate), which no encoding can carry."""
    return _SURROGATES.search(text) is not None


def one_line(text: str) -> str:
    r"""A header's text: a blank for a line break, nothing for other controls and at the ends.

    >>> one_line("x\r\nBcc: a@b.example")
    'x Bcc: a@b.example'
    """
    return _CONTROLS.sub("", _BREAKS.sub(" ", text)).strip(" ")


def encoded(text: str) -> str:
    """One line of text as a header holds it: as it is, or in encoded words of one line each.

    >>> encoded("Weekly report"), encoded("周报")
    ('Weekly report', '=?utf-8?b?5ZGo5oql?=')
    """
    return text if _is_plain(text) else _words(text)


def _unquoted(name: str) -> str:
    r"""A display name without the quotes that a user wrote around it.

    >>> _unquoted('"Doe, \\"J\\""'), _unquoted("Team")
    ('Doe, "J"', 'Team')
    """
    is_quoted = len(name) > 1 and name[0] == name[-1] == '"'
    return re.sub(r"\\(.)", r"\1", name[1:-1]) if is_quoted else name


def _is_plain(text: str) -> bool:
    """True for a text that every reader takes as it stands; what looks like an encoded word would be decoded."""
    return len(text) <= _PLAIN_LENGTH and _PLAIN.fullmatch(text) is not None and "=?" not in text


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
