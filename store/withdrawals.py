"""Withdrawals: which runs, attempts and points must not be used any more, since when and why.

A YAML file beside the store, written by people (docs/withdrawals.md). It is applied when the store is read: archive and
database keep everything, and a line that is taken out of the file brings its rows back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from types import MappingProxyType

import yaml

from store import identity, limits, yamltext
from store.records import Caveat, Trouble, Withdrawal

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "broken-run": "the run broke or was flaky, or a part of it is lost",
        "wrong-baseline": "it measured something else than it stands for",
        "configuration-error": "the recipe, the draft model, the runner or the cluster was not the intended one",
        "unfair-speed-up": "the engine was spared work that others do",
        "policy": "the rules of publication forbid it",
        "propagation": "it reused, or rests on, something withdrawn",
    }
)
"""Classes of reasons, after those for which InferenceX purges runs; each with what it covers."""

_REMEDY = "write run, class, reason, since and source, and attempt or point to withdraw a part (docs/withdrawals.md)"
_RUN = re.compile(r"-?[1-9]\d{0,18}")
_ATTEMPT = re.compile(r"[1-9]\d{0,5}")
_LINK = re.compile(r"https?://\S+")


class CannotReadWithdrawals(Trouble):
    """The file cannot be used; says where, what stands there, and what to write instead."""

    def __init__(self, place: str, problem: str, remedy: str = _REMEDY) -> None:
        super().__init__(f"{place}: {problem}; {remedy}")


def _number(text: str) -> str:
    if not re.fullmatch(r"[1-9]\d{0,8}", text):
        raise ValueError("a positive whole number")
    return text


def _switch(text: str) -> str:
    if text.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.lower()


def _as_is(text: str) -> str:
    return text


POINT_FIELDS: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {
        "config": _as_is,
        "curve": _as_is,
        "series": _as_is,
        "model": lambda text: identity.model(text, None),
        "gpu": lambda text: identity.hardware(text).gpu,
        "framework": identity.framework,
        "precision": identity.precision,
        "spec": identity.speculation,
        "scenario": _as_is,
        "isl": _number,
        "osl": _number,
        "conc": _number,
        "offload": _switch,
        "layout": _as_is,
        "multinode": _switch,
        "image": _as_is,
        "recipe": _as_is,
        "pool": _as_is,
        "task": str.lower,
    }
)
"""What may name a point, and how a text becomes the store's spelling. `task` names evals instead of measurements."""


def load(path: Path) -> tuple[Withdrawal, ...]:
    """The withdrawals of a file, in its order. Raises `CannotReadWithdrawals` with line and remedy: none is skipped."""
    try:
        text = limits.read_file(path, limits.YAML_BYTES).decode("utf-8-sig")
    except OSError as flaw:
        raise CannotReadWithdrawals(str(path), f"cannot be opened ({flaw.strerror})", "check the path") from flaw
    except UnicodeDecodeError as flaw:
        raise CannotReadWithdrawals(str(path), "is not UTF-8 text", "save it as UTF-8") from flaw
    return parse(text, str(path))


def parse(text: str, source: str = "withdrawals") -> tuple[Withdrawal, ...]:
    """The withdrawals of a text; `source` names it in errors.

    >>> (one,) = parse('''
    ... - run: 26008678094
    ...   point: {gpu: H200, conc: 64}
    ...   class: unfair-speed-up
    ...   reason: MTP without the chat template
    ...   since: 2026-07-21
    ...   source: https://github.com/example-org/bench/pull/7
    ... ''')
    >>> one.run, one.point, one.since.isoformat()
    (26008678094, (('gpu', 'h200'), ('conc', '64')), '2026-07-21')
    """
    try:
        root = yamltext.compose(text)
    except yamltext.NotYaml as flaw:
        line = text.count("\n", 0, flaw.index) + 1
        raise CannotReadWithdrawals(f"{source}:{line}", f"no valid YAML ({flaw})") from flaw
    if root is None:
        return ()
    if not isinstance(root, yaml.SequenceNode):
        raise CannotReadWithdrawals(source, "a list of withdrawals was expected", "begin each entry with `- run: ID`")
    found: dict[tuple[object, ...], Withdrawal] = {}
    for node in root.value:
        one = _withdrawal(node, source)
        same = found.setdefault((one.run, one.attempt, frozenset(one.point)), one)
        if same is not one:
            raise CannotReadWithdrawals(one.place, f"it is withdrawn already, at {same.place}", "keep one of the two")
    return tuple(found.values())


