"""Write a patch set of edits made by hand, or of a diff."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

import gatepatch
from gatepatch.commands.options import add_environment
from gatepatch.report import Printer, document

if TYPE_CHECKING:
    from gatepatch.authoring.made import Made, MadeFile


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("name", metavar="NAME", help="the new set's name")
    parser.add_argument(
        "--from-edits",
        metavar="DISTRIBUTION",
        nargs="+",
        action="extend",
        default=[],
        help="compare what is installed with the release",
    )
    parser.add_argument(
        "--from-diff",
        metavar="FILE",
        help="read a unified diff against what is installed",
    )
    add_environment(parser)
    parser.add_argument(
        "--wheel",
        metavar="FILE",
        action="append",
        default=[],
        help="wheel to take the release's bytes from; pip downloads it unless one is named",
    )
    parser.add_argument(
        "--admit",
        metavar="SM",
        nargs="+",
        action="extend",
        default=[],
        help="the architectures to admit; worked out from the gates unless given",
    )
    parser.add_argument(
        "--exclude",
        metavar="SM",
        nargs="+",
        action="extend",
        default=[],
        help="the architectures to shut out",
    )
    parser.add_argument(
        "--like", metavar="SM", help="the architecture that the admitted ones are to be like"
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        default="patches",
        help="the folder of sets that it goes into (patches)",
    )


def run(options: Namespace, out: Printer, err: Printer) -> int:
    """Run the command; return its exit code."""

    def progress(text: str) -> None:
        if err.stream.isatty():
            err.line(text)

    made = gatepatch.new(
        options.name,
        edits=options.from_edits,
        diff=options.from_diff,
        python=options.python,
        prefix=options.prefix,
        wheels=options.wheel,
        admit=options.admit,
        exclude=options.exclude,
        like=options.like,
        output=options.output,
        progress=progress,
    )
    if options.json:
        out.line(document("new", made=made))
        return 0
    _print(made, out)
    for note in made.notes:
        err.line(f"note: {note}")
    print_next(made, options.output, err)
    return 0


def _print(made: Made, out: Printer) -> None:
    archs = ", ".join(arch.name for arch in made.archs)
    like = f" like {made.like.name}" if made.like else ""
    out.line(f"{made.source}: {'admits' if made.action == 'open' else 'excludes'} {archs}{like}")
    for file in made.files:
        _print_file(file, out)
    out.line("planned on the release's bytes, it gives exactly the edited ones")


def _print_file(file: MadeFile, out: Printer) -> None:
    out.line(f"  {file.path}  ({file.distribution} {file.version})")
    for edit in file.edits:
        lines = ", ".join(map(str, edit.lines))
        proved = "" if edit.proved else ", not proved"
        out.line(f"    {edit.kind}, line {lines}{proved}")


def print_next(made: Made, output: str, err: Printer) -> None:
    """Say what is left to do once a set is written."""
    err.line(f"give the reasons, where it says TODO: {', '.join(made.missing)}")
    err.line(f"then check it: gatepatch lint {made.name} --patches {shlex.quote(output)}")
