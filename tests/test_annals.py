"""The commands of history, by the command line alone: a store of a few sweeps, every form, both languages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from reports.language import Language
from reports.phrases import single_run
from tests.cli import Tracker
from tests.factory import lean_row as row

OLD, NEW = "lmsysorg/sglang:v0.5.9", "lmsysorg/sglang:v0.5.10"
NUMBERS = re.compile(r"[-+]?\d+(?:\.\d+)?%?|[a-z]+/[a-z]+:[\w.]+")


def bundle(number: int, day: int, speed: float, image: str, hardware: str = "h200") -> dict[str, object]:
    jitter = 1 + 0.002 * ((number * 7) % 5 - 2)
    return {
        "run": {"id": number, "run_attempt": 1, "run_started_at": f"2026-03-{day:02}T10:00:00Z", "event": "schedule"},
        "rows": [row(conc, speed * jitter, hardware, image) for conc in (4, 16, 64)],
    }


@pytest.fixture
def filled(tracker: Tracker) -> Tracker:
    runs = [bundle(700 + day, day, 1.0 if day < 8 else 0.9, OLD if day < 8 else NEW) for day in range(1, 13)]
    runs += [bundle(800 + day, day, 0.6 if day in (4, 5) else 1.0, OLD, "mi355x") for day in range(1, 13)]
    return tracker.filled(runs, "--official")


COMMANDS = (
    ("history",),
    ("history", "hardware=h200", "--anchor", "2026-03-05"),
    ("show", "dsr1-fp8-h200-sglang"),
    ("images",),
    ("images", "--upstream", "v0.5.10"),
    ("reproducibility",),
    ("reproducibility", "--by", "config", "--metric", "median_tpot"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("form", ["table", "markdown"])
def test_both_languages_carry_the_same_numbers_and_names(filled: Tracker, command: tuple[str, ...], form: str) -> None:
    english, chinese, both = (filled(*command, "--format", form, "--lang", lang) for lang in ("en", "zh", "both"))
    assert (english.code, chinese.code) == (0, 0), english.err
    assert sorted(NUMBERS.findall(english.out)) == sorted(NUMBERS.findall(chinese.out))
    assert re.search(r"[\u4e00-\u9fff]", chinese.out)
    assert not re.search(r"[\u4e00-\u9fff]", english.out)
    assert english.out in both.out
    assert chinese.out in both.out


def test_history_tells_the_image_and_the_environment(filled: Tracker) -> None:
    said = filled("history", "--format", "json").json["curves"]
    image, environment = said
    (shift,) = image["shifts"]
    assert (shift["attribution"]["kind"], shift["before"]["run"], shift["after"]["run"]) == ("image", "707/1", "708/1")
    assert image["last_good"]["run"] == "707/1"
    (away,) = environment["departures"]
    assert (away["attribution"]["differences"], away["first"]["run"], away["last"]["run"]) == ([], "804/1", "805/1")
    assert (away["attribution"]["kind"], away["attribution"]["controls"]["total"]) == ("unknown", 0)
    (episode,) = filled("history", "--format", "json").json["environment"]
    assert (episode["gpu"], episode["first"][:10], episode["last"][:10]) == ("mi355x", "2026-03-04", "2026-03-05")
    assert episode["members"][0][0]["config"] == "dsr1-fp8-mi355x-sglang"
    table = filled("history").out
    assert "2026-03-04" in table
    assert "same image, other numbers" in table


def test_since_and_until_cut_the_history(filled: Tracker) -> None:
    said = filled("history", "hardware=h200", "--since", "2026-03-03", "--until", "2026-03-10", "--format", "json").json
    assert [mark["run"] for mark in said["curves"][0]["marks"]] == [f"{700 + day}/1" for day in range(3, 11)]


def test_an_image_has_a_text_for_its_upstream(filled: Tracker) -> None:
    said = filled("images", "--upstream", "v0.5.10", "--format", "markdown").out
    assert said.startswith(f"# Performance change from {OLD} to {NEW} on h200")
    assert "-10.0%" in said or "-9." in said


def test_days_of_the_environment_are_counted(filled: Tracker) -> None:
    groups = {one["group"]: one for one in filled("reproducibility", "--format", "json").json["groups"]}
    assert (groups["mi355x"]["bad_days"], groups["mi355x"]["days"]) == (2, 12)
    assert groups["h200"]["bad_days"] == 0


def test_images_may_come_from_a_history_of_the_configs(filled: Tracker) -> None:
    rows = [bundle(900 + day, day, 1.0, OLD, "h100") for day in range(1, 9)]
    for one in rows:
        for point in one["rows"]:  # type: ignore[attr-defined]
            del point["image"]
    file, history = filled.folder / "unnamed.json", filled.folder / "configs.csv"
    file.write_text(json.dumps(rows), encoding="utf-8")
    lines = [
        "committed_at,commit,config_key,change,image",
        "2026-02-01T00:00:00Z,aaa,dsr1-fp8-h100-sglang,added,a/b:v1",
        "2026-03-05T00:00:00Z,bbb,dsr1-fp8-h100-sglang,image,a#b:v2",
    ]
    history.write_text("\n".join(lines), encoding="utf-8")
    assert filled.ingest(file, "--official").code == 0
    said = filled("history", "hardware=h100", "--config-history", history, "--format", "json").json
    assert [(era["image"], era["runs"]) for era in said["curves"][0]["eras"]] == [("a/b:v1", 4), ("a/b:v2", 4)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("history", "hardware=b200"), "the store has"),
        (("history", "--since", "2027-01-01"), "widen the filters"),
        (("history", "--metric", "duration_seconds"), "has no noise scale"),
        (("history", "--anchor", "release:v9"), "no image of these runs"),
        (("images", "--upstream", "v9"), "no curve took an image"),
    ],
)
def test_what_cannot_be_answered_says_what_to_do(filled: Tracker, arguments: tuple[str, ...], said: str) -> None:
    answer = filled(*arguments)
    assert answer.code == 1
    assert said in answer.err


def test_a_broken_history_of_configs_is_named_with_its_line(filled: Tracker) -> None:
    file = filled.folder / "configs.csv"
    file.write_text("committed_at,commit,config_key,change,image\nsoon,a,k,image,a/b:v1\n", encoding="utf-8")
    answer = filled("history", "--config-history", file)
    assert (answer.code, f"{file}:2: 'soon' is no moment" in answer.err) == (1, True)
    file.write_text("when,what\n1,2\n", encoding="utf-8")
    assert "lacks committed_at" in filled("history", "--config-history", file).err


def test_without_a_store_it_says_how_to_get_one(tracker: Tracker, tmp_path: Path) -> None:
    answer = tracker("history", "--store", tmp_path / "none.duckdb")
    assert (answer.code, "tracker ingest" in answer.err) == (1, True)


def test_the_sentence_for_other_reports() -> None:
    assert Language("en").say(single_run(0.0305)) == "A single run here can show a change of 3.1%."
    assert "3.1%" in Language("zh").say(single_run(0.0305))
    assert Language("en").say(single_run(float("nan"))) == "What a single run here can show is not known."
