"""Asking ``doctor``, and picking from what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gatepatch
from gatepatch.doctoring.check import Diagnosis
from trees import site_of

SET = "sm120-allreduce"
OFF = "sm120-allreduce-off"
APPLY = f"gatepatch apply {SET}"


def doctor(prefix: Path, **more: Any) -> Diagnosis:
    """Ask, without asking a device unless that is said."""
    return gatepatch.doctor(prefix=prefix, **{"assume": "sm_120", **more})


def of(found: Diagnosis, name: str) -> list[tuple[str, str, str | None]]:
    """The checks of a name."""
    return [(c.outcome, c.found, c.next) for c in found.checks if c.name == name]


def problems(found: Diagnosis) -> list[str]:
    """The names of the checks that found one."""
    return [c.name for c in found.checks if c.outcome == "problem"]


def of_set(found: Diagnosis, name: str = SET) -> tuple[str, str, str | None]:
    """The line of a set, without its name."""
    ((outcome, words, command),) = (c for c in of(found, "set") if c[1].startswith(f"{name}: "))
    return outcome, words.removeprefix(f"{name}: "), command


def state_dir(prefix: Path) -> Path:
    """The state folder of an environment's site-packages."""
    return site_of(prefix) / ".gatepatch"


def edit(file: Path, text: str = "# by hand\n") -> None:
    """Edit a file by hand."""
    file.write_text(file.read_text() + text)
