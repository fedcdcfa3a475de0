// SPDX-License-Identifier: Apache-2.0
#include "cost/operation_cost.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace triax::cost {

namespace {

// Priors, in bytes per element in 16 bits, of Megatron-LM of 2021 and 2022.
constexpr double kMaskBytes = 1;            // a dropout mask, written by the forward and read by the backward
constexpr double kUnfusedSoftmaxBytes = 36; // scale, mask, cast and softmax in separate kernels
constexpr double kUnfusedSoftmaxBwdBytes = 40;
constexpr double kMaxBytes = 10, kSumsBytes = 24, kLossGradientBytes = 14; // of a logit: casts, and fp32 passes

double count(const TensorView& view) {
  return static_cast<double>(view.elements());
}
double element(const TensorView& view) {
  return static_cast<double>(bytes_of(view.dtype()));
}
double bytes(const TensorView& view) {
  return static_cast<double>(view.bytes());
}
/// b * a * sq * sk, of q and k [s, b, a, d].
double scores(const TensorView& q, const TensorView& k) {
  return static_cast<double>(q.size(1) * q.size(2) * q.size(0) * k.size(0));
}
std::int64_t rows(const TensorView& view) {
  return view.elements() / view.size(-1);
}

} // namespace

/// The time of a product's operations, without that of its memory traffic.
double OperationCost::tiles_s(const Product& product) const {
  const double peak = (product.element_bytes <= 2 ? device_.peak_16bit : device_.peak_32bit).value;
  const double sms = device_.sms.value;
  const auto m = static_cast<double>(product.m), n = static_cast<double>(product.n), k = static_cast<double>(product.k),
             batch = static_cast<double>(product.batch);
  double best = std::numeric_limits<double>::max();
  for (const Tile& tile : device_.tiles) {
    for (const auto& [tile_m, tile_n] : {std::pair(tile.rows, tile.columns), std::pair(tile.columns, tile.rows)}) {
      const double tiles = batch * std::ceil(m / tile_m) * std::ceil(n / tile_n);
      const double of_tile = 2.0 * tile_m * tile_n * (k + device_.fill.value) * sms /
                             (peak * device_.gemm_efficiency.value * tile.efficiency.value);
      best = std::min(best, std::max(1.0, tiles / sms) * of_tile);
    }
  }
  return best;
}

OperationTime OperationCost::of(const Product& product) const {
  const auto m = static_cast<double>(product.m), n = static_cast<double>(product.n), k = static_cast<double>(product.k),
             batch = static_cast<double>(product.batch);
  const double moved = batch * (m * n + m * k + k * n) * static_cast<double>(product.element_bytes);
  return {std::max(tiles_s(product), moved / (device_.memory_bandwidth.value * device_.bandwidth_efficiency.value)) +
              device_.launch_s.value,
          1};
}

OperationTime OperationCost::pass(double bytes) const {
  return {bytes / (device_.memory_bandwidth.value * device_.bandwidth_efficiency.value) + device_.launch_s.value, 1};
}

OperationTime OperationCost::score_pass(double bytes) const {
  return {bytes / (device_.memory_bandwidth.value * device_.score_efficiency.value) + device_.launch_s.value, 1};
}

OperationTime OperationCost::head_product(Product product, std::int64_t head) const {
  OperationTime out = of(product);
  out.seconds *= std::max(1.0, device_.narrow_head.value / static_cast<double>(head));
  return out;
}

/// A product inside a kernel that keeps the scores on the SMs: it moves nothing.
double OperationCost::tiled_product_s(const Product& product, std::int64_t head) const {
  return tiles_s(product) * std::max(1.0, device_.narrow_head.value / static_cast<double>(head));
}

OperationTime OperationCost::accumulation(const TensorView& gradient) const {
  if (code_.accumulates_in_gemm) return {};
  return pass(3 * 2 * count(gradient)); // reads both, writes the sum, in 16 bits
}

