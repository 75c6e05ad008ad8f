"""Says facts in a document and a language; makes no choices but what a limit of length forces.

One template per document serves all languages. A template can only print words of the catalogs, text that is escaped
for the document's format, and numbers that passed `reports.numbers`: anything else raises TypeError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Undefined
from markupsafe import Markup

from reports import contrasts, doubts, escapes, facts, frontwords, numbers, phrases, week, weekwords
from reports.evidence import evidence
from reports.facts import Facts
from reports.language import BILINGUAL, LANGUAGES, Escape, Language, Phrase, phrase
from reports.picture import Picture
from reports.site import Index, Notice
from reports.things import longest, trim
from reports.week import WeekFacts
from store.records import Run, RunKey, Unmatched

TEMPLATES = Path(__file__).parent / "templates"
COMMENT_LIMIT = 60_000
"""Characters. GitHub refuses a comment above 65,536; the rest is room for what a channel puts around it."""
SUMMARY_LIMIT = 1_000_000
"""Bytes. A job summary may have 1 MiB."""
MAIL_LIMIT = 102_400
"""Bytes of the HTML part. Gmail cuts a longer mail off."""
MAIL_TEXT_LIMIT = 1_000_000
"""Bytes of the text part: room for every regression of any sweep yet, and no server refuses it."""
PICTURE_WIDTH = 640
"""Pixels of a mail's page that the widest picture takes."""
WEEKLY_LIMIT = 1_000_000
"""Bytes of a file in git that people still read."""
MARKER = "sweep-tracker"
"""First word of the hidden marker by which a comment is found again."""

_GAPS = re.compile(r"\n{3,}")
_SHA = re.compile(r"[0-9a-f]{7,64}")


Chosen: TypeAlias = Facts | WeekFacts | Index | Notice


class UnknownDocument(LookupError):
    """No document of this name, or not in this language."""


def _blocks(english: str, chinese: str) -> str:
    return f"{english.rstrip()}\n\n---\n\n{chinese.lstrip()}"


def _halves(english: str, chinese: str) -> str:
    return f"{english.strip()} / {chinese.strip()}"


def _commit(english: str, chinese: str) -> str:
    """Both subjects in one line, then the English body, then the Chinese one."""
    subject, _, body = english.strip().partition("\n\n")
    other, _, text = chinese.strip().partition("\n\n")
    return f"{_halves(subject, other)}\n\n{body}\n\n中文：\n\n{text}\n"


def _pages(english: str, chinese: str) -> str:
    """One page: the Chinese body behind the English one, each naming its language."""
    body = chinese[chinese.index("<div lang=") : chinese.index("</body>")]
    return english.replace("</body>", f"<hr>\n{body}</body>")


def _mail_line(text: str) -> str:
    """A line of a mail: clients make links of addresses, and no foreign text may become one."""
    return escapes.defuse(escapes.clean(text))


def _mail_html(text: str) -> str:
    return escapes.markup(_mail_line(text))


@dataclass(frozen=True, slots=True)
class Document:
    """A template, the format of its values, how two languages stand together, and how long it may be."""

    template: str
    escape: Escape
    join: Callable[[str, str], str]
    limit: int | None = None
    measure: Callable[[str], int] = len
    languages: tuple[str, ...] = (*LANGUAGES, "both")
    lists: tuple[str, ...] = facts.BY_IMPORTANCE
    """Its lists in the order in which they are kept."""


def _weekly(template: str, escape: Escape, join: Callable[[str, str], str], limit: int | None = None) -> Document:
    """A document that says the facts of a week."""
    return Document(template, escape, join, limit, _bytes, lists=week.BY_IMPORTANCE)


def _bytes(text: str) -> int:
    return len(text.encode())


