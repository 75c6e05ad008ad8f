"""perf-changelog.yaml as bytes: what is read, what is refused, and what appending may never change."""

import json
import random
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from store import yamltext
from store.changelog import CannotAppend, CannotRead, Entry, append, append_file, flaws, link, read
from store.whole import write_atomically

IRREGULAR = b"""\
- config-keys:
    - dsr1-fp8-h200-sglang
  description:
    - "First entry, kept with its trailing space"\x20\x20\x20
  pr-link: https://github.com/example-org/bench/pull/1001

- config-keys:
   - gptoss-fp4-b200-vllm
  description:
    - 'Update image: v0.21.0 -> v0.22.0'
  # a remark inside
  pr-link: https://github.com/example-org/bench/pull/1002 \x20
  \x20

# a remark between
- config-keys: [ "minimaxm3-fp8-*" ]
  description:
  - Add sweep (+4.7% avg)
  pr-link:
    https://github.com/example-org/bench/pull/1003/changes
  evals-only: true
\x20
- description: [one, "two: 2"]
  config-keys:
    - dsr1*
  pr-link: https://github.com/SemiAnalysisAI/InferenceX/pull/XXX
"""
NEW = Entry(("dsr1-fp8-h200-sglang",), ("Update SGLang image from v0.5.11-cu130 to v0.5.12-cu130",), link(1004))
TAILS = (b"", b"\n", b"\n\n", b"\n  \n", b"\n  ", b"\n# a last remark\n")

HAZARDS = (
    *("yes", "no", "on", "off", "y", "N", "null", "~", "true", "1.10", "1e3", "0x1F", "0o17", "12:30", "2026-01-01"),
    *("-", "- a", "-? b", "? a", "?", "! a", "!tag", "&a b", "* a", "*a", "| a", "|", "> a", ">-", "% d", "@at", "`a`"),
    *("a: b", "a:", ": a", "a #b", "#a", "{a: b}", "[a]", "a, b", "---", "...", "<<", "="),
    *("<<<<<<< HEAD", "=======", ">>>>>>> x"),
    *("\"a\" 'b'", "C:\\path\\n", '{"a":"b","c":"d"}', "'", '"', "\\", "it's {\"a\": 'b'}", '\\"\\"\\"', '""""\n'),
    *(" a", "a ", "\ta", "a\tb", "a\nb", "a\r\nb", "a\r", "a\x85b", "a\u2028b", "a\u2029b", "\x00a"),
    *("a\x07\x1b\x7f", "\ufeffa"),
    *("新增：将镜像升级至 v0.5.12（降低 3.2 %）", "全角\u3000空格\u00a0", "emoji 🚀👩‍👩‍👧"),
    *("\u202egnp.exe", "a\u200bb", "\ufffe", "\U0010ffff"),
    *("x" * 2000, "长" * 700, " ".join(["word"] * 400), "%YAML 1.2", "a\x1cb", "e\u0301"),
)  # fmt: skip

# ----------------------------------------------------------------------------------------------- a small YAML 1.2 twin

_PRINTABLE_1_2 = re.compile("[\t\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")
_ESCAPE_1_2 = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_NAMED_1_2 = dict(zip('0abtnvfre "/\\N_LP', '\0\a\b\t\n\v\f\r\x1b "/\\\x85\xa0\u2028\u2029', strict=True))
_CORE_1_2 = re.compile(
    r"~|null|Null|NULL|true|True|TRUE|false|False|FALSE|[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
    r"|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)|"
)
_PLAIN_1_2 = re.compile(r"(?![-?:,\[\]{}#&*!|>'\"%@` ])(?!.*(: |:$| #))[\x20-\x7e]*(?<! )")


