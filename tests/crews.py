"""A store whose history is worth sharing, and answers to the last bit."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from tests.factory import lean_row
from tracker.jobs import Landing, Where, ingest

OLD, NEW = "lmsysorg/sglang:v0.5.9", "lmsysorg/sglang:v0.5.10"
GPUS = ("h100", "h200", "b200", "b300", "mi300x", "mi325x", "mi355x", "gb200")


# ---------------------------------------------------------------- a store


def filled(folder: Path, days: int = 12) -> Where:
    """Sweeps of eight GPUs over some days, with a rerun of some rows, rows that contradict, and a withdrawn run."""
    where = Where.of(folder / "tracker.duckdb", None)
    runs = [_bundle(1000 * place + day, day, gpu) for place, gpu in enumerate(GPUS, 1) for day in range(1, days + 1)]
    runs += [_bundle(1004, 4, "h100", speed=0.8, attempt=2), _bundle(2005, 5, "h200", speed=0.8)]
    file = folder / "sweeps.json"
    file.write_text(json.dumps(runs), encoding="utf-8")
    ingest([file], where, Landing(official=True))
    (folder / "tracker.withdrawals.yaml").write_text(
        "- run: 3006\n  class: policy\n  reason: a noisy neighbour\n  since: 2026-07-21\n  source: https://x.example/7\n"
    )
    return Where.of(folder / "tracker.duckdb", None)


def _bundle(number: int, day: int, gpu: str, speed: float = 1.0, attempt: int = 1) -> dict[str, object]:
    at = f"2026-03-{day:02}T{10 + attempt}:00:00Z"
    wave = 1 + 0.003 * ((number * 7919) % 11 - 5)
    level = speed * wave * (0.9 if day > 7 and number // 1000 % 2 else 1.0)
    return {
        "run": {"id": number, "run_attempt": attempt, "run_started_at": at, "event": "schedule"},
        "rows": [lean_row(conc, level, gpu, OLD if day < 8 else NEW) for conc in (4, 16, 64)],
    }


# ---------------------------------------------------------------- equal to the last bit


def exact(answer: object) -> str:
    """Everything that an answer says, each float by its eight bytes."""
    return "\n".join(_told(answer))


def _told(value: Any) -> Iterator[str]:
    if isinstance(value, float):
        yield struct.pack(">d", value).hex()
    elif is_dataclass(value):
        yield type(value).__name__
        for field in fields(value):
            yield field.name
            yield from _told(getattr(value, field.name))
    elif isinstance(value, list | tuple):
        yield f"{len(value)}:"
        for one in value:
            yield from _told(one)
    else:
        yield repr(value)
