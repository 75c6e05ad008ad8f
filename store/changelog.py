"""perf-changelog.yaml as bytes: read, validate, append at the tail.

The file is an append-only history that also selects what runs on GPUs. It is never loaded and written back: whatever
this module returns begins with the bytes that it was given.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

import yaml

from store import limits, yamltext
from store.plan import matching
from store.records import Trouble
from store.whole import write_atomically

REPOSITORY = "SemiAnalysisAI/InferenceX"
SCENARIOS = ("fixed-seq-len", "agentic-coding")

_LINK = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)/pull/([1-9]\d*)")
_LINK_LIKE = re.compile(_LINK.pattern + r"(?=$|[/?#])")
_PLACEHOLDER = re.compile(r"XXX|https://github\.com/[\w.-]+/[\w.-]+/pull/XXX")
_MARKER = re.compile(rb"(?:<{7}|\|{7}|>{7})(?: .*)?|={7}")
_ENTRY_START = b"- config-keys:"


def link(pull_request: int | None, repository: str = REPOSITORY) -> str:
    """The canonical link of a pull request; the placeholder of an open one whose number nobody knows yet.

    >>> link(2685), link(None)[-8:]
    ('https://github.com/SemiAnalysisAI/InferenceX/pull/2685', 'pull/XXX')
    """
    return f"https://github.com/{repository}/pull/{pull_request or 'XXX'}"


@dataclass(frozen=True, slots=True)
class Entry:
    """What one entry asks for: the configs to sweep, why, and the pull request that brings it."""

    config_keys: tuple[str, ...]
    description: tuple[str, ...]
    pr_link: str = link(None)
    scenario_type: tuple[str, ...] = ()
    evals_only: bool = False
    all_evals: bool = False
    append_only: bool = False
    eval_min_prefill_ep: int | None = None

    @property
    def identity(self) -> Entry:
        """The entry less its link: two entries with one identity ask for the same thing."""
        return replace(self, pr_link="")

    @property
    def linked(self) -> bool:
        """True for a link in canonical form, to whatever repository."""
        return _LINK.fullmatch(self.pr_link) is not None

    @property
    def pull_request(self) -> int | None:
        """Number of the pull request, also from a link with a trailing path; None for a placeholder.

        >>> Entry(("a",), ("b",), link(2305) + "/changes").pull_request
        2305
        """
        found = _LINK_LIKE.match(self.pr_link)
        return int(found.group(2)) if found else None

    @property
    def text(self) -> str:
        """The canonical form, one line feed at its end; CannotQuote when the text fits into no UTF-8 file."""
        lines = ["- config-keys:", *(f"    - {yamltext.scalar(key)}" for key in self.config_keys)]
        if self.scenario_type:
            lines += ["  scenario-type:", *(f"    - {yamltext.scalar(name)}" for name in self.scenario_type)]
        lines += ["  description:", *(f"    - {yamltext.quoted(item)}" for item in self.description)]
        lines += [f"  pr-link: {yamltext.scalar(self.pr_link)}"]
        lines += [f"  {field}: true" for field, name in _FLAGS.items() if getattr(self, name)]
        if self.eval_min_prefill_ep is not None:
            lines += [f"  eval-min-prefill-ep: {self.eval_min_prefill_ep}"]
        return "\n".join(lines) + "\n"


_FLAGS: Mapping[str, str] = MappingProxyType(
    {"evals-only": "evals_only", "all-evals": "all_evals", "append-only": "append_only"}
)


@dataclass(frozen=True, slots=True)
class Block:
    """An entry as it stands in a file: lines count from 1, `start` and `end` are byte offsets without the line feed."""

    index: int
    first_line: int
    last_line: int
    start: int
    end: int
    entry: Entry


WORDS: Mapping[str, str] = MappingProxyType(
    {
        "not_utf8": "not UTF-8 at byte {}; save the file as UTF-8",
        "byte_order_mark": "a byte order mark; save the file as UTF-8 without it",
        "nul": "a NUL byte; delete it",
        "carriage_return": "a carriage return; use line feeds only",
        "tab": "a TAB; use blanks",
        "trailing_blank": "blanks at the end of the line; delete them",
        "conflict_marker": "a conflict marker `{}`; take main's file whole and append your own entries again",
        "syntax": "no YAML: {}; quote the text or correct the indentation",
        "not_a_list": "the file is no list of entries; begin each entry with `- config-keys:`",
        "not_a_mapping": "the entry is no mapping; begin it with `- config-keys:`",
        "final_newline": "the file ends with {} line feeds, not one; end it with exactly one",
        "separation": "{} lines between this entry and what stands before it; leave {}",
        "entry_start": "the entry does not begin with `- config-keys:` at the margin; write config-keys first",
        "duplicate_field": "`{}` stands twice in one entry (two entries may have been merged into one); part them",
        "unknown_field": "`{}` is no field of an entry; delete it or correct its spelling",
        "missing_field": "`{}` is missing; add it",
        "empty": "`{}` is empty; fill it",
        "not_text": "`{}` is not read as text by every YAML reader; put it into double quotes",
        "not_a_list_of_texts": "`{}` is no list of texts; write one item a line, each in double quotes",
        "not_a_flag": "`{}` is neither true nor false; write `true` or leave the field out",
        "not_a_count": "`{}` is no whole number from 1; correct it",
        "unknown_scenario": "`{}` is no scenario; use fixed-seq-len or agentic-coding",
        "exclusive": "append-only does not go together with {}; leave one out",
        "append_only_mixed": "append-only entries stand beside ordinary ones in one change; use two pull requests",
        "link_missing": "pr-link holds no pull request number; write {}",
        "link_placeholder": "the placeholder `{}` is left; put the number of the pull request",
        "link_malformed": "`{}` is no canonical link; write {}",
        "link_number": "the link names pull request {}, but this is pull request {}; write {}",
        "duplicate_entry": "the same entry stands at {}; change what it asks for, or leave it out",
        "unknown_key": "no master config holds the key `{}`; correct it, or add the config first",
        "unmatched_wildcard": "the wildcard `{}` matches no key of the master configs; correct it",
        "unquotable": "a text holds {}, which no UTF-8 file can hold; delete it",
        "unreadable_tail": "behind the end of this file the entries would not read back ({}); make the file a list of"
        " entries at the left margin first",
        "nothing_left": "the branch adds no entry that main does not hold already; nothing is left to append",
    }
)
"""What is wrong and what to do about it, by code of a flaw; the values of the flaw fill the braces."""


@dataclass(frozen=True, slots=True)
class Flaw:
    """One thing wrong with a file or an entry. `line` is 0 for an entry that does not stand in a file yet."""

    code: str
    line: int
    values: tuple[str | int, ...] = ()
    entry: int | None = None
    """Index of the entry in its file, or among those that were to be appended; None for the file as a whole."""

    @property
    def place(self) -> str:
        if self.line:
            return f"line {self.line}"
        return "the file" if self.entry is None else f"new entry {self.entry + 1}"

    def __str__(self) -> str:
        return f"{self.place}: {WORDS[self.code].format(*self.values)}"


class _Refusal(Trouble):
    """A refusal with every reason for it, each with its place and its remedy."""

    def __init__(self, flaws: Iterable[Flaw]) -> None:
        self.flaws = tuple(flaws)
        super().__init__("\n".join(map(str, self.flaws)))


class CannotRead(_Refusal):
    """The bytes are no changelog at all: other encoding, conflict markers, broken YAML."""


class CannotAppend(_Refusal):
    """The entries may not be appended to this file."""


class CannotResolve(_Refusal):
    """A conflict of tails that has to be resolved by hand."""


@dataclass(frozen=True, slots=True)
class Changelog:
    """A file that was read: every entry with its place, and what the structure of an entry violates."""

    data: bytes
    blocks: tuple[Block, ...]
    flaws: tuple[Flaw, ...] = ()

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(block.entry for block in self.blocks)

    def bytes_of(self, block: Block) -> bytes:
        return self.data[block.start : block.end]

    def gap_before(self, block: Block) -> bytes:
        """Everything between the last character of the entry before and this entry."""
        return self.data[self.blocks[block.index - 1].end if block.index else 0 : block.start]

    @property
    def tail(self) -> bytes:
        """Everything after the last entry."""
        return self.data[self.blocks[-1].end if self.blocks else 0 :]


# ---------------------------------------------------------------------------------------------------------- reading


class _Lines:
    """Where lines begin, counted as editors and git count them: by line feeds only."""

    def __init__(self, data: bytes, text: str) -> None:
        self.bytes = data.split(b"\n")
        self._chars = [0, *(found.end() for found in re.finditer("\n", text))]
        self._offsets = [0]
        for line in self.bytes[:-1]:
            self._offsets.append(self._offsets[-1] + len(line) + 1)

    def number(self, char: int) -> int:
        return bisect_right(self._chars, char)

    def start(self, number: int) -> int:
        return self._offsets[number - 1]

    def end(self, number: int) -> int:
        return self._offsets[number - 1] + len(self.bytes[number - 1])

    def __getitem__(self, number: int) -> bytes:
        return self.bytes[number - 1]

    def __len__(self) -> int:
        return len(self.bytes)


def read_bytes(path: Path) -> bytes:
    """The bytes of a file, within the bound of a text of YAML."""
    return limits.read_file(path, limits.YAML_BYTES)


# One command reads the same bytes several times: before, after, and for the flaws of both.
@lru_cache(maxsize=8)
def read(data: bytes) -> Changelog:
    """Every entry with its exact place; tolerant of what the historical file holds.

    Blanks at line ends, doubled blank lines, placeholder links, missing and repeated fields are read (a repeated list
    is joined, so that nothing is lost). CannotRead names the lines of conflict markers and of broken YAML.
    """
    text = _decoded(data)
    lines = _Lines(data, text)
    root = _root(text, lines)
    if root is None:
        return Changelog(data, ())
    spans = _spans(root, lines)
    found: list[Flaw] = []
    blocks = tuple(
        Block(index, first, last, lines.start(first), lines.end(last), _Reader(text, lines, index, found).entry(node))
        for index, (node, (first, last)) in enumerate(zip(root.value, spans, strict=True))
    )
    return Changelog(data, blocks, tuple(found))


def _decoded(data: bytes) -> str:
    """The text of the file, or CannotRead for what no YAML reader should be offered."""
    lines = data.split(b"\n")
    fatal = [Flaw("nul", number) for number, line in enumerate(lines, 1) if b"\0" in line]
    fatal += [
        Flaw("conflict_marker", number, (line.decode("utf-8", "replace").rstrip(),))
        for number, line in enumerate(lines, 1)
        if _MARKER.fullmatch(line.rstrip(b"\r "))
    ]
    if fatal:
        raise CannotRead(fatal)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CannotRead([Flaw("not_utf8", data.count(b"\n", 0, error.start) + 1, (error.start,))]) from error


def _root(text: str, lines: _Lines) -> yaml.SequenceNode | None:
    try:
        root = yamltext.compose(text)
    except yamltext.NotYaml as error:
        raise CannotRead([Flaw("syntax", lines.number(error.index), (str(error),))]) from error
    if root is None or isinstance(root, yaml.SequenceNode):
        return root
    raise CannotRead([Flaw("not_a_list", lines.number(root.start_mark.index))])


def _spans(root: yaml.SequenceNode, lines: _Lines) -> list[tuple[int, int]]:
    """First and last line of each entry: from its dash to its last line that is neither blank nor a comment."""
    firsts, floor = [], 1
    for node in root.value:
        firsts.append(_dash_line(lines, lines.number(node.start_mark.index), floor))
        floor = firsts[-1] + 1
    return [(first, _last_line(lines, first, until)) for first, until in pairwise([*firsts, len(lines) + 1])]


def _dash_line(lines: _Lines, line: int, floor: int) -> int:
    for number in range(line, floor - 1, -1):
        if lines[number].lstrip().startswith(b"-"):
            return number
    return line


def _last_line(lines: _Lines, first: int, until: int) -> int:
    return next((n for n in range(until - 1, first, -1) if not _void(lines[n])), first)


def _void(line: bytes) -> bool:
    return not line.strip() or line.lstrip().startswith(b"#")


class _Reader:
    """Reads one entry whole, noting what its structure violates; nothing is refused here."""

    def __init__(self, text: str, lines: _Lines, index: int, found: list[Flaw]) -> None:
        self._text, self._lines, self._index, self._found = text, lines, index, found

    def entry(self, node: yaml.Node) -> Entry:
        if not isinstance(node, yaml.MappingNode):
            self._note("not_a_mapping", node)
            return Entry((), (), "")
        values: dict[str, yaml.Node] = {}
        texts: dict[str, tuple[str, ...]] = defaultdict(tuple)
        for name, key, value in yamltext.fields(node):
            if name not in _KNOWN_FIELDS:
                self._note("unknown_field", key, name)
            elif name in values:
                self._note("duplicate_field", key, name)
            values[name] = value
            if name in _LISTS:
                texts[name] += self._texts(name, value)
        for name in _REQUIRED:
            if name not in values:
                self._note("missing_field", node, name)
        return Entry(
            config_keys=texts["config-keys"],
            description=texts["description"],
            pr_link=self._link(values.get("pr-link")),
            scenario_type=texts["scenario-type"],
            evals_only=self._flag(values.get("evals-only")),
            all_evals=self._flag(values.get("all-evals")),
            append_only=self._flag(values.get("append-only")),
            eval_min_prefill_ep=self._count(values.get("eval-min-prefill-ep")),
        )

    def _note(self, code: str, node: yaml.Node, *values: str) -> None:
        self._found.append(Flaw(code, self._lines.number(node.start_mark.index), values, self._index))

    def _source(self, node: yaml.Node) -> str:
        """A scalar's value, or the characters of what should have been one."""
        if isinstance(node, yaml.ScalarNode):
            return str(node.value)
        return self._text[node.start_mark.index : node.end_mark.index].strip()

    def _texts(self, name: str, node: yaml.Node) -> tuple[str, ...]:
        if not isinstance(node, yaml.SequenceNode):
            self._note("not_a_list_of_texts", node, name)
            return (self._source(node),)
        if not node.value:
            self._note("empty", node, name)
        for item in node.value:
            if isinstance(item, yaml.ScalarNode) and not item.value.strip():
                self._note("empty", item, name)
            elif not yamltext.is_text(item):
                self._note("not_text", item, self._source(item))
        return tuple(self._source(item) for item in node.value)

    def _link(self, node: yaml.Node | None) -> str:
        return self._source(node) if node is not None else ""

    def _flag(self, node: yaml.Node | None) -> bool:
        if node is None:
            return False
        word = self._source(node)
        if word not in ("true", "false"):
            self._note("not_a_flag", node, word)
        return word.lower() in ("true", "yes", "on")

    def _count(self, node: yaml.Node | None) -> int | None:
        if node is None:
            return None
        word = self._source(node)
        if not re.fullmatch(r"[1-9][0-9]{0,8}", word):
            self._note("not_a_count", node, word)
            return None
        return int(word)


