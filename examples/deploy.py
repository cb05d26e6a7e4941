"""Start a server with a patch set applied to its environment.

Usage: python deploy.py PYTHON COMMAND...

PYTHON is the interpreter that the server runs with; gatepatch itself may live elsewhere. Every
rank of a job may run this at once: one of them applies the set, the others find it applied.
Set GATEPATCH_ASSUME=sm_120 where no device can be asked.
"""

from __future__ import annotations

import os
import sys

import gatepatch

SET = "sm120-allreduce"


def main() -> None:
    """Apply, report, and become the server."""
    if len(sys.argv) < 3:
        sys.exit("usage: deploy.py PYTHON COMMAND...")
    python, command = sys.argv[1], sys.argv[2:]
    assumed = os.environ.get("GATEPATCH_ASSUME")
    try:
        result = gatepatch.apply(SET, python=python, assume=[assumed] if assumed else [])
    except gatepatch.GatepatchError as error:
        # Nothing was changed, unless the exit code is 4: then `gatepatch recover` settles it.
        print(f"{SET} is not applied: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    for warning in result.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    for applied in result.sets:
        for advisory in applied.advisories:
            if advisory.severity == "danger":
                print(f"danger: {advisory.text}", file=sys.stderr)
    print(f"{SET}: {result.outcome}", file=sys.stderr)
    sys.stderr.flush()
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
