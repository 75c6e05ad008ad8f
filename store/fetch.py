"""Fetches a run from GitHub into a folder that the readers read: whole, or not at all.

Archives are kept beside the folder, under a name that no reader opens, until the last one has arrived; then the folder
is built there and put into its place by one rename. So a fetch that was broken off goes on where it was, and what
stands in the folder is always a whole answer of GitHub.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from store.github import Artifact, Expired, Reader, TooLarge
from store.readers import samples
from store.readers.decode import Unreadable
from store.readers.files import Parts, is_config, is_debug, walk
from store.readers.folder import SIDECARS
from store.records import Caveat, Run, Trouble
from store.reuse import Refusal, find_reuse
from store.runs import RunLink
from store.told import Told, tell

NOTE = "unreadable.json"
"""Stands for an archive that could not be read: the readers know no such shape, and count it as a rejection."""

_RESULTS = re.compile(r"bmk_|eval_|results_|run[-_]stats$|changelog[-_]metadata$|reused-ingest-metadata$")
"""Names of artifacts with rows, of all eras."""
_MEASURED = re.compile(r"bmk_|eval_|results_")
_WHOLE = ".whole"

PARALLEL = 4
"""Archives that come at the same time; GitHub asks for no more than a hundred requests at once, of all programs."""

Watch = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came of a fetch: every upload that belongs to the run (or to the asked attempt) is in one of the five."""

    folder: Path
    run: Run
    new: tuple[Artifact, ...]
    kept: tuple[Artifact, ...]
    """Were there already."""
    expired: tuple[Artifact, ...]
    unreadable: tuple[tuple[Artifact, str], ...]
    """New ones of which only a note is kept, with the reason."""
    skipped: tuple[Artifact, ...]
    """Logs, raw samples and whatever else holds no rows."""
    notes: tuple[Caveat, ...] = ()
    """What GitHub no longer tells, and why a run without results of its own has none of a pull request."""


def is_result(name: str) -> bool:
    """Whether an artifact of this name holds rows.

    >>> [is_result(name) for name in ("bmk_dsr1_tp8", "eval_results_all", "eval_server_logs_dsr1", "server_logs_3")]
    [True, True, False, False]
    """
    return bool(_RESULTS.match(name)) and not is_debug((name, ""))


def is_measured(name: str) -> bool:
    """Whether an artifact of this name holds measurements, and not only what stands around them.

    >>> [is_measured(name) for name in ("results_bmk", "eval_results_all", "run-stats", "changelog-metadata")]
    [True, True, False, False]
    """
    return is_result(name) and bool(_MEASURED.match(name))


def fetch(
    link: RunLink,
    reader: Reader,
    folder: Path,
    watch: Watch = lambda _: None,
    beside: Mapping[str, Any] = MappingProxyType({}),
) -> Fetched:
    """Bring the results of a run (of one attempt where the link names one) into a folder of its own.

    What the folder holds already is not fetched again; `watch` is told of each archive; `beside` holds more files of
    JSON for the folder, by name. Raises Trouble when GitHub does not give everything, or the folder is not ours: then
    the folder is as it was before.
    """
    folder = folder.resolve()
    if folder in {Path.cwd(), *Path.cwd().parents}:
        raise Trouble(f"{folder} is put into its place whole, which the current folder cannot be: name another")
    work = folder.with_name(f".{folder.name}.fetch")
    try:
        with _alone(work):
            _recover(folder, work)
            _check_place(folder, link.id)
            told = tell(link, reader)
            return _fetched(replace(told, sidecars={**told.sidecars, **beside}), reader, folder, work, watch)
    except OSError as flaw:
        raise Trouble(f"cannot write {folder}: {flaw.strerror or flaw}; name another folder with --into") from None


def fetch_with_source(
    link: RunLink, reader: Reader, folder: Path, watch: Watch = lambda _: None
) -> tuple[Fetched, ...]:
    """Bring a run, and beside it the sweep that it published instead of measuring, where it did that.

    The source lies in `<folder>-source-<id>`, with a `reuse.json` that says who asked for it and what published it.
    Why a run without measurements has no source is a note of the run.
    """
    found = fetch(link, reader, folder, watch)
    if any(is_measured(one.name) for one in (*found.new, *found.kept, *found.expired, *dict(found.unreadable))):
        return (found,)
    reuse = find_reuse(_sidecar(found.folder / "run.json"), reader)
    if reuse is None:
        return (found,)
    if isinstance(reuse, Refusal):
        return (replace(found, notes=(*found.notes, reuse.reason)),)
    source = RunLink(link.repository, reuse.source.id)
    beside = {"reuse.json": reuse.as_dict()}
    return found, fetch(source, reader, folder.with_name(f"{folder.name}-source-{source.id}"), watch, beside)


def _fetched(told: Told, reader: Reader, folder: Path, work: Path, watch: Watch) -> Fetched:
    results = [one for one in told.artifacts if is_result(one.name)]
    kept = [one for one in results if (folder / str(one.id)).is_dir()]
    brought = _brought([one for one in results if one not in kept], reader, work, watch)
    arrived = {one: archive for one, archive in brought.items() if archive is not None}
    reasons = _settle(told.sidecars, arrived, folder, work)
    return Fetched(
        folder=folder,
        run=told.run,
        new=tuple(one for one in arrived if one.id not in reasons),
        kept=tuple(kept),
        expired=tuple(one for one in brought if one not in arrived),
        unreadable=tuple((one, reasons[one.id]) for one in arrived if one.id in reasons),
        skipped=tuple(one for one in told.artifacts if not is_result(one.name)),
        notes=told.notes,
    )


