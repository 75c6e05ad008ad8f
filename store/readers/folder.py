"""A folder of one run as `gh run download` leaves it: whose run it is, and which attempt made which artifact.

An artifact carries no attempt. It belongs to the attempt that was running when it was created; ids and list orders say
nothing (the older of two uploads may have the larger id).
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from store import identity
from store.readers import sidecars
from store.readers.decode import Unreadable, decode
from store.readers.files import Entry, Parts, is_config, is_streamed
from store.readers.sidecars import Beside
from store.records import Run
from store.runs import local_run, parse_run, parse_time

TELLING = frozenset({"run.json", "attempts.json", "artifacts.json"})
SIDECARS = TELLING | sidecars.NAMES
"""Names of the files that speak of a run: only in its own folder, never in an artifact."""
META = "meta_env.json"

_ARTIFACT = re.compile(r"(?:bmk_|eval_|results_|run[-_]stats|changelog[-_]metadata|reused-ingest-metadata)")
_ATTEMPT = re.compile(r"(?:^|[^a-z])attempts?[-_]?(\d{1,4})(?:\D|$)")
_RUNNER = re.compile(r"_([a-z0-9]+-[a-z0-9-]+)_\d+(?:_recipe-[0-9a-f]{16})?$")
_COLLECTED = re.compile(r"(?:results_|eval_results_all)")
_COLLECTED_FILE = re.compile(r"(?:agg_bmk|agg_eval_all|results_bmk|results_all|eval_results_all)\b")


@dataclass(frozen=True, slots=True)
class Upload:
    """An entry of the artifacts list. `rank` counts the uploads of its exact name in order of creation, from 1."""

    id: str
    name: str
    created_at: datetime
    rank: int = 1
    expired_on: str = ""
    """The day on which GitHub threw it away; empty while it can be had."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the files beside the artifacts say."""

    run: Run
    attempts: tuple[Run, ...] = ()
    """Oldest first; empty where no `attempts.json` tells them."""
    uploads: tuple[Upload, ...] = ()
    told: bool = False
    """True where a run object, or the caller, describes the run: then its own attempt is known."""
    meta: Mapping[Parts, Mapping[str, object]] | None = None
    broken: tuple[tuple[str, Unreadable], ...] = ()
    """Files that should have said something and could not be read: each place with its flaw."""
    beside: Beside = field(default_factory=Beside)

    def lost(self, read: Iterable[Parts]) -> Iterator[Upload]:
        """Uploads of results that have expired, and of which no file was read."""
        here = {self.upload(parts) for parts in read}
        yield from (one for one in self.uploads if one.expired_on and one not in here and _ARTIFACT.match(one.name))

    def upload(self, parts: Parts) -> Upload | None:
        """The upload that a file came from, by the name or id of its folder or its own: the newest of a name."""
        for part in (*parts[:-1], parts[-1].rpartition(".")[0]):
            same = [one for one in self.uploads if part in (one.id, one.name)]
            if same:
                return max(same, key=lambda one: one.created_at)
        return None

    def artifact(self, parts: Parts) -> str:
        """Name of the artifact that a file lies in, empty for a loose file."""
        found = self.upload(parts)
        if found:
            return found.name
        named = next((part for part in parts[:-1] if _ARTIFACT.match(part)), None)
        return named or (parts[-2] if len(parts) > 1 else "")

    def run_of(self, parts: Parts) -> Run:
        """The run attempt that made a file."""
        upload = self.upload(parts)
        if upload is None:
            return self._named_attempt(parts)
        if self.attempts:
            began = [one for one in self.attempts if one.started_at <= upload.created_at]
            return began[-1] if began else self.attempts[0]
        return self._ranked(upload)

    def _ranked(self, upload: Upload) -> Run:
        """Without a list of attempts the n-th upload of one name is of the n-th attempt at the earliest."""
        attempt = upload.rank
        if self.told:
            if upload.created_at >= self.run.started_at:
                return self.run
            attempt = min(attempt, max(self.run.attempt - 1, 1))
        first = min(one.created_at for one in self.uploads if one.rank == upload.rank)
        created = self.run.created_at if self.told else None
        return replace(self.run, attempt=attempt, started_at=created or first, conclusion=None)

    def _named_attempt(self, parts: Parts) -> Run:
        found = next((found for part in parts if (found := _ATTEMPT.search(part.lower()))), None)
        number = int(found[1]) if found else 0
        known = next((one for one in self.attempts if one.attempt == number), None)
        return known or (replace(self.run, attempt=number, conclusion=None) if number else self.run)

    def meta_of(self, parts: Parts) -> Mapping[str, object] | None:
        """`meta_env.json` of a file's folder or of the folder above it."""
        known = self.meta or {}
        return known.get(parts[:-1]) or known.get(parts[:-2])


