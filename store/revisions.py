"""Two states of perf-changelog.yaml: what became of each entry, what a change may not do, whose tail is whose."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from enum import StrEnum
from types import MappingProxyType

from store.changelog import REPOSITORY, Block, CannotResolve, Changelog, Entry, Flaw, append, flaws, link, read


class Kind(StrEnum):
    """What became of an entry. ADDED is what the file is for; RELINKED is the one correction that history allows."""

    ADDED = "added"
    RELINKED = "relinked"
    INSERTED = "inserted"
    DELETED = "deleted"
    EDITED = "edited"
    REORDERED = "reordered"
    MERGED_AWAY = "merged_away"
    RESPACED = "respaced"


WORDS: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.ADDED: "added at the end",
        Kind.RELINKED: "its link was corrected (allowed, but not together with additions)",
        Kind.INSERTED: "inserted into history; move it to the end",
        Kind.DELETED: "deleted; put it back",
        Kind.EDITED: "edited; put the old lines back and append a new entry",
        Kind.REORDERED: "moved; put it back to its old place",
        Kind.MERGED_AWAY: "merged into another entry; take main's file whole and append your own entries again",
        Kind.RESPACED: "blank lines or comments beside it changed; put them back",
    }
)
"""What happened to an entry and what to do about it."""


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of which the two states differ: where it stood in the base and where it stands in the head."""

    kind: Kind
    base: Block | None = None
    head: Block | None = None

    @property
    def base_line(self) -> int | None:
        return self.base.first_line if self.base else None

    @property
    def head_line(self) -> int | None:
        return self.head.first_line if self.head else None

    @property
    def entry(self) -> Entry:
        """The entry as history knew it; an addition as it was added."""
        block = self.base or self.head
        assert block is not None
        return block.entry

    def __str__(self) -> str:
        """Both places, the entry and the remedy: `base line 8, head line 9: cfg-2 (#2): edited; ...`."""
        sides = (("base", self.base_line), ("head", self.head_line))
        places = ", ".join(f"{side} line {line}" for side, line in sides if line is not None)
        number = f" (#{self.entry.pull_request})" if self.entry.pull_request else ""
        return f"{places}: {', '.join(self.entry.config_keys)}{number}: {WORDS[self.kind]}"


@dataclass(frozen=True, slots=True)
class Review:
    """A change of the file: what it does to entries, and the flaws of what it brings and of what was there before."""

    changes: tuple[Change, ...]
    flaws: tuple[Flaw, ...]
    inherited: tuple[Flaw, ...]

    @property
    def added(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.kind is Kind.ADDED)

    @property
    def forbidden(self) -> tuple[Change, ...]:
        """Changes of history; a corrected link counts as one when it stands beside additions."""
        allowed = {Kind.ADDED} if self.added else {Kind.RELINKED}
        return tuple(change for change in self.changes if change.kind not in allowed)

    @property
    def passed(self) -> bool:
        return not self.forbidden and not self.flaws


# What a change answers for: the keys and the number of an entry that it wrote; a corrected entry only for its form.
_WRITTEN = frozenset({Kind.ADDED, Kind.INSERTED, Kind.EDITED, Kind.MERGED_AWAY})


def review(
    base: bytes,
    head: bytes,
    *,
    known_keys: Collection[str] | None = None,
    pull_request: int | None = None,
    repository: str | None = REPOSITORY,
) -> Review:
    """The changes from base to head, with every flaw of the head parted into its own and the inherited ones.

    Without a number the placeholder link is no flaw of an addition: the pull request is still open.
    """
    changes = compare(base, head)
    written = {change.head.index for change in changes if change.head and change.kind in _WRITTEN}
    touched = written | {change.head.index for change in changes if change.head and change.kind is Kind.RELINKED}
    found = flaws(head, known_keys, pull_request=pull_request, own=written, repository=repository)
    return Review(
        changes,
        tuple(f for f in found if f.entry in touched and (pull_request or f.code != "link_placeholder")),
        tuple(f for f in found if f.entry not in touched),
    )


def compare(base: bytes, head: bytes) -> tuple[Change, ...]:
    """What became of every entry of the base, and every entry that is new, in the order of lines.

    CannotRead when one of the two is no changelog (its message names the lines).
    """
    old, new = read(base), read(head)
    kept = _kept(old, new)
    changes = [*_Search(old, new, kept).changes(), *_respaced(old, new, kept)]
    return tuple(sorted(changes, key=lambda change: (change.head_line or change.base_line or 0, change.kind)))


def _kept(old: Changelog, new: Changelog) -> list[tuple[Block, Block]]:
    """Entries that stand in both, byte for byte and in the same order."""
    before, after = list(map(old.bytes_of, old.blocks)), list(map(new.bytes_of, new.blocks))
    return [
        (old.blocks[run.a + step], new.blocks[run.b + step])
        for run in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
        for step in range(run.size)
    ]


