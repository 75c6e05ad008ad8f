"""Chooses what one screen shows of the facts: a few rows worst first, the rest as counts; holds no words.

Every row that is not shown is counted, in a line that says where to see it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from reports.facts import (
    ELSEWHERE,
    RANK,
    Counts,
    Facts,
    ImageChange,
    Listed,
    Moved,
    Row,
    at_largest_scope,
    misses_gate,
)
from store.images import Sameness
from store.records import Caveat, Finding, Scope, Verdict

WORSE_ROWS, BETTER_ROWS = 12, 6
"""Rows of the table at most."""
NAMES = 3
"""How many things a line names at most."""
DOUBTS = 4
IMAGES = 5
STEPS = 2

_BETTER = frozenset({Verdict.IMPROVEMENT, Verdict.RECOVERY})
_UNSEEN = (Verdict.SUSPECTED, Verdict.NOISY, Verdict.INCONCLUSIVE)
_STATES = (
    Verdict.FAILED,
    Verdict.INVALID,
    Verdict.MISSING,
    Verdict.NOT_COMPARABLE,
    Verdict.NOT_JUDGED,
    Verdict.NO_BASELINE,
    Verdict.DROPPED,
)

MINOR = frozenset(
    {"completion_unknown", "no_baseline", "collected_only", "superseded", "se_recomputed", "statistical_verdict"}
    | {
        "units_converted",
        "header_unit_wrong",
        "unit_unverified",
        "flaky_baseline",
        "no_gate",
        "no_metric",
        "advisory_only",
    }
    | {"paired", "paired_runs", "unpaired_side", "unpaired_questions"}
    | {"gate", "eval_size", "run_again", "single_run", "tail_noise", "recovered"}
)
"""Codes that change no decision: counted on a screen, told in the other forms."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """Things of one scope that could not be decided: how many by verdict, and what could have been seen of them."""

    scope: Scope
    counts: Counts
    rows: tuple[Finding, ...]
    """The least visible first, one of each config."""
    least: Finding | None
    most: Finding | None
    """The findings with the smallest and the largest detectable change; None where none is known."""


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of one verdict: how many evals and points, one row of each curve, and why; other reasons are counted."""

    verdict: Verdict
    reason: Caveat | None
    evals: int
    points: int
    names: tuple[Row, ...]
    further_reasons: int
    elsewhere: Caveat | None = None
    """Where the first of them did come, or in how many runs it did not."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A doubt of a code: one caveat, who has it, of how many a general one holds, and how many have other values."""

    caveat: Caveat
    names: Listed[Finding]
    total: int = 0
    others: int = 0

    @property
    def is_of_jobs(self) -> bool:
        return any(row.scope is Scope.EVAL for row in self.names.rows)


