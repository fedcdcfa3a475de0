// SPDX-License-Identifier: Apache-2.0
// The reason of a failure in which every rank waits for another one.
#pragma once

#include <cmath>
#include <string>

#include "triax/text.hpp"

namespace triax::control {

inline std::string all_wait_text(double waiting_s) {
  return text("all ranks wait, and none makes progress; this one has waited for {} s", std::round(waiting_s * 10) / 10);
}

} // namespace triax::control
