"""What lies beside the artifacts of a run: jobs, pull request, configs, publication. Broken ones are rejections."""

import json
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.readers import sidecars
from store.readers.files import Entry
from store.records import JobRun, RunKey
from tests.readers_help import found, put, row
from tests.test_plan import SINGLE
from tests.test_promises import TWO

NAME = "bmk_dsr1_8k1k_fp8_sglang_tp8_conc64_h200-nv_03"
RUN = {"id": 77, "run_attempt": 2, "run_started_at": "2026-07-31T08:41:10Z", "event": "pull_request"}
JOB = {
    "id": 5,
    "run_attempt": 1,
    "name": "single-node 8k1k / dsr1 fp8 h200 sgl TP8 c64",
    "status": "completed",
    "conclusion": "failure",
    "started_at": "2026-07-31T08:42:00Z",
    "completed_at": "2026-07-31T09:00:00Z",
    "html_url": "https://github.com/o/r/actions/runs/77/job/5",
    "runner_name": "h200-nv_3",
}
REUSE = {
    "source_run_id": "77",
    "source_run_attempt": 2,
    "merge_run_id": "88",
    "merge_run_attempt": 1,
    "merge_run_created_at": "2026-08-01T00:00:00Z",
}
CHANGELOG = {"base_ref": "a", "head_ref": "b", "entries": [{"config-keys": ["dsr1-fp8-h200-sglang"]}]}


def folder(path, **files):
    put(path, "run.json", RUN)
    for name, value in files.items():
        put(path, name, value)
    return path


def only(path):
    (batch,) = found(path)
    return batch


def flaws(batch):
    return [(str(one.place), one.field, one.reason) for one in batch.rejections]


def test_jobs_of_all_attempts_up_to_the_runs_own_are_facts_even_without_rows(tmp_path):
    jobs = [JOB, {**JOB, "run_attempt": 2, "conclusion": None}, {**JOB, "run_attempt": 3}]
    batch = only(folder(tmp_path, **{"jobs.json": {"total_count": 3, "jobs": jobs}}))
    assert [(job.name, job.attempt, job.conclusion) for job in batch.job_runs] == [
        (JOB["name"], 1, "failure"),
        (JOB["name"], 2, None),
    ]
    assert (batch.job_runs[0].url, batch.job_runs[0].runner) == (JOB["html_url"], "h200-nv_3")
    assert batch.run.key == RunKey(77, 2)


def test_a_pull_request_tells_labels_and_number(tmp_path):
    pull = {"number": 1425, "labels": [{"name": "sweep-enabled"}, {"name": "AMD"}], "merged": False}
    run = only(folder(tmp_path, **{"pull.json": pull})).run
    assert (run.labels, run.pull_request) == (("AMD", "sweep-enabled"), 1425)


@pytest.mark.parametrize(
    ("change", "by"),
    [
        ({}, RunKey(88, 1)),
        ({"source_run_attempt": None}, RunKey(88, 1)),
        ({"source_run_attempt": 1}, None),
        ({"source_run_id": 78}, None),
    ],
)
def test_a_publication_counts_for_the_attempt_that_it_names(tmp_path, change, by):
    batch = only(folder(tmp_path, **{"reuse.json": {**REUSE, **change}}))
    assert batch.run.reused_by == by
    assert (batch.run.published_at is not None) == (by is not None)
    assert [one.reason for one in batch.rejections] == ["other_run"] * ("source_run_id" in change)


def test_configs_and_changelog_promise_the_points(tmp_path):
    path = folder(tmp_path, **{"configs/nvidia-master.yaml": TWO.encode(), "configs/amd-master.yaml": SINGLE.encode()})
    put(path, "changelog-metadata/changelog_metadata.json", CHANGELOG)
    put(path, f"{NAME}/agg.json", row())
    (batch,) = [batch for batch in found(path) if batch.expected]
    assert len([one for one in batch.expected if one.task is None]) == 7
    assert {point.series for point in batch.points} <= {one.series for one in batch.expected}
    put(path, "pull.json", {"number": 1, "labels": [{"name": "sweep-enabled"}]})
    (batch,) = [batch for batch in found(path) if batch.expected]
    assert len([one for one in batch.expected if one.task is None]) == 2


def test_a_broken_config_is_named_and_the_others_promise(tmp_path):
    broken = TWO.replace("tp: 4", "tp: four").replace("dsr1-fp8-h200-sglang", "broken") + TWO
    path = folder(tmp_path, **{"configs/a.yaml": broken.encode(), "configs/b.yaml": b"a: ["})
    put(path, "changelog-metadata/changelog_metadata.json", CHANGELOG)
    batch = only(path)
    assert len(batch.expected) == 9
    assert {(field, reason) for _, field, reason in flaws(batch)} == {("broken", "bad_config"), ("", "syntax")}
    assert {one.run for one in batch.rejections} == {batch.run.key}


