"""Files that are broken, hostile or strange: never an exception, never a good row lost."""

import json
import stat
import zipfile

import pytest

from store import limits
from tests.readers_help import bundle, found, one, put, row

GOOD = json.dumps(row()).encode()


def reasons(batches):
    return [rejection.reason for batch in batches for rejection in batch.rejections]


def concs(batches):
    return [point.series.conc for batch in batches for point in batch.points]


READABLE = {
    "byte order mark": b"\xef\xbb\xbf[" + GOOD + b"]",
    "UTF-16": json.dumps([row()]).encode("utf-16"),
    "stray bytes in a text": b"[" + GOOD.replace(b"dsr1", b"ds\xffr1") + b"]",
    "half a surrogate": b"[" + GOOD.replace(b"dsr1", b"\\ud800") + b"]",
    "NaN, Infinity": b"[" + GOOD.replace(b"6.2", b"NaN").replace(b"53.1", b"-Infinity") + b"]",
    "a number beyond double": b"[" + GOOD.replace(b"6.2", b"1e999") + b"]",
    "an integer of 5000 digits": b"[" + GOOD.replace(b"6.2", b"9" * 5000) + b"]",
    "an object, no array": GOOD,
    "blank lines around": b"\n\n [" + GOOD + b"] \n",
    "a key twice": GOOD[:-1] + b', "conc": 64}',
}


@pytest.mark.parametrize("kind", READABLE)
def test_what_writers_really_emit_is_read(kind, tmp_path):
    batches = found(put(tmp_path, "agg_bmk.json", READABLE[kind]))
    assert (concs(batches), reasons(batches)) == ([64], [])


def test_what_was_not_finite_is_null_in_the_kept_text(tmp_path):
    batch = one(tmp_path, READABLE["NaN, Infinity"])
    assert json.loads(batch.points[0].raw)["p99_ttft"] is None


