"""Inputs made to exhaust, to escape or to deceive: refused with a reason, within bounds, and nothing else is lost."""

from __future__ import annotations

import json
import os
import re
import struct
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import pytest

from reports import escapes
from store import changelog, identity, images, limits, plan, redirects, thresholds, withdrawals, yamltext
from store.records import Trouble
from tests.cli import Tracker
from tests.readers_help import found, put, row
from tests.test_readers_files import GOOD, concs, reasons, zipped
from tracker import eventfile

# --- archives -----------------------------------------------------------------------------------------------------


def member(
    name: str, packed: bytes, size: int, *, method: int = zipfile.ZIP_DEFLATED, at: int = 0
) -> tuple[bytes, bytes]:
    """A local header with its bytes, and its line of the directory: whatever size it says it has."""
    crc, told = 0, name.encode()
    local = (
        struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, method, 0, 0, crc, len(packed), size, len(told), 0) + told + packed
    )
    line = struct.pack(
        "<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, method, 0, 0, crc, len(packed), size, len(told), 0, 0, 0, 0, 0, at
    )
    return local, line + told


def archive_of(local: bytes, lines: list[bytes], told: int | None = None) -> bytes:
    directory = b"".join(lines)
    size = len(directory) if told is None else told
    return local + directory + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, len(lines), len(lines), size, len(local), 0)


def deflated(size: int) -> bytes:
    worker = zlib.compressobj(9, zlib.DEFLATED, -15)
    return worker.compress(bytes(size)) + worker.flush()


