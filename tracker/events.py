"""Changes of the test harness, by date: what lies between two sides is said, or keeps them apart.

An event tells what was changed and when, never what came of it. Times of the shipped events are days of commits on
main, so a side that was measured on that day may stand before the event or after it: that is said too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeAlias

from store.records import Caveat, Role, Series

Span: TypeAlias = tuple[datetime, datetime]
"""From the first to the last moment at which something may have been measured."""

DAY = timedelta(days=1)
_TICK = timedelta(microseconds=1)


class Effect(StrEnum):
    """What an event does to a comparison across it."""

    NOT_COMPARABLE = "not_comparable"
    """A metric means something else now: rows from the other side of the event are no baseline."""
    CAVEAT = "caveat"
    ENDS = "ends"
    """The series is no longer measured by default: what is missing since then is said with it."""


ANY_METRIC = "tput_per_gpu"
"""The metric that every point has: what it is asked for concerns the point."""


class Lies(StrEnum):
    """Does an event lie between two sides? MAYBE where a side was measured on the event's day, or around it."""

    NO = "no"
    MAYBE = "maybe"
    YES = "yes"


@dataclass(frozen=True, slots=True)
class Event:
    """A change of the harness: before `start` it was not there, from `end` on it was."""

    name: str
    start: datetime
    end: datetime
    effect: Effect
    metrics: tuple[str, ...] = ("*",)
    """Keys of metrics; `*` and `?` stand for any letters and any letter."""
    series: tuple[tuple[str, frozenset[str]], ...] = ()
    """What the series must be like, by SELECTORS: each with the values that fit. None: every series."""
    pull: int | None = None
    commit: str | None = None

    def affects(self, series: Series, metric: str) -> bool:
        """Whether the event concerns this metric of this series."""
        return _named(self.metrics, metric) and all(SELECTORS[name](series) in fit for name, fit in self.series)

    def caveat(self, on_day_of: str | None = None) -> Caveat:
        """The event as a doubt; `on_day_of` names the side of which nobody knows on which side of the event it is."""
        said: dict[str, Any] = {"event": self.name, "date": self.start.date().isoformat()}
        said |= {"pull": self.pull} if self.pull else {"commit": self.commit} if self.commit else {}
        return Caveat.of("harness_event", **said, **({"on_day_of": on_day_of} if on_day_of else {}))


@lru_cache(maxsize=4096)
def _named(patterns: tuple[str, ...], metric: str) -> bool:
    return any(fnmatchcase(metric, pattern) for pattern in patterns)


def _roles(series: Series) -> Iterator[Role]:
    yield series.layout.prefill
    if series.layout.decode is not None:
        yield series.layout.decode


def _field(name: str) -> Callable[[Series], str]:
    return lambda series: str(getattr(series, name))


def _yes(found: bool) -> str:
    return "true" if found else "false"


SELECTORS: Mapping[str, Callable[[Series], str]] = MappingProxyType(
    {
        **{name: _field(name) for name in ("model", "gpu", "framework", "precision", "spec", "scenario", "isl", "osl")},
        "disagg": lambda series: _yes(series.layout.decode is not None),
        "multinode": lambda series: _yes(series.layout.multinode),
        "pipeline_parallel": lambda series: _yes(any(role.pp > 1 for role in _roles(series))),
        "context_parallel": lambda series: _yes(any(role.dcp > 1 or role.pcp > 1 for role in _roles(series))),
    }
)
"""What an event may ask of a series, each as text. A new one is a new row."""


# ---------------------------------------------------------------- the shipped table


_FIXED = ("scenario", frozenset({"single_turn"}))
_AGENTIC = ("scenario", frozenset({"agentic_traces"}))
_SPLIT = ("disagg", frozenset({"true"}))
_THROUGHPUT = ("*tput_per_gpu",)
_SPEED = ("*tput*", "*_ttft", "*_tpot", "*_itl", "*_e2el", "*_intvty")
_SCORES = ("em_*", "score")


def _on(day: str, name: str, effect: Effect, **rest: Any) -> Event:
    start = datetime.fromisoformat(day).replace(tzinfo=UTC)
    return Event(name, start, start + DAY, effect, **rest)


def _length(isl: int, osl: int) -> tuple[tuple[str, frozenset[str]], ...]:
    return (_FIXED, ("isl", frozenset({str(isl)})), ("osl", frozenset({str(osl)})))


_REDEFINED, _NOTED = Effect.NOT_COMPARABLE, Effect.CAVEAT

