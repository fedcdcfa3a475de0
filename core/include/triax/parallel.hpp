// SPDX-License-Identifier: Apache-2.0
// Layer parts for tensor parallelism: linear layers split by columns or rows, an embedding and a cross-entropy
// split by vocabulary (Shoeybi et al., "Megatron-LM", arXiv 1909.08053), and the norm between them.
//
// Threads, ownership, blocking: as for layers (model.hpp). Errors: Error. When it is created, each class adds its
// parameters and stash to a layer's descriptions and keeps their indices; its functions take all views of the layer.
// With tensor size 1 they use no communicator. Communication: f and g of the paper, as all-reduces over the tensor
// axis. With LayerContext::sequence_parallel, tensors that are otherwise equal on all tensor ranks have this rank's
// positions, s/t of the s rows of a call ("rows" below): they are gathered where all are needed, and sums are scattered
// (g bar of Korthikanti et al., arXiv 2205.05198, sections 4.2.2 and 4.2.3). The parts keep the gathered tensors in
// the layer's stash. Stash is described for the largest call, LayerContext::max_rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "triax/model.hpp"

namespace triax {

/// The descriptions of a layer while it is constructed. The classes below keep indices into the lists.
struct TRIAX_API LayerParts {
  std::vector<ParamSpec> params;
  std::vector<StashSpec> stash;
  std::uint32_t site0 = 0; // layer*16

  /// Add a description and return its index. A parameter gets the next site; throws Error after the sixteenth.
  /// @{
  int add(ParamSpec spec);
  int add(StashSpec spec);
  /// @}
};

/// Rows of a vocabulary that a tensor rank has: parts of ceil(V / t) rows, the last parts shorter. All ranks store the
/// same number of rows, a multiple of kVocabMultiple, so that rows of logits begin at multiples of 128 bytes, which
/// aligned loads and tensor cores need (GPT-2's 50257 tokens are stored as 50304). Rows past `valid` are padding.
struct VocabRange {
  std::int64_t begin = 0, valid = 0, stored = 0;
};
/// Stored rows are a multiple of this number.
inline constexpr std::int64_t kVocabMultiple = 64;
/// The rows of tensor rank `index` of `tensor` ranks.
TRIAX_API VocabRange vocab_range(std::int64_t vocab, int tensor, int index);

/// A parameter that is the same on all tensor ranks.
TRIAX_API ParamSpec replicated(std::string name, const Shape& shape, Init init, bool decay);
/// A parameter split along `dim` in equal parts over the tensor axis. Throws Error if the size is not divisible.
TRIAX_API ParamSpec split_along(int dim, std::string name, const Shape& global, Init init, bool decay,
                                const LayerContext& context);

/// All-reduce over the tensor axis, in place; does nothing if its size is 1.
TRIAX_API void tensor_all_reduce(const LayerCall& call, const TensorView& view, Reduce reduce = Reduce::sum);

/// Options of ColumnLinear and RowLinear.
struct LinearOptions {
  Init init{}; // of the weight
  bool bias = true;
  Activation act = Activation::none; // of a ColumnLinear's output
  /// The number of outputs of a ColumnLinear that lie side by side, each split over the tensor ranks. The weight is
  /// [parts, out/parts, in]. The gate and the up projection of SwiGLU are two parts, with Activation::silu_mul.
  std::int64_t parts = 1;
};

/// y = act(x W^T + bias). The rows of W [out, in], and so the columns of y, are split over the tensor ranks. The
/// parameters are NAME.weight and NAME.bias.
class TRIAX_API ColumnLinear {
 public:
  /// `out`: of all parts. Throws Error if the size of a part is not divisible by the tensor size.
  ColumnLinear(LayerParts& parts, const LayerContext& context, std::string name, std::int64_t in, std::int64_t out,
               const LinearOptions& options);
  /// x [rows, b, in]; y [s, b, out/t], with silu_mul [s, b, out/2t]; z [s, b, out/t] gets the input of the activation
  /// (empty without activation).
  void forward(const LayerCall& call, Views params, const TensorView& x, const TensorView& y, const TensorView& z,
               Views stash) const;
  /// dz [s, b, out/t]: gradient of the activation's input; dx [rows, b, in]: summed over the tensor ranks. With
  /// sequence parallelism, x is gathered again, for backward_weight(), which then does not read its own x.
  void backward_input(const LayerCall& call, Views params, const TensorView& x, const TensorView& dz,
                      const TensorView& dx, Views stash) const;
  /// Adds the gradients of weight and bias; x and dz as in backward_input().
  void backward_weight(const LayerCall& call, const TensorView& x, const TensorView& dz, Views stash,
                       Views grads) const;

 private:
  int weight_, bias_ = -1; // -1: none
  Activation act_;
  int all_x_ = -1, all_dx_ = -1, x_again_ = -1; // with sequence parallelism
};

/// y = x W^T, summed over the tensor ranks; the columns of W [out, in] and of x are split. The bias is replicated; the
/// caller adds it (together with dropout and residual). It has the gradient of all positions on every rank. The
/// parameters are NAME.weight and NAME.bias.
class TRIAX_API RowLinear {
 public:
  /// act must be none and parts 1.
  RowLinear(LayerParts& parts, const LayerContext& context, std::string name, std::int64_t in, std::int64_t out,
            const LinearOptions& options);
  int bias() const { return bias_; } // index in params and grads; -1: none
  /// x [s, b, in/t]; y [rows, b, out] without bias.
  void forward(const LayerCall& call, Views params, const TensorView& x, const TensorView& y, Views stash) const;
  /// dy [rows, b, out]; dx [s, b, in/t]. With `act`, x was act(before), and dx is the gradient of `before`, in its
  /// shape.
  void backward_input(const LayerCall& call, Views params, const TensorView& dy, const TensorView& dx, Views stash,
                      Activation act = Activation::none, const TensorView& before = {}) const;
  /// With sequence parallelism, dy is not read: backward_input() has gathered it.
  void backward_weight(const LayerCall& call, const TensorView& x, const TensorView& dy, Views stash,
                       Views grads) const;

