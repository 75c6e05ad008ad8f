"""What was asked of the engine, before any statistic: two points under different work are not compared.

Rows that say nothing about their workload (most of InferenceX's aggregates) are compared as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import polars as pl

from store.records import Caveat, Series, Unmatched, Verdict

Facts = Mapping[str, float]
"""Numbers and switches that a row said beside its metrics; switches are 0 or 1."""

HIT_RATES = ("server_overall_cache_hit_rate", "server_gpu_cache_hit_rate", "response_cache_hit_rate")
"""Metrics that say how much of the prompts was answered from a cache, the widest first."""

NOMINAL = (0.5, 1.25)
"""Tokens per prompt over the nominal length: lengths are drawn at 0.8 to 1.0 of it, a wrong tokenizer made it 4.4."""


@dataclass(frozen=True, slots=True)
class Field:
    """One thing that must be alike on both sides: how it is read, and when two values are alike."""

    read: Callable[[Facts], float | None]
    alike: Callable[[float, float, bool], bool]
    """(one, other, agentic)"""


def _plain(name: str) -> Callable[[Facts], float | None]:
    return lambda facts: facts.get(name)


def _first(*names: str) -> Callable[[Facts], float | None]:
    return lambda facts: next((facts[name] for name in names if name in facts), None)


def _tokens_per_prompt(facts: Facts) -> float | None:
    """As the server counted them, else as the client did."""
    tokens, prompts = facts.get("server_prompt_tokens", facts.get("total_input_tokens")), facts.get("num_prompts")
    return tokens / prompts if tokens and prompts else None


def _within(share: float) -> Callable[[float, float, bool], bool]:
    return lambda one, other, _: abs(one - other) <= share * max(abs(one), abs(other))


FIELDS: Mapping[str, Field] = MappingProxyType(
    {
        "tokens_per_prompt": Field(_tokens_per_prompt, _within(0.10)),
        "num_prompts": Field(_plain("num_prompts"), _within(0.34)),
        "use_chat_template": Field(_plain("use_chat_template"), lambda one, other, _: one == other),
        "acceptance_length": Field(_plain("acceptance_length"), _within(0.10)),
        "num_warmups": Field(_plain("num_warmups"), lambda one, other, _: bool(one) == bool(other)),
        # Random prompts repeat only by mistake; a conversation repeats by design.
        "prefix_cache_hit_rate": Field(
            _first("prefix_cache_hit_rate", *HIT_RATES),
            lambda one, other, agentic: abs(one - other) <= (0.10 if agentic else 0.01),
        ),
    }
)
"""What makes two workloads different. A new one is a new row."""


def off_nominal(series: Series, facts: Facts) -> Caveat | None:
    """Prompts that are not as long as the row's own name says: the client counted with another tokenizer."""
    tokens = _tokens_per_prompt(facts)
    if tokens is None or not series.isl or NOMINAL[0] <= tokens / series.isl <= NOMINAL[1]:
        return None
    return Caveat.of("workload_off_nominal", tokens=round(tokens), nominal=series.isl)


def difference(series: Series, baseline: Facts, candidate: Facts) -> Caveat | None:
    """The first thing that was asked differently; None where nothing known differs."""
    agentic = series.scenario == "agentic_traces"
    for name, field in FIELDS.items():
        before, after = field.read(baseline), field.read(candidate)
        if before is not None and after is not None and not field.alike(before, after, agentic):
            return Caveat.of("workload_differs", field=name, baseline=_short(before), candidate=_short(after))
    return None


def _short(value: float) -> float:
    return round(value, 4) if value % 1 else int(value)


@dataclass(frozen=True, slots=True)
class Alike:
    """Both sides without the points that were measured under another workload, and those points with the reason."""

    history: pl.DataFrame
    candidate: pl.DataFrame
    apart: tuple[Unmatched, ...]


def alike(
    history: pl.DataFrame,
    candidate: pl.DataFrame,
    series: Mapping[str, Series],
    said: Mapping[str, Facts],
    past: Iterable[tuple[str, str, Facts]],
) -> Alike:
    """Part what is comparable from what is not.

    `said` holds what the candidate's rows say by series key, `past` (run, series key, what the row said) of the
    history. A candidate point stands apart when its prompts are off, or when no run of its past had its workload.
    """
    off = {key: caveat for key, facts in said.items() if (caveat := off_nominal(series[key], facts))}
    foreign = {
        (run, key): caveat
        for run, key, facts in past
        if (caveat := off_nominal(series[key], facts) or difference(series[key], facts, said.get(key, {})))
    }
    kept = _without(history, foreign)
    starved = {key: caveat for (_, key), caveat in foreign.items() if key not in set(kept["series"])}
    gone = {**starved, **off}
    rows = pl.col("series").is_in(list(gone))
    apart = tuple(Unmatched(key, "candidate", Verdict.NOT_COMPARABLE, caveat) for key, caveat in gone.items())
    return Alike(kept.filter(~rows), candidate.filter(~rows), apart)


FAST = "agentx-fast"
"""Label of a run whose AgentX profile was cut short: no full run has its numbers, and it is never a baseline."""


def full_length(
    history: pl.DataFrame, candidate: pl.DataFrame, agentic: Iterable[str], before: Iterable[str], now: Iterable[str]
) -> Alike:
    """Both sides without the rows of shortened AgentX runs: `agentic` curves, shortened runs `before` and `now`."""
    curves = pl.col("curve").is_in(list(agentic))
    short = candidate.filter(curves & pl.col("run").is_in(list(now)))
    apart = tuple(
        Unmatched(key, "candidate", Verdict.NOT_COMPARABLE, Caveat.of("agentx_fast", run=run, label=FAST))
        for key, run in short.select("series", "run").unique(maintain_order=True).iter_rows()
    )
    kept = history.filter(~(curves & pl.col("run").is_in(list(before))))
    places = short.select("run", "series").unique().rows()
    return Alike(kept, _without(candidate, places), apart)


def _without(side: pl.DataFrame, points: Iterable[tuple[Any, ...]]) -> pl.DataFrame:
    """The rows of a side less these points, by run and series."""
    rows = pl.DataFrame(list(points), {"run": pl.String, "series": pl.String}, orient="row")
    return side.join(rows, ["run", "series"], "anti", maintain_order="left") if len(rows) else side
