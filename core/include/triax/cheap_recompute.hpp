// SPDX-License-Identifier: Apache-2.0
// Optional interfaces for memory.recompute = "cheap": a layer's tensors that it computes again without matrix products,
// and the limits of a kernel set in repeating them.
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
  /// Writes them, with the bits of the forward. Called before backward_input(), with the same views: it reads inputs
  /// and what the forward keeps of the stash, which it may write again with equal bits.
  virtual void recompute(const LayerCall& call, Views params, Views in, Views stash) = 0;

 protected:
  ~CheapRecompute() = default;
};

/// Optional interface of kernel sets: the calls for which clause K58 does not hold. A set without it keeps the clause.
class TRIAX_API RepeatLimits {
 public:
  static constexpr std::string_view kExtension = "triax.repeat_limits";

  /// Every reason why this primitive gives other bits than the fused operation that computed the same, or none.
  virtual Refusals repeats(const OpCall& primitive) const = 0;

 protected:
  ~RepeatLimits() = default;
};

} // namespace triax
