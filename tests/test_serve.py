"""`tracker serve`: pages of a store for reading, beside a process that writes it, for whoever calls it by its name."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from reports import parity, sitepages
from reports.language import LANGUAGES
from reports.site import Index, RunLine
from reports.things import Listed
from store.records import Trouble
from tests.cli import Tracker
from tests.factory import NEXT_IMAGE, bundle, history, row, run, write
from tests.test_page import LOADING, Read
from tests.test_render_hostile import hostile
from tests.test_weekly import a_run
from tracker import jobs, review, snapshot
from tracker.jobs import Where
from tracker.site import Site
from tracker.snapshot import Snapshots
from tracker.web import Server

HOLDER = """
import duckdb, sys, time
con = duckdb.connect(sys.argv[1])
con.sql("CREATE TABLE held (x INTEGER)")
con.sql("INSERT INTO held SELECT range FROM range(1000)")
print("held", flush=True)
sys.stdin.readline()
con.close()
"""
"""A process that writes a database, holds it, and ends when it is told to."""


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a store with three calm runs and a slower bump in week 24."""
    folder = tmp_path_factory.mktemp("store")
    slower = bundle(run(200, "2026-06-12T00:00:00Z"), [row(4, 800.0, image=NEXT_IMAGE)])
    file = write(folder / "past.json", [*history({4: [1000.0, 1003.0, 998.0]}), slower])
    there = Where.of(folder / "tracker.duckdb", None)
    jobs.ingest([file], there)
    review.review(there)
    return folder


@pytest.fixture
def judged(landed: Path, tracker: Tracker) -> Tracker:
    """The command line on a copy of that store."""
    shutil.copytree(landed, tracker.folder, dirs_exist_ok=True)
    os.utime(tracker.folder / "tracker.duckdb", (1, 1))
    return tracker


@pytest.fixture
def where(judged: Tracker) -> Where:
    return Where.of(judged.folder / "tracker.duckdb", None)


@pytest.fixture
def troubles() -> list[str]:
    return []