 private:
  int weight_, bias_ = -1;
  int all_y_ = -1, all_dy_ = -1; // with sequence parallelism
};

/// Options of Norm.
struct NormOptions {
  NormKind kind = NormKind::layer; // layer: weight and bias; rms: weight only
  std::int64_t width = 0;          // h
  double eps = 1e-5;
  /// Not 0: the norm of each head of this tensor rank, with one weight for all heads. x is [s, b, heads, width].
  std::int64_t heads = 0;
};

/// Layer norm or RMS norm over the last dimension: NAME.weight, NAME.bias, and the statistics that its backward needs.
/// x, y and their gradients are [rows, b, h]. The gradients of weight and bias are partial with sequence parallelism,
/// because ranks have other positions, and for norms of heads over several tensor ranks, which have other heads.
class TRIAX_API Norm {
 public:
  Norm(LayerParts& parts, const LayerContext& context, const std::string& name, const NormOptions& options);

  /// y = norm(x). Keeps the statistics in the stash.
  void forward(const LayerCall& call, Views params, const TensorView& x, const TensorView& y, Views stash) const;
  /// Indices of the statistics in the stash.
  std::vector<int> statistics() const { return mean_ < 0 ? std::vector{rstd_} : std::vector{mean_, rstd_}; }
  /// Arguments of the operation that computes the norm's input and applies the norm, with the norm's own views set.
  BiasDropoutAddNorm fused(Views params, Views stash) const;
  /// dx = gradient through the norm, plus `residual` if it is not empty; dx may be dy or residual. Also adds the
  /// gradients of weight and bias here, so that x and dy need not be kept for the weight gradient pass.
  void backward(const LayerCall& call, Views params, const TensorView& x, const TensorView& dy,
                const TensorView& residual, const TensorView& dx, Views stash, Views grads) const;

 private:
  NormKind kind_;
  double eps_;
  int weight_, bias_ = -1;   // in params and grads
  int mean_ = -1, rstd_ = 0; // in the stash; rms has no mean
};

/// Embedding whose table [V, h], the parameter NAME, is split over the tensor ranks by vocabulary.
class TRIAX_API VocabEmbedding {
 public:
  VocabEmbedding(LayerParts& parts, const LayerContext& context, std::string name, std::int64_t hidden, Init init);
  /// tokens i32 [s, b]; y [rows, b, h], summed over the tensor ranks.
  void forward(const LayerCall& call, Views params, const TensorView& tokens, const TensorView& y, Views stash) const;
  /// dy [rows, b, h]. With sequence parallelism, gathers it for backward_weight(), which then does not read its own dy.
  void backward_input(const LayerCall& call, const TensorView& dy, Views stash) const;
  /// Adds the gradient of the table; dy as in backward_input().
  void backward_weight(const LayerCall& call, const TensorView& tokens, const TensorView& dy, Views stash,
                       Views grads) const;

 private:
  int table_;
  int all_y_ = -1, all_dy_ = -1; // with sequence parallelism
  VocabRange range_;
};

/// Logits x W^T of this rank's part of the vocabulary, and the loss over the whole vocabulary. No rank holds the logits
/// of the whole vocabulary; three all-reduces move b*s numbers each. The weight [V, h] is the parameter NAME of the
/// layer (usually tied).
class TRIAX_API VocabCrossEntropy {
 public:
  /// Adds the weight and the stash (logits, maxima, sums; W needs x for the gradient of the weight).
  VocabCrossEntropy(LayerParts& parts, const LayerContext& context, std::string name, std::int64_t hidden, Init init);
  /// x [rows, b, h]; targets i32 [s, b]; loss f64 [b].
  void forward(const LayerCall& call, Views params, const TensorView& x, const TensorView& targets,
               const TensorView& loss, Views stash) const;
  /// dx [rows, b, h] is summed over the tensor ranks; the logits in the stash are replaced by their gradient.
  void backward_input(const LayerCall& call, Views params, const TensorView& targets, const TensorView& dx,
                      Views stash) const;
  /// x [rows, b, h]; with sequence parallelism it is not read: forward() has gathered it.
  void backward_weight(const LayerCall& call, const TensorView& x, Views stash, Views grads) const;

 private:
  int weight_, logits_, max_, sum_exp_, target_logit_;
  int all_x_ = -1, all_dx_ = -1; // with sequence parallelism
  VocabRange range_;
  int tensor_;
};

/// Logits x W^T of the whole vocabulary on every tensor rank, for Purpose::generate: each rank computes those of its
/// part, as VocabCrossEntropy does with the same weight, and an all-gather moves them.
class TRIAX_API VocabLogits {
 public:
  VocabLogits(LayerParts& parts, const LayerContext& context, std::string name, std::int64_t hidden, Init init);
  /// x [s, b, h]; logits [s, b, V], without padding.
  void forward(const LayerCall& call, Views params, const TensorView& x, const TensorView& logits, Views stash) const;

 private:
  int weight_, part_;
  int all_parts_ = -1; // with several tensor ranks
  std::int64_t vocab_;
  int tensor_;
  VocabRange range_;
};

} // namespace triax
