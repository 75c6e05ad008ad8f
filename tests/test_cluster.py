"""A real Ray cluster of two nodes: it answers as this machine does, to the last bit, whatever dies meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from store.records import Trouble
from tests import crews, ray_nodes, toys
from tests.crews import exact
from tests.ray_nodes import Nodes
from tracker import annals, clusters, jobs, workers
from tracker.annals import Asked
from tracker.jobs import Where
from tracker.workers import ALONE, Crew

pytestmark = pytest.mark.skipif(not ray_nodes.found(), reason=ray_nodes.MISSING)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with ray_nodes.two_nodes() as both, pytest.MonkeyPatch.context() as patch:
        for name, value in both.environment.items():
            patch.setenv(name, value)
        yield both


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Where:
    return crews.filled(tmp_path_factory.mktemp("cluster"))


def test_a_stranger_is_not_let_in(nodes: Nodes) -> None:
    # Ray keeps a token for as long as its process lives.
    code = "from tests import toys; from tracker import workers; import sys;"
    code += "print(workers.map(toys.root, [4], workers.Crew(cluster=sys.argv[1])))"
    strange = {**os.environ, "RAY_AUTH_TOKEN": "0" * 64}
    command = [sys.executable, "-c", code, nodes.address]
    done = subprocess.run(command, env=strange, capture_output=True, text=True, check=False, cwd=ray_nodes.ROOT)
    assert done.returncode == 1
    assert "Trouble: no connection to the Ray cluster" in done.stderr
    assert nodes.environment["RAY_AUTH_TOKEN"] not in done.stdout + done.stderr


def test_what_fails_on_a_node_is_raised_with_the_name_of_its_group(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    crew = Crew(cluster=nodes.address)
    with pytest.raises(Trouble, match=r"^number 3: there is no such number$"):
        workers.map(toys.fails, [1, 2, 3, 4], crew, lambda number: f"number {number}")
    with pytest.raises(KeyError) as caught:
        workers.map(toys.fails, [1, 5], crew, lambda number: f"number {number}")
    assert "in the group: number 5" in caught.value.__notes__
    mine = {**clusters.kit(), "numpy": "0.1", "rounding": "another"}
    monkeypatch.setattr(clusters, "kit", lambda: mine)
    with pytest.raises(Trouble, match=r"node 127\.0\.0\.\d of .* is unlike .*numpy [\d.]+ there, 0\.1 here, rounding"):
        workers.map(toys.root, [1], crew)


def test_a_killed_worker_and_a_killed_node_change_nothing(
    nodes: Nodes, where: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(annals, "PORTION", 1)
    asked = Asked(metrics=("tput_per_gpu", "median_tpot"), anchor="2026-03-07")
    alone = exact(annals.history(asked, where, ALONE))
    lost = partial(toys.dies_once, tmp_path)
    assert workers.map(lost, range(6), Crew(cluster=nodes.address)) == list(range(6))
    assert {path.name for path in tmp_path.iterdir()} == {"1", "5"}

    watch, count = after_the_first(nodes.kill_second)
    assert exact(annals.history(asked, where, Crew(cluster=nodes.address, watch=watch))) == alone
    assert nodes.second.poll() is not None
    assert nodes.head.poll() is None
    assert count == [len(crews.GPUS)]
    question = jobs.Question("run:5012", "last-good", ("tput_per_gpu", "median_tpot"))
    given_out = jobs.compare(question, where, crew=Crew(cluster=nodes.address))
    assert exact(given_out) == exact(jobs.compare(question, where))
    # From outside of the cluster, with the node that is left.
    assert exact(annals.history(asked, where, Crew(cluster=nodes.client))) == alone


def after_the_first(event: Callable[[], None]) -> tuple[Callable[[int], None], list[int]]:
    """Something that happens when the first of several groups is done, and how many were done in the end."""
    count = [0]

    def watch(done: int) -> None:
        if not count[0]:
            event()
        count[0] += done

    return watch, count