def caveat_of(one: Withdrawal) -> Caveat:
    """The withdrawal as the reason why rows are not used.

    >>> caveat_of(Withdrawal(7, "policy", "nightly image", date(2026, 7, 1), "https://x.example")).as_dict()["run"]
    '7'
    """
    run = f"{one.run}/{one.attempt}" if one.attempt else str(one.run)
    said = {
        "run": run,
        "reason": one.reason.rstrip(" ."),
        "since": one.since.isoformat(),
        "class": one.kind,
        "source": one.source,
    }
    return Caveat("withdrawn", tuple(said.items()))


def _withdrawal(node: yaml.Node, source: str) -> Withdrawal:
    place = _place(node, source)
    given = _mapping(node, source, _FIELDS)
    missing = [name for name in _NEEDED if name not in given]
    if missing:
        raise CannotReadWithdrawals(place, f"{', '.join(missing)} missing")
    attempt = _matching(given["attempt"], _ATTEMPT, "attempt", source) if "attempt" in given else None
    return Withdrawal(
        run=_run(given["run"], source),
        kind=_kind(given["class"], source),
        reason=_scalar(given["reason"], "reason", source),
        since=_date(given["since"], source),
        source=_matching(given["source"], _LINK, "source", source),
        attempt=int(attempt) if attempt else None,
        point=_point(given["point"], source) if "point" in given else (),
        place=place,
    )


_NEEDED = ("run", "class", "reason", "since", "source")
_FIELDS = frozenset({*_NEEDED, "attempt", "point"})


_WANTED: Mapping[str, str] = MappingProxyType(
    {
        "run": "the id of a run, digits only",
        "attempt": "the number of an attempt, 1 or more",
        "source": "a link that begins with https://",
    }
)


def _run(node: yaml.Node, source: str) -> int:
    number = int(_matching(node, _RUN, "run", source))
    if not -(2**63) < number < 2**63:
        raise CannotReadWithdrawals(_place(node, source), f"run {number} is too large", f"write {_WANTED['run']}")
    return number


def _kind(node: yaml.Node, source: str) -> str:
    text = _scalar(node, "class", source)
    if text not in KINDS:
        place = _place(node, source)
        raise CannotReadWithdrawals(place, f"{text!r} is no class of reasons", f"write one of {', '.join(KINDS)}")
    return text


def _date(node: yaml.Node, source: str) -> date:
    text = _scalar(node, "since", source)
    try:
        return date.fromisoformat(text)
    except ValueError as flaw:
        place = _place(node, source)
        raise CannotReadWithdrawals(place, f"since {text!r} is no date", "write it as 2026-07-21") from flaw


def _point(node: yaml.Node, source: str) -> tuple[tuple[str, str], ...]:
    given = _mapping(node, source, frozenset(POINT_FIELDS))
    if not given:
        raise CannotReadWithdrawals(
            _place(node, source), "point names nothing", "leave it out to withdraw the whole run"
        )
    return tuple((name, _spelled(name, value, source)) for name, value in given.items())


def _spelled(name: str, node: yaml.Node, source: str) -> str:
    text = _scalar(node, name, source)
    try:
        return POINT_FIELDS[name](text)
    except ValueError as flaw:
        raise CannotReadWithdrawals(_place(node, source), f"{name} is {text!r}", f"write {flaw}") from flaw


def _mapping(node: yaml.Node, source: str, known: frozenset[str]) -> dict[str, yaml.Node]:
    """The fields of a mapping, each known and given once."""
    if not isinstance(node, yaml.MappingNode):
        raise CannotReadWithdrawals(_place(node, source), "a mapping was expected")
    found: dict[str, yaml.Node] = {}
    for name, key, value in yamltext.fields(node):
        if name in found:
            raise CannotReadWithdrawals(_place(key, source), f"{name} is given twice", "keep one of the two")
        if name not in known:
            remedy = f"write one of {', '.join(sorted(known))}"
            raise CannotReadWithdrawals(_place(key, source), f"unknown field {name!r}", remedy)
        found[name] = value
    return found


def _scalar(node: yaml.Node, name: str, source: str) -> str:
    text = node.value.strip() if isinstance(node, yaml.ScalarNode) else ""
    if not text:
        raise CannotReadWithdrawals(_place(node, source), f"{name} holds no single value", "write one value")
    return str(text)


def _matching(node: yaml.Node, pattern: re.Pattern[str], name: str, source: str) -> str:
    text = _scalar(node, name, source)
    if not pattern.fullmatch(text):
        raise CannotReadWithdrawals(_place(node, source), f"{name} is {text!r}", f"write {_WANTED[name]}")
    return text


def _place(node: yaml.Node, source: str) -> str:
    return f"{source}:{node.start_mark.line + 1}"
