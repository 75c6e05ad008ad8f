"""The command line: one file per command, imported when it is called."""

from __future__ import annotations

import errno
import gc
import importlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import click

from tracker.cli import signals

COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "fetch": ("tracker.cli.fetch", "Bring the results of a GitHub run into a folder."),
        "ingest": ("tracker.cli.ingest", "Land the artifacts of sweeps in the store."),
        "compare": ("tracker.cli.compare", "Judge a sweep against its history."),
        "plan": ("tracker.cli.plan", "Say which points to run again to settle what is open."),
        "history": ("tracker.cli.history", "Tell the history of curves: images, steps, environment."),
        "show": ("tracker.cli.state", "Tell where the curves of one config stand."),
        "images": ("tracker.cli.images", "Tell which image introduced what."),
        "reproducibility": ("tracker.cli.reproducibility", "Tell how well reruns agree and what a run can show."),
        "report": ("tracker.cli.report", "Write a comparison as a page with charts."),
        "serve": ("tracker.cli.serve", "Serve all runs and weeks of the store as pages, for reading."),
        "after-merge": ("tracker.cli.after_merge", "Judge a run of GitHub and tell it: from artifacts to comment."),
        "evidence": ("tracker.cli.evidence", "Tell how a pull request stands by the rows of the sign-off."),
        "weekly": ("tracker.cli.weekly", "Tell a week: what moved, what stays broken, what is stale."),
        "findings": ("tracker.cli.findings", "List the changes of a store; acknowledge or dismiss them."),
        "comment": ("tracker.cli.comment", "Put the verdict into one comment of a pull request."),
        "deliver": ("tracker.cli.deliver", "Send errands that another job has kept in a file."),
        "mail": ("tracker.cli.mail", "Mail the verdict, in text and HTML."),
        "changelog": ("tracker.cli.changelog", "Draft, append and check entries of perf-changelog.yaml."),
        "claims": ("tracker.cli.claims", "Hold the numbers that a text claims against what was measured."),
        "lint-text": ("tracker.cli.lint_text", "Check a bilingual text by the mechanical rules."),
        "store": ("tracker.cli.store", "Look at, check, repair, rebuild, export, pull or push the store."),
        "demo": ("tracker.cli.demo", "Judge the last image bump of a simulated history."),
        "schema": ("tracker.cli.schema", "Print the JSON Schema of compare's json output."),
    }
)
"""Every command: the module that holds it, and its line in the help."""


class LazyGroup(click.Group):
    """A group whose commands are imported when called, so that `tracker --help` imports nothing heavy."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in COMMANDS.items()])


EPILOG = """\b
Example:
  tracker ingest ./artifacts && tracker compare

\b
Exit codes:
  0  done
  1  an error, told on stderr with what to do
  2  wrong use
  3  the condition of --fail-on holds
  4  --fail-on was given and nothing could be judged: no result, or no baseline
  130, 143  ended by Ctrl-C, by SIGTERM
"""


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sweep-tracker", prog_name="tracker")
def group() -> None:
    """Keep the history of LLM-inference benchmark sweeps and judge what changed."""


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments say and give the exit code; expected failures are told on stderr."""
    try:
        ending = group.main(list(arguments), prog_name="tracker", standalone_mode=False)
    except BaseException as ended:
        return _code_of(ended)
    if signals.caught():
        return _code_of(signals.Ended())  # a library swallowed it on its way
    return ending if isinstance(ending, int) else 0


def _code_of(ended: BaseException) -> int:
    """The exit code of what ended a command, told on stderr; what nobody expected is raised again."""
    from store.records import Trouble

    number = signals.caught() or (signal.SIGINT if isinstance(ended, click.Abort | KeyboardInterrupt) else 0)
    if number:
        click.echo("tracker: interrupted", err=True)
        return 128 + number
    if isinstance(ended, click.ClickException):
        ended.show()
        return ended.exit_code
    if isinstance(ended, BrokenPipeError):
        # The reader of our output has gone (`| head`): that is its right, and Python must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if isinstance(ended, Trouble | OSError):
        click.echo(f"tracker: {ended if isinstance(ended, Trouble) else _of_the_world(ended)}", err=True)
        return 1
    raise ended


def _of_the_world(flaw: OSError) -> str:
    """A failure of the system that no room told in words of its own."""
    remedy = FULL if flaw.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG} else ""
    return f"{flaw.filename or 'the system'}: {flaw.strerror or flaw}{remedy}"


FULL = ": free space and give the same command again; what has landed stays"
"""What to do when a disk is full."""


def main() -> None:
    """Entry point of the console script."""
    # Our arrays are small: threads of the linear algebra wait for one another (65 ms instead of 7 on two busy cores).
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Rows and findings are made by the ten thousand and hold no cycles: looking for them took a tenth of the time.
    gc.set_threshold(100_000, 50, 100)
    signals.listen()
    code = run(sys.argv[1:])
    signals.release()
    sys.exit(code)