_REQUIRED = ("config-keys", "description", "pr-link")
_LISTS = frozenset({"config-keys", "description", "scenario-type"})
_KNOWN_FIELDS = frozenset({*_REQUIRED, *_LISTS, *_FLAGS, "eval-min-prefill-ep"})


# ------------------------------------------------------------------------------------------------------- validation


def flaws(
    data: bytes,
    known_keys: Collection[str] | None = None,
    *,
    pull_request: int | None = None,
    own: Collection[int] | None = None,
    repository: str | None = REPOSITORY,
) -> tuple[Flaw, ...]:
    """Everything that the strict rules refuse, in the order of lines; an empty tuple for a clean file.

    `own` holds the indexes of the entries that a pull request adds: only those are held to `known_keys` (a key may
    have retired since) and to its number `pull_request`. None holds every entry to them.
    """
    try:
        log = read(data)
    except CannotRead as refusal:
        return refusal.flaws
    found = [*log.flaws, *_line_flaws(log), *_layout_flaws(log), *_duplicate_flaws(log)]
    for block in log.blocks:
        mine = own is None or block.index in own
        held = _content_flaws(block.entry, known_keys if mine else None, repository)
        held += _number_flaws(block.entry, pull_request if mine else None)
        found += [Flaw(code, block.first_line, values, block.index) for code, values in held]
    if own is not None:
        found += _mixture_flaws([log.blocks[index] for index in sorted(own)])
    return tuple(sorted(found, key=lambda flaw: flaw.line))


