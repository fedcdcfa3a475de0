// SPDX-License-Identifier: Apache-2.0
// Checks of matrix products, softmax, rotary positions and attention: shapes and types.
#include <algorithm>
#include <tuple>

#include "kernels/argument_check.hpp"

namespace triax::kernels {

namespace {

void check_matrix(const Check& check, const Named& a) {
  check.given(a);
  check.require(is_floating(a.view.dtype()), "{} must be of a floating type", a);
  check.require(a.view.rank() >= 2, "{} must have at least two dimensions", a);
  check.dense(a);
}

/// A weight matrix [n, k] with data x [rows, k * factor] and y [rows, n].
void check_weight(const Check& check, const Named& w, const Named& x, const Named& y, std::int64_t factor = 1) {
  check.contiguous(w);
  check.rank(w, 2);
  check.require(factor * w.view.size(1) == x.view.size(-1), "{} does not fit {}: a row has {} elements, not {}", x, w,
                x.view.size(-1), factor * w.view.size(1));
  check.require(w.view.size(0) == y.view.size(-1), "{} does not fit {}: a row has {} elements, not {}", y, w,
                y.view.size(-1), w.view.size(0));
  check.require(rows_of(x.view) == rows_of(y.view), "{} and {} differ in rows: {} and {}", x, y, rows_of(x.view),
                rows_of(y.view));
}

/// [s, b, a, d], last stride 1.
void check_heads(const Check& check, const Named& x) {
  check.rank(x, 4);
  check.require(is_floating(x.view.dtype()), "{} must be of a floating type", x);
  check.dense(x);
}

/// [b, a, sq, sk] scores x, and their probabilities y.
void check_scores(const Check& check, const Named& x, const Named& y) {
  check.rank(x, 4);
  check.data(x);
  check.match(y, x);
  check.same_shape(y, x);
}

void check_same_heads(const Check& check, const Named& x, const Named& like) {
  check_heads(check, like);
  check_heads(check, x);
  check.same_type(x, like);
  check.same_shape(x, like);
}

/// A statistic [b, a, s] of x [s, b, a, d].
void check_of_queries(const Check& check, const Named& statistic, const Named& x) {
  check.type(statistic, statistic_type(x.view.dtype()));
  check.count(statistic, x.view.elements() / std::max<std::int64_t>(x.view.size(3), 1), "samples, heads and positions",
              x);
}

struct AttentionViews {
  Named q, k, v, o, lse;
};

void check_attention(const Check& check, const AttentionViews& views, const Mask& mask, const Drop& drop) {
  const auto& [q, k, v, o, lse] = views;
  check_heads(check, q);
  for (const Named& each : {k, v, o}) {
    check_heads(check, each);
    check.same_type(each, q);
  }
  check.same_shape(o, q);
  check.same_shape(v, k);
  check.require(q.view.size(1) == k.view.size(1), "{} and {} differ in samples: {} and {}", q, k, q.view.size(1),
                k.view.size(1));
  check.require(q.view.size(3) == k.view.size(3), "{} and {} differ in head size: {} and {}", q, k, q.view.size(3),
                k.view.size(3));
  check.require(k.view.size(2) > 0 && q.view.size(2) % k.view.size(2) == 0,
                "{} and {} do not fit: {} query heads are not a multiple of {} key heads", q, k, q.view.size(2),
                k.view.size(2));
  check_of_queries(check, lse, q);
  check.mask(mask, q.view.size(1));
  Drop at = drop;
  at.row0 = mask.q0;
  at.column0 = mask.k0;
  check.drop(at, q.view.size(1), q.view.size(0), k.view.size(0));
}

} // namespace

void check(const Gemm& args) {
  const Check check(Op::gemm);
  const Named d{"d", args.d}, a{"a", args.a}, b{"b", args.b};
  for (const Named& each : {a, b, d}) check_matrix(check, each);
  check.same_type(a, b);
  check.accumulator_type(d, a);
  for (const Named& each : {b, d}) {
    check.require(each.view.rank() == args.a.rank(), "{} and {} differ in batch dimensions", a, each);
    for (int dim = 0; dim < args.a.rank() - 2; ++dim) {
      check.require(each.view.size(dim) == args.a.size(dim), "{} and {} differ in batch dimensions", a, each);
    }
  }
  const std::int64_t m = args.a.size(args.transpose_a ? -1 : -2), k = args.a.size(args.transpose_a ? -2 : -1);
  const std::int64_t k_b = args.b.size(args.transpose_b ? -1 : -2), n = args.b.size(args.transpose_b ? -2 : -1);
  check.require(k == k_b, "{}{} and {}{} do not fit: K is {} and {}", a, args.transpose_a ? " transposed" : "", b,
                args.transpose_b ? " transposed" : "", k, k_b);
  check.require(args.d.size(-2) == m && args.d.size(-1) == n, "{} does not fit: {}{} and {}{} make [{}, {}]", d, a,
                args.transpose_a ? " transposed" : "", b, args.transpose_b ? " transposed" : "", m, n);
}

void check(const LinearFwd& args) {
  const Check check(Op::linear_fwd);
  const Named x{"x", args.x}, y{"y", args.y}, z{"z", args.z}, w{"w", args.w};
  check.data(x);
  check.data(y);
  check.same_type(y, x);
  check.given(w);
  check.same_type(w, x);
  if (args.act == Activation::none) {
    check.require(args.z.empty(), "{} is given, but there is no activation", z);
    check_weight(check, w, x, y);
  } else {
    check.data(z);
    check.same_type(z, x);
    check_weight(check, w, x, z);
    const std::int64_t factor = args.act == Activation::silu_mul ? 2 : 1;
    check.require(rows_of(args.y) == rows_of(args.z) && args.z.size(-1) == factor * args.y.size(-1),
                  "{} does not fit {}", y, z);
  }
  if (!args.bias.empty()) {
    check.vector({"bias", args.bias}, args.act == Activation::none ? y : z);
  }
}

void check(const LinearBwdInput& args) {
  const Check check(Op::linear_bwd_input);
  const Named dx{"dx", args.dx}, dy{"dy", args.dy}, w{"w", args.w};
  check.data(dy);
  check.data(dx);
  check.same_type(dx, dy);
  check.given(w);
  check.same_type(w, dy);
  check_weight(check, w, dx, dy, args.act == Activation::silu_mul ? 2 : 1);
  const Named before{"before", args.before};
  if (args.act == Activation::none) {
    check.require(args.before.empty(), "{} is given, but there is no activation", before);
  } else {
    check.match(before, dx);
    check.require(!args.dx.data() || args.dx.data() != args.before.data(), "{} must not be {}", dx, before);
  }
}

void check(const LinearBwdWeight& args) {
  const Check check(Op::linear_bwd_weight);
  const Named dw{"dw", args.dw}, dy{"dy", args.dy}, x{"x", args.x};
  check.data(dy);
  check.data(x);
  check.same_type(x, dy);
  check.given(dw);
  check.accumulator_type(dw, dy);
  check_weight(check, dw, x, dy);
  if (!args.dbias.empty()) check.gradient_vector({"dbias", args.dbias}, dy);
}

void check(const SoftmaxFwd& args) {
  const Check check(Op::softmax_fwd);
  const Named x{"x", args.x};
  check_scores(check, x, {"y", args.y});
  if (!args.lse.empty()) check.statistic({"lse", args.lse}, x);
  check.mask(args.mask, args.x.size(0));
}

void check(const SoftmaxBwd& args) {
  const Check check(Op::softmax_bwd);
  const Named y{"y", args.y};
  check.data(y);
  check.match({"dy", args.dy}, y);
  check.match({"dx", args.dx}, y);
  if (!args.delta.empty()) check.statistic({"delta", args.delta}, y);
}

void check(const SoftmaxFromLse& args) {
  const Check check(Op::softmax_from_lse);
  const Named x{"x", args.x};
  check_scores(check, x, {"y", args.y});
  check.statistic({"lse", args.lse}, x);
  check.mask(args.mask, args.x.size(0));
}

void check(const AttentionDelta& args) {
  const Check check(Op::attention_delta);
  const Named o{"o", args.o}, dout{"dout", args.dout};
  check_same_heads(check, dout, o);
  check_of_queries(check, {"delta", args.delta}, o);
}

void check(const AttentionMerge& args) {
  const Check check(Op::attention_merge);
  const Named o{"o", args.o}, more{"o_more", args.o_more};
  check_same_heads(check, more, o);
  check_of_queries(check, {"lse", args.lse}, o);
  check_of_queries(check, {"lse_more", args.lse_more}, o);
}

void check(const Rope& args) {
  const Check check(Op::rope);
  const Named x{"x", args.x}, y{"y", args.y};
  check_heads(check, x);
  check_heads(check, y);
  check.same_type(y, x);
  check.same_shape(y, x);
  check.require(args.x.size(3) % 2 == 0, "{} must have an even head size: rotary embeddings rotate pairs", x);
  check.require(args.position0 >= 0, "position0 = {} must not be negative", args.position0);
  check.require(args.base > 0, "base must be positive, got {}", args.base);
  const RopeScaling& scaling = args.scaling;
  check.require(scaling.factor > 0, "scaling.factor must be positive, got {}", scaling.factor);
  if (scaling.factor == 1) return;
  check.require(scaling.low_freq_factor < scaling.high_freq_factor,
                "scaling.low_freq_factor = {} must be less than scaling.high_freq_factor = {}", scaling.low_freq_factor,
                scaling.high_freq_factor);
  check.require(scaling.original_positions > 0, "scaling.original_positions must be positive, got {}",
                scaling.original_positions);
}

void check(const AttentionFwd& args) {
  check_attention(Check(Op::attention_fwd),
                  {{"q", args.q}, {"k", args.k}, {"v", args.v}, {"o", args.o}, {"lse", args.lse}}, args.mask,
                  args.drop);
}

void check(const AttentionBwd& args) {
  const Check check(Op::attention_bwd);
  const Named q{"q", args.q}, k{"k", args.k};
  check_attention(check, {q, k, {"v", args.v}, {"o", args.o}, {"lse", args.lse}}, args.mask, args.drop);
  for (const auto& [name, view, like] : {std::tuple<const char*, const TensorView&, const Named&>{"dq", args.dq, q},
                                         {"dout", args.dout, q},
                                         {"dk", args.dk, k},
                                         {"dv", args.dv, k}}) {
    check_same_heads(check, {name, view}, like);
  }
}

} // namespace triax::kernels
