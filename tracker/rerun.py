"""Which points to run again: the fewest whose repetition would settle the verdicts that matter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor
from types import MappingProxyType

from store.metrics import Part, metric
from store.records import Comparison, Evidence, Finding, Scope, Verdict
from store.reruns import Again, Ask, RerunPlan, Why
from tracker import jobs, sides
from tracker.settings import Settings
from tracker.sides import Side
from tracker.stats import rerun
from tracker.stats.rerun import Kind, Member, Trial

BUDGET = 0.05
"""Share of the candidate's points that a plan asks for."""

WORTH = 0.5
"""A repetition that would more probably than not leave the finding open is not asked for."""

NEAR = 1.0
"""A score is near its gate within so many standard errors (`tracker.judge.gate`)."""

Names = Mapping[str, Again]
"""Points and evals by their text key."""


# ---------------------------------------------------------------- the plan


@dataclass(frozen=True, slots=True)
class Asked:
    """A finding with what a repetition of its points must show."""

    finding: Finding
    why: Why
    members: tuple[str, ...]
    test: Trial

    @property
    def rank(self) -> tuple[int, bool, float]:
        """Reason, gate metrics first, largest loss first."""
        return list(Why).index(self.why), not _is_gate(self.finding), -abs(self.finding.effect or 0.0)


def plan(findings: Sequence[Finding], total: int, budget: float = BUDGET, settings: Settings = Settings()) -> RerunPlan:
    """What to run again after a comparison; `total` is the number of the candidate's points and evals.

    At most the share `budget` of them, unless the most important finding alone needs more.
    """
    limit = floor(budget * total + 1e-9)
    chosen: dict[str, Again] = {}
    asks: list[Ask] = []
    beyond: list[Ask] = []
    waiting: list[Ask] = []
    named = _named(findings)
    for asked in sorted(asked_of(findings, settings), key=lambda one: one.rank):
        ask = _ask(asked, chosen)
        wanted = dict.fromkeys((*chosen, *ask.points))
        if ask.after < WORTH:
            beyond.append(ask)
        elif len(wanted) > max(limit, len(chosen)) and chosen:
            waiting.append(ask)
        else:
            asks.append(ask)
            chosen = {key: named.get(key) or Again(key, asked.finding.config, None) for key in wanted}
    return RerunPlan(
        tuple(chosen.values()), tuple(asks), tuple(beyond), tuple(waiting), total, budget, limit, _judged(findings)
    )


def _ask(asked: Asked, chosen: Mapping[str, Again]) -> Ask:
    """What the finding needs beside the points that are run again anyhow."""
    free = {place for place, key in enumerate(asked.members) if key in chosen}
    again = rerun.choose(asked.test, free)
    return Ask(
        finding=asked.finding,
        why=asked.why,
        points=tuple(asked.members[place] for place in sorted(again)),
        before=asked.test.power(()),
        after=asked.test.power(again),
        repetitions=rerun.repetitions(asked.test),
    )


def _judged(findings: Iterable[Finding]) -> int:
    return sum(one.evidence is not None or one.scope is Scope.EVAL for one in findings)


def _named(findings: Iterable[Finding]) -> dict[str, Again]:
    kinds = (Scope.POINT, Scope.EVAL)
    return {one.key: Again(one.key, one.config, one.series, one.task) for one in findings if one.scope in kinds}


# ---------------------------------------------------------------- what the findings ask


def asked_of(findings: Sequence[Finding], settings: Settings) -> Iterator[Asked]:
    """Every finding that a repetition could settle, with its test."""
    families = {part: _family(findings, part, settings) for part in (True, False)}
    points: dict[tuple[str, str], Finding] = {
        (one.key, one.metric): one for one in findings if one.scope is Scope.POINT and one.evidence
    }
    for one in findings:
        if one.scope is Scope.EVAL:
            yield from _of_eval(one)
        elif one.scope is Scope.CURVE and one.evidence is not None and one.effect is not None:
            yield from _of_curve(one, one.evidence, points, families[_is_gate(one)], settings)


