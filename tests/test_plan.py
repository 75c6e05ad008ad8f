"""Master configs: keys, images and expected points."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from store import identity, readers
from store.plan import concurrencies, matching, merge, parse, read
from store.records import Layout, Role

SINGLE = """\
dsr1-fp4-mi355x-sglang:
  image: lmsysorg/sglang:v0.5.12-rocm700-mi35x
  model: amd/DeepSeek-R1-0528-MXFP4-Preview
  model-prefix: dsr1
  runner: mi355x
  precision: fp4
  framework: sglang
  multinode: false
  scenarios:
    fixed-seq-len:
    - isl: 8192
      osl: 1024
      search-space:
      - { tp: 4, conc-start: 4, conc-end: 64 }
      - { tp: 8, ep: 8, dp-attn: true, conc-list: [64, 96], spec-decoding: mtp }
"""
AGENTIC = """\
dsv4-fp4-b200-vllm-agentic-mtp:
  image: nvcr.io#nvidia/vllm:v0.25.0
  model: deepseek-ai/DeepSeek-V4-Pro
  model-prefix: dsv4
  runner: cluster:b200-dgxc
  precision: fp4
  framework: vllm
  multinode: false
  scenarios:
    agentic-coding:
    - dram-utilization: 0.95
      search-space:
      - { tp: 8, kv-offloading: none, conc-list: [1, 4] }
      - { tp: 8, kv-offloading: dram, kv-offload-backend: { name: hicache }, conc-list: [4] }
"""
DISAGG = """\
dsr1-fp4-gb200-dynamo-trt:
  image: nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime:0.8.1.post1
  model: deepseek-r1-fp4
  model-prefix: dsr1
  runner: gb200
  precision: fp4
  framework: dynamo-trt
  router: { name: dynamo-router, version: "0.8.1" }
  kv-p2p-transfer: nixl
  multinode: true
  disagg: true
  scenarios:
    fixed-seq-len:
    - isl: 8192
      osl: 1024
      search-space:
      - spec-decoding: mtp
        conc-list: [66]
        prefill:
          num-worker: 2
          tp: 4
          ep: 4
          dp-attn: true
          additional-settings:
          - "CONFIG_FILE=recipes/a.yaml"
        decode: { num-worker: 3, tp: 8, ep: 8, dp-attn: false }
