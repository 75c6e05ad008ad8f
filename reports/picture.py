"""A picture that a document shows, with the text that stands for it where pictures are not shown."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from store.records import Trouble

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,60}")


class CannotShow(Trouble):
    """No picture, or one without a name or words: says what is missing."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG. With `lang`, it is shown in the half of this language only; without, once per language.

    `name` becomes a file name; `alt` says in words what the picture shows.
    """

    name: str
    png: bytes
    alt: str
    lang: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise CannotShow(f"picture {self.name!r}: name it by lower-case letters, digits and hyphens")
        if not self.png.startswith(_SIGNATURE) or self.png[12:16] != b"IHDR" or 0 in self.size:
            raise CannotShow(f"picture {self.name}: not the bytes of a PNG")
        if not self.alt.strip():
            raise CannotShow(f"picture {self.name}: say in `alt` what it shows, for readers without pictures")

    @property
    def cid(self) -> str:
        """The name by which HTML of a mail shows it (RFC 2392), the same for the same bytes."""
        return f"{hashlib.sha256(self.png).hexdigest()[:32]}@sweep-tracker"

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels of the file."""
        return int.from_bytes(self.png[16:20]), int.from_bytes(self.png[20:24])
