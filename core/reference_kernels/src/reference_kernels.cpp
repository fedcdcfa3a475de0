// SPDX-License-Identifier: Apache-2.0
// The types that the reference operations support.
#include "triax/reference_kernels.hpp"

#include "triax/precision.hpp"

namespace triax::reference_kernels {

Refusals ReferenceKernels::supports(const KernelRequest& request) const {
  const auto computes = [](DType type) { return type == DType::f32 || type == DType::f64; };
  if (!computes(request.compute) || request.compute != request.master) {
    return make_refusal(ErrorCode::kUnsupported, {"train.precision"},
                        "{} computes in fp32 or fp64 throughout; {} with master weights in {} was requested", plugin_,
                        precision_name(request.compute), precision_name(request.master))
        .with_hint("use train.precision fp32 or fp64");
  }
  return {};
}

} // namespace triax::reference_kernels
