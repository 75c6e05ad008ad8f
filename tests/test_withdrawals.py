"""Withdrawals: the file, what each level takes out, and that taking a line away brings everything back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from store import archive, withdrawals
from store.duck import Store
from store.identity import curve_key, series_key
from store.readers import read
from store.records import Batch, Finding, RunKey, Scope, Verdict, Withdrawal
from store.runs import standing
from store.withdrawals import CannotReadWithdrawals
from tests.cli import Tracker
from tests.factory import NEXT_IMAGE, bundle, evaluation, history, row, run, write
from tests.test_store_landing import SERIES, answers, point, score
from tests.test_store_landing import run as a_run

GOOD = (
    "class: policy\n  reason: nightly image of an unmerged branch\n  since: 2026-07-21\n  source: https://x.example/7"
)


def entry(run: int, attempt: int | None = None, **point: str) -> Withdrawal:
    return Withdrawal(
        run, "policy", "not to be used", date(2026, 7, 21), "https://x.example", attempt, tuple(point.items())
    )


# ---------------------------------------------------------------- the file


def test_an_entry_is_read_whole() -> None:
    named = "model: gptoss, gpu: cluster:H200-dgxc, precision: nvfp4, conc: 64"
    text = f"# why\n- run: 77\n  attempt: 2\n  point: {{{named}}}\n  {GOOD}\n"
    (one,) = withdrawals.parse(text, "w.yaml")
    assert (one.run, one.attempt, one.kind, one.since, one.place) == (77, 2, "policy", date(2026, 7, 21), "w.yaml:2")
    assert dict(one.point) == {"model": "gptoss120b", "gpu": "h200", "precision": "fp4", "conc": "64"}
    assert withdrawals.parse("# nothing yet\n") == ()


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("run: 77", None, "begin each entry"),
        ("- 77", 1, "mapping"),
        (f"- run: 77\n  run: 78\n  {GOOD}", 2, "run is given twice"),
        (f"- run: 77\n  atempt: 2\n  {GOOD}", 2, "unknown field 'atempt'"),
        (f"- run: seven\n  {GOOD}", 1, "digits only"),
        (f"- run: 9999999999999999999\n  {GOOD}", 1, "too large"),
        (f"- run: 77\n  attempt: 0\n  {GOOD}", 2, "1 or more"),
        (f"- run: 77\n  attempt:\n  {GOOD}", 2, "no single value"),
        (f"- run: 77\n  point: {{}}\n  {GOOD}", 2, "names nothing"),
        (f"- run: 77\n  point: [64]\n  {GOOD}", 2, "mapping"),
        (f"- run: 77\n  point: {{gpus: 8}}\n  {GOOD}", 2, "unknown field 'gpus'.*conc"),
        (f"- run: 77\n  point: {{conc: many}}\n  {GOOD}", 2, "positive whole number"),
        (f"- run: 77\n  point: {{offload: dram}}\n  {GOOD}", 2, "true or false"),
        ("- run: 77\n  class: policy\n  since: 2026-07-21", 1, "reason, source missing"),
        (f"- run: 77\n  {GOOD.replace('policy', 'dislike')}", 2, "no class.*broken-run"),
        (f"- run: 77\n  {GOOD.replace('2026-07-21', 'July')}", 4, "no date"),
        (f"- run: 77\n  {GOOD.replace('https:', 'javascript:')}", 5, "begins with https"),
        (f"- run: 77\n  {GOOD}\n- run: 77\n  {GOOD}", 6, "withdrawn already, at w.yaml:1"),
        ("- run: [77", 1, "no valid YAML"),
    ],
)
def test_a_bad_entry_is_told_with_its_line_and_what_to_write(text: str, line: int | None, told: str) -> None:
    with pytest.raises(CannotReadWithdrawals, match=told) as caught:
        withdrawals.parse(text, "w.yaml")
    assert str(caught.value).startswith(f"w.yaml:{line}: " if line else "w.yaml: ")


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(CannotReadWithdrawals, match="check the path"):
        withdrawals.load(tmp_path / "absent.yaml")
    (tmp_path / "w.yaml").write_bytes(b"- run: \xff")
    with pytest.raises(CannotReadWithdrawals, match="UTF-8"):
        withdrawals.load(tmp_path / "w.yaml")


# ---------------------------------------------------------------- the store

FIRST, AGAIN, OTHER = a_run(77), a_run(77, 2), a_run(78)
MERGE = a_run(90)
SOURCE = a_run(80, event="pull_request", reused_by=MERGE.key)
HELD = [
    Batch(FIRST, (point(FIRST, 64, 655.0, 18), point(FIRST, 128, 850.0, 18)), (score(FIRST, 0.91, 10),)),
    Batch(AGAIN, (point(AGAIN, 64, 1310.0, 29),), (score(AGAIN, 0.93, 20),)),
    Batch(OTHER, (point(OTHER, 64, 700.0, 40), point(OTHER, 256, 990.0, 40, image="a/b:v1")), (score(OTHER, 0.9, 30),)),
    Batch(SOURCE, (point(SOURCE, 64, 720.0, 50),), (score(SOURCE, 0.95, 50),)),
    Batch(MERGE, (point(MERGE, 128, 1.0, 60),)),
]


def landed(folder: Path, batches: Sequence[Batch]) -> None:
    with Store.open(folder / "s", folder / "a") as store:
        store.land_many(batches)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of everything, to be read only."""
    folder = tmp_path_factory.mktemp("full")
    landed(folder, HELD)
    return folder


