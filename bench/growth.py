"""How the product grows: time, memory and slope at 10^4 to 10^7 points and 10^3 to 10^5 series, peers beside it.

    pip install --target /tmp/peers apache-otava ruptures asv
    apt-get install postgresql-15
    python -m bench.growth --with /tmp/peers                10^4 to 10^6 points, 10^3 to 10^4 series: about half an hour
    python -m bench.growth --with /tmp/peers --most 7       10^7 points too, which takes an hour more
    python -m bench.growth --most 4                         a few minutes

Processor seconds are told, since wall seconds of a machine that others use say nothing; a slope of 1.0 is proportional.
The plain databases answer a smaller question, the one of a comparison by hand: the newest row of each of the
candidate's points. A peer that is not there is named and left out.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import duckdb
import numpy as np
import polars as pl

from bench import steps
from bench.processes import TRACKER, rows, write
from tests.factory import run
from tracker.stats.steps import find

SWEEP = 500
"""Points of a sweep."""
POSTGRES = Path("/usr/lib/postgresql/15/bin")
KEY = ("hw", "framework", "model", "precision", "spec_decoding", "isl", "osl", "tp", "ep", "conc")
NEWEST = f"""
SELECT c.id, n.tput FROM candidate c LEFT JOIN (
  SELECT *, row_number() OVER (PARTITION BY {", ".join(KEY)} ORDER BY measured DESC) AS place
  FROM points WHERE branch = 'main'
) n ON {" AND ".join(f"n.{name} = c.{name}" for name in KEY)} AND n.place = 1
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one process took: seconds on the wall and of processor, and its largest memory in MiB."""

    wall: float
    processor: float
    memory: float


def spent(*words: str) -> Cost:
    begun = time.perf_counter()
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {child.returncode}")
    return Cost(time.perf_counter() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 2**10)


class Table:
    """Rows of costs by size; each says its slope beside the size before."""

    def __init__(self, unit: str) -> None:
        self._before: dict[str, tuple[int, float]] = {}
        print(f"{'':<44}{unit:>12} {'CPU s':>9} {'wall s':>9} {'MiB':>8} {'slope':>6}", flush=True)

    def add(self, name: str, size: int, cost: Cost) -> None:
        slope, before = "", self._before.get(name)
        if before and min(before[1], cost.processor) > 0:
            slope = f"{math.log(cost.processor / before[1]) / math.log(size / before[0]):.2f}"
        self._before[name] = size, cost.processor
        memory = f"{cost.memory:,.0f}" if cost.memory else ""
        print(f"{name:<44}{size:>12,} {cost.processor:>9.2f} {cost.wall:>9.2f} {memory:>8} {slope:>6}", flush=True)


# ---------------------------------------------------------------- points


def points(sizes: Sequence[int]) -> None:
    table = Table("points")
    for size in sizes:
        with tempfile.TemporaryDirectory() as temporary:
            for name, cost in _of_points(Path(temporary), size):
                table.add(name, size, cost)


def _of_points(folder: Path, size: int) -> Iterator[tuple[str, Cost]]:
    files, candidate = folder / "files", folder / "candidate.json"
    files.mkdir()
    write(files, size, SWEEP)
    newest = rows(SWEEP, np.random.default_rng(8), "lmsysorg/sglang:v0.6.0-cu130")
    candidate.write_text(json.dumps([{"run": run(999_999, "2026-06-01T00:00:00Z"), "rows": newest}]), encoding="utf-8")
    store = ("--store", str(folder / "store.duckdb"))
    yield "tracker ingest", spent(*TRACKER, "ingest", str(files), *store)
    yield f"tracker compare of {SWEEP} points", spent(*TRACKER, "compare", str(candidate), *store)
    yield "tracker store rebuild", spent(*TRACKER, "store", "rebuild", *store)
    table = _plain(files)
    for name, ask in PLAIN.items():
        for what, cost in ask(
            folder, table, pl.DataFrame([_flat(one, {}) for one in newest], infer_schema_length=None)
        ):
            yield f"{name}: {what}", cost


def _plain(files: Path) -> pl.DataFrame:
    """The rows of all sweeps with their keys, their date and their throughput alone."""
    made = []
    for path in sorted(files.glob("*.json")):
        (bundle,) = json.loads(path.read_text(encoding="utf-8"))
        said = {"measured": bundle["run"]["run_started_at"], "branch": "main"}
        made.append(pl.DataFrame([_flat(one, said) for one in bundle["rows"]], infer_schema_length=None))
    return pl.concat(made)


def _flat(row: dict[str, object], said: dict[str, object]) -> dict[str, object]:
    return {**{name: row[name] for name in KEY}, "tput": row["tput_per_gpu"], **said}


def _cost(work: Callable[[], object]) -> Cost:
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return Cost(time.perf_counter() - wall, time.process_time() - processor, 0.0)


def _duckdb(folder: Path, table: pl.DataFrame, candidate: pl.DataFrame) -> Iterator[tuple[str, Cost]]:
    with duckdb.connect(str(folder / "plain.duckdb")) as con:
        con.register("told", table.to_arrow())
        con.register("asked", candidate.with_row_index("id").to_arrow())
        con.execute("CREATE TABLE candidate AS FROM asked")
        yield "load", _cost(lambda: con.execute("CREATE TABLE points AS FROM told"))
        yield "newest rows", _cost(lambda: con.execute(NEWEST).fetchall())


def _sqlite(folder: Path, table: pl.DataFrame, candidate: pl.DataFrame) -> Iterator[tuple[str, Cost]]:
    con = sqlite3.connect(folder / "plain.sqlite")

    def load(name: str, frame: pl.DataFrame) -> None:
        con.execute(f"CREATE TABLE {name} ({', '.join(frame.columns)})")
        con.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * frame.width)})", frame.iter_rows())
        con.commit()

    load("candidate", candidate.with_row_index("id"))
    yield "load", _cost(lambda: load("points", table))
    yield "newest rows", _cost(lambda: con.execute(NEWEST).fetchall())
    con.close()


def _postgres(folder: Path, table: pl.DataFrame, candidate: pl.DataFrame) -> Iterator[tuple[str, Cost]]:
    """A server of its own on a socket in the folder; its seconds are those on the wall, since it is another process."""
    if not POSTGRES.exists():
        return
    data = folder / "postgres"
    data.mkdir()
    folder.chmod(0o755)
    as_user = ("runuser", "-u", "postgres", "--") if os.geteuid() == 0 else ()
    if as_user:
        subprocess.run(["chown", "postgres", str(data)], check=True)
    _quietly(*as_user, str(POSTGRES / "initdb"), "-D", str(data / "db"))
    settings = f"-c listen_addresses='' -c unix_socket_directories={data}"
    control = [*as_user, str(POSTGRES / "pg_ctl"), "-D", str(data / "db"), "-w"]
    _quietly(*control, "-o", settings, "-l", str(data / "log"), "start")
    try:
        yield from _asked_of_postgres(
            [*as_user, "psql", "-h", str(data), "-d", "postgres", "-q", "-c"], table, candidate
        )
    finally:
        _quietly(*control, "-m", "immediate", "stop")


def _quietly(*words: str) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _asked_of_postgres(psql: Sequence[str], table: pl.DataFrame, candidate: pl.DataFrame) -> Iterator[tuple[str, Cost]]:
    def load(name: str, frame: pl.DataFrame) -> None:
        kinds = {pl.String: "text", pl.Float64: "float8", pl.Boolean: "boolean"}
        columns = ", ".join(f"{name} {kinds.get(type(kind), 'bigint')}" for name, kind in frame.schema.items())
        subprocess.run([*psql, f"CREATE TABLE {name} ({columns})"], check=True)
        copy = [*psql, f"COPY {name} FROM STDIN WITH (FORMAT csv)"]
        subprocess.run(copy, input=frame.write_csv(include_header=False).encode(), check=True)

    def ask() -> None:
        subprocess.run([*psql, NEWEST], check=True, stdout=subprocess.DEVNULL)

    load("candidate", candidate.with_row_index("id"))
    for what, work in (("load", lambda: load("points", table)), ("newest rows", ask)):
        cost = _cost(work)
        yield what, Cost(cost.wall, cost.wall, 0.0)


PLAIN: dict[str, Callable[[Path, pl.DataFrame, pl.DataFrame], Iterator[tuple[str, Cost]]]] = {
    "DuckDB": _duckdb,
    "SQLite": _sqlite,
    "PostgreSQL (wall)": _postgres,
}


# ---------------------------------------------------------------- series


def series(sizes: Sequence[int]) -> None:
    """The re-analysis of a store whose sweeps are measured again and again: every curve's steps and drift."""
    table = Table("series")
    for size in sizes:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            (folder / "files").mkdir()
            _sweeps(folder / "files", size)
            store = ("--store", str(folder / "store.duckdb"))
            spent(*TRACKER, "ingest", str(folder / "files"), *store)
            asked = ("history", "--format", "json", *store)
            table.add("tracker history of everything (12 runs)", size, spent(*TRACKER, *asked))


