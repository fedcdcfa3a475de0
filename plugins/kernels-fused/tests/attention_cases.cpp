// SPDX-License-Identifier: Apache-2.0
// Operation cases for shapes of attention.
#include "attention_cases.hpp"

#include <array>
#include <random>

#include "support/operation_cases.hpp"

namespace triax::kernels_fused {

using namespace triax::test;

namespace {

std::string name_of_shape(const AttentionShape& s) {
  return text("{}x{} keys, {} samples, {}/{} heads of {}, scale {}{}{}{}{}{}", s.sq, s.sk, s.b, s.a, s.a_kv, s.d,
              s.scale, s.causal ? ", causal" : "", s.q0 + s.k0 > 0 ? text(", from {}, {}", s.q0, s.k0) : "",
              s.p > 0 ? text(", p {}", s.p) : "", s.lengths ? ", lengths" : "",
              s.padding > 0 ? text(", padding {}", s.padding) : "");
}

Tensors tensors_of(const AttentionShape& s) {
  const Shape q{s.sq, s.b, s.a, s.d}, k{s.sk, s.b, s.a_kv, s.d};
  Tensors tensors = {in("q", q, s.padding), in("k", k, s.padding), in("v", k, s.padding), out("o", q, s.padding),
                     statistic_out("lse", {s.b, s.a, s.sq})};
  if (s.p > 0) tensors.push_back(samples(s.b, 5));
  if (s.lengths) { // the first sample has no visible key
    std::vector<double> lengths;
    for (std::int64_t i = 0; i < s.b; ++i) lengths.push_back(static_cast<double>(s.k0 + i * s.sk / s.b));
    tensors.push_back(own("lengths", Role::in, DType::i32, {s.b}, lengths));
  }
  return tensors;
}

Mask mask_of(const AttentionShape& s, const CaseViews& v) {
  return {s.causal ? Mask::Kind::causal : Mask::Kind::none, s.q0, s.k0, s.lengths ? v["lengths"] : TensorView{}};
}
Drop drop_of(const AttentionShape& s, const CaseViews& v) {
  Drop drop{.p = s.p, .key = kCaseKey, .site = 35, .head0 = 1, .rows = s.q0 + s.sq + 2, .width = s.k0 + s.sk + s.d % 4};
  if (s.p > 0) drop.samples = v["samples"];
  return drop;
}
void forward(const AttentionShape& s, const CaseViews& v, const UseCall& use) {
  use(AttentionFwd{v["o"], v["lse"], v["q"], v["k"], v["v"], s.scale, mask_of(s, v), drop_of(s, v)});
}

} // namespace

OperationCase forward_case(DType dtype, const AttentionShape& shape) {
  return {text("attention_fwd/{}", name_of_shape(shape)), dtype, tensors_of(shape),
          [=](const CaseViews& v, const UseCall& use) { forward(shape, v, use); }};
}

OperationCase backward_case(DType dtype, const AttentionShape& shape) {
  Tensors tensors = tensors_of(shape);
  const Shape q{shape.sq, shape.b, shape.a, shape.d}, k{shape.sk, shape.b, shape.a_kv, shape.d};
  for (CaseTensor more : {in("dout", q, shape.padding), out("dq", q, shape.padding), out("dk", k, shape.padding),
                          out("dv", k, shape.padding)}) {
    tensors.push_back(std::move(more));
  }
  return {text("attention_bwd/{}", name_of_shape(shape)), dtype, tensors, [=](const CaseViews& v, const UseCall& use) {
            forward(shape, v, use);
            use(AttentionBwd{v["dq"], v["dk"], v["dv"], v["dout"], v["q"], v["k"], v["v"], v["o"], v["lse"],
                             shape.scale, mask_of(shape, v), drop_of(shape, v)});
          }};
}

std::vector<AttentionShape> random_shapes(std::uint32_t seed, int count, std::int64_t width, std::int64_t longest) {
  std::mt19937 random(seed); // the standard fixes its numbers, but not those of a distribution
  const auto below = [&](std::int64_t end) { return static_cast<std::int64_t>(random()) % end; };
  std::vector<AttentionShape> shapes;
  for (int i = 0; i < count; ++i) {
    AttentionShape s;
    s.d = width;
    s.sq = 1 + below(longest);
    s.sk = 8 + below(longest); // with one key the gradient is 0, so there is no magnitude for a relative error
    s.b = 1 + below(3);
    s.a_kv = 1 + below(2);
    s.a = s.a_kv * (1 + below(2));
    s.causal = below(3) > 0;
    if (below(2) == 0) s.q0 = below(longest);
    if (below(3) == 0) s.k0 = below(longest);
    if (below(2) == 0) s.p = 0.25f;
    s.lengths = below(3) == 0;
    s.padding = std::array<std::int64_t, 3>{0, 8, 3}[static_cast<std::size_t>(below(3))];
    s.scale = std::array<double, 4>{0.4, 0.125, -0.3, 0}[static_cast<std::size_t>(below(4))];
    shapes.push_back(s);
  }
  return shapes;
}

double attention_tolerance(DType dtype) {
  if (dtype == DType::f32) return 1e-5;
  return dtype == DType::bf16 ? 4 * 0x1p-8 : 4 * 0x1p-11;
}

} // namespace triax::kernels_fused
