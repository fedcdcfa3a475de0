// The part of the optimizer interface that lives in libtriax_core: its vtable.
#include "triax/optimizer.hpp"

namespace triax {

Optimizer::~Optimizer() = default;

} // namespace triax
