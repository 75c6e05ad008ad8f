"""The rows of a code owner's sign-off that a machine can check, each with its proof.

`gather` asks GitHub once and gives a frozen record; every row is a function of that record alone; the words are made by
`reports.checklist`. Nothing is written to GitHub, and what is not known is called so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from store.checks import Check, Proof, PullEvidence, State
from store.fetch import Watch
from store.github import Reader
from store.records import Value
from tracker.evidence import configs, entries, people, scripts, sweeps
from tracker.evidence.gather import gather
from tracker.evidence.inputs import Inputs

CHECKS: tuple[Callable[[Inputs], Check], ...] = (
    people.owner,
    sweeps.sweep,
    sweeps.evals,
    configs.recipe,
    people.command,
    people.checklist,
    configs.image,
    configs.order,
    configs.lineup,
    scripts.overrides,
    scripts.templates,
    scripts.patches,
    scripts.acceptance,
    configs.append_only,
    entries.keys,
    entries.from_to,
    entries.router,
    entries.container,
    sweeps.points,
    configs.topology,
    sweeps.attempt,
    entries.history,
)
"""Every row, in the order of the sign-off bot's list, then the further ones. A new row is a function and an entry."""

ENDINGS: Mapping[str, frozenset[State]] = MappingProxyType(
    {
        "does-not-hold": frozenset({State.DOES_NOT_HOLD}),
        "flagged": frozenset({State.DOES_NOT_HOLD, State.FLAGGED}),
        "never": frozenset(),
    }
)
"""States that end a command with 3, by the word of `--fail-on`."""


def evidence(number: int, reader: Reader, work: Path, watch: Watch = lambda _: None) -> PullEvidence:
    """All rows of a pull request; raises Trouble where it cannot be read."""
    return judged(gather(number, reader, work, watch))


def judged(inputs: Inputs) -> PullEvidence:
    """The rows of what was gathered, and the sentence where it may be written."""
    checks = tuple(check(inputs) for check in CHECKS)
    states = {check.name: check.state for check in checks}
    return PullEvidence(
        repository=inputs.repository,
        pull=inputs.pull.number,
        head=inputs.pull.head,
        checks=checks,
        caveats=_caveats(inputs),
        statement=sweeps.statement(inputs, checks),
        lacking=tuple(name for name in sweeps.NEEDED if states[name] is not State.HOLDS),
    )


def _caveats(inputs: Inputs) -> tuple[Proof, ...]:
    """What a reader must know first: what was not read, a fork, a run behind the head or in a further attempt."""
    sweep, pull = inputs.sweep, inputs.pull
    found = list(inputs.absent.values())
    if pull.head_repository != inputs.repository:
        found.append(Proof.of("from_fork", repository=pull.head_repository or "?"))
    if sweep and sweep.in_pull and sweep.commits_since:
        said: dict[str, Value] = {"run": str(sweep.run.id), "count": sweep.commits_since}
        found.append(Proof.of("run_behind", inputs.commit(sweep.run.head_sha or ""), **said))
    if sweep and sweep.run.attempt > 1:
        found.append(Proof.of("run_attempt", run=str(sweep.run.id), attempt=sweep.run.attempt))
    if sweep and sweep.run.conclusion not in (None, "success"):
        found.append(Proof.of("run_concluded", run=str(sweep.run.id), conclusion=str(sweep.run.conclusion)))
    return tuple(found)


def code(found: PullEvidence, fail_on: str) -> int:
    """3 where a row stands as `fail_on` says, 4 where that was asked and no row could be judged, else 0."""
    bad = ENDINGS[fail_on]
    if any(check.state in bad for check in found.checks):
        return 3
    silent = {State.NOT_KNOWN, State.NOT_APPLICABLE}
    return 4 if bad and all(check.state in silent for check in found.checks) else 0
