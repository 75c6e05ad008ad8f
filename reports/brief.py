"""Which sentence of a screen says which fact: short labels, one line per thing, a range or a count for the rest.

Every choice was made by `reports.glance`; lines depend on no language, so that all languages carry the same values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from reports import doubts, frontwords, glance, numbers
from reports.facts import Facts, Fronted, ImageChange, Listed, Moved, Note, Reason, Row, Step, is_eval, run_url
from reports.language import N_, Language, Phrase, Value, clauses, listing, phrase, sentences
from reports.phrases import (
    FLEXIBLE,
    STEPS,
    STRICT,
    change,
    foot,
    image_text,
    label,
    metric_name,
    promised,
    run_name,
    runs,
    side,
    started,
    tallies,
    tally,
    task_name,
    values,
    verdict_name,
)
from store.identity import config_key, layout_text, sequence_text
from store.records import Finding, Run, Scope

# ---- names and figures ---------------------------------------------------------------------------------------


def short_label(row: Row, room: int = 1000) -> str:
    """A label for a narrow place, `8k1k` for 8192/1024; where the room is too small the layout goes, then the sequence.

    The room is a number of characters, so that every language has the same label.
    """
    parts = label_parts(row)
    choices = (parts, (*parts[:2], *parts[3:]), (*parts[:1], *parts[3:]))
    texts = [" ".join(filter(None, choice)) for choice in choices]
    return next((text for text in texts if len(text) <= room), texts[-1])


def label_parts(row: Row) -> tuple[str, ...]:
    """Config, sequence, layout and concurrency, each as short as it can be; a row without a series is its own label."""
    if isinstance(row, Finding) and row.scope is Scope.FRONTIER and row.config:
        return (row.config, *map(_short, row.key.split(" ")[5:]))
    if row.series is None:
        return (label(row),)
    sequence = sequence_text(row.series)
    layout = layout_text(row.series.layout) + " offload" * row.series.offload
    conc = f"c{row.series.conc}" if row.series.conc is not None else ""
    return (row.config or config_key(row.series), "" if sequence == "?/?" else _short(sequence), layout, conc)


def _short(sequence: str) -> str:
    """As InferenceX writes it: `8k1k` for 8192/1024.

    >>> _short("8192/1024"), _short("1000/?"), _short("agentic")
    ('8k1k', '1000/?', 'agentic')
    """
    ends = sequence.split("/")
    if len(ends) == 2 and all(end.isdigit() and int(end) % 1024 == 0 for end in ends):
        return "".join(f"{int(end) // 1024}k" for end in ends)
    return sequence


def bounds(finding: Finding) -> Value:
    """The 95 % interval beside a change that has the unit."""
    if finding.low is None or finding.high is None:
        return numbers.NOTHING
    low, high = (numbers.change(end, numbers.kind(finding)).rstrip(" %×p") for end in (finding.low, finding.high))
    return phrase(N_("%(low)s to %(high)s"), low=low, high=high)


_SHORT_METRICS: Mapping[str, Value] = MappingProxyType(
    {
        "frontier_tput_per_gpu": Phrase(N_("frontier")),
        "latency_frontier_tput_per_gpu": Phrase(N_("frontier by latency")),
        "peak_tput_per_gpu": Phrase(N_("peak")),
        "tput_per_gpu": Phrase(N_("tput")),
        "median_tpot": "TPOT",
        "em_strict": Phrase(N_("strict")),
    }
)


def short_metric(finding: Finding, beside_strict: bool = False) -> Value:
    """A metric in a word or two; of an eval the task, and the match unless it is a flexible one that stands alone."""
    name = _SHORT_METRICS.get(finding.metric) or metric_name(finding.metric)
    if not is_eval(finding):
        return name
    task = task_name(finding.task)
    if finding.metric == FLEXIBLE:
        flexible = Phrase(N_("flexible"))
        return phrase(N_("%(task)s %(metric)s"), task=task, metric=flexible) if beside_strict else task
    return phrase(N_("%(task)s %(metric)s"), task=task, metric=name)


def glimpse(finding: Finding, width: int) -> Phrase:
    """A finding in one short line: what, by how much, how sure.

    The label gets the columns that the English line has left, so that every language has the same label.
    """
    if finding.effect is None and is_eval(finding):
        return phrase(N_("%(name)s: %(change)s"), name=short_label(finding), change=change(finding, is_short=True))
    figures = _figures(finding, "")
    return _figures(finding, short_label(finding, width - len(Language("en").say(figures))))


def _figures(finding: Finding, name: str) -> Phrase:
    fixed: dict[str, Value] = {
        "name": name,
        "metric": short_metric(finding),
        "change": numbers.change(finding.effect, numbers.kind(finding)),
        "runs": runs(finding).replace(" ", ""),
    }
    if finding.low is None or finding.high is None or finding.p is None:
        return phrase(N_("%(name)s: %(metric)s %(change)s, %(runs)s runs"), **fixed)
    return phrase(
        N_("%(name)s: %(metric)s %(change)s (%(bounds)s), p %(p)s, %(runs)s runs"),
        bounds=bounds(finding),
        p=numbers.pvalue(finding.p),
        **fixed,
    )


# ---- lines ---------------------------------------------------------------------------------------------------


def place(entry: Moved, rows: Sequence[Moved] = ()) -> Value:
    """What an entry is about inside its config; throughput is not named, since most rows tell it.

    `rows` are the others of its table: where one is of the strict match, the flexible one is named as such.
    """
    finding = entry.finding
    metric = short_metric(finding, any(row.finding.metric == STRICT for row in rows))
    inner = " ".join(filter(None, label_parts(finding)[1:]))
    if finding.scope is Scope.CONFIG:
        return _pooled(entry, metric)
    if finding.metric == "tput_per_gpu":
        return inner
    return phrase(N_("%(name)s %(metric)s"), name=inner, metric=metric) if inner else metric


def _pooled(entry: Moved, metric: Value) -> Value:
    finding = entry.finding
    if is_eval(finding):
        jobs = numbers.count(finding.n_points)
        return phrase(N_("%(metric)s, jobs: %(number)s"), metric=metric, number=jobs)
    curves = numbers.count(len(entry.inside))
    what = phrase(N_("all curves: %(number)s"), number=curves) if entry.inside else Phrase(N_("all points"))
    if finding.metric == "tput_per_gpu":
        return what
    return phrase(N_("%(name)s %(metric)s"), name=what, metric=metric)


def more(number: int) -> Phrase:
    """How many rows of the table a screen leaves out, and where they are."""
    return phrase(N_("Further rows: %(number)s; see --format markdown."), number=numbers.count(number))


def next_steps(steps: Sequence[Step], room: int) -> list[Phrase]:
    """The first steps, each naming the configs it is about; the others are counted in the last."""
    said = [_short_step(one) for one in steps[:room]]
    if (left := len(steps) - room) > 0:
        said[-1] = phrase(N_("%(step)s Further steps: %(number)s."), step=said[-1], number=numbers.count(left))
    return said


def _short_step(what: Step) -> Phrase:
    configs = list(dict.fromkeys(row.config or label(row) for row in what.rows))
    named, bare = STEPS[what.code]
    return phrase(named, names=_few(Listed(tuple(configs)))) if configs else phrase(bare)


def _few(names: Listed[str], room: int = 0) -> Value:
    """The first names, at least one and no more than fit into the room, and how many there are beside them."""
    first = [name for at, name in enumerate(names.rows[: glance.NAMES]) if not at or _fits(names.rows[: at + 1], room)]
    parts: list[Value] = [*first]
    if further := names.total - len(first):
        parts.append(phrase(N_("further: %(number)s"), number=numbers.count(further)))
    return listing(parts)


def _fits(names: Sequence[str], room: int) -> bool:
    return len(", ".join(names)) <= room


def few(rows: Sequence[Row], left_out: int, room: int) -> Value:
    """The names of the first rows, short, as many as fit into the room, and how many there are beside them."""
    return _few(Listed(tuple(map(_brief, rows)), left_out), room)


def _brief(row: Row) -> str:
    return f"{short_label(row)} {task_name(row.task)}" if row.task and row.series else short_label(row)


FRONTIERS = 3
"""Groups with other layouts that a screen tells; the others are counted."""


def frontiers(listed: Listed[Fronted]) -> list[Value]:
    """One line per group: the shift at equal interactivity, the peak, and what became of the layouts."""
    said: list[Value] = [_frontier(one) for one in listed.rows[:FRONTIERS]]
    more = listed.total - len(said)
    return [*said, *([phrase(N_("further groups: %(number)s"), number=numbers.count(more))] if more else [])]


def _frontier(one: Fronted) -> Phrase:
    shared, peak = one.frontier.interactivity.shared, numbers.change(one.peak.effect, numbers.kind(one.peak))
    fixed: dict[str, Value] = {
        "name": short_label(one.peak),
        "values": values(one.peak),
        "peak": peak,
        "layouts": frontwords.tally(one),
    }
    if shared is None:
        said = N_("%(name)s: no interactivity in common; peak %(values)s (%(peak)s); layouts: %(layouts)s")
        return phrase(said, **fixed)
    return phrase(
        N_(
            "%(name)s: %(change)s at equal interactivity (%(low)s to %(high)s); peak %(values)s (%(peak)s);"
            " layouts: %(layouts)s"
        ),
        change=numbers.change(one.shift.effect, numbers.kind(one.shift)),
        low=numbers.plain(shared[0]),
        high=numbers.plain(shared[1]),
        **fixed,
    )


_UNSEEN: Mapping[Scope, str] = MappingProxyType(
    {
        Scope.CURVE: N_("curves: %(what)s: %(names)s"),
        Scope.POINT: N_("points: %(what)s: %(names)s"),
        Scope.EVAL: N_("evals: %(what)s: %(names)s"),
    }
)


def unseen(what: glance.Unseen, room: int) -> Phrase:
    """What could not be decided, and the range of the smallest changes that could have been seen."""
    configs = Listed(tuple(row.config or label(row) for row in what.rows))
    said = clauses([tally(what.counts), *_limits(what)])
    return phrase(_UNSEEN[what.scope], what=said, names=_few(configs, room))


def _limits(what: glance.Unseen) -> list[Value]:
    if what.least is None or what.most is None:
        return []
    low, high = (numbers.detectable(f.mde, numbers.kind(f)) for f in (what.least, what.most))
    if low == high:
        return [phrase(N_("changes below %(size)s not visible"), size=high)]
    return [phrase(N_("changes below %(low)s to %(high)s not visible"), low=low.removesuffix(" pp"), high=high)]


def images(what: glance.Images, room: int) -> list[Value]:
    """One line per change, then the others as numbers."""
    said: list[Value] = [_image_line(pair, room) for pair in what.changed.rows]
    parts: list[Value] = [
        phrase(msgid, number=numbers.count(number))
        for msgid, number in (
            (N_("further changes: %(number)s"), what.changed.left_out),
            (N_("unknown whether changed: %(number)s"), what.unknown),
            (N_("unchanged: %(number)s"), what.same),
        )
        if number
    ]
    return [*said, *([listing(parts)] if parts else [])]


def _image_line(pair: ImageChange, room: int) -> Phrase:
    names = _few(Listed(pair.configs)) or numbers.NOTHING
    left = room - len(Language("en").say(names))
    before, after = _apart(image_text(pair.before), image_text(pair.after), left)
    return phrase(N_("%(names)s: %(before)s → %(after)s"), names=names, before=before, after=after)


def _apart(before: str, after: str, room: int = 0) -> tuple[str, str]:
    """Two images, the second without the repository that they share; what tags share gives way where room is short.

    >>> _apart("a/b:v1", "a/b:v2", 40), _apart("a/b:v1", "c/d:v2")
    (('a/b:v1', 'v2'), ('a/b:v1', 'c/d:v2'))
    >>> _apart("rocm/atom:rocm7.2.4_ubuntu24.04_atom0.1.4", "rocm/atom:rocm7.2.4_ubuntu24.04_atom0.1.5")
    ('rocm/atom:..._atom0.1.4', '..._atom0.1.5')
    >>> _apart("lmsysorg/sglang:v0.5.14-rocm720-mi35x", "lmsysorg/sglang:v0.5.15-rocm720-mi35x")
    ('lmsysorg/sglang:v0.5.14-rocm720-mi35x', 'v0.5.15-...')
    """
    repository, _, old = before.rpartition(":")
    other, _, new = after.rpartition(":")
    if not repository or repository != other:
        return before, after
    if len(before) + len(new) + len(":  → ") > room:
        head = max(old.rfind(mark, 0, _shared(old, new)) for mark in "_-")
        tail = max(old[::-1].rfind(mark, 0, _shared(old[::-1], new[::-1])) for mark in "_-")
        old, new = (f"...{tag[head:]}" if head > 0 else tag for tag in (old, new))
        new = f"{new[:-tail]}..." if tail > 0 else new
    return f"{repository}:{old}", new


def _shared(one: str, other: str) -> int:
    """Length of the beginning that two texts share."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def aside(facts: Facts) -> list[Phrase]:
    """What a screen only counts beside the coverage."""
    moved = sum(len(entry.rows) for entry in facts.advisory.rows) + facts.advisory.left_out
    if not moved:
        return []
    return [phrase(N_("Advisory metrics that moved, which never decide: %(number)s."), number=numbers.count(moved))]