"""


def keys_of(text: str) -> list[str]:
    (config,) = parse(text.encode()).configs.values()
    return [identity.series_key(point) for point in config.points]


def test_a_range_doubles_and_a_list_is_taken_as_it_stands():
    head = "dsr1 mi355x sglang fp4"
    assert keys_of(SINGLE) == [
        *(f"{head} none 8192/1024 tp4 c{conc}" for conc in (4, 8, 16, 32, 64)),
        *(f"{head} mtp 8192/1024 tp8-ep8-dpa c{conc}" for conc in (64, 96)),
    ]


def test_agentic_points_have_no_lengths_and_know_offloading():
    head = "dsv4 b200 vllm fp4 none agentic tp8"
    assert keys_of(AGENTIC) == [f"{head} c1", f"{head} c4", f"{head} offload c4"]


def test_two_pools_and_one_engine_over_several_nodes():
    assert keys_of(DISAGG) == ["dsr1 gb200 dynamo-trt fp4 mtp 8192/1024 mn:P2xtp4-ep4-dpa+D3xtp8-ep8 c66"]
    one = DISAGG.replace("num-worker: 3", "num-worker: 0").replace("disagg: true", "disagg: false")
    (config,) = parse(one.encode()).configs.values()
    assert config.points[0].layout == Layout(Role(4, 4, True, 2), None, multinode=True)


def test_hardware_of_a_side_is_named_only_where_it_differs():
    mixed = DISAGG.replace("tp: 4\n", "tp: 4\n          hardware: h100\n").replace(
        "{ num-w", "{ hardware: gb200, num-w"
    )
    (config,) = parse(mixed.encode()).configs.values()
    layout = config.points[0].layout
    assert (layout.prefill.hardware, layout.decode and layout.decode.hardware) == ("h100", None)


def test_a_point_is_expected_under_the_key_that_its_row_is_delivered_under(tmp_path):
    latency = {"median_ttft": 0.2, "median_tpot": 0.01, "tput_per_gpu": 60.0}
    shared = {"infmax_model_prefix": "dsr1", "precision": "fp4", "isl": 8192, "osl": 1024, **latency}
    single = {"hw": "mi355x-amds_03", "framework": "sglang", "conc": 96, "tp": 8, "ep": 8, "dp_attention": "true"}
    pools = {
        **{"prefill_tp": 4, "prefill_ep": 4, "prefill_dp_attention": "true", "prefill_num_workers": 2},
        **{"decode_tp": 8, "decode_ep": 8, "decode_dp_attention": "false", "decode_num_workers": 3},
    }
    split = {"hw": "gb200", "framework": "dynamo-trt", "conc": 66, "is_multinode": True, "disagg": True, **pools}
    rows = [{**shared, **row, "spec_decoding": "mtp"} for row in (single, split)]
    (tmp_path / "agg_bmk.json").write_text(json.dumps(rows))
    (batch,) = readers.read([tmp_path])
    expected = [config.points[-1] for text in (SINGLE, DISAGG) for config in parse(text.encode()).configs.values()]
    assert [point.series for point in batch.points] == expected


def test_a_config_carries_its_image_in_canonical_form():
    plan = merge(parse(text.encode()) for text in (SINGLE, AGENTIC, DISAGG))
    assert [config.image for config in plan.configs.values()] == [
        "lmsysorg/sglang:v0.5.12-rocm700-mi35x",
        "nvcr.io/nvidia/vllm:v0.25.0",
        "nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime:0.8.1.post1",
    ]
    assert [config.key for config in plan.matching("*fp4-*b200-*")] == [*plan.configs][1:]
    assert plan.matching("dsr1-fp4") == ()


def test_one_point_of_two_recipes_is_expected_once():
    twice = SINGLE + "      - { tp: 4, conc-list: [4, 4, 5] }\n"
    assert len(keys_of(twice)) == len(set(keys_of(twice))) == 8


@pytest.mark.parametrize(
    ("text", "old", "new", "reason", "line"),
    [
        (SINGLE, "runner", "ruler", "unknown_field", 5),
        (SINGLE, "  runner: mi355x\n", "", "missing_field", 2),
        (SINGLE, "runner: mi355x", "runner: []", "not_text", 5),
        (SINGLE, "runner: mi355x", "image: x", "duplicate_field", 5),
        (SINGLE, "multinode: false", "multinode: no", "not_a_flag", 8),
        (SINGLE, "multinode: false", "multinode: false\n  disagg: true", "disagg_without_multinode", 2),
        (SINGLE, "fixed-seq-len", "fixed", "unknown_field", 11),
        (SINGLE, "isl: 8192", "isl: 8k", "not_a_count", 11),
        (SINGLE, "conc-end: 64", "conc-end: 64, conc-list: [1]", "conc_range_and_list", 14),
        (SINGLE, ", conc-end: 64", "", "conc_missing", 14),
        (SINGLE, "conc-start: 4", "conc-start: 65", "conc_range_backwards", 14),
        (SINGLE, "conc-start: 4", "conc-start: 0", "not_a_count", 14),
        (SINGLE, "[64, 96]", "[]", "not_a_list", 15),
        (SINGLE, "[64, 96]", "[64, x]", "not_a_count", 15),
        (SINGLE, "tp: 8", "tp: 8, dcp-size: 3", "dcp_does_not_divide_tp", 15),
        (SINGLE, "tp: 8", "tp: 8, prefill: {}", "unknown_field", 15),
        (SINGLE, "sglang:\n", "sg*:\n", "wildcard_as_key", 2),
        (SINGLE, "{ tp: 4, conc-start: 4, conc-end: 64 }", "4", "not_a_mapping", 14),
        (AGENTIC, "cluster:", "", "agentic_without_cluster", 10),
        (DISAGG, "  kv-p2p-transfer: nixl\n", "", "kv_transfer_missing", 16),
        (DISAGG, "conc-list: [66]", "conc-list: [66]\n        kv-p2p-transfer: nixl", "kv_transfer_twice", 17),
        (DISAGG, '"0.8.1"', '"image:x"', "router_version", 8),
        (DISAGG, "{ num-worker: 3", "{ hardware: h100, num-worker: 3", "one_sided_hardware", 17),
        (DISAGG, "num-worker: 2", "num-worker: 0", "not_a_count", 20),
        (DISAGG, "        decode: {", "        encode: {", "unknown_field", 26),
    ],
)
def test_a_broken_config_is_one_rejection_and_its_neighbours_stay(text, old, new, reason, line):
    neighbour = SINGLE.replace("dsr1-fp4-mi355x-sglang", "other")
    assert old in text
    plan = parse((text.replace(old, new, 1) + neighbour).encode(), "amd-master.yaml")
    (flaw,) = plan.rejections
    assert (flaw.reason, str(flaw.place)) == (reason, f"amd-master.yaml[{line}]")
    assert plan.configs.keys() == {"other"}
    assert plan.keys == {"other", text.replace(old, new, 1).split(":")[0]}, "a broken config is no unknown key"


@pytest.mark.parametrize("scenarios", ["{}", "fixed-seq-len: [{ isl: 1, osl: 1 }]"])
def test_a_config_that_asks_for_no_point_is_broken(scenarios):
    text = SINGLE.partition("    fixed-seq-len")[0] + f"    {scenarios}\n"
    assert [flaw.reason for flaw in parse(text.encode()).rejections] == ["no_points"]


@pytest.mark.parametrize(
    ("data", "reason"), [(b"a: [", "syntax"), (b"- a", "not_a_mapping"), (b"\xff", "not_utf8"), (b"", "not_a_mapping")]
)
def test_a_file_that_is_no_master_config_is_one_rejection(data, reason):
    plan = parse(data)
    assert [flaw.reason for flaw in plan.rejections] == [reason]
    assert not plan.keys


def test_a_key_that_stands_twice_is_rejected_once():
    assert [flaw.reason for flaw in parse((SINGLE + SINGLE).encode()).rejections] == ["duplicate_key"]
    plan = merge([parse(SINGLE.encode()), parse(SINGLE.encode())])
    assert [(flaw.field, flaw.reason) for flaw in plan.rejections] == [("dsr1-fp4-mi355x-sglang", "duplicate_key")]
    assert len(plan.configs) == 1


@given(st.integers(1, 5000), st.integers(0, 5000))
def test_a_range_begins_and_ends_where_it_says_and_doubles_in_between(start, more):
    steps = concurrencies(start, start + more)
    assert (steps[0], steps[-1]) == (start, start + more)
    assert all(after == 2 * before for before, after in pairwise(steps[:-1]))
    assert all(before < after <= 2 * before for before, after in pairwise(steps))


@given(st.text("ab*", max_size=6), st.lists(st.text("ab", max_size=5), max_size=5))
def test_a_wildcard_matches_as_its_slow_twin(pattern, keys):
    def slow(pattern: str, key: str) -> bool:
        if not pattern:
            return not key
        if pattern[0] == "*":
            return any(slow(pattern[1:], key[cut:]) for cut in range(len(key) + 1))
        return key[:1] == pattern[0] and slow(pattern[1:], key[1:])

    assert list(matching(pattern, keys)) == [k for k in keys if slow(pattern, k)][: None if "*" in pattern else 1]


@given(
    st.integers(0, len(DISAGG)), st.integers(0, 40), st.sampled_from(["", "x", ": ", "\n", "- ", "&a ", "*a", "[", "{"])
)
def test_a_damaged_file_is_read_or_rejected_but_never_raises(place, length, piece):
    plan = parse((DISAGG[:place] + piece + DISAGG[place + length :]).encode())
    assert plan.configs or plan.rejections


@pytest.mark.shared
def test_the_real_master_configs_are_read_whole(shared: Path):
    folder = shared / "data/inferencex/configs"
    plan = read([folder / "nvidia-master.yaml", folder / "amd-master.yaml"])
    points = [point for config in plan.configs.values() for point in config.points]
    fixed = [point for point in points if point.scenario == "single_turn"]
    assert plan.rejections == ()
    assert (len(plan.configs), len(fixed), len(points) - len(fixed)) == (208, 1331, 746)
    assert not [pair for point in points for pair in identity.unmapped(point)]
    kinds = [(config.multinode, config.disagg) for config in plan.configs.values()]
    assert [kinds.count(kind) for kind in ((False, False), (True, True), (True, False))] == [114, 73, 21]
    # One of the 1,332 fixed-sequence points is the point of two recipes.
    assert _fixed_points(folder) == 1332


def _fixed_points(folder: Path) -> int:
    """The slow way: every concurrency of every item, from what a plain YAML reader gives."""
    count = 0
    for name in ("nvidia-master.yaml", "amd-master.yaml"):
        for raw in yaml.load((folder / name).read_bytes(), Loader=yaml.CSafeLoader).values():
            for scenario in raw["scenarios"].get("fixed-seq-len", ()):
                for item in scenario["search-space"]:
                    conc, count = item.get("conc-start"), count + len(item.get("conc-list", ()))
                    while conc is not None:
                        count, conc = count + 1, min(2 * conc, item["conc-end"]) if conc < item["conc-end"] else None
    return count
