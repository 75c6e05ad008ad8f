"""Two pull requests as they went: what their people had to find by hand stands in the report.

Ids, images, topologies, job counts and figures are those of the threads; the rows between them are ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import factory
from tests.cli import Tracker
from tests.deployments import Pool, rows
from tests.github.actions import Actions
from tests.github.server import marks
from tests.github.story import REPOSITORY, sha
from tests.test_after_merge import environment
from tests.test_frontiers import (
    COLLAPSED,
    GB300,
    MI355X,
    NEW_IMAGE,
    OLD_IMAGE,
    RETUNED,
    Arm,
    after_retune,
    before_retune,
    config,
    nine_arms,
)

Arms = Mapping[int, Sequence[Arm]]
LENGTHS = {8192: "8k1k", 1024: "1k1k"}
NIGHTLY = "vllm/vllm-openai:nightly-4080263bb2c5d10deac17aaeb88e0823bc35bca9"
BEFORE = "vllm/vllm-openai:v0.20.0"


@pytest.fixture
def judge(tracker: Tracker, hub: Actions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, value in environment(hub.address, tmp_path).items():
        monkeypatch.setenv(name, value)
    for name in ("GITHUB_EVENT_PATH", "GITHUB_STEP_SUMMARY", "TRACKER_WITHDRAWALS"):
        monkeypatch.delenv(name, raising=False)

    def judged(run: int, attempt: int = 1) -> dict[str, Any]:
        said = tracker("after-merge", "--run", run, "--work", tmp_path / "work", "--lang", "both", "--send")
        assert said.code == 0, said.err
        folder = tmp_path / "work" / "reports" / f"{run}-{attempt}-previous"
        texts = {path.name: path.read_text() for path in folder.iterdir()}
        return {**texts, "json": json.loads(texts["comparison.json"])}

    return judged


def title(pools: tuple[Pool, Pool], concs: Sequence[int], runner: str, engine: str) -> str:
    """The matrix title of a job over several nodes."""
    sides = [f"{one.workers}{word} (TP{one.tp}{f'/EP{one.ep}' * (one.ep > 1)}{'/DPA' * one.dpa})"
             for word, one in zip("PD", pools, strict=True)]  # fmt: skip
    return f"p50 | minimaxm3 fp8 {runner} {engine} {' x '.join(sides)} c{'x'.join(map(str, concs))}"


def measured(
    hub: Actions, run: int, key: str, told: Mapping[str, str], image: str, arms: Arms, at: str,
    failed: Mapping[tuple[int, int], int] | None = None, **more: Any,
) -> None:  # fmt: skip
    """Artifacts, jobs and config of a sweep; of a failed arm only the concurrencies below the mark came."""
    rng = np.random.default_rng(run)
    hub.committed(sha(run), {"configs/nvidia-master.yaml": config(key, told, image, arms)})
    for isl, some in arms.items():
        for place, (prefill, decode, points) in enumerate(some):
            mark = (failed or {}).get((isl, place))
            came = {conc: value for conc, value in points.items() if mark is None or conc < mark}
            lane = (
                f"multi-node {LENGTHS[isl]} / {title((prefill, decode), list(points), told['hw'], told['framework'])}"
            )
            hub.ran_job(run, lane, "failure" if mark else "success")
            made = rows(prefill, decode, came, rng, isl=isl, image=image, **told, **more)
            hub.uploaded(run, f"bmk_{LENGTHS[isl]}_{place}", {"agg.json": made}, created_at=at)


def evaluated(
    hub: Actions, run: int, told: Mapping[str, str], arms: Sequence[Arm], scores: Sequence[float], at: str
) -> None:
    """One eval a deployment, at its highest concurrency."""
    found = []
    for (prefill, decode, points), score in zip(arms, scores, strict=True):
        conc = max(points)
        sides = {
            f"{name}_{field}": value
            for name, pool in (("prefill", prefill), ("decode", decode))
            for field, value in (("tp", pool.tp), ("ep", pool.ep), ("num_workers", pool.workers),
                                 ("dp_attention", str(pool.dpa).lower()))
        }  # fmt: skip
        shape = {"model": told["model"], "model_prefix": "minimaxm3", "hw": told["hw"].upper(), "is_multinode": True}
        found.append(factory.evaluation(score, conc, framework=told["framework"], **shape, **sides))
        hub.ran_job(
            run, f"multi-node eval / {title((prefill, decode), [conc], told['hw'], told['framework'])} | eval-only"
        )
    hub.uploaded(run, "eval_results_all", {"agg_eval_all.json": found}, created_at=at)


def asked(hub: Actions, run: int, key: str, text: Sequence[str], at: str) -> None:
    entry = {"config-keys": [key], "description": list(text), "pr-link": f"https://github.com/{REPOSITORY}/pull/2340"}
    told = {"base_ref": "origin/main", "head_ref": sha(run), "entries": [entry]}
    hub.uploaded(run, "changelog-metadata", {"changelog_metadata.json": told}, created_at=at)


def comment(hub: Actions, pull: int) -> str:
    (one,) = marks(hub.of(pull), "sweep-tracker")
    return one.body


# --- the image bump with 2xDEP8 to 1xDEP16, 9 + 8 jobs --------------------------------------------------------------

BUMP, BASE, PULL = 30208366514, 30100000001, 2340
SCORES = (0.9538, 0.9545, 0.9553, 0.9560, 0.9568, 0.9575, 0.9583, 0.9598)


def test_the_bump_with_a_collapsed_arm(hub: Actions, judge: Any) -> None:
    hub.ran(BASE, "2026-07-10T04:00:00Z", event="push", head_sha=sha(BASE))
    old, new = nine_arms(collapsed=False), nine_arms(collapsed=True, gain=1.12)
    router = {"router": {"name": "dynamo", "version": "1.3.0.dev20260614"}}
    measured(hub, BASE, COLLAPSED, GB300, BEFORE, old, "2026-07-10T06:00:00Z", **router)
    head = "77fa834" + "0" * 33
    hub.proposed(PULL, head, labels=["full-sweep-fail-fast"], branch="gb300", commits=[sha(BUMP), "e" * 40, head])
    hub.ran(BUMP, "2026-07-26T10:00:00Z", event="pull_request", head_branch="gb300", head_sha=sha(BUMP))
    asked(
        hub, BUMP, COLLAPSED, ["Bump image to the nightly", "Bump dynamo to 1.3.0.dev20260710"], "2026-07-26T10:10:00Z"
    )
    measured(hub, BUMP, COLLAPSED, GB300, NIGHTLY, new, "2026-07-26T12:00:00Z", **router)
    evaluated(hub, BUMP, GB300, new[8192][1:], SCORES, "2026-07-26T13:00:00Z")
    hub.ran_job(BUMP, "single-node 8k1k", "skipped")
    hub.said(PULL, "author-1", "/reuse-sweep-run", association="COLLABORATOR")
    judge(BASE)
    told = judge(BUMP)

    evidence = told["evidence.txt"]
    assert f"Run Sweep {BUMP}" in evidence
    assert "It passed all 9 applicable throughput jobs and all 8 applicable eval jobs." in evidence
    assert "0.9538 to 0.9598" in evidence
    assert "0.90" in evidence
    assert NIGHTLY in evidence
    body = comment(hub, PULL)
    for said in (
        # "exact-head": it was two commits behind.
        f"The run measured commit {sha(BUMP)[:12]}; the head of the pull request is 77fa83400000 (commits since: 2).",
        # The caveat that the code owner found in the metadata.
        "1.3.0.dev20260614",
        "1.3.0.dev20260710",
        # The arm that has no twin.
        "| reshaped | Each role has as many GPUs, split otherwise. |",
        "9 of 9 expected points arrived",
        NIGHTLY,
    ):
        assert said in body, said
    assert "重组" in body
    assert "拆分方式不同" in body


# --- the retune with a flaky fourth job ------------------------------------------------------------------------------

RETUNE, EARLIER, ORIGINAL, RETUNE_PULL = 29063432435, 29039061173, 28100000001, 2222


def test_the_retune_with_a_flaky_job(hub: Actions, judge: Any) -> None:
    hub.ran(ORIGINAL, "2026-06-24T04:00:00Z", event="push", head_sha=sha(ORIGINAL))
    measured(hub, ORIGINAL, RETUNED, MI355X, OLD_IMAGE, before_retune(), "2026-06-24T06:00:00Z")
    arms = after_retune()
    flaky = {(1024, 0): 32}
    for run, at, failed in ((EARLIER, "2026-07-09T10", None), (RETUNE, "2026-07-09T20", flaky)):
        hub.ran(run, f"{at}:00:00Z", event="pull_request", head_branch="retune", head_sha=sha(run),
                conclusion="failure" if failed else "success")  # fmt: skip
        asked(hub, run, RETUNED, [f"Bump image to {NEW_IMAGE}"], f"{at}:10:00Z")
        measured(hub, run, RETUNED, MI355X, NEW_IMAGE, arms, f"{at}:40:00Z", failed)
        evaluated(hub, run, MI355X, arms[8192], (0.9580, 0.9583), f"{at}:50:00Z")
    hub.proposed(
        RETUNE_PULL, sha(RETUNE), labels=["full-sweep-enabled"], branch="retune", commits=[sha(EARLIER), sha(RETUNE)]
    )
    judge(ORIGINAL)
    judge(EARLIER)
    told = judge(RETUNE)

    evidence = told["evidence.txt"]
    assert "It passed 3 of 4 applicable throughput jobs and all 2 applicable eval jobs." in evidence
    body = comment(hub, RETUNE_PULL)
    lost = [conc for conc in arms[1024][0][2] if conc >= 32]
    for said in (
        # Three jobs green and one cut in the middle: which points, which job, and that the same passed elsewhere.
        f"points failed: {len(lost)}",
        f"The same config and image passed in run {EARLIER}/1",
        f"actions/runs/{EARLIER}",
        # Layouts that the retune dropped are no loss.
        "points removed on purpose",
        "| retired | The run's config does not ask for it any more. |",
        # "8k1k peak ~2085 to ~6003".
        f"{RETUNED} 8192/1024: peak throughput per GPU rose to 2.8",
    ):
        assert said in body, said
    peaks = {
        one["key"].split()[5]: one
        for one in told["json"]["findings"]
        if one["scope"] == "frontier" and one["metric"] == "peak_tput_per_gpu"
    }
    assert peaks["8192/1024"]["baseline"] == pytest.approx(2085, rel=0.03)
    assert peaks["8192/1024"]["candidate"] == pytest.approx(6003, rel=0.03)
    assert peaks["1024/1024"]["candidate"] == pytest.approx(2586, rel=0.03)
    verdicts = {one["verdict"] for one in told["json"]["unmatched"]}
    assert {"failed", "dropped"} <= verdicts
    assert "regression" not in body.splitlines()[0].lower()
