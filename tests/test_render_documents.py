"""Documents: the verdict first, one pattern for each kind of change, a limit that cuts by importance, two languages."""

from __future__ import annotations

import math
import re
import time
from dataclasses import replace

import pytest
from jinja2 import UndefinedError
from markdown_it import MarkdownIt

from reports import doubts, escapes, facts, parity, render
from reports.language import Language
from reports.phrases import change
from store.records import Caveat, Comparison, Finding, JobCount, Layout, Role, Scope, Verdict
from tests.sayings import (
    AFTER,
    BEFORE,
    NEW,
    OLD,
    SHA,
    a_finding,
    a_large_sweep,
    a_random_comparison,
    a_screen,
    a_series,
    a_wide_sweep,
    alone,
    an_eval,
    matches_golden,
)

BILINGUAL = ("comparison", "comment", "title", "commit", "short")


def said(document: str, lang: str, *findings: Finding) -> str:
    return render.render(facts.select(Comparison(AFTER, BEFORE, "previous", findings, (), (), "1")), document, lang)


def with_history(given: Comparison) -> facts.Facts:
    return facts.select(given, history={given.findings[0].key: [1.0, 1.02, 0.99, 1.0, 0.92]})


# ---- what is said --------------------------------------------------------------------------------------------


def test_the_comment_of_one_of_everything_is_the_golden_one() -> None:
    comment = render.render(with_history(a_screen()), "comment", "both")
    assert matches_golden("comment.md", re.sub(r"version=\S+", "version=X", comment))


def test_the_comparison_of_one_of_everything_is_the_golden_one() -> None:
    assert matches_golden("comparison.md", render.render(with_history(a_screen()), "comparison", "both"))


LONG = replace(
    a_series(None),
    model="minimaxm3",
    gpu="gb300",
    framework="dynamo-vllm",
    layout=Layout(Role(2, 2, True, 3), Role(16, 16, True), True),
)
"""A name as long as real ones get."""


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        (
            "en",
            (
                "Regression: curves 1 of 1",
                "fell by 8.2%",
                "95% interval",
                "runs 3 against 1",
                "Next: run again to confirm",
            ),
        ),
        ("zh", ("回归：曲线 1 条中 1 条", "下降 8.2%", "95% 区间", "基线 3 次、候选 1 次运行", "下一步：重跑以确认")),
    ],
)
def test_the_first_300_characters_suffice_with_the_longest_names(lang: str, words: tuple[str, ...]) -> None:
    start = said("comment", lang, a_finding(LONG, "tput_per_gpu", Verdict.REGRESSION, -8.2))[:300]
    assert [word for word in words if word not in start] == []


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_first_300_characters_hold_verdict_effect_sureness_and_next_step(lang: str) -> None:
    start = render.render(facts.select(a_screen()), "comment", lang)[:300]
    words = {
        "en": ("Regression: evals 1 of 2", "fell by 35.5 percentage points", "95% interval", "Next: check accuracy"),
        "zh": ("回归：评估 2 项中 1 项", "下降 35.5 个百分点", "95% 区间", "下一步：首先检查准确率"),
    }
    assert [word for word in words[lang] if word not in start] == []


@pytest.mark.parametrize(
    ("percent", "english", "chinese"),
    [
        (-20.0, "throughput per GPU fell by 20.0%", "每 GPU 吞吐量下降 20.0%"),
        (4.7, "throughput per GPU rose by 4.7%", "每 GPU 吞吐量上升 4.7%"),
        (188.0, "throughput per GPU rose to 2.88 times the baseline", "每 GPU 吞吐量升至基线的 2.88 倍"),
        (-96.0, "throughput per GPU fell by 96.0%", "每 GPU 吞吐量下降 96.0%"),
        (0.004, "throughput per GPU changed by 0.0%", "每 GPU 吞吐量变化 0.0%"),
        (0.04, "throughput per GPU rose by 0.04%", "每 GPU 吞吐量上升 0.04%"),
    ],
)
def test_each_kind_of_change_has_one_pattern(percent: float, english: str, chinese: str) -> None:
    finding = a_finding(a_series(None), "tput_per_gpu", Verdict.REGRESSION, percent)
    assert [Language(code).say(change(finding)) for code in ("en", "zh")] == [english, chinese]


