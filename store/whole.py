"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file whole: a reader, or a crash, meets the old bytes or the new ones. Mode and symlinks stay."""
    target = path.resolve()
    # The draft stands in the same folder, because a rename is atomic only within one file system.
    draft = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    mode = target.stat().st_mode & 0o7777 if target.exists() else None
    try:
        with draft.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            draft.chmod(mode)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Force a rename to the disk: without it a power cut may forget the name of a whole file."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
