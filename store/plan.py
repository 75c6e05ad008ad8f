"""Master configs: which config keys exist, with which image, and which points a sweep of a key is expected to give.

A config is read whole or rejected whole, with the line and the field. Without this expansion nobody could say that a
point is missing: a sweep whose jobs failed simply has fewer rows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

import yaml

from store import identity, images, limits, yamltext
from store.records import Layout, Place, Rejection, Role, Series


@dataclass(frozen=True, slots=True)
class Arm:
    """One item of a search space: a curve of one recipe and its concurrencies, in the order of the file."""

    curve: Series
    concs: tuple[int, ...]
    settings: str = ""
    """What tells its recipe from another one with the same curve: router, offload backend, settings of a side."""

    @property
    def points(self) -> tuple[Series, ...]:
        return tuple(replace(self.curve, conc=conc) for conc in self.concs)


@dataclass(frozen=True, slots=True)
class Config:
    """One key of a master config: what runs, where, and everything that one sweep of it measures."""

    key: str
    image: str
    """Canonical text (`/`, never `#`)."""
    model: str
    model_prefix: str
    runner: str
    precision: str
    framework: str
    multinode: bool
    disagg: bool
    arms: tuple[Arm, ...]

    @property
    def points(self) -> tuple[Series, ...]:
        """Every point once: two recipes may measure one (other settings, one topology)."""
        return tuple(dict.fromkeys(point for arm in self.arms for point in arm.points))


@dataclass(frozen=True, slots=True)
class Plan:
    """All configs that were read, by key, and the ones that were not, with `place.index` the line in the file."""

    configs: Mapping[str, Config]
    rejections: tuple[Rejection, ...] = ()

    @property
    def keys(self) -> frozenset[str]:
        """Every key that the files hold, also of a config that could not be expanded: a changelog may name it."""
        return frozenset(self.configs) | {flaw.field for flaw in self.rejections if flaw.field}

    def matching(self, pattern: str) -> tuple[Config, ...]:
        """The configs that a key or a wildcard of a changelog entry names, in the order of the files."""
        return tuple(self.configs[key] for key in matching(pattern, self.configs))


def matching(pattern: str, keys: Collection[str]) -> tuple[str, ...]:
    """The keys that a config key or a wildcard names; `*` stands for any characters, nothing else is special.

    >>> matching("dsr1-*-trt", ("dsr1-fp4-b200-trt", "dsr1-fp4-b200-trt-mtp")), matching("dsr1", ("dsr1-fp4",))
    (('dsr1-fp4-b200-trt',), ())
    """
    if "*" not in pattern:
        return (pattern,) if pattern in keys else ()
    least = len(pattern) - pattern.count("*")
    able = [key for key in keys if len(key) >= least]
    return tuple(key for key in able if _wildcard(pattern).fullmatch(key))


@lru_cache(maxsize=256)
def _wildcard(pattern: str) -> re.Pattern[str]:
    # Atomic: the first place where a part fits is as good as a later one, and to try them all is exponential.
    first, *inner, last = map(re.escape, re.split(r"\*+", pattern))
    return re.compile(first + "".join(f"(?>.*?{part})" for part in inner) + ".*" + last, re.DOTALL)


def concurrencies(start: int, end: int) -> tuple[int, ...]:
    """Doubling steps from start, with the end always included.

    >>> concurrencies(4, 64), concurrencies(4, 48), concurrencies(8, 8)
    ((4, 8, 16, 32, 64), (4, 8, 16, 32, 48), (8,))
    """
    steps = []
    while start < end:
        steps.append(start)
        start *= 2
    return (*steps, end)


def read(paths: Iterable[Path]) -> Plan:
    """The configs of several files together; a key that stands in two files is rejected in the second."""
    return merge(parse(limits.read_file(path, limits.YAML_BYTES), path.name) for path in paths)


def merge(plans: Iterable[Plan]) -> Plan:
    """Several plans as one."""
    configs: dict[str, Config] = {}
    rejections: list[Rejection] = []
    for plan in plans:
        again = [key for key in plan.configs if key in configs]
        rejections += [*plan.rejections, *(Rejection(Place("master configs"), key, "duplicate_key") for key in again)]
        for key, config in plan.configs.items():
            configs.setdefault(key, config)
    return Plan(MappingProxyType(configs), tuple(rejections))


def parse(data: bytes, name: str = "master.yaml", *, any_era: bool = False) -> Plan:
    """The configs of one file. Broken YAML is one rejection, a broken config another; nothing is raised.

    The rules are those of today's files. With `any_era` a file of any commit is read: rules that older files did not
    know and fields that newer ones add are no reason to lose the points.
    """
    try:
        text = data.decode("utf-8")
        root = yamltext.compose(text)
    except UnicodeDecodeError as error:
        return Plan({}, (Rejection(Place(name), "", "not_utf8", str(error)),))
    except yamltext.NotYaml as error:
        return Plan({}, (Rejection(Place(name, text.count("\n", 0, error.index) + 1), "", "syntax", str(error)),))
    if not isinstance(root, yaml.MappingNode):
        return Plan({}, (Rejection(Place(name, 1), "", "not_a_mapping"),))
    return _configs(root, name, any_era)


def _configs(root: yaml.MappingNode, name: str, any_era: bool) -> Plan:
    configs: dict[str, Config] = {}
    rejections = []
    for key, key_node, node in yamltext.fields(root):
        try:
            if key in configs:
                raise _Broken("duplicate_key", key_node)
            configs[key] = _config(key, _Fields(node, any_era))
        except _Broken as flaw:
            place = Place(name, flaw.node.start_mark.line + 1)
            rejections.append(Rejection(place, key, flaw.reason, flaw.detail))
    return Plan(MappingProxyType(configs), tuple(rejections))


class _Broken(ValueError):
    """A config that cannot be read whole: the node where it shows, and why."""

    def __init__(self, reason: str, node: yaml.Node, detail: str = "") -> None:
        super().__init__(reason)
        self.reason, self.node, self.detail = reason, node, detail


class _Fields:
    """A mapping of the file with typed access; a wrong type, a repeated or an unknown field is _Broken."""

    def __init__(self, node: yaml.Node, any_era: bool = False) -> None:
        if not isinstance(node, yaml.MappingNode):
            raise _Broken("not_a_mapping", node)
        self.node = node
        self.any_era = any_era
        self._values: dict[str, yaml.Node] = {}
        for name, key, value in yamltext.fields(node):
            if name in self._values:
                raise _Broken("duplicate_field", key, name)
            self._values[name] = value

    def only(self, names: Collection[str]) -> None:
        for name, value in self._values.items():
            if name not in names and not self.any_era:
                raise _Broken("unknown_field", value, name)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def _scalar(self, name: str, default: str | None) -> str:
        node = self._values.get(name)
        if node is None and default is not None:
            return default
        if not isinstance(node, yaml.ScalarNode) or not node.value:
            raise _Broken("missing_field" if node is None else "not_text", node or self.node, name)
        return str(node.value)

    def text(self, name: str, default: str | None = None) -> str:
        return self._scalar(name, default)

    def flag(self, name: str, default: str | None = None) -> bool:
        word = self._scalar(name, default).lower()
        if word not in ("true", "false"):
            raise _Broken("not_a_flag", self._values[name], name)
        return word == "true"

    def count(self, name: str, default: str | None = None, least: int = 1) -> int:
        return _count(self._scalar(name, default), self._values.get(name, self.node), name, least)

    def items(self, name: str) -> tuple[yaml.Node, ...]:
        node = self._values.get(name)
        if node is None:
            return ()
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            raise _Broken("not_a_list", node, name)
        return tuple(node.value)

    def fields(self, name: str) -> _Fields:
        if name not in self._values:
            raise _Broken("missing_field", self.node, name)
        return _Fields(self._values[name], self.any_era)

    def but(self, names: Collection[str]) -> tuple[tuple[str, str], ...]:
        """Every other field as the text of its node, in order of the names.

        Written by the serializer, which names an anchor once: what a file says through aliases may be endless.
        """
        others = sorted(name for name in self._values if name not in names)
        return tuple((name, yaml.serialize(self._values[name])) for name in others)


def _count(word: str, node: yaml.Node, name: str, least: int = 1) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", word) or int(word) < least:
        raise _Broken("not_a_count", node, f"{name}: {word}")
    return int(word)


_CONFIG_FIELDS = frozenset(
    "image model model-prefix runner precision framework multinode disagg router kv-p2p-transfer scenarios".split()
)
_SCENARIO_FIELDS = MappingProxyType(
    {
        "fixed-seq-len": frozenset({"isl", "osl", "search-space"}),
        "agentic-coding": frozenset({"search-space", "dram-utilization", "duration"}),
    }
)
_OLD_SCENARIO = "seq-len-configs"
"""Files before 2026-05 had no scenarios, but this list of what is `fixed-seq-len` today."""
_BENCHMARKS = MappingProxyType({"fixed-seq-len": "single_turn", "agentic-coding": "agentic_traces"})
_PARALLELISM = frozenset("tp pp dcp-size pcp-size ep dp-attn".split())
_SHARED_FIELDS = frozenset(
    "spec-decoding router conc-start conc-end conc-list kv-offloading kv-offload-backend kv-p2p-transfer".split()
)
_SPACE_FIELDS = MappingProxyType({False: _SHARED_FIELDS | _PARALLELISM, True: _SHARED_FIELDS | {"prefill", "decode"}})
_CURVE_FIELDS = _PARALLELISM | frozenset(
    "spec-decoding conc-start conc-end conc-list kv-offloading num-worker hardware".split()
)
"""What the curve and its concurrencies say already; the other fields are the settings of a recipe."""
_ROLE_FIELDS = _PARALLELISM | {"num-worker", "hardware", "additional-settings"}


def _config(key: str, fields: _Fields) -> Config:
    if "*" in key:
        raise _Broken("wildcard_as_key", fields.node)
    fields.only(_CONFIG_FIELDS)
    config = Config(
        key=key,
        image=images.parse(fields.text("image")).text,
        model=fields.text("model"),
        model_prefix=fields.text("model-prefix"),
        runner=fields.text("runner"),
        precision=fields.text("precision"),
        framework=fields.text("framework"),
        multinode=fields.flag("multinode", "false" if _is_old(fields) else None),
        disagg=fields.flag("disagg", "false"),
        arms=(),
    )
    if config.disagg and not config.multinode:
        raise _Broken("disagg_without_multinode", fields.node)
    _check_router(fields)
    arms = tuple(_arms(config, fields))
    if not arms:
        raise _Broken("no_points", fields.node)
    return replace(config, arms=arms)


def _is_old(fields: _Fields) -> bool:
    return fields.any_era and _OLD_SCENARIO in fields


def _arms(config: Config, fields: _Fields) -> Iterator[Arm]:
    for name, node in _scenarios(config, fields):
        scenario = _Fields(node, fields.any_era)
        scenario.only(_SCENARIO_FIELDS[name])
        curve = _curve(config, name, scenario)
        for item in scenario.items("search-space"):
            yield _arm(config, curve, _space(config, fields, item))


def _scenarios(config: Config, fields: _Fields) -> Iterator[tuple[str, yaml.Node]]:
    if _is_old(fields):
        yield from (("fixed-seq-len", node) for node in fields.items(_OLD_SCENARIO))
        return
    scenarios = fields.fields("scenarios")
    scenarios.only(_SCENARIO_FIELDS)
    for name in _SCENARIO_FIELDS:
        nodes = scenarios.items(name)
        if name == "agentic-coding" and nodes and not (config.runner.startswith("cluster:") or fields.any_era):
            raise _Broken("agentic_without_cluster", scenarios.node, config.runner)
        yield from ((name, node) for node in nodes)


def _curve(config: Config, scenario: str, fields: _Fields) -> Series:
    """What all points of a scenario share; the layout comes with each item of the search space."""
    fixed = scenario == "fixed-seq-len"
    return Series(
        model=identity.model(config.model_prefix, config.model),
        gpu=identity.hardware(config.runner).gpu,
        framework=identity.framework(config.framework),
        precision=identity.precision(config.precision),
        spec="none",
        scenario=_BENCHMARKS[scenario],
        isl=fields.count("isl") if fixed else None,
        osl=fields.count("osl") if fixed else None,
        offload=False,
        layout=Layout(Role()),
    )


def _space(config: Config, fields: _Fields, node: yaml.Node) -> _Fields:
    """One item of a search space after the rules that concern its fields alone."""
    item = _Fields(node, fields.any_era)
    item.only(_SPACE_FIELDS[config.multinode])
    _check_router(item)
    if "kv-p2p-transfer" in item and "kv-p2p-transfer" in fields:
        raise _Broken("kv_transfer_twice", node)
    if config.disagg and not fields.any_era and "kv-p2p-transfer" not in item and "kv-p2p-transfer" not in fields:
        raise _Broken("kv_transfer_missing", node)
    return item


def _check_router(fields: _Fields) -> None:
    if "router" in fields and fields.fields("router").text("version").startswith("image:"):
        raise _Broken("router_version", fields.fields("router").node)


def _arm(config: Config, curve: Series, item: _Fields) -> Arm:
    shape = replace(
        curve,
        spec=identity.speculation(item.text("spec-decoding", "none")),
        offload=item.text("kv-offloading", "none") != "none",
        layout=_layout(config, item),
    )
    return Arm(shape, _concurrencies(item), _settings(config, item))


def _settings(config: Config, item: _Fields) -> str:
    sides = ("prefill", "decode") if config.multinode else ()
    own = item.but({*_CURVE_FIELDS, *sides})
    inner = [(side, item.fields(side).but(_CURVE_FIELDS)) for side in sides if side in item]
    return repr((own, inner)) if own or any(said for _, said in inner) else ""


def _concurrencies(item: _Fields) -> tuple[int, ...]:
    ranged = ("conc-start" in item, "conc-end" in item)
    if "conc-list" in item:
        if any(ranged):
            raise _Broken("conc_range_and_list", item.node)
        return tuple(_count(str(node.value), node, "conc-list") for node in item.items("conc-list"))
    if not all(ranged):
        raise _Broken("conc_missing", item.node)
    start, end = item.count("conc-start"), item.count("conc-end")
    if start > end:
        raise _Broken("conc_range_backwards", item.node, f"{start} > {end}")
    return concurrencies(start, end)


def _layout(config: Config, item: _Fields) -> Layout:
    prefill = _role(config, item.fields("prefill") if config.multinode else item)
    decode = None
    if config.multinode:
        side = item.fields("decode")
        # No decode workers: one engine over several nodes, whatever parallelism the side repeats.
        decode = _role(config, side) if side.count("num-worker", least=0) else None
        if ("hardware" in side) != ("hardware" in item.fields("prefill")):
            raise _Broken("one_sided_hardware", item.node)
    engine = identity.framework(config.framework)
    return identity.layout(prefill, decode, multinode=config.multinode, disagg=config.disagg, engine=engine)


def _role(config: Config, fields: _Fields) -> Role:
    if config.multinode:
        fields.only(_ROLE_FIELDS)
    tp, dcp = fields.count("tp"), fields.count("dcp-size", "1")
    if tp % dcp:
        raise _Broken("dcp_does_not_divide_tp", fields.node, f"{dcp}, {tp}")
    return Role(
        tp=tp,
        ep=fields.count("ep", "1"),
        dp_attention=fields.flag("dp-attn", "false"),
        workers=fields.count("num-worker") if config.multinode else 1,
        pp=fields.count("pp", "1"),
        dcp=dcp,
        pcp=fields.count("pcp-size", "1"),
        hardware=_other_hardware(config, fields),
    )


def _other_hardware(config: Config, fields: _Fields) -> str | None:
    """The GPU of a side that runs on another one than the config's runner, as the readers write it into a row."""
    own = identity.hardware(config.runner).gpu
    gpu = identity.hardware(fields.text("hardware", config.runner)).gpu
    return gpu if gpu != own else None
