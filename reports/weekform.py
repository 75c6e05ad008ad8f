"""The JSON form of a week: the rows of the report with every id, run and number, for automation.

Changes are relative (`exp(effect) - 1`), for accuracy differences of fractions; no value is ever NaN or infinite.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import msgspec

from reports.facts import Counts, run_url
from reports.things import Listed, is_eval
from reports.week import Outside, Set, Told, WeekFacts
from store.life import Change, ConfigBump, InForce
from store.records import Caveat, Finding, Run, RunKey

SCHEMA_VERSION = 1

Json: TypeAlias = dict[str, Any]


def dumps(chosen: WeekFacts) -> str:
    """The week as strict JSON text, one final newline; the same week always gives the same bytes."""
    return msgspec.json.format(msgspec.json.encode(form(chosen)), indent=2).decode() + "\n"


def form(chosen: WeekFacts) -> Json:
    """The week as JSON values, its lists whole."""
    return {
        "schema_version": SCHEMA_VERSION,
        "rules_version": chosen.rules_version,
        "week": chosen.name,
        "first_day": f"{chosen.start:%Y-%m-%d}",
        "last_day": f"{chosen.last_day:%Y-%m-%d}",
        "headline": chosen.headline.value,
        "runs": {"judged": chosen.judged, "configs": chosen.configs, "not_judged_yet": chosen.unread},
        "counts": {name: _counts(getattr(chosen, name)) for name in ("points", "curves", "scores")},
        "bumps": [_bump(bump) for bump in chosen.bumps.rows],
        "regressions": {name: _rows(getattr(chosen, name)) for name in ("new", "open", "ended", "suspected")},
        "taken_back": chosen.taken_back,
        "improvements": _rows(chosen.better),
        "evals": {
            name: _rows(getattr(chosen, f"evals_{name}")) for name in ("new", "open", "ended", "suspected", "better")
        },
        "images": [_image(one) for one in chosen.stale.rows],
        "environment": _rows(chosen.environment),
        "environment_not_listed": chosen.lone,
        "missing": [_set(one) for one in chosen.missing.rows],
        "not_judged": [_set(one) for one in chosen.unjudged.rows],
        "rejected": [{**_caveat(reason), "rows": number} for reason, number in chosen.rejected.rows],
        "excluded_runs": [_outside(one) for one in chosen.outside.rows],
        "precision": msgspec.to_builtins(chosen.precision),
        "run_list": [_run(run) for run in chosen.runs.rows],
    }


def _counts(counts: Counts) -> Json:
    return {verdict.value: number for verdict, number in counts}


def _bump(bump: ConfigBump) -> Json:
    return {"config": bump.config, "baseline": bump.before, "candidate": bump.after}


def _image(one: InForce) -> Json:
    days = {"first_day": f"{one.first_at:%Y-%m-%d}", "last_day": f"{one.last_at:%Y-%m-%d}", "days": one.days}
    return {"config": one.config, "image": one.image, **days, "run": str(one.run)}


def _rows(listed: Listed[Told]) -> list[Json]:
    return [
        {"days": row.days, "url": _url(row.run), "changes": [change_form(one) for one in row.changes]}
        for row in listed.rows
    ]


def change_form(change: Change) -> Json:
    """One change with its life."""
    finding, bump = change.finding, change.bump
    return {
        "id": change.id,
        "key": change.key,
        "config": change.config,
        "pool": change.pool or None,
        "scope": change.scope.value,
        "metric": finding.metric,
        "task": finding.task,
        "direction": change.direction.value,
        "verdict": finding.verdict.value,
        "change": _change(finding, finding.effect),
        "interval": [_change(finding, finding.low), _change(finding, finding.high)],
        "p": _number(finding.p),
        "images": {"baseline": bump.before, "candidate": bump.after, "software": bump.sameness.value},
        "recipe_changed": bump.recipe,
        "state": change.state.value,
        "why": change.why or None,
        "state_at": change.state_at.isoformat(),
        "state_run": _key(change.state_run),
        "first_run": str(change.first),
        "first_at": change.first_at.isoformat(),
        "announced_run": _key(change.announced),
        "announced_at": change.announced_at.isoformat() if change.announced_at else None,
        "confirmed_run": _key(change.confirmed),
        "returned_run": _key(change.returned),
        "superseded_by": change.superseded_by or None,
        "since_good": _change(finding, change.since_good),
        "members": list(change.members),
        "runs": change.runs,
        "caveats": [_caveat(caveat) for caveat in finding.caveats],
        "alarms": [_caveat(caveat) for caveat in change.alarms],
        "said": msgspec.to_builtins(change.said) if change.said else None,
    }


def _change(finding: Finding, effect: float | None) -> float | None:
    """Relative change of a log ratio; a difference of fractions stays as it is."""
    if effect is None or not math.isfinite(effect):
        return None
    return effect if is_eval(finding) else _number(math.expm1(min(effect, 700.0)))


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _key(run: RunKey | None) -> str | None:
    return str(run) if run else None


def _url(run: Run | None) -> str | None:
    return run_url(run) if run else None


def _caveat(caveat: Caveat) -> Json:
    values = caveat.as_dict().items()
    return {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values}


def _set(one: Set) -> Json:
    reason = {"verdict": one.verdict.value, "reason": _caveat(one.reason), "rows": one.rows}
    return {**reason, "evals": one.evals, "configs": list(one.configs), "runs": [str(run) for run in one.runs]}


def _outside(one: Outside) -> Json:
    return {**_run(one.run), "reasons": [_caveat(reason) for reason in one.reasons]}


def _run(run: Run) -> Json:
    return {"run": str(run.key), "day": f"{run.started_at:%Y-%m-%d}", "url": run_url(run)}
