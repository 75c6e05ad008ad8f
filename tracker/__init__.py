"""Judges: what stands against what, the numbers, the verdict, the jobs, the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracker.frames import compare_frames, learn_scales
    from tracker.settings import Settings

__all__ = ["Settings", "compare_frames", "learn_scales"]

_HOMES = {"compare_frames": "tracker.frames", "learn_scales": "tracker.frames", "Settings": "tracker.settings"}


def __getattr__(name: str) -> object:
    """The public names, imported when they are asked for: `import tracker` loads neither polars nor scipy."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tracker' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - the point of this function

    return getattr(import_module(_HOMES[name]), name)
