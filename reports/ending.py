"""What a comparison means for whoever waits for it: an exit code, and what a check run concludes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from reports import facts
from store.records import Comparison, Verdict

FAILING = ("regression", "suspected", "never")
"""Conditions under which a caller wants to be stopped."""

DONE, FAILED, NOTHING_JUDGED = 0, 3, 4
"""Exit codes."""

_WORSE = frozenset({Verdict.REGRESSION, Verdict.MIXED, Verdict.FAILED})
_CALM: Mapping[Verdict, str] = MappingProxyType(
    {
        Verdict.IMPROVEMENT: "success",
        Verdict.RECOVERY: "success",
        Verdict.EQUIVALENT: "success",
        Verdict.INCONCLUSIVE: "success",
        Verdict.NOISY: "success",
    }
)
"""What a check run concludes where nothing stops anybody; every other verdict is for a person to look at: neutral."""


def fails(answer: Comparison, fail_on: str) -> bool:
    """True when the condition holds, by the same verdict that the headline says."""
    doubted = any(facts.decides(one) and facts.is_bad(one) for one in answer.findings)
    return fail_on != "never" and (facts.worst(answer) in _WORSE or (fail_on == "suspected" and doubted))


def is_judged(answer: Comparison) -> bool:
    """True when anything was held against a baseline or a threshold: "no data" is not "no regression"."""
    named = (one for one in answer.findings if facts.decides(one))
    return any(one.verdict is not Verdict.NO_BASELINE or None not in facts.gate(one) for one in named)


def code(answer: Comparison, fail_on: str) -> int:
    """The exit code: who asks for nothing is told nothing."""
    if fail_on == "never":
        return DONE
    return FAILED if fails(answer, fail_on) else DONE if is_judged(answer) else NOTHING_JUDGED


def conclusion(answer: Comparison, fail_on: str) -> str:
    """What a check run concludes."""
    return "failure" if fails(answer, fail_on) else _CALM.get(facts.worst(answer), "neutral")
