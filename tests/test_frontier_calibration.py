"""Frontiers on simulated groups: few false alarms, honest intervals, and losses of the printed size are found."""

from __future__ import annotations

import pytest

from bench.frontier import STORIES, tally

PAIRS = 100


@pytest.mark.parametrize("place", [0, 1])
def test_unchanged_groups_raise_few_alarms_whatever_their_layouts(place: int) -> None:
    """At most 2 % wrong: of 100 pairs more than 6 have a chance of 0.4 %."""
    found = tally(STORIES[False][place], 1, PAIRS, several=False, power=False)
    assert found.wrong <= 6
    assert found.held >= 88


def test_a_replaced_layout_is_judged_with_honest_intervals_and_the_printed_power() -> None:
    found = tally(STORIES[False][2], 3, PAIRS, several=False)
    assert found.wrong <= 6
    assert found.held >= 88
    assert 68 <= found.found <= 95


def test_several_nodes_are_noisier_and_raise_no_more_alarms() -> None:
    one, several = (tally(STORIES[kind][1], 3, PAIRS // 2, several=kind, power=False) for kind in (False, True))
    assert several.wrong <= 4
    assert min(several.sizes) > min(one.sizes)
