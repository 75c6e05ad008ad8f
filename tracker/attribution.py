"""What differs between two sides, and the class of it: image, recipe, topology, harness, pool, unknown.

The one place that knows these classes. It says what differs and what moved together with it, never why.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from store.identity import layout_text
from store.images import Sameness
from store.records import Attribution, Caveat, Controls, Difference, Differs, LayoutChange, LayoutKind
from tracker.matrix import CurveRun, same_recipe, same_software

SETTINGS: Mapping[str, Differs] = MappingProxyType(
    {
        "client_image": Differs.HARNESS,
        "driver_version": Differs.POOL,
        "engine_patch": Differs.IMAGE,
        "kv_offload_backend": Differs.RECIPE,
        "kv_p2p_transfer": Differs.RECIPE,
        "router": Differs.RECIPE,
    }
)
"""The class of what a row or a run names beside image and recipe. A new one is a new row; any other is the recipe's."""

_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
_SHOWN = 12


def software(before: CurveRun, after: CurveRun) -> tuple[Difference, ...]:
    """Image, recipe and pool of two runs of a curve, as far as they differ or are not known to be the same."""
    same = same_software(before.image, after.image)
    return (*_image(before, after, same), *_recipe(before, after, same), *_pool(before, after))


def _image(before: CurveRun, after: CurveRun, same: Sameness) -> Iterator[Difference]:
    if same is not Sameness.SAME:
        kind = Differs.IMAGE if same is Sameness.CHANGED else Differs.UNKNOWN
        yield Difference("image", before.image, after.image, kind)


def _recipe(before: CurveRun, after: CurveRun, same: Sameness) -> Iterator[Difference]:
    """A fingerprint hashes the image's name with the recipe: under two names it tells nothing of the recipe."""
    if same_recipe(before, after):
        return
    old, new = _recipes(before, after), _recipes(after, before)
    if not old or not new:
        if same is not Sameness.CHANGED:
            yield Difference("recipe", _named(old), _named(new), Differs.UNKNOWN)
    elif _name(before.image) == _name(after.image) or not all(map(_FINGERPRINT.fullmatch, {*old, *new})):
        yield Difference("recipe", _named(old), _named(new), Differs.RECIPE)


def _name(image: str | None) -> str:
    return (image or "").partition("@")[0]


def _recipes(own: CurveRun, other: CurveRun) -> list[str]:
    """The recipes of a run, of the points that the other one measured too where its points have several."""
    shared = {series for series, _ in other.recipes}
    found = {recipe for series, recipe in own.recipes if series in shared} or {own.recipe}
    return sorted(recipe for recipe in found if recipe)


def _named(recipes: Sequence[str]) -> str | None:
    return ", ".join(one[:_SHOWN] if _FINGERPRINT.fullmatch(one) else one for one in recipes) or None


def _pool(before: CurveRun, after: CurveRun) -> Iterator[Difference]:
    if before.pool and after.pool and before.pool != after.pool:
        yield Difference("pool", before.pool, after.pool, Differs.POOL)


def layouts(changes: Iterable[LayoutChange]) -> Iterator[Difference]:
    """Layouts that one side alone has; other words for one layout are no difference."""
    for one in changes:
        if one.kind in (LayoutKind.RESHAPED, LayoutKind.NEW, LayoutKind.RETIRED):
            before, after = (layout_text(layout) if layout else None for layout in (one.before, one.after))
            yield Difference("layout", before, after, Differs.TOPOLOGY)


def events(names: Iterable[str]) -> Iterator[Difference]:
    """Changes of the harness that lie between the sides."""
    return (Difference("harness_event", None, None, Differs.HARNESS, name) for name in names)


def told(caveats: Iterable[Caveat]) -> Iterator[Difference]:
    """What other rules said of the two sides: settings of the rows, and events of the harness that concern them."""
    for one in caveats:
        said = {name: str(value) for name, value in one.values}
        if one.code == "harness_event":
            yield from events([said["event"]])
        elif one.code == "setting_changed":
            kind = SETTINGS.get(said["field"], Differs.RECIPE)
            yield Difference(said["field"], said["baseline"], said["candidate"], kind)


def attribution(differences: Iterable[Difference], controls: Controls = Controls()) -> Attribution:
    """The class of some differences: the first that differs; the pool where nothing does and most controls moved too.

    What is not known stands before all: where the image is not known, nobody can say that the recipe differs alone.
    """
    found = tuple(dict.fromkeys(differences))
    kinds = {one.kind for one in found}
    alike = Differs.POOL if 2 * controls.moved > controls.total else Differs.UNKNOWN
    return Attribution(next((kind for kind in Differs if kind in kinds), alike), found, controls)
