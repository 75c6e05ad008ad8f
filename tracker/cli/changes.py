"""Changes as text for a terminal: a line for each of many, a page for one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from reports import weekform, weekwords
from reports.escapes import line
from reports.language import BILINGUAL, Language, Value
from reports.week import Told
from store.life import Change, Precision


def table(rows: Sequence[Change], precision: Precision, newest: datetime, form: str, lang: str) -> str:
    """Changes in their order, one line each, and the precision of what was announced."""
    if form == "json":
        body = {"findings": [weekform.change_form(one) for one in rows], "precision": msgspec.to_builtins(precision)}
        return _json(body)
    return "\n".join(_lines(rows, precision, newest, each) for each in _languages(lang))


def page(change: Change, newest: datetime, lang: str) -> str:
    """Everything that is known of a change: its sentences, then its life as fields."""
    told = "".join(f"{_told(change, newest, each)}\n" for each in _languages(lang))
    return f"{told}\n{_json(weekform.change_form(change))}"


def _languages(lang: str) -> tuple[str, ...]:
    return BILINGUAL if lang == "both" else (lang,)


def _lines(rows: Sequence[Change], precision: Precision, newest: datetime, lang: str) -> str:
    told = "".join(f"{_told(change, newest, lang)}\n" for change in rows)
    return f"{told}{_say(weekwords.precision(precision), lang)}\n"


def _told(change: Change, newest: datetime, lang: str) -> str:
    days = (newest.date() - change.first_at.date()).days
    return _say(weekwords.told(Told((change,), days, {})), lang)


def _say(value: Value, lang: str) -> str:
    return Language(lang).say(value, line)


def _json(body: object) -> str:
    return msgspec.json.format(msgspec.json.encode(body), indent=2).decode() + "\n"
