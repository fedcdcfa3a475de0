// SPDX-License-Identifier: Apache-2.0
// The exception that is being handled, whatever its type, as an Error. Plugins may throw anything.
//
// Threads: any, in a catch block. Ownership: values. Blocking: never. Errors: none.
#pragma once

#include <exception>
#include <new>

#include "triax/error.hpp"

namespace triax {

inline Error caught_error() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return Error("out of memory: the system refused an allocation", {},
                 "use less memory in each rank (triax check), end other processes, or raise the limit of this process "
                 "(ulimit -v)");
  } catch (const std::exception& error) {
    return Error(error.what());
  } catch (...) {
    return Error("an unknown exception (not derived from std::exception)");
  }
}

} // namespace triax
