"""Two pull requests as they went: what a code owner had written by hand, and a bot had checked, is told with its proof.

Ids, images, topologies, job counts and figures are those of the threads; the files and rows between them are ours.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli import Said, Tracker
from tests.github.actions import Actions
from tests.github.server import TOKEN
from tests.github.story import REPOSITORY, sha
from tests.proposals import REMINDER, changelog, diff, entry, policies, proposed, signed
from tests.test_after_merge import environment
from tests.test_frontiers import (
    COLLAPSED,
    GB300,
    MI355X,
    NEW_IMAGE,
    OLD_IMAGE,
    RETUNED,
    after_retune,
    before_retune,
    config,
    nine_arms,
)
from tests.test_threads import BEFORE, BUMP, NIGHTLY, PULL, RETUNE, RETUNE_PULL, SCORES, asked, evaluated, measured

MASTER = "configs/nvidia-master.yaml"
RECIPES = "benchmarks/multi_node/srt-slurm-recipes/vllm/m3-gb300"
OLD_RECIPE, NEW_RECIPE = "8k1k/3p2d-dep2-dep8.yaml", "8k1k/3p1d-dep2-dep16.yaml"
INSTALLED, NAMED = "1.3.0.dev20260710", "1.3.0.dev20260614"


@pytest.fixture
def told(tracker: Tracker, hub: Actions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, value in environment(hub.address, tmp_path).items():
        monkeypatch.setenv(name, value)

    def tell(pull: int, *more: object) -> Said:
        said = tracker("evidence", "--pull-request", pull, "--work", tmp_path / "work", *more)
        assert TOKEN not in said.out + said.err
        return said

    return tell


def states(said: Said) -> dict[str, str]:
    return {one["name"]: one["state"] for one in said.json["checks"]}


def proof(said: Said, name: str) -> dict[str, Any]:
    """The facts of a row by their codes, the last of each."""
    (row,) = [one for one in said.json["checks"] if one["name"] == name]
    return {one["code"]: one for one in row["proof"]}


# --- the image bump with 2xDEP8 to 1xDEP16: 9 throughput jobs, 8 evals ------------------------------------------------


def recipe(image: str, version: str) -> str:
    return f"model:\n  container: {image}\ndynamo:\n  install: true\n  version: {version}\n"


def bump(image: str, name: str, *, collapsed: bool) -> str:
    """The master config with its router and the recipe of its last arm."""
    text = config(COLLAPSED, GB300, image, nine_arms(collapsed=collapsed))
    text = text.replace(
        "  kv-p2p-transfer", f"  router: {{ name: dynamo-router, version: {NAMED} }}\n  kv-p2p-transfer"
    )
    setting = f'additional-settings: ["CONFIG_FILE=recipes/vllm/m3-gb300/{name}"], '
    head, _, last = text.rpartition("prefill: { ")
    return f"{head}prefill: {{ {setting}{last}"


@pytest.fixture
def bumped(hub: Actions) -> Actions:
    head = "77fa834" + "0" * 33
    policies(hub)
    text = entry(COLLAPSED, f"Bump image from {BEFORE} to {NIGHTLY}", f"Bump dynamo to {INSTALLED}", pull=PULL)
    path = f"{RECIPES}/{NEW_RECIPE}"
    proposed(
        hub, PULL,
        {MASTER: bump(BEFORE, OLD_RECIPE, collapsed=False), "perf-changelog.yaml": changelog()},
        {MASTER: bump(NIGHTLY, NEW_RECIPE, collapsed=True), "perf-changelog.yaml": changelog(text),
         path: recipe(NIGHTLY, INSTALLED)},
        [diff(MASTER, f"  image: {NIGHTLY}"), diff("perf-changelog.yaml", "- config-keys:"),
         diff(path, "  decode_workers: 1", status="renamed", previous_filename=f"{RECIPES}/{OLD_RECIPE}"),
         {"filename": "runners/fixes.sh", "status": "removed", "patch": "@@ -1,1 +0,0 @@\n-git apply fix.patch"}],
        head=head, labels=["full-sweep-fail-fast"], branch="gb300", commits=[sha(BUMP), "e" * 40, head],
    )  # fmt: skip
    hub.ran(BUMP, "2026-07-26T10:00:00Z", event="pull_request", head_branch="gb300", head_sha=sha(BUMP))
    asked(hub, BUMP, COLLAPSED, ["Bump image to the nightly"], "2026-07-26T10:10:00Z")
    arms = nine_arms(collapsed=True, gain=1.12)
    measured(hub, BUMP, COLLAPSED, GB300, NIGHTLY, arms, "2026-07-26T12:00:00Z")
    evaluated(hub, BUMP, GB300, arms[8192][1:], SCORES, "2026-07-26T13:00:00Z")
    hub.ran_job(BUMP, "single-node 8k1k", "skipped")
    hub.ran_job(BUMP, "collect-evals / collect-evals")
    hub.said(PULL, "github-actions[bot]", REMINDER, created_at="2026-07-25T00:00:00Z")
    hub.said(PULL, "author-1", "/reuse-sweep-run", association="COLLABORATOR")
    body = signed(BUMP, unchecked=(1, 4), details=["Exact-head run.", "Quality: accepted caveats."])
    hub.said(PULL, "codeowner-1", body, association="COLLABORATOR", created_at="2026-07-27T00:00:00Z")
    return hub


def test_the_bump_is_told_as_its_owner_and_the_bot_told_it(bumped: Actions, told: Any) -> None:
    said = told(PULL)
    assert said.code == 0, said.err
    assert states(said) == {
        **dict.fromkeys(("owner", "sweep", "evals", "command", "image", "lineup", "from_to"), "holds"),
        **dict.fromkeys(("changelog_keys", "container", "points", "attempt", "changelog"), "holds"),
        **dict.fromkeys(("recipe", "order", "templates", "acceptance", "append_only"), "not_applicable"),
        "checklist": "flagged",
        "overrides": "not_known",
        "patches": "not_known",
        "router": "does_not_hold",
        "topology": "flagged",
    }
    sweep = proof(said, "sweep")
    assert (sweep["jobs_passed"]["values"], sweep["evals_passed"]["values"]) == (
        {"passed": 9, "total": 9},
        {"passed": 8, "total": 8},
    )
    assert sweep["commit_in_pull"]["values"]["count"] == 2
    assert "called_exact" in sweep
    assert sweep["commit_in_pull"]["link"] == f"https://github.com/{REPOSITORY}/actions/runs/{BUMP}/attempts/1"
    scores = proof(said, "evals")["scores"]["values"]
    assert (scores["count"], scores["low"], scores["high"], scores["mark"]) == (8, 0.9538, 0.9598, 0.90)
    assert proof(said, "evals")["image_same"]["values"] == {"image": NIGHTLY}
    owner = proof(said, "owner")
    assert owner["owned"]["values"]["path"] == MASTER
    assert owner["catch_all"]["values"]["count"] == 4
    assert proof(said, "command")["command"]["values"] == {"login": "author-1", "association": "COLLABORATOR"}
    assert proof(said, "checklist")["items_unchecked"]["values"]["count"] == 2
    # What the owner had found by reading: the metadata names another router than the recipe installs.
    router = proof(said, "router")["router_differs"]["values"]
    assert (router["named"], router["installed"]) == (NAMED, INSTALLED)
    # 2xDEP8 to 1xDEP16 has no baseline under its key.
    reshaped = proof(said, "topology")["layout_reshaped"]["values"]
    assert ("2xtp8" in reshaped["before"], "tp16" in reshaped["after"]) == (True, True)


def test_the_sentence_of_the_bump_can_be_pasted(bumped: Actions, told: Any) -> None:
    said = told(PULL).json
    assert said["evidence"] == (
        f"Run Sweep {BUMP} (attempt 1, commit {sha(BUMP)[:12]}, not the head) passed. It passed all 9 applicable"
        " throughput jobs and all 8 applicable eval jobs. GSM8K scores ranged from 0.9538 to 0.9598 against the 0.9000"
        f" threshold. Using {NIGHTLY}."
    )
    assert [one["code"] for one in said["caveats"]] == ["run_behind"]


def test_nothing_is_written_and_a_second_call_fetches_nothing(bumped: Actions, told: Any) -> None:
    first = told(PULL)
    loads = bumped.downloads
    assert told(PULL).out == first.out
    assert bumped.downloads == loads
    assert {verb for verb, _ in bumped.requests} == {"GET"}


@pytest.mark.parametrize("lang", ["en", "zh", "both"])
@pytest.mark.parametrize("form", ["table", "markdown"])
def test_no_text_starts_a_bot(bumped: Actions, told: Any, lang: str, form: str) -> None:
    said = told(PULL, "--format", form, "--lang", lang)
    assert said.code == 0
    for phrase in ("As a PR reviewer", "/reuse-sweep-run", "/stage-results", "@codeowner", "@bench", "@claude"):
        assert phrase not in said.out
    for figure in (str(BUMP), "0.9538", "0.9598", NIGHTLY, NAMED, INSTALLED):
        assert figure in said.out, figure


# --- the retune with a flaky fourth job ------------------------------------------------------------------------------


@pytest.fixture
def retuned(hub: Actions) -> Actions:
    policies(hub)
    path, text = "configs/amd-master.yaml", entry(RETUNED, f"Image bump to {NEW_IMAGE}", pull=RETUNE_PULL)
    proposed(
        hub, RETUNE_PULL,
        {path: config(RETUNED, MI355X, OLD_IMAGE, before_retune()), "perf-changelog.yaml": changelog()},
        {path: config(RETUNED, MI355X, NEW_IMAGE, after_retune()), "perf-changelog.yaml": changelog(text)},
        [diff(path, f"  image: {NEW_IMAGE}"), diff("perf-changelog.yaml", "- config-keys:")],
        head=sha(RETUNE), labels=["full-sweep-enabled"], branch="retune", commits=[sha(RETUNE)],
        body=f"Manual test-config sweep run https://github.com/{REPOSITORY}/actions/runs/{RETUNE}",
    )  # fmt: skip
    hub.ran(RETUNE, "2026-07-09T20:00:00Z", event="pull_request", head_branch="retune", head_sha=sha(RETUNE),
            conclusion="failure")  # fmt: skip
    asked(hub, RETUNE, RETUNED, [f"Bump image to {NEW_IMAGE}"], "2026-07-09T20:10:00Z")
    arms = after_retune()
    measured(hub, RETUNE, RETUNED, MI355X, NEW_IMAGE, arms, "2026-07-09T20:40:00Z", {(1024, 0): 32})
    evaluated(hub, RETUNE, MI355X, arms[8192], (0.9580, 0.9583), "2026-07-09T20:50:00Z")
    return hub


def test_a_retune_with_a_failed_job_gets_no_sentence(retuned: Actions, told: Any) -> None:
    said = told(RETUNE_PULL, "--fail-on", "does-not-hold")
    assert said.code == 3
    found = states(said)
    assert {name: found[name] for name in ("sweep", "points", "command", "lineup")} == dict.fromkeys(
        ("sweep", "points", "command", "lineup"), "does_not_hold"
    )
    # The evals passed; nobody has signed; 1k1k is deprecated on the base branch.
    assert (found["evals"], found["owner"], found["checklist"]) == ("holds", "not_known", "not_known")
    assert proof(said, "sweep")["jobs_passed"]["values"] == {"passed": 3, "total": 4}
    assert proof(said, "sweep")["job_not_passed"]["values"]["conclusion"] == "failure"
    assert proof(said, "owner")["may_sign"]["values"] == {"owners": "ann, bob"}
    assert proof(said, "lineup")["lineup_deprecated"]["values"]["scenario"] == "1k1k"
    arrived = proof(said, "points")["points_arrived"]["values"]
    lost = [conc for conc in after_retune()[1024][0][2] if conc >= 32]
    assert arrived["total"] - arrived["arrived"] == len(lost)
    assert said.json["evidence"] is None
    assert said.json["lacking"] == ["sweep"]
    json.dumps(said.json, allow_nan=False)