OperationTime OperationCost::of(const Gemm& x) const {
  const std::int64_t k = x.a.size(x.transpose_a ? -2 : -1);
  const std::int64_t m = x.d.size(-2), n = x.d.size(-1);
  OperationTime out = of(Product{x.d.elements() / (m * n), m, n, k, bytes_of(x.a.dtype())});
  if (x.beta != 0) out += accumulation(x.d);
  return out;
}

OperationTime OperationCost::of(const LinearFwd& x) const {
  OperationTime out = of(Product{1, rows(x.x), x.w.size(0), x.w.size(1), bytes_of(x.x.dtype())});
  const TensorView& z = x.z.empty() ? x.y : x.z;
  const bool acts = x.act != Activation::none;
  if (!x.bias.empty() && (!acts || !code_.fuses_elementwise)) out += pass(2 * bytes(z));
  if (acts) out += pass(bytes(z) + bytes(x.y));
  return out;
}

OperationTime OperationCost::of(const LinearBwdInput& x) const {
  OperationTime out = of(Product{1, rows(x.dy), x.w.size(1), x.w.size(0), bytes_of(x.dy.dtype())});
  if (x.act == Activation::none) return out;
  out += pass(bytes(x.before) + 2 * bytes(x.dx));
  if (!code_.fuses_elementwise) out += pass(2 * bytes(x.dx));
  return out;
}

OperationTime OperationCost::of(const LinearBwdWeight& x) const {
  OperationTime out = of(Product{1, x.dw.size(0), x.dw.size(1), rows(x.dy), bytes_of(x.dy.dtype())});
  if (!x.dbias.empty()) out += pass(bytes(x.dy));
  return out + accumulation(x.dw);
}

OperationTime OperationCost::of(const BiasDropoutAdd& x) const {
  const double mask = x.drop.p > 0 ? kMaskBytes * count(x.y) : 0;
  if (code_.fuses_elementwise) return pass(3 * bytes(x.y) + mask);
  OperationTime out = pass(3 * bytes(x.y));
  if (!x.bias.empty()) out += pass(2 * bytes(x.y));
  if (x.drop.p > 0) out += pass(2 * bytes(x.y) + mask);
  return out;
}

OperationTime OperationCost::of(const BiasDropoutAddNorm& x) const {
  return of(BiasDropoutAdd{x.y, x.x, x.bias, x.residual, x.drop}) + pass(2 * bytes(x.y));
}

OperationTime OperationCost::of(const NormBwdInput& x) const {
  OperationTime out = pass(3 * bytes(x.dx));
  if (!x.residual.empty()) out += pass(3 * bytes(x.dx)); // the sum with the residual's gradient is a separate kernel
  return out;
}

OperationTime OperationCost::of(const Dropout& x) const {
  OperationTime out = pass(2 * bytes(x.y) + (x.drop.p > 0 ? kMaskBytes * count(x.y) : 0));
  if (!code_.fuses_elementwise) out += pass(2 * bytes(x.y));
  return out;
}

/// softmax(scale q k^T), dropout, and the product with v.
OperationTime OperationCost::attention_core(const TensorView& q, const TensorView& k, bool drops) const {
  const std::int64_t batch = q.size(1) * q.size(2), sq = q.size(0), sk = k.size(0), d = q.size(3);
  const std::size_t size = bytes_of(q.dtype());
  const double all = scores(q, k);
  OperationTime out = head_product({batch, sq, sk, d, size}, d) + head_product({batch, sq, d, sk, size}, d);
  out += score_pass(all * (code_.fuses_softmax ? 2 * element(q) : kUnfusedSoftmaxBytes));
  if (drops) out += score_pass(all * (2 * element(q) + kMaskBytes));
  return out;
}

