"""What arrived beside what was promised: each expected point is there, failed or missing; the rest was dropped.

Three words for three things. A point *failed* when the job that should have measured it did; it is *missing* when no
row came although its job passed, or when no job is known; it was *dropped* when the baseline has it and the run's
config does not ask for it: no loss, and no alarm. How the run itself ended decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from reports.facts import run_url
from store import images, titles
from store.duck import Store
from store.identity import config_key, curve_key, curve_of, series_key
from store.plan import matching
from store.records import (
    Caveat,
    Coverage,
    Expected,
    JobRun,
    LaneCount,
    Layout,
    Role,
    Run,
    RunKey,
    Score,
    Series,
    Unmatched,
    Verdict,
)
from tracker.judge.results import eval_key
from tracker.sides import LEVEL_METRIC, Side

FAILING = frozenset({"failure", "timed_out", "cancelled", "startup_failure"})
"""Conclusions of a job that gave up on its points."""

RUNS_ASKED = 60
"""Newest runs of the store that are asked whether they, too, promised a point that nobody measured."""

_ABSENCES = frozenset({"missing_point", "missing_curve", "missing_eval"})
"""Reasons of rows that the baseline has and the candidate has not."""

_CONFIG_FILE = re.compile(r"(?:^|[/!])configs/[^/]+\.ya?ml$", re.IGNORECASE)

_Eval: TypeAlias = tuple[str, str, str, str, str, Layout, int | None, str]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the candidate promised, by key, and which job stands for each point and eval."""

    points: Mapping[str, Expected]
    evals: Mapping[str, Expected]
    jobs: Mapping[Expected, JobRun]
    adds_only: bool
    """True where an entry asked for new points of a curve alone: what the curve had before was not asked for."""

    is_whole: bool = True
    """False where a config could not be read or a key has none: then what is outside may have been promised too."""

    @property
    def is_known(self) -> bool:
        return bool(self.points or self.evals or self.adds_only)

    def absent(self, side: Side) -> Iterator[tuple[str, Expected]]:
        """The points and evals, by their key, of which the candidate holds nothing, valid or not."""
        return self.absent_of(set(side.points["series"]), side.scores)

    def absent_of(self, measured: Collection[str], scores: Iterable[Score]) -> Iterator[tuple[str, Expected]]:
        """The same of the keys of measured points and the scores that came."""
        yield from ((key, one) for key, one in self.points.items() if key not in measured)
        came = {_place(score.series, score.task): score for score in scores}
        yield from ((key, one) for key, one in self.evals.items() if not _came(one, came))


def asked(side: Side) -> Asked:
    """What the candidate's configs, changelog and labels promised."""
    adds_only = any(entry.append_only for entry in side.entries)
    return replace(promised(side.expected, side.job_runs), adds_only=adds_only, is_whole=_is_whole(side))


def promised(expected: Sequence[Expected], jobs: Sequence[JobRun]) -> Asked:
    """What was expected, each point and eval once, and the jobs that stand for them."""
    points = {series_key(one.series): one for one in reversed(expected) if one.task is None}
    evals = {eval_key(one.series, one.task): one for one in reversed(expected) if one.task is not None}
    return Asked(
        points=MappingProxyType(dict(reversed(points.items()))),
        evals=MappingProxyType(dict(reversed(evals.items()))),
        jobs=titles.attribute(jobs, (*points.values(), *evals.values())),
        adds_only=False,
    )


def _is_whole(side: Side) -> bool:
    """Every master config was read, and every key of the changelog has promised something."""
    if any(_CONFIG_FILE.search(flaw.place.file) for flaw in side.rejected):
        return False
    keys = {one.key for one in side.expected}
    asked_for = (key for entry in side.entries if not entry.append_only for key in entry.config_keys)
    return all(matching(key, keys) for key in asked_for)


def _place(series: Series, task: str) -> _Eval:
    """An eval as every shape of its rows tells it: without lengths, offloading, pipeline and context parallelism."""
    shape = series.layout
    plain = Layout(_plain(shape.prefill), _plain(shape.decode) if shape.decode else None, shape.multinode)
    return series.model, series.gpu, series.framework, series.precision, series.spec, plain, series.conc, task


def _plain(role: Role) -> Role:
    return replace(role, pp=1, dcp=1, pcp=1, hardware=None)


def _came(one: Expected, scores: Mapping[_Eval, Score]) -> bool:
    score = scores.get(_place(one.series, one.task or ""))
    return score is not None and _lengths_fit(one.series, score.series)


def _lengths_fit(one: Series, other: Series) -> bool:
    return None in (one.isl, other.isl) or (one.isl, one.osl) == (other.isl, other.osl)


