"""The script of the story: what happened in which night, counted back from the last.

A `Bump` gives the true ratio of the speed from its night on to the speed before. The last night (0) is the image bump
that the demo judges.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from tracker.simulate.fleet import EIGHT, FLEET, Job

EVERY_SEQUENCE: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Bump:
    """A new image (`tag`) or a new recipe (`recipe`) of one config, and what it truly does."""

    config: str
    description: str
    tag: str | None = None
    recipe: str | None = None
    speed: float = 1.0
    """True speed from now on over the speed before."""
    inputs: frozenset[int] = EVERY_SEQUENCE
    """Input lengths that it touches; empty means all."""
    flexible: float = 0.0
    strict: float = 0.0
    """Change of the two GSM8K accuracies, as fractions."""
    pull_request: int = 0


@dataclass(frozen=True)
class State:
    """What is in force in one night."""

    tags: Mapping[str, str]
    recipes: Mapping[str, str]
    speeds: Mapping[tuple[str, int], float]
    """Natural log of the true speed over that of the first image, by config and input length."""
    accuracy: Mapping[str, tuple[float, float]]
    """True GSM8K accuracy by config: flexible and strict."""

    def speed(self, job: Job) -> float:
        return self.speeds[job.config.key, job.isl]


LONG_PROMPTS = frozenset({EIGHT[0]})

SCRIPT: Mapping[int, tuple[Bump, ...]] = MappingProxyType(
    {
        10: (
            Bump("gptoss-fp4-h200-vllm", "Update vLLM image from v0.21.0 to v0.21.1", tag="v0.21.1", pull_request=2701),
        ),
        9: (
            Bump(
                "dsr1-fp8-h200-sglang",
                "Update SGLang image from v0.5.12-cu130 to v0.5.13-cu130",
                tag="v0.5.13-cu130",
                speed=0.92,
                inputs=LONG_PROMPTS,
                pull_request=2704,
            ),
        ),
        7: (
            Bump(
                "dsr1-fp8-b200-trt",
                "Update TensorRT-LLM image from 1.3.0rc12 to 1.3.0rc14",
                tag="1.3.0rc14",
                speed=1.12,
                pull_request=2709,
            ),
        ),
        6: (
            Bump(
                "dsr1-fp8-h200-sglang",
                "Update SGLang image from v0.5.13-cu130 to v0.5.14-cu130",
                tag="v0.5.14-cu130",
                speed=1 / 0.92,
                inputs=LONG_PROMPTS,
                pull_request=2713,
            ),
        ),
        5: (
            Bump(
                "dsr1-fp4-mi355x-atom",
                "Update ATOM image from 0.1.3 to 0.1.4",
                tag="rocm7.2.4_ubuntu24.04_py3.12_pytorch_release_2.10.0_atom0.1.4",
                speed=0.97,
                inputs=LONG_PROMPTS,
                pull_request=2716,
            ),
        ),
        4: (
            Bump(
                "gptoss-fp4-b200-vllm",
                "Raise --max-num-batched-tokens from 8192 to 16384",
                recipe="batched-16384",
                speed=1.04,
                pull_request=2718,
            ),
        ),
        3: (
            Bump(
                "qwen3.5-fp8-mi355x-sglang",
                "Update SGLang image from v0.5.14-rocm720-mi35x to v0.5.15-rocm720-mi35x",
                tag="v0.5.15-rocm720-mi35x",
                flexible=-0.03,
                strict=-0.06,
                pull_request=2722,
            ),
        ),
        2: (
            Bump(
                "dsr1-fp4-gb200-dynamo-trt-mtp",
                "Update Dynamo image from 0.8.1 to 0.8.1.post1",
                tag="0.8.1.post1",
                speed=1.01,
                pull_request=2725,
            ),
        ),
        1: (
            Bump(
                "qwen3.5-fp8-mi355x-sglang",
                "Update SGLang image from v0.5.15-rocm720-mi35x to v0.5.15.post1-rocm720-mi35x",
                tag="v0.5.15.post1-rocm720-mi35x",
                flexible=0.03,
                strict=0.06,
                pull_request=2728,
            ),
        ),
        0: (
            Bump(
                "dsr1-fp4-b200-sglang",
                "Update SGLang image from v0.5.13-cu130 to v0.5.15-cu130",
                tag="v0.5.15-cu130",
                speed=0.93,
                inputs=LONG_PROMPTS,
                pull_request=2731,
            ),
            Bump(
                "dsr1-fp4-mi355x-sglang",
                "Update SGLang image from v0.5.14-rocm720-mi35x to v0.5.15-rocm720-mi35x",
                tag="v0.5.15-rocm720-mi35x",
                pull_request=2731,
            ),
            Bump(
                "gptoss-fp4-h200-vllm",
                "Update vLLM image from v0.21.1 to v0.22.0",
                tag="v0.22.0",
                speed=1.09,
                pull_request=2733,
            ),
            Bump(
                "dsr1-fp8-h200-sglang",
                "Update SGLang image from v0.5.14-cu130 to v0.5.15-cu130",
                tag="v0.5.15-cu130",
                pull_request=2731,
            ),
            Bump(
                "qwen3.5-fp8-h100-sglang",
                "Update SGLang image from v0.5.13-cu130 to v0.5.15-cu130",
                tag="v0.5.15-cu130",
                pull_request=2731,
            ),
            Bump(
                "dsr1-fp4-mi355x-atom",
                "Update ATOM image from 0.1.4 to 0.1.5",
                tag="rocm7.2.4_ubuntu24.04_py3.12_pytorch_release_2.10.0_atom0.1.5",
                flexible=-0.03,
                strict=-0.06,
                pull_request=2732,
            ),
        ),
    }
)

NIGHTS = max(SCRIPT) + 2
"""The shortest story: one calm night before the first bump."""

BAD_POOLS: Mapping[int, tuple[str | None, float]] = MappingProxyType({8: ("amds", 0.7)})
"""Nights in which the machines of a pool ran at this share of their speed, whatever the image."""

BROKEN_JOBS: Mapping[int, tuple[str, ...]] = MappingProxyType({0: ("dsr1-fp8-h200-sglang",)})
"""Nights in which the job of a config at the highest concurrency with long prompts failed: its point is absent."""

RERUNS: Mapping[int, tuple[str, ...]] = MappingProxyType({2: ("dsr1-fp8-b200-trt", "dsv4-fp8-h200-vllm-mtp")})
"""Nights whose first attempt lost all jobs of these configs with long prompts; a second attempt brought them."""

STRANGE_LABELS: Mapping[int, tuple[str, str]] = MappingProxyType({6: ("dsr1-fp8-b200-trt", "b200-zeta9")})
"""Nights in which the first row of a config carries a runner label that nobody knows."""

NOT_A_NUMBER: Mapping[int, tuple[str, str]] = MappingProxyType({5: ("gptoss-fp4-h200-vllm", "p99_ttft")})
"""Nights in which a metric of the first row of a config was written as NaN."""


@dataclass(frozen=True)
class Aside:
    """A run that is no night of main: a pull request's own sweep, or somebody's experiment."""

    before: int
    """It ran in the afternoon before this night."""
    configs: tuple[str, ...]
    event: str
    path: str
    branch: str
    title: str
    pull_request: int | None = None
    speed: float = 1.0
    """True speed over main's of that afternoon, for an experiment."""


