"""Runs: a GitHub run object read, a local file that stands for a run, and whether a run may be a baseline."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import NoReturn

from store.records import Caveat, Provenance, Run

OFFICIAL_WORKFLOWS = frozenset(
    f".github/workflows/{name}.yml"
    for name in (
        "run-sweep full-sweep-scheduler full-sweep-1k1k-scheduler full-sweep-1k8k-scheduler full-sweep-8k1k-scheduler"
        " 1k1k-sweep 1k8k-sweep 8k1k-sweep"
    ).split()
)
"""The sweep's workflow file and the names it had since 2025-08: whatever else ran, ran on somebody's request."""

OFFICIAL_EVENTS = frozenset({"push", "schedule"})
OFFICIAL_BRANCH = "main"

SHORTENED = frozenset({"agentx-fast", "evals-only"})
"""Labels of sweeps that measured less of every point (AgentX for 20 minutes) or none: never official."""

TRIMMED = "sweep-enabled"
"""The label of a sweep of the lowest concurrency of each group. Its points are measured in full, so they count where
the run is official by itself; but the merge rules let no such sweep be reused, so no comment makes it official."""

FULL = frozenset(
    "full-sweep-fail-fast full-sweep-enabled full-sweep-fail-fast-no-canary non-canary-full-sweep-enabled".split()
)
"""Labels of whole sweeps: where one of them is set as well, the trimming one is left over from an earlier push."""

PATCHED = "engine-patch"
"""The label of a pull request that changes files of the engine: told beside the results."""

RENAMED = {"semianalysisai/inferencemax": "SemiAnalysisAI/InferenceX"}
"""Repositories that moved: old links redirect, so the store knows one name."""

_RUN_URL = re.compile(
    r"/(?P<repository>[\w.-]+/[\w.-]+)/actions/runs/(?P<id>\d{1,18})(?:/attempts/(?P<attempt>\d{1,6}))?", re.ASCII
)
"""A repository has letters, digits, `_`, `-` and `.` only: its name becomes a part of links."""
_FETCH = "fetch the run object with `gh api repos/OWNER/REPO/actions/runs/ID`"


@dataclass(frozen=True, slots=True)
class Standing:
    """May a run stand as a baseline? `reasons` name every field that says no."""

    official: bool
    reasons: tuple[Caveat, ...] = ()


class Kind(StrEnum):
    """How a run came to be, by what may be expected of it."""

    NIGHTLY = "nightly"
    PUSH = "push"
    PULL_REQUEST = "pull_request"
    MANUAL = "manual"
    REUSED = "reused"
    """Measured for a pull request; a run on main published it later instead of measuring again."""
    PUBLISHER = "publisher"
    """A run on main that measured nothing: it published what another run had measured, or nothing."""
    PUBLISHED = "published"
    """Known from the public API alone, which does not say what started it."""
    LOCAL = "local"
    OTHER = "other"


_KINDS = {
    "schedule": Kind.NIGHTLY,
    "push": Kind.PUSH,
    "pull_request": Kind.PULL_REQUEST,
    "pull_request_target": Kind.PULL_REQUEST,
    "workflow_dispatch": Kind.MANUAL,
    "repository_dispatch": Kind.MANUAL,
    "local": Kind.LOCAL,
}


@dataclass(frozen=True, slots=True)
class RunLink:
    """What a run's address says; `attempt` is None where it names none."""

    repository: str
    id: int
    attempt: int | None = None


def parse_run(obj: object, *, published: bool = False) -> Run:
    """Read a GitHub run object; a field that cannot be read raises ValueError with what to do.

    >>> parse_run({"id": 27485974465, "run_started_at": "2026-06-14T04:08:16Z", "event": "push"}).key
    RunKey(id=27485974465, attempt=1)
    """
    if not isinstance(obj, Mapping):
        raise ValueError(f"a run is a JSON object, not {type(obj).__name__}: {_FETCH}")
    created = _moment(obj, "created_at")
    started = _moment(obj, "run_started_at") or created
    if started is None:
        raise ValueError(f"run has neither run_started_at nor created_at, so it has no place in time: {_FETCH}")
    return Run(
        id=_count(obj, "id", None),
        attempt=_count(obj, "run_attempt", 1),
        started_at=started,
        repository=_repository(obj),
        path=_word(obj, "path"),
        event=_word(obj, "event"),
        head_branch=_word(obj, "head_branch"),
        head_sha=_word(obj, "head_sha"),
        status=_word(obj, "status"),
        conclusion=_word(obj, "conclusion"),
        title=_word(obj, "display_title") or _word(obj, "name"),
        url=_word(obj, "html_url"),
        pull_request=_pull_request(obj),
        created_at=created,
        published=published,
        head_repository=_named(obj.get("head_repository")),
    )


def local_run(content_hash: str, started_at: datetime) -> Run:
    """The run of files that name none: the same content is the same run wherever it lies.

    >>> local_run("ff" * 32, datetime(2026, 1, 1, tzinfo=UTC)).id
    -1152921504606846975
    """
    return Run(id=-max(int(content_hash[:15], 16), 1), attempt=1, started_at=started_at, event="local")


def dated(run: Run, day: datetime) -> Run:
    """A local run of one day: rows of several days in one file were not measured by one run. Other runs stay.

    >>> run = local_run("ff" * 32, datetime(2026, 1, 9, tzinfo=UTC))
    >>> one, other = (dated(run, datetime(2026, 1, day, tzinfo=UTC)) for day in (1, 2))
    >>> one.id == other.id, one.started_at.day
    (False, 1)
    """
    if run.event != "local":
        return run
    return local_run(hashlib.sha256(f"{run.id} {day.isoformat()}".encode()).hexdigest(), day)


