// SPDX-License-Identifier: Apache-2.0
// Checks of a layer's descriptions, without its neighbours.
#pragma once

#include "triax/model.hpp"

namespace triax::executor {

/// Throws ModelError if a list differs at its second call, if a tensor has no known type, or if two outputs have one
/// name. Memory is counted and assigned from separate calls, so that a list that changes would be read past its end.
void check_layer(const Layer& layer);

} // namespace triax::executor
