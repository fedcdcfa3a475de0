// SPDX-License-Identifier: Apache-2.0
// Forward and backward of a norm, a layer part.
#include "parallel/layer_part.hpp"

namespace triax {

using parallel::view;
using parallel::view_or_empty;

namespace {

/// A parameter whose gradient is a sum over the rows of this rank: positions, or heads.
ParamSpec of_rows(ParamSpec spec, const LayerContext& context, const NormOptions& options) {
  const bool has_part = context.sequence_parallel || (options.heads > 0 && context.tensor_size() > 1);
  if (has_part) spec.partial = {std::string(kTensorAxis)};
  return spec;
}

Shape rows_of(const LayerContext& context, const NormOptions& options) {
  if (options.heads > 0) return {context.max_rows, context.micro, options.heads};
  return {context.own_rows(), context.micro};
}

} // namespace

Norm::Norm(LayerParts& parts, const LayerContext& context, const std::string& name, const NormOptions& options)
    : kind_(options.kind),
      eps_(options.eps),
      weight_(parts.add(
          of_rows(replicated(name + ".weight", {options.width}, {Init::Kind::ones}, false), context, options))) {
  const Shape rows = rows_of(context, options);
  const auto statistic = [&](const char* what) {
    return parts.add(StashSpec{name + what, rows, parallel::statistics_of(context.compute), Life::forward_to_input});
  };
  if (kind_ == NormKind::layer) {
    bias_ =
        parts.add(of_rows(replicated(name + ".bias", {options.width}, {Init::Kind::zeros}, false), context, options));
    mean_ = statistic(".mean");
  }
  rstd_ = statistic(".rstd");
}

void Norm::forward(const LayerCall& call, Views params, const TensorView& x, const TensorView& y, Views stash) const {
  call.kernels.norm_fwd({.kind = kind_,
                         .y = y,
                         .x = x,
                         .weight = view(params, weight_),
                         .bias = view_or_empty(params, bias_),
                         .mean = view_or_empty(stash, mean_),
                         .rstd = view(stash, rstd_),
                         .eps = eps_},
                        call.op());
}

BiasDropoutAddNorm Norm::fused(Views params, Views stash) const {
  BiasDropoutAddNorm args;
  args.kind = kind_;
  args.weight = view(params, weight_);
  args.norm_bias = view_or_empty(params, bias_);
  args.mean = view_or_empty(stash, mean_);
  args.rstd = view(stash, rstd_);
  args.eps = eps_;
  return args;
}

void Norm::backward(const LayerCall& call, Views params, const TensorView& x, const TensorView& dy,
                    const TensorView& residual, const TensorView& dx, Views stash, Views grads) const {
  const TensorView mean = view_or_empty(stash, mean_);
  const TensorView& rstd = view(stash, rstd_);
  // Weights first: dx may overwrite dy.
  call.kernels.norm_bwd_weight({.kind = kind_,
                                .dweight = view(grads, weight_),
                                .dbias = view_or_empty(grads, bias_),
                                .dy = dy,
                                .x = x,
                                .mean = mean,
                                .rstd = rstd},
                               call.op());
  call.kernels.norm_bwd_input({.kind = kind_,
                               .dx = dx,
                               .dy = dy,
                               .x = x,
                               .weight = view(params, weight_),
                               .mean = mean,
                               .rstd = rstd,
                               .residual = residual},
                              call.op());
}

} // namespace triax
