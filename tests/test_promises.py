"""What a run promised: points and evals of its changelog's keys under the labels of its pull request."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.identity import series_key
from store.plan import merge, parse
from store.promises import expected
from store.records import ChangelogEntry, JobRun

HEAD = """\
{key}:
  image: {image}
  model: deepseek-ai/DeepSeek-R1-0528
  model-prefix: dsr1
  runner: {runner}
  precision: fp8
  framework: {framework}
  multinode: {multinode}
"""
FIXED = """\
  scenarios:
    fixed-seq-len:
    - isl: {isl}
      osl: 1024
      search-space:
"""


def config(key, *items, isl=8192, runner="h200", framework="sglang", multinode="false", image="a/b:1", more=""):
    head = HEAD.format(key=key, image=image, runner=runner, framework=framework, multinode=multinode)
    return head + more + FIXED.format(isl=isl) + "".join(f"      - {item}\n" for item in items)


def agentic(key, *items, runner="cluster:b200-dgxc", multinode="false"):
    head = HEAD.format(key=key, image="a/b:1", runner=runner, framework="vllm", multinode=multinode)
    space = "".join(f"      - {item}\n" for item in items)
    return f"{head}  scenarios:\n    agentic-coding:\n    - dram-utilization: 0.9\n      search-space:\n{space}"


def plan(*texts):
    return merge(parse(text.encode(), any_era=True) for text in texts)


def entry(*keys, **changes):
    return ChangelogEntry(keys, ("x",), "", **changes)


def points(found):
    return [short(one) for one in found if one.task is None]


def evals(found):
    return [short(one) for one in found if one.task is not None]


def short(one):
    text = series_key(one.series).replace("8192/1024 ", "").replace("dsr1 h200 sglang fp8 none ", "")
    return text if one.task in (None, "gsm8k") else f"{text} {one.task}"


TWO = config(
    "dsr1-fp8-h200-sglang",
    "{ tp: 4, conc-start: 4, conc-end: 32 }",
    "{ tp: 8, conc-list: [16, 64, 128] }",
)
NODES = config(
    "dsr1-fp8-gb200-dynamo-sglang",
    "{ conc-list: [8, 16, 64], prefill: { num-worker: 1, tp: 4 }, decode: { num-worker: 1, tp: 8, ep: 8 } }",
    "{ conc-list: [32], prefill: { num-worker: 1, tp: 4 }, decode: { num-worker: 1, tp: 8, ep: 8 } }",
    "{ conc-list: [1, 2], prefill: { num-worker: 1, tp: 4, ep: 4 }, decode: { num-worker: 2, tp: 8 } }",
    runner="gb200",
    framework="dynamo-sglang",
    multinode="true",
    more="  disagg: true\n  kv-p2p-transfer: nixl\n",
)


def test_a_key_promises_every_point_of_its_config_with_its_image():
    found = expected(plan(TWO, NODES), [entry("dsr1-fp8-h200-sglang")], event="push")
    assert points(found) == [*(f"tp4 c{c}" for c in (4, 8, 16, 32)), *(f"tp8 c{c}" for c in (16, 64, 128))]
    assert {(one.key, one.image) for one in found} == {("dsr1-fp8-h200-sglang", "a/b:1")}


@pytest.mark.parametrize("key", ["dsr1-*", "*", "dsr1-fp8-h200-sglang"])
def test_wildcards_name_keys(key):
    assert "tp8 c128" in points(expected(plan(TWO, NODES), [entry(key)]))


def test_a_key_that_no_config_has_promises_nothing_and_an_engine_may_have_its_database_name():
    disagg = NODES.replace("dsr1-fp8-gb200-dynamo-sglang:", "dsr1-fp8-mi355x-sglang-disagg:")
    assert expected(plan(disagg), [entry("dsr1-fp8-mi355x-vllm")]) == ()
    assert expected(plan(disagg), [entry("dsr1-fp8-mi355x-mori-sglang")])


@pytest.mark.parametrize(
    ("event", "labels", "is_trimmed"),
    [
        ("pull_request", ["sweep-enabled"], True),
        ("pull_request", ["sweep-enabled", "full-sweep-enabled"], False),
        ("pull_request", ["full-sweep-fail-fast"], False),
        ("pull_request", ["sweep-enabled", "agentx-fast"], True),
        ("pull_request", ["full-sweep-fail-fast-no-canary"], False),
        ("push", ["sweep-enabled"], False),
        ("workflow_dispatch", ["sweep-enabled"], True),
    ],
)
def test_one_label_trims_each_group_to_its_lowest_concurrency(event, labels, is_trimmed):
    whole = expected(plan(TWO, NODES), [entry("*")], event="push")
    found = expected(plan(TWO, NODES), [entry("*")], labels, event)
    assert evals(found) == evals(whole)
    assert (points(found) != points(whole)) == is_trimmed
    if is_trimmed:
        lowest = ["mn:Ptp4+Dtp8-ep8 c8", "mn:Ptp4+Dtp8-ep8 c32", "mn:Ptp4-ep4+D2xtp8 c1"]
        assert points(found) == ["tp4 c4", "tp8 c16", *(f"dsr1 gb200 dynamo-sglang fp8 none {one}" for one in lowest)]


def test_items_of_one_engine_that_differ_in_concurrency_alone_are_one_group():
    apart = config("k", "{ tp: 8, conc-list: [64] }", "{ tp: 8, conc-list: [4] }")
    other = config("k", "{ tp: 8, conc-list: [64], router: { name: x, version: y } }", "{ tp: 8, conc-list: [4] }")
    trimmed = [points(expected(plan(text), [entry("k")], ["sweep-enabled"])) for text in (apart, other)]
    assert trimmed == [["tp8 c4"], ["tp8 c64", "tp8 c4"]]


def test_the_highest_and_the_median_concurrency_of_a_group_are_evaluated():
    found = expected(plan(TWO), [entry("*")])
    # 16, 32, 64, 128 are eligible over both parallelisms: 64 is their (upper) median.
    assert evals(found) == ["tp8 c64", "tp8 c128"]
    alone = config("k", "{ tp: 4, conc-list: [16, 32, 64] }", "{ tp: 8, conc-list: [32, 64], dp-attn: true }")
    assert evals(expected(plan(alone), [entry("k")])) == ["tp4 c32", "tp4 c64", "tp8-dpa c64"]


def test_several_nodes_are_evaluated_once_per_topology_at_the_highest_eligible_concurrency():
    name = "dsr1 gb200 dynamo-sglang fp8 none mn:Ptp4+Dtp8-ep8"
    assert evals(expected(plan(NODES), [entry("*")])) == [f"{name} c64"]


@pytest.mark.parametrize(
    "text", [config("k", "{ tp: 8, conc-list: [4, 8] }"), config("k", "{ tp: 8, conc-list: [64] }", isl=1024)]
)
def test_low_concurrencies_and_other_lengths_have_no_eval(text):
    assert evals(expected(plan(text), [entry("k")])) == []


@pytest.mark.parametrize("way", ["label", "entry"])
@pytest.mark.parametrize(("kind", "number"), [("evals-only", 2), ("all-evals", 7)])
def test_evals_alone_leave_no_throughput(kind, number, way):
    labels = [kind] if way == "label" else []
    asked = entry("*", **({kind.replace("-", "_"): True} if way == "entry" else {}))
    found = expected(plan(TWO), [asked], labels, "pull_request")
    assert (points(found), len(evals(found))) == ([], number)


def test_agentic_evals_are_opted_in():
    one = agentic("a", "{ tp: 8, conc-list: [1, 4] }", "{ tp: 4, conc-list: [4] }")
    side = "{ num-worker: 1, tp: 8 }"
    many = agentic("b", f"{{ conc-list: [16, 8], prefill: {side}, decode: {side} }}", multinode="true").replace(
        "  multinode: true\n", "  multinode: true\n  disagg: true\n"
    )
    both = plan(one, many)
    assert evals(expected(both, [entry("*")])) == []
    subset = evals(expected(both, [entry("*", evals_only=True)]))
    assert [text.split(" agentic ")[1] for text in subset] == ["tp8 c4", "mn:Ptp8+Dtp8 c16 swebench_lite"]
    every = evals(expected(both, [entry("*", all_evals=True)]))
    assert [text.split(" agentic ")[1] for text in every] == [
        "tp8 c1",
        "tp8 c4",
        "tp4 c4",
        "mn:Ptp8+Dtp8 c16 swebench_lite",
    ]


def test_an_entry_may_restrict_scenarios_and_the_prefill_of_its_evals():
    both = plan(TWO, agentic("a", "{ tp: 8, conc-list: [1] }"))
    assert len(points(expected(both, [entry("*", scenario_types=("agentic-coding",))]))) == 1
    assert len(points(expected(both, [entry("*", scenario_types=("fixed-seq-len",))]))) == 7
    assert evals(expected(plan(NODES), [entry("*", eval_min_prefill_ep=4)])) == []


def test_each_key_is_run_once_and_wide_evals_come_first():
    found = expected(plan(TWO), [entry("*"), entry("dsr1-fp8-h200-sglang", all_evals=True)])
    assert (points(found), len(evals(found))) == ([], 7)
    assert expected(plan(TWO), [entry("*"), entry("*")]) == expected(plan(TWO), [entry("*")])


def test_added_points_are_those_that_the_jobs_name():
    jobs = [JobRun("single-node 8k1k / p1 | dsr1 fp8 h200 sgl TP8 c64", conclusion="failure"), JobRun("setup")]
    asked = [entry("*", append_only=True)]
    assert points(expected(plan(TWO), asked, jobs=jobs)) == ["tp8 c64"]
    assert expected(plan(TWO), asked) == ()


def test_a_nightly_sweeps_every_key_and_other_runs_without_a_changelog_promise_nothing():
    found = expected(plan(TWO, NODES), [], event="schedule")
    assert (len(points(found)), evals(found)) == (13, [])
    assert expected(plan(TWO, NODES), [], event="workflow_dispatch") == ()


OLD = """\
dsr1-fp8-h200-sglang:
  image: a/b:1
  model: deepseek-ai/DeepSeek-R1-0528
  model-prefix: dsr1
  runner: h200
  precision: fp8
  framework: sglang
  seq-len-configs:
  - isl: 8192
    osl: 1024
    search-space:
    - { tp: 8, conc-start: 4, conc-end: 64 }
