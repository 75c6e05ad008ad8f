"""Chooses, orders and counts what a report may say; holds no words and computes no statistic.

`select` turns a comparison into `Facts`: the headline, what moved (worst first), what could not be judged, what is
missing and what to do next. Exit code, headline, subject and table all come from these lists, so they cannot disagree.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias, TypeVar

from reports.things import (
    FAILED_GATE,
    RANK,
    WORSE,
    WORST_FIRST,
    Listed,
    Moved,
    at_largest_scope,
    badness,
    block,
    curve_text,
    decides,
    gate,
    grouped,
    is_bad,
    is_eval,
    is_problem,
    misses_gate,
    speaker,
    teller,
    told_verdict,
    worst_first,
)
from store.identity import layout_text, sequence_text
from store.images import Kind, Sameness, compare, parse
from store.records import (
    Attribution,
    Caveat,
    Comparison,
    Coverage,
    Differs,
    Finding,
    Frontier,
    JobCount,
    Provenance,
    Rejection,
    Run,
    RunKey,
    Scope,
    Unmatched,
    Verdict,
)
from store.runs import provenance

__all__ = [
    "BY_IMPORTANCE",
    "DIFFERENCES",
    "ELSEWHERE",
    "FAILED_GATE",
    "FOLDED_ROWS",
    "GENERAL_FROM",
    "IMPLAUSIBLE",
    "NIGHTLY_KEPT_DAYS",
    "RANK",
    "STEP_ROWS",
    "Attributed",
    "Chooser",
    "Counts",
    "Facts",
    "Fronted",
    "Hidden",
    "ImageChange",
    "Keep",
    "Listed",
    "Moved",
    "Note",
    "Reason",
    "Row",
    "Step",
    "Trace",
    "at_largest_scope",
    "badness",
    "curve_text",
    "decides",
    "differences",
    "gate",
    "is_bad",
    "is_eval",
    "misses_gate",
    "no_difference",
    "not_same",
    "number_of",
    "outer",
    "run_url",
    "select",
    "steps",
    "told_verdict",
    "worst",
]
"""What the other modules ask for, that of `reports.things` with it: one module answers for facts."""

Row: TypeAlias = Finding | Unmatched
_Said = TypeVar("_Said", "Note", Caveat)
Keep: TypeAlias = Callable[[Row], bool]
Counts: TypeAlias = tuple[tuple[Verdict, int], ...]


_MOVED = (
    Verdict.REGRESSION,
    Verdict.MIXED,
    Verdict.FAILED,
    Verdict.SUSPECTED,
    Verdict.IMPROVEMENT,
    Verdict.RECOVERY,
)
"""Verdicts that decide a headline wherever they stand, worst first."""
_LEVEL = (Verdict.NOISY, Verdict.INCONCLUSIVE, Verdict.EQUIVALENT)
"""Verdicts that decide it from the curves: single points are often inconclusive inside a settled curve."""

_BETTER = frozenset({Verdict.IMPROVEMENT, Verdict.RECOVERY})
_UNDECIDED = frozenset({Verdict.NOISY, Verdict.INCONCLUSIVE})
_ABSENT = frozenset({Verdict.MISSING, Verdict.FAILED, Verdict.INVALID})
_SET_ASIDE = frozenset({Verdict.NOT_COMPARABLE, Verdict.NOT_JUDGED})
_NEW = frozenset({Verdict.NO_BASELINE})
_DROPPED = frozenset({Verdict.DROPPED})

STEP_ROWS = 3
"""How many things a sentence names; more would push the verdict out of the first lines of a notification."""

GENERAL_FROM = 10
"""A doubt of more findings is told by their number, without names."""

NIGHTLY_KEPT_DAYS = 14
"""How long registries keep nightly images; an older one may not be pulled again for a re-run."""

IMPLAUSIBLE = "implausible_gain"

ELSEWHERE = frozenset({"passed_elsewhere", "failed_everywhere"})
"""Doubts about what did not come: whether the same config and image came in another run."""

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+", re.ASCII)


FOLDED_ROWS = 12
"""Rows of a list that is no problem, in a comment."""


def outer(listed: Listed[Moved]) -> Listed[Moved]:
    """The first entries without what is inside them; the rest is counted."""
    rows = listed.first(FOLDED_ROWS).rows
    shown = tuple(replace(entry, inside=()) for entry in rows)
    return Listed(shown, listed.left_out + sum(len(entry.entries) for entry in listed.rows) - len(rows))


@dataclass(frozen=True, slots=True)
class Note:
    """A doubt, the first things that carry it, and how many carry it of how many; none where it is about the runs."""

    caveat: Caveat
    rows: tuple[Row, ...]
    number: int
    total: int

    @property
    def more(self) -> int:
        return self.number - len(self.rows)

    @property
    def is_general(self) -> bool:
        """True for a doubt that many findings carry: naming three of them would tell nothing."""
        return self.number > GENERAL_FROM


@dataclass(frozen=True, slots=True)
class ImageChange:
    """One pair of images that stand against each other, and how many findings have it."""

    before: str | None
    after: str | None
    sameness: Sameness
    findings: int
    configs: tuple[str, ...] = ()


def not_same(listed: Listed[ImageChange]) -> Listed[ImageChange]:
    """The pairs that are not known to be the same software; the others are counted."""
    rows = tuple(pair for pair in listed.rows if pair.sameness is not Sameness.SAME)
    return Listed(rows, listed.total - len(rows))


@dataclass(frozen=True, slots=True)
class Fronted:
    """A group with what was judged of all its layouts together."""

    frontier: Frontier
    shift: Finding
    """At equal interactivity; without an effect where the sides share none."""
    peak: Finding
    latency: Finding | None = None
    """The shift at equal end-to-end latency, where both sides have it."""


@dataclass(frozen=True, slots=True)
class Attributed:
    """Changes whose sides differ in the same: the first of them, and how many there are."""

    rows: tuple[Finding, ...]
    number: int

    @property
    def attribution(self) -> Attribution:
        return self.rows[0].attribution or Attribution(Differs.UNKNOWN)

    @property
    def more(self) -> int:
        return self.number - len(self.rows)


@dataclass(frozen=True, slots=True)
class Reason:
    """How many rows were set aside for one reason."""

    caveat: Caveat
    rows: int


@dataclass(frozen=True, slots=True)
class Trace:
    """The history of a curve: one level per run, oldest first."""

    curve: Finding
    levels: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """What to do next: a code, and the things to do it to, worst first."""

    code: str
    rows: tuple[Row, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class Hidden:
    """What a filter took out of the lists; the verdict and the counts still hold all of it."""

    by: str
    rows: int
    regressions: int


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a document says about one comparison, chosen and ordered."""

    verdict: Verdict
    points: Counts
    curves: Counts
    scores: Counts
    lead: tuple[Finding, ...]
    """What the first lines tell: the worst eval and the most important measurement that have the verdict."""
    accuracy: Listed[Moved]
    """Evals that fell, failed their gate or changed their format: first in every document."""
    worse: Listed[Moved]
    worse_points: Listed[Finding]
    """Points that got worse and are not in `worse`: they stand behind the worst one of their curve."""
    better: Listed[Moved]
    attributed: Listed[Attributed]
    """What differs, by groups of the changes above that have it in common."""
    evals: Listed[Moved]
    """The evals without a problem."""
    undecided: Listed[Moved]
    absent: Listed[Unmatched]
    advisory: Listed[Moved]
    """Tails and TTFT that moved, the points of a moved curve counted: told, never deciding."""
    not_comparable: Listed[Unmatched]
    new: Listed[Unmatched]
    dropped: Listed[Unmatched]
    """What the baseline has and the candidate was not asked for: told, never a problem."""
    rejected: Listed[Reason]
    doubts: Listed[Note]
    images: Listed[ImageChange]
    candidate: Listed[Run]
    baseline: Listed[Run]
    """Newest first."""
    jobs: tuple[JobCount, ...]
    caveats: tuple[Caveat, ...]
    steps: tuple[Step, ...]
    against: str
    rules_version: str
    hidden: Hidden | None
    history: Listed[Trace]
    frontiers: Listed[Fronted]
    """Groups whose layouts are not the same on both sides."""
    fronts: Counts
    """Frontiers that decide, each once by the worst of its findings that do."""
    differs: Listed[Note]
    """What differs between the sides besides their images."""
    provenance: Mapping[RunKey, Provenance]
    visible: float | None
    """The smallest change that one run shows on the middle curve."""
    coverage: Coverage | None
    is_measured: bool
    """False where the candidate holds no result at all: then no verdict speaks of its performance."""

    def provenance_of(self, run: Run) -> Provenance:
        """What is known of a run's kind and of the time of its rows."""
        return self.provenance.get(run.key) or provenance(run)

    @property
    def total_points(self) -> int:
        return sum(number for _, number in self.points)

    @property
    def total_curves(self) -> int:
        return sum(number for _, number in self.curves)

    @property
    def total_scores(self) -> int:
        return sum(number for _, number in self.scores)


