"""How often the judge cries wolf and how much it finds: on real sweeps, on simulated ones, on the lab's boards.

python -m bench.calibration stat-eval DIR     the public half of the evaluation data, through `compare_frames`
python -m bench.calibration simulate [--full] three noises, histories and sizes of sweeps
python -m bench.calibration lab FILE          sweeps of two boards whose truth is known
"""

from __future__ import annotations

import argparse
import json
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl

from store.records import Finding
from tracker import workers
from tracker.frames import compare_frames, learn_scales
from tracker.judge.sweep import judge_frames, judge_settled
from tracker.pairs import Baseline, CurvePair, pair
from tracker.settings import Settings
from tracker.stats.noise import Scales
from tracker.workers import ALONE, Crew, processors

CALLED = ("regression", "improvement", "mixed")
LOSSES = ("regression", "mixed")
HIGHER = ("tput_per_gpu", "output_tput_per_gpu", "input_tput_per_gpu", "median_intvty", "p99_intvty")
GATES = ("tput_per_gpu", "median_tpot")


# ---------------------------------------------------------------- the evaluation data


@dataclass(frozen=True)
class Case:
    """A candidate run of one curve with the k runs before it, all of one image and recipe."""

    curve: str
    k: int
    history: pl.DataFrame
    candidate: pl.DataFrame
    multinode: bool
    incident: bool


def tidy(points: pl.DataFrame, metrics: Sequence[str]) -> pl.DataFrame:
    """The wide published points as a tidy frame."""
    wide = points.select(
        run=pl.format("{}/{}", "run_id", "attempt"),
        started_at=pl.col("date").cast(pl.Datetime("us", "UTC")),
        image="image",
        recipe="recipe",
        curve="curve_id",
        series="series_id",
        conc="conc",
        multinode="multinode",
        incident="incident",
        stretch="stretch",
        **{name: f"m_{name}" for name in metrics},
    )
    keys = [name for name in wide.columns if name not in metrics]
    return wide.unpivot(metrics, index=keys, variable_name="metric", value_name="value").drop_nulls("value")


def cases(rows: pl.DataFrame, ks: Sequence[int]) -> Iterator[Case]:
    """Every run of a stretch against the k runs before it, on the points that all of them measured."""
    for (curve,), of in rows.group_by("curve", maintain_order=True):
        for dates in _linked(of):
            for k in ks:
                for j in range(k, len(dates)):
                    made = _case(str(curve), of, dates[j - k : j], dates[j])
                    if made is not None:
                        yield made


def _linked(rows: pl.DataFrame) -> list[list[datetime]]:
    """Dates of one curve, joined where a series has them in one stretch."""
    groups: list[set[datetime]] = []
    for dates in rows.group_by("stretch").agg(pl.col("started_at").unique())["started_at"].to_list():
        touching = [group for group in groups if group & set(dates)]
        groups = [group for group in groups if group not in touching] + [set(dates).union(*touching)]
    return sorted(sorted(group) for group in groups if len(group) > 1)


def _case(curve: str, rows: pl.DataFrame, before: Sequence[datetime], date: datetime) -> Case | None:
    dates = [*before, date]
    chosen = rows.filter(pl.col("started_at").is_in(dates)).unique(
        ["series", "metric", "started_at"], keep="last", maintain_order=True
    )
    whole = chosen.filter(
        (pl.col("started_at").n_unique().over("series") == len(dates))
        & (pl.col("stretch").n_unique().over("series") == 1)
    )
    if whole.is_empty():
        return None
    is_new = pl.col("started_at") == date
    run = pl.format("{}-{}", "curve", pl.col("started_at").dt.date())
    named = whole.with_columns(
        run=run,
        recipe=pl.lit(None, dtype=pl.String),
        image=pl.when(is_new).then(pl.lit("img-B")).otherwise(pl.lit("img-A")),
    )
    facts = named.row(0, named=True)
    incident = bool(named["incident"].any())
    drop = ("incident", "stretch")
    return Case(
        curve,
        len(before),
        named.filter(~is_new).drop(drop),
        named.filter(is_new).drop(drop),
        facts["multinode"],
        incident,
    )


Shift = Callable[[pl.DataFrame], dict[str, float]]
"""Candidate rows -> factor of speed per series."""


def _uniform(rows: pl.DataFrame) -> dict[str, float]:
    return dict.fromkeys(rows["series"].unique(), 1.0)


