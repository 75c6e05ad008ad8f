"""Everything that the rows of a sign-off are checked against: what GitHub told of one pull request, frozen.

A part that could not be read is None and stands in `absent` with the reason; a part that is not there is None or empty
and stands nowhere. So a check never takes silence for an answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from store.checks import Check, Proof, State
from store.lineup import Lineup
from store.owners import CodeOwners
from store.plan import Config, Plan
from store.records import ChangelogEntry, JobRun, Point, Run, Score
from store.reuse import Command
from store.revisions import Review
from store.signoffs import Item, SignOff
from store.thresholds import Thresholds
from store.titles import counting, parse
from tracker.coverage import Asked

UPSTREAM = re.compile(r"https://github\.com/(vllm-project/recipes|sgl-project/sglang)/pull/([1-9]\d{0,8})\b")
"""Where recipes are documented; no other repository is asked about, whatever a text links."""

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Pull:
    """The pull request as it is now."""

    number: int
    title: str
    body: str
    author: str
    labels: frozenset[str]
    head: str
    head_repository: str | None
    """None for a fork that was deleted."""
    base_ref: str
    base_sha: str


@dataclass(frozen=True, slots=True)
class Change:
    """A file that the pull request changes: the lines that it adds with their numbers, None where GitHub shows none."""

    path: str
    status: str
    added: tuple[tuple[int, str], ...] | None
    before: str = ""
    """Its former name."""

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path, self.before) if self.before else (self.path,)


@dataclass(frozen=True, slots=True)
class Masters:
    """The master configs at one commit: their expansion, and every entry as it stands."""

    plan: Plan
    entries: Mapping[str, Any]

    def config(self, key: str) -> Config | None:
        return self.plan.configs.get(key)


@dataclass(frozen=True, slots=True)
class Rows:
    """What the artifacts of a run hold, the newest attempt of each point and eval."""

    points: Mapping[str, Point]
    scores: Mapping[str, Score]
    promised: Asked
    entries: tuple[ChangelogEntry, ...] = ()
    expired: int = 0
    """Results that GitHub has thrown away."""


@dataclass(frozen=True)
class Sweep:
    """One run of the sweep with its jobs, all attempts; `commits_since` counts commits of the pull request after it."""

    run: Run
    jobs: tuple[JobRun, ...]
    in_pull: bool | None
    """Whether its commit is in the pull request now; None where the commits are not known."""
    commits_since: int = 0

    @cached_property
    def measuring(self) -> tuple[JobRun, ...]:
        """Throughput jobs by the attempt that counts, less the skipped ones: those have passed nothing."""
        return self._lane(is_eval=False)

    @cached_property
    def evaluating(self) -> tuple[JobRun, ...]:
        return self._lane(is_eval=True)

    def _lane(self, *, is_eval: bool) -> tuple[JobRun, ...]:
        named: dict[str, list[JobRun]] = {}
        for job in self.jobs:
            named.setdefault(job.name, []).append(job)
        last = [job for same in named.values() for job in counting(same) if job.conclusion != "skipped"]
        titled = [(title, job) for job in last if (title := parse(job.name))]
        return tuple(job for title, job in titled if (title.is_eval if is_eval else title.is_throughput))

    @property
    def is_green(self) -> bool:
        """All that was executed succeeded, and something was."""
        return bool(self.measuring) and all(job.conclusion == "success" for job in (*self.measuring, *self.evaluating))


@dataclass(frozen=True)
class Inputs:
    """One pull request and all that hangs on it."""

    repository: str
    pull: Pull
    commits: tuple[str, ...] | None = None
    """Oldest first."""
    changes: tuple[Change, ...] | None = None
    owners: CodeOwners | None = None
    signoff: SignOff | None = None
    command: Command | None = None
    checklist: tuple[Item, ...] | None = None
    lineup: Lineup | None = None
    thresholds: Thresholds | None = None
    before: Masters | None = None
    after: Masters | None = None
    changelog: Review | None = None
    """What the pull request does to perf-changelog.yaml."""
    sweep: Sweep | None = None
    """The run that speaks for the pull request."""
    named: tuple[Sweep, ...] = ()
    """The runs that the sign-off or the reuse command name."""
    rows: Rows | None = None
    recipes: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: NOTHING)
    """By config key: the recipe files that it names, each path with its text."""
    upstream: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    """Linked pull requests of the recipe repositories with their state: open, closed, merged."""
    golden: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    """Acceptance lengths by file."""
    waiver: str | None = None
    """The path of the waiver, where there is one."""
    absent: Mapping[str, Proof] = field(default_factory=lambda: NOTHING)

    def unknown(self, name: str) -> Proof | None:
        """Why a part is not known; None for one that was read."""
        return self.absent.get(name)

    @cached_property
    def entries(self) -> tuple[ChangelogEntry, ...]:
        """The changelog entries that the pull request adds."""
        added = self.changelog.added if self.changelog else ()
        return tuple(
            ChangelogEntry(
                config_keys=one.entry.config_keys,
                description=one.entry.description,
                pr_link=one.entry.pr_link,
                evals_only=one.entry.evals_only,
                all_evals=one.entry.all_evals,
                append_only=one.entry.append_only,
                scenario_types=one.entry.scenario_type,
                eval_min_prefill_ep=one.entry.eval_min_prefill_ep,
            )
            for one in added
        )

    @cached_property
    def changed_keys(self) -> tuple[str, ...]:
        """Keys whose master entry is new or says something else, in the order of the files; removed ones are none."""
        if self.before is None or self.after is None:
            return ()
        old = self.before.entries
        return tuple(key for key, entry in self.after.entries.items() if key not in old or old[key] != entry)

    @cached_property
    def asked_keys(self) -> tuple[str, ...]:
        """Keys of the head's configs that the new changelog entries name."""
        if self.after is None:
            return ()
        found = (
            one.key for entry in self.entries for key in entry.config_keys for one in self.after.plan.matching(key)
        )
        return tuple(dict.fromkeys(found))

    @cached_property
    def configs(self) -> tuple[Config, ...]:
        """The configs at the head that the pull request changes or asks to sweep."""
        keys = dict.fromkeys((*self.changed_keys, *self.asked_keys))
        found = (self.after.config(key) for key in keys) if self.after else ()
        return tuple(config for config in found if config is not None)

    def blob(self, path: str, line: int | None = None) -> str:
        """Address of a file at the head."""
        repository = self.pull.head_repository or self.repository
        return f"https://github.com/{repository}/blob/{self.pull.head}/{quote(path)}" + (f"#L{line}" if line else "")

    def commit(self, sha: str) -> str:
        return f"https://github.com/{self.repository}/commit/{sha}"


def recipe_names(entry: Any) -> tuple[str, ...]:
    """The recipe files that the settings of a master entry name, below the folder of recipes.

    >>> recipe_names({"additional-settings": ["CONFIG_FILE=recipes/vllm/a.yaml", "DECODE_MTP_SIZE=3"]})
    ('vllm/a.yaml',)
    """
    return tuple(dict.fromkeys(re.findall(r"CONFIG_FILE=(?:recipes/)?([\w./+-]+\.ya?ml)", repr(entry))))


def not_known(number: int | None, name: str, *proof: Proof | None) -> Check:
    """A row about which nothing can be said, with the reasons."""
    return Check(number, name, State.NOT_KNOWN, tuple(one for one in proof if one))


def not_applicable(number: int | None, name: str, *proof: Proof) -> Check:
    return Check(number, name, State.NOT_APPLICABLE, proof)


def run_link(sweep: Sweep) -> str:
    return f"https://github.com/{sweep.run.repository}/actions/runs/{sweep.run.id}/attempts/{sweep.run.attempt}"