def newest(name: str, listed: Listed[Run]) -> list[Phrase]:
    """The newest run of a side with its address, and how many there are beside it."""
    if not listed.rows:
        return []
    run, further = listed.rows[0], numbers.count(listed.total - 1)
    line: dict[str, Value] = {"side": side(name), "day": started(run), "run": run_url(run) or run_name(run)}
    if listed.total == 1:
        return [phrase(N_("%(side)s, %(day)s: %(run)s"), **line)]
    return [phrase(N_("%(side)s, %(day)s: %(run)s (further runs: %(number)s)"), number=further, **line)]


def foot_line(facts: Facts) -> Phrase:
    """Baseline, rules, and where everything is that a screen only counts."""
    return phrase(N_("%(foot)s Everything: --format markdown."), foot=foot(facts))


_SHORT_TALLIES: Mapping[str, str] = MappingProxyType(
    {
        "scores": N_("evals %(total)s: %(tally)s"),
        "curves": N_("curves %(total)s: %(tally)s"),
        "points": N_("points %(total)s: %(tally)s"),
    }
)


def counts(facts: Facts) -> list[Phrase]:
    """The counts of evals, curves and points, each summing to its total."""
    return [*promised(facts), *tallies(facts, _SHORT_TALLIES)]


_SIZES = (("evals", N_("evals %(number)s")), ("points", N_("points %(number)s")))


