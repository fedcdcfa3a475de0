// The CUDA device: what a kernel set on GPUs hands to the core as the rank's device.
//
//   Support device_available(const DeviceRequest& request) const override { return cuda::available(request); }
//   std::unique_ptr<Device> make_device(const DeviceRequest& request) const override { return
//   cuda::make_device(request); }
//
// A rank's GPU is the one whose number is the rank's among those of its machine (CUDA_VISIBLE_DEVICES counts).
//
// Threads: as triax/device.hpp; the GPU becomes the current one of the thread that makes the device, which is the
// rank's main thread and stays with it. Ownership: streams and memory must go before their device. Blocking: allocating
// and freeing memory wait for the GPU; nothing else does but wait() and ready(), which pump. Errors: Error. What a
// kernel did wrong shows at a later call, or as the failure of the next event that is waited for; after it the GPU is
// lost to this process.
//
// Host work on a stream. What a stream is told to wait for of the host (a host event, a host task) becomes a stream
// memory operation: the GPU waits for a number in pinned memory, which the pump writes. Where the device or its driver
// has none of these, or launches are made to block, work behind it is put on the native stream only when the host is
// through: launch_stream() pumps until then.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "triax/device.hpp"
#include "triax/error.hpp"
#include "triax/export.hpp"

namespace triax::cuda {

struct DeviceSettings {
  /// How a stream waits for the host. automatic: memory operations where they are to be had.
  enum class HostWaits { automatic, pumped } host_waits = HostWaits::automatic;
};

/// Whether this machine has a driver, a GPU for the rank, of compute capability 8.0 at least, with the memory it will
/// take. Makes no context.
TRIAX_API Support available(const DeviceRequest& request);

/// Throws Error with what available() says against it.
TRIAX_API std::unique_ptr<Device> make_device(const DeviceRequest& request, const DeviceSettings& settings = {});

/// The native stream of a stream of such a device, for launches: what is put on it next runs after everything before.
/// Use it in place of Stream::native(). Throws Error for a stream of another device, and as ready() where it pumps.
TRIAX_API cudaStream_t launch_stream(Stream& stream);

} // namespace triax::cuda
