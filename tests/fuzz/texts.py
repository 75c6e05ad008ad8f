"""Targets that are texts: YAML that people write, grammars of names, claims, filters, addresses."""

from __future__ import annotations

import math
import re
import tempfile
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import yaml

from reports import escapes
from store import (
    changelog,
    identity,
    images,
    lineup,
    owners,
    plan,
    revisions,
    runs,
    signoffs,
    thresholds,
    titles,
    withdrawals,
    yamltext,
)
from store.records import Role, Series, Trouble
from tests.fuzz.target import Target, text_of
from tracker import eventfile, filters
from tracker.claims import find_claims

_NOW = datetime(2026, 6, 15, tzinfo=UTC)
_PR = 2731


def _yaml_text(data: bytes) -> None:
    text = text_of(data)
    try:
        yamltext.values(text)
    except yamltext.NotYaml as flaw:
        if not 0 <= flaw.index <= len(text):
            raise AssertionError(flaw.index) from flaw
    try:
        assert yamltext.values(f"- {yamltext.quoted(text)}\n- {yamltext.scalar(text)}\n") == [text, text]
    except yamltext.CannotQuote:
        assert re.search("[\ud800-\udfff]", text)


def _master_configs(data: bytes) -> None:
    for any_era in (False, True):
        found = plan.parse(data, any_era=any_era)
        assert all(flaw.reason for flaw in found.rejections)
        for config in found.configs.values():
            assert config.points
            assert found.matching(config.key) == (config,)


def _thresholds(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("thresholds.yaml", "thresholds.json"):
            path = Path(folder, name)
            path.write_bytes(data)
            try:
                marks = thresholds.load(path)
            except thresholds.CannotReadThresholds:
                continue
            every = (*marks.default.values(), *(value for own in marks.models.values() for value in own.values()))
            assert all(math.isfinite(value) and 0 <= value <= 1 for value in every)


def _changelog(data: bytes) -> None:
    found = changelog.flaws(data, {"dsr1-fp8-h200-sglang"}, pull_request=_PR)
    assert all(str(flaw) for flaw in found)
    try:
        log = changelog.read(data)
    except changelog.CannotRead:
        assert found
        return
    # Entries on one line (`[{...}, {...}]`) have one place; they are flawed for that.
    apart = all(first.end < second.start for first, second in pairwise(log.blocks))
    assert apart or any(flaw.code == "entry_start" for flaw in found)
    entry = changelog.Entry(("dsr1-fp8-h200-sglang",), ("new image",), changelog.link(_PR))
    try:
        new = changelog.append(data, (entry,))
    except changelog.CannotAppend:
        return
    assert new.startswith(data)
    assert changelog.read(new).entries == (*log.entries, entry)


def _revisions(data: bytes) -> None:
    """Two versions of the file, parted by a line that no YAML has."""
    base, _, head = data.partition(b"\n=====\n")
    try:
        review = revisions.review(base, head, pull_request=_PR)
        assert not (review.passed and review.forbidden)
        merged = revisions.resolve_tail(base, head, pull_request=_PR)
    except Trouble:
        return
    assert merged.startswith(base)


def _claims(data: bytes) -> None:
    text = text_of(data)
    for claim in find_claims(text):
        start, end = claim.span
        assert claim.text == text[start:end]
        assert all(math.isfinite(value) for value in claim.values)


def _images(data: bytes) -> None:
    text = text_of(data)
    image = images.parse(text)
    again = images.parse(image.text)
    assert again == image
    assert images.compare(text, text) is not images.Sameness.CHANGED
    assert (images.canonical(text) is None) == (not text.strip())


def _identity(data: bytes) -> None:
    words = (text_of(data).split("\n") + [""] * 6)[:6]
    model, gpu, framework, precision, spec, scenario = words
    series = Series(
        identity.model(model, framework),
        identity.hardware(gpu).gpu,
        identity.framework(framework),
        identity.precision(precision),
        identity.speculation(spec),
        scenario,
        1024,
        1024,
        False,
        identity.layout(Role(8), None, multinode=False, disagg=False, engine=framework),
        64,
    )
    _assert_loud("".join(words[:5]), series)
    assert len(identity.series_key(series).split(" ")) in (8, 9)
    assert not re.search(r"\s", identity.config_key(series))


def _assert_loud(text: str, series: Series) -> None:
    """Only the letters of the tables themselves name a known thing: no look-alike of them."""
    if not text.isascii():
        words = (series.model, series.gpu, series.framework, series.precision, series.spec)
        loud = any(not word.isascii() and word.startswith(identity.UNKNOWN) for word in words)
        assert loud or text.strip() != text


def _titles(data: bytes) -> None:
    title = titles.parse(text_of(data))
    assert title is None or (title.says >= 0 and all(conc >= 0 for conc in title.concs))


def _filters(data: bytes) -> None:
    first, _, second = text_of(data).partition("\n")
    try:
        condition = filters.parse(first)
        assert filters.parse(str(condition)) == condition
        condition.fits(Series("dsr1", "h200", "sglang", "fp8", "none", "single_turn", 8192, 1024, False, _ONE, 64))
        asked = filters.filters([first], second or None, second or None, _NOW)
        asked.holds(_NOW)
    except Trouble:
        return


_ONE = identity.layout(Role(8), None, multinode=False, disagg=False, engine="sglang")


def _withdrawals(data: bytes) -> None:
    try:
        found = withdrawals.parse(text_of(data))
    except withdrawals.CannotReadWithdrawals:
        return
    assert all(one.run and one.reason and withdrawals.caveat_of(one).code == "withdrawn" for one in found)


def _events(data: bytes) -> None:
    try:
        found = eventfile.parse(text_of(data))
    except ValueError:
        return
    assert [(event.start, event.name) for event in found] == sorted((event.start, event.name) for event in found)


def _escapes(data: bytes) -> None:
    text = text_of(data)
    assert yaml.safe_load(escapes.yaml(text)) == escapes.clean(text)
    assert not re.search(r"[<>\"'\n\x00-\x08\x1b]", escapes.html(text))
    for shown in (escapes.markdown(text), escapes.plain(text), escapes.line(text), escapes.csv(text)):
        shown.encode()
        assert not re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\u200e\u200f]", shown)
    assert not re.match(r"\s*[=+\-@]", escapes.csv(text))


