"""Laws of the readers: nothing raises, nothing is lost, order does not matter, what is kept can be read again."""

import json
import math
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from store.readers import read
from store.readers.decode import Unreadable, decode
from store.records import Point, Score
from tests.readers_help import bundle, evaluated, found, nested, pools, published, published_eval, put, row

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
SHAPES = (row(), pools(), nested(), published(), published_eval(), evaluated())
FIELDS = sorted(
    {key for shape in SHAPES for key in shape}
    | {"users", "mtp", "run_id", "run_attempt", "created_at", "exact_match,none"}
)
NUMBERS = st.sampled_from([0, -1, 1e308, 10**400, "NaN", "1e5", True, None, "", "-0.0", 2**63])


@st.composite
def rows(draw):
    """Anything at all, or a real row with some fields replaced by anything or dropped."""
    base = draw(st.sampled_from(SHAPES))
    broken = draw(st.dictionaries(st.sampled_from(FIELDS), ANYTHING | NUMBERS | st.just(...), max_size=4))
    return {key: value for key, value in {**base, **broken}.items() if value is not ...}


def read_back(value, name="agg_bmk.json"):
    with tempfile.TemporaryDirectory() as folder:
        return found(put(Path(folder), name, value))


def items(batches):
    return [item for batch in batches for item in (*batch.points, *batch.scores, *batch.rejections)]


@settings(max_examples=400, deadline=None)
@given(rows() | ANYTHING)
def test_any_value_offered_as_a_row_becomes_one_item_and_never_an_exception(value):
    batches = read_back([value])
    assert len(items(batches)) == 1
    assert sum(batch.duplicates for batch in batches) == 0


@settings(max_examples=100, deadline=None)
@given(st.lists(rows() | ANYTHING, max_size=6))
def test_every_row_is_a_point_a_score_a_rejection_or_a_counted_copy(values):
    batches = read_back(values)
    assert len(items(batches)) + sum(batch.duplicates for batch in batches) == len(values)


@settings(max_examples=100, deadline=None)
@given(rows())
def test_what_is_kept_is_finite_and_strict(value):
    for item in items(read_back([value])):
        json.loads(item.raw or "null", parse_constant=_refuse)
        if isinstance(item, Point):
            assert all(type(one) is float and math.isfinite(one) for one in {**item.metrics, **item.extra}.values())
            assert item.series.conc > 0
        if isinstance(item, Score):
            kept = (item.strict, item.flexible, item.score, item.strict_se, item.flexible_se)
            assert all(one is None or math.isfinite(one) for one in kept)


def _refuse(token):
    raise AssertionError(f"{token} is no JSON")


@settings(max_examples=60, deadline=None)
@given(rows(), rows())
def test_a_row_reads_the_same_whatever_was_read_before_it(first, second):
    alone = {item.raw: type(item) for item in items(read_back([second]))}
    after = {item.raw: type(item) for batch in [read_back([first]), read_back([second])] for item in items(batch)}
    assert alone.items() <= after.items()


@settings(max_examples=60, deadline=None)
@given(
    st.permutations([row(conc=conc, tput_per_gpu=float(tput)) for conc in (4, 8) for tput in (1, 2)] + [row(), row()])
)
def test_the_order_of_rows_changes_nothing(values):
    (batch,) = read_back(values)
    assert [point.series.conc for point in batch.points] == [64]
    assert (len(batch.rejections), batch.duplicates) == (4, 1)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200) | ANYTHING.map(lambda value: json.dumps(value).encode()[:-1]))
def test_any_bytes_are_json_or_say_why_not(content):
    try:
        reason = decode(content).flaw and decode(content).flaw.reason
    except Unreadable as flaw:
        reason = flaw.reason
    assert reason in {None, "malformed_json"}


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(
        [
            "what.json",
            "changelog_metadata.json",
            "run_stats.json",
            "results.json",
            "x.csv",
            "run.json",
            "artifacts.json",
        ]
    ),
    ANYTHING
    | st.fixed_dictionaries({"run": ANYTHING, "rows": ANYTHING})
    | st.fixed_dictionaries({"lm_eval_version": ANYTHING, "results": ANYTHING, "n-samples": ANYTHING})
    | st.fixed_dictionaries({"base_ref": ANYTHING, "head_ref": ANYTHING, "entries": st.lists(ANYTHING, max_size=2)})
    | st.fixed_dictionaries({"runs": st.lists(ANYTHING, max_size=2), "changelogs": st.lists(ANYTHING, max_size=2)})
    | st.dictionaries(st.text(max_size=4), st.fixed_dictionaries({"n_success": ANYTHING}), min_size=1, max_size=2),
)
def test_no_file_of_any_name_raises(name, value):
    for batch in read_back(value, name):
        assert batch.run.id


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300))
def test_no_table_of_text_raises(text):
    read_back(text.encode(), "export.csv")


@settings(max_examples=60, deadline=None)
@given(ANYTHING, st.lists(rows(), max_size=3))
def test_a_bundle_with_any_run_keeps_every_row_or_is_one_rejection(run, values):
    good = items(read_back(bundle(values), "b.json"))
    bad = read_back({"run": run, "rows": values}, "b.json")
    assert len(items(bad)) in {1, len(good)}


def test_a_long_history_of_bundles_is_passed_on_one_run_at_a_time(tmp_path):
    history = put(tmp_path, "history.json", [bundle([row()], id=number) for number in range(1, 50)])
    batches = read([history])
    assert next(batches).run.id == 1
    assert sum(1 for _ in batches) == 48