def number_of(counts: Counts, *verdicts: Verdict) -> int:
    """How many of a count have one of these verdicts."""
    return sum(number for verdict, number in counts if verdict in verdicts)


def select(
    comparison: Comparison,
    *,
    keep: Keep | None = None,
    filtered_by: str = "",
    history: Mapping[str, Sequence[float]] | None = None,
) -> Facts:
    """Choose what to say. A filter (`keep`, told as `filtered_by`) shortens lists, never the verdict or the counts.

    `history` holds, per curve key, one level per run, oldest first: shown as a sparkline beside what moved.
    """
    every = Chooser(comparison.findings, comparison.unmatched)
    shown = every if keep is None else every.kept(keep)
    return Facts(
        verdict=worst(comparison),
        points=every.points(),
        curves=every.curves(),
        scores=every.scores(),
        lead=every.lead(worst(comparison)),
        accuracy=Listed(shown.accuracy()),
        worse=Listed(shown.worse_things()),
        worse_points=Listed(shown.points_behind()),
        better=Listed(shown.better_things()),
        attributed=Listed(shown.attributed()),
        evals=Listed(shown.calm_evals()),
        undecided=Listed(shown.undecided_things()),
        absent=Listed(shown.states(_ABSENT)),
        advisory=shown.advisory(),
        not_comparable=Listed(shown.states(_SET_ASIDE)),
        new=Listed(shown.states(_NEW)),
        dropped=Listed(shown.states(_DROPPED)),
        rejected=_rejections(comparison.rejected),
        doubts=Listed(shown.doubts(_shared(comparison.findings))),
        images=_images(comparison.findings),
        candidate=_newest_first(comparison.candidate),
        baseline=_newest_first(comparison.baseline),
        jobs=comparison.jobs,
        caveats=_caveats(comparison),
        steps=steps(every, worst(comparison)),
        against=comparison.against,
        rules_version=comparison.rules_version,
        hidden=_hidden(every, shown, filtered_by),
        history=Listed(shown.traces(history or {})),
        frontiers=Listed(fronted(comparison.frontiers, shown.findings)),
        fronts=every.fronts(),
        differs=Listed(differences(comparison)),
        provenance=comparison.provenance,
        visible=comparison.visible,
        coverage=comparison.coverage,
        is_measured=every.is_measured,
    )