@pytest.mark.parametrize(
    ("metric", "before", "after", "words"),
    [
        ("mean_ttft_ms", 3123.0056, 2068.6233, "mean TTFT fell by 33.8%, from 3123.0 to 2068.6 ms"),
        ("tput_per_gpu", 1000.0, 800.0, "throughput per GPU fell by 20.0%, from 1000.0 to 800.0 tok/s/GPU"),
        ("median_tpot", 0.04, 0.05, "median TPOT rose by 25.0%, from 40.00 to 50.00 ms"),
        ("median_intvty", 25.0, 20.0, "median interactivity fell by 20.0%, from 25.00 to 20.00 tok/s/user"),
        ("joules_per_output_token", 10.0, 8.0, "energy per output token fell by 20.0%, from 10.00 to 8.000 J/tok"),
    ],
)
def test_the_base_of_a_percentage_is_the_baseline(metric: str, before: float, after: float, words: str) -> None:
    """Case 16."""
    percent = (after / before - 1) * 100
    finding = a_finding(a_series(64), metric, Verdict.SUSPECTED, percent, baseline=before, candidate=after)
    assert Language("en").say(change(finding)) == words


@pytest.mark.parametrize(("pooled", "name"), [(False, "tp8 c64: "), (True, "dsr1-fp8-h200-sglang: ")])
def test_scores_change_by_percentage_points(pooled: bool, name: str) -> None:
    finding = an_eval(64, 0.95, 0.93, Verdict.REGRESSION)
    if pooled:
        finding = replace(finding, scope=Scope.CONFIG, key="dsr1-fp8-h200-sglang gsm8k", series=None)
    text = said("short", "en", finding)
    assert name in text
    assert "GSM8K accuracy fell by 2.0 percentage points, from 0.9500 to 0.9300" in text


def test_a_mixed_curve_is_not_told_by_its_mean() -> None:
    """Case 25 C."""
    curve = a_finding(a_series(None), "tput_per_gpu", Verdict.MIXED, 6.2)
    lost = a_finding(a_series(64), "tput_per_gpu", Verdict.REGRESSION, -30.0)
    start = said("comment", "en", curve, lost)[:300]
    assert "fell by 30.0%" in start
    assert "6.2%" not in start


def test_the_title_of_a_mixed_curve_names_its_worst_point() -> None:
    curve = a_finding(a_series(None), "tput_per_gpu", Verdict.MIXED, 6.2)
    lost = a_finding(a_series(64), "tput_per_gpu", Verdict.SUSPECTED, -30.0)
    title = said("title", "en", curve, lost).strip()
    assert title.endswith("; worst point dsr1-fp8-h200-sglang 8192/1024 tp8 c64: throughput per GPU fell by 30.0%")
    assert title.startswith("Mixed")


def test_a_recovery_is_led_by_the_last_good_run() -> None:
    """Case 08: +1.9 % against the last good run; +378.5 % against the bad one is a remark, never the headline."""
    caveat = Caveat.of("recovery", change=math.log(1360.9 / 284.4))
    back = a_finding(a_series(None), "tput_per_gpu", Verdict.RECOVERY, 1.9, caveats=(caveat,))
    for document in BILINGUAL:
        text = said(document, "both", back)
        assert "rose by 1.9%" in text
        assert "Recovery" in text
        assert "恢复" in text
        assert ("+378.5%" in text) == (document in ("comparison", "comment"))
        assert "378" not in text[:300]


