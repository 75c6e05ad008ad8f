"""What differs between the sides of a change: its class, the whole list, and what its controls did; never why."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from bench import attribution as bench
from reports import contrasts, numbers
from reports.language import Language
from store.chronicles import Shift
from store.duck import Store
from store.records import Attribution, Caveat, Controls, Difference, Differs, Layout, LayoutChange, LayoutKind, Role
from tests.cli import Tracker
from tests.factory import IMAGE, NEXT_IMAGE, Json, bundle, evaluation, row, run, write
from tests.sayings import an_attribution
from tests.sweeps import nights
from tests.test_chronicle import past, told
from tracker import jobs
from tracker.annals import with_controls
from tracker.attribution import attribution, events, layouts, software
from tracker.attribution import told as told_by
from tracker.chronicle import chronicles
from tracker.matrix import CurveRun

DIGEST = ("@sha256:" + "1" * 64, "@sha256:" + "2" * 64)
PRINT, OTHER = "a" * 64, "b" * 64
THEN, NOW = "2026-06-02T03:00:00Z", "2026-06-09T03:00:00Z"


def side(image: str | None = IMAGE, recipe: str | None = None, pool: str | None = None) -> CurveRun:
    return CurveRun("1", 1, None, image, recipe, pool)


def classes(*differences: Difference, controls: Controls = Controls()) -> str:
    return "+".join(kind.value for kind in attribution(differences, controls).kinds)


# ---------------------------------------------------------------- the rules


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        (side(), side(), "unknown"),
        (side(), side(NEXT_IMAGE), "image"),
        (side("a/b:dev" + DIGEST[0]), side("a/b:dev" + DIGEST[1]), "image"),
        (side("a/b:latest"), side("a/b:latest"), "unknown"),
        (side(None), side(), "unknown"),
        (side("a/b:latest", PRINT), side("a/b:latest", OTHER), "unknown+recipe"),
        (side(recipe="one"), side(recipe="two"), "recipe"),
        (side(recipe=PRINT), side(recipe=OTHER), "recipe"),
        (side(recipe=PRINT), side(recipe=None), "unknown"),
        (side(recipe=PRINT), side(NEXT_IMAGE, OTHER), "image"),
        (side(recipe="one"), side(NEXT_IMAGE, "two"), "image+recipe"),
        (side(pool="one"), side(pool="two"), "pool"),
        (side(pool="one"), side(pool=None), "unknown"),
        (side(recipe="one", pool="one"), side(NEXT_IMAGE, "two", "two"), "image+recipe+pool"),
    ],
)
def test_the_software_of_two_sides_has_classes(old: CurveRun, new: CurveRun, kinds: str) -> None:
    assert classes(*software(old, new)) == kinds
    assert classes(*software(new, old)) == kinds


def test_swapped_sides_have_mirrored_differences() -> None:
    rng = random.Random(20261130)
    texts = (None, IMAGE, NEXT_IMAGE, "a/b:latest", "a/b:v1" + DIGEST[0])
    recipes, pools = (None, "one", "two", PRINT, OTHER), (None, "x", "y")
    for _ in range(300):
        one, other = (side(rng.choice(texts), rng.choice(recipes), rng.choice(pools)) for _ in range(2))
        there, back = software(one, other), software(other, one)
        assert [(d.what, d.after, d.before, d.kind) for d in there] == [
            (d.what, d.before, d.after, d.kind) for d in back
        ]


def test_points_of_several_recipes_are_held_against_their_own() -> None:
    def of(**recipes: str) -> CurveRun:
        return CurveRun("1", 1, None, IMAGE, "+".join(recipes.values()), None, frozenset(recipes.items()))

    assert software(of(c4=PRINT, c8=OTHER), of(c4=PRINT)) == ()
    (found,) = software(of(c4=PRINT, c8=OTHER), of(c4=OTHER, c16=PRINT))
    assert (found.before, found.after, found.kind) == (PRINT[:12], OTHER[:12], Differs.RECIPE)


@pytest.mark.parametrize(
    ("controls", "kind"),
    [
        (Controls(), Differs.UNKNOWN),
        (Controls(8, 0), Differs.UNKNOWN),
        (Controls(8, 4, -0.1), Differs.UNKNOWN),
        (Controls(8, 5, -0.1), Differs.POOL),
        (Controls(1, 1, -0.1), Differs.POOL),
    ],
)
def test_the_same_software_is_the_pool_s_where_most_controls_moved_too(controls: Controls, kind: Differs) -> None:
    assert attribution((), controls).kind is kind
    bump = Difference("image", IMAGE, NEXT_IMAGE, Differs.IMAGE)
    assert attribution([bump], controls).kind is Differs.IMAGE


def test_other_words_for_one_layout_are_no_difference() -> None:
    tp8, tp4 = Layout(Role(8)), Layout(Role(4))
    changes = [
        LayoutChange(LayoutKind.SAME, "same", tp8, tp8),
        LayoutChange(LayoutKind.RENAMED, "other_words", tp8, tp4),
        LayoutChange(LayoutKind.ABSENT, "not_measured", tp8, None),
        LayoutChange(LayoutKind.RETIRED, "no_partner", tp8, None),
        LayoutChange(LayoutKind.NEW, "no_partner", None, tp4),
    ]
    assert [(one.before, one.after) for one in layouts(changes)] == [("tp8", None), (None, "tp4")]


def test_caveats_about_one_side_are_no_differences() -> None:
    said = [
        Caveat.of("setting_changed", field="client_image", baseline="a/c:v1", candidate="a/c:v2"),
        Caveat.of("setting_changed", field="router", baseline="gate 1", candidate="gate 2"),
        Caveat.of("harness_event", event="client_tokenizer", date="2026-05-15", pull=1381),
        Caveat.of("single_run"),
        Caveat.of("image_not_of_config", config="a/b:v1", row="a/b:v2"),
    ]
    assert [(one.what, one.kind.value) for one in told_by(said)] == [
        ("client_image", "harness"),
        ("router", "recipe"),
        ("harness_event", "harness"),
    ]
    assert [one.between for one in events(["client_tokenizer"])] == ["client_tokenizer"]


# ---------------------------------------------------------------- through the public path


def of_curve(answer: Json, config: str = "dsr1-fp8-h200-sglang", metric: str = "tput_per_gpu") -> Json:
    (found,) = (
        one["attribution"]
        for one in answer["findings"]
        if (one["scope"], one["config"], one["metric"]) == ("curve", config, metric)
    )
    return found  # type: ignore[no-any-return]


def sweep(tracker: Tracker, number: int, start: str, *curves: dict[str, Any]) -> None:
    rows = [row(conc, told["speed"] * conc**0.8, **{**told, "speed": None}) for told in curves for conc in (4, 16, 64)]
    for one in rows:
        del one["speed"]
    said = tracker.ingest(write(tracker.folder / f"{number}.json", bundle(run(number, start), rows)))
    assert said.code == 0, said.err


def test_controls_of_the_same_run_are_counted_and_the_others_are_not_asked(tracker: Tracker) -> None:
    beside = [{"speed": 90.0, "framework": name} for name in ("vllm", "trt", "atom")]
    elsewhere = {"speed": 90.0, "hw": "b200"}
    sweep(tracker, 1, THEN, {"speed": 90.0}, *beside, elsewhere)
    sweep(tracker, 2, NOW, {"speed": 75.0, "image": NEXT_IMAGE}, *beside[:2], {**beside[2], "speed": 75.0}, elsewhere)
    found = of_curve(tracker.compare("run:2"))
    assert (found["class"], found["classes"]) == ("image", ["image"])
    assert found["differences"] == [
        {"what": "image", "class": "image", "baseline": IMAGE, "candidate": NEXT_IMAGE, "between": None}
    ]
    assert (found["controls"]["total"], found["controls"]["moved"]) == (3, 1)
    assert found["controls"]["change"] == pytest.approx(-1 / 6, abs=0.01)


def test_without_neighbours_in_the_run_those_of_other_runs_within_a_day_are_asked(tracker: Tracker) -> None:
    near, far = {"speed": 90.0, "framework": "vllm"}, {"speed": 90.0, "framework": "trt"}
    bumped = {"speed": 90.0, "framework": "atom"}
    sweep(tracker, 1, THEN, {"speed": 90.0}, near, far, bumped)
    sweep(tracker, 2, "2026-06-08T12:00:00Z", {**near, "speed": 70.0}, {**bumped, "speed": 70.0, "image": NEXT_IMAGE})
    sweep(tracker, 3, "2026-06-05T12:00:00Z", {**far, "speed": 70.0})
    sweep(tracker, 4, NOW, {"speed": 72.0})
    answer = tracker.compare("run:4")
    found = of_curve(answer)
    assert (found["class"], found["controls"]["total"], found["controls"]["moved"]) == ("pool", 1, 1)
    page = tracker("compare", "run:4", "--format", "markdown", "--lang", "both").out
    assert "pool of machines" in page
    assert "机器池" in page


@pytest.mark.parametrize(
    ("then", "now", "kinds"),
    [
        ("2026-05-10T03:00:00Z", "2026-05-20T03:00:00Z", ["harness"]),
        ("2026-06-30T03:00:00Z", "2026-07-04T03:00:00Z", ["unknown"]),
        ("2026-08-10T03:00:00Z", "2026-08-20T03:00:00Z", ["unknown"]),
    ],
)
def test_only_events_that_concern_the_metric_and_the_series_count(
    tracker: Tracker, then: str, now: str, kinds: list[str]
) -> None:
    sweep(tracker, 1, then, {"speed": 90.0})
    sweep(tracker, 2, now, {"speed": 70.0})
    assert of_curve(tracker.compare("run:2"))["classes"] == kinds


def test_an_eval_says_what_differs_and_a_calm_curve_says_nothing(tracker: Tracker) -> None:
    for number, start, score, image in ((1, THEN, 0.955, IMAGE), (2, NOW, 0.905, NEXT_IMAGE)):
        told = bundle(run(number, start), [row(64, 1000.0 + number, image=image)])
        told["rows"].append(evaluation(score, 64))
        assert tracker.ingest(write(tracker.folder / f"{number}.json", told)).code == 0
    answer = tracker.compare("run:2")
    evals = [
        one["attribution"] for one in answer["findings"] if one["scope"] == "eval" and one["metric"] == "em_flexible"
    ]
    assert [(one["class"], one["differences"][0]["candidate"]) for one in evals] == [("image", NEXT_IMAGE)]
    assert of_curve(answer) is None


def test_kept_findings_have_their_attribution(tracker: Tracker) -> None:
    sweep(tracker, 1, THEN, {"speed": 90.0})
    sweep(tracker, 2, NOW, {"speed": 70.0, "image": NEXT_IMAGE})
    where = jobs.Where.of(tracker.folder / "tracker.duckdb", None)
    answer = jobs.compare(jobs.Question("run:2"), where)
    name = jobs.keep_findings(answer, where)
    with Store.open(where.store, where.archive, read_only=True) as store:
        kept = store.findings(name)
    assert kept == answer.findings
    assert {one.attribution.kind for one in kept if one.attribution is not None} == {Differs.IMAGE}


def test_a_history_tells_the_same_classes() -> None:
    before, after = (
        nights(6, recipe="5f2a9c1e"),
        nights(4, "engine/serve:v1.1.0", start=6, speed=0.9, recipe="77d0be42"),
    )
    (shift,) = told(before, after).shifts
    assert isinstance(shift, Shift)
    assert shift.attribution.kinds == (Differs.IMAGE, Differs.RECIPE)
    (same,) = told(nights(6, recipe=PRINT), nights(4, "engine/serve:v1.1.0", start=6, speed=0.9, recipe=OTHER)).shifts
    assert same.attribution.kinds == (Differs.IMAGE,)


# ---------------------------------------------------------------- words


CAUSAL = re.compile(
    r"because|caus|due to|thanks to|reason|blame|explain|由于|因为|导致|造成|归因|引起|原因", re.IGNORECASE
)


def test_no_word_says_why_and_both_languages_have_the_same_numbers() -> None:
    rng = random.Random(7)
    for _ in range(200):
        one = an_attribution(rng)
        values = (contrasts.classes(one), contrasts.differences(one), contrasts.controls(one, numbers.Kind.PERCENT))
        english, chinese = (" ".join(Language(code).say(value) for value in values) for code in ("en", "zh"))
        assert not CAUSAL.search(english + chinese)
        assert sorted(re.findall(r"\d[\d.]*", english)) == sorted(re.findall(r"\d[\d.]*", chinese))


def test_words_of_the_classes() -> None:
    def said(one: Attribution) -> str:
        return Language("en").say(contrasts.classes(one))

    assert said(attribution(())) == "same image, other numbers"
    assert said(attribution((), Controls(2, 2, -0.1))) == "pool of machines"
    assert said(attribution(software(side(None), side()))) == "not recorded"
    assert said(attribution(software(side(recipe="a"), side(NEXT_IMAGE, "b")))) == "image + recipe"
    assert Language("en").say(contrasts.differences(attribution(()))) == numbers.NOTHING


# ---------------------------------------------------------------- labelled changes


def test_changes_of_our_own_making_get_the_class_of_what_was_changed() -> None:
    found = bench.own()
    assert len(found) >= 50
    assert {one.kind for one in found} == set(bench.CLASSES)
    assert [(one.name, one.label, one.said.kind.value) for one in found if not one.agrees] == []
    assert sum(one.is_whole for one in found) >= 0.9 * len(found)


def test_a_wrong_class_shows_in_the_table() -> None:
    found = [bench.Labelled("a", "image+recipe", attribution(())), bench.Labelled("b", "unknown", attribution(()))]
    said = bench.table(found).splitlines()
    assert said[1].split() == ["image", ".", ".", ".", ".", ".", "1"]
    assert said[-1] == "class agrees: 1 of 2 (50.0%); every class: 1"


@pytest.mark.shared
def test_published_changes_of_one_pool_get_the_class_that_the_history_of_the_configs_tells(shared: Path) -> None:
    found = bench.published(shared / "data", hardware="mi355x", until="2026-01-20")
    assert len(found) >= 10
    assert sum(one.agrees for one in found) >= 0.8 * len(found)
    assert {one.said.kind for one in found if one.label == "pool"} == {Differs.POOL}


def test_a_history_s_departure_has_the_other_configs_of_its_machines_as_controls() -> None:
    def of(name: str, speed: float) -> list[Any]:
        options: dict[str, Any] = {"curve": name, "config": name}
        return [nights(6, **options), nights(2, start=6, speed=speed, **options), nights(6, start=8, **options)]

    found = with_controls(list(chronicles(past(*of("a", 0.7), *of("b", 0.75), *of("c", 1.0)))))
    said = {one.curve: [away.attribution for away in one.departures] for one in found}
    assert [(one.kind, one.controls.total, one.controls.moved) for one in said["a"]] == [(Differs.UNKNOWN, 2, 1)]
    found = with_controls(list(chronicles(past(*of("a", 0.7), *of("b", 0.75)))))
    assert [one.kind for told_ in found for one in (away.attribution for away in told_.departures)] == [
        Differs.POOL
    ] * 2
