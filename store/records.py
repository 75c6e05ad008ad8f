"""The nouns of the product: frozen records without opinions.

Every record that crosses a room is defined here. Units and shapes stand beside the fields; times are aware UTC
datetimes; effects are natural logarithms of a ratio unless a field says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import TypeAlias

Value: TypeAlias = str | int | float | bool | None
Extra: TypeAlias = float | str


class Trouble(Exception):
    """A failure of the world or of the input that is expected: its text says where, what, and what to do."""


class Scope(StrEnum):
    """What a finding speaks about, from the smallest to the largest."""

    POINT = "point"
    CURVE = "curve"
    CONFIG = "config"
    FRONTIER = "frontier"
    """All layouts of a group together: its best throughput at each interactivity, and its peak."""
    EVAL = "eval"


class Verdict(StrEnum):
    """The answer of a comparison; the last seven are states of the data, not statistics."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    MIXED = "mixed"
    EQUIVALENT = "equivalent"
    NOISY = "noisy"
    SUSPECTED = "suspected"
    INCONCLUSIVE = "inconclusive"
    RECOVERY = "recovery"
    NO_BASELINE = "no_baseline"
    MISSING = "missing"
    FAILED = "failed"
    INVALID = "invalid"
    NOT_COMPARABLE = "not_comparable"
    NOT_JUDGED = "not_judged"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Caveat:
    """A doubt as a code with numbers; the sentence is made by the catalogs.

    >>> Caveat.of("few_runs", have=1, need=3).as_dict()
    {'code': 'few_runs', 'have': 1, 'need': 3}
    """

    code: str
    values: tuple[tuple[str, Value], ...] = ()

    @classmethod
    def of(cls, code: str, **values: Value) -> Caveat:
        return cls(code, tuple(values.items()))

    def as_dict(self) -> dict[str, Value]:
        return {"code": self.code, **dict(self.values)}


@dataclass(frozen=True, slots=True, order=True)
class RunKey:
    """One attempt of one run: the unit of replication."""

    id: int
    attempt: int = 1

    def __str__(self) -> str:
        return f"{self.id}/{self.attempt}"


@dataclass(frozen=True, slots=True)
class Run:
    """A GitHub run attempt, or a local file that stands for one (then `id` is negative and `event` is "local")."""

    id: int
    attempt: int
    started_at: datetime
    repository: str = ""
    path: str | None = None
    event: str | None = None
    head_branch: str | None = None
    head_sha: str | None = None
    status: str | None = None
    conclusion: str | None = None
    title: str | None = None
    url: str | None = None
    pull_request: int | None = None
    created_at: datetime | None = None
    published: bool = False
    """True when the rows were read from the public API: somebody authorised their publication."""
    head_repository: str | None = None
    """Where the measured commit came from; another repository than `repository` is a fork."""
    labels: tuple[str, ...] = ()
    """Labels of its pull request when the run was fetched: they trim, widen or shorten a sweep."""
    reused_by: RunKey | None = None
    """The run on main that published these rows instead of measuring again, by an authorised comment."""
    published_at: datetime | None = None
    """When that happened. Nothing was measured then: `started_at` and the rows' own times say when it was."""

    @property
    def key(self) -> RunKey:
        return RunKey(self.id, self.attempt)