def test_a_score_one_question_short_is_not_rounded_onto_its_threshold() -> None:
    """Case 35: the gate fails, and the text says by how little."""
    caveats = (
        Caveat.of(
            "below_threshold", score=0.828125, threshold=0.83, digits=3, n=256, correct=212, needed=213, short_by=1
        ),
        Caveat.of("near_threshold", score=0.828125, threshold=0.83, digits=3, standard_error=0.0236, z=-0.08),
    )
    text = said("comparison", "en", an_eval(64, None, 0.828125, Verdict.FAILED, *caveats))
    assert "Score 0.8281 is below the threshold 0.8300: 212 of 256 right, 213 needed." in text
    assert "standard error (0.0236)" in text
    assert "0.83 " not in text.replace("0.8300", "")


def test_a_missed_gate_without_a_baseline_is_told_by_its_threshold() -> None:
    failed = an_eval(64, None, 0.8901, Verdict.FAILED, Caveat.of("below_threshold", score=0.8901, threshold=0.91))
    english, chinese = (said("title", lang, failed).strip() for lang in ("en", "zh"))
    assert english == ("dsr1-fp8-h200-sglang tp8 c64: Failed, GSM8K accuracy 0.8901 is below the threshold 0.9100")
    assert chinese == "dsr1-fp8-h200-sglang tp8 c64：失败，GSM8K 准确率 0.8901 低于阈值 0.9100"
    for document in ("short", "comment", "mail_text"):
        text = said(document, "both", failed)
        assert "GSM8K accuracy 0.8901 is below the threshold 0.9100" in text
        assert "Failed, below its threshold: evals 1 of 1." in text
        assert "no change measured" not in text
        assert "失败，低于阈值：评估 1 项中 1 项" in text


def test_an_eval_that_failed_in_another_way_is_not_told_as_below_its_threshold() -> None:
    short_of = an_eval(64, None, 0.95, Verdict.FAILED, Caveat.of("question_count", have=100, baseline=1319))
    text = said("comment", "en", short_of)
    assert text.startswith("**Failed: evals 1 of 1.**")
    assert "below" not in text
    assert "GSM8K accuracy 0.9500, threshold 0.9100 (runs 0 against 1)" in text


def test_a_regression_that_also_misses_its_gate_is_told_by_its_fall() -> None:
    lost = an_eval(64, 0.95, 0.909996, Verdict.REGRESSION, Caveat.of("below_threshold", score=0.909996, threshold=0.91))
    assert said("title", "en", lost).strip().endswith(": Regression, GSM8K accuracy fell by 4.0 percentage points")
    assert "from 0.9500 to 0.9099" in said("short", "en", lost)


def test_a_row_of_a_missed_gate_is_failed_in_its_table() -> None:
    """The statistics found no change, the gate did."""
    failed = an_eval(64, 0.91, 0.9053, Verdict.EQUIVALENT, Caveat.of("below_threshold", score=0.9053, threshold=0.91))
    text = said("comparison", "en", failed)
    assert "| GSM8K accuracy | failed | 0.9100 → 0.9053 |" in text
    assert "is below the threshold 0.9100; GSM8K accuracy -0.5 pp, from 0.9100 to 0.9053" in text
    assert "- Evals, 1 in all: failed 1." in text


@pytest.mark.parametrize("verdict", [Verdict.EQUIVALENT, Verdict.INCONCLUSIVE, Verdict.NOISY])
def test_what_did_not_move_is_told_without_a_verb_of_motion(verdict: Verdict) -> None:
    calm = a_finding(a_series(None), "tput_per_gpu", verdict, 0.049)
    english, chinese = (said("title", lang, calm).strip() for lang in ("en", "zh"))
    assert english.startswith("dsr1-fp8-h200-sglang 8192/1024 tp8: ")
    assert english.endswith(", throughput per GPU +0.05%")
    assert chinese.endswith("，每 GPU 吞吐量 +0.05%")
    assert "rose" not in said("commit", "both", calm)


