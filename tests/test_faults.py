"""A small campaign of `bench.faults`, so that its table keeps being made of what the tracker does."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bench import faults
from bench.faults import Processes


@pytest.fixture(scope="module")
def processes() -> Processes:
    return Processes()


def test_a_story_that_is_killed_ends_like_one_that_is_not(
    tmp_path: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = [faults.Step(("ingest", "sweep-0.json"), is_hit=False), faults.Step(("ingest", "sweep-1.json"))]
    monkeypatch.setitem(faults.STORIES, "short", (lambda home: faults.sweeps(home, 2) and short, 2, False))
    told = faults.killed("short", 2, random.Random(1), tmp_path, processes)
    assert (told.tried, told.survived, told.lost, told.flaws) == (2, 2, 0, [])


def test_what_differs_at_the_end_is_counted_as_lost(
    tmp_path: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(home: Path) -> list[faults.Step]:
        names = faults.sweeps(home, 2)
        return [faults.Step(("ingest", names[home.name == "rough"]))]

    monkeypatch.setitem(faults.STORIES, "forgetful", (forgetful, 0, False))
    told = faults.killed("forgetful", 0, random.Random(1), tmp_path, processes)
    assert told.lost
    assert "other points" in told.flaws


def test_four_writers_at_once_land_everything_once(tmp_path: Path, processes: Processes) -> None:
    told = faults.writers("4 writers at once", 1, random.Random(1), tmp_path, processes)
    assert (told.tried, told.survived, told.flaws) == (1, 1, [])
