"""What ``doctor`` says of CuPy, the driver and the devices."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import gatepatch
from doctors import APPLY, OFF, SET, doctor, of
from gatepatch.arch import Arch
from gatepatch.probing.device_probe import Device, Probe, ProbeFailure
from lookalikes import make_server
from trees import make_distribution


@pytest.fixture
def server(tmp_path: Path) -> Path:
    return make_server(tmp_path)


@pytest.fixture
def applied(server: Path) -> Path:
    gatepatch.apply(SET, prefix=server, assume="sm_120")
    return server


def answer(monkeypatch: pytest.MonkeyPatch, given: object) -> None:
    monkeypatch.setattr("gatepatch.doctoring.subject.probe", lambda: given)


def device(sm: str, index: int = 0) -> Device:
    arch = Arch.parse(sm)
    return Device(index=index, name="NVIDIA Toy", arch=arch, uuid="", pci="", peers=())


def seen(sm: str = "sm_120", driver: str = "13.0", runtime: str = "12.9") -> Probe:
    devices = (device(sm), device(sm, 1))
    return Probe(devices=devices, driver=driver, runtime=runtime, cupy="14.2.0")


def failed(reason: Any, detail: str, **more: Any) -> ProbeFailure:
    return ProbeFailure(reason=reason, detail=detail, **more)


def wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *names: str) -> None:
    """Have CuPy's packages in the environment that gatepatch runs in."""
    for name in names:
        make_distribution(tmp_path / "site", name, "14.2.0", {})
    monkeypatch.syspath_prepend(tmp_path / "site")


def test_devices_and_the_sets_that_name_them(
    server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(monkeypatch, tmp_path, "cupy-cuda12x")
    answer(monkeypatch, seen())
    found = doctor(server, assume=())
    words = "cupy-cuda12x 14.2.0, CUDA 12.9; the driver knows CUDA up to 13.0"
    assert of(found, "cupy") == [("ok", words, None)]
    words = f"2 x NVIDIA Toy (SM 12.0); named by {SET}, {OFF}"
    assert of(found, "devices") == [("ok", words, None)]


def test_devices_that_no_set_names_and_an_applied_set(
    applied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, seen("sm_90"))
    first, second = of(doctor(applied, assume=()), "devices")
    words = "2 x NVIDIA Toy (SM 9.0); no set names it"
    assert first == ("note", words, "gatepatch scan --sm sm_90")
    assert second[:2] == (
        "note",
        f"{SET} is applied and is for SM 12.0, SM 12.1: it changes nothing for these devices",
    )


@pytest.mark.parametrize(("sm", "outcome"), [("sm_121", "ok"), ("sm_90", "note")])
def test_what_is_assumed_is_not_asked(
    server: Path, sm: str, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("gatepatch.doctoring.subject.probe")
    found = doctor(server, assume=sm)
    ((told, words, _),) = of(found, "devices")
    assert (told, words.partition(";")[0]) == (
        outcome,
        f"not asked: SM {sm[3:-1]}.{sm[-1]} assumed",
    )
    assert of(found, "cupy") == [("ok", "not installed; --assume does without", None)]


def test_no_cupy_is_a_note_with_the_command(server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, failed("no-cupy", "No module named 'cupy'"))
    found = doctor(server, assume=())
    ((outcome, words, command),) = of(found, "cupy")
    assert (outcome, words) == ("note", "CuPy is not installed")
    assert str(command).startswith('pip install "gatepatch[cuda12]"')
    ((outcome, _, command),) = of(found, "devices")
    assert (outcome, command) == (
        "note",
        f"to apply a set without asking them: {APPLY} --assume sm_120",
    )
    assert found.healthy


def test_a_cupy_that_cannot_be_imported(
    server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(monkeypatch, tmp_path, "cupy-cuda12x")
    answer(monkeypatch, failed("no-cupy", "libnvrtc.so.12 is missing", installed=("cupy-cuda12x",)))
    assert of(doctor(server, assume=()), "cupy") == [
        (
            "problem",
            "CuPy cannot be imported: libnvrtc.so.12 is missing",
            "pip install --force-reinstall cupy-cuda12x",
        )
    ]


@pytest.mark.parametrize("assume", [(), "sm_120"])
def test_two_cupy_packages_break_each_other(
    server: Path, assume: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(monkeypatch, tmp_path, "cupy-cuda12x", "cupy-cuda13x")
    answer(monkeypatch, seen())
    ((outcome, words, command),) = of(doctor(server, assume=assume), "cupy")
    assert (outcome, words) == (
        "problem",
        f"cupy-cuda12x and cupy-cuda13x are installed in {sys.prefix}, and break each other",
    )
    assert str(command).startswith(f"{sys.executable} -m pip uninstall cupy-cuda12x cupy-cuda13x")
    assert ("cuda13]" in str(command)) == (not assume)  # as the driver wants it


def test_what_an_uninstall_has_left_is_no_second_package(
    server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(monkeypatch, tmp_path, "cupy-cuda12x", "cupy-cuda13x")
    (tmp_path / "site/cupy_cuda13x-14.2.0.dist-info/METADATA").unlink()
    words = "cupy-cuda12x 14.2.0; --assume does without"
    assert of(doctor(server), "cupy") == [("ok", words, None)]


def test_a_cupy_for_a_later_cuda_than_the_driver(
    server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(monkeypatch, tmp_path, "cupy-cuda13x")
    why = "it knows CUDA up to 12.4, and CuPy needs 13.0"
    install = f'{sys.executable} -m pip install "gatepatch[cuda12]"'
    for given in (
        seen(driver="12.4", runtime="13.0"),
        failed("no-driver", why, driver="12.4"),
    ):
        answer(monkeypatch, given)
        assert of(doctor(server, assume=()), "cupy") == [
            (
                "problem",
                f"cupy-cuda13x is for a later CUDA than the driver: {why}",
                f"{sys.executable} -m pip uninstall cupy-cuda13x, then: {install}",
            )
        ]


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [("no-driver", "note"), ("no-device", "note"), ("timeout", "problem"), ("failed", "problem")],
)
def test_why_there_is_no_device(
    server: Path, reason: str, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = failed(reason, "odd")
    answer(monkeypatch, given)
    ((told, words, command),) = of(doctor(server, assume=()), "devices")
    assert (told, words) == (outcome, given.message)
    assert str(command).endswith("--assume sm_120")
