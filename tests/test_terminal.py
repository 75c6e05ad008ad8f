"""The screen: the verdict first, all on one screen, whole numbers, 80 columns, colour only where it is wanted."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from reports import facts, parity
from reports.channels import terminal
from store.records import Caveat, Comparison, Finding, Layout, Role, Run, Verdict
from tests.sayings import (
    AFTER,
    BEFORE,
    a_finding,
    a_large_sweep,
    a_random_comparison,
    a_screen,
    a_series,
    a_wide_sweep,
    an_eval,
    matches_golden,
)


def screen(given: Comparison, lang: str = "en", width: int = 80, *, colour: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colour, color_system="standard" if colour else None)
    terminal.show(facts.select(given), lang, console)
    return out.getvalue()


def compared(*findings: Finding) -> Comparison:
    return Comparison(AFTER, BEFORE, "previous", findings, (), (), "1")


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_screen_of_one_of_everything_is_the_golden_one(lang: str, width: int) -> None:
    lines = [line.rstrip() for line in screen(a_screen(), lang, width).splitlines()]
    assert matches_golden(f"screen.{lang}.{width}.txt", "\n".join(lines) + "\n")


def test_five_lines_say_what_moved_by_how_much_how_sure_and_what_to_do() -> None:
    lines = screen(a_screen()).splitlines()
    assert lines[0] == "Regression: evals 1 of 2, curves 1 of 4, points 2 of 10, failed 1, missing 1."
    assert lines[1] == "dsr1-fp8-h200-sglang c64: GSM8K -35.5 pp (-36.3 to -34.7), p 0.0021, 2/1 runs"
    assert lines[2] == "dsr1-fp8-h200-sglang 8k1k tp8: tput -8.2% (-9.2 to -7.2), p 0.0004, 3/1 runs"
    assert lines[3] == "Next: check accuracy before anything else: dsr1-fp8-h200-sglang."
    assert lines[4] == "Next: run again to confirm: dsr1-fp8-h200-sglang. Further steps: 2."
    assert lines[5] == ""


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_screen_but_an_address(lang: str, width: int) -> None:
    given = [a_wide_sweep(40), *map(a_random_comparison, range(30))]
    wide = [line for one in given for line in screen(one, lang, width).splitlines() if cell_len(line) > width]
    assert [line for line in wide if "https://" not in line] == []


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [80, 120])
def test_the_screen_of_a_large_comparison_stays_under_60_lines(lang: str, width: int) -> None:
    for given in (a_wide_sweep(80), a_large_sweep(500, 2), a_screen()):
        assert len(screen(given, lang, width).splitlines()) < 60


def test_what_a_screen_leaves_out_is_counted() -> None:
    assert "Further rows: 238; see --format markdown." in screen(a_large_sweep(500, 2))
    text = screen(a_wide_sweep(80))
    rows = len(re.findall(r"^(?:regression|mixed|improvement|suspected) ", text, re.MULTILINE))
    left = int(re.findall(r"Further rows: (\d+)", text)[0])
    chosen = facts.select(a_wide_sweep(80))
    opened = sum(entry.finding.verdict is Verdict.MIXED for entry in chosen.worse.rows)
    assert rows + left == chosen.accuracy.total + chosen.worse.total + opened + chosen.better.total
    assert "further changes: 75" in text
    assert re.search(r"^  Further remarks: \d+\.$", text, re.MULTILINE)
    assert "rows not read 20: " in text
    assert "Further reasons: 19." in " ".join(text.split())
    assert "Advisory metrics that moved, which never decide: 240." in text


def test_counts_sum_on_the_screen_too() -> None:
    for seed in range(100):
        text = screen(a_random_comparison(seed), width=300)
        for total, tally in re.findall(r"^  (?:evals|curves|points) (\d+): (\D.*)$", text, re.MULTILINE):
            assert sum(map(int, re.findall(r"(\d+)(?:,|$)", tally))) == int(total)


def test_both_languages_carry_the_same_numbers_and_names() -> None:
    for given in (a_screen(), a_wide_sweep(30), *map(a_random_comparison, range(200))):
        english, chinese = (screen(given, lang, 1000) for lang in ("en", "zh"))
        assert parity.parity(english, chinese) == ()
        assert parity.typography("\n".join(_sentences(chinese))) == ()


def _sentences(text: str) -> list[str]:
    """The screen without its table, whose columns are set by blanks."""
    return [line for line in text.splitlines() if not re.search(r"\S {2,}\S", line)]


def test_a_mixed_curve_is_followed_by_the_point_that_fell() -> None:
    """Case 25 C: -30.0 % at one concurrency must be on the first screen."""
    curve = a_finding(a_series(None), "tput_per_gpu", Verdict.MIXED, 6.2)
    slow = replace(curve, metric="median_tpot", effect=-0.05)
    points = [
        a_finding(a_series(conc), metric, verdict, percent)
        for conc, verdict, tput in ((1, Verdict.IMPROVEMENT, 20.0), (64, Verdict.REGRESSION, -30.0))
        for metric, percent in (("tput_per_gpu", tput), ("median_tpot", (1 / (1 + tput / 100) - 1) * 100))
    ]
    lines = screen(compared(curve, slow, *points)).splitlines()
    mixed = next(place for place, line in enumerate(lines) if line.startswith("mixed"))
    assert re.match(r"regression +8k1k tp8 c64 +-30\.0%", lines[mixed + 1])
    assert lines[1].startswith("dsr1-fp8-h200-sglang 8k1k c64: tput -30.0%")


def test_throughput_and_tpot_that_say_the_same_are_one_line() -> None:
    curve = a_series(None)
    text = screen(
        compared(
            a_finding(curve, "median_tpot", Verdict.REGRESSION, 9.0),
            a_finding(curve, "tput_per_gpu", Verdict.REGRESSION, -8.2),
        )
    )
    assert re.findall(r"^regression .*$", text, re.MULTILINE) == [
        "regression 8k1k tp8  -8.2% -9.2 to -7.2 0.0004 3/1 2.6%"
    ]


def test_tpot_is_named_where_it_tells_a_curve_of_several_nodes() -> None:
    series = replace(a_series(None), layout=Layout(Role(4, 4, True), Role(8, 8, workers=4), True))
    found = [a_finding(series, m, Verdict.REGRESSION, p) for m, p in (("tput_per_gpu", -8.2), ("median_tpot", 9.0))]
    narrow, wide = (screen(compared(*found), width=width) for width in (80, 120))
    assert "\nregression 8k1k mn:Ptp4-ep4-dpa+D4xtp8-ep8 TPOT\n" in narrow, "a long name has a line of its own"
    assert re.search(r"^regression dsr1-fp8-h200-sglang 8k1k mn:Ptp4-ep4-dpa\+D4xtp8-ep8 TPOT +\+9\.0%", wide, re.M)


def test_a_doubt_that_many_share_is_one_line_and_a_minor_one_is_counted() -> None:
    doubts = (Caveat.of("recipe_changed"), Caveat.of("completion_unknown"))
    found = [
        a_finding(a_series(conc), "tput_per_gpu", Verdict.REGRESSION, -9.0, caveats=doubts) for conc in range(1, 13)
    ]
    calm = a_finding(a_series(99), "tput_per_gpu", Verdict.EQUIVALENT, 0.0)
    text = screen(compared(*found, calm))
    assert "\n  12 of 13: The recipe changed between the sides.\n  Further remarks: 1.\n" in text
    assert "succeeded" not in text


def test_what_could_not_be_seen_is_told_as_a_range() -> None:
    curves = [
        a_finding(a_series(None, tp=tp), "tput_per_gpu", Verdict.INCONCLUSIVE, 1.0, mde=mde)
        for tp, mde in ((4, 0.02), (8, 0.09))
    ]
    text = screen(compared(*curves, an_eval(64, 0.95, 0.949, Verdict.INCONCLUSIVE)))
    assert "curves: inconclusive 2; changes below 2.0% to 9.4% not visible:" in text
    assert "evals: inconclusive 1; changes below 1.4 pp not visible:" in text


def test_a_chinese_line_never_begins_with_a_closing_mark() -> None:
    for given in (a_wide_sweep(40), *map(a_random_comparison, range(60))):
        assert [line for line in screen(given, "zh").splitlines() if line.lstrip()[:1] in tuple("，。：；）、")] == []


def test_addresses_of_runs_stay_whole() -> None:
    assert "https://github.com/SemiAnalysisAI/InferenceX/actions/runs/30000000009/attempts/2\n" in screen(a_screen())


def test_colour_is_used_on_a_terminal_and_not_where_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[1;31mRegression" in screen(a_screen(), colour=True)
    assert "\x1b[1;31mregression" in screen(a_screen(), colour=True)
    assert "\x1b[" not in screen(a_screen())
    monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    terminal.show(facts.select(a_screen()), "en", Console(file=out, force_terminal=True, width=80))
    assert "31m" not in out.getvalue()


def test_both_languages_follow_one_another() -> None:
    text = screen(a_screen(), "both")
    assert text.index("Regression: evals") < text.index("回归：评估")


def test_a_filter_says_what_it_hides() -> None:
    out = io.StringIO()
    chosen = facts.select(a_screen(), keep=lambda row: row.verdict is Verdict.EQUIVALENT, filtered_by="equivalent")
    terminal.show(chosen, "en", Console(file=out, width=120))
    assert "Filter equivalent hides rows: 14, regressions among them: 5." in out.getvalue()


def test_markup_in_names_is_text() -> None:
    local = Run(-5, 1, AFTER[0].started_at, event="local")
    text = screen(replace(a_screen(), candidate=(local,), against="[red]x[/red]"))
    assert "[red]x[/red]" in text
    assert "candidate, 2026-05-13: local files" in text


def test_doubts_of_one_code_with_other_values_are_counted_beside_the_lowest() -> None:
    def below(conc: int, score: float) -> Finding:
        return an_eval(conc, None, score, Verdict.FAILED, Caveat.of("below_threshold", score=score, threshold=0.91))

    given = Comparison(AFTER, BEFORE, "previous", (below(16, 0.9), below(64, 0.85), below(256, 0.88)), (), (), "1")
    (line,) = [one for one in screen(given, "en", 200).splitlines() if "Score" in one]
    assert line == (
        "  dsr1-fp8-h200-sglang tp8 c64 GSM8K: Score 0.8500 is below the threshold 0.9100. Further jobs: 2."
    )


def test_the_matches_of_one_eval_are_told_apart() -> None:
    job = an_eval(64, 0.95, 0.9, Verdict.REGRESSION)
    text = screen(compared(job, replace(job, metric="em_strict", verdict=Verdict.SUSPECTED)), "en", 120)
    assert "tp8 c64 GSM8K flexible" in text
    assert "tp8 c64 GSM8K strict" in text
