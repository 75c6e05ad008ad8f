"""Rows about the run: it passed on a commit of the pull request, its evals pass, everything promised came."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from store import images
from store.checks import Check, Proof, Range, State, Statement
from store.identity import config_key, sequence_text
from store.records import Expected, JobRun, LaneCount, Score, Value
from store.thresholds import SHIPPED
from tracker.evidence.inputs import Inputs, Rows, Sweep, not_applicable, not_known, run_link

SHOWN = 6
"""Jobs, scores and points that are named; the others are counted."""


def sweep(inputs: Inputs) -> Check:
    """1: throughput and eval jobs were executed and all passed, on a commit that is in the pull request now."""
    one = inputs.sweep
    if one is None:
        return _no_run(inputs)
    proof = (*_place(inputs, one), *_lane("jobs", one.measuring, one), *_evals_of(inputs, one), *_others(inputs, one))
    return Check(1, "sweep", _state(inputs, one), proof)


def _no_run(inputs: Inputs) -> Check:
    unknown = inputs.unknown("runs") or inputs.unknown("commits")
    if unknown:
        return not_known(1, "sweep", unknown)
    return Check(1, "sweep", State.DOES_NOT_HOLD, (Proof.of("no_run", commits=len(inputs.commits or ())),))


def _state(inputs: Inputs, one: Sweep) -> State:
    if one.in_pull is False or not one.measuring:
        return State.DOES_NOT_HOLD
    if any(job.conclusion is None for job in (*one.measuring, *one.evaluating)):
        return State.NOT_KNOWN
    if not one.is_green or _needs_evals(inputs, one) is True:
        return State.DOES_NOT_HOLD
    return State.HOLDS if one.in_pull and _needs_evals(inputs, one) is False else State.NOT_KNOWN


def _needs_evals(inputs: Inputs, one: Sweep) -> bool | None:
    """Whether an eval is lacking: True where none ran although one is due; None where that is not known."""
    if one.evaluating:
        return False
    rows = inputs.rows
    if rows is None or not rows.promised.points:
        return None
    return bool(rows.promised.evals)


def _place(inputs: Inputs, one: Sweep) -> tuple[Proof, ...]:
    sha = one.run.head_sha or ""
    said, link = {"run": str(one.run.id), "commit": sha[:12]}, run_link(one)
    if one.in_pull is None:
        return (Proof.of("commit_unknown", link, **said), *_known(inputs.unknown("commits")))
    if not one.in_pull:
        return (Proof.of("commit_gone", link, **said),)
    if sha == inputs.pull.head:
        return (Proof.of("exact_head", link, **said),)
    signoff = inputs.signoff
    called = [Proof.of("called_exact", signoff.url)] if signoff and _EXACT.search(signoff.body) else []
    return (Proof.of("commit_in_pull", link, **said, head=inputs.pull.head[:12], count=one.commits_since), *called)


_EXACT = re.compile(r"\bexact[- ]head\b", re.IGNORECASE)


def _lane(name: str, jobs: tuple[JobRun, ...], one: Sweep) -> tuple[Proof, ...]:
    """Passed and executed jobs of a lane, and the ones that did not pass by name."""
    skipped = sum(job.conclusion == "skipped" for job in one.jobs)
    if not jobs:
        return (Proof.of(f"no_{name}", run_link(one), skipped=skipped),)
    bad = [job for job in jobs if job.conclusion != "success"]
    counted = Proof.of(f"{name}_passed", run_link(one), passed=len(jobs) - len(bad), total=len(jobs))
    named = (
        Proof.of("job_not_passed", job.url or "", job=job.name, conclusion=job.conclusion or job.status or "unknown")
        for job in bad[:SHOWN]
    )
    return (counted, *named, *_more(len(bad)))


def _evals_of(inputs: Inputs, one: Sweep) -> tuple[Proof, ...]:
    if not one.evaluating and _needs_evals(inputs, one) is False:
        return (Proof.of("no_evals_due", run_link(one)),)
    return _lane("evals", one.evaluating, one)


def _others(inputs: Inputs, one: Sweep) -> tuple[Proof, ...]:
    """Runs that are named and were not taken."""
    named = (other for other in inputs.named if other.run.id != one.run.id)
    return tuple(
        Proof.of("named_not_taken" if other.in_pull else "named_gone", run_link(other), run=str(other.run.id))
        for other in named
    )


def _known(*proof: Proof | None) -> tuple[Proof, ...]:
    return tuple(one for one in proof if one)


def _more(count: int) -> tuple[Proof, ...]:
    return (Proof.of("more", count=count - SHOWN),) if count > SHOWN else ()


# --- evals --------------------------------------------------------------------------------------------------------


def evals(inputs: Inputs) -> Check:
    """2: every promised eval has a finite score at or above its pass mark, measured with the image of the config."""
    rows, one = inputs.rows, inputs.sweep
    if one is None or rows is None:
        return not_known(2, "evals", inputs.unknown("rows") or inputs.unknown("runs") or Proof.of("no_rows"))
    if not rows.scores:
        return _no_scores(rows, one)
    bad = [proof for score in rows.scores.values() for proof in _flaws(inputs, score)]
    absent = _absent(rows)
    ranges = ranges_of(inputs)
    few = not rows.promised.evals and len(rows.scores) < len(one.evaluating)
    unmarked = sorted({score.task for score in rows.scores.values() if _mark(inputs, score) is None})
    state, image = _images(inputs, rows)
    states = [
        State.DOES_NOT_HOLD if bad or absent else State.HOLDS,
        State.NOT_KNOWN if unmarked or few or inputs.unknown("thresholds") else State.HOLDS,
        state,
    ]
    proof = (
        *(_range(one, found) for found in ranges),
        *bad[:SHOWN],
        *_more(len(bad)),
        *([Proof.of("evals_absent", run_link(one), count=absent)] if absent else []),
        *([Proof.of("few_scores", run_link(one), scores=len(rows.scores), jobs=len(one.evaluating))] if few else []),
        *(Proof.of("no_mark", task=task) for task in unmarked),
        *_known(inputs.unknown("thresholds")),
        *image,
    )
    order = (State.DOES_NOT_HOLD, State.NOT_KNOWN, State.HOLDS)
    return Check(2, "evals", next(state for state in order if state in states), proof)


def _no_scores(rows: Rows, one: Sweep) -> Check:
    if rows.expired:
        return not_known(2, "evals", Proof.of("results_expired", run_link(one), count=rows.expired))
    if rows.promised.points and not rows.promised.evals:
        return not_applicable(2, "evals", Proof.of("no_evals_due", run_link(one)))
    return Check(2, "evals", State.DOES_NOT_HOLD, (Proof.of("no_scores", run_link(one)),))


def _absent(rows: Rows) -> int:
    missing = rows.promised.absent_of(set(rows.points), rows.scores.values())
    return sum(one.task is not None for _, one in missing)


def _values(score: Score) -> tuple[float, ...]:
    """Every accuracy that a row tells: the gate holds all of them to one mark."""
    told = (score.strict, score.flexible) if score.strict is not None or score.flexible is not None else (score.score,)
    return tuple(value for value in told if value is not None)


def _mark(inputs: Inputs, score: Score) -> float | None:
    found = (inputs.thresholds or SHIPPED).of(score.series.model, score.task)
    return found.value if found else None


def _flaws(inputs: Inputs, score: Score) -> Iterable[Proof]:
    values, mark = _values(score), _mark(inputs, score)
    where: dict[str, Value] = {"task": score.task, "config": config_key(score.series), "conc": score.series.conc}
    if score.invalid or not values or not all(map(math.isfinite, values)):
        yield Proof.of("score_invalid", **where)
    elif mark is not None and min(values) < mark:
        yield Proof.of("score_below", **where, score=min(values), mark=mark)


def ranges_of(inputs: Inputs) -> tuple[Range, ...]:
    """Lowest and highest score by task and mark; the stricter reading of an answer is the one that is quoted."""
    groups: dict[tuple[str, float], list[float]] = {}
    for score in inputs.rows.scores.values() if inputs.rows else ():
        value = next((one for one in (score.strict, score.score, score.flexible) if one is not None), None)
        mark = _mark(inputs, score)
        if value is not None and mark is not None and math.isfinite(value):
            groups.setdefault((score.task, mark), []).append(value)
    return tuple(Range(task, len(some), min(some), max(some), mark) for (task, mark), some in sorted(groups.items()))


def _range(one: Sweep, found: Range) -> Proof:
    said: dict[str, Value] = {
        "task": found.task,
        "count": found.count,
        "low": found.low,
        "high": found.high,
        "mark": found.mark,
    }
    return Proof.of("scores", run_link(one), **said)


def ran(rows: Rows) -> tuple[str, ...]:
    """The images that the rows of a run name."""
    told = [*(one.image for one in rows.points.values()), *(one.image for one in rows.scores.values())]
    return tuple(sorted({text for image in told if (text := images.canonical(image))}))


def _images(inputs: Inputs, rows: Rows) -> tuple[State, list[Proof]]:
    """Each image that ran is one of the configs at the head that were asked for."""
    names = ran(rows)
    if not names:
        return State.NOT_KNOWN, [Proof.of("image_untold")]
    wanted = {config.image for config in inputs.configs}
    if not wanted:
        return State.NOT_KNOWN, list(_known(inputs.unknown("configs"), Proof.of("config_untold")))
    strange = [name for name in names if not any(_is_same(name, image) for image in wanted)]
    if strange:
        listed = ", ".join(sorted(wanted))
        return State.DOES_NOT_HOLD, [Proof.of("image_differs", ran=name, config=listed) for name in strange[:SHOWN]]
    moving = [name for name in names if images.parse(name).moving]
    return State.HOLDS, [
        *(Proof.of("image_same", image=name) for name in names),
        *(Proof.of("image_moving", image=name) for name in moving),
    ]


def _is_same(one: str, other: str) -> bool:
    return images.canonical(one) == images.canonical(other) or images.compare(one, other) is images.Sameness.SAME


# --- what came ----------------------------------------------------------------------------------------------------


def points(inputs: Inputs) -> Check:
    """Every point that the configs of the run promised has arrived."""
    rows, one = inputs.rows, inputs.sweep
    if one is None or rows is None:
        return not_known(None, "points", inputs.unknown("rows") or Proof.of("no_rows"))
    wanted = rows.promised.points
    if not wanted:
        return not_known(None, "points", Proof.of("nothing_promised", run_link(one)))
    missing = [
        wanted[key] for key, found in rows.promised.absent_of(set(rows.points), rows.scores.values()) if not found.task
    ]
    counted = Proof.of("points_arrived", run_link(one), arrived=len(wanted) - len(missing), total=len(wanted))
    named = (_missing(found) for found in missing[:SHOWN])
    state = State.DOES_NOT_HOLD if missing else State.HOLDS
    if missing and rows.expired:
        expired = Proof.of("results_expired", run_link(one), count=rows.expired)
        return not_known(None, "points", counted, expired)
    return Check(None, "points", state, (counted, *named, *_more(len(missing))))


def _missing(found: Expected) -> Proof:
    said: dict[str, Value] = {"config": found.key, "conc": found.series.conc}
    return Proof.of("point_missing", **said, sequence=sequence_text(found.series))


def attempt(inputs: Inputs) -> Check:
    """The run passed in its first attempt; a further one measured a part of it again."""
    one = inputs.sweep
    if one is None:
        return not_known(None, "attempt", inputs.unknown("runs") or Proof.of("no_rows"))
    state = State.HOLDS if one.run.attempt == 1 else State.FLAGGED
    code = "first_attempt" if one.run.attempt == 1 else "further_attempt"
    return Check(None, "attempt", state, (Proof.of(code, run_link(one), attempt=one.run.attempt),))


# --- the sentence -------------------------------------------------------------------------------------------------


NEEDED = ("sweep", "evals")
"""Rows that must hold before anybody may write the sentence."""


def statement(inputs: Inputs, checks: Iterable[Check]) -> Statement | None:
    """What the evidence sentence says; None where one of the rows that it stands on does not hold."""
    states = {check.name: check.state for check in checks}
    one, rows = inputs.sweep, inputs.rows
    if one is None or rows is None or any(states.get(name) is not State.HOLDS for name in NEEDED):
        return None
    sha = one.run.head_sha or ""
    return Statement(
        run=one.run.key,
        commit=sha,
        exact=sha == inputs.pull.head,
        jobs=_count(one.measuring),
        eval_jobs=_count(one.evaluating),
        ranges=ranges_of(inputs),
        images=ran(rows),
    )


def _count(jobs: tuple[JobRun, ...]) -> LaneCount:
    return LaneCount(sum(job.conclusion == "success" for job in jobs), len(jobs))
