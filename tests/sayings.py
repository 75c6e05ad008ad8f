"""Comparisons for the tests of reports: one realistic screen, and random ones from a seed."""

from __future__ import annotations

import math
import os
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from reports.doubts import SENTENCES
from reports.language import slots
from store.identity import config_key, curve_key, series_key
from store.records import (
    Attribution,
    Caveat,
    Comparison,
    Controls,
    Difference,
    Differs,
    Finding,
    JobCount,
    Layout,
    Place,
    Rejection,
    Role,
    Run,
    RunKey,
    Scope,
    Series,
    Unmatched,
    Verdict,
)

OLD = "lmsysorg/sglang:v0.5.11-cu130"
NEW = "lmsysorg/sglang:v0.5.12-cu130"
SHA = "5fe6d56ee0c1d2e3f405162738495a6b7c8d9e0f"


def a_run(number: int, day: int, *, attempt: int = 1, sha: str | None = None) -> Run:
    return Run(
        id=30_000_000_000 + number,
        attempt=attempt,
        started_at=datetime(2026, 5, 1, 4, 8, tzinfo=UTC) + timedelta(days=day),
        repository="SemiAnalysisAI/InferenceX",
        event="push",
        head_branch="main",
        head_sha=sha,
        conclusion="success",
    )


BEFORE = tuple(a_run(number, number, sha=f"{number:040x}") for number in range(1, 4))
AFTER = (a_run(9, 12, attempt=2, sha=SHA),)


def a_series(conc: int | None = 64, *, isl: int = 8192, tp: int = 8, spec: str = "none") -> Series:
    return Series("dsr1", "h200", "sglang", "fp8", spec, "single_turn", isl, 1024, False, Layout(Role(tp)), conc)


def a_finding(series: Series, metric: str, verdict: Verdict, percent: float, **other: object) -> Finding:
    """A finding whose effect is given in percent, with an interval around it."""
    effect = math.log1p(percent / 100)
    scope = Scope.CURVE if series.conc is None else Scope.POINT
    found = Finding(
        scope=scope,
        key=curve_key(series) if scope is Scope.CURVE else series_key(series),
        metric=metric,
        verdict=verdict,
        effect=effect,
        low=effect - 0.011,
        high=effect + 0.011,
        p=0.00042 if verdict in (Verdict.REGRESSION, Verdict.IMPROVEMENT) else 0.31,
        mde=0.026 if scope is Scope.CURVE else 0.071,
        n_baseline=3,
        n_candidate=1,
        n_points=6 if scope is Scope.CURVE else 1,
        series=series,
        config=config_key(series),
        baseline_runs=tuple(run.key for run in BEFORE),
        candidate_runs=tuple(run.key for run in AFTER),
        baseline_image=OLD,
        candidate_image=NEW,
        rules_version="1",
    )
    return replace(found, **other)  # type: ignore[arg-type]


BUMP = Difference("image", OLD, NEW, Differs.IMAGE)


def an_attribution(rng: random.Random) -> Attribution:
    """What may differ between two sides, with controls or without."""
    every = (
        BUMP,
        Difference("image", None, "a/b:latest", Differs.UNKNOWN),
        Difference("recipe", "5f2a9c1e", "77d0be42", Differs.RECIPE),
        Difference("recipe", None, "77d0be42", Differs.UNKNOWN),
        Difference("router", "gate 1.2.0", "gate 1.3.0", Differs.RECIPE),
        Difference("layout", "tp8", None, Differs.TOPOLOGY),
        Difference("pool", "cloud-a", "cloud-b", Differs.POOL),
        Difference("harness_event", None, None, Differs.HARNESS, "client_tokenizer"),
        Difference("harness_event", None, None, Differs.HARNESS, "client_0_9"),
    )
    found = tuple(sorted(rng.sample(every, rng.randrange(4)), key=every.index))
    total = rng.choice((0, 3, 8))
    moved = rng.randrange(total + 1)
    kinds = [kind for kind in Differs if kind in {one.kind for one in found}]
    controls = Controls(total, moved, -0.083 if moved else None)
    return Attribution(kinds[0] if kinds else rng.choice((Differs.POOL, Differs.UNKNOWN)), found, controls)