EVENTS: tuple[Event, ...] = (
    _on(
        "2025-11-05",
        "role_denominators",
        _REDEFINED,
        metrics=("input_tput_per_gpu", "output_tput_per_gpu"),
        series=(_SPLIT,),
        commit="450d834a9",
    ),
    _on("2025-12-05", "multinode_rows", _NOTED, series=(("multinode", frozenset({"true"})),), commit="93e1b3ca1"),
    _on("2025-12-15", "sweeps_by_changelog", _NOTED, metrics=_SPEED, series=(_FIXED,), commit="9c0fcc9af"),
    _on("2026-03-24", "percentile_set", _NOTED, metrics=("p9*", "*_e2el"), series=(_FIXED,), commit="1cb92d21d"),
    _on("2026-03-27", "sequence_1k8k_dropped", Effect.ENDS, series=_length(1024, 8192), pull=911),
    _on("2026-04-18", "eval_topology", _NOTED, metrics=_SCORES),
    _on("2026-05-14", "failed_requests_gate", _NOTED, metrics=_SPEED, series=(_FIXED,), commit="29ac41224"),
    _on("2026-05-15", "client_tokenizer", _NOTED, metrics=_SPEED, series=(_FIXED,), pull=1381),
    _on(
        "2026-05-17", "agentx_requests", _REDEFINED, metrics=("num_requests_*",), series=(_AGENTIC,), commit="e92a9bf97"
    ),
    _on("2026-06-02", "agentx_harness_v03", _NOTED, metrics=_SPEED, series=(_AGENTIC,), commit="1b234994f"),
    _on("2026-06-12", "eval_thresholds", _NOTED, metrics=_SCORES, pull=1721),
    _on("2026-07-02", "agentx_nested", _REDEFINED, metrics=_SPEED, series=(_AGENTIC,), commit="303669b0e"),
    _on(
        "2026-07-06",
        "context_parallel_gpus",
        _REDEFINED,
        metrics=_THROUGHPUT,
        series=(("context_parallel", frozenset({"true"})),),
        commit="af224d6c4",
    ),
    _on(
        "2026-07-10",
        "pipeline_parallel_gpus",
        _REDEFINED,
        metrics=_THROUGHPUT,
        series=(("pipeline_parallel", frozenset({"true"})),),
        commit="65b8d7f50",
    ),
    _on("2026-07-17", "sequence_1k1k_deprecated", Effect.ENDS, series=_length(1024, 1024), pull=2263),
    _on("2026-08-07", "agentx_axis", _REDEFINED, metrics=("*_intvty",), series=(_AGENTIC,), commit="b5b459da6"),
    _on("2026-08-18", "power_schema_2", _REDEFINED, metrics=("joules_*",), series=(_SPLIT,), commit="acf3b878d"),
)
"""InferenceX's own, oldest first: days of commits on its main. A new event is a new row, its name in the catalogs."""


# ---------------------------------------------------------------- before, after, or nobody knows


def span(moment: datetime) -> Span:
    """The moments that a time may stand for: midnight to the microsecond is a date, whose hour nobody told.

    >>> [one.hour for one in span(datetime(2026, 5, 15, tzinfo=UTC))]
    [0, 23]
    """
    is_date = moment.timetz().replace(tzinfo=None) == datetime.min.time()
    return (moment, moment + DAY - _TICK) if is_date else (moment, moment)


def joined(spans: Iterable[Span]) -> Span:
    """From the first moment of some spans (one at least) to the last one."""
    first, last = zip(*spans, strict=True)
    return min(first), max(last)


def lies(event: Event, one: Span, other: Span) -> Lies:
    """Whether an event lies between two sides; which of them is the earlier one makes no difference."""
    if max(one[1], other[1]) < event.start or min(one[0], other[0]) >= event.end:
        return Lies.NO
    parted = one[1] < event.start and other[0] >= event.end, other[1] < event.start and one[0] >= event.end
    return Lies.YES if any(parted) else Lies.MAYBE


def between(event: Event, baseline: Span, candidate: Span) -> Caveat | None:
    """The doubt that an event raises about two sides; None where both are on one side of it."""
    found = lies(event, baseline, candidate)
    if found is Lies.NO:
        return None
    is_placed = baseline[1] < event.start or baseline[0] >= event.end
    return event.caveat(None if found is Lies.YES else "candidate" if is_placed else "baseline")


@dataclass(frozen=True, slots=True)
class Timeline:
    """When each run measured each curve, and the events that may lie between two of its moments."""

    events: tuple[Event, ...]
    spans: Mapping[tuple[str, str], Span] = field(default_factory=dict)
    """By run and curve, both as text."""
    runs: Mapping[str, Span] = field(default_factory=dict)
    """By run, for a curve that it has no rows of."""

    @classmethod
    def of(
        cls, events: Iterable[Event], spans: Mapping[tuple[str, str], Span], slack: timedelta = timedelta()
    ) -> Timeline:
        """The timeline of some measurements, with the events between any two of them, `slack` off at either end."""
        by_run: dict[str, list[Span]] = {}
        for (run, _), when in spans.items():
            by_run.setdefault(run, []).append(when)
        runs = {run: joined(some) for run, some in by_run.items()}
        return cls(_inside(events, runs.values(), slack), spans, runs)

    def when(self, run: str, curve: str) -> Span | None:
        """When a run measured a curve; None for a run that is not on the timeline."""
        return self.spans.get((run, curve)) or self.runs.get(run)

    def doubts(
        self, events: Sequence[Event], baseline: Iterable[str], candidate: Iterable[str], curve: str
    ) -> tuple[Caveat, ...]:
        """What events say about two sides of a curve, each once; for certain where any two runs say so."""
        old, new = (
            [when for run in side if (when := self.when(run, curve)) is not None] for side in (baseline, candidate)
        )
        found = []
        for event in events:
            said = [said for one in old for other in new if (said := between(event, one, other)) is not None]
            found += sorted(said, key=lambda caveat: len(caveat.values))[:1]
        return tuple(found)


def _inside(events: Iterable[Event], spans: Iterable[Span], slack: timedelta) -> tuple[Event, ...]:
    """The events that begin before the last moment and end after the first one."""
    known = list(spans)
    if not known:
        return ()
    first, last = joined(known)
    return tuple(event for event in events if event.start <= last + slack and event.end > first - slack)
