// SPDX-License-Identifier: Apache-2.0
// Compares the ties of a model between ranks. Ranks that describe a tied parameter differently begin with different
// weights, or add gradients of different parameters: no later check finds it.
//
// Threads: pure functions. Errors: ModelError, with the parameter, the property and both ranks.
#pragma once

#include <span>
#include <string>

#include "triax/model.hpp"

namespace triax::executor {

/// Throws ModelError if the lists differ. `rank`, `other_rank`: as Layout::describe() names them.
void check_tie_lists(std::span<const Tie> ties, const std::string& rank, std::span<const Tie> others,
                     const std::string& other_rank);

/// A layer of a tie, as a rank describes it.
struct TiedLayer {
  const Layer& layer;
  const std::string& rank;
};

/// The properties that two ranks must have in common. model: of the whole parameter, for ranks that may hold different
/// parts. part: these, and the part that a rank holds.
enum class TieProperties { model, part };

/// Throws ModelError if the two ranks describe parameter `param` of the same layer differently. `tied_to`: the other
/// side of the tie, for the message.
void check_tied_parameter(const std::string& param, const std::string& tied_to, const TiedLayer& one,
                          const TiedLayer& other, TieProperties properties);

} // namespace triax::executor
