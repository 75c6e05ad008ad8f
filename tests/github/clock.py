"""Time for tests that wait: nobody really does."""

from dataclasses import dataclass, field

from store.patience import Patience


@dataclass
class Time:
    """A clock that moves only by sleeping."""

    now: float = 1_000_000_000.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def patience(self, tries: int = 12, seconds: float = 300.0) -> Patience:
        return Patience(tries, seconds, self.sleep, lambda: self.now)
