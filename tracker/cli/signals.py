"""Ctrl-C and `kill`: a command ends at once, in order, with 128 and the number of the signal as its exit code."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Final, NoReturn

ENDING: Final = (signal.SIGINT, signal.SIGTERM)

_caught: list[int] = []


class Ended(BaseException):
    """A signal asks the process to end. No library knows it, so none says or swallows anything on its way."""


def listen() -> None:
    """Turn the first signal into `Ended`; a second one ends the process where it stands, as if it were killed."""
    _caught.clear()
    for number in ENDING:
        signal.signal(number, _end)


def release() -> None:
    """Leave signals to the system again: nothing is left to be put in order."""
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)


def caught() -> int:
    """The signal that asked for the end; 0 for none.

    Code of C that is interrupted may raise anything in place of `Ended`, so whoever catches an exception asks here.
    """
    return _caught[0] if _caught else 0


def _end(number: int, _: FrameType | None) -> NoReturn:
    _caught.append(number)
    release()
    raise Ended