def an_eval(conc: int, before: float | None, after: float, verdict: Verdict, *caveats: Caveat) -> Finding:
    series = replace(a_series(conc), isl=None, osl=None)
    effect = None if before is None else after - before
    return Finding(
        scope=Scope.EVAL,
        key=f"{series_key(series)} gsm8k",
        metric="em_flexible",
        verdict=verdict,
        effect=effect,
        low=None if effect is None else effect - 0.008,
        high=None if effect is None else effect + 0.008,
        p=None if effect is None else 0.0021,
        mde=0.014,
        n_baseline=0 if before is None else 2,
        n_candidate=1,
        baseline=before,
        candidate=after,
        series=series,
        config=config_key(series),
        task="gsm8k",
        baseline_image=OLD,
        candidate_image=NEW,
        caveats=(Caveat.of("gate", threshold=0.91, model="dsr1"), *caveats),
    )


def alone(conc: int, verdict: Verdict, code: str, side: str = "candidate", **values: object) -> Unmatched:
    series = a_series(conc, isl=1024)
    run = AFTER[0].key if side == "candidate" else BEFORE[-1].key
    reason = Caveat(code, tuple(values.items()))  # type: ignore[arg-type]
    return Unmatched(series_key(series), side, verdict, reason, series, config_key(series), run)


def a_rejection(reason: str, field: str) -> Rejection:
    return Rejection(Place("agg_bmk.json", 3), field, reason)


def a_screen() -> Comparison:
    """One of everything: the comparison behind the golden files."""
    curve, calm, gain = a_series(None), a_series(None, tp=4), a_series(None, spec="mtp")
    single = Caveat.of("single_run")
    points = [
        a_finding(a_series(4), "tput_per_gpu", Verdict.EQUIVALENT, -0.4, baseline=433.8, candidate=432.1),
        a_finding(a_series(16), "tput_per_gpu", Verdict.INCONCLUSIVE, -2.1, baseline=1104.1, candidate=1080.9),
        a_finding(a_series(64), "tput_per_gpu", Verdict.REGRESSION, -12.4, baseline=1336.0, candidate=1170.3),
        a_finding(a_series(128), "tput_per_gpu", Verdict.REGRESSION, -20.0, baseline=1500.0, candidate=1200.0),
        a_finding(a_series(64, tp=4), "tput_per_gpu", Verdict.EQUIVALENT, 0.2, baseline=900.0, candidate=901.8),
        a_finding(
            a_series(64, spec="mtp"), "tput_per_gpu", Verdict.IMPROVEMENT, 188.0, baseline=2085.0, candidate=6003.0
        ),
    ]
    return Comparison(
        candidate=AFTER,
        baseline=BEFORE,
        against="previous",
        findings=(
            a_finding(
                curve,
                "tput_per_gpu",
                Verdict.REGRESSION,
                -8.2,
                caveats=(single,),
                attribution=Attribution(Differs.IMAGE, (BUMP,), Controls(8, 1, math.log1p(-0.031))),
            ),
            a_finding(curve, "median_tpot", Verdict.REGRESSION, 9.0, caveats=(single,)),
            a_finding(calm, "tput_per_gpu", Verdict.EQUIVALENT, 0.2),
            a_finding(a_series(None, isl=1024, tp=4), "tput_per_gpu", Verdict.NOISY, 1.9, mde=0.14),
            a_finding(
                gain,
                "tput_per_gpu",
                Verdict.IMPROVEMENT,
                188.0,
                caveats=(Caveat.of("implausible_gain"),),
                attribution=Attribution(
                    Differs.IMAGE,
                    (
                        BUMP,
                        Difference("recipe", "5f2a9c1e", "77d0be42", Differs.RECIPE),
                        Difference("harness_event", None, None, Differs.HARNESS, "client_tokenizer"),
                    ),
                ),
            ),
            a_finding(curve, "p99_ttft", Verdict.REGRESSION, 61.0),
            *points,
            an_eval(
                64,
                0.9553,
                0.6,
                Verdict.REGRESSION,
                Caveat.of(
                    "below_threshold",
                    score=0.6,
                    threshold=0.91,
                    digits=2,
                    n=1319,
                    correct=791,
                    needed=1201,
                    short_by=410,
                ),
            ),
            an_eval(128, 0.9553, 0.9561, Verdict.EQUIVALENT, Caveat.of("paired", lost=11, gained=12, n=1319)),
        ),
        unmatched=(
            alone(8, Verdict.NO_BASELINE, "new_point"),
            alone(256, Verdict.MISSING, "missing_point", "baseline"),
            alone(512, Verdict.FAILED, "failed_requests", failed=289, total=320),
            alone(32, Verdict.NOT_COMPARABLE, "workload_differs"),
        ),
        rejected=(
            a_rejection("malformed_json", ""),
            a_rejection("missing_field", "conc"),
            a_rejection("missing_field", "conc"),
        ),
        rules_version="1",
        caveats=(Caveat.of("unofficial_event", event="workflow_dispatch"),),
        jobs=(JobCount("h200", 23, 24), JobCount("b200", 0, 0)),
    )


