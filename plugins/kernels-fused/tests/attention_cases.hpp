// SPDX-License-Identifier: Apache-2.0
// Attention cases in addition to those that all sets share: every tile width, odd sizes and all kinds of views, drawn
// at random from a seed.
//
// Threads: one. Ownership: values. Blocking, errors: none.
#pragma once

#include <vector>

#include "support/operation_cases.hpp"

namespace triax::kernels_fused {

struct AttentionShape {
  std::int64_t sq = 1, sk = 1, b = 1, a = 1, a_kv = 1, d = 1;
  bool causal = true;
  std::int64_t q0 = 0, k0 = 0;
  float p = 0;
  bool lengths = false;
  std::int64_t padding = 0; // elements between rows
  double scale = 0.4;
};

/// Forward only, and forward followed by backward.
triax::test::OperationCase forward_case(DType dtype, const AttentionShape& shape);
triax::test::OperationCase backward_case(DType dtype, const AttentionShape& shape);

/// `count` shapes with a head size of `width` and up to `longest` queries and `longest` + 7 keys.
std::vector<AttentionShape> random_shapes(std::uint32_t seed, int count, std::int64_t width, std::int64_t longest);

/// Allowed error relative to the largest value, compared with the reference in f64. Scores, probabilities and sums are
/// f32; P, dS and outputs are rounded to the type.
double attention_tolerance(DType dtype);

} // namespace triax::kernels_fused
