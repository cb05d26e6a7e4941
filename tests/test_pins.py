"""Pins: written from wheels, used by the bytes and the edits that they were made from."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import gatepatch
from gatepatch import release
from gatepatch.errors import GatepatchError, RefusedError
from gatepatch.loader import load
from gatepatch.results import FileResult, Result
from lookalikes import COMMUNICATOR, FLASHINFER, SGLANG, contents
from trees import make_distribution, make_environment, site_of

NAME = "fusion"
EDITS = """\
schema: 1
name: fusion
summary: Admit SM 12.x to a fused path
why: The guard leaves SM 12.x out.
admit: [sm_120, sm_121]
like: sm_100
targets:
  - distribution: flashinfer-python
    versions: ">=0.6,<0.7"
    files:
      - path: flashinfer/jit/comm.py
        edits:
          - open: {within: gen_trtllm_comm_module, keyword: supported_major_versions}
      - path: flashinfer/data/include/flashinfer/comm/trtllm_allreduce.cuh
        edits:
          - open: {condition: "__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200", count: 13}
  - distribution: sglang
    versions: ">=0.5,<0.6"
    files:
      - path: sglang/srt/layers/communicator.py
        edits:
          - import: {from: sglang.srt.utils, name: is_sm120_supported}
          - open:
              within: apply_flashinfer_allreduce_fusion
              condition: _is_sm90_supported or _is_sm100_supported
              with: (_is_cuda and is_sm120_supported())
