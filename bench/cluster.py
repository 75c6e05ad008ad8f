"""A long history told by one process, by a pool, by a Ray cluster of two nodes, and by one whose workers are killed.

python -m bench.cluster                                       40,000 points in a folder
python -m bench.cluster --points 1000000 --s3                 a million, in a bucket of SeaweedFS on loopback
python -m bench.cluster --keep /tmp/million --archive s3://BUCKET/PREFIX --killed-only model=dsr1

A FILTER bounds what is told, and so what is read. Nodes are started on 127.0.0.2 and 127.0.0.3, with a token. On one
machine they share its processors: the figures say what giving out costs, not what more machines would gain.
"""

import argparse
import hashlib
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from bench.synthetic import batches
from store.buckets import Bucket
from store.chronicles import Chronicle
from store.duck import Store
from tests import ray_nodes
from tests.crews import exact
from tests.objects import server
from tests.ray_nodes import Nodes
from tracker import annals, jobs
from tracker.annals import Asked
from tracker.jobs import Where
from tracker.workers import ALONE, Crew, processors

TIMES: list[float] = []


def built(folder: Path, points: int) -> Where:
    """A store of so many synthetic points in runs of 500, with what was learned of its noise."""
    where = Where.of(folder / "store.duckdb", folder / "archive")
    if not where.store.exists():
        with Store.open(where.store, where.archive) as store:
            store.land_many(batches(points))
    jobs.refresh(where)
    return where


@contextmanager
def bucket(folder: Path) -> Iterator[str]:
    """An empty bucket of an S3 server on loopback; the environment leads there."""
    with server.served(folder) as address:
        os.environ.update({**server.keys(), "AWS_ENDPOINT_URL": f"http://{address}"})
        yield f"s3://{server.made(address)}"


@dataclass(slots=True)
class Mishaps:
    """Kills workers at a quarter and at three quarters of the way, and a whole node in the middle."""

    nodes: Nodes
    groups: int
    done: int = 0
    told: list[str] = field(default_factory=list)

    def watch(self, done: int) -> None:
        self.done += done
        if self.done in (self.groups // 4, 3 * self.groups // 4) and self.nodes.kill_worker():
            self.told.append(f"a worker after {self.done}")
        if self.done == self.groups // 2:
            self.nodes.kill_second()
            self.told.append(f"node {ray_nodes.SECOND} after {self.done}")


def timed(name: str, tell: Callable[[], list[Chronicle]]) -> str:
    """A digest of every bit of an answer; the time is printed, as a share of the first one's."""
    begun = time.perf_counter()
    told = tell()
    TIMES.append(time.perf_counter() - begun)
    digest = hashlib.sha256(exact(told).encode()).hexdigest()[:16]
    share = TIMES[-1] / TIMES[0]
    print(f"{name:<34} {TIMES[-1]:8.1f} s, {share:5.2f}   {len(told):,} curves, digest {digest}", flush=True)
    return digest


def measure(asked: Asked, where: Where, killed_only: bool) -> bool:
    """Whether all answers are equal."""
    cores, groups = processors(), [0]

    def count(done: int) -> None:
        groups[0] += done

    def told(name: str, crew: Crew) -> str:
        return timed(name, lambda: annals.history(asked, where, crew))

    digests = set() if killed_only else {told("one process", ALONE)}
    digests.add(told(f"a pool of {cores}", Crew(cores, watch=count)))
    with ray_nodes.two_nodes() as nodes:
        os.environ.update(nodes.environment)
        if not killed_only:
            digests.add(told("Ray, two nodes of one processor", Crew(cluster=nodes.address)))
        mishaps = Mishaps(nodes, groups[0])
        digests.add(told("Ray, killed on the way", Crew(cluster=nodes.address, watch=mishaps.watch)))
    print(f"{mishaps.groups} groups given out, {mishaps.done} answered; killed: {', '.join(mishaps.told)}")
    print("all answers are equal to the last bit" if len(digests) == 1 else "ANSWERS DIFFER")
    return len(digests) == 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filters", nargs="*", metavar="FILTER")
    parser.add_argument("--points", type=int, default=40_000)
    parser.add_argument("--keep", type=Path, help="folder of the store, used again where it is there")
    parser.add_argument("--archive", help="s3://BUCKET/PREFIX: put the archive there first, and read it from there")
    parser.add_argument("--s3", action="store_true", help="the same, on an S3 server that is started for it")
    parser.add_argument("--killed-only", action="store_true", help="a pool, and the cluster with its mishaps")
    chosen = parser.parse_args()
    annals.MANY = 0
    with ExitStack() as stack:
        folder = chosen.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        where = built(folder, chosen.points)
        address = chosen.archive
        if chosen.s3:
            address = stack.enter_context(bucket(Path(stack.enter_context(tempfile.TemporaryDirectory())))) + "/tracker"
        if address is not None:
            carried = jobs.push(where, Bucket(address))
            print(f"{carried.files:,} files with {carried.bytes / 2**20:,.0f} MiB put into {address}")
            where = Where.of(where.store, address)
        with Store.open(where.store, where.archive, read_only=True) as store:
            counts = store.info().counts
        packages = ("sweep-tracker", "ray", "polars", "duckdb", "numpy")
        print(f"{platform.machine()}, {processors()} processors, load {os.getloadavg()[0]:.1f}", end="; ")
        print(f"Python {platform.python_version()}, {', '.join(f'{name} {version(name)}' for name in packages)}")
        print(f"{counts['points']:,} points in {counts['runs']:,} runs; archive {where.archive}", flush=True)
        return 0 if measure(Asked(tuple(chosen.filters)), where, chosen.killed_only) else 1


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    raise SystemExit(main())
