"""How much of a foreign input is taken: every bound of size, number and depth (docs/threats.md has the table).

What is larger is refused before it is read, with the bound in the message; nothing is cut off without a word.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from store.records import Trouble

MIB = 1024**2

FILE_BYTES = 128 * MIB
"""A JSON or CSV file, or a member of an archive: sixty times upstream's largest capture."""
ARCHIVE_MEMBERS = 50_000
ARCHIVE_DIRECTORY_BYTES = 256 * ARCHIVE_MEMBERS
"""The list of members of an archive, which is read before the members can be counted."""
ARCHIVE_UNPACKED_BYTES = 2048 * MIB
"""All members of an archive that are read; one of them is held at a time."""
ARCHIVE_RATIO = 200
"""Result files shrink about twentyfold; deflate itself ends near 1000, which only made-up content reaches."""
ARCHIVE_RATIO_FROM_BYTES = MIB
"""Smaller members may shrink as they like."""
ARCHIVE_FILE_BYTES = 64 * MIB
"""A file of the store's own archive, from wherever it comes."""
ARCHIVE_FILE_ROWS = 1_000_000
"""Its records: the largest sweep has some hundred."""
NAME_BYTES = 255
"""One name in a path: what file systems hold."""
PATH_BYTES = 1024
"""The path of a member."""
YAML_BYTES = 4 * MIB
"""A text of YAML: ten times upstream's perf-changelog.yaml, its largest."""
YAML_DEPTH = 64
"""Levels of YAML; a master config has nine."""
YAML_NODES = 1_000_000
"""Nodes of YAML with every alias written out; perf-changelog.yaml has some 15,000."""
SAMPLES_BYTES = 4096 * MIB
"""A file of answers to an eval, which is read line by line: 1,319 long answers have some 30 MB."""
SAMPLES_LINE_BYTES = 16 * MIB
"""One line of it: prompt, answer and what the server said around it."""
SAMPLES_QUESTIONS = 200_000
"""Its questions; no eval comes near."""
DOWNLOAD_BYTES = 512 * MIB
"""An archive from GitHub: upstream's largest result artifact has a few megabytes; logs are larger, and not fetched."""
DOWNLOAD_FILE_BYTES = 16 * MIB
"""A file from GitHub: upstream's largest config has a third of a megabyte."""
REDIRECTS = 5
"""Of one download; one is usual."""
TITLE_CHARACTERS = 400
"""Of a job's name that are read: GitHub shows fewer."""
TEXT_CHARACTERS = MIB
"""A text whose claims are checked, or whose languages are compared: a comment on GitHub has at most 65,536."""


class TooLarge(Trouble, ValueError):
    """A file has more bytes than are read of its kind."""

    def __init__(self, name: str, limit: int) -> None:
        super().__init__(
            f"{name}: more than {limit} bytes, and at most {limit} are read of such a file: leave some out"
        )


def read_file(path: Path, limit: int) -> bytes:
    """The bytes of a file; TooLarge before any is read, or after so many where no size is told, as of a pipe."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size > limit:
            raise TooLarge(path.name, limit)
        return read_some(file, limit, path.name)


def read_some(file: IO[bytes], limit: int, name: str) -> bytes:
    """What is left of a stream; TooLarge where that is more than `limit` bytes."""
    content = bytearray()
    while chunk := file.read(min(MIB, limit + 1 - len(content))):
        content += chunk
        if len(content) > limit:
            raise TooLarge(name, limit)
    return bytes(content)


def read_text(stream: IO[str], limit: int, name: str) -> str:
    """What is left of a stream of text; TooLarge where that is more than `limit` characters."""
    text = stream.read(limit + 1)
    if len(text) > limit:
        raise TooLarge(name, limit)
    return text
