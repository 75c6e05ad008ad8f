"""YAML as text: nodes with places for reading, quoting for writing; no scalar ever changes its type.

Reading resolves nothing: `1.10`, `on` and `2026-01-01` stay the characters that stand in the file. Writing quotes so
that a YAML 1.1 reader (PyYAML, Ruby) and a YAML 1.2 reader (JavaScript, Go) give the same text back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from store import limits

# libyaml composes the 395 kB changelog in 20 ms, the pure Python loader in 330 ms.
_LOADER = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader

_RESOLVER_1_1 = yaml.resolver.Resolver()
_TYPED_1_2 = re.compile(
    r"null|true|false|[yn]|~|[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:e[-+]?\d+)?|0o[0-7]+|0x[0-9a-f]+|[-+]?\.inf|\.nan",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._*/-]*|https://[A-Za-z0-9._/-]+")

_CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff"
# Text that turns or hides what a reviewer sees is written as an escape, so that a diff shows it.
_HIDDEN = r"\u061c\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069"
_UNPRINTED = re.compile(f"[{_CONTROL}{_HIDDEN}]")
_ESCAPED = re.compile(f'["\\\\{_CONTROL}{_HIDDEN}]')
_SURROGATE = re.compile("[\ud800-\udfff]")

# Only escapes that both versions of YAML know.
_NAMED = {
    '"': '\\"',
    "\\": "\\\\",
    "\0": "\\0",
    "\a": "\\a",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\v": "\\v",
    "\f": "\\f",
    "\r": "\\r",
    "\x1b": "\\e",
    "\x85": "\\N",
    "\u2028": "\\L",
    "\u2029": "\\P",
}


class NotYaml(ValueError):
    """The text is no single YAML document. `index` is the character where the reader stopped."""

    def __init__(self, problem: str, index: int) -> None:
        super().__init__(problem)
        self.index = index


class CannotQuote(ValueError):
    """The text holds half of a surrogate pair, which no UTF-8 file can hold."""


def compose(text: str) -> yaml.Node | None:
    """The node tree of one document with every scalar as it stands; None for a document without content.

    A text that is longer, deeper or, with its aliases written out, larger than `limits` allow is NotYaml: whoever walks
    the tree may follow each alias and call itself at each level.
    """
    if len(text) > limits.YAML_BYTES:
        raise NotYaml(f"more than {limits.YAML_BYTES} characters", 0)
    try:
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise NotYaml(error.problem or error.context or "no YAML", mark.index if mark else 0) from error
    except yaml.reader.ReaderError as error:
        # The C reader tells a place in a text of its own, which may lie far behind the end of this one.
        strange = yaml.reader.Reader.NON_PRINTABLE.search(text)
        raise NotYaml(error.reason, strange.start() if strange else min(error.position, len(text))) from error
    except UnicodeEncodeError as error:
        raise NotYaml("half of a surrogate pair", error.start) from error
    except RecursionError as error:
        raise NotYaml("nested too deeply", 0) from error
    if root is not None and not isinstance(root, yaml.ScalarNode):
        _measure(root, {}, ())
    return root


def _measure(node: yaml.Node, known: dict[int, tuple[int, int]], above: tuple[int, ...]) -> tuple[int, int]:
    """Nodes and levels from here on, each alias counted as often as it stands: without ever writing one out."""
    here, at = id(node), node.start_mark.index
    if here in above:
        raise NotYaml("an alias inside of what it stands for", at)
    if len(above) >= limits.YAML_DEPTH:
        raise NotYaml(f"nested too deeply, more than {limits.YAML_DEPTH} levels", at)
    if here not in known:
        mapped = isinstance(node, yaml.MappingNode)
        inner = [one for pair in node.value for one in pair] if mapped else node.value
        sizes = [_measure(one, known, (*above, here)) for one in inner if not isinstance(one, yaml.ScalarNode)]
        nodes = 1 + len(inner) - len(sizes) + sum(size for size, _ in sizes)
        known[here] = nodes, 1 + max((levels for _, levels in sizes), default=0)
    nodes, levels = known[here]
    if nodes > limits.YAML_NODES:
        raise NotYaml(f"more than {limits.YAML_NODES} nodes with its aliases written out", at)
    if len(above) + levels > limits.YAML_DEPTH:
        raise NotYaml(f"nested too deeply, more than {limits.YAML_DEPTH} levels", at)
    return nodes, levels


def fields(node: yaml.MappingNode) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
    """Name, key node and value node of each field, in the order of the file, a repeated field as often as it stands."""
    for key, value in node.value:
        yield (key.value if isinstance(key, yaml.ScalarNode) else "?"), key, value


def values(text: str) -> dict[str, Any] | list[Any] | str:
    """A document as mappings, lists and texts, every scalar as it stands; ValueError for a field that stands twice.

    >>> values("{date: 2026-09-01, flags: [on, 1.10]}")
    {'date': '2026-09-01', 'flags': ['on', '1.10']}
    """
    node = compose(text)
    return _plain(node) if node is not None else ""


def _plain(node: yaml.Node) -> Any:
    if isinstance(node, yaml.SequenceNode):
        return [_plain(one) for one in node.value]
    if not isinstance(node, yaml.MappingNode):
        return node.value
    found: dict[str, Any] = {}
    for name, _, value in fields(node):
        if name in found:
            raise NotYaml(f"field {name!r} stands twice", 0)
        found[name] = _plain(value)
    return found


def is_text(node: yaml.Node) -> bool:
    """True for a scalar that every YAML reader takes for a string.

    >>> [is_text(compose(text)) for text in ("v0.5.12", "1.10", "'1.10'", "on", "1e3", "{a: b}")]
    [True, False, True, False, False, False]
    """
    if not isinstance(node, yaml.ScalarNode):
        return False
    return bool(node.style) or not _typed(node.value)


def _typed(text: str) -> bool:
    tag = _RESOLVER_1_1.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]  # stubs lack it
    return tag != "tag:yaml.org,2002:str" or bool(_TYPED_1_2.fullmatch(text))


def quoted(text: str) -> str:
    r"""One line of YAML that reads back as exactly this text.

    Double quotes; single quotes where the text itself is full of double quotes or backslashes.

    >>> print(quoted("a: b"), quoted("tab\t"), quoted('{"a": "b", "c": 1}'))
    "a: b" "tab\t" '{"a": "b", "c": 1}'
    """
    if _SURROGATE.search(text):
        raise CannotQuote("half of a surrogate pair")
    to_escape = text.count('"') + text.count("\\")
    if to_escape > max(2, text.count("'")) and not _UNPRINTED.search(text):
        return "'" + text.replace("'", "''") + "'"
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def scalar(text: str) -> str:
    """A name or a link plain where every reader takes it for text, quoted otherwise.

    >>> print(scalar("dsr1-fp8-*-trt"), scalar("2026-01-01"), scalar("*-mtp"))
    dsr1-fp8-*-trt "2026-01-01" "*-mtp"
    """
    return text if _PLAIN.fullmatch(text) and not _typed(text) else quoted(text)