def test_evals_that_are_all_missing_stand_in_the_headline() -> None:
    calm = a_finding(a_series(None), "tput_per_gpu", Verdict.EQUIVALENT, 0.0)
    lost = replace(alone(64, Verdict.MISSING, "missing_eval", "baseline"), task="gsm8k")
    given = Comparison(AFTER, BEFORE, "previous", (calm,), (lost,), (), "1")
    chosen = facts.select(given)
    for document in ("short", "title", "comment", "mail_text"):
        text = render.render(chosen, document, "both")
        assert "No material change, but all evals are missing" in text
        assert "无实质变化，但评估全部缺失" in text
    assert "curves 0 of 1, missing 1." not in render.render(chosen, "short", "en")
    assert "evals 0 of 1, curves 1 of 1, missing 1." in render.render(chosen, "short", "en")
    assert "评估 1 项中 0 项、曲线 1 条中 1 条、缺失 1 项。" in render.render(chosen, "short", "zh")


def test_the_flexible_match_is_named_beside_the_strict_one() -> None:
    job = an_eval(64, 0.95, 0.9, Verdict.REGRESSION)
    for other in (Verdict.REGRESSION, Verdict.SUSPECTED):
        text = said("comparison", "both", job, replace(job, metric="em_strict", verdict=other))
        assert "| GSM8K accuracy (flexible match)" in text
        assert "| GSM8K 准确率（宽松匹配）" in text
    assert "flexible" not in said("comparison", "en", job)


def test_ratios_are_written_in_the_word_of_the_language() -> None:
    gain = a_finding(a_series(None), "tput_per_gpu", Verdict.IMPROVEMENT, 188.0)
    english, chinese = (said("short", lang, gain) for lang in ("en", "zh"))
    assert "95% interval 2.85× to 2.91×" in english
    assert "95% 区间 2.85 倍至 2.91 倍" in chinese
    assert parity.parity(english, chinese) == ()


def test_accuracy_stands_above_throughput() -> None:
    """Cases 33 and 45."""
    gate = Caveat.of("below_threshold", score=0, threshold=0.91)
    collapse = an_eval(128, 0.9553, 0.0, Verdict.FAILED, gate, Caveat.of("collapsed", score=0, floor=0.5, n=1319))
    faster = a_finding(a_series(None), "tput_per_gpu", Verdict.IMPROVEMENT, 30.0)
    text = said("comment", "en", faster, collapse)
    assert text.startswith("**Failed, below its threshold: evals 1 of 1, curves 0 of 1.**")
    assert text.index("look here first") < text.index("What got better")
    assert "Score 0.0000 is a collapse, not a drop (n = 1319)" in text


def test_what_is_not_comparable_gets_no_change() -> None:
    """Cases 26 and 29: other workload or other client settings."""
    text = render.render(facts.select(a_screen()), "comparison", "en")
    rows = [line for line in text.splitlines() if "The workload differs" in line]
    assert [row[0] for row in rows] == ["-", "|"]
    assert "%" not in "".join(rows)


def test_a_p_value_never_stands_without_the_number_of_runs() -> None:
    finding = a_finding(a_series(None), "tput_per_gpu", Verdict.REGRESSION, -8.0)
    assert "p = 0.0004; runs 3 against 1" in said("short", "en", finding)
    assert "p = " not in said("short", "en", replace(finding, n_baseline=0, n_candidate=0))


def test_a_filter_says_what_it_hides() -> None:
    chosen = facts.select(
        a_screen(), keep=lambda row: row.verdict is Verdict.EQUIVALENT, filtered_by="--verdict equivalent"
    )
    text = render.render(chosen, "comparison", "both")
    assert "Filter --verdict equivalent hides rows: 14, regressions among them: 5." in text
    assert "筛选条件 --verdict equivalent 隐藏了 14 行，其中回归 5 项。" in text
    assert text.startswith(
        "## Sweep comparison\n\n**Regression: evals 1 of 2, curves 1 of 4, points 2 of 10, failed 1, missing 1.**"
    )


def test_metrics_that_say_the_same_share_a_row() -> None:
    curve = a_series(None)
    text = said(
        "comparison",
        "en",
        a_finding(curve, "median_tpot", Verdict.SUSPECTED, 9.0),
        a_finding(curve, "tput_per_gpu", Verdict.REGRESSION, -8.2),
    )
    (row,) = [line for line in text.splitlines() if line.startswith("| dsr1")]
    assert "| throughput per GPU; median TPOT +9.0% (suspected) | regression | -8.2% |" in row


