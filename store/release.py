"""The archive as files of GitHub: assets of a release, one for each archive file, and workflow artifacts to read from.

An asset is made and never changed. Only what an upload left behind that broke off, which GitHub itself shows as an
empty asset in the state `starter`, is removed, and only when it is older than any upload takes.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import github
import requests
from github.GitRelease import GitRelease
from github.GitReleaseAsset import GitReleaseAsset

from store.credentials import Refused
from store.github import PATIENCE, Access, Artifact, Expired, Reader, TooLarge, _artifact
from store.patience import Patience, delay_of
from store.records import Trouble
from store.travel import MOST_BYTES

MOST_ASSETS: Final = 1000
"""GitHub's limit for one release."""
STALE: Final = timedelta(minutes=10)

_ASSETS: Final = (
    (re.compile(r"run\.(n?)(\d+)\.attempt\.(\d+)\.([0-9a-f]{16})\.parquet"), "run={}{}/attempt={}/{}.parquet"),
    (re.compile(r"findings(\.)([0-9a-f]{16})\.at\.(\w+)\.([0-9a-f]{16})\.parquet"), "findings={}{}/at={}/{}.parquet"),
)
_SIGNS: Final = {"n": "-", ".": "", "": ""}
_BODY: Final = (
    "The archive of sweep-tracker: one immutable file for each run attempt that was measured, and for each comparison "
    "that was judged. `tracker store pull release:{tag}` reads it. Made by `tracker store push`; do not edit."
)
_WRITE: Final = "pushing to a release needs a token with `contents: write` of {repository}"


def asset_name(name: str) -> str:
    """What the asset of an archive file is called: GitHub renames what is neither letter, digit nor inner full stop.

    >>> asset_name("run=-12/attempt=1/4f0c2ab19d3e7a55.parquet")
    'run.n12.attempt.1.4f0c2ab19d3e7a55.parquet'
    """
    return name.replace("=-", ".n").replace("=", ".").replace("/", ".")


def archive_name(asset: str) -> str:
    """The name of the archive file that an asset is; that of a stranger stays.

    >>> archive_name("run.n12.attempt.1.4f0c2ab19d3e7a55.parquet")
    'run=-12/attempt=1/4f0c2ab19d3e7a55.parquet'
    """
    for pattern, form in _ASSETS:
        found = pattern.fullmatch(asset)
        if found:
            return form.format(_SIGNS[found[1]], *found.groups()[1:])
    return asset


class Release(Reader):
    """The assets of the release of a tag; `push` makes the release when there is none."""

    hands = 1

    def __init__(self, access: Access, tag: str, patience: Patience = PATIENCE) -> None:
        super().__init__(access, patience)
        self._repository = self._client.get_repo(access.repository)
        self.where = f"release:{tag} of {access.repository}"
        self._tag = tag
        self._now = patience.clock
        self._release: GitRelease | None = None
        self._assets: dict[str, GitReleaseAsset] = {}
        # Without this the API answers with the description of an asset.
        self._session.headers["Accept"] = "application/octet-stream"

    def sizes(self) -> dict[str, int]:
        """Every whole asset by the name of its archive file; none where there is no such release."""
        self._release = self._read(self.where, self._found)
        if self._release is None:
            # GitHub says 404 for a repository that the token may not see, too.
            self._read(f"repository {self.access.repository}", self._repository.complete)
            return {}
        self._look()
        return {name: asset.size for name, asset in self._assets.items() if asset.state == "uploaded"}

    def _found(self) -> GitRelease | None:
        try:
            return self._repository.get_release(self._tag)
        except github.UnknownObjectException:
            return None

    def _look(self) -> None:
        assert self._release is not None
        pages = self._release.get_assets()
        listed = self._read(f"assets of {self.where}", lambda: list(pages))
        self._assets = {archive_name(asset.name): asset for asset in listed}

    def read(self, name: str) -> bytes:
        number = self._assets[name].id
        return self._read(f"asset {asset_name(name)}", lambda: self._content(number))

    def _content(self, number: int) -> bytes:
        address = f"{self.access.api}/repos/{self.access.repository}/releases/assets/{number}"
        with self._opened(address) as answer:
            if answer.status_code != 200:
                raise Refused(answer.status_code, answer.headers, self._words(answer))
            return b"".join(_bounded(answer.iter_content(1024**2)))

    def write(self, name: str, content: bytes) -> None:
        if self._release is None:
            self._release = self._done(self.where, self._made)
            self._look()
        if len(self._assets) >= MOST_ASSETS:
            raise Trouble(f"{self.where} has {MOST_ASSETS} assets, GitHub's limit: push to a bucket, or to another tag")
        self._done(asset_name(name), lambda: self._uploaded(name, content))

    def _made(self) -> GitRelease:
        """The release, by us or by another push at the same time."""
        found = self._found()
        if found is not None:
            return found
        body = _BODY.format(tag=self._tag)
        return self._repository.create_git_release(
            self._tag, self._tag, body, prerelease=True, make_latest="false"
        ).complete()

    def _uploaded(self, name: str, content: bytes) -> None:
        """Look, then upload: a failed upload may have arrived, and another push may have been faster."""
        assert self._release is not None
        standing = self._assets.get(name)
        if standing is not None and standing.state == "uploaded":
            return
        if standing is not None:
            self._clear(standing)
        try:
            self._assets[name] = self._release.upload_asset_from_memory(
                BytesIO(content), len(content), asset_name(name), "application/octet-stream"
            )
        except (github.GithubException, requests.RequestException, ValueError):
            self._look()
            if name in self._assets and self._assets[name].state == "uploaded":
                return
            raise

    def _clear(self, broken: GitReleaseAsset) -> None:
        """Remove what an upload left behind that broke off, unless it may still be under way."""
        age = datetime.fromtimestamp(self._now(), UTC) - broken.created_at
        if age < STALE:
            raise Trouble(
                f"{broken.name} of {self.where} is being uploaded, or its upload broke off: push again in 10 minutes"
            )
        broken.delete_asset()
        self._look()

    def _done(self, what: str, call: Any) -> Any:
        """A change, tried again within the budget; a refusal says which right is missing."""

        def tried() -> Any:
            try:
                return call()
            except github.GithubException as error:
                if error.status in {403, 404} and delay_of(error.status, error.headers or {}, str(error.data)) is None:
                    need = _WRITE.format(repository=self.access.repository)
                    raise Trouble(f"GitHub refuses {what}: {self._said(error)}; {need}") from None
                raise

        return self._read(what, tried)


