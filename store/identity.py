"""Foreign spelling to ours: hardware, framework, model, precision, speculation, topology; exact, loud about unknowns.

A spelling that no table holds becomes `?spelling`: the row stays, equals only itself, and is named in every summary.
Tables follow the normalisers of the InferenceX dashboard and the labels that its configs ever used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from store.records import Layout, Role, Series

UNKNOWN = "?"

GPUS = frozenset("h100 h200 b200 b300 gb200 gb300 mi300x mi325x mi355x rtx6000pro rtx5090".split())

POOLS = frozenset("cw dgxc dgxc-slurm nb nv nvs nscale tw amds amd lat new dsv4 slurm p1 lab".split())
"""Suffixes that name a pool of machines: two pools of one GPU are not the same machine."""

LANES = frozenset("multinode multinode-slurm disagg trt".split())
"""Suffixes that name a queue of jobs on unnamed machines."""

FRAMEWORKS: Mapping[str, str] = MappingProxyType(
    {
        **{
            name: name
            for name in (
                "sglang vllm trt atom tilert torch-lab dynamo-sglang dynamo-trt dynamo-vllm mori-sglang mooncake-atom"
                " vllm-disagg llmd-vllm"
            ).split()
        },
        "trtllm": "trt",
        "dynamo-trtllm": "dynamo-trt",
        "sglang-disagg": "mori-sglang",
        "atom-disagg": "mooncake-atom",
    }
)

SPLIT_FRAMEWORKS = frozenset(
    "dynamo-sglang dynamo-trt dynamo-vllm mori-sglang mooncake-atom vllm-disagg llmd-vllm".split()
)
"""Engines that serve prefill and decode apart unless a row says otherwise."""

PRECISIONS: Mapping[str, str] = MappingProxyType(
    {
        "fp4": "fp4",
        "nvfp4": "fp4",
        "mxfp4": "fp4",
        "fp8": "fp8",
        "fp8block": "fp8",
        "mxfp8": "fp8",
        "bf16": "bf16",
        "int4": "int4",
    }
)

MODELS: Mapping[str, str] = MappingProxyType(
    {
        **{
            name: name
            for name in (
                "dsr1 dsv4 gptoss120b llama70b qwen3.5 qwen3.8next kimik2.5 kimik2.6 kimik2.7-code kimik3"
                " minimaxm2.5 minimaxm2.7 minimaxm3 glm5 glm5.1 glm5.2 dsv2lite gemma4 lab1.6b"
            ).split()
        },
        "gptoss": "gptoss120b",
        "dsv4pro": "dsv4",
        "kimik2.7": "kimik2.7-code",
        "deepseek-r1-0528": "dsr1",
    }
)
"""Model families by `infmax_model_prefix`. A point release is another model: no prefix is ever matched."""

MODEL_PATHS: Mapping[str, str] = MappingProxyType(
    {
        "deepseek-ai/deepseek-r1": "dsr1",
        "deepseek-ai/deepseek-r1-0528": "dsr1",
        "nvidia/deepseek-r1-0528-fp4": "dsr1",
        "nvidia/deepseek-r1-0528-fp4-v2": "dsr1",
        "nvidia/deepseek-r1-0528-nvfp4": "dsr1",
        "nvidia/deepseek-r1-0528-nvfp4-v2": "dsr1",
        "amd/deepseek-r1-0528-mxfp4": "dsr1",
        "amd/deepseek-r1-0528-mxfp4-preview": "dsr1",
        "amd/deepseek-r1-0528-mxfp4-asq": "dsr1",
        "deepseek-ai/deepseek-v4-pro": "dsv4",
        "openai/gpt-oss-120b": "gptoss120b",
        "gpt-oss-120b": "gptoss120b",
        "meta-llama/llama-3.3-70b-instruct": "llama70b",
        "nvidia/llama-3.3-70b-instruct-fp8": "llama70b",
        "nvidia/llama-3.3-70b-instruct-fp4": "llama70b",
        "amd/llama-3.3-70b-instruct-fp8-kv": "llama70b",
        "amd/llama-3.3-70b-instruct-mxfp4-preview": "llama70b",
    }
)
"""Served names of the eras that wrote no family name, lower case."""

SPECULATIONS: Mapping[str, str] = MappingProxyType(
    {"": "none", "none": "none", "mtp": "mtp", "draft_model": "draft_model", "eagle": "eagle"}
)

CONFIG_PREFIXES: Mapping[str, str] = MappingProxyType({"gptoss120b": "gptoss", "llama70b": "llama70b"})
"""Families whose config keys use another word than the store."""

_PRECISION_SUFFIX = re.compile(r"-(?:nv|mx)?fp[48](?:block)?$|-bf16$|-int4$")
_RUNNER_INDEX = re.compile(r"_[0-9]+$")


@dataclass(frozen=True, slots=True)
class Hardware:
    """A runner label resolved: GPU type and, when the label names one, the pool of machines."""

    gpu: str
    pool: str | None = None


@lru_cache(maxsize=4096)
def hardware(label: str) -> Hardware:
    """GPU and pool of a runner label; a label with an unknown part is unknown as a whole.

    >>> hardware("cluster:H200-dgxc"), hardware("mi355x-amd_0").gpu, hardware("b200-zeta9").gpu
    (Hardware(gpu='h200', pool='dgxc'), 'mi355x', '?b200-zeta9')
    """
    text = _lower(label)
    gpu, _, suffix = _RUNNER_INDEX.sub("", text.rpartition(":")[2]).partition("-")
    if not text.isascii() or gpu not in GPUS or (suffix and suffix not in POOLS | LANES):
        return Hardware(UNKNOWN + label.strip())
    return Hardware(gpu, suffix if suffix in POOLS else None)


def _look_up(table: Mapping[str, str], raw: str) -> str:
    return table.get(_lower(raw), UNKNOWN + raw.strip())


def _lower(text: str) -> str:
    """Small letters of ASCII alone: a Kelvin sign is no k, and a name with a look-alike in it is another name."""
    word = text.strip()
    return word.lower() if word.isascii() else word


@lru_cache(maxsize=4096)
def model(prefix: str | None, path: str | None) -> str:
    """Family of a row: its prefix (a precision suffix is no part of it), else its served name.

    >>> model("gptoss", None), model("glm5", "x"), model(None, "deepseek-ai/DeepSeek-R1-0528"), model("glm6", None)
    ('gptoss120b', 'glm5', 'dsr1', '?glm6')
    """
    word = (prefix or "").strip()
    low = _lower(word)
    if word and low != "unknown":
        return _look_up(MODELS, word if low in MODELS else _PRECISION_SUFFIX.sub("", low))
    served = (path or "").strip()
    return _look_up(MODEL_PATHS, served) if served else UNKNOWN


def framework(raw: str) -> str:
    """Canonical engine name.

    >>> framework("sglang-disagg"), framework("TRTLLM"), framework("mystery")
    ('mori-sglang', 'trt', '?mystery')
    """
    return _look_up(FRAMEWORKS, raw)


def precision(raw: str) -> str:
    """Canonical precision; `nvfp4` and `mxfp4` are two encodings of fp4.

    >>> precision("NVFP4"), precision("fp6")
    ('fp4', '?fp6')
    """
    return _look_up(PRECISIONS, raw)


def speculation(raw: str | None) -> str:
    """Canonical speculation; empty or absent is none."""
    return _look_up(SPECULATIONS, raw or "")


def layout(prefill: Role, decode: Role | None, *, multinode: bool, disagg: bool, engine: str) -> Layout:
    """One engine or two pools, whatever half of the row says so.

    Published single-node rows mirror one engine into both halves (workers 0/0 or 1/1, sometimes `disagg` true);
    a decode side with no parallelism (tp 0) is an aggregated deployment; early GB200 rows name all GPUs of the
    deployment as tp of both halves and no workers at all.

    >>> layout(Role(8, workers=1), Role(8, workers=1), multinode=False, disagg=True, engine="vllm").decode is None
    True
    """
    counted = engine in SPLIT_FRAMEWORKS and prefill.workers > 0
    apart = disagg and (multinode or counted or (decode is not None and _differs(prefill, decode)))
    if decode is None or decode.tp <= 0 or not apart:
        return Layout(_counted(prefill) if multinode else replace(prefill, workers=1), None, multinode)
    return Layout(_counted(prefill), _counted(decode), multinode)


def _differs(prefill: Role, decode: Role) -> bool:
    """Two halves that one engine could not have, worker counts aside."""
    return replace(prefill, workers=1) != replace(decode, workers=1) or max(prefill.workers, decode.workers) > 1


def _counted(role: Role) -> Role:
    return replace(role, workers=max(role.workers, 1), tp=max(role.tp, 1), ep=max(role.ep, 1))


def _role_text(role: Role) -> str:
    """`2xtp8-pp2-ep8-dpa`: what is 1 or off is left out, so that eras without a field agree with later ones."""
    parts = [f"{role.workers}x" * (role.workers > 1) + f"tp{role.tp}"]
    parts += [
        f"{name}{value}"
        for name, value in (("pp", role.pp), ("dcp", role.dcp), ("pcp", role.pcp), ("ep", role.ep))
        if value > 1
    ]
    return "-".join(parts + ["dpa"] * role.dp_attention + ([f"on:{role.hardware}"] if role.hardware else []))


def layout_text(shape: Layout) -> str:
    """Topology in one word: `tp8-ep8`, `mn:4xtp8`, `P2xtp8-ep8+D1xtp16`.

    >>> layout_text(Layout(Role(8, ep=8))), layout_text(Layout(Role(8, 8), Role(16, 16, True), True))
    ('tp8-ep8', 'mn:Ptp8-ep8+Dtp16-ep16-dpa')
    """
    sides = (
        _role_text(shape.prefill)
        if shape.decode is None
        else f"P{_role_text(shape.prefill)}+D{_role_text(shape.decode)}"
    )
    return ("mn:" if shape.multinode else "") + sides


def _word(value: str) -> str:
    """No blank inside a word of a key, so that keys stay unambiguous whatever a row says."""
    return "".join(f"%{ord(c):02x}" if c.isspace() or c == "%" else c for c in value) or "-"


def sequence_text(series: Series) -> str:
    """`8192/1024`, `agentic`, or `?` where an era did not say."""
    if series.scenario != "single_turn":
        return "agentic" if series.scenario == "agentic_traces" else _word(series.scenario)
    return f"{series.isl or '?'}/{series.osl or '?'}"


@lru_cache(maxsize=65536)
def curve_key(series: Series) -> str:
    """Text key of the curve of a series: equal texts if and only if the curves are equal.

    >>> one = Layout(Role(8))
    >>> curve_key(Series("dsr1", "h200", "sglang", "fp8", "none", "single_turn", 8192, 1024, False, one, 64))
    'dsr1 h200 sglang fp8 none 8192/1024 tp8'
    """
    words = (series.model, series.gpu, series.framework, series.precision, series.spec)
    sequence = sequence_text(series)
    tail = (sequence, _word(layout_text(series.layout)), *(("offload",) if series.offload else ()))
    return " ".join((*map(_word, words), *tail))


@lru_cache(maxsize=65536)
def series_key(series: Series) -> str:
    """Text key of a series: its curve and its concurrency."""
    return curve_key(series) if series.conc is None else f"{curve_key(series)} c{series.conc}"


@lru_cache(maxsize=65536)
def config_key(series: Series) -> str:
    """The config that a series belongs to, in the words of the master configs.

    >>> one = Layout(Role(8))
    >>> config_key(Series("gptoss120b", "h200", "vllm", "fp4", "mtp", "single_turn", 1024, 1024, False, one))
    'gptoss-fp4-h200-vllm-mtp'
    """
    words = [CONFIG_PREFIXES.get(series.model, series.model), series.precision, series.gpu, series.framework]
    words += ["agentic"] * (series.scenario == "agentic_traces") + ([series.spec] if series.spec != "none" else [])
    return "-".join(map(_word, words))


@lru_cache(maxsize=65536)
def group_key(series: Series) -> str:
    """Text key of everything that a dashboard draws as one line: the curve's words without the layout.

    >>> one = Layout(Role(8))
    >>> group_key(Series("dsr1", "h200", "sglang", "fp8", "none", "single_turn", 8192, 1024, True, one, 64))
    'dsr1 h200 sglang fp8 none 8192/1024 offload'
    """
    return group_of(curve_key(series))


def group_of(curve: str) -> str:
    """The group of a curve, by its text key."""
    words = curve.split(" ")
    return " ".join((*words[:6], *words[7:]))


def kin_of(curve: str) -> str:
    """What the curves of one engine on one kind of GPU share: the words of their keys up to speculation.

    >>> kin_of("dsr1 h200 sglang fp8 none 8192/1024 tp8")
    'dsr1 h200 sglang fp8 none'
    """
    return " ".join(curve.split(" ", 5)[:5])


def curve_of(series: Series) -> Series:
    """The series less its concurrency."""
    return replace(series, conc=None)


def unmapped(series: Series) -> tuple[tuple[str, str], ...]:
    """Fields whose spelling no table holds, with the spelling as it stood."""
    fields = ("model", "gpu", "framework", "precision", "spec")
    return tuple((name, getattr(series, name)[1:]) for name in fields if getattr(series, name).startswith(UNKNOWN))
