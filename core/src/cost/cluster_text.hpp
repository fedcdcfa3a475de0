// SPDX-License-Identifier: Apache-2.0
// A cluster as the text of a cluster file.
#pragma once

#include <string>

#include "cost/cluster.hpp"

namespace triax::cost {

/// Reading it gives the same cluster, with constants rounded to six digits.
std::string to_toml(const Cluster& cluster);

} // namespace triax::cost
