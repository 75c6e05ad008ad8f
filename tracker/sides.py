"""The two sides of a comparison as the stores hold them: which runs, which rows, which scores."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from store import images
from store.duck import Store, said_by
from store.identity import config_key, curve_key, group_key, group_of, series_key
from store.readers import read
from store.records import (
    Caveat,
    ChangelogEntry,
    Expected,
    Finding,
    JobCount,
    JobRun,
    Level,
    Provenance,
    Rejection,
    Run,
    RunKey,
    Score,
    Series,
    Trouble,
    Unmatched,
    Withdrawal,
)
from store.runs import kind
from tracker import harness, partial, workload
from tracker.events import EVENTS, Event, Span, Timeline
from tracker.judge.groups import METRICS as FRONTIER_METRICS
from tracker.pairs import Baseline
from tracker.settings import Settings
from tracker.stats.noise import Scales

SCALES = "noise_scales"
"""Name of the note under which a store keeps what it has learned about its noise."""

LEARNED_OF = "noise_scales_of"
"""Name of the note that says what they were learned from."""

RUNS_LOOKED_AT = 24
"""Runs of a curve that a baseline is looked for in: some image bumps of a nightly curve, and a bound on the work."""

LEVEL_METRIC = "tput_per_gpu"
LEVELS_SHOWN = 20
"""Runs of a curve in a sparkline: as many as a glance takes in."""

_RUN = re.compile(r"run:(-?\d{1,19})(?:/(\d{1,6}))?")


@dataclass(frozen=True, slots=True)
class Side:
    """The candidate: its runs, every version of its points (wide), the valid ones (tidy), its scores and rejections."""

    runs: tuple[Run, ...]
    points: pl.DataFrame
    frame: pl.DataFrame
    scores: tuple[Score, ...]
    rejected: tuple[Rejection, ...]
    series: Mapping[str, Series]
    configs: frozenset[str]
    frontier: pl.DataFrame
    """The valid points again (tidy), by the metrics that a frontier needs."""
    jobs: tuple[JobCount, ...] = ()
    withdrawn: tuple[Caveat, ...] = ()
    """Why runs of it are withdrawn whole."""
    withdrawn_scores: tuple[tuple[Score, Caveat], ...] = ()
    """Scores that it had, each with the reason why it counts no more."""
    entries: tuple[ChangelogEntry, ...] = ()
    """What the runs were asked to measure."""
    expected: tuple[Expected, ...] = ()
    """What their configs promised."""
    job_runs: tuple[JobRun, ...] = ()
    """What became of their jobs."""

    @property
    def curves(self) -> tuple[str, ...]:
        """Every curve that the candidate tried to measure."""
        return tuple(sorted(set(self.points["curve"])))

    @property
    def newest(self) -> Run:
        return max(self.runs, key=lambda run: (run.started_at, run.attempt, run.id))


@contextmanager
def opened(store: Path, archive: Path | str, withdrawn: Sequence[Withdrawal] = ()) -> Iterator[Store | None]:
    """The store to read from, or None when nothing has ever been landed."""
    if not store.exists():
        yield None
        return
    with Store.open(store, archive, read_only=True, withdrawn=withdrawn) as found:
        yield found


@contextmanager
def candidate(
    text: str, past: Store | None, metrics: Sequence[str], withdrawn: Sequence[Withdrawal] = ()
) -> Iterator[Side]:
    """The candidate that a text names. A path is landed in a store of its own that is gone afterwards."""
    if text.strip() and (path := Path(text)).exists():
        with tempfile.TemporaryDirectory(prefix="tracker-") as folder, _apart(path, Path(folder), withdrawn) as own:
            yield _side(own, [RunKey(*row) for row in own.runs().select("id", "attempt").rows()], metrics)
        return
    if past is None:
        raise Trouble(f"there is neither a file {text!r} nor a store: land a sweep first with `tracker ingest PATH`")
    yield _chosen(text, past, metrics)


@contextmanager
def _apart(path: Path, folder: Path, withdrawn: Sequence[Withdrawal]) -> Iterator[Store]:
    with Store.open(":memory:", folder / "archive", withdrawn=withdrawn) as store:
        store.land_many(read([path]))
        yield store


def _chosen(text: str, past: Store, metrics: Sequence[str]) -> Side:
    if text == "latest":
        newest = past.newest_run()
        if newest is None:
            raise Trouble("the store holds no run that counts: land a sweep first with `tracker ingest PATH`")
        return _side(past, [newest.key], metrics)
    if found := _RUN.fullmatch(text):
        return _side(past, [_known(past, int(found[1]), found[2])], metrics)
    if text.startswith("image:"):
        return _side_of_image(past, text.removeprefix("image:"), metrics)
    raise Trouble(f"{text!r} is no candidate: write latest, run:ID[/ATTEMPT], image:REFERENCE, or a path that exists")


def _known(past: Store, number: int, attempt: str | None) -> RunKey:
    run = past.run(RunKey(number, int(attempt)) if attempt else number)
    if run is None:
        raise partial.absent(f"{number}{f'/{attempt}' if attempt else ''}", past)
    return run.key


def _side_of_image(past: Store, reference: str, metrics: Sequence[str]) -> Side:
    """The runs that measured an image, with the rows of that image alone."""
    wanted = images.canonical(reference) or ""
    measured = past.measured_images()
    same = {text for text in measured["image"].to_list() if _is_image(text, wanted)}
    keys = [
        RunKey(*row) for row in measured.filter(pl.col("image").is_in(list(same))).select("run_id", "attempt").rows()
    ]
    if not keys:
        raise Trouble(f"no run in the store measured {wanted!r}: `tracker store info` names the newest run")
    whole = _side(past, sorted(set(keys)), metrics)
    kept = whole.points.filter(pl.col("image").is_in(list(same)))
    rows, frontier = (frame.filter(pl.col("image").is_in(list(same))) for frame in (whole.frame, whole.frontier))
    scores = tuple(score for score in whole.scores if score.image in same)
    # What the runs promised is more than one image: beside it everything else would be missing.
    unasked: dict[str, Any] = {"job_runs": (), "expected": (), "entries": ()}
    told: dict[str, Any] = {"frame": rows, "frontier": frontier, "scores": scores, **unasked}
    return replace(whole, points=kept, configs=frozenset(kept["config"]), **told)


def _is_image(text: str, wanted: str) -> bool:
    return text == wanted or images.compare(text, wanted) is images.Sameness.SAME


def _side(store: Store, keys: Sequence[RunKey], metrics: Sequence[str]) -> Side:
    runs = tuple(run for key in keys if (run := store.run(key)))
    current = _newest_attempts(runs)
    points = pl.concat([store.points(run.key) for run in current], how="vertical_relaxed")
    scores = tuple(score for run in current for score in store.scores(run.key))
    return Side(
        runs=tuple(current),
        points=points,
        frame=store.tidied(points, metrics),
        scores=scores,
        rejected=tuple(row for run in current for row in store.rejections(run.key)),
        series=store.series(set(points["series"])),
        configs=frozenset(points["config"]),
        frontier=store.tidied(points, FRONTIER_METRICS),
        jobs=tuple(job for run in current for job in store.jobs(run.key)),
        withdrawn=tuple(reason for run in current if (reason := store.withdrawn(run.key))),
        withdrawn_scores=tuple(pair for run in current for pair in store.withdrawn_scores(run.key)),
        entries=tuple(entry for run in current for entry in store.changelog(run.key)),
        expected=tuple(one for run in current for one in store.expected(run.key)),
        job_runs=tuple(job for run in current for job in store.job_runs(run.key)),
    )


def of_runs(store: Store, keys: Sequence[RunKey], metrics: Sequence[str]) -> Side:
    """Some runs of the store as one candidate: they are judged together."""
    return _side(store, keys, metrics)


def only(new: Side, curves: Collection[str], evals: Collection[str]) -> Side:
    """A candidate less everything but some curves and some evals (`config task`)."""
    return replace(
        new,
        points=new.points.filter(pl.col("curve").is_in(list(curves))),
        frame=new.frame.filter(pl.col("curve").is_in(list(curves))),
        scores=tuple(score for score in new.scores if f"{config_key(score.series)} {score.task}" in evals),
        configs=frozenset(),
    )


def _newest_attempts(runs: Iterable[Run]) -> list[Run]:
    """One attempt of each run: attempts are no replicates."""
    newest = {run.id: run for run in sorted(runs, key=lambda run: run.attempt)}
    return sorted(newest.values(), key=lambda run: (run.started_at, run.attempt, run.id))


def history(past: Store | None, new: Side, baseline: Baseline, metrics: Sequence[str]) -> pl.DataFrame:
    """The official rows of the candidate's curves that a baseline may be chosen from (tidy)."""
    if past is None or not new.runs:
        return new.frame.clear()
    if baseline.kind == "run":
        return _of_run(past, baseline, metrics)
    ids = {run.id for run in new.runs}
    most = RUNS_LOOKED_AT if baseline.kind in ("previous", "last-good") else None
    rows = past.history(new.curves, metrics, before=new.newest, without=ids, most=most)
    return rows.filter(pl.col("official"))


