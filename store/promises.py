"""What a run promised to measure: the points and evals of its changelog's keys, under the labels of its pull request.

These are the rules by which InferenceX makes the matrix of a sweep. Nobody is told of a point whose job never gave a
row; only the promise says that it is not there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from store import identity
from store.plan import Arm, Config, Plan, matching
from store.records import ChangelogEntry, Expected, JobRun, Series
from store.runs import FULL, TRIMMED
from store.titles import AGENTIC, FIXED, attribute

EVALS_ONLY, ALL_EVALS = "evals-only", "all-evals"

UNLABELLED = frozenset({"push", "schedule"})
"""Events whose runs sweep everything, whatever labels the pull request of their commit has."""

EVAL_LENGTHS = (8192, 1024)
LEAST_EVAL_CONC = 16
TASK, LONG_TASK = "gsm8k", "swebench_lite"
"""What all deployments answer, and what AgentX over several nodes does."""

_SCENARIOS: Mapping[str, str] = MappingProxyType({"fixed-seq-len": FIXED, "agentic-coding": AGENTIC})

_Item: TypeAlias = tuple[Config, Arm]


@dataclass(frozen=True, slots=True)
class _Ask:
    """What one changelog entry asks for once labels and entries before it are known."""

    items: tuple[_Item, ...]
    throughput: bool = True
    evals: bool = False
    all_evals: bool = False
    agentic_evals: bool = False
    only_added: bool = False
    least_prefill_ep: int | None = None


def expected(
    plan: Plan,
    entries: Sequence[ChangelogEntry],
    labels: Collection[str] = (),
    event: str | None = None,
    jobs: Sequence[JobRun] = (),
) -> tuple[Expected, ...]:
    """Every point and eval once, in the order of the entries; nothing where nothing is known to have been asked for.

    `sweep-enabled` trims the points, not the evals: one engine keeps the lowest concurrency of all items that are
    equal but for it, several nodes keep the lowest of each item. `evals-only` and `all-evals` (of an entry or of a
    label) leave no throughput; the second widens the evals. A canary and `agentx-fast` measure the same points.

    An append-only entry adds points to a curve. Which ones is the difference to the configs before it, which are not
    at hand: it promises what `jobs` name. A scheduled run (before 2025-12-15 there was no changelog) sweeps every key.
    """
    said = frozenset(labels) if event not in UNLABELLED else frozenset()
    asks = _asks(plan, entries, said) if entries or event != "schedule" else [_everything(plan)]
    trimmed = TRIMMED in said and not said & FULL
    found = dict.fromkeys(one for ask in asks for one in _promised(ask, trimmed, jobs))
    return tuple(found)


def _everything(plan: Plan) -> _Ask:
    """A nightly: it ended before there were evals."""
    return _Ask(tuple((config, arm) for config in plan.configs.values() for arm in config.arms))


def _asks(plan: Plan, entries: Sequence[ChangelogEntry], labels: frozenset[str]) -> Iterator[_Ask]:
    """Entries that widen the evals come first, and each scenario of a key is run once, by the first that names it."""
    run: set[tuple[str, str]] = set()
    for entry in sorted(entries, key=lambda entry: not entry.all_evals):
        items = [item for item in _items(plan, entry) if (item[0].key, item[1].curve.scenario) not in run]
        run |= {(config.key, arm.curve.scenario) for config, arm in items}
        all_evals = entry.all_evals or ALL_EVALS in labels
        evals_only = entry.evals_only or EVALS_ONLY in labels
        yield _Ask(
            items=tuple(items),
            throughput=not (all_evals or evals_only),
            evals=not entry.append_only,
            all_evals=all_evals,
            agentic_evals=all_evals or evals_only,
            only_added=entry.append_only,
            least_prefill_ep=entry.eval_min_prefill_ep,
        )


def _items(plan: Plan, entry: ChangelogEntry) -> Iterator[_Item]:
    configs = {config.key: config for key in entry.config_keys for config in _configs(plan, key)}
    scenarios = {_SCENARIOS.get(name, name) for name in entry.scenario_types} or set(_SCENARIOS.values())
    for config in configs.values():
        yield from ((config, arm) for arm in config.arms if arm.curve.scenario in scenarios)


def _configs(plan: Plan, pattern: str) -> tuple[Config, ...]:
    """The configs of a key or a wildcard; the public API spells the engine in a key as its database does."""
    found = matching(pattern, plan.configs)
    for raw, canonical in _RENAMED if not found else ():
        found = found or matching(pattern.replace(canonical, raw), plan.configs)
    return tuple(plan.configs[key] for key in found)


_RENAMED = tuple((raw, canonical) for raw, canonical in identity.FRAMEWORKS.items() if raw != canonical)


def _promised(ask: _Ask, trimmed: bool, jobs: Sequence[JobRun]) -> Iterable[Expected]:
    points = _points(_trimmed(ask.items) if trimmed else ask.items) if ask.throughput else []
    if ask.only_added:
        named = attribute(jobs, points)
        return [point for point in points if point in named]
    return [*points, *(_evals(ask) if ask.evals else ())]


def _points(items: Iterable[_Item]) -> list[Expected]:
    return [Expected(config.key, series, config.image) for config, arm in items for series in arm.points]


def _trimmed(items: Sequence[_Item]) -> Iterator[_Item]:
    lowest: dict[object, int] = {}
    for place, (config, arm) in enumerate(items):
        own = _recipe(config, arm) if not config.multinode else place
        lowest[own] = min(lowest.get(own, min(arm.concs)), *arm.concs)
    for place, (config, arm) in enumerate(items):
        conc = lowest.pop(_recipe(config, arm) if not config.multinode else place, None)
        if conc is not None:
            yield config, Arm(arm.curve, (conc,), arm.settings)


def _recipe(config: Config, arm: Arm) -> tuple[str, Series, str]:
    """What the rows of a matrix that differ in concurrency alone share."""
    return config.key, arm.curve, arm.settings


# --- evals --------------------------------------------------------------------------------------------------------


def _evals(ask: _Ask) -> Iterator[Expected]:
    """Evals of the entry's items, each kind of deployment by its own rule."""
    fixed = [one for one in ask.items if (one[1].curve.isl, one[1].curve.osl) == EVAL_LENGTHS]
    agentic = [one for one in ask.items if one[1].curve.scenario == AGENTIC and ask.agentic_evals]
    one_engine = [one for one in fixed if not one[0].multinode]
    nodes = [one for one in fixed if one[0].multinode and _is_wide(ask, one[1])]
    long = [one for one in agentic if one[0].multinode and _is_wide(ask, one[1])]
    short = [one for one in agentic if not one[0].multinode]
    least = 0 if ask.all_evals else LEAST_EVAL_CONC
    if ask.all_evals:
        yield from (_eval(config, point) for config, arm in (*one_engine, *nodes, *short) for point in arm.points)
    else:
        yield from _highest_and_median(one_engine)
        yield from _highest_of_topology(nodes, TASK, LEAST_EVAL_CONC)
        yield from _highest_of_model(short)
    yield from _highest_of_topology(long, LONG_TASK, least)


