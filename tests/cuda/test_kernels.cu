// SPDX-License-Identifier: Apache-2.0
#include "test_kernels.hpp"

namespace triax::cuda {

namespace {

__global__ void run_until(const volatile unsigned* flag) {
  constexpr long long kCycles = 200'000'000'000; // about two minutes
  const long long began = clock64();
  while (*flag == 0 && clock64() - began < kCycles) __nanosleep(1000);
}

__global__ void write_at(int* address) {
  *address = 1;
}

} // namespace

void launch_until(const unsigned* flag, cudaStream_t stream) {
  run_until<<<1, 1, 0, stream>>>(flag);
}

void launch_write(int* address, cudaStream_t stream) {
  write_at<<<1, 1, 0, stream>>>(address);
}

} // namespace triax::cuda
