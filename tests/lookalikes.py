"""An environment with stand-ins for sglang 0.5.9 and flashinfer-python 0.6.3: the gates alone."""

from __future__ import annotations

from pathlib import Path

from trees import make_distribution, make_environment, site_of

COMM = "flashinfer/jit/comm.py"
HEADER = "flashinfer/data/include/flashinfer/comm/trtllm_allreduce.cuh"
COMMUNICATOR = "sglang/srt/layers/communicator.py"
SERVER_ARGS = "sglang/srt/server_args.py"

FLASHINFER = {
    "flashinfer/__init__.py": "",
    "flashinfer/jit/__init__.py": "",
    COMM: """\
def gen_trtllm_comm_module():
    return flags(supported_major_versions=[9, 10])
""",
    HEADER: """\
#if (defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 900) && (__CUDA_ARCH__ < 1200))
wait();
#endif
"""
    * 13,
}

SGLANG = {
    "sglang/__init__.py": "",
    "sglang/srt/__init__.py": "",
    "sglang/srt/layers/__init__.py": "",
    "sglang/srt/utils/__init__.py": "from sglang.srt.utils.common import *\n",
    "sglang/srt/utils/common.py": """\
import torch


def is_cuda():
    return torch.version.cuda is not None


def is_sm90_supported():
    return is_cuda() and torch.cuda.get_device_capability()[0] == 9


def is_sm100_supported():
    return is_cuda() and torch.cuda.get_device_capability()[0] == 10


def is_sm120_supported():
    return is_cuda() and torch.cuda.get_device_capability()[0] == 12
""",
    COMMUNICATOR: """\
from sglang.srt.utils import is_cuda, is_sm90_supported, is_sm100_supported

_is_cuda = is_cuda()
_is_sm90_supported = _is_cuda and is_sm90_supported()
_is_sm100_supported = _is_cuda and is_sm100_supported()


def apply_flashinfer_allreduce_fusion(batch_size):
    return (_is_sm90_supported or _is_sm100_supported) and batch_size > 0
""",
    SERVER_ARGS: """\
from sglang.srt.utils import is_sm90_supported, is_sm100_supported, is_sm120_supported


class ServerArgs:
    def _handle_model_specific_adjustments(self):
        if (is_sm90_supported() or is_sm100_supported()) and self.nnodes == 1:
            self.enable_flashinfer_allreduce_fusion = True
""",
}


def make_server(tmp_path: Path, name: str = "server") -> Path:
    """Make an environment with both stand-ins; return its prefix."""
    prefix = make_environment(tmp_path, name)
    make_distribution(site_of(prefix), "flashinfer-python", "0.6.3", FLASHINFER)
    make_distribution(site_of(prefix), "sglang", "0.5.9", SGLANG)
    return prefix


def contents(prefix: Path) -> dict[str, bytes]:
    """The files of its site-packages, but for bytecode and gatepatch's lock."""
    site = site_of(prefix)
    return {
        path.relative_to(site).as_posix(): path.read_bytes()
        for path in site.rglob("*")
        if path.is_file() and path.suffix != ".pyc" and path != site / ".gatepatch" / "lock"
    }
