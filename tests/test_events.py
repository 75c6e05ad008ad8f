"""Events of the test harness: which lie between two sides, what they concern, and what becomes of the comparison."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.doubts import EVENT_NAMES, sentence
from reports.language import Language
from store.metrics import METRICS
from store.records import Caveat, Layout, Role, Series, Trouble
from tests.cli import Tracker
from tests.factory import NEXT_IMAGE, Json, agentic, bundle, row, run, write
from tracker.eventfile import load, parse
from tracker.events import DAY, EVENTS, Effect, Lies, Timeline, between, joined, lies, span

FIXED = Series("dsr1", "h200", "sglang", "fp8", "none", "single_turn", 8192, 1024, False, Layout(Role(8)), 64)
AGENTIC = replace(FIXED, scenario="agentic_traces", isl=None, osl=None)
SPLIT = replace(FIXED, layout=Layout(Role(8), Role(8), True))

MOMENTS = st.datetimes(datetime(2025, 8, 1), datetime(2026, 10, 1), timezones=st.just(UTC))
SPANS = st.tuples(MOMENTS, st.timedeltas(timedelta(), timedelta(days=3))).map(lambda found: (found[0], sum_of(*found)))
ANY_EVENT = st.sampled_from(EVENTS)


def sum_of(moment: datetime, length: timedelta) -> datetime:
    return moment + length


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# --- before, after, or nobody knows -------------------------------------------------------------------------------


@given(ANY_EVENT, SPANS, SPANS)
def test_an_event_never_lies_between_sides_that_are_both_on_one_side_of_it(event, one, other):
    earlier = max(one[1], other[1]) < event.start
    later = min(one[0], other[0]) >= event.end
    assert (lies(event, one, other) is Lies.NO) == (earlier or later)


@given(SPANS, SPANS)
def test_swapping_the_sides_keeps_the_set_of_events(one, other):
    def told(old, new):
        return [event.name for event in EVENTS if between(event, old, new)], [lies(e, old, new) for e in EVENTS]

    assert told(one, other) == told(other, one)


@given(ANY_EVENT, SPANS, SPANS)
def test_only_sides_wholly_before_and_wholly_after_are_certain(event, one, other):
    first, last = sorted((one, other))
    assert (lies(event, one, other) is Lies.YES) == (first[1] < event.start and last[0] >= event.end)


@given(st.lists(SPANS, min_size=2, max_size=6))
def test_a_timeline_knows_every_event_between_any_two_of_its_moments(found):
    timeline = Timeline.of(EVENTS, {(str(number), "c"): one for number, one in enumerate(found)})
    pairs = {event for event in EVENTS for one in found for other in found if between(event, one, other)}
    assert pairs <= set(timeline.events)


def test_midnight_is_a_date_whose_hour_nobody_knows():
    (event,) = (one for one in EVENTS if one.name == "client_tokenizer")
    dated, timed = span(day("2026-05-15")), span(datetime(2026, 5, 17, 7, 30, tzinfo=UTC))
    assert between(event, dated, timed).as_dict()["on_day_of"] == "baseline"
    assert between(event, timed, dated).as_dict()["on_day_of"] == "candidate"
    assert "on_day_of" not in between(event, span(day("2026-05-14")), timed).as_dict()
    assert between(event, span(day("2026-05-16")), timed) is None


def test_an_event_known_to_the_second_tells_the_runs_of_its_day_apart():
    (event,) = parse("{shipped: false, events: [{event: e, date: '2026-09-01T14:03:00Z'}]}")
    before, after = (span(datetime(2026, 9, 1, hour, 0, 1, tzinfo=UTC)) for hour in (13, 15))
    assert lies(event, before, after) is Lies.YES
    assert lies(event, after, after) is Lies.NO
    assert lies(event, span(day("2026-09-01")), after) is Lies.MAYBE


def test_joined_spans_reach_from_the_first_moment_to_the_last():
    assert joined([span(day("2026-01-02")), span(day("2026-01-01"))]) == (day("2026-01-01"), span(day("2026-01-02"))[1])


# --- the shipped table --------------------------------------------------------------------------------------------


def test_the_shipped_events_are_days_in_order_with_a_name_in_words():
    assert [event.start for event in EVENTS] == sorted(event.start for event in EVENTS)
    assert {event.end - event.start for event in EVENTS} == {DAY}
    assert [event.name for event in EVENTS if bool(event.pull) == bool(event.commit)] == ["eval_topology"]
    assert set(EVENT_NAMES) == {event.name for event in EVENTS}
    assert all(any(event.affects(series, metric) for metric in METRICS for series in every()) for event in EVENTS)


def every() -> list[Series]:
    lengths = [replace(FIXED, isl=isl, osl=osl) for isl, osl in ((1024, 1024), (1024, 8192))]
    layouts = [Layout(Role(8, pp=2)), Layout(Role(8, dcp=2)), Layout(Role(8), None, True)]
    return [FIXED, AGENTIC, SPLIT, *lengths, *(replace(FIXED, layout=layout) for layout in layouts)]


@pytest.mark.parametrize(
    ("name", "series", "metric", "affected"),
    [
        ("role_denominators", SPLIT, "output_tput_per_gpu", True),
        ("role_denominators", SPLIT, "tput_per_gpu", False),
        ("role_denominators", FIXED, "output_tput_per_gpu", False),
        ("percentile_set", FIXED, "p99_ttft", True),
        ("percentile_set", FIXED, "median_ttft", False),
        ("client_tokenizer", FIXED, "tput_per_gpu", True),
        ("client_tokenizer", AGENTIC, "tput_per_gpu", False),
        ("client_tokenizer", FIXED, "em_strict", False),
        ("client_tokenizer", FIXED, "avg_power_w", False),
        ("agentx_nested", AGENTIC, "median_ttft", True),
        ("agentx_nested", FIXED, "median_ttft", False),
        ("pipeline_parallel_gpus", replace(FIXED, layout=Layout(Role(8, pp=2))), "tput_per_gpu", True),
        ("pipeline_parallel_gpus", FIXED, "tput_per_gpu", False),
        ("power_schema_2", SPLIT, "joules_per_total_token", True),
        ("eval_thresholds", FIXED, "em_flexible", True),
    ],
)
def test_an_event_concerns_its_own_series_and_metrics_alone(name, series, metric, affected):
    (event,) = (one for one in EVENTS if one.name == name)
    assert event.affects(series, metric) is affected


def test_what_is_said_of_an_event_names_no_cause_in_either_language():
    for event in EVENTS:
        for doubt in (event.caveat(), event.caveat("candidate")):
            said = {lang: Language(lang).say(sentence(doubt)) for lang in ("en", "zh")}
            assert event.start.date().isoformat() in said["en"]
            assert event.start.date().isoformat() in said["zh"]
            assert not [word for word in ("because", "caused", "due to", "导致", "因为") if word in str(said)]


# --- a user's own -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "flaw"),
    [
        ("[]", "not a mapping"),
        ("events: {a: b}", "not a list"),
        ("events: [{date: 2026-09-01}]", "no name"),
        ("events: [{event: e}]", "date is"),
        ("events: [{event: e, date: 2026-02-30}]", "date is"),
        ("events: [{event: e, date: 2026-09-01, effect: bad}]", "effect is"),
        ("events: [{event: e, date: 2026-09-01, pull: -1}]", "pull is"),
        ("events: [{event: e, date: 2026-09-01, commit: zzz}]", "commit is"),
        ("events: [{event: e, date: 2026-09-01, series: {color: red}}]", "unknown field 'color'"),
        ("events: [{event: e, date: 2026-09-01, metrics: []}]", "metrics is a word"),
        ("events: [{event: e, date: 2026-09-01, when: now}]", "unknown field 'when'"),
        ("events: [{event: e, date: 2026-09-01}, {event: e, date: 2026-09-02}]", "twice"),
        ("events: [{event: e, event: f, date: 2026-09-01}]", "twice"),
        ("shipped: maybe", "shipped is"),
        ("events: [", ""),
    ],
)
def test_a_file_that_cannot_be_read_is_told_with_its_place_and_the_remedy(tmp_path: Path, text: str, flaw: str):
    path = tmp_path / "events.yaml"
    path.write_text(text)
    with pytest.raises(Trouble, match=r"docs/events\.md") as told:
        load(path)
    assert flaw in str(told.value)
    assert str(path) in str(told.value)


def test_own_events_stand_beside_the_shipped_ones_and_may_replace_them():
    text = "events: [{event: client_tokenizer, date: 2026-05-16, series: {disagg: true, isl: [1024, 8192]}}]"
    found = {event.name: event for event in parse(text)}
    assert len(found) == len(EVENTS)
    assert found["client_tokenizer"].start == day("2026-05-16")
    assert found["client_tokenizer"].affects(SPLIT, "tput_per_gpu")
    assert not found["client_tokenizer"].affects(FIXED, "tput_per_gpu")
    assert parse("shipped: false") == ()


# --- in a comparison ----------------------------------------------------------------------------------------------


def sweep(number: int, start: str, rows: list[Json], evals: list[Json] | None = None, **changes: Any) -> Json:
    return bundle(run(number, start, **changes), rows, evals or [])


def judged(tracker: Tracker, past: list[Json], candidate: Json, *options: object) -> Any:
    tracker.ingest(write(tracker.folder / "past.json", past))
    return tracker.compare(write(tracker.folder / "new.json", candidate), *options)


def events_of(answer: Any) -> set[tuple[str, str]]:
    return {
        (one["metric"], doubt["event"])
        for one in answer["findings"]
        for doubt in one["caveats"]
        if doubt["code"] == "harness_event"
    }


def test_an_event_between_the_sides_is_said_of_the_metrics_that_it_concerns(tracker: Tracker) -> None:
    old = sweep(1, "2026-05-13T08:00:00Z", [row(64, 1000.0)])
    answer = judged(tracker, [old], sweep(2, "2026-05-17T08:00:00Z", [row(64, 1310.0, image=NEXT_IMAGE)]))
    told = events_of(answer)
    assert ("tput_per_gpu", "client_tokenizer") in told
    assert {event for _, event in told} == {"client_tokenizer", "failed_requests_gate"}
    (doubt,) = {
        tuple(d.items()) for f in answer["findings"] for d in f["caveats"] if d.get("event") == "client_tokenizer"
    }
    assert dict(doubt) == {
        "code": "harness_event", "event": "client_tokenizer", "date": "2026-05-15", "pull": 1381,
    }  # fmt: skip
    text = tracker("compare", tracker.folder / "new.json", "--format", "markdown", "--lang", "both").out
    assert "PR 1381" in text
    assert "测试框架" in text


def test_both_sides_on_one_side_of_an_event_say_nothing_of_it(tracker: Tracker) -> None:
    old = sweep(1, "2026-05-16T08:00:00Z", [row(64, 1000.0)])
    answer = judged(tracker, [old], sweep(2, "2026-05-17T08:00:00Z", [row(64, 1310.0, image=NEXT_IMAGE)]))
    assert events_of(answer) == set()


def test_a_redefined_metric_is_no_baseline_and_the_point_says_why(tracker: Tracker) -> None:
    old = sweep(1, "2026-06-20T08:00:00Z", [agentic(16, 400.0)])
    answer = judged(tracker, [old], sweep(2, "2026-07-08T08:00:00Z", [agentic(16, 200.0)]))
    assert [one for one in answer["findings"] if one["change"] is not None] == []
    (apart,) = answer["unmatched"]
    assert (apart["verdict"], apart["reason"]["code"], apart["reason"]["event"]) == (
        "not_comparable", "harness_event", "agentx_nested",
    )  # fmt: skip
    assert answer["headline"]["points"] == {"total": 1, "not_comparable": 1}


def test_a_run_before_a_redefinition_is_passed_over_for_one_after_it(tracker: Tracker) -> None:
    past = [
        sweep(1, "2026-07-05T08:00:00Z", [agentic(16, 400.0)]),
        sweep(2, "2026-06-20T08:00:00Z", [agentic(16, 900.0)]),
    ]
    answer = judged(tracker, past, sweep(3, "2026-07-08T08:00:00Z", [agentic(16, 402.0)]))
    point = next(one for one in answer["findings"] if (one["scope"], one["metric"]) == ("point", "tput_per_gpu"))
    assert point["runs"]["baseline"] == ["1/1"]
    assert point["change"] == pytest.approx(0.005)


def test_where_one_metric_was_redefined_the_others_are_judged(tracker: Tracker) -> None:
    old = sweep(1, "2026-07-08T08:00:00Z", [row(64, 1000.0, pp=2)])
    answer = judged(tracker, [old], sweep(2, "2026-07-12T08:00:00Z", [row(64, 990.0, pp=2, image=NEXT_IMAGE)]))
    curve = {one["metric"]: one for one in answer["findings"] if one["scope"] == "curve"}
    assert curve["tput_per_gpu"]["verdict"] == "not_comparable"
    assert curve["tput_per_gpu"]["change"] is None
    assert curve["median_tpot"]["change"] == pytest.approx(0.0101, abs=0.001)
    (said,) = (one for one in answer["caveats"] if one["code"] == "metric_redefined")
    assert (said["metric"], said["event"], said["date"]) == ("tput_per_gpu", "pipeline_parallel_gpus", "2026-07-10")
    assert answer["headline"]["points"]["total"] == 1


def test_rows_stand_where_they_were_measured_not_where_the_attempt_began(tracker: Tracker) -> None:
    own = {"run_id": 1, "run_attempt": 1, "created_at": "2026-05-13T10:00:00Z"}
    first = sweep(1, "2026-05-13T08:00:00Z", [row(64, 1000.0, **own)])
    again = sweep(1, "2026-05-20T08:00:00Z", [row(32, 700.0, tp=4)], run_attempt=2)
    answer = judged(tracker, [first, again], sweep(2, "2026-05-21T08:00:00Z", [row(64, 1001.0, image=NEXT_IMAGE)]))
    assert ("tput_per_gpu", "client_tokenizer") in events_of(answer)


def test_events_of_a_file_are_told_by_their_name(tracker: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tracker.folder / "events.yaml"
    path.write_text(
        "shipped: false\nevents:\n- {event: new_board, date: 2026-05-16, commit: '0a1b2c3', metrics: '*tput*'}\n"
    )
    monkeypatch.setenv("TRACKER_EVENTS", str(path))
    old = sweep(1, "2026-05-13T08:00:00Z", [row(64, 1000.0)])
    answer = judged(tracker, [old], sweep(2, "2026-05-17T08:00:00Z", [row(64, 1310.0, image=NEXT_IMAGE)]))
    assert events_of(answer) == {("tput_per_gpu", "new_board")}
    text = tracker("compare", tracker.folder / "new.json", "--events", path, "--format", "markdown").out
    assert "2026-05-16: new_board (commit 0a1b2c3)" in text
    path.write_text("events: 3")
    said = tracker("compare", tracker.folder / "new.json", "--events", path)
    assert (said.code, "not a list" in said.err) == (1, True)


def test_a_missing_point_says_since_when_its_sequence_is_not_measured(tracker: Tracker) -> None:
    old = sweep(1, "2026-07-10T08:00:00Z", [row(64, 1000.0), row(64, 900.0, isl=1024)])
    answer = judged(tracker, [old], sweep(2, "2026-07-20T08:00:00Z", [row(64, 1001.0, image=NEXT_IMAGE)]))
    (gone,) = (one for one in answer["unmatched"] if one["verdict"] == "missing")
    assert [doubt["event"] for doubt in gone["caveats"]] == ["sequence_1k1k_deprecated"]
    assert events_of(answer) == set()


def test_the_shipped_effects_are_the_three_that_are_documented():
    assert {event.effect for event in EVENTS} == set(Effect)
    assert Caveat.of("harness_event", event="e", date="2026-01-01") == replace(EVENTS[0], name="e", commit=None,
        start=day("2026-01-01")).caveat()  # fmt: skip


# --- published rows -----------------------------------------------------------------------------------------------


@pytest.mark.shared
def test_h200_fell_with_v0_5_11_and_came_back_and_the_tokenizer_lies_between(tracker: Tracker, shared: Path) -> None:
    tracker.ingest(*sorted((shared / "data").glob("benchmarks*.json")))
    down = tracker.compare("run:25763415816")
    assert down["headline"]["verdict"] == "regression"
    assert events_of(down) == set()
    up = tracker.compare("run:25980019087")
    recovered = [one for one in up["findings"] if one["scope"] == "point" and "recovery" in codes(one)]
    assert {one["conc"] for one in recovered} == {4, 16, 64}
    assert ("tput_per_gpu", "client_tokenizer") in events_of(up)
    assert not [one for one in up["findings"] if one["verdict"] == "improvement" and (one["change"] or 0) > 1]


def codes(one: Json) -> set[str]:
    return {doubt["code"] for doubt in one["caveats"]}
