"""`python -m tracker` is the `tracker` command."""

from tracker.cli import main

main()