def opened(folder: Path, *entries: Withdrawal) -> Store:
    return Store.open(folder / "s", folder / "a", read_only=True, withdrawn=entries)


def told(store: Store) -> dict[str, pl.DataFrame]:
    """What a comparison asks of its past."""
    curves = [curve_key(SERIES)]
    runs = store.runs().filter(pl.col("withdrawal").is_null())
    return {
        "history": store.history(curves, before=a_run(99)).sort(pl.all()),
        "scores": store.score_frame().drop("place_index"),
        "curves": store.curves(),
        "images": store.measured_images(),
        "newest": pl.DataFrame({"run": [repr(store.newest_run()), repr(store.newest_of_configs(CONFIGS, a_run(99)))]}),
        "sayings": pl.DataFrame({"said": [repr(one) for one in store.sayings([series_key(SERIES)], ())]}),
        "runs": runs.select("run", "official", "valid", "invalid", "superseded"),
    }


CONFIGS = ("dsr1-fp8-h200-sglang",)


def without(batches: Sequence[Batch], *gone: Batch) -> list[Batch]:
    return [batch for batch in batches if batch not in gone]


@pytest.mark.parametrize(
    ("entries", "left"),
    [
        ([entry(77)], HELD[2:]),
        ([entry(77, 2)], without(HELD, HELD[1])),
        ([entry(77, 1)], without(HELD, HELD[0])),
        ([entry(80)], HELD[:3]),
        ([entry(90)], HELD[:3]),
        ([entry(90, 1)], HELD[:3]),
        ([entry(77), entry(80)], [HELD[2]]),
        ([entry(12345)], HELD),
        ([entry(90, 2)], HELD),
        ([entry(77, 2, conc="64")], [*without(HELD, HELD[1]), replace(HELD[1], points=())]),
        ([entry(77, 2, task="gsm8k")], [*without(HELD, HELD[1]), replace(HELD[1], scores=())]),
        ([entry(78, image="a/b:v1")], [*without(HELD, HELD[2]), replace(HELD[2], points=HELD[2].points[:1])]),
        ([entry(78, gpu="h100")], HELD),
    ],
)
def test_every_answer_is_as_if_it_had_never_landed(
    tmp_path: Path, full: Path, entries: list[Withdrawal], left: list[Batch]
) -> None:
    if left != HELD:
        landed(tmp_path, left)
    with opened(full, *entries) as store, opened(tmp_path if left != HELD else full) as other:
        answer, expected = told(store), told(other)
    for name, frame in expected.items():
        assert_frame_equal(answer[name], frame, check_row_order=name != "runs")


