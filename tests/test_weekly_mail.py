"""`tracker weekly --to`: the week as a mail, the same bytes for the same store, sent to nobody unless asked."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

import pytest

from reports import charts, parity, render, week
from store.records import Level
from tests.cli import Said, Tracker
from tests.factory import bundle, calm_then_slower, row, run, write
from tests.smtp.server import PASSWORD, USER, Post, running
from tests.test_weekly import NEW, OLD, a_change, a_full_week, a_run, a_week

ANN, BEA = "ann@example.org", "bea@example.org"
SENT = ("--from", "Sweeps <bot@example.org>", "--lang", "both", "--week", "2026-W24")
LATER = "451 4.7.1 greylisted, come back later"


@pytest.fixture
def judged(tracker: Tracker) -> Tracker:
    """A store with three calm runs and, in week 24, a slower bump."""
    return tracker.filled(calm_then_slower())


@pytest.fixture
def post(monkeypatch: pytest.MonkeyPatch) -> Iterator[Post]:
    with running(login=True) as made:
        monkeypatch.setenv("TRACKER_SMTP_URL", made.url(USER))
        monkeypatch.setenv("TRACKER_SMTP_PASSWORD", PASSWORD)
        yield made


def mailed(judged: Tracker, *arguments: object) -> Said:
    return judged("weekly", "--to", ANN, "--to", BEA, *SENT, *arguments)


def read(content: bytes) -> EmailMessage:
    return message_from_bytes(content, policy=policy.default)


def kept(judged: Tracker, folder: Path, *arguments: object) -> EmailMessage:
    """The mail that a dry run writes."""
    said = mailed(judged, "--dry-run", folder, *arguments)
    assert said.code == 0, said.err
    return read(Path(said.out.strip()).read_bytes())


def part(message: EmailMessage, kind: str) -> str:
    body = message.get_body((kind,))
    assert body is not None
    return str(body.get_content()).replace("\r\n", "\n")


# ---------------------------------------------------------------- what is handed in


def test_without_send_the_week_is_printed_and_nothing_is_sent(judged: Tracker, post: Post) -> None:
    said = mailed(judged)
    assert said.code == 0
    assert said.out.startswith(f"mail from Sweeps <bot@example.org> to {ANN}, {BEA}\nsubject: New regressions: ")
    assert post.desk.connections == 0


def test_a_dry_run_writes_the_bytes_that_sending_sends(judged: Tracker, post: Post, tmp_path: Path) -> None:
    said = mailed(judged, "--dry-run", tmp_path / "mails")
    (path,) = (tmp_path / "mails").iterdir()
    assert (said.code, said.out, post.desk.connections) == (0, f"{path}\n", 0)
    assert mailed(judged, "--send").code == 0
    (taken,) = post.desk.taken
    assert taken.content == path.read_bytes()
    assert taken.recipients == [ANN, BEA]


def test_the_parts_are_those_of_out(judged: Tracker, tmp_path: Path) -> None:
    said = mailed(judged, "--dry-run", tmp_path / "mails", "--out", tmp_path / "files")
    *files, path = said.out.split()
    message = read(Path(path).read_bytes())
    assert len(files) == 4
    for ending, kind in (("txt", "plain"), ("html", "html")):
        text = (tmp_path / "files" / f"weekly-2026-W24.{ending}").read_text(encoding="utf-8")
        assert part(message, kind).strip() == text.strip()
    assert message["Subject"].startswith("New regressions: accuracy 0, performance 1; week 2026-W24")
    assert message["List-Id"] == "<weekly.sweep-tracker.example.org>"


def test_the_same_store_and_week_give_the_same_bytes_and_the_date_is_of_the_week(
    judged: Tracker, tmp_path: Path
) -> None:
    found = [kept(judged, tmp_path / name).as_bytes() for name in ("one", "two")]
    assert found[0] == found[1]
    assert read(found[0])["Date"].datetime.isoformat() == "2026-06-15T00:00:00+00:00"
    given = kept(judged, tmp_path / "three", "--date", "2026-06-15T06:30:00+02:00")
    assert given["Date"].datetime.isoformat() == "2026-06-15T06:30:00+02:00"


def test_a_week_has_one_id_in_each_language_and_a_correction_stands_in_its_thread(
    judged: Tracker, tmp_path: Path
) -> None:
    first = kept(judged, tmp_path)
    assert kept(judged, tmp_path, "--date", "2026-06-16T06:00:00Z")["Message-ID"] == first["Message-ID"]
    others = [kept(judged, tmp_path, *more) for more in (("--lang", "en"), ("--week", "2026-W23"))]
    assert len({one["Message-ID"] for one in (first, *others)}) == 3
    second = kept(judged, tmp_path, "--edition", 2)
    assert second["Message-ID"] != first["Message-ID"]
    assert second["In-Reply-To"] == second["References"] == first["Message-ID"]
    for kind in ("plain", "html"):
        assert "Edition 2: it takes the place of the earlier report" in part(second, kind)
        assert "Edition" not in part(first, kind)


def test_weeks_of_two_repositories_are_two_mails(judged: Tracker, tmp_path: Path) -> None:
    ours = kept(judged, tmp_path / "a")["Message-ID"]
    more = bundle(run(300, "2026-06-11T00:00:00Z", repository="example-org/other"), [row(4, 1000.0)])
    judged.ingest(write(tmp_path / "other.json", [more]))
    assert kept(judged, tmp_path / "b")["Message-ID"] != ours


# ---------------------------------------------------------------- who gets it


def test_who_is_refused_is_named_and_the_other_has_the_mail(judged: Tracker, post: Post) -> None:
    post.desk.rcpt = {BEA: deque(["550 nobody"])}
    said = mailed(judged, "--send")
    assert said.code == 1
    assert f"{BEA}: refused; the server said 550 nobody" in said.out
    assert post.desk.got() == [ANN]


def test_greylisting_is_waited_for(judged: Tracker, post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("tracker.cli.mail.time.sleep", slept.append)
    post.desk.rcpt = {BEA: deque([LATER])}
    said = mailed(judged, "--send")
    assert (said.code, post.desk.got(), len(slept)) == (0, [ANN, BEA], 1)
    assert "not taken yet" in said.err


def test_what_stays_greylisted_is_kept_and_sent_again_to_who_lacks_it(
    judged: Tracker, post: Post, tmp_path: Path
) -> None:
    post.desk.rcpt = {BEA: deque([LATER])}
    file = tmp_path / "mail.json"
    assert mailed(judged, "--send", "--wait", 0, "--keep", file).code == 1
    assert judged("mail", "--resend", file, "--send").code == 0
    assert post.desk.got() == [ANN, BEA]
    assert post.desk.taken[0].content == post.desk.taken[1].content


@pytest.mark.parametrize(
    ("arguments", "code", "remedy"),
    [
        (["--to", ANN], 2, "--from ADDRESS"),
        (["--from", ANN], 2, "--to ADDRESS"),
        (["--send"], 2, "--to ADDRESS"),
        (["--dry-run", "mails"], 2, "--to ADDRESS"),
        (["--charts"], 2, "--to ADDRESS"),
        (["--to", ANN, "--from", "bot@example.org", "--replay"], 2, "leave --to"),
        (["--to", ANN, "--from", "bot@example.org", "--send", "--dry-run", "mails"], 2, "not both"),
        (["--to", ANN, "--from", "bot@example.org", "--date", "2026-08-03"], 1, "zone"),
        (["--to", ANN, "--from", "bot@example.org", "--send"], 1, "TRACKER_SMTP_URL"),
        (["--to", f"{ANN}\nBcc: x@y.z", "--from", "bot@example.org"], 1, "recipient"),
    ],
)
def test_wrong_use_is_told_with_the_remedy(
    judged: Tracker, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, remedy: str
) -> None:
    monkeypatch.delenv("TRACKER_SMTP_URL", raising=False)
    said = judged("weekly", *arguments)
    assert (said.code, remedy in said.err) == (code, True), said.err


def test_what_is_withdrawn_is_told_by_no_week(judged: Tracker) -> None:
    assert "performance 1" in judged("weekly", "--week", "2026-W24").out
    judged.folder.joinpath("tracker.withdrawals.yaml").write_text(
        '- {run: 200, class: broken-run, reason: "broken node", since: 2026-06-13, source: "https://example.org/1"}\n',
        encoding="utf-8",
    )
    said = judged("weekly", "--week", "2026-W24")
    assert said.code == 0, said.err
    assert "No runs to judge" in said.out


# ---------------------------------------------------------------- pictures


def test_histories_of_new_regressions_stand_in_the_html(judged: Tracker, tmp_path: Path) -> None:
    message = kept(judged, tmp_path, "--charts")
    pictures = [one for one in message.walk() if one.get_content_type() == "image/png"]
    html = part(message, "html")
    assert len(pictures) == html.count('src="cid:') == 2
    assert {one["Content-ID"].strip("<>") for one in pictures} == {
        name.split('"')[0] for name in html.split('src="cid:')[1:]
    }
    assert "the last 4 runs beside the median run" in html
    assert "The image changed on 2026-06-12." in html
    assert "最近 4 次" in html


def test_without_the_extra_it_says_which_one(judged: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    said = mailed(judged, "--charts")
    assert (said.code, "pip install 'sweep-tracker[charts]'" in said.err) == (1, True)


def levels(days: range) -> tuple[Level, ...]:
    runs = [a_run(at) for at in days]
    return tuple(Level(one.key, one.started_at, 1.0 - 0.1 * (at >= 1), NEW if at >= 1 else OLD)
                 for at, one in zip(days, runs, strict=True))  # fmt: skip


def test_the_worst_three_are_drawn_from_two_runs_on() -> None:
    changes = [a_change(f"c{number}", 1, config=f"config-{number}", key=f"curve-{number}") for number in range(6)]
    chosen = week.select(a_week(*changes))
    known = {f"curve-{number}": levels(range(-3, 3)) for number in range(1, 6)} | {"curve-0": levels(range(1, 2))}
    pictures = charts.for_week(chosen, known, "en")
    assert [one.name for one in pictures] == ["01-history", "02-history", "03-history"]
    assert [one.lang for one in charts.for_week(chosen, known, "both")] == ["en"] * 3 + ["zh"] * 3
    html = render.render(chosen, "weekly_html", "en", pictures)
    assert html.count("<img ") == 3


def test_both_languages_of_a_corrected_week_say_the_same() -> None:
    chosen = replace(week.select(a_full_week()), edition=3)
    for document in ("weekly", "weekly_text", "weekly_html"):
        assert parity.parity(*(render.render(chosen, document, lang) for lang in ("en", "zh"))) == ()
