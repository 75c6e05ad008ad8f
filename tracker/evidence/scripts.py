"""Rows about texts of the pull request: a pattern was found or not. The first is no verdict, the second no proof."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from store.checks import Check, Proof, State
from store.plan import Config
from store.records import Value
from tracker.evidence.inputs import Change, Inputs, not_applicable, not_known

SHOWN = 8
LONGEST = 120
"""Characters of a line that are shown."""

READ = 2000
"""Characters of a line that are searched; what is longer was written by no person."""

OVERRIDES = re.compile(r"--?hf[-_]overrides|hf_overrides|--json-model-override-args")
TEMPLATES = re.compile(r"chat[-_]template|/v1/chat/completions|openai-chat")
PATCHES = re.compile(
    r"\bgit\s+apply\b|(?<![\w./-])patch\s+(?:-\w+\s+)*-p\d|(?<![\w./-])patch\s+.*<"
    r"|\bsed\s+(?:-\w+\s+)*-i\b.*(?:site-packages|dist-packages|/sgl-workspace|/vllm/|/sglang/)"
    r"|(?:site-packages|dist-packages|/sgl-workspace)[\w./-]*\.py\b|\bfind_spec\(\s*['\"](?:vllm|sglang|tensorrt_llm)"
    r"|\bsitecustomize\b|\bpip3?\s+install\b.*(?:git\+|https?://\S+\.whl|\.whl\b)"
)
_PATCH_FILES = re.compile(r"\.(?:patch|diff)$")
_PROSE = re.compile(r"\.(?:md|rst|txt)$|(?:^|/)perf-changelog\.yaml$|(?:^|/)tests?/")

_LENGTHS = (
    (re.compile(r"SGLANG_SIMULATE_ACC_LEN\W{1,6}(\d+(?:\.\d+)?)"), 0.0),
    (re.compile(r"synthetic_acceptance_length\W{1,6}(\d+(?:\.\d+)?)"), 0.0),
    (re.compile(r"TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS\W{1,6}(\d+(?:\.\d+)?)"), 1.0),
)
"""How the engines pin an acceptance length, and what is added to their number: one of them leaves out a token."""
_DRAFT = re.compile(r"(?:num[-_]speculative[-_]tokens|speculative[-_]num[-_]steps)\W{1,6}(\d{1,3})")


def _scanned(inputs: Inputs) -> tuple[list[Change], list[Change]]:
    """Changed files whose added lines are known, and those of which GitHub shows none; prose is neither."""
    files = [one for one in inputs.changes or () if not _PROSE.search(one.path)]
    return [one for one in files if one.added is not None], [one for one in files if one.added is None]


def _found(inputs: Inputs, pattern: re.Pattern[str], files: Iterable[Change]) -> Iterator[Proof]:
    for one in files:
        for number, line in one.added or ():
            if pattern.search(line[:READ]):
                text = line.strip()[:LONGEST]
                yield Proof.of("found_at", inputs.blob(one.path, number), place=f"{one.path}:{number}", text=text)


def _searched(inputs: Inputs, number: int, name: str, found: list[Proof]) -> Check:
    """The row of a search: flagged with its places, else not known with the number of files that were read."""
    files, unread = _scanned(inputs)
    blind = [Proof.of("not_scanned", inputs.blob(one.path), path=one.path) for one in unread[:SHOWN]]
    if found:
        more = [Proof.of("more", count=len(found) - SHOWN)] if len(found) > SHOWN else []
        return Check(number, name, State.FLAGGED, (*found[:SHOWN], *more, *blind))
    return not_known(number, name, Proof.of("nothing_found", files=len(files)), *blind)


def _nothing(inputs: Inputs, number: int, name: str) -> Check | None:
    if inputs.changes is None:
        return not_known(number, name, inputs.unknown("files"))
    if not any(_scanned(inputs)):
        return not_applicable(number, name, Proof.of("no_scripts"))
    return None


def overrides(inputs: Inputs) -> Check:
    """8: places where an added line overrides the architecture of a model."""
    if row := _nothing(inputs, 8, "overrides"):
        return row
    return _searched(inputs, 8, "overrides", list(_found(inputs, OVERRIDES, _scanned(inputs)[0])))


def templates(inputs: Inputs) -> Check:
    """9: which configs decode speculatively, and where an added line speaks of a chat template."""
    if proof := inputs.unknown("configs"):
        return not_known(9, "templates", proof)
    keys = [one.key for one in inputs.configs if _speculates(one)]
    if not keys:
        return not_applicable(9, "templates", Proof.of("no_speculation"))
    named = Proof.of("speculative", keys=", ".join(keys[:SHOWN]), count=len(keys))
    found = list(_found(inputs, TEMPLATES, _scanned(inputs)[0]))
    files = len(_scanned(inputs)[0])
    rest = found[:SHOWN] or [Proof.of("no_template", files=files)]
    return Check(9, "templates", State.FLAGGED, (named, *rest))


def patches(inputs: Inputs) -> Check:
    """10: places where an added line changes an installed engine, and whether there is a waiver."""
    if row := _nothing(inputs, 10, "patches"):
        return row
    files, _ = _scanned(inputs)
    found = [
        *(Proof.of("label", label=name) for name in sorted(inputs.pull.labels & {"engine-patch"})),
        *(Proof.of("patch_file", inputs.blob(one.path), path=one.path)
          for one in inputs.changes or () if _PATCH_FILES.search(one.path) and one.status != "removed"),
        *_found(inputs, PATCHES, [one for one in files if not _PATCH_FILES.search(one.path)]),
    ]  # fmt: skip
    row = _searched(inputs, 10, "patches", found)
    return Check(10, "patches", row.state, (*row.proof, *(_waiver(inputs) if found else ())))


def _waiver(inputs: Inputs) -> tuple[Proof, ...]:
    if proof := inputs.unknown("waiver"):
        return (proof,)
    if inputs.waiver:
        return (Proof.of("waiver", inputs.blob(inputs.waiver), path=inputs.waiver),)
    return (Proof.of("no_waiver", path=f"docs/waiver/{inputs.pull.number}.md"),)


def _speculates(config: Config, *, agentic: bool = False) -> bool:
    arms = (arm for arm in config.arms if not agentic or arm.curve.scenario == "agentic_traces")
    return any(arm.curve.spec != "none" for arm in arms)


# --- 11: the acceptance length ------------------------------------------------------------------------------------


def acceptance(inputs: Inputs) -> Check:
    """11: the acceptance length that an AgentX config pins stands in the golden table of its model."""
    if proof := inputs.unknown("configs"):
        return not_known(11, "acceptance", proof)
    concerned = [one for one in inputs.configs if _speculates(one, agentic=True)]
    if not concerned:
        return not_applicable(11, "acceptance", Proof.of("no_agentic_speculation"))
    found = [one for config in concerned for one in _lengths(inputs, config)]
    order = (State.DOES_NOT_HOLD, State.NOT_KNOWN, State.HOLDS)
    state = next(one for one in order if one in [state for state, _ in found])
    return Check(11, "acceptance", state, tuple(proof for _, proof in found)[:SHOWN])


def _lengths(inputs: Inputs, config: Config) -> Iterator[tuple[State, Proof]]:
    curves = _curves(inputs.golden, config.model_prefix)
    pinned = list(_pinned(inputs, config))
    if not pinned:
        yield State.NOT_KNOWN, Proof.of("no_length", key=config.key)
    for path, value, draft in pinned:
        said: dict[str, Value] = {"key": config.key, "value": value}
        fit = [name for name, length, golden in curves if golden == value and draft in (None, length)]
        if not curves:
            yield State.NOT_KNOWN, Proof.of("no_golden", inputs.blob(path), **said)
        elif fit:
            yield State.HOLDS, Proof.of("length_golden", inputs.blob(path), **said, table=fit[0])
        else:
            tables = ", ".join(sorted({name for name, _, _ in curves}))
            yield State.DOES_NOT_HOLD, Proof.of("length_not_golden", inputs.blob(path), **said, table=tables)


def _pinned(inputs: Inputs, config: Config) -> Iterator[tuple[str, float, int | None]]:
    """Path, acceptance length and draft length, by the recipes of the config, else by what the pull request adds."""
    texts = dict(inputs.recipes.get(config.key, {}))
    if not texts:
        files, _ = _scanned(inputs)
        texts = {one.path: "\n".join(line for _, line in one.added or ()) for one in files}
    for path, text in texts.items():
        drafts = {int(number) for number in _DRAFT.findall(text)}
        for pattern, more in _LENGTHS:
            for number in dict.fromkeys(pattern.findall(text)):
                yield path, round(float(number) + more, 6), drafts.pop() if len(drafts) == 1 else None


def _curves(golden: Mapping[str, Any], prefix: str) -> list[tuple[str, int, float]]:
    """File and mode, draft length and acceptance length of the tables whose name begins with the model's prefix."""
    found = []
    for name, models in golden.items():
        if not name.startswith(f"{prefix}_") or not isinstance(models, dict):
            continue
        modes = [(mode, some) for key, told in models.items() if key != "_metadata" and isinstance(told, dict)
                 for mode, some in told.items()]  # fmt: skip
        for mode, some in modes:
            for length, value in some.items() if isinstance(some, dict) else ():
                if re.fullmatch(r"\d{1,3}", length) and re.fullmatch(r"\d+(?:\.\d+)?", str(value)):
                    found.append((f"{name} {mode}", int(length), float(value)))
    return found
