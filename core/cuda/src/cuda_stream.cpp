// SPDX-License-Identifier: Apache-2.0
#include "cuda_stream.hpp"

#include <nvtx3/nvToolsExt.h>

#include <utility>

#include "triax/cuda/cuda_check.hpp"
#include "triax/cuda/cuda_device.hpp"
#include "triax/error.hpp"

namespace triax::cuda {

namespace {

constexpr int kMaxBehind = 256; // entries; one of native_for_enqueue() may be several, such as a copy's or a product's

cudaStream_t make_native() {
  cudaStream_t native = nullptr;
  TRIAX_CUDA(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking)); // does not synchronise with the default stream
  return native;
}

} // namespace

CudaStream::CudaStream(std::string name, Device& device, HostFlags& flags)
    : Stream(std::move(name), device),
      flags_(flags),
      native_(make_native()),
      events_(this->name()),
      queue_(this->name(), device) {
  if (flags_.usable()) flag_ = flags_.allocate();
  flags_.add_stream();
}

CudaStream::~CudaStream() {
  queue_.drop();
  if (flag_) {
    flag_.set(queue_.last());
    flags_.free(flag_);
  }
  flags_.remove_stream();
  cudaStreamDestroy(native_); // work on it continues
}

void CudaStream::wait(const Event& event) {
  if (event.fired() && !event.failure()) return;
  if (const auto* of_device = dynamic_cast<const DeviceEvent*>(event.state()); of_device && !event.failure()) {
    count_entry();
    TRIAX_CUDA(cudaStreamWaitEvent(native_, of_device->native(), 0));
    has_device_work_ = true;
    return;
  }
  host_work().wait(event);
}

void CudaStream::start_recording() {
  wait_for_host_work();
  recording_ = true;
}

void CudaStream::stop_recording() noexcept {
  recording_ = false;
  events_.release();
}

Event CudaStream::record() {
  if (recording_) return events_.capture(native_);
  if (queue_.empty() || uses_flag()) {
    wait_for_host_flag();
    return record_native();
  }
  return host_work().mark(work_before());
}

void CudaStream::post(HostTask& task) {
  host_work().post(task, work_before());
}

/// Fires when the device work that was enqueued since the last item is done. Work before that item needs no event,
/// because queue items start in order.
Event CudaStream::work_before() {
  if (!has_device_work_) return {};
  has_device_work_ = false;
  return record_native();
}

Event CudaStream::record_native() {
  count_entry();
  return events_.record(native_, label_);
}

/// Counts an entry of the native stream that may be behind a wait for the host.
void CudaStream::count_entry() noexcept {
  entries_behind_wait_ = queue_.empty() ? 0 : entries_behind_wait_ + 1;
}

void CudaStream::wait_for_host_flag() {
  if (queue_.empty() || held_ == queue_.last()) return;
  held_ = queue_.last();
  count_entry();
  flags_.add_wait(flag_, held_, native_);
}

/// The queue, before an item is added to it. Throws Error during capture.
device::HostQueue& CudaStream::host_work() {
  if (recording_)
    throw Error("work that the host advances cannot be captured", "stream " + name(),
                "leave train.cuda_graph out, or use communicators whose calls run on the GPU's streams");
  return queue_;
}

bool CudaStream::advance() noexcept {
  return queue_.advance([this](std::uint32_t number) {
    if (flag_) flag_.set(number);
  });
}

void CudaStream::ready() {
  queue_.progress_until(record());
}

cudaStream_t CudaStream::native_for_enqueue() {
  count_entry();
  if (!queue_.empty() && (!uses_flag() || entries_behind_wait_ > kMaxBehind)) {
    wait_for_host_work();
  } else {
    wait_for_host_flag();
  }
  has_device_work_ = true;
  return native_;
}

void CudaStream::wait_for_work() {
  if (!recording_) ready();
}

void CudaStream::wait_for_host_work() {
  queue_.finish_all();
}

void CudaStream::on_begin(const char* label) noexcept {
  label_ = label;
  nvtxRangePushA(label);
}

void CudaStream::on_end() noexcept {
  nvtxRangePop();
}

cudaStream_t launch_stream(Stream& stream) {
  auto* own = dynamic_cast<CudaStream*>(&stream);
  TRIAX_REQUIRE(own, "stream \"{}\" does not belong to a CUDA device", stream.name());
  return own->native_for_enqueue();
}

} // namespace triax::cuda
