"""Put the originals back, byte for byte."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import gatepatch
from gatepatch.commands.options import (
    add_environment,
    add_jit_roots,
    add_patches,
    add_timeout,
    finish,
)
from gatepatch.report import Printer


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("set", metavar="SET", nargs="?", help="all sets unless one is named")
    add_environment(parser)
    add_patches(parser)
    parser.add_argument(
        "--discard-foreign",
        action="store_true",
        help="put pristine bytes over files that were edited by hand; theirs are kept",
    )
    parser.add_argument(
        "--wheel",
        metavar="FILE",
        action="append",
        default=[],
        help="wheel to take pristine bytes from",
    )
    add_jit_roots(parser)
    add_timeout(parser)


def run(options: Namespace, out: Printer, err: Printer) -> int:
    """Run the command; return its exit code."""
    result = gatepatch.revert(
        options.set,
        python=options.python,
        prefix=options.prefix,
        patches=options.patches,
        discard_foreign=options.discard_foreign,
        wheels=options.wheel,
        jit_roots=options.jit_root,
        timeout=options.timeout,
    )
    return finish(options, result, out, err)
