"""Two states of perf-changelog.yaml: what became of each entry, and whose tail is whose."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from store.changelog import CannotAppend, CannotRead, Entry, append, link, read
from store.revisions import CannotResolve, Kind, compare, resolve_tail, review


def entry(number: int, **fields: object) -> Entry:
    return replace(Entry((f"cfg-{number}",), (f"Entry {number}", f"More of {number}"), link(number)), **fields)


def file_of(*numbers: int) -> bytes:
    return append(b"", [entry(number) for number in numbers])


BASE = file_of(1, 2, 3, 4)
"""Entries at lines 1, 8, 15 and 22."""


def found(base: bytes, head: bytes) -> list[tuple[str, int | None, int | None]]:
    return [(change.kind.value, change.base_line, change.head_line) for change in compare(base, head)]


def test_nothing_changed():
    assert compare(BASE, BASE) == ()


def test_an_appended_entry_is_an_addition():
    assert found(BASE, file_of(1, 2, 3, 4, 5, 6)) == [("added", None, 29), ("added", None, 36)]
    assert found(b"", file_of(1)) == [("added", None, 1)]


def test_a_final_newline_that_was_missing_may_come_with_an_addition():
    assert found(BASE.rstrip(b"\n"), file_of(1, 2, 3, 4, 5)) == [("added", None, 29)]


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (file_of(1, 3, 4), [("deleted", 8, None)]),
        (b"", [("deleted", 1, None), ("deleted", 8, None), ("deleted", 15, None), ("deleted", 22, None)]),
        (file_of(1, 2, 4, 3), [("reordered", 22, 15)]),
        (file_of(1, 2, 5, 3, 4), [("inserted", None, 15)]),
        (BASE.replace(b'"Entry 2"', b"'Entry 2'"), [("edited", 8, 8)]),
        (BASE.replace(b"cfg-2", b"cfg-9"), [("edited", 8, 8)]),
        (BASE.replace(b"Entry 2", b"Entry two"), [("edited", 8, 8)]),
        (BASE.replace(b"cfg-2", b"cfg-9").replace(b"pull/2", b"pull/9"), [("edited", 8, 8)]),
        (BASE.replace(b"pull/2", b"pull/9"), [("relinked", 8, 8)]),
        (BASE.replace(b"pull/2", b"pull/XXX"), [("edited", 8, 8)]),
        (BASE + b"  evals-only: true\n", [("edited", 22, 22)]),
        (BASE.replace(b"\n\n", b"\n\n\n", 1), [("respaced", 8, 9)]),
        (BASE + b"\n# end\n" + entry(5).text.encode(), [("added", None, 30)]),
        (BASE.replace(b"\n\n", b"\n# why\n", 1), [("respaced", 8, 8)]),
        (b"# first\n" + BASE, [("respaced", 1, 2)]),
        (BASE.rstrip(b"\n"), [("respaced", 22, 22)]),
        (file_of(1, 2, 3, 5), [("added", None, 22), ("deleted", 22, None)]),
    ],
)
def test_every_change_of_history_is_found_with_the_lines_of_both(head, expected):
    assert found(BASE, head) == expected


def test_blanks_of_history_may_not_be_tidied_away_except_in_a_corrected_link():
    base = BASE.replace(b"pull/2\n\n", b"pull/2  \n  \n").replace(b'"Entry 1"', b'"Entry 1" ')
    assert found(base, base.replace(b'"Entry 1" ', b'"Entry 1"')) == [("edited", 1, 1)]
    assert found(base, base.replace(b"pull/2  ", b"pull/2")) == [("relinked", 8, 8)]
    assert found(base, base.replace(b"\n  \n", b"\n\n")) == [("respaced", 15, 15)]


UNION = file_of(1) + (
    b'\n- config-keys:\n    - cfg-2\n    - cfg-3\n  description:\n    - "Entry 2"\n    - "More of 2"\n    - "Entry 3"\n'
    b'    - "More of 3"\n  pr-link: https://github.com/SemiAnalysisAI/InferenceX/pull/2\n'
    b"  pr-link: https://github.com/SemiAnalysisAI/InferenceX/pull/3\n"
)


def test_entries_that_a_union_merge_swallowed_are_named():
    assert found(file_of(1, 2), UNION) == [("merged_away", 8, 8)]
    assert found(file_of(1, 2, 3), UNION) == [("merged_away", 8, 8), ("merged_away", 15, 8)]
    assert yaml.safe_load(UNION)[1]["pr-link"] == link(3), "a plain reader sees nothing wrong"


def test_two_entries_merged_into_one_are_named_although_no_field_stands_twice():
    merged = append(file_of(1), [Entry(("cfg-2", "cfg-3"), entry(2).description + entry(3).description, link(3))])
    assert found(file_of(1, 2, 3), merged) == [("merged_away", 8, 8), ("merged_away", 15, 8)]


def test_two_links_in_the_last_entry_and_none_in_the_one_before():
    interleaved = (
        file_of(1, 2, 3)
        .replace(b"  pr-link: https://github.com/SemiAnalysisAI/InferenceX/pull/2\n", b"")
        .replace(b"pull/3\n", b"pull/2\n  pr-link: https://github.com/SemiAnalysisAI/InferenceX/pull/3\n")
    )
    assert found(file_of(1, 2, 3), interleaved) == [("edited", 8, 8), ("merged_away", 15, 14)]


def test_a_change_says_where_and_what_to_do():
    deleted, edited = compare(BASE, file_of(1, 3, 4).replace(b'"Entry 3"', b'"Entry 3!"'))
    assert str(deleted) == "base line 8: cfg-2 (#2): deleted; put it back"
    assert str(edited).startswith("base line 15, head line 8: cfg-3 (#3): edited; put the old lines back")


def test_what_is_no_changelog_cannot_be_compared():
    with pytest.raises(CannotRead, match="line 28: a conflict marker"):
        compare(BASE, BASE + b"<<<<<<< HEAD\n")


many = st.lists(st.integers(1, 30), max_size=12, unique=True)


@given(many, st.data())
def test_deleted_entries_are_exactly_the_ones_that_are_named(numbers, data):
    gone = data.draw(st.lists(st.sampled_from(numbers), unique=True) if numbers else st.just([]))
    changes = compare(file_of(*numbers), file_of(*(number for number in numbers if number not in gone)))
    assert sorted(change.entry.pull_request for change in changes if change.kind is Kind.DELETED) == sorted(gone)
    assert {change.kind for change in changes} <= {Kind.DELETED}


@given(st.permutations(range(1, 9)))
def test_a_shuffled_history_is_reordered_and_nothing_else(order):
    changes = compare(file_of(*range(1, 9)), file_of(*order))
    assert {change.kind for change in changes} <= {Kind.REORDERED}
    assert bool(changes) == (list(order) != list(range(1, 9)))


@given(many, st.integers(0, 2000), st.integers(0, 60), st.sampled_from([b"", b"x", b"\n", b" ", b"\n\n- a: b\n"]))
def test_a_base_that_is_no_prefix_is_never_passed(numbers, place, length, piece):
    base = file_of(*numbers)
    head = base[:place] + piece + base[place + length :]
    try:
        result = review(base, head)
    except CannotRead:
        return
    if not head.startswith(base):
        assert result.forbidden or {change.kind for change in result.changes} == {Kind.RELINKED}


# -------------------------------------------------------------------------------------------------------------- review

KEYS = {f"cfg-{number}" for number in range(1, 6)}


def test_a_good_addition_passes_and_a_wrong_number_does_not():
    head = file_of(1, 2, 3, 4, 5)
    assert review(BASE, head, known_keys=KEYS, pull_request=5).passed
    (flaw,) = review(BASE, head, known_keys=KEYS, pull_request=6).flaws
    assert str(flaw) == f"line 29: the link names pull request 5, but this is pull request 6; write {link(6)}"


def test_the_placeholder_passes_until_the_number_is_known():
    head = append(BASE, [entry(5, pr_link=link(None))])
    assert review(BASE, head).passed
    assert [flaw.code for flaw in review(BASE, head, pull_request=5).flaws] == ["link_placeholder"]


def test_flaws_of_history_do_not_block_and_retired_keys_neither():
    base = BASE.replace(b"pull/2", b"pull/2/changes").replace(b'"Entry 3"', b'"Entry 3"  ')
    result = review(base, append(base, [entry(5)]), known_keys={"cfg-5"}, pull_request=5)
    assert result.passed
    assert [flaw.code for flaw in result.inherited] == ["link_malformed", "trailing_blank"]


def test_a_corrected_link_passes_alone_but_not_beside_an_addition():
    base = BASE.replace(b"pull/2", b"pull/XXX")
    assert review(base, BASE, known_keys=set(), pull_request=77).passed
    result = review(base, append(BASE, [entry(5)]))
    assert [change.kind for change in result.forbidden] == [Kind.RELINKED]
    assert not result.passed


def test_an_append_only_entry_beside_an_ordinary_one_blocks():
    head = append(append(BASE, [entry(5)]), [entry(6, append_only=True)])
    assert [flaw.code for flaw in review(BASE, head).flaws] == ["append_only_mixed"]


# ------------------------------------------------------------------------------------------------------- tail conflicts


def test_mains_bytes_then_the_branchs_own_entries_with_the_canonical_link():
    main = file_of(1, 2, 3).replace(b'"Entry 2"', b"'Entry 2'  ")
    branch = append(file_of(1, 2), [entry(8, pr_link=link(None)), entry(9)])
    new = resolve_tail(main, branch, pull_request=77)
    assert new.startswith(main)
    assert read(new).entries[3:] == (entry(8, pr_link=link(77)), entry(9, pr_link=link(77)))
    assert review(main, new, pull_request=77).passed


def test_what_main_holds_already_under_any_link_is_not_added_again():
    new = resolve_tail(file_of(1, 8), append(file_of(1), [entry(8, pr_link=link(None)), entry(9)]), pull_request=9)
    assert read(new).entries == (entry(1), entry(8), entry(9))


def test_an_own_entry_before_one_that_main_holds_is_kept():
    branch = append(file_of(1), [entry(7, pr_link=link(None)), entry(8)])
    assert read(resolve_tail(file_of(1, 8), branch, pull_request=7)).entries == (entry(1), entry(8), entry(7))


def test_what_main_took_out_of_its_history_does_not_return():
    new = resolve_tail(file_of(1, 3), file_of(1, 2, 3, 4), pull_request=4)
    assert read(new).entries == (entry(1), entry(3), entry(4))


def test_a_branch_without_own_entries_and_a_damaged_one_are_refused():
    with pytest.raises(CannotResolve, match="nothing is left to append"):
        resolve_tail(file_of(1, 2), file_of(1), pull_request=4)
    with pytest.raises(CannotResolve, match="line 17: `pr-link` stands twice"):
        resolve_tail(file_of(1), UNION, pull_request=4)
    with pytest.raises(CannotAppend, match="the same entry stands at new entry 1"):
        resolve_tail(file_of(1), file_of(1, 2) + b"\n" + entry(2).text.encode(), pull_request=4)


@given(many, many, many)
def test_every_own_entry_arrives_exactly_once(common, theirs, ours):
    theirs = [number for number in theirs if number not in common]
    ours = [number for number in ours if number not in common]
    main, branch = file_of(*common, *theirs), append(file_of(*common), [entry(n, pr_link=link(None)) for n in ours])
    own = [number for number in ours if number not in theirs]
    if not own:
        with pytest.raises(CannotResolve):
            resolve_tail(main, branch, pull_request=99)
        return
    new = resolve_tail(main, branch, pull_request=99)
    assert new.startswith(main)
    assert [e.config_keys[0] for e in read(new).entries] == [f"cfg-{n}" for n in (*common, *theirs, *own)]


# ------------------------------------------------------------------------------------------------------ reference data


@pytest.mark.shared
def test_the_real_file_with_four_planted_faults(shared: Path):
    base = (shared / "data/inferencex/perf-changelog.yaml").read_bytes()
    log = read(base)
    deleted, edited, moved = log.blocks[100], log.blocks[300], log.blocks[500]
    pieces = [log.gap_before(block) + log.bytes_of(block) for block in log.blocks]
    pieces[edited.index] = pieces[edited.index].replace(b"    - ", b"    -  ")
    pieces.insert(510, pieces.pop(moved.index))
    del pieces[deleted.index]
    head = append(b"".join(pieces) + log.tail, [entry(1)])
    assert {(change.kind, change.base_line) for change in compare(base, head)} == {
        (Kind.DELETED, deleted.first_line),
        (Kind.EDITED, edited.first_line),
        (Kind.REORDERED, moved.first_line),
        (Kind.ADDED, None),
    }


@pytest.mark.shared
def test_the_real_file_written_back_by_a_yaml_tool_is_an_edit_of_every_entry(shared: Path):
    base = (shared / "data/inferencex/perf-changelog.yaml").read_bytes()
    head = yaml.safe_dump(yaml.load(base, Loader=yaml.CSafeLoader), sort_keys=False).encode()
    assert {change.kind for change in compare(base, head)} == {Kind.EDITED}
    assert len(compare(base, head)) == 772
    assert not review(base, head).passed
