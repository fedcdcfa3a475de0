// SPDX-License-Identifier: Apache-2.0
// Memory and passes of a ModelRun.
#include "model_run.hpp"

#include <algorithm>

#include "dry_run_model.hpp"

namespace triax::conformance {

namespace {

TensorView of_rows(const TensorView& largest, int row_dim, std::int64_t rows) {
  if (row_dim < 0 || largest.empty()) return largest;
  Shape shape = largest.shape();
  shape[row_dim] = rows;
  return {largest.data(), largest.dtype(), shape};
}

} // namespace

bool exists_in(Life life, Pass pass) {
  const bool is_forward = pass == Pass::forward || pass == Pass::recompute;
  switch (life) {
    case Life::forward_only:
      return is_forward;
    case Life::forward_to_input:
      return pass != Pass::backward_weight;
    case Life::forward_to_weight:
    case Life::sequence:
      return true;
    case Life::input_only:
      return pass == Pass::backward_input;
    case Life::input_to_weight:
      return !is_forward;
  }
  return false;
}

ModelRun::ModelRun(const ModelSubject& subject, const ModelShape& shape, const RankPart& part)
    : model_(subject, shape, part.rank, part.first, part.end),
      own_device_(part.device ? nullptr : make_host_device()),
      device_(part.device ? *part.device : *own_device_),
      real_kernels_(subject.kernels()),
      kernels_(real_kernels_.get()),
      stream_(device_.make_stream("passes")),
      groups_(part.groups ? *part.groups : no_groups_),
      rows_(model_.all_rows()) {
  real_kernels_->start(device_);
  settings_.dropout = shape.purpose == Purpose::train;
  require_readable_specs();
  allocate();
  plan_scratch();
  fill();
}

void ModelRun::require_readable_specs() const {
  for (std::size_t at = 0; at < count(); ++at)
    for (const ParamSpec& spec : model_.specs(at).params) {
      const std::string wrong = wrong_range(spec);
      if (!wrong.empty()) throw Error(text("{}, {}: {}", model_.name(at), spec.name, wrong));
    }
  const LayerContext& context = model_.context();
  if (model_.first() + static_cast<int>(count()) != model_.model().count()) return; // not the last stage
  const std::vector<TensorSpec>& outputs = model_.specs(count() - 1).outputs;
  const bool generates = model_.shape().purpose == Purpose::generate;
  const char* const name = generates ? "logits" : "loss";
  const Shape shape = generates ? Shape{context.max_rows, context.micro, context.vocab} : Shape{context.micro};
  if (outputs.size() != 1 || outputs[0].name != name || outputs[0].shape != shape)
    throw Error(text("the one output of the last layer must be {} {}", name, shape));
}

TensorView ModelRun::tensor(const std::string& name, DType dtype, const Shape& shape) {
  memory_.emplace_back(name, std::make_unique<GuardedMemory>(TensorView(nullptr, dtype, shape).bytes()));
  named_.emplace_back(name, TensorView(memory_.back().second->data(), dtype, shape));
  return named_.back().second;
}

void ModelRun::allocate() {
  const LayerContext& context = model_.context();
  for (int microbatch = 0; microbatch < kMicrobatches; ++microbatch) {
    const Shape rows{context.sequence, context.micro};
    const auto name = [microbatch](const char* what) { return text("{}, microbatch {}", what, microbatch); };
    data_.push_back({tensor(name("tokens"), DType::i32, rows), tensor(name("targets"), DType::i32, rows),
                     tensor(name("samples"), DType::i64, {context.micro})});
  }
  layers_.resize(count());
  for (std::size_t at = 0; at < count(); ++at)
    for (int microbatch = 0; microbatch < kMicrobatches; ++microbatch) add_layer(at, microbatch);
}

TensorView ModelRun::activation(std::size_t at, int microbatch, const std::string& what, DType dtype,
                                const Shape& shape) {
  return tensor(text("{}, {}, microbatch {}", model_.name(at), what, microbatch), dtype, shape);
}

void ModelRun::add_parameters(std::size_t at, LayerViews& views) {
  const std::string name = model_.name(at);
  const DType compute = model_.shape().compute;
  for (const ParamSpec& spec : model_.specs(at).params) {
    views.params.push_back(tensor(text("{}, {}", name, spec.name), compute, spec.local));
    views.grads.push_back(tensor(text("{}, gradient of {}", name, spec.name), master_type(compute), spec.local));
  }
}

/// Data, the output of the layer before, or a tensor that a check fills.
void ModelRun::add_input(std::size_t at, int microbatch, const TensorSpec& spec, LayerViews& views) {
  if (is_data(spec)) {
    const Data& data = data_[index(microbatch)];
    views.in.push_back(spec.name == "tokens" ? data.tokens : data.targets);
    views.din.emplace_back();
    return;
  }
  if (at == 0) {
    views.in.push_back(activation(at, microbatch, "input " + spec.name, spec.dtype, spec.shape));
    views.din.push_back(activation(at, microbatch, "gradient of input " + spec.name, spec.dtype, spec.shape));
    return;
  }
  const std::size_t output = find_output(model_.specs(at - 1), spec, model_.name(at - 1), model_.name(at));
  views.in.push_back(layers_[at - 1][index(microbatch)].out[output]);
  views.din.push_back(layers_[at - 1][index(microbatch)].dout[output]);
}

void ModelRun::add_layer(std::size_t at, int microbatch) {
  const LayerSpecs& specs = model_.specs(at);
  LayerViews views;
  if (microbatch == 0) {
    add_parameters(at, views);
  } else {
    views.params = layers_[at].front().params;
    views.grads = layers_[at].front().grads;
  }
  for (const StashSpec& spec : specs.stash)
    views.stash.push_back(activation(at, microbatch, spec.name, spec.dtype, spec.shape));
  for (const TensorSpec& spec : specs.inputs) add_input(at, microbatch, spec, views);
  for (const TensorSpec& spec : specs.outputs) {
    views.out.push_back(activation(at, microbatch, "output " + spec.name, spec.dtype, spec.shape));
    views.dout.push_back(is_result(spec)
                             ? TensorView()
                             : activation(at, microbatch, "gradient of output " + spec.name, spec.dtype, spec.shape));
  }
  layers_[at].push_back(std::move(views));
}

void ModelRun::plan_scratch() {
  DryRunKernels plan(*real_kernels_);
  DryRunModel(model_, plan).run_all();
  if (!plan.refusals().empty()) throw to_error(plan.refusals());
  scratch_ = std::make_unique<GuardedMemory>(plan.scratch_needed());
}

LayerViews ModelRun::views_in_life(Pass pass, std::size_t at, int microbatch) const {
  LayerViews out = layers_[at][index(microbatch)];
  const auto& stash = model_.specs(at).stash;
  for (std::size_t i = 0; i < stash.size(); ++i)
    if (!exists_in(stash[i].life, pass)) out.stash[i] = {};
  const auto& inputs = model_.specs(at).inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!is_data(inputs[i]) && !exists_in(inputs[i].life, pass)) out.in[i] = {};
  return out;
}

