"""Rows about the changelog entries: which keys they name, what they say of images, routers, links, and the history."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from store import images, yamltext
from store.checks import Check, Proof, State
from store.plan import Config
from store.records import ChangelogEntry, Value
from tracker.evidence.inputs import Inputs, not_applicable, not_known, recipe_names
from tracker.provenance import installed_version, router_differs

SHOWN = 8
_SCRIPTS = re.compile(r"(?:^|/)benchmarks/.*\.(?:sh|py|ya?ml)$")
# Possessive: a long word of digits would else be tried at each of them.
_TOKEN = r"[`'\"]?(?=[\w./:@#+-]*?\d)(?P<{}>[\w./:@#+-]++)[`'\"]?"
_FROM_TO = re.compile(
    rf"\bfrom\s+{_TOKEN.format('old')}(?:\s*\([^()]*\))?\s+to\s+{_TOKEN.format('new')}", re.IGNORECASE
)
_VERSION = re.compile(r"\d+\.\d+|[:@]|\d{6,}|[0-9a-f]{7,}")


def _capped(proof: list[Proof]) -> tuple[Proof, ...]:
    more = (Proof.of("more", count=len(proof) - SHOWN),) if len(proof) > SHOWN else ()
    return (*proof[:SHOWN], *more)


def _untold(inputs: Inputs, name: str) -> Check | None:
    for part in ("changelog", "configs", "configs_before"):
        if proof := inputs.unknown(part):
            return not_known(None, name, proof)
    return None


# --- keys ---------------------------------------------------------------------------------------------------------


def keys(inputs: Inputs) -> Check:
    """The keys of the new entries are those whose master entry or recipe the pull request changes."""
    if untold := _untold(inputs, "changelog_keys"):
        return untold
    if inputs.changes is None:
        return not_known(None, "changelog_keys", inputs.unknown("files"))
    changed = {**dict.fromkeys(inputs.changed_keys, "config"), **_by_recipe(inputs)}
    asked = set(inputs.asked_keys)
    if not changed and not asked:
        return not_applicable(None, "changelog_keys", Proof.of("no_configs_concerned"))
    lacking = [Proof.of("key_not_listed", key=key, by=by) for key, by in changed.items() if key not in asked]
    scripts = _unassigned(inputs)
    only = [Proof.of("key_unchanged", key=key) for key in inputs.asked_keys if key not in changed]
    open_scripts = [Proof.of("script_unassigned", inputs.blob(path), path=path) for path in scripts]
    if lacking:
        return Check(None, "changelog_keys", State.DOES_NOT_HOLD, _capped([*lacking, *only]))
    if scripts:
        return not_known(None, "changelog_keys", *_capped([*open_scripts, *only]))
    same = Proof.of("keys_same", count=len(asked), keys=", ".join(inputs.asked_keys[:SHOWN]))
    return Check(None, "changelog_keys", State.FLAGGED if only else State.HOLDS, (same, *_capped(only)))


def _by_recipe(inputs: Inputs) -> dict[str, str]:
    """Keys that name a recipe file which the pull request changes."""
    entries = inputs.after.entries if inputs.after else {}
    names = {key: recipe_names(entry) for key, entry in entries.items()}
    paths = [change.path for change in inputs.changes or ()]
    return {key: "recipe" for key, some in names.items() if any(_ends(path, name) for path in paths for name in some)}


def _ends(path: str, name: str) -> bool:
    return path.endswith(f"/{name}")


def _unassigned(inputs: Inputs) -> list[str]:
    """Changed scripts and recipes of which no config says that they are its own."""
    entries = inputs.after.entries if inputs.after else {}
    names = {name for entry in entries.values() for name in recipe_names(entry)}
    return [
        change.path
        for change in inputs.changes or ()
        if change.status != "removed"
        and _SCRIPTS.search(change.path)
        and not any(_ends(change.path, name) for name in names)
    ]


# --- from A to B --------------------------------------------------------------------------------------------------


def from_to(inputs: Inputs) -> Check:
    """What an entry says of an image "from A to B" is what the configs of its keys changed."""
    if untold := _untold(inputs, "from_to"):
        return untold
    found = [one for entry in inputs.entries for one in _claims(inputs, entry)]
    if not found:
        return not_applicable(None, "from_to", Proof.of("no_from_to"))
    states = [state for state, _ in found]
    order = (State.DOES_NOT_HOLD, State.NOT_KNOWN, State.HOLDS)
    state = next(one for one in order if one in states)
    return Check(None, "from_to", state, _capped([proof for _, proof in found]))


def _claims(inputs: Inputs, entry: ChangelogEntry) -> Iterator[tuple[State, Proof]]:
    pairs = list(_moved(inputs, entry))
    for text in entry.description:
        for found in _FROM_TO.finditer(text):
            old, new = found["old"].rstrip(".,;"), found["new"].rstrip(".,;")
            if not (_VERSION.search(old) and _VERSION.search(new)):
                continue
            said: dict[str, Value] = {"old": old, "new": new}
            fit = next((one for one in pairs if _names(one[1], old) and _names(one[2], new)), None)
            if fit:
                yield State.HOLDS, Proof.of("moved_so", **said, key=fit[0])
            elif "image" in text.lower() or ":" in old:
                yield State.DOES_NOT_HOLD, Proof.of("not_moved_so", **said, seen=_seen(pairs))
            else:
                yield State.NOT_KNOWN, Proof.of("moved_elsewhere", **said)


def _moved(inputs: Inputs, entry: ChangelogEntry) -> Iterator[tuple[str, str, str]]:
    """Key, image before and image now of the configs of an entry."""
    for pattern in entry.config_keys:
        for after in inputs.after.plan.matching(pattern) if inputs.after else ():
            before = inputs.before.config(after.key) if inputs.before else None
            if before is not None:
                yield after.key, before.image, after.image
                yield from _routers(inputs, after.key)


def _routers(inputs: Inputs, key: str) -> Iterator[tuple[str, str, str]]:
    sides = [masters.entries.get(key) if masters else None for masters in (inputs.before, inputs.after)]
    old, new = (dict(_routers_of(side)) for side in sides)
    yield from ((key, version, new[name]) for name, version in old.items() if name in new)


def _names(reference: str, said: str) -> bool:
    """Whether words mean this image: the whole of it, its tag, or the tag's version at its beginning.

    >>> [_names("a/b:v0.5.12-cu130", said) for said in ("v0.5.12-cu130", "0.5.12", "a/b:v0.5.12-cu130", "v0.5.1")]
    [True, True, True, False]
    """
    text, word = reference.lower(), said.replace("#", "/").lower()
    tag = (images.parse(reference).tag or text).lower()
    bare, short = tag.removeprefix("v"), word.rpartition(":")[2].removeprefix("v")
    return text == word or bare == short or bool(re.match(rf"{re.escape(short)}(?![\w.])", bare))


def _seen(pairs: list[tuple[str, str, str]]) -> str:
    return "; ".join(f"{old} -> {new}" for _, old, new in pairs[:2]) or "-"


# --- routers and containers -----------------------------------------------------------------------------------------


def router(inputs: Inputs) -> Check:
    """The version of the router that a config names is the one that its recipe, or else its entry, installs."""
    if untold := _untold(inputs, "router"):
        return untold
    entries = inputs.after.entries if inputs.after else {}
    named = {one.key: dict(_routers_of(entries.get(one.key))) for one in inputs.configs}
    pairs = [(key, name, version) for key, some in named.items() for name, version in some.items()]
    if not pairs:
        return not_applicable(None, "router", Proof.of("no_router"))
    found = [_router(inputs, *one) for one in pairs]
    order = (State.DOES_NOT_HOLD, State.NOT_KNOWN, State.HOLDS)
    state = next(one for one in order if one in [state for state, _ in found])
    return Check(None, "router", state, _capped([proof for _, proof in found]))


def _routers_of(entry: Any) -> Iterator[tuple[str, str]]:
    """Name and version of every router below an entry."""
    if isinstance(entry, dict):
        told = entry.get("router")
        if isinstance(told, dict) and told.get("name") and told.get("version"):
            yield str(told["name"]), str(told["version"])
        for value in entry.values():
            yield from _routers_of(value)
    elif isinstance(entry, list):
        for value in entry:
            yield from _routers_of(value)


def _router(inputs: Inputs, key: str, name: str, version: str) -> tuple[State, Proof]:
    said: dict[str, Value] = {"key": key, "name": name, "named": version}
    for path, installed in _installed(inputs, key, name):
        if router_differs(version, installed):
            return State.DOES_NOT_HOLD, Proof.of("router_differs", _place(inputs, path), **said, installed=installed)
    known = next(_installed(inputs, key, name), None)
    if known is None:
        return State.NOT_KNOWN, Proof.of("router_unknown", **said)
    return State.HOLDS, Proof.of("router_same", _place(inputs, known[0]), **said)


def _place(inputs: Inputs, path: str) -> str:
    return inputs.blob(path) if path else ""


def _installed(inputs: Inputs, key: str, name: str) -> Iterator[tuple[str, str]]:
    """Path and version by each recipe of the key; by the entry's words where no recipe says it."""
    found = False
    for path, text in inputs.recipes.get(key, {}).items():
        version = _recipe(text).get(name.partition("-")[0], {})
        if isinstance(version, dict) and version.get("version"):
            found = True
            yield path, str(version["version"])
    if not found:
        own = (entry for entry in inputs.entries if key in _named(inputs, entry))
        version_told = installed_version(name, (line for entry in own for line in entry.description))
        if version_told:
            yield "", version_told


