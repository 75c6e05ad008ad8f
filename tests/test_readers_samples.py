"""Answers question by question: what is kept, what is refused, and that no text of a question or answer is kept."""

import hashlib
import json
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from store import answers, archive
from store.duck import Store
from store.readers import samples
from store.readers.files import Lines
from store.records import Batch, Score
from tests.readers_help import RUN, found, published_eval, put
from tests.test_readers_evals import META, results

N = 40
TIME = "2026-07-05T03-11-20.123456"
FILTERS = {"strict-match": "strict", "flexible-extract": "flexible"}


def sha(text: object) -> str:
    return hashlib.sha256(str(text).encode()).hexdigest()


def line(question: int, name: str, right: object, **more: object) -> dict[str, object]:
    row = {
        "doc_id": question,
        "doc": {"question": f"question {question}"},
        "target": f"#### {question}",
        "arguments": [[f"secret prompt {question}", {"until": ["Q:"]}]],
        "resps": [[f"secret answer {question}"]],
        "filter": name,
        "metrics": ["exact_match"],
        "exact_match": right,
        **more,
    }
    return {key: value for key, value in row.items() if value is not ...}


def bits(seed: int = 1) -> dict[str, list[bool]]:
    flexible = np.random.default_rng(seed).random(N) < 0.9
    return {"strict": [*flexible[:-3].tolist(), False, False, False], "flexible": flexible.tolist()}


def rows(right: dict[str, list[bool]], **more: object) -> list[dict[str, object]]:
    return [line(i, name, float(right[ours][i]), **more) for i in range(N) for name, ours in FILTERS.items()]


def text(lines: list[object]) -> bytes:
    return b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in lines)


def result(right: dict[str, list[bool]], **more: object) -> dict[str, object]:
    told = results(strict=float(np.mean(right["strict"])), **more)
    told["results"]["gsm8k"]["exact_match,flexible-extract"] = float(np.mean(right["flexible"]))
    told["n-samples"]["gsm8k"]["effective"] = N
    return told


def evaluated(folder: Path, lines: list[object] | None, right: dict[str, list[bool]], name: str = "eval_a") -> Batch:
    put(folder, f"{name}/meta_env.json", META)
    put(folder, f"{name}/results_{TIME}.json", result(right))
    if lines is not None:
        put(folder, f"{name}/samples_gsm8k_{TIME}.jsonl", text(lines))
    (batch,) = found(folder)
    return batch


def only(batch: Batch) -> Score:
    (score,) = batch.scores
    return score


def told(score: Score) -> dict[str, dict[str, object]]:
    return {caveat.code: dict(caveat.values) for caveat in score.caveats}


def test_right_and_wrong_are_kept_by_question_and_filter(tmp_path):
    right = bits()
    score = only(evaluated(tmp_path, rows(right)[::-1], right))
    assert (score.answers.ids, score.answers.n, score.answers.score, score.caveats) == (f"0-{N - 1}", N, None, ())
    for reading, expected in right.items():
        assert answers.right(score, reading).tolist() == expected


def test_no_text_of_a_question_or_an_answer_is_kept(tmp_path):
    right = bits()
    broken = [*rows(right), b'{"doc_id": 3, "resps": [["secret answer', line(1, "strict-match", 0.5)]
    batch = evaluated(tmp_path / "in", broken, right)
    assert len(batch.rejections) == 2
    file = archive.write(batch, tmp_path / "archive")
    assert "secret" not in repr(archive.read(file).to_dicts())
    (again,) = archive.batch(file).scores
    assert again.answers == only(batch).answers


def test_the_hashes_of_the_harness_and_of_the_texts_are_the_same_identity(tmp_path):
    right = bits()
    from_text = only(evaluated(tmp_path / "a", rows(right), right)).answers
    hashed = [
        {**row, "prompt_hash": sha(f"secret prompt {row['doc_id']}"), "target_hash": sha(f"#### {row['doc_id']}")}
        for row in rows(right, arguments=..., target=...)
    ]
    nested = [{**row, "arguments": {"gen_args_0": {"arg_0": row["arguments"][0][0]}}} for row in rows(right)]
    assert only(evaluated(tmp_path / "b", hashed, right)).answers == from_text
    assert only(evaluated(tmp_path / "c", nested, right)).answers == from_text


