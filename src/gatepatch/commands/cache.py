"""List what FlashInfer's JIT has built, or check it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from datetime import datetime, timezone

import gatepatch
from gatepatch import api
from gatepatch.commands.options import add_environment, add_jit_roots
from gatepatch.report import Printer, document


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_environment(parser)
    add_jit_roots(parser)
    parser.add_argument(
        "--check",
        action="store_true",
        help="exit 1 where a binary does not derive from the sources on disk; run it where the "
        "server starts",
    )


def _check(options: Namespace, out: Printer) -> int:
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
        out.line(document("cache", findings=rows))
    else:
        for finding in findings:
            out.line(f"{finding.module}  {finding.folder}: {finding.message}")
            if finding.command:
                out.line(f"  {finding.command}")
        if not findings:
            out.line("nothing found")
    # What the next load builds again by itself is no fault.
    return 1 if any(finding.command for finding in findings) else 0


def run(options: Namespace, out: Printer, err: Printer) -> int:
    """Run the command; return its exit code."""
    if options.check:
        return _check(options, out)
    modules = gatepatch.cache(jit_roots=options.jit_root)
    if options.json:
        rows = [
            {
                "name": module.name,
                "architectures": module.architectures,
                "folder": module.folder,
                "size": module.size,
                "newest_output": module.newest_output,
            }
            for module in modules
        ]
        out.line(document("cache", modules=rows))
        return 0
    if not modules:
        out.line("no JIT module is built in the caches known here")
    for module in modules:
        built = datetime.fromtimestamp(module.newest_output / 1e9, timezone.utc)
        when = f"{built:%Y-%m-%d %H:%M:%S} UTC" if module.newest_output else "not built yet"
        size = f"{module.size / 1e6:.1f} MB"
        out.line(f"{module.name}  {module.architectures}  {size}  {when}  {module.folder}")
    return 0
