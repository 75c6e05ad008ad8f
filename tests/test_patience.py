"""One budget for a job: failures in a row double the pause, and threads that wait together pay once."""

from __future__ import annotations

import threading

import pytest

from store.patience import Delay, OutOfPatience, Patience, Waiting
from tests.github.clock import Time


def test_a_pause_doubles_with_the_failures_of_one_request_alone() -> None:
    time = Time()
    waiting = Waiting(time.patience())
    for failures in (1, 2, 3, 1, 1):
        waiting.wait(Delay(), failures)
    assert time.slept == [1.0, 2.0, 4.0, 1.0, 1.0]


def test_without_a_count_all_failures_of_the_job_double_it() -> None:
    time = Time()
    waiting = Waiting(time.patience())
    for _ in range(2):
        waiting.wait(Delay(limited=True))
    assert time.slept == [60.0, 120.0]


def test_failures_are_bounded_although_each_is_a_first_one() -> None:
    time = Time()
    waiting = Waiting(time.patience(tries=5))
    for _ in range(4):
        waiting.wait(Delay(), 1)
    with pytest.raises(OutOfPatience, match="5 requests failed"):
        waiting.wait(Delay(), 1)


def test_seconds_are_bounded_although_each_pause_is_short() -> None:
    time = Time()
    waiting = Waiting(time.patience(seconds=130.0))
    waiting.wait(Delay(limited=True), 1)
    waiting.wait(Delay(limited=True), 1)
    with pytest.raises(OutOfPatience, match="60 s, and 10 s are left"):
        waiting.wait(Delay(limited=True), 1)


def test_threads_that_wait_together_pay_once() -> None:
    together = threading.Barrier(4)
    waiting = Waiting(Patience(tries=20, seconds=100.0, sleep=lambda _: None, clock=lambda: 1000.0))
    failed: list[Exception] = []

    def work() -> None:
        together.wait()
        try:
            waiting.wait(Delay(after=80.0), 1)
        except OutOfPatience as end:
            failed.append(end)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with pytest.raises(OutOfPatience, match="110 s, and 20 s are left"):
        waiting.wait(Delay(after=110.0), 1)


def test_an_ended_job_wakes_who_sleeps() -> None:
    waiting = Waiting(Patience())
    timer = threading.Timer(0.05, waiting.end)
    timer.start()
    with pytest.raises(OutOfPatience, match="over"):
        waiting.wait(Delay(after=250.0), 1)