@pytest.mark.parametrize("name", ["jobs.json", "pull.json", "reuse.json"])
@pytest.mark.parametrize(
    "value", [b"{", b"[]", b"3", b"null", b'"x"', b'{"jobs": 1, "number": [], "source_run_id": true}', b"\xff\xfe\x00"]
)
def test_a_broken_sidecar_is_one_rejection_or_says_nothing(tmp_path, name, value):
    put(tmp_path, f"{NAME}/agg.json", row())
    path = folder(tmp_path, **{name: value})
    batch = only(path)
    assert len(batch.points) == 1
    assert [place for place, *_ in flaws(batch)] in ([], [f"{name}[0]"])
    assert (batch.job_runs, batch.run.labels, batch.run.reused_by) == ((), (), None)
    assert flaws(batch) or (name, value) == ("jobs.json", b"[]")


def test_a_bad_job_is_rejected_alone(tmp_path):
    jobs = [JOB, {"name": ""}, 7, {**JOB, "started_at": "yesterday"}, {**JOB, "run_attempt": "x"}]
    batch = only(folder(tmp_path, **{"jobs.json": {"jobs": jobs}}))
    assert len(batch.job_runs) == 1
    assert [(str(one.place), one.field) for one in batch.rejections] == [
        ("jobs.json[1]", "name"),
        ("jobs.json[2]", ""),
        ("jobs.json[3]", "started_at"),
        ("jobs.json[4]", "run_attempt"),
    ]


def test_another_pull_request_than_the_runs_own_is_refused(tmp_path):
    put(tmp_path, "pull.json", {"number": 2, "labels": [{"name": "sweep-enabled"}]})
    put(tmp_path, "run.json", {**RUN, "pull_requests": [{"number": 1}]})
    batch = only(tmp_path)
    assert (batch.run.pull_request, batch.run.labels) == (1, ())
    assert flaws(batch) == [("pull.json[0]", "number", "other_pull_request")]


@pytest.mark.parametrize("inside", [NAME, "10338734845"])
def test_an_artifact_cannot_speak_of_its_run(tmp_path, inside):
    files = {
        f"{inside}/jobs.json": {"jobs": [JOB]},
        f"{inside}/pull.json": {"number": 1, "labels": [{"name": "full-sweep-enabled"}]},
        f"{inside}/reuse.json": REUSE,
        f"{inside}/configs/nvidia-master.yaml": TWO.encode(),
        f"{inside}/agg.json": row(),
    }
    path = folder(tmp_path, **files)
    put(path, "changelog-metadata/changelog_metadata.json", CHANGELOG)
    (batch,) = found(path)
    assert (batch.job_runs, batch.expected, batch.run.labels, batch.run.reused_by) == ((), (), (), None)
    assert (len(batch.points), batch.rejections) == (1, ())


def test_a_run_that_came_as_one_archive_has_its_sidecars(tmp_path):
    with zipfile.ZipFile(tmp_path / "run77.zip", "w") as archive:
        for name, value in (("run.json", RUN), ("jobs.json", {"jobs": [JOB]})):
            archive.writestr(name, json.dumps(value))
        archive.writestr("configs/nvidia-master.yaml", TWO)
        archive.writestr("changelog-metadata/changelog_metadata.json", json.dumps(CHANGELOG))
    (batch,) = found(tmp_path / "run77.zip")
    assert (len(batch.job_runs), len(batch.expected)) == (1, 9)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted({*JOB, *REUSE})), inner),
    max_leaves=8,
)
SHAPES = st.one_of(
    VALUES,
    st.fixed_dictionaries({"jobs": st.lists(VALUES | st.fixed_dictionaries({"name": VALUES, "run_attempt": VALUES}))}),
    st.fixed_dictionaries({"number": VALUES, "labels": VALUES | st.lists(VALUES)}),
    st.fixed_dictionaries(dict.fromkeys(REUSE, VALUES)),
)


@settings(max_examples=200)
@given(st.sampled_from(sorted(sidecars.NAMES)), SHAPES)
def test_no_value_of_a_sidecar_raises(name, value):
    entry = Entry(name, (name,), None, json.dumps(value).encode())
    beside = sidecars.read([entry], None)
    assert all(isinstance(job, JobRun) for job in beside.jobs)
