"""A mail: headers that nothing can extend, short lines, two parts in two languages, the same bytes every time."""

from __future__ import annotations

import json
import re
import struct
import zlib
from dataclasses import replace
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reports import facts, outbox, parity, render
from reports.channels import mail
from reports.language import CATALOGS, Language
from reports.outbox import CannotSend, Mail
from reports.picture import CannotShow, Picture
from store.records import Comparison, Scope, Verdict
from tests.sayings import (
    AFTER,
    BEFORE,
    a_finding,
    a_large_sweep,
    a_random_comparison,
    a_screen,
    a_series,
    a_wide_sweep,
    an_eval,
)
from tests.test_language import messages
from tests.test_render_hostile import assert_no_trigger, hostile, poisoned

DATE = datetime(2026, 8, 3, 6, 0, tzinfo=UTC)
SENDER = "推理基准 <tracker-bot@example.org>"


def a_png(width: int, height: int) -> bytes:
    """A black picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + bytes(width)) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


A_PICTURE = Picture("curve", a_png(3, 2), "Throughput per GPU fell.")
CHINESE = "推理基准周报：第 31 周（2026-07-27 至 08-02）3 项回归 / Weekly report: 3 regressions"


def an_errand(**other: Any) -> Mail:
    told: dict[str, Any] = {
        "sender": SENDER,
        "recipients": ("dev1@example.org",),
        "subject": "Weekly report",
        "text": "text\n",
        "html": "<p>html</p>\n",
        "date": DATE,
        "stream": "weekly",
        "about": "2026-W31",
    }
    return Mail(**{**told, **other})


def a_mail(subject: str = "Weekly report", **other: Any) -> bytes:
    return mail.message(an_errand(subject=subject, **other)).as_bytes()


def a_reader(raw: bytes) -> EmailMessage:
    read = message_from_bytes(raw, policy=policy.default)
    assert isinstance(read, EmailMessage)
    assert read.defects == []
    return read


def header_lines(raw: bytes) -> list[bytes]:
    return raw.partition(b"\r\n\r\n")[0].split(b"\r\n")


def parts(raw: bytes) -> dict[str, str]:
    """The bodies by their type, with plain line ends, in the order of the mail."""
    return {p.get_content_type(): p.get_content().replace("\r\n", "\n") for p in a_reader(raw).iter_parts()}


NAMES = [
    "From",
    "To",
    "Subject",
    "Date",
    "Message-ID",
    "List-Id",
    "List-Unsubscribe",
    "Auto-Submitted",
    "MIME-Version",
    "Content-Type",
]


# ---- case 48: headers ----------------------------------------------------------------------------------------

SUBJECTS = [
    CHINESE,
    "normal",
    "🚀 " * 39 + "🚀",
    "x" * 2000,
    "a  b",
    "=?utf-8?q?injected?= word",
    '"quoted" (comment) <a@b.example>, c',
    "👨‍👩‍👧‍👦" * 30,
    "e\u0301" * 60,
    'é/ =推理_推理=(=🚀word 推理/ "/  🚀"word "( ("/ ?"  word _推理=推理"/   🚀 é',
]


def assert_sound_headers(raw: bytes) -> None:
    lines = header_lines(raw)
    assert all(line.isascii() for line in lines)
    assert max(map(len, lines)) <= 76
    assert all(len(word) <= 75 for line in lines for word in re.findall(rb"=\?\S+\?=", line))
    assert list(a_reader(raw).keys()) == NAMES


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_subject_reads_back_as_it_was(subject: str) -> None:
    raw = a_mail(subject)
    assert_sound_headers(raw)
    assert a_reader(raw)["Subject"] == subject


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=200))
def test_any_subject_reads_back_as_it_was(subject: str) -> None:
    subject = subject.strip(" ")
    assume(subject)
    raw = a_mail(subject)
    assert_sound_headers(raw)
    assert a_reader(raw)["Subject"] == subject


@pytest.mark.parametrize("ending", ["\r\n", "\n", "\r", "\u2028", "\x85", "\r\n\r\n", "\x0b", "\x00\n"])
def test_a_line_break_in_a_subject_makes_no_header(ending: str) -> None:
    raw = a_mail(f"x{ending}Bcc: victim@example.org")
    assert_sound_headers(raw)
    assert a_reader(raw)["Subject"] == "x Bcc: victim@example.org"
    assert a_reader(raw)["Bcc"] is None


@pytest.mark.parametrize(
    ("address", "name", "spec"),
    [
        ("dev1@example.org", "", "dev1@example.org"),
        ("<dev1@example.org>", "", "dev1@example.org"),
        ("Doe, Jane <dev1@Example.org>", "Doe, Jane", "dev1@example.org"),
        ('"Doe, \\"J\\"" <dev1@example.org>', 'Doe, "J"', "dev1@example.org"),
        ("推理团队 <dev.1+list@mail.example.org>", "推理团队", "dev.1+list@mail.example.org"),
        ("dev2@example.org <dev1@example.org>", "dev2@example.org", "dev1@example.org"),
        ("root@localhost", "", "root@localhost"),
    ],
)
def test_an_address_reads_back_as_one_mailbox(address: str, name: str, spec: str) -> None:
    raw = a_mail(sender=address, recipients=(address, "dev2@example.org"))
    assert_sound_headers(raw)
    (sender,), (first, second) = a_reader(raw)["From"].addresses, a_reader(raw)["To"].addresses
    assert (sender.display_name, sender.addr_spec) == (first.display_name, first.addr_spec) == (name, spec)
    assert second.addr_spec == "dev2@example.org"


def test_a_long_display_name_is_folded_by_the_rules() -> None:
    name = "推理基准周报 " * 20
    raw = a_mail(sender=f"{name} <dev1@example.org>")
    assert_sound_headers(raw)
    (sender,) = a_reader(raw)["From"].addresses
    assert sender.addr_spec == "dev1@example.org"
    # The reader of Python 3.11 puts a blank between the encoded words of a name, against RFC 2047.
    assert sender.display_name.replace(" ", "") == name.replace(" ", "")


@pytest.mark.parametrize(
    "address",
    [
        "dev1@example.org\r\nBcc: victim@example.org",
        "dev1@example.org\n",
        "a\u2028b <dev1@example.org>",
        "\x00 <dev1@example.org>",
        "\ud800 <dev1@example.org>",
        "dev1",
        "",
        "@example.org",
        "dev1@",
        "dev1@example.org, dev2@example.org",
        "<dev1@example.org> <dev2@example.org>",
        "dev 1@example.org",
        "dev1@exa mple.org",
        "dev1@-example.org",
        "dev1@示例.org",
        "推理@example.org",
        "a@b@c.example",
        f"{'x' * 65}@example.org",
        f"dev1@{'x' * 64}.org",
    ],
)
def test_a_bad_address_is_refused_with_the_remedy(address: str) -> None:
    for where in ({"sender": address}, {"recipients": ("dev2@example.org", address)}):
        with pytest.raises(CannotSend, match="write"):
            a_mail(**where)


@pytest.mark.parametrize(
    ("wrong", "remedy"),
    [
        ({"recipients": ()}, "at least one"),
        ({"recipients": ("a@example.org", "A <a@Example.org>")}, "a@example.org is named twice"),
        ({"accepted": ("stranger@example.org",)}, "stranger@example.org, which is no recipient"),
        ({"date": datetime(2026, 8, 3)}, "UTC"),
        ({"stream": "Weekly report"}, "lower-case"),
        ({"about": " "}, "name what of its stream it tells"),
        ({"about": "\ud800"}, "name what of its stream it tells"),
        ({"version": 0}, "start at 1"),
        ({"subject": " \r\n"}, "'title'"),
        ({"subject": "x" * 2001}, "2,001 characters"),
        ({"subject": "\ud800"}, "cut it at a character"),
        ({"html": "\ud800"}, "cut it at a character"),
        ({"text": ""}, "render both parts"),
        ({"html": "推" * 34_134}, "102,402 bytes, and 102,400 may be"),
        ({"text": "x" * 1_000_001}, "leave rows out"),
        ({"html": "<p><script>"}, "'<script'"),
        ({"html": "<SVG>"}, "'<SVG'"),
        ({"html": '<img src="https://a.example/x.png">'}, "fetch it from elsewhere"),
        ({"html": '<img src="data:image/png;base64,">'}, "fetch it from elsewhere"),
        ({"html": '<p style="background:url(x)">'}, "fetch it from elsewhere"),
        ({"html": '<img src="cid:a@b">'}, "shows 1 pictures that the mail lacks"),
        ({"pictures": (A_PICTURE,)}, "does not show 1"),
        ({"unsubscribe": "https://a.example/x>\r\nBcc: b@c.example"}, "https://"),
        ({"unsubscribe": "javascript:x"}, "https://"),
    ],
)
def test_a_mail_that_a_server_or_a_client_would_refuse_cannot_be_made(wrong: dict[str, Any], remedy: str) -> None:
    with pytest.raises(CannotSend, match=remedy):
        an_errand(**wrong)


def test_a_mail_that_is_too_long_in_pictures_cannot_be_made() -> None:
    large = Picture("large", A_PICTURE.png + bytes(5_000_001), "Large")
    with pytest.raises(CannotSend, match="leave some out"):
        an_errand(html=shown(large), pictures=(large,))


@pytest.mark.parametrize(
    ("wrong", "remedy"),
    [
        ({"png": b"GIF89a"}, "not the bytes of a PNG"),
        ({"png": b"\x89PNG\r\n\x1a\n"}, "not the bytes of a PNG"),
        ({"name": "a/b"}, "lower-case"),
        ({"alt": " "}, "say in `alt`"),
    ],
)
def test_what_is_no_picture_cannot_be_made(wrong: dict[str, Any], remedy: str) -> None:
    with pytest.raises(CannotShow, match=remedy):
        replace(A_PICTURE, **wrong)


def test_a_kept_mail_is_read_back_as_it_was(tmp_path: Path) -> None:
    made = an_errand(subject=CHINESE, html=shown(A_PICTURE), pictures=(A_PICTURE,), accepted=("dev1@example.org",))
    outbox.write([made], tmp_path / "mail.json")
    (read,) = outbox.read(tmp_path / "mail.json")
    assert read == made
    assert isinstance(read, Mail)
    assert mail.message(read).as_bytes() == mail.message(made).as_bytes()


def test_a_kept_mail_is_held_to_the_same_rules() -> None:
    text = outbox.dumps([an_errand()]).replace('"dev1@example.org"', '"a@example.org\\r\\nBcc: b@c.example"')
    with pytest.raises(CannotSend, match="errand 1: recipient"):
        outbox.loads(text)


def test_a_preview_tells_whom_and_what() -> None:
    said = outbox.preview([an_errand(subject=f"{CHINESE}\r\nBcc: x@y.example", text="lines\nof text\n")])
    assert said.startswith("mail from 推理基准 <tracker-bot@example.org> to dev1@example.org\nsubject: 推理基准周报")
    assert "\nBcc" not in said
    assert "    lines\n    of text\n" in said


def test_the_headers_say_that_a_machine_wrote_to_a_list() -> None:
    read = a_reader(a_mail())
    assert read["Date"].datetime == DATE
    assert read["Auto-Submitted"] == "auto-generated"
    assert read["List-Id"] == "<weekly.sweep-tracker.example.org>"
    assert read["List-Unsubscribe"] == "<mailto:tracker-bot@example.org?subject=unsubscribe>"
    assert re.fullmatch(r"<[0-9a-f]{32}@example\.org>", read["Message-ID"])


@pytest.mark.parametrize(
    ("address", "one_click"),
    [
        ("https://lists.example.org/leave?list=weekly", "List-Unsubscribe=One-Click"),
        ("http://lists.example.org/leave", None),
        ("mailto:leave@example.org", None),
    ],
)
def test_only_an_https_address_can_be_left_by_one_click(address: str, one_click: str | None) -> None:
    read = a_reader(a_mail(unsubscribe=address))
    assert read["List-Unsubscribe"] == f"<{address}>"
    assert read["List-Unsubscribe-Post"] == one_click


def test_an_unsubscribe_address_is_a_whole_one() -> None:
    raw = a_mail(sender="a?b&c+d@example.org")
    said = "<mailto:a%3Fb%26c%2Bd@example.org?subject=unsubscribe>"
    assert a_reader(raw)["List-Unsubscribe"] == said


# ---- the same bytes ------------------------------------------------------------------------------------------


def test_the_same_arguments_give_the_same_bytes() -> None:
    assert a_mail(CHINESE) == a_mail(CHINESE)


def test_the_message_id_follows_what_is_told_alone() -> None:
    first, again, other, stream = (
        a_reader(a_mail(text=text, about=about, stream=stream))
        for text, about, stream in (("ax", "x", "a"), ("bx", "x", "a"), ("ay", "y", "a"), ("ax", "x", "b"))
    )
    assert first["Message-ID"] == again["Message-ID"]
    assert len({one["Message-ID"] for one in (first, other, stream)}) == 3
    assert first.get_boundary() != again.get_boundary()


def test_a_correction_stands_in_the_thread_of_what_it_corrects() -> None:
    first, third = (a_reader(a_mail(version=version)) for version in (1, 3))
    assert first["References"] is None
    assert third["References"] == third["In-Reply-To"] == first["Message-ID"] != third["Message-ID"]


def test_a_written_mail_is_the_message(tmp_path: Path) -> None:
    made = an_errand(subject=CHINESE)
    path = mail.write(made, tmp_path / "out")
    assert path.read_bytes() == mail.message(made).as_bytes()
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert re.fullmatch(r"weekly-[0-9a-f]{12}\.eml", path.name)
    read = a_reader(path.read_bytes())
    assert (read["Subject"], read["From"].addresses[0].display_name) == (CHINESE, "推理基准")


# ---- pictures ------------------------------------------------------------------------------------------------


def shown(*pictures: Picture) -> str:
    return "".join(f'<img src="cid:{one.cid}" alt="{one.alt}">' for one in pictures) + "\n"


def test_pictures_stand_beside_the_html_that_shows_them() -> None:
    other = Picture("gauges", a_png(1300, 2), "Gauges")
    raw = a_mail(html=shown(A_PICTURE, other), pictures=(A_PICTURE, other))
    assert raw == a_mail(html=shown(A_PICTURE, other), pictures=(A_PICTURE, other))
    assert max(map(len, raw.split(b"\r\n"))) <= 80
    text, related = a_reader(raw).iter_parts()
    assert (text.get_content_type(), related.get_content_type()) == ("text/plain", "multipart/related")
    html, *images = related.iter_parts()
    assert (html.get_content_type(), related.get_param("type")) == ("text/html", "text/html")
    assert [image.get_content() for image in images] == [A_PICTURE.png, other.png]
    assert [f"cid:{image['Content-ID'].strip('<>')}" for image in images] == re.findall(
        'src="([^"]+)', shown(A_PICTURE, other)
    )
    assert [image.get_filename() for image in images] == ["curve.png", "gauges.png"]
    assert {image.get_content_disposition() for image in images} == {"inline"}


def test_a_picture_that_both_halves_show_is_carried_once() -> None:
    raw = a_mail(html=shown(A_PICTURE, A_PICTURE), pictures=(A_PICTURE,))
    assert raw.count(b"image/png") == 1


def test_a_page_shows_the_pictures_of_its_language_with_words_for_them() -> None:
    both = Picture("both", a_png(2, 2), 'All <curves> & "points"')
    english, chinese = Picture("en", a_png(1300, 9), "Curves", "en"), Picture("zh", a_png(640, 9), "曲线", "zh")
    given = (both, english, chinese)
    html = render.render(facts.select(a_screen()), "mail_html", "both", given)
    page = Page(html)
    images = [attrs for tag, attrs in page.seen if tag == "img"]
    assert [one["src"] for one in images] == [f"cid:{one.cid}" for one in (both, english, both, chinese)]
    assert [one["alt"] for one in images] == [both.alt, "Curves", both.alt, "曲线"]
    assert [one["width"] for one in images] == ["2", "640", "2", "640"], (
        "no wider than the page, Outlook knows no style"
    )
    assert len(a_reader(a_mail(html=html, pictures=given)).get_payload()) == 2


# ---- case 50: lines ------------------------------------------------------------------------------------------

BODIES = [
    "<td>" + "吞吐量 throughput " * 2500 + "</td>",
    "From the start\n.leading dot\n..\n.\nlast",
    "吞吐量" * 5000,
    "trailing blanks   \n\n\n\tindented\n=3D =\n",
    "🚀" * 1000,
    "--=_boundary\n--\n",
]


def assert_sound_lines(raw: bytes, text: str, html: str) -> None:
    """Lines of at most 76 octets with SMTP's line ends, and bodies that read back; a body ends its last line."""
    assert raw.isascii()
    assert b"\n" not in raw.replace(b"\r\n", b"")
    lines = raw.split(b"\r\n")
    assert max(map(len, lines)) <= 76
    assert not [line for line in lines if line.startswith((b".", b"From "))]
    ended = [body if body.endswith("\n") else f"{body}\n" for body in (text, html)]
    assert list(parts(raw).items()) == list(zip(("text/plain", "text/html"), ended, strict=True))


