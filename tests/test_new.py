"""`gatepatch new`: sets made of edits by hand."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import gatepatch
from gatepatch.authoring import writer
from gatepatch.authoring.made import Made
from gatepatch.errors import GatepatchError, RefusedError, TargetError, UsageError
from gatepatch.loader import load
from gatepatch.spec import GateEdit, Import, Insert, PatchSet, Replace, Text
from lookalikes import (
    COMM,
    COMMUNICATOR,
    FLASHINFER,
    HEADER,
    SERVER_ARGS,
    SGLANG,
    contents,
    make_server,
)
from releases import make_wheel
from trees import (
    git,
    make_distribution,
    make_environment,
    make_repository,
    site_of,
    write_files,
)
from wheels import fetch


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


def fill(path: Path) -> None:
    """Give the reasons, as an author does."""
    text = path.read_text()
    for marker in (writer.SUMMARY, writer.WHY, writer.UNPROVED):
        text = text.replace(f'"{marker}"', "They run there.").replace(marker, "They run there.")
    path.write_text(text)


def restore(prefix: Path) -> None:
    write_files(site_of(prefix), {**FLASHINFER, **SGLANG})


def test_the_set_is_refused_until_its_reasons_are_given_and_then_gives_the_edited_bytes(
    server: Path, wheels: list[Path], tmp_path: Path
) -> None:
    pristine = contents(server)
    edit_as_the_set_does(server)
    by_hand = contents(server)
    sets = tmp_path / "sets"
    made = gatepatch.new(
        "mine", edits=["sglang", "flashinfer-python"], prefix=server, wheels=wheels, output=sets
    )
    restore(server)
    for call in (gatepatch.plan, gatepatch.apply):
        with pytest.raises(RefusedError, match=r"is not finished: its author is to give 2 reasons"):
            call("mine", prefix=server, patches=[sets])
    assert [p.message for p in gatepatch.lint("mine", patches=[sets])] == ["is to be filled in"] * 2
    fill(Path(made.source))
    assert gatepatch.lint("mine", patches=[sets]) == ()
    gatepatch.apply("mine", prefix=server, patches=[sets], assume="sm_120")
    applied = {p: d for p, d in contents(server).items() if not p.startswith(".gatepatch/")}
    assert applied == by_hand
    gatepatch.revert("mine", prefix=server, patches=[sets])
    assert contents(server) == pristine


def new(server: Path, wheels: list[Path], tmp_path: Path, **more: Any) -> tuple[Made, PatchSet]:
    made = gatepatch.new("mine", prefix=server, wheels=wheels, output=tmp_path / "sets", **more)
    return made, load(Path(made.source))


def test_what_is_no_gate_becomes_text_and_a_bound_that_lets_all_in_is_not_proved(
    server: Path, wheels: list[Path], tmp_path: Path
) -> None:
    edit(server, COMM, "[9, 10]", "[9, 10, 12]")
    edit(server, HEADER, " && (__CUDA_ARCH__ < 1200)", "")
    edit(server, SERVER_ARGS, "self.nnodes == 1", "self.nnodes <= 2")
    made, patch_set = new(
        server, wheels, tmp_path, edits=["flashinfer-python", "sglang"], admit=["sm_120", "sm_121"]
    )
    assert made.like is not None
    assert [type(e) for e in edits_of(patch_set, COMM)] == [GateEdit]
    (bound,) = edits_of(patch_set, HEADER)
    assert isinstance(bound, Replace)
    assert (bound.count, bound.unproved) == (13, writer.UNPROVED)
    (other,) = edits_of(patch_set, SERVER_ARGS)
    assert isinstance(other, Replace | Text)
    assert other.unproved == writer.UNPROVED


def test_a_gate_that_is_shut_by_hand_becomes_a_close(
    server: Path, wheels: list[Path], tmp_path: Path
) -> None:
    edit(server, COMM, "[9, 10]", "[9]")
    made, patch_set = new(server, wheels, tmp_path, edits="flashinfer-python")
    assert made.action == "close"
    assert [arch.name for arch in made.archs] == ["sm_100", "sm_103"]
    assert made.like is None
    assert edits_of(patch_set, COMM) == [
        GateEdit(
            where="targets[0].files[0].edits[0].close",
            action="close",
            within="gen_trtllm_comm_module",
            keyword="supported_major_versions",
        )
    ]


def test_without_a_gate_the_architectures_must_be_named(
    server: Path, wheels: list[Path], tmp_path: Path
) -> None:
    edit(server, SERVER_ARGS, "self.nnodes == 1", "self.nnodes <= 2")
    with pytest.raises(RefusedError) as error:
        new(server, wheels, tmp_path, edits="sglang")
    assert str(error.value) == (
        "the gates that were changed do not tell for whom\n"
        "  say it: --admit sm_120 --like sm_100, or --exclude sm_120"
    )
    assert not (tmp_path / "sets").exists()


def test_nothing_is_overwritten(server: Path, wheels: list[Path], tmp_path: Path) -> None:
    (tmp_path / "sets/mine").mkdir(parents=True)
    with pytest.raises(UsageError, match="is there already, and is not overwritten"):
        new(server, wheels, tmp_path, edits="sglang")
    assert list((tmp_path / "sets/mine").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give one of --from-edits and --from-diff"),
        ({"edits": "sglang", "diff": "x"}, "give one of --from-edits and --from-diff"),
        ({"edits": "sglang", "admit": "twelve"}, "--admit: 'twelve' is not an architecture"),
        ({"edits": "sglang", "like": "ten"}, "--like: 'ten' is not an architecture"),
        ({"edits": "sglang"}, "nothing is edited in sglang"),
        ({"edits": "torch"}, "torch is not installed in"),
    ],
)
def test_what_cannot_be_asked(
    arguments: dict[str, Any], message: str, server: Path, tmp_path: Path
) -> None:
    with pytest.raises(GatepatchError, match=message):
        new(server, [], tmp_path, **arguments)


def test_a_name_that_is_none(server: Path) -> None:
    with pytest.raises(UsageError, match="'My_Set' is no name"):
        gatepatch.new("My_Set", edits="sglang", prefix=server)


def test_a_file_that_is_gone(server: Path, wheels: list[Path], tmp_path: Path) -> None:
    (site_of(server) / COMM).unlink()
    with pytest.raises(RefusedError, match="is gone, and a patch set takes no file away"):
        new(server, wheels, tmp_path, edits="flashinfer-python")


def test_the_wheel_of_another_build(server: Path, tmp_path: Path) -> None:
    edit(server, COMM, "[9, 10]", "[9, 10, 12]")
    other = make_wheel(tmp_path, "flashinfer-python", "0.6.3", {**FLASHINFER, COMM: "other\n"})
    with pytest.raises(RefusedError, match="has other bytes than the release that was installed"):
        new(server, [other], tmp_path, edits="flashinfer-python")


def test_the_wheel_of_another_version(server: Path, tmp_path: Path) -> None:
    edit(server, COMM, "[9, 10]", "[9, 10, 12]")
    other = make_wheel(tmp_path, "flashinfer-python", "0.6.2", FLASHINFER)
    with pytest.raises(TargetError) as error:
        new(server, [other], tmp_path, edits="flashinfer-python")
    assert str(error.value) == (
        f"{other}: is flashinfer-python 0.6.2, and 0.6.3 is installed\n  name the wheel of 0.6.3"
    )


def test_a_wheel_that_pip_cannot_have(
    server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(server, COMM, "[9, 10]", "[9, 10, 12]")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(TargetError) as error:
        new(server, [], tmp_path, edits="flashinfer-python")
    assert str(error.value).startswith(
        "the wheel of flashinfer-python 0.6.3 is not to be had: pip download failed: "
    )
    assert str(error.value).endswith(
        "download it where there is a network, and name it: --wheel FILE"
    )


def test_what_is_edited_on_top_of_a_set_is_taken_up_with_it_from_the_store(
    server: Path, tmp_path: Path
) -> None:
    gatepatch.apply("sm120-allreduce", prefix=server, assume="sm_120")
    edit(server, COMM, "def gen_trtllm_comm_module", "# Mine.\ndef gen_trtllm_comm_module")
    made, patch_set = new(server, [], tmp_path, edits="flashinfer-python")
    assert [type(e) for e in edits_of(patch_set, COMM)] == [GateEdit, Text]
    assert made.notes == (
        f"{COMM} was edited after gatepatch; both edits are taken up together",
        f"{HEADER} is as gatepatch left it, and is not taken up",
    )


def test_a_checkout_without_git_and_a_distribution_without_record(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    make_distribution(site_of(prefix), "sglang", "0.5.9", SGLANG, record=False)
    with pytest.raises(RefusedError, match="there is no RECORD, so nothing tells what was edited"):
        new(prefix, [], tmp_path, edits="sglang")
    editable = make_environment(tmp_path, "editable")
    write_files(tmp_path / "checkout", SGLANG)
    make_editable(editable, tmp_path / "checkout", tmp_path / "checkout")
    with pytest.raises(RefusedError, match="is a checkout without git"):
        new(editable, [], tmp_path, edits="sglang")


def make_editable(prefix: Path, checkout: Path, packages: Path) -> None:
    """Install a checkout of sglang as pip does with a path file."""
    info = make_distribution(site_of(prefix), "sglang", "0.0.0.dev1+gabc", {})
    (site_of(prefix) / "sglang.pth").write_text(f"{packages}\n")
    (info / "RECORD").write_text("sglang.pth,,\n")
    (info / "direct_url.json").write_text(
        json.dumps({"url": checkout.as_uri(), "dir_info": {"editable": True}})
    )


def test_a_file_of_a_checkout_is_compared_with_git(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    checkout = make_repository(tmp_path / "sglang", {f"python/{p}": t for p, t in SGLANG.items()})
    make_editable(prefix, checkout, checkout / "python")
    file = checkout / "python" / SERVER_ARGS
    gate = "is_sm90_supported() or is_sm100_supported()"
    file.write_text(file.read_text().replace(gate, f"{gate} or is_sm120_supported()"))
    (checkout / "python/sglang/untracked.py").write_text("new = 1\n")
    made, patch_set = new(prefix, [], tmp_path, edits="sglang")
    assert [type(e) for e in edits_of(patch_set, SERVER_ARGS)] == [GateEdit]
    assert str(patch_set.targets[0].versions) == "==0.0.0.dev1+gabc"
    git(checkout, "checkout", "-q", ".")
    fill(Path(made.source))
    result = gatepatch.plan("mine", prefix=prefix, patches=[tmp_path / "sets"])
    assert result.outcome == "would-apply"


def test_what_gatepatch_itself_wrote_is_not_taken_up(
    server: Path, wheels: list[Path], tmp_path: Path
) -> None:
    gatepatch.apply("sm120-allreduce", prefix=server, assume="sm_120")
    edit(server, "sglang/srt/utils/common.py", "[0] == 12", "[0] in (11, 12)")
    made, _ = new(server, wheels, tmp_path, edits="sglang", admit="sm_110", like="sm_120")
    assert [file.path for file in made.files] == ["sglang/srt/utils/common.py"]
    assert made.notes == (
        f"{COMMUNICATOR} is as gatepatch left it, and is not taken up",
        f"{SERVER_ARGS} is as gatepatch left it, and is not taken up",
    )


def test_it_is_said_why_a_gate_is_not_proved(
    server: Path, wheels: list[Path], tmp_path: Path
) -> None:
    edit(server, COMM, "[9, 10]", "[9, 10, 12]")
    edit(server, HEADER, " && (__CUDA_ARCH__ < 1200)", "")
    made, _ = new(server, wheels, tmp_path, edits="flashinfer-python")
    (note,) = made.notes
    assert note.startswith(f"{HEADER}, line 1: ")
    assert "13.0" in note


def test_a_set_takes_over_what_was_edited_by_hand_once_it_is_pinned(
    server: Path, wheels: list[Path], tmp_path: Path
) -> None:
    pristine = contents(server)
    edit_as_the_set_does(server)
    sets = tmp_path / "sets"
    made, _ = new(server, wheels, tmp_path, edits=["sglang", "flashinfer-python"])
    fill(Path(made.source))
    gatepatch.pin("mine", patches=[sets], sources=wheels)
    assert gatepatch.lint("mine", patches=[sets], prefix=server) == ()
    assert gatepatch.status("mine", patches=[sets], prefix=server).outcome == "applied"
    gatepatch.revert("mine", patches=[sets], prefix=server)
    assert contents(server) == pristine


@pytest.mark.slow
def test_real_wheels_edited_by_hand(tmp_path: Path) -> None:
    """sglang 0.5.9 and flashinfer-python 0.6.3, the story's own, edited at its four places."""
    prefix = make_environment(tmp_path)
    for distribution, version in (("sglang", "0.5.9"), ("flashinfer-python", "0.6.3")):
        shutil.copytree(fetch(distribution, version), site_of(prefix), dirs_exist_ok=True)
    pristine = contents(prefix)
    files = [
        make_wheel(
            tmp_path, name, version, {p: d for p, d in pristine.items() if p.startswith(top)}
        )
        for name, version, top in (
            ("sglang", "0.5.9", "sglang/"),
            ("flashinfer-python", "0.6.3", "flashinfer/"),
        )
    ]
    edit(prefix, COMM, "supported_major_versions=[9, 10]", "supported_major_versions=[9, 10, 12]")
    edit(prefix, HEADER, "(__CUDA_ARCH__ < 1200)", "(__CUDA_ARCH__ < 1300)")
    name, alias = "is_sm100_supported", "_is_sm100_supported = _is_cuda and is_sm100_supported()\n"
    edit(prefix, COMMUNICATOR, f"    {name},\n", f"    {name},\n    is_sm120_supported,\n")
    edit(prefix, COMMUNICATOR, alias, alias + alias.replace("100", "120"))
    gate = "_is_sm90_supported or _is_sm100_supported"
    edit(prefix, COMMUNICATOR, gate, f"{gate} or _is_sm120_supported")
    gate = "and (is_sm90_supported() or is_sm100_supported()"
    edit(
        prefix, SERVER_ARGS, f"            {gate})", f"            {gate} or is_sm120_supported())"
    )
    by_hand = contents(prefix)

    made, patch_set = new(prefix, files, tmp_path, edits=["sglang", "flashinfer-python"])
    assert [arch.name for arch in made.archs] == ["sm_120", "sm_121"]
    assert made.like is not None
    assert made.like.name == "sm_100"
    assert made.missing == ("summary", "why")
    assert edits_of(patch_set, HEADER) == [
        GateEdit(
            where="targets[0].files[0].edits[0].open",
            action="open",
            condition="__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200",
            count=13,
        )
    ]
    assert [type(e) for e in edits_of(patch_set, COMMUNICATOR)] == [Import, Insert, GateEdit]
    assert [type(e) for e in edits_of(patch_set, SERVER_ARGS)] == [GateEdit]

    for path in (COMM, HEADER, COMMUNICATOR, SERVER_ARGS):
        (site_of(prefix) / path).write_bytes(pristine[path])
    fill(Path(made.source))
    sets = [tmp_path / "sets"]
    assert gatepatch.lint(patches=sets, prefix=prefix) == ()
    gatepatch.apply("mine", prefix=prefix, patches=sets, assume="sm_120")
    applied = contents(prefix)
    assert {path: applied[path] for path in by_hand} == by_hand
    gatepatch.revert("mine", prefix=prefix, patches=sets)
    assert contents(prefix) == pristine


