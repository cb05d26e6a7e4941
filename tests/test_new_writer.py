"""Sets as YAML: what is written reads the same, and looks like the sets that ship."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

import gatepatch
from gatepatch.arch import Arch
from gatepatch.authoring import writer
from gatepatch.authoring.emitter import to_yaml
from gatepatch.authoring.writer import ChosenGate, gates_target, read_back, write_set
from gatepatch.errors import GatepatchError, SpecError, UsageError
from gatepatch.spec import FileSpec, Goal, PatchSet, Requirements, TargetSpec, Text

GOAL = Goal(action="open", archs=frozenset({Arch(12, 0), Arch(12, 1)}), like=Arch(10, 0))
GATES = [
    ChosenGate(path="toy/a.py", kind="condition", what="major == 10", within="Run.go"),
    ChosenGate(path="toy/a.py", kind="keyword", what="supported_major_versions", within="gen"),
    ChosenGate(path="toy/a.cuh", kind="condition", what="__CUDA_ARCH__ < 1200"),
    ChosenGate(path="toy/a.cuh", kind="condition", what="__CUDA_ARCH__ < 1200", count=2),
]
WRITTEN = """\
# Chosen.
schema: 1
name: mine
summary: "TODO: say in one line what the set does"
why: "TODO: say why these gates may be changed, and where that is known from"
admit: [sm_120, sm_121]
like: sm_100

targets:
  - distribution: toy
    versions: ">=1,<2"
    files:
      - path: toy/a.cuh
        edits:
          - open: {condition: __CUDA_ARCH__ < 1200, count: 3}
      - path: toy/a.py
        edits:
          - open: {within: Run.go, condition: major == 10}
          - open: {within: gen, keyword: supported_major_versions}
"""


def test_chosen_gates_become_a_set_whose_reasons_are_to_be_given(tmp_path: Path) -> None:
    target = gates_target("toy", ">=1,<2", GATES, "open")
    path = write_set("mine", GOAL, [target], tmp_path / "sets", ["Chosen."])
    assert path == tmp_path / "sets/mine/set.yaml"
    assert path.read_text() == WRITTEN
    problems = gatepatch.lint("mine", patches=[tmp_path / "sets"])
    assert [p.where for p in problems] == [f"{path}:4 (summary)", f"{path}:5 (why)"]
    with pytest.raises(UsageError, match="is there already, and is not overwritten"):
        write_set("mine", GOAL, [target], tmp_path / "sets")


@pytest.mark.parametrize("value", gatepatch.list_sets(), ids=lambda value: value.name)
def test_the_sets_that_ship_are_written_as_they_were_meant(value: PatchSet) -> None:
    found, data = read_back(value)
    assert found.summary == value.summary
    lines = data.decode().splitlines()
    assert [line for line in lines if len(line) > 110] == []
    # Comments are lost, and a few lines are broken elsewhere; the shape is the shipped one.
    shipped = Path(value.source).read_text().splitlines()
    shape = [line for line in lines if line.startswith(("  - distribution", "      - path"))]
    assert shape == [line for line in shipped if line.startswith(("  - dist", "      - path"))]


def set_with(find: str, new: str) -> PatchSet:
    edit = Text(where="", find=find, replace=new, unproved="A test.")
    target = TargetSpec(
        distribution="toy",
        versions=SpecifierSet("==1"),
        files=(FileSpec(where="", path="toy/a.txt", edits=(edit,)),),
        jit={},
    )
    return replace(writer.new_set("mine", GOAL, [target]), why="It is a test.")


ODD = st.text(
    st.one_of(
        st.sampled_from(list(" \t\n\r#:-'\"{}[],&*!|>%@`\\ü\x85\u2028\u2029\ufeff\x07\x00~")),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=12,
)


@settings(deadline=None)
@given(ODD.filter(str.strip), ODD)
def test_any_text_is_read_as_it_was_written(find: str, new: str) -> None:
    found, _ = read_back(set_with(find, new))
    (edit,) = found.targets[0].files[0].edits
    assert isinstance(edit, Text)
    assert (edit.find, edit.replace) == (find, new)


@pytest.mark.parametrize(
    "text", ["yes", "0x10", "1.10", "null", "~", "a: b", "- a", "# a", "2026-01-01"]
)
def test_texts_that_yaml_would_take_for_something_else(text: str) -> None:
    found, _ = read_back(replace(set_with("a", "b"), why=text))
    assert found.why == text


def test_what_devices_must_be_able_to_do_is_written_too() -> None:
    requires = Requirements(pdl="ordered", cluster=8, shared_memory=101376, multicast=True)
    value = replace(set_with("a", "b"), requires=requires)
    assert read_back(value)[0].requires == requires
    line = "requires: {pdl: ordered, cluster: 8, shared-memory: 101376, multicast: true}\n"
    assert line in to_yaml(value)


def test_several_lines_stand_as_they_are() -> None:
    assert "              find: |\n                one\n                  two\n" in to_yaml(
        set_with("one\n  two\n", "x")
    )


def test_a_set_that_cannot_be_read_is_not_written(tmp_path: Path) -> None:
    target = gates_target("toy", ">=1", [], "open")
    with pytest.raises(SpecError, match="the list is empty"):
        write_set("mine", GOAL, [target], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    target = gates_target("toy", ">=1", GATES, "open")
    with pytest.raises(GatepatchError, match="cannot be written: File exists"):
        write_set("mine", GOAL, [target], tmp_path / "file")
