"""One `map` over groups of series: in this process, in processes of this machine, or on a Ray cluster.

A group is worked on by one function of one module, whoever does it, and what is cut into groups never depends on how
many work: the answers are the same, bit for bit, in the order of the groups. Workers are told what to read, and read it
themselves. A worker that dies changes nothing: its groups are worked on again.
"""

from __future__ import annotations

import copyreg
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from types import MappingProxyType
from typing import Any, TypeVar

from tracker import clusters

T = TypeVar("T")
R = TypeVar("R")

POOLS = 3
"""Pools that may break before this process does the rest by itself."""


def _read_only(table: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(table)


# Frozen records hold tables as read-only views, which pickle does not know.
copyreg.pickle(MappingProxyType, lambda view: (_read_only, (dict(view),)))


def _unheard(_: object) -> None:
    """Nobody is told."""


@dataclass(frozen=True, slots=True)
class Crew:
    """Who does the work."""

    processes: int = 1
    """Of this machine; one is this process itself."""
    cluster: str | None = None
    """Address of a Ray cluster (`auto`, `HOST:PORT`, `ray://HOST:PORT`), which then does all of it."""
    tell: Callable[[str], None] = _unheard
    """Is told in words what went wrong and was mended."""
    watch: Callable[[int], None] = _unheard
    """Is told how many more groups are done."""

    @property
    def is_alone(self) -> bool:
        return self.cluster is None and self.processes == 1


ALONE = Crew()


def processors() -> int:
    """Processors that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def map(work: Callable[[T], R], groups: Sequence[T], crew: Crew = ALONE, name: Callable[[T], str] = str) -> list[R]:
    """What `work` gives for each group, in their order.

    `work` is a function of a module and groups are plain records, since both travel. What it raises is raised at once,
    with the `name` of its group; the rest is called off then, as it is by Ctrl-C.

    >>> map(len, ["a b", "c"])
    [3, 1]
    """
    if crew.cluster is not None:
        return clusters.gather(work, groups, crew.cluster, name, crew.watch)
    if crew.processes == 1 or len(groups) < 2:
        return [_alone(work, group, crew, name) for group in groups]
    return _pooled(work, groups, crew, name)


def _alone(work: Callable[[T], R], group: T, crew: Crew, name: Callable[[T], str]) -> R:
    """One group, done here."""
    try:
        answer = work(group)
    except Exception as flaw:
        clusters.raise_named(flaw, name(group))
    crew.watch(1)
    return answer


# ---------------------------------------------------------------- processes of this machine


def _pooled(work: Callable[[T], R], groups: Sequence[T], crew: Crew, name: Callable[[T], str]) -> list[R]:
    done: dict[int, R] = {}
    for _ in range(POOLS):
        _fill(done, work, groups, crew, name)
        missing = len(groups) - len(done)
        if not missing:
            break
        crew.tell(f"a worker process died: {missing} of {len(groups)} groups are worked on again")
    else:
        crew.tell(f"{POOLS} times a worker process died: this process does the rest by itself")
    return [done[n] if n in done else _alone(work, group, crew, name) for n, group in enumerate(groups)]


def _fill(
    done: dict[int, R], work: Callable[[T], R], groups: Sequence[T], crew: Crew, name: Callable[[T], str]
) -> None:
    """Work on what is not done yet; where the pool breaks, what was done by then stays."""
    with _pool(min(crew.processes, len(groups) - len(done))) as pool:
        waiting: dict[Future[R], int] = {}
        try:
            waiting |= {pool.submit(work, group): n for n, group in enumerate(groups) if n not in done}
        except BrokenProcessPool:
            return
        for future in as_completed(waiting):
            n = waiting[future]
            try:
                done[n] = future.result()
            except BrokenProcessPool:
                continue
            except Exception as flaw:
                clusters.raise_named(flaw, name(groups[n]))
            crew.watch(1)


@contextmanager
def _pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    # A fork would inherit the locks of polars' threads, held.
    pool = ProcessPoolExecutor(processes, get_context("spawn"), initializer=_begin)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown()


def _begin() -> None:
    """Ctrl-C is for the process that gives out the work: it calls off what has not begun."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
