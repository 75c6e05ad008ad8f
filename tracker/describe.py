"""What the judge said about text keys, told about series, configs and rows: no verdict is made or changed here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

import polars as pl

from store.duck import Store
from store.frames import from_text
from store.identity import config_key, curve_key, curve_of, unmapped
from store.metrics import POINT_METRICS
from store.records import Caveat, Finding, RunKey, Scope, Series, Unmatched, Verdict
from tracker.sides import Side

SEVERITY: Mapping[Verdict, int] = {verdict: place for place, verdict in enumerate(Verdict)}
SCOPE_ORDER: Mapping[Scope, int] = {
    Scope.EVAL: 0,
    Scope.FRONTIER: 1,
    Scope.CONFIG: 2,
    Scope.CURVE: 3,
    Scope.POINT: 4,
}


@dataclass(frozen=True, slots=True)
class Row:
    """What the candidate's row of a series says beside its judged numbers."""

    run: RunKey
    image: str | None
    caveats: tuple[Caveat, ...]
    metrics: Mapping[str, float]
    invalid: Caveat | None
    withdrawn: Caveat | None = None


@dataclass(frozen=True, slots=True)
class Subjects:
    """Series and rows by text key."""

    series: Mapping[str, Series]
    rows: Mapping[str, Row]

    @classmethod
    def of(cls, new: Side, past: Store | None, keys: Iterable[str]) -> Subjects:
        """Everything that the candidate measured, and the baseline's series under the keys that only it has."""
        foreign = set(keys) - new.series.keys()
        known = {**(past.series(foreign) if past is not None and foreign else {}), **new.series}
        curves = {curve_key(series): curve_of(series) for series in known.values()}
        return cls({**curves, **known}, dict(_rows(new.points)))

    def finding(self, found: Finding) -> Finding:
        """The finding with its series and config, and with the doubts that the candidate's row carries."""
        series = found.series or self.series.get(found.key)
        row = self.rows.get(found.key) if found.scope is Scope.POINT else None
        return replace(
            found,
            series=series,
            config=found.config or (config_key(series) if series else found.key),
            caveats=_together(found.caveats, row.caveats if row else (), _unmapped(series)),
        )

    def unmatched(self, one: Unmatched) -> Unmatched:
        """The point that has no twin, with what was measured all the same."""
        series = one.series or self.series.get(one.key)
        row = self.rows.get(one.key) if one.side == "candidate" and one.task is None else None
        told = replace(one, series=series, config=one.config or (config_key(series) if series else ""))
        if row is None:
            return replace(told, caveats=_together(told.caveats, _unmapped(series)))
        caveats = _together(told.caveats, row.caveats, _unmapped(series))
        return replace(told, run=one.run or row.run, image=row.image, metrics=row.metrics, caveats=caveats)

    def apart(self, rows: Iterable[Unmatched]) -> Iterable[Unmatched]:
        """Everything without a twin; a point that came and is invalid is not missing as well."""
        for one in rows:
            if one.side == "candidate" or one.task is not None or one.key not in self.rows:
                yield self.unmatched(one)

    def invalid(self) -> Iterable[Unmatched]:
        """The candidate's points that must not be judged, each with its reason: withdrawn or invalid."""
        for key, row in self.rows.items():
            if row.withdrawn is not None:
                yield self.unmatched(Unmatched(key, "candidate", Verdict.NOT_JUDGED, row.withdrawn, run=row.run))
            elif row.invalid is not None:
                yield self.unmatched(Unmatched(key, "candidate", Verdict.INVALID, row.invalid, run=row.run))


def _rows(points: pl.DataFrame) -> Iterable[tuple[str, Row]]:
    """Rows that count, by series key: not the superseded versions. A withdrawn one yields to one that is not."""
    metrics = [name for name in POINT_METRICS if name in points.columns]
    rows = points.filter(pl.col("status") != "superseded").sort(pl.col("withdrawn").is_null(), maintain_order=True)
    for row in rows.iter_rows(named=True):
        number, _, attempt = row["run"].partition("/")
        torn = Caveat.of("conflicting_rows") if row["status"] == "contested" else None
        yield (
            row["series"],
            Row(
                run=RunKey(int(number), int(attempt)),
                image=row["image"],
                caveats=from_text(row["caveats"], tuple[Caveat, ...]) if row["caveats"] else (),
                metrics={name: row[name] for name in metrics if row[name] is not None and isfinite(row[name])},
                invalid=torn or (from_text(row["invalid"], Caveat) if row["invalid"] else None),
                withdrawn=from_text(row["withdrawn"], Caveat) if row["withdrawn"] else None,
            ),
        )


def _unmapped(series: Series | None) -> tuple[Caveat, ...]:
    named = unmapped(series) if series else ()
    return tuple(Caveat.of("unmapped", field=name, spelling=spelling) for name, spelling in named)


def _together(*parts: Sequence[Caveat]) -> tuple[Caveat, ...]:
    return tuple(dict.fromkeys(caveat for part in parts for caveat in part))


def absent_curves(earlier: Iterable[tuple[RunKey, pl.DataFrame]], new: Side) -> tuple[Unmatched, ...]:
    """Points of the candidate's configs whose whole curve the candidate did not try, though the sweep before did."""
    tried = set(new.curves)
    absent: dict[str, Unmatched] = {}
    for run, points in earlier:
        rows = points.filter(~pl.col("curve").is_in(list(tried)))
        for key in rows["series"].unique(maintain_order=True):
            reason = Caveat.of("missing_curve", run=str(run))
            absent[key] = Unmatched(key, "baseline", Verdict.MISSING, reason, run=run)
    return tuple(absent.values())


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Accuracy before speed, the worst verdict first, the largest effect first."""
    return tuple(
        sorted(
            findings,
            key=lambda one: (
                SCOPE_ORDER[one.scope],
                SEVERITY[one.verdict],
                -abs(one.effect or 0.0),
                one.key,
                one.metric,
            ),
        )
    )
