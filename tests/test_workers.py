"""One map, whoever does the work: in order, none lost, none twice, whatever dies; and what it is used for."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from store.records import Trouble
from tests import crews, toys
from tests.crews import exact
from tracker import annals, workers
from tracker.annals import Asked
from tracker.jobs import Where
from tracker.workers import ALONE, Crew


def test_answers_come_in_the_order_of_the_groups() -> None:
    numbers = [9, 1, 4, 16, 25]
    seen: list[int] = []
    answers = [workers.map(toys.root, numbers, crew) for crew in (ALONE, Crew(2), Crew(3, watch=seen.append))]
    assert answers == [[3.0, 1.0, 2.0, 4.0, 5.0]] * 3
    assert sum(seen) == 5
    assert workers.map(toys.root, [], Crew(2)) == []


@pytest.mark.parametrize("crew", [ALONE, Crew(2)], ids=["here", "pool"])
def test_what_fails_is_raised_with_the_name_of_its_group(crew: Crew) -> None:
    with pytest.raises(Trouble, match=r"^number 3: there is no such number$"):
        workers.map(toys.fails, [1, 2, 3, 4], crew, lambda number: f"number {number}")
    with pytest.raises(KeyError) as caught:
        workers.map(toys.fails, [1, 5], crew, lambda number: f"number {number}")
    assert "in the group: number 5" in caught.value.__notes__


def test_groups_of_dead_processes_are_worked_on_again(tmp_path: Path) -> None:
    said: list[str] = []
    done = workers.map(partial(toys.dies_once, tmp_path), range(8), Crew(2, tell=said.append))
    assert done == list(range(8))
    assert {path.name for path in tmp_path.iterdir()} == {"1", "5"}
    assert said
    assert all("worked on again" in text for text in said)


def test_this_process_does_what_no_pool_survives() -> None:
    said: list[str] = []
    assert workers.map(partial(toys.dies_elsewhere, os.getpid()), [7, 8], Crew(2, tell=said.append)) == [7, 8]
    assert said[-1] == "3 times a worker process died: this process does the rest by itself"


def test_an_interrupt_calls_the_work_off() -> None:
    with pytest.raises(KeyboardInterrupt):
        workers.map(toys.interrupts, [1, 2, 3], Crew(2))


def test_a_cluster_without_ray_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(Trouble, match=r"pip install 'sweep-tracker\[cluster\]'"):
        workers.map(toys.root, [1], Crew(cluster="127.0.0.1:1"))


# ---------------------------------------------------------------- history


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Where:
    return crews.filled(tmp_path_factory.mktemp("crew"))


def test_processes_that_share_a_history_answer_as_one_does_to_the_last_bit(
    where: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(
        ("hardware!=gb200",), since="2026-03-02", anchor="release:v0.5.9", metrics=("tput_per_gpu", "median_tpot")
    )
    alone = exact(annals.history(asked, where))
    given_out: list[int] = []
    monkeypatch.setattr(annals, "MANY", 0)
    monkeypatch.setattr(annals, "PORTION", 5)
    assert exact(annals.history(asked, where, Crew(2, watch=given_out.append))) == alone
    # Seven curves by two metrics: three curves a portion.
    assert sum(given_out) == 3
    withdrawn, superseded = "3006/1", "1004/1"
    assert withdrawn not in alone
    assert superseded not in alone
    assert "1004/2" in alone


def test_a_history_without_its_archive_is_told_by_this_process(
    where: Where, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(annals, "MANY", 0)
    given_out: list[int] = []
    moved = Where(where.store, tmp_path / "nowhere")
    told = annals.history(Asked(("hardware=h200",)), moved, Crew(2, watch=given_out.append))
    assert len(told) == 1
    assert not given_out
