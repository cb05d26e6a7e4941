"""Which devices a set is refused on, with the exact words; what is only warned of."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from gatepatch import devices
from gatepatch.arch import Arch
from gatepatch.errors import ProbeError
from gatepatch.probing.device_probe import Device, Probe, ProbeFailure

SM120, SM121, SM90 = Arch(12, 0), Arch(12, 1), Arch(9, 0)
ARCHS = frozenset({SM121, SM120})
NAMES = {SM90: "NVIDIA H200", SM120: "NVIDIA RTX PRO 6000", SM121: "NVIDIA GB10"}

Machine = Callable[..., Probe]


def answer(*archs: Arch) -> Probe:
    """What the probe says of a machine with these devices."""
    return Probe(
        devices=tuple(
            Device(index=i, name=NAMES[a], arch=a, uuid=f"GPU-{i}", pci=f"0000:0{i}:00.0", peers=())
            for i, a in enumerate(archs)
        ),
        driver="13.0",
        runtime="12.9",
        cupy="14.2.0",
    )


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Call it to have a machine with these devices; none may be asked before."""

    def become(*archs: Arch) -> Probe:
        found = answer(*archs)
        monkeypatch.setattr(devices, "probe", lambda: found)
        monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
        return found

    def asked() -> Probe:
        raise AssertionError("the devices were asked")

    monkeypatch.setattr(devices, "probe", asked)
    return become


def fail(monkeypatch: pytest.MonkeyPatch, failure: ProbeFailure) -> None:
    """Have a machine whose devices cannot be asked."""
    monkeypatch.setattr(devices, "probe", lambda: failure)


def refusal(*assume: Arch, all_devices: bool = False) -> str:
    """The refusal's words."""
    with pytest.raises(ProbeError) as error:
        devices.check("sm120-x", ARCHS, assume, all_devices=all_devices)
    assert (error.value.exit_code, error.value.code) == (1, "probe")
    return str(error.value)


# -- what is let pass --


def test_a_device_that_is_named(machine: Machine) -> None:
    found = machine(SM121)
    assert devices.check("sm120-x", ARCHS, ()) == devices.Checked(devices=found.devices)


def test_one_of_several_is_enough_and_the_others_are_named(machine: Machine) -> None:
    found = machine(SM90, SM120)
    assert devices.check("sm120-x", ARCHS, ()) == devices.Checked(
        devices=found.devices,
        warnings=("device 0, NVIDIA H200, is SM 9.0: nothing changes for it",),
    )


def test_all_devices_of_architectures_that_are_named(machine: Machine) -> None:
    machine(SM121, SM120)
    assert not devices.check("sm120-x", ARCHS, (), all_devices=True).warnings


@pytest.mark.parametrize("assume", [(SM120,), (SM90, SM121)], ids=["one", "one of two"])
def test_an_assumption_stands_in_for_the_probe(machine: Machine, assume: tuple[Arch, ...]) -> None:
    assert devices.check("sm120-x", ARCHS, assume) == devices.Checked()


# -- what is refused --


def test_no_device_that_is_named(machine: Machine) -> None:
    machine(*[SM90] * 8)
    assert refusal() == (
        "sm120-x is for SM 12.0, SM 12.1, and this machine has 8 x NVIDIA H200 (SM 9.0)\n"
        "  nothing was changed: there the set would do nothing"
    )
    assert refusal(all_devices=True) == refusal()


def test_not_all_devices_where_all_are_demanded(machine: Machine) -> None:
    machine(SM120, SM90, SM120)
    assert refusal(all_devices=True) == (
        "--all-devices: sm120-x is for SM 12.0, SM 12.1, and this machine has "
        "2 x NVIDIA RTX PRO 6000 (SM 12.0), NVIDIA H200 (SM 9.0)\n"
        "  nothing was changed; without --all-devices one that it is for is enough"
    )


def test_a_wrong_assumption(machine: Machine) -> None:
    assert refusal(SM90) == (
        "sm120-x is for SM 12.0, SM 12.1, and --assume says SM 9.0\n"
        "  nothing was changed: there the set would do nothing"
    )


def test_an_assumption_that_is_wrong_in_part(machine: Machine) -> None:
    assert refusal(SM120, SM90, all_devices=True) == (
        "--all-devices: sm120-x is for SM 12.0, SM 12.1, and --assume says SM 9.0, SM 12.0\n"
        "  nothing was changed; without --all-devices one that it is for is enough"
    )