@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    order=st.permutations(HELD),
    runs=st.lists(st.sampled_from([(77, None), (77, 2), (78, None), (80, None), (90, None)]), min_size=1, unique=True),
    cut=st.integers(0, len(HELD)),
)
def test_the_order_of_landing_changes_nothing_and_what_is_taken_back_returns(
    tmp_path_factory: pytest.TempPathFactory, order: list[Batch], runs: list[tuple[int, int | None]], cut: int
) -> None:
    folder = tmp_path_factory.mktemp("order")
    entries = tuple(entry(*one) for one in runs)
    landed(folder / "plain", HELD)
    with Store.open(folder / "s", folder / "a", withdrawn=entries) as store:
        store.land_many(order[:cut])
        store.land_many(order[cut:])
        while_open = told(store)
    with opened(folder, *entries) as store, opened(folder / "plain", *entries) as other:
        for name, frame in told(other).items():
            assert_frame_equal(told(store)[name], frame)
            assert_frame_equal(while_open[name], frame)
    with opened(folder) as store, opened(folder / "plain") as other:
        for name, frame in answers(other).items():
            assert_frame_equal(answers(store)[name], frame)


def test_a_store_made_anew_gives_equal_answers_under_withdrawals(tmp_path: Path) -> None:
    landed(tmp_path, HELD)
    with opened(tmp_path, entry(77, 2), entry(78, conc="64")) as store:
        expected = told(store)
    Store.rebuild(tmp_path / "s", tmp_path / "a")
    with opened(tmp_path, entry(77, 2), entry(78, conc="64")) as store:
        for name, frame in expected.items():
            assert_frame_equal(told(store)[name], frame)
    assert len(list(archive.files(tmp_path / "a"))) == len(HELD)


def test_the_points_of_a_withdrawn_attempt_are_told_with_the_reason(full: Path) -> None:
    with opened(full, entry(77, 2)) as store:
        assert set(store.points(AGAIN.key)["status"]) == {"withdrawn", "superseded"}
        assert store.tidy(AGAIN.key).is_empty()
        assert store.run(77) == FIRST
        assert set(store.points(77)["status"]) == {"valid"}
        assert store.standing(AGAIN.key).reasons[-1].code == "withdrawn"
        assert not store.standing(AGAIN.key).official
        assert store.standing(FIRST.key).official
        assert [reason.code for _, reason in store.withdrawn_scores(AGAIN.key)] == ["withdrawn"]
        assert store.scores(AGAIN.key) == ()
        assert store.info().counts["withdrawn"] == 1


def test_what_each_entry_takes_out_is_told_and_what_fits_nothing_too(full: Path) -> None:
    with opened(full, entry(90), entry(77, None, conc="64"), entry(5)) as store:
        reuse, part, nothing = store.effects()
    assert (reuse.runs, reuse.points, reuse.scores) == ((SOURCE.key, MERGE.key), 2, 1)
    assert (part.runs, part.points, part.scores) == ((FIRST.key, AGAIN.key), 2, 0)
    assert (nothing.runs, nothing.points, nothing.scores) == ((), 0, 0)


def test_an_export_leaves_them_out_unless_they_are_asked_for(tmp_path: Path, full: Path) -> None:
    with opened(full, entry(78)) as store:
        points, scores = (pl.read_parquet(path) for path in store.export(tmp_path / "plain"))
        more, more_scores = (pl.read_parquet(path) for path in store.export(tmp_path / "more", with_withdrawn=True))
    assert "78/1" not in {*points["run"], *scores["run"]}
    assert "withdrawn" not in points.columns
    for frame, fuller in ((points, more), (scores, more_scores)):
        taken = fuller.filter(pl.col("withdrawn").is_not_null())
        assert set(taken["run"]) == {"78/1"}
        assert fuller.filter(pl.col("withdrawn").is_null()).height == frame.height


def finding(key: str, *runs: RunKey) -> Finding:
    return Finding(
        Scope.POINT, key, "tput_per_gpu", Verdict.REGRESSION, baseline_runs=runs, candidate_runs=(RunKey(99),)
    )


