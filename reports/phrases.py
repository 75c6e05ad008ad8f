"""Which sentence says which fact: tables from verdicts, metrics, changes, caveats and steps to message ids.

Nothing here is in a language, and nothing chooses facts: a phrase is a message id and its values as text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from reports import numbers
from reports.facts import (
    ELSEWHERE,
    Counts,
    Facts,
    Hidden,
    ImageChange,
    Moved,
    Row,
    Step,
    gate,
    is_eval,
    misses_gate,
    number_of,
    told_verdict,
)
from reports.language import N_, Phrase, Value, clauses, listing, phrase, sentences
from reports.numbers import Kind
from store.identity import config_key, layout_text, sequence_text
from store.images import Sameness
from store.records import Caveat, Coverage, Finding, Provenance, Run, Scope, Unmatched, Verdict
from store.runs import Kind as RunKind
from store.runs import kind as run_kind

VERDICTS: Mapping[Verdict, str] = MappingProxyType(
    {
        Verdict.REGRESSION: N_("regression"),
        Verdict.IMPROVEMENT: N_("improvement"),
        Verdict.MIXED: N_("mixed"),
        Verdict.EQUIVALENT: N_("equivalent"),
        Verdict.NOISY: N_("noisy"),
        Verdict.SUSPECTED: N_("suspected"),
        Verdict.INCONCLUSIVE: N_("inconclusive"),
        Verdict.RECOVERY: N_("recovery"),
        Verdict.NO_BASELINE: N_("no baseline"),
        Verdict.MISSING: N_("missing"),
        Verdict.FAILED: N_("failed"),
        Verdict.INVALID: N_("invalid"),
        Verdict.NOT_COMPARABLE: N_("not comparable"),
        Verdict.NOT_JUDGED: N_("not judged"),
        Verdict.DROPPED: N_("removed"),
    }
)

HEADLINES: Mapping[Verdict, str] = MappingProxyType(
    {
        Verdict.REGRESSION: N_("Regression"),
        Verdict.IMPROVEMENT: N_("Improvement"),
        Verdict.MIXED: N_("Mixed: some points better, some worse"),
        Verdict.EQUIVALENT: N_("No material change"),
        Verdict.NOISY: N_("Too noisy to judge"),
        Verdict.SUSPECTED: N_("Suspected change"),
        Verdict.INCONCLUSIVE: N_("Inconclusive"),
        Verdict.RECOVERY: N_("Recovery"),
        Verdict.NO_BASELINE: N_("No baseline"),
        Verdict.MISSING: N_("Missing"),
        Verdict.FAILED: N_("Failed"),
        Verdict.INVALID: N_("Invalid"),
        Verdict.NOT_COMPARABLE: N_("Not comparable"),
        Verdict.NOT_JUDGED: N_("Nothing judged"),
        Verdict.DROPPED: N_("Removed on purpose"),
    }
)

SAMENESS: Mapping[Sameness, str] = MappingProxyType(
    {
        Sameness.SAME: N_("same"),
        Sameness.CHANGED: N_("changed"),
        Sameness.UNKNOWN: N_("unknown: a moving tag without a digest may name different software"),
    }
)

SIDES: Mapping[str, str] = MappingProxyType({"candidate": N_("candidate"), "baseline": N_("baseline")})

_LATENCY_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "mean": N_("mean %(what)s"),
        "median": N_("median %(what)s"),
        "std": N_("standard deviation of %(what)s"),
    }
)

METRIC_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "tput_per_gpu": N_("throughput per GPU"),
        "output_tput_per_gpu": N_("output throughput per GPU"),
        "input_tput_per_gpu": N_("input throughput per GPU"),
        "total_tput_tps": N_("total throughput"),
        "output_tput_tps": N_("output throughput"),
        "input_tput_tps": N_("input throughput"),
        "frontier_tput_per_gpu": N_("throughput per GPU at equal interactivity"),
        "latency_frontier_tput_per_gpu": N_("throughput per GPU at equal end-to-end latency"),
        "peak_tput_per_gpu": N_("peak throughput per GPU"),
        "mean_qps": N_("request rate"),
        "duration_seconds": N_("duration"),
        "avg_power_w": N_("average power per GPU"),
        "joules_per_output_token": N_("energy per output token"),
        "joules_per_total_token": N_("energy per token"),
        "em_strict": N_("accuracy (strict match)"),
        "em_flexible": N_("accuracy"),
        "score": N_("score"),
    }
)
"""Names of the metrics that are more than a statistic of a latency; one without a name is shown by its key."""

TASKS: Mapping[str, str] = MappingProxyType({"gsm8k": "GSM8K", "mmlu": "MMLU", "gpqa": "GPQA"})


def single_run(visible: float) -> Phrase:
    """What one further run of a curve can show, as a sentence for any report.

    >>> from reports.language import Language
    >>> Language("en").say(single_run(0.0305))
    'A single run here can show a change of 3.1%.'
    """
    if not math.isfinite(visible):
        return phrase(N_("What a single run here can show is not known."))
    return phrase(
        N_("A single run here can show a change of %(size)s."), size=numbers.detectable(visible, Kind.PERCENT)
    )


def verdict_name(verdict: Verdict) -> Phrase:
    """A verdict as a word of a table."""
    return Phrase(VERDICTS[verdict])


def verdict_cell(finding: Finding) -> Phrase:
    """The verdict of a finding as it is told and counted."""
    return verdict_name(told_verdict(finding))


def metric_name(key: str) -> Value:
    """A metric in words; its key where no table has words for it.

    >>> metric_name("p99_ttft"), metric_name("frobnication_rate")
    ('P99 TTFT', 'frobnication_rate')
    """
    if key in METRIC_NAMES:
        return Phrase(METRIC_NAMES[key])
    stat, _, what = key.removesuffix("_ms").partition("_")
    known = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2el": "E2EL", "intvty": N_("interactivity")}
    if what not in known:
        return key
    name: Value = known[what] if what != "intvty" else Phrase(known[what])
    if stat in _LATENCY_NAMES:
        return phrase(_LATENCY_NAMES[stat], what=name)
    return (
        f"{stat.upper()} {name}"
        if isinstance(name, str)
        else phrase(N_("%(stat)s %(what)s"), stat=stat.upper(), what=name)
    )


def task_name(task: str | None) -> str:
    """A task as people write it."""
    return TASKS.get((task or "").lower(), task or numbers.NOTHING)


def label(row: Row) -> str:
    """What a row is about, in identifiers only: config, sequence, topology, concurrency; else its key.

    A config that is judged as a whole is named by itself, a frontier by its config and sequence.
    """
    if isinstance(row, Finding) and row.scope is Scope.CONFIG and row.config:
        return row.config
    if isinstance(row, Finding) and row.scope is Scope.FRONTIER and row.config:
        return " ".join([row.config, *row.key.split(" ")[5:]])
    if row.series is None:
        return row.key
    sequence = sequence_text(row.series)
    parts = [row.config or config_key(row.series), *([sequence] if sequence != "?/?" else [])]
    parts += [layout_text(row.series.layout), *(["offload"] * row.series.offload)]
    return " ".join(parts + ([f"c{row.series.conc}"] if row.series.conc is not None else []))


def full_label(row: Row) -> str:
    """What a row is about, its task included."""
    return f"{label(row)} {task_name(row.task)}" if row.task and row.series else label(row)


def run_name(run: Run) -> Value:
    """Number and attempt of a run; local files have no number worth showing."""
    return str(run.key) if run.id > 0 else Phrase(N_("local files"))


def row_run(row: Unmatched) -> Value:
    """The run that a row comes from."""
    if row.run is None:
        return numbers.NOTHING
    return str(row.run) if row.run.id > 0 else Phrase(N_("local files"))


def head(run: Run) -> str:
    """The commit that a run measured, in twelve digits."""
    return run.head_sha[:12] if run.head_sha else numbers.NOTHING


def started(run: Run) -> str:
    """Day of a run in UTC."""
    return f"{run.started_at:%Y-%m-%d}"


KINDS: Mapping[str, str] = MappingProxyType(
    {
        "nightly": N_("nightly"),
        "push": N_("push to main"),
        "pull_request": N_("pull request"),
        "manual": N_("by hand"),
        "reused": N_("reused by a run on main"),
        "publisher": N_("nothing measured"),
        "published": N_("from the public API"),
        "local": N_("local files"),
        "other": N_("other kind"),
    }
)


def kind(name: str) -> Phrase:
    """What kind of run it was."""
    return Phrase(KINDS[name])


def measured(told: Provenance) -> str:
    """The day on which the rows were measured, or the first and the last one; the public API tells the latest only."""
    first, last = f"{told.earliest:%Y-%m-%d}", f"{told.latest:%Y-%m-%d}"
    if told.kind == RunKind.PUBLISHED:
        return f"≤ {last}"
    return first if first == last else f"{first}…{last}"


def published(run: Run) -> str:
    """The day on which a run's rows were published, where that was a step of its own or is all that is known."""
    moment = run.started_at if run_kind(run) is RunKind.PUBLISHED else run.published_at
    return f"{moment:%Y-%m-%d}" if moment else numbers.NOTHING


