"""The places that an archive can be kept in, by the words that name them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType

from store.buckets import Bucket
from store.github import Access
from store.records import Trouble
from store.release import Release, WorkflowArtifact
from store.travel import Folder, Place

Rights = Callable[[], Access]
"""Asked for only by the places that need a token."""


@contextmanager
def opened(where: str, rights: Rights, *, writing: bool) -> Iterator[Place]:
    """The place that the words name: `s3://…`, `gs://…`, `release:TAG`, `artifact:NAME`, or a folder.

    Raises Trouble for words that name none, for a folder to read that is not there, for an artifact to write to.
    """
    scheme, colon, rest = where.partition(":")
    if colon and scheme in PLACES and rest.strip("/"):
        if writing and scheme in READ_ONLY:
            raise Trouble(f"{where} cannot be pushed to: push to a folder, and upload it with actions/upload-artifact")
        with PLACES[scheme](where, rest, rights) as place:
            yield place
        return
    if not where or re.match(r"[a-z0-9+]+:", where):
        raise Trouble(f"{where!r} names no place: give a folder, {', '.join(FORMS)}")
    if not writing and not Path(where).is_dir():
        raise Trouble(f"there is no folder {where}: name another place")
    yield Folder(Path(where))


@contextmanager
def _bucket(where: str, _: str, __: Rights) -> Iterator[Place]:
    yield Bucket(where)


@contextmanager
def _release(_: str, tag: str, rights: Rights) -> Iterator[Place]:
    release = Release(rights(), tag)
    with release:
        yield release


@contextmanager
def _artifact(_: str, name: str, rights: Rights) -> Iterator[Place]:
    artifact = WorkflowArtifact(rights(), name)
    with artifact:
        yield artifact


PLACES: Mapping[str, Callable[[str, str, Rights], AbstractContextManager[Place]]] = MappingProxyType(
    {"s3": _bucket, "gs": _bucket, "release": _release, "artifact": _artifact}
)
FORMS = ("s3://BUCKET/PREFIX", "gs://BUCKET/PREFIX", "release:TAG", "artifact:NAME")
MUTATES_GITHUB = frozenset({"release"})
"""Places that nothing is pushed to without `--send`."""
READ_ONLY = frozenset({"artifact"})
