"""Delivery to a real server on this machine: who gets the mail, how often, and over what line."""

from __future__ import annotations

import ssl
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reports import outbox
from reports.channels import mail, smtp
from reports.channels.smtp import Outcome, Receipt, Server, Status
from reports.outbox import CannotSend, Mail
from store.patience import Patience
from tests.smtp.certificates import DAY, Authority, authority
from tests.smtp.server import HOST, LOST, PASSWORD, RESET, USER, Post, running

ANN, BEA, CYD = (f"{name}@example.org" for name in ("ann", "bea", "cyd"))
LATER = "451 4.7.1 greylisted, come back later"
NOBODY = "550 5.1.1 no such user"


def a_mail(*recipients: str, **other: Any) -> Mail:
    told: dict[str, Any] = {
        "sender": "推理基准 <tracker-bot@example.org>",
        "recipients": recipients or (ANN,),
        "subject": "推理基准周报 / Weekly report",
        "text": "text\n.\n.leading dot\nFrom here\n",
        "html": "<p>html</p>\n",
        "date": datetime(2026, 8, 3, 6, 0, tzinfo=UTC),
        "stream": "weekly",
        "about": "2026-W31",
    }
    return Mail(**{**told, **other})


class Pauses:
    """A clock that only this test moves."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    def patience(self, tries: int = 12, seconds: float = 1_000.0) -> Patience:
        return Patience(tries, seconds, sleep=self.taken.append, clock=lambda: sum(self.taken, 0.0))


def deliver(made: Mail, server: Server, patience: Patience | None = None) -> Outcome:
    """Deliver without ever sleeping."""
    return smtp.deliver(made, server, patience or Pauses().patience())


@pytest.fixture(scope="module")
def signer(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def good(signer: Authority) -> ssl.SSLContext:
    return signer.context(HOST, datetime.now(UTC) + DAY)


@pytest.fixture
def post(good: ssl.SSLContext) -> Iterator[Post]:
    """A server with STARTTLS and a login."""
    with running(good, login=True) as made:
        yield made


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


def of(post: Post, signer: Authority, **other: Any) -> Server:
    return replace(Server.of(post.url(USER), PASSWORD, signer.path), **{"timeout": 10.0, **other})


def told(outcome: Outcome) -> list[tuple[str, str]]:
    return [(receipt.recipient, receipt.status.value) for receipt in outcome.receipts]


# --- the line -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("implicit", [True, False], ids=["TLS", "STARTTLS"])
def test_a_mail_arrives_as_the_bytes_of_its_file(
    good: ssl.SSLContext, signer: Authority, tmp_path: Path, *, implicit: bool
) -> None:
    made = a_mail(ANN, f"Bea <{BEA}>")
    with running(good, implicit=implicit, login=True) as post:
        outcome = deliver(made, of(post, signer))
    assert outcome.done
    (taken,) = post.desk.taken
    assert (taken.sender, taken.recipients) == ("tracker-bot@example.org", [ANN, BEA])
    assert (taken.encrypted, taken.user) == (True, USER)
    assert taken.content == mail.write(made, tmp_path).read_bytes()


@pytest.mark.parametrize("hidden", [["LOGIN"], ["PLAIN"]])
def test_either_login_works(good: ssl.SSLContext, signer: Authority, hidden: list[str]) -> None:
    with running(good, login=True, auth_exclude_mechanism=hidden) as post:
        assert deliver(a_mail(), of(post, signer)).done
    assert post.desk.commands[0] == f"AUTH {({'LOGIN', 'PLAIN'} - set(hidden)).pop()}"


def test_a_server_without_a_login_by_password_is_refused(good: ssl.SSLContext, signer: Authority) -> None:
    with running(good, login=True, auth_exclude_mechanism=["LOGIN", "PLAIN"]) as post:
        (receipt,) = deliver(a_mail(), of(post, signer)).receipts
    assert (receipt.status, "no login by password" in receipt.reason) == (Status.REFUSED, True)


def test_a_wrong_password_is_told_at_once_and_never_shown(post: Post, signer: Authority, pauses: Pauses) -> None:
    server = of(post, signer, password="falsch-Wort-9")
    (receipt,) = deliver(a_mail(), server, pauses.patience()).receipts
    assert receipt.status is Status.REFUSED
    assert "535" in receipt.reason
    assert "TRACKER_SMTP_PASSWORD" in receipt.reason
    assert (post.desk.connections, pauses.taken, post.desk.taken) == (1, [], [])
    assert "falsch" not in f"{receipt} {server}"


def test_a_server_that_repeats_the_password_does_not_make_us_print_it(
    post: Post, signer: Authority, pauses: Pauses
) -> None:
    encoded = smtp._base64(PASSWORD)
    post.desk.login.append(f"535 no {PASSWORD} {encoded} {smtp._plain_login(of(post, signer))}")
    (receipt,) = deliver(a_mail(), of(post, signer), pauses.patience()).receipts
    assert "535 no *** *** ***" in receipt.reason
    assert PASSWORD not in str(receipt)


@pytest.mark.parametrize("implicit", [True, False], ids=["TLS", "STARTTLS"])
@pytest.mark.parametrize("flaw", ["expired", "unknown", "another name"])
def test_a_certificate_that_does_not_hold_ends_it_before_anything_is_sent(
    signer: Authority, tmp_path: Path, pauses: Pauses, flaw: str, *, implicit: bool
) -> None:
    now = datetime.now(UTC)
    contexts = {
        "expired": lambda: signer.context(HOST, now - timedelta(hours=1)),
        "unknown": lambda: authority(tmp_path).context(HOST, now + DAY),
        "another name": lambda: signer.context("127.0.0.3", now + DAY),
    }
    with running(contexts[flaw](), implicit=implicit, login=True) as post:
        (receipt,) = deliver(a_mail(), of(post, signer), pauses.patience()).receipts
    assert receipt.status is Status.REFUSED
    assert "certificate is not trusted" in receipt.reason
    assert (post.desk.commands, pauses.taken) == ([], [])


def test_an_offer_of_tls_that_was_taken_out_ends_it_before_anything_is_sent(
    post: Post, signer: Authority, pauses: Pauses, monkeypatch: pytest.MonkeyPatch
) -> None:
    post.desk.stripped = True
    monkeypatch.setattr(smtp, "_is_here", lambda line: False)
    for server in (of(post, signer), Server.of(post.url()), of(post, signer, ca=None)):
        (receipt,) = deliver(a_mail(), server, pauses.patience()).receipts
        assert receipt.status is Status.REFUSED
        assert "offers no TLS" in receipt.reason
    assert (post.desk.commands, pauses.taken) == ([], [])


def test_a_file_of_certificates_demands_tls_even_on_this_machine(post: Post, signer: Authority) -> None:
    post.desk.stripped = True
    assert "offers no TLS" in deliver(a_mail(), of(post, signer)).receipts[0].reason


def test_on_this_machine_or_when_asked_for_a_mail_goes_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as post:
        assert deliver(a_mail(ANN), Server.of(post.url())).done
        monkeypatch.setattr(smtp, "_is_here", lambda line: False)
        assert deliver(a_mail(BEA), Server.of(post.url(), plain=True)).done
    assert [(one.encrypted, one.recipients) for one in post.desk.taken] == [(False, [ANN]), (False, [BEA])]


def test_plain_leaves_an_offered_tls_unused(good: ssl.SSLContext) -> None:
    with running(good) as post:
        assert deliver(a_mail(ANN), Server.of(post.url(), plain=True)).done
    assert [one.encrypted for one in post.desk.taken] == [False]


def test_a_password_never_goes_to_another_machine_in_the_clear(
    post: Post, pauses: Pauses, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server.of(post.url(USER), PASSWORD, plain=True)
    assert deliver(a_mail(ANN), server).done, "on this machine it may"
    monkeypatch.setattr(smtp, "_is_here", lambda line: False)
    (receipt,) = deliver(a_mail(BEA), server, pauses.patience()).receipts
    assert (receipt.status, "by TLS only" in receipt.reason) == (Status.REFUSED, True)
    assert post.desk.commands.count("AUTH PLAIN") == 1


def test_tls_where_none_is_spoken_is_told_with_the_ports(pauses: Pauses) -> None:
    with running() as post:
        server = Server.of(f"smtps://{HOST}:{post.port}")
        (receipt,) = deliver(a_mail(), server, pauses.patience()).receipts
    assert (receipt.status, "587" in receipt.reason) == (Status.REFUSED, True)


def test_a_port_where_nobody_listens_is_tried_again(pauses: Pauses) -> None:
    with running() as post:
        pass
    (receipt,) = deliver(a_mail(), Server.of(post.url()), pauses.patience(tries=4)).receipts
    assert (receipt.status, pauses.taken) == (Status.LATER, [1.0, 2.0, 4.0])
    assert "refused" in receipt.reason
    assert "4 requests failed" in receipt.reason


@pytest.mark.parametrize(
    ("url", "remedy"),
    [
        ("https://mail.example.org", "smtps://user@host:465"),
        ("mail.example.org", "smtps://user@host:465"),
        ("smtp://", "smtps://user@host:465"),
        ("smtp://a..b", "smtps://user@host:465"),
        ("smtp://mail.example.org:x", "smtps://user@host:465"),
        ("smtp://mail.example.org/box", "smtps://user@host:465"),
        ("smtp://mail.example.org?x", "smtps://user@host:465"),
        ("smtps://bot:geheim@mail.example.org", "TRACKER_SMTP_PASSWORD"),
        ("smtps://bot@mail.example.org", "TRACKER_SMTP_PASSWORD"),
    ],
)
def test_a_wrong_address_of_a_server_is_refused_and_not_shown(url: str, remedy: str) -> None:
    with pytest.raises(CannotSend, match=remedy) as wrong:
        Server.of(url)
    assert "geheim" not in str(wrong.value)


@pytest.mark.parametrize(
    ("url", "ca", "remedy"),
    [("smtps://a.example", None, "smtp://"), ("smtp://a.example", Path("ca.pem"), "one of both")],
)
def test_plain_excludes_what_needs_tls(url: str, ca: Path | None, remedy: str) -> None:
    with pytest.raises(CannotSend, match=remedy):
        Server.of(url, ca=ca, plain=True)


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_a_file_without_certificates_is_named(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "ca.pem"
    if text is not None:
        path.write_text(text)
    with pytest.raises(CannotSend, match=r"ca\.pem has no certificates"):
        deliver(a_mail(), Server.of(f"smtps://{HOST}", ca=path))


# --- another try, and for whom ------------------------------------------------------------------------------------


def test_a_recipient_that_is_deferred_gets_it_later_and_the_others_only_once(
    post: Post, signer: Authority, pauses: Pauses
) -> None:
    post.desk.rcpt = {BEA: deque([LATER, LATER]), CYD: deque([NOBODY])}
    outcome = deliver(a_mail(ANN, BEA, CYD), of(post, signer), pauses.patience())
    assert told(outcome) == [(ANN, "accepted"), (BEA, "accepted"), (CYD, "refused")]
    assert post.desk.got() == [ANN, BEA]
    assert post.desk.taken[0].content == post.desk.taken[1].content, "the header names all, whoever gets it"
    assert pauses.taken == [60.0, 120.0]
    assert [one for one in post.desk.commands if CYD in one] == [f"RCPT {CYD}"], "a refusal is final"
    assert outcome.status is Status.REFUSED
    assert f"{CYD}: refused; the server said 550 5.1.1 no such user" in str(outcome)


@pytest.mark.parametrize("stage", ["mail", "data", "login"])
def test_not_now_is_tried_again_at_every_stage(post: Post, signer: Authority, pauses: Pauses, stage: str) -> None:
    getattr(post.desk, stage).append("451 busy")
    assert deliver(a_mail(ANN, BEA), of(post, signer), pauses.patience()).done
    assert (post.desk.got(), pauses.taken) == ([ANN, BEA], [60.0])


@pytest.mark.parametrize("stage", ["mail", "data"])
def test_a_connection_that_breaks_before_the_mail_was_taken_costs_a_wait(
    post: Post, signer: Authority, pauses: Pauses, stage: str
) -> None:
    getattr(post.desk, stage).extend([RESET, RESET])
    outcome = deliver(a_mail(ANN, BEA), of(post, signer), pauses.patience())
    assert (outcome.done, post.desk.got(), pauses.taken) == (True, [ANN, BEA], [1.0, 2.0])


def test_a_lost_answer_is_the_one_case_of_a_second_copy_and_it_is_the_same_mail(
    post: Post, signer: Authority, pauses: Pauses
) -> None:
    post.desk.data.append(LOST)
    outcome = deliver(a_mail(ANN), of(post, signer), pauses.patience())
    assert (told(outcome), post.desk.got()) == ([(ANN, "accepted")], [ANN, ANN])
    assert len({one.content for one in post.desk.taken}) == 1
    assert outcome.receipts[0].doubtful
    assert "may have arrived as well" in str(outcome)


def test_a_lost_answer_for_some_sends_nothing_more_to_those_who_accepted(
    post: Post, signer: Authority, pauses: Pauses
) -> None:
    post.desk.rcpt = {BEA: deque([LATER])}
    post.desk.data.extend(["250 fine", LOST])
    outcome = deliver(a_mail(ANN, BEA), of(post, signer), pauses.patience())
    assert post.desk.got() == [ANN, BEA, BEA]
    assert [receipt.doubtful for receipt in outcome.receipts] == [False, True]


@pytest.mark.parametrize("stage", ["mail", "data"])
def test_a_refusal_is_final_for_all(post: Post, signer: Authority, pauses: Pauses, stage: str) -> None:
    getattr(post.desk, stage).append("554 5.7.1 spam")
    outcome = deliver(a_mail(ANN, BEA), of(post, signer), pauses.patience())
    assert told(outcome) == [(ANN, "refused"), (BEA, "refused")]
    assert (post.desk.got(), pauses.taken) == ([], [])


def test_a_refused_content_leaves_who_was_deferred_another_try(post: Post, signer: Authority, pauses: Pauses) -> None:
    post.desk.rcpt = {BEA: deque([LATER])}
    post.desk.data.append("554 5.7.1 not for ann")
    outcome = deliver(a_mail(ANN, BEA), of(post, signer), pauses.patience())
    assert told(outcome) == [(ANN, "refused"), (BEA, "accepted")]


def test_a_server_that_closes_with_421_is_come_back_to_soon(post: Post, signer: Authority, pauses: Pauses) -> None:
    post.desk.rcpt = {ANN: deque(["421 4.3.2 shutting down"])}
    assert deliver(a_mail(ANN, BEA), of(post, signer), pauses.patience()).done
    assert (post.desk.got(), pauses.taken) == ([ANN, BEA], [1.0])


def test_a_mail_above_the_limit_of_the_server_is_not_sent(good: ssl.SSLContext, signer: Authority) -> None:
    with running(good, login=True, data_size_limit=500) as post:
        (receipt,) = deliver(a_mail(), of(post, signer)).receipts
    assert (receipt.status, "the server takes 500" in receipt.reason) == (Status.REFUSED, True)
    assert "MAIL" not in post.desk.commands


def test_what_the_budget_left_is_kept_and_sent_later_to_those_who_have_it_not(
    post: Post, signer: Authority, pauses: Pauses, tmp_path: Path
) -> None:
    post.desk.rcpt = {BEA: deque([LATER] * 4)}
    kept = tmp_path / "mail.json"
    outcome = deliver(a_mail(ANN, BEA), of(post, signer), pauses.patience(seconds=500))
    assert told(outcome) == [(ANN, "accepted"), (BEA, "later")]
    assert pauses.taken == [60.0, 120.0, 240.0]
    assert "451 4.7.1 greylisted" in outcome.receipts[1].reason
    assert "480 s, and 80 s are left" in outcome.receipts[1].reason
    outbox.write([outcome.left], kept)
    (again,) = outbox.read(kept)
    assert isinstance(again, Mail)
    second = deliver(again, of(post, signer), pauses.patience())
    assert (told(second), post.desk.got()) == ([(BEA, "accepted")], [ANN, BEA])
    assert post.desk.taken[0].content == post.desk.taken[1].content


def test_a_mail_that_everybody_has_is_not_sent_again(post: Post, signer: Authority) -> None:
    outcome = deliver(a_mail(ANN, accepted=(ANN,)), of(post, signer))
    assert (outcome.done, outcome.receipts, post.desk.connections) == (True, (), 0)


def test_a_server_that_never_answers_is_left_after_the_timeout(pauses: Pauses) -> None:
    import socket

    with socket.create_server((HOST, 0)) as silent:
        server = replace(Server.of(f"smtp://{HOST}:{silent.getsockname()[1]}"), timeout=0.2)
        (receipt,) = deliver(a_mail(), server, pauses.patience(tries=2)).receipts
    assert (receipt.status, pauses.taken) == (Status.LATER, [1.0])


def test_a_server_that_answers_with_controls_cannot_paint_the_terminal(post: Post, signer: Authority) -> None:
    post.desk.mail.append("554 \x1b[2Jno\x07")
    (receipt,) = deliver(a_mail(), of(post, signer)).receipts
    assert receipt == Receipt(ANN, Status.REFUSED, r"the server said 554 \x1b[2Jno\x07")


def test_no_thread_of_a_server_stays_behind() -> None:
    with running():
        pass
    assert threading.active_count() == 1 or all(one.daemon for one in threading.enumerate()[1:])
