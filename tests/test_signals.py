"""Ctrl-C and SIGTERM: every command ends with its code, in one line, and leaves nothing half done or held."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from store import checkup
from tests.cli import Tracker
from tests.factory import bundle, history, row, run, write
from tracker import cli
from tracker.cli import COMMANDS, signals

MAIL = ("--to", "a@example.org", "--from", "b@example.org")
QUESTION, NEW = "store.duck.Store._ask", "new"
CAUGHT: dict[tuple[str, ...], str] = {
    ("fetch", "9", "--repo", "o/r", "--into", NEW): "tracker.cli.fetch.bring",
    ("ingest", "more.json"): "store.duck.Store._rank",
    ("compare", "--out", NEW): QUESTION,
    ("plan",): QUESTION,
    ("history",): QUESTION,
    ("show", "dsr1"): QUESTION,
    ("images",): QUESTION,
    ("reproducibility",): QUESTION,
    ("report", "--html", NEW): QUESTION,
    ("serve", "--port", "0"): "tracker.web.Server.__init__",
    ("after-merge", "--run", "9", "--repo", "o/r", "--work", NEW): "tracker.after_merge.after_merge",
    ("evidence", "--pull-request", "1", "--repo", "o/r", "--work", NEW): "tracker.evidence.evidence",
    ("weekly", "--out", NEW): "tracker.review.review",
    ("findings", "list"): QUESTION,
    ("comment", "--pull-request", "1", "--repo", "o/r", "--keep", NEW): QUESTION,
    ("deliver", "more.json", "--head", "0" * 40, "--repo", "o/r"): "reports.outbox.read",
    ("mail", *MAIL): QUESTION,
    ("changelog", "draft"): QUESTION,
    ("claims", "5% faster at conc 4"): "tracker.texts.check_claims",
    ("lint-text", "more.json"): "reports.parity.lint_text",
    ("store", "info"): QUESTION,
    ("store", "check"): "store.salvage.look",
    ("store", "recover"): "store.salvage.look",
    ("store", "rebuild"): "store.duck.Store._rank",
    ("store", "export", "--into", NEW): "store.duck.Store.export",
    ("store", "pull", "elsewhere"): "tracker.jobs.carry",
    ("demo", "--into", NEW): "tracker.jobs.ingest",
    ("schema",): "reports.jsonform.schema",
}
"""The words of each command, and the function in the middle of which the signal comes."""


def test_no_command_is_forgotten() -> None:
    assert {words[0] for words in CAUGHT} == set(COMMANDS)


@pytest.fixture
def listening() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in signals.ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    signals._caught.clear()


@pytest.fixture
def judged(tracker: Tracker, monkeypatch: pytest.MonkeyPatch) -> Tracker:
    monkeypatch.chdir(tracker.folder)
    monkeypatch.setenv("GITHUB_TOKEN", "t")
    tracker.ingest(write(tracker.folder / "past.json", history({4: [1000.0, 1003.0, 998.0]})))
    (tracker.folder / "elsewhere").mkdir()
    write(tracker.folder / "more.json", [bundle(run(300, "2026-06-20T00:00:00Z"), [row(4, 990.0)])])
    return tracker


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("words", CAUGHT, ids=" ".join)
def test_a_signal_in_the_middle_ends_a_command_cleanly(
    judged: Tracker, listening: None, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    number = signals.ENDING[len(words) % 2]
    reached = []

    def caught(*_: object, **__: object) -> None:
        reached.append(True)
        os.kill(os.getpid(), number)

    before = everything(judged.folder)
    with monkeypatch.context() as patch:
        patch.setattr(CAUGHT[words], caught)
        signals.listen()
        said = judged(*words)
        signals._caught.clear()  # what follows would be other processes
    assert reached
    assert (said.code, said.err.splitlines()[-1]) == (128 + number, "tracker: interrupted")
    assert words[0] == "demo" or said.err.count("\n") == 1
    new = {path for path in everything(judged.folder) if path not in before}
    # What a landing had put into the archive stays there, whole; nothing else is begun.
    assert all(".archive/run=" in path or "/new/" in path for path in new)
    assert not [path for path in new if path.endswith((".tmp", ".part", ".new", ".wal"))]
    inputs = {path: content for path, content in before.items() if path.endswith(".json")}
    assert {path: everything(judged.folder)[path] for path in inputs} == inputs
    assert judged("store", "info").code == 0
    if words[0] == "ingest":
        found = checkup.check(judged.folder / "tracker.duckdb", judged.folder / "tracker.archive")
        assert {flaw.problem for flaw in found.flaws} <= {checkup.Problem.NOT_LANDED}
        assert judged.ingest(judged.folder / "more.json").code == 0
        assert judged.compare("run:300")["candidate"]


def test_whatever_code_in_c_raises_after_a_signal_is_the_end_that_was_asked_for(
    judged: Tracker, listening: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swallowed(*_: object, **__: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except BaseException:
            raise ImportError("numpy.core failed to import") from None

    monkeypatch.setattr(QUESTION, swallowed)
    signals.listen()
    said = judged("compare")
    assert (said.code, said.err) == (130, "tracker: interrupted\n")


def test_a_signal_that_was_swallowed_on_its_way_is_told_all_the_same(
    judged: Tracker, listening: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swallowed() -> dict[str, object]:
        with contextlib.suppress(BaseException):
            os.kill(os.getpid(), signal.SIGTERM)
        return {}

    monkeypatch.setattr("reports.jsonform.schema", swallowed)
    signals.listen()
    said = judged("schema")
    assert (said.code, said.err) == (143, "tracker: interrupted\n")


def test_a_second_signal_is_the_systems(listening: None) -> None:
    signals.listen()
    with pytest.raises(signals.Ended):
        os.kill(os.getpid(), signal.SIGINT)
    assert [signal.getsignal(number) for number in signals.ENDING] == [signal.SIG_DFL, signal.SIG_DFL]


def test_a_failure_of_the_system_is_told_in_one_line(judged: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "/tmp/x")

    monkeypatch.setattr("store.archive.put", full)
    said = judged.ingest(judged.folder / "more.json")
    assert (said.code, said.err.count("\n")) == (1, 1)
    assert "/tmp/x: No space left on device: free space and give the same command again" in said.err
    assert cli.FULL in said.err
    monkeypatch.undo()


def test_a_file_of_which_nothing_could_be_read_is_an_error(judged: Tracker) -> None:
    broken = [row() | {"conc": word} for word in ("many", "few")]
    file = write(judged.folder / "broken.json", [bundle(run(301, "2026-06-21T00:00:00Z"), broken)])
    for _ in range(2):
        said = judged.ingest(file)
        assert said.code == 1
        assert "nothing could be read: all 2 rows were rejected" in said.err
    good = write(judged.folder / "half.json", [bundle(run(302, "2026-06-22T00:00:00Z"), [row(4, 990.0), *broken])])
    for _ in range(2):
        assert judged.ingest(good).code == 0


def test_a_run_of_the_future_is_told_and_stands_as_the_newest(judged: Tracker) -> None:
    file = write(judged.folder / "future.json", [bundle(run(400, "2126-01-01T00:00:00Z"), [row(4, 990.0)])])
    told = "run 400/1 says that it started at 2126-01-01 00:00 UTC, in the future"
    for words, what in (
        (("ingest", file), told),
        (("compare", "--format", "json"), told),
        (("weekly",), "in the future"),
    ):
        said = judged(*words)
        assert said.code == 0
        assert what in said.err
    assert judged.compare()["candidate"][0]["id"] == 400
    # A candidate that is older than what it is held against is judged by its own past alone.
    older = judged.compare("run:101")
    assert {one["id"] for one in older["baseline"]} == {100}
