"""Simulated sweeps: same seed same bytes, laws of the metrics, shapes of the artifacts, a truth that shows."""

import hashlib
import json
import math
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean, median

import numpy as np
import polars as pl
import pytest

from store import identity, images, readers
from store.metrics import GATE_METRICS, METRICS
from store.records import Verdict
from tracker.simulate import NOISES, Story, StoryRun, draw, simulate_sweeps, write_story
from tracker.simulate.bench import LENGTH_SHARE, unit_noise
from tracker.simulate.fleet import CONFIGS, FLEET, JOBS, Job
from tracker.simulate.script import SCRIPT, Bump, after, first_state

END = datetime(2026, 11, 27, 2, tzinfo=UTC)
SEED, WEEKS = 7, 5


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return write_story(tmp_path_factory.mktemp("story"), SEED, WEEKS, END)


@pytest.fixture(scope="module")
def rows(story: Story) -> dict[str, dict[str, dict]]:
    """Rows by run and series."""
    return {str(run.key): {_key(row): row for row in _load(run, "results_bmk/agg_bmk.json")} for run in story.runs}


def _load(run: StoryRun, name: str):
    return json.loads((run.folder / name).read_text(encoding="utf-8"))


def _key(row: dict) -> str:
    """Series key of a row, by what a row says of its deployment."""
    return _KEYS.get(_said(row), f"? {row['hw']}")


def _names(job: Job) -> tuple:
    config, prefill, decode = job.config, job.topology.prefill, job.topology.decode
    split = decode and (prefill.workers, decode.tp, decode.workers)
    head = (config.prefix, config.hw, config.framework, config.precision, job.isl, job.conc)
    return (*head, prefill.tp, prefill.ep, split)


_KEYS = {_names(job): job.key for job in JOBS}
_JOBS = {job.key: job for job in JOBS}


def _said(row: dict) -> tuple:
    side = "prefill_" if row["is_multinode"] else ""
    split = row["is_multinode"] and tuple(row[k] for k in ("prefill_num_workers", "decode_tp", "decode_num_workers"))
    head = tuple(row[k] for k in ("infmax_model_prefix", "hw", "framework", "precision", "isl", "conc"))
    return (*head, row[f"{side}tp"], row[f"{side}ep"], split or None)


def _digest(folder: Path) -> str:
    told = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            told.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return told.hexdigest()


# --- determinism and size


def test_the_same_seed_gives_the_same_bytes(story, tmp_path):
    again = write_story(tmp_path, SEED, WEEKS, END)
    assert _digest(tmp_path) == _digest(story.candidate.folder.parent)
    assert [run.key for run in again.runs] == [run.key for run in story.runs]
    assert again.expected() == story.expected()


def test_another_seed_gives_other_numbers_but_the_same_script(story, tmp_path):
    other = write_story(tmp_path, SEED + 1, WEEKS, END)
    assert _digest(tmp_path) != _digest(story.candidate.folder.parent)
    assert other.changes() == story.changes()