def read_1_2(scalar: str) -> str:
    """One flow scalar on one line by the rules of YAML 1.2 and its core schema; anything but a text fails."""
    assert _PRINTABLE_1_2.fullmatch(scalar)
    if scalar.startswith('"'):
        assert re.fullmatch(r'"([^"\\]|\\.)*"', scalar)
        return _ESCAPE_1_2.sub(lambda m: _NAMED_1_2[m[4]] if m[4] else chr(int(m[1] or m[2] or m[3], 16)), scalar[1:-1])
    if scalar.startswith("'"):
        assert re.fullmatch(r"'([^']|'')*'", scalar)
        return scalar[1:-1].replace("''", "'")
    assert _PLAIN_1_2.fullmatch(scalar)
    assert not _CORE_1_2.fullmatch(scalar)
    return scalar


def texts_1_2(entry: str) -> list[str]:
    """Every item of a list of a canonical entry, as a YAML 1.2 reader sees it."""
    return [read_1_2(line[6:]) for line in entry.split("\n") if line.startswith("    - ")]


hazardous = st.one_of(
    st.text(),
    st.sampled_from(HAZARDS),
    st.lists(st.sampled_from([*HAZARDS, " ", "\n", ": ", " #", "'", '"', "\\"]), max_size=5).map("".join),
)
filled = hazardous.filter(str.strip)
names = st.one_of(st.from_regex(r"[a-z0-9.*]{1,8}(-[a-z0-9.*]{1,5}){0,3}", fullmatch=True), filled)
entries = st.builds(
    Entry,
    config_keys=st.lists(names, min_size=1, max_size=3).map(tuple),
    description=st.lists(filled, min_size=1, max_size=4).map(tuple),
    pr_link=st.one_of(st.none(), st.integers(1, 99999)).map(link),
    scenario_type=st.sampled_from([(), ("agentic-coding",), ("fixed-seq-len", "agentic-coding")]),
    evals_only=st.booleans(),
    all_evals=st.booleans(),
    eval_min_prefill_ep=st.one_of(st.none(), st.integers(1, 64)),
)
batches = st.lists(entries, min_size=1, max_size=4, unique_by=lambda entry: entry.identity)

# ------------------------------------------------------------------------------------------------------------- quoting


@given(hazardous)
def test_a_quoted_text_reads_back_by_both_versions_of_yaml(text):
    line = yamltext.quoted(text)
    assert "\n" not in line
    assert yaml.safe_load(line) == text
    assert yaml.load(line, Loader=yaml.CSafeLoader) == text
    assert read_1_2(line) == text


@given(names)
def test_a_name_stays_a_text_in_both_versions_of_yaml(name):
    line = yamltext.scalar(name)
    assert yaml.safe_load(line) == name
    assert read_1_2(line) == name


@pytest.mark.parametrize("text", HAZARDS)
def test_each_hazard_survives_a_file(text):
    new = append(b"", [Entry(("a-b",), (f"{text}.", f"x{text}", text))])
    (entry,) = yaml.safe_load(new)
    assert entry["description"] == [f"{text}.", f"x{text}", text]


def test_chinese_and_emoji_stand_readable_and_what_hides_stands_escaped():
    assert yamltext.quoted("新增 🚀") == '"新增 🚀"'
    assert yamltext.quoted("a\u202eb\u200b") == '"a\\u202eb\\u200b"'


def test_half_of_a_surrogate_pair_is_refused_with_its_place():
    with pytest.raises(CannotAppend, match="new entry 2: a text holds half of a surrogate pair"):
        append(b"", [NEW, Entry(("a",), ("\ud83d",))])


# ------------------------------------------------------------------------------------------------------------- reading


def test_the_irregular_file_is_read_with_places():
    log = read(IRREGULAR)
    assert [(block.first_line, block.last_line) for block in log.blocks] == [(1, 5), (7, 12), (16, 21), (23, 26)]
    assert [log.bytes_of(block).split(b"\n")[0] for block in log.blocks] == [
        *[b"- config-keys:"] * 2,
        b'- config-keys: [ "minimaxm3-fp8-*" ]',
        b'- description: [one, "two: 2"]',
    ]
    assert log.bytes_of(log.blocks[1]).endswith(b"pull/1002  ")
    assert [entry.pull_request for entry in log.entries] == [1001, 1002, 1003, None]
    assert log.entries[2].evals_only
    assert log.entries[3].description == ("one", "two: 2")


