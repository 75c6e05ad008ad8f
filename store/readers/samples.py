"""Answers question by question: the harness's `samples_<task>_<ISO>[_conc<N>].jsonl`, and the public API's samples.

A file has a line per question and filter and may be larger than memory, so it is read line by line. Kept are the
number of each question, whether it was answered right under each filter, and one hash over all questions; texts of
prompts and answers are read past. A line that cannot be used is a rejection that quotes none of its texts.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from store import answers, limits
from store.readers.decode import Unreadable, decode, text_of
from store.readers.document import Document
from store.readers.scores import reading_of
from store.readers.values import Flaw, Row, number, shown
from store.records import Answers, Batch, Caveat, Place, Rejection, Score

TOLD = 50
"""Rejected lines that are told one by one; the rest of a file is one more rejection with their number."""

_NAME = re.compile(
    r"samples?_(?P<task>.+?)(?:_(?P<time>\d{4}-\d{2}-\d{2}T[\d.:-]+))?(?:_conc(?P<conc>\d{1,9})(?:_\d+)?)?\.jsonl",
    re.IGNORECASE,
)
_RESULTS_TIME = re.compile(r"results_(\d{4}-\d{2}-\d{2}T[\d.:-]+?)(?:_conc\d+(?:_\d+)?)?\.json")


@dataclass(slots=True)
class Question:
    """What is held of a question while its file is read: the hash of what was asked, and right or wrong by reading."""

    asked: bytes
    right: dict[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sheet:
    """The answers of one file, before it is known which score they belong to."""

    document: Document
    folder: str
    task: str
    time: str
    conc: int | None
    answers: Answers | None
    caveats: tuple[Caveat, ...] = ()

    def rejected(self, reason: str) -> Batch:
        """The file as one rejection."""
        return self.document.rejected("", reason, self.document.name)


def is_samples(name: str) -> bool:
    """True of the name of a file of samples.

    >>> [is_samples(f"{name}.jsonl") for name in ("samples_gsm8k_2026-07-05T03-11-20.123456_conc64", "predictions")]
    [True, False]
    """
    return _NAME.fullmatch(name) is not None


def sheet(document: Document, lines: Iterable[bytes | Unreadable]) -> tuple[Sheet, Batch]:
    """The answers of a file, and a batch with its rejected lines."""
    named = _NAME.fullmatch(document.name)
    questions: dict[int, Question] = {}
    refused: list[Flaw] = []
    count = 0
    for index, line in enumerate(lines):
        try:
            _take(questions, line)
        except Flaw as flaw:
            count += 1
            if len(refused) < TOLD:
                refused.append(Flaw(f"{index} {flaw.field}", flaw.reason, flaw.detail))
    found, caveats = collected(questions)
    made = Sheet(
        document=document,
        folder=_folder(document.file),
        task=named["task"].lower() if named else "",
        time=named["time"] or "" if named else "",
        conc=int(named["conc"]) if named and named["conc"] else None,
        answers=found,
        caveats=caveats,
    )
    return made, Batch(document.run, rejections=tuple(_rejections(document, refused, count)))


def _rejections(document: Document, refused: Sequence[Flaw], count: int) -> Iterator[Rejection]:
    for flaw in refused:
        index, _, name = flaw.field.partition(" ")
        place = Place(document.file, int(index), document.created_at)
        yield Rejection(place, name, flaw.reason, flaw.detail, "", document.run.key)
    if count > len(refused):
        place = Place(document.file, 0, document.created_at)
        yield Rejection(place, "", "further_lines", str(count - len(refused)), "", document.run.key)


def _take(questions: dict[int, Question], line: bytes | Unreadable) -> None:
    """Add a line to its question; `Flaw` where it cannot be used."""
    if isinstance(line, bytes) and not line.strip():
        return
    row = _row(line)
    if isinstance(row, Unreadable):
        raise Flaw("", row.reason, row.detail)
    if not isinstance(row, dict):
        raise Flaw("", "not_an_object", type(row).__name__)
    add(questions, row, reading_of(str(row.get("filter") or "none")), *verdict_of(row))


def reduced(lines: Iterable[bytes | Unreadable]) -> Iterator[bytes]:
    """Each line with what is read of it and without its texts: what a fetch lays down, a twentieth of the size.

    A line that cannot be read stays as one that says why.
    """
    for line in lines:
        if isinstance(line, bytes) and not line.strip():
            continue
        row = _row(line)
        if isinstance(row, dict):
            kept = _reduced(row)
        else:
            kept = {"unreadable": f"{row.reason}: {row.detail}" if isinstance(row, Unreadable) else type(row).__name__}
        yield text_of(kept).encode() + b"\n"


def _row(line: bytes | Unreadable) -> object:
    """What a line holds, or why it cannot be read; the reason quotes nothing of it."""
    if isinstance(line, Unreadable):
        return line
    try:
        return decode(line).value
    except Unreadable as flaw:
        return Unreadable(flaw.reason, flaw.detail.partition(":")[0][:80])


def _reduced(row: Row) -> Row:
    kept = {key: row[key] for key in ("doc_id", "filter") if key in row}
    hashes = {key: said for key, said in zip(("prompt_hash", "target_hash"), _hashes(row), strict=True) if said}
    try:
        name, value = verdict_of(row)
    except Flaw:
        return {**kept, **hashes}
    # A value that is neither is written as its name, which no reading takes for right or wrong.
    plain = value if isinstance(value, bool) or number(value) in (0.0, 1.0) else shown(value)
    return {**kept, name: plain, "metrics": [name], **hashes}


def add(questions: dict[int, Question], row: Row, reading: str, name: str, value: object) -> None:
    """Keep that a question was answered right or wrong; the same said twice is a flaw, and two answers are none."""
    number_of = _id(row)
    right = number(value) if not isinstance(value, bool) else float(value)
    if right not in (0.0, 1.0):
        raise Flaw(name, "bad_value", shown(value))
    asked = _asked(row)
    held = questions.get(number_of)
    if held is None:
        if len(questions) >= limits.SAMPLES_QUESTIONS:
            raise Flaw("doc_id", "too_many_questions", str(limits.SAMPLES_QUESTIONS))
        held = questions[number_of] = Question(asked)
    if reading in held.right or held.asked != asked:
        if held.asked != asked or held.right[reading] != bool(right):
            # Which of the two is true is not known: the question counts as unanswered, so that no count will fit.
            held.right = {}
            held.asked = b""
        raise Flaw("doc_id", "duplicate_question", str(number_of))
    held.right[reading] = bool(right)


def verdict_of(row: Row) -> tuple[str, object]:
    """The field of a line that says right or wrong, and its value."""
    told = row.get("metrics")
    named = [name for name in told if isinstance(name, str)] if isinstance(told, list) else []
    name = next((name for name in ("exact_match", "acc", *named) if name in row), "")
    if not name:
        raise Flaw("exact_match", "missing_field")
    return name, row[name]


def _id(row: Row) -> int:
    value = row.get("doc_id")
    if type(value) is not int or not 0 <= value < 2**31:
        raise Flaw("doc_id", "missing_field" if value is None else "bad_value", shown(value))
    return value


def _asked(row: Row) -> bytes:
    """Hash of what was asked and what was wanted; empty where the line tells neither hashes nor texts of both.

    The harness's own hashes are SHA-256 of the text of the prompt and of `str(target)`: made from the texts where an
    older harness, or the API, has only these.
    """
    prompt, target = _hashes(row)
    return hashlib.sha256(f"{prompt} {target}".encode("utf-8", "replace")).digest() if prompt and target else b""


def _hashes(row: Row) -> tuple[str, str]:
    told = row.get("prompt_hash"), row.get("target_hash")
    made = _sha(_prompt(row)), _sha(row.get("target"))
    prompt, target = (said if isinstance(said, str) and said else own for said, own in zip(told, made, strict=True))
    return prompt, target


def _prompt(row: Row) -> object:
    """The text of the first request: of the API a field of its own, of the harness in one of two nestings."""
    if row.get("prompt") is not None:
        return row["prompt"]
    told = row.get("arguments")
    for key in ("gen_args_0", "arg_0"):
        told = told.get(key) if isinstance(told, dict) else told
    while isinstance(told, list) and told:
        told = told[0]
    return told


def _sha(text: object) -> str:
    known = isinstance(text, str | int | float) and not isinstance(text, bool)
    return hashlib.sha256(str(text).encode("utf-8", "replace")).hexdigest() if known else ""


def collected(questions: Mapping[int, Question]) -> tuple[Answers | None, tuple[Caveat, ...]]:
    """The answers of all questions; a reading that does not cover all of them is left out and told."""
    if not questions:
        return None, ()
    ids = sorted(questions)
    covered = Counter(reading for question in questions.values() for reading in question.right)
    whole = {
        reading: answers.pack([questions[one].right[reading] for one in ids])
        for reading in answers.READINGS
        if covered[reading] == len(ids)
    }
    partly = [
        Caveat.of("answers_incomplete", metric=answers.READINGS[reading], have=have, of=len(ids))
        for reading, have in covered.items()
        if have < len(ids) and reading in answers.READINGS
    ]
    return Answers(_identity(questions, ids), answers.ranges(ids), len(ids), **whole), tuple(partly)


def _identity(questions: Mapping[int, Question], ids: Sequence[int]) -> str:
    digest = hashlib.sha256()
    for one in ids:
        if not questions[one].asked:
            return ""
        digest.update(one.to_bytes(8, "big") + questions[one].asked)
    return digest.hexdigest()[:32]


def _folder(file: str) -> str:
    return file[: max(file.rfind("/"), file.rfind("!")) + 1]


def attached(batches: Sequence[Batch], sheets: Sequence[Sheet]) -> Iterator[Batch]:
    """The batches with each file of answers at the score of its own folder, task and concurrency.

    The time in the names decides between several; a file that belongs to no score is a rejection.
    """
    if not sheets:
        yield from batches
        return
    by_folder: defaultdict[str, list[Sheet]] = defaultdict(list)
    for one in sheets:
        by_folder[one.folder].append(one)
    used: set[int] = set()
    for batch in batches:
        rivals = Counter(_home(score) for score in batch.scores)
        scores = tuple(_with_answers(score, by_folder, rivals[_home(score)], used) for score in batch.scores)
        yield replace(batch, scores=scores)
    for one in sheets:
        if id(one) not in used:
            yield one.rejected("samples_without_result")


def _home(score: Score) -> tuple[str, str]:
    return _folder(score.place.file), score.task


def _with_answers(score: Score, by_folder: Mapping[str, Sequence[Sheet]], rivals: int, used: set[int]) -> Score:
    folder, task = _home(score)
    here = [one for one in by_folder.get(folder, ()) if one.task == task and one.conc in (None, score.series.conc)]
    found = _RESULTS_TIME.fullmatch(score.place.file.removeprefix(folder))
    same = [one for one in here if found and one.time == found[1]]
    chosen = same or [one for one in here if rivals == 1 or one.conc is not None]
    if len(chosen) != 1:
        return score
    used.add(id(chosen[0]))
    return joined(score, chosen[0].answers, chosen[0].caveats)


def joined(score: Score, told: Answers | None, caveats: Iterable[Caveat] = ()) -> Score:
    """A score with its answers; what does not fit is kept all the same, with the reason why it is not to be used."""
    whole = replace(score, answers=told)
    doubts = [found for reading in answers.READINGS if (found := answers.doubt(whole, reading))]
    return replace(whole, caveats=(*score.caveats, *caveats, *doubts))
