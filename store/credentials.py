"""Who reads or writes GitHub: a token, or an app that asks for a token of its installation. None of it is ever shown.

The token of an installation is asked for with `requests`: PyGithub writes whole answers into its debug log, and this
answer is the token.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Protocol

import github
import requests

from store.records import Trouble
from store.runs import parse_time

READING: Mapping[str, str] = MappingProxyType({"actions": "read", "contents": "read", "pull_requests": "read"})
WRITING: Mapping[str, str] = MappingProxyType({"pull_requests": "write", "issues": "write", "checks": "write"})
RELEASING: Mapping[str, str] = MappingProxyType({"contents": "write"})
TIMEOUT = 20
"""Seconds for one request."""
EARLY = 300.0
"""Seconds before its end at which a token is asked for anew: longer than a download takes."""

_TOKEN, _APP, _KEY, _INSTALLATION = (
    "GITHUB_TOKEN",
    "GITHUB_APP_ID",
    "GITHUB_APP_PRIVATE_KEY",
    "GITHUB_APP_INSTALLATION_ID",
)
_NOBODY = (
    f"GitHub wants a token: put it into {_TOKEN}, or the id and the private key of a GitHub App into {_APP} and {_KEY}"
)


class Refused(Exception):
    """An answer of GitHub that is not the one asked for."""

    def __init__(self, status: int, headers: Mapping[str, str], said: str) -> None:
        super().__init__(f"{status} {said}".strip())
        self.status = status
        self.headers = headers


class Credentials(Protocol):
    """Gives a token that holds at this moment, and hides every one that it gave."""

    def token(self) -> str:
        """Raises what the request for a token raises; Trouble where asking again is useless."""

    def hidden(self, text: str) -> str:
        """The text with stars in the place of each secret."""

    def login(self) -> str | None:
        """Who writes with the token; None where only its owner knows."""


def is_token(text: str) -> bool:
    r"""True for a token without blanks: the exception of the HTTP library shows one with a line end.

    >>> is_token("ghs_16C7e42F"), is_token("ghs_16C7e42F\n"), is_token("")
    (True, False, False)
    """
    return bool(text) and text.isascii() and not any(char.isspace() or not char.isprintable() for char in text)


@dataclass(frozen=True, slots=True)
class Token:
    """A token that somebody gave."""

    text: str = field(repr=False)

    def __post_init__(self) -> None:
        if not self.text:
            raise Trouble(_NOBODY)
        if not is_token(self.text):
            raise Trouble("the token holds blanks, line ends or foreign characters: give it without them")

    def token(self) -> str:
        return self.text

    def hidden(self, text: str) -> str:
        return text.replace(self.text, "***")

    def login(self) -> str | None:
        return None


def credentials(
    environ: Mapping[str, str], repository: str, api: str, permissions: Mapping[str, str] = READING
) -> Credentials:
    """What the environment gives: GITHUB_TOKEN first, else the app. Nothing is asked of GitHub before it is needed.

    Raises Trouble with what to put where, and never shows what stands there.
    """
    text, app, key = (environ.get(name, "") for name in (_TOKEN, _APP, _KEY))
    if text or not (app or key):
        return Token(text)
    if not (app and key):
        raise Trouble(f"an app needs both {_APP} and {_KEY}: {_KEY if app else _APP} is empty")
    number = environ.get(_INSTALLATION, "").strip()
    if number and not (number.isascii() and number.isdecimal()):
        raise Trouble(f"{_INSTALLATION} is {number[:20]!r}, not a number")
    return Installation(_signer(app.strip(), key), repository, api, permissions, int(number) if number else None)


def _signer(app: str, key: str) -> Callable[[], str]:
    """Makes the short-lived word by which the app itself is known; the key is tried at once."""
    # A variable of a CI system often holds its line ends as two characters.
    auth = github.Auth.AppAuth(app, key.replace("\\n", "\n"))
    try:
        auth.create_jwt()
    # The library raises its own errors, those of cryptography, and ValueError; some of them quote the key.
    except Exception:
        raise Trouble(f"{_KEY} holds no RSA private key: give the PEM file that GitHub made for the app") from None
    return auth.create_jwt


class Installation:
    """The app on one repository. Its token lives an hour and is asked for again before that; many threads may ask."""

    def __init__(
        self, sign: Callable[[], str], repository: str, api: str, permissions: Mapping[str, str], number: int | None
    ) -> None:
        self._sign = sign
        self._repository = repository
        self._api = api.rstrip("/")
        self._permissions = dict(permissions)
        self._number = number
        self._slug = ""
        self._ends = 0.0
        self._issued: list[str] = []
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Installation({self._repository!r})"

    def token(self) -> str:
        """The token of now; a new one when the old one ends soon."""
        with self._lock:
            if time.time() > self._ends - EARLY:
                self._renew()
            return self._issued[-1]

    def hidden(self, text: str) -> str:
        for token in self._issued:
            text = text.replace(token, "***")
        return text

    def login(self) -> str | None:
        """The app's own login."""
        with self._lock:
            self._find()
        return f"{self._slug}[bot]" if self._slug else None

    def _renew(self) -> None:
        if self._number is None:
            self._find()
        path = f"/app/installations/{self._number}/access_tokens"
        try:
            told = self._ask("POST", path, {"permissions": self._permissions})
        except Refused as answer:
            if answer.status != 422:
                raise
            # The installation was not granted all of these: then it has what its owner gave it.
            told = self._ask("POST", path, {})
        token, ends = told.get("token"), told.get("expires_at")
        if not isinstance(token, str) or not is_token(token) or not isinstance(ends, str):
            raise Trouble("GitHub's answer to the request for a token of the app holds none")
        self._issued.append(token)
        self._ends = _moment(ends).timestamp()

    def _find(self) -> None:
        """Which installation of the app the repository has, and how the app is called."""
        told = self._ask("GET", f"/repos/{self._repository}/installation", None)
        self._slug = str(told.get("app_slug") or "")
        found = told.get("id")
        if self._number is None:
            if not isinstance(found, int):
                raise Trouble("GitHub's answer names no installation of the app")
            self._number = found

    def _ask(self, verb: str, path: str, body: Any) -> dict[str, Any]:
        word = self._sign()

        # A function keeps requests from looking into ~/.netrc.
        def signed(request: requests.PreparedRequest) -> requests.PreparedRequest:
            request.headers["Authorization"] = f"Bearer {word}"
            return request

        headers = {"Accept": "application/vnd.github+json"}
        answer = requests.request(
            verb,
            f"{self._api}{path}",
            json=body,
            auth=signed,
            headers=headers,
            timeout=TIMEOUT,
            allow_redirects=False,
        )
        told = _object(answer)
        if answer.status_code in {200, 201}:
            return told
        said = str(told.get("message") or "").replace(word, "***")
        if answer.status_code in _REMEDIES:
            raise Trouble(f"GitHub refuses the app: {answer.status_code} {said}; {_REMEDIES[answer.status_code]}")
        raise Refused(answer.status_code, answer.headers, said)


def _object(answer: requests.Response) -> dict[str, Any]:
    try:
        told = answer.json()
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _moment(text: str) -> datetime:
    try:
        return parse_time(text)
    except ValueError:
        raise Trouble("GitHub's token of the app ends at no time that can be read") from None


_REMEDIES: Mapping[int, str] = MappingProxyType(
    {
        401: f"check that {_KEY} is a key of the app {_APP}, and the clock of this machine",
        404: f"install the app on the repository, and check {_INSTALLATION} where it is given",
    }
)
