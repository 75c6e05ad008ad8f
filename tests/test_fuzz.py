"""The corpus of every fuzz target holds its property; a short search without a guide finds nothing either."""

from __future__ import annotations

import random
import zlib

import pytest

from tests.fuzz import mutate
from tests.fuzz.__main__ import breaks, minimised
from tests.fuzz.target import CORPUS
from tests.fuzz.targets import TARGETS

INPUTS = [(name, path.name) for name, target in TARGETS.items() for path in target.inputs()]
CHANGES = 40
"""Changed inputs a target: what a search does in a second, a campaign does in minutes (`python -m tests.fuzz`)."""


def test_every_target_has_a_corpus_and_every_corpus_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)
    assert all(target.inputs() for target in TARGETS.values())
    assert sum(path.stat().st_size for target in TARGETS.values() for path in target.inputs()) < 2 * 1024**2


@pytest.mark.parametrize(("name", "file"), INPUTS)
def test_an_input_of_the_corpus_holds_the_property(name: str, file: str) -> None:
    TARGETS[name].run((TARGETS[name].corpus / file).read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_changes_without_a_guide_hold_the_property(name: str) -> None:
    target = TARGETS[name]
    rng = random.Random(zlib.crc32(name.encode()))
    inputs = [data for path in target.inputs() if len(data := path.read_bytes()) <= target.longest]
    for _ in range(CHANGES):
        data = rng.choice(inputs)
        changed = mutate.json_value(data, rng) if target.is_json else None
        target.run(changed if changed is not None else mutate.blind(data, target.words, rng))


def test_what_breaks_a_property_is_made_small() -> None:
    def run(data: bytes) -> None:
        if b"x" in data and b"y" in data:
            raise ValueError(data)

    assert breaks(run, b"a x b y c") == "ValueError"
    assert breaks(run, b"x alone") == ""
    assert minimised(b"aaaa x bbbbbbb y cc", lambda data: breaks(run, data)) == b"xy"
