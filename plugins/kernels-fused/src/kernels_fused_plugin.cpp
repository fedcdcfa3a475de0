// SPDX-License-Identifier: Apache-2.0
// kernels-fused: descriptor and options of the plugin.
#include "fused_kernels.hpp"
#include "triax/plugin.hpp"

namespace {

constexpr triax_option kOptions[] = {
    triax::option_bool("tf32", "false",
                       "allow TF32 in matrix products of fp32 (inputs are rounded to a 10-bit mantissa); faster"),
    triax::option_bool(
        "separate_gelu", "false",
        "in 16 bits, compute GELU after the product, from rounded values; slower, but memory.recompute = "
        "\"cheap\" can repeat it"),
};

} // namespace

TRIAX_PLUGIN(
    triax::KernelSet, triax::kernels_fused::FusedKernels, "kernels-fused", "0.1.0",
    "fused operations on GPUs: cuBLASLt products with their bias and activation, one pass over memory for the rest",
    kOptions)
