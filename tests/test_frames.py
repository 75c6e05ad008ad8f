"""Two frames without a store: what a notebook may hand in, and what it gets."""

import subprocess
import sys
from datetime import datetime

import polars as pl
import pytest

import tracker
from tests.sweeps import IMAGES, nights, sweep
from tracker.frames import RESULT, compare_frames, learn_scales
from tracker.settings import Settings

OLD, NEW, _ = IMAGES
SMALL = ("run", "series", "metric", "value")


def curve_verdicts(answer):
    return {row["metric"]: row["verdict"] for row in answer.filter(pl.col("scope") == "curve").iter_rows(named=True)}


def test_the_answer_has_the_promised_columns():
    answer = compare_frames(nights(3, OLD), sweep("200/1", 9, NEW, 0.9))
    assert answer.schema == pl.Schema(RESULT)
    assert curve_verdicts(answer) == {"tput_per_gpu": "regression", "median_tpot": "regression"}
    assert set(answer["scope"]) == {"point", "curve"}


def test_it_is_the_package_s_own_function_and_costs_nothing_until_asked():
    assert tracker.compare_frames is compare_frames
    code = "import sys, tracker; sys.exit(bool({'polars', 'scipy', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    with pytest.raises(AttributeError, match="nothing"):
        _ = tracker.nothing


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.drop("pool", "config", "recipe"),
        lambda frame: frame.with_columns(image=pl.lit(None)),
        lambda frame: frame.with_columns(pl.col("run").str.split("/").list.first().cast(pl.Int64)),
        lambda frame: frame.with_columns(run=pl.concat_str(pl.lit("night "), "run")),
        lambda frame: frame.with_columns(pl.col("started_at").dt.replace_time_zone(None)),
        lambda frame: frame.with_columns(pl.col("started_at").dt.date()),
        lambda frame: frame.with_columns(pl.col("started_at").dt.to_string("%Y-%m-%dT%H:%M:%SZ")),
        lambda frame: frame.drop("started_at"),
        lambda frame: frame.drop("curve"),
        lambda frame: pl.concat([frame, frame]),
        lambda frame: frame.sample(fraction=1.0, shuffle=True, seed=4),
        lambda frame: frame.with_columns(pl.col("conc").cast(pl.Int16), pl.col("metric").cast(pl.Categorical)),
        lambda frame: frame.select(SMALL),
    ],
)
def test_frames_of_many_shapes_are_understood(change):
    answer = compare_frames(change(nights(3, OLD)), change(sweep("200/1", 9, NEW, 0.85)))
    verdicts = answer.filter((pl.col("scope") == "curve") & (pl.col("metric") == "tput_per_gpu"))["verdict"]
    assert set(verdicts) == {"regression"}


def test_without_any_image_the_candidate_is_the_new_one():
    answer = compare_frames(nights(4, OLD).drop("image"), sweep("200/1", 9, NEW, 0.9).drop("image"))
    row = answer.filter(pl.col("scope") == "curve").row(0, named=True)
    assert (row["verdict"], row["n_baseline"]) == ("regression", 4)


@pytest.mark.parametrize("lost", SMALL)
def test_a_frame_that_lacks_what_nothing_can_stand_for_says_so(lost):
    with pytest.raises(ValueError, match=f"candidate lacks {lost}: give one row per point and metric"):
        compare_frames(nights(1, OLD), sweep("200/1", 9, NEW).drop(lost))


@pytest.mark.parametrize("lost", ["run", "series", "metric"])
def test_a_row_that_belongs_to_nothing_says_so(lost):
    with pytest.raises(ValueError, match=f"history has rows without {lost}: fill or drop"):
        compare_frames(nights(1, OLD).with_columns(pl.lit(None, pl.String).alias(lost)), sweep("200/1", 9, NEW))


def test_times_that_are_no_times_say_so():
    with pytest.raises(ValueError, match="give datetimes"):
        compare_frames(nights(1, OLD).with_columns(started_at=pl.lit(1.5)), sweep("200/1", 9, NEW))


def test_empty_frames_give_empty_answers():
    history, candidate = nights(1, OLD), sweep("200/1", 9, NEW)
    assert compare_frames(history, candidate.clear()).is_empty()
    assert set(compare_frames(history.clear(), candidate)["verdict"]) == {"no_baseline"}


def test_a_history_that_lies_after_the_candidate_was_meant_as_its_baseline():
    answer = compare_frames(nights(2, OLD, start=20), sweep("90/1", 1, NEW, 0.9))
    assert curve_verdicts(answer)["tput_per_gpu"] == "regression"


def test_points_without_a_partner_come_last_with_their_reason():
    answer = compare_frames(nights(1, OLD, conc=(4, 16)), sweep("200/1", 9, NEW, conc=(4, 16, 64)))
    last = answer.row(-1, named=True)
    assert (last["key"], last["metric"], last["verdict"]) == ("dsr1 h200 tp8 c64", None, "no_baseline")
    assert last["caveats"] == ["new_point"]


def test_scales_once_learned_may_be_handed_back():
    history = pl.concat([nights(6, OLD, curve=f"curve {number}") for number in range(12)])
    candidate = sweep("200/1", 9, NEW, 0.97, curve="curve 3")
    scales = learn_scales(history)
    assert {scale.source for scale in scales.metrics.values()} == {"store"}
    again = compare_frames(history, candidate, Settings(scales=scales))
    assert again.equals(compare_frames(history, candidate))


def test_a_history_seen_before_is_read_as_it_stands():
    history = pl.concat([nights(6, OLD, curve=f"curve {number}") for number in range(12)])
    candidate = sweep("200/1", 9, NEW, 0.97, curve="curve 3")
    settings = Settings(scales=learn_scales(history))
    answers = [compare_frames(history, candidate, settings) for _ in range(3)]
    assert answers[1].equals(answers[0])
    assert answers[2].equals(answers[0])
    history.replace_column(history.get_column_index("curve"), pl.Series("curve", ["curve 4"] * history.height))
    assert set(compare_frames(history, candidate, settings)["verdict"]) == {"no_baseline"}
    history.replace_column(history.get_column_index("curve"), pl.Series("curve", ["curve 3"] * history.height))
    again = compare_frames(history, candidate, settings).filter(pl.col("scope") == "curve")
    assert set(again["verdict"]) != {"no_baseline"}


def test_a_naive_time_is_taken_for_utc():
    naive = sweep("200/1", 9, NEW).with_columns(started_at=pl.lit(datetime(2026, 1, 10)))
    assert curve_verdicts(compare_frames(nights(3, OLD), naive))["tput_per_gpu"] == "equivalent"
