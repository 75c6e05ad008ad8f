"""Sweeps of split deployments, made by us: points of layouts whose speed and throughput are told, with noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.factory import row

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Pool:
    """Workers of one role: how many, over how many GPUs each."""

    workers: int
    tp: int
    ep: int = 1
    dpa: bool = False

    @property
    def gpus(self) -> int:
        return self.workers * self.tp

    def fields(self, role: str) -> Json:
        said = {"tp": self.tp, "ep": self.ep, "pp": 1, "dcp_size": 1, "pcp_size": 1, "num_workers": self.workers}
        flags = {f"{role}_dp_attention": str(self.dpa).lower(), f"num_{role}_gpu": self.gpus}
        return {**{f"{role}_{name}": value for name, value in said.items()}, **flags}


Points = Mapping[int, tuple[float, float]]
"""Concurrency -> throughput per GPU (tok/s/GPU), interactivity (tok/s/user)."""


def rows(
    prefill: Pool, decode: Pool, points: Points, rng: np.random.Generator, noise: float = 0.005, **told: Any
) -> list[Json]:
    """The rows of one layout: one error a point moves both numbers, as a slow run does."""
    made = []
    for conc, (tput, speed) in points.items():
        factor = float(np.exp(noise * rng.standard_normal()))
        shape = {**prefill.fields("prefill"), **decode.fields("decode"), "is_multinode": True, "disagg": True}
        tpot = 1 / (speed * factor)
        latencies = {"median_tpot": tpot, "median_itl": tpot, "median_intvty": 1 / tpot, "median_e2el": 1 + 1000 * tpot}
        made.append(row(conc, tput * factor, **shape, **latencies, **told))
        for name in ("tp", "ep", "pp", "dcp_size", "pcp_size", "dp_attention"):
            made[-1].pop(name)
    return made


def saturating(peak: float, alone: float, concs: Sequence[int], full: float) -> dict[int, tuple[float, float]]:
    """Points of a deployment whose throughput nears `peak` as concurrency passes `full` and whose readers slow down."""
    return {c: (peak * c / (c + full) * (concs[-1] + full) / concs[-1], alone / (1 + c / full)) for c in concs}
