"""The published JSON form of a comparison, and its JSON Schema: for automation, stable by `schema_version`.

Changes are relative (`exp(effect) - 1`), for accuracy differences of fractions; no value is ever NaN or infinite.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from reports import facts
from reports.facts import Facts, is_eval, run_url
from store.identity import curve_key, curve_of, layout_text
from store.images import compare
from store.records import (
    Attribution,
    Caveat,
    Comparison,
    Coverage,
    Differs,
    Evidence,
    Finding,
    Frontier,
    LaneCount,
    LayoutKind,
    Reach,
    Rejection,
    Run,
    RunKey,
    Series,
    Unmatched,
    Verdict,
)
from store.records import Scope as FindingScope
from store.runs import Kind

SCHEMA_VERSION = 1
SCHEMA_ID = "urn:sweep-tracker:comparison:1"

Json: TypeAlias = dict[str, Any]


def dumps(comparison: Comparison, indent: int | None = 2) -> str:
    """The comparison as strict JSON text, one final newline; the same comparison always gives the same bytes."""
    # Not the standard library: with an indent it is written in Python and took 1 s for 5,000 findings, this 0.03 s.
    text = msgspec.json.encode(form(comparison))
    return (msgspec.json.format(text, indent=indent) if indent else text).decode() + "\n"


def form(comparison: Comparison) -> Json:
    """The comparison as JSON values; `headline` holds the counts that every document shows."""
    chosen = facts.select(comparison)
    return {
        "schema_version": SCHEMA_VERSION,
        "rules_version": comparison.rules_version,
        "against": comparison.against,
        "candidate": [_run(run, chosen) for run in comparison.candidate],
        "baseline": [_run(run, chosen) for run in comparison.baseline],
        "headline": _headline(chosen),
        "caveats": _caveats(chosen.caveats),
        "findings": [_finding(finding) for finding in comparison.findings],
        "frontiers": [_frontier(frontier) for frontier in comparison.frontiers],
        "unmatched": [_unmatched(row) for row in comparison.unmatched],
        "rejected": [_rejection(row) for row in comparison.rejected],
    }


def _headline(chosen: Facts) -> Json:
    return {
        "verdict": chosen.verdict.value,
        "points": _counts(chosen.points),
        "curves": _counts(chosen.curves),
        "frontiers": _counts(chosen.fronts),
        "evals": _counts(chosen.scores),
        "measured": chosen.is_measured,
        "coverage": _coverage(chosen.coverage),
        "next": [step.code for step in chosen.steps],
    }


def _coverage(what: Coverage | None) -> Json | None:
    if what is None:
        return None
    return {
        "points": {name: getattr(what, name) for name in ("expected", "arrived", "failed", "missing", "dropped")},
        "evals": {name: getattr(what, f"evals_{name}") for name in ("expected", "arrived", "failed", "missing")},
        "conclusion": what.conclusion,
        "cut": what.cut,
        "jobs": _lane(what.jobs),
        "eval_jobs": _lane(what.eval_jobs),
    }


def _lane(count: LaneCount | None) -> Json | None:
    return None if count is None else {"passed": count.passed, "applicable": count.applicable}


def _counts(counts: facts.Counts) -> dict[str, int]:
    return {"total": sum(number for _, number in counts), **{verdict.value: number for verdict, number in counts}}


def _finding(finding: Finding) -> Json:
    return {
        "scope": finding.scope.value,
        "key": finding.key,
        **_identity(finding.series, finding.config),
        "task": finding.task,
        "metric": finding.metric,
        "verdict": facts.told_verdict(finding).value,
        "baseline": _number(finding.baseline),
        "candidate": _number(finding.candidate),
        "change": _change(finding, finding.effect),
        "interval": _interval(finding),
        "p": _number(finding.p),
        "mde": _change(finding, finding.mde),
        "n": {"baseline": finding.n_baseline, "candidate": finding.n_candidate, "points": finding.n_points},
        "runs": {"baseline": _keys(finding.baseline_runs), "candidate": _keys(finding.candidate_runs)},
        "images": _images(finding.baseline_image, finding.candidate_image),
        "caveats": _caveats(finding.caveats),
        "evidence": _evidence(finding.evidence),
        "attribution": _attribution(finding),
        "rules_version": finding.rules_version,
    }


def _attribution(finding: Finding) -> Json | None:
    found = finding.attribution
    if found is None:
        return None
    return {
        "class": found.kind.value,
        "classes": [kind.value for kind in found.kinds],
        "differences": _differences(found),
        "controls": {
            "total": found.controls.total,
            "moved": found.controls.moved,
            "change": _change(finding, found.controls.effect),
        },
    }


def _differences(found: Attribution) -> list[Json]:
    return [
        {
            "what": one.what,
            "class": one.kind.value,
            "baseline": one.before,
            "candidate": one.after,
            "between": one.between or None,
        }
        for one in found.differences
    ]


def _frontier(one: Frontier) -> Json:
    return {
        "key": one.key,
        "config": one.config,
        **_reach(one.interactivity, "interactivity"),
        "layouts": [
            {
                "kind": change.kind.value,
                "rule": change.rule,
                "baseline": layout_text(change.before) if change.before else None,
                "candidate": layout_text(change.after) if change.after else None,
            }
            for change in one.layouts
        ],
        "same_layouts": one.is_same,
        "peaks": {"baseline": one.peaks[0], "candidate": one.peaks[1]},
        "latency": _reach(one.latency, "seconds") if one.latency else None,
    }


def _reach(one: Reach, unit: str) -> Json:
    return {
        "axis": one.axis,
        "shared": list(one.shared) if one.shared else None,
        "gained": [list(part) for part in one.gained],
        "lost": [list(part) for part in one.lost],
        "gaps": [
            {unit: place, "change": _relative(gap), "band": [_relative(gap - half), _relative(gap + half)]}
            for place, gap, half in zip(one.places, one.gaps, one.band, strict=True)
        ],
    }


def _unmatched(row: Unmatched) -> Json:
    return {
        "key": row.key,
        "side": row.side,
        **_identity(row.series, row.config),
        "task": row.task,
        "verdict": row.verdict.value,
        "reason": _caveat(row.reason),
        "caveats": _caveats(row.caveats),
        "run": str(row.run) if row.run else None,
        "image": row.image,
        "metrics": {key: _number(value) for key, value in row.metrics.items()},
    }


def _rejection(row: Rejection) -> Json:
    return {
        "file": row.place.file,
        "index": row.place.index,
        "field": row.field,
        "reason": row.reason,
        "detail": row.detail,
        "run": str(row.run) if row.run else None,
    }


def _run(run: Run, chosen: Facts) -> Json:
    told = chosen.provenance_of(run)
    return {
        "id": run.id,
        "attempt": run.attempt,
        "key": str(run.key),
        "started_at": run.started_at.isoformat(),
        "url": run_url(run),
        "event": run.event,
        "head_branch": run.head_branch,
        "head_sha": run.head_sha,
        "conclusion": run.conclusion,
        "published": run.published,
        "kind": told.kind,
        "labels": list(run.labels),
        "measured": {"earliest": told.earliest.isoformat(), "latest": told.latest.isoformat()},
        "published_at": run.published_at.isoformat() if run.published_at else None,
        "reused_by": str(run.reused_by) if run.reused_by else None,
    }


_SERIES_FIELDS = ("model", "gpu", "framework", "precision", "spec", "scenario", "isl", "osl", "offload", "conc")


def _identity(series: Series | None, config: str) -> Json:
    fields = {name: getattr(series, name, None) for name in _SERIES_FIELDS}
    return {"config": config, **fields, **_shape(series)}


@lru_cache(maxsize=4096)
def _shape(series: Series | None) -> Json:
    if series is None:
        return dict.fromkeys(("layout", "gpus", "curve"))
    shape = series.layout
    return {"layout": layout_text(shape), "gpus": shape.gpus, "curve": curve_key(curve_of(series))}


def _change(finding: Finding, effect: float | None) -> float | None:
    """Relative change of a log ratio; a difference of fractions stays as it is."""
    if effect is None:
        return None
    return _number(effect if is_eval(finding) else _relative(effect))


def _relative(effect: float) -> float:
    try:
        return math.expm1(effect)
    except OverflowError:
        return math.inf


def _interval(finding: Finding) -> list[float | None] | None:
    if finding.low is None or finding.high is None:
        return None
    return [_change(finding, finding.low), _change(finding, finding.high)]


def _images(before: str | None, after: str | None) -> Json:
    return {"baseline": before, "candidate": after, "software": compare(before, after).value}


def _keys(runs: tuple[RunKey, ...]) -> list[str]:
    return [str(run) for run in runs]


def _caveats(caveats: tuple[Caveat, ...]) -> list[Json]:
    return [_caveat(caveat) for caveat in caveats]


def _caveat(caveat: Caveat) -> Json:
    return {name: _finite(value) for name, value in caveat.as_dict().items()}


def _evidence(evidence: Evidence | None) -> Json | None:
    if evidence is None:
        return None
    return {
        "members": list(evidence.members),
        "baseline": [[_number(value) for value in values] for values in evidence.baseline],
        "candidate": [[_number(value) for value in values] for values in evidence.candidate],
        "sigma": [_number(value) for value in evidence.sigma],
        "scale_source": evidence.scale_source,
        "correlation": _number(evidence.correlation),
        "margin": _number(evidence.margin),
        "alpha": _number(evidence.alpha),
        "p_adjusted": _number(evidence.p_adjusted),
        "pairs": [
            {
                "runs": {"baseline": one.baseline_runs, "candidate": one.candidate_runs},
                "cells": [list(cell) for cell in one.cells],
            }
            for one in evidence.pairs
        ],
    }


def _number(value: float | None) -> float | None:
    """A finite number, or null: a NaN would make the whole text unreadable to strict parsers."""
    return value if value is not None and math.isfinite(value) else None


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


# ---- schema --------------------------------------------------------------------------------------------------


def schema() -> Json:
    """The JSON Schema (draft 2020-12) of `form`: every key is required, and no other key exists."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "Comparison of benchmark sweeps",
        **_object(
            {
                "schema_version": {"const": SCHEMA_VERSION},
                "rules_version": _TEXT,
                "against": _TEXT,
                "candidate": _list({"$ref": "#/$defs/run"}),
                "baseline": _list({"$ref": "#/$defs/run"}),
                "headline": {"$ref": "#/$defs/headline"},
                "caveats": _CAVEATS,
                "findings": _list({"$ref": "#/$defs/finding"}),
                "frontiers": _list({"$ref": "#/$defs/frontier"}),
                "unmatched": _list({"$ref": "#/$defs/unmatched"}),
                "rejected": _list({"$ref": "#/$defs/rejection"}),
            }
        ),
        "$defs": _definitions(),
    }


