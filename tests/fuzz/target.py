"""What a target is, and where its corpus lies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).resolve().parents[1] / "data" / "fuzz"


@dataclass(frozen=True, slots=True)
class Target:
    """One way into the program: `run` takes any bytes, and raises only where the property does not hold."""

    name: str
    property: str
    run: Callable[[bytes], None]
    instrument: tuple[str, ...]
    """Modules whose branches guide the search."""
    words: tuple[str, ...] = ()
    """What the format is made of, for a search that cannot guess it."""
    longest: int = 4096
    """Bytes of an input."""
    is_json: bool = False
    """True where inputs are changed as JSON values, not only as bytes."""

    @property
    def corpus(self) -> Path:
        return CORPUS / self.name

    def inputs(self) -> list[Path]:
        """The committed inputs, in order of their names."""
        return sorted(path for path in self.corpus.iterdir() if path.is_file())


def text_of(data: bytes) -> str:
    """Any bytes as a text: UTF-8 where they are, else as they stand; half surrogates can come too."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("latin-1")
