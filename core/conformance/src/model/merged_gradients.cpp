// SPDX-License-Identifier: Apache-2.0
#include "merged_gradients.hpp"

#include <algorithm>

namespace triax::conformance {

namespace {

bool is_partial(const ParamSpec& spec) {
  return std::ranges::find(spec.partial, kTensorAxis) != spec.partial.end();
}

bool is_split(const ParamSpec& spec) {
  return std::ranges::find(spec.cuts, kTensorAxis, &Cut::axis) != spec.cuts.end();
}

/// The loss, boundaries that are not sharded with their gradients, and gradients of replicated parameters.
Tensors shared_tensors(const ModelRun& run) {
  Tensors out;
  for (std::size_t at = 0; at < run.count(); ++at) {
    const std::string layer = run.model().name(at);
    const auto& outputs = run.model().specs(at).outputs;
    for (int microbatch = 0; microbatch < ModelRun::kMicrobatches; ++microbatch) {
      const LayerViews& views = run.views(at, microbatch);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (outputs[i].sharded) continue;
        const std::string name = text("{} of {}, microbatch {}", outputs[i].name, layer, microbatch);
        out["the output " + name] = bytes_of_tensor(views.out[i]);
        if (!views.dout[i].empty()) out["the gradient of the output " + name] = bytes_of_tensor(views.dout[i]);
      }
    }
    const auto& params = run.model().specs(at).params;
    for (std::size_t i = 0; i < params.size(); ++i)
      if (!is_split(params[i]) && !is_partial(params[i]))
        out[text("the gradient of {}, {}", layer, params[i].name)] = bytes_of_tensor(run.views(at).grads[i]);
  }
  return out;
}

} // namespace

void MergedGradients::compare_shared(const ModelRun& run) {
  Tensors shared = shared_tensors(run);
  if (!shared_) {
    shared_ = std::move(shared);
    return;
  }
  const std::string differs = difference(shared, *shared_);
  if (!differs.empty())
    shared_differences_.push_back(
        text("{}: ranks differ: on rank {}, {}", to_text(run.model().shape()), run.model().context().rank, differs));
}

void MergedGradients::add_gradient(const ModelRun& run, std::size_t at, std::size_t parameter) {
  const ParamSpec& spec = run.model().specs(at).params[parameter];
  const std::string where = text("{}, rank {}", to_text(run.model().shape()), run.model().context().rank);
  const std::string name = text("the gradient of {}, {}", run.model().name(at), spec.name);
  const std::vector<double> local = values_of(run.views(at).grads[parameter]);
  const auto elements = static_cast<std::size_t>(spec.global.elements());
  std::vector<double>& whole = values.try_emplace(name, elements).first->second;
  if (whole.size() != elements)
    throw Error(text("{}: {} has {} elements, but {} on another rank", where, name, elements, whole.size()));
  bool is_wrong = false;
  for (std::size_t i = 0; i < local.size(); ++i) {
    const std::int64_t global = global_element(spec, static_cast<std::int64_t>(i));
    if (global < 0) {
      if (local[i] != 0 && !is_wrong)
        padding_differences_.push_back(text("{}: {} is {} at element {}, which is padding", where, name, local[i], i));
      is_wrong |= local[i] != 0; // the first element is enough
      continue;
    }
    double& element = whole[static_cast<std::size_t>(global)];
    element = is_partial(spec) ? element + local[i] : local[i];
  }
}

void MergedGradients::add(const ModelRun& run) {
  const std::lock_guard lock(mutex_);
  compare_shared(run);
  for (int microbatch = 0; microbatch < ModelRun::kMicrobatches; ++microbatch)
    values[text("the loss of microbatch {}", microbatch)] =
        values_of(run.views(run.count() - 1, microbatch).out.front());
  for (std::size_t at = 0; at < run.count(); ++at)
    for (std::size_t i = 0; i < run.model().specs(at).params.size(); ++i) add_gradient(run, at, i);
}

} // namespace triax::conformance