def group_history(past: Store | None, new: Side, baseline: Baseline) -> pl.DataFrame:
    """The official rows of every group that the candidate has a curve of, layouts that are gone since among them."""
    if past is None or not new.runs:
        return new.frontier.clear()
    if baseline.kind == "run":
        return _of_run(past, baseline, FRONTIER_METRICS)
    groups = {group_key(series) for series in new.series.values()}
    wanted = [curve for curve in past.curves_of(new.configs) if group_of(curve) in groups]
    ids = {run.id for run in new.runs}
    most = RUNS_LOOKED_AT if baseline.kind in ("previous", "last-good") else None
    rows = past.history(wanted, FRONTIER_METRICS, before=new.newest, without=ids, most=most)
    return rows.filter(pl.col("official"))


def _of_run(past: Store, baseline: Baseline, metrics: Sequence[str]) -> pl.DataFrame:
    """The rows of the run that was asked for by name, as they stood after that attempt."""
    return past.tidy(named_run(past, baseline).key, metrics)


def named_run(past: Store, baseline: Baseline) -> Run:
    """The official run that was asked for by name."""
    number, _, attempt = baseline.value.partition("/")
    if not re.fullmatch(r"-?\d{1,19}", number) or not re.fullmatch(r"\d{0,6}", attempt):
        raise Trouble(f"run:{baseline.value} names no run: write run:ID or run:ID/ATTEMPT")
    run = past.run(_known(past, int(number), attempt or None))
    if run is None:
        raise partial.absent(baseline.value, past)
    if reason := past.withdrawn(run.key):
        said = dict(reason.values)
        raise Trouble(
            f"run {run.key} is withdrawn since {said['since']} ({said['reason']}), so it cannot be a baseline: "
            "name another one, or take it out of the file of withdrawals"
        )
    reasons = past.standing(run.key).reasons
    if reasons:
        why = ", ".join(f"{name} {value}" for reason in reasons for name, value in reason.values)
        raise Trouble(
            f"run {run.key} is not official ({why}), so it cannot be a baseline: "
            "land it with `tracker ingest --official` if it may be one"
        )
    return run