def _object(properties: Mapping[str, Json]) -> Json:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


def _or_null(kind: str) -> Json:
    return {"type": [kind, "null"]}


_TEXT: Json = {"type": "string"}
_COUNT: Json = {"type": "integer", "minimum": 0}
_NUMBER_OR_NULL = _or_null("number")
_TEXT_OR_NULL = _or_null("string")
_CAVEATS = _list({"$ref": "#/$defs/caveat"})
_VERDICT: Json = {"enum": [verdict.value for verdict in Verdict]}
_IDENTITY: Mapping[str, Json] = {
    "config": _TEXT,
    **dict.fromkeys(("model", "gpu", "framework", "precision", "spec", "scenario"), _TEXT_OR_NULL),
    **{name: _or_null("integer") for name in ("isl", "osl", "conc")},
    "offload": _or_null("boolean"),
    "layout": _TEXT_OR_NULL,
    "gpus": _or_null("integer"),
    "curve": _TEXT_OR_NULL,
    "task": _TEXT_OR_NULL,
}


def _definitions() -> Json:
    counts = {"type": "object", "required": ["total"], "additionalProperties": _COUNT, "propertyNames": _COUNT_NAMES}
    return {
        "caveat": {"type": "object", "required": ["code"], "properties": {"code": _TEXT}},
        "run": _object(_RUN),
        "headline": _object(
            {
                "verdict": _VERDICT,
                **dict.fromkeys(("points", "curves", "frontiers", "evals"), counts),
                "measured": {"type": "boolean"},
                "coverage": {"anyOf": [{"$ref": "#/$defs/coverage"}, {"type": "null"}]},
                "next": _list(_TEXT),
            }
        ),
        "coverage": _object(
            {
                "points": _object(dict.fromkeys(("expected", "arrived", "failed", "missing", "dropped"), _COUNT)),
                "evals": _object(dict.fromkeys(("expected", "arrived", "failed", "missing"), _COUNT)),
                "conclusion": _TEXT_OR_NULL,
                "cut": _COUNT,
                **{name: {"anyOf": [_LANE, {"type": "null"}]} for name in ("jobs", "eval_jobs")},
            }
        ),
        "finding": _object(_FINDING),
        "frontier": _object(_FRONTIER),
        "unmatched": _object(
            {
                "key": _TEXT,
                "side": {"enum": ["candidate", "baseline", "plan"]},
                **_IDENTITY,
                "verdict": _VERDICT,
                "reason": {"$ref": "#/$defs/caveat"},
                "caveats": _CAVEATS,
                "run": _TEXT_OR_NULL,
                "image": _TEXT_OR_NULL,
                "metrics": {"type": "object", "additionalProperties": _NUMBER_OR_NULL},
            }
        ),
        "rejection": _object(
            {**dict.fromkeys(("file", "field", "reason", "detail"), _TEXT), "index": _COUNT, "run": _TEXT_OR_NULL}
        ),
        "evidence": _object(_EVIDENCE),
        "attribution": _object(_ATTRIBUTION),
    }


