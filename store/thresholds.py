"""Pass marks of evals: exact model, then the task's default, then nothing; never a prefix, never a silent fall-back."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import yaml

from store import identity, limits, yamltext
from store.records import Trouble


@dataclass(frozen=True, slots=True)
class Threshold:
    """The lowest score (a fraction) that passes; `model` is None where the default of the task applies."""

    task: str
    value: float
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Pass marks by task, and by model family and task. `source` says where they were read."""

    default: Mapping[str, float] = field(default_factory=dict)
    models: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    source: str = ""

    def of(self, model: str, task: str) -> Threshold | None:
        """The pass mark of a task for a model (family, config prefix, or an unknown `?name`); None means no gate.

        >>> SHIPPED.of("glm5.1", "gsm8k").value, SHIPPED.of("glm5.2", "gsm8k"), SHIPPED.of("dsr1", "gsm8k_platinum")
        (0.93, Threshold(task='gsm8k', value=0.9, model=None), None)
        """
        family = _family(model)
        own = self.models.get(family, {})
        if task in own:
            return Threshold(task, own[task], family)
        return Threshold(task, self.default[task]) if task in self.default else None


class CannotReadThresholds(Trouble):
    """A thresholds file cannot be used; says where, what stands there, and what to write instead."""

    def __init__(self, place: str, problem: str, remedy: str) -> None:
        super().__init__(f"{place}: {problem}; {remedy}")
        self.place, self.problem, self.remedy = place, problem, remedy


_SECTIONS = frozenset({"default", "models"})
_SHAPE = "write `default: {task: fraction}` and `models: {model: {task: fraction}}`"
_NUMBER = "write a fraction between 0 and 1, such as 0.91"


def _family(model: str) -> str:
    return model if model.startswith(identity.UNKNOWN) else identity.model(model, None)


def load(path: Path) -> Thresholds:
    """Read a YAML or JSON file: `default` and `models`, or the older flat `{task: fraction}`.

    Raises `CannotReadThresholds` for a file that is absent, no mapping, or holds anything but fractions: a gate that
    quietly became another gate would pass what it should stop.
    """
    try:
        content = limits.read_file(path, limits.YAML_BYTES)
    except OSError as flaw:
        raise CannotReadThresholds(str(path), f"cannot be opened ({flaw.strerror})", "check the path") from flaw
    return parse(content, str(path))


def parse(content: bytes, place: str) -> Thresholds:
    """The pass marks of a file that stands at `place`, as `load` reads it; `.json` at its end says the form."""
    data = _mapping(_decode(content, place), place, _SHAPE)
    if not data:
        raise CannotReadThresholds(place, "the file is empty", _SHAPE)
    if not _SECTIONS & data.keys():
        return Thresholds(_marks(data, place), {}, place)
    if extra := data.keys() - _SECTIONS:
        raise CannotReadThresholds(f"{place}: {min(extra)}", "unknown section", _SHAPE)
    default = _marks(data.get("default") or {}, f"{place}: default")
    return Thresholds(default, _models(data.get("models") or {}, f"{place}: models"), place)


class _Loader(yaml.SafeLoader):
    """YAML that refuses a key given twice, where the plain loader keeps the last one and says nothing."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key that is no text", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key.value} given twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _decode(content: bytes, place: str) -> object:
    try:
        text = content.decode("utf-8-sig")
        return json.loads(text) if place.endswith(".json") else _from_yaml(text, place)
    except yaml.MarkedYAMLError as flaw:
        line = f"{place}:{flaw.problem_mark.line + 1}" if flaw.problem_mark else place
        raise CannotReadThresholds(line, f"no valid YAML ({flaw.problem})", _SHAPE) from flaw
    except RecursionError as flaw:
        raise CannotReadThresholds(place, "is nested too deeply", _SHAPE) from flaw
    except CannotReadThresholds:
        raise
    except (ValueError, yaml.YAMLError) as flaw:
        raise CannotReadThresholds(place, f"cannot be decoded ({flaw})", _SHAPE) from flaw


def _from_yaml(text: str, place: str) -> object:
    """The plain values, once the text is known to be of bounded size with its aliases written out."""
    try:
        yamltext.compose(text)
    except yamltext.NotYaml as flaw:
        line = text.count("\n", 0, flaw.index) + 1
        raise CannotReadThresholds(f"{place}:{line}", f"no valid YAML ({flaw})", _SHAPE) from flaw
    return yaml.load(text, _Loader)


def _mapping(value: object, place: str, remedy: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise CannotReadThresholds(place, f"a mapping was expected, not {reprlib.repr(value)}", remedy)
    for key in value:
        if not isinstance(key, str):
            raise CannotReadThresholds(place, f"the name {reprlib.repr(key)} is no text", "put it in quotes")
    return value


def _marks(value: object, place: str) -> Mapping[str, float]:
    given = _mapping(value, place, "write one `task: fraction` per line")
    return {task: _fraction(mark, f"{place}.{task}") for task, mark in given.items()}


def _fraction(value: object, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CannotReadThresholds(place, f"{reprlib.repr(value)} is no number", _NUMBER)
    # Held against the ends first: a whole number may be too large to be a float.
    if not 0 <= value <= 1:
        raise CannotReadThresholds(place, f"{reprlib.repr(value)} is not between 0 and 1", _NUMBER)
    return float(value)


def _models(value: object, place: str) -> Mapping[str, Mapping[str, float]]:
    """Marks by family; a family under two spellings is refused, since one of them would be lost."""
    found: dict[str, Mapping[str, float]] = {}
    for name, marks in _mapping(value, place, _SHAPE).items():
        if _family(name) in found:
            raise CannotReadThresholds(f"{place}.{name}", f"{_family(name)} is given twice", "keep one spelling")
        found[_family(name)] = _marks(marks, f"{place}.{name}")
    return found


SHIPPED = Thresholds(
    MappingProxyType({"gsm8k": 0.90, "gpqa_diamond_cot_n_shot": 0.30, "swebench_lite": 0.50}),
    MappingProxyType(
        {
            "dsr1": {"gsm8k": 0.91},
            "dsv4": {"gsm8k": 0.91},
            "glm5": {"gsm8k": 0.94},
            "glm5.1": {"gsm8k": 0.93},
            "gptoss120b": {"gsm8k": 0.91},
            "kimik2.5": {"gsm8k": 0.90},
            "minimaxm2.5": {"gsm8k": 0.92},
            "qwen3.5": {"gsm8k": 0.94},
        }
    ),
    "shipped with the tracker",
)
"""The pass marks of InferenceX (`utils/evals/thresholds.yaml`), used where no file is given."""
