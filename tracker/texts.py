"""Texts around a comparison: changelog entries that it supports, and claims held against it.

Apart from `tracker.jobs`, since their readers and word tables take a fifth of a second to import.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from reports import entry
from store import changelog
from store.identity import config_key
from store.metrics import METRICS, POINT_METRICS, Better
from store.plan import Plan
from store.records import Comparison, Trouble
from tracker import partial, sides
from tracker.claims import Checked, Measured, check, find_claims
from tracker.jobs import Question, Where, compare
from tracker.pairs import Baseline

CLAIMED_METRICS = tuple(key for key in POINT_METRICS if METRICS[key].better is not Better.UNKNOWN)
"""Everything that a text may speak about: every metric of a point that has a direction."""


def check_claims(text: str, question: Question, where: Where) -> tuple[Checked, ...]:
    """The numbers that a text claims, each held against what the candidate and its baseline measured."""
    answer = compare(replace(question, metrics=CLAIMED_METRICS), where)
    withdrawn = where.withdrawn()
    with (
        sides.opened(where.store, where.archive, withdrawn) as past,
        sides.candidate(question.candidate, past, (), withdrawn) as new,
    ):
        partial.refuse(past, "a check of claims")
        before = sides.past_scores(past, new, answer.baseline, Baseline())
        return check(find_claims(text), Measured.of(answer.findings), new.scores, before)


@dataclass(frozen=True, slots=True)
class Entries:
    """How changelog entries are written: in which languages, for which pull request, with whose keys."""

    lang: str = "both"
    pull_request: int | None = None
    plan: Plan | None = None
    repository: str = changelog.REPOSITORY


def changelog_entries(question: Question, where: Where, wanted: Entries) -> tuple[changelog.Entry, ...]:
    """One entry per config whose image or recipe changed, saying what its findings support."""
    return entries_of(compare(question, where), wanted)


def entries_of(answer: Comparison, wanted: Entries) -> tuple[changelog.Entry, ...]:
    """The entries of a judgement that is there; Trouble where there is nothing to write."""
    configs = entry.changed_configs(answer)
    if not configs:
        raise Trouble("there is nothing to write: no config of the candidate changed its image or its recipe")
    return tuple(
        changelog.Entry(
            config_keys=_master_keys(config, wanted.plan),
            description=entry.description(answer, config, wanted.lang),
            pr_link=changelog.link(wanted.pull_request, wanted.repository),
        )
        for config in configs
    )


def _master_keys(config: str, plan: Plan | None) -> tuple[str, ...]:
    """The keys of the master configs that promise points of this config; our own name for it without any."""
    if plan is None:
        return (config,)
    keys = tuple(sorted(one.key for one in plan.configs.values() if config in set(map(config_key, one.points))))
    if not keys:
        raise Trouble(f"no key of the master configs has points of {config}: is it retired, or is a file missing?")
    return keys
