"""A store of some files of an archive answers of their curves what the whole store does."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from store import archive
from store.duck import Store
from store.records import Batch, Place, Point, RunKey, Trouble, Withdrawal
from tests.test_archive import RUN, SERIES, START, point

OTHER = replace(SERIES, gpu="b200")


def measured(number: int, attempt: int = 1, *points: Point, **said: object) -> Batch:
    """A batch of a run that starts `number` hours after the first."""
    run = replace(RUN, id=number, attempt=attempt, started_at=START + timedelta(hours=number), **said)
    return Batch(run, points=tuple(replace(one, run=run.key) for one in points))


def at(value: float, place: str = "bmk_a.json", **changes: object) -> Point:
    return point(metrics={"tput_per_gpu": value}, raw=str(value), place=Place(place), **changes)


HELD = (
    measured(1, 1, at(100.0), at(50.0, series=OTHER)),
    measured(1, 1, at(101.0, "agg.json", series=OTHER)),
    measured(2, 1, at(200.0)),
    measured(2, 2, at(210.0)),
    measured(2, 2, at(210.0), published=True),
    measured(3, 1, at(300.0), at(301.0, "bmk_b.json")),
    measured(4, 1, at(400.0, series=OTHER)),
    measured(5, 1, at(500.0), at(501.0, series=replace(SERIES, conc=128))),
    measured(6, 1, at(600.0)),
)
WITHDRAWN = (
    Withdrawal(6, "broken-run", "a broken fan", START.date(), "https://example.org/1"),
    Withdrawal(2, "broken-run", "the second try", START.date(), "https://example.org/2", attempt=2),
)


@pytest.mark.parametrize("withdrawn", [(), WITHDRAWN])
def test_a_store_of_the_files_of_a_curve_tells_its_history(tmp_path: Path, withdrawn: tuple[Withdrawal, ...]) -> None:
    root = tmp_path / "archive"
    rules = {"official": lambda run: run.published, "withdrawn": withdrawn}
    with Store.open(tmp_path / "store.duckdb", root, **rules) as whole:
        whole.land_many(HELD)
        for curve in whole.curves()["curve"]:
            names = whole.files_of([curve])
            with Store.of_files(root, names, **rules) as part:
                for most in (None, 2):
                    expected = whole.history([curve], most=most)
                    assert_frame_equal(part.history([curve], most=most), expected)
                    assert len(expected)


def test_the_files_of_a_curve_are_all_files_of_its_runs_and_no_others(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.duckdb", tmp_path / "archive") as whole:
        whole.land_many(HELD)
        (curve,) = (name for name in whole.curves()["curve"] if "b200" in name)
        runs = [file.run for file in archive.files_among(whole.files_of([curve]), tmp_path)]
        assert runs == [RunKey(1, 1), RunKey(1, 1), RunKey(4, 1)]
        assert whole.files_of(["no such curve"]) == ()


def test_a_file_that_is_gone_or_broken_is_trouble_and_no_shorter_history(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.duckdb", tmp_path / "archive") as whole:
        whole.land_many(HELD[:3])
        names = whole.files_of(whole.curves()["curve"].to_list())
    (tmp_path / "archive" / names[0]).write_bytes(b"PAR1")
    (tmp_path / "archive" / names[-1]).unlink()
    with pytest.raises(Trouble) as raised, Store.of_files(tmp_path / "archive", names):
        pass
    assert names[0] in str(raised.value)
    assert names[-1] in str(raised.value)