def side(name: str) -> Phrase:
    """Candidate or baseline."""
    return Phrase(SIDES[name])


def sameness(what: Sameness) -> Phrase:
    """Whether two images are the same software."""
    return Phrase(SAMENESS[what])


def image_change(pair: ImageChange) -> Phrase:
    """A pair of images as a sentence."""
    if pair.sameness is Sameness.SAME:
        return phrase(N_("Image on both sides: %(image)s."), image=image_text(pair.after))
    before, after = image_text(pair.before), image_text(pair.after)
    if pair.sameness is Sameness.CHANGED:
        return phrase(N_("Image changed from %(before)s to %(after)s."), before=before, after=after)
    return phrase(
        N_(
            "Image on the baseline %(before)s, on the candidate %(after)s;"
            " it is unknown whether the software is the same."
        ),
        before=before,
        after=after,
    )


def image_text(reference: str | None) -> str:
    """An image reference, whole but for the digest, of which twelve digits are enough to tell two apart."""
    if reference is None:
        return numbers.NOTHING
    name, at, digest = reference.partition("@sha256:")
    return f"{name}{at}{digest[:12]}" if at else reference


# ---- changes -------------------------------------------------------------------------------------------------

_FELL: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.PERCENT: N_("%(metric)s fell by %(size)s"),
        Kind.POINTS: N_("%(metric)s fell by %(size)s percentage points"),
    }
)
_ROSE: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.PERCENT: N_("%(metric)s rose by %(size)s"),
        Kind.TIMES: N_("%(metric)s rose to %(size)s times the baseline"),
        Kind.POINTS: N_("%(metric)s rose by %(size)s percentage points"),
    }
)
_STILL: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.PERCENT: N_("%(metric)s changed by %(size)s"),
        Kind.POINTS: N_("%(metric)s changed by %(size)s percentage points"),
    }
)