BROKEN = {
    "empty": b"",
    "no JSON": b"<html>rate limit</html>",
    "object cut": GOOD[:-20],
    "deeper than any stack": b"[" * 100_000,
    "two values": GOOD + GOOD,
    "zeros": b"\x00" * 64,
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_file_that_is_no_json_is_one_rejection(kind, tmp_path):
    batches = found(put(tmp_path, "agg_bmk.json", BROKEN[kind]), put(tmp_path, "agg_good.json", [row()]))
    assert (concs(batches), reasons(batches)) == ([64], ["malformed_json"])


@pytest.mark.parametrize("tail", [b', {"conc": 8, "tp', b", nonsense]", b", ", b"", b"] and more"])
def test_of_a_broken_array_the_rows_before_the_break_are_read(tail, tmp_path):
    batches = found(put(tmp_path, "agg_bmk.json", b"[" + GOOD + b", " + GOOD.replace(b"64", b"4") + tail))
    kept = [64, 4] if tail else [64]
    assert (concs(batches), reasons(batches)) == (kept, ["malformed_json"])


@pytest.mark.parametrize("value", [None, 3, "text", True, ["text"], {"a": 1}, {"default": {"gsm8k": 0.9}}])
def test_json_that_is_no_known_shape_is_one_rejection(value, tmp_path):
    assert reasons(found(put(tmp_path, "what.json", value))) == ["unknown_shape"]


@pytest.mark.parametrize("value", [[], {}])
def test_an_empty_file_says_nothing(value, tmp_path):
    assert reasons(found(put(tmp_path, "what.json", value))) == []


@pytest.mark.parametrize("value", [None, 3, "text", {"a": 1}, [None, []]])
def test_whatever_stands_in_a_result_file_is_offered_as_rows(value, tmp_path):
    batch = one(tmp_path, value)
    assert len(batch.rejections) == (len(value) if isinstance(value, list) else 1)


def test_a_path_that_does_not_exist_is_wrong_use(tmp_path):
    with pytest.raises(FileNotFoundError, match="name a file"):
        found(tmp_path / "none.json")


def test_files_that_name_no_run_are_a_local_run_by_their_content(tmp_path):
    here, there = put(tmp_path, "a/agg_bmk.json", [row()]), put(tmp_path, "b/other.json", [row()])
    first, second = found(here, there)
    assert first.run.event == "local"
    assert first.run.id < 0
    assert first.run.key == second.run.key
    assert first.run.key != one(tmp_path, [row(conc=4)]).run.key


def test_the_same_folder_reads_the_same_wherever_it_lies(tmp_path):
    for place in ("here", "elsewhere"):
        put(tmp_path, f"{place}/results_bmk/agg_bmk.json", [row()])
        put(tmp_path, f"{place}/run.json", {"id": 5, "run_started_at": "2026-06-01T00:00:00Z"})
    assert found(tmp_path / "here") == found(tmp_path / "elsewhere")


def test_a_given_run_stands_for_files_that_name_none(tmp_path):
    given = one(tmp_path, bundle([row()]), "bundle.json").run
    named = put(tmp_path, "bundle.json", bundle([row(conc=8)], id=6))
    batches = found(put(tmp_path, "agg_a.json", [row()]), put(tmp_path, "agg_b.json", [row(conc=4)]), named, run=given)
    assert sorted((batch.run.id, len(batch.points)) for batch in batches) == [(6, 1), (given.id, 2)]


def test_a_run_object_named_with_its_files_speaks_for_them(tmp_path):
    told = put(tmp_path, "run.json", {"id": 5, "run_started_at": "2026-06-01T00:00:00Z"})
    (batch,) = found(put(tmp_path, "agg_bmk.json", [row()]), told)
    assert (batch.run.id, concs([batch])) == (5, [64])


def zipped(path, members):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def test_archives_are_read_as_the_folders_they_are(tmp_path):
    zipped(tmp_path / "run" / "bmk_dsr1_a.zip", {"deep/er/agg_a.json": GOOD, "log.txt": b"no"})
    zipped(tmp_path / "run" / "server_logs_a.zip", {"agg.json": b"[1, 2]"})
    put(tmp_path, "run/run.json", {"id": 5, "run_started_at": "2026-06-01T00:00:00Z"})
    (batch,) = found(tmp_path / "run")
    assert [str(point.place) for point in batch.points] == ["bmk_dsr1_a.zip!deep/er/agg_a.json[0]"]
    assert batch.rejections == ()


def test_a_whole_run_may_come_as_one_archive(tmp_path):
    members = {
        "artifacts/results_bmk/agg_bmk.json": b"[" + GOOD + b"]",
        "run.json": b'{"id": 5, "run_started_at": "2026-06-01T00:00:00Z"}',
    }
    (batch,) = found(zipped(tmp_path / "run.zip", members))
    assert (batch.run.id, concs([batch])) == (5, [64])


@pytest.mark.parametrize(
    "name", ["../agg_a.json", "/etc/agg_a.json", "x/../../agg_a.json", "C:/agg_a.json", "..\\agg.json"]
)
def test_a_member_that_would_leave_its_folder_is_refused(name, tmp_path):
    batches = found(zipped(tmp_path / "bmk_a.zip", {name: GOOD, "agg_good.json": GOOD}))
    assert (concs(batches), reasons(batches)) == ([64], ["unsafe_path"])


def test_a_symbolic_link_in_an_archive_is_refused(tmp_path):
    link = zipfile.ZipInfo("agg_link.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "bmk_a.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    assert reasons(found(tmp_path / "bmk_a.zip")) == ["unsafe_path"]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"PK\x05\x06"])
def test_what_only_calls_itself_an_archive_is_one_rejection(content, tmp_path):
    assert reasons(found(put(tmp_path, "bmk_a.zip", content))) == ["bad_archive"]


def test_a_damaged_member_costs_only_itself(tmp_path):
    path = zipped(tmp_path / "bmk_a.zip", {"agg_a.json": GOOD, "agg_b.json": GOOD.replace(b"64", b"4")})
    content = bytearray(path.read_bytes())
    content[60] ^= 0xFF
    path.write_bytes(content)
    batches = found(path)
    assert (concs(batches), reasons(batches)) == ([4], ["bad_archive"])


