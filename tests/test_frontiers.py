"""Groups whose layouts changed: what has no twin is judged by the frontier, through ingest and compare."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from reports import jsonform, render
from reports.facts import select
from reports.things import decides
from store.records import Comparison, Finding, LayoutKind, Scope, Unmatched, Verdict
from tests import factory
from tests.cli import Tracker
from tests.deployments import Json, Pool, rows, saturating
from tests.readers_help import put
from tracker import jobs
from tracker.claims import Measured, check, find_claims

OLD_IMAGE, NEW_IMAGE = "vllm/vllm-openai-rocm:v0.20.0", "vllm/vllm-openai-rocm:nightly-2afa3f7e0c1d2e3f"
MI355X = {"hw": "mi355x-disagg", "framework": "vllm-disagg", "model": "MiniMaxAI/MiniMax-M3-MXFP8"}
MI355X |= {"infmax_model_prefix": "minimaxm3", "precision": "fp8"}
GB300 = {"hw": "gb300-nv", "framework": "dynamo-vllm", "model": "MiniMaxAI/MiniMax-M3"}
GB300 |= {"infmax_model_prefix": "minimaxm3", "precision": "fp8"}

CALM = {Verdict.EQUIVALENT, Verdict.INCONCLUSIVE, Verdict.NOISY}
Arm = tuple[Pool, Pool, Mapping[int, tuple[float, float]]]
"""One layout of a sweep and its points."""

MASTER = """\
{key}:
  image: {image}
  model: {model}
  model-prefix: minimaxm3
  runner: {hw}
  precision: fp8
  framework: {framework}
  multinode: true
  disagg: true
  kv-p2p-transfer: nixl
  scenarios:
    fixed-seq-len:
