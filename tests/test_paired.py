"""Paired shares: exact against slow twins, mirrored, and calibrated on simulated answers."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bench import answers as bench
from tracker.stats.paired import Table, overdispersion, paired, shifts, tabulate

N = 1319


def mcnemar(lost, gained, n=N):
    return paired([Table(1, 1, ((0, 0, 40), (0, 1, gained), (1, 0, lost), (1, 1, n - 40 - lost - gained)))])


@given(st.integers(0, 60), st.integers(0, 60))
def test_with_one_run_a_side_it_is_mcnemars_mid_p(lost, gained):
    found = mcnemar(lost, gained)
    law = stats.binom(lost + gained, 0.5)
    assert found.p_drop == pytest.approx(law.cdf(gained) - law.pmf(gained) / 2, rel=1e-9)
    assert found.p_drop + found.p_rise == pytest.approx(1)
    assert found.effect == pytest.approx((gained - lost) / N)


@pytest.mark.parametrize(("lost", "gained"), [(35, 15), (0, 0), (12, 3), (0, 7)])
def test_the_interval_is_that_of_bonett_and_price(lost, gained):
    """Their formula for proportions, with one pair added to each of the two cells."""
    old, new = (lost + 1) / (N + 2), (gained + 1) / (N + 2)
    half = 1.959964 * math.sqrt((old + new - (new - old) ** 2) / (N + 2))
    assert mcnemar(lost, gained).interval() == pytest.approx((new - old - half, new - old + half), abs=1e-8)


def slow_mid_p(before, after):
    """Every way of dealing each question's answers out to the runs, all of them equally likely: no formula at all."""
    k, m = len(before), len(after)
    seen = after.sum()
    totals = {0: 1.0}
    for question in range(before.shape[1]):
        answered = [*before[:, question], *after[:, question]]
        deals = list(itertools.permutations(range(k + m)))
        shares: dict[int, float] = {}
        for deal in deals:
            right = sum(int(answered[place]) for place in deal[k:])
            shares[right] = shares.get(right, 0.0) + 1 / len(deals)
        totals = {
            total: sum(totals[total - right] * share for right, share in shares.items() if total - right in totals)
            for total in {old + right for old in totals for right in shares}
        }
    return sum(p for total, p in totals.items() if total < seen) + totals[seen] / 2


@pytest.mark.parametrize(("k", "m"), [(1, 1), (3, 1), (2, 2), (4, 1), (3, 2)])
def test_slow_twin_of_the_exact_test(k, m):
    rng = np.random.default_rng(10 * k + m)
    hard = rng.random(14)
    before, after = rng.random((k, 14)) < hard, rng.random((m, 14)) < hard
    assert paired([tabulate(before, after)]).p_drop == pytest.approx(slow_mid_p(before, after), rel=1e-9)


def test_jobs_with_unequal_runs_are_nearly_what_the_twin_says():
    rng = np.random.default_rng(4)
    hard = rng.beta(2, 2, 300)
    sides = [(rng.random((k, 300)) < hard, rng.random((1, 300)) < hard) for k in (1, 3)]
    tables = [tabulate(*side) for side in sides]
    told = paired(tables)
    draws = np.zeros(4000)
    for before, after in sides:
        every = np.concatenate([before, after])
        for i in range(len(draws)):
            mixed = rng.permuted(every, axis=0)
            draws[i] += mixed[-1].mean() - mixed[:-1].mean()
    seen = sum(table.total for table in tables) / 300
    slow = (draws < seen - 1e-12).mean() + (abs(draws - seen) <= 1e-12).mean() / 2
    assert told.p_drop == pytest.approx(slow, abs=0.03)


cells = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 300)), min_size=1, max_size=8)


@given(cells)
@settings(max_examples=60)
def test_swapping_the_sides_mirrors_everything(rows):
    there = paired([Table(3, 2, tuple(rows))])
    back = paired([Table(2, 3, tuple((new, old, count) for old, new, count in rows))])
    assert there.effect == pytest.approx(-back.effect)
    assert there.p_drop == pytest.approx(back.p_rise, rel=1e-6, abs=1e-12)
    assert there.interval() == pytest.approx(tuple(-limit for limit in reversed(back.interval())))
    assert there.detectable(0.01) == pytest.approx(back.detectable(0.01))
    assert math.isfinite(there.z)
    assert 0 < there.se < 1.1


def test_where_nothing_flipped_there_is_still_a_doubt():
    silent = mcnemar(0, 0)
    assert (silent.p, silent.effect) == (0.5, 0)
    assert silent.within(0.01)
    assert 0.004 < silent.detectable(0.0) < 0.01


def test_the_smallest_change_balances_as_it_says():
    found = mcnemar(20, 20)
    change = found.detectable(0.0)
    critical = 2.3263 * math.sqrt(40 + change * N)
    assert change * N - critical == pytest.approx(0.8416 * math.sqrt(40 + change * (1 - change) * N), rel=1e-3)
    assert found.detectable(0.03) > found.detectable(0.0)
    everything = paired([Table(1, 1, ((0, 1, 3), (1, 0, 3)))])
    assert everything.detectable(0.01) <= 1


def test_tables_of_other_questions_are_no_pairs():
    with pytest.raises(ValueError, match="different numbers of questions"):
        paired([Table(1, 1, ((1, 1, 5),)), Table(1, 1, ((1, 1, 6),))])


def test_flips_that_jobs_share_count_once():
    rng = np.random.default_rng(2)
    before = rng.random((1, N)) < 0.95
    after = before ^ (rng.random((1, N)) < 0.03)
    alone = paired([tabulate(before, after)])
    table, shift = tabulate(before, after), shifts(before, after)
    twice = paired([table, table], overdispersion([shift, shift]))
    assert overdispersion([shift, shift]) == pytest.approx(2)
    assert twice.effect == pytest.approx(alone.effect)
    assert twice.spread == pytest.approx(alone.spread, rel=0.05)
    assert twice.p == pytest.approx(alone.p, abs=0.02)
    blind = paired([table, table])
    assert blind.spread < 0.75 * alone.spread


def test_calibration_in_small():
    """The table of `bench/evals.py` on fewer draws: false alarms, coverage, and power at the printed change."""
    rng = np.random.default_rng(21)
    quiet = bench.simulate(rng, bench.Setting(), draws=600)
    assert quiet.found <= 0.01 + 3 * math.sqrt(0.01 * 0.99 / 600)
    assert 0.93 <= quiet.covered <= 0.97
    shifted = bench.simulate(rng, bench.Setting(drop=quiet.smallest), draws=600)
    assert 0.75 <= shifted.found <= 0.85
    assert 0.93 <= shifted.covered <= 0.97


def test_jobs_together_in_small():
    rng = np.random.default_rng(22)
    shared = bench.simulate(rng, bench.Setting(jobs=4, shared=0.5), draws=300)
    assert shared.found <= 0.01 + 3 * math.sqrt(0.01 * 0.99 / 300)
    assert 0.92 <= shared.covered <= 0.98
