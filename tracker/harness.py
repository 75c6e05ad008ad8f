"""Events of the test harness upon frames and findings: what is kept apart before statistics, what is said after."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

import polars as pl

from store.identity import config_key, curve_key, curve_of
from store.records import Caveat, Finding, Run, Scope, Series, Unmatched, Verdict
from tracker.events import ANY_METRIC, Effect, Event, Span, Timeline, joined, span

_CELL = ("series", "metric")


def spans(measured: pl.DataFrame) -> dict[tuple[str, str], Span]:
    """When each run measured each curve, out of a frame with `run`, `curve`, `earliest` and `latest` (UTC)."""
    ends = measured.group_by("run", "curve").agg(pl.col("earliest").min(), pl.col("latest").max()).drop_nulls()
    return {(run, curve): joined((span(first), span(last))) for run, curve, first, last in ends.iter_rows()}


@dataclass(frozen=True, slots=True)
class Parted:
    """Both sides without what was redefined between them, and what that leaves without a verdict."""

    history: pl.DataFrame
    candidate: pl.DataFrame
    apart: tuple[Unmatched, ...] = ()
    """Points of which nothing is left to compare."""
    findings: tuple[Finding, ...] = ()
    """Curves of which this one metric may not be compared."""


def part(history: pl.DataFrame, candidate: pl.DataFrame, curves: Mapping[str, Series], timeline: Timeline) -> Parted:
    """Keep the rows apart that stand beyond an event which gave their metric another meaning (tidy frames)."""
    foreign = dict(_foreign(history, candidate, curves, timeline))
    if not foreign:
        return Parted(history, candidate)
    keys = pl.DataFrame(list(foreign), dict.fromkeys(("run", "curve", "metric"), pl.String), orient="row")
    kept = history.join(keys, ["run", "curve", "metric"], "anti", maintain_order="left")
    reasons = {(curve, metric): caveat for (_, curve, metric), caveat in foreign.items()}
    starved = history.select(_CELL).unique().join(kept.select(_CELL).unique(), _CELL, "anti")
    lost = candidate.join(starved, _CELL, "semi", maintain_order="left")
    left = candidate.join(starved, _CELL, "anti", maintain_order="left")
    alive = set(left.join(kept.select(_CELL).unique(), _CELL, "semi")["series"])
    gone = lost.filter(~pl.col("series").is_in(list(alive)))
    rest = lost.filter(pl.col("series").is_in(list(alive)))
    return Parted(
        history=kept,
        candidate=left.filter(~pl.col("series").is_in(gone["series"].unique().to_list())),
        apart=tuple(_points_apart(gone, reasons)),
        findings=tuple(_metrics_apart(rest, reasons)),
    )


def _foreign(
    history: pl.DataFrame, candidate: pl.DataFrame, curves: Mapping[str, Series], timeline: Timeline
) -> Iterator[tuple[tuple[str, str, str], Caveat]]:
    """Run, curve and metric of the history that an event parts from the candidate's rows, and that event."""
    redefined = [event for event in timeline.events if event.effect is Effect.NOT_COMPARABLE]
    if not redefined:
        return
    now = dict(candidate.group_by("curve").agg(pl.col("run").unique()).iter_rows())
    metrics = history["metric"].unique().sort().to_list()
    for curve, run in history.select("curve", "run").unique().sort("curve", "run").iter_rows():
        for metric in metrics if curve in now else ():
            events = [event for event in redefined if event.affects(curves[curve], metric)]
            for doubt in timeline.doubts(events, [run], now[curve], curve):
                yield (run, curve, metric), doubt


def _points_apart(gone: pl.DataFrame, reasons: Mapping[tuple[str, str], Caveat]) -> Iterator[Unmatched]:
    firsts = gone.unique("series", keep="first", maintain_order=True)
    for curve, series, metric in firsts.select("curve", "series", "metric").iter_rows():
        yield Unmatched(series, "candidate", Verdict.NOT_COMPARABLE, reasons[curve, metric])