def _is_wide(ask: _Ask, arm: Arm) -> bool:
    return ask.least_prefill_ep is None or arm.curve.layout.prefill.ep >= ask.least_prefill_ep


def _eval(config: Config, point: Series, task: str = TASK) -> Expected:
    return Expected(config.key, point, config.image, task)


def _highest_and_median(items: Iterable[_Item]) -> Iterator[Expected]:
    """One engine: the two concurrencies of all items that share model, runner, engine, precision and attention."""
    groups: dict[tuple[object, ...], list[_Item]] = defaultdict(list)
    for config, arm in items:
        curve = arm.curve
        own = (config.model, config.runner, config.framework, config.precision)
        groups[*own, curve.spec, curve.layout.prefill.dp_attention].append((config, arm))
    for group in groups.values():
        concs = sorted({conc for _, arm in group for conc in arm.concs if conc >= LEAST_EVAL_CONC})
        chosen = {concs[-1], concs[len(concs) // 2]} if concs else set()
        yield from (_eval(config, point) for config, arm in group for point in arm.points if point.conc in chosen)


def _highest_of_topology(items: Iterable[_Item], task: str, least: int) -> Iterator[Expected]:
    """Several nodes: the highest eligible concurrency of everything that is equal but for it."""
    groups: dict[object, list[_Item]] = defaultdict(list)
    for config, arm in items:
        groups[_recipe(config, arm)].append((config, arm))
    for group in groups.values():
        eligible = [(conc, place) for place, (_, arm) in enumerate(group) for conc in arm.concs if conc >= least]
        if eligible:
            conc, place = max(eligible, key=lambda pair: (pair[0], -pair[1]))
            config, arm = group[place]
            yield from (_eval(config, point, task) for point in arm.points if point.conc == conc)


def _highest_of_model(items: Iterable[_Item]) -> Iterator[Expected]:
    """AgentX on one engine: one eval per model, runner, engine and precision, at the highest concurrency."""
    groups: dict[tuple[str, ...], list[_Item]] = defaultdict(list)
    for config, arm in items:
        groups[config.model, config.runner, config.framework, config.precision].append((config, arm))
    for group in groups.values():
        config, arm = max(group, key=lambda item: max(item[1].concs))
        highest = max(arm.concs)
        yield from (_eval(config, point) for point in dict.fromkeys(arm.points) if point.conc == highest)
