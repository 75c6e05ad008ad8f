"""SQL, templates, markup, formulas, hidden characters in every field: from a file through the store to a document."""

from __future__ import annotations

import re
from email import message_from_string, policy
from typing import Any

from tests.cli import Tracker
from tests.factory import bundle, evaluation, row, run, write
from tests.test_render_hostile import assert_no_trigger

SPELLS = (
    "'; DROP TABLE points; --",
    '" OR 1=1) --',
    "{{7*7}}{% raw %}${7*7}<%= 7*7 %>",
    "%(number)s %s {0} {x.__class__}",
    "<script>alert(1)</script>",
    "=cmd|'/c calc'!A1",
    "a\u202eb\u2066c\u200bd\ufeffe\u00ad",
    "\x1b]0;title\x07\x1b[2J",
    "x\r\nBcc: all@example.org",
    "[x](https://evil.example) @claude #1",
)
TEXTS = ("image", "infmax_model_prefix", "framework", "precision", "spec_decoding", "hw", "recipe_fingerprint", "model")
FORMATS = ("table", "markdown", "json", "csv", "title")
"""One for each way to escape; `test_render_hostile` has the others."""
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\u00ad]")


def poisoned(spell: str, at: int) -> Any:
    """A run with each text in each field, a row for each of them, beside a whole row; slower the second time."""
    speed = 1000.0 - 300.0 * at
    named = [(one, field) for one in SPELLS for field in TEXTS]
    rows = [row(conc, speed, **{field: f"{one} {field}"}) for conc, (one, field) in enumerate(named, 1)]
    scores = [evaluation(0.95 - 0.1 * at, conc, task=one) for conc, one in enumerate(SPELLS, 1)]
    told = {
        **run(1001 + at, f"2026-05-0{1 + at}T00:00:00Z"),
        "name": spell,
        "display_title": spell,
        "conclusion": spell,
    }
    return bundle(told, [row(999, speed), *rows], scores)


def test_every_field_goes_all_the_way_and_nothing_is_run(tracker: Tracker) -> None:
    file = write(tracker.folder / "runs.json", [poisoned(SPELLS[4], 0), poisoned(SPELLS[7], 1)])
    said = tracker.ingest(file)
    assert said.code == 0, said.err
    points, scores = 1 + len(SPELLS) * len(TEXTS), len(SPELLS)
    assert said.out.startswith(f"landed: {2 * points} points and {2 * scores} scores of 2 run attempts"), said.out
    _assert_harmless(said.out, "plain")
    for form in FORMATS:
        told = tracker("compare", "run:1002", "--against", "previous", "--format", form)
        assert told.code == 0, told.err
        _assert_harmless(told.out, form)
    page = tracker.folder / "page.html"
    assert tracker("report", "run:1002", "--html", page).code == 0
    _assert_harmless(page.read_text(encoding="utf-8"), "html")
    _assert_mail(tracker("mail", "run:1002", "--to", "a@example.org", "--from", "b@example.org").out)
    assert f"{2 * points}  points\n" in tracker("store", "info").out


def _assert_harmless(text: str, form: str) -> None:
    if form == "json":
        return
    assert not HIDDEN.search(text.replace("\r\n", "\n") if form == "csv" else text), form
    if form == "html":
        assert "<script>alert" not in text
    if form in ("markdown", "comment", "summary", "short", "title", "commit", "evidence"):
        assert_no_trigger(re.sub(r"https://github\.com/\S+|<!--.*?-->", "", text))
    if form == "csv":
        assert not re.search(r"(?:^|,)\"?[=@]", text, re.MULTILINE)


def _assert_mail(printed: str) -> None:
    message = message_from_string(
        printed[printed.index("From:") :] if "From:" in printed else printed, policy=policy.default
    )
    assert message["Bcc"] is None
    assert not HIDDEN.search(str(message["Subject"]))
