// Layer norm as a piece of a layer: weight, bias, and the statistics that its backward needs.
//
// Threads, ownership, blocking: as triax/model.hpp says for layers. Shapes: x, y and their gradients [s, b, h].
#pragma once

#include "gpt.hpp"

namespace triax::gpt {

class Norm {
 public:
  Norm(LayerParts& parts, const Sizes& sizes, const LayerContext& context, const std::string& name);

  void forward(const LayerCall& call, Views params, const TensorView& x, const TensorView& y, Views stash) const;
  /// The operation that makes the norm's input and applies it, with the norm's own views filled in.
  BiasDropoutAddNorm fused(Views params, Views stash) const;
  /// dx = gradient through the norm, plus `residual` where given; dx may be dy or residual. The parameters' gradients
  /// are added here too: x and dy are at hand, and need not be kept for the weights' part.
  void backward(const LayerCall& call, Views params, const TensorView& x, const TensorView& dy,
                const TensorView& residual, const TensorView& dx, Views stash, Views grads) const;

 private:
  int weight_, bias_; // in params and grads
  int mean_, rstd_;   // in the stash
};

} // namespace triax::gpt
