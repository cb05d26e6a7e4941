"""What was read of a set when it was pinned stands for its YAML, and for no other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import gatepatch
from gatepatch import catalog, parsed
from gatepatch.edits import sha256
from gatepatch.loader import load

SET = """\
schema: 1
name: wide
summary: Every kind of edit
why: To be read again.
admit: [sm_120, sm_121]
like: sm_100
requires: {cluster: 4, pdl: ordered}
predicates: {toy.is_new: [sm_120]}
advisories:
  - {severity: info, text: About “some” of it, source: seen, when: {toy: ">=1,<2"}}
targets:
  - distribution: flashinfer-python
    versions: ">=0.6,<0.7"
    jit: {flashinfer: [one, two]}
    files:
      - path: flashinfer/a.py
        edits:
          - open: {keyword: majors, count: 2}
          - replace: {expression: a + b, by: a - b}
          - import: {from: toy, name: thing}
          - insert: {before: thing, code: "x = 1"}
          - text: {find: old, replace: "", unproved: It is prose.}
    compile:
      - unit: flashinfer/data/csrc/a.cu
        expect: [{kernels: empty, before: some, after: as-like}]
  - distribution: toy
    versions: ">=1"
    optional: true
    expect: native
    note: Nothing to do.
    files:
      - path: toy/b.py
        edits: [{open: {condition: a > b}}]
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A set in a folder of its own, with what is read of it beside it."""
    path = tmp_path / "wide" / "set.yaml"
    path.parent.mkdir()
    path.write_text(SET)
    gatepatch.pin("wide", patches=[tmp_path], sources=[tmp_path])
    return path


@pytest.mark.parametrize("name", catalog.files())
def test_what_ships_is_what_is_read_of_the_yaml(name: str) -> None:
    """If this fails, ``gatepatch pin NAME --from .`` writes it anew."""
    path = catalog.find(name)
    assert parsed.load(path) == load(path)


def test_every_kind_of_thing_comes_back_as_it_was(source: Path) -> None:
    found = parsed.load(source)
    assert found == load(source)
    assert str(found) == str(load(source))


def test_no_parser_is_asked(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = load(source)
    monkeypatch.setattr("gatepatch.loader.load", lambda path: pytest.fail("it was read"))
    assert gatepatch.show("wide", patches=[source.parents[1]]) == wanted


def test_a_set_that_was_changed_is_read(source: Path) -> None:
    source.write_text(SET.replace("Every kind", "Each kind"))
    assert parsed.load(source) is None
    assert gatepatch.show("wide", patches=[source.parents[1]]).summary == "Each kind of edit"


def test_a_set_that_was_moved_says_where_it_is_now(source: Path) -> None:
    source.parent.rename(source.parent.with_name("moved"))
    moved = source.parents[1] / "moved" / "set.yaml"
    found = parsed.load(moved)
    assert found is not None
    assert found.source == str(moved)
    with pytest.raises(gatepatch.GatepatchError, match="names itself 'wide'"):
        gatepatch.show("moved", patches=[source.parents[1]])


def test_another_version_of_gatepatch_reads_it(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsed, "__version__", "99")
    assert parsed.load(source) is None


def other_body(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """The same head with its own hash of another body."""
    head, _, body = data.partition(b"\n")
    changed = change(body)
    fields = {**json.loads(head), "sha256": sha256(changed)}
    return json.dumps(fields).encode() + b"\n" + changed


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut off": lambda data: data[:-100],
    "another value": lambda data: data.replace(b"sm_120", b"sm_90").replace(b"old", b"new"),
    "no object": lambda data: b"[]\n" + data.partition(b"\n")[2],
    "no JSON": lambda data: b"\xff{" + data,
    "deep": lambda data: other_body(data, lambda body: b"[" * 100_000),
    "an unknown kind": lambda data: other_body(data, lambda b: b.replace(b"GateEdit", b"Popen")),
    "an unknown field": lambda data: other_body(data, lambda b: b.replace(b'"why"', b'"who"')),
    "no set": lambda data: other_body(data, lambda body: b"{}"),
    "no range": lambda data: other_body(data, lambda body: body.replace(b">=0.6", b"0.6?")),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_what_is_damaged_is_passed_over(source: Path, damage: Callable[[bytes], bytes]) -> None:
    path = parsed.path_of(source)
    data = path.read_bytes()
    path.write_bytes(damage(data))
    assert path.read_bytes() != data
    assert parsed.load(source) is None
    assert gatepatch.show("wide", patches=[source.parents[1]]) == load(source)


def test_what_is_not_there_is_passed_over(source: Path) -> None:
    parsed.path_of(source).unlink()
    assert parsed.load(source) is None
    parsed.path_of(source).mkdir()
    assert parsed.load(source) is None


def test_a_check_finds_what_counts_and_is_wrong_and_writes_nothing(source: Path) -> None:
    folder = source.parents[1]
    assert gatepatch.pin("wide", patches=[folder], sources=[folder], check=True) == ()
    path = parsed.path_of(source)
    kept = other_body(path.read_bytes(), lambda body: body.replace(b"a + b", b"a * b"))
    path.write_bytes(kept)
    (found,) = gatepatch.pin("wide", patches=[folder], sources=[folder], check=True)
    assert (found.distribution, found.version, found.outcome) == ("wide", "set.yaml", "differs")
    assert found.detail == "set.json is not what is read of it"
    assert path.read_bytes() == kept
    assert gatepatch.pin("wide", patches=[folder], sources=[folder]) == ()
    assert parsed.load(source) == load(source)
    source.write_text(SET + "# Other bytes, for which it does not count.\n")
    assert gatepatch.pin("wide", patches=[folder], sources=[folder], check=True) == ()
