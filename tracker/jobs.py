"""The card's uses, a page of prose each: ingest what ran, compare it with its history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from store import checkup, withdrawals
from store.checkup import Checkup, Recovered
from store.depot import EVERYTHING, Choice, Depot, is_bucket
from store.duck import Effect, Info, Landed, Loaded, States, Store
from store.identity import config_key, series_key
from store.metrics import ADVISORY_METRICS, GATE_METRICS, POINT_METRICS
from store.readers import read
from store.records import (
    Batch,
    Caveat,
    Comparison,
    Finding,
    Frontier,
    Point,
    Provenance,
    Run,
    RunKey,
    Scope,
    Score,
    Trouble,
    Unmatched,
    Verdict,
    Withdrawal,
)
from store.runs import PATCHED, is_trimmed, standing
from store.thresholds import Thresholds
from store.travel import Carried, Folder, Place, Plan, carry, plan
from tracker import contrast, coverage, describe, partial, provenance, sides, workers
from tracker.events import EVENTS, Event
from tracker.excerpts import Excerpt, Source
from tracker.harness import Teller, redefined
from tracker.judge import frontiers, groups
from tracker.judge.learn import learn
from tracker.judge.results import EvalRules
from tracker.judge.scores import judge_scores
from tracker.judge.sweep import JUDGED_VERDICTS, Judged, judge_frames
from tracker.pairs import Baseline, parse_baseline
from tracker.settings import RULES_VERSION, Settings
from tracker.sides import Side
from tracker.workers import ALONE, Crew

JUDGED_METRICS = (*GATE_METRICS, *ADVISORY_METRICS)

LEARNED_CURVES = 400
LEARNED_RUNS = 60
"""The noise is learned from so many curves and the newest runs of each: every stratum, and a bound on the work."""

CORRECTED = "withdrawn_cited"
"""Code of a correction: an earlier report stood on what is withdrawn since."""

Watch = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Where:
    """The two places of a store: the database and the archive that it can be made again from."""

    store: Path
    archive: Path | str
    """A folder, or the address of a bucket."""
    withdrawals: Path | None = None
    """File of withdrawals; None where there is none."""

    @classmethod
    def of(cls, store: Path, archive: Path | str | None, withdrawals: Path | None = None) -> Where:
        """Archive and withdrawals stand beside the store unless they are named.

        >>> str(Where.of(Path("a/tracker.duckdb"), None).archive)
        'a/tracker.archive'
        """
        beside = store.with_suffix(".withdrawals.yaml")
        return cls(
            store, archive or store.with_suffix(".archive"), withdrawals or (beside if beside.exists() else None)
        )

    def withdrawn(self) -> tuple[Withdrawal, ...]:
        """What must not be used any more; a file that cannot be read whole is Trouble."""
        return withdrawals.load(self.withdrawals) if self.withdrawals else ()

    @property
    def place(self) -> Place:
        """Where all files of the archive are."""
        return Depot.at(self.archive, self.store).place


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
    read: int = 0
    """Points and scores that could be read, those that had landed before too."""
    newest: Run | None = None
    """The run that says it started last."""

    @property
    def is_nothing(self) -> bool:
        """Whether not one row could be read, of those that were there."""
        return bool(self.rejections) and not self.read


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
        with Store.open(where.store, where.archive, official=standing, withdrawn=where.withdrawn()) as store:
            landed = store.land_many(batches)
            _keep_learned(store)
    return tally.ingested(landed)


def _declared(batch: Batch, landing: Landing) -> Batch:
    return replace(batch, run=replace(batch.run, published=True)) if landing.official else batch


def _unlanded(batch: Batch) -> Landed:
    return Landed(len(batch.points), len(batch.scores), len(batch.rejections))


def _keep_learned(store: Store) -> None:
    """Learn the noise from the curves with the most runs; which ones does not depend on the order of landing.

    What was learned from is kept last: a process that died before that has learned nothing.
    """
    of = f"{store.mark()} rules {RULES_VERSION}"
    if store.note(sides.LEARNED_OF) == of:
        return
    longest = store.curves().sort(["runs", "curve"], descending=[True, False]).head(LEARNED_CURVES)
    scales = learn(store.history(longest["curve"].to_list(), JUDGED_METRICS, most=LEARNED_RUNS), Settings())
    store.put_note(sides.SCALES, sides.scales_as_json(scales))
    store.put_note(sides.LEARNED_OF, of)


class _Tally:
    """Counts what passes by on its way to the store, so that nothing has to be held."""

    def __init__(self) -> None:
        self.runs: set[RunKey] = set()
        self.newest: Run | None = None
        self.read = 0
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
        self.newest = max(self.newest or batch.run, batch.run, key=lambda run: (run.started_at, run.key))
        self.read += len(batch.points) + len(batch.scores)
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
            read=self.read,
            newest=self.newest,
        )


def store_info(where: Where) -> Info:
    """What the store holds and how large it is."""
    with _existing(where) as store:
        return store.info()


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A withdrawal, what it takes out, and the stored comparisons that stood on these runs."""

    effect: Effect
    cited_by: tuple[str, ...]


