"""What a text claims, what was measured, and how the two compare: frozen records without opinions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from store.records import Caveat, Finding, Layout, Role, Scope, Score, Series


class Kind(StrEnum):
    """What form of number is claimed."""

    LEVEL = "level"
    FROM_TO = "from_to"
    CHANGE = "relative_change"
    RATIO = "ratio"
    SCORE = "score"
    SCORE_RANGE = "score_range"


class Direction(StrEnum):
    """Where the text says that the metric went; better and worse need the metric to become up or down."""

    UP = "up"
    DOWN = "down"
    BETTER = "better"
    WORSE = "worse"
    FLAT = "flat"


class Bound(StrEnum):
    """How the number limits the measured one: the value itself, its maximum, its minimum, or a band around nothing."""

    VALUE = "value"
    UP_TO = "up_to"
    AT_LEAST = "at_least"
    WITHIN = "within"


@dataclass(frozen=True, slots=True)
class Binding:
    """What a claim speaks about, from the same row, sentence, lead-in or heading; empty means unsaid.

    `configs` are keys or globs as written, the other words are canonical (`store.identity`). `sequences` are texts as
    in series keys (`8192/1024`, `8192/?`, `agentic`), `concurrency` pairs of low and high (None: no upper end).
    """

    configs: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    frameworks: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()
    sequences: tuple[str, ...] = ()
    concurrency: tuple[tuple[int, int | None], ...] = ()
    layouts: tuple[str, ...] = ()
    task: str | None = None
    peak: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """One number, or pair of numbers, that a text claims.

    `values` stand as written (percent in percent, signs kept, `k` multiplied out): one value, or low and high of a
    range, or before and after of a `from_to`. `decimals` says to how many digits after the point they were given.
    `span` is the half-open range of characters, `text` exactly these characters.
    """

    kind: Kind
    values: tuple[float, ...]
    span: tuple[int, int]
    text: str
    unit: str | None = None
    metric: str | None = None
    direction: Direction | None = None
    approximate: bool = False
    bound: Bound = Bound.VALUE
    decimals: int = 0
    added: bool = False
    """True for `提升 2 倍`, `by 2x` and `2 times more`, which some read as twice and others as three times."""
    left: bool = False
    """True for `fell to 93%`, a ratio of 0.93 of the candidate to the baseline whatever the direction."""
    binding: Binding = field(default_factory=Binding)


@dataclass(frozen=True, slots=True)
class Measured:
    """One metric of one series, measured on one or both sides.

    `baseline` and `candidate` are in the metric's unit, `low` and `high` the interval of the natural log ratio.
    """

    series: Series
    metric: str
    baseline: float | None
    candidate: float | None
    low: float | None = None
    high: float | None = None
    runs: tuple[str, ...] = ()
    config: str = ""
    group: str = ""
    """Key of the group, where the number is one of all its layouts together; the series then has none of its own."""

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> tuple[Measured, ...]:
        """The measured sides of findings about points and about peaks of groups; others hold none."""
        named = ((found, _series(found)) for found in findings)
        return tuple(
            cls(
                series,
                found.metric,
                _positive(found.baseline),
                _positive(found.candidate),
                found.low,
                found.high,
                tuple(map(str, (*found.baseline_runs, *found.candidate_runs))),
                found.config,
                found.key if found.scope is Scope.FRONTIER else "",
            )
            for found, series in named
            if series is not None
        )


PEAK = "peak_tput_per_gpu"
_ANY_LAYOUT = Layout(Role())


def _series(found: Finding) -> Series | None:
    """The series of a point, or the words of a group whose peak was judged."""
    if found.scope is Scope.POINT:
        return found.series
    return _of_group(found.key) if found.scope is Scope.FRONTIER and found.metric == PEAK else None


def _of_group(key: str) -> Series:
    """The words of a group's key as a series.

    >>> _of_group("dsr1 h200 vllm fp8 none 8192/1024").isl, _of_group("dsr1 h200 vllm fp8 none agentic").scenario
    (8192, 'agentic_traces')
    """
    model, gpu, framework, precision, spec, sequence, *rest = key.split(" ")
    isl, slash, osl = sequence.partition("/")
    scenario = "single_turn" if slash else {"agentic": "agentic_traces"}.get(sequence, sequence)
    first, last = (int(end) if end.isdigit() else None for end in (isl, osl))
    return Series(model, gpu, framework, precision, spec, scenario, first, last, bool(rest), _ANY_LAYOUT)


def _positive(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) and value > 0 else None


class Answer(StrEnum):
    VERIFIED = "verified"
    CONTRADICTED = "contradicted"
    UNVERIFIABLE = "unverifiable"


class Reason(StrEnum):
    """Why an answer is what it is: the code of a `Caveat`, whose sentence stands in the catalogs."""

    AGREES = "agrees"
    OUTSIDE_TOLERANCE = "outside_tolerance"
    METRIC_UNSAID = "metric_unsaid"
    UNIT_UNSAID = "unit_unsaid"
    DIRECTION_UNSAID = "direction_unsaid"
    TIMES_BY_OR_TO = "times_by_or_to"
    AMBIGUOUS_BINDING = "ambiguous_binding"
    NO_POINTS = "no_points"
    NO_SCORES = "no_scores"
    NO_BASELINE = "no_baseline"
    NO_CANDIDATE = "no_candidate"
    NOISE_UNKNOWN = "noise_unknown"
    ENDS_NOT_MEASURED = "ends_not_measured"


@dataclass(frozen=True, slots=True)
class Checked:
    """A claim beside what was measured.

    `measured` has the shape and unit of the claim's values (several points: least and greatest), `reason` carries a
    code of `Reason`, `points` and `scores` are what the answer rests on.
    """

    claim: Claim
    answer: Answer
    reason: Caveat
    measured: tuple[float, ...] = ()
    points: tuple[Measured, ...] = ()
    scores: tuple[Score, ...] = ()
