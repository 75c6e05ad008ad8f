"""Judges: what stands against what, the numbers, the verdict, the jobs, the command line."""