def test_spans_and_gaps_put_together_are_the_file():
    log = read(IRREGULAR)
    assert b"".join(log.gap_before(block) + log.bytes_of(block) for block in log.blocks) + log.tail == IRREGULAR


def test_line_numbers_are_those_of_an_editor_even_behind_a_raw_unicode_line_break():
    data = '- config-keys: [a]\n  description: ["x\u2028y\x85z"]\n  pr-link: 1\n\n- config-keys: [b]\n'.encode()
    assert [block.first_line for block in read(data).blocks] == [1, 5]


def test_a_byte_order_mark_is_a_flaw_and_moves_no_place():
    data = b"\xef\xbb\xbf" + append(b"", [NEW, Entry(("a",), ("b",), link(7))])
    assert [(block.first_line, block.last_line) for block in read(data).blocks] == [(1, 5), (7, 11)]
    assert read(data).bytes_of(read(data).blocks[1]).startswith(b"- config-keys:")
    assert ("byte_order_mark", 1) in [(flaw.code, flaw.line) for flaw in flaws(data)]


def test_strings_stay_strings():
    (entry,) = read(b"- config-keys: [1.10, on]\n  description: [2026-01-01, 12:30]\n  pr-link: 0x1F\n").entries
    assert entry == Entry(("1.10", "on"), ("2026-01-01", "12:30"), "0x1F")


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        (b"- a\n<<<<<<< HEAD\n", "conflict_marker", 2),
        (b"- a\n=======\r\n", "conflict_marker", 2),
        (b"- a\n||||||| base\n", "conflict_marker", 2),
        (b"- config-keys: [\xff]\n", "not_utf8", 1),
        (b"- a\n- \0\n", "nul", 2),
        (b"- a: [\n- b\n", "syntax", 2),
        (b"- a\n- \x07\n", "syntax", 2),
        (b"a: b\n", "not_a_list", 1),
        (b"- a\n---\n- b\n", "syntax", 2),
        (b"[" * 5000, "syntax", 1),
    ],
)
def test_what_is_no_changelog_is_refused_with_its_line(data, code, line):
    with pytest.raises(CannotRead) as refusal:
        read(data)
    assert [(flaw.code, flaw.line) for flaw in refusal.value.flaws] == [(code, line)]
    assert str(refusal.value).startswith(f"line {line}: ")
    assert flaws(data) == refusal.value.flaws


def _damaged(start: int, length: int, piece: bytes) -> bytes:
    return IRREGULAR[:start] + piece + IRREGULAR[start + length :]


PIECES = (b"\n", b"- ", b": ", b"\n- ", b"[", b"'", b'"', b"&a ", b"*a", b"#")
pieces = st.one_of(st.binary(max_size=4), st.sampled_from(PIECES))
places = st.integers(0, len(IRREGULAR))


@given(st.one_of(st.binary(max_size=99), st.text().map(str.encode), st.builds(_damaged, places, places, pieces)))
def test_any_bytes_are_read_or_refused(data):
    try:
        log = read(data)
    except CannotRead:
        return
    assert b"".join(log.gap_before(block) + log.bytes_of(block) for block in log.blocks) + log.tail == data


# ---------------------------------------------------------------------------------------------------------- validation

SECOND = Entry(("a-b", "c-*"), ("Text",), link(7), ("agentic-coding",), append_only=True)
CLEAN = append(append(b"", [NEW]), [SECOND])


def test_a_canonical_file_has_no_flaw():
    assert flaws(CLEAN, {"dsr1-fp8-h200-sglang", "a-b", "c-d"}) == ()