def pool_of(artifact: str) -> str | None:
    """The pool of machines in the runner's name, which ends the name of a per-point artifact.

    >>> pool_of("bmk_dsr1_8k1k_fp8_tp8_conc64_h200-nv_03"), pool_of("bmk_dsr1_tp8_conc64_h200_1_recipe-" + "0" * 16)
    ('nv', None)
    """
    found = _RUNNER.search(artifact)
    return identity.hardware(found[1]).pool if found else None


def is_collected(artifact: str, name: str) -> bool:
    """True for the file that a last job collects out of all per-point artifacts."""
    return bool(_COLLECTED.match(artifact) or (not _ARTIFACT.match(artifact) and _COLLECTED_FILE.match(name)))


def run_folders(folder: Path) -> list[Path]:
    """Folders below (or equal to) this one that hold one run each: told by a file beside, or by artifact names."""
    paths = sorted(folder.iterdir())
    if any(path.name in TELLING or _is_artifact(path) for path in paths):
        return [folder]
    below = [path for path in paths if path.is_dir() and not path.is_symlink() and not path.name.startswith(".")]
    return [found for path in below for found in run_folders(path)]


def _is_artifact(path: Path) -> bool:
    return bool(_ARTIFACT.match(path.name)) and (path.is_dir() or path.suffix.lower() == ".zip")


def surroundings(walk: Callable[[Callable[[Parts], bool]], Iterable[Entry]], given: Run | None) -> Surroundings:
    """Read what stands beside the artifacts. Files that name no run stand for a local one, by their content."""
    values, meta, broken = _beside(walk(_tells))
    artifacts = values.get("artifacts.json")
    run, told = _run(values.get("run.json"), given, _run_of_artifacts(artifacts))
    if run is None:
        named = walk(lambda parts: not is_config(parts) and not is_streamed(parts))
        return Surroundings(_local(named), meta=meta, broken=broken)
    attempts = tuple(sorted(_attempts(values.get("attempts.json"), run), key=lambda one: (one.started_at, one.attempt)))
    beside = sidecars.read(walk(_beside_of(walk)), run)
    return Surroundings(
        run=beside.told(_current(run, attempts, told)),
        attempts=tuple(map(beside.told, attempts)),
        uploads=_uploads(artifacts),
        told=told,
        meta=meta,
        broken=broken,
        beside=beside,
    )


def is_content(parts: Parts) -> bool:
    """True of a file that may hold rows: no sidecar, and no config."""
    return parts[-1] not in SIDECARS and parts[-1] != META and not is_config(parts)


def _tells(parts: Parts) -> bool:
    """What an artifact holds may come from a stranger's branch: it must not say whose run it is."""
    return parts[-1] == META or (parts[-1] in TELLING and not _is_inside(parts))


def _is_inside(parts: Parts) -> bool:
    return any(_ARTIFACT.match(part) for part in parts[:-1])


def _beside_of(walk: Callable[[Callable[[Parts], bool]], Iterable[Entry]]) -> Callable[[Parts], bool]:
    """Chooses the sidecars that lie where the run is told, not in a folder of an artifact, whatever its name."""
    places: set[Parts] = set()

    def look(parts: Parts) -> bool:
        if parts[-1] in TELLING and not _is_inside(parts):
            places.add(parts[:-1])
        return False

    for _ in walk(look):
        pass
    home = min(places, key=len, default=())
    return lambda parts: sidecars.is_sidecar(parts) and sidecars.home_of(parts) == home and not _is_inside(parts)


