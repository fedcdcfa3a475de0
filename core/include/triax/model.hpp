// SPDX-License-Identifier: Apache-2.0
// Models: a Model is a plugin's object, one per rank, which creates Layers. Layers describe tensors and compute; they
// do not own memory.
//
// Threads: the rank's main thread. Ownership: the executor owns all memory and passes views; a layer owns its
// descriptions, which never change. Blocking: a layer only enqueues work on the stream that it is given. Errors: Error.
//
// A layer uses only the kernel set, device and communicators of LayerCall. So the same code serves training, dry runs
// (their kernel set and device, and views without data) and simulation. The forward always writes its stash with the
// same kernels. With recomputation, the engine keeps a layer's inputs only, and calls its forward once more before
// backward_input (LayerCall::again). A whole backward is backward_input, then backward_weight.
//
// A call computes some positions of the sequence, its rows: all of them in training; when generating, a part of the
// prompt or one token. A generating layer runs forwards only. What it needs of earlier calls is in tensors of its stash
// that live as long as the sequence (Life::sequence), and the model ends in logits in place of a loss.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "triax/communicator.hpp"
#include "triax/extension.hpp"
#include "triax/kernels.hpp"
#include "triax/layout.hpp"

namespace triax {

/// Version of the interface; docs/plugins/changelog.md has its history.
inline constexpr std::uint32_t kModelInterface = 4;

/// Initial values of a parameter. They depend on the element's index in the global tensor, and are computed on the
/// host.
struct Init {
  enum class Kind : std::uint8_t { zeros, ones, normal };
  Kind kind = Kind::zeros;
  double std = 0;
};

/// The part of a parameter that a rank has: a range of one dimension, which an axis divides.
struct Cut {
  std::string axis; // "tensor"; of one rank if the dimension is only padded
  int dim = 0;
  std::int64_t begin = 0, end = 0; // of `dim` in ParamSpec::global; empty if the rank has only padding
  bool operator==(const Cut&) const = default;
};

/// One parameter of a layer: its name, shapes, initial values, and how it is split over ranks.
struct ParamSpec {
  std::string name; // unique within the layer: "attention.qkv.weight"
  Shape global;     // of the whole parameter, without padding
  /// Empty: replicated. Each axis and each dimension is in one cut at most: an expert's weight [E, n, k] may be cut
  /// along E by one axis and along n by another. An axis that divides layers cuts nothing.
  std::vector<Cut> cuts;
  /// The shape as stored. Rows past end - begin are padding: zeros, never updated. Only dimension 0 may have them.
  Shape local;
  Init init;
  bool decay = false;     // weight decay applies
  std::uint32_t site = 0; // random site of its initial values, unique in the model: layer*16 + n
  /// Axes that divide tensors and on whose ranks the layer computes partial gradients, which the engine adds. Over axes
  /// that divide samples or positions it always adds, unless the axis cuts the parameter.
  std::vector<std::string> partial;

