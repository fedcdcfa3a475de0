// SPDX-License-Identifier: Apache-2.0
// kernels-cpu: plugin entry and options.
#include "cpu_kernels.hpp"
#include "triax/plugin.hpp"

namespace {

constexpr triax_option kOptions[] = {triax::option_int(
    "threads", "0", 0, 1024, "CPU threads of this rank; 0: this machine's cores divided among its ranks")};

} // namespace

TRIAX_PLUGIN(triax::KernelSet, triax::kernels_cpu::CpuKernels, "kernels-cpu", "0.1.0",
             "matrix products and vectorised loops, on the cores of this machine", kOptions)
