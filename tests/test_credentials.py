"""A token that was given, and an app that asks for one: nothing secret is ever shown."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator, Mapping

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from reports import outbox
from store.credentials import READING, WRITING, credentials
from store.github import Access, Reader
from store.records import Trouble
from tests.cli import Tracker
from tests.github.actions import Actions, App, serving
from tests.github.clock import Time
from tests.github.server import BAD_GATEWAY, RESET, SECONDARY, TOKEN, Fault

RUN = 27489075807
TOKENS = "/access_tokens$"


@pytest.fixture(scope="module")
def keys() -> tuple[str, str]:
    """Private and public half of a key."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


@pytest.fixture
def hub() -> Iterator[Actions]:
    with serving() as github:
        github.ran(RUN)
        yield github
    assert github.flaws == []


@pytest.fixture
def app(hub: Actions, keys: tuple[str, str]) -> App:
    return hub.installed(keys[1])


@pytest.fixture
def environ(keys: tuple[str, str]) -> dict[str, str]:
    return {"GITHUB_APP_ID": "4711", "GITHUB_APP_PRIVATE_KEY": keys[0]}


def reader(hub: Actions, environ: Mapping[str, str], time: Time | None = None) -> Reader:
    given = credentials(environ, "octo/sweeps", hub.address)
    return Reader(Access("octo/sweeps", given, hub.address), (time or Time()).patience())


def test_an_app_reads_with_a_token_that_may_only_read(hub: Actions, app: App, environ: dict[str, str]) -> None:
    with reader(hub, environ) as made:
        assert made.run(RUN)["id"] == RUN
        made.artifacts(RUN)
    assert app.asked == [dict(READING)]
    assert hub.count("GET", "/installation$") == 1


def test_a_token_that_was_given_comes_first(hub: Actions, app: App, environ: dict[str, str]) -> None:
    with reader(hub, environ | {"GITHUB_TOKEN": TOKEN}) as made:
        assert made.identity() == (TOKEN, None)
    assert app.asked == []


def test_a_key_with_its_line_ends_as_two_characters_is_read(hub: Actions, app: App, environ: dict[str, str]) -> None:
    flat = environ["GITHUB_APP_PRIVATE_KEY"].replace("\n", "\\n")
    with reader(hub, environ | {"GITHUB_APP_PRIVATE_KEY": flat}) as made:
        assert made.run(RUN)["id"] == RUN


def test_an_installation_that_is_named_is_not_looked_for(hub: Actions, app: App, environ: dict[str, str]) -> None:
    with reader(hub, environ | {"GITHUB_APP_INSTALLATION_ID": "815"}) as made:
        made.run(RUN)
    assert hub.count("GET", "/installation$") == 0


def test_a_token_is_asked_for_again_before_it_ends(hub: Actions, app: App, environ: dict[str, str]) -> None:
    app.seconds = 200.0
    with reader(hub, environ) as made:
        made.run(RUN)
        app.seconds = 3600.0
        made.run(RUN)
        made.run(RUN)
        assert len(app.tokens) == 2
        upload = hub.uploaded(RUN, "bmk_a", {"a.json": []})
        assert [one.id for one in made.artifacts(RUN)] == [upload.id]
    assert len(app.tokens) == 2


def test_an_app_with_fewer_rights_reads_with_those(hub: Actions, app: App, environ: dict[str, str]) -> None:
    app.granted = {"actions": "read", "contents": "read"}
    with reader(hub, environ) as made:
        assert made.run(RUN)["id"] == RUN
    assert app.asked == [app.granted]


