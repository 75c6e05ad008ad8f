"""Inputs that nobody would write: one target per reader and grammar, a corpus, and a driver that looks for more.

`tests/test_fuzz.py` runs the corpus in the suite; `python -m tests.fuzz TARGET --minutes N` (extra `fuzz`) searches
with coverage as its guide and adds what it finds.
"""
