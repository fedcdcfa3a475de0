// The part of the proof that one rank's program can be given alone.
//
// Threads: pure. Ownership: values. Blocking: never. Errors: what does not hold is returned, never thrown.
#pragma once

#include <vector>

#include "schedule/verify.hpp"

namespace triax::schedule {

/// Nothing twice, nothing missing, needs met, gradients ascending, slots and waits right, within the cap. Empty:
/// proved.
std::vector<Fault> verify_rank(const Program& program, const Purpose& purpose);

} // namespace triax::schedule
