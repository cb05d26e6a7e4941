"""A set is applied and reverted in a container: all that is installed came with the image.

An overlay file system refuses to rename a folder of the image (EXDEV), and copies a file of it
before the first write.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lookalikes import make_server
from trees import site_of, write_files

AOT = "flashinfer_jit_cache/jit_cache/trtllm_comm/trtllm_comm.so"
MODULE = "home/.cache/flashinfer/0.6.3/120a/cached_ops/trtllm_comm"
SCRIPT = """
import sys, os
from pathlib import Path
import gatepatch
from lookalikes import contents
from gatepatch import jitcache

top = Path(sys.argv[1])
try:
    (top / sys.argv[2]).rename(top / "elsewhere")
except OSError as error:
    assert "cross-device" in str(error), error
else:
    sys.exit("a folder of the image could be renamed: this test shows nothing")
os.environ["HOME"] = str(top / "home")
before = contents(top / "env")
done = gatepatch.apply("sm120-allreduce", prefix=top / "env", assume="sm_120", hide_aot=True)
assert done.outcome == "applied", done
assert done.jit_removed == (str(top / sys.argv[2]),), done.jit_removed
assert not (top / sys.argv[2]).exists()
assert contents(top / "env") != before
assert gatepatch.revert(prefix=top / "env").outcome == "reverted"
assert contents(top / "env") == before
print("as before")
"""


@pytest.mark.slow
def test_apply_and_revert_over_an_image(tmp_path: Path) -> None:
    lower, merged = tmp_path / "lower", tmp_path / "merged"
    for folder in (lower, merged, tmp_path / "upper", tmp_path / "work"):
        folder.mkdir()
    server = make_server(lower, "env")
    write_files(site_of(server), {AOT: "prebuilt"})
    write_files(lower / MODULE, {"build.ninja": "", "trtllm_comm.so": "", "x.cuda.o": ""})
    options = f"lowerdir={lower},upperdir={tmp_path}/upper,workdir={tmp_path}/work"
    mount = ["unshare", "--mount", "sh", "-ec"]
    if os.geteuid():
        mount.insert(1, "--map-root-user")
        options += ",userxattr"
    command = f'mount -t overlay overlay -o {options} {merged} && exec "$@"'
    probe = subprocess.run([*mount, command, "sh", "true"], capture_output=True, text=True)
    if probe.returncode:
        pytest.skip(f"this machine lets nobody mount an overlay: {probe.stderr.strip()}")
    done = subprocess.run(
        [*mount, command, "sh", sys.executable, "-c", SCRIPT, merged, MODULE],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.returncode) == ("as before\n", 0), done.stderr
