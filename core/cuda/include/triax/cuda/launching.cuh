// SPDX-License-Identifier: Apache-2.0
// Launches a kernel for the type of a view: the part that the launches of all operations share.
//
//   @code
//   over_elements(Op::add, args.y, context, [&]<class T>(T, const Launch& launch, std::int64_t count) {
//     launch(add_elements<T>, args.y.as<T>(), args.a.as<const T>(), args.b.as<const T>(), count);
//   });
//   @endcode
//
// Host threads: the rank's main thread. Ownership: none. Blocking: may run the progress loop (launch_stream()). Errors:
// Error with the operation, for a type without kernels and for a failed launch. Nothing is launched for an empty view.
#pragma once

#include <source_location>
#include <string_view>

#include "triax/cuda/cuda_check.hpp"
#include "triax/cuda/cuda_device.hpp"
#include "triax/cuda/launch_kernel.cuh"
#include "triax/cuda/types.hpp"
#include "triax/kernels.hpp"

namespace triax::cuda {

/// The name of a launch, and the caller's file and line, for errors. An Op, and a string literal, convert to it.
struct LaunchSite {
  LaunchSite(Op op, std::source_location at = std::source_location::current()) : kernel(name_of(op)), where(at) {}
  LaunchSite(const char* name, std::source_location at = std::source_location::current()) : kernel(name), where(at) {}
  std::string_view kernel;
  std::source_location where;
};

/// Launches a kernel with a grid, on the stream of an operation. Throws Error if the launch failed.
class Launch {
 public:
  Launch(LaunchSite site, Grid grid, const OpContext& context)
      : site_(site), grid_(grid), stream_(launch_stream(context.stream)) {}

  template <class... Parameters, class... Args>
  void operator()(void (*kernel)(Parameters...), const Args&... args) const {
    check_launch(site_.kernel, launch_kernel(kernel, grid_, stream_, args...), site_.where);
  }

 private:
  LaunchSite site_;
  Grid grid_;
  cudaStream_t stream_;
};

/// Calls body(T{}, launch, count) with a grid of one thread per element of the view; T is the element type.
template <class Body>
void over_elements(LaunchSite site, const TensorView& view, const OpContext& context, Body body) {
  const std::int64_t count = view.elements();
  if (count == 0) return;
  const Launch launch(site, grid_of_elements(count), context);
  by_type(view.dtype(), [&](auto zero) { body(zero, launch, count); });
}

/// Calls body(T{}, launch, rows) with a grid of one block per row of a view [rows, n].
template <class Body>
void over_rows(LaunchSite site, const TensorView& view, const OpContext& context, Body body) {
  const std::int64_t rows = rows_of(view);
  if (rows == 0) return;
  const Launch launch(site, grid_of_blocks(rows), context);
  by_type(view.dtype(), [&](auto zero) { body(zero, launch, rows); });
}

} // namespace triax::cuda
