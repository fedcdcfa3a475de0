// SPDX-License-Identifier: Apache-2.0
// A device of kind cuda without a GPU. Threads execute what a CUDA device does with streams, host work and memory, so
// that transports of device memory can be tested on any machine.
//
// Threads: as triax/device.hpp. Each stream has its own thread, which runs its items in order. Each item starts late by
// a time that depends on the seed, the same for the k-th item in every run. So code that does not wait for its inputs
// reads poison, or is found by a sanitizer. Ownership: destroy streams and memory before their device. The work of a
// destroyed stream still runs, and freed memory is kept until the items enqueued before have run. Blocking: ready() and
// wait(), which run the progress loop; the destructor of the device, until all items have run. Errors: Error; an item
// that throws fails the events after it, and later items of its stream do not run.
//
// No thread may read or write device memory at its own address: a host access is a segmentation fault. The same bytes
// have another address, which only items of streams may use: host_alias(). Allocated memory is poisoned: every byte is
// 0xFF, so floats are NaN.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "triax/device.hpp"

namespace triax::test {

/// Stream::native() points to one of these.
class FakeCudaStream {
 public:
  /// For work that a native library would launch: runs on the stream's thread after all earlier items. As on a GPU, the
  /// native stream does not wait for earlier host work: see fake_launch_stream().
  virtual void enqueue(std::function<void()> item) = 0;
  /// host_alias(), for a library that cannot call it directly.
  virtual void* alias(void* inside) const = 0;

 protected:
  ~FakeCudaStream() = default;
};

/// Equal seeds give equal delays.
std::unique_ptr<Device> make_fake_cuda_device(std::uint64_t seed);

/// Number of recordings launched on devices of this kind (triax/recording.hpp).
int fake_recordings_launched() noexcept;
/// Number of first uses announced to devices of this kind (triax/lazy_load_guard.hpp).
int fake_first_uses() noexcept;

/// As cuda::launch_stream(): work enqueued next runs after everything before, including host work. Throws Error for a
/// stream of another device.
FakeCudaStream& fake_launch_stream(Stream& stream);

/// Address at which an item of a stream can access `inside`, on any device of this kind: the alias of device memory, or
/// `inside` itself for other memory. Any thread; for items only.
void* host_alias(void* inside);

} // namespace triax::test