_UNMOVED = frozenset({Verdict.EQUIVALENT, Verdict.INCONCLUSIVE, Verdict.NOISY})
"""Verdicts that found no change: their numbers are told without a verb of motion."""


def change(finding: Finding, *, is_short: bool = False, beside_strict: bool = False) -> Value:
    """What a finding measured, as a clause: one fixed pattern for each kind of change and direction.

    Where the verdict is a missed gate, that stands before the change; the short clause has nothing but the one.
    """
    name = _metric(finding, beside_strict)
    how = numbers.kind(finding)
    passed = _gate(finding, name)
    if finding.effect is None or numbers.change(finding.effect, how) == numbers.NOTHING:
        return passed or phrase(N_("%(metric)s: no change measured"), metric=name)
    decided = passed if misses_gate(finding) and told_verdict(finding) is Verdict.FAILED else None
    if decided and is_short:
        return decided
    clause = _moved(finding, finding.effect, name, how)
    if not is_short and finding.baseline is not None and finding.candidate is not None:
        before, after = _both(finding)
        clause = phrase(N_("%(change)s, from %(before)s to %(after)s"), change=clause, before=before, after=after)
    return clauses([decided, clause]) if decided else clause


def _moved(finding: Finding, effect: float, name: Value, how: Kind) -> Phrase:
    if finding.verdict in _UNMOVED:
        return phrase(N_("%(metric)s %(change)s"), metric=name, change=amount(effect, how))
    size = numbers.size(effect, how)
    table = _STILL if size.rstrip("%") == "0.0" else _FELL if effect < 0 else _ROSE
    return phrase(table[how], metric=name, size=size)


def _gate(finding: Finding, name: Value) -> Phrase | None:
    """What the gate of an eval says; None without a score or a threshold."""
    score, mark = gate(finding)
    if score is None or mark is None:
        return None
    values = {"score": numbers.score(score, mark), "threshold": numbers.score(mark)}
    if misses_gate(finding):
        return phrase(N_("%(metric)s %(score)s is below the threshold %(threshold)s"), metric=name, **values)
    return phrase(N_("%(metric)s %(score)s, threshold %(threshold)s"), metric=name, **values)


