"""The action and the workflows that adopters call: linted, pinned, their steps run with a stand-in for the tracker."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SOURCES = [ROOT / "action.yml", *WORKFLOWS]
PAGES = ("adopting.md", "adopting_zh.md")
FENCED = re.compile(r"^```yaml\n(.*?)^```", re.DOTALL | re.MULTILINE)
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
BINARIES = Path(sys.executable).parent

needs_linters = pytest.mark.skipif(
    not all((BINARIES / tool).exists() for tool in ("actionlint", "zizmor")),
    reason="actionlint and zizmor are not beside this Python: install requirements.txt",
)


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    environ = os.environ | {"PATH": f"{BINARIES}{os.pathsep}{os.environ['PATH']}"}
    command = [ROOT / ".ci" / "lint-workflows", folder]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def copied(tmp_path: Path) -> Path:
    """The files that are linted, and nothing else."""
    shutil.copytree(ROOT / ".github", tmp_path / ".github")
    shutil.copy(ROOT / "action.yml", tmp_path)
    return tmp_path


# --- linters ------------------------------------------------------------------------------------------------------


@needs_linters
def test_the_workflows_pass_the_linters(tmp_path: Path) -> None:
    done = lint(copied(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr


FAULTS: Mapping[str, tuple[str, str, str, str]] = {
    "unpinned": ("post-merge.yml", "@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1", "@v7", "unpinned-uses"),
    "injection": (
        "pull-request-deliver.yml",
        "run: bash .sweep-tracker/.ci/action deliver",
        "run: echo ${{ github.event.workflow_run.head_branch }}",
        "template-injection",
    ),
    "credentials": ("post-merge.yml", "persist-credentials: false", "fetch-depth: 1", "artipacked"),
    "trigger": (
        "pull-request.yml",
        "  workflow_call:",
        "  pull_request_target:\n  workflow_call:",
        "dangerous-triggers",
    ),
    "expression": ("pull-request.yml", "github.run_attempt", "github.run_atempt", "run_atempt"),
    "injection into the action": (
        "../../action.yml",
        'run: bash "$HERE/.ci/action" judge',
        "run: bash judge ${{ inputs.run }}",
        "template-injection",
    ),
}


@needs_linters
@pytest.mark.parametrize("fault", FAULTS)
def test_a_seeded_fault_fails_the_check(tmp_path: Path, fault: str) -> None:
    name, right, wrong, said = FAULTS[fault]
    path = copied(tmp_path) / ".github" / "workflows" / name
    text = path.read_text(encoding="utf-8")
    assert right in text
    path.write_text(text.replace(right, wrong), encoding="utf-8")
    done = lint(tmp_path)
    assert done.returncode != 0
    assert said in done.stdout + done.stderr


@needs_linters
@pytest.mark.parametrize("page", PAGES)
def test_the_workflows_that_the_page_shows_pass_the_linters(tmp_path: Path, page: str) -> None:
    shown = [block if block.startswith("name:") else AS_A_JOB + indented(block) for block in blocks(page)]
    assert len(shown) == 5
    target = copied(tmp_path) / ".github" / "workflows"
    for number, block in enumerate(shown):
        whole = block.replace("TRACKER_COMMIT", "0" * 40)
        (target / f"shown{number}.yml").write_text(whole, encoding="utf-8")
    done = lint(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


AS_A_JOB = """name: Run Sweep
on: pull_request
permissions: {}
jobs:
  setup:
    runs-on: ubuntu-latest
    steps: [{run: echo ready}]
  collect-results:
    runs-on: ubuntu-latest
    steps: [{run: echo ready}]
