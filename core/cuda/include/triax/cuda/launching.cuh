// SPDX-License-Identifier: Apache-2.0
// Launches a kernel for the type of a view: the part that the launches of all operations share.
//
//   over_elements(Op::add, args.y, context, [&]<class T>(T, const Launch& launch, std::int64_t count) {
//     launch(add_elements<T>, args.y.as<T>(), args.a.as<const T>(), args.b.as<const T>(), count);
//   });
//
// Threads: the rank's main thread. Ownership: none. Blocking: may run the progress loop (launch_stream()). Errors:
// Error with the operation, for a type without kernels and for a failed launch. Nothing is launched for an empty view.
#pragma once

#include "triax/cuda/check.hpp"
#include "triax/cuda/device.hpp"
#include "triax/cuda/launch_kernel.cuh"
#include "triax/cuda/types.hpp"
#include "triax/kernels.hpp"

namespace triax::cuda {

class Launch {
 public:
  Launch(Op op, Grid grid, const OpContext& context) : op_(op), grid_(grid), stream_(launch_stream(context.stream)) {}

  template <class... Parameters, class... Args>
  void operator()(void (*kernel)(Parameters...), const Args&... args) const {
    if (const cudaError_t error = launch_kernel(kernel, grid_, stream_, args...); error != cudaSuccess)
      fail(error, text("kernel {}", name_of(op_)).c_str(), __FILE__, __LINE__);
  }

 private:
  Op op_;
  Grid grid_;
  cudaStream_t stream_;
};

/// Calls body(T{}, launch, count) with a grid of one thread per element of the view; T is the element type.
template <class Body>
void over_elements(Op op, const TensorView& view, const OpContext& context, Body body) {
  const std::int64_t count = view.elements();
  if (count == 0) return;
  const Launch launch(op, grid_of_elements(count), context);
  by_type(view.dtype(), [&](auto zero) { body(zero, launch, count); });
}

/// Calls body(T{}, launch, rows) with a grid of one block per row of a view [rows, n].
template <class Body>
void over_rows(Op op, const TensorView& view, const OpContext& context, Body body) {
  const std::int64_t rows = rows_of(view);
  if (rows == 0) return;
  const Launch launch(op, grid_of_rows(rows), context);
  by_type(view.dtype(), [&](auto zero) { body(zero, launch, rows); });
}

} // namespace triax::cuda