def amount(effect: float | None, how: Kind) -> Value:
    """A change with its sign, a ratio in the word of the language.

    >>> amount(0.0, Kind.PERCENT), amount(1.0, Kind.TIMES).values
    ('0.0%', (('number', '2.72'),))
    """
    text = numbers.change(effect, how)
    return phrase(N_("%(number)s×"), number=text[:-1]) if text.endswith("×") else text


def _both(finding: Finding) -> tuple[str, str]:
    """Both measured values, the unit with the second only."""
    mark = gate(finding)[1]
    before, after = (numbers.measure(value, finding.metric, mark) for value in (finding.baseline, finding.candidate))
    unit = after.partition(" ")[2]
    return before.removesuffix(f" {unit}") if unit else before, after


def metric_cell(entry: Moved, rows: Iterable[Moved] = ()) -> Value:
    """The metric of an entry, and after it the change of every other metric that says the same.

    `rows` are the entries of its table: where one is of the strict match, the flexible one is named as such.
    """
    beside = any(row.metric == STRICT for one in (entry, *rows) for row in one.rows)
    parts = [_beside(row, entry.finding, beside) for row in entry.also]
    return clauses([_metric(entry.finding, beside), *parts])


def _metric(finding: Finding, beside_strict: bool = False) -> Value:
    return eval_metric(finding, beside_strict) if is_eval(finding) else metric_name(finding.metric)


def _beside(row: Finding, teller: Finding, beside_strict: bool) -> Phrase:
    size = amount(row.effect, numbers.kind(row))
    name = _metric(row, beside_strict)
    if told_verdict(row) is told_verdict(teller):
        return phrase(N_("%(metric)s %(change)s"), metric=name, change=size)
    verdict = verdict_cell(row)
    return phrase(N_("%(metric)s %(change)s (%(verdict)s)"), metric=name, change=size, verdict=verdict)


STRICT, FLEXIBLE = "em_strict", "em_flexible"


def eval_metric(finding: Finding, beside_strict: bool = False) -> Phrase:
    """Task and kind of accuracy of an eval; the flexible match is named where it stands beside the strict one."""
    is_named = beside_strict and finding.metric == FLEXIBLE
    name = Phrase(N_("accuracy (flexible match)")) if is_named else metric_name(finding.metric)
    return phrase(N_("%(task)s %(metric)s"), task=task_name(finding.task), metric=name)


def interval(finding: Finding) -> Value:
    """The 95 % interval in the kind of its change, without a sign that could be taken for a dash.

    >>> from store.records import Finding, Scope, Verdict
    >>> interval(Finding(Scope.CURVE, "k", "tput_per_gpu", Verdict.REGRESSION, low=-0.06, high=-0.04)).values
    (('low', '-5.8%'), ('high', '-3.9%'))
    """
    if finding.low is None or finding.high is None:
        return numbers.NOTHING
    low, high = (amount(end, numbers.kind(finding)) for end in (finding.low, finding.high))
    return phrase(N_("%(low)s to %(high)s"), low=low.removesuffix(" pp") if isinstance(low, str) else low, high=high)


def runs(finding: Finding) -> str:
    """Runs on both sides, baseline first."""
    return f"{finding.n_baseline} / {finding.n_candidate}"


def doubt(finding: Finding) -> Value:
    """How sure a finding is, as a list of clauses; a p-value never stands without its number of runs."""
    parts: list[Value] = []
    if finding.low is not None and finding.high is not None:
        parts.append(phrase(N_("95%% interval %(interval)s"), interval=interval(finding)))
    if finding.n_baseline or finding.n_candidate:
        if finding.p is not None:
            parts.append(phrase(N_("p %(p)s"), p=numbers.relation(finding.p)))
        before, after = numbers.count(finding.n_baseline), numbers.count(finding.n_candidate)
        parts.append(phrase(N_("runs %(before)s against %(after)s"), before=before, after=after))
    if finding.verdict not in _MOVED:
        parts += _visible(finding)
    return clauses(parts)


def _visible(finding: Finding) -> list[Value]:
    """The smallest change that could have been seen, where there is one."""
    if finding.mde is None or finding.effect is None:
        return []
    least = numbers.detectable(finding.mde, numbers.kind(finding))
    return [phrase(N_("smallest detectable change %(size)s"), size=least)]


