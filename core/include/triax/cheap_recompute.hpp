// SPDX-License-Identifier: Apache-2.0
// Optional interfaces for memory.recompute = "cheap": the tensors that a layer computes again without matrix products,
// and the calls that a kernel set cannot repeat with equal bits.
//
// Threads: the rank's main thread. Ownership: as for layers (model.hpp) and kernel sets (kernels.hpp). Blocking: never;
// work is enqueued on the stream of the call. Errors: Error.
#pragma once

#include <span>
#include <string_view>

#include "triax/error.hpp"
#include "triax/kernels.hpp"
#include "triax/model.hpp"

namespace triax {

/// Optional interface of layers: tensors of the stash that the backward reads, and that the layer can compute again
/// from other tensors. The engine then keeps them within the forward, and from backward_input() to their last reader.
/// Without this interface on every block of a model, memory.recompute = "cheap" is refused.
class TRIAX_API CheapRecompute {
 public:
  static constexpr std::string_view kExtension = "triax.cheap_recompute";

  /// Their indices in Layer::stash(). Their life is forward_to_input or forward_to_weight. The list does not change.
  virtual std::span<const int> recomputed_stash() const = 0;
  /// Writes them, with the bits of the forward. Called before backward_input(), with the same views. It reads inputs
  /// and the kept tensors of the stash. It may write kept ones again, with equal bits: the statistics of a norm.
  virtual void recompute(const LayerCall& call, Views params, Views in, Views stash) = 0;

 protected:
  ~CheapRecompute() = default;
};

/// Optional interface of kernel sets: the calls for which clause K56 does not hold. Without it, there are none.
class TRIAX_API RepeatLimits {
 public:
  static constexpr std::string_view kExtension = "triax.repeat_limits";

  /// Every reason why this call gives other bits than a fused operation that computes the same; none for operations
  /// that K56 does not name.
  virtual Refusals repeats(const OpCall& primitive) const = 0;

 protected:
  ~RepeatLimits() = default;
};

} // namespace triax
