"""A folder of artifacts: whose run it is, which attempt made what, and which of two rows is the point."""

import pytest

from tests.readers_help import found, put, row

NAME = "bmk_dsr1_8k1k_fp8_sglang_tp8_conc64_h200-nv_03"
OLD, NEW = "2026-07-31T08:38:28Z", "2026-07-31T08:49:55Z"
ATTEMPTS = [
    {"run_attempt": 1, "run_started_at": "2026-07-31T08:20:00Z", "conclusion": "failure"},
    {"run_attempt": 2, "run_started_at": "2026-07-31T08:41:10Z", "conclusion": "success"},
]


def listing(*uploads):
    artifacts = [
        {"id": number, "name": name, "created_at": created, "workflow_run": {"id": 7000000001, "head_branch": "main"}}
        for number, name, created in uploads
    ]
    return {"total_count": len(artifacts), "artifacts": artifacts}


def values(folder):
    """Throughput by run attempt and concurrency."""
    return {
        (str(batch.run.key), point.series.conc): point.metrics["tput_per_gpu"]
        for batch in found(folder)
        for point in batch.points
    }


def reasons(folder):
    return [rejection.reason for batch in found(folder) for rejection in batch.rejections]


@pytest.mark.parametrize("order", [1, -1])
def test_the_attempt_of_an_artifact_is_the_one_that_ran_when_it_was_made(order, tmp_path):
    put(tmp_path, "100/agg.json", row(tput_per_gpu=1310.0))
    put(tmp_path, "200/agg.json", row(tput_per_gpu=655.0))
    put(tmp_path, "artifacts.json", listing(*[(200, NAME, OLD), (100, NAME, NEW)][::order]))
    put(tmp_path, "attempts.json", ATTEMPTS[::order])
    assert values(tmp_path) == {("7000000001/1", 64): 655.0, ("7000000001/2", 64): 1310.0}
    assert [(batch.run.conclusion, batch.run.head_branch) for batch in found(tmp_path)] == [
        ("failure", "main"),
        ("success", "main"),
    ]


def test_attempts_may_be_told_by_run_objects(tmp_path):
    put(tmp_path, f"{NAME}/agg.json", row())
    put(tmp_path, "artifacts.json", listing((100, NAME, NEW)))
    put(tmp_path, "attempts.json", [{"id": 7000000001, "event": "push", **one} for one in ATTEMPTS])
    put(tmp_path, "run.json", {"id": 7000000001, "path": ".github/workflows/run-sweep.yml", **ATTEMPTS[1]})
    (batch,) = [batch for batch in found(tmp_path) if batch.points]
    assert (str(batch.run.key), batch.run.path) == ("7000000001/2", ".github/workflows/run-sweep.yml")


def test_without_a_list_of_attempts_the_second_upload_of_a_name_is_of_the_second(tmp_path):
    for number, conc, tput in ((900, 4, 100.0), (901, 8, 180.0), (902, 8, 195.0)):
        put(tmp_path, f"{number}/agg.json", row(conc=conc, tput_per_gpu=tput))
    put(tmp_path, "results_bmk/agg_bmk.json", [row(conc=8, tput_per_gpu=t) for t in (195.0, 180.0)])
    put(tmp_path, "artifacts.json", listing((900, "bmk_4", OLD), (901, "bmk_8", OLD), (902, "bmk_8", NEW)))
    assert values(tmp_path) == {("7000000001/1", 4): 100.0, ("7000000001/1", 8): 180.0, ("7000000001/2", 8): 195.0}
    assert reasons(tmp_path) == []
    assert sum(batch.duplicates for batch in found(tmp_path)) == 2


@pytest.mark.parametrize(
    ("created", "expected"), [(NEW, (2, "success", "08:41")), (OLD, (1, None, "08:19"))], ids=["latest", "before"]
)
def test_a_run_object_alone_tells_its_latest_attempt_from_the_ones_before(created, expected, tmp_path):
    put(tmp_path, f"{NAME}/agg.json", row())
    put(tmp_path, "artifacts.json", listing((100, NAME, created)))
    put(tmp_path, "run.json", {"id": 7000000001, "created_at": "2026-07-31T08:19:00Z", **ATTEMPTS[1]})
    (run,) = [batch.run for batch in found(tmp_path) if batch.points]
    assert (run.attempt, run.conclusion, f"{run.started_at:%H:%M}") == expected


