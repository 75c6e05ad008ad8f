"""The archive keeps a batch whole, names it by its content, and says when a file is no longer what it was."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import archive
from store.frames import COLUMNS, from_text, to_batch, to_frame, to_text
from store.metrics import POINT_METRICS
from store.records import (
    Batch,
    Caveat,
    ChangelogEntry,
    Expected,
    Finding,
    JobCount,
    JobRun,
    Layout,
    Place,
    Point,
    Rejection,
    Role,
    Run,
    RunKey,
    Scope,
    Score,
    Series,
    Verdict,
)

START = datetime(2026, 6, 14, 6, 43, 25, 123457, tzinfo=UTC)
RUN = Run(27489075807, 2, START, "example-org/sweeps", event="push", head_branch="main", created_at=START)
SERIES = Series("dsr1", "h200", "sglang", "fp8", "none", "single_turn", 8192, 1024, False, Layout(Role(8)), 64)
SPLIT = replace(SERIES, layout=Layout(Role(8, ep=8), Role(16, dp_attention=True), True), isl=None, spec="?odd one")


def point(**changes: object) -> Point:
    plain = Point(RUN.key, SERIES, {"tput_per_gpu": 500.0, "p99.9_ttft": 0.1}, Place("bmk_a.json"), '{"conc": 64}')
    return replace(plain, **changes)


def score(**changes: object) -> Score:
    plain = Score(RUN.key, SERIES, "gsm8k", 0.9, 0.01, 0.95, 0.005, 1319, Place("meta.json"), '{"task": "gsm8k"}')
    return replace(plain, **changes)


FULL = Batch(
    RUN,
    points=(
        point(),
        point(
            series=SPLIT,
            image="lmsysorg/sglang:v0.5.9@sha256:" + "0" * 64,
            recipe="0123456789abcdef",
            pool="dgxc",
            invalid=Caveat.of("failed_requests", have=3, share=0.1),
            caveats=(Caveat("unknown_runner"), Caveat.of("nonfinite", metric="std_ttft")),
            extra={"frobnication_rate": 1.5, "naïve 指标": -2.0},
            place=Place("全.zip/bmk_b.json", 7, START + timedelta(microseconds=1), True),
        ),
    ),
    scores=(score(), score(task="aime", strict=None, score=0.5, score_name="pass@1", n=None, caveats=(Caveat("x"),))),
    rejections=(Rejection(Place("bad.json", 3), "conc", "not_a_number", "many", '{"conc": "many"}', RUN.key),),
    changelog=(
        ChangelogEntry(("b", "a"), ("z", "y"), "https://example.org/2"),
        ChangelogEntry(("a",), ("x",), "", evals_only=True),
    ),
    jobs=(JobCount("h200", 0, 0), JobCount("b200", 3, 4)),
    job_runs=(
        JobRun("single-node 8k1k / dsr1 c64", 2, "completed", "failure", "https://example.org/1", START, START),
        JobRun("eval / dsr1 c64"),
    ),
    expected=(Expected("dsr1-fp8", SERIES, "a/b:1"), Expected("dsr1-fp8", SERIES, None, "gsm8k")),
)


def test_a_batch_comes_back_from_its_file_as_it_was_written(tmp_path: Path) -> None:
    file = archive.write(FULL, tmp_path)
    back = archive.batch(file)
    assert (back.run, set(back.rejections), back.changelog, set(back.jobs)) == (
        FULL.run,
        set(FULL.rejections),
        FULL.changelog,
        set(FULL.jobs),
    )
    assert (set(back.job_runs), set(back.expected)) == (set(FULL.job_runs), set(FULL.expected))
    assert sorted(map(repr, back.points)) == sorted(map(repr, FULL.points))
    assert sorted(map(repr, back.scores)) == sorted(map(repr, FULL.scores))


def test_a_file_is_named_by_run_attempt_and_content(tmp_path: Path) -> None:
    file = archive.write(FULL, tmp_path)
    assert file.path.relative_to(tmp_path).as_posix() == f"run=27489075807/attempt=2/{file.digest}.parquet"
    assert list(archive.files(tmp_path)) == [file]


def test_a_local_run_has_a_negative_number_and_is_found_too(tmp_path: Path) -> None:
    file = archive.write(Batch(replace(RUN, id=-5, event="local")), tmp_path)
    assert [found.run for found in archive.files(tmp_path)] == [RunKey(-5, 2)] == [file.run]


@given(st.permutations([*FULL.points, point(metrics={"tput_per_gpu": 501.0}, raw="{}")]), st.permutations(FULL.scores))
def test_the_order_of_reading_does_not_change_the_rows(points: list[Point], scores: list[Score]) -> None:
    shuffled = replace(FULL, points=tuple(points), scores=tuple(scores))
    straight = replace(FULL, points=(*FULL.points, point(metrics={"tput_per_gpu": 501.0}, raw="{}")))
    assert to_frame(shuffled).equals(to_frame(straight))


def test_writing_twice_keeps_the_first_file(tmp_path: Path) -> None:
    first = archive.write(FULL, tmp_path)
    stamp = first.path.stat().st_mtime_ns
    assert archive.write(FULL, tmp_path) == first
    assert first.path.stat().st_mtime_ns == stamp


def test_another_value_makes_another_file(tmp_path: Path) -> None:
    other = replace(FULL, points=(point(metrics={"tput_per_gpu": 500.0000000001}), FULL.points[1]))
    assert archive.write(FULL, tmp_path).digest != archive.write(other, tmp_path).digest


@pytest.mark.parametrize("harm", [lambda b: b[:-40], lambda b: b[:200] + b"?" + b[201:], lambda b: b""])
def test_a_file_that_was_cut_or_edited_is_named(tmp_path: Path, harm: object) -> None:
    file = archive.write(FULL, tmp_path)
    file.path.write_bytes(harm(file.path.read_bytes()))
    with pytest.raises(archive.BrokenFile, match=file.digest):
        archive.read(file)


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        archive.write(FULL, tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_stray_file_is_not_of_the_archive(tmp_path: Path) -> None:
    file = archive.write(FULL, tmp_path)
    (file.path.parent / "notes.parquet").write_bytes(b"x")
    (file.path.parent / f".{file.digest}.1.part").write_bytes(b"x")
    assert list(archive.files(tmp_path)) == [file]


def test_a_file_has_the_fixed_columns_and_those_of_the_metrics_that_it_brings() -> None:
    assert set(POINT_METRICS) <= set(COLUMNS)
    assert len(COLUMNS) == 25 + len(POINT_METRICS)
    brought = set().union(*(point.metrics for point in FULL.points)) & set(POINT_METRICS)
    expected = {name: kind for name, kind in COLUMNS.items() if name not in POINT_METRICS or name in brought}
    assert dict(to_frame(FULL).schema) == dict(pl.Schema(expected))
    assert brought


def test_values_that_are_not_finite_become_absent() -> None:
    odd = {"tput_per_gpu": math.nan, "median_ttft": math.inf, "median_tpot": 0.1}
    rows = to_frame(Batch(RUN, points=(point(metrics=odd, extra={"own": math.nan}),), scores=(score(strict=math.nan),)))
    (back,) = to_batch(rows).points
    assert (dict(back.metrics), dict(back.extra)) == ({"median_tpot": 0.1}, {})
    assert to_batch(rows).scores[0].strict is None


def test_a_metric_of_no_table_is_kept_among_the_extra_ones() -> None:
    (back,) = to_batch(to_frame(Batch(RUN, points=(point(metrics={"tput_per_gpu": 1.0, "odd": 2.0}),)))).points
    assert (dict(back.metrics), dict(back.extra)) == ({"tput_per_gpu": 1.0}, {"odd": 2.0})


def test_a_measurement_of_another_run_is_refused() -> None:
    with pytest.raises(ValueError, match="1/1"):
        to_frame(Batch(RUN, points=(point(run=RunKey(1, 1)),)))


@given(st.dictionaries(st.sampled_from(POINT_METRICS), st.floats(allow_nan=False, allow_infinity=False)))
def test_every_finite_value_comes_back_exactly(metrics: dict[str, float]) -> None:
    (back,) = to_batch(to_frame(Batch(RUN, points=(point(metrics=metrics),)))).points
    assert dict(back.metrics) == metrics


def test_records_in_text_keep_infinity() -> None:
    finding = Finding(Scope.CURVE, "a b", "tput_per_gpu", Verdict.NOISY, mde=math.inf, caveats=(Caveat.of("x", y=1.0),))
    assert from_text(to_text(finding), Finding) == finding
