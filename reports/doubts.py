"""Sentences for codes: caveats, reasons why rows stand alone, and reasons why rows were rejected.

A code may have several sentences, the fullest first: the first whose values are all there is said. A code without a
sentence is still said, by name and with its values, so that no doubt is lost between two versions of the rules.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from reports import numbers
from reports.facts import Moved, Note
from reports.language import N_, Phrase, listing, phrase, sentences, slots
from reports.language import Value as Said
from reports.phrases import KINDS, SIDES, elsewhere, kind, label, metric_name, side, task_name, verdict_name
from store.metrics import METRICS
from store.records import Caveat, Unmatched, Value, Verdict

UNKNOWN_CODE = N_("Caveat %(code)s.")
UNKNOWN_CODE_WITH_VALUES = N_("Caveat %(code)s (%(values)s).")

_COMPARISON = {
    "older_baseline": (
        N_("Points that the newest baseline run lacks, compared with an older run: %(points)s."),
        N_("The newest baseline run lacks this point; an older run stands for it."),
    ),
    "pool_changed": (
        N_("The pool of machines changed from %(baseline)s to %(candidate)s."),
        N_("The pools of machines differ between the sides."),
    ),
    "image_unknown": (
        N_("The image %(image)s is a moving tag without a digest, so the software of the two runs may differ."),
        N_("It is not known whether both sides ran the same image."),
    ),
    "image_may_be_gone": (
        N_(
            "The nightly image %(image)s is %(days)s days old and may no longer be pullable;"
            " run both sides with images that exist."
        ),
    ),
    "single_run": (N_("One candidate run only: a second one would confirm it."),),
    "run_again": (N_("One candidate run only: a second one would confirm it."),),
    "few_runs": (
        N_("Only %(have)s runs on a side; at least %(need)s are needed."),
        N_("Only %(have)s runs on a side."),
        N_("There are few runs on a side."),
    ),
    "environment": (
        N_("The same software moved by %(change)s on these machines: this is a shift of the environment."),
        N_("The image is the same on both sides: this is a shift of the environment."),
    ),
    "same_identity": (N_("Image and recipe are the same on both sides: this is a shift of the environment."),),
    "implausible_gain": (N_("The gain is implausibly large: check workload and client settings before telling it."),),
    "rerun": (N_("Median ITL did not move while TPOT did, as on disturbed machines: run these points again."),),
    "recovery": (
        N_("Against the previous run the change is %(change)s; the figures here compare with the last good run."),
        N_("Back at the level of the last good run; the previous run was bad."),
    ),
    "below_last_good": (
        N_("Against the last good run the change is %(change)s: an earlier loss lasts."),
        N_("Still below the last good run."),
    ),
    "flaky_baseline": (
        N_("Baseline runs far from the others were set aside: %(dropped)s."),
        N_("Points with a baseline run set aside as far from the others: %(points)s."),
        N_("Baseline runs far from the others were set aside."),
    ),
    "mixed_candidate": (
        N_("The candidate runs differ in image or recipe; left out: %(left_out)s."),
        N_("The candidate runs differ in image or recipe."),
    ),
    "only_metrics": (N_("Only these metrics were judged: %(metrics)s."),),
    "identity_incomplete": (
        N_("This era does not say: %(fields)s."),
        N_("This era does not say everything that makes two points comparable."),
    ),
    "header_unit_wrong": (
        N_("The header says %(said)s, the values are in %(true)s; they were read as %(true)s."),
        N_("The header names a wrong unit; the values were read as what they are."),
    ),
    "unit_unverified": (
        N_("Nothing confirms that the latencies are in %(unit)s."),
        N_("Nothing confirms the unit of the latencies."),
    ),
    "image_rollback": (
        N_("The image %(image)s is one that run %(run)s had measured before the baseline's."),
        N_("The image is one that was measured before the baseline's."),
    ),
    "image_not_of_config": (
        N_("The config names the image %(config)s, the row %(row)s."),
        N_("The image of the row is not the one that its config names."),
    ),
    "client_image": (
        N_("The client ran from the image %(client)s, the server from %(server)s."),
        N_("Client and server ran from different images."),
    ),
    "recipe_changed": (N_("The recipe changed between the sides."),),
    "recipe_unknown": (N_("One side only names its recipe, so it is not known whether the recipe is the same."),),
    "router_differs": (
        N_("The metadata names router version %(named)s, the changelog installs %(installed)s."),
        N_("The router version of the metadata is not the one that the changelog installs."),
    ),
    "setting_changed": (
        N_("%(field)s was %(baseline)s, now %(candidate)s."),
        N_("A setting changed between the sides."),
    ),
    "frontier_same_layouts": (
        N_("Both sides measured the same layouts: the curves speak for themselves, the frontier is told beside them."),
    ),
    "frontier_beside_curves": (
        N_("Some curves of the group have twins and decide; the frontier is told beside them."),
    ),
    "peak_beside_frontier": (
        N_("The frontiers are compared at equal interactivity; the peak is told beside that and decides nothing."),
    ),
    "latency_beside_frontier": (
        N_("The shift at equal end-to-end latency is told beside that at equal interactivity and decides nothing."),
    ),
    "frontier_left_out": (
        N_("Points that one side merely did not measure, and that count on no frontier: %(points)s."),
        N_("Points that one side merely did not measure count on no frontier."),
    ),
    "frontier_incomplete": (
        N_("Points of new layouts that were asked for did not come, so no loss is called: %(points)s."),
        N_("Points of new layouts did not come, so no loss is called."),
    ),
    "no_shared_interactivity": (N_("The sides have no interactivity in common, so only their peaks are compared."),),
    "topology_changed": (
        N_("%(config)s: topology %(baseline)s on the baseline's side only, %(candidate)s on the candidate's only."),
        N_("The topologies differ between the sides."),
    ),
    "kind_changed": (
        N_("The runs are of different kinds: baseline %(kind_before)s, candidate %(kind_after)s."),
        N_("The runs are of different kinds."),
    ),
    "reused_run": (
        N_("Run %(run)s measured; run %(by)s published its rows on %(date)s without measuring again."),
        N_("Run %(run)s measured; run %(by)s published its rows without measuring again."),
        N_("The rows were published by another run than the one that measured them."),
    ),
    "measured_nothing": (
        N_("Run %(run)s has no rows of its own."),
        N_("The run has no rows of its own."),
    ),
    "trimmed_sweep": (
        N_(
            "Run %(run)s has the label %(label)s: it was trimmed to the lowest concurrency of each group and is not a"
            " whole curve."
        ),
        N_("The sweep was trimmed to the lowest concurrency of each group and is not a whole curve."),
    ),
    "part_of_curve": (
        N_("A trimmed sweep: this speaks of the points that it has (%(points)s), not of the whole curve."),
        N_("A trimmed sweep: this speaks of the points that it has, not of the whole curve."),
    ),
    "agentx_fast": (
        N_(
            "Run %(run)s has the label %(label)s: its AgentX profile was shortened, which no full run is compared with."
        ),
        N_("The AgentX profile was shortened, which no full run is compared with."),
    ),
    "engine_patch": (
        N_("Run %(run)s has the label %(label)s: files of the engine were modified in the image."),
        N_("Files of the engine were modified in the image."),
    ),
    "evals_only": (
        N_("Run %(run)s has the label %(label)s: no throughput is expected of it."),
        N_("No throughput is expected of this run."),
    ),
    "workload_differs": (
        N_("The workload differs: %(field)s was %(baseline)s, now %(candidate)s."),
        N_("The workload differs between the sides."),
    ),
    "workload_off_nominal": (
        N_("A prompt held %(tokens)s tokens, nominally %(nominal)s: client and server do not count alike."),
        N_("Prompts are not as long as the row says."),
    ),
    "unofficial": (N_("The run is not an official sweep."),),
    "unofficial_path": (
        N_("The run is not an official sweep: its workflow is %(path)s."),
        N_("The run is not an official sweep: its workflow is unknown."),
    ),
    "unofficial_event": (
        N_("The run is not an official sweep: its event is %(event)s."),
        N_("The run is not an official sweep: its event is unknown."),
    ),
    "unofficial_branch": (
        N_("The run is not an official sweep: its branch is %(branch)s."),
        N_("The run is not an official sweep: its branch is unknown."),
    ),
    "unofficial_fork": (N_("The run is not an official sweep: its commit comes from the fork %(repository)s."),),
    "unofficial_label": (N_("The run is not an official sweep: the label %(label)s shortened it."),),
    "unofficial_reuse": (N_("The run is not an official sweep: one with the label %(label)s may not be reused."),),
    "withdrawn": (
        N_("Run %(run)s is withdrawn since %(since)s and not judged: %(reason)s."),
        N_("Withdrawn and not judged."),
    ),
    "withdrawn_cited": (
        N_(
            "Correction: an earlier version of this report compared with run %(run)s,"
            " withdrawn since %(since)s: %(reason)s."
        ),
    ),
    "denominator_suspicious": (N_("Throughput per GPU seems to be divided by another number of GPUs."),),
    "intvty_inconsistent": (N_("Interactivity is not the inverse of TPOT in this row."),),
    "interactivity_disagrees": (N_("Interactivity is not the inverse of TPOT in this row."),),
    "units_converted": (
        N_("%(metric)s was converted from %(unit)s."),
        N_("Units were converted."),
    ),
    "artifact_expired": (N_("Results had expired on GitHub before they were fetched."),),
    "baseline_expired": (
        N_("Artifacts of baseline run %(run)s had expired on GitHub before they were fetched: %(number)s, on %(on)s."),
        N_("Artifacts of the baseline run had expired on GitHub before they were fetched."),
    ),
    "baseline_from_store": (
        N_("The rows of baseline run %(run)s come from the store: its artifacts have expired on GitHub, on %(on)s."),
        N_("The rows of the baseline run come from the store: its artifacts have expired on GitHub."),
    ),
    "partial_store": (
        N_("The store holds a part of its archive: files left out: %(files)s. What lies in them was not compared."),
        N_("The store holds a part of its archive; the rest was not compared."),
    ),
    "head_moved": (
        N_("The run measured commit %(sha)s; the head of the pull request is %(head)s (commits since: %(count)s)."),
        N_("The pull request has gone on since the run."),
    ),
    "head_gone": (
        N_("The run measured commit %(sha)s, which is none of the pull request any more."),
        N_("The run measured a commit that is none of the pull request any more."),
    ),
    "attempt_gone": (N_("GitHub has attempt %(attempt)s of the run no longer."),),
    "unknown_commit": (
        N_("GitHub does not show commit %(sha)s: without its configs, what was expected is not known."),
        N_("Without the configs of its commit, what was expected is not known."),
    ),
    "no_configs": (
        N_("There is no master config at commit %(sha)s: what was expected is not known."),
        N_("Without a master config, what was expected is not known."),
    ),
    "configs_too_large": (
        N_("The configs at commit %(sha)s were left on GitHub: %(flaw)s."),
        N_("The configs of the commit were left on GitHub."),
    ),
    "reuse_pull_requests": (
        N_("No sweep was reused: %(count)s pull requests merged the commit, not one."),
        N_("No sweep was reused: the commit is not of one pull request."),
    ),
    "reuse_not_merged": (
        N_("No sweep was reused: pull request %(pull)s is not merged."),
        N_("No sweep was reused: its pull request is not merged."),
    ),
    "reuse_unauthorised": (
        N_("No sweep was reused: %(login)s (%(association)s) may not ask for it."),
        N_("No sweep was reused: who asked for it may not."),
    ),
    "reuse_full_labels": (
        N_("No sweep was reused: the pull request has %(count)s labels of a full sweep (%(labels)s), not one."),
        N_("No sweep was reused: the pull request has %(count)s labels of a full sweep, not one."),
        N_("No sweep was reused: the pull request has not one label of a full sweep."),
    ),
    "reuse_partial_sweep": (
        N_("No sweep was reused: the pull request has a label of a partial sweep (%(labels)s)."),
        N_("No sweep was reused: the pull request has a label of a partial sweep."),
    ),
    "reuse_run_missing": (
        N_("No sweep was reused: GitHub has no run %(run)s, which the comment names."),
        N_("No sweep was reused: GitHub has not the run that the comment names."),
    ),
    "reuse_other_workflow": (
        N_("No sweep was reused: run %(run)s is of another workflow (%(workflow)s)."),
        N_("No sweep was reused: the run is of another workflow."),
    ),
    "reuse_other_event": (
        N_("No sweep was reused: run %(run)s is of no pull request (event %(event)s)."),
        N_("No sweep was reused: the run is of no pull request."),
    ),
    "reuse_not_completed": (
        N_("No sweep was reused: run %(run)s is %(status)s."),
        N_("No sweep was reused: the run is not completed."),
    ),
    "reuse_other_head": (
        N_("No sweep was reused: commit %(sha)s of run %(run)s is none of the pull request."),
        N_("No sweep was reused: the commit of the run is none of the pull request."),
    ),
    "reuse_later_run": (
        N_("No sweep was reused: run %(run)s began after the merge."),
        N_("No sweep was reused: the run began after the merge."),
    ),
    "reuse_no_results": (
        N_("No sweep was reused: run %(run)s has no results."),
        N_("No sweep was reused: the run has no results."),
    ),
    "reuse_expired": (
        N_("A sweep was reused, but is lost on GitHub: the results of run %(run)s expired, the last on %(on)s."),
        N_("A sweep was reused, but its results have expired on GitHub."),
    ),
    "reuse_no_run": (
        N_("No sweep was reused: %(runs)s sweeps of the pull request succeeded, and none of them has results."),
        N_("No sweep was reused: none of the pull request has results."),
    ),
    "run_concluded": (
        N_("The run concluded %(conclusion)s, and holds all results that were expected."),
        N_("The run holds all results that were expected, whatever it concluded."),
    ),
    "nothing_to_ingest": (
        N_("The run concluded %(conclusion)s and holds no results."),
        N_("The run holds no results."),
    ),
    "incomplete_run": (
        N_("The run holds %(have)s of %(need)s results."),
        N_("The run holds not all results."),
    ),
    "newer_run": (
        N_("Run %(run)s is newer and holds as much."),
        N_("A newer run holds as much."),
    ),
    "superseded": (N_("A later attempt of the same run replaces this row."),),
    "collected_only": (N_("Only the collected file holds this row, not an artifact of its own."),),
    "advisory_only": (N_("Only advisory metrics moved; they never decide a verdict alone."),),
    "tail_noise": (N_("Tails scatter much more than medians."),),
    "harness_event": (
        N_(
            "The test harness changed on %(date)s, about when the %(on_day_of)s was measured, so it may lie between the"
            " sides: %(event)s (PR %(pull)s)."
        ),
        N_(
            "The test harness changed on %(date)s, about when the %(on_day_of)s was measured, so it may lie between the"
            " sides: %(event)s (commit %(commit)s)."
        ),
        N_(
            "The test harness changed on %(date)s, about when the %(on_day_of)s was measured, so it may lie between the"
            " sides: %(event)s."
        ),
        N_("The test harness changed between the sides, on %(date)s: %(event)s (PR %(pull)s)."),
        N_("The test harness changed between the sides, on %(date)s: %(event)s (commit %(commit)s)."),
        N_("The test harness changed between the sides, on %(date)s: %(event)s."),
        N_("The test harness changed between the sides: %(event)s."),
        N_("The test harness changed between the sides."),
    ),
    "metric_redefined": (
        N_("%(metric)s was not judged where its definition changed between the sides, on %(date)s: %(event)s."),
        N_("A metric was not judged where its definition changed between the sides."),
    ),
    "moved_together": (
        N_("Configurations with different images moved together: %(number)s."),
        N_("Configurations with different images moved together."),
    ),
}

_POINTS = {
    "new_point": (N_("Not measured before."),),
    "no_baseline": (N_("No earlier run to compare with."),),
    "not_synced": (N_("Not in the part of the archive that the store holds."),),
    "missing_point": (N_("The baseline has this point, the candidate has not."),),
    "missing_curve": (
        N_("Run %(run)s measured this, the candidate did not."),
        N_("The baseline measured this, the candidate did not."),
    ),
    "promised": (N_("The run's config promises this, and no job is known for it."),),
    "job_failed": (
        N_("The conclusion of job %(job)s is %(conclusion)s (%(url)s)."),
        N_("The conclusion of job %(job)s is %(conclusion)s."),
        N_("Its job did not succeed."),
    ),
    "job_passed": (
        N_("Job %(job)s passed and left no result (%(url)s)."),
        N_("Job %(job)s passed and left no result."),
        N_("Its job passed and left no result."),
    ),
    "job_skipped": (N_("Job %(job)s was skipped, so it has passed nothing."),),
    "job_open": (
        N_("Job %(job)s has not ended (%(url)s)."),
        N_("Job %(job)s has not ended."),
        N_("Its job has not ended."),
    ),
    "not_asked_for": (N_("The run's config does not ask for it."),),
    "label_leaves_out": (N_("The labels of the pull request leave it out: %(labels)s."),),
    "only_added": (N_("The run was asked to add points to a curve, not to measure it again."),),
    "passed_elsewhere": (
        N_("The same config and image passed in run %(run)s (%(url)s)."),
        N_("The same config and image passed in run %(run)s."),
        N_("The same config and image passed in another run."),
    ),
    "failed_everywhere": (N_("The same config and image passed nowhere; other runs that tried: %(runs)s."),),
    "invalid_value": (N_("The value is not a positive finite number."),),
    "conflicting_rows": (N_("Rows of this point contradict one another and none can be preferred."),),
    "zero_latency": (
        N_("Zero and therefore left out, since nothing was timed: %(fields)s."),
        N_("A latency is zero: nothing was timed."),
    ),
    "not_measured": (N_("The candidate did not measure this point."),),
    "ambiguous_duplicate": (N_("Several rows claim this point and none can be preferred."),),
    "ambiguous_results": (
        N_("Run %(run)s holds several results for this eval and none can be preferred."),
        N_("Several results claim this eval and none can be preferred."),
    ),
    "not_judged": (N_("This was not judged."),),
    "unmapped": (
        N_("No table knows the %(field)s %(spelling)s; it is kept and compared with itself only."),
        N_("A name in this row is in no table; it is kept and compared with itself only."),
    ),
    "non_finite": (
        N_("Not finite and therefore left out: %(fields)s."),
        N_("A value of this row is not a finite number."),
    ),
    "zero_throughput": (N_("Zero throughput: nothing was measured."),),
    "no_throughput": (N_("No throughput in this row."),),
    "failed_requests": (
        N_("Failed requests: %(failed)s of %(total)s."),
        N_("Too many requests failed."),
    ),
    "completion_unknown": (N_("It is not known how many requests succeeded."),),
    "benchmark_outcome": (N_("The benchmark ended as %(status)s."),),
    "short_run": (N_("Measured for %(measured)s s, nominally %(nominal)s s: the run was cut off."),),
    "silence": (N_("No request for %(seconds)s s: traffic had stalled."),),
    "clock_disagrees": (N_("The row says that it took %(duration)s s, start and end say %(clock)s s."),),
    "power_declared_invalid": (N_("Power and energy left out: the row itself calls them invalid."),),
    "power_implausible": (N_("Power and energy left out: %(metric)s is %(value)s."),),
    "power_gpu_count": (N_("Power and energy left out: they cover %(measured)s GPUs, the topology has %(topology)s."),),
    "power_window": (N_("Power and energy left out: their window is %(ratio)s times the measurement."),),
    "power_queries": (
        N_("Power and energy left out: %(each)s J a query for %(queries)s queries are not %(energy)s J in all."),
    ),
    "power_role_local": (
        N_("Power and energy left out: this era counts them for one role, not for the whole deployment."),
    ),
    "gpu_count_disagrees": (
        N_("%(field)s says %(said)s GPUs, the topology has %(topology)s."),
        N_("The number of GPUs disagrees with the topology."),
    ),
    "impossible_latency": (
        N_("%(metric)s of %(value)s s is impossible."),
        N_("A latency of this row is impossible."),
    ),
    "workload_differs": (N_("The workload differs between the sides."),),
    "client_settings": (N_("Client settings differ between the sides."),),
    "no_metric": (N_("%(metric)s is absent."), N_("The metric is absent.")),
    "missing_metric": (
        N_("%(metric)s was reported by run %(run)s and is absent now."),
        N_("%(metric)s is absent now."),
        N_("A metric is absent now."),
    ),
}

_EVALS = {
    "gate": (N_("Threshold %(threshold)s."),),
    "no_gate": (N_("No threshold is set for %(task)s."), N_("No threshold is set for this task.")),
    "below_threshold": (
        N_("Score %(score)s is below the threshold %(threshold)s: %(correct)s of %(n)s right, %(needed)s needed."),
        N_("Score %(score)s is below the threshold %(threshold)s."),
        N_("The score is below its threshold."),
    ),
    "near_threshold": (
        N_(
            "Score %(score)s lies within one standard error (%(standard_error)s) of the threshold %(threshold)s:"
            " another run may fall on the other side."
        ),
        N_("The score lies close to its threshold: another run may fall on the other side."),
    ),
    "collapsed": (
        N_("Score %(score)s is a collapse, not a drop (n = %(n)s): this configuration answers next to nothing right."),
        N_("Score %(score)s is a collapse, not a drop."),
        N_("The score is a collapse, not a drop."),
    ),
    "no_score": (N_("No score in this result."),),
    "score_out_of_range": (N_("%(field)s is outside 0 to 1: %(value)s."), N_("The score is outside 0 to 1.")),
    "out_of_range": (N_("Score %(value)s is outside 0 to 1."), N_("The score is outside 0 to 1.")),
    "question_count": (
        N_("Questions answered: %(have)s, baseline %(baseline)s."),
        N_("The number of questions differs from the baseline."),
    ),
    "n_changed": (
        N_("Questions answered: %(have)s, baseline %(baseline)s."),
        N_("The number of questions differs from the baseline."),
    ),
    "eval_size": (
        N_("Questions: %(n)s, standard error %(standard_error)s."),
        N_("Questions: %(n)s."),
        N_("The number of questions is not known."),
    ),
    "no_standard_error": (N_("No standard error can be known, so there are no statistics."),),
    "se_recomputed": (N_("The standard error was recomputed from score and number of questions."),),
    "statistical_verdict": (N_("Against the baseline alone: %(verdict)s."),),
    "recovered": (
        N_("Back from %(before)s; run %(run)s had the last good score %(last_good)s."),
        N_("Back from %(before)s in run %(run)s."),
        N_("Back from %(before)s."),
        N_("Back from a bad score."),
    ),
    "below_siblings": (
        N_("Score %(score)s falls from the neighbours of the same run (median %(siblings)s, jobs %(count)s)."),
        N_("The score falls from its neighbours of the same run."),
    ),
    "format_gap": (
        N_("Format alarm: the gap between flexible and strict match grew by %(growth)s."),
        N_("Format alarm: the gap between flexible and strict match grew."),
    ),
    "format_gap_closed": (
        N_("The gap between flexible and strict match closed by %(growth)s: the answer format was repaired."),
        N_("The gap between flexible and strict match closed: the answer format was repaired."),
    ),
    "wrong_format": (
        N_("Right but in the wrong format: %(count)s of %(n)s answers, %(earlier)s in the baseline."),
        N_("Right but in the wrong format: %(count)s of %(n)s answers."),
        N_("Some answers are right but in the wrong format."),
    ),
    "paired": (N_("Paired by question: answers lost %(lost)s, gained %(gained)s, of %(n)s."),),
    "paired_runs": (
        N_(
            "Answers lost %(lost)s, gained %(gained)s, of %(n)s against %(have)s of %(of)s baseline runs;"
            " these flips give the scatter."
        ),
        N_("Only some baseline runs have answers by question; their flips give the scatter."),
    ),
    "unpaired_side": (
        N_("Not paired by question: answers of %(side)s are not known; judged as two samples."),
        N_("Not paired by question: judged as two samples."),
    ),
    "unpaired_questions": (N_("Not paired: the sides were asked other questions; judged as two samples."),),
    "answers_broken": (N_("The stored answers to the questions cannot be read, so they are not paired."),),
    "answers_count": (
        N_("The file of answers has %(have)s questions, the result %(n)s: not paired."),
        N_("The file of answers has another number of questions than the result: not paired."),
    ),
    "answers_disagree": (
        N_("The answers give %(counted)s, the result says %(score)s: not paired."),
        N_("The answers contradict the result: not paired."),
    ),
    "answers_unidentified": (N_("The file of answers does not tell what was asked, so it is not paired."),),
    "answers_ambiguous": (N_("The answers fit the strict and the flexible reading alike or neither: not paired."),),
    "answers_incomplete": (
        N_("The file of answers tells %(have)s of %(of)s questions: not paired."),
        N_("The file of answers does not tell every question: not paired."),
    ),
    "missing_eval": (
        N_("Run %(run)s had this eval, the candidate has not."),
        N_("The baseline has this eval, the candidate has not."),
    ),
    "jobs_left_out": (
        N_("Jobs pooled: %(have)s of %(of)s."),
        N_("Some jobs were left out of the pool."),
    ),
}

_REJECTIONS = {
    "malformed_json": (N_("The file is not valid JSON."),),
    "malformed_csv": (N_("The file is not valid CSV."),),
    "not_an_object": (N_("%(field)s is not an object."), N_("The row is not an object.")),
    "missing_field": (N_("Field %(field)s is absent."), N_("A field is absent.")),
    "bad_value": (N_("Field %(field)s has a value that cannot be read."), N_("A value cannot be read.")),
    "benchmark_failed": (N_("The benchmark failed, so the row measured nothing."),),
    "eval_failed": (N_("The eval failed at this concurrency."),),
    "samples_without_result": (N_("A file of answers stands beside no result that it belongs to."),),
    "duplicate_question": (N_("A question is answered twice in one file."),),
    "too_many_questions": (N_("A file of answers has more questions than any eval."),),
    "line_too_long": (N_("A line is longer than any answer."),),
    "cut_off": (N_("The file breaks off."),),
    "further_lines": (N_("Further lines of a file were rejected; only their number is kept."),),
    "bad_run": (N_("The run object cannot be read."),),
    "unknown_run": (N_("The row names a run that the file does not hold."),),
    "bad_config": (
        N_("The master config of %(field)s cannot be read, so its points are not expected."),
        N_("A master config cannot be read, so its points are not expected."),
    ),
    "other_run": (N_("The file speaks of another run."),),
    "other_pull_request": (N_("The file speaks of another pull request than the run."),),
    "unknown_shape": (N_("No reader knows this kind of file."),),
    "bad_archive": (N_("The archive cannot be read."),),
    "archive_too_large": (N_("The archive unpacks to more than is allowed."),),
    "file_too_large": (N_("The file is larger than is allowed."),),
    "unsafe_path": (N_("A path leads out of its folder, or to no regular file."),),
    "duplicate_key": (N_("Key %(field)s stands in several files."), N_("A key stands in several files.")),
    "not_utf8": (N_("The file is not UTF-8 text."),),
    "syntax": (N_("The file is not valid YAML."),),
    "not_a_mapping": (N_("The file is not a mapping."),),
}

_CLAIMS = {
    "metric_unsaid": (N_("The text names no metric."),),
    "no_points": (N_("No measured point fits what the text speaks of."),),
    "no_scores": (N_("No eval score fits what the text speaks of."),),
    "no_candidate": (N_("No candidate run fits what the text speaks of."),),
    "ambiguous_binding": (
        N_("The text fits several points: %(points)s."),
        N_("The text fits several things that differ."),
    ),
    "direction_unsaid": (N_("The text does not say in which direction."),),
    "times_by_or_to": (N_("The text leaves open whether the number is a multiple or an increase."),),
    "noise_unknown": (N_("The difference lies within what noise may be, and the noise is not known."),),
    "outside_tolerance": (N_("The measured value differs from the claimed one by more than noise and rounding."),),
    "ends_not_measured": (N_("The scores lie inside the range; its ends were not measured."),),
    "both_sides_agree": (N_("Both values agree with the measured ones."),),
    "change_agrees": (N_("The change agrees with the measured one."),),
    "level_agrees": (N_("The value agrees with the measured one."),),
    "scores_agree": (N_("The scores agree with the measured ones."),),
}

SENTENCES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {**_COMPARISON, **_POINTS, **_EVALS, **_REJECTIONS, **_CLAIMS}
)
"""Every code with its sentences. A code that the rules can emit and that is not here fails a test."""

EVENT_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "agentx_axis": N_("interactivity of AgentX by full responses and end-to-end time"),
        "agentx_harness_v03": N_("AgentX harness v0.3"),
        "agentx_nested": N_("AgentX rows with nested metrics"),
        "agentx_requests": N_("AgentX requests with errors no longer counted"),
        "client_tokenizer": N_("tokenizer of client and server made the same"),
        "context_parallel_gpus": N_("context parallelism counted in the number of GPUs"),
        "eval_thresholds": N_("eval thresholds per model"),
        "eval_topology": N_("topology fields of eval rows"),
        "failed_requests_gate": N_("a job fails when more than 5%% of its requests fail"),
        "multinode_rows": N_("rows of several nodes name both roles"),
        "percentile_set": N_("percentiles of the client, P90 and P99.9 added"),
        "pipeline_parallel_gpus": N_("pipeline parallelism counted in the number of GPUs"),
        "power_schema_2": N_("energy per token of the whole deployment instead of a role"),
        "role_denominators": N_("input and output throughput divided by the GPUs of a role"),
        "sequence_1k1k_deprecated": N_("sequence 1024/1024 no longer measured by default"),
        "sequence_1k8k_dropped": N_("sequence 1024/8192 no longer measured"),
        "sweeps_by_changelog": N_("sweeps selected by changelog entries instead of every night"),
    }
)
"""The shipped events of the test harness in words; an event of a user's own is told by its name."""