def _sweeps(folder: Path, size: int, runs: int = 12) -> None:
    level = np.random.default_rng(7)
    for number in range(runs):
        image = f"lmsysorg/sglang:v0.5.{number // 4}-cu130"
        for part in range(max(1, size // SWEEP)):
            told = run(
                10_000 * (number + 1) + part, f"2026-{1 + number:02d}-01T{part // 60 % 24:02d}:{part % 60:02d}:00Z"
            )
            bundle = [{"run": told, "rows": rows(min(SWEEP, size), level, image, family=200 * part)}]
            (folder / f"{number:02d}-{part:04d}.json").write_text(json.dumps(bundle), encoding="utf-8")


def detectors() -> None:
    """Change points of one curve of 60 runs: ours over its six points, the others over one series each."""
    rng = np.random.default_rng(7)
    curves = [steps.case(rng, steps.KINDS[0], 6, 3) for _ in range(60)]
    ways: dict[str, Callable[[steps.Case], object]] = {"ours, a curve of six points": lambda one: find(one.track)}
    for name, make in (("apache-otava", steps.otava), ("ruptures (PELT)", steps.ruptures), ("asv", _asv)):
        try:
            ways[f"{name}, one series"] = make()
        except ImportError as missing:
            print(f"left out: {name} ({missing})")
    for name, way in ways.items():
        cost = _cost(lambda way=way: [way(one) for one in curves])
        print(f"{name:<44}{1000 * cost.processor / len(curves):>12.1f} ms of processor", flush=True)
    print("left out: mozdetect compares histograms of many values a day; one value a run is below what it takes")


def _asv() -> Callable[[steps.Case], object]:
    from asv.step_detect import detect_steps  # noqa: PLC0415 - may be absent

    return lambda one: detect_steps([float(v) if np.isfinite(v) else None for v in np.exp(one.series)])


# ---------------------------------------------------------------- report


PACKAGES = ("duckdb", "polars", "numpy", "scipy", "pyarrow", "apache-otava", "ruptures", "asv")


def machine() -> None:
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.processor(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    print(f"{model}, {len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB, {platform.platform()}")
    print(f"Python {platform.python_version()}, {', '.join(filter(None, map(_version, PACKAGES)))}", flush=True)
    if POSTGRES.exists():
        said = subprocess.run([POSTGRES / "postgres", "--version"], check=True, capture_output=True, text=True)
        print(said.stdout.strip())
    else:
        print(f"left out: PostgreSQL ({POSTGRES} is not there)")


def _version(name: str) -> str:
    try:
        return f"{name} {metadata.version(name)}"
    except metadata.PackageNotFoundError:
        return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--with", dest="folders", action="append", default=[])
    parser.add_argument("--most", type=int, default=6, help="power of ten of the most points")
    asked = parser.parse_args()
    sys.path += asked.folders
    machine()
    print("\nChange points of one curve, 60 runs")
    detectors()
    print("\nSeries")
    series([10**power for power in range(3, min(asked.most, 6))])
    print("\nPoints")
    points([10**power for power in range(4, asked.most + 1)])


if __name__ == "__main__":
    main()
