// SPDX-License-Identifier: Apache-2.0
// model-divided: a model of one layer whose work is divided over every axis. The loss of a token is the sum of its
// entries in three vectors:
//   table  replicated; each rank of axis "context" adds the loss and gradient of its positions
//   part   the same, and each tensor rank adds the gradient of the tokens token % t == its index
//   cut    cut by axis "context"; each of its ranks adds loss and gradient of its entries, at all positions
// All values are exact in f32, so every layout must give the same bits.
#include <triax/model.hpp>
#include <triax/plugin.hpp>

namespace {
using namespace triax;

constexpr std::int64_t kVocab = 16, kSequence = 8;
constexpr const char* kContext = "context";

ParamSpec vector_of(const char* name, std::uint32_t site) {
  ParamSpec spec;
  spec.name = name;
  spec.global = spec.local = {kVocab};
  spec.init.kind = Init::Kind::ones;
  spec.site = site;
  return spec;
}

class Divided final : public Layer {
 public:
  explicit Divided(const LayerContext& context)
      : tensor_(context.tensor()),
        tensor_index_(context.tensor_index()),
        contexts_(context.layout.size(kContext)),
        context_index_(context.layout.coordinate(context.rank, kContext)),
        params_{vector_of("table", 0), vector_of("part", 1), vector_of("cut", 2)},
        inputs_{{"tokens", {kSequence, context.micro}, DType::i32, Life::forward_to_weight},
                {"targets", {kSequence, context.micro}, DType::i32}},
        outputs_{{"loss", {context.micro}, DType::f64}} {
    params_[1].partial = {std::string(kTensorAxis)};
    const std::int64_t part = kVocab / contexts_;
    params_[2].cuts = {{kContext, 0, context_index_ * part, (context_index_ + 1) * part}};
    params_[2].local = {part};
  }

  std::string_view name() const override { return "divided"; }
  std::span<const ParamSpec> params() const override { return params_; }
  std::span<const StashSpec> stash() const override { return {}; }
  std::span<const TensorSpec> inputs() const override { return inputs_; }
  std::span<const TensorSpec> outputs() const override { return outputs_; }
  Cost cost() const override { return {}; }

  void forward(const LayerCall& call, Views params, Views in, Views out, Views) override {
    if (!out[0].data()) return; // a plan
    call.stream.ready();
    for (std::int64_t sample = 0; sample < out[0].elements(); ++sample) out[0].as<double>()[sample] = 0;
    for_each_token(in[0], [&](std::int64_t sample, int vector, std::int64_t entry) {
      out[0].as<double>()[sample] += static_cast<double>(params[static_cast<std::size_t>(vector)].as<float>()[entry]);
    });
  }
  void backward_input(const LayerCall&, Views, Views, Views, Views, Views, Views) override {}
  void backward_weight(const LayerCall& call, Views in, Views, Views grads) override {
    if (!grads[0].data()) return;
    call.stream.ready();
    for_each_token(in[0], [&](std::int64_t, int vector, std::int64_t entry) {
      if (vector == 1 && entry % tensor_ != tensor_index_) return; // another tensor rank's
      grads[static_cast<std::size_t>(vector)].as<float>()[entry] += static_cast<float>(call.loss_gradient);
    });
  }

 private:
  /// visit(sample, vector, entry) for every entry that this rank adds to a loss.
  template <class Visit>
  void for_each_token(const TensorView& tokens, Visit visit) const {
    const Cut& cut = params_[2].cuts[0];
    for (std::int64_t position = 0; position < tokens.size(0); ++position)
      for (std::int64_t sample = 0; sample < tokens.size(1); ++sample) {
        const std::int64_t token = tokens.as<std::int32_t>()[position * tokens.size(1) + sample];
        if (position % contexts_ == context_index_)
          for (const int vector : {0, 1}) visit(sample, vector, token);
        if (token >= cut.begin && token < cut.end) visit(sample, 2, token - cut.begin);
      }
  }

  const int tensor_, tensor_index_, contexts_, context_index_;
  std::vector<ParamSpec> params_;
  const std::vector<TensorSpec> inputs_, outputs_;
};

class DividedModel final : public Model {
 public:
  explicit DividedModel(const PluginContext&) {}
  ModelInfo info() const override { return {1, 8, 1, kSequence}; }
  Refusals supports(const ModelRequest&, const Layout&) const override { return {}; }
  int count() const override { return 1; }
  std::unique_ptr<Layer> layer(int, const LayerContext& context) const override {
    return std::make_unique<Divided>(context);
  }
  std::span<const Tie> ties() const override { return {}; }
  double flops_per_sample(std::int64_t) const override { return 1; }
};

} // namespace

TRIAX_PLUGIN(triax::Model, DividedModel, "model-divided", "0.1.0", "work that is divided over every axis", nullptr)