_LANE = _object(dict.fromkeys(("passed", "applicable"), _COUNT))
_COUNT_NAMES: Json = {"enum": ["total", *_VERDICT["enum"]]}
_MOMENT: Json = {"type": "string", "format": "date-time"}
_RUN: Mapping[str, Json] = {
    "id": {"type": "integer"},
    "attempt": _COUNT,
    "key": _TEXT,
    "started_at": _MOMENT,
    **dict.fromkeys(("url", "event", "head_branch", "head_sha", "conclusion"), _TEXT_OR_NULL),
    "published": {"type": "boolean"},
    "kind": {"enum": [kind.value for kind in Kind]},
    "labels": _list(_TEXT),
    "measured": _object(dict.fromkeys(("earliest", "latest"), _MOMENT)),
    "published_at": {"type": ["string", "null"], "format": "date-time"},
    "reused_by": _TEXT_OR_NULL,
}
_NUMBERS = _list(_NUMBER_OR_NULL)
_FINITE: Json = {"type": "number"}
_RANGE: Json = {"type": "array", "items": _FINITE, "minItems": 2, "maxItems": 2}
_RANGES = _list(_RANGE)


def _reaching(unit: str) -> Mapping[str, Json]:
    return {
        "axis": _TEXT,
        "shared": {"anyOf": [_RANGE, {"type": "null"}]},
        **dict.fromkeys(("gained", "lost"), _RANGES),
        "gaps": _list(_object({**dict.fromkeys((unit, "change"), _FINITE), "band": _RANGE})),
    }