def withdrawn(where: Where) -> tuple[Withdrawn, ...]:
    """Every withdrawal in the order of the file, those that fit nothing too."""
    with _existing(where) as store:
        return tuple(Withdrawn(one, store.cited(one.runs)) for one in store.effects())


def states(where: Where, run: int | None = None) -> tuple[States, ...]:
    """What may be used of each run attempt, of one run or of all, newest first."""
    with _existing(where) as store:
        found = store.states(run)
    if not found and run is not None:
        raise Trouble(f"run {run} is not in the store: land it with `tracker ingest`")
    return found


def export(where: Where, folder: Path, form: str, *, with_withdrawn: bool = False) -> tuple[Path, Path]:
    """Write the points and scores that count, and those that were withdrawn if asked, as two files."""
    with _existing(where) as store:
        return store.export(folder, form, with_withdrawn=with_withdrawn)


def rebuild(where: Where) -> Loaded:
    """Make the database again from the archive; what was learned of the noise is learned again."""
    _check_archive(where)
    loaded = Store.rebuild(where.store, where.archive, official=standing)
    with Store.open(where.store, where.archive, official=standing, withdrawn=where.withdrawn()) as store:
        _keep_learned(store)
    return loaded


def refresh(where: Where, choice: Choice = EVERYTHING) -> Loaded:
    """Load what the archive has and the database has not, of the runs that are chosen, then learn the noise anew."""
    _check_archive(where)
    with Store.open(where.store, where.archive, official=standing, withdrawn=where.withdrawn()) as store:
        loaded = store.catch_up(choice)
        if loaded.files:
            _keep_learned(store)
    return loaded


def check(where: Where) -> Checkup:
    """Hold every file of the archive and every row of the database against each other; nothing is written."""
    _check_is_somewhere(where)
    with _at_hand(where) as (root, refused):
        return checkup.check(where.store, root, standing, refused)


def recover(where: Where) -> Recovered:
    """Repair what `check` finds; what was learned of the noise is learned again.

    Nothing is taken out of a bucket: what is written anew goes there, a broken file stays and is told again.
    """
    _check_is_somewhere(where)
    with _at_hand(where) as (root, refused):
        done = checkup.recover(where.store, root, standing, refused)
        if is_bucket(where.archive):
            carry(plan(Folder(root).sizes(), where.place.sizes()), Folder(root), where.place)
    if not done.before.is_clean:
        with Store.open(where.store, where.archive, official=standing, withdrawn=where.withdrawn()) as store:
            _keep_learned(store)
    return done


@contextmanager
def _at_hand(where: Where) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """The archive as a folder: of a bucket a copy of everything, and what is wrong with files that were not copied."""
    if not is_bucket(where.archive):
        yield Path(where.archive), ()
        return
    with TemporaryDirectory(prefix="tracker-") as folder:
        here = Folder(Path(folder))
        yield Path(folder), carry(plan(where.place.sizes(), {}), where.place, here).refused


def _check_is_somewhere(where: Where) -> None:
    if not (is_bucket(where.archive) or where.store.exists() or Path(where.archive).is_dir()):
        raise Trouble(f"there is neither a store at {where.store} nor an archive at {where.archive}: name them")


def pull(where: Where, place: Place, watch: Watch = lambda _: None) -> tuple[Carried, Loaded]:
    """Bring what the archive lacks from another place, then the database up to date, then learn the noise anew."""
    here = where.place
    carried = carry(plan(place.sizes(), here.sizes()), place, here, watch)
    with Store.open(where.store, where.archive, official=standing, withdrawn=where.withdrawn()) as store:
        loaded = store.catch_up()
        _keep_learned(store)
    return carried, loaded


def push(where: Where, place: Place, watch: Watch = lambda _: None) -> Carried:
    """Put what another place lacks there; what is there stays as it is."""
    return carry(planned_push(where, place), where.place, place, watch)


