"""Does the time of a grammar of names grow with the length of a text, whatever the text is? Ratios of one process.

    python -m bench.grammars

A text four times as long takes about four times as long; sixteen times would be quadratic. Claims have their own
benchmark (`bench.claims`), the names of jobs are read up to a length.
"""

import re
import sys
import time
from collections.abc import Callable

from reports import escapes
from store import changelog, identity, images, plan, runs, titles, yamltext
from store.readers.decode import Unreadable, decode

SIZE = 20_000
"""Characters of the shorter text."""

GRAMMARS: tuple[tuple[str, Callable[[str], object], tuple[str, ...]], ...] = (
    (
        "image",
        lambda text: images.parse.__wrapped__(f"a/b:{text}!"),
        ("a", "1.", "v1", "-a1", ":", "/", "rc1", "20260614", "a/", "@sha256:", "1.1rc"),
    ),
    ("job name", titles.parse.__wrapped__, ("TP8/", "c64 ", "(TP", "| ", " / ", "8k1k_", "1P (TP8) x ")),
    ("runner", identity.hardware.__wrapped__, ("a", "_1", "-", ":")),
    ("wildcard", lambda text: plan.matching("*a" * 20 + "*b", (text,)), ("a", "ab", "ba", "*")),
    ("pattern", lambda text: plan.matching(text + "*x", ("a" * 200,)), ("*", "a*", "ab*")),
    ("address", runs.parse_url, ("/a/b/actions/runs/", "/", "a/", "/actions/runs/1", " ")),
    (
        "yaml",
        lambda text: _quiet(yamltext.values, text),
        ("- a\n", "a: b\n", "[", "&a ", "*a ", '"', "? ", "#\n", "- - "),
    ),
    ("changelog", lambda text: changelog.flaws(text.encode()), ("- config-keys:\n", "\n", " \n", "- \n", "<<<<<<<\n")),
    (
        "json",
        lambda text: _quiet(decode, f"[NaN,{text}".encode()),
        ("[", "[1,", "9", '{"a":', '"', "NaN,", " ", "9,", "\\u"),
    ),
    ("markdown", escapes.markdown.__wrapped__, ("@", "|", "https://", " ", "\u202e", "\\")),
)
"""A grammar, and what the hostile texts repeat. Caches are left out: a text of these is never seen twice."""


def _quiet(read: Callable[..., object], given: object) -> None:
    try:
        read(given)
    except (yamltext.NotYaml, Unreadable):
        return


def _seconds(read: Callable[[str], object], unit: str, size: int) -> float:
    text = unit * (size // len(unit))
    taken = []
    for number in range(3):
        # Another text each time, for what keeps its answers behind the grammar.
        said = text + "x" * number
        started = time.process_time()
        read(said)
        taken.append(time.process_time() - started)
        re.purge()
    return min(taken)


def main() -> int:
    print("grammar    unit                  80k ms   80k / 20k")
    for name, read, units in GRAMMARS:
        for unit in units:
            short, long = _seconds(read, unit, SIZE), _seconds(read, unit, 4 * SIZE)
            print(f"{name:10} {unit!r:20} {1000 * long:8.1f} {long / max(short, 1e-4):10.1f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
