// SPDX-License-Identifier: Apache-2.0
// kernels-template: plugin entry.
#include <triax/plugin.hpp>

#include "kernels.hpp"

TRIAX_PLUGIN(triax::KernelSet, triax::kernels_template::DerivedKernels, "kernels-template", "0.1.0",
             "primitives for NVIDIA GPUs, with another sum of two tensors", nullptr)