_MOVED = frozenset({Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.MIXED, Verdict.RECOVERY})


def sure(finding: Finding) -> Value:
    """How sure a finding is, with the smallest detectable change for every verdict; a dash where nothing is known."""
    told, seen = doubt(finding), _visible(finding) if finding.verdict in _MOVED else []
    return clauses([told, *seen] if told else seen) or numbers.NOTHING


def has_values(finding: Finding) -> bool:
    """True when there are measured values to show."""
    return values(finding) != numbers.NOTHING


def told(finding: Finding, beside_strict: bool = False) -> Phrase:
    """A finding as one sentence: what, by how much, how sure."""
    sure, name = doubt(finding), label(finding)
    said = change(finding, beside_strict=beside_strict)
    if not sure:
        return phrase(N_("%(name)s: %(change)s."), name=name, change=said)
    return phrase(N_("%(name)s: %(change)s (%(doubt)s)."), name=name, change=said, doubt=sure)


def values(finding: Finding) -> str:
    """Both measured values, the unit once.

    >>> from store.records import Finding, Scope, Verdict
    >>> values(Finding(Scope.POINT, "k", "tput_per_gpu", Verdict.EQUIVALENT, baseline=1336.0, candidate=1360.9))
    '1336.0 → 1360.9 tok/s/GPU'
    """
    if finding.baseline is None and finding.candidate is None:
        return numbers.NOTHING
    return " → ".join(_both(finding))


# ---- counts --------------------------------------------------------------------------------------------------

_PARTS = (
    ("scores", N_("evals %(number)s of %(total)s")),
    ("fronts", N_("frontiers %(number)s of %(total)s")),
    ("curves", N_("curves %(number)s of %(total)s")),
    ("points", N_("points %(number)s of %(total)s")),
)


def headline(facts: Facts) -> Phrase:
    """The verdict and how much has it: evals, curves and points, each out of all."""
    parts: list[Value] = []
    for name, msgid in _PARTS:
        counts: Counts = getattr(facts, name)
        total = sum(number for _, number in counts)
        if total:
            number = numbers.count(number_of(counts, facts.verdict))
            parts.append(phrase(msgid, number=number, total=numbers.count(total)))
    beside = (
        (msgid, number_of((*facts.scores, *facts.points), verdict))
        for verdict, msgid in _BESIDE
        if verdict is not facts.verdict
    )
    parts += [phrase(msgid, number=numbers.count(seen)) for msgid, seen in beside if seen]
    word = headline_word(facts)
    if not parts:
        return phrase(N_("%(verdict)s."), verdict=word)
    return phrase(N_("%(verdict)s: %(counts)s."), verdict=word, counts=listing(parts))


_BESIDE = (
    (Verdict.FAILED, N_("failed %(number)s")),
    (Verdict.MISSING, N_("missing %(number)s")),
    (Verdict.DROPPED, N_("removed %(number)s")),
)
"""What a headline counts beside its verdict: a reader must not take what is not there for judged."""

_GOOD = frozenset({Verdict.EQUIVALENT, Verdict.IMPROVEMENT, Verdict.RECOVERY})


def headline_word(facts: Facts) -> Phrase:
    """The verdict of a comparison in words: a missed gate by its threshold, good news without a single eval as such."""
    if not facts.is_measured:
        return Phrase(N_("Nothing was measured"))
    word = Phrase(HEADLINES[facts.verdict])
    if facts.verdict is Verdict.FAILED and any(map(misses_gate, facts.lead)):
        return phrase(N_("%(verdict)s, below its threshold"), verdict=word)
    if facts.verdict in _GOOD and {verdict for verdict, _ in facts.scores} == {Verdict.MISSING}:
        return phrase(N_("%(verdict)s, but all evals are missing"), verdict=word)
    if facts.verdict in _GOOD and facts.coverage and facts.coverage.evals_expected and not facts.coverage.evals_arrived:
        return phrase(N_("%(verdict)s, but no eval arrived"), verdict=word)
    return word


def tally(counts: Counts) -> Value:
    """A count by verdict, worst first."""
    return listing(
        [
            phrase(N_("%(verdict)s %(number)s"), verdict=verdict_name(verdict), number=numbers.count(number))
            for verdict, number in counts
        ]
    )


