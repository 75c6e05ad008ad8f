"""A second look at what was called: was it the software, or had the machines moved; is it news, or a recovery.

Three other baselines may contradict the first: newer runs of the baseline's own software, earlier runs of the
candidate's own software, and the last good runs before a bad one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from store.metrics import metric
from store.records import Caveat, Finding, Scope, Verdict
from tracker.matrix import Ints
from tracker.pairs import CurvePair, last_good, newer_of_baseline, own_past, pair_columns
from tracker.settings import Settings

CALLED = frozenset({Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.MIXED})

SHARE = 0.5
"""A change of the machines explains a finding when it is at least this part of it."""

Key: TypeAlias = tuple[Scope, str, str]
Judge: TypeAlias = Callable[[Sequence[CurvePair]], Iterable[Finding]]


def key_of(finding: Finding) -> Key:
    return (finding.scope, finding.key, finding.metric)


@dataclass(frozen=True, slots=True)
class _Look:
    """One other baseline: which runs, for which curves, and what follows from it."""

    choose: Callable[[CurvePair], Ints]
    settle: Callable[[Finding, Finding], Finding]
    always: bool
    """Also where nothing was called."""


def crosscheck(
    findings: Sequence[Finding], pairs: Sequence[CurvePair], judge: Judge, settings: Settings, *, recovery: bool
) -> list[Finding]:
    """The findings, settled by the other baselines that their curves offer; `recovery` asks for the last good one."""
    settled = list(findings)
    for look in LOOKS if recovery else LOOKS[:-1]:
        called = {finding.key for finding in settled if finding.scope is Scope.CURVE and _is_open(finding)}
        others = [_other(pair, look, settings) for pair in pairs if look.always or pair.curve.key in called]
        again = [pair for pair in others if pair is not None and len(pair.cells)]
        if again:
            seen = {key_of(finding): finding for finding in judge(again)}
            settled = [_settle(finding, seen, look) for finding in settled]
    return _configs(settled)


def _is_open(finding: Finding) -> bool:
    return finding.verdict in CALLED


def _other(pair: CurvePair, look: _Look, settings: Settings) -> CurvePair | None:
    columns = look.choose(pair)
    return pair_columns(pair.curve, columns, settings.max_baseline_runs) if len(columns) else None


def _settle(finding: Finding, seen: Mapping[Key, Finding], look: _Look) -> Finding:
    other = seen.get(key_of(finding))
    if other is None or other.effect is None or finding.effect is None or finding.scope is Scope.CONFIG:
        return finding
    return look.settle(finding, other)


def _by_newer(finding: Finding, newer: Finding) -> Finding:
    """Against newer runs of the same software little of the change is left: the machines moved since the baseline."""
    stays = _same_way(finding, newer) and _share(finding, newer) >= SHARE
    if not _is_open(finding) or stays:
        return finding
    return _environment(finding, newer)


def _by_own(finding: Finding, own: Finding) -> Finding:
    """The candidate's software has moved against its own past in the same way: the machines moved."""
    moved = _same_way(finding, own) and _share(finding, own) >= SHARE and (own.p is not None and own.p <= 0.05)
    return _environment(finding, own) if _is_open(finding) and moved else finding


def _by_last_good(finding: Finding, good: Finding) -> Finding:
    """Against the last good run: a return to it is a recovery, and a loss that lasts is said."""
    improves = metric(finding.metric).improves(finding.effect or 0.0)
    if good.verdict is Verdict.REGRESSION and not (_is_open(finding) and not improves):
        return replace(finding, caveats=(*finding.caveats, Caveat.of("below_last_good", change=good.effect)))
    if not (_is_open(finding) and improves):
        return finding
    # The software of the last good run with other numbers than that run's is no recovery of it.
    other = any(caveat.code == "environment" for caveat in good.caveats)
    verdict = good.verdict if good.verdict in CALLED or other else Verdict.RECOVERY
    doubts = tuple(caveat for caveat in finding.caveats if caveat.code not in ("implausible_gain", "single_run"))
    return replace(good, verdict=verdict, caveats=(*doubts, Caveat.of("recovery", change=finding.effect)))


LOOKS = (
    _Look(newer_of_baseline, _by_newer, always=False),
    _Look(own_past, _by_own, always=False),
    _Look(last_good, _by_last_good, always=True),
)


def _same_way(one: Finding, other: Finding) -> bool:
    return (one.effect or 0.0) * (other.effect or 0.0) > 0


def _share(one: Finding, other: Finding) -> float:
    return abs(other.effect or 0.0) / max(abs(one.effect or 0.0), 1e-12)


def _environment(finding: Finding, other: Finding) -> Finding:
    caveat = Caveat.of("environment", change=other.effect)
    return replace(finding, verdict=Verdict.SUSPECTED, caveats=(*finding.caveats, caveat))


def _configs(findings: Sequence[Finding]) -> list[Finding]:
    """A configuration is called only while one of its curves is."""
    open_curves = {(f.config, f.metric) for f in findings if f.scope is Scope.CURVE and _is_open(f)}
    doubts: Mapping[tuple[str, str], Finding] = MappingProxyType(
        {(f.config, f.metric): f for f in findings if f.scope is Scope.CURVE and f.verdict in SETTLED}
    )
    curves = _curves_by_config(findings)
    return [_config(finding, open_curves, doubts) for finding in findings if _speaks(finding, curves)]


def _curves_by_config(findings: Sequence[Finding]) -> Mapping[str, Sequence[Finding]]:
    """The curve findings of each configuration."""
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.scope is Scope.CURVE:
            found.setdefault(finding.config, []).append(finding)
    return found


def _speaks(finding: Finding, curves: Mapping[str, Sequence[Finding]]) -> bool:
    """A configuration says something of its own: it has several curves, one baseline, and moved as a whole.

    What was called for the sake of a few points alone is told by these points.
    """
    if finding.scope is not Scope.CONFIG:
        return True
    mine = [curve for curve in curves.get(finding.config, ()) if curve.metric == finding.metric]
    rebased = any(caveat.code == "recovery" for curve in mine for caveat in curve.caveats)
    margin = finding.evidence.margin if finding.evidence else 0.0
    return len(mine) > 1 and not rebased and not (_is_open(finding) and abs(finding.effect or 0.0) < margin)


SETTLED = frozenset({Verdict.SUSPECTED, Verdict.RECOVERY})


def _config(finding: Finding, open_curves: set[tuple[str, str]], doubts: Mapping[tuple[str, str], Finding]) -> Finding:
    place = (finding.config, finding.metric)
    if finding.scope is not Scope.CONFIG or not _is_open(finding) or place in open_curves or place not in doubts:
        return finding
    curve = doubts[place]
    added = tuple(caveat for caveat in curve.caveats if caveat not in finding.caveats)
    return replace(finding, verdict=curve.verdict, caveats=(*finding.caveats, *added))
