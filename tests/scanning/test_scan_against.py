"""Comparing two releases: which gate is which, and what changed for one architecture."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gatepatch
from gatepatch import api
from gatepatch.cli import main
from gatepatch.errors import TargetError, UsageError
from gatepatch.scanning.against import Comparison
from releases import make_wheel
from trees import make_distribution, make_environment, site_of

OLD: dict[str, bytes | str] = {
    "toy/__init__.py": "",
    "toy/kept.cuh": "#if __CUDA_ARCH__ >= 800\n#endif\n",
    "toy/shifted.cuh": "#if __CUDA_ARCH__ == 800\n#endif\n",
    "toy/old_name.cuh": "#if __CUDA_ARCH__ == 1000\n#endif\n",
    "toy/opened.cuh": "#if __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200\n#endif\n",
    "toy/respelt.cuh": "#if __CUDA_ARCH__ > 890\n#endif\n",
    "toy/gone.cuh": "#if __CUDA_ARCH__ == 1030\n#endif\n",
    "toy/lists.py": "def gen():\n    return flags(supported_major_versions=[9, 10])\n",
    "toy/third_party/x.h": "#if __CUDA_ARCH__ == 900\n#endif\n",
}
NEW: dict[str, bytes | str] = {
    "toy/__init__.py": "",
    "toy/kept.cuh": OLD["toy/kept.cuh"],
    "toy/shifted.cuh": "// one line more\n#if __CUDA_ARCH__ == 800\n#endif\n",
    "toy/new_name.cuh": "#if __CUDA_ARCH__ == 1000\n#endif\n",
    "toy/opened.cuh": "#if __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1300\n#endif\n",
    "toy/respelt.cuh": "#if __CUDA_ARCH__ >= 891\n#endif\n",
    "toy/lists.py": "def gen():\n    return flags(supported_major_versions=[9, 10, 12])\n",
    "toy/fresh.cuh": "#if __CUDA_ARCH__ == 900\n#endif\n",
    "toy/wide.cuh": "#if __CUDA_ARCH__ >= 750\n#endif\n",
}


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    prefix = make_environment(tmp_path)
    make_distribution(site_of(prefix), "toy", "1.0", OLD)
    return prefix


def wheel(folder: Path, version: str = "2.0", files: dict[str, bytes | str] = NEW) -> Path:
    metadata = f"Metadata-Version: 2.1\nName: toy\nVersion: {version}\n"
    record = "".join(f"{path},,\n" for path in files)
    info = f"toy-{version}.dist-info"
    whole = {**files, f"{info}/METADATA": metadata, f"{info}/RECORD": record}
    return make_wheel(folder, "toy", version, whole)


def places(found: Comparison) -> list[tuple[str, str, str]]:
    return [
        (
            one.kind,
            f"{one.before.path}:{one.before.line}" if one.before else "",
            f"{one.after.path}:{one.after.line}" if one.after else "",
        )
        for one in found.differences
    ]


DIFFERENCES = [
    ("changed", "toy/lists.py:2", "toy/lists.py:2"),
    ("changed", "toy/opened.cuh:1", "toy/opened.cuh:1"),
    ("came", "", "toy/fresh.cuh:1"),
    ("went", "toy/gone.cuh:1", ""),
    ("moved", "toy/old_name.cuh:1", "toy/new_name.cuh:1"),
]


def test_each_outcome_against_a_wheel(prefix: Path, tmp_path: Path) -> None:
    other = wheel(tmp_path)
    found = api.scan_against(other, ["toy"], sm="120", prefix=prefix)
    assert places(found) == DIFFERENCES
    (toy,) = found.distributions
    assert (str(toy.before.version), str(toy.after.version)) == ("1.0", "2.0")
    assert (toy.same, toy.shifted, toy.rewritten) == (1, 1, 1)
    assert (toy.changed, toy.came, toy.went, toy.moved) == (2, 2, 1, 1)
    assert toy.after.root == str(other)


def test_the_same_against_an_environment_and_a_folder_of_wheels(
    prefix: Path, tmp_path: Path
) -> None:
    other = make_environment(tmp_path, "other")
    make_distribution(site_of(other), "toy", "2.0", NEW)
    folder = tmp_path / "wheels"
    folder.mkdir()
    wheel(folder)
    for each in (other, other / "bin" / "python", folder):
        assert places(api.scan_against(each, sm="120", prefix=prefix)) == DIFFERENCES


def test_all_shows_what_has_nothing_to_do_with_it(prefix: Path, tmp_path: Path) -> None:
    found = api.scan_against(wheel(tmp_path), sm="120", prefix=prefix, everything=True)
    assert ("came", "", "toy/wide.cuh:1") in places(found)
    # A vendored gate counts as well: the new one has its condition.
    assert ("moved", "toy/third_party/x.h:1", "toy/fresh.cuh:1") in places(found)


def test_a_meaning_that_changed_elsewhere_is_a_change(prefix: Path, tmp_path: Path) -> None:
    name = "is_blackwell_supported"
    user = f"from toy.arch import {name}\n\n\ndef run():\n    if {name}():\n        return 1\n"
    asked = f"import torch\n\n\ndef {name}():\n    return torch.cuda.get_device_capability()[0]"
    old: dict[str, bytes | str] = {"toy/arch.py": f"{asked} in (10, 11)\n", "toy/run.py": user}
    new: dict[str, bytes | str] = {"toy/arch.py": f"{asked} in (10, 12)\n", "toy/run.py": user}
    make_distribution(site_of(prefix), "toy", "1.0", old)
    found = api.scan_against(
        wheel(tmp_path, files=new), sm="120", paths=["toy/run.py"], prefix=prefix
    )
    assert places(found) == [("changed", "toy/run.py:5", "toy/run.py:5")]


def test_copies_of_one_condition_are_paired_by_line(prefix: Path, tmp_path: Path) -> None:
    gate = "#if __CUDA_ARCH__ == 900\n#endif\n"
    make_distribution(site_of(prefix), "toy", "1.0", {"toy/k.cu": gate + gate})
    other = wheel(tmp_path, files={"toy/k.cu": gate + "\n" + gate + gate})
    found = api.scan_against(other, sm="120", prefix=prefix)
    (toy,) = found.distributions
    assert (toy.same, toy.shifted, toy.came) == (1, 1, 1)


def test_table_and_json(prefix: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["scan", "toy", "--sm", "120", "--prefix", str(prefix)]
    arguments += ["--against", str(wheel(tmp_path))]
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "toy 1.0 -> 2.0: 8 -> 8 gates; 5 -> 2 leave 12.0 out"
    assert lines[1] == (
        "  in its own code, 1 as they were, 1 on another line, 1 rewritten with the same verdict; "
        "2 changed for 12.0, 2 came, 1 went, 1 moved"
    )
    at = lines.index("    toy/opened.cuh:1")
    assert lines[at + 1 : at + 3] == [
        "      shuts -> admits  __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1300",
        "      was __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200",
    ]
    assert "      was at toy/old_name.cuh:1" in lines
    assert lines[-1] == (
        "  1 more came, went or moved, and do not leave 12.0 out (--all shows them)"
    )
    assert main([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["command"] == "scan"
    assert [one["kind"] for one in document["comparison"]["differences"]] == [
        kind for kind, _, _ in DIFFERENCES
    ]


def test_what_cannot_be_compared_is_refused(prefix: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not there: expected an environment's folder"):
        api.scan_against(tmp_path / "nothing", sm="120", prefix=prefix)
    folder = tmp_path / "wheels"
    folder.mkdir()
    wheel(folder)
    with pytest.raises(UsageError, match="expected a wheel of other, found toy"):
        api.scan_against(folder, ["other"], sm="120", prefix=prefix)
    wheel(folder, "3.0")
    with pytest.raises(TargetError, match=r"holds several wheels of toy: toy-2.0-.*toy-3.0-"):
        api.scan_against(folder, ["toy"], sm="120", prefix=prefix)
    broken = tmp_path / "toy-4.0-py3-none-any.whl"
    broken.write_text("no archive")
    with pytest.raises(TargetError, match="cannot be read as a wheel"):
        api.scan_against(broken, ["toy"], sm="120", prefix=prefix)
    bare = make_environment(tmp_path, "bare")
    with pytest.raises(TargetError, match="toy is not in it"):
        api.scan_against(bare, ["toy"], sm="120", prefix=prefix)


def test_a_wheel_with_a_data_folder_stands_as_it_would_be_installed(
    prefix: Path, tmp_path: Path
) -> None:
    files: dict[str, bytes | str] = {
        f"toy-2.0.data/purelib/{path}": content for path, content in NEW.items()
    }
    found = api.scan_against(wheel(tmp_path, files=files), sm="120", prefix=prefix)
    assert places(found) == DIFFERENCES


def test_nothing_is_left_behind(
    prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    api.scan_against(wheel(tmp_path), sm="120", prefix=prefix)
    assert list(folder.iterdir()) == []
    assert gatepatch.scan(["toy"], sm="120", prefix=prefix).cached == len(OLD)