  /// Null if no axis divides the dimension.
  const Cut* cut_along(int dim) const noexcept {
    for (const Cut& cut : cuts)
      if (cut.dim == dim) return &cut;
    return nullptr;
  }
};

/// The purpose of layers. generate: forwards without dropout, of some rows of a sequence at a time.
enum class Purpose : std::uint8_t { train, generate };

/// Consecutive positions of a sequence.
struct Rows {
  std::int64_t begin = 0, count = 0;
  /// The position after the last.
  std::int64_t end() const { return begin + count; }
  bool operator==(const Rows&) const = default;
};

/// How long a tensor is kept within one microbatch: from the forward or the input gradient to its last reader.
/// input_only: within one backward_input(). sequence, only for Purpose::generate: from call to call, such as keys and
/// values. A call writes its rows, and reads those up to its end; later rows are zeros.
enum class Life : std::uint8_t {
  forward_only,
  forward_to_input,
  forward_to_weight,
  input_only,
  input_to_weight,
  sequence
};

/// A tensor that a layer keeps from its forward for its backward, or from call to call.
struct StashSpec {
  std::string name;
  Shape shape; // in the largest call
  DType dtype = DType::f32;
  Life life = Life::forward_to_input;
  /// The dimension that has the rows of a call; -1: none. The view of a smaller call has fewer, and is contiguous. With
  /// Life::sequence it is not used: each view has all rows of the sequence.
  int row_dim = 0;
};

/// A boundary tensor. "tokens" and "targets" (i32 [s, b]) come from the data; "loss" (f64 [b], summed over the sample's
/// tokens) goes to the training loop. For Purpose::generate, no layer reads targets, and the last output is "logits"
/// [s, b, V] of the whole vocabulary. Any other name connects the output of one layer to the input of the next. Unless
/// it is `sharded`, all ranks of a tensor group hold the same bits of it and of its gradient, so that transfers between
/// stages can be scattered.
struct TensorSpec {
  std::string name;
  Shape shape; // in the largest call
  DType dtype = DType::f32;
  Life life = Life::forward_only; // for an input: how long the layer reads it, from its forward on
  bool sharded = false;           // over tensor ranks: each has a different part, as with sequence parallelism
  int row_dim = 0;                // as StashSpec::row_dim
};

/// The run for which a layer is created.
struct LayerContext {
  const Layout& layout; // outlives the layers
  int rank = 0;
  std::int64_t micro = 1;     // samples of a microbatch, b
  std::int64_t vocab = 0;     // without padding
  DType compute = DType::f32; // of activations, working weights, and the boundaries between stages
  std::uint64_t seed = 0;
  /// Norms, dropouts and the residual stream have the positions of this tensor rank only (Korthikanti et al., arXiv
  /// 2205.05198). False with one tensor rank.
  bool sequence_parallel = false;
  std::int64_t sequence = 0; // positions of a sample; for Purpose::generate, of tensors with Life::sequence
  std::int64_t max_rows = 0; // rows of the largest call, s; in training all positions
  Purpose purpose = Purpose::train;

  /// The rows of this rank, among these rows of the residual stream. With sequence parallelism, their number must be
  /// divisible by the tensor size.
  Rows own(const Rows& rows) const {
    if (!sequence_parallel) return rows;
    const std::int64_t count = rows.count / tensor_size();
    return {rows.begin + count * tensor_rank(), count};
  }
  /// Their number in the largest call.
  std::int64_t own_rows() const { return own({0, max_rows}).count; }

  /// Size of the tensor axis, and the coordinate of this rank on it.
  /// @{
  int tensor_size() const { return layout.tensor_size(); }
  int tensor_rank() const { return layout.coordinate(rank, kTensorAxis); }
  /// @}
};

/// The communicators of a rank, by axis, or by the product of axes (Group::axis). An axis of size 1 has none.
class TRIAX_API Groups {
 public:
  /// Sets the communicator of an axis, or of a product of axes. Throws Error if it has one.
  void set(std::string axis, Communicator* communicator);
  /// Null if the axis has size 1, or nothing needs the product of these axes.
  Communicator* find(std::string_view axis) const noexcept;

 private:
  std::vector<std::pair<std::string, Communicator*>> entries_;
};

/// Arguments that all functions of a layer get.
struct LayerCall {
  Device& device;
  KernelSet& kernels;
  Stream& stream;
  std::span<std::byte> scratch;
  const Groups& groups;
  TensorView samples;  // i64 [b], running number of each sample; empty when generating
  bool dropout = true; // false in evaluation and when generating
  /// True for a forward of which only the stash is wanted, with the same bits as at the first call. The outputs are
  /// empty views; leave out the work that only they need.
  bool again = false;
  double loss_gradient = 1;             // 1 / tokens of the global batch
  const StepScalars* scalars = nullptr; // device memory: loss_scale; null: it is 1
  ActionId action = kNoAction;
  Rows rows{}; // positions that this call computes, of all tensor ranks together: see LayerContext::own()