def _is_gate(finding: Finding) -> bool:
    row = metric(finding.metric)
    return (metric(row.same_as) if row.same_as else row).part is Part.GATE or finding.scope is Scope.EVAL


def _family(findings: Iterable[Finding], gate: bool, settings: Settings) -> float:
    """The p that one more curve of a family of tests must reach (Benjamini and Hochberg)."""
    q = settings.q_gate if gate else settings.q_advisory
    known = [one for one in findings if one.scope is Scope.CURVE and one.p is not None and _is_gate(one) is gate]
    called = sum(
        one.evidence is not None and one.evidence.p_adjusted is not None and one.evidence.p_adjusted <= q
        for one in known
    )
    return q * min(called + 1, len(known)) / max(len(known), 1)


def _of_curve(
    curve: Finding,
    seen: Evidence,
    points: Mapping[tuple[str, str], Finding],
    family: float,
    settings: Settings,
) -> Iterator[Asked]:
    """The curve's own question; where it did not move as a whole, those of the points that speak for it."""
    why = _why(curve, seen)
    if why is None:
        return
    if why is Why.INCONCLUSIVE:
        yield Asked(curve, why, seen.members, _at_interval(curve, seen, settings))
    elif _loss(curve) >= seen.margin:
        alpha = min(seen.alpha, family / (2 if len(seen.members) > 1 else 1))
        yield Asked(curve, why, seen.members, _at_estimate(curve, seen, alpha, seen.alpha, why))
    else:
        size = len(seen.members)
        for key in seen.members:
            point = points.get((key, curve.metric))
            if point is not None and point.evidence is not None and _speaks(point, point.evidence, settings):
                alpha = min(point.evidence.alpha, family / 2) / size
                own = point.evidence.alpha / size
                yield Asked(point, why, (key,), _at_estimate(point, point.evidence, alpha, own, why))


def _speaks(point: Finding, seen: Evidence, settings: Settings) -> bool:
    """A point that is far enough on its own to have moved its curve's verdict."""
    adjusted = seen.p_adjusted
    return _loss(point) >= seen.margin and adjusted is not None and adjusted <= settings.alpha_suspected


def _loss(finding: Finding) -> float:
    """How much worse, positive; negative where it became better."""
    return _worse(finding, finding.effect or 0.0)


def _worse(finding: Finding, effect: float) -> float:
    return -effect if metric(finding.metric).improves(1.0) else effect


_CLASSES: Mapping[Verdict, Why] = MappingProxyType(
    {
        Verdict.REGRESSION: Why.CONFIRM,
        Verdict.MIXED: Why.CONFIRM,
        Verdict.SUSPECTED: Why.SUSPECTED,
        Verdict.INCONCLUSIVE: Why.INCONCLUSIVE,
        Verdict.NOISY: Why.INCONCLUSIVE,
    }
)


def _why(curve: Finding, seen: Evidence) -> Why | None:
    """Why the curve should be run again; None where a repetition is of no use or of no interest."""
    codes, why = {caveat.code for caveat in curve.caveats}, _CLASSES.get(curve.verdict)
    if why is Why.CONFIRM:
        return why if "single_run" in codes else None
    if why is Why.SUSPECTED:
        # The same software is never called worse, however often it is run.
        return None if "environment" in codes else Why.CONFIRM if "rerun" in codes else why
    reach = max(_worse(curve, end) for end in (curve.low or 0.0, curve.high or 0.0))
    return why if why is not None and _is_gate(curve) and reach > seen.margin else None


def _members(seen: Evidence) -> tuple[Member, ...]:
    sides_of = zip(seen.sigma, seen.baseline, seen.candidate, strict=True)
    return tuple(Member(sigma, len(old), len(new)) for sigma, old, new in sides_of)


