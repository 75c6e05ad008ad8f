"""Twelve runs as they happen: nights, a sweep in two attempts, its reuse at the merge, a no-op, a fork, a flake...

One config on one machine, five points and two evals a sweep, each with 0.4 % of noise: what each run must be told as is
known. Values, names and ids are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests import factory
from tests.github.actions import Actions
from tests.github.server import NAME, OWNER

REPOSITORY = f"{OWNER}/{NAME}"
FORK = "stranger/sweeps"
LEVELS = {4: 120.0, 8: 210.0, 16: 380.0, 32: 640.0, 64: 980.0}
"""Throughput per GPU by concurrency under the first image."""
EVALUATED = (32, 64)
IMAGE = "lmsysorg/sglang:v0.5.12-cu130"
SLOWER = "lmsysorg/sglang:v0.5.13-cu130"
"""7 % slower than IMAGE."""
MENDED = "lmsysorg/sglang:v0.5.14-cu130"
"""As fast as IMAGE."""
KEY = "dsr1-fp8-h200-sglang"

NIGHTS = (9001, 9002, 9003, 9004)
EXPIRED, WITHDRAWN = 9000, 9005
SWEEP, NOTHING, MERGE = 9006, 9007, 9008
CANCELLED, STRANGE, FLAKY = 9009, 9010, 9011
RUNS = (EXPIRED, *NIGHTS, WITHDRAWN, SWEEP, NOTHING, MERGE, CANCELLED, STRANGE, FLAKY)
"""In the order of time."""
SLOW_PULL, MENDED_PULL, STRANGE_PULL, FLAKY_PULL = 101, 102, 103, 104

WITHDRAWALS = f"""\
- run: {WITHDRAWN}
  class: unfair-speed-up
  reason: prompts without the chat template
  since: 2026-07-06
  source: https://github.com/{REPOSITORY}/issues/90
"""


def sha(run: int) -> str:
    """The commit that a run measured."""
    return f"{run:040x}"


def master(image: str) -> str:
    """A master config with the one key."""
    return factory.master_config(KEY, image, "conc-start: 4, conc-end: 64")


def told(hub: Actions) -> None:
    """The whole story, on a server that was empty."""
    for day, run in enumerate((EXPIRED, *NIGHTS), 29):
        _night(hub, run, f"2026-06-{day}" if day < 31 else f"2026-07-{day - 30:02}", expired=run == EXPIRED)
    _night(hub, WITHDRAWN, "2026-07-05", factor=1.4)
    _slower(hub)
    _mended(hub)
    _strange(hub)
    _flaky(hub)


def _night(hub: Actions, run: int, day: str, factor: float = 1.0, *, expired: bool = False) -> None:
    hub.ran(run, f"{day}T03:00:00Z", head_sha=sha(run), event="schedule")
    hub.committed(sha(run), {"configs/nvidia-master.yaml": master(IMAGE)})
    measured(hub, run, f"{day}T04:00:00Z", IMAGE, factor, expired=expired)
    evaluated(hub, run, f"{day}T04:30:00Z", expired=expired)


def _slower(hub: Actions) -> None:
    """A sweep whose first attempt lost two jobs, a run with nothing to do, and the merge that reused the sweep."""
    hub.proposed(SLOW_PULL, sha(NOTHING), merged_as=sha(MERGE), labels=["full-sweep-fail-fast"], branch="bump-13",
                 commits=[sha(SWEEP), sha(NOTHING)])  # fmt: skip
    pull = {"event": "pull_request", "head_branch": "bump-13", "head_sha": sha(SWEEP)}
    hub.ran(SWEEP, "2026-07-06T08:00:00Z", **pull, conclusion="failure")
    hub.ran(SWEEP, "2026-07-06T12:00:00Z", **pull)
    hub.committed(sha(SWEEP), {"configs/nvidia-master.yaml": master(SLOWER)})
    changelog(hub, SWEEP, "2026-07-06T08:10:00Z", f"Update SGLang image from {IMAGE} to {SLOWER}", SLOW_PULL)
    measured(hub, SWEEP, "2026-07-06T09:00:00Z", SLOWER, 0.93, concs=(4, 8, 16))
    jobs(hub, SWEEP, failed=(32, 64))
    measured(hub, SWEEP, "2026-07-06T13:00:00Z", SLOWER, 0.93, concs=(32, 64), attempt=2)
    jobs(hub, SWEEP, attempt=2, concs=(32, 64))
    evaluated(hub, SWEEP, "2026-07-06T13:30:00Z")
    hub.said(SLOW_PULL, "maintainer", "/reuse-sweep-run", association="MEMBER")
    hub.ran(NOTHING, "2026-07-06T18:00:00Z", **pull | {"head_sha": sha(NOTHING)})
    hub.ran_job(NOTHING, "reuse-sweep-gate")
    hub.ran_job(NOTHING, "single-node 8k1k", "skipped")
    hub.ran(MERGE, "2026-07-07T06:00:00Z", event="push", head_sha=sha(MERGE))
    hub.committed(sha(MERGE), {"configs/nvidia-master.yaml": master(SLOWER)})
    changelog(hub, MERGE, "2026-07-07T06:10:00Z", f"Update SGLang image from {IMAGE} to {SLOWER}", SLOW_PULL)


def _mended(hub: Actions) -> None:
    """Every result is there; the run was cancelled because of an eval that hung."""
    hub.proposed(MENDED_PULL, sha(CANCELLED), labels=["full-sweep-enabled"], branch="bump-14", commits=[sha(CANCELLED)])
    hub.ran(CANCELLED, "2026-07-08T08:00:00Z", event="pull_request", head_branch="bump-14", head_sha=sha(CANCELLED),
            conclusion="cancelled")  # fmt: skip
    hub.committed(sha(CANCELLED), {"configs/nvidia-master.yaml": master(MENDED)})
    changelog(hub, CANCELLED, "2026-07-08T08:10:00Z", f"Update SGLang image to {MENDED}", MENDED_PULL)
    measured(hub, CANCELLED, "2026-07-08T09:00:00Z", MENDED, 1.0)
    jobs(hub, CANCELLED)
    evaluated(hub, CANCELLED, "2026-07-08T09:30:00Z", concs=(64,))
    hub.ran_job(CANCELLED, f"eval / {title(32)} | eval-only", "cancelled")


def _strange(hub: Actions) -> None:
    """A stranger's branch, which is called main as well, measured by another workflow."""
    hub.proposed(STRANGE_PULL, sha(STRANGE), labels=[], branch="main", repository=FORK, commits=[sha(STRANGE)])
    hub.ran(STRANGE, "2026-07-09T08:00:00Z", event="pull_request", head_branch="main", head_sha=sha(STRANGE),
            path=".github/workflows/e2e-tests.yml", head_repository=FORK)  # fmt: skip
    measured(hub, STRANGE, "2026-07-09T09:00:00Z", IMAGE, 1.1)


