"""One map, whoever does the work: in order, none lost, none twice, whatever dies; and what it is used for."""

from __future__ import annotations

import os
import pickle
from functools import partial
from pathlib import Path

import pytest

from store.duck import Store
from store.records import Trouble
from store.thresholds import SHIPPED
from tests import crews, toys
from tests.crews import exact
from tracker import annals, jobs, review, sides, workers
from tracker.annals import Asked
from tracker.excerpts import Source
from tracker.jobs import Where
from tracker.settings import RULES_VERSION, Settings
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


# ---------------------------------------------------------------- comparisons


def small(folder: Path, monkeypatch: pytest.MonkeyPatch, *gpus: str) -> Where:
    monkeypatch.setattr(crews, "GPUS", gpus)
    folder.mkdir()
    return crews.filled(folder, days=9)


def test_a_comparison_needs_no_more_than_its_excerpt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = small(tmp_path / "small", monkeypatch, "h100", "h200")
    monkeypatch.setattr("tracker.excerpts.RUNS_ASKED", 0)
    questions = (
        jobs.Question("run:1004/2", "last-good", ("tput_per_gpu", "median_tpot"), SHIPPED),
        jobs.Question("run:2009", "run:2003", ("tput_per_gpu",)),
    )
    for question in questions:
        chosen = question.metrics
        with (
            sides.opened(where.store, where.archive, where.withdrawn()) as past,
            sides.candidate(question.candidate, past, chosen, where.withdrawn()) as new,
        ):
            assert past is not None
            source = Source.of(past, where.archive, where.store, Crew(2))
            assert source is not None
            task = jobs._task(past, source, new, question, Settings())
        # What ran on the same GPU, and the newest run of all; with a second attempt or a second file of a run.
        assert len(task.excerpt.files) in (10, 11)
        assert exact(jobs._compared(pickle.loads(pickle.dumps(task)))) == exact(jobs.compare(question, where))


def test_a_review_that_is_shared_keeps_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = []
    monkeypatch.setattr(review, "MANY", 0)
    monkeypatch.setattr(review, "SLICE", 5)
    for crew in (ALONE, Crew(2)):
        where = small(tmp_path / str(crew.processes), monkeypatch, "h100")
        reviewed = review.review(where, crew=crew)
        assert (reviewed.judged, reviewed.known) == (10, 0)
        with Store.open(where.store, where.archive, read_only=True) as store:
            kept.append(exact((store.reviews(RULES_VERSION), store.findings())))
    assert kept[0] == kept[1]
    assert "regression" in kept[0]
