"""What differs between the sides of every finding that moved, and what curves of unchanged software did beside it.

These curves (controls) are of other configs on the same machines: of the same run, and where it has none, of official
runs within a day. No verdict is made or changed here, and nothing is said of why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from statistics import median
from typing import TypeAlias

import polars as pl

from reports.things import curve_text, is_eval
from store.duck import Store
from store.identity import config_key, curve_key, group_of, series_key
from store.metrics import GATE_METRICS
from store.records import (
    Attribution,
    Controls,
    Difference,
    Finding,
    Frontier,
    Run,
    Scope,
    Score,
    Verdict,
)
from store.runs import PATCHED
from tracker import attribution, matrix
from tracker.harness import BEHIND
from tracker.judge.sweep import judge_frames
from tracker.matrix import CurveRun
from tracker.pairs import parse_baseline
from tracker.settings import Settings
from tracker.sides import Side

MOVED = frozenset(
    {Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.MIXED, Verdict.SUSPECTED, Verdict.RECOVERY, Verdict.FAILED}
)
"""Verdicts of what differs by more than chance: these findings get an attribution."""
COUNTED = MOVED | {Verdict.EQUIVALENT, Verdict.INCONCLUSIVE}
"""Verdicts of a control that says something: one too noisy to show anything is none."""

NEAR = timedelta(days=1)
"""How far from the candidate a run of the same machines may have started to be a control."""
MOST_CURVES, MOST_RUNS = 40, 4
"""Curves beside the candidate that are judged, and the newest runs of each: a bound on the work."""


@dataclass(frozen=True, slots=True)
class Ground:
    """Both sides of a comparison as far as an attribution needs them."""

    past: Store | None
    new: Side
    history: pl.DataFrame
    """The rows that the baselines were chosen from (tidy)."""
    scores: Sequence[Score]
    """Scores of both sides."""
    runs: Mapping[str, Run]
    frontiers: Sequence[Frontier]
    settings: Settings


def attributed(findings: Iterable[Finding], ground: Ground) -> Iterator[Finding]:
    """The findings, those that moved each with its attribution."""
    every = tuple(findings)
    looking = _Looking(ground, every)
    return (replace(one, attribution=looking.at(one)) if one.verdict in MOVED else one for one in every)


_Cell: TypeAlias = tuple[str, str, str | None]
"""What a control must share: its pool (its kind of GPU where no pool is named), its metric, and the task of an eval."""


@dataclass(frozen=True, slots=True)
class _Control:
    """A judged curve (or eval) whose software did not change."""

    config: str
    cell: _Cell
    effect: float
    has_moved: bool


@dataclass(frozen=True)  # no slots: what few findings ask for is found once
class _Looking:
    ground: Ground
    findings: tuple[Finding, ...]

    def at(self, one: Finding) -> Attribution:
        found = tuple(self._differences(one))
        return attribution.attribution(found, self._controls(one))

    # ---- what differs

    def _differences(self, one: Finding) -> Iterator[Difference]:
        for old, new in self._sides(one):
            yield from attribution.software(old, new)
        yield from self._patches(one)
        if one.scope is Scope.FRONTIER:
            changes = (front.layouts for front in self.ground.frontiers if front.key == one.key)
            yield from (said for some in changes for said in attribution.layouts(some))
        yield from attribution.told(one.caveats)

    def _sides(self, one: Finding) -> Iterator[tuple[CurveRun, CurveRun]]:
        """The runs that stand against each other, by every curve or eval that a finding is about."""
        base, new = (str(runs[-1]) if runs else "" for runs in (one.baseline_runs, one.candidate_runs))
        known = self._exams if is_eval(one) else self._curves
        pairs = [(known.get((place, base)), known.get((place, new))) for place in self._places(one)]
        whole = [(old, after) for old, after in pairs if old is not None and after is not None]
        # An eval row names no image of its own: the judge knows it, the row may not.
        named = is_eval(one) or not whole
        for old, after in whole or [(_nobody(base), _nobody(new))]:
            images = (one.baseline_image, one.candidate_image) if named else (old.image, after.image)
            yield replace(old, image=images[0]), replace(after, image=images[1])

    def _places(self, one: Finding) -> Sequence[str]:
        if is_eval(one):
            keys = one.evidence.members if one.evidence is not None else (one.key,)
            return tuple(sorted(set(keys)))
        if one.scope is Scope.CONFIG:
            return self._by_config.get(one.config, ())
        if one.scope is Scope.FRONTIER:
            return tuple(curve for curve in self._by_config.get(one.config, ()) if group_of(curve) == one.key)
        return (curve_text(one),)

    def _patches(self, one: Finding) -> Iterator[Difference]:
        """A label that says that files of the engine were modified, on one side alone."""
        sides = [runs[-1:] for runs in (one.baseline_runs, one.candidate_runs)]
        patched = [any(PATCHED in self.ground.runs[str(key)].labels for key in side if str(key) in self.ground.runs)
                   for side in sides]  # fmt: skip
        if patched[0] is not patched[1]:
            before, after = (PATCHED if yes else None for yes in patched)
            yield Difference("engine_patch", before, after, attribution.SETTINGS["engine_patch"])

    @cached_property
    def _by_config(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, dict[str, None]] = {}
        for series in self.ground.new.series.values():
            found.setdefault(config_key(series), {})[curve_key(series)] = None
        return {config: tuple(sorted(curves)) for config, curves in found.items()}

    @cached_property
    def _curves(self) -> Mapping[tuple[str, str], CurveRun]:
        """What each run of either side says of a curve's software and machines."""
        cited = {str(run) for one in self.findings for run in one.baseline_runs[-1:]}
        before = self.ground.history.filter(pl.col("run").is_in(list(cited)))
        return _runs_of(pl.concat([before, self.ground.new.frame], how="diagonal_relaxed"))

    @cached_property
    def _exams(self) -> Mapping[tuple[str, str], CurveRun]:
        """The same of evals, by job."""
        return {
            (f"{series_key(score.series)} {score.task}", str(score.run)): _of_score(score)
            for score in self.ground.scores
        }

    # ---- controls

    def _controls(self, one: Finding) -> Controls:
        cell = (self._place(one), BEHIND.get(one.metric, (one.metric,))[0], one.task)
        fit = _of_other_configs(self._beside_it, cell, one) or _of_other_configs(self._beside, cell, one)
        moved = [control.effect for control in fit if control.has_moved and control.effect * (one.effect or 0.0) > 0]
        return Controls(len(fit), len(moved), median(moved) if moved else None)

    def _place(self, one: Finding) -> str:
        """The pool of the candidate, or its kind of GPU where no pool is named."""
        pools = {new.pool for _, new in self._sides(one) if new.pool}
        return pools.pop() if len(pools) == 1 else self._gpus.get(one.config, "")

    @cached_property
    def _gpus(self) -> Mapping[str, str]:
        scored = (score.series for score in self.ground.scores)
        return {config_key(series): series.gpu for series in (*scored, *self.ground.new.series.values())}

    @cached_property
    def _beside_it(self) -> Mapping[_Cell, Sequence[_Control]]:
        """Curves and evals of the same run whose software is that of their baseline."""
        return _by_cell(
            _control(one, self._place(one))
            for one in self.findings
            if (is_eval(one) or one.scope is Scope.CURVE) and one.verdict in COUNTED and self._is_unchanged(one)
        )

    def _is_unchanged(self, one: Finding) -> bool:
        return bool(one.baseline_runs) and not any(attribution.software(*pair) for pair in self._sides(one))

    @cached_property
    def _beside(self) -> Mapping[_Cell, Sequence[_Control]]:
        """Curves of other configs on the same kind of GPU, in official runs within a day, against their own past."""
        past, new = self.ground.past, self.ground.new
        if past is None or not new.runs:
            return {}
        gpus = {self._gpus.get(one.config, "") for one in self.findings if one.verdict in MOVED}
        at = new.newest.started_at
        curves = past.curves_beside(gpus, (at - NEAR, at + NEAR), new.configs, MOST_CURVES)
        if not curves:
            return {}
        end = replace(new.newest, started_at=at + NEAR)
        rows = past.history(curves, GATE_METRICS, before=end, without={run.id for run in new.runs}, most=MOST_RUNS)
        return _by_cell(_of_others(rows.filter(pl.col("official")), new.newest, self.ground.settings, past))


