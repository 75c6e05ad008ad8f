"""Answers question by question that give the scores of the story: `samples_gsm8k_<ISO>.jsonl` of lm-eval-harness.

Every question has a difficulty of its own, the same for all runs; a run adds a little luck to each. The easiest as a
run sees them are right, as many as its score says: so reruns disagree about the questions near the border alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tracker.simulate.files import QUESTIONS, digest

CONFIGS = ("dsr1-fp4-mi355x-atom", "qwen3.5-fp8-mi355x-sglang")
"""Whose evals keep their answers: one that loses accuracy in the last night, and one whose image is a night old."""

_LUCK = 0.26
"""Scatter of a run's view of a question, where questions scatter by 1: some 42 of 1,319 answers flip.

As many as the scatter of the story's scores asks for.
"""

Bits = npt.NDArray[np.bool_]


def answered(flexible: float, strict: float, seed: int) -> tuple[Bits, Bits]:
    """Which questions a run answers right, read flexibly and strictly: exactly as many as its scores say."""
    questions, run = np.random.default_rng(QUESTIONS), np.random.default_rng(seed)
    ease = questions.standard_normal(QUESTIONS) + _LUCK * run.standard_normal(QUESTIONS)
    form = questions.standard_normal(QUESTIONS) + _LUCK * run.standard_normal(QUESTIONS)
    right = _first(ease, round(flexible * QUESTIONS))
    # An answer in the right form is nearly always one that the flexible reading takes as well.
    return right, _first(np.where(right, form + 10, ease), round(strict * QUESTIONS))


def _first(order: npt.NDArray[np.float64], number: int) -> Bits:
    chosen = np.zeros(len(order), dtype=bool)
    chosen[np.argsort(-order)[:number]] = True
    return chosen


def lines(flexible: float, strict: float, seed: int) -> Iterator[str]:
    """The lines of the file, one per question and filter; the texts that a real one has beside them are left out."""
    loose, tight = answered(flexible, strict, seed)
    for question in range(QUESTIONS):
        told = {"prompt_hash": digest("question", question), "target_hash": digest("answer", question)}
        for name, bits in (("strict-match", tight), ("flexible-extract", loose)):
            row = {"doc_id": question, "filter": name, "metrics": ["exact_match"], "exact_match": float(bits[question])}
            yield json.dumps({**row, **told})