@pytest.mark.parametrize(
    ("entries", "stood_on", "corrected"),
    [
        ([entry(78)], [OTHER.key], ["78/1"]),
        ([entry(78)], [AGAIN.key], []),
        ([entry(90)], [SOURCE.key], ["80/1"]),
        ([entry(78, conc="64")], [OTHER.key], ["78/1"]),
        ([entry(78, conc="256")], [OTHER.key], []),
        ([entry(77, 1, conc="128")], [AGAIN.key], []),
        ([entry(77, 2)], [AGAIN.key, OTHER.key], ["77/2"]),
    ],
)
def test_stored_findings_that_stood_on_it_are_corrected(
    tmp_path: Path, entries: list[Withdrawal], stood_on: list[RunKey], corrected: list[str]
) -> None:
    landed(tmp_path, HELD)
    with Store.open(tmp_path / "s", tmp_path / "a", withdrawn=entries) as store:
        store.save_findings("99/1 previous", [finding(series_key(SERIES), *stood_on)])
        assert [dict(one.values)["run"] for one in store.corrections("99/1 previous")] == corrected
        assert store.corrections("98/1 previous") == ()
        assert store.cited(stood_on[:1]) == ("99/1 previous",)
        assert store.cited([RunKey(99)]) == ("99/1 previous",)
        assert store.cited([RunKey(5)]) == ()


# ---------------------------------------------------------------- the command line


def listed(tracker: Tracker, *entries: dict[str, object]) -> Path:
    """The file beside the store (YAML holds JSON)."""
    why = {"class": "policy", "reason": "wrong draft model", "since": "2026-07-21", "source": "https://x.example/7"}
    return write(tracker.folder / "tracker.withdrawals.yaml", [{**why, **one} for one in entries])


def past(tracker: Tracker) -> Path:
    tracker.ingest(write(tracker.folder / "past.json", history({64: [1000.0, 1400.0], 128: [1500.0, 1500.0]})))
    rows = [row(64, 1001.0, image=NEXT_IMAGE), row(128, 1501.0, image=NEXT_IMAGE)]
    return write(tracker.folder / "c.json", bundle(run(200, "2026-06-12T00:00:00Z"), rows))


def baselines(answer: dict[str, object]) -> set[str]:
    return {name for one in answer["findings"] for name in one["runs"]["baseline"]}


def test_a_withdrawn_run_is_no_baseline_and_comes_back_with_the_line(tracker: Tracker) -> None:
    candidate = past(tracker)
    before = tracker.compare(candidate)
    assert "101/1" in baselines(before)
    file = listed(tracker, {"run": 101})
    assert baselines(tracker.compare(candidate)) == {"100/1"}
    named = tracker("compare", candidate, "--against", "run:101")
    assert named.code == 1
    assert "withdrawn since 2026-07-21 (wrong draft model)" in named.err
    file.unlink()
    assert tracker.compare(candidate) == before


def test_a_withdrawn_candidate_is_not_judged_and_says_why(tracker: Tracker) -> None:
    past(tracker)
    evals = [bundle(run(200, "2026-06-12T00:00:00Z"), [row(64, 400.0)], [evaluation()])]
    tracker.ingest(write(tracker.folder / "new.json", evals))
    listed(tracker, {"run": 200})
    answer = tracker.compare("run:200")
    assert answer["findings"] == []
    reasons = {(one["verdict"], one["reason"]["code"]) for one in answer["unmatched"] if one["side"] == "candidate"}
    assert reasons == {("not_judged", "withdrawn")}
    assert {one["task"] for one in answer["unmatched"]} >= {None, "gsm8k"}
    assert [one["code"] for one in answer["caveats"]] == ["withdrawn"]
    for lang, words in (("en", "withdrawn since 2026-07-21"), ("zh", "2026-07-21 起")):
        assert words in tracker("compare", "run:200", "--format", "markdown", "--lang", lang).out
    assert tracker.compare()["candidate"][0]["id"] != 200


def test_a_withdrawn_point_alone_is_not_judged(tracker: Tracker) -> None:
    candidate = past(tracker)
    listed(tracker, {"run": 200, "point": {"conc": 64, "gpu": "H200"}})
    answer = tracker.compare(candidate)
    (apart,) = [one for one in answer["unmatched"] if one["reason"]["code"] == "withdrawn"]
    assert apart["conc"] == 64
    assert {one["conc"] for one in answer["findings"] if one["scope"] == "point"} == {128}


def corrections(answer: Any) -> list[Any]:
    return [one for one in answer["caveats"] if one["code"] == "withdrawn_cited"]


