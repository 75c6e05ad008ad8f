"""CODEOWNERS: patterns as GitHub documents them, in words of our own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.owners import Rule, parse


@pytest.mark.parametrize(
    ("pattern", "owned", "free"),
    [
        ("*", ["a", "a/b.py", ".github/x"], []),
        ("**", ["a", "a/b.py"], []),
        # An ending, in whatever folder.
        ("*.yaml", ["a.yaml", "x/y/a.yaml"], ["a.yml", "a.yaml.bak"]),
        # A folder at the root, with everything below it.
        ("/out/logs/", ["out/logs/a", "out/logs/b/c"], ["x/out/logs/a", "out/logs"]),
        # The files of a folder, and nothing deeper.
        ("docs/*", ["docs/start.md"], ["docs/build/trouble.md", "x/docs/start.md"]),
        # A folder of this name anywhere.
        ("apps/", ["apps/a", "x/apps/a", "x/apps/y/a"], ["apps", "myapps/a"]),
        ("/docs/", ["docs/a", "docs/b/c"], ["x/docs/a"]),
        ("**/logs", ["logs/a", "out/logs/b", "deep/er/logs"], ["logs2/a"]),
        ("/scripts", ["scripts", "scripts/a.sh"], ["x/scripts"]),
        ("configs/nvidia-master.yaml", ["configs/nvidia-master.yaml"], ["x/configs/nvidia-master.yaml", "configs/amd"]),
        ("MODELS.md", ["MODELS.md", "docs/MODELS.md"], ["MODELS.md5", "models.md"]),
        ("a/**/z.py", ["a/z.py", "a/b/c/z.py"], ["b/a/z.py"]),
        ("a/**", ["a/b", "a/b/c"], ["b/a/c"]),
        ("v?.txt", ["v1.txt", "x/v2.txt"], ["v.txt", "v/.txt", "v10.txt"]),
        (r"with\ blank.md", ["with blank.md"], ["with"]),
        ("a.b", ["a.b"], ["axb"]),
    ],
)
def test_a_pattern_owns_what_github_says(pattern: str, owned: list[str], free: list[str]) -> None:
    (rule,) = parse(f"{pattern} @ann").rules
    assert [path for path in owned if not rule.owns(path)] == []
    assert [path for path in free if rule.owns(path)] == []


@pytest.mark.parametrize(
    "line", ["!a @ann", r"\#a @ann", "a[0-9] @ann", "a ann", "a @ann, @bob", "# a @ann", "", "/ @a"]
)
def test_a_line_that_github_skips_owns_nothing(line: str) -> None:
    assert parse(line).rules == ()


def test_the_last_line_that_matches_decides_and_owners_do_not_add_up() -> None:
    found = parse("* @org/core\napps/ @Ann bob@example.org # ours\napps/free\n*.md @cid\n")
    assert [rule.line for rule in found.rules] == [1, 2, 3, 4]
    assert found.of("apps/a.py") == Rule(2, "apps/", ("@Ann", "bob@example.org"))
    assert found.of("apps/free") == Rule(3, "apps/free", ())
    assert found.of("apps/a.md") == Rule(4, "*.md", ("@cid",))
    assert found.of("a.py") == Rule(1, "*", ("@org/core",))
    assert found.people == {"ann", "cid"}
    assert (found.rules[0].others, found.rules[1].others) == (("@org/core",), ("bob@example.org",))
    assert [rule.is_catch_all for rule in found.rules] == [True, False, False, False]


@given(st.text(alphabet="ab*?/\\ #![].@", max_size=24), st.text(alphabet="ab/.", min_size=1, max_size=12))
def test_no_line_and_no_path_breaks_the_reader(line: str, path: str) -> None:
    for rule in parse(f"{line} @ann\n{line}").rules:
        assert rule.owns(path) in {True, False}


def test_the_star_of_a_name_never_crosses_a_folder() -> None:
    (rule,) = parse("/a*z @ann").rules
    assert [rule.owns(path) for path in ("abcz", "ab/cz", "az/deep")] == [True, False, True]
