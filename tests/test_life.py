"""The life of a change, one rule a test: what opens, confirms, resolves, supersedes and takes it back."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.life import Action, Change, Direction, Event, State, change_id
from store.records import Caveat, RunKey, Verdict
from tests.lives import (
    CURVE,
    IMPROVEMENT,
    OTHER,
    REGRESSION,
    SUSPECTED,
    A,
    B,
    C,
    Lives,
    day,
    failing,
    scores,
    together,
)


@pytest.fixture
def lives() -> Lives:
    """Two calm runs of image A."""
    made = Lives()
    made.run(0, 1.0)
    made.run(1, 1.0)
    return made


def dropped(lives: Lives, verdict: Verdict = REGRESSION, at: int = 2) -> RunKey:
    """A run of image B that is 10 % slower."""
    return lives.run(at, 0.9, B, lives.move(-0.1, verdict))


# ---------------------------------------------------------------- new, and once


def test_a_regression_opens_with_its_first_bad_run_and_date(lives: Lives) -> None:
    first = dropped(lives)
    change = lives.only()
    assert (change.state, change.first, change.first_at) == (State.OPEN, first, day(2))
    assert (change.announced, change.confirmed) == (first, None)
    assert change.bump.text == f"{A} > {B}"


def test_later_runs_that_show_it_are_the_same_change(lives: Lives) -> None:
    first = dropped(lives)
    for at in range(3, 8):
        lives.run(at, 0.9, B)
    change = lives.only()
    assert (change.state, change.announced, change.runs, change.last_seen) == (State.OPEN, first, 6, RunKey(107))


def test_a_run_that_stands_against_the_same_past_tells_nothing_new(lives: Lives) -> None:
    before = lives.last[CURVE]
    first = dropped(lives)
    lives.run(3, 0.9, C, lives.move(-0.1, images=(A, C), base=before))
    assert lives.only().first == first


def test_a_run_that_did_not_measure_it_changes_nothing(lives: Lives) -> None:
    dropped(lives)
    before = lives.only()
    lives.run(3, {OTHER: 1.0}, B)
    assert lives.only() == before


def test_a_late_landed_older_run_keeps_the_name_and_is_not_announced_again(lives: Lives) -> None:
    before = lives.last[CURVE]
    lives.run(9, 0.9, B, lives.move(-0.1))
    known = lives.only()
    lives.run(4, 0.9, B, lives.move(-0.1, base=before))
    change = lives.only()
    assert (change.id, change.first, change.announced_at) == (known.id, RunKey(104), day(4))


def test_what_an_image_that_nobody_knows_moved_is_named_after_the_run_before(lives: Lives) -> None:
    before = lives.last[CURVE]
    lives.run(9, 0.9, None, lives.move(-0.1, images=(None, None)))
    known = lives.only()
    lives.run(4, 0.9, None, lives.move(-0.1, images=(None, None), base=before))
    assert lives.only().id == known.id
    assert "since 101/1" in known.bump.text


@given(order=st.permutations(range(6)))
def test_the_order_of_landing_has_no_part_in_it(order: list[int]) -> None:
    made = Lives()
    made.run(0, 1.0)
    made.run(1, 1.0)
    dropped(made)
    made.run(3, 0.9, B)
    made.run(4, 1.0, C, made.move(0.11, Verdict.RECOVERY, (B, C)))
    made.run(5, 1.2, A, made.move(0.2, IMPROVEMENT, (C, A)))
    expected = made.tell()
    made.reviews = [made.reviews[place] for place in order]
    assert made.tell() == expected


# ---------------------------------------------------------------- confirmed, withdrawn


def test_the_next_run_of_the_same_software_confirms_it_once(lives: Lives) -> None:
    first = dropped(lives)
    second = lives.run(3, 0.9, B, joint=[together(first, lives.move(-0.1))])
    lives.run(4, 0.9, B)
    change = lives.only()
    assert (change.state, change.confirmed, change.announced, change.first_at) == (State.OPEN, second, first, day(2))


def test_without_a_joint_verdict_its_own_level_confirms_it(lives: Lives) -> None:
    dropped(lives)
    second = lives.run(3, 0.91, B)
    assert lives.only().confirmed == second


def test_a_suspicion_is_announced_by_the_run_that_confirms_it(lives: Lives) -> None:
    first = dropped(lives, SUSPECTED)
    suspected = lives.only()
    assert (suspected.state, suspected.announced) == (State.SUSPECTED, None)
    second = lives.run(3, 0.9, B, joint=[together(first, lives.move(-0.1))])
    change = lives.only()
    assert (change.state, change.announced, change.first, change.first_at) == (State.OPEN, second, first, day(2))


def test_a_suspicion_that_both_runs_together_do_not_show_is_withdrawn(lives: Lives) -> None:
    first = dropped(lives, SUSPECTED)
    second = lives.run(3, 0.965, B, joint=[together(first)])
    change = lives.only()
    assert (change.state, change.why, change.state_run) == (State.WITHDRAWN, "not_confirmed", second)
    assert change.announced is None


def test_a_change_that_both_runs_only_suspect_stays_as_it_was(lives: Lives) -> None:
    first = dropped(lives)
    lives.run(3, 0.96, B, joint=[together(first, lives.move(-0.07, SUSPECTED))])
    change = lives.only()
    assert (change.state, change.confirmed) == (State.OPEN, None)


@pytest.mark.parametrize("verdict", [REGRESSION, SUSPECTED])
def test_what_reverts_with_the_next_run_of_the_same_software_was_a_spike(lives: Lives, verdict: Verdict) -> None:
    dropped(lives, verdict)
    second = lives.run(3, 1.0, B, lives.move(0.11, SUSPECTED, (B, B)))
    change = lives.only()
    assert (change.state, change.why, change.state_run) == (State.WITHDRAWN, "spike", second)


def test_other_software_says_nothing_about_a_suspicion_that_lasts(lives: Lives) -> None:
    dropped(lives, SUSPECTED)
    lives.run(3, 0.9, C)
    assert lives.only().state is State.SUSPECTED


# ---------------------------------------------------------------- resolved, superseded, back again


def test_a_recovery_resolves_it_and_is_no_improvement(lives: Lives) -> None:
    dropped(lives)
    lives.run(3, 0.9, B)
    back = lives.run(4, 1.0, C, lives.move(0.11, Verdict.RECOVERY, (B, C)))
    change = lives.only()
    assert (change.state, change.state_run, change.direction) == (State.RESOLVED, back, Direction.WORSE)


def test_a_level_that_is_back_without_a_verdict_resolves_it_too(lives: Lives) -> None:
    dropped(lives)
    back = lives.run(3, 0.995, C)
    assert (lives.only().state, lives.only().state_run) == (State.RESOLVED, back)


def test_a_return_to_the_old_level_is_never_an_improvement_of_hundreds_of_percent(lives: Lives) -> None:
    lives.run(2, 0.21, B, lives.move(-0.79))
    lives.run(3, 1.019, C, lives.move(3.785, IMPROVEMENT, (B, C)))
    change = lives.only()
    assert (change.state, change.direction) == (State.RESOLVED, Direction.WORSE)


def test_a_gain_beyond_the_old_level_is_told_with_what_it_is_worth_against_that(lives: Lives) -> None:
    dropped(lives)
    lives.run(3, 1.1, C, lives.move(0.22, IMPROVEMENT, (B, C)))
    old, new = lives.tell()
    assert (old.state, new.direction, new.state) == (State.RESOLVED, Direction.BETTER, State.OPEN)
    assert new.since_good == pytest.approx(math.log(1.1))


def test_a_later_bump_that_moves_it_again_supersedes_it(lives: Lives) -> None:
    dropped(lives)
    third = lives.run(3, 0.95, C, lives.move(0.055, IMPROVEMENT, (B, C)))
    old, new = lives.tell()
    assert (old.state, old.superseded_by, old.state_run) == (State.SUPERSEDED, new.id, third)
    assert new.since_good == pytest.approx(math.log(0.95))


def test_a_mere_suspicion_supersedes_nothing(lives: Lives) -> None:
    dropped(lives)
    lives.run(3, 0.87, C, lives.move(-0.033, SUSPECTED, (B, C)))
    old, new = lives.tell()
    assert (old.state, new.state) == (State.OPEN, State.SUSPECTED)


def test_a_loss_of_a_gain_is_a_regression_of_its_own(lives: Lives) -> None:
    lives.run(2, 1.1, B, lives.move(0.1, IMPROVEMENT))
    lives.run(3, 1.0, C, lives.move(-0.091, images=(B, C)))
    gain, loss = lives.tell()
    assert gain.state is State.RESOLVED  # its level is back where it was
    assert (loss.direction, loss.state) == (Direction.WORSE, State.OPEN)


def test_the_same_bump_that_moves_it_again_is_the_same_change(lives: Lives) -> None:
    first = dropped(lives)
    lives.run(3, 1.0, A, lives.move(0.11, Verdict.RECOVERY, (B, A)))
    again = dropped(lives, at=4)
    change = lives.only()
    assert (change.state, change.first, change.announced, change.returned) == (State.OPEN, first, first, again)


# ---------------------------------------------------------------- the same software, other numbers


def test_the_same_software_is_never_announced(lives: Lives) -> None:
    for at in range(2, 5):
        lives.run(at, 0.9, A, *([lives.move(-0.1, SUSPECTED, (A, A))] if at == 2 else []))
    change = lives.only()
    assert change.is_environment
    assert (change.state, change.announced, change.confirmed) == (State.OPEN, None, RunKey(103))
    lives.run(6, 1.0, A)
    assert lives.only().state is State.RESOLVED


def test_a_regression_of_evals_under_the_same_software_is_not_announced(lives: Lives) -> None:
    lives.run(2, 0.9, A, lives.move(-0.1, REGRESSION, (A, A)))
    assert (lives.only().announced, lives.only().state) == (None, State.SUSPECTED)


def test_another_recipe_under_the_same_image_is_other_software(lives: Lives) -> None:
    made = Lives()
    made.run(0, 1.0, recipe="first")
    made.run(1, 0.9, A, made.move(-0.1, images=(A, A)), recipe="second")
    change = made.only()
    assert (change.bump.recipe, change.state, change.is_environment) == (True, State.OPEN, False)


def test_an_unsteady_machine_hides_no_bump(lives: Lives) -> None:
    before = lives.last[CURVE]
    lives.run(2, 0.95, A, lives.move(-0.05, SUSPECTED, (A, A)))
    bad = lives.run(3, 0.85, B, lives.move(-0.15, base=before))
    assert [change.announced for change in lives.tell()] == [None, bad]


# ---------------------------------------------------------------- whole pools

CURVES = [f"dsr1 h200 sglang fp8 none {length}/1024 tp{tp}" for length in (1024, 8192) for tp in (4, 8)]


def bad_night(changed: str | None = None, share: int = 4, spread: float = 0.0) -> Lives:
    """A night in which four curves of two configs fall by 30 %; one of them may have a new image."""
    made = Lives()
    made.run(0, dict.fromkeys(CURVES, 1.0))
    moves = []
    for place, curve in enumerate(CURVES[:share]):
        new = B if curve == changed else A
        verdict = REGRESSION if curve == changed else SUSPECTED
        move = made.move(-0.3 + spread * place, verdict, (A, new), curve)
        config = f"config-{place % 2}"
        moves.append(replace(move, config=config, finding=replace(move.finding, config=config)))
    made.run(1, dict.fromkeys(CURVES, 0.7), A, *moves, pools={"h200": 4})
    if changed:
        key = RunKey(101)
        made.levels[changed][key] = replace(made.levels[changed][key], image=B)
    return made


def test_a_pool_that_moved_as_a_whole_is_one_finding_with_its_members() -> None:
    change = bad_night().only()
    assert (change.pool, change.members, change.announced) == ("h200", tuple(sorted(CURVES)), None)
    assert change.configs == ("config-0", "config-1")


def test_a_bad_night_of_a_pool_is_a_spike() -> None:
    made = bad_night()
    made.run(2, dict.fromkeys(CURVES, 1.0))
    assert (made.only().state, made.only().why) == (State.WITHDRAWN, "spike")


def test_a_bump_in_a_bad_night_is_only_suspected_and_confirmed_by_the_next() -> None:
    made = bad_night(changed=CURVES[0])
    pool, bump = sorted(made.tell(), key=lambda change: not change.pool)
    assert (pool.pool, bump.key, bump.state, bump.announced) == ("h200", CURVES[0], State.SUSPECTED, None)
    after = made.run(2, {**dict.fromkeys(CURVES, 1.0), CURVES[0]: 0.9}, B)
    _, bump = sorted(made.tell(), key=lambda change: not change.pool)
    assert (bump.state, bump.announced, bump.first_at) == (State.OPEN, after, day(1))
    assert bump.finding.effect == pytest.approx(math.log(0.9))


@pytest.mark.parametrize("given", [{"share": 2}, {"spread": 0.28}])
def test_a_few_curves_or_unlike_ones_are_no_pool(given: dict) -> None:
    assert not any(change.pool for change in bad_night(**given).tell())


def test_one_bump_of_everything_is_no_pool() -> None:
    made = Lives()
    made.run(0, dict.fromkeys(CURVES, 1.0))
    moves = [replace(made.move(-0.3, curve=curve), config=f"config-{n % 2}") for n, curve in enumerate(CURVES)]
    made.run(1, dict.fromkeys(CURVES, 0.7), B, *moves, pools={"h200": 4})
    assert [change.state for change in made.tell()] == [State.OPEN] * 4


# ---------------------------------------------------------------- evals


def test_a_failed_threshold_is_one_change_until_it_is_passed_and_passing_is_no_gain() -> None:
    made = Lives()
    scores(made, 0, 0.95, A)
    first = scores(made, 1, 0.89, B, failing(made, 0.89, 0.91, (A, B)))
    scores(made, 2, 0.888, B, failing(made, 0.888, 0.91, (B, B)))
    change = made.only()
    assert (change.state, change.announced, change.confirmed) == (State.OPEN, first, RunKey(102))
    gain = replace(failing(made, 0.96, 0.91, (B, C)), direction=Direction.BETTER, verdict=IMPROVEMENT, alarms=())
    scores(made, 3, 0.96, C, gain)
    assert made.only().state is State.RESOLVED


def test_a_threshold_missed_by_a_bump_is_told_although_reruns_were_suspected_before() -> None:
    made = Lives()
    scores(made, 0, 0.95, A)
    shaky = replace(failing(made, 0.94, 0.95, (A, A)), verdict=SUSPECTED, alarms=())
    scores(made, 1, 0.93, A, shaky)
    bad = scores(made, 2, 0.89, B, failing(made, 0.89, 0.91, (A, B)))
    assert [change.announced for change in made.tell()] == [None, bad]


# ---------------------------------------------------------------- people


def said(change: Change, action: Action, at: int, reason: str = "") -> Event:
    return Event(day(at), change.id, action, "maria", reason)


def test_people_acknowledge_dismiss_and_reopen(lives: Lives) -> None:
    dropped(lives)
    change = lives.only()
    lives.events = [said(change, Action.ACKNOWLEDGE, 3)]
    assert lives.only().state is State.ACKNOWLEDGED
    lives.events.append(said(change, Action.DISMISS, 4, "shared node"))
    dismissed = lives.only()
    assert (dismissed.state, dismissed.said and dismissed.said.reason) == (State.DISMISSED, "shared node")
    lives.events.append(said(change, Action.REOPEN, 5, "seen again"))
    assert lives.only().state is State.OPEN


def test_a_moment_is_told_without_what_came_later(lives: Lives) -> None:
    first = dropped(lives)
    told = lives.tell(day(3))
    lives.run(3, 0.9, B, joint=[together(first, lives.move(-0.1))])
    lives.events = [said(told[0], Action.DISMISS, 4)]
    assert lives.tell(day(3)) == told


def test_an_acknowledged_change_is_resolved_all_the_same(lives: Lives) -> None:
    dropped(lives)
    lives.events = [said(lives.only(), Action.ACKNOWLEDGE, 3)]
    lives.run(4, 1.0, C)
    assert lives.only().state is State.RESOLVED


# ---------------------------------------------------------------- names


def test_the_parts_of_a_name_have_borders() -> None:
    names = {
        change_id("a", "speed", Direction.WORSE, "b"),
        change_id("a", "speed", Direction.BETTER, "b"),
        change_id("a", "accuracy", Direction.WORSE, "b"),
        change_id("as", "peed", Direction.WORSE, "b"),
        change_id("a", "speed", Direction.WORSE, "c"),
    }
    assert len(names) == 5
    assert all(len(name) == 8 and not set(name) & set("01iloOIu") for name in names)


def test_a_caveat_of_the_judge_stays_with_the_change(lives: Lives) -> None:
    move = lives.move(1.5, IMPROVEMENT)
    doubted = replace(move.finding, caveats=(Caveat.of("implausible_gain", limit=0.69),))
    lives.run(2, 2.5, B, replace(move, finding=doubted))
    assert [caveat.code for caveat in lives.only().finding.caveats] == ["implausible_gain"]
