"""The page of a sweep of 2,000 points: how long it takes to write, its size, and how long Chromium needs to open it.

python -m bench.page                           needs chromium and chromedriver
"""

import argparse
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from bench.processes import rows
from reports import page
from tests.browser.window import missing, opened
from tests.factory import run
from tracker import jobs

RUNS = 8
TIMES = """
const [entry] = performance.getEntriesByType("navigation");
const paint = performance.getEntriesByName("first-contentful-paint")[0];
return [entry.domContentLoadedEventEnd, entry.loadEventEnd, paint ? paint.startTime : 0];
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=2000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-page-") as folder:
        built(Path(folder), asked.points)
        if why := missing():
            print(f"not opened: {why}")
            return
        opening(Path(folder) / "page.html")


def built(folder: Path, points: int) -> None:
    """Land the runs of one sweep, judge the last one and write its page."""
    level = np.random.default_rng(7)
    for number in range(RUNS):
        started = f"2026-06-{1 + number:02d}T00:00:00Z"
        made = rows(points, level, f"lmsysorg/sglang:v0.5.{number // 3}-cu130")
        (folder / f"{number}.json").write_text(json.dumps([{"run": run(1000 + number, started), "rows": made}]))
    where = jobs.Where.of(folder / "tracker.duckdb", None)
    jobs.ingest(sorted(folder.glob("*.json")), where)
    answer = jobs.compare(jobs.Question(), where)
    start = time.perf_counter()
    text = page.build(answer)
    spent = time.perf_counter() - start
    (folder / "page.html").write_text(text, encoding="utf-8")
    size = f"{len(answer.findings)} findings, page of {len(text) / 1e6:.2f} MB"
    print(f"{points} points, {RUNS} runs: {size} in {spent:.2f} s")


def opening(path: Path) -> None:
    """Open the page five times in a new window and tell the medians, in seconds after the address was given."""
    found = []
    for _ in range(5):
        with opened() as window:
            window.get(path.as_uri())
            found.append(window.execute_script(TIMES))
    ready, load, paint = (statistics.median(times) / 1000 for times in zip(*found, strict=True))
    print(f"Chromium: first paint {paint:.2f} s, ready {ready:.2f} s, loaded {load:.2f} s ({shutil.which('chromium')})")


if __name__ == "__main__":
    main()
