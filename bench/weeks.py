"""All weeks of a history, one after the other: what each would have announced.

python -m bench.weeks PATH...      land these files in a store of their own and tell its weeks
python -m bench.weeks --story 5    simulated stories of known truth: what was planted, announced, missed, false
"""

import argparse
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from reports import week as weeks
from reports.week import WeekFacts
from store.life import Change, Direction
from tracker import jobs, review, weekly, workers
from tracker.simulate import Story, write_story
from tracker.simulate.truth import WORTH_SAYING
from tracker.workers import ALONE, Crew, processors

END = datetime(2026, 8, 10, 2, 0, tzinfo=UTC)
WEEKS = 5

Place = tuple[str, str]
"""What moved (curve, or config of evals) and the run."""


def landed(paths: Iterable[Path], folder: Path, crew: Crew = ALONE) -> jobs.Where:
    """A store of its own with every run of these files judged once."""
    where = jobs.Where.of(folder / "store.duckdb", None)
    jobs.ingest(sorted(paths), where)
    review.review(where, crew=crew)
    return where


def told(where: jobs.Where) -> Iterator[WeekFacts]:
    return map(weeks.select, weekly.every_week(where))


def announced(facts: WeekFacts, way: Direction) -> list[Change]:
    """What a week tells as new."""
    lists = (facts.new, facts.evals_new) if way is Direction.WORSE else (facts.better, facts.evals_better)
    return [change for listed in lists for row in listed.rows for change in row.changes]


# ---------------------------------------------------------------- known truth


def planted(story: Story, way: Direction) -> set[Place]:
    """What truly moved this way between a night and the one before: curves by speed, configs by accuracy.

    A rise to a level that was there before is a recovery, no gain.
    """
    speeds = {str(night.key): night.speeds for night in story.nights}
    scores = {str(night.key): {key: both[0] for key, both in night.accuracy.items()} for night in story.nights}
    return _steps(speeds, WORTH_SAYING, way) | _steps(scores, WORTH_SAYING / 2, way)


def _steps(nights: Mapping[str, Mapping[str, float]], least: float, way: Direction) -> set[Place]:
    found: set[Place] = set()
    seen: dict[str, list[float]] = {}
    for run, levels in nights.items():
        for key, level in levels.items():
            earlier = seen.setdefault(key, [])
            change = level - earlier[-1] if earlier else 0.0
            is_back = any(abs(level - one) < least / 2 for one in earlier[:-1])
            is_loss, is_gain = change <= -least, change >= least and not is_back
            if is_loss if way is Direction.WORSE else is_gain:
                found.add((key, run))
            earlier.append(level)
    return found


@dataclass(frozen=True)
class Score:
    """A story against its truth."""

    planted: set[Place]
    announced: list[Place]

    @property
    def missed(self) -> set[Place]:
        return self.planted - set(self.announced)

    @property
    def false(self) -> set[Place]:
        return set(self.announced) - self.planted

    @property
    def twice(self) -> list[Place]:
        return [place for place, times in Counter(self.announced).items() if times > 1]


def scored(story: Story, facts: Sequence[WeekFacts], way: Direction) -> Score:
    changes = [change for week in facts for change in announced(week, way)]
    places = [(change.config if change.is_eval else change.key, str(change.first)) for change in changes]
    return Score(planted(story, way), places)


# ---------------------------------------------------------------- printing


def _line(facts: WeekFacts) -> str:
    cells: Mapping[str, int] = {
        "runs": facts.judged,
        "new": facts.new.total + facts.evals_new.total,
        "open": facts.open.total + facts.evals_open.total,
        "ended": facts.ended.total + facts.evals_ended.total,
        "suspected": facts.suspected.total + facts.evals_suspected.total,
        "better": facts.better.total + facts.evals_better.total,
        "same software": facts.environment.total,
        "taken back": facts.taken_back,
        "lost": facts.lost,
    }
    return f"{facts.name}  " + "  ".join(f"{name} {number}" for name, number in cells.items())


def _files(paths: Sequence[Path], crew: Crew) -> None:
    with tempfile.TemporaryDirectory() as folder:
        begun = time.process_time()
        where = landed(paths, Path(folder), crew)
        judged = time.process_time()
        facts = list(told(where))
        print("\n".join(map(_line, facts)))
        ids = Counter(change.id for way in Direction for week in facts for change in announced(week, way))
        runs = sum(week.judged for week in facts)
        print(f"{len(ids)} changes announced, {sum(n > 1 for n in ids.values())} of them more than once")
        print(
            f"processor: {judged - begun:.1f} s to land and judge {runs} runs, "
            f"{time.process_time() - judged:.2f} s to tell {len(facts)} weeks"
        )


def _story(seed: int) -> list[str]:
    """What was said of a story, a line for each way."""
    with tempfile.TemporaryDirectory() as folder:
        story = write_story(Path(folder) / "artifacts", seed, WEEKS, END)
        facts = list(told(landed([run.folder for run in story.runs], Path(folder))))
    scores = {way: scored(story, facts, way) for way in Direction}
    return [
        f"seed {seed} {way.value}: planted {len(score.planted)}, announced {len(score.announced)}, "
        f"missed {sorted(score.missed)}, false {sorted(score.false)}, twice {score.twice}"
        for way, score in scores.items()
    ]


def _stories(seeds: int, crew: Crew) -> None:
    for lines in workers.map(_story, range(1, seeds + 1), crew):
        print("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--story", type=int, default=0, metavar="SEEDS")
    parser.add_argument("--cluster", help="address of a Ray cluster; else the processors of this machine")
    asked = parser.parse_args()
    crew = Crew(processors(), asked.cluster)
    if asked.story:
        _stories(asked.story, crew)
    if asked.paths:
        _files(asked.paths, crew)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
