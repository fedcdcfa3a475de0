// SPDX-License-Identifier: Apache-2.0
// The CUDA device: a kernel set for GPUs creates it as the rank's device.
//
//   Refusals device_available(const DeviceRequest& request) const override { return cuda::available(request); }
//   std::unique_ptr<Device> make_device(const DeviceRequest& request) const override {
//     return cuda::make_device(request);
//   }
//
// The local rank is the number of the rank's GPU (among those that CUDA_VISIBLE_DEVICES leaves).
//
// Threads: as in triax/device.hpp. make_device() sets the current GPU of the calling thread, which must be the rank's
// main thread. Ownership: destroy streams and memory before their device. Blocking: allocating and freeing memory wait
// for the GPU; wait(), ready() and launch_stream() may run the progress loop. Errors: Error. An error of a kernel is
// reported by a later call, or as the failure of the next event that is waited for; after it, this process can no
// longer use the GPU.
//
// Waiting for the host: if a stream has to wait for host work (a host event, a host task), the device enqueues a stream
// memory operation (cuStreamWaitValue32): the GPU waits for a number in pinned memory, which the progress loop writes.
// launch_stream() instead runs the progress loop until the host work is done, and later work is enqueued after that, if
// one of these is true: the device or its driver does not support these operations, or does not order or flush writes
// of network cards into its memory; CUDA_LAUNCH_BLOCKING is set; or the device has more streams than hardware queues
// (CUDA_DEVICE_MAX_CONNECTIONS, by default 8, of which two are left to libraries), whose streams would wait for each
// other.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "triax/device.hpp"
#include "triax/error.hpp"
#include "triax/export.hpp"

namespace triax::cuda {

/// Settings of a device that no request has.
struct DeviceSettings {
  /// How a stream waits for the host. automatic: with memory operations if they are supported.
  enum class HostWaits { automatic, progress_loop } host_waits = HostWaits::automatic;
};

/// Whether this machine has a driver, and a GPU for the rank with compute capability 8.0 or higher and enough memory.
/// Creates no context.
TRIAX_API Refusals available(const DeviceRequest& request);

/// Throws Error with the reason of available() if the device is not available.
TRIAX_API std::unique_ptr<Device> make_device(const DeviceRequest& request, const DeviceSettings& settings = {});

/// The native stream for launches: work that is enqueued on it next runs after all earlier work of `stream`. Use it
/// instead of Stream::native(). May run the progress loop, and then throws Error as Stream::ready() does. Throws Error
/// if `stream` is not one of a CUDA device.
TRIAX_API cudaStream_t launch_stream(Stream& stream);

} // namespace triax::cuda
