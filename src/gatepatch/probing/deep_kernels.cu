// What the deep probe launches. Compiled by NVRTC, so nothing is included. Every wait is bounded by
// a number of clock cycles, except those whose end is the question.

// Writes `value` late: after `cycles`, having let the grid that depends on it start before that.
extern "C" __global__ void write_late(unsigned *data, unsigned value, long long cycles) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  long long start = clock64();
  while (clock64() - start < cycles) {
  }
  data[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

// Copies what another block of the grid before has written, with the wait or without.
extern "C" __global__ void read_after(unsigned *data, unsigned *seen, int wait) {
#if __CUDA_ARCH__ >= 900
  if (wait) asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  unsigned count = gridDim.x * blockDim.x;
  unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
  seen[index] = data[(index + count / 2) % count];
}

// Each block reads, through distributed shared memory, what the next of its cluster has written.
extern "C" __global__ void ask_neighbour(unsigned *seen) {
#if __CUDA_ARCH__ >= 900
  __shared__ unsigned slot;
  unsigned rank, size, own, other, value;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  slot = 1000 * size + rank;
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(own) : "l"(&slot));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(own), "r"((rank + 1) % size));
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(other) : "memory");
  seen[blockIdx.x] = value;
  // A block that has ended takes its shared memory with it.
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

// Fills all of the block's shared memory, and says how many words came back right.
extern "C" __global__ void fill_shared(unsigned *right, unsigned words) {
  extern __shared__ unsigned memory[];
  for (unsigned i = threadIdx.x; i < words; i += blockDim.x) memory[i] = i ^ 0x5a5a5a5au;
  __syncthreads();
  for (unsigned i = threadIdx.x; i < words; i += blockDim.x) {
    unsigned j = words - 1 - i;
    if (memory[j] == (j ^ 0x5a5a5a5au)) atomicAdd(right, 1u);
  }
}

// Copies memory, which may be another device's.
extern "C" __global__ void copy(const unsigned *from, unsigned *to, unsigned words) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < words) to[i] = from[i];
}
