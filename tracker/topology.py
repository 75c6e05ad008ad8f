"""Which layout of one side stands where which of the other stood: same, renamed, reshaped, new, retired.

Two layouts are never judged as twins unless they are the same one. What is said here tells a reader why a group of
curves has no twins, and tells the frontier what it may count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from store.identity import layout_text
from store.records import Layout, LayoutChange, LayoutKind, Role


@dataclass(frozen=True, slots=True)
class Shape:
    """One layout of one side: what runs, by which recipe, and at which concurrencies it was measured."""

    layout: Layout
    recipe: str | None = None
    """None where nobody knows it, or where it says nothing of the layout (its hash holds the image)."""
    concs: frozenset[int] = frozenset()

    @property
    def name(self) -> str:
        return layout_text(self.layout)


Rule = Callable[[Shape, Shape], bool]


def match(before: Iterable[Shape], after: Iterable[Shape]) -> tuple[LayoutChange, ...]:
    """Every layout of both sides exactly once, in pairs where a rule joins two; the later side's order, then the rest.

    Rules are tried in order over all layouts, so that a closer relation is never lost to a looser one.

    >>> from store.records import Role
    >>> two, one = (Layout(Role(2, 2, True, 3), Role(n, n, True, 16 // n), True) for n in (8, 16))
    >>> [(pair.kind.value, pair.rule) for pair in match([Shape(two)], [Shape(one)])]
    [('reshaped', 'same_gpus_per_role')]
    """
    gone, come = list(before), list(after)
    found: list[tuple[LayoutChange, Shape]] = []
    for rule, (kind, holds) in RULES.items():
        for old, new in _joined(gone, come, holds):
            found.append((LayoutChange(kind, rule, old.layout, new.layout), new))
            gone.remove(old)
            come.remove(new)
    found += [(LayoutChange(LayoutKind.NEW, "no_partner", None, shape.layout), shape) for shape in come]
    pairs = [change for change, _ in sorted(found, key=lambda item: (_KINDS.index(item[0].kind), item[1].name))]
    retired = (LayoutChange(LayoutKind.RETIRED, "no_partner", shape.layout, None) for shape in gone)
    return (*pairs, *sorted(retired, key=lambda change: layout_text(change.before) if change.before else ""))


_KINDS = tuple(LayoutKind)


def _joined(gone: Sequence[Shape], come: Sequence[Shape], holds: Rule) -> Iterator[tuple[Shape, Shape]]:
    """Pairs that a rule joins, the likeliest first: most shared concurrencies, then the nearest size, then by name."""
    fit = [(old, new) for old in gone for new in come if holds(old, new)]
    taken: set[Shape] = set()
    for old, new in sorted(fit, key=_unlikeness):
        if not {old, new} & taken:
            taken |= {old, new}
            yield old, new


def _unlikeness(pair: tuple[Shape, Shape]) -> tuple[int, int, str, str]:
    old, new = pair
    return (-len(old.concs & new.concs), abs(old.layout.gpus - new.layout.gpus), old.name, new.name)


# ---------------------------------------------------------------- rules


def _same(old: Shape, new: Shape) -> bool:
    return old.layout == new.layout and (None in (old.recipe, new.recipe) or old.recipe == new.recipe)


def _other_recipe(old: Shape, new: Shape) -> bool:
    return old.layout == new.layout


def _other_words(old: Shape, new: Shape) -> bool:
    """One deployment in two spellings: told as multinode or not, DEP8 as eight GPUs or as one of eight ranks."""
    return _plain(old.layout) == _plain(new.layout)


def _same_gpus_per_role(old: Shape, new: Shape) -> bool:
    return _alike(old, new) and [role.gpus for role in _roles(old)] == [role.gpus for role in _roles(new)]


def _same_gpus(old: Shape, new: Shape) -> bool:
    return _alike(old, new) and sum(role.gpus for role in _roles(old)) == sum(role.gpus for role in _roles(new))


def _other_ratio(old: Shape, new: Shape) -> bool:
    """The same workers, another number of them for prefill or decode."""
    pairs = list(zip(_roles(old), _roles(new), strict=False))
    workers = [replace(one, workers=1) == replace(other, workers=1) for one, other in pairs]
    return _is_split(old) and _is_split(new) and all(workers)


def _alike(old: Shape, new: Shape) -> bool:
    """Both serve prefill and decode together or apart, with the same kinds of parallelism on each role.

    TP4 with and without expert parallelism on the same four GPUs are two ways to run a model, no reshaping of one.
    """
    return [_ways(role) for role in _roles(old)] == [_ways(role) for role in _roles(new)]


def _ways(role: Role) -> tuple[bool, bool, bool]:
    return (role.ep > 1, role.dp_attention, role.dcp > 1 or role.pcp > 1)


def _roles(shape: Shape) -> list[Role]:
    layout = _plain(shape.layout)
    return [layout.prefill, *([layout.decode] if layout.decode else [])]


def _is_split(shape: Shape) -> bool:
    return shape.layout.decode is not None


def _plain(layout: Layout) -> Layout:
    return Layout(_plain_role(layout.prefill), _plain_role(layout.decode) if layout.decode else None)


def _plain_role(role: Role) -> Role:
    """Where attention is data parallel the experts span all GPUs: `tp1-ep8-dpa` and `tp8-ep8-dpa` are one thing."""
    return replace(role, hardware=None, tp=max(role.tp, role.ep) if role.dp_attention else role.tp)


RULES: Mapping[str, tuple[LayoutKind, Rule]] = MappingProxyType(
    {
        "same": (LayoutKind.SAME, _same),
        "other_recipe": (LayoutKind.RENAMED, _other_recipe),
        "other_words": (LayoutKind.RENAMED, _other_words),
        "same_gpus_per_role": (LayoutKind.RESHAPED, _same_gpus_per_role),
        "same_gpus": (LayoutKind.RESHAPED, _same_gpus),
        "other_ratio": (LayoutKind.RESHAPED, _other_ratio),
    }
)
"""Code of the rule -> what it decides and when it holds, the closest relation first."""
