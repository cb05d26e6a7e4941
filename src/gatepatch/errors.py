"""Every error that gatepatch raises on purpose, under one base class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from gatepatch.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong.

    Args:
        message: What was expected and what was found.
        where: The file, and the key path or line inside it, if there is one.
        hint: What to do about it: an exact command where there is one.
    """

    message: str
    where: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}\n  {self.hint}" if self.hint else text


class GatepatchError(Exception):
    """Base class of all errors: nothing was changed unless the subclass says so.

    Args:
        problems: All that was found wrong, at least one.
    """

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, problems: Problem | str | Iterable[Problem], *, hint: str | None = None):
        if isinstance(problems, str):
            problems = Problem(message=problems, hint=hint)
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class UsageError(GatepatchError):
    """The command line or an argument of a call is wrong."""

    code = "usage"
    exit_code = 2


class SpecError(GatepatchError):
    """A patch set cannot be read, or says something impossible."""

    code = "spec"


class UnknownSetError(GatepatchError):
    """No patch set has this name."""

    code = "unknown-set"


class TargetError(GatepatchError):
    """An environment or a distribution cannot be found or read."""

    code = "target"


class RefusedError(GatepatchError):
    """A plan cannot be made or proved, or a file is not one that may be written."""

    code = "refused"


class ProbeError(GatepatchError):
    """The device does not fit, or could not be asked."""

    code = "probe"


class StaleError(GatepatchError):
    """What the plan was made from has changed since; plan again."""

    code = "stale"


class LockTimeoutError(GatepatchError):
    """A lock was not had in time."""

    code = "lock-timeout"


class TransactionError(GatepatchError):
    """Writing failed, and everything was put back."""

    code = "transaction"


class PendingError(GatepatchError):
    """An interrupted change is pending, or could not be settled."""

    code = "pending"
    exit_code = 4


class TrialError(GatepatchError):
    """A trial could not be made: the benchmark fails without the set; nothing was changed."""

    code = "trial"


class SignalError(GatepatchError):
    """A signal arrived before the commit point; nothing was changed.

    Args:
        signum: The signal's number; the exit code is 128 more.
    """

    code = "interrupted"

    def __init__(self, signum: int):
        super().__init__(f"interrupted by signal {signum}; nothing was changed")
        self.signum = signum


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A hint that names the nearest known word, or else all of them."""
    import difflib

    known = list(known)
    if near := difflib.get_close_matches(word, known, n=1, cutoff=0.6):
        return f"did you mean {near[0]!r}?"
    return f"known: {', '.join(sorted(known))}" if known else None