_LINE_RULES: tuple[tuple[str, re.Pattern[bytes]], ...] = (
    ("carriage_return", re.compile(rb"\r")),
    ("tab", re.compile(rb"\t")),
    ("trailing_blank", re.compile(rb" \r?$")),
    ("byte_order_mark", re.compile(b"^\xef\xbb\xbf")),
)


def _line_flaws(log: Changelog) -> Iterator[Flaw]:
    """Flaws of single lines; a line belongs to the entry that begins on it or before it."""
    firsts = [block.first_line for block in log.blocks]
    for number, line in enumerate(log.data.split(b"\n"), 1):
        for code, pattern in _LINE_RULES:
            if pattern.search(line):
                yield Flaw(code, number, (), max(bisect_right(firsts, number) - 1, 0) if firsts else None)


def _layout_flaws(log: Changelog) -> Iterator[Flaw]:
    """Starts of entries, the lines between them, and the end of the file."""
    for block in log.blocks:
        if not log.bytes_of(block).startswith(_ENTRY_START):
            yield Flaw("entry_start", block.first_line, (), block.index)
        wanted = 1 if block.index else 0
        between = block.first_line - 1 - (log.blocks[block.index - 1].last_line if block.index else 0)
        if between != wanted:
            yield Flaw("separation", block.first_line, (between, wanted), block.index)
    ends = len(log.data) - len(log.data.rstrip(b"\r\n"))
    if log.blocks and log.data[-ends:].count(b"\n") != 1:
        count = log.data[-ends:].count(b"\n") if ends else 0
        yield Flaw("final_newline", log.blocks[-1].last_line, (count,), log.blocks[-1].index)


