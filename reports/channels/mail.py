"""A mail errand as the bytes of a message: two parts in the order of fidelity, pictures beside the HTML.

The same errand gives the same bytes. Nothing is sent from here (see `smtp`).
"""

from __future__ import annotations

import hashlib
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from pathlib import Path
from urllib.parse import quote as percent

from reports.headers import Mailbox, encoded, one_line
from reports.outbox import Mail
from reports.picture import Picture

POLICY = SMTP.clone(refold_source="none")
"""CRLF at line ends, and headers as they were encoded here."""


def message(mail: Mail) -> EmailMessage:
    """The message of an errand: ASCII lines of at most 76 characters, or as long as an address of its headers."""
    made = EmailMessage(POLICY)
    for name, value in _headers(mail).items():
        if value:
            made.set_raw(name, value)
    # base64 keeps every line short, a leading dot and "From " harmless, and Chinese half as long as quoted-printable.
    made.set_content(mail.text, charset="utf-8", cte="base64")
    made.add_alternative(mail.html, subtype="html", charset="utf-8", cte="base64")
    boundary = f"=_{_digest(mail.text, mail.html)}"  # base64 has no underscore, so no part can hold it
    if mail.pictures:
        _show(made, mail.pictures, f"{boundary}_related")
    made.set_boundary(boundary)
    return made


def write(mail: Mail, folder: Path) -> Path:
    """Keep the message as an .eml file that mail clients open, whole or not at all; gives its path."""
    path = folder / f"{mail.stream}-{mail.message_id[1:13]}.eml"
    scratch = path.with_name(f".{path.name}.part")
    folder.mkdir(parents=True, exist_ok=True)
    scratch.write_bytes(message(mail).as_bytes())
    scratch.replace(path)
    return path


def _headers(mail: Mail) -> dict[str, str]:
    """Headers as they are sent; an empty one is left out.

    `Auto-Submitted` and `List-Id` tell responders to be silent (RFC 3834); `Precedence` was never a standard.
    """
    return {
        "From": mail.origin.header,
        "To": ",\r\n ".join(reader.header for reader in mail.readers),
        "Subject": encoded(one_line(mail.subject)),
        "Date": format_datetime(mail.date),
        "Message-ID": mail.message_id,
        "In-Reply-To": mail.first_id,
        "References": mail.first_id,
        "List-Id": f"<{mail.stream}.sweep-tracker.{mail.origin.domain}>",
        "List-Unsubscribe": f"<{mail.unsubscribe or _leave(mail.origin)}>",
        # One click is a POST over https (RFC 8058): no other address can have it.
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click" * mail.unsubscribe.lower().startswith("https:"),
        "Auto-Submitted": "auto-generated",
    }


def _leave(origin: Mailbox) -> str:
    return f"mailto:{percent(origin.spec, safe='@')}?subject=unsubscribe"


def _show(made: EmailMessage, pictures: tuple[Picture, ...], boundary: str) -> None:
    """Put pictures beside the HTML that shows them, each once."""
    _, html = made.iter_parts()
    for picture in {picture.cid: picture for picture in pictures}.values():
        html.add_related(
            picture.png, "image", "png", cid=f"<{picture.cid}>", filename=f"{picture.name}.png", disposition="inline"
        )
    html.set_param("type", "text/html")
    html.set_boundary(boundary)


def _digest(*texts: str) -> str:
    r"""A short name of texts; a zero byte stands between them, so that moving a border changes it.

    >>> _digest("ab", "c") == _digest("a", "bc")
    False
    """
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:32]