_ADDRESS = re.compile(
    r"https://github\.com/[A-Za-z0-9][\w.-]*/[\w.-]+/actions/runs/\d{1,19}(?:/(?:job|attempts)/\d{1,19})?", re.ASCII
)

_SCORES = frozenset({"score", "counted", "threshold", "before", "after", "last_good", "siblings", "floor", "upper"})
_POINTS_OF_SCORE = frozenset({"growth", "difference"})
_LOGS = frozenset({"change"})


def sentence(caveat: Caveat) -> Phrase:
    """The fullest sentence of a code that its values allow; the code itself where no table knows it.

    >>> sentence(Caveat.of("few_runs", have=1)).msgid
    'Only %(have)s runs on a side.'
    """
    values = {name: value for name, value in caveat.values if value not in (None, "")}
    for msgid in SENTENCES.get(caveat.code, ()):
        if set(slots(msgid)) <= values.keys():
            mark = values.get("threshold")
            said = {name: _said(name, values[name]) for name in slots(msgid)}
            if isinstance(mark, float) and isinstance(score := values.get("score"), float) and "score" in said:
                said["score"] = numbers.score(score, mark)
            return phrase(msgid, **said)
    return _unknown(caveat.code, values)


def why(row: Unmatched, *, linked: bool = False) -> Said:
    """Why a row stands alone, and what is known of the same point in other runs.

    A document that can link shows the `addresses` beside it, and says the sentences without them.
    """
    said = (row.reason, *elsewhere(row))
    return sentences([sentence(_unlinked(one) if linked else one) for one in said])


