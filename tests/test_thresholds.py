import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import thresholds
from store.thresholds import SHIPPED, CannotReadThresholds, Thresholds

YAML = """
default:
  gsm8k: 0.90
  gpqa_diamond_cot_n_shot: 0.30
models:
  dsr1:
    gsm8k: 0.91
  glm5:
    gsm8k: 0.94
  glm5.1:
    gsm8k: 0.93
  gptoss:
    gsm8k: 0.92
  newmodel:
    gsm8k: 0.80
"""


def read(tmp_path, text, name="thresholds.yaml"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return thresholds.load(path)


@pytest.mark.parametrize(
    ("model", "task", "value", "owner"),
    [
        ("dsr1", "gsm8k", 0.91, "dsr1"),
        ("glm5", "gsm8k", 0.94, "glm5"),
        ("glm5.1", "gsm8k", 0.93, "glm5.1"),
        ("glm5.2", "gsm8k", 0.90, None),
        ("gptoss120b", "gsm8k", 0.92, "gptoss120b"),
        ("gptoss", "gsm8k", 0.92, "gptoss120b"),
        ("?newmodel", "gsm8k", 0.80, "?newmodel"),
        ("?newmodel2", "gsm8k", 0.90, None),
        ("dsr1", "gpqa_diamond_cot_n_shot", 0.30, None),
    ],
)
def test_the_exact_model_comes_before_the_default(tmp_path, model, task, value, owner):
    mark = read(tmp_path, YAML).of(model, task)
    assert (mark.value, mark.model, mark.task) == (value, owner, task)


@pytest.mark.parametrize("task", ["gsm8k_platinum", "gsm", ""])
def test_a_task_without_an_entry_has_no_gate(tmp_path, task):
    assert read(tmp_path, YAML).of("dsr1", task) is None


def test_a_flat_file_is_the_default(tmp_path):
    marks = read(tmp_path, '{"gsm8k": 0.85}', "thresholds.json")
    assert marks.of("dsr1", "gsm8k").value == 0.85


def test_json_and_yaml_say_the_same(tmp_path):
    as_json = '{"default": {"gsm8k": 0.9}, "models": {"dsr1": {"gsm8k": 0.91}}}'
    assert read(tmp_path, as_json, "a.json").models == read(tmp_path, as_json, "a.yaml").models


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("default:\n  gsm8k: 91\n", "default.gsm8k", "91 is not between 0 and 1"),
        ("default:\n  gsm8k: high\n", "default.gsm8k", "'high' is no number"),
        ("default:\n  gsm8k: true\n", "default.gsm8k", "True is no number"),
        ("default:\n  gsm8k: .nan\n", "default.gsm8k", "nan is not between"),
        ("models:\n  dsr1: 0.9\n", "models.dsr1", "a mapping was expected, not 0.9"),
        ("models:\n  5.1: {gsm8k: 0.9}\n", "models", "the name 5.1 is no text"),
        (
            "models:\n  gptoss: {gsm8k: 0.9}\n  gptoss120b: {gsm8k: 0.8}\n",
            "models.gptoss120b",
            "gptoss120b is given twice",
        ),
        ("default:\n  gsm8k: 0.9\n  gsm8k: 0.8\n", ":3", "key gsm8k given twice"),
        ("defaults:\n  gsm8k: 0.9\ndefault: {}\n", "defaults", "unknown section"),
        ("default: [\n", ":2", "no valid YAML"),
        ("- 0.9\n", "thresholds.yaml", "a mapping was expected"),
        ("{}", "thresholds.yaml", "empty"),
    ],
)
def test_a_bad_file_is_refused_with_place_and_remedy(tmp_path, text, place, problem):
    with pytest.raises(CannotReadThresholds) as error:
        read(tmp_path, text)
    assert place in error.value.place
    assert problem in error.value.problem
    assert error.value.remedy in str(error.value)


def test_a_json_file_that_is_cut_off_is_refused(tmp_path):
    with pytest.raises(CannotReadThresholds, match="cannot be decoded"):
        read(tmp_path, '{"default": {"gsm8k"', "cut.json")


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "t.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CannotReadThresholds):
        thresholds.load(tmp_path / "t.yaml")


def test_a_missing_file_is_an_error_and_not_the_default(tmp_path):
    with pytest.raises(CannotReadThresholds, match="check the path"):
        thresholds.load(tmp_path / "none.yaml")


@given(st.dictionaries(st.text(min_size=1), st.floats(0, 1)), st.text())
def test_a_lookup_gives_the_mark_of_the_very_task_or_nothing(default, task):
    mark = Thresholds(default).of("dsr1", task)
    assert (mark.value if mark else None) == default.get(task)


@pytest.mark.shared
def test_the_shipped_marks_are_those_of_the_public_file(shared):
    public = thresholds.load(shared / "data/inferencex/thresholds.yaml")
    assert dataclasses.asdict(dataclasses.replace(public, source="")) == {
        "default": dict(SHIPPED.default),
        "models": dict(SHIPPED.models),
        "source": "",
    }
    assert math.isclose(public.of("gptoss120b", "gsm8k").value, 0.91)