CHANGES = ({"target": "#### 7"}, {"arguments": [["another prompt"]]}, {"doc_id": N + 5})


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_another_question_is_another_identity(change, tmp_path):
    right = {name: [True, *values[1:-1], True] for name, values in bits().items()}
    other = [{**row, **change} if row["doc_id"] == 0 else row for row in rows(right)]
    one = only(evaluated(tmp_path / "a", rows(right), right)).answers
    assert only(evaluated(tmp_path / "b", other, right)).answers.questions not in ("", one.questions)


def test_without_hashes_and_texts_nothing_says_what_was_asked(tmp_path):
    right = bits()
    score = only(evaluated(tmp_path, rows(right, arguments=..., target=...), right))
    assert score.answers.questions == ""
    assert "answers_unidentified" in told(score)
    assert answers.right(score, "strict") is None


@pytest.mark.parametrize(
    ("spoilt", "reason"),
    [
        (b'{"doc_id": 0, "filt', "malformed_json"),
        (b"[1, 2]", "not_an_object"),
        (line(0, "strict-match", float("nan")), "bad_value"),
        (line(0, "strict-match", 0.5), "bad_value"),
        (line(0, "strict-match", 2), "bad_value"),
        (line(0, "strict-match", None), "bad_value"),
        (line(0, "strict-match", ..., metrics=...), "missing_field"),
        (line(0, "strict-match", 1.0, doc_id="seven"), "bad_value"),
        (line(0, "strict-match", 1.0, doc_id=...), "missing_field"),
    ],
)
def test_a_line_that_cannot_be_used_costs_its_reading_and_no_other(spoilt, reason, tmp_path):
    right = bits()
    lines = [row for row in rows(right) if (row["doc_id"], row["filter"]) != (0, "strict-match")]
    batch = evaluated(tmp_path, [spoilt, *lines], right)
    score = only(batch)
    assert [(one.reason, one.place.index, one.raw) for one in batch.rejections] == [(reason, 0, "")]
    assert told(score)["answers_incomplete"] == {"metric": "em_strict", "have": N - 1, "of": N}
    assert answers.right(score, "strict") is None
    assert answers.right(score, "flexible").tolist() == right["flexible"]


def test_a_line_that_is_there_twice_counts_once(tmp_path):
    right = bits()
    batch = evaluated(tmp_path, [*rows(right), rows(right)[4]], right)
    assert [one.reason for one in batch.rejections] == ["duplicate_question"]
    assert answers.right(only(batch), "strict").tolist() == right["strict"]


def test_two_answers_to_one_question_are_none(tmp_path):
    right = bits()
    contrary = line(4, "strict-match", float(not right["strict"][4]))
    batch = evaluated(tmp_path, [*rows(right), contrary], right)
    assert [one.reason for one in batch.rejections] == ["duplicate_question"]
    assert all(answers.right(only(batch), reading) is None for reading in right)


def test_many_bad_lines_are_counted_and_few_of_them_told(tmp_path):
    right = bits()
    batch = evaluated(tmp_path, [*rows(right), *[b"{"] * (samples.TOLD + 7)], right)
    assert [(one.reason, one.detail) for one in batch.rejections[samples.TOLD :]] == [("further_lines", "7")]
    assert len(batch.rejections) == samples.TOLD + 1


def test_a_count_or_a_mean_that_contradicts_the_score_is_kept_and_told(tmp_path):
    right = bits()
    fewer = only(evaluated(tmp_path / "a", [row for row in rows(right) if row["doc_id"] < 30], right))
    assert fewer.answers.n == 30
    assert told(fewer)["answers_count"] == {"metric": "em_flexible", "have": 30, "n": N}
    flipped = {name: [not values[0], *values[1:]] for name, values in right.items()}
    other = only(evaluated(tmp_path / "b", rows(flipped), right))
    assert other.answers.strict is not None
    assert told(other)["answers_disagree"]["counted"] == np.mean(flipped["flexible"])
    assert answers.right(other, "strict") is answers.right(fewer, "strict") is None


def test_answers_without_a_result_are_a_rejection_and_a_result_without_answers_is_none(tmp_path):
    right = bits()
    put(tmp_path, f"eval_b/samples_gsm8k_{TIME}.jsonl", text(rows(right)))
    batch = evaluated(tmp_path, None, right)
    assert (only(batch).answers, only(batch).caveats) == (None, ())
    (lost,) = batch.rejections
    assert (lost.reason, lost.place.file) == ("samples_without_result", f"eval_b/samples_gsm8k_{TIME}.jsonl")