def _addresses(data: bytes) -> None:
    text = text_of(data)
    link = runs.parse_url(text)
    if link is not None:
        assert 0 < link.id < 2**63
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", link.repository, re.ASCII)
    try:
        assert runs.parse_time(text).tzinfo is UTC
    except ValueError:
        return


def _owners(data: bytes) -> None:
    head, _, path = text_of(data).partition("\n\n")
    found = owners.parse(head)
    numbers = [rule.line for rule in found.rules]
    assert numbers == sorted(set(numbers))
    for asked in (path.strip(), "docs/a.md", ".github/workflows/run-sweep.yml"):
        last = [rule for rule in found.rules if rule.owns(asked)][-1:]
        assert ([found.of(asked)] if last else []) == last
        assert all(rule.owns(asked) for rule in found.rules if rule.is_catch_all)


def _checklist(data: bytes) -> None:
    text = text_of(data)
    said = signoffs.items(text)
    assert signoffs.compare((), said) == signoffs.Difference((), (), ())
    wanted = signoffs.template(text)
    told = signoffs.compare(wanted, said)
    assert {*told.missing, *told.reworded, *told.unchecked} <= {item.text for item in wanted}
    table = lineup.parse(text)
    if table is not None:
        assert all(table.of(prefix, "8k1k")[0] in lineup.Standing for prefix in (*table.models, "nobody"))


_YAML = ("- ", ": ", "\n", "  ", "&a ", "*a", "!!python/object", "<<: ", "{", "}", "[", "]", "|", ">", "'", '"', "#")
_ENTRY = (
    "- config-keys:\n",
    "    - ",
    "  description:\n",
    "  pr-link: ",
    "append-only: true",
    "evals-only: true",
    "XXX",
)

