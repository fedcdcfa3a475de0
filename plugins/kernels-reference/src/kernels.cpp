// SPDX-License-Identifier: Apache-2.0
// The types that kernels-reference supports.
#include "kernels.hpp"

namespace triax::kernels_reference {

Support ReferenceKernels::supports(const KernelRequest& request) const {
  const auto computes = [](DType type) { return type == DType::f32 || type == DType::f64; };
  if (!computes(request.compute) || request.compute != request.master) {
    return Support::no(
               "kernels-reference computes in f32 or f64 throughout; {} with master weights in {} was asked "
               "(train.precision)",
               name_of(request.compute), name_of(request.master))
        .hint("use train.precision fp32 or fp64");
  }
  return Support::yes();
}

} // namespace triax::kernels_reference
