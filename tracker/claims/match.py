"""Does a measured series belong to what a claim speaks about?"""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TypeVar

from store import identity
from store.records import Layout, Role, Series
from tracker.claims.records import Binding

_T = TypeVar("_T")


def matches(binding: Binding, series: Series, config: str = "") -> bool:
    """True when nothing that the claim says excludes the series; what it leaves unsaid excludes nothing.

    >>> from store.records import Layout, Role
    >>> h200 = Series("dsr1", "h200", "sglang", "fp8", "none", "single_turn", 8192, 1024, False, Layout(Role(8)), 64)
    >>> [matches(Binding(sequences=(text,)), h200) for text in ("8192/1024", "8192/?", "1024/1024")]
    [True, True, False]
    """
    return (
        _any(binding.configs, lambda key: fnmatchcase(config or identity.config_key(series), key))
        and _any(binding.models, lambda word: word == series.model)
        and _any(binding.gpus, lambda word: word == series.gpu)
        and _any(binding.frameworks, lambda word: word == series.framework or word in series.framework.split("-"))
        and _any(binding.precisions, lambda word: word == series.precision)
        and _any(binding.sequences, lambda text: _is_sequence(text, series))
        and _any(binding.concurrency, lambda span: _is_within(span, series.conc))
        and _any(binding.layouts, lambda word: is_layout(word, series.layout))
    )


def _any(said: tuple[_T, ...], holds: Callable[[_T], bool]) -> bool:
    return not said or any(holds(word) for word in said)


def _is_sequence(text: str, series: Series) -> bool:
    return fnmatchcase(identity.sequence_text(series), text.replace("?", "*"))


def _is_within(span: tuple[int, int | None], conc: int | None) -> bool:
    low, high = span
    return conc is None or (low <= conc and (high is None or conc <= high))


_WORKERS = re.compile(r"(\d+)P/?(\d+)D")
_PARALLEL = re.compile(r"(TEP|DEP|TP|EP|DP|PP)(\d+)")


def is_layout(word: str, layout: Layout) -> bool:
    """`TP4`, `TP8/EP8`, `DEP16`, `1P2D`: every part must be found in one role of the deployment.

    >>> from store.records import Layout, Role
    >>> [is_layout(word, Layout(Role(8, ep=8))) for word in ("TP8", "TP8/EP8", "TEP8", "DEP8", "TP4")]
    [True, True, True, False, False]
    """
    workers = _WORKERS.fullmatch(word)
    if workers:
        return layout.decode is not None and (layout.prefill.workers, layout.decode.workers) == tuple(
            map(int, workers.groups())
        )
    roles = [role for role in (layout.prefill, layout.decode) if role is not None]
    return all(any(_HOLDS[kind](role, int(size)) for role in roles) for kind, size in _PARALLEL.findall(word))


_HOLDS: dict[str, Callable[[Role, int], bool]] = {
    "TP": lambda role, size: role.tp == size,
    "EP": lambda role, size: role.ep == size,
    "PP": lambda role, size: role.pp == size,
    "DP": lambda role, size: role.dp_attention or role.workers == size,
    "TEP": lambda role, size: role.ep == size and not role.dp_attention,
    "DEP": lambda role, size: role.ep == size and role.dp_attention,
}
