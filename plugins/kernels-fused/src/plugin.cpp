// SPDX-License-Identifier: Apache-2.0
// kernels-fused: descriptor and options of the plugin.
#include "triax/plugin.hpp"

#include "kernels.hpp"

namespace {

constexpr triax_option kOptions[] = {
    triax::option_bool("tf32", "false", "products of fp32 matrices may round their factors to TF32's 11 bits: faster")};

} // namespace

TRIAX_PLUGIN(
    triax::KernelSet, triax::kernels_fused::FusedKernels, "kernels-fused", "0.1.0",
    "fused operations on GPUs: cuBLASLt products with their bias and activation, one pass over memory for the rest",
    kOptions)
