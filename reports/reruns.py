"""Which sentences and tables tell what to run again; and the same as JSON and as a matrix of jobs.

Chooses words only; every number was made by `tracker`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from reports.blocks import Block, Said, Table, Title
from reports.language import N_, Phrase, Value, phrase, sentences
from reports.numbers import NOTHING, change, count, kind
from reports.phrases import label, metric_name, task_name
from store.identity import config_key, layout_text, sequence_text
from store.records import Layout, Role, Series
from store.reruns import Again, Ask, RerunPlan, Why

WHY: Mapping[Why, str] = MappingProxyType(
    {
        Why.CONFIRM: N_("loss to confirm"),
        Why.GATE: N_("eval near its threshold"),
        Why.SUSPECTED: N_("suspected loss"),
        Why.INCONCLUSIVE: N_("a loss is not excluded"),
    }
)
"""Why something is run again."""


# ---------------------------------------------------------------- words


def blocks(plan: RerunPlan) -> list[Block]:
    """The points with what each settles; then what a repetition cannot settle, and what found no room."""
    parts: list[Block] = [Title(Phrase(N_("What to run again")), 1), Said(_summary(plan))]
    if plan.points:
        parts += [_points(plan), Title(Phrase(N_("What this would settle"))), _asks(plan.asks)]
    if plan.beyond:
        parts.append(Title(Phrase(N_("What one repetition would probably leave open"))))
        parts.append(_asks(plan.beyond))
    if plan.waiting:
        parts += [Title(Phrase(N_("What found no room in the budget"))), _asks(plan.waiting)]
    return parts


def _summary(plan: RerunPlan) -> Value:
    if not plan.points:
        if plan.beyond:
            return Phrase(N_("Nothing that one repetition would probably settle; see below what is open."))
        if not plan.judged:
            return Phrase(N_("Nothing was judged: without a baseline no repetition can be planned."))
        return Phrase(N_("Nothing to settle: no loss waits for a repetition."))
    said: list[Value] = [
        phrase(
            N_("Run again: %(points)s of %(total)s points and evals; findings probably settled by this: %(asks)s."),
            points=count(len(plan.points)),
            total=count(plan.total),
            asks=count(len(plan.asks)),
        )
    ]
    if plan.is_over:
        said.append(
            phrase(
                N_("That is above the budget of %(budget)s (%(limit)s): the most important finding alone needs it."),
                budget=_share(plan.budget),
                limit=count(plan.limit),
            )
        )
    return sentences(said)


def _points(plan: RerunPlan) -> Table:
    heads = (N_("Config"), N_("Sequence"), N_("Layout"), N_("Concurrency"), N_("Eval"), N_("Settles"))
    return Table(tuple(map(Phrase, heads)), tuple(_point(one, plan.asks) for one in plan.points), 5)


def _point(one: Again, asks: Sequence[Ask]) -> tuple[Value, ...]:
    served = sum(one.key in ask.points for ask in asks)
    task: Value = task_name(one.task) if one.task else NOTHING
    if one.series is None:
        return one.config or one.key, NOTHING, NOTHING, NOTHING, task, count(served)
    conc = count(one.series.conc) if one.series.conc is not None else NOTHING
    config = one.config or config_key(one.series)
    return config, sequence_text(one.series), layout_text(one.series.layout), conc, task, count(served)


def _asks(asks: Sequence[Ask]) -> Table:
    heads = (
        *(N_("What"), N_("Metric"), N_("Why"), N_("Change"), N_("Points to run")),
        *(N_("Power now"), N_("Power after"), N_("Repetitions of all its points for 80%%")),
    )
    return Table(tuple(map(Phrase, heads)), tuple(map(_ask, asks)), 3)


def _ask(ask: Ask) -> tuple[Value, ...]:
    return (
        label(ask.finding),
        metric_name(ask.finding.metric),
        Phrase(WHY[ask.why]),
        change(ask.finding.effect, kind(ask.finding)),
        count(len(ask.points)),
        _share(ask.before),
        _share(ask.after),
        count(ask.repetitions) if ask.repetitions is not None else NOTHING,
    )


def _share(value: float) -> str:
    """A share as a whole percentage, never 100 % for what is not certain.

    >>> _share(0.05), _share(0.999)
    ('5%', '>99%')
    """
    return ">99%" if value > 0.99 else f"{100 * value:.0f}%"


# ---------------------------------------------------------------- json


def as_json(plan: RerunPlan) -> str:
    """The plan as JSON: powers are shares, effects natural logarithms (differences for evals)."""
    said = {
        "points": [_point_row(one, plan.asks) for one in plan.points],
        **{name: [_ask_row(ask) for ask in getattr(plan, name)] for name in ("asks", "beyond", "waiting")},
        "total": plan.total,
        "budget": plan.budget,
        "limit": plan.limit,
        "over_budget": plan.is_over,
        "judged": plan.judged,
    }
    return _dumped(said)


def _point_row(one: Again, asks: Sequence[Ask]) -> dict[str, Any]:
    settles = [{"key": a.finding.key, "metric": a.finding.metric} for a in asks if one.key in a.points]
    sequence = None if one.series is None else sequence_text(one.series)
    layout = None if one.series is None else layout_text(one.series.layout)
    conc = None if one.series is None else one.series.conc
    where = {"config": one.config, "sequence": sequence, "layout": layout, "conc": conc, "task": one.task}
    return {"key": one.key, **where, "settles": settles}


def _ask_row(ask: Ask) -> dict[str, Any]:
    one = ask.finding
    return {
        "scope": one.scope.value,
        "key": one.key,
        "metric": one.metric,
        "verdict": one.verdict.value,
        "why": ask.why.value,
        "effect": one.effect,
        "points": list(ask.points),
        "power_before": ask.before,
        "power_after": ask.after,
        "repetitions": ask.repetitions,
    }


# ---------------------------------------------------------------- matrix


def as_matrix(plan: RerunPlan) -> str:
    """The points as a list of search-space items: the field names of master configs, one item a deployment."""
    items: dict[str, dict[str, Any]] = {}
    levels: dict[str, set[int]] = {}
    for one in plan.points:
        if one.series is None or one.series.conc is None:
            continue
        item = _item(one, one.series)
        key = json.dumps(item, sort_keys=True)
        items[key] = item
        levels.setdefault(key, set()).add(one.series.conc)
    return _dumped([{**item, "conc-list": sorted(levels[key])} for key, item in items.items()])


def _item(one: Again, series: Series) -> dict[str, Any]:
    known = {"isl": series.isl, "osl": series.osl}
    # An eval's row knows no lengths.
    lengths = {name: value for name, value in known.items() if value is not None}
    is_agentic = series.scenario == "agentic_traces"
    agentic = {"kv-offloading": "dram" if series.offload else "none"} if is_agentic else {}
    task = {"task": one.task} if one.task else {}
    head = {"config-key": one.config or config_key(series), **lengths, **agentic, **task}
    return {**head, **_shape(series.layout), "spec-decoding": series.spec}


def _shape(layout: Layout) -> dict[str, Any]:
    """One engine in the item itself, several nodes as `prefill` and `decode`."""
    if not layout.multinode and layout.decode is None:
        return _role(layout.prefill)
    decode = layout.decode
    # A number of 0 means that prefill workers decode too.
    second = {"num-worker": 0} if decode is None else {"num-worker": decode.workers, **_role(decode)}
    return {"prefill": {"num-worker": layout.prefill.workers, **_role(layout.prefill)}, "decode": second}


def _role(role: Role) -> dict[str, Any]:
    rare = {"pp": role.pp, "dcp-size": role.dcp, "pcp-size": role.pcp}
    extra: dict[str, Any] = {name: value for name, value in rare.items() if value > 1}
    hardware = {"hardware": role.hardware} if role.hardware else {}
    return {"tp": role.tp, "ep": role.ep, "dp-attn": role.dp_attention, **extra, **hardware}


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
