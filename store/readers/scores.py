"""One flat eval row to one `Score`, or a `Flaw`. Every eval shape becomes such a row first."""

from __future__ import annotations

import re
from dataclasses import replace
from math import isfinite, sqrt

from store.answers import READINGS
from store.readers.columns import columns
from store.readers.deployment import deployment
from store.readers.values import Flaw, Row, integer, number, shown, word
from store.records import Caveat, Place, RunKey, Score, Series

_KEY = re.compile(r"(?P<metric>[^,]+?)(?P<error>_stderr)?,(?P<filter>.+)", re.DOTALL)
_VALUES = ("em_strict", "em_flexible", "score")
_ABSENT = frozenset({"", "n/a", "na", "none", "null"})


def score(row: Row, raw: str, run: RunKey, place: Place, pool: str | None = None) -> Score:
    """Read a flat eval row whole; `Flaw` names the field that forbids it. Zero is a score, whatever type it has."""
    task = word(row, "task").lower()
    if not task:
        raise Flaw("task", "missing_field")
    shaped = _topology(row)
    who = deployment(shaped, columns(tuple(shaped)))
    n = integer(row, "n_eff" if row.get("n_eff") is not None else "n", 0, 0) or None
    values = {field: _value(row, field) for field in _VALUES}
    good = {field: value if value is not None and isfinite(value) else None for field, value in values.items()}
    lost = [field for field, value in values.items() if value is not None and not isfinite(value)]
    return Score(
        run=run,
        series=_series(who.curve, row),
        task=task,
        strict=good["em_strict"],
        strict_se=standard_error(good["em_strict"], row.get("em_strict_se"), n),
        flexible=good["em_flexible"],
        flexible_se=standard_error(good["em_flexible"], row.get("em_flexible_se"), n),
        n=n,
        place=place,
        raw=raw,
        score=good["score"],
        score_name=word(row, "score_name") or None,
        image=who.image,
        recipe=who.recipe,
        pool=who.pool or pool,
        invalid=_invalid(good),
        caveats=(*_of_identity(who.caveats), *((Caveat.of("non_finite", fields=" ".join(lost)),) if lost else ())),
    )


def standard_error(value: float | None, reported: object, n: int | None) -> float | None:
    """The reported standard error, or sqrt(p(1-p)/(n-1)) where the report holds none worth the name.

    Text, null, and 0.0 beside a score between 0 and 1 are absent; without `n` there is no error at all.

    >>> [round(standard_error(0.9553, error, 1319), 5) for error in ("N/A", 0.0, None, 0.0057)]
    [0.00569, 0.00569, 0.00569, 0.0057]
    >>> standard_error(0, 0.0, 1319), standard_error(0.5, None, None)
    (0.0, None)
    """
    if value is None:
        return None
    error = number(reported)
    if error is not None and isfinite(error) and error > 0:
        return error
    if n is None or n < 2 or not 0 <= value <= 1:
        return None
    return sqrt(value * (1 - value) / (n - 1))


def from_commas(row: Row) -> Row:
    """The harness's own keys (`exact_match_stderr,strict-match`) to ours; other keys stay.

    >>> from_commas({"exact_match,strict-match": 0.9, "exact_match_stderr,flexible-extract": 0.1, "acc,none": 0.5})
    {'em_strict': 0.9, 'em_flexible_se': 0.1, 'score': 0.5, 'score_name': 'acc'}
    """
    flat: dict[str, object] = {}
    for key, value in row.items():
        found = _KEY.fullmatch(key)
        if found is None:
            flat[key] = value
            continue
        ours = READINGS[reading_of(found["filter"])]
        flat.setdefault(ours + ("_se" if found["error"] else ""), value)
        if ours == "score":
            flat.setdefault("score_name", found["metric"])
    return flat


def reading_of(filter_name: str) -> str:
    """Upstream's rule: a filter says by its name whether it is the strict or the flexible reading of an answer."""
    name = filter_name.lower()
    if "strict" in name or "resolved" in name:
        return "strict"
    return "flexible" if "flex" in name or "extract" in name else "score"


def _topology(row: Row) -> Row:
    """Eval rows mirror one engine into both halves and mostly have no `disagg`: the halves alone decide then."""
    if number(row.get("prefill_tp")):
        return row if row.get("disagg") is not None else {**row, "disagg": True}
    return {key: value for key, value in row.items() if not key.startswith(("prefill_", "decode_"))}


def _series(curve: Series, row: Row) -> Series:
    """Lengths stand in artifacts and not in the API, so an eval's key does without them."""
    conc = integer(row, "conc", 0, 0) or None
    return replace(curve, scenario="single_turn", isl=None, osl=None, offload=False, conc=conc)


def _of_identity(caveats: tuple[Caveat, ...]) -> tuple[Caveat, ...]:
    """GPU counts matter to throughput alone."""
    return tuple(one for one in caveats if one.code != "gpu_count_disagrees")


def _value(row: Row, field: str) -> float | None:
    value = row.get(field)
    if value is None or (isinstance(value, str) and value.strip().lower() in _ABSENT):
        return None
    read = number(value)
    if read is None:
        raise Flaw(field, "bad_value", shown(value))
    return read


def _invalid(values: dict[str, float | None]) -> Caveat | None:
    given = {field: value for field, value in values.items() if value is not None}
    if not given:
        return Caveat.of("no_score")
    wrong = [field for field, value in given.items() if not 0 <= value <= 1]
    return Caveat.of("score_out_of_range", field=wrong[0], value=given[wrong[0]]) if wrong else None
