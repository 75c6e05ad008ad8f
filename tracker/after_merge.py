"""After a merge, or a labelled sweep: what ran is fetched, landed, judged, kept, written down and told, by one command.

Every step can be done again: a fetch goes on where it was, a landing adds nothing twice, findings stand under the name
of their comparison, files appear whole, errands look before they write. So a job that was killed is simply run again,
and what fails late loses nothing of what was done early.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from reports import ending, facts, jsonform, outbox, render
from reports.channels import files
from reports.doubts import sentence
from reports.facts import Facts
from reports.language import Language
from reports.outbox import CheckRun, Comment, Errand
from store import changelog, plan
from store.branches import check_is_branch
from store.fetch import Fetched, fetch_with_source
from store.github import Incomplete, Reader
from store.records import Caveat, Comparison, Run, Trouble
from store.reuse import Candidate, best_run
from store.runs import RunLink
from store.told import parsed
from tracker import jobs, texts
from tracker.jobs import Question, Watch, Where

CHECK = "sweep-tracker"
"""Name of the check run."""

_DOCUMENTS: Mapping[str, str] = MappingProxyType(
    {"summary.md": "summary", "comment.md": "comment", "evidence.txt": "evidence"}
)
"""Files of a report by the document that each holds."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which run, where its files lie meanwhile, how it is judged, and the pull request that the event names."""

    link: RunLink
    work: Path
    pull: int | None = None
    question: Question = field(default_factory=Question)
    """Its candidate is filled in here."""
    lang: str = "both"
    fail_on: str = "never"
    changelog: Path | None = None
    """File of a branch to append the proposed entries to."""


@dataclass(frozen=True, slots=True)
class Reported:
    """What came of it: the judgement, the folder of its files, what is left to do, and what the changelog might say."""

    name: str
    """Under which the findings are stored."""
    fetched: tuple[Fetched, ...]
    answer: Comparison
    folder: Path
    errands: tuple[Errand, ...]
    entries: tuple[changelog.Entry, ...]
    appended: Path | None


def after_merge(asked: Asked, reader: Reader, where: Where, watch: Watch = lambda _: None) -> Reported:
    """Fetch, land, judge, keep and write down; the errands are values, and nobody sends them here.

    Raises Trouble where a step cannot be done: what earlier steps did stays, and the same call goes on from there.
    """
    fetched = fetch_with_source(asked.link, reader, asked.work / "runs" / str(asked.link.id), watch)
    jobs.ingest([one.folder for one in fetched], where)
    # A run on main that published a sweep measured nothing itself: the sweep speaks for it.
    measured = fetched[-1].run
    question = replace(asked.question, candidate=f"run:{measured.key}")
    answer = jobs.compare(question, where)
    pull = asked.pull or next((one.run.pull_request for one in fetched if one.run.pull_request), None)
    beside = (*(note for one in fetched for note in one.notes), *_head_doubts(measured, pull, reader))
    answer = replace(answer, caveats=tuple(dict.fromkeys((*answer.caveats, *beside))))
    name = jobs.keep_findings(answer, where)
    chosen = facts.select(answer, history=answer.levels)
    errands: tuple[Errand, ...] = (
        *_check(fetched[0].run, answer, chosen, asked),
        *_comment(pull, chosen, asked.lang),
    )
    folder = asked.work / "reports" / re.sub(r"[^\w.-]+", "-", name)
    _write_down(answer, chosen, errands, folder, asked.lang)
    entries = _proposed(answer, texts.Entries("both", pull, _known_keys(fetched[-1].folder), asked.link.repository))
    files.put(folder / "changelog.yaml", changelog.draft(entries))
    appended = _append(asked.changelog, entries)
    return Reported(name, fetched, answer, folder, errands, entries, appended)