def _flaky(hub: Actions) -> None:
    """Half of the matrix failed, with a software that passed in another run."""
    hub.proposed(FLAKY_PULL, sha(FLAKY), labels=["full-sweep-enabled"], branch="again-14", commits=[sha(FLAKY)])
    hub.ran(FLAKY, "2026-07-10T08:00:00Z", event="pull_request", head_branch="again-14", head_sha=sha(FLAKY),
            conclusion="failure")  # fmt: skip
    hub.committed(sha(FLAKY), {"configs/nvidia-master.yaml": master(MENDED)})
    changelog(hub, FLAKY, "2026-07-10T08:10:00Z", f"Update SGLang image to {MENDED}", FLAKY_PULL)
    measured(hub, FLAKY, "2026-07-10T09:00:00Z", MENDED, 1.0, concs=(4, 8, 16))
    jobs(hub, FLAKY, failed=(32, 64))
    evaluated(hub, FLAKY, "2026-07-10T09:30:00Z")


# --- what a run leaves --------------------------------------------------------------------------------------------


def measured(
    hub: Actions, run: int, created_at: str, image: str, factor: float, concs: Sequence[int] = tuple(LEVELS),
    attempt: int = 1, *, expired: bool = False,
) -> None:  # fmt: skip
    """Per-point artifacts of a sweep."""
    rng = np.random.default_rng([run, attempt])
    for conc in concs:
        tput = LEVELS[conc] * factor * float(np.exp(0.004 * rng.standard_normal()))
        name = f"bmk_dsr1_8k1k_fp8_sglang_tp8-ep1-dpafalse_disagg-false_spec-none_conc{conc}_h200-nv_{conc % 3}"
        row = factory.row(conc, tput, hw="h200-nv", image=image)
        hub.uploaded(run, name, {f"agg_conc{conc}.json": row}, created_at=created_at, expired=expired)


def evaluated(
    hub: Actions, run: int, created_at: str, concs: Sequence[int] = EVALUATED, *, expired: bool = False
) -> None:
    """The collected evals."""
    rng = np.random.default_rng([run, 99])
    scores = [factory.evaluation(0.9553 + 0.003 * float(rng.standard_normal()), conc, hw="H200-NV") for conc in concs]
    hub.uploaded(run, "eval_results_all", {"agg_eval_all.json": scores}, created_at=created_at, expired=expired)


def changelog(hub: Actions, run: int, created_at: str, text: str, pull: int) -> None:
    """What the run was asked to measure."""
    entry = {
        "config-keys": [KEY],
        "description": [text],
        "pr-link": f"https://github.com/{REPOSITORY}/pull/{pull}",
        "evals-only": False,
    }
    refs: dict[str, Any] = {"base_ref": "origin/main", "head_ref": sha(run), "entries": [entry]}
    hub.uploaded(run, "changelog-metadata", {"changelog_metadata.json": refs}, created_at=created_at)


def title(conc: int) -> str:
    """The matrix title of a single-node job."""
    return f"p50 | dsr1 fp8 h200 sgl TP8 c{conc}"


def jobs(
    hub: Actions, run: int, attempt: int = 1, concs: Sequence[int] = tuple(LEVELS), failed: Sequence[int] = ()
) -> None:
    """The measuring jobs of an attempt."""
    for conc in concs:
        conclusion = "failure" if conc in failed else "success"
        hub.ran_job(run, f"single-node 8k1k / {title(conc)}", conclusion, attempt)
