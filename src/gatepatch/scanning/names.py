"""Read what is bound outside of what is read by its name, as a person would.

``major`` is the device's major, ``sm_version`` its number: so that ``if sm_version < 90`` in a
function that is handed the number has a verdict. Whatever is read so is marked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from gatepatch.arch import TABLE, Arch

_NUMBER = re.compile(
    r"(?i)_*(?:(?:cuda|gpu|device|target|current|compute|nvcc|cur|the|kernel|dev|cu|mmha|k)_?)*"
    r"(?:sm|sm_?(?:version|arch|num(?:ber)?|id|ver|cc|capability|target)|cc|arch|arch_?(?:num|number|version|int|enum)"
    r"|compute_?cap(?:ability)?|capability(?:_?(?:int|num|value|version))?|device_?sm|multi_?gpu_?arch|architecture)_*"
)
_MAJOR = re.compile(
    r"(?i)_*(?:(?:cuda|gpu|device|target|sm|cc|arch|compute|capability|cap|compute_?cap(?:ability)?|cu|dev|k)_?)*major_*"
)
_MINOR = re.compile(_MAJOR.pattern.replace("major", "minor"))
_MINOR_TEXT = re.compile(r"\da?")
"""A minor as compile targets have it, but for a family's ``0f``: that is asked for beside it."""
_PREDICATE = re.compile(
    r"(?i)_*(?:is|has|use|on|are|get_is)?_*(?:cuda_|nvidia_|device_|platform_)*sm_?(\d{2,3})[af]?"
    r"(?:_(?:device|supported|gpu|arch|target|capable|platform|available))*_*"
)
_ANY_OF = re.compile(
    r"(?i)_*(?:(?:is|has|use|on|are|dsl|targets?)_+)*(?:cuda_|device_)*sm_?(\d{1,2})x"
    r"(?:_(?:device|supported|capable|available))*_*"
)
_IN_KEY = re.compile(r"(?i)(?:^|_)sm_?(\d{2,3})([af]?)(?=_|$)")
_FAMILIES = {
    "hopper": (9,),
    "blackwell": (10, 11, 12),
    "ampere": (8,),
    "turing": (7,),
    "volta": (7,),
}
_NAMED = (*TABLE, Arch(10, 1), Arch(10, 7))
"""What predicates are named after: the table, and architectures beside it."""
_FAMILY = re.compile(
    r"(?i)_*(?:is|on)_*(?:cuda_|device_)*(hopper|blackwell|ampere|rubin)(?:_(?:device|supported|gpu|arch|with_cuda_\d+_\d+))*_*"
)
_LONG = 500


@lru_cache(maxsize=1 << 14)
def last_name(text: str) -> str:
    """The last name of a dotted one, calls without arguments included; empty for anything else."""
    text = text.removesuffix("()")
    if len(text) > _LONG:  # a whole table, of which something is taken
        text = f"({text[-_LONG:]}"
    match = re.search(r"(?:^|[.>:])\s*(\w+)(?:\([^()]*\))?$", text)
    return match[1] if match else ""


@lru_cache(maxsize=1 << 14)
def is_number(name: str) -> bool:
    """Whether a name is a capability's: a number such as 90, a pair, or a text."""
    name = re.sub(r"(?i)^_*(?:get|parse)_*", "", name)
    return _NUMBER.fullmatch(name) is not None


def is_target(name: str) -> bool:
    """Whether a name is that of what is built for, an architecture if it is compared with one's text."""
    return name.endswith(("target", "TARGET")) and name.isidentifier()


@lru_cache(maxsize=1 << 14)
def is_major(name: str) -> bool:
    """Whether a name is the major's."""
    return _MAJOR.fullmatch(name) is not None


@lru_cache(maxsize=1 << 14)
def is_minor(name: str) -> bool:
    """Whether a name is the minor's."""
    return _MINOR.fullmatch(name) is not None


@lru_cache(maxsize=1 << 14)
def predicate(name: str) -> frozenset[Arch] | None:
    """The architectures for which a predicate of this name holds: a whole family, or one member."""
    if "_or_" in name:
        parts = [predicate(f"is_{part.removeprefix('is_')}") for part in name.split("_or_")]
        known = [part for part in parts if part is not None]
        return frozenset[Arch]().union(*known) if len(known) == len(parts) else None
    if found := _PREDICATE.fullmatch(name):
        number = int(found[1])
        major, minor = divmod(number, 10)
        if not minor:
            return frozenset(arch for arch in TABLE if arch.major == major)
        return frozenset(arch for arch in _NAMED if arch == Arch(major, minor))
    if found := _ANY_OF.fullmatch(name):
        return frozenset(arch for arch in TABLE if arch.major == int(found[1]))
    if found := _FAMILY.fullmatch(name):
        family = found[1].lower()
        if family == "rubin":
            return frozenset({Arch(10, 7)})
        return frozenset(a for a in TABLE if a.major in _FAMILIES[family])
    return None


@lru_cache(maxsize=1 << 14)
def in_key(key: str) -> frozenset[Arch] | None:
    """The architectures that a key such as ``sm90`` or ``fused_sm100a_exact`` names: a family for
    a plain one that ends in 0 or one with ``f``, and one member with ``a``."""
    named = _IN_KEY.findall(key)
    if len(named) != 1:
        return None
    ((number, suffix),) = named
    major, minor = divmod(int(number), 10)
    family = suffix.lower() == "f" or (not minor and not suffix)
    return frozenset(
        arch
        for arch in TABLE
        if arch.major == major and (arch.minor == minor or (family and arch.minor > minor))
    )


def value(name: str, arch: Arch, beside: Sequence[Any]) -> Any:
    """The value of a name on an architecture, in the unit of what stands beside it.

    Args:
        name: The name, without what it is a member of.
        arch: The architecture.
        beside: The constants that it is compared with.

    Returns:
        A number, a pair or a text; None if the name is none of the architecture.
    """
    if is_major(name):
        return arch.major if all(isinstance(b, int) for b in beside) else None
    if is_minor(name):
        if all(isinstance(b, int) for b in beside):
            return arch.minor
        spellings = [b for b in beside if isinstance(b, str) and _MINOR_TEXT.fullmatch(b)]
        if len(spellings) < len(beside):
            return None
        return next((b for b in spellings if arch.minor == int(b[0])), _ANOTHER)
    texts = bool(beside) and all(isinstance(b, str) for b in beside)
    if not is_number(name) and not (texts and is_target(name)):
        return None
    if beside and all(isinstance(b, tuple) and len(b) == 2 for b in beside):
        return (arch.major, arch.minor)
    if beside and all(isinstance(b, int) and not isinstance(b, bool) for b in beside):
        return number(arch, beside)
    return spelt(arch, beside) if texts else None


_ANOTHER = "another architecture"


def spelt(arch: Arch, beside: Sequence[str]) -> str | None:
    """An architecture's name as one of others has it, if it is one of them; None if they are none."""
    known: dict[str, Arch] = {}
    for text in beside:
        try:
            known[text] = Arch.parse(text)
        except ValueError:
            continue
    same = [text for text, other in known.items() if other == arch]
    return (same or [_ANOTHER])[0] if known else None


def number(arch: Arch, beside: Sequence[int]) -> int:
    """An architecture's number in the unit of others: 12, 120 or 1200."""
    largest = max(map(abs, beside), default=0)
    if largest < 20:
        return arch.major
    return arch.cuda_arch if largest >= 300 else arch.sm
