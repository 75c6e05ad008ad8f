"""Releases with assets, and the artifacts of a whole repository, on the same server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.github.actions import SIGNATURE, Actions, Upload, _Api, _listening, _Store
from tests.github.description import Call, call, check_answer, example
from tests.github.server import NAME, OWNER, Answer, _message, _Plain

HERE = 1296269
"""The id of the repository; another one is a fork."""
TAG = "sweep-tracker-store"


@dataclass
class Asset:
    id: int
    name: str
    content: bytes
    state: str = "uploaded"
    created_at: str = "2001-09-09T01:40:00Z"


class Releases(Actions):
    """A GitHub with releases and a default branch."""

    def __init__(self) -> None:
        super().__init__()
        self.releases: dict[str, dict[str, Any]] = {}
        self.assets: dict[int, Asset] = {}
        self.visible = True

    # what a test says

    def released(self, tag: str = TAG) -> None:
        number = self._new_id()
        told = example("release") | {"id": number, "tag_name": tag, "url": f"{self._repository}/releases/{number}"}
        told["upload_url"] = f"{told['url']}/assets{{?name,label}}"
        self.releases[tag] = told

    def attached(self, name: str, content: bytes, **changes: Any) -> Asset:
        """An asset; a download of it is served by the storage host."""
        asset = Asset(self._new_id(), renamed(name), content, **changes)
        self.assets[asset.id] = asset
        self.uploads[asset.id] = Upload(asset.id, name, -1, content, asset.created_at)
        return asset

    # what the server does

    def perform(self, asked: Call, body: Any, login: str) -> Answer:
        route = ROUTES.get((asked.verb, asked.pattern))
        return route(self, asked, body) if route else super().perform(asked, body, login)

    def repository(self, asked: Call, body: Any) -> Answer:
        if not self.visible:
            return 404, _message("Not Found")
        told = example("full-repository") | {"id": HERE, "default_branch": "main", "url": self._repository}
        # The description requires what its own example leaves out.
        return 200, told | {"has_discussions": False}

    def all_artifacts(self, asked: Call, body: Any) -> Answer:
        name = asked.asked("name")
        shown = [self._listed(one) for one in self.uploads.values() if one.run >= 0 and name in {"", one.name}]
        return 200, {"total_count": len(shown), "artifacts": shown}

    def _listed(self, upload: Upload) -> dict[str, Any]:
        told = super()._listed(upload)
        attempts = self.runs.get(upload.run, [{}])
        of = {"repository_id": HERE, "head_repository_id": attempts[-1].get("head_repository_id", HERE)}
        told["workflow_run"] = told["workflow_run"] | of | {"head_branch": attempts[-1].get("head_branch")}
        return told

    def by_tag(self, asked: Call, body: Any) -> Answer:
        if asked["tag"] not in self.releases or not self.visible:
            return 404, _message("Not Found")
        return 200, self.releases[asked["tag"]]

    def create_release(self, asked: Call, body: Any) -> Answer:
        if body["tag_name"] in self.releases:
            raise _Plain(422, "Validation Failed")
        self.released(body["tag_name"])
        self.releases[body["tag_name"]] |= {"prerelease": body["prerelease"], "body": body["body"]}
        return 201, self.releases[body["tag_name"]]

    def list_assets(self, asked: Call, body: Any) -> Answer:
        return 200, [self._asset(one) for one in self.assets.values()]

    def upload(self, asked: Call, body: bytes) -> Answer:
        if any(one.name == renamed(asked.asked("name")) for one in self.assets.values()):
            raise _Plain(422, "Validation Failed")
        return 201, self._asset(self.attached(asked.asked("name"), body))

    def asset(self, asked: Call, body: Any) -> Answer:
        return 302, f"{self.storage.address}/{int(asked['asset_id'])}?sig={SIGNATURE}"

    def delete_asset(self, asked: Call, body: Any) -> Answer:
        del self.assets[int(asked["asset_id"])]
        return 204, None

    def _asset(self, asset: Asset) -> dict[str, Any]:
        told = example("release-asset") | {"id": asset.id, "name": asset.name, "size": len(asset.content)}
        told |= {"state": asset.state, "created_at": asset.created_at, "digest": None}
        return told | {"url": f"{self._repository}/releases/assets/{asset.id}"}


def renamed(name: str) -> str:
    """What GitHub makes of the name of an asset.

    >>> renamed("run=1,attempt=2,4f0c.parquet")
    'run.1.attempt.2.4f0c.parquet'
    """
    return re.sub(r"[^0-9A-Za-z]+", ".", name).strip(".")


_REPO = "/repos/{owner}/{repo}"
ROUTES = {
    ("GET", _REPO): Releases.repository,
    ("GET", f"{_REPO}/actions/artifacts"): Releases.all_artifacts,
    ("POST", f"{_REPO}/releases"): Releases.create_release,
    ("GET", f"{_REPO}/releases/tags/{{tag}}"): Releases.by_tag,
    ("GET", f"{_REPO}/releases/{{release_id}}/assets"): Releases.list_assets,
    ("POST", f"{_REPO}/releases/{{release_id}}/assets"): Releases.upload,
    ("GET", f"{_REPO}/releases/assets/{{asset_id}}"): Releases.asset,
    ("DELETE", f"{_REPO}/releases/assets/{{asset_id}}"): Releases.delete_asset,
}
REPOSITORY = f"{OWNER}/{NAME}"


class _ReleaseApi(_Api):
    """Takes the bytes of an asset, and sends its readers to the storage host."""

    github: Releases

    def _work(self, body: bytes, *, answer: bool) -> None:
        asked = call(self.command, self.path)
        if (asked.verb, asked.pattern) != ("POST", f"{_REPO}/releases/{{release_id}}/assets"):
            super()._work(body, answer=answer)
            return
        try:
            status, made = self.github.perform(asked, body, "")
            check_answer(asked, status, json.dumps(made))
        except _Plain as plain:
            status, made = plain.status, _message(plain.message)
        if answer:
            self._send(status, json.dumps(made))

    def _page(self, asked: Call, made: Any) -> tuple[Any, dict[str, str]]:
        if asked.pattern.endswith("{asset_id}") and isinstance(made, str):
            return None, {"Location": made}
        if asked.pattern.endswith("{release_id}/assets"):
            return super(_Api, self)._page(asked, made)
        return super()._page(asked, made)


@contextmanager
def serving() -> Iterator[Releases]:
    """A GitHub and its storage, each on a free port of 127.0.0.1, until the block ends."""
    github = Releases()
    with _listening(_ReleaseApi, github) as github.address, _listening(_Store, github) as github.storage.address:
        yield github