def worst(comparison: Comparison) -> Verdict:
    """The verdict of a whole comparison: what the exit code, the headline and the subject say.

    Anything that moved decides it wherever it stands; else the largest scope that was judged; else the state of the
    data. A failed gate is told as failed. Advisory metrics never decide.
    """
    deciding = [told_verdict(finding) for finding in comparison.findings if decides(finding)]
    for verdict in _MOVED:
        if verdict in deciding:
            return verdict
    level = _level(comparison.findings)
    for verdict in _LEVEL:
        if verdict in level:
            return verdict
    states = [*deciding, *(row.verdict for row in comparison.unmatched)]
    return min(states, key=RANK.__getitem__, default=Verdict.NOT_JUDGED)


def run_url(run: Run) -> str | None:
    """Address of a run attempt on GitHub; None for a run that is no GitHub run."""
    if run.id <= 0 or not _REPOSITORY.fullmatch(run.repository):
        return None
    return f"https://github.com/{run.repository}/actions/runs/{run.id}/attempts/{run.attempt}"


def _level(findings: Sequence[Finding]) -> set[Verdict]:
    """Verdicts of the curves, or of the points where no curve was judged, and of the evals."""
    measured = [f for f in findings if decides(f) and not is_eval(f)]
    found = {scope: {f.verdict for f in measured if f.scope is scope} for scope in Scope}
    evals = {f.verdict for f in findings if is_eval(f)}
    return (found[Scope.CURVE] or found[Scope.POINT] or found[Scope.CONFIG]) | found[Scope.FRONTIER] | evals