"""


@pytest.fixture
def patches(tmp_path: Path) -> Path:
    """A folder with the set, and pins of both stand-ins beside it."""
    folder = tmp_path / "patches" / NAME
    folder.mkdir(parents=True)
    (folder / "set.yaml").write_text(EDITS)
    done = gatepatch.pin(NAME, patches=[folder.parent], sources=[wheels(tmp_path / "wheels")])
    assert [(p.distribution, p.outcome) for p in done] == [
        ("flashinfer-python", "written"),
        ("sglang", "written"),
    ]
    return folder.parent


def wheels(folder: Path) -> Path:
    """A folder with a wheel of each stand-in."""
    folder.mkdir()
    for stem, files in (("flashinfer_python-0.6.3", FLASHINFER), ("sglang-0.5.9", SGLANG)):
        with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as archive:
            for path, text in files.items():
                archive.writestr(path, text)
    return folder


def server(tmp_path: Path, name: str = "server", flashinfer: str = "0.6.3") -> Path:
    prefix = make_environment(tmp_path, name)
    make_distribution(site_of(prefix), "flashinfer-python", flashinfer, FLASHINFER)
    make_distribution(site_of(prefix), "sglang", "0.5.9", SGLANG)
    return prefix


def edit(patches: Path, old: str, new: str) -> None:
    path = patches / NAME / "set.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def files_of(result: Result) -> tuple[FileResult, ...]:
    return tuple(file for value in result.sets for file in value.files)


def check(patches: Path, tmp_path: Path) -> set[str]:
    sources = [tmp_path / "wheels"]
    done = gatepatch.pin(NAME, patches=[patches], sources=sources, check=True)
    return {pinned.outcome for pinned in done}


def test_a_pin_is_used_without_a_parser(
    patches: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "gatepatch.gates.engines._engine", lambda path: pytest.fail("it was planned")
    )
    result = gatepatch.apply(NAME, patches=[patches], prefix=server(tmp_path), assume="sm_120")
    assert all(file.pinned for file in files_of(result))
    places = [place.where for file in files_of(result) for place in file.places]
    assert places[0] == "targets[0].files[0].edits[0].open"
    assert places[-1] == "targets[1].files[0].edits[1].open"


def loaded_by(*words: str) -> set[str]:
    """The modules that a command loads into a fresh interpreter."""
    source = str(Path(gatepatch.__file__).parents[1])
    code = (
        f"import sys\nsys.path.insert(0, {source!r})\n"
        "before = set(sys.modules)\nfrom gatepatch.cli import main\n"
        "assert main() == 0\nprint(*(set(sys.modules) - before), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    return set(done.stderr.split())


def test_what_an_apply_loads(patches: Path, tmp_path: Path) -> None:
    """Most of the time that it takes goes there; ``benchmarks/apply.py`` measures it."""
    where = ("--prefix", os.fspath(server(tmp_path)), "--patches", os.fspath(patches))
    apply = ("apply", NAME, *where, "--assume", "sm_120")
    never = {"dataclasses", "gatepatch.boolean", "libcst", "logging", "platform"}
    first = loaded_by(*apply)
    assert "gatepatch.applier" in first
    assert first & never == set()
    again = loaded_by(*apply)
    assert "gatepatch.carried" in again
    planning = {"ast", "filelock", "packaging", "yaml"}
    planning |= {f"gatepatch.{name}" for name in ("gates", "parsed", "planner", "transaction")}
    assert again & {*never, *planning} == set()


@pytest.mark.parametrize("version", ["0.6.3+vendor", "0.6.9"])
def test_a_rebuild_with_the_same_bytes_is_pinned(
    patches: Path, tmp_path: Path, version: str
) -> None:
    prefix = server(tmp_path, flashinfer=version)
    result = gatepatch.apply(
        NAME, patches=[patches], prefix=prefix, assume="sm_120", require_pin=True
    )
    assert all(file.pinned for file in files_of(result))


def test_without_pins_every_byte_is_the_same(patches: Path, tmp_path: Path) -> None:
    pinned = server(tmp_path, "pinned")
    gatepatch.apply(NAME, patches=[patches], prefix=pinned, assume="sm_120")
    shutil.rmtree(patches / NAME / "pins")
    planned = server(tmp_path, "planned")
    result = gatepatch.apply(NAME, patches=[patches], prefix=planned, assume="sm_120")
    assert not any(file.pinned for file in files_of(result))
    first, second = contents(pinned), contents(planned)
    for one in (first, second):
        state = json.loads(one.pop(".gatepatch/state.json"))
        assert state["files"].keys() >= {COMMUNICATOR}
    assert first == second
    # And from here, what was applied with pins is known and goes back without them.
    status = gatepatch.status(NAME, patches=[patches], prefix=pinned)
    assert status.outcome == "applied"
    gatepatch.revert(NAME, patches=[patches], prefix=pinned)
    assert contents(pinned)[COMMUNICATOR] == SGLANG[COMMUNICATOR].encode()


def test_a_narrower_set_is_planned_anew(patches: Path, tmp_path: Path) -> None:
    """The old pins would admit 12.1 too."""
    edit(patches, "admit: [sm_120, sm_121]", "admit: [sm_120]")
    prefix = server(tmp_path)
    before = contents(prefix)
    with pytest.raises(RefusedError, match="name the whole family"):
        gatepatch.apply(NAME, patches=[patches], prefix=prefix, assume="sm_120")
    assert contents(prefix) == before
    assert check(patches, tmp_path) == {"refused"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("count: 13", "count: 13, unproved: it is not needed"),
        ("like: sm_100", "like: sm_90"),
        (
            "(_is_cuda and is_sm120_supported())",
            "(is_sm120_supported() and _is_cuda)",
        ),
        ("like: sm_100", "like: sm_100\npredicates: {odd.flag: [sm_90]}"),
    ],
    ids=["reason", "like", "operand", "predicates"],
)
def test_what_the_edits_say_is_part_of_the_pin(
    patches: Path, tmp_path: Path, old: str, new: str
) -> None:
    edit(patches, old, new)
    result = gatepatch.plan(NAME, patches=[patches], prefix=server(tmp_path))
    assert not all(file.pinned for file in files_of(result))
    with pytest.raises(RefusedError, match="no pin has these bytes"):
        gatepatch.plan(NAME, patches=[patches], prefix=tmp_path / "server", require_pin=True)
    assert "differs" in check(patches, tmp_path)


OTHER_BLOCK = """\
targets:
  - distribution: flashinfer-python
    versions: ">=0.7"
    expect: native
    files:
      - path: flashinfer/jit/comm.py
        edits:
          - open: {within: gen_trtllm_comm_module, keyword: supported_major_versions}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("why: The guard", "why: The guard of the fused path"),
        (
            "targets:\n",
            "advisories:\n  - {severity: info, text: A note., source: a page}\ntargets:\n",
        ),
        ("targets:\n", OTHER_BLOCK),
    ],
    ids=["why", "advisories", "a block above"],
)
def test_other_words_of_the_set_are_not(patches: Path, tmp_path: Path, old: str, new: str) -> None:
    edit(patches, old, new)
    result = gatepatch.plan(NAME, patches=[patches], prefix=server(tmp_path), require_pin=True)
    assert all(file.pinned for file in files_of(result))
    first = files_of(result)[0].places[0]
    assert first.where == f"targets[{int(new == OTHER_BLOCK)}].files[0].edits[0].open"
    assert check(patches, tmp_path) == {"agrees"}