# --- rows ---------------------------------------------------------------------------------------------------------


def settled(wanted: Asked, side: Side, apart: Iterable[Unmatched], past: Store | None) -> tuple[Unmatched, ...]:
    """The rows that stand apart, with every promised point or eval that did not come under its own word.

    What the baseline alone has is failed, missing or dropped; what nobody has measured yet is added.
    """
    absent = dict(wanted.absent(side))
    flakes = _Flakes.of(absent.values(), side, past)
    rows = []
    for row in apart:
        key = row.key if row.key in absent else _eval_of(row, absent)
        if not _is_absence(row):
            rows.append(row)
        elif key is not None:
            rows.append(_named(absent.pop(key), wanted, flakes, row))
        else:
            rows.append(_dropped(row, wanted, side.runs) if wanted.is_known and wanted.is_whole else row)
    return (*rows, *(_named(one, wanted, flakes, _unseen(key, one)) for key, one in absent.items()))


def _unseen(key: str, one: Expected) -> Unmatched:
    """The row of what stands on neither side."""
    return Unmatched(key, "plan", Verdict.MISSING, Caveat.of("promised"), task=one.task)


def _is_absence(row: Unmatched) -> bool:
    return row.side == "baseline" and row.verdict is Verdict.MISSING and row.reason.code in _ABSENCES


def _eval_of(row: Unmatched, absent: Mapping[str, Expected]) -> str | None:
    """The promised eval that a baseline's row is of, whose shape may have said less."""
    if row.task is None or row.series is None:
        return None
    place = _place(row.series, row.task)
    same = (key for key, one in absent.items() if one.task is not None and _place(one.series, one.task) == place)
    return next((key for key in same if _lengths_fit(absent[key].series, row.series)), None)


def _named(one: Expected, wanted: Asked, flakes: _Flakes, row: Unmatched) -> Unmatched:
    verdict, reason = _outcome(wanted.jobs.get(one))
    return replace(
        row,
        verdict=verdict,
        reason=reason,
        series=row.series or one.series,
        config=row.config or config_key(one.series),
        image=one.image,
        caveats=(*row.caveats, *flakes.caveats(one)),
    )


def _outcome(job: JobRun | None) -> tuple[Verdict, Caveat]:
    """The word for a point that did not come, and what its job says of it."""
    if job is None:
        return Verdict.MISSING, Caveat.of("promised")
    said = {"job": job.name, "url": job.url}
    if job.conclusion in FAILING:
        return Verdict.FAILED, Caveat.of("job_failed", conclusion=job.conclusion, **said)
    code = {"success": "job_passed", "skipped": "job_skipped"}.get(job.conclusion or "", "job_open")
    return Verdict.MISSING, Caveat.of(code, **said)


def _dropped(row: Unmatched, wanted: Asked, runs: Sequence[Run]) -> Unmatched:
    labels = sorted({label for run in runs for label in run.labels if label in _NARROWING})
    if wanted.adds_only:
        reason = Caveat.of("only_added")
    elif labels:
        reason = Caveat.of("label_leaves_out", labels=", ".join(labels))
    else:
        reason = Caveat.of("not_asked_for")
    return replace(row, verdict=Verdict.DROPPED, reason=reason)


_NARROWING = frozenset({"sweep-enabled", "evals-only", "all-evals"})
"""Labels that leave a part of a sweep out."""


# --- the same elsewhere -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Flakes:
    """Where the same point with the same image did come, and in how many runs that promised it it did not."""

    passed: Mapping[Expected, Run]
    failed: Mapping[Expected, int]

    @classmethod
    def of(cls, absent: Collection[Expected], side: Side, past: Store | None) -> _Flakes:
        if past is None or not absent:
            return cls({}, {})
        own = {run.id for run in side.runs}
        passed = {**_measured(absent, own, past), **_scored(absent, own, past)}
        return cls(passed, _promised_in_vain([one for one in absent if one not in passed], own, past))

    def caveats(self, one: Expected) -> tuple[Caveat, ...]:
        run = self.passed.get(one)
        if run is not None:
            return (Caveat.of("passed_elsewhere", run=str(run.key), url=run_url(run)),)
        number = self.failed.get(one, 0)
        return (Caveat.of("failed_everywhere", runs=number),) if number else ()


def _measured(absent: Iterable[Expected], own: Collection[int], past: Store) -> dict[Expected, Run]:
    """The newest other run that measured each point with the same image."""
    points = {series_key(one.series): one for one in absent if one.task is None and one.image}
    curves = sorted({curve_key(curve_of(one.series)) for one in points.values()})
    rows = past.history(curves, (LEVEL_METRIC,), without=own) if curves else None
    found: dict[Expected, str] = {}
    for key, image, run in rows.select("series", "image", "run").iter_rows() if rows is not None else ():
        one = points.get(key)
        if one is not None and _same_image(image, one.image):
            found[one] = run
    return _runs(found, past)


