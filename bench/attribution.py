"""Does the class of a change agree with what is known to differ between its sides? A table of labels against classes.

    python -m bench.attribution                   changes of our own making (tests/data/attribution.csv)
    python -m bench.attribution ../shared/data    published points, labelled from the history of the configs

No label comes from the code that is measured: of our own changes it is what was changed, of published points it is what
the history of the configs says between the two days, and what is known of the nights of one pool.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from store.metrics import GATE_METRICS
from store.records import Attribution, Finding, RunKey, Scope
from tracker import jobs
from tracker.jobs import Where
from tracker.judge.learn import learn
from tracker.matrix import TIDY
from tracker.settings import Settings

Row = dict[str, Any]
OWN = Path(__file__).parents[1] / "tests" / "data" / "attribution.csv"
CLASSES = ("image", "recipe", "topology", "harness", "pool", "unknown")


@dataclass(frozen=True, slots=True)
class Labelled:
    """One change: what is known to differ (`image+recipe`; the first is its class), and what the product said."""

    name: str
    label: str
    said: Attribution

    @property
    def kind(self) -> str:
        return self.label.split("+")[0]

    @property
    def agrees(self) -> bool:
        return self.kind == self.said.kind.value

    @property
    def is_whole(self) -> bool:
        """Every class that differs, and no other."""
        return set(self.label.split("+")) == {kind.value for kind in self.said.kinds}


# ---------------------------------------------------------------- changes of our own making


CONCS = (4, 16, 64)


def own(file: Path = OWN) -> list[Labelled]:
    """Every change of the file, landed and compared through the public path."""
    with file.open(encoding="utf-8", newline="") as lines:
        cases = list(csv.DictReader(lines))
    runs: dict[tuple[str, str], list[Row]] = {}
    for case in cases:
        runs.setdefault((case["before"], case["after"]), []).append(case)
    with _store() as where:
        _ingest(
            [run for number, (days, some) in enumerate(runs.items(), 1) for run in _told(number, days, some)], where
        )
        # What this store learns of noise is of changes that were made: the shipped scales stand in for it.
        settings = Settings(scales=learn(pl.DataFrame(schema=dict(TIDY)), Settings()))
        asked = [jobs.Question(f"run:{100 * number + 2}", metrics=GATE_METRICS) for number in range(1, len(runs) + 1)]
        found = [one for question in asked for one in jobs.compare(question, where, settings).findings]
    return [Labelled(case["case"], case["label"], _of_case(found, case["case"])) for case in cases]


def _told(number: int, days: tuple[str, str], cases: Sequence[Row]) -> Iterator[Row]:
    """Two runs before and one after; all changes of the same days share them, each on machines of its own."""
    before, after = (datetime.fromisoformat(day).replace(tzinfo=UTC, hour=3) for day in days)
    for place, moment in enumerate((before - timedelta(hours=20), before, after)):
        rows = [row for case in cases for row in _rows(case, place, is_after=place == 2)]
        yield {"run": _run(100 * number + place, moment), "rows": rows}


def _run(number: int, moment: datetime) -> Row:
    """A run object of an official sweep."""
    return {
        "id": number,
        "run_attempt": 1,
        "path": ".github/workflows/run-sweep.yml",
        "event": "push",
        "head_branch": "main",
        "conclusion": "success",
        "run_started_at": moment.isoformat(),
    }


def _rows(case: Row, place: int, *, is_after: bool) -> Iterator[Row]:
    side = "after" if is_after else "before"
    beside = range(int(case["controls"]))
    factor = float(case["factor"]) if is_after else 1.0
    around = float(case["controls_factor"]) if is_after else 1.0
    software = {"image": case[f"image_{side}"], "recipe_fingerprint": case[f"recipe_{side}"]}
    router = case[f"router_{side}"]
    more = {"router": {"name": "gate", "version": router}} if router else {}
    yield from _curve(case, place, factor, tp=int(case[f"tp_{side}"]), framework="vllm", **software, **more)
    for number in beside:
        image = "example/engine:v1.0.0"
        yield from _curve(case, place, around, tp=8, framework=f"beside{number}", image=image)


def _curve(case: Row, place: int, factor: float, **told: Any) -> Iterator[Row]:
    """The points of one curve; they wander by a tenth of a percent from run to run, each in its own way."""
    tp = told["tp"]
    for conc in CONCS:
        wander = 1 + 0.001 * ((7 * place + conc + len(case["case"]) + ord(case["case"][-1])) % 5 - 2)
        speed = 90.0 * conc**0.8 * (8 / tp) ** 0.5 * factor * wander
        tpot = conc * 9 / (speed * tp)
        yield {
            "hw": f"machine-{case['case']}",
            "infmax_model_prefix": "dsr1",
            "precision": "fp8",
            "spec_decoding": "none",
            "isl": 8192,
            "osl": 1024,
            "conc": conc,
            "ep": 1,
            "dp_attention": "false",
            "is_multinode": False,
            "disagg": False,
            "tput_per_gpu": speed,
            "median_tpot": tpot,
            "median_itl": tpot,
            "median_intvty": 1 / tpot,
            "median_ttft": 0.5,
            "median_e2el": 0.5 + 1024 * tpot,
            **told,
        }


def _of_case(findings: Iterable[Finding], name: str) -> Attribution:
    """The attribution of a case's curve, or of its frontier where no curve has a twin."""
    for one in findings:
        if one.config.endswith("-vllm") and f"machine-{name}-" in f"{one.config}-" and _tells(one):
            assert one.attribution is not None
            return one.attribution
    raise SystemExit(f"{name}: nothing moved, so nothing is attributed")


