"""The examples run, on small environments."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from gatepatch import cli
from lookalikes import COMM, COMMUNICATOR, HEADER, SERVER_ARGS, contents, make_server
from trees import python_of, site_of

EXAMPLES = Path(__file__).parents[1] / "examples"
EDITED = {COMM, COMMUNICATOR, HEADER, SERVER_ARGS}


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """The prefix of an environment with stand-ins for the server's packages."""
    return make_server(tmp_path)


def run(*command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command with ``gatepatch`` on the path."""
    scripts = Path(sys.executable).parent
    path = f"{scripts}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        list(map(str, command)),
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path, **variables},
    )


def edited(server: Path, before: dict[str, bytes]) -> set[str]:
    """The files of the packages that have changed, and nothing else of theirs is gone."""
    now = contents(server)
    return {path for path, data in before.items() if now[path] != data}


def test_own_set(tmp_path: Path) -> None:
    done = run(sys.executable, EXAMPLES / "own-set" / "run.py", tmp_path / "env")
    assert done.returncode == 0, done.stderr
    slow, fast = "slow kernel", "fast kernel"
    lines = [line for line in done.stdout.splitlines() if "SM 8.6: " in line]
    assert lines == [
        f"before: SM 8.6: {slow}, SM 8.9: {slow}, SM 9.0: {fast}",
        f"applied: SM 8.6: {slow}, SM 8.9: {fast}, SM 9.0: {fast}",
        f"reverted: SM 8.6: {slow}, SM 8.9: {slow}, SM 9.0: {fast}",
    ]
    assert "+    return get_device_capability() >= (8, 9)\n" in done.stdout
    assert "+#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890\n" in done.stdout
    for path in ("toykernels/dispatch.py", "toykernels/include/fp8.cuh"):
        installed = site_of(tmp_path / "env") / path
        assert installed.read_bytes() == (EXAMPLES / "own-set" / path).read_bytes()


def test_deploy_py_applies_then_becomes_the_server(server: Path) -> None:
    before = contents(server)
    start = (sys.executable, EXAMPLES / "deploy.py", python_of(server), "echo", "the", "server")
    done = run(*start, GATEPATCH_ASSUME="sm_120")
    assert (done.returncode, done.stdout) == (0, "the server\n"), done.stderr
    assert "sm120-allreduce: applied\n" in done.stderr
    assert "danger: On 8 RTX PRO 6000" in done.stderr
    assert edited(server, before) == EDITED
    again = run(*start, GATEPATCH_ASSUME="sm_120")
    assert (again.returncode, again.stdout) == (0, "the server\n")
    assert "sm120-allreduce: already-applied\n" in again.stderr


def test_deploy_py_refuses_and_starts_nothing(server: Path) -> None:
    before = contents(server)
    start = (sys.executable, EXAMPLES / "deploy.py", python_of(server), "echo", "the", "server")
    done = run(*start, GATEPATCH_ASSUME="sm_90")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("sm120-allreduce is not applied: ")
    assert contents(server) == before


def test_deploy_sh_keeps_the_set_when_the_benchmark_is_good(server: Path) -> None:
    before = contents(server)
    done = run(EXAMPLES / "deploy.sh", python_of(server), "true", GATEPATCH_ASSUME="sm_120")
    assert done.returncode == 0, done.stderr
    assert edited(server, before) == EDITED


def test_deploy_sh_reverts_when_the_benchmark_fails(server: Path) -> None:
    before = contents(server)
    bench = ("sh", "-c", "exit 7")
    done = run(EXAMPLES / "deploy.sh", python_of(server), *bench, GATEPATCH_ASSUME="sm_120")
    assert done.returncode == 1
    assert "sm120-allreduce: applied\n" in done.stdout
    assert "the benchmark failed with exit code 7; reverting\n" in done.stderr
    assert "sm120-allreduce: reverted\n" in done.stdout
    assert contents(server) == before


def test_deploy_sh_reverts_when_it_is_interrupted(server: Path) -> None:
    before = contents(server)
    bench = ("sh", "-c", "kill -TERM $PPID")
    done = run(EXAMPLES / "deploy.sh", python_of(server), *bench, GATEPATCH_ASSUME="sm_120")
    assert done.returncode == 1
    assert "interrupted; reverting\n" in done.stderr
    assert contents(server) == before


def test_deploy_sh_runs_no_benchmark_where_the_set_is_refused(server: Path) -> None:
    before = contents(server)
    bench = ("echo", "the benchmark ran")
    done = run(EXAMPLES / "deploy.sh", python_of(server), *bench, GATEPATCH_ASSUME="sm_90")
    assert done.returncode == 1
    assert "the benchmark ran" not in done.stdout
    assert contents(server) == before


def test_commands_of_the_dockerfile(server: Path) -> None:
    text = (EXAMPLES / "Dockerfile").read_text().replace("\\\n", " ")
    commands = re.findall(r"/opt/gatepatch/venv/bin/gatepatch (.*?)(?: && |\n)", text)
    assert len(commands) == 2
    before = contents(server)
    for command in commands:
        words = shlex.split(command.replace('"$(command -v python3)"', "PYTHON"))
        words = [str(python_of(server)) if word == "PYTHON" else word for word in words]
        assert cli.main(words) == 0
    assert edited(server, before) == EDITED