FAILURES = {
    "no CuPy": (
        ProbeFailure(reason="no-cupy", detail="No module named 'cupy'"),
        (
            'CuPy is not installed; pip install "gatepatch[cuda12]" (or cuda13), as nvidia-smi\'s '
            "CUDA version says"
        ),
    ),
    "CuPy is broken": (
        ProbeFailure(reason="no-cupy", detail="libcudart.so.12: gone", installed=("cupy-cuda12x",)),
        "CuPy cannot be imported: libcudart.so.12: gone; pip install --force-reinstall cupy-cuda12x",
    ),
    "CuPy twice": (
        ProbeFailure(
            reason="no-cupy", detail="it broke", installed=("cupy-cuda12x", "cupy-cuda13x")
        ),
        (
            "CuPy cannot be imported: it broke; 2 CuPy packages are installed: "
            "pip uninstall cupy-cuda12x cupy-cuda13x, then install one"
        ),
    ),
    "no driver": (
        ProbeFailure(reason="no-driver", detail="none is installed"),
        "there is no NVIDIA driver to use: none is installed",
    ),
    "no device": (
        ProbeFailure(reason="no-device", detail="CUDA_VISIBLE_DEVICES is ''"),
        "no CUDA device is visible: CUDA_VISIBLE_DEVICES is ''",
    ),
    "timeout": (
        ProbeFailure(reason="timeout", detail="nothing within 30 s"),
        "the devices did not answer: nothing within 30 s; see whether nvidia-smi does",
    ),
    "failed": (
        ProbeFailure(reason="failed", detail="cudaErrorSystemNotReady: system not yet initialized"),
        "the devices could not be asked: cudaErrorSystemNotReady: system not yet initialized",
    ),
}


@pytest.mark.parametrize(("failure", "words"), FAILURES.values(), ids=FAILURES)
def test_devices_that_cannot_be_asked(
    monkeypatch: pytest.MonkeyPatch, failure: ProbeFailure, words: str
) -> None:
    fail(monkeypatch, failure)
    assert refusal() == (
        f"{words}\n  to apply it without asking a device: gatepatch apply sm120-x --assume sm_120"
    )


# -- what is warned of where a set is applied already --


def test_an_applied_set_on_devices_that_it_is_for(machine: Machine) -> None:
    machine(SM90, SM120)
    assert devices.warn(ARCHS, ()) == ()
    assert devices.warn(ARCHS, (SM121,)) == ()


def test_an_applied_set_on_other_devices(machine: Machine) -> None:
    machine(SM90)
    assert devices.warn(ARCHS, ()) == (
        "the set is for SM 12.0, SM 12.1, and this machine has NVIDIA H200 (SM 9.0)",
    )
    assert devices.warn(ARCHS, (SM90,)) == (
        "the set is for SM 12.0, SM 12.1, and --assume says SM 9.0",
    )


def test_an_applied_set_where_nothing_can_be_asked(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert devices.warn(ARCHS, ()) == ()  # no child is started where there is no CuPy
    monkeypatch.undo()
    fail(monkeypatch, ProbeFailure(reason="timeout", detail="nothing within 30 s"))
    assert devices.warn(ARCHS, ()) == ()


# -- modules that this process has imported --


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("toy/jit/comm.py", "toy.jit.comm"),
        ("toy/jit/__init__.py", "toy.jit"),
        ("toy/jit/comm.cuh", None),
        ("toy/other.py", None),
        ("toy/jit", None),
    ],
)
def test_modules_that_are_imported_already(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str, module: str | None
) -> None:
    for name, file in (("toy.jit", "toy/jit/__init__.py"), ("toy.jit.comm", "toy/jit/comm.py")):
        value = ModuleType(name)
        value.__file__ = str(tmp_path / file)
        monkeypatch.setitem(sys.modules, name, value)
    warning = f"this process has imported {module} already: restart it to run the new source"
    assert devices.warn_imported({path: tmp_path / path}) == ((warning,) if module else ())
    # The same module of another environment is not what was imported.
    assert devices.warn_imported({path: tmp_path / "second" / path}) == ()


def test_a_module_without_a_file_is_not_one_that_was_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "toy", ModuleType("toy"))
    assert devices.warn_imported({"toy.py": tmp_path / "toy.py"}) == ()