VALUES: dict[str, object] = {
    "tokens": 35921, "nominal": 8192,
    "have": 1, "need": 3, "runs": 2, "days": 49, "points": 4, "dropped": 1, "failed": 289, "total": 320, "number": 7,
    "score": 0.828125, "threshold": 0.83, "before": 0.9553, "growth": 0.0312, "standard_error": 0.0236, "n": 1319,
    "correct": 212, "needed": 213, "baseline": 1319, "of": 8, "siblings": 0.9571, "count": 7, "last_good": 0.9561,
    "change": 1.566, "p": 0.0042, "value": 1.25, "said": 16, "topology": 8, "limit": 0.5,
    "image": "vllm/vllm-openai:nightly", "candidate": "nb", "metric": "median_tpot", "metrics": "tput_per_gpu",
    "field": "num_gpus", "fields": "isl osl", "spelling": "b200-zeta9", "run": "30000000001/1", "task": "gsm8k",
    "verdict": "equivalent", "path": ".github/workflows/e2e-tests.yml", "event": "workflow_dispatch", "branch": "fix-2",
    "unit": "ms", "true": "ms", "left_out": "a/b:v1.2", "model": "dsr1", "date": "2026-05-15", "on_day_of": "candidate",
    "pull": 1381, "commit": "1cb92d21d", "label": "sweep-enabled", "config": "a/b:v1.3", "row": "a/b:v1.4",
    "client": "a/c:v1", "server": "a/b:v1", "named": "1.3.0.dev20260614", "installed": "1.3.0.dev20260710",
    "name": "dynamo", "said_by": "changelog",
    "repository": "somebody/bench", "since": "2026-07-21", "reason": "wrong draft model",
    "status": "timeout", "measured": 3000.0, "seconds": 400.5, "duration": 100.0, "clock": 700.5, "ratio": 0.5,
    "queries": 320, "each": 100.5, "energy": 1000000.0,
    "kind_before": "push", "kind_after": "pull_request, nightly", "by": "30000000002/1",
    "job": "single-node 8k1k / p7 | dsr1 fp8 h200 sgl TP8 c64", "conclusion": "timed_out", "labels": "sweep-enabled",
    "url": "https://github.com/o/r/actions/runs/30000000001/job/5", "attempt": 1,
    "sha": "0123456789abcdef", "flaw": "17 MB", "head": "fedcba9876543210", "files": 12,
    "lost": 35, "gained": 15, "earlier": 3, "counted": 0.9492, "side": "baseline",
    "login": "mallory", "association": "NONE", "workflow": ".github/workflows/e2e-tests.yml", "on": "2026-09-12",
}  # fmt: skip
"""A plausible value for every name that a sentence has a place for."""