def _tells(one: Finding) -> bool:
    name = {Scope.CURVE: "tput_per_gpu", Scope.FRONTIER: "frontier_tput_per_gpu"}.get(one.scope)
    return one.metric == name and one.attribution is not None


# ---------------------------------------------------------------- published points


HARNESS = (date(2025, 12, 15), date(2026, 5, 14), date(2026, 5, 15))
"""Changes of the harness that concern the speed of single-turn points, by the dates of their commits."""
NIGHTS = ("mi355x", (date(2025, 12, 11), date(2025, 12, 12)))
"""The pool whose nights are known to have been slow, whatever it measured."""

Change = tuple[datetime, str, str]
"""When a config changed, how (image, recipe, added, removed), and its image since."""


def published(data: Path, hardware: str = "", until: str = "9999") -> list[Labelled]:
    """Every throughput change of a published curve against the run before, with a label from the history of configs."""
    known = _history(data / "inferencex" / "config-history.csv")
    rows = [row for row in _points(data) if row["hardware"].startswith(hardware) and row["date"] < until]
    with _store() as where:
        keys = _land_published(rows, known, where)
        moved = [
            one for key in keys for one in jobs.compare(jobs.Question(f"run:{key}"), where).findings if _tells(one)
        ]
    days = {key.id: day for key, day in keys.items()}
    return [_labelled(one, days, known) for one in moved if one.scope is Scope.CURVE]


def _history(file: Path) -> dict[str, list[Change]]:
    found: dict[str, list[Change]] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            moment = datetime.fromisoformat(row["committed_at"]).astimezone(UTC)
            change = (moment, row["change"], row["image"].replace("#", "/"))
            found.setdefault(row["config_key"], []).append((*change[:2], f"{change[2]} {row['commit']}"))
    return {key: sorted(changes) for key, changes in found.items()}


def _points(data: Path) -> list[Row]:
    """The points of the captures, each once."""
    found: dict[str, Row] = {}
    for file in sorted(data.glob("benchmarks-history.*.json")):
        for row in json.loads(file.read_bytes()):
            own = {key: value for key, value in row.items() if key not in ("metrics", "workers")}
            found.setdefault(json.dumps(own, sort_keys=True), row)
    return list(found.values())