def _scored(absent: Iterable[Expected], own: Collection[int], past: Store) -> dict[Expected, Run]:
    """The same of evals. Their rows seldom name an image: then it is the one that their run measured of the config."""
    evals = [one for one in absent if one.task is not None and one.image]
    shapes = {key: one for one in evals for key in (series_key(one.series), _unsaid(one.series))}
    found: dict[Expected, str] = {}
    for score in past.score_history(list(shapes), runs=(), without=own) if shapes else ():
        one = shapes.get(series_key(score.series))
        if one is not None and score.task == one.task and _same_image(score.image or _image_of(score, past), one.image):
            found[one] = str(score.run)
    return _runs(found, past)


def _image_of(score: Score, past: Store) -> str | None:
    rows = past.points(score.run, ())
    measured = set(rows.filter(rows["config"] == config_key(score.series))["image"])
    return measured.pop() if len(measured) == 1 else None


def _unsaid(series: Series) -> str:
    """The key of a score whose shape did not tell the lengths."""
    return series_key(replace(series, isl=None, osl=None, scenario="single_turn", offload=False))


def _same_image(image: str | None, wanted: str | None) -> bool:
    if image is None or wanted is None:
        return False
    return images.canonical(image) == wanted or images.compare(image, wanted) is images.Sameness.SAME


def _runs(found: Mapping[Expected, str], past: Store) -> dict[Expected, Run]:
    keys = {text: RunKey(*map(int, text.split("/"))) for text in set(found.values())}
    runs = {text: past.run(key) for text, key in keys.items()}
    return {one: run for one, text in found.items() if (run := runs[text]) is not None}


def _promised_in_vain(absent: Collection[Expected], own: Collection[int], past: Store) -> dict[Expected, int]:
    """How many other runs promised the point with the same image: none of them measured it."""
    found: dict[Expected, int] = {}
    if not absent:
        return found
    ids = [number for number in past.runs()["id"].unique(maintain_order=True) if number not in own][:RUNS_ASKED]
    for promised in (set(past.expected(number)) for number in ids):
        for one in absent:
            found[one] = found.get(one, 0) + (one in promised)
    return found


# --- the whole ----------------------------------------------------------------------------------------------------


def coverage(wanted: Asked, side: Side, rows: Iterable[Unmatched]) -> Coverage | None:
    """The counts, `rows` being the settled ones; None where neither a plan nor a job is known."""
    if not wanted.is_known and not side.job_runs:
        return None
    absent = dict(wanted.absent(side))
    lost = {key: _outcome(wanted.jobs.get(one))[0] for key, one in absent.items()}
    points = [verdict for key, verdict in lost.items() if key in wanted.points]
    evals = [verdict for key, verdict in lost.items() if key in wanted.evals]
    jobs, eval_jobs = lanes(side.job_runs)
    return Coverage(
        expected=len(wanted.points),
        arrived=len(wanted.points) - len(points),
        failed=points.count(Verdict.FAILED),
        missing=points.count(Verdict.MISSING),
        dropped=len({row.key for row in rows if row.verdict is Verdict.DROPPED and row.task is None}),
        evals_expected=len(wanted.evals),
        evals_arrived=len(wanted.evals) - len(evals),
        evals_failed=evals.count(Verdict.FAILED),
        evals_missing=evals.count(Verdict.MISSING),
        conclusion=side.newest.conclusion,
        cut=sum(job.conclusion == "cancelled" for job in last_of(side.job_runs)),
        jobs=jobs,
        eval_jobs=eval_jobs,
    )


def last_of(jobs: Iterable[JobRun]) -> list[JobRun]:
    """Each job once, by the attempt that counts."""
    named: dict[str, list[JobRun]] = {}
    for job in jobs:
        named.setdefault(job.name, []).append(job)
    return [job for same in named.values() for job in titles.counting(same)]


def lanes(jobs: Sequence[JobRun]) -> tuple[LaneCount | None, LaneCount | None]:
    """Jobs of throughput and of evals. A skipped job applies to nothing, and has passed nothing."""
    ran = [(titles.parse(job.name), job) for job in last_of(jobs) if job.conclusion != "skipped"]
    sweep = [job for title, job in ran if title is not None and title.is_throughput]
    evals = [job for title, job in ran if title is not None and title.is_eval]
    return (_count(sweep), _count(evals)) if jobs else (None, None)


def _count(jobs: Sequence[JobRun]) -> LaneCount:
    return LaneCount(sum(job.conclusion == "success" for job in jobs), len(jobs))