def planned_push(where: Where, place: Place) -> Plan:
    """What a push would do."""
    _check_archive(where)
    return plan(where.place.sizes(), place.sizes())


def _check_archive(where: Where) -> None:
    if isinstance(where.archive, Path) and not where.archive.is_dir():
        raise Trouble(f"there is no archive at {where.archive}: name it with --archive")


@contextmanager
def _existing(where: Where) -> Iterator[Store]:
    with sides.opened(where.store, where.archive, where.withdrawn()) as store:
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
    events: tuple[Event, ...] = EVENTS
    """Changes of the test harness that may lie between the sides."""


def _spelling(unmapped: Caveat) -> str:
    said = dict(unmapped.values)
    return f"{said['field']} {said['spelling']!r}"


def compare(question: Question, where: Where, settings: Settings = Settings(), crew: Crew = ALONE) -> Comparison:
    """Judge a candidate against its history: sweep and evals, and with a reason all that cannot be judged.

    Nothing is written. Families of tests span the whole comparison, so it is one group of series: a cluster takes it
    off this machine, and makes it no faster. A candidate that is a path is judged here, since no node has it.
    """
    chosen = _metrics(question.metrics)
    withdrawn = where.withdrawn()
    with (
        sides.opened(where.store, where.archive, withdrawn) as past,
        sides.candidate(question.candidate, past, chosen, withdrawn) as new,
    ):
        is_here = crew.cluster is None or past is None or past.left_out or Path(question.candidate).exists()
        source = None if is_here or past is None else Source.of(past, where.archive, where.store, crew)
        if source is None or past is None:
            return judged(past, new, question, settings)
        task = _task(past, source, new, question, settings)
    return workers.map(_compared, [task], crew)[0]


@dataclass(frozen=True, slots=True)
class _Task:
    """A comparison for another machine, and what only this database knows."""

    question: Question
    settings: Settings
    corrections: tuple[Caveat, ...]
    excerpt: Excerpt

    def __str__(self) -> str:
        return f"{self.question.candidate} against {self.question.against}"


def _task(past: Store, source: Source, new: Side, question: Question, settings: Settings) -> _Task:
    baseline = _baseline(question.against)
    beside = {sides.named_run(past, baseline).id} if baseline.kind == "run" else set()
    candidate = f"run:{new.newest.key}" if question.candidate == "latest" else question.candidate
    return _Task(
        replace(question, candidate=candidate),
        sides.with_learned_scales(settings, past),
        _corrections(past, new, baseline),
        source.around([[run.key for run in new.runs]], beside),
    )


def _compared(task: _Task) -> Comparison:
    with task.excerpt.opened() as past:
        withdrawn = task.excerpt.withdrawn
        with sides.candidate(task.question.candidate, past, _metrics(task.question.metrics), withdrawn) as new:
            return judged(past, new, task.question, task.settings, task.corrections)


