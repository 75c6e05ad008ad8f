"""Numbers claimed in prose: found, bound, and held against measurements."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.claims import UNITS
from store.records import Finding, Layout, Place, Role, RunKey, Scope, Score, Series, Verdict
from tracker.claims import Answer, Binding, Bound, Claim, Direction, Kind, Measured, check, find_claims, lexicon, rules
from tracker.claims.match import matches
from tracker.claims.tokens import scan

LABELS = yaml.safe_load((Path(__file__).parent / "data" / "claims.yaml").read_text(encoding="utf-8"))
FIELDS = ("unit", "metric", "direction")


@dataclass
class Tally:
    """Claims matched by kind, values and overlap of the words; for the matched ones, fields that agree."""

    found: int = 0
    extra: int = 0
    missed: int = 0
    agree: int = 0
    asked: int = 0
    notes: tuple[str, ...] = ()

    @property
    def precision(self) -> float:
        return self.found / max(1, self.found + self.extra)

    @property
    def recall(self) -> float:
        return self.found / max(1, self.found + self.missed)

    def __str__(self) -> str:
        head = f"precision {self.precision:.4f}, recall {self.recall:.4f}, fields {self.agree}/{self.asked}"
        return "\n".join((head, *self.notes))


def tally(items: list[dict[str, Any]]) -> Tally:
    total = Tally()
    for item in items:
        _tally_text(item["text"], item["claims"], total)
    return total


def _tally_text(text: str, labels: list[dict[str, Any]], total: Tally) -> None:
    rest = list(find_claims(text))
    for label, span in zip(labels, _spans(text, labels), strict=True):
        claim = next((c for c in rest if _is_labelled(c, label, span)), None)
        if claim is None:
            total.missed += 1
            total.notes += (f"missed {label['kind']} {label['values']} in {text!r}",)
            continue
        rest.remove(claim)
        total.found += 1
        for name, got, want in _fields(claim, label):
            total.asked += 1
            total.agree += got == want
            total.notes += (f"{name} of {claim.text!r} is {got}, not {want}",) * (got != want)
    total.extra += len(rest)
    total.notes += tuple(f"extra {claim.kind} {claim.values} in {text!r}" for claim in rest)


def _spans(text: str, labels: list[dict[str, Any]]) -> Iterator[tuple[int, int]]:
    at = 0
    for label in labels:
        start = text.index(label["words"], at)
        at = start + 1
        yield start, start + len(label["words"])


def _is_labelled(claim: Claim, label: dict[str, Any], span: tuple[int, int]) -> bool:
    overlaps = claim.span[0] < span[1] and span[0] < claim.span[1]
    return overlaps and claim.kind == label["kind"] and claim.values == pytest.approx(tuple(label["values"]))


def _fields(claim: Claim, label: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for name in FIELDS:
        if name in label:
            yield name, getattr(claim, name), label[name]
    for name, want in label.get("about", {}).items():
        got = getattr(claim.binding, name)
        yield name, [list(x) if isinstance(x, tuple) else x for x in got] if isinstance(got, tuple) else got, want


def test_the_labelled_set_is_large_enough():
    items = [item for section in LABELS.values() for item in section]
    with_claims = sum(bool(item["claims"]) for item in items)
    assert (len(items) >= 150, with_claims >= 120, len(items) - with_claims >= 40) == (True, True, True)
    assert len({item["text"] for item in items}) == len(items)


def test_claims_are_found_with_precision_and_recall_over_the_whole_labelled_set():
    total = tally([item for section in LABELS.values() for item in section])
    assert total.precision >= 0.98, str(total)
    assert total.recall >= 0.90, str(total)


def test_what_a_found_claim_speaks_about_agrees_with_the_labels():
    total = tally([item for section in LABELS.values() for item in section])
    assert total.asked >= 700, str(total)
    assert total.agree >= 0.97 * total.asked, str(total)


@pytest.mark.parametrize("section", sorted(LABELS))
def test_no_kind_of_text_is_carried_by_the_others(section):
    total = tally(LABELS[section])
    assert (total.precision >= 0.95 or total.found + total.extra == 0, total.recall >= 0.85 or not total.missed) == (
        True,
        True,
    ), str(total)


@pytest.mark.parametrize("text", [item["text"] for item in LABELS["nothing"]])
def test_settings_versions_plans_and_thresholds_are_no_claims(text):
    assert find_claims(text) == ()


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("throughput dropped by ~38%", "吞吐量下降约 38%"),
        ("peak at 8k1k: ~2085 -> ~6003 tok/s/gpu (~2.9x)", "8k1k 的峰值：约 2085 → 6003 tok/s/gpu（约 2.9 倍）"),
        ("median TTFT rises from 494 ms to 898 ms", "TTFT 中位数从 494 ms 升至 898 ms"),
        ("GSM8K scores between 0.9538 and 0.9598", "GSM8K 得分介于 0.9538 与 0.9598 之间"),
        ("p99 TTFT reduced by 40% at concurrency 64 on MI355X", "MI355X 并发 64 时 p99 TTFT 降低 40%"),
    ],
)
def test_both_languages_say_the_same(english, chinese):
    def said(text):
        return [(c.kind, c.values, c.unit, c.metric, c.direction, c.approximate, c.binding) for c in find_claims(text)]

    assert said(english) == said(chinese)
    assert said(english)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("up to 31% higher throughput", Bound.UP_TO),
        ("at least 31% higher throughput", Bound.AT_LEAST),
        ("31% higher throughput", Bound.VALUE),
        ("throughput within 2%", Bound.WITHIN),
        ("throughput flat (±0.5%)", Bound.WITHIN),
        ("吞吐量最高提升 31%", Bound.UP_TO),
        ("吞吐量提升超过 31%", Bound.AT_LEAST),
    ],
)
def test_bounds_are_kept(text, bound):
    (claim,) = find_claims(text)
    assert claim.bound is bound


def test_a_heading_and_a_lead_in_say_what_their_bullets_leave_unsaid():
    (claim,) = find_claims("## glm5-fp8-h200-sglang\n\nThroughput at 8k1k:\n\n- conc 64: +4.2%\n")
    assert (claim.metric, claim.binding.configs, claim.binding.sequences, claim.binding.concurrency) == (
        "tput_per_gpu",
        ("glm5-fp8-h200-sglang",),
        ("8192/1024",),
        ((64, 64),),
    )


def test_a_config_key_is_not_crossed_with_the_names_of_a_farther_heading():
    (claim,) = find_claims("# MI355X results\n\n- dsr1-fp8-h200-sglang: throughput +4.2%\n")
    assert (claim.binding.configs, claim.binding.gpus) == (("dsr1-fp8-h200-sglang",), ())


@pytest.mark.parametrize(
    "text",
    [
        "the throughput with its 95% interval",
        "throughput, 95% CI [+3.2%, +6.1%]",
        "throughput (95% confidence interval 3.2% to 6.1%)",
        "吞吐量（95% 区间 +3.2% 至 +6.1%）",
        "throughput confidence interval +3.2% to +6.1%",
        "throughput is within its CI 95%",
        "the throughput gain dropped to 3% at conc 64",
        "GSM8K: the gap between flexible and strict match grew by 3.0 pp",
        "GSM8K：宽松匹配与严格匹配的差距扩大 3.0 pp",
        "GSM8K accuracy fell (p < 0.0001)",
        "GSM8K accuracy fell, p = 0.04",
        "GSM8K accuracy fell (p 0.04)",
        "GSM8K accuracy fell, p > 0.05",
        "GSM8K 准确率下降（p < 0.0001，运行 5 次对 1 次）",
        "| What | GSM8K | 95% interval | p |\n|---|---|---|---|\n| strict accuracy | | 0.91 to 0.95 | 0.0001 |\n",
    ],
)
def test_levels_and_ends_of_intervals_and_p_values_are_no_claims(text):
    assert find_claims(text) == ()


def test_what_stands_beside_an_interval_and_a_p_value_stays_a_claim():
    found = find_claims("throughput fell by 7.0% (95% interval -7.6% to -6.4%; p < 0.0001), GSM8K 0.958 (p = 0.04)")
    assert [(claim.kind, claim.values) for claim in found] == [(Kind.CHANGE, (7.0,)), (Kind.SCORE, (0.958,))]


@pytest.mark.parametrize(
    "text",
    [
        "throughput does not improve by 9%",
        "throughput did not drop by 20%",
        "TTFT doesn't improve by 9%",
        "throughput did not improve from 1000 to 1100 tok/s/gpu",
        "throughput did not drop to 93% of baseline",
        "throughput never reached 1200 tok/s/gpu",
        "throughput is no longer 9% higher",
        "the 20% drop in throughput is no longer seen",
        "吞吐量没有提升 9%",
        "吞吐量并未下降 20%",
        "吞吐量不再提升 9%",
        "吞吐量未提升 9%",
    ],
)
def test_what_did_not_happen_is_no_claim(text):
    assert find_claims(text) == ()


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("throughput has not improved by 9% but TTFT improved by 5%", [(5.0,)]),
        ("not only throughput +9%", [(9.0,)]),
        ("median TTFT without offload 494 ms", [(494.0,)]),
        ("GSM8K is not affected at 0.958", [(0.958,)]),
        ("accuracy does not change, throughput +5%", [(5.0,)]),
        ("TPOT does not move (±0.5%)", [(0.5,)]),
        ("没有改动配置，吞吐量提升 5%", [(5.0,)]),
        ("no regression: throughput +5%", [(5.0,)]),
    ],
)
def test_a_negation_reaches_no_farther_than_its_clause(text, values):
    assert [claim.values for claim in find_claims(text)] == values


@pytest.mark.parametrize(
    "text",
    [
        "throughput of v0.20 was 30% lower than v0.19",
        "v0.20 is 30% faster than v0.19 in throughput",
        "v0.20 比 v0.19 吞吐量低 30%",
        "throughput is 30% lower in v0.20 than in v0.19",
        "vLLM 0.20 had 30% lower throughput than vLLM 0.19",
        "previously we reported +20% throughput",
        "Earlier, we measured 20% higher throughput",
        "此前报告吞吐量提升 20%",
    ],
)
def test_numbers_of_another_pair_of_versions_are_no_claims(text):
    assert find_claims(text) == ()


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("previously we reported +20% throughput, now it is +9%", (9.0,)),
        ("throughput +5% vs v0.5.12", (5.0,)),
        ("SGLang v0.5.16 improves throughput by 5% over v0.5.12", (5.0,)),
        ("v0.5.16 相比 v0.5.12 吞吐量提升 5%", (5.0,)),
        ("v0.5.14 to v0.5.16 is worth 5% more throughput", (5.0,)),
        ("v0.20 was slower than v0.19, here throughput is +5%", (5.0,)),
    ],
)
def test_numbers_beside_other_versions_stay_claims(text, values):
    assert [claim.values for claim in find_claims(text)] == [values]


@pytest.fixture(scope="module")
def claiming():
    """Texts with claims, and what is found in them by all the rules."""
    texts = [item["text"] for section in LABELS.values() for item in section if item["claims"]]
    return {text: find_claims(text) for text in texts}


@pytest.mark.parametrize("name", [rule.name for rule in rules.RULES])
def test_every_rule_earns_its_place(name, claiming, monkeypatch):
    monkeypatch.setattr(rules, "RULES", tuple(rule for rule in rules.RULES if rule.name != name))
    assert any(find_claims(text) != claims for text, claims in claiming.items())


# Laws -----------------------------------------------------------------------------------------------------------------

_PIECES = st.sampled_from(
    [
        *(
            "throughput",
            "吞吐量",
            "TTFT",
            "GSM8K",
            "from",
            "从",
            "to",
            "至",
            "->",
            "→",
            "+4.7%",
            "约",
            "2.9x",
            "2.9 倍",
            "0.958",
        ),
        *(
            "905 tok/s/gpu",
            "494 ms",
            "8k1k",
            "conc 64",
            "(",
            ")",
            ",",
            "，",
            "。",
            "\n",
            "|",
            "|---|",
            "# ",
            "- ",
            "peak",
            "±",
        ),
        *(
            "ſtrict",
            "K",
            "\u00a0",
            "`",
            "**",
            "10~14%",
            "~",
            "-",
            "≥0.9",
            "TP8/EP8",
            "https://x.y/1",
            "```",
            "<!--",
            "-->",
        ),
    ]
)


def _is_exact(text: str) -> bool:
    claims = find_claims(text)
    spans = [claim.span for claim in claims]
    return all(text[slice(*c.span)] == c.text for c in claims) and spans == sorted(spans)


@given(st.text(max_size=400))
def test_any_text_can_be_read_and_spans_are_exact(text):
    assert _is_exact(text)


@given(st.lists(_PIECES, max_size=40).map(" ".join) | st.lists(_PIECES, max_size=40).map("".join))
@settings(max_examples=300)
def test_any_mixture_of_the_words_of_claims_can_be_read_and_spans_are_exact(text):
    assert _is_exact(text)


@given(st.integers(1, 40), st.sampled_from([item["text"] for item in LABELS["prose"] if item["claims"]]))
def test_a_text_moved_down_moves_its_claims_and_nothing_else(lines, text):
    down = "\n" * lines
    moved = tuple(replace(c, span=(c.span[0] + lines, c.span[1] + lines)) for c in find_claims(text))
    assert find_claims(down + text) == moved


@pytest.mark.parametrize("word", sorted(word for word in lexicon.WORDS if word.strip()))
def test_every_word_of_the_lexicon_is_read_as_what_it_stands_for(word):
    tokens = scan(word)
    assert [(token.code, token.word) for token in tokens] == [lexicon.WORDS[word]]
    assert tokens[0].code in lexicon.CODES


@pytest.mark.parametrize("unit", UNITS)
def test_a_hostile_text_is_read_to_its_end(unit):
    text = "| a | b |\n|---|---|\n" * unit.startswith("| 1") + unit * (24_000 // len(unit))
    ending = "\n\nThroughput per GPU rose by 7.5%."
    assert [claim for claim in find_claims(text + ending) if claim.values == (7.5,)]
    assert all((text + ending)[slice(*claim.span)] == claim.text for claim in find_claims(text + ending))


# Checking -------------------------------------------------------------------------------------------------------------

POINT = Series("dsr1", "h200", "sglang", "fp8", "none", "single_turn", 8192, 1024, False, Layout(Role(8)), 64)


def measured(before=1000.0, after=1100.0, metric="tput_per_gpu", noise=0.01, **where) -> Measured:
    """A point with both sides and an interval of the log ratio of half-width `noise` (None: no interval)."""
    ends = (None, None)
    if noise is not None and before and after:
        effect = math.log(after / before)
        ends = (effect - noise, effect + noise)
    return Measured(replace(POINT, **where), metric, before, after, *ends, runs=("1/1", "2/1"))


def score(strict=0.958, flexible=0.960, task="gsm8k", **where) -> Score:
    series = replace(POINT, **where)
    return Score(RunKey(2), series, task, strict, 0.005, flexible, 0.005, 1319, Place("results.json"), "{}")


def answers(text, points=(), scores=(), baseline_scores=()):
    return [(c.answer.value, c.reason.code) for c in check(find_claims(text), points, scores, baseline_scores)]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("throughput +10.0%", "verified"),
        ("throughput +10.9%", "verified"),  # within the interval of the finding
        ("throughput +12.5%", "contradicted"),
        ("throughput -10.0%", "contradicted"),
        ("throughput improved by 10%", "verified"),
        ("throughput regressed by 10%", "contradicted"),
        ("throughput ~11.5% better", "verified"),  # 5 % of the number, and the interval
        ("throughput ~13% better", "contradicted"),
        ("up to 10% higher throughput", "verified"),
        ("at least 9% higher throughput", "verified"),
        ("at least 15% higher throughput", "contradicted"),
        ("throughput within 12%", "verified"),
        ("throughput within 2%", "contradicted"),
        ("throughput 8% to 11% higher", "verified"),
        ("throughput 12% to 15% higher", "contradicted"),
        ("1.10x throughput", "verified"),
        ("1.2x throughput", "contradicted"),
        ("throughput 1000 -> 1100 tok/s/gpu", "verified"),
        ("throughput 1000 -> 1200 tok/s/gpu", "contradicted"),
        ("throughput 900 -> 1100 tok/s/gpu", "contradicted"),
        ("1100 tok/s/gpu", "verified"),
        ("~1140 tok/s/gpu", "verified"),
        ("1.1k tok/s/gpu", "verified"),
        ("1300 tok/s/gpu", "contradicted"),
        ("1000 tok/s/gpu", "verified"),  # a level of the other side
        ("吞吐量提升 10%", "verified"),
        ("吞吐量下降 10%", "contradicted"),
        ("throughput rose to 110% of baseline", "verified"),
        ("throughput is 1.10x higher", "verified"),
        ("throughput dropped to 93%", "contradicted"),
    ],
)
def test_a_claim_is_held_against_one_measured_point(text, answer):
    (checked,) = check(find_claims(text), [measured()])
    assert checked.answer.value == answer
    assert checked.points == (measured(),)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("TTFT improved by 20%", "verified"),
        ("TTFT -20%", "verified"),
        ("TTFT regressed by 20%", "contradicted"),
        ("TTFT 1.25x faster", "verified"),
        ("TTFT is 1.25x lower", "verified"),
        ("median TTFT 500 -> 400 ms", "verified"),
        ("TTFT 0.4 s", "verified"),
        ("mean TTFT 0.4 s", "unverifiable"),
        ("TTFT 从 500 ms 降至 400 ms", "verified"),
    ],
)
def test_lower_is_better_for_latency_and_milliseconds_are_converted(text, answer):
    (checked,) = check(find_claims(text), [measured(0.5, 0.4, "median_ttft")])
    assert checked.answer.value == answer


@pytest.mark.parametrize(
    ("text", "points", "reason"),
    [
        ("a 6-7% uplift", [measured()], "metric_unsaid"),
        ("throughput +10%", [], "no_points"),
        ("throughput +10% on mi355x", [measured()], "no_points"),
        ("throughput +10% at conc 128", [measured()], "no_points"),
        ("throughput +10%", [measured(before=None)], "no_baseline"),
        ("1000 -> 1100 tok/s/gpu", [measured(before=None)], "no_baseline"),
        ("1000 -> 1100 tok/s/gpu", [measured(after=None)], "no_candidate"),
        ("1100 tok/s/gpu", [measured(), measured(conc=32)], "ambiguous_binding"),
        ("throughput +10%", [measured(), measured(1000.0, 1001.0, conc=32)], "ambiguous_binding"),
        ("throughput +12.5%", [measured(noise=None)], "noise_unknown"),
        ("TTFT 500 -> 400", [measured(0.5, 0.4, "median_ttft")], "unit_unsaid"),
        ("throughput 提升 1.1 倍", [measured()], "times_by_or_to"),
    ],
)
def test_what_cannot_be_told_is_unverifiable_with_the_reason(text, points, reason):
    assert answers(text, points) == [("unverifiable", reason)]


@pytest.mark.parametrize(
    "text",
    [
        "throughput increased by 1.1x",
        "throughput is 1.1 times higher",
        "decode throughput is 1.1 times higher than before",
        "throughput 1.1 times faster",
        "throughput increased by up to 1.1x",
        "吞吐量提升 1.1 倍",
    ],
)
def test_whether_a_number_of_times_is_by_or_to_is_left_open(text):
    points = [measured(), measured(metric="output_tput_per_gpu")]
    assert answers(text, points) == [("unverifiable", "times_by_or_to")]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("throughput fell to 93%", "verified"),
        ("throughput dropped to 93% of baseline", "verified"),
        ("throughput dropped to about 92% of the baseline", "verified"),
        ("吞吐量降至 93%", "verified"),
        ("吞吐量降至基线的 93%", "verified"),
        ("throughput dropped from 100% to 93%", "verified"),
        ("throughput dropped from 100% to 80%", "contradicted"),
        ("throughput dropped to 7.0%", "contradicted"),
        ("throughput dropped by 7.0%", "verified"),
        ("throughput dropped to 80%", "contradicted"),
        ("throughput dropped by 93%", "contradicted"),
    ],
)
def test_what_a_metric_fell_to_is_a_part_of_the_baseline(text, answer):
    (checked,) = check(find_claims(text), [measured(1000.0, 930.0)])
    assert checked.answer.value == answer


def test_a_latency_that_fell_to_a_part_is_not_turned_over():
    assert answers("TTFT fell to 80% of baseline", [measured(0.5, 0.4, "median_ttft")]) == [("verified", "agrees")]


def test_a_change_outside_of_what_every_point_shows_is_contradicted_whatever_was_meant():
    points = [measured(), measured(1000.0, 1001.0, conc=32)]
    assert answers("throughput +38%", points) == [("contradicted", "outside_tolerance")]


def test_a_peak_is_the_best_of_its_sequence_on_each_side():
    points = [
        measured(2085.0, 5000.0, conc=256),
        measured(1500.0, 6003.0, conc=512),
        measured(9000.0, 9000.0, conc=512, isl=1024),
    ]
    text = "8k1k peak ~2085 -> ~6003 tok/s/gpu (~2.9x)"
    assert answers(text, points) == [("verified", "agrees"), ("verified", "agrees")]
    assert check(find_claims(text), points)[0].measured == (2085.0, 6003.0)
    assert answers("peak ~2085 -> ~6003 tok/s/gpu", points) == [("unverifiable", "ambiguous_binding")]


def test_a_range_of_changes_must_hold_every_point_that_it_speaks_about():
    points = [measured(1000.0, 1000.0 + step, conc=conc) for step, conc in ((32.0, 4), (163.0, 256), (400.0, 512))]
    text = "throughput improves by +3.2% to +16.3% at 8k1k (concurrency 4-256)"
    (checked,) = check(find_claims(text), points)
    assert (checked.answer, len(checked.points)) == (Answer.VERIFIED, 2)
    assert checked.measured == pytest.approx((3.2, 16.3))


@pytest.mark.parametrize(
    ("text", "answer", "reason"),
    [
        ("GSM8K 0.958", "verified", "agrees"),
        ("GSM8K ~0.957", "verified", "agrees"),
        ("GSM8K strict-match 0.958, flexible 0.960", "verified", "agrees"),
        ("GSM8K strict 0.960", "contradicted", "outside_tolerance"),
        ("GSM8K ~0.92", "contradicted", "outside_tolerance"),
        ("GSM8K 95.8%", "verified", "agrees"),
        ("GPQA 0.712", "unverifiable", "no_scores"),
        ("GSM8K dropped from 0.968 to 0.958", "verified", "agrees"),
        ("GSM8K accuracy dropped by 1.0 percentage points", "verified", "agrees"),
        ("GSM8K accuracy rose by 1.0 percentage points", "contradicted", "outside_tolerance"),
        ("GSM8K 准确率下降 1.0 个百分点", "verified", "agrees"),
    ],
)
def test_scores_are_held_against_scores(text, answer, reason):
    got = answers(text, scores=[score()], baseline_scores=[score(0.968, 0.970)])
    assert set(got) == {(answer, reason)}


@pytest.mark.parametrize(
    ("scores", "answer"),
    [
        ((0.9538, 0.9570, 0.9598), "verified"),
        ((0.9538, 0.9398), "contradicted"),
        ((0.9550, 0.9570), "unverifiable"),
        ((0.8870, 0.9560, 0.9700), "unverifiable"),  # of some of the jobs
    ],
)
def test_a_range_of_scores_must_hold_all_and_reach_its_ends(scores, answer):
    claims = find_claims("GSM8K scores ranged from 0.9538 to 0.9598 against the 0.90 threshold")
    (checked,) = check(claims, (), [score(value, None) for value in scores])
    assert checked.answer.value == answer


@pytest.mark.parametrize(
    ("text", "answer", "reason"),
    [
        ("GSM8K 0.955", "unverifiable", "ambiguous_binding"),  # pooled over the jobs
        ("GSM8K 0.960", "unverifiable", "ambiguous_binding"),
        ("GSM8K 0.970", "contradicted", "outside_tolerance"),
        ("GSM8K 0.940", "contradicted", "outside_tolerance"),
    ],
)
def test_a_score_among_those_of_several_jobs_may_be_pooled(text, answer, reason):
    jobs = [score(0.950, None), score(0.960, None, conc=32)]
    assert answers(text, scores=jobs) == [(answer, reason)]


@pytest.mark.parametrize(
    ("text", "answer", "reason"),
    [
        ("GSM8K strict 0.960 -> 0.958", "verified", "agrees"),  # the mean of the runs
        ("GSM8K strict dropped from 0.960 to 0.958", "verified", "agrees"),
        ("GSM8K strict accuracy dropped by 0.2 percentage points", "verified", "agrees"),
        ("GSM8K strict 0.962 -> 0.958", "unverifiable", "ambiguous_binding"),  # one run of them
        ("GSM8K strict 0.957 -> 0.958", "contradicted", "outside_tolerance"),
        ("GSM8K strict 0.958 -> 0.960", "contradicted", "outside_tolerance"),
        ("GSM8K strict 0.990 -> 0.958", "contradicted", "outside_tolerance"),
        ("GSM8K strict accuracy rose by 0.2 percentage points", "contradicted", "outside_tolerance"),
    ],
)
def test_several_runs_of_the_baseline_count_by_their_mean(text, answer, reason):
    runs = [score(value, None) for value in (0.956, 0.962, 0.962)]
    assert answers(text, scores=[score(0.958, None)], baseline_scores=runs) == [(answer, reason)]


def test_pairs_of_scores_are_made_within_a_series_and_a_task():
    before = [score(0.960, None), score(0.970, None, conc=32), score(0.700, None, task="gpqa")]
    after = [score(0.950, None), score(0.975, None, conc=32), score(0.710, None, task="gpqa")]

    def said(text):
        return answers(text, scores=after, baseline_scores=before)

    assert said("GSM8K strict 0.960 -> 0.950 at conc 64") == [("verified", "agrees")]
    assert said("GPQA strict 0.700 -> 0.710") == [("verified", "agrees")]
    assert said("GSM8K strict 0.960 -> 0.950") == [("unverifiable", "ambiguous_binding")]
    assert said("GPQA strict 0.710 -> 0.700") == [("contradicted", "outside_tolerance")]


def test_change_of_scores_without_a_baseline_is_unverifiable():
    assert answers("GSM8K dropped from 0.968 to 0.958", scores=[score()]) == [("unverifiable", "no_baseline")]


@given(
    st.floats(1.0, 1e5),
    st.floats(0.2, 5.0),
    st.floats(0.0, 0.05),
    st.sampled_from([0, 1, 2]),
)
def test_what_was_measured_and_written_down_with_any_number_of_digits_is_verified(before, ratio, noise, digits):
    point = measured(before, before * ratio, noise=noise)
    change = (ratio - 1) * 100
    text = f"throughput {before:.{digits}f} -> {before * ratio:.{digits}f} tok/s/gpu, i.e. {change:+.{digits}f}%"
    assert {answer for answer, _ in answers(text, [point])} <= {"verified"}, text


@given(st.floats(0.5, 2.0), st.floats(1e-3, 1e3), st.floats(-60, 200))
def test_scaling_both_sides_changes_no_answer_about_a_change(ratio, scale, claimed):
    text = f"throughput {claimed:+.1f}%"
    one, other = (answers(text, [measured(base, base * ratio)]) for base in (100.0, 100.0 * scale))
    assert one == other


@given(st.floats(0.5, 2.0).filter(lambda ratio: abs(ratio - 1) > 0.1))
def test_swapping_the_sides_turns_a_verified_change_into_a_contradicted_one(ratio):
    text = f"throughput {(ratio - 1) * 100:+.1f}%"
    assert answers(text, [measured(100.0, 100.0 * ratio)]) == [("verified", "agrees")]
    assert answers(text, [measured(100.0 * ratio, 100.0)]) == [("contradicted", "outside_tolerance")]


def test_only_findings_about_points_are_measurements():
    found = Finding(
        Scope.POINT,
        "key",
        "tput_per_gpu",
        Verdict.IMPROVEMENT,
        0.1,
        0.05,
        0.15,
        baseline=1000.0,
        candidate=1100.0,
        series=POINT,
        config="dsr1-fp8-h200-sglang",
        baseline_runs=(RunKey(1),),
        candidate_runs=(RunKey(2),),
    )
    curve, unbound = replace(found, scope=Scope.CURVE), replace(found, series=None)
    (point,) = Measured.of((found, curve, unbound))
    assert point == Measured(POINT, "tput_per_gpu", 1000.0, 1100.0, 0.05, 0.15, ("1/1", "2/1"), "dsr1-fp8-h200-sglang")


@pytest.mark.parametrize(
    ("binding", "holds"),
    [
        (Binding(), True),
        (Binding(configs=("dsr1-fp8-*",)), True),
        (Binding(configs=("dsr1-fp4-*",)), False),
        (Binding(models=("glm5", "dsr1")), True),
        (Binding(frameworks=("vllm",)), False),
        (Binding(sequences=("8192/?",)), True),
        (Binding(concurrency=((4, 16), (64, None))), True),
        (Binding(concurrency=((4, 16),)), False),
        (Binding(layouts=("TP8",)), True),
        (Binding(layouts=("DEP8",)), False),
    ],
)
def test_what_a_claim_leaves_unsaid_excludes_nothing(binding, holds):
    assert matches(binding, POINT) is holds


@pytest.mark.parametrize(
    ("word", "holds"), [("1P2D", True), ("2P1D", False), ("1P/2D", True), ("DEP16", True), ("TP8/EP8", True)]
)
def test_layout_words_are_looked_for_in_both_pools(word, holds):
    split = Layout(Role(8, ep=8), Role(16, ep=16, dp_attention=True, workers=2), multinode=True)
    assert matches(Binding(layouts=(word,)), replace(POINT, layout=split)) is holds


def test_answers_come_in_the_order_of_the_claims_and_name_their_runs():
    claims = find_claims("throughput +10.0%, TTFT -50%, GSM8K 0.958")
    checked = check(claims, [measured()], [score()])
    assert [c.claim for c in checked] == list(claims)
    assert [c.answer.value for c in checked] == ["verified", "unverifiable", "verified"]
    assert checked[0].points[0].runs == ("1/1", "2/1")


def test_direction_that_only_the_words_say_is_kept():
    ways = [claim.direction for claim in find_claims("throughput fell 5%; TTFT got 5% worse; TPOT 5% faster")]
    assert ways == [Direction.DOWN, Direction.WORSE, Direction.BETTER]


# Real texts -----------------------------------------------------------------------------------------------------------


@pytest.mark.shared
def test_the_threads_yield_their_claims_in_both_languages(shared):
    texts = [path.read_text(encoding="utf-8") for path in sorted((shared / "reference" / "threads").glob("*.txt"))]
    found = Counter((claim.kind.value, claim.values) for text in texts for claim in find_claims(text))
    assert found == {
        (Kind.SCORE_RANGE.value, (0.9538, 0.9598)): 3,
        (Kind.FROM_TO.value, (2085.0, 6003.0)): 2,
        (Kind.FROM_TO.value, (1736.0, 2586.0)): 2,
        (Kind.RATIO.value, (2.9,)): 2,
        (Kind.RATIO.value, (1.5,)): 2,
        (Kind.CHANGE.value, (30.0, 47.0)): 2,
        (Kind.SCORE.value, (0.958,)): 3,
    }


@pytest.mark.shared
def test_few_items_of_the_public_changelog_state_a_measured_number(shared):
    entries = yaml.safe_load((shared / "data" / "inferencex" / "perf-changelog.yaml").read_text(encoding="utf-8"))
    items = {str(item) for entry in entries for item in entry["description"]}
    claiming = [item for item in items if find_claims(item)]
    assert 30 <= len(claiming) <= 60, f"{len(claiming)} of {len(items)}"
