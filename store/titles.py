"""Names of sweep jobs: what each says of the points that it measures, and which job stands for which point.

A name is free text of a workflow file and has changed its shape many times. It is read tolerantly: what it names must
agree with a point, what it does not name says nothing. Of several names that fit, the one that says the most counts.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias

from store import identity, limits
from store.records import Expected, JobRun, Role, Series

AGENTIC = "agentic_traces"
FIXED = "single_turn"

ENGINES: Mapping[str, str] = MappingProxyType(
    {"sgl": "sglang", "dyn-sgl": "dynamo-sglang", "sgl-disagg": "sglang-disagg", **{f: f for f in identity.FRAMEWORKS}}
)
"""Engines as the names of jobs spell them, to the spelling of the configs."""

_LANE = re.compile(r"(?P<multi>multi-node |single-node )?(?P<agentic>agentic ?)?(?P<eval>eval)?(?P<lengths>\d+k\d+k)?")
_LEAD = re.compile(r"^(?:klaud\s*\|\s*)?(?:p-?\d+(?:\.\d+)?\s*\|\s*)?", re.IGNORECASE)
_EVAL = re.compile(r"\|\s*(eval-only|eval)\s*$", re.IGNORECASE)
_LENGTHS = re.compile(r"(?:^|_)(\d+)k(\d+)k$")
_CONCS = re.compile(r"(?<!\S)c(?:onc)?[-=]?(\d{1,9}(?:x\d{1,9})*)(?!\S)")
_POOLS = re.compile(
    r"(?:(?P<pn>\d+)P\s+)?\((?P<p>TP[^)]*)\)(?:\s*x\s*(?P<dn>\d+)D\s+\((?P<d>TP[^)]*)\))?|"
    r"P\((?P<op>tp[^)]*)\)\s*D\((?P<od>tp[^)]*)\)"
)
_SHAPE = re.compile(r"TP\d+(?:/(?:PP|DCP|PCP|EP)\d+|/DPA)*")
_OLD_SHAPE = re.compile(r"(?<![\w-])(tp|pp|dcp|pcp|ep|dpa?|nw)[-=]?(\d+|true|false)(?!\w)")
_OFFLOAD = re.compile(r"\b(\w+) KV offload\b")
_MTP = {"off": "none", "on": "mtp"}
_FIELDS = MappingProxyType(
    {"tp": "tp", "pp": "pp", "dcp": "dcp", "pcp": "pcp", "ep": "ep", "dp": "dp_attention", "dpa": "dp_attention"}
    | {"nw": "workers"}
)

Said: TypeAlias = tuple[tuple[str, int | bool], ...]
"""Fields of a side that a name tells, with their values."""


@dataclass(frozen=True, slots=True)
class Title:
    """What a job's name says; None, or nothing, is not said."""

    is_eval: bool
    is_throughput: bool
    concs: tuple[int, ...] = ()
    model: str | None = None
    precision: str | None = None
    gpu: str | None = None
    framework: str | None = None
    spec: str | None = None
    offload: bool | None = None
    scenario: str | None = None
    lengths: tuple[int, int] | None = None
    multinode: bool | None = None
    prefill: Said = ()
    decode: Said | None = None
    """None where no decode side is named; empty where one is denied."""

    @property
    def says(self) -> int:
        """How many things it tells: of two names that fit one point, the fuller one is of it."""
        named = (self.model, self.precision, self.gpu, self.framework, self.spec, self.offload, self.scenario)
        more = (self.lengths, self.multinode, self.decode)
        return sum(one is not None for one in (*named, *more)) + len(self.prefill) + len(self.decode or ())


@lru_cache(maxsize=8192)
def parse(name: str) -> Title | None:
    """What a job's name says; None for a job that measures nothing (`setup`, `collect-results / ...`).

    >>> parse("single-node 8k1k / p7 | dsr1 fp8 h200 sgl TP8/EP8 mtp c64").concs, parse("collect-evals / collect")
    ((64,), None)
    """
    lane, _, text = name[: limits.TITLE_CHARACTERS].rpartition(" / ")
    place = _lane(lane)
    words = _LEAD.sub("", text)
    tail = _EVAL.search(words)
    concs = _CONCS.findall(words)
    found = _words(_EVAL.sub("", words))
    if place is None or not (concs or found.model or found.prefill):
        return None
    only = place.is_eval or (tail is not None and tail[1].lower() == "eval-only")
    return replace(
        found,
        is_eval=only or tail is not None,
        is_throughput=not only,
        concs=tuple(map(int, concs[-1].split("x"))) if concs else (),
        scenario=place.scenario or found.scenario,
        lengths=place.lengths or found.lengths,
        multinode=place.multinode if place.multinode is not None else found.multinode,
        offload=found.offload if place.scenario == AGENTIC else None,
    )