@pytest.mark.parametrize(
    ("old", "new", "code", "line"),
    [
        (b"Text", b"Te\rxt", "carriage_return", 13),
        (b"Text", b"Te\txt", "tab", 13),
        (b'"Text"', b'"Text" ', "trailing_blank", 13),
        (b"\n\n", b"\n\n\n", "separation", 8),
        (b"\n\n", b"\n", "separation", 6),
        (b"\n\n", b"\n \n", "trailing_blank", 6),
        (b"append-only: true\n", b"append-only: true", "final_newline", 15),
        (b"append-only: true\n", b"append-only: true\n\n", "final_newline", 15),
        (b"- config-keys:\n    - a-b", b"- # why\n  config-keys:\n    - a-b", "entry_start", 7),
        (b"append-only: true", b"append-only: yes", "not_a_flag", 15),
        (b"append-only: true", b"pr-link: https://github.com/SemiAnalysisAI/InferenceX/pull/8", "duplicate_field", 15),
        (b"append-only", b"append_only", "unknown_field", 15),
        (b"append-only: true", b"append-only: true\n  evals-only: true", "exclusive", 7),
        (b"append-only: true", b"append-only: true\n  eval-min-prefill-ep: 4", "exclusive", 7),
        (b"append-only: true", b"eval-min-prefill-ep: 0", "not_a_count", 15),
        (b"agentic-coding", b"agentic", "unknown_scenario", 7),
        (b'    - "Text"', b"    - 1.10", "not_text", 13),
        (b'    - "Text"', b"    - Update image: a", "not_text", 13),
        (b'    - "Text"', b'    - " "', "empty", 13),
        (b'description:\n    - "Text"', b"description: Text", "not_a_list_of_texts", 12),
        (b'description:\n    - "Text"', b"description: []", "empty", 12),
        (b'  description:\n    - "Text"\n', b"", "missing_field", 7),
        (b"pull/7", b"pull/XXX", "link_placeholder", 7),
        (b"pull/7", b"pull/7/changes", "link_malformed", 7),
        (b"pull/7", b"pull/", "link_missing", 7),
        (b"pull/7", b"pull/TBD", "link_missing", 7),
        (b"SemiAnalysisAI/InferenceX/pull/7", b"else/where/pull/7", "link_malformed", 7),
        (b"a-b", b"a-z", "unknown_key", 7),
        (b"c-*", b"z-*", "unmatched_wildcard", 7),
        (b"a-b", b"a-B*b", "unmatched_wildcard", 7),
    ],
)
def test_each_flaw_is_named_with_its_line(old, new, code, line):
    assert CLEAN.count(old) >= 1
    head, _, tail = CLEAN.rpartition(old)
    found = flaws(head + new + tail, {"dsr1-fp8-h200-sglang", "a-b", "c-d"})
    assert (code, line) in [(flaw.code, flaw.line) for flaw in found]
    assert len({flaw.code for flaw in found}) == 1
    assert all(str(flaw).startswith(f"line {flaw.line}: ") for flaw in found)


def test_a_duplicate_names_the_first_and_a_link_makes_no_difference():
    again = CLEAN + b"\n" + Entry(NEW.config_keys, NEW.description, link(99)).text.encode()
    (flaw,) = flaws(again)
    assert str(flaw).startswith("line 17: the same entry stands at line 1;")


def test_the_stars_of_a_wildcard_match_in_linear_time():
    (flaw,) = flaws(Entry(("*" * 60 + "b",), ("x",), link(1)).text.encode(), {"a" * 200})
    assert flaw.code == "unmatched_wildcard"


# ----------------------------------------------------------------------------------------------------------- appending


@pytest.mark.parametrize("tail", TAILS)
def test_every_end_of_file_gives_one_blank_line_and_one_final_newline(tail):
    old = IRREGULAR.rstrip(b"\n") + tail
    new = append(old, [NEW])
    assert new.startswith(old)
    assert re.search(rb"\S[^\n]*\n[ ]*\n- config-keys:\n    - dsr1-fp8-h200-sglang\n", new[len(IRREGULAR) - 20 :])
    assert new.endswith(b"\n")
    assert not new.endswith(b"\n\n")
    assert read(new).entries == (*read(old).entries, NEW)


def test_an_empty_file_begins_with_the_entry():
    assert append(b"", [NEW]) == NEW.text.encode()
    assert append(b"\n", [NEW]) == b"\n" + NEW.text.encode()


def test_crlf_goes_on_as_crlf():
    old = CLEAN.replace(b"\n", b"\r\n")
    added = append(old, [Entry(("x",), ("y",))])[len(old) :]
    assert added.count(b"\n") == added.count(b"\r\n") == 6


