"""The text of the questions and of the schema steps: SQL files, with a few parts that only Python knows put in."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent


@cache
def schema_steps() -> tuple[tuple[int, str], ...]:
    """The numbered steps that make the tables, oldest first."""
    paths = sorted((_HERE / "schema").glob("[0-9]*.sql"))
    return tuple((int(path.name.partition("_")[0]), path.read_text(encoding="utf-8")) for path in paths)


@cache
def _template(name: str) -> str:
    return (_HERE / "queries" / f"{name}.sql").read_text(encoding="utf-8")


def question(name: str, **parts: str) -> str:
    """The text of a question; a part stands where the file says `/* part */`. Parts are ours, nobody's input."""
    sql = _template(name)
    for part, text in parts.items():
        sql = sql.replace(f"/* {part} */", text)
    return sql


def quoted(name: str) -> str:
    """A column's name, which may hold a dot (`p99.9_ttft`)."""
    return f'"{name}"'


def escaped(path: Path | str) -> str:
    """A path inside an SQL text."""
    return str(path).replace("'", "''")


def from_extra(name: str) -> str:
    """The value of a metric among the extra ones of a row."""
    return f"TRY_CAST(json_extract_string(extra, '$.\"{name}\"') AS DOUBLE)"


def listed(paths: Sequence[str]) -> str:
    """Paths as an SQL list."""
    return "[" + ", ".join(f"'{escaped(path)}'" for path in paths) + "]"


def incoming_column(name: str, in_files: bool) -> str:
    """A metric as files of any version hold it: those older than the metric have it among the extra ones."""
    value = f"coalesce({quoted(name)}, {from_extra(name)})" if in_files else from_extra(name)
    return f"{value} AS {quoted(name)}"
