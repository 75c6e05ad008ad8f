"""A line on stderr for long work: shown on a terminal only, gone when the work is done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def watching(what: str) -> Iterator[Callable[[int], None]]:
    """Give a function that is told how many more were done.

    >>> with watching("rows") as watch:
    ...     watch(3)
    """
    with _line("{task.completed:,.0f} {task.description}", what) as watch:
        yield watch


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say what is being done and for how long, where nothing can be counted.

    >>> with waiting("judging"):
    ...     pass
    """
    with _line("{task.description}", what):
        yield


@contextmanager
def _line(text: str, what: str) -> Iterator[Callable[[int], None]]:
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn(text), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done: bar.advance(task, done)