DOCUMENTS: Mapping[str, Document] = MappingProxyType(
    {
        "comparison": Document("comparison.md.j2", escapes.markdown, _blocks),
        "comment": Document("comment.md.j2", escapes.markdown, _blocks, COMMENT_LIMIT),
        "summary": Document("comparison.md.j2", escapes.markdown, _blocks, SUMMARY_LIMIT, _bytes),
        "check": Document("comparison.md.j2", escapes.markdown, _blocks, COMMENT_LIMIT),
        "short": Document("short.md.j2", escapes.markdown_line, _halves),
        "title": Document("title.txt.j2", escapes.line, _halves),
        "commit": Document("commit.txt.j2", escapes.line, _commit),
        "mail_text": Document("mail.txt.j2", _mail_line, _blocks, MAIL_TEXT_LIMIT, _bytes),
        "mail_html": Document("mail.html.j2", _mail_html, _pages, MAIL_LIMIT, _bytes),
        "page_verdict": Document("page_verdict.html.j2", escapes.html, _halves, languages=LANGUAGES),
        "page_rest": Document("page_rest.html.j2", escapes.html, _halves, languages=LANGUAGES),
        "weekly": _weekly("weekly.md.j2", escapes.markdown, _blocks, WEEKLY_LIMIT),
        "weekly_text": _weekly("weekly.txt.j2", _mail_line, _blocks),
        "weekly_html": _weekly("weekly.html.j2", _mail_html, _pages, MAIL_LIMIT),
        "site_index": Document("site_index.html.j2", escapes.html, _halves, languages=LANGUAGES),
        "site_notice": Document("site_notice.html.j2", escapes.html, _halves, languages=LANGUAGES),
        "week_page": replace(_weekly("week_page.html.j2", escapes.html, _halves), languages=LANGUAGES),
        "weekly_title": _weekly("weekly_title.txt.j2", escapes.line, _halves),
        "evidence": Document("evidence.txt.j2", escapes.line, _halves, languages=("en",)),
    }
)


def render(chosen: Chosen, document: str, lang: str = "both", pictures: Sequence[Picture] = ()) -> str:
    """The text of a document in `en`, `zh` or `both`; cut by importance where the document has a limit.

    The sign-off evidence exists in English only: a machine looks for its exact words. Pictures are shown by
    `mail_html` and `weekly_html`, which hold their names (`Picture.cid`); the mail has to carry them.
    """
    form = DOCUMENTS.get(document)
    if form is None or lang not in form.languages:
        raise UnknownDocument(f"no document {document!r} in {lang!r}: choose from {_choices()}")
    text = _tail(document, chosen)
    say = partial(_said, form=form, lang=lang, pictures=tuple(pictures))
    body = _fitted(chosen, form, say, len(text)) if form.limit else say(chosen)
    return f"{body.rstrip()}\n{text}" if text else f"{body.rstrip()}\n"


def _choices() -> str:
    return ", ".join(f"{name} ({', '.join(form.languages)})" for name, form in DOCUMENTS.items())


def marker(chosen: Facts) -> str:
    """The hidden line by which a later comment finds this one: version, head and verdict."""
    shas = [run.head_sha for run in chosen.candidate.rows if run.head_sha and _SHA.fullmatch(run.head_sha)]
    head = shas[0] if shas else "unknown"
    return f"<!-- {MARKER} version={version('sweep-tracker')} head={head} verdict={chosen.verdict.value} -->"


def _tail(document: str, chosen: Chosen) -> str:
    """The marker stands last, since notification mails show the first lines."""
    return f"\n{marker(chosen)}\n" if document == "comment" and isinstance(chosen, Facts) else ""


def _said(chosen: Chosen, form: Document, lang: str, pictures: tuple[Picture, ...]) -> str:
    if lang == "both":
        return form.join(*(_said(chosen, form, each, pictures) for each in BILINGUAL))
    template = _environment(lang, form.escape).get_template(form.template)
    shown = [picture for picture in pictures if picture.lang in {"", lang}]
    return _GAPS.sub("\n\n", template.render(facts=chosen, pictures=shown, lang=lang))


def _fitted(chosen: Chosen, form: Document, say: Callable[[Any], str], reserved: int) -> str:
    """The longest text within the limit: rows are cut from the least important lists, in both languages alike."""
    room = (form.limit or 0) - reserved - 1
    text, rows = say(chosen), longest(chosen, form.lists)
    while form.measure(text) > room and rows:
        rows = min(rows - 1, int(rows * 0.95 * room / form.measure(text)))
        text = say(trim(chosen, form.lists, rows))
    return text


