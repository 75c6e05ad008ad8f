"""Kinds and dates of runs, labels, images and settings: what differs between the sides is said, and only that."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports import facts, render
from store.duck import Store
from store.identity import config_key
from store.images import parse
from store.readers.columns import columns
from store.readers.deployment import deployment
from store.records import Batch, Caveat, ChangelogEntry, Comparison, Expected, Run, RunKey
from store.runs import Kind, kind
from tests.cli import Tracker
from tests.factory import IMAGE, NEXT_IMAGE, Json, agentic, bundle, row, run, write
from tests.sayings import AFTER, BEFORE, a_finding, a_series
from tracker.provenance import client_image, image_of_config, installed_version, label_doubts, router_differs

MOMENT = datetime(2026, 9, 2, 6, 0, 1, tzinfo=UTC)
NOW, THEN = "2026-09-09T06:00:01Z", "2026-09-02T06:00:01Z"


def a_run(number: int = 7, **changes: Any) -> Run:
    return replace(Run(number, 1, MOMENT, event="push"), **changes)


def codes(one: Json) -> set[str]:
    return {doubt["code"] for doubt in one["caveats"]}


class Land:
    """A store into which runs land with what no artifact holds: labels, promises, changelog."""

    def __init__(self, tracker: Tracker) -> None:
        self.tracker = tracker
        self.store = tracker.folder / "tracker.duckdb"
        self.archive = tracker.folder / "tracker.archive"

    def __call__(self, number: int, start: str, rows: list[Json], **told: Any) -> None:
        name = self.tracker.folder / f"{number}.json"
        self.tracker.ingest(write(name, bundle(run(number, start), rows)), "--official")
        more = {key: told.pop(key) for key in ("expected", "changelog") if key in told}
        started = datetime.fromisoformat(start)
        with Store.open(self.store, self.archive, official=lambda _: True) as store:
            store.land(Batch(replace(a_run(number, started_at=started), **told), **more))

    def compare(self, candidate: str, form: str = "json") -> Any:
        said = self.tracker("compare", candidate, "--format", form)
        assert said.code == 0, said.err
        return said.json if form == "json" else said.out


@pytest.fixture
def land(tracker: Tracker) -> Land:
    return Land(tracker)


# --- kinds and dates ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "measured", "found"),
    [
        ({"event": "schedule"}, True, Kind.NIGHTLY),
        ({"event": "push"}, True, Kind.PUSH),
        ({"event": "push"}, False, Kind.PUBLISHER),
        ({"event": "pull_request"}, True, Kind.PULL_REQUEST),
        ({"event": "pull_request"}, False, Kind.PULL_REQUEST),
        ({"event": "workflow_dispatch"}, True, Kind.MANUAL),
        ({"event": "pull_request", "reused_by": RunKey(9)}, True, Kind.REUSED),
        ({"event": "push", "reused_by": RunKey(7)}, True, Kind.PUSH),
        ({"event": None, "published": True}, True, Kind.PUBLISHED),
        ({"event": "push", "published": True}, True, Kind.PUSH),
        ({"event": "local", "id": -3}, True, Kind.LOCAL),
        ({"event": "merge_group"}, True, Kind.OTHER),
        ({"event": None}, True, Kind.OTHER),
    ],
)
def test_a_run_has_one_kind(changes: dict[str, Any], measured: bool, found: Kind) -> None:
    assert kind(a_run(**changes), measured=measured) is found


def test_three_dates_are_kept_apart_and_the_publisher_is_named(land: Land) -> None:
    land(1, THEN, [row(64, 1000.0)])
    source = [row(64, 1001.0, image=NEXT_IMAGE, run_id=2, run_attempt=1, created_at="2026-09-04T01:00:00Z")]
    land(2, "2026-09-03T06:00:01Z", source, event="pull_request", reused_by=RunKey(3),
         published_at=datetime(2026, 9, 9, tzinfo=UTC))  # fmt: skip
    answer = land.compare("run:2")
    (candidate,) = answer["candidate"]
    assert (candidate["kind"], candidate["reused_by"]) == ("reused", "3/1")
    assert candidate["measured"] == {"earliest": "2026-09-04T01:00:00+00:00", "latest": "2026-09-04T01:00:00+00:00"}
    assert candidate["started_at"].startswith("2026-09-03")
    assert candidate["published_at"].startswith("2026-09-09")
    assert answer["baseline"][0]["kind"] == "push"
    text = land.compare("run:2", "markdown")
    assert "| reused by a run on main | 2026-09-04 | 2026-09-03 | 2026-09-09 |" in text
    assert "run 3/1 published its rows on 2026-09-09 without measuring again" in text
    said = land.compare("run:2", "evidence")
    assert "measured 2026-09-04, run 2026-09-03, published 2026-09-09" in said
    assert "Compared with (previous): run 1/1 (push to main; measured 2026-09-02" in said


def test_a_run_that_measured_nothing_says_so(tracker: Tracker) -> None:
    tracker.ingest(write(tracker.folder / "a.json", [bundle(run(1, THEN), [row(64)]), bundle(run(2, NOW), [])]))
    answer = tracker.compare("run:2")
    assert (answer["candidate"][0]["kind"], codes(answer)) == ("publisher", {"measured_nothing"})


# --- labels -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        ((), []),
        (("sweep-enabled",), ["trimmed_sweep"]),
        (("sweep-enabled", "full-sweep-enabled"), []),
        (("full-sweep-fail-fast", "skip_queue"), []),
        (("engine-patch", "evals-only"), ["engine_patch", "evals_only"]),
        (("all-evals",), ["evals_only"]),
        (("agentx-fast",), ["agentx_fast"]),
    ],
)
def test_a_label_says_what_it_did_to_the_sweep(labels: tuple[str, ...], found: list[str]) -> None:
    assert [doubt.code for doubt in label_doubts([a_run(labels=labels)])] == found


def test_a_trimmed_sweep_is_said_to_be_one_in_every_verdict_on_a_curve(land: Land) -> None:
    land(1, THEN, [row(4, 100.0), row(64, 1000.0)])
    land(2, NOW, [row(4, 101.0, image=NEXT_IMAGE)], labels=("sweep-enabled",))
    answer = land.compare("run:2")
    assert "trimmed_sweep" in codes(answer)
    by_scope = {scope: [codes(f) for f in answer["findings"] if f["scope"] == scope] for scope in ("curve", "point")}
    assert all("part_of_curve" in found for found in by_scope["curve"])
    assert not any("part_of_curve" in found for found in by_scope["point"])
    assert by_scope["curve"]
    assert by_scope["point"]
    assert "not a whole curve" in land.compare("run:2", "markdown")


def test_a_shortened_agentx_run_is_compared_with_nothing(land: Land) -> None:
    land(1, THEN, [agentic(16, 400.0), row(64, 1000.0)])
    land(2, NOW, [agentic(16, 900.0), row(64, 1001.0)], labels=("agentx-fast",))
    answer = land.compare("run:2")
    (apart,) = (one for one in answer["unmatched"] if one["verdict"] == "not_comparable")
    assert (apart["scenario"], apart["reason"]["code"]) == ("agentic_traces", "agentx_fast")
    assert {one["scenario"] for one in answer["findings"] if one["change"] is not None} <= {"single_turn", None}
    assert answer["headline"]["points"]["not_comparable"] == 1


def test_a_shortened_agentx_run_is_no_baseline(land: Land) -> None:
    land(1, THEN, [agentic(16, 400.0)])
    land(2, "2026-09-05T06:00:01Z", [agentic(16, 900.0)], labels=("agentx-fast",))
    land(3, NOW, [agentic(16, 402.0, image="vllm/vllm-openai:v0.21.0")])
    answer = land.compare("run:3")
    point = next(f for f in answer["findings"] if (f["scope"], f["metric"]) == ("point", "tput_per_gpu"))
    assert point["runs"]["baseline"] == ["1/1"]


def test_a_patched_engine_is_flagged_on_either_side(land: Land) -> None:
    land(1, THEN, [row(64, 1000.0)], labels=("engine-patch",))
    land(2, NOW, [row(64, 1001.0, image=NEXT_IMAGE)])
    (flag,) = (one for one in land.compare("run:2")["caveats"] if one["code"] == "engine_patch")
    assert flag["run"] == "1/1"


# --- images -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tag", "moving"),
    [
        ("latest", True),
        ("nightly", True),
        ("dev", True),
        ("main", True),
        ("rocm720-mi35x-latest", True),
        ("v0.5.9-dev", True),
        ("main-v0.5.9", True),
        ("kimi-k3", True),
        ("nightly-5e35a6f4f9bbc217c599692157ca985c894373f7", False),
        ("v0.5.9-cu130", False),
        ("dev-nightly-0820", False),
        ("1.3.0.dev20260614", False),
        ("latest@sha256:" + "9" * 64, False),
    ],
)
def test_a_tag_moves_unless_something_pins_it(tag: str, moving: bool) -> None:
    assert parse(f"a/b:{tag}").moving is moving


@pytest.mark.parametrize(
    ("row_image", "promised", "differs"),
    [
        ("a/b:v1.1", ["a/b:v1.0"], True),
        ("a/b:v1.1", ["a/b:v1.0", "a/b:v1.1"], False),
        ("a/b:v1.0@sha256:" + "1" * 64, ["a/b:v1.0"], False),
        ("a/b:latest", ["a/b:latest"], False),
        (None, ["a/b:v1.0"], False),
        ("a/b:v1.0", [], False),
        ("x#a/b:v1.0", ["x/a/b:v1.0"], False),
    ],
)
def test_an_image_that_no_config_promised_is_named(row_image: str | None, promised: list[str], differs: bool) -> None:
    assert (image_of_config(row_image, promised) is not None) is differs


def test_the_image_of_the_config_stands_beside_the_image_of_the_row(land: Land) -> None:
    land(1, THEN, [row(64, 1000.0), row(128, 1400.0)])
    one = row(64, 1001.0, image=NEXT_IMAGE)
    series = deployment(one, columns(tuple(one))).at(64)
    promised = (
        Expected("key", series, "lmsysorg/sglang:v0.5.11-cu130"),
        Expected("key", replace(series, conc=128), NEXT_IMAGE),
    )
    land(2, NOW, [one, row(128, 1401.0, image=NEXT_IMAGE)], expected=promised)
    answer = land.compare("run:2")
    points = {f["conc"]: f for f in answer["findings"] if (f["scope"], f["metric"]) == ("point", "tput_per_gpu")}
    (said,) = (doubt for doubt in points[64]["caveats"] if doubt["code"] == "image_not_of_config")
    assert (said["config"], said["row"]) == ("lmsysorg/sglang:v0.5.11-cu130", NEXT_IMAGE)
    assert "image_not_of_config" not in codes(points[128])


def test_a_client_from_another_image_than_the_server_is_named(land: Land) -> None:
    land(1, THEN, [row(64, 1000.0)])
    land(2, NOW, [row(64, 1001.0, image=NEXT_IMAGE, client_image="vllm#client:v1.2")])
    point = next(f for f in land.compare("run:2")["findings"] if f["scope"] == "point")
    (said,) = (doubt for doubt in point["caveats"] if doubt["code"] == "client_image")
    assert (said["client"], said["server"]) == ("vllm/client:v1.2", NEXT_IMAGE)
    assert client_image(NEXT_IMAGE, NEXT_IMAGE) is None


def test_a_rollback_names_the_run_that_had_the_image(land: Land) -> None:
    land(1, THEN, [row(64, 1000.0)])
    land(2, "2026-09-05T06:00:01Z", [row(64, 990.0, image=NEXT_IMAGE)])
    assert "image_rollback" not in codes(land.compare("run:2")["findings"][0])
    land(3, NOW, [row(64, 1001.0)])
    (said,) = (doubt for doubt in land.compare("run:3")["findings"][0]["caveats"] if doubt["code"] == "image_rollback")
    assert (said["image"], said["run"]) == (IMAGE, "1/1")


def test_a_recipe_that_one_side_does_not_name_is_not_said_to_have_changed(land: Land) -> None:
    land(1, THEN, [row(64, 1000.0)])
    land(2, NOW, [row(64, 900.0, recipe_fingerprint="ab" * 32)])
    found = codes(land.compare("run:2")["findings"][0])
    assert "recipe_unknown" in found
    assert "recipe_changed" not in found


@pytest.mark.shared
def test_a_nightly_image_that_may_be_gone_is_said_and_nothing_is_asked(tracker: Tracker, shared: Path) -> None:
    case = shared / "cases" / "28-nightly-image-deleted"
    tracker.ingest(case / "baseline.json", "--official")
    answer = tracker.compare(case / "candidate.json")
    point = next(f for f in answer["findings"] if (f["scope"], f["metric"]) == ("point", "tput_per_gpu"))
    assert point["change"] == pytest.approx(0.01)
    text = tracker("compare", case / "candidate.json", "--format", "markdown").out
    assert "49 days old and may no longer be pullable; run both sides with images that exist" in text


# --- routers and settings -----------------------------------------------------------------------------------------

VERSIONS = st.from_regex(r"[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,2}(\.dev20[0-9]{6}|rc[0-9])?", fullmatch=True)


@given(VERSIONS, VERSIONS)
def test_a_router_differs_exactly_where_its_versions_do(named: str, installed: str) -> None:
    assert (router_differs(named, installed) is not None) == (named != installed)
    assert router_differs(f"v{named}", named) is None
    assert router_differs(None, installed) is None
    assert router_differs(named, None) is None


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("dynamo", "Bump image to vllm/vllm-openai:nightly-4080263 and dynamo to 1.3.0.dev2026", "1.3.0.dev2026"),
        ("dynamo-router", "Upgrade Dynamo 1.2.0 for GB300", "1.2.0"),
        ("dynamo", "将镜像升级至 a/b:v2，并将 Dynamo 升级至 1.3.0.dev20260710", "1.3.0.dev20260710"),
        ("sglang-router", "Update sglang-router from 0.2.1 to v0.2.3", "v0.2.3"),
        ("sglang-router", "Update SGLang image from v0.5.9 to v0.5.12", None),
        ("dynamo", "Update image to nvcr.io/nvidia/ai-dynamo/sglang-runtime:0.8.1", None),
        ("dynamo", "Add dynamo-vllm recipes at TP8", None),
    ],
)  # fmt: skip
def test_the_installed_version_is_read_from_what_the_changelog_says(name: str, text: str, found: str | None) -> None:
    assert installed_version(name, [text]) == found


def test_a_router_that_the_metadata_names_otherwise_than_the_changelog_is_said(land: Land) -> None:
    old, new = ({"name": "dynamo", "version": version} for version in ("1.2.0", "1.3.0.dev20260614"))
    land(1, THEN, [row(64, 1000.0, router=old, kv_p2p_transfer="nixl")])
    one = row(64, 1001.0, image=NEXT_IMAGE, router=new, kv_p2p_transfer="mooncake")
    config = config_key(a_series())
    own = ChangelogEntry((f"{config}-mtp",), ("Bump image and dynamo to 1.3.0.dev20260710",), "")
    other = ChangelogEntry(("dsv4-fp4-gb300-dynamo-vllm",), ("dynamo to 9.9.9",), "")
    land(2, NOW, [one], changelog=(own, other))
    point = next(f for f in land.compare("run:2")["findings"] if f["scope"] == "point")
    said = {(doubt["code"], doubt.get("field")): doubt for doubt in point["caveats"]}
    router = said["router_differs", None]
    assert (router["named"], router["installed"]) == ("1.3.0.dev20260614", "1.3.0.dev20260710")
    changed = said["setting_changed", "router"]
    assert (changed["baseline"], changed["candidate"]) == ("dynamo 1.2.0", "dynamo 1.3.0.dev20260614")
    assert ("setting_changed", "kv_p2p_transfer") in said
    evidence = land.compare("run:2", "evidence")
    assert "router version 1.3.0.dev20260614, the changelog installs 1.3.0.dev20260710" in evidence


@pytest.mark.parametrize("router", [[], 7, {}, {"name": 3}, {"version": None}, "", "none"])
def test_a_router_of_another_shape_says_nothing_and_loses_no_row(tracker: Tracker, router: object) -> None:
    tracker.ingest(write(tracker.folder / "a.json", bundle(run(1), [row(64, 1000.0, router=router)])))
    answer = tracker.compare()
    assert answer["headline"]["points"]["total"] == 1
    assert answer["rejected"] == []


# --- the list of differences --------------------------------------------------------------------------------------


def test_topologies_of_one_side_alone_are_named(land: Land) -> None:
    land(1, THEN, [row(64, 1000.0), row(64, 700.0, tp=4)])
    land(2, NOW, [row(64, 1001.0), row(64, 1100.0, tp=2)])
    text = land.compare("run:2", "markdown")
    assert "topology tp4 on the baseline's side only, tp2 on the candidate's only" in text


def test_sides_that_differ_in_nothing_have_no_such_section(land: Land) -> None:
    land(1, THEN, [row(64, 1000.0)])
    land(2, NOW, [row(64, 1001.0)])
    assert "What differs between the sides" not in land.compare("run:2", "markdown")


def test_every_difference_is_counted_once_in_its_order() -> None:
    shared_doubt, own = Caveat.of("recipe_changed"), Caveat.of("engine_patch", run="1/1", label="engine-patch")
    found = tuple(
        a_finding(
            a_series(conc), metric, facts.Verdict.EQUIVALENT, 0.1, caveats=(shared_doubt, Caveat.of("single_run"))
        )
        for conc, metric in itertools.product((4, 16), ("tput_per_gpu", "median_tpot"))
    )
    given = Comparison(AFTER, BEFORE, "previous", found, (), (), "2", caveats=(own,))
    listed = facts.select(given).differs.rows
    assert [(one.caveat.code, one.number, one.total) for one in listed] == [
        ("engine_patch", 0, 2),
        ("recipe_changed", 2, 2),
    ]
    assert "c4, dsr1-fp8-h200-sglang 8192/1024 tp8 c16: The recipe changed" in render.render(
        facts.select(given), "evidence", "en"
    )
