// SPDX-License-Identifier: Apache-2.0
// Forward and backward of layer norm as a part of a layer.
#include "norm.hpp"

namespace triax::model_gpt {

Norm::Norm(LayerParts& parts, const Sizes& sizes, const LayerContext& context, const std::string& name)
    : weight_(parts.add(replicated(name + ".weight", {sizes.hidden}, {Init::Kind::ones}, false))),
      bias_(parts.add(replicated(name + ".bias", {sizes.hidden}, {Init::Kind::zeros}, false))),
      mean_(parts.add(stash(name + ".mean", {sizes.sequence, context.micro}, statistics_of(context.compute),
                            Life::forward_to_input))),
      rstd_(parts.add(stash(name + ".rstd", {sizes.sequence, context.micro}, statistics_of(context.compute),
                            Life::forward_to_input))) {}

void Norm::forward(const LayerCall& call, Views params, const TensorView& x, const TensorView& y, Views stash) const {
  call.kernels.norm_fwd({.y = y,
                         .x = x,
                         .weight = view(params, weight_),
                         .bias = view(params, bias_),
                         .mean = view(stash, mean_),
                         .rstd = view(stash, rstd_),
                         .eps = kNormEps},
                        call.op());
}

BiasDropoutAddNorm Norm::fused(Views params, Views stash) const {
  BiasDropoutAddNorm args;
  args.weight = view(params, weight_);
  args.norm_bias = view(params, bias_);
  args.mean = view(stash, mean_);
  args.rstd = view(stash, rstd_);
  args.eps = kNormEps;
  return args;
}

void Norm::backward(const LayerCall& call, Views params, const TensorView& x, const TensorView& dy,
                    const TensorView& residual, const TensorView& dx, Views stash, Views grads) const {
  const TensorView& mean = view(stash, mean_);
  const TensorView& rstd = view(stash, rstd_);
  // Weights first: dx may overwrite dy.
  call.kernels.norm_bwd_weight(
      {.dweight = view(grads, weight_), .dbias = view(grads, bias_), .dy = dy, .x = x, .mean = mean, .rstd = rstd},
      call.op());
  call.kernels.norm_bwd_input(
      {.dx = dx, .dy = dy, .x = x, .weight = view(params, weight_), .mean = mean, .rstd = rstd, .residual = residual},
      call.op());
}

} // namespace triax::model_gpt