def _land_published(rows: Sequence[Row], known: Mapping[str, list[Change]], where: Where) -> dict[RunKey, date]:
    """Land the points with the image and the recipe in force on their day; gives the runs, oldest first."""
    told = []
    for row in rows:
        words = [row["model"], row["precision"], row["hardware"], row["framework"], row["spec_method"]]
        config = _spelled("-".join(word for word in words if word != "none"))
        image, recipe = _software(known.get(config, []), _end(date.fromisoformat(row["date"])))
        told.append({**row, "image": image, "recipe_fingerprint": recipe})
    _ingest(told, where)
    with jobs.sides.opened(where.store, where.archive) as store:
        assert store is not None
        runs = store.runs().select("id", "attempt", "started_at").sort("started_at", "id").rows()
    return {RunKey(number, attempt): started.date() for number, attempt, started in runs}


def _spelled(config: str) -> str:
    """The key of a config as its history spells it."""
    return config.replace("mori-sglang", "sglang-disagg")


def _software(changes: Sequence[Change], at: datetime) -> tuple[str, str]:
    """Image in force, and the commit of the last change that was not the image's."""
    past = [change for change in changes if change[0] <= at]
    if not past or past[-1][1] == "removed":
        return "", ""
    commits = [change[2].split(" ")[1] for change in past if change[1] != "image"]
    return past[-1][2].split(" ")[0], commits[-1] if commits else ""


def _end(day: date) -> datetime:
    return datetime.combine(day, time.max, UTC)


def _labelled(one: Finding, days: Mapping[int, date], known: Mapping[str, list[Change]]) -> Labelled:
    before, after = days[one.baseline_runs[-1].id], days[one.candidate_runs[-1].id]
    gpu = one.series.gpu if one.series is not None else ""
    assert one.attribution is not None
    name = f"{one.key} {before} {after}"
    return Labelled(name, label(known.get(_spelled(one.config), []), before, after, gpu), one.attribution)


def label(changes: Sequence[Change], before: date, after: date, gpu: str) -> str:
    """What the history of a config and the calendar say of two days."""
    place = [bisect_right(changes, _end(day), key=lambda change: change[0]) for day in (before, after)]
    if not place[0] or "removed" in {changes[at - 1][1] for at in place}:
        return "unknown"
    old, new = (changes[at - 1][2].split(" ")[0] for at in place)
    if old == new and not re.search(r"\d", new.rpartition(":")[2]):
        return "unknown"
    between = {change[1] for change in changes[place[0] : place[1]]}
    found = ["image"] * (old != new) + ["recipe"] * bool(between - {"image"})
    found += ["harness"] * any(before <= day <= after for day in HARNESS)
    if not found:
        return "pool" if gpu == NIGHTS[0] and {before, after} & set(NIGHTS[1]) else "unknown"
    return "+".join(found)


# ---------------------------------------------------------------- both


class _store(tempfile.TemporaryDirectory[str]):  # noqa: N801
    """A store of its own that is gone afterwards."""

    def __enter__(self) -> Where:  # type: ignore[override]
        return Where.of(Path(super().__enter__()) / "tracker.duckdb", None)


def _ingest(told: object, where: Where) -> None:
    file = where.store.parent / "rows.json"
    file.write_text(json.dumps(told), encoding="utf-8")
    jobs.ingest([file], where, jobs.Landing(official=True))


def table(found: Sequence[Labelled]) -> str:
    """Labels as rows, classes as columns, then the agreement."""
    tally = Counter((one.kind, one.said.kind.value) for one in found)
    lines = [f"{'label':10}" + "".join(f"{name:>10}" for name in CLASSES)]
    lines += [f"{row:10}" + "".join(f"{tally[row, name] or '.':>10}" for name in CLASSES) for row in CLASSES]
    right, whole = sum(one.agrees for one in found), sum(one.is_whole for one in found)
    lines.append(f"class agrees: {right} of {len(found)} ({right / len(found):.1%}); every class: {whole}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, help="the folder of the published captures")
    parser.add_argument("--wrong", action="store_true", help="name what does not agree")
    given = parser.parse_args()
    found = published(given.data) if given.data else own()
    print(table(found))
    if given.wrong:
        for one in found:
            if not one.is_whole:
                print(f"{one.name}: label {one.label}, said {'+'.join(kind.value for kind in one.said.kinds)}")
    return 0 if sum(one.agrees for one in found) >= 0.9 * len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
