"""What a report may say is chosen, ordered and counted once, without words."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reports import facts, jsonform
from reports.facts import Listed, Moved, number_of
from reports.things import KEPT_ALWAYS, longest, trim
from store.images import Sameness
from store.records import Caveat, Comparison, Finding, Layout, Role, Scope, Unmatched, Verdict
from tests.sayings import (
    AFTER,
    BEFORE,
    SHA,
    a_finding,
    a_large_sweep,
    a_random_comparison,
    a_screen,
    a_series,
    alone,
    an_eval,
)


def compared(*findings: Finding, unmatched: tuple[Unmatched, ...] = ()) -> Comparison:
    return Comparison(AFTER, BEFORE, "previous", findings, unmatched, (), "1")


def test_counts_sum_to_every_point_curve_and_eval() -> None:
    for seed in range(400):
        given = a_random_comparison(seed)
        chosen = facts.select(given)
        points = {f.key for f in given.findings if f.scope is Scope.POINT}
        points |= {row.key for row in given.unmatched if row.task is None}
        evals = {f.key for f in given.findings if f.scope is Scope.EVAL}
        evals |= {row.key for row in given.unmatched if row.task is not None}
        curves = {f.key for f in given.findings if f.scope is Scope.CURVE and facts.decides(f)}
        assert (chosen.total_points, chosen.total_scores, chosen.total_curves) == (len(points), len(evals), len(curves))


def test_exit_code_and_headline_come_from_one_verdict() -> None:
    for seed in range(200):
        given = a_random_comparison(seed)
        assert facts.select(given).verdict is facts.worst(given)


def test_the_headline_counts_a_lost_agentic_row_and_a_failed_eval() -> None:
    """Case 45: the headline covers what the table would filter out, and accuracy comes first."""
    calm = [a_finding(a_series(conc), "tput_per_gpu", Verdict.EQUIVALENT, 0.2) for conc in (64, 128, 256)]
    agentic = replace(a_series(16), model="gptoss120b", scenario="agentic_traces", isl=None, osl=None)
    lost = a_finding(agentic, "tput_per_gpu", Verdict.REGRESSION, -52.5, baseline=400.0, candidate=190.0)
    failed = an_eval(64, 0.9553, 0.6, Verdict.REGRESSION)
    chosen = facts.select(
        compared(*calm, lost, failed),
        keep=lambda row: row.series is not None and row.series.scenario == "single_turn",
        filtered_by="scenario single_turn",
    )
    assert chosen.verdict is Verdict.REGRESSION
    assert chosen.points == ((Verdict.REGRESSION, 1), (Verdict.EQUIVALENT, 3))
    assert chosen.scores == ((Verdict.REGRESSION, 1),)
    assert chosen.total_points + chosen.total_scores == 5
    assert chosen.lead == (failed, lost)
    assert not chosen.worse
    assert chosen.hidden == facts.Hidden("scenario single_turn", 1, 1)
    assert chosen.steps[0].code == "check_evals"


def test_a_filter_that_hides_nothing_is_still_named() -> None:
    chosen = facts.select(a_screen(), keep=lambda _: True, filtered_by="metric tput_per_gpu")
    assert chosen.hidden == facts.Hidden("metric tput_per_gpu", 0, 0)
    assert facts.select(a_screen()).hidden is None


def test_a_point_has_the_worst_of_its_gate_verdicts() -> None:
    point = a_series(64)
    chosen = facts.select(
        compared(
            a_finding(point, "tput_per_gpu", Verdict.EQUIVALENT, 0.0),
            a_finding(point, "median_tpot", Verdict.REGRESSION, 9.0),
            a_finding(point, "p99_ttft", Verdict.IMPROVEMENT, -40.0),
        )
    )
    assert chosen.points == ((Verdict.REGRESSION, 1),)


def test_a_point_without_a_gate_metric_counts_as_not_judged() -> None:
    chosen = facts.select(compared(a_finding(a_series(64), "p99_ttft", Verdict.REGRESSION, 70.0)))
    assert chosen.points == ((Verdict.NOT_JUDGED, 1),)


def test_advisory_metrics_are_told_and_never_decide() -> None:
    calm = a_finding(a_series(None), "tput_per_gpu", Verdict.EQUIVALENT, 0.0)
    tail = a_finding(a_series(None), "p99_ttft", Verdict.REGRESSION, 70.0)
    chosen = facts.select(compared(calm, tail))
    assert (chosen.verdict, chosen.advisory.rows) == (Verdict.EQUIVALENT, (Moved(tail),))


@pytest.mark.parametrize(
    ("verdict", "caveats", "told"),
    [
        (Verdict.FAILED, (), Verdict.FAILED),
        (Verdict.EQUIVALENT, (Caveat.of("below_threshold", score=0.82, threshold=0.83),), Verdict.FAILED),
        (Verdict.REGRESSION, (Caveat.of("below_threshold", score=0.82, threshold=0.83),), Verdict.REGRESSION),
        (Verdict.EQUIVALENT, (), Verdict.EQUIVALENT),
        (Verdict.RECOVERY, (), Verdict.RECOVERY),
    ],
)
def test_a_missed_gate_failed_unless_it_regressed_too(
    verdict: Verdict, caveats: tuple[Caveat, ...], told: Verdict
) -> None:
    given = compared(an_eval(64, 0.83, 0.82, verdict, *caveats))
    chosen, form = facts.select(given), jsonform.form(given)
    (entry,) = (*chosen.accuracy.rows, *chosen.evals.rows)
    assert facts.worst(given) is chosen.verdict is entry.verdict is told
    assert chosen.scores == ((told, 1),)
    assert [one["verdict"] for one in (form["headline"], *form["findings"])] == [told.value, told.value]
    assert form["headline"]["evals"] == {"total": 1, told.value: 1}


def test_a_failed_gate_decides_before_a_suspicion_and_leads() -> None:
    gain = a_finding(a_series(None), "tput_per_gpu", Verdict.IMPROVEMENT, 30.0)
    doubt = an_eval(16, 0.95, 0.93, Verdict.SUSPECTED)
    failed = an_eval(64, None, 0.8901, Verdict.FAILED)
    chosen = facts.select(compared(gain, doubt, failed))
    assert (chosen.verdict, chosen.lead) == (Verdict.FAILED, (failed,))


def test_no_first_line_pairs_a_verdict_with_a_finding_of_another() -> None:
    for seed in range(300):
        chosen = facts.select(a_random_comparison(seed))
        for finding in chosen.lead:
            assert chosen.verdict in (facts.told_verdict(finding), Verdict.MIXED)


def test_a_verdict_of_an_eval_is_led_by_that_eval() -> None:
    calm = a_finding(a_series(None), "tput_per_gpu", Verdict.EQUIVALENT, 0.05)
    noisy = an_eval(64, 0.95, 0.948, Verdict.INCONCLUSIVE)
    chosen = facts.select(compared(calm, noisy))
    assert (chosen.verdict, chosen.lead) == (Verdict.INCONCLUSIVE, (noisy,))


def test_a_format_alarm_stands_among_the_problems_without_a_fall() -> None:
    alarm = an_eval(64, 0.9553, 0.9551, Verdict.SUSPECTED, Caveat.of("format_gap", growth=0.04))
    chosen = facts.select(compared(alarm))
    assert (chosen.accuracy.rows, chosen.evals.rows) == ((Moved(alarm),), ())


def test_a_recovery_is_no_improvement() -> None:
    """Case 08: against the last good run +1.9 %, and the verdict of the headline says recovery."""
    back = a_finding(a_series(None), "tput_per_gpu", Verdict.RECOVERY, 1.9, caveats=(Caveat.of("recovery"),))
    chosen = facts.select(compared(back))
    assert chosen.verdict is Verdict.RECOVERY
    assert number_of(chosen.curves, Verdict.IMPROVEMENT) == 0


def test_a_mixed_curve_is_led_by_its_worst_point() -> None:
    """Case 25 C: +6.2 % in the mean hides -30.0 % at one concurrency."""
    curve = a_finding(a_series(None), "tput_per_gpu", Verdict.MIXED, 6.2)
    points = [
        a_finding(a_series(conc), "tput_per_gpu", verdict, percent)
        for conc, verdict, percent in (
            (1, Verdict.IMPROVEMENT, 20.0),
            (4, Verdict.IMPROVEMENT, 21.0),
            (16, Verdict.IMPROVEMENT, 25.0),
            (64, Verdict.REGRESSION, -30.0),
        )
    ]
    chosen = facts.select(compared(curve, *points))
    assert chosen.lead == (points[3],)
    assert [entry.rows for entry in chosen.worse.rows] == [(curve, points[3])]


def test_points_inside_a_fallen_curve_stand_with_their_curve() -> None:
    chosen = facts.select(a_screen())
    (entry,) = chosen.worse.rows
    assert [row.metric for row in entry.rows] == ["tput_per_gpu", "median_tpot", "tput_per_gpu"]
    assert [one.finding.scope for one in entry.entries] == [Scope.CURVE, Scope.POINT]
    assert [row.series.conc for row in chosen.worse_points.rows if row.series] == [64]


def a_config(metric: str, verdict: Verdict, percent: float) -> Finding:
    """The finding of a config as a whole."""
    curve = a_finding(a_series(None), metric, verdict, percent)
    return replace(curve, scope=Scope.CONFIG, key=curve.config, series=None)


def test_curves_stand_inside_a_config_that_moved_whole() -> None:
    curves = [a_finding(a_series(None, tp=tp), "tput_per_gpu", Verdict.IMPROVEMENT, 9.0 + tp) for tp in (4, 8)]
    (entry,) = facts.select(compared(a_config("tput_per_gpu", Verdict.IMPROVEMENT, 15.0), *curves)).better.rows
    assert entry.finding.scope is Scope.CONFIG
    assert [part.finding for part in entry.inside] == curves[::-1]


def test_a_config_of_which_one_curve_moved_is_told_by_its_curve() -> None:
    calm = a_finding(a_series(None, tp=4), "tput_per_gpu", Verdict.EQUIVALENT, 0.1)
    fallen = a_finding(a_series(None), "tput_per_gpu", Verdict.REGRESSION, -9.0)
    whole = a_config("tput_per_gpu", Verdict.SUSPECTED, -4.0)
    chosen = facts.select(compared(calm, fallen, whole))
    assert [entry.finding for entry in chosen.worse.rows] == [fallen, whole]
    assert [entry.finding for entry in facts.at_largest_scope(chosen.worse.rows)] == [fallen]
    assert chosen.steps[0].rows == (fallen,)


def test_a_point_is_told_by_its_throughput_where_both_metrics_say_the_same() -> None:
    """-30 % of throughput and +42.9 % of TPOT are one move, and rounding must not choose the name."""
    point = a_series(64)
    tput = a_finding(point, "tput_per_gpu", Verdict.SUSPECTED, -30.0)
    tpot = a_finding(point, "median_tpot", Verdict.REGRESSION, 42.9)
    chosen = facts.select(compared(tpot, tput))
    assert [entry.finding for entry in chosen.worse.rows] == [tput]
    assert (chosen.verdict, chosen.lead) == (Verdict.REGRESSION, (tpot,))
    slow = a_finding(point, "median_tpot", Verdict.REGRESSION, 90.0)
    assert facts.select(compared(slow, tput)).lead == (slow,)


@pytest.mark.parametrize(("multinode", "metric"), [(False, "tput_per_gpu"), (True, "median_tpot")])
def test_a_curve_over_several_nodes_is_told_by_tpot(multinode: bool, metric: str) -> None:
    series = replace(a_series(None), layout=Layout(Role(8), Role(8), multinode))
    found = [
        a_finding(series, "tput_per_gpu", Verdict.REGRESSION, -8.0),
        a_finding(series, "median_tpot", Verdict.REGRESSION, 9.0),
    ]
    (entry,) = facts.select(compared(*found)).worse.rows
    assert (entry.finding.metric, len(entry.also)) == (metric, 1)


def jobs_of(verdicts: tuple[Verdict, ...]) -> list[Finding]:
    return [an_eval(16 * 2**at, 0.95, 0.9 - at / 100, verdict) for at, verdict in enumerate(verdicts)]


def a_pool(metric: str, verdict: Verdict) -> Finding:
    job = an_eval(16, 0.95, 0.89, verdict)
    return replace(job, scope=Scope.CONFIG, key=f"{job.config} gsm8k", series=None, metric=metric, n_points=2)


def test_evals_of_a_config_are_one_entry_where_its_jobs_agree() -> None:
    jobs = jobs_of((Verdict.REGRESSION, Verdict.REGRESSION))
    strict = [replace(job, metric="em_strict") for job in jobs]
    pools = [a_pool("em_flexible", Verdict.REGRESSION), a_pool("em_strict", Verdict.REGRESSION)]
    chosen = facts.select(compared(*jobs, *strict, *pools))
    (entry,) = chosen.accuracy.rows
    assert (entry.finding.scope, len(entry.also), len(entry.inside), len(entry.rows)) == (Scope.CONFIG, 1, 2, 6)
    assert chosen.total_scores == 2


def test_jobs_that_disagree_are_told_one_by_one() -> None:
    fallen, calm = jobs_of((Verdict.REGRESSION, Verdict.EQUIVALENT))
    chosen = facts.select(compared(fallen, calm, a_pool("em_flexible", Verdict.REGRESSION)))
    assert [entry.finding.scope for entry in chosen.accuracy.rows] == [Scope.EVAL, Scope.CONFIG]


def test_strict_and_flexible_are_two_entries_where_their_verdicts_differ() -> None:
    job = an_eval(64, 0.95, 0.9, Verdict.REGRESSION)
    strict = replace(job, metric="em_strict", verdict=Verdict.SUSPECTED)
    assert len(facts.select(compared(job, strict)).accuracy.rows) == 2


def test_a_doubt_of_many_findings_names_none_of_them() -> None:
    doubt = Caveat.of("recipe_changed")
    found = [
        a_finding(a_series(conc), "tput_per_gpu", Verdict.REGRESSION, -9.0, caveats=(doubt,)) for conc in range(1, 15)
    ]
    calm = a_finding(a_series(99), "tput_per_gpu", Verdict.EQUIVALENT, 0.0)
    (note,) = facts.select(compared(*found, calm)).doubts.rows
    assert (note.is_general, note.number, note.total) == (True, 14, 15)


def test_no_finding_that_moved_is_lost_or_told_twice() -> None:
    for seed in range(300):
        chosen = facts.select(a_random_comparison(seed))
        for listed in (chosen.accuracy, chosen.evals, chosen.worse, chosen.better, chosen.undecided):
            rows = [row for entry in listed.rows for row in entry.rows]
            assert len(rows) == len({id(row) for row in rows})
        evals = [row for entry in (*chosen.accuracy.rows, *chosen.evals.rows) for row in entry.rows]
        assert len(evals) == sum(facts.is_eval(row) for row in a_random_comparison(seed).findings)


def test_one_run_asks_for_another_and_two_hold_the_merge() -> None:
    fallen = a_finding(a_series(None), "tput_per_gpu", Verdict.REGRESSION, -8.0)
    once, twice = (facts.select(compared(replace(fallen, n_candidate=n))).steps[0].code for n in (1, 2))
    assert (once, twice) == ("confirm", "hold")


@pytest.mark.parametrize(
    ("verdict", "step"),
    [
        (Verdict.EQUIVALENT, "merge_safe"),
        (Verdict.IMPROVEMENT, "merge_safe"),
        (Verdict.INCONCLUSIVE, "run_again"),
        (Verdict.NOISY, "run_again"),
    ],
)
def test_a_calm_sweep_has_a_next_step_too(verdict: Verdict, step: str) -> None:
    chosen = facts.select(compared(a_finding(a_series(None), "tput_per_gpu", verdict, 4.0)))
    assert [one.code for one in chosen.steps] == [step]


def test_nothing_at_all_is_not_called_unchanged() -> None:
    chosen = facts.select(compared())
    assert (chosen.verdict, chosen.points, chosen.steps[0].code) == (Verdict.NOT_JUDGED, (), "no_results")


def test_missing_points_ask_for_a_run_and_do_not_hide_a_verdict() -> None:
    calm = a_finding(a_series(None), "tput_per_gpu", Verdict.EQUIVALENT, 0.0)
    chosen = facts.select(compared(calm, unmatched=(alone(64, Verdict.MISSING, "missing_point", "baseline"),)))
    assert (chosen.verdict, chosen.steps[0].code) == (Verdict.EQUIVALENT, "rerun_missing")


def test_only_missing_points_are_the_verdict() -> None:
    given = compared(
        unmatched=(alone(64, Verdict.MISSING, "missing_point"), alone(8, Verdict.NO_BASELINE, "new_point"))
    )
    assert facts.worst(given) is Verdict.MISSING


def test_a_nightly_image_older_than_registries_keep_it_is_named() -> None:
    """Case 28: the comparison is made, and the report says that the image may be gone."""
    image = f"vllm/vllm-openai:nightly-{SHA}"
    early = replace(BEFORE[0], started_at=AFTER[0].started_at - timedelta(days=49))
    found = a_finding(a_series(None), "tput_per_gpu", Verdict.EQUIVALENT, 1.0, baseline_image=image)
    given = replace(compared(replace(found, baseline_runs=(early.key,))), baseline=(early,))
    assert Caveat.of("image_may_be_gone", image=image, days=49) in facts.select(given).caveats


def test_a_moving_tag_without_digest_is_unknown_software() -> None:
    """Case 27: neither the same image nor another version."""
    pairs = [
        ("a/b:latest@sha256:" + "1" * 64, "a/b:latest@sha256:" + "2" * 64),
        ("vllm/vllm-openai:nightly", "vllm/vllm-openai:nightly"),
        ("a/b:v1@sha256:" + "3" * 64, "a/b:v2@sha256:" + "3" * 64),
    ]
    found = [
        a_finding(a_series(conc), "tput_per_gpu", Verdict.EQUIVALENT, 0.0, baseline_image=old, candidate_image=new)
        for conc, (old, new) in enumerate(pairs, 1)
    ]
    sameness = {pair.before: pair.sameness for pair in facts.select(compared(*found)).images.rows}
    assert [sameness[old] for old, _ in pairs] == [Sameness.CHANGED, Sameness.UNKNOWN, Sameness.SAME]


def test_doubts_that_everything_shares_are_told_once() -> None:
    shared, own = Caveat.of("single_run"), Caveat.of("implausible_gain")
    one = a_finding(a_series(None), "tput_per_gpu", Verdict.REGRESSION, -8.0, caveats=(shared, own))
    two = a_finding(a_series(None, tp=4), "tput_per_gpu", Verdict.REGRESSION, -9.0, caveats=(shared,))
    chosen = facts.select(compared(one, two))
    assert chosen.caveats == (shared,)
    assert [(note.caveat, note.rows) for note in chosen.doubts.rows] == [(own, (one,))]


def test_history_is_kept_for_curves_that_moved_only() -> None:
    moved, calm = a_series(None), a_series(None, tp=4)
    given = compared(
        a_finding(moved, "tput_per_gpu", Verdict.REGRESSION, -8.0),
        a_finding(calm, "tput_per_gpu", Verdict.EQUIVALENT, 0.0),
    )
    keys = {finding.key: [1.0, 2.0] for finding in given.findings}
    assert [trace.curve.series for trace in facts.select(given, history=keys).history.rows] == [moved]


def test_trimming_cuts_the_least_important_lists_first() -> None:
    chosen = facts.select(a_large_sweep(200, 4))
    short = trim(chosen, facts.BY_IMPORTANCE, 10)
    assert (len(short.worse.rows), short.worse.left_out) == (10, 40)
    assert short.worse.rows == chosen.worse.rows[:10]
    assert len(short.candidate.rows) == len(short.images.rows) == 1
    assert len(short.baseline.rows) == KEPT_ALWAYS
    assert trim(chosen, facts.BY_IMPORTANCE, longest(chosen, facts.BY_IMPORTANCE)) == chosen


def test_a_list_remembers_what_was_cut() -> None:
    assert Listed(tuple(range(5))).first(2).first(1) == Listed((0,), 4)
    assert not Listed()
    assert Listed((), 3)


def test_runs_of_other_repositories_or_files_get_no_link() -> None:
    (run,) = AFTER
    assert facts.run_url(run) == f"https://github.com/SemiAnalysisAI/InferenceX/actions/runs/{run.id}/attempts/2"
    assert facts.run_url(replace(run, repository="evil.example/x](http://y")) is None
    assert facts.run_url(replace(run, id=-5)) is None
