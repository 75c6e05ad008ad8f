"""Answers question by question as the public site has them: pages of `/api/v1/eval-samples`, rows of its database.

Both belong to a row of `/api/v1/evaluations` by its `id`. A row of the database names it (`eval_result_id`); a page of
the API does not, so the file's name must: `eval-samples-7439.json`, `eval-samples-7439-500.json` for a further page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from store import answers
from store.readers.document import Document
from store.readers.samples import Question, add, collected, joined
from store.readers.scores import reading_of
from store.readers.values import Flaw, Row, block, shown
from store.records import Answers, Batch, Caveat, Score

_NAME = re.compile(r"eval[-_]samples\D{0,9}(\d{1,18})")
_PASSED = "passed"
"""The reading that the site counts by, of which it is not said whether it is the strict or the flexible one."""


def fits(document: Document) -> bool:
    """A page of the API, or rows of the table `eval_samples`."""
    value = document.value
    if isinstance(value, dict):
        return isinstance(value.get("samples"), list) and "passedTotal" in value
    first = next((row for row in value if isinstance(row, dict)), {}) if isinstance(value, list) else {}
    return {"doc_id", "passed", "eval_result_id"} <= first.keys()


class Pages:
    """Questions by the id of their eval result, gathered over files, since a page has at most 500 of them."""

    def __init__(self) -> None:
        self._found: dict[str, dict[int, Question]] = {}
        self._places: dict[str, Document] = {}

    def take(self, document: Document) -> Iterator[Batch]:
        """Keep the rows of a file; yields those that cannot be used as rejections without their texts."""
        value = document.value
        named = _NAME.search(document.name)
        told = value.get("eval_result_id", named[1] if named else None) if isinstance(value, dict) else None
        rows = value["samples"] if isinstance(value, dict) else value
        for index, row in enumerate(rows if isinstance(rows, list) else ()):
            try:
                self._add(document, row, told)
            except Flaw as flaw:
                yield document.rejected(flaw.field, flaw.reason, flaw.detail, index=index)

    def _add(self, document: Document, row: object, told: object) -> None:
        if not isinstance(row, dict):
            raise Flaw("", "not_an_object", type(row).__name__)
        result = row.get("eval_result_id", told)
        if result is None or isinstance(result, bool) or not str(result).isdigit():
            raise Flaw("eval_result_id", "missing_field" if result is None else "bad_value", shown(result))
        plain = {**row, "doc_id": row.get("doc_id", row.get("docId"))}
        questions = self._found.setdefault(str(result), {})
        self._places.setdefault(str(result), document)
        for reading, name, value in _readings(plain):
            add(questions, plain, reading, name, value)

    def attached(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The batches with the answers at the scores that they belong to; what belongs to none is a rejection."""
        for batch in batches:
            yield replace(batch, scores=tuple(map(self._joined, batch.scores))) if self._found else batch
        for result, document in self._places.items():
            if result in self._found:
                yield document.rejected("eval_result_id", "samples_without_result", result)

    def _joined(self, score: Score) -> Score:
        result = _id(score)
        questions = self._found.pop(result, None) if result else None
        if questions is None:
            return score
        found, caveats = collected(questions)
        if found is None:
            return score
        known = {question.right.get(_PASSED) for question in questions.values()}
        if None not in known:
            found, more = _placed(score, found, [questions[one].right[_PASSED] for one in sorted(questions)])
            caveats = (*caveats, *more)
        return joined(score, found, caveats)


def _readings(row: Row) -> Iterator[tuple[str, str, object]]:
    """What a row says of its question: the metrics that name their filter, else only that it passed."""
    named = {name: value for name, value in block(row, "metrics").items() if reading_of(name) != "score"}
    for name, value in named.items():
        if not name.endswith("_stderr"):
            yield reading_of(name), name, value
    if not named:
        yield _PASSED, _PASSED, row.get(_PASSED)


def _placed(score: Score, found: Answers, right: list[bool]) -> tuple[Answers, tuple[Caveat, ...]]:
    """Answers of the reading that alone fits their number: where both do, which one it is would be a guess."""
    told: Mapping[str, float | None] = {"strict": score.strict, "flexible": score.flexible, "score": score.score}
    given = {name: value for name, value in told.items() if value is not None}
    if len(given) > 1:
        given.pop("score", None)
    share = float(np.mean(right))
    fitting = [name for name, value in given.items() if abs(value - share) * len(right) < 0.5]
    if len(fitting) != 1:
        return found, (Caveat.of("answers_ambiguous", counted=share),)
    bits = {name: answers.pack(right) if name in fitting else None for name in told}
    return Answers(found.questions, found.ids, found.n, bits["strict"], bits["flexible"], bits["score"]), ()


def _id(score: Score) -> str | None:
    try:
        row = json.loads(score.raw) if score.raw else None
    except ValueError:
        return None
    value = row.get("id") if isinstance(row, dict) else None
    return str(value) if isinstance(value, str | int) else None
