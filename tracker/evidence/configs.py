"""Rows about what the pull request submits: images, engines, models, points and layouts of the concerned configs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from store import images
from store.checks import Check, Proof, State
from store.identity import layout_text, sequence_text, series_key
from store.lineup import Standing
from store.plan import Arm, Config
from store.records import ChangelogEntry, Layout, LayoutKind, Role, Series, Value
from tracker.evidence.inputs import UPSTREAM, Inputs, not_applicable, not_known
from tracker.topology import Shape, match

SHOWN = 8
ORGANISATIONS = ("vllm", "lmsysorg")
"""Of the images that vLLM and SGLang publish themselves."""
HOSTS = ("", "docker.io", "index.docker.io")
PAGES = re.compile(
    r"https://(?:recipes\.vllm\.ai|docs\.vllm\.ai/projects/recipes|docs\.sglang\.(?:io|ai)/cookbook)[\w./#?=&%-]*"
)
"""Published recipes."""

_NO_LAYOUT = Layout(Role())
_SCENARIOS = {"fixed-seq-len": "single_turn", "agentic-coding": "agentic_traces"}


def is_open(config: Config) -> bool:
    """True of an engine that is vLLM or SGLang, alone or below a deployment layer."""
    return "vllm" in config.framework or "sglang" in config.framework


def _untold(inputs: Inputs, number: int | None, name: str) -> Check | None:
    """The row where the concerned configs are not known, or there are none."""
    for part in ("configs", "configs_before"):
        if proof := inputs.unknown(part):
            return not_known(number, name, proof)
    return None if inputs.configs else not_applicable(number, name, Proof.of("no_configs_concerned"))


def _capped(proof: Sequence[Proof]) -> tuple[Proof, ...]:
    more = (Proof.of("more", count=len(proof) - SHOWN),) if len(proof) > SHOWN else ()
    return (*proof[:SHOWN], *more)


# --- 3: the recipe upstream ---------------------------------------------------------------------------------------


def recipe(inputs: Inputs) -> Check:
    """3: where single-node vLLM or SGLang configs are concerned, a recipe is linked and merged; it is not read."""
    if untold := _untold(inputs, 3, "recipe"):
        return untold
    concerned = [config.key for config in inputs.configs if is_open(config) and not config.multinode]
    if not concerned:
        return not_applicable(3, "recipe", Proof.of("no_single_node"))
    if inputs.signoff is None and inputs.unknown("comments"):
        return not_known(3, "recipe", inputs.unknown("comments"))
    text = f"{inputs.signoff.body if inputs.signoff else ''}\n{inputs.pull.body}"
    linked = [one.group(0) for one in UPSTREAM.finditer(text)]
    pages = [Proof.of("recipe_page", url) for url in dict.fromkeys(PAGES.findall(text))]
    pulls = [_link(inputs, url) for url in dict.fromkeys(linked)]
    if not pulls and not pages:
        return Check(3, "recipe", State.DOES_NOT_HOLD, (Proof.of("no_recipe_link", keys=", ".join(concerned)),))
    states = [state for state, _ in pulls]
    order = (State.DOES_NOT_HOLD, State.NOT_KNOWN, State.HOLDS)
    state = State.NOT_KNOWN if not pulls else next(one for one in order if one in states)
    return Check(3, "recipe", state, _capped([*(proof for _, proof in pulls), *pages]))


def _link(inputs: Inputs, url: str) -> tuple[State, Proof]:
    state = inputs.upstream.get(url)
    if state is None:
        return State.NOT_KNOWN, Proof.of("recipe_state_unknown", url)
    if state == "merged":
        return State.HOLDS, Proof.of("recipe_merged", url)
    return State.DOES_NOT_HOLD, Proof.of("recipe_not_merged", url, state=state)


# --- 6: images and the order of engines -----------------------------------------------------------------------------


def image(inputs: Inputs) -> Check:
    """6: images of vLLM and SGLang are those that the projects publish."""
    if untold := _untold(inputs, 6, "image"):
        return untold
    concerned = [config for config in inputs.configs if is_open(config)]
    if not concerned:
        return not_applicable(6, "image", Proof.of("no_open_engine"))
    others = [one for one in concerned if not _is_upstream(one.image)]
    if others:
        proof = [Proof.of("other_image", key=one.key, image=one.image) for one in others]
        return Check(6, "image", State.DOES_NOT_HOLD, _capped(proof))
    names = sorted({one.image for one in concerned})
    return Check(6, "image", State.HOLDS, _capped([Proof.of("upstream_image", image=name) for name in names]))


def _is_upstream(reference: str) -> bool:
    found = images.parse(reference)
    return found.registry in HOSTS and found.repository.split("/")[0] in ORGANISATIONS


def order(inputs: Inputs) -> Check:
    """6: before a config of another engine is new, one of vLLM or SGLang stands for the same model and GPU."""
    if untold := _untold(inputs, 6, "order"):
        return untold
    old = inputs.before.entries if inputs.before else {}
    fresh = [one for one in inputs.configs if one.key not in old and not is_open(one)]
    if not fresh:
        return not_applicable(6, "order", Proof.of("no_new_engine"))
    standing = [one for one in (inputs.before.plan.configs.values() if inputs.before else ()) if is_open(one)]
    found = [(one, next((other for other in standing if _kin(one) == _kin(other)), None)) for one in fresh]
    proof = [
        Proof.of("engine_precedes", key=one.key, other=other.key) if other else Proof.of("engine_first", key=one.key)
        for one, other in found
    ]
    state = State.HOLDS if all(other for _, other in found) else State.NOT_KNOWN
    return Check(6, "order", state, _capped(proof))


def _kin(config: Config) -> tuple[str, str]:
    curve = config.arms[0].curve
    return curve.model, curve.gpu


# --- 7: deprecated models -----------------------------------------------------------------------------------------


def lineup(inputs: Inputs) -> Check:
    """7: every model may be submitted in every scenario of its configs, by the tables of MODELS.md."""
    if untold := _untold(inputs, 7, "lineup"):
        return untold
    if inputs.lineup is None:
        return not_known(7, "lineup", inputs.unknown("lineup") or Proof.of("no_lineup"))
    pairs = dict.fromkeys((one.model_prefix, _scenario(arm.curve)) for one in inputs.configs for arm in one.arms)
    proof = []
    for prefix, scenario in pairs:
        standing, cell = inputs.lineup.of(prefix, scenario)
        proof.append((standing, Proof.of(f"lineup_{standing}", model=prefix, scenario=scenario, cell=cell)))
    ranked = (Standing.DEPRECATED, Standing.UNKNOWN, Standing.BOUNDED, Standing.ACTIVE)
    worst = next(one for one in ranked if one in [standing for standing, _ in proof])
    return Check(7, "lineup", _LINEUP[worst], _capped([said for _, said in proof]))


_LINEUP = {
    Standing.DEPRECATED: State.DOES_NOT_HOLD,
    Standing.UNKNOWN: State.NOT_KNOWN,
    Standing.BOUNDED: State.FLAGGED,
    Standing.ACTIVE: State.HOLDS,
}


def _scenario(curve: Series) -> str:
    if curve.isl is None or curve.osl is None:
        return "agentic"
    return f"{curve.isl // 1024}k{curve.osl // 1024}k"


# --- 12: append-only ----------------------------------------------------------------------------------------------


def append_only(inputs: Inputs) -> Check:
    """12: what was promised before is promised still, more is promised now, and the image is the same."""
    if proof := inputs.unknown("changelog"):
        return not_known(12, "append_only", proof)
    entries = [entry for entry in inputs.entries if entry.append_only]
    if not entries:
        return not_applicable(12, "append_only", Proof.of("no_append_only"))
    if untold := _untold(inputs, 12, "append_only"):
        return untold
    found = [one for entry in entries for one in _appended(inputs, entry)]
    order_ = (State.DOES_NOT_HOLD, State.NOT_KNOWN, State.HOLDS)
    state = next((one for one in order_ if one in [state for state, _ in found]), State.NOT_KNOWN)
    mixed = [Proof.of("append_only_mixed")] if len(entries) < len(inputs.entries) else []
    state = State.DOES_NOT_HOLD if mixed else state
    return Check(12, "append_only", state, (*mixed, *_capped([proof for _, proof in found])))


def _appended(inputs: Inputs, entry: ChangelogEntry) -> Iterator[tuple[State, Proof]]:
    for pattern in entry.config_keys:
        found = inputs.after.plan.matching(pattern) if inputs.after else ()
        if not found:
            yield State.NOT_KNOWN, Proof.of("key_unknown", key=pattern)
        for after in found:
            before = inputs.before.config(after.key) if inputs.before else None
            yield _grown(before, after, entry)


def _grown(before: Config | None, after: Config, entry: ChangelogEntry) -> tuple[State, Proof]:
    """One key: set inclusion of the points together with the settings of their recipe, and one image."""
    if before is None:
        return State.DOES_NOT_HOLD, Proof.of("append_to_nothing", key=after.key)
    if before.image != after.image:
        return State.DOES_NOT_HOLD, Proof.of(
            "append_other_image", key=after.key, before=before.image, after=after.image
        )
    old, new = _recipes(before, entry), _recipes(after, entry)
    if lost := sorted({conc for _, conc in old - new}):
        said: dict[str, Value] = {"key": after.key, "count": len(old - new), "concs": ", ".join(map(str, lost))}
        return State.DOES_NOT_HOLD, Proof.of("points_removed", **said)
    if old == new:
        return State.DOES_NOT_HOLD, Proof.of("nothing_appended", key=after.key, count=len(old))
    return State.HOLDS, Proof.of("points_added", key=after.key, before=len(old), count=len(new - old))


def _recipes(config: Config, entry: ChangelogEntry) -> set[tuple[tuple[str, str], int]]:
    wanted = {_SCENARIOS.get(name, name) for name in entry.scenario_types}
    arms = (arm for arm in config.arms if not wanted or arm.curve.scenario in wanted)
    return {((series_key(arm.curve), arm.settings), conc) for arm in arms for conc in arm.concs}


# --- layouts ------------------------------------------------------------------------------------------------------


def topology(inputs: Inputs) -> Check:
    """Every layout of the concerned configs was there before: else nothing stands against it under the same key."""
    if untold := _untold(inputs, None, "topology"):
        return untold
    fresh = [one.key for one in inputs.configs if inputs.before is None or inputs.before.config(one.key) is None]
    proof = [Proof.of("new_config", key=key) for key in fresh]
    for config in inputs.configs:
        before = inputs.before.config(config.key) if inputs.before else None
        proof += _changed(before, config) if before else []
    if not proof:
        return Check(None, "topology", State.HOLDS, (Proof.of("layouts_same", count=len(inputs.configs)),))
    return Check(None, "topology", State.FLAGGED, _capped(proof))


def _changed(before: Config, after: Config) -> Iterator[Proof]:
    groups = dict.fromkeys(_group(arm) for arm in (*before.arms, *after.arms))
    for group in groups:
        for change in match(_shapes(before.arms, group), _shapes(after.arms, group)):
            if change.kind is LayoutKind.SAME:
                continue
            yield Proof.of(
                f"layout_{change.kind}",
                key=after.key,
                sequence=sequence_text(group),
                before=layout_text(change.before) if change.before else None,
                after=layout_text(change.after) if change.after else None,
            )


def _group(arm: Arm) -> Series:
    """A curve less its layout."""
    return replace(arm.curve, layout=_NO_LAYOUT)


def _shapes(arms: Iterable[Arm], group: Series) -> list[Shape]:
    concs: dict[Series, set[int]] = {}
    for arm in arms:
        if _group(arm) == group:
            concs.setdefault(arm.curve, set()).update(arm.concs)
    return [Shape(curve.layout, None, frozenset(some)) for curve, some in concs.items()]
