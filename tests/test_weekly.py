"""The weekly report: which row stands where, both languages alike, the same bytes, and a whole story told right."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bench import weeks as bench
from reports import parity, render, week, weekform, weekwords
from reports.language import Language
from reports.week import Headline, WeekFacts
from store.images import Sameness
from store.life import Action as Act
from store.life import Apart, Bump, Change, ConfigBump, Direction, Event, InForce, Precision, Review, State, Week
from store.records import Caveat, Finding, Run, RunKey, Scope, Trouble, Verdict
from tests.cli import Tracker
from tests.sayings import a_finding, a_series, an_eval, matches_golden
from tests.test_render_hostile import assert_no_trigger
from tracker import jobs, review, weekly
from tracker.simulate import Story, write_story

MONDAY = datetime(2026, 8, 3, tzinfo=UTC)
OLD, NEW = "lmsysorg/sglang:v0.5.12-cu130", "lmsysorg/sglang:v0.5.13-cu130"
DOCUMENTS = ("weekly", "weekly_text", "weekly_html", "weekly_title")


# ---------------------------------------------------------------- a week by hand


def a_run(at: int) -> Run:
    """A run `at` days after the Monday."""
    return Run(9_000_000_000 + at, 1, MONDAY + timedelta(days=at, hours=2), repository="example-org/bench")


def a_change(name: str, first: int, finding: Finding | None = None, **other: object) -> Change:
    """A change that began `first` days after the Monday and was announced at once."""
    told = finding or a_finding(a_series(None), "tput_per_gpu", Verdict.REGRESSION, -8.0)
    run = a_run(first)
    given = {
        "id": name,
        "key": told.key,
        "config": told.config,
        "scope": told.scope,
        "direction": Direction.WORSE,
        "bump": Bump(OLD, NEW, Sameness.CHANGED),
        "finding": told,
        "first": run.key,
        "first_at": run.started_at,
        "state": State.OPEN,
        "state_at": run.started_at,
        "state_run": run.key,
        "announced": run.key,
        "announced_at": run.started_at,
        "last_seen": run.key,
        "members": (told.key,),
    }
    return Change(**{**given, **other})  # type: ignore[arg-type]


def a_review(at: int = 1, **other: object) -> Review:
    points = {Verdict.REGRESSION: 3, Verdict.EQUIVALENT: 40}
    run = a_run(at)
    given = {"points": points, "curves": {Verdict.EQUIVALENT: 8}, "configs": ("a", "b")}
    return Review(run.key, run.started_at, "1", "", **{**given, **other})  # type: ignore[arg-type]


def a_week(*changes: Change, reviews: Sequence[Review] | None = None, **other: object) -> Week:
    given = {
        "name": "2026-W32",
        "start": MONDAY,
        "end": MONDAY + timedelta(days=7),
        "reviews": tuple([a_review()] if reviews is None else reviews),
        "changes": changes,
        "images": (),
        "runs": tuple(a_run(at) for at in range(-20, 7)),
        "unofficial": (),
        "unread": (),
        "precision": Precision(0, 0),
        "rules_version": "1",
    }
    return Week(**{**given, **other})  # type: ignore[arg-type]


def a_full_week() -> Week:
    """Something in every section."""
    gain = a_finding(a_series(None, isl=1024), "tput_per_gpu", Verdict.IMPROVEMENT, 150.0)
    gain = replace(gain, caveats=(Caveat.of("implausible_gain", limit=0.69),))
    loss = an_eval(64, 0.9553, 0.887, Verdict.REGRESSION)
    alarm = Caveat.of("below_threshold", score=0.887, threshold=0.91, n=1319, correct=1170, needed=1201, short_by=31)
    over = {"state": State.RESOLVED, "state_at": a_run(4).started_at, "state_run": a_run(4).key}
    pool = {"pool": "amds", "members": ("one", "two", "three"), "configs": ("a", "b"), "announced": None}
    wait = {"state": State.SUSPECTED, "announced": None, "announced_at": None}
    said = Event(a_run(3).started_at, "ack", Act.ACKNOWLEDGE, "maria")
    return a_week(
        a_change("new1", 1),
        a_change("new2", 1, a_finding(a_series(None, tp=4), "tput_per_gpu", Verdict.REGRESSION, -5.0)),
        a_change("old", -12, confirmed=a_run(-10).key, since_good=-0.1),
        a_change("ack", -9, state=State.ACKNOWLEDGED, said=said),
        a_change("over", -6, **over),
        a_change("next", -5, **{**over, "state": State.SUPERSEDED, "superseded_by": "new1"}),
        a_change("none", 2, state=State.WITHDRAWN, why="spike"),
        a_change("maybe", 3, **wait),
        a_change("gain", 1, gain, direction=Direction.BETTER),
        a_change("eval", 1, loss, alarms=(alarm,)),
        a_change("pool", 2, **{**wait, **pool}, bump=Bump(None, None, Sameness.SAME)),
        reviews=[
            a_review(
                bumps=(ConfigBump("dsr1-fp8-h200-sglang", OLD, NEW),),
                apart=(
                    Apart(Verdict.MISSING, Caveat.of("missing_point"), "a", 2, "a c64"),
                    Apart(Verdict.NO_BASELINE, Caveat.of("no_baseline"), "b", 5, "b c4"),
                ),
                rejected=(("zero_concurrency", "conc", 2),),
            )
        ],
        images=(InForce("a", OLD, MONDAY - timedelta(days=40), MONDAY, 47, a_run(0).key),),
        unofficial=((a_run(5).key, (Caveat.of("unofficial_branch", branch="try"),)),),
        precision=Precision(9, 1, 0.6, 0.98),
    )


def ids(listed: object) -> list[tuple[str, ...]]:
    return [row.ids for row in listed.rows]  # type: ignore[attr-defined]


# ---------------------------------------------------------------- which row stands where


def test_every_change_stands_in_one_section() -> None:
    chosen = week.select(a_full_week())
    assert ids(chosen.new) == [("new1", "new2")]
    assert ids(chosen.open) == [("old",), ("ack",)] or ids(chosen.open) == [("ack",), ("old",)]
    assert sorted(ids(chosen.ended)) == [("next",), ("over",)]
    assert ids(chosen.suspected) == [("maybe",)]
    assert ids(chosen.better) == [("gain",)]
    assert ids(chosen.evals_new) == [("eval",)]
    assert ids(chosen.environment) == [("pool",)]
    assert chosen.taken_back == 1


def test_what_began_together_is_one_row_and_the_headline_counts_rows() -> None:
    chosen = week.select(a_full_week())
    said = Language("en").say(weekwords.headline(chosen))
    assert said == (
        "New regressions: accuracy 1, performance 1, open 2, ended 2, suspected 1, improvements 1; "
        "week 2026-W32 (2026-08-03 to 2026-08-09)."
    )


def test_a_change_of_an_earlier_week_is_not_new_again() -> None:
    chosen = week.select(a_week(a_change("old", -3, confirmed=a_run(1).key, last_seen=a_run(1).key)))
    assert (ids(chosen.new), ids(chosen.open)) == ([], [("old",)])
    assert chosen.headline is Headline.OPEN


def test_a_suspicion_of_an_earlier_week_is_new_in_the_week_that_confirms_it() -> None:
    late = a_change("late", -3, announced=a_run(1).key, announced_at=a_run(1).started_at)
    (row,) = week.select(a_week(late)).new.rows
    assert (row.ids, weekwords.since(row), row.days) == (("late",), "2026-07-31", 9)


@pytest.mark.parametrize(
    ("changes", "headline"),
    [
        ((), Headline.CALM),
        ((a_change("a", 1),), Headline.NEW),
        ((a_change("a", 1, state=State.DISMISSED),), Headline.CALM),
        ((a_change("a", 1, state=State.SUSPECTED, announced=None, announced_at=None),), Headline.SUSPECTED),
        ((a_change("a", 1, direction=Direction.BETTER),), Headline.BETTER),
        ((a_change("a", 1, bump=Bump(OLD, OLD, Sameness.SAME), announced=None, announced_at=None),), Headline.CALM),
    ],
)
def test_the_first_word_is_the_worst_of_the_week(changes: tuple[Change, ...], headline: Headline) -> None:
    assert week.select(a_week(*changes)).headline is headline


def test_counts_of_points_sum_to_their_total_in_every_language() -> None:
    for lang in ("en", "zh"):
        text = render.render(week.select(a_full_week()), "weekly", lang)
        (line,) = [line for line in text.splitlines() if re.search(r"^- (Points|数据点).*43", line)]
        first, *rest = map(int, re.findall(r"\d+", line))
        assert (first, sum(rest)) == (43, 43)


def test_an_empty_week_says_so() -> None:
    chosen = week.select(a_week(reviews=[]))
    assert chosen.headline is Headline.EMPTY
    assert render.render(chosen, "weekly_text", "en").startswith("No runs to judge in week 2026-W32 (2026-08-03 to")
    assert "None." in render.render(chosen, "weekly", "en")


def test_a_week_of_broken_data_says_which() -> None:
    apart = Apart(Verdict.INVALID, Caveat.of("zero_throughput"), "dsr1-fp8-h200-sglang", 30, "x")
    held = a_review(points={Verdict.INVALID: 30, Verdict.EQUIVALENT: 20}, apart=(apart,))
    chosen = week.select(a_week(reviews=[held]))
    text = render.render(chosen, "weekly_text", "en")
    assert chosen.headline is Headline.BROKEN
    assert "Much of the data is missing, failed or invalid: points 30 of 50 (dsr1-fp8-h200-sglang)." in text


def test_a_gain_that_cannot_be_true_is_flagged() -> None:
    (row,) = week.select(a_full_week()).better.rows
    assert "implausibly large" in Language("en").say(weekwords.state(row))


# ---------------------------------------------------------------- how it is said


@pytest.mark.parametrize("document", DOCUMENTS)
def test_both_languages_carry_the_same_numbers_and_names(document: str) -> None:
    english, chinese = (render.render(week.select(a_full_week()), document, lang) for lang in ("en", "zh"))
    assert parity.parity(english, chinese) == ()
    assert [flaw for flaw in parity.typography(re.sub(r"<[^>]+>", " ", chinese)) if document != "weekly_html"] == []


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_verdict_is_the_first_line_of_every_part(lang: str) -> None:
    chosen = week.select(a_full_week())
    said = Language(lang).say(weekwords.headline(chosen))
    for document in DOCUMENTS:
        body = render.render(chosen, document, lang)
        text = re.sub(r"<[^>]+>", "", body).strip().splitlines()[0] if document == "weekly_html" else body
        assert text.lstrip("# ").startswith(said)


def test_the_file_for_git() -> None:
    assert matches_golden("weekly.md", render.render(week.select(a_full_week()), "weekly"))


def test_the_sections_stand_in_their_agreed_order() -> None:
    text = render.render(week.select(a_full_week()), "weekly", "en")
    assert re.findall(r"^## (\w+)", text, re.MULTILINE) == [
        *("Counts", "Regressions", "Improvements", "Evals", "Images", "Reproducibility", "Not", "Runs"),
    ]


def test_every_row_of_a_table_has_its_cells() -> None:
    text = render.render(week.select(a_full_week()), "weekly")
    tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert len(tables) >= 12
    for table in tables:
        assert {line.count(" |") for line in table if not line.startswith("|--")} == {table[0].count(" |")}


def test_six_hundred_changes_fit_into_a_mail_and_the_rest_is_counted() -> None:
    changes = [
        a_change(f"c{n:07}", 1 + n % 5, replace(a_finding(a_series(None), "tput_per_gpu", Verdict.REGRESSION, -5.0),
                 config=f"config-{n}"), config=f"config-{n}")
        for n in range(600)
    ]  # fmt: skip
    chosen = week.select(a_week(*changes))
    html = render.render(chosen, "weekly_html")
    assert len(html.encode()) <= render.MAIL_LIMIT
    assert html.count("</table>") == html.count("<table")
    shown = html.count("config-") // 2
    assert f"performance {600}" in html
    assert re.search(rf"\b{600 - shown}\b", html)
    assert render.render(chosen, "weekly", "en").count("config-") == 600


def test_foreign_text_stays_in_its_cell_and_starts_nothing() -> None:
    poison = "x|y\n<script>@claude</script> /reuse-sweep-run `"
    said = Event(a_run(1).started_at, "a", Act.ACKNOWLEDGE, poison)
    made = a_week(
        a_change(
            "a", 1, config=poison, state=State.ACKNOWLEDGED, said=said, bump=Bump(poison, poison, Sameness.UNKNOWN)
        )
    )
    chosen = week.select(made)
    for document in ("weekly", "weekly_text", "weekly_title"):
        text = render.render(chosen, document)
        assert_no_trigger(re.sub(r"^  https://github\.com/example-org/\S+$", "", text, flags=re.MULTILINE))
    assert "<script" not in render.render(chosen, "weekly_html")
    test_rows = [line for line in render.render(chosen, "weekly").splitlines() if line.startswith("| ")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in test_rows}) == 1


# ---------------------------------------------------------------- weeks


@pytest.mark.parametrize("text", ["2026-32", "2026-W54", "2026-W00", "2025-W53", "W32", ""])
def test_what_is_no_week_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(Trouble, match="write it as 2026-W32"):
        weekly.span(text)


def test_weeks_are_of_utc_and_run_from_monday() -> None:
    assert weekly.week_of(datetime.fromisoformat("2026-08-10T01:00+02:00")).name == "2026-W32"
    assert weekly.week_of(datetime(2027, 1, 3, tzinfo=UTC)).name == "2026-W53"
    assert weekly.last_whole(MONDAY).name == "2026-W31"


# ---------------------------------------------------------------- a whole story


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return write_story(tmp_path_factory.mktemp("story") / "artifacts", 1, 5, bench.END)


@pytest.fixture(scope="module")
def where(story: Story, tmp_path_factory: pytest.TempPathFactory) -> jobs.Where:
    return bench.landed([run.folder for run in story.runs], tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def told(where: jobs.Where) -> list[WeekFacts]:
    return list(bench.told(where))


@pytest.mark.parametrize("way", list(Direction))
def test_every_planted_change_is_announced_once_and_nothing_else(
    story: Story, told: list[WeekFacts], way: Direction
) -> None:
    score = bench.scored(story, told, way)
    assert len(score.planted) >= 4
    assert (score.missed, score.false, score.twice) == (set(), set(), [])


def test_nothing_is_announced_twice_in_a_story(told: list[WeekFacts]) -> None:
    names = Counter(change.id for way in Direction for facts in told for change in bench.announced(facts, way))
    assert max(names.values()) == 1


def test_the_bad_night_of_a_pool_is_one_row_and_no_regression(story: Story, told: list[WeekFacts]) -> None:
    (night,) = [run for run in story.nights if run.bad_pool]
    rows = [row for facts in told for row in facts.environment.rows if row.first.pool]
    assert [(row.first.pool, row.first.first, row.first.why) for row in rows] == [(night.bad_pool, night.key, "spike")]


def test_what_recovered_is_ended_and_no_improvement(told: list[WeekFacts]) -> None:
    ended = [row for facts in told for row in (*facts.ended.rows, *facts.new.rows, *facts.evals_new.rows)]
    back = {row.first.config for row in ended if row.first.state is State.RESOLVED}
    assert back == {"dsr1-fp8-h200-sglang", "qwen3.5-fp8-mi355x-sglang"}


def test_judging_again_changes_nothing(where: jobs.Where) -> None:
    before = [weekform.dumps(facts) for facts in bench.told(where)]
    assert review.review(where).judged == 0
    assert [weekform.dumps(facts) for facts in bench.told(where)] == before


def test_the_order_of_landing_does_not_change_a_byte(story: Story, tmp_path: Path) -> None:
    """The noise is learned at the end of each landing: what is judged then does not know how the runs came."""
    folders = [run.folder for run in story.runs if run.official][:6]
    texts = []
    for number, parts in enumerate(([folders], [folders[4:], folders[1:4], folders[:1]])):
        place = jobs.Where.of(tmp_path / f"{number}.duckdb", None)
        for part in parts:
            jobs.ingest(part, place)
        review.review(place)
        chosen = week.select(weekly.weekly(place, "2026-W30"))
        texts.append([render.render(chosen, name) for name in ("weekly", "weekly_html")] + [weekform.dumps(chosen)])
    assert texts[0] == texts[1]
    assert "dsr1-fp8-h200-sglang" in texts[0][0]


def test_a_new_run_costs_its_own_comparison_only(story: Story, tmp_path: Path) -> None:
    grown = jobs.Where.of(tmp_path / "grown.duckdb", None)
    nights = [run for run in story.runs if run.official]
    jobs.ingest([run.folder for run in nights[:4]], grown)
    assert review.review(grown).judged == 4
    jobs.ingest([nights[4].folder], grown)
    assert (review.review(grown).judged, review.review(grown).judged) == (1, 0)


# ---------------------------------------------------------------- the command line


@pytest.fixture
def kept(tracker: Tracker, where: jobs.Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tracker:
    """The command line on a copy of the store of the story."""
    copy = tmp_path / "copy.duckdb"
    copy.write_bytes(where.store.read_bytes())
    monkeypatch.setenv("TRACKER_STORE", str(copy))
    monkeypatch.setenv("TRACKER_ARCHIVE", str(where.archive))
    return tracker


def test_the_files_of_a_week_are_the_same_bytes_every_time(kept: Tracker, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        assert kept("weekly", "--out", folder, "--lang", "both").code == 0
    one, two = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders)
    assert sorted(one) == [f"weekly-2026-W32.{ending}" for ending in ("html", "json", "md", "txt")]
    assert one == two


def test_the_week_is_said_and_never_taken_from_the_clock(kept: Tracker) -> None:
    assert "week 2026-W32, 2026-08-03 to 2026-08-09" in kept("weekly").err
    assert "week 2026-W30" in kept("weekly", "--now", "2026-07-29").err
    assert kept("weekly", "--now", "soon").code == 2
    assert kept("weekly", "--now", "2026-07-29", "--week", "2026-W30").code == 2
    refused = kept("weekly", "--week", "32")
    assert refused.code == 1
    assert "write it as 2026-W32" in refused.err


def test_json_names_every_change_with_its_runs(kept: Tracker) -> None:
    said = kept("weekly", "--week", "2026-W33", "--format", "json").json
    (row,) = said["regressions"]["new"]
    assert [change["config"] for change in row["changes"]] == ["dsr1-fp4-b200-sglang"] * 2
    assert row["changes"][0]["change"] == pytest.approx(-0.07, abs=0.01)
    assert row["url"].startswith("https://github.com/example-org/")
    assert said["headline"] == "new"


def test_people_speak_of_changes_by_the_start_of_their_names(kept: Tracker) -> None:
    found = kept("findings", "list", "--format", "json").json["findings"]
    name = next(one["id"] for one in found if one["direction"] == "worse")
    assert kept("findings", "show", name[:5]).out.count(name) >= 2
    assert "acknowledged" in kept("findings", "acknowledge", name, "--by", "maria", "--at", "2026-08-11").out
    reason = ("--reason", "the node was shared", "--by", "maria", "--at", "2026-08-12")
    assert "dismissed" in kept("findings", "dismiss", name, *reason).out
    assert kept("findings", "list", "--format", "json").json["precision"]["dismissed"] == 1
    assert name not in [one["id"] for one in kept("findings", "list", "--format", "json").json["findings"]]
    assert "open" in kept("findings", "reopen", name, *reason).out


def test_what_people_say_later_does_not_change_an_older_week(kept: Tracker) -> None:
    before = kept("weekly", "--week", "2026-W31").out
    found = kept("findings", "list", "--format", "json").json["findings"]
    reason = ("--reason", "no", "--by", "maria", "--at", "2026-08-20")
    assert kept("findings", "dismiss", *(one["id"] for one in found), *reason).code == 0
    assert kept("weekly", "--week", "2026-W31").out == before


def test_a_rebuilt_store_keeps_what_was_judged_and_said(kept: Tracker) -> None:
    name = kept("findings", "list", "--format", "json").json["findings"][0]["id"]
    kept("findings", "dismiss", name, "--reason", "no", "--by", "maria", "--at", "2026-08-09")
    before = kept("weekly", "--week", "2026-W33").out
    assert kept("store", "rebuild").code == 0
    assert kept("weekly", "--week", "2026-W33").out == before


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("acknowledge", "zzzz", "--by", "m"), "no change 'zzzz'"),
        (("reopen", "{name}", "--by", "m", "--reason", "r"), "nothing to reopen"),
        (("show", ""), "no change ''"),
    ],
)
def test_what_cannot_be_said_is_refused_with_what_to_do(kept: Tracker, arguments: tuple[str, ...], told: str) -> None:
    name = kept("findings", "list", "--format", "json").json["findings"][0]["id"]
    said = kept("findings", *(word.format(name=name) for word in arguments))
    assert (said.code, told in said.err) == (1, True)


def test_a_replay_has_a_line_a_week(kept: Tracker) -> None:
    head, *lines = kept("weekly", "--replay").out.splitlines()
    assert [line.split()[0] for line in lines] == [f"2026-W{number}" for number in range(28, 34)]
    assert head.startswith("week")


def test_without_a_store_it_says_what_to_do(tracker: Tracker) -> None:
    for command in (("weekly",), ("findings", "list")):
        said = tracker(*command)
        assert (said.code, "land a sweep first" in said.err) == (1, True)


def test_the_json_of_a_hand_made_week_is_strict() -> None:
    made = a_full_week()
    odd = replace(made.changes[0], finding=replace(made.changes[0].finding, effect=float("inf"), p=float("nan")))
    text = weekform.dumps(week.select(replace(made, changes=(odd,))))
    assert json.loads(text, parse_constant=pytest.fail)["regressions"]["new"]


def test_a_scope_of_points_names_them() -> None:
    told = a_change("a", 1, scope=Scope.POINT, members=("a c4", "a c64"))
    (row,) = week.select(a_week(told)).new.rows
    assert Language("en").say(weekwords.what(row)).endswith("points: 2")


def test_a_run_without_a_number_is_local_files() -> None:
    assert Language("en").say(weekwords.run_text(RunKey(-5))) == "local files"