def _metrics_apart(rest: pl.DataFrame, reasons: Mapping[tuple[str, str], Caveat]) -> Iterator[Finding]:
    for curve, metric in rest.select("curve", "metric").unique(maintain_order=True).iter_rows():
        yield Finding(Scope.CURVE, curve, metric, Verdict.NOT_COMPARABLE, caveats=(reasons[curve, metric],))


def redefined(findings: Iterable[Finding]) -> tuple[Caveat, ...]:
    """One doubt about the comparison for each metric and event that kept it from being judged on some curve."""
    found = (
        Caveat("metric_redefined", (("metric", one.metric), *(pair for pair in doubt.values if pair[0] != "on_day_of")))
        for one in findings
        if one.verdict is Verdict.NOT_COMPARABLE
        for doubt in one.caveats
        if doubt.code == "harness_event"
    )
    return tuple(dict.fromkeys(found))


BEHIND: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "frontier_tput_per_gpu": ("tput_per_gpu", "median_tpot"),
        "peak_tput_per_gpu": ("tput_per_gpu",),
        "latency_frontier_tput_per_gpu": ("tput_per_gpu", "median_e2el"),
    }
)
"""What the metrics of a frontier are made of: events of these are events of it."""


@dataclass(frozen=True, slots=True)
class Teller:
    """Adds to a finding the events that lie between its sides and concern it."""

    timeline: Timeline
    curves: Mapping[str, tuple[Series, ...]]
    """Curves by what a finding is about: the curve itself, a config, a point's series."""

    @classmethod
    def of(cls, series: Iterable[Series], timeline: Timeline) -> Teller:
        """A teller for findings about some curves."""
        by_config: dict[str, dict[str, Series]] = {}
        for one in series:
            by_config.setdefault(config_key(one), {})[curve_key(one)] = one
        return cls(timeline, {config: tuple(found.values()) for config, found in by_config.items()})

    @property
    def _known(self) -> Iterator[Event]:
        return (event for event in self.timeline.events if event.effect is not Effect.ENDS)

    def told(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """The findings, each with its events behind its other doubts."""
        doubts = cache(self._doubts)
        for one in findings:
            # No event asks for a concurrency: the points of a curve share one answer.
            about = (curve_of(one.series),) if one.series is not None else self.curves.get(one.config or one.key, ())
            names = BEHIND.get(one.metric, (one.metric,)) if self.timeline.events else ()
            said = [doubt for name in names for doubt in doubts(about, name, one.baseline_runs, one.candidate_runs)]
            yield replace(one, caveats=tuple(dict.fromkeys((*one.caveats, *said)))) if said else one

    def missing(self, rows: Iterable[Unmatched], candidate: Sequence[Run]) -> Iterator[Unmatched]:
        """Rows without a twin; a point that is missing says since when its series is no longer measured."""
        ending = [event for event in self.timeline.events if event.effect is Effect.ENDS]
        now = [str(run.key) for run in candidate]
        for row in rows:
            said: tuple[Caveat, ...] = ()
            if ending and row.verdict is Verdict.MISSING and row.series is not None and row.run is not None:
                ends = [event for event in ending if event.affects(row.series, ANY_METRIC)]
                said = self.timeline.doubts(ends, [str(row.run)], now, curve_key(row.series))
            yield replace(row, caveats=(*row.caveats, *said)) if said else row

    def _doubts(
        self, about: Sequence[Series], metric: str, baseline: Iterable[object], candidate: Iterable[object]
    ) -> tuple[Caveat, ...]:
        sides = [str(run) for run in baseline], [str(run) for run in candidate]
        found: dict[Caveat, None] = {}
        for series in about:
            events = [event for event in self._known if event.affects(series, metric)]
            found |= dict.fromkeys(self.timeline.doubts(events, *sides, curve_key(series)))
        return tuple(found)