def test_a_later_report_corrects_an_earlier_one(tracker: Tracker) -> None:
    candidate = past(tracker)
    tracker.ingest(candidate)
    store = tracker.folder / "tracker.duckdb", tracker.folder / "tracker.archive"
    with Store.open(*store) as opened_store:
        key = RunKey(101)
        opened_store.save_findings("200/1 previous", [finding("any", key)])
    assert not corrections(tracker.compare("run:200"))
    file = listed(tracker, {"run": 101})
    (told_once,) = corrections(tracker.compare("run:200"))
    assert told_once == {
        "code": "withdrawn_cited", "run": "101/1", "reason": "wrong draft model", "since": "2026-07-21",
    }  # fmt: skip
    assert not corrections(tracker.compare("run:200", "--against", "last-good"))
    for form in ("comment", "markdown", "table"):
        said = tracker("compare", "run:200", "--format", form).out
        assert said.count("Correction: ") == 1, form
        assert "101/1" in said
        assert "更正" in tracker("compare", "run:200", "--format", form, "--lang", "zh").out
    told_by = tracker("store", "withdrawn").out
    assert "cited by the stored comparison 200/1 previous" in told_by
    assert f"takes out 2 points and 0 scores of {key}" in told_by
    listed(tracker, {"run": 5})
    assert f"fits nothing in this store: look at {file}:1" in tracker("store", "withdrawn").out


def test_a_reused_sweep_is_a_baseline_until_the_run_that_published_it_is_withdrawn(tracker: Tracker) -> None:
    candidate = past(tracker)
    (measured,) = read([write(tracker.folder / "r.json", bundle(run(150, "2026-06-05T00:00:00Z", **PULL), [row(64)]))])
    reused = replace(measured, run=replace(measured.run, reused_by=RunKey(160)))
    with Store.open(tracker.folder / "tracker.duckdb", tracker.folder / "tracker.archive", official=standing) as store:
        store.land(reused)
    assert "150/1" in baselines(tracker.compare(candidate))
    listed(tracker, {"run": 160})
    assert "150/1" not in baselines(tracker.compare(candidate))
    assert "run 150/1" in tracker("store", "states", 150).out


PULL = {"event": "pull_request", "head_branch": "bump"}


def test_a_file_may_be_named_and_a_bad_one_stops_every_command(
    tracker: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidate = past(tracker)
    named = listed(tracker, {"run": 101}).rename(tracker.folder / "elsewhere.yaml")
    assert "101/1" in baselines(tracker.compare(candidate))
    assert baselines(tracker.compare(candidate, "--withdrawals", named)) == {"100/1"}
    monkeypatch.setenv("TRACKER_WITHDRAWALS", str(named))
    assert baselines(tracker.compare(candidate)) == {"100/1"}
    named.write_text("- run: 101\n  clas: policy\n", encoding="utf-8")
    for command in (["compare", candidate], ["store", "info"], ["store", "states"], ["ingest", candidate]):
        said = tracker(*command)
        assert said.code == 1
        assert f"{named}:2: unknown field 'clas'" in said.err


def test_what_may_be_used_of_each_run_is_told(tracker: Tracker) -> None:
    manual = run(300, "2026-06-01T00:00:00Z", event="workflow_dispatch", head_branch="explore/fast")
    rows = [row(64), row(128, 0.0), row(256, num_requests_total=320, num_requests_successful=31)]
    tracker.ingest(write(tracker.folder / "m.json", bundle(manual, rows, [evaluation()])))
    tracker.ingest(write(tracker.folder / "o.json", bundle(run(301, "2026-06-02T00:00:00Z"), [row(64)])))
    said = tracker("store", "states", 300).out
    assert (
        "run 300/1, started 2026-06-01 00:00 UTC: not official (event workflow_dispatch, branch explore/fast)" in said
    )
    for line in (
        "1  points valid",
        "1  points invalid: zero_throughput",
        "1  points invalid: failed_requests",
        "1  scores valid",
    ):
        assert line in said
    listed(tracker, {"run": 301})
    whole = tracker("store", "states").out
    assert "run 301/1, started 2026-06-02 00:00 UTC: not official (run 301, reason wrong draft model" in whole
    assert "1  points withdrawn: policy" in whole
    assert tracker("store", "states", 9).code == 1
    info = tracker("store", "info").out
    assert "1  unofficial_event" in info
    assert "1  withdrawn" in info
