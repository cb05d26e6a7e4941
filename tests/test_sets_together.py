"""Several sets of a user's own over one distribution."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gatepatch
from gatepatch.errors import RefusedError
from lookalikes import COMM, HEADER, SERVER_ARGS, contents, make_server
from trees import site_of

KEYWORD = "open: {within: gen_trtllm_comm_module, keyword: supported_major_versions}"
HEADER_GATE = 'open: {condition: "__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200", count: 13}'


def text_edit(find: str, new: str) -> str:
    return f'text: {{find: "{find}", replace: "{new}", unproved: A test.}}'


def write_set(
    folder: Path, name: str, edit: str, *, arch: str = "sm_120, sm_121", path: str = COMM
) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.yaml").write_text(
        f"schema: 1\nname: {name}\nsummary: A test\nwhy: A test.\nadmit: [{arch}]\nlike: sm_100\n"
        f"targets:\n  - distribution: flashinfer-python\n    versions: '==0.6.3'\n"
        f"    files:\n      - path: {path}\n        edits:\n          - {edit}\n"
    )


class Sets:
    """An environment and a folder of sets."""

    def __init__(self, tmp_path: Path) -> None:
        self.prefix = make_server(tmp_path)
        self.folder = tmp_path / "sets"
        self.pristine = contents(self.prefix)

    def apply(self, name: str, arch: str = "sm_120") -> str:
        result = gatepatch.apply(name, prefix=self.prefix, patches=[self.folder], assume=arch)
        return result.outcome

    def revert(self, name: str) -> str:
        return gatepatch.revert(name, prefix=self.prefix, patches=[self.folder]).outcome

    def text(self, path: str = COMM) -> str:
        return (site_of(self.prefix) / path).read_text()


@pytest.fixture
def sets(tmp_path: Path) -> Sets:
    return Sets(tmp_path)


@pytest.mark.parametrize("first", ["one", "two"])
def test_disjoint_edits_of_one_file_stand_side_by_side(sets: Sets, first: str) -> None:
    write_set(sets.folder, "one", KEYWORD)
    write_set(sets.folder, "two", text_edit("return flags", "return  flags"))
    second = "two" if first == "one" else "one"
    assert [sets.apply(first), sets.apply(second)] == ["applied"] * 2
    assert "return  flags(supported_major_versions=[9, 10, 12])" in sets.text()
    sets.revert(first)
    assert ("12" in sets.text()) is (second == "one")
    sets.revert(second)
    assert contents(sets.prefix) == sets.pristine


def test_equal_edits_stay_until_the_last_set_goes(sets: Sets) -> None:
    write_set(sets.folder, "one", KEYWORD)
    write_set(sets.folder, "two", KEYWORD)
    sets.apply("one")
    sets.apply("two")
    sets.revert("one")
    assert "[9, 10, 12]" in sets.text()
    sets.revert("two")
    assert contents(sets.prefix) == sets.pristine


@pytest.mark.parametrize(
    ("path", "edit", "archs", "union"),
    [
        (COMM, KEYWORD, ("sm_120, sm_121", "sm_110"), "12"),
        (HEADER, HEADER_GATE, ("sm_120", "sm_121"), "< 1300)"),
    ],
)
def test_overlapping_opens_become_the_union(
    sets: Sets, path: str, edit: str, archs: tuple[str, str], union: str
) -> None:
    write_set(sets.folder, "one", edit, path=path, arch=archs[0])
    write_set(sets.folder, "two", edit, path=path, arch=archs[1])
    sets.apply("two", archs[1])
    alone = sets.text(path)
    sets.apply("one")
    assert union in sets.text(path)
    assert sets.text(path) != alone
    sets.revert("one")
    assert sets.text(path) == alone
    sets.revert("two")
    assert contents(sets.prefix) == sets.pristine


OPERANDS = {
    "one": ("sm_120, sm_121", "is_sm120_supported()"),
    "two": ("sm_110", "(is_cuda() and torch.cuda.get_device_capability()[0] == 11)"),
}


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_two_operands_in_one_chain_become_the_union(sets: Sets, order: tuple[str, str]) -> None:
    """Both stand in the chain, and the proof is over the architectures of both."""
    sets.folder.mkdir()
    for name, (archs, operand) in OPERANDS.items():
        (sets.folder / f"{name}.yaml").write_text(
            f"""\
schema: 1
name: {name}
summary: A test
why: A test.
admit: [{archs}]
like: sm_100
targets:
  - distribution: sglang
    versions: "==0.5.9"
    files:
      - path: {SERVER_ARGS}
        edits:
          - open:
              condition: is_sm90_supported() or is_sm100_supported()
              with: {operand}
"""
        )
    first, second = order
    sets.apply(first, OPERANDS[first][0].split(",")[0])
    alone = sets.text(SERVER_ARGS)
    sets.apply(second, OPERANDS[second][0].split(",")[0])
    for _, operand in OPERANDS.values():
        assert f" or {operand}" in sets.text(SERVER_ARGS)
    sets.revert(second)
    assert sets.text(SERVER_ARGS) == alone
    sets.apply(second, OPERANDS[second][0].split(",")[0])
    sets.revert(first)
    assert OPERANDS[second][1] in sets.text(SERVER_ARGS)
    assert f" or {OPERANDS[first][1]}" not in sets.text(SERVER_ARGS)
    sets.revert(second)
    assert contents(sets.prefix) == sets.pristine


def test_other_overlaps_are_refused_and_name_both(sets: Sets) -> None:
    write_set(sets.folder, "one", text_edit("return flags", "return  flags"))
    write_set(sets.folder, "two", text_edit("return flags", "return   flags"))
    sets.apply("one")
    before = contents(sets.prefix)
    with pytest.raises(RefusedError, match="the sets one and two edit the same place"):
        sets.apply("two")
    assert contents(sets.prefix) == before


def test_a_changed_yaml_replaces_and_a_set_not_named_needs_none(sets: Sets) -> None:
    write_set(sets.folder, "one", text_edit("return flags", "return  flags"))
    write_set(sets.folder, "two", KEYWORD)
    sets.apply("one")
    (sets.folder / "one.yaml").unlink()
    assert sets.apply("two") == "applied"
    assert "return  flags(supported_major_versions=[9, 10, 12])" in sets.text()
    write_set(sets.folder, "one", text_edit("return flags", "return   flags"))
    assert sets.apply("one") == "applied"
    assert "return   flags(supported_major_versions=[9, 10, 12])" in sets.text()


def test_any_order_of_apply_and_revert_is_pristine_plus_the_edits(sets: Sets) -> None:
    changes = {
        "one": ("return flags", "return  flags"),
        "two": ("def gen", "def  gen"),
        "three": ("[9, 10]", "[9,  10]"),
    }
    for name, (find, new) in changes.items():
        write_set(sets.folder, name, text_edit(find, new))
    pristine = sets.pristine[COMM].decode()

    @settings(max_examples=8, deadline=None, database=None)
    @given(st.lists(st.sampled_from(sorted(changes)), max_size=5))
    def holds(toggled: list[str]) -> None:
        gatepatch.revert(prefix=sets.prefix)
        wanted: set[str] = set()
        for name in toggled:
            if name in wanted:
                sets.revert(name)
            else:
                sets.apply(name)
            wanted ^= {name}
            expected = pristine
            for each in wanted:
                expected = expected.replace(*changes[each])
            assert sets.text() == expected

    holds()
    gatepatch.revert(prefix=sets.prefix)
    assert contents(sets.prefix) == sets.pristine
