"""Where the numbers of both sides come from: labels of the runs, images against configs, what ran beside the engine.

What differs is said, never what came of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from types import MappingProxyType

from store import images
from store.duck import Store, texts_of
from store.identity import config_key, series_key
from store.images import Sameness
from store.records import Caveat, ChangelogEntry, Expected, Finding, Provenance, Run, RunKey, Scope, Series
from store.runs import PATCHED, TRIMMED, Kind, is_trimmed
from tracker.sides import Side
from tracker.workload import FAST

_CODES: Mapping[str, str] = MappingProxyType(
    {
        TRIMMED: "trimmed_sweep",
        FAST: "agentx_fast",
        PATCHED: "engine_patch",
        "evals-only": "evals_only",
        "all-evals": "evals_only",
    }
)
"""Doubts about a run by its labels."""


def label_doubts(runs: Iterable[Run], labels: Iterable[str] = tuple(_CODES)) -> tuple[Caveat, ...]:
    """What the labels of some runs say about their numbers."""
    asked = tuple(labels)
    return tuple(
        Caveat.of(_CODES[label], run=str(run.key), label=label)
        for run in runs
        for label in asked
        if label in run.labels and (label != TRIMMED or is_trimmed(run))
    )


def run_doubts(runs: Iterable[Run], measured: Mapping[RunKey, Provenance]) -> Iterator[Caveat]:
    """Runs whose rows another run published, and runs without rows of their own."""
    for run in runs:
        if run.reused_by is not None and run.reused_by.id != run.id:
            on = {"date": run.published_at.date().isoformat()} if run.published_at else {}
            yield Caveat.of("reused_run", run=str(run.key), by=str(run.reused_by), **on)
        if measured[run.key].kind == Kind.PUBLISHER:
            yield Caveat.of("measured_nothing", run=str(run.key))


# ---------------------------------------------------------------- images and settings


def image_of_config(row: str | None, promised: Iterable[str]) -> Caveat | None:
    """A row whose image is none of those that its config promised; None where either is unknown.

    >>> image_of_config("a/b:v1.1", ["a/b:v1.0"]).code, image_of_config("a/b:v1.0", ["a/b:v1.0"])
    ('image_not_of_config', None)
    """
    known = [image for image in promised if image]
    if not row or not known or any(images.compare(image, row) is not Sameness.CHANGED for image in known):
        return None
    return Caveat.of("image_not_of_config", config=", ".join(sorted(set(known))), row=row)


def client_image(client: str | None, server: str | None) -> Caveat | None:
    """A client that came out of another image than the server."""
    mine, other = images.canonical(client), images.canonical(server)
    if not mine or not other or images.compare(mine, other) is not Sameness.CHANGED:
        return None
    return Caveat.of("client_image", client=mine, server=other)


_VERSION = r"v?\d+(?:\.\d+)+(?:[._+-]?(?:dev|rc|post|alpha|beta|a|b)\.?\d+)*"
_BETWEEN = r"(?:[\s:=@→`'\"-]|\b(?:to|version|router|runtime|wheel|package|image)\b|[升级至到为版本])"


def router_differs(named: str | None, installed: str | None) -> Caveat | None:
    """The version of a router that the metadata names against the one that was installed; None where one is unknown.

    >>> router_differs("1.3.0.dev20260614", "1.3.0.dev20260710").as_dict()
    {'code': 'router_differs', 'named': '1.3.0.dev20260614', 'installed': '1.3.0.dev20260710'}
    >>> router_differs("v1.3.0", "1.3.0") is None and router_differs(None, "1.3.0") is None
    True
    """
    if not named or not installed or _bare(named) == _bare(installed):
        return None
    return Caveat.of("router_differs", named=named, installed=installed)


def _bare(version: str) -> str:
    return version.strip().lower().removeprefix("v")


def installed_version(name: str, texts: Iterable[str]) -> str | None:
    """The version of a router that change descriptions say was put in; the last one that says so counts.

    >>> installed_version("dynamo", ["Bump image to a/b:v2 and dynamo from 1.2.0 to 1.3.0.dev20260710"])
    '1.3.0.dev20260710'
    >>> installed_version("sglang-router", ["Update sglang to v0.5.12"]) is None
    True
    """
    names = {name, "dynamo"} if name.lower().startswith("dynamo") else {name}
    words = "|".join(re.escape(one).replace(r"\-", "[-_ ]") for one in sorted(names, key=len, reverse=True))
    pattern = rf"(?<![\w/-])(?:{words})(?![\w/]){_BETWEEN}*(?:from\s+{_VERSION}\s*)?{_BETWEEN}*({_VERSION})"
    found = [version for text in texts for version in re.findall(pattern, text, re.IGNORECASE)]
    return found[-1] if found else None


def _router(text: str | None, series: Series, entries: Sequence[ChangelogEntry]) -> Caveat | None:
    """What the row names as router against what the changelog entries of its config say."""
    name, _, version = (text or "").rpartition(" ")
    config = config_key(series)
    own = [entry for entry in entries if any(_concerns(key, config) for key in entry.config_keys)]
    texts = [line for entry in own for line in entry.description]
    return router_differs(version, installed_version(name, texts)) if name else None


def _concerns(key: str, config: str) -> bool:
    """Whether a key or pattern of a changelog entry may mean a config; keys carry suffixes that configs do not."""
    return key.startswith(config) or fnmatchcase(config, key)


# ---------------------------------------------------------------- on findings


@dataclass(frozen=True, slots=True)
class Settings:
    """What both sides said of themselves, by series."""

    doubts: Mapping[str, tuple[Caveat, ...]]
    """About the candidate's rows alone."""
    texts: Mapping[str, Mapping[str, str]]
    past: Mapping[tuple[str, str], Mapping[str, str]]
    """The same of earlier runs, by run and series."""
    trimmed: bool

    def told(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """The findings, each with what its own rows say and what they said otherwise before."""
        for one in findings:
            said = tuple(dict.fromkeys(self._said(one)))
            yield replace(one, caveats=tuple(dict.fromkeys((*one.caveats, *said)))) if said else one

    def _said(self, one: Finding) -> Iterator[Caveat]:
        members = one.evidence.members if one.evidence is not None else (one.key,)
        for key in members:
            yield from self.doubts.get(key, ())
            if one.baseline_runs and self.past:
                yield from self._changed(key, self.past.get((str(one.baseline_runs[-1]), key), {}))
        if self.trimmed and one.scope in (Scope.CURVE, Scope.CONFIG):
            yield Caveat.of("part_of_curve", points=one.n_points)

    def _changed(self, key: str, before: Mapping[str, str]) -> Iterator[Caveat]:
        now = self.texts.get(key, {})
        for name in sorted(before.keys() & now.keys()):
            if before[name] != now[name]:
                yield Caveat.of("setting_changed", field=name, baseline=before[name], candidate=now[name])


def settings(past: Store | None, new: Side) -> Settings:
    """What the candidate's rows and those of its past say of themselves beside their numbers."""
    promised = _promised(new.expected)
    texts: dict[str, Mapping[str, str]] = {}
    doubts: dict[str, tuple[Caveat, ...]] = {}
    columns = new.points.select("series", "status", "image", "extra")
    for row in columns.iter_rows(named=True):
        if row["status"] == "superseded":
            continue
        key, said = row["series"], texts_of(row)
        texts |= {key: said} if said else {}
        found = (
            image_of_config(row["image"], promised.get(key, ())),
            client_image(said.get("client_image"), row["image"]),
            _router(said.get("router"), new.series[key], new.entries),
        )
        if any(found):
            doubts[key] = tuple(caveat for caveat in found if caveat)
    earlier = past.texts(texts) if past is not None and texts else ()
    before = {(run, key): said for run, key, said in earlier}
    return Settings(doubts, texts, before, any(map(is_trimmed, new.runs)))


def _promised(expected: Iterable[Expected]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in expected:
        if one.image and one.task is None:
            found.setdefault(series_key(one.series), []).append(one.image)
    return found
