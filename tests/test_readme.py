"""Documentation that can be run is run: console blocks of the READMEs, and the commands that they name."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli import Tracker
from tracker.cli import COMMANDS

ROOT = Path(__file__).parents[1]
READMES = ("README.md", "README_zh.md")
CONSOLE = re.compile(r"```console\n\$ tracker (.+?)\n(.*?)```", re.DOTALL)


def blocks(name: str) -> list[tuple[str, str]]:
    """Commands and what the text says they print."""
    return CONSOLE.findall((ROOT / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", READMES)
def test_console_blocks_print_what_the_text_says(tracker: Tracker, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tracker.folder)
    found = blocks(name)
    assert found
    for command, printed in found:
        said = tracker(*shlex.split(command))
        assert said.code == 0
        assert [line.rstrip() for line in said.out.strip().splitlines()] == printed.strip().splitlines()


@pytest.mark.parametrize("name", READMES)
def test_every_command_that_is_named_exists(name: str) -> None:
    named = set(re.findall(r"`tracker ([a-z-]+)", (ROOT / name).read_text(encoding="utf-8")))
    assert named == set(COMMANDS) - {"demo"} | (named & {"demo"})


def test_both_readmes_have_the_same_blocks_and_tables() -> None:
    english, chinese = (CONSOLE.sub("", (ROOT / name).read_text(encoding="utf-8")) for name in READMES)
    assert [command for command, _ in blocks(READMES[0])] == [
        command.replace(" --lang zh", "") for command, _ in blocks(READMES[1])
    ]
    for mark in ("\n| ", "\n## ", "\n### ", "\n    ", "```"):
        assert english.count(mark) == chinese.count(mark), mark
