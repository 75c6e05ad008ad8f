"""Weeks of sweeps written as artifact folders, with the truth about them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path

import numpy as np

from store.records import RunKey
from tracker.simulate import answers, bench, files, script
from tracker.simulate.fleet import CONFIGS, EIGHT, JOBS
from tracker.simulate.sittings import Mask, Sitting, calendar, sittings
from tracker.simulate.truth import Story, StoryRun

DISPERSION = 0.6
"""Scores of the same questions scatter this share of their binomial error."""

HOURS_TO_RERUN = timedelta(hours=6)

SHARED_LUCK = 0.9
"""Correlation of the luck of the two GSM8K filters: they read the same answers."""


@dataclass(frozen=True)
class _Results:
    """What a run measured: a row per job (lost ones too), scores by place in `JOBS`, the order of collection."""

    rows: tuple[Mapping[str, object], ...]
    scores: Mapping[int, tuple[float, float]]
    order: tuple[int, ...]


@dataclass(frozen=True)
class _Attempt:
    """One attempt: which jobs have results in it, and which of them kept a folder of their own."""

    number: int
    present: Mask
    alone: Mask


def write_story(folder: Path, seed: int, weeks: int, end: datetime) -> Story:
    """Write the artifacts of `weeks` weeks of sweeps below `folder` and return the truth about them.

    One folder per run attempt, `<run id>-<attempt>`, laid out as `gh run download` does, and `run.json` with the run
    object; the last run starts at `end` (aware, UTC). A story needs four weeks at least (ValueError). The same
    arguments write the same bytes.
    """
    nights = calendar(end, weeks)
    if len(nights) < script.NIGHTS:
        raise ValueError(f"{weeks} weeks hold {len(nights)} nights; the story needs {script.NIGHTS}")
    room = bench.furnish(JOBS, np.random.default_rng([seed, 0]))
    runs: list[StoryRun] = []
    for sitting in sittings(nights, seed):
        results = _measured(sitting, room, np.random.default_rng([seed, 2, sitting.index]))
        runs.extend(_write_attempt(folder, sitting, results, attempt) for attempt in _attempts(sitting))
    return Story(seed, tuple(runs))


def _attempts(sitting: Sitting) -> Iterator[_Attempt]:
    """A rerun measures what the first attempt lost; its collected files carry the rest over, its job folders do not."""
    present = sitting.asked & ~sitting.lost
    if not sitting.late.any():
        yield _Attempt(1, present, present & sitting.artifacts_kept)
        return
    yield _Attempt(1, present & ~sitting.late, np.zeros_like(present))
    yield _Attempt(2, present, present & sitting.late)


def _measured(sitting: Sitting, room: bench.Bench, rng: np.random.Generator) -> _Results:
    engine = np.array([sitting.state.speed(job) for job in JOBS])
    columns = {key: values.tolist() for key, values in bench.measure(room, engine, sitting.machine, rng).items()}
    measured = ({key: values[place] for key, values in columns.items()} for place in range(len(JOBS)))
    rows = [
        files.row(job, metrics, *_identity(sitting, job.config.key))
        for job, metrics in zip(JOBS, measured, strict=True)
    ]
    for place, key, value in _spoilt(sitting):
        rows[place] = {**rows[place], key: value}
    return _Results(tuple(rows), _scores(sitting, rng), tuple(rng.permutation(len(JOBS)).tolist()))


def _identity(sitting: Sitting, config: str) -> tuple[str, str]:
    """Tag and recipe in force."""
    return sitting.state.tags[config], sitting.state.recipes[config]


def _spoilt(sitting: Sitting) -> Iterator[tuple[int, str, object]]:
    """Fields that were written wrong: place in `JOBS`, key, value."""
    night = -1 if sitting.night is None else sitting.night
    if night in script.STRANGE_LABELS:
        config, label = script.STRANGE_LABELS[night]
        yield _first(config), "hw", label
    if night in script.NOT_A_NUMBER:
        config, metric = script.NOT_A_NUMBER[night]
        yield _first(config), metric, math.nan


def _first(config: str) -> int:
    return next(place for place, job in enumerate(JOBS) if job.config.key == config)


def _scores(sitting: Sitting, rng: np.random.Generator) -> dict[int, tuple[float, float]]:
    """Place of an eval job in `JOBS` to its measured flexible and strict accuracy."""
    scores = {}
    for place in _evaluated(sitting.asked):
        flexible, strict = sitting.state.accuracy[JOBS[place].config.key]
        luck, own = rng.standard_normal(2)
        other = SHARED_LUCK * luck + math.sqrt(1 - SHARED_LUCK**2) * own
        scores[place] = (_score(flexible, luck), _score(strict, other))
    return scores


def _score(true: float, luck: float) -> float:
    """Share of right answers: a whole number of questions."""
    share = true + DISPERSION * files.standard_error(true) * luck
    return round(min(max(share, 0.0), 1.0) * files.QUESTIONS) / files.QUESTIONS


def _evaluated(asked: Mask) -> Iterator[int]:
    """Places of the jobs that get an eval: long prompts, at least 16 users, highest and median of a topology.

    On several nodes the highest alone.
    """
    eligible = [place for place, job in enumerate(JOBS) if asked[place] and job.isl == EIGHT[0] and job.conc >= 16]
    for _, group in groupby(eligible, key=lambda place: JOBS[place].curve):
        places = list(group)
        alone = JOBS[places[0]].config.multinode
        yield from sorted({places[-1]} if alone else {places[-1], places[(len(places) - 1) // 2]})


def _write_attempt(folder: Path, sitting: Sitting, results: _Results, attempt: _Attempt) -> StoryRun:
    """One folder of artifacts and the truth about it."""
    home = folder / f"{sitting.run_id}-{attempt.number}"
    failed = bool((sitting.asked & ~attempt.present).any())
    files.write(home / "run.json", _run_object(sitting, attempt.number, failed=failed))
    collected = [results.rows[place] for place in results.order if attempt.present[place]]
    files.write(home / "results_bmk" / "agg_bmk.json", collected)
    for place in np.flatnonzero(attempt.alone):
        job = JOBS[place]
        path = files.point_file(job, *_identity(sitting, job.config.key))
        files.write(home / path, results.rows[place])
    _write_evals(home, sitting, results)
    files.write(home / "changelog-metadata" / "changelog_metadata.json", _changelog(sitting))
    ran = [(job, bool(attempt.present[place])) for place, job in enumerate(JOBS) if sitting.asked[place]]
    files.write(home / "run-stats" / "run_stats.json", files.run_stats(ran))
    return _truth(home, sitting, attempt)


def _write_evals(home: Path, sitting: Sitting, results: _Results) -> None:
    """The collected scores, and the folders of single eval jobs where they are kept."""
    collected = []
    for place, (flexible, strict) in results.scores.items():
        job = JOBS[place]
        identity = _identity(sitting, job.config.key)
        folder = f"eval_{files.experiment(job)}_{files.result_name(job, *identity, (job.conc,))}"
        when = (sitting.when + timedelta(hours=3, seconds=97 * place)).strftime("%Y-%m-%dT%H-%M-%S.%f")
        source = f"{folder}/results_{when}.json"
        collected.append(files.agg_eval(job, flexible, strict, source))
        if sitting.artifacts_kept:
            files.write(home / folder / "meta_env.json", files.meta_env(job, *identity))
            files.write(home / source, files.lm_eval(job, flexible, strict))
            if job.config.key in answers.CONFIGS:
                told = answers.lines(flexible, strict, seed=sitting.run_id + place)
                path = home / folder / f"samples_gsm8k_{when}.jsonl"
                path.write_text("\n".join(told) + "\n", encoding="utf-8", newline="\n")
    files.write(home / "eval_results_all" / "agg_eval_all.json", collected)


def _changelog(sitting: Sitting) -> files.Json:
    return files.changelog(sitting.bumps, sitting.base_ref, sitting.head_sha)


def _started(sitting: Sitting, attempt: int) -> datetime:
    return sitting.when + HOURS_TO_RERUN * (attempt - 1)


def _run_object(sitting: Sitting, attempt: int, *, failed: bool) -> files.Json:
    """The run as GitHub's API describes the attempt."""
    started = _started(sitting, attempt)
    url = f"https://github.com/{files.REPOSITORY}/actions/runs/{sitting.run_id}"
    pull = sitting.aside.pull_request if sitting.aside else None
    return {
        "id": sitting.run_id,
        "name": "Run Sweep" if sitting.path == script.SWEEP else sitting.title,
        "display_title": sitting.title,
        "path": sitting.path,
        "event": sitting.event,
        "status": "completed",
        "conclusion": "failure" if failed else "success",
        "head_branch": sitting.branch,
        "head_sha": sitting.head_sha,
        "run_number": 4000 + sitting.index,
        "run_attempt": attempt,
        "previous_attempt_url": f"{url}/attempts/{attempt - 1}" if attempt > 1 else None,
        "pull_requests": [{"number": pull, "head": {"ref": sitting.branch}, "base": {"ref": "main"}}] if pull else [],
        "created_at": files.stamp(sitting.when),
        "run_started_at": files.stamp(started),
        "updated_at": files.stamp(started + timedelta(hours=5)),
        "html_url": url,
        "repository": {"full_name": files.REPOSITORY},
    }


def _truth(home: Path, sitting: Sitting, attempt: _Attempt) -> StoryRun:
    state, spoilt = sitting.state, {key: (place, value) for place, key, value in _spoilt(sitting)}
    strange, label = spoilt.pop("hw", (None, None))
    here = [(job, bool(attempt.present[p]) and p != strange) for p, job in enumerate(JOBS) if sitting.asked[p]]
    ran = sorted({job.config.key for job, _ in here})
    return StoryRun(
        key=RunKey(sitting.run_id, attempt.number),
        folder=home,
        started_at=_started(sitting, attempt.number),
        event=sitting.event,
        official=sitting.official,
        night=sitting.night,
        images={key: files.image(CONFIGS[key], state.tags[key]) for key in ran},
        recipes={key: state.recipes[key] for key in ran},
        speeds={job.curve: state.speed(job) for job, _ in here},
        accuracy={key: state.accuracy[key] for key in ran},
        points=tuple(job.key for job, present in here if present),
        missing=tuple(job.key for job, present in here if not present),
        outliers=sitting.outliers,
        bad_pool=sitting.bad_pool,
        strange_label=label if isinstance(label, str) else None,
        not_a_number=next((JOBS[place].key for place, _ in spoilt.values()), None),
    )
