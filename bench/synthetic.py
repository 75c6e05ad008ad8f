"""Invented sweeps for measuring the store: many runs of the same series, with rows as long as real ones."""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from store.records import Batch, Layout, Place, Point, Role, Run, RunKey, Series

RUNS_PER_SERIES = 28
CONCURRENCIES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
LATENCIES = [
    f"{stat}_{what}"
    for what in ("ttft", "tpot", "itl", "e2el", "intvty")
    for stat in "mean median std p90 p95 p99".split()
]
METRICS = ("tput_per_gpu", "output_tput_per_gpu", "input_tput_per_gpu", *LATENCIES)
MODELS = ("dsr1", "dsv4", "gptoss120b", "llama70b", "qwen3.5", "kimik2.5", "minimaxm3", "glm5")
GPUS = ("h100", "h200", "b200", "b300", "mi300x", "mi325x", "mi355x", "gb200", "gb300")
START = datetime(2025, 10, 1, tzinfo=UTC)


def sweep(number: int, size: int) -> list[Series]:
    """The series of one sweep: every one of its curves at ten concurrencies."""
    model, gpu = MODELS[number % len(MODELS)], GPUS[number // len(MODELS) % len(GPUS)]
    shapes = [
        (isl, osl, spec, Layout(Role(tp, ep)))
        for isl, osl in ((1024, 1024), (8192, 1024), (1024, 8192))
        for spec in ("none", "mtp")
        for tp in (1, 2, 4, 8)
        for ep in (1, 2, 4, 8)
    ]
    every = [
        Series(
            model, gpu, "vllm" if number % 2 else "sglang", "fp8", spec, "single_turn", isl, osl, False, layout, conc
        )
        for isl, osl, spec, layout in shapes
        for conc in CONCURRENCIES
    ]
    return every[:size]


def batches(points: int, size: int = 500, seed: int = 7) -> Iterator[Batch]:
    """Runs of `size` points each until there are so many; each sweep is measured again and again, in turn."""
    runs = max(1, points // size)
    sweeps = [sweep(number, size) for number in range(max(1, round(runs / RUNS_PER_SERIES)))]
    rng = random.Random(seed)
    for number in range(runs):
        yield batch(number, sweeps[number % len(sweeps)], number // len(sweeps), rng)


def batch(number: int, series: list[Series], version: int, rng: random.Random) -> Batch:
    key = RunKey(27_000_000_000 + 1013 * number, 1)
    started = START + timedelta(minutes=10 * number)
    run = Run(
        key.id,
        1,
        started,
        "example-org/sweeps",
        ".github/workflows/run-sweep.yml",
        "push",
        "main",
        f"{number:040x}",
        "completed",
        "success",
    )
    image = f"example/engine:v0.{version}.0"
    return Batch(run, tuple(_point(key, each, image, started, rng) for each in series))


def _point(key: RunKey, series: Series, image: str, started: datetime, rng: random.Random) -> Point:
    metrics = {name: rng.lognormvariate(0, 0.02) * (1 + index) for index, name in enumerate(METRICS)}
    words = {
        "hw": f"{series.gpu}-dgxc",
        "conc": series.conc,
        "image": image,
        "model": series.model,
        "framework": series.framework,
        "precision": series.precision,
        "spec_decoding": series.spec,
        "disagg": False,
        "isl": series.isl,
        "osl": series.osl,
        "is_multinode": False,
        "tp": series.layout.prefill.tp,
        "ep": series.layout.prefill.ep,
        "dp_attention": "false",
    }
    place = Place(
        f"bmk_{series.model}_{series.isl}_{series.conc}_{series.gpu}-dgxc_03.json", 0, started + timedelta(minutes=5)
    )
    return Point(
        key,
        series,
        metrics,
        place,
        json.dumps({**words, **metrics}),
        image=image,
        recipe="0123456789abcdef",
        pool="dgxc",
    )
