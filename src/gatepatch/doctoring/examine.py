"""Go through all checks; what goes wrong in one is said, and the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gatepatch.doctoring import caches, device, installed, left, patchsets, place, sets, tools
from gatepatch.doctoring.check import Check, CheckName, Diagnosis, problems
from gatepatch.doctoring.subject import Subject
from gatepatch.errors import GatepatchError
from gatepatch.settle import HINTS

CHECKS: tuple[tuple[CheckName, Callable[[Subject], Iterator[Check]]], ...] = (
    ("environment", place.environment),
    ("writable", place.writable),
    ("interrupted", left.interrupted),
    ("lock", left.at_work),
    ("state", left.state),
    ("distribution", installed.distributions),
    ("set", sets.sets),
    ("import", installed.imports),
    ("cupy", device.cupy),
    ("devices", device.devices),
    ("patch-set", patchsets.patch_sets),
    ("pins", patchsets.pinned),
    ("jit-cache", caches.jit_caches),
    ("prebuilt", caches.prebuilt),
    ("nvcc", tools.tools),
)
"""In the order in which one would look; the name is the one that a fault is told under."""


def examine(subject: Subject) -> Diagnosis:
    """Make every check; see ``gatepatch.doctor``."""
    found: list[Check] = []
    for name, look in CHECKS:
        try:
            for check in look(subject):  # what came before a fault counts
                found.append(check)
        except GatepatchError as error:
            found += _new(list(problems(name, error.problems)), found)
        except Exception as error:  # damaged files make any code fail, in its own way
            found += _new([_fault(name, error)], found)
    environment = subject.workspace.environment
    return Diagnosis(
        prefix=str(environment.prefix),
        python=str(environment.python) if environment.python else None,
        version=".".join(map(str, environment.version)),
        running=environment.running,
        checks=tuple(found),
    )


def _new(faults: list[Check], told: Sequence[Check]) -> list[Check]:
    """Faults, each told once: what one check stumbles over, the next ones do too."""
    said = {(check.found, check.next) for check in told}
    words = "not looked at, for a reason that is said above"
    again = Check(name=faults[0].name, outcome="note", found=words)
    return [fault for fault in faults if (fault.found, fault.next) not in said] or [again]


def _fault(name: CheckName, error: Exception) -> Check:
    number = error.errno if isinstance(error, OSError) else None
    report = "report it, with what this prints: gatepatch doctor --json"
    return Check(
        name=name,
        outcome="problem",
        found=f"could not be looked at: {type(error).__name__}: {error}",
        next=HINTS.get(number or 0, report),
    )
