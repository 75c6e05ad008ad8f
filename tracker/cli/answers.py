"""What `tracker claims` prints: the words of the claim, the answer, and what was measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from store.identity import series_key
from tracker.claims import Checked


def as_json(found: Sequence[Checked]) -> str:
    """One object per claim, in the order of the text."""
    return json.dumps([_form(one) for one in found], ensure_ascii=False, allow_nan=False, indent=2)


def _form(one: Checked) -> dict[str, Any]:
    claim = one.claim
    return {
        "text": claim.text,
        "span": list(claim.span),
        "kind": claim.kind.value,
        "claimed": list(claim.values),
        "unit": claim.unit,
        "metric": claim.metric,
        "answer": one.answer.value,
        "reason": one.reason.as_dict(),
        "measured": list(one.measured),
        "points": [
            {"series": p.group or series_key(p.series), "metric": p.metric, "runs": list(p.runs)} for p in one.points
        ],
        "scores": [{"series": series_key(s.series), "task": s.task, "run": str(s.run)} for s in one.scores],
    }


def as_table(found: Sequence[Checked]) -> str:
    """Three lines per claim at most: the claim and its answer, what was measured, on what."""
    if not found:
        return "no numbers about performance or accuracy are claimed"
    return "\n".join(line for one in found for line in _lines(one))


def _lines(one: Checked) -> list[str]:
    unit = f" {one.claim.unit}" if one.claim.unit else ""
    claimed = ", ".join(f"{value:g}" for value in one.claim.values)
    measured = " to ".join(f"{value:.4g}" for value in one.measured) or "nothing that fits"
    runs = sorted({run for point in one.points for run in point.runs} | {str(score.run) for score in one.scores})
    lines = [f"{one.answer.value:<13} {one.claim.text.strip()!r}: claimed {claimed}{unit}, measured {measured}{unit}"]
    reason = one.reason.code.replace("_", " ")
    lines.append(
        f"{'':<13} {reason}; {len(one.points) + len(one.scores)} measurements"
        + f" of runs {', '.join(runs)}" * bool(runs)
    )
    return lines


FORMS: Mapping[str, Callable[[Sequence[Checked]], str]] = MappingProxyType({"table": as_table, "json": as_json})
"""Text of the answers by format."""