_TALLIES: Mapping[str, str] = MappingProxyType(
    {
        "scores": N_("Evals, %(total)s in all: %(tally)s."),
        "curves": N_("Curves, %(total)s in all: %(tally)s."),
        "points": N_("Points, %(total)s in all: %(tally)s."),
    }
)


def coverage(facts: Facts) -> list[Phrase]:
    """What came of what was promised, then the counts of evals, curves and points, each summing to its total."""
    return [*promised(facts), *tallies(facts, _TALLIES)]


_PROMISED = (
    ("failed", N_("points failed: %(number)s")),
    ("missing", N_("points missing: %(number)s")),
    ("evals_failed", N_("evals failed: %(number)s")),
    ("evals_missing", N_("evals missing: %(number)s")),
    ("dropped", N_("points removed on purpose: %(number)s")),
)


def promised(facts: Facts) -> list[Phrase]:
    """How much of what the run's config promised arrived, and how the run ended where that is not success."""
    what = facts.coverage
    said: list[Phrase] = []
    if what and (what.expected or what.evals_expected):
        said.append(phrase(N_("%(counts)s."), counts=clauses([*_arrived(what), *_lost(what)])))
    if not facts.is_measured:
        said.append(Phrase(N_("The candidate holds no result, so nothing speaks of regressions or of their absence.")))
    return [*said, *_ended(facts)]


def _arrived(what: Coverage) -> list[Value]:
    pairs = (
        (N_("%(number)s of %(total)s expected points arrived"), what.arrived, what.expected),
        (N_("%(number)s of %(total)s expected evals arrived"), what.evals_arrived, what.evals_expected),
    )
    return [
        phrase(msgid, number=numbers.count(number), total=numbers.count(total))
        for msgid, number, total in pairs
        if total
    ]


def _lost(what: Coverage) -> list[Value]:
    found = ((msgid, getattr(what, name)) for name, msgid in _PROMISED)
    return [phrase(msgid, number=numbers.count(number)) for msgid, number in found if number]


def _ended(facts: Facts) -> list[Phrase]:
    """The conclusion of the newest run, which judges nothing, where it is another than success."""
    ended = facts.candidate.rows[0].conclusion if facts.candidate.rows else None
    if ended in (None, "", "success"):
        return []
    cut = facts.coverage.cut if facts.coverage else 0
    if not cut:
        return [phrase(N_("The run's conclusion is %(conclusion)s."), conclusion=ended or "")]
    said = N_("The run's conclusion is %(conclusion)s; jobs cut: %(number)s.")
    return [phrase(said, conclusion=ended or "", number=numbers.count(cut))]


def tallies(facts: Facts, says: Mapping[str, str]) -> list[Phrase]:
    """One phrase per count, by the message ids of `scores`, `curves` and `points`; what does not occur is left out."""
    said: list[Phrase] = []
    for name, msgid in says.items():
        counts: Counts = getattr(facts, name)
        if counts:
            total = numbers.count(sum(number for _, number in counts))
            said.append(phrase(msgid, total=total, tally=tally(counts)))
    return said


def hidden(what: Hidden) -> Phrase:
    """What a filter keeps from the lists."""
    return phrase(
        N_(
            "Filter %(filter)s hides rows: %(rows)s, regressions among them: %(regressions)s."
            " The verdict covers all rows."
        ),
        filter=what.by or numbers.NOTHING,
        rows=numbers.count(what.rows),
        regressions=numbers.count(what.regressions),
    )


def left_out(number: int) -> Phrase:
    """How many rows a list lost to the limit of its document."""
    return phrase(
        N_("Rows not shown here: %(number)s. The JSON form holds all of them."),
        number=numbers.count(number),
    )


def subject(facts: Facts) -> Phrase:
    """One line for a title: what the comparison is about, and its verdict."""
    if not facts.lead:
        return headline(facts)
    first, word = facts.lead[0], headline_word(facts)
    name = label(first)
    if facts.verdict is Verdict.FAILED and misses_gate(first):
        word = Phrase(HEADLINES[facts.verdict])
    if is_eval(first) or first.effect is not None:
        clause = change(first, is_short=True)
        if facts.verdict is Verdict.MIXED and first.verdict is not Verdict.MIXED:
            said = N_("%(verdict)s; worst point %(name)s: %(change)s")
            return phrase(said, name=name, verdict=word, change=clause)
        return phrase(N_("%(name)s: %(verdict)s, %(change)s"), name=name, verdict=word, change=clause)
    return phrase(N_("%(name)s: %(verdict)s"), name=name, verdict=word)


