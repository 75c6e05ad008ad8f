"""The lab sweeps are well formed and say what their README says."""

import math
from statistics import median

import pytest

from tests.lab import BASELINE, bundles, lab_cases, sweeps

CONCURRENCIES = [1, 2, 4, 8, 16, 32, 64, 128]
IMAGES = {"v1.0.0", "v1.0.1", "v1.1.0", "v1.2.0", "v1.3.0", "v1.4.0"}

# Throughput against v1.0.0 at concurrency 1 and 128, percent, calm sweeps of the first batch, as the README states it.
DIFFERENCES = {
    "v1.0.1": (0.0, 0.0),
    "v1.1.0": (-73.0, -4.0),
    "v1.2.0": (-2.2, -24.8),
    "v1.3.0": (-3.2, -4.1),
    "v1.4.0": (9.3, 1.2),
}


def test_there_are_a_hundred_bundles_with_a_truth():
    assert len(bundles()) == 100
    for bundle in bundles():
        assert set(bundle) == {"run", "rows", "truth"}
        assert set(bundle["truth"]) == {"image", "note", "bad_node", "batch"}
        assert bundle["truth"]["image"] in IMAGES
    assert len({bundle["run"]["id"] for bundle in bundles()}) == 100


def test_every_sweep_measures_every_concurrency_under_the_image_of_its_truth():
    for bundle in bundles():
        assert [row["conc"] for row in bundle["rows"]] == CONCURRENCIES
        assert {row["image"] for row in bundle["rows"]} == {f"lab/engine:{bundle['truth']['image']}"}


def test_every_number_is_finite_and_positive():
    numbers = [
        value
        for bundle in bundles()
        for row in bundle["rows"]
        for key, value in row.items()
        if isinstance(value, float) and not key.startswith("std_")
    ]
    assert len(numbers) > 20_000
    assert all(math.isfinite(value) and value > 0 for value in numbers)


def test_rows_keep_the_laws_of_their_metrics():
    for row in (row for bundle in bundles() for row in bundle["rows"]):
        assert row["tput_per_gpu"] == pytest.approx(row["input_tput_per_gpu"] + row["output_tput_per_gpu"])
        assert row["median_intvty"] * row["median_tpot"] == pytest.approx(1, rel=1e-4)


def test_the_order_of_ids_is_the_order_of_time():
    starts = [sweep.started_at for sweep in sweeps()]
    assert starts == sorted(starts)


@pytest.mark.parametrize(("image", "low_high"), DIFFERENCES.items())
def test_an_image_differs_from_the_baseline_as_the_readme_says(image, low_high):
    for place, percent in zip((0, -1), low_high, strict=True):
        change = 100 * (_typical(image, place) / _typical(BASELINE, place) - 1)
        assert change == pytest.approx(percent, abs=0.6)


def _typical(image: str, place: int) -> float:
    """Median throughput at one concurrency in the calm part of the first batch."""
    calm = [s for s in sweeps() if s.image == image and s.batch == 1 and not s.cold and not s.noisy_neighbour]
    return median(sweep.values("tput_per_gpu")[place] for sweep in calm)


def test_the_slow_stretch_is_found_at_the_start_of_a_batch_only():
    cold = {batch: [s for s in sweeps() if s.cold and s.batch == batch] for batch in (1, 3)}
    assert [len(found) for found in cold.values()] == [9, 8]
    for batch, found in cold.items():
        slow = median(s.values("tput_per_gpu")[1] for s in found if s.same_software)
        rest = median(
            s.values("tput_per_gpu")[1] for s in sweeps() if s.batch == batch and not s.cold and s.same_software
        )
        assert 100 * (slow / rest - 1) == pytest.approx(-7, abs=1)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_a_baseline_is_the_k_calm_sweeps_of_the_base_image_just_before(k):
    cases = list(lab_cases(k))
    assert len(cases) > 60
    for case in cases:
        assert len(case.baseline) == k
        assert all(s.image == BASELINE and not s.noisy_neighbour for s in case.baseline)
        assert all(s.batch == case.candidate.batch and s.id < case.candidate.id for s in case.baseline)
        skipped = [s for s in sweeps() if case.baseline[-1].id < s.id < case.candidate.id]
        assert not any(s.image == BASELINE and not s.noisy_neighbour for s in skipped)


def test_the_comparisons_hold_every_kind_of_truth():
    truths = [case.truth for case in lab_cases(1)]
    kinds = {"unchanged", "noisy neighbour", "v1.1.0", "v1.2.0", "v1.3.0", "v1.4.0"}
    assert set(truths) == kinds
    assert min(truths.count(kind) for kind in kinds) >= 4
