// SPDX-License-Identifier: Apache-2.0
#include "host_flags.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "cuda_memory.hpp"
#include "triax/cuda/cuda_check.hpp"
#include "triax/cuda/launch_blocking.hpp"
#include "triax/error.hpp"
#include "triax/poll_pause.hpp"
#include "triax/wait_deadline.hpp"

namespace triax::cuda {

namespace {

constexpr std::size_t kPage = 64 * 1024;
constexpr std::size_t kApart = 64;     // bytes between flags: one cache line each
constexpr unsigned kDriverApi = 12000; // the CUDA version whose signature of cuStreamWaitValue32 this code uses
constexpr int kLibraryStreams = 2;     // of cuBLAS and NCCL, which the device does not know

/// The GPU's hardware queues. CUDA reads the variable when it creates the context.
int hardware_queues() {
  constexpr int kDefault = 8, kMaxQueues = 32;
  const char* given = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const long queues = given ? std::strtol(given, nullptr, 0) : kDefault;
  return queues >= 1 && queues <= kMaxQueues ? static_cast<int>(queues) : kDefault;
}

int attribute(cudaDeviceAttr name) {
  int gpu = 0, value = 0;
  TRIAX_CUDA(cudaGetDevice(&gpu));
  TRIAX_CUDA(cudaDeviceGetAttribute(&value, name, gpu));
  return value;
}

/// Flags of waits behind which work sees what network cards wrote before; none if no wait ensures that. Work that is
/// enqueued when the writes are complete sees them on every GPU.
std::optional<unsigned> flags_of_waits() {
  if (attribute(cudaDevAttrGPUDirectRDMASupported) == 0 ||
      attribute(cudaDevAttrGPUDirectRDMAWritesOrdering) >= cudaGPUDirectRDMAWritesOrderingOwner)
    return CU_STREAM_WAIT_VALUE_GEQ;
  if ((attribute(cudaDevAttrGPUDirectRDMAFlushWritesOptions) & cudaFlushGPUDirectRDMAWritesOptionMemOps) != 0)
    return CU_STREAM_WAIT_VALUE_GEQ | CU_STREAM_WAIT_VALUE_FLUSH;
  return std::nullopt;
}

/// As the GPU compares them: also after an overflow.
bool is_later(std::uint32_t value, std::uint32_t than) {
  return static_cast<std::int32_t>(value - than) > 0;
}

} // namespace

void HostFlag::Slot::raise(std::uint32_t value) noexcept {
  const std::atomic_ref<std::uint32_t> flag(*host);
  if (is_later(value, flag.load(std::memory_order_relaxed))) flag.store(value, std::memory_order_release);
}

bool HostFlag::Slot::is_waited_for() const noexcept {
  return is_later(waited, std::atomic_ref<std::uint32_t>(*host).load(std::memory_order_relaxed));
}

HostFlags::HostFlags(bool wanted, Device& device) : device_(device), max_streams_(hardware_queues() - kLibraryStreams) {
  if (!wanted || launch_blocking()) return; // a launch behind a wait for a flag would never return
  if (max_streams_ < 1) return;
  const std::optional<unsigned> flags = flags_of_waits();
  if (!flags) return;
  flags_of_wait_ = *flags;
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
  const bool taken = wait(stream, flag.slot_->device, 0, flags_of_wait_) == CUDA_SUCCESS; // already reached
  const bool passed = taken && cudaStreamSynchronize(stream) == cudaSuccess;
  cudaStreamDestroy(stream);
  free(flag);
  if (!passed) cudaGetLastError(); // clears the error, so that the next launch check does not report it
  return passed;
}

HostFlag HostFlags::allocate() {
  if (free_.empty()) free_.push_back(&new_slot());
  HostFlag::Slot& slot = *free_.back();
  free_.pop_back();
  return HostFlag(slot);
}

HostFlag::Slot& HostFlags::new_slot() {
  free_.reserve(slots_.size() + 1); // free() cannot throw
  if (pages_.empty() || used_ + kApart > kPage) {
    pages_.push_back(std::make_unique<PinnedMemory>(kPage, nullptr, cudaHostAllocPortable | cudaHostAllocMapped));
    std::memset(pages_.back()->data(), 0, kPage);
    used_ = 0;
  }
  auto* host = reinterpret_cast<std::uint32_t*>(static_cast<std::byte*>(pages_.back()->data()) + used_);
  void* device = nullptr;
  TRIAX_CUDA(cudaHostGetDevicePointer(&device, host, 0));
  used_ += kApart;
  return slots_.emplace_back(HostFlag::Slot{host, reinterpret_cast<CUdeviceptr>(device)});
}

void HostFlags::add_wait(const HostFlag& flag, std::uint32_t number, cudaStream_t stream) {
  const std::uint32_t value = flag.first_ + number;
  const CUresult result = wait_(stream, flag.slot_->device, value, flags_of_wait_);
  if (result != CUDA_SUCCESS)
    throw Error(text("cuStreamWaitValue32: CUDA driver error {}", static_cast<int>(result)), "host_flags.cpp",
                "nvidia-smi shows the state of the GPUs");
  flag.slot_->waited = value;
}

void HostFlags::finish_waits() noexcept {
  WaitDeadline until(deadline_in(device_.default_timeout()));
  PollPause pause;
  while (std::ranges::any_of(slots_, &HostFlag::Slot::is_waited_for) && !device_.abort_flag().raised()) {
    if (device_.progress()) {
      pause.advance();
      continue;
    }
    if (until.passed())
      device_.abort_flag().raise("a call that waits for the GPU timed out: streams wait for the host");
    pause.idle();
  }
  for (HostFlag::Slot& slot : slots_) slot.raise(slot.waited);
}

} // namespace triax::cuda
