"""`gatepatch new`: sets made of edits by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

import gatepatch
from gatepatch.loader import load
from gatepatch.spec import GateEdit, Import, Insert, PatchSet
from lookalikes import (
    COMM,
    COMMUNICATOR,
    FLASHINFER,
    HEADER,
    SERVER_ARGS,
    SGLANG,
    make_server,
)
from releases import make_wheel
from trees import site_of


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """Both stand-ins, installed."""
    return make_server(tmp_path)


@pytest.fixture
def wheels(tmp_path: Path) -> list[Path]:
    """Their wheels."""
    return [
        make_wheel(tmp_path, "flashinfer-python", "0.6.3", FLASHINFER),
        make_wheel(tmp_path, "sglang", "0.5.9", SGLANG),
    ]


def edit(prefix: Path, path: str, old: str, new: str) -> None:
    """Edit an installed file by hand, as sed does."""
    file = site_of(prefix) / path
    text = file.read_bytes().decode()
    assert old in text
    file.write_bytes(text.replace(old, new).encode())


def edit_as_the_set_does(prefix: Path) -> None:
    edit(prefix, COMM, "[9, 10]", "[9, 10, 12]")
    edit(prefix, HEADER, "__CUDA_ARCH__ < 1200", "__CUDA_ARCH__ < 1300")
    edit(
        prefix,
        COMMUNICATOR,
        "is_sm90_supported, is_sm100_supported",
        "is_sm90_supported, is_sm100_supported, is_sm120_supported",
    )
    edit(
        prefix,
        COMMUNICATOR,
        "_is_sm100_supported = _is_cuda and is_sm100_supported()\n",
        "_is_sm100_supported = _is_cuda and is_sm100_supported()\n"
        "_is_sm120_supported = _is_cuda and is_sm120_supported()\n",
    )
    edit(
        prefix,
        COMMUNICATOR,
        "_is_sm90_supported or _is_sm100_supported",
        "_is_sm90_supported or _is_sm100_supported or _is_sm120_supported",
    )
    edit(
        prefix,
        SERVER_ARGS,
        "is_sm90_supported() or is_sm100_supported()",
        "is_sm90_supported() or is_sm100_supported() or is_sm120_supported()",
    )


def edits_of(patch_set: PatchSet, path: str) -> list[object]:
    return [
        edit
        for target in patch_set.targets
        for file in target.files
        if file.path == path
        for edit in file.edits
    ]


def test_the_story_edited_by_hand_becomes_a_set_of_gates(
    server: Path, wheels: list[Path], tmp_path: Path
) -> None:
    edit_as_the_set_does(server)
    made = gatepatch.new(
        "mine",
        edits=["sglang", "flashinfer-python"],
        prefix=server,
        wheels=wheels,
        output=tmp_path / "sets",
    )
    print((tmp_path / "sets/mine/set.yaml").read_text())
    patch_set = load(Path(made.source))
    assert [arch.name for arch in made.archs] == ["sm_120", "sm_121"]
    assert made.like is not None
    assert made.like.name == "sm_100"
    assert made.missing == ("summary", "why")
    kinds = {
        path: [type(edit) for edit in edits_of(patch_set, path)]
        for path in (COMM, HEADER, COMMUNICATOR, SERVER_ARGS)
    }
    assert kinds == {
        COMM: [GateEdit],
        HEADER: [GateEdit],
        COMMUNICATOR: [Import, Insert, GateEdit],
        SERVER_ARGS: [GateEdit],
    }
