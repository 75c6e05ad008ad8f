"""The command line: what goes where, exit codes, and wrong use that says what to do."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from tests.cli import Tracker
from tests.factory import NEXT_IMAGE, bundle, evaluation, history, row, run, write
from tracker.cli import COMMANDS

SLOWER = bundle(
    run(200, "2026-06-12T00:00:00Z"),
    [row(conc, level * 0.8, image=NEXT_IMAGE) for conc, level in ((4, 1000.0), (64, 3000.0))],
    [evaluation(0.955)],
)


@pytest.fixture
def judged(tracker: Tracker) -> Tracker:
    """A store with three calm runs and a slower bump."""
    past = history({4: [1000.0, 1003.0, 998.0], 64: [3000.0, 3009.0, 2994.0]})
    return tracker.filled([*past, SLOWER])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_an_example(tracker: Tracker, name: str) -> None:
    said = tracker(name, "--help")
    assert said.code == 0
    assert "Example" in said.out
    assert f"tracker {name}" in said.out


@pytest.mark.parametrize(("fail_on", "code"), [("never", 0), ("regression", 3), ("suspected", 3)])
def test_a_regression_fails_where_it_was_asked_to(judged: Tracker, fail_on: str, code: int) -> None:
    assert judged("compare", "--fail-on", fail_on, "--format", "json").code == code


def test_an_improvement_never_fails(judged: Tracker) -> None:
    faster = bundle(
        run(300, "2026-06-20T00:00:00Z"), [row(c, v, image="a/b:v9.9.9") for c, v in ((4, 1000.0), (64, 3000.0))]
    )
    candidate = write(judged.folder / "faster.json", faster)
    said = judged("compare", candidate, "--fail-on", "suspected", "--format", "json")
    assert said.json["headline"]["verdict"] in {"improvement", "recovery"}
    assert said.code == 0


def test_json_follows_the_published_schema_and_stands_alone_on_stdout(judged: Tracker) -> None:
    schema = judged("schema").json
    answer = judged("compare", "--format", "json")
    jsonschema.Draft202012Validator(schema).validate(answer.json)
    assert answer.err == ""


def test_a_pipe_gets_json(judged: Tracker) -> None:
    assert judged("compare").json["schema_version"] == 1


def test_csv_has_a_row_for_each_finding(judged: Tracker) -> None:
    rows = list(csv.DictReader(io.StringIO(judged("compare", "--format", "csv").out)))
    assert len(rows) == len(judged.compare()["findings"])
    assert {one["metric"] for one in rows} >= {"tput_per_gpu", "median_tpot"}


@pytest.mark.usefixtures("judged_once")
def test_every_document_speaks_both_languages(judged: Tracker) -> None:
    for form in ("table", "markdown", "comment", "summary", "short", "title", "commit"):
        for lang in ("en", "zh", "both"):
            said = judged("compare", "--format", form, "--lang", lang)
            assert said.code == 0
            assert ("回归" in said.out) is (lang != "en"), (form, lang)
            assert "20.0" in said.out, (form, lang)


def test_out_writes_a_file_and_nothing_to_stdout(judged: Tracker) -> None:
    said = judged("compare", "--format", "markdown", "--out", judged.folder / "summary.md")
    assert said.out == ""
    assert "20.0" in (judged.folder / "summary.md").read_text(encoding="utf-8")


def test_out_that_cannot_be_written_says_so(judged: Tracker) -> None:
    said = judged("compare", "--format", "json", "--out", judged.folder / "no" / "where.json")
    assert (said.code, said.out) == (1, "")
    assert "--out" in said.err


@pytest.mark.parametrize(
    ("arguments", "code", "remedy"),
    [
        (("compare",), 1, "tracker ingest"),
        (("compare", "run:1"), 1, "tracker ingest"),
        (("store", "info"), 1, "tracker ingest"),
        (("store", "rebuild"), 1, "--archive"),
        (("compare", "--format", "yaml"), 2, "json"),
        (("frobnicate",), 2, "No such command"),
        (("ingest", "/no/such/file"), 2, "does not exist"),
    ],
)
def test_wrong_use_of_an_empty_store_names_the_remedy(
    tracker: Tracker, arguments: tuple[str, ...], code: int, remedy: str
) -> None:
    said = tracker(*arguments)
    assert (said.code, said.out) == (code, "")
    assert remedy in said.err


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (("run:999",), "not in the store"),
        (("run:200", "--against", "run:999"), "not in the store"),
        (("run:200", "--against", "yesterday"), "window:30d"),
        (("nothing-like-this",), "latest, run:ID"),
        (("image:a/b:v0.0.1",), "no run in the store measured"),
        (("--metric", "frobnication"), "frobnication"),
    ],
)
def test_a_question_that_cannot_be_answered_says_what_to_write(
    judged: Tracker, arguments: tuple[str, ...], remedy: str
) -> None:
    said = judged("compare", *arguments)
    assert (said.code, said.out) == (1, "")
    assert remedy in said.err
    assert "Traceback" not in said.err


def test_one_metric_alone_is_judged_when_asked(judged: Tracker) -> None:
    answer = judged.compare("--metric", "median_ttft")
    assert {one["metric"] for one in answer["findings"] if one["scope"] != "eval"} == {"median_ttft"}
    assert "only_metrics" in {caveat["code"] for caveat in answer["caveats"]}


def test_an_image_is_a_candidate(judged: Tracker) -> None:
    answer = judged.compare(f"image:{NEXT_IMAGE}")
    assert [one["key"] for one in answer["candidate"]] == ["200/1"]
    assert answer["headline"]["verdict"] == "regression"


@pytest.mark.parametrize("against", ["previous", "last-good", "run:102", "window:90d", "date:2026-05-03"])
def test_every_way_to_choose_a_baseline_finds_the_loss(judged: Tracker, against: str) -> None:
    answer = judged.compare("--against", against)
    assert answer["against"] == against
    assert answer["headline"]["verdict"] == "regression"


def test_landing_twice_adds_nothing_and_a_dry_run_lands_nothing(tracker: Tracker) -> None:
    path = write(tracker.folder / "one.json", SLOWER)
    assert "would land: 2 points and 1 scores" in tracker("ingest", path, "--dry-run").out
    assert not (tracker.folder / "tracker.duckdb").exists()
    assert "landed: 2 points and 1 scores" in tracker.ingest(path).out
    assert "landed: 0 points and 0 scores" in tracker.ingest(path).out


def test_the_good_rows_beside_a_bad_one_land_and_strict_tells(tracker: Tracker) -> None:
    rows = [row(4, 1000.0), {**row(4, 1000.0), "conc": 0}, "not a row", row(64, 3000.0, hw="b200-zeta9")]
    path = write(tracker.folder / "one.json", {"run": run(1), "rows": rows})
    said = tracker.ingest(path, "--strict")
    assert said.code == 1
    assert "landed: 2 points" in said.out
    for word in ("rejected", "not_an_object", "conc", "b200-zeta9"):
        assert word in said.out
    assert len(tracker.compare()["rejected"]) == 2


def test_a_run_that_is_declared_official_may_be_a_baseline(tracker: Tracker) -> None:
    own = run(1, event="workflow_dispatch", path=".github/workflows/mine.yml", head_branch="trunk")
    tracker.ingest(write(tracker.folder / "one.json", bundle(own, [row(64, 1000.0)])), "--official")
    candidate = write(tracker.folder / "two.json", bundle(run(2, "2026-06-12T00:00:00Z"), [row(64, 1001.0)]))
    points = [one for one in tracker.compare(candidate)["findings"] if one["scope"] == "point"]
    assert points
    assert all(one["runs"]["baseline"] == ["1/1"] for one in points)


def test_the_store_can_be_looked_at_rebuilt_and_exported(judged: Tracker) -> None:
    before = judged.compare()
    assert "newest run 200/1" in judged("store", "info").out
    said = judged("store", "rebuild")
    assert (said.code, "rebuilt from 4 files: 8 points, 1 scores" in said.out) == (0, True)
    assert judged.compare() == before
    paths = judged("store", "export", "--into", judged.folder / "tidy", "--format", "csv").out.split()
    assert [Path(path).name for path in paths] == ["points.csv", "scores.csv"]
    with Path(paths[0]).open(encoding="utf-8") as file:
        assert len({(one["run"], one["series"]) for one in csv.DictReader(file)}) == 8


def test_a_changelog_entry_is_drafted_appended_once_and_checked(judged: Tracker) -> None:
    old = (
        '- config-keys:\n    - dsr1-fp8-h200-sglang\n  description:\n    - "First"\n'
        "  pr-link: https://github.com/SemiAnalysisAI/InferenceX/pull/1\n"
    )
    base, head = judged.folder / "base.yaml", judged.folder / "head.yaml"
    base.write_text(old, encoding="utf-8")
    head.write_text(old, encoding="utf-8")
    drafted = judged("changelog", "draft", "--pull-request", 7).out
    assert "from lmsysorg/sglang:v0.5.9-cu130 to lmsysorg/sglang:v0.5.12-cu130" in drafted
    assert "下降 20.0%" in drafted
    assert judged("changelog", "append", head, "--pull-request", 7).code == 0
    assert head.read_text(encoding="utf-8").startswith(old)
    assert judged("changelog", "check", base, head, "--pull-request", 7).code == 0
    again = judged("changelog", "append", head, "--pull-request", 7)
    assert again.code == 1
    assert "the same entry stands at line 7" in again.err
    assert judged("changelog", "check", head, base).code == 1


def test_the_name_of_a_file_is_not_taken_for_its_text(judged: Tracker) -> None:
    body = judged.folder / "body.md"
    body.write_text("8k1k conc 64 throughput per GPU +35%", encoding="utf-8")
    said = judged("claims", str(body))
    assert (said.code, f"--pull-request-body {body}" in said.err.replace("\n", "")) == (2, True)


def test_claims_are_answered_with_what_was_measured(judged: Tracker) -> None:
    said = judged("claims", "8k1k conc 64 throughput per GPU -20%, was +35 % better before", "--format", "json")
    answers = {one["text"]: one["answer"] for one in said.json}
    assert "verified" in answers.values()
    assert judged("claims", "8k1k conc 64 throughput per GPU +35%").code == 3
    assert judged("claims", "Bump v0.5.9 to v0.5.12 at tp 8").out.startswith("no numbers")


def test_a_comment_is_printed_or_kept_and_only_sent_on_request(judged: Tracker) -> None:
    kept = judged.folder / "errands.json"
    said = judged("comment", "--pull-request", 12, "--lang", "both", "--keep", kept)
    assert said.code == 0
    assert "comment on pull request 12" in said.out
    assert json.loads(kept.read_text(encoding="utf-8"))
    again = judged("deliver", kept, "--head", "0" * 40)
    assert (again.code, "comment on pull request 12" in again.out) == (0, True)
    refused = judged("deliver", kept, "--head", "0" * 40, "--repo", "example-org/bench", "--send")
    assert refused.code == 1
    assert "GITHUB_TOKEN" in refused.err


def test_a_bilingual_text_is_checked(tracker: Tracker) -> None:
    good, bad = tracker.folder / "good.md", tracker.folder / "bad.md"
    good.write_text("Throughput fell by 7.0% / 吞吐量下降 7.0%\n", encoding="utf-8")
    bad.write_text("Throughput fell by 7.0% / 吞吐量下降7.5%\n", encoding="utf-8")
    assert tracker("lint-text", good).code == 0
    said = tracker("lint-text", bad)
    assert said.code == 1
    assert "bad.md:1:" in said.out


def test_the_console_script_answers_and_a_closed_pipe_is_no_error() -> None:
    words = [sys.executable, "-m", "tracker"]
    version = subprocess.run([*words, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith("tracker, version")
    head = subprocess.run(
        f"{sys.executable} -m tracker schema | head -1", shell=True, capture_output=True, text=True, check=True
    )
    assert (head.stdout, head.stderr) == ("{\n", "")


def test_an_eval_has_the_image_that_its_run_measured_the_deployment_with(tracker: Tracker) -> None:
    """Eval artifacts name no image; they may land before or after the throughput rows of their run."""
    sides = ((1, "2026-06-01T00:00:00Z", "a/b:v1.0.0"), (2, "2026-06-02T00:00:00Z", "a/b:v1.0.0"))
    for number, started, image in (*sides, (3, "2026-06-03T00:00:00Z", "a/b:v1.1.0")):
        evals = write(tracker.folder / f"{number}-evals.json", bundle(run(number, started), [], [evaluation(0.955)]))
        rows = write(
            tracker.folder / f"{number}-rows.json", bundle(run(number, started), [row(64, 1000.0, image=image)])
        )
        tracker.ingest(evals)
        tracker.ingest(rows)
    (flexible,) = [one for one in tracker.compare()["findings"] if one["metric"] == "em_flexible"]
    assert flexible["images"] == {"baseline": "a/b:v1.0.0", "candidate": "a/b:v1.1.0", "software": "changed"}
    assert flexible["n"]["baseline"] == 2