def test_what_sets_that_ship_know_is_taken_over(tmp_path: Path) -> None:
    """The JIT modules of the same files, and predicates that cannot be read from the package."""
    server = make_server(tmp_path)
    path = "sglang/srt/arg_groups/overrides.py"
    gate = "get_platform().is_sm90 or get_platform().is_sm100"
    files = {"sglang/__init__.py": "", path: f"def fused():\n    return {gate}\n"}
    newer = make_environment(tmp_path, "newer")
    make_distribution(site_of(newer), "sglang", "0.5.20", files)
    edit(newer, path, gate, f"{gate} or get_platform().is_sm120")
    made, patch_set = new(
        newer, [make_wheel(tmp_path, "sglang", "0.5.20", files)], tmp_path, edits="sglang"
    )
    assert edits_of(patch_set, path) == [
        GateEdit(
            where="targets[0].files[0].edits[0].open",
            action="open",
            within="fused",
            condition=gate,
        )
    ]
    assert set(patch_set.predicates) == {
        "get_platform().is_sm90",
        "get_platform().is_sm100",
        "get_platform().is_sm120",
    }
    (note,) = made.notes
    assert note.startswith("what these predicates mean was taken over from a set that ships")

    edit(server, COMM, "[9, 10]", "[9, 10, 12]")
    shutil.rmtree(tmp_path / "sets")
    wheel = make_wheel(tmp_path, "flashinfer-python", "0.6.3", FLASHINFER)
    _, patch_set = new(server, [wheel], tmp_path, edits="flashinfer-python")
    assert patch_set.targets[0].jit == {"flashinfer": ("trtllm_comm",)}