def addresses(row: Unmatched) -> tuple[str, ...]:
    """Addresses on GitHub of the job and of the run that the reasons of a row name; nothing else is ever a link."""
    told = (dict(one.values).get("url") for one in (row.reason, *elsewhere(row)))
    return tuple(url for url in told if isinstance(url, str) and _ADDRESS.fullmatch(url))


def _unlinked(caveat: Caveat) -> Caveat:
    return Caveat(caveat.code, tuple(pair for pair in caveat.values if pair[0] != "url"))


def _unknown(code: str, values: Mapping[str, Value]) -> Phrase:
    if not values:
        return phrase(UNKNOWN_CODE, code=code)
    parts: list[Said] = [f"{name}={_bare(value)}" for name, value in values.items()]
    return phrase(UNKNOWN_CODE_WITH_VALUES, code=code, values=listing(parts))


def _said(name: str, value: Value) -> Said:
    """A value of a caveat as text, by what its name means."""
    if isinstance(value, str):
        return _WORDS[name](value) if name in _WORDS else value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return _bare(value)
    for names, say in _NUMBERS:
        if name in names:
            return say(float(value))
    return numbers.plain(value)


_WORDS: Mapping[str, Callable[[str], Said]] = MappingProxyType(
    {
        "sha": lambda value: value[:12],
        "head": lambda value: value[:12],
        "metric": lambda value: metric_name(value) if value in METRICS else value,
        "task": task_name,
        "verdict": lambda value: verdict_name(Verdict(value)) if value in set(Verdict) else value,
        "event": lambda value: phrase(EVENT_NAMES[value]) if value in EVENT_NAMES else value,
        "kind_before": lambda value: listing([kind(one) if one in KINDS else one for one in value.split(", ")]),
        "kind_after": lambda value: listing([kind(one) if one in KINDS else one for one in value.split(", ")]),
        "on_day_of": lambda value: side(value) if value in SIDES else value,
        "side": lambda value: side(value) if value in SIDES else value,
    }
)
"""Texts that have a name in every language, by the name of the value."""

