"""Pull requests with everything that a sign-off is checked against: owners, checklist, models, configs, changelog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from store.changelog import Entry, append, link
from tests.github.actions import Actions, Pull
from tests.github.story import REPOSITORY

BASE = "b" * 40
PHRASE = "As a PR reviewer and CODEOWNER, I have reviewed this and have"
OWNERS = """\
* @bench/core

# one line for each vendor
configs/amd-master.yaml @ann @bob
configs/nvidia-master.yaml @codeowner-1 @codeowner-2 @bench/core
"""
ITEMS = (
    "Looked at the newest version of [the list](https://example.org/list).",
    "Found the code as good as the rest.",
    "Saw that validation passed. Please link to the run that shows it.",
    "Saw that the evals pass.  Please link to the run that shows it.",
    "Ran speculative decoding through chat templates",
    "Left the engine as the image ships it: no patch",
)
CHECKLIST = "\n".join(["# List", "## Template", "```", f"{PHRASE}:", *(f"- [ ] {one}" for one in ITEMS), "",
                       "### Additional detail section:", "- anything", "", "Signed: `NAME`", "```", ""])  # fmt: skip
MODELS = """\
# Models

| Scenario | ISL/OSL | Status |
|---|---|---|
| Agentic coding | long | Active |
| Single-turn 8k1k | 8192 / 1024 | Active, the main one |
| Single-turn 1k1k | 1024 / 1024 | **Deprecated for all models** since July |

| Class | Prefix | Active scenarios | Deprecated scenarios |
|---|---|---|---|
| MiniMax | `minimaxm3` | Single-turn 8k1k, Single-turn 2k1k, Agentic coding (MTP only) | Single-turn 1k1k |
| R1 | `dsr1` | Single-turn 8k1k | Single-turn 1k8k (removed, #7) |
"""
THRESHOLDS = "default: {gsm8k: 0.90}\nmodels: {}\n"
OLD_ENTRY = Entry(("old-key",), ("The first one.",), link(1, REPOSITORY))
REMINDER = f"Thanks! You must follow the template, including the phrase {PHRASE}."


def policies(hub: Actions, **changes: str | None) -> None:
    """The files of the base branch; a change of None leaves one out."""
    files: dict[str, str | None] = {
        ".github/CODEOWNERS": OWNERS,
        "docs/PR_REVIEW_CHECKLIST.md": CHECKLIST,
        "MODELS.md": MODELS,
        "utils/evals/thresholds.yaml": THRESHOLDS,
    }
    held = {path: text for path, text in {**files, **changes}.items() if text is not None}
    hub.committed("main", held)


def changelog(*entries: Entry) -> bytes:
    data = b""
    for one in (OLD_ENTRY, *entries):
        data = append(data, [one])
    return data


def entry(key: str, *items: str, pull: int | None = None, **changes: Any) -> Entry:
    return Entry((key,), items, link(pull, REPOSITORY), **changes)


def proposed(
    hub: Actions, number: int, before: Mapping[str, str | bytes], after: Mapping[str, str | bytes],
    files: Sequence[Mapping[str, Any]] = (), repository: str = REPOSITORY, **changes: Any,
) -> Pull:  # fmt: skip
    """A pull request from a commit of main to its head, with the files of both sides and the diff that GitHub shows."""
    pull = hub.proposed(number, base_sha=BASE, repository=repository, **changes)
    hub.parted["main", pull.head] = BASE
    hub.committed(BASE, before)
    hub.committed(pull.head, after, repository)
    pull.files = [dict(one) for one in files]
    return pull


def diff(path: str, *added: str, first: int = 1, **changes: Any) -> dict[str, Any]:
    """A file of a diff that adds these lines."""
    patch = f"@@ -{first},1 +{first},{len(added) + 1} @@\n" + "".join(f"+{line}\n" for line in added) + " rest"
    return {"filename": path, "patch": patch} | changes


def signed(
    run: int, *, unchecked: Sequence[int] = (), details: Sequence[str] = (), items: Sequence[str] = ITEMS
) -> str:
    """A sign-off as people fill it in: what asks for a link has one."""
    filled = [one.split(" Please")[0].rstrip() + f" Run Sweep {run}" if "Please" in one else one for one in items]
    boxes = [f"- [{' ' if place in unchecked else 'x'}] {text}" for place, text in enumerate(filled)]
    return "\r\n".join([f"{PHRASE}:", *boxes, "", "### Additional detail section:", *(f"- {one}" for one in details),
                        "", "Signed: codeowner-1"])  # fmt: skip