def test_a_story_fits_a_demo(story):
    files = [path for path in story.candidate.folder.parent.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 30_000_000
    full = [run for run in story.nights if run.bad_pool is None]
    assert all(150 <= len(run.points) <= 250 for run in full)


def test_a_story_too_short_for_its_script_is_refused(tmp_path):
    with pytest.raises(ValueError, match="the story needs"):
        write_story(tmp_path, SEED, 3, END)


def test_runs_are_in_the_order_of_time_and_end_when_asked(story):
    starts = [run.started_at for run in story.runs]
    assert starts == sorted(starts)
    assert story.candidate.started_at == END
    assert END - starts[0] < timedelta(weeks=WEEKS)
    assert [run.key for run in story.runs] == sorted(run.key for run in story.runs)


# --- laws of the metrics


def _all_rows(rows):
    return [row for run in rows.values() for row in run.values()]


def test_interactivity_is_the_inverse_of_tpot(rows):
    for row in _all_rows(rows):
        for stat in ("mean", "median", "std", "p90", "p99", "p99.9"):
            assert row[f"{stat}_intvty"] * row[f"{stat}_tpot"] == pytest.approx(1)


def test_latency_is_first_token_plus_the_others(rows):
    for row in _all_rows(rows):
        tokens = LENGTH_SHARE * row["osl"]
        assert row["mean_e2el"] == pytest.approx(row["mean_ttft"] + tokens * row["mean_tpot"])
        assert row["median_e2el"] == pytest.approx(row["median_ttft"] + tokens * row["median_tpot"], rel=0.2)


def test_throughput_follows_from_latency_on_one_node(rows):
    single = [row for row in _all_rows(rows) if not row["is_multinode"]]
    for row in single:
        tokens = LENGTH_SHARE * (row["isl"] + row["osl"])
        assert row["tput_per_gpu"] == pytest.approx(row["conc"] * tokens / row["mean_e2el"] / row["tp"])
        assert row["tput_per_gpu"] == pytest.approx(row["input_tput_per_gpu"] + row["output_tput_per_gpu"])


def test_a_split_deployment_divides_by_the_gpus_of_each_side(rows):
    split = [row for row in _all_rows(rows) if row["is_multinode"]]
    assert split
    for row in split:
        gpus_in, gpus_out = row["num_prefill_gpu"], row["num_decode_gpu"]
        weighted = row["input_tput_per_gpu"] * gpus_in + row["output_tput_per_gpu"] * gpus_out
        assert row["tput_per_gpu"] == pytest.approx(weighted / (gpus_in + gpus_out))


def test_percentiles_rise(rows):
    for row in _all_rows(rows):
        for what in ("ttft", "tpot", "itl", "e2el"):
            levels = [row[f"{stat}_{what}"] for stat in ("median", "p90", "p99", "p99.9")]
            assert levels == sorted(levels) or any(map(math.isnan, levels))


def test_energy_agrees_with_power_and_throughput(rows):
    metered = [row for row in _all_rows(rows) if "avg_power_w" in row]
    assert metered
    for row in metered:
        assert row["joules_per_total_token"] * row["tput_per_gpu"] == pytest.approx(row["avg_power_w"])
        assert row["joules_per_output_token"] * row["output_tput_per_gpu"] == pytest.approx(row["avg_power_w"])


def test_numbers_are_positive_and_finite_except_the_one_that_is_meant(story, rows):
    broken = [
        (run, series, name)
        for run, table in rows.items()
        for series, row in table.items()
        for name, value in row.items()
        if name in METRICS and not (math.isfinite(value) and value > 0)
    ]
    meant = [(str(run.key), run.not_a_number, "p99_ttft") for run in story.runs if run.not_a_number]
    assert broken == meant
    assert len(meant) == 1


# --- shapes of the artifacts


def test_a_run_folder_is_laid_out_as_a_download_is(story):
    common = {"run.json", "results_bmk", "eval_results_all", "changelog-metadata", "run-stats"}
    for run in story.runs:
        assert run.folder.name == f"{run.key.id}-{run.key.attempt}"
        names = {path.name for path in run.folder.iterdir()}
        assert common <= names
        assert all(name.startswith(("bmk_", "eval_")) for name in names - common)


def test_a_run_object_says_what_the_truth_says(story):
    for run in story.runs:
        told = _load(run, "run.json")
        assert (told["id"], told["run_attempt"], told["event"]) == (run.key.id, run.key.attempt, run.event)
        assert datetime.fromisoformat(told["run_started_at"]) == run.started_at
        assert told["conclusion"] == ("failure" if set(run.missing) - _relabelled(run) else "success")
        official = told["path"].endswith("run-sweep.yml") and told["event"] == "push" and told["head_branch"] == "main"
        assert official == run.official


def _relabelled(run: StoryRun) -> set[str]:
    """The series that is missing only since its row stands under a label that nobody knows."""
    return {run.missing[-1]} if run.strange_label and len(run.missing) == 1 else set()


def test_a_row_has_the_keys_of_the_contract(rows):
    both = {"hw", "conc", "image", "model", "infmax_model_prefix", "framework", "precision", "spec_decoding", "disagg"}
    both |= {"recipe_fingerprint", "isl", "osl", "is_multinode", *GATE_METRICS}
    single = {"tp", "pp", "dcp_size", "pcp_size", "ep", "dp_attention"}
    split = {f"{side}_{key}" for side in ("prefill", "decode") for key in (*single, "num_workers")}
    split |= {"num_prefill_gpu", "num_decode_gpu", "router", "kv_p2p_transfer"}
    for row in _all_rows(rows):
        assert both <= set(row)
        assert (split if row["is_multinode"] else single) <= set(row)
        assert not (single if row["is_multinode"] else split) & set(row)
        assert len(row["recipe_fingerprint"]) == 64
        flags = [value for key, value in row.items() if key.endswith("dp_attention")]
        assert set(flags) <= {"true", "false"}
        assert isinstance(row["conc"], int)
        assert isinstance(row["disagg"], bool)


def test_every_metric_of_a_row_is_in_the_table(rows):
    words = {key for row in _all_rows(rows) for key, value in row.items() if isinstance(value, float)}
    assert words <= set(METRICS)


def test_a_point_file_holds_the_row_of_the_collection(story):
    kept = [run for run in story.runs if list(run.folder.glob("bmk_*"))]
    assert len(kept) >= 4
    for run in kept:
        collected = _load(run, "results_bmk/agg_bmk.json")
        for path in run.folder.glob("bmk_*/agg_*.json"):
            assert json.loads(path.read_text(encoding="utf-8")) in collected
            assert path.name.startswith(path.parent.name.replace("bmk_", "agg_", 1))
            assert len(path.parent.name) < 255


def test_a_job_on_several_nodes_keeps_one_folder_with_a_file_per_concurrency(story):
    folders = [path for path in story.candidate.folder.glob("bmk_*dynamo*") if "1k1k" in path.name]
    assert {len(list(folder.iterdir())) for folder in folders} == {3}


def test_scores_are_whole_numbers_of_questions_with_their_error(story):
    for run in story.runs:
        for row in _load(run, "eval_results_all/agg_eval_all.json"):
            for word in ("em_strict", "em_flexible"):
                assert row[word] * 1319 == pytest.approx(round(row[word] * 1319))
                assert row[f"{word}_se"] == pytest.approx(math.sqrt(row[word] * (1 - row[word]) / 1318))
            assert row["hw"] == row["hw"].upper()
            assert (row["isl"], row["osl"], row["n_eff"], row["task"]) == (8192, 1024, 1319, "gsm8k")
            assert row["conc"] >= 16


def test_eval_folders_agree_with_the_collection(story):
    folders = [path for path in story.candidate.folder.glob("eval_*") if path.name != "eval_results_all"]
    collected = {row["source"]: row for row in _load(story.candidate, "eval_results_all/agg_eval_all.json")}
    assert len(folders) == len(collected) > 10
    for folder in folders:
        env = json.loads((folder / "meta_env.json").read_text(encoding="utf-8"))
        (result,) = folder.glob("results_*.json")
        row = collected[f"{folder.name}/{result.name}"]
        scores = json.loads(result.read_text(encoding="utf-8"))["results"]["gsm8k"]
        assert scores["exact_match,strict-match"] == row["em_strict"]
        assert scores["exact_match,flexible-extract"] == row["em_flexible"]
        assert (env["isl"], env["conc"], env["hw"].upper()) == ("8192", row["conc"], row["hw"])
        assert isinstance(env["dp_attention"], bool)
        assert "image" not in env


def test_evals_cover_the_highest_and_the_median_concurrency(story):
    rows = _load(story.candidate, "eval_results_all/agg_eval_all.json")
    mine = [r["conc"] for r in rows if r["framework"] == "atom"]
    assert sorted(mine) == [64, 256]


def test_run_statistics_count_the_lost_jobs(story):
    for run in story.runs:
        stats = _load(run, "run-stats/run_stats.json")
        lost = sum(count["total"] - count["n_success"] for count in stats.values())
        assert lost == len(run.missing) - (run.strange_label is not None)
        assert sum(count["total"] for count in stats.values()) == len(run.points) + len(run.missing)


def test_the_changelog_names_the_configs_that_changed(story):
    for before, now in zip(story.nights, story.nights[1:], strict=False):
        told = _load(now, "changelog-metadata/changelog_metadata.json")
        assert told["base_ref"] == _load(before, "run.json")["head_sha"]
        assert told["head_ref"] == _load(now, "run.json")["head_sha"]
        changed = {
            config
            for config in before.images
            if (before.images[config], before.recipes[config]) != (now.images[config], now.recipes[config])
        }
        assert {key for entry in told["entries"] for key in entry["config-keys"]} == changed


# --- the truth and the data


def test_the_keys_of_the_truth_are_those_of_the_product():
    for job in JOBS:
        assert not identity.unmapped(job.series)
        assert identity.config_key(job.series) == job.config.key
    assert len({job.key for job in JOBS}) == len(JOBS)


def test_every_image_is_pinned(story):
    told = {image for run in story.runs for image in run.images.values()}
    assert len(told) > len(SCRIPT)
    assert not [image for image in told if images.parse(image).moving]


def test_rows_are_the_points_of_the_truth(story, rows):
    for run in story.runs:
        measured = set(rows[str(run.key)]) - {"? b200-zeta9"}
        assert measured == set(run.points)
        assert not measured & set(run.missing)


def test_the_readers_find_what_the_truth_says(story):
    found = {batch.run.key: batch for batch in readers.read([story.candidate.folder.parent])}
    assert set(found) == {run.key for run in story.runs}
    for run in story.runs:
        batch = found[run.key]
        keys = [identity.series_key(point.series) for point in batch.points]
        assert sorted(key for key in keys if "?" not in key) == sorted(run.points)
        assert sum("?" in key for key in keys) == (run.strange_label is not None)
        assert not batch.rejections
        assert not [point for point in batch.points if point.invalid]
        assert (batch.run.started_at, batch.run.event) == (run.started_at, run.event)


def test_rows_carry_the_image_of_the_truth(story, rows):
    for run in story.runs:
        for series, row in rows[str(run.key)].items():
            if not series.startswith("?"):
                assert row["image"] == run.images[_JOBS[series].config.key]


def test_a_fingerprint_changes_with_image_or_recipe_only(story, rows):
    for before, now in zip(story.nights, story.nights[1:], strict=False):
        old, new = rows[str(before.key)], rows[str(now.key)]
        for job in (job for job in JOBS if job.key in old and job.key in new):
            config = job.config.key
            same = (before.images[config], before.recipes[config]) == (now.images[config], now.recipes[config])
            assert (old[job.key]["recipe_fingerprint"] == new[job.key]["recipe_fingerprint"]) == same


@pytest.mark.parametrize("metric", GATE_METRICS)
def test_planted_effects_show_in_the_means(story, rows, metric):
    """Mean log ratio of a curve to the first image, single bad machines left out, against the truth."""
    sign = 1 if metric == "tput_per_gpu" else -1
    first = story.nights[0]
    quiet = {job.curve for job in JOBS if job.config.noise == 1 and not job.config.multinode}
    for run in (run for run in story.nights[1:] if run.bad_pool is None):
        for curve in quiet & set(run.speeds) & set(first.speeds):
            ratios = [
                sign * math.log(rows[str(run.key)][key][metric] / rows[str(first.key)][key][metric])
                for key in _clean_points(curve, run, first)
            ]
            assert median(ratios) == pytest.approx(run.speeds[curve], abs=0.02)


def _clean_points(curve: str, *runs: StoryRun) -> list[str]:
    return [
        job.key
        for job in JOBS
        if job.curve == curve and all(job.key in run.points and job.key not in run.outliers for run in runs)
    ]


def test_a_bad_night_slows_its_pool_and_spares_the_median_itl(story, rows):
    place = next(index for index, run in enumerate(story.nights) if run.bad_pool)
    bad, good = (rows[str(story.nights[index].key)] for index in (place, place - 1))
    mine = [job for job in JOBS if job.key in bad and job.key in good]
    for metric, inside in (("tput_per_gpu", math.log(0.7)), ("median_itl", 0.0)):
        moved = {
            slow: median(
                math.log(bad[job.key][metric] / good[job.key][metric])
                for job in mine
                if (job.config.pool == story.nights[place].bad_pool) == slow
            )
            for slow in (True, False)
        }
        assert moved[True] == pytest.approx(inside, abs=0.02)
        assert moved[False] == pytest.approx(0, abs=0.02)


def test_an_outlier_is_one_point_of_one_night(story, rows):
    hit = [(run, key, shift) for run in story.nights for key, shift in run.outliers.items() if key in run.points]
    assert len(hit) >= 3
    for run, key, shift in hit:
        usual = [_bare(other, key, rows) for other in story.nights if key in _clean_points(_JOBS[key].curve, other)]
        assert _bare(run, key, rows) - median(usual) == pytest.approx(shift, abs=0.05)


def _bare(run: StoryRun, key: str, rows) -> float:
    """Log throughput of a point less the true speed of its software."""
    return math.log(rows[str(run.key)][key]["tput_per_gpu"]) - run.speeds[_JOBS[key].curve]


def test_a_second_attempt_brings_what_the_first_lost_and_keeps_the_rest(story, rows):
    first, second = (run for run in story.runs if run.key.id in _rerun_ids(story))
    assert set(first.missing) > set(second.missing)
    assert len(first.missing) - len(second.missing) == 10
    for series, row in rows[str(first.key)].items():
        assert rows[str(second.key)][series] == row


def _rerun_ids(story: Story) -> set[int]:
    return {run.key.id for run in story.runs if run.key.attempt > 1}


def test_an_experiment_is_not_official_and_looks_better_than_it_should(story, rows):
    (run,) = (run for run in story.runs if run.event == "workflow_dispatch")
    before = max((night for night in story.nights if night.started_at < run.started_at), key=lambda n: n.started_at)
    gains = [
        math.log(rows[str(run.key)][key]["tput_per_gpu"] / rows[str(before.key)][key]["tput_per_gpu"])
        for key in run.points
        if key in before.points
    ]
    assert not run.official
    assert fmean(gains) == pytest.approx(math.log(1.3), abs=0.03)


def test_the_last_night_offers_every_kind_of_verdict(story):
    verdicts = Counter(story.expected().values())
    assert set(verdicts) == {
        *(Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.EQUIVALENT),
        *(Verdict.NOISY, Verdict.NO_BASELINE),
    }
    assert len(story.candidate.missing) == 1
    before, now = (run.accuracy["dsr1-fp4-mi355x-atom"] for run in story.nights[-2:])
    assert now[0] - before[0] == pytest.approx(-0.03)
    assert (now[0] - now[1]) - (before[0] - before[1]) == pytest.approx(0.03)


def test_the_story_holds_a_bad_image_and_its_recovery(story):
    curve = "dsr1 h200 sglang fp8 none 8192/1024 tp8"
    speeds = [run.speeds[curve] for run in story.nights]
    assert min(speeds) == pytest.approx(math.log(0.92))
    assert speeds[0] == pytest.approx(0)
    assert speeds[-1] == pytest.approx(0)


def test_scores_scatter_as_reruns_of_the_same_questions_do(story):
    """Standardised by 0.6 binomial errors the scores have unit spread: about 300 of them, so within 15 %."""
    standard = []
    for run in story.nights:
        for row in _load(run, "eval_results_all/agg_eval_all.json"):
            (config,) = (c for c in FLEET if (c.hw.upper(), c.model, c.framework) == _place(row))
            true, _ = run.accuracy[config.key]
            standard.append((row["em_flexible"] - true) / (0.6 * math.sqrt(true * (1 - true) / 1318)))
    assert len(standard) > 250
    assert np.std(standard) == pytest.approx(1, abs=0.15)
    assert np.mean(standard) == pytest.approx(0, abs=0.25)


def _place(row: dict) -> tuple[str, str, str]:
    return row["hw"], row["model"], row["framework"]


def test_noise_is_of_unit_size_with_a_tight_core_and_heavy_tails():
    sample = unit_noise(np.random.default_rng(3), 200_000)
    assert np.std(sample) == pytest.approx(1, abs=0.03)
    core = np.diff(np.quantile(sample, (0.25, 0.75)))[0] / 1.349
    assert 0.5 < core < 0.75
    assert np.mean(np.abs(sample) > 3) > 5 * 0.0027


def test_a_bump_moves_only_what_it_names():
    config = CONFIGS["dsr1-fp8-h200-sglang"]
    state = after(first_state(), [Bump(config.key, "x", tag="v9", speed=2.0, inputs=frozenset({8192}))])
    assert state.speeds[config.key, 8192] == pytest.approx(math.log(2))
    assert state.speeds[config.key, 1024] == 0
    assert state.tags[config.key] == "v9"
    assert state.recipes == first_state().recipes


# --- tidy frames for calibration

TIDY = "run started_at image recipe curve series conc multinode metric value pool config".split()


def test_a_frame_has_the_columns_of_the_tidy_frame():
    frame = simulate_sweeps(1, end=END, history=3, points=6, curves=2)
    assert frame.columns == TIDY
    assert frame.height == 4 * 2 * 6 * len(GATE_METRICS)
    assert frame["metric"].unique().sort().to_list() == sorted(GATE_METRICS)
    assert frame.schema["started_at"] == pl.Datetime("us", "UTC")
    assert frame["started_at"].max() == END


def test_only_the_last_run_has_the_new_image():
    frame = simulate_sweeps(1, end=END, history=3, points=1)
    by_run = frame.group_by("run").agg(pl.col("image").first(), pl.col("started_at").first()).sort("started_at")
    assert by_run["image"].to_list() == ["lab/engine:v1.0.0"] * 3 + ["lab/engine:v1.1.0"]


def test_no_history_leaves_the_candidate_alone():
    frame = simulate_sweeps(1, end=END, history=0, points=3)
    assert frame["image"].unique().to_list() == ["lab/engine:v1.1.0"]


@pytest.mark.parametrize("noise", NOISES)
def test_the_same_seed_gives_the_same_frame(noise):
    one, two, other = (simulate_sweeps(seed, end=END, noise=noise, curves=3) for seed in (5, 5, 6))
    assert one.equals(two)
    assert not one.equals(other)


@pytest.mark.parametrize(
    ("noise", "spread", "share_beyond_3_percent"),
    [("normal", 0.02, 0.134), ("t3", 0.0173, 0.058), ("contaminated", 0.0198, 0.0617)],
)
def test_noises_are_what_their_names_say(noise, spread, share_beyond_3_percent):
    sample = draw(noise, np.random.default_rng(11), 400_000)
    assert np.std(sample) == pytest.approx(spread, rel=0.1)
    assert np.mean(np.abs(sample) > 0.03) == pytest.approx(share_beyond_3_percent, abs=0.003)


def test_a_planted_shift_is_in_the_last_run_only():
    frame = simulate_sweeps(2, end=END, history=10, points=6, curves=400, shift=-0.05)
    logs = frame.with_columns(pl.col("value").log())
    wide = logs.pivot(on="run", index=["series", "metric"], values="value")
    means = wide.group_by("metric").agg(
        (pl.col("11/1") - pl.col("10/1")).mean(), (pl.col("10/1") - pl.col("9/1")).mean().alias("calm")
    )
    told = {metric: (shift, calm) for metric, shift, calm in means.iter_rows()}
    assert told["tput_per_gpu"] == pytest.approx((-0.05, 0), abs=0.003)
    assert told["median_tpot"] == pytest.approx((0.05, 0), abs=0.003)


def test_a_shift_may_differ_by_point():
    frame = simulate_sweeps(2, end=END, history=1, points=2, curves=400, shift=(0.0, -0.1))
    wide = frame.filter(pl.col("metric") == "tput_per_gpu").pivot(on="run", index=["curve", "conc"], values="value")
    moved = wide.with_columns((pl.col("2/1") / pl.col("1/1")).log().alias("moved"))
    by_point = moved.group_by("conc").agg(pl.col("moved").mean()).sort("conc")["moved"].to_list()
    assert by_point == pytest.approx([0, -0.1], abs=0.005)


def test_points_and_curves_are_independent():
    frame = simulate_sweeps(4, end=END, history=400, points=2, curves=2).filter(pl.col("metric") == "tput_per_gpu")
    wide = frame.with_columns(pl.col("value").log()).pivot(on="series", index="run", values="value").drop("run")
    off_diagonal = np.corrcoef(wide.to_numpy().T) - np.eye(4)
    assert np.abs(off_diagonal).max() < 0.2