def test_nothing_to_append_changes_nothing():
    assert append(IRREGULAR.rstrip(b"\n"), []) == IRREGULAR.rstrip(b"\n")


@given(batches, st.sampled_from(TAILS), st.lists(st.integers(0, 3), max_size=3, unique=True))
def test_whatever_is_appended_the_old_bytes_are_a_prefix_and_everything_reads_back(batch, tail, dropped):
    log = read(IRREGULAR)
    kept = [log.bytes_of(block) + b"\n\n\n" for block in log.blocks if block.index not in dropped]
    old = b"".join(kept).rstrip(b"\n") + tail
    new = append(old, batch)
    assert new.startswith(old)
    assert read(new).entries == (*read(old).entries, *batch)
    assert yaml.safe_load(new)[: len(kept)] == (yaml.safe_load(old) or [])
    assert [e["description"] for e in yaml.safe_load(new)[len(kept) :]] == [list(e.description) for e in batch]
    assert new[len(old) :].decode().lstrip("\n") == "\n".join(entry.text for entry in batch)
    for entry in batch:
        assert texts_1_2(entry.text) == [*entry.config_keys, *entry.scenario_type, *entry.description]


@given(batches)
def test_what_was_appended_has_no_flaw_but_its_placeholder(batch):
    new = append(b"", batch)
    assert {flaw.code for flaw in flaws(new)} <= {"link_placeholder"}


def test_git_shows_added_lines_only(tmp_path):
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_bytes(IRREGULAR)
    new.write_bytes(append(IRREGULAR, [NEW, Entry(("a",), ("b",))]))
    assert _numstat(old, new) == (12, 0)


def _numstat(old: Path, new: Path) -> tuple[int, int]:
    command = ["git", "diff", "--no-index", "--numstat", str(old), str(new)]
    added, deleted, _ = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split("\t", 2)
    return int(added), int(deleted)


def _random_entry(source: random.Random, number: int) -> Entry:
    key = "-".join(source.choice(["dsr1", "fp8", "h200", "vllm", "mtp", "*"]) for _ in range(source.randint(1, 5)))
    words = [source.choice(HAZARDS).strip() or "text" for _ in range(source.randint(1, 3))]
    return Entry((key,), (f"{number}: {words[0]}", *words), link(source.choice([None, number])))


def test_a_thousand_appends_one_by_one_keep_every_byte():
    source, old = random.Random(7), IRREGULAR
    for number in range(1, 1001):
        entry = _random_entry(source, number)
        new = append(old, [entry])
        assert new.startswith(old)
        assert new[len(old) :] == b"\n" + entry.text.encode()
        old = new if number % 40 else IRREGULAR
    assert new.startswith(IRREGULAR)


@pytest.mark.parametrize(
    ("entry", "known", "reason"),
    [
        (read(IRREGULAR).entries[1], None, "new entry 1: the same entry stands at line 7; "),
        (NEW, {"other"}, "new entry 1: no master config holds the key `dsr1-fp8-h200-sglang`; "),
        (Entry(("zz*",), ("x",)), {"other"}, "new entry 1: the wildcard `zz\\*` matches no key"),
        (Entry((), ("x",)), None, "new entry 1: `config-keys` is empty; "),
        (Entry(("a",), ("x", " ")), None, "new entry 1: `description` is empty; "),
        (Entry(("a",), ("x",), "see #7"), None, "new entry 1: pr-link holds no pull request number; "),
        (Entry(("a",), ("x",), link(7) + "/changes"), None, "new entry 1: .* is no canonical link; write .*/pull/7$"),
        (Entry(("a",), ("x",), append_only=True, all_evals=True), None, "append-only does not go together with all-ev"),
        (Entry(("a",), ("x",), scenario_type=("agentic",)), None, "`agentic` is no scenario"),
    ],
)
def test_an_entry_that_may_not_be_appended_is_refused_with_a_remedy(entry, known, reason):
    with pytest.raises(CannotAppend, match=reason):
        append(IRREGULAR, [entry], known_keys=known)