def standing(run: Run) -> Standing:
    """Official is what the sweep measured on main, what somebody published, or what an authorised comment reused.

    Of these, what a fork's commit measured is not, nor what a label shortened. A conclusion does not matter: a green
    run of another workflow is not official, and a red sweep is. What was withdrawn later is not official either: that
    is the store's to say (`Store.standing`), since it may change any day.

    >>> run = parse_run({"id": 1, "run_started_at": "2026-06-14T04:08:16Z", "event": "push", "head_branch": "main",
    ...                  "path": ".github/workflows/e2e-tests.yml"})
    >>> [reason.code for reason in standing(run).reasons]
    ['unofficial_path']
    """
    reasons = (*_without_grounds(run), *_bars(run))
    return Standing(not reasons, reasons)


def _without_grounds(run: Run) -> tuple[Caveat, ...]:
    """Why nothing makes the run official; empty where one thing does."""
    if run.published or (run.reused_by is not None and not is_trimmed(run)):
        return ()
    path = (run.path or "").partition("@")[0]
    return (
        *((Caveat.of("unofficial_reuse", label=TRIMMED),) if run.reused_by is not None else ()),
        *((Caveat.of("unofficial_path", path=run.path),) if path not in OFFICIAL_WORKFLOWS else ()),
        *((Caveat.of("unofficial_event", event=run.event),) if run.event not in OFFICIAL_EVENTS else ()),
        *((Caveat.of("unofficial_branch", branch=run.head_branch),) if run.head_branch != OFFICIAL_BRANCH else ()),
    )


def _bars(run: Run) -> tuple[Caveat, ...]:
    """What forbids a run to be official whatever speaks for it."""
    home, head = run.repository.lower(), (run.head_repository or "").lower()
    fork = (Caveat.of("unofficial_fork", repository=run.head_repository),) if home and head and home != head else ()
    return (*fork, *(Caveat.of("unofficial_label", label=label) for label in run.labels if label in SHORTENED))


def is_trimmed(run: Run) -> bool:
    """Whether a run measured the lowest concurrency of each group alone."""
    return TRIMMED in run.labels and not FULL & set(run.labels)


def kind(run: Run, *, measured: bool = True) -> Kind:
    """The kind of a run; `measured` is whether it has rows of its own.

    >>> run = parse_run({"id": 1, "run_started_at": "2026-06-14T04:08:16Z", "event": "push"})
    >>> kind(run).value, kind(run, measured=False).value
    ('push', 'publisher')
    """
    if run.reused_by is not None and run.reused_by.id != run.id:
        return Kind.REUSED
    found = _KINDS.get(run.event or "", Kind.OTHER)
    if found is Kind.PUSH and not measured:
        return Kind.PUBLISHER
    return Kind.PUBLISHED if run.event is None and run.published else found


def provenance(run: Run) -> Provenance:
    """What the run itself says: it measured when it started."""
    return Provenance(kind(run), run.started_at, run.started_at)


def parse_url(url: str) -> RunLink | None:
    """Repository, id and attempt of a run's address; None for an address of something else.

    >>> parse_url("https://github.com/SemiAnalysisAI/InferenceMAX/actions/runs/20200037154/attempts/2")
    RunLink(repository='SemiAnalysisAI/InferenceX', id=20200037154, attempt=2)
    """
    found = _RUN_URL.search(url)
    if found is None or int(found["id"]) < 1:
        return None
    attempt = int(found["attempt"]) if found["attempt"] else None
    return RunLink(RENAMED.get(found["repository"].lower(), found["repository"]), int(found["id"]), attempt or None)


def parse_time(text: str) -> datetime:
    """An ISO time as aware UTC; a date alone is its midnight, a time without zone is UTC. ValueError otherwise.

    >>> parse_time("2026-06-14").isoformat(), parse_time("2026-09-03 22:38:12+00").isoformat()
    ('2026-06-14T00:00:00+00:00', '2026-09-03T22:38:12+00:00')
    """
    moment = datetime.fromisoformat(text.strip())
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text!r} is no time of UTC") from None


def _moment(obj: Mapping[str, object], field: str) -> datetime | None:
    value = obj.get(field)
    if value is None or value == "":
        return None
    try:
        return parse_time(value) if isinstance(value, str) else _refuse(field, value, "an ISO time")
    except (ValueError, OverflowError):
        return _refuse(field, value, "an ISO time")


def _count(obj: Mapping[str, object], field: str, default: int | None) -> int:
    value = obj.get(field)
    if value is None and default is not None:
        return default
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 19:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**63:
        return _refuse(field, value, "a positive number")
    return value


def _word(obj: Mapping[str, object], field: str) -> str | None:
    value = obj.get(field)
    if value is None or isinstance(value, str):
        return value or None
    return _refuse(field, value, "text")


def _refuse(field: str, value: object, wanted: str) -> NoReturn:
    raise ValueError(f"run field {field} is {str(value)[:60]!r}, not {wanted}: {_FETCH}")


def _repository(obj: Mapping[str, object]) -> str:
    name = _named(obj.get("repository"))
    if name:
        return name
    link = parse_url(_word(obj, "html_url") or "")
    return link.repository if link else ""


def _named(inner: object) -> str | None:
    """The full name of a repository object, or a bare name, as it is called today."""
    name = inner.get("full_name") if isinstance(inner, Mapping) else inner
    return RENAMED.get(name.lower(), name) if isinstance(name, str) and name else None


def _pull_request(obj: Mapping[str, object]) -> int | None:
    pulls = obj.get("pull_requests")
    first = pulls[0] if isinstance(pulls, Sequence) and not isinstance(pulls, str) and pulls else None
    number = first.get("number") if isinstance(first, Mapping) else None
    return number if isinstance(number, int) and not isinstance(number, bool) else None
