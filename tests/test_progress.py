"""Long work says on a terminal what it does; where stderr is no terminal, it says nothing."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli import Tracker
from tests.factory import NEXT_IMAGE, bundle, history, row, run

COMMANDS = [
    (("weekly", "--week", "2026-W24"), ("runs judged", "telling the week")),
    (("report", "--html", "page.html"), ("judging",)),
    (("report", "--week", "2026-W24", "--html", "week.html"), ("runs judged", "telling the week")),
    (("report", "--charts", "pictures"), ("judging", "pictures drawn")),
]


@pytest.fixture
def landed(tracker: Tracker) -> Tracker:
    slower = bundle(run(200, "2026-06-12T00:00:00Z"), [row(4, 800.0, image=NEXT_IMAGE)])
    return tracker.filled([*history({4: [1000.0, 1003.0, 998.0]}), slower])


def on_terminal(folder: Path, *arguments: str) -> tuple[str, str]:
    """What a command writes to stdout, a pipe, and to stderr, a terminal."""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with (folder / "stdout").open("wb") as out:
        words = [sys.executable, "-m", "tracker", *arguments]
        process = subprocess.Popen(words, stdout=out, stderr=slave, cwd=folder, env=environment)
    os.close(slave)
    told = b""
    # A terminal holds a few thousand characters only, and its end is an error.
    with suppress(OSError):
        while part := os.read(master, 1 << 16):
            told += part
    os.close(master)
    assert process.wait() == 0, told
    return (folder / "stdout").read_text(encoding="utf-8"), told.decode()


@pytest.mark.parametrize(("arguments", "words"), COMMANDS)
def test_long_work_is_told_on_a_terminal_and_nowhere_else(
    landed: Tracker, arguments: tuple[str, ...], words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, told = on_terminal(landed.folder, *arguments)
    assert all(word in told for word in words), told
    monkeypatch.chdir(landed.folder)
    silent = landed(*arguments)
    assert (silent.code, silent.out) == (0, out)
    assert all(word not in silent.err + out for word in words)
