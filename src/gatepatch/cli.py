"""The command line: parse, make one library call, render, return an exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import NoReturn

from gatepatch import __version__
from gatepatch.commands import SUMMARIES
from gatepatch.commands.elsewhere import spelling
from gatepatch.errors import GatepatchError, Problem, SignalError, UsageError
from gatepatch.records import replace
from gatepatch.report import Printer, error_json

EXIT_CODES = """\
exit codes:
  0    done, or nothing to do (already applied, native)
  1    refused or failed, and nothing was changed
  2    the command line is wrong
  3    a trial put everything back
  4    an interrupted change is pending or could not be settled
  130  interrupted, 143 terminated; nothing was changed"""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are gatepatch's, so that they can be JSON too."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(Problem(message=message, hint=f"{self.prog} --help"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; return its exit code.

    Args:
        arguments: Those of this process by default.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = next((word for word in words if not word.startswith("-")), "gatepatch")
    as_json = "--json" in _own(words, command)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a path or a note that ASCII cannot hold
            stream.reconfigure(errors="backslashreplace")
    out, err = Printer(sys.stdout), Printer(sys.stderr)
    code = 0
    try:
        options = parse(words, command)
        out.spelled = err.spelled = spelling(options)
        run: Callable[[argparse.Namespace, Printer, Printer], int] = options.run
        code = run(options, out, err)
        sys.stdout.flush()
        return code
    except GatepatchError as error:
        if as_json:
            print(error_json(error, command, err.spelled))
        err.error(error)
        return 128 + error.signum if isinstance(error, SignalError) else error.exit_code
    except KeyboardInterrupt:
        interrupted = SignalError(2)
        if as_json:
            print(error_json(interrupted, command))
        err.error(interrupted)
        return 130
    except BrokenPipeError:
        # Whoever read the output has gone; that is no failure of the command.
        sys.stdout = None
        return code
    except Exception as error:  # a fault of gatepatch's own: a machine still gets its document
        if not as_json:
            raise
        import traceback

        traceback.print_exc()
        fault = GatepatchError(Problem(message=f"{type(error).__name__}: {error}"))
        print(error_json(fault, command))
        return 1


def parse(words: list[str], command: str) -> argparse.Namespace:
    """Parse a command line; what follows a trial's ``--`` is its ``benchmark``.

    Args:
        words: All that follows the program's name.
        command: The command among them.

    Raises:
        UsageError: It is wrong.
    """
    own = _own(words, command)
    alone = own[:1] == [command] and command in SUMMARIES
    try:
        options = _parser(command, [command] if alone else SUMMARIES).parse_args(own)
    except UsageError as error:
        if command != "trial" or own != words:
            raise
        hint = "the benchmark's command stands after --: gatepatch trial SET -- COMMAND..."
        raise UsageError([replace(each, hint=hint) for each in error.problems]) from None
    options.benchmark = words[len(own) + 1 :]
    return options


def _own(words: list[str], command: str) -> list[str]:
    """The words that are gatepatch's: argparse would mix them up with the benchmark's."""
    return words[: words.index("--")] if command == "trial" and "--" in words else words


def _parser(command: str, known: Iterable[str] = SUMMARIES) -> argparse.ArgumentParser:
    """The parser, with the arguments of one command; to make those of all costs 2 ms."""
    parser = _Parser(
        prog="gatepatch",
        description="Open architecture gates in installed packages: proved, reversible, per release.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"gatepatch {__version__}")
    added = parser.add_subparsers(
        metavar="COMMAND", required=True, parser_class=_Parser, prog=parser.prog
    )
    for name in known:
        sub = added.add_parser(
            name,
            help=SUMMARIES[name],
            description=SUMMARIES[name],
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        if name == command:
            module = import_module(f"gatepatch.commands.{name}")
            module.arguments(sub)
            sub.add_argument("--json", action="store_true", help="print one JSON document")
            sub.set_defaults(run=module.run, prog=sub.prog)
    return parser