def test_a_reason_is_said_once_for_all_points_of_a_curve() -> None:
    lone = tuple(alone(conc, Verdict.NO_BASELINE, "new_point") for conc in (64, 4, 16))
    for document in ("comparison", "comment"):
        text = render.render(facts.select(replace(a_screen(), unmatched=lone)), document, "en")
        assert text.count("Not measured before.") == 1
        assert "| dsr1-fp8-h200-sglang 1024/1024 tp8 c4 c16 c64 | no baseline |" in text


def test_a_doubt_of_many_findings_is_one_remark() -> None:
    doubt = Caveat.of("recipe_changed")
    found = [
        a_finding(a_series(conc), "tput_per_gpu", Verdict.REGRESSION, -9.0, caveats=(doubt,)) for conc in range(1, 15)
    ]
    text = said("comment", "both", *found, a_finding(a_series(99), "tput_per_gpu", Verdict.EQUIVALENT, 0.0))
    assert text.count("The recipe changed between the sides.") == 1
    assert "- 14 of 15: The recipe changed between the sides." in text
    assert "- 15 项中 14 项：" in text


def test_what_a_comment_folds_away_is_counted() -> None:
    """A comment shows what is no problem by its largest scope; the comparison shows what is inside as well."""
    curves = [a_finding(a_series(None, tp=tp), "tput_per_gpu", Verdict.IMPROVEMENT, 9.0) for tp in (2, 4, 8)]
    whole = replace(curves[0], scope=Scope.CONFIG, key=curves[0].config, series=None)
    comment, comparison = (said(name, "en", whole, *curves) for name in ("comment", "comparison"))
    assert (comment.count("| improvement |"), comparison.count("| improvement |")) == (1, 4)
    assert "Rows not shown here: 3." in comment
    assert "Rows not shown" not in comparison


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_comment_on_many_configs_stays_well_below_its_limit(lang: str) -> None:
    comment = render.render(facts.select(a_wide_sweep(20)), "comment", lang)
    assert len(comment) < 25_000
    assert comment.index("<details>") > 300


def test_evidence_is_generated_from_records_and_english_only() -> None:
    good = [an_eval(conc, 0.9571, score, Verdict.EQUIVALENT) for conc, score in ((16, 0.9538), (64, 0.9598))]
    point = a_finding(a_series(64), "tput_per_gpu", Verdict.EQUIVALENT, 0.1)
    given = Comparison(
        AFTER, BEFORE, "previous", (*good, point), (), (), "1", jobs=(JobCount("h200", 9, 9), JobCount("b200", 0, 0))
    )
    assert render.render(facts.select(given), "evidence", "en") == (
        f"Run Sweep 30000000009 (attempt 2, head {SHA}, conclusion success) measured 1 of 1 points"
        " (push to main; measured 2026-05-13, run 2026-05-13, published with the run)."
        " Jobs passed: h200 9 of 9."
        " GSM8K scores (flexible match) of 2 eval jobs ranged from 0.9538 to 0.9598 against the 0.9100 threshold;"
        " below it: 0."
        f" Using {NEW}."
        " Compared with (previous): "
        + ", ".join(
            f"run {run.key} (push to main; measured {run.started_at:%Y-%m-%d}, run {run.started_at:%Y-%m-%d},"
            " published with the run)"
            for run in reversed(BEFORE)
        )
        + f". Baseline images: {OLD}. Image changed from {OLD} to {NEW}.\n"
    )
    with pytest.raises(render.UnknownDocument, match="evidence"):
        render.render(facts.select(given), "evidence", "zh")


