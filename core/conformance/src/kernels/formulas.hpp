// SPDX-License-Identifier: Apache-2.0
// The operations by their definitions in kernel_ops.hpp, in double: what every kernel set is compared with. Loops are
// as plain as the formulas, and share nothing with a kernel set.
//
// All floating views are f64, in host memory. Errors: Error for arguments whose values are invalid.
#pragma once

#include <cstdint>

#include "triax/kernels.hpp"

namespace triax::conformance {

class Formulas final : public KernelSet {
 public:
  DeviceKind device_kind() const noexcept override { return DeviceKind::host; }
  Refusals supports(const KernelRequest& request) const override;
  Refusals supports(const OpCall&) const override { return {}; }
  std::size_t scratch_bytes(const OpCall&) const override { return 0; }
  void prepare(const OpCall&) override {}
  void start(Device&) override {}

 protected:
  void run(const OpCall& call, const OpContext& context) override;
};

namespace formulas {

#define TRIAX_OP(Args, name) void compute(const Args& args);
TRIAX_OPERATIONS(TRIAX_OP)
#undef TRIAX_OP

/// Rows of a view that is seen as [rows, last].
inline std::int64_t rows_of(const TensorView& view) {
  return view.size(-1) == 0 ? 0 : view.elements() / view.size(-1);
}
/// Row `r` of a contiguous view that is seen as [rows, last].
inline double* row_of(const TensorView& view, std::int64_t r) {
  return view.as<double>() + r * view.size(-1);
}
inline double& element(const TensorView& view, std::int64_t i) {
  return view.as<double>()[i];
}
/// Element [i, j, k, l] of a view of four dimensions.
inline double& element(const TensorView& view, std::int64_t i, std::int64_t j, std::int64_t k, std::int64_t l) {
  return view.as<double>()[i * view.stride(0) + j * view.stride(1) + k * view.stride(2) + l * view.stride(3)];
}

/// The position of an element in a tensor with dropout, before head0, row0 and column0 are added.
struct DropPosition {
  std::int64_t sample, head, row, column;
};
/// The factor by which dropout multiplies the element: 0 or 1/(1-p).
double drop_factor(const Drop& drop, const DropPosition& at);
/// The position of element `j` of row `r` of a view [rows, n], whose head is number 0 of the global tensor.
DropPosition position_in_rows(const Drop& drop, std::int64_t r, std::int64_t j);
/// Whether query `q` of sample `b` sees key `k`.
bool sees(const Mask& mask, std::int64_t b, std::int64_t q, std::int64_t k);

double activated(Activation act, const double* x, std::int64_t j, std::int64_t n);
/// Adds to dx the derivative of activated() by x, multiplied by `dy`.
void add_derivative(Activation act, double* dx, double dy, const double* x, std::int64_t j, std::int64_t n);

} // namespace formulas

} // namespace triax::conformance