  /// Stream and scratch memory of the operations of this call.
  OpContext op() const { return {stream, scratch}; }
};

/// Views in the order of the descriptions.
using Views = std::span<const TensorView>;

/// FLOPs of one microbatch on this rank.
struct Cost {
  double forward = 0, backward_input = 0, backward_weight = 0;
};

/// A layer: describes its tensors, and enqueues its forward and its backwards.
class TRIAX_API Layer : public Extensible {
 public:
  virtual ~Layer();
  /// For messages and reports: "block 3".
  virtual std::string_view name() const = 0;
  /// Descriptions of its tensors. They do not change after the constructor.
  /// @{
  virtual std::span<const ParamSpec> params() const = 0;
  virtual std::span<const StashSpec> stash() const = 0;
  virtual std::span<const TensorSpec> inputs() const = 0;
  virtual std::span<const TensorSpec> outputs() const = 0;
  /// @}
  /// FLOPs of its passes.
  virtual Cost cost() const = 0;

  /// Views are in the order of the descriptions. Gradients have the master type and accumulate (+=). For
  /// Purpose::generate, the backwards are not called.
  virtual void forward(const LayerCall& call, Views params, Views in, Views out, Views stash) = 0;
  /// dout, din: gradients of outputs and inputs (empty views for tokens, targets and loss). It may also accumulate
  /// gradients of parameters that it computes on the way.
  virtual void backward_input(const LayerCall& call, Views params, Views in, Views dout, Views din, Views stash,
                              Views grads) = 0;
  /// Adds the gradients of the parameters that backward_input() has not added. Reads the stash, and what
  /// backward_input() wrote to it.
  virtual void backward_weight(const LayerCall& call, Views in, Views stash, Views grads) = 0;
};

/// Two parameters that share one value: the initial value of the first, sum of both gradients, one update. Checkpoints
/// have it with the name of the first.
struct Tie {
  int layer_a = 0; // less than layer_b
  std::string param_a;
  int layer_b = 0;
  std::string param_b;
};

/// Facts about a model that the layout does not change.
struct ModelInfo {
  int blocks = 0;            // transformer layers (l), which `parallel.split` distributes
  int first_block = 0;       // number of the first; other layers are before it and after the last
  std::int64_t sequence = 0; // tokens per sample (s)
};

/// The requirements of a run on a model.
struct ModelRequest {
  std::int64_t vocab = 0;
  DType compute = DType::f32;
  bool sequence_parallel = false;   // refuse it if the layers ignore LayerContext::sequence_parallel
  bool recompute = false;           // refuse it if the blocks ignore LayerCall::again
  Purpose purpose = Purpose::train; // refuse `generate` if the layers ignore LayerContext::purpose
  /// Weights of a checkpoint or of an imported model are loaded. They fix the options: where another layout helps,
  /// hints name only that. Hints of refusals that name no key of [parallel] are replaced by the core.
  bool has_weights = false;
};

/// A plugin of the kind model: creates the layers of a stage.
class TRIAX_API Model : public Extensible {
 public:
  using Interface = Model;
  static constexpr const char* kKind = "model";
  static constexpr std::uint32_t kInterfaceVersion = kModelInterface;

  virtual ~Model();
  /// Facts for the split over stages and for the data.
  virtual ModelInfo info() const = 0;
  /// Every reason why it cannot serve the run, or none. Called before the first layer is created.
  virtual Refusals supports(const ModelRequest& request, const Layout& layout) const = 0;
  /// Number of layers, with embedding and head: at most 65536.
  virtual int count() const = 0;
  /// Creates layer `index`, of 0 to count() - 1. A rank creates the layers of its stages only.
  virtual std::unique_ptr<Layer> layer(int index, const LayerContext& context) const = 0;
  /// Parameters that share one value.
  virtual std::span<const Tie> ties() const = 0;
  /// Model FLOPs of one sample, forward and backward without recomputation, over the whole model.
  virtual double flops_per_sample(std::int64_t vocab) const = 0;
};

} // namespace triax