def _lane(text: str) -> Title | None:
    """What the first part of a name says: the lane of the workflow. None for a lane that measures nothing."""
    blank = Title(False, True)
    lane = text.rpartition(" / ")[2].strip().lower()
    if lane in ("", "canary"):
        return replace(blank, multinode=False) if lane else blank
    found = _LANE.fullmatch(lane)
    if not found or not any(found.groups()):
        # An older workflow names its lanes after the experiment or the benchmark.
        return None if _is_chore(lane) else blank
    lengths = _lengths(found["lengths"] or "")
    is_eval = bool(found["eval"])
    multi = (found["multi"] or "").strip()
    return replace(
        blank,
        is_eval=is_eval,
        multinode=multi == "multi-node" if multi or is_eval or found["agentic"] else None,
        scenario=AGENTIC if found["agentic"] else FIXED,
        lengths=lengths,
    )


def _is_chore(lane: str) -> bool:
    return lane.startswith(("collect", "setup", "check", "compare", "upload", "trigger", "calc", "reuse", "send"))


def _words(text: str) -> Title:
    """The words of a name that a table knows, and its parallelism."""
    tokens = re.sub(r"[|,]", " ", _POOLS.sub(" ", text)).split()
    title = replace(_sides(text), model=None)
    for token in tokens:
        title = _with_token(title, token)
    is_new = bool(re.search(r"(?<![\w-])\(?TP\d", text))
    if is_new:
        # Names of this shape leave out what is off.
        offload = any(one[1].lower() != "none" for one in _OFFLOAD.finditer(text))
        title = replace(title, spec=title.spec or "none", offload=offload)
    return title


def _with_token(title: Title, token: str) -> Title:
    """The title with what one word adds to it; the first word of a kind counts."""
    low = token.lower()
    if title.model is None and (prefix := _model(low)):
        return replace(title, model=prefix, lengths=title.lengths or _lengths(low))
    if title.precision is None and low in identity.PRECISIONS:
        return replace(title, precision=identity.precision(low))
    if title.gpu is None and not (gpu := identity.hardware(low).gpu).startswith(identity.UNKNOWN):
        return replace(title, gpu=gpu)
    if title.framework is None and low in ENGINES:
        return replace(title, framework=identity.framework(ENGINES[low]))
    spec = _spec(low)
    return replace(title, spec=spec) if spec and title.spec is None else title


def _model(word: str) -> str | None:
    prefix = re.sub(r"_(?:\d+k\d+k|agentic.*)$", "", word)
    found = identity.model(prefix, None)
    return None if found.startswith(identity.UNKNOWN) else found


def _lengths(word: str) -> tuple[int, int] | None:
    found = _LENGTHS.search(word)
    return (int(found[1]) * 1024, int(found[2]) * 1024) if found else None


def _spec(word: str) -> str | None:
    kind, _, value = word.partition("-")
    if kind == "mtp" and value in _MTP:
        return _MTP[value]
    bare = value if kind == "spec" else word
    known = identity.SPECULATIONS.get(bare) if bare else None
    return known if known and (known != "none" or kind == "spec") else None


def _sides(text: str) -> Title:
    """Parallelism of one engine, or of prefill and decode pools."""
    blank = Title(False, True)
    pools = _POOLS.search(text)
    if pools and pools["p"]:
        prefill = _new(pools["p"], pools["pn"])
        decode = _new(pools["d"], pools["dn"]) if pools["d"] else ()
        return replace(blank, prefill=prefill, decode=decode, multinode=True)
    if pools:
        prefill, decode = _old(pools["op"]), _old(pools["od"])
        split = dict(decode).get("workers", 1) != 0 and dict(decode).get("tp", 1) != 0 and "disagg-false" not in text
        return replace(blank, prefill=prefill, decode=decode if split else (), multinode=True)
    shape = _SHAPE.search(text)
    if shape:
        return replace(blank, prefill=_new(shape[0], None), decode=(), multinode=False)
    return replace(blank, prefill=_old(text))