@pytest.mark.parametrize(
    ("fault", "waited"), [(BAD_GATEWAY, 1.0), (RESET, 1.0), (Fault(403, SECONDARY, {"retry-after": "7"}), 7.0)]
)
def test_a_token_is_waited_for_within_the_budget(
    hub: Actions, app: App, environ: dict[str, str], fault: Fault, waited: float
) -> None:
    time = Time()
    hub.order("POST", TOKENS, fault)
    with reader(hub, environ, time) as made:
        assert made.run(RUN)["id"] == RUN
    assert time.slept == [waited]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"GITHUB_APP_PRIVATE_KEY": ""}, "GITHUB_APP_PRIVATE_KEY is empty"),
        ({"GITHUB_APP_ID": ""}, "GITHUB_APP_ID is empty"),
        ({"GITHUB_APP_PRIVATE_KEY": "PEM-SECRET"}, "GITHUB_APP_PRIVATE_KEY holds no RSA private key"),
        ({"GITHUB_APP_INSTALLATION_ID": "main"}, "'main', not a number"),
        ({"GITHUB_APP_ID": "", "GITHUB_APP_PRIVATE_KEY": ""}, "put it into GITHUB_TOKEN, or"),
    ],
    ids=["no key", "no app", "no PEM", "no number", "nothing"],
)
def test_what_is_missing_or_wrong_is_told_before_anything_is_asked(
    hub: Actions, environ: dict[str, str], changes: dict[str, str], told: str
) -> None:
    with pytest.raises(Trouble, match=told) as trouble:
        credentials(environ | changes, "octo/sweeps", hub.address)
    assert "PEM-SECRET" not in "".join(traceback.format_exception(trouble.value))
    assert hub.requests == []


def test_github_may_not_know_the_app(hub: Actions, app: App, environ: dict[str, str]) -> None:
    with reader(hub, environ | {"GITHUB_APP_ID": "5"}) as made, pytest.raises(Trouble, match="check that GITHUB_APP"):
        made.run(RUN)
    hub.app = None
    hub.order("GET", "/installation$", Fault(404, "Not Found"))
    with reader(hub, environ) as made, pytest.raises(Trouble, match="install the app on the repository"):
        made.run(RUN)


def test_neither_key_nor_token_is_told(
    hub: Actions, app: App, environ: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    given = credentials(environ, "octo/sweeps", hub.address)
    access = Access("octo/sweeps", given, hub.address)
    told = [repr(given), repr(access), str(vars(given).keys())]
    with Reader(access, Time().patience()) as made:
        made.run(RUN)
        told.append(repr(given))
        for path, fault in (
            ("/runs/", Fault(404, "nothing for {authorization}")),
            ("/artifacts", Fault(400, "{authorization}")),
        ):
            hub.order("GET", path, fault)
            with pytest.raises(Trouble) as trouble:
                made.run(RUN) if "runs" in path else made.artifacts(RUN)
            told.append("".join(traceback.format_exception(trouble.value)))
    hub.order("POST", TOKENS, Fault(401, "bad {authorization}"))
    with reader(hub, environ) as made, pytest.raises(Trouble) as trouble:
        made.run(RUN)
    told.append("".join(traceback.format_exception(trouble.value)))
    said = "".join(told) + caplog.text
    assert all(token not in said for token in app.tokens)
    assert app.tokens
    assert "eyJ" not in said
    assert all(line not in said for line in environ["GITHUB_APP_PRIVATE_KEY"].splitlines()[1:-1])


def test_a_comment_of_an_app_is_found_again_by_its_own_login(
    hub: Actions, app: App, environ: dict[str, str], tracker: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.granted = dict(WRITING)
    for name, value in {**environ, "GITHUB_TOKEN": "", "GITHUB_API_URL": hub.address}.items():
        monkeypatch.setenv(name, value)
    hub.opened(7)
    kept = tracker.folder / "errands.json"
    for body in ("first", "second"):
        mark = outbox.Mark(version="0.1.0", head="a" * 40, verdict="regression")
        outbox.write([outbox.Comment.of(7, f"{body}\n\n{mark}\n", "now slower")], kept)
        said = tracker("deliver", kept, "--head", "a" * 40, "--repo", "octo/sweeps", "--send")
        assert said.code == 0, said
    assert len(hub.of(7, app.slug)) == 1
