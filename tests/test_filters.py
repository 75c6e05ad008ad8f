"""Filters of series: what fits, and errors that say what would."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from store.identity import series_key
from store.records import Layout, Role, Series, Trouble
from tracker.filters import Filters, filters, parse

NOW = datetime(2026, 6, 15, tzinfo=UTC)


def series(gpu: str = "mi355x", conc: int = 64, framework: str = "sglang", decode: Role | None = None) -> Series:
    layout = Layout(Role(8), decode, decode is not None)
    return Series("dsr1", gpu, framework, "fp4", "none", "single_turn", 8192, 1024, False, layout, conc)


KNOWN = {series_key(one): one for one in (series(), series(conc=4), series("h200"), series("h200", 256, "trt"))}


@pytest.mark.parametrize(
    ("texts", "number"),
    [
        ((), 4),
        (("hardware=mi355x",), 2),
        (("hw=MI355X", "conc>=64"), 1),
        (("gpu=mi355x,h200", "conc<=4"), 1),
        (("conc=4,256",), 2),
        (("conc!=64",), 2),
        (("framework!=sglang",), 1),
        (("dsr1-fp4-*-sglang",), 3),
        (("dsr1-fp4-h200-trt",), 1),
        (("dsr1 h200 *",), 2),
        (("disagg=true",), 0),
        (("model=dsr?",), 4),
        (("gpus>8",), 0),
    ],
)
def test_all_filters_must_hold_and_values_are_alternatives(texts: tuple[str, ...], number: int) -> None:
    asked = filters(texts, None, None, NOW)
    if number:
        assert len(asked.series(KNOWN)) == number
        return
    with pytest.raises(Trouble, match="no series fits"):
        asked.series(KNOWN)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("hardwre=h200", "did you mean hardware"),
        ("colour=red", "the fields are hardware, model"),
        ("conc=many", "whole number"),
        ("conc>=4,8", "several numbers"),
        ("model>=4", "orders words"),
        ("model=", "lacks a value"),
        ("model=a,,b", "lacks a value"),
    ],
)
def test_a_text_that_is_no_filter_says_what_would_be(text: str, said: str) -> None:
    with pytest.raises(Trouble, match=said):
        parse(text)


def test_a_filter_that_nothing_fits_is_named_with_what_there_is() -> None:
    with pytest.raises(Trouble, match=r"hardware=b200: the store has h200, mi355x"):
        filters(("model=dsr1", "hardware=b200"), None, None, NOW).series(KNOWN)
    with pytest.raises(Trouble, match="fits all of hardware=mi355x framework=trt"):
        filters(("hardware=mi355x", "framework=trt"), None, None, NOW).series(KNOWN)


def test_until_a_day_includes_it_and_since_counts_back_from_the_newest_run() -> None:
    asked = filters((), "2w", "2026-06-10", NOW)
    assert asked == Filters((), datetime(2026, 6, 1, tzinfo=UTC), datetime(2026, 6, 11, tzinfo=UTC))
    assert asked.holds(datetime(2026, 6, 10, 23, tzinfo=UTC))
    assert not asked.holds(datetime(2026, 6, 11, tzinfo=UTC))


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "6x", ""])
def test_a_text_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(Trouble, match="is no time"):
        filters((), text, None, NOW)


def test_times_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(Trouble, match="turn them round"):
        filters((), "2026-06-02", "2026-06-01", NOW)
