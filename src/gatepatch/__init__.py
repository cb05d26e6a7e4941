"""Open architecture gates in installed packages: proved, reversible, per release.

``gatepatch.apply("sm120-allreduce")`` opens the gates, ``gatepatch.revert()`` puts every file
back. Importing this module loads none of its dependencies and writes nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it as true; importing typing costs half an import
if TYPE_CHECKING:
    from typing import Any

    from gatepatch.api import (
        applied,
        apply,
        cache,
        doctor,
        lint,
        list_sets,
        new,
        pin,
        plan,
        probe,
        recover,
        revert,
        scan,
        show,
        status,
        trial,
        verify,
    )
    from gatepatch.errors import GatepatchError

__version__ = "0.1.0"

__all__ = [
    "GatepatchError",
    "__version__",
    "applied",
    "apply",
    "cache",
    "doctor",
    "lint",
    "list_sets",
    "new",
    "pin",
    "plan",
    "probe",
    "recover",
    "revert",
    "scan",
    "show",
    "status",
    "trial",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "GatepatchError":
        from gatepatch import errors

        return getattr(errors, name)
    from gatepatch import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return __all__