def _one(rows: pl.DataFrame) -> dict[str, float]:
    names = sorted(rows["series"].unique())
    seed = sum(map(ord, names[0] + str(rows["started_at"][0])))
    return {names[int(np.random.default_rng(seed).integers(len(names)))]: 1.0}


def _upper(rows: pl.DataFrame) -> dict[str, float]:
    names = rows.unique("series").sort("conc", "series")["series"].to_list()
    return dict.fromkeys(names[len(names) // 2 :] if len(names) > 1 else names, 1.0)


PLANTED: dict[str, tuple[Shift, tuple[float, ...]]] = {
    "curve": (_uniform, (-0.02, -0.03, -0.05)),
    "one_point": (_one, (-0.05, -0.10)),
    "high_conc": (_upper, (-0.05,)),
}


def plant(rows: pl.DataFrame, shift: Shift, delta: float) -> pl.DataFrame:
    """The candidate slower by |delta| where `shift` says so; time to first token is left alone."""
    slower = pl.col("series").is_in(list(shift(rows))) & ~pl.col("metric").str.contains("ttft")
    factor = pl.when(pl.col("metric").is_in(HIGHER)).then(1 + delta).otherwise(1 / (1 + delta))
    return rows.with_columns(value=pl.when(slower).then(pl.col("value") * factor).otherwise(pl.col("value")))


@dataclass(frozen=True)
class Evaluation:
    """What is tried on the evaluation data."""

    folder: Path
    ks: tuple[int, ...]
    metrics: tuple[str, ...]
    planted: bool = True
    thin: int = 0


def stat_eval(asked: Evaluation, crew: Crew = ALONE) -> pl.DataFrame:
    """One row a case, scenario, metric: the verdict on the curve. Each worker reads the data by itself."""
    curves = _evaluated(asked)["curve"].unique(maintain_order=True).to_list()
    return pl.concat(part for parts in workers.map(partial(_of_curve, asked), curves, crew) for part in parts)


@cache
def _evaluated(asked: Evaluation) -> pl.DataFrame:
    points = pl.read_parquet(asked.folder / "data" / "points_public.parquet").sort("curve_id", "series_id", "date")
    return tidy(points, asked.metrics)


def _of_curve(asked: Evaluation, curve: str) -> list[pl.DataFrame]:
    rows = _evaluated(asked)
    others = rows.filter(pl.col("curve") != curve).drop("incident", "stretch")
    own = rows.filter(pl.col("curve") == curve)
    answers = []
    for case in cases(own.filter(pl.len().over("stretch", "series", "metric") >= 2), asked.ks):
        past = pl.concat([others, case.history])
        settings = Settings(scales=learn_scales(past))
        todo = [("none", 0.0, case.candidate)]
        if asked.planted:
            todo += [(n, d, plant(case.candidate, f, d)) for n, (f, ds) in PLANTED.items() for d in ds]
        for name, delta, whole in todo:
            thin = asked.thin
            candidate = whole.filter(pl.col("series").rank("dense") % 3 != thin - 1) if thin else whole
            if candidate.is_empty():
                continue
            found = compare_frames(past, candidate, settings).filter(pl.col("scope") == "curve")
            answers.append(
                found.with_columns(
                    k=case.k,
                    case=pl.lit(candidate["run"][0]),
                    multinode=case.multinode,
                    incident=case.incident,
                    scenario=pl.lit(name),
                    delta=delta,
                )
            )
    return answers


def stat_eval_table(answers: pl.DataFrame) -> pl.DataFrame:
    """False alarms, equivalents and finds per number of baseline runs, node class and metric."""
    clean = answers.filter(~pl.col("incident"))
    keys = ["metric", "multinode", "k"]
    none = (
        clean.filter(pl.col("scenario") == "none")
        .group_by(keys)
        .agg(
            n=pl.len(),
            false=pl.col("verdict").is_in(CALLED).sum(),
            suspected=(pl.col("verdict") == "suspected").sum(),
            equivalent=(pl.col("verdict") == "equivalent").mean(),
        )
    )
    power = (
        clean.filter(pl.col("scenario") != "none")
        .with_columns(name=pl.format("{}{}", "scenario", (pl.col("delta") * 100).round().cast(pl.Int64)))
        .group_by([*keys, "name"])
        .agg(found=pl.col("verdict").is_in(LOSSES).mean())
    )
    if not power.is_empty():
        none = none.join(power.pivot("name", index=keys, values="found", sort_columns=True), on=keys, how="left")
    return none.sort(keys)


# ---------------------------------------------------------------- the lab's boards

LAB_METRICS = ("tput_per_gpu", "median_tpot", "median_itl", "median_e2el")


@dataclass(frozen=True)
class LabRun:
    """One sweep of the lab as a tidy frame, with what is true of it."""

    image: str
    batch: int
    bad_node: bool
    rows: pl.DataFrame


def lab_runs(file: Path) -> list[LabRun]:
    """The lab's sweeps, oldest first."""
    with zipfile.ZipFile(file) as archive:
        sweeps = json.loads(archive.read("h200-sweeps.json"))
    bundles = sorted(sweeps, key=lambda bundle: bundle["run"]["id"])
    return [_lab_run(bundle) for bundle in bundles]


def _lab_run(bundle: dict) -> LabRun:
    run, truth = bundle["run"], bundle["truth"]
    rows = [
        {
            "run": f"{run['id']}/{run['run_attempt']}",
            "started_at": datetime.fromisoformat(run["run_started_at"]),
            "image": row["image"],
            "recipe": None,
            "curve": "lab h200",
            "series": f"lab h200 c{row['conc']}",
            "conc": row["conc"],
            "multinode": False,
            "metric": name,
            "value": row[name],
            "pool": run["runner_name"],
        }
        for row in bundle["rows"]
        for name in LAB_METRICS
    ]
    schema = {"recipe": pl.String, "started_at": pl.Datetime("us", "UTC")}
    return LabRun(truth["image"], truth["batch"], truth["bad_node"], pl.DataFrame(rows, schema_overrides=schema))


def lab(file: Path) -> Iterator[tuple[str, str, str]]:
    """(kind of comparison, what is true, verdict) of every comparison of the lab's sweeps."""
    runs = lab_runs(file)
    for position, new in enumerate(runs):
        before = [run for run in runs[:position] if run.batch == new.batch]
        clean = [run for run in before if run.image == "v1.0.0" and not run.bad_node]
        for k in (1, 3, 5):
            if len(clean) >= k:
                yield f"the {k} before", _truth(new), _lab_verdict(clean[-k:], new, Baseline())
        if clean:
            yield "last v1.0.0", _truth(new), _lab_verdict(before, new, Baseline("image", "lab/engine:v1.0.0"))
        if before:
            yield "previous", f"{_truth(before[-1])} -> {_truth(new)}", _lab_verdict(before, new, Baseline())
        for old in clean:
            yield "any earlier", _truth(new), _lab_verdict(before, new, Baseline("run", str(old.rows["run"][0])))


def _truth(run: LabRun) -> str:
    return "noisy neighbour" if run.bad_node else run.image


def _lab_verdict(before: Sequence[LabRun], new: LabRun, baseline: Baseline) -> str:
    judged = judge_frames(pl.concat([run.rows for run in before]), new.rows, Settings(), baseline)
    found = [f for f in judged.findings if f.scope == "curve" and f.metric in GATES]
    caveats = {caveat.code for f in found for caveat in f.caveats}
    verdicts = {f.verdict.value for f in found}
    name = next((v for v in (*CALLED, "suspected", "recovery") if v in verdicts), "quiet")
    return name + ("+environment" if "environment" in caveats else "") + ("+rerun" if "rerun" in caveats else "")


# ---------------------------------------------------------------- simulated sweeps

Noise = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def _contaminated(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    wide = rng.random(shape) < 0.1
    return rng.standard_normal(shape) * np.where(wide, 0.06, 0.006)


NOISES: dict[str, Noise] = {
    "normal 2 %": lambda rng, shape: 0.02 * rng.standard_normal(shape),
    "t3 1 %": lambda rng, shape: 0.01 * rng.standard_t(3, shape),
    "contaminated": _contaminated,
}
STORE = (30, 8, 6)
"""Other curves of the simulated store, their runs and points: 180 unchanged stretches to learn its noise from."""


@dataclass(frozen=True)
class Tally:
    """Shares over the simulated comparisons."""

    false: float
    power: float
    coverage: float
    median_mde: float


def _frame(logs: np.ndarray, curves: Sequence[str], images: Sequence[str], start: int = 0) -> pl.DataFrame:
    """Tidy rows of ln values (curves, runs, points); `images` names the image of each run."""
    kinds = np.indices(logs.shape).reshape(3, -1)
    names = [curves[c] for c in kinds[0]]
    return pl.DataFrame(
        {
            "run": [f"{start + r + 1}/1" for r in kinds[1]],
            "started_at": [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=int(start + r)) for r in kinds[1]],
            "image": [images[r] for r in kinds[1]],
            "curve": names,
            "series": [f"{name} c{p + 9}" for name, p in zip(names, kinds[2], strict=True)],
            "conc": (kinds[2] % 50 + 9).tolist(),
            "multinode": False,
            "metric": "tput_per_gpu",
            "value": np.exp(logs.reshape(-1) + 5.0),
        }
    )


def simulate(noise: Noise, history: int, points: int, curves: int, seed: int) -> Tally:
    """`curves` comparisons, each of one candidate run with `history` runs, all of one noise, in one store.

    Each is judged by itself, as `judge_frames` does; the frames are read once for all of them.
    """
    rng = np.random.default_rng(seed)
    others, names = [f"other {c}" for c in range(STORE[0])], [f"curve {c}" for c in range(curves)]
    store = _frame(noise(rng, STORE), others, ["img-A"] * STORE[1])
    past = _frame(noise(rng, (curves, history, points)), names, ["img-A"] * history, 10)
    scales = learn_scales(pl.concat([store, past]))
    candidate = _frame(noise(rng, (curves, 1, points)), names, ["img-B"], 99)
    pairs = pair(past, candidate, Baseline()).pairs
    quiet = [_curve_finding(one, scales) for one in pairs]
    moved = [_curve_finding(_slower(one, said.mde), scales) for one, said in zip(pairs, quiet, strict=True)]
    return Tally(
        false=float(np.mean([said.verdict.value in CALLED for said in quiet])),
        power=float(np.mean([said.verdict.value in LOSSES for said in moved])),
        coverage=float(np.mean([said.low <= 0 <= said.high for said in quiet])),
        median_mde=float(np.median([said.mde for said in quiet])),
    )


def _slower(one: CurvePair, loss: float) -> CurvePair:
    """The candidate slower by `loss` (natural log units) at every point."""
    curve = replace(one.curve, candidate=one.curve.candidate - loss)
    return replace(one, curve=curve, candidate=one.candidate - loss)


def _curve_finding(one: CurvePair, scales: Scales) -> Finding:
    findings = judge_settled([one], scales, Settings(), recovery=True)
    return next(found for found in findings if found.scope == "curve")


# ---------------------------------------------------------------- command line


@dataclass(frozen=True)
class Cell:
    """One row of the table of simulations."""

    noise: str
    history: int
    points: int


def _simulated(curves: int, cell: Cell) -> Tally:
    return simulate(NOISES[cell.noise], cell.history, cell.points, curves, cell.history * 100 + cell.points)


def _print_simulations(full: bool, crew: Crew) -> None:
    cells = [Cell(*one) for one in product(NOISES, (1, 3, 5, 10, 30), (1, 6, 12, 36))]
    tallies = workers.map(partial(_simulated, 2000 if full else 400), cells, crew)
    for cell, t in zip(cells, tallies, strict=True):
        print(
            f"{cell.noise:14s} history {cell.history:2d} points {cell.points:2d}: false {t.false:6.3f} power at the"
            f" printed change {t.power:5.2f} coverage {t.coverage:5.2f} smallest change {100 * t.median_mde:5.1f} %"
        )


def _print_lab(file: Path) -> None:
    tally: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for kind, truth, verdict in lab(file):
        tally[kind, truth][verdict] += 1
    for (kind, truth), counts in sorted(tally.items()):
        print(f"{kind:14s} {truth:32s} {counts.total():4d} {dict(counts)}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table of one measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cluster", help="address of a Ray cluster; else the processors of this machine")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("stat-eval").add_argument("folder", type=Path)
    commands.add_parser("simulate").add_argument("--full", action="store_true")
    commands.add_parser("lab").add_argument("file", type=Path)
    chosen = parser.parse_args(arguments)
    crew = Crew(processors(), chosen.cluster)
    if chosen.command == "stat-eval":
        with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=200, float_precision=2):
            print(stat_eval_table(stat_eval(Evaluation(chosen.folder, (1, 2, 3, 5), GATES), crew)))
    elif chosen.command == "simulate":
        _print_simulations(chosen.full, crew)
    else:
        _print_lab(chosen.file)


if __name__ == "__main__":
    main()