"""


def config(key: str, told: Mapping[str, str], image: str, arms: Mapping[int, Sequence[Arm]]) -> str:
    """The master config that promises these arms, by input length."""
    text = MASTER.format(key=key, image=image, **told)
    for isl, some in arms.items():
        text += f"    - isl: {isl}\n      osl: 1024\n      search-space:\n"
        for prefill, decode, points in some:
            concs = ", ".join(map(str, points))
            text += f"      - {{ conc-list: [{concs}], prefill: {_pool(prefill)}, decode: {_pool(decode)} }}\n"
    return text


def _pool(pool: Pool) -> str:
    said = f"num-worker: {pool.workers}, tp: {pool.tp}, ep: {pool.ep}, dp-attn: {str(pool.dpa).lower()}"
    return f"{{ {said} }}"


def sweep(
    folder: Path,
    number: int,
    key: str,
    told: Mapping[str, str],
    image: str,
    arms: Mapping[int, Sequence[Arm]],
    *,
    planned: bool = True,
    seed: int = 0,
    only: Callable[[Json], bool] = lambda _: True,
) -> Path:
    """A folder of one run as `tracker fetch` leaves it: rows of these arms, and the config that promised them."""
    rng = np.random.default_rng((seed, number))
    put(folder, "run.json", factory.run(number, f"2026-{6 + number // 28:02d}-{number % 28 + 1:02d}T00:00:00Z"))
    if planned:
        put(folder, "configs/amd-master.yaml", config(key, told, image, arms).encode())
        asked = {
            "base_ref": "a",
            "head_ref": "b",
            "entries": [{"config-keys": [key], "description": ["x"], "pr-link": ""}],
        }
        put(folder, "changelog-metadata/changelog_metadata.json", asked)
    for isl, some in arms.items():
        for place, (prefill, decode, points) in enumerate(some):
            made = rows(prefill, decode, points, rng, isl=isl, image=image, **told)
            put(folder, f"bmk_{isl}_{place}/agg.json", [row for row in made if only(row)])
    return folder


def compared(folder: Path, past: Sequence[Path], candidate: Path) -> Comparison:
    where = jobs.Where.of(folder / "store.duckdb", None)
    jobs.ingest(past, where)
    return jobs.compare(jobs.Question(str(candidate)), where)


def fronts(answer: Comparison, metric: str = "frontier_tput_per_gpu") -> dict[str, Finding]:
    """Findings about frontiers by sequence."""
    found = [one for one in answer.findings if one.scope is Scope.FRONTIER and one.metric == metric]
    return {one.key.split(" ")[5]: one for one in found}


def codes(finding: Finding) -> set[str]:
    return {caveat.code for caveat in finding.caveats}


# ---- the retune: TP8 and TP4 with parallel experts give way to ratios of TP4 ------------------------------------


RETUNED = "minimaxm3-fp8-mi355x-vllm-disagg"
LOW, HIGH = (1, 4, 16, 64, 128, 256), (128, 256, 512)


def before_retune() -> dict[int, list[Arm]]:
    tp8, ep4 = Pool(1, 8), Pool(1, 4, 4)
    return {
        isl: [
            (tp8, tp8, saturating(0.8 * peak, 90, LOW, 64)),
            (ep4, ep4, saturating(peak, 70, (16, 64, 128, 256), 80)),
        ]
        for isl, peak in ((8192, 2085.0), (1024, 1736.0))
    }


def after_retune() -> dict[int, list[Arm]]:
    one, two = Pool(1, 4), Pool(2, 4)
    return {
        isl: [
            (one, one, saturating(0.8 * peak, 100, (*LOW, 512), 90)),
            (prefill, decode, saturating(peak, 80, HIGH, 120)),
        ]
        for isl, peak, prefill, decode in ((8192, 6003.0, two, one), (1024, 2586.0, one, two))
    }


@pytest.fixture(scope="module")
def retuned(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder = tmp_path_factory.mktemp("retuned")
    past = [sweep(folder / f"{n}", n, RETUNED, MI355X, OLD_IMAGE, before_retune()) for n in (1, 2)]
    return compared(folder, past, sweep(folder / "new", 40, RETUNED, MI355X, NEW_IMAGE, after_retune()))


def test_a_retune_is_judged_by_its_frontier_and_decides_the_headline(retuned: Comparison) -> None:
    chosen = select(retuned)
    assert chosen.verdict is Verdict.IMPROVEMENT
    assert chosen.fronts == ((Verdict.IMPROVEMENT, 2),)
    assert {one.verdict for one in fronts(retuned).values()} == {Verdict.IMPROVEMENT}
    assert chosen.lead[0].metric == "frontier_tput_per_gpu"


def test_the_peaks_are_claims_of_their_own(retuned: Comparison) -> None:
    peaks = fronts(retuned, "peak_tput_per_gpu")
    for sequence, before, after in (("8192/1024", 2085, 6003), ("1024/1024", 1736, 2586)):
        peak = peaks[sequence]
        assert (peak.baseline, peak.candidate) == (pytest.approx(before, rel=0.02), pytest.approx(after, rel=0.02))
        assert peak.low is not None
        assert peak.high is not None
        assert peak.low <= np.log(after / before) <= peak.high
        assert "peak_beside_frontier" in codes(peak)


def test_the_shift_at_equal_latency_stands_beside_and_decides_nothing(retuned: Comparison) -> None:
    beside = fronts(retuned, "latency_frontier_tput_per_gpu")
    for sequence, shift in fronts(retuned).items():
        late = beside[sequence]
        assert late.verdict is Verdict.IMPROVEMENT
        assert late.low is not None
        assert late.high is not None
        # A user who gets more tokens a second waits less: both axes order the points alike.
        assert late.low < (shift.effect or 0.0) < late.high
        assert "latency_beside_frontier" in codes(late)
        assert not decides(late)
    for frontier in retuned.frontiers:
        assert frontier.latency is not None
        assert frontier.latency.axis == "median_e2el"
        low, high = frontier.latency.shared or (0.0, 0.0)
        assert 0 < low < high
        assert all(low * 0.999 <= place <= high * 1.001 for place in frontier.latency.places)


def test_a_group_without_latencies_has_no_shift_at_equal_latency(tmp_path: Path) -> None:
    def timeless(row: Json) -> bool:
        row.pop("median_e2el", None)
        return True

    past = [sweep(tmp_path / f"{n}", n, RETUNED, MI355X, OLD_IMAGE, before_retune(), only=timeless) for n in (1, 2)]
    new = sweep(tmp_path / "new", 40, RETUNED, MI355X, NEW_IMAGE, after_retune(), only=timeless)
    answer = compared(tmp_path, past, new)
    assert fronts(answer, "latency_frontier_tput_per_gpu") == {}
    assert {one.latency for one in answer.frontiers} == {None}
    assert all(form["latency"] is None for form in json.loads(jsonform.dumps(answer))["frontiers"])
    assert "at equal end-to-end latency" not in render.render(select(answer), "comment", "en")


def test_the_line_of_a_side_lies_over_its_points(retuned: Comparison) -> None:
    for frontier in retuned.frontiers:
        for _, side in frontier.named_sides:
            paces, outputs = np.array(side.line).T
            assert (np.diff(paces) > 0).all()
            for spot in side.points:
                if paces[0] <= spot.speed <= paces[-1]:
                    at = int(np.searchsorted(paces, spot.speed * (1 - 1e-9)))
                    assert outputs[at] >= spot.output * (1 - 1e-6)


def test_the_layouts_of_a_retune_are_retired_and_new(retuned: Comparison) -> None:
    for frontier in retuned.frontiers:
        told = sorted((one.kind, one.rule) for one in frontier.layouts)
        assert told == [(LayoutKind.NEW, "no_partner")] * 2 + [(LayoutKind.RETIRED, "not_asked_for")] * 2


def test_points_of_retired_layouts_are_dropped_and_nothing_asks_to_measure_them(retuned: Comparison) -> None:
    assert {one.verdict for one in retuned.unmatched if one.task is None} == {Verdict.DROPPED, Verdict.NO_BASELINE}
    named = {
        row.key for step in select(retuned).steps for row in step.rows if isinstance(row, Unmatched) and not row.task
    }
    assert named == set()


def test_a_retune_is_told_in_both_languages(retuned: Comparison) -> None:
    chosen = select(retuned)
    english, chinese = (render.render(chosen, "comment", lang) for lang in ("en", "zh"))
    name = f"{RETUNED} 8192/1024"
    assert f"{name}: at equal interactivity (" in english
    assert " tok/s/user) throughput per GPU rose to " in english
    assert f"{name}: peak throughput per GPU rose to 2.8" in english
    assert "| new | No layout of the other side stands in its place. |" in english
    assert "| retired | The run's config does not ask for it any more. |" in english
    assert f"{name}：相同交互性（" in chinese
    assert f"{name}：每 GPU 峰值吞吐量升至基线的 2.8" in chinese
    assert "| 停用 | 运行的配置已不再要求测量。 |" in chinese or "| 停用 |" in chinese
    assert "Smallest detectable change" in english


def test_a_sign_off_quotes_shift_and_peak(retuned: Comparison) -> None:
    said = render.render(select(retuned), "evidence", "en")
    assert f"{RETUNED} 1024/1024: peak throughput per GPU rose by " in said
    assert f"{RETUNED} 1024/1024: layouts: new 2, retired 2." in said


def test_the_json_of_frontiers_fits_its_schema(retuned: Comparison) -> None:
    form = json.loads(jsonform.dumps(retuned))
    jsonschema.validate(form, jsonform.schema())
    one = next(frontier for frontier in form["frontiers"] if "8192" in frontier["key"])
    assert one["same_layouts"] is False
    assert one["shared"][0] < one["shared"][1]
    assert len(one["gaps"]) == 49
    assert form["headline"]["frontiers"] == {"total": 2, "improvement": 2}


# ---- one arm of nine collapses -----------------------------------------------------------------------------------

COLLAPSED = "minimaxm3-fp8-gb300-dynamo-vllm"


def nine_arms(*, collapsed: bool, gain: float = 1.0) -> dict[int, list[Arm]]:
    """Nine layouts, most of one concurrency; the one of concurrency 512 decodes on 2xDEP8 or on 1xDEP16."""
    prefill = Pool(1, 2, 2, dpa=True)
    narrow = [(prefill, Pool(n, 4, 4), saturating(300.0 * n, 160 - 10 * n, (4 * n,), 8)) for n in (1, 2, 3, 4)]
    wide = [
        (Pool(n, 2, 2, dpa=True), Pool(1, 8, 8, dpa=True), {32 * n: (1500.0 + 900 * n, 100 - 15.0 * n)})
        for n in (1, 2, 4, 5)
    ]
    last = Pool(1, 16, 16, dpa=True) if collapsed else Pool(2, 8, 8, dpa=True)
    return {8192: [*narrow, *wide, (Pool(3, 2, 2, dpa=True), last, {512: (7000.0 * gain, 18.0 * gain)})]}


@pytest.fixture(scope="module")
def collapsed(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder = tmp_path_factory.mktemp("collapsed")
    past = [sweep(folder / f"{n}", n, COLLAPSED, GB300, OLD_IMAGE, nine_arms(collapsed=False)) for n in (1, 2)]
    new = sweep(folder / "new", 40, COLLAPSED, GB300, NEW_IMAGE, nine_arms(collapsed=True, gain=1.12))
    return compared(folder, past, new)


def test_a_collapsed_arm_is_reshaped_and_the_eight_others_decide(collapsed: Comparison) -> None:
    (frontier,) = collapsed.frontiers
    kinds = sorted((one.kind, one.rule) for one in frontier.layouts)
    assert kinds == [(LayoutKind.RESHAPED, "same_gpus_per_role")] + [(LayoutKind.SAME, "same")] * 8
    assert all("frontier_beside_curves" in codes(one) for one in fronts(collapsed).values())
    chosen = select(collapsed)
    assert chosen.fronts == ()
    assert chosen.verdict in CALM


def test_the_peak_of_the_collapsed_arm_is_told_all_the_same(collapsed: Comparison) -> None:
    peak = fronts(collapsed, "peak_tput_per_gpu")["8192/1024"]
    assert peak.verdict is Verdict.IMPROVEMENT
    assert peak.effect == pytest.approx(np.log(1.12), abs=0.03)
    text = render.render(select(collapsed), "comparison", "en")
    assert "| reshaped | Each role has as many GPUs, split otherwise. |" in text
    chinese = render.render(select(collapsed), "comparison", "zh")
    assert "| 重组 | 每个角色的 GPU 数不变，拆分方式不同。 |" in chinese


# ---- what must raise no alarm ------------------------------------------------------------------------------------


def _two(peak: float = 2000.0) -> dict[int, list[Arm]]:
    return {
        8192: [
            (Pool(1, 8), Pool(1, 8), saturating(0.7 * peak, 90, LOW, 64)),
            (Pool(1, 4, 4), Pool(1, 4, 4), saturating(peak, 70, (16, 64, 128, 256), 80)),
        ]
    }


def _story(
    folder: Path,
    after: Mapping[int, Sequence[Arm]],
    *,
    planned: bool = True,
    only: Callable[[Json], bool] = lambda _: True,
) -> Comparison:
    past = [sweep(folder / f"{n}", n, RETUNED, MI355X, OLD_IMAGE, _two(), planned=planned) for n in (1, 2, 3)]
    new = sweep(folder / "new", 40, RETUNED, MI355X, NEW_IMAGE, after, planned=planned, only=only)
    return compared(folder, past, new)


def test_where_all_layouts_are_the_same_the_curves_speak_and_the_frontier_stands_in_the_json(tmp_path: Path) -> None:
    answer = _story(tmp_path, _two())
    assert all("frontier_same_layouts" in codes(one) for one in fronts(answer).values())
    shift = fronts(answer)["8192/1024"]
    assert (shift.verdict, shift.effect) == (Verdict.NOT_JUDGED, pytest.approx(0.0, abs=0.03))
    chosen = select(answer)
    assert (chosen.frontiers.total, chosen.fronts) == (0, ())
    assert "Layouts changed" not in render.render(chosen, "comparison", "en")
    assert len(json.loads(jsonform.dumps(answer))["frontiers"]) == 1


@pytest.mark.parametrize("planned", [True, False])
def test_a_layout_that_failed_is_no_loss_of_the_frontier(tmp_path: Path, *, planned: bool) -> None:
    """The layout of the best throughput did not come: missing, not retired, and no regression."""
    answer = _story(tmp_path, _two(), planned=planned, only=lambda row: row["prefill_tp"] == 8)
    (frontier,) = answer.frontiers
    rules = {one.rule for one in frontier.layouts if one.kind is LayoutKind.ABSENT}
    assert rules == {"not_arrived" if planned else "plan_unknown"}
    shift, peak = fronts(answer)["8192/1024"], fronts(answer, "peak_tput_per_gpu")["8192/1024"]
    assert (shift.effect, peak.effect) == (pytest.approx(0.0, abs=0.03), pytest.approx(0.0, abs=0.03))
    assert "frontier_left_out" in codes(shift)


def test_points_that_failed_are_no_loss_of_the_frontier(tmp_path: Path) -> None:
    answer = _story(tmp_path, _two(), only=lambda row: row["conc"] < 128)
    assert fronts(answer, "peak_tput_per_gpu")["8192/1024"].effect == pytest.approx(0.0, abs=0.03)


def test_a_loss_where_nothing_has_a_twin_is_a_regression_and_asks_to_be_confirmed(tmp_path: Path) -> None:
    after = {8192: [(Pool(1, 4), Pool(2, 4), saturating(1500.0, 70, LOW, 80))]}
    answer = _story(tmp_path, after)
    shift = fronts(answer)["8192/1024"]
    assert shift.verdict is Verdict.REGRESSION
    assert "single_run" in codes(shift)
    chosen = select(answer)
    assert (chosen.verdict, chosen.steps[0].code) == (Verdict.REGRESSION, "confirm")


def test_a_new_layout_of_which_points_did_not_come_is_no_loss_yet(tmp_path: Path) -> None:
    after = {8192: [(Pool(1, 4), Pool(2, 4), saturating(2000.0, 70, LOW, 80))]}
    answer = _story(tmp_path, after, only=lambda row: row["conc"] < 64)
    found = [*fronts(answer).values(), *fronts(answer, "peak_tput_per_gpu").values()]
    assert {one.verdict for one in found} <= CALM
    assert any("frontier_incomplete" in codes(one) for one in found)


def test_a_lone_point_is_no_frontier(tmp_path: Path) -> None:
    answer = _story(tmp_path, {8192: [(Pool(1, 4), Pool(2, 4), {64: (500.0, 40.0)})]})
    assert (answer.frontiers, fronts(answer)) == ((), {})


def test_frontiers_that_cross_are_mixed(tmp_path: Path) -> None:
    tilted = [{c: (t * (s / 40) ** 0.6, s) for c, (t, s) in points.items()} for *_, points in _two()[8192]]
    answer = _story(tmp_path, {8192: [(Pool(n, 4), Pool(2, 4), points) for n, points in enumerate(tilted, 1)]})
    assert fronts(answer)["8192/1024"].verdict is Verdict.MIXED


def test_sides_without_a_common_interactivity_are_compared_by_their_peaks(tmp_path: Path) -> None:
    after = {8192: [(Pool(1, 4), Pool(2, 4), {c: (1200.0, 400.0 + c) for c in (1, 2, 4)})]}
    answer = _story(tmp_path, after)
    shift, peak = fronts(answer)["8192/1024"], fronts(answer, "peak_tput_per_gpu")["8192/1024"]
    assert (shift.verdict, shift.effect) == (Verdict.NOT_COMPARABLE, None)
    assert "no_shared_interactivity" in codes(shift)
    assert (peak.verdict, select(answer).verdict) == (Verdict.REGRESSION, Verdict.REGRESSION)
    assert "no interactivity in common" in render.render(select(answer), "comparison", "en")


def test_swapping_the_sides_swaps_the_verdict(tmp_path: Path) -> None:
    other = {8192: [(Pool(1, 4), Pool(2, 4), saturating(1500.0, 70, LOW, 80))]}
    there = _story(tmp_path / "there", other)
    past = [sweep(tmp_path / f"b{n}", n, RETUNED, MI355X, OLD_IMAGE, other) for n in (1, 2, 3)]
    back = compared(tmp_path, past, sweep(tmp_path / "new", 40, RETUNED, MI355X, NEW_IMAGE, _two()))
    one, other_way = fronts(there)["8192/1024"], fronts(back)["8192/1024"]
    assert (one.verdict, other_way.verdict) == (Verdict.REGRESSION, Verdict.IMPROVEMENT)
    assert one.effect is not None
    assert other_way.effect == pytest.approx(-one.effect, abs=0.02)


def test_everything_a_verdict_rests_on_stands_in_its_evidence(tmp_path: Path) -> None:
    answer = _story(tmp_path, {8192: [(Pool(1, 4), Pool(2, 4), saturating(1500.0, 70, LOW, 80))]})
    evidence = fronts(answer)["8192/1024"].evidence
    assert evidence is not None
    half = len(evidence.members) // 2
    assert [f"{key} median_tpot" for key in evidence.members[:half]] == list(evidence.members[half:])
    sides = [(bool(old), bool(new)) for old, new in zip(evidence.baseline, evidence.candidate, strict=True)]
    assert set(sides) == {(True, False), (False, True)}
    assert max(map(len, evidence.baseline)) == 3


def test_findings_about_frontiers_are_kept_and_read_again(tmp_path: Path, tracker: Tracker) -> None:
    past = [sweep(tmp_path / f"{n}", n, RETUNED, MI355X, OLD_IMAGE, _two()) for n in (1, 2)]
    new = sweep(tmp_path / "new", 40, RETUNED, MI355X, NEW_IMAGE, after_retune())
    assert tracker.ingest(*past, new).code == 0
    judged = tracker.compare("run:40")
    assert {one["scope"] for one in judged["findings"]} >= {"frontier", "curve"}
    table = tracker("compare", "run:40", "--format", "table").out
    assert "Layouts changed" in table
    assert "layouts: new 2, retired 2" in table


def test_metrics_that_were_not_asked_for_leave_the_frontier_out(tmp_path: Path) -> None:
    where = jobs.Where.of(tmp_path / "store.duckdb", None)
    jobs.ingest([sweep(tmp_path / "1", 1, RETUNED, MI355X, OLD_IMAGE, _two())], where)
    new = sweep(tmp_path / "new", 40, RETUNED, MI355X, NEW_IMAGE, _two())
    assert jobs.compare(jobs.Question(str(new), metrics=("median_ttft",)), where).frontiers == ()


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("8k1k peak ~2085 -> ~6003 tok/s/gpu (~2.9x)", "verified"),
        ("1k1k 峰值约 1736 → 2586 tok/s/gpu", "verified"),
        ("8k1k peak ~2085 -> ~7400 tok/s/gpu", "contradicted"),
        ("1k1k peak ~2085 -> ~6003 tok/s/gpu", "contradicted"),
    ],
)
def test_a_claimed_peak_is_held_against_the_peaks_of_both_sides(retuned: Comparison, text: str, answer: str) -> None:
    found = check(find_claims(text), Measured.of(retuned.findings))
    assert {one.answer.value for one in found} == {answer}
    assert {one.points[0].group.split(" ")[5] for one in found} == {"8192/1024" if "8k1k" in text else "1024/1024"}


def test_a_claim_about_one_layout_is_not_held_against_the_peak_of_all(retuned: Comparison) -> None:
    (claim,) = find_claims("8k1k TP8 peak ~2085 -> ~6003 tok/s/gpu")
    (found,) = check([claim], Measured.of(retuned.findings))
    assert not any(point.group for point in found.points)


# ---- AgentX reads its own axis -----------------------------------------------------------------------------------


def _agentic(factor: float, tp: int, conc: int, *, axis: bool) -> Json:
    made = factory.agentic(conc, 400.0 * factor * conc / (conc + 8), tp=tp)
    latency = dict(made["request_metrics"]["latency"])
    tpot = 0.004 * (1 + conc / 8) / factor
    latency |= {"tpot": {"mean": tpot, "p50": tpot, "p75": tpot, "p90": 1.2 * tpot, "p95": 1.3 * tpot, "std": 0.001}}
    if axis:
        norm = {
            name: 1 / (share * tpot)
            for name, share in (("mean", 2), ("p50", 2), ("p75", 2.2), ("p90", 2.5), ("p95", 3))
        }
        latency["e2e_norm_intvty"] = {**norm, "std": 1.0}
    made["request_metrics"]["latency"] = latency
    return made


@pytest.mark.parametrize(("axis", "metric"), [(True, "p90_e2e_norm_intvty"), (False, "median_tpot")])
def test_agentx_is_compared_at_equal_end_to_end_interactivity_where_rows_have_it(
    tmp_path: Path, *, axis: bool, metric: str
) -> None:
    concs = (1, 2, 4, 8, 16)
    past = factory.bundle(factory.run(1, "2026-08-20T00:00:00Z"), [_agentic(1.0, 8, c, axis=axis) for c in concs])
    new = factory.bundle(factory.run(2, "2026-08-21T00:00:00Z"), [_agentic(1.3, 4, c, axis=axis) for c in concs])
    paths = [factory.write(tmp_path / f"{n}.json", one) for n, one in enumerate((past, new))]
    (frontier,) = compared(tmp_path, paths[:1], paths[1]).frontiers
    assert frontier.interactivity.axis == metric
    scale = 2.5 if axis else 1.0
    assert frontier.peaks[0] == pytest.approx(1 / (scale * 0.004 * 3), rel=0.01)
