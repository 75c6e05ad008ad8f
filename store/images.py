"""Image reference grammar: registry, repository, tag, digest, kind of tag, and `same | changed | unknown`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache


class Kind(StrEnum):
    """RELEASE and NIGHTLY are pinned by a version, a commit or a date; MOVING may be another image tomorrow."""

    RELEASE = "release"
    NIGHTLY = "nightly"
    CUSTOM = "custom"
    MOVING = "moving"
    DIGEST = "digest"


class Sameness(StrEnum):
    SAME = "same"
    CHANGED = "changed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Image:
    """A container reference in canonical form (`/`, never `#`)."""

    text: str
    registry: str
    repository: str
    tag: str | None
    digest: str | None
    kind: Kind
    version: tuple[int, ...] | None = None
    commit: str | None = None
    date: str | None = None

    @property
    def moving(self) -> bool:
        """True when the name alone does not say which bytes ran."""
        return self.digest is None and self.kind is Kind.MOVING


_DIGEST = re.compile(r"@(sha256:[0-9a-f]{64})$", re.IGNORECASE)
_VERSION = re.compile(
    r"(?:^|[^0-9.])v?(\d{1,18}(?:\.\d{1,18})+)(?![0-9])(?:[._-]?(?:rc|post|dev|alpha|beta|a|b)\.?\d+)*",
    re.IGNORECASE | re.ASCII,
)
_COMMIT = re.compile(r"(?:^|[-_.])g?([0-9a-f]{40}|(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,12})(?=$|[-_.])")
_DATE = re.compile(r"(?<!\d)(20\d{2}[-_.]?(?:0[1-9]|1[0-2])[-_.]?(?:0[1-9]|[12]\d|3[01]))(?:\d{4})?(?!\d)")
_SHORT_DATE = re.compile(r"(?:nightly|dev)[-_](?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?!\d)")
_ALWAYS_MOVING = re.compile(r"(?:^|[-_.])(?:latest|nightly|dev|main|master|edge|rolling)(?:$|[-_.])", re.IGNORECASE)
_NIGHTLY_WORD = re.compile(r"nightly|dev", re.IGNORECASE)


@lru_cache(maxsize=4096)
def parse(reference: str) -> Image:
    """Read a reference; a tag that names no version, commit or date is taken for moving, since nothing pins it.

    A word such as `latest` or `dev` beside a version moves too: it is the newest build of that version.

    >>> parse("nvcr.io#nvidia/tensorrt-llm/release:1.2.0rc6.post2").text
    'nvcr.io/nvidia/tensorrt-llm/release:1.2.0rc6.post2'
    >>> [parse(f"lmsysorg/sglang:{tag}").kind.value for tag in ("v0.5.9-cu130", "latest", "nightly-" + "a1" * 20)]
    ['release', 'moving', 'nightly']
    """
    text = reference.strip().replace("#", "/")
    found = _DIGEST.search(text)
    digest = found.group(1).lower() if found else None
    name = text[: found.start()] if found else text
    path, tag = _split_tag(name)
    registry, repository = _split_registry(path)
    version, commit, date = _version(tag), _commit(tag), _date(tag)
    return Image(
        text, registry, repository, tag, digest, _kind(tag, digest, version, commit, date), version, commit, date
    )


def _split_tag(name: str) -> tuple[str, str | None]:
    head, colon, tail = name.rpartition(":")
    return (head, tail) if colon and "/" not in tail else (name, None)


def _split_registry(path: str) -> tuple[str, str]:
    first, slash, rest = path.partition("/")
    is_host = bool(slash) and ("." in first or ":" in first or first == "localhost")
    return (first, rest) if is_host else ("", path)


def _version(tag: str | None) -> tuple[int, ...] | None:
    found = _VERSION.search(tag) if tag else None
    return tuple(int(part) for part in found.group(1).split(".")) if found else None


def _commit(tag: str | None) -> str | None:
    found = _COMMIT.search(tag.lower()) if tag else None
    return found.group(1) if found else None


def _date(tag: str | None) -> str | None:
    found = _DATE.search(tag) or _SHORT_DATE.search(tag) if tag else None
    return found.group(0) if found else None


def _kind(
    tag: str | None, digest: str | None, version: tuple[int, ...] | None, commit: str | None, date: str | None
) -> Kind:
    if tag is None:
        return Kind.DIGEST if digest else Kind.MOVING
    if commit or date:
        return Kind.NIGHTLY if _NIGHTLY_WORD.search(tag) else Kind.RELEASE if version else Kind.CUSTOM
    return Kind.RELEASE if version and not _ALWAYS_MOVING.search(tag) else Kind.MOVING


def canonical(reference: str | None, digest: str | None = None) -> str | None:
    """Canonical text of a reference, with a digest that was recorded beside it; None where there is no reference.

    >>> canonical("ghcr.io#a/b:v1.0", "sha256:" + "0" * 64) == "ghcr.io/a/b:v1.0@sha256:" + "0" * 64
    True
    """
    if not reference or not reference.strip():
        return None
    image = parse(reference)
    return f"{image.text}@{digest}" if digest and not image.digest else image.text


def compare(before: str | None, after: str | None) -> Sameness:
    """Did the software change? By digest where both have one; a moving tag without digest is unknown software.

    >>> compare("a/b:latest", "a/b:latest"), compare("a/b:v1.0", "a/b:v1.0"), compare("a/b:v1.0", "a/b:v1.1")
    (<Sameness.UNKNOWN: 'unknown'>, <Sameness.SAME: 'same'>, <Sameness.CHANGED: 'changed'>)
    """
    if not before or not after:
        return Sameness.UNKNOWN
    old, new = parse(before), parse(after)
    if old.digest and new.digest:
        return Sameness.SAME if old.digest == new.digest else Sameness.CHANGED
    if (old.registry, old.repository, old.tag) != (new.registry, new.repository, new.tag):
        return Sameness.CHANGED
    return Sameness.UNKNOWN if Kind.MOVING in (old.kind, new.kind) else Sameness.SAME
