"""Apply a patch set, all of it or nothing."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import gatepatch
from gatepatch.commands.options import (
    add_device_choices,
    add_edit_choices,
    add_environment,
    add_jit_roots,
    add_patches,
    add_timeout,
    finish,
)
from gatepatch.report import Printer


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("set", metavar="SET")
    add_environment(parser)
    add_patches(parser)
    add_device_choices(parser)
    add_edit_choices(parser)
    add_jit_roots(parser)
    add_timeout(parser)


def run(options: Namespace, out: Printer, err: Printer) -> int:
    """Run the command; return its exit code."""
    result = gatepatch.apply(
        options.set,
        python=options.python,
        prefix=options.prefix,
        patches=options.patches,
        assume=options.assume,
        all_devices=options.all_devices,
        accept_current=options.accept_current,
        require_pin=options.require_pin,
        hide_aot=options.hide_aot,
        jit_roots=options.jit_root,
        timeout=options.timeout,
    )
    return finish(options, result, out, err)
