"""The published JSON form obeys its schema, whatever a comparison holds; the CSV form is safe to open."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from typing import NoReturn

import pytest
from jsonschema import Draft202012Validator

from reports import csvform, facts, jsonform
from store.records import Caveat, Comparison, Evidence, Finding, Verdict
from tests.sayings import AFTER, BEFORE, a_finding, a_random_comparison, a_screen, a_series, an_eval

EVIDENCE = Evidence(("k c64",), ((1.0, math.nan),), ((2.0,),), (0.005,), "prior", 0.05, 0.02, 0.02, 0.004)


def one(finding: Finding) -> Comparison:
    return Comparison(AFTER, BEFORE, "previous", (finding,), (), (), "1")


def strict(text: str) -> jsonform.Json:
    def refuse(word: str) -> NoReturn:
        raise AssertionError(f"{word} is no JSON")

    loaded: jsonform.Json = json.loads(text, parse_constant=refuse)
    return loaded


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    Draft202012Validator.check_schema(jsonform.schema())
    return Draft202012Validator(jsonform.schema())


def test_every_comparison_obeys_the_schema(validator: Draft202012Validator) -> None:
    for seed in range(300):
        validator.validate(strict(jsonform.dumps(a_random_comparison(seed))))
    validator.validate(strict(jsonform.dumps(a_screen())))


@pytest.mark.parametrize(
    "path", [("schema_version",), ("findings", 0, "verdict"), ("headline", "points"), ("unmatched", 0, "reason")]
)
def test_the_schema_refuses_what_is_not_the_form(validator: Draft202012Validator, path: tuple[str | int, ...]) -> None:
    form = strict(jsonform.dumps(a_screen()))
    at: object = form
    for step in path[:-1]:
        at = at[step]  # type: ignore[index]
    at[path[-1]] = "else"  # type: ignore[index]
    assert not validator.is_valid(form)


@pytest.mark.parametrize("level", ["", "findings", "unmatched", "rejected", "candidate"])
def test_the_schema_knows_every_key(validator: Draft202012Validator, level: str) -> None:
    form = strict(jsonform.dumps(a_screen()))
    target = form[level][0] if level else form
    target["extra"] = 1
    assert not validator.is_valid(form)


def test_changes_are_relative_and_scores_are_differences() -> None:
    curve, score = (
        a_finding(a_series(None), "tput_per_gpu", Verdict.REGRESSION, -20.0),
        an_eval(64, 0.95, 0.93, Verdict.REGRESSION),
    )
    (first, second) = jsonform.form(replace(one(curve), findings=(curve, score)))["findings"]
    assert first["change"] == pytest.approx(-0.2)
    assert first["interval"][0] < -0.2 < first["interval"][1]
    assert second["change"] == pytest.approx(-0.02)
    assert (first["isl"], first["osl"], first["layout"], first["conc"]) == (8192, 1024, "tp8", None)


def test_what_is_not_finite_is_null(validator: Draft202012Validator) -> None:
    odd = a_finding(
        a_series(None),
        "tput_per_gpu",
        Verdict.INCONCLUSIVE,
        0.0,
        effect=math.nan,
        low=-math.inf,
        high=1e9,
        p=math.nan,
        caveats=(Caveat.of("non_finite", value=math.inf),),
        evidence=EVIDENCE,
    )
    form = strict(jsonform.dumps(one(odd)))
    validator.validate(form)
    (finding,) = form["findings"]
    assert (finding["change"], finding["p"], finding["interval"]) == (None, None, [-1.0, None])
    assert finding["evidence"]["baseline"] == [[1.0, None]]
    assert finding["caveats"] == [{"code": "non_finite", "value": None}]


def test_the_headline_agrees_with_every_other_document() -> None:
    form, chosen = jsonform.form(a_screen()), facts.select(a_screen())
    assert form["headline"]["verdict"] == chosen.verdict.value
    assert form["headline"]["points"]["total"] == chosen.total_points == 10
    assert sum(form["headline"]["points"].values()) == 2 * chosen.total_points


def test_the_same_comparison_gives_the_same_bytes() -> None:
    assert jsonform.dumps(a_screen()) == jsonform.dumps(a_screen())


def test_csv_has_one_row_per_finding_and_every_column() -> None:
    rows = list(csv.DictReader(io.StringIO(csvform.dumps(a_screen()))))
    assert len(rows) == len(a_screen().findings)
    assert set(rows[0]) == set(csvform.COLUMNS)
    assert (rows[0]["metric"], rows[0]["verdict"], rows[0]["n_baseline"]) == ("tput_per_gpu", "regression", "3")
    assert float(rows[0]["change"]) == pytest.approx(-0.082)


@pytest.mark.parametrize("name", ["=cmd|'/c calc'!A1", "+1+1", "-2+3", "@SUM(A1)", "\t=1", " =1"])
def test_no_cell_is_a_formula(name: str) -> None:
    finding = a_finding(
        a_series(64), "tput_per_gpu", Verdict.REGRESSION, -20.0, config=name, key=name, candidate_image=name
    )
    (row,) = csv.DictReader(io.StringIO(csvform.dumps(one(finding))))
    for column in ("config", "key", "image_candidate"):
        assert row[column].startswith("'")
    assert float(row["change"]) < 0