def test_each_concurrency_of_a_batch_has_its_own_answers(tmp_path):
    meta = {**META, "eval_concs": [64, 256], "completed_eval_concs": [64, 256], "conc": ...}
    put(tmp_path, "eval_a/meta_env.json", {key: value for key, value in meta.items() if value is not ...})
    for seed, conc in enumerate((64, 256)):
        put(tmp_path, f"eval_a/results_2026-07-05T03-1{seed}-00.0_conc{conc}.json", result(bits(seed)))
        name = f"eval_a/samples_gsm8k_2026-07-05T03-1{seed}-00.0_conc{conc}.jsonl"
        put(tmp_path, name, text(rows(bits(seed))))
    (batch,) = found(tmp_path)
    assert batch.rejections == ()
    by_conc = {score.series.conc: answers.right(score, "flexible").tolist() for score in batch.scores}
    assert by_conc == {64: bits(0)["flexible"], 256: bits(1)["flexible"]}


def test_the_newest_result_has_the_answers_of_its_own_time(tmp_path):
    for seed, time in enumerate(("2026-07-05T03-11-20.1", "2026-07-05T04-00-00.1")):
        put(tmp_path, f"eval_a/results_{time}.json", result(bits(seed)))
        put(tmp_path, f"eval_a/samples_gsm8k_{time}.jsonl", text(rows(bits(seed))))
    put(tmp_path, "eval_a/meta_env.json", META)
    (batch,) = found(tmp_path)
    assert answers.right(only(batch), "flexible").tolist() == bits(1)["flexible"]


def test_an_archive_is_read_like_a_folder(tmp_path):
    right = bits()
    folder = only(evaluated(tmp_path / "a", rows(right), right))
    with zipfile.ZipFile(put(tmp_path, "b/eval_a.zip", b""), "w", zipfile.ZIP_DEFLATED) as packed:
        for path in (tmp_path / "a/eval_a").iterdir():
            packed.write(path, path.name)
    (batch,) = found(tmp_path / "b")
    assert only(batch).answers == folder.answers


def test_a_broken_archive_member_leaves_the_score(tmp_path):
    right = bits()
    path = put(tmp_path, "eval_a.zip", b"")
    body = text(rows(right))
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("meta_env.json", json.dumps(META))
        packed.writestr(f"results_{TIME}.json", json.dumps(result(right)))
        packed.writestr(f"samples_gsm8k_{TIME}.jsonl", body)
    path.write_bytes(path.read_bytes().replace(b'"doc_id": 7,', b'"doc_id": 8,'))
    (batch,) = found(tmp_path)
    assert only(batch).strict == pytest.approx(np.mean(right["strict"]))
    assert "bad_archive" in {one.reason for one in batch.rejections}
    assert answers.right(only(batch), "strict") is None


