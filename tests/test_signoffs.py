"""Sign-offs: whose counts, which runs it names, what the checklist and the tables of models are."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from store import lineup, signoffs
from tests.proposals import CHECKLIST, ITEMS, PHRASE


def signoff(body: str) -> signoffs.SignOff:
    return signoffs.SignOff("ann", "MEMBER", datetime(2026, 7, 1, tzinfo=UTC), "", body)


def said(body: str, login: str = "ann", at: str = "2026-06-01T00:00:00Z", **more: Any) -> dict[str, Any]:
    kind = "Bot" if login.endswith("[bot]") else "User"
    return {"user": {"login": login, "type": kind}, "body": body, "created_at": at, **more}


def test_the_newest_sign_off_of_a_person_counts() -> None:
    text = f"{PHRASE}:\n- [x] one"
    comments = [
        said(text), said(text, "bob", "2026-06-03T00:00:00Z"), said(text, "helper[bot]", "2026-06-09T00:00:00Z"),
        said(f"> {text}", "eve", "2026-06-08T00:00:00Z"), said(f"See: {text}", "eve", "2026-06-08T00:00:00Z"),
    ]  # fmt: skip
    found = signoffs.find(comments)
    assert found is not None
    assert found.login == "bob"
    review = {"user": {"login": "cid", "type": "User"}, "body": f"**{text}", "submitted_at": "2026-06-05T00:00:00Z"}
    assert signoffs.find(comments, [review | {"state": "APPROVED"}]).login == "cid"  # type: ignore[union-attr]
    assert signoffs.find(comments, [review | {"state": "DISMISSED"}]).login == "bob"  # type: ignore[union-attr]
    assert signoffs.find([said(text) | {"user": None}]) is None


def test_the_runs_that_a_sign_off_names() -> None:
    body = f"{PHRASE}:\n- Run Sweep 30208366514\n- https://github.com/o/n/actions/runs/29063432435/attempts/2 and 12"
    assert signoff(body).runs == (30208366514, 29063432435)
    assert signoff("Run Sweep [30208366514](https://github.com/o/n/actions/runs/30208366514)").runs == (30208366514,)


def test_a_checklist_without_the_phrase_is_none() -> None:
    assert signoffs.template("# List\n- [ ] one") == ()
    assert [one.text for one in signoffs.template(CHECKLIST)] == list(ITEMS)


def test_a_condition_is_of_what_it_stands_behind() -> None:
    row = "| `{}` | {} | Single-turn 1k1k |\n"
    head = "| Prefix | Active scenarios | Deprecated scenarios |\n|---|---|---|\n"
    cells = {
        "a": "Single-turn 8k1k, Agentic coding (MTP only; the other still runs)",
        "b": "Single-turn 8k1k, Agentic coding; fp8 only",
        "c": "Single-turn 8k1k (until 2026-08-06) - retired then",
        "d": "- (retired, #1)",
    }
    found = lineup.parse(head + "".join(row.format(*pair) for pair in cells.items()))
    assert found is not None
    said = {name: [found.of(name, scenario)[0].value for scenario in ("8k1k", "agentic", "1k1k")] for name in cells}
    assert said == {
        "a": ["active", "bounded", "deprecated"],
        "b": ["bounded", "bounded", "deprecated"],
        "c": ["bounded", "unknown", "deprecated"],
        "d": ["unknown", "unknown", "deprecated"],
    }


def test_tables_that_are_no_lineup_are_none() -> None:
    assert lineup.parse("| Model | Deprecated |\n|---|---|\n| a | b |\n") is None
    assert lineup.parse("no table") is None