def _counted(verdicts: Iterable[Verdict]) -> Counts:
    tally = Counter(verdicts)
    return tuple((verdict, tally[verdict]) for verdict in WORST_FIRST if tally[verdict])


def _worst_by_key(pairs: Iterable[tuple[str, Verdict]]) -> dict[str, Verdict]:
    found: dict[str, Verdict] = {}
    for key, verdict in pairs:
        if key not in found or RANK[verdict] < RANK[found[key]]:
            found[key] = verdict
    return found


def _by_badness(finding: Finding) -> tuple[int, float, str, str]:
    return (RANK[finding.verdict], -badness(finding), finding.key, finding.metric)


@dataclass(frozen=True)  # no slots: what many lists ask for is found once
class Chooser:
    """The findings and what stands beside them, asked for one list at a time."""

    findings: tuple[Finding, ...]
    unmatched: tuple[Unmatched, ...]

    @property
    def is_measured(self) -> bool:
        """True where the candidate holds any result, judged or not."""
        judged = any(f.n_candidate or f.candidate is not None for f in self.findings)
        return judged or any(row.side == "candidate" for row in self.unmatched)

    def kept(self, keep: Keep) -> Chooser:
        return Chooser(tuple(filter(keep, self.findings)), tuple(filter(keep, self.unmatched)))

    def points(self) -> Counts:
        """Every point once, matched or not: the worst of its gate findings, or its state.

        A point that was matched but has no gate metric counts as not judged.
        """
        judged = [(f.key, f.verdict if decides(f) else Verdict.NOT_JUDGED) for f in self._of(Scope.POINT)]
        gated = {f.key for f in self._of(Scope.POINT) if decides(f)}
        rows = [(key, verdict) for key, verdict in judged if verdict is not Verdict.NOT_JUDGED or key not in gated]
        states = [(row.key, row.verdict) for row in self.unmatched if row.task is None]
        return _counted(_worst_by_key([*rows, *states]).values())

    def curves(self) -> Counts:
        return _counted(_worst_by_key((f.key, f.verdict) for f in self._of(Scope.CURVE) if decides(f)).values())

    def fronts(self) -> Counts:
        return _counted(_worst_by_key((f.key, f.verdict) for f in self._of(Scope.FRONTIER) if decides(f)).values())

    def scores(self) -> Counts:
        judged = [(f"{f.key} {f.task}", told_verdict(f)) for f in self._of(Scope.EVAL)]
        states = [(f"{row.key} {row.task}", row.verdict) for row in self.unmatched if row.task is not None]
        return _counted(_worst_by_key([*judged, *states]).values())

    def accuracy(self) -> tuple[Moved, ...]:
        """Evals with a problem, worst first."""
        return self._pooled(is_problem)

    def calm_evals(self) -> tuple[Moved, ...]:
        return self._pooled(lambda f: not is_problem(f))

    def worse(self) -> tuple[Finding, ...]:
        return self._gate(lambda f: f.verdict in WORSE or is_bad(f))

    def worse_points(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.worse() if f.scope is Scope.POINT)

    def worse_things(self) -> tuple[Moved, ...]:
        """What got worse at the largest scope that moved, worst first."""
        return grouped(self.worse(), self._judged(), _by_badness)

    def points_behind(self) -> tuple[Finding, ...]:
        """Worse points that `worse_things` leaves behind the worst one of their curve."""
        shown = {row.key for entry in self.worse_things() for row in entry.rows}
        return tuple(f for f in self.worse_points() if f.key not in shown)

    def better(self) -> tuple[Finding, ...]:
        """What improved, largest first."""
        return tuple(sorted(self._gate(lambda f: f.verdict in _BETTER), key=badness))

    def better_things(self) -> tuple[Moved, ...]:
        return grouped(self.better(), self._judged(), lambda f: (badness(f), f.key))

    def attributed(self) -> tuple[Attributed, ...]:
        """What differs between the sides of everything that moved; what has it in common is one group."""
        groups: dict[object, dict[str, Finding]] = {}
        for entry in (*self.accuracy(), *self.worse_things(), *self.better_things()):
            if (found := entry.finding.attribution) is not None:
                same = (found.kind, found.differences, found.controls.total, found.controls.moved)
                groups.setdefault(same, {}).setdefault(f"{entry.finding.key} {entry.finding.task}", entry.finding)
        held = (tuple(rows.values()) for rows in groups.values())
        return tuple(Attributed(rows[:STEP_ROWS], len(rows)) for rows in held)

    def undecided(self) -> tuple[Finding, ...]:
        """What could not be decided: curves, and points only where no curve was judged, least visible first."""
        curves = {f.key for f in self._of(Scope.CURVE)}
        rows = self._gate(
            lambda f: (
                (f.verdict in _UNDECIDED or (f.verdict is Verdict.SUSPECTED and not is_bad(f)))
                and not (f.scope is Scope.POINT and curve_text(f) in curves)
            )
        )
        return tuple(sorted(rows, key=_least_visible))

    def undecided_things(self) -> tuple[Moved, ...]:
        return grouped(self.undecided(), self._judged(), _least_visible)

    def advisory(self) -> Listed[Moved]:
        """Advisory metrics that moved, one entry per thing and direction; what is not in an entry is counted."""
        beside = (f for f in self.findings if f.scope is not Scope.FRONTIER and not decides(f))
        rows = sorted((f for f in beside if f.verdict in _MOVED), key=_by_badness)
        things = grouped(rows, self._judged(), _by_badness)
        return Listed(things, len(rows) - sum(len(entry.rows) for entry in things))

    def lead(self, verdict: Verdict) -> tuple[Finding, ...]:
        """What has the verdict of the headline, and nothing else: the worst eval with a problem, the first measurement.

        The mean of a mixed curve says nothing that a reader may act on: its worst point stands for it.
        """
        evals = [f for entry in self.accuracy() for f in entry.rows if told_verdict(f) is verdict][:1]
        moved = [(entry.finding, speaker(entry)) for entry in (*self.worse_things(), *self.better_things())]
        named = [one for whole, one in moved if verdict in (whole.verdict, one.verdict)]
        # A point may be told by a metric whose verdict is a milder one: the metric that has the verdict stands for it.
        rest = sorted((f for f in self._measured if f.verdict is verdict), key=_by_badness)
        measured = (*named, *(f for f in (*self.undecided(), *self.calm()) if f.verdict is verdict), *rest)[:1]
        if evals or measured:
            return (*evals, *measured)
        return tuple(f for entry in self.calm_evals() for f in entry.rows if told_verdict(f) is verdict)[:1]

    def suspects(self) -> tuple[Finding, ...]:
        """What to measure again: the things that got worse, of a mixed curve its worst point."""
        return tuple(speaker(entry) for entry in at_largest_scope(self.worse_things()))

    def calm(self) -> tuple[Finding, ...]:
        """What did not change, curves before points, the largest difference first."""
        rows = self._gate(lambda f: f.verdict is Verdict.EQUIVALENT)
        return tuple(sorted(rows, key=lambda f: (f.scope is Scope.POINT, -abs(f.effect or 0.0), f.key)))

    def traces(self, history: Mapping[str, Sequence[float]]) -> tuple[Trace, ...]:
        """The histories of the curves that moved or could not be decided, in that order."""
        rows = (*self.worse(), *self.better(), *self.undecided())
        curves = {f.key: f for f in reversed(rows) if f.scope is Scope.CURVE and f.key in history}
        return tuple(Trace(curve, tuple(history[key])) for key, curve in reversed(curves.items()))

    def doubts(self, shared: Collection[Caveat]) -> tuple[Note, ...]:
        """Doubts about measurements, those of what got worse first; those that everything shares are told elsewhere."""
        holders: dict[Caveat, dict[str, Finding]] = {}
        told: set[str] = set()
        for finding in (*self.worse(), *self.better(), *self.undecided(), *self.calm()):
            told.add(finding.key)
            for caveat in finding.caveats:
                if caveat not in shared:
                    holders.setdefault(caveat, {}).setdefault(finding.key, finding)
        return tuple(_note(caveat, tuple(rows.values()), len(told)) for caveat, rows in holders.items())

    def states(self, verdicts: frozenset[Verdict]) -> tuple[Unmatched, ...]:
        """Points and scores that stand alone, or that may not be compared, grouped by their reason."""
        rows = [row for row in self.unmatched if row.verdict in verdicts]
        return tuple(sorted(rows, key=lambda row: (RANK[row.verdict], row.reason.code, row.key)))

    def regressions(self) -> int:
        return sum(decides(f) and told_verdict(f) is Verdict.REGRESSION for f in self.findings)

    def _of(self, scope: Scope) -> list[Finding]:
        return [f for f in self.findings if f.scope is scope]

    def _pooled(self, wanted: Callable[[Finding], bool]) -> tuple[Moved, ...]:
        """Evals as entries, one block per config and task: the pooled ones where all their jobs are wanted or none."""
        jobs: dict[tuple[str, str | None], set[str]] = {}
        chosen: dict[tuple[str, str | None], list[Finding]] = {}
        for finding in filter(is_eval, self.findings):
            place = (finding.config or finding.key, finding.task)
            if finding.scope is Scope.EVAL:
                jobs.setdefault(place, set()).add(finding.key)
            if wanted(finding):
                chosen.setdefault(place, []).append(finding)
        blocks = [block(sorted(rows, key=worst_first), jobs.get(place, set())) for place, rows in chosen.items()]
        return tuple(entry for block in sorted(blocks, key=lambda b: worst_first(b[0].finding)) for entry in block)

    def _judged(self) -> Mapping[str, set[str]]:
        """The curves of each config that were held against a baseline."""
        found: dict[str, set[str]] = {}
        for finding in self._of(Scope.CURVE):
            if finding.config and finding.verdict is not Verdict.NO_BASELINE:
                found.setdefault(finding.config, set()).add(finding.key)
        return found

    @cached_property
    def _measured(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if decides(f) and not is_eval(f))

    def _gate(self, wanted: Callable[[Finding], bool]) -> tuple[Finding, ...]:
        """Gate findings of measurements, worst first; a point is told by one of them, the one that judges it."""
        rows = [f for f in self._measured if wanted(f)]
        points: dict[str, list[Finding]] = {}
        for row in rows:
            if row.scope is Scope.POINT:
                points.setdefault(row.key, []).append(row)
        tellers = (teller(found) for found in points.values())
        return tuple(sorted([*(f for f in rows if f.scope is not Scope.POINT), *tellers], key=_by_badness))


