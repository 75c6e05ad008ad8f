"""Sentences about groups whose layouts changed: the shift at equal interactivity, the peak, the ranges, the layouts.

The shift and the peak are two claims and stand in two sentences: a larger peak says nothing of the throughput at the
interactivity that a reader needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from reports import numbers
from reports.facts import Fronted
from reports.language import N_, Phrase, Value, listing, phrase
from reports.phrases import change, label, sure
from store.identity import layout_text
from store.records import Layout, LayoutChange, LayoutKind

KINDS: Mapping[LayoutKind, str] = MappingProxyType(
    {
        LayoutKind.SAME: N_("same"),
        LayoutKind.RENAMED: N_("renamed"),
        LayoutKind.RESHAPED: N_("reshaped"),
        LayoutKind.NEW: N_("new"),
        LayoutKind.RETIRED: N_("retired"),
        LayoutKind.ABSENT: N_("not measured"),
    }
)

RULES: Mapping[str, str] = MappingProxyType(
    {
        "same": N_("The layout is the same."),
        "other_recipe": N_("The layout is the same, its recipe is another."),
        "other_words": N_("The deployment is the same, told in other words."),
        "same_gpus_per_role": N_("Each role has as many GPUs, split otherwise."),
        "same_gpus": N_("All roles together have as many GPUs, split otherwise."),
        "other_ratio": N_("The workers are the same, the ratio of prefill to decode is another."),
        "no_partner": N_("No layout of the other side stands in its place."),
        "not_asked_for": N_("The run's config does not ask for it any more."),
        "not_arrived": N_("The run's config asks for it, and nothing came."),
        "plan_unknown": N_("The candidate did not measure it, and no config says whether it should have."),
        "not_in_baseline_runs": N_("It was measured earlier, but not by the baseline runs."),
    }
)


def shift(one: Fronted) -> Phrase:
    """How far throughput moved at equal interactivity, or that the sides share none."""
    shared, name = one.frontier.interactivity.shared, label(one.shift)
    if shared is None:
        return phrase(
            N_("%(name)s: the sides have no interactivity in common, so only their peaks are compared."), name=name
        )
    return phrase(
        N_("%(name)s: at equal interactivity (%(low)s to %(high)s tok/s/user) %(change)s (%(doubt)s)."),
        name=name,
        low=numbers.plain(shared[0]),
        high=numbers.plain(shared[1]),
        change=change(replace(one.shift, metric="tput_per_gpu"), is_short=True),
        doubt=sure(one.shift),
    )


def peak(one: Fronted) -> Phrase:
    """The largest throughput of both sides, and at which interactivity each has it."""
    before, after = one.frontier.peaks
    return phrase(
        N_("%(name)s: %(change)s (%(doubt)s); interactivity there: %(before)s → %(after)s tok/s/user."),
        name=label(one.peak),
        change=change(one.peak),
        doubt=sure(one.peak),
        before=numbers.plain(before),
        after=numbers.plain(after),
    )


def latency(one: Fronted) -> list[Phrase]:
    """The same at equal end-to-end latency, where both sides reach one."""
    reach = one.frontier.latency
    if one.latency is None or reach is None or reach.shared is None:
        return []
    return [
        phrase(
            N_("%(name)s: at equal end-to-end latency (%(low)s to %(high)s s) %(change)s (%(doubt)s)."),
            name=label(one.shift),
            low=numbers.plain(reach.shared[0]),
            high=numbers.plain(reach.shared[1]),
            change=change(replace(one.latency, metric="tput_per_gpu"), is_short=True),
            doubt=sure(one.latency),
        )
    ]


_REACHED = (
    ("gained", N_("%(name)s: interactivity that only the candidate reaches: %(ranges)s tok/s/user.")),
    ("lost", N_("%(name)s: interactivity that only the baseline reaches: %(ranges)s tok/s/user.")),
)


def reached(one: Fronted) -> list[Phrase]:
    """The ranges of interactivity that one side alone covers, where there are any."""
    return [
        phrase(said, name=label(one.shift), ranges=listing([_range(part) for part in parts]))
        for side, said in _REACHED
        if (parts := getattr(one.frontier.interactivity, side))
    ]


def _range(part: tuple[float, float]) -> Phrase:
    return phrase(N_("%(low)s to %(high)s"), low=numbers.plain(part[0]), high=numbers.plain(part[1]))


def sentences_of(one: Fronted) -> list[Phrase]:
    """Everything that is said of a group, in the order of reading."""
    return [shift(one), peak(one), *latency(one), *reached(one)]


@dataclass(frozen=True, slots=True)
class LayoutRow:
    """A layout of a group as a row of the table."""

    name: str
    before: str
    after: str
    kind: Phrase
    rule: Phrase


def layouts(one: Fronted) -> tuple[LayoutRow, ...]:
    """Every layout of both sides, the changed ones first."""
    name = label(one.shift)
    changed = sorted(one.frontier.layouts, key=lambda change: change.kind is LayoutKind.SAME)
    return tuple(_row(name, change) for change in changed)


def _row(name: str, change: LayoutChange) -> LayoutRow:
    return LayoutRow(
        name, _text(change.before), _text(change.after), Phrase(KINDS[change.kind]), Phrase(RULES[change.rule])
    )


def _text(layout: Layout | None) -> str:
    return numbers.NOTHING if layout is None else layout_text(layout)


def tally(one: Fronted) -> Value:
    """What became of the layouts, in a few words."""
    counts = Counter(change.kind for change in one.frontier.layouts)
    parts: list[Value] = [
        phrase(N_("%(kind)s %(number)s"), kind=Phrase(KINDS[kind]), number=numbers.count(counts[kind]))
        for kind in LayoutKind
        if counts[kind]
    ]
    return listing(parts)


def counted(one: Fronted) -> Phrase:
    """What became of the layouts of a group, by their number."""
    return phrase(N_("%(name)s: layouts: %(counts)s."), name=label(one.shift), counts=tally(one))
