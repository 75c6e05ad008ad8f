"""GitHub's OpenAPI description (cut down): which requests exist, and what may stand in them and in their answers.

OpenAPI 3.0 schemas are JSON Schema Draft 4 (a `$ref` hides its neighbours, `exclusiveMinimum` is a boolean) with
`nullable` beside; that one word is translated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from jsonschema import Draft4Validator

_DATA = Path(__file__).resolve().parents[1] / "data"
PATHS = tuple(_DATA / f"github-openapi{part}.json" for part in ("", "-actions", "-around", "-releases", "-pulls"))
"""Cut from one release of the description; no file has a schema that an earlier one has."""


class Undescribed(AssertionError):
    """A request or an answer that GitHub's description does not have."""


def translated(node: Any) -> Any:
    """The schema with `nullable: true` said in the words of JSON Schema."""
    if isinstance(node, list):
        return [translated(item) for item in node]
    if not isinstance(node, dict):
        return node
    plain = {key: translated(value) for key, value in node.items() if key != "nullable"}
    return {"anyOf": [{"type": "null"}, plain]} if node.get("nullable") is True else plain


@cache
def description() -> Mapping[str, Any]:
    parts = [json.loads(path.read_text(encoding="utf-8")) for path in PATHS]
    sections: dict[str, dict[str, Any]] = {name: {} for part in parts for name in part["components"]}
    for part in parts:
        for name, section in part["components"].items():
            sections[name] |= section
    return {
        "paths": translated({path: verbs for part in parts for path, verbs in part["paths"].items()}),
        "components": translated(sections),
        "x-examples": {name: value for part in parts for name, value in part["x-examples"].items()},
    }


def example(name: str) -> dict[str, Any]:
    """An answer that GitHub gives as an example; its inner parts are shared: replace them, never change them."""
    return dict(description()["x-examples"][name])


@dataclass(frozen=True, slots=True)
class Call:
    """A request that the description has: its path as a pattern, and the values in it."""

    verb: str
    pattern: str
    values: tuple[tuple[str, str], ...]
    query: tuple[tuple[str, str], ...]

    def __getitem__(self, name: str) -> str:
        return dict(self.values)[name]

    def asked(self, name: str, default: str = "") -> str:
        return dict(self.query).get(name, default)

    @property
    def operation(self) -> Mapping[str, Any]:
        operation: Mapping[str, Any] = description()["paths"][self.pattern][self.verb.lower()]
        return operation


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """A path inside a repository may hold slashes, other values do not; the fixed words of a path come first."""
    expressions = (
        (path, re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(path)).replace("(?P<path>[^/]+)", "(?P<path>.+)"))
        for path in sorted(description()["paths"], key=lambda path: path.count("{"))
    )
    return tuple((path, re.compile(expression)) for path, expression in expressions)


@lru_cache(maxsize=1024)
def call(verb: str, target: str) -> Call:
    """The described request that a target is; raises Undescribed when there is none, or a parameter is wrong."""
    address = urlsplit(target)
    for pattern, expression in _patterns():
        found = expression.fullmatch(address.path)
        if found and verb.lower() in description()["paths"][pattern]:
            values = tuple((name, unquote(text)) for name, text in found.groupdict().items())
            made = Call(verb, pattern, values, tuple(parse_qsl(address.query, strict_parsing=bool(address.query))))
            _check_parameters(made)
            return made
    raise Undescribed(f"{verb} {target}")


def check_request(asked: Call, body: bytes) -> Any:
    """The decoded body, when the description allows it."""
    described = asked.operation.get("requestBody")
    if described is None:
        if body not in {b"", b"null", b"{}"}:
            raise Undescribed(f"{asked.verb} {asked.pattern} takes no body")
        return None
    decoded = json.loads(body)
    _hold(_schema_text(described), json.dumps(decoded))
    return decoded


def check_answer(asked: Call, status: int, text: str) -> None:
    """The status is described, and the body (or each item of a list) is what it says.

    An answer that differs from an earlier one only in its digits and shas is known: no schema of an answer looks at
    the value of a number.
    """
    _check_shape(asked.verb, asked.pattern, status, re.sub(r"\b[0-9a-f]{40}\b|\d+", "1", text))


@lru_cache(maxsize=4096)
def _check_shape(verb: str, pattern: str, status: int, text: str) -> None:
    asked = Call(verb, pattern, (), ())
    responses = asked.operation["responses"]
    answer = _resolved(responses[str(status)]) if str(status) in responses else None
    if answer is None:
        raise Undescribed(f"{asked.verb} {asked.pattern} does not answer {status}")
    if "content" not in answer:
        if text:
            raise Undescribed(f"{asked.verb} {asked.pattern}: {status} has no body")
        return
    for schema, item in _parts(answer["content"]["application/json"]["schema"], text):
        _hold(schema, item)


def _parts(schema: Mapping[str, Any], text: str) -> Iterator[tuple[str, str]]:
    """A list item by item, so that what was checked once is known again."""
    items = json.loads(text) if schema.get("type") == "array" else None
    if isinstance(items, list):
        yield from ((json.dumps(schema["items"], sort_keys=True), json.dumps(item)) for item in items)
    else:
        yield json.dumps(schema, sort_keys=True), text


def _check_parameters(asked: Call) -> None:
    described = [_resolved(one) for one in asked.operation.get("parameters", ())]
    known = {(one["in"], one["name"]): one["schema"] for one in described}
    for place, given in (("path", asked.values), ("query", asked.query)):
        for name, text in given:
            if (place, name) not in known:
                raise Undescribed(f"{asked.verb} {asked.pattern} has no {place} parameter {name}")
            schema = known[place, name]
            value: Any = int(text) if schema.get("type") == "integer" else text
            _hold(json.dumps(schema, sort_keys=True), json.dumps(value))


def _resolved(node: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in node:
        return node
    _, _, section, name = node["$ref"].split("/")
    resolved: Mapping[str, Any] = description()["components"][section][name]
    return resolved


def _schema_text(described: Mapping[str, Any]) -> str:
    return json.dumps(described["content"]["application/json"]["schema"], sort_keys=True)


@cache
def _validator(schema: str) -> Draft4Validator:
    return Draft4Validator({"allOf": [json.loads(schema)], "components": description()["components"]})


@lru_cache(maxsize=65536)
def _hold(schema: str, text: str) -> None:
    """Raises Undescribed with the first flaws of a JSON text; the same text is checked once."""
    flaws = [f"{flaw.json_path}: {flaw.message[:200]}" for flaw in _validator(schema).iter_errors(json.loads(text))]
    if flaws:
        raise Undescribed("; ".join(flaws[:3]))
