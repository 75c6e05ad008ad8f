"""The evidence sentences of a code owner's sign-off: generated from the records, never guessed, English only.

A machine looks for exact English words in a sign-off, so these sentences are in no catalog.
"""

from __future__ import annotations

from reports import doubts, frontwords, numbers
from reports.facts import FAILED_GATE, Facts, no_difference, not_same, number_of
from reports.language import Phrase, Value, listing, phrase
from reports.phrases import image_change, kind, measured, published, run_name, started, task_name
from store.records import Finding, LaneCount, Run, Scope, Verdict

_NOT_MEASURED = (Verdict.MISSING, Verdict.FAILED, Verdict.INVALID)
_PREFERRED = ("em_strict", "score", "em_flexible")
"""The stricter way of reading an answer is the one that a sign-off quotes."""
_MATCH = {"em_strict": "strict match", "em_flexible": "flexible match"}


def evidence(facts: Facts) -> list[Phrase]:
    """Run, jobs, points, eval range against threshold, image and caveats, each only as far as the data go."""
    return [
        *(_run(facts, run) for run in facts.candidate.rows if run.id > 0),
        *_jobs(facts),
        *_ranges(facts),
        *_images(facts),
        *_baseline(facts),
        *_frontiers(facts),
        *_differences(facts),
    ]


def _origin(facts: Facts, run: Run) -> dict[str, Value]:
    """What kind of run it was, and its dates: of measuring, of the run, of publication."""
    told = facts.provenance_of(run)
    return {
        "kind": kind(told.kind),
        "measured": measured(told),
        "started": started(run),
        "published": "with the run" if published(run) == numbers.NOTHING else published(run),
    }


def _run(facts: Facts, run: Run) -> Phrase:
    """What the run measured: of the points that its config promised, where that is known, else of all that are told."""
    total = facts.total_points - number_of(facts.points, Verdict.DROPPED)
    came = total - number_of(facts.points, *_NOT_MEASURED)
    what = facts.coverage
    if what and what.expected and facts.candidate.total == 1:
        total, came = what.expected, what.arrived
    return phrase(
        "Run Sweep %(id)s (attempt %(attempt)s, head %(head)s, conclusion %(conclusion)s) measured"
        " %(points)s of %(total)s points (%(kind)s; measured %(measured)s, run %(started)s, published %(published)s).",
        **_origin(facts, run),
        id=str(run.id),
        attempt=str(run.attempt),
        head=run.head_sha or "unknown",
        conclusion=run.conclusion or "unknown",
        points=numbers.count(came),
        total=numbers.count(total),
    )


def _jobs(facts: Facts) -> list[Phrase]:
    """Jobs that passed, by lane where the jobs themselves are known."""
    what = facts.coverage
    return (lanes(what.jobs, what.eval_jobs) if what else []) or _by_hardware(facts)


def lanes(jobs: LaneCount | None, eval_jobs: LaneCount | None) -> list[Phrase]:
    """Jobs that passed; a skipped one has passed nothing, and a lane without jobs is not named."""
    known = [_lane(name, one) for name, one in (("throughput", jobs), ("eval", eval_jobs)) if one and one.applicable]
    if len(known) > 1:
        return [phrase("It passed %(first)s and %(second)s.", first=known[0], second=known[1])]
    return [phrase("It passed %(first)s.", first=known[0])] if known else []


def _lane(name: str, count: LaneCount) -> Phrase:
    said = {"total": numbers.count(count.applicable), "lane": name}
    if count.passed == count.applicable:
        return phrase("all %(total)s applicable %(lane)s jobs", **said)
    return phrase("%(passed)s of %(total)s applicable %(lane)s jobs", passed=numbers.count(count.passed), **said)


def _by_hardware(facts: Facts) -> list[Phrase]:
    """The run's own statistics; hardware without jobs proves nothing and is not named."""
    parts: list[Value] = [
        phrase(
            "%(hardware)s %(passed)s of %(total)s",
            hardware=job.hardware,
            passed=numbers.count(job.succeeded),
            total=numbers.count(job.total),
        )
        for job in facts.jobs
        if job.total
    ]
    return [phrase("Jobs passed: %(jobs)s.", jobs=listing(parts))] if parts else []