"""
"""The workflow that a job on the page is put into."""


def indented(block: str) -> str:
    return "".join(f"  {line}\n" for line in block.splitlines())


def blocks(page: str) -> list[str]:
    return FENCED.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))


# --- what no linter knows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_every_foreign_action_is_pinned_with_its_version(path: Path) -> None:
    used = re.findall(r"uses: (.+)", path.read_text(encoding="utf-8"))
    assert used
    assert [one for one in used if not one.startswith("./") and not PINNED.fullmatch(one)] == []


def steps(path: Path) -> Iterator[dict[str, Any]]:
    told = yaml.safe_load(path.read_text(encoding="utf-8"))
    jobs = told.get("jobs", {"": told.get("runs")})
    yield from (step for job in jobs.values() for step in job["steps"])


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_script_holds_an_expression(path: Path) -> None:
    assert [step for step in steps(path) if "${{" in step.get("run", "")] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_only_the_tracker_is_checked_out_and_jobs_are_bounded(path: Path) -> None:
    told = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert told["permissions"] == {}
    assert "concurrency" in told
    assert set(told[True]) == {"workflow_call"}
    for job in told["jobs"].values():
        assert job["timeout-minutes"] <= 30
        assert "permissions" in job
    checkouts = [step["with"] for step in steps(path) if "checkout" in step.get("uses", "")]
    assert [(one["repository"], one["ref"]) for one in checkouts] == [
        ("${{ job.workflow_repository }}", "${{ job.workflow_sha }}")
    ]


def test_the_job_that_reads_a_stranger_may_not_write() -> None:
    (job,) = yaml.safe_load((ROOT / ".github/workflows/pull-request.yml").read_text(encoding="utf-8"))["jobs"].values()
    assert set(job["permissions"].values()) == {"read"}


def test_the_runtime_packages_are_those_of_the_developers() -> None:
    """Same versions, same hashes: what the action installs is what the tests ran with. Only markers may differ: more
    packages ask for a package of the developers.
    """

    def entries(name: str) -> set[str]:
        found = re.split(r"\n(?=\S)", (ROOT / name).read_text(encoding="utf-8").strip())
        return {re.sub(r" ; [^\\\n]*", " ", entry, count=1) for entry in found}

    assert entries("requirements-runtime.txt") < entries("requirements.txt")


# --- the steps, run -----------------------------------------------------------------------------------------------


STAND_IN = """#!/usr/bin/env bash
printf '%s\\n' "$*" >>"$WORK/calls"
if [ "$1" = after-merge ] && [ -n "${KEPT:-}" ]; then echo '[]' >"$WORK/errands.json"; fi
if [ "$1" = after-merge ]; then echo "said by the tracker" >"$WORK/report.md"; fi
exit "${CODE:-0}"
"""


class Steps:
    """Runs .ci/action with a tracker that writes down how it was called."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        binary = self.work / "venv" / "bin" / "tracker"
        binary.parent.mkdir(parents=True)
        binary.write_text(STAND_IN)
        binary.chmod(0o755)
        self.environ = {"WORK": str(self.work), "PATH": os.environ["PATH"], "GITHUB_OUTPUT": str(folder / "output")}

    def __call__(self, step: str, **environ: str) -> int:
        command = ["bash", str(ROOT / ".ci" / "action"), step]
        return subprocess.run(command, env=self.environ | environ, capture_output=True, check=False).returncode

    @property
    def calls(self) -> list[str]:
        path = self.work / "calls"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def outputs(self) -> dict[str, str]:
        path = Path(self.environ["GITHUB_OUTPUT"])
        return dict(line.split("=", 1) for line in path.read_text().splitlines()) if path.exists() else {}


@pytest.fixture
def step(tmp_path: Path) -> Steps:
    return Steps(tmp_path)


INPUTS = {"RUN": "", "SEND": "false", "FAIL_ON": "regression", "LANGUAGE": "both", "CHANGELOG": ""}


@pytest.mark.parametrize(
    ("code", "verdict", "ends"), [(0, "passed", 0), (3, "failed", 0), (4, "not-judged", 0), (1, "error", 1)]
)
def test_the_exit_code_of_the_tracker_becomes_a_verdict(step: Steps, code: int, verdict: str, ends: int) -> None:
    """The store is pushed after a failed verdict too: the last step of the action fails then."""
    assert step("judge", **INPUTS, CODE=str(code), KEPT="yes") == ends
    assert step.outputs["verdict"] == verdict
    assert step.outputs["exit-code"] == str(code)
    assert Path(step.outputs["report"]).read_text() == "said by the tracker\n"
    assert step.outputs["errands"].endswith("errands.json")


def test_nothing_is_sent_unless_it_is_said(step: Steps) -> None:
    step("judge", **INPUTS)
    step("judge", **(INPUTS | {"SEND": "true", "RUN": "7/2"}))
    quiet, sent = step.calls
    assert "--send" not in quiet.split()
    assert "--run" not in quiet.split()
    assert sent.endswith("--run 7/2 --send")
    assert f"--report {step.work}/report.md" in sent
    assert "--write" not in sent


def test_the_changelog_is_written_where_a_path_is_named(step: Steps) -> None:
    step("judge", **(INPUTS | {"CHANGELOG": "perf-changelog.yaml"}))
    assert "--changelog perf-changelog.yaml --write" in step.calls[0]


def test_what_was_sent_leaves_nothing_to_upload(step: Steps) -> None:
    step("judge", **(INPUTS | {"SEND": "true"}))
    assert "errands" not in step.outputs


def test_an_artifact_is_pushed_to_a_folder_for_the_upload(step: Steps) -> None:
    step("push", PLACE="artifact:history")
    step("push", PLACE="release:history")
    assert step.calls == [f"store push {step.work}/upload", "store push release:history --send"]
    assert step.outputs == {"artifact": "history"}


def test_a_folder_is_made_at_the_first_time(step: Steps, tmp_path: Path) -> None:
    for place in (f"{tmp_path}/history", "s3://bucket/history"):
        assert step("pull", PLACE=place) == 0
    assert (tmp_path / "history").is_dir()
    assert step.calls == [f"store pull {tmp_path}/history", "store pull s3://bucket/history"]


def test_only_the_head_of_the_event_is_delivered_to(step: Steps, tmp_path: Path) -> None:
    environ = {"ERRANDS": str(tmp_path), "HEAD_SHA": "a" * 40}
    assert step("deliver", **environ) == 0
    assert step.calls == []
    (tmp_path / "errands.json").write_text("[]")
    assert step("deliver", **environ) == 0
    assert step.calls == [f"deliver {tmp_path}/errands.json --head {'a' * 40} --send"]


def test_a_word_that_is_no_step_is_wrong_use(step: Steps) -> None:
    assert step("rm") == 2
