"""Numbers to verdicts: `sweep` for performance, `scores` for accuracy."""
