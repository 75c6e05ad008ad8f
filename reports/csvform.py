"""The findings as CSV: one row per finding, ready for a spreadsheet, no cell that it would run as a formula."""

from __future__ import annotations

import csv
import io
from typing import Any

from reports import escapes, jsonform
from store.records import Comparison

COLUMNS = (
    "scope",
    "key",
    "config",
    "model",
    "gpu",
    "framework",
    "precision",
    "spec",
    "scenario",
    "isl",
    "osl",
    "layout",
    "conc",
    "task",
    "metric",
    "verdict",
    "baseline",
    "candidate",
    "change",
    "low",
    "high",
    "p",
    "mde",
    "n_baseline",
    "n_candidate",
    "n_points",
    "runs_baseline",
    "runs_candidate",
    "image_baseline",
    "image_candidate",
    "class",
    "differs",
    "controls",
    "controls_moved",
    "caveats",
    "rules_version",
)

_CONTROLS = {"controls": "total", "controls_moved": "moved"}


def dumps(comparison: Comparison) -> str:
    """All findings as CSV text with a header row; changes are relative, for accuracy differences of fractions."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for finding in jsonform.form(comparison)["findings"]:
        row = _flat(finding)
        writer.writerow([_cell(row[name]) for name in COLUMNS])
    return out.getvalue()


def _flat(finding: jsonform.Json) -> jsonform.Json:
    """One level of names: `n` becomes `n_baseline` and so on."""
    low, high = finding["interval"] or (None, None)
    sides = ("baseline", "candidate")
    differs = finding["attribution"] or {"differences": []}
    return {
        **finding,
        "low": low,
        "high": high,
        **{f"n_{name}": number for name, number in finding["n"].items()},
        **{f"runs_{side}": " ".join(finding["runs"][side]) for side in sides},
        **{f"image_{side}": finding["images"][side] for side in sides},
        "class": " ".join(differs.get("classes", ())),
        "differs": " ".join(one["between"] or one["what"] for one in differs["differences"]),
        **{name: differs.get("controls", {}).get(key) for name, key in _CONTROLS.items()},
        "caveats": " ".join(caveat["code"] for caveat in finding["caveats"]),
    }


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return escapes.csv(value) if isinstance(value, str) else value
