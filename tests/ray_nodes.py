"""A Ray cluster of two nodes on loopback, with a token, stopped by the ids of its processes."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

HEAD, SECOND = "127.0.0.2", "127.0.0.3"
MISSING = "a Ray cluster for the test: pip install 'sweep-tracker[cluster]'"
ROOT = Path(__file__).resolve().parents[1]
STARTING = 120
MEMORY = 80_000_000
"""Bytes of each node's object store: about the least that Ray takes."""


def found() -> bool:
    return find_spec("ray") is not None and find_spec("grpc") is not None


@dataclass(frozen=True)
class Nodes:
    """Two nodes of one processor each. The driver stands on the first, or outside (`client`)."""

    address: str
    client: str
    environment: Mapping[str, str]
    """What a process needs to be let in."""
    head: subprocess.Popen[bytes]
    second: subprocess.Popen[bytes]

    def kill_second(self) -> None:
        """The whole second node: its raylet first, with which its workers go."""
        kill(raylet(self.second))
        self.second.wait(STARTING)

    def kill_worker(self) -> bool:
        """One worker that is at work, wherever; False where none is."""
        for node in (self.second, self.head):
            for pid, name in descendants(node.pid).items():
                if name.startswith("ray::attended"):
                    kill(pid)
                    return True
        return False


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def raylet(node: subprocess.Popen[bytes]) -> int:
    return next(pid for pid, name in descendants(node.pid).items() if "raylet/raylet" in name)


def descendants(pid: int) -> dict[int, str]:
    """Processes below one, with their command lines."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents.setdefault(int(entry.read_text().rpartition(")")[2].split()[1]), []).append(int(entry.parent.name))
    below, found_ = [pid], {}
    while below:
        for child in parents.get(below.pop(), []):
            below.append(child)
            with suppress(OSError):
                found_[child] = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found_


def _free(address: str) -> int:
    with closing(socket.create_server((address, 0))) as probe:
        return int(probe.getsockname()[1])


@contextmanager
def two_nodes() -> Iterator[Nodes]:
    folder = tempfile.mkdtemp(prefix="ray-")  # short: sockets stand below it
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32), "RAY_USAGE_STATS_ENABLED": "0"}
    port, client = _free(HEAD), _free(HEAD)
    address = f"{HEAD}:{port}"
    begun: list[subprocess.Popen[bytes]] = []
    try:
        # `--include-dashboard=false`: no page is served.
        first = ("--head", f"--port={port}", f"--ray-client-server-port={client}", "--include-dashboard=false")
        begun.append(_node(HEAD, (*first, f"--temp-dir={folder}"), token, Path(folder)))
        _await_port(HEAD, port, begun[0])
        begun.append(_node(SECOND, (f"--address={address}",), token, Path(folder)))
        _await_workers(begun)
        yield Nodes(address, f"ray://{HEAD}:{client}", token, *begun)
    finally:
        for node in reversed(begun):
            stop(node)
        shutil.rmtree(folder, ignore_errors=True)


def _node(address: str, words: tuple[str, ...], token: Mapping[str, str], folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(Path(sysconfig.get_path("scripts"), "ray")), "start", "--block", *words]
    command += [f"--node-ip-address={address}", "--num-cpus=1", f"--object-store-memory={MEMORY}"]
    command += ["--include-log-monitor=false", "--disable-usage-stats"]
    # Nodes of this machine import what the tests define. Ray's client server forks beside threads of gRPC, whose own
    # preparation for that hangs one time in six.
    environment = {**os.environ, "GRPC_ENABLE_FORK_SUPPORT": "0", **token, "PYTHONPATH": str(ROOT)}
    with (folder / f"{address}.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=ROOT)


def _await_port(address: str, port: int, node: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + STARTING
    while time.monotonic() < until and node.poll() is None:
        with suppress(OSError), closing(socket.create_connection((address, port), 1)):
            return
        time.sleep(0.1)
    raise RuntimeError("Ray did not start")


def _await_workers(nodes: list[subprocess.Popen[bytes]]) -> None:
    """Until each node has a raylet with its agents."""
    until = time.monotonic() + STARTING
    while time.monotonic() < until and all(node.poll() is None for node in nodes):
        if all(any("RuntimeEnvAgent" in name for name in descendants(node.pid).values()) for node in nodes):
            return
        time.sleep(0.1)
    raise RuntimeError("Ray did not start")


def stop(node: subprocess.Popen[bytes]) -> None:
    """End a node and everything below it, by process id."""
    below = descendants(node.pid)
    kill(node.pid)
    node.wait(STARTING)
    for pid in below:
        kill(pid)
