"""The commands: the arguments of each, its library call, and its exit code."""

from __future__ import annotations

import argparse
import contextlib
import signal
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

import gatepatch
from gatepatch import api
from gatepatch.errors import PendingError
from gatepatch.report import Printer, to_json
from gatepatch.results import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command.

    Args:
        summary: One line for the list of commands.
        arguments: Adds its arguments to a parser.
        run: Takes the parsed arguments, and printers to stdout and stderr; returns the exit code.
        description: More than the summary says, where there is more.
    """

    name: str
    summary: str
    arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace, Printer, Printer], int]
    description: str = ""


def _environment(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("which environment (the one that gatepatch runs in, unless)")
    group.add_argument("--python", metavar="EXE", help="interpreter of another environment")
    group.add_argument("--prefix", metavar="DIR", help="folder of another environment")


def _patches(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--patches",
        metavar="DIR",
        action="append",
        default=[],
        help="folder of your own patch sets (also: GATEPATCH_PATCHES)",
    )


def _jit_roots(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--jit-root",
        metavar="DIR",
        action="append",
        default=[],
        help="one more JIT cache to look in",
    )


def _timeout(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=60.0,
        help="how long to wait for a lock (60)",
    )


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 <= (value := float(text)) < float("inf"):
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")


def _list_arguments(parser: ArgumentParser) -> None:
    _patches(parser)


def _list(options: Namespace, out: Printer, err: Printer) -> int:
    sets = gatepatch.list_sets(patches=options.patches)
    if options.json:
        rows = [{"name": s.name, "summary": s.summary, "source": s.source} for s in sets]
        out.line(to_json({"schema": 1, "command": "list", "sets": rows}))
        return 0
    width = max((len(value.name) for value in sets), default=0)
    for value in sets:
        out.line(f"{value.name:{width}}  {value.summary}")
    return 0


def _show_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("set", metavar="SET")
    _patches(parser)


def _show(options: Namespace, out: Printer, err: Printer) -> int:
    value = gatepatch.show(options.set, patches=options.patches)
    if options.json:
        out.line(to_json({"schema": 1, "command": "show", "set": value}))
    else:
        out.patch_set(value)
    return 0


def _probe_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=_seconds, default=30.0, help="time limit (30)"
    )


def _probe(options: Namespace, out: Printer, err: Printer) -> int:
    from gatepatch.device_probe import ProbeFailure
    from gatepatch.errors import ProbeError, Problem

    answer = gatepatch.probe(timeout=options.timeout)
    if isinstance(answer, ProbeFailure):
        raise ProbeError(Problem(message=answer.message))
    if options.json:
        out.line(to_json({"schema": 1, "command": "probe", "probe": answer}))
        return 0
    out.line(f"driver: CUDA {answer.driver}; runtime: CUDA {answer.runtime}; CuPy {answer.cupy}")
    for device in answer.devices:
        peers = f"; reaches {', '.join(map(str, device.peers))}" if device.peers else ""
        out.line(
            f"device {device.index}: {device.name}, SM {device.arch}, {device.pci}, "
            f"{device.uuid}{peers}"
        )
    return 0


def _plan_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("set", metavar="SET")
    _environment(parser)
    _patches(parser)
    _edit_choices(parser)


def _edit_choices(parser: ArgumentParser) -> None:
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


def _plan(options: Namespace, out: Printer, err: Printer) -> int:
    result = gatepatch.plan(
        options.set,
        python=options.python,
        prefix=options.prefix,
        patches=options.patches,
        accept_current=options.accept_current,
        require_pin=options.require_pin,
        hide_aot=options.hide_aot,
    )
    return _finish(options, result, out, err, diffs=True)


def _apply_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("set", metavar="SET")
    _environment(parser)
    _patches(parser)
    parser.add_argument(
        "--assume",
        metavar="SM",
        action="append",
        default=[],
        help="do not ask the devices, take this for their answer: sm_120",
    )
    parser.add_argument(
        "--all-devices",
        action="store_true",
        help="demand that every visible device is named by the set, not just one",
    )
    _edit_choices(parser)
    _jit_roots(parser)
    _timeout(parser)


def _apply(options: Namespace, out: Printer, err: Printer) -> int:
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
    return _finish(options, result, out, err)


def _status_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("set", metavar="SET", nargs="?")
    _environment(parser)
    _patches(parser)
    parser.add_argument(
        "--require",
        action="store_true",
        help="exit 1 unless the set is applied, or the releases are native",
    )


def _status(options: Namespace, out: Printer, err: Printer) -> int:
    result = gatepatch.status(
        options.set, python=options.python, prefix=options.prefix, patches=options.patches
    )
    code = _finish(options, result, out, err)
    if options.require and result.outcome not in ("applied", "native"):
        return code or 1
    return code


def _revert_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("set", metavar="SET", nargs="?", help="all sets unless one is named")
    _environment(parser)
    _patches(parser)
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
    _jit_roots(parser)
    _timeout(parser)


def _revert(options: Namespace, out: Printer, err: Printer) -> int:
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
    return _finish(options, result, out, err)


def _recover_arguments(parser: ArgumentParser) -> None:
    _environment(parser)
    _timeout(parser)


def _recover(options: Namespace, out: Printer, err: Printer) -> int:
    settled = gatepatch.recover(
        python=options.python, prefix=options.prefix, timeout=options.timeout
    )
    if options.json:
        out.line(to_json({"schema": 1, "command": "recover", "recovered": settled}))
        return 0
    if not settled:
        out.line("nothing is pending")
    for item in settled:
        out.line(f"{item.outcome}: {item.root}")
        for path in item.files:
            out.line(f"  {path}")
    return 0


def _cache_arguments(parser: ArgumentParser) -> None:
    _environment(parser)
    _jit_roots(parser)
    parser.add_argument(
        "--check",
        action="store_true",
        help="exit 1 where a binary does not derive from the sources on disk; run it where the "
        "server starts",
    )


def _check_cache(options: Namespace, out: Printer) -> int:
    findings = api.check_cache(
        python=options.python, prefix=options.prefix, jit_roots=options.jit_root
    )
    if options.json:
        rows = [
            {
                "module": f.module,
                "folder": f.folder,
                "reason": f.reason,
                "path": f.path,
                "message": f.message,
                "command": f.command,
            }
            for f in findings
        ]
        out.line(to_json({"schema": 1, "command": "cache", "findings": rows}))
    else:
        for finding in findings:
            out.line(f"{finding.module}  {finding.folder}: {finding.message}")
            if finding.command:
                out.line(f"  {finding.command}")
        if not findings:
            out.line("nothing found")
    # What the next load builds again by itself is no fault.
    return 1 if any(finding.command for finding in findings) else 0


def _cache(options: Namespace, out: Printer, err: Printer) -> int:
    if options.check:
        return _check_cache(options, out)
    modules = gatepatch.cache(jit_roots=options.jit_root)
    if options.json:
        out.line(to_json({"schema": 1, "command": "cache", "modules": modules}))
        return 0
    if not modules:
        out.line("no JIT module is built in the caches known here")
    for module in modules:
        built = datetime.fromtimestamp(module.newest_output / 1e9, timezone.utc)
        when = f"{built:%Y-%m-%d %H:%M:%S} UTC" if module.newest_output else "not built yet"
        out.line(f"{module.name}  {when}  {module.folder}")
    return 0


def _lint_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("set", metavar="SET", nargs="?", help="all sets unless one is named")
    _patches(parser)


def _lint(options: Namespace, out: Printer, err: Printer) -> int:
    problems = gatepatch.lint(options.set, patches=options.patches)
    if options.json:
        out.line(to_json({"schema": 1, "command": "lint", "problems": problems}))
    else:
        for problem in problems:
            out.line(str(problem))
        if not problems:
            out.line("nothing found")
    return 1 if problems else 0


def _pin_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("set", metavar="SET")
    _patches(parser)
    parser.add_argument(
        "--from",
        dest="sources",
        metavar="PATH",
        action="append",
        default=[],
        help="wheel, or folder of wheels; the package index is asked unless one is named",
    )
    parser.add_argument(
        "--release",
        metavar="NAME==VERSION",
        action="append",
        default=[],
        help="only this release; every version in the set's ranges unless one is named",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; exit 1 where a pin is not what would be written",
    )


def _pin(options: Namespace, out: Printer, err: Printer) -> int:
    from gatepatch.pinning import Pinned

    def progress(pinned: Pinned) -> None:
        detail = f": {pinned.detail}" if pinned.detail else ""
        err.line(f"{pinned.distribution} {pinned.version}  {pinned.outcome}{detail}")

    done = gatepatch.pin(
        options.set,
        patches=options.patches,
        sources=options.sources,
        releases=options.release,
        check=options.check,
        progress=progress,
    )
    if options.json:
        out.line(to_json({"schema": 1, "command": "pin", "pins": done}))
    else:
        counts = Counter(pinned.outcome for pinned in done)
        out.line(", ".join(f"{number} {word}" for word, number in sorted(counts.items())) or "none")
    return 1 if any(pinned.outcome in ("refused", "differs") for pinned in done) else 0


def _finish(
    options: Namespace, result: Result, out: Printer, err: Printer, *, diffs: bool = False
) -> int:
    if options.json:
        out.line(to_json(result))
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


ALL: Sequence[Command] = (
    Command(name="list", summary="list the patch sets", arguments=_list_arguments, run=_list),
    Command(
        name="show",
        summary="say what a patch set is for, and what is known of it",
        arguments=_show_arguments,
        run=_show,
    ),
    Command(
        name="probe",
        summary="ask which devices there are",
        arguments=_probe_arguments,
        run=_probe,
    ),
    Command(
        name="plan",
        summary="show what apply would do, with diffs and proofs",
        arguments=_plan_arguments,
        run=_plan,
    ),
    Command(
        name="apply",
        summary="apply a patch set, all of it or nothing",
        arguments=_apply_arguments,
        run=_apply,
    ),
    Command(
        name="status",
        summary="say what is applied, going by the files themselves",
        arguments=_status_arguments,
        run=_status,
    ),
    Command(
        name="revert",
        summary="put the originals back, byte for byte",
        arguments=_revert_arguments,
        run=_revert,
    ),
    Command(
        name="recover",
        summary="settle an interrupted change",
        arguments=_recover_arguments,
        run=_recover,
    ),
    Command(
        name="cache",
        summary="list what FlashInfer's JIT has built, or check it",
        arguments=_cache_arguments,
        run=_cache,
    ),
    Command(
        name="lint",
        summary="check patch sets",
        arguments=_lint_arguments,
        run=_lint,
    ),
    Command(
        name="pin",
        summary="work a set out for released versions, for review",
        arguments=_pin_arguments,
        run=_pin,
    ),
)
