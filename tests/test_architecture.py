"""The walls between the rooms: one module per foreign tool, and nothing heavy at the door."""

import subprocess
import sys
from collections.abc import Mapping

import grimp
import pytest

OWNERS: Mapping[str, frozenset[str]] = {
    "duckdb": frozenset({"store.duck", "store.salvage"}),
    "github": frozenset({"store.github", "store.credentials", "store.release", "reports.channels.github"}),
    "requests": frozenset({"store.github", "store.credentials", "store.release", "reports.channels.github"}),
    "pyarrow": frozenset({"store.buckets", "store.parquet"}),
    "click": frozenset({"tracker.cli"}),
    "jinja2": frozenset({"reports.render"}),
    "scipy": frozenset({"tracker.stats"}),
    "rich": frozenset({"reports.channels.terminal", "tracker.cli"}),
    "altair": frozenset({"reports.charts"}),
    "vl_convert": frozenset({"reports.charts"}),
    "PIL": frozenset({"reports.charts"}),
    "ray": frozenset({"tracker.clusters"}),
    "gettext": frozenset({"reports.language"}),
    "smtplib": frozenset({"reports.channels.smtp"}),
}


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("tracker", "reports", "store", include_external_packages=True)


@pytest.mark.parametrize("tool", OWNERS)
def test_each_foreign_tool_has_one_room(graph: grimp.ImportGraph, tool: str) -> None:
    importers = graph.find_modules_that_directly_import(tool) if tool in graph.modules else set()
    strangers = {name for name in importers if not any(f"{name}.".startswith(f"{room}.") for room in OWNERS[tool])}
    assert not strangers


def test_the_statistics_know_nothing_of_ours(graph: grimp.ImportGraph) -> None:
    ours = {"tracker", "reports", "store"}
    for module in graph.find_descendants("tracker.stats") | {"tracker.stats"}:
        imported = {name for name in graph.find_modules_directly_imported_by(module) if name.split(".")[0] in ours}
        assert all(name.startswith("tracker.stats") for name in imported), (module, imported)


@pytest.mark.parametrize("arguments", [["--help"], ["compare", "--help"], ["ingest", "--help"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys; from tracker.cli import run; code = run(sys.argv[1:]);"
        "heavy = {'polars', 'duckdb', 'scipy', 'numpy', 'pyarrow', 'jinja2', 'github', 'rich'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else code)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Usage:" in done.stdout