def _duplicate_flaws(log: Changelog) -> Iterator[Flaw]:
    seen: dict[Entry, int] = {}
    for block in log.blocks:
        first = seen.setdefault(block.entry.identity, block.first_line)
        if first != block.first_line:
            yield Flaw("duplicate_entry", block.first_line, (f"line {first}",), block.index)


_Objection = tuple[str, tuple[str | int, ...]]


def _content_flaws(entry: Entry, known_keys: Collection[str] | None, repository: str | None) -> list[_Objection]:
    found: list[_Objection] = [*_link_flaws(entry, repository), *_key_flaws(entry.config_keys, known_keys)]
    found += [("unknown_scenario", (name,)) for name in entry.scenario_type if name not in SCENARIOS]
    if entry.append_only:
        others = {"evals-only": entry.evals_only, "all-evals": entry.all_evals}
        others["eval-min-prefill-ep"] = entry.eval_min_prefill_ep is not None
        found += [("exclusive", (name,)) for name, present in others.items() if present]
    return found


def _link_flaws(entry: Entry, repository: str | None) -> Iterator[_Objection]:
    text, found = entry.pr_link, _LINK_LIKE.match(entry.pr_link)
    if _PLACEHOLDER.fullmatch(text):
        yield "link_placeholder", (text,)
    elif found is None:
        yield "link_missing", (link(None, repository or REPOSITORY),)
    elif text != link(entry.pull_request, repository or found.group(1)):
        yield "link_malformed", (text, link(entry.pull_request, repository or found.group(1)))