def test_evidence_keeps_thresholds_apart_and_names_none_where_there_is_none() -> None:
    low, high = (an_eval(conc, 0.95, 0.93, Verdict.EQUIVALENT) for conc in (16, 64))
    strict = replace(high, caveats=(Caveat.of("gate", threshold=0.94), Caveat.of("below_threshold")))
    free = replace(high, key="other", task="aime", caveats=(Caveat.of("no_gate", task="aime"),))
    text = render.render(facts.select(replace(a_screen(), findings=(low, strict, free))), "evidence", "en")
    assert "of 1 eval jobs ranged from 0.9300 to 0.9300 against the 0.9100 threshold; below it: 0." in text
    assert "of 1 eval jobs ranged from 0.9300 to 0.9300 against the 0.9400 threshold; below it: 1." in text
    assert "aime scores (flexible match) of 1 eval jobs without a threshold ranged from 0.9300 to 0.9300." in text


def test_evidence_claims_nothing_of_what_is_not_known() -> None:
    given = Comparison((), (), "previous", (), (), (), "1")
    assert render.render(facts.select(given), "evidence", "en") == "\n"


def test_an_unknown_document_is_refused_with_the_known_ones() -> None:
    with pytest.raises(render.UnknownDocument, match=r"comparison \(en, zh, both\)"):
        render.render(facts.select(a_screen()), "poem", "en")


# ---- form ----------------------------------------------------------------------------------------------------


def test_a_title_and_a_short_comment_are_one_line_with_one_separator() -> None:
    for seed in range(200):
        chosen = facts.select(a_random_comparison(seed))
        for document in ("title", "short"):
            text = render.render(chosen, document, "both")
            assert text.count("\n") == 1
            assert text.count(" / ") == 1


def test_the_marker_names_version_head_and_verdict_and_stands_last() -> None:
    comment = render.render(facts.select(a_screen()), "comment", "both")
    assert re.fullmatch(rf"<!-- sweep-tracker version=\S+ head={SHA} verdict=regression -->", comment.splitlines()[-1])


def test_a_head_that_is_no_commit_does_not_enter_the_marker() -> None:
    (run,) = AFTER
    given = replace(a_screen(), candidate=(replace(run, head_sha="--> <script>"),))
    assert "head=unknown" in render.marker(facts.select(given))


def test_tables_keep_their_number_of_cells() -> None:
    for seed in range(100):
        text = render.render(facts.select(a_random_comparison(seed)), "comparison", "both")
        assert_whole_tables(text)


