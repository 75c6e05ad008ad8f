"""Every question of the store, asked of a few runs whose answers can be told by hand."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from store.duck import TIDY_KEYS, Store
from store.identity import config_key, curve_key, series_key
from store.records import Batch, Caveat, Place, Rejection
from tests.test_store_landing import SERIES, point, run, score

CURVE = curve_key(SERIES)
OTHER = replace(SERIES, model="?glm6", framework="?mystery")
RUNS = [run(number) for number in (1, 2, 3)]
HELD = [
    Batch(
        of,
        (
            point(of, 64, 500.0 + of.id, image=f"a/b:v1.{of.id}", recipe="0123456789abcdef", pool="dgxc"),
            point(of, 128, 700.0 + of.id),
            point(of, series=OTHER, tput=9.0),
            replace(point(of, 256, 0.0), invalid=Caveat.of("zero_throughput", metric="tput_per_gpu")),
        ),
        (score(of, 0.9 + of.id / 100), score(of, 0.5, task="aime")),
        (Rejection(Place("bad.json", of.id), "conc", "absent", run=of.key),),
    )
    for of in RUNS
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("questions")
    with Store.open(folder / "s", folder / "a", official=lambda r: r.id != 2) as opened:
        opened.land_many(HELD)
        yield opened


def test_runs_are_told_newest_first_with_what_they_hold(store: Store) -> None:
    told = store.runs().select("run", "official", "points", "valid", "invalid", "superseded", "scores", "rejections")
    assert told.rows() == [
        ("3/1", True, 4, 3, 1, 0, 2, 1),
        ("2/1", False, 4, 3, 1, 0, 2, 1),
        ("1/1", True, 4, 3, 1, 0, 2, 1),
    ]


def test_a_run_is_found_by_its_number_and_attempt(store: Store) -> None:
    assert store.run(2) == store.run(RUNS[1].key) == RUNS[1]
    assert store.run(99) is None
    assert store.run(replace(RUNS[1], attempt=2).key) is None


def test_the_newest_run_may_be_asked_for_among_all_or_among_official_ones(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s", tmp_path / "a", official=lambda r: r.id == 1) as store:
        assert store.newest_run() is None
        store.land_many(HELD)
        assert store.newest_run() == RUNS[2]
        assert store.newest_run(official_only=True) == RUNS[0]


def test_a_tidy_frame_has_the_agreed_columns_and_valid_points_alone(store: Store) -> None:
    tidy = store.tidy(2)
    assert tuple(tidy.columns) == (*TIDY_KEYS, "metric", "value")
    assert tidy.schema["started_at"] == pl.Datetime("us", "UTC")
    chosen = tidy.filter(conc=64, curve=CURVE, metric="tput_per_gpu")
    row = chosen.row(0, named=True)
    assert row == {
        "run": "2/1",
        "started_at": RUNS[1].started_at,
        "image": "a/b:v1.2",
        "recipe": "0123456789abcdef",
        "curve": CURVE,
        "series": series_key(SERIES),
        "conc": 64,
        "multinode": False,
        "pool": "dgxc",
        "config": config_key(SERIES),
        "attempt": 1,
        "official": False,
        "metric": "tput_per_gpu",
        "value": 502.0,
    }
    assert 256 not in set(tidy["conc"])


def test_points_of_a_run_are_told_with_their_status_and_reason(store: Store) -> None:
    assert sorted(store.points(1)["status"]) == ["invalid", "valid", "valid", "valid"]
    (reason,) = store.invalid(1)["invalid"]
    assert json.loads(reason)["code"] == "zero_throughput"
    assert len(store.points(99)) == 0
    assert len(store.tidy(99)) == 0


def test_a_history_holds_the_asked_curves_before_a_run_oldest_first(store: Store) -> None:
    history = store.history([CURVE], ["tput_per_gpu"], before=RUNS[2])
    assert history.select("run", "conc", "value").rows() == [
        ("1/1", 64, 501.0),
        ("1/1", 128, 701.0),
        ("2/1", 64, 502.0),
        ("2/1", 128, 702.0),
    ]
    assert history.columns == store.tidy(1).columns
    assert history.schema == store.tidy(1).schema


def test_a_history_may_leave_runs_out(store: Store) -> None:
    assert set(store.history([CURVE], ["tput_per_gpu"], without=[2])["run"]) == {"1/1", "3/1"}
    assert set(store.history([CURVE], ["tput_per_gpu"])["run"]) == {"1/1", "2/1", "3/1"}
    assert len(store.history([], ["tput_per_gpu"])) == 0
    assert len(store.history([CURVE], ["p99_itl"])) == 0


def test_a_metric_that_no_point_may_carry_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="em_strict"):
        store.history([CURVE], ["em_strict"])


def test_scores_are_told_for_a_run_and_for_a_history(store: Store) -> None:
    assert [(s.task, s.strict) for s in store.scores(2)] == [("aime", 0.5), ("gsm8k", 0.92)]
    told = store.score_history([series_key(SERIES)], before=RUNS[2])
    assert [(s.run.id, s.task, s.strict) for s in told if s.task == "gsm8k"] == [(1, "gsm8k", 0.91), (2, "gsm8k", 0.92)]
    assert store.score_history(["no such series"]) == ()
    assert len(store.score_history(without=[1, 2])) == 2
    assert store.score_frame().select("run", "series", "task").row(0) == ("1/1", series_key(SERIES), "aime")


def test_rejections_come_back_as_they_were(store: Store) -> None:
    assert store.rejections(2) == HELD[1].rejections
    assert store.rejections(99) == ()


def test_unknown_spellings_are_counted(store: Store) -> None:
    assert store.unmapped().rows() == [("framework", "mystery", 1, 3), ("model", "glm6", 1, 3)]


def test_series_come_back_from_their_keys(store: Store) -> None:
    assert store.series([series_key(SERIES)]) == {series_key(SERIES): SERIES}
    assert len(store.series()) == 4


def test_curves_are_told_with_their_runs(store: Store) -> None:
    told = store.curves().filter(curve=CURVE).select("config", "points", "runs", "first_at", "last_at").row(0)
    assert told == (config_key(SERIES), 9, 3, RUNS[0].started_at, RUNS[2].started_at)


def test_the_whole_is_told_in_counts_and_sizes(store: Store) -> None:
    info = store.info()
    assert {k: info.counts[k] for k in ("files", "runs", "points", "valid", "invalid", "scores", "rejections")} == {
        "files": 3,
        "runs": 3,
        "points": 12,
        "valid": 9,
        "invalid": 3,
        "scores": 6,
        "rejections": 3,
    }
    assert info.newest == RUNS[2]
    assert info.archive_bytes > 0
    assert info.database_bytes > 0


@pytest.mark.parametrize(("form", "read"), [("parquet", pl.read_parquet), ("csv", pl.read_csv), ("json", pl.read_json)])
def test_an_export_holds_what_the_questions_say(store: Store, tmp_path: Path, form: str, read: object) -> None:
    points, scores = store.export(tmp_path / "it's", form)
    exported = read(points).filter(pl.col("metric") == "tput_per_gpu")
    told = [value for number in (1, 2, 3) for value in store.tidy(number, ["tput_per_gpu"])["value"]]
    assert sorted(exported["value"]) == sorted(told)
    assert sorted(read(scores)["strict"]) == [0.5, 0.5, 0.5, 0.91, 0.92, 0.93]


def test_every_question_says_in_its_first_line_what_it_answers() -> None:
    for path in (Path(__file__).parents[1] / "store" / "queries").glob("*.sql"):
        first = path.read_text(encoding="utf-8").splitlines()[0]
        assert len(first.removeprefix("-- ")) in range(30, len(first)), path