SWEEP, EXPERIMENT = ".github/workflows/run-sweep.yml", ".github/workflows/e2e-tests.yml"

ASIDES = (
    Aside(7, ("dsr1-fp8-b200-trt",), "pull_request", SWEEP, "bump-trt-1.3.0rc14", "Update TensorRT-LLM image", 2709),
    Aside(
        *(4, ("dsv4-fp8-h200-vllm-mtp",), "workflow_dispatch", EXPERIMENT, "explore/h200-wide-batches"),
        *("e2e Test - wide batches, unofficial", None, 1.3),
    ),
    Aside(0, ("dsr1-fp4-b200-sglang",), "pull_request", SWEEP, "bump-sglang-0.5.15", "Update SGLang images", 2731),
)


def first_state() -> State:
    """The fleet before anything happened."""
    return State(
        tags={config.key: config.tag for config in FLEET},
        recipes={config.key: "first" for config in FLEET},
        speeds={(config.key, isl): 0.0 for config in FLEET for isl, _ in config.sequences},
        accuracy={config.key: (config.accuracy, config.accuracy - 0.002) for config in FLEET},
    )


def after(state: State, bumps: Iterable[Bump]) -> State:
    """The state once the bumps are in force."""
    for bump in bumps:
        state = _applied(state, bump)
    return state


def _applied(state: State, bump: Bump) -> State:
    moved = {
        place: speed + math.log(bump.speed)
        for place, speed in state.speeds.items()
        if place[0] == bump.config and (not bump.inputs or place[1] in bump.inputs)
    }
    flexible, strict = state.accuracy[bump.config]
    return replace(
        state,
        tags={**state.tags, **({bump.config: bump.tag} if bump.tag else {})},
        recipes={**state.recipes, **({bump.config: bump.recipe} if bump.recipe else {})},
        speeds={**state.speeds, **moved},
        accuracy={**state.accuracy, bump.config: (flexible + bump.flexible, strict + bump.strict)},
    )
