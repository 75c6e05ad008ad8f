"""`python -m bench`: every figure of the product, one after the other, on this machine."""

import os
import platform
import subprocess
import sys
from pathlib import Path

SHARED = Path(os.environ.get("TRACKER_SHARED", Path(__file__).resolve().parents[2] / "shared"))
EVALS = SHARED / "tools" / "stat_eval" / "data" / "evals_public.parquet"

ROWS: tuple[tuple[str, tuple[str, ...], Path | None], ...] = (
    ("false alarms, power and coverage on simulated sweeps", ("bench.calibration", "simulate", "--full"), None),
    ("steps found and false ones on simulated curves", ("bench.steps",), None),
    ("frontiers of simulated groups whose layouts stay or change", ("bench.frontier",), None),
    ("the lab sweeps", ("bench.calibration", "lab", "tests/data/lab/h200-sweeps.zip"), None),
    (
        "real unchanged sweeps with planted shifts",
        ("bench.calibration", "stat-eval", str(SHARED / "tools/stat_eval")),
        EVALS,
    ),
    ("evals", ("bench.evals", *([str(EVALS)] if EVALS.exists() else [])), None),
    ("what weeks announce of simulated stories", ("bench.weeks", "--story", "5"), None),
    ("the history of a whole store", ("bench.history",), None),
    ("classes of labelled changes", ("bench.attribution",), None),
    ("classes of published changes", ("bench.attribution", str(SHARED / "data")), SHARED / "data"),
    ("time to find claims in hostile texts", ("bench.claims",), None),
    ("time of the grammars of names in hostile texts", ("bench.grammars",), None),
    ("landing points that are in memory", ("bench.ingest",), None),
    ("2,000 points whose layouts changed in half of the groups: compare and plan", ("bench.reshaped",), None),
    ("classes of changes against labels of our own", ("bench.attribution",), None),
    ("time of grammars at four times the text", ("bench.grammars",), None),
    ("an archive in a bucket beside one in a folder", ("bench.archive",), None),
    ("what a store survives", ("bench.faults", "--share", "0.1"), None),
    ("growth from 10^4 to 10^6 points, plain databases beside it", ("bench.growth",), None),
    ("an archive in a bucket beside one in a folder, and many writers", ("bench.archive",), None),
    ("the page of 2,000 points in Chromium", ("bench.page",), None),
    ("whole processes: ingest and compare", ("bench.processes",), None),
)
"""What, the module with its arguments, and the file without which it is left out."""


def main() -> int:
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for title, arguments, needed in ROWS:
        print(f"\n== {title}: python -m {' '.join(arguments)}", flush=True)
        if needed is not None and not needed.exists():
            print(f"left out: {needed} is not there")
        elif subprocess.run([sys.executable, "-m", *arguments], check=False).returncode:
            return 1
    return 0


sys.exit(main())