def _number_flaws(entry: Entry, pull_request: int | None) -> list[_Objection]:
    if pull_request is None or entry.pull_request in (None, pull_request):
        return []
    return [("link_number", (entry.pull_request or 0, pull_request, link(pull_request)))]


def _key_flaws(keys: Iterable[str], known_keys: Collection[str] | None) -> Iterator[_Objection]:
    for key in keys if known_keys is not None else ():
        if known_keys is not None and not matching(key, known_keys):
            yield ("unmatched_wildcard" if "*" in key else "unknown_key"), (key,)


def _mixture_flaws(blocks: Sequence[Block]) -> list[Flaw]:
    if len({block.entry.append_only for block in blocks}) < 2:
        return []
    return [Flaw("append_only_mixed", block.first_line, (), block.index) for block in blocks if block.entry.append_only]


# -------------------------------------------------------------------------------------------------------- appending


def append(old: bytes, entries: Sequence[Entry], *, known_keys: Collection[str] | None = None) -> bytes:
    """The old bytes, one blank line, the entries in canonical form with one blank line between, one final line feed.

    A final line feed that the old file lacks is added first; a blank line that it ends with is the one blank line.
    Line ends follow the file. CannotAppend names every reason; a result that would not read back as the old entries
    and the new ones is never returned.
    """
    log = _appendable(old)
    _refuse(_append_flaws(log, entries, known_keys))
    if not entries:
        return old
    added = _joint(old) + draft(entries).encode()
    new = old + (added.replace(b"\n", b"\r\n") if _has_crlf(old) else added)
    _verify(log, entries, new)
    return new