def test_an_archive_is_bounded_in_ratio_size_and_members(tmp_path, monkeypatch):
    bomb = zipped(tmp_path / "bmk_bomb.zip", {"agg_a.json": b"[" + b" " * 8_000_000 + b"]", "agg_b.json": GOOD})
    assert (concs(found(bomb)), reasons(found(bomb))) == ([64], ["archive_too_large"])
    small = zipped(tmp_path / "bmk_small.zip", {"agg_a.json": GOOD, "agg_b.json": GOOD})
    monkeypatch.setattr(limits, "ARCHIVE_UNPACKED_BYTES", len(GOOD))
    assert reasons(found(small)) == ["archive_too_large"]
    monkeypatch.undo()
    monkeypatch.setattr(limits, "ARCHIVE_MEMBERS", 1)
    assert reasons(found(small)) == ["archive_too_large"]


@pytest.mark.parametrize(
    ("value", "count", "rejected"),
    [
        ({"base_ref": "a", "head_ref": "b", "entries": [{"config-keys": ["k"], "description": ["x", "y"]}]}, 1, 0),
        ({"base_ref": "a", "head_ref": "b", "entries": [{"config-keys": ["k"]}, 3, {"config-keys": [1]}]}, 1, 2),
        ({"base_ref": "a", "head_ref": "b", "entries": None}, 0, 1),
    ],
)
def test_changelog_metadata_gives_its_entries(value, count, rejected, tmp_path):
    batch = one(tmp_path, value, "changelog_metadata.json")
    assert (len(batch.changelog), len(batch.rejections)) == (count, rejected)


def test_an_entry_is_read_in_the_artifact_spelling_with_absent_switches_off(tmp_path):
    entry = {"config-keys": ["k-*"], "description": ["a"], "pr-link": "https://x/pull/1", "append-only": True}
    batch = one(tmp_path, {"base_ref": "a", "head_ref": "b", "entries": [entry]}, "changelog_metadata.json")
    (read,) = batch.changelog
    assert (read.config_keys, read.pr_link, read.append_only, read.evals_only, read.head_ref) == (
        ("k-*",),
        "https://x/pull/1",
        True,
        False,
        "b",
    )


def test_a_changelog_that_nobody_knew_asks_for_nothing(tmp_path):
    """The public API's row for a run without an entry: an unknown base and no keys."""
    run = {"github_run_id": "20200037154", "created_at": "2026-06-14T04:08:16Z"}
    told = {"workflow_run_id": "20200037154", "base_ref": "unknown", "head_ref": "unknown", "config_keys": []}
    batch = one(tmp_path, {"runs": [run], "changelogs": [told]}, "answer.json")
    (entry,) = batch.changelog
    assert (entry.config_keys, entry.description, entry.base_ref, batch.rejections) == ((), (), "unknown", ())


@pytest.mark.parametrize(
    ("value", "jobs", "rejected"),
    [
        ({"h200-dgxc": {"n_success": 3, "total": 4}, "b200": {"n_success": 0, "total": 0}}, 2, 0),
        ({"h200": {"n_success": "many", "total": 4}}, 0, 1),
        (None, 0, 0),
    ],
)
def test_run_stats_count_jobs_and_null_says_nothing(value, jobs, rejected, tmp_path):
    batches = found(put(tmp_path, "run_stats.json", value))
    assert sum(len(batch.jobs) for batch in batches) == jobs
    assert len(reasons(batches)) == rejected


@pytest.mark.parametrize(
    "value",
    [
        {"source_run_id": "1", "ingest_run_id": "2"},
        {"summary": [], "volume": []},
        [{"hardware": "b200", "date": "2026-06-14", "n_success": 0, "total": 0}],
        [{"model": "dsr1", "hardware": "b200", "precision": "fp8", "spec_method": "none", "date": "2026-06-14"}],
    ],
)
def test_known_answers_without_rows_are_passed_over(value, tmp_path):
    assert found(put(tmp_path, "answer.json", value)) == []
