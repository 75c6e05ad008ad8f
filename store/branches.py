"""Which git branch a file lies on: what may be proposed on a branch would start GPU sweeps on the main one."""

from __future__ import annotations

import subprocess
from pathlib import Path

from store.records import Trouble

MAIN = frozenset({"main", "master", "trunk"})
"""Branches that nothing is written to, with the one that the remote calls its own."""


def check_is_branch(path: Path) -> None:
    """Raise Trouble unless the file lies in a git work tree on another branch than the main one."""
    branch = _git(path, "symbolic-ref", "--quiet", "--short", "HEAD")
    if branch is None:
        raise Trouble(f"{path} lies on no branch of git: check one out, or leave --write away and paste the proposal")
    remote = _git(path, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    if branch in MAIN or f"origin/{branch}" == remote:
        raise Trouble(f"{path} lies on {branch}: an entry there starts sweeps; check out a branch first")


def _git(path: Path, *words: str) -> str | None:
    """The answer of git in the file's folder; None where there is none."""
    folder = path.resolve().parent
    try:
        done = subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
