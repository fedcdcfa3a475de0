// What a wait throws at its deadline.
//
// Threads: any. Ownership: none. Blocking: never. Errors: it is one.
#pragma once

#include <string>

namespace triax {

[[noreturn]] void throw_late(const std::string& place);

} // namespace triax
