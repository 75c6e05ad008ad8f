"""How fast points in memory become an archive and a database, beside the plain ways of doing less.

taskset -c 0 python bench/ingest.py            one core
python bench/ingest.py --points 100000
"""

import argparse
import gc
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from bench.synthetic import batches
from store import archive
from store.duck import Store
from store.records import Batch


def land(folder: Path, runs: list[Batch]) -> None:
    with Store.open(folder / "store.duckdb", folder / "archive") as store:
        store.land_many(runs)


def land_one_by_one(folder: Path, runs: list[Batch]) -> None:
    with Store.open(folder / "store.duckdb", folder / "archive") as store:
        for run in runs:
            store.land(run)


def archive_only(folder: Path, runs: list[Batch]) -> None:
    for run in runs:
        archive.write(run, folder)


def read_json(folder: Path, runs: list[Batch]) -> None:
    """DuckDB's own reader over one JSON file per run: no identity, no history, no check."""
    for run in runs:
        (folder / f"{run.run.id}.json").write_text("[" + ",".join(p.raw for p in run.points) + "]")
    started = clock()
    con = duckdb.connect(str(folder / "plain.duckdb"))
    con.execute(f"CREATE TABLE rows AS SELECT * FROM read_json('{folder}/*.json')")
    con.close()
    read_json.spent = since(started)  # type: ignore[attr-defined]  # the making of the files is no part of it


def row_by_row(folder: Path, runs: list[Batch]) -> None:
    """One statement a row, as an application that has records would write it first."""
    con = duckdb.connect(str(folder / "rows.duckdb"))
    names = list(runs[0].points[0].metrics)
    con.execute(
        "CREATE TABLE points (run BIGINT, series VARCHAR, image VARCHAR, "
        + ", ".join(f'"{n}" DOUBLE' for n in names)
        + ")"
    )
    holes = ", ".join("?" * (3 + len(names)))
    for run in runs:
        con.executemany(
            f"INSERT INTO points VALUES ({holes})",
            [[p.run.id, str(p.series), p.image, *p.metrics.values()] for p in run.points],
        )
    con.close()


def clock() -> tuple[float, float]:
    """Seconds on the wall, and seconds of processor: on a busy machine only the second tells ways apart."""
    return time.perf_counter(), time.process_time()


def since(started: tuple[float, float]) -> tuple[float, float]:
    wall, processor = clock()
    return wall - started[0], processor - started[1]


def timed(way: Callable[[Path, list[Batch]], None], runs: list[Batch]) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        started = clock()
        way(Path(folder), runs)
        return getattr(way, "spent", since(started))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=50_000)
    parser.add_argument("--size", type=int, default=500, help="points per run")
    asked = parser.parse_args()
    runs = list(batches(asked.points, asked.size))
    gc.freeze()  # what is measured is the landing, not the walks of the collector over the points made above
    few = runs[: max(1, len(runs) // 25)]
    print(f"{asked.points} points in {len(runs)} runs, {len(os.sched_getaffinity(0))} core(s)")
    ways = (
        ("archive and database, runs in bulk", land, runs),
        ("archive and database, run by run", land_one_by_one, runs),
        ("archive alone", archive_only, runs),
        ("DuckDB read_json of the same rows", read_json, runs),
        ("row-by-row inserts", row_by_row, few),
    )
    base = 0.0
    print(f"{'':<36} {'points/s':>10} {'points per CPU second':>22} {'ratio':>7}")
    for name, way, given in ways:
        wall, processor = timed(way, given)
        height = sum(len(run.points) for run in given)
        base = base or height / processor
        print(f"{name:<36} {height / wall:>10,.0f} {height / processor:>22,.0f} {height / processor / base:>7.2f}")


if __name__ == "__main__":
    main()