@cache
def _environment(lang: str, escape: Escape) -> Environment:
    """Jinja for one language and one format; an undefined name and an unformatted number raise."""
    language = Language(lang)

    def finalize(value: object) -> Markup:
        if isinstance(value, Markup):
            return value
        if isinstance(value, Phrase | str):
            return Markup(language.say(value, escape))
        if isinstance(value, Undefined):
            str(value)
        raise TypeError(f"only text from a number filter or the catalogs can be printed, not {value!r}")

    def words(msgid: str, **values: Any) -> Markup:
        return finalize(phrase(msgid, **values))

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["_"] = words
    environment.filters.update(_FILTERS)
    return environment


def _cid(picture: Picture) -> Markup:
    return Markup(picture.cid)


def _picture_width(picture: Picture) -> Markup:
    """Pixels of the page that a picture takes: Outlook knows no other limit than this attribute."""
    return Markup(str(min(picture.size[0], PICTURE_WIDTH)))


def _links(row: Unmatched) -> list[tuple[str, Markup]]:
    """Text and address of each link of a row: what `addresses` lets through needs no escape."""
    return [(url.partition("/actions/")[2], Markup(url)) for url in doubts.addresses(row)]


def _run_url(run: Run) -> Markup:
    return Markup(facts.run_url(run) or "")


def _run_path(key: RunKey) -> Markup:
    return Markup(f"{key.id}/{key.attempt}")


def _row_url(row: Unmatched, chosen: Facts) -> Markup:
    """Address of the run that a row comes from, where the runs of the comparison hold it."""
    runs = (run for run in (*chosen.candidate.rows, *chosen.baseline.rows) if run.key == row.run)
    return next(map(_run_url, runs), Markup(""))


_FILTERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "alarms": doubts.alarms,
        "attributed_class": contrasts.classes,
        "attributed_controls": contrasts.of_group,
        "attributed_facts": contrasts.differences,
        "attributed_names": contrasts.names,
        "alike": phrases.alike,
        "change_cell": lambda finding: phrases.amount(finding.effect, numbers.kind(finding)),
        "cid": _cid,
        "count": numbers.count,
        "coverage": phrases.coverage,
        "detectable_cell": lambda finding: numbers.detectable(finding.mde, numbers.kind(finding)),
        "doubt": doubts.sentence,
        "everything": phrases.everything,
        "evidence": evidence,
        "foot": phrases.foot,
        "frontier": frontwords.sentences_of,
        "full_label": phrases.full_label,
        "has_values": phrases.has_values,
        "head": phrases.head,
        "headline": phrases.headline,
        "hidden": phrases.hidden,
        "image": phrases.image_text,
        "image_change": phrases.image_change,
        "interval_cell": phrases.interval,
        "kind": phrases.kind,
        "label": phrases.label,
        "layouts": frontwords.layouts,
        "left_out": phrases.left_out,
        "measured": phrases.measured,
        "links": _links,
        "metric": phrases.metric_name,
        "metric_cell": phrases.metric_cell,
        "note": doubts.note,
        "no_difference": facts.no_difference,
        "not_same": facts.not_same,
        "outer": facts.outer,
        "picture_width": _picture_width,
        "p_cell": lambda finding: numbers.pvalue(finding.p),
        "published": phrases.published,
        "row_run": phrases.row_run,
        "row_url": _row_url,
        "run": phrases.run_name,
        "run_path": _run_path,
        "run_url": _run_url,
        "runs_cell": phrases.runs,
        "sameness": phrases.sameness,
        "short": phrases.short,
        "single_run": phrases.single_run,
        "side": phrases.side,
        "spark": numbers.sparkline,
        "started": phrases.started,
        "step": phrases.step,
        "told": phrases.told,
        "subject": phrases.subject,
        "sure": phrases.sure,
        "values_cell": phrases.values,
        "verdict": phrases.verdict_name,
        "verdict_cell": phrases.verdict_cell,
        "why": doubts.why,
        "why_linked": partial(doubts.why, linked=True),
        **weekwords.FILTERS,
    }
)
