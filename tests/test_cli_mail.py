"""`tracker mail`: nothing is sent unless asked, files hold the very message, and a second try spares who has it."""

from __future__ import annotations

from collections import deque
from email import message_from_bytes, policy
from pathlib import Path

import pytest

from tests.cli import Said, Tracker
from tests.factory import calm_then_slower
from tests.smtp.server import PASSWORD, RESET, USER, Post, running

ANN, BEA = "ann@example.org", "bea@example.org"
SENT = ("--from", "Sweeps <bot@example.org>", "--lang", "both", "--date", "2026-08-03T06:00:00Z")


@pytest.fixture
def judged(tracker: Tracker) -> Tracker:
    """A store with three calm runs and a slower bump."""
    return tracker.filled(calm_then_slower())


@pytest.fixture
def post(monkeypatch: pytest.MonkeyPatch) -> object:
    with running(login=True) as made:
        monkeypatch.setenv("TRACKER_SMTP_URL", made.url(USER))
        monkeypatch.setenv("TRACKER_SMTP_PASSWORD", PASSWORD)
        yield made


def mailed(judged: Tracker, *arguments: object) -> Said:
    return judged("mail", "latest", "--to", ANN, "--to", BEA, *SENT, *arguments)


def test_without_send_the_mail_is_printed_and_nothing_is_sent(judged: Tracker, post: Post) -> None:
    said = mailed(judged)
    assert said.code == 0
    assert said.out.startswith(f"mail from Sweeps <bot@example.org> to {ANN}, {BEA}\nsubject: ")
    assert "    Regression: " in said.out
    assert "    回归：" in said.out
    assert post.desk.connections == 0


def test_a_dry_run_writes_the_bytes_that_sending_sends(judged: Tracker, post: Post, tmp_path: Path) -> None:
    said = mailed(judged, "--dry-run", tmp_path / "mails")
    (path,) = (tmp_path / "mails").iterdir()
    assert (said.code, said.out) == (0, f"{path}\n")
    assert post.desk.connections == 0
    assert mailed(judged, "--send").code == 0
    (taken,) = post.desk.taken
    assert taken.content == path.read_bytes()
    assert (taken.recipients, taken.user) == ([ANN, BEA], USER)
    read = message_from_bytes(taken.content, policy=policy.default)
    assert read["Date"].datetime.isoformat() == "2026-08-03T06:00:00+00:00"
    assert " / " in read["Subject"]
    assert "regression" in read["Subject"].lower()


def test_the_same_runs_in_the_same_words_are_the_same_mail(judged: Tracker, tmp_path: Path) -> None:
    for _ in range(2):
        mailed(judged, "--dry-run", tmp_path / "mails", "--date", "2026-08-04T06:00:00Z")
    mailed(judged, "--dry-run", tmp_path / "mails", "--lang", "zh")
    assert len(list((tmp_path / "mails").iterdir())) == 2


def test_pictures_come_with_the_mail_when_asked_for(judged: Tracker, tmp_path: Path) -> None:
    said = mailed(judged, "--charts", "--dry-run", tmp_path)
    assert said.code == 0, said.err
    message = message_from_bytes(next(tmp_path.glob("*.eml")).read_bytes(), policy=policy.default)
    html = message.get_body(("html",))
    assert html
    parts = [part for part in message.walk() if part.get_content_type() == "image/png"]
    assert len(parts) == html.get_content().count('src="cid:') == 4
    assert all(len(part.get_content()) <= 40_000 for part in parts)


def test_what_was_put_off_is_sent_again_to_nobody_who_has_it(judged: Tracker, post: Post, tmp_path: Path) -> None:
    post.desk.rcpt = {BEA: deque(["451 later"])}
    kept = tmp_path / "mail.json"
    said = mailed(judged, "--send", "--wait", 0, "--keep", kept)
    assert said.code == 1
    assert f"{ANN}: accepted" in said.out
    assert f"{BEA}: later; the server said 451 later" in said.out
    assert f"tracker mail --resend {kept} --send" in said.out
    for _ in range(2):
        assert judged("mail", "--resend", kept, "--send").code == 0
    assert post.desk.got() == [ANN, BEA]
    assert PASSWORD not in said.out + said.err + kept.read_text(encoding="utf-8")


def test_a_pause_is_told_while_it_lasts(judged: Tracker, post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("tracker.cli.mail.time.sleep", slept.append)
    post.desk.mail.append(RESET)
    said = mailed(judged, "--send")
    assert (said.code, slept, "next try in 1 s" in said.err) == (0, [1.0], True)


def test_a_refused_recipient_is_an_error(judged: Tracker, post: Post) -> None:
    post.desk.rcpt = {BEA: deque(["550 nobody"])}
    said = mailed(judged, "--send")
    assert (said.code, f"{BEA}: refused; the server said 550 nobody" in said.out) == (1, True)


def test_errands_for_github_are_not_mailed(judged: Tracker, post: Post, tmp_path: Path) -> None:
    kept = tmp_path / "errands.json"
    judged("comment", "--pull-request", 12, "--keep", kept)
    said = judged("mail", "--resend", kept, "--send")
    assert (said.code, "tracker deliver" in said.err, post.desk.connections) == (1, True, 0)


@pytest.mark.parametrize(
    ("arguments", "code", "remedy"),
    [
        (["--to", ANN], 2, "--from ADDRESS"),
        (["--to", ANN, "--from", "bot", "--send"], 1, "write name@host"),
        (["--to", ANN, "--from", "bot@example.org", "--send", "--dry-run", "mails"], 2, "not both"),
        (["--to", ANN, "--from", "bot@example.org", "--date", "yesterday"], 2, "2026-08-03T06:00:00Z"),
        (["--to", ANN, "--from", "bot@example.org", "--date", "2026-08-03"], 1, "zone"),
        (["--to", ANN, "--from", "bot@example.org", "--send"], 1, "TRACKER_SMTP_URL"),
    ],
)
def test_wrong_use_is_told_with_the_remedy(
    judged: Tracker, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, remedy: str
) -> None:
    monkeypatch.delenv("TRACKER_SMTP_URL", raising=False)
    said = judged("mail", *arguments)
    assert (said.code, remedy in said.err) == (code, True), said.err
