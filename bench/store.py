"""How long it takes to open a large store and to ask what a comparison asks.

python -m bench.store                      a million points, made in a temporary folder
python -m bench.store --keep /tmp/million  keep the store there, and use it again
"""

import argparse
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.synthetic import batches
from store.duck import Store

METRICS = (
    "tput_per_gpu output_tput_per_gpu median_ttft p99_ttft median_tpot p99_tpot median_itl p99_itl median_e2el p99_e2el"
).split()


def build(folder: Path, points: int, size: int) -> None:
    started = time.perf_counter()
    with Store.open(folder / "store.duckdb", folder / "archive") as store:
        landed = store.land_many(batches(points, size))
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"landed {landed.points:,} points in {seconds:.0f} s, the making of them included; peak memory {peak:.2f} GiB"
    )


def ask(folder: Path) -> dict[str, int]:
    """Open, take the newest run, and the history of its curves: what every comparison begins with."""
    with Store.open(folder / "store.duckdb", folder / "archive", read_only=True) as store:
        run = store.newest_run()
        assert run is not None
        candidate = store.tidy(run.key, METRICS)
        history = store.history(candidate["curve"].unique().to_list(), METRICS, before=run)
    return {"candidate": len(candidate) // len(METRICS), "history": len(history) // len(METRICS)}


def runs(folder: Path) -> dict[str, int]:
    with Store.open(folder / "store.duckdb", folder / "archive", read_only=True) as store:
        return {"runs": len(store.runs())}


def timed(question: Callable[[Path], dict[str, int]], folder: Path, times: int = 9) -> None:
    """Milliseconds on the wall and of processor: on a busy machine only the second means anything."""
    wall, processor, told = [], [], {}
    for _ in range(times):
        started = time.perf_counter(), time.process_time()
        told = question(folder)
        wall.append(1000 * (time.perf_counter() - started[0]))
        processor.append(1000 * (time.process_time() - started[1]))
    middle = statistics.median(wall)
    print(
        f"{question.__name__:<6} first {wall[0]:5.0f} ms, median {middle:5.0f} ms, least {min(wall):5.0f} ms"
        f" (processor {statistics.median(processor):5.0f} ms)   {told}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=500, help="points per run")
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.keep or Path(temporary)
        if not (folder / "store.duckdb").exists():
            build(folder, asked.points, asked.size)
        database = (folder / "store.duckdb").stat().st_size
        print(f"database {database / 2**20:.0f} MiB, {len(os.sched_getaffinity(0))} core(s)")
        timed(ask, folder)
        timed(runs, folder)


if __name__ == "__main__":
    main()