"""


def test_configs_before_scenarios_are_read_where_any_era_may_come():
    assert len(points(expected(plan(OLD), [entry("*")]))) == 5
    assert [flaw.reason for flaw in parse(OLD.encode()).rejections] == ["unknown_field"]


KEYS = ["dsr1-fp8-h200-sglang", "dsr1-*", "*", "nothing"]
ENTRIES = st.builds(
    ChangelogEntry,
    st.lists(st.sampled_from(KEYS), max_size=2).map(tuple),
    st.just(()),
    st.just(""),
    evals_only=st.booleans(),
    all_evals=st.booleans(),
    append_only=st.booleans(),
    scenario_types=st.sampled_from([(), ("fixed-seq-len",), ("other",)]),
)
LABELS = st.lists(st.sampled_from(["sweep-enabled", "full-sweep-enabled", "evals-only", "all-evals", "x"]), max_size=3)


@given(st.lists(ENTRIES, max_size=3), LABELS, st.sampled_from(["push", "pull_request", "schedule", None]))
def test_a_promise_is_part_of_the_configs_and_names_nothing_twice(entries, labels, event):
    both = plan(TWO, NODES)
    found = expected(both, entries, labels, event)
    assert len(found) == len(set(found))
    assert {one.series for one in found} <= {point for one in both.configs.values() for point in one.points}
    full = expected(both, [replace(one, evals_only=False, all_evals=False) for one in entries], [], event)
    assert set(points(found)) <= set(points(full))
