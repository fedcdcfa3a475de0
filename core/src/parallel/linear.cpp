// SPDX-License-Identifier: Apache-2.0
// Linear layers split over the tensor ranks: ColumnLinear by columns of its output, RowLinear by columns of its input.
#include "parallel/piece.hpp"

namespace triax {

using parallel::view;

ColumnLinear::ColumnLinear(LayerParts& parts, const LayerContext& context, std::string name, std::int64_t in,
                           std::int64_t out, Activation act, Init init)
    : weight_(parts.add(split_along(0, name + ".weight", {out, in}, init, true, context))),
      bias_(parts.add(split_along(0, name + ".bias", {out}, {}, false, context))),
      act_(act) {}

void ColumnLinear::forward(const LayerCall& call, Views params, const TensorView& x, const TensorView& y,
                           const TensorView& z) const {
  call.kernels.linear_fwd({y, z, x, view(params, weight_), view(params, bias_), act_}, call.op());
}

void ColumnLinear::backward_input(const LayerCall& call, Views params, const TensorView& dz,
                                  const TensorView& dx) const {
  call.kernels.linear_bwd_input({dx, dz, view(params, weight_)}, call.op());
  tensor_all_reduce(call, dx); // f of the paper: each rank's columns give a part of dx
}

void ColumnLinear::backward_weight(const LayerCall& call, const TensorView& x, const TensorView& dz,
                                   Views grads) const {
  call.kernels.linear_bwd_weight({view(grads, weight_), view(grads, bias_), dz, x}, call.op());
}

RowLinear::RowLinear(LayerParts& parts, const LayerContext& context, std::string name, std::int64_t in,
                     std::int64_t out, Init init)
    : weight_(parts.add(split_along(1, name + ".weight", {out, in}, init, true, context))),
      bias_(parts.add(replicated(name + ".bias", {out}, {}, false))) {}

void RowLinear::forward(const LayerCall& call, Views params, const TensorView& x, const TensorView& y) const {
  call.kernels.linear_fwd({y, {}, x, view(params, weight_), {}, Activation::none}, call.op());
  tensor_all_reduce(call, y); // g of the paper: each rank's columns of x give a part of y
}

void RowLinear::backward_input(const LayerCall& call, Views params, const TensorView& dy, const TensorView& dx,
                               Activation act, const TensorView& before) const {
  call.kernels.linear_bwd_input({dx, dy, view(params, weight_), before, act}, call.op());
}

void RowLinear::backward_weight(const LayerCall& call, const TensorView& x, const TensorView& dy, Views grads) const {
  call.kernels.linear_bwd_weight({view(grads, weight_), view(grads, bias_), dy, x}, call.op());
}

} // namespace triax
