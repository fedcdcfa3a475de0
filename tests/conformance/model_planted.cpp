// SPDX-License-Identifier: Apache-2.0
// model-planted: the layers of model-gpt with one fault, which the option `fault` names. The conformance suite must
// find each.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>
#include <triax/plugin.hpp>
#include <vector>

#include "gpt.hpp"
#include "planted_layer.hpp"

namespace triax::model_planted {

namespace {

using model_gpt::Sizes;

// Faults of the model:
//   no_keys          a refusal names no key
//   any_layout       accepts heads that the tensor size does not divide
//   tie              ties a parameter that does not exist
//   tie_of_first     ties parameters on the first rank only
//   tie_reversed     ties the last layer with the first
//   crash, throws, hang, hang_constructor, hang_destructor
// Faults of the descriptions of a layer:
//   std              the initial deviation depends on the tensor size
//   same_site        two parameters have the same site
//   cut              cuts begin and end one too early
//   cut_twice        a dimension has two cuts
//   padded_columns   a cut of columns is padded
//   partial_over_samples, partial_and_cut    partial over an axis that divides samples, or that cuts the parameter
//   partial_of_one_side        the token table is partial in the embedding and not in the head
//   targets_when_generating    takes targets
//   cache_in_training          a stash tensor lives from call to call
//   sharded          the output is described as sharded
//   short_life       a stash tensor lives only until the backward for inputs, but that for weights reads it
//   cost             the backward for weights is described with twice its cost
//   size_by_rank, size_by_object, size_by_call    parameters depend on the rank, on the object, on earlier calls
// Faults of the passes:
//   input_gradient   adds the output's gradient to the input's
//   no_loss_scale    leaves out the loss scale
//   overwrites, overwrites_in_16_bits    overwrites gradients of weights instead of adding to them
//   last_stash       the backward for weights reads the stash of the last forward
//   reads_old_stash  adds bytes of earlier calls to the output
//   writes_past_the_end    writes after the last element of the output
//   inputs           the backward for weights overwrites its input
//   again            a forward that is repeated clears a stash tensor
//   again_alone      a forward that is repeated does not add over tensor ranks
//   again_allocates  a forward that is repeated allocates
//   recompute        a cheap recomputation writes another value
//   recompute_last   a cheap recomputation reads the input of the last forward
//   recompute_posts  a cheap recomputation posts a collective
//   recompute_aborts, recompute_throws                 a cheap recomputation fails
//   recompute_listed_twice, recompute_listed_beyond    the list of recomputed tensors
//   step             a step of the forward writes another value
//   step_posts       a step posts a collective on the first rank only
//   step_reads_more, step_writes_more, step_missing    the lists of steps
//   counts_calls     no dropout after five calls
//   renumbers_samples    numbers the samples of a call from 0
//   always_drops, never_drops    dropout does not follow the call
//   dropout_without_rate         changes the output if the call asks for dropout
//   pipeline         no dropout with several pipeline ranks
//   not_ready, tokens_not_ready, weight_not_ready    reads an input before the stream is ready: in a forward, in that
//                    of the embedding, in a backward for weights
//   allocates        allocates in a forward
//   dry_run          a dry run leaves out the backward for weights
//   no_sum           does not add over tensor ranks
//   replicated_gradients_differ    gradients of whole parameters differ in a few bits between tensor ranks
//   padding, rank_padding    writes the last element of a gradient: always, or on the last of several tensor ranks
//   rows             positions begin at 0 in each call
//   cache_of_call    the cache has the rows of the largest call, not those of the sequence
constexpr triax_option kOptions[] = {
    option_int("layers", nullptr, 1, 4096, "transformer blocks"),
    option_int("hidden", nullptr, 1, 1e6, "width of the residual stream"),
    option_int("heads", nullptr, 1, 1e6, "attention heads"),
    option_int("sequence", nullptr, 1, 1e9, "tokens per sample"),
    option_float("dropout", "0.0", 0, 0.99, "dropout rate"),
    option_string(
        "fault", "none",
        "none|no_keys|any_layout|tie|tie_of_first|tie_reversed|std|same_site|cut|cut_twice|padded_columns|"
        "partial_over_samples|partial_and_cut|partial_of_one_side|targets_when_generating|cache_in_training|sharded|"
        "input_gradient|no_loss_scale|overwrites|"
        "overwrites_in_16_bits|last_stash|reads_old_stash|writes_past_the_end|inputs|short_life|again|again_alone|"
        "again_allocates|recompute|recompute_last|recompute_posts|recompute_aborts|recompute_throws|"
        "recompute_listed_twice|recompute_listed_beyond|"
        "step|step_posts|step_reads_more|step_writes_more|step_missing|counts_calls|renumbers_samples|always_drops|"
        "never_drops|dropout_without_rate|not_ready|tokens_not_ready|"
        "weight_not_ready|allocates|"
        "dry_run|cost|no_sum|replicated_gradients_differ|padding|rank_padding|pipeline|rows|cache_of_call|size_by_rank|"
        "size_by_object|size_by_call|crash|hang|throws|hang_constructor|hang_destructor",
        "what is wrong with this model"),
};

class PlantedModel final : public Model {
 public:
  explicit PlantedModel(const PluginContext& context)
      : sizes_{.layers = context.options.integer("layers"),
               .hidden = context.options.integer("hidden"),
               .heads = context.options.integer("heads"),
               .sequence = context.options.integer("sequence"),
               .inner = 4 * context.options.integer("hidden"),
               .dropout = static_cast<float>(context.options.number("dropout"))},
        fault_(context.options.text("fault")),
        ties_(has("tie_of_first") && context.rank > 0 ? std::vector<Tie>()
              : has("tie_reversed")
                  ? std::vector<Tie>{{count() - 1, kTokenTable, 0, kTokenTable}}
                  : std::vector<Tie>{{0, kTokenTable, count() - 1, has("tie") ? "table" : kTokenTable}}) {
    static std::atomic<int> objects = 0;
    number_ = objects++;
    while (has("hang_constructor")) ::pause();
  }
  ~PlantedModel() override {
    while (has("hang_destructor")) ::pause();
  }

