"""Every row of a sign-off by itself: it holds, it does not, it is flagged, or nobody knows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import pytest

from reports import blocks, checklist
from reports.language import slots
from store import lineup, owners, plan, revisions, signoffs, thresholds, yamltext
from store.checks import Check, Proof, PullEvidence, State
from store.identity import series_key
from store.promises import expected
from store.records import JobRun, Place, Point, Run, RunKey, Score
from store.reuse import command_of
from tests.github.story import REPOSITORY
from tests.proposals import CHECKLIST, ITEMS, MODELS, OWNERS, THRESHOLDS, changelog, entry, signed
from tracker import evidence
from tracker.coverage import promised
from tracker.evidence import CHECKS, configs, entries, people, scripts, sweeps
from tracker.evidence.gather import _pull
from tracker.evidence.inputs import Change, Inputs, Masters, Pull, Rows, Sweep
from tracker.judge.results import eval_key

HEAD, SHA = "f" * 40, "e" * 40
KEY, IMAGE, NEW = "dsr1-fp8-h200-sglang", "lmsysorg/sglang:v0.5.12-cu130", "lmsysorg/sglang:v0.5.13-cu130"
RUN = 30208366514
REWORDED = "Left the engine as the image ships it: ok"
H, N, F, U, X = State.HOLDS, State.DOES_NOT_HOLD, State.FLAGGED, State.NOT_KNOWN, State.NOT_APPLICABLE


def master(image: str = NEW, *, key: str = KEY, end: int = 64, **changes: str) -> str:
    told = {"model-prefix": "dsr1", "runner": "h200", "framework": "sglang", "spec": "none", "router": "", "lengths":
            "isl: 8192\n      osl: 1024", "scenario": "fixed-seq-len", "start": "16"} | changes  # fmt: skip
    router = f"  router: {told['router']}\n" if told["router"] else ""
    return f"""\
{key}:
  image: {image}
  model: deepseek-ai/DeepSeek-R1-0528
  model-prefix: {told["model-prefix"]}
  runner: {told["runner"]}
  precision: fp8
  framework: {told["framework"]}
  multinode: false
{router}  scenarios:
    {told["scenario"]}:
    - {told["lengths"]}
      search-space:
      - {{ tp: 8, conc-start: {told["start"]}, conc-end: {end}, spec-decoding: {told["spec"]} }}
