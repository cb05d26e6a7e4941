"""Ask an environment's interpreter which file it would import, and whether its bytecode is right."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gatepatch.environment import Environment

_CHILD = Path(__file__).with_name("_import_child.py")
_MARK = "gatepatch:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What would be imported under a module's name.

    Args:
        module: Such as ``flashinfer.jit.comm``.
        origin: Its file; None if it is not found.
        reason: Why it is not found.
        stale: Bytecode that would be loaded though it was not compiled from the file, and on
            what ground: ``mtime``, ``hash`` or ``unchecked``.
    """

    module: str
    origin: Path | None
    reason: str
    stale: tuple[tuple[Path, str], ...]


def module_of(path: str) -> str | None:
    """The module that a file of a distribution is; None for what is not imported.

    Args:
        path: From where the distribution is imported, such as ``flashinfer/jit/comm.py``.
    """
    if not path.endswith(".py"):
        return None
    parts = path.removesuffix(".py").split("/")
    names = parts[:-1] if parts[-1] == "__init__" else parts
    return ".".join(names) if names and all(name.isidentifier() for name in names) else None


def ask(environment: Environment, modules: Sequence[str]) -> tuple[Imported, ...] | str:
    """Ask for some modules; a text says why there is no answer.

    Args:
        environment: Its interpreter runs, with its own start-up files. Nothing else is imported.
        modules: Their names.
    """
    if not modules:
        return ()
    if environment.python is None:
        return f"the interpreter of {environment.prefix} cannot run here"
    request = {"modules": list(modules), "paths": list(map(str, environment.paths))}
    try:
        done = subprocess.run(
            # Not as a script, whose own folder would come first in the path.
            [environment.python, "-B", "-c", _CHILD.read_text("utf-8")],
            input=json.dumps(request),
            capture_output=True,
            timeout=120,
            text=True,
            errors="surrogateescape",
        )
        answer = next(x for x in done.stdout.splitlines() if _MARK in x).partition(_MARK)[2]
        return tuple(
            Imported(
                module=row["module"],
                origin=Path(row["origin"]) if row["origin"] else None,
                reason=row["reason"] or "",
                stale=tuple((Path(path), how) for path, how in row["stale"]),
            )
            for row in json.loads(answer)
        )
    except StopIteration:
        lines = done.stderr.strip().splitlines()
        return f"{environment.python} ended without an answer: {lines[-1] if lines else ''}"
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        return f"{environment.python} could not be asked: {error}"