def _note(caveat: Caveat, rows: tuple[Row, ...], total: int) -> Note:
    return Note(caveat, rows[:STEP_ROWS], len(rows), total)


def _least_visible(finding: Finding) -> tuple[int, float, str, str]:
    return (RANK[finding.verdict], -(finding.mde or 0.0), finding.key, finding.metric)


def _newest_first(runs: Iterable[Run]) -> Listed[Run]:
    return Listed(tuple(sorted(runs, key=lambda run: (run.started_at, run.key), reverse=True)))


def _rejections(rows: Iterable[Rejection]) -> Listed[Reason]:
    tally = Counter((row.reason, row.field) for row in rows)
    reasons = (Reason(Caveat.of(reason, field=field), number) for (reason, field), number in tally.most_common())
    return Listed(tuple(reasons))


def _images(findings: Iterable[Finding]) -> Listed[ImageChange]:
    """Pairs of images: changed before unknown before same, and those of most findings first."""
    tally: Counter[tuple[str | None, str | None]] = Counter()
    configs: dict[tuple[str | None, str | None], set[str]] = {}
    for finding in findings:
        pair = (finding.baseline_image, finding.candidate_image)
        if any(pair):
            tally[pair] += 1
            configs.setdefault(pair, set()).update({finding.config} - {""})
    pairs = [ImageChange(*pair, compare(*pair), number, tuple(sorted(configs[pair]))) for pair, number in tally.items()]
    urgency = (Sameness.CHANGED, Sameness.UNKNOWN, Sameness.SAME)
    return Listed(
        tuple(sorted(pairs, key=lambda p: (urgency.index(p.sameness), -p.findings, str((p.before, p.after)))))
    )