def a_caveat(rng: random.Random) -> Caveat:
    """A code of the table with the values that one of its sentences needs."""
    code = rng.choice(sorted(SENTENCES))
    names = slots(rng.choice(SENTENCES[code]))
    return Caveat(code, tuple((name, VALUES[name]) for name in names))  # type: ignore[misc]


def a_random_series(rng: random.Random) -> Series:
    sides = Role(rng.choice((4, 8)), rng.choice((1, 8)), rng.random() < 0.2, rng.choice((1, 2)))
    split = rng.random() < 0.2
    return Series(
        model=rng.choice(("dsr1", "gptoss120b", "kimik2.5", "?glm6")),
        gpu=rng.choice(("h200", "b200", "mi355x")),
        framework=rng.choice(("sglang", "vllm", "trt")),
        precision=rng.choice(("fp8", "fp4")),
        spec=rng.choice(("none", "mtp")),
        scenario=rng.choice(("single_turn", "agentic_traces")),
        isl=rng.choice((1024, 8192)),
        osl=1024,
        offload=rng.random() < 0.1,
        layout=Layout(sides, sides if split else None, split),
        conc=rng.choice((None, 1, 4, 16, 64, 256)),
    )


_MOVED = (Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.MIXED, Verdict.SUSPECTED, Verdict.RECOVERY)


def a_random_finding(rng: random.Random) -> Finding:
    verdict = rng.choice(list(Verdict)[:8])
    percent = rng.choice((0.0, 0.004, -0.02, 4.7, -3.2, -20.0, 188.0, -96.0, rng.uniform(-60, 200)))
    metric = rng.choice(("tput_per_gpu", "median_tpot", "p99_ttft", "median_e2el", "mean_intvty", "frobnication_rate"))
    finding = a_finding(a_random_series(rng), metric, verdict, percent)
    return replace(
        finding,
        p=rng.choice((None, 1e-9, 0.0042, 0.31)),
        mde=rng.choice((None, 0.026, 0.14)),
        low=rng.choice((None, finding.low)),
        n_baseline=rng.choice((0, 1, 5)),
        baseline=rng.choice((None, 1336.04, 0.0516)),
        candidate=1200.5,
        caveats=tuple(a_caveat(rng) for _ in range(rng.choice((0, 0, 1, 2)))),
        attribution=an_attribution(rng) if verdict in _MOVED else None,
        baseline_image=rng.choice((None, OLD, "a/b:latest", f"a/b:v1@sha256:{'1' * 64}", f"a/b:nightly-{SHA}")),
    )


def a_random_eval(rng: random.Random) -> Finding:
    before, after = rng.choice((None, 0.9553)), rng.choice((0.0, 0.6, 0.9561, 0.828125))
    finding = an_eval(rng.choice((16, 64)), before, after, rng.choice(list(Verdict)[:8]), a_caveat(rng))
    return replace(finding, metric=rng.choice(("em_flexible", "em_strict", "score")))


def a_random_unmatched(rng: random.Random) -> Unmatched:
    series = a_random_series(rng)
    task = rng.choice((None, None, "gsm8k"))
    run = rng.choice((None, RunKey(-115, 1), AFTER[0].key))
    verdict = rng.choice(list(Verdict)[8:])
    key = series_key(series) + (f" {task}" if task else "")
    return Unmatched(key, "candidate", verdict, a_caveat(rng), series, config_key(series), run, task)