def test_memory_does_not_follow_the_size_of_the_file(tmp_path):
    path = tmp_path / f"samples_gsm8k_{TIME}.jsonl"
    long = b"x" * 200_000
    with path.open("wb") as file:
        for question in range(150):
            file.write(
                b'{"doc_id": %d, "filter": "strict-match", "exact_match": 1.0, "resps": "%b"}\n' % (question, long)
            )
    tracemalloc.start()
    lines = list(samples.reduced(Lines(path)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(lines) == 150
    assert peak < path.stat().st_size / 10


def test_a_line_without_end_is_read_past(tmp_path, monkeypatch):
    monkeypatch.setattr("store.limits.SAMPLES_LINE_BYTES", 100)
    path = put(tmp_path, "samples_a.jsonl", b"1\n" + b"x" * 350 + b"\n2\n")
    first, long, last = Lines(path)
    assert (first, long.reason, last) == (b"1\n", "line_too_long", b"2\n")
    monkeypatch.setattr("store.limits.SAMPLES_BYTES", 50)
    assert [getattr(one, "reason", one) for one in Lines(path)] == [b"1\n", "line_too_long", "file_too_large"]


def test_what_a_fetch_lays_down_reads_the_same(tmp_path):
    right = bits()
    lines = [*rows(right), b"{", line(1, "strict-match", float("nan"))]
    whole = evaluated(tmp_path / "a", lines, right)
    kept = list(samples.reduced(Lines(tmp_path / f"a/eval_a/samples_gsm8k_{TIME}.jsonl")))
    assert b"secret" not in b"".join(kept)
    put(tmp_path, "b/eval_a/meta_env.json", META)
    put(tmp_path, f"b/eval_a/results_{TIME}.json", result(right))
    put(tmp_path, f"b/eval_a/samples_gsm8k_{TIME}.jsonl", b"".join(kept))
    (again,) = found(tmp_path / "b")
    assert only(again).answers == only(whole).answers
    assert len(again.rejections) == len(whole.rejections) == 2


def test_the_store_keeps_answers_and_a_run_that_landed_without_them_gets_them(tmp_path):
    right = bits()
    put(tmp_path, "in/run.json", RUN)
    without = evaluated(tmp_path / "in", None, right)
    put(tmp_path, f"in/eval_a/samples_gsm8k_{TIME}.jsonl", text(rows(right)))
    (whole,) = found(tmp_path / "in")
    with Store.open(tmp_path / "s", tmp_path / "archive") as store:
        store.land(without)
        assert [score.answers for score in store.scores(RUN["id"])] == [None]
        store.land(whole)
        (kept,) = store.scores(RUN["id"])
        assert kept.answers == only(whole).answers
        assert "extra" not in store.score_frame().columns
    Store.rebuild(tmp_path / "t", tmp_path / "archive")
    with Store.open(tmp_path / "t", tmp_path / "archive") as store:
        assert store.scores(RUN["id"]) == (kept,)


def test_files_beside_a_local_run_do_not_make_it_another(tmp_path):
    right = bits()
    before = evaluated(tmp_path, None, right).run
    assert evaluated(tmp_path, rows(right), right).run.id == before.id


# The public API


def api_rows(right: list[bool], **more: object) -> list[dict[str, object]]:
    return [
        {"docId": i, "prompt": f"p{i}", "target": str(i), "response": "secret", "passed": good, "score": None}
        | {"metrics": {}, **more}
        for i, good in enumerate(right)
    ]


def published(folder: Path, right: dict[str, list[bool]]) -> None:
    metrics = {"n_eff": N} | {f"em_{name}": float(np.mean(values)) for name, values in right.items()}
    put(folder, "evaluations.json", [published_eval(metrics=metrics)])


def page(rows: list[dict[str, object]]) -> dict[str, object]:
    return {"samples": rows, "total": N, "passedTotal": 1, "failedTotal": 1, "source": "db"}


def test_pages_of_the_api_are_joined_and_go_to_the_reading_that_fits(tmp_path):
    right = bits()
    published(tmp_path, right)
    every = api_rows(right["strict"])
    put(tmp_path, "eval-samples-7439.json", page(every[:25]))
    put(tmp_path, "eval-samples-7439-25.json", page(every[25:]))
    (batch,) = (one for one in found(tmp_path) if one.scores)
    score = only(batch)
    assert answers.right(score, "strict").tolist() == right["strict"]
    assert (score.answers.flexible, "secret" in repr(batch)) == (None, False)


def test_rows_of_the_database_name_their_result(tmp_path):
    right = bits()
    published(tmp_path, right)
    told_rows = [{**row, "doc_id": row["docId"], "eval_result_id": 7439} for row in api_rows(right["flexible"])]
    put(tmp_path, "rows.json", told_rows)
    (batch,) = (one for one in found(tmp_path) if one.scores)
    assert answers.right(only(batch), "flexible").tolist() == right["flexible"]


def test_answers_that_fit_both_readings_or_no_result_are_not_guessed_at(tmp_path):
    right = bits()
    published(tmp_path, {"strict": right["strict"], "flexible": right["strict"]})
    put(tmp_path, "eval-samples-7439.json", page(api_rows(right["strict"])))
    put(tmp_path, "eval-samples-1.json", page(api_rows(right["strict"])))
    put(tmp_path, "eval-samples.json", page(api_rows(right["strict"])[:1]))
    batches = found(tmp_path)
    (score,) = (score for batch in batches for score in batch.scores)
    assert "answers_ambiguous" in told(score)
    assert answers.right(score, "strict") is answers.right(score, "flexible") is None
    reasons = {(one.reason, one.field) for batch in batches for one in batch.rejections}
    assert reasons == {("samples_without_result", "eval_result_id"), ("missing_field", "eval_result_id")}
