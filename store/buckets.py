"""Buckets of S3 and Google Cloud Storage, and of whatever speaks like S3, with the credentials of the environment.

No other module knows pyarrow's file systems. `AWS_ENDPOINT_URL` (or `AWS_ENDPOINT_URL_S3`) leads to another server than
Amazon's, `AWS_REGION` names the region; without it the bucket is asked for its own. `STORAGE_EMULATOR_HOST` leads to a
stand-in for Google's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from pyarrow import fs

from store.records import Trouble

HANDS = 16
"""Small objects take a round trip each: the waits are shared, the work is little."""

PATIENCE = timedelta(minutes=2)
"""For one request of Google's client, which tries for a quarter of an hour by itself."""

_KEYS: Mapping[str, str] = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_REGION, or the role of this machine",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, or the account of this machine",
}


class Bucket:
    """The objects under a prefix of a bucket. An object appears when its upload is complete."""

    hands = HANDS

    def __init__(self, address: str, environ: Mapping[str, str] = os.environ) -> None:
        """`address` is `s3://BUCKET/PREFIX` or `gs://BUCKET/PREFIX`."""
        parts = urlsplit(address)
        if not parts.netloc or parts.query or parts.fragment or "@" in parts.netloc:
            raise Trouble(f"{address!r} is no bucket: give {parts.scheme}://BUCKET/PREFIX")
        self.where = address
        self._bucket = parts.netloc
        self._keys = _KEYS[parts.scheme]
        self._root = str(PurePosixPath(parts.netloc, parts.path.strip("/")))
        try:
            self._system = _SYSTEMS[parts.scheme](parts.netloc, environ)
        except (OSError, ValueError) as flaw:
            raise self._trouble("reached", flaw) from None

    def sizes(self) -> dict[str, int]:
        """By name under the prefix; a prefix without objects is empty, a bucket that is not there is an error."""
        try:
            if self._system.get_file_info(self._bucket).type == fs.FileType.NotFound:
                raise Trouble(f"there is no bucket {self._bucket}: make it, or check the name")
            listed = self._system.get_file_info(fs.FileSelector(self._root, recursive=True, allow_not_found=True))
        except OSError as flaw:
            raise self._trouble("listed", flaw) from None
        files = (one for one in listed if one.type == fs.FileType.File)
        return {str(PurePosixPath(one.path).relative_to(self._root)): int(one.size) for one in files}

    def read(self, name: str) -> bytes:
        try:
            with self._system.open_input_stream(f"{self._root}/{name}") as stream:
                content: bytes = stream.read()
        except OSError as flaw:
            raise self._trouble("read", flaw) from None
        return content

    def write(self, name: str, content: bytes) -> None:
        try:
            with self._system.open_output_stream(f"{self._root}/{name}") as stream:
                stream.write(content)
        except OSError as flaw:
            raise self._trouble("written", flaw) from None

    def _trouble(self, what: str, flaw: Exception) -> Trouble:
        said = str(flaw).split(" Details:")[0]
        return Trouble(f"{self.where} cannot be {what} ({said}); credentials: {self._keys}; then run the command again")


def _s3(bucket: str, environ: Mapping[str, str]) -> fs.FileSystem:
    endpoint = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL") or ""
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    if endpoint:
        scheme, _, host = endpoint.rpartition("://")
        return fs.S3FileSystem(
            endpoint_override=host.rstrip("/"), scheme=scheme or "https", region=region or "us-east-1"
        )
    return fs.S3FileSystem(region=region or fs.resolve_s3_region(bucket))


def _gs(_: str, environ: Mapping[str, str]) -> fs.FileSystem:
    endpoint = environ.get("STORAGE_EMULATOR_HOST") or ""
    scheme, _, host = endpoint.rpartition("://")
    if endpoint:
        return fs.GcsFileSystem(
            anonymous=True, endpoint_override=host.rstrip("/"), scheme=scheme or "http", retry_time_limit=PATIENCE
        )
    return fs.GcsFileSystem(retry_time_limit=PATIENCE)


_SYSTEMS = {"s3": _s3, "gs": _gs}
