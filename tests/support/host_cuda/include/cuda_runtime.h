// SPDX-License-Identifier: Apache-2.0
// CUDA host emulator: the kernel language as C++. nvcc includes the toolkit's header of this name before a .cu file;
// the build includes this one in the same way (tests/support/CMakeLists.txt).
//
// Threads: a kernel's threads are fibers of the thread that launches it (support/host_cuda/launch.hpp). Blocking:
// __sync* and __shfl_* let other threads of the block run. Errors: Error if not all threads arrive.
#pragma once

#define __CUDACC__ 1
#define __host__
#define __device__
#define __global__
#define __launch_bounds__(...)
#define __grid_constant__
// A block runs on one host thread. The thread_local memory of a library with kernels is its shared memory, so that it
// can be found and poisoned; such a library must not have other thread_local variables.
#define __shared__ static thread_local

#include <cuda_runtime_api.h>
#include <math.h> // NOLINT: sincos() and others without a namespace

#include <bit>
#include <functional>
#include <tuple>
#include <utility>

struct float2 {
  float x, y;
};
struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned of_x = 1, unsigned of_y = 1, unsigned of_z = 1) : x(of_x), y(of_y), z(of_z) {}
};
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

struct cudaLaunchAttribute;
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};

namespace triax::test::host_cuda {

[[gnu::visibility("hidden")]] inline constinit thread_local char in_shared_memory = 0; // of each library with kernels

/// Source position of a call.
struct Place {
  const char* file;
  unsigned line;
};
cudaError_t launch(const cudaLaunchConfig_t& config, const char* in_shared, std::function<void()> kernel);

// Operations of all threads of a block, or of all lanes of a warp.
void block_barrier(const Place& at);
bool block_any(bool mine, const Place& at);
bool block_all(bool mine, const Place& at);
unsigned warp_ballot(unsigned mask, bool mine, const Place& at);
/// The bits that lane `from` passes.
unsigned long long warp_shuffle(unsigned mask, unsigned long long mine, unsigned from, const Place& at);

template <class T>
T shuffled(unsigned mask, T value, unsigned from, const Place& at) {
  using Bits = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;
  return std::bit_cast<T>(static_cast<Bits>(warp_shuffle(mask, std::bit_cast<Bits>(value), from, at)));
}

} // namespace triax::test::host_cuda

template <class... Parameters, class... Args>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...), Args&&... args) {
  return triax::test::host_cuda::launch(
      *config, &triax::test::host_cuda::in_shared_memory,
      [kernel, held = std::tuple<Parameters...>(std::forward<Args>(args)...)] { std::apply(kernel, held); });
}

inline void __syncthreads(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
  triax::test::host_cuda::block_barrier({file, line});
}
inline int __syncthreads_or(int mine, const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
  return triax::test::host_cuda::block_any(mine != 0, {file, line}) ? 1 : 0;
}
inline int __syncthreads_and(int mine, const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
  return triax::test::host_cuda::block_all(mine != 0, {file, line}) ? 1 : 0;
}
inline unsigned __ballot_sync(unsigned mask, int mine, const char* file = __builtin_FILE(),
                              unsigned line = __builtin_LINE()) {
  return triax::test::host_cuda::warp_ballot(mask, mine != 0, {file, line});
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int distance, const char* file = __builtin_FILE(),
                  unsigned line = __builtin_LINE()) {
  return triax::test::host_cuda::shuffled(mask, value, (threadIdx.x % 32) ^ static_cast<unsigned>(distance),
                                          {file, line});
}
inline int __ffs(int bits) {
  return __builtin_ffs(bits);
}