_FRONTIER: Mapping[str, Json] = {
    **dict.fromkeys(("key", "config"), _TEXT),
    **_reaching("interactivity"),
    "layouts": _list(
        _object(
            {
                "kind": {"enum": [kind.value for kind in LayoutKind]},
                "rule": _TEXT,
                **dict.fromkeys(("baseline", "candidate"), _TEXT_OR_NULL),
            }
        )
    ),
    "same_layouts": {"type": "boolean"},
    "peaks": _object(dict.fromkeys(("baseline", "candidate"), _FINITE)),
    "latency": {"anyOf": [_object(_reaching("seconds")), {"type": "null"}]},
}
_FINDING: Mapping[str, Json] = {
    "scope": {"enum": [scope.value for scope in FindingScope]},
    "key": _TEXT,
    **_IDENTITY,
    "metric": _TEXT,
    "verdict": _VERDICT,
    **dict.fromkeys(("baseline", "candidate", "change", "p", "mde"), _NUMBER_OR_NULL),
    "interval": {"type": ["array", "null"], "items": _NUMBER_OR_NULL, "minItems": 2, "maxItems": 2},
    "n": _object(dict.fromkeys(("baseline", "candidate", "points"), _COUNT)),
    "runs": _object(dict.fromkeys(("baseline", "candidate"), _list(_TEXT))),
    "images": _object(
        {
            **dict.fromkeys(("baseline", "candidate"), _TEXT_OR_NULL),
            "software": {"enum": ["same", "changed", "unknown"]},
        }
    ),
    "caveats": _CAVEATS,
    "evidence": {"anyOf": [{"$ref": "#/$defs/evidence"}, {"type": "null"}]},
    "attribution": {"anyOf": [{"$ref": "#/$defs/attribution"}, {"type": "null"}]},
    "rules_version": _TEXT,
}
_CLASS: Json = {"enum": [kind.value for kind in Differs]}
_ATTRIBUTION: Mapping[str, Json] = {
    "class": _CLASS,
    "classes": _list(_CLASS),
    "differences": _list(
        _object({"what": _TEXT, "class": _CLASS, **dict.fromkeys(("baseline", "candidate", "between"), _TEXT_OR_NULL)})
    ),
    "controls": _object({"total": _COUNT, "moved": _COUNT, "change": _NUMBER_OR_NULL}),
}
_EVIDENCE: Mapping[str, Json] = {
    "members": _list(_TEXT),
    "baseline": _list(_NUMBERS),
    "candidate": _list(_NUMBERS),
    "sigma": _NUMBERS,
    "scale_source": _TEXT,
    **dict.fromkeys(("correlation", "margin", "alpha", "p_adjusted"), _NUMBER_OR_NULL),
    "pairs": _list(
        _object(
            {
                "runs": _object(dict.fromkeys(("baseline", "candidate"), _COUNT)),
                "cells": _list({"type": "array", "items": _COUNT, "minItems": 3, "maxItems": 3}),
            }
        )
    ),
}
