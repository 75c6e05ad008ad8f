"""How long the re-analysis of a whole store takes in one process: its series, repeated to a number.

`python -m bench.cluster` shares it among processes and nodes.

python -m bench.history                        the lab sweeps (100 runs a curve), repeated to 460 series
python -m bench.history --series 20000 PATH... these files, repeated to 20,000 series
"""

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from store.metrics import ADVISORY_METRICS, GATE_METRICS
from tracker import annals, jobs
from tracker.chronicle import Past, chronicles

LAB = Path(__file__).resolve().parents[1] / "tests" / "data" / "lab" / "h200-sweeps.zip"
METRICS = (*GATE_METRICS, *ADVISORY_METRICS)
NAMES = ("curve", "series")


def landed(paths: Sequence[Path]) -> Past:
    """What a store of these files holds of history."""
    with tempfile.TemporaryDirectory() as folder:
        where = jobs.Where.of(Path(folder) / "store.duckdb", None)
        jobs.ingest(sorted(paths), where)
        return annals.past(annals.Asked(metrics=METRICS), where)


def repeated(past: Past, series: int) -> Past:
    """The curves of a history under so many names that it holds at least so many series."""
    times = range(-(-series // past.history["series"].n_unique()))
    named = [
        past.history.with_columns(pl.format("{}/{}", name, pl.lit(n)).alias(name) for name in NAMES) for n in times
    ]
    known = {f"{key}/{n}": one for n in times for key, one in past.series.items()}
    return replace(past, history=pl.concat(named), series=known)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, default=[LAB])
    parser.add_argument("--series", type=int, default=460)
    asked = parser.parse_args()
    past = repeated(landed(asked.paths), asked.series)
    begun = time.perf_counter(), time.process_time()
    told = sum(1 for _ in chronicles(past, METRICS))
    wall, processor = time.perf_counter() - begun[0], time.process_time() - begun[1]
    print(f"{past.history['series'].n_unique():,} series, {told:,} curves by metric: {wall:.1f} s", end="")
    print(f" ({processor:.1f} s of processor, {1000 * processor / told:.0f} ms for each)")


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
