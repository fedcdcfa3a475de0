// SPDX-License-Identifier: Apache-2.0
// Grouped-query attention of one block (Ainslie et al. 2023), a layer part: its linears, the norms of queries and keys,
// rotary positions, and the cache of a generating layer. Key heads and their query heads are split over the tensor
// ranks.
#pragma once

#include <triax/recompute_steps.hpp>

#include "llama.hpp"

namespace triax::model_llama {

class Attention {
 public:
  Attention(LayerParts& parts, const LayerContext& context, const Sizes& sizes);

  /// The parts of y = attention(x), without the residual connection, in this order; x and y [rows, b, h].
  /// @{
  void make_qkv(const LayerCall& call, Views params, const TensorView& x, Views stash) const;
  void attend(const LayerCall& call, Views stash) const;
  void project(const LayerCall& call, Views params, const TensorView& y, Views stash) const {
    projection_.forward(call, params, view(stash, heads_out_), y, stash);
  }
  /// @}
  /// dx [rows, b, h], summed over the tensor ranks.
  void backward_input(const LayerCall& call, Views params, const TensorView& x, const TensorView& dy,
                      const TensorView& dx, Views stash, Views grads) const;
  /// x and dy as in backward_input(); with sequence parallelism they are not read.
  void backward_weight(const LayerCall& call, const TensorView& x, const TensorView& dy, Views stash,
                       Views grads) const;

  /// As CheapRecompute: computes queries and keys again if their heads have a norm.
  /// @{
  std::vector<int> recomputed_stash() const {
    return has_norms() && !generates() ? std::vector{q_, k_} : std::vector<int>();
  }
  void recompute(const LayerCall& call, Views params, Views stash) const;
  /// @}
  bool has_norms() const { return !norms_.empty(); }
  /// The steps of make_qkv(), recompute() and attend(); `normed`: the index of x.
  /// @{
  RecomputeStep qkv_step(int normed) const;
  RecomputeStep norm_step() const;
  RecomputeStep core_step() const { return {"attention", {heads_out_, lse_}, {q_, k_, v_}}; }
  /// @}
  int heads_out() const { return heads_out_; } // index in the stash

 private:
  /// The parts of [s, b, (a + 2k)d/t], whose columns are ordered [key head, its query heads and key and value, d]. k
  /// and v are [s, b, k/t, d]. q is [s, b k/t, a/k, d], which a stride can describe; its order is that of [s, b, a/t,
  /// d].
  struct Qkv {
    TensorView q, k, v;
  };
  Qkv split_heads(const TensorView& qkv) const;

  /// to = from, normalized if the heads have a norm, and rotated. `to` is contiguous.
  void make_heads(const LayerCall& call, Views params, const TensorView& to, const TensorView& from, int which,
                  Views stash) const;
  /// Makes them from the heads that are kept for the backward of their norm.
  void make_normed_heads(const LayerCall& call, Views params, const TensorView& to, int which, Views stash) const;
  /// The backward of make_heads(): to = the gradient of `from`. `gradient`, that of `to` there, is overwritten.
  void backward_heads(const LayerCall& call, Views params, const TensorView& to, const TensorView& gradient, int which,
                      Views stash, Views grads) const;
  void rotate(const LayerCall& call, const TensorView& to, const TensorView& from, bool inverse) const;

  /// Where a call's keys or values are computed: a tensor of the call, or its rows of the cache.
  TensorView rows_of(const LayerCall& call, int cached, int own, Views stash) const;
  bool generates() const { return all_keys_ >= 0; }
  static Mask causal(const LayerCall& call) {
    Mask mask;
    mask.kind = Mask::Kind::causal;
    mask.q0 = call.rows.begin;
    return mask;
  }
  double scale() const { return 1 / std::sqrt(static_cast<double>(head_size_)); }

  std::int64_t micro_, group_, kv_heads_, head_size_; // key heads of this tensor rank
  double rope_theta_;
  RopeScaling rope_scaling_;
  ColumnLinear qkv_;
  std::vector<Norm> norms_; // norm of queries and norm of keys, or empty
  RowLinear projection_;

  // Indices in the stash. How long each tensor is kept: Life, in the constructor.
  int heads_in_, q_, k_ = -1, v_ = -1, lse_, heads_out_;
  int before_norm_[2] = {-1, -1}; // queries and keys, with norms
  int dheads_out_, dqkv_, dq_, dk_ = -1;
  int all_keys_ = -1, all_values_ = -1; // in the stash: keys and values of the sequence, when generating
};

} // namespace triax::model_llama
