// SPDX-License-Identifier: Apache-2.0
// The operations of a transformer, as argument structs. The comment of each says what its views hold.
//
// Threads, ownership: values; the memory of the views must stay valid until the operation has finished on its stream.
// Blocking: never. Errors: none here; call_of() and KernelSet (kernels.hpp) reject views that do not match.
// Shapes: [rows, n] is any contiguous view whose last dimension is n, with the other dimensions joined. [rows] is any
// contiguous view of that many elements. Tensors of the residual stream are [s, b, h], so row r belongs to
// sample r % b. "+=" adds to the existing values; all other outputs are overwritten.
// Types: all floating views of one operation have one dtype, except where a comment says otherwise. Statistics (mean,
// rstd, lse, max, sum_exp, target_logit) are f32, or f64 if the data is f64. The target of a "+=" (also d of a gemm)
// may be f32 if the data is bf16 or f16. Accumulation: at least fp32 (fp64 in the reference kernel set).
// "May be empty": a default TensorView is allowed. New fields are added at the end of a struct. (Default member
// initialisers of {} let designated initialisers leave a field out without a warning.)
// Ids in brackets are clauses of the contract of kernel sets (kernels.hpp), which the conformance suite tests. A new
// clause, of an operation or not, gets the next number that neither header has: ids that a release has are not moved.
#pragma once

#include <cstdint>
#include <span>

#include "triax/random.hpp"
#include "triax/tensor.hpp"

