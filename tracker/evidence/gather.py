"""Asks GitHub for all parts of one pull request, each once; what cannot be read is noted and the rest goes on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from store import lineup, owners, plan, revisions, signoffs, thresholds, yamltext
from store.checks import Proof
from store.fetch import Watch, fetch
from store.github import NotThere, Reader, TooLarge
from store.identity import series_key
from store.promises import expected
from store.readers import read
from store.readers.sidecars import job
from store.readers.values import Flaw
from store.records import Expected, Trouble
from store.reuse import SWEEP, latest_command
from store.runs import RunLink
from store.signoffs import SignOff
from store.told import masters, parsed
from tracker.coverage import promised
from tracker.evidence.inputs import UPSTREAM, Change, Inputs, Masters, Pull, Rows, Sweep, recipe_names
from tracker.judge.results import eval_key

T = TypeVar("T")

CHANGELOG = "perf-changelog.yaml"
THRESHOLDS = "utils/evals/thresholds.yaml"
GOLDEN = "golden_al_distribution"
RECIPES = "benchmarks/multi_node/srt-slurm-recipes"
MOST_RECIPES = 60
"""Recipe files that are read; upstream's largest config names a dozen."""
MOST_LINKS = 5

_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)")


def gather(number: int, reader: Reader, work: Path, watch: Watch = lambda _: None) -> Inputs:
    """All parts of a pull request; raises Trouble where the pull request itself cannot be read.

    The results of its run are fetched into a folder below `work`, where a second call finds them.
    """
    told = _pull(reader.pull(number))
    asking = _Asking(reader, told)
    found = _people(asking, Inputs(reader.access.repository, told))
    found = _policies(asking, _contents(asking, found))
    found = _runs(asking, found, work, watch)
    return replace(found, absent=MappingProxyType(dict(asking.absent)))


class _Asking:
    """One question after the other; `absent` notes what was not answered."""

    def __init__(self, reader: Reader, pull: Pull) -> None:
        self.reader = reader
        self.pull = pull
        self.absent: dict[str, Proof] = {}

    def part(self, name: str, call: Callable[[], T]) -> T | None:
        """What the call gives; None with a note where GitHub or the text refuses."""
        try:
            return call()
        except (Trouble, TooLarge, ValueError) as flaw:
            self.absent[name] = Proof.of("not_read", part=name, reason=str(flaw) or type(flaw).__name__)
            return None

    def at_head(self, call: Callable[[str], T]) -> T:
        """The head of a fork may be shown in the fork alone."""
        try:
            return call("")
        except NotThere:
            if self.pull.head_repository in (None, self.reader.access.repository):
                raise
            return call(self.pull.head_repository or "")

    def base_text(self, paths: Iterable[str]) -> tuple[str, str] | None:
        """Path and text of the first file that stands on the base branch."""
        for path in paths:
            content = self.reader.file(path, self.pull.base_ref)
            if content is not None:
                return path, content.decode("utf-8", "replace")
        return None


# --- the pull request and its people ------------------------------------------------------------------------------


def _pull(told: Mapping[str, Any]) -> Pull:
    head, base = told["head"], told["base"]
    source, author = head.get("repo"), told.get("user")
    return Pull(
        number=told["number"],
        title=str(told.get("title") or ""),
        body=str(told.get("body") or ""),
        author=str(author.get("login") if isinstance(author, Mapping) else ""),
        labels=frozenset(str(one.get("name")) for one in told.get("labels") or ()),
        head=str(head["sha"]),
        head_repository=source.get("full_name") if isinstance(source, Mapping) else None,
        base_ref=str(base["ref"]),
        base_sha=str(base["sha"]),
    )


def _people(asking: _Asking, found: Inputs) -> Inputs:
    """Comments, reviews, and what they say."""
    number, reader = found.pull.number, asking.reader
    comments = asking.part("comments", lambda: reader.comments(number))
    reviews = asking.part("reviews", lambda: reader.reviews(number))
    signoff = asking.part("sign_off", lambda: signoffs.find(comments or (), reviews or ()))
    command = latest_command(comments or (), datetime.max.replace(tzinfo=UTC))
    return replace(found, signoff=signoff, command=command, upstream=_upstream(asking, found.pull, signoff))


def _upstream(asking: _Asking, pull: Pull, signoff: SignOff | None) -> Mapping[str, str]:
    """State by address. A pull request that is not shown has none: then it is not known."""
    found: dict[str, str] = {}
    linked = UPSTREAM.finditer(f"{signoff.body if signoff else ''}\n{pull.body}")
    for repository, number in list(dict.fromkeys(one.groups() for one in linked))[:MOST_LINKS]:
        try:
            told = asking.reader.pull(int(number), repository)
        except Trouble:
            continue
        state = "merged" if told.get("merged") is True else str(told.get("state"))
        found[f"https://github.com/{repository}/pull/{number}"] = state
    return MappingProxyType(found)


# --- what it changes ----------------------------------------------------------------------------------------------


