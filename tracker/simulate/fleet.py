"""The simulated fleet: which configs exist, on which machines, and the jobs that a full sweep of them runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from store import identity
from store.records import Layout, Role, Series

EIGHT, ONE = (8192, 1024), (1024, 1024)
LOW, WIDE = (4, 8, 16, 32, 64), (4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True)
class Topology:
    """A search-space item: one deployment and the concurrencies at which it is measured."""

    concs: tuple[int, ...]
    prefill: Role
    decode: Role | None = None


@dataclass(frozen=True)
class Config:
    """One master config.

    `step` is seconds per output token of one user, `prefill` input tokens per second of a deployment.
    """

    key: str
    hw: str
    runner: str
    model: str
    prefix: str
    framework: str
    precision: str
    repository: str
    tag: str
    step: float
    prefill: float
    topologies: tuple[Topology, ...]
    sequences: tuple[tuple[int, int], ...] = (ONE, EIGHT)
    spec: str = "none"
    accuracy: float = 0.955
    watts: float | None = None
    """Power of a busy GPU; None where the runners measure none."""
    noise: float = 1.0
    """How many times noisier than the fleet its points are."""
    joins: int | None = None
    """Nights before the last at which the config was added; None for one that was always there."""

    @property
    def multinode(self) -> bool:
        return self.topologies[0].decode is not None

    @property
    def pool(self) -> str | None:
        """Pool of its machines, as the readers will name it."""
        return identity.hardware(self.hw).pool

    @property
    def cluster(self) -> str:
        """Name of the machines as the job statistics write it."""
        return self.hw.removeprefix("cluster:")


@dataclass(frozen=True)
class Job:
    """One point to be measured: a config, a topology of it, a workload and a concurrency."""

    config: Config
    topology: Topology
    isl: int
    osl: int
    conc: int
    layout: Layout = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        shape = identity.layout(
            self.topology.prefill,
            self.topology.decode,
            multinode=self.config.multinode,
            disagg=self.config.multinode,
            engine=identity.framework(self.config.framework),
        )
        object.__setattr__(self, "layout", shape)

    @property
    def is_last(self) -> bool:
        """True at the highest concurrency of its topology."""
        return self.conc == max(self.topology.concs)

    @cached_property
    def series(self) -> Series:
        """The series as the readers will name it."""
        return Series(
            model=identity.model(self.config.prefix, self.config.model),
            gpu=identity.hardware(self.config.hw).gpu,
            framework=identity.framework(self.config.framework),
            precision=identity.precision(self.config.precision),
            spec=identity.speculation(self.config.spec),
            scenario="single_turn",
            isl=self.isl,
            osl=self.osl,
            offload=False,
            layout=self.layout,
            conc=self.conc,
        )

    @cached_property
    def key(self) -> str:
        return identity.series_key(self.series)

    @cached_property
    def curve(self) -> str:
        return identity.curve_key(self.series)


def _one(tp: int, concs: tuple[int, ...], ep: int = 1, dp_attention: bool = False) -> Topology:
    return Topology(concs, Role(tp, ep, dp_attention))


_R1, _OSS, _QWEN = "deepseek-ai/DeepSeek-R1-0528", "openai/gpt-oss-120b", "Qwen/Qwen3.5-397B-A17B-FP8"

FLEET = (
    Config(
        key="dsr1-fp8-h200-sglang",
        hw="cluster:h200-dgxc",
        runner="h200-dgxc-slurm_1",
        model=_R1,
        prefix="dsr1",
        framework="sglang",
        precision="fp8",
        repository="lmsysorg/sglang",
        tag="v0.5.12-cu130",
        step=0.0112,
        prefill=62_000.0,
        topologies=(_one(8, LOW),),
    ),
    Config(
        key="dsr1-fp4-b200-sglang",
        hw="cluster:b200-nscale",
        runner="b200-nscale_3",
        model="nvidia/DeepSeek-R1-0528-FP4-V2",
        prefix="dsr1",
        framework="sglang",
        precision="fp4",
        repository="lmsysorg/sglang",
        tag="v0.5.13-cu130",
        step=0.0078,
        prefill=98_000.0,
        topologies=(_one(4, (4, 8, 16, 32)), _one(4, (64, 128, 256), 4, True)),
        watts=910.0,
    ),
    Config(
        key="dsr1-fp8-b200-trt",
        hw="cluster:b200-dgxc",
        runner="b200-dgxc_2",
        model=_R1,
        prefix="dsr1",
        framework="trt",
        precision="fp8",
        repository="nvcr.io#nvidia/tensorrt-llm/release",
        tag="1.3.0rc12",
        step=0.0071,
        prefill=105_000.0,
        topologies=(_one(8, LOW, 8),),
    ),
    Config(
        key="dsr1-fp4-mi355x-sglang",
        hw="cluster:mi355x-amds",
        runner="mi355x-amds_0",
        model="amd/DeepSeek-R1-0528-MXFP4-Preview",
        prefix="dsr1",
        framework="sglang",
        precision="fp4",
        repository="lmsysorg/sglang",
        tag="v0.5.14-rocm720-mi35x",
        step=0.0094,
        prefill=80_000.0,
        topologies=(_one(4, LOW), _one(8, LOW)),
        watts=1150.0,
    ),
    Config(
        key="dsr1-fp4-mi355x-atom",
        hw="cluster:mi355x-amds",
        runner="mi355x-amds_4",
        model="amd/DeepSeek-R1-0528-MXFP4-Preview",
        prefix="dsr1",
        framework="atom",
        precision="fp4",
        repository="rocm/atom",
        tag="rocm7.2.4_ubuntu24.04_py3.12_pytorch_release_2.10.0_atom0.1.3",
        step=0.0088,
        prefill=84_000.0,
        topologies=(_one(8, WIDE),),
    ),
    Config(
        key="gptoss-fp4-h200-vllm",
        hw="cluster:h200-nb",
        runner="h200-nb_1",
        model=_OSS,
        prefix="gptoss",
        framework="vllm",
        precision="fp4",
        repository="vllm/vllm-openai",
        tag="v0.21.0",
        step=0.0045,
        prefill=150_000.0,
        topologies=(_one(2, LOW), _one(8, LOW)),
    ),
    Config(
        key="gptoss-fp4-b200-vllm",
        hw="cluster:b200-nscale",
        runner="b200-nscale_1",
        model=_OSS,
        prefix="gptoss",
        framework="vllm",
        precision="fp4",
        repository="vllm/vllm-openai",
        tag="v0.21.0",
        step=0.0032,
        prefill=260_000.0,
        topologies=(_one(1, WIDE), _one(4, WIDE)),
    ),
    Config(
        key="dsv4-fp8-h200-vllm-mtp",
        hw="cluster:h200-dgxc",
        runner="h200-dgxc-slurm_2",
        model="deepseek-ai/DeepSeek-V4-Pro",
        prefix="dsv4",
        framework="vllm",
        precision="fp8",
        repository="vllm/vllm-openai",
        tag="v0.21.0",
        step=0.0066,
        prefill=70_000.0,
        topologies=(_one(8, LOW, 8),),
        sequences=(EIGHT,),
        spec="mtp",
    ),
    Config(
        key="qwen3.5-fp8-mi355x-sglang",
        hw="cluster:mi355x-amds",
        runner="mi355x-amds_2",
        model=_QWEN,
        prefix="qwen3.5",
        framework="sglang",
        precision="fp8",
        repository="lmsysorg/sglang",
        tag="v0.5.14-rocm720-mi35x",
        step=0.0079,
        prefill=110_000.0,
        topologies=(_one(4, WIDE),),
        accuracy=0.9695,
    ),
    Config(
        key="qwen3.5-fp8-b200-sglang",
        hw="cluster:b200-dgxc",
        runner="b200-dgxc_5",
        model=_QWEN,
        prefix="qwen3.5",
        framework="sglang",
        precision="fp8",
        repository="lmsysorg/sglang",
        tag="v0.5.14-cu130",
        step=0.0068,
        prefill=130_000.0,
        topologies=(_one(4, WIDE), _one(8, LOW, 8)),
        accuracy=0.9695,
        watts=890.0,
    ),
    Config(
        key="dsr1-fp4-gb200-dynamo-trt-mtp",
        hw="cluster:gb200-nv",
        runner="gb200-nv_0",
        model="deepseek-r1-fp4",
        prefix="dsr1",
        framework="dynamo-trt",
        precision="fp4",
        repository="nvcr.io#nvidia/ai-dynamo/tensorrtllm-runtime",
        tag="0.8.1",
        step=0.0052,
        prefill=240_000.0,
        topologies=(
            Topology((16, 32, 64), Role(4, 4, True), Role(8, 8, False, 4)),
            Topology((64, 128, 256), Role(4, 4, True, 2), Role(16, 16, True)),
        ),
        spec="mtp",
    ),
    Config(
        key="qwen3.5-fp8-h100-sglang",
        hw="cluster:h100-cw",
        runner="h100-cw_3",
        model=_QWEN,
        prefix="qwen3.5",
        framework="sglang",
        precision="fp8",
        repository="lmsysorg/sglang",
        tag="v0.5.13-cu130",
        step=0.0131,
        prefill=45_000.0,
        topologies=(_one(8, (4, 8, 16)),),
        sequences=(EIGHT,),
        accuracy=0.9695,
        noise=15.0,
        joins=4,
    ),
    Config(
        key="qwen3.5-fp8-b300-sglang",
        hw="cluster:b300-nv",
        runner="b300-nv_1",
        model=_QWEN,
        prefix="qwen3.5",
        framework="sglang",
        precision="fp8",
        repository="lmsysorg/sglang",
        tag="v0.5.15-cu130",
        step=0.0061,
        prefill=140_000.0,
        topologies=(_one(4, LOW),),
        sequences=(EIGHT,),
        accuracy=0.9695,
        joins=0,
    ),
)
"""Keys, labels and images are made after real ones; every number is invented."""

CONFIGS = {config.key: config for config in FLEET}


def _jobs() -> Iterator[Job]:
    for config in FLEET:
        for isl, osl in config.sequences:
            for topology in config.topologies:
                yield from (Job(config, topology, isl, osl, conc) for conc in topology.concs)


JOBS = tuple(_jobs())
"""Every job of a full sweep, in the order of the fleet."""