def _named(inputs: Inputs, entry: ChangelogEntry) -> set[str]:
    plan = inputs.after.plan if inputs.after else None
    return {one.key for pattern in entry.config_keys for one in (plan.matching(pattern) if plan else ())}


def _recipe(text: str) -> Mapping[str, Any]:
    """A recipe as mappings; nothing where it is none."""
    try:
        found = yamltext.values(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def container(inputs: Inputs) -> Check:
    """The container that a recipe names is the image of its config."""
    if untold := _untold(inputs, "container"):
        return untold
    if proof := inputs.unknown("recipes"):
        return not_known(None, "container", proof)
    recipes = [(one, path, text) for one in inputs.configs for path, text in inputs.recipes.get(one.key, {}).items()]
    if not recipes:
        return not_applicable(None, "container", Proof.of("no_recipes"))
    told = [(config, path, _container(text)) for config, path, text in recipes]
    known = [(config, path, name) for config, path, name in told if name]
    if not known:
        return not_known(None, "container", Proof.of("no_container", count=len(recipes)))
    bad = [_differs(inputs, *one) for one in known if images.canonical(one[2]) != images.canonical(one[0].image)]
    counted = Proof.of("containers_same", count=len(known) - len(bad), total=len(recipes))
    return Check(None, "container", State.DOES_NOT_HOLD if bad else State.HOLDS, (counted, *_capped(bad)))


def _container(text: str) -> str:
    model = _recipe(text).get("model")
    return str(model.get("container") or "") if isinstance(model, dict) else ""


def _differs(inputs: Inputs, config: Config, path: str, name: str) -> Proof:
    return Proof.of(
        "container_differs", inputs.blob(path), key=config.key, path=path, container=name, image=config.image
    )


# --- the file -----------------------------------------------------------------------------------------------------


def history(inputs: Inputs) -> Check:
    """The changelog was only appended to, each entry is sound, and no placeholder of a link is left."""
    if proof := inputs.unknown("changelog"):
        return not_known(None, "changelog", proof)
    found = inputs.changelog
    if found is None or not (found.changes or found.flaws):
        return not_applicable(None, "changelog", Proof.of("changelog_untouched"))
    wrong = [
        *(Proof.of("history_changed", what=str(change)) for change in found.forbidden),
        *(Proof.of("placeholder" if flaw.code == "link_placeholder" else "entry_flaw", what=str(flaw))
          for flaw in found.flaws),
    ]  # fmt: skip
    added = Proof.of("entries_added", count=len(found.added))
    if not wrong:
        return Check(None, "changelog", State.HOLDS, (added,))
    only_link = all(proof.code == "placeholder" for proof in wrong)
    state = State.FLAGGED if only_link else State.DOES_NOT_HOLD
    return Check(None, "changelog", state, (added, *_capped(wrong)))
