"""What moved in one comparison, and what is kept of the rest: a `Comparison` made into a `Review`.

A curve moves once, whichever of its gate metrics show it; where only some of its points were called, they are one move
of the curve's lone points. The evals of a config and task are one move too. Advisory metrics move nothing.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from reports.facts import Chooser
from reports.things import EVAL_ALARMS, FAILED_GATE, curve_text, decides, gate, is_eval, misses_gate, told_verdict
from store.identity import config_key
from store.images import Sameness, compare
from store.life import Apart, ConfigBump, Direction, Joint, Move, Review
from store.metrics import GATE_METRICS, metric
from store.records import Caveat, Comparison, Finding, RunKey, Scope, Score, Unmatched, Verdict

CALLED = frozenset({Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.FAILED})
SPEAKING = (Verdict.FAILED, Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.RECOVERY, Verdict.SUSPECTED)
"""Verdicts of a finding that make a move, strongest first. A mixed curve is told by its points."""
STRENGTH: Mapping[Verdict, int] = {verdict: place for place, verdict in enumerate(SPEAKING)}

ACCURACIES = ("em_flexible", "em_strict", "score")
"""Flexible first: it is the accuracy; strict also measures the format."""


def review(comparison: Comparison, content: str, pools: Mapping[str, str], joint: Iterable[Joint] = ()) -> Review:
    """What is kept of a run's own comparison. `pools` names the machines of each of its curves."""
    (run,) = comparison.candidate
    rows = Chooser(comparison.findings, comparison.unmatched)
    judged = {f.key for f in comparison.findings if f.scope is Scope.CURVE and decides(f)}
    rejected = Counter((row.reason, row.field) for row in comparison.rejected)
    return Review(
        run=run.key,
        started_at=run.started_at,
        rules_version=comparison.rules_version,
        content=content,
        points=dict(rows.points()),
        curves=dict(rows.curves()),
        scores=dict(rows.scores()),
        configs=tuple(sorted(_configs(comparison))),
        bumps=tuple(_bumps(comparison.findings)),
        moves=moves(comparison.findings, pools),
        joint=tuple(joint),
        apart=_apart(comparison.unmatched),
        rejected=tuple((*reason, number) for reason, number in sorted(rejected.items())),
        pools=dict(sorted(Counter(pools.get(key, "") for key in judged).items())),
    )


def _configs(comparison: Comparison) -> set[str]:
    """Configs of which the run measured something."""
    own = {row.config for row in comparison.unmatched if row.side == "candidate"}
    return ({f.config for f in comparison.findings} | own) - {""}


def _bumps(findings: Iterable[Finding]) -> Iterator[ConfigBump]:
    """The configs whose image is another one than on the baseline."""
    pairs = {(f.config, f.baseline_image, f.candidate_image) for f in findings if decides(f) and not is_eval(f)}
    for config, before, after in sorted(pairs, key=lambda pair: tuple(map(str, pair))):
        if compare(before, after) is Sameness.CHANGED:
            yield ConfigBump(config, before, after)


def _apart(rows: Iterable[Unmatched]) -> tuple[Apart, ...]:
    groups: dict[tuple[Verdict, object, str, bool], list[Unmatched]] = defaultdict(list)
    for row in rows:
        groups[row.verdict, row.reason, row.config, row.task is not None].append(row)
    found = (
        Apart(verdict, same[0].reason, config, len({row.key for row in same}), min(row.key for row in same), evals)
        for (verdict, _, config, evals), same in groups.items()
    )
    return tuple(sorted(found, key=lambda one: (one.verdict, one.reason.code, one.config, one.example)))


# ---------------------------------------------------------------- moves


def moves(findings: Sequence[Finding], pools: Mapping[str, str]) -> tuple[Move, ...]:
    """Everything that moved, sorted by key: at most one move per curve, or config and task, and direction."""
    places: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if decides(finding) and (finding.scope is not Scope.CONFIG or is_eval(finding)):
            places[_place(finding)].append(finding)
    found = (
        move for key, rows in sorted(places.items()) for way in Direction if (move := _move(key, rows, way, pools))
    )
    return tuple(found)


