// kernels-reference: the oracle of every other kernel set.
#include "triax/plugin.hpp"

#include "kernels.hpp"

TRIAX_PLUGIN(triax::KernelSet, triax::reference::ReferenceKernels, "kernels-reference", "0.1.0",
             "every operation as plain loops in double: the oracle of other kernel sets", nullptr)