@pytest.fixture
def server(where: Where, tmp_path: Path, troubles: list[str]) -> Iterator[Server]:
    (tmp_path / "copies").mkdir()
    site = Site(Snapshots(where, tmp_path / "copies"), trouble=troubles.append)
    with Server("127.0.0.1", 0, site, ["bench.example.org"]) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def ask(server: Server, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    """Status, headers in lower case, body."""
    line = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    line.request(method, path, headers=headers)
    answer = line.getresponse()
    body = answer.read().decode()
    line.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body


def spoken(server: Server, *lines: str) -> str:
    """What the server answers to bytes that no client of HTTP would send."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as line:
        line.sendall("".join(f"{one}\r\n" for one in (*lines, "")).encode("latin-1"))
        return b"".join(iter(lambda: line.recv(65536), b"")).decode()


@contextmanager
def held(database: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    try:
        yield process
    finally:
        process.communicate("\n", timeout=30)
        assert process.returncode == 0


# ---------------------------------------------------------------- pages


def test_the_list_leads_to_every_run_and_week_and_each_has_its_page(server: Server) -> None:
    status, _, body = ask(server, "/")
    assert status == 200
    links = set(re.findall(r'href="(/[^"#]*)', body))
    assert links == {f"/run/{number}/1" for number in (100, 101, 102, 200)} | {"/week/2026-W18", "/week/2026-W24"}
    for link in links:
        assert ask(server, link)[0] == 200, link


def test_pages_are_those_of_the_command_line(server: Server, judged: Tracker, tmp_path: Path) -> None:
    for path, arguments in (("/run/200", ("run:200",)), ("/week/2026-W24", ("--week", "2026-W24"))):
        judged("report", *arguments, "--html", tmp_path / "page.html")
        assert ask(server, path)[2] == (tmp_path / "page.html").read_text(encoding="utf-8")
    assert ask(server, "/run/200?x=1")[2] == ask(server, "/run/200/1")[2]


@pytest.mark.parametrize(
    "path",
    [
        "/nothing", "/run/", "/run/999", "/run/200/7", "/run/200/1/", "/run/99999999999999999999",
        "/run/9999999999999999999", "/tracker.duckdb", "/run/\u0662".encode().decode("latin-1"),
        "/run/200/9999999999", "/run/abc", "/week/2026-W99", "/week/0000-W01", "/week/9999-W52", "/week/2026-W24/",
        "/../../etc/passwd", "/%2e%2e/etc/passwd", "//etc/passwd",
        "http://other.example/", "*", "/run/200%2f1", "/<script>alert(1)</script>",
    ],
)  # fmt: skip
def test_what_is_no_page_is_told_in_words_and_sent_back_to_nobody(
    server: Server, troubles: list[str], path: str
) -> None:
    answer = spoken(server, f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{server.server_port}", "Connection: close")
    assert answer.startswith("HTTP/1.0 404 ")
    assert "There is no such page" in answer
    assert "没有该页面" in answer
    assert "alert" not in answer
    assert troubles == []


def test_an_answer_forbids_frames_guesses_and_caches(server: Server) -> None:
    for path in ("/", "/nothing"):
        headers = ask(server, path)[1]
        assert headers["content-type"] == "text/html; charset=utf-8"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
        assert headers["server"] == "sweep-tracker"
        assert "access-control-allow-origin" not in headers


def test_head_gives_the_headers_alone(server: Server) -> None:
    whole, head = ask(server, "/week/2026-W24"), ask(server, "/week/2026-W24", "HEAD")
    assert (head[0], head[2]) == (200, "")
    assert head[1]["content-length"] == whole[1]["content-length"] == str(len(whole[2].encode()))


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"])
def test_nothing_but_reading_is_taken(server: Server, method: str) -> None:
    status, headers, body = ask(server, "/", method)
    assert (status, headers["allow"]) == (405, "GET, HEAD")
    assert "The pages can only be read" in body


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:{port}", 200),
        ("LocalHost:{port}", 200),
        ("[::1]:{port}", 200),
        ("bench.example.org", 200),
        ("evil.example:{port}", 400),
        ("127.0.0.1.evil.example:{port}", 400),
        ("127.0.0.1", 400),
        ("127.0.0.1:1", 400),
        ("", 400),
    ],
)
def test_another_name_is_refused(server: Server, host: str, status: int) -> None:
    assert ask(server, "/", Host=host.format(port=server.server_port))[0] == status


@pytest.mark.parametrize(
    "lines",
    [
        ("GET / HTTP/1.0",),
        ("GET / HTTP/1.1", "Host: 127.0.0.1:{port}", "Host: evil.example"),
        ("GET / / / HTTP/1.1", "Host: 127.0.0.1:{port}"),
        ("GET / HTTP/9", "Host: 127.0.0.1:{port}"),
        ("<script>",),
        ("GET /" + "x" * 70_000 + " HTTP/1.1", "Host: 127.0.0.1:{port}"),
        ("GET / HTTP/1.1", *["a: b"] * 300),
    ],
)
def test_a_broken_request_is_refused_and_not_sent_back(
    server: Server, troubles: list[str], lines: tuple[str, ...]
) -> None:
    try:
        answer = spoken(server, *(line.replace("{port}", str(server.server_port)) for line in lines))
    except ConnectionResetError:  # the end of a long line was not read
        answer = ""
    assert "script>\r" not in answer
    assert not answer or "The request cannot be understood" in answer
    assert troubles == []
    assert ask(server, "/")[0] == 200


# ---------------------------------------------------------------- beside a writer


def test_a_process_that_holds_the_database_holds_up_no_page_and_is_not_held_up(server: Server, where: Where) -> None:
    with held(where.store):
        began = time.monotonic()
        for path in ("/", "/run/200", "/week/2026-W24"):
            assert ask(server, path)[0] == 200
        assert time.monotonic() - began < 25, "a reader waits 30 s for a lock"
    with held(where.store.with_name("other.duckdb")):  # the process did end
        pass


def test_a_landing_goes_on_while_pages_are_read_and_is_seen_afterwards(
    server: Server, judged: Tracker, tmp_path: Path
) -> None:
    stop, statuses = threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            statuses.append(ask(server, "/")[0])

    reader = threading.Thread(target=read)
    reader.start()
    try:
        more = write(tmp_path / "more.json", [bundle(run(300, "2026-06-20T00:00:00Z"), [row(4, 1000.0)])])
        landing = [sys.executable, "-m", "tracker", "ingest", str(more)]
        done = subprocess.run(landing, capture_output=True, text=True, check=False, env=dict(os.environ))
        assert done.returncode == 0, done.stderr
    finally:
        stop.set()
        reader.join()
    assert set(statuses) == {200}
    time.sleep(2 * snapshot.SETTLED)
    assert "/run/300/1" in ask(server, "/")[2]
    assert ask(server, "/week/2026-W25")[0] == 200


def test_nothing_of_the_store_changes_by_reading(server: Server, where: Where) -> None:
    before = {path: path.stat().st_mtime_ns for path in (where.store, *where.archive.rglob("*"))}
    for path in ("/", "/run/200", "/week/2026-W24", "/nothing"):
        ask(server, path)
    assert {path: path.stat().st_mtime_ns for path in (where.store, *where.archive.rglob("*"))} == before


def test_a_withdrawal_is_seen_at_once(server: Server, where: Where, judged: Tracker) -> None:
    assert "performance 1" in ask(server, "/week/2026-W24")[2]
    beside = where.store.with_suffix(".withdrawals.yaml")
    beside.write_text(
        '- {run: 200, class: broken-run, reason: "r", since: 2026-06-13, source: "https://example.org/1"}\n',
        encoding="utf-8",
    )
    assert "performance 1" not in ask(server, "/week/2026-W24")[2]
    beside.unlink()
    assert "performance 1" in ask(server, "/week/2026-W24")[2]


def test_a_copy_is_made_once_for_each_state_and_old_ones_go(where: Where, tmp_path: Path) -> None:
    folder = tmp_path / "copies"
    folder.mkdir()
    shots = Snapshots(where, folder)
    first = shots.current()
    assert shots.current() == first
    os.utime(where.store, (2, 2))
    second = shots.current()
    assert second[0].store != first[0].store
    assert [path.name for path in folder.glob("*.duckdb")] == [second[0].store.name]


def test_without_a_quiet_moment_the_older_copy_is_shown_and_else_it_is_said(
    where: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "FIRST_WAIT", 0.0)
    monkeypatch.setattr(snapshot, "LATER_WAIT", 0.0)
    (tmp_path / "copies").mkdir()
    site = Site(Snapshots(where, tmp_path / "copies"))
    now = time.time()
    os.utime(where.store, (now, now))
    monkeypatch.setattr(snapshot.time, "time", lambda: now)
    assert site.page("/").status == 503
    os.utime(where.store, (now - 9, now - 9))
    assert site.page("/").status == 200
    os.utime(where.store, (now, now))
    assert site.page("/").status == 200


def test_what_is_written_while_it_is_copied_is_copied_again(
    where: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies: list[Path] = []

    def copied(source: Path, target: Path) -> None:
        target.write_bytes(source.read_bytes())
        copies.append(target)
        if len(copies) < 3:
            os.utime(source, (10 + len(copies),) * 2)

    monkeypatch.setattr(snapshot.shutil, "copyfile", copied)
    (tmp_path / "copies").mkdir()
    found, _ = Snapshots(where, tmp_path / "copies", sleep=lambda _: None).current()
    assert (found.store, len(copies)) == (copies[2], 3)
    assert list((tmp_path / "copies").iterdir()) == [copies[2]]


def test_what_is_no_database_is_not_shown(where: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "FIRST_WAIT", 0.0)
    (tmp_path / "copies").mkdir()
    where.store.write_bytes(b"\0" * 8_192)
    os.utime(where.store, (1, 1))
    with pytest.raises(snapshot.StoreIsWritten):
        Snapshots(where, tmp_path / "copies").current()
    assert list((tmp_path / "copies").iterdir()) == []


def test_what_goes_wrong_is_told_to_the_owner_and_not_to_the_reader(
    server: Server, troubles: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> str:
        raise Trouble("/secret/place is broken")

    monkeypatch.setattr(jobs, "compare", fail)
    status, _, body = ask(server, "/run/200")
    assert (status, "/secret" in body) == (500, False)
    assert troubles == ["/run/200: /secret/place is broken"]


def test_pages_are_kept_until_the_store_changes(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ask(server, "/run/200")[2]
    monkeypatch.setattr(jobs, "compare", lambda *_: pytest.fail("made again"))
    assert ask(server, "/run/200")[2] == first


# ---------------------------------------------------------------- words


def test_the_list_asks_for_nothing_and_says_the_same_in_both_languages() -> None:
    lines = tuple(RunLine(a_run(at), at, 2, is_official=at % 2 == 0) for at in range(5))
    body = sitepages.index(Index(Listed(), Listed(lines).first(3)))
    halves = [body.split(f'data-lang="{code}" lang=')[1].partition(">")[2].split("</main>")[0] for code in LANGUAGES]
    halves[0] = halves[0].split('<div class="said"')[0]
    halves = [half.replace("#lang=zh", "#lang=en") for half in halves]
    assert parity.parity(*halves) == ()
    read = Read(body)
    assert [tag for tag, _ in read.elements if tag in LOADING] == []
    assert "2" in halves[0].rpartition("</table>")[2]


def test_foreign_titles_and_branches_make_no_element() -> None:
    lines = [RunLine(replace(a_run(1), title=word, head_branch=word), 1, 1, is_official=True) for word in hostile()]
    read = Read(sitepages.index(Index(Listed(), Listed(tuple(lines)))))
    calm = Read(sitepages.index(Index(Listed(), Listed((RunLine(a_run(1), 1, 1, is_official=True),)))))
    assert {tag for tag, _ in read.elements} == {tag for tag, _ in calm.elements}
    assert {name for _, found in read.elements for name in found} == {
        name for _, found in calm.elements for name in found
    }


@pytest.mark.parametrize("status", sorted(sitepages.NOTICES))
def test_every_notice_is_a_page_in_both_languages(status: int) -> None:
    body = sitepages.notice(status, "zh")
    assert '<html lang="en" data-lang="zh">' in body
    assert body.count("<h1>") == len(LANGUAGES)


# ---------------------------------------------------------------- the command line


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_its_code_and_leaves_nothing_behind(judged: Tracker, tmp_path: Path, number: int) -> None:
    (tmp_path / "tmp").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    process = subprocess.Popen(
        [sys.executable, "-m", "tracker", "serve", "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    assert process.stdout
    address = process.stdout.readline().strip()
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/", address)
    assert found, address
    line = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=30)
    line.request("GET", "/week/2026-W24")
    assert line.getresponse().status == 200
    line.close()
    process.send_signal(number)
    _, told = process.communicate(timeout=30)
    assert (process.returncode, told) == (128 + number, "tracker: interrupted\n")
    assert list((tmp_path / "tmp").iterdir()) == []
    assert judged("store", "info").code == 0


def test_a_port_that_is_taken_and_a_store_that_is_not_there_are_told(judged: Tracker, server: Server) -> None:
    said = judged("serve", "--port", server.server_port)
    assert (said.code, "choose another --port" in said.err) == (1, True)
    said = judged("serve", "--store", judged.folder / "none.duckdb")
    assert (said.code, "land a sweep first" in said.err) == (1, True)
