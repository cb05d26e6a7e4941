"""Options and endings that several commands share."""

from __future__ import annotations

import argparse
import contextlib
import signal
from argparse import ArgumentParser, Namespace

from gatepatch.errors import PendingError
from gatepatch.report import Printer, result_json
from gatepatch.results import Result


def add_environment(parser: ArgumentParser) -> None:
    """Add the options that name another environment."""
    group = parser.add_argument_group("which environment (the one that gatepatch runs in, unless)")
    group.add_argument("--python", metavar="EXE", help="interpreter of another environment")
    group.add_argument("--prefix", metavar="DIR", help="folder of another environment")


def add_patches(parser: ArgumentParser) -> None:
    """Add the option that names folders of sets."""
    parser.add_argument(
        "--patches",
        metavar="DIR",
        action="append",
        default=[],
        help="folder of your own patch sets (also: GATEPATCH_PATCHES)",
    )


def add_jit_roots(parser: ArgumentParser) -> None:
    """Add the option that names JIT caches."""
    parser.add_argument(
        "--jit-root",
        metavar="DIR",
        action="append",
        default=[],
        help="one more JIT cache to look in",
    )


def add_timeout(parser: ArgumentParser) -> None:
    """Add the time limit of a wait for a lock."""
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=60.0,
        help="how long to wait for a lock (60)",
    )


def seconds(text: str) -> float:
    """Read a finite number of seconds."""
    with contextlib.suppress(ValueError):
        if 0 <= (value := float(text)) < float("inf"):
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")


def add_device_choices(parser: ArgumentParser) -> None:
    """Add what stands in for the probe, and what is demanded of its answer."""
    add_assume(parser)
    parser.add_argument(
        "--all-devices",
        action="store_true",
        help="demand that every visible device is named by the set, not just one",
    )


def add_assume(parser: ArgumentParser) -> None:
    """Add what stands in for the probe."""
    parser.add_argument(
        "--assume",
        metavar="SM",
        action="append",
        default=[],
        help="do not ask the devices, take this for their answer: sm_120",
    )


def add_edit_choices(parser: ArgumentParser) -> None:
    """Add what plan and apply can be told about files."""
    parser.add_argument(
        "--accept-current",
        action="store_true",
        help="take files that were edited by hand as they are, as the base",
    )
    parser.add_argument("--require-pin", action="store_true", help="refuse files that no pin knows")
    parser.add_argument(
        "--hide-aot",
        action="store_true",
        help="move prebuilt modules aside that would be loaded instead of the patched source",
    )


def finish(
    options: Namespace, result: Result, out: Printer, err: Printer, *, diffs: bool = False
) -> int:
    """Print a result, and return its exit code."""
    if options.json:
        out.line(result_json(result))
    else:
        out.result(result, diffs=diffs)
    err.warnings(result.warnings)
    if result.signal is not None:
        name = signal.Signals(result.signal).name
        err.line(f"{name} came after everything was done; it is done")
    if result.pending:
        err.error(PendingError(result.pending))
        return PendingError.exit_code
    return 0
