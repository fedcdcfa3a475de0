// SPDX-License-Identifier: Apache-2.0
// model-divided: a model of two layers whose work is divided over every axis. The loss of a token is the sum of its
// entries in four vectors and a row of a matrix:
//   table   replicated; each rank of axis "context" adds the loss and gradient of its positions
//   part    the same, and each tensor rank adds the gradient of the tokens token % t == its index
//   cut     cut by axis "context", which divides positions; each of its ranks adds its entries, at all positions
//   expert  cut by axis "expert", which divides samples; its ranks gather the entries, and add up their gradients
//   both    [tokens, 4]: rows are cut as those of expert, columns as cut; column k counts (k + 1) / 4
// The first layer has table and part, the second the others. All values are exact in f32, so every layout must give
// the same bits.
#include <triax/model.hpp>
#include <triax/plugin.hpp>

namespace {
using namespace triax;

constexpr std::int64_t kVocab = 16, kSequence = 8, kColumns = 4;
constexpr const char *kContext = "context", *kExpert = "expert";

/// One rank's index on an axis.
struct Part {
  explicit Part(const LayerContext& context, std::string_view axis)
      : size(context.layout.size(axis)), index(context.layout.coordinate(context.rank, axis)) {}
  const int size, index;
};

ParamSpec vector_of(const char* name, std::uint32_t site) {
  ParamSpec spec;
  spec.name = name;
  spec.global = spec.local = {kVocab};
  spec.init.kind = Init::Kind::ones;
  spec.site = site;
  return spec;
}

ParamSpec cut_by(const char* axis, const char* name, std::uint32_t site, const Part& of) {
  ParamSpec spec = vector_of(name, site);
  const std::int64_t count = kVocab / of.size;
  spec.cuts = {{axis, 0, of.index * count, (of.index + 1) * count}};
  spec.local = {count};
  return spec;
}

/// visit(element, token) for a view [s, b].
template <class Visit>
void for_each_token(const TensorView& tokens, Visit visit) {
  for (std::int64_t i = 0; i < tokens.elements(); ++i) visit(i, tokens.as<std::int32_t>()[i]);
}

class DividedLayer : public Layer {
 public:
  std::span<const ParamSpec> params() const override { return params_; }
  std::span<const StashSpec> stash() const override { return stash_; }
  std::span<const TensorSpec> inputs() const override { return inputs_; }
  std::span<const TensorSpec> outputs() const override { return outputs_; }
  Cost cost() const override { return {}; }

 protected:
  std::vector<ParamSpec> params_;
  std::vector<StashSpec> stash_;
  std::vector<TensorSpec> inputs_, outputs_;
};

class First final : public DividedLayer {
 public:
  explicit First(const LayerContext& context) : tensor_(context, kTensorAxis), context_(context, kContext) {
    params_ = {vector_of("table", 0), vector_of("part", 1)};
    params_[1].partial = {std::string(kTensorAxis)};
    inputs_ = {{"tokens", {kSequence, context.micro}, DType::i32, Life::forward_to_weight}};
    outputs_ = {{"x", {kSequence, context.micro}}};
    stash_ = {{"dx", {kSequence, context.micro}, DType::f32, Life::input_to_weight}};
  }
  std::string_view name() const override { return "first"; }

  void forward(const LayerCall& call, Views params, Views in, Views out, Views) override {
    if (!out[0].data()) return; // a plan
    call.stream.ready();
    for_each_token(in[0], [&](std::int64_t i, std::int32_t token) {
      const float both = params[0].as<float>()[token] + params[1].as<float>()[token];
      out[0].as<float>()[i] = is_own(in[0], i) ? both : 0;
    });
  }
  void backward_input(const LayerCall& call, Views, Views, Views dout, Views, Views stash, Views) override {
    call.device.copy(stash[0], dout[0], call.stream);
  }
  void backward_weight(const LayerCall& call, Views in, Views stash, Views grads) override {
    if (!grads[0].data()) return;
    call.stream.ready();
    for_each_token(in[0], [&](std::int64_t i, std::int32_t token) {
      if (!is_own(in[0], i)) return;
      const float dx = stash[0].as<float>()[i];
      grads[0].as<float>()[token] += dx;
      if (token % tensor_.size == tensor_.index) grads[1].as<float>()[token] += dx;
    });
  }

 private:
  bool is_own(const TensorView& tokens, std::int64_t element) const {
    return element / tokens.size(1) % context_.size == context_.index;
  }
  const Part tensor_, context_;
};

/// The gradient of the loss.
double gradient_of(const LayerCall& call) {
  return call.loss_gradient * (call.scalars ? static_cast<double>(call.scalars->loss_scale) : 1);
}

class Second final : public DividedLayer {
 public:
  explicit Second(const LayerContext& context)
      : expert_(context, kExpert), is_first_context_(Part(context, kContext).index == 0) {
    const Part of(context, kContext);
    params_ = {cut_by(kContext, "cut", 16, of), cut_by(kExpert, "expert", 17, expert_),
               cut_by(kExpert, "both", 18, expert_)};
    ParamSpec& both = params_[2];
    const std::int64_t columns = kColumns / of.size;
    both.global = {kVocab, kColumns};
    both.local = {both.local[0], columns};
    both.cuts.push_back({kContext, 1, of.index * columns, (of.index + 1) * columns});
    inputs_ = {{"targets", {kSequence, context.micro}, DType::i32, Life::forward_to_weight},
               {"x", {kSequence, context.micro}}};
    outputs_ = {{"loss", {context.micro}, DType::f64}};
  }
  std::string_view name() const override { return "second"; }

