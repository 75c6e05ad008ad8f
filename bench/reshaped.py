"""A sweep of 2,000 points whose layouts changed in half of its groups: compare with frontiers, and the re-run plan.

python -m bench.reshaped
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np

from bench.processes import TRACKER, timed
from tests.factory import row, run

CONCS = tuple(2**power for power in range(8))
LAYOUTS = 5
"""Of each group: 40 points."""


def rows(points: int, level: np.random.Generator, image: str, *, reshaped: bool) -> list[dict[str, object]]:
    """Groups of five layouts; in every second one a reshaped sweep has other numbers of GPUs."""
    made = []
    for number in range(points):
        place, conc = divmod(number, len(CONCS))
        group, layout = divmod(place, LAYOUTS)
        other = reshaped and group % 2
        speed = 1000.0 * float(np.exp(0.005 * level.standard_normal()))
        one = row(CONCS[conc], speed * (1 + 0.1 * layout), image=image, hw="b200")
        one |= {"isl": 1024 * (1 + group), "tp": 2**layout * (3 if other else 1), "ep": 1}
        made.append(one)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=2000)
    points = parser.parse_args().points
    with tempfile.TemporaryDirectory() as temporary:
        folder, level = Path(temporary), np.random.default_rng(7)
        store = ("--store", str(folder / "store.duckdb"))
        for night in range(3):
            image = "lmsysorg/sglang:v0.5.9-cu130" if night < 2 else "lmsysorg/sglang:v0.6.0-cu130"
            sweep = rows(points, level, image, reshaped=night == 2)
            bundle = [{"run": run(1000 + night, f"2026-06-0{1 + night}T00:00:00Z"), "rows": sweep}]
            (folder / f"{night}.json").write_text(json.dumps(bundle), encoding="utf-8")
        timed("tracker ingest of three sweeps", *TRACKER, "ingest", *map(str, sorted(folder.glob("*.json"))), *store)
        timed(f"tracker compare latest ({points:,} points)", *TRACKER, "compare", "latest", *store, repeat=3)
        timed("tracker plan latest", *TRACKER, "plan", "latest", *store, repeat=3)


if __name__ == "__main__":
    main()