def test_two_equal_entries_in_one_batch_and_two_kinds_are_refused():
    with pytest.raises(CannotAppend, match="new entry 2: the same entry stands at new entry 1"):
        append(IRREGULAR, [NEW, Entry(NEW.config_keys, NEW.description, link(5))])
    with pytest.raises(CannotAppend, match="use two pull requests"):
        append(IRREGULAR, [NEW, Entry(("a",), ("b",), append_only=True)])


def test_appending_twice_is_refused_the_second_time():
    with pytest.raises(CannotAppend, match="the same entry stands at line 28"):
        append(append(IRREGULAR, [NEW]), [NEW])


@pytest.mark.parametrize(
    "old",
    [
        b"  - config-keys: [a]\n    description: [b]\n    pr-link: c\n",
        b"- config-keys: [a]\n  description: [b]\n  pr-link: c\n...\n",
        b"- config-keys: [a]\n  description: [b]\n  pr-link: |+\n    c\n",
        b"[]\n",
    ],
)
def test_a_file_behind_which_nothing_would_read_back_is_refused(old):
    read(old)
    with pytest.raises(CannotAppend, match="behind the end of this file the entries would not read back"):
        append(old, [NEW])


# ------------------------------------------------------------------------------------------------------------- writing


def test_a_file_is_replaced_whole_with_its_mode_and_its_symlink(tmp_path):
    real, alias = tmp_path / "real.yaml", tmp_path / "alias.yaml"
    real.write_bytes(IRREGULAR)
    real.chmod(0o640)
    alias.symlink_to(real)
    added = append_file(alias, [NEW])
    assert alias.is_symlink()
    assert real.read_bytes() == IRREGULAR + added
    assert real.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alias.yaml", "real.yaml"]


def test_a_new_file_gets_the_mode_of_any_new_file(tmp_path):
    write_atomically(tmp_path / "ours", b"a")
    (tmp_path / "theirs").write_bytes(b"a")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "theirs").stat().st_mode


