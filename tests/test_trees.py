"""The builders build what they say; other tests stand on them."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
from pathlib import Path

from trees import git, make_distribution, make_environment, make_repository, python_of, site_of


def test_an_environment_runs_and_imports_what_is_installed_in_it(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    make_distribution(site_of(prefix), "some-thing", "1.2", {"some/__init__.py": "x = 7\n"})
    code = "import some, importlib.metadata as m; print(some.x, m.version('some-thing'))"
    done = subprocess.run([python_of(prefix), "-c", code], capture_output=True, text=True)
    assert done.stdout == "7 1.2\n"


def test_a_distribution_reads_back_with_right_hashes(tmp_path: Path) -> None:
    info = make_distribution(tmp_path, "some-thing", "1.2", {"some/a.py": b"\xff\n"})
    files = importlib.metadata.PathDistribution(info).files
    assert files is not None
    assert {str(file) for file in files} >= {"some/a.py", "some_thing-1.2.dist-info/METADATA"}
    assert (
        not make_distribution(tmp_path, "bare", "1", {}, record=False).joinpath("RECORD").exists()
    )


def test_a_repository_has_one_commit(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a/b.py": "x\n"})
    assert git(repository, "ls-tree", "-r", "--name-only", "HEAD") == "a/b.py"


def test_the_home_is_not_the_real_one(home: Path) -> None:
    assert os.environ["HOME"] == str(home)
    assert list(home.iterdir()) == []
    assert Path.home() == home
