"""The pages of a store by their address: the list of all, a run against the one before, a week. Nothing is written."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import TypeAlias

from reports import page, sitepages, week, weekpage
from reports.site import Index, RunLine, WeekLine
from reports.things import Listed
from store.records import RunKey, Trouble
from tracker import jobs, sides, weekly
from tracker.jobs import Where
from tracker.snapshot import Snapshots, Stamp, StoreIsWritten

RUNS_SHOWN = 1_000
"""Runs in the list: the newest; older ones have their pages all the same."""
PAGES_KEPT = 64
_LARGEST_ID, _LARGEST_ATTEMPT = 2**63 - 1, 2**31 - 1

Build: TypeAlias = Callable[[Where, tuple[str, ...], str], str | None]


@dataclass(frozen=True, slots=True)
class Page:
    """An HTTP status and the HTML that goes with it."""

    status: int
    html: str


@dataclass
class Site:
    """The pages of one store. They are made one at a time, and kept until the store changes."""

    snapshots: Snapshots
    lang: str = "en"
    trouble: Callable[[str], None] = lambda _: None
    """Is told why a page could not be made; the reader of the page is not."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _kept: dict[str, Page] = field(default_factory=dict)
    _of: object = None

    def page(self, address: str) -> Page:
        """The page of an address; no part of an address is ever the name of a file."""
        for pattern, build in ROUTES.items():
            if found := pattern.fullmatch(address):
                with self._lock:
                    return self._made(address, build, found.groups(""))
        return self.notice(404)

    def notice(self, status: int) -> Page:
        """What stands in the place of a page."""
        return Page(status, sitepages.notice(status, self.lang))

    def _made(self, address: str, build: Build, parts: tuple[str, ...]) -> Page:
        try:
            where, stamp = self.snapshots.current()
            self._forget_unless(stamp, where)
            if address not in self._kept:
                html = build(where, parts, self.lang)
                self._keep(address, self.notice(404) if html is None else Page(200, html))
            return self._kept[address]
        except StoreIsWritten as busy:
            self.trouble(str(busy))
            return self.notice(503)
        except Exception as flaw:
            self.trouble(f"{address}: {flaw if isinstance(flaw, Trouble) else repr(flaw)}")
            return self.notice(500)

    def _forget_unless(self, stamp: Stamp, where: Where) -> None:
        """Drop what was made of another state of the store or of the withdrawals."""
        of = (stamp, where.withdrawn())
        if of != self._of:
            self._kept.clear()
            self._of = of

    def _keep(self, address: str, made: Page) -> None:
        if len(self._kept) >= PAGES_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[address] = made


def _index(where: Where, _: tuple[str, ...], lang: str) -> str:
    with sides.opened(where.store, where.archive, where.withdrawn()) as store:
        rows = store.runs().select("run", "points", "scores", "official").rows() if store else []
        known = {str(run.key): run for run in sides.runs_by_text(store, [row[0] for row in rows])}
    lines = [RunLine(known[run], points, scores, official) for run, points, scores, official in rows if run in known]
    weeks = Counter(weekly.week_of(line.run.started_at).name for line in lines)
    return sitepages.index(
        Index(
            weeks=Listed(tuple(_week_line(name, weeks[name]) for name in sorted(weeks, reverse=True))),
            runs=Listed(tuple(lines)).first(RUNS_SHOWN),
        ),
        lang,
    )


def _week_line(name: str, runs: int) -> WeekLine:
    found = weekly.span(name)
    return WeekLine(name, found.start, found.end - timedelta(days=1), runs)


def _run(where: Where, parts: tuple[str, ...], lang: str) -> str | None:
    number, attempt = int(parts[0]), int(parts[1] or 0)
    if abs(number) > _LARGEST_ID or attempt > _LARGEST_ATTEMPT:
        return None
    with sides.opened(where.store, where.archive, where.withdrawn()) as store:
        run = store.run(RunKey(number, attempt) if attempt else number) if store else None
    return page.build(jobs.compare(jobs.Question(f"run:{run.key}"), where), lang) if run else None


def _week(where: Where, parts: tuple[str, ...], lang: str) -> str | None:
    try:
        weekly.span(parts[0])
    except Trouble:
        return None
    return weekpage.build(week.select(weekly.weekly(where, parts[0])), lang)


ROUTES: Mapping[re.Pattern[str], Build] = MappingProxyType(
    {
        re.compile(r"/"): _index,
        re.compile(r"/run/(-?[0-9]{1,19})(?:/([1-9][0-9]{0,9}))?"): _run,
        re.compile(r"/week/([0-9]{4}-W[0-9]{2})"): _week,
    }
)
"""Every address that has a page, and what makes it; None stands for no such page."""
