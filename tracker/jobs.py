"""The card's uses, a page of prose each: ingest what ran, compare it with its history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from store.duck import Info, Landed, Loaded, Store
from store.metrics import ADVISORY_METRICS, GATE_METRICS, POINT_METRICS
from store.readers import read
from store.records import Batch, Caveat, Comparison, Finding, Point, Run, RunKey, Score, Trouble, Unmatched
from store.runs import standing
from store.thresholds import Thresholds
from tracker import describe, sides
from tracker.judge.learn import learn
from tracker.judge.results import EvalRules
from tracker.judge.scores import judge_scores
from tracker.judge.sweep import judge_frames
from tracker.pairs import Baseline, parse_baseline
from tracker.settings import Settings
from tracker.sides import Side

JUDGED_METRICS = (*GATE_METRICS, *ADVISORY_METRICS)

LEARNED_CURVES = 400
LEARNED_RUNS = 60
"""The noise is learned from so many curves and the newest runs of each: every stratum, and a bound on the work."""

Watch = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Where:
    """The two places of a store: the database and the archive that it can be made again from."""

    store: Path
    archive: Path

    @classmethod
    def of(cls, store: Path, archive: Path | None) -> Where:
        """The archive stands beside the store unless it is named.

        >>> Where.of(Path("a/tracker.duckdb"), None).archive.as_posix()
        'a/tracker.archive'
        """
        return cls(store, archive or store.with_suffix(".archive"))


@dataclass(frozen=True, slots=True)
class Ingested:
    """What was found and what became of it, by reason where there is one."""

    runs: int
    points: int
    scores: int
    duplicates: int
    superseded: int
    rejections: Mapping[str, int]
    invalid: Mapping[str, int]
    unmapped: Mapping[str, int]
    unofficial: tuple[tuple[RunKey, str], ...]


@dataclass(frozen=True, slots=True)
class Landing:
    """How to land: `run` owns the rows that name none; `official` runs may be baselines whatever workflow made them."""

    run: Run | None = None
    official: bool = False
    dry_run: bool = False


def ingest(
    paths: Sequence[Path], where: Where, landing: Landing = Landing(), watch: Watch = lambda _: None
) -> Ingested:
    """Land everything that the paths hold, then learn the noise anew. A dry run only reads and counts."""
    tally = _Tally()
    batches = tally.watched((_declared(batch, landing) for batch in read(paths, landing.run)), watch)
    if landing.dry_run:
        landed = sum((_unlanded(batch) for batch in batches), Landed())
    else:
        with Store.open(where.store, where.archive, official=_is_official) as store:
            landed = store.land_many(batches)
            if not landed.already:
                _keep_learned(store)
    return tally.ingested(landed)


def _declared(batch: Batch, landing: Landing) -> Batch:
    return replace(batch, run=replace(batch.run, published=True)) if landing.official else batch


def _is_official(run: Run) -> bool:
    return standing(run).official


def _unlanded(batch: Batch) -> Landed:
    return Landed(len(batch.points), len(batch.scores), len(batch.rejections))


def _keep_learned(store: Store) -> None:
    """Learn the noise from the curves with the most runs; which ones does not depend on the order of landing."""
    longest = store.curves().sort(["runs", "curve"], descending=[True, False]).head(LEARNED_CURVES)
    scales = learn(store.history(longest["curve"].to_list(), JUDGED_METRICS, most=LEARNED_RUNS), Settings())
    store.put_note(sides.SCALES, sides.scales_as_json(scales))


class _Tally:
    """Counts what passes by on its way to the store, so that nothing has to be held."""

    def __init__(self) -> None:
        self.runs: set[RunKey] = set()
        self.duplicates = 0
        self.rejections: Counter[str] = Counter()
        self.invalid: Counter[str] = Counter()
        self.unmapped: Counter[str] = Counter()
        self.unofficial: dict[RunKey, str] = {}

    def watched(self, batches: Iterable[Batch], watch: Watch) -> Iterable[Batch]:
        for batch in batches:
            self._count(batch)
            watch(len(batch.points) + len(batch.scores))
            yield batch

    def _count(self, batch: Batch) -> None:
        self.runs.add(batch.run.key)
        self.duplicates += batch.duplicates
        self.rejections.update(f"{one.reason}: {one.field}" if one.field else one.reason for one in batch.rejections)
        rows: tuple[Point | Score, ...] = (*batch.points, *batch.scores)
        self.invalid.update(row.invalid.code for row in rows if row.invalid)
        self.unmapped.update(_spelling(doubt) for row in rows for doubt in row.caveats if doubt.code == "unmapped")
        reasons = standing(batch.run).reasons
        if reasons and (batch.points or batch.scores):
            said = (f"{name} {value}" for reason in reasons for name, value in reason.values)
            self.unofficial[batch.run.key] = ", ".join(said)

    def ingested(self, landed: Landed) -> Ingested:
        return Ingested(
            runs=len(self.runs),
            points=landed.points,
            scores=landed.scores,
            duplicates=self.duplicates + landed.duplicates,
            superseded=landed.superseded,
            rejections=self.rejections,
            invalid=self.invalid,
            unmapped=self.unmapped,
            unofficial=tuple(sorted(self.unofficial.items())),
        )


def store_info(where: Where) -> Info:
    """What the store holds and how large it is."""
    with _existing(where) as store:
        return store.info()


def export(where: Where, folder: Path, form: str) -> tuple[Path, Path]:
    """Write the points and scores that count as `points.FORM` and `scores.FORM`."""
    with _existing(where) as store:
        return store.export(folder, form)


def rebuild(where: Where) -> Loaded:
    """Make the database again from the archive; what was learned of the noise is learned again."""
    if not where.archive.is_dir():
        raise Trouble(f"there is no archive at {where.archive}: name it with --archive")
    loaded = Store.rebuild(where.store, where.archive, official=_is_official)
    with Store.open(where.store, where.archive, official=_is_official) as store:
        _keep_learned(store)
    return loaded


@contextmanager
def _existing(where: Where) -> Iterator[Store]:
    with sides.opened(where.store, where.archive) as store:
        if store is None:
            raise Trouble(f"there is no store at {where.store}: land a sweep first with `tracker ingest PATH`")
        yield store


@dataclass(frozen=True, slots=True)
class Question:
    """What to judge (`latest`, `run:ID[/ATTEMPT]`, `image:REF`, or a path), against what, and by which metrics."""

    candidate: str = "latest"
    against: str = "previous"
    metrics: tuple[str, ...] = ()
    thresholds: Thresholds | None = None


def _spelling(unmapped: Caveat) -> str:
    said = dict(unmapped.values)
    return f"{said['field']} {said['spelling']!r}"


def compare(question: Question, where: Where, settings: Settings = Settings()) -> Comparison:
    """Judge a candidate against its history: sweep and evals, and with a reason all that cannot be judged.

    Nothing is written.
    """
    chosen = _metrics(question.metrics)
    with (
        sides.opened(where.store, where.archive) as past,
        sides.candidate(question.candidate, past, chosen) as new,
    ):
        return judged(past, new, question, settings)


def judged(past: Store | None, new: Side, question: Question, settings: Settings) -> Comparison:
    """Judge a candidate that is at hand against what a store holds of its past."""
    baseline = _baseline(question.against)
    history = sides.history(past, new, baseline, _metrics(question.metrics))
    alike = sides.comparable(past, new, history)
    sweep = judge_frames(alike.history, alike.candidate, sides.with_learned_scales(settings, past), baseline)
    base = sides.runs_by_text(past, sweep.baseline_runs)
    eval_findings, eval_unmatched = _judge_scores(past, new, base, question)
    absent = describe.absent_curves(sides.sweeps_before(past, new), new)
    found: tuple[Finding, ...] = (*sweep.findings, *eval_findings)
    apart: tuple[Unmatched, ...] = (*sweep.unmatched, *alike.apart, *eval_unmatched, *absent)
    stood_on = {str(run) for one in found for run in one.baseline_runs}
    told = describe.Subjects.of(new, past, [*(one.key for one in found), *(one.key for one in apart)])
    return Comparison(
        candidate=new.runs,
        baseline=sides.runs_by_text(past, {*sweep.baseline_runs, *stood_on}),
        against=str(baseline),
        findings=describe.ordered(map(told.finding, found)),
        unmatched=(*told.apart(apart), *told.invalid()),
        rejected=new.rejected,
        rules_version=settings.rules_version,
        jobs=new.jobs,
        caveats=_caveats(new, question.metrics),
        levels=sides.levels(history, new),
    )


def _metrics(asked: tuple[str, ...]) -> tuple[str, ...]:
    """The metrics to judge: all that have a test, or those that were asked for by their exact names."""
    for name in asked:
        if name not in POINT_METRICS:
            near = ", ".join(get_close_matches(name, POINT_METRICS)) or ", ".join(GATE_METRICS)
            raise Trouble(f"{name!r} is no metric of points: try {near}")
    return asked or JUDGED_METRICS


def _judge_scores(
    past: Store | None, new: Side, base: Sequence[Run], question: Question
) -> tuple[tuple[Finding, ...], tuple[Unmatched, ...]]:
    earlier = sides.past_scores(past, new, base, _baseline(question.against))
    measured = {str(score.run) for score in earlier}
    runs = {run.key: run for run in (*new.runs, *sides.runs_by_text(past, measured))}
    official = [score for score in earlier if standing(runs[score.run]).official]
    rules = EvalRules() if question.thresholds is None else EvalRules(question.thresholds)
    return judge_scores(official, new.scores, {key: run.started_at for key, run in runs.items()}, rules, new.configs)


def _caveats(new: Side, metrics: Sequence[str]) -> tuple[Caveat, ...]:
    """Doubts about the comparison as a whole."""
    hidden = (Caveat.of("only_metrics", metrics=", ".join(metrics)),) if metrics else ()
    return (*hidden, *(reason for run in new.runs for reason in standing(run).reasons))


def _baseline(text: str) -> Baseline:
    try:
        return parse_baseline(text)
    except ValueError as flaw:
        raise Trouble(str(flaw)) from flaw
