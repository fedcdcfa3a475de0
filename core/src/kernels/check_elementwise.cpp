// SPDX-License-Identifier: Apache-2.0
// Checks of element-wise operations, norms and reductions: shapes and types.
#include <algorithm>

#include "kernels/argument_check.hpp"

namespace triax::kernels {

namespace {

/// [rows, n] views: row r is (position r / b, sample r % b).
void check_rows_drop(const Check& check, const Named& x, const Drop& drop) {
  if (drop.p == 0) return;
  const std::int64_t samples = std::max<std::int64_t>(drop.samples.elements(), 1);
  const std::int64_t rows = rows_of(x.view);
  check.require(rows % samples == 0, "the {} rows of {} are not divisible by the {} samples of drop.samples", rows, x,
                samples);
  check.drop(drop, samples, rows / samples, x.view.size(-1));
}

void check_norm(const Check& check, NormKind kind, const Named& x, const Named& mean, const Named& rstd) {
  check.data(x);
  if (kind == NormKind::layer || !mean.view.empty()) check.statistic(mean, x);
  check.statistic(rstd, x);
}

void check_norm_fwd(const Check& check, NormKind kind, const Named& x, const Named& weight, const Named& bias) {
  check.vector(weight, x);
  if (kind == NormKind::layer) check.vector(bias, x);
  check.require(kind == NormKind::layer || bias.view.empty(), "{} is given, but an rms norm does not use it", bias);
}

} // namespace

void check(const BiasAdd& args) {
  const Check check(Op::bias_add);
  const Named x{"x", args.x};
  check.data(x);
  check.match({"y", args.y}, x);
  check.vector({"bias", args.bias}, x);
}

void check(const BiasBwd& args) {
  const Check check(Op::bias_bwd);
  const Named dy{"dy", args.dy};
  check.data(dy);
  check.gradient_vector({"dbias", args.dbias}, dy);
}

void check(const Add& args) {
  const Check check(Op::add);
  const Named y{"y", args.y}, a{"a", args.a}, b{"b", args.b};
  check.data(a);
  check.match(b, a);
  check.match(y, a);
  check.same_shape(b, a);
  check.same_shape(y, a);
}

void check(const Dropout& args) {
  const Check check(Op::dropout);
  const Named x{"x", args.x};
  check.data(x);
  check.match({"y", args.y}, x);
  check.same_shape({"y", args.y}, x);
  if (args.x.rank() < 4) {
    check_rows_drop(check, x, args.drop);
  } else {
    check.drop(args.drop, args.x.size(0), args.x.size(2), args.x.size(3));
  }
}

void check(const ActFwd& args) {
  const Check check(Op::act_fwd);
  const Named y{"y", args.y}, x{"x", args.x};
  check.require(args.act != Activation::none, "the activation is missing");
  check.data(x);
  if (args.act == Activation::gelu_tanh) {
    check.match(y, x);
    return;
  }
  check.data(y);
  check.same_type(y, x);
  check.require(rows_of(args.y) == rows_of(args.x) && args.x.size(-1) == 2 * args.y.size(-1),
                "{} does not fit {}: silu_mul takes rows of 2n to rows of n", y, x);
}

void check(const ActBwd& args) {
  const Check check(Op::act_bwd);
  const Named dx{"dx", args.dx}, dy{"dy", args.dy}, x{"x", args.x};
  check.require(args.act != Activation::none, "the activation is missing");
  check.data(x);
  check.match(dx, x);
  if (args.act == Activation::gelu_tanh) {
    check.match(dy, x);
    return;
  }
  check.data(dy);
  check.same_type(dy, x);
  check.require(rows_of(args.dy) == rows_of(args.x) && args.x.size(-1) == 2 * args.dy.size(-1),
                "{} does not fit {}: silu_mul takes rows of 2n to rows of n", dy, x);
}

void check(const NormFwd& args) {
  const Check check(Op::norm_fwd);
  const Named x{"x", args.x};
  check_norm(check, args.kind, x, {"mean", args.mean}, {"rstd", args.rstd});
  check.match({"y", args.y}, x);
  check_norm_fwd(check, args.kind, x, {"weight", args.weight}, {"bias", args.bias});
}

void check(const NormBwdInput& args) {
  const Check check(Op::norm_bwd_input);
  const Named x{"x", args.x};
  check_norm(check, args.kind, x, {"mean", args.mean}, {"rstd", args.rstd});
  check.match({"dx", args.dx}, x);
  check.match({"dy", args.dy}, x);
  check.vector({"weight", args.weight}, x);
  if (!args.residual.empty()) check.match({"residual", args.residual}, x);
}

void check(const NormBwdWeight& args) {
  const Check check(Op::norm_bwd_weight);
  const Named x{"x", args.x}, dbias{"dbias", args.dbias};
  check_norm(check, args.kind, x, {"mean", args.mean}, {"rstd", args.rstd});
  check.match({"dy", args.dy}, x);
  check.gradient_vector({"dweight", args.dweight}, x);
  check.require(args.kind == NormKind::layer || args.dbias.empty(), "{} is given, but an rms norm does not use it",
                dbias);
  if (!args.dbias.empty()) check.gradient_vector(dbias, x);
}

void check(const BiasDropoutAdd& args) {
  const Check check(Op::bias_dropout_add);
  const Named x{"x", args.x};
  check.data(x);
  check.require(args.x.rank() <= 3, "{} must have at most 3 dimensions", x);
  check.match({"y", args.y}, x);
  check.match({"residual", args.residual}, x);
  if (!args.bias.empty()) check.vector({"bias", args.bias}, x);
  check_rows_drop(check, x, args.drop);
}

void check(const BiasDropoutAddNorm& args) {
  const Check check(Op::bias_dropout_add_norm);
  const Named x{"x", args.x};
  check_norm(check, args.kind, x, {"mean", args.mean}, {"rstd", args.rstd});
  check.require(args.x.rank() <= 3, "{} must have at most 3 dimensions", x);
  check.match({"y", args.y}, x);
  check.match({"normed", args.normed}, x);
  check.match({"residual", args.residual}, x);
  if (!args.bias.empty()) check.vector({"bias", args.bias}, x);
  check_norm_fwd(check, args.kind, x, {"weight", args.weight}, {"norm_bias", args.norm_bias});
  check_rows_drop(check, x, args.drop);
}

void check(const SumSquares& args) {
  const Check check(Op::sum_squares);
  const Named x{"x", args.x}, out{"out", args.out};
  check.data(x);
  check.type(out, DType::f64);
  check.require(args.out.elements() == 1, "{} must have one element", out);
}

void check(const StepControl& args) {
  const Check check(Op::step_control);
  const Named squares{"squares", args.squares}, order{"order", args.order}, losses{"losses", args.losses};
  check.type(squares, DType::f64);
  check.contiguous(squares);
  check.type(order, DType::i32);
  check.contiguous(order);
  check.type(losses, DType::f64);
  check.contiguous(losses);
  check.require(args.clip_grad >= 0, "clip_grad = {} must not be negative", args.clip_grad);
  const LossScaling& scaling = args.scaling;
  check.require(scaling.min > 0, "scaling.min must be positive, got {}", scaling.min);
  check.require(scaling.growth > 1 && scaling.backoff > 0 && scaling.backoff < 1,
                "scaling.growth = {} must be above 1, scaling.backoff = {} between 0 and 1", scaling.growth,
                scaling.backoff);
}

} // namespace triax::kernels
