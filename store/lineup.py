"""MODELS.md: which scenarios of which model are active, and which are deprecated, as its tables say.

Two tables are read by their heads: scenarios with a status, and models with a prefix, active and deprecated scenarios.
What the prose around them says is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

PLACES = ("MODELS.md", "docs/MODELS.md")


class Standing(StrEnum):
    """Whether a model may be submitted in a scenario. BOUNDED is under a condition that stands in the cell."""

    ACTIVE = "active"
    DEPRECATED = "deprecated"
    BOUNDED = "bounded"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Lineup:
    """Cells of the tables: models by prefix with (active, deprecated), scenarios with their status."""

    models: Mapping[str, tuple[str, str]]
    scenarios: Mapping[str, str]

    def of(self, prefix: str, scenario: str) -> tuple[Standing, str]:
        """How a model stands in a scenario (`8k1k`, `agentic`), and the cell that says so.

        >>> table = Lineup({"m3": ("Agentic coding (MTP only)", "Single-turn 8k1k (#1)")}, {"1k1k": "Deprecated"})
        >>> [table.of("m3", name)[0].value for name in ("8k1k", "agentic", "1k1k", "2k1k")]
        ['deprecated', 'bounded', 'deprecated', 'unknown']
        """
        status = self.scenarios.get(scenario, "")
        if "deprecated" in status.lower():
            return Standing.DEPRECATED, status
        active, gone = self.models.get(prefix, ("", ""))
        if scenario in map(_name, _items(gone)):
            return Standing.DEPRECATED, gone
        for item in _items(active):
            if _name(item) == scenario:
                return (Standing.ACTIVE if _is_plain(item) and _is_whole(active) else Standing.BOUNDED), active
        partly = [cell for cell in (active, gone) if any(_name(item).startswith(scenario) for item in _items(cell))]
        return (Standing.BOUNDED, partly[0]) if partly else (Standing.UNKNOWN, active or gone)


def parse(text: str) -> Lineup | None:
    """The tables of a file; None where neither is there."""
    models: dict[str, tuple[str, str]] = {}
    scenarios: dict[str, str] = {}
    for heads, rows in _tables(text):
        places = {name: place for place, head in enumerate(heads) for name in _HEADS if head.startswith(name)}
        for row in rows:
            if {"prefix", "active", "deprecated"} <= places.keys():
                cells = row[places["active"]], row[places["deprecated"]]
                models |= dict.fromkeys(re.findall(r"`([^`]+)`", row[places["prefix"]]), cells)
            elif {"scenario", "status"} <= places.keys():
                scenarios[_name(row[places["scenario"]])] = row[places["status"]]
    return Lineup(MappingProxyType(models), MappingProxyType(scenarios)) if models else None


_HEADS = ("prefix", "active", "deprecated", "scenario", "status")


def _tables(text: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Heads in lower case and rows as wide as they."""
    for block in re.findall(r"(?:^[ \t]*\|.*\n?)+", text, re.MULTILINE):
        lines = [_cells(line) for line in block.splitlines()]
        if len(lines) > 1 and all(re.fullmatch(r":?-+:?", cell) for cell in lines[1]):
            heads = [head.lower() for head in lines[0]]
            yield heads, [(row + [""] * len(heads))[: len(heads)] for row in lines[2:]]


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").replace("**", "")
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", inner.removesuffix("|"))]


def _items(cell: str) -> list[str]:
    """The parts of a cell between commas and semicolons that stand in no parentheses."""
    return [item.strip() for item in re.split(r"[,;](?![^(]*\))", cell) if item.strip()]


def _name(item: str) -> str:
    """`8k1k` of `Single-turn 8k1k (removed)`, `agentic` of `Agentic coding`; more words stay, and make it another."""
    bare = re.sub(r"\([^)]*\)|\[\^?\w+\]", "", item).strip().lower()
    return re.sub(r"^single-turn\s+|\s+coding\b", "", bare).strip()


def _is_plain(item: str) -> bool:
    """No condition in parentheses behind the scenario."""
    return "(" not in item


def _is_whole(cell: str) -> bool:
    """No condition behind a semicolon that is of all scenarios of the cell; one in parentheses is of its own."""
    return ";" not in re.sub(r"\([^)]*\)", "", cell)