def _brought(wanted: Sequence[Artifact], reader: Reader, work: Path, watch: Watch) -> dict[Artifact, Path | str | None]:
    """The archives, a few at a time; a reason for one that is too large, None for one that has expired.

    The first failure ends the others: what has arrived until then is kept.
    """
    pool = ThreadPoolExecutor(PARALLEL)
    try:
        coming = {pool.submit(_archive, one, reader, work): one for one in wanted}
        found = {}
        for done in as_completed(coming):
            found[coming[done]] = done.result()
            watch(1)
    except BaseException:
        reader.give_up()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return {one: found[one] for one in wanted}


# --- files --------------------------------------------------------------------------------------------------------


@contextmanager
def _alone(work: Path) -> Iterator[None]:
    """The work folder for this process alone; an empty one goes at the end."""
    work.mkdir(parents=True, exist_ok=True)
    handle = os.open(work, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise Trouble(f"another fetch is at work in {work}: wait for it") from None
    finally:
        os.close(handle)
        if work.is_dir() and not any(work.iterdir()):
            work.rmdir()


def _recover(folder: Path, work: Path) -> None:
    """Undo what a killed fetch has begun: the folder as it was, and archives that have arrived stay."""
    before = work / "before"
    if before.is_dir() and not folder.exists():
        before.rename(folder)
    for path in work.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.suffix != _WHOLE:
            path.unlink()


def _check_place(folder: Path, number: int) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    held = _sidecar(folder / "run.json")
    if not isinstance(held, dict) or held.get("id") != number:
        raise Trouble(f"{folder} holds something else than run {number}: name another folder with --into")


def _sidecar(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def _archive(artifact: Artifact, reader: Reader, work: Path) -> Path | str | None:
    """The archive in the work folder, where an earlier fetch may have brought it; or what became of it instead."""
    path = work / f"{artifact.id}{_WHOLE}"
    if path.exists():
        return path
    if artifact.expired:
        return None
    part = path.with_suffix(".part")
    try:
        reader.download(artifact, part)
    except Expired:
        return None
    except TooLarge as flaw:
        return f"archive_too_large: {flaw}"
    return part.rename(path)


def _settle(
    sidecars: Mapping[str, Any], arrived: Mapping[Artifact, Path | str], folder: Path, work: Path
) -> dict[int, str]:
    """Build the folder anew beside the old one and change places; gives the reasons of unreadable archives by id."""
    built = work / "built"
    if folder.exists():
        shutil.copytree(folder, built, copy_function=_linked)
    built.mkdir(exist_ok=True)
    reasons = dict(_unpacked(arrived, built, work))
    # Last, since they make the folder a run: without them it is none.
    for name, value in {**sidecars, "artifacts.json": _joined(sidecars["artifacts.json"], folder)}.items():
        path = built / name
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(value if isinstance(value, bytes) else _json(value))
    if folder.exists():
        folder.rename(work / "before")
    built.rename(folder)
    # A half-deleted folder must not bear the name of the one to go back to.
    if (work / "before").exists():
        (work / "before").rename(work / "over")
    shutil.rmtree(work)
    return reasons


def _json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()


def _linked(source: str, target: str) -> None:
    """One file under two names, where the file system can: nothing here writes into a file that stands."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _joined(listing: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    """The list with the entries that GitHub has dropped since and the folder still holds."""
    known = {one["id"] for one in listing}
    before = _sidecar(folder / "artifacts.json")
    old = before.get("artifacts") if isinstance(before, dict) else None
    dropped = [
        one
        for one in (old if isinstance(old, list) else [])
        if isinstance(one, dict) and one.get("id") not in known and (folder / str(one.get("id"))).is_dir()
    ]
    return {"total_count": len(listing + dropped), "artifacts": listing + dropped}


def _unpacked(arrived: Mapping[Artifact, Path | str], built: Path, work: Path) -> Iterator[tuple[int, str]]:
    """Lay each archive into a folder named by its id, or a note that says why not."""
    for artifact, archive in arrived.items():
        target = built / str(artifact.id)
        reason = archive if isinstance(archive, str) else _laid(archive, target, work / f"{artifact.id}.zip")
        if reason:
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            (target / NOTE).write_text(json.dumps({"unreadable": reason}, ensure_ascii=False) + "\n", encoding="utf-8")
            yield artifact.id, reason


def _laid(archive: Path, target: Path, name: Path) -> str:
    """Unpack what the readers read, within their bounds; the reason when an archive cannot be read whole."""
    target.mkdir()
    archive = archive.rename(name)
    try:
        for entry in walk(archive, _is_content):
            if isinstance(entry.content, Unreadable):
                return str(entry.content)
            path = target.joinpath(*entry.parts[1:])
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                file.writelines(samples.reduced(entry.lines) if entry.lines else [entry.content])
    except (FileExistsError, NotADirectoryError):
        return f"bad_archive: {entry.place} has the name of another member"
    finally:
        archive.unlink()
    return "" if any(target.iterdir()) else "bad_archive: no result file inside"


def _is_content(parts: Parts) -> bool:
    """An artifact may come from a stranger's branch: it must not say whose run it is, nor what was expected of it."""
    return parts[-1] not in SIDECARS and not is_config(parts) and not parts[-1].lower().endswith(".zip")
