"""Search for inputs that break a property: `python -m tests.fuzz TARGET --minutes N`, or `all`, one after the other.

Needs atheris (extra `fuzz`, Python 3.11 to 3.13 as its wheels allow). What breaks a property is made as small as may be
and written into the corpus as `found-DIGEST`: fix the code, run the suite, commit both. Exit code 1 says that
something was found.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RSS_MIB = 3072
"""Memory of a search; an input that takes more is a finding."""
SECONDS = 10
"""Time of one input; a longer one is a finding."""


def main() -> int:
    asked = _arguments()
    if asked.child:
        return _search(asked.target, asked.folder, asked.seconds)
    from tests.fuzz.targets import TARGETS

    names = list(TARGETS) if asked.target == "all" else [asked.target]
    if unknown := set(names) - set(TARGETS):
        sys.exit(f"no target {unknown.pop()!r}: {', '.join(TARGETS)}")
    if importlib.util.find_spec("atheris") is None:
        sys.exit("nothing to search with: pip install --require-hashes -r requirements-fuzz.txt, or .ci/fuzz")
    print(f"{'target':20} minutes executions edges corpus findings", flush=True)
    return max([_campaign(name, asked.minutes) for name in names])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("target", help="a target, or all")
    parser.add_argument("--minutes", type=float, default=5.0, help="for each target (default: 5)")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def _campaign(name: str, minutes: float) -> int:
    """Searches until the time is over; each finding ends one, so the next begins with what was learnt."""
    from tests.fuzz.targets import TARGETS

    target = TARGETS[name]
    started, found, runs, edges = time.monotonic(), set(), 0, 0
    with tempfile.TemporaryDirectory(prefix=f"fuzz-{name}-") as work:
        learnt = Path(work, "learnt")
        learnt.mkdir()
        for seed in target.inputs():
            (learnt / seed.name).write_bytes(seed.read_bytes())
        while (left := 60 * minutes - (time.monotonic() - started)) > 2 and len(found) < 20:
            done = _child(name, Path(work), int(left))
            runs += max([int(one) for one in re.findall(r"^#(\d+)", done, re.MULTILINE)], default=0)
            edges = max([edges, *(int(one) for one in re.findall(r"cov: (\d+)", done))])
            broken = [path for path in Path(work).iterdir() if path.is_file() and path.name != "words"]
            if not broken:
                break
            found |= {kept for path in broken if (kept := _keep(name, path))}
        size = len(list(learnt.iterdir()))
    print(f"{name:20} {(time.monotonic() - started) / 60:7.1f} {runs:10} {edges:5} {size:6} {len(found):8}", flush=True)
    return int(bool(found))


def _child(name: str, work: Path, seconds: int) -> str:
    """One search in a process of its own: an abort of the engine ends it."""
    words = [sys.executable, "-m", "tests.fuzz", name, "--child", "--folder", str(work), "--seconds", str(seconds)]
    done = subprocess.run(words, capture_output=True, check=False)
    said = (done.stderr + done.stdout).decode("utf-8", "replace")
    if "Traceback" in said:
        print(said[said.index("Traceback") :].partition("MS:")[0][-1500:], file=sys.stderr, flush=True)
    elif done.returncode:
        print(said[-1500:], file=sys.stderr, flush=True)
    return said


def _keep(name: str, path: Path) -> str:
    """The finding in the corpus, as small as halving and cutting make it; empty where it does not break by itself."""
    from tests.fuzz.targets import TARGETS

    target, data = TARGETS[name], path.read_bytes()
    is_slow = path.name.startswith(("timeout-", "oom-", "slow-"))
    path.unlink()
    if not is_slow:
        data = minimised(data, lambda one: breaks(target.run, one))
    digest = hashlib.sha256(data).hexdigest()[:10]
    (target.corpus / f"found-{digest}").write_bytes(data)
    print(f"found in {name}: found-{digest} ({len(data)} bytes): {data[:200]!r}", file=sys.stderr, flush=True)
    return digest


def breaks(run, data: bytes) -> str:  # type: ignore[no-untyped-def]  # any target
    """The kind of exception that an input raises; empty where the property holds."""
    try:
        run(data)
    except KeyboardInterrupt:
        raise
    except BaseException as flaw:  # a panic of a library is no Exception
        return type(flaw).__name__
    return ""


def minimised(data: bytes, broken) -> bytes:  # type: ignore[no-untyped-def]  # a test of bytes
    """The input less every part whose absence leaves the same kind of exception."""
    kind = broken(data)
    size = len(data) // 2
    while kind and size:
        at = 0
        while at < len(data):
            shorter = data[:at] + data[at + size :]
            if broken(shorter) == kind:
                data = shorter
            else:
                at += size
        size //= 2
    return data


def _search(name: str, work: Path, seconds: int) -> int:
    import atheris

    from tests.fuzz import mutate
    from tests.fuzz.target import Target

    modules = _modules(name)
    with atheris.instrument_imports(include=modules):
        from tests.fuzz.targets import TARGETS
    target: Target = TARGETS[name]
    words = work / "words"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.words))

    def change(data: bytes, size: int, seed: int) -> bytes:
        rng = random.Random(seed)
        changed = mutate.json_value(data, rng) if rng.random() < 0.7 else None
        return atheris.Mutate(data, size) if changed is None or len(changed) > size else changed

    options = [sys.argv[0], str(work / "learnt"), f"-max_total_time={seconds}", f"-max_len={target.longest}"]
    options += [f"-dict={words}", f"-artifact_prefix={work}/", f"-rss_limit_mb={RSS_MIB}", f"-timeout={SECONDS}"]
    options += ["-verbosity=1", "-print_final_stats=1"]
    atheris.Setup(options, target.run, **({"custom_mutator": change} if target.is_json else {}))
    atheris.Fuzz()
    return 0


def _modules(name: str) -> list[str]:
    """Asked of a fresh process, since a module that is imported already cannot be instrumented."""
    code = f"import json; from tests.fuzz.targets import TARGETS; print(json.dumps(TARGETS[{name!r}].instrument))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    return list(json.loads(said))


def _escaped(word: str) -> str:
    return "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02x}"
        for byte in word.encode("utf-8", "surrogatepass")
    )


if __name__ == "__main__":
    sys.exit(main())
