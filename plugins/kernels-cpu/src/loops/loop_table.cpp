// SPDX-License-Identifier: Apache-2.0
// The table of loops for one instruction set. Compiled once per set, with its flags and its namespace TRIAX_LOOPS.
#include "loops/elementwise.hpp"
#include "loops/half_loops.hpp"
#include "loops/multiply.hpp"
#include "loops/norm.hpp"
#include "loops/optimizer_loops.hpp"
#include "loops/product_loops.hpp"
#include "loops/softmax.hpp"
#include "loops/transpose.hpp"

#define TRIAX_TEXT_OF(x) #x
#define TRIAX_TEXT(x) TRIAX_TEXT_OF(x)

namespace triax::kernels_cpu::TRIAX_LOOPS {

const Loops& loops();

const Loops& loops() {
  static constexpr Loops kLoops{.name = TRIAX_TEXT(TRIAX_LOOPS),
                                .add = add,
                                .scale = scale,
                                .gelu = gelu,
                                .gelu_bwd = gelu_bwd,
                                .silu_mul = silu_mul,
                                .silu_mul_bwd = silu_mul_bwd,
                                .rotate = rotate,
                                .dropout = dropout,
                                .bias_gelu = bias_gelu,
                                .bias_dropout_add = bias_dropout_add,
                                .norm = norm,
                                .norm_bwd = norm_bwd,
                                .column_sums = column_sums,
                                .norm_bwd_weight = norm_bwd_weight,
                                .sum_squares = sum_squares,
                                .softmax = softmax,
                                .softmax_from_lse = softmax_from_lse,
                                .softmax_bwd = softmax_bwd,
                                .attention_bwd = attention_bwd,
                                .dot = dot,
                                .combine = combine,
                                .multiply_row = multiply_row,
                                .product = kProductLoops,
                                .finish = finish,
                                .row_max = row_max,
                                .sum_exp = sum_exp,
                                .exp_sum = exp_sum,
                                .exp_scaled = exp_scaled,
                                .adamw = adamw,
                                .sgd = sgd,
                                .bf16 = {widen_bf16, narrow_bf16},
                                .f16 = {widen_f16, narrow_f16},
                                .transpose = transpose};
  return kLoops;
}

} // namespace triax::kernels_cpu::TRIAX_LOOPS