_SAID_BY_VERDICT = frozenset({"missing_point", "no_baseline"})
"""Reasons that add nothing to the word of the verdict."""


def group(what: glance.Group, room: int) -> Phrase:
    """Rows of one verdict and reason: how many, the first of them, and the reason once."""
    sizes = [
        phrase(msgid, number=numbers.count(number)) for name, msgid in _SIZES if (number := getattr(what, name)) > 0
    ]
    names = few(what.names, 0, room)
    values: dict[str, Value] = {"verdict": verdict_name(what.verdict), "sizes": listing([*sizes]), "names": names}
    why = _why(what)
    if not why:
        return phrase(N_("%(verdict)s %(sizes)s: %(names)s"), **values)
    return phrase(N_("%(verdict)s %(sizes)s: %(names)s: %(sentence)s"), sentence=sentences(why), **values)


def _why(what: glance.Group) -> list[Phrase]:
    said: list[Phrase] = []
    if what.reason and (what.further_reasons or what.reason.code not in _SAID_BY_VERDICT):
        said.append(doubts.sentence(what.reason))
    if what.elsewhere:
        said.append(doubts.sentence(what.elsewhere))
    return [*said, *_further_reasons(what.further_reasons)]


def _further_reasons(number: int) -> list[Phrase]:
    return [phrase(N_("Further reasons: %(number)s."), number=numbers.count(number))] if number else []


