// SPDX-License-Identifier: Apache-2.0
// kernels-template: the primitives for GPUs, and an implementation of one operation.
#pragma once

#include <triax/cuda/primitives.hpp>

namespace triax::kernels_template {

class DerivedKernels final : public cuda::Primitives {
 public:
  DerivedKernels() : Primitives({"kernels-template"}) {}

 protected:
  void do_add(const Add& args, const OpContext& context) override;
};

} // namespace triax::kernels_template
