"""Which words tell what differs between the sides of a change, its class, and what its controls did; never why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from reports import numbers
from reports.doubts import EVENT_NAMES
from reports.facts import Attributed
from reports.language import N_, Phrase, Value, clauses, listing, phrase
from reports.phrases import image_text, label
from store.records import Attribution, Difference, Differs

CLASSES: Mapping[Differs, str] = MappingProxyType(
    {
        Differs.UNKNOWN: N_("not recorded"),
        Differs.IMAGE: N_("image"),
        Differs.RECIPE: N_("recipe"),
        Differs.TOPOLOGY: N_("topology"),
        Differs.HARNESS: N_("test harness"),
        Differs.POOL: N_("pool of machines"),
    }
)
"""What differs, as a class."""

SAME = N_("same image, other numbers")

FACTS: Mapping[str, str] = MappingProxyType(
    {
        "image": N_("image %(before)s → %(after)s"),
        "recipe": N_("recipe %(before)s → %(after)s"),
        "layout": N_("topology %(before)s → %(after)s"),
        "pool": N_("pool of machines %(before)s → %(after)s"),
        "client_image": N_("client image %(before)s → %(after)s"),
        "driver_version": N_("driver %(before)s → %(after)s"),
        "engine_patch": N_("modified files of the engine %(before)s → %(after)s"),
    }
)
"""What each side says, by the name of the fact; a setting without a row is told by its own name."""

_SETTING = N_("%(field)s %(before)s → %(after)s")
_EVENT = N_("test harness: %(event)s")
_UNKNOWN: Mapping[str, str] = MappingProxyType(
    {
        "image": N_("image %(before)s → %(after)s, not known whether it is the same"),
        "recipe": N_("recipe %(before)s → %(after)s, recorded on one side only"),
    }
)


def classes(found: Attribution) -> Value:
    """The class, with the further ones behind it (`image + recipe`)."""
    if found.is_same and found.kind is Differs.UNKNOWN:
        return Phrase(SAME)
    said: Value = ""
    for kind in found.kinds:
        name = Phrase(CLASSES[kind])
        said = phrase(N_("%(first)s + %(next)s"), first=said, next=name) if said else name
    return said


def differences(found: Attribution) -> Value:
    """Every recorded difference with both sides."""
    return clauses([difference(one) for one in found.differences]) or numbers.NOTHING


def difference(one: Difference) -> Phrase:
    """One difference; a side that says nothing is a dash."""
    if one.between:
        named = phrase(EVENT_NAMES[one.between]) if one.between in EVENT_NAMES else one.between
        return phrase(_EVENT, event=named)
    before, after = (image_text(text) for text in (one.before, one.after))
    unknown = _UNKNOWN.get(one.what) if one.kind is Differs.UNKNOWN else None
    msgid = unknown or FACTS.get(one.what)
    if msgid is None:
        return phrase(_SETTING, field=one.what, before=before, after=after)
    return phrase(msgid, before=before, after=after)


def controls(found: Attribution, how: numbers.Kind) -> Phrase:
    """What curves of unchanged software on the same machines did."""
    what = found.controls
    if not what.total:
        return Phrase(N_("none"))
    said: dict[str, Value] = {"total": numbers.count(what.total), "moved": numbers.count(what.moved)}
    if not what.moved:
        return phrase(N_("%(total)s of %(total)s unmoved"), total=said["total"])
    return phrase(
        N_("%(moved)s of %(total)s moved together with it, by %(change)s in the middle"),
        change=numbers.change(what.effect, how),
        **said,
    )


def names(one: Attributed) -> Value:
    """The first things of a group, and how many there are beside them."""
    first: list[Value] = [label(row) for row in one.rows]
    if one.more:
        first.append(phrase(N_("further: %(number)s"), number=numbers.count(one.more)))
    return listing(first)


def of_group(one: Attributed) -> Phrase:
    """What the controls of a group did."""
    return controls(one.attribution, numbers.kind(one.rows[0]))


SHOWN = 2
"""Classes that a screen names; the changes of the others are counted."""


def lines(groups: Iterable[Attributed]) -> list[Value]:
    """How many changes have which class, that of the worst one first, and with how many most controls moved too."""
    tally: dict[Value, int] = {}
    known = tuple(groups)
    for one in known:
        name = classes(one.attribution)
        tally[name] = tally.get(name, 0) + one.number
    if not known:
        return []
    parts: list[Value] = [
        phrase(N_("%(class)s %(number)s"), **{"class": name}, number=numbers.count(number))
        for name, number in list(tally.items())[:SHOWN]
    ]
    if more := sum(list(tally.values())[SHOWN:]):
        parts.append(phrase(N_("further: %(number)s"), number=numbers.count(more)))
    moved = numbers.count(_with_moved_controls(known))
    return [clauses([listing(parts), phrase(N_("controls moved too: %(number)s"), number=moved)])]


def _with_moved_controls(groups: Iterable[Attributed]) -> int:
    """The changes most of whose controls moved too."""
    most = (one.number for one in groups if 2 * one.attribution.controls.moved > one.attribution.controls.total)
    return sum(most)