OperationTime OperationCost::of(const AttentionFwd& x) const {
  if (code_.scores == CodeTraits::Scores::tiled) { // one kernel
    const std::int64_t batch = x.q.size(1) * x.q.size(2), sq = x.q.size(0), sk = x.k.size(0), d = x.q.size(3);
    const std::size_t size = bytes_of(x.q.dtype());
    OperationTime out = pass(bytes(x.q) + bytes(x.k) + bytes(x.v) + bytes(x.o));
    out.seconds += tiled_product_s({batch, sq, sk, d, size}, d) + tiled_product_s({batch, sq, d, sk, size}, d);
    return out;
  }
  return attention_core(x.q, x.k, x.drop.p > 0) + pass(2 * bytes(x.o)); // o is copied from heads to columns
}

OperationTime OperationCost::of(const AttentionBwd& x) const {
  const std::int64_t batch = x.q.size(1) * x.q.size(2), sq = x.q.size(0), sk = x.k.size(0), d = x.q.size(3);
  const std::size_t size = bytes_of(x.q.dtype());
  if (code_.scores == CodeTraits::Scores::tiled) {
    // dq, and then dk and dv, in two kernels: both make the scores and dp (docs/adr/0014).
    const double read = bytes(x.dout) + bytes(x.q) + bytes(x.k) + bytes(x.v);
    OperationTime out = pass(read + bytes(x.dq)) + pass(read + bytes(x.dk) + bytes(x.dv));
    out.seconds += 4 * tiled_product_s({batch, sq, sk, d, size}, d) + tiled_product_s({batch, sq, d, sk, size}, d) +
                   2 * tiled_product_s({batch, sk, d, sq, size}, d);
    return out;
  }
  const double all = scores(x.q, x.k);
  OperationTime out = head_product({batch, sk, d, sq, size}, d) + head_product({batch, sq, sk, d, size}, d); // dv, dp
  out += head_product({batch, sq, d, sk, size}, d) + head_product({batch, sk, d, sq, size}, d);              // dq, dk
  if (x.drop.p > 0) out += score_pass(all * (2 * element(x.q) + kMaskBytes));
  out += score_pass(all * (code_.fuses_softmax ? 3 * element(x.q) : kUnfusedSoftmaxBwdBytes));
  // Gradients are copied from columns to heads and back.
  out += pass(2 * (bytes(x.dout) + bytes(x.dq) + bytes(x.dk) + bytes(x.dv)));
  if (code_.scores == CodeTraits::Scores::recomputed) out += attention_core(x.q, x.k, x.drop.p > 0);
  return out;
}

OperationTime OperationCost::of(const OpCall& call) const {
  switch (call.op) {
    case Op::gemm:
      return of(call.as<Gemm>());
    case Op::linear_fwd:
      return of(call.as<LinearFwd>());
    case Op::linear_bwd_input:
      return of(call.as<LinearBwdInput>());
    case Op::linear_bwd_weight:
      return of(call.as<LinearBwdWeight>());
    case Op::bias_dropout_add:
      return of(call.as<BiasDropoutAdd>());
    case Op::bias_dropout_add_norm:
      return of(call.as<BiasDropoutAddNorm>());
    case Op::norm_bwd_input:
      return of(call.as<NormBwdInput>());
    case Op::dropout:
      return of(call.as<Dropout>());
    case Op::attention_fwd:
      return of(call.as<AttentionFwd>());
    case Op::attention_bwd:
      return of(call.as<AttentionBwd>());
    case Op::xent_max:
      return pass(kMaxBytes * count(call.as<XentMax>().logits));
    case Op::xent_sums:
      return pass(kSumsBytes * count(call.as<XentSums>().logits));
    case Op::xent_fused:
      return pass((kMaxBytes + kSumsBytes) * count(call.as<XentFused>().logits));
    case Op::xent_bwd:
      return pass(kLossGradientBytes * count(call.as<XentBwd>().logits));
    default:
      return pass(call.bytes);
  }
}

} // namespace triax::cost
