"""Errands as values: a comment, a check run, a label, a mail; nothing is sent from here.

An errand that exists is fit to be sent: its length is within the limits of its channel, no text of it starts a bot,
notifies a person, fakes another bot's marker or adds a header. Errands are written to a file and read again, so that a
job whose token may not write hands them to one whose token may.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import msgspec

from reports import headers
from reports.headers import BadAddress, Mailbox
from reports.picture import CannotShow, Picture
from store.records import Trouble

MARKER = "sweep-tracker"
"""First word of the hidden line by which our comment is found again; the renderer writes the same."""
UNKNOWN = "unknown"
"""Head or verdict that a marker does not tell."""

BODY_LIMIT = 65_536
"""Characters of a comment; GitHub answers 422 above it."""
BODY_BYTES = 262_144
"""Bytes of a comment in UTF-8."""
NOTICE_LIMIT = 4_000
"""Characters of the comment that notifies: it is read in a mail."""
CHECK_LIMIT = 65_535
"""Characters of a check run's summary and of its text."""
TITLE_LIMIT = 255
"""Characters of names and titles."""
SUBJECT_LIMIT = 2_000
"""Characters of a mail's subject."""
HTML_LIMIT = 102_400
"""Bytes of a mail's HTML part: Gmail cuts a longer one off."""
TEXT_LIMIT = 1_000_000
"""Bytes of a mail's text part."""
PICTURES_LIMIT = 5_000_000
"""Bytes of a mail's pictures: with base64 the whole stays below the 10 MB that small servers take."""
_CHECK_TEXTS = frozenset({"title", "summary", "text"})

CONCLUSIONS = ("success", "failure", "neutral", "cancelled", "skipped", "timed_out", "action_required")
"""What a check run may conclude; `stale` is GitHub's own."""

CONTROL_LABELS = frozenset(
    "sweep-enabled full-sweep-enabled full-sweep-fail-fast full-sweep-fail-fast-no-canary "
    "non-canary-full-sweep-enabled all-evals evals-only agentx-fast skip_queue ci-patchwork ci-patchwork-waived "
    "engine-patch ci-checklist-complete".split()
)
"""Labels that start sweeps, choose what runs, or waive a rule: people set them, never a report."""

FILE_VERSION = 1

_GAP = "\u200b"
"""Zero-width space: breaks a word that a machine looks for, and no human sees it."""
_AT = r"(?:@|&#0*64;|&#x0*40;|&commat;)"
_SIGN_OFF = re.compile(r"(as\s+a\s+pr\s+reviewer\s+and\s+code)(?=owner)", re.IGNORECASE)


