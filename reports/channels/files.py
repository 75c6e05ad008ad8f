"""Puts texts into files: whole ones of ours, and our block in a file that others write into as well."""

from __future__ import annotations

import re
from pathlib import Path

from store.records import Trouble
from store.whole import write_atomically

_BLOCK = "sweep-tracker-block"


def put(path: Path, text: str) -> Path:
    """Write a file whole; its folder is made. Raises Trouble with what to do."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())
    except OSError as flaw:
        raise Trouble(f"{path} cannot be written ({flaw.strerror or flaw}): name a place that can be") from None
    return path


def put_block(path: Path, name: str, text: str) -> Path:
    """Put a text into a file between marks of this name: a second time it stands in the place of the first.

    So a job that was broken off and runs again leaves one text, and what other steps have written stays.
    """
    try:
        standing = path.read_text(encoding="utf-8") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as flaw:
        raise Trouble(f"{path} cannot be read ({flaw}): name another file") from None
    return put(path, with_block(standing, name, text))


def with_block(standing: str, name: str, text: str) -> str:
    r"""The text with our block in it.

    >>> once = with_block("others\n", "run-7", "ours")
    >>> once == with_block(once, "run-7", "ours"), once.count("ours"), once.startswith("others\n")
    (True, 1, True)
    """
    if not re.fullmatch(r"[\w.-]+", name):
        raise ValueError(f"{name!r} is no name of a block")
    first, last = (f"<!-- {_BLOCK} {name} {end} -->\n" for end in ("begins", "ends"))
    block = f"{first}{text.rstrip()}\n{last}"
    old = re.compile(f"^{re.escape(first)}.*?^{re.escape(last)}", re.DOTALL | re.MULTILINE)
    if old.search(standing):
        return old.sub(lambda _: block, standing, count=1)
    gap = "" if not standing or standing.endswith("\n") else "\n"
    return f"{standing}{gap}{block}"
