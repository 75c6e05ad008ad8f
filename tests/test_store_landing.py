"""What lands counts once, the right version of it stands, and the order of landing changes nothing."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from store.duck import Landed, Store
from store.records import (
    Batch,
    Caveat,
    ChangelogEntry,
    Expected,
    JobCount,
    JobRun,
    Layout,
    Place,
    Point,
    Rejection,
    Role,
    Run,
    RunKey,
    Score,
    Series,
)
from store.rows import merge_runs

START = datetime(2026, 7, 31, 8, 20, tzinfo=UTC)
SERIES = Series("dsr1", "h200", "sglang", "fp8", "none", "single_turn", 8192, 1024, False, Layout(Role(8)), 64)


def run(number: int = 77, attempt: int = 1, **changes: object) -> Run:
    started_at = START + timedelta(hours=number, minutes=20 * attempt)
    return replace(Run(number, attempt, started_at, event="push", head_branch="main"), **changes)


def point(of: Run, conc: int = 64, tput: float | None = 655.0, minutes: int | None = None, **changes: object) -> Point:
    made = None if minutes is None else START + timedelta(minutes=minutes)
    metrics = {"median_ttft": 0.7} | ({} if tput is None else {"tput_per_gpu": tput})
    plain = Point(
        of.key, replace(SERIES, conc=conc), metrics, Place(f"bmk_{conc}_{minutes}.json", 0, made), f"{conc} {tput}"
    )
    return replace(plain, **changes)


def collected(of: Run, *points: Point) -> Batch:
    rows = [
        replace(p, run=of.key, place=Place("results_bmk.json", number, None, True)) for number, p in enumerate(points)
    ]
    return Batch(of, tuple(rows))


def score(of: Run, strict: float = 0.9, minutes: int | None = None, **changes: object) -> Score:
    made = None if minutes is None else START + timedelta(minutes=minutes)
    plain = Score(of.key, SERIES, "gsm8k", strict, 0.01, 0.95, 0.005, 1319, Place("meta.json", 0, made), f"{strict}")
    return replace(plain, **changes)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    with Store.open(tmp_path / "store.duckdb", tmp_path / "archive") as opened:
        yield opened


def values(store: Store, which: RunKey | int) -> dict[int, float]:
    tidy = store.tidy(which, ["tput_per_gpu"])
    return dict(zip(tidy["conc"], tidy["value"], strict=True))


FIRST, SECOND = run(attempt=1), run(attempt=2)
OLD = Batch(FIRST, (point(FIRST, 64, 655.0, 18), point(FIRST, 128, 850.0, 18)))
NEW = Batch(SECOND, (point(SECOND, 64, 1310.0, 29), point(SECOND, 128, 1700.0, 29)))


@pytest.mark.parametrize("order", [(OLD, NEW), (NEW, OLD), (OLD, NEW, OLD)])
def test_the_later_attempt_stands_in_whatever_order_they_landed(store: Store, order: tuple[Batch, ...]) -> None:
    landed = Landed()
    for batch in order:
        landed += store.land(batch)
    assert values(store, 77) == {64: 1310.0, 128: 1700.0}
    assert (landed.points, landed.superseded, landed.duplicates) == (4, 2, 0)
    assert store.info().counts["valid"] == 2
    assert store.info().counts["superseded"] == 2


def test_both_attempts_in_one_landing_give_the_same(store: Store) -> None:
    landed = store.land_many([NEW, OLD])
    assert (landed.points, landed.superseded) == (4, 2)
    assert values(store, 77) == {64: 1310.0, 128: 1700.0}


def test_an_earlier_attempt_can_still_be_asked_for(store: Store) -> None:
    store.land_many([NEW, OLD])
    assert values(store, RunKey(77, 1)) == {64: 655.0, 128: 850.0}


def test_points_that_a_partial_rerun_left_alone_keep_their_value(store: Store) -> None:
    store.land(Batch(FIRST, (point(FIRST, 4, 100.0, 1), point(FIRST, 8, 180.0, 2))))
    store.land(Batch(SECOND, (point(SECOND, 8, 195.0, 50),)))
    tidy = store.tidy(77, ["tput_per_gpu"])
    assert values(store, 77) == {4: 100.0, 8: 195.0}
    assert set(tidy["run"]) == {"77/2"}
    assert dict(zip(tidy["conc"], tidy["attempt"], strict=True)) == {4: 1, 8: 2}


@pytest.mark.parametrize("collected_first", [True, False])
def test_a_collected_file_yields_to_the_artifacts_of_its_points(store: Store, collected_first: bool) -> None:
    artifacts = [
        Batch(FIRST, (point(FIRST, 4, 100.0, 1), point(FIRST, 8, 180.0, 2))),
        Batch(SECOND, (point(SECOND, 8, 195.0, 50),)),
    ]
    whole = collected(SECOND, point(SECOND, 8, 195.0), point(SECOND, 4, 100.0), point(SECOND, 8, 180.0))
    for batch in [whole, *artifacts] if collected_first else [*artifacts, whole]:
        store.land(batch)
    assert values(store, 77) == {4: 100.0, 8: 195.0}


def test_two_rows_of_one_point_with_nothing_to_choose_by_are_not_chosen_from(store: Store) -> None:
    landed = store.land(collected(FIRST, point(FIRST, 8, 195.0), point(FIRST, 4, 100.0), point(FIRST, 8, 180.0)))
    assert values(store, 77) == {4: 100.0}
    assert landed.contested == 2
    torn = store.invalid(77)
    assert sorted(torn["tput_per_gpu"]) == [180.0, 195.0]
    assert all("conflicting_rows" in reason for reason in torn["invalid"])
    assert store.statuses().rows() == [("77/1", "contested", 2), ("77/1", "valid", 1)]
    assert store.info().counts["invalid"] == 2


def test_a_later_artifact_settles_a_conflict(store: Store) -> None:
    store.land(collected(FIRST, point(FIRST, 8, 195.0), point(FIRST, 8, 180.0)))
    store.land(Batch(FIRST, (point(FIRST, 8, 195.0, 5),)))
    assert values(store, 77) == {8: 195.0}
    assert store.info().counts["invalid"] == 0


def test_landing_the_same_batch_twice_adds_nothing(store: Store) -> None:
    full = replace(
        OLD,
        scores=(score(FIRST),),
        rejections=(Rejection(Place("x.json"), "conc", "absent"),),
        changelog=(ChangelogEntry(("k",), ("text",), "link"),),
        jobs=(JobCount("h200", 1, 2),),
    )
    first, before = store.land(full), store.info().counts
    second = store.land(full)
    assert (first.points, first.scores, first.rejections, first.already) == (2, 1, 1, False)
    assert second == Landed(already=True)
    assert store.info().counts == before


def test_overlapping_captures_count_their_common_rows_once(store: Store) -> None:
    both = point(FIRST, 64, 655.0)
    store.land(Batch(FIRST, (replace(both, place=Place("may.json", 3)), point(FIRST, 128, 850.0))))
    landed = store.land(Batch(FIRST, (replace(both, place=Place("june.json", 9)), point(FIRST, 256, 900.0))))
    assert (landed.points, landed.duplicates, landed.superseded, landed.contested) == (1, 1, 0, 0)
    assert values(store, 77) == {64: 655.0, 128: 850.0, 256: 900.0}


def test_the_fuller_of_two_rows_counts_where_nothing_else_decides(store: Store) -> None:
    lean = point(FIRST, 64, 655.0)
    store.land(Batch(FIRST, (lean, replace(lean, metrics={**lean.metrics, "p99_ttft": 6.0}, raw="fuller"))))
    assert store.points(77).filter(status="valid")["p99_ttft"].to_list() == [6.0]


def test_another_recipe_is_another_point(store: Store) -> None:
    store.land(Batch(FIRST, (point(FIRST, recipe=None), point(FIRST, tput=700.0, recipe="0123456789abcdef"))))
    assert sorted(store.tidy(77, ["tput_per_gpu"])["value"]) == [655.0, 700.0]


def test_scores_count_by_the_time_of_their_artifact_then_by_attempt(store: Store) -> None:
    store.land_many([Batch(SECOND, scores=(score(SECOND, 0.5, 10),)), Batch(FIRST, scores=(score(FIRST, 0.8, 30),))])
    (counted,) = store.scores(77)
    assert (counted.strict, counted.run) == (0.8, FIRST.key)


def test_equal_accuracies_in_an_older_shape_are_one_score(store: Store) -> None:
    rich = score(FIRST, score=0.9, score_name="em_strict")
    lean = score(FIRST, place=Place("copy.json"))
    landed = store.land(Batch(FIRST, scores=(lean, rich, replace(lean, place=Place("third.json")))))
    assert (landed.scores, landed.duplicates) == (1, 2)
    assert store.scores(77) == (rich,)


def test_scores_that_contradict_each_other_say_so(store: Store) -> None:
    store.land(Batch(FIRST, scores=(score(FIRST, 0.9), score(FIRST, 0.4))))
    assert [(s.strict, s.invalid) for s in store.scores(77)] == [
        (0.4, Caveat("conflicting_rows")),
        (0.9, Caveat("conflicting_rows")),
    ]


def test_what_was_promised_and_what_its_jobs_did_are_told_by_the_last_attempt_that_knows(store: Store) -> None:
    promised = Expected("dsr1-fp8-h200-sglang", SERIES)
    store.land(Batch(FIRST, job_runs=(JobRun("setup"), JobRun("single-node 8k1k / c64")), expected=(promised,)))
    store.land(Batch(SECOND, job_runs=(JobRun("setup", 2),)))
    assert store.job_runs(77) == (JobRun("setup", 2),)
    assert set(store.job_runs(RunKey(77, 1))) == {JobRun("setup"), JobRun("single-node 8k1k / c64")}
    assert store.expected(77) == (promised,)


def test_jobs_and_changelog_are_told_by_the_last_attempt_that_has_them(store: Store) -> None:
    entries = (ChangelogEntry(("z",), ("first",), ""), ChangelogEntry(("a",), ("second",), ""))
    store.land(Batch(FIRST, changelog=entries, jobs=(JobCount("h200", 1, 2),)))
    store.land(Batch(SECOND, jobs=(JobCount("h200", 2, 2),)))
    assert store.changelog(77) == entries
    assert store.jobs(77) == (JobCount("h200", 2, 2),)
    assert store.jobs(RunKey(77, 1)) == (JobCount("h200", 1, 2),)


def test_the_case_of_absent_and_zero_values_agrees_between_sql_and_frames(store: Store) -> None:
    zero = replace(point(FIRST, 32, 0.0), invalid=Caveat("zero_throughput"))
    absent = [point(FIRST, 4, float("nan")), point(FIRST, 8, None), point(FIRST, 16, float("inf"))]
    store.land(Batch(FIRST, (point(FIRST, 1, 1000.0), point(FIRST, 2, 1010.0), *absent, zero)))
    tidy = store.tidy(77, ["tput_per_gpu"])["value"]
    assert (len(tidy), tidy.mean(), tidy.max(), tidy.median()) == (2, 1005.0, 1010.0, 1005.0)
    by_sql = store._con.sql(
        "SELECT count(tput_per_gpu), avg(tput_per_gpu), max(tput_per_gpu), median(tput_per_gpu) FROM points"
        " WHERE invalid IS NULL"
    ).fetchall()
    assert by_sql == [(2, 1005.0, 1010.0, 1005.0)]
    assert store.invalid(77)["conc"].to_list() == [32]


POOL = [
    Batch(of, (point(of, conc, tput, minutes),))
    for of in (FIRST, SECOND, run(78))
    for conc, tput, minutes in ((8, 1.0, None), (8, 2.0, 5), (16, 1.0, 5))
] + [
    collected(SECOND, point(SECOND, 8, 2.0), point(SECOND, 16, 4.0)),
    collected(FIRST, point(FIRST, 8, 2.0), point(FIRST, 8, 3.0), point(FIRST, 32, 9.0)),
    Batch(FIRST, scores=(score(FIRST, 0.8, 30), score(FIRST, 0.7))),
    Batch(SECOND, scores=(score(SECOND, 0.8), score(SECOND, 0.6)), jobs=(JobCount("h200", 1, 2),)),
    Batch(replace(SECOND, title="named", conclusion="success", status="completed")),
    Batch(replace(SECOND, head_sha="f" * 40, status="in_progress")),
]


def answers(store: Store) -> dict[str, pl.DataFrame]:
    """Every question's answer, but for the sizes of files."""
    curves = store.curves()["curve"].to_list()
    return {
        "runs": store.runs(),
        "curves": store.curves(),
        "statuses": store.statuses(),
        "unmapped": store.unmapped(),
        "scores": store.score_frame(),
        "history": store.history(curves).sort(pl.all()),
        "points": pl.concat(store.points(key) for key in (77, 78, RunKey(77, 1))),
        "records": pl.DataFrame(
            {
                "text": [
                    repr((store.run(k), store.scores(k), store.jobs(k), store.changelog(k), store.rejections(k)))
                    for k in (77, 78)
                ]
            }
        ),
    }


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(POOL), cut=st.integers(0, len(POOL)), seed=st.integers(0, 9))
def test_the_order_of_landing_changes_no_answer(
    tmp_path_factory: pytest.TempPathFactory, order: list[Batch], cut: int, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("orders")
    with Store.open(folder / "a", folder / "a.archive") as one, Store.open(folder / "b", folder / "b.archive") as other:
        one.land_many(POOL)
        other.land_many(order[:cut])
        for batch in order[cut:]:
            other.land(batch)
        other.land(random.Random(seed).choice(order))
        told = answers(other)
        for question, answer in answers(one).items():
            assert_frame_equal(answer, told[question])


def test_a_run_is_made_of_everything_that_was_said_of_it() -> None:
    lean = Run(5, 1, START, status="in_progress", published=True)
    full = Run(5, 1, START + timedelta(seconds=1), "o/r", "w.yml", "push", "main", status="queued", conclusion=None)
    ended = Run(5, 1, START, status="completed", conclusion="success")
    merged = merge_runs([lean, full, ended])
    assert merged == replace(full, status="completed", conclusion="success", published=True)
    assert merged == merge_runs([ended, full, lean])


def test_a_run_is_official_when_the_predicate_says_so_of_all_that_is_known(tmp_path: Path) -> None:
    with Store.open(tmp_path / "x", tmp_path / "a", official=lambda r: r.event == "push") as store:
        store.land(Batch(Run(5, 1, START), (point(Run(5, 1, START)),)))
        assert store.runs()["official"].to_list() == [False]
        store.land(Batch(Run(5, 1, START, event="push")))
        assert store.runs()["official"].to_list() == [True]
        assert store.newest_run(official_only=True) == Run(5, 1, START, event="push")
