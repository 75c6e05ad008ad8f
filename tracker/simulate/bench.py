"""The machine room: what a job measures, given how fast its engine and its machine are on the day.

A closed loop of `conc` users: a request waits for its first token, then gets one token every TPOT. The laws that real
rows keep hold exactly in the means: E2EL = TTFT + output tokens x TPOT, interactivity = 1 / TPOT and, on one node,
throughput = conc x tokens / E2EL / GPUs. On several nodes throughput has noise of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tracker.simulate.fleet import Job

Array: TypeAlias = npt.NDArray[np.float64]

LENGTH_SHARE = 0.9
"""Prompts and outputs are uniform in 0.8 to 1.0 of the nominal length."""

SCALES = (0.0049, 0.0059, 0.0028)
SCALES_MULTINODE = (0.0042, 0.0055, 0.0033)
WALL_MULTINODE = (0.0063, 0.0072, 0.0028)
"""Median noise of a series by concurrency (at most 8, 64, above), log units, fitted on public rows.

`WALL` is what throughput has on top of TPOT on several nodes.
"""

SPREAD_OF_SCALES = 0.72
TTFT_FACTOR = (8.0, 20.0)
RUN_CORRELATION = 0.4
"""Of two points of one multi-node config in one run; points of single-node jobs are independent."""

CONTAMINATED, CONTAMINATION = 0.1, 3.0
"""A tenth of the measurements is three times as noisy."""

ACCEPTED = 2.1
"""Tokens of one decode step under speculation: ITL is this many times TPOT."""

RISES: Mapping[str, tuple[float, float, float]] = MappingProxyType(
    {
        "ttft": (0.6, 2.5, 0.2),
        "tpot": (0.012, 0.02, 0.004),
        "itl": (0.04, 0.35, 2.0),
        "e2el": (0.06, 0.05, 0.006),
    }
)
"""How far p90 lies above the median, p99 above p90 and p99.9 above p99, as fractions."""

SPREADS: Mapping[str, float] = MappingProxyType({"ttft": 0.9, "tpot": 0.02, "itl": 0.4, "e2el": 0.07})
"""Standard deviation over requests as a share of the mean."""


@dataclass(frozen=True)
class Bench:
    """Arrays over jobs: true times of an idle fleet (seconds), noise scales (log units), shapes."""

    tpot: Array
    ttft: Array
    sigma: Array
    wall: Array
    ttft_factor: Array
    tokens_in: Array
    tokens_out: Array
    conc: Array
    gpus: Array
    gpus_in: Array
    gpus_out: Array
    step: Array
    multinode: npt.NDArray[np.bool_]
    config: npt.NDArray[np.intp]
    """Index of the job's config: what shares the luck of a run on several nodes."""


def unit_noise(rng: np.random.Generator, size: int) -> Array:
    """Noise of unit variance as real points have it: a tight core, a tenth contaminated, tails of t5."""
    scale = np.where(rng.random(size) < CONTAMINATED, CONTAMINATION, 1.0)
    variance = (1 - CONTAMINATED + CONTAMINATED * CONTAMINATION**2) * 5 / 3
    return np.asarray(scale * rng.standard_t(5, size) / np.sqrt(variance))


def furnish(jobs: Sequence[Job], rng: np.random.Generator) -> Bench:
    """True times and noise scales of the jobs; every series has its own scale for the whole story.

    A config that is noisy by the script has just the scale that the script says.
    """
    column = {name: np.array(values) for name, values in _columns(jobs).items()}
    conc, tokens_in = column["conc"], column["tokens_in"]
    multinode = column["multinode"].astype(bool)
    bins = np.digitize(conc, (8, 64), right=True)
    luck = np.clip(rng.standard_normal(len(jobs)), -2, 2) * SPREAD_OF_SCALES * (column["noise"] == 1)
    core = np.where(multinode, np.array(SCALES_MULTINODE)[bins], np.array(SCALES)[bins])
    _, config = np.unique([job.config.key for job in jobs], return_inverse=True)
    return Bench(
        tpot=column["seconds"] * (1 + conc / (10 * column["gpus"])) ** 0.75,
        ttft=tokens_in / column["prefill"] * (1.5 + conc / 8),
        sigma=core * np.exp(luck) * column["noise"],
        wall=np.where(multinode, np.array(WALL_MULTINODE)[bins], 0.0),
        ttft_factor=rng.uniform(*TTFT_FACTOR, len(jobs)),
        step=column["step"],
        multinode=multinode,
        config=config,
        **{name: column[name] for name in ("tokens_in", "tokens_out", "conc", "gpus", "gpus_in", "gpus_out")},
    )