"""


def agentic(**changes: str) -> str:
    text = master(
        **{"runner": "cluster:b200", "spec": "mtp", "scenario": "agentic-coding"} | changes, lengths="LENGTHS"
    )
    return text.replace("LENGTHS\n      ", "")


def masters(*texts: str) -> Masters:
    text = "".join(texts)
    return Masters(plan.parse(text.encode(), any_era=True), MappingProxyType(yamltext.values(text)))  # type: ignore[arg-type]


def pull(**changes: Any) -> Pull:
    told = {"number": 7, "title": "t", "body": "", "author": "author-1", "labels": frozenset(), "head": HEAD,
            "head_repository": REPOSITORY, "base_ref": "main", "base_sha": "b" * 40}  # fmt: skip
    return Pull(**told | changes)


def change(path: str, *added: str, **told: Any) -> Change:
    return Change(path, told.get("status", "modified"), tuple(enumerate(added, 10)), told.get("before", ""))


def signoff(body: str, login: str = "codeowner-1") -> signoffs.SignOff:
    url = f"https://github.com/{REPOSITORY}/pull/7#issuecomment-1"
    return signoffs.SignOff(login, "MEMBER", datetime(2026, 7, 1, tzinfo=UTC), url, body)


def log(*added: Any, base: bytes | None = None, known: Any = None) -> revisions.Review:
    before = changelog() if base is None else base
    return revisions.review(before, changelog(*added), known_keys=known, pull_request=7, repository=REPOSITORY)


def job(name: str, conclusion: str | None = "success", attempt: int = 1) -> JobRun:
    return JobRun(
        name, attempt, "completed" if conclusion else "in_progress", conclusion, f"https://github.com/{name[0]}"
    )


def title(conc: int, lane: str = "single-node 8k1k") -> str:
    return f"{lane} / p1 | dsr1 fp8 h200 sgl TP8 c{conc}"


CHORES = (job("single-node 8k1k", "skipped"), job("collect-evals / collect-evals"))
GREEN = (*(job(title(conc)) for conc in (16, 32, 64)), *(job(title(conc, "eval")) for conc in (32, 64)))

RERUN = (*(job(one.name, "failure") for one in GREEN), *(job(one.name, attempt=2) for one in GREEN))


def sweep(*jobs: JobRun, in_pull: bool | None = True, attempt: int = 1, **told: Any) -> Sweep:
    run = Run(RUN, attempt, datetime(2026, 7, 1, tzinfo=UTC), REPOSITORY, event="pull_request", head_sha=HEAD)
    return Sweep(run, jobs or GREEN, in_pull, **told)


def rows(score: float = 0.955, image: str | None = NEW, points: int = 3, scores: int = 2, **told: Any) -> Rows:
    wanted = expected(masters(master()).plan, [_told_entry()])
    place, key = Place("a.json"), RunKey(RUN)
    held = [Point(key, one.series, {"tput_per_gpu": 1.0}, place, "", image) for one in wanted if one.task is None]
    evals = [Score(key, one.series, "gsm8k", score, 0.01, score, 0.01, 1319, place, "", image=image)
             for one in wanted if one.task]  # fmt: skip
    return Rows(
        {series_key(one.series): one for one in held[:points]},
        {eval_key(one.series, one.task): one for one in evals[:scores]},
        promised(wanted if told.pop("known", True) else (), GREEN),
        **told,
    )


def _told_entry() -> Any:
    return Inputs(REPOSITORY, pull(), changelog=log(entry(KEY, "x", pull=7))).entries[0]


def inputs(**changes: Any) -> Inputs:
    """A pull request in which everything is as it should be."""
    command = {"id": 5, "created_at": "2026-06-01T00:00:00Z", "author_association": "MEMBER", "user": {"login": "ann"}}
    told = {
        "commits": (SHA, HEAD),
        "changes": (change("configs/nvidia-master.yaml", f"  image: {NEW}"), change("perf-changelog.yaml", "- x")),
        "owners": owners.parse(OWNERS),
        "signoff": signoff(signed(RUN)),
        "command": command_of(command | {"body": "/reuse-sweep-run"}),
        "checklist": signoffs.template(CHECKLIST),
        "lineup": lineup.parse(MODELS),
        "thresholds": thresholds.parse(THRESHOLDS.encode(), "utils/evals/thresholds.yaml"),
        "before": masters(master(IMAGE)),
        "after": masters(master()),
        "changelog": log(entry(KEY, f"Update image from {IMAGE.split(':')[1]} to {NEW.split(':')[1]}", pull=7)),
        "sweep": sweep(),
        "rows": rows(),
        "upstream": {UPSTREAM: "merged"},
    }
    return Inputs(REPOSITORY, **{"pull": pull(body=f"See {UPSTREAM}.")} | told | changes)


UPSTREAM = "https://github.com/sgl-project/sglang/pull/900"


def codes(check: Check) -> list[str]:
    return [one.code for one in check.proof]


def unknown(*names: str) -> Mapping[str, Proof]:
    return {name: Proof.of("not_read", part=name, reason="403") for name in names}


def test_a_pull_request_in_order() -> None:
    found = evidence.judged(inputs())
    bad = {one.name: one for one in found.checks if one.state in {N, F}}
    assert bad == {}
    known = {one.name for one in found.checks if one.state is H}
    assert known == {"owner", "sweep", "evals", "recipe", "command", "checklist", "image", "lineup", "changelog_keys",
                     "from_to", "points", "topology", "attempt", "changelog"}  # fmt: skip
    assert found.statement is not None
    assert found.statement.exact
    assert (found.lacking, found.caveats) == ((), ())
    assert evidence.code(found, "flagged") == 0


def test_where_nothing_was_read_nothing_is_said() -> None:
    parts = ("commits", "files", "owners", "comments", "checklist", "lineup", "thresholds", "configs", "configs_before",
             "changelog", "runs", "rows", "waiver", "golden", "recipes")  # fmt: skip
    found = evidence.judged(Inputs(REPOSITORY, pull(), absent=unknown(*parts)))
    assert {one.state for one in found.checks} <= {U, X}
    assert found.statement is None
    assert len(found.caveats) == len(parts)
    assert evidence.code(found, "does-not-hold") == 4
    assert evidence.code(found, "never") == 0


Row = tuple[Callable[[Inputs], Check], Mapping[str, Any], State, str]

PEOPLE: list[Row] = [
    (people.owner, {}, H, "owned"),
    (people.owner, {"signoff": signoff(signed(RUN), "CodeOwner-2")}, H, "owned"),
    (people.owner, {"signoff": signoff(signed(RUN), "ann")}, U, "owned_by_team"),
    (people.owner, {"signoff": signoff(signed(RUN), "codeowner-1"), "changes": (change("configs/amd-master.yaml"),)}, N,
     "owned_by_others"),
    (people.owner, {"changes": (change("README.md"),)}, H, "catch_all"),
    (people.owner, {"signoff": signoff("", "eve"), "changes": (change("README.md"),)}, U, "catch_all_team"),
    (people.owner, {"signoff": signoff("", "eve"), "changes": (change("a"),), "owners": owners.parse("* @ann")}, N,
     "catch_all_stranger"),
    (people.owner, {"changes": (change("a"),), "owners": owners.parse("b @ann")}, X, "unowned"),
    (people.owner, {"changes": (change("b", before="configs/amd-master.yaml"),)}, N, "owned_by_others"),
    (people.owner, {"signoff": None}, U, "no_sign_off"),
    (people.owner, {"owners": None}, U, "no_owners_file"),
    (people.owner, {"changes": None, "absent": unknown("files")}, U, "not_read"),
    (people.command, {}, H, "command"),
    (people.command, {"command": None}, N, "no_command"),
    (people.command, {"command": None, "absent": unknown("comments")}, U, "not_read"),
    (people.checklist, {}, H, "items_same"),
    (people.checklist, {"signoff": signoff(signed(RUN, items=ITEMS[:-1]))}, N, "item_missing"),
    (people.checklist, {"signoff": signoff(signed(RUN, items=(*ITEMS[:-1], REWORDED)))},
     F, "item_reworded"),
    (people.checklist, {"signoff": signoff(signed(RUN, unchecked=(2,)))}, F, "items_unchecked"),
    (people.checklist, {"checklist": None}, U, "no_checklist"),
    (people.checklist, {"signoff": None}, U, "no_sign_off"),
]  # fmt: skip

SWEEPS: list[Row] = [
    (sweeps.sweep, {}, H, "exact_head"),
    (sweeps.sweep, {"sweep": sweep(in_pull=False)}, N, "commit_gone"),
    (sweeps.sweep, {"sweep": sweep(in_pull=None), "absent": unknown("commits")}, U, "commit_unknown"),
    (sweeps.sweep, {"sweep": sweep(*GREEN[1:], job(title(16), "failure"))}, N, "job_not_passed"),
    (sweeps.sweep, {"sweep": sweep(*GREEN[:-1], job(title(64, "eval"), None))}, U, "job_not_passed"),
    # Skipped is not passed, and a green collector has measured nothing.
    (sweeps.sweep, {"sweep": sweep(*CHORES)}, N, "no_jobs"),
    (sweeps.sweep, {"sweep": sweep(*GREEN[:3], job(title(64, "eval"), "skipped"))}, N, "no_evals"),
    (sweeps.sweep, {"sweep": sweep(*GREEN[:3]), "rows": None}, U, "no_evals"),
    (sweeps.sweep, {"sweep": sweep(*RERUN)},
     H, "jobs_passed"),
    (sweeps.sweep, {"sweep": None}, N, "no_run"),
    (sweeps.sweep, {"sweep": None, "absent": unknown("runs")}, U, "not_read"),
    (sweeps.evals, {}, H, "scores"),
    (sweeps.evals, {"rows": rows(0.8999)}, N, "score_below"),
    (sweeps.evals, {"rows": rows(0.9)}, H, "image_same"),
    (sweeps.evals, {"rows": rows(float("nan"))}, N, "score_invalid"),
    (sweeps.evals, {"rows": rows(scores=0)}, N, "no_scores"),
    (sweeps.evals, {"rows": rows(scores=0, expired=3)}, U, "results_expired"),
    (sweeps.evals, {"rows": rows(scores=1)}, N, "evals_absent"),
    (sweeps.evals, {"rows": rows(scores=1, known=False)}, U, "few_scores"),
    (sweeps.evals, {"rows": rows(image=IMAGE)}, N, "image_differs"),
    (sweeps.evals, {"rows": rows(image=None)}, U, "image_untold"),
    (sweeps.evals, {"rows": rows(image=NEW.replace("/", "#"))}, H, "image_same"),
    (sweeps.evals, {"thresholds": thresholds.parse(b"default: {other: 0.5}", "t.yaml")}, U, "no_mark"),
    (sweeps.evals, {"rows": None, "absent": unknown("rows")}, U, "not_read"),
    (sweeps.points, {}, H, "points_arrived"),
    (sweeps.points, {"rows": rows(points=2)}, N, "point_missing"),
    (sweeps.points, {"rows": rows(points=2, expired=1)}, U, "results_expired"),
    (sweeps.points, {"rows": rows(known=False)}, U, "nothing_promised"),
    (sweeps.attempt, {"sweep": sweep(attempt=2)}, F, "further_attempt"),
]  # fmt: skip

LOST = {"before": masters(master(IMAGE)), "after": masters(master("rocm/sgl-dev:v1.0"))}
ENGINE = master("rocm/atom:v1.0", key="dsr1-fp8-h200-atom", framework="atom")
MIXED = log(entry(KEY, "More", pull=7, append_only=True), entry(KEY, "Else", pull=7))
APPENDED = {"before": masters(master(end=64)), "changelog": log(entry(KEY, "More points", pull=7, append_only=True))}

CONFIGS: list[Row] = [
    (configs.recipe, {}, H, "recipe_merged"),
    (configs.recipe, {"upstream": {UPSTREAM: "open"}}, N, "recipe_not_merged"),
    (configs.recipe, {"upstream": {}}, U, "recipe_state_unknown"),
    (configs.recipe, {"pull": pull(body="See https://recipes.vllm.ai/DeepSeek.")}, U, "recipe_page"),
    (configs.recipe, {"pull": pull(body="https://github.com/eve/recipes/pull/1")}, N, "no_recipe_link"),
    (configs.recipe, {"before": masters(), "after": masters(ENGINE), "changelog": log()}, X, "no_single_node"),
    (configs.image, {}, H, "upstream_image"),
    (configs.image, LOST, N, "other_image"),
    (configs.image, {"after": masters(master("docker.io#lmsysorg/sglang:v0.5.13"))}, H, "upstream_image"),
    (configs.image, {"after": masters(master("evil.io/lmsysorg/sglang:v0.5.13"))}, N, "other_image"),
    (configs.image, {"after": masters(master("lmsysorg.evil/sglang:v1.0"))}, N, "other_image"),
    (configs.order, {}, X, "no_new_engine"),
    (configs.order, {"after": masters(master(), ENGINE)}, H, "engine_precedes"),
    (configs.order, {"before": masters(), "after": masters(ENGINE)}, U, "engine_first"),
    (configs.lineup, {}, H, "lineup_active"),
    (configs.lineup, {"after": masters(master(lengths="isl: 1024\n      osl: 1024"))}, N, "lineup_deprecated"),
    (configs.lineup, {"after": masters(master(lengths="isl: 1024\n      osl: 8192"))}, N, "lineup_deprecated"),
    (configs.lineup, {"after": masters(agentic(**{"model-prefix": "minimaxm3"}))}, F, "lineup_bounded"),
    (configs.lineup, {"after": masters(master(**{"model-prefix": "dsr2"}))}, U, "lineup_unknown"),
    (configs.lineup, {"lineup": None}, U, "no_lineup"),
    (configs.append_only, {}, X, "no_append_only"),
    (configs.append_only, {**APPENDED, "after": masters(master(end=128))}, H, "points_added"),
    (configs.append_only, {**APPENDED, "after": masters(master(end=32))}, N, "points_removed"),
    (configs.append_only, {**APPENDED, "after": masters(master(start="32", end=128))}, N, "points_removed"),
    (configs.append_only, {**APPENDED, "after": masters(master(end=64))}, N, "nothing_appended"),
    (configs.append_only, {**APPENDED, "after": masters(master(IMAGE, end=128))}, N, "append_other_image"),
    (configs.append_only, {**APPENDED, "before": masters(), "after": masters(master())}, N, "append_to_nothing"),
    (configs.append_only, {**APPENDED, "after": masters(ENGINE)}, U, "key_unknown"),
    (configs.append_only, {**APPENDED, "after": masters(master(end=128)), "changelog": MIXED}, N, "append_only_mixed"),
    (configs.topology, {}, H, "layouts_same"),
    (configs.topology, {"after": masters(master().replace("tp: 8", "tp: 4"))}, F, "layout_new"),
    (configs.topology, {"before": masters()}, F, "new_config"),
]

ROUTED = masters(master(router="{ name: dynamo-router, version: 1.3.0 }"))
INSTALLS = {KEY: {"benchmarks/r.yaml": "dynamo:\n  version: 1.4.0\nmodel:\n  container: other/image:v1.0\n"}}
SAME = {KEY: {"benchmarks/r.yaml": f"dynamo:\n  version: v1.3.0\nmodel:\n  container: {NEW.replace('/', '#')}\n"}}

ENTRIES: list[Row] = [
    (entries.keys, {}, H, "keys_same"),
    (entries.keys, {"changelog": log(entry("dsr1-*", "Bump", pull=7))}, H, "keys_same"),
    (entries.keys, {"changelog": log()}, N, "key_not_listed"),
    (entries.keys, {"before": masters(master())}, F, "key_unchanged"),
    (entries.keys, {"changes": (change("benchmarks/single_node/a.sh", "x"),)}, U, "script_unassigned"),
    (entries.from_to, {}, H, "moved_so"),
    (entries.from_to, {"changelog": log(entry(KEY, "Bump image from v0.5.11 to v0.5.13", pull=7))}, N, "not_moved_so"),
    (entries.from_to, {"changelog": log(entry(KEY, "Image from v0.5.12 (18d old) to v0.5.13", pull=7))}, H, "moved_so"),
    (entries.from_to, {"changelog": log(entry(KEY, "Widen concurrency from 64 to 128", pull=7))}, X, "no_from_to"),
    (entries.from_to, {"changelog": log(entry(KEY, "Bump foo from 1.2.0 to 1.3.0", pull=7))}, U, "moved_elsewhere"),
    (entries.router, {}, X, "no_router"),
    (entries.router, {"after": ROUTED, "recipes": INSTALLS}, N, "router_differs"),
    (entries.router, {"after": ROUTED, "recipes": SAME}, H, "router_same"),
    (entries.router, {"after": ROUTED}, U, "router_unknown"),
    (
        entries.router,
        {"after": ROUTED, "changelog": log(entry(KEY, "Bump dynamo to 1.4.0", pull=7))},
        N,
        "router_differs",
    ),
    (entries.container, {}, X, "no_recipes"),
    (entries.container, {"recipes": INSTALLS}, N, "container_differs"),
    (entries.container, {"recipes": SAME}, H, "containers_same"),
    (entries.container, {"recipes": {KEY: {"r.yaml": "a: [b"}}}, U, "no_container"),
    (entries.history, {}, H, "entries_added"),
    (entries.history, {"changelog": log()}, X, "changelog_untouched"),
    (entries.history, {"changelog": log(entry(KEY, "Bump"))}, F, "placeholder"),
    (entries.history, {"changelog": log(entry(KEY, "Bump", pull=8))}, N, "entry_flaw"),
    (entries.history, {"changelog": log(base=changelog(entry("gone", "x", pull=3)))}, N, "history_changed"),
]

AGENTIC = {"before": masters(agentic()), "after": masters(agentic(image=NEW))}
GOLDEN = {"dsr1_mtp.yaml": {"_metadata": {"draft-model": "x"}, "r1": {"thinking_on": {"1": "1.78", "3": "2.83"}}}}


def pinned(text: str, **told: Any) -> Mapping[str, Any]:
    return {**AGENTIC, "golden": GOLDEN, "recipes": {KEY: {"r.yaml": text}}, **told}


SCRIPTS: list[Row] = [
    (scripts.overrides, {}, U, "nothing_found"),
    (scripts.overrides, {"changes": (change("a.sh", "vllm serve --hf-overrides '{}'"),)}, F, "found_at"),
    (scripts.overrides, {"changes": (change("docs/a.md", "--hf-overrides"),)}, X, "no_scripts"),
    (scripts.overrides, {"changes": (Change("big.sh", "modified", None),)}, U, "not_scanned"),
    (scripts.templates, {}, X, "no_speculation"),
    (scripts.templates, {"after": masters(master(spec="mtp"))}, F, "no_template"),
    (scripts.templates, {"after": masters(master(spec="mtp")), "changes": (change("a.sh", "--use-chat-template"),)}, F,
     "found_at"),
    (scripts.patches, {}, U, "nothing_found"),
    (scripts.patches, {"changes": (change("a.sh", "git apply x.diff"),)}, F, "no_waiver"),
    (scripts.patches, {"changes": (change("a.sh", "git apply x.diff"),), "waiver": "docs/waiver/7.md"}, F, "waiver"),
    (scripts.patches, {"changes": (change("a.sh", "git apply x"),), "absent": unknown("waiver")}, F, "not_read"),
    (scripts.patches, {"changes": (change("fix.patch", "+x"),)}, F, "patch_file"),
    (scripts.patches, {"changes": (change("fix.patch", status="removed"),)}, U, "nothing_found"),
    (scripts.patches, {"pull": pull(labels=frozenset({"engine-patch"}))}, F, "label"),
    (scripts.acceptance, {}, X, "no_agentic_speculation"),
    (scripts.acceptance, {**AGENTIC, "golden": GOLDEN}, U, "no_length"),
    (scripts.acceptance, pinned("SGLANG_SIMULATE_ACC_LEN: 2.83"), H, "length_golden"),
    (scripts.acceptance, pinned('{"synthetic_acceptance_length": 2.84}'), N, "length_not_golden"),
    (scripts.acceptance, pinned("TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS=1.83"), H, "length_golden"),
    (scripts.acceptance, pinned('{"num_speculative_tokens": 1, "synthetic_acceptance_length": 2.83}'), N,
     "length_not_golden"),
    (scripts.acceptance, pinned("SGLANG_SIMULATE_ACC_LEN: 2.83", golden={"dsr10_mtp.yaml": GOLDEN["dsr1_mtp.yaml"]}), U,
     "no_golden"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("check", "changes", "state", "code"),
    [pytest.param(*row, id=f"{row[0].__name__}-{row[3]}-{place}")
     for place, row in enumerate([*PEOPLE, *SWEEPS, *CONFIGS, *ENTRIES, *SCRIPTS])],
)  # fmt: skip
def test_a_row(check: Callable[[Inputs], Check], changes: Mapping[str, Any], state: State, code: str) -> None:
    found = check(inputs(**changes))
    assert (found.state, code in codes(found)) == (state, True), found


@pytest.mark.parametrize(
    ("association", "body", "state", "code"),
    [
        ("COLLABORATOR", "Fine.\r\n/reuse-sweep-run\r\n", H, "command"),
        ("CONTRIBUTOR", "/reuse-sweep-run", N, "command_unauthorised"),
        ("MEMBER", f"/reuse-sweep-run {RUN}", H, "command_pins"),
        ("MEMBER", "/reuse-sweep-run 123456", F, "command_pins_other"),
    ],
)
def test_who_asked_for_the_reuse(association: str, body: str, state: State, code: str) -> None:
    said = {"id": 5, "created_at": "2026-06-01T00:00:00Z", "user": {"login": "ann"}, "author_association": association}
    found = people.command(inputs(command=command_of(said | {"body": body})))
    assert (found.state, code in codes(found)) == (state, True)


@pytest.mark.parametrize(
    "line",
    [
        "patch -p1 < fix.diff", "sed -i 's/a/b/' /usr/lib/python3/site-packages/vllm/x.py", "pip install git+https://x/y",
        "spec = find_spec('vllm')", "cat > /usr/lib/python3/dist-packages/sglang/a.py <<EOF",
        "pip3 install ./vllm-1.whl",
        "  git  apply fix.diff",
    ],
)  # fmt: skip
def test_what_changes_an_engine_is_found(line: str) -> None:
    assert scripts.PATCHES.search(line)


@pytest.mark.parametrize(
    "line", ["pip install aiperf==1.0", "sed -i 's/TP/8/' config.yaml", "dispatch -p", "# no patch"]
)
def test_what_changes_no_engine_is_not(line: str) -> None:
    assert not scripts.PATCHES.search(line)


def test_a_fork_that_was_deleted_has_no_name() -> None:
    told = {"number": 7, "head": {"sha": HEAD, "repo": None}, "base": {"ref": "main", "sha": SHA}, "user": None}
    found = _pull(told)
    assert (found.head_repository, found.author, found.body, found.labels) == (None, "", "", frozenset())
    assert codes(Check(None, "", F, evidence.judged(inputs(pull=found)).caveats)) == ["from_fork"]


def test_a_long_line_costs_no_more_than_its_length() -> None:
    """Quadratic work on these would take minutes: the suite would not end."""
    long = "1" * 400_000
    assert entries.from_to(inputs(changelog=log(entry(KEY, f"from {long} to", pull=7)))).state is X
    assert codes(scripts.patches(inputs(changes=(change("a.sh", "sed -i x " * 100_000),)))) == ["nothing_found"]
    body = f"{signed(RUN)}\n- {'[' * 60_000}"
    assert people.checklist(inputs(signoff=signoff(body))).state is H


# --- words -----------------------------------------------------------------------------------------------------------


def told(*proof: Proof) -> PullEvidence:
    return PullEvidence(REPOSITORY, 7, HEAD, (Check(8, "overrides", F, proof),), proof)


def test_every_row_and_every_fact_has_words() -> None:
    names = {check(inputs()).name for check in CHECKS}
    assert names == set(checklist.NAMES)
    assert set(checklist.STATES) == set(State)
    said = set()
    for _, changes, _, _ in (*PEOPLE, *SWEEPS, *CONFIGS, *ENTRIES, *SCRIPTS):
        for found in evidence.judged(inputs(**changes)).checks:
            for proof in found.proof:
                assert proof.code in checklist.PROOFS, proof
                lacking = set(slots(checklist.PROOFS[proof.code])) - dict(proof.values).keys()
                assert not lacking, (proof, lacking)
                said.add(proof.code)
    assert len(said) > 90


HOSTILE = "a|b](https://evil.example) @claude <img src=x> /reuse-sweep-run \x1b[31m\u202e"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_hostile_texts_stay_texts(lang: str) -> None:
    link = "https://github.com/a/b/blob/x/a) [c](javascript:alert(1)"
    found = told(Proof.of("found_at", link, place=f"{HOSTILE}:3", text=HOSTILE), Proof.of(HOSTILE, value=HOSTILE))
    page = blocks.render(checklist.blocks(found, "markdown"), "markdown", lang)
    assert "](https://evil" not in page
    assert "](javascript" not in page
    assert "@claude" not in page
    assert not re.search(r"(?<!\\)<img", page)
    assert "\n/reuse" not in page
    assert not re.search(r"/reuse-sweep-run", page)
    (row,) = [line for line in page.splitlines() if line.startswith("| 8 ")]
    assert len(re.findall(r"(?<!\\)\|", row)) == 5
    plain = blocks.render(checklist.blocks(found, "table"), "table", lang)
    assert "\x1b" not in plain
    assert "\u202e" not in plain
    assert json.loads(checklist.as_json(found))["checks"][0]["proof"][0]["values"]["text"] == HOSTILE


def test_a_link_is_shown_where_it_is_one() -> None:
    found = told(
        Proof.of("exact_head", f"https://github.com/{REPOSITORY}/actions/runs/5/attempts/1", run="5", commit="e")
    )
    page = blocks.render(checklist.blocks(found, "markdown"), "markdown", "en")
    assert f"[Run 5 measured the head, e.](https://github.com/{REPOSITORY}/actions/runs/5/attempts/1)" in page


def test_a_sentence_is_written_only_where_its_rows_hold() -> None:
    whole = evidence.judged(inputs())
    said = json.loads(checklist.as_json(whole))["evidence"]
    assert said == (
        f"Exact-head Run Sweep {RUN} (attempt 1, commit {HEAD[:12]}) passed."
        " It passed all 3 applicable throughput jobs and all 2 applicable eval jobs."
        f" GSM8K scores ranged from 0.9550 to 0.9550 against the 0.9000 threshold. Using {NEW}."
    )
    for changes in ({"rows": rows(0.5)}, {"sweep": sweep(in_pull=False)}, {"rows": rows(image=None)}):
        found = evidence.judged(inputs(**changes))
        assert found.statement is None
        assert found.lacking
        assert "may not be written" in blocks.render(checklist.blocks(found, "table"), "table", "en")
