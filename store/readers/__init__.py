"""Readers: any file about a sweep to `Batch`es, one per run attempt. One file per source shape, one table of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from store.readers import api, api_samples, bundle, export, lm_eval, notes, rows, samples
from store.readers.decode import Decoded, Unreadable, decode
from store.readers.document import Document, Source
from store.readers.files import Entry, Parts, walk
from store.readers.folder import TELLING, Surroundings, is_collected, is_content, pool_of, run_folders, surroundings
from store.readers.settle import settle
from store.records import Batch, Run

__all__ = ["SOURCES", "Source", "read"]

SOURCES = (
    Source("csv export", export.fits, export.read),
    Source("run bundle", bundle.fits, bundle.read, alone=True),
    Source("changelog metadata", notes.is_changelog, notes.changelog),
    Source("workflow info", api.is_workflow_info, api.workflow_info),
    Source("harness results", lm_eval.fits, lm_eval.read),
    Source("run stats", notes.is_run_stats, notes.run_stats),
    Source("rows", rows.fits, rows.read),
    Source("unused", notes.is_unused, notes.nothing),
)
"""File shapes in order of trial: the first that fits reads the file."""

_PROBED = 8
"""Members of an array whose keys tell its shape; the first may be a broken one."""


def read(paths: Iterable[Path], run: Run | None = None) -> Iterator[Batch]:
    """Everything found under the paths, grouped by run attempt; `run` stands for rows that name no run themselves.

    A folder with artifacts is one run; files named one by one are a run each, or all of them are of `run`. Answers of
    the public API are joined over all paths, since each tells another part of a run. A file that does not exist raises
    FileNotFoundError; whatever else is wrong becomes a rejection.
    """
    held: list[Batch] = []
    pages = api_samples.Pages()
    for unit in _units([Path(path) for path in paths], together=run is not None):
        for batch in _read_unit(unit, run, pages):
            if batch.run.published:
                held.append(batch)
            else:
                yield batch
    yield from api.published(pages.attached(held))


class _Unit(tuple[tuple[Path, frozenset[Path]], ...]):
    """Places of one run: folders or files, each with the folders below it that are runs of their own."""

    def entries(self, wanted: Callable[[Parts], bool]) -> Iterator[Entry]:
        """The wanted files, read one after the other."""
        for root, skip in self:
            yield from walk(root, wanted, skip)


def _units(paths: list[Path], together: bool) -> Iterator[_Unit]:
    loose: list[tuple[Path, frozenset[Path]]] = []
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist: name a file, a folder of artifacts or an archive")
        if not path.is_dir():
            loose.append((path, frozenset()))
            continue
        runs = run_folders(path)
        yield from (_Unit(((one, frozenset()),)) for one in runs)
        if runs != [path]:
            yield _Unit(((path, frozenset(runs)),))
    yield from [_Unit(loose)] if together else _apart(loose)


def _apart(loose: list[tuple[Path, frozenset[Path]]]) -> Iterator[_Unit]:
    """Each file by itself, unless a run object that lies in its folder was named with it."""
    told = {path.parent for path, _ in loose if path.name in TELLING}
    for folder in sorted(told):
        yield _Unit(one for one in loose if one[0].parent == folder)
    yield from (_Unit((one,)) for one in loose if one[0].parent not in told)


def _read_unit(unit: _Unit, run: Run | None, pages: api_samples.Pages) -> Iterator[Batch]:
    around = surroundings(unit.entries, run)
    # A run that is described and measured nothing is a fact too.
    held = [] if around.run is run or not around.told else [Batch(around.run)]
    held += [Document(place, None, around.run).rejected("", bad.reason, bad.detail) for place, bad in around.broken]
    read: list[Parts] = []
    sheets: list[samples.Sheet] = []
    for entry in unit.entries(is_content):
        read.append(entry.parts)
        if entry.lines:
            sheet, flaws = samples.sheet(_placed(entry, around), entry.lines)
            sheets.append(sheet)
            held.append(flaws)
            continue
        for batch, alone in _read_entry(entry, around, pages):
            if alone or batch.run.published:
                yield batch
            else:
                held.append(batch)
    for upload in around.lost(read):
        document = Document(f"artifact {upload.name}", None, around.run)
        held.append(document.rejected("", "artifact_expired", upload.expired_on))
    if around.beside:
        asked = tuple(dict.fromkeys(entry for batch in held for entry in batch.changelog))
        held.append(around.beside.batch(around.run, asked))
    yield from settle(samples.attached(held, sheets))


def _read_entry(entry: Entry, around: Surroundings, pages: api_samples.Pages) -> Iterator[tuple[Batch, bool]]:
    document, decoded = _document(entry, around)
    if isinstance(decoded, Unreadable):
        yield document.rejected("", decoded.reason, decoded.detail), False
        return
    if api_samples.fits(document):
        yield from ((batch, False) for batch in pages.take(document))
        return
    source = _source(document)
    if source is None:
        yield document.rejected("", "unknown_shape", document.name), False
        return
    yield from ((batch, source.alone) for batch in source.read(document))
    if decoded.flaw:
        yield document.rejected("", decoded.flaw.reason, decoded.flaw.detail), False


def _document(entry: Entry, around: Surroundings) -> tuple[Document, Decoded | Unreadable]:
    decoded = _decoded(entry)
    return _placed(entry, around, decoded.value if isinstance(decoded, Decoded) else None), decoded


def _placed(entry: Entry, around: Surroundings, value: object = None) -> Document:
    upload, artifact = around.upload(entry.parts), around.artifact(entry.parts)
    return Document(
        file=entry.place,
        value=value,
        run=around.run_of(entry.parts),
        artifact=artifact,
        created_at=upload.created_at if upload else None,
        collected=is_collected(artifact, entry.parts[-1]),
        pool=pool_of(artifact),
        meta=around.meta_of(entry.parts),
    )


def _decoded(entry: Entry) -> Decoded | Unreadable:
    if isinstance(entry.content, Unreadable):
        return entry.content
    if entry.parts[-1].lower().endswith(".csv"):
        return Decoded(entry.content.decode("utf-8-sig", "replace"))
    try:
        return decode(entry.content)
    except Unreadable as flaw:
        return flaw


def _source(document: Document) -> Source | None:
    value = document.value
    members = value if isinstance(value, list) else [value]
    objects = (member for member in members if isinstance(member, dict))
    keys = frozenset(key for _, member in zip(range(_PROBED), objects, strict=False) for key in member)
    return next((source for source in SOURCES if source.fits(document, keys)), None)
