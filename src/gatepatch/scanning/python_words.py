"""What texts and keys in Python code say of an architecture."""

from __future__ import annotations

import re

from gatepatch.arch import Arch

_NAMED = re.compile(
    r"(?i)(?:^|[^a-z])(?:sm|compute|cuda)_?\d|^\d|blackwell|hopper|ampere|turing|volta|rubin|\bada\b|\bthor\b"
)
_TARGETS = re.compile(r"(?i)_*target_(?:(?:cuda|gpu|device|sm)_)?arch(?:e?s|_list)")
_SPELT = re.compile(r"(?i)(sm_?|compute_?|)\d")

_MODELS = re.compile(r"(?i)\w*models?(?:_(?:map|registry|archs|classes))?")
_PERMISSION = re.compile(r"(?i)_*(?:allow|enable)_\w+")

TEXT_METHODS = frozenset(
    {"startswith", "endswith", "removeprefix", "removesuffix", "replace", "split", "lower", "upper"}
    | {"strip", "lstrip", "rstrip", "isdigit"}
)
"""Methods that only a text has."""


def is_other_word(value: object) -> bool:
    """Whether a constant is a text that names no architecture of CUDA, such as a model's kind.

    So is a collection of such texts.
    """
    if isinstance(value, tuple | list | set | frozenset | dict):
        return bool(value) and all(map(is_other_word, value))
    return isinstance(value, str) and not _NAMED.search(value)


def is_of_models(name: str) -> bool:
    """Whether a name is that of models, of which an ``arch`` is the kind."""
    return _MODELS.fullmatch(name) is not None


def is_permission(name: str) -> bool:
    """Whether a name says what a caller lets be, which no device answers: ``allow_sm90``, ``enable_rubin``."""
    return _PERMISSION.fullmatch(name) is not None


def is_targets(name: str) -> bool:
    """Whether a name is that of the set of architectures that are compiled for."""
    return _TARGETS.fullmatch(name) is not None


def targets(arch: Arch) -> frozenset[tuple[int, str]]:
    """The compile targets where one architecture is compiled for, in all of its spellings."""
    return frozenset((arch.major, f"{arch.minor}{suffix}") for suffix in ("", "a", "f"))


def spelt_like(arch: Arch, samples: list[str]) -> str:
    """An architecture's name, ``sm_90a``, with the beginning that samples have."""
    shapes = [found[1] for sample in samples if (found := _SPELT.match(sample))]
    return f"{shapes[0] if shapes else 'sm_'}{arch.sm}{'a' if arch.major >= 9 else ''}"
