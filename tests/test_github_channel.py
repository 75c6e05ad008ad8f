"""The GitHub channel against a server on loopback that is held to GitHub's own description, with faults."""

from __future__ import annotations

import json
import logging
import math
import multiprocessing
import random
import re
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reports import outbox
from reports.channels import github as channel
from reports.channels.github import Connection, Limits, Outcome, Status, deliver
from reports.channels.sticky import worsens
from reports.outbox import CannotSend, CheckRun, Comment, Errand, Label, Mail, Mark
from store.records import Verdict
from tests.github.clock import Time
from tests.github.server import (
    BAD_GATEWAY,
    BOT,
    LOST,
    READ_ONLY_TOKEN,
    RESET,
    SECONDARY,
    TOKEN,
    Fault,
    GitHub,
    Record,
    marks,
    serving,
)

NEW, OLD, MERGE = "a" * 40, "b" * 40, "c" * 40
COMMENTS = r"/issues/\d+/comments"
EDIT = r"/issues/comments/\d+"
CHECKS = r"/check-runs$"


@pytest.fixture
def hub() -> Iterator[GitHub]:
    """A GitHub with the open pull request 7; nothing undescribed may pass its door."""
    with serving() as github:
        github.opened(7, head=NEW, merge_commit=MERGE)
        yield github
    assert github.flaws == []


@pytest.fixture
def time() -> Time:
    return Time()


def connected(hub: GitHub, token: str = TOKEN, author: str = BOT) -> Connection:
    return Connection("octo/sweeps", token, author, hub.address)


def comment(verdict: str = "regression", head: str = NEW, text: str = "Slower.", pull: int = 7) -> Comment:
    mark = Mark(version="0.1.0", head=head, verdict=verdict)
    return Comment.of(pull, f"{text}\n\n{mark}\n", f"now {verdict}")


def check(**fields: str) -> CheckRun:
    told = {"head": NEW, "name": "tracker", "conclusion": "failure", "title": "Slower", "summary": "By 3 %."}
    return CheckRun.of(**(told | fields))


def sent(hub: GitHub, errand: Errand, time: Time | None = None, limits: Limits = Limits()) -> Outcome:
    (outcome,) = deliver([errand], connected(hub), (time or Time()).patience(), limits)
    return outcome


def sticky(hub: GitHub, pull: int = 7) -> list[Record]:
    return marks(hub.of(pull), "sweep-tracker")


def notices(hub: GitHub, pull: int = 7) -> list[Record]:
    return marks(hub.of(pull), "sweep-tracker-notice")


# --- one comment --------------------------------------------------------------------------------------------------


def test_the_first_comment_is_made_and_the_second_delivery_changes_nothing(hub: GitHub) -> None:
    first = sent(hub, comment())
    assert (first.status, first.notified) == (Status.CREATED, False)
    assert first.url.endswith(f"#issuecomment-{sticky(hub)[0].id}")
    hub.requests.clear()
    assert sent(hub, comment()).status == Status.UNCHANGED
    assert {verb for verb, _ in hub.requests} == {"GET"}
    assert [one.body for one in hub.of(7)] == [comment().body]


def test_a_better_verdict_is_an_edit_in_place_without_a_notification(hub: GitHub) -> None:
    made = sent(hub, comment("regression"))
    edited = sent(hub, comment("equivalent", text="Level."))
    assert (edited.status, edited.notified, edited.url) == (Status.EDITED, False, made.url)
    (only,) = hub.of(7)
    assert only.body == comment("equivalent", text="Level.").body


def test_a_worse_verdict_posts_one_short_comment_and_edits(hub: GitHub) -> None:
    sent(hub, comment("equivalent", text="Level."))
    worse = sent(hub, comment("regression"))
    assert (worse.status, worse.notified) == (Status.EDITED, True)
    (standing,), (notice,) = sticky(hub), notices(hub)
    assert Mark.find(standing.body) == Mark("sweep-tracker", "0.1.0", NEW, "regression", notices=1)
    assert notice.body.startswith(f"now regression\n\n{worse.url}\n")
    assert sent(hub, comment("regression")).status == Status.UNCHANGED
    assert len(hub.of(7)) == 2