def best_of(pull: int, repository: str, reader: Reader) -> RunLink:
    """The run of a pull request that holds the most results, the newest of them: whatever each one concluded.

    Raises Trouble, with what each run lacks, where none holds any.
    """
    ran = {told["id"]: told for sha in reader.pull_commits(pull) for told in reader.runs_of(sha)}
    swept = [parsed(told) for told in ran.values() if told.get("event") == "pull_request"]
    held = [Candidate(run, _at_hand(run.id, reader)) for run in swept]
    choice = best_run(held, max((one.results for one in held), default=0) or 1)
    if choice.chosen is None:
        english = Language("en")
        lacks = "; ".join(f"run {one.run.id}: {english.say(sentence(why))}" for one, why in choice.rejected)
        raise Trouble(f"no run of pull request {pull} holds results ({lacks or 'none ran'}): name one with --run")
    return RunLink(repository, choice.chosen.run.id)


def _at_hand(run: int, reader: Reader) -> tuple[str, ...]:
    return tuple(one.name for one in reader.artifacts(run) if not one.expired)


def _write_down(answer: Comparison, chosen: Facts, errands: Sequence[Errand], folder: Path, lang: str) -> None:
    """The report as files, the errands among them: another job may send these."""
    for name, document in _DOCUMENTS.items():
        files.put(folder / name, render.render(chosen, document, "en" if document == "evidence" else lang))
    files.put(folder / "comparison.json", jsonform.dumps(answer))
    outbox.write(errands, folder / "errands.json")


def _head_doubts(run: Run, pull: int | None, reader: Reader) -> tuple[Caveat, ...]:
    """Whether the measured commit is still the head of its pull request, or at least one of its commits."""
    if pull is None or run.head_sha is None or run.event != "pull_request":
        return ()
    head = reader.pull(pull)["head"]["sha"]
    if head == run.head_sha:
        return ()
    try:
        shas = reader.pull_commits(pull)
    except Incomplete as flaw:
        shas = flaw.seen
    if run.head_sha not in shas:
        return (Caveat.of("head_gone", sha=run.head_sha),)
    return (Caveat.of("head_moved", sha=run.head_sha, head=head, count=len(shas) - 1 - shas.index(run.head_sha)),)


def _comment(pull: int | None, chosen: Facts, lang: str) -> tuple[Comment, ...]:
    """A run that measured nothing says nothing: the verdict that stands in the pull request is of another run."""
    if pull is None or not chosen.is_measured:
        return ()
    return (Comment.of(pull, render.render(chosen, "comment", lang), render.render(chosen, "short", "both")),)


def _check(run: Run, answer: Comparison, chosen: Facts, asked: Asked) -> tuple[CheckRun, ...]:
    if run.head_sha is None:
        return ()
    check = CheckRun.of(
        head=run.head_sha,
        name=CHECK,
        conclusion=ending.conclusion(answer, asked.fail_on),
        title=render.render(chosen, "title", "en").strip()[: outbox.TITLE_LIMIT],
        summary=render.render(chosen, "short", "both"),
        text=render.render(chosen, "check", asked.lang),
    )
    return (check,)


def _known_keys(folder: Path) -> plan.Plan | None:
    """The master configs of the measured commit, where GitHub still shows them."""
    masters = sorted((folder / "configs").glob("*.yaml"))
    return plan.read(masters) if masters else None


def _proposed(answer: Comparison, wanted: texts.Entries) -> tuple[changelog.Entry, ...]:
    """Entries that the findings support; none where no config changed its software, or no config file knows its key."""
    try:
        return texts.entries_of(answer, wanted)
    except Trouble:
        return ()


def _append(path: Path | None, entries: Sequence[changelog.Entry]) -> Path | None:
    """Append what is not there yet, on a branch alone; gives the file where something was asked for."""
    if path is None:
        return None
    check_is_branch(path)
    present = (
        {block.entry.identity for block in changelog.read(changelog.read_bytes(path)).blocks}
        if path.exists()
        else set()
    )
    fresh = [entry for entry in entries if entry.identity not in present]
    if fresh:
        changelog.append_file(path, fresh)
    return path
