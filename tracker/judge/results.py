"""Which eval results count, what they are held against, and how much reruns of one identity scatter."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise, takewhile
from statistics import median
from typing import TypeAlias

from store import images
from store.identity import config_key, series_key
from store.records import RunKey, Score, Series
from store.thresholds import SHIPPED, Threshold, Thresholds
from tracker.stats.proportions import Proportion, average, dispersion, standard_error


@dataclass(frozen=True, slots=True)
class EvalRules:
    """The pass marks and the numbers of the judgement; shares are fractions, so 0.01 is one point."""

    thresholds: Thresholds = SHIPPED
    alpha: float = 0.01
    suspect: float = 0.05
    q: float = 0.05
    job_margin: float = 0.01
    config_margin: float = 0.005
    equivalent: float = 0.01
    noisy: float = 0.10
    phi: float = 0.6
    phi_weight: float = 30
    phi_floor: float = 0.4
    rho: float = 0.05
    collapse: float = 0.5
    format_gap: float = 0.02
    baseline_runs: int = 5


RULES = EvalRules()

LEAST_FOR_A_MEDIAN = 3

_FIELDS: Mapping[str, tuple[str, str | None]] = {
    "em_flexible": ("flexible", "flexible_se"),
    "em_strict": ("strict", "strict_se"),
    "score": ("score", None),
}
"""Metric -> fields of a `Score`. Flexible comes first: it is the accuracy; strict also measures the format."""

JobKey: TypeAlias = tuple[Series, str]


@dataclass(frozen=True, slots=True)
class Job:
    """All scores of one series and task, newest first, and what they are held against."""

    series: Series
    task: str
    new: tuple[Score, ...]
    past: tuple[Score, ...]
    kin: tuple[Score, ...]
    """Earlier scores of the same config, task and concurrency on another layout."""
    mark: Threshold | None
    floor: float

    @property
    def key(self) -> str:
        return eval_key(self.series, self.task)

    @property
    def group(self) -> tuple[str, str]:
        return config_key(self.series), self.task


@dataclass(frozen=True, slots=True)
class Scale:
    """How much reruns scatter, and on how many pairs that stands."""

    phi: float
    pairs: int

    def __str__(self) -> str:
        return f"phi {self.phi:.3f}, {self.pairs} same-identity pairs"


def eval_key(series: Series, task: str) -> str:
    """Text key of an eval job: its series and its task."""
    return f"{series_key(series)} {task}"


def reduced_key(series: Series) -> str:
    """What an eval row and a throughput row of one deployment share: no sequence lengths, concurrency or workers."""
    shape = series.layout
    sides = (f"tp{s.tp}-ep{s.ep}{'-dpa' * s.dp_attention}" for s in (shape.prefill, shape.decode) if s)
    return " ".join((series.model, series.gpu, series.framework, series.precision, series.spec, *sides))


def collapsed(scores: Iterable[Score], rules: EvalRules = RULES) -> frozenset[tuple[RunKey, str]]:
    """Deployments (run, `reduced_key`) that answered next to nothing right: their throughput is no baseline."""
    kept = tuple(scores)
    floors = floors_of(kept, rules)
    return frozenset(
        (score.run, reduced_key(score.series))
        for score in kept
        if is_collapsed(value_of(score, accuracy(score)), floors[score.series.model, score.task])
    )


def newest_first(started: Mapping[RunKey, datetime]) -> Callable[[Score], tuple[datetime, int, int]]:
    return lambda score: (started[score.run], score.run.attempt, score.run.id)


def current(
    scores: Sequence[Score], order: Callable[[Score], tuple[datetime, int, int]]
) -> tuple[tuple[Score, ...], tuple[Score, ...]]:
    """One score per series, task and run, newest run first; and those of which it cannot be said which one counts."""
    groups: dict[tuple[Series, str, int], list[Score]] = defaultdict(list)
    for score in scores:
        groups[score.series, score.task, score.run.id].append(score)
    chosen = [_latest(group) for group in groups.values()]
    clear = [group[0] for group in chosen if len(group) == 1]
    return tuple(sorted(clear, key=order, reverse=True)), tuple(group[0] for group in chosen if len(group) > 1)


def _latest(group: Sequence[Score]) -> list[Score]:
    """The result that counts: newest attempt, per-job artifact before collected file, newest artifact; once each."""
    epoch = datetime.min.replace(tzinfo=UTC)
    rank = {id(s): (s.run.attempt, not s.place.collected, s.place.created_at or epoch) for s in group}
    best = max(rank.values())
    distinct: dict[str, Score] = {}
    for score in sorted((s for s in group if rank[id(s)] == best), key=_fields_known):
        distinct[_content(score)] = score
    return list(distinct.values())


def _content(score: Score) -> str:
    """What two copies of one result share; `score` repeats one of the others and is absent in older shapes."""
    own = (score.strict, score.flexible)
    return repr((own if own != (None, None) else score.score, score.n))


def _fields_known(score: Score) -> int:
    return sum(value is not None for value in (score.strict_se, score.flexible_se, score.score, score.image))


def jobs_of(new: Sequence[Score], past: Sequence[Score], rules: EvalRules) -> tuple[Job, ...]:
    floors = floors_of((*past, *new), rules)
    own, before, related = defaultdict(list), defaultdict(list), defaultdict(list)
    for score in new:
        own[score.series, score.task].append(score)
    for score in past:
        before[score.series, score.task].append(score)
        related[config_key(score.series), score.series.conc, score.task].append(score)
    return tuple(
        Job(
            series=series,
            task=task,
            new=tuple(scores),
            past=tuple(before[series, task]),
            kin=tuple(s for s in related[config_key(series), series.conc, task] if s.series != series),
            mark=rules.thresholds.of(series.model, task),
            floor=floors[series.model, task],
        )
        for (series, task), scores in own.items()
    )


def floors_of(scores: Sequence[Score], rules: EvalRules) -> dict[tuple[str, str], float]:
    """Below which score a model has collapsed in a task: one half, or less where good scores are lower themselves.

    GPQA passes at 0.30, so 0.44 is no collapse there: two thirds of the pass mark, or of the best score known.
    """
    best: dict[tuple[str, str], float] = defaultdict(float)
    for score in scores:
        value = value_of(score, accuracy(score))
        key = (score.series.model, score.task)
        best[key] = max(best[key], value if value is not None and 0 <= value <= 1 else 0.0)
    marks = {key: rules.thresholds.of(*key) for key in best}
    reference = {key: mark.value if mark else best[key] for key, mark in marks.items()}
    return {key: min(rules.collapse, value * 2 / 3) for key, value in reference.items()}


def is_collapsed(value: float | None, floor: float) -> bool:
    return value is not None and (value < floor or value == 0)


def value_of(score: Score, metric: str) -> float | None:
    value: float | None = getattr(score, _FIELDS[metric][0])
    return value


def readable(score: Score, metric: str) -> float | None:
    value = value_of(score, metric)
    return value if value is not None and math.isfinite(value) else None


def values_of(scores: Sequence[Score], metric: str) -> tuple[float, ...]:
    return tuple(value for score in scores if (value := readable(score, metric)) is not None)


def mean(scores: Sequence[Score], metric: str) -> float | None:
    values = values_of(scores, metric)
    return math.fsum(values) / len(values) if values and len(values) == len(scores) else None


def proportion(score: Score, metric: str) -> Proportion | None:
    """The score with its doubt; None where it is no fraction or its doubt is unknown."""
    value, name = value_of(score, metric), _FIELDS[metric][1]
    if value is None or not 0 <= value <= 1:
        return None
    doubt = standard_error(value, score.n, getattr(score, name) if name else None)
    return Proportion(value, doubt) if doubt else None


def average_of(scores: Sequence[Score], metric: str) -> Proportion | None:
    """All scores of one side as one proportion; None where there is none or one of them has no doubt."""
    parts = [proportion(score, metric) for score in scores]
    known = [part for part in parts if part]
    return average(known) if known and len(known) == len(parts) else None


def accuracy(score: Score) -> str:
    """The metric that says how many answers were right, whatever their format."""
    return next((name for name in _FIELDS if value_of(score, name) is not None), "em_flexible")


def metrics_of(job: Job) -> tuple[str, ...]:
    """What is judged: both ways of reading an answer, else the plain score; something in any case."""
    known = [name for name in _FIELDS if any(value_of(score, name) is not None for score in job.new)]
    return tuple(known[:1] if known[:1] == ["score"] else [k for k in known if k != "score"]) or ("em_flexible",)


def identity_of(score: Score) -> Callable[[Score], bool]:
    """True of scores that surely ran the same software and recipe."""
    return lambda other: (
        images.compare(score.image, other.image) is images.Sameness.SAME and score.recipe == other.recipe
    )


def is_sound(score: Score, metric: str, floor: float) -> bool:
    """May serve as a baseline: readable, and not a collapse."""
    value = value_of(score, metric)
    return score.invalid is None and value is not None and 0 <= value <= 1 and not is_collapsed(value, floor)


def baseline_of(job: Job, metric: str, rules: EvalRules) -> tuple[Score, ...]:
    """Sound scores of the newest identity, newest first, at most `baseline_runs`."""
    sound = [score for score in job.past if is_sound(score, metric, job.floor)]
    if not sound:
        return ()
    same = identity_of(sound[0])
    rest = takewhile(lambda score: same(score) and score.n == sound[0].n, sound[1:])
    return _steady((sound[0], *rest)[: rules.baseline_runs], metric, rules)


def _steady(scores: tuple[Score, ...], metric: str, rules: EvalRules) -> tuple[Score, ...]:
    """Without a minority far from the median of three or more: one bad night of a server is no baseline."""
    values = [value for score in scores if (value := value_of(score, metric)) is not None]
    if len(values) < LEAST_FOR_A_MEDIAN:
        return scores
    middle = median(values)
    spread = 3 * math.sqrt(max(middle * (1 - middle), 1e-6) / max((scores[0].n or 1) - 1, 1))
    limit = max(rules.job_margin, spread)
    near = tuple(score for score in scores if abs((value_of(score, metric) or 0.0) - middle) <= limit)
    return near if len(near) > len(scores) / 2 else scores


def scale_of(past: Sequence[Score], floors: Mapping[tuple[str, str], float], rules: EvalRules) -> Scale:
    """Scatter of reruns from neighbouring runs of one identity in the history."""
    series: dict[JobKey, list[Score]] = defaultdict(list)
    for score in past:
        if is_sound(score, accuracy(score), floors[score.series.model, score.task]):
            series[score.series, score.task].append(score)
    reruns = [
        (proportion(old, accuracy(new)), proportion(new, accuracy(new)))
        for scores in series.values()
        for new, old in pairwise(scores)
        if identity_of(new)(old) and new.n == old.n
    ]
    known = [(old, new) for old, new in reruns if old and new]
    return Scale(dispersion(known, rules.phi, rules.phi_weight, rules.phi_floor), len(known))
