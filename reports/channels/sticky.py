"""Decides the next step towards one comment per pull request; sends nothing and knows no GitHub.

The steps are taken one by one, each from what stands there now. So a lost answer, a second job at the same time, or
a crash in the middle needs no case of its own: the next look shows what is left to do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from reports.outbox import UNKNOWN, Comment, Mark
from store.records import Verdict

BADNESS: Mapping[str, int] = MappingProxyType(
    {
        Verdict.IMPROVEMENT: 0,
        Verdict.RECOVERY: 0,
        Verdict.EQUIVALENT: 0,
        Verdict.DROPPED: 0,
        Verdict.NOISY: 1,
        Verdict.INCONCLUSIVE: 1,
        Verdict.NO_BASELINE: 1,
        Verdict.NOT_COMPARABLE: 1,
        Verdict.NOT_JUDGED: 1,
        Verdict.SUSPECTED: 2,
        Verdict.MISSING: 2,
        Verdict.INVALID: 2,
        Verdict.FAILED: 3,
        Verdict.MIXED: 4,
        Verdict.REGRESSION: 5,
    }
)
"""Good, cannot tell, look at it, below a threshold, partly worse, worse: only a step up the table notifies anybody."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A comment of ours as it stands on GitHub."""

    id: int
    body: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Create:
    body: str
    notice: bool = False
    """True for the short comment that notifies."""


@dataclass(frozen=True, slots=True)
class Edit:
    id: int
    body: str


@dataclass(frozen=True, slots=True)
class Delete:
    id: int


Step: TypeAlias = Create | Edit | Delete


def worsens(before: str, after: str) -> bool:
    """Whether a verdict is worse than the one that stands; an unknown one is no ground to notify.

    >>> worsens("equivalent", "regression"), worsens("regression", "mixed"), worsens("unknown", "failed")
    (True, False, False)
    """
    return before in BADNESS and after in BADNESS and BADNESS[after] > BADNESS[before]


def next_step(errand: Comment, seen: Sequence[Seen], written: int | None = None) -> Step | None:
    """The next step from what stands there, or None when all is as it should be.

    `written` is the comment that this job has already given the errand's text: another job may have edited it since,
    and two jobs that undo each other would never end.
    """
    ours = sorted((one for one in seen if Mark.find(one.body, errand.marker)), key=lambda one: one.id)
    notices = _notices(errand, seen)
    if not ours:
        return Create(_body(errand, max(notices, default=0)))
    first, *others = ours
    spare = [*others, *(one for group in notices.values() for one in group[1:])]
    if written != first.id:
        step = _towards(errand, first, notices)
        if step is not None:
            return step
    return Delete(spare[0].id) if spare else None


def _towards(errand: Comment, first: Seen, notices: Collection[int]) -> Step | None:
    """Notify before editing: the edit wipes out what stood there, and with it that the verdict got worse."""
    mark = Mark.find(first.body, errand.marker) or Mark(errand.marker)
    worse = worsens(mark.verdict, errand.mark.verdict)
    number = mark.notices + worse
    if worse and number not in notices:
        return Create(_notice(errand, number, first.url), notice=True)
    body = _body(errand, number)
    return None if _same(first.body, body) else Edit(first.id, body)


def outdated(errand: Comment, seen: Sequence[Seen], current: Collection[str]) -> bool:
    """Whether the comment tells of a commit that stands in the pull request now, and the errand of one that does not.

    After a force-push the slow job of the old head must not write over the new head's result.
    """
    ours = [mark for one in sorted(seen, key=lambda one: one.id) if (mark := Mark.find(one.body, errand.marker))]
    head = errand.mark.head
    return bool(ours) and head != UNKNOWN and _among(ours[0].head, current) and not _among(head, current)


def _among(head: str, current: Collection[str]) -> bool:
    return any(sha.startswith(head) for sha in current)


def _notices(errand: Comment, seen: Sequence[Seen]) -> dict[int, list[Seen]]:
    """The notices by their number, the oldest of each number first."""
    found: dict[int, list[Seen]] = {}
    for one in sorted(seen, key=lambda one: one.id):
        mark = Mark.find(one.body, _notice_word(errand))
        if mark is not None:
            found.setdefault(mark.notices, []).append(one)
    return found


def _notice_word(errand: Comment) -> str:
    return f"{errand.marker}-notice"


def _notice(errand: Comment, number: int, url: str) -> str:
    """The short text, the address of the whole comment, and a mark that counts."""
    mark = replace(errand.mark, word=_notice_word(errand), notices=number)
    return "\n\n".join(part for part in (errand.notice, url, str(mark)) if part)


def _body(errand: Comment, notices: int) -> str:
    return replace(errand.mark, notices=notices).put(errand.body)


def _same(standing: str, wanted: str) -> bool:
    """GitHub may keep other line ends, and no blanks at the end."""
    return standing.replace("\r\n", "\n").rstrip() == wanted.rstrip()
