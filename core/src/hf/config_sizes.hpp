// SPDX-License-Identifier: Apache-2.0
// Sizes of a model in its config.json: those that the file leaves to their defaults, and lists whose lengths state one
// again.
//
// Threads: pure functions.
#pragma once

#include <string>

#include "hf/model_config.hpp"

namespace triax::hf {

/// For a hint after a size that does not fit: "; num_attention_heads is not set: its default is 32". Empty if the file
/// sets all sizes.
std::string absent_sizes(const ModelConfig& config, const HfArchitecture& architecture, const OptionRows& rows);

/// Adds a refusal for each of the architecture's constant lists that does not have one element for each block.
void refuse_list_lengths(const ModelConfig& config, const HfArchitecture& architecture, int blocks, Refusals& refusals);

} // namespace triax::hf
