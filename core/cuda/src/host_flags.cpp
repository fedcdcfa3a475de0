// SPDX-License-Identifier: Apache-2.0
#include "host_flags.hpp"

#include <atomic>
#include <cstring>

#include "cuda_memory.hpp"
#include "triax/cuda/cuda_check.hpp"
#include "triax/cuda/launch_blocking.hpp"
#include "triax/error.hpp"

namespace triax::cuda {

namespace {

constexpr std::size_t kPage = 64 * 1024;
constexpr std::size_t kApart = 64;     // bytes between flags: one cache line each
constexpr unsigned kDriverApi = 12000; // the CUDA version whose signature of cuStreamWaitValue32 this code uses

} // namespace

void HostFlag::set(std::uint32_t number) noexcept {
  std::atomic_ref<std::uint32_t>(*host_).store(number, std::memory_order_release);
}

HostFlags::HostFlags(bool wanted) {
  if (!wanted || launch_blocking()) return; // a launch behind a wait for a flag would never return
  void* found = nullptr;
  cudaDriverEntryPointQueryResult state{};
  const cudaError_t asked =
      cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &found, kDriverApi, cudaEnableDefault, &state);
  if (asked != cudaSuccess || state != cudaDriverEntryPointSuccess) {
    cudaGetLastError();
    return;
  }
  const auto wait = reinterpret_cast<WaitValue>(found);
  if (works(wait)) wait_ = wait;
}

/// Tries the function: some virtual machines and older drivers have it but reject the call.
bool HostFlags::works(WaitValue wait) {
  const HostFlag flag = allocate();
  cudaStream_t stream = nullptr;
  TRIAX_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const bool taken = wait(stream, flag.device(), 0, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS; // already reached
  const bool passed = taken && cudaStreamSynchronize(stream) == cudaSuccess;
  cudaStreamDestroy(stream);
  if (!passed) cudaGetLastError(); // clears the error, so that the next launch check does not report it
  return passed;
}

HostFlag HostFlags::allocate() {
  if (pages_.empty() || used_ + kApart > kPage) {
    pages_.push_back(std::make_unique<PinnedMemory>(kPage, cudaHostAllocPortable | cudaHostAllocMapped));
    std::memset(pages_.back()->data(), 0, kPage);
    used_ = 0;
  }
  auto* host = reinterpret_cast<std::uint32_t*>(static_cast<std::byte*>(pages_.back()->data()) + used_);
  used_ += kApart;
  void* device = nullptr;
  TRIAX_CUDA(cudaHostGetDevicePointer(&device, host, 0));
  return {host, reinterpret_cast<CUdeviceptr>(device)};
}

void HostFlags::add_wait(const HostFlag& flag, std::uint32_t number, cudaStream_t stream) {
  const CUresult result = wait_(stream, flag.device(), number, CU_STREAM_WAIT_VALUE_GEQ);
  if (result == CUDA_SUCCESS) return;
  throw Error(text("cuStreamWaitValue32: CUDA driver error {}", static_cast<int>(result)), "host_flags.cpp",
              "nvidia-smi shows the state of the GPUs");
}

} // namespace triax::cuda
