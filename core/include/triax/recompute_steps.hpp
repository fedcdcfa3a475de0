// SPDX-License-Identifier: Apache-2.0
// Optional interface for memory.recompute = "optimal": the parts of a layer's forward that can be run again alone.
//
// Threads: the rank's main thread. Ownership: as for layers (model.hpp). Blocking: never; work is enqueued on the
// stream of the call. Errors: Error.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "triax/model.hpp"

namespace triax {

/// A part of a forward. Both lists have indices in Layer::stash(), of tensors with Life::forward_to_input or
/// Life::forward_to_weight.
struct RecomputeStep {
  std::string name;          // unique in the layer, without spaces, for reports: "mlp.up"
  std::vector<int> writes{}; // all of each, with the bits of the forward; they may be tensors that are kept
  std::vector<int> reads{};
  bool operator==(const RecomputeStep&) const = default;
};

/// Optional interface of layers. The engine chooses tensors of the stash that it does not keep, and runs the steps that
/// write them before backward_input(), in the order of the list: a tensor that a step reads is kept, or an earlier step
/// has written it. Several steps may write one tensor, in different ways. Without this interface on every block of a
/// model, memory.recompute = "optimal" is refused.
class TRIAX_API RecomputeSteps {
 public:
  static constexpr std::string_view kExtension = "triax.recompute_steps";

  /// The list does not change, and is the same on all tensor ranks. Together, the steps write all tensors that a
  /// backward reads from its forward, from the inputs alone. Empty for Purpose::generate.
  virtual std::span<const RecomputeStep> steps() const = 0;
  /// Runs one of them. The views are those of backward_input(); tensors with Life::forward_only exist, too, for values
  /// within the step. It reads inputs and what the step lists.
  virtual void recompute_step(const LayerCall& call, int step, Views params, Views in, Views stash) = 0;

 protected:
  ~RecomputeSteps() = default;
};

} // namespace triax