@pytest.mark.parametrize(
    ("path", "before", "after", "where", "message"),
    [
        ("toy/__init__.py", b"", b"x = 1\n", ":1", "the file has no text that an edit could stand"),
        ("toy/a.txt", b"a\r\nb\r\n", b"a\nb\n", ":1", "the edit cannot be told as text"),
        ("toy/a.txt", b"a\nb\n", b"a\n\xff\n", ":2", "the edit cannot be told as text"),
        ("toy/a.txt", b"a\nb\n", b"", ":1", "no text around the edit tells it from the rest"),
        ("toy/a.py", b"a = 1\n", b"a = (1\n", ":1", "would not parse any more"),
        ("toy/a.py", b"# coding: latin-1\na = 1\n", b"# coding: latin-1\na = 2\n", "", "latin-1"),
    ],
    ids=["empty", "line-ends", "not-utf8", "all-gone", "broken", "coding"],
)
def test_edits_that_no_set_can_have(
    path: str, before: bytes, after: bytes, where: str, message: str, tmp_path: Path
) -> None:
    prefix = make_environment(tmp_path)
    make_distribution(site_of(prefix), "toy", "1.0", {path: before})
    wheel = make_wheel(tmp_path, "toy", "1.0", {path: before})
    (site_of(prefix) / path).write_bytes(after)
    with pytest.raises(RefusedError) as error:
        new(prefix, [wheel], tmp_path, edits="toy", admit="sm_120", like="sm_100")
    (problem,) = error.value.problems
    assert problem.where == f"{path}{where}"
    assert message in problem.message
    assert not (tmp_path / "sets").exists()


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        ("a\nb\nc\n", "a\nb\n", ["text"]),
        ("a\nb\nc", "a\nb\nc\n", ["text"]),
        ("a\nb\nc\n", "new\na\nb\nc\n", ["text"]),
        ("a\na\na\n", "a\nb\na\n", ["text"]),
        ("x=1\ny\nx=1\n", "x=2\ny\nx=2\n", ["text"]),
        ("a\r\nb\r\n", "a\r\nx\r\nb\r\n", ["text"]),
        ("\ufeffa\n", "\ufeffb\n", ["text"]),
    ],
)
def test_texts_at_the_edges_of_a_file(
    before: str, after: str, kinds: list[str], tmp_path: Path
) -> None:
    prefix = make_environment(tmp_path)
    files = {"toy/a.txt": before.encode()}
    make_distribution(site_of(prefix), "toy", "1.0", files)
    wheel = make_wheel(tmp_path, "toy", "1.0", files)
    (site_of(prefix) / "toy/a.txt").write_bytes(after.encode())
    made, _ = new(prefix, [wheel], tmp_path, edits="toy", admit="sm_120", like="sm_100")
    assert [e.kind for e in made.files[0].edits] == kinds