def test_a_verdict_that_worsens_twice_on_one_head_notifies_twice(hub: GitHub) -> None:
    told = [
        sent(hub, comment(verdict)).notified for verdict in ("equivalent", "mixed", "equivalent", "mixed", "regression")
    ]
    assert told == [False, True, False, True, True]
    assert [Mark.find(one.body, "sweep-tracker-notice") for one in notices(hub)] == [
        Mark("sweep-tracker-notice", "0.1.0", NEW, verdict, count)
        for count, verdict in enumerate(("mixed", "mixed", "regression"), start=1)
    ]


@pytest.mark.parametrize("others", [0, 1, 29, 99, 100, 101, 250])
def test_the_comment_is_found_after_any_number_of_others(hub: GitHub, others: int) -> None:
    for number in range(others):
        hub.said(7, f"dev{number % 5}", f"> {Mark(head=OLD)}\n> quoted by a person\n{Mark(head=OLD)}")
    own = hub.said(7, BOT, comment("regression", text="Before.").body)
    hub.said(7, BOT, "A comment of another workflow with the same token.")
    outcome = sent(hub, comment("regression"))
    assert (outcome.status, own.edits, own.body) == (Status.EDITED, 1, comment("regression").body)
    assert len(hub.of(7)) == 2
    assert hub.count("GET", COMMENTS) == math.ceil((others + 2) / 100)


@pytest.mark.shared
def test_the_case_of_the_comment_on_page_two(hub: GitHub, shared: Path) -> None:
    hub.logins[TOKEN] = "tracker-bot[bot]"
    case = shared / "cases" / "43-sticky-comment-on-page-two"
    for page in (1, 2):
        for one in json.loads((case / f"comments_page{page}.json").read_text(encoding="utf-8")):
            body = one["body"].replace("tracker-report:v1", "sweep-tracker version=1 verdict=regression")
            hub.said(7, one["user"]["login"], body, one["id"])
    connection = connected(hub, author="tracker-bot[bot]")
    outcomes = [deliver([comment()], connection, Time().patience())[0].status for _ in range(2)]
    assert outcomes == [Status.EDITED, Status.UNCHANGED]
    assert {number for number, one in hub.comments.items() if one.edits} == {1045}
    assert len(hub.comments) == 47


def test_two_comments_of_ours_become_the_oldest(hub: GitHub) -> None:
    first, second = (hub.said(7, BOT, comment("regression", text=text).body) for text in ("One.", "Two."))
    assert sent(hub, comment()).status == Status.EDITED
    assert [one.id for one in hub.of(7)] == [first.id]
    assert second.id not in hub.comments


def test_a_comment_that_a_person_deleted_is_made_again(hub: GitHub) -> None:
    sent(hub, comment())
    hub.comments.clear()
    assert sent(hub, comment()).status == Status.CREATED
    assert len(hub.of(7)) == 1


def test_a_comment_that_vanishes_between_look_and_edit_is_made_again(hub: GitHub) -> None:
    hub.said(7, BOT, comment("equivalent").body)
    hub.order("PATCH", EDIT, Fault(404, "Not Found", meanwhile=hub.comments.clear))
    assert sent(hub, comment("equivalent", text="New.")).status == Status.CREATED
    assert [one.body for one in hub.of(7)] == [comment("equivalent", text="New.").body]


def test_a_renamed_repository_is_written_to_under_its_new_name(hub: GitHub) -> None:
    moved = {"location": f"{hub.address}/repos/octo/sweeps/pulls/7"}
    hub.order("GET", "/repos/octo/before/", Fault(301, "Moved Permanently", moved))
    connection = replace(connected(hub), repository="octo/before")
    (outcome,) = deliver([comment()], connection, Time().patience())
    assert outcome.status == Status.CREATED
    assert [target.split("/")[3] for _, target in hub.requests] == ["before", "sweeps", "sweeps", "sweeps", "sweeps"]


