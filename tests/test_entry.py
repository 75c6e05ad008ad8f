"""The description of a changelog entry: what the findings of one config support, each item with its twin."""

from __future__ import annotations

from dataclasses import replace

from reports import entry, parity
from store.records import Caveat, Comparison, Finding, Scope, Verdict
from tests.sayings import AFTER, BEFORE, NEW, OLD, a_finding, a_screen, a_series, an_eval

CONFIG = "dsr1-fp8-h200-sglang"


def compared(*findings: Finding) -> Comparison:
    return Comparison(AFTER, BEFORE, "previous", findings, (), (), "1")


def a_pool(metric: str, before: float, after: float) -> Finding:
    job = an_eval(64, before, after, Verdict.EQUIVALENT)
    return replace(job, scope=Scope.CONFIG, key=f"{CONFIG} gsm8k", series=None, metric=metric, n_points=2)


def jobs() -> list[Finding]:
    flexible = [an_eval(conc, 0.95, 0.951, Verdict.EQUIVALENT) for conc in (16, 64)]
    return [*flexible, *(replace(job, metric="em_strict") for job in flexible)]


def test_evals_of_several_jobs_are_one_item_per_metric() -> None:
    pools = (a_pool("em_flexible", 0.95, 0.951), a_pool("em_strict", 0.94, 0.942))
    items = [line for line in entry.description(compared(*jobs(), *pools), CONFIG, "en") if "GSM8K" in line]
    assert [line.split(" +")[0] for line in items] == [
        f"{CONFIG}: GSM8K accuracy (flexible match)",
        f"{CONFIG}: GSM8K accuracy (strict match)",
    ]


def test_a_job_that_was_not_pooled_is_an_item_of_its_own() -> None:
    (job,) = [an_eval(64, 0.95, 0.951, Verdict.EQUIVALENT)]
    (item,) = entry.description(compared(job), CONFIG, "en")[1:]
    assert item.startswith(f"{CONFIG} tp8 c64: GSM8K accuracy +0.1 pp")


def test_an_eval_without_a_baseline_supports_nothing() -> None:
    assert entry.description(compared(an_eval(64, None, 0.951, Verdict.NO_BASELINE)), CONFIG, "en")[1:] == ()


def test_an_item_names_the_image_the_curve_and_its_points() -> None:
    update, *items = entry.description(a_screen(), CONFIG, "en")
    (curve,) = [item for item in items if item.startswith(f"regression: {CONFIG} 8192/1024 tp8: ")]
    assert update == f"Update image from {OLD} to {NEW}"
    assert "throughput per GPU fell by 8.2%" in curve
    assert "Points: 4, concurrency 4 to 128, median -7.4%, range -20.0% to -0.4%" in curve


def test_a_mixed_curve_names_its_worst_point() -> None:
    curve = a_finding(a_series(None), "tput_per_gpu", Verdict.MIXED, 6.2)
    points = [
        a_finding(a_series(16), "tput_per_gpu", Verdict.IMPROVEMENT, 25.0),
        a_finding(a_series(64), "tput_per_gpu", Verdict.REGRESSION, -30.0),
    ]
    english, chinese = entry.description(compared(curve, *points), CONFIG, "both")[2:]
    assert english.startswith(f"mixed: {CONFIG} 8192/1024 tp8: ")
    assert f" Worst point: {CONFIG} 8192/1024 tp8 c64: throughput per GPU fell by 30.0%" in english
    assert f"。最差数据点：{CONFIG} 8192/1024 tp8 c64：每 GPU 吞吐量下降 30.0%" in chinese
    assert "基线运行：30000000001/1、30000000002/1、30000000003/1。" in chinese
    assert parity.parity(english, chinese) == ()


def test_each_item_is_followed_by_its_chinese_twin_in_two_languages_only() -> None:
    english, both = (entry.description(a_screen(), CONFIG, lang) for lang in ("en", "both"))
    assert both[::2] == english
    assert len(both) == 2 * len(english)
    for one, twin in zip(both[::2], both[1::2], strict=True):
        assert parity.parity(one, twin) == ()
        assert parity.typography(twin) == ()


def test_a_config_counts_as_changed_by_its_image_or_its_recipe() -> None:
    same = a_finding(a_series(None), "tput_per_gpu", Verdict.EQUIVALENT, 0.0, baseline_image=NEW)
    assert entry.changed_configs(compared(same)) == ()
    assert entry.changed_configs(compared(replace(same, caveats=(Caveat.of("recipe_changed"),)))) == (CONFIG,)
    assert entry.changed_configs(a_screen()) == (CONFIG, f"{CONFIG}-mtp")