def moved(facts: Facts, lines: int, *, is_headed: bool = True) -> Listed[Moved]:
    """The rows of the table: evals that fell, what got worse at the largest scope that moved, what got better.

    A mixed curve is followed by its worst point. Where a config heads its rows (`is_headed`) it takes a line too.
    Evals and what got better take what the measurements that got worse leave, at least a quarter each.
    """
    gained = [entry for entry in facts.evals.rows if entry.finding.verdict in _BETTER]
    evals, slow, fast = (
        Listed(tuple(_opened(entries)), left_out)
        for entries, left_out in (
            (facts.accuracy.rows, facts.accuracy.left_out),
            (at_largest_scope(facts.worse.rows), facts.worse.left_out),
            ((*gained, *at_largest_scope(facts.better.rows)), facts.better.left_out),
        )
    )
    quarter = lines // 4
    size = _lines if is_headed else _rows
    least = [size(_fitting(part, rows, quarter, size)) for part, rows in ((evals, WORSE_ROWS), (fast, BETTER_ROWS))]
    second = _fitting(slow, WORSE_ROWS, lines - sum(least), size)
    first = _fitting(evals, WORSE_ROWS - min(len(second.rows), WORSE_ROWS // 2), lines - size(second) - least[1], size)
    second = second.first(WORSE_ROWS - len(first.rows))
    third = _fitting(fast, BETTER_ROWS, lines - size(first) - size(second), size)
    parts = (first, second, third)
    return Listed(tuple(e for part in parts for e in part.rows), sum(part.left_out for part in parts))


def _opened(entries: Iterable[Moved]) -> Iterable[Moved]:
    for entry in entries:
        yield entry
        if entry.finding.verdict is Verdict.MIXED:
            yield from _opened(entry.inside)


def _fitting(listed: Listed[Moved], rows: int, lines: int, size: Callable[[Listed[Moved]], int]) -> Listed[Moved]:
    """The first entries that fit; a mixed curve is never shown without its worst point."""
    fits = (n for n in range(min(rows, len(listed.rows)), 0, -1) if size(listed.first(n)) <= lines)
    return listed.first(next((n for n in fits if not _is_parted(listed.rows, n)), 0))


def _is_parted(rows: Sequence[Moved], number: int) -> bool:
    last = rows[number - 1]
    return last.finding.verdict is Verdict.MIXED and any(part in rows[number:] for part in last.inside[:1])


def _rows(listed: Listed[Moved]) -> int:
    return len(listed.rows)


def _lines(listed: Listed[Moved]) -> int:
    """Lines of entries: a row whose config is not that of the row above takes one more."""
    configs = [entry.finding.config for entry in listed.rows]
    return sum(1 + (place == 0 or config != configs[place - 1]) for place, config in enumerate(configs))


def unseen(facts: Facts) -> tuple[Unseen, ...]:
    """What could not be decided: curves, points where no curve was judged, and evals by job."""
    measured = [row for entry in facts.undecided.rows for row in entry.rows]
    evals = [row for entry in facts.evals.rows for row in entry.rows if row.verdict in _UNSEEN]
    scopes = (Scope.CURVE, Scope.POINT, Scope.EVAL)
    groups = [(scope, [row for row in (*measured, *evals) if row.scope is scope]) for scope in scopes]
    return tuple(_unseen(scope, found) for scope, found in groups if found)


def _unseen(scope: Scope, rows: Sequence[Finding]) -> Unseen:
    verdicts = {row.key: row.verdict for row in sorted(rows, key=lambda row: -RANK[row.verdict])}
    tally = Counter(verdicts.values())
    seen = sorted((row for row in rows if row.mde is not None), key=lambda row: -(row.mde or 0.0))
    names: dict[str, Finding] = {}
    for row in (*seen, *rows):
        names.setdefault(row.config or row.key, row)
    ends = (seen[-1], seen[0]) if seen else (None, None)
    counts = tuple((verdict, tally[verdict]) for verdict in _UNSEEN if tally[verdict])
    return Unseen(scope, counts, tuple(names.values()), *ends)


def states(facts: Facts) -> tuple[Group, ...]:
    """What is missing, failed, not comparable or new, by verdict."""
    alone: list[tuple[Row, Caveat | None]] = [
        (row, row.reason)
        for listed in (facts.absent, facts.not_comparable, facts.new, facts.dropped)
        for row in listed.rows
    ]
    findings = [row for entry in (*facts.accuracy.rows, *facts.evals.rows) for row in entry.rows]
    judged = [row for row in findings if row.scope is Scope.EVAL and row.verdict in _STATES and not misses_gate(row)]
    alone += [(row, next((c for c in row.caveats if c.code == row.verdict.value), None)) for row in judged]
    groups: dict[Verdict, dict[str, tuple[Row, Caveat | None]]] = {}
    for row, reason in alone:
        groups.setdefault(row.verdict, {}).setdefault(row.key, (row, reason))
    ordered = sorted(groups, key=RANK.__getitem__)
    return tuple(_group(verdict, tuple(groups[verdict].values())) for verdict in ordered)


def _group(verdict: Verdict, rows: Sequence[tuple[Row, Caveat | None]]) -> Group:
    evals = sum(row.task is not None for row, _ in rows)
    reasons = Counter(reason.code for _, reason in rows if reason)
    first = reasons.most_common(1)[0][0] if reasons else None
    chosen = [(row, reason) for row, reason in rows if reason is None or reason.code == first]
    names: dict[str, list[Row]] = {}
    for row, _ in [*chosen, *rows]:
        names.setdefault(_curve(row), []).append(row)
    shown = tuple(
        found[0] if len({row.key for row in found}) == 1 else _without_conc(found[0]) for found in names.values()
    )
    reason = next((reason for _, reason in chosen if reason), None)
    doubts = (doubt for row, _ in chosen for doubt in row.caveats if doubt.code in ELSEWHERE)
    return Group(verdict, reason, evals, len(rows) - evals, shown, max(0, len(reasons) - 1), next(doubts, None))


def _curve(row: Row) -> str:
    return str(replace(row.series, conc=None)) if row.series is not None else row.key


def _without_conc(row: Row) -> Row:
    return replace(row, series=replace(row.series, conc=None)) if row.series is not None else row


def doubts(facts: Facts) -> tuple[tuple[Doubt, ...], int]:
    """The doubts that matter to a decision, each code once, and how many further codes there are."""
    found: dict[str, Doubt] = {}
    for caveat in facts.caveats:
        _hold(found, Doubt(caveat, Listed()))
    for doubt in _of_evals(row for entry in facts.accuracy.rows for row in entry.rows):
        _hold(found, doubt)
    for note in facts.doubts.rows:
        total = note.total if note.is_general else 0
        first = tuple(row for row in note.rows[:1] if isinstance(row, Finding))
        _hold(found, Doubt(note.caveat, Listed(first, note.number - len(first)), total))
    named = [doubt for code, doubt in found.items() if code not in MINOR]
    return tuple(named[:DOUBTS]), len(found) - len(named[:DOUBTS])


def _hold(found: dict[str, Doubt], doubt: Doubt) -> None:
    """Add a doubt to the one of its code: names are put together only where the values are equal."""
    held = found.setdefault(doubt.caveat.code, doubt)
    if held is doubt or (doubt.names and not held.names):
        return
    if held.caveat != doubt.caveat:
        found[doubt.caveat.code] = replace(held, others=held.others + doubt.others + max(1, doubt.names.total))
        return
    names = Listed(held.names.rows, held.names.left_out + doubt.names.total)
    found[doubt.caveat.code] = replace(held, names=names, total=max(held.total, doubt.total))


def _of_evals(rows: Iterable[Finding]) -> Iterable[Doubt]:
    """One doubt per code: that of the lowest score, the jobs that share its values, and how many further jobs."""
    found: dict[str, list[tuple[Caveat, Finding]]] = {}
    for row in rows:
        for caveat in row.caveats:
            found.setdefault(caveat.code, []).append((caveat, row))
    for pairs in found.values():
        lowest = min((caveat for caveat, _ in pairs), key=_score)
        names = tuple({row.key: row for caveat, row in reversed(pairs) if caveat == lowest}.values())[::-1]
        jobs = {row.key for _, row in pairs if row.scope is Scope.EVAL}
        yield Doubt(lowest, Listed(names[:1], len(names) - 1), others=len(jobs - {row.key for row in names}))


def _score(caveat: Caveat) -> float:
    score = dict(caveat.values).get("score")
    return float(score) if isinstance(score, int | float) and math.isfinite(score) else math.inf


@dataclass(frozen=True, slots=True)
class Images:
    """The pairs that changed, and how many pairs are the same or of unknown sameness."""

    changed: Listed[ImageChange]
    unknown: int
    same: int


def images(facts: Facts) -> Images:
    """Images that changed by themselves, the others as numbers."""
    kinds = {kind: tuple(p for p in facts.images.rows if p.sameness is kind) for kind in Sameness}
    changed = Listed(kinds[Sameness.CHANGED]).first(IMAGES)
    return Images(changed, len(kinds[Sameness.UNKNOWN]), len(kinds[Sameness.SAME]))
