"""An all-reduce over two GPUs with FlashInfer's own kernels; run by ``check_jit.py``, once a rank.

Usage: python all_reduce.py RANK PORT

Prints one JSON document: how long the module's first load took, and how far the worst sum is off.
"""

from __future__ import annotations

import json
import os
import sys
import time

import torch
import torch.distributed as dist
from flashinfer import comm
from flashinfer.comm.trtllm_ar import get_trtllm_comm_module

RANKS, TOKENS, HIDDEN = 2, 64, 4096


def main(rank: int, port: str) -> None:
    """Load the module, sum, and compare with what the ranks have put in."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.cuda.set_device(rank)
    start = time.perf_counter()
    get_trtllm_comm_module()
    loaded = time.perf_counter() - start
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    parts = [part(each) for each in range(RANKS)]
    wanted = sum(each.float() for each in parts)
    off = {name: worst(sums, wanted) for name, sums in ways(rank, parts[rank]).items()}
    dist.barrier()
    print(json.dumps({"rank": rank, "loaded_s": round(loaded, 2), "off": off}), flush=True)
    os._exit(0)  # the workspaces are shared: an orderly end would have to wait for the other rank


def part(rank: int) -> torch.Tensor:
    """What a rank puts in: the same wherever it is made."""
    generator = torch.Generator().manual_seed(rank)
    return torch.rand(TOKENS, HIDDEN, generator=generator, dtype=torch.float32).half().cuda()


def worst(sums: torch.Tensor, wanted: torch.Tensor) -> float:
    """The largest difference; half precision rounds sums below 2 by at most 1/1024."""
    return float((sums.float() - wanted).abs().max())


def ways(rank: int, own: torch.Tensor) -> dict[str, torch.Tensor]:
    """The sums by the kernels of both headers, the patched one's first."""
    handles = comm.trtllm_create_ipc_workspace_for_all_reduce(rank, RANKS, TOKENS, HIDDEN)
    pointers = [torch.tensor(each, dtype=torch.int64) for each in handles]  # the host reads them
    found = {}
    for number, name in enumerate(("ONESHOT", "TWOSHOT"), start=1):
        out = torch.empty_like(own)
        comm.trtllm_custom_all_reduce(
            own.view(-1), out.view(-1), RANKS, rank, TOKENS,
            comm.AllReduceFusionOp.NONE, getattr(comm.AllReduceStrategyType, name), 0, True, number,
            pointers[0], pointers[2], pointers[3],
            None, None, None, None, None, None,
            pointers[4], pointers[5], pointers[6],
        )  # fmt: skip
        torch.cuda.synchronize()
        found[f"custom {name.lower()}"] = out
    _, workspace = comm.trtllm_create_ipc_workspace_for_all_reduce_fusion(
        rank, RANKS, TOKENS, HIDDEN
    )
    for oneshot in (True, False):
        out = torch.empty_like(own)
        comm.trtllm_allreduce_fusion(
            allreduce_in=own, world_size=RANKS, world_rank=rank, token_num=TOKENS,
            hidden_dim=HIDDEN, workspace_ptrs=workspace, launch_with_pdl=True,
            trigger_completion_at_end=True, fp32_acc=True,
            pattern_code=comm.AllReduceFusionPattern.kAllReduce, use_oneshot=oneshot,
            allreduce_out=out, residual_in=None, residual_out=None, norm_out=None, quant_out=None,
            scale_out=None, rms_gamma=None, rms_eps=None, scale_factor=None, layout_code=None,
        )  # fmt: skip
        torch.cuda.synchronize()
        found[f"fusion {'one' if oneshot else 'two'}shot"] = out
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
