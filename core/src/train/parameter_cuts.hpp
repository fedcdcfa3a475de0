// SPDX-License-Identifier: Apache-2.0
// Checks that the ranks of a layout hold every element of a model's parameters, and none twice by mistake: an element
// that no rank holds is never trained and never saved, and one that two ranks hold as different parts is updated twice.
#pragma once

#include "triax/model.hpp"

namespace triax::train {

/// Throws executor::ModelError for the first parameter whose cuts do not divide it: the parts that the ranks hold must
/// make up the whole. Ranks that differ in an axis over which the parameter has no cut hold copies. `context`: of the
/// first rank, for which every layer has been created (parameter_count()). Creates each layer for the ranks that divide
/// tensors, and for those of other axes that cut it.
void check_cuts(const Model& model, const LayerContext& context);

} // namespace triax::train
