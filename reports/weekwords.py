"""Which sentence says which fact of a week: message ids and values, in no language; nothing here chooses facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from reports import numbers, phrases
from reports.doubts import sentence
from reports.language import N_, Phrase, Value, clauses, listing, phrase, sentences
from reports.week import BROKEN_SHARE, Headline, Outside, Set, Told, WeekFacts
from store.images import Sameness
from store.life import Change, ConfigBump, Direction, Precision, State
from store.records import RunKey, Scope

SHOWN_NAMES = 6
"""Configs that a sentence names; the others are counted."""

HEADLINES: Mapping[Headline, str] = MappingProxyType(
    {
        Headline.EMPTY: N_("No runs to judge in week %(week)s (%(first)s to %(last)s)."),
        Headline.BROKEN: N_("Broken data: %(counts)s; week %(week)s (%(first)s to %(last)s)."),
        Headline.NEW: N_("New regressions: %(counts)s; week %(week)s (%(first)s to %(last)s)."),
        Headline.OPEN: N_("No new regression: %(counts)s; week %(week)s (%(first)s to %(last)s)."),
        Headline.SUSPECTED: N_("Only suspicions: %(counts)s; week %(week)s (%(first)s to %(last)s)."),
        Headline.BETTER: N_("Improvements: %(counts)s; week %(week)s (%(first)s to %(last)s)."),
        Headline.CALM: N_("No change worth telling: %(counts)s; week %(week)s (%(first)s to %(last)s)."),
    }
)

_COUNTS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("evals_new",), N_("accuracy %(number)s")),
    (("new",), N_("performance %(number)s")),
    (("evals_open", "open"), N_("open %(number)s")),
    (("evals_ended", "ended"), N_("ended %(number)s")),
    (("evals_suspected", "suspected"), N_("suspected %(number)s")),
    (("evals_better", "better"), N_("improvements %(number)s")),
)
"""What a headline counts: rows of these lists together. The first two are always said, the others if there are any."""

_ALWAYS = 2


def headline(facts: WeekFacts) -> Phrase:
    """The verdict of the week and the number of rows of each list, in one line."""
    parts: list[Value] = []
    for place, (names, msgid) in enumerate(_COUNTS):
        number = sum(getattr(facts, name).total for name in names)
        if number or place < _ALWAYS:
            parts.append(phrase(msgid, number=numbers.count(number)))
    values = {"week": facts.name, "first": _day(facts.start), "last": _day(facts.last_day)}
    if facts.headline is Headline.EMPTY:
        return phrase(HEADLINES[facts.headline], **values)
    return phrase(HEADLINES[facts.headline], counts=listing(parts), **values)


def edition(facts: WeekFacts) -> Phrase:
    """That a report takes the place of an earlier one."""
    return phrase(
        N_("Edition %(number)s: it takes the place of the earlier report on this week."),
        number=numbers.count(facts.edition),
    )


def _day(moment: Any) -> str:
    return f"{moment:%Y-%m-%d}"


_TALLIES: tuple[tuple[str, str], ...] = (
    ("points", N_("Points, %(total)s in all: %(tally)s.")),
    ("curves", N_("Curves, %(total)s in all: %(tally)s.")),
    ("scores", N_("Evals, %(total)s in all: %(tally)s.")),
)


def coverage(facts: WeekFacts) -> list[Phrase]:
    """What was measured and judged, each count summing to its total, and what was not."""
    runs = {"judged": numbers.count(facts.judged), "outside": numbers.count(facts.outside.total)}
    said = [
        phrase(
            N_("Runs: judged %(judged)s, of configs %(configs)s; left out as not official %(outside)s."),
            configs=numbers.count(facts.configs),
            **runs,
        ),
        phrase(N_("Image bumps: %(number)s."), number=numbers.count(facts.bumps.total)),
    ]
    for name, msgid in _TALLIES:
        counts = getattr(facts, name)
        if counts:
            total = numbers.count(sum(number for _, number in counts))
            said.append(phrase(msgid, total=total, tally=phrases.tally(counts)))
    return [*said, *_remarks(facts)]


def _remarks(facts: WeekFacts) -> list[Phrase]:
    rejected = sum(number for _, number in facts.rejected.rows)
    found = (
        (facts.unread, N_("Runs that have not been judged yet: %(number)s.")),
        (rejected, N_("Rows that could not be read: %(number)s.")),
        (facts.taken_back, N_("Announced and taken back within the week: %(number)s.")),
    )
    return [phrase(msgid, number=numbers.count(number)) for number, msgid in found if number]


def broken(facts: WeekFacts) -> Phrase | None:
    """What is wrong with the data of a week, where much of them is."""
    if not facts.total_points or facts.lost < BROKEN_SHARE * facts.total_points:
        return None
    configs = sorted({config for one in facts.missing.rows for config in one.configs})
    return phrase(
        N_("Much of the data is missing, failed or invalid: points %(lost)s of %(total)s (%(configs)s)."),
        lost=numbers.count(facts.lost),
        total=numbers.count(facts.total_points),
        configs=_names(configs),
    )


def _names(names: Sequence[Value]) -> Value:
    """The first names of a list, and how many more there are."""
    if len(names) <= SHOWN_NAMES:
        return listing(list(names))
    more = numbers.count(len(names) - SHOWN_NAMES)
    return phrase(N_("%(names)s, further: %(more)s"), names=listing(list(names[:SHOWN_NAMES])), more=more)


# ---- one row -------------------------------------------------------------------------------------------------


def what(row: Told) -> Value:
    """What a row is about: a curve or eval, several of one config, or a pool."""
    first = row.first
    if first.pool:
        return phrase(
            N_("pool %(pool)s, curves: %(number)s (%(configs)s)"),
            pool=first.pool,
            number=numbers.count(len(first.members)),
            configs=_names(first.configs),
        )
    if len(row.changes) > 1:
        return phrase(N_("%(config)s, curves: %(number)s"), config=first.config, number=numbers.count(len(row.changes)))
    if first.scope is Scope.POINT and len(first.members) > 1:
        name = phrases.label(first.finding)
        return phrase(N_("%(name)s, points: %(number)s"), name=name, number=numbers.count(len(first.members)))
    return phrases.label(first.finding)


def metric(row: Told) -> Value:
    """The metric that tells a row."""
    finding = row.first.finding
    return phrases.eval_metric(finding) if finding.task else phrases.metric_name(finding.metric)


def amounts(row: Told) -> Value:
    """The change of a row; of several, the smallest and the largest."""
    told = [change for change in row.changes if change.finding.effect is not None]
    if not told:
        return numbers.NOTHING
    same = [change for change in told if change.finding.metric == row.first.finding.metric]
    ends = sorted({change.finding.effect or 0.0 for change in same})
    said = [phrases.amount(end, numbers.kind(row.first.finding)) for end in (ends[0], ends[-1])]
    return said[0] if said[0] == said[1] else phrase(N_("%(low)s to %(high)s"), low=said[0], high=said[1])


def software(row: Told) -> Value:
    """What differs between the software of both sides."""
    bump = row.first.bump
    if row.first.pool:
        return Phrase(N_("whatever the image"))
    before, after = phrases.image_text(bump.before), phrases.image_text(bump.after)
    if bump.recipe:
        return phrase(N_("recipe changed, image %(image)s"), image=after)
    if bump.sameness is Sameness.SAME:
        return phrase(N_("unchanged: %(image)s"), image=after)
    if bump.sameness is Sameness.CHANGED:
        return f"{before} → {after}"
    if bump.before == bump.after:
        return phrase(N_("unknown whether it changed: %(image)s"), image=after)
    return phrase(N_("%(before)s → %(after)s, unknown whether it changed"), before=before, after=after)


def since(row: Told) -> str:
    """Day of the first bad run."""
    return _day(row.first.first_at)


def run_text(key: RunKey | None) -> Value:
    """A run by number and attempt."""
    if key is None:
        return numbers.NOTHING
    return str(key) if key.id > 0 else Phrase(N_("local files"))


_STATES: Mapping[tuple[State, str], str] = MappingProxyType(
    {
        (State.RESOLVED, ""): N_("resolved by run %(run)s"),
        (State.SUPERSEDED, ""): N_("superseded by %(id)s, run %(run)s"),
        (State.WITHDRAWN, "spike"): N_("withdrawn: a spike, the level was back in run %(run)s of the same software"),
        (State.WITHDRAWN, "not_confirmed"): N_("withdrawn: not confirmed by run %(run)s"),
        (State.SUSPECTED, ""): N_("suspected: run again"),
    }
)


def state(row: Told) -> Value:
    """Where a row stands, with what there is to doubt about it."""
    alarms = _alarms(row)
    return phrase(N_("%(state)s. %(alarms)s"), state=_stands(row), alarms=alarms) if alarms else _stands(row)


def _alarms(row: Told) -> Value:
    return sentences([sentence(alarm) for alarm in row.first.alarms])


def _stands(row: Told) -> Value:
    first = row.first
    parts: list[Value] = [_state(first)]
    if first.returned is not None and first.is_live:
        parts.append(phrase(N_("back again with run %(run)s"), run=run_text(first.returned)))
    if first.since_good is not None:
        change = phrases.amount(first.since_good, numbers.kind(first.finding))
        parts.append(phrase(N_("%(change)s against the level before the earlier loss"), change=change))
    if row.is_implausible:
        parts.append(Phrase(N_("implausibly large: check workload and client settings")))
    return clauses(parts)


def _state(change: Change) -> Value:
    if change.state is State.DISMISSED and change.said:
        return phrase(N_("dismissed by %(who)s: %(reason)s"), who=change.said.by, reason=change.said.reason)
    if change.state is State.ACKNOWLEDGED and change.said:
        return phrase(N_("acknowledged by %(who)s"), who=change.said.by)
    msgid = _STATES.get((change.state, change.why))
    if msgid is not None:
        values = {"run": run_text(change.state_run), "id": change.superseded_by}
        return phrase(msgid, **{name: value for name, value in values.items() if f"%({name})s" in msgid})
    if change.confirmed is not None:
        return phrase(N_("confirmed by run %(run)s"), run=run_text(change.confirmed))
    if change.direction is Direction.BETTER:
        return Phrase(N_("one run"))
    return Phrase(N_("one run: run again to confirm"))


def ids(row: Told) -> Value:
    """The short names by which people speak of the changes of a row."""
    return listing(list(row.ids))


def named(row: Told) -> Phrase:
    """The short names of a row, said to be such."""
    return phrase(N_("id %(ids)s"), ids=ids(row))


def age(row: Told) -> Phrase:
    """Since when a row lasts, and how many days that is."""
    return phrase(N_("%(day)s, days: %(days)s"), day=since(row), days=numbers.count(row.days))


def days(row: Told) -> Phrase:
    """How many days a row lasts."""
    return phrase(N_("days: %(days)s"), days=numbers.count(row.days))


def told(row: Told) -> Value:
    """A row as sentences, for a text without a table."""
    if row.first.finding.effect is None:
        first = phrase(N_("%(what)s: %(metric)s below its threshold."), what=what(row), metric=metric(row))
    else:
        first = phrase(N_("%(what)s: %(metric)s %(change)s."), what=what(row), metric=metric(row), change=amounts(row))
    return sentences(
        [
            first,
            phrase(
                N_("Since %(day)s, run %(run)s, days: %(days)s; %(software)s."),
                day=since(row),
                run=run_text(row.first.first),
                days=numbers.count(row.days),
                software=software(row),
            ),
            phrase(N_("Id %(ids)s: %(state)s."), state=_stands(row), ids=ids(row)),
            *([alarms] if (alarms := _alarms(row)) else []),
        ]
    )


def interval(row: Told) -> Value:
    """The 95 % interval of the largest change of a row."""
    return phrases.interval(row.first.finding)


# ---- what was not judged -------------------------------------------------------------------------------------


def reason(one: Set) -> Phrase:
    """Why rows were not judged: how many, of which configs."""
    counted = N_("evals %(number)s") if one.evals else N_("points %(number)s")
    return phrase(
        N_("%(verdict)s, %(rows)s: %(reason)s Configs: %(configs)s. Runs: %(runs)s."),
        verdict=phrases.verdict_name(one.verdict),
        rows=phrase(counted, number=numbers.count(one.rows)),
        reason=sentence(one.reason),
        configs=_names(one.configs) or numbers.NOTHING,
        runs=_names([run_text(run) for run in one.runs]),
    )


def outside(one: Outside) -> Value:
    """Why a run is no part of the history."""
    head = phrase(N_("%(run)s (%(day)s):"), run=phrases.run_name(one.run), day=phrases.started(one.run))
    return sentences([head, *map(sentence, one.reasons)])


def bump(one: ConfigBump) -> str:
    """A bump of one config."""
    return f"{one.config}: {phrases.image_text(one.before)} → {phrases.image_text(one.after)}"


def precision(what: Precision) -> Phrase:
    """How often announced changes were true, as far as it was decided."""
    total = what.confirmed + what.dismissed
    if what.low is None or what.high is None:
        return Phrase(N_("Precision: no change has been confirmed or dismissed yet."))
    share, low, high = (f"{value * 100:.0f}%" for value in (what.confirmed / total, what.low, what.high))
    return phrase(
        N_(
            "Precision: %(share)s of the changes that were decided were confirmed (confirmed %(confirmed)s,"
            " dismissed %(dismissed)s; 95%% interval %(low)s to %(high)s)."
        ),
        share=share,
        low=low,
        high=high,
        confirmed=numbers.count(what.confirmed),
        dismissed=numbers.count(what.dismissed),
    )


def lone(facts: WeekFacts) -> Phrase:
    """The single points that are counted only."""
    return phrase(
        N_("Single points and eval jobs that moved under unchanged software, not listed: %(number)s."),
        number=numbers.count(facts.lone),
    )


def foot(facts: WeekFacts) -> Phrase:
    """By which rules the week was judged."""
    return phrase(N_("Rules of judgement %(rules)s; a week is told as it stood at its end."), rules=facts.rules_version)


FILTERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "week_age": age,
        "week_amounts": amounts,
        "week_broken": lambda facts: broken(facts) or "",
        "week_bump": bump,
        "week_coverage": coverage,
        "week_day": _day,
        "week_days": days,
        "week_edition": edition,
        "week_foot": foot,
        "week_headline": headline,
        "week_ids": ids,
        "week_interval": interval,
        "week_lone": lone,
        "week_metric": metric,
        "week_named": named,
        "week_outside": outside,
        "week_precision": precision,
        "week_reason": reason,
        "week_run": run_text,
        "week_since": since,
        "week_software": software,
        "week_state": state,
        "week_told": told,
        "week_what": what,
    }
)
"""What the weekly templates say facts with."""