def test_a_list_that_lags_behind_makes_no_second_comment_and_no_second_notice(hub: GitHub) -> None:
    hub.lag(2)
    assert sent(hub, comment("equivalent")).status == Status.CREATED
    hub.lag(2)
    assert sent(hub, comment("failed")).notified
    assert (len(sticky(hub)), len(notices(hub)), hub.count("POST")) == (1, 1, 2)


def test_the_author_that_github_names_counts_more_than_the_one_that_was_told(hub: GitHub) -> None:
    earlier = hub.said(7, BOT, comment(text="Before.").body)
    (outcome,) = deliver([comment()], connected(hub, author="someone-else"), Time().patience())
    assert outcome.status == Status.CREATED
    assert [(one.id, one.body) for one in hub.of(7)] == [(earlier.id, comment().body)]


# --- force-push ---------------------------------------------------------------------------------------------------


def test_a_late_result_of_the_old_head_does_not_replace_the_new_one(hub: GitHub) -> None:
    sent(hub, comment("equivalent", head=NEW))
    late = sent(hub, comment("regression", head=OLD))
    assert (late.status, late.notified, late.done) == (Status.OUTDATED, False, True)
    assert [one.body for one in hub.of(7)] == [comment("equivalent", head=NEW).body]


def test_after_a_force_push_the_same_comment_tells_of_the_new_head(hub: GitHub) -> None:
    sent(hub, comment("equivalent", head=OLD))
    assert sent(hub, comment("equivalent", head=NEW)).status == Status.EDITED
    assert sent(hub, comment("equivalent", head=MERGE, text="Merged.")).status == Status.EDITED
    assert [Mark.find(one.body) for one in hub.of(7)] == [Mark("sweep-tracker", "0.1.0", MERGE, "equivalent")]


# --- faults -------------------------------------------------------------------------------------------------------

