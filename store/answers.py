"""Right and wrong per question of an eval, small: 1,319 questions are 220 characters a reading.

A reading may be set against another run's where it fits the score that it stands beside: the same number of questions,
the same number of right ones, and questions that are known by their hashes.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from store.records import Caveat, Score

Bits: TypeAlias = npt.NDArray[np.bool_]

READINGS: Final = {"strict": "em_strict", "flexible": "em_flexible", "score": "score"}
"""Field of `Answers` and of `Score` -> the metric that it is."""


def pack(right: Sequence[bool]) -> str:
    """One bit per question as base64.

    >>> pack([True, False, True]), len(pack([True] * 1319))
    ('oA==', 220)
    """
    return base64.b64encode(np.packbits(np.array(right, dtype=np.bool_)).tobytes()).decode()


def unpack(text: str, n: int) -> Bits:
    """The bits that `pack` wrote; ValueError where the text holds another number of questions.

    >>> unpack("oA==", 3).tolist()
    [True, False, True]
    """
    octets = np.frombuffer(base64.b64decode(text, validate=True), dtype=np.uint8)
    if len(octets) != (n + 7) // 8:
        raise ValueError(f"{len(octets)} bytes are no answers to {n} questions")
    return np.unpackbits(octets, count=n).astype(np.bool_)


def ranges(ids: Iterable[int]) -> str:
    """Rising numbers as text.

    >>> ranges([0, 1, 2, 5, 7, 8])
    '0-2,5,7-8'
    """
    runs = [[place[1] for place in run] for _, run in groupby(enumerate(ids), key=lambda place: place[1] - place[0])]
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def numbers(text: str) -> Iterator[int]:
    """The numbers that `ranges` wrote.

    >>> list(numbers("0-2,5"))
    [0, 1, 2, 5]
    """
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def doubt(score: Score, reading: str) -> Caveat | None:
    """Why a reading of a score must not be set against another run's; None where it may, or where there is none."""
    answers = score.answers
    text = getattr(answers, reading, None)
    if answers is None or text is None:
        return None
    metric, value = READINGS[reading], getattr(score, reading)
    try:
        right = int(unpack(text, answers.n).sum())
    except ValueError:
        return Caveat.of("answers_broken", metric=metric)
    if score.n is not None and score.n != answers.n:
        return Caveat.of("answers_count", metric=metric, have=answers.n, n=score.n)
    if value is None or not math.isfinite(value) or abs(value * answers.n - right) >= 0.5:
        return Caveat.of("answers_disagree", metric=metric, counted=right / answers.n, score=value)
    if not answers.questions:
        return Caveat.of("answers_unidentified", metric=metric)
    return None


def right(score: Score, reading: str) -> Bits | None:
    """Which questions were answered right, in the order of their ids; None where nothing sound says so."""
    text = getattr(score.answers, reading, None)
    if score.answers is None or text is None or doubt(score, reading):
        return None
    return unpack(text, score.answers.n)
