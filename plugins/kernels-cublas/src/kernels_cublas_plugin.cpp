// SPDX-License-Identifier: Apache-2.0
// kernels-cublas: the primitives of triax::cuda_primitives; fused operations are the core's defaults.
#include "triax/cuda/primitives.hpp"
#include "triax/plugin.hpp"

namespace {

using triax::cuda::Primitives;

class CublasKernels final : public Primitives {
 public:
  explicit CublasKernels(const triax::PluginContext& context)
      : Primitives({.plugin = "kernels-cublas", .tf32 = context.options.flag("tf32")}) {}
};

constexpr triax_option kOptions[] = {triax::option_bool(
    "tf32", "false", "allow TF32 in matrix products of fp32 (inputs are rounded to a 10-bit mantissa); faster")};

} // namespace

TRIAX_PLUGIN(triax::KernelSet, CublasKernels, "kernels-cublas", "0.1.0",
             "cuBLAS products and one plain kernel for each operation, on GPUs", kOptions)
