// A device of kind cuda without a GPU: what a CUDA device does with streams, host work and memory, on threads, so that
// transports of device memory are tested on any machine.
//
// Threads: as triax/device.hpp; each stream has a thread of its own, which runs its items in order and begins each late
// by a time drawn from the seed: the same for the k-th item in every run. So whoever does not wait for what is needed
// reads poison, or is caught by a sanitizer. Ownership: streams and memory must go before their device; what is on a
// stream that goes still runs, and memory that goes stays until the items put before that have run. Blocking: ready()
// and wait(), which pump; the device's end, until all items have run. Errors: Error; an item that throws fails the
// events after it, and later items of its stream do not run.
//
// Device memory lies where no thread may read or write: a host access is a segmentation fault. The same bytes have
// another address, which only items of streams may use: host_alias(). All memory is poisoned when it is given out:
// every byte 0xFF, a NaN.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "triax/device.hpp"

namespace triax::test {

/// What Stream::native() points to.
class FakeCudaStream {
 public:
  /// For what a native library would launch: runs on the stream's thread after all that was put on it before. As on a
  /// GPU, the native stream knows nothing of host work before it: see fake_launch_stream().
  virtual void enqueue(std::function<void()> item) = 0;
  /// host_alias(), for a library that has no other way to it.
  virtual void* alias(void* inside) const = 0;

 protected:
  ~FakeCudaStream() = default;
};

/// Equal seeds give equal delays.
std::unique_ptr<Device> make_fake_cuda_device(std::uint64_t seed);

/// How often recordings of devices of this kind were launched (triax/recording.hpp).
int fake_recordings_launched() noexcept;
/// How often devices of this kind were told of a first use (triax/first_use.hpp).
int fake_first_uses() noexcept;

/// As cuda::launch_stream(): what is enqueued next runs after everything before, host work too. Throws Error for a
/// stream of another device.
FakeCudaStream& fake_launch_stream(Stream& stream);

/// Where an item of a stream finds what `inside` points to, on any device of this kind: device memory at its other
/// address, all other memory where it is. Any thread; for items only.
void* host_alias(void* inside);

} // namespace triax::test
