"""How long to try again, and how long to wait between tries; time and sleeping come in as arguments."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

FIRST_PAUSE = 1.0
"""Seconds after the first failure of a connection or a server; doubled each time in a row."""
LIMIT_PAUSE = 60.0
"""Seconds after a limit without a term: GitHub asks for at least a minute, more each time."""

_SECONDARY = ("secondary rate limit", "abuse detection", "retry your request again later", "wait a few minutes")
"""Words of the answers that stand for GitHub's secondary limits."""


@dataclass(frozen=True, slots=True)
class Patience:
    """A budget for a whole job: failed tries, and seconds of waiting. `clock` gives seconds since 1970."""

    tries: int = 12
    seconds: float = 300.0
    sleep: Callable[[float], object] | None = None
    """None sleeps in a way that `Waiting.end` can wake."""
    clock: Callable[[], float] = time.time
    spread: Callable[[], float] | None = None
    """A number from 0 to 1 for each pause that no answer names: it lasts so much of its second half, so that many who
    were sent away together do not come back together. None keeps every pause whole."""


@dataclass(frozen=True, slots=True)
class Delay:
    """What an answer says about trying again: a number of seconds, a moment, or neither."""

    limited: bool = False
    """True for a rate limit, False for a broken connection or server."""
    after: float | None = None
    """Seconds (Retry-After)."""
    until: float | None = None
    """Seconds since 1970 (X-RateLimit-Reset)."""


def delay_of(status: int, headers: Mapping[str, str], said: str) -> Delay | None:
    """When a request that GitHub answered so may be tried again; None when that is useless.

    >>> delay_of(403, {"Retry-After": "2"}, "You have exceeded a secondary rate limit")
    Delay(limited=True, after=2.0, until=None)
    >>> delay_of(403, {}, "Resource not accessible by integration")
    """
    told = {name.lower(): value for name, value in headers.items()}
    after = _number(told.get("retry-after"))
    if status == 429 or (status == 403 and _is_limit(told, said.lower())):
        spent = told.get("x-ratelimit-remaining") == "0"
        return Delay(True, after, _number(told.get("x-ratelimit-reset")) if spent else None)
    return Delay(after=after) if status >= 500 else None


class OutOfPatience(Exception):
    """The budget does not allow another try."""


class Waiting:
    """What is left of the budget of one job; its threads share it, and waiting at the same time is paid once."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._failures = 0
        self._waited = 0.0
        self._until = 0.0
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def end(self) -> None:
        """Wake who sleeps, and let nobody wait again: the job is over."""
        self._ended.set()

    def wait(self, delay: Delay, failures: int | None = None) -> None:
        """Sleep until the next try is welcome, or raise OutOfPatience at once when that is beyond the budget.

        `failures` of the same request in a row, from 1, set the pause where the answer names none; without it all
        failures of the job do: a write that fails again after a look in between has not recovered.
        """
        with self._lock:
            pause = self._booked(delay, failures)
        (self._patience.sleep or self._ended.wait)(pause)
        if self._ended.is_set():
            raise OutOfPatience("the job is over")

    def _booked(self, delay: Delay, failures: int | None) -> float:
        """The pause, taken from the budget."""
        self._failures += 1
        pause = self._pause(delay, failures or self._failures)
        now = self._patience.clock()
        cost = min(pause, max(0.0, now + pause - self._until))
        left = self._patience.seconds - self._waited
        if self._failures >= self._patience.tries:
            raise OutOfPatience(f"{self._failures} requests failed")
        if cost > left:
            raise OutOfPatience(f"the next try is due in {pause:.0f} s, and {left:.0f} s are left")
        self._waited += cost
        self._until = max(self._until, now + pause)
        return pause

    def _pause(self, delay: Delay, failures: int) -> float:
        if delay.after is not None:
            return max(0.0, delay.after)
        if delay.until is not None:
            # One second more: GitHub's clock and ours tell whole seconds.
            return max(0.0, delay.until - self._patience.clock()) + 1.0
        first = LIMIT_PAUSE if delay.limited else FIRST_PAUSE
        share = 1.0 if self._patience.spread is None else (1.0 + self._patience.spread()) / 2.0
        return first * 2.0 ** (failures - 1) * share


def _is_limit(headers: Mapping[str, str], said: str) -> bool:
    """Whether a 403 is a rate limit, and not a token without the right."""
    return (
        "retry-after" in headers
        or headers.get("x-ratelimit-remaining") == "0"
        or any(text in said for text in _SECONDARY)
    )


def _number(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdecimal() and len(text) < 12 else None