def short(facts: Facts) -> Value:
    """One line for a notification: verdict, effect, how sure, what to do next."""
    return sentences([headline(facts), *map(told, facts.lead[:1]), *map(step, facts.steps[:1])])


def foot(facts: Facts) -> Phrase:
    """Which baseline was asked for, and which rules judged."""
    return phrase(
        N_("Baseline: %(against)s. Rules of judgement: %(version)s."),
        against=facts.against or numbers.NOTHING,
        version=facts.rules_version or numbers.NOTHING,
    )


def everything(facts: Facts) -> Value:
    """The command that prints every row, also those that a document left out; empty for runs that no store has."""
    if len(facts.candidate.rows) != 1 or facts.candidate.rows[0].id <= 0 or not facts.against:
        return ""
    command = f"tracker compare run:{facts.candidate.rows[0].key} --against {facts.against} --format json"
    return phrase(N_("All rows: %(command)s"), command=command)


@dataclass(frozen=True, slots=True)
class Alike:
    """Rows of one curve and run that stand alone for the same reason."""

    name: str
    first: Unmatched


def alike(rows: Iterable[Unmatched]) -> tuple[Alike, ...]:
    """Rows that share verdict, reasons, curve and run as one, named by all their concurrencies."""
    found: dict[tuple[object, ...], list[Unmatched]] = {}
    for row in rows:
        curve = row.key if row.series is None else label(replace(row, series=replace(row.series, conc=None)))
        found.setdefault((row.verdict, row.reason, elsewhere(row), row.run, row.task, curve), []).append(row)
    return tuple(Alike(_together(same, str(place[-1])), same[0]) for place, same in found.items())


def elsewhere(row: Unmatched) -> tuple[Caveat, ...]:
    """What is known of the same point and image in other runs."""
    return tuple(doubt for doubt in row.caveats if doubt.code in ELSEWHERE)


def _together(rows: Sequence[Unmatched], curve: str) -> str:
    if len(rows) == 1:
        return full_label(rows[0])
    levels = sorted({row.series.conc for row in rows if row.series and row.series.conc is not None})
    name = " ".join([curve, *(f"c{level}" for level in levels)])
    return f"{name} {task_name(rows[0].task)}" if rows[0].task else name


# ---- what to do ----------------------------------------------------------------------------------------------

STEPS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "check_evals": (
            N_("Next: check accuracy before anything else: %(names)s."),
            N_("Next: check accuracy before anything else."),
        ),
        "confirm": (N_("Next: run again to confirm: %(names)s."), N_("Next: run again to confirm.")),
        "hold": (N_("Next: hold the merge and look at: %(names)s."), N_("Next: hold the merge.")),
        "rerun_suspected": (
            N_("Next: run the suspected points again: %(names)s."),
            N_("Next: run the suspected points again."),
        ),
        "check_gain": (
            N_("Next: check workload and client settings, the gain is implausibly large: %(names)s."),
            N_("Next: check workload and client settings, the gain is implausibly large."),
        ),
        "rerun_missing": (
            N_("Next: run what is missing, failed or invalid: %(names)s."),
            N_("Next: run what is missing, failed or invalid."),
        ),
        "run_again": (
            N_("Next: another run of the same sweep would narrow the intervals, first of: %(names)s."),
            N_("Next: another run of the same sweep would narrow the intervals."),
        ),
        "merge_safe": (
            N_("Next: nothing speaks against the merge; not decided: %(names)s."),
            N_("Next: nothing speaks against the merge."),
        ),
        "first_result": (
            N_("Next: keep this run as the first baseline: %(names)s."),
            N_("Next: keep this run as the first baseline."),
        ),
        "no_results": (
            N_("Next: find out why the run left no results: %(names)s."),
            N_("Next: find out why the run left no results."),
        ),
        "nothing_judged": (
            N_("Next: see why nothing could be compared: %(names)s."),
            N_("Next: see below why nothing could be compared."),
        ),
    }
)


def step(what: Step) -> Phrase:
    """A step as a sentence, with the things it is about."""
    named, bare = STEPS[what.code]
    if not what.rows:
        return phrase(bare)
    names: list[Value] = [full_label(row) for row in what.rows]
    if what.more:
        names.append(phrase(N_("further: %(number)s"), number=numbers.count(what.more)))
    return phrase(named, names=listing(names))