def levels(rows: pl.DataFrame, new: Side) -> dict[str, tuple[Level, ...]]:
    """How fast each run of a curve was beside the curve's median run, oldest first, the candidate last.

    Each point is held against its own median over the runs, so that a run that lacks the fast points is not slow.
    """
    return levels_of(pl.concat([rows, new.frame], how="diagonal_relaxed"))


def levels_of(rows: pl.DataFrame) -> dict[str, tuple[Level, ...]]:
    """The same of some rows (tidy) by themselves."""
    speed = rows.filter(pl.col("metric") == LEVEL_METRIC)
    own = pl.col("value") / pl.col("value").median().over("series")
    runs = (
        speed.with_columns(level=own)
        .group_by("curve", "run")
        .agg(pl.col("level").median(), pl.col("started_at").min(), pl.col("image").min())
        .sort("curve", "started_at", "run")
        .group_by("curve", maintain_order=True)
        .tail(LEVELS_SHOWN)
    )
    found: dict[str, list[Level]] = {}
    for curve, run, level, started_at, image in runs.iter_rows():
        found.setdefault(curve, []).append(Level(_key(run), started_at, level, image))
    return {curve: tuple(told) for curve, told in found.items()}


def _key(text: str) -> RunKey:
    number, _, attempt = text.partition("/")
    return RunKey(int(number), int(attempt))


