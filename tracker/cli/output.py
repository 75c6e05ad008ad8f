"""Puts a comparison where it was asked for, in the form that was asked for."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType

import click

from reports import csvform, facts, jsonform
from store.records import Comparison, Trouble
from store.whole import write_atomically


def chosen(answer: Comparison) -> facts.Facts:
    """The facts of a comparison, with the history of its curves."""
    return facts.select(answer, history=answer.levels)


def _table(answer: Comparison, lang: str) -> str:
    from rich.console import Console

    from reports.channels import terminal

    console = Console(file=io.StringIO(), force_terminal=sys.stdout.isatty(), width=shutil.get_terminal_size().columns)
    with console.capture() as caught:
        terminal.show(chosen(answer), lang, console)
    return caught.get()


def _document(name: str, answer: Comparison, lang: str) -> str:
    from reports import render

    return render.render(chosen(answer), name, "en" if name == "evidence" else lang)


FORMS: Mapping[str, Callable[[Comparison, str], str]] = MappingProxyType(
    {
        "table": _table,
        "markdown": partial(_document, "comparison"),
        "json": lambda answer, _: jsonform.dumps(answer),
        "csv": lambda answer, _: csvform.dumps(answer),
        **{name: partial(_document, name) for name in ("comment", "summary", "short", "title", "commit", "evidence")},
    }
)
"""Text of a comparison by format: tables for people and programs, and the documents that are pasted or posted."""


def show(answer: Comparison, form: str, lang: str, out: Path | None) -> None:
    """Print the comparison, or write it to a file."""
    text = FORMS[form](answer, lang)
    if out is None:
        click.echo(text, nl=not text.endswith("\n"))
        return
    write(text, out, "--out")


def write(content: str | bytes, out: Path, option: str) -> None:
    """Write a text or bytes to the file that an option names, whole or not at all where that is a plain file."""
    data = content.encode() if isinstance(content, str) else content
    try:
        if out.exists() and not out.is_file():
            out.write_bytes(data)
        else:
            write_atomically(out, data)
    except OSError as flaw:
        raise Trouble(f"{out} cannot be written: {flaw.strerror or flaw}; name another file with {option}") from flaw


def make(folder: Path, option: str) -> None:
    """Make the folder that an option names, where it does not exist."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as flaw:
        raise Trouble(f"{folder} cannot be made: {flaw.strerror or flaw}; name another one with {option}") from flaw
