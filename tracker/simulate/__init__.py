"""Makes sweeps whose truth is known: artifact files for the demo, tidy frames for calibration.

Everything is drawn from a seed and dated by an argument: the same call writes the same bytes.
"""

from tracker.simulate.frames import NOISES, draw, simulate_sweeps
from tracker.simulate.story import write_story
from tracker.simulate.truth import Story, StoryRun

__all__ = ["NOISES", "Story", "StoryRun", "draw", "simulate_sweeps", "write_story"]