// Contract
//
// Answers before the first layer
//
// [M1] supports() accepts a request on a layout, or refuses it: each reason has a message, and the full names of the
//      configuration keys that the user can change ("model.heads"). A refusal that is due to the number of ranks names
//      the key of the axis ("parallel.tensor"). The answer is the same in each call. It accepts a floating type on one
//      rank, and refuses types that are not floating.
// [M2] For what supports() accepts, every layer can be created, and a dry run of it succeeds.
// [M3] info(), count() and ties() are the same in each object. The blocks are layers of the model; a tie names two
//      parameters of it, the first in an earlier layer, that have the same shape, cuts, partial sums, initial values
//      and decay.
//
// Descriptions
//
// [M4] Equal contexts give equal descriptions, in each object, before and after passes. Names, global shapes, initial
//      values, decay and sites of parameters are equal on all ranks and layouts, and for both purposes.
//      ParamSpec::partial is equal on all ranks.
// [M5] Names are unique: of layers, of the parameters of a layer, of its stash tensors, of its inputs, and of its
//      outputs. Sites are unique in the model.
// [M6] Over the ranks of an axis, the cuts of a dimension cover it once. ParamSpec::local holds the range, and
//      the global size in dimensions without a cut; only dimension 0 is padded. Each axis and each dimension is in one
//      cut at most. An axis in ParamSpec::partial divides tensors, and cuts no dimension of the parameter.
// [M7] Each layer takes what the layer before makes, and data: equal names, shapes, types, `sharded` and `row_dim`. The
//      first layer takes data only; generating, no layer takes targets. The life of an input begins with the forward.
//      The last layer has one output: the loss, f64 [b], or, generating, the logits [rows, b, V].
//
// Passes
//
// [M8] After the backwards, the gradients of inputs and parameters are the derivatives of the outputs.
// [M9] The gradients are multiplied by LayerCall::loss_gradient, and by StepScalars::loss_scale if there are scalars.
// [M10] The gradients of parameters are added to what the accumulators hold.
// [M11] The passes of other microbatches and layers may be between the passes of a microbatch, in every order that a
//      schedule may have: the bits are equal. The passes of a microbatch are in order, and the backwards of a layer are
//      in the order of microbatches.
// [M12] A pass reads nothing of what its outputs, input gradients, new stash tensors and scratch memory held before.
// [M13] A pass writes its outputs, its stash, the gradients that it computes, and scratch memory: nothing beside them,
//      and no parameters, inputs, or tensors of other microbatches.
// [M14] A stash tensor or input is used within its Life only. Outside of it, its view may be empty. In training, none
//      has Life::sequence.
// [M15] forward() with LayerCall::again writes the same bits into the stash as the first time. Its outputs are empty
//      views.
// [M16] Equal calls give equal bits, in each object.
// [M17] What a sample gives does not depend on the other samples of its microbatch, nor on their number, up to
//      rounding: dropout depends on the sample's running number.
// [M18] The running numbers of samples change what is dropped if the options ask for dropout and LayerCall::dropout is
//      set, and not a bit otherwise.
//
// Streams, memory and dry runs
//
// [M19] A pass begins after the earlier items of its stream: on the host, own loops follow Stream::ready().
// [M20] In the steady state, passes do not allocate; with views without data, they never do.
// [M21] Dry run: with views without data, a pass reads no memory, and calls the operations and collectives that it
//      calls with data.
// [M22] cost() is the FLOPs of the matrix products of each pass. The products that attention's backward repeats are
//      left out. On one rank, the costs of all layers add up to flops_per_sample(), for each sample.
//
// Several ranks
//
// [M23] Over tensor ranks, losses and gradients are those of one rank, up to the rounding of partial sums. With
//      sequence parallelism, too.
// [M24] The ranks of a tensor group have the same bits of the loss, of boundaries that are not `sharded` and their
//      gradients, and of the gradients of parameters that have neither cuts nor partial sums. They post the same
//      collectives.
// [M25] The gradient of padding is 0, on every rank.
// [M26] A model that is cut into stages after any layer has the bits of one stage.
//
// Generating
//
// [M27] A prompt and then one token at a time give the logits of one call with all rows, and the loss of training
//      without dropout, up to rounding. All that a call needs of earlier ones is in stash tensors of Life::sequence.
//      The ranks of a tensor group have the same bits of the logits.
//
// Optional interfaces
//
// [M28] If a layer offers CheapRecompute (cheap_recompute.hpp), the tensors that recomputed_stash() lists live from the
//       forward to a backward, and recompute() writes them with the bits of the forward, without matrix products and
//       collectives. If it offers RecomputeSteps (recompute_steps.hpp), each step writes what it lists with the bits of
//       the forward, reads nothing else of the stash than it lists, and writes nothing else. The ranks of a tensor
//       group have the same steps, which post the same collectives.
