// SPDX-License-Identifier: Apache-2.0
// model-uneven: a model of one layer that adds up the loss over the tensor group. Its option selects how the
// collectives of tensor rank 1 differ, or which description fails.
#include <limits>
#include <stdexcept>
#include <triax/model.hpp>
#include <triax/plugin.hpp>

namespace {
using namespace triax;

constexpr triax_option kOptions[] = {
    option_string("how", nullptr,
                  "size|count|evaluation|partial|none|no_layer|params_throws|ties_throws|nan_flops|"
                  "two_losses|stash_changes|many_layers|ties_differ|cut_gap|cut_overlap",
                  "what differs on tensor rank 1, or is wrong")};

class Uneven final : public Layer {
 public:
  Uneven(std::string how, const LayerContext& context, std::int64_t sequence)
      : how_(std::move(how)),
        is_second_(context.tensor_rank() == 1),
        inputs_{{"tokens", {sequence, context.micro}, DType::i32}, {"targets", {sequence, context.micro}, DType::i32}},
        outputs_(how_ == "two_losses" ? 2 : 1, TensorSpec{"loss", {context.micro}, DType::f64}) {
    const bool is_cut = how_ == "cut_gap" || how_ == "cut_overlap";
    if (how_ != "partial" && !is_cut) return;
    ParamSpec spec;
    spec.name = "w";
    spec.global = spec.local = {4};
    if (!is_second_ && !is_cut) spec.partial = {std::string(kTensorAxis)};
    if (is_cut) {
      const std::int64_t begin = !is_second_ ? 0 : how_ == "cut_gap" ? 3 : 1, end = is_second_ ? 4 : 2;
      spec.cuts = {{std::string(kTensorAxis), 0, begin, end}};
      spec.local = {end - begin};
    }
    params_ = {spec};
  }

  std::string_view name() const override { return "uneven"; }
  std::span<const ParamSpec> params() const override {
    if (how_ == "params_throws") throw std::runtime_error("no table of parameters");
    return params_;
  }
  std::span<const StashSpec> stash() const override {
    if (how_ != "stash_changes" || ++asked_ % 2 == 0) return {};
    return kept_;
  }
  std::span<const TensorSpec> inputs() const override { return inputs_; }
  std::span<const TensorSpec> outputs() const override { return outputs_; }
  Cost cost() const override { return {}; }

  void forward(const LayerCall& call, Views, Views, Views out, Views) override {
    Communicator* group = call.groups.find("tensor");
    call.device.fill(out[0], 1.0 / (group ? group->size() : 1), call.stream);
    if (!group) return;
    const bool smaller = is_second_ && how_ == "size";
    const bool twice = is_second_ && (how_ == "count" || (how_ == "evaluation" && !call.dropout));
    const TensorView loss = smaller ? out[0].slice(0, 0, out[0].size(0) / 2) : out[0];
    for (int i = 0; i < (twice ? 2 : 1); ++i)
      group->wait(group->all_reduce(loss, loss, Reduce::sum, call.stream, call.action), call.stream);
  }
  void backward_input(const LayerCall&, Views, Views, Views, Views, Views, Views) override {}
  void backward_weight(const LayerCall&, Views, Views, Views) override {}

 private:
  const std::string how_;
  const bool is_second_;
  std::vector<ParamSpec> params_;
  const std::vector<StashSpec> kept_{{"kept", {4}}};
  mutable int asked_ = 0;
  const std::vector<TensorSpec> inputs_, outputs_;
};

class UnevenModel final : public Model {
 public:
  explicit UnevenModel(const PluginContext& context) : how_(context.options.text("how")) {
    if (how_ == "ties_differ" && context.rank == 1) ties_ = {{0, "w", 0, "v"}};
  }
  ModelInfo info() const override { return {.blocks = 1, .first_block = 0, .sequence = 6}; }
  Refusals supports(const ModelRequest& request, const Layout&) const override {
    if (request.purpose == Purpose::generate)
      return make_refusal(ErrorCode::kUnsupported, {"model.plugin"}, "model-uneven cannot generate");
    if (!is_floating(request.compute))
      return make_refusal(ErrorCode::kUnsupported, {"train.precision"}, "model-uneven computes in a floating type");
    if (!request.sequence_parallel && !request.recompute) return {};
    return make_refusal(ErrorCode::kUnsupported, {"parallel.sequence", "memory.recompute"},
                        "model-uneven has neither sequence parallelism nor recomputation");
  }
  int count() const override { return how_ == "many_layers" ? std::numeric_limits<int>::max() : 1; }
  std::unique_ptr<Layer> layer(int, const LayerContext& context) const override {
    if (how_ == "no_layer") return nullptr;
    return std::make_unique<Uneven>(how_, context, info().sequence);
  }
  std::span<const Tie> ties() const override {
    if (how_ == "ties_throws") throw std::runtime_error("no table of ties");
    return ties_;
  }
  double flops_per_sample(std::int64_t) const override {
    return how_ == "nan_flops" ? std::numeric_limits<double>::quiet_NaN() : 0;
  }

 private:
  const std::string how_;
  std::vector<Tie> ties_;
};

} // namespace

TRIAX_PLUGIN(triax::Model, UnevenModel, "model-uneven", "0.1.0", "collectives that differ between tensor ranks",
             kOptions)