def _place(finding: Finding) -> str:
    """The curve, or config and task, that a finding belongs to."""
    return f"{finding.config} {finding.task}" if is_eval(finding) else curve_text(finding)


def _move(key: str, rows: Sequence[Finding], way: Direction, pools: Mapping[str, str]) -> Move | None:
    whole = [f for f in rows if f.scope in (Scope.CURVE, Scope.CONFIG) and _speaks(f, way)]
    single = [f for f in rows if f.scope in (Scope.POINT, Scope.EVAL) and _speaks(f, way)]
    # Jobs that were called outweigh a whole that was only suspected.
    called = [f for f in single if told_verdict(f) in CALLED]
    chosen = whole if whole and not (called and all(f.verdict is Verdict.SUSPECTED for f in whole)) else single
    if not chosen:
        return None
    teller = min(chosen, key=_order)
    told = [f for f in chosen if f.scope is teller.scope and f.metric == teller.metric]
    return Move(
        key=key,
        config=teller.config,
        scope=teller.scope,
        direction=way,
        verdict=told_verdict(teller),
        finding=replace(teller, evidence=None),
        margin=teller.evidence.margin if teller.evidence else 0.0,
        reference={member: level for f in told for member, level in _reference(f).items()},
        pool="" if is_eval(teller) else pools.get(key, ""),
        alarms=_alarms(rows) if way is Direction.WORSE else (),
    )


def _alarms(rows: Iterable[Finding]) -> tuple[Caveat, ...]:
    """Each kind of alarm of some evals once, a missed threshold first."""
    found: dict[str, Caveat] = {}
    for finding in rows:
        for caveat in finding.caveats:
            if caveat.code in EVAL_ALARMS and is_eval(finding):
                found.setdefault(caveat.code, caveat)
    return tuple(sorted(found.values(), key=lambda caveat: (caveat.code != FAILED_GATE, caveat.code)))


def _speaks(finding: Finding, way: Direction) -> bool:
    """True of a finding that moved this way by more than is worth saying, or failed its gate."""
    if told_verdict(finding) is Verdict.FAILED:
        return way is Direction.WORSE and misses_gate(finding)
    if finding.verdict not in STRENGTH or finding.effect is None or finding.evidence is None:
        return False
    if finding.verdict is Verdict.RECOVERY:
        return way is Direction.BETTER
    side = Direction.BETTER if metric(finding.metric).improves(finding.effect) else Direction.WORSE
    return side is way and abs(finding.effect) >= finding.evidence.margin


def _order(finding: Finding) -> tuple[int, int, float, str]:
    """Strongest verdict first, then the metric that speaks for all, then the largest effect."""
    names: Collection[str] = ACCURACIES if is_eval(finding) else GATE_METRICS
    place = list(names).index(finding.metric) if finding.metric in names else len(names)
    nodes = finding.series is not None and finding.series.layout.multinode
    # On several nodes throughput is far noisier than the time per token.
    rank = -place if nodes and not is_eval(finding) else place
    return (STRENGTH[told_verdict(finding)], rank, -abs(finding.effect or 0.0), finding.key)


def _reference(finding: Finding) -> dict[str, tuple[str, float]]:
    """The level before, per member; for a failed gate the threshold, which nothing else may stand for."""
    if told_verdict(finding) is Verdict.FAILED:
        mark = gate(finding)[1]
        return {finding.key: (finding.metric, mark)} if mark is not None else {}
    if finding.evidence is None:
        return {}
    as_level = _mean if is_eval(finding) else _log_mean
    pairs = zip(finding.evidence.members, finding.evidence.baseline, strict=True)
    return {member: (finding.metric, as_level(values)) for member, values in pairs if values}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _log_mean(values: Sequence[float]) -> float:
    return _mean([math.log(value) for value in values])


def eval_place(score: Score) -> str:
    """Where the moves of an eval stand: its config and task."""
    return f"{config_key(score.series)} {score.task}"


def runs_of(move: Move) -> RunKey | None:
    """The newest run of the baseline of a move."""
    return move.finding.baseline_runs[-1] if move.finding.baseline_runs else None
