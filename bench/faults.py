"""What a store survives: commands killed at random moments, damage at random places, full disks, many writers.

python -m bench.faults                          everything; the table at the end
python -m bench.faults --only "killed ingest"   one kind
python -m bench.faults --share 0.1 --seed 7     a tenth of each

Each trial is held against a store to which nothing happened: the same points, scores, findings, words of people and
reports. `lost` counts what differs at the end, or what `tracker store check` calls lost though the archive held it.
"""

import argparse
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from store import checkup
from store.checkup import Lost
from store.duck import Store
from store.life import Action, Event
from store.records import RunKey
from tests.factory import NEXT_IMAGE, bundle, evaluation, row, run, write
from tests.github import story
from tests.github.actions import serving
from tests.github.server import TOKEN
from tracker import cli
from tracker.cli import signals

PRELOADED = [
    "tracker.after_merge",
    "tracker.cli.after_merge",
    "reports.channels.github",
    "tracker.review",
    "tracker.weekly",
]
SAID = Event(datetime(2026, 8, 10, 6, tzinfo=UTC), "j2a2catt", Action.DISMISS, "maria", "the node was shared")
STORE, ARCHIVE = "tracker.duckdb", "tracker.archive"
BEGUN = "begun"
"""File of a command that listens to signals: before that it is Python that starts, not the tracker."""
LEVELS = {4: 1000.0, 16: 2000.0, 64: 3000.0}
WEEKS = 4


@dataclass
class Tally:
    """One row of the table. `survived` are trials after which nothing was lost that the archive held."""

    kind: str
    tried: int = 0
    survived: int = 0
    lost: int = 0
    flaws: list[str] = field(default_factory=list)

    def trial(self, *flaws: str) -> None:
        self.tried += 1
        self.survived += not flaws
        self.end(*flaws)

    def end(self, *flaws: str) -> None:
        """What only the end of several trials shows."""
        self.lost += len(flaws)
        self.flaws += flaws


# ---------------------------------------------------------------- processes


def work(words: Sequence[str], folder: Path, environ: Mapping[str, str]) -> None:
    """One `tracker` in a process of its own, that says what it says into files."""
    os.chdir(folder)
    for number, name in ((1, "out.txt"), (2, "err.txt")):
        with Path(name).open("w") as file:
            os.dup2(file.fileno(), number)
    os.environ.update({"TRACKER_STORE": STORE, "TRACKER_ARCHIVE": ARCHIVE, **environ})
    signals.listen()
    Path(BEGUN).touch()
    sys.argv = ["tracker", *words]
    cli.main()