def assert_whole_tables(text: str) -> None:
    """Every row of every table has as many cells as its head, and no table line was left out of a table."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    width = cells = rows = 0
    for token in tokens:
        if token.type == "tr_open":
            cells, rows = 0, rows + 1
        elif token.type in ("th_open", "td_open"):
            cells += 1
            width = cells if token.type == "th_open" else width
        elif token.type == "tr_close":
            assert cells == width
    lines = [line for line in text.splitlines() if line.startswith("|")]
    separators = [line for line in lines if re.fullmatch(r"[|:-]+", line)]
    assert rows == len(lines) - len(separators)


def test_a_template_cannot_print_a_raw_number_or_an_unknown_name() -> None:
    environment = render._environment("en", escapes.markdown)
    with pytest.raises(TypeError, match="number filter"):
        environment.from_string("{{ n }}").render(n=1.5)
    with pytest.raises(TypeError, match="number filter"):
        environment.from_string("{{ n }}").render(n=None)
    with pytest.raises(UndefinedError):
        environment.from_string("{{ missing }}").render()
    with pytest.raises(TypeError, match="integer"):
        environment.from_string("{{ n | count }}").render(n=1.5)


# ---- limits --------------------------------------------------------------------------------------------------


def test_a_sweep_of_2000_points_fits_into_a_comment() -> None:
    started = time.perf_counter()
    comment = render.render(facts.select(a_large_sweep(2000, 2)), "comment", "both")
    assert len(comment) <= render.COMMENT_LIMIT
    assert len(comment) > 0.7 * render.COMMENT_LIMIT
    assert len(comment.encode()) <= 262_144
    assert time.perf_counter() - started < 20
    assert comment.startswith("**Regression: points 1000 of 2000.**")
    shown = len(re.findall(r"^\| \S+ \S+ \S+ c\d+ \| throughput per GPU \| regression", comment, re.MULTILINE))
    cut = sum(int(number) for number in re.findall(r"Rows not shown here: (\d+)", comment.split("\n---\n")[0]))
    assert shown + cut == 1000, "every regression is shown or counted"
    assert parity.lint_text(comment, "both") == ()
    assert comment.count("<details>") == comment.count("</details>")
    assert_whole_tables(comment)


def test_every_regression_of_900_points_is_listed() -> None:
    """Case 41: 12 of 900 points fell."""
    comment = render.render(facts.select(a_large_sweep(900, 75)), "comment", "both")
    assert len(comment) <= 65_536
    english, _, chinese = comment.partition("\n---\n")
    for half in (english, chinese):
        assert {f"c{number}" for number in range(1, 901, 75)} <= set(re.findall(r"c\d+", half))
    assert "regression 12, equivalent 888" in english
    assert "回归 12、持平 888" in chinese
    assert "Rows not shown" not in comment


def test_worst_rows_survive_a_cut_whatever_their_name() -> None:
    given = a_large_sweep(2000, 2)
    worst = a_finding(a_series(9999), "tput_per_gpu", Verdict.REGRESSION, -60.0)
    worst = replace(worst, key="zzz last by name", series=None)
    comment = render.render(facts.select(replace(given, findings=(*given.findings, worst))), "comment", "en")
    assert comment.index("zzz last by name") < 300


def test_very_long_names_cannot_fill_a_comment() -> None:
    fallen = a_finding(a_series(1), "tput_per_gpu", Verdict.REGRESSION, -20.0)
    findings = [replace(fallen, key="x" * 9000 + str(number), series=None) for number in range(60)]
    assert len(said("comment", "both", *findings)) <= render.COMMENT_LIMIT


def test_a_job_summary_stays_under_one_mebibyte() -> None:
    summary = render.render(facts.select(a_large_sweep(5000, 1)), "summary", "both")
    assert len(summary.encode()) <= render.SUMMARY_LIMIT
    assert "Rows not shown here" in summary


@pytest.mark.parametrize("effect", [math.nan, math.inf, -math.inf, 1e9, -1e9, 0.0, None])
def test_a_number_that_is_none_does_not_stop_a_report(effect: float | None) -> None:
    odd = a_finding(
        a_series(None), "tput_per_gpu", Verdict.INCONCLUSIVE, 0.0, effect=effect, low=effect, high=effect, mde=effect
    )
    for document in BILINGUAL:
        text = said(document, "both", odd)
        assert "nan" not in text
        assert "inf%" not in text
        assert parity.lint_text(text, "both") == ()


# ---- parity --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", range(0, 800, 400))
def test_random_documents_have_full_parity(start: int) -> None:
    """800 comparisons, four documents of each, both languages of every one."""
    for seed in range(start, start + 400):
        chosen = facts.select(a_random_comparison(seed))
        for document in ("comment" if seed % 2 else "comparison", "title", "commit", "short"):
            text = render.render(chosen, document, "both")
            assert parity.lint_text(text, "both") == (), (seed, document, text)


@pytest.mark.parametrize(
    ("url", "is_linked"),
    [
        ("https://github.com/o/r/actions/runs/7/job/9", True),
        ("https://github.com/o/r/actions/runs/7/attempts/2", True),
        ("https://github.com/o/r/actions/runs/7/job/9)<script>", False),
        ("https://evil.example/o/r/actions/runs/7/job/9", False),
        ("javascript:alert(1)", False),
        (None, False),
    ],
)
def test_only_addresses_of_runs_and_jobs_become_links(url: str | None, is_linked: bool) -> None:
    row = replace(alone(64, Verdict.FAILED, "job_failed"), reason=Caveat.of("job_failed", job="x", url=url))
    assert doubts.addresses(row) == ((url,) if is_linked else ())
