"""Whole processes as a user starts them: `tracker ingest` from artifact files, `tracker compare` against a large store.

python -m bench.processes                      1,000,000 points, 500 a sweep
taskset -c 0 python -m bench.processes --points 200000
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import msgspec
import numpy as np

from tests.factory import row, run

TRACKER = (sys.executable, "-m", "tracker")
RUNS_PER_SERIES = 28
PERCENTILES = ("mean", "p90", "p99", "p99.9", "std")


def rows(size: int, level: np.random.Generator, image: str, family: int = 0) -> list[dict[str, object]]:
    """A sweep's rows of some 40 metrics: curves of eight concurrencies over made-up layouts and precisions."""
    made = []
    for index in range(size):
        conc, curve = 2 ** (index % 8), index // 8
        one = row(conc, 1000.0 * float(np.exp(0.005 * level.standard_normal())), image=image, hw="b200")
        one |= {
            "isl": 1024 + family + 1024 * (curve // 128),
            "tp": 1 + curve % 8,
            "ep": 1 + curve // 8 % 8,
            "spec_decoding": ("none", "mtp")[curve // 64 % 2],
        }
        one |= {
            f"{name}_{what}": one[f"median_{what}"] for name in PERCENTILES for what in ("ttft", "tpot", "itl", "e2el")
        }
        made.append(one)
    return made


def write(folder: Path, points: int, size: int) -> int:
    """Bundles of one run each, a day apart, with a new image every tenth; returns the bytes."""
    level, total = np.random.default_rng(7), 0
    for number in range(points // size):
        families = max(1, points // size // RUNS_PER_SERIES)
        family = number % families
        started = f"2025-{1 + number // 28 % 12:02d}-{1 + number % 28:02d}T{number // 336 % 24:02d}:00:00Z"
        image = f"lmsysorg/sglang:v0.5.{number // families // 3}-cu130"
        text = msgspec.json.encode([{"run": run(1000 + number, started), "rows": rows(size, level, image, family)}])
        (folder / f"{number:05d}.json").write_bytes(text)
        total += len(text)
    return total


def timed(name: str, *words: str, repeat: int = 1) -> float:
    """Best wall time of a process; its peak memory stands beside it."""
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        times.append(time.perf_counter() - begin)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**10
    print(f"{name:<58} {min(times):>8.2f} s   largest process so far {peak:,.0f} MiB", flush=True)
    return min(times)


def plain(files: Path, limit: int) -> float:
    """DuckDB's own read_json of the same rows: no identity, no checks, no archive, no history."""
    begin = time.perf_counter()
    with duckdb.connect() as con:
        paths = [str(path) for path in sorted(files.glob("*.json"))[:limit]]
        con.execute("CREATE TABLE t AS SELECT unnest(rows, recursive := true) FROM read_json(?)", [paths])
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=500, help="points per sweep")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        measure(Path(temporary), asked.points, asked.size)


def measure(folder: Path, points: int, size: int) -> None:
    files = folder / "files"
    files.mkdir()
    total = write(files, points, size)
    print(f"{points:,} rows, {total / 2**20:,.0f} MiB of JSON, {len(os.sched_getaffinity(0))} core(s)")
    store = ("--store", str(folder / "store.duckdb"))
    took = timed("tracker ingest (read, check, identity, archive, database)", *TRACKER, "ingest", str(files), *store)
    few = min(points // size, 100)
    beside = plain(files, few) / (few * size)
    print(
        f"  {points / took:,.0f} rows/s; DuckDB's plain read_json of the same files: {1 / beside:,.0f} rows/s",
        flush=True,
    )
    candidate = folder / "candidate.json"
    level = np.random.default_rng(8)
    newest = [{"run": run(999_999, "2026-06-01T00:00:00Z"), "rows": rows(size, level, "lmsysorg/sglang:v0.6.0-cu130")}]
    candidate.write_text(json.dumps(newest), encoding="utf-8")
    timed("tracker --help", *TRACKER, "--help", repeat=5)
    timed(f"tracker compare FILE ({size} points)", *TRACKER, "compare", str(candidate), *store, repeat=3)
    timed("tracker compare latest --format table", *TRACKER, "compare", "--format", "table", *store, repeat=3)
    small = folder / "small.json"
    fewer = [{"run": newest[0]["run"], "rows": newest[0]["rows"][: size // 10]}]
    small.write_text(json.dumps(fewer), encoding="utf-8")
    timed(f"tracker compare FILE ({size // 10} points)", *TRACKER, "compare", str(small), *store, repeat=3)


if __name__ == "__main__":
    main()