def test_of_two_uploads_of_one_attempt_the_newer_stays_and_the_other_is_named(tmp_path):
    put(tmp_path, "100/agg.json", row(tput_per_gpu=1310.0))
    put(tmp_path, "200/agg.json", row(tput_per_gpu=655.0))
    put(tmp_path, "artifacts.json", listing((200, NAME, OLD), (100, "bmk_other_runner", NEW)))
    put(tmp_path, "run.json", {"id": 7000000001, **ATTEMPTS[0]})
    assert values(tmp_path) == {("7000000001/1", 64): 1310.0}
    assert reasons(tmp_path) == ["superseded"]


def test_a_collected_file_stands_for_points_without_an_artifact_of_their_own(tmp_path):
    put(tmp_path, f"{NAME}/agg_a.json", row(hw="h200"))
    put(tmp_path, "results_bmk/agg_bmk.json", [row(hw="h200", tput_per_gpu=1.0), row(hw="h200", conc=4)])
    (batch,) = found(tmp_path)
    assert {point.series.conc: (point.metrics["tput_per_gpu"], point.pool) for point in batch.points} == {
        64: (1310.0, "nv"),
        4: (1310.0, None),
    }
    assert batch.duplicates == 1


def test_a_collected_file_with_two_values_of_one_key_is_not_guessed_at(tmp_path):
    put(tmp_path, "results_bmk.json", [row(conc=8, tput_per_gpu=195.0), row(conc=4), row(conc=8, tput_per_gpu=180.0)])
    (batch,) = found(tmp_path / "results_bmk.json")
    assert [point.series.conc for point in batch.points] == [4]
    assert [(one.reason, str(one.place), one.detail) for one in batch.rejections] == [
        ("ambiguous_duplicate", "results_bmk.json[0]", "results_bmk.json[2]"),
        ("ambiguous_duplicate", "results_bmk.json[2]", "results_bmk.json[0]"),
    ]


def test_equal_rows_are_one_point_and_counted(tmp_path):
    put(tmp_path, "agg_bmk.json", [row(), row(image=None), row(p99_ttft=...)])
    (batch,) = found(tmp_path / "agg_bmk.json")
    assert (len(batch.points), batch.duplicates, batch.rejections) == (1, 2, ())
    assert "p99_ttft" in batch.points[0].metrics


def test_the_same_point_on_two_recipes_is_two_points(tmp_path):
    put(
        tmp_path, "agg_bmk.json", [row(recipe_fingerprint="a" * 64), row(recipe_fingerprint="b" * 64, tput_per_gpu=9.0)]
    )
    (batch,) = found(tmp_path / "agg_bmk.json")
    assert len(batch.points) == 2


def test_raw_material_is_passed_over(tmp_path):
    for name in (
        "server_logs_a",
        "gpu_metrics_a",
        "power_audit_a",
        "agentic_a",
        "eval_server_logs_a",
        "eval_gpu_metrics_a",
    ):
        put(tmp_path, f"{name}/agg_a.json", row())
    put(tmp_path, "bmk_agentic_a/a.json", row(conc=4))
    assert [point.series.conc for batch in found(tmp_path) for point in batch.points] == [4]


def test_folders_of_several_runs_are_read_one_by_one(tmp_path):
    for number in (1, 2):
        put(tmp_path, f"{number}/run.json", {"id": number, "run_started_at": OLD})
        put(tmp_path, f"{number}/results_bmk/agg_bmk.json", [row()])
    put(tmp_path, "loose.json", [row()])
    assert [batch.run.id for batch in found(tmp_path)][:2] == [1, 2]
    assert sum(len(batch.points) for batch in found(tmp_path)) == 3


def test_a_file_beside_the_folders_of_runs_does_not_make_them_one_run(tmp_path):
    for number in (1, 2):
        put(tmp_path, f"{number}/run.json", {"id": number, "run_started_at": OLD})
    put(tmp_path, "results_of_all.json", [])
    assert [batch.run.id for batch in found(tmp_path)] == [1, 2]