def test_a_refused_append_and_a_failed_write_leave_nothing_behind(tmp_path):
    (tmp_path / "file").write_bytes(CLEAN)
    with pytest.raises(CannotAppend):
        append_file(tmp_path / "file", [NEW])
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_atomically(tmp_path / "folder", b"x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
    assert (tmp_path / "file").read_bytes() == CLEAN


# -------------------------------------------------------------------------------------------- reference data and cases


@pytest.mark.shared
def test_the_real_file_is_read_whole(shared):
    data = (shared / "data/inferencex/perf-changelog.yaml").read_bytes()
    log = read(data)
    assert [
        {"config-keys": list(e.config_keys), "description": list(e.description), "pr-link": e.pr_link}
        for e in log.entries
    ] == [{name: raw[name] for name in ("config-keys", "description", "pr-link")} for raw in yaml.safe_load(data)]
    assert len(log.entries) == 772
    assert not log.flaws
    assert (log.entries[638].pull_request, log.entries[690].pull_request) == (2305, None)
    codes = [flaw.code for flaw in flaws(data)]
    assert {code: codes.count(code) for code in codes} == {
        "trailing_blank": 47,
        "separation": 18,
        "duplicate_entry": 16,
        "link_malformed": 1,
        "link_placeholder": 1,
    }


@pytest.mark.shared
def test_the_real_file_passes_through_a_thousand_random_appends(shared, tmp_path):
    real = shared / "data/inferencex/perf-changelog.yaml"
    source, old, left = random.Random(11), real.read_bytes(), 1000
    first = read(old).entries
    while left:
        batch = [_random_entry(source, left - step) for step in range(min(left, source.randint(1, 100)))]
        new = append(old, batch)
        assert new.startswith(old)
        assert read(new).entries == (*read(old).entries, *batch)
        old, left = new, left - len(batch)
    (tmp_path / "new.yaml").write_bytes(new)
    assert new.startswith(real.read_bytes())
    assert read(new).entries[:772] == first
    assert len(yaml.load(new, Loader=yaml.CSafeLoader)) == 1772
    added, deleted = _numstat(real, tmp_path / "new.yaml")
    assert (added, deleted) == (new.count(b"\n") - 6380, 0)


def _case(shared: Path, number: int) -> Path:
    (folder,) = (shared / "cases").glob(f"{number:02d}-*")
    return folder


@pytest.mark.shared
def test_case_37_append_only_byte_for_byte(shared, tmp_path):
    folder = _case(shared, 37)
    old, fields = (folder / "perf-changelog.yaml").read_bytes(), json.loads((folder / "new_entry.json").read_text())
    entry = Entry(tuple(fields["config-keys"]), tuple(fields["description"]), fields["pr-link"])
    for base in (old, old.rstrip(b"\n"), old.replace(b"\n", b"\r\n"), b""):
        new = append(base, [entry])
        assert new.startswith(base)
        assert new.endswith(b"\n")
        assert yaml.safe_load(new) == [*(yaml.safe_load(base) or []), fields]
        with pytest.raises(CannotAppend, match="the same entry stands at"):
            append(new, [entry])
    assert len(yaml.safe_load(append(old, [entry]))) == 4
    assert append(old, [entry])[len(old) :] == b"\n" + entry.text.encode()
    (tmp_path / "new.yaml").write_bytes(append(old, [entry]))
    assert _numstat(folder / "perf-changelog.yaml", tmp_path / "new.yaml")[1] == 0


@pytest.mark.shared
def test_case_38_placeholder_links(shared):
    folder = _case(shared, 38)
    data, context = (folder / "perf-changelog.yaml").read_bytes(), json.loads((folder / "context.json").read_text())
    found = flaws(data, pull_request=context["pr_number"], own=context["entries_added_by_this_pr"])
    links = [(flaw.entry, flaw.code) for flaw in found if "link" in flaw.code or flaw.values == ("pr-link",)]
    assert links == [
        (0, "link_placeholder"),
        (1, "link_malformed"),
        (2, "link_missing"),
        (3, "missing_field"),
        (3, "link_missing"),
        (5, "link_number"),
    ]
    assert (2, "empty") in [(flaw.entry, flaw.code) for flaw in found]
    assert next(flaw for flaw in found if flaw.entry == 1 and flaw.code == "link_malformed").values[1] == link(2305)
    assert [entry.pull_request for entry in read(data).entries] == [None, 2305, None, None, 2400, 1418]


@pytest.mark.shared
def test_case_39_yaml_hazards(shared):
    texts = json.loads((_case(shared, 39) / "descriptions.json").read_text())
    assert [yaml.safe_load(yamltext.quoted(text)) for text in texts] == texts
    assert [read_1_2(yamltext.quoted(text)) for text in texts] == texts
    new = append(b"", [Entry(("a-b",), tuple(filter(None, texts)))])
    assert yaml.safe_load(new)[0]["description"] == [text for text in texts if text]
    assert "新增：将镜像升级至 v0.5.12（降低 3.2 %）" in new.decode()
    assert "🚀" in new.decode()
    assert not new.startswith(b"\xef\xbb\xbf")
    with pytest.raises(CannotAppend, match="`description` is empty"):
        append(b"", [Entry(("a-b",), tuple(texts))])


@pytest.mark.shared
def test_case_40_conflict_markers_and_union_merge(shared):
    markers, union = ((_case(shared, 40) / name).read_bytes() for name in ("markers.yaml", "union.yaml"))
    assert [(flaw.code, flaw.line) for flaw in flaws(markers)] == [("conflict_marker", line) for line in (6, 11, 16)]
    with pytest.raises(CannotAppend, match="line 6: a conflict marker"):
        append(markers, [NEW])
    doubled = [flaw for flaw in flaws(union) if flaw.code == "duplicate_field"]
    assert [(flaw.entry, flaw.line, flaw.values) for flaw in doubled] == [(1, 14, ("pr-link",))]
    with pytest.raises(CannotAppend, match="line 14: `pr-link` stands twice in one entry"):
        append(union, [NEW])
