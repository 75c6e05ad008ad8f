"""What an archive in a bucket costs beside a folder, and whether many writers end with equal stores.

python -m bench.archive                       60 runs of 300 points, 20 writers, 1,100 files on more than one page
python -m bench.archive --runs 20 --writers 8

The server is SeaweedFS on loopback: a round trip takes a millisecond or less, where a real bucket takes tens. Ratios
tell what the work costs beside the waiting; the counts of requests are in docs/archive.md.
"""

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import polars as pl

from bench.synthetic import batches
from store.duck import Store
from store.records import Batch
from tests.objects import server

SIZE = 300


def timed(work: Callable[[], object]) -> tuple[float, object]:
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def fingerprint(store: Store) -> str:
    """A hash of what the questions say: curves, runs, what is in which state, the history of every curve."""
    curves = store.curves()
    answers = [curves, store.runs(), store.statuses().sort(pl.all()), store.history(curves["curve"].to_list())]
    said = "\n".join(answer.write_csv() for answer in answers)
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def land(path: Path, archive: Path | str, made: Iterable[Batch]) -> object:
    with Store.open(path, archive) as store:
        return store.land_many(made).points


def refresh(path: Path, archive: Path | str) -> object:
    with Store.open(path, archive) as store:
        return store.catch_up().files


def group(path: Path, archive: Path | str) -> object:
    """The runs of one curve, read straight from the archive."""
    with Store.open(path, archive, read_only=True) as store:
        curve = store.curves()["curve"][0]
        names = store.files_of([curve])
        expected = store.history([curve])
    with Store.of_files(archive, names) as part:
        assert part.history([curve]).equals(expected)
    return len(names)


def places(folder: Path, address: str, runs: int) -> None:
    made = list(batches(runs * SIZE, SIZE))
    roots: dict[str, Path | str] = {"folder": folder / "archive", "bucket": address}
    steps: list[tuple[str, Callable[[str, Path | str], object]]] = [
        ("land", lambda name, root: land(folder / f"{name}-a.duckdb", root, made)),
        ("refresh of another store", lambda name, root: refresh(folder / f"{name}-b.duckdb", root)),
        ("refresh with nothing new", lambda name, root: refresh(folder / f"{name}-b.duckdb", root)),
        ("rebuild with copies", lambda name, root: Store.rebuild(folder / f"{name}-b.duckdb", root).files),
        ("rebuild of nothing", lambda name, root: Store.rebuild(folder / f"{name}-c.duckdb", root).files),
        ("files of one curve", lambda name, root: group(folder / f"{name}-a.duckdb", root)),
    ]
    print(f"{runs} runs of {SIZE} points: seconds, bucket by folder", flush=True)
    for title, step in steps:
        (near, told), (far, same) = (timed(lambda n=name, r=root, s=step: s(n, r)) for name, root in roots.items())
        assert told == same
        print(f"  {title:<26} folder {near:6.2f}  bucket {far:6.2f}  ratio {far / near:5.2f}  ({told})", flush=True)
    stores = [Store.open(folder / f"{name}-c.duckdb", root, read_only=True) for name, root in roots.items()]
    assert len({fingerprint(store) for store in stores}) == 1
    for store in stores:
        store.close()


def write(path: Path, address: str, number: int, own: int) -> None:
    """One of many writers: five runs of its own among as many that all of them land."""
    made = list(batches((own + 1) * 5 * 40, 40))
    land(path, address, [*made[:5], *made[5 * (number + 1) : 5 * (number + 2)]])


def crowd(folder: Path, address: str, writers: int) -> None:
    command = [sys.executable, "-m", "bench.archive", "--address", address, "--writers", str(writers)]
    paths = [folder / f"w{number}.duckdb" for number in range(writers)]

    def race() -> list[int]:
        own = [[*command, "--write", str(path), "--number", str(n)] for n, path in enumerate(paths)]
        return [process.wait() for process in [subprocess.Popen(line) for line in own]]

    seconds, codes = timed(race)
    assert codes == [0] * writers
    loaded = [refresh(path, address) for path in paths]
    found = set()
    for path in paths:
        with Store.open(path, address, read_only=True) as store:
            found.add((fingerprint(store), len(store.runs())))
    print(
        f"{writers} processes at once, 5 runs of their own and the same 5 each: {seconds:.1f} s; then each loaded",
        end=" ",
    )
    print(f"{min(loaded)} to {max(loaded)} files of others; different answers among {writers} stores: {len(found) - 1}")
    assert len(found) == 1
    assert {runs for _, runs in found} == {5 * (writers + 1)}


def pages(folder: Path, address: str, files: int) -> None:
    """More files than one page of a list has."""
    (one,) = batches(1, 1)
    made = [replace(one, run=replace(one.run, id=n + 1), points=()) for n in range(files)]
    seconds, _ = timed(lambda: land(folder / "p.duckdb", address, made))
    again, found = timed(lambda: refresh(folder / "q.duckdb", address))
    print(f"{files} files, a page of a list has 1,000: landed in {seconds:.1f} s, found {found} in {again:.1f} s")
    assert found == files


def main() -> int:
    # Ended from outside, it still ends its server.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--runs", type=int, default=60)
    asked.add_argument("--writers", type=int, default=20)
    asked.add_argument("--files", type=int, default=1100)
    asked.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    asked.add_argument("--number", type=int, help=argparse.SUPPRESS)
    asked.add_argument("--address", help=argparse.SUPPRESS)
    given = asked.parse_args()
    if given.write:
        write(given.write, given.address, given.number, given.writers)
        return 0
    if not server.found():
        print(f"left out: {server.MISSING}")
        return 0
    with tempfile.TemporaryDirectory(prefix="bench-") as name, server.served(Path(name)) as address:
        os.environ |= {**server.keys(), "AWS_ENDPOINT_URL": f"http://{address}"}
        folder = Path(name)
        places(folder, f"s3://{server.made(address)}/a", given.runs)
        crowd(folder, f"s3://{server.made(address)}/b", given.writers)
        pages(folder, f"s3://{server.made(address)}/c", given.files)
    return 0


if __name__ == "__main__":
    sys.exit(main())
