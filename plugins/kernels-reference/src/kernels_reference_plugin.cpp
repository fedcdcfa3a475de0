// SPDX-License-Identifier: Apache-2.0
// kernels-reference: plugin entry. The tests compare every other kernel set with this one.
#include <triax/plugin.hpp>
#include <triax/reference_kernels.hpp>

TRIAX_PLUGIN(triax::KernelSet, triax::reference_kernels::ReferenceKernels, "kernels-reference", "0.1.0",
             "every operation as plain loops in double: the reference for other kernel sets", nullptr)
