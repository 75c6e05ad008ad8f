"""The screen: the verdict in the first line, whole numbers, 80 columns, colour only where it is wanted."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from reports import facts
from reports.channels import terminal
from store.records import Comparison, Run
from tests.sayings import AFTER, a_large_sweep, a_random_comparison, a_screen, matches_golden


def screen(given: Comparison, lang: str, width: int = 80, *, colour: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colour, color_system="standard" if colour else None)
    terminal.show(facts.select(given), lang, console)
    return out.getvalue()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_screen_of_one_of_everything_is_the_golden_one(lang: str) -> None:
    lines = [line.rstrip() for line in screen(a_screen(), lang, 100).splitlines()]
    assert matches_golden(f"screen.{lang}.txt", "\n".join(lines) + "\n")


def test_the_first_line_is_the_verdict_and_the_next_step_comes_before_the_tables() -> None:
    lines = screen(a_screen(), "en", 120).splitlines()
    assert lines[0] == "Regression: evals 1 of 2, curves 1 of 4, points 2 of 10."
    assert any(line.startswith("Next: check accuracy") for line in lines[:6])


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_no_line_is_wider_than_80_columns_but_an_address(lang: str) -> None:
    for seed in range(30):
        wide = [line for line in screen(a_random_comparison(seed), lang).splitlines() if cell_len(line.rstrip()) > 80]
        assert [line for line in wide if "https://" not in line] == []


def test_numbers_stay_whole_at_80_columns() -> None:
    text = screen(a_screen(), "en")
    assert "-20.9% to -19.1%" in text
    assert "1500.0" not in text.split("What got worse")[0]


def test_addresses_of_runs_stay_whole() -> None:
    assert "https://github.com/SemiAnalysisAI/InferenceX/actions/runs/30000000009/attempts/2" in screen(
        a_screen(), "en"
    )


def test_colour_is_used_on_a_terminal_and_not_where_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[1;31mRegression" in screen(a_screen(), "en", colour=True)
    assert "\x1b[" not in screen(a_screen(), "en")
    monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    terminal.show(facts.select(a_screen()), "en", Console(file=out, force_terminal=True, width=80))
    assert "\x1b[1;31m" not in out.getvalue()
    assert "31m" not in out.getvalue()


def test_both_languages_follow_one_another() -> None:
    text = screen(a_screen(), "both")
    assert text.index("Regression: evals") < text.index("回归：评估")


def test_a_large_sweep_is_cut_and_says_so() -> None:
    text = screen(a_large_sweep(500, 2), "en")
    assert "Rows not shown here: 190." in text
    assert len(text.splitlines()) < 400


def test_markup_in_names_is_text() -> None:
    local = Run(-5, 1, AFTER[0].started_at, event="local")
    text = screen(replace(a_screen(), candidate=(local,), against="[red]x[/red]"), "en")
    assert "[red]x[/red]" in text
    assert "candidate, 2026-05-13: local files" in text