class CannotSend(Trouble):
    """An errand that its channel would refuse or a bot would obey: says which rule and what to do."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """A text that a machine looks for, and how it is broken so that a reader sees the same."""

    name: str
    pattern: re.Pattern[str]
    harmless: str


TRIGGERS = (
    # Workflows look for the two agents by plain containment, in code and inside words too.
    Trigger("call of an agent", re.compile(rf"({_AT})(?=claude|klaud-cold)", re.IGNORECASE), rf"\1{_GAP}"),
    # GitHub looks for mentions after it has read entities; `image@sha256:...` follows a letter and is none.
    Trigger("mention", re.compile(rf"(?<![A-Za-z0-9])({_AT})(?=[A-Za-z0-9&])", re.IGNORECASE), rf"\1{_GAP}"),
    Trigger("command", re.compile(r"/(?=reuse-sweep-run|stage-results)", re.IGNORECASE), f"/{_GAP}"),
    Trigger("sign-off of a code owner", _SIGN_OFF, rf"\1{_GAP}"),
)
"""What starts other bots or notifies people (`<!--` of other bots' markers is handled beside, see `harmless`)."""


@dataclass(frozen=True, slots=True)
class Mark:
    r"""The hidden line of a comment of ours: what it is, which version wrote it, for which head, with which verdict.

    >>> mark = Mark.find("Text\n<!-- sweep-tracker version=0.1.0 head=abc1234 verdict=regression -->")
    >>> mark.head, mark.verdict, str(mark)
    ('abc1234', 'regression', '<!-- sweep-tracker version=0.1.0 head=abc1234 verdict=regression -->')
    """

    word: str = MARKER
    version: str = UNKNOWN
    head: str = UNKNOWN
    verdict: str = UNKNOWN
    notices: int = 0
    """How many times a worse verdict was notified; in a notice its own number."""

    def __str__(self) -> str:
        counted = f" notices={self.notices}" if self.notices else ""
        return f"<!-- {self.word} version={self.version} head={self.head} verdict={self.verdict}{counted} -->"

    @classmethod
    def find(cls, text: str, word: str = MARKER) -> Mark | None:
        """The mark of this word that stands on a line of its own, so not in a quotation; fields may be missing."""
        found = re.search(rf"^<!-- {re.escape(word)}((?: [a-z]+=[^\s<>=]+)*) -->\s*$", text, re.MULTILINE)
        if found is None:
            return None
        fields = dict(field.split("=", 1) for field in found[1].split())
        told = {name: fields.get(name, UNKNOWN) for name in ("version", "head", "verdict")}
        count = fields.get("notices", "0")
        return cls(word, **told, notices=int(count) if re.fullmatch(r"\d{1,9}", count, re.ASCII) else 0)

    def put(self, text: str) -> str:
        """The text with this mark in the place of the one it has."""
        line = re.compile(rf"^<!-- {re.escape(self.word)}(?: [^\n]*)? -->[^\S\n]*$", re.MULTILINE)
        return line.sub(lambda _: str(self), text, count=1)


def triggers(text: str, word: str = MARKER) -> tuple[str, ...]:
    """Names of the rules that a text breaks: what would start a bot, notify a person, or pose as another bot.

    >>> triggers("ping @someone"), triggers("repo/image@sha256:0123")
    (('mention',), ())
    """
    found = tuple(trigger.name for trigger in TRIGGERS if trigger.pattern.search(text))
    return (*found, "hidden comment") if _strange_comments(word).search(text) else found


def harmless(text: str, word: str = MARKER) -> str:
    r"""The text with every trigger broken by a zero-width space; it reads the same.

    >>> harmless("@claude: /stage-results").replace("\u200b", "|")
    '@|claude: /|stage-results'
    """
    text = _strange_comments(word).sub("&lt;!--", text)
    for trigger in TRIGGERS:
        text = trigger.pattern.sub(trigger.harmless, text)
    return text


def _strange_comments(word: str) -> re.Pattern[str]:
    """The opening of a hidden comment that is not our mark: other bots know their comments by such lines."""
    return re.compile(rf"<!--(?! {re.escape(word)}(?: [a-z]+=[^\s<>=]+)* -->\s*$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Comment:
    """The one comment of a pull request, and the short one that is posted beside it when its verdict worsens.

    `body` holds exactly one mark of `marker`. Use `Comment.of` for texts that may hold triggers.
    """

    pull: int
    body: str
    notice: str
    marker: str = MARKER

    def __post_init__(self) -> None:
        _check_number(self.pull)
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,50}", self.marker):
            raise CannotSend(f"marker {self.marker!r}: use lower-case letters, digits and hyphens")
        marks = len(re.findall(rf"<!-- {re.escape(self.marker)} ", self.body))
        if marks != 1 or Mark.find(self.body, self.marker) is None:
            raise CannotSend(
                f"the comment needs one marker line of {self.marker!r}, not {marks}: render it as 'comment'"
            )
        _check_text("comment", self.body, BODY_LIMIT, self.marker)
        if len(self.body.encode()) > BODY_BYTES:
            raise CannotSend(f"the comment has more than {BODY_BYTES:,} bytes: leave rows out")
        if not self.notice.strip() or "<!--" in self.notice:
            raise CannotSend("the notice needs a text without a hidden comment: render it as 'short'")
        _check_text("notice", self.notice, NOTICE_LIMIT, self.marker)

    @classmethod
    def of(cls, pull: int, body: str, notice: str, marker: str = MARKER) -> Comment:
        """A comment whose texts are made harmless first."""
        return cls(pull, harmless(body, marker), harmless(notice).replace("<!--", "&lt;!--").strip(), marker)

    @property
    def mark(self) -> Mark:
        return Mark.find(self.body, self.marker) or Mark(self.marker)


@dataclass(frozen=True, slots=True)
class CheckRun:
    """A completed check run on a commit. Title, summary and text are Markdown; `details_url` may be empty."""

    head: str
    name: str
    conclusion: str
    title: str
    summary: str
    text: str = ""
    details_url: str = ""
    marker: str = MARKER

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", self.head):
            raise CannotSend(f"check run on {self.head!r}: give the whole sha of the commit")
        if self.conclusion not in CONCLUSIONS:
            raise CannotSend(f"check run concludes {self.conclusion!r}: choose from {', '.join(CONCLUSIONS)}")
        if self.details_url and urlsplit(self.details_url).scheme not in {"http", "https"}:
            raise CannotSend(f"details of a check run at {self.details_url!r}: give an http address")
        for what, value, limit in (
            ("name", self.name, TITLE_LIMIT),
            ("title", self.title, TITLE_LIMIT),
            ("summary", self.summary, CHECK_LIMIT),
        ):
            if not value.strip():
                raise CannotSend(f"the check run's {what} is empty")
            _check_text(f"check run's {what}", value, limit, self.marker)
        _check_text("check run's text", self.text, CHECK_LIMIT, self.marker)

    @classmethod
    def of(cls, **fields: str) -> CheckRun:
        """A check run whose title, summary and text are made harmless first."""
        return cls(**{name: harmless(value) if name in _CHECK_TEXTS else value for name, value in fields.items()})


@dataclass(frozen=True, slots=True)
class Label:
    """A label of a pull request that shall be there, or not. Labels that steer sweeps are refused."""

    pull: int
    name: str
    present: bool = True

    def __post_init__(self) -> None:
        _check_number(self.pull)
        if self.name.casefold() in CONTROL_LABELS:
            raise CannotSend(f"label {self.name!r} steers what runs: a person sets it")
        if not self.name.strip() or len(self.name) > 50 or re.search(r"[\x00-\x1f,]", self.name):
            raise CannotSend(f"label {self.name!r}: use 1 to 50 characters without commas and controls")


@dataclass(frozen=True, slots=True)
class Mail:
    """One mail to all its recipients: plain text, HTML, and the pictures that the HTML shows by `cid:`.

    Addresses are `name@host` or `Name <name@host>`. `stream` names the list ("weekly"), `about` what of it is told
    ("2026-W31"), `version` counts corrections: these three make the Message-ID, so a second sending is the same mail,
    and a correction stands in its thread. `date` carries its zone. `unsubscribe` is an https or mailto address; without
    one it is the sender's. `accepted` are recipients whose server has the mail: they get no second copy.
    """

    sender: str
    recipients: tuple[str, ...]
    subject: str
    text: str
    html: str
    date: datetime
    stream: str
    about: str
    version: int = 1
    unsubscribe: str = ""
    pictures: tuple[Picture, ...] = ()
    accepted: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_addresses(self)
        _check_identity(self)
        _check_mail_texts(self)
        _check_pictures(self)

    @property
    def origin(self) -> Mailbox:
        return Mailbox.of(self.sender)

    @property
    def readers(self) -> tuple[Mailbox, ...]:
        return tuple(map(Mailbox.of, self.recipients))

    @property
    def left(self) -> tuple[str, ...]:
        """Bare addresses that have not got it."""
        return tuple(reader.spec for reader in self.readers if reader.spec not in self.accepted)

    @property
    def message_id(self) -> str:
        """With its angle brackets; the same for the same stream, about and version."""
        return self._id(self.version)

    @property
    def first_id(self) -> str:
        """The message that this one corrects; empty for the first version."""
        return self._id(1) if self.version > 1 else ""

    def _id(self, version: int) -> str:
        told = "\0".join((self.stream, self.about, str(version)))
        return f"<{hashlib.sha256(told.encode()).hexdigest()[:32]}@{self.origin.domain}>"


Errand: TypeAlias = Comment | CheckRun | Label | Mail

KINDS: Mapping[str, type[Comment] | type[CheckRun] | type[Label] | type[Mail]] = MappingProxyType(
    {"comment": Comment, "check_run": CheckRun, "label": Label, "mail": Mail}
)
"""Names of the errands in a file."""


def kind(errand: Errand) -> str:
    """The errand's name in a file.

    >>> kind(Label(7, "perf"))
    'label'
    """
    return next(name for name, made in KINDS.items() if isinstance(errand, made))


def dumps(errands: Iterable[Errand]) -> str:
    """The errands as JSON, the same bytes for the same errands."""
    listed = [{"kind": kind(errand), **msgspec.to_builtins(errand)} for errand in errands]
    return json.dumps({"version": FILE_VERSION, "errands": listed}, ensure_ascii=False, indent=1) + "\n"


def loads(text: str | bytes) -> tuple[Errand, ...]:
    """Errands from JSON that may come from a stranger: the same rules hold as for errands made here."""
    try:
        whole = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as flaw:
        raise CannotSend(f"no errands: {flaw}") from flaw
    if (
        not isinstance(whole, dict)
        or whole.get("version") != FILE_VERSION
        or not isinstance(whole.get("errands"), list)
    ):
        raise CannotSend(f"no errands of version {FILE_VERSION}: write the file with the same version of the tracker")
    return tuple(_errand(number, item) for number, item in enumerate(whole["errands"], start=1))


def _errand(number: int, item: Any) -> Errand:
    name = item.get("kind") if isinstance(item, dict) else None
    made = KINDS.get(name) if isinstance(name, str) else None
    if made is None:
        raise CannotSend(f"errand {number}: kind is not one of {', '.join(KINDS)}")
    fields = {name: value for name, value in item.items() if name != "kind"}
    if strange := fields.keys() - set(made.__slots__):
        raise CannotSend(f"errand {number}: unknown field {min(strange)!r}")
    try:
        return msgspec.convert(fields, made)
    except (msgspec.ValidationError, CannotSend, CannotShow) as flaw:
        raise CannotSend(f"errand {number}: {flaw}") from flaw


def write(errands: Iterable[Errand], path: Path) -> None:
    """Keep errands as a file, whole or not at all."""
    scratch = path.with_name(f".{path.name}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch.write_text(dumps(errands), encoding="utf-8")
    scratch.replace(path)


def read(path: Path) -> tuple[Errand, ...]:
    """Errands from a file; raises CannotSend with the path and the reason."""
    try:
        return loads(path.read_bytes())
    except OSError as flaw:
        raise CannotSend(f"{path}: {flaw.strerror}") from flaw
    except CannotSend as flaw:
        raise CannotSend(f"{path}: {flaw}") from flaw


def preview(errands: Sequence[Errand]) -> str:
    """What would be sent, as text: one paragraph per errand, texts indented."""
    if not errands:
        return "nothing to send\n"
    return "\n".join(_PREVIEWS[type(errand)](errand) for errand in errands)


def _preview_comment(errand: Comment) -> str:
    mark = errand.mark
    lines = [
        f"comment on pull request {errand.pull} (head {mark.head}, verdict {mark.verdict}), edited in place:",
        _indented(errand.body),
        "and only if this verdict is worse than the one that stands there:",
        _indented(errand.notice),
    ]
    return "\n".join([*lines, ""])


def _preview_check(errand: CheckRun) -> str:
    lines = [f"check run {errand.name!r} on {errand.head}: {errand.conclusion}", _indented(errand.title)]
    return "\n".join(
        [*lines, *(_indented(part) for part in (errand.details_url, errand.summary, errand.text) if part), ""]
    )


def _preview_label(errand: Label) -> str:
    return f"label {errand.name!r} {'on' if errand.present else 'off'} pull request {errand.pull}\n"


def _preview_mail(errand: Mail) -> str:
    lines = [
        f"mail from {errand.sender} to {', '.join(errand.recipients)}",
        f"subject: {headers.one_line(errand.subject)}",
        f"Message-ID: {errand.message_id}",
        f"HTML: {len(errand.html.encode()):,} bytes; pictures: {len(errand.pictures)}; text:",
        _indented(errand.text),
    ]
    return "\n".join([*lines, ""])


_PREVIEWS: Mapping[type, Callable[[Any], str]] = MappingProxyType(
    {Comment: _preview_comment, CheckRun: _preview_check, Label: _preview_label, Mail: _preview_mail}
)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())


def _check_number(pull: int) -> None:
    if pull < 1:
        raise CannotSend(f"pull request {pull}: numbers start at 1")


def _check_text(what: str, text: str, limit: int, word: str) -> None:
    if len(text) > limit:
        raise CannotSend(f"the {what} has {len(text):,} characters and GitHub takes {limit:,}: leave rows out")
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise CannotSend(f"the {what} holds half of a character (a lone surrogate): cut it at a character")
    if found := triggers(text, word):
        raise CannotSend(f"the {what} holds a {found[0]}: make it with `of`, which defuses such texts")


_STREAM = re.compile(r"[a-z][a-z0-9-]{0,40}")
_UNSUBSCRIBE = re.compile(r"(?:https?://[a-z0-9]|mailto:)[!-;=?-~]{1,900}", re.IGNORECASE)
_CID = re.compile(r'<img [^>]*src="cid:([^"]*)"')
_UNFIT = re.compile(
    r"<(?:script|svg|link|iframe|object|embed|form|base|style|video|audio)\b"
    r'|\s(?:src|background)="(?!cid:)|\sstyle="[^"]*\burl\(',
    re.IGNORECASE,
)
"""What clients drop or fetch from elsewhere; no foreign text matches, since its `<` and quotes are escaped."""


def _check_addresses(mail: Mail) -> None:
    for role, addresses in (("sender", (mail.sender,)), ("recipient", mail.recipients)):
        for address in addresses:
            try:
                Mailbox.of(address)
            except BadAddress as flaw:
                raise CannotSend(f"{role} {flaw}") from flaw
    specs = [reader.spec for reader in mail.readers]
    if not specs:
        raise CannotSend("no recipient: give at least one address")
    if twice := sorted({spec for spec in specs if specs.count(spec) > 1}):
        raise CannotSend(f"recipient {twice[0]} is named twice: name each once")
    if strangers := set(mail.accepted) - set(specs):
        raise CannotSend(f"accepted by {min(strangers)}, which is no recipient: name bare addresses of recipients")
    if mail.unsubscribe and not _UNSUBSCRIBE.fullmatch(mail.unsubscribe):
        raise CannotSend(f"unsubscribe address {mail.unsubscribe!r}: give https://... or mailto:... in ASCII")


def _check_identity(mail: Mail) -> None:
    if mail.date.tzinfo is None:
        raise CannotSend(f"date {mail.date} has no zone: give it with one, such as UTC")
    if not _STREAM.fullmatch(mail.stream):
        raise CannotSend(f"stream {mail.stream!r}: name the list by lower-case letters, digits and hyphens")
    if not mail.about.strip() or headers.is_broken(mail.about):
        raise CannotSend("the mail is about nothing: name what of its stream it tells, such as '2026-W31'")
    if mail.version < 1:
        raise CannotSend(f"version {mail.version} of a mail: versions start at 1")


def _check_mail_texts(mail: Mail) -> None:
    if not headers.one_line(mail.subject) or len(mail.subject) > SUBJECT_LIMIT:
        raise CannotSend(f"the subject has {len(mail.subject):,} characters: render it as 'title'")
    for what, body, limit in (("text", mail.text, TEXT_LIMIT), ("HTML", mail.html, HTML_LIMIT)):
        if not body:
            raise CannotSend(f"the mail's {what} part is empty: render both parts")
        if headers.is_broken(mail.subject + body):
            raise CannotSend("the mail holds half of a character (a lone surrogate): cut it at a character")
        if (size := len(body.encode())) > limit:
            raise CannotSend(f"the mail's {what} part has {size:,} bytes, and {limit:,} may be: leave rows out")
    if found := _UNFIT.search(mail.html):
        raise CannotSend(f"the mail's HTML part holds {found[0]!r}: clients drop it, or fetch it from elsewhere")


def _check_pictures(mail: Mail) -> None:
    shown, carried = set(_CID.findall(mail.html)), {picture.cid for picture in mail.pictures}
    if shown != carried:
        raise CannotSend(
            f"the HTML part shows {len(shown - carried)} pictures that the mail lacks, and of those that"
            f" it has it does not show {len(carried - shown)}: render it with the same pictures"
        )
    if (size := sum(len(picture.png) for picture in mail.pictures)) > PICTURES_LIMIT:
        raise CannotSend(f"the pictures have {size:,} bytes, and {PICTURES_LIMIT:,} may be: leave some out")