  ModelInfo info() const override {
    return {.blocks = static_cast<int>(sizes_.layers), .first_block = 1, .sequence = sizes_.sequence};
  }

  Refusals supports(const ModelRequest& request, const Layout& layout) const override {
    if (has("crash")) std::abort();
    if (has("throws")) throw Error("its tables are not written yet");
    while (has("hang")) ::pause();
    Refusals out;
    if (!is_floating(request.compute))
      out.add(make_refusal(ErrorCode::kUnsupported, {"train.precision"}, "it computes in a floating type"));
    if (sizes_.heads % layout.tensor_size() != 0 && !has("any_layout"))
      out.add(make_refusal(ErrorCode::kNotDivisible,
                           has("no_keys") ? std::vector<std::string>{} : std::vector<std::string>{"parallel.tensor"},
                           "model.heads = {} is not divisible by parallel.tensor = {}", sizes_.heads,
                           layout.tensor_size()));
    return out;
  }
  int count() const override { return static_cast<int>(sizes_.layers) + 2; }

  std::unique_ptr<Layer> layer(int index, const LayerContext& context) const override {
    if (index == 0)
      return planted(make_embedding(sizes_, context), context,
                     "reads_old_stash|renumbers_samples|padding|rank_padding|std|sharded|never_drops|tokens_not_ready|"
                     "partial_of_one_side");
    if (index == count() - 1)
      return planted(make_head(context, model_gpt::head_options(sizes_), index), context, "no_loss_scale|always_drops");
    return planted(make_block(sizes_, context, index), context, {});
  }
  std::span<const Tie> ties() const override { return ties_; }
  double flops_per_sample(std::int64_t vocab) const override {
    const auto s = static_cast<double>(sizes_.sequence), l = static_cast<double>(sizes_.layers),
               h = static_cast<double>(sizes_.hidden), v = static_cast<double>(vocab);
    return 72 * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h));
  }

 private:
  bool has(std::string_view fault) const { return fault_ == fault; }

  /// A fault is planted in the embedding or the head if `own` names it, and in blocks unless `kNotInBlocks` does.
  std::unique_ptr<Layer> planted(std::unique_ptr<Layer> layer, const LayerContext& context,
                                 std::string_view own) const {
    constexpr std::string_view kNotInBlocks =
        "reads_old_stash|renumbers_samples|padding|rank_padding|std|sharded|no_loss_scale|partial_of_one_side";
    const bool is_here =
        own.empty() ? kNotInBlocks.find(fault_) == std::string_view::npos : own.find(fault_) != std::string_view::npos;
    return std::make_unique<PlantedLayer>(std::move(layer), context, is_here ? fault_ : "none", number_);
  }

  const Sizes sizes_;
  const std::string fault_;
  const std::vector<Tie> ties_;
  int number_ = 0;
};

} // namespace

} // namespace triax::model_planted

TRIAX_PLUGIN(triax::Model, triax::model_planted::PlantedModel, "model-planted", "0.1.0", "a model with a planted fault",
             triax::model_planted::kOptions)