LIMITED = Fault(429, "API rate limit exceeded")
AGAIN_IN_7 = Fault(429, "Too many requests", {"Retry-After": "7"})
BLOCKED = Fault(403, SECONDARY)
BLOCKED_FOR_9 = Fault(403, SECONDARY, {"retry-after": "9"})
SPENT = Fault(
    403, "API rate limit exceeded for installation", {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1000000030"}
)
HTML = Fault(502, "<html>")

FAULTS: dict[str, tuple[Fault, float]] = {
    "429 without a term": (LIMITED, 60.0),
    "429 with Retry-After": (AGAIN_IN_7, 7.0),
    "secondary limit": (BLOCKED, 60.0),
    "secondary limit with Retry-After": (BLOCKED_FOR_9, 9.0),
    "limit used up until a moment": (SPENT, 31.0),
    "bad gateway": (BAD_GATEWAY, 1.0),
    "service unavailable": (Fault(503, "busy", {"Retry-After": "5"}), 5.0),
    "connection reset": (RESET, 1.0),
    "lost answer": (LOST, 1.0),
    "bad gateway after the work": (replace(BAD_GATEWAY, do=True), 1.0),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize(
    ("verb", "path"), [("GET", r"/pulls/7"), ("GET", COMMENTS), ("POST", COMMENTS), ("PATCH", EDIT), ("DELETE", EDIT)]
)
def test_one_fault_anywhere_costs_a_wait_and_nothing_else(
    hub: GitHub, time: Time, name: str, verb: str, path: str
) -> None:
    fault, pause = FAULTS[name]
    hub.said(7, BOT, comment("equivalent", text="Level.").body)
    hub.said(7, BOT, comment("equivalent", text="Twice.").body)
    hub.order(verb, path, fault)
    outcome = sent(hub, comment("regression"), time)
    assert (outcome.status, outcome.notified, time.slept) == (Status.EDITED, True, [pause])
    assert [Mark.find(one.body) for one in sticky(hub)] == [Mark("sweep-tracker", "0.1.0", NEW, "regression", 1)]
    assert len(notices(hub)) == 1


@pytest.mark.parametrize("fault", [LOST, replace(BAD_GATEWAY, do=True)])
def test_a_post_whose_answer_was_lost_is_not_repeated(hub: GitHub, time: Time, fault: Fault) -> None:
    hub.order("POST", COMMENTS, fault)
    assert sent(hub, comment(), time).status == Status.CREATED
    assert hub.count("POST") == 1
    assert len(hub.of(7)) == 1


def test_pauses_double_and_the_budget_ends_them(hub: GitHub, time: Time) -> None:
    hub.order("PATCH", EDIT, *[BAD_GATEWAY] * 99)
    hub.said(7, BOT, comment(text="Before.").body)
    (outcome,) = deliver([comment()], connected(hub), time.patience(tries=5))
    assert time.slept == [1.0, 2.0, 4.0, 8.0]
    assert outcome.status == Status.LATER
    assert outcome.reason == "502 Server Error; 5 requests failed"
    assert "tracker deliver FILE" in outcome.advice


def test_a_wait_beyond_the_budget_is_not_begun(hub: GitHub, time: Time, tmp_path: Path) -> None:
    hub.order("GET", "", replace(SPENT, headers={"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1000003600"}))
    (outcome,) = deliver([comment()], connected(hub), time.patience(), keep=tmp_path / "later.json")
    assert time.slept == []
    assert outcome.status == Status.LATER
    assert outcome.reason.endswith("the next try is due in 3601 s, and 300 s are left")
    assert outbox.read(tmp_path / "later.json") == (comment(),)


def test_a_list_that_breaks_off_is_never_taken_for_the_whole(hub: GitHub, time: Time) -> None:
    for number in range(250):
        hub.said(7, f"dev{number}", "text")
    hub.said(7, BOT, comment(text="Before.").body)
    hub.order("GET", "[?&]page=3", replace(BLOCKED, headers={"retry-after": "2"}))
    assert sent(hub, comment(), time).status == Status.EDITED
    assert time.slept == [2.0]
    pages = [re.findall(r"[?&]page=(\d+)", target) for verb, target in hub.requests if "/comments?" in target]
    assert pages == [[], ["2"], ["3"], ["3"]]
    hub.order("GET", "[?&]page=2", *[BLOCKED] * 99)
    assert sent(hub, comment(text="New."), time).status == Status.LATER
    assert len(hub.of(7)) == 1


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (Fault(401, "Bad credentials"), "refused"),
        (Fault(404, "Not Found"), "refused"),
        (Fault(410, "Gone"), "refused"),
        (Fault(422, "Validation Failed"), "refused"),
        (READ_ONLY_TOKEN, "forbidden"),
        (Fault(403, "Forbidden"), "forbidden"),
    ],
)
def test_an_answer_that_stays_the_same_is_not_asked_for_again(
    hub: GitHub, time: Time, fault: Fault, status: str
) -> None:
    hub.order("POST", COMMENTS, fault)
    outcome = sent(hub, comment(), time)
    assert (outcome.status, time.slept, hub.count("POST")) == (status, [], 1)
    assert outcome.reason == f"{fault.status} {fault.message}"


def test_github_that_cannot_be_reached_is_for_later(time: Time) -> None:
    with serving() as gone:
        address = gone.address
    connection = Connection("octo/sweeps", TOKEN, BOT, address)
    (outcome,) = deliver([comment()], connection, time.patience(tries=3))
    assert (outcome.status, time.slept) == (Status.LATER, [1.0, 2.0])
    assert outcome.reason.startswith("ConnectionError")


# --- forks --------------------------------------------------------------------------------------------------------


def test_a_forks_token_gives_advice_and_a_file_that_a_trusted_job_delivers(hub: GitHub, tmp_path: Path) -> None:
    kept = tmp_path / "errands.json"
    errands: list[Errand] = [comment(), check()]
    hub.order("POST", "", READ_ONLY_TOKEN, READ_ONLY_TOKEN)
    forbidden = deliver(errands, connected(hub), Time().patience(), keep=kept)
    assert [one.status for one in forbidden] == [Status.FORBIDDEN] * 2
    assert all("`workflow_run` job" in one.advice and one.kept == kept for one in forbidden)
    assert not hub.comments
    assert not hub.checks
    delivered = deliver(outbox.read(kept), connected(hub), Time().patience(), Limits(head=NEW))
    assert [one.status for one in delivered] == [Status.CREATED] * 2
    again = deliver(outbox.read(kept), connected(hub), Time().patience(), Limits(head=NEW))
    assert [one.status for one in again] == [Status.UNCHANGED] * 2