@pytest.mark.parametrize(("number", "expected"), [(7000000001, ".github/workflows/run-sweep.yml"), (5, None)])
def test_a_given_run_describes_its_own_artifacts_and_no_others(number, expected, tmp_path):
    put(tmp_path, "a/run.json", {"id": number, "path": ".github/workflows/run-sweep.yml", **ATTEMPTS[0]})
    (described,) = found(tmp_path / "a")
    put(tmp_path, f"b/{NAME}/agg.json", row())
    put(tmp_path, "b/artifacts.json", listing((100, NAME, OLD)))
    (batch,) = found(tmp_path / "b", run=described.run)
    assert (batch.run.id, batch.run.path) == (7000000001, expected)


def test_notes_about_a_run_are_kept_once(tmp_path):
    notes = {"base_ref": "a", "head_ref": "b", "entries": [{"config-keys": ["k"]}]}
    for name in ("changelog-metadata/changelog_metadata.json", "copy/changelog_metadata.json"):
        put(tmp_path, name, notes)
    put(tmp_path, "run-stats/run_stats.json", {"h200-dgxc": {"n_success": 3, "total": 4}})
    (batch,) = found(tmp_path)
    assert (len(batch.changelog), len(batch.jobs)) == (1, 1)


def test_a_run_that_is_described_and_measured_nothing_is_a_fact(tmp_path):
    put(tmp_path, "run.json", {"id": 1, "run_started_at": OLD})
    (batch,) = found(tmp_path)
    assert (batch.run.id, batch.points, batch.rejections) == (1, (), ())


@pytest.mark.parametrize("broken", [{"id": "x"}, [], None, {"id": 1}])
def test_a_run_object_that_cannot_be_read_leaves_the_rows_to_a_local_run(broken, tmp_path):
    put(tmp_path, "run.json", broken)
    put(tmp_path, "results_bmk/agg_bmk.json", [row()])
    put(tmp_path, "artifacts.json", {"artifacts": [3, {"name": 1}, {"name": "a", "created_at": "never"}]})
    put(tmp_path, "attempts.json", [3, {"run_attempt": "x"}])
    (batch,) = found(tmp_path)
    assert (batch.run.event, len(batch.points)) == ("local", 1)
    (rejection,) = batch.rejections
    assert (rejection.place.file.rpartition("/")[2], rejection.reason) == ("run.json", "unknown_shape")


def test_a_run_object_that_is_no_json_is_told(tmp_path):
    (tmp_path / "run.json").write_bytes(b'{"id": 5, "run_star')
    put(tmp_path, "results_bmk/agg_bmk.json", [row()])
    (rejection,) = [one for batch in found(tmp_path) for one in batch.rejections]
    assert (rejection.place.file.rpartition("/")[2], rejection.reason) == ("run.json", "malformed_json")


def test_files_named_by_attempt_are_of_that_attempt(tmp_path):
    put(tmp_path, "attempt1.json", row(tput_per_gpu=655.0))
    put(tmp_path, "attempt2.json", row(tput_per_gpu=1310.0))
    assert {key[0][-2:]: value for key, value in values(tmp_path).items()} == {"/1": 655.0, "/2": 1310.0}


@pytest.mark.parametrize("place", ["bmk_a/run.json", "123/run.json"])
def test_an_artifact_does_not_say_whose_run_it_is(tmp_path, place):
    put(tmp_path, "run.json", {"id": 5, "run_started_at": OLD, "event": "pull_request"})
    put(tmp_path, place, {"id": 6, "run_started_at": OLD, "event": "schedule"})
    put(tmp_path, place.replace("run.json", "agg_a.json"), row())
    (batch,) = found(tmp_path)
    assert (batch.run.id, batch.run.event, len(batch.points)) == (5, "pull_request", 1)


def test_an_artifact_alone_does_not_say_it_either(tmp_path):
    put(tmp_path, "bmk_a/run.json", {"id": 6, "run_started_at": OLD, "event": "schedule"})
    put(tmp_path, "bmk_a/agg_a.json", row())
    (batch,) = found(tmp_path)
    assert (batch.run.event, len(batch.points)) == ("local", 1)


def test_hidden_folders_are_not_read(tmp_path):
    put(tmp_path, ".5.fetch/bmk_b/agg_b.json", row(conc=8))
    put(tmp_path, "bmk_a/agg_a.json", row())
    (batch,) = found(tmp_path)
    assert len(batch.points) == 1
