// SPDX-License-Identifier: Apache-2.0
#include "dry_run_model.hpp"

#include "recording_kernels.hpp"

namespace triax::conformance {

namespace {

/// Keeps the views that the engine passes when it generates: no views of tensors that only backwards have.
void keep_generating_views(const std::vector<StashSpec>& stash, LayerViews& views) {
  for (std::size_t i = 0; i < stash.size(); ++i)
    if (stash[i].life == Life::input_only || stash[i].life == Life::input_to_weight) views.stash[i] = {};
}

} // namespace

DryRunModel::DryRunModel(const CreatedModel& model, KernelSet& kernels)
    : model_(model),
      kernels_(kernels),
      device_(make_dry_run_device(DeviceKind::host)),
      stream_(device_->make_stream("dry run")),
      tensor_(model.layout().group(model.context().rank, kTensorAxis)),
      samples_(nullptr, DType::i64, {model.shape().micro}) {
  if (tensor_.size() > 1) groups_.set(std::string(kTensorAxis), &tensor_);
  for (std::size_t at = 0; at < model.count(); ++at) {
    views_.push_back(model.views_without_data(at));
    if (model.shape().purpose == Purpose::generate) keep_generating_views(model.specs(at).stash, views_.back());
  }
}

LayerCall DryRunModel::call_of(bool trains) {
  const bool generates = model_.shape().purpose == Purpose::generate;
  return {.device = *device_,
          .kernels = kernels_,
          .stream = *stream_,
          .scratch = {},
          .groups = groups_,
          .samples = generates ? TensorView() : samples_,
          .dropout = trains && !generates,
          .scalars = &scalars_,
          .rows = model_.all_rows()};
}

void DryRunModel::run(std::size_t layer, Pass pass, bool trains) {
  run_pass(model_.layer(layer), pass, call_of(trains), views_[layer]);
}

void DryRunModel::recompute(CheapRecompute& cheap, std::size_t layer) {
  const LayerCall call = call_of(true);
  const LayerViews& views = views_[layer];
  call_plugin("recompute", typeid(model_.layer(layer)),
              [&] { cheap.recompute(call, views.params, views.in, views.stash); });
}

void DryRunModel::recompute_step(RecomputeSteps& offered, int step, std::size_t layer) {
  const LayerCall call = call_of(true);
  const LayerViews& views = views_[layer];
  call_plugin("recompute_step", typeid(model_.layer(layer)),
              [&] { offered.recompute_step(call, step, views.params, views.in, views.stash); });
}

void DryRunModel::run_all() {
  for (std::size_t at = 0; at < model_.count(); ++at) {
    run(at, Pass::forward);
    if (model_.shape().purpose == Purpose::generate) continue;
    if (model_.has_pass(Pass::recompute, at)) run(at, Pass::recompute);
    run(at, Pass::backward_input);
    run(at, Pass::backward_weight);
  }
}

std::string collectives_text(const std::vector<Collective>& collectives) {
  std::string out;
  for (const Collective& collective : collectives) out += (out.empty() ? "" : ", ") + to_text(collective);
  return out.empty() ? "nothing" : out;
}

std::vector<std::string> collective_differences(const ModelSubject& subject, const ModelShape& shape) {
  std::vector<std::string> out;
  RecordingKernels kernels(nullptr);
  const CreatedModel first(subject, shape);
  DryRunModel expected(first, kernels);
  for (int rank = 1; rank < shape.tensor; ++rank) {
    const CreatedModel model(subject, shape, rank);
    DryRunModel plan(model, kernels);
    const auto compare = [&](std::size_t at, Pass pass, bool trains) {
      kernels.clear();
      for (DryRunModel* const each : {&expected, &plan}) {
        each->tensor().clear();
        each->run(at, pass, trains);
      }
      const std::vector<Collective>&got = plan.tensor().collectives(), &wanted = expected.tensor().collectives();
      if (got != wanted)
        out.push_back(text("{}{}: {} of {} posts {} on rank {}, but {} on rank 0", to_text(shape),
                           trains ? "" : ", evaluation", name_of(pass), model.name(at), collectives_text(got), rank,
                           collectives_text(wanted)));
    };
    for (std::size_t at = 0; at < model.count(); ++at) {
      compare(at, Pass::forward, false);
      for (const Pass pass : kEveryPass)
        if (model.has_pass(pass, at)) compare(at, pass, true);
    }
  }
  return out;
}

} // namespace triax::conformance