  void forward(const LayerCall& call, Views params, Views in, Views out, Views) override {
    const TensorView expert = with_all_rows(params[1], expert_rows_, call);
    const TensorView both = with_all_rows(params[2], both_rows_, call);
    if (!out[0].data()) return; // a plan
    call.stream.ready();
    for (std::int64_t sample = 0; sample < out[0].elements(); ++sample) out[0].as<double>()[sample] = 0;
    const Cut& cut = params_[0].cuts[0];
    for_each_token(in[0], [&](std::int64_t i, std::int32_t token) {
      float sum = in[1].as<float>()[i];
      if (token >= cut.begin && token < cut.end) sum += params[0].as<float>()[token - cut.begin];
      if (is_first_context_) sum += expert.as<float>()[token];
      for (std::int64_t k = 0; k < both.size(1); ++k) sum += both.as<float>()[token * both.size(1) + k] * weight_of(k);
      out[0].as<double>()[i % in[0].size(1)] += static_cast<double>(sum);
    });
  }
  void backward_input(const LayerCall& call, Views, Views, Views, Views din, Views, Views) override {
    call.device.fill(din[1], gradient_of(call), call.stream);
  }
  void backward_weight(const LayerCall& call, Views in, Views, Views grads) override {
    const bool plans = !grads[0].data();
    if (!plans) {
      call.stream.ready();
      const auto one = static_cast<float>(gradient_of(call));
      expert_rows_.assign(kVocab, 0);
      both_rows_.assign(kVocab * kColumns, 0);
      const Cut& cut = params_[0].cuts[0];
      const std::int64_t columns = grads[2].size(1);
      for_each_token(in[0], [&](std::int64_t, std::int32_t token) {
        if (token >= cut.begin && token < cut.end) grads[0].as<float>()[token - cut.begin] += one;
        if (is_first_context_) expert_rows_[static_cast<std::size_t>(token)] += one;
        for (std::int64_t k = 0; k < columns; ++k)
          both_rows_[static_cast<std::size_t>(token * columns + k)] += one * weight_of(k);
      });
    }
    add_own_rows(grads[1], expert_rows_, call);
    add_own_rows(grads[2], both_rows_, call);
    if (!plans) call.stream.ready(); // the next call uses the same vectors
  }

 private:
  /// What column k of this rank's part of "both" counts.
  float weight_of(std::int64_t k) const { return static_cast<float>(params_[2].cuts[1].begin + k + 1) * 0.25f; }

  /// A parameter whose rows are cut by axis "expert", with the rows of all ranks.
  TensorView with_all_rows(const TensorView& own, std::vector<float>& rows, const LayerCall& call) const {
    Communicator* const group = call.groups.find(kExpert);
    if (!group) return own;
    Shape shape = own.shape();
    shape[0] = kVocab;
    const TensorView out(rows.data(), DType::f32, shape);
    group->wait(group->all_gather(own, out, call.stream, call.action), call.stream);
    return out;
  }
  /// Adds the gradients that the ranks of axis "expert" have of all rows.
  void add_own_rows(const TensorView& gradient, std::vector<float>& rows, const LayerCall& call) {
    TensorView own(rows.data(), DType::f32, gradient.shape());
    if (Communicator* const group = call.groups.find(kExpert)) {
      Shape shape = gradient.shape();
      shape[0] = kVocab;
      own = TensorView(own_.data(), DType::f32, gradient.shape());
      group->wait(
          group->reduce_scatter(TensorView(rows.data(), DType::f32, shape), own, Reduce::sum, call.stream, call.action),
          call.stream);
    }
    call.device.add(gradient, own, call.stream);
    if (gradient.data()) call.stream.ready(); // own_ is used again
  }

  const Part expert_;
  const bool is_first_context_; // which adds what does not belong to positions
  std::vector<float> expert_rows_ = std::vector<float>(kVocab), both_rows_ = std::vector<float>(kVocab * kColumns),
                     own_ = std::vector<float>(kVocab * kColumns);
};

class DividedModel final : public Model {
 public:
  explicit DividedModel(const PluginContext&) {}
  ModelInfo info() const override { return {.blocks = 2, .first_block = 0, .sequence = kSequence}; }
  Refusals supports(const ModelRequest& request, const Layout&) const override {
    Refusals out;
    if (request.purpose == Purpose::generate)
      out.add(make_refusal(ErrorCode::kUnsupported, {"model.plugin"}, "model-divided cannot generate"));
    if (request.sequence_parallel || request.recompute)
      out.add(make_refusal(ErrorCode::kUnsupported, {"parallel.sequence", "memory.recompute"},
                           "model-divided has neither sequence parallelism nor recomputation"));
    if (request.compute != DType::f32)
      out.add(make_refusal(ErrorCode::kUnsupported, {"train.precision"}, "model-divided computes in fp32"));
    return out;
  }
  int count() const override { return 2; }
  std::unique_ptr<Layer> layer(int index, const LayerContext& context) const override {
    if (index == 0) return std::make_unique<First>(context);
    return std::make_unique<Second>(context);
  }
  std::span<const Tie> ties() const override { return {}; }
  double flops_per_sample(std::int64_t) const override { return 0; }
};

} // namespace

TRIAX_PLUGIN(triax::Model, DividedModel, "model-divided", "0.1.0", "work that is divided over every axis", nullptr)
