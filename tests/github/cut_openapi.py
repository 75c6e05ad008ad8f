"""Cuts GitHub's OpenAPI description down to the requests that we make, in one file each: for the channel, for fetching,
for what stands around a run (jobs, pull requests, files, the token of an app), for releases, for what a pull request
changes and who reviewed it.

A file has no schema that an earlier one has.

npm pack @octokit/openapi && tar xzf octokit-openapi-*.tgz
python tests/github/cut_openapi.py package/generated/api.github.com.json tests/data
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHANNEL = {
    "/repos/{owner}/{repo}/pulls/{pull_number}": ["get"],
    "/repos/{owner}/{repo}/issues/{issue_number}/comments": ["get", "post"],
    "/repos/{owner}/{repo}/issues/comments/{comment_id}": ["patch", "delete"],
    "/repos/{owner}/{repo}/issues/{issue_number}/labels": ["get", "post"],
    "/repos/{owner}/{repo}/issues/{issue_number}/labels/{name}": ["delete"],
    "/repos/{owner}/{repo}/commits/{ref}/check-runs": ["get"],
    "/repos/{owner}/{repo}/check-runs": ["post"],
    "/repos/{owner}/{repo}/check-runs/{check_run_id}": ["patch"],
}
ACTIONS = {
    "/repos/{owner}/{repo}/actions/runs/{run_id}": ["get"],
    "/repos/{owner}/{repo}/actions/runs/{run_id}/attempts/{attempt_number}": ["get"],
    "/repos/{owner}/{repo}/actions/runs/{run_id}/artifacts": ["get"],
    "/repos/{owner}/{repo}/actions/artifacts/{artifact_id}/{archive_format}": ["get"],
    "/repos/{owner}/{repo}/commits/{commit_sha}/pulls": ["get"],
}
AROUND = {
    "/repos/{owner}/{repo}/actions/runs": ["get"],
    "/repos/{owner}/{repo}/actions/runs/{run_id}/jobs": ["get"],
    "/repos/{owner}/{repo}/pulls": ["get"],
    "/repos/{owner}/{repo}/pulls/{pull_number}/commits": ["get"],
    "/repos/{owner}/{repo}/contents/{path}": ["get"],
    "/repos/{owner}/{repo}/installation": ["get"],
    "/app/installations/{installation_id}/access_tokens": ["post"],
}
AROUND_EXAMPLES = ["job", "commit", "installation", "content-file"]
RELEASES = {
    "/repos/{owner}/{repo}": ["get"],
    "/repos/{owner}/{repo}/actions/artifacts": ["get"],
    "/repos/{owner}/{repo}/releases": ["post"],
    "/repos/{owner}/{repo}/releases/tags/{tag}": ["get"],
    "/repos/{owner}/{repo}/releases/{release_id}": ["get"],
    "/repos/{owner}/{repo}/releases/{release_id}/assets": ["get", "post"],
    "/repos/{owner}/{repo}/releases/assets/{asset_id}": ["get", "delete"],
}
PULLS = {
    "/repos/{owner}/{repo}/pulls/{pull_number}/files": ["get"],
    "/repos/{owner}/{repo}/pulls/{pull_number}/reviews": ["get"],
    "/repos/{owner}/{repo}/compare/{basehead}": ["get"],
}
FILES = {
    "github-openapi.json": (CHANNEL, ["pull-request", "issue-comment", "check-run", "label"]),
    "github-openapi-actions.json": (ACTIONS, ["workflow-run", "artifact", "pull-request-simple"]),
    "github-openapi-around.json": (AROUND, AROUND_EXAMPLES),
    "github-openapi-releases.json": (RELEASES, ["full-repository", "release", "release-asset"]),
    "github-openapi-pulls.json": (PULLS, ["diff-entry-items", "pull-request-review-items", "commit-comparison"]),
}
PROSE = {"description", "summary", "externalDocs", "x-github", "x-octokit", "examples", "example", "tags"}
LICENCE = "MIT License, Copyright (c) 2020 Octokit contributors (npm @octokit/openapi {version}, cut down)"


def bare(node: Any, inside_properties: bool = False) -> Any:
    """The description less its prose; a property may be called `description` and stays."""
    if isinstance(node, list):
        return [bare(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: bare(value, inside_properties=key == "properties" and not inside_properties)
        for key, value in node.items()
        if inside_properties or key not in PROSE
    }


def references(node: Any) -> Iterator[tuple[str, str]]:
    if isinstance(node, list):
        for item in node:
            yield from references(item)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str):
                _, _, section, name = value.split("/")
                yield section, name
            else:
                yield from references(value)


def cut(whole: dict[str, Any], used: dict[str, list[str]], named: list[str]) -> dict[str, Any]:
    """The used requests and all that they refer to, with one example of each answer."""
    paths = {path: {verb: bare(whole["paths"][path][verb]) for verb in verbs} for path, verbs in used.items()}
    components: dict[str, dict[str, Any]] = {}
    waiting = set(references(paths))
    while waiting:
        section, name = waiting.pop()
        kept = components.setdefault(section, {})
        if name not in kept:
            kept[name] = bare(whole["components"][section][name])
            waiting |= set(references(kept[name]))
    examples = {name: whole["components"]["examples"][name]["value"] for name in named}
    info = {
        "title": whole["info"]["title"],
        "version": whole["info"]["version"],
        "license": whole["info"]["license"],
        "x-licence-line": LICENCE.format(version=whole["info"]["version"]),
    }
    return {
        "openapi": whole["openapi"],
        "info": info,
        "paths": paths,
        "components": {name: dict(sorted(components[name].items())) for name in sorted(components)},
        "x-examples": examples,
    }


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    release = json.loads(source.read_text())
    known: set[tuple[str, str]] = set()
    for name, (used, named) in FILES.items():
        kept = cut(release, used, named)
        for section, parts in kept["components"].items():
            kept["components"][section] = {key: part for key, part in parts.items() if (section, key) not in known}
            known |= {(section, key) for key in parts}
        (target / name).write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