def _caveats(comparison: Comparison) -> tuple[Caveat, ...]:
    """Doubts of the comparison, then those that every measurement has, then images that may be gone; each once."""
    found = [*comparison.caveats, *_shared(comparison.findings), *_gone(comparison)]
    return tuple(dict.fromkeys(found))


def _shared(findings: Iterable[Finding]) -> tuple[Caveat, ...]:
    """Doubts that all measurements carry, where there are several: said once for all."""
    first, *rest = [finding.caveats for finding in findings if not is_eval(finding)] or [()]
    return tuple(caveat for caveat in first if rest and all(caveat in other for other in rest))


def _gone(comparison: Comparison) -> Iterable[Caveat]:
    """Nightly images of the baseline that are older than registries keep them."""
    newest = max((run.started_at for run in comparison.candidate), default=None)
    started = {run.key: run.started_at for run in comparison.baseline}
    for finding in comparison.findings:
        image = finding.baseline_image
        dates = [started[key] for key in finding.baseline_runs if key in started]
        if newest is None or image is None or not dates or parse(image).kind is not Kind.NIGHTLY:
            continue
        days = (newest - max(dates)).days
        if days > NIGHTLY_KEPT_DAYS:
            yield Caveat.of("image_may_be_gone", image=image, days=days)


DIFFERENCES = (
    "kind_changed",
    "reused_run",
    "measured_nothing",
    "trimmed_sweep",
    "evals_only",
    "agentx_fast",
    "engine_patch",
    "image_unknown",
    "image_rollback",
    "image_not_of_config",
    "client_image",
    "recipe_changed",
    "recipe_unknown",
    "pool_changed",
    "topology_changed",
    "router_differs",
    "setting_changed",
    "workload_differs",
    "workload_off_nominal",
    "metric_redefined",
    "harness_event",
    "mixed_candidate",
)
"""Codes of what differs between the sides, in the order in which a reader asks."""


