// SPDX-License-Identifier: Apache-2.0
// A model of the Llama family as a plugin.
#include "grouped_model.hpp"

TRIAX_PLUGIN(triax::Model, triax::test_models::Grouped, "model-grouped", "0.1.0", "parameters of the Llama family",
             triax::test_models::kOptions)