class WorkflowArtifact(Reader):
    """The newest artifact of a name that a workflow of this repository's default branch has uploaded.

    An artifact of a pull request, or of a fork with a branch of the same name, is never taken.
    """

    hands = 1

    def __init__(self, access: Access, name: str, patience: Patience = PATIENCE) -> None:
        super().__init__(access, patience)
        self._repository = self._client.get_repo(access.repository)
        self.where = f"artifact:{name} of {access.repository}"
        self._name = name
        self._folder = TemporaryDirectory(prefix="sweep-tracker-")
        self._zip: zipfile.ZipFile | None = None

    def __exit__(self, *gone: object) -> None:
        if self._zip is not None:
            self._zip.close()
        self._folder.cleanup()
        super().__exit__(*gone)

    def sizes(self) -> dict[str, int]:
        """The files in the artifact; none where there is no artifact of that name."""
        newest = self._newest()
        if newest is None:
            return {}
        path = Path(self._folder.name, "archive.zip")
        try:
            self.download(newest, path)
            self._zip = zipfile.ZipFile(path)
        except (Expired, TooLarge, zipfile.BadZipFile) as flaw:
            said = str(flaw) or "expired while it was asked for"
            raise Trouble(f"{self.where}, {newest.id}, cannot be read: {said}; name another place") from None
        return {one.filename: one.file_size for one in self._zip.infolist() if not one.is_dir()}

    def _newest(self) -> Artifact | None:
        self._read(f"repository {self.access.repository}", self._repository.complete)
        pages = self._repository.get_artifacts(self._name)
        listed = self._read(self.where, lambda: [_artifact(one.raw_data) for one in pages])
        ours = [one for one in listed if not one.expired and one.name == self._name and self._is_ours(one.told)]
        return max(ours, key=lambda one: (one.created_at, one.id), default=None)

    def _is_ours(self, told: Mapping[str, Any]) -> bool:
        run = told.get("workflow_run") or {}
        here = self._repository.id
        branch = run.get("head_branch") == self._repository.default_branch
        return branch and run.get("repository_id") == here and run.get("head_repository_id") == here

    def read(self, name: str) -> bytes:
        assert self._zip is not None
        try:
            with self._zip.open(name) as member:
                return b"".join(_bounded(iter(lambda: member.read(1024**2), b"")))
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as flaw:
            raise Trouble(f"{self.where}: {name} cannot be read ({flaw}); name another place") from None

    def write(self, _: str, __: bytes) -> None:
        raise Trouble(f"{self.where} cannot be written to")


def _bounded(chunks: Iterable[bytes]) -> Iterable[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > MOST_BYTES:
            raise Trouble(f"more than {MOST_BYTES} bytes came where an archive file was promised")
        yield chunk
