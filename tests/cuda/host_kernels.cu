// SPDX-License-Identifier: Apache-2.0
#include "host_kernels.hpp"
#include "triax/cuda/launch_kernel.cuh"

namespace triax::cuda {

namespace {

constexpr unsigned kBlock = 64;

__global__ void neighbours(int* out, bool barrier) {
  __shared__ int values[1024];
  const unsigned self = threadIdx.x, count = blockDim.x;
  values[self] = static_cast<int>(self);
  if (barrier) __syncthreads();
  out[blockIdx.x * count + self] = values[(self + 1) % count];
}

__global__ void some_at_a_barrier(unsigned most) {
  if (threadIdx.x < most) __syncthreads();
}

__global__ void two_barriers() {
  if (threadIdx.x % 2 == 0) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

__global__ void some_in_a_shuffle(unsigned most) {
  if (threadIdx.x % 32 < most) __shfl_xor_sync(0xFFFFFFFFu, 1.0f, 1);
}

__global__ void places(int* counts) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  counts[block * blockDim.x * blockDim.y * blockDim.z + thread] += 1;
}

__global__ void unwritten(float* out) {
  __shared__ float value;
  if (threadIdx.x != 0) return;
  out[blockIdx.x] = value;
  value = 1;
}

__global__ void order(int* numbers, int* count) {
  numbers[(*count)++] = static_cast<int>(blockIdx.x);
}

__global__ void together(unsigned* ballots, double* sums, int* votes) {
  const unsigned self = threadIdx.x;
  ballots[self] = __ballot_sync(0xFFFFFFFFu, self % 2 == 1 && self < 32);
  double sum = self;
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, distance);
  sums[self] = sum;
  votes[self] = __syncthreads_or(self == 5) + 2 * __syncthreads_and(self != 5) + 4 * __syncthreads_and(self < kBlock) +
                8 * __syncthreads_or(self > kBlock);
}

} // namespace

cudaError_t launch_neighbours(int* out, bool barrier, dim3 grid, dim3 block, cudaStream_t stream) {
  const cudaLaunchConfig_t config{grid, block, 0, stream, nullptr, 0};
  return cudaLaunchKernelEx(&config, neighbours, out, barrier);
}
cudaError_t launch_some_at_a_barrier(unsigned most, cudaStream_t stream) {
  return launch_kernel(some_at_a_barrier, {1, kBlock}, stream, most);
}
cudaError_t launch_two_barriers(cudaStream_t stream) {
  return launch_kernel(two_barriers, {1, kBlock}, stream);
}
cudaError_t launch_some_in_a_shuffle(unsigned most, cudaStream_t stream) {
  return launch_kernel(some_in_a_shuffle, {1, kBlock}, stream, most);
}
cudaError_t launch_places(int* counts, dim3 grid, dim3 block, cudaStream_t stream) {
  const cudaLaunchConfig_t config{grid, block, 0, stream, nullptr, 0};
  return cudaLaunchKernelEx(&config, places, counts);
}
cudaError_t launch_unwritten(float* out, unsigned blocks, cudaStream_t stream) {
  return launch_kernel(unwritten, {blocks, kBlock}, stream, out);
}
cudaError_t launch_order(int* numbers, int* count, unsigned blocks, cudaStream_t stream) {
  return launch_kernel(order, {blocks, 1}, stream, numbers, count);
}
cudaError_t launch_together(unsigned* ballots, double* sums, int* votes, cudaStream_t stream) {
  return launch_kernel(together, {1, kBlock}, stream, ballots, sums, votes);
}

} // namespace triax::cuda