class _Search:
    """Finds for each entry that was not kept what became of it: the rules are tried in order, the surest first."""

    def __init__(self, old: Changelog, new: Changelog, kept: list[tuple[Block, Block]]) -> None:
        self._old, self._new = old, new
        self._doubled = {flaw.entry for flaw in new.flaws if flaw.code == "duplicate_field"}
        here, there = {block.index for block, _ in kept}, {block.index for _, block in kept}
        self._lost = {block.index: block for block in old.blocks if block.index not in here}
        self._fresh = {block.index: block for block in new.blocks if block.index not in there}
        self._gone, self._came = tuple(self._lost.values()), tuple(self._fresh.values())
        self._end = max(there, default=-1)

    def changes(self) -> list[Change]:
        """One change for each entry of the base that was lost, and one for each of the head that follows none."""
        return [
            *self._equal(Kind.REORDERED, self._old.bytes_of, self._new.bytes_of),
            *self._equal(Kind.RELINKED, lambda block: _less_link(self._old.bytes_of(block)), self._relinked),
            *self._equal(Kind.EDITED, lambda block: block.entry.identity, self._rewritten),
            *self._merged(),
            *self._edited(),
            *(Change(Kind.DELETED, base=block) for block in self._lost.values()),
            *(Change(self._arrival(block), head=block) for block in self._fresh.values()),
        ]

    def _equal(
        self, kind: Kind, before: Callable[[Block], object], after: Callable[[Block], object]
    ) -> Iterator[Change]:
        """Pairs with equal keys, the first with the first; a key of None matches nothing."""
        waiting: dict[object, list[Block]] = defaultdict(list)
        for other in reversed(self._fresh.values()):
            waiting[after(other)].append(other)
        for block in tuple(self._lost.values()):
            if successors := waiting.get(before(block)):
                yield self._pair(kind, block, successors.pop())

    def _pair(self, kind: Kind, block: Block, other: Block) -> Change:
        self._lost.pop(block.index)
        self._fresh.pop(other.index, None)
        return Change(kind, block, other)

    def _relinked(self, other: Block) -> object:
        """The lines of an entry less its link, provided that there is one canonical link now."""
        sound = other.entry.linked and other.index not in self._doubled
        return _less_link(self._new.bytes_of(other)) if sound else None

    def _rewritten(self, other: Block) -> object:
        """The content; two links in one entry are the trace of a merge, not of an edit."""
        return None if other.index in self._doubled else other.entry.identity

    def _merged(self) -> Iterator[Change]:
        """Lost entries all of whose content stands within a larger one: two were merged line by line."""
        for block in tuple(self._lost.values()):
            larger = next((other for other in self._came if self._swallowed(block, other)), None)
            if larger is not None:
                yield self._pair(Kind.MERGED_AWAY, block, larger)

    def _swallowed(self, block: Block, other: Block) -> bool:
        if not _within(block.entry, other.entry):
            return False
        return other.index in self._doubled or sum(_within(lost.entry, other.entry) for lost in self._gone) > 1

    def _edited(self) -> Iterator[Change]:
        for block in tuple(self._lost.values()):
            successor = next((other for other in self._fresh.values() if _resembling(block, other)), None)
            if successor is not None:
                yield self._pair(Kind.EDITED, block, successor)

    def _arrival(self, block: Block) -> Kind:
        return Kind.ADDED if block.index > self._end else Kind.INSERTED


def _less_link(text: bytes) -> bytes:
    return b"\n".join(line for line in text.split(b"\n") if not line.startswith(b"  pr-link:"))


def _resembling(block: Block, other: Block) -> bool:
    """The same description, or two of three: the pull request, a config key, an item of the description."""
    old, new = block.entry, other.entry
    shared = (
        old.pull_request is not None and old.pull_request == new.pull_request,
        bool({*old.config_keys} & {*new.config_keys}),
        bool({*old.description} & {*new.description}),
    )
    return sum(shared) >= 2 or old.description == new.description


def _within(small: Entry, large: Entry) -> bool:
    keys, items = {*small.config_keys}, {*small.description}
    return bool(keys) and keys <= {*large.config_keys} and items <= {*large.description}


def _respaced(old: Changelog, new: Changelog, kept: list[tuple[Block, Block]]) -> Iterator[Change]:
    """Kept entries before which blank lines or comments changed, or behind the last of which they did."""
    neighbours = {(-1, -1), *((block.index, other.index) for block, other in kept)}
    for block, other in kept:
        follows = (block.index - 1, other.index - 1) in neighbours
        if follows and old.gap_before(block) != new.gap_before(other):
            yield Change(Kind.RESPACED, block, other)
    if kept and kept[-1][0] is old.blocks[-1] and not new.data[kept[-1][1].end :].startswith(old.tail):
        yield Change(Kind.RESPACED, *kept[-1])


def resolve_tail(main: bytes, branch: bytes, *, pull_request: int, repository: str = REPOSITORY) -> bytes:
    """Main's bytes, then the branch's own entries with the canonical link: a conflict of two tails without a merge.

    The branch's own entries are those that main does not hold (whatever the link) and that stand behind everything
    shared, or carry this pull request's number or none: what main took out of its history does not return.
    CannotResolve when nothing remains or an entry of the branch is damaged.
    """
    log, own = read(branch), _own(read(main), read(branch), pull_request)
    damaged = [flaw for flaw in log.flaws if flaw.entry in {block.index for block in own}]
    if damaged or not own:
        raise CannotResolve(damaged or [Flaw("nothing_left", 0)])
    return append(main, [replace(block.entry, pr_link=link(pull_request, repository)) for block in own])


def _own(main: Changelog, branch: Changelog, pull_request: int) -> list[Block]:
    present = {entry.identity for entry in main.entries}
    unknown = [block for block in branch.blocks if block.entry.identity not in present]
    shared = max((block.index for block in branch.blocks if block.entry.identity in present), default=-1)
    return [b for b in unknown if b.index > shared or b.entry.pull_request in (None, pull_request)]
