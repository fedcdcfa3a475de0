// SPDX-License-Identifier: Apache-2.0
// The exception that is being handled, whatever its type, as an Error. Plugins may throw anything.
//
// Threads: any, in a catch block. Ownership: values. Blocking: never. Errors: none.
#pragma once

#include <exception>

#include "triax/error.hpp"

namespace triax {

inline Error caught_error() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {
    return Error(error.what());
  } catch (...) {
    return Error("an unknown exception (not derived from std::exception)");
  }
}

} // namespace triax
