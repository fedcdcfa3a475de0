// kernels-cublas: the door.
#include "triax/plugin.hpp"

#include "kernels.hpp"

namespace {

constexpr triax_option kOptions[] = {
    triax::option_bool("tf32", "false", "products of f32 matrices may round their factors to TF32's 11 bits: faster")};

} // namespace

TRIAX_PLUGIN(triax::KernelSet, triax::cublas::CublasKernels, "kernels-cublas", "0.1.0",
             "cuBLAS products and one plain kernel for each operation, on GPUs", kOptions)
