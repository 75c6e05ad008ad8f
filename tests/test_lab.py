"""Sweeps of real boards whose truth is known, through `tracker ingest` and `tracker compare`.

Each candidate stands against the one v1.0.0 sweep just before it: what most image bumps have.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.lab import LabCase, bundles, lab_cases
from tracker.cli import run

FLAGS = {"regression", "improvement", "mixed"}


def verdict(case: LabCase, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said of the curve's throughput, from files by the command line alone."""
    known = {bundle["run"]["id"]: bundle for bundle in bundles()}
    past, candidate = folder / "past.json", folder / "candidate.json"
    past.write_text(json.dumps([known[sweep.id] for sweep in case.baseline]), encoding="utf-8")
    candidate.write_text(json.dumps(known[case.candidate.id]), encoding="utf-8")
    store = ("--store", str(folder / f"{case.candidate.id}.duckdb"))
    assert run(["ingest", str(past), *store]) == 0
    capsys.readouterr()
    assert run(["compare", str(candidate), "--format", "json", *store]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    (found,) = [one for one in findings if (one["scope"], one["metric"]) == ("curve", "tput_per_gpu")]
    return str(found["verdict"])


def test_from_one_baseline_run_every_image_is_found_and_no_rebuild_is_called_a_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = Counter((case.truth, verdict(case, tmp_path, capsys)) for case in lab_cases(1) if not case.environment_moved)
    unchanged = {said: number for (truth, said), number in told.items() if truth == "unchanged"}
    assert sum(unchanged.values()) == 42
    assert sum(unchanged.get(flag, 0) for flag in FLAGS) <= 1, told
    slower = {"v1.1.0": 5, "v1.2.0": 4, "v1.3.0": 16}
    assert {image: told[image, "regression"] for image in slower} == slower, told
    assert told["v1.4.0", "improvement"] == 13, told
    # The neighbour is no change of the image: the same image, other numbers.
    assert told["noisy neighbour", "suspected"] == 6, told
