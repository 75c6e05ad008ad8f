"""Verdicts of evals whose answers are known question by question, and of those whose answers must not be paired."""

import json
from dataclasses import replace

import numpy as np
import pytest

from reports import facts, jsonform, render
from store.answers import pack, ranges
from store.records import Answers, Caveat, Comparison, Run, Scope, Verdict
from tests.test_scores import NIGHT, NO_GATE, OLD, N, codes, judge, only, score
from tracker.judge.pairing import rebuilt
from tracker.stats.proportions import Difference

EASY = np.arange(N) < 1259
FORM = np.arange(N) < 1256


def changed(bits, lost, gained, seed=0):
    """As many right answers made wrong, and wrong ones made right."""
    rng = np.random.default_rng(seed)
    new = bits.copy()
    new[rng.choice(np.flatnonzero(bits), lost, replace=False)] = False
    new[rng.choice(np.flatnonzero(~bits), gained, replace=False)] = True
    return new


def told(run, flexible, strict=FORM, *, questions="q", **more):
    answers = Answers(questions, ranges(range(N)), N, pack(strict), pack(flexible))
    made = score(run, float(flexible.mean()), float(strict.mean()), **more)
    return replace(made, answers=answers)


def drop(lost, gained):
    return [told(1, EASY, image=OLD)], [told(2, changed(EASY, lost, gained))]


def test_a_drop_is_paired_by_question_and_says_so():
    finding = only(judge(*drop(35, 10)))
    assert (finding.verdict, finding.effect) == (Verdict.REGRESSION, pytest.approx(-25 / N))
    assert codes(finding)["paired"] == {"lost": 35, "gained": 10, "n": N}
    assert finding.evidence.scale_source == "paired by question, 35 lost, 10 gained"
    assert finding.low < finding.effect < finding.high < 0


def test_without_answers_it_is_two_samples_and_says_so():
    bare = [[replace(s, answers=None) for s in side] for side in drop(35, 10)]
    finding = only(judge(*bare))
    assert finding.evidence.scale_source.startswith("two samples, shared-question correction phi 0.600")
    assert finding.evidence.pairs == ()
    assert not {"paired", "paired_runs", "unpaired_side", "unpaired_questions"} & codes(finding).keys()


def test_few_flips_show_a_drop_that_two_samples_cannot_see():
    """14 losses and no gain: nothing of it is luck, while the correction for all evals expects 40 flips."""
    paired, plain = (
        only(judge(base, new, NO_GATE))
        for base, new in (drop(14, 0), [[replace(s, answers=None) for s in side] for side in drop(14, 0)])
    )
    assert (paired.verdict, plain.verdict) == (Verdict.REGRESSION, Verdict.SUSPECTED)
    assert paired.p < 0.001 < plain.p


def test_many_flips_take_away_a_drop_that_two_samples_would_see():
    finding = only(judge(*drop(60, 43)))
    bare = only(judge(*[[replace(s, answers=None) for s in side] for side in drop(60, 43)]))
    assert finding.p > 0.04
    assert bare.p < 0.01
    assert finding.mde > bare.mde


def test_what_was_not_changed_is_equivalent_and_its_power_is_told():
    finding = only(judge(*drop(6, 6)))
    assert finding.verdict is Verdict.EQUIVALENT
    assert -0.01 < finding.low < finding.high < 0.01
    assert 0.01 < finding.mde < 0.02


def test_strict_and_flexible_are_paired_each_by_its_own():
    found = judge([told(1, EASY, image=OLD)], [told(2, EASY, changed(FORM, 43, 0))], NO_GATE)
    assert only(found).verdict is Verdict.EQUIVALENT
    strict = only(found, "em_strict")
    assert strict.verdict is Verdict.REGRESSION
    assert codes(strict)["format_gap"]["growth"] == pytest.approx(43 / N)
    assert codes(strict)["wrong_format"] == {"count": 46, "n": N, "earlier": 3}


