// SPDX-License-Identifier: Apache-2.0
// Layer norm as a part of a layer: weight, bias, and the statistics that its backward needs.
//
// Shapes: x, y and their gradients [s, b, h].
#pragma once

#include "gpt.hpp"

namespace triax::model_gpt {

class Norm {
 public:
  Norm(LayerParts& parts, const Sizes& sizes, const LayerContext& context, const std::string& name);

  void forward(const LayerCall& call, Views params, const TensorView& x, const TensorView& y, Views stash) const;
  /// Arguments of the operation that computes the norm's input and applies the norm, with the norm's own views set.
  BiasDropoutAddNorm fused(Views params, Views stash) const;
  /// dx = gradient through the norm, plus `residual` if it is not empty; dx may be dy or residual. Also adds the
  /// gradients of weight and bias here, so that x and dy need not be kept for the weight gradient pass.
  void backward(const LayerCall& call, Views params, const TensorView& x, const TensorView& dy,
                const TensorView& residual, const TensorView& dx, Views stash, Views grads) const;

 private:
  int weight_, bias_; // in params and grads
  int mean_, rstd_;   // in the stash
};

} // namespace triax::model_gpt