def _of_others(rows: pl.DataFrame, near: Run, settings: Settings, past: Store) -> Iterator[_Control]:
    """Each curve's newest run against those before it, where it measured the software of the run before."""
    newest = pl.col("started_at") == pl.col("started_at").max().over("curve")
    close = (pl.col("started_at") - near.started_at).abs() <= NEAR
    now, before = rows.filter(newest & close), rows.filter(~newest)
    if now.is_empty() or before.is_empty():
        return
    known = _runs_of(rows)
    gpus = {curve_key(one): one.gpu for one in past.series(set(now["series"])).values()}
    for one in judge_frames(before, now, settings, parse_baseline("previous")).findings:
        if one.scope is not Scope.CURVE or one.verdict not in COUNTED or not one.baseline_runs:
            continue
        pair = [known[one.key, str(runs[-1])] for runs in (one.baseline_runs, one.candidate_runs)]
        if not attribution.software(*pair):
            yield _control(one, pair[1].pool or gpus.get(one.key, ""))


def _control(one: Finding, place: str) -> _Control:
    margin = one.evidence.margin if one.evidence is not None else 0.0
    effect = one.effect or 0.0
    cell = (place, one.metric, one.task)
    return _Control(one.config, cell, effect, one.verdict in MOVED and abs(effect) >= margin)


def _by_cell(controls: Iterable[_Control]) -> Mapping[_Cell, Sequence[_Control]]:
    found: dict[_Cell, list[_Control]] = {}
    for one in controls:
        found.setdefault(one.cell, []).append(one)
    return found


def _of_other_configs(controls: Mapping[_Cell, Sequence[_Control]], cell: _Cell, one: Finding) -> list[_Control]:
    return [control for control in controls.get(cell, ()) if control.config != one.config]


def _runs_of(rows: pl.DataFrame) -> dict[tuple[str, str], CurveRun]:
    """The runs of some rows (tidy) by curve and run, each with what its points say."""
    single = rows.unique(("run", "series"), maintain_order=True)
    return {(curve.key, run.key): run for curve in matrix.curves(single) for run in curve.runs}


def _of_score(score: Score) -> CurveRun:
    return CurveRun(str(score.run.id), score.run.attempt, None, score.image, score.recipe, score.pool)


def _nobody(run: str) -> CurveRun:
    """A run of which nothing is known but its name."""
    return CurveRun(*matrix.split_run(run), None, None, None, None)