class Processes:
    """Starts commands from a server that has imported the tracker, so that their time is their own."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(PRELOADED)

    def begin(self, words: Sequence[object], folder: Path, environ: Mapping[str, str] = {}) -> Any:
        process = self._context.Process(target=work, args=(list(map(str, words)), folder, environ))
        process.start()
        return process

    def done(self, words: Sequence[object], folder: Path, environ: Mapping[str, str] = {}) -> tuple[int, float]:
        """Exit code and seconds."""
        began = time.monotonic()
        process = self.begin(words, folder, environ)
        process.join()
        return process.exitcode, time.monotonic() - began

    def ended(self, words: Sequence[object], folder: Path, after: float, number: int,
              environ: Mapping[str, str] = {}) -> int | None:  # fmt: skip
        """The exit code after a signal at some moment; None where the command was faster than that."""
        (folder / BEGUN).unlink(missing_ok=True)
        process = self.begin(words, folder, environ)
        while number != signal.SIGKILL and process.is_alive() and not (folder / BEGUN).exists():
            process.join(0.005)
        process.join(after)
        if process.exitcode is not None:
            return None
        os.kill(process.pid, number)
        process.join()
        return int(process.exitcode)

    def killed(self, words: Sequence[object], folder: Path, after: float, environ: Mapping[str, str]) -> int | None:
        """The same with SIGKILL."""
        return self.ended(words, folder, after, signal.SIGKILL, environ)


# ---------------------------------------------------------------- what is held against what


def contents(folder: Path) -> dict[str, str]:
    """Everything that a store holds, in an order of its own, and the reports beside it."""
    with Store.open(folder / STORE, folder / ARCHIVE, read_only=True) as store:
        keys = [RunKey(*row) for row in store.runs().select("id", "attempt").sort("id", "attempt").rows()]
        told = {
            "runs": keys,
            "points": [sorted(map(repr, store.points(key).drop("file").rows())) for key in keys],
            "scores": [sorted(map(repr, store.scores(key))) for key in keys],
            "rows that were rejected": [sorted(map(repr, store.rejections(key))) for key in keys],
            "jobs": [sorted(map(repr, store.job_runs(key))) for key in keys],
            "findings": sorted(map(repr, store.findings())),
            "what people said": sorted(map(repr, store.events())),
        }
    # The hidden draft of a process that was killed is no report.
    paths = [path for path in sorted(folder.glob("reports/*")) if not path.name.startswith(".")]
    reports = {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in paths}
    return {name: repr(part) for name, part in told.items()} | reports


def differing(folder: Path, expected: Mapping[str, str]) -> list[str]:
    told = contents(folder)
    return [f"other {name}" for name in sorted(told.keys() | expected.keys()) if told.get(name) != expected.get(name)]


def losses(folder: Path) -> list[str]:
    """What a store that was hit has lost of what its archive held, as `tracker store check` sees it."""
    if not (folder / STORE).exists() and not (folder / ARCHIVE).exists():
        return []
    found = checkup.check(folder / STORE, folder / ARCHIVE)
    return [f"{flaw.problem}: {flaw.where}" for flaw in found.flaws if flaw.lost is not Lost.NOTHING]


# ---------------------------------------------------------------- stories


@dataclass(frozen=True)
class Step:
    words: tuple[str, ...]
    is_hit: bool = True
    before: Callable[[Path], object] = lambda _: None


def sweeps(folder: Path, count: int = 3 * WEEKS) -> list[str]:
    """A file for each of some sweeps, a slower image among them."""
    made = []
    rng = random.Random(1)
    for number in range(count):
        slower = 0.9 if number >= count // 2 else 1.0
        image = {"image": NEXT_IMAGE} if number >= count // 2 else {}
        rows = [row(conc, level * slower * rng.gauss(1, 0.004), **image) for conc, level in LEVELS.items()]
        day = 1 + number * 28 // count
        sweep = bundle(run(100 + number, f"2026-06-{day:02d}T00:00:00Z"), rows, [evaluation(0.955)])
        made.append(write(folder / f"sweep-{number}.json", [sweep]).name)
    return made


def ingesting(folder: Path) -> list[Step]:
    return [Step(("ingest", name)) for name in sweeps(folder)]


def comparing(folder: Path) -> list[Step]:
    (folder / "reports").mkdir()
    landed = [Step(("ingest", *sweeps(folder)), is_hit=False)]
    forms = ("json", "markdown", "comment", "csv")
    return landed + [
        Step(("compare", f"run:{100 + number}", "--format", form, "--out", f"reports/{number}.{form}"))
        for number in (6, 8, 11)
        for form in forms
    ]


def telling_weeks(folder: Path) -> list[Step]:
    names = sweeps(folder)
    steps: list[Step] = []
    for week in range(WEEKS):
        steps.append(Step(("ingest", *names[3 * week : 3 * week + 3]), is_hit=False))
        steps.append(Step(("weekly", "--lang", "both", "--out", "reports")))
    return steps


def after_merges(folder: Path) -> list[Step]:
    (folder / "withdrawn.yaml").write_text(story.WITHDRAWALS)
    (folder / "reports").mkdir()
    words = ("--work", "work", "--lang", "both", "--send")
    return [
        Step(("after-merge", "--run", str(number), *words, "--summary", f"reports/{number}.md"))
        for number in story.RUNS
    ]


def hub_environment(address: str) -> dict[str, str]:
    return {
        "NO_PROXY": "127.0.0.1",
        "GITHUB_TOKEN": TOKEN,
        "GITHUB_API_URL": address,
        "GITHUB_REPOSITORY": story.REPOSITORY,
        "TRACKER_WITHDRAWALS": "withdrawn.yaml",
    }


@contextmanager
def hub() -> Iterator[tuple[dict[str, str], Callable[[], dict[str, str]]]]:
    """The GitHub of the story, and what its people see at the end."""
    with serving() as github:
        story.told(github)

        def seen() -> dict[str, str]:
            checks = sorted((one["head_sha"], one["conclusion"]) for one in github.checks.values())
            comments = {pull: [one.body for one in github.of(pull)] for pull in github.pulls}
            return {"comments": repr(comments), "checks": repr(checks), "flaws": repr(github.flaws)}

        yield hub_environment(github.address), seen


def recovering(folder: Path) -> list[Step]:
    """A store that is damaged again before each recovery."""
    steps = [Step(("ingest", *sweeps(folder)), is_hit=False), Step(("weekly", "--replay"), is_hit=False)]
    steps.append(Step(("store", "info"), is_hit=False, before=add_saying))
    return steps + [
        Step(("store", "recover"), before=harm) for harm in (cut_database, cut_file, flip_both, cut_database)
    ]


def add_saying(folder: Path) -> None:
    with Store.open(folder / STORE, folder / ARCHIVE) as store:
        store.add_event(SAID)


def cut_database(folder: Path) -> None:
    os.truncate(folder / STORE, (folder / STORE).stat().st_size // 2)


def cut_file(folder: Path) -> None:
    path = sorted((folder / ARCHIVE).glob("run=*/*/*.parquet"))[3]
    os.truncate(path, path.stat().st_size - 30)


def flip_both(folder: Path) -> None:
    for place in (4096 + 60, 8192 + 60):
        flip(folder / STORE, place)


def flip(path: Path, place: int, mask: int = 0x40) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= mask
    path.write_bytes(data)


STORIES: dict[str, tuple[Callable[[Path], list[Step]], int, bool]] = {
    "killed ingest": (ingesting, 50, False),
    "killed compare": (comparing, 30, False),
    "killed weekly": (telling_weeks, 30, False),
    "killed after-merge": (after_merges, 50, True),
    "killed store recover": (recovering, 40, False),
}
"""By kind: the story, the kills, and whether it needs a GitHub."""


def killed(kind: str, kills: int, rng: random.Random, folder: Path, processes: Processes) -> Tally:
    """A story told twice, once with SIGKILL at random moments; both must end the same."""
    tally = Tally(kind)
    told, _, needs_hub = STORIES[kind]
    ends: dict[str, dict[str, str]] = {}
    lasted: list[float] = []
    for name in ("calm", "rough"):
        home = folder / name
        home.mkdir(parents=True)
        steps = told(home)
        hit = [number for number, step in enumerate(steps) if step.is_hit]
        with hub() if needs_hub else nullcontext(({}, dict)) as (environ, seen):
            for number, step in enumerate(steps):
                step.before(home)
                if name == "rough" and number in hit:
                    share = kills * (hit.index(number) + 1) // len(hit) - kills * hit.index(number) // len(hit)
                    begin = partial(processes.killed, step.words, home, environ=environ)
                    for _ in range(share):
                        tally.trial(*hit_once(step, home, begin, moments(lasted[number], rng)))
                code, seconds = processes.done(step.words, home, environ)
                lasted.append(seconds)
                if code:
                    tally.end(f"{' '.join(step.words)} ended with {code}: {(home / 'err.txt').read_text()[-300:]}")
            ends[name] = contents(home) | seen()
    calm, rough = ends["calm"], ends["rough"]
    tally.end(*(f"other {part}" for part in sorted(calm.keys() | rough.keys()) if calm.get(part) != rough.get(part)))
    tally.end(*losses(folder / "rough"))
    return tally


def hit_once(step: Step, home: Path, begin: Callable[[float], int | None], moments: Iterator[float]) -> list[str]:
    """Kill a command once; where it was faster, the next try is killed earlier. What was lost by it."""
    while begin(next(moments)) is None:
        step.before(home)
    return [] if step.words[:2] == ("store", "recover") else losses(home)


def moments(lasted: float, rng: random.Random) -> Iterator[float]:
    """Random moments of a command that lasted so many seconds, earlier with each try."""
    while True:
        yield rng.uniform(0.01, lasted)
        lasted = max(0.05, lasted * 0.7)


# ---------------------------------------------------------------- ended by a signal


ASKED: tuple[tuple[str, ...], ...] = (
    ("ingest", "more.json"),
    ("compare", "--format", "json"),
    ("plan",),
    ("history",),
    ("images",),
    ("reproducibility",),
    ("report", "--html", "new.html"),
    ("weekly", "--lang", "both", "--out", "new"),
    ("weekly", "--replay"),
    ("findings", "list"),
    ("mail", "--to", "a@example.org", "--from", "b@example.org"),
    ("changelog", "draft"),
    ("claims", "5% faster at conc 4"),
    ("store", "info"),
    ("store", "check"),
    ("store", "recover"),
    ("store", "rebuild"),
    ("store", "export", "--into", "tidy"),
    ("store", "pull", "elsewhere"),
    ("demo", "--into", "demo"),
)


def interrupted(kind: str, trials: int, rng: random.Random, folder: Path, processes: Processes) -> Tally:
    """SIGINT and SIGTERM at random moments: 130 and 143, one line, and a store that goes on."""
    tally = Tally(kind)
    home = model(folder / "model", processes)
    (home / "elsewhere").mkdir()
    write(home / "more.json", [bundle(run(300, "2026-07-20T00:00:00Z"), [row(4, 990.0)])])
    expected = contents(home)
    while tally.tried < trials:
        words = ASKED[tally.tried % len(ASKED)]
        number = (signal.SIGINT, signal.SIGTERM)[tally.tried // len(ASKED) % 2]
        lasted = 1.5
        copy = fresh(home, folder / "copy")
        # None or 0: it had ended by itself, before the signal came.
        while not (code := processes.ended(words, copy, rng.uniform(0.0, lasted), number)):
            lasted *= 0.7
            copy = fresh(home, folder / "copy")
        said = (copy / "err.txt").read_text() if (copy / "err.txt").exists() else ""
        flaws = []
        # Once it has told everything a command leaves signals to the system.
        if code not in {128 + number, -number}:
            flaws.append(f"{' '.join(words)}: exit code {code}: {said[-200:]}")
        if "Traceback" in said:
            flaws.append(f"{' '.join(words)}: {said[-300:]}")
        flaws += losses(copy)
        processes.done(("ingest", "more.json"), copy)
        flaws += [flaw for flaw in differing(copy, expected) if not is_of_more(flaw)]
        tally.trial(*flaws)
    return tally


def is_of_more(flaw: str) -> bool:
    """What the sweep that is landed at the end changes."""
    return flaw in {
        f"other {part}" for part in ("runs", "points", "scores", "rows that were rejected", "jobs", "findings")
    }


def model(home: Path, processes: Processes) -> Path:
    """A store with findings, reviews and words of people."""
    home.mkdir(parents=True)
    for step in telling_weeks(home):
        code, _ = processes.done(step.words, home)
        assert code == 0, (home / "err.txt").read_text()
    add_saying(home)
    return home


def fresh(home: Path, copy: Path) -> Path:
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(home, copy)
    return copy


# ---------------------------------------------------------------- damage


Harm = Callable[[Path, random.Random], object]


def _some_file(copy: Path, rng: random.Random) -> Path:
    return rng.choice(sorted((copy / ARCHIVE).glob("*/*/*.parquet")))


def _cut(path: Path, rng: random.Random) -> None:
    os.truncate(path, rng.randrange(path.stat().st_size))


def _flip(path: Path, rng: random.Random) -> None:
    flip(path, rng.randrange(path.stat().st_size), 1 << rng.randrange(8))


def _with_log(copy: Path) -> Path:
    """Leave the database as a killed writer does: the last transactions are in its log."""
    code = (
        "import os, sys; from store.duck import Store; s = Store.open(*sys.argv[1:]); s.put_note('a', 'b' * 1000);"
        "s.save_findings('x', ()); s.put_note('c', 1); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(copy / STORE), str(copy / ARCHIVE)], check=False)
    log = Path(f"{copy / STORE}.wal")
    assert log.stat().st_size
    return log


HARMS: Mapping[str, tuple[Harm, int]] = {
    "database, a bit flipped": (lambda copy, rng: _flip(copy / STORE, rng), 60),
    "database, a bit of its headers flipped": (lambda copy, rng: flip(copy / STORE, rng.randrange(3 * 4096)), 12),
    "database cut": (lambda copy, rng: _cut(copy / STORE, rng), 12),
    "database empty": (lambda copy, _: os.truncate(copy / STORE, 0), 2),
    "database gone": (lambda copy, _: (copy / STORE).unlink(), 2),
    "something else in its place": (lambda copy, rng: (copy / STORE).write_bytes(rng.randbytes(50_000)), 4),
    "log cut": (lambda copy, rng: _cut(_with_log(copy), rng), 10),
    "log, a bit flipped": (lambda copy, rng: _flip(_with_log(copy), rng), 10),
    "log is garbage": (lambda copy, rng: _with_log(copy).write_bytes(rng.randbytes(3000)), 4),
    "archive file cut": (lambda copy, rng: _cut(_some_file(copy, rng), rng), 16),
    "archive file, a bit flipped": (lambda copy, rng: _flip(_some_file(copy, rng), rng), 16),
    "archive file gone": (lambda copy, rng: _some_file(copy, rng).unlink(), 8),
}


def damaged(kind: str, trials: int, rng: random.Random, folder: Path, processes: Processes) -> Tally:
    """Damage at random places; `recover` must leave a clean store that holds what it held."""
    tally = Tally(kind)
    harm = HARMS[kind][0]
    home = model(folder / "model", processes)
    expected = contents(home)
    for _ in range(trials):
        copy = fresh(home, folder / "copy")
        harm(copy, rng)
        before = checkup.check(copy / STORE, copy / ARCHIVE)
        flaws = [f"{flaw.problem}: {flaw.where}" for flaw in before.flaws if flaw.lost is Lost.ROWS]
        code, _ = processes.done(("store", "recover"), copy)
        if code:
            flaws.append(f"recover ended with {code}: {(copy / 'err.txt').read_text()[-300:]}")
        tally.trial(*flaws, *differing(copy, expected))
    return tally


# ---------------------------------------------------------------- full disks and many writers


def full_disk(kind: str, trials: int, rng: random.Random, folder: Path, processes: Processes) -> Tally:
    """A disk without room in the middle of a landing; the same command goes on when there is some."""
    tally = Tally(kind)
    home = folder / "calm"
    home.mkdir()
    names = sweeps(home)
    assert processes.done(("ingest", *names), home)[0] == 0
    expected = contents(home)
    for _ in range(trials):
        room = rng.randrange(150, 4000)
        with disk(folder / "disk", f"{room}k") as small:
            if small is None:
                print("no small disk can be mounted here: full disks are left out", file=sys.stderr)
                return tally
            sweeps(small)
            code, _ = processes.done(("ingest", *names), small)
            said = (small / "err.txt").read_text()
            flaws = [f"code {code}: {said[-300:]}"] if "Traceback" in said or code not in {0, 1} else []
            subprocess.run(["mount", "-o", "remount,size=64m", str(small)], check=True)
            flaws += losses(small)
            again, _ = processes.done(("ingest", *names), small)
            flaws += [f"again {again}: {(small / 'err.txt').read_text()[-300:]}"] if again else []
            # A landing for which there was room is no trial.
            if code:
                tally.trial(*flaws, *differing(small, expected))
            else:
                tally.end(*flaws)
    return tally


@contextmanager
def disk(where: Path, size: str) -> Iterator[Path | None]:
    where.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(where)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", str(where)], check=True)


def writers(kind: str, trials: int, rng: random.Random, folder: Path, processes: Processes) -> Tally:
    """Many processes land at once: each a sweep of its own, and one that all of them have."""
    tally = Tally(kind)
    many = int(kind.split(maxsplit=1)[0])
    for number in range(trials):
        calm, home = folder / f"calm-{number}", folder / f"many-{number}"
        for place in (calm, home):
            place.mkdir()
            names = sweeps(place, many + 1)
        assert processes.done(("ingest", *names), calm)[0] == 0
        began = time.monotonic()
        started = []
        for name in rng.sample(names[1:], many):
            own = home / name.removesuffix(".json")
            own.mkdir()
            where = {"TRACKER_STORE": str(home / STORE), "TRACKER_ARCHIVE": str(home / ARCHIVE)}
            started.append((own, processes.begin(("ingest", f"../{names[0]}", f"../{name}"), own, where)))
        flaws = []
        for own, process in started:
            process.join()
            if process.exitcode:
                flaws.append(f"{own.name} ended with {process.exitcode}: {(own / 'err.txt').read_text()[-300:]}")
        print(f"  {many} writers at once: all had landed after {time.monotonic() - began:.1f} s", flush=True)
        tally.trial(*flaws, *losses(home), *differing(home, contents(calm)))
    return tally


KINDS: Mapping[str, tuple[Callable[..., Tally], int]] = {
    **{kind: (killed, count) for kind, (_, count, _) in STORIES.items()},
    "Ctrl-C and SIGTERM": (interrupted, 2 * len(ASKED)),
    **{kind: (damaged, count) for kind, (_, count) in HARMS.items()},
    "disk full": (full_disk, 12),
    "2 writers at once": (writers, 3),
    "20 writers at once": (writers, 2),
}


def table(rows: Sequence[Tally]) -> Iterator[str]:
    total = Tally("total", *(sum(getattr(one, name) for one in rows) for name in ("tried", "survived", "lost")))
    yield f"{'kind':<42} {'tried':>5} {'survived':>8} {'lost':>4}"
    yield from (f"{one.kind:<42} {one.tried:>5} {one.survived:>8} {one.lost:>4}" for one in (*rows, total))


def measure(kinds: Sequence[str], share: float, seed: int) -> Iterator[Tally]:
    processes = Processes()
    for kind in kinds:
        what, count = KINDS[kind]
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            trials = max(1, round(count * share))
            yield what(kind, trials, random.Random(f"{seed} {kind}"), Path(folder), processes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=KINDS, help="one kind; may be repeated")
    parser.add_argument("--share", type=float, default=1.0, help="of the trials of each kind")
    parser.add_argument("--seed", type=int, default=20261130)
    asked = parser.parse_args()
    rows = []
    for one in measure(asked.only or list(KINDS), asked.share, asked.seed):
        rows.append(one)
        print(f"{one.kind}: tried {one.tried}, survived {one.survived}, lost {one.lost}", flush=True)
        for flaw in one.flaws:
            print(f"  {flaw}", flush=True)
    print("\n" + "\n".join(table(rows)))
    return 1 if any(one.lost for one in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