def provenance(past: Store | None, new: Side, base: Sequence[Run]) -> dict[RunKey, Provenance]:
    """Of every run of both sides: its kind, and when its rows were measured (its start where no row tells)."""
    times = past.measured_runs({run.id for run in base}) if past is not None and base else {}
    before = {run.key: _provenance(run, times.get(run.id)) for run in base}
    return before | {run.key: _provenance(run, _own_times(run, new)) for run in new.runs}


def _provenance(run: Run, times: tuple[datetime | None, datetime | None] | None) -> Provenance:
    earliest, latest = times or (None, None)
    return Provenance(kind(run, measured=times is not None), earliest or run.started_at, latest or run.started_at)


def _own_times(run: Run, new: Side) -> tuple[datetime | None, datetime | None] | None:
    rows = new.points.filter(pl.col("run") == str(run.key))["created_at"].to_list()
    rows += [score.place.created_at for score in new.scores if score.run.id == run.id]
    known = [moment for moment in rows if moment is not None]
    return (min(known, default=None), max(known, default=None)) if rows else None


def sweeps_before(past: Store | None, new: Side) -> Iterator[tuple[RunKey, pl.DataFrame]]:
    """The newest official sweep of each of the candidate's configs, with what it measured of them."""
    if past is None or not new.configs:
        return
    newest = past.newest_of_configs(new.configs, new.newest, {run.id for run in new.runs})
    for key in sorted(set(newest.values())):
        configs = [config for config, run in newest.items() if run == key]
        yield key, past.points(key, ()).filter(pl.col("config").is_in(configs) & (pl.col("status") != "withdrawn"))


@dataclass(frozen=True, slots=True)
class Comparable:
    """Both sides without what may not be compared (tidy), what that was, and when everything was measured."""

    history: pl.DataFrame
    candidate: pl.DataFrame
    apart: tuple[Unmatched, ...]
    findings: tuple[Finding, ...]
    """Metrics of curves that were redefined between the sides."""
    timeline: Timeline


def comparable(past: Store | None, new: Side, rows: pl.DataFrame, events: Sequence[Event] = EVENTS) -> Comparable:
    """Both sides without what was measured under another workload or by another definition."""
    full = _full_length(past, new, rows)
    asked = _same_workload(past, new, full)
    timeline = _timeline(past, new, rows, events)
    found = harness.part(asked.history, asked.candidate, _curves(new), timeline)
    apart = (*full.apart, *asked.apart, *found.apart)
    return Comparable(found.history, found.candidate, apart, found.findings, timeline)


def _full_length(past: Store | None, new: Side, rows: pl.DataFrame) -> workload.Alike:
    agentic = [curve for curve, series in _curves(new).items() if series.scenario == "agentic_traces"]
    if not agentic:
        return workload.Alike(rows, new.frame, ())
    before = runs_by_text(past, rows.filter(pl.col("curve").is_in(agentic))["run"].unique())
    return workload.full_length(rows, new.frame, agentic, _shortened(before), _shortened(new.runs))


def _shortened(runs: Iterable[Run]) -> list[str]:
    return [str(run.key) for run in runs if workload.FAST in run.labels]


