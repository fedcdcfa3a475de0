// SPDX-License-Identifier: Apache-2.0
// Cost of a layer, found by running its passes: views without data, a kernel set that adds up operations, and
// communicators that record collectives. So the layers of any model plugin have a cost.
//
// Errors: those of the layer's passes.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "cost/collective_cost.hpp"
#include "cost/operation_cost.hpp"
#include "triax/model.hpp"
#include "triax/recompute_steps.hpp"

namespace triax::cost {

/// One pass of one microbatch.
struct PassTime {
  double compute_s = 0; // time of the operations, or of the host that launches them
  double tensor_s = 0;  // of collectives over the tensor ranks
  double all_s() const { return compute_s + tensor_s; }
  PassTime& operator+=(const PassTime& other) {
    compute_s += other.compute_s;
    tensor_s += other.tensor_s;
    return *this;
  }
};

struct LayerTime {
  PassTime forward, input, weight;
  double parameters = 0;     // as a rank stores them
  double boundary_bytes = 0; // bytes of the layer's outputs on one rank
  Refusals refusals{};       // of the kernel set that was asked
};

/// Time of a part of a forward that runs again, of one microbatch: CheapRecompute::recompute() or a step.
struct RepeatedTime {
  PassTime pass;
  Refusals refusals{}; // of the kernel set that was asked
};

/// Why a kernel set does not support a call; empty: nothing is asked.
using SupportsCall = std::function<Refusals(const OpCall&)>;

/// Costs of layers on a cluster, as a training program runs them.
class LayerCost {
 public:
  LayerCost(const Cluster& cluster, const CodeTraits& code)
      : cluster_(cluster), code_(code), operations_(cluster.device, code), collectives_(cluster) {}

  /// `context.layout` is the layout of the run. `asked` is called for each call of the layer.
  LayerTime of(Layer& layer, const LayerContext& context, const SupportsCall& asked = {}) const;
  /// The layer must offer CheapRecompute.
  RepeatedTime of_recompute(Layer& layer, const LayerContext& context, const SupportsCall& asked = {}) const;
  /// The steps that the layer offers, in their order.
  std::vector<RepeatedTime> of_steps(Layer& layer, RecomputeSteps& offered, const LayerContext& context,
                                     const SupportsCall& asked = {}) const;

 private:
  PassTime time_of(OperationTime operations, std::span<const Collective> posted, const LayerContext& context) const;

  const Cluster& cluster_;
  const CodeTraits code_;
  const OperationCost operations_;
  const CollectiveCost collectives_;
};

} // namespace triax::cost
