"""A small history by hand: runs of a few curves under known images, and what the judge said of them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from store.life import Change, Direction, Event, Joint, Move, Review
from store.records import Caveat, Finding, RunKey, Scope, Verdict
from tracker import life
from tracker.levels import Level

START = datetime(2026, 6, 1, 2, tzinfo=UTC)
"""A Monday."""
A, B, C = (f"engine/serve:v1.{minor}.0" for minor in range(3))
CURVE, OTHER = "dsr1 h200 sglang fp8 none 8192/1024 tp8", "dsr1 h200 sglang fp8 none 1024/1024 tp8"
CONFIG = "dsr1-fp8-h200-sglang"
MARGIN = 0.02
REGRESSION, IMPROVEMENT, SUSPECTED = Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.SUSPECTED


def day(number: int) -> datetime:
    return START + timedelta(days=number)


@dataclass
class Lives:
    """Builds reviews and levels run by run. Speeds are multiples of a base of 1000 tok/s/GPU."""

    reviews: list[Review] = field(default_factory=list)
    levels: dict[str, dict[RunKey, Level]] = field(default_factory=lambda: defaultdict(dict))
    events: list[Event] = field(default_factory=list)
    last: dict[str, RunKey] = field(default_factory=dict)
    """The newest run of each curve; a move stands against it unless another baseline is named."""

    def run(
        self,
        at: int,
        speeds: Mapping[str, float] | float,
        image: str | None = A,
        *moves: Move,
        recipe: str | None = None,
        joint: Sequence[Joint] = (),
        pools: Mapping[str, int] | None = None,
    ) -> RunKey:
        """One official run `at` days after the start."""
        key = RunKey(100 + at)
        for curve, speed in (speeds if isinstance(speeds, Mapping) else {CURVE: speeds}).items():
            values = {(f"{curve} c{c}", "tput_per_gpu"): math.log(1000 * c * speed) for c in (4, 64)}
            recipes = {f"{curve} c{c}": recipe for c in (4, 64)}
            self.levels[curve][key] = Level(key, day(at), image, recipes, values)
            self.last[curve] = key
        said = Review(key, day(at), "1", "", moves=moves, joint=tuple(joint), pools=pools or {"h200": 4})
        self.reviews.append(said)
        return key

    def move(
        self,
        effect: float,
        verdict: Verdict = REGRESSION,
        images: tuple[str | None, str | None] = (A, B),
        curve: str = CURVE,
        **other: object,
    ) -> Move:
        """What the judge says of a run that is about to be added, against the newest run of the curve."""
        base = other.pop("base", self.last.get(curve))
        assert base is None or isinstance(base, RunKey)
        before = self.levels[curve][base].values if base else {}
        finding = Finding(
            scope=Scope.CURVE,
            key=curve,
            metric="tput_per_gpu",
            verdict=verdict,
            effect=math.log1p(effect),
            baseline_runs=(base,) if base else (),
            baseline_image=images[0],
            candidate_image=images[1],
            config=CONFIG,
        )
        given = {
            "key": curve,
            "config": CONFIG,
            "scope": Scope.CURVE,
            "direction": Direction.BETTER if effect > 0 else Direction.WORSE,
            "verdict": verdict,
            "finding": finding,
            "margin": MARGIN,
            "reference": {series: (name, value) for (series, name), value in before.items()},
            "pool": "h200",
        }
        return Move(**{**given, **other})  # type: ignore[arg-type]

    def tell(self, until: datetime | None = None) -> tuple[Change, ...]:
        return life.tell(life.History(self.reviews, self.levels, self.events), until)

    def only(self) -> Change:
        (change,) = self.tell()
        return change


def together(first: RunKey, *moves: Move, curve: str = CURVE) -> Joint:
    return Joint(first, (curve,), moves)


def scores(lives: Lives, at: int, score: float, image: str, *moves: Move) -> RunKey:
    """A run of one eval job, GSM8K of the config."""
    key, place = RunKey(100 + at), f"{CONFIG} gsm8k"
    series = f"{CURVE} c64 gsm8k"
    lives.levels[place][key] = Level(key, day(at), image, {series: None}, {(series, "em_flexible"): score})
    lives.last[place] = key
    lives.reviews.append(Review(key, day(at), "1", "", moves=moves))
    return key


def failing(lives: Lives, score: float, mark: float, images: tuple[str, str]) -> Move:
    """An eval below its threshold, whatever it was before."""
    place, series = f"{CONFIG} gsm8k", f"{CURVE} c64 gsm8k"
    alarm = Caveat.of("below_threshold", score=score, threshold=mark)
    finding = Finding(
        Scope.EVAL, series, "em_flexible", Verdict.FAILED, config=CONFIG, task="gsm8k", caveats=(alarm,),
        candidate=score, baseline_image=images[0], candidate_image=images[1],
        baseline_runs=tuple(filter(None, [lives.last.get(place)])),
    )  # fmt: skip
    reference = {series: ("em_flexible", mark)}
    return Move(place, CONFIG, Scope.EVAL, Direction.WORSE, Verdict.FAILED, finding, 0.01, reference, alarms=(alarm,))