def differences(comparison: Comparison) -> tuple[Note, ...]:
    """Every recorded fact in which the sides differ, each once, with the things that carry it, the largest first."""
    rows: list[Row] = [*sorted(comparison.findings, key=lambda f: _SCOPES.index(f.scope)), *comparison.unmatched]
    holders: dict[Caveat, dict[str, Row]] = {caveat: {} for caveat in comparison.caveats}
    for row in rows:
        for caveat in (*row.caveats, *((row.reason,) if isinstance(row, Unmatched) else ())):
            holders.setdefault(caveat, {}).setdefault(row.key, row)
    holders |= {caveat: {} for caveat in (*_kinds(comparison), *_topologies(comparison.unmatched))}
    total = len({row.key for row in rows})
    found = (_note(caveat, tuple(held.values()), total) for caveat, held in holders.items())
    return tuple(sorted((one for one in found if one.caveat.code in DIFFERENCES), key=_reading_order))


_SCOPES = (Scope.FRONTIER, Scope.CONFIG, Scope.CURVE, Scope.POINT, Scope.EVAL)


def fronted(frontiers: Iterable[Frontier], findings: Iterable[Finding]) -> tuple[Fronted, ...]:
    """Groups with other layouts than before, in the order of their findings: the worst first."""
    judged: dict[str, dict[str, Finding]] = {}
    for finding in findings:
        if finding.scope is Scope.FRONTIER:
            judged.setdefault(finding.key, {})[finding.metric] = finding
    beside = {one.key: one for one in frontiers if not one.is_same}
    told = (_fronted(beside[key], found) for key, found in judged.items() if key in beside)
    return tuple(sorted(told, key=lambda one: (RANK[one.shift.verdict], -abs(one.shift.effect or 0.0), one.shift.key)))


def _fronted(frontier: Frontier, found: Mapping[str, Finding]) -> Fronted:
    shift, peak = found["frontier_tput_per_gpu"], found["peak_tput_per_gpu"]
    return Fronted(frontier, shift, peak, found.get("latency_frontier_tput_per_gpu"))


def no_difference(listed: Iterable[_Said]) -> tuple[_Said, ...]:
    """Doubts and remarks without those that stand in the list of differences."""
    return tuple(one for one in listed if (one.caveat if isinstance(one, Note) else one).code not in DIFFERENCES)


def _reading_order(one: Note) -> tuple[int, str, int, str]:
    """By the question that it answers, then the oldest first, then what most things carry."""
    date = str(dict(one.caveat.values).get("date", ""))
    return DIFFERENCES.index(one.caveat.code), date, -one.number, str(one.caveat)


def _kinds(comparison: Comparison) -> Iterable[Caveat]:
    """The kinds of the runs of both sides, where they are not the same."""
    old, new = (
        ", ".join(sorted({(comparison.provenance.get(run.key) or provenance(run)).kind for run in side}))
        for side in (comparison.baseline, comparison.candidate)
    )
    if old and new and old != new:
        yield Caveat.of("kind_changed", kind_before=old, kind_after=new)