def _new(text: str, workers: str | None) -> Said:
    """`TP8/PP2/EP8/DPA`: what is not named is one, or off."""
    said: dict[str, int | bool] = {"pp": 1, "dcp": 1, "pcp": 1, "ep": 1, "dp_attention": "DPA" in text.split("/")}
    said |= {_FIELDS[name.lower()]: int(value) for name, value in re.findall(r"(TP|PP|DCP|PCP|EP)(\d{1,6})", text)}
    return tuple((said | ({"workers": int(workers)} if workers else {})).items())


def _old(text: str) -> Said:
    """`tp=8 ep=1 dpa=false`, `tp4/ep4/dptrue/nw1`: what is not named is not known."""
    pairs = [(name, value) for name, value in _OLD_SHAPE.findall(text) if value.isdigit() != name.startswith("dp")]
    return tuple({_FIELDS[name]: int(v) if v.isdigit() else v == "true" for name, v in pairs}.items())


_Titled: TypeAlias = "tuple[Title, JobRun | None]"


# --- which job is of which point ----------------------------------------------------------------------------------


def fits(title: Title, wanted: Expected) -> bool:
    """Whether nothing that the name says contradicts the point or eval."""
    series, is_eval = wanted.series, wanted.task is not None
    if not (title.is_eval if is_eval else title.is_throughput):
        return False
    if title.concs and series.conc not in title.concs:
        return False
    own = {name: getattr(series, name) for name in ("model", "precision", "gpu", "framework", "spec", "scenario")}
    if any(getattr(title, name) not in (None, value) for name, value in own.items()):
        return False
    return _places_fit(title, series)


def _places_fit(title: Title, series: Series) -> bool:
    layout = series.layout
    if title.multinode is not None and title.multinode != layout.multinode:
        return False
    if title.lengths is not None and title.lengths != (series.isl, series.osl):
        return False
    if title.offload is not None and title.offload != series.offload:
        return False
    if title.decode is not None and bool(title.decode) != (layout.decode is not None):
        return False
    return _side_fits(title.prefill, layout.prefill) and (
        layout.decode is None or _side_fits(title.decode or (), layout.decode)
    )


def _side_fits(said: Said, role: Role) -> bool:
    # Rows and configs may write 0 for "not split", which the layout has as 1.
    return all(getattr(role, name) == (value if isinstance(value, bool) else max(value, 1)) for name, value in said)


def attribute(jobs: Iterable[JobRun], expected: Iterable[Expected]) -> Mapping[Expected, JobRun]:
    """The job that stands for each expected point or eval, where the names tell one.

    Of the attempts of one job the newest counts that was not skipped. Two names that fit a point equally well and
    ended differently stand for nothing: which of them measured it cannot be told.
    """
    named: dict[str, list[JobRun]] = defaultdict(list)
    for job in jobs:
        named[job.name].append(job)
    titled = [(title, newest(same)) for name, same in named.items() if (title := parse(name))]
    index: dict[tuple[str | None, int | None], list[_Titled]] = defaultdict(list)
    for title, last in titled:
        for conc in title.concs or (None,):
            index[title.model, conc].append((title, last))
    told = ((one, _told([pair for pair in _near(index, one) if fits(pair[0], one)])) for one in expected)
    return MappingProxyType({one: job for one, job in told if job is not None})


def _near(index: Mapping[tuple[str | None, int | None], list[_Titled]], one: Expected) -> Iterator[_Titled]:
    """Names of the point's model and concurrency, or of none: a sweep has hundreds of jobs and of points."""
    for model in (one.series.model, None):
        for conc in (one.series.conc, None):
            yield from index.get((model, conc), ())


def counting(same: Sequence[JobRun]) -> list[JobRun]:
    """Of jobs with one name those of the newest attempt that was not skipped."""
    ran = [job for job in same if job.conclusion != "skipped"] or same
    last = max(job.attempt for job in ran)
    return [job for job in ran if job.attempt == last]


def newest(same: Sequence[JobRun]) -> JobRun | None:
    """The one that counts of jobs with one name; None where several of one attempt ended differently."""
    rivals = counting(same)
    if len({(job.status, job.conclusion) for job in rivals}) > 1:
        return None
    epoch = datetime.min.replace(tzinfo=UTC)
    return max(rivals, key=lambda job: (job.completed_at or epoch, job.url or ""))


def _told(fitting: Sequence[_Titled]) -> JobRun | None:
    most = max((title.says for title, _ in fitting), default=0)
    jobs = [job for title, job in fitting if title.says == most]
    known = [job for job in jobs if job is not None]
    if not known or len(known) < len(jobs) or len({(job.status, job.conclusion) for job in known}) > 1:
        return None
    return max(known, key=lambda job: (job.attempt, job.name, job.url or ""))
