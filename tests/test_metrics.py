"""The metric table says direction and family; what it does not know has none."""

import pytest

from store.metrics import ADVISORY_METRICS, GATE_METRICS, METRICS, POINT_METRICS, Better, Part, metric


@pytest.mark.parametrize(
    ("key", "change", "better"),
    [
        ("mean_ttft_ms", -0.3376, True),
        ("tput_per_gpu", -0.20, False),
        ("median_tpot_ms", 0.25, False),
        ("median_intvty", -0.20, False),
        ("joules_per_output_token", -0.20, True),
        ("em_strict", -0.02, False),
        ("std_intvty", -0.96, False),
        ("std_intvty", 0.96, False),
        ("frobnication", 1.0, False),
    ],
)
def test_direction_is_a_property_of_the_metric(key: str, change: float, better: bool) -> None:
    assert metric(key).improves(change) is better


def test_inverse_spreads_and_unknown_metrics_have_no_direction() -> None:
    for key in ("std_intvty", "std_tpot", "frobnication"):
        assert metric(key).better is Better.UNKNOWN


def test_numbers_that_are_one_number_name_the_one_that_is_judged() -> None:
    for row in METRICS.values():
        if row.same_as:
            assert METRICS[row.same_as].same_as is None
            assert row.part is Part.SHOWN


def test_the_families_of_tests_are_apart() -> None:
    assert set(GATE_METRICS) == {key for key in POINT_METRICS if METRICS[key].part is Part.GATE}
    assert not set(GATE_METRICS) & set(ADVISORY_METRICS)
