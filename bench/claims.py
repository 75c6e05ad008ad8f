"""Does the time to find claims grow with the length of a text, whatever the text is? Ratios of one process.

    python -m bench.claims

A text four times as long takes about four times as long; sixteen times would be quadratic.
"""

import sys
import time

from tracker.claims import find_claims

UNITS = (
    *(
        "1",
        "+5% ",
        "5 tok/s ",
        "1->",
        "吞吐",
        "|",
        "(",
        "~",
        "A_",
        "a1",
        "TP4/",
        "conc 1,",
        "1,234",
        "a-",
        "about ",
    ),
    *("- 5%\n", "| 1 | 2 |\n", "`", "*", " ", "x throughput ", "0.95 GSM8K ", "from 1 to ", "c=", "--a ", "1/"),
    *("not ", "not up 5% ", "没有", "5% interval ", "p < 1 ", "v0.2 than v0.1 5% ", "v0.", "reported ", "to 5% "),
)
"""What the hostile texts repeat."""


def _seconds(unit: str, size: int) -> float:
    text = "| a | b |\n|---|---|\n" * unit.startswith("| 1") + unit * (size // len(unit))
    taken = []
    for _ in range(3):
        started = time.process_time()
        find_claims(text)
        taken.append(time.process_time() - started)
    return min(taken)


def main() -> int:
    print("unit                  24k ms   24k / 6k")
    for unit in UNITS:
        short, long = _seconds(unit, 6_000), _seconds(unit, 24_000)
        print(f"{unit!r:20} {1000 * long:8.1f} {long / max(short, 1e-4):10.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
