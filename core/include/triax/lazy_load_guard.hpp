// SPDX-License-Identifier: Apache-2.0
// Optional device interface: announces work that may load kernels for the first time.
//
// CUDA loads a kernel when it is first launched, and loading may wait for all work that runs on the GPU (CUDA C++
// programming guide, "Lazy loading"). If a stream is waiting for the host at that time, the launching host waits for
// the GPU and the GPU waits for the host: a deadlock. While the flag is set, the device lets no stream wait for the
// host: before it enqueues work behind host work, it runs the progress loop until the host work is done.
//
//   if (auto* loads = find_extension<LazyLoadGuard>(device)) loads->set_may_load_modules(true);
//
// Threads: the rank's main thread. Ownership: none. Blocking: never. Errors: none.
#pragma once

#include <string_view>

#include "triax/export.hpp"

namespace triax {

/// Optional interface of devices whose driver loads kernels at their first use.
class TRIAX_API LazyLoadGuard {
 public:
  static constexpr std::string_view kExtension = "triax.lazy_load_guard";
  virtual ~LazyLoadGuard(); // out of line, so that its type_info exists once, in libtriax_core
  /// Applies until the next call. Initially false.
  virtual void set_may_load_modules(bool may_be) noexcept = 0;
};

} // namespace triax
