// SPDX-License-Identifier: Apache-2.0
// Linear layers split over the tensor ranks: ColumnLinear by columns of its output, RowLinear by columns of its input.
#include "parallel/layer_part.hpp"
#include "triax/error.hpp"

namespace triax {

using parallel::add_summands;
using parallel::gathered;
using parallel::summand;
using parallel::view;
using parallel::view_or_empty;

namespace {

/// [out, ...], or [parts, out/parts, ...].
ParamSpec split_output(std::string name, Shape whole, const LinearOptions& options, Init init, bool decay,
                       const LayerContext& context) {
  const std::int64_t parts = options.parts, out = whole[0];
  TRIAX_REQUIRE(parts >= 1 && out % parts == 0, "{}: {} columns are not divisible into {} parts", name, out, parts);
  if (parts == 1) return split_along(0, std::move(name), whole, init, decay, context);
  const Shape by_part = whole.rank() == 2 ? Shape{parts, out / parts, whole[1]} : Shape{parts, out / parts};
  return split_along(1, std::move(name), by_part, init, decay, context);
}

/// The parts one below the other, as the operations of linear layers see them.
TensorView stacked(const TensorView& weight) {
  return weight.rank() == 3 ? weight.as_rows() : weight;
}
TensorView stacked_bias(const TensorView& bias) {
  return bias.rank() == 2 ? bias.flat() : bias;
}

} // namespace

ColumnLinear::ColumnLinear(LayerParts& parts, const LayerContext& context, std::string name, std::int64_t in,
                           std::int64_t out, const LinearOptions& options)
    : weight_(parts.add(split_output(name + ".weight", {out, in}, options, options.init, true, context))),
      act_(options.act) {
  if (options.bias) bias_ = parts.add(split_output(name + ".bias", {out}, options, {}, false, context));
  const auto add = [&](const char* what, Life life) {
    return parallel::add_of_all_rows(parts, context, name + what, in, life);
  };
  all_x_ = add(".x", Life::forward_only);
  all_dx_ = add(".dx", Life::input_only);
  x_again_ = add(".x again", Life::input_to_weight);
}

void ColumnLinear::forward(const LayerCall& call, Views params, const TensorView& x, const TensorView& y,
                           const TensorView& z, Views stash) const {
  call.kernels.linear_fwd({.y = y,
                           .z = z,
                           .x = gathered(call, x, stash, all_x_),
                           .w = stacked(view(params, weight_)),
                           .bias = stacked_bias(view_or_empty(params, bias_)),
                           .act = act_},
                          call.op());
}

void ColumnLinear::backward_input(const LayerCall& call, Views params, const TensorView& x, const TensorView& dz,
                                  const TensorView& dx, Views stash) const {
  gathered(call, x, stash, x_again_);
  call.kernels.linear_bwd_input({.dx = summand(dx, stash, all_dx_), .dy = dz, .w = stacked(view(params, weight_))},
                                call.op());
  add_summands(call, dx, stash, all_dx_); // f of the paper: each rank's columns give a part of dx
}

void ColumnLinear::backward_weight(const LayerCall& call, const TensorView& x, const TensorView& dz, Views stash,
                                   Views grads) const {
  call.kernels.linear_bwd_weight({.dw = stacked(view(grads, weight_)),
                                  .dbias = stacked_bias(view_or_empty(grads, bias_)),
                                  .dy = dz,
                                  .x = x_again_ < 0 ? x : view(stash, x_again_)},
                                 call.op());
}

RowLinear::RowLinear(LayerParts& parts, const LayerContext& context, std::string name, std::int64_t in,
                     std::int64_t out, const LinearOptions& options)
    : weight_(parts.add(split_along(1, name + ".weight", {out, in}, options.init, true, context))) {
  TRIAX_REQUIRE(options.act == Activation::none && options.parts == 1,
                "{}: a linear layer that is split by rows has no activation and one part", name);
  if (options.bias) bias_ = parts.add(replicated(name + ".bias", {out}, {}, false));
  all_y_ = parallel::add_of_all_rows(parts, context, name + ".y", out, Life::forward_only);
  all_dy_ = parallel::add_of_all_rows(parts, context, name + ".dy", out, Life::input_to_weight);
}

void RowLinear::forward(const LayerCall& call, Views params, const TensorView& x, const TensorView& y,
                        Views stash) const {
  call.kernels.linear_fwd({.y = summand(y, stash, all_y_), .x = x, .w = view(params, weight_)}, call.op());
  add_summands(call, y, stash, all_y_); // g of the paper: each rank's columns of x give a part of y
}

void RowLinear::backward_input(const LayerCall& call, Views params, const TensorView& dy, const TensorView& dx,
                               Views stash, Activation act, const TensorView& before) const {
  call.kernels.linear_bwd_input(
      {.dx = dx, .dy = gathered(call, dy, stash, all_dy_), .w = view(params, weight_), .before = before, .act = act},
      call.op());
}

void RowLinear::backward_weight(const LayerCall& call, const TensorView& x, const TensorView& dy, Views stash,
                                Views grads) const {
  call.kernels.linear_bwd_weight({.dw = view(grads, weight_),
                                  .dbias = view_or_empty(grads, bias_),
                                  .dy = all_dy_ < 0 ? dy : view(stash, all_dy_),
                                  .x = x},
                                 call.op());
}

} // namespace triax
