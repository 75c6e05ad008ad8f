"""Names of sweep jobs of all eras: what they say, and which job stands for which point."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.plan import parse as parse_configs
from store.records import Expected, JobRun, Layout, Role, Series
from store.titles import attribute, parse

ONE = Series(
    "dsr1", "h200", "sglang", "fp8", "none", "single_turn", 8192, 1024, False, Layout(Role(8), None, False), 64
)
SPLIT = Layout(Role(1, 2, True, 3), Role(1, 16, True, 1), True)
POOLS = replace(ONE, model="minimaxm3", gpu="gb300", framework="dynamo-vllm", layout=SPLIT, conc=16)
AGENT = replace(ONE, scenario="agentic_traces", isl=None, osl=None, gpu="b200", framework="vllm", precision="fp4")


def want(series=ONE, task=None):
    return Expected("key", series, "a/b:1", task)


def of(series, *names):
    """The name that stands for a point among these, all of which passed."""
    found = attribute([JobRun(name, conclusion="success") for name in names], [want(series)])
    return found[want(series)].name if found else None


@pytest.mark.parametrize(
    ("name", "series"),
    [
        ("single-node 8k1k / p7 | dsr1 fp8 h200 sgl TP8 c64", ONE),
        ("single-node 8k1k / klaud | p7.5 | dsr1 fp8 cluster:h200-dgxc sgl TP8   c64 | eval", ONE),
        ("canary / p9 | dsr1 fp8 h200 sgl TP8 c64", ONE),
        ("dsr1_8k1k h200-nv fp8 tp=8 ep=1 dpa=false conc=64", ONE),
        ("sweep / dsr1_8k1k fp8 h200 sglang | tp8/ep1/dpafalse | disagg-false spec-none conc-64", ONE),
        (
            "single-node 8k1k / p7 | dsr1 fp8 h200 sgl TP4/PP2/DCP2/PCP2/EP4/DPA mtp c64",
            replace(ONE, spec="mtp", layout=Layout(Role(4, 4, True, 1, 2, 2, 2))),
        ),
        (
            "multi-node 8k1k / p3 | minimaxm3 fp8 cluster:gb300-nv dynamo-vllm 3P (TP1/EP2/DPA) x 1D (TP1/EP16/DPA)"
            " c4x8x16",
            POOLS,
        ),
        (
            "minimaxm3_8k1k fp8 gb300 dynamo-vllm | P(tp1/ep2/dptrue/nw3) D(tp1/ep16/dptrue/nw1)"
            " | disagg-true spec-none conc-4x8x16",
            POOLS,
        ),
        (
            "multi-node 8k1k / dsr1 fp8 h200 sgl (TP8/EP8) c64",
            replace(ONE, layout=Layout(Role(8, 8), None, True)),
        ),
        (
            "dsr1_8k1k fp8 h200 sglang | P(tp8/ep8/dpfalse/nw1) D(tp8/ep8/dpfalse/nw0) | disagg-false conc-64",
            replace(ONE, layout=Layout(Role(8, 8), None, True)),
        ),
        ("dsr1_8k1k h200 fp8 mtp-on", replace(ONE, spec="mtp")),
        ("agentic / p1 | dsr1 fp4 cluster:b200-dgxc vllm TP8 c64", AGENT),
        (
            "agentic / p1 | dsr1 fp4 cluster:b200-dgxc vllm TP8 dram KV offload lmcache c64",
            replace(AGENT, offload=True),
        ),
    ],
)
def test_a_name_of_any_era_stands_for_its_point(name, series):
    assert of(series, name) == name


@pytest.mark.parametrize(
    "change",
    [
        {"conc": 32},
        {"model": "dsv4"},
        {"gpu": "b200"},
        {"framework": "vllm"},
        {"precision": "fp4"},
        {"spec": "mtp"},
        {"isl": 1024},
        {"scenario": "agentic_traces", "isl": None, "osl": None},
        {"layout": Layout(Role(4))},
        {"layout": Layout(Role(8, ep=8))},
        {"layout": Layout(Role(8, dp_attention=True))},
        {"layout": Layout(Role(8), None, True)},
        {"layout": Layout(Role(8), Role(8), True)},
    ],
)
def test_what_a_name_says_must_agree(change):
    assert of(replace(ONE, **change), "single-node 8k1k / p7 | dsr1 fp8 h200 sgl TP8 c64") is None


def test_offloading_tells_agentic_jobs_apart():
    plain, offloading = (f"agentic / p1 | dsr1 fp4 b200 vllm TP8{mode} c64" for mode in ("", " dram KV offload"))
    assert of(AGENT, plain, offloading) == plain
    assert of(replace(AGENT, offload=True), plain, offloading) == offloading


@pytest.mark.parametrize(
    "name", ["setup", "collect-results / collect", "collect-evals / x c64", "single-node 1k1k", "compare-results", ""]
)
def test_a_job_that_measures_nothing_says_nothing(name):
    assert parse(name) is None


def test_evals_and_throughput_are_other_jobs():
    point, score = want(), want(task="gsm8k")
    names = ("single-node 8k1k / dsr1 fp8 h200 sgl TP8 c64", "eval / dsr1 fp8 h200 sgl TP8 c64 | eval-only")
    found = attribute([JobRun(name, conclusion="success") for name in names], [point, score])
    assert [found[one].name for one in (point, score)] == list(names)
    both = attribute([JobRun("dsr1_8k1k fp8 h200 sglang | tp8/ep1/dpafalse | conc-64 | eval")], [point, score])
    assert len(both) == 2


def test_one_job_stands_for_all_its_concurrencies():
    wanted = [want(replace(POOLS, conc=conc)) for conc in (4, 8, 16, 32)]
    name = "multi-node 8k1k / minimaxm3 fp8 gb300 dynamo-vllm 3P (TP1/EP2/DPA) x 1D (TP1/EP16/DPA) c4x8x16"
    found = attribute([JobRun(name, conclusion="failure")], wanted)
    assert [one.series.conc for one in found] == [4, 8, 16]


NAME = "single-node 8k1k / dsr1 fp8 h200 sgl TP8 c64"


@pytest.mark.parametrize(
    ("ended", "stands"),
    [
        ([(1, "failure"), (2, "success")], 2),
        ([(2, "failure"), (1, "success")], 2),
        ([(1, "failure"), (2, "skipped")], 1),
        ([(1, "skipped"), (2, "skipped")], 2),
        ([(1, "failure"), (2, None)], 2),
    ],
)
def test_the_newest_attempt_that_ran_counts(ended, stands):
    jobs = [JobRun(NAME, attempt, "completed", conclusion) for attempt, conclusion in ended]
    assert attribute(jobs, [want()])[want()].attempt == stands
    assert attribute(jobs[::-1], [want()])[want()].attempt == stands


def test_names_that_cannot_be_told_apart_stand_for_nothing_unless_they_ended_alike():
    rivals = [JobRun(NAME, 1, "completed", "failure"), JobRun(NAME, 1, "completed", "success")]
    assert not attribute(rivals, [want()])
    pools = [JobRun(f"p1 | dsr1 fp8 cluster:h200-{pool} sgl TP8 c64", conclusion="failure") for pool in ("cw", "dgxc")]
    assert want() in attribute(pools, [want()])
    assert not attribute([pools[0], replace(pools[1], conclusion="success")], [want()])


def test_the_fuller_name_counts():
    vague, full = "dsr1_8k1k h200 fp8 tp=8 conc=64", "dsr1_8k1k h200 fp8 tp=8 ep=8 conc=64"
    assert of(replace(ONE, layout=Layout(Role(8, ep=8))), vague, full) == full
    assert of(ONE, vague, full) == vague


@given(st.text(max_size=60) | st.text("TP8/()xPD c1=-|evalk ", max_size=80))
def test_any_text_is_a_name(text):
    attribute([JobRun(text, conclusion="failure")], [want(), want(POOLS), want(AGENT, "gsm8k")])


@pytest.mark.shared
def test_every_point_of_the_real_configs_finds_the_job_that_is_named_after_it(shared):
    """Names as the workflow files make them today, from the configs; no point takes the job of another one."""
    folder = shared / "data/inferencex/configs"
    wanted, jobs = [], {}
    for name in ("nvidia-master.yaml", "amd-master.yaml"):
        for config in parse_configs((folder / name).read_bytes()).configs.values():
            for arm in config.arms:
                title = _title(config, arm)
                for conc in arm.concs:
                    own = title if config.multinode else title.replace("c?", f"c{conc}")
                    own = own.replace("c?", "c" + "x".join(map(str, arm.concs)))
                    one = Expected(config.key, replace(arm.curve, conc=conc), config.image)
                    wanted.append(one)
                    jobs.setdefault(own, set()).add(one.series)
    found = attribute([JobRun(name, conclusion="failure") for name in jobs], wanted)
    assert len(found) == len(set(wanted))
    assert all(one.series in jobs[job.name] for one, job in found.items())


def _title(config, arm):
    shorts = {"sglang": "sgl", "dynamo-sglang": "dyn-sgl", "sglang-disagg": "sgl-disagg"}
    curve, nodes = arm.curve, "multi-node " if config.multinode else ""
    lane = (
        f"{nodes}agentic" if curve.isl is None else f"{nodes or 'single-node '}{curve.isl // 1024}k{curve.osl // 1024}k"
    )
    head = f"{config.model_prefix} {config.precision} {config.runner} {shorts.get(config.framework, config.framework)}"
    prefill, decode = curve.layout.prefill, curve.layout.decode
    shape = _shape(prefill)
    if config.multinode:
        shape = f"{prefill.workers}P ({shape}) x {decode.workers}D ({_shape(decode)})" if decode else f"({shape})"
    spec = f" {curve.spec}" if curve.spec != "none" else ""
    return f"{lane} / p5 | {head} {shape}{spec}{' dram KV offload' if curve.offload else ''} c?"


def _shape(role):
    parts = [("PP", role.pp), ("DCP", role.dcp), ("PCP", role.pcp), ("EP", role.ep)]
    return f"TP{role.tp}" + "".join(f"/{n}{v}" for n, v in parts if v != 1) + "/DPA" * role.dp_attention
