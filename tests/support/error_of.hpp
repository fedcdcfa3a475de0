// SPDX-License-Identifier: Apache-2.0
// Returns the text of the exception that a call throws.
#pragma once

#include <string>

#include "triax/error.hpp"

namespace triax::test {

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

} // namespace triax::test