def rejected(listed: Listed[Reason]) -> list[Phrase]:
    """Rows that could not be read, as one line: how many, and the most frequent reasons."""
    if not listed:
        return []
    number = numbers.count(sum(reason.rows for reason in listed.rows))
    first = listed.first(1)
    said = [
        phrase(N_("%(sentence)s (%(number)s)"), sentence=doubts.sentence(one.caveat), number=numbers.count(one.rows))
        for one in first.rows
    ]
    why = sentences([*said, *_further_reasons(first.left_out)])
    return [phrase(N_("rows not read %(number)s: %(reasons)s"), number=number, reasons=why)]


def remarks(found: tuple[glance.Doubt, ...], left: int) -> list[Phrase]:
    """The doubts of a screen, one line each, and how many kinds are not shown."""
    said = [_doubt(one) for one in found]
    if left:
        said.append(phrase(N_("Further remarks: %(number)s."), number=numbers.count(left)))
    return said


def _doubt(what: glance.Doubt) -> Phrase:
    said = _held(what)
    if not what.others:
        return said
    number = numbers.count(what.others)
    if what.is_of_jobs:
        return phrase(N_("%(sentence)s Further jobs: %(number)s."), sentence=said, number=number)
    return phrase(N_("%(sentence)s Further ones with other values: %(number)s."), sentence=said, number=number)


def _held(what: glance.Doubt) -> Phrase:
    if what.total:
        return doubts.note(Note(what.caveat, (), what.names.total, what.total))
    if not what.names:
        return doubts.sentence(what.caveat)
    names = few(what.names.rows, what.names.left_out, 0)
    if what.is_of_jobs:
        row, further = what.names.rows[0], numbers.count(what.names.total - 1)
        name = phrase(N_("%(name)s %(metric)s"), name=short_label(row), metric=short_metric(row))
        names = listing([name, *([phrase(N_("further: %(number)s"), number=further)] if what.names.total > 1 else [])])
    return phrase(N_("%(names)s: %(sentence)s"), names=names, sentence=doubts.sentence(what.caveat))
