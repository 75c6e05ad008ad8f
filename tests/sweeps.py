"""Tidy frames of small sweeps, for the tests of pairing and judging."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

IMAGES = ("engine/serve:v1.0.0", "engine/serve:v1.1.0", "engine/serve:v1.2.0")
LOWER = ("tpot", "itl", "ttft", "e2el")


def sweep(
    run: str,
    day: int,
    image: str | None = IMAGES[0],
    speed: float | Mapping[int, float] = 1.0,
    *,
    metrics: Sequence[str] = ("tput_per_gpu", "median_tpot"),
    conc: Sequence[int] = (4, 16, 64),
    noise: float = 0.003,
    curve: str = "dsr1 h200 tp8",
    **columns: object,
) -> pl.DataFrame:
    """One run of one curve; `speed` multiplies throughput and divides latencies, for all points or per concurrency."""
    rng = np.random.default_rng(sum(map(ord, f"{run}|{day}|{curve}")))
    rows = []
    for c in conc:
        factor = (speed.get(c, 1.0) if isinstance(speed, Mapping) else speed) * float(
            np.exp(noise * rng.standard_normal())
        )
        for name in metrics:
            slow = any(word in name for word in LOWER)
            rows.append(
                {
                    "run": run,
                    "started_at": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day),
                    "image": image,
                    "recipe": None,
                    "curve": curve,
                    "series": f"{curve} c{c}",
                    "conc": c,
                    "multinode": False,
                    "metric": name,
                    "value": 0.01 * c / factor if slow else 100.0 * c * factor,
                    "pool": None,
                    "config": "dsr1-fp8-h200-vllm",
                    **columns,
                }
            )
    kinds = {"image": pl.String, "recipe": pl.String, "pool": pl.String, "started_at": pl.Datetime("us", "UTC")}
    return pl.DataFrame(rows, schema_overrides=kinds)


def nights(count: int, image: str | None = IMAGES[0], start: int = 0, **options: object) -> pl.DataFrame:
    """Several runs of one image, a day apart."""
    return pl.concat([sweep(f"{100 + start + day}/1", start + day, image, **options) for day in range(count)])
