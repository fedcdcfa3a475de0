#include "triax/first_use.hpp"

namespace triax {

FirstUse::~FirstUse() = default;

} // namespace triax