_NUMBERS: tuple[tuple[frozenset[str], Callable[[float], str]], ...] = (
    (_SCORES, numbers.score),
    (_POINTS_OF_SCORE, lambda value: numbers.detectable(value, numbers.Kind.POINTS)),
    (_LOGS, lambda value: numbers.change(value, numbers.Kind.PERCENT)),
    (frozenset({"p"}), numbers.pvalue),
)


def _bare(value: Value) -> str:
    if isinstance(value, str):
        return value
    return numbers.plain(value) if isinstance(value, int | float) else numbers.NOTHING


QUIET = frozenset({"gate", "eval_size", "run_again", "single_run"})
"""Codes that describe a finding and raise no doubt of their own: left out where there is little room."""

_OWN = frozenset({"paired", "paired_runs"})
"""Codes that say nothing without the finding that they stand beside."""


def alarms(entry: Moved) -> Said:
    """The doubts of an entry, each once, without what only describes it."""
    beside = (caveat for row in entry.also for caveat in row.caveats if caveat.code not in _OWN)
    found = dict.fromkeys((*entry.finding.caveats, *beside))
    return sentences([sentence(caveat) for caveat in found if caveat.code not in QUIET])


def note(what: Note) -> Phrase:
    """A doubt with the things that carry it, or with their number where most carry it; alone where it is about runs."""
    if not what.number:
        return sentence(what.caveat)
    if what.is_general:
        number, total = numbers.count(what.number), numbers.count(what.total)
        said = sentence(what.caveat)
        return phrase(N_("%(number)s of %(total)s: %(sentence)s"), number=number, total=total, sentence=said)
    names: list[Said] = [label(row) for row in what.rows]
    if what.more:
        names.append(phrase(N_("further: %(number)s"), number=numbers.count(what.more)))
    return phrase(N_("%(names)s: %(sentence)s"), names=listing(names), sentence=sentence(what.caveat))
