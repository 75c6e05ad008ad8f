"""A part of an archive that somebody else may read as a store, without the database that it was chosen from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from store import archive as names
from store.depot import Depot, is_bucket
from store.duck import Store
from store.identity import curve_key, kin_of
from store.records import RunKey, Withdrawal
from tracker.contrast import MOST_CURVES, NEAR
from tracker.coverage import RUNS_ASKED
from tracker.workers import Crew


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Some files of an archive by their names, and what the database has decided about their runs."""

    archive: Path | str
    files: tuple[str, ...]
    official: tuple[RunKey, ...]
    withdrawn: tuple[Withdrawal, ...]

    @contextmanager
    def opened(self) -> Iterator[Store]:
        """A store of these files alone, read straight from the archive."""
        official = frozenset(self.official)
        with Store.of_files(
            self.archive, self.files, official=lambda run: run.key in official, withdrawn=self.withdrawn
        ) as store:
            yield store


@dataclass(frozen=True, slots=True)
class Source:
    """A database, and where the files that it was loaded from are found."""

    store: Store
    archive: Path | str
    official: Sequence[RunKey]
    newest: Sequence[int]
    """Ids of all runs, the newest first."""
    kin: Mapping[int, frozenset[str]]
    """What each run has measured."""

    @classmethod
    def of(cls, store: Store, archive: Path | str, database: Path, crew: Crew) -> Source | None:
        """As this crew can reach the files; None where a folder lacks some, so that the database alone has them."""
        place: Path | str | None = archive if is_bucket(archive) else None
        if crew.cluster is not None:
            place = place or Path(archive).resolve()
        else:
            here = Depot.at(archive, database).root.resolve()
            place = here if all((here / name).exists() for name in store.files()) else place
        if place is None:
            return None
        runs = store.runs()
        official = [RunKey(*row) for row in runs.filter("official").select("id", "attempt").iter_rows()]
        return cls(store, place, official, list(dict.fromkeys(runs["id"])), store.kin())

    def excerpt(self, files: Iterable[str]) -> Excerpt:
        """Some of the files."""
        chosen = tuple(files)
        ids = {file.run.id for file in names.files_among(chosen, Path())}
        official = tuple(key for key in self.official if key.id in ids)
        return Excerpt(self.archive, chosen, official, self.store.withdrawals)

    def around(self, candidates: Iterable[Collection[RunKey]], beside: Collection[int] = ()) -> Excerpt:
        """All that comparisons of some candidates (a run each, or several together) may ask of their past."""
        kin: set[str] = set()
        ids = set(beside)
        for runs in candidates:
            ids |= {key.id for key in runs}
            kin |= {kin_of(curve) for curve in self._curves(runs)}
        newest = self.newest[: RUNS_ASKED + len(ids)]
        return self.excerpt(self.store.files_about(kin, {*ids, *newest}))

    def _curves(self, runs: Collection[RunKey]) -> Iterator[str]:
        """What runs measured or promised, and what other configs measured on the same kinds of GPU within a day."""
        series = [one.series for key in runs for one in self.store.scores(key)]
        series += [one.series for key in runs for one in self.store.expected(key)]
        configs: set[str] = set()
        for key in runs:
            rows = self.store.points(key, ())
            configs |= set(rows["config"])
            series += self.store.series(set(rows["series"])).values()
        at = max(run.started_at for key in runs if (run := self.store.run(key)) is not None)
        yield from map(curve_key, series)
        # One by one: which of them is asked for is known when the candidate is judged.
        for gpu in sorted({one.gpu for one in series}):
            yield from self.store.curves_beside([gpu], (at - NEAR, at + NEAR), configs, MOST_CURVES)
