"""A small GPU benchmark for trials: real work, or blocks that spin on a flag until it is set.

Usage: gpu_work.py SECONDS WITHOUT WITH, where each side is ``work``, ``half`` or ``spin``. It prints
a throughput; ``half`` works for half of the time and idles for the other, ``spin`` does next to
nothing at 100 % utilisation, as an all-reduce does whose peers do not answer.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from typing import Any

import cupy  # type: ignore[import-not-found,import-untyped,unused-ignore]

_WORK = r"""
extern "C" __global__ void work(float* out) {
  float a = threadIdx.x, b = 1.5f, c = 0.25f, d = 2.0f;
  for (int i = 0; i < 100000; i++) {
    a = a * 0.999f + b; b = b * 0.998f + c; c = c * 0.997f + d; d = d * 0.996f + a;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d;
}
"""

_SPIN = r"""
extern "C" __global__ void spin(const volatile int* flag, unsigned long long* polls) {
  unsigned long long n = 0;
  while (*flag == 0) n++;
  atomicAdd(polls, n);
}
"""


def work(seconds: float) -> float:
    """Let every multiprocessor compute; return how many kernels a second."""
    kernel: Any = cupy.RawKernel(_WORK, "work")
    blocks = 8 * cupy.cuda.Device().attributes["MultiProcessorCount"]
    out = cupy.zeros(blocks * 256, dtype=cupy.float32)
    kernel((blocks,), (256,), (out,))
    cupy.cuda.Device().synchronize()  # compiled by now
    count, start = 0, time.monotonic()
    while time.monotonic() - start < seconds:
        for _ in range(10):
            kernel((blocks,), (256,), (out,))
        cupy.cuda.Device().synchronize()
        count += 10
    return count / (time.monotonic() - start)


def half(seconds: float) -> float:
    """The same for half of the time."""
    rate = work(seconds / 2)
    time.sleep(seconds / 2)
    return rate / 2


def spin(seconds: float) -> float:
    """Let a block on each multiprocessor wait for a flag in pinned host memory."""
    kernel: Any = cupy.RawKernel(_SPIN, "spin")
    memory = cupy.cuda.alloc_pinned_memory(4)
    flag = ctypes.c_int.from_address(memory.ptr)
    flag.value = 0
    polls = cupy.zeros(1, dtype=cupy.uint64)
    blocks = cupy.cuda.Device().attributes["MultiProcessorCount"]
    # Pinned memory has one address for host and device (unified addressing).
    kernel((blocks,), (32,), (cupy.uint64(memory.ptr), polls))
    time.sleep(seconds)
    flag.value = 1
    cupy.cuda.Device().synchronize()
    assert int(polls[0]) > 0
    return 1 / seconds


def main() -> None:
    """Run the side's kind, and print its throughput."""
    seconds, *kinds = sys.argv[1:]
    kind = kinds[os.environ.get("GATEPATCH_TRIAL_SIDE") == "with"]
    rate = {"work": work, "half": half, "spin": spin}[kind](float(seconds))
    print(f"{kind}: throughput: {rate:.4f} kernels/s")


if __name__ == "__main__":
    main()
