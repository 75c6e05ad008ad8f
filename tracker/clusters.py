"""The only module that knows Ray: groups given out to a cluster that runs already, and their answers gathered.

Nothing is started or stopped here but a connection. Nodes read what they work on by themselves, so a task is a few
kilobytes. Ray gives a task of a lost worker or node to another one; what a node answers is taken only where it runs the
same versions and rounds numbers alike.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from typing import Any, NoReturn, TypeVar

from store.records import Trouble

T = TypeVar("T")
R = TypeVar("R")

RETRIES = 5
"""Times that a group is given out again when its worker or node is lost."""

BIRTHS = 3
"""Times that Ray's client server is asked for a process: on a busy machine 1 of 6 never came up, which costs 40 s."""

PATIENCE = 20.0
"""Seconds without an answer after which somebody looks whether any node is left."""

_PACKAGES = ("sweep-tracker", "numpy", "scipy", "polars", "duckdb")


class Unlike(Trouble):
    """A node whose answers could differ from those of this machine."""


def gather(
    work: Callable[[T], R], groups: Sequence[T], address: str, name: Callable[[T], str], watch: Callable[[int], None]
) -> list[R]:
    """What `work` gives for each group, in their order, from the cluster at an address."""
    with _connected(address) as ray:
        remote = ray.remote(num_cpus=1, max_retries=RETRIES)(attended)
        # What all groups share travels once to a node, not once a group.
        held, here = ray.put(work), kit()
        waiting = {remote.remote(here, held, group): n for n, group in enumerate(groups)}
        done: dict[int, R] = {}
        try:
            while waiting:
                for ref in _ready(ray, list(waiting), address):
                    n = waiting.pop(ref)
                    done[n] = _answer(ray, ref, name(groups[n]))
                    watch(1)
        finally:
            for ref in waiting:
                ray.cancel(ref)
    return [done[n] for n in range(len(groups))]


def _ready(ray: Any, waiting: list[Any], address: str) -> list[Any]:
    """What has been answered, perhaps nothing. Raises Trouble where nobody is left to answer."""
    ready, _ = ray.wait(waiting, timeout=PATIENCE)
    if not ready and not ray.cluster_resources().get("CPU"):
        raise Trouble(
            f"no node of the Ray cluster at {address} offers a processor: start one with `ray start --num-cpus N`"
        )
    found: list[Any] = ready
    return found


def _answer(ray: Any, ref: Any, group: str) -> Any:
    errors = ray.exceptions
    try:
        return ray.get(ref)
    except errors.RayTaskError as flaw:
        cause = getattr(flaw, "cause", flaw)
        if "failed to import" in str(cause) or isinstance(cause, ModuleNotFoundError):
            raise Trouble(
                "a node of the Ray cluster cannot import sweep-tracker: install it on every node (docs/cluster.md)"
            ) from flaw
        raise_named(cause, group)
    except errors.RayError as flaw:
        said = type(flaw).__name__
        raise Trouble(f"{group}: given out {RETRIES + 1} times, and each time its worker was lost ({said})") from flaw


def raise_named(flaw: BaseException, group: str) -> NoReturn:
    """Raise what a group raised, with its name: in the message where people read it, in a note where developers do."""
    if isinstance(flaw, Unlike) or not isinstance(flaw, Trouble):
        flaw.add_note(f"in the group: {group}")
        raise flaw
    raise Trouble(f"{group}: {flaw}") from flaw


# ---------------------------------------------------------------- the connection


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Ray, connected. A connection that the caller has made before is used and kept."""
    ray = _ray()
    if ray.is_initialized():
        yield ray
        return
    try:
        _connect(ray, address)
    except ImportError as flaw:
        raise Trouble(f"{address} needs Ray's client: pip install 'sweep-tracker[cluster]'") from flaw
    except Exception as flaw:
        said = (str(flaw).strip().splitlines() or [type(flaw).__name__])[0]
        raise Trouble(
            f"no connection to the Ray cluster at {address} ({said}): is it up, is this machine one of its nodes or the"
            " address ray://HOST:PORT, and do RAY_AUTH_MODE and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH fit it?"
        ) from flaw
    try:
        yield ray
    finally:
        ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    """Connect; Ray's client server, which forks a process for each client, now and then loses one at its birth."""
    for left in reversed(range(BIRTHS)):
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
            return
        except ConnectionError as flaw:
            if not left or "Initialization failure from server" not in str(flaw):
                raise
            ray.shutdown()


def _ray() -> Any:
    # A cluster that lets anybody in runs anybody's code: who has one says so by RAY_AUTH_MODE=disabled.
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray  # noqa: PLC0415 - large, and for this alone
    except ImportError:
        raise Trouble("--cluster needs Ray: pip install 'sweep-tracker[cluster]'") from None
    return ray


# ---------------------------------------------------------------- on a node


def attended(wanted: Mapping[str, str], work: Callable[[T], R], group: T) -> R:
    """One group on a node, where that is like the machine that asked; else Unlike, with what differs."""
    mine = kit()
    differing = [f"{name} {mine[name]} there, {told} here" for name, told in wanted.items() if mine[name] != told]
    if differing:
        raise Unlike(
            f"node {_address()} of the Ray cluster is unlike this machine: {', '.join(differing)}. "
            "Install one image everywhere (docs/cluster.md)"
        )
    return work(group)


def _address() -> str:
    address: str = _ray().util.get_node_ip_address()
    return address


@cache
def kit() -> dict[str, str]:
    """What must be the same wherever a group is worked on: versions, and how numbers are rounded.

    >>> sorted(kit())[-2:]
    ['scipy', 'sweep-tracker']
    """
    # Whoever only gives out work need not wait for the statistics.
    from tracker.settings import RULES_VERSION  # noqa: PLC0415

    return {
        "Python": ".".join(platform.python_version_tuple()[:2]),
        **{name: version(name) for name in _PACKAGES},
        "rules of judgement": RULES_VERSION,
        "rounding": _rounding(),
    }


def _rounding() -> str:
    """A digest of some arithmetic: processors of other kinds take other paths through the same libraries."""
    import numpy as np  # noqa: PLC0415 - not for `tracker --help`

    some = np.random.default_rng(17).standard_normal((67, 65))
    parts = (some @ some.T, np.exp(some), np.log(np.abs(some)), np.sin(some), some.sum(axis=0), np.cumsum(some))
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()[:12]