def test_a_member_that_lies_about_its_size_is_not_unpacked(tmp_path: Path) -> None:
    local, line = member("agg_a.json", deflated(48 * limits.MIB), 10)
    path = put(tmp_path, "bmk_a.zip", archive_of(local, [line]))
    found(path)
    tracemalloc.start()
    told = reasons(found(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert told == ["bad_archive"]
    assert peak < 16 * limits.MIB


def test_members_that_share_bytes_are_refused(tmp_path: Path) -> None:
    local, line = member("agg_a.json", deflated(4096), 4096)
    _, other = member("agg_b.json", deflated(4096), 4096)
    batches = found(put(tmp_path, "bmk_a.zip", archive_of(local, [line, other])), put(tmp_path, "agg.json", GOOD))
    assert (concs(batches), reasons(batches)) == ([64], ["bad_archive"])
    assert "share bytes" in next(r.detail for b in batches for r in b.rejections)


def test_a_list_of_members_beyond_the_bound_is_not_read(tmp_path: Path) -> None:
    local, line = member("agg_a.json", b"", 0)
    huge = archive_of(local, [line] + [b"\0" * limits.MIB] * 13)
    assert reasons(found(put(tmp_path, "bmk_a.zip", huge))) == ["archive_too_large"]


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=["bzip2", "lzma"])
def test_a_method_whose_unpacker_has_no_bound_is_refused(method: int, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bmk_a.zip", "w") as archive:
        archive.writestr("agg_a.json", GOOD, method)
        archive.writestr("agg_b.json", GOOD, zipfile.ZIP_DEFLATED)
    batches = found(tmp_path / "bmk_a.zip")
    assert (concs(batches), reasons(batches)) == ([64], ["bad_archive"])


def test_an_archive_in_an_archive_is_told_and_not_opened(tmp_path: Path) -> None:
    inner = zipped(tmp_path / "inner.zip", {"agg_a.json": GOOD}).read_bytes()
    batches = found(zipped(tmp_path / "bmk_a.zip", {"inner.zip": inner, "agg_b.json": GOOD}))
    assert (concs(batches), reasons(batches)) == ([64], ["bad_archive"])


@pytest.mark.parametrize("name", ["x" * 300 + ".json", "/".join(["deep"] * 300) + "/agg.json"], ids=["name", "path"])
def test_a_name_that_no_file_system_holds_is_refused(name: str, tmp_path: Path) -> None:
    batches = found(zipped(tmp_path / "bmk_a.zip", {name: GOOD, "agg_b.json": GOOD}))
    assert (concs(batches), reasons(batches)) == ([64], ["unsafe_path"])


def test_names_that_differ_in_case_or_are_reserved_elsewhere_are_names(tmp_path: Path) -> None:
    members = {"CON.json": GOOD, "con.json": GOOD.replace(b"64", b"4"), "a\nb.json": GOOD.replace(b"64", b"8")}
    assert sorted(concs(found(zipped(tmp_path / "bmk_a.zip", members)))) == [4, 8, 64]


def test_a_folder_in_an_archive_may_have_the_name_of_a_file(tmp_path: Path) -> None:
    batches = found(zipped(tmp_path / "bmk_a.zip", {"a.json/": b"", "a.json/agg_b.json": GOOD}))
    assert (concs(batches), reasons(batches)) == ([64], [])


# --- folders ------------------------------------------------------------------------------------------------------


def test_what_leads_out_of_a_folder_or_never_ends_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "secret.json", GOOD)
    inside = put(tmp_path, "run/bmk_a/agg_a.json", GOOD).parent
    (inside / "link.json").symlink_to(tmp_path / "secret.json")
    (inside / "zero.json").symlink_to("/dev/zero")
    (inside / "loop.json").symlink_to("loop.json")
    (inside / "gone.json").symlink_to("gone")
    (inside / "all").symlink_to("/")
    os.mkfifo(inside / "pipe.json")
    batches = found(tmp_path / "run")
    assert concs(batches) == [64]
    assert reasons(batches) == ["unsafe_path"] * 6


def test_a_link_inside_of_the_folder_and_a_second_name_are_files(tmp_path: Path) -> None:
    one = put(tmp_path, "run/bmk_a/agg_a.json", GOOD)
    put(tmp_path, "run/bmk_b/agg_b.json", GOOD.replace(b"64", b"4"))
    (tmp_path / "run/bmk_c.json").symlink_to("bmk_b/agg_b.json")
    os.link(one, tmp_path / "run/agg_d.json")
    batches = found(tmp_path / "run")
    assert sorted(concs(batches)) == [4, 64]
    assert (reasons(batches), sum(batch.duplicates for batch in batches)) == ([], 2)


# --- sizes and depths of JSON -------------------------------------------------------------------------------------


def test_a_line_of_a_gibibyte_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "agg_bmk.json"
    with path.open("wb") as file:
        file.write(b"[")
        file.truncate(1024 * limits.MIB)
    tracemalloc.start()
    told = reasons(found(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert told == ["file_too_large"]
    assert peak < 8 * limits.MIB


def test_what_tells_no_size_is_read_up_to_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FILE_BYTES", 3 * limits.MIB)
    assert reasons(found(Path("/dev/zero"))) == ["file_too_large"]


@pytest.mark.parametrize("inner", ["[", '{"a":', '[{"a":['], ids=["arrays", "objects", "both"])
@pytest.mark.parametrize("depth", [500, 900, 100_000])
def test_depth_costs_the_value_and_nothing_else(depth: int, inner: str, tmp_path: Path) -> None:
    outer = "".join("]" if sign == "[" else "}" for sign in reversed(inner) if sign in "[{")
    deep = f"{inner * depth}1{outer * depth}".encode()
    batches = found(put(tmp_path, "agg_a.json", b"[" + GOOD + b", " + deep + b"]"), put(tmp_path, "b.json", GOOD))
    assert set(concs(batches)) == {64}
    assert len(reasons(batches)) == 1


def test_a_number_of_any_length_costs_its_row_alone(tmp_path: Path) -> None:
    long = b"9" * 100_000
    rows = [
        GOOD,
        GOOD.replace(b'"conc": 64', b'"conc": ' + long),
        GOOD.replace(b'"conc": 64', b'"conc": "' + long + b'"'),
    ]
    batches = found(put(tmp_path, "agg_bmk.json", b"[" + b",".join(rows) + b"]"))
    assert (concs(batches), reasons(batches)) == ([64], ["bad_value"] * 2)


# --- YAML ---------------------------------------------------------------------------------------------------------


def laughs(levels: int, width: int = 9) -> str:
    """Few bytes that stand for `width ** levels` texts."""
    lines = ["a0: &a0 [" + ",".join("x" * width) + "]"]
    lines += [f"a{n}: &a{n} [" + ",".join([f"*a{n - 1}"] * width) + "]" for n in range(1, levels)]
    return "\n".join(lines) + "\n"


BAD_YAML = {
    "billion laughs": (laughs(12), "nodes with its aliases"),
    "a chain of aliases": (laughs(80, 1), "nested too deeply"),
    "merges": ("a: &a {k: 1}\nb: &b {<<: [*a, *a]}\n" + laughs(12), "nodes with its aliases"),
    "an alias of itself": ("a: &a [1, *a]", "inside of what it stands for"),
    "lists": ("[" * 900 + "]" * 900, "nested too deeply"),
    "mappings": ("{a: " * 900 + "1" + "}" * 900, "nested too deeply"),
    "brackets without end": ("[" * 100_000, "nesting depth"),
    "too long": ("x" * (limits.YAML_BYTES + 1), "more than"),
}


@pytest.mark.parametrize("kind", BAD_YAML)
def test_yaml_that_grows_is_refused_by_every_reader_of_yaml(kind: str, tmp_path: Path) -> None:
    text, said = BAD_YAML[kind]
    path = put(tmp_path, "file.yaml", text.encode())
    with pytest.raises(yamltext.NotYaml, match=said):
        yamltext.values(text)
    for load in (eventfile.load, withdrawals.load, thresholds.load):
        with pytest.raises(Trouble, match=r"file\.yaml"):
            load(path)
    with pytest.raises(changelog.CannotRead, match="no YAML"):
        changelog.read(text.encode())
    assert [flaw.reason for flaw in plan.parse(text.encode()).rejections] == ["syntax"]


def test_a_tag_makes_nothing(tmp_path: Path) -> None:
    path = put(tmp_path, "file.yaml", f'!!python/object/apply:os.mkdir ["{tmp_path}/made"]\n'.encode())
    for load in (eventfile.load, withdrawals.load, thresholds.load):
        with pytest.raises(Trouble):
            load(path)
    plan.parse(path.read_bytes())
    assert not (tmp_path / "made").exists()


def test_aliases_as_people_write_them_are_read() -> None:
    assert yamltext.values("a: &x [1, 2]\nb: *x\nc: *x\n") == {name: ["1", "2"] for name in "abc"}


@pytest.mark.parametrize("load", [eventfile.load, withdrawals.load, thresholds.load, lambda path: plan.read([path])])
def test_a_file_of_yaml_beyond_the_bound_is_refused_by_its_size(load: object, tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    with path.open("wb") as file:
        file.truncate(1024 * limits.MIB)
    with pytest.raises(Trouble, match=f"at most {limits.YAML_BYTES}"):
        load(path)  # type: ignore[operator]


def test_a_wildcard_of_many_stars_is_as_quick_as_one() -> None:
    """Tried out in every way, these thirty stars would take longer than there is time."""
    assert plan.matching("*a" * 30 + "*b", ("a" * 200, "a" * 200 + "b")) == ("a" * 200 + "b",)
    assert plan.matching("a*b*a", ("a", "ab", "aba", "abba", "aXbXbXa")) == ("aba", "abba", "aXbXbXa")


def test_an_image_of_any_digits_has_a_name() -> None:
    image = images.parse("a/b:v" + "9" * 5000 + ".1")
    assert (image.version, image.moving) == (None, True)


# --- names that look like others ----------------------------------------------------------------------------------

LOOK_ALIKES = str.maketrans("aceiopsxydhk", "асеіорѕхуԁһ\u212a")


@pytest.mark.parametrize(
    "known", sorted({*identity.MODELS, *identity.FRAMEWORKS, *identity.PRECISIONS, *identity.GPUS})
)
def test_a_look_alike_is_another_name(known: str) -> None:
    for other in {known[:at] + letter.translate(LOOK_ALIKES) + known[at + 1 :] for at, letter in enumerate(known)}:
        if other != known:
            answers = (identity.model(other, None), identity.framework(other), identity.precision(other))
            assert all(one == f"?{other}" for one in (*answers, identity.hardware(other).gpu))
    for hidden in ("\u200b", "\u202e", "\u00ad", "\ufe0f"):
        assert identity.model(known + hidden, None).startswith("?")


@pytest.mark.parametrize("digits", ["６４", "٦٤", "𝟔𝟒"])
def test_digits_of_another_script_are_no_number(digits: str, tmp_path: Path) -> None:
    assert reasons(found(put(tmp_path, "agg_bmk.json", [row(conc=digits)]))) == ["bad_value"]
    assert identity.hardware(f"h200_{digits}").gpu.startswith("?")


# --- addresses ----------------------------------------------------------------------------------------------------

API = "https://api.github.com/repos/o/n/actions/artifacts/1/zip"


@pytest.mark.parametrize(
    "location",
    [
        *("http://blob.example.net/a", "file:///etc/passwd", "ftp://blob.example.net/a", "", "gopher://x/"),
        *("https://169.254.169.254/latest/meta-data", "https://127.0.0.1:8080/", "https://10.0.0.1/", "https://[::1]/"),
        *("https://[::ffff:169.254.169.254]/", "https://[fd00::1]/", "https://2130706433/", "https://0x7f.1/", "https://127.1/"),
        *("https://localhost:9000/", "https://LOCALHOST./", "https://metadata.google.internal/", "https://printer.local/"),
        *("https://me:secret@blob.example.net/a", "https://api.github.com@evil.example/", "https://[broken/", "https://x:99999999/"),
    ],
)  # fmt: skip
def test_a_download_is_not_sent_to_a_strange_place(location: str) -> None:
    with pytest.raises(redirects.LeadsAstray) as refused:
        redirects.target(API, location)
    assert "secret" not in str(refused.value)
    assert "example" not in str(refused.value)


@pytest.mark.parametrize(
    ("address", "location", "target"),
    [
        (API, "https://blob.example.net:443/a?sig=x%2F", "https://blob.example.net:443/a?sig=x%2F"),
        (API, "/other", "https://api.github.com/other"),
        ("https://10.0.0.5/api/v3/zip", "https://10.0.0.6/a", "https://10.0.0.6/a"),
        ("http://127.0.0.1:5/zip", "http://127.0.0.1:6/a", "http://127.0.0.1:6/a"),
    ],
)
def test_a_storage_is_followed(address: str, location: str, target: str) -> None:
    assert redirects.target(address, location) == target


# --- the command line ---------------------------------------------------------------------------------------------


def test_the_command_tells_what_was_too_large_and_keeps_the_rest(
    tracker: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tracker.folder, "run/agg_a.json", json.loads(GOOD))
    put(tracker.folder, "run/agg_b.json", b" " * 5000)
    monkeypatch.setattr(limits, "FILE_BYTES", 4000)
    said = tracker.ingest(tracker.folder / "run")
    assert said.code == 0
    assert said.out.startswith("landed: 1 points")
    assert "rejected (kept in the store): 1\n      1  file_too_large" in said.out


def test_a_text_beyond_the_bound_is_no_text_to_check(tracker: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TEXT_CHARACTERS", 100)
    body = put(tracker.folder, "body.md", b"x" * 101)
    for words in (("claims", "--pull-request-body", body), ("lint-text", body)):
        said = tracker(*words)
        assert said.code == 1
        assert "more than 100" in said.err


# --- the page -----------------------------------------------------------------------------------------------------


def test_the_page_of_threats_tells_every_bound() -> None:
    page = (Path(__file__).parents[1] / "docs" / "threats.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+) \|", page, re.MULTILINE)
    told = {name: int(number.replace(",", "")) for name, number in rows}
    bounds = {name: value for name, value in vars(limits).items() if name.isupper() and isinstance(value, int)}
    assert told == {name: value for name, value in bounds.items() if name != "MIB"}
    assert f"at most {escapes.LONGEST} characters" in page