def test_a_pin_holds_verdicts_and_no_source(patches: Path) -> None:
    text = (patches / NAME / "pins" / "sglang-0.5.9.json").read_text()
    assert "batch_size" not in text
    (*_, gate) = json.loads(text)["files"][0]["places"]
    assert gate["verdict_before"]["no"].endswith("11.0 12.0 12.1 13.0")
    assert gate["verdict_after"]["depends"] == "9.0 10.0 10.3 12.0 12.1"


def test_pinning_again_writes_nothing(patches: Path, tmp_path: Path) -> None:
    assert check(patches, tmp_path) == {"agrees"}
    done = gatepatch.pin(NAME, patches=[patches], sources=[tmp_path / "wheels"])
    assert {pinned.outcome for pinned in done} == {"unchanged"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"schema": 1', '"schema": 9', "schema 9 is not 1"),
        ('"recipe"', '"receipt"', "'recipe'"),
        ("12]", "13]", "its edits give"),
    ],
)
def test_a_damaged_pin_is_an_error_that_names_it(
    patches: Path, tmp_path: Path, old: str, new: str, message: str
) -> None:
    pin = patches / NAME / "pins" / "flashinfer-python-0.6.3.json"
    text = pin.read_text()
    if old == "12]":
        old, new = '", 12"', '", 13"'
        assert old in text
    pin.write_text(text.replace(old, new, 1))
    prefix = server(tmp_path)
    before = contents(prefix)
    with pytest.raises(GatepatchError, match=message):
        gatepatch.apply(NAME, patches=[patches], prefix=prefix, assume="sm_120")
    assert contents(prefix) == before


def test_a_recipe_does_not_depend_on_the_order_in_which_sets_iterate(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(EDITS)
    (tmp_path / "two.yaml").write_text(EDITS.replace("[sm_120, sm_121]", "[sm_121, sm_120]"))
    first, second = (load(tmp_path / f"{name}.yaml") for name in ("one", "two"))
    assert [first.recipe(f) for t in first.targets for f in t.files] == [
        second.recipe(f) for t in second.targets for f in t.files
    ]


def test_the_package_index_is_asked_for_pre_releases_on_demand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, ...]] = []

    def pip(*words: str) -> str:
        asked.append(words)
        return "toy (2)\nAvailable versions: 2rc1, 1, 1.10, 1.9\n"

    monkeypatch.setattr(release, "_pip", pip)
    assert [str(version) for version in release.versions("toy", pre=True)] == [
        "1",
        "1.9",
        "1.10",
        "2rc1",
    ]
    release.versions("toy")
    assert asked == [("index", "versions", "--pre", "toy"), ("index", "versions", "toy")]