@dataclass(frozen=True, slots=True)
class Provenance:
    """What kind of run it was, and when its rows were measured: which neither its start nor its publication tells."""

    kind: str
    earliest: datetime
    latest: datetime


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row stood: file (or archive member), index in it, and when its artifact was made."""

    file: str
    index: int = 0
    created_at: datetime | None = None
    collected: bool = False
    """True for a row of a collected file (`agg_bmk.json`), which yields to a per-point artifact."""

    def __str__(self) -> str:
        return f"{self.file}[{self.index}]"


@dataclass(frozen=True, slots=True, order=True)
class Role:
    """One side of a deployment: parallelism of a worker and how many workers there are."""

    tp: int = 1
    ep: int = 1
    dp_attention: bool = False
    workers: int = 1
    pp: int = 1
    dcp: int = 1
    pcp: int = 1
    hardware: str | None = None

    @property
    def gpus(self) -> int:
        """GPUs of the role: EP and DCP share them, TP, PP and PCP multiply them."""
        return self.tp * self.pp * self.pcp * self.workers


@dataclass(frozen=True, slots=True, order=True)
class Layout:
    """Topology: one engine (`decode` is None), or prefill and decode pools."""

    prefill: Role
    decode: Role | None = None
    multinode: bool = False

    @property
    def gpus(self) -> int:
        return self.prefill.gpus + (self.decode.gpus if self.decode else 0)


@dataclass(frozen=True, slots=True)
class Series:
    """Everything that must be equal before two measurements may be compared.

    `conc` is None for a curve (a series less its concurrency). A spelling that no table knows keeps a leading "?".
    """

    model: str
    gpu: str
    framework: str
    precision: str
    spec: str
    scenario: str
    isl: int | None
    osl: int | None
    offload: bool
    layout: Layout
    conc: int | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """One measured point of one run: its series, its provenance and its metrics (seconds, tokens/s, watts, joules)."""

    run: RunKey
    series: Series
    metrics: Mapping[str, float]
    place: Place
    raw: str
    image: str | None = None
    recipe: str | None = None
    pool: str | None = None
    invalid: Caveat | None = None
    """Set when the row is a measurement that must not be judged (zero throughput, failed requests, ...)."""
    caveats: tuple[Caveat, ...] = ()
    extra: Mapping[str, Extra] = field(default_factory=dict)
    """Numbers that no table knows, never judged; and texts that name what else ran (router, transfer, client)."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Which questions of one eval were answered right. What was asked and what was answered is not kept.

    A reading is one bit per question in the order of the ids, as base64 (`store.answers`); None where it was not read.
    """

    questions: str
    """SHA-256 over the ids, each with the hashes of its prompt and target; empty where one of these is not known."""
    ids: str
    """The ids in rising order, as ranges: "0-1318"."""
    n: int
    strict: str | None = None
    flexible: str | None = None
    score: str | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """One eval result: accuracies as fractions of `n` questions, standard errors as reported or recomputed."""

    run: RunKey
    series: Series
    task: str
    strict: float | None
    strict_se: float | None
    flexible: float | None
    flexible_se: float | None
    n: int | None
    place: Place
    raw: str
    score: float | None = None
    score_name: str | None = None
    image: str | None = None
    recipe: str | None = None
    pool: str | None = None
    invalid: Caveat | None = None
    caveats: tuple[Caveat, ...] = ()
    answers: Answers | None = None


@dataclass(frozen=True, slots=True)
class Rejection:
    """A row that could not be read whole: where, which field, why (a code of the catalogs), and the text itself."""

    place: Place
    field: str
    reason: str
    detail: str = ""
    raw: str = ""
    run: RunKey | None = None


@dataclass(frozen=True, slots=True)
class ChangelogEntry:
    """One entry of `changelog_metadata.json`: what the sweep was asked to measure."""

    config_keys: tuple[str, ...]
    description: tuple[str, ...]
    pr_link: str
    base_ref: str = ""
    head_ref: str = ""
    evals_only: bool = False
    all_evals: bool = False
    append_only: bool = False
    scenario_types: tuple[str, ...] = ()
    """The scenarios that it restricts its configs to, as the master configs name them; none means all."""
    eval_min_prefill_ep: int | None = None


@dataclass(frozen=True, slots=True)
class JobCount:
    """Jobs of one hardware in one run (`run_stats.json`): 0 of 0 means no jobs, not 0 %."""

    hardware: str
    succeeded: int
    total: int


@dataclass(frozen=True, slots=True)
class JobRun:
    """One job of one attempt as GitHub tells it. A skipped job has passed nothing."""

    name: str
    attempt: int = 1
    status: str | None = None
    conclusion: str | None = None
    url: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    runner: str | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """A point, or an eval where `task` names one, that the config at the run's commit promises."""

    key: str
    """Key of the master config."""
    series: Series
    image: str | None = None
    task: str | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """What a reader found of one run attempt."""

    run: Run
    points: tuple[Point, ...] = ()
    scores: tuple[Score, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    changelog: tuple[ChangelogEntry, ...] = ()
    jobs: tuple[JobCount, ...] = ()
    job_runs: tuple[JobRun, ...] = ()
    expected: tuple[Expected, ...] = ()
    duplicates: int = 0
    """Rows left out since an equal row of the batch, or a per-point artifact of the run, says the same."""


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A word that rows must not be used any more: of a whole run, of one attempt, or of the points that fit `point`."""

    run: int
    kind: str
    """Class of the reason (`store.withdrawals.KINDS`)."""
    reason: str
    """The reason in free text."""
    since: date
    source: str
    """Link to where it was decided."""
    attempt: int | None = None
    point: tuple[tuple[str, str], ...] = ()
    """Fields of a series and their values in the store's spelling; empty for everything."""
    place: str = ""
    """File and line."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """The questions of one eval job by how many runs of each side answered them right."""

    baseline_runs: int
    candidate_runs: int
    cells: tuple[tuple[int, int, int], ...]
    """Baseline runs that were right, candidate runs that were right, number of questions."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is needed to judge again without the store: inputs, noise scale and where it came from, limits.

    `baseline` and `candidate` hold, per member series, the values in the metric's unit, oldest run first.
    """

    members: tuple[str, ...]
    baseline: tuple[tuple[float, ...], ...]
    candidate: tuple[tuple[float, ...], ...]
    sigma: tuple[float, ...]
    """Posterior noise scale per member, natural log units."""
    scale_source: str
    correlation: float
    margin: float
    alpha: float
    p_adjusted: float | None = None
    pairs: tuple[Pairs, ...] = ()
    """Per member, where both sides were paired by question; empty where they are two samples."""


class Differs(StrEnum):
    """The class of a change: what is recorded as differing between its sides, never why the numbers do.

    The order is that in which one of several stands for all.
    """

    UNKNOWN = "unknown"
    """Nobody recorded what ran on one side, or the tag moves; or nothing that is recorded differs."""
    IMAGE = "image"
    RECIPE = "recipe"
    TOPOLOGY = "topology"
    HARNESS = "harness"
    POOL = "pool"
    """Other machines; or the same software, and its neighbours on the same machines moved with it."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One recorded fact in which the sides differ: its name, what each side says (None: nothing), and its class.

    `between` names what stands on neither side, such as an event of the harness.
    """

    what: str
    before: str | None
    after: str | None
    kind: Differs
    between: str = ""


@dataclass(frozen=True, slots=True)
class Controls:
    """Curves of unchanged software on the same machines at the same time, and how many moved the same way."""

    total: int = 0
    moved: int = 0
    effect: float | None = None
    """Median of those that moved, natural log units (of evals a difference of scores)."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """What differs between the sides of a change, whole, and its class: the first of `kinds`."""

    kind: Differs
    differences: tuple[Difference, ...] = ()
    controls: Controls = Controls()

    @property
    def is_same(self) -> bool:
        """True where the same software ran on both sides for certain, and nothing else is recorded as differing."""
        return not self.differences

    @property
    def kinds(self) -> tuple[Differs, ...]:
        """Every class that differs, each once, in the order of `Differs`."""
        return tuple(kind for kind in Differs if kind is self.kind or any(one.kind is kind for one in self.differences))


@dataclass(frozen=True, slots=True)
class Finding:
    """One judged question: `effect`, `low`, `high`, `mde` are natural log ratios; for evals differences of scores."""

    scope: Scope
    key: str
    """Text key of the series, the curve, the config, or the eval."""
    metric: str
    verdict: Verdict
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    mde: float | None = None
    n_baseline: int = 0
    n_candidate: int = 0
    n_points: int = 1
    baseline: float | None = None
    candidate: float | None = None
    series: Series | None = None
    config: str = ""
    task: str | None = None
    baseline_runs: tuple[RunKey, ...] = ()
    candidate_runs: tuple[RunKey, ...] = ()
    baseline_image: str | None = None
    candidate_image: str | None = None
    caveats: tuple[Caveat, ...] = ()
    evidence: Evidence | None = None
    rules_version: str = ""
    attribution: Attribution | None = None
    """Of what moved: what differs between its sides."""


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A point or score that stands on one side only, or may not be compared, with the reason as a code."""

    key: str
    side: str
    """"candidate" or "baseline", or "plan" where only the run's config speaks of it."""
    verdict: Verdict
    reason: Caveat
    series: Series | None = None
    config: str = ""
    run: RunKey | None = None
    task: str | None = None
    image: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    """What was measured all the same, in the metrics' units."""
    caveats: tuple[Caveat, ...] = ()


@dataclass(frozen=True, slots=True)
class LaneCount:
    """Jobs that apply to throughput or to evals: all but the skipped ones, and how many of them succeeded."""

    passed: int
    applicable: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the candidate holds beside what its config promised: arrived + failed + missing = expected."""

    expected: int = 0
    arrived: int = 0
    failed: int = 0
    """The job that should have measured it failed, timed out or was cancelled."""
    missing: int = 0
    """Not there, although its job passed or no job is known."""
    dropped: int = 0
    """Points of the baseline that the config does not ask for any more: outside of the four others."""
    evals_expected: int = 0
    evals_arrived: int = 0
    evals_failed: int = 0
    evals_missing: int = 0
    conclusion: str | None = None
    """How GitHub says that the run ended. No judgement stands on it."""
    cut: int = 0
    """Jobs that were cancelled."""
    jobs: LaneCount | None = None
    """Throughput jobs; None where no jobs are known."""
    eval_jobs: LaneCount | None = None


class LayoutKind(StrEnum):
    """What became of a layout between two sweeps of a group."""

    SAME = "same"
    RENAMED = "renamed"
    RESHAPED = "reshaped"
    NEW = "new"
    RETIRED = "retired"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class LayoutChange:
    """A layout of the baseline beside the candidate's that stands in its place, and the rule that says so (a code)."""

    kind: LayoutKind
    rule: str
    before: Layout | None
    after: Layout | None

    @property
    def stays(self) -> bool:
        """True where the layout did not change, as far as both sides measured it."""
        return self.kind in (LayoutKind.SAME, LayoutKind.ABSENT)


@dataclass(frozen=True, slots=True)
class Reach:
    """What two frontiers cover along one axis, in the axis's dashboard unit, and how far apart they lie there."""

    axis: str
    """Metric that the places are read from."""
    shared: tuple[float, float] | None
    """None where the sides have no place in common."""
    gained: tuple[tuple[float, float], ...] = ()
    """Ranges that only the candidate reaches."""
    lost: tuple[tuple[float, float], ...] = ()
    places: tuple[float, ...] = ()
    gaps: tuple[float, ...] = ()
    """Natural log ratio of throughput per GPU at these places."""
    band: tuple[float, ...] = ()
    """Half width of the 95 % band that holds for all gaps at once."""


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """One point that counts on a side: means over its runs, in tokens/s/user and tokens/s/GPU."""

    layout: Layout
    conc: int | None
    speed: float
    output: float


@dataclass(frozen=True, slots=True)
class FrontierSide:
    """The points of one side, and the line of what they attain together, slowest place first."""

    points: tuple[FrontierPoint, ...]
    line: tuple[tuple[float, float], ...]
    """Interactivity in tokens/s/user, throughput in tokens/s/GPU."""


@dataclass(frozen=True, slots=True)
class Frontier:
    """What stands beside the findings of a group: its layouts, what both sides reach, and their points.

    A group is everything that a dashboard draws as one line: a curve key less its layout.
    """

    key: str
    config: str
    layouts: tuple[LayoutChange, ...]
    interactivity: Reach
    """In tokens/s/user."""
    peaks: tuple[float, float]
    """Interactivity at which each side reaches its largest throughput per GPU, baseline first."""
    latency: Reach | None = None
    """Along the median end-to-end latency in seconds; None where a side has none, or the layouts are the same."""
    before: FrontierSide = FrontierSide((), ())
    after: FrontierSide = FrontierSide((), ())

    @property
    def named_sides(self) -> tuple[tuple[str, FrontierSide], tuple[str, FrontierSide]]:
        """The baseline's side, then the candidate's."""
        return ("before", self.before), ("after", self.after)

    @property
    def is_same(self) -> bool:
        """True where both sides measured the same layouts: then every curve has a twin and speaks for itself."""
        return all(one.stays for one in self.layouts)


@dataclass(frozen=True, slots=True)
class Level:
    """How fast one run of a curve was beside the curve's median run (which is 1), and the image that it measured."""

    run: RunKey
    started_at: datetime
    level: float
    image: str | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A candidate judged against its baselines: everything that a report may say."""

    candidate: tuple[Run, ...]
    baseline: tuple[Run, ...]
    against: str
    findings: tuple[Finding, ...]
    unmatched: tuple[Unmatched, ...]
    rejected: tuple[Rejection, ...]
    rules_version: str
    caveats: tuple[Caveat, ...] = ()
    jobs: tuple[JobCount, ...] = ()
    """Jobs of the candidate runs by hardware, where a run says so."""
    coverage: Coverage | None = None
    """None where neither the candidate's plan nor its jobs are known."""
    history: Mapping[str, tuple[Level, ...]] = field(default_factory=dict)
    """Per curve, its newest runs, oldest first and the candidate last."""
    earlier: tuple[Run, ...] = ()
    """The runs of the histories, the candidate's apart, oldest first."""
    visible: float | None = None
    """The smallest change that one run shows on the middle one of its judged curves, natural log units."""
    provenance: Mapping[RunKey, Provenance] = field(default_factory=dict)
    """Per run of either side, where more is known of it than the run itself says."""
    frontiers: tuple[Frontier, ...] = ()
    """Of every group that both sides measured."""

    @property
    def levels(self) -> dict[str, tuple[float, ...]]:
        """Per curve, how fast each run was, oldest first."""
        return {curve: tuple(one.level for one in runs) for curve, runs in self.history.items()}
