"""The papers of a release: licences that were read, and an audit that does not take silence for an answer."""

from __future__ import annotations

import runpy
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def licences() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / ".ci" / "licences"))


def test_the_page_of_licences_is_what_the_command_writes(licences: dict[str, Any]) -> None:
    # Some pins are for one system alone: whoever has the others only cannot read their licences.
    lacking = [name for name in licences["everything"]() if name not in licences["READ"] and not _is_here(name)]
    if lacking:
        pytest.skip(f"pinned and not installed here: {', '.join(lacking)}")
    assert (ROOT / "docs" / "licences.md").read_text(encoding="utf-8") == licences["page"]()


def _is_here(name: str) -> bool:
    try:
        return bool(metadata.version(name))
    except metadata.PackageNotFoundError:
        return False


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({"License-Expression": "MIT"}, "MIT"),
        ({"License": "BSD 2-Clause License", "Classifier": "License :: OSI Approved :: BSD License"}, "BSD-2-Clause"),
        ({"Classifier": "License :: OSI Approved :: MIT License"}, "MIT"),
        ({"License": "MIT OR Apache-2.0"}, "MIT OR Apache-2.0"),
    ],
)
def test_a_licence_is_read_where_the_metadata_state_it(licences: dict[str, Any], said: dict, found: str) -> None:
    from email.message import Message

    told = Message()
    for name, value in said.items():
        told[name] = value
    assert licences["stated"]("some-package", told) == found


def test_a_licence_that_nobody_read_stops_the_command(licences: dict[str, Any], monkeypatch) -> None:
    monkeypatch.setitem(licences["licence"].__globals__, "stated", lambda name, told: "AGPL-3.0-only")
    with pytest.raises(SystemExit, match=r"states 'AGPL-3\.0-only': read its licence"):
        licences["licence"]("pytest")


@pytest.mark.parametrize(
    ("answer", "code", "word"),
    [
        ({"dependencies": [{"name": "a", "version": "1", "vulns": []}]}, 0, "no vulnerability known"),
        ({"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "X-1"}]}]}, 1, "a 1: X-1"),
        ({"dependencies": [{"name": "a", "skip_reason": "not found"}]}, 3, "1 of 1 packages were not found"),
        ({"dependencies": []}, 3, "NOT audited"),
        (None, 3, "NOT audited"),
    ],
)
def test_an_audit_without_an_answer_is_no_audit(answer: dict | None, code: int, word: str) -> None:
    audit = runpy.run_path(str(ROOT / ".ci" / "audit"))
    found, text = audit["told"]("requirements.txt", answer)
    assert found == code
    assert word in text


def test_a_bill_of_materials_names_no_host() -> None:
    sbom = runpy.run_path(str(ROOT / ".ci" / "sbom"))
    told = {"components": [{"purl": "pkg:pypi/a@1", "externalReferences": [{"url": "https://example.org"}]}]}
    assert sbom["bare"](told) == {"components": [{"purl": "pkg:pypi/a@1"}]}
