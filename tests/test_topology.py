"""Layouts are paired as a reader would pair them: labelled changes, and laws that hold for any two sides."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from store.identity import layout_text
from store.records import Layout, LayoutKind, Role
from tracker.topology import RULES, Shape, match

LABELS: list[Mapping[str, Any]] = yaml.safe_load((Path(__file__).parent / "data" / "topology.yaml").read_text("utf-8"))
_ROLE = re.compile(r"(?:(\d+)x)?tp(\d+)((?:-(?:pp|dcp|pcp|ep)\d+)*)(-dpa)?")
_PAIR = re.compile(r"(\S+)? ?> ?(\S+)?: (\w+)")
ENOUGH = 0.95


def layout(text: str) -> Layout:
    """What `layout_text` wrote."""
    plain = text.removeprefix("mn:")
    prefill, _, decode = plain.removeprefix("P").partition("+D")
    return Layout(role(prefill), role(decode) if decode else None, text.startswith("mn:"))


def role(text: str) -> Role:
    found = _ROLE.fullmatch(text)
    assert found, text
    sizes = {name: int(size) for name, size in re.findall(r"-([a-z]+)(\d+)", found[3])}
    return Role(tp=int(found[2]), workers=int(found[1] or 1), dp_attention=bool(found[4]), **sizes)


def labelled(change: Mapping[str, Any]) -> set[tuple[str, str, str]]:
    """(before, after, kind); empty where a side has no layout."""
    found = (_PAIR.fullmatch(text) for text in change["pairs"])
    return {(one[1] or "", one[2] or "", one[3]) for one in found if one}


def judged(change: Mapping[str, Any]) -> set[tuple[str, str, str]]:
    before, after = change.get("recipes", (None, None))
    pairs = labelled(change)
    found = match(
        (Shape(layout(old), before) for old, _, _ in sorted(pairs) if old),
        (Shape(layout(new), after) for _, new, _ in sorted(pairs) if new),
    )
    return {
        (layout_text(one.before) if one.before else "", layout_text(one.after) if one.after else "", one.kind.value)
        for one in found
    }


def test_the_labelled_changes_are_enough_and_hold_every_kind() -> None:
    kinds = {kind for change in LABELS for *_, kind in labelled(change)}
    assert len(LABELS) >= 40
    assert kinds == {kind.value for kind in LayoutKind} - {"absent"}
    assert all(len(labelled(change)) == len(change["pairs"]) for change in LABELS)


def test_labelled_changes_are_told_as_labelled() -> None:
    """Of whole changes: one wrong pair makes a change wrong."""
    wrong = [change["name"] for change in LABELS if judged(change) != labelled(change)]
    right = 1 - len(wrong) / len(LABELS)
    assert right >= ENOUGH, f"{right:.1%} right; wrong: {wrong}"


def test_both_changes_that_readers_asked_about_are_right() -> None:
    assert [change["name"] for change in LABELS[:4] if judged(change) != labelled(change)] == []


@pytest.mark.parametrize(
    ("before", "after", "rule"),
    [
        ("tp8", "tp8", "same"),
        ("mn:2xtp8", "2xtp8", "other_words"),
        ("Ptp4+D2xtp8", "Ptp4+Dtp16", "same_gpus_per_role"),
        ("P2xtp4+Dtp4", "Ptp4+D2xtp4", "same_gpus"),
        ("Ptp8+Dtp8", "Ptp8+D2xtp8", "other_ratio"),
        ("tp8", "tp8-ep8", "no_partner"),
    ],
)
def test_every_pair_names_the_rule_that_joined_it(before: str, after: str, rule: str) -> None:
    assert {one.rule for one in match([Shape(layout(before))], [Shape(layout(after))])} == {rule}


def test_a_recipe_that_nobody_knows_renames_nothing() -> None:
    known, unknown = Shape(layout("tp8"), "a"), Shape(layout("tp8"))
    assert [one.kind for one in match([known], [unknown])] == [LayoutKind.SAME]


def test_of_two_that_fit_the_one_with_the_same_concurrencies_is_taken() -> None:
    idle, busy = (Shape(layout(f"Ptp4+D{n}xtp{16 // n}"), concs=frozenset(c)) for n, c in ((2, {1, 2}), (4, {512})))
    (reshaped, retired) = match([idle, busy], [Shape(layout("Ptp4+Dtp16"), concs=frozenset({512}))])
    assert (reshaped.kind, reshaped.before) == (LayoutKind.RESHAPED, busy.layout)
    assert (retired.kind, retired.before) == (LayoutKind.RETIRED, idle.layout)


_ROLES = st.builds(
    Role,
    tp=st.sampled_from([1, 4, 8]),
    ep=st.sampled_from([1, 8]),
    dp_attention=st.booleans(),
    workers=st.integers(1, 3),
)
_SIDES = st.lists(st.builds(Layout, _ROLES, st.none() | _ROLES), unique=True, max_size=6)


@given(_SIDES, _SIDES)
def test_every_layout_of_both_sides_stands_exactly_once(before: list[Layout], after: list[Layout]) -> None:
    found = match(map(Shape, before), map(Shape, after))
    assert sorted(layout_text(one.before) for one in found if one.before) == sorted(map(layout_text, before))
    assert sorted(layout_text(one.after) for one in found if one.after) == sorted(map(layout_text, after))


@given(_SIDES, _SIDES)
def test_swapping_the_sides_turns_new_into_retired_and_keeps_every_pair(
    before: list[Layout], after: list[Layout]
) -> None:
    there, back = match(map(Shape, before), map(Shape, after)), match(map(Shape, after), map(Shape, before))
    counts = [sorted(one.rule for one in side) for side in (there, back)]
    assert counts[0] == counts[1]
    assert [one.kind for one in match(map(Shape, before), map(Shape, before))] == [LayoutKind.SAME] * len(before)


@given(_SIDES, _SIDES)
def test_the_order_of_the_layouts_changes_nothing(before: list[Layout], after: list[Layout]) -> None:
    turned = match(map(Shape, before[::-1]), map(Shape, after[::-1]))
    assert match(map(Shape, before), map(Shape, after)) == turned


def test_every_rule_decides_some_labelled_change_or_a_case_above() -> None:
    assert set(RULES) == {"same", "other_recipe", "other_words", "same_gpus_per_role", "same_gpus", "other_ratio"}
