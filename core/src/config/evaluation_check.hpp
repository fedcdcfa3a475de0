// SPDX-License-Identifier: Apache-2.0
// Checks what a run evaluates on, and when.
#pragma once

#include "config/load.hpp"
#include "config/values.hpp"
#include "triax/error.hpp"

namespace triax::config {

Refusals check_evaluation(const Values& values, Purpose purpose);

} // namespace triax::config