@pytest.mark.parametrize("body", BODIES)
def test_long_lines_and_marks_of_mail_survive(body: str) -> None:
    assert_sound_lines(a_mail(text=body, html=body), body, body)


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\r"), min_size=1, max_size=400))
def test_any_body_reads_back_as_it_was(body: str) -> None:
    assert_sound_lines(a_mail(text=body, html=body), body, body)


@pytest.mark.parametrize(
    "other", [policy.SMTP, policy.default.clone(linesep="\r\n"), policy.SMTP.clone(cte_type="7bit")]
)
def test_a_sender_with_its_own_policy_breaks_nothing(other: policy.EmailPolicy) -> None:
    """A server's client serialises by a policy of its own."""
    made = mail.message(an_errand(subject=CHINESE, text=BODIES[0], html=BODIES[1]))
    raw = made.as_bytes(policy=other)
    assert_sound_headers(raw)
    assert a_reader(raw)["Subject"] == CHINESE
    assert_sound_lines(raw, BODIES[0], BODIES[1])


# ---- case 49: documents --------------------------------------------------------------------------------------

TAGS = frozenset("html head meta body div hr h3 p b br ul li table tbody tr th td a".split())
ATTRIBUTES = frozenset(
    "lang charset name content style href border rules frame bordercolor width cellpadding cellspacing align valign"
    " nowrap".split()
)
VOID = frozenset({"meta", "br", "hr", "img"})
BLOCKS = frozenset({"h3", "p", "li", "td", "th", "tr", "br", "div"})
RUN_URL = re.compile(r"https://github\.com/(?:SemiAnalysisAI/InferenceX|o/r)/actions/runs/\d+/(?:attempts|job)/\d+")


