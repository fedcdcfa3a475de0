// SPDX-License-Identifier: Apache-2.0
// `triax plan --predict`: predicts the runs of a list.
//
// Blocking: reads the list, computes. Errors: printed, all together.
#pragma once

#include <string>

#include "cost/cluster.hpp"

namespace triax::app {

/// train.precision of all lines of a list.
inline constexpr const char* kListPrecision = "bf16";

/// Returns the exit status.
int predict_list(const cost::Cluster& cluster, const std::string& list, bool json);

} // namespace triax::app