def judged(
    past: Store | None,
    new: Side,
    question: Question,
    settings: Settings,
    corrections: tuple[Caveat, ...] | None = None,
) -> Comparison:
    """Judge a candidate that is at hand against what a store holds of its past.

    `corrections`: what earlier judgements of it stood on and is withdrawn, where this store has none of these.
    """
    baseline = _baseline(question.against)
    made = _found(past, new, question, settings, baseline)
    alike, stands = made.alike, made.stands
    levels = sides.levels(made.ground.history, new)
    told = describe.Subjects.of(new, past, [*(one.key for one in made.findings), *(one.key for one in made.apart)])
    events, beside = Teller.of(new.series.values(), alike.timeline), provenance.settings(past, new)
    origins = sides.provenance(past, new, stands)
    missed = events.missing(told.apart(made.apart), new.runs)
    rows = coverage.settled(made.wanted, new, (*missed, *told.invalid(), *made.taken), past)
    said = beside.told(events.told(map(told.finding, made.findings)))
    return Comparison(
        candidate=new.runs,
        baseline=stands,
        against=str(baseline),
        findings=describe.ordered(contrast.attributed(said, made.ground)),
        unmatched=rows,
        rejected=new.rejected,
        rules_version=settings.rules_version,
        jobs=new.jobs,
        caveats=(
            *_caveats(new, question.metrics),
            *_provenance(new, stands, origins),
            *(_corrections(past, new, baseline) if corrections is None else corrections),
            *_expired(past, baseline),
            *partial.caveats(past),
            *redefined(alike.findings),
        ),
        coverage=coverage.coverage(made.wanted, new, rows),
        history=levels,
        earlier=sides.drawn(past, levels, new),
        visible=_visible(made.curves),
        provenance=origins,
        frontiers=made.frontiers,
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """What the judges say of a candidate, and what its telling needs besides."""

    findings: tuple[Finding, ...]
    curves: tuple[Finding, ...]
    """Those among them that are of curves and points, as they were judged."""
    apart: tuple[Unmatched, ...]
    taken: tuple[Unmatched, ...]
    """Scores that are withdrawn."""
    stands: tuple[Run, ...]
    """The runs of all baselines."""
    frontiers: tuple[Frontier, ...]
    alike: sides.Comparable
    wanted: coverage.Asked
    ground: contrast.Ground


def _found(past: Store | None, new: Side, question: Question, settings: Settings, baseline: Baseline) -> _Found:
    history = sides.history(past, new, baseline, _metrics(question.metrics))
    alike = sides.comparable(past, new, history, question.events)
    settled, wanted = sides.with_learned_scales(settings, past), coverage.asked(new)
    sweep = judge_frames(alike.history, alike.candidate, settled, baseline)
    fronts = _frontiers(past, new, sweep, _Asking(question, baseline, settled, wanted))
    earlier = sides.past_scores(past, new, sides.runs_by_text(past, sweep.baseline_runs), baseline)
    eval_findings, eval_unmatched = _judge_scores(past, new, earlier, question)
    taken = _withdrawn_scores(new)
    absent = describe.absent_curves(sides.sweeps_before(past, new), new)
    found = tuple(partial.findings((*sweep.findings, *fronts.findings, *alike.findings, *eval_findings), past))
    rest = (*sweep.unmatched, *alike.apart, *_but(eval_unmatched, taken), *absent)
    stands = sides.runs_by_text(past, {*sweep.baseline_runs, *(str(run) for one in found for run in one.baseline_runs)})
    known = {str(run.key): run for run in (*new.runs, *stands)}
    return _Found(
        findings=found,
        curves=sweep.findings,
        apart=tuple(partial.unmatched(rest, past)),
        taken=taken,
        stands=stands,
        frontiers=fronts.frontiers,
        alike=alike,
        wanted=wanted,
        ground=contrast.Ground(past, new, history, (*earlier, *new.scores), known, fronts.frontiers, settled),
    )


@dataclass(frozen=True, slots=True)
class _Asking:
    question: Question
    baseline: Baseline
    settings: Settings
    wanted: coverage.Asked


def _frontiers(past: Store | None, new: Side, sweep: Judged, asking: _Asking) -> frontiers.Judged:
    """What every group reaches together, over all layouts of both sides.

    An entry that only adds points to a curve has no frontier of its own, and a trimmed sweep none at all.
    """
    asked, wanted = asking.question.metrics, asking.wanted
    is_part = wanted.adds_only or any(map(is_trimmed, new.runs))
    if past is None or is_part or (asked and groups.OUTPUT not in asked):
        return frontiers.Judged()
    rows = sides.group_history(past, new, asking.baseline)
    both = sides.comparable(past, replace(new, frame=new.frontier), rows, asking.question.events)
    keys = set(both.history["series"].unique()) - new.series.keys()
    sweeps = groups.Sweeps(
        history=both.history,
        candidate=both.candidate,
        series={**past.series(keys), **new.series},
        asked={key: one.series for key, one in wanted.points.items()} if wanted.is_known else None,
    )
    twins = {one.key for one in sweep.findings if one.scope is Scope.CURVE and one.verdict in JUDGED_VERDICTS}
    scales = asking.settings.scales or learn(rows, asking.settings)
    return frontiers.judge_frontiers(sweeps, twins, scales, asking.settings, asking.baseline)


def _metrics(asked: tuple[str, ...]) -> tuple[str, ...]:
    """The metrics to judge: all that have a test, or those that were asked for by their exact names."""
    for name in asked:
        if name not in POINT_METRICS:
            near = ", ".join(get_close_matches(name, POINT_METRICS)) or ", ".join(GATE_METRICS)
            raise Trouble(f"{name!r} is no metric of points: try {near}")
    return asked or JUDGED_METRICS


def _judge_scores(
    past: Store | None, new: Side, earlier: Sequence[Score], question: Question
) -> tuple[tuple[Finding, ...], tuple[Unmatched, ...]]:
    measured = {str(score.run) for score in earlier}
    runs = {run.key: run for run in (*new.runs, *sides.runs_by_text(past, measured))}
    official = [score for score in earlier if standing(runs[score.run]).official]
    rules = EvalRules() if question.thresholds is None else EvalRules(question.thresholds)
    return judge_scores(official, new.scores, {key: run.started_at for key, run in runs.items()}, rules, new.configs)


def _caveats(new: Side, metrics: Sequence[str]) -> tuple[Caveat, ...]:
    """Doubts about the comparison as a whole."""
    hidden = (Caveat.of("only_metrics", metrics=", ".join(metrics)),) if metrics else ()
    return (*hidden, *new.withdrawn, *(reason for run in new.runs for reason in standing(run).reasons))


def comparison_name(candidate: RunKey, against: str) -> str:
    """The name under which the findings of a comparison are stored.

    >>> comparison_name(RunKey(27489075807), "previous")
    '27489075807/1 previous'
    """
    return f"{candidate} {against}"


def keep_findings(answer: Comparison, where: Where) -> str:
    """Store the findings of a comparison, in place of those of an earlier one of its name; gives the name.

    What it corrects is kept beside them: once they are replaced nothing else would tell of it.
    """
    name = comparison_name(max(answer.candidate, key=lambda run: (run.started_at, run.key)).key, answer.against)
    corrected = [caveat.as_dict() for caveat in answer.caveats if caveat.code == CORRECTED]
    with Store.open(where.store, where.archive, official=standing, withdrawn=where.withdrawn()) as store:
        if corrected:
            store.put_note(f"{CORRECTED} {name}", corrected)
        store.save_findings(name, answer.findings)
    return name


def _corrections(past: Store | None, new: Side, baseline: Baseline) -> tuple[Caveat, ...]:
    """What earlier judgements of this candidate, where they are stored, stood on and is withdrawn since."""
    if past is None or not new.runs:
        return ()
    name = comparison_name(new.newest.key, str(baseline))
    withdrawn = {str(one.run) for one in past.withdrawals}
    kept = (Caveat.of(told.pop("code"), **told) for told in past.note(f"{CORRECTED} {name}") or ())
    lasting = (one for one in kept if str(dict(one.values)["run"]).partition("/")[0] in withdrawn)
    return tuple(dict.fromkeys((*past.corrections(name), *lasting)))


def _expired(past: Store | None, baseline: Baseline) -> tuple[Caveat, ...]:
    """What a baseline that was asked for by name had measured, and GitHub has thrown away before it was fetched."""
    if past is None or baseline.kind != "run":
        return ()
    run = sides.named_run(past, baseline)
    lost = [one.detail for one in past.rejections(run.key) if one.reason == "artifact_expired"]
    if not lost:
        return ()
    code = "baseline_from_store" if len(past.points(run.key, ())) else "baseline_expired"
    return (Caveat.of(code, run=str(run.key), number=len(lost), on=max(lost)),)


def _visible(findings: Iterable[Finding]) -> float | None:
    """What one run can show here: the median over curves of the smallest detectable change, by their finest metric."""
    finest: dict[str, float] = {}
    for one in findings:
        if one.scope is Scope.CURVE and one.metric in GATE_METRICS and one.n_candidate == 1 and one.mde is not None:
            finest[one.key] = min(one.mde, finest.get(one.key, one.mde))
    return median(finest.values()) if finest else None


def _but(rows: Iterable[Unmatched], taken: Sequence[Unmatched]) -> Iterator[Unmatched]:
    """Evals without a twin, less those that are told as withdrawn."""
    gone = {(one.key, one.task) for one in taken}
    return (one for one in rows if (one.key, one.task) not in gone)


def _withdrawn_scores(new: Side) -> tuple[Unmatched, ...]:
    return tuple(
        Unmatched(
            series_key(score.series),
            "candidate",
            Verdict.NOT_JUDGED,
            reason,
            series=score.series,
            config=config_key(score.series),
            run=score.run,
            task=score.task,
            image=score.image,
        )
        for score, reason in new.withdrawn_scores
    )


def _provenance(new: Side, base: Sequence[Run], origins: Mapping[RunKey, Provenance]) -> tuple[Caveat, ...]:
    """What the runs of both sides say of themselves."""
    return (
        *provenance.label_doubts(new.runs),
        *provenance.label_doubts(base, [PATCHED]),
        *provenance.run_doubts((*new.runs, *base), origins),
    )


def _baseline(text: str) -> Baseline:
    try:
        return parse_baseline(text)
    except ValueError as flaw:
        raise Trouble(str(flaw)) from flaw