def test_other_questions_are_never_paired():
    base, new = drop(35, 10)
    other = [replace(s, answers=replace(s.answers, questions="r")) for s in new]
    finding = only(judge(base, other))
    assert "unpaired_questions" in codes(finding)
    assert finding.evidence.scale_source.startswith("two samples")


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        ({"n": 1000}, "answers_count"),
        ({"questions": ""}, "answers_unidentified"),
        ({"flexible": pack(changed(EASY, 9, 0))}, "answers_disagree"),
        ({"flexible": "AAAA"}, "answers_broken"),
    ],
)
def test_answers_that_contradict_their_score_are_not_paired(spoil, code):
    base, new = drop(35, 10)
    if "n" in spoil:
        spoil = {"n": 1000, "flexible": pack(EASY[:1000]), "strict": pack(FORM[:1000])}
    doubtful = [replace(s, answers=replace(s.answers, **spoil)) for s in base]
    finding = only(judge(doubtful, new))
    assert code in codes(finding)
    assert finding.evidence.pairs == ()


def test_answers_of_one_side_only_are_told():
    base, new = drop(35, 10)
    finding = only(judge([replace(base[0], answers=None)], new))
    assert codes(finding)["unpaired_side"] == {"side": "baseline"}
    finding = only(judge(base, [replace(new[0], answers=None)]))
    assert codes(finding)["unpaired_side"] == {"side": "candidate"}


def test_all_runs_of_both_sides_are_judged_together():
    history = [told(run, changed(EASY, 20, 20, run), image=OLD) for run in (1, 2, 3)]
    fresh = [told(run, changed(EASY, 45, 20, run)) for run in (4, 5)]
    finding = only(judge(history, fresh, NO_GATE))
    assert (finding.verdict, finding.n_baseline, finding.n_candidate) == (Verdict.REGRESSION, 3, 2)
    (pairs,) = finding.evidence.pairs
    assert (pairs.baseline_runs, pairs.candidate_runs) == (3, 2)
    assert sum(count for *_, count in pairs.cells) == N
    assert finding.effect == pytest.approx(-25 / N)
    assert finding.mde < only(judge(history[:1], fresh[:1], NO_GATE)).mde


def test_baseline_runs_without_answers_stay_in_the_mean():
    history = [told(run, changed(EASY, 20, 20, run), image=OLD) for run in (1, 2, 3)]
    history = [replace(s, answers=None) for s in history[:2]] + history[2:]
    finding = only(judge(history, [told(4, changed(EASY, 40, 20, 4))], NO_GATE))
    assert finding.n_baseline == 3
    assert finding.effect == pytest.approx(-20 / N)
    assert (codes(finding)["paired_runs"]["have"], codes(finding)["paired_runs"]["of"]) == (1, 3)
    assert finding.evidence.scale_source.startswith("flips against some baseline runs")
    alone = only(judge(history[2:], [told(4, changed(EASY, 40, 20, 4))], NO_GATE))
    assert finding.mde < alone.mde


CONCS = (16, 64, 256)


def test_jobs_that_share_their_flips_are_one_and_not_three():
    def jobs(run, seeds, **more):
        return [told(run, changed(EASY, 25, 8, s), conc=c, **more) for c, s in zip(CONCS, seeds, strict=True)]

    base = [told(1, EASY, conc=conc, image=OLD) for conc in CONCS]
    same, apart = (judge(base, jobs(2, seeds), NO_GATE) for seeds in ((7, 7, 7), (7, 8, 9)))
    shared, own = (only(found, scope=Scope.CONFIG) for found in (same, apart))
    assert shared.effect == pytest.approx(own.effect) == pytest.approx(-17 / N)
    assert shared.p == pytest.approx(only(judge(base[:1], jobs(2, (7, 7, 7))[:1], NO_GATE)).p, rel=0.5)
    assert own.p < shared.p / 100
    assert (shared.evidence.correlation, own.evidence.correlation < 0.2) == (pytest.approx(1), True)
    assert codes(own)["paired"] == {"lost": 75, "gained": 24, "n": 3 * N}


def test_jobs_of_which_one_has_no_answers_are_pooled_as_before():
    base = [told(1, EASY, conc=conc, image=OLD) for conc in CONCS]
    new = [told(2, changed(EASY, 25, 8, conc), conc=conc) for conc in CONCS]
    finding = only(judge(base, [replace(new[0], answers=None), *new[1:]], NO_GATE), scope=Scope.CONFIG)
    assert finding.verdict is Verdict.REGRESSION
    assert finding.evidence.scale_source.startswith("jobs pooled, ")
    assert "two samples" in finding.evidence.scale_source
    assert finding.evidence.pairs == ()


