"""Targets that are files: every shape that the readers know, archives, folders, and what the archive keeps."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from store import archive, github, identity, runs, trigger
from store.frames import to_batch, to_frame
from store.readers import read, samples
from store.readers.decode import Unreadable, decode, text_of
from store.readers.files import Lines
from store.records import Batch, RunKey, Trouble
from tests.fuzz.target import Target

_FOLDER = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
"""Many thousand small files a minute are for memory, not for a disk."""

READERS = ("store.readers", "store.identity", "store.images", "store.runs", "store.titles", "store.plan")


def read_file(name: str, content: bytes) -> list[Batch]:
    """Everything that the readers make of one file."""
    return read_files({name: content}, name)


def read_files(files: dict[str, bytes], named: str = "") -> list[Batch]:
    """Everything that the readers make of a folder with these files, or of one of them."""
    with tempfile.TemporaryDirectory(dir=_FOLDER) as folder:
        for name, content in files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return list(read([Path(folder, named)]))


def assert_kept(batches: Iterable[Batch]) -> None:
    """What was read can be kept: finite, strict JSON, and the archive gives it back."""
    for batch in batches:
        for item in (*batch.points, *batch.scores, *batch.rejections):
            json.loads(item.raw or "null", parse_constant=_refuse)
        for point in batch.points:
            assert all(math.isfinite(value) for value in point.metrics.values())
            assert point.series.conc is not None
            assert point.series.conc > 0
            assert " " not in identity.config_key(point.series)
        again = to_batch(to_frame(batch))
        assert again.run == batch.run
        for kind in ("points", "scores", "rejections", "changelog", "job_runs", "expected"):
            assert sorted(getattr(again, kind), key=_order) == sorted(getattr(batch, kind), key=_order), kind


def _order(one: Any) -> tuple[str, ...]:
    told = "" if hasattr(one, "metrics") else repr(one)
    return str(getattr(one, "place", "")), getattr(one, "raw", ""), str(getattr(one, "series", "")), told


def _refuse(token: str) -> None:
    raise AssertionError(f"{token} is no JSON")


def _of_file(name: str) -> Callable[[bytes], None]:
    return lambda data: assert_kept(read_file(name, data))


def _rows(data: bytes) -> None:
    batches = read_file("agg_bmk.json", data)
    assert_kept(batches)
    try:
        decoded = decode(data)
    except Unreadable:
        assert sum(len(batch.rejections) for batch in batches) == 1
        return
    value = decoded.value
    keys = {key for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict) for key in one}
    if keys & {"run", "base_ref", "runs", "lm_eval_version"} or value in ([], {}):
        return
    wanted = (len(value) if isinstance(value, list) else 1) + (decoded.flaw is not None)
    told = sum(len(b.points) + len(b.scores) + len(b.rejections) + b.duplicates for b in batches)
    jobs = sum(len(b.jobs) for b in batches)
    assert told == wanted or jobs, f"{wanted} rows, {told} told"


def _folder(data: bytes) -> None:
    """An object of names and values is a folder of these files."""
    try:
        value = decode(data).value
    except Unreadable:
        return
    if not isinstance(value, dict):
        return
    files = {name: _content(one) for name, one in value.items() if name in _BESIDE}
    assert_kept(read_files({**files, "results_bmk/agg_bmk.json": b"[]"}))


_BESIDE = (
    *("run.json", "attempts.json", "artifacts.json", "jobs.json", "pull.json", "reuse.json", "configs/a-master.yaml"),
    *("100/agg_bmk.json", "200/agg_bmk.json", "eval_x/meta_env.json", "eval_x/results_2026-06-14T01-02-03.json"),
    *("changelog-metadata/changelog_metadata.json",),
)


_TIME = "2026-06-14T01-02-03"
_SAMPLES = f"eval_x/samples_gsm8k_{_TIME}.jsonl"
_EVAL = {
    "eval_x/meta_env.json": b'{"framework": "sglang", "precision": "fp8", "tp": 8, "conc": 64, "hw": "h200",'
    b' "infmax_model_prefix": "dsr1", "model": "deepseek-ai/DeepSeek-R1-0528"}',
    f"eval_x/results_{_TIME}.json": b'{"lm_eval_version": "0.4.9", "results": {"gsm8k": {"exact_match,strict-match":'
    b' 0.5, "exact_match,flexible-extract": 0.5}}, "n-samples": {"gsm8k": {"effective": 2}}}',
}


def _samples(data: bytes) -> None:
    batches = read_files({**_EVAL, _SAMPLES: data})
    assert_kept(batches)
    (said,) = (score for batch in batches for score in batch.scores)
    with tempfile.TemporaryDirectory(dir=_FOLDER) as folder:
        path = Path(folder, "whole.jsonl")
        path.write_bytes(data)
        kept = b"".join(samples.reduced(Lines(path)))
    (again,) = (score for batch in read_files({**_EVAL, _SAMPLES: kept}) for score in batch.scores)
    assert (again.answers, again.caveats) == (said.answers, said.caveats)


def _content(value: object) -> bytes:
    return value.encode("utf-8", "replace") if isinstance(value, str) else text_of(value).encode()


def _decode(data: bytes) -> None:
    try:
        decoded = decode(data)
    except Unreadable as flaw:
        if flaw.reason != "malformed_json":
            raise
        return
    text = text_of(decoded.value)
    if text:
        assert text_of(decode(text.encode()).value) == text


def _zip(data: bytes) -> None:
    batches = read_file("bmk_a.zip", data)
    assert_kept(batches)
    for batch in batches:
        assert all(rejection.reason for rejection in batch.rejections)


def _parquet(data: bytes) -> None:
    """A file of the archive by its name, whatever it holds: its batch, or BrokenFile."""
    digest = archive.digest_of(data)
    with tempfile.TemporaryDirectory(dir=_FOLDER) as folder:
        path = Path(folder, "run=5", "attempt=1", f"{digest}.parquet")
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
        try:
            batch = archive.batch(archive.File(RunKey(5, 1), digest, path))
        except archive.BrokenFile:
            return
    assert batch.run.id


def _frame(data: bytes) -> None:
    """Columns of any text as an archive file: its batch, or BrokenFile."""
    try:
        columns = decode(data).value
    except Unreadable:
        return
    if not isinstance(columns, dict) or not all(isinstance(one, list) for one in columns.values()):
        return
    out = BytesIO()
    try:
        frame = pl.DataFrame(columns, strict=False)
        frame.write_parquet(out)
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError):
        return
    _parquet(out.getvalue())


def _github(data: bytes) -> None:
    """What GitHub answers, and the event that starts a job: an object of ours, or the error for people."""
    with tempfile.TemporaryDirectory(dir=_FOLDER) as folder:
        path = Path(folder, "event.json")
        path.write_bytes(data)
        with suppress(Trouble):
            assert trigger.read(path, {"GITHUB_REPOSITORY": "octo/sweeps", "GITHUB_RUN_ID": "5"}).link.id > 0
    try:
        value = decode(data).value
    except Unreadable:
        return
    with suppress(ValueError):
        assert 0 < runs.parse_run(value).id < 2**63
    if isinstance(value, dict):
        with suppress(github._Broken):
            assert github._artifact(value).name is not None


_ROW_WORDS = (
    *(f'"{word}"' for word in
    "hw conc users image model infmax_model_prefix framework precision spec_decoding disagg isl osl tp pp ep"
    " is_multinode dp_attention tput_per_gpu median_ttft p99_ttft median_intvty num_prefill_gpu num_decode_gpu metrics"
    " prefill_tp decode_tp prefill_num_workers request_metrics request_accounting task em_strict n_eff run_url run_id"
    " run_attempt created_at timestamp date hardware avg_power_w benchmark_outcome scenario_type".split()),
    *("true", "false", "null", "NaN", "-Infinity", "1e999", '"none"', "\\ud800", "{", "}", "[", "]", ",", ":"),
)  # fmt: skip

ONE = "each row is a point, a score, a duplicate or exactly one rejection; what is kept is finite and archived alike"
NO = "never an exception; what is kept is finite and comes back from the archive equal"

TARGETS = (
    Target("decode", "a value whose text reads back equal, or malformed_json", _decode, ("store.readers.decode",),
           ("{", "}", "[", "]", ",", ":", '"', "NaN", "1e999", "\\ud800", "\\u0000", "\xef\xbb\xbf"), is_json=True),
    Target("rows", ONE, _rows, READERS, _ROW_WORDS, is_json=True),
    Target("csv_export", NO, _of_file("export.csv"), READERS, (",", '"', "\n", "#", "Date", "TTFT (ms)", "TP", "EP")),
    Target("run_bundle", NO, _of_file("bundle.json"), READERS, ('"run"', '"rows"', '"evals"', *_ROW_WORDS),
           is_json=True),
    Target("changelog_metadata", NO, _of_file("changelog_metadata.json"), READERS,
           ('"base_ref"', '"head_ref"', '"entries"', '"config-keys"', '"description"', '"pr-link"'), is_json=True),
    Target("workflow_info", NO, _of_file("answer.json"), READERS,
           ('"runs"', '"changelogs"', '"workflow_run_id"', '"github_run_id"', '"created_at"'), is_json=True),
    Target("harness_results", NO, _of_file("results_2026-06-14T01-02-03.json"), READERS,
           ('"lm_eval_version"', '"results"', '"n-samples"', '"exact_match,strict-match"', '"model_name"'),
           is_json=True),
    Target("samples", "one score, whose answers a fetch keeps whole", _samples,
           ("store.readers.samples", "store.answers"),
           ('"doc_id": 1', '"filter": "strict-match"', '"exact_match": 1.0', '"metrics": ["exact_match"]', "\n")),
    Target("run_stats", NO, _of_file("run_stats.json"), READERS, ('"n_success"', '"total"'), is_json=True),
    Target("folder", NO, _folder, READERS, tuple(f'"{name}"' for name in _BESIDE), is_json=True),
    Target("github_objects", "a run, an artifact, a trigger, or the error that is theirs", _github,
           ("store.runs", "store.trigger", "store.github"),
           ('"workflow_run"', '"client_payload"', '"inputs"', '"pull_requests"', '"repository"', '"full_name"', '"id"'),
           is_json=True),
    Target("zip", "nothing but batches; every rejection has a reason", _zip,
           ("store.readers.files", "store.readers.folder"),
           ("PK\x01\x02", "PK\x03\x04", "PK\x05\x06", "agg_a.json", "../", ".zip"), 8192),
    Target("archive_file", "a batch, or BrokenFile", _parquet,
           ("store.archive", "store.frames"), ("PAR1",), 65536),
    Target("archive_columns", "a batch, or BrokenFile", _frame,
           ("store.archive", "store.frames"), ('"kind"', '"record"', '"run"', '"point"', '"series"'), is_json=True),
)  # fmt: skip