def test_a_file_may_touch_only_the_head_of_the_event_and_the_labels_named(hub: GitHub) -> None:
    hub.opened(8, head=OLD)
    errands: list[Errand] = [
        comment(pull=8, head=OLD),
        check(head=OLD),
        Label(8, "perf"),
        Label(7, "other"),
        Label(7, "perf"),
    ]
    limits = Limits(head=NEW, labels=frozenset({"perf"}))
    outcomes = deliver(errands, connected(hub), Time().patience(), limits)
    assert [one.status for one in outcomes] == [Status.REFUSED] * 4 + [Status.EDITED]
    assert not hub.comments
    assert not hub.checks
    assert (hub.pulls[7].labels, hub.pulls[8].labels) == (["perf"], [])


def test_no_file_is_kept_when_all_is_done_or_cannot_be_done(hub: GitHub, tmp_path: Path) -> None:
    path = tmp_path / "errands.json"
    outcomes = deliver([comment(), comment(pull=99)], connected(hub), Time().patience(), keep=path)
    assert [one.status for one in outcomes] == [Status.CREATED, Status.REFUSED]
    assert not path.exists()
    assert channel.tell(outcomes).splitlines()[1] == (
        "comment: refused; 404 Not Found; trying again will not help: look at the reason"
    )


# --- check runs and labels ----------------------------------------------------------------------------------------


def test_a_check_run_is_made_once_and_then_edited(hub: GitHub) -> None:
    assert sent(hub, check()).status == Status.CREATED
    assert sent(hub, check()).status == Status.UNCHANGED
    assert sent(hub, check(conclusion="success", title="Level", details_url="https://x/1")).status == Status.EDITED
    (made,) = hub.checks.values()
    assert (made["conclusion"], made["output"]["title"], made["details_url"]) == ("success", "Level", "https://x/1")


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("verb", ["GET", "POST", "PATCH"])
def test_a_fault_makes_no_second_check_run(hub: GitHub, time: Time, name: str, verb: str) -> None:
    fault, pause = FAULTS[name]
    hub.order(verb, "check-runs", fault)
    statuses = [sent(hub, check(title=title), time).status for title in ("One", "Two")]
    assert statuses == [Status.CREATED, Status.EDITED]
    assert [one["output"]["title"] for one in hub.checks.values()] == ["Two"]
    assert time.slept == [pause]


def test_a_check_run_of_another_app_is_not_touched(hub: GitHub) -> None:
    hub.logins["other"] = "other-app[bot]"
    deliver([check()], connected(hub, token="other", author="other-app[bot]"), Time().patience())
    assert sent(hub, check(title="Ours")).status == Status.CREATED
    assert [one["output"]["title"] for one in hub.checks.values()] == ["Slower", "Ours"]


def test_a_check_run_of_another_tool_in_the_same_workflow_is_not_touched(hub: GitHub) -> None:
    sent(hub, replace(check(), marker="other-tool"))
    assert sent(hub, check(title="Ours")).status == Status.CREATED
    assert [one["output"]["title"] for one in hub.checks.values()] == ["Slower", "Ours"]


@pytest.mark.parametrize("name", FAULTS)
def test_a_label_comes_and_goes_through_any_fault(hub: GitHub, time: Time, name: str) -> None:
    limits = Limits(labels=frozenset({"perf: 变慢"}))
    label = Label(7, "perf: 变慢")
    hub.order("POST", "labels", FAULTS[name][0])
    hub.order("DELETE", "labels", FAULTS[name][0])
    assert [sent(hub, label, time, limits).status for _ in range(2)] == [Status.EDITED, Status.UNCHANGED]
    assert hub.pulls[7].labels == ["perf: 变慢"]
    gone = replace(label, present=False)
    assert [sent(hub, gone, time, limits).status for _ in range(2)] == [Status.EDITED, Status.UNCHANGED]
    assert hub.pulls[7].labels == []


