// SPDX-License-Identifier: Apache-2.0
// The reference kernel set: every primitive as plain loops, f32 or f64 storage, double arithmetic.
//
// Operations run inside the call. Fused operations are the core's defaults. Errors: Error for types other than f32 and
// f64.
#pragma once

#include "triax/element_type.hpp"
#include "triax/kernels.hpp"
#include "triax/precision.hpp"

namespace triax::kernels_reference {

class ReferenceKernels final : public KernelSet {
 public:
  DeviceKind device_kind() const noexcept override { return DeviceKind::host; }
  using KernelSet::supports;
  Refusals supports(const KernelRequest& request) const override;
  void start(Device&) override {}

 protected:
#define TRIAX_OP(Args, name) void do_##name(const Args& args, const OpContext& context) override;
  TRIAX_PRIMITIVES(TRIAX_OP)
#undef TRIAX_OP
};

/// Calls body(T{}), where T is the C++ type of `type`.
template <class Body>
void by_type(DType type, Body&& body) {
  if (!with_type_among<float, double>(type, body))
    throw Error(text("kernels-reference computes in fp32 and fp64, not in {}", precision_name(type)));
}

/// Number of rows of a view seen as [rows, last dimension].
inline std::int64_t rows_of(const TensorView& view) {
  return view.size(-1) == 0 ? 0 : view.elements() / view.size(-1);
}

} // namespace triax::kernels_reference