def _at_estimate(finding: Finding, seen: Evidence, alpha: float, own: float, why: Why) -> Trial:
    """Whether a loss of the estimated size is called; alone where a regression is to be confirmed.

    `own` is the error rate of the finding's smallest detectable change, which knows nothing of the other curves.
    """
    kind = Kind.CONFIRM if why is Why.CONFIRM else Kind.LONE if finding.scope is Scope.POINT else Kind.CALL
    return Trial(
        members=_members(seen),
        effect=_loss(finding),
        margin=seen.margin,
        z=rerun.two_sided(own if why is Why.CONFIRM else alpha),
        correlation=seen.correlation,
        inflation=_inflation(finding, seen, own),
        kind=kind,
    )


def _at_interval(finding: Finding, seen: Evidence, settings: Settings) -> Trial:
    """Whether the interval would hold only one of "no change" and "a loss of the margin"."""
    return Trial(
        members=_members(seen),
        effect=_loss(finding),
        margin=seen.margin,
        z=rerun.two_sided(settings.alpha_suspected),
        correlation=seen.correlation,
        inflation=_inflation(finding, seen, seen.alpha),
        kind=Kind.CLEAR,
    )


def _inflation(finding: Finding, seen: Evidence, alpha: float) -> float:
    """How much wider the judge saw it than normal: at its smallest detectable change, and where the finding stands."""
    doubt = rerun.deviation(_members(seen), seen.correlation)
    wide = rerun.inflation(finding.mde or 0.0, seen.margin, rerun.two_sided(alpha), doubt)
    # The p of a curve allows for two tests, the pooled one and that of its points.
    stands = rerun.score((finding.p or 1.0) / (2 if len(seen.members) > 1 else 1)) if finding.p else 0.0
    return max(wide, abs(finding.effect or 0.0) / stands / doubt) if stands >= 1 else wide


def _of_eval(finding: Finding) -> Iterator[Asked]:
    """An eval near its gate, or a drop of one run."""
    said = {caveat.code: dict(caveat.values) for caveat in finding.caveats}
    runs = max(finding.n_candidate, 1)
    near = said.get("near_threshold")
    if "run_again" in said and finding.effect and finding.low is not None and finding.high is not None:
        z = rerun.two_sided(0.05)
        one = Member((finding.high - finding.low) / 2 / z, 0, runs)
        yield Asked(finding, Why.CONFIRM, (finding.key,), Trial((one,), abs(finding.effect), 0.0, z, kind=Kind.CONFIRM))
    elif near is not None:
        score, mark, doubt = (float(near[name] or 0.0) for name in ("score", "threshold", "standard_error"))
        test = Trial((Member(doubt, 0, runs),), abs(score - mark), 0.0, NEAR)
        yield Asked(finding, Why.GATE, (finding.key,), test)


# ---------------------------------------------------------------- the job


def planned(question: jobs.Question, where: jobs.Where, budget: float = BUDGET) -> RerunPlan:
    """Judge a candidate and say which of its points to run again. Nothing is written."""
    settings = Settings()
    withdrawn = where.withdrawn()
    with (
        sides.opened(where.store, where.archive, withdrawn) as past,
        sides.candidate(question.candidate, past, jobs.JUDGED_METRICS, withdrawn) as new,
    ):
        answer = jobs.judged(past, new, question, settings)
        found = plan(answer.findings, _total(answer, new), budget, settings)
        return replace(found, points=tuple(map(_keyed(new), found.points)))


def _total(answer: Comparison, new: Side) -> int:
    """Points that were measured, and evals."""
    evals = {one.key for one in answer.findings if one.scope is Scope.EVAL}
    return int(new.frame["series"].n_unique()) + len(evals)


def _keyed(new: Side) -> Callable[[Again], Again]:
    """Gives a point the key of the master config that promised it, where the run's configs are known."""
    keys = {(one.series, one.task): one.key for one in new.expected}

    def keyed(point: Again) -> Again:
        series = point.series or new.series.get(point.key)
        known = keys.get((series, point.task)) if series else None
        return replace(point, series=series, config=known or point.config)

    return keyed
