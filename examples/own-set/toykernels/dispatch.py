"""Which kernel runs. The gate leaves SM 8.9 out, though the fast kernel runs there."""

import sys


def get_device_capability():
    """What torch.cuda would say; here the command line says it, such as 8.9."""
    return tuple(map(int, sys.argv[1].split(".")))


def has_fp8_kernel():
    """Whether the fast kernel may be used."""
    return get_device_capability() >= (9, 0)


if __name__ == "__main__":
    print("fast kernel" if has_fp8_kernel() else "slow kernel")