LayerCall ModelRun::call_of(int microbatch) {
  const bool generates = model_.shape().purpose == Purpose::generate;
  kernels_.clear();
  if (settings_.loss_scale) scalars_.loss_scale = *settings_.loss_scale;
  return {.device = device_,
          .kernels = kernels_,
          .stream = *stream_,
          .scratch = {scratch_->data(), scratch_->bytes()},
          .groups = groups_,
          .samples = generates ? TensorView() : data_[index(microbatch)].samples,
          .dropout = settings_.dropout,
          .loss_gradient = settings_.loss_gradient,
          .scalars = settings_.loss_scale ? &scalars_ : nullptr,
          .rows = rows_};
}

void ModelRun::recompute(CheapRecompute& cheap, std::size_t at, int microbatch) {
  const LayerCall call = call_of(microbatch);
  const LayerViews views = views_in_life(Pass::backward_input, at, microbatch);
  call_plugin("recompute", typeid(model_.layer(at)),
              [&] { cheap.recompute(call, views.params, views.in, views.stash); });
  stream_->ready();
}

void ModelRun::recompute_step(RecomputeSteps& offered, int step, std::size_t at, int microbatch) {
  const LayerCall call = call_of(microbatch);
  LayerViews views = views_in_life(Pass::backward_input, at, microbatch);
  const auto& stash = model_.specs(at).stash;
  for (std::size_t i = 0; i < stash.size(); ++i)
    if (stash[i].life == Life::forward_only) views.stash[i] = layers_[at][index(microbatch)].stash[i];
  call_plugin("recompute_step", typeid(model_.layer(at)),
              [&] { offered.recompute_step(call, step, views.params, views.in, views.stash); });
  stream_->ready();
}

void ModelRun::run(Pass pass, std::size_t at, int microbatch) {
  const LayerCall call = call_of(microbatch);
  if (settings_.as_engine) {
    run_pass(model_.layer(at), pass, call, views_in_life(pass, at, microbatch));
  } else {
    run_pass(model_.layer(at), pass, call, (of_rows_.empty() ? layers_ : of_rows_)[at][index(microbatch)]);
  }
  stream_->ready();
}

void ModelRun::forward(int microbatch) {
  for (std::size_t at = 0; at < count(); ++at) run(Pass::forward, at, microbatch);
}

void ModelRun::backward_input(int microbatch) {
  for (std::size_t at = count(); at-- > 0;) run(Pass::backward_input, at, microbatch);
}

void ModelRun::backward_weight(int microbatch) {
  for (std::size_t at = count(); at-- > 0;) run(Pass::backward_weight, at, microbatch);
}

void ModelRun::train() {
  for (int microbatch = 0; microbatch < kMicrobatches; ++microbatch) {
    forward(microbatch);
    backward_input(microbatch);
    backward_weight(microbatch);
  }
}

void ModelRun::set_rows(const Rows& rows) {
  rows_ = rows;
  of_rows_ = layers_;
  for (std::size_t at = 0; at < count(); ++at) {
    const LayerSpecs& specs = model_.specs(at);
    for (LayerViews& views : of_rows_[at]) {
      for (std::size_t i = 0; i < views.in.size(); ++i)
        views.in[i] = is_data(specs.inputs[i]) ? views.in[i].slice(0, rows.begin, rows.end())
                                               : of_rows(views.in[i], specs.inputs[i].row_dim, rows.count);
      for (std::size_t i = 0; i < views.out.size(); ++i)
        views.out[i] = of_rows(views.out[i], specs.outputs[i].row_dim, rows.count);
      for (std::size_t i = 0; i < views.stash.size(); ++i) {
        const StashSpec& spec = specs.stash[i];
        if (spec.life == Life::sequence) continue;
        views.stash[i] =
            exists_in(spec.life, Pass::forward) ? of_rows(views.stash[i], spec.row_dim, rows.count) : TensorView();
      }
    }
  }
}

std::vector<std::string> ModelRun::overwritten() const {
  std::vector<std::string> out;
  for (const auto& [name, memory] : memory_)
    if (!memory->is_intact()) out.push_back(name);
  if (!scratch_->is_intact()) out.emplace_back("the scratch memory of operations");
  return out;
}

} // namespace triax::conformance