def _contents(asking: _Asking, found: Inputs) -> Inputs:
    """Commits, changed files, and configs and changelog on both sides."""
    reader, pull = asking.reader, found.pull
    parted = asking.part("merge_base", lambda: reader.merge_base(pull.base_ref, pull.head)) or pull.base_sha
    after = asking.part("configs", lambda: asking.at_head(lambda where: _masters(masters(pull.head, where, reader))))
    before = asking.part("configs_before", lambda: _masters(masters(parted, "", reader)))
    found = replace(
        found,
        commits=asking.part("commits", lambda: reader.pull_commits(pull.number)),
        changes=asking.part("files", lambda: tuple(map(_change, reader.pull_files(pull.number)))),
        before=before,
        after=after,
        changelog=asking.part("changelog", lambda: _changelog(asking, parted, after)),
    )
    return replace(found, recipes=_recipes(asking, found))


def _masters(texts: Mapping[str, bytes]) -> Masters:
    entries: dict[str, Any] = {}
    for name, content in texts.items():
        said = yamltext.values(content.decode("utf-8", "replace"))
        if not isinstance(said, dict):
            raise ValueError(f"{name} is no mapping of configs")
        entries |= said
    whole = plan.merge(plan.parse(content, name, any_era=True) for name, content in texts.items())
    return Masters(whole, MappingProxyType(entries))


def _changelog(asking: _Asking, parted: str, after: Masters | None) -> revisions.Review | None:
    """What the pull request does to the changelog; None where neither side has one."""
    reader, pull = asking.reader, asking.pull
    head = asking.at_head(lambda where: reader.file(CHANGELOG, pull.head, where))
    base = reader.file(CHANGELOG, parted)
    if head is None and base is None:
        return None
    keys = after.plan.keys if after else None
    repository = reader.access.repository
    return revisions.review(base or b"", head or b"", known_keys=keys, pull_request=pull.number, repository=repository)


def _change(told: Mapping[str, Any]) -> Change:
    patch = told.get("patch")
    added = tuple(_added(patch)) if isinstance(patch, str) else None
    if patch is None and (told.get("status") == "removed" or told.get("changes") == 0):
        added = ()
    return Change(str(told["filename"]), str(told.get("status")), added, str(told.get("previous_filename") or ""))


def _added(patch: str) -> Iterator[tuple[int, str]]:
    number = 0
    for line in patch.split("\n"):
        if found := _HUNK.match(line):
            number = int(found[1])
        elif line.startswith("+"):
            yield number, line[1:]
            number += 1
        elif not line.startswith(("-", "\\")):
            number += 1


def _recipes(asking: _Asking, found: Inputs) -> Mapping[str, Mapping[str, str]]:
    """The recipe files of the concerned configs at the head."""
    entries = found.after.entries if found.after else {}
    wanted = {config.key: _recipe_paths(entries.get(config.key), found.changes or ()) for config in found.configs}
    paths = list(dict.fromkeys(path for some in wanted.values() for path in some))
    if len(paths) > MOST_RECIPES:
        asking.absent["recipes"] = Proof.of("too_many_recipes", count=len(paths), most=MOST_RECIPES)
        return MappingProxyType({})
    texts = asking.part("recipes", lambda: {path: _head_text(asking, path) for path in paths}) or {}
    read_of = {
        key: {path: text for path in some if (text := texts.get(path)) is not None} for key, some in wanted.items()
    }
    return MappingProxyType({key: texts for key, texts in read_of.items() if texts})


def _head_text(asking: _Asking, path: str) -> str | None:
    content = asking.at_head(lambda where: asking.reader.file(path, asking.pull.head, where))
    return None if content is None else content.decode("utf-8", "replace")


def _recipe_paths(entry: Any, changes: Sequence[Change]) -> tuple[str, ...]:
    """Where the recipes stand that the settings of an entry name below `recipes/`."""
    changed = [change.path for change in changes if change.status != "removed"]
    names = recipe_names(entry)
    return tuple(next((path for path in changed if path.endswith(f"/{name}")), f"{RECIPES}/{name}") for name in names)


# --- the rules of the base branch ---------------------------------------------------------------------------------


def _policies(asking: _Asking, found: Inputs) -> Inputs:
    reader, pull = asking.reader, found.pull
    marks = asking.part("thresholds", lambda: _parsed(asking, [THRESHOLDS], lambda path, text: _marks(text, path)))
    waiver = f"docs/waiver/{pull.number}.md"
    has_waiver = asking.part("waiver", lambda: asking.at_head(lambda where: reader.file(waiver, pull.head, where)))
    agentic = any(arm.curve.scenario == "agentic_traces" for config in found.configs for arm in config.arms)
    return replace(
        found,
        owners=asking.part("owners", lambda: _parsed(asking, owners.PLACES, lambda path, text: _owners(text, path))),
        checklist=asking.part(
            "checklist", lambda: _parsed(asking, [signoffs.CHECKLIST], lambda _, text: signoffs.template(text) or None)
        ),
        lineup=asking.part("lineup", lambda: _parsed(asking, lineup.PLACES, lambda _, text: lineup.parse(text))),
        thresholds=marks,
        waiver=waiver if has_waiver is not None else None,
        golden=(asking.part("golden", lambda: _golden(asking)) or {}) if agentic else {},
    )