def _beside(
    entries: Iterable[Entry],
) -> tuple[dict[str, object], dict[Parts, Mapping[str, object]], tuple[tuple[str, Unreadable], ...]]:
    values: dict[str, object] = {}
    meta: dict[Parts, Mapping[str, object]] = {}
    broken: list[tuple[str, Unreadable]] = []
    for entry in sorted(entries, key=lambda entry: len(entry.parts)):
        value = _value(entry)
        if isinstance(value, Unreadable):
            # A broken archive stands for all of its members, and is told where they are read.
            broken += [(entry.place, value)] if entry.parts[-1] in (*TELLING, META) else []
        elif entry.parts[-1] in TELLING:
            values.setdefault(entry.parts[-1], value)
        elif isinstance(value, dict):
            meta[entry.parts[:-1]] = value
    return values, meta, tuple(broken)


def _local(entries: Iterable[Entry]) -> Run:
    digests: list[str] = []
    newest = datetime.fromtimestamp(0, UTC)
    for entry in entries:
        content = entry.content if isinstance(entry.content, bytes) else entry.place.encode()
        digests.append(hashlib.sha256(content).hexdigest())
        newest = max(newest, entry.modified)
    return local_run(hashlib.sha256("".join(sorted(digests)).encode()).hexdigest(), newest)


def _value(entry: Entry) -> object:
    """What the file holds, or why it cannot be used."""
    if isinstance(entry.content, Unreadable):
        return entry.content
    try:
        decoded = decode(entry.content)
        if entry.parts[-1] == "run.json":
            return parse_run(decoded.value)
    except Unreadable as flaw:
        return flaw
    except ValueError as flaw:
        return Unreadable("unknown_shape", f"no run object: {flaw}")
    return decoded.flaw or decoded.value


def _run(told: object, given: Run | None, named: Run | None) -> tuple[Run | None, bool]:
    """The run object beside the files, else the caller's run unless the artifacts are of another, else theirs."""
    if isinstance(told, Run):
        return told, True
    fitting = given if named is None or (given and given.id == named.id) else None
    return fitting or named, fitting is not None


def _run_of_artifacts(listing: object) -> Run | None:
    """The run that an artifacts list names; it starts, as far as is known, with its first upload."""
    first = next(iter(_listed(listing)), None)
    uploads = _uploads(listing)
    inner = first.get("workflow_run") if first else None
    if not isinstance(inner, dict) or not uploads:
        return None
    try:
        return parse_run({**inner, "run_started_at": min(one.created_at for one in uploads).isoformat()})
    except ValueError:
        return None


def _attempts(listing: object, run: Run) -> Iterator[Run]:
    """Run objects, or at least number and start of each attempt."""
    for one in listing if isinstance(listing, list) else []:
        try:
            told = parse_run({"id": run.id, **one}) if isinstance(one, dict) else None
        except ValueError:
            continue
        if told and told.id == run.id:
            yield replace(run, attempt=told.attempt, started_at=told.started_at, conclusion=told.conclusion)


def _current(run: Run, attempts: tuple[Run, ...], told: bool) -> Run:
    """The attempt that speaks for the run: its own where it is told, else the latest."""
    own = next((one for one in attempts if told and one.attempt == run.attempt), None)
    return own or (attempts[-1] if attempts and not told else run)


def _uploads(listing: object) -> tuple[Upload, ...]:
    found: defaultdict[str, list[Upload]] = defaultdict(list)
    for one in _listed(listing):
        name, created = one.get("name"), one.get("created_at")
        try:
            moment = parse_time(created) if isinstance(created, str) else None
        except ValueError:
            continue
        if isinstance(name, str) and moment:
            found[name].append(Upload(str(one.get("id")), name, moment, expired_on=_expired_on(one)))
    return tuple(
        replace(upload, rank=rank)
        for same in found.values()
        for rank, upload in enumerate(sorted(same, key=lambda one: one.created_at), 1)
    )


def _expired_on(told: Mapping[str, object]) -> str:
    return str(told.get("expires_at") or "")[:10] or "?" if told.get("expired") is True else ""


def _listed(listing: object) -> list[dict[str, object]]:
    members = listing.get("artifacts") if isinstance(listing, dict) else listing
    return [one for one in members if isinstance(one, dict)] if isinstance(members, list) else []