def _ranges(facts: Facts) -> list[Phrase]:
    """One sentence for each task and threshold."""
    rows = [row for entry in (*facts.accuracy.rows, *facts.evals.rows) for row in entry.rows]
    jobs = [row for row in rows if row.scope is Scope.EVAL and row.candidate is not None]
    groups: dict[tuple[str, float | None], list[Finding]] = {}
    for finding in jobs:
        groups.setdefault((finding.task or "", _threshold(finding)), []).append(finding)
    order = sorted(groups, key=lambda key: (key[0], key[1] is None, key[1] or 0.0))
    return [_range(groups[key], key[1]) for key in order]


def _range(jobs: list[Finding], mark: float | None) -> Phrase:
    """Lowest and highest score of one task, and how many miss its threshold."""
    metric = next(name for name in (*_PREFERRED, jobs[0].metric) if any(f.metric == name for f in jobs))
    chosen = [f for f in jobs if f.metric == metric]
    scores = sorted(f.candidate for f in chosen if f.candidate is not None)
    said = {
        "task": task_name(chosen[0].task),
        "match": _MATCH.get(metric, metric),
        "number": numbers.count(len(chosen)),
        "low": numbers.score(scores[0], mark),
        "high": numbers.score(scores[-1], mark),
    }
    if mark is None:
        return phrase(
            "%(task)s scores (%(match)s) of %(number)s eval jobs without a threshold ranged from %(low)s to %(high)s.",
            **said,
        )
    below = sum(any(caveat.code == FAILED_GATE for caveat in f.caveats) for f in chosen)
    return phrase(
        "%(task)s scores (%(match)s) of %(number)s eval jobs ranged from %(low)s to %(high)s against the %(mark)s"
        " threshold; below it: %(below)s.",
        **said,
        mark=numbers.score(mark),
        below=numbers.count(below),
    )


def _threshold(finding: Finding) -> float | None:
    """The pass mark that the gate applied to a job."""
    marks = [dict(caveat.values).get("threshold") for caveat in finding.caveats if caveat.code == "gate"]
    return next((float(mark) for mark in marks if isinstance(mark, int | float)), None)


def _images(facts: Facts) -> list[Phrase]:
    """Every image of the candidate, whole: a sign-off quotes it exactly."""
    names: list[Value] = [*sorted({pair.after for pair in facts.images.rows if pair.after})]
    return [phrase("Using %(images)s.", images=listing(names))] if names else []


BASELINE_RUNS = 3
"""Baseline runs that are named; the others are counted."""


def _baseline(facts: Facts) -> list[Phrase]:
    """What the candidate was compared with."""
    named: list[Value] = [
        phrase(
            "run %(run)s (%(kind)s; measured %(measured)s, run %(started)s, published %(published)s)",
            run=run_name(run),
            **_origin(facts, run),
        )
        for run in facts.baseline.rows[:BASELINE_RUNS]
    ]
    if not named:
        return []
    more = facts.baseline.total - len(named)
    images: list[Value] = [*sorted({pair.before for pair in facts.images.rows if pair.before})]
    said = {"against": facts.against, "runs": listing(named)}
    return [
        phrase("Compared with (%(against)s): %(runs)s.", **said),
        *([phrase("Further baseline runs: %(number)s.", number=numbers.count(more))] if more else []),
        *([phrase("Baseline images: %(images)s.", images=listing(images))] if images else []),
    ]


FRONTIERS = 4
"""Groups with other layouts that are told; the others are counted."""


def _frontiers(facts: Facts) -> list[Phrase]:
    """What groups with other layouts reach at equal interactivity and at most, and what became of the layouts."""
    rows = facts.frontiers.rows[:FRONTIERS]
    more = facts.frontiers.total - len(rows)
    return [
        *(said for one in rows for said in (*frontwords.sentences_of(one), frontwords.counted(one))),
        *([phrase("Further groups with other layouts: %(number)s.", number=numbers.count(more))] if more else []),
    ]


def _differences(facts: Facts) -> list[Phrase]:
    """What differs between the sides, then the doubts that are no difference."""
    return [
        *(image_change(pair) for pair in not_same(facts.images).rows),
        *(doubts.note(what) for what in facts.differs.rows),
        *(doubts.sentence(caveat) for caveat in no_difference(facts.caveats)),
    ]