def _parsed(asking: _Asking, places: Iterable[str], parse: Callable[[str, str], T | None]) -> T | None:
    """The first of the files on the base branch, read; None where there is none."""
    found = asking.base_text(places)
    return parse(*found) if found else None


def _owners(text: str, path: str) -> owners.CodeOwners | None:
    return owners.parse(text, path) if len(text.encode()) <= owners.LARGEST else None


def _marks(text: str, path: str) -> thresholds.Thresholds:
    return thresholds.parse(text.encode(), path)


def _golden(asking: _Asking) -> Mapping[str, Any]:
    reader, ref = asking.reader, asking.pull.base_ref
    found = {}
    for name in reader.listing(GOLDEN, ref):
        content = reader.file(f"{GOLDEN}/{name}", ref) if name.endswith((".yaml", ".yml")) else None
        if content is not None:
            found[name] = yamltext.values(content.decode("utf-8", "replace"))
    return MappingProxyType(found)


# --- runs ---------------------------------------------------------------------------------------------------------


def _runs(asking: _Asking, found: Inputs, work: Path, watch: Watch) -> Inputs:
    """The run that speaks for the pull request: one that is named where it is as good as any other."""
    named = asking.part("named_runs", lambda: tuple(_named(asking, found))) or ()
    sweep = asking.part("runs", lambda: _best((*named, *_own(asking, found.commits or ()))))
    rows = None
    if sweep is not None:
        chosen = sweep
        rows = asking.part("rows", lambda: _rows(asking, found, chosen, work / "runs" / str(chosen.run.id), watch))
    return replace(found, named=named, sweep=sweep, rows=rows)


def _named(asking: _Asking, found: Inputs) -> Iterator[Sweep]:
    pinned = found.command.pinned if found.command and found.command.authorised else None
    numbers = (*(found.signoff.runs if found.signoff else ()), *([pinned] if pinned else ()))
    for number in list(dict.fromkeys(numbers))[:MOST_LINKS]:
        try:
            told = asking.reader.run(number)
        except NotThere:
            asking.absent[f"run {number}"] = Proof.of("run_not_shown", run=str(number))
            continue
        yield _sweep(asking, told, found.commits)


def _own(asking: _Asking, commits: Sequence[str]) -> Iterator[Sweep]:
    """The sweeps on the commits of the pull request, newest first, asked for one by one."""
    for sha in reversed(commits):
        for told in asking.reader.runs_of(sha):
            if told.get("event") == "pull_request" and str(told.get("path") or "").partition("@")[0] == SWEEP:
                yield _sweep(asking, told, tuple(commits))


def _sweep(asking: _Asking, told: Mapping[str, Any], commits: tuple[str, ...] | None) -> Sweep:
    run = parsed(told)
    jobs = []
    for one in asking.reader.jobs(run.id):
        try:
            jobs.append(job(one))
        except Flaw:
            continue
    in_pull = None if commits is None else run.head_sha in commits
    since = len(commits) - 1 - commits.index(run.head_sha or "") if commits and in_pull else 0
    return Sweep(run, tuple(jobs), in_pull, since)


def _best(sweeps: Iterable[Sweep]) -> Sweep | None:
    """The first that passed with evals on a commit of the pull request, else the nearest to that."""
    best: Sweep | None = None
    for sweep in sweeps:
        if best is None or _merit(sweep) > _merit(best):
            best = sweep
        if all(_merit(best)):
            return best
    return best


def _merit(sweep: Sweep) -> tuple[bool, bool, bool, bool]:
    return sweep.in_pull is True, bool(sweep.measuring), sweep.is_green, bool(sweep.evaluating)


def _rows(asking: _Asking, found: Inputs, sweep: Sweep, folder: Path, watch: Watch) -> Rows:
    link = RunLink(asking.reader.access.repository, sweep.run.id)
    fetched = fetch(link, asking.reader, folder, watch)
    batches = sorted(read([fetched.folder]), key=lambda batch: batch.run.attempt)
    wanted = next((batch.expected for batch in batches if batch.expected), ()) or _promised(found, sweep)
    return Rows(
        points=MappingProxyType({series_key(one.series): one for batch in batches for one in batch.points}),
        scores=MappingProxyType({eval_key(one.series, one.task): one for batch in batches for one in batch.scores}),
        promised=promised(wanted, sweep.jobs),
        entries=tuple(dict.fromkeys(entry for batch in batches for entry in batch.changelog)),
        expired=len(fetched.expired),
    )


def _promised(found: Inputs, sweep: Sweep) -> tuple[Expected, ...]:
    """What the head promises; of a run on another commit nobody says what it was asked for."""
    if found.after is None or sweep.run.head_sha != found.pull.head:
        return ()
    return expected(found.after.plan, found.entries, found.pull.labels, sweep.run.event, sweep.jobs)