def test_no_label_is_set_that_nobody_allowed(hub: GitHub) -> None:
    outcome = sent(hub, Label(7, "perf"))
    assert (outcome.status, hub.requests) == (Status.REFUSED, [])


# --- jobs at the same time ----------------------------------------------------------------------------------------


def _job(address: str, verdict: str) -> str:
    """One delivery in a process of its own."""
    connection = Connection("octo/sweeps", TOKEN, BOT, address)
    (outcome,) = deliver([comment(verdict)], connection, Time().patience())
    return str(outcome.status)


@pytest.mark.parametrize("standing", [None, "equivalent"])
def test_two_processes_at_once_leave_one_comment_and_one_notice(hub: GitHub, standing: str | None) -> None:
    if standing:
        hub.said(7, BOT, comment(standing).body)
    hub.meet(2)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        statuses = pool.starmap(_job, [(hub.address, "regression")] * 2)
    assert set(statuses) <= {"created", "edited", "unchanged"}
    assert hub.count("POST") == 2
    assert len(sticky(hub)) == 1
    assert len(notices(hub)) == (1 if standing else 0)
    assert min(one.id for one in hub.of(7)) == sticky(hub)[0].id


@pytest.mark.parametrize("jobs", [3, 6])
def test_many_jobs_with_different_results_leave_one_whole_result(hub: GitHub, jobs: int) -> None:
    hub.meet(jobs)
    errands = [comment("regression", text=f"Job {number}.") for number in range(jobs)]
    with ThreadPoolExecutor(jobs) as pool:
        outcomes = list(pool.map(lambda errand: sent(hub, errand), errands))
    assert all(one.done for one in outcomes)
    (only,) = hub.of(7)
    assert only.body in {errand.body for errand in errands}


# --- random histories of a pull request -----------------------------------------------------------------------------

VERDICTS = ("improvement", "equivalent", "inconclusive", "missing", "mixed", "regression", "failed")
STORM = (LOST, RESET, BAD_GATEWAY, LIMITED, AGAIN_IN_7, BLOCKED, replace(BAD_GATEWAY, do=True))


@dataclass
class Story:
    """A pull request that lives through random events, and the slow twin: what must stand there afterwards."""

    hub: GitHub
    pull: int
    random: random.Random
    expected: Comment | None = None
    notified: int = 0
    heads: int = 0

    def live(self) -> None:
        self.push()
        for _ in range(self.random.randint(1, 4)):
            self.random.choice(EVENTS)(self)
        if self.expected is None:
            self.result()

    def push(self) -> None:
        """A push or a force-push: the next results are of another head."""
        self.heads += 1
        self.hub.opened(self.pull, head=f"{self.pull:020x}{self.heads:020x}")

    def errand(self) -> Comment:
        verdict = self.random.choice(VERDICTS)
        return comment(verdict, self.hub.pulls[self.pull].head, f"Result {self.random.random()}.", self.pull)

    def result(self) -> None:
        self.send(self.errand(), 1)

    def stormy(self) -> None:
        """A result on its way through faults; when its budget is too small a later job delivers it again."""
        path = rf"(/issues/|/pulls/){self.pull}\b|{EDIT}"
        self.hub.order(self.random.choice(("*", "POST", "PATCH")), path, *self.random.choices(STORM, k=3))
        errand = self.errand()
        self.expect(errand)
        (outcome,) = deliver([errand], connected(self.hub), Time().patience(tries=self.random.choice((2, 3, 9))))
        self.hub.calm()
        assert outcome.done or (outcome.status == Status.LATER and sent(self.hub, outcome.errand).done)

    def twins(self) -> None:
        """The same result from two jobs at once."""
        self.send(self.errand(), 2)

    def repeated(self) -> None:
        if self.expected is not None:
            self.send(self.expected, 1)

    def late(self) -> None:
        """A result of a head that a force-push replaced, when the new head has one already."""
        if self.expected is not None and self.expected.mark.head == self.hub.pulls[self.pull].head:
            outcome = sent(self.hub, comment("failed", "d" * 40, "Late.", self.pull))
            assert outcome.status == Status.OUTDATED

    def talk(self) -> None:
        """People write, and one quotes our comment with its marker."""
        quoted = self.expected.body if self.expected else "text"
        self.hub.said(self.pull, "somebody", quoted)
        self.hub.said(self.pull, "somebody", "\n".join(f"> {line}" for line in quoted.splitlines()))

    def expect(self, errand: Comment) -> None:
        before, self.expected = self.expected, errand
        self.notified += before is not None and worsens(before.mark.verdict, errand.mark.verdict)

    def send(self, errand: Comment, jobs: int) -> None:
        self.expect(errand)
        if jobs == 1:
            assert sent(self.hub, errand).done
            return
        with ThreadPoolExecutor(jobs) as pool:
            assert all(one.done for one in pool.map(lambda _: sent(self.hub, errand), range(jobs)))

    def check(self) -> None:
        assert self.expected is not None
        (standing,) = sticky(self.hub, self.pull)
        wanted = replace(self.expected.mark, notices=self.notified)
        assert standing.body == wanted.put(self.expected.body)
        assert len(notices(self.hub, self.pull)) == self.notified
        assert len(self.hub.of(self.pull)) == 1 + self.notified