class Page(HTMLParser):
    """What a client shows of a page: its text, its tags in balance, the cells of its tables."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.widths: list[list[int]] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        self.text += {"hr": "\n\n---\n\n", "br": "\n", "li": "\n- ", "a": f"{dict(attrs).get('href')} "}.get(tag, "")
        if tag == "table":
            self.widths.append([])
        elif tag == "tr":
            self.widths[-1].append(0)
        elif tag in ("td", "th"):
            self.widths[-1][-1] += 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.text += "\n" if tag in BLOCKS else ""

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def assert_for_every_client(html: str) -> Page:
    """No script, no picture, no style sheet, no address but of runs and jobs; whole tables; small enough for Gmail."""
    assert len(html.encode()) <= 102_400
    page = Page(html)
    assert {tag for tag, _ in page.seen} <= TAGS
    assert {name for _, attrs in page.seen for name in attrs} <= ATTRIBUTES
    assert all(RUN_URL.fullmatch(attrs["href"] or "") for _, attrs in page.seen if "href" in attrs)
    styles = " ".join(attrs["style"] or "" for _, attrs in page.seen if "style" in attrs)
    assert re.fullmatch(r"[-a-z0-9:;,. ]*", styles, re.IGNORECASE), "no value was changed on its way"
    assert not re.search(r"url|data:|import|flex|grid|(?<![-\w])color", styles)
    assert all(len(set(widths)) == 1 for widths in page.widths)
    return page


def a_week(configs: int, worse: int, better: int) -> Comparison:
    """One curve of each of many configs, some of them moved."""

    def moved(number: int) -> tuple[Verdict, float]:
        if number < worse:
            return Verdict.REGRESSION, -(5 + number / 10)
        return (Verdict.IMPROVEMENT, 5 + number / 10) if number < worse + better else (Verdict.EQUIVALENT, 0.1)

    found = tuple(
        a_finding(replace(a_series(None), model=f"m{number}"), "tput_per_gpu", *moved(number))
        for number in range(configs)
    )
    return Comparison(AFTER, BEFORE, "previous", found, (), (), "1")


def both(given: Comparison) -> tuple[str, str]:
    chosen = facts.select(given)
    return render.render(chosen, "mail_text"), render.render(chosen, "mail_html")


@pytest.mark.parametrize(
    "given",
    [a_screen(), a_week(600, 25, 40), a_week(600, 300, 300), a_large_sweep(2000, 2), a_wide_sweep(100)],
    ids=["screen", "week", "all moved", "points", "wide"],
)
def test_the_parts_of_a_mail_suit_every_client_in_both_languages(given: Comparison) -> None:
    text, html = both(given)
    assert parity.lint_text(text, "both") == ()
    assert parity.lint_text(assert_for_every_client(html).text, "both") == ()
    assert [attrs["lang"] for _, attrs in Page(html).seen if "lang" in attrs] == ["en", "en", "zh-CN"]
    assert '<meta charset="utf-8">' in html
    assert '<meta name="color-scheme" content="light dark">' in html


@pytest.mark.parametrize(("lang", "code"), [("en", "en"), ("zh", "zh-CN")])
def test_a_page_of_one_language_names_it(lang: str, code: str) -> None:
    page = assert_for_every_client(render.render(facts.select(a_screen()), "mail_html", lang))
    assert [attrs["lang"] for _, attrs in page.seen if "lang" in attrs] == [code, code]


def test_600_moved_rows_are_cut_by_importance_and_counted() -> None:
    text, html = both(a_week(600, 300, 300))
    english = Page(html).text.partition("\n---\n")[0]
    worse, better = english.partition("What got worse\n")[2].partition("Images\n")[0].split("What got better\n")
    shown = [section.count(f"\n{word}\n") for section, word in ((worse, "regression"), (better, "improvement"))]
    cut = [sum(map(int, re.findall(r"Rows not shown here: (\d+)", section))) for section in (worse, better)]
    assert [sum(rows) for rows in zip(shown, cut, strict=True)] == [300, 300], "every row is shown or counted"
    assert shown[0] > 10 * shown[1] > 0, "what got worse stays longest"
    assert len(html.encode()) > 0.9 * render.MAIL_LIMIT
    for half in text.split("\n---\n"):
        assert {f"m{number}-fp8-h200-sglang" for number in range(600)} <= set(re.findall(r"m\d+-\S+-sglang", half))


def test_the_text_part_holds_every_regression_with_its_numbers() -> None:
    text, html = both(a_week(600, 25, 40))
    for half, pattern in zip(
        text.split("\n---\n"),
        (
            r"- regression: m(\d+)-.*fell by [\d.]+% \(95% interval .*; p = 0\.0004; runs 3 against 1\)\.",
            r"- 回归：m(\d+)-.*下降 [\d.]+%（95% 区间 .*，p = 0\.0004，基线 3 次、候选 1 次运行）。",
        ),
        strict=True,
    ):
        assert sorted(map(int, re.findall(pattern, half))) == list(range(25))
    page = Page(html)
    assert "Rows not shown" not in page.text
    assert (page.text.count("\nregression\n"), page.text.count("\n回归\n")) == (25, 25)


def test_what_is_rendered_may_be_sent() -> None:
    limits = [render.DOCUMENTS[name].limit for name in ("mail_text", "mail_html")]
    assert limits == [outbox.TEXT_LIMIT, outbox.HTML_LIMIT]


def test_a_text_part_that_no_server_would_take_is_cut_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    form = replace(render.DOCUMENTS["mail_text"], limit=100_000)
    monkeypatch.setattr(render, "DOCUMENTS", {**render.DOCUMENTS, "mail_text": form})
    text = render.render(facts.select(a_week(450, 0, 450)), "mail_text")
    assert 90_000 < len(text.encode()) <= 100_000
    for half, pattern in zip(
        text.split("\n---\n"), (r"Rows not shown here: (\d+)", r"此处未显示的行数：(\d+)"), strict=True
    ):
        told = half.count("- improvement: ") + half.count("- 提升：")
        assert told + sum(map(int, re.findall(pattern, half))) == 450
    an_errand(text=text)


def test_a_mail_names_the_command_that_prints_every_row() -> None:
    text, html = both(a_screen())
    command = f"tracker compare run:{AFTER[0].key} --against previous --format json"
    assert (text.count(command), html.count(command)) == (2, 2)
    local = replace(a_screen(), candidate=(replace(AFTER[0], id=-1),))
    assert "tracker compare" not in "".join(both(local)), "no store has the runs of loose files"


def test_a_mail_begins_with_the_verdict() -> None:
    text, html = both(a_screen())
    assert text.startswith("Regression: evals 1 of 2, curves 1 of 4, points 2 of 10, failed 1, missing 1.\n\n")
    assert html.startswith("<!DOCTYPE html>\n")
    assert (
        Page(html)
        .text.strip()
        .startswith("Regression: evals 1 of 2, curves 1 of 4, points 2 of 10, failed 1, missing 1.\n")
    )


@pytest.mark.parametrize("start", range(0, 300, 100))
def test_random_mails_say_the_same_in_both_languages(start: int) -> None:
    for seed in range(start, start + 100):
        text, html = both(a_random_comparison(seed))
        assert parity.lint_text(text, "both") == (), (seed, text)
        assert parity.lint_text(assert_for_every_client(html).text, "both") == (), (seed, html)


@pytest.mark.parametrize("start", range(0, 1500, 300))
def test_hostile_strings_pass_through_a_mail(start: int) -> None:
    for at in range(start, start + 300, 30):
        chosen = facts.select(poisoned(hostile()[at : at + 30]))
        text, html = (render.render(chosen, document) for document in ("mail_text", "mail_html"))
        page = assert_for_every_client(html)
        for shown in (text, page.text):
            assert_no_trigger(re.sub(RUN_URL, "", shown))
        raw = a_mail(render.render(chosen, "title"), text=text, html=html)
        assert_sound_headers(raw)
        assert_sound_lines(raw, text, html)


def test_no_word_of_a_catalog_is_markup() -> None:
    """Words of the catalogs enter HTML as they are; only values are escaped."""
    for message in messages():
        for code in ("en", *CATALOGS):
            assert not re.search("[<>&]", Language(code).text(str(message.id)))


# ---- the reference cases -------------------------------------------------------------------------------------


def a_case(shared: Path, name: str) -> Any:
    return json.loads((shared / "cases" / name).read_text(encoding="utf-8"))


@pytest.mark.shared
def test_the_reference_subjects_read_back(shared: Path) -> None:
    for subject in a_case(shared, "48-subject-encoding-and-header-injection/subjects.json"):
        raw = a_mail(subject)
        assert_sound_headers(raw)
        assert a_reader(raw)["Subject"] == subject.replace("\r\n", " ").strip()
        assert {"text/plain", "text/html"} == set(parts(raw))


@pytest.mark.shared
def test_the_reference_week_suits_every_client(shared: Path) -> None:
    week = a_case(shared, "49-mail-clients/week.json")
    names = [f"dsr1-fp8-h200-sglang-tp8-8192-1024-conc{number}" for number in range(week["configs"])]
    made = a_week(week["configs"], week["regressions"], week["improvements"])
    named = tuple(
        replace(finding, config=name, key=name, series=None, scope=Scope.POINT)
        for name, finding in zip(names, made.findings, strict=True)
    )
    text, html = both(replace(made, findings=named))
    page = assert_for_every_client(html)
    for part in (text, page.text):
        for half in part.split("\n---\n"):
            assert set(names[: week["regressions"]]) <= set(re.findall(r"dsr1-\S+-conc\d+", half))


def the_reference_verdicts(shared: Path) -> Comparison:
    """The rows of case 45: three points that stand, an agentic one that halved, an eval that fell."""
    found = []
    for row in a_case(shared, "45-headline-contradicts-table/verdicts.json"):
        verdict = {"no change": Verdict.EQUIVALENT, "regression": Verdict.REGRESSION}[row["verdict"]]
        before, after = row["baseline"], row["candidate"]
        if row["scenario"] == "eval":
            one = an_eval(64, before, after, verdict)
        else:
            percent = (after / before - 1) * 100
            one = a_finding(a_series(row["conc"]), row["metric"], verdict, percent, baseline=before, candidate=after)
        found.append(replace(one, config=row["config"], key=f"{row['config']} {row.get('conc')} {row['metric']}"))
    return Comparison(AFTER, BEFORE, "previous", tuple(found), (), (), "1")


@pytest.mark.shared
def test_the_subject_the_first_line_and_the_rows_of_the_reference_verdicts_agree(shared: Path) -> None:
    chosen = facts.select(the_reference_verdicts(shared))
    mailed = an_errand(
        subject=render.render(chosen, "title"),
        text=render.render(chosen, "mail_text"),
        html=render.render(chosen, "mail_html"),
    )
    english, _, chinese = mailed.subject.partition(" / ")
    assert re.fullmatch(r"a-fp8-h200-sglang\b.*: Regression, GSM8K accuracy fell by 35.5 percentage points", english)
    assert "回归" in chinese
    page = Page(mailed.html)
    for part in (mailed.text, page.text.lstrip()):
        halves = part.split("\n---\n")
        assert halves[0].startswith("Regression: evals 1 of 1, points 1 of 4")
        assert halves[1].lstrip().startswith("回归：评估 1 项中 1 项、数据点 4 个中 1 个")
        for half in halves:
            assert "52.5%" in half
            assert "0.9553" in half
            assert "0.6000" in half
    assert page.text.count("\nregression\n") == page.text.count("\n回归\n") == 2


@pytest.mark.shared
def test_the_reference_comment_fits_and_tells_every_regression(shared: Path) -> None:
    given = a_case(shared, "41-comment-too-long/gen.json")
    chosen = facts.select(a_large_sweep(given["points"], 75))
    body = render.render(chosen, "comment", "both")
    assert len(body) <= 65_536
    assert len(body.encode()) <= 262_144
    english, _, chinese = body.partition("\n---\n")
    for half, word in ((english, "Regression: points 12 of 900"), (chinese, "回归：数据点 900 个中 12 个")):
        assert word in half
        assert set(range(0, 900, 75)) <= {int(one) - 1 for one in re.findall(r"\bc(\d+)\b", half)}
        assert half.count("<details>") == half.count("</details>")
    assert body.rstrip().splitlines()[-1].startswith("<!-- sweep-tracker ")


@pytest.mark.shared
def test_the_reference_body_survives(shared: Path) -> None:
    body = a_case(shared, "50-long-lines/body.json")
    assert max(map(len, body["html"].splitlines())) > 998
    assert_sound_lines(a_mail(text=body["text"], html=body["html"]), body["text"], body["html"])
