"""Work that a crew may be given, of which some goes wrong. Light, since each worker process imports it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from store.records import Trouble


def root(number: int) -> float:
    return float(number**0.5)


def fails(number: int) -> int:
    if number == 3:
        raise Trouble("there is no such number")
    if number == 5:
        raise KeyError(number)
    return number


def dies_once(folder: Path, number: int) -> int:
    """Kills its process the first time that it is given an odd number of these."""
    if number % 4 == 1:
        try:
            (folder / str(number)).touch(exist_ok=False)
        except FileExistsError:
            return number
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def dies_elsewhere(home: int, number: int) -> int:
    """Kills every process but one."""
    if os.getpid() != home:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def interrupts(number: int) -> int:
    raise KeyboardInterrupt
