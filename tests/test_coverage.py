"""Expected against arrived: three words for what did not come, counts that sum, and where the same passed."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from store.records import Comparison, Verdict
from tests import factory
from tests.cli import Tracker
from tests.factory import IMAGE, NEXT_IMAGE
from tests.readers_help import put
from tracker import jobs

CONCS = (4, 16, 32, 64)
POINT, EVAL = "single-node 8k1k / p1 | dsr1 fp8 h200 sgl TP8 c{}", "eval / p1 | dsr1 fp8 h200 sgl TP8 c{} | eval-only"


def sweep(
    folder: Path,
    number: int,
    rows: Sequence[int],
    *,
    image: str = NEXT_IMAGE,
    promised: Sequence[int] = CONCS,
    evals: Sequence[int] = (),
    ended: Mapping[str, str] | None = None,
    labels: Sequence[str] = (),
    entry: Mapping[str, Any] | None = None,
    **run: Any,
) -> Path:
    """A folder of one run: rows and evals by concurrency, and what its jobs (by name) ended with."""
    put(folder, "run.json", factory.run(number, f"2026-06-{number % 28 + 1:02d}T00:00:00Z", **run))
    text = factory.master_config("dsr1-fp8-h200-sglang", image, f"conc-list: {list(promised)}")
    put(folder, "configs/nvidia-master.yaml", text.encode())
    asked = {"config-keys": ["dsr1-fp8-h200-sglang"], **(entry or {})}
    put(folder, "changelog-metadata/changelog_metadata.json", {"base_ref": "a", "head_ref": "b", "entries": [asked]})
    put(folder, "pull.json", {"number": 7, "labels": [{"name": name} for name in labels]})
    if ended:
        put(folder, "jobs.json", {"jobs": [_job(number, *one) for one in enumerate(ended.items())]})
    for conc in rows:
        put(folder, f"bmk_dsr1_8k1k_c{conc}/agg.json", [factory.row(conc, 300.0 + conc, image=image)])
    if evals:
        put(folder, "eval_results_all/agg_eval_all.json", [factory.evaluation(0.95, conc) for conc in evals])
    return folder


def _job(number: int, place: int, named: tuple[str, str]) -> dict[str, Any]:
    name, conclusion = named
    url = f"https://github.com/example-org/bench/actions/runs/{number}/job/{place}"
    return {"name": name, "run_attempt": 1, "status": "completed", "conclusion": conclusion, "html_url": url}


def words(answer: Comparison) -> dict[tuple[str, int | None], tuple[str, str]]:
    """Verdict and reason of every row that stands apart, by kind and concurrency."""
    return {
        ("eval" if one.task else "point", one.series.conc if one.series else None): (one.verdict, one.reason.code)
        for one in answer.unmatched
    }


@pytest.fixture
def where(tmp_path: Path) -> jobs.Where:
    return jobs.Where.of(tmp_path / "store.duckdb", None)


def compared(where: jobs.Where, candidate: Path, *past: Path) -> Comparison:
    if past:
        jobs.ingest(past, where)
    return jobs.compare(jobs.Question(str(candidate)), where)


def test_a_point_that_did_not_come_is_failed_missing_or_dropped(where: jobs.Where, tmp_path: Path) -> None:
    past = sweep(tmp_path / "past", 1, (*CONCS, 128), image=IMAGE, promised=(*CONCS, 128), evals=(64, 128))
    ended = {POINT.format(4): "success", POINT.format(16): "failure", POINT.format(32): "success"}
    ended |= {EVAL.format(64): "timed_out"}
    answer = compared(where, sweep(tmp_path / "new", 2, [4], ended=ended, conclusion="failure"), past)
    assert words(answer) == {
        ("point", 16): (Verdict.FAILED, "job_failed"),
        ("point", 32): (Verdict.MISSING, "job_passed"),
        ("point", 64): (Verdict.MISSING, "promised"),
        ("point", 128): (Verdict.DROPPED, "not_asked_for"),
        ("eval", 32): (Verdict.MISSING, "promised"),
        ("eval", 64): (Verdict.FAILED, "job_failed"),
        ("eval", 128): (Verdict.DROPPED, "not_asked_for"),
    }
    found = answer.coverage
    assert found is not None
    assert (found.expected, found.arrived, found.failed, found.missing, found.dropped) == (4, 1, 1, 2, 1)
    assert (found.evals_expected, found.evals_arrived, found.evals_failed, found.evals_missing) == (2, 0, 1, 1)
    assert found.jobs is not None
    assert (found.jobs.passed, found.jobs.applicable) == (2, 3)


@pytest.mark.parametrize("conclusion", ["failure", "timed_out", "cancelled", "startup_failure"])
def test_a_job_that_gave_up_is_named_with_its_conclusion_and_address(
    where: jobs.Where, tmp_path: Path, conclusion: str
) -> None:
    answer = compared(where, sweep(tmp_path / "new", 2, [4], ended={POINT.format(16): conclusion}))
    (row,) = [one for one in answer.unmatched if one.verdict is Verdict.FAILED]
    said = dict(row.reason.values)
    assert (row.side, said["job"], said["conclusion"]) == ("plan", POINT.format(16), conclusion)
    assert said["url"] == "https://github.com/example-org/bench/actions/runs/2/job/0"


@pytest.mark.parametrize(("conclusion", "code"), [("skipped", "job_skipped"), ("neutral", "job_open")])
def test_a_skipped_job_has_not_passed_and_not_failed(
    where: jobs.Where, tmp_path: Path, conclusion: str, code: str
) -> None:
    answer = compared(where, sweep(tmp_path / "new", 2, [4], ended={POINT.format(16): conclusion}))
    assert words(answer)["point", 16] == (Verdict.MISSING, code)


def test_a_failed_job_of_several_concurrencies_leaves_those_that_came(where: jobs.Where, tmp_path: Path) -> None:
    name = "single-node 8k1k / p1 | dsr1 fp8 h200 sgl TP8 c4x16x32x64"
    answer = compared(where, sweep(tmp_path / "new", 2, [4, 16], ended={name: "failure"}))
    found = answer.coverage
    assert found is not None
    assert (found.arrived, found.failed, found.missing) == (2, 2, 0)


def test_labels_and_append_only_leave_out_on_purpose(where: jobs.Where, tmp_path: Path) -> None:
    jobs.ingest([sweep(tmp_path / "past", 1, CONCS, image=IMAGE)], where)
    pull = {"event": "pull_request", "head_branch": "x"}
    trimmed = compared(where, sweep(tmp_path / "a", 2, [4], labels=["sweep-enabled"], **pull))
    assert words(trimmed)["point", 64] == (Verdict.DROPPED, "label_leaves_out")
    name = POINT.format(64)
    added = sweep(tmp_path / "b", 3, [64], entry={"append-only": True}, ended={name: "success"}, **pull)
    assert words(compared(where, added))["point", 16] == (Verdict.DROPPED, "only_added")


def test_without_a_plan_nothing_is_called_dropped_and_nothing_is_covered(where: jobs.Where, tmp_path: Path) -> None:
    past = sweep(tmp_path / "past", 1, CONCS, image=IMAGE)
    put(tmp_path / "new", "run.json", factory.run(2, "2026-06-20T00:00:00Z"))
    put(tmp_path / "new", "bmk_dsr1/agg.json", [factory.row(4, 304.0)])
    answer = compared(where, tmp_path / "new", past)
    assert {verdict for verdict, _ in words(answer).values()} == {Verdict.MISSING}
    assert answer.coverage is None


@pytest.mark.parametrize("way", ["broken config", "key without a config"])
def test_what_an_incomplete_plan_leaves_out_is_missing(where: jobs.Where, tmp_path: Path, way: str) -> None:
    past = sweep(tmp_path / "past", 1, (*CONCS, 128), image=IMAGE)
    keys = ["dsr1-fp8-h200-sglang", *(["dsr1-fp8-h200-vllm"] if way == "key without a config" else [])]
    new = sweep(tmp_path / "new", 2, CONCS, entry={"config-keys": keys})
    if way == "broken config":
        put(new, "configs/amd-master.yaml", b"dsr1-fp8-mi355x-sglang: { image: a/b }")
    assert words(compared(where, new, past))["point", 128] == (Verdict.MISSING, "missing_point")


def test_an_invalid_row_arrived(where: jobs.Where, tmp_path: Path) -> None:
    folder = sweep(tmp_path / "new", 2, [4], ended={POINT.format(16): "failure"})
    put(folder, "bmk_dsr1_8k1k_c16/agg.json", [factory.row(16, 0.0)])
    answer = compared(where, folder)
    assert words(answer)["point", 16][0] is Verdict.INVALID
    assert answer.coverage is not None
    assert answer.coverage.arrived == 2


def elsewhere(answer: Comparison, conc: int) -> list[dict[str, Any]]:
    (row,) = [one for one in answer.unmatched if one.task is None and one.series and one.series.conc == conc]
    return [one.as_dict() for one in row.caveats if one.code in ("passed_elsewhere", "failed_everywhere")]


def test_the_same_config_and_image_in_another_run_tells_a_flake(where: jobs.Where, tmp_path: Path) -> None:
    pull = {"event": "pull_request", "head_branch": "x"}
    past = [
        sweep(tmp_path / "old", 1, [32, 64], image=IMAGE),
        sweep(tmp_path / "a", 2, [4, 32], **pull),
        sweep(tmp_path / "b", 3, [4, 32], **pull),
    ]
    answer = compared(where, sweep(tmp_path / "new", 4, [4], ended={POINT.format(32): "failure"}), *past)
    url = "https://github.com/example-org/bench/actions/runs/3/attempts/1"
    assert elsewhere(answer, 32) == [{"code": "passed_elsewhere", "run": "3/1", "url": url}]
    assert elsewhere(answer, 64) == [{"code": "failed_everywhere", "runs": 2}]


def test_an_eval_passed_elsewhere_with_the_image_that_its_run_measured(where: jobs.Where, tmp_path: Path) -> None:
    past = sweep(tmp_path / "a", 1, [64], evals=[64])
    answer = compared(where, sweep(tmp_path / "new", 4, [4], ended={EVAL.format(64): "cancelled"}), past)
    (row,) = [one for one in answer.unmatched if one.task and one.series and one.series.conc == 64]
    assert row.verdict is Verdict.FAILED
    assert [one.code for one in row.caveats] == ["passed_elsewhere"]


@pytest.mark.usefixtures("judged_once")
def test_every_output_tells_the_words_apart_in_both_languages(tracker: Tracker) -> None:
    past = sweep(tracker.folder / "past", 1, (*CONCS, 128), image=IMAGE, promised=(*CONCS, 128))
    ended = {POINT.format(16): "failure", POINT.format(32): "success", "collect-results / x": "cancelled"}
    new = sweep(tracker.folder / "new", 2, [4], ended=ended, conclusion="cancelled")
    assert tracker.ingest(past).code == 0
    for form in ("markdown", "comment", "table"):
        english = " ".join(tracker("compare", new, "--format", form, "--lang", "en").out.split())
        assert "1 of 4 expected points arrived; 0 of 2 expected evals arrived; points failed: 1; points" in english
        assert "points removed on purpose: 1." in english
        assert "The run's conclusion is cancelled; jobs cut: 1." in english
        chinese = "".join(tracker("compare", new, "--format", form, "--lang", "zh").out.split())
        assert "应有4个数据点，得到1个" in chinese
        assert "主动移除的数据点：1个" in chinese
        assert "本次运行的结束状态为cancelled，被中断的作业：1个" in chinese
    text = tracker("compare", new, "--format", "markdown").out
    assert "| failed | The conclusion of job " in text
    assert "[runs/2/job/0](https://github.com/example-org/bench/actions/runs/2/job/0)" in text
    said = tracker("compare", new, "--format", "evidence").out
    assert "measured 1 of 4 points (" in said
    assert "It passed 1 of 2 applicable throughput jobs." in said
    assert tracker.compare(new)["headline"]["coverage"]["points"] == {
        "expected": 4,
        "arrived": 1,
        "failed": 1,
        "missing": 2,
        "dropped": 1,
    }


def test_a_sign_off_counts_the_jobs_of_both_lanes(tracker: Tracker) -> None:
    ended = {POINT.format(conc): "success" for conc in CONCS} | {EVAL.format(conc): "success" for conc in (32, 64)}
    ended |= {"multi-node 8k1k": "skipped", "setup": "success"}
    new = sweep(tracker.folder / "new", 2, CONCS, evals=(32, 64), ended=ended)
    said = tracker("compare", new, "--format", "evidence").out
    assert "measured 4 of 4 points (" in said
    assert "It passed all 4 applicable throughput jobs and all 2 applicable eval jobs." in said


@pytest.mark.usefixtures("judged_once")
def test_a_run_without_results_is_not_a_run_without_regressions(tracker: Tracker) -> None:
    assert tracker.ingest(sweep(tracker.folder / "past", 1, CONCS, image=IMAGE)).code == 0
    put(tracker.folder / "empty", "run.json", factory.run(703, "2026-06-20T00:00:00Z"))
    empty = tracker.folder / "empty"
    for form in ("short", "markdown", "comment", "table"):
        assert "Nothing was measured" in tracker("compare", empty, "--format", form, "--lang", "en").out
        assert "没有测量任何内容" in tracker("compare", empty, "--format", form, "--lang", "zh").out
    head = tracker.compare(empty)["headline"]
    assert (head["measured"], head["verdict"], head["next"]) == (False, "not_judged", ["no_results"])
    assert tracker("compare", empty, "--fail-on", "regression").code == 4
    assert tracker("compare", empty).code == 0


def test_no_baseline_is_not_no_regression(tracker: Tracker) -> None:
    new = sweep(tracker.folder / "new", 2, CONCS)
    assert tracker("compare", new, "--fail-on", "suspected").code == 4
    assert tracker.ingest(sweep(tracker.folder / "past", 1, CONCS, image=IMAGE)).code == 0
    assert tracker("compare", new, "--fail-on", "suspected").code == 0


def test_evals_against_their_threshold_are_a_judgement_without_a_baseline(tracker: Tracker) -> None:
    new = sweep(tracker.folder / "new", 2, [], evals=(32, 64), entry={"evals-only": True})
    assert tracker("compare", new, "--fail-on", "regression").code == 0


# Shrinking lands a store per step: the failing example as it was found is small enough.
@settings(max_examples=5, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    st.sets(st.sampled_from(CONCS)).map(lambda concs: concs | {4}),
    st.dictionaries(st.sampled_from(CONCS), st.sampled_from(["success", "failure", "cancelled", "skipped"])),
    st.sets(st.sampled_from((16, 128))).map(lambda concs: concs | {4}),
)
def test_arrived_failed_and_missing_are_what_was_expected(
    rows: set[int], ended: dict[int, str], past: set[int]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        where = jobs.Where.of(root / "store.duckdb", None)
        named = {POINT.format(conc): conclusion for conc, conclusion in ended.items()}
        new = sweep(root / "new", 5, sorted(rows), ended=named, conclusion="failure")
        answer = compared(where, new, sweep(root / "old", 1, sorted(past), image=IMAGE))
    found = answer.coverage
    assert found is not None
    assert found.arrived + found.failed + found.missing == found.expected == len(CONCS)
    # A failed job never turns a point that arrived into a failed one.
    assert found.arrived == len(rows)
    lost = {one.series.conc for one in answer.unmatched if one.series and not one.task and one.side != "candidate"}
    assert lost == (set(CONCS) - rows) | (past - set(CONCS))
    assert found.failed == sum(ended.get(conc) in ("failure", "cancelled") for conc in set(CONCS) - rows)
    assert found.dropped == len(past - set(CONCS))


@pytest.mark.shared
def test_the_run_that_holds_the_measurements_is_told_by_them_not_by_its_conclusion(
    tracker: Tracker, shared: Path
) -> None:
    """A run that was cut in its last eval holds all 12 points; two others call themselves a success."""
    case = shared / "cases/09-which-source-run-counts"
    concs = json.loads((case / "expected_matrix.json").read_text())["conc"]
    for told in json.loads((case / "runs.json").read_text()):
        folder = tracker.folder / str(told["id"])
        _agentic(folder, told, concs)
        found = tracker.compare(folder)["headline"]
        arrived = sum(name.startswith("bmk_") for name in told["artifacts"])
        if told["id"] == 703:
            assert (found["measured"], found["coverage"]) == (False, None)
            continue
        assert found["coverage"]["points"]["arrived"] == arrived == {701: 2, 702: 12}[told["id"]]
        assert found["coverage"]["points"]["expected"] == 12
        assert found["coverage"]["conclusion"] == told["conclusion"]


def _agentic(folder: Path, told: Mapping[str, Any], concs: Sequence[int]) -> None:
    put(folder, "run.json", {**told, "repository": {"full_name": "example-org/bench"}})
    if not told["artifacts"]:
        return
    text = factory.master_config("dsr1-fp8-h200-sglang", "vllm/vllm-openai:v0.20.1", f"conc-list: {list(concs)}")
    text = text.replace("    - isl: 8192\n      osl: 1024\n", "    - dram-utilization: 0.9\n")
    text = text.replace("fixed-seq-len", "agentic-coding").replace("runner: h200", "runner: cluster:b300-nv")
    text = text.replace("dsr1-fp8-h200-sglang", "kimik3-fp4-b300-vllm-agentic").replace("sglang", "vllm")
    text = text.replace("model-prefix: dsr1", "model-prefix: kimik3").replace("precision: fp8", "precision: fp4")
    put(folder, "configs/nvidia-master.yaml", text.encode())
    entry = {"config-keys": ["kimik3-fp4-b300-vllm-agentic"]}
    put(folder, "changelog-metadata/changelog_metadata.json", {"base_ref": "a", "head_ref": "b", "entries": [entry]})
    for name in told["artifacts"]:
        if name.startswith("bmk_agentic_c"):
            conc = int(name.removeprefix("bmk_agentic_c"))
            row = factory.agentic(conc, infmax_model_prefix="kimik3", hw="cluster:b300-nv")
            put(folder, f"{name}/agg.json", [row])
