// SPDX-License-Identifier: Apache-2.0
// Number of parameters of a model.
#pragma once

#include <cstdint>

#include "triax/model.hpp"

namespace triax::train {

/// Elements of the global shapes. Of tied parameters, the first counts. Creates every layer and calls each function
/// that describes it: later calls are not guarded, so one that throws always is found here, and its error names the
/// plugin.
std::int64_t parameter_count(const Model& model, const LayerContext& context);

} // namespace triax::train