namespace triax {

/// Values that change from step to step. They are in device memory, so that a captured step can be replayed. One block
/// per rank; kernels read it on the device. In a step, the host writes only lr. The operation step_control writes the
/// rest, so that a step can be clipped or skipped without the host.
struct StepScalars {
  float lr = 0;                // learning rate of this step
  float clip = 1;              // gradients are multiplied by this in the optimizer's step
  float loss_scale = 1;        // the loss gradient is multiplied by this, and clip divides by it again
  float skip = 0;              // not 0: the optimizer changes nothing
  std::int64_t step = 0;       // the optimizer's step count, from 1: skipped steps are not counted
  double grad_norm = 0;        // norm of the whole gradient, divided by loss_scale, before clipping
  std::int32_t good_steps = 0; // steps not skipped since the last skipped step, or since loss_scale grew
  std::int32_t hysteresis = 1; // skipped steps until loss_scale decreases, see LossScaling
};

/// How loss_scale is adjusted: the rules of Megatron-LM's DynamicGradScaler (megatron/core/optimizer/grad_scaler.py).
/// With the default values, a scale that starts at `min` never changes.
struct LossScaling {
  float min = 1;
  float growth = 2, backoff = 0.5f;
  std::int32_t window = 0;     // consecutive unskipped steps until it grows and hysteresis is reset; 0: never
  std::int32_t hysteresis = 1; // skipped steps since it grew: this one and all later ones decrease it
};

/// Activation function of a linear layer. silu_mul: SwiGLU, of a gate and an up projection.
enum class Activation : std::uint8_t { none, gelu_tanh, silu_mul };
/// Layer norm, or RMS norm.
enum class NormKind : std::uint8_t { layer, rms };

/// [K20] Dropout: element e of a sample is dropped if its Philox word is below drop_threshold(p); otherwise it is
///       multiplied by 1/(1-p). e = (head*rows + row)*width + column in the sample's global tensor; site is layer*16 +
///       site. For [rows, n] views, row r of the view is (position r / b, sample r % b), head is 0, and row = row0 + r
///       / b, column = column0 + j. For [b, a, sq, sk] scores, head = head0 + a, row = row0 + q, column = column0 + k;
///       for attention the same with q0 and k0 of the Mask in place of row0 and column0.
struct Drop {
  float p = 0;
  PhiloxKey key{};
  std::uint32_t site = 0;
  TensorView samples{}; // i64 [b], running sample numbers; may be empty when p is 0
  std::int64_t head0 = 0, row0 = 0, column0 = 0;
  std::int64_t rows = 0, width = 0; // of the global tensor of one sample
};

/// Which keys a query can see. causal: k0 + k <= q0 + q. lengths (i32 [b], may be empty): keys with k0 + k >= length
/// are hidden.
struct Mask {
  enum class Kind : std::uint8_t { none, causal };
  Kind kind = Kind::none;
  std::int64_t q0 = 0, k0 = 0;
  TensorView lengths{};
};

// Primitives

/// [K21] d = alpha * op(a) op(b) + beta * d. d [..., M, N]; op(a) [..., M, K]; op(b) [..., K, N]; up to two leading
///       batch dimensions, equal in all three. The last stride of each view is 1. With beta = 0, d is not read.
struct Gemm {
  TensorView d{}, a{}, b{};
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 0;
};
/// [K22] y = x + bias; [rows, n], bias [n]. y may be x.
struct BiasAdd {
  TensorView y{}, x{}, bias{};
};
/// [K23] dbias += sum over rows of dy, in row order within shape-fixed blocks.
struct BiasBwd {
  TensorView dbias{}, dy{};
};
/// [K24] y = a + b; equal shapes; y may be a or b.
struct Add {
  TensorView y{}, a{}, b{};
};
/// [K25] y = dropout(x); the backward is the same operation on the gradient. y may be x. A view of four dimensions is
///       [b, a, sq, sk] scores, one of fewer is [rows, n] (see Drop).
struct Dropout {
  TensorView y{}, x{};
  Drop drop{};
};
/// [K26] gelu_tanh: y = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks & Gimpel 2016). silu_mul: x [rows,
///       2n], y [rows, n] = silu(x[:, :n]) * x[:, n:] (Shazeer 2020).
struct ActFwd {
  Activation act = Activation::none;
  TensorView y{}, x{};
};
/// [K27] dx = dy * act'(x); dx may be dy for gelu_tanh.
struct ActBwd {
  Activation act = Activation::none;
  TensorView dx{}, dy{}, x{};
};
/// [K28] layer: y = (x - mean) * rstd * weight + bias. rms: y = x * rstd * weight, without bias; its mean may be empty
///       and is neither read nor written. mean, rstd [rows] are written.
struct NormFwd {
  NormKind kind = NormKind::layer;
  TensorView y{}, x{}, weight{}, bias{}, mean{}, rstd{};
  double eps = 1e-5;
};
/// [K29] dx = d(norm)/dx applied to dy, plus `residual` if given (the gradient of the residual connection). dx may be
///       dy or residual.
struct NormBwdInput {
  NormKind kind = NormKind::layer;
  TensorView dx{}, dy{}, x{}, weight{}, mean{}, rstd{}, residual{};
};
/// [K30] dweight, dbias += ; dbias may be empty, and is empty for rms.
struct NormBwdWeight {
  NormKind kind = NormKind::layer;
  TensorView dweight{}, dbias{}, dy{}, x{}, mean{}, rstd{};
};
/// [K31] y = softmax(scale * x) under the mask, over the last dimension; x [b, a, sq, sk]. y may be x. A row without
///       visible keys becomes zeros. lse [b, a, sq], the log of the sum of exponentials, may be empty.
struct SoftmaxFwd {
  TensorView y{}, x{};
  double scale = 1;
  Mask mask{};
  TensorView lse{};
};
/// [K32] dx = scale * y * (dy - delta); dx may be dy. delta [rows]; it may be empty, and is then sum(dy * y), which
///       needs all keys of a row.
struct SoftmaxBwd {
  TensorView dx{}, dy{}, y{};
  double scale = 1;
  TensorView delta{};
};
/// [K33] The probabilities of some of the keys of each row: y = exp(scale * x - lse), and 0 where the mask hides a key;
///       x [b, a, sq, sk], lse [b, a, sq] of all keys. y may be x.
struct SoftmaxFromLse {
  TensorView y{}, x{}, lse{};
  double scale = 1;
  Mask mask{};
};
/// [K34] delta [b, a, sq] = sum over the last dimension of dout * o, both [sq, b, a, d] (Dao, "FlashAttention-2",
///       2023). Views of dout and o may be strided, last stride 1.
struct AttentionDelta {
  TensorView delta{}, dout{}, o{};
};
/// [K35] Attention over two sets of keys from the results of each: o, lse become those of both sets. With w = exp(lse -
///       new) and w_more = exp(lse_more - new), where new = log(exp(lse) + exp(lse_more)): o = w o + w_more o_more. A
///       query that sees no key of either set keeps lse = -infinity and gets o = 0. o, o_more [sq, b, a, d] may be
///       strided, last stride 1; lse, lse_more [b, a, sq].
struct AttentionMerge {
  TensorView o{}, lse{}, o_more{}, lse_more{};
};
/// Frequencies of rotary positions for sequences that are longer than the original ones: Llama 3.1's (transformers'
/// rope_type "llama3"). A pair turns f * original_positions / (2 pi) times over the original sequence. With at least
/// high_freq_factor turns it keeps its frequency f; with at most low_freq_factor, f is divided by `factor`; between the
/// two, the share of f grows linearly with the turns. With a factor of 1, the other fields are not read.
struct RopeScaling {
  double factor = 1;
  double low_freq_factor = 1, high_freq_factor = 4;
  double original_positions = 8192;
};
/// [K36] Rotary positions (Su et al. 2021) on x [s, b, a, d]: pairs (i, i + d/2), angle (position0 + s) * f, where f is
///       base^(-2i/d), changed by `scaling` (scaled_frequency() of rope_scaling.hpp); `inverse` rotates by the negative
///       angle, which is the backward. y may be x. Views may be strided, last stride 1.
struct Rope {
  TensorView y{}, x{};
  std::int64_t position0 = 0;
  double base = 10000;
  bool inverse = false;
  RopeScaling scaling{};
};
/// [K37] y[s, b, :] = table[token - begin] for tokens i32 [s, b] in [begin, begin + valid), zeros for others. table
///       [rows, h] with rows >= valid.
struct EmbedFwd {
  TensorView y{}, table{}, tokens{};
  std::int64_t begin = 0, valid = 0;
};
/// [K38] dtable[token - begin] += dy[s, b, :], in row order.
struct EmbedBwd {
  TensorView dtable{}, dy{}, tokens{};
  std::int64_t begin = 0, valid = 0;
};

// Cross-entropy over a vocabulary that may be split by columns. logits [rows, v]; columns from `valid` on are padding
// and count as -infinity; column j is token begin + j; targets i32 [rows]. If the maxima, sums and target logits are
// all-reduced between the operations, this is the published vocabulary-parallel loss (Shoeybi et al. 2019).

/// [K39] max [rows] = largest valid logit.
struct XentMax {
  TensorView max{}, logits{};
  std::int64_t valid = 0;
};
/// [K40] sum_exp [rows] = sum of exp(logit - max); target_logit [rows] = logit of the target minus max, 0 if not in
///       range.
struct XentSums {
  TensorView sum_exp{}, target_logit{}, logits{}, max{}, targets{};
  std::int64_t begin = 0, valid = 0;
};
/// [K41] loss f64 [b]: for sample i the sum over rows r with r % b = i, in row order, of log(sum_exp) - target_logit.
struct XentLoss {
  TensorView loss{}, sum_exp{}, target_logit{};
};
/// [K42] logits become (softmax - onehot(target)) * scale * loss_scale; padding columns become 0.
struct XentBwd {
  TensorView logits{}, max{}, sum_exp{}, targets{};
  std::int64_t begin = 0, valid = 0;
  double scale = 1;
  const StepScalars* scalars = nullptr; // device memory; null: loss_scale is 1
};

/// [K43] out f64 [1] = sum of x * x, added in double in shape-fixed blocks. x contiguous.
struct SumSquares {
  TensorView out{}, x{};
};
/// [K44] AdamW (Loshchilov & Hutter, ICLR'19) on one flat shard: g = gradient * clip; m = b1 m + (1-b1) g; v = b2 v +
///       (1-b2) g^2; p -= lr * (m / (1-b1^step) / (sqrt(v / (1-b2^step)) + eps) + decay * p). Does nothing if `skip` is
///       set. master, gradient, m, v have one dtype; `working` (may be empty) gets the new value in its own dtype.
struct AdamW {
  TensorView master{}, gradient{}, m{}, v{}, working{};
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, decay = 0;
  const StepScalars* scalars = nullptr;
};
/// [K45] SGD: g = gradient * clip + decay * p; with momentum u = momentum * u + g (u = g at step 1), p -= lr * u;
///       otherwise p -= lr * g. Does nothing if `skip` is set.
struct Sgd {
  TensorView master{}, gradient{}, velocity{}, working{}; // velocity may be empty when momentum is 0
  double momentum = 0, decay = 0;
  const StepScalars* scalars = nullptr;
};
/// [K46] Decides about the optimizer's step, by the rules of step_control.hpp. From the sum of squares of the whole
///       gradient it computes grad_norm and clip, or skips the step; it updates the step count and the loss scale of
///       the next step.
struct StepControl {
  TensorView squares{}; // f64, contiguous: sums of squares of parts of the gradient, from all ranks
  TensorView order{};   // i32 [k]: indices in `squares` of the sums to add, in this order, in double
  TensorView losses{};  // f64, contiguous, other numbers among them: the step is also skipped if one is not finite
  StepScalars* scalars = nullptr; // device memory
  double clip_grad = 0;           // largest norm; 0: no limit
  LossScaling scaling{};
};

// Fused operations: each has a default made of the primitives

/// [K47] z = x w^T + bias; y = act(z). x [rows, k], w [n, k], bias [n] (may be empty). With an activation, z [rows, n]
///       is kept for the backward; otherwise z is empty.
struct LinearFwd {
  TensorView y{}, z{}, x{}, w{}, bias{};
  Activation act = Activation::none;
};
/// [K48] dx = dy w, where dy is the gradient of z. With an activation, x was act(before), and dx is the gradient of
///       `before`: act'(before) * (dy w), [rows, k], for silu_mul [rows, 2k] (with w [n, k]). dx may not be `before`.
struct LinearBwdInput {
  TensorView dx{}, dy{}, w{}, before{};
  Activation act = Activation::none;
};
/// [K49] dw += dy^T x; dbias += sum over rows of dy (may be empty).
struct LinearBwdWeight {
  TensorView dw{}, dbias{}, dy{}, x{};
};
/// [K50] y = residual + dropout(x + bias); bias may be empty; y may be residual. At most three dimensions.
struct BiasDropoutAdd {
  TensorView y{}, x{}, bias{}, residual{};
  Drop drop{};
};
/// [K51] BiasDropoutAdd, followed by normed = norm(y).
struct BiasDropoutAddNorm {
  TensorView y{}, normed{}, mean{}, rstd{}, x{}, bias{}, residual{};
  Drop drop{};
  NormKind kind = NormKind::layer;
  TensorView weight{}, norm_bias{};
  double eps = 1e-5;
};
/// [K52] o = dropout(softmax(scale q k^T, mask)) v. q, o [sq, b, a, d]; k, v [sk, b, a_kv, d] with a a multiple of a_kv
///       (query head i reads key head i / (a / a_kv)); views may be strided, last stride 1. lse [b, a, sq].
struct AttentionFwd {
  TensorView o{}, lse{}, q{}, k{}, v{};
  double scale = 1;
  Mask mask{};
  Drop drop{};
};
/// [K53] The gradients of AttentionFwd for the keys of k and v, which may be some of the keys of a query: o and lse are
///       the results of all of them. With p = exp(scale q k^T - lse), 0 for hidden keys, and delta = rowsum(dout o): dv
///       = dropout(p)^T dout; ds = p (dropout(dout v^T) - delta); dq = scale ds k; dk = scale ds^T q. So the gradients
///       of parts of the keys are parts of dk and dv, and dq is the sum over the parts. Shapes as q, k, v. dq is
///       overwritten; so are dk and dv, unless `add_kv` adds to them (parts of the queries).
struct AttentionBwd {
  TensorView dq{}, dk{}, dv{}, dout{}, q{}, k{}, v{}, o{}, lse{};
  double scale = 1;
  Mask mask{};
  Drop drop{};
  bool add_kv = false;
};
/// [K54] XentMax, XentSums and XentLoss in one operation, for a vocabulary that is not split.
struct XentFused {
  TensorView loss{}, max{}, sum_exp{}, target_logit{}, logits{}, targets{};
  std::int64_t valid = 0;
};
/// [K55] AdamW on many shards; the default runs them one after another.
struct MultiAdamW {
  std::span<const AdamW> shards{};
};

/// X(args struct, name) for each primitive, each fused operation, or all operations.
/// @{
// clang-format off
#define TRIAX_PRIMITIVES(X) \
  X(Gemm, gemm) X(BiasAdd, bias_add) X(BiasBwd, bias_bwd) X(Add, add) X(Dropout, dropout) \
  X(ActFwd, act_fwd) X(ActBwd, act_bwd) \
  X(NormFwd, norm_fwd) X(NormBwdInput, norm_bwd_input) X(NormBwdWeight, norm_bwd_weight) \
  X(SoftmaxFwd, softmax_fwd) X(SoftmaxBwd, softmax_bwd) X(SoftmaxFromLse, softmax_from_lse) \
  X(AttentionDelta, attention_delta) X(AttentionMerge, attention_merge) X(Rope, rope) \
  X(EmbedFwd, embed_fwd) X(EmbedBwd, embed_bwd) \
  X(XentMax, xent_max) X(XentSums, xent_sums) X(XentLoss, xent_loss) X(XentBwd, xent_bwd) \
  X(SumSquares, sum_squares) X(AdamW, adamw) X(Sgd, sgd) \
  X(StepControl, step_control)
#define TRIAX_FUSED(X) \
  X(LinearFwd, linear_fwd) X(LinearBwdInput, linear_bwd_input) X(LinearBwdWeight, linear_bwd_weight) \
  X(BiasDropoutAdd, bias_dropout_add) X(BiasDropoutAddNorm, bias_dropout_add_norm) \
  X(AttentionFwd, attention_fwd) X(AttentionBwd, attention_bwd) X(XentFused, xent_fused) X(MultiAdamW, multi_adamw)
#define TRIAX_OPERATIONS(X) TRIAX_PRIMITIVES(X) TRIAX_FUSED(X)
// clang-format on
/// @}

/// The operations; their numbers may change from version to version.
enum class Op : std::uint8_t {
#define TRIAX_OP(Args, name) name,
  TRIAX_OPERATIONS(TRIAX_OP)
#undef TRIAX_OP
};

} // namespace triax
