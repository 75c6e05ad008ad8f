"""Eval scores to findings: the gate first, then what changed against history and against the neighbours.

One finding per job (series and task) and metric, one per configuration where two jobs or more can be pooled.
`failed` is the word of the gate and of broken results, `regression` that of the statistics: a score that misses its
pass mark by one question has failed and has not regressed. Where both speak, `regression` is the verdict and
`below_threshold` a caveat; where only the gate does, `statistical_verdict` keeps what the statistics say.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

import numpy as np

from store.identity import config_key, layout_text
from store.records import Caveat, Evidence, Finding, RunKey, Scope, Score, Unmatched, Verdict
from tracker.judge.gate import gate_of
from tracker.judge.pairing import (
    Compared,
    compared,
    correlation,
    pairs,
    pooled,
    pooled_notes,
    source,
    wrong_format,
)
from tracker.judge.results import (
    RULES,
    EvalRules,
    Job,
    JobKey,
    Scale,
    average_of,
    baseline_of,
    current,
    eval_key,
    floors_of,
    identity_of,
    is_collapsed,
    is_sound,
    jobs_of,
    mean,
    metrics_of,
    newest_first,
    proportion,
    scale_of,
    value_of,
    values_of,
)
from tracker.stats.families import benjamini_hochberg
from tracker.stats.paired import Paired
from tracker.stats.proportions import Difference, Proportion, compare, wilson

_EPSILON = 1e-9
"""0.95 - 0.96 is -0.010000000000000009: a margin met exactly counts as met."""


@dataclass(frozen=True, slots=True)
class _Flaw:
    """Why a score is no matter for statistics, and the verdict that takes their place."""

    reason: Caveat
    verdict: Verdict = Verdict.FAILED


@dataclass(frozen=True, slots=True)
class _Trial:
    """One metric of one job, before any verdict: inputs, a flaw that forbids statistics, or a difference."""

    job: Job
    metric: str
    new: tuple[Score, ...]
    base: tuple[Score, ...]
    flaw: _Flaw | None
    compared: Compared
    p_drop: float = 1.0
    p_rise: float = 1.0
    """Adjusted over the family of jobs."""

    @property
    def difference(self) -> Difference | Paired | None:
        return self.compared.difference


@dataclass(frozen=True, slots=True)
class _Answer:
    """A verdict with what it stands on, for one job or for the pooled jobs of a configuration."""

    scope: Scope
    key: str
    members: tuple[_Trial, ...]
    difference: Difference | Paired | None
    margin: float
    p_adjusted: float
    verdict: Verdict
    caveats: tuple[Caveat, ...]


def judge_scores(
    history: Sequence[Score],
    candidate: Sequence[Score],
    started: Mapping[RunKey, datetime],
    rules: EvalRules = RULES,
    configs: Collection[str] = (),
) -> tuple[tuple[Finding, ...], tuple[Unmatched, ...]]:
    """Judge every eval of the candidate runs against its gate, its own history and its neighbours.

    Effects, limits and smallest changes are differences of fractions, p is one-sided in the direction that was seen.
    `history` holds the scores of earlier runs that may serve as baseline, `started` the start of every run of both
    sides, `configs` the config keys that the candidate measured in any way: an eval that the newest earlier run of
    such a config had and the candidate lacks is missing, never passed.
    """
    ids = {score.run.id for score in candidate}
    order = newest_first(started)
    new, unclear = current(candidate, order)
    past, unclear_past = current([score for score in history if score.run.id not in ids], order)
    jobs = jobs_of(new, past, rules)
    scale = scale_of(past, floors_of((*past, *new), rules), rules)
    trials = _with_families([_trial(job, metric, scale, rules) for job in jobs for metric in metrics_of(job)])
    wanted = {config_key(score.series) for score in candidate} | set(configs)
    keys = {(score.series, score.task) for score in candidate}
    unmatched = [
        *(_unclear(score, "candidate") for score in unclear),
        *(_unclear(score, "baseline") for score in unclear_past if (score.series, score.task) in keys),
        *_missing(past, keys, wanted),
        *(gone for job in jobs for gone in _metrics_gone(job)),
    ]
    answers = [_job_answer(trial, trials, scale, rules) for trial in trials] + _config_answers(trials, rules)
    return tuple(_finding(answer, scale, rules) for answer in answers), tuple(unmatched)


# Trials and families


def _trial(job: Job, metric: str, scale: Scale, rules: EvalRules) -> _Trial:
    base = baseline_of(job, metric, rules)
    flaw = next((found for score in job.new if (found := _flaw(score, metric, job, base))), None)
    sides = Compared() if flaw else compared(base, job.new, metric, scale)
    return _Trial(job, metric, job.new, base, flaw, sides)


def _flaw(score: Score, metric: str, job: Job, base: Sequence[Score]) -> _Flaw | None:
    value = value_of(score, metric)
    if value is None or score.invalid:
        return _Flaw(score.invalid or Caveat.of("no_metric", metric=metric))
    if not math.isfinite(value):
        return _Flaw(Caveat.of("non_finite", metric=metric, value=str(value)))
    if not 0 <= value <= 1:
        return _Flaw(Caveat.of("out_of_range", metric=metric, value=value))
    if is_collapsed(value, job.floor):
        upper = wilson(value, score.n)[1] if score.n else None
        return _Flaw(Caveat.of("collapsed", score=value, floor=job.floor, n=score.n, upper=upper))
    if base and score.n and base[0].n and score.n != base[0].n:
        # Fewer questions: a part of the eval is lost. More: another workload, but nothing is broken.
        verdict = Verdict.FAILED if score.n < base[0].n else Verdict.NOT_COMPARABLE
        return _Flaw(Caveat.of("question_count", have=score.n, baseline=base[0].n), verdict)
    return None


def _families(tests: Sequence[tuple[str, Difference | Paired | None]]) -> list[tuple[float, float]]:
    """Adjusted p of a drop and of a rise for each test, over all tests of its metric."""
    result = [(1.0, 1.0)] * len(tests)
    for metric in {name for name, _ in tests}:
        members = [(i, difference) for i, (name, difference) in enumerate(tests) if name == metric and difference]
        drops = benjamini_hochberg(np.array([difference.p_drop for _, difference in members]))
        rises = benjamini_hochberg(np.array([difference.p_rise for _, difference in members]))
        for (index, _), drop, rise in zip(members, drops, rises, strict=True):
            result[index] = (float(drop), float(rise))
    return result


def _with_families(trials: Sequence[_Trial]) -> tuple[_Trial, ...]:
    family = _families([(trial.metric, trial.difference) for trial in trials])
    return tuple(replace(t, p_drop=drop, p_rise=rise) for t, (drop, rise) in zip(trials, family, strict=True))


def _said_by_statistics(
    difference: Difference | Paired, p_drop: float, p_rise: float, margin: float, rules: EvalRules
) -> Verdict:
    """Effect first, then p, then what the interval allows to say; `p_drop` and `p_rise` are adjusted."""
    least = margin - _EPSILON
    if difference.effect >= least and difference.p_rise <= rules.alpha and p_rise <= rules.q:
        return Verdict.IMPROVEMENT
    if difference.effect <= -least and difference.p_drop <= rules.suspect:
        sure = difference.p_drop <= rules.alpha and p_drop <= rules.q
        return Verdict.REGRESSION if sure else Verdict.SUSPECTED
    if difference.within(rules.equivalent):
        return Verdict.EQUIVALENT
    noisy = difference.detectable(margin, rules.alpha) > rules.noisy
    return Verdict.NOISY if noisy else Verdict.INCONCLUSIVE


# Jobs


def _job_answer(trial: _Trial, trials: Sequence[_Trial], scale: Scale, rules: EvalRules) -> _Answer:
    """Weigh what the gate, the statistics, the history and the neighbours say of one job."""
    said = _statistical_verdict(trial, rules)
    gate, past = gate_of(trial.new, trial.metric, trial.job.task, trial.job.mark), _recovered(trial, said, scale, rules)
    siblings, shape = _below_siblings(trial, trials, scale, rules), _format(trial, rules)
    alarmed = bool(siblings and _may_be_new(trial, rules)) or any(caveat.code == "format_gap" for caveat in shape)
    below = any(caveat.code == "below_threshold" for caveat in gate)
    verdict = _verdict(trial, said, below, bool(past), alarmed)
    return _Answer(
        scope=Scope.EVAL,
        key=trial.job.key,
        members=(trial,),
        difference=trial.difference,
        margin=rules.job_margin,
        p_adjusted=min(trial.p_drop, trial.p_rise),
        verdict=verdict,
        caveats=(*gate, *_state(trial, verdict, said), *past, *siblings, *shape),
    )


def _statistical_verdict(trial: _Trial, rules: EvalRules) -> Verdict:
    if trial.difference:
        return _said_by_statistics(trial.difference, trial.p_drop, trial.p_rise, rules.job_margin, rules)
    return Verdict.INCONCLUSIVE if trial.base else Verdict.NO_BASELINE


def _verdict(trial: _Trial, said: Verdict, below: bool, recovered: bool, alarmed: bool) -> Verdict:
    """The loudest true word: broken, worse, below its mark, back again, doubtful, or what the statistics say."""
    if trial.flaw:
        return Verdict.FAILED if below else trial.flaw.verdict
    if said is Verdict.REGRESSION or below:
        return said if said is Verdict.REGRESSION else Verdict.FAILED
    if recovered and said is not Verdict.SUSPECTED:
        return Verdict.RECOVERY
    quiet = said in (Verdict.NO_BASELINE, Verdict.INCONCLUSIVE, Verdict.NOISY)
    return Verdict.SUSPECTED if alarmed and quiet else said


def _state(trial: _Trial, verdict: Verdict, said: Verdict) -> tuple[Caveat, ...]:
    """What a reader must know of the data behind the verdict."""
    score, doubt = trial.new[0], proportion(trial.new[0], trial.metric)
    alarming = verdict in (Verdict.REGRESSION, Verdict.SUSPECTED)
    moved = alarming or verdict is Verdict.IMPROVEMENT
    notes = (
        (Caveat.of("eval_size", n=score.n, standard_error=doubt.se if doubt else None), doubt is not None),
        (Caveat.of("no_baseline"), not trial.base),
        (Caveat.of("no_standard_error"), bool(trial.base) and not trial.difference and not trial.flaw),
        (Caveat.of("statistical_verdict", verdict=said.value), bool(trial.difference) and verdict is not said),
        (Caveat.of("run_again"), alarming and len(trial.new) == 1),
        (Caveat.of("same_identity"), moved and bool(trial.base) and identity_of(score)(trial.base[0])),
    )
    flaw = (trial.flaw.reason,) if trial.flaw else ()
    return (*flaw, *(caveat for caveat, holds in notes if holds), *trial.compared.notes)


def _recovered(trial: _Trial, said: Verdict, scale: Scale, rules: EvalRules) -> tuple[Caveat, ...]:
    """Back from a collapse (of this job, or of the same config and concurrency on another layout) or from a drop."""
    job = trial.job
    earlier = (job.past or job.kin)[:1]
    if trial.flaw or not earlier:
        return ()
    before = value_of(earlier[0], trial.metric)
    if is_collapsed(before, job.floor):
        layout = None if job.past else layout_text(earlier[0].series.layout)
        return (Caveat.of("recovered", before=before, run=str(earlier[0].run), layout=layout),)
    if said is not Verdict.IMPROVEMENT:
        return ()
    good = next(
        (s for s in job.past if is_sound(s, trial.metric, job.floor) and _was_good(s, trial, scale, rules)), None
    )
    if good is None:
        return ()
    return (Caveat.of("recovered", before=before, run=str(good.run), last_good=value_of(good, trial.metric)),)


def _was_good(score: Score, trial: _Trial, scale: Scale, rules: EvalRules) -> bool:
    """The baseline was a drop from this earlier score, and the candidate stands where it stood."""
    good, low, now = (average_of(side, trial.metric) for side in ((score,), trial.base, trial.new))
    if good is None or low is None or now is None or score.n != trial.base[0].n:
        return False
    fall, back = compare(good, low, scale.phi), compare(good, now, scale.phi)
    return _is_clear(fall, rules) and fall.effect < 0 and not _is_clear(back, rules)


def _is_clear(difference: Difference, rules: EvalRules) -> bool:
    return abs(difference.effect) >= rules.job_margin - _EPSILON and difference.p <= rules.alpha


def _below_siblings(trial: _Trial, trials: Sequence[_Trial], scale: Scale, rules: EvalRules) -> tuple[Caveat, ...]:
    """A score that falls from the median of the other jobs of its config, Bonferroni over them.

    On public jobs with at least one neighbour none is flagged (`bench/evals.py`).
    """
    own = _sound_average(trial)
    others = [
        part
        for other in trials
        if other is not trial and (other.job.group, other.metric) == (trial.job.group, trial.metric)
        if (part := _sound_average(other))
    ]
    if own is None or not others:
        return ()
    middle = Proportion(*(statistics.median(values) for values in zip(*((o.p, o.se) for o in others), strict=True)))
    difference = compare(middle, own, scale.phi)
    p = min(1.0, difference.p_drop * (len(others) + 1))
    if difference.effect > _EPSILON - rules.job_margin or p > rules.alpha:
        return ()
    said = {"score": own.p, "siblings": middle.p, "count": len(others), "difference": difference.effect}
    return (Caveat.of("below_siblings", **said, p=p, n=trial.new[0].n),)


def _may_be_new(trial: _Trial, rules: EvalRules) -> bool:
    """A gap to the neighbours that the baseline had as well is no news."""
    return trial.difference is None or trial.difference.effect <= _EPSILON - rules.job_margin


def _format(trial: _Trial, rules: EvalRules) -> tuple[Caveat, ...]:
    """The gap of flexible over strict: answers that are right but not in the form asked for."""
    after = _format_gap(trial.new)
    if trial.metric != "em_strict" or after is None:
        return ()
    before = _format_gap(trial.base)
    growth = after - (before or 0.0)
    if abs(growth) <= rules.format_gap:
        return ()
    said = Caveat.of("format_gap" if growth > 0 else "format_gap_closed", before=before, after=after, growth=growth)
    return (said, *wrong_format(trial.base, trial.new))


def _format_gap(scores: Sequence[Score]) -> float | None:
    flexible, strict = mean(scores, "em_flexible"), mean(scores, "em_strict")
    return flexible - strict if flexible is not None and strict is not None else None


# Configurations


def _config_answers(trials: Sequence[_Trial], rules: EvalRules) -> list[_Answer]:
    """The jobs of each configuration pooled; single-job configurations count in the family and are told as jobs."""
    groups: dict[tuple[tuple[str, str], str], list[_Trial]] = defaultdict(list)
    for trial in trials:
        groups[trial.job.group, trial.metric].append(trial)
    together = {
        key: pooled([t.compared for t in members if t.difference], rules)
        for key, members in groups.items()
        if any(t.difference for t in members)
    }
    family = _families([(metric, difference) for (_, metric), difference in together.items()])
    answers = (_config_answer(groups[key], together[key], p, rules) for key, p in zip(together, family, strict=True))
    return [answer for answer in answers if len(answer.members) >= 2]


def _config_answer(
    group: Sequence[_Trial], difference: Difference | Paired, p: tuple[float, float], rules: EvalRules
) -> _Answer:
    members = tuple(trial for trial in group if trial.difference)
    left_out = len(group) - len(members)
    verdict = _said_by_statistics(difference, *p, rules.config_margin, rules)
    alarming = verdict in (Verdict.REGRESSION, Verdict.SUSPECTED)
    single = max(len(trial.new) for trial in members) == 1
    return _Answer(
        scope=Scope.CONFIG,
        key=" ".join(members[0].job.group),
        members=members,
        difference=difference,
        margin=rules.config_margin,
        p_adjusted=min(p),
        verdict=verdict,
        caveats=(
            Caveat.of("eval_size", n=members[0].new[0].n, standard_error=difference.se),
            *((Caveat.of("jobs_left_out", have=len(members), of=len(group)),) if left_out else ()),
            *((Caveat.of("run_again"),) if alarming and single else ()),
            *pooled_notes(difference),
        ),
    )


# Records


def _finding(answer: _Answer, scale: Scale, rules: EvalRules) -> Finding:
    """The record of an answer, with all that is needed to doubt it."""
    first, difference = answer.members[0], answer.difference
    before, after = _mean_of(answer.members, "base"), _mean_of(answer.members, "new")
    low, high = difference.interval() if difference else (None, None)
    is_job = answer.scope is Scope.EVAL
    return Finding(
        scope=answer.scope,
        key=answer.key,
        metric=first.metric,
        verdict=answer.verdict,
        effect=difference.effect if difference else _plain_effect(first, before, after),
        low=low,
        high=high,
        p=difference.p if difference else None,
        mde=difference.detectable(answer.margin, rules.alpha) if difference else None,
        n_baseline=max(len(trial.base) for trial in answer.members),
        n_candidate=max(len(trial.new) for trial in answer.members),
        n_points=len(answer.members),
        baseline=before,
        candidate=after,
        series=first.job.series if is_job else None,
        config=config_key(first.job.series),
        task=first.job.task,
        baseline_runs=_runs(score for trial in answer.members for score in trial.base),
        candidate_runs=_runs(score for trial in answer.members for score in trial.new),
        baseline_image=_image(score for trial in answer.members for score in trial.base),
        candidate_image=_image(score for trial in answer.members for score in trial.new),
        caveats=answer.caveats,
        evidence=_evidence(answer, difference, scale, rules) if difference else None,
    )


def _evidence(answer: _Answer, difference: Difference | Paired, scale: Scale, rules: EvalRules) -> Evidence:
    """`sigma` holds, per job, the scatter expected of its difference when nothing changed."""
    jobs = [trial.compared for trial in answer.members]
    return Evidence(
        members=tuple(trial.job.key for trial in answer.members),
        baseline=tuple(values_of(trial.base[::-1], trial.metric) for trial in answer.members),
        candidate=tuple(values_of(trial.new[::-1], trial.metric) for trial in answer.members),
        sigma=tuple(trial.difference.se for trial in answer.members if trial.difference),
        scale_source=source(jobs, difference, scale),
        correlation=correlation(difference, rules) if len(answer.members) > 1 else 0.0,
        margin=answer.margin,
        alpha=rules.alpha,
        p_adjusted=answer.p_adjusted,
        pairs=pairs(jobs),
    )


def _plain_effect(trial: _Trial, before: float | None, after: float | None) -> float | None:
    """The bare difference where no statistics are possible; none between different sets of questions."""
    if before is None or after is None or (trial.flaw and trial.flaw.reason.code != "collapsed"):
        return None
    return after - before


def _mean_of(trials: Sequence[_Trial], side: Literal["base", "new"]) -> float | None:
    means = [mean(trial.base if side == "base" else trial.new, trial.metric) for trial in trials]
    known = [value for value in means if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(means) else None


def _sound_average(trial: _Trial) -> Proportion | None:
    return None if trial.flaw else average_of(trial.new, trial.metric)


def _runs(scores: Iterable[Score]) -> tuple[RunKey, ...]:
    return tuple(sorted({score.run for score in scores}))


def _image(scores: Iterable[Score]) -> str | None:
    """The image of all scores, where they have one and the same."""
    found = {score.image for score in scores}
    return found.pop() if len(found) == 1 else None


# What stands on one side only


def _unclear(score: Score, side: str) -> Unmatched:
    reason = Caveat.of("ambiguous_results", run=str(score.run))
    return _unmatched(score, side, Verdict.INVALID, reason)


def _missing(past: Sequence[Score], present: Collection[JobKey], configs: Collection[str]) -> Iterable[Unmatched]:
    """Evals that the newest earlier run of a measured config had and the candidate has not."""
    newest: dict[str, RunKey] = {}
    for score in past:
        newest.setdefault(config_key(score.series), score.run)
    for score in past:
        config = config_key(score.series)
        if config in configs and score.run == newest[config] and (score.series, score.task) not in present:
            yield _unmatched(score, "baseline", Verdict.MISSING, Caveat.of("missing_eval", run=str(score.run)))


def _metrics_gone(job: Job) -> Iterable[Unmatched]:
    """Ways of reading an answer that the newest earlier run reported and the candidate does not."""
    if not job.past:
        return
    for metric in ("em_flexible", "em_strict"):
        if value_of(job.past[0], metric) is not None and all(value_of(score, metric) is None for score in job.new):
            reason = Caveat.of("missing_metric", metric=metric, run=str(job.past[0].run))
            yield _unmatched(job.past[0], "baseline", Verdict.MISSING, reason)


def _unmatched(score: Score, side: str, verdict: Verdict, reason: Caveat) -> Unmatched:
    return Unmatched(
        key=eval_key(score.series, score.task),
        side=side,
        verdict=verdict,
        reason=reason,
        series=score.series,
        config=config_key(score.series),
        run=score.run,
        task=score.task,
    )
