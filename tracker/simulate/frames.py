"""Tidy frames for calibration: a history of unchanged runs and one candidate with a planted shift."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

Array: TypeAlias = npt.NDArray[np.float64]
Shape: TypeAlias = int | tuple[int, ...]


def _normal(rng: np.random.Generator, shape: Shape) -> Array:
    return 0.02 * rng.standard_normal(shape)


def _t3(rng: np.random.Generator, shape: Shape) -> Array:
    return 0.01 * rng.standard_t(3, shape)


def _contaminated(rng: np.random.Generator, shape: Shape) -> Array:
    return np.where(rng.random(shape) < 0.1, 0.06, 0.006) * rng.standard_normal(shape)


NOISES: Mapping[str, Callable[[np.random.Generator, Shape], Array]] = MappingProxyType(
    {"normal": _normal, "t3": _t3, "contaminated": _contaminated}
)
"""The three noises of the calibration, in natural log units: 2 % normal, 1 % t3, 0.6 % with a tenth at 6 %."""

METRICS: Mapping[str, tuple[float, int]] = MappingProxyType({"tput_per_gpu": (1000.0, 1), "median_tpot": (0.02, -1)})
"""Level of each metric and the sign with which it follows the speed: one noise carries both, as on one node."""


def draw(noise: str, rng: np.random.Generator, shape: Shape) -> Array:
    """Log errors of one of the `NOISES`, of the given shape."""
    return NOISES[noise](rng, shape)


def simulate_sweeps(  # noqa: PLR0913 (each argument is an axis of the calibration grid)
    seed: int,
    *,
    end: datetime,
    noise: str = "normal",
    history: int = 5,
    points: int = 12,
    shift: float | Sequence[float] = 0.0,
    curves: int = 1,
) -> pl.DataFrame:
    """A tidy frame of `history` baseline runs and one last run, for many independent curves at once.

    `shift` is the natural log of the true speed ratio of the last run (negative is slower), one number or one per
    point. The runs are a day apart, the last starts at `end` under another image. Points of a run are independent.
    """
    rng = np.random.default_rng(seed)
    runs = history + 1
    speed = draw(noise, rng, (runs, curves, points))
    speed[-1] += np.broadcast_to(np.asarray(shift, dtype=float), (points,))
    level = np.exp(0.3 * rng.standard_normal((curves, points)))
    values = np.stack([base * np.exp(sign * (speed + np.log(level))) for base, sign in METRICS.values()], axis=-1)
    axes = (_runs(runs, end), _curves(curves), _points(points), pl.DataFrame({"metric": list(METRICS)}))
    frame = axes[0]
    for axis in axes[1:]:
        frame = frame.join(axis, how="cross")
    return frame.with_columns(
        series=pl.format("{} c{}", "curve", "conc"), multinode=pl.lit(False), value=pl.Series(values.ravel())
    ).select(*COLUMNS)


COLUMNS = (
    *("run", "started_at", "image", "recipe", "curve", "series", "conc", "multinode", "metric", "value"),
    *("pool", "config"),
)


def _runs(count: int, end: datetime) -> pl.DataFrame:
    """One row per run, oldest first; only the last has the new image."""
    starts = [end - timedelta(days=count - 1 - index) for index in range(count)]
    return pl.DataFrame(
        {
            "run": [f"{index + 1}/1" for index in range(count)],
            "started_at": pl.Series(starts, dtype=pl.Datetime("us", "UTC")),
            "image": ["lab/engine:v1.0.0"] * (count - 1) + ["lab/engine:v1.1.0"],
            "recipe": pl.Series(["recipe"] * count, dtype=pl.String),
            "pool": pl.Series([None] * count, dtype=pl.String),
        }
    )


def _curves(count: int) -> pl.DataFrame:
    """Independent curves: each is a config of its own, so that nothing is pooled over them."""
    names = [f"sim{index:05d}" for index in range(count)]
    return pl.DataFrame({"config": names, "curve": [f"{name} 1024/1024 tp8" for name in names]})


def _points(count: int) -> pl.DataFrame:
    return pl.DataFrame({"conc": [4 * (index + 1) for index in range(count)]}, schema={"conc": pl.Int64})
