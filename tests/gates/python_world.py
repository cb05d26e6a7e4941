"""A torch that answers for any architecture, and code that really runs on it."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gatepatch.arch import Arch
from gatepatch.boolean import Atom, Bool, evaluate


class FakeTorch(types.ModuleType):
    """What code sees of torch on one architecture."""

    def __init__(self, arch: Arch, *, cuda: str = "12.8", available: bool = True):
        super().__init__("torch")
        properties = types.SimpleNamespace(major=arch.major, minor=arch.minor)
        self.cuda = types.SimpleNamespace(
            is_available=lambda: available,
            get_device_capability=lambda device=None: (arch.major, arch.minor),
            get_device_properties=lambda device=None: properties,
        )
        self.version = types.SimpleNamespace(cuda=cuda)


@contextmanager
def installed(modules: Mapping[str, types.ModuleType]) -> Iterator[None]:
    """Let code import these modules."""
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def executed(source: str, arch: Arch, flags: Mapping[str, object]) -> dict[str, Any]:
    """The names of a module after it has really run on an architecture.

    Args:
        flags: What it can import from ``env``.
    """
    env = types.ModuleType("env")
    vars(env).update(flags)
    names: dict[str, Any] = {"__name__": "executed"}
    with installed({"torch": FakeTorch(arch), "env": env}):
        exec(compile(source, "executed", "exec"), names)
    return names


def value_of(function: Bool, names: Mapping[str, Any]) -> bool:
    """A function's value, its atoms evaluated as the code that they are."""

    def atom_value(atom: Atom) -> bool:
        return bool(eval(atom.text, dict(names)))

    return evaluate(function, atom_value)