def a_random_comparison(seed: int) -> Comparison:
    """A small comparison of anything that the records allow; the same seed gives the same one."""
    rng = random.Random(seed)
    local = Run(-1152921504606846975, 1, datetime(2026, 5, 13, tzinfo=UTC), event="local")
    return Comparison(
        candidate=rng.choice((AFTER, (local,))),
        baseline=BEFORE[: rng.randrange(4)],
        against=rng.choice(("previous", "last-good", "2026-05-01")),
        findings=(
            *(a_random_finding(rng) for _ in range(rng.randrange(5))),
            *(a_random_eval(rng) for _ in range(rng.randrange(2))),
        ),
        unmatched=tuple(a_random_unmatched(rng) for _ in range(rng.randrange(3))),
        rejected=(a_rejection("bad_value", "conc"),) * rng.randrange(3),
        rules_version="1",
        caveats=tuple(a_caveat(rng) for _ in range(rng.randrange(2))),
    )


GOLDEN = Path(__file__).parent / "golden"


def matches_golden(name: str, text: str) -> bool:
    """Compare a text with a file of `tests/golden`; `UPDATE_GOLDEN=1 pytest ...` writes the file instead."""
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return path.read_text(encoding="utf-8") == text


def a_large_sweep(points: int, every: int) -> Comparison:
    """A sweep of many points, each `every`-th of them fallen by 20 %."""
    findings = tuple(
        a_finding(
            a_series(number + 1),
            "tput_per_gpu",
            Verdict.EQUIVALENT if number % every else Verdict.REGRESSION,
            0.0 if number % every else -20.0,
            baseline=1000.0,
            candidate=1000.0 if number % every else 800.0,
        )
        for number in range(points)
    )
    return Comparison(AFTER, BEFORE, "previous", findings, (), (), "1")


def a_wide_sweep(configs: int) -> Comparison:
    """A sweep of many configs with everything that a screen can show, far more of it than fits."""
    models = [f"model{number}" for number in range(configs)]
    found: list[Finding] = []
    for place, model in enumerate(models):
        verdict = (Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.INCONCLUSIVE, Verdict.MIXED)[place % 4]
        percent = (-9.0, 12.0, 1.4, 6.2)[place % 4]
        images = {"baseline_image": f"lmsysorg/sglang:v0.{place}.0", "candidate_image": f"lmsysorg/sglang:v0.{place}.1"}
        doubt = Caveat.of("recipe_changed") if place % 2 else a_caveat(random.Random(place))
        differs = an_attribution(random.Random(place)) if verdict in _MOVED else None
        for conc in (None, 4, 64):
            series = replace(a_series(conc, tp=4 if place % 3 else 8), model=model)
            worst = (Verdict.REGRESSION, -30.0) if verdict is Verdict.MIXED and conc == 64 else (verdict, percent)
            found.append(a_finding(series, "tput_per_gpu", *worst, caveats=(doubt,), attribution=differs, **images))
            slower = (worst[0], (1 / (1 + worst[1] / 100) - 1) * 100)
            found.append(a_finding(series, "median_tpot", *slower, caveats=(doubt,), **images))
            found.append(a_finding(series, "p99_ttft", Verdict.REGRESSION, 70.0, **images))
        gap = Caveat.of("format_gap", growth=0.03)
        job = an_eval(64, 0.95, 0.9, Verdict.REGRESSION if place % 5 == 0 else Verdict.INCONCLUSIVE, gap)
        series = replace(job.series or a_series(), model=model)
        key, config = f"{series_key(series)} gsm8k", config_key(series)
        found.append(replace(job, series=series, key=key, config=config, **images))
    states = (
        (Verdict.FAILED, "failed_requests"),
        (Verdict.MISSING, "missing_point"),
        (Verdict.NOT_COMPARABLE, "workload_differs"),
        (Verdict.NO_BASELINE, "new_point"),
    )
    lone = [alone(conc, *states[conc % 4]) for conc in range(1, 60)]
    bad = tuple(a_rejection("bad_value", f"field{number}") for number in range(20))
    return Comparison(AFTER, BEFORE, "previous", tuple(found), tuple(lone), bad, "1")
