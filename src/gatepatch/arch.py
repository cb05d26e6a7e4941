"""Architectures: the one module that knows how a compute capability is spelt.

``12.0`` = ``sm_120`` = ``__CUDA_ARCH__ 1200``; the major is the family.
Source: CUDA C++ Programming Guide, "Compute Capability" and "Family-Specific Features".
"""

from __future__ import annotations

import re
from enum import Enum

from gatepatch.records import dataclass

_SPELLINGS = (
    r"(?P<major>\d{1,2})\.(?P<minor>\d)",
    r"(?i:sm|compute)_?(?P<major>\d{1,2})(?P<minor>\d)(?i:[af])?",
    r"(?P<major>\d{1,2})(?P<minor>\d)[af]?",
)


@dataclass(frozen=True, slots=True, order=True)
class Arch:
    """A compute capability.

    Args:
        major: The family, such as 12.
        minor: The member of the family, such as 0.
    """

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> Arch:
        """Read any usual spelling: ``12.0``, ``sm_120``, ``compute_120a``, ``120``, ``1200``.

        Raises:
            ValueError: The text is not an architecture.
        """
        text = text.strip()
        if re.fullmatch(r"\d{3,4}", text) and text.endswith("0") and int(text) >= 300:
            return cls(*divmod(int(text) // 10, 10))
        for spelling in _SPELLINGS:
            if match := re.fullmatch(spelling, text):
                return cls(int(match["major"]), int(match["minor"]))
        raise ValueError(f"{text!r} is not an architecture; write 12.0 or sm_120")

    @property
    def sm(self) -> int:
        """The number in ``sm_120``: 120."""
        return self.major * 10 + self.minor

    @property
    def cuda_arch(self) -> int:
        """The value of ``__CUDA_ARCH__``: 1200."""
        return self.sm * 10

    @property
    def name(self) -> str:
        """The compiler's name: ``sm_120``."""
        return f"sm_{self.sm}"

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


TABLE: tuple[Arch, ...] = tuple(
    Arch(major, minor)
    for major, minor in (
        (7, 0), (7, 2), (7, 5), (8, 0), (8, 6), (8, 7), (8, 8), (8, 9),
        (9, 0), (10, 0), (10, 3), (11, 0), (12, 0), (12, 1),
        (13, 0),  # does not exist yet: catches an edit that admits whatever comes next
    )
)  # fmt: skip
"""The architectures over which verdicts are compared."""


class Suffix(Enum):
    """What a CUDA target may use beside the features that every later architecture has."""

    PLAIN = ""
    ARCHITECTURE = "a"
    FAMILY = "f"


@dataclass(frozen=True, slots=True)
class CudaPass:
    """One compilation pass of a CUDA source: the host's, or a device target's.

    Args:
        arch: The device architecture; None in the host pass, where ``__CUDA_ARCH__`` is undefined.
        suffix: Plain, architecture-specific (``a``, from 9.0) or family-specific (``f``, from 10.0).
    """

    arch: Arch | None
    suffix: Suffix = Suffix.PLAIN

    def __str__(self) -> str:
        return "host" if self.arch is None else f"{self.arch.name}{self.suffix.value}"


def _suffixes(arch: Arch) -> tuple[Suffix, ...]:
    if arch >= Arch(10, 0):
        return (Suffix.PLAIN, Suffix.ARCHITECTURE, Suffix.FAMILY)
    if arch >= Arch(9, 0):
        return (Suffix.PLAIN, Suffix.ARCHITECTURE)
    return (Suffix.PLAIN,)


CUDA_PASSES: tuple[CudaPass, ...] = (
    CudaPass(None),
    *(CudaPass(arch, suffix) for arch in TABLE for suffix in _suffixes(arch)),
)
"""The passes over which the verdicts of CUDA conditions are compared."""
