"""False alarms and power of the accuracy verdicts on public same-image GSM8K pairs with planted drops.

    python -m bench.evals ../shared/tools/stat_eval/data/evals_public.parquet

Every pair of neighbouring runs of one configuration is one comparison, judged by `tracker.judge.scores` as a user
would see it: gate, family and margins included. Drops are planted in the candidate's scores of every job.

Before that, or alone where no file is named, the paired and the two-sample rule on simulated answers (`bench.answers`).
"""

import argparse
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import polars as pl

from bench import answers
from store.identity import config_key
from store.records import Finding, Layout, Place, Role, RunKey, Scope, Score, Series, Verdict
from tracker.judge.scores import judge_scores

DROPS = (0.0, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05)
METRIC = "em_flexible"


@dataclass(frozen=True)
class Pair:
    """Two neighbouring runs of one configuration: the jobs that both have."""

    before: tuple[Score, ...]
    after: tuple[Score, ...]


def score(row: dict) -> Score:
    """A row of the parquet file as a record; what it does not know stays out of the key."""
    prefill, decode = (
        Role(
            tp=row[f"{side}_tp"],
            ep=row[f"{side}_ep"],
            dp_attention=row[f"{side}_dp_attention"],
            workers=max(row[f"{side}_num_workers"], 1),
        )
        for side in ("prefill", "decode")
    )
    # The public `is_multinode` flag drifts between runs of one deployment, so that it is no part of the key here.
    layout = Layout(prefill, decode if decode != prefill else None)
    words = (row["model"], row["hardware"], row["framework"], row["precision"], row["spec_method"])
    return Score(
        run=RunKey(row["run_id"]),
        series=Series(*words, "single_turn", None, None, False, layout, row["conc"]),
        task=row["task"],
        strict=row["m_em_strict"],
        strict_se=row["m_em_strict_se"],
        flexible=row["m_em_flexible"],
        flexible_se=row["m_em_flexible_se"],
        n=int(row["m_n_eff"]),
        place=Place("public", 0),
        raw=row["series_id"],
        image=row["image"],
    )


def pairs(table: pl.DataFrame, floor: float = 0.9) -> list[Pair]:
    """Neighbouring runs of one series with one image, grouped by configuration and runs; broken scores left out."""
    found: dict[tuple, list[tuple[Score, Score]]] = defaultdict(list)
    rows = table.filter(pl.col("image").is_not_null()).sort("date", "run_id")
    for _, group in rows.group_by("series_id", maintain_order=True):
        for old, new in pairwise(group.to_dicts()):
            sound = min(old["m_em_flexible"], new["m_em_flexible"]) >= floor
            if old["image"] == new["image"] and sound:
                config = (old["hardware"], old["framework"], old["model"], old["precision"], old["spec_method"])
                found[(*config, old["run_id"], new["run_id"])].append((score(old), score(new)))
    return [Pair(*map(tuple, zip(*jobs, strict=True))) for jobs in found.values()]


def lowered(new: Score, drop: float, fresh: bool) -> Score:
    """A score with a drop; its standard error as reported before (as the reference harness does), or recomputed."""
    lower = replace(new, flexible=new.flexible - drop, strict=new.strict and max(0.0, new.strict - drop))
    return replace(lower, flexible_se=None, strict_se=None) if fresh else lower


@dataclass(frozen=True)
class Setup:
    """How a comparison is made: whether the standard error follows the drop, and what else the history holds."""

    fresh: bool = False
    archive: tuple[Score, ...] = ()


def planted(found: Iterable[Pair], drop: float, setup: Setup) -> Iterator[Finding]:
    """The accuracy findings of every comparison with a drop in all jobs of the candidate."""
    for pair in found:
        after = tuple(lowered(new, drop, setup.fresh) for new in pair.after)
        config = config_key(after[0].series)
        others = tuple(row for row in setup.archive if config_key(row.series) != config)
        findings, _ = judge_scores((*pair.before, *others), after, starts((*pair.before, *others, *after)))
        yield from (finding for finding in findings if finding.metric == METRIC)


def starts(scores: Iterable[Score]) -> dict[RunKey, datetime]:
    """Run numbers grow with time."""
    return {row.run: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=row.run.id % 10**9) for row in scores}


def neighbours(rows: Iterable[Score]) -> tuple[int, int]:
    """Jobs with sound neighbours in their own run, and how many of them are told to fall from these."""
    runs: dict[tuple[RunKey, str], list[Score]] = defaultdict(list)
    for row in rows:
        if row.flexible >= 0.9:
            runs[row.run, config_key(row.series)].append(row)
    judged = [f for run in runs.values() for f in judge_scores((), run, starts(run))[0] if f.metric == METRIC]
    crowded = [
        f for f in judged if sum(f.config == g.config and f.candidate_runs == g.candidate_runs for g in judged) > 1
    ]
    return len(crowded), sum(any(c.code == "below_siblings" for c in f.caveats) for f in crowded)


def line(name: str, flags: list[list[bool]]) -> str:
    share = " ".join(f"{100 * sum(row) / max(len(row), 1):6.1f}" for row in flags)
    return f"{name} (n={len(flags[0])})".ljust(46) + share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("evals", type=Path, nargs="?", help="evals_public.parquet of the evaluation harness")
    parser.add_argument("--draws", type=int, default=2000, help="simulated comparisons of each setting")
    asked = parser.parse_args()
    answers.table(asked.draws)
    if asked.evals is not None:
        public(asked.evals)


def public(path: Path) -> None:
    table = pl.read_parquet(path)
    found = pairs(table)
    rows = tuple(score(row) for row in table.filter(pl.col("image").is_not_null()).to_dicts())
    setups = {"": Setup(), ", own SE": Setup(fresh=True), ", scatter refitted": Setup(archive=rows)}
    print("share called a regression, %, by planted drop in points")
    print(" " * 46 + " ".join(f"{100 * drop:6.2f}" for drop in DROPS))
    for note, setup in setups.items():
        said = [list(planted(found, drop, setup)) for drop in DROPS]
        for name, scope in (("per job", Scope.EVAL), ("pooled, 2 jobs or more", Scope.CONFIG)):
            flags = [[f.verdict is Verdict.REGRESSION for f in row if f.scope is scope] for row in said]
            print(line(name + note, flags))
    said = [list(planted(found, drop, Setup())) for drop in DROPS]
    for name, verdict in (("per job, suspected", Verdict.SUSPECTED), ("per job, equivalent", Verdict.EQUIVALENT)):
        print(line(name, [[f.verdict is verdict for f in row if f.scope is Scope.EVAL] for row in said]))
    quiet = sorted(f.mde for f in said[0] if f.scope is Scope.EVAL and f.mde)
    print(f"smallest drop found 80 % of the time, per job: median {100 * quiet[len(quiet) // 2]:.2f} points")
    crowd, low = neighbours(rows)
    print(f"told to fall from its neighbours: {low} of {crowd} public jobs that have any")


if __name__ == "__main__":
    main()