def test_a_verdict_is_rebuilt_from_its_record_alone():
    base = [told(1, EASY, conc=conc, image=OLD) for conc in CONCS]
    found = judge(base, [told(2, changed(EASY, 30, 8, conc), conc=conc) for conc in CONCS], NO_GATE)
    for finding in found[0]:
        again = rebuilt(finding.evidence.pairs, finding.evidence.correlation)
        assert (again.effect, again.p) == pytest.approx((finding.effect, finding.p))
        assert again.interval() == pytest.approx((finding.low, finding.high))
        assert again.detectable(finding.evidence.margin, finding.evidence.alpha) == pytest.approx(finding.mde)


def test_swapping_the_sides_mirrors_a_paired_verdict():
    (base,), (new,) = drop(35, 10)
    there = only(judge([base], [new], NO_GATE))
    back = only(judge([replace(new, run=base.run, image=OLD)], [replace(base, run=new.run, image=new.image)], NO_GATE))
    assert back.verdict is Verdict.IMPROVEMENT
    assert (back.effect, back.p, back.mde) == pytest.approx((-there.effect, there.p, there.mde))
    assert (back.low, back.high) == pytest.approx((-there.high, -there.low))


def test_a_paired_difference_among_two_samples_keeps_its_p():
    finding = only(judge(*drop(35, 10)))
    part = rebuilt(finding.evidence.pairs).as_difference()
    assert isinstance(part, Difference)
    assert part.p_drop == pytest.approx(finding.p, rel=1e-6)


# What the documents say


def documents(found, unmatched=()):
    runs = [Run(number, 1, NIGHT) for number in (2, 1)]
    comparison = Comparison((runs[0],), (runs[1],), "previous", found[0], found[1], (), "5")
    chosen = facts.select(comparison)
    return comparison, {lang: render.render(chosen, "comparison", lang) for lang in ("en", "zh")}


def test_both_languages_and_the_json_form_tell_how_it_was_judged():
    comparison, texts = documents(judge(*drop(35, 10)))
    assert "Paired by question: answers lost 35, gained 10, of 1319." in texts["en"]
    assert "按题配对：1319 题中由对变错 35 题，由错变对 10 题。" in texts["zh"]
    form = json.loads(jsonform.dumps(comparison))
    first = next(row for row in form["findings"] if row["metric"] == "em_flexible")
    assert first["evidence"]["pairs"] == [
        {"runs": {"baseline": 1, "candidate": 1}, "cells": [[0, 0, 50], [0, 1, 10], [1, 0, 35], [1, 1, 1224]]}
    ]


def test_a_missing_eval_and_a_score_that_passes_but_fell_are_told():
    """Two evals of a config: one has gone; the other passes its gate and is lower than before and than its past."""
    base = [told(1, EASY, conc=conc, image=OLD) for conc in (64, 256)]
    found = judge(base, [told(2, changed(EASY, 35, 10))])
    gone = next(row for row in found[1] if row.reason.code == "missing_eval")
    assert (gone.verdict, gone.series.conc) == (Verdict.MISSING, 256)
    fell = only(found)
    assert fell.candidate > codes(fell)["gate"]["threshold"] == 0.91
    assert fell.verdict is Verdict.REGRESSION
    for lang, (missing, regression) in {"en": ("missing", "regression"), "zh": ("缺失", "回归")}.items():
        lines = documents(found)[1][lang].splitlines()
        assert any("c256" in line and missing in line for line in lines)
        assert any("c64" in line and regression in line and "-1.9 pp" in line for line in lines)


def test_a_score_that_falls_from_its_siblings_is_told():
    low = [told(2, EASY, conc=16), told(2, EASY, conc=32), told(2, changed(EASY, 40, 0), conc=64)]
    found = judge([], low)
    fallen = next(f for f in found[0] if f.series and f.series.conc == 64 and f.metric == "em_flexible")
    assert fallen.verdict is Verdict.SUSPECTED
    assert "falls from the neighbours of the same run" in documents(found)[1]["en"]
    assert Caveat.of("gate", threshold=0.91, model="dsr1") in fallen.caveats
