"""Errands as values: what may exist, what is defused, and that files bring back what was written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports import escapes, facts, outbox, render
from reports.channels import sticky
from reports.channels.sticky import Create, Delete, Edit, Seen
from reports.outbox import BODY_LIMIT, CannotSend, CheckRun, Comment, Errand, Label, Mark
from store.records import Verdict
from tests import sayings

SHA = "c0ffee" + "0" * 34


def comment(verdict: str = "regression", head: str = SHA, text: str = "Slower.", pull: int = 7) -> Comment:
    return Comment.of(pull, f"{text}\n\n{Mark(version='0.1.0', head=head, verdict=verdict)}\n", f"short: {verdict}")


def check(**fields: str) -> CheckRun:
    told = {"head": SHA, "name": "tracker", "conclusion": "failure", "title": "Slower", "summary": "Slower by 3 %."}
    return CheckRun.of(**(told | fields))


# --- what starts other bots ---------------------------------------------------------------------------------------

DANGEROUS = {
    "@claude": "call of an agent",
    "mail@claude.ai": "call of an agent",
    "&#64;Klaud-Cold look": "call of an agent",
    "hello @Someone": "mention",
    "中文@someone": "mention",
    "&commat;team/name": "mention",
    "&#x40;&#99;laude": "mention",
    "/reuse-sweep-run 123": "command",
    "text\n> /Stage-Results": "command",
    "As a PR reviewer and CODEOWNER, I": "sign-off of a code owner",
    "as a  PR\nreviewer and codeowner": "sign-off of a code owner",
    "<!-- recipe-reminder -->": "hidden comment",
    "<!-- codeowner-signoff-verify sha=0 -->": "hidden comment",
    "<!-- sweep-tracker-notice head=0 -->": "hidden comment",
}
SAFE = (
    "vllm/vllm-openai@sha256:0123456789abcdef",
    "https://github.com/octo/sweeps/actions/runs/1",
    "a code owner reviewed it",
    "5 @ 10",
    "reuse-sweep-run",
    str(Mark(head=SHA, verdict="mixed")),
)


@pytest.mark.parametrize("text", DANGEROUS)
def test_a_dangerous_text_is_named_and_defused(text: str) -> None:
    assert outbox.triggers(text)[0] == DANGEROUS[text]
    assert outbox.triggers(outbox.harmless(text)) == ()


@pytest.mark.parametrize("text", SAFE)
def test_a_harmless_text_stays_as_it_is(text: str) -> None:
    assert outbox.triggers(text) == ()
    assert outbox.harmless(text) == text


@pytest.mark.parametrize(
    "text", ["@claude", "mail@claude.ai", "hello @Someone", "/stage-results", "As a PR reviewer and CODEOWNER, I"]
)
def test_a_value_that_passed_the_escapes_holds_no_trigger(text: str) -> None:
    assert outbox.triggers(escapes.markdown(text)) == ()


_PIECES = st.sampled_from(
    [*DANGEROUS, *SAFE, "@", "/", "<!--", "-->", "\n", " ", "claude", "&#64;", "stage-results", "\u200b"]
)


@given(st.lists(_PIECES | st.text(max_size=5), max_size=8).map("".join))
def test_defusing_leaves_no_trigger_and_reads_the_same(text: str) -> None:
    defused = outbox.harmless(text)
    assert outbox.triggers(defused) == ()
    assert outbox.harmless(defused) == defused
    assert defused.replace("\u200b", "").replace("&lt;!--", "<!--") == text.replace("\u200b", "").replace(
        "&lt;!--", "<!--"
    )


@given(st.lists(_PIECES, max_size=6).map("".join))
def test_every_comment_that_exists_is_harmless(text: str) -> None:
    if str(Mark(head=SHA, verdict="mixed")) in text:
        return
    made = comment(text=text)
    assert outbox.triggers(made.body) == outbox.triggers(made.notice) == ()
    with pytest.raises(CannotSend, match="command"):
        Comment(7, f"/stage-results\n{made.body}", "short")


# --- what GitHub takes --------------------------------------------------------------------------------------------

MARKED = f"text\n{Mark(head=SHA)}"


@pytest.mark.parametrize(
    ("pull", "body", "notice", "reason"),
    [
        (0, MARKED, "n", "numbers start at 1"),
        (7, "no marker", "n", "needs one marker line"),
        (7, f"{MARKED}\n{Mark(head=SHA)}", "n", "not 2"),
        (7, f"> {Mark(head=SHA)}", "n", "needs one marker line"),
        (7, MARKED, " ", "notice needs a text"),
        (7, MARKED, str(Mark()), "without a hidden comment"),
        (7, MARKED, "x" * 4_001, "4,001 characters"),
        (7, "x" * BODY_LIMIT + MARKED, "n", "GitHub takes 65,536"),
        (7, "\ud83d" + MARKED, "n", "half of a character"),
    ],
)
def test_a_comment_that_github_would_refuse_cannot_be_made(pull: int, body: str, notice: str, reason: str) -> None:
    with pytest.raises(CannotSend, match=reason):
        Comment(pull, body, notice)


def test_the_limit_counts_characters_and_is_reached_exactly() -> None:
    mark = f"\n{Mark(head=SHA)}"
    full = Comment(7, "中" * (BODY_LIMIT - len(mark)) + mark, "n")
    assert len(full.body) == BODY_LIMIT
    with pytest.raises(CannotSend, match="65,537"):
        Comment(7, f"中{full.body}", "n")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"head": "c0ffee"}, "whole sha"),
        ({"conclusion": "stale"}, "choose from success"),
        ({"title": " "}, "title is empty"),
        ({"summary": "x" * 65_536}, "65,535"),
        ({"text": "x" * 65_536}, "65,535"),
        ({"details_url": "javascript:alert(1)"}, "http address"),
    ],
)
def test_a_check_run_that_github_would_refuse_cannot_be_made(fields: dict[str, str], reason: str) -> None:
    with pytest.raises(CannotSend, match=reason):
        check(**fields)


@pytest.mark.parametrize("name", ["sweep-enabled", "Full-Sweep-Enabled", "skip_queue", "", "a,b", "x" * 51])
def test_a_label_that_steers_sweeps_or_is_none_cannot_be_made(name: str) -> None:
    with pytest.raises(CannotSend, match="label"):
        Label(7, name)


# --- the marker ---------------------------------------------------------------------------------------------------


def test_the_renderer_writes_the_marker_that_is_looked_for() -> None:
    assert render.MARKER == outbox.MARKER


@pytest.mark.parametrize("seed", range(5))
def test_rendered_documents_make_an_errand_as_they_are(seed: int) -> None:
    chosen = facts.select(sayings.a_random_comparison(seed) if seed else sayings.a_screen())
    body, notice = render.render(chosen, "comment"), render.render(chosen, "short")
    errand = Comment.of(7, body, notice)
    assert (errand.body, errand.notice) == (body, notice.strip())
    assert str(errand.mark) == render.marker(chosen)
    assert errand.mark.verdict == chosen.verdict


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<!-- sweep-tracker -->", Mark()),
        ("<!-- sweep-tracker version=9 future=x verdict=mixed -->", Mark(version="9", verdict="mixed")),
        ("top\r\n<!-- sweep-tracker head=abc notices=3 -->\r\nend", Mark(head="abc", notices=3)),
        ("<!-- sweep-tracker notices=x -->", Mark()),
        ("> <!-- sweep-tracker head=abc -->", None),
        ("`<!-- sweep-tracker head=abc -->`", None),
        ("<!-- sweep-tracker-notice head=abc -->", None),
        ("<!-- sweep-trackers -->", None),
    ],
)
def test_a_marker_is_found_on_a_line_of_its_own(text: str, expected: Mark | None) -> None:
    assert Mark.find(text) == expected


# --- files --------------------------------------------------------------------------------------------------------

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
_COMMENTS = st.builds(
    comment,
    st.sampled_from([*Verdict, "unknown"]).map(str),
    st.just(SHA),
    _TEXT.filter(lambda t: "<!--" not in t),
    st.integers(1, 9),
)
_CHECKS = st.builds(lambda text: check(text=text), _TEXT)
_LABELS = st.builds(Label, st.integers(1, 9), st.sampled_from(["perf", "性能"]), st.booleans())


@given(st.lists(_COMMENTS | _CHECKS | _LABELS, max_size=4))
def test_a_file_brings_back_the_errands(errands: list[Errand]) -> None:
    assert outbox.loads(outbox.dumps(errands)) == tuple(errands)


def test_a_file_is_written_whole_and_read_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "new" / "errands.json"
    outbox.write([comment(), check(), Label(7, "perf")], path)
    assert outbox.read(path) == (comment(), check(), Label(7, "perf"))
    assert [one.name for one in path.parent.iterdir()] == ["errands.json"]
    path.write_text("{")
    with pytest.raises(CannotSend, match=re.escape(str(path))):
        outbox.read(path)
    with pytest.raises(CannotSend, match="No such file"):
        outbox.read(tmp_path / "absent.json")


def _file(**changed: object) -> str:
    (errand,) = json.loads(outbox.dumps([comment()]))["errands"]
    return json.dumps({"version": 1, "errands": [errand | changed]})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "no errands of version 1"),
        ('{"version": 2, "errands": []}', "no errands of version 1"),
        ('{"version": 1, "errands": [3]}', "errand 1: kind"),
        (_file(kind="merge"), "errand 1: kind"),
        (_file(kind=["comment"]), "errand 1: kind"),
        (_file(pull="7"), "errand 1: Expected `int`"),
        (_file(extra=1), "unknown field 'extra'"),
        (_file(body=f"@claude do it\n{Mark()}"), "errand 1: .*call of an agent"),
        (_file(notice="/stage-results"), "errand 1: .*command"),
        (_file(pull=-1), "errand 1: .*numbers start at 1"),
    ],
)
def test_a_strangers_file_is_held_to_the_same_rules(text: str, reason: str) -> None:
    with pytest.raises(CannotSend, match=reason):
        outbox.loads(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda kid: st.lists(kid) | st.dictionaries(st.text(), kid),
    )
)
def test_any_json_is_errands_or_a_reason(value: object) -> None:
    for text in (json.dumps(value), json.dumps({"version": 1, "errands": [value]})):
        found = _loaded(text)
        assert found == () or (isinstance(found, str) and found.startswith(("no errands", "errand 1")))


def _loaded(text: str) -> tuple[Errand, ...] | str:
    try:
        return outbox.loads(text)
    except CannotSend as reason:
        return str(reason)


def test_a_dry_run_prints_every_errand() -> None:
    assert outbox.preview([]) == "nothing to send\n"
    assert outbox.preview([comment(), check(details_url="https://x/1"), Label(7, "perf", present=False)]) == (
        f"comment on pull request 7 (head {SHA}, verdict regression), edited in place:\n"
        "    Slower.\n\n"
        f"    <!-- sweep-tracker version=0.1.0 head={SHA} verdict=regression -->\n"
        "and only if this verdict is worse than the one that stands there:\n"
        "    short: regression\n\n"
        f"check run 'tracker' on {SHA}: failure\n"
        "    Slower\n"
        "    https://x/1\n"
        "    Slower by 3 %.\n\n"
        "label 'perf' off pull request 7\n"
    )


# --- the next step ------------------------------------------------------------------------------------------------


def test_every_verdict_has_its_place_in_the_order_of_badness() -> None:
    assert set(sticky.BADNESS) == set(Verdict)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("improvement", "regression", True),
        ("equivalent", "inconclusive", True),
        ("inconclusive", "missing", True),
        ("suspected", "mixed", True),
        ("mixed", "regression", True),
        ("failed", "regression", True),
        ("regression", "regression", False),
        ("regression", "failed", False),
        ("noisy", "no_baseline", False),
        ("recovery", "equivalent", False),
        ("a later version's word", "failed", False),
    ],
)
def test_only_a_step_up_the_table_notifies(before: str, after: str, expected: bool) -> None:
    assert sticky.worsens(before, after) is expected


def _standing(verdict: str, number: int = 1, notices: int = 0, text: str = "Old.") -> Seen:
    return Seen(number, f"{text}\n\n{Mark(version='0.1.0', head='0ld', verdict=verdict, notices=notices)}\n")


def _notice(number: int, count: int) -> Seen:
    return Seen(number, f"note\n\n{Mark('sweep-tracker-notice', notices=count)}")


def test_nothing_stands_so_the_comment_is_made() -> None:
    assert sticky.next_step(comment(), ()) == Create(comment().body)


def test_a_worse_verdict_is_notified_before_the_edit_and_counted_in_it() -> None:
    first = sticky.next_step(comment(), [_standing("equivalent")])
    assert isinstance(first, Create)
    assert first.notice
    assert first.body.startswith("short: regression\n")
    second = sticky.next_step(comment(), [_standing("equivalent"), Seen(2, first.body)])
    assert isinstance(second, Edit)
    assert second.id == 1
    assert Mark.find(second.body) == Mark("sweep-tracker", "0.1.0", SHA, "regression", 1)
    assert sticky.next_step(comment(), [Seen(1, second.body), Seen(2, first.body)]) is None


@pytest.mark.parametrize(
    ("seen", "written", "expected"),
    [
        ([_standing("regression")], None, Edit(1, comment().body)),
        ([_standing("regression", 5), _standing("mixed", 3)], 3, Delete(5)),
        ([_standing("regression", 5), _standing("mixed", 3)], 5, Create(sticky._notice(comment(), 1, ""), notice=True)),
        ([_standing("regression")], 1, None),
        ([_standing("regression", notices=1), _notice(2, 1), _notice(4, 1), _notice(3, 2)], 1, Delete(4)),
        ([_notice(2, 3)], None, Create(Mark("sweep-tracker", "0.1.0", SHA, "regression", 3).put(comment().body))),
        ([Seen(1, comment().body.replace("\n", "\r\n").rstrip())], None, None),
    ],
    ids=[
        "an equal verdict is only edited",
        "a second comment of ours goes",
        "the oldest wins also over our own",
        "what another job wrote after us stays",
        "of two notices with one number the younger goes",
        "a deleted comment goes on with the count",
        "line ends are no change",
    ],
)
def test_the_next_step(seen: list[Seen], written: int | None, expected: object) -> None:
    assert sticky.next_step(comment(), seen, written) == expected


@pytest.mark.parametrize(
    ("standing", "errand", "expected"),
    [
        ("new", "old", True),
        ("new", "new", False),
        ("old", "old", False),
        ("old", "new", False),
        ("new", "merge", False),
    ],
)
def test_a_result_of_the_current_head_is_not_replaced_by_an_old_one(standing: str, errand: str, expected: bool) -> None:
    shas = {"new": "a" * 40, "old": "b" * 40, "merge": "c" * 40}
    seen = [Seen(1, f"x\n{Mark(head=shas[standing][:12], verdict='mixed')}")]
    current = {shas["new"], shas["merge"]}
    assert sticky.outdated(comment(head=shas[errand]), seen, current) is expected
    assert not sticky.outdated(comment(head="unknown"), seen, current)
    assert not sticky.outdated(comment(head=shas["old"]), [], current)
