"""Buckets of S3 and Google Cloud Storage, and of whatever speaks like S3, with the credentials of the environment.

No other module knows pyarrow's file systems. `AWS_ENDPOINT_URL` (or `AWS_ENDPOINT_URL_S3`) leads to another server than
Amazon's, `AWS_REGION` names the region; without it the bucket is asked for its own. `STORAGE_EMULATOR_HOST` leads to a
stand-in for Google's.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Final, TypeVar
from urllib.parse import urlsplit

from pyarrow import fs

from store.archive import digest_of
from store.patience import Delay, OutOfPatience, Patience, Waiting
from store.records import Trouble

T = TypeVar("T")

HANDS = 16
"""Small objects take a round trip each: the waits are shared, the work is little."""

PATIENCE = Patience(tries=400, seconds=90.0, spread=random.random)
"""For what is done with one bucket; the waits of its hands at the same time are paid once."""

TRIES: Final = 6
"""Of one request: pauses of 1, 2, 4, 8 and 16 s at most, each shortened by chance."""

SILENCE: Final = timedelta(seconds=30)
"""Without an answer a request counts as failed."""

ASIDE: Final = "broken"
"""What is not what its name says is copied to names under this one before a right file takes its place."""

_TRANSIENT: Final = re.compile(
    r"SLOW_DOWN|THROTTLING|REQUEST_LIMIT|SERVICE_UNAVAILABLE|INTERNAL_FAILURE|NETWORK_CONNECTION|REQUEST_TIMEOUT"
    r"|HTTP status (?:429|5\d\d)|SlowDown|curlCode"
)
"""In what Arrow says of a failed request: to try again may help."""

_REMEDIES: Final = (
    (re.compile(r"Expired", re.IGNORECASE), "the credentials have expired: get new ones"),
    (re.compile(r"NO_SUCH_BUCKET|NoSuchBucket"), "there is no such bucket: make it, or check the name"),
    (re.compile(r"INVALID_ACCESS_KEY_ID|INVALID_CLIENT_TOKEN_ID"), "the server does not know AWS_ACCESS_KEY_ID"),
    (re.compile(r"SIGNATURE_DOES_NOT_MATCH"), "AWS_SECRET_ACCESS_KEY is not the key of AWS_ACCESS_KEY_ID"),
    (re.compile(r"REQUEST_TIME_TOO_SKEWED"), "set the clock of this machine"),
    (re.compile(r"ACCESS_DENIED|HTTP status 403"), "the credentials lack a right there: docs/archive.md lists which"),
    (re.compile(r"SLOW_DOWN|SlowDown|HTTP status (?:429|503)"), "it asks for fewer requests: run it again later"),
)
"""What to do, by what Arrow says of a request that failed for good."""

_KEYS: Mapping[str, str] = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_REGION, or the role of this machine",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, or the account of this machine",
}
_SECRETS: Final = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


class Bucket:
    """The objects under a prefix of a bucket. An object appears when its upload is complete.

    Every request is tried again a bounded number of times where that may help; all of them may be repeated without
    harm. Raises Trouble, which names what to do, and no secret.
    """

    hands = HANDS

    def __init__(self, address: str, environ: Mapping[str, str] = os.environ, patience: Patience = PATIENCE) -> None:
        """`address` is `s3://BUCKET/PREFIX` or `gs://BUCKET/PREFIX`."""
        parts = urlsplit(address)
        if parts.scheme not in _SYSTEMS or not parts.netloc or parts.query or parts.fragment or "@" in parts.netloc:
            raise Trouble(f"{address!r} is no bucket: give {parts.scheme or 's3'}://BUCKET/PREFIX")
        self.where = address
        self._bucket = parts.netloc
        self._keys = _KEYS[parts.scheme]
        self._root = str(PurePosixPath(parts.netloc, parts.path.strip("/")))
        self._secrets = tuple(environ[name] for name in _SECRETS if environ.get(name))
        self._waiting = Waiting(patience)
        self._system = self._tried("reached", lambda: _SYSTEMS[parts.scheme](parts.netloc, environ))

    def sizes(self) -> dict[str, int]:
        """By name under the prefix; a prefix without objects is empty, a bucket that is not there is an error."""
        return {name: size for name, (size, _) in self.listed().items()}

    def listed(self) -> dict[str, tuple[int, datetime]]:
        """Size of every object, and when it was written, by name under the prefix.

        The whole listing, or Trouble: a page that fails makes no shorter list.
        """
        # The listing goes first: its errors have words, those of a question for the bucket alone have none.
        chosen = fs.FileSelector(self._root, recursive=True, allow_not_found=True)
        listed = self._tried("listed", lambda: self._system.get_file_info(chosen))
        if not listed and self._looked(self._bucket).type == fs.FileType.NotFound:
            raise Trouble(f"there is no bucket {self._bucket}: make it, or check the name")
        files = ((one.path, one) for one in listed if one.type == fs.FileType.File)
        root = PurePosixPath(self._root)
        return {str(PurePosixPath(path).relative_to(root)): (int(one.size), one.mtime) for path, one in files}

    def _looked(self, path: str) -> fs.FileInfo:
        return self._tried("listed", lambda: self._system.get_file_info(path))

    def read(self, name: str) -> bytes:
        def content() -> bytes:
            with self._system.open_input_stream(f"{self._root}/{name}") as stream:
                found: bytes = stream.read()
            return found

        return self._tried("read", content)

    def write(self, name: str, content: bytes) -> None:
        """Put an object, in place of another one of that name."""

        def done() -> None:
            with self._system.open_output_stream(f"{self._root}/{name}") as stream:
                stream.write(content)

        # Arrow ends an object even when its stream is left by an exception. Ctrl-C strikes the main thread alone, so
        # that in another one nothing comes between the bytes and their end.
        with ThreadPoolExecutor(1) as apart:
            apart.submit(self._tried, "written", done).result()

    def put(self, name: str, content: bytes) -> None:
        """Put a file named by its content unless it is there; what is there and differs is kept under `broken/`."""
        if self._looked(f"{self._root}/{name}").type == fs.FileType.File:
            held = self.read(name)
            if held == content:
                return
            self.write(f"{ASIDE}/{name}.{digest_of(held)}", held)
        self.write(name, content)

    def _tried(self, what: str, call: Callable[[], T]) -> T:
        """What a call gives, tried again while that may help and the patience lasts."""
        failures = 0
        while True:
            try:
                return call()
            except (OSError, ValueError) as flaw:
                failures += 1
                if failures >= TRIES or not _TRANSIENT.search(str(flaw)):
                    raise self._trouble(what, flaw) from None
                self._wait(what, flaw, failures)

    def _wait(self, what: str, flaw: Exception, failures: int) -> None:
        try:
            self._waiting.wait(Delay(), failures)
        except OutOfPatience:
            raise self._trouble(what, flaw) from None

    def _trouble(self, what: str, flaw: Exception) -> Trouble:
        said = re.split(r"[;.]? Details?:| \(Request ID", str(flaw))[0]
        for secret in self._secrets:
            said = said.replace(secret, "***")
        remedy = next((words for pattern, words in _REMEDIES if pattern.search(said)), f"credentials: {self._keys}")
        return Trouble(f"{self.where} cannot be {what} ({said}); {remedy}; then run the command again, nothing is lost")


def _s3(bucket: str, environ: Mapping[str, str]) -> fs.FileSystem:
    endpoint = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL") or ""
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    # One request for one small object, not three; and one loop that tries again, ours, which knows all hands.
    ways = {
        "allow_delayed_open": True,
        "retry_strategy": fs.AwsStandardS3RetryStrategy(max_attempts=1),
        "request_timeout": SILENCE.total_seconds(),
    }
    if endpoint:
        scheme, _, host = endpoint.rpartition("://")
        return fs.S3FileSystem(
            endpoint_override=host.rstrip("/"), scheme=scheme or "https", region=region or "us-east-1", **ways
        )
    return fs.S3FileSystem(region=region or fs.resolve_s3_region(bucket), **ways)


def _gs(_: str, environ: Mapping[str, str]) -> fs.FileSystem:
    endpoint = environ.get("STORAGE_EMULATOR_HOST") or ""
    scheme, _, host = endpoint.rpartition("://")
    # For one request: Google's client tries for a quarter of an hour by itself.
    limit = timedelta(minutes=2)
    if endpoint:
        return fs.GcsFileSystem(
            anonymous=True, endpoint_override=host.rstrip("/"), scheme=scheme or "http", retry_time_limit=limit
        )
    return fs.GcsFileSystem(retry_time_limit=limit)


_SYSTEMS = {"s3": _s3, "gs": _gs}