EVENTS: tuple[Callable[[Story], None], ...] = (
    Story.push,
    Story.result,
    Story.result,
    Story.stormy,
    Story.twins,
    Story.repeated,
    Story.late,
    Story.talk,
)


def test_random_histories_have_one_comment_and_a_notification_per_worsening(hub: GitHub) -> None:
    """300 of them: each of the pairs of neighbouring events comes about six times."""
    stories = [Story(hub, number, random.Random(number)) for number in range(1, 301)]
    for story in stories:
        story.live()
        story.check()
        hub.comments.clear()
    assert sum(story.notified for story in stories) > 40


# --- the token ----------------------------------------------------------------------------------------------------


def test_the_token_is_in_no_text(hub: GitHub, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    caplog.set_level(logging.DEBUG)
    connection = connected(hub)
    hub.order("GET", "/pulls/", Fault(422, "You sent {authorization}"))
    hub.order("POST", "", LOST, Fault(403, "{authorization} may not write"))
    errands: list[Errand] = [comment(), comment(), comment(pull=99), check()]
    outcomes = deliver(errands, connection, Time().patience(), keep=tmp_path / "kept.json")
    told = [repr(connection), str(connection), repr(outcomes), channel.tell(outcomes), caplog.text]
    told += [outbox.preview(errands), (tmp_path / "kept.json").read_text(encoding="utf-8")]
    assert "You sent token ***" in outcomes[0].reason
    assert "/issues/7/comments" in caplog.text
    assert not any(TOKEN in text or TOKEN[4:] in text for text in told)


@pytest.mark.parametrize("token", [f"{TOKEN}\n", f" {TOKEN}", f"{TOKEN}\r", f"{TOKEN}é", ""])
def test_a_token_that_cannot_be_sent_is_refused_without_showing_it(token: str) -> None:
    with pytest.raises(CannotSend, match="the token is empty or holds") as caught:
        Connection("octo/sweeps", token)
    assert TOKEN not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("repository", ["sweeps", "octo/", "/sweeps", "a/b/c"])
def test_a_repository_has_an_owner_and_a_name(repository: str) -> None:
    with pytest.raises(CannotSend, match="OWNER/NAME"):
        Connection(repository, TOKEN)


def test_every_verdict_of_the_histories_is_one_of_ours() -> None:
    assert set(VERDICTS) <= set(Verdict)


def test_a_mail_among_the_errands_is_refused_and_the_others_are_done(hub: GitHub, time: Time) -> None:
    mail = Mail(
        "bot@example.org",
        ("ann@example.org",),
        "subject",
        "text",
        "html",
        datetime(2026, 8, 3, tzinfo=UTC),
        "weekly",
        "2026-W31",
    )
    refused, done = deliver([mail, comment()], connected(hub), time.patience())
    assert (refused.status, "tracker mail --resend" in refused.reason) == (Status.REFUSED, True)
    assert done.status is Status.CREATED