def _columns(jobs: Sequence[Job]) -> dict[str, list[float]]:
    """One list per property of a job. One engine has all its GPUs on both sides."""
    return {
        "seconds": [job.config.step for job in jobs],
        "prefill": [job.config.prefill for job in jobs],
        "noise": [job.config.noise for job in jobs],
        "conc": [float(job.conc) for job in jobs],
        "tokens_in": [LENGTH_SHARE * job.isl for job in jobs],
        "tokens_out": [LENGTH_SHARE * job.osl for job in jobs],
        "gpus": [float(job.layout.gpus) for job in jobs],
        "gpus_in": [float(job.layout.prefill.gpus) for job in jobs],
        "gpus_out": [float((job.layout.decode or job.layout.prefill).gpus) for job in jobs],
        "step": [ACCEPTED if job.config.spec == "mtp" else 1.0 for job in jobs],
        "multinode": [float(job.config.multinode) for job in jobs],
    }


def measure(bench: Bench, engine: Array, machine: Array, rng: np.random.Generator) -> dict[str, Array]:
    """Metrics of one run, one array over the jobs per key, as an aggregate row carries them.

    `engine` and `machine` are natural logs of the true speed ratio: the first moves every latency, the second (a bad
    node) leaves the median ITL where it was, which is how such nights look.
    """
    size = len(bench.conc)
    core = bench.sigma * _shared(bench, rng)
    speed = engine + machine + core
    tpot = bench.tpot * np.exp(-speed)
    ttft = bench.ttft * np.exp(-engine - machine + bench.ttft_factor * bench.sigma * unit_noise(rng, size))
    e2el = ttft + bench.tokens_out * tpot
    itl = bench.step * bench.tpot * np.exp(-engine - core + 0.5 * bench.sigma * unit_noise(rng, size))
    middle = {"ttft": 0.8 * ttft, "tpot": tpot, "itl": 0.98 * itl, "e2el": 0.8 * ttft + bench.tokens_out * tpot}
    mean = {"ttft": ttft, "tpot": tpot, "itl": bench.step * tpot, "e2el": e2el}
    metrics = _throughput(bench, e2el * np.exp(bench.wall * _shared(bench, rng)))
    for what, values in mean.items():
        metrics |= _statistics(what, values, middle[what], bench.sigma, rng)
    return metrics | _interactivity(metrics)


def _shared(bench: Bench, rng: np.random.Generator) -> Array:
    """Unit noise whose part is common to the points of a multi-node config."""
    own, common = unit_noise(rng, len(bench.conc)), unit_noise(rng, int(bench.config.max()) + 1)[bench.config]
    mixed = np.sqrt(1 - RUN_CORRELATION) * own + np.sqrt(RUN_CORRELATION) * common
    return np.where(bench.multinode, mixed, own)


def _throughput(bench: Bench, e2el: Array) -> dict[str, Array]:
    """Tokens a second per GPU; a split deployment divides input and output by the GPUs of their own side."""
    requests = bench.conc / e2el
    return {
        "tput_per_gpu": requests * (bench.tokens_in + bench.tokens_out) / bench.gpus,
        "output_tput_per_gpu": requests * bench.tokens_out / bench.gpus_out,
        "input_tput_per_gpu": requests * bench.tokens_in / bench.gpus_in,
    }


def _statistics(what: str, mean: Array, middle: Array, sigma: Array, rng: np.random.Generator) -> dict[str, Array]:
    """Mean, median, spread and rising percentiles of one latency."""
    size = len(mean)
    row = {
        f"mean_{what}": mean,
        f"median_{what}": middle * np.exp(0.25 * sigma * unit_noise(rng, size)),
        f"std_{what}": mean * SPREADS[what] * np.exp(0.1 * unit_noise(rng, size)),
    }
    level = row[f"median_{what}"]
    for name, rise in zip(("p90", "p99", "p99.9"), RISES[what], strict=True):
        level = level * (1 + rise * np.exp(np.clip(20 * sigma, 0.02, 0.3) * unit_noise(rng, size)))
        row[f"{name}_{what}"] = level
    return row


def _interactivity(metrics: Mapping[str, Array]) -> dict[str, Array]:
    """The inverse of every TPOT statistic, the spread too: upstream writes 1 / std, which means nothing."""
    return {key.replace("tpot", "intvty"): 1 / values for key, values in metrics.items() if key.endswith("_tpot")}


def power(job: Job, row: Mapping[str, float]) -> dict[str, float]:
    """Power and energy keys of a row (W, J) where the machines of its config are metered, else nothing."""
    if job.config.watts is None:
        return {}
    watts = job.config.watts * (0.45 + 0.55 * job.conc / (job.conc + 48))
    gpus = job.layout.gpus
    tokens, output = row["tput_per_gpu"], row["output_tput_per_gpu"]
    requests = output * gpus / (LENGTH_SHARE * job.osl)
    return {
        "avg_power_w": watts,
        "avg_total_gpu_power_w": watts * gpus,
        "total_gpu_energy_j": watts * gpus / requests * 10 * job.conc,
        "joules_per_successful_query": watts * gpus / requests,
        "joules_per_input_token": watts / row["input_tput_per_gpu"],
        "joules_per_output_token": watts / output,
        "joules_per_total_token": watts / tokens,
        "power_valid": 1,
        "power_metric_schema_version": 2,
    }