_SIDES = ("baseline", "candidate")
_ONE_SIDED = frozenset({Verdict.MISSING, Verdict.DROPPED, Verdict.NO_BASELINE})


def _topologies(rows: Iterable[Unmatched]) -> Iterable[Caveat]:
    """Topologies that one side alone measured, of configs where each side has such ones."""
    found: dict[str, dict[str, set[str]]] = {}
    for row in rows:
        if row.series is not None and row.task is None and row.verdict in _ONE_SIDED and row.side in _SIDES:
            name = f"{row.config} {sequence_text(row.series)}"
            sides = found.setdefault(name, {side: set() for side in _SIDES})
            sides[row.side].add(layout_text(row.series.layout))
    for name, sides in sorted(found.items()):
        old, new = sides["baseline"] - sides["candidate"], sides["candidate"] - sides["baseline"]
        if old and new:
            before, after = (", ".join(sorted(one)) for one in (old, new))
            yield Caveat.of("topology_changed", config=name, baseline=before, candidate=after)


def _hidden(every: Chooser, shown: Chooser, by: str) -> Hidden | None:
    rows = len(every.findings) + len(every.unmatched) - len(shown.findings) - len(shown.unmatched)
    return Hidden(by, rows, every.regressions() - shown.regressions()) if rows or by else None


def _step(code: str, rows: Iterable[Row] = ()) -> Step:
    named = list({row.key: row for row in rows}.values())
    return Step(code, tuple(named[:STEP_ROWS]), max(0, len(named) - STEP_ROWS))


def steps(rows: Chooser, verdict: Verdict) -> tuple[Step, ...]:
    """What to do, most important first; never empty."""
    accuracy = [row for entry in rows.accuracy() for row in entry.rows]
    worse, absent = rows.worse(), rows.states(_ABSENT)
    gains = _implausible(rows.findings)
    found = (
        _step("check_evals", [f for f in accuracy if f.scope is Scope.EVAL] or accuracy) if accuracy else None,
        _performance_step(worse, rows.suspects()),
        _step("check_gain", gains) if gains else None,
        _step("rerun_missing", absent) if absent else None,
    )
    urgent = tuple(step for step in found if step)
    doubted = [f for f in rows.findings if decides(f) and UNSETTLED & {caveat.code for caveat in f.caveats}]
    calm = "run_again" if doubted and _CALM.get(verdict) == "merge_safe" else _CALM.get(verdict, "nothing_judged")
    if not rows.is_measured:
        return urgent or (_step("no_results"),)
    return urgent or (_step(calm, doubted or rows.undecided()),)


UNSETTLED = frozenset({"below_last_good", "mixed_candidate"})
"""Doubts that a calm verdict does not answer: an older loss lasts, or a part of the candidate was not judged."""


_CALM = {
    Verdict.SUSPECTED: "run_again",
    Verdict.IMPROVEMENT: "merge_safe",
    Verdict.RECOVERY: "merge_safe",
    Verdict.EQUIVALENT: "merge_safe",
    Verdict.NOISY: "run_again",
    Verdict.INCONCLUSIVE: "run_again",
    Verdict.NO_BASELINE: "first_result",
}


def _performance_step(moved: Sequence[Finding], named: Sequence[Finding]) -> Step | None:
    """One candidate run asks for a second one; two or more hold the merge."""
    if not moved:
        return None
    if all(f.verdict is Verdict.SUSPECTED for f in moved):
        return _step("rerun_suspected", named)
    return _step("confirm" if max(f.n_candidate for f in moved) <= 1 else "hold", named)


def _implausible(findings: Iterable[Finding]) -> list[Finding]:
    return [f for f in findings if any(caveat.code == IMPLAUSIBLE for caveat in f.caveats)]


BY_IMPORTANCE = (
    "accuracy",
    "worse",
    "frontiers",
    "better",
    "worse_points",
    "doubts",
    "attributed",
    "differs",
    "absent",
    "undecided",
    "history",
    "not_comparable",
    "new",
    "dropped",
    "images",
    "rejected",
    "evals",
    "advisory",
    "candidate",
    "baseline",
)
"""Which lists are kept longest when a document must be cut."""
