"""The lab sweeps and the comparisons they offer: candidate, the sweeps of v1.0.0 just before it, and what is true."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

FILE = Path(__file__).parent / "data" / "lab" / "h200-sweeps.zip"
BASELINE, REBUILD = "v1.0.0", "v1.0.1"
STRETCH, SLOW = 15, 0.97


@dataclass(frozen=True)
class Sweep:
    """One measured sweep. `rows` are as the file holds them, by concurrency."""

    id: int
    started_at: datetime
    runner: str
    image: str
    batch: int
    noisy_neighbour: bool
    cold: bool
    """True in the slow stretch with which a batch begins."""
    rows: Mapping[int, Mapping[str, Any]]

    def values(self, metric: str) -> list[float]:
        """One metric by rising concurrency."""
        return [float(self.rows[conc][metric]) for conc in sorted(self.rows)]

    @property
    def same_software(self) -> bool:
        """True when the code is that of the baseline."""
        return self.image in (BASELINE, REBUILD)


@dataclass(frozen=True)
class LabCase:
    """A candidate and its baseline, oldest sweep first."""

    candidate: Sweep
    baseline: tuple[Sweep, ...]

    @property
    def environment_moved(self) -> bool:
        """True when the slow stretch lies on one side, or on part of one."""
        return any(sweep.cold != self.candidate.cold for sweep in self.baseline)

    @property
    def truth(self) -> str:
        """`unchanged`, `noisy neighbour`, or the image of the candidate."""
        if self.candidate.noisy_neighbour:
            return "noisy neighbour"
        return "unchanged" if self.candidate.same_software else self.candidate.image


@cache
def bundles() -> tuple[Mapping[str, Any], ...]:
    """The run bundles as they stand in the file."""
    with zipfile.ZipFile(FILE) as archive:
        return tuple(json.loads(archive.read("h200-sweeps.json")))


@cache
def sweeps() -> tuple[Sweep, ...]:
    """All sweeps in the order in which they ran."""
    ordered = sorted(bundles(), key=lambda bundle: bundle["run"]["id"])
    ends = _slow_stretches(ordered)
    return tuple(_sweep(bundle, bundle["run"]["id"] <= ends[bundle["truth"]["batch"]]) for bundle in ordered)


def lab_cases(k: int, *, batch: int | None = None) -> Iterator[LabCase]:
    """Every sweep that has `k` earlier calm-neighbour sweeps of v1.0.0 in its batch, against the last `k` of them."""
    for number, group in groupby(sweeps(), key=lambda sweep: sweep.batch):
        if batch not in (None, number):
            continue
        earlier: list[Sweep] = []
        for sweep in group:
            if len(earlier) >= k:
                yield LabCase(sweep, tuple(earlier[-k:]))
            if sweep.image == BASELINE and not sweep.noisy_neighbour:
                earlier.append(sweep)


def _second(bundle: Mapping[str, Any]) -> float:
    """Throughput at the second concurrency, which shows the slow stretch best."""
    return float(bundle["rows"][1]["tput_per_gpu"])


def _usual_speeds(ordered: Sequence[Mapping[str, Any]]) -> dict[tuple[int, str], float]:
    speeds: dict[tuple[int, str], list[float]] = {}
    for bundle in ordered:
        truth = bundle["truth"]
        speeds.setdefault((truth["batch"], truth["image"]), []).append(_second(bundle))
    return {place: median(values) for place, values in speeds.items()}


def _slow_stretches(ordered: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """Batch to the id of the last sweep of the slow stretch at its start: below 97 % of what its image usually does."""
    usual, ends = _usual_speeds(ordered), {}
    for bundle in ordered:
        number, batch, image = bundle["run"]["id"], bundle["truth"]["batch"], bundle["truth"]["image"]
        if number % 1000 < STRETCH and _second(bundle) < SLOW * usual[batch, image]:
            ends[batch] = number
    return ends


def _sweep(bundle: Mapping[str, Any], cold: bool) -> Sweep:
    run, truth = bundle["run"], bundle["truth"]
    return Sweep(
        id=run["id"],
        started_at=datetime.strptime(run["run_started_at"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC),
        runner=run["runner_name"],
        image=truth["image"],
        batch=truth["batch"],
        noisy_neighbour=truth["bad_node"],
        cold=cold,
        rows={row["conc"]: row for row in bundle["rows"]},
    )
