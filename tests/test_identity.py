"""Foreign spellings become ours exactly, or stay what they are and say so."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import identity
from store.records import Layout, Role, Series

SERIES = Series("dsr1", "h200", "sglang", "fp8", "none", "single_turn", 8192, 1024, False, Layout(Role(8)), 64)


@pytest.mark.parametrize(
    ("label", "gpu", "pool"),
    [
        ("h200", "h200", None),
        ("h200-dgxc-slurm", "h200", "dgxc-slurm"),
        ("h200-dgxc-slurm_1", "h200", "dgxc-slurm"),
        ("gb300-cw", "gb300", "cw"),
        ("cluster:b300-nv", "b300", "nv"),
        ("CLUSTER:H100-DGXC", "h100", "dgxc"),
        ("mi355x-amd_0", "mi355x", "amd"),
        ("b200-multinode", "b200", None),
        ("mi355x-disagg", "mi355x", None),
        ("rtx6000pro-lat", "rtx6000pro", "lat"),
        ("b200-zeta9", "?b200-zeta9", None),
        ("tpuv7", "?tpuv7", None),
        ("", "?", None),
    ],
)
def test_a_runner_label_is_a_gpu_and_a_pool_or_unknown_as_a_whole(label: str, gpu: str, pool: str | None) -> None:
    assert identity.hardware(label) == identity.Hardware(gpu, pool)


@pytest.mark.parametrize(
    ("prefix", "path", "expected"),
    [
        ("glm5", None, "glm5"),
        ("glm5.1", None, "glm5.1"),
        ("glm5.3", None, "?glm5.3"),
        ("gptoss", "openai/gpt-oss-120b", "gptoss120b"),
        ("dsr1-fp4", None, "dsr1"),
        ("kimik2.7", None, "kimik2.7-code"),
        ("DeepSeek-R1-0528", None, "dsr1"),
        ("unknown", "deepseek-ai/DeepSeek-R1-0528", "dsr1"),
        (None, "deepseek-ai/DeepSeek-R1-0528-Distill", "?deepseek-ai/DeepSeek-R1-0528-Distill"),
        (None, None, "?"),
    ],
)
def test_a_model_is_found_by_its_exact_name_never_by_a_prefix(prefix: str, path: str, expected: str) -> None:
    assert identity.model(prefix, path) == expected


@pytest.mark.parametrize(
    ("prefill", "decode", "multinode", "disagg", "engine", "text"),
    [
        (Role(8), None, False, False, "sglang", "tp8"),
        (Role(8, 8), Role(8, 8), False, True, "vllm", "tp8-ep8"),
        (Role(4, workers=0), Role(4, workers=0), False, False, "sglang", "tp4"),
        (Role(36, workers=0), Role(36, workers=0), False, True, "dynamo-trt", "tp36"),
        (Role(4), Role(4), False, True, "mori-sglang", "Ptp4+Dtp4"),
        (Role(8, 8, True, 1), Role(0, 0, True, 0), True, False, "dynamo-vllm", "mn:tp8-ep8-dpa"),
        (Role(8, 8, True, 2), Role(16, 16, True, 1), True, True, "dynamo-vllm", "mn:P2xtp8-ep8-dpa+Dtp16-ep16-dpa"),
        (Role(8, workers=2), Role(8, workers=1), False, True, "mori-sglang", "P2xtp8+Dtp8"),
    ],
)
def test_a_topology_is_one_engine_or_two_pools_whatever_half_says_so(
    prefill: Role, decode: Role | None, multinode: bool, disagg: bool, engine: str, text: str
) -> None:
    shape = identity.layout(prefill, decode, multinode=multinode, disagg=disagg, engine=engine)
    assert identity.layout_text(shape) == text


def test_gpus_of_a_layout_are_not_multiplied_by_expert_parallelism() -> None:
    assert Layout(Role(8, ep=8)).gpus == 8
    assert Layout(Role(4, workers=2), Role(8, pp=2), multinode=True).gpus == 24


roles = st.builds(
    Role,
    tp=st.sampled_from([1, 4, 8]),
    ep=st.sampled_from([1, 8]),
    dp_attention=st.booleans(),
    workers=st.sampled_from([1, 2]),
    pp=st.sampled_from([1, 2]),
    hardware=st.sampled_from([None, "h200"]),
)
words = st.sampled_from(["dsr1", "glm5", "?", "?a b", "?a%20b", "none"])
many_series = st.builds(
    Series,
    model=words,
    gpu=words,
    framework=words,
    precision=words,
    spec=words,
    scenario=st.sampled_from(["single_turn", "agentic_traces"]),
    isl=st.just(1024),
    osl=st.sampled_from([None, 1024]),
    offload=st.booleans(),
    layout=st.builds(Layout, roles, st.none() | roles, st.booleans()),
    conc=st.none() | st.sampled_from([1, 64]),
)


@given(many_series, many_series)
def test_two_series_have_one_key_only_if_they_are_one(one: Series, other: Series) -> None:
    agentic = [replace(s, isl=None, osl=None) if s.scenario == "agentic_traces" else s for s in (one, other)]
    assert (identity.series_key(agentic[0]) == identity.series_key(agentic[1])) == (agentic[0] == agentic[1])


def test_a_config_is_named_in_the_words_of_the_master_configs() -> None:
    assert identity.config_key(SERIES) == "dsr1-fp8-h200-sglang"
    assert identity.config_key(replace(SERIES, spec="mtp")) == "dsr1-fp8-h200-sglang-mtp"
    assert identity.config_key(replace(SERIES, scenario="agentic_traces")) == "dsr1-fp8-h200-sglang-agentic"


def test_unknown_spellings_are_named_field_by_field() -> None:
    odd = replace(SERIES, gpu="?b200-zeta9", framework="?mystery")
    assert identity.unmapped(odd) == (("gpu", "b200-zeta9"), ("framework", "mystery"))
    assert identity.unmapped(SERIES) == ()
