// Tensor parallelism, written once for every model: linear layers split by columns or rows, an embedding and a
// cross-entropy split by vocabulary (Shoeybi et al., "Megatron-LM", arXiv 1909.08053).
//
// Threads, ownership, blocking: as for layers (model.hpp). Each piece adds its parameters and stash to a layer's
// descriptions when it is made, and remembers where; its functions take the layer's own spans. With tensor = 1 no
// communicator is asked for and nothing is sent. What is sent: f and g of the paper, as all-reduces over "tensor".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "triax/model.hpp"

namespace triax {

/// The descriptions of a layer while it is being built; indices into them are what the pieces keep.
struct TRIAX_API LayerParts {
  std::vector<ParamSpec> params;
  std::vector<StashSpec> stash;
  std::uint32_t site0 = 0; // layer*16

  int add(ParamSpec spec); // gives it the next site; throws Error past the sixteenth
  int add(StashSpec spec);
};

/// Rows of a vocabulary held by a tensor rank: parts of ceil(V / t), the last ones shorter. Every rank stores equally
/// many, a multiple of kVocabMultiple: rows of logits then begin at multiples of 128 bytes, as aligned loads and tensor
/// cores ask for (of GPT-2's 50257 tokens, 50304 are stored). What is past `valid` is padding.
struct VocabRange {
  std::int64_t begin = 0, valid = 0, stored = 0;
};
inline constexpr std::int64_t kVocabMultiple = 64;
TRIAX_API VocabRange vocab_range(std::int64_t vocab, int tensor, int index);

/// A replicated parameter of `shape`; pieces use it for weights that are not split.
TRIAX_API ParamSpec replicated(std::string name, const Shape& shape, Init init, bool decay);
/// A parameter split along `dim` in equal parts over the tensor axis; throws Error if it does not divide.
TRIAX_API ParamSpec split_along(int dim, std::string name, const Shape& global, Init init, bool decay,
                                const LayerContext& context);

/// All-reduce over the tensor axis, in place; nothing to do where it has size 1.
TRIAX_API void tensor_all_reduce(const LayerCall& call, const TensorView& view, Reduce reduce = Reduce::sum);

/// y = act(x W^T + bias) with the rows of W [out, in], and so the columns of y, split over the tensor ranks.
class TRIAX_API ColumnLinear {
 public:
  ColumnLinear(LayerParts& parts, const LayerContext& context, std::string name, std::int64_t in, std::int64_t out,
               Activation act, Init init);
  /// x [s, b, in], replicated; y [s, b, out/t]; z keeps the activation's input (empty without one).
  void forward(const LayerCall& call, Views params, const TensorView& x, const TensorView& y,
               const TensorView& z = {}) const;
  /// dz: gradient before the activation [s, b, out/t]; dx [s, b, in] is summed over the tensor ranks.
  void backward_input(const LayerCall& call, Views params, const TensorView& dz, const TensorView& dx) const;
  void backward_weight(const LayerCall& call, const TensorView& x, const TensorView& dz, Views grads) const;

 private:
  int weight_, bias_;
  Activation act_;
};

/// y = x W^T, summed over the tensor ranks, with the columns of W [out, in] and of x split; the bias, replicated, is
/// left to the caller (it fuses with dropout and residual).
class TRIAX_API RowLinear {
 public:
  RowLinear(LayerParts& parts, const LayerContext& context, std::string name, std::int64_t in, std::int64_t out,
            Init init);
  int bias() const { return bias_; } // index in params and grads
  /// x [s, b, in/t]; y [s, b, out] without bias.
  void forward(const LayerCall& call, Views params, const TensorView& x, const TensorView& y) const;
  /// dy [s, b, out], replicated; dx [s, b, in/t].
  /// Where x was act(before), dx may be the gradient of `before`, whose shape it then has.
  void backward_input(const LayerCall& call, Views params, const TensorView& dy, const TensorView& dx,
                      Activation act = Activation::none, const TensorView& before = {}) const;
  void backward_weight(const LayerCall& call, const TensorView& x, const TensorView& dy, Views grads) const;

 private:
  int weight_, bias_;
};

/// Rows of a table [V, h], split over the tensor ranks by vocabulary.
class TRIAX_API VocabEmbedding {
 public:
  VocabEmbedding(LayerParts& parts, const LayerContext& context, std::string name, std::int64_t hidden, Init init);
  /// tokens i32 [s, b]; y [s, b, h], summed over the tensor ranks.
  void forward(const LayerCall& call, Views params, const TensorView& tokens, const TensorView& y) const;
  void backward_weight(const LayerCall& call, const TensorView& tokens, const TensorView& dy, Views grads) const;

 private:
  int table_;
  VocabRange range_;
};

/// Logits x W^T over this rank's part of the vocabulary and the loss over all of it: no rank holds logits of the whole
/// vocabulary; three all-reduces of b*s numbers. The weight [V, h] is a parameter of the layer (usually tied).
class TRIAX_API VocabCrossEntropy {
 public:
  /// Adds the weight and the stash (logits, maxima, sums; the weight's gradient needs x until W).
  VocabCrossEntropy(LayerParts& parts, const LayerContext& context, std::string name, std::int64_t hidden,
                    std::int64_t sequence, Init init);
  /// x [s, b, h]; targets i32 [s, b]; loss f64 [b].
  void forward(const LayerCall& call, Views params, const TensorView& x, const TensorView& targets,
               const TensorView& loss, Views stash) const;
  /// dx [s, b, h] is summed over the tensor ranks; the logits in the stash become their gradient.
  void backward_input(const LayerCall& call, Views params, const TensorView& targets, const TensorView& dx,
                      Views stash) const;
  void backward_weight(const LayerCall& call, const TensorView& x, Views stash, Views grads) const;

 private:
  int weight_, logits_, max_, sum_exp_, target_logit_;
  VocabRange range_;
  int tensor_;
};

} // namespace triax