TARGETS = (
    Target("yaml_text", "values or NotYaml with a place; quoting reads back", _yaml_text, ("store.yamltext",), _YAML),
    Target("master_configs", "configs with points, every other one a rejection", _master_configs,
           ("store.plan", "store.yamltext"), (*_YAML, "search-space:", "conc-list:", "seq-len-configs:", "scenarios:")),
    Target("thresholds", "fractions, or CannotReadThresholds", _thresholds, ("store.thresholds", "store.yamltext"),
           (*_YAML, "default:", "models:", "0.9", ".nan")),
    Target("changelog", "entries with places; an append keeps every byte and reads back", _changelog,
           ("store.changelog", "store.yamltext"), (*_YAML, *_ENTRY, "\r\n", "<<<<<<< ", "\t")),
    Target("changelog_revisions", "a review never passes what is forbidden; a resolved tail begins with main's bytes",
           _revisions, ("store.revisions", "store.changelog"), (*_YAML, *_ENTRY, "\n=====\n"), 8192),
    Target("claims", "every claim is a part of the text, with finite values", _claims, ("tracker.claims",),
           ("tok/s/GPU", "%", "pp", "->", "~", "吞吐量", "下降", "提升", "约", "并发", "8k1k", "conc",
            "| a | b |\n|---|---|\n", "GSM8K", "B200", "dsr1-fp4-b200-sglang", "倍", "from ", " to ")),
    Target("images", "the canonical text reads back equal, and an image never differs from itself", _images,
           ("store.images",), ("@sha256:", ":", "#", "/", "nightly", "v0.5.9", "rc1", "latest", "20260614")),
    Target("identity", "known names in their own letters only; keys without a blank", _identity, ("store.identity",),
           ("dsr1", "h200", "sglang", "fp8", "mtp", "kimik2.5", "\n", "cluster:", "-fp4", "\u212a", "\u0430")),
    Target("titles", "a title or nothing", _titles, ("store.titles",),
           (" / ", "| ", "TP8/EP8", "c64", "conc=", "mtp", "eval-only", "(TP8) x 1D (TP8)", "8k1k", "dsr1")),
    Target("filters", "a condition whose text reads back, or Trouble", _filters, ("tracker.filters",),
           ("hardware=", "conc>=", "*", "?", "[", ",", "!=", "\n", "2w", "2026-06-01", "9999-12-31")),
    Target("withdrawals", "withdrawals or CannotReadWithdrawals", _withdrawals, ("store.withdrawals", "store.yamltext"),
           (*_YAML, "run: ", "class: policy", "since: 2026-07-21", "point: ", "attempt: ", "source: https://x")),
    Target("events", "events in order, or ValueError", _events, ("tracker.eventfile", "store.yamltext"),
           (*_YAML, "events:", "shipped: false", "date: ", "effect: ", "metrics: ", "series: ")),
    Target("owners", "the last line that fits decides, and a line for everything fits everything", _owners,
           ("store.owners",), ("* @org/team", "/docs/", "**", "*.js", "\\ ", "@ann", "ann@example.org", "#", "!", "[")),
    Target("checklist", "a difference names items of the checklist; a table says how each model stands", _checklist,
           ("store.signoffs", "store.lineup"),
           ("- [x] ", "- [ ] ", "As a PR reviewer and CODEOWNER, I have reviewed this and have:", "| `m3` | ",
            "| Prefix | Active | Deprecated |\n|---|---|---|\n", "| Scenario | Status |\n", "8k1k", "(", ")")),
    Target("escapes", "no control, no markup, no formula, and YAML reads back", _escapes, ("reports.escapes",),
           ("@", "https://", "\u202e", "\u200b", "=", "|", "`", "<!--", "\x1b", "#1", "\ud800")),
    Target("addresses", "a link to a run or nothing; a time in UTC or ValueError", _addresses, ("store.runs",),
           ("https://github.com/", "/actions/runs/", "/attempts/", "@", ":", "..", "2026-06-14T01:02:03Z", "+14:00")),
)  # fmt: skip