def _same_workload(past: Store | None, new: Side, both: workload.Alike) -> workload.Alike:
    valid = new.points.filter(pl.col("status") == "valid").iter_rows(named=True)
    told = ((row["series"], said_by(row, workload.HIT_RATES)) for row in valid)
    said = {key: facts for key, facts in told if facts}
    earlier = past.sayings(said, workload.HIT_RATES) if past is not None and said else ()
    return workload.alike(both.history, both.candidate, new.series, said, earlier)


def _curves(new: Side) -> dict[str, Series]:
    return {curve_key(one): one for one in new.series.values()}


LATE_UPLOAD = timedelta(days=30)
"""A row may be this much younger or older than the start of its run's newest attempt: no run lives longer."""


def _timeline(past: Store | None, new: Side, rows: pl.DataFrame, events: Sequence[Event]) -> Timeline:
    """When every run of both sides measured each curve. Times of rows are looked up only where an event is near."""
    own = new.points.select("run", "curve", earliest=pl.coalesce("created_at", "started_at"))
    started = rows.select("run", "curve", earliest="started_at").unique()
    both = pl.concat([own, started], how="vertical_relaxed")
    rough = harness.spans(both.with_columns(latest=pl.col("earliest")))
    if past is None or not Timeline.of(events, rough, LATE_UPLOAD).events:
        return Timeline.of(events, rough)
    exact = harness.spans(past.measured(new.curves))
    mine = set(own["run"])
    return Timeline.of(events, {place: _exact(exact, place, when, mine) for place, when in rough.items()})


def _exact(exact: Mapping[tuple[str, str], Span], place: tuple[str, str], rough: Span, mine: Collection[str]) -> Span:
    return rough if place[0] in mine else exact.get(place, rough)


def with_learned_scales(settings: Settings, past: Store | None) -> Settings:
    """Settings with the noise that the store has learned at its last landing, unless they bring their own."""
    kept = past.note(SCALES) if past is not None and settings.scales is None else None
    return settings if kept is None else replace(settings, scales=msgspec.convert(kept, Scales))


def scales_as_json(scales: Scales) -> object:
    """Learned noise as the store keeps it."""
    return msgspec.to_builtins(scales)


def runs_by_text(past: Store | None, texts: Iterable[str]) -> tuple[Run, ...]:
    """The runs of some text keys, oldest first."""
    return past.named_runs(set(texts)) if past is not None else ()


def drawn(past: Store | None, levels: Mapping[str, Sequence[Level]], new: Side) -> tuple[Run, ...]:
    """The runs that histories are drawn of, the candidate's apart."""
    told = {str(one.run) for runs in levels.values() for one in runs}
    return runs_by_text(past, told - {str(run.key) for run in new.runs})


def past_scores(past: Store | None, new: Side, base: Sequence[Run], baseline: Baseline) -> tuple[Score, ...]:
    """Scores that evals may be held against: of the candidate's own evals, and all that the baseline runs have."""
    if past is None or not new.runs:
        return ()
    if baseline.kind == "run":
        return past.scores(named_run(past, baseline).key)
    ids = {run.id for run in new.runs}
    keys = {series_key(score.series) for score in new.scores}
    beside = {run.id for run in base} - ids
    found = past.score_history(keys, runs=beside, before=new.newest, without=ids)
    return tuple(score for score in found if _fits(score, past, new, baseline))


def _fits(score: Score, past: Store, new: Side, baseline: Baseline) -> bool:
    """True of a score that the asked baseline (an image, a date, a window) may hold."""
    if baseline.kind == "image":
        return score.image is not None and _is_image(score.image, images.canonical(baseline.value) or "")
    if baseline.kind not in ("date", "window"):
        return True
    run = past.run(score.run)
    started = run.started_at if run else new.newest.started_at
    if baseline.kind == "date":
        return started.date().isoformat() <= baseline.value
    return new.newest.started_at - started <= timedelta(days=int(baseline.value[:-1]))