def draft(entries: Sequence[Entry]) -> str:
    """The entries in canonical form with one blank line between: what `append` adds behind the blank line."""
    texts = []
    for index, entry in enumerate(entries):
        try:
            texts.append(entry.text)
        except yamltext.CannotQuote as error:
            raise CannotAppend([Flaw("unquotable", 0, (str(error),), index)]) from error
    return "\n".join(texts)


def append_file(path: Path, entries: Sequence[Entry], *, known_keys: Collection[str] | None = None) -> bytes:
    """Append to a file at once or not at all; the bytes that were added. A file that does not exist yet is begun."""
    old = read_bytes(path) if path.exists() else b""
    new = append(old, entries, known_keys=known_keys)
    write_atomically(path, new)
    return new[len(old) :]


def _refuse(reasons: Iterable[Flaw]) -> None:
    if found := tuple(reasons):
        raise CannotAppend(found)


# What makes a file unsafe to append to: a field that stands twice is the trace of two entries merged into one.
_UNSAFE = frozenset({"duplicate_field", "not_a_mapping"})


def _appendable(old: bytes) -> Changelog:
    try:
        log = read(old)
    except CannotRead as refusal:
        raise CannotAppend(refusal.flaws) from refusal
    _refuse(flaw for flaw in log.flaws if flaw.code in _UNSAFE)
    return log


def _append_flaws(log: Changelog, entries: Sequence[Entry], known_keys: Collection[str] | None) -> Iterator[Flaw]:
    present = {block.entry.identity: f"line {block.first_line}" for block in log.blocks}
    for index, entry in enumerate(entries):
        held = _content_flaws(entry, known_keys, repository=None)
        held += [("empty", (name,)) for name, items in _lists(entry) if not items or not all(map(str.strip, items))]
        # The number of an open pull request may come later.
        yield from (Flaw(code, 0, values, index) for code, values in held if code != "link_placeholder")
        if entry.identity in present:
            yield Flaw("duplicate_entry", 0, (present[entry.identity],), index)
        present.setdefault(entry.identity, f"new entry {index + 1}")
    if len({entry.append_only for entry in entries}) > 1:
        yield Flaw("append_only_mixed", 0)


def _lists(entry: Entry) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return ("config-keys", entry.config_keys), ("description", entry.description)


def _has_crlf(old: bytes) -> bool:
    """True where every line of the file ends with CRLF: two kinds of line ends would be worse than one wrong kind."""
    return old.count(b"\n") == old.count(b"\r\n") > 0


def _joint(old: bytes) -> bytes:
    """The line feeds between the old bytes and the first new entry."""
    *before, last = old.split(b"\n")
    if not before and not last:
        return b""
    if last:
        return b"\n" if not last.strip() else b"\n\n"
    return b"\n" if before[-1].strip() else b""


def _verify(log: Changelog, entries: Sequence[Entry], new: bytes) -> None:
    """The whole result once more through the reader, whatever stood at the end of the old file."""
    try:
        again = read(new)
    except CannotRead as refusal:
        raise CannotAppend([Flaw("unreadable_tail", 0, (str(refusal),))]) from refusal
    if again.entries != (*log.entries, *entries):
        raise CannotAppend([Flaw("unreadable_tail", 0, ("other entries came back",))])
